"""Which values of a program are never NaN, whatever its inputs are, and which of these are finite.

A minimum of such a value is the one of the language, and a pixel that is one needs no guard.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan
from typing import Literal, TypeAlias

from weft.codegen.native.dataflow import interval
from weft.codegen.values import Node, Section

_Bound: TypeAlias = Literal["min", "max"]
_BOUNDS: tuple[_Bound, ...] = ("min", "max")

# Numbers below it are finite in single precision, whatever their last digits are.
_MOST_SINGLE = 2.0**127


class SureNumbers:
    """What is known of the values of one program."""

    def __init__(self, program: Section) -> None:
        self._never_nan: set[Node] = set()
        self._limited: set[tuple[Node, _Bound]] = set()
        """Those that have an upper limit ("min") or a lower one ("max"), in single precision."""
        self._look_at(program.nodes)

    def is_never_nan(self, node: Node) -> bool:
        """Whether a value is a number, or infinite."""
        match node:
            case Node("const", attr=float(value)):
                return not isnan(value)
            case Node("scalar"):
                return is_number_input(node)
        return node in self._never_nan

    def _look_at(self, nodes: Iterable[Node]) -> None:
        """Goes through values in their order: a chain of them may be longer than calls may be deep."""
        for node in nodes:
            if node.op == "loop":
                self._look_at(node.attr.nodes)
            elif self._stays_a_number(node):
                self._never_nan.add(node)
                self._limited.update((node, bound) for bound in _BOUNDS if self._finds_limit(node, bound))

    def _stays_a_number(self, node: Node) -> bool:
        match node:
            case Node("min" | "max"):
                return any(map(self.is_never_nan, node.args))  # of a number and a NaN it is the number
            case Node("select", (_, *chosen)):
                return all(map(self.is_never_nan, chosen))
            case Node("add" | "sub"):  # but for ∞ - ∞
                return all(map(self.is_never_nan, node.args)) and any(map(self._is_finite, node.args))
            case Node("mul"):  # but for 0 · ∞
                return all(map(self._is_finite, node.args))
            case Node("neg" | "abs"):
                return self.is_never_nan(node.args[0])
        return False

    def _is_finite(self, node: Node) -> bool:
        return all(self._has_limit(node, bound) for bound in _BOUNDS)

    def _has_limit(self, node: Node, bound: _Bound) -> bool:
        if node.op in ("const", "scalar"):
            return self.is_never_nan(node) and self._finds_limit(node, bound)
        return (node, bound) in self._limited

    def _finds_limit(self, node: Node, bound: _Bound) -> bool:
        """Whether a value that is never NaN has a limit."""
        match node:
            case Node("min" | "max" as op):
                return (any if op == bound else all)(self._has_limit(arg, bound) for arg in node.args)
            case Node("neg" | "abs"):
                return self._is_finite(node.args[0])
        return is_number_input(node) or interval(node).size < _MOST_SINGLE


def is_number_input(node: Node) -> bool:
    """Whether a value is a number that is an input, which is finite."""
    return node.op == "scalar" and node.attr.source == "number"
