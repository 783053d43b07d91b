"""What the programs print for other programs, and what is rendered from a manifest. None of it needs a cluster."""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from tests.contract.golden import Facts
from tests.contract.programs import ROOT, run
from tests.contract.shapes import prefixed, shape, values

IMPORTS: Final = {
    "kubernetes_daemonset.backends.pulumi": "KubernetesDaemonSetComponent",
    "kubernetes_daemonset.backends.pulumi_program": "program",
}
"""The first is in the documentation, the second in every Pulumi project that `render --to pulumi` wrote."""
_PRINTED: Final = (
    ("kube-node-ready", "check", "--config=failing.yaml"),
    ("kubernetes-daemonset", "validate", "--file=invalid.yaml"),
    ("kubernetes-daemonset", "explain", "spec.container.app"),
)


def json_keys() -> Facts:
    """The keys of every `-o json` that needs no cluster, and of the worker's report."""
    facts: dict[str, str] = {}
    for program, verb, given in _PRINTED:
        printed = json.loads(run(program, verb, given, "--output=json").stdout)
        facts |= prefixed(f"{program} {verb}", shape(printed))
    return {**facts, **prefixed("worker's report", shape(_report()))}


def rendered() -> Facts:
    """The objects of a manifest, and the files of its modules. Another label would restart every agent."""
    objects = json.loads(run("kubernetes-daemonset", "render", "--output=json", "--file=agent.yaml").stdout)
    facts = dict(values({made["kind"]: made for made in objects["items"]}))
    for backend in ("terraform", "pulumi"):
        facts |= prefixed(backend, _files(backend))
    return facts


def imports() -> Facts:
    """What programs of users import."""
    code = "import importlib, sys; getattr(importlib.import_module(sys.argv[1]), sys.argv[2])"
    done = {
        f"from {module} import {name}": subprocess.run(
            [sys.executable, "-c", code, module, name], capture_output=True, check=False
        )
        for module, name in IMPORTS.items()
    }
    return {line: "works" if each.returncode == 0 else "fails" for line, each in done.items()}


def manifest_fields() -> Facts:
    """Every field of the messages that manifests are made of: its type and its number."""
    facts: dict[str, str] = {}
    for file in sorted((ROOT / "src").rglob("api/**/*.proto")):
        text = re.sub(r"//.*", "", file.read_text())
        for message, body in re.findall(r"(?ms)^(?:message|enum) (\w+) \{(.*?)^\}", text):
            found = re.findall(r"(?m)^\s+(?:((?:repeated |optional )?[\w.<>, ]+?) )?(\w+) = (\d+)\s*[;\[]", body)
            facts |= {f"{message}.{name}": f"{kind} = {number}".strip() for kind, name, number in found}
    return facts


def metrics() -> Facts:
    """Every series with its type and labels, as documented."""
    text = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    rows = re.findall(r"(?m)^\| `(\w+)` \| (\w+) \| (.*?) \|", text)
    return {name: f"{kind} {labels.replace('`', '')}".strip() for name, kind, labels in rows}


def _report() -> Any:  # noqa: ANN401  JSON
    done = run("kube-node-ready-worker", "--dry-run")
    (line,) = [line for line in map(json.loads, done.stdout.splitlines()) if "report" in line]
    return json.loads(line["report"])


def _files(backend: str) -> Facts:
    with tempfile.TemporaryDirectory() as folder:
        done = run("kubernetes-daemonset", "render", "--file=agent.yaml", f"--to={backend}", f"--into={folder}")
        assert done.returncode == 0, done.stderr
        names = " ".join(sorted(file.name for file in Path(folder).iterdir()))
        texts = "".join(file.read_text() for file in Path(folder).glob("*.py"))
        facts = {"files": names, "variables": " ".join(sorted(set(re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", texts))))}
        for file in ("variables.tf.json", "outputs.tf.json"):
            if file in names:
                ((_, declared),) = json.loads((Path(folder) / file).read_text()).items()
                facts |= {f"{file} {name}": field.get("type", "any") for name, field in declared.items()}
        return facts
