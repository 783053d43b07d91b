"""The `worker` section: what worker pods are made of. Parts with names of Kubernetes mean what Kubernetes means."""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec.structs import replace

from kube_node_ready import __version__
from kube_node_ready.settings import worker
from kube_node_ready.settings.engine import Entries, Field, Items, Table
from kube_node_ready.settings.field_types import (
    ABSOLUTE_PATH,
    ANNOTATIONS,
    ANY_KEY,
    BOOLEAN,
    CAPABILITY,
    COUNT,
    DEADLINE,
    DIGEST,
    EFFECT,
    IMAGE,
    LABEL,
    LABEL_VALUE,
    LABELS,
    PULL_POLICY,
    QUALIFIED_NAME,
    RELATIVE_PATH,
    REPOSITORY,
    RESOURCES,
    SUBDOMAIN,
    TAG,
    TEXT,
    USER_ID,
    VARIABLE_NAME,
    WHOLE_SECONDS,
)
from kube_node_ready.settings.readers import Choice, Plain, Raw
from kube_node_ready.settings.structs import Section, setting, table

COMMAND = Items(TEXT)


class Image(Section, frozen=True):
    repository: Annotated[
        str,
        setting(
            REPOSITORY.or_empty(),
            "The worker's image, which is the controller's own. Required, unless POD_IMAGE has it.",
        ),
    ] = ""
    tag: Annotated[
        str, setting(TAG.or_empty(), "Its tag, by default the controller's version. A digest replaces it.")
    ] = ""
    digest: Annotated[str, setting(DIGEST.or_empty(), "Its digest, which always denotes the same image.")] = ""
    pull_policy: Annotated[str, setting(PULL_POLICY, "When the node pulls it.")] = "IfNotPresent"

    @property
    def reference(self) -> str:
        return f"{self.repository}@{self.digest}" if self.digest else f"{self.repository}:{self.tag or __version__}"


class Resources(Section, frozen=True):
    requests: Annotated[
        Mapping[str, str], setting(RESOURCES, "Requests, which the scheduler reserves on the node.")
    ] = {}
    limits: Annotated[Mapping[str, str], setting(RESOURCES, "Limits.")] = {}


class Job(Section, frozen=True):
    active_deadline_seconds: Annotated[
        int | None, setting(DEADLINE, "Replaces `worker.timeoutSeconds`, for files that have it.")
    ] = None
    backoff_limit: Annotated[int | None, setting(COUNT, "Without effect: workers are pods, not Jobs.")] = None
    completions: Annotated[int | None, setting(COUNT, "Without effect: workers are pods, not Jobs.")] = None
    parallelism: Annotated[int | None, setting(COUNT, "Without effect: workers are pods, not Jobs.")] = None
    ttl_seconds_after_finished: Annotated[
        int | None, setting(WHOLE_SECONDS, "Without effect: a failed worker stays until the next attempt.")
    ] = None


class Toleration(Section, frozen=True):
    key: Annotated[
        str, setting(QUALIFIED_NAME.or_empty(), "The taint's key; without one, and with Exists, every taint.")
    ] = ""
    operator: Annotated[str, setting(Choice("Exists", "Equal"), "Equal also compares the value.")] = "Exists"
    value: Annotated[str, setting(LABEL_VALUE, "The taint's value, with Equal.")] = ""
    effect: Annotated[str | None, setting(EFFECT, "The taint's effect; every effect if absent.")] = None
    toleration_seconds: Annotated[int | None, setting(WHOLE_SECONDS, "How long a NoExecute taint is tolerated.")] = None


class Variable(Section, frozen=True):
    name: Annotated[str, setting(VARIABLE_NAME, "The variable's name.")]
    value: Annotated[str, setting(TEXT, "Its value.")] = ""


class Mount(Section, frozen=True):
    name: Annotated[str, setting(LABEL, "A volume of `worker.volumes`.")]
    mount_path: Annotated[str, setting(ABSOLUTE_PATH, "The path of the mount in the container.")]
    read_only: Annotated[bool, setting(BOOLEAN, "Whether the mount is read-only.")] = False
    sub_path: Annotated[
        str, setting(RELATIVE_PATH.or_empty(), "A path inside the volume to mount instead of its root.")
    ] = ""


class Capabilities(Section, frozen=True):
    """No `add`: a check that needs more than its user can do has to be privileged, and so be seen to be."""

    drop: Annotated[
        tuple[str, ...], setting(Items(CAPABILITY), "Capabilities to drop; `[ALL]` is what `restricted` requires.")
    ] = ()


class SeccompProfile(Section, frozen=True):
    type: Annotated[
        str | None,
        setting(Choice("RuntimeDefault"), "Which system calls are allowed; the pod's own setting is the same."),
    ] = None


class SecurityContext(Section, frozen=True):
    privileged: Annotated[bool | None, setting(BOOLEAN, "Whether it has all privileges on the node.")] = None
    read_only_root_filesystem: Annotated[
        bool | None, setting(BOOLEAN, "Whether its root file system is read-only.")
    ] = None
    run_as_non_root: Annotated[
        bool | None, setting(BOOLEAN, "Do not start as root; the pod's own setting is true.")
    ] = None
    run_as_user: Annotated[int | None, setting(USER_ID, "The user to run as; the pod's own setting is 1000.")] = None
    run_as_group: Annotated[int | None, setting(USER_ID, "The group to run as; the pod's own setting is 1000.")] = None
    allow_privilege_escalation: Annotated[bool | None, setting(BOOLEAN, "Whether it can gain privileges.")] = None
    capabilities: Annotated[Capabilities, setting(table(Capabilities), "Its Linux capabilities.")] = Capabilities()
    seccomp_profile: Annotated[SeccompProfile, setting(table(SeccompProfile), "Its seccomp profile.")] = (
        SeccompProfile()
    )


class InitContainer(Section, frozen=True):
    name: Annotated[str, setting(LABEL, "Its name, which is part of reported failures.")]
    image: Annotated[str, setting(IMAGE, "Its image.")]
    command: Annotated[tuple[str, ...], setting(COMMAND, "The program, if not the image's own.")] = ()
    args: Annotated[tuple[str, ...], setting(COMMAND, "The program's arguments.")] = ()
    env: Annotated[tuple[Variable, ...], setting(Items(table(Variable)), "Its environment variables.")] = ()
    volume_mounts: Annotated[tuple[Mount, ...], setting(Items(table(Mount)), "Its volume mounts.")] = ()
    resources: Annotated[Resources, setting(table(Resources), "Its resource requests and limits.")] = Resources()
    security_context: Annotated[SecurityContext, setting(table(SecurityContext), "Its security context.")] = (
        SecurityContext()
    )
    working_dir: Annotated[str, setting(ABSOLUTE_PATH.or_empty(), "The working directory of its program.")] = ""
    image_pull_policy: Annotated[str | None, setting(PULL_POLICY, "When the node pulls its image.")] = None


class WorkerConfig(Section, frozen=True):
    image: Annotated[Image, setting(table(Image), "The worker's image.")] = Image()
    namespace: Annotated[
        str,
        setting(
            LABEL.or_empty(),
            "Where worker pods run; if empty, POD_NAMESPACE, the controller's own namespace, or kube-system.",
        ),
    ] = ""
    service_account_name: Annotated[str, setting(SUBDOMAIN, "The ServiceAccount of worker pods.")] = (
        "kube-node-ready-worker"
    )
    priority_class_name: Annotated[str, setting(SUBDOMAIN.or_empty(), "The PriorityClass of worker pods.")] = ""
    image_pull_secrets: Annotated[
        tuple[str, ...],
        setting(
            Items(SUBDOMAIN),
            "Secrets to pull images with: names, or `name:` mappings as in a pod.",
            examples=(["registry-credentials"],),
        ),
    ] = ()
    resources: Annotated[Resources, setting(table(Resources), "Resources of the worker's container.")] = Resources(
        requests={"cpu": "50m", "memory": "64Mi"}, limits={"memory": "128Mi"}
    )
    config_map_name: Annotated[
        str,
        setting(
            SUBDOMAIN.or_empty(),
            "A ConfigMap with a `worker-config.yaml`, mounted into workers at /etc/kube-node-ready.",
        ),
    ] = ""
    command: Annotated[tuple[str, ...], setting(COMMAND, "The worker's program in its image.")] = (
        "/kube-node-ready-worker",
    )
    timeout_seconds: Annotated[
        int, setting(DEADLINE, "How long all checks of an attempt can take together; the pod has 5 s more to start.")
    ] = 300
    job: Annotated[Job, setting(table(Job), "Settings of files that come from Job-based versions.")] = Job()
    tolerations: Annotated[
        tuple[Toleration, ...],
        setting(
            Items(table(Toleration)),
            "Taints that workers tolerate besides the gate, not-ready and unreachable.",
            examples=([{"key": "example.com/gpu", "operator": "Equal", "value": "true", "effect": "NoSchedule"}],),
        ),
    ] = ()
    init_containers: Annotated[
        tuple[InitContainer, ...],
        setting(
            Items(table(InitContainer)),
            "Checks of your own, run one by one before the worker's; if one fails, the attempt has failed.",
            examples=(
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
                ],
            ),
        ),
    ] = ()
    volumes: Annotated[
        tuple[Mapping[str, Any], ...],
        setting(
            Items(Entries(ANY_KEY, Raw())),
            "Volumes for the mounts of init containers, as in a pod.",
            examples=([{"name": "data", "hostPath": {"path": "/var/lib/data"}}],),
        ),
    ] = ()
    pod_annotations: Annotated[Mapping[str, str], setting(ANNOTATIONS, "Annotations to add to worker pods.")] = {}
    pod_labels: Annotated[
        Mapping[str, str], setting(LABELS, "Labels to add to worker pods; those of the operator take precedence.")
    ] = {}
    checks: Mapping[str, Any] = {}
    """The worker's own settings, those that are set, as they are passed to the pod."""


_ELSEWHERE = frozenset({"timeoutSeconds", "logging", "dryRun"})
CHECKS = {
    key: Field(key, Plain(field.reader), field.description, default=field.default)
    for key, field in worker.TABLE.fields.items()
    if field.name and key not in _ELSEWHERE
}
"""The worker's own settings that the section has, too. The others are set elsewhere in the configuration."""


def _build(base: WorkerConfig | None, values: Mapping[str, Any]) -> WorkerConfig:
    assert base is not None, "the section has defaults"
    names = {field.name: key for key, field in CHECKS.items()}
    checks = {names[name]: value for name, value in sorted(values.items()) if name in names}
    others = {name: value for name, value in values.items() if name not in names}
    return replace(base, checks=checks, **others)


WORKER = Table(*table(WorkerConfig).fields.values(), *CHECKS.values(), build=_build)
