"""How large the values of a program get."""

from __future__ import annotations

from weft.codegen.base import Kernel
from weft.codegen.clike.read import ElementProgram
from weft.codegen.native.ranges import interval
from weft.codegen.values import Line, Node, Scalar
from weft.ops.intervals import ANYWHERE, UNIT, Interval


class Bounds:
    """What is known beforehand of the values of one program."""

    def __init__(self, kernel: Kernel, program: ElementProgram) -> None:
        self._over_picture = kernel.sweep == "grid"
        self._once = program.once

    def size(self, node: Node) -> float:
        """What the size of a value does not exceed unless it is NaN; infinite where nothing is known."""
        return interval(node, self._given).size

    def _given(self, node: Node) -> Interval:
        match node.attr:
            case Scalar("local", int(number)):
                return interval(self._once[number], self._given)
            case Line("coord", "x" | "y") if self._over_picture:
                return UNIT
        return ANYWHERE
