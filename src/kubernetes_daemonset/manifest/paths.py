"""Paths as mistakes name them and people type them: spec.tolerations[0].key, spec.node_selector[kubernetes.io/os]."""

import re
from typing import Final

# What stands between brackets, with or without quotes, or a name; a dot that belongs to a name is written \.
_STEP: Final = re.compile(r'\["(?P<quoted>[^"]*)"\]|\[(?P<bracket>[^\]]*)\]|\.?(?P<name>(?:\\.|[^.\[\\])+)')


class NoPath(ValueError):  # noqa: N818  it says what happened
    """The text is no path."""


def steps(path: str) -> list[str]:
    found, at = [], 0
    while at < len(path):
        step = _STEP.match(path, at)
        if not step:
            raise NoPath(f'"{path}" is no path; write names with dots between them, such as spec.host_network')
        between = step["quoted"] if step["bracket"] is None else step["bracket"]
        found.append(re.sub(r"\\(.)", r"\1", step["name"]) if between is None else between)
        at = step.end()
    return found
