"""Fonts that tests make: one whose letters have colours, as layers over the outlines that they have."""

from __future__ import annotations

import struct
from collections.abc import Sequence


def coloured_font(plain: bytes, palette: Sequence[tuple[int, int, int]]) -> bytes:
    """A font whose glyphs take the colours of a palette in turn, by their numbers: with the tables COLR (version 0) and
    CPAL of OpenType."""
    count = struct.unpack_from(">H", plain, 4)[0]
    tables: dict[bytes, bytes] = {}
    for row in range(count):
        tag, at, length = struct.unpack_from(">4s4xII", plain, 12 + 16 * row)
        tables[tag] = plain[at : at + length]
    glyphs = struct.unpack_from(">H", tables[b"maxp"], 4)[0]
    bases = b"".join(struct.pack(">HHH", glyph, glyph, 1) for glyph in range(glyphs))
    layers = b"".join(struct.pack(">HH", glyph, glyph % len(palette)) for glyph in range(glyphs))
    tables[b"COLR"] = struct.pack(">HHIIH", 0, glyphs, 14, 14 + len(bases), glyphs) + bases + layers
    colours = b"".join(struct.pack("BBBB", blue, green, red, 255) for red, green, blue in palette)
    tables[b"CPAL"] = struct.pack(">HHHHIH", 0, len(palette), 1, len(palette), 14, 0) + colours
    directory, body = b"", b""
    start = 12 + 16 * len(tables)
    for tag in sorted(tables):
        directory += struct.pack(">4sIII", tag, 0, start + len(body), len(tables[tag]))
        body += tables[tag] + bytes(-len(tables[tag]) % 4)
    return plain[:4] + struct.pack(">HHHH", len(tables), 0, 0, 0) + directory + body
