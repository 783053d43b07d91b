"""How the component finds its cluster and logs in: one or several kubeconfigs, and the programs that they name."""

import http.server
import json
import os
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubekit import credentials, proxy
from kubernetes_daemonset.deploy.api_client import Cluster, ClusterError, Unreachable
from kubernetes_daemonset.deploy.kubeconfig import connect
from kubernetes_daemonset.deploy.plan import Ref
from lab import pki
from tests.support.forward_proxies import forward_proxy

Json = dict[str, Any]

THING = Ref("Namespace", "thing")
API = "client.authentication.k8s.io"


class Server(http.server.ThreadingHTTPServer):
    """Returns the credentials that it received; rejects given tokens."""

    refused: frozenset[str] = frozenset()
    scheme = "https"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_port}"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        shown = self.headers.get("Authorization", "")
        body = json.dumps({"metadata": {}, "shown": shown}).encode()
        self.send_response(401 if shown in self.server.refused else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Not into a test's output."""


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    authority = pki.Authority(tmp_path_factory.mktemp("pki"))
    pair = authority.sign("server", "server", hosts=["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    return context


@pytest.fixture
def server(tls: ssl.SSLContext) -> Iterator[Server]:
    with Server(("127.0.0.1", 0), _Handler) as found:
        found.socket = tls.wrap_socket(found.socket, server_side=True)
        with _serving(found):
            yield found


@pytest.fixture
def plain_server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), _Handler) as found:
        found.scheme = "http"
        with _serving(found):
            yield found


@contextmanager
def _serving(found: Server) -> Iterator[None]:
    thread = threading.Thread(target=found.serve_forever, args=(0.01,))
    thread.start()
    yield
    found.shutdown()
    thread.join()


@pytest.fixture(autouse=True)
def nothing_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("KUBECONFIG", raising=False)


def a_config(server: str = "https://127.0.0.1:9", user: Json | None = None, name: str = "here") -> Json:
    return {
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": {"server": server, "insecure-skip-tls-verify": True}}],
        "users": [{"name": name, "user": {"token": name} if user is None else user}],
    }


def written(file: Path, content: Json | str) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return file


def shown(kubeconfig: Path | None = None, context: str | None = None) -> str:
    """What the server sees of its clients."""
    with connect(kubeconfig, context) as cluster:
        return _shown(cluster)


def _shown(cluster: Cluster) -> str:
    answer = cluster.get(THING)
    assert answer
    return str(answer["shown"])


def test_several_kubeconfigs_are_merged_and_the_first_value_takes_precedence(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that are not there, and entries that are empty, are passed over."""
    contexts = written(tmp_path / "contexts", {"contexts": a_config()["contexts"]})
    users = written(tmp_path / "users", a_config(server.url, {"token": "first"}) | {"clusters": [], "contexts": None})
    whole = written(tmp_path / "whole", a_config(server.url, {"token": "second"}) | {"current-context": "none"})
    other = written(tmp_path / "other", a_config(server.url, name="there"))
    listed = ["", tmp_path / "none", contexts, "", users, whole, other, ""]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, listed)))

    assert shown() == "Bearer first"
    assert shown(context="there") == "Bearer there"
    with pytest.raises(ClusterError, match='context "elsewhere" is not defined; expected "here", "there"'):
        connect(None, "elsewhere")
    assert shown(whole, "here") == "Bearer second", "--kubeconfig means that file alone"


def test_a_path_in_a_kubeconfig_is_relative_to_its_own_file(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "users").mkdir()
    (tmp_path / "users" / "token").write_text("from-a-file")
    users = written(tmp_path / "users" / "config", {"users": a_config(user={"tokenFile": "token"})["users"]})
    clusters = written(tmp_path / "clusters" / "config", a_config(server.url) | {"users": None})
    monkeypatch.setenv("KUBECONFIG", f"{clusters}:{users}")
    assert shown() == "Bearer from-a-file"


def test_an_empty_variable_is_unset(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    written(tmp_path / "home" / ".kube" / "config", a_config(server.url, {"token": "usual"}))
    monkeypatch.setenv("KUBECONFIG", "")
    assert shown() == "Bearer usual"


@pytest.mark.parametrize("content", ["a: [", "just words", "users: [{}]", "users: [{name: a, user: []}]"])
def test_of_several_kubeconfigs_the_broken_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    first, second = written(tmp_path / "first", a_config()), written(tmp_path / "second", content)
    monkeypatch.setenv("KUBECONFIG", f"{first}:{second}")
    with pytest.raises(ClusterError, match=f"^{second}: "):
        connect(None, None)


@pytest.mark.parametrize("value", ["/nowhere/a:/nowhere/b", ":"])
def test_missing_files_are_reported(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("KUBECONFIG", value)
    with pytest.raises(ClusterError, match=f"^cannot read {value}: No such file or directory$"):
        connect(None, None)


def a_program(script: str, version: str = "v1", **more: object) -> Json:
    return {"exec": {"apiVersion": f"{API}/{version}", "command": "sh", "args": ["-c", script], **more}}


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_login_plugin_receives_its_input_and_its_token_is_sent(server: Server, tmp_path: Path, version: str) -> None:
    script = """echo "$KUBERNETES_EXEC_INFO" > "$NOTES"; echo '{"status": {"token": "'$WHOSE'"}}'"""
    notes = tmp_path / "notes"
    environment = [{"name": "WHOSE", "value": "programs"}, {"name": "NOTES", "value": str(notes)}]
    config = written(tmp_path / "config", a_config(server.url, a_program(script, version, env=environment)))

    assert shown(config) == "Bearer programs"

    reported = json.loads(notes.read_text())
    assert (reported["kind"], reported["apiVersion"]) == ("ExecCredential", f"{API}/{version}")


def test_a_login_plugin_runs_again_after_a_rejected_token(server: Server, tmp_path: Path) -> None:
    script = """echo x >> "$NOTES"; echo '{"status": {"token": "'$(wc -l < "$NOTES" | tr -d ' ')'"}}'"""
    notes = tmp_path / "notes"
    program = a_program(script, env=[{"name": "NOTES", "value": str(notes)}])
    with connect(written(tmp_path / "config", a_config(server.url, program)), None) as cluster:
        assert [_shown(cluster), _shown(cluster)] == ["Bearer 1", "Bearer 1"]
        server.refused = frozenset({"Bearer 1"})
        assert _shown(cluster) == "Bearer 2"


@pytest.mark.parametrize(
    ("user", "complaint"),
    [
        (
            {"exec": {"apiVersion": f"{API}/v1", "command": "no-such-program"}},
            "cannot run exec plugin 'no-such-program': No such file",
        ),
        (
            {
                "exec": {
                    "apiVersion": f"{API}/v1",
                    "command": "no-such-program",
                    "installHint": "Get it at\nexample.com",
                }
            },
            "No such file or directory; Get it at example.com",
        ),
        ({"exec": {"apiVersion": f"{API}/v1", "command": "/etc"}}, "cannot run exec plugin '/etc': Permission denied"),
        (a_program("exit 3"), "exec plugin 'sh' exited with code 3"),
        (a_program("echo hello"), "printed no JSON"),
        (a_program("""echo '{"status": {"token": ""}}'"""), "printed neither a token nor a client certificate"),
        (a_program("""echo '{"status": {"clientCertificateData": "x"}}'"""), "printed only one of"),
        (a_program("""echo '{"status": {"clientCertificateData": "x", "clientKeyData": "y"}}'"""), "is invalid"),
        (a_program("exec sleep 60"), "did not exit within 0.2 s"),
        ({"tokenFile": "/nowhere/token"}, "cannot read token file '/nowhere/token': No such file"),
    ],
)
def test_a_failed_login_is_reported_in_one_line(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: Json, complaint: str
) -> None:
    if "0.2 s" in complaint:
        monkeypatch.setattr(credentials, "_PLUGIN_SECONDS", 0.2)
    with pytest.raises(Unreachable, match="cannot log in: ") as refused:
        shown(written(tmp_path / "config", a_config(server.url, user)))
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


def test_messages_of_a_login_plugin_are_shown(
    server: Server, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = """echo open https://example.com/device >&2; echo '{"status": {"token": "t"}}'"""
    assert shown(written(tmp_path / "config", a_config(server.url, a_program(script)))) == "Bearer t"
    assert capfd.readouterr().err == "open https://example.com/device\n"


@pytest.mark.parametrize(
    "user",
    [
        {"token": "secret"},
        {"tokenFile": "/dev/null"},
        {"username": "me", "password": "secret"},
        {"client-certificate-data": "c2VjcmV0", "client-key-data": "c2VjcmV0"},
        a_program("""echo '{"status": {"token": "secret"}}'"""),
    ],
    ids=lambda user: next(iter(user)),
)
def test_credentials_are_never_sent_unencrypted(plain_server: Server, tmp_path: Path, user: Json) -> None:
    file = written(tmp_path / "config", a_config(plain_server.url, user))
    expected = "is invalid; expected an https:// URL, because http:// would send the user's credentials unencrypted"
    with pytest.raises(ClusterError) as refused:
        shown(file)
    assert str(refused.value) == f"{file}: server: '{plain_server.url}' {expected}"


def test_a_proxy_without_credentials_can_be_plain(plain_server: Server, tmp_path: Path) -> None:
    assert shown(written(tmp_path / "config", a_config(plain_server.url, {}))) == ""


def test_a_missing_file_is_named_once(tmp_path: Path) -> None:
    with pytest.raises(ClusterError) as why:
        connect(tmp_path / "nope", None)
    assert str(why.value) == f"cannot read {tmp_path}/nope: No such file or directory"


def test_an_unknown_context_is_reported_with_the_file_and_the_available_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path / "config", a_config())
    monkeypatch.setenv("KUBECONFIG", str(file))
    with pytest.raises(ClusterError) as why:
        connect(None, "nope")
    assert str(why.value) == f'{file}: context "nope" is not defined; expected "here"'


@pytest.mark.parametrize(
    ("content", "output"),
    [
        ({"contexts": [{"name": [], "context": {}}]}, "name: a list is invalid; expected text"),
        ({"contexts": [{"name": "a", "context": {"bogus": 1}}], "current-context": "a"}, "cluster is not set"),
        (a_config() | {"current-context": "gone"}, 'context "gone" is not defined; expected "here"'),
    ],
)
def test_an_invalid_kubeconfig_is_named_once(tmp_path: Path, content: Json, output: str) -> None:
    file = written(tmp_path / "config", content)
    with pytest.raises(ClusterError) as why:
        connect(file, None)
    assert str(why.value).startswith(f"{file}: {output}")
    assert str(why.value).count(str(file)) == 1


def test_a_disabled_verification_is_one_warning(server: Server, tmp_path: Path) -> None:
    with connect(written(tmp_path / "config", a_config(server.url)), None) as cluster:
        (warning,) = cluster.warnings
    assert warning == f"warning: TLS verification disabled for {server.url}: insecure-skip-tls-verify is true"


@pytest.mark.parametrize("scheme", ["http", "socks5"])
def test_a_proxy_is_the_only_way(server: Server, tmp_path: Path, scheme: str) -> None:
    config = a_config(server.url)
    with forward_proxy(scheme, ("me", "secret")) as through:
        config["clusters"][0]["cluster"]["proxy-url"] = through.url
        file = written(tmp_path / "config", config)
        assert shown(file) == "Bearer here"
        assert through.targets == [f"127.0.0.1:{server.server_port}"]
    with pytest.raises(Unreachable, match=r"cannot connect to proxy .* Connection refused"):
        shown(file)


def test_a_proxy_that_rejects_us_is_named(server: Server, tmp_path: Path) -> None:
    config = a_config(server.url)
    with forward_proxy("http", ("me", "secret")) as through:
        config["clusters"][0]["cluster"]["proxy-url"] = f"http://127.0.0.1:{through.port}"
        with pytest.raises(Unreachable, match=f"proxy http://127.0.0.1:{through.port} did not connect.*HTTP 407"):
            shown(written(tmp_path / "config", config))


def test_a_proxy_of_the_environment_is_used(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, "_is_excepted", lambda *_: False)  # as if the server were elsewhere
    monkeypatch.delenv("NO_PROXY")
    monkeypatch.delenv("no_proxy", raising=False)
    with forward_proxy("http") as through:
        monkeypatch.setenv("HTTPS_PROXY", through.url)
        assert shown(written(tmp_path / "config", a_config(server.url))) == "Bearer here"
        assert through.targets
    monkeypatch.setenv("HTTPS_PROXY", "https://proxy")
    with pytest.raises(ClusterError, match="HTTPS_PROXY: 'https://proxy' is not supported"):
        connect(tmp_path / "config", None)
