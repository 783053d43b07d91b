"""The manifests and commands of docs/daemonset/examples.md, read out of the page itself."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "daemonset" / "examples.md"
_TEXT = PAGE.read_text()
_BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<content>.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"^`(?P<name>[^`\n]+)`:\n\n```\w+\n(?P<content>.*?)^```$", re.MULTILINE | re.DOTALL)


def files() -> dict[str, str]:
    """What readers save, by the name above it."""
    return {found["name"]: found["content"] for found in _FILE.finditer(_TEXT)}


def manifests() -> dict[str, str]:
    return {name: text for name, text in files().items() if name.endswith(".yaml")}


def blocks(language: str) -> list[str]:
    return [found["content"] for found in _BLOCK.finditer(_TEXT) if found["language"] == language]


def save(folder: Path) -> None:
    for name, text in files().items():
        (folder / name).write_text(text)
