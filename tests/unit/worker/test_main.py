"""The worker as a process: exit codes, last words, log lines, and that it always ends."""

import io
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench import samples
from kube_node_ready import log
from kube_node_ready.checks import dns_client
from kube_node_ready.worker import main as worker
from lab import pki
from tests.support.check_servers import FakeApi, dns_reply, dns_server, http, http_json, slices
from tests.support.signals import UNDISTURBED

PROGRAM = """
import os, sys
from kube_node_ready.worker import main as worker
code = worker.work(os.environ, folder=sys.argv[1])
os._exit(code)
"""


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    yield
    log.configure()


class Pod:
    """What a pod gives the worker: an environment, a mounted ServiceAccount, a file for its last words."""

    def __init__(self, fake: FakeApi, folder: Path, **settings: object) -> None:
        folder.mkdir()
        self.account = folder
        (folder / "token").write_text("the-token")
        (folder / "ca.crt").write_bytes(fake.authority.certificate.read_bytes())
        self.termination_log = folder / "termination-log"
        defaults = {"dnsTestDomains": ["localhost"], "checkTimeoutSeconds": 5, "dnsService": ""}
        self.environ = {
            "NODE_NAME": "node-1",
            "POD_NAMESPACE": "kube-system",
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(fake.port),
            "KUBE_NODE_READY_WORKER_CONFIG": json.dumps(defaults | settings),
            "TERMINATION_LOG": str(self.termination_log),
        }

    def work(self, **environ: str) -> int:
        return worker.work(self.environ | environ, folder=self.account)

    @property
    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.termination_log.read_bytes())
        return found

    @property
    def failed(self) -> set[str]:
        return {check["name"] for check in self.report["checks"] if not check["ok"]}


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeApi]:
    with FakeApi(tmp_path / "pki").running() as running:
        yield running


@pytest.fixture
def pod(fake: FakeApi, tmp_path: Path) -> Pod:
    return Pod(fake, tmp_path / "pod")


class TestVerdict:
    def test_a_healthy_node_passes(self, pod: Pod, capsys: pytest.CaptureFixture[str]) -> None:
        assert pod.work() == 0
        assert pod.report["node"] == "node-1"
        assert {check["name"] for check in pod.report["checks"]} == {
            *("dns", "api", "network", "services", "payload", "clock")
        }
        assert not pod.failed
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert lines[-1]["msg"] == "All checks passed"
        assert {"level", "timestamp", "msg", "node", "total_duration"} == set(lines[-1])
        (dns,) = [line for line in lines if line["msg"] == "DNS check passed"]
        assert dns["domain"] == "localhost"
        assert dns["addresses"]
        assert dns["duration"].endswith("s")

    def test_every_ready_dns_server_is_a_target_of_its_own(self, fake: FakeApi, tmp_path: Path) -> None:
        with dns_server(lambda query: [dns_reply(query)], lambda query: [dns_reply(query)]) as port:
            path = "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices"
            fake.answers[path] = http_json(slices(["127.0.0.1", "127.0.0.2"], port=port))
            pod = Pod(fake, tmp_path / "dns-pod", dnsService="kube-system/kube-dns")
            assert pod.work() == 1
        verdicts = {check["target"]: check["ok"] for check in pod.report["checks"] if check["name"] == "network"}
        assert verdicts == {f"127.0.0.1:{fake.port}": True, f"127.0.0.1:{port}": True, f"127.0.0.2:{port}": False}

    def test_a_failing_check_is_exit_code_1_and_comes_first(self, fake: FakeApi, pod: Pod) -> None:
        fake.answers["/openapi/v2"] = http(b"small")
        assert pod.work() == 1
        assert pod.failed == {"payload"}
        assert pod.report["checks"][0]["name"] == "payload"

    def test_an_unavailable_api_server_fails_the_checks_that_need_it(self, pod: Pod) -> None:
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            assert pod.work(KUBERNETES_SERVICE_PORT=str(silent.getsockname()[1])) == 1
        assert pod.failed == {"api", "network", "services", "payload", "clock"}
        first, second = pod.report["checks"][:2]
        assert (first["name"], second["name"]) == ("api", "network")
        assert "Connection refused" in first["error"]

    def test_disabled_checks_do_not_run(self, fake: FakeApi, tmp_path: Path) -> None:
        pod = Pod(fake, tmp_path / "small", payload=False, clock=False, services=[])
        assert pod.work() == 0
        assert {check["name"] for check in pod.report["checks"]} == {"dns", "api", "network"}


class TestSamples:
    """One look-up is not enough: DNS that fails now and then was tried until it happened to answer."""

    @pytest.fixture
    def asked(self) -> list[int]:
        return []

    @pytest.fixture
    def server(self, asked: list[int], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        def answer(query: bytes) -> list[bytes]:
            asked.append(1)
            return [dns_reply(query, "127.0.0.1")]

        with dns_server(answer) as port:
            monkeypatch.setattr(dns_client, "PORT", port)
            yield

    @pytest.mark.parametrize(
        ("pod_name", "queries"),
        [
            ("node-ready-worker-6c1f6b5e-2b1e-4b35-9d6e-0a8a3f1c2d11-1", 24),
            ("node-ready-worker-6c1f6b5e-2b1e-4b35-9d6e-0a8a3f1c2d11-2", 48),
            ("node-ready-worker-6c1f6b5e-2b1e-4b35-9d6e-0a8a3f1c2d11-17", 48),
            ("run", 24),
            ("", 24),
            ("worker-²", 24),
            (f"worker-{'9' * 5000}", 24),
        ],
    )
    @pytest.mark.usefixtures("server")
    def test_a_later_attempt_takes_more_samples(
        self, fake: FakeApi, tmp_path: Path, asked: list[int], pod_name: str, queries: int
    ) -> None:
        pod = Pod(fake, tmp_path / "sampled", clusterDnsIp="127.0.0.1")
        assert pod.work(POD_NAME=pod_name) == 0, pod.report
        assert len(asked) == 1 + queries

    @pytest.mark.usefixtures("server")
    def test_the_numbers_are_configurable(self, fake: FakeApi, tmp_path: Path, asked: list[int]) -> None:
        pod = Pod(fake, tmp_path / "few", clusterDnsIp="127.0.0.1", dnsSamples=3, dnsSamplesAfterFailure=12)
        assert pod.work(POD_NAME="worker-1") == 0
        assert len(asked) == 1 + 3
        assert pod.work(POD_NAME="worker-2") == 0
        assert len(asked) == 4 + 1 + 12

    @pytest.mark.parametrize(("share", "denies"), [(0.5, True), (0.3, False)], ids=["50 % NXDOMAIN", "30 % lost"])
    def test_twenty_attempts_do_not_release_a_node_with_flaky_dns(
        self,
        fake: FakeApi,
        tmp_path: Path,
        share: float,
        denies: bool,  # noqa: FBT001
    ) -> None:
        flaky = samples.Server(share, seed=15, denies=denies, address="127.0.0.1")
        pod = Pod(fake, tmp_path / "flaky", clusterDnsIp="127.0.0.1", payload=False)
        errors = []
        with samples.asking(flaky, patience=0.1):
            for attempt in range(1, 21):
                assert pod.work(POD_NAME=f"worker-{attempt}") == 1, f"released by attempt {attempt}"
                errors += [check["error"] for check in pod.report["checks"] if not check["ok"]]
        counted = "queries answered NXDOMAIN" if denies else "queries lost"
        assert sum(counted in error for error in errors) >= 8, errors


class TestCannotCheck:
    def test_invalid_settings_are_exit_code_2_with_every_error(self, pod: Pod) -> None:
        assert pod.work(CHECK_TIMEOUT="soon", LOG_LEVEL="loud") == 2
        assert pod.report["checks"] == []
        assert "CHECK_TIMEOUT" in pod.report["error"]
        assert "LOG_LEVEL" in pod.report["error"]

    def test_without_a_nodes_name_it_is_exit_code_2(self, pod: Pod) -> None:
        assert pod.work(NODE_NAME="") == 2
        assert "NODE_NAME: is missing" in pod.report["error"]

    def test_a_missing_settings_file_is_exit_code_2(self, pod: Pod) -> None:
        assert pod.work(WORKER_CONFIG_PATH="/nonexistent/worker-config.yaml") == 2

    @pytest.mark.parametrize("file", ["token", "ca.crt"])
    def test_without_token_or_authority_it_is_exit_code_3(self, pod: Pod, file: str) -> None:
        (pod.account / file).unlink()
        assert pod.work() == 3
        assert f"cannot read {pod.account / file}: " in pod.report["error"]
        assert pod.report["checks"] == []

    def test_outside_a_pod_it_is_exit_code_3(self, pod: Pod) -> None:
        assert pod.work(KUBERNETES_SERVICE_HOST="") == 3

    def test_outside_a_pod_a_kubeconfig_leads_to_the_cluster(self, fake: FakeApi, tmp_path: Path) -> None:
        server = f"https://127.0.0.1:{fake.port}"
        path = pki.kubeconfig(tmp_path / "kubeconfig", server, fake.authority.certificate, "a-token")
        pod = Pod(fake, tmp_path / "no-pod", dnsService="kube-system/kube-dns")
        outside = {"KUBERNETES_SERVICE_HOST": "", "KUBECONFIG": f"/nonexistent:{path}"}
        assert pod.work(**outside) == 4, "what is skipped proves nothing, and exit code 0 opens a gate"
        assert {check["name"] for check in pod.report["checks"] if check["ok"]} >= {"api", "services", "payload"}
        assert [check["target"] for check in pod.report["checks"] if check.get("skipped")] == ["kube-system/kube-dns"]
        assert pod.report["error"] == "a check could not be tried from here, and a skipped check proves nothing"
        assert pod.work(**outside, DRY_RUN="true") == 4, (
            "a ConfigMap can set that, so it is not a reason to open a gate"
        )
        fake.answers["/api"] = http(status=401)
        assert pod.work(**outside) == 1

    def test_outside_a_pod_an_unusable_kubeconfig_is_exit_code_3(self, pod: Pod) -> None:
        assert pod.work(KUBERNETES_SERVICE_HOST="", KUBECONFIG="/nonexistent") == 3
        assert "cannot read /nonexistent: No such file or directory" in pod.report["error"]

    @pytest.mark.parametrize("kubeconfig", ["", "/nonexistent"])
    def test_a_pod_with_an_account_loads_nothing_for_kubeconfigs(self, tmp_path: Path, kubeconfig: str) -> None:
        (tmp_path / "token").write_text("a-token")
        (tmp_path / "ca.crt").write_bytes(pki.Authority(tmp_path / "pki").certificate.read_bytes())
        environ = {"NODE_NAME": "a", "KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}
        environ |= {"KUBECONFIG": kubeconfig, "TERMINATION_LOG": str(tmp_path / "log"), "CHECK_TIMEOUT_SECONDS": "1"}
        program = (
            "import sys; from kube_node_ready.worker import main; "
            f"code = main.work({environ}, folder={str(tmp_path)!r}); "
            "print(code, [name for name in sys.modules if name.partition('.')[0] in ('yaml', 'kubekit')])"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, text=True)
        code, _, modules = done.stdout.splitlines()[-1].partition(" ")
        assert modules == "[]", done.stderr
        assert code in ("1", "4")

    def test_in_a_pod_a_kubeconfig_names_the_api_server_and_everything_is_checked(
        self, fake: FakeApi, pod: Pod, tmp_path: Path
    ) -> None:
        server = f"https://127.0.0.1:{fake.port}"
        path = pki.kubeconfig(tmp_path / "kubeconfig", server, fake.authority.certificate, "a-token")
        assert pod.work(KUBECONFIG=str(path)) == 0
        assert not [check for check in pod.report["checks"] if check.get("skipped")]
        assert fake.asked[0][1]["authorization"] == "Bearer a-token"
        assert pod.work(KUBECONFIG="/nonexistent") == 0, "as kubectl, it ignores files that do not exist"

    def test_a_bug_is_exit_code_10_in_one_line(
        self, pod: Pod, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def break_down(*_: object) -> None:
            raise ZeroDivisionError("by zero")

        monkeypatch.setattr("kube_node_ready.checks.plan.in_pod", break_down)
        assert pod.work() == 10
        assert pod.report["error"] == "unexpected ZeroDivisionError: by zero"
        assert "Traceback" not in capsys.readouterr().out
        assert pod.work(LOG_LEVEL="debug") == 10
        assert "Traceback (most recent call last)" in capsys.readouterr().out

    def test_a_dry_run_needs_no_name_and_writes_no_termination_message(
        self, fake: FakeApi, pod: Pod, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert pod.work(NODE_NAME="", DRY_RUN="true") == 0
        assert not pod.termination_log.exists()
        assert json.loads(json.loads(capsys.readouterr().out.splitlines()[-1])["report"])["node"] == "dry-run-node"
        fake.answers["/api"] = http(status=401)
        assert pod.work(NODE_NAME="", DRY_RUN="true") == 1

    def test_an_unwritable_termination_message_does_not_change_the_verdict(self, pod: Pod) -> None:
        assert pod.work(TERMINATION_LOG="/nonexistent/termination-log") == 0


class TestProcess:
    def start(self, pod: Pod, program: str = PROGRAM) -> subprocess.Popen[str]:
        argv = [sys.executable, "-c", program, str(pod.account)]
        return subprocess.Popen(argv, env=os.environ | pod.environ, stdout=subprocess.PIPE, text=True)

    @pytest.mark.parametrize("program", [PROGRAM, UNDISTURBED + PROGRAM], ids=["waiting", "about to wait"])
    def test_it_exits_on_sigterm_with_the_results_so_far(self, fake: FakeApi, tmp_path: Path, program: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            target = f"127.0.0.1:{silent.getsockname()[1]}"
            pod = Pod(fake, tmp_path / "stopped", networkTargets=[f"http://{target}/"], checkTimeoutSeconds=60)
            with self.start(pod, program) as process:
                assert process.stdout
                passed = (line for line in process.stdout if "check passed" in line)
                assert len(list(itertools.islice(passed, 7))) == 7
                process.send_signal(signal.SIGTERM)
                process.stdout.read()
                assert process.wait(30) == 143, "an interrupted check proves nothing about the node"
        (unfinished,) = [check for check in pod.report["checks"] if not check["ok"]]
        assert (unfinished["target"], unfinished["error"]) == (f"http://{target}/", "stopped before it completed")

    def test_it_loads_nothing_that_a_passing_run_does_not_need(self, pod: Pod) -> None:
        """Each of these costs every new node several milliseconds."""
        dear = {"argparse", "asyncio", "dataclasses", "difflib", "http.client", "inspect", "pathlib", "typing", "yaml"}
        program = PROGRAM.replace("os._exit(code)", "print(*sys.modules); sys.stdout.flush(); os._exit(code)")
        argv = [sys.executable, "-S", "-c", program, str(pod.account)]
        source = str(Path(worker.__file__).parents[2])
        environ = pod.environ | {"PYTHONPATH": source}
        done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=True)
        assert not dear & set(done.stdout.splitlines()[-1].split())

    @pytest.mark.parametrize(
        ("argument", "code", "words"),
        [
            ("--version", 0, "kube-node-ready-worker "),
            ("--help", 0, "exit codes:"),
            ("--frobnicate", 2, "--frobnicate: unknown flag"),
        ],
    )
    def test_help_version_and_usage_errors_are_printed(self, argument: str, code: int, words: str) -> None:
        argv = [sys.executable, "-c", "from kube_node_ready.worker.main import main; main()", argument]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == code
        assert words in done.stdout + done.stderr

    def test_a_resolver_that_never_responds_does_not_delay_exit(self, pod: Pod) -> None:
        stuck = PROGRAM.replace(
            "code =", "import time, socket; socket.getaddrinfo = lambda *a, **k: time.sleep(60)\ncode ="
        )
        pod.environ["CHECK_TIMEOUT"] = "0.3s"
        begun = time.monotonic()
        argv = [sys.executable, "-c", stuck, str(pod.account)]
        done = subprocess.run(argv, env=os.environ | pod.environ, capture_output=True, timeout=120, check=False)
        assert done.returncode == 1
        assert time.monotonic() - begun < 20
        assert "timed out after 0.3 s" in [
            check.get("error") for check in pod.report["checks"] if check["name"] == "dns"
        ]


class TestLog:
    def test_json_lines_have_level_time_and_event_first(self) -> None:
        stream = io.StringIO()
        log.configure(stream=stream)
        log.log("node verified", node="a", attempt=2)
        assert stream.getvalue().startswith('{"level":"info","timestamp":"20')
        found = json.loads(stream.getvalue())
        assert (found["msg"], found["node"], found["attempt"]) == ("node verified", "a", 2)

    def test_console_lines_are_for_people(self) -> None:
        stream = io.StringIO()
        log.configure("debug", "console", stream)
        log.log("DNS check passed", domain="a.example", duration="0.123s", why="two words", addresses=["10.0.0.1"])
        line = stream.getvalue()
        assert line[8:].rstrip("\n") == (
            ' INFO  DNS check passed  domain=a.example duration=0.123s why="two words" addresses=[10.0.0.1]'
        )
        log.log("careful", level="warn")
        assert stream.getvalue().endswith(" WARN  careful\n")

    def test_lines_below_the_level_are_not_written(self) -> None:
        stream = io.StringIO()
        log.configure("warn", stream=stream)
        log.log("quiet")
        log.log("loud", level="error")
        assert [json.loads(line)["msg"] for line in stream.getvalue().splitlines()] == ["loud"]

    def test_a_log_line_is_one_line(self) -> None:
        stream = io.StringIO()
        for kind in log.FORMATS:
            log.configure("info", kind, stream)
            log.log("event", text="two\nlines", thing=object(), timestamp="forged")
        assert len(stream.getvalue().splitlines()) == 2
        assert json.loads(stream.getvalue().splitlines()[0])["timestamp"] != "forged"

    def test_lines_of_threads_are_not_mixed(self) -> None:
        class Slow(io.StringIO):
            def write(self, text: str) -> int:
                for letter in text:
                    super().write(letter)
                    if letter == ":":
                        time.sleep(0)
                return len(text)

        stream = Slow()
        log.configure(stream=stream)
        threads = [threading.Thread(target=log.log, args=(f"event {number}",)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({json.loads(line)["msg"] for line in stream.getvalue().splitlines()}) == 20

    def test_a_closed_output_stops_no_program(self) -> None:
        stream = io.StringIO()
        log.configure(stream=stream)
        stream.close()
        log.log("into the void")

    @pytest.mark.parametrize(("level", "kind"), [("loud", "json"), ("info", "xml")])
    def test_unknown_levels_and_formats_are_rejected(self, level: str, kind: str) -> None:
        with pytest.raises(ValueError, match="is invalid; expected one of"):
            log.configure(level, kind)
