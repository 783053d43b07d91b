"""Read a worker pod: whose worker it is, and its verdict.

Any name can be forged, so a pod is read as a worker only if its owner is the node that its name means, and it is not a
mirror pod. Its verdict counts only on that node (`Worker.belongs_to`) and with the fingerprint of a genuine worker
(`Worker.genuine`).
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec
from msgspec import Struct

from kube_node_ready.api.objects import ContainerStatus, Pod, Terminated
from kube_node_ready.api.record import Cause
from kube_node_ready.api.report import printable, read
from kube_node_ready.exit_codes import ExitCode
from kube_node_ready.verification.fingerprint import fingerprint
from kube_node_ready.verification.model import State, Worker
from kube_node_ready.verification.worker_pod import CONTAINER, NAME

_MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
_FINISHED = ("Succeeded", "Failed")
_STUCK_REASONS = frozenset(
    {
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
        "CrashLoopBackOff",
    }
)
"""Reasons of waiting containers that call for a new attempt."""

_EXITS: dict[int, Cause] = {
    ExitCode.FAILED: Cause.CHECKS,
    ExitCode.INVALID: Cause.MISCONFIGURED,
    ExitCode.NOT_PROVED: Cause.MISCONFIGURED,
}


_MAX_REASON_LENGTH = 500
_REPORT_BEGINS = '{"v":'
_FOREIGN_EXIT = 3
"""Our worker writes a report with this code. The Go version's worker, which finds no settings, does not."""


class WorkerStatus(Struct, frozen=True):
    """The status of a worker pod, as far as it is a verdict."""

    state: State
    cause: Cause = Cause.NONE
    reason: str = ""
    message: str = ""
    """The termination message."""


def read_worker(pod: Pod) -> Worker | None:
    """Return the worker as decisions need it, or None if the pod cannot be a worker."""
    named = NAME.fullmatch(pod.metadata.name)
    if not named or not _is_owned_by(pod, named["uid"]):
        return None
    status = _status(pod)
    return Worker(
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        node_uid=named["uid"],
        number=int(named["attempt"]),
        node_name=str(pod.spec.get("nodeName", "")),
        created=pod.metadata.creation_timestamp,
        started=_started(pod),
        awaits_images=_awaits_images(pod),
        deleting=pod.metadata.deletion_timestamp is not None,
        state=status.state,
        cause=status.cause,
        reason=printable(status.reason, _MAX_REASON_LENGTH),
        report=read(status.message) if status.message and _ran_on_its_node(pod) else None,
        finished=pod.status.phase in _FINISHED,
        fingerprint=fingerprint(pod.spec),
        generation=pod.metadata.generation,
    )


def _is_owned_by(pod: Pod, node_uid: str) -> bool:
    """Whether the Node owns the pod. A kubelet can create mirror pods of any name, whose owner is its Node."""
    owners = [(owner.kind, owner.uid) for owner in pod.metadata.owner_references]
    return owners == [("Node", node_uid)] and _MIRROR_ANNOTATION not in (pod.metadata.annotations or {})


def _ran_on_its_node(pod: Pod) -> bool:
    """Whether it ran on its node. A verdict from elsewhere does not count, so its report is not kept."""
    return [owner.name for owner in pod.metadata.owner_references] == [pod.spec.get("nodeName")]


def _status(pod: Pod) -> WorkerStatus:
    ended = _terminated(pod)
    if pod.metadata.deletion_timestamp and pod.status.phase in _FINISHED:
        # Deletion interrupts the checks, which must not count against the node.
        reason = "the worker pod was deleted before its verdict was read"
        return WorkerStatus(State.FAILED, Cause.STOPPED, reason, ended.message if ended else "")
    if pod.status.phase == "Succeeded":
        return _status_of_succeeded(ended)
    if pod.status.phase == "Failed":
        return _status_of_failed(pod, ended)
    if stuck := next(_stuck_reasons(pod), None):
        return WorkerStatus(State.FAILED, Cause.NOT_STARTED, stuck)
    if pod.status.phase == "Running":
        return WorkerStatus(State.RUNNING)
    return WorkerStatus(State.PENDING, reason=_waiting_for(pod))


def _status_of_succeeded(ended: Terminated | None) -> WorkerStatus:
    message = ended.message if ended else ""
    if ended is None or ended.exit_code != 0:
        reason = "the pod succeeded, but its worker container did not"
        return WorkerStatus(State.FAILED, Cause.STOPPED, reason, message)
    return WorkerStatus(State.PASSED, message=message)


def _status_of_failed(pod: Pod, ended: Terminated | None) -> WorkerStatus:
    status, message = pod.status, ended.message if ended else ""
    if status.reason:
        # Evicted, UnexpectedAdmissionError, …: the pod's end was not the worker's own. Neither is DeadlineExceeded: it
        # does not show whether the worker had time to run. A controller that is running decides that earlier.
        reason = f"{status.reason}: {status.message}" if status.message else status.reason
        return WorkerStatus(State.FAILED, Cause.STOPPED, reason, message)
    if failed := next(_failed_init_containers(status.init_container_statuses), None):
        return WorkerStatus(State.FAILED, Cause.CHECKS, failed, message)
    if ended is None:
        return WorkerStatus(State.FAILED, Cause.STOPPED, "worker pod failed without a termination message")
    return _status_of_exit(ended)


def _status_of_exit(ended: Terminated) -> WorkerStatus:
    report = read(ended.message)
    if report is None and ended.exit_code == _FOREIGN_EXIT:
        reason = f"worker image is not kube-node-ready's: exit code {_FOREIGN_EXIT}, no report"
        return WorkerStatus(State.FAILED, Cause.MISCONFIGURED, reason, ended.message)
    summary = report.reason if report else ""
    exit_code = f"the worker exited with code {ended.exit_code}" + (f" ({ended.reason})" if ended.reason else "")
    cause = _EXITS.get(ended.exit_code, Cause.STOPPED)
    if cause is Cause.CHECKS and (not report.blames_node if report else _is_cut(ended.message)):
        cause = Cause.NOT_JUDGED
    return WorkerStatus(State.FAILED, cause, summary or exit_code, ended.message)


def _is_cut(message: str) -> bool:
    """Whether the message is the beginning of a report. A kubelet divides 12 KiB by the number of containers."""
    return message.startswith(_REPORT_BEGINS)


def _failed_init_containers(statuses: Sequence[ContainerStatus]) -> Iterator[str]:
    for status in statuses:
        if (ended := status.state.terminated) and ended.exit_code:
            detail = f": {ended.message}" if ended.message else ""
            yield f"{status.name}: exited with code {ended.exit_code}{detail}"


def _terminated(pod: Pod) -> Terminated | None:
    return next((c.state.terminated for c in pod.status.container_statuses if c.name == CONTAINER), None)


def _started(pod: Pod) -> datetime | None:
    running = (status.state.running for status in pod.status.container_statuses if status.name == CONTAINER)
    return next((_time(state.started_at) for state in running if state), None)


def _time(text: str | None) -> datetime | None:
    """Return None for times that Python does not have, such as those of the year 10000."""
    try:
        return msgspec.convert(text, datetime | None)
    except msgspec.ValidationError:
        return None


def _awaits_images(pod: Pod) -> bool:
    """Whether the kubelet has set up the network of the pod (Kubernetes 1.29 and later), but runs no container.

    Volumes are mounted before the network is set up, so only images are left to wait for.
    """
    if pod.status.phase != "Pending" or any(status.state.running for status in pod.status.init_container_statuses):
        return False
    return any(
        condition.type == "PodReadyToStartContainers" and condition.status == "True"
        for condition in pod.status.conditions
    )


def _stuck_reasons(pod: Pod) -> Iterator[str]:
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        waiting = status.state.waiting
        if waiting and waiting.reason in _STUCK_REASONS:
            yield f"{waiting.reason}: {waiting.message}" if waiting.message else waiting.reason


def _waiting_for(pod: Pod) -> str:
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return f"{condition.reason}: {condition.message}"
    reasons = (status.state.waiting.reason for status in pod.status.container_statuses if status.state.waiting)
    return next(reasons, "")
