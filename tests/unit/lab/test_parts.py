"""The small parts of the lab, each by itself."""

import hashlib
import json
import ssl
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import IO

import pytest
import yaml
from lightkube import KubeConfig

from lab import audit, cleanup, images, pki, runs, waiting
from lab.errors import ComponentDiedError, LabError, NotReadyInTimeError
from lab.process import Process
from tests.support.shell import ROOT


def an_event(verb: str, stage: str, resource: str = "pods", **more: object) -> str:
    return json.dumps(
        {
            "stage": stage,
            "verb": verb,
            "requestURI": f"/api/v1/{resource}?watch=1",
            "userAgent": "kube-scheduler/v1.36.3 (linux/amd64)",
            "objectRef": {"resource": resource},
            "responseStatus": {"code": 200},
            **more,
        }
    )


class TestAudit:
    def test_watches_count_at_their_start_and_other_requests_at_their_end(self, tmp_path: Path) -> None:
        log = tmp_path / "audit.log"
        events = [
            an_event("watch", "ResponseStarted"),
            an_event("watch", "ResponseComplete"),
            an_event("list", "ResponseStarted"),
            an_event("list", "ResponseComplete"),
        ]
        log.write_text("\n".join(events) + "\n")
        calls = audit.AuditLog(log).calls()
        assert calls.count(agent="kube-scheduler") == 2
        assert calls.count(verb="watch", resource="pods", code=200) == 1

    def test_a_partial_line_is_read_later(self, tmp_path: Path) -> None:
        log = tmp_path / "audit.log"
        log.write_text(an_event("get", "ResponseComplete") + "\n" + an_event("get", "ResponseComplete")[:40])
        assert audit.AuditLog(log).calls().count() == 1

    def test_subresources_and_bare_paths_have_names(self, tmp_path: Path) -> None:
        log = tmp_path / "audit.log"
        bound = an_event("create", "ResponseComplete", objectRef={"resource": "pods", "subresource": "binding"})
        bare = an_event("get", "ResponseComplete", requestURI="/readyz?verbose", objectRef={})
        log.write_text(f"{bound}\n{bare}\n")
        calls = audit.AuditLog(log).calls()
        assert calls.count(resource="pods/binding") == 1
        assert calls.count(resource="/readyz") == 1

    def test_a_missing_log_has_no_calls(self, tmp_path: Path) -> None:
        assert audit.AuditLog(tmp_path / "none").calls().count() == 0


class TestImages:
    def test_every_digest_in_an_archive_is_true(self, tmp_path: Path) -> None:
        (tmp_path / "program").write_text("content")
        archive = images.write(
            tmp_path / "image.tar", "lab.local/x:1", {"/program": tmp_path / "program"}, ["/program"]
        )
        with tarfile.open(archive) as tar:
            blobs = {name: tar.extractfile(name).read() for name in tar.getnames()}  # type: ignore[union-attr]
        for name, content in blobs.items():
            if name.startswith("blobs/"):
                assert name == f"blobs/sha256/{hashlib.sha256(content).hexdigest()}"
        (manifest,) = json.loads(blobs["index.json"])["manifests"]
        assert manifest["annotations"]["io.containerd.image.name"] == "lab.local/x:1"
        assert manifest["digest"].replace(":", "/") in {name.removeprefix("blobs/") for name in blobs}


class TestPki:
    def test_a_kubeconfig_can_be_read_by_the_client_and_holds_its_secrets_in_private(self, tmp_path: Path) -> None:
        authority = pki.Authority(tmp_path)
        pair = authority.sign("someone", "someone", groups=["a", "b"], hosts=["localhost", "127.0.0.1"])
        path = pki.kubeconfig(tmp_path / "config", "https://127.0.0.1:1", authority.certificate, pair)
        assert path.stat().st_mode & 0o077 == 0
        assert pair.key.stat().st_mode & 0o077 == 0
        config = KubeConfig.from_file(path).get()
        assert config
        assert config.cluster.server == "https://127.0.0.1:1"
        assert yaml.safe_load(path.read_text())["users"][0]["user"]["client-key-data"]

    @pytest.mark.parametrize(("asked", "believed"), [("localhost", True), ("127.0.0.1", True), ("elsewhere", False)])
    def test_openssl_accepts_a_server_certificate_only_for_its_hosts(
        self, tmp_path: Path, asked: str, *, believed: bool
    ) -> None:
        authority = pki.Authority(tmp_path)
        pair = authority.sign("someone", "someone", hosts=["localhost", "127.0.0.1"])
        serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        serving.load_cert_chain(pair.certificate, pair.key)
        trusting = ssl.create_default_context(cafile=authority.certificate)
        assert shake_hands(trusting, serving, asked) is believed


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext, host: str) -> bool:
    """Whether the client believes that the server is `host`; no network is involved."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(back, there, server_hostname=host), server.wrap_bio(there, back, server_side=True)]
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError:
                return False
    return True


class TestWaiting:
    def test_an_exception_or_an_empty_result_means_not_yet(self) -> None:
        answers = iter([OSError("refused"), None, False, (), "yes"])

        def answer() -> object:
            given = next(answers)
            if isinstance(given, Exception):
                raise given
            return given

        assert waiting.until("an answer", answer, 5) == "yes"

    def test_a_timeout_reports_what_was_awaited_and_why(self) -> None:
        def refuse() -> None:
            raise OSError("refused")

        with pytest.raises(NotReadyInTimeError, match=r"^an answer: not within 0\.1 s; at the last try: refused$"):
            waiting.until("an answer", refuse, 0.1)

    def test_waiting_ends_when_it_cannot_succeed(self) -> None:
        def dead() -> None:
            raise ComponentDiedError("etcd died")

        with pytest.raises(ComponentDiedError, match="etcd died"):
            waiting.until("an answer", lambda: None, 60, alive=dead)


class TestRuns:
    @pytest.fixture
    def run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> runs.Run:
        monkeypatch.setenv("KUBE_NODE_READY_LAB_DIR", str(tmp_path))
        (tmp_path / "0").mkdir()
        return runs.Run(tmp_path / "0")

    def test_a_run_that_is_being_kept_is_not_abandoned(self, run: runs.Run, monkeypatch: pytest.MonkeyPatch) -> None:
        real = cleanup.take_lock

        def after_it_is_kept(folder: Path) -> IO[str] | None:
            run.keep("precious")
            return real(folder)

        monkeypatch.setattr(cleanup, "take_lock", after_it_is_kept)
        assert runs.remove_abandoned() == []
        assert run.name == "precious"

    def test_down_waits_for_readers(self, run: runs.Run) -> None:
        run.keep("busy")
        lock = cleanup.take_lock(run.folder)
        assert lock
        with subprocess.Popen([sys.executable, "-m", "lab", "--name=busy", "down"], cwd=ROOT) as down:
            time.sleep(2)
            assert down.poll() is None, "it has not given up"
            assert run.folder.exists()
            cleanup.drop_lock(lock)
            assert down.wait(60) == 0
        assert not run.folder.exists()


class TestProcess:
    def a_process(self, tmp_path: Path, code: str) -> Process:
        return Process("the thing", [sys.executable, "-c", code], tmp_path / "log", {})

    def test_a_process_that_dies_is_named_with_the_end_of_its_log(self, tmp_path: Path) -> None:
        process = self.a_process(
            tmp_path, "import sys; print(*range(100), sep='\\n', flush=True); sys.exit('last words')"
        )
        process.start()
        with pytest.raises(
            ComponentDiedError, match=r"the thing died \(exit code 1\); the end of .*log:\n86\n(.|\n)*last words$"
        ):
            waiting.until("never", lambda: None, 60, alive=process.check)
        process.stop()

    def test_a_stopped_process_is_not_dead(self, tmp_path: Path) -> None:
        process = self.a_process(tmp_path, "import time; time.sleep(60)")
        process.start()
        assert process.running
        process.stop()
        process.check()
        assert not process.running

    def test_starting_twice_is_rejected(self, tmp_path: Path) -> None:
        process = self.a_process(tmp_path, "import time; time.sleep(60)")
        process.start()
        with pytest.raises(LabError, match="the thing is running already"):
            process.start()
        process.stop()

    def test_a_paused_process_can_be_stopped(self, tmp_path: Path) -> None:
        process = self.a_process(tmp_path, "import time; time.sleep(60)")
        process.start()
        process.pause()
        process.stop()
        assert not process.running


DECODE_AT_THE_SAME_TIME = """
import sys, threading
import msgspec
import lab.node
from lightkube.resources.core_v1 import Node

sys.setswitchinterval(1e-6)
start = threading.Barrier(16)

def decode():
    start.wait()
    msgspec.json.decode(b'{"metadata": {"name": "x"}, "spec": {"taints": []}, "status": {}}', type=Node)

threads = [threading.Thread(target=decode) for _ in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_concurrent_decoding_by_booting_nodes_does_not_crash() -> None:
    """Most processes did crash, so of four at least one would."""
    command = [sys.executable, "-c", DECODE_AT_THE_SAME_TIME]
    processes = [subprocess.Popen(command) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
