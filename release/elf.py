"""Read ELF files of both architectures, which the machine's own `ldd` and `strip` do not support.

Files are read by their program headers, like the loader: they list the segments, and everything after the
last one (symbols, debug information, the section table) is never loaded. The dynamic segment lists offsets into
a string table, whose address is translated into a file offset. Both supported architectures are 64-bit and
little-endian.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

_MAGIC = b"\x7fELF\x02\x01"
_HEADER = 64
_LOAD, _DYNAMIC, _INTERPRETER = 1, 2, 3
_END, _NEEDED, _STRINGS = 0, 1, 5


class _Segment(NamedTuple):
    kind: int
    flags: int
    offset: int
    address: int
    physical: int
    size: int
    memory: int
    alignment: int


def is_elf(content: bytes) -> bool:
    return content.startswith(_MAGIC)


def needed(content: bytes) -> list[str]:
    """Return the names of the needed libraries, and of the loader if there is one: `libc.so.6`, `/lib64/ld-linux…`."""
    segments = list(_segments(content))
    names = [_text(content, segment.offset) for segment in segments if segment.kind == _INTERPRETER]
    for segment in segments:
        if segment.kind == _DYNAMIC:
            entries = list(_entries(content[segment.offset : segment.offset + segment.size]))
            strings = next(_place(segments, value) for tag, value in entries if tag == _STRINGS)
            names += [_text(content, strings + value) for tag, value in entries if tag == _NEEDED]
    return names


def stripped(content: bytes) -> bytes:
    """Return the loaded part of the file. Wheels often contain several times as much for debuggers."""
    end = max(segment.offset + segment.size for segment in _segments(content))
    header = bytearray(content[:_HEADER])
    header[40:48] = bytes(8)  # the offset of the section table
    header[60:64] = bytes(4)  # the number of sections, and the index of the one with their names
    return bytes(header) + content[_HEADER:end]


def _segments(content: bytes) -> Iterator[_Segment]:
    (table,) = struct.unpack_from("<Q", content, 32)
    size, count = struct.unpack_from("<HH", content, 54)
    for number in range(count):
        yield _Segment._make(struct.unpack_from("<IIQQQQQQ", content, table + number * size))


def _entries(dynamic: bytes) -> Iterator[tuple[int, int]]:
    for tag, value in struct.iter_unpack("<QQ", dynamic):
        if tag == _END:
            return
        yield tag, value


def _place(segments: list[_Segment], address: int) -> int:
    return next(
        segment.offset + address - segment.address
        for segment in segments
        if segment.kind == _LOAD and segment.address <= address < segment.address + segment.size
    )


def _text(content: bytes, start: int) -> str:
    return content[start : content.index(b"\0", start)].decode()
