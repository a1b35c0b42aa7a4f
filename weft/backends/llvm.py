"""LLVM, through llvmlite: the one place that imports it. Machine code as bytes, and as functions that can be called."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import platform
from dataclasses import dataclass
from typing import Any

from weft.codegen.native.target import ISAS, Isa

# What a processor must have of each family; the first that fits is taken.
_FEATURES = {
    "avx512": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
    "avx2": ("avx2", "fma"),
    "sse2": ("sse2",),
    "neon": ("neon",),
}


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
    features = llvm.get_host_cpu_features()
    for name, wanted in _FEATURES.items():
        if all(features.get(feature, False) for feature in wanted):
            return Processor(ISAS[name], llvm.get_process_triple(), llvm.get_host_cpu_name(), features.flatten())
    return None


def runs_here(isa: Isa) -> bool:
    """Whether this machine can run code for a family of processors."""
    here = host()
    if here is None:
        return False
    names = list(ISAS)
    same = ISAS[isa.name].triple == here.isa.triple
    return same and names.index(isa.name) >= names.index(here.isa.name)


def machine_code(text: str, processor: Processor, level: int) -> bytes:
    """An object file from the text of a module; `level` is LLVM's, from 0 (quickly made) to 3."""
    machine, module = _parsed(text, processor, level)
    code: bytes = machine.emit_object(module)
    return code


def assembly(text: str, processor: Processor, level: int) -> str:
    """The same for people."""
    machine, module = _parsed(text, processor, level)
    listing: str = machine.emit_assembly(module)
    return listing


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
    if processor.triple.partition("-")[0] != llvm.get_process_triple().partition("-")[0]:
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
