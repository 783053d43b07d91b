"""Write structured log lines: JSON, or `12:00:01 INFO  DNS check passed  domain=… duration=0.123s` for terminals.

Standard library only and cheap to import, since the worker starts with it on every new node.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

LEVELS = ("debug", "info", "warn", "error")
FORMATS = ("json", "console")


class _Sink:
    """Output, format and level of the process's log."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.threshold = LEVELS.index("info")
        self.format = "json"
        self.stream: TextIO | None = None


_sink = _Sink()


def configure(level: str = "info", format: str = "json", stream: TextIO | None = None) -> None:  # noqa: A002  its name in the settings
    """Without a stream, lines go to the current `sys.stdout`."""
    if level not in LEVELS:
        raise ValueError(f"log level: {level!r} is invalid; expected one of {', '.join(LEVELS)}")
    if format not in FORMATS:
        raise ValueError(f"log format: {format!r} is invalid; expected one of {', '.join(FORMATS)}")
    _sink.threshold, _sink.format, _sink.stream = LEVELS.index(level), format, stream


def enabled(level: str) -> bool:
    return LEVELS.index(level) >= _sink.threshold


def log(msg: str, *, level: str = "info", **fields: object) -> None:
    """Write a line with constant text and variable fields: `log("Node verified", node=name, attempt=2)`."""
    if not enabled(level):
        return
    now = time.gmtime()
    line = (_json if _sink.format == "json" else _console)(now, level, msg, fields)
    # The reader of the log might have exited, which must not stop the process.
    with _sink.lock, contextlib.suppress(OSError, ValueError):
        stream = _sink.stream or sys.stdout
        stream.write(line + "\n")
        stream.flush()


def _json(now: time.struct_time, level: str, msg: str, fields: dict[str, object]) -> str:
    head = {"level": level, "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", now), "msg": msg}
    # A field must not replace the level, time or text of the line.
    renamed = {f"field_{key}" if key in head else key: value for key, value in fields.items()}
    return json.dumps(head | renamed, default=str, separators=(",", ":"))


def _console(now: time.struct_time, level: str, msg: str, fields: dict[str, object]) -> str:
    head = f"{time.strftime('%H:%M:%S', now)} {level.upper():<5} {msg}"
    return "  ".join([head, " ".join(f"{key}={_plain(value)}" for key, value in fields.items())]).rstrip()


def _plain(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_plain, value)) + "]"
    text = str(value)
    is_one_word = text.isprintable() and not set(text) & set(' "=')
    return text if is_one_word and text else json.dumps(text)
