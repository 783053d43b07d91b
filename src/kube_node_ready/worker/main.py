"""Run every check once, write a report to the termination message, and exit with the verdict.

Standard library only. Modules that a passing run does not need are imported on demand, because this process starts on
every new node.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from kube_node_ready import __version__, log
from kube_node_ready.api.contract import SERVICE_ACCOUNT
from kube_node_ready.api.verdict import Verdict
from kube_node_ready.checks import access, files, plan, report
from kube_node_ready.checks.access import NoAccessError
from kube_node_ready.checks.check import Check, PodIdentity, Result
from kube_node_ready.checks.log_observer import LoggingObserver
from kube_node_ready.checks.runner import Limits, Runner
from kube_node_ready.exit_codes import ExitCode
from kube_node_ready.exit_now import exit_now
from kube_node_ready.settings import worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

    from kube_node_ready.checks.settings import Settings

TERMINATION_LOG = "/dev/termination-log"
_MOST_DIGITS = 10
_HELP = f"""\
Check from inside a pod that this node's network works. The exit code is the result.

what it checks, all at the same time:
  dns       the names of dnsTestDomains resolve; the API Service's name resolves to its address
  api       the API server's certificate is the cluster's, and it accepts the pod's token
  network   TCP to the API Service, to networkTargets, and to every ready endpoint of dnsService
  services  the Services of services exist and have ready endpoints
  payload   large requests and responses arrive whole
  clock     this node's clock agrees with the API server's
  matrix    (only with connectivityMatrix) TCP to a sample of pods on other nodes

settings; each source overrides those above it:
  the file that {worker.FILE_VARIABLE} names ({worker.FILE}), in YAML or JSON
  {worker.JSON_VARIABLE}, a JSON object
  {", ".join(field.variable for field, _ in worker.variables())}
NODE_NAME is required, and POD_NAMESPACE is logged. With a POD_NAME that ends with an attempt number above 1,
dnsSamplesAfterFailure is used instead of dnsSamples. The API server is found as in every pod, by
KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT and the ServiceAccount's mounted token. If KUBECONFIG names an existing
file, the API server of that kubeconfig is used instead, also in a pod. Outside a pod, checks that only a pod can run
are skipped. A skipped check proves nothing, so such a run does not verify the node.

exit codes:
  0   every check passed; with --dry-run, no check failed
  1   a check failed; the termination message has the check and the reason
  2   a setting is invalid
  3   the API server is not reachable: no token, no certificate authority or no address
  4   no check failed, but some could not be tried from here: the node is not verified
  10  unexpected error
  143 stopped by SIGTERM before every check ended, which proves nothing about the node
"""


def main(argv: Sequence[str] | None = None) -> NoReturn:
    arguments = sys.argv[1:] if argv is None else list(argv)
    dry_run = _wants_dry_run(arguments) if arguments else False
    exit_now(work(os.environ, dry_run=dry_run))


def _wants_dry_run(arguments: list[str]) -> bool:
    import argparse  # noqa: PLC0415  in a pod there are no arguments

    from kube_node_ready import version  # noqa: PLC0415  as above
    from kube_node_ready.settings.flags import Flag, add_to_help, parse  # noqa: PLC0415  as above
    from kubekit.diagnostics import DiagnosticsError  # noqa: PLC0415  as above

    parser = argparse.ArgumentParser(
        prog="kube-node-ready-worker", description=_HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    version.add_flag(parser)
    about = "run the same checks with the same exit codes, but without NODE_NAME, and write the report to the log"
    dry_run = Flag("dry-run", "", about)
    add_to_help(parser, [dry_run])
    flags, mistakes = parse(parser, arguments, [dry_run])
    if mistakes:
        sys.stderr.write(f"kube-node-ready-worker: {DiagnosticsError(mistakes).listed('command line')}\n")
        sys.exit(ExitCode.INVALID)
    return dry_run.name in flags


def work(environ: Mapping[str, str], *, folder: str | os.PathLike[str] = SERVICE_ACCOUNT, dry_run: bool = False) -> int:
    """Run the worker, and return its exit code. `folder` is where the ServiceAccount is mounted."""
    asked_for_dry_run = dry_run
    node = environ.get("NODE_NAME", "")
    results: list[Result] = []
    failure = ""
    try:
        settings = worker.load(environ)
        if attempt(environ.get("POD_NAME", "")) > 1:
            settings = settings.after_failure()
        log.configure(settings.log_level, settings.log_format)
        dry_run = dry_run or settings.dry_run
        node = node or _nodes_name(dry_run=dry_run)
        results, stopped = _check(settings, environ, folder)
        code = _verdict(results, stopped=stopped, may_skip=asked_for_dry_run)
        if code == ExitCode.NOT_PROVED:
            failure = "a check could not be tried from here, and a skipped check proves nothing"
    except NoAccessError as error:
        code, failure = ExitCode.NO_ACCESS, str(error)
    except Exception as error:  # noqa: BLE001  a bug must leave a report, too
        code, failure = _explain(error)
    if failure:
        log.log("Failed to run checks", level="error", node=node, error=failure, exit_code=code)
    _write_report(report.encode(node, results, failure), environ, dry_run=dry_run)
    return code


def attempt(pod_name: str) -> int:
    """Return the attempt of a worker pod: the number at the end of its name, or 1.

    Every attempt but a node's first follows a failed one, or a release that is being confirmed again.
    """
    number = pod_name.rpartition("-")[2]
    return int(number) if len(number) < _MOST_DIGITS and number.isascii() and number.isdecimal() else 1


def _verdict(results: list[Result], *, stopped: bool, may_skip: bool) -> int:
    """Return the exit code, which decides whether the controller opens the gate. A skipped check does not.

    Only the flag --dry-run, which the controller never passes, makes an exception: settings come from a ConfigMap.
    """
    if not all(result.ok for result in results):
        return ExitCode.STOPPED if stopped else ExitCode.FAILED
    if not may_skip and any(result.verdict is Verdict.SKIPPED for result in results):
        return ExitCode.NOT_PROVED
    return ExitCode.OK


def _nodes_name(*, dry_run: bool) -> str:
    if dry_run:
        return "dry-run-node"
    from kubekit.diagnostics import DiagnosticsError, missing  # noqa: PLC0415  only a failure pays for it

    raise DiagnosticsError([missing("NODE_NAME", "the node's name, which the pod has from spec.nodeName")])


def _explain(error: Exception) -> tuple[int, str]:
    from kubekit.diagnostics import DiagnosticsError  # noqa: PLC0415  only a failure pays for it

    if isinstance(error, DiagnosticsError):
        return ExitCode.INVALID, str(error)
    _log_traceback()
    return ExitCode.UNEXPECTED, f"unexpected {type(error).__name__}: {error}"


def _check(settings: Settings, environ: Mapping[str, str], folder: str | os.PathLike[str]) -> tuple[list[Result], bool]:
    """Run the checks. Return the results, and whether they are incomplete because the pod is being stopped."""
    started = time.monotonic()
    node, namespace = environ.get("NODE_NAME", ""), environ.get("POD_NAMESPACE", "")
    paths, in_pod = environ.get("KUBECONFIG", ""), environ.get("KUBERNETES_SERVICE_HOST", "")
    if paths and (access.has_kubeconfig(paths) or not in_pod):
        checks = _kubeconfig_jobs(settings, paths, environ, PodIdentity(node, namespace))
    else:
        checks = plan.in_pod(settings, access.in_pod(environ, folder), PodIdentity(node, namespace))
    runner = Runner(Limits(settings.check_timeout_seconds, settings.timeout_seconds), LoggingObserver())
    before = signal.signal(signal.SIGTERM, lambda *_: runner.stop())
    log.log("Verification started", node=node, namespace=namespace, version=__version__)
    try:
        results = runner.run(checks)
    finally:
        signal.signal(signal.SIGTERM, before)
    failed = list(dict.fromkeys(result.name for result in results if not result.ok))
    duration = f"{time.monotonic() - started:.3f}s"
    skipped = sum(result.verdict is Verdict.SKIPPED for result in results)
    if failed:
        log.log("Checks failed", level="error", node=node, failed=failed, total_duration=duration)
    elif skipped:
        log.log("Checks passed, some skipped", level="warn", node=node, skipped=skipped, total_duration=duration)
    else:
        log.log("All checks passed", node=node, total_duration=duration)
    return results, runner.stopped


def _kubeconfig_jobs(
    settings: Settings, paths: str, environ: Mapping[str, str], here: PodIdentity
) -> tuple[Check, ...]:
    """Return the checks with the API server of the kubeconfig. In a pod, none is left out."""
    from kube_node_ready.checks import kubeconfig  # noqa: PLC0415  no ordinary pod needs it, nor YAML

    access = kubeconfig.load(paths)
    kubeconfig.warn_if_insecure(access)
    if environ.get("KUBERNETES_SERVICE_HOST", ""):
        return plan.in_pod(settings, access, here)
    return plan.on_this_machine(settings, access, "")


def _write_report(content: bytes, environ: Mapping[str, str], *, dry_run: bool) -> None:
    """Write the report. The exit code is the verdict, so without the report only details are lost."""
    if dry_run:
        log.log("Report created", report=content.decode())
        return
    path = environ.get("TERMINATION_LOG", "") or TERMINATION_LOG
    try:
        files.write(path, content)
    except OSError as error:
        log.log("Failed to write report", level="warn", path=path, error=error.strerror)


def _log_traceback() -> None:
    if log.enabled("debug"):
        import traceback  # noqa: PLC0415

        log.log("Run failed unexpectedly", level="debug", traceback=traceback.format_exc())
