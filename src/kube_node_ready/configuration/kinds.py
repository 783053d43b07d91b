"""The kinds of values fields hold. `must` completes the sentence "must be …", in mistakes and in the reference."""

from typing import Annotated, Literal

from msgspec import Meta

_YEAR = 31_536_000
_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"


def about(text: str) -> Meta:
    return Meta(description=text)


DERIVED = Meta(extra={"derived": True})
"""Set while loading; not a key of the file."""

Port = Annotated[int, Meta(ge=0, le=65_535)]
Count = Annotated[int, Meta(ge=0, le=1_000_000)]
Quantum = Annotated[int, Meta(ge=1, le=1_000_000)]
Attempts = Annotated[int, Meta(ge=1, le=1000)]
Percent = Annotated[float, Meta(ge=0, le=100)]
Seconds = Annotated[float, Meta(ge=0, le=_YEAR)]
LongSeconds = Annotated[float, Meta(ge=1, le=_YEAR)]
SomeSeconds = Annotated[float, Meta(gt=0, le=_YEAR)]
WholeSeconds = Annotated[int, Meta(ge=0, le=_YEAR)]
Deadline = Annotated[int, Meta(ge=10, le=3600)]
Rate = Annotated[float, Meta(ge=0, le=1_000_000)]
UserId = Annotated[int, Meta(ge=0, le=2**31 - 1)]

Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
WithoutClaim = Literal["delete", "cordon"]
PullPolicy = Literal["IfNotPresent", "Always", "Never"]

Label = Annotated[
    str,
    Meta(
        pattern=rf"^{_LABEL}\Z",
        extra={"must": "a name of at most 63 lower-case letters, digits and '-', with a letter or digit at both ends"},
    ),
]
Subdomain = Annotated[
    str,
    Meta(
        pattern=rf"^(?=.{{1,253}}\Z){_LABEL}(\.{_LABEL})*\Z",
        extra={"must": "a name of lower-case letters, digits, '-' and '.', with a letter or digit at both ends"},
    ),
]
QualifiedName = Annotated[
    str,
    Meta(
        pattern=rf"^((?=[^/]{{1,253}}/){_LABEL}(\.{_LABEL})*/)?{_NAME}\Z",
        extra={"must": "a Kubernetes key such as example.com/name, the name with at most 63 characters"},
    ),
]
LabelValue = Annotated[
    str,
    Meta(
        pattern=rf"^({_NAME})?\Z",
        extra={
            "must": "a label value: at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"
        },
    ),
]
Quantity = Annotated[
    str,
    Meta(
        pattern=r"^[0-9]{1,15}(\.[0-9]{1,9})?(m|k|Ki|[MGTPE]i?|e[0-9]{1,2})?\Z",
        extra={"must": "a quantity such as 50m, 0.5, 64Mi or 1Gi"},
    ),
]
Repository = Annotated[
    str,
    Meta(
        pattern=r"^([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?(:[0-9]{1,5})?/)?[a-z0-9]+((\.|_{1,2}|-+|/)[a-z0-9]+)*\Z",
        max_length=255,
        extra={"must": "an image's name without tag or digest, such as registry.example/team/kube-node-ready"},
    ),
]
Tag = Annotated[
    str,
    Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\Z", extra={"must": "an image tag such as 1.2.3"}),
]
Digest = Annotated[
    str,
    Meta(pattern=r"^sha256:[0-9a-f]{64}\Z", extra={"must": "a digest: sha256: and 64 hexadecimal digits"}),
]
ImageReference = Annotated[
    str, Meta(pattern=r"^[^\s\0]{1,512}\Z", extra={"must": "an image such as registry.example/team/check:1.2.3"})
]
Capability = Annotated[
    str,
    Meta(pattern=r"^[A-Z][A-Z0-9_]{0,62}\Z", extra={"must": "a capability in capital letters, such as ALL or NET_RAW"}),
]
Path = Annotated[str, Meta(pattern=r"^[^\0]{1,4096}\Z", extra={"must": "a path"})]
AbsolutePath = Annotated[str, Meta(pattern=r"^/[^\0:]{0,4095}\Z", extra={"must": "an absolute path without ':'"})]
RelativePath = Annotated[
    str,
    Meta(
        pattern=r"^(?!/)(?!(.*/)?\.\.(/|\Z))[^\0]{1,4096}\Z",
        extra={"must": "a path inside the volume: relative, and without '..'"},
    ),
]
Word = Annotated[str, Meta(pattern=r"^[^\0]*\Z", max_length=32_768, extra={"must": "text without NUL characters"})]
VariableName = Annotated[
    str,
    Meta(
        pattern=r"^[-._A-Za-z][-._A-Za-z0-9]*\Z",
        max_length=253,
        extra={"must": "a variable's name: letters, digits, '_', '-' and '.', not starting with a digit"},
    ),
]
