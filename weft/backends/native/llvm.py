"""LLVM: compiles texts to object files and links them. Only this module imports llvmlite, and only its `ArgumentBlock`
passes the addresses of arrays to machine code."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.util
import itertools
import math
import os
import platform
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from weft.backends import hardware
from weft.backends.executors import RefusedError
from weft.backends.launch import Launch, StateMemory, shape_of_level
from weft.codegen.kernel import Kernel
from weft.codegen.native.handlers import RECORD, handler_names, handlers
from weft.codegen.native.target import (
    CHANNELS, ISAS, SIDES, SINGLE, Field, Head, History, ImageCell, Isa, Layout, LevelWord, PictureWord, Precision,
    ReciprocalPart, Ring, Word
)
from weft.codegen.native.tiles import TileProgram
from weft.codegen.native.writer import reciprocal
from weft.codegen.values import Scalar
from weft.disk import cache_folder, keep, read_kept
from weft.ir.expr import StateSlot
from weft.media.frames import floats
from weft.names import is_sound
from weft.platform import system


def problem() -> str | None:
    """The reason why machine code is not available on this machine, and how to get it; None if it is available."""
    return _missing() or isa_problem()


def _missing() -> str | None:
    """The same, whatever `WEFT_ISA` asks for."""
    if importlib.util.find_spec("llvmlite") is None:
        return "llvmlite is not installed (pip install llvmlite)"
    try:
        found = _processor()
    except Exception as failure:
        return f"llvmlite does not work: {failure}"
    return f"no code for {platform.machine()} processors" if found is None else None


def isa_problem() -> str | None:
    """The reason why there would be machine code without `WEFT_ISA`, and there is none with it; None if that is not
    so."""
    asked = os.environ.get(VARIABLE)
    if not asked or _missing() is not None or (found := _processor()) is None or asked in _families(found):
        return None
    return f"{VARIABLE} is {asked}, and this processor runs code for {', '.join(_families(found))}"


@dataclass(frozen=True, slots=True)
class Processor:
    """The target of compilation, by LLVM's names."""

    isa: Isa
    triple: str
    cpu: str
    features: str = ""


def plainest(isa: Isa) -> Processor:
    """The plainest processor of a family."""
    return Processor(isa, isa.triple, isa.cpu)


VARIABLE = "WEFT_ISA"
"""This environment variable asks for code for the plainest processor of a family, by a name of `ISAS`."""


def host() -> Processor | None:
    """The processor for which code is generated: that of this machine, or the one that `WEFT_ISA` asks for. None if
    there is no code generator for its family. Raises what llvmlite raises."""
    found, asked = _processor(), os.environ.get(VARIABLE)
    if found is None or not asked:
        return found
    return plainest(ISAS[asked]) if asked in _families(found) else None


@functools.cache
def _processor() -> Processor | None:
    llvm = _llvm()
    features, triple = llvm.get_host_cpu_features(), llvm.get_process_triple()
    for isa in ISAS.values():
        if _architecture(triple) == _architecture(isa.triple) and all(features.get(each) for each in isa.features):
            return Processor(isa, triple, llvm.get_host_cpu_name(), features.flatten())
    return None


def _architecture(triple: str) -> str:
    name = triple.partition("-")[0]
    return "aarch64" if name == "arm64" else name


def _families(processor: Processor) -> list[str]:
    """The families whose code a processor runs, the widest first."""
    names = list(ISAS)
    return [name for name in names[names.index(processor.isa.name) :] if ISAS[name].triple == processor.isa.triple]


def runs_here(isa: Isa) -> bool:
    """Whether the processor for which code is generated runs that for a family of processors."""
    here = host()
    return here is not None and isa.name in _families(here)


@dataclass(frozen=True, slots=True)
class NativeCode:
    """A kernel as an object file for this machine, with the layout of its arguments. It can be pickled."""

    layout: Layout
    code: bytes
    tier: int


class LlvmFailure(RefusedError):  # noqa: N818 - what failed is LLVM
    """LLVM has refused a program. The message is its reason."""


def machine_code(text: str, processor: Processor, level: int) -> bytes:
    """An object file from the text of a module; `level` is LLVM's, from 0 (quick to compile) to 3. Raises
    `LlvmFailure`."""
    with _parsed(text, processor, level) as (machine, module):
        code: bytes = machine.emit_object(module)
    return code


@dataclass(frozen=True, slots=True)
class BegunCode:
    """Code that a thread with a low priority compiles."""

    _layout: Layout
    _tier: int
    _code: Future[bytes]

    @classmethod
    def of(cls, text: str, layout: Layout, processor: Processor, level: int, tier: int) -> BegunCode:
        """Begins with the code for the text of a module; see `machine_code`."""
        return cls(layout, tier, _aside().submit(_code_to_call, text, processor, level, layout.functions))

    @property
    def is_left_out(self) -> bool:
        """Whether the thread has skipped it, because a wait for it was interrupted before its turn came."""
        return self._code.cancelled()

    def finished(self) -> NativeCode:
        """The code, once it is compiled. A signal may interrupt the wait. It does not interrupt LLVM: the thread
        finishes its compilation. Raises `LlvmFailure`."""
        try:
            return NativeCode(self._layout, self._code.result(), self._tier)
        except BaseException:
            self._code.cancel()
            raise


@functools.cache
def _aside() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "weft-llvm", hardware.lower_priority)


def _code_to_call(text: str, processor: Processor, level: int, names: tuple[str, ...]) -> bytes:
    """See `machine_code`. The code is also linked. Later, linking would have to wait for whatever LLVM compiles then,
    since llvmlite makes one call at a time."""
    code = machine_code(text, processor, level)
    _functions(code, names)
    return code


def assembly(text: str, processor: Processor, level: int) -> str:
    """The machine code of a module as readable text."""
    with _parsed(text, processor, level) as (machine, module):
        listing: str = machine.emit_assembly(module)
    return listing


@contextmanager
def _parsed(text: str, processor: Processor, level: int) -> Iterator[tuple[Any, Any]]:
    """The compiler for a processor, and a module for it to compile. LLVM's errors become a `LlvmFailure` with a single
    line."""
    try:
        machine = _compiler(processor, level)
        module = _llvm().parse_assembly(text)
        module.triple = processor.triple
        module.data_layout = str(machine.target_data)
        yield machine, module
    except RuntimeError as failure:
        first = next(filter(None, map(str.strip, str(failure).splitlines())), "no reason given")
        raise LlvmFailure(f"LLVM does not take its machine code ({first}), which is a bug in weft") from failure


class Functions:
    """The functions of linked code, which take a block of arguments. The code lives only as long as this object, so
    callers keep a reference to it."""

    def __init__(self, code: NativeCode) -> None:
        self.layout, self.tier = code.layout, code.tier
        self._library, self._functions = _functions(code.code, code.layout.functions)

    def __contains__(self, name: str) -> bool:
        return name in self._functions

    def address(self, name: str) -> int:
        """The address of a function."""
        return ctypes.cast(self._functions[name], ctypes.c_void_p).value or 0  # type: ignore[arg-type]

    def function(self, name: str, block: ArgumentBlock) -> Callable[[], None]:
        """One function with its arguments, for any thread."""
        return partial(self._functions[name], block.address)


Address: TypeAlias = Callable[[int], None]
"""A function that takes an address."""


def function_of(text: str, name: str) -> Address | None:
    """A function of a module, which stays for as long as the process; None where LLVM is missing or refuses it."""
    found = _kept_function(text, name)
    return None if found is None else found[1]


@functools.cache
def _kept_function(text: str, name: str) -> tuple[Any, Address] | None:
    """The owner of the code of a function, which lives only as long as it, and the function."""
    processor = host() if problem() is None else None
    if processor is None:
        return None
    try:
        library, found = _functions(machine_code(text, processor, _TO_LEVEL), (name,))
    except LlvmFailure:
        return None
    return library, found[name]


@functools.lru_cache(maxsize=8)
def _functions(code: bytes, names: tuple[str, ...]) -> tuple[Any, Mapping[str, Callable[[int], None]]]:
    """The owner of the code of an object file, and its functions of these names. The same code with other arguments has
    the same owner."""
    library = _library(code, names)
    # Functions of this type release Python's lock while they run.
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    return library, {name: prototype(library[name]) for name in names}


# All libraries of a process need names of their own, and a name cannot be used again.
_numbers = itertools.count()


@functools.cache
def _linker() -> Any:
    """The linker of this process. LLVM's newer one, where it exists, places a whole object file in one block. The older
    one asks for a block for code and one for constants, and ends the process if the system can only give it blocks that
    are gigabytes apart."""
    return _llvm().create_lljit_compiler(use_jit_link=system.has_jit_link)


def _library(code: bytes, names: Iterable[str]) -> Any:
    """A library of the code of an object file. It has the addresses of functions by their names, which are valid as
    long as it exists."""
    builder = _llvm().JITLibraryBuilder().add_object_img(code).add_current_process()
    for name in names:
        builder.export_symbol(name)
    return builder.link(_linker(), str(next(_numbers)))


class TileFunctions:
    """The functions of a `TileProgram`, which take a block of arguments."""

    def __init__(self, code: TileProgram, processor: Processor) -> None:
        self.layout, self.tier = code.layout, code.tier
        self._library, self._run, places = _handlers(processor, code.floats)
        self._programs = {name: _linked(words, places) for name, words in code.programs}

    def __contains__(self, name: str) -> bool:
        return name in self._programs

    def function(self, name: str, block: ArgumentBlock) -> Callable[[], None]:
        """One function with its arguments, for any thread."""
        return partial(self._run, block.address, self._programs[name].ctypes.data)


def _linked(words: bytes, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """A program with the addresses of its handlers."""
    program = np.frombuffer(words, np.int64).copy()
    records = program.reshape(-1, RECORD)[1:]
    records[:, 0] = places[records[:, 0]]
    return program


def linked(code: NativeCode | TileProgram, processor: Processor) -> Functions | TileFunctions:
    """Code, ready to be called. `processor` is the one that lists of calls are for."""
    return TileFunctions(code, processor) if isinstance(code, TileProgram) else Functions(code)


@functools.cache
def _handlers(processor: Processor, floats: Precision) -> tuple[Any, Any, npt.NDArray[np.int64]]:
    """The library of those of a precision, the function that runs programs, and the addresses of all."""
    names = [f"tile{name}" for name in handler_names(floats)]
    library = _library(handlers_object(processor, floats, cache_folder() / "code"), ["tile_run", *names])
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(library["tile_run"])
    return library, run, np.array([library[name] for name in names], np.int64)


# The handlers of a processor are kept as an object file.

_KEPT = "object 1"

_TO_LEVEL = 2


def handlers_object(processor: Processor, floats: Precision, folder: Path) -> bytes:
    """The handlers of a precision as an object file: from the folder, or new, and then kept there if possible."""
    text = handlers(processor.isa, floats)
    key = (_llvm().llvm_version_info, processor.triple, processor.cpu, processor.features, _TO_LEVEL, text)
    path = folder / f"{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}.o"
    with suppress(OSError):
        return read_kept(path, _KEPT)
    code = machine_code(text, processor, _TO_LEVEL)
    with suppress(OSError):
        keep(path, _KEPT, code)
    return code


@functools.cache
def _compiler(processor: Processor, level: int) -> Any:
    llvm = _llvm()
    if _architecture(processor.triple) != _architecture(llvm.get_process_triple()):
        # Other architectures are compiled for listings.
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(processor.triple)
    return target.create_target_machine(
        cpu=processor.cpu, features=processor.features, opt=level, reloc="pic", codemodel=system.code_model
    )


@functools.cache
def _llvm() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


# The boundary to machine code.
#
# Machine code checks nothing. So every array is checked here, once, before its address is taken: its type, its length,
# its alignment, and that it has no gaps.


Filler: TypeAlias = Callable[[StateMemory, Launch], None]
"""Fills in a word that belongs to the memory, or to a picture of a launch. Raises KeyError or ValueError if something
does not fit."""

# The number of arrays for one word whose addresses are kept: a picture is drawn into two arrays alternately.
_TURNS = 2


def numbers_given(arguments: Iterable[Scalar | ReciprocalPart], layout: Layout) -> Iterator[tuple[int, float]]:
    """The places of those arguments that are made of the numbers of the kernel, and their values."""
    for at, argument in enumerate(arguments):
        match argument:
            case ReciprocalPart(place, part):
                found = reciprocal(layout.given[place], SINGLE)
                assert found is not None, "such a number decides"
                yield at, getattr(found, part)
            case Scalar("number", int(place)):
                yield at, layout.given[place]


class ArgumentBlock:
    """The arguments of a kernel's functions: words, and the arrays that they point to. Words are known by their places,
    since finding a place takes longer than filling it in."""

    def __init__(self, layout: Layout) -> None:
        self.words = np.zeros(len(layout.fields), np.int64)
        self.reals = self.words.view(np.float64)
        self.address = self.words.ctypes.data
        self._places = {field: at for at, field in enumerate(layout.fields)}
        self._held: list[npt.NDArray[Any] | None] = [None] * len(layout.fields)
        """The array that each word points to."""
        self._checked: list[tuple[_Checked, ...]] = [()] * len(layout.fields)
        self.numbers = np.zeros(len(layout.numbers))
        self.set_array(self.place(Word.NUMBERS), self.numbers, np.float64, len(layout.numbers))
        given = [*enumerate(layout.numbers)]
        self.uniforms = [(at, str(scalar.key)) for at, scalar in given if scalar.source == "uniform"]
        """The places of uniforms among the numbers, and of coordinates."""
        self.coords = [(at, str(scalar.key)) for at, scalar in given if scalar.source == "coord"]
        for at, value in numbers_given(layout.numbers, layout):
            self.numbers[at] = value

    def place(self, field: Field) -> int:
        """The place of a word."""
        return self._places[field]

    def give_numbers(self, launch: Launch) -> None:
        """Fills in the numbers of a launch."""
        for at, name in self.uniforms:
            self.numbers[at] = launch.uniforms[name]
        for at, name in self.coords:
            self.numbers[at] = launch.coords[name]

    def filler(self, field: Field, kernel: Kernel, finished: int = 0) -> Filler:
        """A function that fills in a word that belongs to the memory or to a picture. `finished` is 1 for code that
        reads state between ticks. The shape of the memory is that of each launch."""
        at = self.place(field)
        match field:
            case ImageCell(key, plane, k):
                return self._cell(at, kernel.slot(key), plane, k)
            case Ring(key):
                cells = _cells(kernel.slot(key))

                def fill(memory: StateMemory, launch: Launch) -> None:
                    self.set_array(at, memory.ring(key), np.float32, cells * math.prod(memory.shape))

            case History(key):
                cells = _cells(kernel.slot(key))

                def fill(memory: StateMemory, launch: Launch) -> None:
                    self.set_array(at, memory.ring(key), np.float64, cells, writes=True)

            case LevelWord(level, what):

                def fill(memory: StateMemory, launch: Launch) -> None:
                    height, width = shape_of_level(memory.shape, level)
                    self.words[at] = width if what == "width" else height

            case Head(key):

                def fill(memory: StateMemory, launch: Launch) -> None:
                    self.words[at] = memory.cell(key, finished)

            case PictureWord(path, what):

                def fill(memory: StateMemory, launch: Launch) -> None:
                    self._give_picture(at, path, what, launch.pictures[path])

            case _:
                raise LookupError(f"{field} belongs to no memory and to no picture")
        return fill

    def _cell(self, at: int, slot: StateSlot, plane: int, k: int) -> Filler:
        """Fills in the address of a plane, `k` ticks ago."""
        cells, size = _cells(slot), np.dtype(np.float32).itemsize

        def fill(memory: StateMemory, launch: Launch) -> None:
            pixels = math.prod(shape_of_level(memory.shape, slot.level))
            address = self._address(at, memory.ring(slot.key), np.float32, cells * pixels, writes=k == 0)
            self.words[at] = address + (memory.cell(slot.key, k) * slot.planes + plane) * pixels * size

        return fill

    def _give_picture(self, at: int, path: str, what: str, picture: npt.NDArray[Any]) -> None:
        if not picture.size:
            raise ValueError(f"{path} is empty")
        height, width, *_ = picture.shape
        if what == "pixels":
            length = height * width * (SIDES if is_sound(path) else CHANNELS)
            self.set_array(at, np.ascontiguousarray(floats(picture)), np.float32, length)
        else:
            self.words[at] = width if what == "width" else height

    def knows(self, at: int, array: npt.NDArray[Any]) -> bool:
        """Whether an array was among the last ones for a word, so that it has been checked."""
        return any(known.array() is array for known in self._checked[at])

    def set_array(
        self, at: int, array: npt.NDArray[Any], dtype: type[np.generic], length: int, writes: bool = False
    ) -> None:
        """Points a word to an array of `length` elements, which is kept until it is released or another one replaces
        it. The array may also be the bytes of these elements. Raises ValueError if it does not fit, or is read-only
        where the code `writes`."""
        self.words[at] = self._address(at, array, dtype, length, writes)

    def _address(
        self, at: int, array: npt.NDArray[Any], dtype: type[np.generic], length: int, writes: bool = False
    ) -> int:
        self._held[at] = array
        if writes and not array.flags.writeable:
            raise ValueError(f"machine code cannot be given {_problems(array, dtype, length, writes)}")
        for known in self._checked[at]:
            # While an array is referenced, neither its place nor its size can change.
            if known.array() is array and known.length == length:
                return known.address
        address: int = array.ctypes.data
        size = np.dtype(dtype).itemsize
        has_type = array.dtype in (dtype, np.uint8)
        if not has_type or array.nbytes != length * size or not array.flags.c_contiguous or address % size:
            raise ValueError(f"machine code cannot be given {_problems(array, dtype, length, writes)}")
        self._checked[at] = (_Checked(weakref.ref(array), length, address), *self._checked[at])[:_TURNS]
        return address

    def release(self, places: Iterable[int]) -> None:
        """Releases arrays that belong to the caller."""
        for at in places:
            self._held[at] = None


class _Checked(NamedTuple):
    """An array that fits a word, as `length` elements."""

    array: weakref.ref[npt.NDArray[Any]]
    length: int
    address: int


def _cells(slot: StateSlot) -> int:
    """The number of values, or images, in the ring of a slot."""
    return (slot.depth + 1) * slot.planes


def _problems(array: npt.NDArray[Any], dtype: type[np.generic], length: int, writes: bool) -> str:
    """Everything that is wrong with an array."""
    flags = array.flags
    problems = {
        f"{length} × {np.dtype(dtype)} are needed": array.dtype != dtype or array.size != length,
        "it has gaps": not flags.c_contiguous,
        "it is not aligned": array.ctypes.data % np.dtype(dtype).itemsize != 0,
        "it is read-only": writes and not flags.writeable,
    }
    found = [words for words, holds in problems.items() if holds]
    return f"{array.size} × {array.dtype}: {', '.join(found)}"
