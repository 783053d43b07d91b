"""Requests to a real API server: what it answers, and what we make of it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import lab
from kube_node_ready import __version__
from kube_node_ready.api.paths import resource_of
from kube_node_ready.kube.access import Access, access
from kube_node_ready.kube.client import Call, KubeClient, PatchKind
from kube_node_ready.kube.errors import (
    AlreadyExists,
    Conflict,
    Expired,
    KubeError,
    NotFound,
    Rejected,
    Throttled,
    Unreachable,
    WatchStalled,
)
from kube_node_ready.kube.rate_limit import TokenBucket
from tests.support.faulty_proxy import Cuts, Proxy, Says, Stalls, in_turn

NODES = "/api/v1/nodes"
NOBODY = "11111111-1111-1111-1111-111111111111"
Use = Callable[[KubeClient], Awaitable[Any]]


def body(value: object) -> bytes:
    return json.dumps(value).encode()


def use(how: Access, what: Use, **options: Any) -> Any:  # noqa: ANN401  whatever the test wants to know
    async def main() -> Any:  # noqa: ANN401
        async with KubeClient(how, **options) as kube:
            return await what(kube)

    return asyncio.run(main())


@pytest.fixture(scope="module")
def admin(plane: lab.Plane) -> Access:
    return access(plane.kubeconfig())


@pytest.fixture
def node(admin: Access, prefix: str) -> str:
    """The path of a Node with one taint of ours."""
    taint = {"key": "gate", "effect": "NoSchedule"}
    made = {"metadata": {"name": prefix, "labels": {"kept": "yes"}}, "spec": {"taints": [taint]}}
    use(admin, lambda kube: kube.create(NODES, body(made)))
    return f"{NODES}/{prefix}"


def a_pod(name: str) -> bytes:
    return body({"metadata": {"name": name}, "spec": {"containers": [{"name": "a", "image": "lab.local/none:1"}]}})


def patch(path: str, change: object, kind: PatchKind) -> Use:
    return lambda kube: kube.patch(path, body(change), kind)


def test_a_json_patch_with_a_failed_test_is_a_conflict_and_changes_nothing(admin: Access, node: str) -> None:
    change = [
        {"op": "remove", "path": "/metadata/labels/kept"},
        {"op": "test", "path": "/spec/taints/0/key", "value": "other"},
    ]
    with pytest.raises(Conflict):
        use(admin, patch(node, change, PatchKind.JSON))
    assert json.loads(use(admin, lambda kube: kube.get(node)))["metadata"]["labels"]["kept"] == "yes"


def test_a_json_patch_of_a_missing_object_is_a_conflict(admin: Access, node: str) -> None:
    with pytest.raises(Conflict):
        use(admin, patch(node, [{"op": "remove", "path": "/spec/taints/9"}], PatchKind.JSON))


def test_a_json_patch_that_makes_the_object_invalid_is_rejected_with_the_reason(admin: Access, node: str) -> None:
    change = [{"op": "add", "path": "/metadata/labels/bad", "value": "not good!"}]
    with pytest.raises(Rejected, match="a valid label must be") as refused:
        use(admin, patch(node, change, PatchKind.JSON))
    assert refused.value.status == 422


@pytest.mark.parametrize("kind", [PatchKind.STRATEGIC, PatchKind.MERGE])
def test_a_patch_for_another_uid_is_a_conflict(admin: Access, node: str, kind: PatchKind) -> None:
    change = {"metadata": {"uid": NOBODY, "annotations": {"a": "b"}}}
    with pytest.raises(Conflict):
        use(admin, patch(f"{node}/status", change, kind))


def test_a_patch_of_an_outdated_version_is_a_conflict(admin: Access, node: str) -> None:
    with pytest.raises(Conflict):
        use(admin, patch(node, {"metadata": {"resourceVersion": "1"}}, PatchKind.MERGE))


def test_a_replace_of_an_outdated_version_is_a_conflict(admin: Access, node: str) -> None:
    async def late(kube: KubeClient) -> None:
        seen = await kube.get(node)
        await kube.patch(node, body({"metadata": {"labels": {"new": "1"}}}), PatchKind.MERGE)
        await kube.replace(node, seen)

    with pytest.raises(Conflict):
        use(admin, late)


def test_a_delete_for_another_uid_deletes_nothing(admin: Access, node: str) -> None:
    with pytest.raises(Conflict, match="does not match the UID"):
        use(admin, lambda kube: kube.delete(node, uid=NOBODY))
    uid = json.loads(use(admin, lambda kube: kube.get(node)))["metadata"]["uid"]
    use(admin, lambda kube: kube.delete(node, uid=uid))
    with pytest.raises(NotFound):
        use(admin, lambda kube: kube.get(node))


def test_creating_an_existing_pod_is_already_exists(admin: Access, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    use(admin, lambda kube: kube.create(pods, a_pod("twice")))
    with pytest.raises(AlreadyExists, match='pods "twice" already exists'):
        use(admin, lambda kube: kube.create(pods, a_pod("twice")))
    use(admin, lambda kube: kube.delete(f"{pods}/twice", grace_seconds=0))
    with pytest.raises(NotFound):
        use(admin, lambda kube: kube.get(f"{pods}/twice"))


@pytest.mark.parametrize(
    ("attempt", "answer", "why"),
    [
        (lambda kube: kube.create("/api/v1/namespaces/nowhere/pods", a_pod("lost")), NotFound, '"nowhere" not found'),
        (patch(f"{NODES}/none", {}, PatchKind.MERGE), NotFound, 'nodes "none" not found'),
        (patch(f"{NODES}/none", [], PatchKind.JSON), NotFound, 'nodes "none" not found'),
        (lambda kube: kube.delete(f"{NODES}/none", uid=NOBODY), NotFound, 'nodes "none" not found'),
        (lambda kube: kube.get("/apis/no.such.group/v1/things"), NotFound, "404 page not found"),
        (lambda kube: kube.get(NODES, fieldSelector="spec.none=1"), Rejected, "field label not supported"),
        (lambda kube: kube.create(NODES, b"{"), Rejected, "unexpected end|couldn't get version"),
        (lambda kube: kube.create("/api/v1/namespaces/default/pods", body({"spec": {}})), Rejected, "Required value"),
        (lambda kube: kube.get(NODES, resourceVersion="99999999"), Unreachable, "Too large resource version"),
    ],
)
def test_each_status_code_has_its_error(admin: Access, attempt: Use, answer: type[KubeError], why: str) -> None:
    with pytest.raises(answer, match=why) as raised:
        use(admin, attempt)
    assert type(raised.value) is answer


def test_a_missing_permission_is_forbidden_with_the_servers_message(plane: lab.Plane, namespace: str) -> None:
    someone = access(plane.kubeconfig(f"{namespace}/default"))
    assert someone.namespace == "default"
    with pytest.raises(Rejected, match="cannot list resource") as refused:
        use(someone, lambda kube: kube.get(NODES))
    assert refused.value.status == 403
    assert str(refused.value).startswith("GET /api/v1/nodes: nodes is forbidden")


def test_calls_are_counted_by_resource(admin: Access, node: str) -> None:
    calls: list[Call] = []

    async def some(kube: KubeClient) -> None:
        await kube.get(node)
        await kube.patch(f"{node}/status", b"{}", PatchKind.STRATEGIC)
        with pytest.raises(NotFound):
            await kube.delete(f"{NODES}/none")
        async with kube.stream(NODES, watch="1", timeoutSeconds="1") as lines:
            async for _ in lines:
                break

    use(admin, some, on_call=calls.append)
    assert [(call.verb, call.resource, call.status) for call in calls] == [
        ("get", "nodes", 200),
        ("patch", "nodes/status", 200),
        ("delete", "nodes", 404),
        ("watch", "nodes", 200),
    ]
    assert all(0 < call.seconds < 30 for call in calls)


@pytest.mark.parametrize(
    ("path", "about"),
    [
        ("/api/v1/nodes/a/status", "nodes/status"),
        ("/api/v1/namespaces/x/pods/y", "pods"),
        ("/api/v1/namespaces/x", "namespaces"),
        ("/apis/coordination.k8s.io/v1/namespaces/x/leases/y", "leases"),
        ("/apis/karpenter.sh/v1/nodeclaims", "nodeclaims"),
        ("/version", ""),
    ],
)
def test_a_path_has_a_resource(path: str, about: str) -> None:
    assert resource_of(path) == about


def test_the_user_agent_has_name_and_version(plane: lab.Plane, admin: Access) -> None:
    agents: list[str] = []

    async def scenario(proxy: Proxy, kube: KubeClient) -> None:
        proxy.plan = lambda request: agents.append(request.headers["User-Agent"])
        await kube.get(NODES)

    through(admin, scenario)
    assert agents == [f"kube-node-ready-controller/{__version__}"]
    with plane.audit.window() as calls:
        use(admin, lambda kube: kube.get(NODES))
    assert calls.count(agent="kube-node-ready-controller", verb="list", resource="nodes") == 1


def test_calls_are_limited_and_watches_are_not(admin: Access) -> None:
    async def times(kube: KubeClient) -> float:
        began = asyncio.get_running_loop().time()
        await asyncio.gather(*(kube.get("/version") for _ in range(4)))
        took = asyncio.get_running_loop().time() - began
        async with kube.stream(NODES, watch="1", timeoutSeconds="1"):
            return took

    async def far_ahead(kube: KubeClient) -> None:
        await kube.get("/version")
        async with asyncio.timeout(30), kube.stream(NODES, watch="1", timeoutSeconds="1"):
            pass

    assert use(admin, times, limit=TokenBucket(qps=10, burst=1)) >= 0.3
    use(admin, far_ahead, limit=TokenBucket(qps=0.001, burst=1))


def through(admin: Access, scenario: Callable[[Proxy, KubeClient], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Proxy(admin) as proxy, KubeClient(proxy.access) as kube:
            await scenario(proxy, kube)

    asyncio.run(main())


@pytest.mark.parametrize("fault", [Cuts(), Cuts(after=20), Says(500), Says(503, b"no upstream"), Says(504)])
def test_a_partial_response_and_no_response_are_unreachable(admin: Access, fault: Cuts | Says) -> None:
    async def scenario(proxy: Proxy, kube: KubeClient) -> None:
        proxy.plan = lambda _: fault
        with pytest.raises(Unreachable):
            await kube.get("/api/v1/namespaces/default")
        proxy.plan = lambda _: None
        await kube.get("/api/v1/namespaces/default")

    through(admin, scenario)


@pytest.mark.parametrize("fault", [Stalls(after=0), Stalls(after=20)])
def test_a_call_ends_within_its_timeout(admin: Access, fault: Stalls) -> None:
    async def scenario(proxy: Proxy, kube: KubeClient) -> None:
        proxy.plan = lambda _: fault
        async with asyncio.timeout(20):
            with pytest.raises(Unreachable, match="GET /api/v1/namespaces/default: no response in time"):
                await kube.get("/api/v1/namespaces/default", timeout_seconds=0.3)

    through(admin, scenario)


def test_throttling_has_a_retry_after(admin: Access) -> None:
    async def scenario(proxy: Proxy, kube: KubeClient) -> None:
        proxy.plan = lambda _: Says(429, b"Too many requests, please try again later.\n", {"Retry-After": "7"})
        with pytest.raises(Throttled, match="Too many requests") as throttled:
            await kube.get(NODES)
        assert throttled.value.retry_after == 7

    through(admin, scenario)


def test_an_expired_version_is_gone(admin: Access) -> None:
    async def scenario(proxy: Proxy, kube: KubeClient) -> None:
        proxy.plan = lambda _: Says(410, body({"reason": "Expired", "message": "too old resource version"}))
        with pytest.raises(Expired, match="too old"):
            async with kube.stream(NODES, watch="1"):
                pass

    through(admin, scenario)


def test_a_redirect_is_not_followed(admin: Access) -> None:
    """It would carry our credentials elsewhere."""

    async def scenario(proxy: Proxy, kube: KubeClient) -> None:
        proxy.plan = lambda request: (
            Says(302, headers={"Location": "/elsewhere"}) if request.path == NODES else Says(200)
        )
        with pytest.raises(KubeError):
            await kube.get(NODES)
        assert proxy.asked == [f"GET {NODES}"]

    through(admin, scenario)


def test_a_silent_watch_is_detected(admin: Access) -> None:
    async def scenario(proxy: Proxy, kube: KubeClient) -> None:
        proxy.plan = in_turn(Stalls(after=10))
        with pytest.raises(WatchStalled):
            async with kube.stream("/api/v1/namespaces", stall_timeout=0.5, watch="1") as lines:
                async for _ in lines:
                    pytest.fail("ten bytes are no line")

    through(admin, scenario)


def test_long_lines_are_complete(admin: Access, namespace: str) -> None:
    """An object of nearly a megabyte comes in many pieces."""
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    large = body({"metadata": {"name": "large"}, "data": {"x": "y" * 900_000}})

    async def watch(kube: KubeClient) -> list[bytes]:
        await kube.create(maps, large)
        await kube.create(maps, body({"metadata": {"name": "small"}}))
        async with kube.stream(maps, watch="1", timeoutSeconds="2") as lines:
            return [line async for line in lines]

    found = {json.loads(line)["object"]["metadata"]["name"] for line in use(admin, watch)}
    assert {"large", "small"} <= found


def test_a_closed_port_is_unreachable(admin: Access) -> None:
    with pytest.raises(Unreachable, match="GET /version: "):
        use(Access("http://127.0.0.1:9", "default", admin.tls), lambda kube: kube.get("/version"))
