"""The package that both products share: what it imports, what its import costs, and where it ships."""

import ast
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import kubekit
from release import executables, wheels
from release.build_info import BuildInfo
from release.content_cache import ContentCache
from tests.support.shell import ROOT

OF_COMMAND_LINES = {"completion", "usage"}
MODULES = sorted(Path(kubekit.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.stem)
def test_it_imports_the_standard_library_and_pyyaml_only(module: Path) -> None:
    imported = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").partition(".")[0])
    allowed = {"yaml", "kubekit"} | ({"click"} if module.stem in OF_COMMAND_LINES else set())
    assert imported <= sys.stdlib_module_names | allowed


@pytest.mark.parametrize("module", ["durations", "names", "suggestions"])
def test_what_a_worker_might_load_loads_nothing_expensive(module: str) -> None:
    program = f"import sys; from kubekit import {module}; print(*sys.modules)"
    argv = [sys.executable, "-S", "-c", program]
    source = str(Path(kubekit.__file__).parent.parent)
    done = subprocess.run(argv, env={"PYTHONPATH": source}, capture_output=True, text=True, check=True)
    expensive = {"argparse", "asyncio", "dataclasses", "datetime", "decimal", "difflib", "inspect", "typing", "yaml"}
    assert not expensive & set(done.stdout.split())


def test_a_worker_does_not_load_it_to_start() -> None:
    program = (
        "import sys, kube_node_ready.worker.main; print(*(name for name in sys.modules if name.startswith('kubekit')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_it_ships_in_the_wheel_with_both_products_and_in_the_executables_with_one(tmp_path: Path) -> None:
    wheel = wheels.own(ROOT, BuildInfo("1.2.3"), ContentCache(tmp_path))
    modules = {f"kubekit/{module.name}" for module in MODULES}
    with zipfile.ZipFile(wheel.path) as archive:
        shipped = set(archive.namelist())
    assert modules | {"kube_node_ready/worker/main.py", "kubernetes_daemonset/cli/main.py"} <= shipped
    members = {path.removeprefix("any/") for path, _ in executables._members([wheel], "any")}
    assert modules | {"kube_node_ready/worker/main.py"} <= members
    assert "kubernetes_daemonset/cli/main.py" not in members
