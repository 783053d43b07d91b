"""What the command line shows of a change."""

import base64
import fcntl
import gzip
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from rich.cells import cell_len

from kubernetes_daemonset.cli import output
from kubernetes_daemonset.deploy.plan import Change, Ref
from kubernetes_daemonset.deploy.rollout import Rollout

Json = dict[str, Any]

REF = Ref("Secret", "agent-env-secrets", "agents")


def a_secret(value: str, note: str) -> Json:
    """As kubectl apply leaves it: with the whole Secret once more in an annotation."""
    data = {"TOKEN": base64.b64encode(value.encode()).decode()}
    whole = f'{{"data":{data}}}'
    annotations = {
        "kubectl.kubernetes.io/last-applied-configuration": whole,
        "kapp.k14s.io/original": whole,
        "note": note,
    }
    metadata = {"name": REF.name, "namespace": REF.namespace, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


def test_a_changed_secret_is_shown_without_its_value() -> None:
    before, after = a_secret("s3cret", "old"), a_secret("another", "new")
    for change in (Change(REF, before, after), Change(REF, None, after), Change(REF, before, None)):
        shown = output.difference(change)
        assert "TOKEN: (" in shown
        assert "last-applied" not in shown
        for body in (before, after):
            assert body["data"]["TOKEN"] not in shown
    assert "+    note: (" in output.difference(Change(REF, before, after))


@pytest.mark.parametrize("encode", [str, lambda text: base64.b64encode(gzip.compress(text.encode())).decode()])
def test_annotations_of_a_secret_are_shown_without_their_values(encode: Callable[[str], str]) -> None:
    """Rancher keeps the whole Secret in one, compressed; others as YAML."""
    before, after = a_secret("s3cret", encode("data:\n  TOKEN: s3cret\n")), a_secret("s3cret", "new")
    shown = output.difference(Change(REF, before, after))
    assert re.search(r"^-    note: \([0-9a-f]{8}\)$", shown, re.MULTILINE)
    assert re.search(r"^\+    note: \([0-9a-f]{8}\)$", shown, re.MULTILINE)
    assert before["metadata"]["annotations"]["note"] not in shown
    assert "s3cret" not in shown


def test_an_unchanged_secret_is_not_a_difference() -> None:
    assert output.difference(Change(REF, a_secret("s3cret", "same"), a_secret("s3cret", "same"))) == ""


def test_an_unchanged_object_is_not_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys of other managers are in it, before and after, however many lines they have."""
    monkeypatch.setattr(output, "_shown", lambda _: pytest.fail("was rendered"))
    assert output.difference(Change(REF, a_secret("s3cret", "same"), a_secret("s3cret", "same"))) == ""


def test_columns_are_aligned_by_display_width() -> None:
    """Chinese characters take two cells; combining ones take none."""
    lines = output.table(("NAME", "KIND"), [("節點", "a"), ("e\u0301", "b"), ("plain", "c")]).split("\n")
    assert [cell_len(line[: line.rindex(" ") + 1]) for line in lines] == [7, 7, 7, 7]


class TestProgress:
    def test_without_a_terminal_each_change_is_a_line(self, capsys: pytest.CaptureFixture[str]) -> None:
        progress = output.Progress("agent")
        for available in (1, 1, 2):
            progress(Rollout(2, 2, available, seen=True), "")
        progress.end()
        assert capsys.readouterr().err == (
            "agent: 2 of 2 nodes updated, 1 available\nagent: 2 of 2 nodes updated, 2 available\n"
        )

    @pytest.mark.parametrize("how_it_ends", ["end", "interrupt", "terminate"])
    def test_on_a_terminal_it_is_one_line_and_restores_the_cursor(self, how_it_ends: str) -> None:
        shown = on_a_terminal(how_it_ends)
        assert "2 of 2 nodes updated, 1 available; [b]pod[/b]" in shown
        assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")

    def test_a_dumb_terminal_gets_lines(self) -> None:
        shown = on_a_terminal("end", TERM="dumb")
        assert shown == "agent: 2 of 2 nodes updated, 1 available; [b]pod[/b]\r\n"

    def test_no_color_disables_colors(self) -> None:
        assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", on_a_terminal("end", NO_COLOR="1"))

    def test_at_80_columns_the_line_is_cut(self) -> None:
        lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", on_a_terminal("end", trouble="long " * 50)).splitlines()
        assert "…" in "".join(lines)
        assert max(map(len, lines)) <= 80


SCRIPT = """
import os, signal, sys, time
from kubernetes_daemonset.cli import output
from kubernetes_daemonset.deploy.rollout import Rollout
progress = output.Progress("agent")
try:
    progress(Rollout(2, 2, 1, seen=True), sys.argv[1])
    if sys.argv[2] == "interrupt":
        raise KeyboardInterrupt
    if sys.argv[2] == "terminate":
        time.sleep(0.5)  # until it is shown
        os.kill(os.getpid(), signal.SIGTERM)
except KeyboardInterrupt:
    pass
finally:
    progress.end()
"""


def on_a_terminal(how_it_ends: str, trouble: str = "[b]pod[/b]", **environ: str) -> str:
    """What a terminal of 80 columns gets."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "COLUMNS"}}
    command = [sys.executable, "-c", SCRIPT, trouble, how_it_ends]
    subprocess.run(
        command,
        check=how_it_ends != "terminate",
        stderr=follower,
        env=environment | {"TERM": "xterm-256color"} | environ,
    )
    os.close(follower)
    written = b""
    with suppress(OSError), os.fdopen(leader, "rb", buffering=0) as terminal:
        while chunk := terminal.read(65536):
            written += chunk
    return written.decode()
