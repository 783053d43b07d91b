"""The settings of DaemonSet mode: `table` says what may be said, and a flag wins over its variable.

What the table does not name about the checks (`services`, `dnsService`, `payload`, `clock`, …) is said as to a worker:
in the file or in the JSON that `checks.sources` reads.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kube_node_ready.checks import settings as reading
from kube_node_ready.checks import sources
from kube_node_ready.checks.settings import SettingsError, shown
from kube_node_ready.daemonset.model import OwnPolicy, Rules
from kube_node_ready.daemonset.table import SETTINGS, Setting
from kube_node_ready.objects import Taint
from kube_node_ready.verify.model import Gate

DRY_RUN_NODE = "dry-run-node"
_CHECK_SECONDS = 3
_SHORTEST_INTERVAL = 1
_SLOW_RETRY = timedelta(minutes=5)
_LOOK = timedelta(seconds=10)
_LOOK_WHILE_WATCHING = timedelta(seconds=60)
_CLOSE = 0.85
# Kubernetes tells every pod about the Services of its namespace; one called "metrics" makes METRICS_PORT an address.
_SERVICE_ADDRESS = re.compile(r"(tcp|udp|sctp)://.*")
_NOT_FOR_US = re.compile(r"KUBE.*|.*_SERVICE_.*|.*_PORT(_.*)?")


class Settings(Struct, frozen=True):
    checks: reading.Settings = reading.Settings()
    node_name: str = ""
    namespace: str = "kube-system"
    mode: str = "once"
    max_retries: int = 5
    retry_backoff: str = "exponential"
    check_interval: float = 60
    failure_threshold: int = 3
    taint_key: str = "node-ready/unverified"
    taint_value: str = "true"
    taint_effect: str = "NoSchedule"
    verified_label: str = "node-ready/verified"
    verified_label_value: str = "true"
    enable_metrics: bool = True
    metrics_port: int = 8080
    kubeconfig: str = ""
    service_host: str = ""
    service_port: int = 443
    notes: tuple[str, ...] = ()
    """What was said and has no effect."""

    @property
    def dry_run(self) -> bool:
        return self.checks.dry_run


_OF_CHECKS = frozenset(reading.Settings._fields)


def load(flags: Mapping[str, str], environ: Mapping[str, str], *, files: bool = True) -> Settings:
    """The settings of this process, or one SettingsError with every mistake.

    Without `files`, none is opened: for variables that come from elsewhere, as from a cluster.
    """
    mistakes: list[str] = []
    given: dict[str, Any] = {}  # each reader gives what its field holds
    for setting in SETTINGS:
        for where, text in _said(setting, flags, environ):
            try:
                given[setting.field] = setting.read(text)
            except ValueError as right:
                mistakes.append(f"{where} is {shown(text)}, and must be {right}")
    given.pop("", None)
    checks = _written(environ, mistakes, files=files)._replace(
        **{name: given[name] for name in given.keys() & _OF_CHECKS}
    )
    others = {name: given[name] for name in given.keys() - _OF_CHECKS}
    settings = _settled(Settings(checks, notes=tuple(_near_misses(environ)), **others))
    if mistakes := mistakes or list(_combinations(settings)):
        raise SettingsError(mistakes)
    return settings


def _said(setting: Setting, flags: Mapping[str, str], environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Where it was said, and what. A chart that has nothing to say sets the variable to nothing."""
    if setting.flag in flags:
        yield f"--{setting.flag}", flags[setting.flag]
    elif (text := environ.get(setting.variable, "")) and not _SERVICE_ADDRESS.fullmatch(text):
        yield setting.variable, text


def _written(environ: Mapping[str, str], mistakes: list[str], *, files: bool) -> reading.Settings:
    defaults: sources.Source = ("defaults", {"checkTimeoutSeconds": _CHECK_SECONDS})
    try:
        written = sources.written(environ) if files else sources.in_variable(environ)
        return reading.gather([defaults, *written])
    except SettingsError as why:
        mistakes.extend(why.mistakes)
        return reading.Settings()


def _settled(settings: Settings) -> Settings:
    """With nothing left to be looked up elsewhere."""
    name = settings.node_name or (DRY_RUN_NODE if settings.dry_run else "")
    port = settings.checks.connectivity_port or settings.metrics_port
    return replace(settings, node_name=name, checks=settings.checks._replace(connectivity_port=port))


def _combinations(settings: Settings) -> Iterator[str]:
    checks = settings.checks
    if not settings.node_name:
        yield "--node-name (NODE_NAME) is not set; a pod sets it from spec.nodeName, and --dry-run does without"
    if checks.check_timeout_seconds > checks.timeout_seconds:
        yield (
            f"--check-timeout (CHECK_TIMEOUT) is {checks.check_timeout_seconds:g} s, and must not be more than "
            f"--initial-timeout (INITIAL_TIMEOUT), {checks.timeout_seconds:g} s"
        )
    if settings.check_interval < _SHORTEST_INTERVAL:
        yield (
            f"--check-interval (CHECK_INTERVAL) is {settings.check_interval:g} s, and must be at least "
            f"{_SHORTEST_INTERVAL} s: every check asks the API server and DNS, on every node"
        )
    if checks.connectivity_matrix and not checks.connectivity_port:
        yield "--metrics-port (METRICS_PORT) is 0, and must be the port that other nodes connect to, such as 8080"


def _near_misses(environ: Mapping[str, str]) -> Iterator[str]:
    """Of a ConfigMap with a misspelt key nothing else would tell."""
    known = [setting.variable for setting in SETTINGS]
    beginnings = {name[:2] for name in known}
    for name in sorted(environ.keys() - set(known)):
        is_suspect = name[:2] in beginnings and not _NOT_FOR_US.fullmatch(name)
        if is_suspect and (near := nearest(name, known, _CLOSE)):
            yield f"{name} is not read; did you mean {near}?"


def nearest(word: str, words: Iterable[str], cutoff: float = 0.6) -> str | None:
    import difflib  # noqa: PLC0415  only those who mistype pay for it

    return next(iter(difflib.get_close_matches(word, list(words), n=1, cutoff=cutoff)), None)


def default(setting: Setting) -> str:
    """What holds if nothing is said, as one would say it."""
    checks = reading.Settings()._replace(check_timeout_seconds=_CHECK_SECONDS)
    value = getattr(checks if setting.field in _OF_CHECKS else Settings(), setting.field, "")
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}s" if setting.read is reading.seconds else str(value)


def rules(settings: Settings) -> Rules:
    interval = timedelta(seconds=settings.check_interval)
    continuous = settings.mode == "continuous"
    policy = OwnPolicy(
        gates=(Gate(settings.taint_key, settings.taint_effect),),
        label=settings.verified_label,
        label_value=settings.verified_label_value,
        max_failures=settings.max_retries + 1,
        exponential=settings.retry_backoff == "exponential",
        slow_retry=interval if continuous else _SLOW_RETRY,
    )
    return Rules(
        policy=policy,
        gate=Taint(settings.taint_key, settings.taint_effect, settings.taint_value),
        initial_timeout=timedelta(seconds=settings.checks.timeout_seconds),
        continuous=continuous,
        interval=interval,
        threshold=settings.failure_threshold,
        look=min(interval, _LOOK_WHILE_WATCHING) if continuous else _LOOK,
    )
