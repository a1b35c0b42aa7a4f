"""Performances that play now, and what editors and other programs of the same user say to them.

A performance listens at a socket in a folder that is this user's alone (docs/interfaces.md, "The link to a
performance"). Both sides send lines, each of which is a JSON object. Begin with `running`.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from weft import __version__
from weft.codes.rows import InternalError
from weft.disk import make_private
from weft.platform import system
from weft.platform.link_secret import LinkSecret

PROTOCOL: Final = 1
"""The version of what is said. It grows when a field gets another meaning, not when one is added."""

REQUESTS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({
    "text": ("text",),
    "turn": ("numbers", "text"),
    "set": ("name", "value"),
    "want": ("kinds",),
    "cursor": ("file", "line", "edited"),
})  # fmt: skip
"""What an editor may ask for, by its `do`, and the fields that this takes besides `id`."""

NOTICES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({
    "hello": ("protocol", "weft", "process", "file"),
    "answer": ("id", "ok", "problem", "hash", "diagnostics", "left_out"),
    "playing": ("file", "hash", "text"),
    "values": ("time", "paused", "parameters", "numbers", "level"),
    "costs": ("draw_ms", "budget_ms", "fps", "load"),
})  # fmt: skip
"""What a performance says, by its `event`, and the fields of this."""

WANTED: Final = ("playing", "values", "costs", "events")
"""The kinds that `want` takes."""

LONGEST: Final = 4_000_000
"""The most bytes of a line: the longest text fits in, however it is written in JSON."""

_PIECE = 1 << 16
# Seconds that a performance may take to say hello. It has a thread for that.
_HELLO = 1.0

_NAME = re.compile(r"([0-9]+)-[0-9a-f]{8}\.socket")


class UnreachableError(InternalError):
    """Performances cannot be reached, or one is gone. The message is the reason."""


# --- where they are -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ListeningSocket:
    """The socket of a performance, its path, which no other has, and what is said there first."""

    socket: socket.socket
    path: Path
    secret: LinkSecret

    @classmethod
    def open(cls) -> ListeningSocket:
        """Raises UnreachableError."""
        folder = system.runtime_home()
        path = folder / f"{os.getpid()}-{secrets.token_hex(4)}.socket"
        try:
            make_private(folder)
            made, secret = system.listening(path)
        except OSError as failure:
            raise UnreachableError(failure.strerror or str(failure)) from failure
        return cls(made, path, secret)

    def close(self) -> None:
        """Ends it. May be called twice."""
        self.socket.close()
        with suppress(OSError):
            self.path.unlink()


@dataclass(frozen=True)
class FoundPerformance:
    """A performance that was found: where it listens, the number of its process, and what it has said first. `file` is
    the absolute path of the patch that plays; None if it reads its texts from a pipe."""

    path: Path
    process: int
    file: str | None = None
    protocol: int | None = None
    """None if it does not answer."""
    version: str = ""

    @property
    def problem(self) -> str | None:
        """Why nothing can be said to it."""
        if self.protocol is None:
            return f"the performance with process {self.process} does not answer"
        if self.protocol != PROTOCOL:
            other = f"weft {self.version} speaks version {self.protocol} of the link, and this is {PROTOCOL}"
            return f"the performance with process {self.process} is left alone: {other} (weft {__version__})"
        return None

    @property
    def shown(self) -> str:
        """For people: the patch, and the process."""
        return f"{self.file or 'a patch from a pipe'} (process {self.process})"


def running() -> list[FoundPerformance]:
    """The performances of this user, in the order of their processes. The sockets of those that are gone are removed.
    Raises UnreachableError if they are not to be trusted."""
    return sorted(_looked_at(sockets()), key=lambda found: found.process)


def sockets() -> list[Path]:
    """The sockets of performances, some of which may be gone. Raises UnreachableError."""
    folder = system.runtime_home()
    try:
        found = folder.lstat()
        names = os.listdir(folder)
    except OSError:
        return []
    if not stat.S_ISDIR(found.st_mode) or not system.is_own(found) or not system.is_closed(found):
        raise UnreachableError(f"others can write in {folder}")
    return [folder / name for name in sorted(names) if _NAME.fullmatch(name)]


def remove_left_over() -> None:
    """Removes the sockets of performances that were killed."""
    with suppress(UnreachableError):
        for path in sockets():
            if system.is_left_over(path):
                with suppress(OSError):
                    path.unlink()


def _looked_at(paths: list[Path]) -> Iterator[FoundPerformance]:
    for path in paths:
        process = int(path.name.partition("-")[0])
        try:
            with PerformanceLink.open(path) as link:
                yield link.performance
        except ConnectionRefusedError:
            with suppress(OSError):
                path.unlink()  # its process has died
        except FileNotFoundError:
            continue
        except OSError:
            yield FoundPerformance(path, process)


def fits(file: str, found: FoundPerformance) -> bool:
    """Whether a performance plays this file."""
    return found.file is not None and os.path.realpath(file) == os.path.realpath(found.file)


# --- what is said ---------------------------------------------------------------------------------------------------


def line_of(message: Mapping[str, object]) -> bytes:
    """A message as a line."""
    return json.dumps(message).encode() + b"\n"


def hello_of(line: bytes, path: Path) -> FoundPerformance:
    """What a performance has said first. Raises OSError if it is no hello."""
    process = int(path.name.partition("-")[0])
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        said = None
    match said:
        case {"event": "hello", "protocol": int() as protocol}:
            file, version = said.get("file"), said.get("weft")
            return FoundPerformance(path, process, file if isinstance(file, str) else None, protocol, str(version))
    raise OSError(0, "it does not speak as a performance does")


def connection(path: Path) -> socket.socket:
    """A connection to a performance, which says hello next. Raises OSError: ConnectionRefusedError if the process of
    the socket is gone."""
    return system.connected(path, _HELLO)


class PerformanceLink:
    """A connection to a performance, for one thread."""

    def __init__(self, made: socket.socket, path: Path) -> None:
        """Waits for the hello. Raises OSError, also if none comes."""
        self._socket = made
        self._received = bytearray()
        self.performance = hello_of(self._line(time.monotonic() + _HELLO), path)

    @classmethod
    def open(cls, path: Path) -> PerformanceLink:
        """Raises OSError: ConnectionRefusedError if the process of the socket is gone."""
        made = connection(path)
        try:
            return cls(made, path)
        except BaseException:
            made.close()
            raise

    def __enter__(self) -> PerformanceLink:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def say(self, do: str, **fields: object) -> None:
        """Sends a request. Raises OSError."""
        self._socket.settimeout(_HELLO)
        self._socket.sendall(line_of({"do": do, **fields}))

    def hear(self, seconds: float) -> dict[str, Any] | None:
        """What the performance says next, within some seconds; None if it says nothing. Raises OSError when it is
        gone."""
        try:
            found = json.loads(self._line(time.monotonic() + seconds))
        except TimeoutError:
            return None
        except (ValueError, RecursionError):
            raise OSError(0, "it says what cannot be read") from None
        return found if isinstance(found, dict) else {}

    def _line(self, deadline: float) -> bytes:
        """The next line. Raises TimeoutError, and OSError when the other side is gone."""
        while (end := self._received.find(b"\n")) < 0:
            if len(self._received) > LONGEST:
                raise OSError(0, "it says too much at once")
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._socket.settimeout(left)
            piece = self._socket.recv(_PIECE)
            if not piece:
                raise ConnectionResetError(0, "it has ended")
            self._received += piece
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return line
