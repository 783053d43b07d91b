"""`kube-node-ready check`: the same checks from this machine, for a person to read."""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from kube_node_ready.checks import access, kubeconfig, plan, report, sources
from kube_node_ready.checks.access import Access, NoAccessError
from kube_node_ready.checks.model import CHECKS, FAILED, NOT_APPLICABLE, NOT_JUDGED, PASSED, SKIPPED, Here, Job, Result
from kube_node_ready.checks.run import Limits, Observer, Runner
from kube_node_ready.checks.settings import Settings, SettingsError

_COLOURS = {
    PASSED: "\033[32m",
    FAILED: "\033[31m",
    NOT_JUDGED: "\033[33m",
    SKIPPED: "\033[2m",
    NOT_APPLICABLE: "\033[2m",
}
_PLAIN = "\033[0m"
_HEAD = ("CHECK", "TARGET", "RESULT", "MS", "WHY")


def main(argv: Sequence[str] | None = None) -> int:
    """Exit codes as the worker's: 0 nothing failed, 1 a check failed, 2 wrong settings, 3 an unusable kubeconfig."""
    parser = argparse.ArgumentParser(prog="kube-node-ready check")
    describe(parser)
    options = parser.parse_args(argv)
    environ = dict(os.environ)
    if options.config:
        environ[sources.FILE_VARIABLE] = options.config
    try:
        settings = sources.read(environ)
        return check(settings, options.kubeconfig, sys.stdout, output=options.output, dry_run=options.dry_run)
    except (SettingsError, NoAccessError) as why:
        sys.stderr.write(f"kube-node-ready check: {why}\n")
        return 2 if isinstance(why, SettingsError) else 3
    except KeyboardInterrupt:
        return 130


def describe(parser: argparse.ArgumentParser) -> None:
    """What can be said to it."""
    parser.description = (
        "Runs the worker's checks from this machine. In a pod they are the same as the worker's; elsewhere\n"
        "a kubeconfig says where the API server is, and what needs a cluster is skipped if there is none."
    )
    parser.epilog = "exit codes: 0 nothing failed, 1 a check failed, 2 wrong settings, 3 an unusable kubeconfig."
    parser.add_argument("--kubeconfig", metavar="FILE", type=Path, help="instead of KUBECONFIG or ~/.kube/config")
    parser.add_argument("--config", metavar="FILE", help="the worker's settings, in YAML or JSON")
    parser.add_argument("--dry-run", action="store_true", help="only list what would be checked, and ask nobody")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")


def check(
    settings: Settings, path: Path | None, stream: TextIO, *, output: str = "table", dry_run: bool = False
) -> int:
    """0 unless a check failed; what is skipped has not failed."""
    limits = Limits(settings.check_timeout_seconds, settings.timeout_seconds)
    jobs = _jobs(settings, path, credentials=not dry_run)
    results = Runner(limits, Observer()).run(plan.only_told(jobs) if dry_run else jobs)
    if output == "json":
        stream.write(report.encode(os.environ.get("NODE_NAME") or os.uname().nodename, results).decode() + "\n")
    else:
        stream.writelines(f"{line}\n" for line in lines(results, colour=_wants_colour(stream)))
        stream.write(f"{summary(results)}\n")
    return 0 if all(result.ok for result in results) else 1


def _jobs(settings: Settings, path: Path | None, *, credentials: bool) -> tuple[Job, ...]:
    """The kubeconfig that is asked for, else the pod's own ServiceAccount, else the usual kubeconfig, else nothing."""
    if path is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        here = Here(os.environ.get("NODE_NAME", ""), os.environ.get("POD_NAMESPACE", ""))
        return plan.in_pod(settings, access.in_pod(os.environ), here)
    try:
        found, why = _access(path, credentials=credentials)
    except NoAccessError as unusable:
        if path:  # whoever names a kubeconfig wants it used
            raise
        found, why = None, str(unusable)
    return plan.on_this_machine(settings, found, why)


def _access(path: Path | None, *, credentials: bool) -> tuple[Access | None, str]:
    place = path or kubeconfig.default()
    if place is None:
        return None, "needs a cluster, and there is neither a ServiceAccount nor a kubeconfig"
    return kubeconfig.load(place, credentials=credentials), ""


def summary(results: Sequence[Result]) -> str:
    """Whoever looks at the last line only should know whether anything was checked at all."""
    counted = Counter(result.verdict for result in results)
    told = ", ".join(f"{counted[verdict]} {verdict}" for verdict in _COLOURS if counted[verdict])
    return (
        told
        if any(result.verdict not in (SKIPPED, NOT_APPLICABLE) for result in results)
        else f"{told}: nothing was checked"
    )


def lines(results: Sequence[Result], *, colour: bool) -> list[str]:
    in_order = sorted(results, key=lambda result: CHECKS.index(result.name))
    rows = [_HEAD, *((one.name, one.target, one.verdict, str(one.ms), one.error) for one in in_order)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD) - 1)]
    return [_line(row, widths, _COLOURS.get(row[2], "") if colour else "") for row in rows]


def _line(row: Sequence[str], widths: Sequence[int], colour: str) -> str:
    name, target, verdict, ms, why = row
    cells = [
        name.ljust(widths[0]),
        target.ljust(widths[1]),
        colour + verdict.ljust(widths[2]) + (_PLAIN if colour else ""),
        ms.rjust(widths[3]),
        why,
    ]
    return "  ".join(cells).rstrip()


def _wants_colour(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR")
