"""Parse paths as diagnostics and users write them: spec.tolerations[0].key, spec.node_selector[kubernetes.io/os]."""

import re
from typing import Final

# Text in brackets, with or without quotes, or a name; a dot that belongs to a name is written \.
_STEP: Final = re.compile(r'\["(?P<quoted>[^"]*)"\]|\[(?P<bracket>[^\]]*)\]|\.?(?P<name>(?:\\.|[^.\[\\])+)')


class NoPath(ValueError):  # noqa: N818 - named for the condition
    """The text is not a path."""


def steps(path: str) -> list[str]:
    found, at = [], 0
    while at < len(path):
        step = _STEP.match(path, at)
        if not step:
            raise NoPath(f'"{path}" is not a valid path; expected names separated by dots, such as spec.host_network')
        between = step["quoted"] if step["bracket"] is None else step["bracket"]
        found.append(re.sub(r"\\(.)", r"\1", step["name"]) if between is None else between)
        at = step.end()
    return found
