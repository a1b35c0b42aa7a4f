"""Decoders of `std.ambisonics` from files: for a room whose loudspeakers are nowhere even.

The files are those that the AllRADecoder of the IEM Plug-in Suite writes: JSON with a matrix, a row for each
loudspeaker and a column for each strand of a field, in the order of ACN. What is read becomes a spindle, so nothing
else of weft knows of them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from weft.codes.rows import InternalError
from weft.syntax.scanner import KEYWORDS

DECODER_ENDING: Final = ".json"

_FIELD = 16
_MOST_SPEAKERS = 64
_LOUDEST = 100.0

# The weights of max rE for each degree, by the order: Legendre polynomials at the largest root of the next one
# (J. Daniel, "Représentation de champs acoustiques", 2001).
_ROOTS = {0: 1.0, 1: math.sqrt(1 / 3), 2: math.sqrt(3 / 5), 3: math.sqrt(3 / 7 + 2 / 7 * math.sqrt(6 / 5))}


class DecoderFileError(InternalError):
    """A file is no decoder that can be used."""

    def __init__(self, reason: str, hint: str = "the AllRADecoder of the IEM Plug-in Suite writes such files") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


def decoder_text(name: str, text: str) -> str:
    """The text of a patch with the spindle that decodes, from the text of a file of this name, without its ending.
    Raises DecoderFileError."""
    if re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_]*", name) is None or name in KEYWORDS:
        raise DecoderFileError("its name would be that of the spindle", "such as room.json, for field |> room()")
    rows = _rows_of(_decoder_in(text))
    strands = ", ".join(f"a{number}" for number in range(_FIELD))
    outputs = ", ".join(f"s{number}" for number in range(1, len(rows) + 1))
    lines = [f"  out s{number} = {_sum(row)}\n" for number, row in enumerate(rows, 1)]
    return f"spindle {name}(field<{strands}>) :: <{outputs}> {{\n{''.join(lines)}}}\n"


def _sum(row: Sequence[float]) -> str:
    """What a loudspeaker plays."""
    return " + ".join(f"field@a{number} * {value:.9f}" for number, value in enumerate(row) if value) or "0"


def _refuse(word: str) -> float:
    raise ValueError(word)


def _decoder_in(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise DecoderFileError("it is no JSON") from None
    decoder = found.get("Decoder", found) if isinstance(found, dict) else None
    if not isinstance(decoder, dict) or not isinstance(decoder.get("Matrix"), list):
        raise DecoderFileError("it has no matrix of a decoder")
    return decoder


def _rows_of(decoder: Mapping[str, Any]) -> list[list[float]]:
    """What each channel plays of a field in SN3D."""
    matrix = [_row(number, row) for number, row in enumerate(decoder["Matrix"], 1)]
    if not 1 <= len(matrix) <= _MOST_SPEAKERS:
        hint = f"one for each of 1 to {_MOST_SPEAKERS} loudspeakers"
        raise DecoderFileError(f"its matrix has {len(matrix)} rows", hint)
    columns = len(matrix[0])
    order = math.isqrt(columns) - 1
    if wrong := next((number for number, row in enumerate(matrix, 1) if len(row) != columns), None):
        words = f"row {wrong} of its matrix has {len(matrix[wrong - 1])} numbers, and row 1 has {columns}"
        raise DecoderFileError(words)
    if (order + 1) ** 2 != columns or columns > _FIELD:
        raise DecoderFileError(f"its matrix has {columns} columns", "1, 4, 9 or 16 of them are an order from 0 to 3")
    scales = _scales(decoder, order)
    return _routed(decoder, [[value * scale for value, scale in zip(row, scales, strict=True)] for row in matrix])


def _row(number: int, row: object) -> list[float]:
    if not isinstance(row, list) or not all(type(value) in (int, float) and abs(value) <= _LOUDEST for value in row):
        raise DecoderFileError(f"row {number} of its matrix has no numbers from -{_LOUDEST:g} to {_LOUDEST:g}")
    return [float(value) for value in row]


def _scales(decoder: Mapping[str, Any], order: int) -> list[float]:
    """By how much each column is multiplied, so that it takes SN3D and has the weights that the file names."""
    normalization = str(decoder.get("ExpectedInputNormalization", "sn3d")).lower()
    if normalization not in ("sn3d", "n3d"):
        raise DecoderFileError("it expects a normalization other than sn3d and n3d")
    weights = "none" if decoder.get("WeightsAlreadyApplied") is True else str(decoder.get("Weights", "none")).lower()
    if weights not in ("none", "maxre"):
        raise DecoderFileError("its weights are neither applied, nor maxrE or none", "export it with them applied")
    degrees = [math.isqrt(number) for number in range((order + 1) ** 2)]
    wide = [math.sqrt(2 * degree + 1) if normalization == "n3d" else 1.0 for degree in degrees]
    focus = [_legendre(degree, _ROOTS[order]) if weights == "maxre" else 1.0 for degree in degrees]
    return [a * b for a, b in zip(wide, focus, strict=True)]


def _legendre(degree: int, x: float) -> float:
    before, value = 0.0, 1.0
    for n in range(degree):
        before, value = value, ((2 * n + 1) * x * value - n * before) / (n + 1)
    return value


def _routed(decoder: Mapping[str, Any], rows: list[list[float]]) -> list[list[float]]:
    """The rows by the channels to which they go; what no row goes to is silent."""
    routing = decoder.get("Routing", list(range(1, len(rows) + 1)))
    fits = isinstance(routing, list) and len(routing) == len(rows) == len({*map(str, routing)})
    if not fits or not all(type(each) is int and 1 <= each <= _MOST_SPEAKERS for each in routing):
        hint = f"each once, from 1 to {_MOST_SPEAKERS}"
        raise DecoderFileError("its routing does not name a channel for each row", hint)
    found = [[0.0] * len(rows[0]) for _ in range(max(routing))]
    for channel, row in zip(routing, rows, strict=True):
        found[channel - 1] = row
    return found
