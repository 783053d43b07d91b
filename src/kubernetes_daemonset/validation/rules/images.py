"""Rules for image names. An API server accepts any text; a node that cannot parse it never starts the container."""

import re
from collections.abc import Iterator
from typing import Final

from kubekit.names import image_parts
from kubernetes_daemonset.api.shared.container_pb2 import Container
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.render import containers
from kubernetes_daemonset.validation.containers_view import APP, ContainerView, container_views
from kubernetes_daemonset.validation.rules.finding import Finding

# The grammar of github.com/distribution/reference, by which every runtime reads the name of an image.
_LONGEST: Final = 255
_DOMAIN_PART: Final = r"[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?"
_REGISTRY: Final = rf"({_DOMAIN_PART}(\.{_DOMAIN_PART})*|\[[0-9a-fA-F:]+\])(:[0-9]+)?"
_PATH_PART: Final = r"[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*"
_REPOSITORY: Final = re.compile(rf"({_REGISTRY}/)?{_PATH_PART}(/{_PATH_PART})*")
_TAG: Final = re.compile(r"[A-Za-z0-9_][-A-Za-z0-9_.]{0,127}")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}")
_SCHEME: Final = re.compile(r"[A-Za-z][-+.A-Za-z0-9]*://")

_EXPECTED_REPOSITORY: Final = (
    "expected lowercase letters and digits separated by single dots, underscores or hyphens, with slashes between "
    "names, such as registry.example.com/team/agent"
)
_EXPECTED_TAG: Final = (
    "expected a tag of at most 128 letters, digits, underscores, dots and hyphens, starting with neither a dot nor a "
    "hyphen"
)


def images(manifest: KubernetesDaemonSet) -> list[str]:
    """Return the images of all containers: the app, sidecars and init containers."""
    return [image for container in container_views(manifest) if (image := _image(container))]


def images_can_be_read(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for container in container_views(manifest):
        yield from _faults(container)


def images_may_change(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for container in container_views(manifest):
        image = _image(container)
        if not image or any(_faults(container)):
            continue
        _, tag, digest = image_parts(image)
        unsaid = not tag and container.path != APP  # of the app it is an error
        if not digest and (tag == "latest" or unsaid):
            text = f'"{image}" can change over time, so nodes can run different images; use a version tag or a digest'
            yield Finding(f"{container.path}.image", text)


def _image(container: ContainerView) -> str:
    return container.body.image if isinstance(container.body, Container) else containers.image(container.body.image)


def _faults(container: ContainerView) -> Iterator[Finding]:
    """Yield errors beyond those of the .proto files, which require an image and check the app's digest."""
    where = f"{container.path}.image"
    if isinstance(container.body, Container):
        yield from (Finding(where, text) for text in _faults_of_text(container.body.image))
        return
    image = container.body.image
    if image.repo and (wrong := _repository_fault(image.repo)):
        yield Finding(f"{where}.repo", wrong)
    if image.tag and (wrong := _tag_fault(image.tag)):
        yield Finding(f"{where}.tag", wrong)


def _faults_of_text(image: str) -> Iterator[str]:
    if not image:
        return
    repository, tag, digest = image_parts(image)
    if not repository:
        yield f'"{image}" has no repository; add it before the {"digest" if tag is None else "tag"}'
    elif wrong := _repository_fault(repository):
        yield wrong
    if tag is not None and (wrong := _tag_fault(tag)):
        yield wrong
    if digest is not None and not _DIGEST.fullmatch(digest):
        yield f'"{digest}" is invalid; expected sha256: followed by 64 hexadecimal digits (0-9, a-f)'


def _repository_fault(name: str) -> str:
    if len(name) > _LONGEST:
        return f"is {len(name)} characters long; expected at most {_LONGEST}"
    return (
        "" if _REPOSITORY.fullmatch(name) else f'"{_without_login(name)}" is not a valid repository; {_instead(name)}'
    )


def _without_login(name: str) -> str:
    """Return a URL without its user name and password."""
    scheme, (before, _, after) = _SCHEME.match(name), name.rpartition("@")
    return f"{scheme[0]}…@{after}" if scheme and before else name


def _instead(name: str) -> str:
    """Return the remedy for an invalid repository."""
    registry, slash, _ = name.partition("/")
    _, colon, port = registry.rpartition(":")
    if scheme := _SCHEME.match(name):
        return f"remove {scheme[0]}"
    if "@" in name:
        return "set the part after @ as digest"
    if ":" in name.rpartition("/")[2]:
        return "expected one colon before the tag and none in the repository"
    if slash and colon and not (port.isascii() and port.isdecimal()):
        return f'port "{port}" is invalid; expected digits, or remove it and its colon'
    if _REPOSITORY.fullmatch(name.lower()):
        return f"expected lowercase: {name.lower()}"
    return _EXPECTED_REPOSITORY


def _tag_fault(tag: str) -> str:
    return "" if _TAG.fullmatch(tag) else f'"{tag}" is invalid; {_EXPECTED_TAG}'
