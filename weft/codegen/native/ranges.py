"""Between which numbers a value lies, as far as its last few operations show; NaN aside."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from weft.codegen.values import Node
from weft.ops import OPS
from weft.ops.intervals import ANYWHERE, Interval, number

_DEPTH = 6


# What rounding adds to a value that turns were taken out of.
_ROUNDING = 1e-3


class Affine(NamedTuple):
    """A value as `scale · base + offset`."""

    base: Node
    scale: float
    offset: float


# Beyond these, what is moved into a scale would overflow, or lose its digits, before the base can make up for it.
_LEAST, _MOST = 1e-6, 1e6


def affine(node: Node) -> Affine:
    """A value without the sums and products with constants that it ends in, as far as these are of usual sizes."""
    base, moves = node, list[tuple[float, float]]()
    while (step := _step(base)) is not None:
        base, factor, offset = step
        moves.append((factor, offset))
    scale, moved = 1.0, 0.0
    for factor, offset in reversed(moves):
        scale, moved = scale * factor, moved * factor + offset
    usual = _LEAST < abs(scale) < _MOST and abs(moved) < _MOST
    return Affine(base, scale, moved) if usual else Affine(node, 1.0, 0.0)


def _step(node: Node) -> tuple[Node, float, float] | None:
    """The value that a sum or product with a constant is made of, with the factor and the offset."""
    known = [arg.attr if arg.op == "const" else None for arg in node.args]
    match node.op, node.args, known:
        case ("add", (a, _), (_, float(c))) | ("add", (_, a), (float(c), _)):
            return a, 1, c
        case "sub", (a, _), (_, float(c)):
            return a, 1, -c
        case "sub", (_, a), (float(c), _):
            return a, -1, c
        case "neg", (a,), _:
            return a, -1, 0
        case ("mul", (a, _), (_, float(c))) | ("mul", (_, a), (float(c), _)):
            return a, c, 0
        case "div", (a, _), (_, float(c)) if c:
            return a, 1 / c, 0
    return None


def _unknown(given: Node) -> Interval:
    return ANYWHERE


def interval(node: Node, given: Callable[[Node], Interval] = _unknown, depth: int = _DEPTH) -> Interval:
    """Where a value lies; `given` says so of what is given for the launch, or for a column or row."""
    if node.op == "const":
        return number(node.attr)
    if node.op in ("scalar", "line"):
        return given(node)
    if node.op in ("add", "sub") and (most := _turned(node)) is not None:
        return Interval(-most, most)
    if node.op == "sub" and (found := _reduced(node)) is not None:
        return found
    row = OPS.get(node.op)
    if row is None:
        return ANYWHERE
    lies = row.lies(*(interval(arg, given, depth - 1) if depth else ANYWHERE for arg in node.args))
    return _limited(node, lies) if node.op in ("min", "max") else lies


def _limited(node: Node, lies: Interval) -> Interval:
    """The smaller or larger of two, one of which may be a constant: that is no NaN."""
    sure = [arg.attr for arg in node.args if arg.op == "const" and not math.isnan(arg.attr)]
    if sure and node.op == "max":
        return Interval(max(lies.low, sure[0]), lies.high)
    return Interval(lies.low, min(lies.high, sure[0])) if sure else lies


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
