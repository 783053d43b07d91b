"""A server whose lists have no last page."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import count

from tests.support.http_servers import Server, Speaks

PATH = "/api/v1/configmaps"
Tokens = Callable[[], Iterator[str]]


def same() -> Iterator[str]:
    while True:
        yield "more"


def alternating() -> Iterator[str]:
    while True:
        yield from ("a", "b")


def new() -> Iterator[str]:
    return map(str, count())


def lists(
    tokens: Tokens, *, delay: float = 0.0, fields: Mapping[str, object] | None = None
) -> Callable[[Server], Speaks]:
    """One object per page, and always the next token. Watches are rejected, as by a server that streams no lists."""

    def speaks(server: Server) -> Speaks:
        pages = zip(count(1), tokens(), strict=False)

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while True:
                if "watch=1" in await server.hear(reader):
                    writer.write(_response("400 Bad Request", {"kind": "Status", "code": 400}))
                    continue
                await asyncio.sleep(delay)
                number, token = next(pages)
                metadata = {"name": f"map-{number}", "uid": str(number), "resourceVersion": "1"}
                page = {
                    "metadata": {"resourceVersion": "1", "continue": token},
                    "items": [{"metadata": metadata, **(fields or {})}],
                }
                writer.write(_response("200 OK", page))

        return answer

    return speaks


def finite(pages: int) -> Tokens:
    """A list of this many pages."""
    return lambda: iter([*map(str, range(1, pages)), ""])


def _response(status: str, body: object) -> bytes:
    data = json.dumps(body).encode()
    return f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data
