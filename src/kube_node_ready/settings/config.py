"""The controller's configuration: `load` gives a frozen Config, or one ConfigError that lists every mistake.

Later sources win: defaults, the YAML file, environment variables, flags. docs/configuration.md has every field.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from kube_node_ready.configuration import checks, document, shapes, tree
from kube_node_ready.configuration.decode import Decoder
from kube_node_ready.configuration.environment import from_environment
from kube_node_ready.configuration.flags import WITHOUT_EFFECT, add_flags, flags_of, from_flags
from kube_node_ready.configuration.mistakes import ConfigError, Mistake
from kube_node_ready.configuration.model import Config
from kube_node_ready.configuration.pods import manifest
from kube_node_ready.configuration.rules import Broken, broken
from kube_node_ready.configuration.scalars import UNUSABLE

__all__ = ["Config", "ConfigError", "Mistake", "add_flags", "flags_of", "load", "manifest", "parse"]

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_LAST_RESORT = "kube-system"
_INSTEAD = {
    "backoffLimit": "reconciliation.maxRetries counts attempts",
    "completions": "one worker runs for each attempt",
    "parallelism": "one worker runs for each attempt",
    "ttlSecondsAfterFinished": "a failed worker stays until the next attempt, others are deleted at once",
}


def load(
    file: Path | None, environment: Mapping[str, str], flags: Mapping[str, object], *, account: Path = ACCOUNT
) -> Config:
    """The configuration of this process. `account` is where a pod finds its ServiceAccount."""
    mistakes: list[Mistake] = []
    root = document.read(file, mistakes) if file else document.Table({})
    return _loaded(root, environment, flags, account, mistakes)


def parse(text: str, name: str, environment: Mapping[str, str]) -> Config:
    """The configuration of another process: the text of its file, which is told of by that name."""
    mistakes: list[Mistake] = []
    return _loaded(document.root(text, name, mistakes), environment, {}, ACCOUNT, mistakes)


def _loaded(
    written: document.Table,
    environment: Mapping[str, str],
    flags: Mapping[str, object],
    account: Path,
    mistakes: list[Mistake],
) -> Config:
    root = shapes.settle(written, mistakes)
    for override in (*from_environment(environment, mistakes), *from_flags(flags, mistakes)):
        root = tree.lay(root, override)
    if not tree.has(root, "worker.namespace"):
        root = tree.lay(root, ("worker.namespace", _namespace(environment, account)))
    rest, given = checks.take(root, mistakes)
    config = Decoder(mistakes, {"worker": checks.NAMES}).part(Config, rest, base=Config())
    assert config is not UNUSABLE, "every field of Config has a default"
    config = _settled(config, given)
    mistakes += _combinations(config, root, mistakes)
    if mistakes:
        raise ConfigError(mistakes)
    return replace(config, notes=tuple(_notes(config, flags)))


def _settled(config: Config, given: Mapping[str, object]) -> Config:
    """With nothing left to be looked up elsewhere."""
    worker = replace(
        config.worker,
        checks=given,
        timeout_seconds=config.worker.job.active_deadline_seconds or config.worker.timeout_seconds,
    )
    election = config.leader_election
    return replace(
        config,
        worker=worker,
        leader_election=replace(election, namespace=election.namespace or worker.namespace),
    )


def _namespace(environment: Mapping[str, str], account: Path) -> document.Scalar:
    if named := environment.get("POD_NAMESPACE"):
        return document.Scalar(named, "POD_NAMESPACE", quoted=True)
    file = account / "namespace"
    try:
        return document.Scalar(file.read_text().strip() or _LAST_RESORT, str(file), quoted=True)
    except (OSError, UnicodeDecodeError):
        return document.Scalar(_LAST_RESORT)


def _combinations(config: Config, root: document.Table, known: list[Mistake]) -> Iterator[Mistake]:
    suspects = tuple(mistake.path for mistake in known)
    for rule in broken(config):
        if not any(_touches(rule, path) for path in suspects):
            yield Mistake(rule.path, rule.reason, tree.where(root, (rule.path, *rule.others)))


def _touches(rule: Broken, path: str) -> bool:
    # A list with a mistake in it is a list without that item, so all of it is doubtful.
    fields = (looked.partition("[")[0] for looked in (rule.path, *rule.others))
    return any(path.startswith(field) or field.startswith(path) for field in fields)


def _notes(config: Config, flags: Mapping[str, object]) -> Iterator[str]:
    job = config.worker.job
    for key, value in (
        ("backoffLimit", job.backoff_limit),
        ("completions", job.completions),
        ("parallelism", job.parallelism),
        ("ttlSecondsAfterFinished", job.ttl_seconds_after_finished),
    ):
        if value is not None:
            yield f"worker.job.{key} has no effect, since workers are pods and not Jobs: {_INSTEAD[key]}"
    for flag in sorted(WITHOUT_EFFECT & flags.keys()):
        yield f"--{flag} has no effect"
