"""All codes, by their names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from weft.codes.meaning import MEANING
from weft.codes.playing import PLAYING
from weft.codes.rows import CodeSpec
from weft.codes.text import TEXT

CODES: Mapping[str, CodeSpec] = MappingProxyType({row.code: row for row in (*TEXT, *MEANING, *PLAYING)})


def spec_of(code: str) -> CodeSpec:
    """The row of a code. One that a package has brought is an error."""
    return CODES.get(code) or CodeSpec(code, "")
