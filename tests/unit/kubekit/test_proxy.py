"""The handshakes with proxies: whole, in pieces, rejected, and with answers that are none."""

import socket
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubekit import proxy
from kubekit.proxy import Proxy, ProxyError
from tests.support.forward_proxies import forward_proxy

LOGIN = ("me", "secret")
HTTP, SOCKS = Proxy("http", "p", 1), Proxy("socks5", "p", 1)
SOCKS_OK = b"\x05\x00" + b"\x05\x00\x00\x01" + bytes(6)


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that repeats what it hears."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            made, _ = listening.accept()
            with made:
                while piece := made.recv(100):
                    made.sendall(piece)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1]
        with socket.create_connection(listening.getsockname()):  # ends a thread without connections
            pass
        thread.join()


@pytest.mark.parametrize("scheme", ["http", "socks5"])
@pytest.mark.parametrize("login", [None, LOGIN])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_connection_uses_the_proxy(echo: int, scheme: str, login: tuple[str, str] | None, host: str) -> None:
    with forward_proxy(scheme, login) as through:
        found = proxy.parse(through.url)
        with socket.create_connection((found.host, found.port)) as made:
            proxy.run(made, proxy.handshake(found, host, echo), lambda: 5.0)
            made.sendall(b"hello")
            assert made.recv(100) == b"hello"
        assert through.targets == [f"{host}:{echo}"], "the proxy resolves the name"


@pytest.mark.parametrize("scheme", ["http", "socks5"])
def test_a_missing_login_is_reported(scheme: str) -> None:
    with forward_proxy(scheme, LOGIN) as through, socket.create_connection(("127.0.0.1", through.port)) as made:
        found = Proxy(scheme, "127.0.0.1", through.port)
        with pytest.raises(ProxyError, match=f"proxy {scheme}://127.0.0.1:{through.port} .*(407|another login)"):
            proxy.run(made, proxy.handshake(found, "127.0.0.1", 1), lambda: 5.0)
        assert through.targets == []


@pytest.mark.parametrize("scheme", ["http", "socks5"])
def test_a_server_that_the_proxy_cannot_reach_is_reported(scheme: str) -> None:
    with forward_proxy(scheme) as through, socket.create_connection(("127.0.0.1", through.port)) as made:
        found = proxy.parse(through.url)
        with pytest.raises(ProxyError, match=r"did not connect to 127\.0\.0\.1:1: (HTTP 502|connection refused)"):
            proxy.run(made, proxy.handshake(found, "127.0.0.1", 1), lambda: 5.0)


def answered(found: Proxy, *pieces: bytes) -> None:
    steps = proxy.handshake(found, "host", 443)
    next(steps)
    for piece in pieces:
        try:
            steps.send(piece)
        except StopIteration:
            return
    pytest.fail("the handshake wants more")


@pytest.mark.parametrize(
    ("found", "pieces"),
    [
        (HTTP, [bytes([letter]) for letter in b"HTTP/1.1 200 Connection established\r\nA: b\r\n\r\n"]),
        (SOCKS, [bytes([letter]) for letter in SOCKS_OK]),
        (SOCKS, [SOCKS_OK[:2], SOCKS_OK[2:]]),
        (SOCKS, [b"\x05\x00", b"\x05\x00\x00\x03\x02ab\x00\x01"]),
        (SOCKS, [b"\x05\x00", b"\x05\x00\x00\x04" + bytes(18)]),
    ],
)
def test_an_answer_can_come_in_pieces(found: Proxy, pieces: list[bytes]) -> None:
    answered(found, *pieces)


@pytest.mark.parametrize(
    ("found", "pieces", "complaint"),
    [
        (HTTP, [b""], "closed the connection"),
        (HTTP, [b"SSH-2.0\r\n\r\n"], "did not answer with HTTP"),
        (
            HTTP,
            [b"HTTP/1.1 403 No \x1b[2J\r\n\r\n"],
            "did not connect to host:443: HTTP 403 No \N{REPLACEMENT CHARACTER}",
        ),
        (HTTP, [b"HTTP/1.1 200 OK\r\n\r\nmore"], "sent data before"),
        (HTTP, [b"a" * 20_000, b"a"], "sent more than"),
        (SOCKS, [b"HTTP/1.1"], "sent data before|did not answer with SOCKS5"),
        (SOCKS, [b"\x04\x00"], "did not answer with SOCKS5"),
        (SOCKS, [b"\x05\xff"], "requires another login"),
        (SOCKS, [b"\x05\x02"], "requires another login"),
        (SOCKS, [b"\x05\x00", b"\x05\x05\x00\x01" + bytes(6)], "did not connect to host:443: connection refused"),
        (SOCKS, [b"\x05\x00", b"\x05\x63\x00\x01" + bytes(6)], "did not connect to host:443: reply 99"),
        (SOCKS, [b"\x05\x00", b"\x05\x00\x00\x07" + bytes(6)], "did not answer with SOCKS5"),
        (SOCKS, [b"\x05\x00", b"\x05\x00\x00\x01" + bytes(7)], "sent data before"),
        (SOCKS, [b"\x05\x00", b"\x05\x00", b""], "closed the connection"),
    ],
)
def test_another_answer_is_an_error(found: Proxy, pieces: list[bytes], complaint: str) -> None:
    with pytest.raises(ProxyError, match=complaint) as refused:
        answered(found, *pieces)
    assert str(refused.value).isprintable()


@given(st.sampled_from([HTTP, SOCKS]), st.lists(st.binary(min_size=1, max_size=300), max_size=20))
def test_no_answer_breaks_the_handshake(found: Proxy, pieces: list[bytes]) -> None:
    steps = proxy.handshake(found, "host", 443)
    next(steps)
    try:
        for piece in pieces:
            steps.send(piece)
    except (StopIteration, ProxyError):
        pass


def test_a_password_is_not_shown() -> None:
    found = proxy.parse("http://me:secret@a:1")
    assert "secret" not in f"{found} {found!r}"
    with pytest.raises(ValueError, match="@a' is not supported") as refused:
        proxy.parse("https://me:secret@a")
    assert "secret" not in str(refused.value)


class TestEnvironment:
    @pytest.fixture(autouse=True)
    def nothing_of_this_machine(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
            monkeypatch.delenv(name, raising=False)
            monkeypatch.delenv(name.upper(), raising=False)

    @pytest.mark.parametrize("url", ["http://proxy:3128", "proxy:3128"])
    def test_a_variable_names_the_proxy(self, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
        monkeypatch.setenv("HTTPS_PROXY", url)
        monkeypatch.setenv("NO_PROXY", "internal,10.0.0.1")
        assert proxy.from_environment("https://a", "a", 443) == Proxy("http", "proxy", 3128)
        assert proxy.from_environment("http://a", "a", 80) is None
        for host in ("api.internal", "10.0.0.1", "localhost", "127.0.0.2", "::1"):
            assert proxy.from_environment(f"https://{host}", host, 443) is None

    def test_a_proxy_that_is_not_supported_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HTTPS_PROXY", "https://proxy:3128")
        with pytest.raises(ValueError, match="HTTPS_PROXY: 'https://proxy:3128' is not supported; expected http://"):
            proxy.from_environment("https://a", "a", 443)

    @pytest.mark.parametrize(
        ("no_proxy", "host", "port", "direct"),
        [
            ("", "a.example", 443, False),
            ("*", "a.example", 443, True),
            ("*", "192.0.2.1", 443, True),
            ("x, * ,y", "fd00::1", 443, True),
            ("10.0.0.0/8", "10.1.2.3", 6443, True),
            ("10.9.9.9/8", "10.1.2.3", 6443, True),
            ("10.0.0.0/8", "11.1.2.3", 6443, False),
            ("10.0.0.0/255.0.0.0", "10.1.2.3", 6443, False),
            ("10.0.0.0/8:6443", "10.1.2.3", 6443, False),
            ("fd00::/8", "fd00::1", 443, True),
            ("fd00::/8", "10.1.2.3", 443, False),
            ("10.0.0.0/8", "::ffff:10.1.2.3", 443, True),
            ("10.1.2.3", "::ffff:10.1.2.3", 443, True),
            ("::ffff:10.1.2.3", "10.1.2.3", 443, True),
            ("fd00::1", "fd00::1", 443, True),
            ("FD00::1", "fd00:0::1", 443, True),
            ("[fd00::1]:443", "fd00::1", 443, True),
            ("[fd00::1]:444", "fd00::1", 443, False),
            ("[fd00::1]", "fd00::1", 443, False),  # net.SplitHostPort misses a port
            ("10.1.2.3", "10.1.2.3", 443, True),
            ("10.1.2.3:443", "10.1.2.3", 443, True),
            ("10.1.2.3:80", "10.1.2.3", 443, False),
            ("10.1.2.3:", "10.1.2.3", 443, True),
            ("10.1.2", "10.1.2.3", 443, False),
            ("example", "example", 443, True),
            ("example", "a.example", 443, True),
            ("example", "anexample", 443, False),
            (".example", "a.b.example", 443, True),
            (".example", "example", 443, False),
            ("*.example", "a.example", 443, True),
            ("*.example", "example", 443, False),
            ("*example", "a.example", 443, False),
            ("*.example:443", "a.example", 443, True),
            ("example:443", "a.example", 443, True),
            ("example:80", "a.example", 443, False),
            ("EXAMPLE", "a.example", 443, True),
            ("example", "A.Example", 443, True),
            (" b , example ", "example", 443, True),
            (":443", "a.example", 443, False),
            (",,", "a.example", 443, False),
            ("a:b:c", "a.example", 443, False),
            ("example", "localhost", 443, True),
            ("", "127.9.9.9", 443, True),
            ("", "::1", 443, True),
        ],
    )
    def test_exceptions_are_those_of_go(
        self, monkeypatch: pytest.MonkeyPatch, no_proxy: str, host: str, port: int, *, direct: bool
    ) -> None:
        monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
        monkeypatch.setenv("NO_PROXY", no_proxy)
        found = proxy.from_environment(f"https://{proxy.address(host, port)}", host, port)
        assert (found is None) == direct

    def test_upper_case_variables_take_precedence(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in (("HTTPS_PROXY", "http://upper:1"), ("https_proxy", "http://lower:1"), ("no_proxy", "b")):
            monkeypatch.setenv(name, value)
        assert proxy.from_environment("https://a", "a", 443) == Proxy("http", "upper", 1)
        assert proxy.from_environment("https://b", "b", 443) is None
        monkeypatch.setenv("NO_PROXY", "c")
        assert proxy.from_environment("https://b", "b", 443) is not None

    @pytest.mark.parametrize("url", ["http://a..b:1", "http://.a", f"http://{'a' * 64}.example"])
    def test_a_name_that_cannot_be_resolved_is_rejected(self, url: str) -> None:
        with pytest.raises(ValueError, match="is invalid; expected http://HOST:PORT"):
            proxy.parse(url)
