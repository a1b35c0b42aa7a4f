"""Numbers that change by column or by row, and for which strands of other subgraphs are asked: numpy computes them, a
line at a time, for machine code to go on with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.interpreter import Machine
from weft.backends.vector_nodes import Calls, Values
from weft.codegen.base import Kernel
from weft.codegen.values import Line
from weft.ir.rates import Rate
from weft.ops.spec import ValueType

# In memory, a truth takes as much as the others.
_STORED: Mapping[ValueType, npt.DTypeLike] = {"real": np.float32, "truth": np.uint32, "bits": np.uint32}


class LineReads:
    """The locals of one section that others read, each in an array of 4 bytes an element, which may be longer than the
    line: up to a vector."""

    def __init__(self, kernel: Kernel, rate: Rate, lines: Mapping[Line, npt.NDArray[Any]]) -> None:
        section = kernel.section(rate)
        self._lines = [(section.locals[int(line.key)], array) for line, array in lines.items()]
        self._coords = [name for name, changes in kernel.coords if changes == rate]
        self._calls = Calls(section.nodes)

    def fill(self, machine: Machine) -> None:
        """Computes them for a launch, of which the machine has run what comes once."""
        given = machine.launch.coords
        values = Values(machine, {name: np.asarray(given[name], np.float64) for name in self._coords})
        with np.errstate(all="ignore"):
            self._calls.run(values)
            for node, array in self._lines:
                array.view(_STORED[node.kind])[:] = _stretched(values[node], len(array))


def _stretched(values: Any, length: int) -> npt.NDArray[Any]:
    """A number for each element; the last one as often as there is room."""
    found = np.atleast_1d(values)
    return found[np.minimum(np.arange(length), len(found) - 1)]
