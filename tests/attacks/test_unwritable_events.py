"""Objects that the API server stores and cannot write into a watch: one of them must not blind the controller.

JSON can have 10,000 levels in an API server. A client that sends an object as protobuf can nest a field of
`metadata.managedFields` so deeply that the object just fits, and the watch event around it does not. The server then
ends every watch that reaches it, without an error. It also ends watches of other clients, so this plane is not shared.
"""

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from lightkube.resources.core_v1 import Node

import lab
from kube_node_ready.agent.api import Api
from kube_node_ready.checks import kubeconfig
from kube_node_ready.kube.errors import KubeError
from lab import waiting
from tests.attacks.kubelet import IMAGE, MIRROR, WORKER_LABELS, Kubelet, kubelets
from tests.support.controller_process import Operator, operating
from tests.support.site import Site, a_site

LEVELS = 9_997
PATIENCE = 60
PROTOBUF = "application/vnd.kubernetes.protobuf"


@pytest.fixture(scope="module")
def own_site() -> Iterator[Site]:
    with lab.plane() as plane, a_site(plane, "unwritable") as site:
        yield site


def test_a_node_that_cannot_be_watched_does_not_stop_the_controller(own_site: Site, tmp_path: Path) -> None:
    with kubelets(own_site.plane, "evil", "before", "after", "meanwhile", "restart") as (evil, *honest):
        before, after, meanwhile, restart = honest
        with operating(tmp_path, own_site.plane.kubeconfig(), own_site.config()) as operator:
            is_released(own_site, before)
            register(own_site, evil)
            is_released(own_site, after)
            assert reports_the_watch(operator), "it is blind, and does not say so"
            with repeated(lambda: update(own_site, evil)):
                is_released(own_site, meanwhile)
        with operating(tmp_path, own_site.plane.kubeconfig(), own_site.config()):
            is_released(own_site, restart)


def test_a_pod_that_cannot_be_watched_does_not_stop_the_controller(own_site: Site, tmp_path: Path) -> None:
    """A mirror pod with the labels of workers. Its last event, of its deletion, has the field, too."""
    with kubelets(own_site.plane, "hostile", "other", "next") as (hostile, other, following):
        hostile.register(labels={"site": own_site.namespace})
        with operating(tmp_path, own_site.plane.kubeconfig(), own_site.config()):
            create_mirror(own_site, hostile)
            is_released(own_site, other)
            own_site.kubectl("delete", "--raw", f"/api/v1/namespaces/{own_site.namespace}/pods/mirror")
            is_released(own_site, following)


def is_released(site: Site, kubelet: Kubelet) -> None:
    """The node registers, its kubelet runs its worker, and its gate opens."""
    kubelet.register(labels={"site": site.namespace}, taints=[site.gate])

    def released() -> bool:
        kubelet.run_pods(lambda _: 0)
        node = kubelet.client.get(Node, kubelet.node)  # a list would contain the object that no client can read
        assert node.metadata
        return (node.metadata.labels or {}).get("node-ready/verified") == "true"

    site.until(f"{kubelet.node} is released", released, PATIENCE)


def reports_the_watch(operator: Operator) -> bool:
    return any("ended without an event" in str(line.get("error", "")) for line in operator.lines())


def register(site: Site, kubelet: Kubelet) -> None:
    send_node(site, kubelet, "POST", "/api/v1/nodes", b"")


def update(site: Site, kubelet: Kubelet) -> None:
    """Write the Node again. What the cluster has added to it, a kubelet cannot remove."""
    path = f"/api/v1/nodes/{kubelet.node}"
    known = api_of(site, kubelet).get(path).decode()  # as text: Python does not decode it
    cidr = re.search(r'"podCIDR":"([^"]+)"', known)
    send_node(site, kubelet, "PUT", path, texts({1: cidr[1], 7: cidr[1]}) if cidr else b"")


def create_mirror(site: Site, kubelet: Kubelet) -> None:
    owner = texts({1: "Node", 3: kubelet.node, 4: kubelet.uid, 5: "v1"}) + bytes([6 << 3, 1])
    metadata = (
        texts({1: "mirror", 3: site.namespace})
        + b"".join(field(11, texts({1: key, 2: value})) for key, value in WORKER_LABELS.items())
        + field(12, texts({1: MIRROR, 2: "a"}))
        + field(13, owner)
        + field(17, nested_entry())
    )
    spec = field(2, texts({1: "a", 2: IMAGE})) + texts({10: kubelet.node})
    send(site, kubelet, "POST", f"/api/v1/namespaces/{site.namespace}/pods", "Pod", field(1, metadata) + field(2, spec))


def send_node(site: Site, kubelet: Kubelet, method: str, path: str, spec: bytes) -> None:
    label = field(11, texts({1: "site", 2: site.namespace}))
    now = field(11, texts({1: "now", 2: str(time.monotonic_ns())}))
    metadata = texts({1: kubelet.node}) + label + now + field(17, nested_entry())
    taint = texts({1: "node.kubernetes.io/not-ready", 3: "NoSchedule"})  # the server's, which a kubelet cannot remove
    send(site, kubelet, method, path, "Node", field(1, metadata) + field(2, spec + field(5, taint)))


def send(site: Site, kubelet: Kubelet, method: str, path: str, kind: str, content: bytes) -> None:
    """With the kubelet's credentials, as Kubernetes sends protobuf."""
    body = b"k8s\x00" + field(1, texts({1: "v1", 2: kind})) + field(2, content)
    answer = api_of(site, kubelet)._send(method, path, body, PROTOBUF)
    assert answer.body.count(b'{"f:a"') == LEVELS, "the API server did not store it"


def api_of(site: Site, kubelet: Kubelet) -> Api:
    credentials = site.plane.kubelet_kubeconfig(kubelet.node)
    return Api(lambda: kubeconfig.load(credentials))


@contextlib.contextmanager
def repeated(act: Callable[[], None]) -> Iterator[None]:
    """Up to ten times per second, from before the block until after it."""
    end, times = threading.Event(), []

    def run() -> None:
        while not end.wait(0.1):
            with contextlib.suppress(KubeError):  # the cluster changed the Node meanwhile
                act()
                times.append(time.monotonic())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        waiting.until("the attack has begun", lambda: len(times) > 3, PATIENCE)
        yield
    finally:
        end.set()
        thread.join()


def nested_entry() -> bytes:
    """An entry of `managedFields` that claims a field at this depth."""
    fields = b'{"f:status":' + b'{"f:a":' * LEVELS + b"{}" + b"}" * LEVELS + b"}"
    named = texts({1: "hostile", 2: "Update", 3: "v1", 6: "FieldsV1", 8: "status"})
    return named + field(4, bytes([1 << 3]) + varint(1_767_225_600)) + field(7, field(1, fields))


def texts(fields: Mapping[int, str]) -> bytes:
    return b"".join(field(number, text.encode()) for number, text in fields.items())


def field(number: int, content: bytes) -> bytes:
    """A protobuf field with a length."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(number: int) -> bytes:
    last = number & 127
    return bytes([last | 128]) + varint(number >> 7) if number > 127 else bytes([last])
