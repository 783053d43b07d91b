"""Nothing that a manifest, a file's name, a cluster or an argument holds reaches a terminal as a control character."""

import gc
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from kubekit.diagnostics import Diagnostic, Location
from kubernetes_daemonset.cli import common, deploy, output
from kubernetes_daemonset.cli import main as cli
from kubernetes_daemonset.deploy.plan import Change, Ref
from kubernetes_daemonset.manifest import dump
from tests.support.component_tool import Ran
from tests.support.manifests.builders import NAMESPACE, a_manifest, as_yaml, rendered
from tests.unit.component.cli.test_output import on_a_terminal
from tests.unit.component.deploy.test_apply import DAEMON_SET, Answer, a_cluster, applied, refusal, to

Json = dict[str, Any]
Run = Callable[..., Ran]

US = "kubernetes-daemonset"
# A window's title, a cleared screen, C1's own CSI, a line that is overwritten, reversed text, other line ends, and
# what a person does not see.
EVIL = "\x1b]0;PWNED\x07\x1b[2J\x9b31m\rfine\x08\x7f\u202e\u2066\u2028\u2029\x85\u200b\U000e0041"


def hidden(text: str) -> set[str]:
    return {letter for letter in text if not letter.isprintable() and letter not in "\n\t"}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str, manifest: Json | str | None = None, answers: tuple[Answer, ...] = ()) -> Ran:
        monkeypatch.setattr(deploy, "connect", lambda *_: a_cluster(*answers))
        if manifest is not None:
            (tmp_path / "agent.yaml").write_text(manifest if isinstance(manifest, str) else as_yaml(manifest))
            words = (*words, "-f", str(tmp_path / "agent.yaml"))
        with pytest.raises(SystemExit) as ended:
            cli.main(words)
        gc.enable()
        captured = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Ran(ended.value.code, captured.out, captured.err)

    return run


def assert_clean(ran: Ran) -> None:
    assert not hidden(ran.out), sorted(map(ascii, hidden(ran.out)))
    assert not hidden(ran.err), sorted(map(ascii, hidden(ran.err)))
    assert r"\x1b" in ran.out + ran.err or r"\u001b" in ran.out + ran.err or r"\e" in ran.out + ran.err, (
        "the hostile text is not in the output at all, so this shows nothing"
    )


WRONG = {
    "a value": {"spec.host_network": EVIL},
    "a field": {f"spec.{EVIL}": 1},
    "a name": {"metadata.name": EVIL},
    "a label": {"metadata.labels": {EVIL: EVIL}},
    "an image": {"app.image.tag": EVIL},
    "a map's key": {"spec.config_maps": {EVIL: "x"}},
    "a kind": {"kind": EVIL},
    "an amount": {"app.resources": {"limits": {"cpu": EVIL}}},
}


@pytest.mark.parametrize("changes", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize(
    "words",
    [("validate",), ("validate", "-o", "json"), ("render",), ("diff",), ("apply",), ("delete",), ("outputs",)],
    ids=" ".join,
)
def test_errors_in_a_manifest(run: Run, words: tuple[str, ...], changes: Json) -> None:
    ran = run(*words, manifest=a_manifest(changes))
    assert ran.code != 0
    assert_clean(ran)


def test_warnings(run: Run) -> None:
    changes = {"app.env": {"variables": {"A": {"value": "x"}}}, "app.command": [f"$({EVIL})"]}
    ran = run("validate", manifest=a_manifest(changes))
    assert not hidden(ran.out + ran.err)


@pytest.mark.parametrize("verb", ["validate", "render", "apply"])
def test_names_of_files(run: Run, tmp_path: Path, verb: str) -> None:
    assert_clean(run(verb, "-f", str(tmp_path / EVIL)))
    (tmp_path / EVIL).write_text("spec: {}")
    assert_clean(run(verb, "-f", str(tmp_path / EVIL)))


VALID = {
    "spec.config_maps": {"files": f"{EVIL}\nsecond\tline\n"},
    "app.env": {"variables": {"NOTE": {"value": EVIL}}},
    "metadata.annotations": {"example.com/note": EVIL},
}


@pytest.mark.parametrize("words", [(), ("-o", "json"), ("--to", "manifest")], ids=" ".join)
def test_rendered_objects_are_equivalent_without_control_characters(run: Run, words: tuple[str, ...]) -> None:
    ran = run("render", *words, manifest=a_manifest(VALID))
    assert ran.code == 0, ran.err
    assert_clean(ran)
    text = json.dumps(list(yaml.safe_load_all(ran.out)))
    assert json.dumps(EVIL)[1:-1] in text


def test_a_text_of_several_lines_stays_readable() -> None:
    assert dump.to_yaml({"a": "first\nsecond ✓ é 漢\n"}) == "a: |\n  first\n  second ✓ é 漢\n"


@pytest.mark.parametrize("to_kind", ["terraform", "pulumi"])
def test_folders_that_files_are_written_to(run: Run, tmp_path: Path, to_kind: str) -> None:
    ran = run("render", "--to", to_kind, "--into", str(tmp_path / EVIL.replace("/", "")), manifest=a_manifest())
    assert ran.code == 0, ran.err
    assert_clean(ran)


@pytest.mark.parametrize(
    "words",
    [
        (EVIL,),
        ("validate", "-f", "-", EVIL),
        ("validate", "-f", "-", f"--{EVIL}"),
        ("explain", EVIL),
        ("explain", f"spec.node_selector[{EVIL}]"),
        ("explain", f"spec.{EVIL}", "-o", "json"),
        ("init", EVIL),
        ("apply", "-f", "-", "--timeout", EVIL),
        ("render", "-f", "-", "-o", EVIL),
    ],
    ids=map(str, range(9)),
)
def test_arguments(run: Run, words: tuple[str, ...]) -> None:
    assert_clean(run(*words))


def test_assignments(run: Run) -> None:
    assert_clean(run("validate", "--set", f"spec.{EVIL}={EVIL}", manifest=a_manifest()))


def an_evil_agent() -> Json:
    (live,) = rendered({"app.env": {"variables": {"NOTE": {"value": EVIL}}}})
    return applied(live | {"status": {"desiredNumberScheduled": 1}}, US)


@pytest.mark.parametrize("verb", ["diff", "apply", "delete", "outputs"])
@pytest.mark.parametrize("code", [403, 422, 500, 200])
def test_messages_of_a_server(run: Run, verb: str, code: int) -> None:
    cause = {"reason": EVIL, "message": EVIL, "field": EVIL}
    answer = refusal(code, "Forbidden", EVIL, cause) if code != 200 else httpx2.Response(200, text=EVIL)
    ran = run(verb, manifest=a_manifest(), answers=(to("GET", "/", answer), to("PATCH", "/", answer)))
    assert ran.code == 3
    assert not hidden(ran.out + ran.err)
    if code != 200:
        assert_clean(ran)


def test_conflicts_with_other_managers(run: Run) -> None:
    def conflict(request: httpx2.Request) -> httpx2.Response | None:
        if request.method != "PATCH" or request.url.params["force"] == "true":
            return None
        return refusal(409, "Conflict", EVIL, {"field": EVIL, "message": EVIL})

    assert_clean(run("apply", manifest=a_manifest(), answers=(conflict,)))
    assert_clean(run("diff", manifest=a_manifest(), answers=(conflict,)))


def test_differences(run: Run) -> None:
    there = to("GET", DAEMON_SET, httpx2.Response(200, json=an_evil_agent()))
    ran = run("diff", manifest=a_manifest(), answers=(there,))
    assert ran.code == 1
    assert_clean(ran)


def test_names_that_a_server_gives(run: Run) -> None:
    (live, _) = rendered({"spec.config_maps": {"files": ""}})
    evil = applied(live, US)
    evil["metadata"] |= {"name": EVIL, "namespace": EVIL}
    listed = httpx2.Response(200, json={"items": [evil], "metadata": {}})
    answers = (to("GET", f"/api/v1/namespaces/{NAMESPACE}/configmaps", listed),)
    for words in [("diff", "-o", "table"), ("diff",), ("apply", "--dry-run"), ("delete", "--dry-run"), ("delete",)]:
        assert_clean(run(*words, manifest=a_manifest(), answers=answers))


def test_makers_that_a_server_names(run: Run) -> None:
    (live,) = rendered({})
    there = to("GET", DAEMON_SET, httpx2.Response(200, json=applied(live, EVIL)))
    for words in [("apply",), ("delete", "--dry-run"), ("delete",)]:
        assert_clean(run(*words, manifest=a_manifest(), answers=(there,)))


PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
EVENTS = f"/api/v1/namespaces/{NAMESPACE}/events"
WAITING = {"name": EVIL, "state": {"waiting": {"reason": EVIL, "message": EVIL}}}
TROUBLES = {
    "a container that waits": (PODS, {"status": {"containerStatuses": [WAITING]}}),
    "a pod that failed": (PODS, {"status": {"phase": "Failed", "reason": EVIL, "message": EVIL}}),
    "a pod without a node": (
        PODS,
        {"status": {"conditions": [{"type": "PodScheduled", "status": "False", "message": EVIL}]}},
    ),
    "an event": (EVENTS, {"type": "Warning", "reason": EVIL, "message": EVIL}),
}


@pytest.mark.parametrize(("path", "item"), TROUBLES.values(), ids=TROUBLES)
def test_errors_of_a_rollout(run: Run, path: str, item: Json) -> None:
    answers = (
        to("GET", DAEMON_SET, httpx2.Response(200, json=an_evil_agent())),
        to("GET", path, httpx2.Response(200, json={"items": [item | {"metadata": {}}], "metadata": {}})),
    )
    ran = run("apply", "--timeout=0", manifest=a_manifest(), answers=answers)
    assert ran.code == 4
    assert_clean(ran)


def test_progress_on_a_terminal_writes_its_own_sequences_only() -> None:
    shown = on_a_terminal("end", trouble=f"1 pod: {EVIL.replace(chr(0), '')}\nkubernetes-daemonset: all is well")
    own = re.compile(r"\x1b\[(\?25[hl]|[0-9;]*m|[12]?K|1A)|\r")
    assert not hidden(own.sub("", shown)), ascii(shown)
    assert not [line for line in own.sub("", shown).split("\n") if line.startswith("kubernetes-daemonset")]


def test_no_message_looks_like_two(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    forged = "denied\nkubernetes-daemonset: applied"
    common.say(forged)
    assert capsys.readouterr().err == "denied\\nkubernetes-daemonset: applied\n"
    one = Diagnostic("spec.a\nb", "c\nd", Location("file\nname", 1, 2))
    assert output.format_diagnostic(one) == "file\\nname:1:2: error: spec.a\\nb: c\\nd"
    ran = run("outputs", manifest=a_manifest(), answers=(to("GET", "/", refusal(403, "Forbidden", forged)),))
    assert not [line for line in ran.err.splitlines()[1:] if not line.startswith("  ")]


def test_colors_are_ours_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    body = {"kind": "ConfigMap", "metadata": {"name": EVIL}, "data": {"a": EVIL}}
    change = Change(Ref("ConfigMap", EVIL, EVIL), None, body)
    ours = {f"\033[{color}m" for color in ("31", "32", "33", "36", "1", "0")}
    for text in (
        output.difference(change),
        output.changes([change]),
        output.format_diagnostic(Diagnostic(EVIL, EVIL, Location(EVIL))),
    ):
        for sequence in ours:
            text = text.replace(sequence, "")  # noqa: PLW2901
        assert not hidden(text)


@pytest.mark.parametrize(("name", "value"), [("TERM", "dumb"), ("NO_COLOR", "1")])
def test_there_are_no_escape_sequences_without_color_support(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, value)
    change = Change(Ref("ConfigMap", "a", "b"), None, {"kind": "ConfigMap", "metadata": {"name": "b"}})
    for text in (output.difference(change), output.changes([change]), output.table(("A",), [["b"]])):
        assert "\033" not in text
