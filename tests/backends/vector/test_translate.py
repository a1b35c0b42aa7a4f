"""What an executor translates in one process is drawn by another, to the same bits."""

from __future__ import annotations

import gc
import multiprocessing
import pickle
import weakref
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.backends.test_opcodes import CASES
from tests.support.exprs import image_slot
from tests.support.kernels import kernel
from tests.support.programs import PICTURE, built, built_together, expectations
from tests.support.together import all_but
from tests.test_programs import PROGRAMS
from weft.backends.launch import Launch, StateMemory, picture_coords
from weft.backends.vector.machine import VectorExecutor
from weft.backends.vm import ReferenceExecutor
from weft.codegen.bytecode import opcode_of
from weft.codegen.kernel import Kernel
from weft.contexts import ContextTable, context_table
from weft.errors import Source
from weft.ir.expr import PicturePlane, SlotPlane
from weft.ir.rates import Rate
from weft.ops import OPS
from weft.ops.spec import ValueType
from weft.runtime.compiling.stages import Build, Request, build
from weft.syntax.includes import open_source

BENCH = Path(__file__).parents[3] / "patches" / "bench"
COMPUTED = [row for row in OPS.values() if row.expand is None]


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[ProcessPoolExecutor]:
    """A process that shares nothing with this one."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield pool


def endings(made: Kernel) -> list[bool]:
    """How the outputs can be had: as planes, or packed too."""
    return [False, True] if len(made.outputs) in (1, 3, 4) else [False]


def translated(made: Kernel) -> bytes:
    return pickle.dumps({packed: VectorExecutor().translate(made, packed) for packed in endings(made)}, 5)


def strand(*coordinates: Any) -> Any:
    return sum(coordinate * (k + 1.5) for k, coordinate in enumerate(coordinates))


def launch_for(made: Kernel, tick: int) -> Launch:
    """A launch that has everything that the kernel reads."""
    rates = dict(made.coords)
    shape = (1, 7) if made.tick == "element" or Rate.ELEMENT in rates.values() else (5, 7)
    sizes = {Rate.COLUMN: shape[1], Rate.ELEMENT: shape[1], Rate.ROW: shape[0]}
    coords: Mapping[str, Any] = {
        name: (np.arange(sizes[rate]) + 0.5) / sizes[rate] + tick if rate in sizes else 0.25 + tick
        for name, rate in rates.items()
    }
    uniforms = {name: 0.75 * at + tick for at, name in enumerate(made.uniforms, 1)}
    strands = dict.fromkeys(made.strands, strand)
    return Launch(shape, coords, uniforms, strands, dict.fromkeys(made.pictures, PICTURE), threads=2)


def drawn(made: Kernel, codes: bytes | None = None) -> list[bytes]:
    """The bits of some ticks, each as planes and as pixels, and of the state after them."""
    executable = VectorExecutor(tile_elements=14).load(made, pickle.loads(codes) if codes else {})
    found = []
    for packed in endings(made):
        memory = StateMemory(made.slots, launch_for(made, 0).shape)
        for tick in range(2):
            launch = launch_for(made, tick)
            if packed:
                out = np.zeros((*launch.shape, 4), np.uint8)
                executable.rgba8(memory, launch, out)
            else:
                out = executable.planes(memory, launch)
            found.append(out.tobytes())
        found += [memory.ring(key).tobytes() for key in memory.slots]
    return found


def builds(path: Path) -> Iterator[Build]:
    """The programs of a file, each once; what can be one picture is one."""
    text = path.read_text(encoding="utf-8")
    found = {(case.statement, case.strand): case for case in expectations(text)}.values()
    together = [case for case in found if path.parent.name == "bundles" and case.is_plain]
    if together:
        yield built_together(text, together, optimise=True)
    yield from (built(path, case) for case in found if case not in together)


@pytest.mark.parametrize("path", all_but(24, PROGRAMS), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_programs(path, elsewhere):
    kernels = [made for each in builds(path) for unit in each.units for made in (unit.kernel, *unit.points.values())]
    codes = [translated(made) for made in kernels]
    assert list(elsewhere.map(drawn, kernels, codes)) == [drawn(made) for made in kernels]


@pytest.mark.parametrize("path", sorted(BENCH.glob("*.weft")), ids=lambda path: path.stem)
def test_a_patch_that_was_translated_elsewhere(path, elsewhere):
    for unit in build(Request(open_source(str(path)), context_table())).units:
        assert drawn(unit.kernel, elsewhere.submit(translated, unit.kernel).result()) == drawn(unit.kernel)


# Code that leaves a value of each type, of what varies by column and row.
OPERANDS: Mapping[ValueType, list[tuple[Any, ...]]] = {
    "float": [("LOAD_COORD", "x"), ("LOAD_COORD", "y"), ("SUB",)],
    "bool": [("LOAD_COORD", "y"), ("LOAD_COORD", "x"), ("LT",)],
    "u32": [("LOAD_COORD", "x"), ("PUSH", 20.0), ("MUL",), ("CALL", "bits_of")],
}
TO_REAL: Mapping[ValueType, list[tuple[Any, ...]]] = {"float": [], "bool": [], "u32": [("CALL", "bits_top")]}


@pytest.mark.parametrize("row", COMPUTED, ids=lambda row: row.name)
def test_rows_of_the_table(row, elsewhere):
    operands = [step for at in range(len(row.params)) for step in OPERANDS[row.type_of_operand(at)]]
    made = kernel([*operands, tuple(opcode_of(row)), *TO_REAL[row.gives], ("RETURN",)])
    assert elsewhere.submit(drawn, made, translated(made)).result() == drawn(made)


@pytest.mark.parametrize("op", CASES)
def test_opcodes(op, elsewhere):
    made = CASES[op].kernel
    assert elsewhere.submit(drawn, made, translated(made)).result() == drawn(made)


# What is given to `load`.


def test_what_is_given_is_what_runs():
    one, two = (kernel([("PUSH", number), ("RETURN",)]) for number in (1.0, 2.0))
    executor = VectorExecutor()

    def planes(code: object) -> Any:
        return executor.load(one, {False: code}).planes(StateMemory(()), launch_for(one, 0))

    assert (planes(executor.translate(two, packed=False)) == 2).all()
    assert (planes(None) == 1).all()


@pytest.mark.parametrize("executor", [ReferenceExecutor(), VectorExecutor()], ids=["vm", "vector"])
def test_two_outputs_are_no_picture(executor):
    made = kernel([("PUSH", 1.0), ("PUSH", 2.0), ("RETURN",)], 2)
    executor.translate(made, packed=False)
    with pytest.raises(ValueError, match="1, 3 or 4 outputs, not 2"):
        executor.translate(made, packed=True)


# What looks alike is kept apart.


def test_zeros_keep_their_sign(elsewhere):
    inverse = [[("LOAD_COORD", "y"), ("PUSH", zero), ("DIV",)] for zero in (0.0, -0.0)]
    made = kernel([*inverse[0], *inverse[1], ("RETURN",)], 2)
    found = elsewhere.submit(drawn, made, translated(made)).result()
    first = np.frombuffer(found[0], np.float32).reshape(2, -1)
    assert (first == [[np.inf], [-np.inf]]).all()


def test_a_picture_may_be_called_as_a_slot(elsewhere):
    made = kernel(
        [("PUSH", 3.0), ("STORE_STATE", SlotPlane("p", 0)), ("LOAD_COORD", "x"), ("LOAD_COORD", "y"),
         ("SAMPLE_PICTURE", PicturePlane("p", 0)), ("RETURN",)],
        slots=(image_slot("p"),), pictures=("p",),
    )  # fmt: skip
    assert elsewhere.submit(drawn, made, translated(made)).result() == drawn(made)


@pytest.mark.long
def test_a_kernel_that_is_kept_ready_keeps_no_picture_and_no_memory() -> None:
    text = "me<width> = 64\nme<height> = 32\ntrail<v> = prev(trail@v) + me@x\ndisplay(trail@v)\n"
    (unit,) = build(Request(Source("test.weft", text), ContextTable())).units
    executable = VectorExecutor().load(unit.kernel)
    memory = StateMemory(unit.kernel.slots, (32, 64))
    launch = Launch((32, 64), picture_coords(64, 32), {"absframe": 0.0}, threads=2)
    out = np.empty((32, 64, 4), np.uint8)
    kept = [weakref.ref(thing) for thing in (memory, out)]
    executable.rgba8(memory, launch, out)
    assert out.any()
    del memory, out, launch
    gc.collect()
    assert [thing() for thing in kept] == [None, None]
