"""render --into, in a folder that others can write to as well: secrets go into new files of our own only."""

import gc
import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kubernetes_daemonset import cli
from tests.component import a_manifest, as_yaml
from tests.component_tool import Ran

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
        said = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Ran(ended.value.code, said.out, said.err)

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

    def test_a_file_that_others_opened_before_gets_no_secret(self, render: Render, into: Path, to: str) -> None:
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
        assert f"{into / below}: cannot be written: is a symbolic link, or no folder" in ran.err
        assert list(elsewhere.iterdir()) == []

    def test_nothing_temporary_is_left_when_a_file_cannot_be_put_in_place(
        self, render: Render, into: Path, to: str
    ) -> None:
        (into / FILES[to] / "a").mkdir(parents=True)
        ran = render(to)
        assert ran.code == 2
        assert f"{into / FILES[to]}: cannot be written: Is a directory" in ran.err
        assert not [path for path in into.iterdir() if SECRET in (path.read_text() if path.is_file() else "")]
        assert not [path.name for path in into.iterdir() if path.name.startswith(".") and path.name != ".gitignore"]

    def test_a_folder_that_you_name_can_be_a_symlink(self, render: Render, into: Path, tmp_path: Path, to: str) -> None:
        (tmp_path / "real").mkdir()
        into.symlink_to(tmp_path / "real")
        assert render(to).code == 0
        assert (tmp_path / "real" / FILES[to]).exists()


def test_a_main_file_of_another_party_is_not_waited_for(render: Render, into: Path) -> None:
    """It is read to find files of earlier runs. A pipe would never end, and a symlink can lead anywhere."""
    into.mkdir()
    os.mkfifo(into / "main.tf.json")
    assert render("terraform").code == 0
    assert (into / "main.tf.json").is_file()


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

    def test_lines_of_others_stay(self, render: Render, into: Path, to: str) -> None:
        into.mkdir()
        (into / ".gitignore").write_text("mine\n# theirs")
        (into / ".gitignore").chmod(0o640)
        render(to)
        assert (into / ".gitignore").read_text().startswith("mine\n# theirs\n")
        assert mode(into / ".gitignore") == 0o640
        assert self.ignored(into, FILES[to])

    def test_it_is_not_touched_again(self, render: Render, into: Path, to: str) -> None:
        render(to)
        before = (into / ".gitignore").stat()
        ran = render(to)
        assert ".gitignore" not in ran.err
        assert (into / ".gitignore").stat().st_mtime_ns == before.st_mtime_ns

    def test_a_line_with_a_slash_does(self, render: Render, into: Path, to: str) -> None:
        into.mkdir()
        text = f"/{FILES[to]}\n*.tfstate\n*.tfstate.*\n"
        (into / ".gitignore").write_text(text)
        render(to)
        assert (into / ".gitignore").read_text() == text

    @pytest.mark.parametrize("what", ["symlink", "folder", "no text"])
    def test_one_that_cannot_be_extended_is_left_and_reported(
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
        assert f"{into}/.gitignore: cannot be extended; keep {FILES[to]}" in ran.err
        assert target.read_text() == "theirs\n"
