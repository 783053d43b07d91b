"""The `worker` section: what worker pods are made of. Parts with Kubernetes' own names mean what Kubernetes means."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from kube_node_ready.configuration.kinds import (
    DERIVED,
    AbsolutePath,
    Capability,
    Count,
    Deadline,
    Digest,
    Effect,
    ImageReference,
    Label,
    LabelValue,
    PullPolicy,
    QualifiedName,
    Quantity,
    RelativePath,
    Repository,
    Subdomain,
    Tag,
    UserId,
    VariableName,
    WholeSeconds,
    Word,
    about,
)

Command = tuple[Word, ...]


class Part(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A section, or a part of one."""


class Image(Part, frozen=True):
    repository: Annotated[
        Repository,
        about("The image of the worker. The chart names its own; elsewhere name yours, as this is the Go version's."),
    ] = "ghcr.io/imunhatep/kube-node-ready"
    tag: Annotated[Tag, about("Its tag; a digest takes its place.")] = "latest"
    digest: Annotated[Digest, about("Its digest, which nobody can move to another image.")] = ""
    pull_policy: Annotated[PullPolicy, about("When the node pulls it.")] = "IfNotPresent"

    @property
    def reference(self) -> str:
        return f"{self.repository}@{self.digest}" if self.digest else f"{self.repository}:{self.tag}"


class Resources(Part, frozen=True):
    requests: Annotated[Mapping[QualifiedName, Quantity], about("What the scheduler sets aside on the node.")] = {}
    limits: Annotated[Mapping[QualifiedName, Quantity], about("What it may use at most.")] = {}


class Job(Part, frozen=True):
    active_deadline_seconds: Annotated[
        Deadline | None, about("Takes the place of `worker.timeoutSeconds`; for files that have it.")
    ] = None
    backoff_limit: Annotated[Count | None, about("Without effect: workers are pods, not Jobs.")] = None
    completions: Annotated[Count | None, about("Without effect: workers are pods, not Jobs.")] = None
    parallelism: Annotated[Count | None, about("Without effect: workers are pods, not Jobs.")] = None
    ttl_seconds_after_finished: Annotated[
        WholeSeconds | None, about("Without effect: a failed worker stays until the next attempt.")
    ] = None


class Toleration(Part, frozen=True):
    key: Annotated[QualifiedName, about("The taint's key; without one, and with Exists, every taint.")] = ""
    operator: Annotated[Literal["Exists", "Equal"], about("Equal also compares the value.")] = "Exists"
    value: Annotated[LabelValue, about("The taint's value, with Equal.")] = ""
    effect: Annotated[Effect | None, about("The taint's effect; every effect if absent.")] = None
    toleration_seconds: Annotated[WholeSeconds | None, about("How long a NoExecute taint is tolerated.")] = None


class Variable(Part, frozen=True):
    name: Annotated[VariableName, about("The variable's name.")]
    value: Annotated[Word, about("Its value.")] = ""


class Mount(Part, frozen=True):
    name: Annotated[Label, about("A volume of `worker.volumes`.")]
    mount_path: Annotated[AbsolutePath, about("Where the container sees it.")]
    read_only: Annotated[bool, about("Whether it cannot be written to.")] = False
    sub_path: Annotated[RelativePath, about("A path inside the volume to mount instead of its root.")] = ""


class Capabilities(Part, frozen=True):
    """No `add`: a check that needs more than its user can do has to be privileged, and so be seen to be."""

    drop: Annotated[tuple[Capability, ...], about("Capabilities to drop; `[ALL]` is what `restricted` demands.")] = ()


class SeccompProfile(Part, frozen=True):
    type: Annotated[
        Literal["RuntimeDefault"] | None, about("Which system calls are allowed; the pod's own setting is the same.")
    ] = None


class SecurityContext(Part, frozen=True):
    privileged: Annotated[bool | None, about("All of the node's powers.")] = None
    read_only_root_filesystem: Annotated[bool | None, about("Whether the image's files can be written to.")] = None
    run_as_non_root: Annotated[bool | None, about("Refuse to start as root; the pod's own setting is true.")] = None
    run_as_user: Annotated[UserId | None, about("The user to run as; the pod's own setting is 1000.")] = None
    run_as_group: Annotated[UserId | None, about("The group to run as; the pod's own setting is 1000.")] = None
    allow_privilege_escalation: Annotated[bool | None, about("Whether it may gain powers.")] = None
    capabilities: Annotated[Capabilities, about("Its Linux capabilities.")] = Capabilities()
    seccomp_profile: Annotated[SeccompProfile, about("Its seccomp profile.")] = SeccompProfile()


class InitContainer(Part, frozen=True):
    name: Annotated[Label, about("Its name, which failures are reported under.")]
    image: Annotated[ImageReference, about("Its image.")]
    command: Annotated[Command, about("The program, if not the image's own.")] = ()
    args: Annotated[Command, about("The program's arguments.")] = ()
    env: Annotated[tuple[Variable, ...], about("Its environment variables.")] = ()
    volume_mounts: Annotated[tuple[Mount, ...], about("Which volumes it sees, and where.")] = ()
    resources: Annotated[Resources, about("What it may use.")] = Resources()
    security_context: Annotated[SecurityContext, about("What it may do.")] = SecurityContext()
    working_dir: Annotated[AbsolutePath, about("Where its program starts.")] = ""
    image_pull_policy: Annotated[PullPolicy | None, about("When the node pulls its image.")] = None


class Worker(Part, frozen=True):
    image: Annotated[Image, about("The worker's image.")] = Image()
    namespace: Annotated[
        Label, about("Where worker pods run; if empty, POD_NAMESPACE, the controller's own namespace, or kube-system.")
    ] = ""
    service_account_name: Annotated[Subdomain, about("The ServiceAccount of worker pods.")] = "kube-node-ready-worker"
    priority_class_name: Annotated[Subdomain, about("The PriorityClass of worker pods.")] = ""
    image_pull_secrets: Annotated[
        tuple[Subdomain, ...],
        Meta(
            description="Secrets to pull images with: names, or `name:` mappings as in a pod.",
            examples=[["registry-credentials"]],
        ),
    ] = ()
    resources: Annotated[Resources, about("What the worker's container requests and may use.")] = Resources(
        requests={"cpu": "50m", "memory": "64Mi"}, limits={"memory": "128Mi"}
    )
    config_map_name: Annotated[
        Subdomain, about("A ConfigMap with a `worker-config.yaml`, mounted into workers at /etc/kube-node-ready.")
    ] = ""
    command: Annotated[Command, about("The worker's program in its image.")] = ("/kube-node-ready-worker",)
    timeout_seconds: Annotated[
        Deadline, about("How long all checks of an attempt may take together; the pod has 5 s more to start.")
    ] = 300
    job: Annotated[Job, about("Settings of files that come from Job-based versions.")] = Job()
    tolerations: Annotated[
        tuple[Toleration, ...],
        Meta(
            description="Taints that workers tolerate besides the gate, not-ready and unreachable.",
            examples=[[{"key": "example.com/gpu", "operator": "Equal", "value": "true", "effect": "NoSchedule"}]],
        ),
    ] = ()
    init_containers: Annotated[
        tuple[InitContainer, ...],
        Meta(
            description="Checks of your own, run one by one before the worker's; if one fails, the attempt has failed.",
            examples=[
                [
                    {
                        "name": "disk",
                        "image": "registry.example/team/disk-check:1.2.3",
                        "imagePullPolicy": "IfNotPresent",
                        "command": ["/disk-check"],
                        "args": ["--path=/data"],
                        "workingDir": "/tmp",  # noqa: S108  inside a container
                        "env": [{"name": "MINIMUM", "value": "10Gi"}],
                        "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True, "subPath": "cache"}],
                        "resources": {"requests": {"cpu": "10m"}, "limits": {"memory": "32Mi"}},
                        "securityContext": {
                            "privileged": False,
                            "readOnlyRootFilesystem": True,
                            "runAsNonRoot": True,
                            "runAsUser": 1000,
                            "runAsGroup": 1000,
                            "allowPrivilegeEscalation": False,
                            "capabilities": {"drop": ["ALL"]},
                            "seccompProfile": {"type": "RuntimeDefault"},
                        },
                    }
                ]
            ],
        ),
    ] = ()
    volumes: Annotated[
        tuple[Mapping[str, Any], ...],
        Meta(
            description="Volumes for the mounts of init containers, as in a pod.",
            examples=[[{"name": "data", "hostPath": {"path": "/var/lib/data"}}]],
        ),
    ] = ()
    pod_annotations: Annotated[Mapping[QualifiedName, Word], about("Annotations to add to worker pods.")] = {}
    pod_labels: Annotated[
        Mapping[QualifiedName, LabelValue], about("Labels to add to worker pods; the operator's own win.")
    ] = {}
    checks: Annotated[Mapping[str, Any], DERIVED] = {}
    """The worker's own settings, as far as they were given: what the pod is told."""


def manifest(part: Part) -> dict[str, Any]:
    """The part as Kubernetes writes it in a pod, without what was not given."""
    pruned: dict[str, Any] = _pruned(msgspec.to_builtins(part))
    return pruned


def _pruned(value: Any) -> Any:  # noqa: ANN401  JSON
    if isinstance(value, dict):
        inner = {key: _pruned(item) for key, item in value.items()}
        return {key: item for key, item in inner.items() if item is not None and item not in ("", {}, [])}
    return [_pruned(item) for item in value] if isinstance(value, list | tuple) else value
