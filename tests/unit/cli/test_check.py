"""`kube-node-ready check`: from a machine with a kubeconfig, and from one without."""

import base64
import io
import json
import os
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_node_ready.api.verdict import Verdict
from kube_node_ready.checks import kubeconfig, plan, transport
from kube_node_ready.checks.access import NoAccessError
from kube_node_ready.checks.check import Deadline, Result
from kube_node_ready.checks.settings import Settings
from kube_node_ready.cli import check as table
from kube_node_ready.cli import check_flags, words
from kube_node_ready.cli import main as console
from kube_node_ready.exit_codes import ExitCode
from lab import pki
from tests.support.check_servers import FakeApi, http
from tests.support.cli import PROGRAM
from tests.support.forward_proxies import forward_proxy

ESCAPES = "\x1b]0;PWNED\x07\x1b[2J\x9b31m\u202e"
ByWords = Callable[[list[str]], int]
SETTINGS = Settings()._replace(dns_test_domains=("localhost",), check_timeout_seconds=5)


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeApi]:
    with FakeApi(tmp_path / "pki").running() as running:
        yield running


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def a_kubeconfig(fake: FakeApi, folder: Path, **user: object) -> Path:
    path = pki.kubeconfig(
        folder / "kubeconfig", f"https://127.0.0.1:{fake.port}", fake.authority.certificate, "a-token"
    )
    if user:
        edit(path, "users", "user", user)
    return path


def edit(path: Path, section: str, kind: str, change: dict[str, Any]) -> None:
    content = yaml.safe_load(path.read_text())
    content[section][0][kind] = change
    path.write_text(yaml.safe_dump(content))


def test_with_a_kubeconfig_the_api_is_checked(fake: FakeApi, tmp_path: Path) -> None:
    out = io.StringIO()
    assert table.check(SETTINGS, a_kubeconfig(fake, tmp_path), out) == 0
    rows = [line.split() for line in out.getvalue().splitlines()]
    assert rows[0] == ["CHECK", "TARGET", "RESULT", "MS", "WHY"]
    passed = {row[0] for row in rows if row[2] == "passed"}
    assert passed == {"dns", "api", "network", "services", "payload", "clock"}
    assert "kube-system/kube-dns skipped" in " ".join(" ".join(row) for row in rows)
    assert fake.asked[0][1]["authorization"] == "Bearer a-token"


@pytest.mark.parametrize(
    ("status", "verdict", "reason"),
    [
        (404, "failed", "returned HTTP 404 to GET /api"),
        (401, "not judged", "rejects the credentials (401)"),
    ],
)
def test_a_failure_is_exit_code_1_with_a_reason(
    fake: FakeApi, tmp_path: Path, status: int, verdict: str, reason: str
) -> None:
    fake.answers["/api"] = http(status=status)
    out = io.StringIO()
    assert table.check(SETTINGS, a_kubeconfig(fake, tmp_path), out) == 1
    (row,) = [line for line in out.getvalue().splitlines() if line.startswith("api ")]
    assert verdict in row
    assert f"the API server {reason}" in row


def test_checks_that_need_a_cluster_are_skipped_without_one() -> None:
    out = io.StringIO()
    assert table.check(SETTINGS, None, out) == 0
    rows = out.getvalue().splitlines()[1:]
    assert [row.split()[2] for row in rows if row.startswith("dns")] == ["passed"]
    skipped = [row for row in rows if "no ServiceAccount and no kubeconfig was found" in row]
    assert {row.split()[0] for row in skipped} == {"api", "network", "services", "payload", "clock"}


def test_an_unknown_cluster_domain_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(host: str) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, f"{host} is unknown")

    out = io.StringIO()
    monkeypatch.setattr(transport, "addresses_of", unknown)
    assert table.check(Settings()._replace(check_timeout_seconds=5), None, out) == ExitCode.NOT_PROVED
    assert "this machine's resolver is not the cluster's" in out.getvalue()


def test_json_is_the_workers_report(fake: FakeApi, tmp_path: Path) -> None:
    out = io.StringIO()
    table.check(SETTINGS, a_kubeconfig(fake, tmp_path), out, output="json")
    found = json.loads(out.getvalue())
    assert found["v"] == 2
    assert {check["name"] for check in found["checks"]} == {"dns", "api", "network", "services", "payload", "clock"}


def test_colors_are_for_terminals_only(fake: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    plain, coloured = io.StringIO(), Terminal()
    for out in (plain, coloured):
        table.check(SETTINGS, a_kubeconfig(fake, tmp_path), out)
    assert "\033[" not in plain.getvalue()
    assert "\033[32mpassed" in coloured.getvalue()
    for name, value in (("TERM", "dumb"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
        plain = Terminal()
        table.check(SETTINGS, a_kubeconfig(fake, tmp_path), plain)
        assert "\033[" not in plain.getvalue()
        monkeypatch.setenv("TERM", "xterm")


def a_plugin(script: str, **further: object) -> dict[str, object]:
    return {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", script], **further}


def test_a_credential_plugin_provides_the_token(fake: FakeApi, tmp_path: Path) -> None:
    answer = '{"status": {"token": "\'$WHOSE-$(echo $KUBERNETES_EXEC_INFO | grep -c ExecCredential)\'"}}'
    plugin = a_plugin(f"echo '{answer}'", env=[{"name": "WHOSE", "value": "plugins"}])
    assert table.check(SETTINGS, a_kubeconfig(fake, tmp_path, exec=plugin), io.StringIO()) == 0
    assert fake.asked[0][1]["authorization"] == "Bearer plugins-1"


@pytest.mark.parametrize(
    ("user", "complaint"),
    [
        ({"exec": {"command": "no-such-plugin"}}, "exec.apiVersion: '' is invalid"),
        ({"exec": a_plugin("echo please log in >&2; exit 3")}, "exec plugin 'sh' exited with code 3"),
        ({"exec": a_plugin("echo 0")}, "printed no status"),
        ({"auth-provider": {"name": "gcp"}}, "auth-provider is not supported, as in kubectl since 1.26"),
    ],
)
def test_a_kubeconfig_that_gives_no_credentials_is_named_with_the_reason(
    fake: FakeApi, tmp_path: Path, user: dict[str, object], complaint: str
) -> None:
    with pytest.raises(NoAccessError, match=complaint):
        table.check(SETTINGS, a_kubeconfig(fake, tmp_path, **user), io.StringIO())


def test_a_dry_run_lists_the_checks_and_sends_nothing(fake: FakeApi, tmp_path: Path) -> None:
    out = io.StringIO()
    assert table.check(SETTINGS, a_kubeconfig(fake, tmp_path), out, dry_run=True) == 0
    rows = [line.split() for line in out.getvalue().splitlines()[1:]]
    assert {row[0] for row in rows[:-1]} == {"dns", "api", "network", "services", "payload", "clock"}
    assert {row[2] for row in rows[:-1]} == {"skipped"}
    assert rows[-1][-3:] == ["nothing", "was", "checked"]
    assert not fake.asked


@pytest.mark.parametrize("output", ["table", "json"])
def test_a_run_with_only_skipped_checks_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], output: str
) -> None:
    every = plan.as_skipped(plan.on_this_machine(SETTINGS, None, "a reason"))
    monkeypatch.setattr(plan, "on_this_machine", lambda *_: every)
    assert table.check(SETTINGS, None, io.StringIO(), output=output) == ExitCode.NOT_PROVED
    assert capsys.readouterr().err == "kube-node-ready check: nothing was checked: all checks were skipped\n"


def test_json_lists_skipped_checks() -> None:
    out = io.StringIO()
    table.check(SETTINGS, None, out, output="json")
    skipped = {check["name"]: check.get("skipped", False) for check in json.loads(out.getvalue())["checks"]}
    assert skipped == {"dns": False, "api": True, "network": True, "services": True, "payload": True, "clock": True}


@pytest.fixture(params=["click", "the standard library"])
def by_words(request: pytest.FixtureRequest) -> ByWords:
    """`check` as it runs where click is installed, and as it runs in the image."""
    if request.param == "click":
        return lambda words: console.run("kube-node-ready", ["check", *words])
    return lambda words: table.run(check_flags.parse(words))


def test_the_command_reads_settings_from_a_file(
    by_words: ByWords, fake: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("dnsTestDomains: [localhost]\npayload: false\n")
    config = a_kubeconfig(fake, tmp_path)
    assert by_words(["--kubeconfig", str(config), "--config", str(settings)]) == 0
    assert "payload" not in capsys.readouterr().out


def test_invalid_settings_and_unusable_kubeconfigs_have_their_exit_codes(
    by_words: ByWords, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("dnsTestDomain: [localhost]\n")
    assert by_words(["--config", str(settings)]) == 2
    assert "did you mean dnsTestDomains?" in capsys.readouterr().err
    assert by_words(["--kubeconfig", str(tmp_path / "missing")]) == 3
    assert f"cannot read {tmp_path}/missing: No such file or directory" in capsys.readouterr().err


class Once(dict[str, bytes]):
    """Answers that are given once."""

    def __getitem__(self, path: str) -> bytes:
        return self.pop(path)


class TestKubeconfig:
    def test_a_client_certificate_is_presented(self, tmp_path: Path) -> None:
        authority = pki.Authority(tmp_path / "pki")
        pair = authority.sign("client", "someone")
        path = pki.kubeconfig(tmp_path / "kubeconfig", "https://127.0.0.1:6443", authority.certificate, pair)
        found = kubeconfig.load(path)
        assert (found.host, found.port, found.token) == ("127.0.0.1", 6443, "")
        assert found.context.verify_mode is ssl.CERT_REQUIRED

    def test_a_certificate_without_its_key_is_rejected(self, tmp_path: Path) -> None:
        authority = pki.Authority(tmp_path / "pki")
        pair, other = authority.sign("client", "someone"), authority.sign("other", "someone")
        path = pki.kubeconfig(tmp_path / "kubeconfig", "https://127.0.0.1:6443", authority.certificate, pair)
        edit(path, "users", "user", {"client-certificate": str(pair.certificate), "client-key": str(other.key)})
        with pytest.raises(NoAccessError, match="client-certificate or client-key is invalid"):
            kubeconfig.load(path)

    def test_tls_verification_is_skipped_only_if_configured(self, fake: FakeApi, tmp_path: Path) -> None:
        path = a_kubeconfig(fake, tmp_path)
        server = f"https://127.0.0.1:{fake.port}/prefix/"
        edit(path, "clusters", "cluster", {"server": server, "insecure-skip-tls-verify": True})
        found = kubeconfig.load(path)
        assert found.path == "/prefix"
        found.connect(Deadline(5)).close()

    def test_files_are_found_beside_the_kubeconfig(self, fake: FakeApi, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("its-content\n")
        found = kubeconfig.load(a_kubeconfig(fake, tmp_path, tokenFile="file"))
        assert found.token.startswith("its-content")
        assert found.token.strip() == found.token

    def test_a_rejected_token_is_renewed(self, fake: FakeApi, tmp_path: Path) -> None:
        script = f"""echo x >> {tmp_path}/runs; echo '{{"status": {{"token": "'$(wc -l < {tmp_path}/runs)'"}}}}'"""
        found = kubeconfig.load(a_kubeconfig(fake, tmp_path, exec=a_plugin(script)))
        fake.answers = Once({"/api": http(status=401)})
        with found.open(Deadline(5)) as conversation:
            assert conversation.get("/api", Deadline(5)).status == 200
        shown = [headers["authorization"] for _, headers in fake.asked]
        assert shown == ["Bearer 1", "Bearer 2"]

    @pytest.mark.parametrize("scheme", ["http", "socks5"])
    def test_a_proxy_is_the_only_way(self, fake: FakeApi, tmp_path: Path, scheme: str) -> None:
        path = a_kubeconfig(fake, tmp_path)
        content = yaml.safe_load(path.read_text())
        with forward_proxy(scheme) as through:
            content["clusters"][0]["cluster"]["proxy-url"] = through.url
            path.write_text(yaml.safe_dump(content))
            out = io.StringIO()
            assert table.check(SETTINGS, path, out) == 0
            assert set(through.targets) == {f"127.0.0.1:{fake.port}"}
        (row,) = [line for line in out.getvalue().splitlines() if line.startswith("network ") and "127.0.0.1" in line]
        assert row.endswith(f"the kubeconfig connects through the proxy {scheme}://127.0.0.1:{through.port}")
        asked = len(fake.asked)
        assert table.check(SETTINGS, path, io.StringIO()) == 1, "the proxy is gone"
        assert len(fake.asked) == asked

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("a: [", "not valid YAML"),
            ("a: " + "[" * 3000, "nested too deeply"),
            ("# " + "a" * 2**22, "expected at most 4194304"),
            ("[]", "not a valid kubeconfig: a list; expected a mapping"),
            ("current-context: x", 'context "x" is not defined'),
            ("{current-context: x, contexts: [{name: x, context: {cluster: y}}]}", 'cluster "y" is not defined'),
        ],
    )
    def test_what_is_missing_is_named(self, tmp_path: Path, text: str, words: str) -> None:
        path = tmp_path / "kubeconfig"
        path.write_text(text)
        with pytest.raises(NoAccessError, match=words):
            kubeconfig.load(path)

    def test_data_that_is_not_base64_is_rejected(self, fake: FakeApi, tmp_path: Path) -> None:
        path = a_kubeconfig(fake, tmp_path)
        for data in ("!!", base64.b64encode(b"\xff\xfe").decode()):
            edit(path, "clusters", "cluster", {"server": "https://a:1", "certificate-authority-data": data})
            with pytest.raises(NoAccessError, match="certificate-authority-data is invalid; expected PEM in base64"):
                kubeconfig.load(path)

    def test_a_server_without_tls_is_rejected(self, fake: FakeApi, tmp_path: Path) -> None:
        path = a_kubeconfig(fake, tmp_path)
        edit(path, "users", "user", {})
        edit(path, "clusters", "cluster", {"server": "http://localhost:8001"})
        with pytest.raises(NoAccessError, match="server: 'http://localhost:8001' is invalid; expected an https:// URL"):
            kubeconfig.load(path)

    @pytest.mark.parametrize(
        "server", ["https://me:secret@a:1", "https://a b:1", "https://a:1/?b", "https://a\r\nb", "https://a:1/#b"]
    )
    def test_a_server_that_cannot_be_addressed_is_rejected(self, fake: FakeApi, tmp_path: Path, server: str) -> None:
        path = a_kubeconfig(fake, tmp_path)
        edit(path, "clusters", "cluster", {"server": server})
        with pytest.raises(NoAccessError, match=r"server: .* is invalid; expected a URL such as https://") as refused:
            kubeconfig.load(path)
        assert "secret" not in str(refused.value)
        assert "\n" not in str(refused.value)

    @pytest.mark.parametrize("token", ["secret\r\nX: y", "secret\n", "secrét"])
    def test_a_token_that_cannot_be_sent_is_rejected_and_not_shown(
        self, fake: FakeApi, tmp_path: Path, token: str
    ) -> None:
        path = a_kubeconfig(fake, tmp_path)
        edit(path, "users", "user", {"token": token})
        with pytest.raises(
            NoAccessError, match="token: a value that is not shown is invalid; expected visible ASCII"
        ) as refused:
            kubeconfig.load(path)
        assert "secr" not in str(refused.value)


def test_columns_align_whatever_the_width_of_characters() -> None:
    results = [Result("dns", target, Verdict.PASSED, 1, "x") for target in ("日本語.example", "e\u0301.example")]
    head, *rows = table.lines(results, color=False)
    assert {words.columns(row[: row.index("passed")]) for row in rows} == {head.index("RESULT")}


def test_no_text_of_a_server_controls_the_terminal() -> None:
    result = Result("api", ESCAPES, Verdict.FAILED, 1, ESCAPES)
    assert all(line.isprintable() for line in table.lines([result], color=False))


def test_no_text_of_a_server_controls_the_terminal_as_json(fake: FakeApi, tmp_path: Path) -> None:
    """JSON need not escape U+009B, which begins a control sequence, nor U+202E, which reverses text."""
    message = json.dumps({"message": "PWNED\x9b31m\u202e\U000e0041"}, ensure_ascii=False).encode()
    fake.answers["/api"] = http(message, status=403)
    out = io.StringIO()
    assert table.check(SETTINGS, a_kubeconfig(fake, tmp_path), out, output="json") == 1
    text = out.getvalue()
    assert text.rstrip("\n").isprintable()
    assert any("PWNED\x9b31m\u202e\U000e0041" in check.get("error", "") for check in json.loads(text)["checks"])


def test_no_text_of_a_kubeconfig_controls_the_terminal(
    by_words: ByWords, fake: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": ESCAPES.replace("\x9b", "")}
    file = a_kubeconfig(fake, tmp_path, exec=plugin)
    assert by_words([f"--kubeconfig={file}"]) == 3
    error = capsys.readouterr().err
    assert "PWNED" in error
    assert error.rstrip("\n").isprintable()


@pytest.mark.parametrize("redirection", [">&-", ">/dev/full", "| true"])
@pytest.mark.parametrize("words", ["check --dry-run", "check --help", "--version"])
def test_no_stream_ends_in_a_traceback(words: str, redirection: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = ["bash", "-c", f"{PROGRAM} {words} {redirection}"]
    done = subprocess.run(command, capture_output=True, check=False, env=environment, text=True)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
