"""Credentials: token files that rotate, exec plugins, and when they are fetched again."""

import json
import math
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from kubekit import credentials
from kubekit.credentials import V1, V1BETA1, Credentials, CredentialsError, ExecPlugin, Identity, Static, TokenFile

PAIR = {"clientCertificateData": "certificate", "clientKeyData": "key"}


def a_plugin(script: str, **further: Any) -> ExecPlugin:  # noqa: ANN401  fields of the plugin
    fields: dict[str, Any] = {"args": ["-c", script], "environ": {}, "api_version": V1} | further
    return ExecPlugin("sh", **fields)


def printing(status: object, **further: Any) -> ExecPlugin:  # noqa: ANN401  fields of the plugin
    return a_plugin(f"printf %s '{json.dumps({'status': status})}'", **further)


class TestTokenFile:
    def test_the_token_is_read_without_its_line_break(self, tmp_path: Path) -> None:
        (tmp_path / "token").write_text("a-token\n")
        assert TokenFile(str(tmp_path / "token"), "pem").fetch() == Identity("Bearer a-token", "pem")

    @pytest.mark.parametrize("token", ["secret\r\nX: y", "secret\x00", "secrét", ""])
    def test_a_token_that_cannot_be_sent_is_rejected_and_not_shown(self, tmp_path: Path, token: str) -> None:
        (tmp_path / "token").write_text(token)
        with pytest.raises(CredentialsError, match=r"the token in .* is invalid; expected visible ASCII") as refused:
            TokenFile(str(tmp_path / "token")).fetch()
        assert "secr" not in str(refused.value)

    def test_a_file_that_cannot_be_read_is_named(self) -> None:
        with pytest.raises(CredentialsError, match="cannot read token file '/nowhere/token': No such file"):
            TokenFile("/nowhere/token").fetch()


class TestPlugin:
    @pytest.mark.parametrize(
        ("status", "identity"),
        [
            ({"token": "t"}, Identity("Bearer t", "static")),
            (PAIR, Identity("", "certificate\nkey")),
            (PAIR | {"token": "t"}, Identity("Bearer t", "certificate\nkey")),
            ({"token": "t", "expirationTimestamp": None}, Identity("Bearer t", "static")),
            ({"token": "t", "expirationTimestamp": "1970-01-01T00:01:00Z"}, Identity("Bearer t", "static", 60)),
            ({"token": "t", "expirationTimestamp": "1970-01-01T01:01:00+01:00"}, Identity("Bearer t", "static", 60)),
        ],
    )
    def test_it_returns_a_token_a_certificate_or_both(self, status: dict[str, str], identity: Identity) -> None:
        assert printing(status, certificate="static").fetch() == identity

    @pytest.mark.parametrize("version", [V1, V1BETA1])
    def test_it_receives_the_exec_info(self, tmp_path: Path, version: str) -> None:
        notes = tmp_path / "notes"
        script = """echo "$KUBERNETES_EXEC_INFO" > "$NOTES"; echo '{"status": {"token": "'$WHOSE'"}}'"""
        environ = {"WHOSE": "plugins", "NOTES": str(notes), "KUBERNETES_EXEC_INFO": "replaced"}
        plugin = a_plugin(script, environ=environ, api_version=version, cluster={"server": "https://a"})
        assert plugin.fetch().authorization == "Bearer plugins"
        spec = {"interactive": False, "cluster": {"server": "https://a"}}
        assert json.loads(notes.read_text()) == {"apiVersion": version, "kind": "ExecCredential", "spec": spec}

    @pytest.mark.parametrize(
        ("plugin", "complaint"),
        [
            (
                ExecPlugin("no-such-plugin", [], {}, V1),
                "cannot run exec plugin 'no-such-plugin': No such file or directory",
            ),
            (
                ExecPlugin("no-such-plugin", [], {}, V1, install_hint="Get it at\n\x1b[2Jexample.com"),
                "No such file or directory; Get it at \N{REPLACEMENT CHARACTER}[2Jexample.com",
            ),
            (ExecPlugin("/etc", [], {}, V1), "cannot run exec plugin '/etc': Permission denied"),
            (ExecPlugin("true", ["\ud83d"], {}, V1), "cannot run exec plugin 'true': "),
            (a_plugin("exit 3"), "exec plugin 'sh' exited with code 3"),
            (a_plugin("echo hello"), "exec plugin 'sh' printed no JSON"),
            (a_plugin(r"printf '\377'"), "printed no JSON"),
            (a_plugin("head -c 2000000 /dev/zero"), "printed 2000000 bytes; expected at most"),
            (a_plugin("printf '[%.0s' $(seq 100000)"), "printed no JSON"),
            (a_plugin("echo '[]'"), "printed no status"),
            (printing(None), "printed no status"),
            (printing({}), "printed neither a token nor a client certificate"),
            (printing({"token": ""}), "printed neither a token nor a client certificate"),
            (printing({"clientKeyData": "secret"}), "printed only one of clientCertificateData and clientKeyData"),
            (printing({"token": 7}), "printed a token that is not text"),
            (printing({"token": "secret\nX: y"}), "printed an invalid token; expected visible ASCII"),
            (printing({"token": "secrét"}), "printed an invalid token; expected visible ASCII"),
            (printing({"token": "secret", "expirationTimestamp": "soon"}), "printed expirationTimestamp 'soon'"),
            (
                a_plugin("""echo '{"apiVersion": "x", "status": {"token": "secret"}}'"""),
                "printed apiVersion 'x'; expected client.authentication.k8s.io/v1",
            ),
            (
                printing({"token": "secret"}, interactive_mode="Always"),
                "cannot run without a terminal, because its interactiveMode is Always",
            ),
            (a_plugin("exec sleep 60"), "did not exit within 0.2 s"),
        ],
    )
    def test_a_failure_is_one_line_without_secrets(
        self, plugin: ExecPlugin, complaint: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if "0.2 s" in complaint:
            monkeypatch.setattr(credentials, "_PLUGIN_SECONDS", 0.2)
        with pytest.raises(CredentialsError) as refused:
            plugin.fetch()
        assert complaint in str(refused.value)
        assert str(refused.value).isprintable()
        assert "secr" not in str(refused.value)

    def test_an_extension_that_contains_itself_is_rejected(self) -> None:
        cluster: dict[str, object] = {}
        cluster["config"] = cluster
        with pytest.raises(CredentialsError, match="contains itself"):
            printing({"token": "t"}, cluster=cluster).fetch()

    @pytest.mark.parametrize("smallest", ["lol" * 1000, 7, [], {}])
    def test_an_extension_is_not_written_if_its_aliases_stand_for_too_much(self, smallest: object) -> None:
        """Otherwise, 1 KB of a kubeconfig stands for 9 ** 12 values."""
        value = smallest
        for _ in range(7):
            value = [value] * 9
        with pytest.raises(CredentialsError, match="has more than 1048576 characters or contains itself"):
            printing({"token": "t"}, cluster={"config": {"a": value}}).fetch()

    def test_its_messages_to_the_user_are_shown(self, capfd: pytest.CaptureFixture[str]) -> None:
        a_plugin("""echo open https://example.com/device >&2; echo '{"status": {"token": "t"}}'""").fetch()
        assert capfd.readouterr().err == "open https://example.com/device\n"

    @pytest.mark.parametrize(
        ("mode", "terminal", "interactive"),
        [("Never", True, False), ("IfAvailable", True, True), ("IfAvailable", False, False), ("Always", True, True)],
    )
    def test_it_gets_our_terminal_only_where_it_is_allowed_to(
        self, monkeypatch: pytest.MonkeyPatch, mode: str, *, terminal: bool, interactive: bool
    ) -> None:
        monkeypatch.setattr("os.isatty", lambda _: terminal)
        command = printing({}, interactive_mode=mode).prepare()
        assert json.loads(command.environ["KUBERNETES_EXEC_INFO"])["spec"] == {"interactive": interactive}
        assert command.stdin == (None if interactive else subprocess.DEVNULL)


class Counting:
    """Another identity each time."""

    reread_seconds = math.inf

    def __init__(self, *, expires: float = math.inf) -> None:
        self.fetched = 0
        self._expires = expires

    def fetch(self) -> Identity:
        self.fetched += 1
        return Identity(f"Bearer {self.fetched}", expires=self._expires)


class TestCache:
    def test_an_identity_is_kept_until_it_is_rejected(self) -> None:
        kept = Credentials(Counting())
        first = kept.get()
        assert kept.get() is first
        second = kept.refresh(first)
        assert second.authorization == "Bearer 2"
        assert kept.refresh(first) is second, "it was renewed meanwhile"

    def test_credentials_that_cannot_be_renewed_stay(self) -> None:
        kept = Credentials(Static(Identity("Bearer fixed")))
        assert kept.refresh(kept.get()) == kept.get() == Identity("Bearer fixed")

    def test_an_expired_identity_is_fetched_again(self) -> None:
        source = Counting(expires=time.time() - 1)
        kept = Credentials(source)
        kept.get()
        kept.get()
        assert source.fetched == 2

    def test_a_token_file_is_read_again_after_a_minute(self, tmp_path: Path) -> None:
        file = tmp_path / "token"
        file.write_text("first")
        kept = Credentials(TokenFile(str(file)))
        first = kept.get()
        file.write_text("second")
        assert kept.get() is first
        kept._fetched_at -= 61
        assert kept.get().authorization == "Bearer second"
        file.unlink()
        kept._fetched_at -= 61
        assert kept.get().authorization == "Bearer second", "as long as it can be used"

    def test_a_plugin_runs_once_for_all_threads(self, tmp_path: Path) -> None:
        script = f"""sleep 0.2; echo x >> {tmp_path}/runs; echo '{{"status": {{"token": "t"}}}}'"""
        kept = Credentials(a_plugin(script))
        threads = [threading.Thread(target=kept.get) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (tmp_path / "runs").read_text() == "x\n"

    def test_no_secret_is_in_a_repr(self) -> None:
        plugin = ExecPlugin("sh", [], {"A": "secret"}, V1, certificate="secret")
        assert "secret" not in repr((Identity("Bearer secret", "secret"), plugin, plugin.prepare()))
