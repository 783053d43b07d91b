"""Run the process of DaemonSet mode: settings, signals, probe server, shutdown.

On SIGTERM, running checks are canceled and decisions that were already made are announced. If anything hangs then, the
process exits before the kubelet would have to kill it.
"""

import math
import os
import signal
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NoReturn

from kube_node_ready import __version__, log
from kube_node_ready.agent import cluster_access, flags
from kube_node_ready.agent.agent import Agent
from kube_node_ready.agent.api import CALL_SECONDS, Api
from kube_node_ready.agent.check_runs import CheckRunner
from kube_node_ready.agent.cluster_access import ClusterAccess, InCluster
from kube_node_ready.agent.metrics import Metrics
from kube_node_ready.agent.model import CheckRun, RunChecks
from kube_node_ready.agent.node_client import NodeClient
from kube_node_ready.agent.place import NotProvedError, Place, boot_id
from kube_node_ready.agent.settings import rules
from kube_node_ready.agent.stop_clock import Clock
from kube_node_ready.api.contract import SERVICE_ACCOUNT
from kube_node_ready.api.verdict import Verdict
from kube_node_ready.checks.access import NoAccessError
from kube_node_ready.checks.check import PodIdentity
from kube_node_ready.exit_codes import ExitCode
from kube_node_ready.exit_now import exit_now
from kube_node_ready.probes import STALLED_SECONDS, Health, ProbeServer
from kube_node_ready.settings.agent import Settings, load
from kubekit.diagnostics import DiagnosticsError

_LAST_SECONDS = 25
_A_WHILE = 3600
_MOST_CALLS = 4
_MOST_STAGES = 2
Folder = str | os.PathLike[str]


def main(words: Sequence[str]) -> NoReturn:
    exit_now(run(words, os.environ))


def run(words: Sequence[str], environ: Mapping[str, str], *, folder: Folder = SERVICE_ACCOUNT) -> int:
    """Run the process, and return its exit code. `folder` is where the ServiceAccount is mounted."""
    try:
        arguments = flags.parse(words)
        settings = load(arguments.flags, environ, known=arguments.diagnostics)
        log.configure(settings.checks.log_level, settings.checks.log_format)
        for warning in settings.warnings:
            log.log("Configuration accepted with warning", level="warn", reason=warning)
        access = cluster_access.choose(settings, folder)
        if settings.dry_run:
            return dry_run(settings, access)
        return work(settings, access, environ) if isinstance(access, InCluster) else outside_a_pod(settings, access)
    except DiagnosticsError as error:
        return _ended(ExitCode.INVALID, error.listed("settings"))
    except NoAccessError as error:
        return _ended(ExitCode.NO_ACCESS, f"cannot connect to the Kubernetes API: {error}")
    except NotProvedError as error:
        return _ended(ExitCode.NOT_PROVED, f"no changes made: {error}")
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except OSError as error:
        return _ended(ExitCode.UNEXPECTED, str(error.strerror or error))
    except Exception as error:  # noqa: BLE001  a bug: the next process starts from the state of the cluster
        return _ended(ExitCode.UNEXPECTED, f"unexpected {type(error).__name__}: {error}")


def dry_run(settings: Settings, access: ClusterAccess) -> int:
    """Check once. In a pod, wait until the process is stopped, or the kubelet would restart it."""
    if not isinstance(access, InCluster):
        return _check_once(_check_runner(settings, access, Clock()), settings, Metrics(settings.node_name))
    clock, health, metrics = Clock(), Health(math.inf), Metrics(settings.node_name)
    health.readiness_problem = lambda: None
    runner = _check_runner(settings, access, clock)
    with _stopped_by_signals(clock.stop, runner.stop), _probe_server(settings, health, metrics):
        code = _check_once(runner, settings, metrics)
        while not clock.stopping:
            clock.wait(_A_WHILE)
    return code


def outside_a_pod(settings: Settings, access: ClusterAccess) -> int:
    """Run a dry run with a kubeconfig: it proves nothing about a node."""
    reason = "only a pod with its ServiceAccount's token proves something about its node, so this is a dry run"
    log.log("Dry run started", level="warn", node=settings.node_name, reason=reason)
    runner, metrics = _check_runner(settings, access, Clock()), Metrics(settings.node_name)
    code = _check_once(runner, settings, metrics, on_pass=ExitCode.NOT_PROVED)
    return code if code == ExitCode.FAILED else _ended(code, f"no changes made: {reason}")


def _check_once(runner: CheckRunner, settings: Settings, metrics: Metrics, *, on_pass: int = ExitCode.OK) -> int:
    run = runner.run(RunChecks(attempt=1))
    if run:
        metrics.checked(run)
    code = _dry_run_code(run)
    code = on_pass if code == ExitCode.OK else code
    log.log("Dry run: no changes made", node=settings.node_name, would=_consequence(run))
    log.log("Dry run completed", level="error" if code == ExitCode.FAILED else "info", **_summary(run), exit_code=code)
    return code


def _dry_run_code(run: CheckRun | None) -> int:
    """Return the exit code. Skipped checks neither pass nor fail. If all were skipped, nothing is proved."""
    if run is None or run.failed:
        return ExitCode.FAILED
    return ExitCode.OK if set(run.verdicts) - {Verdict.SKIPPED} else ExitCode.NOT_PROVED


def _summary(run: CheckRun | None) -> dict[str, object]:
    """Count targets that passed, failed and were skipped, and name the checks that failed."""
    if run is None:
        return {}
    count: Counter[Verdict] = Counter(run.verdicts)
    count[Verdict.FAILED] += count[Verdict.INCONCLUSIVE]
    names = [check.name for check in run.report.by_check if not check.ok]
    shown_verdicts = (Verdict.PASSED, Verdict.FAILED, Verdict.SKIPPED)
    shown: dict[str, object] = {verdict.value: count[verdict] for verdict in shown_verdicts}
    return shown | ({"failed_checks": names} if names else {})


def _consequence(run: CheckRun | None) -> str:
    if run and run.skipped and not run.failed:
        return "leave the gate closed: a skipped check proves nothing"
    return "open the gate" if run and run.passed else "leave the gate closed, and try again"


def work(settings: Settings, access: InCluster, environ: Mapping[str, str]) -> int:
    """Run the agent until SIGTERM or SIGINT."""
    agent = assemble(settings, access, environ.get("POD_NAME") or socket.gethostname(), Clock())
    health = Health(_stall_seconds(settings))
    health.readiness_problem = agent.readiness_problem
    with _stopped_by_signals(agent.stop), _probe_server(settings, health, agent.metrics):
        log.log("Agent started", version=__version__, node=settings.node_name, mode=settings.mode)
        agent.run(health.beat)
    return ExitCode.OK


def assemble(settings: Settings, access: InCluster, instance: str, clock: Clock) -> Agent:
    """Return the agent of these settings. `instance` is the pod that Events come from."""
    decided, api = rules(settings), Api(access.access)
    node = NodeClient(api, settings.node_name, decided, instance, clock.now)
    place = Place(api, lambda: access.access().token, settings.node_name, boot_id)
    return Agent(decided, node, place, _check_runner(settings, access, clock), clock, Metrics(settings.node_name))


def _check_runner(settings: Settings, access: ClusterAccess, clock: Clock) -> CheckRunner:
    return CheckRunner(settings.checks, PodIdentity(settings.node_name, settings.namespace), access, clock.now)


def _stall_seconds(settings: Settings) -> float:
    """Return after how many seconds without a step the process counts as stalled."""
    wait = rules(settings).poll_interval.total_seconds()
    checks = min(_MOST_STAGES * settings.checks.check_timeout_seconds, settings.checks.timeout_seconds)
    return STALLED_SECONDS + wait + checks + _MOST_CALLS * CALL_SECONDS


@contextmanager
def _probe_server(settings: Settings, health: Health, metrics: Metrics) -> Iterator[None]:
    registry = metrics.registry if settings.enable_metrics else None
    server = ProbeServer(settings.metrics_port, health, registry, "--metrics-port (METRICS_PORT)")
    server.start()
    log.log("Probe server started", ports=[server.port])
    try:
        yield
    finally:
        server.stop()


@contextmanager
def _stopped_by_signals(*stops: Callable[[], None]) -> Iterator[None]:
    """Call `stops` on SIGTERM or SIGINT. Enter it early: a container's first process loses unhandled signals.

    The signal wakes a thread directly: Python's own handlers wait while the main thread is in a call of libc, and a
    signal right before such a call does not interrupt it. If anything hangs, the thread ends the process some time
    later; SIGALRM would have no effect on the first process of a container.
    """
    reader, waker = socket.socketpair()
    waker.settimeout(0)
    is_over = threading.Event()

    def wait() -> None:
        with reader:
            if not reader.recv(1):
                return
            for stop in stops:
                stop()
            if not is_over.wait(_LAST_SECONDS):
                os._exit(ExitCode.UNEXPECTED)

    threading.Thread(target=wait, daemon=True).start()
    previous_fd = signal.set_wakeup_fd(waker.fileno())
    before = {number: signal.signal(number, _ignored) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        is_over.set()
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(previous_fd)
        waker.close()


def _ignored(*_: object) -> None:
    """Do nothing. With SIG_IGN, the signal would not wake the thread."""


def _ended(code: int, sentence: str) -> int:
    sys.stderr.write(f"kube-node-ready: {sentence}\n")
    return code
