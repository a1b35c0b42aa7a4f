"""The addresses of streams that `to:` may name: a text of a patch is read piece by piece, and weft writes the address
and the options that FFmpeg gets of what it has read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, NamedTuple

from weft.codes.rows import InternalError
from weft.hosts import HostError, host_of

LEAST_BITRATE, MOST_BITRATE = 100, 100_000
"""Thousands of bits a second of the picture."""


class StreamError(InternalError):
    """A text is no address of a stream. `hint` says what would be one."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


class _WholeNumber(NamedTuple):
    """A whole number between bounds; FFmpeg gets it multiplied by `factor`."""

    least: int
    most: int
    factor: int = 1

    def read(self, text: str) -> str | None:
        if re.fullmatch(r"\d{1,6}", text, re.ASCII) is None or not self.least <= int(text) <= self.most:
            return None
        return str(int(text) * self.factor)

    @property
    def words(self) -> str:
        return f"a whole number from {self.least} to {self.most}"


class _PlainText(NamedTuple):
    """A text of plain characters that mean nothing in an address."""

    least: int
    most: int

    def read(self, text: str) -> str | None:
        plain = re.fullmatch(r"[A-Za-z0-9._~\-]*", text, re.ASCII) is not None
        return text if plain and self.least <= len(text) <= self.most else None

    @property
    def words(self) -> str:
        return f"{self.least} to {self.most} letters, digits and . _ ~ -"


class _OneOf(NamedTuple):
    """One of a few words."""

    among: tuple[str, ...]

    def read(self, text: str) -> str | None:
        return text if text in self.among else None

    @property
    def words(self) -> str:
        return "one of " + ", ".join(self.among)


_Parameter = _WholeNumber | _PlainText | _OneOf

_BITRATE: Mapping[str, _Parameter] = {"bitrate": _WholeNumber(LEAST_BITRATE, MOST_BITRATE)}


@dataclass(frozen=True)
class StreamScheme:
    """A protocol: FFmpeg's container for it, what an address may say, and further settings for FFmpeg."""

    muxer: str
    example: str
    parameters: Mapping[str, _Parameter] = field(default_factory=dict)
    """What may follow the question mark, besides `bitrate`."""
    fixed: Mapping[str, str] = field(default_factory=dict)
    port: int | None = None
    """The port if an address has none; None: it has to have one."""
    has_path: bool = False
    is_locked: bool = False
    """Whether some of the parameters are secret."""


_DATAGRAMS = {"pkt_size": "1316"}
_HOPS = {"ttl": _WholeNumber(1, 255)}

SCHEMES: Final[Mapping[str, StreamScheme]] = MappingProxyType({
    "srt": StreamScheme(
        "mpegts", "srt://192.168.0.5:9000", {
            "mode": _OneOf(("caller", "listener")), "latency": _WholeNumber(20, 8000, factor=1000),
            "passphrase": _PlainText(10, 79), "pbkeylen": _OneOf(("16", "24", "32")), "streamid": _PlainText(1, 256),
        }, {"pkt_size": "1316", "connect_timeout": "3000", "transtype": "live"}, is_locked=True,
    ),
    "rtmp": StreamScheme("flv", "rtmp://live.example.com/app/key", port=1935, has_path=True),
    "rtmps": StreamScheme("flv", "rtmps://live.example.com/app/key", port=443, has_path=True),
    "udp": StreamScheme("mpegts", "udp://192.168.0.5:9000", _HOPS, _DATAGRAMS),
    "rtp": StreamScheme("rtp_mpegts", "rtp://192.168.0.5:9000", _HOPS, _DATAGRAMS),
})  # fmt: skip
"""The protocols of streams that weft sends, by the words before `://`."""

_ADDRESS = re.compile(
    r"//(\[[0-9A-Fa-f:.]{2,45}\]|[^\[\]:/?#@]{1,253})(?::(\d{1,5}))?(/[^?#]*)?(?:\?([^#]*))?", re.ASCII
)
# What no server reads as the end of a key.
_KEY = re.compile(r"[!-~]{1,512}", re.ASCII)
_PATH = re.compile(r"(?:/[A-Za-z0-9_~\-][A-Za-z0-9._~\-]{0,255}){1,6}", re.ASCII)


@dataclass(frozen=True)
class StreamAddress:
    """An address, as weft has read it."""

    scheme: str
    host: str
    port: int
    path: str
    said: Mapping[str, str]
    """The parameters, as the text has them."""

    @property
    def text(self) -> str:
        """It as a text that reads the same again, without the scheme."""
        query = "&".join(f"{name}={value}" for name, value in self.said.items())
        return f"//{self.host}:{self.port}{self.path}" + (f"?{query}" if query else "")

    @property
    def shown(self) -> str:
        """It without what others should not see: keys and passwords."""
        return f"{self.scheme}://{self.host}:{self.port}"

    @property
    def bitrate(self) -> int | None:
        """Bits of the picture a second, if the text says so."""
        return int(self.said["bitrate"]) * 1000 if "bitrate" in self.said else None

    @property
    def listens(self) -> bool:
        """Whether the receivers come to weft."""
        return self.said.get("mode") == "listener"

    def with_key(self, key: str) -> StreamAddress:
        """It with the key of the performer: the last part of a path, or parameters such as `passphrase=…`. Raises
        StreamError, which does not say the key."""
        row = SCHEMES[self.scheme]
        if row.has_path:
            if _KEY.fullmatch(key) is None:
                raise StreamError("this is no key", "a key has letters, digits and signs of ASCII, and no space")
            return replace(self, path=f"{self.path}/{key}")
        if not row.is_locked:
            raise StreamError(f"{self.scheme} has no keys", "rtmp, rtmps and srt have some")
        try:
            added = _parameters(self.scheme, row, key)
        except StreamError:
            words = "such as passphrase=…&streamid=…, of letters, digits and . _ ~ -"
            raise StreamError("this is no key", words) from None
        return replace(self, said={**self.said, **added})

    @property
    def url(self) -> str:
        """The address for FFmpeg."""
        scheme = SCHEMES[self.scheme]
        options = dict(scheme.fixed)
        for name, value in self.said.items():
            if name in scheme.parameters and (read := scheme.parameters[name].read(value)) is not None:
                options[name] = read
        query = "&".join(f"{name}={value}" for name, value in options.items())
        return f"{self.scheme}://{self.host}:{self.port}{self.path}" + (f"?{query}" if query else "")


def stream_address(scheme: str, text: str) -> StreamAddress:
    """The address in a text, after the scheme and its colon. Raises StreamError."""
    row = SCHEMES[scheme]
    example = f"such as {row.example}"
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise StreamError(f"this is no address of {scheme}", example)
    host, port, path, query = match.groups()
    try:
        host = host_of(host)
    except HostError as problem:
        raise StreamError(problem.reason, problem.hint) from None
    if port is None and row.port is None:
        raise StreamError("a port is missing", example)
    number = int(port) if port is not None else row.port or 0
    if not 1 <= number <= 65535:
        raise StreamError(f"{number} is no port", "a port is a number from 1 to 65535")
    if path and not row.has_path:
        raise StreamError("an address of this kind has no path", example)
    if row.has_path and (not path or _PATH.fullmatch(path) is None):
        raise StreamError("a path of letters, digits and . _ ~ - is missing", example)
    return StreamAddress(scheme, host, number, path or "", _parameters(scheme, row, query))


def _parameters(scheme: str, row: StreamScheme, query: str | None) -> dict[str, str]:
    known = {**_BITRATE, **row.parameters}
    found: dict[str, str] = {}
    for part in query.split("&") if query else ():
        name, _, value = part.partition("=")
        if name not in known or name in found:
            words = "is said twice" if name in found else f"is nothing that {scheme} has here"
            raise StreamError(f'"{name}" {words}', f"it has {', '.join(known)}")
        if known[name].read(value) is None:
            raise StreamError(f"{name}={value} does not fit", f"{name} is {known[name].words}")
        found[name] = value
    return found
