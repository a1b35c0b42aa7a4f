"""Kernels written by hand, and short ways to run kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tests.support.stack import kernel_of
from tests.support.tolerances import DOUBLE, SINGLE
from weft.backends.executor import Executor
from weft.backends.launch import Launch, picture_coords
from weft.backends.memory import StateMemory
from weft.backends.native.executor import NativeExecutor
from weft.backends.vector.executor import VectorExecutor
from weft.backends.vm import ReferenceExecutor
from weft.codegen.bytecode import Bytecode, Instruction, SectionCode
from weft.codegen.compilation import compile_kernel
from weft.codegen.kernel import Allocation, Kernel
from weft.codegen.verify import verify
from weft.contexts import AUDIO, COMPUTE, VISUAL, ContextSpec
from weft.ir.expr import Lowered
from weft.ir.rates import Rate
from weft.ir.verify import verify as verify_ir

CONTEXTS = {spec.name: spec for spec in (VISUAL, AUDIO, COMPUTE)}

# Each way to execute a kernel in double precision, tiles of a few elements included.
DOUBLE_MACHINES: dict[str, Executor] = {
    "vm": ReferenceExecutor(),
    "vector": VectorExecutor(np.float64),
    "vector, small tiles": VectorExecutor(np.float64, tile_elements=8),
}

# Vectors of few lanes, so that small pictures have several of them and an end that does not fit.
MACHINES: dict[str, Executor] = {**DOUBLE_MACHINES, "native": NativeExecutor(lanes=4)}


def kernel(code: Sequence[tuple[Any, ...]], outputs: int = 1, **fields: Any) -> Kernel:
    """A kernel with this element section, each instruction a tuple; other fields as given."""
    return kernel_of(bytecode(code, outputs, **fields))


def bytecode(
    code: Sequence[tuple[Any, ...]], outputs: int = 1, sections: Sequence[SectionCode] | None = None, **fields: Any
) -> Bytecode:
    """The bytecode of such a kernel, well-formed or not; with other `sections`, if there are any."""
    given: dict[str, Any] = {
        "name": "test", "context": "visual", "sweep": "grid", "tick": "launch", "sections": (),
        "outputs": tuple(str(at) for at in range(outputs)), "coords": (("x", Rate.COLUMN), ("y", Rate.ROW)),
        "uniforms": (), "strands": (), "pictures": (), "slots": (), "locals": (),
    }  # fmt: skip
    kernel = Kernel(**{**given, **fields})
    made = (SectionCode(Rate.ELEMENT, instructions(code)),) if sections is None else tuple(sections)
    return Bytecode(kernel, made, kernel.locals)


def instructions(code: Sequence[tuple[Any, ...]]) -> tuple[Instruction, ...]:
    return tuple(Instruction(*entry) for entry in code)


def local(rate: Rate = Rate.ELEMENT, kind: Any = "float") -> Allocation:
    return Allocation("t", rate, kind)


def compiled(ir: Lowered, optimise: bool = True, spec: ContextSpec | None = None) -> Kernel:
    """The kernel of some IR, both verified."""
    verify_ir(ir)
    made = compile_kernel(ir, spec or CONTEXTS[ir.context], optimise)
    verify(made)
    return made


def launch_of(shape: tuple[int, int], abstime: float = 0.0, **fields: Any) -> Launch:
    height, width = shape
    return Launch(shape, picture_coords(width, height, abstime), **fields)


def agree(machine: str, got: ArrayLike, expected: ArrayLike) -> bool:
    """Whether a machine computes this, as closely as its precision allows after a few operations."""
    tolerance = (DOUBLE if MACHINES[machine].widest == np.float64 else SINGLE).scaled(10)
    return bool(tolerance.agreement(got, expected).all())


def run(
    made: Kernel,
    machine: str = "vm",
    shape: tuple[int, int] = (1, 1),
    memory: StateMemory | None = None,
    **fields: Any,
) -> np.ndarray[Any, Any]:
    """The outputs of one launch on a machine: [outputs, height, width]."""
    memory = memory or StateMemory(made.slots, shape, MACHINES[machine].widest)
    return np.asarray(MACHINES[machine].load(made).planes(memory, launch_of(shape, **fields)))
