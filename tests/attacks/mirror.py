"""A registry mirror as clusters have it: admission rewrites the images of pods."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import lab
from lab import images, waiting
from tests.support.builders import a_pod

MIRROR = "mirror.example/"
PATIENCE = 120
_API = "admissionregistration.k8s.io/v1"


@contextmanager
def a_mirror(plane: lab.Plane, namespace: str) -> Iterator[None]:
    """Every pod of the namespace gets its image from another registry. Kubernetes 1.36 serves this by default."""
    path = "/spec/containers/0/image"
    value = f"'{MIRROR}' + object.spec.containers[0].image"
    patch = f'[JSONPatch{{op: "replace", path: "{path}", value: {value}}}]'
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    policy = {
        "apiVersion": _API,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": namespace},
        "spec": {
            "matchConstraints": {"resourceRules": [rule], "namespaceSelector": here},
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
        },
    }
    binding = {
        "apiVersion": _API,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": namespace},
        "spec": {"policyName": namespace},
    }
    plane.kubectl("apply", "--filename=-", standard_input=f"{json.dumps(policy)}\n---\n{json.dumps(binding)}")
    try:
        waiting.until("images are rewritten", lambda: _is_rewritten(plane, namespace), PATIENCE)
        yield
    finally:
        for kind in ("mutatingadmissionpolicybinding", "mutatingadmissionpolicy"):
            plane.kubectl("delete", kind, namespace)


def _is_rewritten(plane: lab.Plane, namespace: str) -> bool:
    made = plane.client.create(a_pod("any", namespace), dry_run=True)
    assert made.spec
    return made.spec.containers[0].image == f"{MIRROR}{images.TOOLBOX}"
