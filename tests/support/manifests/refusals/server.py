"""The response of an API server to each case."""

import re
from typing import Final

from tests.support.manifests.builders import full
from tests.support.manifests.refusals.case import Refusal


def words(case: Refusal) -> str:
    """Return the API server's name of the field, or another part of its message."""
    first, *rest = re.sub(r"\[[^\]]*\]", "", full(case.path)).rpartition(".")[2].split("_")
    return _SAYS.get(case.what) or first + "".join(word.capitalize() for word in rest)


_NO_NAMESPACE: Final = "Namespace parameter required"

_NO_NAME: Final = "does not allow this method"

_TOO_LONG: Final = "may not be more than 262144 bytes"

_NO_AMOUNT: Final = "quantities must match"

_SAYS: Final = {
    "no metadata": _NO_NAME,
    "no spec": _NO_NAMESPACE,
    "no name": _NO_NAME,
    "a long name": "must be no more than 63",
    "a pod label that is the component's own": "does not match template",
    "a pod label that is none": "spec.template.labels",
    "a pod annotation that is none": "spec.template.annotations",
    "an account's annotation that is none": "metadata.annotations",
    "no namespace": _NO_NAMESPACE,
    "an empty namespace": _NO_NAMESPACE,
    "a namespace with capitals": 'namespaces "Logs" not found',
    "a namespace that is elsewhere": _NO_NAMESPACE,
    "a reference to nothing": _NO_NAMESPACE,
    "a ConfigMap without a name": _NO_NAME,
    "a ConfigMap with capitals": "metadata.name",
    "a ConfigMap of more than a megabyte": "may not be more than 1048576 bytes",
    "secrets of more than a megabyte": "may not be more than 1048576 bytes",
    "annotations of more than 256 KiB": _TOO_LONG,
    "annotations of an account of more than 256 KiB together": _TOO_LONG,
    "annotations of pods that leave no room for a checksum": _TOO_LONG,
    "another pull policy": "imagePullPolicy",
    "another protocol": "protocol",
    "a variable with an equals sign": "env[3].name",
    "a field of another API": "unsupported pod version: v2",
    "another unit": "divisor",
    "a key that cannot be a file": "path",
    "a size in words": _NO_AMOUNT,
    "port 0 by HTTP": "httpGet.port",
    "a port by a long name": "httpGet.port",
    "a header with a space": "httpHeaders",
    "a connection to port 65536": "tcpSocket.port",
    "a connection to a name": "tcpSocket.port",
    "a sleep beyond the end": "preStop.sleep",
    "a sleep beyond an early end": "postStart.sleep",
    "lots of CPU": _NO_AMOUNT,
    "memory of 10GB": _NO_AMOUNT,
    "memory of 1gi": _NO_AMOUNT,
    "memory of 1.5 GiB": _NO_AMOUNT,
    "memory of 512mb": _NO_AMOUNT,
    "memory of 10K": "unable to parse quantity's suffix",
    "memory of 10XB": _NO_AMOUNT,
    "a disk above the limit": "must be less than or equal to ephemeral-storage limit",
    "a resource without a domain": "must be a standard resource type or fully qualified",
    "a resource called as a quota is": "doesn't follow extended resource name standard",
    "a resource of too long a domain": "doesn't follow extended resource name standard",
    "a device by request": "Limit must be set for non overcommitable resources",
    "more devices than requested": "must be equal to example.com/gpu limit",
    "more devices requested than allowed": "must be equal to example.com/gpu limit",
    "half a device": "must be an integer",
    "huge pages alone": "HugePages require cpu or memory",
    "huge pages by request": "Limit must be set for non overcommitable resources",
    "rights for nobody": "subjects[0].name",
    "rights to nothing": "must supply at least one resource",
    "rights in no group": "must supply at least one api group",
    "a rule of verbs alone": "must supply at least one",
    "paths of a namespace": "namespaced rules cannot apply to non-resource URLs",
    "a sidecar's pull policy": "imagePullPolicy",
    "a sidecar's amounts": _NO_AMOUNT,
    "a namespace of pods that is none": "[0].namespace:",
}
"""Cases in which the message does not contain our name of the field."""

STRICTER: Final = {
    what: why
    for why, cases in {
        "nothing of it is ever sent": [
            "another API",
            "no API",
            "a relationship to nothing",
            "a cluster that is none",
        ],
        "what was written would be lost": [
            "a file of no key of a ConfigMap",
            "a file of no key of a Secret",
            "annotations for no account",
        ],
        "one of two things that were written would be lost": [
            "a label that is the component's own",
            "a variable that is secret as well",
            "two sources",
            "two volumes of one name",
            "paths and resources in one rule",
            "a variable of two sources",
            "OnDelete that rolls",
        ],
        "something else than what was written would be done": [
            "another strategy",
            "an old end",
            "a probe all the time",
            "a probe without time",
            "no success at all",
            "no failure at all",
            "no tag",
            "an image that ends in a colon",
        ],
        "an empty text would be sent in its place": [
            "a variable that is elsewhere",
            "a secret that is elsewhere",
            "an amount of nothing",
            "a pull secret without a name",
        ],
        "a Secret of that name in the pod's own namespace would be read": [
            "a Secret of another namespace",
            "a variable from a Secret of another namespace",
            "a sidecar's variable from a Secret of another namespace",
        ],
        "no object can have such a name": [
            "a pull secret with capitals",
            "a login with capitals",
            "a ConfigMap's name with capitals",
            "a Secret's name with spaces",
            "a claim with capitals",
        ],
        "no image can have such a name": [
            "no repo",
            "a repo with spaces",
            "a repo with capitals",
            "a repo with capitals at a registry",
            "a repo with a scheme",
            "a repo that begins with a hyphen",
            "a repo with three underscores",
            "a repo with two slashes",
            "a repo that ends in a slash",
            "a repo with a tag",
            "a repo with a digest",
            "a repo of a port in words",
            "a repo of 256 letters",
            "a tag that is none",
            "a tag with a colon",
            "a tag that begins with a hyphen",
            "a tag of 129 letters",
            "half a digest",
            "an image of a tag alone",
            "an image of three colons",
            "an image of two digests",
            "a sidecar's image: spaces",
            "a sidecar's image: spaces and colons",
            "a sidecar's image: capitals",
            "a sidecar's image: a scheme",
            "a sidecar's image: a hyphen",
            "a sidecar's image: a tag alone",
            "a sidecar's image: a digest alone",
            "a sidecar's image: an empty tag",
            "a sidecar's image: half a digest",
        ],
        "the original asks for it as well": ["a port without a name"],
        "the container could never start": [
            "a relative mount",
            "a mount with a colon",
            "a relative host path",
            "another medium",
            "a limit of no container",
            "a sidecar's limit of no container",
            "a port of the node taken by an init container that stays",
            "a port of the node's network taken by a sidecar",
        ],
        "it does nothing": ["a sleep of no time"],
        "an API server knows the capability by its other name": ["SYS_ADMIN without escalation"],
        "a sidecar is restarted whatever is written": [
            "a sidecar that starts before",
            "a sidecar that is not restarted",
        ],
        "no node could ever match": ["Gt of a word", "no preference", "a value that is liked and cannot be"],
    }.items()
    for what in cases
}
"""Manifests that an API server accepts, and why validation rejects them."""
