"""Write every page that lists what the code has: `make docs`."""

import runpy
from collections.abc import Callable
from pathlib import Path

from tools.docs import agent_tables, cli, component_reference, configuration, metrics, terminal, tour, values_schema

ROOT = Path(__file__).parents[2]
WHOLE: dict[str, Callable[[], str]] = {
    "docs/cli.md": cli.page,
    "docs/configuration.md": configuration.page,
    "docs/daemonset/reference.md": component_reference.page,
    "docs/reference/metrics.md": metrics.page,
    terminal.PICTURE: terminal.svg,
    "examples/controller-config.yaml": configuration.example,
    "deploy/helm/kube-node-ready/README.md": lambda: str(runpy.run_path(str(ROOT / "deploy/helm/readme.py"))["page"]()),
}
PARTLY: dict[str, Callable[[str], str]] = {
    "docs/ARCHITECTURE_DAEMONSET.md": agent_tables.rewritten,
    "CONTRIBUTING.md": tour.rewritten,
    "deploy/helm/kube-node-ready/values.schema.json": values_schema.rewritten,
}


def main() -> None:
    for name, page in WHOLE.items():
        _write(ROOT / name, page())
    for name, rewritten in PARTLY.items():
        _write(ROOT / name, rewritten((ROOT / name).read_text()))


def _write(path: Path, text: str) -> None:
    if path.read_text() != text:
        path.write_text(text)
        print(f"wrote {path.relative_to(ROOT)}")  # noqa: T201


if __name__ == "__main__":
    main()
