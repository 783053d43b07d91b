"""Which build a program says it is."""

import re
import subprocess
from pathlib import Path

import pytest

from kube_node_ready import __version__, version
from kube_node_ready.controller.metrics import Metrics
from kube_node_ready.verification.model import Policy
from release import build_info
from release.build_info import BuildInfo
from release.errors import ReleaseError

BUILD = BuildInfo("1.2.3", "1a2b3c4", "1a2b3c4d5e6f", 1_700_000_000)


def test_arguments_take_precedence_over_git(tmp_path: Path) -> None:
    environ = {"VERSION": "v1.0.0", "COMMIT_HASH": "abc", "BUILD_DATE": "2023-11-14T22:13:20Z"}
    assert build_info.of_checkout(a_checkout(tmp_path), environ) == BuildInfo("1.0.0", "abc", "abc", 1_700_000_000)


def test_a_version_keeps_its_spelling(tmp_path: Path) -> None:
    """The image's tag is the chart's appVersion."""
    assert build_info.of_checkout(a_checkout(tmp_path), {"VERSION": "1.0.0-alpha.1"}).version == "1.0.0-alpha.1"


def test_the_commit_determines_the_other_values(tmp_path: Path) -> None:
    checkout = a_checkout(tmp_path, committed=True)
    found = build_info.of_checkout(checkout, {})
    assert (found.version, found.epoch) == ("0.0.1", 1_600_000_000)
    assert re.fullmatch(r"[0-9a-f]{40}", found.revision)
    assert found.commit == found.revision[:7]


def test_uncommitted_changes_are_marked(tmp_path: Path) -> None:
    checkout = a_checkout(tmp_path, committed=True)
    (checkout / "notes.txt").write_text("no part of a build")
    assert not build_info.of_checkout(checkout, {}).commit.endswith("-dirty")
    (checkout / "src/new.py").touch()
    assert build_info.of_checkout(checkout, {}).commit.endswith("-dirty")


def test_an_unpacked_archive_has_only_a_version(tmp_path: Path) -> None:
    assert build_info.of_checkout(a_checkout(tmp_path), {}) == BuildInfo("0.0.1")


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({"VERSION": "latest"}, "latest"),
        ({"VERSION": " 1.0.0"}, "' 1.0.0'"),
        ({"VERSION": "1.0.0+a"}, "1.0.0"),
        ({"BUILD_DATE": "today"}, "today"),
        ({"SOURCE_DATE_EPOCH": "x"}, "'x'"),
        ({"COMMIT_HASH": 'a"b'}, "COMMIT_HASH"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(tmp_path: Path, environ: dict[str, str], named: str) -> None:
    with pytest.raises(ReleaseError, match=named):
        build_info.of_checkout(a_checkout(tmp_path), environ)


def test_it_is_written_where_the_programs_read_it(tmp_path: Path) -> None:
    checkout = a_checkout(tmp_path)
    build_info.write(checkout, BUILD)
    output: dict[str, str] = {}
    exec((checkout / "src/kube_node_ready/__init__.py").read_text(), output)  # noqa: S102
    reported = version.describe(output["__version__"], output["__commit__"], output["__built__"])
    assert reported == "1.2.3 (commit 1a2b3c4, built 2023-11-14T22:13:20Z)"


def test_a_checkout_is_marked_as_source() -> None:
    assert version.describe("1.2.3", "", "") == "1.2.3 (from source)"


def test_the_metric_has_the_same_values() -> None:
    (family,) = [
        found for found in Metrics(Policy(())).registry.collect() if found.name == "kube_node_ready_build_info"
    ]
    (sample,) = family.samples
    assert sample.labels == {"version": __version__, "commit_hash": "from source", "build_date": ""}


def a_checkout(folder: Path, *, committed: bool = False) -> Path:
    package = folder / "src/kube_node_ready"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('__version__ = "0.0.1"\n__commit__ = ""\n__built__ = ""\n')
    if committed:
        date = "@1600000000 +0000"
        who = {f"GIT_{role}_{what}": "nobody" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        environ = {**who, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date, "PATH": "/usr/bin:/bin"}
        for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message=first"]):
            subprocess.run(["git", *words], cwd=folder, env=environ, check=True)
    return folder
