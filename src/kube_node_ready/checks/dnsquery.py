"""Asking one DNS server one question, by UDP or TCP (RFC 1035). libc only ever asks the servers of resolv.conf."""

import os
import socket
import struct
import time
from contextlib import suppress

from kube_node_ready.checks import wire
from kube_node_ready.checks.model import CheckFailedError, Deadline
from kube_node_ready.checks.record import Record

PORT = 53
A, AAAA = 1, 28
_INTERNET = 1
_IS_RESPONSE, _IS_TRUNCATED, _RECURSION_DESIRED = 0x8000, 0x0200, 0x0100
_HEADER = struct.Struct("!6H")
_RECORD = struct.Struct("!HHIH")
_NOERROR, _NXDOMAIN = 0, 3
_CODES = {1: "FORMERR", 2: "SERVFAIL", 4: "NOTIMP", 5: "REFUSED"}
_POINTER = 0xC0
_MOST_POINTERS = 64
_ADDRESS_SIZE = {A: 4, AAAA: 16}
_FAMILY = {A: socket.AF_INET, AAAA: socket.AF_INET6}
_LARGEST_ANSWER = 65_535
_SECONDS_BETWEEN_TRIES = 1.0


class MalformedError(ValueError):
    """These bytes are no answer to our question."""


class Question(Record):
    name: str
    kind: int = A


class Reply(Record):
    code: int
    truncated: bool
    addresses: tuple[str, ...]


def encode(question: Question, number: int) -> bytes:
    labels = [label.encode("ascii") for label in question.name.rstrip(".").split(".")]
    name = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    return _HEADER.pack(number, _RECURSION_DESIRED, 1, 0, 0, 0) + name + struct.pack("!HH", question.kind, _INTERNET)


def decode(data: bytes, question: Question, number: int) -> Reply:
    """Whatever the bytes are, the outcome is a Reply or a MalformedError."""
    try:
        return _decode(data, question, number)
    except (struct.error, IndexError) as why:
        raise MalformedError("it ends too early") from why


def _decode(data: bytes, question: Question, number: int) -> Reply:
    found, flags, questions, answers, _, _ = _HEADER.unpack_from(data)
    if found != number or not flags & _IS_RESPONSE:
        raise MalformedError("it belongs to another question")
    code = flags & 0xF
    truncated = bool(flags & _IS_TRUNCATED)
    if questions != 1:
        raise MalformedError(f"it repeats {questions} questions")
    name, at = _name(data, _HEADER.size)
    kind, space = struct.unpack_from("!HH", data, at)
    if (name, kind, space) != (question.name.rstrip(".").lower(), question.kind, _INTERNET):
        raise MalformedError("it answers another question")
    return Reply(code, truncated, tuple(_addresses(data, at + 4, 0 if truncated else answers, question.kind)))


def _addresses(data: bytes, at: int, count: int, wanted: int) -> list[str]:
    found = []
    for _ in range(count):
        _, at = _name(data, at)
        kind, space, _, size = _RECORD.unpack_from(data, at)
        at += _RECORD.size
        content = data[at : at + size]
        if len(content) < size:
            raise MalformedError("a record ends too early")
        if (kind, space) == (wanted, _INTERNET) and wanted in _ADDRESS_SIZE:
            if size != _ADDRESS_SIZE[wanted]:
                raise MalformedError(f"an address has {size} bytes")
            found.append(socket.inet_ntop(_FAMILY[wanted], content))
        at += size
    return found


def _name(data: bytes, at: int) -> tuple[str, int]:
    """The name at this place, and where it ends. Pointers may lead in circles, so they are counted."""
    labels: list[str] = []
    end = None
    for _ in range(_MOST_POINTERS + 128):
        size = data[at]
        if size & _POINTER == _POINTER:
            if end is None:
                end = at + 2
            at = (size & ~_POINTER) << 8 | data[at + 1]
        elif size & _POINTER:
            raise MalformedError("a label of unknown kind")
        elif size:
            labels.append(data[at + 1 : at + 1 + size].decode("latin-1").lower())
            at += 1 + size
        else:
            return ".".join(labels), at + 1 if end is None else end
    raise MalformedError("a name without an end")


def ask(server: str, port: int, question: Question, deadline: Deadline) -> Reply:
    """By UDP, and again by TCP if the answer did not fit."""
    reply = ask_by_udp(server, port, question, deadline)
    return ask_by_tcp(server, port, question, deadline) if reply.truncated else reply


def ask_by_udp(server: str, port: int, question: Question, deadline: Deadline) -> Reply:
    """UDP loses packets in every network, so the question is repeated; what does not fit it is passed over.

    Under the same number: the answer of a slow server counts, whichever of them it is to.
    """
    odd, number = "", int.from_bytes(os.urandom(2), "big")
    with socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM) as plain:
        try:
            # Connected, so that the kernel drops what comes from elsewhere and tells us of a closed port.
            plain.connect((server, port))
            while True:
                plain.send(encode(question, number))
                until = time.monotonic() + min(_SECONDS_BETWEEN_TRIES, deadline.left())
                while (left := until - time.monotonic()) > 0:
                    plain.settimeout(left)
                    with suppress(TimeoutError):
                        try:
                            return _judged(decode(plain.recv(_LARGEST_ANSWER), question, number))
                        except MalformedError as why:
                            odd = f"; what came was no answer: {why}"
        except TimeoutError as why:
            text = f"no answer from {wire.joined(server, port)} by UDP within {deadline}{odd}"
            raise CheckFailedError(text) from why
        except OSError as why:
            raise CheckFailedError(f"no answer from {wire.joined(server, port)} by UDP: {why.strerror}") from why


def ask_by_tcp(server: str, port: int, question: Question, deadline: Deadline) -> Reply:
    number = int.from_bytes(os.urandom(2), "big")
    query = encode(question, number)
    with wire.connect(server, port, deadline) as plain:
        try:
            plain.sendall(struct.pack("!H", len(query)) + query)
            (size,) = struct.unpack("!H", _exactly(plain, 2, deadline))
            return _judged(decode(_exactly(plain, size, deadline), question, number))
        except TimeoutError as why:
            text = f"TCP connects to {wire.joined(server, port)}, but no DNS answer came within {deadline}"
            raise CheckFailedError(text) from why
        except (OSError, EOFError, MalformedError) as why:
            text = f"TCP connects to {wire.joined(server, port)}, but no DNS answer came: {why}"
            raise CheckFailedError(text) from why


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
    """That a name does not exist is an answer; that the server cannot or will not say is none."""
    if reply.code not in (_NOERROR, _NXDOMAIN):
        raise CheckFailedError(f"the DNS server answers {_CODES.get(reply.code, f'code {reply.code}')}")
    return reply
