"""The keys of streams, which a file of the performer keeps: a patch may be shown to everybody, and come from anybody.

Each line has the address of a server and the key for it. So a key goes to the server that it is for, whatever a patch
says, and a patch cannot name it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from weft.codes.rows import InternalError
from weft.disk import read_plain
from weft.outlets import OutletSpec
from weft.streams import SCHEMES, StreamAddress, StreamError, stream_address

# The most bytes of the file.
_MOST = 1 << 16

FORM = "a line has an address and its key, such as rtmp://live.example.com/app 1234-abcd"


class StreamKeysError(InternalError):
    """The file cannot be read, or a line of it is no key. The message does not have the line, which may be secret."""


class _StreamServer(NamedTuple):
    """What identifies a server in the file and in a patch, whatever parameters the patch adds."""

    scheme: str
    host: str
    port: int
    path: str

    @classmethod
    def of(cls, address: StreamAddress) -> _StreamServer:
        """The server of an address."""
        return cls(address.scheme, address.host, address.port, address.path)


@dataclass(frozen=True)
class StreamKeys:
    """Keys by their servers."""

    keys: Mapping[_StreamServer, str] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, path: Path) -> StreamKeys:
        """The keys in a file. Raises StreamKeysError, and OSError."""
        data = read_plain(path, _MOST + 1)
        if len(data) > _MOST:
            raise StreamKeysError(f"{path} is too large for keys of streams")
        keys: dict[_StreamServer, str] = {}
        number = 0
        try:
            for number, words in _lines(data.decode(errors="replace")):  # noqa: B007 (a message says it)
                if (server := _server(words)) in keys:
                    raise StreamError("this address has a key already", "each address has one")
                keys[server] = words[1]
        except StreamError as problem:
            raise StreamKeysError(f"{path}, line {number}: {problem.reason}; {problem.hint}") from None
        return cls(keys)

    def key(self, spec: OutletSpec, place: str) -> str:
        """The key for the place of an outlet; an empty text if there is none."""
        if not self.keys or spec.name not in SCHEMES:
            return ""
        return self.keys.get(_StreamServer.of(stream_address(spec.name, place)), "")


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """The words of the lines that have any and are no remarks, with the number of the line."""
    for number, line in enumerate(text.splitlines(), 1):
        if (words := line.split()) and not words[0].startswith("#"):
            yield number, words


def _server(words: list[str]) -> _StreamServer:
    """The server of a line. Raises StreamError, also if the key cannot be one of that server."""
    scheme, colon, rest = words[0].partition(":")
    if len(words) != 2 or not colon or scheme not in SCHEMES:
        raise StreamError("this is no address with a key", FORM)
    address = stream_address(scheme, rest)
    if address.said:
        raise StreamError("the address has parameters", "they belong into the patch, or to the key")
    address.with_key(words[1])
    return _StreamServer.of(address)
