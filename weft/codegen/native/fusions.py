"""Patterns of operations for which lists of calls have functions of their own. What a tile costs is mostly its loads
and stores, and a pattern has one store."""

from __future__ import annotations

from typing import TypeAlias

from weft.ops.noise import FIRST_MULTIPLIER, FIRST_SHIFT, SECOND_MULTIPLIER, SECOND_SHIFT

Pattern: TypeAlias = "tuple[str | int | float | Pattern, ...]"
"""Several operations as one: an operation of operands, which are their numbers, constants or other patterns."""


def _corner(x: int, yz: int) -> Pattern:
    """The random value of a corner of a cell of noise, from the operands with these numbers: the parts of one axis and
    of the others."""
    mixed: Pattern = ("bits_mul", ("bits_xor", x, yz), ("u32", FIRST_MULTIPLIER))
    shifted: Pattern = ("bits_xor", mixed, ("bits_shr", mixed, ("u32", SECOND_SHIFT)))
    return "bits_top", ("bits_mul", shifted, ("u32", SECOND_MULTIPLIER))


def _lerp(a: int | Pattern, b: int | Pattern, share: int) -> Pattern:
    return "add", a, ("mul", ("sub", b, a), share)


def _cell(first: Pattern) -> Pattern:
    """Noise between the four corners of a cell, of which the first is given."""
    return _lerp(_lerp(first, _corner(2, 1), 4), _lerp(_corner(0, 3), _corner(2, 3), 4), 5)


_CORNER = _corner(0, 1)
_WEIGHED: Pattern = ("mul", _CORNER, 2)
_FURTHER: Pattern = ("bits_add", 0, 1)
_CLAMPED: Pattern = ("min", ("max", ("div", ("sub", 0, 1), 2), 0.0), 1.0)
_ACROSS: Pattern = ("sub", 0, 1)
_DOWN: Pattern = ("sub", 2, 3)
_DEEP: Pattern = ("sub", 4, 5)
_NEAR: Pattern = ("max", ("sub", 0, ("abs", ("sub", 1, 2))), 0.0)

FUSIONS: tuple[Pattern, ...] = (
    # Two corners that have parts in common, which are either operand of the first corner, added to a sum.
    ("add", ("mul", _corner(3, 1), 4), ("add", _WEIGHED, 5)),
    ("add", ("mul", _corner(1, 3), 4), ("add", _WEIGHED, 5)),
    ("add", ("mul", _corner(3, 4), 5), _WEIGHED),
    ("add", _WEIGHED, 3),
    _WEIGHED,
    # A whole cell, whose x is either operand of the first corner; two corners; one.
    _cell(_corner(0, 1)),
    _cell(_corner(1, 0)),
    _lerp(_CORNER, _corner(2, 3), 4),
    _CORNER,
    _lerp(_lerp(0, 1, 2), 3, 4),
    _lerp(0, 1, 2),
    # The part of an axis.
    ("bits_xor", _FURTHER, ("bits_shr", _FURTHER, ("u32", FIRST_SHIFT))),
    ("bits_xor", 0, ("bits_shr", 0, ("u32", FIRST_SHIFT))),
    ("bits_mul", ("bits_of", 0), 1),
    # Smoothstep.
    ("mul", ("mul", _CLAMPED, _CLAMPED), ("sub", 3.0, ("mul", 2.0, _CLAMPED))),
    ("mul", ("mul", 0, 0), ("sub", 3.0, ("mul", 2.0, 0))),
    # Lengths.
    ("sqrt", ("add", ("mul", _ACROSS, _ACROSS), ("mul", _DOWN, _DOWN))),
    ("sqrt", ("add", ("mul", 0, 0), ("mul", 1, 1))),
    ("sqrt", ("add", ("add", ("mul", _ACROSS, _ACROSS), ("mul", _DOWN, _DOWN)), ("mul", _DEEP, _DEEP))),
    ("sub", ("sqrt", ("add", ("mul", 0, 0), ("mul", 1, 1))), 2),
    ("sqrt", ("add", ("mul", 0, 1), 2)),
    ("sqrt", ("add", 0, 1)),
    # Sums and products.
    ("add", ("mul", 0, 0), ("mul", 1, 1)),
    ("add", ("add", ("mul", 0, 1), ("mul", 2, 3)), ("mul", 4, 5)),
    ("add", ("mul", ("add", 0, ("mul", 1, 2)), 3), 4),
    ("add", ("mul", ("mul", 0, 1), 2), 3),
    ("add", ("add", ("mul", 0, 1), ("mul", 2, 3)), 4),
    ("add", ("mul", 0, 1), ("add", ("mul", 2, 3), 4)),
    ("add", ("mul", 0, 1), ("mul", 2, 3)),
    ("add", ("mul", 0, 1), 2),
    ("add", ("add", 0, 1), 2),
    ("sub", ("mul", 0, 1), 2),
    ("sub", 2, ("mul", 0, 1)),
    ("mul", ("sub", 2, ("mul", 0, 1)), 3),
    ("mul", ("mul", ("sub", 2, ("mul", 0, 1)), 3), 4),
    ("mul", ("mul", ("mul", 0, 1), 2), 3),
    ("mul", ("mul", 0, 1), 2),
    ("mul", ("add", ("mul", 0, 1), 2), 3),
    ("mul", ("add", 0, 1), 2),
    ("mul", ("sub", 0, 1), 2),
    ("div", 0, ("add", ("mul", 1, 2), 3)),
    ("add", ("div", 0, 1), 2),
    ("exp", ("mul", ("neg", 0), 1)),
    ("exp", ("mul", 0, 1)),
    ("abs", ("sub", 0, 1)),
    # What is limited, and what is chosen.
    ("min", ("max", ("add", ("div", ("mul", ("sub", 0, 1), 2), 3), 4), 0.0), 1.0),
    ("sub", _lerp(0, 1, 2), ("mul", ("mul", 3, 2), ("sub", 1.0, 2))),
    ("sub", ("min", 1, 2), ("div", ("mul", _NEAR, _NEAR), 3)),
    ("min", ("max", ("div", ("sub", 0, 1), 2), 3), 4),
    ("min", ("max", ("div", 0, 1), 2), 3),
    ("min", ("max", 0, 1), 2),
    ("min", ("min", 0, 1), 2),
    ("max", ("max", 0, 1), 2),
    ("max", ("sub", 0, 1), 2),
    ("sub", ("sub", 0, 1), 2),
    ("mod", ("add", 0, ("mul", 1, 2)), 1.0),
    ("mod", 0, 1.0),
    ("select", ("lt", ("abs", 0), 1), 2, 3),
    ("select", ("lt", 0, 1), 2, 3),
    ("select", 0, 1, ("select", 2, 3, 4)),
)
