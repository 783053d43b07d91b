"""The controller's process: how it starts, what it reports, how it survives outages, and how it exits."""

import http.client
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml
from lightkube.resources.coordination_v1 import Lease

import lab
from kube_node_ready.verification.model import State
from lab import waiting
from tests.support.controller_process import COMMAND, Operator, a_config, operating
from tests.support.faulty_proxy import Stalls
from tests.support.ports import unused_port
from tests.support.shell import ROOT
from tests.support.site import Site, a_site, bad_route

READS = {"get", "list", "watch"}
OUTAGE_SECONDS = 30


@pytest.fixture
def site(plane: lab.Plane, namespace: str) -> Iterator[Site]:
    mine = Site(plane, namespace)
    yield mine
    mine.leave()


@pytest.fixture(scope="module")
def breakable() -> Iterator[lab.Plane]:
    """A plane whose API server can be stopped, as long as it is started again."""
    with lab.plane() as mine:
        yield mine


def run(folder: Path, config: object, *flags: str) -> subprocess.CompletedProcess[str]:
    """A controller that is expected to end by itself."""
    file = folder / "config.yaml"
    file.write_text(config if isinstance(config, str) else yaml.safe_dump(config))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KUBE")}
    environment["HOME"] = str(folder)
    command = [*COMMAND, f"--config={file}", *flags]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)


def all_run(site: Site, count: int) -> bool:
    return [worker.state for worker in site.workers()] == [State.RUNNING] * count


def with_section(**sections: object) -> dict[str, object]:
    return a_config("anywhere") | sections


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (with_section(reconcilation={}), ["reconcilation", "reconciliation"]),
        (with_section(reconciliation={"maxRetries": "many"}), ["reconciliation.maxRetries", "many"]),
        (with_section(metrics={"port": 99999}), ["metrics.port", "99999"]),
        (with_section(leaderElection={"leaseDuration": "5s", "renewDeadline": "10s"}), ["leaseDuration", "renewDeadl"]),
        ("worker: [", ["config.yaml"]),
    ],
    ids=["unknown section", "wrong type", "out of range", "impossible together", "not YAML"],
)
def test_a_configuration_error_exits_with_2_and_reports_the_error(
    tmp_path: Path, config: object, words: list[str]
) -> None:
    ended = run(tmp_path, config)
    assert ended.returncode == 2
    assert all(word in ended.stderr for word in words), ended.stderr
    assert "Traceback" not in ended.stderr
    assert not ended.stdout


def test_a_missing_configuration_exits_with_2_and_names_the_file(tmp_path: Path) -> None:
    ended = run(tmp_path, {}, "--config=/nonexistent/config.yaml")
    assert ended.returncode == 2
    assert "/nonexistent/config.yaml" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("text", [None, "", "{", "clusters: 5", "apiVersion: v1\nkind: Config\nclusters: []\n"])
def test_an_unusable_kubeconfig_exits_with_3_and_is_named(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "some.kubeconfig"
    if text is not None:
        file.write_text(text)
    ended = run(tmp_path, a_config("anywhere"), f"--kubeconfig={file}")
    assert ended.returncode == 3, ended.stderr
    assert str(file) in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1


def test_no_cluster_configuration_exits_with_3(tmp_path: Path) -> None:
    ended = run(tmp_path, a_config("anywhere"))
    assert ended.returncode == 3, ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        kubeconfig = unreachable(tmp_path)
        ended = run(tmp_path, a_config("anywhere", health={"port": port}), f"--kubeconfig={kubeconfig}")
    assert ended.returncode == 10
    assert f"port {port}" in ended.stderr
    assert "Traceback" not in ended.stderr


def unreachable(folder: Path) -> Path:
    file = folder / "unreachable.kubeconfig"
    user = {"name": "x", "user": {"token": "t"}}
    cluster = {"name": "x", "cluster": {"server": "https://127.0.0.1:1"}}
    context = {"name": "x", "context": {"cluster": "x", "user": "x"}}
    whole = {"current-context": "x", "clusters": [cluster], "users": [user], "contexts": [context]}
    file.write_text(yaml.safe_dump(whole))
    return file


def test_a_server_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    """The API server might start later; to exit meanwhile would only make the kubelet's back-off longer."""
    with operating(tmp_path, unreachable(tmp_path), a_config("anywhere")) as operator:
        waiting.until("it says what it lacks", lambda: operator.logged("API request failed"), 180)
        assert operator.ask("/healthz") == "ok\n"
        for address in ("127.0.0.1", "::1") if socket.has_dualstack_ipv6() else ("127.0.0.1",):
            assert "informers are not synced yet" in refusal(operator, address)
        assert operator.stop() == 0


def refusal(operator: Operator, address: str) -> str:
    """The body of /readyz if it fails."""
    ports = operator.ports()
    connection = http.client.HTTPConnection(address, ports[-1], timeout=10)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        assert answer.status == 503
        return answer.read().decode()
    finally:
        connection.close()


DIES = """
import sys
from kube_node_ready import entrypoints
from kube_node_ready.controller import state
def broken(*_):
    raise LookupError("this was not foreseen")
state.ClusterState.{} = broken
entrypoints.controller()
"""


def test_a_bug_in_one_reconcile_is_logged_once_and_affects_one_node(site: Site, tmp_path: Path) -> None:
    site.join(3)
    with operating(tmp_path, site.plane.kubeconfig(), site.config(), script("snapshot")) as operator:
        site.until("all were looked at, more than once", lambda: number(operator, "reconcile_errors_total") > 9)
        reported = [line for line in operator.lines() if line["level"] == "error"]
        assert len(reported) == 1
        assert "this was not foreseen" in reported[0]["error"]
        assert operator.stop() == 0


def test_a_bug_in_a_watch_exits_the_process(site: Site, tmp_path: Path) -> None:
    site.join()
    with operating(tmp_path, site.plane.kubeconfig(), site.config(), script("node_changed")) as operator:
        assert operator.process.wait(60) == 10
        (reported,) = [line for line in operator.lines() if line["level"] == "error"]
        assert "this was not foreseen" in reported["error"]


def script(broken: str) -> list[str]:
    return [sys.executable, "-c", DIES.format(broken)]


def number(operator: Operator, series: str) -> float:
    """The value of a series of the controller's."""
    found = re.search(
        rf"^kube_node_ready_controller_{re.escape(series)} (\S+)$", operator.ask("/metrics"), re.MULTILINE
    )
    assert found, series
    return float(found[1])


def test_series_exist_from_the_start_and_end_with_their_node(site: Site, tmp_path: Path) -> None:
    with operating(tmp_path, site.plane.kubeconfig(), site.config()) as operator:
        site.until("it is ready", lambda: operator.ask("/readyz") == "ok\n")
        at_start = operator.ask("/metrics")
        for series in (
            'kube_node_ready_verifications_total{status="failed"}',
            'kube_node_ready_verifications_total{status="success"}',
            "kube_node_ready_controller_worker_pods_created_total",
            "kube_node_ready_controller_reconcile_errors_total",
            "kube_node_ready_controller_nodes_unverified",
            "kube_node_ready_controller_reconcile_queue_depth",
            'kube_node_ready_worker_pods{status="running"}',
        ):
            assert f"{series} 0.0" in at_start.splitlines()
        names = site.join(2).names
        site.until("released", lambda: site.released(*names))
        site.until("both are shown", lambda: all(f'node="{name}"' in operator.ask("/metrics") for name in names))
        assert 'kube_node_ready_verifications_total{status="success"} 2.0' in operator.ask("/metrics")
        assert 'kube_node_ready_worker_pods{status="succeeded"} 2.0' in operator.ask("/metrics")
        site.kubectl("delete", "node", names[0])
        site.until("the one is forgotten", lambda: f'node="{names[0]}"' not in operator.ask("/metrics"))
        assert f'node="{names[1]}"' in operator.ask("/metrics")


def test_metrics_and_probes_have_separate_ports(plane: lab.Plane, tmp_path: Path) -> None:
    """Probes must not need the permission to read metrics."""
    config = a_config(
        "default", metrics={"port": unused_port()}, nodeManagement={"nodeSelector": {"example.com/pool": "empty"}}
    )
    with operating(tmp_path, plane.kubeconfig(), config) as operator:
        assert "kube_node_ready_build_info" in operator.ask("/metrics", server=0)
        assert operator.ask("/healthz", server=1) == "ok\n"
        with pytest.raises(urllib.error.HTTPError, match="404"):
            operator.ask("/metrics", server=1)


def test_the_queue_is_empty_when_nothing_is_due(site: Site, tmp_path: Path) -> None:
    """Nodes that back off do not count as backlog."""
    quiet = site.config(reconciliation={"maxRetries": 1, "exhaustedRetrySeconds": 600})
    (name,) = site.join(verdict=lab.fails()).names
    with operating(tmp_path, site.plane.kubeconfig(), quiet) as operator:
        site.until("exhausted", lambda: site.node(name).record.failures == 1)
        site.until("nothing is due", lambda: number(operator, "reconcile_queue_depth") == 0, 180)


def test_probes_are_answered_during_a_burst(site: Site, tmp_path: Path) -> None:
    with operating(tmp_path, site.plane.kubeconfig(), site.config()) as operator:
        site.until("it is ready", lambda: operator.ask("/readyz") == "ok\n")
        names = site.join(60, verdict=lab.passes(seconds=3)).names
        answers: list[str] = []

        def over() -> bool:
            answers.append("no answer")
            answers[-1] = operator.ask("/healthz") + operator.ask("/readyz")
            return number(operator, "nodes_verified") == 60

        site.until("the burst is over", over)
        assert len(answers) > 2
        assert set(answers) == {"ok\nok\n"}
        assert site.released(*names)
        site.until("all workers are gone", lambda: not site.workers())
        assert {site.condition(name).get("status") for name in names} == {"True"}
        assert all("Verified" in {event.reason for event in site.events(name)} for name in names)


def test_a_returned_gate_is_detected_in_an_idle_fleet(site: Site, tmp_path: Path) -> None:
    """When the watch of nodes is read only now and then."""
    (name,) = site.join().names
    with operating(tmp_path, site.plane.kubeconfig(), site.config()):
        site.until("released", lambda: site.released(name))
        time.sleep(35)
        site.kubectl("taint", "node", name, f"{site.gate.key}=back:{site.gate.effect}")
        site.until("it is verified again", lambda: site.node(name).record.attempt == 2 and site.released(name))


def test_a_dry_run_decides_and_writes_nothing(site: Site, tmp_path: Path) -> None:
    (good,), (bad,) = site.join().names, site.join(verdict=lab.fails(), group="bad").names
    config = site.config(nodeManagement={"deleteFailedNodes": True}, leaderElection={"enabled": True}) | {
        "dryRun": True
    }
    with site.plane.audit.window() as calls, operating(tmp_path, site.plane.kubeconfig(), config) as operator:
        would = partial(operator.logged, "Dry run: effect skipped", effect="StartAttempt")
        site.until("it would act on both", lambda: would(on=good) and would(on=bad))
        assert operator.stop() == 0
    ours = {call for call in calls.by_kind if call.agent == "kube-node-ready-controller"}
    assert ours
    assert not {call for call in ours if call.verb not in READS}


def holder(site: Site) -> str:
    spec = site.plane.client.get(Lease, "kube-node-ready-controller", namespace=site.namespace).spec
    return (spec and spec.holderIdentity) or ""


def test_sigterm_during_a_burst_leaves_no_partial_writes(site: Site, tmp_path: Path) -> None:
    config = site.config(leaderElection={"enabled": True}, worker={"timeoutSeconds": 60})
    with operating(tmp_path, site.plane.kubeconfig(), config) as operator:
        slow = site.join(10, verdict=lab.passes(seconds=8), group="slow")
        names = (*slow.names, *site.join(50).names)
        site.until("some are released", lambda: number(operator, "nodes_verified") > 5)
        assert holder(site)
        assert operator.stop() == 0
        assert operator.logged("Controller stopped")
        assert not holder(site), "the Lease was given back"
    stopped = [site.node(name) for name in names]
    assert {site.policy.is_gated(node) for node in stopped} == {True, False}, "it was in the middle"
    assert all(node.labelled != site.policy.is_gated(node) for node in stopped)
    with operating(tmp_path, site.plane.kubeconfig(), config):
        site.until("the next one does the rest", lambda: site.released(*names))
        site.until("nothing is left", lambda: not site.workers())
    assert {site.node(name).record.attempt for name in names} == {1}
    assert len(site.pods_ever()) == 60


def test_sigterm_cancels_hanging_requests_and_releases_the_lease(site: Site, tmp_path: Path) -> None:
    config = site.config(leaderElection={"enabled": True})
    with bad_route(site.plane.kubeconfig(), tmp_path) as route:
        route.proxy.plan = lambda asked: (
            Stalls(after=0) if asked.path.endswith("/pods") and asked.can_read_body else None
        )
        with operating(tmp_path, route.kubeconfig, config) as operator:
            (name,) = site.join().names
            site.until("the worker was made, and the response was lost", site.pods_ever)
            assert operator.stop() == 0
            assert not holder(site)
    with operating(tmp_path, site.plane.kubeconfig(), config):
        site.until("the next one does the rest", lambda: site.released(name))
    assert len(site.pods_ever()) == 1


def test_sigterm_exits_while_the_api_server_is_unresponsive(breakable: lab.Plane, tmp_path: Path) -> None:
    with a_site(breakable, "silent") as site:
        config = site.config(leaderElection={"enabled": True})
        with operating(tmp_path, breakable.kubeconfig(), config) as operator:
            names = site.join(20, verdict=lab.passes(seconds=2)).names
            site.until("in the middle of it", lambda: len(site.workers()) > 5)
            breakable.apiserver.pause()
            try:
                time.sleep(3)
                assert operator.stop() in (0, 1)
            finally:
                breakable.apiserver.resume()
            breakable.wait_for_api()
        with operating(tmp_path, breakable.kubeconfig(), site.config()):
            site.until("the next one does the rest", lambda: site.released(*names))


def test_an_api_server_outage_of_half_a_minute_uses_no_attempt(breakable: lab.Plane, tmp_path: Path) -> None:
    patient = {"timeoutSeconds": 300}
    leading = {"enabled": True, "leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s"}
    with a_site(breakable, "away") as site, a_site(breakable, "leading") as other:
        config = site.config(worker=patient)
        elected = other.config(worker=patient, leaderElection=leading)
        with (
            operating(tmp_path, breakable.kubeconfig(), config) as operator,
            operating(tmp_path, breakable.kubeconfig(), elected) as leader,
        ):
            # Until the server is surely back: what KWOK cannot write, it tries again after ever longer times, or never.
            slow = lab.passes(seconds=OUTAGE_SECONDS + 30)
            names, others = site.join(3, verdict=slow).names, other.join(3, verdict=slow).names
            site.until("in the middle of it", lambda: all_run(site, len(names)) and all_run(other, len(others)))
            breakable.apiserver.stop()
            began = time.monotonic()
            assert leader.process.wait(60) == 1, "who cannot renew its Lease ends"
            assert leader.logged("Lease lost")
            while time.monotonic() - began < OUTAGE_SECONDS:
                assert operator.ask("/healthz") == "ok\n"
                time.sleep(1)
            breakable.apiserver.start()
            breakable.wait_for_api()
            site.until("released", lambda: site.released(*names))
            (new,) = site.join(group="new").names
            site.until("and a new one is seen", lambda: operator.logged("Creating worker pod", node=new))
            complaints = [line for line in operator.lines() if line["level"] in ("warn", "error")]
            assert 0 < len(complaints) < 20, "it complained, and not without end"
        with operating(tmp_path, breakable.kubeconfig(), elected):
            site.until("its next life goes on", lambda: other.released(*others))
        assert {site.node(name).record.attempt for name in (*names, *others)} == {1}


def test_a_server_without_streaming_lists_is_supported(fresh_plane: Callable[..., lab.Plane], tmp_path: Path) -> None:
    plane = fresh_plane(apiserver_flags=["--feature-gates=WatchList=false"])
    with a_site(plane, "pages") as site:
        names = site.join(5).names
        with operating(tmp_path, plane.kubeconfig(), site.config()):
            site.until("released", lambda: site.released(*names))
            (new,) = site.join(group="new").names
            site.until("and a new one", lambda: site.released(new))
