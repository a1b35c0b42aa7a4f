"""The launch prologue: numbers that are the same in a whole launch. The CPU computes them in double precision,
interpreted at first and as machine code once that has been compiled, and packs them into a block for a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from weft.backends.executor import RefusedError, making
from weft.backends.launch import Launch
from weft.backends.memory import StateMemory
from weft.backends.native.llvm import ArgumentBlock, Functions, NativeCode, host, machine_code, problem
from weft.backends.vm import Interpreter, Machine
from weft.codegen.clike.shader import LaunchExtent, Past, Shader, Source
from weft.codegen.kernel import Kernel
from weft.codegen.native.layout import Head, PictureWord, Word
from weft.codegen.native.module import FRAME, emit_prologue, prologue_length
from weft.codegen.native.target import TIERS
from weft.codegen.values import Scalar
from weft.ir.rates import Rate

# Fewer values are interpreted in less time than it takes to pass a block of arguments to machine code.
_WORTH_CODE = 42

_LEVEL = TIERS[max(TIERS)].level


def is_improvable(kernel: Kernel) -> bool:
    """Whether machine code for the prologue of a kernel is worth compiling, and this machine can compile it."""
    return prologue_length(kernel) > _WORTH_CODE and problem() is None


def prologue_code(kernel: Kernel) -> NativeCode | None:
    """The code of a kernel's prologue; None if it cannot be compiled, or is not worth it."""
    processor = host() if is_improvable(kernel) else None
    if processor is None:
        return None
    try:
        with making("machine code"):
            module = emit_prologue(kernel, processor.isa)
        if module is None:
            return None
        return NativeCode(module.layout, machine_code(module.text, processor, _LEVEL), max(TIERS))
    except RefusedError:
        return None  # the interpreter computes it


class PrologueMachine:
    """Runs the prologue of a kernel as machine code."""

    def __init__(self, kernel: Kernel, code: NativeCode) -> None:
        self._kernel = kernel
        self._functions = Functions(code)
        layout = code.layout
        self._block = block = ArgumentBlock(layout)
        # Between ticks, the values stored last are already one tick old.
        self._finished = 1 if kernel.sweep == "points" else 0
        self._scalars = np.zeros(len(layout.scalars))
        block.set_array(Word.SCALARS, self._scalars, np.float64, len(self._scalars), writes=True)
        placed = [(at, int(scalar.key), scalar.kind) for at, scalar in enumerate(layout.scalars)]
        self._reals = [(at, number) for at, number, kind in placed if kind == "float"]
        self._others = [(2 * at, number) for at, number, kind in placed if kind != "float"]
        self._coords = [name for name, rate in kernel.coords if rate <= Rate.FRAME]
        self._given = [field for field in layout.fields if not isinstance(field, Word)]

    def begin(self, memory: StateMemory, launch: Launch) -> Machine:
        """A machine with those values of the prologue that are read later. Writes the next values of number slots to
        the memory."""
        block = self._block
        block.give_numbers(launch)
        for field in self._given:
            block.give(field, self._kernel, memory, launch, self._finished)
        block.set_number(Word.WIDTH, launch.shape[1])
        block.set_number(Word.HEIGHT, launch.shape[0])
        block.set_number(Word.STOPPED, 0)
        self._functions.call(FRAME, block)
        found = [0.0] * len(self._kernel.locals)
        reals, wholes = self._scalars.tolist(), self._scalars.view(np.uint32)
        for at, number in self._reals:
            found[number] = reals[at]
        for at, number in self._others:
            found[number] = float(wholes[at])
        coords = {name: float(launch.coords[name]) for name in self._coords}
        return Machine(launch, memory, found, coords, loop_stopped=bool(block.number(Word.STOPPED)))


# The prologue of a program on a card, and its block of numbers.

_TYPES = {"float": np.float32, "int": np.int32, "u32": np.uint32, "bool": np.uint32}

# Drivers may require a block's size to be a multiple of four numbers.
_FOUR = 4

_Number: TypeAlias = Callable[[Machine, int], float]


class LaunchPrologue:
    """The prologue of a kernel: interpreted until there is machine code for it."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._interpreter = Interpreter.of_prologue(kernel)
        self._machine: PrologueMachine | None = None

    @property
    def tier(self) -> int | None:
        """1 while it is interpreted and machine code would be worth compiling; 2 with machine code; else None."""
        if self._machine is not None:
            return 2
        return 1 if is_improvable(self.kernel) else None

    def upgrade(self, code: NativeCode) -> None:
        """Runs machine code from the next launch on. May be called from any thread."""
        self._machine = PrologueMachine(self.kernel, code)

    def begin(self, memory: StateMemory, launch: Launch) -> Machine:
        """Runs the prologue of a launch. Writes the next values of number slots to the memory."""
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
        """The block of a launch; `finished` is 1 for programs that read state between ticks, else 0. It is valid until
        the next one is packed."""
        with np.errstate(all="ignore"):
            for words, places, numbers in self._groups:
                values = [number(machine, finished) for number in numbers]
                words[places] = values if words.dtype == np.float32 else [int(value) for value in values]
        return self._words

    def empty(self) -> npt.NDArray[np.uint32]:
        """A block of zeros."""
        return np.zeros_like(self._words)


def line(given: Any, count: int) -> npt.NDArray[np.float32]:
    """A coordinate of `count` points in single precision, from one number or a number for each."""
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(np.broadcast_to(np.asarray(given, np.float32), count))


def _reader(source: Source) -> _Number:
    match source:
        case Scalar(given, key):
            return lambda machine, _: float(machine.value_of(given, key))
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
    raise LookupError(f"{source} has no value in a launch")
