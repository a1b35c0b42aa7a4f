"""Numbers that change by column or by row, and for which strands of other subgraphs are asked: numpy computes them, a
line at a time, for machine code to go on with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.interpreter import Machine
from weft.backends.launch import Launch
from weft.codegen.base import Kernel
from weft.codegen.native.layout import Line, Scalar
from weft.codegen.native.nodes import Node
from weft.codegen.native.reader import read
from weft.ir.rates import Rate
from weft.ops import OPS
from weft.ops.spec import ValueType

_TYPES: Mapping[ValueType, type[np.generic]] = {"real": np.float64, "truth": np.bool_, "bits": np.uint32}

# In memory, a truth takes as much as the others.
_STORED: Mapping[ValueType, npt.DTypeLike] = {"real": np.float32, "truth": np.uint32, "bits": np.uint32}


class AskedLines:
    """The locals of one section that others read, each in an array of 4 bytes an element, which may be longer than the
    line: up to a vector."""

    def __init__(self, kernel: Kernel, rate: Rate, lines: Mapping[Line, npt.NDArray[Any]]) -> None:
        graph = read(kernel, rate)
        self._lines = [(graph.locals[int(line.key)], array) for line, array in lines.items()]
        self._nodes = graph.nodes

    def fill(self, machine: Machine) -> None:
        """Computes them for a launch, of which the machine has run what comes once."""
        values: dict[Node, Any] = {}
        with np.errstate(all="ignore"):
            for node in self._nodes:
                values[node] = _computed(node, [_value(arg, values, machine) for arg in node.args], machine.launch)
            for node, array in self._lines:
                array.view(_STORED[node.kind])[:] = _stretched(_value(node, values, machine), len(array))


def _value(node: Node, values: Mapping[Node, Any], machine: Machine) -> Any:
    match node.op, node.attr:
        case ("const" | "bits"), number:
            return _as(number, node.kind)
        case "scalar", Scalar("uniform", str(name)):
            return np.float64(machine.launch.uniforms[name])
        case "scalar", Scalar("coord", str(name)):
            return np.float64(machine.coords[name])
        case "scalar", Scalar("local", int(number)):
            return _as(machine.locals[number], node.kind)
        case "line", Line(_, name):
            return np.asarray(machine.launch.coords[str(name)], np.float64)
    return values[node]


def _as(number: float, kind: ValueType) -> Any:
    """A number as numpy has it. Bits are whole."""
    return _TYPES[kind](int(number) if kind == "bits" else number)


def _computed(node: Node, args: Sequence[Any], launch: Launch) -> Any:
    if node.op == "strand":
        return np.asarray(launch.strands[node.attr](*args), np.float64)
    row = OPS[node.op]
    arrays = [np.atleast_1d(arg) for arg in args]
    out = np.empty(np.broadcast_shapes(*(array.shape for array in arrays)), _TYPES[row.gives])
    if isinstance(row.vector, str):
        getattr(np, row.vector)(*arrays, out=out)
    elif row.vector is not None:
        row.vector(np, out, *arrays, *(np.empty(out.shape) for _ in range(row.temps)))
    return out


def _stretched(values: Any, length: int) -> npt.NDArray[Any]:
    """A number for each element; the last one as often as there is room."""
    found = np.atleast_1d(values)
    return found[np.minimum(np.arange(length), len(found) - 1)]
