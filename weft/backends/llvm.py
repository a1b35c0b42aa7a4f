"""LLVM, through llvmlite: the one place that imports it. Machine code as bytes, and as functions that can be called."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from weft.backends.executor import RefusedError
from weft.codegen.native.target import ISAS, Isa


def problem() -> str | None:
    """Why there is no machine code on this machine, and how to get it; None if there is."""
    if importlib.util.find_spec("llvmlite") is None:
        return "llvmlite is not installed (pip install llvmlite)"
    try:
        found = host()
    except Exception as failure:
        return f"llvmlite does not work: {failure}"
    return None if found is not None else f"no code for {platform.machine()} processors"


@dataclass(frozen=True, slots=True)
class Processor:
    """What code is made for, by LLVM's names."""

    isa: Isa
    triple: str
    cpu: str
    features: str = ""


def plainest(isa: Isa) -> Processor:
    """The plainest processor of a family."""
    return Processor(isa, isa.triple, isa.cpu)


@functools.cache
def host() -> Processor | None:
    """The processor of this machine; None if nothing is emitted for its like. Raises whatever llvmlite does."""
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
    """LLVM did not take a program, and says why."""


def machine_code(text: str, processor: Processor, level: int) -> bytes:
    """An object file from the text of a module; `level` is LLVM's, from 0 (quickly made) to 3. Raises `LlvmFailure`."""
    with _compiling():
        machine, module = _parsed(text, processor, level)
        code: bytes = machine.emit_object(module)
    return code


def assembly(text: str, processor: Processor, level: int) -> str:
    """The same for people."""
    with _compiling():
        machine, module = _parsed(text, processor, level)
        listing: str = machine.emit_assembly(module)
    return listing


@contextmanager
def _compiling() -> Iterator[None]:
    """Turns what LLVM says into one line."""
    try:
        yield
    except RuntimeError as failure:
        first = next(filter(None, map(str.strip, str(failure).splitlines())), "no reason given")
        raise LlvmFailure(f"LLVM does not take its machine code ({first}), which is a bug in weft") from failure


class Functions:
    """An object file, linked: its functions, which take one address. The code lives as long as this object does, so
    whoever calls holds it."""

    def __init__(self, code: bytes, names: tuple[str, ...]) -> None:
        llvm = _llvm()
        machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(jit=True)
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        # Such functions let go of Python's lock while they run.
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
        # Another architecture can be compiled for, to look at.
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
