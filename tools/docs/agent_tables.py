"""Write the tables in docs/ARCHITECTURE_DAEMONSET.md from the code.

python -m tools.docs.agent_tables docs/ARCHITECTURE_DAEMONSET.md
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from prometheus_client import Metric

from kube_node_ready.agent.metrics import Metrics
from kube_node_ready.settings.agent import FIELDS, default_text

_BEGIN = "<!-- {}: written by `python -m tools.docs.agent_tables`; change the code, not this table -->"
_END = "<!-- end -->"


def main() -> None:
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(rewritten(path.read_text()))


def rewritten(page: str) -> str:
    """The page with its tables as they should be. What stands between their marks is ours."""
    for name, table in (("settings", settings()), ("metrics", metrics())):
        before, begin, rest = page.partition(_BEGIN.format(name))
        _, end, after = rest.partition(_END)
        assert end, f"the page has no place for the {name}"
        page = f"{before}{begin}\n{table}{end}{after}"
    return page


def settings() -> str:
    rows = (
        (f"`--{field.flag}`", f"`{field.variable}`", f"`{default_text(field)}`".replace("``", ""), field.description)
        for field in FIELDS
    )
    return _table(("flag", "variable", "default", ""), rows)


def metrics() -> str:
    families = sorted(Metrics("node-1").registry.collect(), key=lambda family: family.name)
    return _table(("series", "type", "labels", ""), (_row(family) for family in families))


def _row(family: Metric) -> tuple[str, ...]:
    name = f"{family.name}_total" if family.type == "counter" else family.name
    labels = ", ".join(f"`{label}`" for label in family.samples[0].labels)
    return f"`{name}`", family.type, labels, family.documentation


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    main()
