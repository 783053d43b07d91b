"""DaemonSet mode as a process: exit codes, signals, probes, and what a dry run does."""

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kube_node_ready import log
from kube_node_ready.agent import main as process
from kube_node_ready.exit_codes import ExitCode
from lab import pki
from tests.support.agent_model import CHECKS, NAME, FakeCluster, token_of_a_pod_on
from tests.support.check_servers import LOOPBACK, http
from tests.support.scenarios.agent import GATE
from tests.support.signals import STOPPED_AS_SOON_AS_IT_SERVES, UNDISTURBED

PROGRAM = "from kube_node_ready.entrypoints import main; main()"
IN_POD = (
    "import os, sys; from kube_node_ready.agent.main import run; "
    "sys.exit(run(sys.argv[2:], os.environ, folder=sys.argv[1]))"
)
BARE = {name: value for name, value in os.environ.items() if not name.startswith("KUBE")}


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    yield
    log.configure()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[FakeCluster]:
    with FakeCluster(tmp_path / "pki").running() as running:
        assert isinstance(running, FakeCluster)
        yield running


class Running:
    """A process of DaemonSet mode. Its log lines are read as they come."""

    def __init__(self, started: subprocess.Popen[str]) -> None:
        self.process = started
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._lines.put(line)

    def until(self, msg: str) -> dict[str, Any]:
        """The next line that says this."""
        while True:
            line: dict[str, Any] = json.loads(self._lines.get(timeout=60))
            if line["msg"] == msg:
                return line

    def rest(self) -> list[str]:
        """What was said since."""
        return [json.loads(self._lines.get_nowait())["msg"] for _ in range(self._lines.qsize())]

    def stop(self, number: int = signal.SIGTERM) -> float:
        """How long that took."""
        started = time.monotonic()
        self.process.send_signal(number)
        assert self.process.wait(30) == 0
        took = time.monotonic() - started
        self.join()
        return took

    def join(self) -> None:
        """All that it said has been read. It must have ended."""
        self._reader.join(60)


@contextmanager
def running(cluster: FakeCluster, folder: Path, *flags: str, program: str = IN_POD) -> Iterator[Running]:
    (folder / "token").write_text(token_of_a_pod_on(NAME))
    (folder / "ca.crt").write_bytes(cluster.authority.certificate.read_bytes())
    where = {"KUBERNETES_SERVICE_HOST": LOOPBACK, "KUBERNETES_SERVICE_PORT": str(cluster.port)}
    environ = BARE | where | {"KUBE_NODE_READY_WORKER_CONFIG": json.dumps(CHECKS)}
    argv = [sys.executable, "-c", program, str(folder), f"--node-name={NAME}", "--metrics-port=0", *flags]
    with subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, text=True) as started:
        agent = Running(started)
        try:
            yield agent
        finally:
            started.kill()
            agent.join()


def ask(port: int, path: str) -> tuple[int, str]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://{LOOPBACK}:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


class TestLife:
    @pytest.mark.parametrize("mode", ["once", "continuous"])
    def test_it_waits_for_sigterm_and_exits_immediately(self, cluster: FakeCluster, tmp_path: Path, mode: str) -> None:
        cluster.join(NAME, [GATE], {})
        with running(cluster, tmp_path, f"--mode={mode}") as agent:
            (port,) = agent.until("Probe server started")["ports"]
            agent.until("Node verified")
            assert ask(port, "/healthz") == (200, "ok\n")
            assert ask(port, "/readyz") == (200, "ok\n")
            assert 'node_check_status{node="node-1"}' in ask(port, "/metrics")[1]
            assert agent.process.poll() is None
            assert agent.stop() < 10
        assert cluster.nodes[NAME]["metadata"]["labels"] == {"node-ready/verified": "true"}
        assert not cluster.nodes[NAME]["spec"]["taints"]
        assert "event Verified" in cluster.writes, "also if the label is what ended it"

    def test_sigterm_stops_it_as_soon_as_it_serves(self, cluster: FakeCluster, tmp_path: Path) -> None:
        with running(cluster, tmp_path, program=STOPPED_AS_SOON_AS_IT_SERVES + IN_POD) as agent:
            assert agent.process.wait(60) == 0
            agent.until("Agent stopped")

    def test_sigterm_while_the_label_is_set_does_not_suppress_the_event(
        self, cluster: FakeCluster, tmp_path: Path
    ) -> None:
        """The DaemonSet controller deletes the pod as soon as it sees the label."""
        cluster.join(NAME, [GATE], {})
        cluster.before_patch.append(lambda: agent.process.send_signal(signal.SIGTERM))
        with running(cluster, tmp_path) as agent:
            agent.until("Agent stopping")
            assert agent.process.wait(60) == 0
        assert cluster.writes[1:] == ["strategic-merge-patchnode-1/status", "event Verified"]

    def test_it_exits_even_if_a_thread_hangs(self) -> None:
        """As the first process of a container, which no alarm would end."""
        program = (
            "import signal, sys, time; from kube_node_ready.agent import main as process; process._LAST_SECONDS = 0.2\n"
            "with process._stopped_by_signals(lambda: None):\n"
            "    print('up', flush=True); time.sleep(600)"
        )
        argv = ["unshare", "--user", "--map-root-user", "--pid", "--fork", sys.executable, "-c", program]
        with subprocess.Popen(argv, env=BARE, stdout=subprocess.PIPE, text=True) as started:
            assert started.stdout
            assert started.stdout.readline() == "up\n"
            (child,) = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
            os.kill(int(child), signal.SIGTERM)
            assert started.wait(60) == ExitCode.UNEXPECTED

    def test_it_exits_during_a_round_and_records_nothing(self, cluster: FakeCluster, tmp_path: Path) -> None:
        cluster.join(NAME, [GATE], {})
        with socket.create_server((LOOPBACK, 0)) as silent:
            target = f"http://{LOOPBACK}:{silent.getsockname()[1]}/"
            flags = (f"--network-targets={target}", "--check-timeout=60s")
            with running(cluster, tmp_path, *flags) as agent:
                agent.until("Payload check passed")
                assert agent.stop(signal.SIGINT) < 10
                assert "Checks failed" not in agent.rest(), "what was given up says nothing about the node"
        assert not cluster.writes

    def test_an_api_server_that_is_away_is_waited_for(self, cluster: FakeCluster, tmp_path: Path) -> None:
        cluster.join(NAME, [GATE], {})
        cluster.is_away = True
        with running(cluster, tmp_path) as agent:
            (port,) = agent.until("Probe server started")["ports"]
            agent.until("API request failed")
            assert ask(port, "/readyz") == (503, "the Node has not been read yet\n")
            assert ask(port, "/healthz")[0] == 200
            cluster.is_away = False
            agent.until("Node verified")
            assert ask(port, "/readyz") == (200, "ok\n")
            agent.stop()

    def test_without_metrics_there_are_still_probes(self, cluster: FakeCluster, tmp_path: Path) -> None:
        cluster.join(NAME, [], {})
        with running(cluster, tmp_path, "--enable-metrics=false") as agent:
            (port,) = agent.until("Probe server started")["ports"]
            assert ask(port, "/healthz")[0] == 200
            assert ask(port, "/metrics")[0] == 404
            agent.stop()

    def test_all_series_are_there_from_the_start(self, cluster: FakeCluster, tmp_path: Path) -> None:
        cluster.is_away = True
        with running(cluster, tmp_path) as agent:
            (port,) = agent.until("Probe server started")["ports"]
            shown = ask(port, "/metrics")[1]
            agent.stop()
        for series in ("status", "dns_duration_seconds", "api_duration_seconds", "completion_timestamp"):
            assert f'\nnode_check_{series}{{node="node-1"}} ' in shown  # 0.0, unless a round has ended already
        for check in ("dns", "api", "network", "services", "payload", "clock", "matrix"):
            assert f'\nnode_check_failures_total{{check="{check}",node="node-1"}} ' in shown
        assert "\nkube_node_ready_build_info{" in shown


class TestPlace:
    """Only a pod on the node opens its gate. tests/attacks/test_unproved_gates.py has the rest."""

    @pytest.mark.parametrize(
        ("token", "why"),
        [
            (
                token_of_a_pod_on("node-2"),
                '"node-1" is invalid; this pod runs on node "node-2", and verifies that node',
            ),
            ("the-token", "the ServiceAccount's token is not bound to a pod"),
            ("not.base64!.signed", "the ServiceAccount's token is not bound to a pod"),
            ("e30.bm8ganNvbg.signed", "the ServiceAccount's token is not bound to a pod"),
            (token_of_a_pod_on(NAME, ""), "the ServiceAccount's token is not bound to a pod"),
            (token_of_a_pod_on(""), "the token does not name a node, and pod kube-system/pod-1 cannot be read"),
            (token_of_a_pod_on("", "../x"), "cannot read pod kube-system/../x"),
        ],
        ids=["another node", "no JWT", "not Base64", "not JSON", "bound to a Node", "no node and no pod", "no name"],
    )
    def test_any_other_token_is_exit_code_4(
        self, cluster: FakeCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], token: str, why: str
    ) -> None:
        cluster.join(NAME, [GATE], {})
        assert run_in_pod(cluster, tmp_path, token) == 4
        assert why in capsys.readouterr().err
        assert not cluster.writes

    @pytest.mark.parametrize(
        ("uid", "node", "why"),
        [
            ("uid-of-pod-1", "node-2", 'this pod runs on node "node-2"'),
            ("uid-of-pod-1", None, 'this pod runs on node ""'),
            ("another", NAME, "pod kube-system/pod-1 is not the one that the token is bound to"),
        ],
        ids=["another node", "no node", "another pod"],
    )
    def test_a_pod_that_is_not_on_the_node_is_exit_code_4(
        self,
        cluster: FakeCluster,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
        uid: str,
        node: str | None,
        why: str,
    ) -> None:
        cluster.join(NAME, [GATE], {})
        cluster.pods = [{"metadata": {"name": "pod-1", "uid": uid}, "spec": {"nodeName": node} if node else {}}]
        assert run_in_pod(cluster, tmp_path, token_of_a_pod_on("")) == 4
        assert why in capsys.readouterr().err
        assert not cluster.writes

    def test_a_missing_right_to_get_the_pod_names_the_rule(
        self, cluster: FakeCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """As with the specification's rights before Kubernetes 1.30."""
        cluster.join(NAME, [GATE], {})
        cluster.forbidden = {"get pods"}
        assert run_in_pod(cluster, tmp_path, token_of_a_pod_on("")) == 4
        rule = 'apiGroups: [""], resources: ["pods"], verbs: ["get"] in namespace kube-system'
        assert capsys.readouterr().err.endswith(f"Kubernetes before 1.30 needs the RBAC rule {rule}\n")
        assert not cluster.writes

    def test_outside_a_pod_it_is_a_dry_run(self, cluster: FakeCluster, tmp_path: Path) -> None:
        cluster.join(NAME, [GATE], {})
        done = outside(cluster, tmp_path)
        assert done.returncode == 4
        assert "Dry run started" in done.stdout
        assert '"exit_code":4' in done.stdout
        assert done.stderr.startswith("kube-node-ready: no changes made: only a pod with its ServiceAccount's token")
        assert not cluster.writes
        cluster.answers["/api"] = http(status=401)
        assert outside(cluster, tmp_path).returncode == 1, "a check failed"
        assert not cluster.writes


def run_in_pod(cluster: FakeCluster, folder: Path, token: str) -> int:
    (folder / "token").write_text(token)
    (folder / "ca.crt").write_bytes(cluster.authority.certificate.read_bytes())
    where = {"KUBERNETES_SERVICE_HOST": LOOPBACK, "KUBERNETES_SERVICE_PORT": str(cluster.port)}
    reported = {"NODE_NAME": NAME, "METRICS_PORT": "0", "KUBE_NODE_READY_WORKER_CONFIG": json.dumps(CHECKS)}
    return process.run([], where | reported, folder=folder)


def outside(cluster: FakeCluster, folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    server = f"https://{LOOPBACK}:{cluster.port}"
    kubeconfig = pki.kubeconfig(folder / "kubeconfig", server, cluster.authority.certificate, "a-token")
    argv = [sys.executable, "-c", PROGRAM, f"--kubeconfig={kubeconfig}", f"--node-name={NAME}", *flags]
    environ = BARE | {"KUBE_NODE_READY_WORKER_CONFIG": json.dumps(CHECKS)}
    return subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=60, check=False)


def dry_run(*flags: str, **environ: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", PROGRAM, "--dry-run", "--log-format=console", *flags]
    environ = BARE | {"HOME": "/nonexistent", "DNS_TEST_DOMAINS": "localhost"} | environ
    return subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)


class TestDryRun:
    def test_a_kubeconfig_flag_must_be_usable(self) -> None:
        done = dry_run("--kubeconfig=/nonexistent/kubeconfig")
        assert done.returncode == 3
        assert "cannot read /nonexistent/kubeconfig: No such file or directory" in done.stderr

    def test_outside_a_dry_run_a_missing_kubeconfig_is_an_error(self) -> None:
        argv = [sys.executable, "-c", PROGRAM, "--node-name=a"]
        environ = BARE | {"KUBECONFIG": "/nonexistent/kubeconfig"}
        done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 3
        assert "cannot read /nonexistent/kubeconfig: No such file or directory" in done.stderr

    def test_with_a_cluster_it_checks_and_changes_nothing(self, cluster: FakeCluster, tmp_path: Path) -> None:
        cluster.join(NAME, [GATE], {})
        server = f"https://{LOOPBACK}:{cluster.port}"
        kubeconfig = pki.kubeconfig(tmp_path / "kubeconfig", server, cluster.authority.certificate, "a-token")
        done = dry_run(f"--node-name={NAME}", KUBECONFIG=str(kubeconfig))
        assert done.returncode == 0
        assert "API check passed" in done.stdout
        assert not cluster.writes
        cluster.answers["/api"] = http(status=401)
        assert dry_run(f"--node-name={NAME}", KUBECONFIG=str(kubeconfig)).returncode == 1

    @pytest.mark.parametrize("program", [IN_POD, UNDISTURBED + IN_POD], ids=["waiting", "about to wait"])
    def test_in_a_pod_it_waits_to_be_stopped(self, cluster: FakeCluster, tmp_path: Path, program: str) -> None:
        """A DaemonSet's pod that ends is restarted, indefinitely."""
        (tmp_path / "token").write_text("a-token")
        (tmp_path / "ca.crt").write_text(cluster.authority.certificate.read_text())
        where = {"KUBERNETES_SERVICE_HOST": LOOPBACK, "KUBERNETES_SERVICE_PORT": str(cluster.port)}
        reported = {"NODE_NAME": NAME, "DRY_RUN": "true", "METRICS_PORT": "0", "DNS_TEST_DOMAINS": "localhost"}
        argv = [sys.executable, "-c", program, str(tmp_path)]
        with subprocess.Popen(argv, env=BARE | where | reported, stdout=subprocess.PIPE, text=True) as started:
            agent = Running(started)
            (port,) = agent.until("Probe server started")["ports"]
            agent.until("Dry run: no changes made")
            assert ask(port, "/healthz") == (200, "ok\n")
            time.sleep(0.5)
            assert started.poll() is None
            started.terminate()
            assert started.wait(60) in (0, 1), "depending on the checks"
            agent.join()
        assert not cluster.writes


class TestErrors:
    def test_one_error_is_one_line(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert process.run(["--max-retries=many"], {"NODE_NAME": NAME}) == 2
        output = capsys.readouterr().err
        assert output == 'kube-node-ready: --max-retries: "many" is invalid; expected a whole number from 0 to 1000\n'

    def test_several_errors_are_a_list(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert process.run(["--max-retries=many"], {"LOG_LEVEL": "loud"}) == 2
        assert capsys.readouterr().err.splitlines() == [
            "kube-node-ready: 3 errors in the settings:",
            '  - --max-retries: "many" is invalid; expected a whole number from 0 to 1000',
            '  - LOG_LEVEL: "loud" is invalid; expected debug, info, warn or error',
            (
                "  - --node-name (NODE_NAME): is missing; expected the node's name, which a pod has from "
                "spec.nodeName; --dry-run needs none"
            ),
        ]

    def test_without_a_cluster_connection_it_is_exit_code_3(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HOME", "/nonexistent")
        monkeypatch.delenv("KUBECONFIG", raising=False)
        assert process.run([], {"NODE_NAME": NAME}) == 3
        assert "no ServiceAccount and no kubeconfig was found" in capsys.readouterr().err

    def test_a_pod_without_a_token_is_exit_code_3(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        environ = {"NODE_NAME": NAME, "KUBERNETES_SERVICE_HOST": LOOPBACK}
        assert process.run([], environ, folder=tmp_path) == 3
        assert f"cannot read {tmp_path}/token" in capsys.readouterr().err

    def test_a_port_that_is_taken_is_named(
        self, cluster: FakeCluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        (tmp_path / "token").write_text("the-token")
        (tmp_path / "ca.crt").write_bytes(cluster.authority.certificate.read_bytes())
        environ = {"NODE_NAME": NAME, "KUBERNETES_SERVICE_HOST": LOOPBACK}
        with socket.create_server(("", 0)) as taken:
            port = taken.getsockname()[1]
            assert process.run([f"--metrics-port={port}"], environ, folder=tmp_path) == 10
        assert f"--metrics-port (METRICS_PORT): cannot listen on port {port}: " in capsys.readouterr().err

    def test_a_bug_is_exit_code_10_in_one_line(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def break_down(*_: object) -> None:
            raise ZeroDivisionError("by zero")

        monkeypatch.setattr("kube_node_ready.agent.cluster_access.choose", break_down)
        assert process.run([], {"NODE_NAME": NAME}) == 10
        assert capsys.readouterr().err == "kube-node-ready: unexpected ZeroDivisionError: by zero\n"


def test_it_loads_neither_asyncio_nor_a_client_library() -> None:
    """It lives on every node, in continuous mode indefinitely."""
    program = "import sys, kube_node_ready.agent.main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    dear = {"asyncio", "httptools", "httpx2", "lightkube", "uvloop", "yaml"}
    assert not dear & set(done.stdout.split())
