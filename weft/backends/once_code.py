"""What comes once in a launch of a graphics card, as machine code. It takes a while to make, so it comes behind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.backends import llvm
from weft.backends.executor import RefusedError, making
from weft.backends.interpreter import Machine
from weft.backends.launch import Launch
from weft.backends.llvm import Functions
from weft.backends.memory import StateMemory
from weft.backends.native_call import ArgumentBlock, call
from weft.codegen.base import Kernel
from weft.codegen.native.frame import FRAME
from weft.codegen.native.layout import CHANNELS, Field, Head, History, PictureWord, Word
from weft.codegen.native.once import PrologueLayout, emit_prologue, prologue_length
from weft.codegen.native.target import TIERS
from weft.ir.rates import Rate

# So few values are interpreted in less time than it takes to hand a block of arguments to machine code.
_WORTH_CODE = 42

_LEVEL = TIERS[max(TIERS)].level


@dataclass(frozen=True, slots=True)
class PrologueCode:
    """An object file for this machine, and how its function is called. It can be pickled."""

    layout: PrologueLayout
    code: bytes


def is_improvable(kernel: Kernel) -> bool:
    """Whether machine code of what comes once in a launch would be worth making, on a machine that can make any."""
    return prologue_length(kernel) > _WORTH_CODE and llvm.problem() is None


def prologue_code(kernel: Kernel) -> PrologueCode | None:
    """The code of a kernel; None where there is none, or it is not worth it."""
    processor = llvm.host() if is_improvable(kernel) else None
    if processor is None:
        return None
    try:
        with making("machine code"):
            module = emit_prologue(kernel, processor.isa)
        return PrologueCode(module.layout, llvm.machine_code(module.text, processor, _LEVEL)) if module else None
    except RefusedError:
        return None  # the interpreter computes it


class PrologueMachine:
    """Runs the code of a kernel."""

    def __init__(self, kernel: Kernel, code: PrologueCode) -> None:
        self._kernel = kernel
        self._functions = Functions(code.code, (FRAME,))
        self._layout = layout = code.layout
        self._block = block = ArgumentBlock(layout.fields)
        # Between ticks, what was stored last is one tick ago already.
        self._finished = 1 if kernel.sweep == "points" else 0
        self._numbers = np.zeros(len(layout.numbers))
        block.set_array(Word.NUMBERS, self._numbers, np.float64, len(self._numbers))
        self._scalars = np.zeros(len(layout.scalars))
        block.set_array(Word.SCALARS, self._scalars, np.float64, len(self._scalars), writes=True)
        placed = [(at, int(scalar.key), scalar.kind) for at, scalar in enumerate(layout.scalars)]
        self._reals = [(at, number) for at, number, kind in placed if kind == "real"]
        self._others = [(2 * at, number) for at, number, kind in placed if kind != "real"]
        self._coords = [name for name, rate in kernel.coords if rate <= Rate.FRAME]
        self._given = [field for field in layout.fields if not isinstance(field, Word)]

    def begin(self, memory: StateMemory, launch: Launch) -> Machine:
        """A machine with all that comes once in a launch, as far as it is read later; what slots that are numbers will
        have been one tick ago is written to the memory."""
        block, numbers = self._block, self._numbers
        for at, scalar in enumerate(self._layout.numbers):
            numbers[at] = (launch.uniforms if scalar.source == "uniform" else launch.coords)[str(scalar.key)]
        for field in self._given:
            self._give(field, memory, launch)
        block.set_number(Word.WIDTH, launch.shape[1])
        block.set_number(Word.HEIGHT, launch.shape[0])
        block.set_number(Word.STOPPED, 0)
        call(self._functions, FRAME, block)
        found = [0.0] * len(self._kernel.locals)
        reals, wholes = self._scalars.tolist(), self._scalars.view(np.uint32)
        for at, number in self._reals:
            found[number] = reals[at]
        for at, number in self._others:
            found[number] = float(wholes[at])
        coords = {name: float(launch.coords[name]) for name in self._coords}
        return Machine(launch, memory, found, coords, loop_stopped=bool(block.number(Word.STOPPED)))

    def _give(self, field: Field, memory: StateMemory, launch: Launch) -> None:
        match field:
            case Head(slot):
                self._block.set_number(field, memory.cell(slot, self._finished))
            case History(slot):
                ring = memory.ring(slot)
                self._block.set_array(field, ring, np.float64, ring.size, writes=True)
            case PictureWord(path, "pixels"):
                picture = np.ascontiguousarray(launch.pictures[path], np.float32)
                height, width, _ = picture.shape
                self._block.set_array(field, picture, np.float32, height * width * CHANNELS)
            case PictureWord(path, what):
                self._block.set_number(field, launch.pictures[path].shape[1 if what == "width" else 0])
