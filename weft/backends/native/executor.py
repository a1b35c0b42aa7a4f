"""The native executor: kernels as machine code or lists of calls, and pictures on one thread or several."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.executors import (
    NOTHING, BandPool, Executable, Executor, Refusal, Refusals, Refused, RefusedError, check, load_stages,
    refusing_failures, translate_stages
)
from weft.backends.launch import Floats, Launch, StateMemory, Value, aligned_zeros, channels, check_picture
from weft.backends.native.llvm import (
    ArgumentBlock, BegunCode, Functions, NativeCode, Processor, TileFunctions, assembly, host, linked, machine_code,
    numbers_given
)
from weft.backends.native.samples import SeriesExecutable
from weft.backends.prologue import LineReads
from weft.backends.vector.machine import Code, VectorExecutor
from weft.backends.vector.steps import shared_bits
from weft.backends.vm import Interpreter, Machine, ReferenceExecutable, ReferenceExecutor
from weft.codegen.kernel import Kernel, structure_hash
from weft.codegen.native.chunks import decides_chunks, emit_chunks
from weft.codegen.native.module import FRAME, IN_ORDER, Module, decides_code, emit, registers
from weft.codegen.native.plan import Form, KernelDomain, NativePlan, domain_of, plan
from weft.codegen.native.series import emit_series
from weft.codegen.native.target import DOUBLE, SINGLE, TIERS, Tier, Word, exactly, single
from weft.codegen.native.tiles import TileEmitter, TileProgram
from weft.codegen.native.writer import WHOLE
from weft.codegen.open_numbers import OpenKernel, OpenKernels, without_numbers
from weft.codegen.values import Line, Scalar
from weft.ir.rates import Rate
from weft.recently_used import RecentlyUsed

# Pictures, over vectors, on one thread or several.

# Below this many additions, waking a thread takes longer than it saves.
_WORTH_A_THREAD = 10_000_000

# Bands for each thread: if a thread is held up, the others take its remaining bands.
_BANDS = 64


@dataclass(slots=True)
class _Coordinate:
    """A coordinate that changes by column or row: `count` numbers in an array that is padded to a vector, and the value
    that it was filled from."""

    name: str
    count: int
    array: npt.NDArray[np.float32]
    given: Value | None = None

    def fill(self, given: Value) -> None:
        if given is self.given:
            return
        if np.shape(given) not in ((self.count,), ()):
            raise ValueError(f"{self.name}: {np.shape(given)} coordinates, not {self.count}")
        with np.errstate(all="ignore"):
            self.array[: self.count] = given
        self.array[self.count :] = self.array[self.count - 1]
        self.given = given


class LaunchBuffers:
    """A kernel's code with the memory that it needs for one size of picture."""

    def __init__(self, kernel: Kernel, functions: Functions | TileFunctions, shape: tuple[int, int]) -> None:
        self._kernel = kernel
        self._functions = functions
        self._layout = layout = functions.layout
        self._shape = height, width = shape
        if width < layout.lanes:
            raise ValueError(f"code for vectors of {layout.lanes} would leave a picture of {width} columns")
        self._pixels = height * width
        self._block = block = ArgumentBlock(layout)
        places = (Word.OUT, Word.BAND, Word.NEXT, Word.STOPPED, Word.BASE)
        self._out, self._band, self._next, self._stopped, self._base = map(block.place, places)
        block.words[block.place(Word.WIDTH)], block.words[block.place(Word.HEIGHT)] = width, height
        self._scalars = np.zeros(len(layout.scalars), np.uint32)
        block.set_array(block.place(Word.SCALARS), self._scalars, np.uint32, len(layout.scalars))
        self._reals = self._scalars.view(np.float32)
        placed = [
            (at, scalar) for at, scalar in enumerate(layout.scalars)
            if isinstance(scalar, Scalar) and scalar.source != "number"
        ]  # fmt: skip
        for at, number in numbers_given(layout.scalars, layout):
            self._reals[at] = single(number)
        self._real_scalars = [scalar for _, scalar in placed if scalar.kind == "float"]
        self._real_places = np.array([at for at, scalar in placed if scalar.kind == "float"], np.intp)
        self._other_scalars = [(at, scalar) for at, scalar in placed if scalar.kind != "float"]
        self._coordinates: list[_Coordinate] = []
        reading = sorted(layout.sections_that_read)
        lines: dict[Rate, dict[Line, npt.NDArray[np.float32]]] = {rate: {} for rate in reading}
        for field in layout.fields:
            if isinstance(field, Line):
                count = width if field.rate == Rate.COLUMN else height
                array = aligned_zeros(max(count, layout.lanes), np.float32)
                block.set_array(block.place(field), array, np.float32, array.size)
                if field.source == "coord":
                    self._coordinates.append(_Coordinate(str(field.key), count, array))
                elif field.source == "local" and field.rate in lines:
                    lines[field.rate][field] = array
        self._line_reads = [LineReads(kernel, rate, arrays) for rate, arrays in lines.items()]
        borrowed = [field for field in layout.fields if not isinstance(field, (Word, Line))]
        self._fillers = [block.filler(field, kernel) for field in borrowed]
        """The functions that fill in the arguments which may differ in each launch."""
        self._borrowed = [self._out, *map(block.place, borrowed)]
        self.has_frame = FRAME in functions
        """Whether the code computes the launch prologue. If not, `prepare` needs a machine that has run it."""
        self._most_threads = height if height * width * layout.work >= _WORTH_A_THREAD else 1
        self._parts = [functions.function(name, block) for name in IN_ORDER if name in functions]
        self._whole = [functions.function(WHOLE, block)] if WHOLE in functions else self._parts
        """The function that one thread runs."""

    @property
    def loop_stopped(self) -> bool:
        return bool(self._block.words[self._stopped])

    def prepare(self, memory: StateMemory, launch: Launch, machine: Machine | None, out: npt.NDArray[Any]) -> None:
        """Fills in the arguments of one launch. Raises KeyError or ValueError if something does not fit."""
        block = self._block
        if out.dtype == np.float32:
            block.set_array(self._out, out, np.float32, len(self._kernel.outputs) * self._pixels, writes=True)
        else:
            if not block.knows(self._out, out):
                check_picture(out, self._shape)
            block.set_array(self._out, out, np.uint32, self._pixels, writes=True)
        block.words[self._stopped] = 0
        if machine is not None:
            self._take_over(machine)
        block.give_numbers(launch)
        for coordinate in self._coordinates:
            coordinate.fill(launch.coords[coordinate.name])
        for fill in self._fillers:
            fill(memory, launch)

    def _take_over(self, machine: Machine) -> None:
        """Fills in the values that a machine has computed in the prologue."""
        self._block.words[self._base] = shared_bits(self._layout, machine)
        with np.errstate(all="ignore"):
            self._reals[self._real_places] = [machine.value_of(source, key) for source, key, *_ in self._real_scalars]
        for at, scalar in self._other_scalars:
            self._scalars[at] = int(machine.value_of(scalar.source, scalar.key))
        for lines in self._line_reads:
            lines.fill(machine)

    def run(self, most: int, pool: BandPool) -> None:
        """Computes the lines, then the elements, with at most `most` threads, which share the bands of rows."""
        words, threads = self._block.words, min(most, self._most_threads)
        words[self._next] = 0
        if threads == 1:
            words[self._band] = self._shape[0]
            for function in self._whole:
                function()
            return
        words[self._band] = max(1, self._shape[0] // (threads * _BANDS))
        *lines, elements = self._parts
        for function in lines:
            function()
        pool.run(lambda number: elements(), threads, threads * _BANDS)

    def release(self) -> None:
        """Releases the caller's arrays."""
        self._block.release(self._borrowed)


# The executor, and kernels that it has loaded.

# The number of launch sizes for which a kernel keeps buffers.
_SIZES = 4


@dataclass(frozen=True, slots=True)
class Listing:
    """A kernel in LLVM's language, as readable text, and the processor for which it is compiled."""

    llvm: str
    processor: Processor
    level: int

    def assembly(self) -> str:
        return assembly(self.llvm, self.processor, self.level)


# The number of kernels whose code is kept for kernels that differ from them in constants only.
_TUNED = 24

# The number of unfinished compilations that are remembered.
_BEGUN = 4


class NativeExecutor:
    """Compiles kernels to machine code. Those that it cannot compile run on the vector machine."""

    name = "native"
    widest = np.float32

    def __init__(self, processor: Processor | None = None, lanes: int | None = None) -> None:
        """Compiles for this machine, or for a plainer `processor` of the same family. `lanes` fixes the width of
        vectors; by default it depends on the processor and the tier."""
        self._processor = processor
        self._lanes = lanes
        self._plainer: Executor = VectorExecutor()
        self._pool = BandPool()
        self.refusals: Refusals = self._plainer.refusals
        self._kept: RecentlyUsed[tuple[str, bool], NativeCode | TileProgram] = RecentlyUsed(_TUNED)
        """Code of the second tier for pictures, and lists of calls for sounds, by the hashes of their open kernels."""
        self._lists = OpenKernels(decides_chunks)
        self._codes: OpenKernels | None = None
        self._begun: RecentlyUsed[tuple[str, bool], BegunCode] = RecentlyUsed(_BEGUN)
        self._prologues: RecentlyUsed[str, Interpreter] = RecentlyUsed(_TUNED)
        """The interpreters of launch prologues, by the structures of their kernels."""
        """The code that LLVM may still be compiling, by the same keys as the code that is kept."""
        self._plans: RecentlyUsed[str, NativePlan] = RecentlyUsed(_TUNED)
        """By the structures of the kernels."""
        self._tiles = TileEmitter()

    @property
    def processor(self) -> Processor:
        found = self._processor or host()
        assert found is not None, "checked before a native executor is made"
        return found

    def plan(self, kernel: Kernel) -> NativePlan:
        """How a kernel without stages runs."""
        key = structure_hash(kernel)
        if (known := self._plans.find(key)) is None:
            known = plan(kernel, lists=self._lanes is None)
            self._plans.keep(key, known)
        return known

    def translate(self, kernel: Kernel, packed: bool, tier: int = 1) -> object | None:
        if kernel.stages:
            return translate_stages(self, kernel, packed, tier)
        is_translated = packed != (domain_of(kernel) is KernelDomain.SOUND) or kernel.tick == "never"
        if tier == 1 and is_translated and (made := self._again(kernel, packed)) is not None:
            return made
        how = self.plan(kernel)
        if how.first is None:
            return self._plainer.translate(kernel, packed, tier)
        # Kernels for planes of pictures read single values, or belong to contexts of one element. These are not
        # compiled.
        if not is_translated:
            return None
        if tier not in TIERS or (tier > 1 and how.second is None):
            return None
        if packed:
            channels(len(kernel.outputs))
        try:
            return self.code(kernel, packed, tier) if tier > 1 else self.first(kernel, packed)
        except RefusedError as failure:
            return Refused(str(failure), self._plainer.translate(kernel, packed, tier))

    def first(self, kernel: Kernel, packed: bool, narrow: bool = False) -> NativeCode | TileProgram:
        """The code of the first tier: a list of calls if possible, else machine code; see `code`. Raises
        RefusedError."""
        how = self.plan(kernel)
        if how.first is Form.LIST:
            with refusing_failures("list of calls"):
                found = self._list(kernel, packed)
            if found is not None:
                return found
            if how.second is None:
                raise RefusedError("it has too many values at once")
        return self.code(kernel, packed, 1, narrow)

    def refuse(self, kernel: Kernel, reason: str) -> None:
        """Notes that a kernel runs on the vector machine because it could not be compiled."""
        self.refusals.add(Refusal(kernel.name, self.name, self._plainer.name, reason))

    def code(self, kernel: Kernel, packed: bool, tier: int, narrow: bool = False) -> NativeCode:
        """The machine code of a kernel that can have some: a sound, or a picture at least as wide as a vector, or of
        any width if `narrow`. Raises RefusedError."""
        if tier == 1:
            module = self._module(without_numbers(kernel), packed, tier, narrow)
            code = machine_code(module.text, self.processor, self._settings(kernel, tier).level)
            return NativeCode(module.layout, code, tier)
        if narrow or domain_of(kernel) is KernelDomain.SOUND:
            return self._begin(without_numbers(kernel), packed, tier, narrow).finished()
        made = self._lasting(self._opened(kernel).of(kernel), packed, tier)
        return replace(made, layout=replace(made.layout, given=kernel.numbers))

    def _lasting(self, found: OpenKernel, packed: bool, tier: int) -> NativeCode:
        """The code of all kernels that an open one serves. If the wait for it is interrupted, the compilation
        continues, and its result is there the next time."""
        key = found.hash, packed
        made = self._kept.find(key)
        if isinstance(made, NativeCode):
            return made
        begun = self._begun.find(key)
        if begun is None or begun.is_left_out:
            begun = self._begin(found.kernel, packed, tier)
            self._begun.keep(key, begun)
        made = begun.finished()
        self._kept.keep(key, made)
        self._begun.forget(key)
        return made

    def _begin(self, kernel: Kernel, packed: bool, tier: int, narrow: bool = False) -> BegunCode:
        """Begins to compile code, at a low priority."""
        module = self._module(kernel, packed, tier, narrow)
        return BegunCode.of(module.text, module.layout, self.processor, self._settings(kernel, tier).level, tier)

    def _list(self, kernel: Kernel, packed: bool) -> TileProgram | None:
        """The list of calls of a kernel that can be one; None if it takes too much memory."""
        if domain_of(kernel) is KernelDomain.PICTURE:
            return self._tiles.emit(kernel, packed)
        opened = self._lists.of(kernel)
        found = emit_chunks(opened.kernel)
        self._kept.keep((opened.hash, packed), found)
        return replace(found, layout=replace(found.layout, given=kernel.numbers))

    def _opened(self, kernel: Kernel) -> OpenKernels:
        """Those of lists of calls for a sound, those of machine code for a picture."""
        if domain_of(kernel) is KernelDomain.SOUND:
            return self._lists
        if self._codes is None:
            self._codes = OpenKernels(decides_code(self.processor.isa))
        return self._codes

    def _again(self, kernel: Kernel, packed: bool) -> NativeCode | TileProgram | None:
        """The code of a kernel that differs in numbers only: the list of calls of a sound; for a picture the code of
        the second tier, or else its list. The values of the kernel may not have been read yet, so they are not looked
        at."""
        if (known := self._opened(kernel).known(kernel)) is not None:
            code = self._kept.find((known.hash, packed))
            if code is not None:
                return replace(code, layout=replace(code.layout, given=kernel.numbers))
        return None if domain_of(kernel) is KernelDomain.SOUND else self._tiles.emit_again(kernel, packed)

    def _module(self, kernel: Kernel, packed: bool, tier: int, narrow: bool = False) -> Module:
        isa = self.processor.isa
        lanes = 1 if narrow else self._lanes or self._usual_lanes(kernel, tier)
        with refusing_failures("machine code"):
            if domain_of(kernel) is KernelDomain.SOUND:
                return emit_series(kernel, isa, lanes)
            # The first tier has to compile quickly, so its prologue is left to the interpreter.
            return emit(kernel, packed, isa, lanes, tier > 1)

    def _settings(self, kernel: Kernel, tier: int) -> Tier:
        """How a kernel is compiled."""
        return TIERS[tier if self.plan(kernel).second is Form.MODULE else 1]

    def _usual_lanes(self, kernel: Kernel, tier: int) -> int:
        """The width of its vectors."""
        section, isa = kernel.section(Rate.ELEMENT), self.processor.isa
        if domain_of(kernel) is KernelDomain.SOUND:
            return self._settings(kernel, tier).lanes(isa, len(section), DOUBLE)
        return isa.bits // (8 * SINGLE.bytes) * (registers(section, isa) if tier > 1 else 1)

    def listing(self, kernel: Kernel, packed: bool, tier: int = max(TIERS)) -> Listing:
        """The text from which a kernel is compiled."""
        how = self.plan(kernel)
        runs = "as a list of calls" if how.first is Form.LIST and how.second is None else "on the vector machine"
        text = f"; {kernel.name}: runs {runs}\n"
        try:
            if how.first is Form.MODULE or how.second is not None:
                is_tuned = tier > 1 and how.domain is KernelDomain.PICTURE
                given = self._opened(kernel).of(kernel).kernel if is_tuned else without_numbers(kernel)
                text = f"; {kernel.name}\n{self._module(given, packed, tier).text}"
        except RefusedError as failure:
            self.refuse(kernel, str(failure))
        return Listing(text, self.processor, TIERS[tier].level)

    def prologue(self, kernel: Kernel) -> Interpreter:
        """Computes the launch prologue of a kernel, and of others with other numbers, for code that does not."""
        return self._prologues.get_or_make(structure_hash(kernel), lambda: Interpreter.of_prologue(kernel))

    def plain(self, kernel: Kernel) -> Executable:
        """A kernel on the vector machine."""
        return self._plainer.load(kernel)

    def load(self, kernel: Kernel, codes: Mapping[bool, object] = NOTHING) -> Executable:
        if kernel.stages:
            return load_stages(self, kernel, codes)
        refused = {packed: code for packed, code in codes.items() if isinstance(code, Refused)}
        for code in refused.values():
            self.refuse(kernel, code.reason)
        if refused:
            return self._plainer.load(kernel, {packed: code.instead for packed, code in refused.items()})
        if domain_of(kernel) is KernelDomain.SOUND and self._runs(kernel, codes.get(False)):
            return SeriesExecutable(kernel, self, codes)
        if self._runs(kernel, codes.get(True)):
            return NativeExecutable(kernel, self, codes, self._pool)
        return self._plainer.load(kernel, codes)

    def _runs(self, kernel: Kernel, code: object) -> bool:
        """Whether a kernel runs as native code, given its translation. Without one, the plan of the kernel decides, for
        which all of the kernel is examined."""
        if isinstance(code, (NativeCode, TileProgram)):
            return True
        return not isinstance(code, Code) and self.plan(kernel).first is not None


class ExactExecutor(NativeExecutor):
    """Compiles kernels to machine code that gives the same numbers on all processors. Kernels that it cannot compile
    run on the reference machine, since numpy uses different instructions on different processors."""

    name = "exact"

    def __init__(self, processor: Processor | None = None, lanes: int | None = None) -> None:
        super().__init__(processor, lanes)
        self._plainer = ReferenceExecutor()
        self.refusals = self._plainer.refusals

    @property
    def processor(self) -> Processor:
        found = super().processor
        return replace(found, isa=exactly(found.isa))


class NativeExecutable(Executable):
    """A kernel as machine code; see `Executable`.

    A run holds the lock until all its threads have returned, so code is never replaced while it runs.
    """

    def __init__(self, kernel: Kernel, executor: NativeExecutor, codes: Mapping[bool, object], pool: BandPool) -> None:
        self.kernel = kernel
        self._executor = executor
        self._pool = pool
        self._packs = kernel.tick != "never"
        """Whether its code for pictures packs them. A stage has no outputs."""
        self._lock = threading.Lock()
        self._checked: tuple[weakref.ref[StateMemory], tuple[int, int]] | None = None
        """The memory and the shape of the last launch that passed the full check."""
        self._programs: dict[tuple[bool, bool], Functions | TileFunctions] = {}
        self._buffers: RecentlyUsed[tuple[bool, tuple[int, int]], LaunchBuffers] = RecentlyUsed(_SIZES)
        self._refused: set[bool] = set()
        """The forms of output (packed or not) that are left to the vector machine."""
        for packed, code in codes.items():
            if isinstance(code, (NativeCode, TileProgram)):
                self._programs[packed, False] = linked(code, executor.processor)
        if any(FRAME not in program for program in self._programs.values()):
            _ = self._interpreter  # made now, so that no frame waits for it

    @property
    def tier(self) -> int | None:
        """The tier of the code for pictures, if there is any yet."""
        program = self._programs.get((self._packs, False))
        return program.tier if program else None

    def upgrade(self, code: object) -> None:
        if isinstance(code, (NativeCode, TileProgram)):
            program = linked(code, self._executor.processor)
            with self._lock:
                self._programs[self._packs, False] = program
                self._buffers = RecentlyUsed(_SIZES)

    def planes(self, memory: StateMemory, launch: Launch) -> Floats:
        if launch.shape == (1, 1):
            return self._single.planes(memory, launch)
        out = np.empty((len(self.kernel.outputs), *launch.shape), np.float32)
        if not self._has_run(memory, launch, out, packed=False):
            return self._plain.planes(memory, launch)
        return out

    @functools.cached_property
    def _single(self) -> ReferenceExecutable:
        """The reference machine, for single elements: it computes in double precision and needs no compilation."""
        return ReferenceExecutable(self.kernel)

    def rgba8(self, memory: StateMemory, launch: Launch, out: npt.NDArray[np.uint8]) -> None:
        if not self._has_run(memory, launch, out, packed=True):
            self._plain.rgba8(memory, launch, out)

    @functools.cached_property
    def _interpreter(self) -> Interpreter:
        """Computes the launch prologue, if the code does not."""
        return self._executor.prologue(self.kernel)

    @functools.cached_property
    def _plain(self) -> Executable:
        """The vector machine, for kernels that cannot be compiled."""
        return self._executor.plain(self.kernel)

    def _has_run(self, memory: StateMemory, launch: Launch, out: npt.NDArray[Any], packed: bool) -> bool:
        """Runs a launch, and returns whether there was code for it. A failed compilation is not tried again."""
        if packed in self._refused:
            return False
        try:
            self._run(memory, launch, out, packed)
        except RefusedError as failure:
            self._refused.add(packed)
            self._executor.refuse(self.kernel, str(failure))
            return False
        return True

    def _run(self, memory: StateMemory, launch: Launch, out: npt.NDArray[Any], packed: bool) -> None:
        with self._lock:
            if self._checked is None or self._checked[0]() is not memory or self._checked[1] != launch.shape:
                check(self.kernel, memory, launch)
                self._checked = (weakref.ref(memory), launch.shape)
            buffers = self._buffers.get_or_make(
                (packed, launch.shape),
                lambda: LaunchBuffers(self.kernel, self._program(packed, launch.shape[1]), launch.shape),
            )
            try:
                machine = None
                if not buffers.has_frame:
                    with np.errstate(all="ignore"):
                        machine = self._interpreter.begin(memory, launch, self.kernel.numbers)
                buffers.prepare(memory, launch, machine, out)
            except (KeyError, ValueError):
                # This raises a clearer error.
                check(self.kernel, memory, launch)
                raise
            buffers.run(launch.threads, self._pool)
        if self.kernel.tick != "never":
            memory.advance()
        if buffers.loop_stopped or (machine is not None and machine.loop_stopped):
            launch.loop_stopped()
        buffers.release()

    def _program(self, packed: bool, width: int) -> Functions | TileFunctions:
        if packed:
            channels(len(self.kernel.outputs))
        program = self._made(packed, narrow=False)
        return program if width >= program.layout.lanes else self._made(packed, narrow=True)

    def _made(self, packed: bool, narrow: bool) -> Functions | TileFunctions:
        if (packed, narrow) not in self._programs:
            code = self._executor.first(self.kernel, packed, narrow)
            self._programs[packed, narrow] = linked(code, self._executor.processor)
        return self._programs[packed, narrow]
