"""Reading kubeconfigs: merging, contexts, in-cluster, and files that are broken or hostile."""

import base64
import os
import ssl
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubekit import connection, kubeconfig
from kubekit.credentials import ExecPlugin, Identity, Static, TokenFile
from kubekit.kubeconfig import KubeconfigError, MissingError
from kubekit.proxy import Proxy
from lab import pki

Json = dict[str, Any]
EXEC = "client.authentication.k8s.io"


def a_config(
    user: Json | None = None, /, *, server: object = "https://192.0.2.1:6443/prefix/", **cluster: object
) -> Json:
    return {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "one", "user": "me", "namespace": "mine"}}],
        "clusters": [{"name": "one", "cluster": {"server": server} | cluster}],
        "users": [{"name": "me", "user": user or {}}],
    }


def written(folder: Path, content: object, name: str = "kubeconfig") -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return file


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> pki.Authority:
    return pki.Authority(tmp_path_factory.mktemp("pki"))


def data(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


class TestConnection:
    def test_server_and_namespace_come_from_the_current_context(self, tmp_path: Path) -> None:
        found = connection.load(written(tmp_path, a_config({"token": "secret"})))
        assert (found.server, found.namespace) == ("https://192.0.2.1:6443/prefix", "mine")
        assert (found.host, found.port, found.path) == ("192.0.2.1", 6443, "/prefix")
        assert found.credentials.get() == Identity("Bearer secret")

    @pytest.mark.parametrize(
        ("server", "host", "port"),
        [("https://[fd00::1]", "fd00::1", 443), ("HTTPS://api.example:8443/", "api.example", 8443)],
    )
    def test_a_server_can_be_a_name_or_an_ipv6_address(self, tmp_path: Path, server: str, host: str, port: int) -> None:
        found = connection.load(written(tmp_path, a_config(server=server)))
        assert (found.host, found.port, found.is_encrypted) == (host, port, True)

    def test_a_context_can_be_chosen(self, tmp_path: Path) -> None:
        content = a_config()
        content["contexts"].append({"name": "there", "context": {"cluster": "one", "namespace": "theirs"}})
        assert connection.load(written(tmp_path, content), "there").namespace == "theirs"
        with pytest.raises(KubeconfigError, match='context "nowhere" is not defined; expected "here", "there"'):
            connection.load(written(tmp_path, content), "nowhere")

    def test_the_namespace_is_default_unless_set(self, tmp_path: Path) -> None:
        content = a_config()
        del content["contexts"][0]["context"]["namespace"]
        assert connection.load(written(tmp_path, content)).namespace == "default"

    def test_tls_settings_are_read(self, tmp_path: Path, authority: pki.Authority) -> None:
        inline = data(authority.certificate)
        content = a_config(**{"certificate-authority-data": inline, "tls-server-name": "kubernetes"})
        found = connection.load(written(tmp_path, content))
        assert found.tls_server_name == "kubernetes"
        context = found.tls_context("")
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert len(context.get_ca_certs()) == 1, "the system's authorities are not trusted"

    def test_tls_verification_is_skipped_only_if_configured(self, tmp_path: Path) -> None:
        found = connection.load(written(tmp_path, a_config(**{"insecure-skip-tls-verify": True})))
        assert found.insecure
        assert found.tls_context("").verify_mode is ssl.CERT_NONE

    @pytest.mark.parametrize("inline", [True, False])
    def test_a_client_certificate_is_loaded(self, tmp_path: Path, authority: pki.Authority, *, inline: bool) -> None:
        pair = authority.sign("client", "someone")
        paths = {"client-certificate": pair.certificate, "client-key": pair.key}
        user = {f"{key}-data": data(path) for key, path in paths.items()}
        if not inline:
            for key, path in paths.items():
                (tmp_path / key).write_bytes(path.read_bytes())
            user = {key: key for key in paths}  # relative to the kubeconfig
        found = connection.load(written(tmp_path, a_config(user)))
        found.tls_context(found.certificate)
        assert found.credentials.get().certificate == found.certificate

    def test_a_comment_of_a_plugins_certificate_can_have_any_character(
        self, tmp_path: Path, authority: pki.Authority
    ) -> None:
        pair = authority.sign("client", "someone")
        certificate = f"friendlyName: J\u00fcrgen \ud800\n{pair.certificate.read_text()}\n{pair.key.read_text()}"
        connection.load(written(tmp_path, a_config())).tls_context(certificate)

    def test_a_key_of_another_certificate_is_rejected(self, tmp_path: Path, authority: pki.Authority) -> None:
        pair, other = authority.sign("client", "someone"), authority.sign("other", "someone")
        file = written(tmp_path, a_config({"client-certificate": str(pair.certificate), "client-key": str(other.key)}))
        found = connection.load(file)
        with pytest.raises(KubeconfigError, match=f"{file}: client-certificate or client-key is invalid") as refused:
            found.tls_context(found.certificate)
        assert "\n" not in str(refused.value)

    @pytest.mark.parametrize(
        ("url", "proxy"),
        [
            ("http://127.0.0.1:3128", Proxy("http", "127.0.0.1", 3128)),
            ("http://me:p%40ss@proxy.example/", Proxy("http", "proxy.example", 80, "me", "p@ss")),
            ("socks5://[::1]", Proxy("socks5", "::1", 1080)),
        ],
    )
    def test_a_proxy_is_read(self, tmp_path: Path, url: str, proxy: Proxy) -> None:
        assert connection.load(written(tmp_path, a_config(**{"proxy-url": url}))).proxy == proxy


class TestCredentials:
    @pytest.mark.parametrize(
        ("user", "header"),
        [
            ({"token": "fixed"}, "Bearer fixed"),
            ({"username": "a", "password": "b"}, "Basic YTpi"),
            ({"token": "fixed", "tokenFile": "missing"}, "Bearer fixed"),
            ({"token": "fixed", "exec": {"apiVersion": f"{EXEC}/v1", "command": "false"}}, "Bearer fixed"),
            ({}, ""),
        ],
    )
    def test_static_credentials(self, tmp_path: Path, user: Json, header: str) -> None:
        found = connection.load(written(tmp_path, a_config(user)))
        assert isinstance(found.credentials.source, Static)
        assert found.credentials.get().authorization == header

    def test_a_token_file_is_preferred_to_a_token(self, tmp_path: Path) -> None:
        (tmp_path / "token").write_text("from-a-file\n")
        found = connection.load(written(tmp_path, a_config({"token": "fixed", "tokenFile": "token"})))
        assert isinstance(found.credentials.source, TokenFile)
        assert found.credentials.get().authorization == "Bearer from-a-file"

    def test_a_plugin_is_read(self, tmp_path: Path) -> None:
        plugin = {
            "apiVersion": f"{EXEC}/v1beta1",
            "command": "./bin/login",
            "args": ["get", "token"],
            "env": [{"name": "A", "value": "b"}],
            "interactiveMode": "Never",
            "installHint": "install it",
            "provideClusterInfo": True,
        }
        extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": 7}}
        cluster = {"tls-server-name": "kubernetes", "extensions": [extension]}
        found = connection.load(written(tmp_path, a_config({"exec": plugin}, server="https://a:1", **cluster)))
        source = found.credentials.source
        assert isinstance(source, ExecPlugin)
        assert os.path.normpath(source.command) == str(tmp_path / "bin" / "login")
        assert (source.args, source.environ, source.interactive_mode) == (["get", "token"], {"A": "b"}, "Never")
        assert source.cluster == {"server": "https://a:1", "tls-server-name": "kubernetes", "config": {"audience": 7}}

    def test_a_program_without_a_slash_is_found_in_path(self, tmp_path: Path) -> None:
        plugin = {"apiVersion": f"{EXEC}/v1", "command": "login"}
        source = connection.load(written(tmp_path, a_config({"exec": plugin}))).credentials.source
        assert isinstance(source, ExecPlugin)
        assert (source.command, source.cluster, source.interactive_mode) == ("login", None, "IfAvailable")


NOT_ONE = {"exec": {"apiVersion": "x", "command": "secret"}}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("a: [", r"not a valid kubeconfig: not valid YAML in line \d"),
        ("\ta: b", r"not a valid kubeconfig: not valid YAML in line 1"),
        ("", "not a valid kubeconfig: nothing; expected a mapping"),
        ("[]", "not a valid kubeconfig: a list; expected a mapping"),
        ("just secret words", "not a valid kubeconfig: text; expected a mapping"),
        ("a: " + "[" * 3000, "not a valid kubeconfig: it is nested too deeply"),
        ("a: " + "{a: " * 3000, "not a valid kubeconfig: it is nested too deeply"),
        ("a: 1\na: 2", "line 2: 'a' is a duplicate key"),
        ("{[a]: 1}", "has a key that is not text"),
        ("a: \0", "not a valid kubeconfig: not valid YAML"),
        ({}, "current-context is not set; expected one of the contexts: none"),
        ("a: 2026-13-01", "current-context is not set"),
        (a_config() | {"current-context": 7}, "current-context: a number is invalid; expected text"),
        (a_config() | {"current-context": "there"}, 'context "there" is not defined; expected "here"'),
        (a_config() | {"current-context": None}, 'current-context is not set; expected one of the contexts: "here"'),
        (a_config() | {"clusters": []}, 'cluster "one" is not defined; expected none'),
        (a_config() | {"users": []}, 'user "me" is not defined; expected none'),
        (a_config() | {"users": {"a": 1}}, "users: a mapping is invalid; expected a list"),
        (a_config() | {"users": [{}]}, r"users\[0\] is not valid; expected a mapping with a name and a user"),
        (a_config() | {"users": [{"name": "a"}, {"name": "a"}]}, r'users\[1\].name: "a" is a duplicate'),
        (a_config() | {"users": [{"name": "me", "user": ["secret"]}]}, "user: a list is invalid; expected a mapping"),
        (a_config(server=7), "server: a number is invalid; expected text"),
        (a_config(server=""), "server: '' is invalid; expected a URL"),
        (a_config(**{"certificate-authority": "ca.crt"}), r"certificate-authority: cannot read '.*ca\.crt': No such"),
        (a_config(**{"certificate-authority": "/dev/null"}), "certificate-authority: '/dev/null' is invalid"),
        (a_config(**{"certificate-authority-data": "!!"}), "certificate-authority-data is invalid; expected PEM"),
        (a_config(**{"certificate-authority-data": "//4="}), "certificate-authority-data is invalid; expected PEM"),
        (a_config(**{"insecure-skip-tls-verify": "yes please"}), "insecure-skip-tls-verify: text is invalid"),
        (a_config(**{"insecure-skip-tls-verify": True, "certificate-authority-data": "YQ=="}), "expected only one of"),
        (a_config(**{"tls-server-name": "a b\r\n"}), r"tls-server-name: 'a b\\r\\n' is invalid"),
        (a_config({"client-certificate": "/no.crt"}), r"client-certificate: cannot read '/no.crt': No such file"),
        (a_config({"client-certificate-data": "YQ=="}), "client-certificate is set without client-key"),
        (a_config({"client-key-data": "YQ=="}), "client-key is set without client-certificate"),
        (a_config({"auth-provider": {"name": "gcp"}}), "auth-provider is not supported"),
        (a_config({"as": "admin"}), "as: impersonation is not supported"),
        (a_config({"token": "secret", "username": "secret"}), "username is invalid beside a token"),
        (a_config({"token": "secret\r\nX: y"}), "token: a value that is not shown is invalid"),
        (a_config({"token": "secret\n"}), "token: a value that is not shown is invalid"),
        (a_config({"token": "secrét"}), "token: a value that is not shown is invalid"),
        (a_config({"token": 5}), "token: a number is invalid; expected text, in quotes"),
        (a_config({"username": "\ud83d", "password": "secret"}), "username or password is invalid|not valid YAML"),
        (a_config(NOT_ONE), "exec.apiVersion: 'x' is invalid; expected client.authentication.k8s.io/v1 or"),
        (a_config({"exec": {"apiVersion": f"{EXEC}/v1"}}), "exec.command: '' is invalid"),
        (a_config({"exec": {"apiVersion": f"{EXEC}/v1", "command": "a", "args": [1]}}), "exec.args is invalid"),
        (a_config({"exec": {"apiVersion": f"{EXEC}/v1", "command": "a", "env": [{}]}}), "exec.env: '' is invalid"),
        (
            a_config({"exec": {"apiVersion": f"{EXEC}/v1", "command": "a", "interactiveMode": "Maybe"}}),
            "exec.interactiveMode: 'Maybe' is invalid; expected Never, IfAvailable, Always",
        ),
        (a_config(server="https://me:secret@10.0.0.1:6443"), r"server: .*@10\.0\.0\.1:6443' is invalid"),
        (a_config({"token": "secret"}, server="http://10.0.0.1"), "would send the user's credentials unencrypted"),
        (a_config(NOT_ONE, server="HTTP://10.0.0.1"), "credentials unencrypted"),
        (a_config({"username": "me", "password": "secret"}, server="http://10.0.0.1"), "credentials unencrypted"),
        (a_config({"tokenFile": "/dev/null"}, server="http://10.0.0.1"), "credentials unencrypted"),
        (a_config({"client-key-data": "c2VjcmV0"}, server="http://10.0.0.1"), "credentials unencrypted"),
        (a_config(server="https://me:secret"), r"server: 'https://me\\u2026' is invalid"),
        (a_config(server="me:secret"), r"server: 'me\\u2026' is invalid"),
        (a_config(server="https://10.0.0.1/?token=secret"), r"server: 'https://10\.0\.0\.1/\\u2026' is invalid"),
        (a_config(server="https://10.0.0.1 :6443"), "server: .* is invalid"),
        (a_config(server="https://10.0.0.1:6443/a b"), "server: .* is invalid"),
        (a_config(server="https://10.0.0.1\n:6443"), "server: .* is invalid"),
        (a_config(server="https://10.0.0.1:6443/?a"), "server: .* is invalid"),
        (a_config(server="https://10.0.0.1:6443/#a"), "server: .* is invalid"),
        (a_config(server="https://10.0.0.1:0"), "server: .* is invalid"),
        (a_config(server="https://10.0.0.1:99999"), "server: .* is invalid"),
        (a_config(server="https://ä.example"), "server: .* is invalid"),
        (a_config(server="https://a..b:6443"), r"server: 'https://a\.\.b:6443' is invalid"),
        (a_config(server="https://.a:6443"), "server: .* is invalid"),
        (a_config(server=f"https://{'a' * 64}.example"), "server: .* is invalid"),
        (a_config(server="https://[:::::]:6443"), "server: .* is invalid"),
        (a_config(server="https://" + "a." * 127 + "a"), "server: .* is invalid"),
        (a_config(**{"tls-server-name": "a..b"}), r"tls-server-name: 'a\.\.b' is invalid"),
        (a_config(**{"tls-server-name": ".a"}), r"tls-server-name: '\.a' is invalid"),
        (a_config(**{"tls-server-name": "a" * 64}), "tls-server-name: 'a*' is invalid"),
        (a_config(**{"tls-server-name": "1:2"}), "tls-server-name: '1:2' is invalid"),
        (a_config(**{"proxy-url": "http://a..b:1"}), r"proxy-url: 'http://a\.\.b:1' is invalid"),
        (a_config(**{"proxy-url": "https://10.0.0.1:3128"}), "proxy-url: 'https://10.0.0.1:3128' is not supported"),
        (a_config(**{"proxy-url": "socks4://10.0.0.1:3128"}), "proxy-url: 'socks4://10.0.0.1:3128' is not supported"),
        (a_config(**{"proxy-url": "10.0.0.1:3128"}), "proxy-url: '10.0.0.1:3128' is .*; expected http://HOST:PORT or"),
        (a_config(**{"proxy-url": "ftp://me:secret@a"}), "proxy-url: .*@a' is not supported"),
        (a_config(**{"proxy-url": "http://me:secret"}), r"proxy-url: 'http://me\\u2026' is invalid"),
        (a_config(**{"proxy-url": "http://me:123secret"}), r"proxy-url: 'http://me\\u2026' is invalid"),
        (a_config(**{"proxy-url": "http://a\r\nb"}), r"proxy-url: 'http://a\\r\\nb' is invalid"),
    ],
)
def test_a_broken_kubeconfig_is_rejected_in_one_line_that_names_it(
    tmp_path: Path, content: object, complaint: str
) -> None:
    file = written(tmp_path, content)
    with pytest.raises(KubeconfigError, match=complaint) as refused:
        connection.load(file)
    assert str(refused.value).startswith(f"{file}: ")
    assert str(refused.value).isprintable()
    assert "secr" not in str(refused.value)


def test_a_large_file_is_not_parsed(tmp_path: Path) -> None:
    file = written(tmp_path, "# " + "a" * 2**22)
    with pytest.raises(KubeconfigError, match="expected at most 4194304"):
        connection.load(file)


def test_aliases_and_merge_keys_work_and_are_bounded(tmp_path: Path) -> None:
    content = """
current-context: a
shared: &shared {server: "https://a:1", insecure-skip-tls-verify: true}
contexts: [{name: a, context: {cluster: a}}]
clusters: [{name: a, cluster: {<<: *shared, server: "https://b:1"}}]
"""
    found = connection.load(written(tmp_path, content))
    assert (found.server, found.insecure) == ("https://b:1", True)
    levels = [f"k{at}: &k{at} {{<<: [{', '.join([f'*k{at - 1}'] * 9)}]}}" for at in range(1, 20)]
    bomb = "k0: &k0 {" + ", ".join(f"a{at}: b" for at in range(1000)) + "}\n" + "\n".join(levels)
    with pytest.raises(KubeconfigError, match="too many merge keys"):
        connection.load(written(tmp_path, bomb))
    with pytest.raises(KubeconfigError, match="current-context is not set"):
        connection.load(written(tmp_path, "a: &a [*a]"))


def test_merged_lists_count_like_merged_mappings(tmp_path: Path) -> None:
    """Otherwise, 170 KB stand for a list of 500 million items."""
    small = "a: &a [" + "0," * 5_000 + "0]\nb: {" + "<<: *a," * 100 + "}\n"
    with pytest.raises(KubeconfigError, match="too many merge keys"):
        connection.load(written(tmp_path, small))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("line_end", ["\n", "\r"])
@pytest.mark.parametrize("before", ["", "a: b\n...\n"])
def test_directives_are_bounded(tmp_path: Path, encoding: str, line_end: str, before: str) -> None:
    """Each is compared by libyaml with all earlier ones: a quarter of a million take more than a minute."""
    directives = "".join(f"%TAG !a{at}! x{line_end}" for at in range(100))
    file = tmp_path / "kubeconfig"
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    file.write_bytes(f"{mark}{before}{directives}---\na: b\n".encode(encoding))
    with pytest.raises(KubeconfigError, match="it has too many directives"):
        connection.load(file)


def test_percent_signs_are_not_directives(tmp_path: Path) -> None:
    assert connection.load(written(tmp_path, a_config() | {"note": "% " * 1000})).namespace == "mine"


def test_a_name_of_a_file_cannot_control_the_terminal(tmp_path: Path) -> None:
    file = written(tmp_path, "[]", "a\x1b[2J\nb")
    with pytest.raises(KubeconfigError) as refused:
        connection.load(file)
    assert str(refused.value).isprintable()


class TestMerging:
    """The rules are kubectl's: tests/cluster/test_kubeconfig.py compares the two."""

    def test_the_first_definition_of_an_entry_takes_precedence_whole(self, tmp_path: Path) -> None:
        """Files that do not exist, and empty items, are skipped. A path is relative to the file that names it."""
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "token").write_text("first")
        users = written(tmp_path / "a", {"users": a_config({"tokenFile": "token"})["users"]})
        whole = written(tmp_path, a_config({"token": "second"}))
        found = connection.load(f":{tmp_path}/none::{users}:{whole}:")
        assert (found.server, found.namespace) == ("https://192.0.2.1:6443/prefix", "mine")
        assert found.credentials.get().authorization == "Bearer first"

    def test_the_first_current_context_takes_precedence(self, tmp_path: Path) -> None:
        first = written(tmp_path, {"contexts": [], "current-context": ""}, "first")
        second = written(tmp_path, a_config(), "second")
        third = written(tmp_path, {"current-context": "there"}, "third")
        assert kubeconfig.read(f"{first}:{second}:{third}").current_context == "here"

    @pytest.mark.parametrize("content", ["a: [", "just words", "users: [{}]"])
    def test_the_broken_file_is_named(self, tmp_path: Path, content: str) -> None:
        broken, whole = written(tmp_path, content, "broken"), written(tmp_path, a_config())
        with pytest.raises(KubeconfigError, match=f"^{broken}: "):
            connection.load(f"{whole}:{broken}")

    def test_a_folder_is_not_a_kubeconfig(self, tmp_path: Path) -> None:
        with pytest.raises(KubeconfigError, match=f"cannot read {tmp_path}: Is a directory"):
            connection.load(tmp_path)

    @pytest.mark.parametrize("named", ["/nowhere/a:/nowhere/b", ":", "/nowhere"])
    def test_if_none_exists_all_are_named(self, named: str) -> None:
        with pytest.raises(MissingError, match=f"cannot read {named}: No such file or directory"):
            connection.load(named)

    def test_a_path_can_contain_the_separator(self, tmp_path: Path) -> None:
        assert connection.load(written(tmp_path, a_config(), "a:b")).namespace == "mine"


class TestOrder:
    @pytest.fixture
    def folder(self, tmp_path: Path, authority: pki.Authority) -> str:
        folder = tmp_path / "serviceaccount"
        folder.mkdir()
        (folder / "token").write_text("pods-token\n")
        (folder / "ca.crt").write_bytes(authority.certificate.read_bytes())
        (folder / "namespace").write_text("pods")
        return str(folder)

    @pytest.fixture(autouse=True)
    def home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        return tmp_path / "home"

    IN_POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}  # noqa: RUF012

    def server(self, folder: str, environ: dict[str, str], explicit: Path | None = None) -> str:
        return connection.load(explicit, environ=environ, folder=folder).server

    def test_explicit_then_variable_then_pod_then_home(self, tmp_path: Path, folder: str, home: Path) -> None:
        explicit = written(tmp_path, a_config(server="https://explicit"), "explicit")
        variable = {"KUBECONFIG": str(written(tmp_path, a_config(server="https://variable"), "variable"))}
        home.mkdir()
        written(home / ".kube", a_config(server="https://home"), "config")
        assert self.server(folder, self.IN_POD | variable, explicit) == "https://explicit"
        assert self.server(folder, self.IN_POD | variable) == "https://variable"
        assert self.server(folder, self.IN_POD) == "https://10.96.0.1:443"
        assert self.server(folder, {}) == "https://home"
        assert self.server(folder, {"KUBECONFIG": ""}) == "https://home"
        Path(folder, "token").unlink()
        assert self.server(folder, self.IN_POD) == "https://home", "as kubectl does without a token"

    def test_a_variable_without_a_file_falls_back_to_the_pods_account_only(self, folder: str, home: Path) -> None:
        home.mkdir()
        written(home / ".kube", a_config(server="https://home"), "config")
        missing = {"KUBECONFIG": "/nowhere/a:/nowhere/b"}
        assert self.server(folder, self.IN_POD | missing) == "https://10.96.0.1:443"
        with pytest.raises(MissingError):
            self.server(folder, missing)

    @pytest.mark.parametrize("host", ["fd00::1", "[fd00::1]"])
    def test_a_pod_uses_its_account(self, folder: str, host: str) -> None:
        environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "6443"}
        found = connection.load(environ=environ, folder=folder)
        assert (found.server, found.host, found.port) == ("https://[fd00::1]:6443", "fd00::1", 6443)
        assert found.namespace == "pods"
        assert found.credentials.get().authorization == "Bearer pods-token"
        assert len(found.tls_context("").get_ca_certs()) == 1

    @pytest.mark.parametrize(
        ("name", "value"), [("HOST", "a b"), ("HOST", "a\r\nX: y"), ("HOST", "user@host"), ("PORT", "4" * 5000)]
    )
    def test_a_service_that_cannot_be_addressed_is_rejected(self, folder: str, name: str, value: str) -> None:
        with pytest.raises(KubeconfigError, match="KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT: ") as refused:
            connection.load(environ=self.IN_POD | {f"KUBERNETES_SERVICE_{name}": value}, folder=folder)
        assert len(str(refused.value)) < 300

    def test_what_is_missing_is_named(self, tmp_path: Path, folder: str) -> None:
        with pytest.raises(MissingError, match=r"no kubeconfig: .* ~/\.kube/config does not exist"):
            connection.load(environ={}, folder=folder)
        with pytest.raises(KubeconfigError, match="token does not exist; the pod needs a ServiceAccount"):
            connection.load(environ=self.IN_POD, folder=str(tmp_path))
        Path(folder, "ca.crt").write_text("no certificate")
        with pytest.raises(KubeconfigError, match="certificate-authority is invalid"):
            connection.load(environ=self.IN_POD, folder=folder).tls_context("")
