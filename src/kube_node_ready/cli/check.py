"""`kube-node-ready check`: run the same checks on this machine, and print the results."""

import os
import ssl
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TextIO

from kube_node_ready.api.verdict import Verdict
from kube_node_ready.checks import access, kubeconfig, plan, report
from kube_node_ready.checks.access import Access, NoAccessError
from kube_node_ready.checks.check import CHECKS, Check, PodIdentity, Result
from kube_node_ready.checks.runner import Limits, Observer, Runner
from kube_node_ready.checks.settings import Settings
from kube_node_ready.cli import words
from kube_node_ready.cli.check_flags import Options
from kube_node_ready.exit_codes import ExitCode
from kube_node_ready.settings import worker
from kubekit.diagnostics import DiagnosticsError
from kubekit.terminal import has_colors, replaced

_COLORS = {
    Verdict.PASSED: "\033[32m",
    Verdict.FAILED: "\033[31m",
    Verdict.INCONCLUSIVE: "\033[33m",
    Verdict.SKIPPED: "\033[2m",
    Verdict.NOT_APPLICABLE: "\033[2m",
}
"""As of `kube-node-ready --dry-run`."""
_NOTHING = "nothing was checked"
_PLAIN = "\033[0m"
_HEAD = ("CHECK", "TARGET", "RESULT", "MS", "WHY")


def run(options: Options) -> int:
    """Return the exit code, as the worker's: 0 nothing failed, 1 a check failed, 2 invalid setting, 3 no access."""
    environ = dict(os.environ)
    if options.config:
        environ[worker.FILE_VARIABLE] = str(options.config)
    try:
        settings = worker.load(environ)
        return check(settings, options.kubeconfig, sys.stdout, output=options.output, dry_run=options.dry_run)
    except (DiagnosticsError, NoAccessError) as error:
        sys.stderr.write(f"kube-node-ready check: {replaced(str(error))}\n")
        return ExitCode.INVALID if isinstance(error, DiagnosticsError) else ExitCode.NO_ACCESS
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED


def check(
    settings: Settings, path: Path | None, stream: TextIO, *, output: str = "table", dry_run: bool = False
) -> int:
    """Return 0 unless a check failed, and NOT_PROVED if none was run, which a dry run does not attempt."""
    limits = Limits(settings.check_timeout_seconds, settings.timeout_seconds)
    checks = _jobs(settings, path, credentials=not dry_run)
    results = Runner(limits, Observer()).run(plan.as_skipped(checks) if dry_run else checks)
    if output == "json":
        document = report.encode(os.environ.get("NODE_NAME") or os.uname().nodename, results).decode()
        stream.write(f"{words.escaped(document)}\n")
    else:
        stream.writelines(f"{line}\n" for line in lines(results, color=has_colors(stream)))
        stream.write(f"{summary(results)}\n")
    if not all(result.ok for result in results):
        return ExitCode.FAILED
    if dry_run or _has_checked(results):
        return ExitCode.OK
    sys.stderr.write(f"kube-node-ready check: {_NOTHING}: all checks were skipped\n")
    return ExitCode.NOT_PROVED


def _jobs(settings: Settings, path: Path | None, *, credentials: bool) -> tuple[Check, ...]:
    """By --kubeconfig, else by KUBECONFIG, else by the pod's ServiceAccount, else by ~/.kube/config, else nothing."""
    paths = str(path) if path else os.environ.get("KUBECONFIG", "")
    if "KUBERNETES_SERVICE_HOST" in os.environ and not path and not access.has_kubeconfig(paths):
        here = PodIdentity(os.environ.get("NODE_NAME", ""), os.environ.get("POD_NAMESPACE", ""))
        return plan.in_pod(settings, access.in_pod(os.environ), here)
    try:
        reached, reason = _access(paths, credentials=credentials)
    except NoAccessError as error:
        if path:  # an explicit kubeconfig must work
            raise
        reached, reason = None, str(error)
    return plan.on_this_machine(settings, reached, reason)


def _access(paths: str, *, credentials: bool) -> tuple[Access | None, str]:
    paths = paths or kubeconfig.usual() or ""
    if not paths:
        return None, "needs a cluster, and no ServiceAccount and no kubeconfig was found"
    access = kubeconfig.load(paths, credentials=credentials)
    if access.context.verify_mode is ssl.CERT_NONE:
        sys.stderr.write(f"warning: {kubeconfig.INSECURE} for {access.target}: insecure-skip-tls-verify is true\n")
    return access, ""


def summary(results: Sequence[Result]) -> str:
    """Return the number of results per verdict, and whether anything was checked."""
    counted = Counter(result.verdict for result in results)
    counts = ", ".join(f"{counted[verdict]} {verdict.text}" for verdict in _COLORS if counted[verdict])
    return counts if _has_checked(results) else f"{counts}: {_NOTHING}"


def _has_checked(results: Iterable[Result]) -> bool:
    return any(result.verdict not in (Verdict.SKIPPED, Verdict.NOT_APPLICABLE) for result in results)


def lines(results: Sequence[Result], *, color: bool) -> list[str]:
    in_order = sorted(results, key=lambda result: CHECKS.index(result.name))
    rows = [
        _HEAD,
        *(
            (result.name, replaced(result.target), result.verdict.text, str(result.ms), replaced(result.error))
            for result in in_order
        ),
    ]
    widths = [max(words.columns(row[column]) for row in rows) for column in range(len(_HEAD) - 1)]
    colors = ["", *(_COLORS[result.verdict] if color else "" for result in in_order)]
    return [_line(row, widths, own) for row, own in zip(rows, colors, strict=True)]


def _line(row: Sequence[str], widths: Sequence[int], color: str) -> str:
    name, target, verdict, ms, reason = row
    padding = [" " * (width - words.columns(text)) for text, width in zip(row, widths, strict=False)]
    cells = [
        name + padding[0],
        target + padding[1],
        color + verdict + padding[2] + (_PLAIN if color else ""),
        padding[3] + ms,
        reason,
    ]
    return "  ".join(cells).rstrip()
