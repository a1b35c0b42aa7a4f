"""What comes once in a launch of a card is the same as machine code and interpreted."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tests.support.beats import changing_beats
from tests.support.gl import Graphics, graphics
from tests.support.parity.cases import case_of_seed
from tests.support.together import all_but
from tests.support.tolerances import DOUBLE
from weft.backends import prologue
from weft.backends.base import Env, as_array
from weft.backends.gl.backend import GlVisual
from weft.backends.launch import Launch, StateMemory, picture_coords
from weft.backends.native import llvm
from weft.backends.native.llvm import NativeCode
from weft.backends.prologue import LaunchPrologue
from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.codegen.kernel import Kernel
from weft.contexts import ContextTable
from weft.errors import Source
from weft.runtime.compiling.stages import Request, build
from weft.runtime.program.compiled import CompiledProgram
from weft.runtime.program.program import ProgramLoader

__all__ = ["graphics"]

pytestmark = pytest.mark.skipif(llvm.problem() is not None, reason="there is no machine code here")

PROGRAMS, CHUNK = 100, 50
SHAPE = (8, 12)

# Long enough to be worth it: a hundred terms that change with the frame alone.
LONG = "+".join(f"sin(me@time * {n}.5 + {n})" for n in range(40))


@pytest.fixture(autouse=True)
def all_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prologue, "_WORTH_CODE", -1)


def built(text: str) -> CompiledProgram:
    return build(Request(Source("patch.weft", text), ContextTable())).compiled


def kernel_of(text: str) -> Kernel:
    return next(unit.kernel for unit in built(text).units if unit.subgraph.context == "visual")


def both(kernel: Kernel) -> tuple[LaunchPrologue, LaunchPrologue, NativeCode]:
    """It interpreted, and as machine code that has come from another process."""
    code = prologue.prologue_code(kernel)
    assert code is not None
    plain, fast = LaunchPrologue(kernel), LaunchPrologue(kernel)
    fast.upgrade(pickle.loads(pickle.dumps(code)))
    return plain, fast, code


def launch_of(number: int) -> Launch:
    uniforms = {
        "width": SHAPE[1], "height": SHAPE[0], "absframe": number, "dt": 1 / 60, "mouse@x": 0.25,
        **changing_beats(0.2, 97, 131),
    }  # fmt: skip
    return Launch(SHAPE, picture_coords(*SHAPE[::-1], number / 60), uniforms)


@pytest.mark.parametrize("start", all_but(1, range(0, PROGRAMS, CHUNK)))
def test_generated_programs_have_the_same_numbers(start: int) -> None:
    compared = different = 0
    for seed in range(start, start + CHUNK):
        case = case_of_seed(seed)
        if prologue.prologue_code(case.kernel) is None:
            continue
        plain, fast, code = both(case.kernel)
        mine, its = (StateMemory(case.kernel.slots, case.launches[0].shape) for _ in range(2))
        for launch in case.launches:
            expected, found = plain.begin(mine, launch), fast.begin(its, launch)
            read = [int(scalar.key) for scalar in code.layout.scalars]
            numbers = [[machine.locals[at] for at in read] for machine in (found, expected)]
            agrees = DOUBLE.scaled(100).agreement(*numbers)
            compared += agrees.size
            different += int((~agrees).sum())
            assert found.coords == expected.coords
            assert found.loop_stopped == expected.loop_stopped
            for slot in (slot for slot in case.kernel.slots if not slot.image):
                assert DOUBLE.scaled(100).agreement(its.ring(slot.key), mine.ring(slot.key)).all(), case.text
            for memory in (mine, its):
                memory.advance()
    assert compared > 150
    # A comparison of what differs in its last digit alone may come out otherwise.
    assert different <= 0.002 * compared


def test_numbers_that_are_remembered_go_on_from_where_the_interpreter_left_them() -> None:
    kernel = kernel_of("n<v> = prev(n@v) + 1 / 64\nd = delay(n@v, 2, 5)\ndisplay(n@v * me@x, d * me@y, 0)\n")
    plain, fast, _ = both(kernel)
    mine, its = StateMemory(kernel.slots, SHAPE), StateMemory(kernel.slots, SHAPE)
    for number in range(12):
        plain.begin(mine, launch_of(number))
        (fast if number % 4 > 1 else plain).begin(its, launch_of(number))
        for slot in kernel.slots:
            np.testing.assert_array_equal(mine.ring(slot.key), its.ring(slot.key))
        mine.advance()
        its.advance()


def test_a_loop_that_is_stopped_is_told() -> None:
    text = "spindle f(n) :: o {\n  out o = 0\n  for i in (0 to n) { o += sin(i) }\n}\n"
    kernel = kernel_of(f"{text}display(f(me@time * 1e9) * me@x)\n")
    plain, fast, _ = both(kernel)
    for number, stopped in ((0, False), (1, True), (0, False)):
        for once in (plain, fast):
            assert once.begin(StateMemory(kernel.slots, SHAPE), launch_of(number)).loop_stopped == stopped


def test_what_asks_others_or_reads_images_is_interpreted() -> None:
    asks = "n<v> = prev(n@v) + me@x\ndisplay(n@v)\nc = n@v(me@x ~ 0.5)\ncompute(c)\ndisplay(c * me@x, to: \"b\")\n"
    reads = "i<v> = prev(i@v) * 0.5 + me@x\ndisplay(i@v(me@x ~ 0.5, me@y ~ 0.5) * me@x)\n"
    for text in (asks, reads):
        kernels = [unit.kernel for unit in built(text).units if unit.subgraph.context == "visual"]
        codes = [prologue.prologue_code(kernel) for kernel in kernels]
        fields = [field for code in codes if code is not None for field in code.layout.fields]
        assert not any(type(field).__name__ in ("Ring", "Cell") for field in fields)
    assert prologue.prologue_code(kernel_of("display(me@x)")) is None


def test_only_what_takes_long_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert prologue.prologue_code(kernel_of("display(sin(me@time) * me@x)")) is None
    assert LaunchPrologue(kernel_of("display(sin(me@time) * me@x)")).tier is None
    kernel = kernel_of(f"display(({LONG}) * me@x)")
    _, fast, _ = both(kernel)
    assert (LaunchPrologue(kernel).tier, fast.tier) == (1, 2)


def test_code_serves_all_numbers() -> None:
    """A number that is tuned is an argument of the code that there is."""
    backend = GlVisual()
    units = [next(iter(built(f"display(sin(me@time * {n}) * {n} + me@x)").units)) for n in (2.5, 3.25)]
    codes = [backend.translate(unit, tier=2) for unit in units]
    assert isinstance(codes[0], NativeCode)
    assert isinstance(codes[1], NativeCode)
    assert codes[1].code is codes[0].code
    for unit, code in zip(units, codes, strict=True):
        plain, fast = LaunchPrologue(unit.kernel), LaunchPrologue(unit.kernel)
        fast.upgrade(code)
        one, other = (each.begin(StateMemory(()), launch_of(7)) for each in (plain, fast))
        assert DOUBLE.agreement(np.array(other.locals), np.array(one.locals)).all()


def test_a_picture_on_a_card_is_the_same_when_its_code_has_come(graphics: Graphics) -> None:
    compiled = built(f"n<v> = prev(n@v) + 1 / 64\ndisplay(fract({LONG}) * me@x, n@v, me@y)\n")
    loader = ProgramLoader(choose(load_registry(), ["visual"], "gl"))
    loaded, still = (loader.prepare(compiled, SHAPE[::-1]) for _ in range(2))
    pictures = []
    for number in range(6):
        if number == 3:
            (unit,) = loaded.improvable
            assert loaded.tier() == 1
            loaded.upgrade(loader.improve([unit])[0])
            assert loaded.tier() == 2
        env = Env(*SHAPE[::-1], tick=number, abstime=number / 60, dt=1 / 60)
        pictures.append([as_array(each.runner.run(env)[0].values) for each in (loaded, still)])
    for found, expected in pictures:
        assert np.abs(found.astype(int) - expected).max() <= 1
