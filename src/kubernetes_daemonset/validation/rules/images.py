"""Names of images. An API server takes any text for one; a node that cannot read it never starts the container."""

import re
from collections.abc import Iterator
from typing import Final

from kubernetes_daemonset.api.shared.container_pb2 import Container
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.pod import containers
from kubernetes_daemonset.rules.finding import Finding
from kubernetes_daemonset.rules.parts import APP, Part, parts
from kubernetes_daemonset.syntax import image_parts

# The grammar of github.com/distribution/reference, by which every runtime reads the name of an image.
_LONGEST: Final = 255
_DOMAIN_PART: Final = r"[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?"
_REGISTRY: Final = rf"({_DOMAIN_PART}(\.{_DOMAIN_PART})*|\[[0-9a-fA-F:]+\])(:[0-9]+)?"
_PATH_PART: Final = r"[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*"
_REPOSITORY: Final = re.compile(rf"({_REGISTRY}/)?{_PATH_PART}(/{_PATH_PART})*")
_TAG: Final = re.compile(r"[A-Za-z0-9_][-A-Za-z0-9_.]{0,127}")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}")
_SCHEME: Final = re.compile(r"[A-Za-z][-+.A-Za-z0-9]*://")

_WRITE_A_REPOSITORY: Final = (
    "write lowercase letters and digits, with single dots, underscores or hyphens between them and slashes between "
    "names: registry.example.com/team/agent"
)
_WRITE_A_TAG: Final = "write at most 128 letters, digits, underscores, dots and hyphens, the first no dot and no hyphen"


def images(manifest: KubernetesDaemonSet) -> list[str]:
    """Of every container: the agent's, sidecars' and init containers'."""
    return [image for part in parts(manifest) if (image := _image(part))]


def images_can_be_read(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for part in parts(manifest):
        yield from _faults(part)


def images_may_change(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for part in parts(manifest):
        image = _image(part)
        if not image or any(_faults(part)):
            continue
        _, tag, digest = image_parts(image)
        unsaid = not tag and part.path != APP  # of the app it is an error
        if not digest and (tag == "latest" or unsaid):
            text = f'"{image}" is another image tomorrow, and nodes will differ; name a version or a digest'
            yield Finding(f"{part.path}.image", text)


def _image(part: Part) -> str:
    return part.body.image if isinstance(part.body, Container) else containers.image(part.body.image)


def _faults(part: Part) -> Iterator[Finding]:
    """Without what the .proto files ask for: that there is an image, and the form of the app's digest."""
    where = f"{part.path}.image"
    if isinstance(part.body, Container):
        yield from (Finding(where, text) for text in _faults_of_text(part.body.image))
        return
    image = part.body.image
    if image.repo and (wrong := _repository_fault(image.repo)):
        yield Finding(f"{where}.repo", wrong)
    if image.tag and (wrong := _tag_fault(image.tag)):
        yield Finding(f"{where}.tag", wrong)


def _faults_of_text(image: str) -> Iterator[str]:
    if not image:
        return
    repository, tag, digest = image_parts(image)
    if not repository:
        yield f'"{image}" names no repository; write it before the {"digest" if tag is None else "tag"}'
    elif wrong := _repository_fault(repository):
        yield wrong
    if tag is not None and (wrong := _tag_fault(tag)):
        yield wrong
    if digest is not None and not _DIGEST.fullmatch(digest):
        yield f'"{digest}" is no digest; write sha256: and 64 digits from 0-9 and a-f'


def _repository_fault(name: str) -> str:
    if len(name) > _LONGEST:
        return f"is {len(name)} characters long; a repository has at most {_LONGEST}"
    return "" if _REPOSITORY.fullmatch(name) else f'"{name}" cannot be a repository; {_instead(name)}'


def _instead(name: str) -> str:
    """What would be right in the place of a repository that is wrong."""
    registry, slash, _ = name.partition("/")
    _, colon, port = registry.rpartition(":")
    if scheme := _SCHEME.match(name):
        return f"leave {scheme[0]} out"
    if "@" in name:
        return "write what follows the @ as digest"
    if ":" in name.rpartition("/")[2]:
        return "one colon stands before the tag, and none within the repository"
    if slash and colon and not (port.isascii() and port.isdecimal()):
        return f'"{port}" is no port; write digits, or leave it out with its colon'
    if _REPOSITORY.fullmatch(name.lower()):
        return f"write it in lowercase: {name.lower()}"
    return _WRITE_A_REPOSITORY


def _tag_fault(tag: str) -> str:
    return "" if _TAG.fullmatch(tag) else f'"{tag}" cannot be a tag; {_WRITE_A_TAG}'
