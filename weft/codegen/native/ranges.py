"""Between which numbers a value lies, as far as its last few operations show; NaN aside."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from weft.codegen.native.nodes import Node

_DEPTH = 6


class Interval(NamedTuple):
    low: float
    high: float


ANYWHERE = Interval(-math.inf, math.inf)
# What rounding adds to a value that turns were taken out of.
_ROUNDING = 1e-3
_WAVES = ("sin", "cos", "sinpi", "cospi")


class Affine(NamedTuple):
    """A value as `scale · base + offset`."""

    base: Node
    scale: float
    offset: float


# Beyond these, what is moved into a scale would overflow, or lose its digits, before the base can make up for it.
_LEAST, _MOST = 1e-6, 1e6


def affine(node: Node) -> Affine:
    """A value without the sums and products with constants that it ends in, as far as these are of usual sizes."""
    found = _affine(node)
    usual = _LEAST < abs(found.scale) < _MOST and abs(found.offset) < _MOST
    return found if usual else Affine(node, 1.0, 0.0)


def _affine(node: Node) -> Affine:
    known = [arg.attr if arg.op == "const" else None for arg in node.args]
    match node.op, node.args, known:
        case "add", (a, _), (_, float(c)):
            return _moved(_affine(a), 1, c)
        case "add", (_, b), (float(c), _):
            return _moved(_affine(b), 1, c)
        case "sub", (a, _), (_, float(c)):
            return _moved(_affine(a), 1, -c)
        case "sub", (_, b), (float(c), _):
            return _moved(_affine(b), -1, c)
        case "neg", (a,), _:
            return _moved(_affine(a), -1, 0)
        case ("mul", (a, _), (_, float(c))) | ("mul", (_, a), (float(c), _)):
            return _moved(_affine(a), c, 0)
        case "div", (a, _), (_, float(c)) if c:
            return _moved(_affine(a), 1 / c, 0)
    return Affine(node, 1.0, 0.0)


def _moved(value: Affine, factor: float, offset: float) -> Affine:
    return Affine(value.base, value.scale * factor, value.offset * factor + offset)


def _unknown(given: Node) -> Interval:
    return ANYWHERE


def interval(node: Node, given: Callable[[Node], Interval] = _unknown, depth: int = _DEPTH) -> Interval:
    """Where a value lies; `given` says so of what is given for the launch, or for a column or row."""
    if node.op == "const":
        return Interval(node.attr, node.attr) if math.isfinite(node.attr) else ANYWHERE
    if node.op in ("scalar", "line"):
        return given(node)
    if node.op in _WAVES:
        return Interval(-1, 1)
    if node.op == "to_real" or node.kind == "truth":
        return Interval(0, 1)
    if depth == 0:
        return ANYWHERE
    if node.op in ("add", "sub") and (size := _turned(node)) is not None:
        return Interval(-size, size)
    if node.op == "sub" and (found := _reduced(node)) is not None:
        return found
    match node.op, [interval(arg, given, depth - 1) for arg in node.args]:
        case "add", [a, b]:
            return Interval(a.low + b.low, a.high + b.high)
        case "sub", [a, b]:
            return Interval(a.low - b.high, a.high - b.low)
        case "mul", [a, b] if ANYWHERE not in (a, b):
            ends = [x * y for x in a for y in b]
            return Interval(min(ends), max(ends))
        case "sqrt", [a]:
            return Interval(0, math.sqrt(max(0.0, a.high)))
        case ("min" | "max"), [a, b]:
            return _chosen(node, a, b)
        case "select", [_, a, b]:
            return Interval(min(a.low, b.low), max(a.high, b.high))
    return ANYWHERE


def _chosen(node: Node, a: Interval, b: Interval) -> Interval:
    """The smaller or larger of two. Where one is NaN it is the other, wherever that lies. A constant is no NaN."""
    sure = [Interval(arg.attr, arg.attr) for arg in node.args if arg.op == "const" and arg.attr == arg.attr]
    low, high = min(a.low, b.low), max(a.high, b.high)
    if sure and node.op == "max":
        low = max(low, sure[0].low)
    elif sure:
        high = min(high, sure[0].high)
    return Interval(low, high)


def _turned(node: Node) -> float | None:
    """How large a sum of a sine and a cosine of one angle gets, each with a factor."""
    (first, a, _), (second, b, _) = (affine(arg) for arg in node.args)
    if {first.op, second.op} == {"sinpi", "cospi"} and first.args == second.args and _is_plain(node):
        return math.hypot(a, b)
    return None


def _is_plain(node: Node) -> bool:
    """Whether no constant is added to the operands."""
    return all(affine(arg).offset == 0 for arg in node.args)


def _reduced(node: Node) -> Interval | None:
    """Where a value lies that whole turns have been taken out of, `e − p·⌊e/p + o⌋`, with p in two parts."""
    match node.args:
        case (Node("sub", (value, first)), second):
            turns, more = affine(first), affine(second)
            period = turns.scale + more.scale
            whole = turns.base
            if whole.op != "floor" or more.base is not whole or (turns.offset, more.offset) != (0, 0):
                return None
            e, count = affine(value), affine(whole.args[0])
            start = count.offset - e.offset / period
            if e.base is count.base and math.isclose(count.scale * period, e.scale, rel_tol=1e-9) and 0 <= start <= 1:
                return Interval(-start * period - _ROUNDING, (1 - start) * period + _ROUNDING)
    return None
