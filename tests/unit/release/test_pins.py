"""Pinned Python packages: with hashes, without addresses, and not below a version that fixes a known vulnerability."""

import json
import os
import re
import subprocess
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from packaging.version import Version

from tests.support.shell import ROOT

REQUIREMENTS = ROOT / "requirements"
FILES = sorted(REQUIREMENTS.glob("*.txt"))
KNOWN = tomllib.loads((REQUIREMENTS / "advisories.toml").read_text())
ADVISORIES = KNOWN["advisory"]
UNFIXED = KNOWN["unfixed"]
SHIPPED = ("runtime.txt", "cli.txt")
ADDRESS = re.compile(
    r"://|^\s*(--?(extra-)?index-url|-i|-f|--find-links|--trusted-host|-e|--editable)\b|\s@\s", re.MULTILINE
)
PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(\[[^\]]*\])?==(?P<version>[^\s;\\]+)")


def entries(text: str) -> Iterator[str]:
    """Requirements with the lines that continue them; comments are left out."""
    plain = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    return (line for line in plain.splitlines() if line.strip())


def pins(text: str) -> Iterator[tuple[str, Version]]:
    for entry in entries(text):
        pin = PIN.match(entry)
        assert pin, f"{entry[:80]!r} is not pinned to one version"
        yield re.sub(r"[-_.]+", "-", pin["name"]).lower(), Version(pin["version"])


def too_old(text: str) -> list[str]:
    return [
        f"{name} {version} has {advisory['id']}; expected {advisory['fixed']} or later"
        for name, version in pins(text)
        for advisory in ADVISORIES
        if advisory["package"] == name and version < Version(advisory["fixed"])
    ]


def unhashed(text: str) -> list[str]:
    return [entry[:80] for entry in entries(text) if not re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
class TestPins:
    def test_every_pin_has_a_hash(self, file: Path) -> None:
        assert not unhashed(file.read_text())

    def test_no_address_of_an_index_or_a_file(self, file: Path) -> None:
        assert not ADDRESS.search(file.read_text())

    def test_none_has_a_known_vulnerability(self, file: Path) -> None:
        assert not too_old(file.read_text())


def test_all_requirements_are_checked() -> None:
    assert {file.name for file in FILES} >= {"build.txt", "cli.txt", "dev.txt", "runtime.txt", "uv.txt"}


def test_the_executables_run_the_packages_of_the_image_and_those_of_the_command_line() -> None:
    runtime, cli = (dict(pins((REQUIREMENTS / name).read_text())) for name in ("runtime.txt", "cli.txt"))
    assert runtime.items() <= cli.items()
    assert cli.keys() - runtime.keys() == {"click", "rich", "markdown-it-py", "mdurl", "pygments"}


def test_every_advisory_is_about_a_package_that_is_pinned() -> None:
    pinned = {name for file in FILES for name, _ in pins(file.read_text())}
    assert {advisory["package"] for advisory in ADVISORIES} <= pinned
    assert all(advisory["id"] and advisory["about"] for advisory in ADVISORIES)


def test_advisories_without_a_fix_concern_pinned_versions_of_packages_that_are_not_shipped() -> None:
    every = {(name, str(version)) for file in FILES for name, version in pins(file.read_text())}
    shipped = {name for file in SHIPPED for name, _ in pins((REQUIREMENTS / file).read_text())}
    for entry in UNFIXED:
        assert (entry["package"], entry["version"]) in every, "the pin changed; check the advisory again"
        assert entry["package"] not in shipped
        assert entry["id"]
        assert entry["harmless"]


@pytest.mark.parametrize("module", sorted((ROOT / "lab/binaries").glob("*/*.mod")), ids=lambda file: file.parent.name)
def test_go_modules_have_hashes(module: Path) -> None:
    hashes = module.with_suffix(".sum").read_text().splitlines()
    assert hashes
    assert all(re.search(r" h1:[A-Za-z0-9+/]{43}=$", line) for line in hashes)


HASH = "--hash=sha256:" + "0" * 64


@pytest.mark.parametrize("line", ["h11==0.14.0", "h2==4.4.0", "H2==4.2.0 ; python_version > '3'", "protobuf==6.33.4"])
def test_a_version_with_a_known_vulnerability_is_found(line: str) -> None:
    assert len(too_old(f"{line} \\\n    {HASH}\n")) >= 1


@pytest.mark.parametrize("line", ["h2==4.4.1", "h2==4.4.1 \\\n    --hash=md5:" + "0" * 32])
def test_a_pin_without_a_strong_hash_is_found(line: str) -> None:
    assert unhashed(line)


@pytest.mark.parametrize(
    "line",
    [
        "--index-url https://example.com/simple",
        "-i https://example.com/simple",
        "--extra-index-url=https://example.com/simple",
        "--find-links ./wheels",
        "h2 @ file:///h2.whl",
        "-e .",
    ],
)
def test_an_address_is_found(line: str) -> None:
    assert ADDRESS.search(line)


@contextmanager
def osv(vulnerable: str) -> Iterator[str]:
    """A server that reports one package as vulnerable."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            queries = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
            results = [
                {"vulns": [{"id": "X-1"}]} if query["package"]["name"] == vulnerable else {} for query in queries
            ]
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"results": results}).encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def audit(server: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OSV_URL": server, "no_proxy": "127.0.0.1"}
    return subprocess.run(
        [ROOT / "scripts" / "audit"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def test_an_audit_names_what_is_vulnerable() -> None:
    with osv("h2") as server:
        done = audit(server)
    assert (done.returncode, done.stderr) == (1, "")
    assert re.match(r"h2 [\d.]+: X-1\naudit: \d+ packages, 1 with known vulnerabilities\n", done.stdout)


def test_an_audit_of_packages_without_vulnerabilities_succeeds() -> None:
    with osv("none") as server:
        done = audit(server)
    assert done.returncode == 0
    for entry in UNFIXED:
        assert f"{entry['package']} {entry['version']}: {entry['id']} has no known fix; " in done.stdout


def test_an_audit_without_the_network_does_not_pass() -> None:
    done = audit("http://127.0.0.1:1")
    assert done.returncode == 2
    assert re.fullmatch(r"audit: cannot ask http://127.0.0.1:1 about \d+ packages: .+\n", done.stderr)
