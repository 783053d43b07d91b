"""`config check`: validate a configuration file as the controller or a worker reads it."""

import os
import sys
from collections.abc import Set as AbstractSet
from pathlib import Path

from kube_node_ready.exit_codes import ExitCode
from kube_node_ready.settings import config, images, sources, worker
from kubekit.diagnostics import Diagnostic, DiagnosticsError
from kubekit.terminal import on_one_line

_VALUES = frozenset({"config", "controller", "deploymentMode", "image"})
_OF_THE_CHART = (
    "these look like values of the Helm chart, which `helm template` checks; the configuration is their key "
    "controller.config"
)


def run(file: Path, *, is_workers: bool) -> int:
    diagnostics, notes = _check(file, is_workers=is_workers)
    if diagnostics:
        sys.stderr.writelines(f"{_named(diagnostic, file)}\n" for diagnostic in diagnostics)
        if _keys(file) & _VALUES:
            sys.stderr.write(f"note: {_OF_THE_CHART}\n")
        return ExitCode.INVALID
    sys.stdout.write(f"{on_one_line(f'{file}: valid')}\n")
    sys.stderr.writelines(f"note: {on_one_line(note)}\n" for note in notes)
    return ExitCode.OK


def _named(diagnostic: Diagnostic, file: Path) -> Diagnostic:
    """With the path of the file as it was given."""
    location = diagnostic.location
    is_in_file = location.source in ("", file.name)
    return diagnostic._replace(location=location._replace(source=str(file))) if is_in_file else diagnostic


def _check(file: Path, *, is_workers: bool) -> tuple[tuple[Diagnostic, ...], tuple[str, ...]]:
    """And what has no effect, or should be known."""
    try:
        if is_workers or looks_like_workers(_keys(file)):
            worker.read([sources.from_file(str(file))])
            return (), ("these are the settings of a worker",)
        own_image = os.environ.get(images.VARIABLE, "")
        loaded = config.load(file, {images.VARIABLE: own_image}, {})
        return (), (*loaded.warnings, *images.warnings(loaded.worker.image, own_image))
    except DiagnosticsError as error:
        return error.diagnostics, ()


def _keys(file: Path) -> AbstractSet[str]:
    try:
        _, tree, _ = sources.from_file(str(file))
        return tree.keys()
    except DiagnosticsError:  # the controller's reader reports it with the line
        return frozenset()


def looks_like_workers(keys: AbstractSet[str]) -> bool:
    """Every key could be a worker's; and only a worker's, since `logging` is in both."""
    return bool(keys) and keys <= worker.TABLE.fields.keys() and keys != {"logging"}
