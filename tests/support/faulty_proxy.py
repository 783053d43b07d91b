"""Proxy to an API server that truncates, delays or replaces responses."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import aiohttp
from aiohttp import web

from kube_node_ready.kube.access import Access

_PASSED_ON = ("Accept", "Accept-Encoding", "Content-Type", "Authorization")


@dataclass(frozen=True)
class Says:
    """Answer so, without asking the server."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Cuts:
    """The connection breaks after so many bytes of the answer's body, or before the server is asked."""

    after: int | None = None


@dataclass(frozen=True)
class Stalls:
    """Nothing more comes after so many bytes of the response's body, and the connection stays open."""

    after: int


Fault = Says | Cuts | Stalls
Plan = Callable[[web.Request], Fault | None]


def in_turn(*faults: Fault | None) -> Plan:
    """One for each watch that is opened, until they are used up; whatever else is asked passes."""
    rest = iter(faults)
    return lambda request: next(rest, None) if "watch" in request.query else None


class Proxy:
    """`async with Proxy(access) as proxy:` then ask `proxy.access` instead, and set `proxy.plan`. Speaks plain HTTP."""

    def __init__(self, behind: Access) -> None:
        self._behind = behind
        self._leaving = asyncio.Event()
        self.plan: Plan = lambda _: None
        self.asked: list[str] = []
        self._passing: list[web.Request] = []

    def cut(self) -> None:
        """Break all connections on which an answer is under way, watches above all."""
        for request in self._passing:
            _hang_up(request)

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(ssl=self._behind.tls, limit=0)
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False)
        application = web.Application(client_max_size=1 << 26)
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        _, port = self._runner.addresses[0][:2]
        self.access = Access(f"http://127.0.0.1:{port}", self._behind.namespace, self._behind.tls)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, why: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leaving.set()
        await self._runner.cleanup()
        await self._session.close()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(f"{request.method} {request.path_qs}")
        fault = self.plan(request)
        match fault:
            case Says(status, body, headers):
                return web.Response(status=status, body=body, headers=headers)
            case Cuts(None):
                return _hang_up(request)
            case _:
                try:
                    return await self._pass_on(request, fault)
                except ConnectionError:  # the client closed the connection, or was disconnected
                    return _hang_up(request)

    async def _pass_on(self, request: web.Request, fault: Fault | None) -> web.StreamResponse:
        headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        url = f"{self._behind.server}{request.path_qs}"
        body = await request.read() or None
        self._passing.append(request)
        try:
            async with self._session.request(request.method, url, data=body, headers=headers) as answer:
                try:
                    return await self._pass_body_on(request, answer, fault)
                finally:
                    if answer.connection is not None and answer.connection.transport is not None:
                        answer.connection.transport.abort()
        finally:
            self._passing = [other for other in self._passing if other is not request]

    async def _pass_body_on(
        self, request: web.Request, answer: aiohttp.ClientResponse, fault: Fault | None
    ) -> web.StreamResponse:
        passed = web.StreamResponse(status=answer.status, headers={"Content-Type": answer.content_type})
        await passed.prepare(request)
        left = fault.after if isinstance(fault, Cuts | Stalls) else None
        async for chunk in answer.content.iter_any():
            if left is not None and len(chunk) >= left:
                await passed.write(chunk[:left])
                return await self._break(request, fault)
            await passed.write(chunk)
            left = left - len(chunk) if left is not None else None
        await passed.write_eof()
        return passed

    async def _break(self, request: web.Request, fault: Fault | None) -> web.StreamResponse:
        if isinstance(fault, Stalls):
            await self._leaving.wait()
        else:
            await asyncio.sleep(0.05)  # what was written before should arrive
        return _hang_up(request)


def _hang_up(request: web.Request) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
