"""The types of values that fields of the controller's configuration and of DaemonSet mode have."""

import re

from kube_node_ready.settings.engine import Entries
from kube_node_ready.settings.readers import YEAR_SECONDS, Boolean, Choice, Duration, Number, Pattern
from kubekit import names, quantities

# Kubernetes sets variables for the Services of a pod's namespace; one called "metrics" makes METRICS_PORT an address.
SERVICE_ADDRESS = re.compile(r"(tcp|udp|sctp)://.*")

BOOLEAN = Boolean()
DURATION = Duration()
PORT = Number(0, 65_535, whole=True)
COUNT = Number(0, 1_000_000, whole=True)
POSITIVE_COUNT = Number(1, 1_000_000, whole=True)
ATTEMPTS = Number(1, 1000, whole=True)
PERCENT = Number(0, 100)
SECONDS = Number(0, YEAR_SECONDS)
SECONDS_FROM_ONE = Number(1, YEAR_SECONDS)
POSITIVE_SECONDS = Number(0, YEAR_SECONDS, above=True)
WHOLE_SECONDS = Number(0, YEAR_SECONDS, whole=True)
DEADLINE = Number(10, 3600, whole=True)
RATE = Number(0, 1_000_000)
USER_ID = Number(0, 2**31 - 1, whole=True)

EFFECT = Choice("NoSchedule", "PreferNoSchedule", "NoExecute")
PULL_POLICY = Choice("IfNotPresent", "Always", "Never")


def _name(syntax: names.Syntax) -> Pattern:
    return Pattern(syntax.pattern, syntax.description)


LABEL = _name(names.LABEL)
SUBDOMAIN = _name(names.STRICT_SUBDOMAIN)
QUALIFIED_NAME = _name(names.STRICT_QUALIFIED_NAME)
LABEL_VALUE = _name(names.LABEL_VALUE)
QUANTITY = Pattern(quantities.UNSIGNED_PATTERN, "a quantity such as 50m, 0.5, 64Mi or 1Gi")
REPOSITORY = Pattern(
    r"([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?(:[0-9]{1,5})?/)?[a-z0-9]+((\.|_{1,2}|-+|/)[a-z0-9]+)*",
    "an image's name without tag or digest, such as registry.example/team/kube-node-ready",
    longest=255,
)
TAG = Pattern(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", "an image tag such as 1.2.3")
DIGEST = Pattern(r"sha256:[0-9a-f]{64}", "a digest: sha256: and 64 hexadecimal digits")
IMAGE = Pattern(r"[^\s\0]{1,512}", "an image such as registry.example/team/check:1.2.3")
CAPABILITY = Pattern(r"[A-Z][A-Z0-9_]{0,62}", "a capability in capital letters, such as ALL or NET_RAW")
PATH = Pattern(r"[^\0]{1,4096}", "a path")
ABSOLUTE_PATH = Pattern(r"/[^\0:]{0,4095}", "an absolute path without ':'")
RELATIVE_PATH = Pattern(
    r"(?!/)(?!(.*/)?\.\.(/|\Z))[^\0]{1,4096}", "a path inside the volume: relative, and without '..'"
)
TEXT = Pattern(r"[^\0]*", "text without NUL characters", longest=32_768)
VARIABLE_NAME = Pattern(
    r"[-._A-Za-z][-._A-Za-z0-9]*",
    "a variable's name: letters, digits, '_', '-' and '.', not starting with a digit",
    longest=253,
)
ANY_KEY = Pattern(r"(?s:.*)", "text")

LABELS = Entries(QUALIFIED_NAME, LABEL_VALUE)
ANNOTATIONS = Entries(QUALIFIED_NAME, TEXT)
RESOURCES = Entries(QUALIFIED_NAME, QUANTITY)
