"""The process of DaemonSet mode: from the command line to its end.

On SIGTERM the checks that run are given up, what was decided is told, and that is all. Whatever may hang then is ended
before the kubelet would have to.
"""

import math
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NoReturn

from kube_node_ready import __version__, log
from kube_node_ready.checks import access
from kube_node_ready.checks.access import NoAccessError
from kube_node_ready.checks.model import Here
from kube_node_ready.checks.settings import SettingsError
from kube_node_ready.daemonset import flags, reach
from kube_node_ready.daemonset.agent import Agent
from kube_node_ready.daemonset.api import CALL_SECONDS, Api
from kube_node_ready.daemonset.clock import Clock
from kube_node_ready.daemonset.metrics import Metrics
from kube_node_ready.daemonset.model import Round, RunChecks
from kube_node_ready.daemonset.node import OwnNode
from kube_node_ready.daemonset.place import NotProvedError, Place
from kube_node_ready.daemonset.reach import InPod, Reach
from kube_node_ready.daemonset.rounds import Rounds
from kube_node_ready.daemonset.settings import Settings, load, rules
from kube_node_ready.leave import leave
from kube_node_ready.serve import STALLED_SECONDS, Health, Server

EXIT_PASSED, EXIT_FAILED, EXIT_CONFIGURATION, EXIT_NO_ACCESS, EXIT_NOT_PROVED = 0, 1, 2, 3, 4
EXIT_UNEXPECTED, EXIT_INTERRUPTED = 10, 130
_LAST_SECONDS = 25
_A_WHILE = 3600
_MOST_CALLS = 4
_MOST_STAGES = 2
Folder = str | os.PathLike[str]


def main(words: Sequence[str]) -> NoReturn:
    leave(run(words, os.environ))


def run(words: Sequence[str], environ: Mapping[str, str], *, folder: Folder = access.SERVICE_ACCOUNT) -> int:
    """All of it but the exit. `folder` is where the ServiceAccount is mounted."""
    try:
        settings = load(flags.parse(words), environ)
        log.configure(settings.checks.log_level, settings.checks.log_format)
        for note in settings.notes:
            log.log("Settings", level="warn", note=note)
        found = reach.choose(settings, folder)
        if settings.dry_run:
            return dry_run(settings, found)
        return work(settings, found, environ) if isinstance(found, InPod) else outside_a_pod(settings, found)
    except SettingsError as why:
        return _ended(EXIT_CONFIGURATION, _listed(why))
    except NoAccessError as why:
        return _ended(EXIT_NO_ACCESS, f"there is no way to Kubernetes: {why}")
    except NotProvedError as why:
        return _ended(EXIT_NOT_PROVED, f"nothing is changed: {why}")
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except OSError as why:
        return _ended(EXIT_UNEXPECTED, str(why.strerror or why))
    except Exception as why:  # noqa: BLE001  a mistake of ours: the next process starts over from what the cluster shows
        return _ended(EXIT_UNEXPECTED, f"unexpected {type(why).__name__}: {why}")


def dry_run(settings: Settings, found: Reach) -> int:
    """In a pod it stays until it is stopped: a kubelet would only start it again, and again."""
    if not isinstance(found, InPod):
        return _check_once(_rounds(settings, found, Clock()), settings, Metrics(settings.node_name))
    clock, health, metrics = Clock(), Health(math.inf), Metrics(settings.node_name)
    health.not_ready = lambda: None
    rounds = _rounds(settings, found, clock)
    with _stopped_by_signals(clock.stop, rounds.stop), _served(settings, health, metrics):
        code = _check_once(rounds, settings, metrics)
        while not clock.stopping:
            clock.wait(_A_WHILE)
    return code


def outside_a_pod(settings: Settings, found: Reach) -> int:
    """A dry run that was not asked for. What is checked here is this machine, and not the node."""
    note = (
        "this runs outside a pod, so it proves nothing about the node: it is a dry run. Only a pod on the node opens \
its gate"
    )
    log.log("Run outside a pod", level="warn", node=settings.node_name, note=note)
    code = _check_once(_rounds(settings, found, Clock()), settings, Metrics(settings.node_name))
    return code if code == EXIT_FAILED else _ended(EXIT_NOT_PROVED, f"nothing is changed: {note}")


def _check_once(rounds: Rounds, settings: Settings, metrics: Metrics) -> int:
    done = rounds.run(RunChecks(attempt=1))
    if done:
        metrics.checked(done)
    log.log("Dry run: nothing is changed", node=settings.node_name, would=_consequence(done))
    return EXIT_PASSED if done and not done.failed else EXIT_FAILED


def _consequence(done: Round | None) -> str:
    if done and done.skipped and not done.failed and done.skipped < len(done.report.checks):
        return "leave the gate closed: a skipped check proves nothing"
    return "open the gate" if done and done.passed else "leave the gate closed, and try again"


def work(settings: Settings, found: InPod, environ: Mapping[str, str]) -> int:
    """Until SIGTERM or SIGINT."""
    agent = assemble(settings, found, environ.get("POD_NAME") or socket.gethostname(), Clock())
    health = Health(_patience(settings))
    health.not_ready = agent.not_ready
    with _stopped_by_signals(agent.stop), _served(settings, health, agent.metrics):
        log.log("Started", version=__version__, node=settings.node_name, mode=settings.mode)
        agent.live(health.beat)
    return EXIT_PASSED


def assemble(settings: Settings, found: InPod, instance: str, clock: Clock) -> Agent:
    """`instance` is the pod that Events come from."""
    decided, api = rules(settings), Api(found.access)
    node = OwnNode(api, settings.node_name, decided, instance, clock.now)
    place = Place(api, lambda: found.access().token, settings.node_name)
    return Agent(decided, node, place, _rounds(settings, found, clock), clock, Metrics(settings.node_name))


def _rounds(settings: Settings, found: Reach, clock: Clock) -> Rounds:
    return Rounds(settings.checks, Here(settings.node_name, settings.namespace), found, clock.now)


def _patience(settings: Settings) -> float:
    """After so many seconds without a turn of the loop, something hangs that never should."""
    wait = rules(settings).look.total_seconds()
    checks = min(_MOST_STAGES * settings.checks.check_timeout_seconds, settings.checks.timeout_seconds)
    return STALLED_SECONDS + wait + checks + _MOST_CALLS * CALL_SECONDS


@contextmanager
def _served(settings: Settings, health: Health, metrics: Metrics) -> Iterator[None]:
    registry = metrics.registry if settings.enable_metrics else None
    server = Server(settings.metrics_port, health, registry, "--metrics-port (METRICS_PORT)")
    server.start()
    log.log("Serving /healthz, /readyz and /metrics", ports=[server.port])
    try:
        yield
    finally:
        server.stop()


@contextmanager
def _stopped_by_signals(*stops: Callable[[], None]) -> Iterator[None]:
    """Before anyone can see us: a signal that nobody heeds is lost on the first process of a container.

    By a thread that the arrival of the signal itself wakes: Python's own handlers wait for as long as the main thread
    is in a call of libc's, and a signal that comes right before such a call does not end it. Some time later the thread
    ends us, whatever hangs; an alarm would do nothing to the first process of a container.
    """
    bell, ringer = socket.socketpair()
    ringer.settimeout(0)
    is_over = threading.Event()

    def wait() -> None:
        with bell:
            if not bell.recv(1):
                return
            for stop in stops:
                stop()
            if not is_over.wait(_LAST_SECONDS):
                os._exit(EXIT_UNEXPECTED)

    threading.Thread(target=wait, daemon=True).start()
    rung_before = signal.set_wakeup_fd(ringer.fileno())
    before = {number: signal.signal(number, _ignored) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        is_over.set()
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(rung_before)
        ringer.close()


def _ignored(*_: object) -> None:
    """Not SIG_IGN, which would not ring."""


def _listed(why: SettingsError) -> str:
    if len(why.mistakes) == 1:
        return why.mistakes[0]
    return f"{len(why.mistakes)} mistakes in the settings:" + "".join(f"\n  - {mistake}" for mistake in why.mistakes)


def _ended(code: int, sentence: str) -> int:
    sys.stderr.write(f"kube-node-ready: {sentence}\n")
    return code
