"""LLVM: compiles texts to object files and links them. Only this module imports llvmlite, and only its `ArgumentBlock`
passes the addresses of arrays to machine code."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.executor import BandPool, RefusedError
from weft.codegen.native.layout import Field, Word
from weft.codegen.native.target import ISAS, Isa


def problem() -> str | None:
    """Why machine code is not available on this machine, and how to get it; None if it is available."""
    if importlib.util.find_spec("llvmlite") is None:
        return "llvmlite is not installed (pip install llvmlite)"
    try:
        found = host()
    except Exception as failure:
        return f"llvmlite does not work: {failure}"
    return None if found is not None else f"no code for {platform.machine()} processors"


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


@functools.cache
def host() -> Processor | None:
    """The processor of this machine; None if there is no code generator for its family. Raises what llvmlite raises."""
    llvm = _llvm()
    features, triple = llvm.get_host_cpu_features(), llvm.get_process_triple()
    for isa in ISAS.values():
        if _architecture(triple) == _architecture(isa.triple) and all(features.get(each) for each in isa.features):
            return Processor(isa, triple, llvm.get_host_cpu_name(), features.flatten())
    return None


def _architecture(triple: str) -> str:
    name = triple.partition("-")[0]
    return "aarch64" if name == "arm64" else name


def runs_here(isa: Isa) -> bool:
    """Whether this machine can run code for a family of processors."""
    here = host()
    if here is None:
        return False
    order = list(ISAS.values())
    return isa.triple == here.isa.triple and order.index(isa) >= order.index(here.isa)


class LlvmFailure(RefusedError):  # noqa: N818 - what failed is LLVM
    """LLVM refused a program, and says why."""


def machine_code(text: str, processor: Processor, level: int) -> bytes:
    """An object file from the text of a module; `level` is LLVM's, from 0 (quick to compile) to 3. Raises
    `LlvmFailure`."""
    with _compiling():
        machine, module = _parsed(text, processor, level)
        code: bytes = machine.emit_object(module)
    return code


def assembly(text: str, processor: Processor, level: int) -> str:
    """The machine code of a module as readable text."""
    with _compiling():
        machine, module = _parsed(text, processor, level)
        listing: str = machine.emit_assembly(module)
    return listing


@contextmanager
def _compiling() -> Iterator[None]:
    """Turns LLVM's errors into `LlvmFailure` with a single line."""
    try:
        yield
    except RuntimeError as failure:
        first = next(filter(None, map(str.strip, str(failure).splitlines())), "no reason given")
        raise LlvmFailure(f"LLVM does not take its machine code ({first}), which is a bug in weft") from failure


class Functions:
    """The functions of a linked object file, which take one address. The code lives only as long as this object, so
    callers keep a reference to it."""

    def __init__(self, code: bytes, names: tuple[str, ...]) -> None:
        llvm = _llvm()
        machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(jit=True)
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        # Functions of this type release Python's lock while they run.
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        self._functions = {name: prototype(self._engine.get_function_address(name)) for name in names}

    def __getitem__(self, name: str) -> Any:
        return self._functions[name]


def _parsed(text: str, processor: Processor, level: int) -> tuple[Any, Any]:
    """The compiler for a processor, and a module for it to compile."""
    machine = _compiler(processor, level)
    module = _llvm().parse_assembly(text)
    module.triple = processor.triple
    module.data_layout = str(machine.target_data)
    return machine, module


@functools.cache
def _compiler(processor: Processor, level: int) -> Any:
    llvm = _llvm()
    if _architecture(processor.triple) != _architecture(llvm.get_process_triple()):
        # Other architectures are compiled for listings.
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(processor.triple)
    return target.create_target_machine(
        cpu=processor.cpu, features=processor.features, opt=level, reloc="pic", codemodel="small"
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


class ArgumentBlock:
    """The arguments of a kernel's functions: words, and the arrays that they point to."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._words = np.zeros(len(fields), np.int64)
        self._reals = self._words.view(np.float64)
        self._places = {field: at for at, field in enumerate(fields)}
        self._held: dict[Field, npt.NDArray[Any]] = {}
        self.address = self._words.ctypes.data

    def set_number(self, field: Field, number: int) -> None:
        self._words[self._places[field]] = number

    def set_real(self, field: Field, number: float) -> None:
        self._reals[self._places[field]] = number

    def number(self, field: Field) -> int:
        return int(self._words[self._places[field]])

    def set_array(
        self, field: Field, array: npt.NDArray[Any], dtype: type[np.generic], length: int, writes: bool = False
    ) -> None:
        """Points a word to an array of `length` elements, which is kept until another one replaces it. Raises
        ValueError if the array does not fit, or is read-only where the code `writes`."""
        if self._held.get(field) is array:
            return
        flags = array.flags
        fits = array.dtype == dtype and array.size == length and flags.c_contiguous and flags.aligned
        if not fits or (writes and not flags.writeable):
            raise ValueError(f"{field}: machine code cannot be given {_problems(array, dtype, length, writes)}")
        self._held[field] = array
        self._words[self._places[field]] = array.ctypes.data

    def release(self, *fields: Field) -> None:
        """Releases arrays that belong to the caller."""
        for field in fields:
            self._held.pop(field, None)


def _problems(array: npt.NDArray[Any], dtype: type[np.generic], length: int, writes: bool) -> str:
    """What is wrong with an array."""
    flags = array.flags
    found = [
        words
        for holds, words in (
            (array.dtype != dtype or array.size != length, f"{length} × {np.dtype(dtype)} are needed"),
            (not flags.c_contiguous, "it has gaps"),
            (not flags.aligned, "it is not aligned"),
            (writes and not flags.writeable, "it is read-only"),
        )
        if holds
    ]
    return f"{array.size} × {array.dtype}: {', '.join(found)}"


def call(functions: Functions, name: str, block: ArgumentBlock) -> None:
    """Runs one function in this thread."""
    functions[name](block.address)


def call_at_once(functions: Functions, name: str, block: ArgumentBlock, threads: int, pool: BandPool) -> None:
    """Runs one function in several threads, which share its work; returns when all are done."""
    block.set_number(Word.NEXT, 0)
    if threads == 1:
        functions[name](block.address)
    else:
        pool.run(lambda number: functions[name](block.address), threads)
