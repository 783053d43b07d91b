"""Any valid KubernetesDaemonSet manifest, and every way to write it: strategies for Hypothesis.

A manifest is drawn as the tree that its YAML stands for, in the .proto files' own names. What spans fields (names that
must differ, ports that must not meet, requests below limits) is drawn so that it fits; nothing is thrown away.
"""

import string
from collections.abc import Callable, Mapping
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from hypothesis import strategies as st

from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from tests.support.manifests.builders import DIGEST, Json

Draw = Callable[[st.SearchStrategy[Any]], Any]
Some = st.SearchStrategy[Json]

LOWER: Final = string.ascii_lowercase + string.digits
DOMAINS: Final = ["", "example.com/", "a.b-c.example/"]

# --- words ---

dns_labels = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True)
object_names = st.from_regex(r"[a-z0-9]{1,4}(-[a-z0-9]{1,4})?(\.[a-z0-9]{1,4})?", fullmatch=True)
port_names = st.from_regex(r"[a-z][a-z0-9]{0,3}(-[a-z0-9]{1,4})?", fullmatch=True)
keys = st.from_regex(r"[a-zA-Z0-9_-]{1,6}(\.[a-zA-Z0-9]{1,3})?", fullmatch=True)
label_keys = st.builds(str.__add__, st.sampled_from(DOMAINS), st.from_regex(r"[A-Za-z0-9]{1,6}", fullmatch=True))
label_values = st.from_regex(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,6}[A-Za-z0-9])?)?", fullmatch=True)
variable_names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,6}", fullmatch=True) | st.text(
    alphabet="".join(chr(at) for at in range(32, 127) if chr(at) != "="), min_size=1, max_size=4
)
texts = st.sampled_from(
    ["", " ", "true", "null", "9200", "1.20", "$(K8S_NODE_NAME)", "- a: b", "#", "é🙂", "a\nb\n"]
) | st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\t"), max_size=8)
words = st.text(alphabet=string.ascii_letters + string.digits + "/-_.=", min_size=1, max_size=8)
absolute_paths = st.from_regex(r"(/[a-z0-9._-]{0,2}[a-z0-9_-]){1,3}", fullmatch=True)
relative_paths = st.from_regex(r"[a-z0-9_]{1,4}(/[a-z0-9_]{1,4})?", fullmatch=True)
labels = st.dictionaries(label_keys, label_values, max_size=2)
annotations = st.dictionaries(label_keys, texts, max_size=2)
ports = st.integers(1, 65535)
ids = st.integers(0, 2**31 - 1)
seconds = st.integers(1, 3600)


def some(must: Mapping[str, st.SearchStrategy[Any]], **can_i: st.SearchStrategy[Any]) -> Some:
    """A mapping with all of the first fields and any of the others."""
    return st.fixed_dictionaries(dict(must), optional=can_i)


def few(item: st.SearchStrategy[Any], *, least: int = 1, unique: bool = False) -> st.SearchStrategy[list[Any]]:
    return st.lists(item, min_size=least, max_size=2, unique=unique)


# --- variables ---

secret_refs = some({"name": object_names, "key": keys}, optional=st.booleans())
sources = st.one_of(
    st.fixed_dictionaries({"value": texts}),
    st.fixed_dictionaries(
        {"config_map_key_ref": some({"name": object_names, "key": keys}, optional=st.booleans())},
    ),
    st.fixed_dictionaries(
        {
            "field_ref": some(
                {
                    "field_path": st.sampled_from(
                        ["spec.nodeName", "metadata.uid", "status.hostIPs", "metadata.labels['a.b/c']"]
                    )
                },
                api_version=st.just("v1"),
            )
        }
    ),
    st.fixed_dictionaries(
        {
            "resource_field_ref": st.sampled_from(
                [
                    {"resource": "limits.cpu", "divisor": "1m"},
                    {"resource": "requests.memory", "divisor": "1Mi"},
                    {"resource": "limits.ephemeral-storage"},
                ]
            )
        }
    ),
    st.fixed_dictionaries({"secret_ref": secret_refs}),
)
env_from = few(
    some({"config_map_ref": some({"name": object_names}, optional=st.booleans())}, prefix=variable_names)
    | some({"secret_ref": some({"name": object_names}, optional=st.booleans())}, prefix=variable_names)
)


@st.composite
def environments(draw: Draw) -> Json:
    variables = draw(st.dictionaries(variable_names, sources, max_size=3))
    secret_names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,6}", fullmatch=True).filter(
        lambda one: one not in variables
    )
    hidden = st.fixed_dictionaries({"value": texts}) | st.fixed_dictionaries({"secret_ref": secret_refs})
    secrets = draw(st.dictionaries(secret_names, hidden, max_size=2))
    found = {"variables": variables, "secrets": secrets, "env_from": draw(st.just([]) | env_from)}
    return {name: value for name, value in found.items() if value}


# --- amounts ---


@st.composite
def amounts(draw: Draw) -> Json:
    """Limits and requests; what is requested is at most what is allowed."""
    limits: Json = {}
    requests: Json = {}
    for name, write in [("cpu", _cpu), ("memory", _memory), ("ephemeral_storage", _memory)]:
        least, most = sorted((draw(st.integers(1, 4000)), draw(st.integers(1, 4000))))
        if draw(st.booleans()):
            limits[name] = write(draw, most)
        if draw(st.booleans()):
            requests[name] = write(draw, least)
    if draw(st.booleans()):
        devices = draw(st.dictionaries(st.sampled_from(["example.com/gpu", "a.b/c"]), st.integers(0, 8).map(str)))
        if "memory" in limits and draw(st.booleans()):
            devices["hugepages-2Mi"] = f"{2 * draw(st.integers(0, 64))}Mi"
        limits |= {"other": devices} if devices else {}
        requests |= {"other": devices} if devices and draw(st.booleans()) else {}
    found = {"limits": limits, "requests": requests}
    return {name: value for name, value in found.items() if value}


def _cpu(draw: Draw, thousandths: int) -> str:
    return str(draw(st.sampled_from([f"{thousandths}m", f"{thousandths / 1000:.3f}", f"{thousandths}e-3"])))


def _memory(draw: Draw, mebibytes: int) -> str:
    return str(draw(st.sampled_from([f"{mebibytes}Mi", f"{mebibytes * 1024}Ki", str(mebibytes * 2**20)])))


# --- volumes ---

files = some({"name": object_names}, default_mode=st.integers(0, 511), optional=st.booleans())
file = some({"key": keys}, path=relative_paths)
mounted = files | st.builds(lambda one, other: one | other, files, file)
volumes = st.one_of(
    st.fixed_dictionaries(
        {
            "host_path": some(
                {"path": absolute_paths},
                type=st.sampled_from(
                    ["Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket", "CharDevice", "BlockDevice"]
                ),
            )
        }
    ),
    st.fixed_dictionaries({"config_map": mounted}),
    st.fixed_dictionaries({"secret": mounted}),
    st.fixed_dictionaries(
        {"empty_dir": some({}, medium=st.just("Memory"), size_limit=st.sampled_from(["0", "64Mi", "1e9"]))},
    ),
    st.fixed_dictionaries({"pvc": some({"claim_name": object_names}, read_only=st.booleans())}),
)


@st.composite
def mounts(draw: Draw, pool: Json, *, privileged: bool) -> list[Json]:
    """Of volumes of the pod; what these are is said later."""
    if not pool:
        return []
    ways = ["None", "HostToContainer", *(["Bidirectional"] if privileged else [])]
    found = []
    for path in draw(st.lists(absolute_paths, unique=True, max_size=3)):
        mount = draw(
            some(
                {"name": st.sampled_from(sorted(pool)), "mount_path": st.just(path)},
                read_only=st.booleans(),
                mount_propagation=st.sampled_from(ways),
            )
        )
        within = draw(some({}, sub_path=relative_paths) | some({}, sub_path_expr=st.just("$(K8S_NODE_NAME)/a")))
        found.append(mount | within)
    return found


# --- probes and hooks ---


def _requests(port: Some) -> Some:
    headers = few(some({"name": st.from_regex(r"[A-Za-z][-A-Za-z0-9]{0,5}", fullmatch=True)}, value=texts))
    more = some(
        {}, path=absolute_paths, host=dns_labels, scheme=st.sampled_from(["HTTP", "HTTPS"]), http_headers=headers
    )
    return st.builds(lambda one, other: one | other, port, more)


def _port(named: list[str]) -> Some:
    return some({"port_number": ports}) | some({"port_name": st.sampled_from(named) if named else port_names})


commands = st.fixed_dictionaries({"command": st.lists(texts.filter(bool), min_size=1, max_size=2)})


def probes(named: list[str], *, readiness: bool) -> Some:
    port = _port(named)
    handler = st.one_of(
        st.fixed_dictionaries({"http_get": _requests(port)}),
        st.fixed_dictionaries({"grpc": some({"port": ports}, service=words)}),
        st.fixed_dictionaries(
            {"tcp_socket": st.builds(lambda one, other: one | other, port, some({}, host=dns_labels))}
        ),
        st.fixed_dictionaries({"exec": commands}),
    )
    last: dict[str, st.SearchStrategy[Any]] = (
        {"success_threshold": st.integers(1, 9)}
        if readiness
        else {"success_threshold": st.just(1), "termination_grace_period_seconds": seconds}
    )
    times = some(
        {},
        initial_delay_seconds=st.integers(0, 600),
        period_seconds=seconds,
        timeout_seconds=seconds,
        failure_threshold=seconds,
        **last,
    )
    return st.builds(lambda one, other: one | other, handler, times)


def lifecycles(named: list[str], grace: int) -> Some:
    ways = [some({"exec": commands}), some({"http_get": _requests(_port(named))})]
    ways += [some({"sleep_seconds": st.integers(1, grace)})] if grace else []
    return some({}, post_start=st.one_of(ways), pre_stop=st.one_of(ways))


# --- rights ---

seccomp = st.sampled_from(
    [{"type": "RuntimeDefault"}, {"type": "Unconfined"}, {"type": "Localhost", "localhost_profile": "agents/a.json"}]
)
se_linux = some({}, user=words, role=words, type=words, level=words)
pod_rights = some(
    {},
    run_as_user=ids,
    run_as_group=ids,
    run_as_non_root=st.booleans(),
    fs_group=ids,
    supplemental_groups=few(ids),
    seccomp_profile=seccomp,
    se_linux_options=se_linux,
)
capabilities = some({}, add=few(st.sampled_from(["NET_ADMIN", "SYS_PTRACE", "SYS_ADMIN"])), drop=st.just(["ALL"]))


@st.composite
def rights(draw: Draw) -> Json:
    found: Json = draw(
        some(
            {},
            privileged=st.booleans(),
            run_as_user=ids,
            run_as_group=ids,
            run_as_non_root=st.booleans(),
            read_only_root_filesystem=st.booleans(),
            capabilities=capabilities,
            allow_privilege_escalation=st.booleans(),
            seccomp_profile=seccomp,
            se_linux_options=se_linux,
        )
    )
    mighty = found.get("privileged") or "SYS_ADMIN" in found.get("capabilities", {}).get("add", [])
    if mighty and "allow_privilege_escalation" in found:
        found["allow_privilege_escalation"] = True
    return found


resource_rules = some(
    {
        "api_groups": st.just([""]) | st.just(["apps", "batch"]),
        "resources": st.just(["pods", "nodes/metrics"]),
        "verbs": st.sampled_from([["get"], ["list", "watch"], ["*"]]),
    },
    resource_names=st.lists(object_names, min_size=1, max_size=2),
)
path_rules = st.fixed_dictionaries(
    {"non_resource_urls": st.just(["/metrics", "/healthz/*"]), "verbs": st.just(["get"])}
)
rbac = some({}, cluster_rules=few(resource_rules | path_rules), namespace_rules=few(resource_rules))


# --- where pods run ---

one_of_values = st.fixed_dictionaries(
    {
        "key": label_keys,
        "operator": st.sampled_from(["In", "NotIn"]),
        "values": st.lists(label_values, min_size=1, max_size=2),
    }
)
presence = st.fixed_dictionaries({"key": label_keys, "operator": st.sampled_from(["Exists", "DoesNotExist"])})
comparison = st.fixed_dictionaries(
    {
        "key": label_keys,
        "operator": st.sampled_from(["Gt", "Lt"]),
        "values": st.lists(st.integers(0, 99).map(str), min_size=1, max_size=1),
    }
)
nodes_by_name = st.fixed_dictionaries(
    {
        "key": st.just("metadata.name"),
        "operator": st.sampled_from(["In", "NotIn"]),
        "values": st.lists(object_names, min_size=1, max_size=1),
    }
)
node_terms = some({}, match_expressions=few(one_of_values | presence | comparison), match_fields=few(nodes_by_name))
selectors = some({}, match_labels=labels, match_expressions=few(one_of_values | presence))
pod_terms = some(
    {"topology_key": label_keys}, label_selector=selectors, namespaces=few(dns_labels), namespace_selector=selectors
)
weights = st.integers(1, 100)
NEEDED: Final = "required_during_scheduling_ignored_during_execution"
LIKED: Final = "preferred_during_scheduling_ignored_during_execution"
near = st.fixed_dictionaries(
    {},
    optional={
        NEEDED: few(pod_terms),
        LIKED: few(st.fixed_dictionaries({"weight": weights, "pod_affinity_term": pod_terms})),
    },
)
affinities = some(
    {},
    node_affinity=st.fixed_dictionaries(
        {},
        optional={
            NEEDED: st.fixed_dictionaries({"node_selector_terms": st.lists(node_terms, min_size=1, max_size=2)}),
            LIKED: few(st.fixed_dictionaries({"weight": weights, "preference": node_terms})),
        },
    ),
    pod_affinity=near,
    pod_anti_affinity=near,
)
tolerations = st.one_of(
    some({"operator": st.just("Exists")}, key=label_keys, effect=st.sampled_from(["NoSchedule", "PreferNoSchedule"])),
    some(
        {"key": label_keys, "value": label_values.filter(bool)},
        operator=st.just("Equal"),
        effect=st.just("NoSchedule"),
    ),
    some(
        {"key": label_keys, "operator": st.just("Exists"), "effect": st.just("NoExecute")},
        toleration_seconds=st.integers(0, 2**40),
    ),
)
shares = st.integers(1, 100).map(lambda share: f"{share}%")
above_zero = shares | st.integers(1, 50) | st.integers(1, 50).map(str)
zeros = st.sampled_from([0, "0", "0%"])
updates = st.one_of(
    st.sampled_from([{"type": "OnDelete"}, {"type": "RollingUpdate"}, {}]),
    some({"rolling_update": some({"max_unavailable": above_zero}, max_surge=zeros)}, type=st.just("RollingUpdate")),
    some({"rolling_update": some({"max_surge": above_zero}, max_unavailable=zeros)}),
)

# --- the whole ---

metadata_besides = {
    "slug": words,
    "id": words,
    "org": words,
    "env": words,
    "labels": labels,
    "annotations": annotations,
    "tags": few(texts),
    "group": words,
    "relationships": few(
        some(
            {
                "kind": st.sampled_from(["AwsEksCluster", "KubernetesNamespace"]),
                "name": words,
                "type": st.sampled_from(["depends_on", "runs_on", "managed_by", "uses"]),
            },
            env=words,
            group=words,
        )
    ),
}
images = st.sampled_from(
    [
        {"repo": "agent", "tag": "1.4.2"},
        {"repo": "registry.example.com:5000/team/agent", "tag": "v1"},
        {"repo": "registry.example.com/agent", "digest": DIGEST},
        {"repo": "registry.example.com/agent", "tag": "a" * 100, "digest": DIGEST},
    ]
)
pull_policies = st.sampled_from(["Always", "IfNotPresent", "Never"])


@st.composite
def _ports(draw: Draw, numbers: list[int], number_field: str, *, host_network: bool, named: bool) -> list[Json]:
    """Of one container. `numbers` are the pod's, and are used up."""
    found = []
    for name in draw(few(port_names, least=0, unique=True)):
        number = numbers.pop()
        port = {"container_port": number} | ({"name": name} if named or draw(st.booleans()) else {})
        if draw(st.booleans()):
            port[number_field] = draw(st.sampled_from(["TCP", "UDP", "SCTP"]))
        if draw(st.booleans()):
            port["host_port"] = number if host_network else numbers.pop()
        found.append(port)
    return found


class _Pod:
    """What the containers of one pod share."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.host_network: bool = draw(st.booleans())
        self.grace: int | None = draw(st.none() | st.integers(0, 600))
        self.volumes: Json = draw(st.dictionaries(dns_labels, volumes, min_size=1, max_size=4))
        self.numbers: list[int] = draw(st.lists(ports, unique=True, min_size=24, max_size=24))
        self.described: set[str] = set()

    def container(self, name: str, kind: str) -> Json:
        """`kind` is app, sidecar, before (ends before the others start) or stays (starts before them)."""
        draw, found = self.draw, {}
        is_app = kind == "app"
        if draw(st.booleans()):
            found["security_context"] = draw(rights())
        if draw(st.booleans()):
            found["resources"] = draw(amounts())
        protocol = "network_protocol" if is_app else "protocol"
        found["ports"] = draw(_ports(self.numbers, protocol, host_network=self.host_network, named=is_app))
        found |= draw(some({}, command=few(texts.filter(bool)), args=few(texts), working_dir=absolute_paths))
        privileged = bool(found.get("security_context", {}).get("privileged"))
        found["volume_mounts"] = draw(mounts(self.volumes, privileged=privileged))
        self._describe(found["volume_mounts"])
        if kind != "before":
            names = [port["name"] for port in found["ports"] if "name" in port]
            grace = 30 if self.grace is None else self.grace
            found |= draw(
                some(
                    {},
                    liveness_probe=probes(names, readiness=False),
                    startup_probe=probes(names, readiness=False),
                    readiness_probe=probes(names, readiness=True),
                    lifecycle=lifecycles(names, grace),
                )
            )
        return found | (self._app() if is_app else self._beside(name, kind))

    def _describe(self, mounted: list[Json]) -> None:
        """The first mount of a volume says what it is; others can."""
        for mount in mounted:
            if mount["name"] not in self.described or self.draw(st.booleans()):
                mount.update(self.volumes[mount["name"]])
            self.described.add(mount["name"])

    def _app(self) -> Json:
        image = self.draw(images) | self.draw(some({}, pull_policy=pull_policies, pull_secret_name=object_names))
        found: Json = {"image": image}
        return found | self.draw(some({}, env=environments()))  # type: ignore[no-any-return]

    def _beside(self, name: str, kind: str) -> Json:
        found: Json = {"name": name, "image": self.draw(st.sampled_from(["helper:1", f"a.example/helper@{DIGEST}"]))}
        named = self.draw(st.dictionaries(variable_names, sources, max_size=2))
        found["env"] = [{"name": one} | source for one, source in named.items()]
        found |= self.draw(some({}, pull_policy=pull_policies, env_from=env_from))
        return found | ({"restart_policy": "Always"} if kind == "stays" else {})


@st.composite
def manifests(draw: Draw, namespaces: st.SearchStrategy[str] = dns_labels) -> Json:
    """Any valid manifest."""
    pod = _Pod(draw)
    name, *others = draw(st.lists(dns_labels, unique=True, min_size=5, max_size=5))
    spec: Json = {
        "namespace": {"value": draw(namespaces)},
        "container": {"app": pod.container(name, "app")},
    }
    sidecars = [pod.container(one, "sidecar") for one in draw(st.sampled_from([[], others[:1], others[:2]]))]
    before = [
        pod.container(one, draw(st.sampled_from(["before", "stays"])))
        for one in draw(st.sampled_from([[], others[2:3], others[2:4]]))
    ]
    spec["container"] |= {"sidecars": sidecars} if sidecars else {}
    spec |= {"init_containers": before} if before else {}
    spec |= {"host_network": pod.host_network} if pod.host_network or draw(st.booleans()) else {}
    spec |= {} if pod.grace is None else {"termination_grace_period_seconds": pod.grace}
    spec |= draw(scheduling)
    spec |= draw(besides)
    spec |= draw(
        st.just({}) | st.just({"host_pid": True}) | st.fixed_dictionaries({"share_process_namespace": st.booleans()})
    )
    spec |= draw(st.just({}) | accounts)
    return {
        "api_version": "kubernetes.project-planton.org/v1",
        "kind": "KubernetesDaemonSet",
        "metadata": {"name": name} | draw(some({}, **metadata_besides)),
        "spec": spec,
    }


@st.composite
def stack_inputs(draw: Draw, namespaces: st.SearchStrategy[str] = dns_labels) -> Json:
    """Any valid manifest with what a deployment needs besides."""
    config = {"provider": "digital_ocean_doks", "digital_ocean_doks": {"kube_config": "e30="}}
    login = st.sampled_from(['{"auths": {}}', '{"auths": {"registry.example.com": {"auth": "dTpw"}}}'])
    given: Json = {"target": draw(manifests(namespaces))}
    return given | draw(some({}, docker_config_json=login, provider_config=st.just(config)))  # type: ignore[no-any-return]


scheduling = some(
    {},
    node_selector=labels,
    tolerations=few(tolerations),
    affinity=affinities,
    priority_class_name=object_names,
    require_on_new_nodes=st.booleans(),
)
besides = some(
    {},
    create_namespace=st.booleans(),
    update_strategy=updates,
    min_ready_seconds=st.integers(0, 600),
    config_maps=st.dictionaries(object_names, texts, max_size=2),
    dns_policy=st.sampled_from(["ClusterFirst", "ClusterFirstWithHostNet", "Default"]),
    host_ipc=st.booleans(),
    pod_labels=labels,
    pod_annotations=annotations,
    pod_security_context=pod_rights,
    revision_history_limit=st.integers(0, 50),
    image_pull_secrets=few(object_names),
    automount_service_account_token=st.booleans(),
    runtime_class_name=object_names,
    target_cluster=some(
        {"cluster_kind": st.sampled_from(["AwsEksCluster", "CivoKubernetesCluster"])}, cluster_name=words
    ),
)
accounts = some(
    {"create_service_account": st.sampled_from([True])},
    service_account_name=object_names,
    service_account_annotations=annotations,
    rbac=rbac,
) | some({"service_account_name": object_names}, rbac=rbac)


# --- ways to write the same ---


@st.composite
def spellings(draw: Draw, tree: Json) -> Json:
    """The same manifest as another user might write it: other dialects, other names, another order."""
    found: Json = _spelled(draw, KubernetesDaemonSet.DESCRIPTOR, tree)
    return found


def _spelled(draw: Draw, message: Any, tree: Json) -> Any:  # noqa: ANN401  a descriptor, and whatever YAML holds
    fields: Mapping[str, FieldDescriptor] = message.fields_by_name
    found = {}
    for name in draw(st.permutations(list(tree))):
        first, *rest = name.split("_")
        camel = first + "".join(map(str.capitalize, rest))
        found[draw(st.sampled_from([name, camel]))] = _spelled_field(draw, fields[name], tree[name])
    shape = _SHAPES.get(message.name)
    return shape(draw, tree, found) if shape and draw(st.booleans()) else found


def _spelled_field(draw: Draw, field: FieldDescriptor, value: Any) -> Any:  # noqa: ANN401
    message = field.message_type
    if not message:
        return value
    if not message.GetOptions().map_entry:
        return [_spelled(draw, message, one) for one in value] if field.is_repeated else _spelled(draw, message, value)
    inner: Descriptor | None = message.fields_by_name["value"].message_type
    if not inner:
        return {name: value[name] for name in draw(st.permutations(list(value)))}
    if draw(st.booleans()):
        plain = {name: {**value[name]} for name in value}
        return [{"name": name} | plain[name] for name in draw(st.permutations(list(plain)))]
    return {name: _spelled(draw, inner, value[name]) for name in draw(st.permutations(list(value)))}


def _alone(field: str) -> Callable[[Draw, Json, Json], Any]:
    """A mapping of this one field can be written as the field's value."""
    return lambda _, tree, found: tree[field] if tree.keys() == {field} else found


def _variable(draw: Draw, tree: Json, found: Json) -> Any:  # noqa: ANN401
    if tree.keys() == {"value"}:
        return draw(st.sampled_from([tree["value"], {"string_value": tree["value"]}, {"stringValue": tree["value"]}]))
    ((name, source),) = tree.items()
    kubernetes = {
        "config_map_key_ref": "configMapKeyRef",
        "field_ref": "fieldRef",
        "resource_field_ref": "resourceFieldRef",
        "secret_ref": "secretKeyRef",
    }
    return {"valueFrom": {kubernetes[name]: source}} if name in kubernetes else found


def _image(_: Draw, tree: Json, found: Json) -> Any:  # noqa: ANN401
    if tree.keys() - {"repo", "tag", "digest"}:
        return found
    tag = f":{tree['tag']}" if "tag" in tree else ""
    digest = f"@{tree['digest']}" if "digest" in tree else ""
    return f"{tree['repo']}{tag}{digest}"


def _mount(_: Draw, tree: Json, found: Json) -> Json:
    path = tree.get("host_path", {})
    if "type" not in path:
        return found
    rest = {key: value for key, value in found.items() if key not in {"host_path", "hostPath"}}
    return rest | {"host_path": path["path"], "host_path_type": path["type"]}


def _probed_port(_: Draw, tree: Json, found: Json) -> Json:
    rest = {
        key: value for key, value in found.items() if key not in {"port_number", "portNumber", "port_name", "portName"}
    }
    return rest | {"port": tree.get("port_number") or tree["port_name"]}


def _amounts(_: Draw, tree: Json, found: Json) -> Json:
    rest = {key: value for key, value in found.items() if key not in {"other", "ephemeral_storage", "ephemeralStorage"}}
    storage = {"ephemeral-storage": tree["ephemeral_storage"]} if "ephemeral_storage" in tree else {}
    other: Json = tree.get("other", {})
    return rest | storage | other


_SHAPES: Final[Mapping[str, Callable[[Draw, Json, Json], Any]]] = {
    "ConfigMapSource": _alone("name"),
    "ContainerImage": _image,
    "CpuMemory": _amounts,
    "HostPathSource": _alone("path"),
    "HttpGetAction": _probed_port,
    "KubernetesDaemonSetEnvValue": _variable,
    "KubernetesSensitiveValue": _variable,
    "SecretSource": _alone("name"),
    "StringValueOrRef": _alone("value"),
    "TcpSocketAction": _probed_port,
    "VolumeMount": _mount,
}
