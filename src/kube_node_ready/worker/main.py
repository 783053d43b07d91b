"""The worker: run every check once, leave a report in the termination message, and say the verdict by the exit code.

Standard library only, and what a passing run does not need is imported where it is needed: this process starts on
every new node.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from kube_node_ready import __version__, log
from kube_node_ready.checks import access, files, plan, report, sources
from kube_node_ready.checks.access import NoAccessError
from kube_node_ready.checks.model import SKIPPED, Here, Job, Result
from kube_node_ready.checks.run import Limits, Runner
from kube_node_ready.checks.settings import Settings, SettingsError
from kube_node_ready.checks.telling import Teller
from kube_node_ready.leave import leave

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

TERMINATION_LOG = "/dev/termination-log"
EXIT_PASSED, EXIT_FAILED, EXIT_CONFIGURATION, EXIT_NO_ACCESS, EXIT_NOT_PROVED = 0, 1, 2, 3, 4
EXIT_UNEXPECTED, EXIT_STOPPED = 10, 143
_MOST_DIGITS = 10
_HELP = f"""\
Proves from inside a pod that this node's network works, and says so by its exit code.

what it checks, all at the same time:
  dns       the names of dnsTestDomains resolve; the API Service's name leads to the API Service
  api       the API server's certificate is the cluster's, and it accepts our token
  network   TCP to the API Service, to networkTargets, and to every ready endpoint of dnsService
  services  the Services of services exist and have ready endpoints
  payload   an answer of at least 64 KB arrives whole
  clock     this node's clock agrees with the API server's
  matrix    (only with connectivityMatrix) TCP to a sample of pods on other nodes

settings, the strongest last:
  the file that {sources.FILE_VARIABLE} names ({sources.FILE}), in YAML or JSON
  {sources.JSON_VARIABLE}, a JSON object
  {", ".join(sources.VARIABLES)}
NODE_NAME is required, and POD_NAMESPACE is logged. With a POD_NAME that ends with an attempt number above 1,
dnsSamplesAfterFailure is used instead of dnsSamples. The API server is found as in every pod, by
KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT and the ServiceAccount's mounted token. Outside a pod KUBECONFIG takes
their place, and what only a pod can check is skipped. A skipped check proves nothing, so such a run does not verify the
node.

exit codes:
  0   every check passed; with --dry-run, no check failed
  1   a check failed; the termination message says which, and why
  2   the settings are wrong
  3   there is no way to talk to Kubernetes: no token, no certificate authority, no address
  4   no check failed, but some could not be tried from here: the node is not verified
  10  something unexpected
  143 stopped by SIGTERM before every check ended, which says nothing about the node
"""


def main(argv: Sequence[str] | None = None) -> NoReturn:
    arguments = sys.argv[1:] if argv is None else list(argv)
    dry_run = _wants_dry_run(arguments) if arguments else False
    leave(work(os.environ, dry_run=dry_run))


def _wants_dry_run(arguments: list[str]) -> bool:
    import argparse  # noqa: PLC0415  in a pod there are no arguments

    from kube_node_ready import version  # noqa: PLC0415

    parser = argparse.ArgumentParser(
        prog="kube-node-ready-worker", description=_HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    version.add_flag(parser)
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="the same checks and exit codes, but NODE_NAME is not needed and the report goes to the log",
    )
    return bool(parser.parse_args(arguments).dry_run)


def work(
    environ: Mapping[str, str], *, folder: str | os.PathLike[str] = access.SERVICE_ACCOUNT, dry_run: bool = False
) -> int:
    """All of it but the exit. `folder` is where the ServiceAccount is mounted."""
    asked_for_dry_run = dry_run
    node = environ.get("NODE_NAME", "")
    results: list[Result] = []
    error = ""
    try:
        settings = sources.read(environ)
        if attempt(environ.get("POD_NAME", "")) > 1:
            settings = settings.after_failure()
        log.configure(settings.log_level, settings.log_format)
        dry_run = dry_run or settings.dry_run
        node = node or _nodes_name(dry_run=dry_run)
        results, stopped = _check(settings, environ, folder)
        code = _verdict(results, stopped=stopped, may_skip=asked_for_dry_run)
        if code == EXIT_NOT_PROVED:
            error = "a check could not be tried from here, and a skipped check proves nothing"
    except SettingsError as why:
        code, error = EXIT_CONFIGURATION, str(why)
    except NoAccessError as why:
        code, error = EXIT_NO_ACCESS, str(why)
    except Exception as why:  # noqa: BLE001  a bug must leave a report, too
        code, error = EXIT_UNEXPECTED, f"unexpected {type(why).__name__}: {why}"
        _log_traceback()
    if error:
        log.log("Worker cannot check this node", level="error", node=node, error=error, exit_code=code)
    _leave(report.encode(node, results, error), environ, dry_run=dry_run)
    return code


def attempt(pod_name: str) -> int:
    """Which attempt a worker pod is for: the number at the end of its name. 1 if it has none.

    Every attempt but a node's first follows a failed one, or a release that is being confirmed again.
    """
    number = pod_name.rpartition("-")[2]
    return int(number) if len(number) < _MOST_DIGITS and number.isascii() and number.isdecimal() else 1


def _verdict(results: list[Result], *, stopped: bool, may_skip: bool) -> int:
    """The exit code, on which the controller opens gates. What was skipped opens none.

    Only the flag --dry-run, which the controller never passes, makes an exception: settings come from a ConfigMap.
    """
    if not all(result.ok for result in results):
        return EXIT_STOPPED if stopped else EXIT_FAILED
    if not may_skip and any(result.verdict == SKIPPED for result in results):
        return EXIT_NOT_PROVED
    return EXIT_PASSED


def _nodes_name(*, dry_run: bool) -> str:
    if dry_run:
        return "dry-run-node"
    raise SettingsError(["NODE_NAME is not set; the pod must set it from spec.nodeName"])


def _check(settings: Settings, environ: Mapping[str, str], folder: str | os.PathLike[str]) -> tuple[list[Result], bool]:
    """The results, and whether they are incomplete because the pod is being stopped."""
    begun = time.monotonic()
    node, namespace = environ.get("NODE_NAME", ""), environ.get("POD_NAMESPACE", "")
    if (path := environ.get("KUBECONFIG", "")) and not environ.get("KUBERNETES_SERVICE_HOST", ""):
        jobs = _outside_jobs(settings, path)
    else:
        jobs = plan.in_pod(settings, access.in_pod(environ, folder), Here(node, namespace))
    runner = Runner(Limits(settings.check_timeout_seconds, settings.timeout_seconds), Teller())
    before = signal.signal(signal.SIGTERM, lambda *_: runner.stop())
    log.log("Verification started", node=node, namespace=namespace, version=__version__)
    try:
        results = runner.run(jobs)
    finally:
        signal.signal(signal.SIGTERM, before)
    failed = list(dict.fromkeys(result.name for result in results if not result.ok))
    duration = f"{time.monotonic() - begun:.3f}s"
    skipped = sum(result.verdict == SKIPPED for result in results)
    if failed:
        log.log("Checks failed", level="error", node=node, failed=failed, total_duration=duration)
    elif skipped:
        log.log("Checks passed, some skipped", level="warn", node=node, skipped=skipped, total_duration=duration)
    else:
        log.log("All checks passed", node=node, total_duration=duration)
    return results, runner.stopped


def _outside_jobs(settings: Settings, paths: str) -> tuple[Job, ...]:
    from kube_node_ready.checks import kubeconfig  # noqa: PLC0415  no pod needs it, nor YAML

    return plan.on_this_machine(settings, kubeconfig.load(kubeconfig.first_file(paths)), "")


def _leave(words: bytes, environ: Mapping[str, str], *, dry_run: bool) -> None:
    """The verdict is the exit code; without the report only its details are lost."""
    if dry_run:
        log.log("Report", report=words.decode())
        return
    path = environ.get("TERMINATION_LOG", "") or TERMINATION_LOG
    try:
        files.write(path, words)
    except OSError as why:
        log.log("Report cannot be written", level="warn", path=path, error=why.strerror)


def _log_traceback() -> None:
    if log.enabled("debug"):
        import traceback  # noqa: PLC0415

        log.log("Traceback", level="debug", traceback=traceback.format_exc())
