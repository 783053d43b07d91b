"""What Kubernetes takes for a name, a label and an image: the same for all objects, so it stands here once."""

import re
from typing import Final

_DOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"

# The length is counted up to the slash: a domain alone may be as long as an object's name.
LABEL_NAME: Final = re.compile(rf"((?=[^/]{{1,253}}/){_DOMAIN}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?")
LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
OBJECT_NAME: Final = re.compile(rf"(?=.{{1,253}}$){_DOMAIN}")


def image_parts(text: str) -> tuple[str, str | None, str | None]:
    """repo[:tag][@digest]; what is not there is None. A colon before the last slash belongs to a registry's port."""
    name, at, digest = text.partition("@")
    colon = name.rfind(":")
    tagged = colon > name.rfind("/")
    return name[:colon] if tagged else name, name[colon + 1 :] if tagged else None, digest if at else None
