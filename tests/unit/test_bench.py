"""The benchmark's arithmetic, and that its eyes survive what an API server does in a burst."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import aiohttp
import msgspec
import pytest
from aiohttp import web

from bench import component, floor, generator, journal, measure, reaction, report
from bench.api import Credentials, Watch
from bench.journal import Journal, Moment
from kubernetes_daemonset import sources
from lab.audit import Call, Calls

CREDENTIALS = Credentials("https://192.0.2.1", "ca", "crt", "key")


def a_node(name: str = "a", *taints: str, verified: bool = False) -> journal.Node:
    labels = {"node-ready/verified": "true"} if verified else {}
    return journal.Node(
        journal.Meta(name=name, labels=labels), journal.NodeSpec([journal.Taint(key) for key in taints])
    )


def a_pod(node: str = "a", *, bound: bool = False, phase: str = "Pending") -> journal.Pod:
    pod = floor.worker_pod(a_node(node), "workers")
    pod["spec"]["nodeName"] = node if bound else ""
    return msgspec.convert({**pod, "status": {"phase": phase}}, journal.Pod)


# Percentiles


def test_a_percentile_is_a_value_that_occurred() -> None:
    hundred = [float(number) for number in range(1, 101)]
    assert measure.spread(hundred) == measure.Spread(p50=50, p95=95, p99=99, worst=100)


def test_one_slow_node_of_ten_is_the_99th_percentile() -> None:
    found = measure.spread([9.0] + [1.0] * 9)
    assert found
    assert (found.p50, found.p99) == (1.0, 9.0)


def test_no_values_are_no_figure() -> None:
    assert measure.spread([]) is None


# CPU and memory


def test_cpu_time_is_read_behind_a_hostile_program_name() -> None:
    stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 100 0 0 0 7 5 3 2 20 0 1 0 100 1000 10"
    assert measure.cpu_ticks(stat) == 7 + 5 + 3 + 2


def test_what_a_process_used_is_the_difference_and_the_rest_is_noise() -> None:
    before = measure.Reading(at=10, seconds={"etcd": 1, "controller": 2}, busy=100, stolen=0)
    after = measure.Reading(at=70, seconds={"etcd": 2, "controller": 5}, busy=110, stolen=0.5)
    cost = measure.cost(before, after)
    assert cost == measure.Cost(elapsed=60, seconds={"etcd": 1, "controller": 3}, other=6, stolen=0.5)


def test_a_childs_cpu_and_memory_are_its_parents() -> None:
    burn = "x = bytearray(50 << 20)\nfor _ in range(6_000_000): pass\nprint('done', flush=True)\ninput()"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"
    with subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        assert process.pid in measure.children(os.getpid()).values()
        assert measure.read({"it": process.pid}).seconds["it"] > 0.05
        assert measure.peak_mebibytes(process.pid) > 60
        assert process.stdin
        process.stdin.write(b"\n")


# Moments


def test_a_node_is_released_when_the_gate_is_gone_and_the_label_is_there() -> None:
    assert not a_node("a", "node-ready/unverified").released
    assert not a_node("a").released
    assert not a_node("a", "node-ready/unverified", verified=True).released
    assert a_node("a", "node.kubernetes.io/not-ready", verified=True).released


def test_only_the_first_sight_of_a_moment_counts() -> None:
    seen = Journal()
    for now in (1.0, 2.0):
        seen.see_node(a_node("a", "node-ready/unverified"), now)
    assert seen.moments[Moment.GATED] == {"a": 1.0}


def test_a_pod_is_known_by_the_node_it_is_pinned_to_before_it_is_bound() -> None:
    assert a_pod("a").node == "a"
    seen = Journal()
    seen.see_pod(a_pod("a"), 1.0)
    seen.see_pod(a_pod("a", bound=True), 2.0)
    seen.see_pod(a_pod("a", bound=True, phase="Succeeded"), 3.0)
    assert [seen.moments[moment] for moment in (Moment.POD_CREATED, Moment.POD_BOUND, Moment.POD_SUCCEEDED)] == [
        {"a": 1.0},
        {"a": 2.0},
        {"a": 3.0},
    ]


def test_waiting_on_the_controller_is_what_the_control_plane_did_not_take() -> None:
    seen = Journal()
    seen.note(Moment.POSTED, "a", 0.5)
    seen.see_node(a_node("a", "node-ready/unverified"), 1.0)
    seen.see_pod(a_pod("a"), 3.0)
    seen.see_pod(a_pod("a", bound=True, phase="Succeeded"), 10.0)
    seen.see_node(a_node("a", verified=True), 14.0)
    found = journal.timings(seen.moments)
    spreads = (found.latency, found.until_pod, found.control_plane, found.until_release, found.waiting_on_controller)
    assert [spread and spread.worst for spread in spreads] == [13.5, 2.0, 7.0, 4.0, 6.0]


def test_a_watch_that_lags_behind_another_gives_no_negative_time() -> None:
    moments = {moment: {"a": 5.0} for moment in Moment} | {Moment.GATED: {"a": 9.0}}
    assert journal.between(moments, Moment.GATED, Moment.POD_CREATED) == {"a": 0.0}


def test_a_node_that_was_never_released_has_no_latency() -> None:
    moments: dict[Moment, dict[str, float]] = {moment: {} for moment in Moment}
    moments[Moment.POSTED] = {"a": 1.0}
    assert journal.timings(moments).latency is None


def an_audit_line(verb: str, resource: str, name: str, second: int, **more: object) -> bytes:
    event: dict[str, object] = {
        "stage": "ResponseComplete",
        "verb": verb,
        "userAgent": "controller/1",
        "objectRef": {"resource": resource, "name": name},
        "responseStatus": {"code": 200},
        "requestReceivedTimestamp": f"1970-01-01T00:00:{second:02d}.000000Z",
    }
    return msgspec.json.encode(event | more) + b"\n"


def test_the_controllers_own_share_ends_when_its_request_arrives() -> None:
    log = [
        an_audit_line("create", "pods", "w-a", 3),
        an_audit_line("create", "pods", "w-a", 1, stage="ResponseStarted"),
        an_audit_line("patch", "nodes", "a", 9, userAgent="kwok/1"),
        an_audit_line("patch", "nodes", "a", 12),
        an_audit_line("patch", "nodes", "a", 13, responseStatus={"code": 422}),
        an_audit_line("patch", "nodes", "a", 15, objectRef={"resource": "nodes", "subresource": "status", "name": "a"}),
    ]
    moments: dict[Moment, dict[str, float]] = {moment: {} for moment in Moment}
    moments[Moment.GATED], moments[Moment.POD_SUCCEEDED] = {"a": 1.0, "b": 1.0}, {"a": 10.0}
    found = reaction.reactions(moments, {"w-a": "a"}, reaction.asked(log, "controller"))
    spreads = (found.until_pod_was_asked_for, found.until_release_was_asked_for, found.until_both_were)
    assert [spread and spread.worst for spread in spreads] == [2.0, 2.0, 4.0]


# Load


def test_burst_nodes_are_gated_and_idle_ones_verified() -> None:
    def node(role: str, *, kubelets: bool = True) -> journal.Node:
        values = {"role": role, "nodes": 1, "namespace": "n", "kubernetes": "1.36.3", "kubelets": kubelets}
        orders = msgspec.convert({**values, "credentials": CREDENTIALS}, generator.Orders)
        (body,) = generator.bodies(orders).values()
        return msgspec.json.decode(body, type=journal.Node)

    assert node("burst").gate == node("floor").gate == 0
    assert node("idle").released
    assert node("idle", kubelets=False).released


def test_the_floor_removes_the_gate_wherever_it_stands_and_tests_that_it_does() -> None:
    patch = floor.release(a_node("a", "node.kubernetes.io/not-ready", "node-ready/unverified"))
    assert patch[1:] == [
        {"op": "test", "path": "/spec/taints/1/key", "value": "node-ready/unverified"},
        {"op": "remove", "path": "/spec/taints/1"},
    ]


# Watching


def a_line(kind: str, name: str = "", version: str = "", **more: object) -> bytes:
    found = {"metadata": {"name": name, "resourceVersion": version}, **more}
    return msgspec.json.encode({"type": kind, "object": found}) + b"\n"


async def watched(script: list[bytes | int], until: Callable[[list[str]], bool]) -> tuple[list[str], list[str], Watch]:
    """What a watch hands on, and the versions it asks for, of a server that answers each request with the next part."""
    asked: list[str] = []
    names: list[str] = []
    done = asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.query.get("resourceVersion", "list"))
        if "watch" not in request.query:
            return web.json_response({"metadata": {"resourceVersion": "5"}, "items": [{"metadata": {"name": "old"}}]})
        if not script:
            await asyncio.Event().wait()
        part = script.pop(0)
        return web.Response(status=part) if isinstance(part, int) else web.Response(body=part)

    def found(raw: msgspec.Raw) -> None:
        names.append(msgspec.json.decode(raw, type=journal.Node).metadata.name)
        if until(names):
            done.set()

    site = web.Application()
    site.router.add_get("/nodes", answer)
    runner = web.AppRunner(site, handler_cancellation=True, shutdown_timeout=1)
    await runner.setup()
    try:
        await (listener := web.TCPSite(runner, "127.0.0.1", 0)).start()
        async with aiohttp.ClientSession(listener.name) as session:
            watch = Watch(session, "/nodes", found)
            following = asyncio.create_task(watch.follow())
            await asyncio.wait_for(done.wait(), 10)
            following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await following
    finally:
        await runner.cleanup()
    return names, asked, watch


def test_a_closed_watch_goes_on_from_the_last_version_it_saw() -> None:
    script: list[bytes | int] = [a_line("ADDED", "a", "6") + a_line("BOOKMARK", "", "8"), a_line("MODIFIED", "b", "9")]
    names, asked, watch = asyncio.run(watched(script, lambda names: "b" in names))
    assert names == ["old", "a", "b"]
    assert asked[:3] == ["list", "5", "8"]
    assert watch.listed == 1


@pytest.mark.parametrize("gone", [410, a_line("ERROR", code=410)], ids=["as an answer", "as an event"])
def test_a_version_that_is_gone_makes_a_watch_list_again(gone: bytes | int) -> None:
    script: list[bytes | int] = [gone, a_line("ADDED", "a", "6")]
    _, asked, watch = asyncio.run(watched(script, lambda names: "a" in names))
    assert asked[:4] == ["list", "5", "list", "5"]
    assert watch.listed == 2


def test_a_server_that_is_overwhelmed_is_asked_again_from_the_same_version() -> None:
    _, asked, _ = asyncio.run(watched([429, a_line("ADDED", "a", "6")], lambda names: "a" in names))
    assert asked[:3] == ["list", "5", "5"]


# Reports


def test_lease_renewals_are_shown_and_are_no_writes_of_a_node() -> None:
    kinds = {
        Call("controller", "create", "pods", 201): 10,
        Call("controller", "patch", "nodes", 200): 10,
        Call("controller", "patch", "nodes", 422): 2,
        Call("controller", "update", "leases", 200): 30,
        Call("controller", "watch", "nodes", 200): 3,
        Call("kubelet", "patch", "nodes", 200): 99,
    }
    figures = report.call_figures(Calls(Counter(kinds)), "controller", nodes=10)
    assert figures["controller_writes_a_node"] == 2.2
    assert figures["calls_of_all_clients"] == 154
    assert figures["node_changes_by_all_clients"] == 109
    assert figures["controller_calls"] == {
        "create pods": 10,
        "patch nodes": 10,
        "patch nodes answered 422": 2,
        "update leases": 30,
        "watch nodes": 3,
    }


def test_the_table_shows_absent_figures_as_absent() -> None:
    figures = {"seconds_until_all_released": None, "seconds": {"latency": {"p50": 1.234, "p99": 2.0}}, "pods": 3}
    assert report.table("burst", figures).splitlines() == [
        "burst",
        "  seconds until all released  -",
        "  seconds: latency            p50 1.23 · p99 2.00",
        "  pods                        3",
    ]


def test_a_saved_result_says_on_what_it_was_measured(
    tmp_path: "os.PathLike[str]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = report.save("burst", 1000, {"seconds": {"latency": None}, "cpu": 1.23456})
    saved = msgspec.json.decode(path.read_bytes())
    assert saved["figures"] == {"seconds": {"latency": None}, "cpu": 1.235}
    assert saved["machine"]["cores"] == os.cpu_count()
    assert set(saved["versions"]) >= {"kubernetes", "python", "kube-node-ready"}
    assert path.name.endswith("-burst-1000.json")


# The component


def test_a_folder_of_manifests_holds_so_many_agents_that_do_not_meet(tmp_path: Path) -> None:
    component.write(tmp_path, 3)
    loaded = sources.read([str(tmp_path)])
    assert len({one.manifest.metadata.name for one in loaded}) == 3
    assert not sources.collisions(loaded)


def test_a_typical_cost_is_the_median_of_time_and_of_cpu() -> None:
    costs = [component.Cost(3.0, 1.0), component.Cost(1.0, 2.0), component.Cost(2.0, 9.0)]
    assert component.typical(costs) == (2.0, 2.0)


def test_a_result_about_manifests_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    saved = msgspec.json.decode(report.save("validate", 1000, {}, of="manifests").read_bytes())
    assert saved["manifests"] == 1000
    assert "nodes" not in saved
