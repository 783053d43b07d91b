"""Run a command that needs the cluster, and translate its errors into exit codes."""

from collections.abc import Mapping
from typing import Any

from kube_node_ready.api.paths import InvalidNameError
from kube_node_ready.cli import explain, pause, status, verify
from kube_node_ready.cli.cluster import ClusterLocation
from kube_node_ready.cli.ended import Ended
from kube_node_ready.cli.errors import UsageError
from kube_node_ready.cli.permissions import NoAccess, no_access
from kube_node_ready.exit_codes import ExitCode
from kube_node_ready.kube.errors import KubeError


def run(verb: str, params: Mapping[str, Any]) -> int:
    """Return the exit code. `given` holds the options and arguments by the names that they have in `program`."""
    try:
        return _run(verb, params)
    except (UsageError, InvalidNameError) as error:
        raise Ended(ExitCode.INVALID, str(error)) from error
    except NoAccess as error:
        raise Ended(ExitCode.NO_ACCESS, str(error)) from error
    except KubeError as error:
        raise Ended(ExitCode.NO_ACCESS, str(no_access(error))) from error


def _run(verb: str, params: Mapping[str, Any]) -> int:
    options = dict(params)
    place = ClusterLocation(options.pop("namespace"), options.pop("kubeconfig"), options.pop("context"))
    match verb:
        case "status":
            return status.run(
                status.Options(place, **{name: value for name, value in options.items() if value is not None})
            )
        case "explain":
            return explain.run(place, options["node"])
        case "verify":
            return verify.run(verify.Options(place, **options))
        case _:
            return pause.run(place, options["node"], paused=verb == "pause")
