"""Query one DNS server, with UDP or TCP (RFC 1035). libc only queries the servers of resolv.conf."""

import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from kube_node_ready.checks import sampling, transport
from kube_node_ready.checks.check import CheckFailedError, Deadline
from kube_node_ready.checks.fast_tuple import FastTuple

PORT = 53
A, AAAA = 1, 28
_INTERNET = 1
_IS_RESPONSE, _IS_TRUNCATED, _RECURSION_DESIRED = 0x8000, 0x0200, 0x0100
_HEADER = struct.Struct("!6H")
_RECORD = struct.Struct("!HHIH")
_NOERROR, _NXDOMAIN = 0, 3
_CODES = {1: "FORMERR", 2: "SERVFAIL", 3: "NXDOMAIN", 4: "NOTIMP", 5: "REFUSED"}
_POINTER = 0xC0
_MOST_POINTERS = 64
_ADDRESS_SIZE = {A: 4, AAAA: 16}
_FAMILY = {A: socket.AF_INET, AAAA: socket.AF_INET6}
_LARGEST_ANSWER = 65_535
_SECONDS_BETWEEN_TRIES = 1.0
_SECONDS_BEFORE_TCP_REPEATS = 0.9


class MalformedError(ValueError):
    """The data is not an answer to the question."""


class RefusedError(CheckFailedError):
    """The server answered with an error such as SERVFAIL."""


class Question(FastTuple):
    name: str
    kind: int = A


class Reply(FastTuple):
    code: int
    truncated: bool
    addresses: tuple[str, ...]

    @property
    def word(self) -> str:
        return _CODES.get(self.code, f"code {self.code}")

    @property
    def is_unknown(self) -> bool:
        return self.code == _NXDOMAIN


def encode(question: Question, number: int) -> bytes:
    labels = [label.encode("ascii") for label in question.name.rstrip(".").split(".")]
    name = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    return _HEADER.pack(number, _RECURSION_DESIRED, 1, 0, 0, 0) + name + struct.pack("!HH", question.kind, _INTERNET)


def decode(data: bytes, question: Question, number: int) -> Reply:
    """Return a Reply or raise a MalformedError, for any data."""
    try:
        return _decode(data, question, number)
    except (struct.error, IndexError) as error:
        raise MalformedError("it is truncated") from error


def _decode(data: bytes, question: Question, number: int) -> Reply:
    found, flags, questions, answers, _, _ = _HEADER.unpack_from(data)
    if found != number or not flags & _IS_RESPONSE:
        raise MalformedError("it belongs to another query")
    code = flags & 0xF
    truncated = bool(flags & _IS_TRUNCATED)
    if questions != 1:
        raise MalformedError(f"it has {questions} questions, expected 1")
    name, at = _name(data, _HEADER.size)
    kind, space = struct.unpack_from("!HH", data, at)
    if (name, kind, space) != (question.name.rstrip(".").lower(), question.kind, _INTERNET):
        raise MalformedError("its question is not the one that was sent")
    return Reply(code, truncated, tuple(_addresses(data, at + 4, 0 if truncated else answers, question.kind)))


def _addresses(data: bytes, at: int, count: int, wanted: int) -> list[str]:
    found = []
    for _ in range(count):
        at = _end_of_name(data, at)
        kind, space, _, size = _RECORD.unpack_from(data, at)
        at += _RECORD.size
        content = data[at : at + size]
        if len(content) < size:
            raise MalformedError("a record is truncated")
        if (kind, space) == (wanted, _INTERNET) and wanted in _ADDRESS_SIZE:
            if size != _ADDRESS_SIZE[wanted]:
                raise MalformedError(f"an address has {size} bytes")
            found.append(socket.inet_ntop(_FAMILY[wanted], content))
        at += size
    return found


def _name(data: bytes, at: int) -> tuple[str, int]:
    """Return the name at this position, and its end. Pointers can form a loop, so they are counted."""
    labels: list[str] = []
    end = None
    for _ in range(_MOST_POINTERS + 128):
        size = data[at]
        if size & _POINTER == _POINTER:
            if end is None:
                end = at + 2
            at = (size & ~_POINTER) << 8 | data[at + 1]
        elif size & _POINTER:
            raise MalformedError("a label of unknown type")
        elif size:
            labels.append(data[at + 1 : at + 1 + size].decode("latin-1").lower())
            at += 1 + size
        else:
            return ".".join(labels), at + 1 if end is None else end
    raise MalformedError("a name without an end")


def _end_of_name(data: bytes, at: int) -> int:
    """Return where the name ends. Its pointers are not followed: thousands of records can name long chains of them."""
    while size := data[at]:
        if size & _POINTER == _POINTER:
            return at + 2
        if size & _POINTER:
            raise MalformedError("a label of unknown type")
        at += 1 + size
    return at + 1


def ask(server: str, port: int, question: Question, deadline: Deadline) -> Reply:
    """Query with UDP, and again with TCP if the answer is truncated."""
    reply = ask_by_udp(server, port, question, deadline)
    return ask_by_tcp(server, port, question, deadline) if reply.truncated else reply


def ask_by_udp(server: str, port: int, question: Question, deadline: Deadline) -> Reply:
    """Query with UDP. Packets are lost in every network, so the query is repeated; other data is ignored.

    All queries have the same ID, so that a late answer to any of them counts.
    """
    odd, number = "", int.from_bytes(os.urandom(2), "big")
    with socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM) as plain:
        try:
            # Connected, so that the kernel drops packets from other addresses and reports a closed port.
            plain.connect((server, port))
            while True:
                plain.send(encode(question, number))
                until = time.monotonic() + min(_SECONDS_BETWEEN_TRIES, deadline.left())
                while (left := until - time.monotonic()) > 0:
                    plain.settimeout(left)
                    with suppress(TimeoutError):
                        try:
                            return _judged(decode(plain.recv(_LARGEST_ANSWER), question, number))
                        except MalformedError as error:
                            odd = f"; received an invalid answer: {error}"
        except TimeoutError as error:
            text = f"no answer from {transport.host_port(server, port)} by UDP within {deadline}{odd}"
            raise CheckFailedError(text) from error
        except OSError as error:
            raise CheckFailedError(
                f"no answer from {transport.host_port(server, port)} by UDP: {error.strerror}"
            ) from error


def ask_by_tcp(server: str, port: int, question: Question, deadline: Deadline) -> Reply:
    number = int.from_bytes(os.urandom(2), "big")
    query = encode(question, number)
    with transport.connect(server, port, deadline) as plain:
        try:
            plain.sendall(struct.pack("!H", len(query)) + query)
            (size,) = struct.unpack("!H", _exactly(plain, 2, deadline))
            return _judged(decode(_exactly(plain, size, deadline), question, number))
        except TimeoutError as error:
            text = f"TCP connects to {transport.host_port(server, port)}, but no DNS answer arrived within {deadline}"
            raise CheckFailedError(text) from error
        except (OSError, EOFError, MalformedError) as error:
            text = f"TCP connects to {transport.host_port(server, port)}, but no DNS answer arrived: {error}"
            raise CheckFailedError(text) from error


def _exactly(plain: socket.socket, size: int, deadline: Deadline) -> bytes:
    data = b""
    while len(data) < size:
        plain.settimeout(deadline.left())
        piece = plain.recv(size - len(data))
        if not piece:
            raise EOFError(f"the connection was closed after {len(data)} of {size} bytes")
        data += piece
    return data


def _judged(reply: Reply) -> Reply:
    """Accept answers and NXDOMAIN; raise an error for all other codes."""
    if reply.code not in (_NOERROR, _NXDOMAIN):
        raise RefusedError(f"the DNS server returned {reply.word}")
    return reply


Judge = Callable[[Reply], str]
"""Returns what is wrong with an answer, as in "4 of 12 queries answered NXDOMAIN"; "" if nothing."""


def any_answer(reply: Reply) -> str:
    return "" if reply.code in (_NOERROR, _NXDOMAIN) else f"answered {reply.word}"


def with_address(reply: Reply) -> str:
    """Require an address. A truncated answer has addresses that did not fit."""
    if reply.code != _NOERROR:
        return f"answered {reply.word}"
    return "" if reply.addresses or reply.truncated else "answered without an address"


class _Sampler:
    """Sends single queries with UDP all together: on a busy node, waiting for each answer would take long.

    Each has its own socket and port: a Service then selects an endpoint for each of them, and none gets the answer to
    another. Nothing is sent twice, so one lost packet is one lost query.
    """

    def __init__(self, server: str, port: int, question: Question, judge: Judge) -> None:
        self._place = (server, port)
        self._family = socket.AF_INET6 if ":" in server else socket.AF_INET
        self._question = question
        self._judge = judge
        self._poll = select.poll()
        self._pending: dict[int, tuple[socket.socket, int]] = {}
        self._found: list[str] = []

    def take(self, count: int, patience: float) -> list[str]:
        try:
            for _ in range(count):
                self._send()
            self._receive(time.monotonic() + patience)
            return [*self._found, *(sampling.LOST for _ in self._pending)]
        finally:
            for plain, _ in self._pending.values():
                plain.close()

    def _send(self) -> None:
        plain, number = socket.socket(self._family, socket.SOCK_DGRAM), int.from_bytes(os.urandom(2), "big")
        try:
            plain.settimeout(0)
            plain.connect(self._place)
            plain.send(encode(self._question, number))
        except OSError as error:
            plain.close()
            self._found.append(f"failed ({error.strerror})")
        else:
            self._pending[plain.fileno()] = plain, number
            self._poll.register(plain, select.POLLIN)

    def _receive(self, until: float) -> None:
        """Read at least once: what arrived while this process had no CPU is not lost."""
        while self._pending:
            left = until - time.monotonic()
            for descriptor, _ in self._poll.poll(max(0.0, left * 1000)):
                self._read(descriptor)
            if left <= 0:
                return

    def _read(self, descriptor: int) -> None:
        plain, number = self._pending[descriptor]
        try:
            fault = self._judge(decode(plain.recv(_LARGEST_ANSWER), self._question, number))
        except (MalformedError, BlockingIOError):
            return  # not the answer to this query, which can still arrive
        except OSError as error:
            fault = f"failed ({error.strerror})"
        self._found.append(fault)
        self._poll.unregister(plain)
        del self._pending[descriptor]
        plain.close()


def sample_by_udp(server: str, port: int, question: Question, judge: Judge = any_answer) -> sampling.Ask:
    return lambda count, patience: _Sampler(server, port, question, judge).take(count, patience)


def sample_by_tcp(server: str, port: int, question: Question, judge: Judge = any_answer) -> sampling.Ask:
    """For resolvers that use only TCP. A connection whose first packet is lost takes longer than a second."""

    def take(count: int, patience: float) -> list[str]:
        answers: list[str] = []
        deadline = Deadline(min(patience, _SECONDS_BEFORE_TCP_REPEATS))
        threads = [
            threading.Thread(target=lambda: answers.append(ask_once(deadline)), daemon=True) for _ in range(count)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return answers

    def ask_once(deadline: Deadline) -> str:
        try:
            return judge(ask_by_tcp(server, port, question, deadline))
        except (CheckFailedError, TimeoutError):
            return sampling.LOST

    return take
