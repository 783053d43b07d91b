"""The command `validate`. Editors and hooks run it often, so it imports no module that only other commands need."""

from types import SimpleNamespace

from kubekit import durations
from kubernetes_daemonset.cli import common, exit_codes, output
from kubernetes_daemonset.errors import ManifestError, UnreadableFileError, first
from kubernetes_daemonset.validation.validate import errors


def run(_verb: str, arguments: SimpleNamespace) -> int:
    try:
        return _validate(arguments)
    except UnreadableFileError as error:
        return common.report_invalid(error)


def _validate(arguments: SimpleNamespace) -> int:
    count = 0
    try:
        loaded = common.read(arguments)
        count = len(loaded)
        diagnostics = common.findings(loaded)
    except UnreadableFileError:
        raise
    except ManifestError as error:
        diagnostics = error.diagnostics
    wrong = len(errors(diagnostics))
    if arguments.output == "json":
        print(output.as_json(output.diagnostics_as_json(first(diagnostics))))
    else:
        for diagnostic in first(diagnostics):
            print(output.format_diagnostic(diagnostic))
        print(f"{durations.plural(wrong, 'error')}" if wrong else f"{durations.plural(count, 'manifest')} valid")
    return exit_codes.FOUND if wrong else exit_codes.OK
