"""The reference machine: every element on its own, in double precision. Slow, plain, and can be traced: the oracle of
every parity test."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from weft.backends.executor import NOTHING, Refusals, check, pack_planes
from weft.backends.interpreter import Interpreter, Machine, Trace
from weft.backends.launch import Launch, Reals
from weft.backends.memory import StateMemory
from weft.backends.pixels import channels
from weft.codegen.base import Kernel
from weft.ir.rates import Rate


class ReferenceExecutor:
    """Makes kernels ready for the reference machine. `trace` is called with every instruction that is executed."""

    name = "vm"
    widest = np.float64

    def __init__(self, trace: Trace | None = None) -> None:
        self._trace = trace
        self.refusals = Refusals()

    def translate(self, kernel: Kernel, packed: bool, tier: int = 1) -> None:
        if packed:
            channels(len(kernel.outputs))

    def load(self, kernel: Kernel, codes: Mapping[bool, object] = NOTHING) -> ReferenceExecutable:
        return ReferenceExecutable(kernel, self._trace)


class ReferenceExecutable:
    """A kernel on the reference machine; see `Executable`."""

    tier = None

    def __init__(self, kernel: Kernel, trace: Trace | None = None) -> None:
        self.kernel = kernel
        self._interpreter = Interpreter(kernel, trace)
        self._coords = {r: [name for name, rate in kernel.coords if rate == r] for r in Rate}
        self._locals = {r: [n for n, local in enumerate(kernel.locals) if local.rate == r] for r in Rate}

    def planes(self, memory: StateMemory, launch: Launch) -> Reals:
        check(self.kernel, memory, launch)
        with np.errstate(all="ignore"):
            machine = self._interpreter.begin(memory, launch)
            out = self._sweep(machine)
        if self.kernel.sweep == "grid" and self.kernel.tick == "launch":
            memory.advance()
        if machine.loop_stopped:
            launch.loop_stopped()
        return out

    def rgba8(self, memory: StateMemory, launch: Launch, out: npt.NDArray[np.uint8]) -> None:
        pack_planes(self, memory, launch, out)

    def _sweep(self, machine: Machine) -> Reals:
        """Runs the sections over all columns, rows and elements."""
        height, width = machine.launch.shape
        out = np.empty((len(self.kernel.outputs), height, width))
        by_column = [self._line(machine, Rate.COLUMN, at) for at in range(width)]
        columns = self._locals[Rate.COLUMN]
        for row in range(height):
            self._line(machine, Rate.ROW, row)
            for column in range(width):
                self._restore(machine, columns, by_column[column])
                self._set_coords(machine, Rate.COLUMN, column)
                self._set_coords(machine, Rate.ELEMENT, column)
                machine.row, machine.column = row, column
                self._interpreter.run(Rate.ELEMENT, machine)
                out[:, row, column] = machine.stack
                machine.stack.clear()
                if self.kernel.tick == "element" and self.kernel.sweep == "grid":
                    machine.memory.advance()
        return out

    def _line(self, machine: Machine, rate: Rate, at: int) -> list[float]:
        """Runs the column or row section for one of them; gives the locals of that section."""
        self._set_coords(machine, rate, at)
        self._interpreter.run(rate, machine)
        return [machine.locals[number] for number in self._locals[rate]]

    def _restore(self, machine: Machine, numbers: list[int], values: list[float]) -> None:
        for number, value in zip(numbers, values, strict=True):
            machine.locals[number] = value

    def _set_coords(self, machine: Machine, rate: Rate, at: int) -> None:
        for name in self._coords[rate]:
            given = machine.launch.coords[name]
            machine.coords[name] = float(given[at] if isinstance(given, np.ndarray) and given.ndim else given)
