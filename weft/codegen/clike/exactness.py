"""Which quotients, roots and waves of a program have to be right to their last digits, and which zeros in their signs.

Graphics cards divide with an error of two units in the last place or more, so that x / x may be 0.99999994, and find
roots likewise. A pixel does not show that, but `floor(x / x)` does. Of a wave, few more digits are lost, and they are
seen only where they count many times: where it is a divisor, or the period of a remainder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from types import MappingProxyType
from typing import TypeAlias

from weft.codegen.native.dataflow import interval
from weft.codegen.values import LEAVES, Node, Section

_Needs: TypeAlias = "Callable[[Node], Iterable[Node]]"
"""The values that have to be right for a value that need not be. It may be one of them. All that is made of it has been
asked about before."""

# Operations that change little if the operands at these places do. With others, they may jump: a floor, a comparison.
_BOTH, _NONE = frozenset({0, 1}), frozenset[int]()
_SMOOTH: Mapping[str, Set[int]] = MappingProxyType({
    **dict.fromkeys(("add", "sub", "mul", "min", "max", "neg", "abs"), _BOTH),
    **dict.fromkeys(("sinpi", "cospi", "sin", "cos", "exp", "exp2"), _BOTH),
    "div": frozenset({0}), "select": frozenset({1, 2}), "loop_out": _BOTH,
})  # fmt: skip

# The operands of which a few units of the last digit make no jump, but whether they are 0, and their sign: a divisor,
# what a root is taken of, what is compared with 0.
_SCALED: Mapping[str, Set[int]] = MappingProxyType(
    {"div": frozenset({1}), "sqrt": frozenset({0}), "power": frozenset({0}), "eq": _BOTH, "ne": _BOTH}
)

# Operations that have a few such units more than their operands at these places, and are 0 where these are.
_PRODUCTS: Mapping[str, Set[int]] = MappingProxyType({
    **dict.fromkeys(("mul", "div", "neg", "abs", "sqrt", "min", "max"), _BOTH),
    "power": frozenset({0}), "select": frozenset({1, 2}),
})  # fmt: skip

_INEXACT = frozenset({"div", "sqrt"})

_DIVISIONS = frozenset({"div", "mod"})

# The operands of operations that are different for -0, but for the sign of a 0.
_SIGNED_ZEROS: Mapping[str, Set[int]] = MappingProxyType(
    {"div": frozenset({1}), "mod": frozenset({1}), "atan2": _BOTH, "power": _BOTH}
)


def exact_values(program: Section, is_read: bool = False) -> frozenset[Node]:
    """Finds these. Whatever a program stores has to be right, since what reads it may jump, and so do its outputs if
    other subgraphs read them (`is_read`)."""
    numbers = (node for node in _reached(program, _given(program, is_read), _Jumping()) if node.op in _INEXACT)
    waves = (node for node in _reached(program, set(), _dividing) if node.op in ("sinpi", "cospi"))
    return frozenset((*numbers, *waves))


def signed_zeros(program: Section, is_read: bool = False) -> frozenset[Node]:
    """Finds the values of which it shows whether a 0 is -0, likewise."""
    return frozenset(_reached(program, _given(program, is_read), _zero_signs))


def _given(program: Section, is_read: bool) -> set[Node]:
    """What others are given to read."""
    outputs = program.outputs if is_read else ()
    return {*(store.value for store in program.stores), *program.locals.values(), *outputs}


def _zero_signs(node: Node) -> Iterator[Node]:
    places = _SIGNED_ZEROS.get(node.op, _NONE)
    return (arg for at, arg in enumerate(node.args) if at in places)


class _Jumping:
    """The values from which something may jump."""

    def __init__(self) -> None:
        self._scaled: set[Node] = set()
        """Those of which it counts whether they are 0, and their sign."""

    def __call__(self, node: Node) -> Iterator[Node]:
        if node in self._scaled and node.op not in LEAVES and not _keeps_its_sign(node):
            if node.op in _PRODUCTS:
                self._scaled.update(arg for at, arg in enumerate(node.args) if at in _PRODUCTS[node.op])
            else:
                yield node  # it may be 0 though its operands are not
        smooth, scaled = _SMOOTH.get(node.op, _NONE), _SCALED.get(node.op, _NONE)
        if node.op in ("eq", "ne") and not any(arg.op == "const" and arg.attr == 0 for arg in node.args):
            scaled = _NONE
        if node.op in ("sqrt", "power") and interval(node.args[0]).low >= 0:
            scaled, smooth = _NONE, _BOTH  # there is one on both sides of a change
        for at, arg in enumerate(node.args):
            if at in scaled:
                self._scaled.add(arg)
            elif at not in smooth:
                yield arg


def _keeps_its_sign(node: Node) -> bool:
    """Whether a sum has one sign with all operands that are near its own. Of squares, it is a length."""
    low, high = interval(node)
    return low > 0 or high < 0 or (node.op in ("add", "sub") and low >= 0)


def _dividing(node: Node) -> Sequence[Node]:
    return node.args[1:2] if node.op in _DIVISIONS else ()


def _reached(program: Section, found: set[Node], needs: _Needs) -> set[Node]:
    """The values from which something that has to be right is made."""
    _follow(program.nodes, found, needs)
    return found


def _follow(nodes: Iterable[Node], found: set[Node], needs: _Needs) -> None:
    """Adds these, from the last value back."""
    for node in reversed([*nodes]):
        if node.op == "loop":
            _follow_loop(node, found, needs)
            continue
        if node not in found:
            found.update(needs(node))
        if node in found and node.op == "loop_out":
            found.add(node.args[0].attr.following[node.attr])
        elif node in found:
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
