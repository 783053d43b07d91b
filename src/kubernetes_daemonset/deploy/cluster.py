# ruff: noqa: N818  these are the answers of a server, and `except Missing` reads as what it means
"""A cluster, as far as the component needs one: read, apply, list and delete objects of the kinds that it makes.

Objects stay the plain data that the renderer made; nothing is decoded into types and encoded again.
"""

import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote

import httpx2
from lightkube.config.client_adapter import Client, ConnectionParams, ExecAuth
from lightkube.config.kubeconfig import KubeConfig, SingleConfig
from lightkube.config.models import User
from lightkube.core.exceptions import ConfigError

from kubernetes_daemonset.backends.kubeconfig import load
from kubernetes_daemonset.backends.login import Login, LoginError
from kubernetes_daemonset.changes import Ref
from kubernetes_daemonset.dump import ascii_yaml
from kubernetes_daemonset.names import MANAGED_BY
from kubernetes_daemonset.objects import Json

_TIMEOUT: Final = httpx2.Timeout(30)  # seconds: an API server answers these requests in one, or is in trouble
_IN_TROUBLE: Final = {429, 500, 502, 503, 504}  # answers that a server may take back by itself
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_HTTPS_ALONE: Final = "HTTP request to an HTTPS server"  # how a server in Go says so
_CREDENTIALS: Final = User.__struct_fields__  # a user has nothing else
_PAGE: Final = 500  # objects a list request: what kubectl asks for

# Every kind that the renderer makes: the path of its API, its plural, and whether it lives in a namespace.
KINDS: Final = {
    "Namespace": ("api/v1", "namespaces", False),
    "ServiceAccount": ("api/v1", "serviceaccounts", True),
    "ConfigMap": ("api/v1", "configmaps", True),
    "Secret": ("api/v1", "secrets", True),
    "ClusterRole": ("apis/rbac.authorization.k8s.io/v1", "clusterroles", False),
    "ClusterRoleBinding": ("apis/rbac.authorization.k8s.io/v1", "clusterrolebindings", False),
    "Role": ("apis/rbac.authorization.k8s.io/v1", "roles", True),
    "RoleBinding": ("apis/rbac.authorization.k8s.io/v1", "rolebindings", True),
    "DaemonSet": ("apis/apps/v1", "daemonsets", True),
    # What it only reads.
    "Pod": ("api/v1", "pods", True),
    "Event": ("api/v1", "events", True),
}


class ClusterError(Exception):
    """The cluster could not be reached, or refused."""


class Unreachable(ClusterError):
    """No answer, none of use, or no way to log in."""


class Conflict(ClusterError):
    """Another manager owns fields that we would change."""

    def __init__(self, text: str, fields: Sequence[str]) -> None:
        super().__init__(text)
        self.fields = fields


class Forbidden(ClusterError):
    """The caller's rights do not suffice."""


class NamespaceEnding(Forbidden):
    """Nothing can be made in the namespace, which is being deleted."""


class Invalid(ClusterError):
    """Fields of the object are wrong, wherever it is put."""


class Missing(ClusterError):
    """The object, or what it needs, is not there."""


class NamespaceMissing(Missing):
    """The namespace that the object should be in."""


def path(ref: Ref) -> str:
    return f"{collection(ref.kind, ref.namespace)}/{_segment(ref.name, f'{ref.kind}: name')}"


def collection(kind: str, namespace: str = "") -> str:
    api, plural, namespaced = KINDS[kind]
    if not namespaced or not namespace:
        return f"/{api}/{plural}"
    return f"/{api}/namespaces/{_segment(namespace, f'{kind}: namespace')}/{plural}"


def _segment(name: str, what: str) -> str:
    """The rule of Kubernetes for names of all kinds. Quoting alone would let `..` mean another path."""
    if name in ("", ".", "..") or "/" in name or "%" in name:
        raise ClusterError(f"{what} {name!r} is invalid; expected one segment of a path")
    return quote(name, safe="")


class Cluster:
    """Requests, and what their answers mean."""

    def __init__(self, http: httpx2.Client) -> None:
        self._http = http

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def get(self, ref: Ref) -> Json | None:
        """The object; None if it is not there."""
        with suppress(Missing):
            return self._send("GET", path(ref), str(ref))
        return None

    def apply(self, body: Json, *, force: bool = False, dry_run: bool = False) -> Json:
        """Server-side apply: our fields become what we say, everyone else's stay."""
        ref = Ref.of(body)
        parameters = {"fieldManager": MANAGED_BY, "force": str(force).lower()} | ({"dryRun": "All"} if dry_run else {})
        headers = {"Content-Type": "application/apply-patch+yaml"}
        return self._send("PATCH", path(ref), str(ref), params=parameters, headers=headers, content=ascii_yaml(body))

    def delete(self, ref: Ref, uid: str, *, foreground: bool = False) -> None:
        """Deletes this very object; one that is gone, or another of the same name, is left alone."""
        options: Json = {"preconditions": {"uid": uid}} | ({"propagationPolicy": "Foreground"} if foreground else {})
        with suppress(Missing, Conflict):
            self._send("DELETE", path(ref), str(ref), json=options)

    def may(self, verb: str, ref: Ref) -> bool:
        """Whether the caller has this right, in a namespace that need not be there yet."""
        api, plural, _ = KINDS[ref.kind]
        group = api.split("/")[1] if api.startswith("apis/") else ""
        about = {"verb": verb, "group": group, "resource": plural, "namespace": ref.namespace, "name": ref.name}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
        answer = self._send("POST", _REVIEWS, str(ref), json=review | {"spec": {"resourceAttributes": about}})
        return bool(answer.get("status", {}).get("allowed"))

    def list(
        self, kind: str, namespace: str, labels: Mapping[str, str], fields: Mapping[str, str] | None = None
    ) -> Sequence[Json]:
        found: list[Json] = []
        what = f"{KINDS[kind][1]} in {namespace}" if namespace else KINDS[kind][1]
        parameters = {"labelSelector": _joined(labels), "fieldSelector": _joined(fields or {}), "limit": str(_PAGE)}
        while True:
            page = self._send("GET", collection(kind, namespace), what, params=parameters)
            found += page["items"]
            if not (token := page["metadata"].get("continue")):
                return found
            parameters = parameters | {"continue": token}

    def _send(self, method: str, where: str, what: str, **options: Any) -> Json:  # noqa: ANN401 - httpx2's own
        try:
            answer = self._http.request(method, where, **options)
        except httpx2.HTTPError as why:
            raise Unreachable(f"{self._http.base_url} does not answer: {str(why) or type(why).__name__}") from why
        except (LoginError, ConfigError, OSError, ValueError) as why:  # the last: a token that no header can carry
            raise Unreachable(f"cannot log in: {why}") from why
        return _understood(answer, what)


def _joined(wanted: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in wanted.items())


def connect(kubeconfig: Path | None, context: str | None) -> Cluster:
    """By that file and context; without a file as a pod's account, by KUBECONFIG, or by ~/.kube/config."""
    try:
        config, where = load(kubeconfig)
    except ConfigError as why:
        raise ClusterError(str(why)) from why
    try:
        return Cluster(_client(_chosen(config, context)))
    except ConfigError as why:
        raise ClusterError(f"{where}: {why}") from why
    except (ssl.SSLError, OSError) as why:
        raise ClusterError(f"{where}: cannot be used: {str(why).splitlines()[0]}") from why
    except (TypeError, AttributeError, KeyError, ValueError, AssertionError, httpx2.InvalidURL) as why:
        raise ClusterError(f"{where}: this is no kubeconfig: {why}") from why


def current_context(kubeconfig: Path | None) -> str | None:
    """What a connection without the name of a context uses; a pod's own account has none."""
    try:
        return load(kubeconfig)[0].current_context or None
    except ConfigError as why:
        raise ClusterError(str(why)) from why


def _client(config: SingleConfig) -> httpx2.Client:
    _check_encryption(config)
    client = Client(config, ConnectionParams(timeout=_TIMEOUT))
    if config.user and config.user.exec and isinstance(client.auth, ExecAuth):
        client.auth = Login(config.user.exec)
    return client


def _check_encryption(config: SingleConfig) -> None:
    """Without credentials, as with `kubectl proxy`, plain HTTP does no harm. client-go drops them silently."""
    server = config.cluster.server
    has_credentials = config.user is not None and any(getattr(config.user, field) for field in _CREDENTIALS)
    if has_credentials and not server.lower().startswith("https://"):
        expected = "an https:// URL, because http:// would send the user's credentials unencrypted"
        raise ConfigError(f"server: {server!a} is invalid; expected {expected}")


def _chosen(config: KubeConfig, context: str | None) -> SingleConfig:
    wanted = context or config.current_context
    if wanted and wanted not in config.contexts:
        raise ConfigError(f'there is no context "{wanted}"; it has {", ".join(sorted(config.contexts)) or "none"}')
    chosen = config.get(context)
    assert chosen is not None, "without a default, lightkube raises"
    return chosen


def _understood(answer: httpx2.Response, what: str) -> Json:
    body = _object(answer)
    if body is None:
        raise _no_answer_of_a_server(answer, what)
    if answer.is_success:
        return body
    text = f"{what}: {body.get('message', answer.status_code)}"
    details = body.get("details", {})
    causes = details.get("causes", [])
    match answer.status_code:
        case 403 if any(one.get("reason") == "NamespaceTerminating" for one in causes):
            raise NamespaceEnding(text)
        case 403 if body.get("reason") == "Forbidden":
            raise Forbidden(text)
        case 404 if details.get("kind") == "namespaces":
            raise NamespaceMissing(text)
        case 404:
            raise Missing(text)
        case 409:
            raise Conflict(text, [f"{one.get('field', '?')} ({one.get('message', '?')})" for one in causes])
        case 422 if any(one.get("field") for one in causes):  # a policy's refusal names none
            raise Invalid(text)
        case code if code in _IN_TROUBLE:
            raise Unreachable(text)
        case _:
            raise ClusterError(text)


def _no_answer_of_a_server(answer: httpx2.Response, what: str) -> ClusterError:
    if _HTTPS_ALONE in answer.text:
        address = answer.url.copy_with(path="/", query=None)
        return ClusterError(f"{address} speaks https; write https:// instead of http:// in the kubeconfig")
    text = f"{what}: the API server answered {answer.status_code} with something that is no object"
    return Unreachable(text) if answer.status_code in _IN_TROUBLE else ClusterError(text)


def _object(answer: httpx2.Response) -> Json | None:
    """None if it is none: whoever stands before a server that is away answers in HTML."""
    try:
        body = answer.json()
    except ValueError:
        return None
    return body if isinstance(body, dict) else None
