"""What Kubernetes takes for a name and for a label: the same for all objects, so it stands here once."""

import re
from typing import Final

_DOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"

# The length is counted up to the slash: a domain alone may be as long as an object's name.
LABEL_NAME: Final = re.compile(rf"((?=[^/]{{1,253}}/){_DOMAIN}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?")
LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
OBJECT_NAME: Final = re.compile(rf"(?=.{{1,253}}$){_DOMAIN}")
