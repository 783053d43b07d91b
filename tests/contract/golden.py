"""Facts on file, one per line, and what changed since."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml

Facts = Mapping[str, str]

FOLDER: Final = Path(__file__).parent / "golden"
REWRITE: Final = "make contract"
WRITES: Final = os.environ.get("CONTRACT") == "write"


def check(subject: str, facts: Facts) -> None:
    """Compare facts with the golden file of their subject, or rewrite it if CONTRACT=write is set."""
    assert facts, f"no facts about {subject} were collected"
    file = FOLDER / f"{subject}.yaml"
    if WRITES:
        file.write_text(yaml.safe_dump(dict(facts), width=1000, allow_unicode=True))
        return
    changes = difference(yaml.safe_load(file.read_text()), facts)
    assert not changes, report(subject, changes)


def difference(golden: Facts, facts: Facts) -> list[str]:
    """What a user loses, gains, or finds changed: one line per fact."""
    lost = [f"lost     {name}: {golden[name]}" for name in golden if name not in facts]
    gained = [f"gained   {name}: {facts[name]}" for name in facts if name not in golden]
    both = [name for name in golden if name in facts and golden[name] != facts[name]]
    changed = [f"changed  {name}: {golden[name]}\n      to {name}: {facts[name]}" for name in both]
    return [*lost, *changed, *gained]


def report(subject: str, changes: list[str]) -> str:
    listed = "\n".join(changes)
    return (
        f"users of the {subject} would notice this:\n{listed}\n"
        f"If that is intended, run `{REWRITE}`, and announce it in CHANGELOG.md and docs/how-to/upgrading.md."
    )
