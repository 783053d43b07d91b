"""Invalid containers: images, ports, probes, quantities, security contexts, sidecars and init containers."""

from typing import Final

from kubekit.diagnostics import truncate
from tests.support.manifests.builders import DIGEST, GONE, Json, a_mount, a_port, a_sidecar
from tests.support.manifests.refusals.case import Refusal, a_probe, rows


def limits(**amounts: object) -> Json:
    return {"resources": {"limits": {"memory": "64Mi"} | amounts}}


_REPOSITORIES: Final = [
    ("a repo with spaces", "a b", "expected lowercase letters and digits separated by single dots"),
    ("a repo with capitals", "Foo/Bar", "expected lowercase: foo/bar"),
    ("a repo with capitals at a registry", "Foo.example/team/Bar", "expected lowercase: foo.example/team/bar"),
    ("a repo with a scheme", "http://foo/bar", "remove http://"),
    ("a repo that begins with a hyphen", "-x", "expected lowercase letters and digits"),
    ("a repo with three underscores", "a___b", "expected lowercase letters and digits"),
    ("a repo with two slashes", "a//b", "expected lowercase letters and digits"),
    ("a repo that ends in a slash", "a.example/", "expected lowercase letters and digits"),
    ("a repo with a tag", "nginx:1.2", "expected one colon before the tag and none in the repository"),
    ("a repo with a digest", f"nginx@{DIGEST}", "set the part after @ as digest"),
    ("a repo of a port in words", "a.example:http/b", 'port "http" is invalid; expected digits'),
]

IMAGES: Final = [
    Refusal("no image", {"app.image": GONE}, "app.image", "is required"),
    Refusal("no repo", {"app.image.repo": ""}, "app.image", "Image repo is required"),
    Refusal("no tag", {"app.image.tag": ""}, "app.image", "Image tag is required, or a digest"),
    *(
        Refusal(what, {"app.image.repo": repo}, "app.image.repo", f'"{repo}" is not a valid repository; {instead}')
        for what, repo, instead in _REPOSITORIES
    ),
    Refusal(
        "a repo of 256 letters",
        {"app.image.repo": "a" * 256},
        "app.image.repo",
        "is 256 characters long; expected at most 255",
    ),
    *(
        Refusal(
            what,
            {"app.image.tag": tag},
            "app.image.tag",
            f'"{truncate(tag)}" is invalid; expected a tag of at most 128 letters',
        )
        for what, tag in [
            ("a tag that is none", "v 1"),
            ("a tag with a colon", "1:2"),
            ("a tag that begins with a hyphen", "-1"),
            ("a tag of 129 letters", "a" * 129),
        ]
    ),
    Refusal("an image of a tag alone", {"app.image": ":1"}, "app.image", "Image repo is required"),
    Refusal(
        "an image that ends in a colon", {"app.image": "agent:"}, "app.image", "Image tag is required, or a digest"
    ),
    Refusal(
        "an image of three colons",
        {"app.image": "nginx:::latest"},
        "app.image.repo",
        '"nginx::" is not a valid repository; expected one colon before the tag and none in the repository',
    ),
    Refusal(
        "an image of two digests",
        {"app.image": f"agent@{DIGEST}@{DIGEST}"},
        "app.image.digest",
        "is invalid; expected sha256:",
    ),
    Refusal(
        "half a digest",
        {"app.image.digest": DIGEST[:-1]},
        "app.image.digest",
        "is invalid; expected sha256: followed by 64",
    ),
    Refusal(
        "another pull policy",
        {"app.image.pull_policy": "Sometimes"},
        "app.image.pull_policy",
        "is invalid; expected",
    ),
    Refusal(
        "a login with capitals",
        {"app.image.pull_secret_name": "Login"},
        "app.image.pull_secret_name",
        '"Login" is invalid; expected an object name',
    ),
]

PORTS: Final = [
    Refusal(what, {"app.ports": [a_port(**port)]}, f"app.ports[0].{field}", says)
    for what, port, field, says in rows(
        ("a port without a name", {"name": ""}, "name", "a port needs a name"),
        ("a port's name with capitals", {"name": "Metrics"}, "name", '"Metrics" is invalid; expected a port name'),
        ("a port's name that begins with a hyphen", {"name": "-metrics"}, "name", "no hyphen at an end"),
        (
            "a port's name of 21 letters",
            {"name": "a" * 21},
            "name",
            "expected a port name of at most 15 lowercase letters",
        ),
        ("a port's name without letters", {"name": "9100"}, "name", "at least one letter"),
        ("a port's name with two hyphens", {"name": "a--b"}, "name", "single hyphens"),
        (
            "port 99999",
            {"container_port": 99999},
            "container_port",
            "99999 is invalid; expected a port from 1 to 65535",
        ),
        ("port 0", {"container_port": 0}, "container_port", "0 is invalid; expected a port"),
        ("another protocol", {"network_protocol": "HTTP"}, "network_protocol", '"HTTP" is invalid; expected TCP, UDP'),
        ("port 65536 of the node", {"host_port": 65536}, "host_port", "65536 is invalid; expected a port"),
    )
] + [
    Refusal(
        "two ports of one name",
        {"app.ports": [a_port(), a_port(container_port=9101)]},
        "app.ports[1].name",
        '"metrics" is already the name of another port of this container',
    ),
    Refusal(
        "a port twice",
        {"app.ports": [a_port(), a_port(name="web")]},
        "app.ports[1].container_port",
        "TCP 9100 is already another port of this container",
    ),
    Refusal(
        "another port of the node on its own network",
        {"spec.host_network": True, "app.ports": [a_port(host_port=19100)]},
        "app.ports[0].host_port",
        "host_port must equal container_port with host_network; set it to 9100 or remove it",
    ),
    Refusal(
        "a port of the node taken twice",
        {"app.ports": [a_port(host_port=80), a_port(name="web", container_port=80, host_port=80)]},
        "app.ports[1].host_port",
        "TCP 80 of the node is already used by spec.container.app.ports[0]",
    ),
    Refusal(
        "a port of the node taken by a sidecar",
        {
            "app.ports": [a_port(host_port=80)],
            "spec.container.sidecars": [a_sidecar(ports=[{"container_port": 80, "host_port": 80}])],
        },
        "spec.container.sidecars[0].ports[0].host_port",
        "TCP 80 of the node is already used by spec.container.app.ports[0]",
    ),
    Refusal(
        "a port of the node taken by an init container that stays",
        {
            "app.ports": [a_port(host_port=80)],
            "spec.init_containers": [
                a_sidecar(restart_policy="Always", ports=[{"container_port": 80, "host_port": 80}])
            ],
        },
        "spec.init_containers[0].ports[0].host_port",
        "TCP 80 of the node is already used by spec.container.app.ports[0]",
    ),
    Refusal(
        "a port of the node's network taken by a sidecar",
        {
            "spec.host_network": True,
            "app.ports": [a_port()],
            "spec.container.sidecars": [a_sidecar(ports=[{"container_port": 9100}])],
        },
        "spec.container.sidecars[0].ports[0].container_port",
        "TCP 9100 of the node is already used by spec.container.app.ports[0]",
    ),
]

PROBES: Final = [
    Refusal(what, {"app.liveness_probe": probe}, f"app.liveness_probe{field}", says)
    for what, probe, field, says in rows(
        ("a probe of nothing", {"period_seconds": 5}, "", "needs one of http_get, grpc, tcp_socket, exec"),
        (
            "a probe before the start",
            a_probe(initial_delay_seconds=-1),
            ".initial_delay_seconds",
            "-1 is invalid; expected 0 or more seconds",
        ),
        (
            "a probe all the time",
            a_probe(period_seconds=0),
            ".period_seconds",
            "0 is too short; expected 1 or more seconds",
        ),
        ("a probe without time", a_probe(timeout_seconds=0), ".timeout_seconds", "0 is too short"),
        ("no success at all", a_probe(success_threshold=0), ".success_threshold", "0 is too few"),
        ("no failure at all", a_probe(failure_threshold=0), ".failure_threshold", "0 is too few"),
        (
            "a liveness probe that succeeds twice",
            a_probe(success_threshold=2),
            ".success_threshold",
            "2 is valid only for readiness probes; expected 1 or unset",
        ),
        (
            "no time to end",
            a_probe(termination_grace_period_seconds=0),
            ".termination_grace_period_seconds",
            "0 is too short",
        ),
        ("an HTTP probe of no port", {"http_get": {"path": "/"}}, ".http_get", "needs one of port_number, port_name"),
        ("port 0 by HTTP", {"http_get": {"port_number": 0}}, ".http_get.port_number", "0 is invalid; expected a port"),
        (
            "a port by a long name",
            {"http_get": {"port_name": "a" * 16}},
            ".http_get.port_name",
            "is invalid; expected a port name",
        ),
        (
            "another scheme",
            {"http_get": {"port_number": 80, "scheme": "http"}},
            ".http_get.scheme",
            '"http" is invalid; expected HTTP or HTTPS',
        ),
        (
            "a header with a space",
            {"http_get": {"port_number": 80, "http_headers": [{"name": "A B", "value": "c"}]}},
            ".http_get.http_headers[0].name",
            '"A B" is invalid; expected a header name',
        ),
        ("a connection to no port", {"tcp_socket": {}}, ".tcp_socket", "needs one of port_number, port_name"),
        (
            "a connection to port 65536",
            {"tcp_socket": {"port_number": 65536}},
            ".tcp_socket.port_number",
            "65536 is invalid; expected a port",
        ),
        (
            "a connection to a name",
            {"tcp_socket": {"port_name": "A"}},
            ".tcp_socket.port_name",
            '"A" is invalid; expected a port name',
        ),
        ("gRPC on no port", {"grpc": {}}, ".grpc.port", "0 is invalid; expected a port"),
        ("a command of nothing", {"exec": {"command": []}}, ".exec.command", "a command is required"),
    )
] + [
    Refusal(
        "a startup probe that succeeds twice",
        {"app.startup_probe": a_probe(success_threshold=3)},
        "app.startup_probe.success_threshold",
        "3 is valid only for readiness probes",
    ),
    Refusal(
        "a readiness probe that ends its container",
        {"app.readiness_probe": a_probe(termination_grace_period_seconds=5)},
        "app.readiness_probe.termination_grace_period_seconds",
        "a readiness probe does not stop its container; remove it",
    ),
    Refusal(
        "a hook that does nothing",
        {"app.lifecycle.pre_stop": {}},
        "app.lifecycle.pre_stop",
        "needs one of exec, http_get, sleep_seconds",
    ),
    Refusal(
        "a sleep of no time",
        {"app.lifecycle.pre_stop.sleep_seconds": 0},
        "app.lifecycle.pre_stop.sleep_seconds",
        "0 is invalid; expected 1 or more seconds",
    ),
    Refusal(
        "a sleep beyond the end",
        {"app.lifecycle.pre_stop.sleep_seconds": 31},
        "app.lifecycle.pre_stop.sleep_seconds",
        "31 is longer than the 30 s in which a pod must stop",
    ),
    Refusal(
        "a sleep beyond an early end",
        {"app.lifecycle.post_start.sleep_seconds": 6, "spec.termination_grace_period_seconds": 5},
        "app.lifecycle.post_start.sleep_seconds",
        "6 is longer than the 5 s in which a pod must stop",
    ),
]

_GPU: Final = "example.com/gpu"

_HUGE: Final = "hugepages-2Mi"

_LONG: Final = f"{'a.' * 122}a/gpu"

AMOUNTS: Final = [
    Refusal(what, {"app.resources": resources}, f"app.resources.{field}", says)
    for what, resources, field, says in rows(
        (
            "lots of CPU",
            {"limits": {"cpu": "lots", "memory": "1Gi"}},
            "limits.cpu",
            '"lots" is invalid; expected a quantity such as 250m, 64Mi or 2',
        ),
        (
            "less than no memory",
            {"limits": {"memory": "1Gi"}, "requests": {"memory": "-1"}},
            "requests.memory",
            '"-1" is negative; expected 0 or more',
        ),
        *(
            (
                f"memory of {text}",
                {"limits": {"memory": text}},
                "limits.memory",
                f'"{text}" is invalid; expected {right}',
            )
            for text, right in [
                ("10GB", "10G"),
                ("1gi", "1Gi"),
                ("1.5 GiB", "1.5Gi"),
                ("512mb", "512M"),
                ("10K", "10k"),
                ("10XB", "a quantity such as 250m, 64Mi or 2"),
            ]
        ),
        (
            "a request above the limit",
            {"limits": {"memory": "1Gi"}, "requests": {"memory": "1025Mi"}},
            "requests.memory",
            '"1025Mi" is more than the limit "1Gi"; decrease it or increase the limit',
        ),
        (
            "a disk above the limit",
            {"limits": {"memory": "1Gi", "ephemeral_storage": "1G"}, "requests": {"ephemeral_storage": "1Gi"}},
            "requests.ephemeral_storage",
            '"1Gi" is more than the limit "1G"',
        ),
        (
            "an amount of nothing",
            {"limits": {"memory": "1Gi", "other": {"example.com/gpu": ""}}},
            'limits.other["example.com/gpu"]',
            '"" is invalid; expected a quantity',
        ),
        (
            "a resource without a domain",
            {"limits": {"memory": "1Gi", "other": {"gpu": "1"}}},
            "limits.other.gpu",
            '"gpu" is invalid; expected a full resource name such as nvidia.com/gpu',
        ),
        (
            "a resource called as a quota is",
            {"limits": {"memory": "1Gi", "other": {"requests.example.com/gpu": "1"}}},
            'limits.other["requests.example.com/gpu"]',
            '"requests.example.com/gpu" is invalid; expected a full resource name such as nvidia.com/gpu',
        ),
        (
            "a resource of too long a domain",
            {"limits": {"memory": "1Gi", "other": {_LONG: "1"}}},
            f'limits.other["{_LONG}"]',
            "is invalid; expected a full resource name",
        ),
        (
            "a device by request",
            {"limits": {"memory": "1Gi"}, "requests": {"other": {"example.com/gpu": 1}}},
            'requests.other["example.com/gpu"]',
            "the limit of this resource is also its request",
        ),
        (
            "more devices than requested",
            {"limits": {"memory": "1Gi", "other": {_GPU: 2}}, "requests": {"other": {_GPU: 1}}},
            'limits.other["example.com/gpu"]',
            'is "2", but the request is "1"; limit and request of this resource must be equal',
        ),
        (
            "half a device",
            {"limits": {"memory": "1Gi", "other": {_GPU: "500m"}}},
            'limits.other["example.com/gpu"]',
            '"500m" is invalid; expected a whole number',
        ),
        (
            "huge pages alone",
            {"limits": {"other": {_HUGE: "4Mi"}}},
            "limits.other.hugepages-2Mi",
            "huge pages require cpu or memory",
        ),
        (
            "more huge pages than requested",
            {"limits": {"memory": "1Gi", "other": {_HUGE: "4Mi"}}, "requests": {"other": {_HUGE: "2Mi"}}},
            "limits.other.hugepages-2Mi",
            'is "4Mi", but the request is "2Mi"; limit and request of this resource must be equal',
        ),
        (
            "huge pages by request",
            {"limits": {"memory": "1Gi"}, "requests": {"other": {_HUGE: "2Mi"}}},
            "requests.other.hugepages-2Mi",
            "the limit of this resource is also its request",
        ),
        (
            "half a huge page",
            {"limits": {"memory": "1Gi", "other": {_HUGE: "3Mi"}}},
            "limits.other.hugepages-2Mi",
            '"3Mi" is not a multiple of the page size',
        ),
        (
            "huge pages of no size",
            {"limits": {"memory": "1Gi", "other": {"hugepages-big": "3Mi"}}},
            "limits.other.hugepages-big",
            '"3Mi" is not a multiple of the page size',
        ),
        (
            "more devices requested than allowed",
            {"limits": {"memory": "1Gi", "other": {_GPU: 1}}, "requests": {"other": {_GPU: 2}}},
            'requests.other["example.com/gpu"]',
            '"2" is more than the limit "1"',
        ),
    )
]

RIGHTS: Final = [
    Refusal(what, {"app.security_context": context}, f"app.security_context{field}", says)
    for what, context, field, says in rows(
        (
            "privileged without escalation",
            {"privileged": True, "allow_privilege_escalation": False},
            "",
            "privileged: true cannot be combined with allow_privilege_escalation: false",
        ),
        *(
            (
                f"{name} without escalation",
                {"allow_privilege_escalation": False, "capabilities": {"add": [name]}},
                "",
                "capability SYS_ADMIN cannot be combined with allow_privilege_escalation: false",
            )
            for name in ("SYS_ADMIN", "CAP_SYS_ADMIN")
        ),
        ("user -1", {"run_as_user": -1}, ".run_as_user", "-1 is invalid; expected a user ID from 0 to 2147483647"),
        (
            "group 2147483648",
            {"run_as_group": 2147483648},
            ".run_as_group",
            "2147483648 is invalid; expected a group ID",
        ),
        (
            "another profile",
            {"seccomp_profile": {"type": "None"}},
            ".seccomp_profile.type",
            '"None" is invalid; expected RuntimeDefault',
        ),
        (
            "a profile of nowhere",
            {"seccomp_profile": {"type": "Localhost"}},
            ".seccomp_profile",
            "localhost_profile is required when type is Localhost",
        ),
        (
            "a profile that is not used",
            {"seccomp_profile": {"type": "Unconfined", "localhost_profile": "a"}},
            ".seccomp_profile",
            "localhost_profile requires type: Localhost",
        ),
        (
            "an absolute profile",
            {"seccomp_profile": {"type": "Localhost", "localhost_profile": "/a"}},
            ".seccomp_profile.localhost_profile",
            '"/a" is an absolute path',
        ),
        (
            "a profile that leads out",
            {"seccomp_profile": {"type": "Localhost", "localhost_profile": "../a"}},
            ".seccomp_profile.localhost_profile",
            "leads outside the kubelet's seccomp directory",
        ),
    )
] + [
    Refusal(what, {"spec.pod_security_context": context}, f"spec.pod_security_context.{field}", says)
    for what, context, field, says in rows(
        ("a pod's user -1", {"run_as_user": -1}, "run_as_user", "-1 is invalid; expected a user ID"),
        ("a pod's group -1", {"run_as_group": -1}, "run_as_group", "-1 is invalid; expected a group ID"),
        ("a volume's group -1", {"fs_group": -1}, "fs_group", "-1 is invalid; expected a group ID"),
        (
            "a further group -1",
            {"supplemental_groups": [0, -1]},
            "supplemental_groups[1]",
            "-1 is invalid; expected a group ID",
        ),
    )
]

BESIDE: Final = (
    [
        Refusal(what, {"spec.container.sidecars": [a_sidecar(**fields)]}, f"spec.container.sidecars[0]{field}", says)
        for what, fields, field, says in rows(
            ("a sidecar without a name", {"name": ""}, ".name", "a container needs a name"),
            ("a sidecar with capitals", {"name": "Helper"}, ".name", '"Helper" is invalid; expected a container name'),
            (
                "a sidecar called as the app is",
                {"name": "agent"},
                ".name",
                '"agent" is the name of the app container, which is metadata.name',
            ),
            ("a sidecar without an image", {"image": ""}, ".image", "a container needs an image"),
            *(
                (f"a sidecar's image: {what}", {"image": image}, ".image", says)
                for what, image, says in [
                    ("spaces", "a b", '"a b" is not a valid repository; expected lowercase letters'),
                    (
                        "spaces and colons",
                        "ngi nx:::latest",
                        '"ngi nx::" is not a valid repository; expected one colon',
                    ),
                    ("capitals", "Foo/Bar:1", '"Foo/Bar" is not a valid repository; expected lowercase: foo/bar'),
                    ("a scheme", "http://foo/bar:1", '"http://foo/bar" is not a valid repository; remove http://'),
                    ("a hyphen", "-x:1", '"-x" is not a valid repository; expected lowercase letters'),
                    ("a tag alone", ":1", '":1" has no repository; add it before the tag'),
                    ("a digest alone", f"@{DIGEST}", "has no repository; add it before the digest"),
                    ("an empty tag", "helper:", '"" is invalid; expected a tag of at most 128 letters'),
                    ("half a digest", f"helper:1@{DIGEST[:-1]}", "is invalid; expected sha256: followed by 64"),
                ]
            ),
            (
                "a sidecar's pull policy",
                {"pull_policy": "Maybe"},
                ".pull_policy",
                '"Maybe" is invalid; expected Always',
            ),
            (
                "a sidecar that starts before",
                {"restart_policy": "Always"},
                ".restart_policy",
                "is valid only for init_containers",
            ),
            (
                "a sidecar that is not restarted",
                {"restart_policy": "Never"},
                ".restart_policy",
                "is invalid; expected Always or unset",
            ),
            ("a variable without a name", {"env": [{"value": "a"}]}, ".env[0].name", "a variable needs a name"),
            (
                "a variable's name with =",
                {"env": [{"name": "A=", "value": "a"}]},
                ".env[0].name",
                "is invalid; expected a variable name",
            ),
            (
                "a variable given twice",
                {"env": [{"name": "A", "value": "a"}, {"name": "A", "value": "b"}]},
                ".env[1].name",
                '"A" is defined twice; remove one',
            ),
            (
                "a variable of two sources",
                {"env": [{"name": "A", "value": "a", "field_ref": {"field_path": "spec.nodeName"}}]},
                ".env[0]",
                "a variable can have only one source",
            ),
            (
                "a sidecar's port without a number",
                {"ports": [{"name": "a"}]},
                ".ports[0].container_port",
                "0 is invalid; expected a port",
            ),
            (
                "a sidecar's port with a hyphen",
                {"ports": [{"name": "a-", "container_port": 80}]},
                ".ports[0].name",
                "is invalid; expected a port name",
            ),
            (
                "a sidecar's protocol",
                {"ports": [{"container_port": 80, "protocol": "tcp"}]},
                ".ports[0].protocol",
                '"tcp" is invalid; expected TCP, UDP or SCTP',
            ),
            (
                "a sidecar's port of the node",
                {"ports": [{"container_port": 80, "host_port": -1}]},
                ".ports[0].host_port",
                "-1 is invalid; expected a port",
            ),
            (
                "two ports of a sidecar",
                {"ports": [{"name": "a", "container_port": 80}, {"name": "a", "container_port": 81}]},
                ".ports[1].name",
                "is already the name of another port of this container",
            ),
            (
                "a sidecar's amounts",
                limits(cpu="lots"),
                ".resources.limits.cpu",
                '"lots" is invalid; expected a quantity',
            ),
            (
                "a sidecar's mounts for the node",
                {"volume_mounts": [a_mount(mount_propagation="Bidirectional")]},
                ".volume_mounts[0].mount_propagation",
                "Bidirectional requires security_context.privileged: true",
            ),
            (
                "a sidecar's probe that succeeds twice",
                {"startup_probe": a_probe(success_threshold=2)},
                ".startup_probe.success_threshold",
                "2 is valid only for readiness probes",
            ),
        )
    ]
    + [
        Refusal(what, {"spec.init_containers": [a_sidecar(**fields)]}, f"spec.init_containers[0]{field}", says)
        for what, fields, field, says in rows(
            (
                "a probe of what ends",
                {"readiness_probe": a_probe()},
                ".readiness_probe",
                "an init container exits before it can be probed",
            ),
            (
                "a hook of what ends",
                {"lifecycle": {"pre_stop": {"sleep_seconds": 1}}},
                ".lifecycle",
                "requires restart_policy: Always in an init container",
            ),
        )
    ]
    + [
        Refusal(
            "an init container called as a sidecar is",
            {"spec.container.sidecars": [a_sidecar()], "spec.init_containers": [a_sidecar()]},
            "spec.init_containers[0].name",
            '"helper" is the name of spec.container.sidecars[0]',
        ),
    ]
)
