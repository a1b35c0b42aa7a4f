"""The packets of light networks: E1.31 (streaming ACN) and Art-Net 4.

ANSI E1.31-2018 is sACN; its tables 4-1 to 8-10 give the offsets below. Art-Net is by Artistic Licence; "Art-Net 4
Protocol Release", ArtDmx. Both carry a universe: 512 levels of a byte each, which is what DMX512 carries.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

CHANNELS = 512
"""The channels of a universe."""

SACN_PORT, ARTNET_PORT = 5568, 6454

SACN_UNIVERSES, ARTNET_UNIVERSES = range(1, 64000), range(1 << 15)
"""The universes that the standards know. Those of Art-Net are its port-addresses."""

DISCOVERY_UNIVERSE = 64214
"""Where sources of sACN say which universes they send."""

_IDENTIFIER = b"ASC-E1.17\0\0\0"
_ROOT_DATA, _ROOT_EXTENDED = 4, 8
_DATA, _DISCOVERY, _UNIVERSE_LIST = 2, 2, 1
_SET_PROPERTY, _ADDRESSING = 2, 0xA1
_PRIORITY = 100
_TERMINATED = 1 << 6

# Preamble and postamble, the identifier of ACN, flags and length, the vector, and the sender's CID.
_ROOT = struct.Struct(">HH12sHI16s")
# Flags and length, the vector, the sender's name, priority, a synchronisation, a number, options, and the universe.
_FRAMING = struct.Struct(">HI64sBHBBH")
# Flags and length, the vector, kinds of address and data, the first address, its increment, a count, a start code.
_DMP = struct.Struct(">HBBHHHB")
_DISCOVERY_FRAMING = struct.Struct(">HI64sI")
_DISCOVERY_LIST = struct.Struct(">HIBB")
# The identifier, the code of ArtDmx, the version, number, port of the sender, port-address (low, high), and a length.
_ART_DMX = struct.Struct("<8sH")
_ART_REST = struct.Struct(">HBBBBH")

# Of the first part of a packet, this much is not counted in the length of the root layer.
_BEFORE_ROOT = 16
# The most universes in a packet of a discovery.
_MOST_LISTED = 512


def _flags(length: int) -> int:
    """The flags that E1.31 wants, and the length of a layer."""
    return 0x7000 | length


def _named(name: str) -> bytes:
    """A name in 64 bytes of UTF-8 that end with a zero."""
    return name.encode()[:63].decode(errors="ignore").encode()


def sacn(
    universe: int, levels: bytes, number: int, sender: bytes, name: str, is_last: bool = False
) -> bytes:
    """The packet of a universe with its 512 levels. `number` counts packets modulo 256, `sender` is a CID of 16 bytes,
    and `is_last` ends the stream."""
    dmp = _DMP.pack(_flags(_DMP.size + CHANNELS), _SET_PROPERTY, _ADDRESSING, 0, 1, CHANNELS + 1, 0) + levels
    options = _TERMINATED if is_last else 0
    length = _FRAMING.size + len(dmp)
    framing = _FRAMING.pack(_flags(length), _DATA, _named(name), _PRIORITY, 0, number % 256, options, universe)
    return _rooted(_ROOT_DATA, sender, framing + dmp)


def _rooted(vector: int, sender: bytes, rest: bytes) -> bytes:
    length = _ROOT.size - _BEFORE_ROOT + len(rest)
    return _ROOT.pack(0x10, 0, _IDENTIFIER, _flags(length), vector, sender) + rest


def sacn_discovery(universes: Sequence[int], sender: bytes, name: str) -> list[bytes]:
    """The packets that say which universes a sender has."""
    ordered = sorted(universes)
    pages = [ordered[at : at + _MOST_LISTED] for at in range(0, len(ordered), _MOST_LISTED)] or [[]]
    found = []
    for page, listed in enumerate(pages):
        numbers = struct.pack(f">{len(listed)}H", *listed)
        length = _DISCOVERY_LIST.size + len(numbers)
        rest = _DISCOVERY_LIST.pack(_flags(length), _UNIVERSE_LIST, page, len(pages) - 1) + numbers
        length = _DISCOVERY_FRAMING.size + len(rest)
        framing = _DISCOVERY_FRAMING.pack(_flags(length), _DISCOVERY, _named(name), 0)
        found.append(_rooted(_ROOT_EXTENDED, sender, framing + rest))
    return found


def sacn_group(universe: int) -> str:
    """The address to which packets of a universe go, for all who listen."""
    return f"239.255.{universe >> 8}.{universe & 255}"


def artnet(universe: int, levels: bytes, number: int) -> bytes:
    """The packet of a port-address with its 512 levels. `number` counts packets; 0 would mean: uncounted."""
    head = _ART_DMX.pack(b"Art-Net\0", 0x5000)
    return head + _ART_REST.pack(14, number % 255 + 1, 0, universe & 255, universe >> 8, CHANNELS) + levels
