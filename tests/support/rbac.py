"""Compare granted and used permissions of a ServiceAccount."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

import lab
from kube_node_ready.agent.api import Api
from tests.support.chart_release import Release, api_of, apply, make_namespace

EVERYWHERE = "*"
PLACES = ("default", "kube-system")
"""Where a release has rights, besides its own namespace."""
EARLIER_LIFE = {"own pods get": "a worker's name is taken: by an earlier life of the controller, or by an edited pod"}
"""A right that a run need not use, and why it is granted."""
_NOBODY = {"name": "nobody", "namespace": "nobody-has-rights-here"}
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
_FORBIDDEN = 403


class Right(NamedTuple):
    """One verb on one kind of object: in one namespace or everywhere, of one name or any."""

    place: str
    resource: str
    """With subresource and group: `nodes/status`, `leases.coordination.k8s.io`."""
    name: str
    verb: str

    def __str__(self) -> str:
        return " ".join(filter(None, self))

    def covers(self, use: "Right") -> bool:
        is_there = self.place in (EVERYWHERE, use.place) and self.name in ("", use.name)
        return is_there and (self.resource, self.verb) == (use.resource, use.verb)


class UsedRights(NamedTuple):
    done: frozenset[Right]
    refused: frozenset[Right]


def fit(release: Release, account: str = "", spare: Mapping[str, str] | None = None) -> None:
    """Nothing was refused, and everything granted was used, but for what is spare for a reason."""
    account = account or release.account
    seen = used_rights(release, account)
    assert not seen.refused
    assert seen.done, "it did nothing at all"
    held = granted(release, account, {release.namespace, *PLACES})
    unused = [right for right in held if not any(right.covers(use) for use in seen.done)]
    assert {_shown(right, release) for right in unused} == set(spare or {})


def _shown(right: Right, release: Release) -> str:
    return str(right).replace(release.made.workload["metadata"]["name"], "ours").replace(release.namespace, "own")


def granted(release: Release, account: str, namespaces: Iterable[str]) -> set[Right]:
    """Return what this account is allowed to do beyond what every account is, according to the API server."""
    elsewhere, asking = _NOBODY["namespace"], release.api(account)
    usual = _rules(_nobody(release.plane), elsewhere)
    everywhere = _rules(asking, elsewhere) - usual
    found = {Right(EVERYWHERE, *rule) for rule in everywhere}
    for namespace in namespaces:
        found |= {Right(namespace, *rule) for rule in _rules(asking, namespace) - everywhere - usual}
    return found


def used_rights(release: Release, account: str) -> UsedRights:
    """By the audit log."""
    user = release.user(account)
    events = [event for event in release.plane.audit._events(0) if event["user"]["username"] == user]
    asked = [(_use(event), event.get("responseStatus", {}).get("code")) for event in events]
    done = frozenset(use for use, code in asked if code != _FORBIDDEN)
    return UsedRights(done, frozenset(use for use, code in asked if code == _FORBIDDEN))


def _use(event: dict[str, Any]) -> Right:
    asked = event.get("objectRef", {"resource": event["requestURI"]})
    resource = "/".join(filter(None, [asked["resource"], asked.get("subresource")]))
    kind = _with_group(resource, asked.get("apiGroup", ""))
    return Right(asked.get("namespace", ""), kind, asked.get("name", ""), event["verb"])


def _rules(asking: Api, namespace: str) -> set[tuple[str, str, str]]:
    """Resource, name and verb of everything that is allowed in this namespace."""
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": namespace}}
    answer = msgspec.json.decode(asking.create(_REVIEWS, msgspec.json.encode(body)))
    return {
        (_with_group(resource, group), name, verb)
        for rule in answer["status"]["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames") or [""]
        for verb in rule["verbs"]
    }


def _with_group(resource: str, group: str) -> str:
    return f"{resource}.{group}" if group else resource


def _nobody(plane: lab.Plane) -> Api:
    """An account that no role knows."""
    make_namespace(plane, _NOBODY["namespace"])
    apply(plane, [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _NOBODY}])
    return api_of(plane.kubeconfig(f"{_NOBODY['namespace']}/{_NOBODY['name']}"))
