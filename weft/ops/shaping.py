"""Rows that bend values into ranges and into each other."""

from __future__ import annotations

from weft.ops import formula as f, ieee
from weft.ops.formula import Operand, Term
from weft.ops.spec import OpSpec, params


def clamp(x: Operand, lo: Operand, hi: Operand) -> Term:
    return f.min(f.max(x, lo), hi)


def mix(a: Term, b: Term, t: Operand) -> Term:
    return a + (b - a) * t


def fade(t: Term) -> Term:
    """3t² − 2t³: from 0 to 1 with level ends."""
    return t * t * (3 - 2 * t)


def _smoothstep(a: Term, b: Term, x: Term) -> Term:
    return fade(clamp((x - a) / (b - a), 0, 1))


def _fold_clamp(x: float, lo: float, hi: float) -> float:
    return ieee.minimum(ieee.maximum(x, lo), hi)


def _fold_smoothstep(a: float, b: float, x: float) -> float:
    t = _fold_clamp(ieee.divide(x - a, b - a), 0.0, 1.0)
    return t * t * (3 - 2 * t)


ROWS = (
    OpSpec(
        "clamp", "builtin", params("x", lo=0, hi=1), "x, kept between lo and hi",
        fold=_fold_clamp, expand=clamp, example="clamp(me@x * 2, 0.2, 0.8)", cost=2,
    ),
    OpSpec(
        "saturate", "builtin", params("x"), "x, kept between 0 and 1",
        fold=lambda x: _fold_clamp(x, 0.0, 1.0), expand=lambda x: clamp(x, 0, 1),
        example="saturate(me@x * 2)", cost=2,
    ),
    OpSpec(
        "mix", "builtin", params("a", "b", "t"), "from a to b as t goes from 0 to 1",
        fold=lambda a, b, t: a + (b - a) * t, expand=mix,
        aliases=("lerp",), example="mix(0.2, 0.8, me@x)", cost=3,
    ),
    OpSpec(
        "step", "builtin", params("edge", "x"), "1 where x has reached the edge, else 0",
        fold=lambda edge, x: float(x >= edge), expand=lambda edge, x: f.to_real(f.ge(x, edge)),
        example="step(0.5, me@x)", cost=2,
    ),
    OpSpec(
        "smoothstep", "builtin", params("a", "b", "x"), "from 0 to 1 as x goes from a to b, with level ends",
        fold=_fold_smoothstep, expand=_smoothstep, example="smoothstep(0.4, 0.6, me@x)", cost=12,
    ),
    OpSpec(
        "normalize", "builtin", params("x", lo=0, hi=1), "from 0 to 1 as x goes from lo to hi, and on beyond",
        fold=lambda x, lo, hi: ieee.divide(x - lo, hi - lo), expand=lambda x, lo, hi: (x - lo) / (hi - lo),
        example="normalize(me@x, 0.25, 0.75)", cost=6,
    ),
)  # fmt: skip
