"""Which quotients and waves of a program have to be right to their last digits, and which zeros in their signs.

Graphics cards divide with an error of two units in the last place or more, so that x / x may be 0.99999994. A pixel
does not show that, but `floor(x / x)` does. Of a wave, few more digits are lost, and they are seen only where they
count many times: where it is a divisor, or the period of a remainder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from types import MappingProxyType
from typing import TypeAlias

from weft.codegen.native.dataflow import interval
from weft.codegen.values import Node, Section

_Needs: TypeAlias = "Callable[[Node], Set[int]]"
"""The places of those operands of a value that have to be right even if the value need not be."""

# Operations that change little if the operands at these places do. With others, they may jump: a floor, a comparison,
# the root of what may be negative, a divisor that may be 0.
_BOTH, _NONE = frozenset({0, 1}), frozenset[int]()
_SMOOTH: Mapping[str, Set[int]] = MappingProxyType({
    **dict.fromkeys(("add", "sub", "mul", "min", "max", "neg", "abs"), _BOTH),
    **dict.fromkeys(("sinpi", "cospi", "sin", "cos", "exp", "exp2"), _BOTH),
    "div": frozenset({0}), "select": frozenset({1, 2}), "loop_out": _BOTH,
})  # fmt: skip

# How many sums of sums are looked through.
_DEPTH = 6

_DIVISIONS = frozenset({"div", "mod"})

# The operands of operations that are different for -0, but for the sign of a 0.
_SIGNED_ZEROS: Mapping[str, Set[int]] = MappingProxyType(
    {"div": frozenset({1}), "mod": frozenset({1}), "atan2": _BOTH, "power": _BOTH}
)


def exact_values(program: Section) -> frozenset[Node]:
    """Finds these. Whatever a program stores has to be right, since what reads it may jump."""
    stored = {*(store.value for store in program.stores), *program.locals.values()}
    ratios = (node for node in _reached(program, stored, _jumping) if node.op == "div")
    waves = (node for node in _reached(program, set(), _dividing) if node.op in ("sinpi", "cospi"))
    return frozenset((*ratios, *waves))


def signed_zeros(program: Section) -> frozenset[Node]:
    """Finds the values of which it shows whether a 0 is -0, in a program that gives pixels."""
    stored = {*(store.value for store in program.stores), *program.locals.values()}
    return frozenset(_reached(program, stored, lambda node: _SIGNED_ZEROS.get(node.op, _NONE)))


def _jumping(node: Node) -> Set[int]:
    is_power = node.op == "power" and node.args[1].op == "const" and node.args[1].attr > 0
    if (is_power or node.op == "sqrt") and (_is_square(node.args[0]) or interval(node.args[0]).low >= 0):
        return _NONE  # there is one on both sides of a change
    return {*range(len(node.args))} - _SMOOTH.get(node.op, _NONE)


def _is_square(node: Node, depth: int = _DEPTH) -> bool:
    """Whether a value is a square, or a sum of squares, the root of which is a length."""
    if node.op == "add":
        return depth > 0 and all(_is_square(arg, depth - 1) for arg in node.args)
    return node.op == "mul" and node.args[0] is node.args[1]


def _dividing(node: Node) -> Set[int]:
    return {1} if node.op in _DIVISIONS else _NONE


def _reached(program: Section, found: set[Node], needs: _Needs) -> set[Node]:
    """The values from which something that has to be right is made."""
    _follow(program.nodes, found, needs)
    return found


def _follow(nodes: Iterable[Node], found: set[Node], needs: _Needs) -> None:
    """Adds these, from the last value back."""
    for node in reversed([*nodes]):
        if node.op == "loop":
            _follow_loop(node, found, needs)
        elif node not in found:
            places = needs(node)
            found.update(arg for at, arg in enumerate(node.args) if at in places)
        elif node.op == "loop_out":
            found.add(node.args[0].attr.following[node.attr])
        else:
            found.update(node.args)


def _follow_loop(loop: Node, found: set[Node], needs: _Needs) -> None:
    """Each step of a loop starts from the one before, so the loop is gone through until nothing is added."""
    body, before = loop.attr, -1
    found.update(loop.args[:2])
    while before < len(found):
        before = len(found)
        _follow(body.nodes, found, needs)
        for carried, start, following in zip(body.carried, loop.args[2:], body.following, strict=True):
            if carried in found or following in found:
                found.update((start, following))
