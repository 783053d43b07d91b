"""The same kubeconfig with kubectl and with each of our clients: all connect, or none does."""

import asyncio
import base64
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

import lab
from kube_node_ready.kube.access import access
from kube_node_ready.kube.client import KubeClient
from kube_node_ready.kube.errors import KubeError
from kubernetes_daemonset.deploy.api_client import ClusterError
from kubernetes_daemonset.deploy.kubeconfig import connect
from kubernetes_daemonset.deploy.plan import Ref
from lab import pki
from tests.support.cli import PROGRAM
from tests.support.forward_proxies import Forwarder, forward_proxy

Json = dict[str, Any]
API = "client.authentication.k8s.io"
OTHER_ADDRESS = "127.0.0.2"  # which the API server's certificate does not have
STALE = "eyJhbGciOiJub25lIn0.e30."


class Site:
    """A folder for kubeconfigs, with credentials that the API server accepts."""

    def __init__(self, plane: lab.Plane, folder: Path, token: str, pair: pki.Pair, stack: ExitStack) -> None:
        self.plane, self.folder, self.token, self.pair, self.stack = plane, folder, token, pair, stack
        self.authority = inline(plane.authority.certificate)

    def config(self, user: Json, name: str = "config", /, **cluster: object) -> Path:
        trust = {} if "insecure-skip-tls-verify" in cluster else {"certificate-authority-data": self.authority}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "one", "user": "me"}}],
            "clusters": [{"name": "one", "cluster": {"server": self.plane.url} | trust | cluster}],
            "users": [{"name": "me", "user": user}],
        }
        return self.write(content, name)

    def write(self, content: Json, name: str) -> Path:
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(yaml.safe_dump(content))
        return file

    def plugin(self, status: Json, version: str, before: str = "") -> Json:
        """A program beside the kubeconfig, which names it by a relative path."""
        answer = {"apiVersion": f"{API}/{version}", "kind": "ExecCredential", "status": status}
        (self.folder / "answer.json").write_text(json.dumps(answer))
        file = self.folder / "plugin"
        file.write_text(f"#!/bin/sh\n{before}\ncat {self.folder}/answer.json\n")
        file.chmod(0o755)
        return {"exec": {"apiVersion": f"{API}/{version}", "command": "./plugin", "interactiveMode": "Never"}}

    def elsewhere(self) -> str:
        """The API server at another address."""
        forwarder = self.stack.enter_context(Forwarder(OTHER_ADDRESS, self.plane.url))
        return f"https://{OTHER_ADDRESS}:{forwarder.port}"

    def certificate(self) -> Json:
        return {"clientCertificateData": self.pair.certificate.read_text(), "clientKeyData": self.pair.key.read_text()}


def inline(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def token(site: Site) -> Path:
    return site.config({"token": site.token})


def token_file(site: Site) -> Path:
    (site.folder / "token").write_text(f"{site.token}\n")
    return site.config({"tokenFile": "token"})


def token_file_before_token(site: Site) -> Path:
    (site.folder / "token").write_text(site.token)
    return site.config({"tokenFile": "token", "token": STALE})


def inline_certificate(site: Site) -> Path:
    return site.config(
        {"client-certificate-data": inline(site.pair.certificate), "client-key-data": inline(site.pair.key)}
    )


def certificate_files(site: Site) -> Path:
    return site.config({"client-certificate": str(site.pair.certificate), "client-key": str(site.pair.key)})


def relative_files(site: Site) -> Path:
    for name, path in (("me.crt", site.pair.certificate), ("me.key", site.pair.key)):
        shutil.copy(path, site.folder / name)
    shutil.copy(site.plane.authority.certificate, site.folder / "ca.crt")
    user = {"client-certificate": "me.crt", "client-key": "./me.key"}
    content = yaml.safe_load(site.config(user).read_text())
    content["clusters"][0]["cluster"] = {"server": site.plane.url, "certificate-authority": "../site/ca.crt"}
    return site.write(content, "config")


def exec_token_v1(site: Site) -> Path:
    return site.config(site.plugin({"token": site.token}, "v1"))


def exec_token_v1beta1(site: Site) -> Path:
    return site.config(site.plugin({"token": site.token, "expirationTimestamp": "2099-01-01T00:00:00Z"}, "v1beta1"))


def exec_certificate_v1(site: Site) -> Path:
    return site.config(site.plugin(site.certificate(), "v1"))


def exec_certificate_v1beta1(site: Site) -> Path:
    return site.config(site.plugin(site.certificate(), "v1beta1"))


def exec_with_cluster_information(site: Site) -> Path:
    """The plugin fails unless it learns where the server is, and its own variable."""
    before = 'case "$KUBERNETES_EXEC_INFO" in *certificate-authority-data*"$MINE"*) ;; *) exit 1;; esac'
    user = site.plugin({"token": site.token}, "v1", before)
    user["exec"] |= {"provideClusterInfo": True, "env": [{"name": "MINE", "value": "an-audience"}]}
    extension = {"name": f"{API}/exec", "extension": {"audience": "an-audience"}}
    return site.config(user, extensions=[extension])


def exec_renewed(site: Site) -> Path:
    """The first credentials are worthless, and the plugin returns others when it runs again."""
    mark, stale = site.folder / "ran", site.folder / "stale.json"
    answer = {"apiVersion": f"{API}/v1", "kind": "ExecCredential", "status": {"token": STALE}}
    stale.write_text(json.dumps(answer))
    return site.config(
        site.plugin({"token": site.token}, "v1", f"if [ ! -e {mark} ]; then touch {mark}; exec cat {stale}; fi")
    )


def exec_certificate_renewed(site: Site) -> Path:
    """The same with a client certificate, which is part of the connection."""
    stranger = pki.Authority(site.folder / "stranger").sign("client", "someone", groups=["system:masters"])
    mark, stale = site.folder / "ran", site.folder / "stale.json"
    status = {"clientCertificateData": stranger.certificate.read_text(), "clientKeyData": stranger.key.read_text()}
    stale.write_text(json.dumps({"apiVersion": f"{API}/v1", "kind": "ExecCredential", "status": status}))
    return site.config(
        site.plugin(site.certificate(), "v1", f"if [ ! -e {mark} ]; then touch {mark}; exec cat {stale}; fi")
    )


def merged(site: Site) -> str:
    """Of each entry, the first definition counts. A path is relative to its own file, and one file does not exist."""
    (site.folder / "users").mkdir(exist_ok=True)
    (site.folder / "users" / "token").write_text(site.token)
    whole = site.config({"token": STALE}, "whole")
    content = yaml.safe_load(whole.read_text())
    users = site.write({"users": [{"name": "me", "user": {"tokenFile": "token"}}]}, "users/config")
    context = site.write({"current-context": "here", "contexts": content["contexts"]}, "context")
    other = site.write(content | {"current-context": "there", "contexts": []}, "other")
    return os.pathsep.join(map(str, ["", context, site.folder / "none", users, other]))


def tls_server_name(site: Site) -> Path:
    return site.config({"token": site.token}, server=site.elsewhere(), **{"tls-server-name": "kubernetes"})


def insecure(site: Site) -> Path:
    return site.config({"token": site.token}, server=site.elsewhere(), **{"insecure-skip-tls-verify": True})


def http_proxy(site: Site) -> Path:
    proxy = site.stack.enter_context(forward_proxy("http"))
    return site.config({"token": site.token}, **{"proxy-url": proxy.url})


def http_proxy_with_login(site: Site) -> Path:
    proxy = site.stack.enter_context(forward_proxy("http", ("me", "secret")))
    return site.config({"token": site.token}, **{"proxy-url": proxy.url})


def socks_proxy(site: Site) -> Path:
    proxy = site.stack.enter_context(forward_proxy("socks5"))
    return site.config({"token": site.token}, **{"proxy-url": proxy.url})


def proxy_and_tls_server_name(site: Site) -> Path:
    proxy = site.stack.enter_context(forward_proxy("socks5", ("me", "secret")))
    settings = {"proxy-url": proxy.url, "tls-server-name": "kubernetes"}
    return site.config(site.plugin(site.certificate(), "v1"), server=site.elsewhere(), **settings)


CONNECT = [
    token,
    token_file,
    token_file_before_token,
    inline_certificate,
    certificate_files,
    relative_files,
    exec_token_v1,
    exec_token_v1beta1,
    exec_certificate_v1,
    exec_certificate_v1beta1,
    exec_with_cluster_information,
    exec_renewed,
    exec_certificate_renewed,
    merged,
    tls_server_name,
    insecure,
    http_proxy,
    http_proxy_with_login,
    socks_proxy,
    proxy_and_tls_server_name,
]


def worthless_token(site: Site) -> Path:
    return site.config({"token": STALE})


def password(site: Site) -> Path:
    return site.config({"username": "me", "password": "secret"})


def missing_token_file(site: Site) -> Path:
    return site.config({"tokenFile": "missing"})


def foreign_certificate(site: Site) -> Path:
    pair = pki.Authority(site.folder / "stranger").sign("client", "someone", groups=["system:masters"])
    return site.config({"client-certificate": str(pair.certificate), "client-key": str(pair.key)})


def certificate_without_key(site: Site) -> Path:
    return site.config({"client-certificate-data": inline(site.pair.certificate)})


def exec_that_fails(site: Site) -> Path:
    return site.config(site.plugin({"token": site.token}, "v1", "exit 1"))


def exec_of_another_version(site: Site) -> Path:
    user = site.plugin({"token": site.token}, "v1")
    user["exec"]["apiVersion"] = f"{API}/v1beta1"
    return site.config(user)


def exec_that_needs_a_terminal(site: Site) -> Path:
    user = site.plugin({"token": site.token}, "v1")
    user["exec"]["interactiveMode"] = "Always"
    return site.config(user)


def auth_provider(site: Site) -> Path:
    return site.config({"auth-provider": {"name": "gcp"}})


def other_name(site: Site) -> Path:
    return site.config({"token": site.token}, server=site.elsewhere())


def insecure_with_authority(site: Site) -> Path:
    settings = {"insecure-skip-tls-verify": True, "certificate-authority-data": site.authority}
    return site.config({"token": site.token}, **settings)


def proxy_without_login(site: Site) -> Path:
    proxy = site.stack.enter_context(forward_proxy("http", ("me", "secret")))
    return site.config({"token": site.token}, **{"proxy-url": f"http://127.0.0.1:{proxy.port}"})


def proxy_that_is_gone(site: Site) -> Path:
    with forward_proxy("http") as proxy:
        return site.config({"token": site.token}, **{"proxy-url": proxy.url})


def unknown_proxy(site: Site) -> Path:
    return site.config({"token": site.token}, **{"proxy-url": "socks4://127.0.0.1:1"})


def no_such_context(site: Site) -> Path:
    content = yaml.safe_load(token(site).read_text())
    return site.write(content | {"current-context": "elsewhere"}, "config")


def duplicate_user(site: Site) -> Path:
    content = yaml.safe_load(token(site).read_text())
    return site.write(content | {"users": content["users"] * 2}, "config")


def number_as_token(site: Site) -> Path:
    return site.config({"token": 12345})


FAIL = [
    worthless_token,
    password,
    missing_token_file,
    foreign_certificate,
    certificate_without_key,
    exec_that_fails,
    exec_of_another_version,
    exec_that_needs_a_terminal,
    auth_provider,
    other_name,
    insecure_with_authority,
    proxy_without_login,
    proxy_that_is_gone,
    unknown_proxy,
    no_such_context,
    duplicate_user,
    number_as_token,
]


@pytest.fixture(scope="module")
def signed(plane: lab.Plane) -> pki.Pair:
    return plane.authority.sign("kubeconfig-test", "kubeconfig-test", groups=["system:masters"])


@pytest.fixture
def site(plane: lab.Plane, namespace: str, signed: pki.Pair, tmp_path: Path) -> Iterator[Site]:
    account = yaml.safe_load(plane.kubeconfig(f"{namespace}/default").read_text())["users"][0]["user"]["token"]
    binding = ["clusterrolebinding", namespace]
    plane.kubectl("create", *binding, "--clusterrole=view", f"--serviceaccount={namespace}:default")
    with ExitStack() as stack:
        yield Site(plane, tmp_path / "site", account, signed, stack)
    plane.kubectl("delete", *binding)


@pytest.mark.parametrize("case", [*CONNECT, *FAIL], ids=lambda case: case.__name__)
def test_a_kubeconfig_works_as_with_kubectl(
    site: Site, case: Callable[[Site], Path | str], monkeypatch: pytest.MonkeyPatch
) -> None:
    site.folder.mkdir()
    paths = str(case(site))
    monkeypatch.setenv("KUBECONFIG", paths)
    monkeypatch.setenv("HOME", str(site.folder))
    for variable in ("HTTPS_PROXY", "https_proxy", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(variable, raising=False)
    clients = {"kubectl": kubectl, "controller": controller, "worker": worker, "component": component}
    connected = {}
    for name, client in clients.items():
        (site.folder / "ran").unlink(missing_ok=True)
        connected[name] = client(site)
    assert connected == dict.fromkeys(clients, case in CONNECT)


def kubectl(site: Site) -> bool:
    command = [str(site.plane.programs.path("kubectl")), "get", "namespace", "default", "--request-timeout=10s"]
    done = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=60)
    print("kubectl:", done.stderr.decode())  # noqa: T201  for a test that fails
    return done.returncode == 0


async def asked() -> None:
    async with KubeClient(access()) as kube:
        await kube.get("/api/v1/namespaces/default")


def controller(_: Site) -> bool:
    try:
        asyncio.run(asked())
    except KubeError as error:
        return failed("controller", str(error))
    return True


def worker(_: Site) -> bool:
    command = [str(PROGRAM), "check", "--output=json"]
    done = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL, text=True, timeout=120)
    print("worker:", done.stdout, done.stderr)  # noqa: T201
    assert "Traceback" not in done.stderr
    if not done.stdout:
        return False
    checks = json.loads(done.stdout)["checks"]
    return all(check["ok"] and not check.get("skipped") for check in checks if check["name"] == "api")


def component(_: Site) -> bool:
    try:
        with connect(None, None) as cluster:
            return cluster.get(Ref("Namespace", "default")) is not None
    except ClusterError as error:
        return failed("component", str(error))


def failed(client: str, message: str) -> bool:
    print(f"{client}: {message}")  # noqa: T201
    assert message.isprintable(), "it is one line"
    return False


def test_no_client_bypasses_its_proxy(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them connects through the proxy, and to nothing else than the API server."""
    site.folder.mkdir()
    monkeypatch.setenv("HOME", str(site.folder))
    for scheme in ("http", "socks5"):
        for client in (kubectl, controller, worker, component):
            with forward_proxy(scheme) as proxy:
                monkeypatch.setenv("KUBECONFIG", str(site.config({"token": site.token}, **{"proxy-url": proxy.url})))
                assert client(site)
                assert set(proxy.targets) == {site.plane.url.removeprefix("https://")}


def test_a_proxy_that_is_gone_is_named(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.folder.mkdir()
    file = proxy_that_is_gone(site)
    url = yaml.safe_load(file.read_text())["clusters"][0]["cluster"]["proxy-url"]
    monkeypatch.setenv("KUBECONFIG", str(file))
    with pytest.raises(KubeError, match=f"cannot connect to proxy {url}: "):
        asyncio.run(asked())
    with pytest.raises(ClusterError, match=f"cannot connect to proxy {url}: "), connect(None, None) as cluster:
        cluster.get(Ref("Namespace", "default"))


def test_a_pod_with_a_kubeconfig_uses_it(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """KUBECONFIG precedes a pod's own account, in both products."""
    site.folder.mkdir()
    monkeypatch.setenv("HOME", str(site.folder))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "192.0.2.1")
    monkeypatch.setenv("KUBECONFIG", str(token(site)))
    assert controller(site)
    assert component(site)
