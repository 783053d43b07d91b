"""Of containers: images, ports, probes, amounts, rights, and those beside the app."""

from typing import Final

from tests.component import DIGEST, GONE, Json, a_mount, a_port, a_sidecar
from tests.refusals.case import Refusal, a_probe, rows


def limits(**amounts: object) -> Json:
    return {"resources": {"limits": {"memory": "64Mi"} | amounts}}


_REPOSITORIES: Final = [
    ("a repo with spaces", "a b", "write lowercase letters and digits, with single dots"),
    ("a repo with capitals", "Foo/Bar", "write it in lowercase: foo/bar"),
    ("a repo with capitals at a registry", "Foo.example/team/Bar", "write it in lowercase: foo.example/team/bar"),
    ("a repo with a scheme", "http://foo/bar", "leave http:// out"),
    ("a repo that begins with a hyphen", "-x", "write lowercase letters and digits"),
    ("a repo with three underscores", "a___b", "write lowercase letters and digits"),
    ("a repo with two slashes", "a//b", "write lowercase letters and digits"),
    ("a repo that ends in a slash", "a.example/", "write lowercase letters and digits"),
    ("a repo with a tag", "nginx:1.2", "one colon stands before the tag, and none within the repository"),
    ("a repo with a digest", f"nginx@{DIGEST}", "write what follows the @ as digest"),
    ("a repo of a port in words", "a.example:http/b", '"http" is no port; write digits'),
]

IMAGES: Final = [
    Refusal("no image", {"app.image": GONE}, "app.image", "is required"),
    Refusal("no repo", {"app.image.repo": ""}, "app.image", "Image repo is required"),
    Refusal("no tag", {"app.image.tag": ""}, "app.image", "Image tag is required, or a digest"),
    *(
        Refusal(what, {"app.image.repo": repo}, "app.image.repo", f'"{repo}" cannot be a repository; {instead}')
        for what, repo, instead in _REPOSITORIES
    ),
    Refusal(
        "a repo of 256 letters",
        {"app.image.repo": "a" * 256},
        "app.image.repo",
        "is 256 characters long; a repository has at most 255",
    ),
    *(
        Refusal(what, {"app.image.tag": tag}, "app.image.tag", f'"{tag}" cannot be a tag; write at most 128 letters')
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
        '"nginx::" cannot be a repository; one colon stands before the tag, and none within the repository',
    ),
    Refusal("an image of two digests", {"app.image": f"agent@{DIGEST}@{DIGEST}"}, "app.image.digest", "is no digest"),
    Refusal(
        "half a digest", {"app.image.digest": DIGEST[:-1]}, "app.image.digest", "is no digest; write sha256: and 64"
    ),
    Refusal(
        "another pull policy",
        {"app.image.pull_policy": "Sometimes"},
        "app.image.pull_policy",
        "is no pull policy; write",
    ),
    Refusal(
        "a login with capitals",
        {"app.image.pull_secret_name": "Login"},
        "app.image.pull_secret_name",
        '"Login" cannot name an object',
    ),
]

PORTS: Final = [
    Refusal(what, {"app.ports": [a_port(**port)]}, f"app.ports[0].{field}", says)
    for what, port, field, says in rows(
        ("a port without a name", {"name": ""}, "name", "a port needs a name"),
        ("a port's name with capitals", {"name": "Metrics"}, "name", '"Metrics" cannot name a port'),
        ("a port's name that begins with a hyphen", {"name": "-metrics"}, "name", "no hyphen at an end"),
        ("a port's name of 21 letters", {"name": "a" * 21}, "name", "write at most 15 lowercase letters"),
        ("a port's name without letters", {"name": "9100"}, "name", "at least one letter"),
        ("a port's name with two hyphens", {"name": "a--b"}, "name", "single hyphens"),
        ("port 99999", {"container_port": 99999}, "container_port", "99999 is no port; write a number from 1 to 65535"),
        ("port 0", {"container_port": 0}, "container_port", "0 is no port"),
        ("another protocol", {"network_protocol": "HTTP"}, "network_protocol", '"HTTP" is no protocol; write TCP, UDP'),
        ("port 65536 of the node", {"host_port": 65536}, "host_port", "65536 is no port"),
    )
] + [
    Refusal(
        "two ports of one name",
        {"app.ports": [a_port(), a_port(container_port=9101)]},
        "app.ports[1].name",
        '"metrics" names another port of this container already',
    ),
    Refusal(
        "a port twice",
        {"app.ports": [a_port(), a_port(name="web")]},
        "app.ports[1].container_port",
        "TCP 9100 is another port of this container already",
    ),
    Refusal(
        "another port of the node on its own network",
        {"spec.host_network": True, "app.ports": [a_port(host_port=19100)]},
        "app.ports[0].host_port",
        "with host_network the two are one: write 9100, or leave host_port out",
    ),
    Refusal(
        "a port of the node taken twice",
        {"app.ports": [a_port(host_port=80), a_port(name="web", container_port=80, host_port=80)]},
        "app.ports[1].host_port",
        "TCP 80 of the node is spec.container.app.ports[0]'s already",
    ),
    Refusal(
        "a port of the node taken by a sidecar",
        {
            "app.ports": [a_port(host_port=80)],
            "spec.container.sidecars": [a_sidecar(ports=[{"container_port": 80, "host_port": 80}])],
        },
        "spec.container.sidecars[0].ports[0].host_port",
        "TCP 80 of the node is spec.container.app.ports[0]'s already",
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
        "TCP 80 of the node is spec.container.app.ports[0]'s already",
    ),
    Refusal(
        "a port of the node's network taken by a sidecar",
        {
            "spec.host_network": True,
            "app.ports": [a_port()],
            "spec.container.sidecars": [a_sidecar(ports=[{"container_port": 9100}])],
        },
        "spec.container.sidecars[0].ports[0].container_port",
        "TCP 9100 of the node is spec.container.app.ports[0]'s already",
    ),
]

PROBES: Final = [
    Refusal(what, {"app.liveness_probe": probe}, f"app.liveness_probe{field}", says)
    for what, probe, field, says in rows(
        ("a probe of nothing", {"period_seconds": 5}, "", "needs one of http_get, grpc, tcp_socket, exec"),
        ("a probe before the start", a_probe(initial_delay_seconds=-1), ".initial_delay_seconds", "-1 is in the past"),
        ("a probe all the time", a_probe(period_seconds=0), ".period_seconds", "0 is too short; write 1 or more"),
        ("a probe without time", a_probe(timeout_seconds=0), ".timeout_seconds", "0 is too short"),
        ("no success at all", a_probe(success_threshold=0), ".success_threshold", "0 is too few"),
        ("no failure at all", a_probe(failure_threshold=0), ".failure_threshold", "0 is too few"),
        (
            "a liveness probe that succeeds twice",
            a_probe(success_threshold=2),
            ".success_threshold",
            "2 is for readiness probes; write 1 or leave it out",
        ),
        (
            "no time to end",
            a_probe(termination_grace_period_seconds=0),
            ".termination_grace_period_seconds",
            "0 is too short",
        ),
        ("an HTTP probe of no port", {"http_get": {"path": "/"}}, ".http_get", "needs one of port_number, port_name"),
        ("port 0 by HTTP", {"http_get": {"port_number": 0}}, ".http_get.port_number", "0 is no port"),
        ("a port by a long name", {"http_get": {"port_name": "a" * 16}}, ".http_get.port_name", "cannot name a port"),
        (
            "another scheme",
            {"http_get": {"port_number": 80, "scheme": "http"}},
            ".http_get.scheme",
            '"http" is no scheme; write HTTP or HTTPS',
        ),
        (
            "a header with a space",
            {"http_get": {"port_number": 80, "http_headers": [{"name": "A B", "value": "c"}]}},
            ".http_get.http_headers[0].name",
            '"A B" cannot name a header',
        ),
        ("a connection to no port", {"tcp_socket": {}}, ".tcp_socket", "needs one of port_number, port_name"),
        (
            "a connection to port 65536",
            {"tcp_socket": {"port_number": 65536}},
            ".tcp_socket.port_number",
            "65536 is no port",
        ),
        (
            "a connection to a name",
            {"tcp_socket": {"port_name": "A"}},
            ".tcp_socket.port_name",
            '"A" cannot name a port',
        ),
        ("gRPC on no port", {"grpc": {}}, ".grpc.port", "0 is no port"),
        ("a command of nothing", {"exec": {"command": []}}, ".exec.command", "a command is required"),
    )
] + [
    Refusal(
        "a startup probe that succeeds twice",
        {"app.startup_probe": a_probe(success_threshold=3)},
        "app.startup_probe.success_threshold",
        "3 is for readiness probes",
    ),
    Refusal(
        "a readiness probe that ends its container",
        {"app.readiness_probe": a_probe(termination_grace_period_seconds=5)},
        "app.readiness_probe.termination_grace_period_seconds",
        "a readiness probe ends no container; leave it out",
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
        "0 is no time to sleep",
    ),
    Refusal(
        "a sleep beyond the end",
        {"app.lifecycle.pre_stop.sleep_seconds": 31},
        "app.lifecycle.pre_stop.sleep_seconds",
        "31 is longer than the 30 s that a pod has to end",
    ),
    Refusal(
        "a sleep beyond an early end",
        {"app.lifecycle.post_start.sleep_seconds": 6, "spec.termination_grace_period_seconds": 5},
        "app.lifecycle.post_start.sleep_seconds",
        "6 is longer than the 5 s that a pod has to end",
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
            '"lots" is no amount; write a number with a unit, such as 250m, 64Mi or 2',
        ),
        (
            "less than no memory",
            {"limits": {"memory": "1Gi"}, "requests": {"memory": "-1"}},
            "requests.memory",
            '"-1" is less than nothing; write 0 or more',
        ),
        *(
            (
                f"memory of {text}",
                {"limits": {"memory": text}},
                "limits.memory",
                f'"{text}" is no amount; write {right}',
            )
            for text, right in [
                ("10GB", "10G"),
                ("1gi", "1Gi"),
                ("1.5 GiB", "1.5Gi"),
                ("512mb", "512M"),
                ("10K", "10k"),
                ("10XB", "a number with a unit, such as 250m, 64Mi or 2"),
            ]
        ),
        (
            "a request above the limit",
            {"limits": {"memory": "1Gi"}, "requests": {"memory": "1025Mi"}},
            "requests.memory",
            '"1025Mi" is more than the limit "1Gi"; lower it or raise the limit',
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
            '"" is no amount',
        ),
        (
            "a resource without a domain",
            {"limits": {"memory": "1Gi", "other": {"gpu": "1"}}},
            "limits.other.gpu",
            '"gpu" is no resource; write its full name, such as nvidia.com/gpu',
        ),
        (
            "a resource called as a quota is",
            {"limits": {"memory": "1Gi", "other": {"requests.example.com/gpu": "1"}}},
            'limits.other["requests.example.com/gpu"]',
            '"requests.example.com/gpu" is no resource; write its full name, such as nvidia.com/gpu',
        ),
        (
            "a resource of too long a domain",
            {"limits": {"memory": "1Gi", "other": {_LONG: "1"}}},
            f'limits.other["{_LONG}"]',
            "is no resource",
        ),
        (
            "a device by request",
            {"limits": {"memory": "1Gi"}, "requests": {"other": {"example.com/gpu": 1}}},
            'requests.other["example.com/gpu"]',
            "such a resource is requested by its limit",
        ),
        (
            "more devices than requested",
            {"limits": {"memory": "1Gi", "other": {_GPU: 2}}, "requests": {"other": {_GPU: 1}}},
            'limits.other["example.com/gpu"]',
            'is "2", and the request "1"; such a resource takes the same for both',
        ),
        (
            "half a device",
            {"limits": {"memory": "1Gi", "other": {_GPU: "500m"}}},
            'limits.other["example.com/gpu"]',
            '"500m" is no whole number',
        ),
        (
            "huge pages alone",
            {"limits": {"other": {_HUGE: "4Mi"}}},
            "limits.other.hugepages-2Mi",
            "huge pages go with cpu or memory",
        ),
        (
            "more huge pages than requested",
            {"limits": {"memory": "1Gi", "other": {_HUGE: "4Mi"}}, "requests": {"other": {_HUGE: "2Mi"}}},
            "limits.other.hugepages-2Mi",
            'is "4Mi", and the request "2Mi"; such a resource takes the same for both',
        ),
        (
            "huge pages by request",
            {"limits": {"memory": "1Gi"}, "requests": {"other": {_HUGE: "2Mi"}}},
            "requests.other.hugepages-2Mi",
            "such a resource is requested by its limit",
        ),
        (
            "half a huge page",
            {"limits": {"memory": "1Gi", "other": {_HUGE: "3Mi"}}},
            "limits.other.hugepages-2Mi",
            '"3Mi" is not a whole number of such pages',
        ),
        (
            "huge pages of no size",
            {"limits": {"memory": "1Gi", "other": {"hugepages-big": "3Mi"}}},
            "limits.other.hugepages-big",
            '"3Mi" is not a whole number of such pages',
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
            "privileged: true cannot go with allow_privilege_escalation: false",
        ),
        *(
            (
                f"{name} without escalation",
                {"allow_privilege_escalation": False, "capabilities": {"add": [name]}},
                "",
                "the capability SYS_ADMIN cannot go with allow_privilege_escalation: false",
            )
            for name in ("SYS_ADMIN", "CAP_SYS_ADMIN")
        ),
        ("user -1", {"run_as_user": -1}, ".run_as_user", "-1 is no user; write a number from 0 to 2147483647"),
        ("group 2147483648", {"run_as_group": 2147483648}, ".run_as_group", "2147483648 is no group"),
        (
            "another profile",
            {"seccomp_profile": {"type": "None"}},
            ".seccomp_profile.type",
            '"None" is no kind of profile',
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
            "localhost_profile goes with type Localhost only",
        ),
        (
            "an absolute profile",
            {"seccomp_profile": {"type": "Localhost", "localhost_profile": "/a"}},
            ".seccomp_profile.localhost_profile",
            '"/a" is absolute',
        ),
        (
            "a profile that leads out",
            {"seccomp_profile": {"type": "Localhost", "localhost_profile": "../a"}},
            ".seccomp_profile.localhost_profile",
            "leads out of the kubelet's seccomp folder",
        ),
    )
] + [
    Refusal(what, {"spec.pod_security_context": context}, f"spec.pod_security_context.{field}", says)
    for what, context, field, says in rows(
        ("a pod's user -1", {"run_as_user": -1}, "run_as_user", "-1 is no user"),
        ("a pod's group -1", {"run_as_group": -1}, "run_as_group", "-1 is no group"),
        ("a volume's group -1", {"fs_group": -1}, "fs_group", "-1 is no group"),
        ("a further group -1", {"supplemental_groups": [0, -1]}, "supplemental_groups[1]", "-1 is no group"),
    )
]

BESIDE: Final = (
    [
        Refusal(what, {"spec.container.sidecars": [a_sidecar(**fields)]}, f"spec.container.sidecars[0]{field}", says)
        for what, fields, field, says in rows(
            ("a sidecar without a name", {"name": ""}, ".name", "a container needs a name"),
            ("a sidecar with capitals", {"name": "Helper"}, ".name", '"Helper" cannot name a container'),
            (
                "a sidecar called as the app is",
                {"name": "agent"},
                ".name",
                "\"agent\" is the app's, which is the component's",
            ),
            ("a sidecar without an image", {"image": ""}, ".image", "a container needs an image"),
            *(
                (f"a sidecar's image: {what}", {"image": image}, ".image", says)
                for what, image, says in [
                    ("spaces", "a b", '"a b" cannot be a repository; write lowercase letters'),
                    ("spaces and colons", "ngi nx:::latest", '"ngi nx::" cannot be a repository; one colon'),
                    ("capitals", "Foo/Bar:1", '"Foo/Bar" cannot be a repository; write it in lowercase: foo/bar'),
                    ("a scheme", "http://foo/bar:1", '"http://foo/bar" cannot be a repository; leave http:// out'),
                    ("a hyphen", "-x:1", '"-x" cannot be a repository; write lowercase letters'),
                    ("a tag alone", ":1", '":1" names no repository; write it before the tag'),
                    ("a digest alone", f"@{DIGEST}", "names no repository; write it before the digest"),
                    ("an empty tag", "helper:", '"" cannot be a tag; write at most 128 letters'),
                    ("half a digest", f"helper:1@{DIGEST[:-1]}", "is no digest; write sha256: and 64"),
                ]
            ),
            ("a sidecar's pull policy", {"pull_policy": "Maybe"}, ".pull_policy", '"Maybe" is no pull policy'),
            (
                "a sidecar that starts before",
                {"restart_policy": "Always"},
                ".restart_policy",
                "goes with init_containers only",
            ),
            ("a sidecar that is not restarted", {"restart_policy": "Never"}, ".restart_policy", "is no restart policy"),
            ("a variable without a name", {"env": [{"value": "a"}]}, ".env[0].name", "a variable needs a name"),
            (
                "a variable's name with =",
                {"env": [{"name": "A=", "value": "a"}]},
                ".env[0].name",
                "cannot name a variable",
            ),
            (
                "a variable given twice",
                {"env": [{"name": "A", "value": "a"}, {"name": "A", "value": "b"}]},
                ".env[1].name",
                '"A" is given twice; leave one out',
            ),
            (
                "a variable of two sources",
                {"env": [{"name": "A", "value": "a", "field_ref": {"field_path": "spec.nodeName"}}]},
                ".env[0]",
                "a variable has one source",
            ),
            (
                "a sidecar's port without a number",
                {"ports": [{"name": "a"}]},
                ".ports[0].container_port",
                "0 is no port",
            ),
            (
                "a sidecar's port with a hyphen",
                {"ports": [{"name": "a-", "container_port": 80}]},
                ".ports[0].name",
                "cannot name a port",
            ),
            (
                "a sidecar's protocol",
                {"ports": [{"container_port": 80, "protocol": "tcp"}]},
                ".ports[0].protocol",
                '"tcp" is no protocol',
            ),
            (
                "a sidecar's port of the node",
                {"ports": [{"container_port": 80, "host_port": -1}]},
                ".ports[0].host_port",
                "-1 is no port",
            ),
            (
                "two ports of a sidecar",
                {"ports": [{"name": "a", "container_port": 80}, {"name": "a", "container_port": 81}]},
                ".ports[1].name",
                "names another port of this container already",
            ),
            ("a sidecar's amounts", limits(cpu="lots"), ".resources.limits.cpu", '"lots" is no amount'),
            (
                "a sidecar's mounts for the node",
                {"volume_mounts": [a_mount(mount_propagation="Bidirectional")]},
                ".volume_mounts[0].mount_propagation",
                "Bidirectional needs security_context.privileged: true",
            ),
            (
                "a sidecar's probe that succeeds twice",
                {"startup_probe": a_probe(success_threshold=2)},
                ".startup_probe.success_threshold",
                "2 is for readiness probes",
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
                "an init container ends before it could be probed",
            ),
            (
                "a hook of what ends",
                {"lifecycle": {"pre_stop": {"sleep_seconds": 1}}},
                ".lifecycle",
                "goes with init containers of restart_policy: Always only",
            ),
        )
    ]
    + [
        Refusal(
            "an init container called as a sidecar is",
            {"spec.container.sidecars": [a_sidecar()], "spec.init_containers": [a_sidecar()]},
            "spec.init_containers[0].name",
            '"helper" is that of spec.container.sidecars[0]',
        ),
    ]
)
