"""Write CONTRIBUTING.md's tables of modules from the modules' docstrings.

A table stands between `<!-- modules of FOLDER -->` and `<!-- end -->`.
"""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
_TABLE = re.compile(r"(<!-- modules of (\S+) -->\n).*?(<!-- end -->\n)", re.DOTALL)
_HEAD = "| module | what it is |\n|---|---|\n"


def rewritten(page: str) -> str:
    return _TABLE.sub(lambda found: f"{found[1]}{_table(ROOT / found[2])}{found[3]}", page)


def without_tables(page: str) -> str:
    return _TABLE.sub("", page)


def folders(page: str) -> list[str]:
    return [found[2] for found in _TABLE.finditer(page)]


def modules(folder: Path) -> Iterator[Path]:
    """The folder's own modules, then those of each folder in it. Generated ones are left out."""
    yield from sorted(file for file in folder.glob("*.py") if not file.stem.endswith("_pb2"))
    for inner in sorted(path for path in folder.iterdir() if path.is_dir()):
        yield from modules(inner)


@functools.cache
def summary(module: Path) -> str:
    """The first sentence of the docstring. Empty without one, as an `__init__.py` or a `__main__.py` can be."""
    text = ast.get_docstring(ast.parse(module.read_text())) or ""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"(?<=[.?!])(?<!\.\.)\s+(?=[A-Z`])", paragraph)[0].removesuffix(".").removesuffix(":")


def _table(folder: Path) -> str:
    return _HEAD + "".join(_row(module, folder) for module in modules(folder) if summary(module))


def _row(module: Path, folder: Path) -> str:
    inner = module.relative_to(folder)
    is_package = module.name == "__init__.py"
    name = f"**`{inner.parent}/`**".replace("./", "") if is_package else f"`{inner}`"
    if is_package and inner.parent == Path():
        name = f"**`{folder.name}/`**"
    return f"| {name} | {summary(module).replace('|', chr(92) + '|')} |\n"
