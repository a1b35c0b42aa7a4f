"""The numbers that are the same in a whole launch: computed by the processor in double precision, and packed into one
block for a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from weft.backends.interpreter import Interpreter, Machine
from weft.backends.launch import Launch
from weft.backends.memory import StateMemory
from weft.backends.prologue_code import PrologueCode, PrologueMachine, is_improvable
from weft.codegen.base import Kernel
from weft.codegen.clike.shader import LaunchExtent, Past, Shader, Source
from weft.codegen.native.layout import Head, PictureWord
from weft.codegen.values import Scalar
from weft.ir.rates import Rate

_ONCE = (Rate.CONSTANT, Rate.FRAME)
_TYPES = {"real": np.float32, "int": np.int32, "bits": np.uint32, "truth": np.uint32}

# Drivers may ask for a block's size, rounded up to that of four numbers.
_FOUR = 4

_Number: TypeAlias = Callable[[Machine, int], float]


class Once:
    """What a kernel computes once in a launch: interpreted, until there is machine code for it."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._interpreter = Interpreter(replace(kernel, sections=tuple(s for s in kernel.sections if s.rate in _ONCE)))
        self._machine: PrologueMachine | None = None

    @property
    def tier(self) -> int | None:
        """1 where it is interpreted, and machine code would be worth while; 2 where that is there."""
        if self._machine is not None:
            return 2
        return 1 if is_improvable(self.kernel) else None

    def exchange(self, code: PrologueCode) -> None:
        """Takes machine code into use, from the next launch on. May be called from any thread."""
        self._machine = PrologueMachine(self.kernel, code)

    def begin(self, memory: StateMemory, launch: Launch) -> Machine:
        """Computes it; what slots that are numbers will have been one tick ago is written to the memory."""
        machine = self._machine
        if machine is not None:
            return machine.begin(memory, launch)
        with np.errstate(all="ignore"):
            return self._interpreter.begin(memory, launch)


class PrologueBlock:
    """Packs the block of one program."""

    def __init__(self, shader: Shader) -> None:
        self._words = np.zeros(-(-max(1, len(shader.uniforms)) // _FOUR) * _FOUR, np.uint32)
        self._groups: list[tuple[npt.NDArray[np.generic], list[int], list[_Number]]] = []
        for kind, dtype in _TYPES.items():
            placed = [(at, uniform) for at, uniform in enumerate(shader.uniforms) if uniform.kind == kind]
            if placed:
                numbers = [_reader(uniform.source) for _, uniform in placed]
                self._groups.append((self._words.view(dtype), [at for at, _ in placed], numbers))

    def packed(self, machine: Machine, finished: int) -> npt.NDArray[np.uint32]:
        """The block of a launch; `finished` is 1 for what reads state between ticks, else 0. It is good until the
        next one is packed."""
        with np.errstate(all="ignore"):
            for words, places, numbers in self._groups:
                values = [number(machine, finished) for number in numbers]
                words[places] = values if words.dtype == np.float32 else [int(value) for value in values]
        return self._words

    def empty(self) -> npt.NDArray[np.uint32]:
        """A block of zeros."""
        return np.zeros_like(self._words)


def line(given: Any, count: int) -> npt.NDArray[np.float32]:
    """A coordinate of so many points in single precision, from a number or a number for each."""
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(np.broadcast_to(np.asarray(given, np.float32), count))


def _reader(source: Source) -> _Number:
    """What reads a number of a launch."""
    match source:
        case Scalar("uniform", str(name)):
            return lambda machine, _: float(machine.launch.uniforms[name])
        case Scalar("coord", str(name)):
            return lambda machine, _: float(machine.coords[name])
        case Scalar("local", int(number)):
            return lambda machine, _: float(machine.locals[number])
        case LaunchExtent.ROWS:
            return lambda machine, finished: (machine.memory if finished else machine.launch).shape[0]
        case LaunchExtent.COLUMNS:
            return lambda machine, finished: (machine.memory if finished else machine.launch).shape[1]
        case LaunchExtent.POINTS:
            return lambda machine, _: machine.launch.shape[1]
        case PictureWord(path, "width" | "height" as extent):
            axis = 1 if extent == "width" else 0
            return lambda machine, _: machine.launch.pictures[path].shape[axis]
        case Head(slot):
            return lambda machine, finished: int(machine.memory.cell(slot, finished))
        case Past(slot, plane, k):
            return lambda machine, finished: float(
                machine.memory.ring(slot)[machine.memory.cell(slot, k + finished), plane]
            )
    raise LookupError(f"{source} is given nowhere")
