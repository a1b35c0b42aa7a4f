"""The table of outlets: what `to:` names that is no window, such as `pipe:beam` or `http:8080`.

What follows the word is a text of a patch, which a stranger may have written. A row reads it, and makes a place of the
values that it has read; only that reaches files, sockets and libraries.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from weft.cameras import is_device
from weft.codes.rows import InternalError
from weft.hosts import HostError, host_of, is_loopback
from weft.packages import add_rows
from weft.streams import SCHEMES, StreamError, stream_address

Reaches: TypeAlias = Literal["file", "machine", "network"]
"""What a place is: a file below the folder of the patch, something else of this machine, or of the network, which the
performer has to allow."""


class OutletError(InternalError):
    """A text names no place for pictures, or a place takes none. `code` is that of the error in a text."""

    def __init__(self, reason: str, hint: str | None = None, code: str = "outlet-address") -> None:
        super().__init__(reason if hint is None else f"{reason} ({hint})")
        self.reason = reason
        self.hint = hint
        self.code = code


class OutletPlace(NamedTuple):
    """Where pictures go: a text that weft has made, and what it reaches."""

    text: str
    reaches: Reaches
    shown: str | None = None
    """How messages call it, if what the patch says has words that others should not see."""


@dataclass(frozen=True, slots=True)
class OutletSpec:
    """One kind of outlet: the word before the colon, and what reads the text after it, which raises OutletError."""

    name: str
    doc: str
    example: str
    read: Callable[[str], OutletPlace]
    is_even: bool = False
    """Whether it gets pictures of even width and height, as encoders need them."""
    has_sound: bool = False
    """Whether it gets the sound as well."""
    is_encoded: bool = False
    """Whether it needs PyAV."""


# --- hosts and ports --------------------------------------------------------------------------------------------------

LOOPBACK: Final = "127.0.0.1"

_HOST_AND_PORT = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[^\[\]:/?#@\s]{1,253}):(\d{1,5})", re.ASCII)
_PORT = re.compile(r"\d{1,5}", re.ASCII)

LEAST_PORT, MOST_PORT = 1024, 65535
"""The ports that weft may listen at. Those below are of the system."""


def host_and_port(text: str) -> tuple[str, int]:
    """The host and the port in a text such as `192.168.0.5:8080`. Raises OutletError."""
    match = _HOST_AND_PORT.fullmatch(text)
    if match is None:
        raise OutletError("a host and a port are missing", "such as 127.0.0.1:9000")
    try:
        return host_of(match[1]), int(match[2])
    except HostError as problem:
        raise OutletError(problem.reason, problem.hint) from None


# --- what the rows read -----------------------------------------------------------------------------------------------


def _pipe(text: str) -> OutletPlace:
    return OutletPlace(text, "file")


def _camera(text: str) -> OutletPlace:
    if not is_device(text):
        words = "a loopback camera is at /dev/video0, /dev/video1 and so on"
        raise OutletError(f'"{text}" is no camera', words, "unknown-camera")
    return OutletPlace(text, "machine")


def _page(text: str) -> OutletPlace:
    """The host is an address of this machine: a name could mean another one with each look-up."""
    if _PORT.fullmatch(text):
        host, port = LOOPBACK, int(text)
    else:
        if _HOST_AND_PORT.fullmatch(text) is None:
            raise OutletError("this is no port", "http:8080 is for this machine, http:0.0.0.0:8080 for all")
        host, port = host_and_port(text)
        if host == "localhost":
            host = LOOPBACK
        elif re.fullmatch(r"[\d.]+|\[.+\]", host) is None:
            raise OutletError(f"{host} is no address of this machine", "such as http:0.0.0.0:8080, for all that it has")
    if not LEAST_PORT <= port <= MOST_PORT:
        raise OutletError(f"{port} is no port for this", f"from {LEAST_PORT} to {MOST_PORT}, such as http:8080")
    return OutletPlace(f"{host}:{port}", "machine" if is_loopback(host) else "network")


_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._-]{0,62}[A-Za-z0-9])?", re.ASCII)


def _texture(kind: str) -> Callable[[str], OutletPlace]:
    """Reads the name by which programs of this machine find textures."""

    def read(text: str) -> OutletPlace:
        if _NAME.fullmatch(text) is None:
            words = "up to 64 letters, digits and . _ - with spaces between them"
            raise OutletError("this is no name for other programs", f"{words}, such as {kind}:weft")
        return OutletPlace(text, "machine")

    return read


def _stream(scheme: str) -> Callable[[str], OutletPlace]:
    def read(text: str) -> OutletPlace:
        try:
            address = stream_address(scheme, text)
        except StreamError as problem:
            raise OutletError(problem.reason, problem.hint) from None
        return OutletPlace(address.text, "network", address.shown)

    return read


_ROWS = (
    OutletSpec("pipe", "a named pipe, as y4m", "pipe:beam", _pipe, is_even=True, is_encoded=True),
    OutletSpec("v4l2", "a loopback camera of Linux", "v4l2:/dev/video2", _camera, is_even=True, is_encoded=True),
    OutletSpec("http", "a page for browsers, and for the browser source of mixers", "http:8080", _page),
    OutletSpec("spout", "a texture that other programs on Windows open", "spout:weft", _texture("spout")),
    OutletSpec("syphon", "a texture that other programs on a Mac open", "syphon:weft", _texture("syphon")),
    *(
        OutletSpec(
            scheme, "a stream with sound", row.example, _stream(scheme), is_even=True, has_sound=True, is_encoded=True
        )
        for scheme, row in SCHEMES.items()
    ),
)  # fmt: skip

_TABLE = {row.name: row for row in _ROWS}

OUTLETS: Mapping[str, OutletSpec] = MappingProxyType(_TABLE)
"""All outlets by their words: those of weft, and those of packages once `load_outlets` has found them."""

_OPENERS: dict[str, Any] = {}

OUTLET_CLASSES: Mapping[str, Any] = MappingProxyType(_OPENERS)
"""The classes of the outlets of packages, by their words: each is a `weft.runtime.films.outlet.PictureOutlet` with a
`spec`."""


class NamedOutlet(NamedTuple):
    """An outlet that `to:` names: its row, and the text after the colon, as the patch has it."""

    spec: OutletSpec
    text: str

    @property
    def place(self) -> OutletPlace:
        """Where it is. Raises OutletError."""
        return self.spec.read(self.text)


def outlet_of(target: str) -> NamedOutlet | None:
    """The outlet that a target names, such as `pipe:beam.y4m`; None for the name of a window."""
    word, colon, text = target.partition(":")
    return NamedOutlet(OUTLETS[word], text) if colon and word in OUTLETS else None


def order_of_target(target: str) -> int:
    """A key for the order of pictures: the first window shows that with the lowest number, of several the first."""
    return 2 if outlet_of(target) else 1 if target else 0


@cache
def load_outlets() -> tuple[str, ...]:
    """Adds the outlets of packages to the table. Returns the problems of those that cannot be loaded."""
    return add_rows("outlet", _TABLE, _OPENERS, lambda name, found: replace(found.spec, name=name))
