"""Rows for angles. All are in radians."""

from __future__ import annotations

import math
from typing import Any

from weft.ops import double, formula as f, ieee, intervals, single
from weft.ops.spec import OpSpec, params


def _vector_sinpi(np: Any, out: Any, x: Any) -> None:
    _vector_angle(np, out, x)
    np.sin(out, out=out)


def _vector_cospi(np: Any, out: Any, x: Any) -> None:
    _vector_angle(np, out, x)
    np.cos(out, out=out)


def _vector_angle(np: Any, out: Any, x: Any) -> None:
    """πx. In double precision, where a sound counts turns over hours, less whole turns: what is left of x is exact."""
    if out.itemsize == 8:
        np.multiply(x, 0.5, out=out)
        np.rint(out, out=out)
        np.multiply(out, -2.0, out=out)
        np.add(out, x, out=out)
        x = out
    np.multiply(x, math.pi, out=out)


ROWS = (
    OpSpec(
        "sin", "builtin", params("x"), "the sine of x radians",
        fold=ieee.sin, vector="sin", native=single.sine, double="sin", clike="sine",
        within=intervals.wave, keeps_finite=True, example="sin(me@x * tau)", cost=10,
    ),
    OpSpec(
        "cos", "builtin", params("x"), "the cosine of x radians",
        fold=ieee.cos, vector="cos", native=single.cosine, double="cos",
        clike="cosine", within=intervals.wave, keeps_finite=True, example="cos(me@time)", cost=10,
    ),
    OpSpec(
        "sinpi", "internal", params("x"), "the sine of x half turns",
        fold=ieee.sinpi, vector=_vector_sinpi, native=single.sine_of_half_turns, double=double.sine_of_half_turns,
        clike="sinpi", within=intervals.wave,
        example="sinpi(x)", cost=8,
    ),
    OpSpec(
        "cospi", "internal", params("x"), "the cosine of x half turns",
        fold=ieee.cospi, vector=_vector_cospi, native=single.cosine_of_half_turns, double=double.cosine_of_half_turns,
        clike="cospi", within=intervals.wave,
        example="cospi(x)", cost=8,
    ),
    OpSpec(
        "tan", "builtin", params("x"), "the tangent of x radians",
        fold=ieee.tan, expand=lambda x: f.sin(x) / f.cos(x), example="tan(me@x)", cost=24,
    ),
    OpSpec(
        "asin", "builtin", params("x"), "the angle from -pi/2 to pi/2 whose sine is x; NaN beyond -1…1",
        # (1 − x)(1 + x) keeps the digits that 1 − x² loses near 1.
        fold=ieee.asin, expand=lambda x: f.atan2(x, f.sqrt((1 - x) * (1 + x))), example="asin(me@x)", cost=28,
    ),
    OpSpec(
        "acos", "builtin", params("x"), "the angle from 0 to pi whose cosine is x; NaN beyond -1…1",
        fold=ieee.acos, expand=lambda x: f.atan2(f.sqrt((1 - x) * (1 + x)), x), example="acos(me@x)", cost=28,
    ),
    OpSpec(
        "atan", "builtin", params("x"), "the angle from -pi/2 to pi/2 whose tangent is x",
        fold=math.atan, expand=lambda x: f.atan2(x, 1), example="atan(me@x * 4)", cost=20,
    ),
    OpSpec(
        "atan2", "builtin", params("y", "x"), "the angle from -pi to pi of the direction (x, y)",
        fold=math.atan2, vector="arctan2", native=single.arctangent, double="atan2", clike="angle", keeps_finite=True,
        example="atan2(me@y - 0.5, me@x - 0.5)", cost=20,
    ),
)  # fmt: skip
