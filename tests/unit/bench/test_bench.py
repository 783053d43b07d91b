"""The benchmark's arithmetic, and that its eyes survive what an API server does in a burst."""

import asyncio
import contextlib
import gzip
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

from bench import baseline, component, figures, generator, measure, reaction, real_node, report, timeline, worker
from bench.api import Credentials, Watch
from bench.timeline import Moment, Timeline
from kubernetes_daemonset.cli import sources
from lab.audit import Call, Calls
from release import oci

CREDENTIALS = Credentials("https://192.0.2.1", "ca", "crt", "key")


def a_node(name: str = "a", *taints: str, verified: bool = False) -> timeline.Node:
    labels = {"node-ready/verified": "true"} if verified else {}
    return timeline.Node(
        timeline.Meta(name=name, labels=labels), timeline.NodeSpec([timeline.Taint(key) for key in taints])
    )


def a_pod(node: str = "a", *, bound: bool = False, phase: str = "Pending") -> timeline.Pod:
    pod = baseline.worker_pod(a_node(node), "workers")
    pod["spec"]["nodeName"] = node if bound else ""
    return msgspec.convert({**pod, "status": {"phase": phase}}, timeline.Pod)


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


def test_a_histogram_reports_only_known_bounds() -> None:
    assert report.shares([(0.1, 50), (1.0, 98), (float("inf"), 100)]) == {
        "p50": 0.1,
        "p95": 1.0,
        "p99": None,
        "p99.9": None,
    }
    assert set(report.shares([]).values()) == set(report.shares([(0.1, 0), (float("inf"), 0)]).values()) == {None}


def test_a_childs_cpu_and_memory_are_its_parents() -> None:
    burn = "x = bytearray(50 << 20)\nfor _ in range(6_000_000): pass\nprint('done', flush=True)\ninput()"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"
    with subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        assert process.pid in measure.children(os.getpid()).values()
        assert measure.read({"it": process.pid}).seconds["it"] > 0.05
        (child,) = measure.children(process.pid).values()
        apart = measure.read({"it": process.pid, "its child": child}).seconds
        assert apart["its child"] > 0.05, "it counts for itself"
        assert apart["it"] < measure.read({"it": process.pid}).seconds["it"]
        assert measure.peak_mebibytes(process.pid) > 60
        assert process.stdin
        process.stdin.write(b"\n")


# Moments


def test_a_node_is_released_when_the_gate_is_gone_and_the_label_is_there() -> None:
    assert not a_node("a", "node-ready/unverified").released
    assert not a_node("a").released
    assert not a_node("a", "node-ready/unverified", verified=True).released
    assert a_node("a", "node.kubernetes.io/not-ready", verified=True).released


def test_only_the_first_observation_counts() -> None:
    seen = Timeline()
    for now in (1.0, 2.0):
        seen.see_node(a_node("a", "node-ready/unverified"), now)
    assert seen.moments[Moment.GATED] == {"a": 1.0}


def test_a_pod_is_known_by_the_node_it_is_pinned_to_before_it_is_bound() -> None:
    assert a_pod("a").node == "a"
    seen = Timeline()
    seen.see_pod(a_pod("a"), 1.0)
    seen.see_pod(a_pod("a", bound=True), 2.0)
    seen.see_pod(a_pod("a", bound=True, phase="Succeeded"), 3.0)
    assert [seen.moments[moment] for moment in (Moment.POD_CREATED, Moment.POD_BOUND, Moment.POD_SUCCEEDED)] == [
        {"a": 1.0},
        {"a": 2.0},
        {"a": 3.0},
    ]


def test_a_watch_that_lags_behind_another_gives_no_negative_time() -> None:
    moments = {moment: {"a": 5.0} for moment in Moment} | {Moment.GATED: {"a": 9.0}}
    assert timeline.between(moments, Moment.GATED, Moment.POD_CREATED) == {"a": 0.0}


def test_a_node_that_was_never_released_has_no_latency() -> None:
    moments: dict[Moment, dict[str, float]] = {moment: {} for moment in Moment}
    moments[Moment.POSTED] = {"a": 1.0}
    assert timeline.between(moments, Moment.POSTED, Moment.RELEASED) == {}


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
    found = reaction.reactions(moments, reaction.waits(moments, {"w-a": "a"}, reaction.asked(log, "controller")))
    spreads = (found.until_pod_was_asked_for, found.until_release_was_asked_for, found.until_both_were)
    assert [spread and spread.worst for spread in spreads] == [2.0, 2.0, 4.0]


def some_moments(**posted: float) -> dict[Moment, dict[str, float]]:
    """Nodes released as many seconds after second 0 as is said."""
    moments: dict[Moment, dict[str, float]] = {moment: {} for moment in Moment}
    moments[Moment.POSTED] = dict.fromkeys(posted, 0.0)
    moments[Moment.RELEASED] = dict(posted)
    return moments


def test_a_nodes_latency_is_the_controllers_part_and_the_rest() -> None:
    waits = reaction.Waits(pod={"a": 1.0, "b": 3.0}, release={"a": 0.5, "b": 9.0})
    parts = reaction.split(some_moments(b=10.0, a=4.0, unknown=5.0), waits)
    assert parts == [(1.5, 2.5), (10.0, 0.0)]  # no part is longer than the whole


def test_a_plot_gets_means_of_groups_of_one_size() -> None:
    parts = [(1.0, 2.0), (3.0, 4.0), (5.0, 6.0), (7.0, 8.0)]
    assert reaction.grouped(parts, 2) == {"controller": [2.0, 6.0], "control_plane": [3.0, 7.0]}
    assert reaction.grouped(parts[:1], 40) == {"controller": [1.0], "control_plane": [2.0]}
    assert reaction.grouped([], 40) == {"controller": [], "control_plane": []}


# Load


def orders(**more: object) -> generator.Orders:
    values = {"role": "burst", "namespace": "n", "kubernetes": "1.36.3", "credentials": CREDENTIALS}
    return msgspec.convert({**values, **more}, generator.Orders)


@pytest.mark.parametrize("kubelets", [True, False])
def test_nodes_are_gated_or_verified_and_gated_ones_are_simulated(kubelets: bool) -> None:  # noqa: FBT001
    asked = orders(verified=1, gated=1, kubelets=kubelets)
    (old,), (new,) = generator.verified(asked).values(), generator.gated(asked).values()
    assert msgspec.json.decode(old, type=timeline.Node).released
    assert msgspec.json.decode(new, type=timeline.Node).gate == 0
    assert (b"kwok.x-k8s.io/node" in old) is kubelets
    assert b"kwok.x-k8s.io/node" in new


def test_churn_removes_the_oldest_and_some_new_nodes() -> None:
    old, new = [f"old-{number}" for number in range(20)], [f"new-{number}" for number in range(12)]
    leaving = generator.departures(old, new, rate=2)
    assert leaving[:5] == ["old-0", "old-1", "old-2", "old-3", "new-2"]
    assert leaving[9] == "new-7"
    assert len(set(leaving)) == 12


def test_churn_of_a_small_fleet_continues_with_new_nodes() -> None:
    leaving = generator.departures(["old"], [f"new-{number}" for number in range(6)], rate=5)
    assert leaving == ["old", "new-0", "new-1", "new-2", "new-3", "new-4"]


def test_an_empty_fleet_loses_no_node() -> None:
    assert generator.departures([], ["new-0"], rate=0) == []


def test_the_floor_removes_the_gate_wherever_it_stands_and_tests_that_it_does() -> None:
    patch = baseline.release(a_node("a", "node.kubernetes.io/not-ready", "node-ready/unverified"))
    assert patch[1:] == [
        {"op": "test", "path": "/spec/taints/1/key", "value": "node-ready/unverified"},
        {"op": "remove", "path": "/spec/taints/1"},
    ]


# Figures


def a_result(moments: dict[Moment, dict[str, float]], **more: object) -> generator.Result:
    values: dict[str, object] = {"begun": 0.0, "moments": moments, "pods": {}, "expected": 2, "left": []}
    values |= dict.fromkeys(("lost_races", "retries", "watches_resumed", "lists"), 0)
    return msgspec.convert({**values, **more}, generator.Result)


def test_the_time_to_all_released_is_absent_if_not_all_are() -> None:
    moments = some_moments(a=4.0)
    assert figures.of_load(a_result(moments, expected=1))["seconds_until_all_released"] == 4.0
    assert figures.of_load(a_result(moments, expected=2))["seconds_until_all_released"] is None
    assert figures.of_load(a_result(moments, expected=2))["released"] == "1 of 2"


@pytest.mark.parametrize(("released", "complete"), [("3 of 3", True), ("2 of 3", False), (None, True)])
def test_unfinished_runs_are_not_saved(released: str | None, complete: bool) -> None:  # noqa: FBT001
    assert figures.is_complete({"released": released} if released else {"controller_mebibytes": 40}) is complete


def test_a_removed_node_is_not_awaited() -> None:
    found = figures.of_load(a_result(some_moments(a=4.0, b=5.0), expected=1, left=["b"]))
    assert found["released"] == "1 of 1"


def test_a_late_creation_shows() -> None:
    moments: dict[Moment, dict[str, float]] = {moment: {} for moment in Moment}
    moments[Moment.POSTED] = {"bench-0": 0.1, "bench-1": 0.5}
    late = figures.of_lateness(a_result(moments), rate=10)["seconds_a_creation_took_from_its_due_time"]
    assert late["worst"] == pytest.approx(0.4)


def test_recovery_is_measured_from_the_end_of_an_outage() -> None:
    pods = {"p1": "a", "p2": "a", "p3": "a", "q1": "b"}
    found = figures.of_an_outage(a_result(some_moments(a=70.0, b=90.0), pods=pods), ended=60.0)
    assert found["seconds_from_its_end_until_all_released"] == 30.0
    assert found["attempts_a_node"] == {"least": 1, "mean": 2.0, "most": 3}


def test_the_cost_of_an_outage_is_per_minute() -> None:
    cost = measure.Cost(elapsed=30, seconds={"controller": 1.0}, other=0, stolen=0)
    calls = Calls(Counter({Call("controller", "create", "pods", 201): 10, Call("kwok", "patch", "nodes", 200): 99}))
    found = figures.while_it_lasted(cost, calls, "controller")
    assert found["while_it_lasted"]["controller_cpu_seconds_a_minute"] == 2.0
    assert found["while_it_lasted"]["controller_calls_a_minute"] == 20
    assert found["controller_calls_a_minute_while_it_lasted"] == {"create pods": 20}


def test_leftovers_are_pods_and_state_of_removed_nodes() -> None:
    left, owners = ["verified-0", "bench-7"], {"p": "bench-7", "q": "bench-8"}
    assert figures.of_leftovers(left, ["p", "q"], owners, {"bench-8", "verified-0"}) == {
        "nodes_gone": 2,
        "nodes_gone_that_were_new": 1,
        "pods_left_of_nodes_gone": 1,
        "nodes_gone_and_remembered": 1,
    }


# The worker on a real node


@pytest.mark.parametrize(
    ("files", "second"),
    [
        ({"cpuacct.usage": "30000000\n", "memory.max_usage_in_bytes": "1048576\n"}, {"cpuacct.usage": "90000000\n"}),
        (
            {"cpu.stat": "usage_usec 30000\nuser_usec 1\n", "memory.peak": "1048576\n"},
            {"cpu.stat": "usage_usec 90000\nuser_usec 1\n"},
        ),
    ],
    ids=["cgroup v1", "cgroup v2"],
)
def test_a_containers_cpu_is_its_pods_since_it_was_there(
    tmp_path: Path, files: dict[str, str], second: dict[str, str]
) -> None:
    pod = tmp_path / "lab" / "kubepods" / "besteffort" / "pod-uid"
    (container := pod / "abc").mkdir(parents=True)
    for name, content in files.items():
        (pod / name).write_text(content)
        (container / name).write_text(content)
    # The sandbox had used 20 ms before; of the container's 10 ms at that time, all are its own.
    for name, content in files.items():
        (container / name).write_text(content.replace("3", "1", 1) if "cpu" in name else content)
    meter = real_node.Meter("lab", "-uid", [tmp_path])
    meter.look()
    for file in container.iterdir():
        file.unlink()
    container.rmdir()
    for name, content in second.items():
        (pod / name).write_text(content)
    meter.look()
    assert meter.cpu_ms("abc") == 70
    assert meter.peak_mib("abc") == 1
    assert meter.cpu_ms("another") is None


def test_a_figure_of_which_one_run_is_unknown_is_unknown() -> None:
    assert worker.spread([1.0, 3.0, 2.0]) == {"best": 1.0, "median": 2.0, "worst": 3.0}
    assert worker.spread([1.0, None]) is None
    assert worker.spread([]) is None


def test_an_images_sizes_are_those_of_its_layers(tmp_path: Path) -> None:
    packed = [oci.Layer("", gzip.compress(bytes(size)), "", size) for size in (1_000_000, 500_000)]
    about = oci.Image("amd64", packed, ["/x"], "1", {}, "2026-01-01T00:00:00Z")
    oci.write(tmp_path / "image.tar", [about], name="x", tag="1")
    sizes = real_node.image_sizes(tmp_path / "image.tar")
    assert sizes["unpacked_megabytes"] == 1.5
    assert sizes["compressed_megabytes"] == sum(len(layer.blob) for layer in packed) / 1e6


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
        names.append(msgspec.json.decode(raw, type=timeline.Node).metadata.name)
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


def test_a_closed_watch_resumes_from_its_last_version() -> None:
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


def test_a_throttled_watch_is_retried_from_the_same_version() -> None:
    _, asked, _ = asyncio.run(watched([429, a_line("ADDED", "a", "6")], lambda names: "a" in names))
    assert asked[:3] == ["list", "5", "5"]


# Reports


def test_lease_renewals_are_not_counted_as_node_writes() -> None:
    kinds = {
        Call("controller", "create", "pods", 201): 10,
        Call("controller", "patch", "nodes", 200): 10,
        Call("controller", "patch", "nodes", 422): 2,
        Call("controller", "update", "leases", 200): 30,
        Call("controller", "watch", "nodes", 200): 3,
        Call("kubelet", "patch", "nodes", 200): 99,
    }
    found = report.call_figures(Calls(Counter(kinds)), "controller", nodes=10)
    assert found["controller_writes_a_node"] == 2.2
    assert found["calls_of_all_clients"] == 154
    assert found["node_changes_by_all_clients"] == 109
    assert found["controller_calls"] == {
        "create pods": 10,
        "patch nodes": 10,
        "patch nodes answered 422": 2,
        "update leases": 30,
        "watch nodes": 3,
    }


def test_the_table_shows_absent_figures_as_absent() -> None:
    found = {"seconds_until_all_released": None, "seconds": {"latency": {"p50": 1.234, "p99": 2.0}}, "pods": 3}
    assert report.table("burst", found).splitlines() == [
        "burst",
        "  seconds until all released  -",
        "  seconds: latency            p50 1.23 · p99 2.00",
        "  pods                        3",
    ]


def test_a_saved_result_names_its_machine(tmp_path: "os.PathLike[str]", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = report.save("burst", 1000, {"seconds": {"latency": None}, "cpu": 1.23456})
    saved = msgspec.json.decode(path.read_bytes())
    assert saved["figures"] == {"seconds": {"latency": None}, "cpu": 1.235}
    assert saved["machine"]["cores"] == os.cpu_count()
    assert set(saved["versions"]) >= {"kubernetes", "python", "kube-node-ready"}
    assert path.name.endswith("-burst-1000.json")


# The component


def test_generated_manifests_do_not_conflict(tmp_path: Path) -> None:
    component.write(tmp_path, 3)
    loaded = sources.read([str(tmp_path)]).loaded
    assert len({one.manifest.metadata.name for one in loaded}) == 3
    assert not sources.collisions(loaded)


def test_a_typical_cost_is_the_median_of_time_and_of_cpu() -> None:
    costs = [component.Cost(3.0, 1.0), component.Cost(1.0, 2.0), component.Cost(2.0, 9.0)]
    assert component.typical(costs) == (2.0, 2.0)


def test_results_of_manifests_are_labeled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    saved = msgspec.json.decode(report.save("validate", 1000, {}, of="manifests").read_bytes())
    assert (saved["size"], saved["of"]) == (1000, "manifests")


def test_only_the_newest_result_of_a_scenario_and_size_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    report.RESULTS.mkdir(parents=True)
    for name in ("2026-01-01T000000Z-burst-200", "2026-01-01T000000Z-burst-1200", "2026-01-01T000000Z-floor-200"):
        (report.RESULTS / f"{name}.json").write_text("{}")
    path = report.save("burst", 200, {"cpu": 1.0})
    assert {file.name.partition("Z-")[2] for file in report.RESULTS.iterdir()} == {
        "burst-200.json",
        "burst-1200.json",
        "floor-200.json",
    }
    assert msgspec.json.decode(path.read_bytes())["figures"] == {"cpu": 1.0}


def test_series_for_plots_are_saved_and_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = {"pods": 3, "by_node": {"controller": [1.23456, 2.0]}}
    assert report.table("burst", found).splitlines() == ["burst", "  pods  3"]
    saved = msgspec.json.decode(report.save("burst", 1, found).read_bytes())
    assert saved["figures"]["by_node"] == {"controller": [1.235, 2.0]}
