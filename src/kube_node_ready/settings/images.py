"""The worker's image: the controller's own if the configuration names none, and warnings about one that it names.

The controller cannot find out its own image. The chart passes it in POD_IMAGE.
"""

from collections.abc import Iterator

from kube_node_ready.settings.worker_pod import Image
from kubekit.diagnostics import quoted
from kubekit.names import image_parts

VARIABLE = "POD_IMAGE"
GO_VERSION = "ghcr.io/imunhatep/kube-node-ready"
"""The image of the Go version, which values written for it name. Its worker reads other settings."""
_CONSEQUENCE = "its worker might not report to this controller, and then no node passes"


def split(reference: str) -> Image:
    """`registry:5000/name:tag@digest` in its parts."""
    repository, tag, digest = image_parts(reference)
    return Image(repository=repository, tag=tag or "", digest=digest or "")


def has_registry(repository: str) -> bool:
    """As container runtimes read it: the first part is a registry only if it looks like a host."""
    first, slash, _ = repository.partition("/")
    return bool(slash) and (first == "localhost" or "." in first or ":" in first)


def warnings(image: Image, own: str) -> Iterator[str]:
    """What is doubtful about this image of the workers. `own` is the controller's, if it is known."""
    repository = image.repository
    if own and split(own).repository != repository:
        difference = f"{repository} differs from the controller's image, {quoted(own)}"
        yield f"worker.image.repository: {difference}: {_CONSEQUENCE}"
    elif repository == GO_VERSION:
        yield (
            f"worker.image.repository: {repository} is the image of the Go version: its worker exits with code 3 here, "
            "and no node passes"
        )
    if not has_registry(repository):
        yield (
            f"worker.image.repository: {repository} has no registry: nodes that do not have the image pull it "
            "from their default registry"
        )
