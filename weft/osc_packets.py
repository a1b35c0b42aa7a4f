"""Open Sound Control 1.0: addresses, and messages and bundles as bytes.

The format is that of https://opensoundcontrol.stanford.edu/spec-1_0.html. A reader of packets from the network takes
only a few microseconds for a message, and no packet makes it recurse or ask for memory.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from weft.codes.rows import InternalError

MOST_ARGUMENTS: Final = 64
"""The arguments of a message that are read; further ones are left out."""

LONGEST_ADDRESS: Final = 255

_PART = r"[^\s\x00-\x20\x7f#*,/?\[\]{}]+"
_ADDRESS = re.compile(rf"(/{_PART})+")

Argument: TypeAlias = float | str | None
"""A number, a text, or an argument of another type, which has no value here."""


class ReceivedMessage(NamedTuple):
    """A message: its address, and the first `MOST_ARGUMENTS` of its arguments."""

    address: str
    arguments: tuple[Argument, ...]


class MalformedPacketError(InternalError, ValueError):
    """Bytes that are neither a message nor a bundle."""


def is_address(text: str) -> bool:
    """Whether a message can have this address."""
    return len(text) <= LONGEST_ADDRESS and _ADDRESS.fullmatch(text) is not None


# --- writing ---


def message(address: str, numbers: Sequence[float]) -> bytes:
    """A message of numbers in single precision, which must be within its range."""
    tags = "," + "f" * len(numbers)
    return _padded(address) + _padded(tags) + struct.pack(f">{len(numbers)}f", *numbers)


def _padded(text: str) -> bytes:
    data = text.encode()
    return data + bytes(4 - len(data) % 4)


# --- reading ---

_BUNDLE = b"#bundle\0"

# The bytes of a bundle before its first element: the word above, and the time tag.
_HEAD = 16

_LENGTH = Struct(">i")
_TAG = Struct(">II")

# Seconds from 1900, where time tags begin, to 1970; and those after which they begin again.
_EPOCH = 2_208_988_800
_ERA = 1 << 32


class OscElement(NamedTuple):
    """A message in a packet: its place, and the time of day at which it is due, in seconds since 1970; 0: at once."""

    due: float
    start: int
    end: int


def elements(packet: bytes) -> Iterator[OscElement]:
    """The messages of a packet, in their order. Raises MalformedPacketError at the first place that cannot be read."""
    if packet[:8] != _BUNDLE:
        yield OscElement(0.0, 0, len(packet))
        return
    # The bundles around the place that is read: the end of each, and when it is due.
    around: list[tuple[int, float]] = []
    at, end = 0, len(packet)
    while True:
        if packet[at : at + 8] == _BUNDLE:
            if end - at < _HEAD:
                raise MalformedPacketError("a bundle without a time tag")
            around.append((end, time_of(*_TAG.unpack_from(packet, at + 8))))
            at += _HEAD
        else:
            yield OscElement(around[-1][1], at, end)
            at = end
        while around and at >= around[-1][0]:
            around.pop()
        if not around:
            return
        if at + 4 > around[-1][0]:
            raise MalformedPacketError("a bundle that ends within a length")
        (length,) = _LENGTH.unpack_from(packet, at)
        at += 4
        end = at + length
        if length <= 0 or end > around[-1][0]:
            raise MalformedPacketError("an element that does not fit into its bundle")


def time_of(seconds: int, fraction: int) -> float:
    """The time of day of a time tag, in seconds since 1970; 0 for the tag that means at once. Tags with the first bit 0
    are from 2036 on (RFC 4330, section 3)."""
    if seconds == 0:
        return 0.0
    era = 0 if seconds >> 31 else _ERA
    return era + seconds - _EPOCH + fraction / (1 << 32)


def read_message(packet: bytes, start: int = 0, end: int | None = None) -> ReceivedMessage:
    """The message at a place in a packet. Raises MalformedPacketError."""
    end = len(packet) if end is None else end
    try:
        address, at = _text(packet, start, start, end)
        if not address.startswith("/") or len(address) > LONGEST_ADDRESS:
            raise MalformedPacketError("a message without an address")
        if at >= end:
            return ReceivedMessage(address, ())  # old senders leave out empty type tags
        stop = packet.index(b"\0", at, end)
        tags = packet[at:stop]
        at = start + (stop - start + 4 & ~3)
        fixed = _fixed(tags) if len(tags) <= MOST_ARGUMENTS else None
        if fixed is None:
            return ReceivedMessage(address, tuple(_arguments(packet, tags, start, at, end)))
        if at + fixed.size > end:
            raise MalformedPacketError("a message that ends within an argument")
        return ReceivedMessage(address, tuple(map(float, fixed.unpack_from(packet, at))))
    except MalformedPacketError:
        raise
    except UnicodeDecodeError as failure:
        raise MalformedPacketError("a text that is not UTF-8") from failure
    except struct.error as failure:
        raise MalformedPacketError("a message that ends within an argument") from failure
    except ValueError as failure:
        raise MalformedPacketError("a text without an end") from failure


_NUMBERS: Final = {"i": "i", "f": "f", "d": "d", "h": "q"}
_STRUCTS: Final = {tag: Struct(f">{form}") for tag, form in _NUMBERS.items()}


@lru_cache(maxsize=256)
def _fixed(tags: bytes) -> Struct | None:
    """The layout of arguments that are all numbers; None for others."""
    text = tags.decode("latin-1")
    if text[:1] != "," or not set(text[1:]) <= _NUMBERS.keys():
        return None
    return Struct(">" + "".join(_NUMBERS[tag] for tag in text[1:]))


def _text(packet: bytes, start: int, at: int, end: int) -> tuple[str, int]:
    """The text at a place, and its end, at a multiple of 4 bytes from the start of the message."""
    stop = packet.index(b"\0", at, end)
    return packet[at:stop].decode(), start + (stop - start + 4 & ~3)


def _arguments(packet: bytes, tags: bytes, start: int, at: int, end: int) -> Iterator[Argument]:
    """The arguments at a place, of any type. Those of an array count one by one, and an impulse is not counted."""
    if tags[:1] != b",":
        raise MalformedPacketError("a message without type tags")
    for tag in tags[1 : MOST_ARGUMENTS + 1].decode("latin-1"):
        size = 0
        match tag:
            case "[" | "]" | "I":
                continue
            case "T" | "F":
                yield float(tag == "T")
            case "i" | "f" | "d" | "h":
                yield float(_STRUCTS[tag].unpack_from(packet, at)[0])
                size = _STRUCTS[tag].size
            case "s" | "S":
                text, after = _text(packet, start, at, end)
                yield text
                size = after - at
            case "b":
                (length,) = _LENGTH.unpack_from(packet, at)
                if length < 0:
                    raise MalformedPacketError("a blob of negative length")
                yield None
                size = 4 + (length + 3 & ~3)
            case "N":
                yield None
            case "c" | "r" | "m":
                yield None
                size = 4
            case "t":
                yield None
                size = 8
            case _:
                raise MalformedPacketError(f'an argument of the unknown type "{tag}"')
        at += size
        if at > end:
            raise MalformedPacketError("a message that ends within an argument")
