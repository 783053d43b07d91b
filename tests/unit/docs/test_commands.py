"""Commands of the documentation: each `sh` block is run by a test, here or in tests/e2e/test_troubleshooting.py."""

import re
import subprocess

import pytest
import yaml

from tests.support import chart, pages
from tests.support.shell import ROOT

KARPENTER = "docs/how-to/karpenter.md"
EXAMPLES = "docs/daemonset/examples.md"
"""Run by tests/unit/component and tests/cluster."""
RUN_ON_NODES = {
    pages.GATE_AT_BIRTH: {"Turn it on"},
    pages.INSTALL: {"Controller mode", "DaemonSet mode"},
    pages.README: {"Install"},
    pages.ROLLOUT: {"1. Dry run"},
    pages.TROUBLESHOOTING: {"Questions"},
    pages.TUTORIAL: {"On your cluster"},
    pages.UNINSTALL: {""},
}
SHELL_BLOCK = re.compile(r"^( *)```sh\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def blocks(text: str) -> list[str]:
    return [re.sub(rf"^{indent}", "", block, flags=re.MULTILINE) for indent, block in SHELL_BLOCK.findall(text)]


def rendered(command: str) -> chart.Rendered:
    """Run a `helm install` of a page as `helm template`."""
    assert command.startswith("helm install ")
    words = command.replace("helm install", f"{chart.helm()} template", 1)
    done = subprocess.run(["sh", "-ec", words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return chart.Rendered(one for one in yaml.safe_load_all(done.stdout) if one)


def verbs_on_claims(objects: chart.Rendered) -> set[str]:
    rules = [rule for role in objects.of("ClusterRole") for rule in role["rules"]]
    return {verb for rule in rules if "nodeclaims" in rule["resources"] for verb in rule["verbs"]}


def test_every_shell_block_is_run_by_a_test() -> None:
    texts = {"README.md": (ROOT / "README.md").read_text()}
    texts |= {str(page.relative_to(ROOT)): page.read_text() for page in (ROOT / "docs").rglob("*.md")}
    assert {name for name, text in texts.items() if blocks(text)} == RUN_ON_NODES.keys() | {KARPENTER, EXAMPLES}
    for name, sections in RUN_ON_NODES.items():
        parts = re.split(r"^## ", texts[name], flags=re.MULTILINE)
        with_commands = {"" if part is parts[0] else part.partition("\n")[0] for part in parts if blocks(part)}
        assert with_commands == sections, name


@pytest.mark.parametrize(("more", "verbs"), [("", {"get", "list"}), ("upgrade", {"get", "list", "delete"})])
def test_the_commands_for_karpenter_grant_the_documented_rights(more: str, verbs: set[str]) -> None:
    install, upgrade = blocks((ROOT / KARPENTER).read_text())
    if more:
        (change,) = re.findall(r"--set \S+", upgrade)
        install = f"{install.strip()} {change}"
    assert "--reset-then-reuse-values" in upgrade
    assert verbs_on_claims(rendered(install)) == verbs
