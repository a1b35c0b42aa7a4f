"""Static analysis of a section's values: their costs, their intervals, and which of them vary between lanes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from weft.codegen.kernel import LOOP_STEPS, Kernel
from weft.codegen.values import LoopBody, Node, Section, operands, operands_within
from weft.ir.rates import Rate
from weft.ops import OPS, ieee
from weft.ops.intervals import ANYWHERE, UNIT, Interval, either, number

# Rough costs of values, in additions. They decide what is worth a branch or another thread. These are the costs of
# operations that are not in the table of operators and builtins.
_COSTS = {"picture": 40, "sample": 40, "fetch": 8, "state": 4}

SOME_STEPS = 16
"""The steps assumed for a loop whose bounds are unknown."""


def cost_of(op: str) -> int:
    """The cost of one value of an operation other than a loop."""
    return OPS[op].cost if op in OPS else _COSTS.get(op, 1)


def cost(node: Node) -> int:
    """The cost of one value; of a loop, that of all its steps."""
    if node.op == "loop":
        first, last = node.args[:2]
        is_known = first.op == last.op == "const"
        steps = int(min(ieee.steps(first.attr, last.attr), LOOP_STEPS)) if is_known else SOME_STEPS
        return steps * costs(node.attr.nodes)
    return cost_of(node.op)


def costs(nodes: Iterable[Node]) -> int:
    return sum(map(cost, nodes))


def parallelism(nodes: Iterable[Node]) -> float:
    """The number of values that can be computed at once, on average: the cost of all divided by that of the longest
    chain of values."""
    nodes = list(nodes)
    return max(costs(nodes) / max(_longest(nodes), 1), 1)


def _longest(nodes: Iterable[Node]) -> float:
    """The cost of the longest chain of values that depend on each other."""
    ends: dict[Node, float] = {}
    for node in nodes:
        own: float = cost(node)
        if node.op == "loop":
            own /= parallelism(node.attr.nodes)
        ends[node] = own + max([ends.get(each, 0) for each in operands(node)], default=0)
    return max(ends.values(), default=0)


def most_alive(section: Section) -> int:
    """The largest number of values that wait for their last use at the same time, if they are computed in order."""
    nodes = list(section.walk())
    last = {each: at for at, node in enumerate(nodes) for each in operands_within(node)}
    last |= dict.fromkeys(section.roots, len(nodes))
    ends = Counter(last.get(node) for node in nodes)
    return max(accumulate(1 - ends[at] for at in range(len(nodes))), default=0)


# The interval of a value, as its last few operations show it; NaN aside.

_DEPTH = 6

# What rounding adds to a value after whole turns were removed from it. That is done once a frame, in double precision
# (`weft/ir/phases.py`), where it holds for angles up to 2^40. Of larger ones few digits are left of their place within
# a turn, and soon none: their sines may be any number, and nothing else depends on this interval.
_ROUNDING = 1e-3


class Affine(NamedTuple):
    """A value as `scale · base + offset`."""

    base: Node
    scale: float
    offset: float


# Outside these limits, a scale or an offset could overflow or lose digits before the base makes up for it.
_LEAST, _MOST = 1e-6, 1e6

# The most operations that are split off. It is asked of every value of a chain that may be thousands of them long.
_MOST_MOVES = 8


def _known(node: Node, numbers: Sequence[float]) -> float | None:
    """The value of a constant, or of a number of the kernel if `numbers` are these; None for others."""
    if node.op == "const":
        return float(node.attr)
    return numbers[node.attr.key] if numbers and node.op == "scalar" and node.attr.source == "number" else None


def affine(node: Node, numbers: Sequence[float] = ()) -> Affine:
    """A value with its last few sums and products with constants split off, unless their factors are extreme. Numbers
    of the kernel count as constants if `numbers` are their values."""
    base, moves = node, list[tuple[float, float]]()
    while len(moves) < _MOST_MOVES and (step := _step(base, numbers)) is not None:
        base, factor, offset = step
        moves.append((factor, offset))
    scale, moved = 1.0, 0.0
    for factor, offset in reversed(moves):
        scale, moved = scale * factor, moved * factor + offset
    usual = _LEAST < abs(scale) < _MOST and abs(moved) < _MOST
    return Affine(base, scale, moved) if usual else Affine(node, 1.0, 0.0)


def _step(node: Node, numbers: Sequence[float]) -> tuple[Node, float, float] | None:
    """The variable operand of a sum or product with a constant, and the factor and offset; None for other values."""
    known = [_known(arg, numbers) for arg in node.args]
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


def interval(
    node: Node, given: Callable[[Node], Interval] = lambda _: ANYWHERE, numbers: Sequence[float] = (),
    depth: int = _DEPTH,
) -> Interval:  # fmt: skip
    """The interval of a value. `given` returns that of an input: of the launch, or of a column or row. `numbers` are
    those of the kernel, if the interval is for these alone."""
    if (value := _known(node, numbers)) is not None:
        return number(value)
    if node.op in ("scalar", "line"):
        return given(node)
    return interval_from(node, lambda arg: interval(arg, given, numbers, depth - 1) if depth else ANYWHERE, numbers)


def interval_from(node: Node, of: Callable[[Node], Interval], numbers: Sequence[float] = ()) -> Interval:
    """The interval of a value that is no leaf, from those `of` its operands."""
    if node.op in ("add", "sub") and (most := _turned(node, numbers)) is not None:
        return Interval(-most, most)
    if node.op == "add" and (ends := _mixed(node)) is not None and _is_share(of(ends[2])):
        return either(of(ends[0]), of(ends[1]))
    if node.op == "mul" and (eased := _eased(node)) is not None and _is_share(of(eased)):
        return UNIT
    if node.op == "sub" and node.args[1].op == "floor" and node.args[1].args[0] is node.args[0]:
        return UNIT
    if node.op == "sub" and (found := _reduced(node, numbers)) is not None:
        return found
    row = OPS.get(node.op)
    if row is None:
        return ANYWHERE
    found = row.interval_of(*map(of, node.args))
    if node.op == "mul" and node.args[0] is node.args[1]:
        return Interval(max(0.0, found.low), found.high)
    if node.op not in ("min", "max"):
        return found
    # An operand that is a constant and not NaN is a limit.
    limits = (_known(arg, numbers) for arg in node.args)
    limit = next((each for each in limits if each is not None and not math.isnan(each)), None)
    if limit is None:
        return found
    low, high = found
    return Interval(max(low, limit), high) if node.op == "max" else Interval(low, min(high, limit))


def _is_share(interval: Interval) -> bool:
    return interval.low >= 0 and interval.high <= 1


def _mixed(node: Node) -> tuple[Node, Node, Node] | None:
    """a, b and t of a sum a + (b − a)·t; None for others."""
    for a, product in (node.args, node.args[::-1]):
        for difference, t in (product.args, product.args[::-1]) if product.op == "mul" else ():
            if difference.op == "sub" and difference.args[1] is a:
                return a, difference.args[0], t
    return None


def _eased(node: Node) -> Node | None:
    """t of a product t·t·(3 − 2·t); None for others."""
    for square, rest in (node.args, node.args[::-1]):
        if square.op != "mul" or square.args[0] is not square.args[1] or rest.op != "sub":
            continue
        t, (three, twice) = square.args[0], rest.args
        if three.op == "const" and three.attr == 3 and affine(twice) == (t, 2, 0):
            return t
    return None


def _turned(node: Node, numbers: Sequence[float]) -> float | None:
    """The bound of a sum of a sine and a cosine of one angle, each with a factor; None for other sums."""
    first, second = (affine(arg, numbers) for arg in node.args)
    of_one_angle = {first.base.op, second.base.op} == {"sinpi", "cospi"} and first.base.args == second.base.args
    return math.hypot(first.scale, second.scale) if of_one_angle and first.offset == second.offset == 0 else None


def _reduced(node: Node, numbers: Sequence[float]) -> Interval | None:
    """The interval of a value without its whole turns, `e − p·⌊e/p + o⌋` with p in two parts; None for others."""
    match node.args:
        case (Node("sub", (value, first)), second):
            turns, more = affine(first, numbers), affine(second, numbers)
            period = turns.scale + more.scale
            whole = turns.base
            if whole.op != "floor" or more.base is not whole or (turns.offset, more.offset) != (0, 0):
                return None
            e, count = affine(value, numbers), affine(whole.args[0], numbers)
            start = count.offset - e.offset / period
            if e.base is count.base and math.isclose(count.scale * period, e.scale, rel_tol=1e-9) and 0 <= start <= 1:
                return Interval(-start * period - _ROUNDING, (1 - start) * period + _ROUNDING)
    return None


# Lane analysis: which values are the same in all lanes of a vector.


class Graph:
    """A section of a kernel, or several joined to one, with their lanes. The lanes of a vector are neighbours in the
    section's direction: in a picture, along the row."""

    def __init__(self, kernel: Kernel, section: Section) -> None:
        self.section = section
        self.varying: set[Node] = set()
        """The values that may differ between the lanes of a vector."""
        self.masked: set[LoopBody] = set()
        """The loops that lanes may leave at different steps."""
        self._rates = (section.rate if section.rate != Rate.ELEMENT else Rate.COLUMN, Rate.ELEMENT)
        # In a series, state that is one number changes from sample to sample as well.
        self._slots = {slot.key for slot in kernel.slots if slot.image or kernel.tick == "element"}
        self._mark(section.nodes)
        self._mark_leaves(section.roots)

    def changes(self, node: Node) -> bool:
        """Whether a value, or a value that a loop carries, may differ between lanes."""
        if node.op == "loop":
            return any(carried in self.varying for carried in node.attr.carried)
        return node in self.varying

    def _mark_leaves(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            if node.op == "line" and node.attr.rate in self._rates:
                self.varying.add(node)

    def _mark(self, nodes: Iterable[Node]) -> None:
        varying = self.varying
        for node in nodes:
            if node.op == "loop":
                self._mark_loop(node)
                # Lanes that leave one loop of a nest early have steps left for the others.
                if node.attr.outermost and (node.attr in self.masked or self._has_masked(node.attr.nodes)):
                    self._mask(node)
                    self._mark_loop(node)
            elif node.op == "loop_out":
                # A loop runs as a whole, so all its results vary if one of its carried values does.
                if not varying.isdisjoint(node.args[0].attr.carried):
                    varying.add(node)
            else:
                self._mark_leaves(node.args)
                is_past = node.op == "state" and node.attr.slot in self._slots
                if is_past or node.op == "wave" or not varying.isdisjoint(node.args):
                    varying.add(node)

    def _mark_loop(self, node: Node) -> None:
        """A carried value varies if its start or its following value does, so the body is marked again until nothing
        changes."""
        body: LoopBody = node.attr
        varying, bounds, starts = self.varying, node.args[:2], node.args[2:]
        self._mark_leaves((*node.args, *body.following))
        if not varying.isdisjoint(bounds):
            self.masked.add(body)
        if body.index is not None and bounds[0] in varying:
            varying.add(body.index)
        entering: Sequence[Node] = starts
        while True:
            for carried, value in zip(body.carried, entering, strict=True):
                if value in varying or body in self.masked:
                    varying.add(carried)
            self._mark(body.nodes)
            entering = body.following
            if all(c in varying or value not in varying for c, value in zip(body.carried, entering, strict=True)):
                return

    def _has_masked(self, nodes: Iterable[Node]) -> bool:
        return any(n.op == "loop" and (n.attr in self.masked or self._has_masked(n.attr.nodes)) for n in nodes)

    def _mask(self, node: Node) -> None:
        self.masked.add(node.attr)
        for inner in node.attr.nodes:
            if inner.op == "loop":
                self._mask(inner)
