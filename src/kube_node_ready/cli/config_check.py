"""`config check`: a configuration file, read as the controller or a worker would read it."""

import argparse
import sys
from collections.abc import Set as AbstractSet
from pathlib import Path

from kube_node_ready import config
from kube_node_ready.checks import settings, sources
from kube_node_ready.checks.settings import SettingsError
from kube_node_ready.config import ConfigError

OK, MISTAKES = 0, 2
_VALUES = frozenset({"config", "controller", "deploymentMode", "image"})
_OF_THE_CHART = (
    "these look like values of the Helm chart, which `helm template` checks; a configuration is what stands there "
    "under controller.config"
)


def run(options: argparse.Namespace) -> int:
    found, notes = _mistakes(options.file, worker=options.worker)
    if found:
        sys.stderr.writelines(f"{_named(mistake, options.file)}\n" for mistake in found)
        if _keys(options.file) & _VALUES:
            sys.stderr.write(f"note: {_OF_THE_CHART}\n")
        return MISTAKES
    sys.stdout.write(f"{options.file}: fine\n")
    sys.stderr.writelines(f"note: {note}\n" for note in notes)
    return OK


def _named(mistake: str, file: Path) -> str:
    """With its file, unless it is about the file as a whole, and names it."""
    if mistake.startswith((f"{file} ", f"the file {file} ")):
        return mistake
    return f"{file}: {mistake.removeprefix(f'{file.name}: ')}"


def _mistakes(file: Path, *, worker: bool) -> tuple[list[str], tuple[str, ...]]:
    """And what has no effect, or should be known."""
    try:
        if worker or _looks_like_workers(file):
            settings.gather([(file.name, sources.from_file(str(file)))])
            return [], ("these are the settings of a worker",)
        return [], config.load(file, {}, {}).notes
    except (ConfigError, SettingsError) as why:
        return [str(mistake) for mistake in why.mistakes], ()


def _looks_like_workers(file: Path) -> bool:
    return is_workers(_keys(file))


def _keys(file: Path) -> AbstractSet[str]:
    try:
        return sources.from_file(str(file)).keys()
    except SettingsError:  # the controller's reader says it with the line
        return frozenset()


def is_workers(keys: AbstractSet[str]) -> bool:
    """Every key could be a worker's; and only a worker's, since `logging` is in both."""
    return bool(keys) and keys <= settings.NAMES and keys != {"logging"}
