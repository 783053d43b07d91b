"""Connect a socket, also through a proxy. asyncio's own resolver threads would delay the end of a process."""

import asyncio
import socket
import threading
from contextlib import suppress
from typing import Any

from kubekit import proxy as proxies
from kubekit.proxy import Proxy

# Together they detect within half a minute that a connection broke silently. Not every system has all of them.
_SOCKET_OPTIONS = {
    "TCP_NODELAY": 1,
    "TCP_KEEPIDLE": 15,
    "TCP_KEEPINTVL": 5,
    "TCP_KEEPCNT": 3,
    "TCP_USER_TIMEOUT": 30_000,
}

_Address = tuple[Any, ...]
"""As `socket.getaddrinfo` returns it."""


async def connect(host: str, port: int, proxy: Proxy | None) -> socket.socket:
    """Return a connected socket that does not block."""
    loop = asyncio.get_running_loop()
    if not proxy:
        return await _connect_to(host, port, loop)
    try:
        sock = await _connect_to(proxy.host, proxy.port, loop)
    except OSError as error:
        raise proxies.unreachable(proxy, error) from error
    try:
        await _tunnel(sock, proxies.handshake(proxy, host, port), loop)
    except BaseException:
        sock.close()
        raise
    return sock


async def _connect_to(host: str, port: int, loop: asyncio.AbstractEventLoop) -> socket.socket:
    failure: OSError | None = None
    for address in await _addresses(host, port, loop):
        sock = _socket(address[0], address[1], address[2])
        try:
            await loop.sock_connect(sock, address[4])
        except OSError as error:
            failure = error
            sock.close()
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise failure or OSError(f"{host} has no address")


async def _addresses(host: str, port: int, loop: asyncio.AbstractEventLoop) -> list[_Address]:
    """Resolve in a daemon thread: nothing ends libc's resolver, and `asyncio.run` waits for threads of an executor."""
    with suppress(socket.gaierror):  # an IP address needs no thread
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    addresses: asyncio.Future[list[_Address]] = loop.create_future()

    def settle(result: list[_Address] | OSError) -> None:
        if addresses.done():
            return
        if isinstance(result, OSError):
            addresses.set_exception(result)
        else:
            addresses.set_result(result)

    def resolve() -> None:
        result: list[_Address] | OSError
        try:
            result = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            result = error
        with suppress(RuntimeError):  # the loop is closed: nothing waits for it
            loop.call_soon_threadsafe(settle, result)

    threading.Thread(target=resolve, daemon=True).start()
    return await addresses


async def _tunnel(sock: socket.socket, steps: proxies.Handshake, loop: asyncio.AbstractEventLoop) -> None:
    sent = next(steps)
    while True:
        await loop.sock_sendall(sock, sent)
        received = await loop.sock_recv(sock, proxies.PIECE_BYTES)
        try:
            sent = steps.send(received)
        except StopIteration:
            return


def _socket(family: int, kind: int, protocol: int) -> socket.socket:
    sock = socket.socket(family, kind, protocol)
    sock.setblocking(False)  # noqa: FBT003  so it is called
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _SOCKET_OPTIONS.items():
        if (option := getattr(socket, name, None)) is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
    return sock
