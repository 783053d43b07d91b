"""render --into, in a folder that others can write to as well: secrets go into new files of our own only."""

import errno
import gc
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kubernetes_daemonset.cli import main as cli
from kubernetes_daemonset.deploy import terraform
from tests.support.component_tool import Ran
from tests.support.manifests.builders import a_manifest, as_yaml

SECRET = "s3cr3t-of-the-agent"  # noqa: S105  a test's
FILES = {"terraform": "terraform.tfvars.json", "pulumi": "stack-input.yaml"}
Render = Callable[..., Ran]


@pytest.fixture
def into(tmp_path: Path) -> Path:
    return tmp_path / "shared"


@pytest.fixture
def render(tmp_path: Path, into: Path, capsys: pytest.CaptureFixture[str]) -> Render:
    def render(to: str, *names: str) -> Ran:
        secret = {"app.env": {"secrets": {"TOKEN": {"value": SECRET}}}}
        manifests = [a_manifest(secret | {"metadata.name": name}) for name in names or ("agent",)]
        (tmp_path / "agent.yaml").write_text(as_yaml(*manifests))
        with pytest.raises(SystemExit) as ended:
            cli.main(["render", "-f", str(tmp_path / "agent.yaml"), "--to", to, "--into", str(into)])
        gc.enable()
        output = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Ran(ended.value.code, output.out, output.err)

    return render


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("to", FILES)
class TestAttacks:
    @pytest.mark.parametrize("what", ["file", "symlink"])
    def test_a_prepared_temporary_file_is_not_used(self, render: Render, into: Path, to: str, what: str) -> None:
        """Its name was the target's and the process id, which another user can guess."""
        into.mkdir()
        elsewhere = into / "of-the-attacker"
        prepared = into / f".{FILES[to]}.{os.getpid()}"
        if what == "file":
            prepared.touch()
            prepared.chmod(0o666)
        else:
            prepared.symlink_to(elsewhere)
        watched = prepared.open() if what == "file" else None
        ran = render(to)
        assert ran.code == 0, ran.err
        assert not elsewhere.exists()
        if watched:
            assert SECRET not in watched.read()
            watched.close()
        assert mode(into / FILES[to]) == 0o600

    def test_a_prepared_symlink_at_the_target_is_replaced(self, render: Render, into: Path, to: str) -> None:
        into.mkdir()
        (into / FILES[to]).symlink_to(into / "of-the-attacker")
        assert render(to).code == 0
        assert not (into / "of-the-attacker").exists()
        assert not (into / FILES[to]).is_symlink()
        assert mode(into / FILES[to]) == 0o600

    def test_a_file_that_others_have_open_gets_no_secret(self, render: Render, into: Path, to: str) -> None:
        into.mkdir()
        (into / FILES[to]).touch()
        (into / FILES[to]).chmod(0o666)
        with (into / FILES[to]).open() as watched:
            assert render(to).code == 0
            assert watched.read() == ""
        assert mode(into / FILES[to]) == 0o600

    @pytest.mark.parametrize("below", ["monitoring", "monitoring/a"])
    def test_a_symlink_in_place_of_a_subfolder_is_rejected(
        self, render: Render, into: Path, to: str, below: str
    ) -> None:
        elsewhere = into / "of-the-attacker"
        elsewhere.mkdir(parents=True)
        (into / below).parent.mkdir(exist_ok=True)
        (into / below).symlink_to(elsewhere)
        ran = render(to, "a", "b")
        assert ran.code == 2
        assert f"cannot write {into / below}: it is a symbolic link or not a directory" in ran.err
        assert list(elsewhere.iterdir()) == []

    def test_nothing_temporary_is_left_when_a_file_cannot_be_put_in_place(
        self, render: Render, into: Path, to: str
    ) -> None:
        (into / FILES[to] / "a").mkdir(parents=True)
        ran = render(to)
        assert ran.code == 2
        assert f"cannot write {into / FILES[to]}: Is a directory" in ran.err
        assert not [path for path in into.iterdir() if SECRET in (path.read_text() if path.is_file() else "")]
        assert not [path.name for path in into.iterdir() if path.name.startswith(".") and path.name != ".gitignore"]

    def test_a_killed_render_leaves_no_secret(self, render: Render, into: Path, tmp_path: Path, to: str) -> None:
        """Killed at the last moment before the file gets a name. Nothing can be cleaned up after SIGKILL."""
        render(to)
        (into / FILES[to]).unlink()
        program = f"""
import os, sys
from kubernetes_daemonset.cli.main import main

def killing(call):
    def killed(*names, **options):
        if any("{FILES[to]}" in name for name in names):
            os.kill(os.getpid(), 9)
        call(*names, **options)
    return killed

os.link, os.replace = killing(os.link), killing(os.replace)
main(sys.argv[1:])
"""
        words = ["render", "-f", str(tmp_path / "agent.yaml"), "--to", to, "--into", str(into)]
        ended = subprocess.run([sys.executable, "-c", program, *words], check=False)
        assert ended.returncode == -signal.SIGKILL
        assert not [path.name for path in into.iterdir() if FILES[to] in path.name]

    @pytest.mark.parametrize("lacks", ["files without a name", "/proc"])
    def test_without_unnamed_files_secrets_are_still_private(
        self, render: Render, into: Path, to: str, lacks: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        really = os.open

        def open_named(path: str, flags: int, *others: int, **options: int) -> int:
            if lacks != "/proc" and flags & os.O_TMPFILE == os.O_TMPFILE:
                raise OSError(errno.EOPNOTSUPP, "Operation not supported")
            return really(path, flags, *others, **options)

        def link(*_: object, **__: object) -> None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")

        monkeypatch.setattr(os, "open", open_named)
        monkeypatch.setattr(os, "link", link)
        assert render(to).code == 0
        assert mode(into / FILES[to]) == 0o600
        assert (into / FILES[to]).read_text()
        assert not [path.name for path in into.iterdir() if path.name.startswith(".") and path.name != ".gitignore"]

    def test_a_folder_that_you_name_can_be_a_symlink(self, render: Render, into: Path, tmp_path: Path, to: str) -> None:
        (tmp_path / "real").mkdir()
        into.symlink_to(tmp_path / "real")
        assert render(to).code == 0
        assert (tmp_path / "real" / FILES[to]).exists()


def test_a_pipe_as_main_file_does_not_block(render: Render, into: Path) -> None:
    """It is read to find files of earlier runs. A pipe would never end, and a symlink can lead anywhere."""
    into.mkdir()
    os.mkfifo(into / "main.tf.json")
    assert render("terraform").code == 0
    assert (into / "main.tf.json").is_file()


def main_file(yaml_body: object) -> str:
    resource = {"yaml_body": yaml_body, "field_manager": terraform.FIELD_MANAGER}
    return json.dumps({"resource": {"kubectl_manifest": {"a": resource}}})


@pytest.mark.parametrize("text", ["[" * 100_000, main_file(5), main_file(["a.yaml"])], ids=["deep", "number", "list"])
def test_a_main_file_that_cannot_be_ours_is_replaced(render: Render, into: Path, text: str) -> None:
    into.mkdir()
    (into / "main.tf.json").write_text(text)
    assert render("terraform").code == 0
    assert json.loads((into / "main.tf.json").read_text())["resource"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
@pytest.mark.parametrize("owner", [0, 12345])
def test_a_main_file_of_another_user_has_no_file_removed(render: Render, into: Path, owner: int) -> None:
    into.mkdir()
    (into / "values.yaml").write_text("mine")
    (into / "main.tf.json").write_text(main_file('${file("${path.module}/values.yaml")}'))
    os.chown(into / "main.tf.json", owner, owner)
    assert render("terraform").code == 0
    assert (into / "values.yaml").exists() is (owner != 0)


@pytest.mark.parametrize("to", FILES)
class TestGitignore:
    def ignored(self, into: Path, name: str) -> bool:
        """By git itself."""
        if not (into / ".git").exists():
            subprocess.run(["git", "init", "--quiet", str(into)], check=True)
        return subprocess.run(["git", "-C", into, "check-ignore", "--quiet", name], check=False).returncode == 0

    def test_files_with_secrets_are_ignored_by_git(self, render: Render, into: Path, to: str) -> None:
        ran = render(to)
        assert f"wrote {into}/.gitignore\n" in ran.err
        assert self.ignored(into, FILES[to])
        for name in ("main.tf.json", "__main__.py", "Pulumi.yaml", "daemon_set.yaml"):
            assert not self.ignored(into, name)

    def test_a_state_with_secrets_is_ignored_too(self, render: Render, into: Path, to: str) -> None:
        render(to)
        for name in ("terraform.tfstate", "terraform.tfstate.backup"):
            assert self.ignored(into, name) is (to == "terraform")

    def test_existing_lines_are_kept(self, render: Render, into: Path, to: str) -> None:
        into.mkdir()
        (into / ".gitignore").write_text("mine\n# theirs")
        (into / ".gitignore").chmod(0o640)
        render(to)
        assert (into / ".gitignore").read_text().startswith("mine\n# theirs\n")
        assert mode(into / ".gitignore") == 0o640
        assert self.ignored(into, FILES[to])

    @pytest.mark.parametrize("bits", [0o4000, 0o2000, 0o1000, 0o111, 0o022], ids=oct)
    def test_rights_that_another_user_prepared_are_dropped(
        self, render: Render, into: Path, to: str, bits: int
    ) -> None:
        """A text can be a program: with its setuid bit in a file of root, it would run as root."""
        into.mkdir()
        (into / ".gitignore").write_text("#!/bin/sh\n")
        (into / ".gitignore").chmod(0o644 | bits)
        before = os.umask(0)  # which would hide that a right to write is kept
        try:
            assert render(to).code == 0
        finally:
            os.umask(before)
        assert mode(into / ".gitignore") == 0o644

    def test_a_file_that_is_exchanged_meanwhile_gives_its_own_rights(
        self, render: Render, into: Path, to: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Another user moves the secrets of an earlier run to where a readable .gitignore was a moment ago."""
        render(to)
        secrets = (into / FILES[to]).read_text()
        (into / ".gitignore").write_text("theirs\n")
        really = os.open

        def exchanging(path: str, *more: int, **named: int) -> int:
            if path == ".gitignore" and (into / FILES[to]).exists():
                (into / FILES[to]).rename(into / ".gitignore")
            return really(path, *more, **named)

        monkeypatch.setattr(os, "open", exchanging)
        assert render(to).code == 0
        assert (into / ".gitignore").read_text().startswith(secrets)
        assert mode(into / ".gitignore") == 0o600

    @pytest.mark.parametrize(
        "text",
        ["{}\n!*\n", "{}\n!{}\n", " {}\n", "a\f{}\n", "a\u2028{}\n"],
        ids=["all negated", "one negated", "space", "form feed", "line separator"],
    )
    def test_ineffective_gitignore_lines_are_not_sufficient(
        self, render: Render, into: Path, to: str, text: str
    ) -> None:
        into.mkdir()
        (into / ".gitignore").write_text(text.replace("{}", FILES[to]))
        render(to)
        assert self.ignored(into, FILES[to])

    def test_it_is_not_changed_again(self, render: Render, into: Path, to: str) -> None:
        render(to)
        before = (into / ".gitignore").stat()
        ran = render(to)
        assert ".gitignore" not in ran.err
        assert (into / ".gitignore").stat().st_mtime_ns == before.st_mtime_ns

    def test_a_line_with_a_slash_is_sufficient(self, render: Render, into: Path, to: str) -> None:
        into.mkdir()
        text = f"/{FILES[to]}\n*.tfstate\n*.tfstate.*\n"
        (into / ".gitignore").write_text(text)
        render(to)
        assert (into / ".gitignore").read_text() == text

    @pytest.mark.parametrize("what", ["symlink", "folder", "no text"])
    def test_a_file_that_cannot_be_extended_is_reported(
        self, render: Render, into: Path, tmp_path: Path, to: str, what: str
    ) -> None:
        into.mkdir()
        target = tmp_path / "elsewhere"
        target.write_text("theirs\n")
        match what:
            case "symlink":
                (into / ".gitignore").symlink_to(target)
            case "folder":
                (into / ".gitignore").mkdir()
            case _:
                (into / ".gitignore").write_bytes(b"\xff\xfe")
        ran = render(to)
        assert ran.code == 0
        assert f"cannot extend {into}/.gitignore; keep {FILES[to]}" in ran.err
        assert target.read_text() == "theirs\n"
