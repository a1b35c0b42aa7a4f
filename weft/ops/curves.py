"""Rows for angles, lengths and shaping. All angles are in radians."""

from __future__ import annotations

import math
from typing import Any

from weft.ops import double, formula as f, ieee, intervals, single
from weft.ops.formula import Operand, Term
from weft.ops.spec import OpSpec, about, params


def _vector_sinpi(np: Any, out: Any, x: Any) -> None:
    _vector_angle(np, out, x)
    np.sin(out, out=out)


def _vector_cospi(np: Any, out: Any, x: Any) -> None:
    _vector_angle(np, out, x)
    np.cos(out, out=out)


def _vector_angle(np: Any, out: Any, x: Any) -> None:
    """πx; in double precision, where a sound counts turns over hours, without whole turns, which is exact."""
    if out.itemsize == 8:
        np.multiply(x, 0.5, out=out)
        np.rint(out, out=out)
        np.multiply(out, -2.0, out=out)
        np.add(out, x, out=out)
        x = out
    np.multiply(x, math.pi, out=out)


TRIGONOMETRY = (
    OpSpec(
        "sin", "builtin", params("x"), "the sine of x radians",
        fold=ieee.sin, vector="sin", native=single.sine, double="sin", clike="sine",
        slopes=lambda x: (ieee.cos(x),),
        interval=intervals.wave, keeps_finite=True, usual=about(-9, 9), example="sin(me@x * tau)", cost=10,
    ),
    OpSpec(
        "cos", "builtin", params("x"), "the cosine of x radians",
        fold=ieee.cos, vector="cos", native=single.cosine, double="cos",
        slopes=lambda x: (-ieee.sin(x),),
        clike="cosine", interval=intervals.wave, keeps_finite=True, usual=about(-9, 9), example="cos(me@time)", cost=10,
    ),
    OpSpec(
        "sinpi", "internal", params("x"), "the sine of x half turns",
        fold=ieee.sinpi, vector=_vector_sinpi, native=single.sine_of_half_turns, double=double.sine_of_half_turns,
        slopes=lambda x: (math.pi * ieee.cospi(x),),
        clike="sinpi", interval=intervals.wave,
        example="sinpi(x)", cost=8,
    ),
    OpSpec(
        "cospi", "internal", params("x"), "the cosine of x half turns",
        fold=ieee.cospi, vector=_vector_cospi, native=single.cosine_of_half_turns, double=double.cosine_of_half_turns,
        slopes=lambda x: (-math.pi * ieee.sinpi(x),),
        clike="cospi", interval=intervals.wave,
        example="cospi(x)", cost=8,
    ),
    OpSpec(
        "tan", "builtin", params("x"), "the tangent of x radians",
        fold=ieee.tan, expand=lambda x: f.sin(x) / f.cos(x), usual=about(-1.3, 1.3), example="tan(me@x)", cost=24,
    ),
    OpSpec(
        "asin", "builtin", params("x"), "the angle from -pi/2 to pi/2 whose sine is x; NaN beyond -1…1",
        # (1 − x)(1 + x) keeps the digits that 1 − x² loses near 1.
        fold=ieee.asin, expand=lambda x: f.atan2(x, f.sqrt((1 - x) * (1 + x))),
        usual=about(-1, 1, strict=True), example="asin(me@x)", cost=28,
    ),
    OpSpec(
        "acos", "builtin", params("x"), "the angle from 0 to pi whose cosine is x; NaN beyond -1…1",
        fold=ieee.acos, expand=lambda x: f.atan2(f.sqrt((1 - x) * (1 + x)), x),
        usual=about(-1, 1, strict=True), example="acos(me@x)", cost=28,
    ),
    OpSpec(
        "atan", "builtin", params("x"), "the angle from -pi/2 to pi/2 whose tangent is x",
        fold=math.atan, expand=lambda x: f.atan2(x, 1), usual=about(-6, 6), example="atan(me@x * 4)", cost=20,
    ),
    OpSpec(
        "atan2", "builtin", params("y", "x"), "the angle from -pi to pi of the direction (x, y)",
        fold=math.atan2, vector="arctan2", native=single.arctangent, double="atan2", clike="angle", keeps_finite=True,
        interval=intervals.angle,
        slopes=lambda y, x: (ieee.divide(x, x * x + y * y), ieee.divide(-y, x * x + y * y)),
        example="atan2(me@y - 0.5, me@x - 0.5)", cost=20,
    ),
)  # fmt: skip


# --- lengths, and units of angles ---


def length(*xs: Term) -> Term:
    """√(x₁² + x₂² + …), without scaling: a square that overflows makes the length infinite."""
    first, *others = xs
    if not others:
        return f.abs(first)
    total = first * first
    for x in others:
        total = total + x * x
    return f.sqrt(total)


def _fold_length(*xs: float) -> float:
    return ieee.sqrt(sum(x * x for x in xs)) if len(xs) > 1 else abs(xs[0])


GEOMETRY = (
    OpSpec(
        "hypot", "builtin", params("x", "y"), "the length of (x, y)",
        fold=_fold_length, expand=length, example="hypot(me@x - 0.5, me@y - 0.5)", cost=9,
    ),
    OpSpec(
        "length", "builtin", params("x"), "the length of a vector with any number of parts",
        fold=_fold_length, expand=length, variadic=True, example="length(me@x - 0.5, me@y - 0.5, 0.1)", cost=9,
    ),
    OpSpec(
        "distance", "builtin", params("x1", "y1", "x2", "y2"), "the distance from (x1, y1) to (x2, y2)",
        fold=lambda x1, y1, x2, y2: _fold_length(x2 - x1, y2 - y1),
        expand=lambda x1, y1, x2, y2: length(x2 - x1, y2 - y1),
        example="distance(me@x, me@y, mouse@x, mouse@y)", cost=11,
    ),
    OpSpec(
        "deg", "builtin", params("x"), "x radians in degrees",
        fold=lambda x: x * (180 / math.pi), expand=lambda x: x * (180 / math.pi),
        usual=about(-3.2, 3.2), example="deg(pi / 2)",
    ),
    OpSpec(
        "rad", "builtin", params("x"), "x degrees in radians",
        fold=lambda x: x * (math.pi / 180), expand=lambda x: x * (math.pi / 180),
        usual=about(-180, 180), example="rad(90)",
    ),
)  # fmt: skip


# --- shaping: values bent into ranges and into each other ---


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


SHAPING = (
    OpSpec(
        "clamp", "builtin", params("x", lo=0, hi=1), "x, kept between lo and hi",
        fold=_fold_clamp, expand=clamp,
        usual=about(-2, 2, -1, 0.2, 0.3, 1), example="clamp(me@x * 2, 0.2, 0.8)", cost=2,
    ),
    OpSpec(
        "saturate", "builtin", params("x"), "x, kept between 0 and 1",
        fold=lambda x: _fold_clamp(x, 0.0, 1.0), expand=lambda x: clamp(x, 0, 1),
        usual=about(-0.5, 1.5), example="saturate(me@x * 2)", cost=2,
    ),
    OpSpec(
        "mix", "builtin", params("a", "b", "t"), "from a to b as t goes from 0 to 1",
        fold=lambda a, b, t: a + (b - a) * t, expand=mix,
        aliases=("lerp",), usual=about(-2, 2, -2, 2, 0, 1), example="mix(0.2, 0.8, me@x)", cost=3,
    ),
    OpSpec(
        "step", "builtin", params("edge", "x"), "1 where x has reached the edge, else 0",
        fold=lambda edge, x: float(x >= edge), expand=lambda edge, x: f.to_float(f.ge(x, edge)),
        usual=about(0, 1), example="step(0.5, me@x)", cost=2,
    ),
    OpSpec(
        "smoothstep", "builtin", params("a", "b", "x"), "from 0 to 1 as x goes from a to b, with level ends",
        fold=_fold_smoothstep, expand=_smoothstep,
        usual=about(-1, 0.4, 0.5, 1.5, -1, 2), example="smoothstep(0.4, 0.6, me@x)", cost=12,
    ),
    OpSpec(
        "normalize", "builtin", params("x", lo=0, hi=1), "from 0 to 1 as x goes from lo to hi, and on beyond",
        fold=lambda x, lo, hi: ieee.divide(x - lo, hi - lo), expand=lambda x, lo, hi: (x - lo) / (hi - lo),
        usual=about(-2, 2, -1, 0, 0.5, 2), example="normalize(me@x, 0.25, 0.75)", cost=6,
    ),
)  # fmt: skip
