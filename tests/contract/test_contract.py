"""The contract without a cluster; the rest of it is tests/cluster/test_contract.py."""

from collections.abc import Callable
from typing import Final

import pytest

from tests.contract import chart, commands, configuration, exits, golden, outputs
from tests.contract.golden import Facts

SUBJECTS: Final[dict[str, Callable[[], Facts]]] = {
    "exit-codes": exits.exit_codes,
    "commands": commands.commands,
    "environment": commands.environment,
    "controller-keys": configuration.controller_keys,
    "controller-variables": configuration.controller_variables,
    "worker-keys": configuration.worker_keys,
    "chart-values": chart.values,
    "chart-objects": chart.objects,
    "json": outputs.json_keys,
    "metrics": outputs.metrics,
    "manifest-fields": outputs.manifest_fields,
    "rendered": outputs.rendered,
    "imports": outputs.imports,
}


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_contract_has_not_changed(subject: str) -> None:
    golden.check(subject, SUBJECTS[subject]())


def test_a_change_names_what_is_lost_changed_and_gained() -> None:
    changes = golden.difference({"--old": "a", "--kept": "b", "same": "c"}, {"--new": "a", "--kept": "B", "same": "c"})
    assert changes == ["lost     --old: a", "changed  --kept: b\n      to --kept: B", "gained   --new: a"]
    assert golden.REWRITE in golden.report("flags", changes)


ARGPARSE: Final = """
usage: prog status [-h] [--gated] [-o {table,json}] [--timeout TIME] [NODE ...]

options:
  -h, --help            show this help message and exit
  --gated               only nodes that are gated
  -o {table,json}, --output {table,json}
  --timeout TIME        how long to watch

exit codes: 0 no node fails, 1 one does, 2 a mistake, 3
no access.
"""
CLICK: Final = """
Usage: prog status [OPTIONS] [NODE]...

Options:
  --gated                    Show only nodes that are gated.
  -o, --output [table|json]
  --timeout TIME             Stop watching after this
                             time.
  -h, --help                 Show this message and exit.

  Exit codes:
  0  no node fails
  1  one does
  2  a mistake
  3  no access
"""
RICH: Final = """
 Usage: prog status [OPTIONS] [NODE]...

╭─ Options ────────────────────────────────────────────────╮
│ --gated                        Show only gated nodes.    │
│ --output   -o  [table|json]                              │
│ --timeout      TIME            Stop watching after this. │
│ --help     -h                  Show this message.        │
╰──────────────────────────────────────────────────────────╯

 Exit codes: 0 no node fails, 1 one does, 2 a mistake, 3 no access
"""


@pytest.mark.parametrize("text", [ARGPARSE, CLICK, RICH], ids=["argparse", "click", "rich"])
def test_the_same_flags_are_read_from_every_form_of_help(text: str) -> None:
    assert commands.facts_of("prog status", text) == {
        "-h, --help": "nothing",
        "--gated": "nothing",
        "-o, --output": "table|json",
        "--timeout": "a value",
        "arguments": "[NODE...]",
        "exit codes": "0 1 2 3",
    }


def test_every_golden_file_is_compared() -> None:
    on_a_cluster = {"controller", "daemonset-mode", "component"}
    assert {file.stem for file in golden.FOLDER.iterdir()} == {*SUBJECTS, *on_a_cluster}
