# ruff: noqa: N818 - named for the responses of a server, so that `except NotFound` is readable
"""Client for the Kubernetes API: read, apply, list and delete objects of the kinds that the component creates.

Objects stay plain data as rendered; nothing is decoded into types and encoded again.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, Self
from urllib.parse import quote

import httpx2

from kubekit.credentials import CredentialsError
from kubekit.diagnostics import truncate
from kubekit.kubeconfig import KubeconfigError
from kubernetes_daemonset.deploy import limits
from kubernetes_daemonset.deploy.plan import Ref
from kubernetes_daemonset.manifest.dump import ascii_yaml
from kubernetes_daemonset.render.naming import MANAGED_BY
from kubernetes_daemonset.types import Json

TIMEOUT: Final = httpx2.Timeout(30)  # seconds; a healthy API server answers these requests within one
_IN_TROUBLE: Final = {429, 500, 502, 503, 504}  # temporary failures
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_HTTPS_ALONE: Final = b"HTTP request to an HTTPS server"  # how a server in Go reports it
MAX_URL_LENGTH: Final = 200  # characters in a message
_LONGEST_MESSAGE: Final = 10_000  # of a server; one about an invalid object can have a line for each field
_PAGE: Final = 500  # objects a list request: what kubectl asks for

# Every kind that the renderer creates: the path of its API, its plural, and whether it is namespaced.
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
    # Read only.
    "Pod": ("api/v1", "pods", True),
    "Event": ("api/v1", "events", True),
}


class ClusterError(Exception):
    """The cluster is unreachable or rejected a request."""


class Unreachable(ClusterError):
    """There is no response, no usable response, or logging in fails."""


class Unreadable(ClusterError):
    """The answer is not a JSON object, is nested too deeply, or is too large, or a list takes too long."""


class Conflict(ClusterError):
    """Another manager owns fields that we would change."""

    def __init__(self, text: str, fields: Sequence[str]) -> None:
        super().__init__(text)
        self.fields = fields


class Forbidden(ClusterError):
    """The caller's permissions are not sufficient."""


class NamespaceTerminating(Forbidden):
    """Nothing can be created in the namespace, which is being deleted."""


class Invalid(ClusterError):
    """Fields of the object are invalid in any namespace."""


class NotFound(ClusterError):
    """The object, or one that it requires, does not exist."""


class NamespaceNotFound(NotFound):
    """The namespace of the object does not exist."""


def path(ref: Ref) -> str:
    return f"{collection(ref.kind, ref.namespace)}/{_segment(ref.name, f'{ref.kind}: name')}"


def collection(kind: str, namespace: str = "") -> str:
    api, plural, namespaced = KINDS[kind]
    if not namespaced or not namespace:
        return f"/{api}/{plural}"
    return f"/{api}/namespaces/{_segment(namespace, f'{kind}: namespace')}/{plural}"


def _segment(name: str, what: str) -> str:
    """Validate and quote a path segment by the rule for all names. Quoting alone would allow `..` as another path."""
    if name in ("", ".", "..") or "/" in name or "%" in name:
        raise ClusterError(f"{what} {name!r} is invalid; expected one segment of a path")
    return quote(name, safe="")


class Cluster:
    """Sends requests and interprets the responses."""

    def __init__(self, http: httpx2.Client, warnings: Sequence[str] = ()) -> None:
        self._http = http
        limits.prepare(http)
        self.warnings = warnings

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def get(self, ref: Ref) -> Json | None:
        """Return the object, or None if it does not exist."""
        with suppress(NotFound):
            return _with_metadata(self._send("GET", path(ref), str(ref)), str(ref))
        return None

    def apply(self, body: Json, *, force: bool = False, dry_run: bool = False) -> Json:
        """Apply an object on the server side: only the fields in it change, those of other managers stay."""
        ref = Ref.of(body)
        parameters = {"fieldManager": MANAGED_BY, "force": str(force).lower()} | ({"dryRun": "All"} if dry_run else {})
        headers = {"Content-Type": "application/apply-patch+yaml"}
        options = {"params": parameters, "headers": headers, "content": ascii_yaml(body)}
        return _with_metadata(self._send("PATCH", path(ref), str(ref), **options), str(ref))

    def delete(self, ref: Ref, uid: str, *, foreground: bool = False) -> None:
        """Delete the object with this UID. An object that is gone, or another one of the same name, is ignored."""
        options: Json = {"preconditions": {"uid": uid}} | ({"propagationPolicy": "Foreground"} if foreground else {})
        with suppress(NotFound, Conflict):
            self._send("DELETE", path(ref), str(ref), json=options)

    def can_i(self, verb: str, ref: Ref) -> bool:
        """Return whether the caller has this permission, in a namespace that need not exist yet."""
        api, plural, _ = KINDS[ref.kind]
        group = api.split("/")[1] if api.startswith("apis/") else ""
        about = {"verb": verb, "group": group, "resource": plural, "namespace": ref.namespace, "name": ref.name}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
        answer = self._send("POST", _REVIEWS, str(ref), json=review | {"spec": {"resourceAttributes": about}})
        return bool(_mapping(answer.get("status")).get("allowed"))

    def list(
        self,
        kind: str,
        namespace: str,
        labels: Mapping[str, str],
        fields: Mapping[str, str] | None = None,
        budget: limits.Budget | None = None,
    ) -> Iterator[Json]:
        """Yield the objects of a list, of which one page at a time is in memory. Raises Unreadable if it has no end.

        What an attacker can make large, such as pods, needs a caller that keeps only what it reads.
        """
        budget = budget or limits.Budget()
        what = f"{KINDS[kind][1]} in {namespace}" if namespace else KINDS[kind][1]
        parameters = {"labelSelector": _joined(labels), "fieldSelector": _joined(fields or {}), "limit": str(_PAGE)}
        for _ in range(limits.MAX_PAGES):
            with self._errors(what):
                answer = limits.page(self._http, collection(kind, namespace), budget, params=parameters)
            page = _with_metadata(_decoded(answer, what), what)
            del answer
            yield from (_with_metadata(item, what) for item in _list(page.get("items"), what))
            if not (token := page["metadata"].get("continue")):
                return
            del page  # before the next one is read
            parameters = parameters | {"continue": token}
        raise Unreadable(f"{what}: the list has more than {limits.MAX_PAGES} pages")

    def _send(self, method: str, where: str, what: str, **options: Any) -> Json:  # noqa: ANN401 - httpx2's own
        with self._errors(what):
            answer = limits.request(self._http, method, where, **options)
        return _decoded(answer, what)

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Raise what goes wrong with a request as a ClusterError."""
        try:
            yield
        except (limits.TooLargeError, limits.ListTooLateError) as error:
            raise Unreadable(f"{what}: {error}") from error
        except limits.TooLateError as error:
            raise Unreachable(f"{self._http.base_url}: {error}") from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            server, cause = _short(self._http.base_url), str(error) or type(error).__name__
            raise Unreachable(f"cannot connect to the Kubernetes API at {server}: {cause}") from error
        except (CredentialsError, KubeconfigError) as error:
            raise Unreachable(f"cannot log in: {error}") from error


def _joined(wanted: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in wanted.items())


def _short(url: object) -> str:
    return str(url)[:MAX_URL_LENGTH]


def _decoded(answer: httpx2.Response, what: str) -> Json:
    body = _object(answer)
    if body is None:
        raise _not_an_api_server(answer, what)
    if answer.is_success:
        return body
    text = f"{what}: {truncate(str(body.get('message', answer.status_code)), _LONGEST_MESSAGE)}"
    # A proxy can return any JSON, and Go writes null for what is empty.
    details = _mapping(body.get("details"))
    found = details.get("causes")
    causes = [cause for cause in found if isinstance(cause, dict)] if isinstance(found, list) else []
    match answer.status_code:
        case 403 if any(cause.get("reason") == "NamespaceTerminating" for cause in causes):
            raise NamespaceTerminating(text)
        case 403 if body.get("reason") == "Forbidden":
            raise Forbidden(text)
        case 404 if details.get("kind") == "namespaces":
            raise NamespaceNotFound(text)
        case 404:
            raise NotFound(text)
        case 409:
            raise Conflict(text, [f"{cause.get('field', '?')} ({cause.get('message', '?')})" for cause in causes])
        case 422 if any(cause.get("field") for cause in causes):  # rejections by policies name no field
            raise Invalid(text)
        case code if code in _IN_TROUBLE:
            raise Unreachable(text)
        case _:
            raise ClusterError(text)


def _mapping(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: object, what: str) -> Sequence[object]:
    if not isinstance(value, list):
        raise Unreadable(f"{what}: the API server returned a list without items")
    return value


def _with_metadata(value: object, what: str) -> Json:
    if not isinstance(value, dict) or not isinstance(value.get("metadata"), dict):
        raise Unreadable(f"{what}: the API server returned an object without metadata")
    return value


def _not_an_api_server(answer: httpx2.Response, what: str) -> ClusterError:
    # Not `answer.text`: its charset, which the server chooses, can be a codec that decompresses or fails.
    if _HTTPS_ALONE in answer.content:
        address = answer.url.copy_with(path="/", query=None)
        return ClusterError(f"{address} requires HTTPS; use https:// instead of http:// in the kubeconfig")
    text = f"{what}: the API server returned HTTP {answer.status_code} with a body that is not a JSON object"
    return Unreachable(text) if answer.status_code in _IN_TROUBLE else Unreadable(text)


def _object(answer: httpx2.Response) -> Json | None:
    """Return the body if it is a JSON object, else None: a proxy in front of an unavailable server returns HTML."""
    try:
        body = answer.json()
    except (ValueError, RecursionError):  # the latter is nested too deeply
        return None
    return body if isinstance(body, dict) else None
