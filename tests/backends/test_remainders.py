"""`%` and `fract` on every machine, for operands of all magnitudes: what is left is less than a turn, and exact on the
processor. And of two zeros, a minimum and a maximum are the second one."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.ops.operands import exact_remainder, outside_of_period, remainder_operands
from tests.support.devices import DRAWING, cuda, device, embedded_graphics, executor_on, graphics, opencl, wgpu
from tests.support.exprs import Exprs, image_slot, lowered
from tests.support.kernels import compiled, kernel, launch_of
from tests.support.metal.executor import MetalExecutor
from weft.backends.executors import Executor
from weft.backends.launch import Launch, StateMemory
from weft.backends.native import llvm
from weft.backends.native.executor import NativeExecutor
from weft.backends.vector.machine import VectorExecutor
from weft.backends.vm import ReferenceExecutor
from weft.backends.wasm import WasmExecutor
from weft.codegen.cuda import Cuda
from weft.codegen.glsl import Glsl
from weft.codegen.kernel import Kernel
from weft.codegen.native.target import ISAS
from weft.ir.rates import Rate

__all__ = ["cuda", "device", "embedded_graphics", "graphics", "opencl", "wgpu"]

HERE = {f"native-{isa.name}": isa for isa in ISAS.values() if llvm.runs_here(isa)}
PERIODS = (1, 2, 4, 2.0**40, 7, 3, 100, 0.5, 0.1, 1e-3, 2.0**-20, 1e-30, 1e30, -1, -4, -7, -0.3)


@pytest.fixture(scope="module", params=["vm", "vector", "wasm", *HERE, *DRAWING])
def machine(request: pytest.FixtureRequest) -> tuple[str, Executor]:
    match request.param:
        case "vm":
            return "vm", ReferenceExecutor()
        case "vector":
            return "vector", VectorExecutor()
        case "wasm":
            return "wasm", WasmExecutor()
        case name if name in DRAWING:
            return name, executor_on(name, request)
    return request.param, NativeExecutor(llvm.plainest(HERE[request.param]))


def arrays_of(operands: Sequence[np.ndarray | float]) -> dict[str, np.ndarray]:
    return {f"v/{at}": each for at, each in enumerate(operands) if isinstance(each, np.ndarray)}


def row(name: str, operands: Sequence[np.ndarray | float]) -> Kernel:
    """A row, applied to numbers and to what the state of each pixel was."""
    e = Exprs()
    values = {key: e.state(key, 1) for key in arrays_of(operands)}
    terms = [values.get(f"v/{at}", each) for at, each in enumerate(operands)]
    return compiled(lowered(e(name, *terms), slots=[image_slot(key) for key in values], updates=values))


def computed(executor: Executor, name: str, operands: Sequence[np.ndarray | float]) -> np.ndarray:
    """A row, applied to numbers and arrays of singles."""
    made, arrays = row(name, operands), arrays_of(operands)
    shape = (1, len(next(iter(arrays.values()))))
    memory = StateMemory(made.slots, shape)
    for key, array in arrays.items():
        memory.ring(key)[memory.cell(key, 1)] = array
    # These compute in double precision what other machines write as singles.
    return np.asarray(executor.load(made).planes(memory, launch_of(shape))[0, 0])


def in_doubles(name: str, operands: Sequence[np.ndarray | float], executor: Executor) -> np.ndarray:
    """The same of doubles, which are what coordinates of a sound are."""
    names = [f"operand{at}" for at, each in enumerate(operands) if isinstance(each, np.ndarray)]
    code = [
        ("LOAD_COORD", f"operand{at}") if isinstance(each, np.ndarray) else ("PUSH", float(each))
        for at, each in enumerate(operands)
    ]
    coords = tuple((each, Rate.ELEMENT) for each in names)
    made = kernel([*code, (name.upper(),), ("RETURN",)], tick="element", coords=coords, context="audio")
    given = {f"operand{at}": each for at, each in enumerate(operands) if isinstance(each, np.ndarray)}
    count = len(next(iter(given.values())))
    return np.asarray(executor.load(made).planes(StateMemory(()), Launch((1, count), given))[0, 0])


def check(name: str, a: np.ndarray, b: np.ndarray, got: np.ndarray) -> None:
    __tracebackhide__ = True
    if name in ZEROS_ALIKE:
        is_normal = np.abs(b) >= np.finfo(b.dtype).smallest_normal
        a, b, got = a[is_normal], b[is_normal], got[is_normal]
    assert outside_of_period(a, b, got)[:3] == []
    expected = exact_remainder(a, b)
    if name in ("vm", "wasm"):
        expected = exact_remainder(a.astype(np.float64), b.astype(np.float64))
    off = got != expected
    if name in DRAWING:
        whole = (np.floor(a) == a) & (np.floor(b) == b) & (np.abs(a) < 2**24)
        assert [*zip(a[off & whole], b[off & whole], got[off & whole], strict=True)][:3] == []
    else:
        if name in ("native-sse2", "wasm"):  # without fused products, the halves of the largest numbers overflow
            off &= np.abs(a) < np.finfo(a.dtype).max * 2.0**-32
        assert [*zip(a[off], b[off], got[off], expected[off], strict=True)][:3] == []
        np.testing.assert_array_equal(np.signbit(got), np.signbit(b))


def rests(compute: Callable[[Sequence[np.ndarray | float]], np.ndarray], name: str, real: type[np.floating]) -> None:
    a, b = remainder_operands(real, 150 if name == "vm" else 500)
    check(name, a, b, compute([a, b]))
    some = a[::10]
    for period in map(real, PERIODS):
        check(name, some, np.full_like(some, period), compute([some, float(period)]))


@pytest.mark.long
def test_rests_of_singles_are_less_than_a_turn(machine: tuple[str, Executor]) -> None:
    name, executor = machine
    if isinstance(executor, MetalExecutor):  # one run of its compiler for all
        some = np.zeros(1, np.float32)
        executor.prepare([row("mod", [some, period]) for period in (some, *map(float, map(np.float32, PERIODS)))])
    rests(lambda operands: computed(executor, "mod", operands), name, np.float32)
    a, _ = remainder_operands(np.float32, 200)
    check(name, a, np.ones_like(a), computed(executor, "fract", [a]))


# What drivers make of a · b · c.
OTHER_ORDER = re.compile(r"(\w+) \* ([\w.-]+) \* (real_in\([^;]*?<< 23u\));")


@pytest.mark.parametrize("name", ["glsl", "cuda"])
def test_rests_do_not_depend_on_the_order_of_products(
    name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    language = {"glsl": Glsl, "cuda": Cuda}[name]
    other = {key: OTHER_ORDER.sub(r"\1 * \3 * \2;", text) for key, text in language.prelude.items()}
    assert sum(text != language.prelude[key] for key, text in other.items()) == 1
    monkeypatch.setattr(language, "prelude", other)
    a = np.float32([1e38, 2.9e38, -3.3e38, 1e30, 5e-30])
    for period in (np.float32(9e31), np.float32(-2e31), np.float32(1e-20)):
        given = a if abs(period) > 1 else a[-1:]
        got = computed(executor_on(name, request), "mod", [given, float(period)])
        check(name, given, np.full_like(given, period), got)


def test_a_program_may_take_many_rests(machine: tuple[str, Executor]) -> None:
    """The time that drivers which draw in software take for a program grows with its loops without bounds."""
    executor = machine[1]
    e = Exprs()
    value = given = e.state("v/0", 1)
    for period in range(3, 27):
        value = e("mod", e("add", given, value), float(period))
    made = compiled(lowered(value, slots=[image_slot("v/0")], updates={"v/0": given}))
    wholes = np.random.default_rng(5).integers(0, 2**23, 200).astype(np.float32)
    memory = StateMemory(made.slots, (1, len(wholes)))
    memory.ring("v/0")[memory.cell("v/0", 1)] = wholes
    got = np.asarray(executor.load(made).planes(memory, launch_of((1, len(wholes))))[0, 0])
    expected = wholes
    for period in range(3, 27):
        expected = np.fmod(wholes + expected, np.float32(period))
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", ["vm", "vector", "wasm", *HERE])
def test_rests_of_doubles_are_less_than_a_turn(name: str) -> None:
    executor = {"vm": ReferenceExecutor(), "vector": VectorExecutor(), "wasm": WasmExecutor()}.get(name)
    executor = executor or NativeExecutor(llvm.plainest(HERE[name]))
    rests(lambda operands: in_doubles("mod", operands, executor), name, np.float64)


# Languages whose drivers need not tell zeros apart, nor numbers below 2⁻¹²⁶ from 0.
ZEROS_ALIKE = ("msl", "wgsl", "glsl", "essl")
ZEROS = np.array([*itertools.product((0.0, -0.0), repeat=2)] * 9, np.float32).T


@pytest.mark.parametrize("name", ["min", "max"])
def test_of_two_zeros_the_second_is_given(machine: tuple[str, Executor], name: str) -> None:
    """Whether they are known or not; 1 divided by what is given tells them apart. Some drivers do not."""
    if machine[0] in ZEROS_ALIKE:
        return
    executor = machine[1]
    first, second = ZEROS
    np.testing.assert_array_equal(np.signbit(computed(executor, name, [first, second])), np.signbit(second))
    for known in (0.0, -0.0):
        of_known = computed(executor, name, [known, second])
        np.testing.assert_array_equal(np.signbit(of_known), np.signbit(second), str(known))
        by_known = computed(executor, name, [first, known])
        np.testing.assert_array_equal(np.signbit(by_known), np.signbit(known), str(known))
