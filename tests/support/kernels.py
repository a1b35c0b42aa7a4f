"""Kernels written by hand, as values or as stack code; kernels of programs after a choice of the compiler's passes; and
short ways to run kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tests.support.tolerances import DOUBLE, SINGLE
from tests.support.verify_bytecode import verify
from tests.support.verify_ir import verify as verify_ir
from weft.backends.executors import Executor
from weft.backends.launch import Launch, StateMemory, picture_coords
from weft.backends.native.executor import NativeExecutor
from weft.backends.vector.machine import VectorExecutor
from weft.backends.vm import ReferenceExecutor
from weft.backends.wasm import WasmExecutor
from weft.codegen.bytecode import Bytecode, Instruction, SectionCode, row_of
from weft.codegen.compilation import compile_kernel
from weft.codegen.kernel import Allocation, Kernel, Unit, content_hash
from weft.codegen.units import compile_unit
from weft.codegen.values import Node, Scalar, Section, SectionBuilder, Store
from weft.contexts import AUDIO, COMPUTE, VISUAL, ContextSpec, ContextTable
from weft.errors import Report, Source
from weft.graph.bindings import collect
from weft.graph.build import build_graph
from weft.ir.expr import LoopShape, Lowered, Pool
from weft.ir.lower import lower
from weft.ir.passes import PASSES, Pass, PassContext, run_passes
from weft.ir.rates import Rate
from weft.runtime.compiling.stages import Request, analyse
from weft.syntax.parser import parse

CONTEXTS = {spec.name: spec for spec in (VISUAL, AUDIO, COMPUTE)}

# Each way to execute a kernel in double precision, tiles of a few elements included.
DOUBLE_MACHINES: dict[str, Executor] = {
    "vm": ReferenceExecutor(),
    "vector": VectorExecutor(np.float64),
    "vector, small tiles": VectorExecutor(np.float64, tile_elements=8),
    "wasm": WasmExecutor(),
}


# Vectors of few lanes, so that small pictures have several of them and an end that does not fit.
MACHINES: dict[str, Executor] = {**DOUBLE_MACHINES, "native": NativeExecutor(lanes=4), "tiles": NativeExecutor()}


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


_PLAIN = {
    "PUSH": "const", "PUSH_BITS": "u32", "LOAD_STATE": "state", "SAMPLE_STATE": "sample", "SAMPLE_PICTURE": "picture",
    "FETCH": "fetch",
}  # fmt: skip
_OPERANDS = {"LOAD_STATE": 1, "SAMPLE_STATE": 3, "SAMPLE_PICTURE": 2, "FETCH": 1}


def kernel_of(bytecode: Bytecode) -> Kernel:
    """The kernel that bytecode computes."""
    sections = tuple(_Reader(bytecode, section.rate).section(section.code) for section in bytecode.sections)
    return replace(bytecode.kernel, sections=sections)


class _Reader:
    """Runs the code of a section on values instead of numbers."""

    def __init__(self, bytecode: Bytecode, rate: Rate) -> None:
        self._rate = rate
        self._kernel = bytecode.kernel
        self._allocations: Sequence[Allocation] = bytecode.locals
        self._coords = dict(bytecode.kernel.coords)
        self._builder = SectionBuilder()
        self._stack: list[Node] = []
        self._stored: dict[int, Node] = {}
        self._stores: list[Store] = []

    def section(self, code: Sequence[Instruction]) -> Section:
        for op, operand in code:
            self._instruction(op, operand)
        crossing = {
            number: node
            for number, node in self._stored.items()
            if self._rate != Rate.ELEMENT and number < len(self._kernel.locals)
        }
        return Section(self._rate, tuple(self._builder.nodes), tuple(self._stack), tuple(self._stores), crossing)

    def _pop(self, count: int) -> list[Node]:
        start = len(self._stack) - count
        values = self._stack[start:]
        del self._stack[start:]
        return values

    def _instruction(self, op: str, operand: Any) -> None:
        builder, push = self._builder, self._stack.append
        row = row_of(op, operand)
        if row is not None:
            push(builder.add(row.name, self._pop(len(row.params))))
        elif op in _OPERANDS:
            push(builder.add(_PLAIN[op], self._pop(_OPERANDS[op]), operand))
        elif op in _PLAIN:
            push(builder.leaf(_PLAIN[op], operand))
        else:
            _OTHERS[op](self, operand)

    def _store_local(self, number: int) -> None:
        (value,) = self._pop(1)
        self._stored[number] = self._builder.converted(value, self._allocations[number].type)

    def _load_local(self, number: int) -> None:
        local = self._allocations[number]
        stored = self._stored.get(number)
        self._stack.append(self._builder.given("local", number, local.rate, local.type) if stored is None else stored)

    def _store_state(self, place: Any) -> None:
        (value,) = self._pop(1)
        self._stores.append(Store(place, self._builder.converted(value, "float")))

    def _strand(self, call: Any) -> None:
        self._stack.append(self._builder.add("strand", self._pop(call.coordinates), call.ref))

    def _loop(self, shape: LoopShape) -> None:
        self._builder.begin_loop(shape.level, self._pop(2 + shape.carried))

    def _next(self, shape: LoopShape) -> None:
        loop = self._builder.end_loop(self._pop(shape.carried))
        self._stack += [self._builder.result(loop, k) for k in range(shape.carried)]


def _pushed(make: Callable[[_Reader, Any], Node]) -> Callable[[_Reader, Any], None]:
    def push(reader: _Reader, operand: Any) -> None:
        reader._stack.append(make(reader, operand))

    return push


_OTHERS: dict[str, Callable[[_Reader, Any], None]] = {
    "LOAD_COORD": _pushed(lambda reader, name: reader._builder.given("coord", name, reader._coords[name])),
    "LOAD_NUMBER": _pushed(lambda reader, place: reader._builder.leaf("scalar", Scalar("number", place, "float"))),
    "LOAD_UNIFORM": _pushed(lambda reader, name: reader._builder.leaf("scalar", Scalar("uniform", name, "float"))),
    "LOAD_INDEX": _pushed(lambda reader, level: reader._builder.index(level)),
    "LOAD_CARRIED": _pushed(lambda reader, value: reader._builder.carried(*value)),
    "LOAD_LOCAL": _Reader._load_local,
    "STORE_LOCAL": _Reader._store_local,
    "STORE_STATE": _Reader._store_state,
    "LOAD_STRAND": _Reader._strand,
    "LOOP": _Reader._loop,
    "NEXT": _Reader._next,
    "DROP": lambda reader, operand: reader._stack.pop() and None,
    "RETURN": lambda reader, operand: None,
}


UP_TO_PHASES = [step for step in PASSES if step.name != "waves"]
WITHOUT_PHASES = [step for step in UP_TO_PHASES if step.name != "phases"]
AS_WRITTEN = [step for step in PASSES if step.always]


def lowered_by(text: str, passes: Sequence[Pass] = PASSES) -> Lowered:
    """The IR of a program of one subgraph. Raises WeftError if there is an error in it."""
    contexts, report = ContextTable(), Report()
    patch = collect(parse(Source("test.weft", text), report), contexts, report)
    graph = build_graph(patch, contexts, report)
    report.raise_errors()
    (subgraph,) = graph.subgraphs
    pool = Pool()
    context = PassContext(pool, contexts[subgraph.context])
    return run_passes(lower(patch, graph, subgraph, contexts, pool), context, passes=passes)


def kernel_by(text: str, passes: Sequence[Pass] = PASSES) -> Kernel:
    """The kernel of a program of one subgraph. It computes everything as rarely as possible, unless the `passes` are
    those that leave the program as it is written."""
    return compiled(lowered_by(text, passes), optimise=list(passes) != AS_WRITTEN)


def closed_units(text: str) -> list[Unit]:
    """The units of a text whose numbers are no inputs. Raises WeftError."""
    found = analyse(Request(Source("test.weft", text), ContextTable()))
    return [compile_unit(found.patch, found.graph, each, found.contexts)[0] for each in found.graph.subgraphs]


def closed_hashes(text: str) -> list[str]:
    """The hashes of their kernels, for texts that mean the same: a number that is written twice may be two inputs.
    Raises WeftError."""
    return [content_hash(kernel) for unit in closed_units(text) for kernel in unit.kernels]
