"""Products of the time and what varies over the picture: that they stay exact, and what they cost."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.ir.test_phases import work
from tests.support.kernels import AS_WRITTEN, MACHINES, UP_TO_PHASES, WITHOUT_PHASES, kernel_by, launch_of
from tests.support.together import all_but
from tests.support.tolerances import PHASE, PIXEL
from weft.backends.executors import Executor
from weft.backends.launch import StateMemory
from weft.backends.vector.machine import VectorExecutor
from weft.beats import Beats
from weft.codegen.kernel import Kernel

DAY = 86_400
FRAME = 1 / 60
AFTER = {"a day": DAY, "a week": 7 * DAY, "a month": 30 * DAY}

# Numbers that single precision has: what is compared is the time.
CELL = "(floor(me@x * 4 + me@y * 3) / 8)"
SPEED = "hash(floor(me@x * 9), floor(me@y * 7))"

SHAPES = [
    f"fract(me@y + me@time * {SPEED})",
    f"fract(me@y - (0.2 + 0.8 * {SPEED}) * me@time)",
    f"fract(me@y + {CELL} * 0.3 * me@time * {CELL})",
    f"fract((me@time + me@x) * {CELL})",
    f"fract(me@time / (2 + 8 * {CELL}) + me@x)",
    f"fract(me@y + me@beats * {SPEED})",
    f"fract(me@y + me@frame * {CELL})",
    f"fract(me@y + floor(me@abstime * 2.5) * {SPEED})",
    f"sin(me@time * {SPEED})",
    f"cos(me@time * (1 + {CELL}) - me@x)",
    f"sin(me@time * 7 * {CELL} + <0, 2, 4>)",
    f"(me@x + me@time * {SPEED}) % 3 / 3",
    f"(me@time + me@x * 0.1) % (2 + 8 * {CELL}) / 8",
    f"noise(me@x * 4, me@time * {SPEED})",
    f"noise(me@time * {SPEED}, me@y * 4, me@time)",
    f"fbm(me@x * 4, me@y * 4, me@time * {SPEED})",
    f"simplex(me@x * 4, me@time * {CELL})",
    f"voronoi(me@x * 4, me@y * 4 + me@time * {CELL})",
    f"hash(floor(me@time * {SPEED}), 3)",
    f"sin(floor(me@time * {CELL}) * 12.9898)",
]  # fmt: skip

LOOP = f"""
spindle waves(n) :: o {{ for i in (1 to n) {{ o += sin(me@time * i * {SPEED} + me@y) / n }} }}
display(waves(3))
"""


def pixels(kernel: Kernel, executor: Executor, time: float, shape: tuple[int, int] = (9, 13)) -> NDArray[np.float64]:
    uniforms = {"absframe": float(round(time * 60)), "width": 13.0, "height": 9.0, **Beats.steady(120).inputs}
    memory = StateMemory(kernel.slots, shape, executor.widest)
    return np.asarray(executor.load(kernel).planes(memory, launch_of(shape, time, uniforms=uniforms)), np.float64)


def is_near(got: NDArray[np.float64], expected: NDArray[np.float64]) -> bool:
    """Whether pictures are the same but for what one level shows, and a pixel that lies on an edge."""
    return np.mean(~PIXEL.agreement(got, expected)) <= 1 / expected.size


def program(text: str) -> str:
    return text if "display" in text else f"display({text})"


@pytest.mark.parametrize("after", all_but(1, AFTER))
@pytest.mark.parametrize("text", [*SHAPES, LOOP])
def test_time_does_not_show_in_single_precision(text, after):
    exact, reduced = kernel_by(program(text), AS_WRITTEN), kernel_by(program(text))
    for frame in (1, 2):
        time = AFTER[after] + frame * FRAME
        expected = pixels(exact, MACHINES["vm"], time)
        for executor in (VectorExecutor(), MACHINES["native"], MACHINES["tiles"]):
            assert is_near(pixels(reduced, executor, time), expected), executor


def test_without_the_pass_it_shows():
    text = program(SHAPES[0])
    time = AFTER["a week"] + FRAME
    expected = pixels(kernel_by(text, AS_WRITTEN), MACHINES["vm"], time)
    assert not is_near(pixels(kernel_by(text, WITHOUT_PHASES), MACHINES["tiles"], time), expected)


@pytest.mark.parametrize("text", [*SHAPES, LOOP])
def test_it_means_the_same(text):
    exact, reduced = (kernel_by(program(text), passes) for passes in (AS_WRITTEN, UP_TO_PHASES))
    for time in (0.0, FRAME, -3.3, 127.9, 3600.02):
        got, expected = (pixels(kernel, MACHINES["vm"], time, (4, 5)) for kernel in (reduced, exact))
        near = PHASE.scaled(1000 * (1 + abs(time)))
        # A remainder may be that of the next turn where it is as good as whole.
        edge = np.minimum(np.abs(expected), np.abs(1 - expected)) < 1e-9
        assert np.mean(~(near.agreement(got, expected) | edge)) <= 1 / expected.size, time


def test_a_speed_that_is_not_exact_is_the_same_in_each_frame():
    """Whatever single precision makes of a speed, the picture moves by it from frame to frame."""
    text, speeds = "display(fract(me@y + me@time * (0.1 + 0.2 * me@x)))", 0.1 + 0.2 * (np.arange(13) + 0.5) / 13
    kernel = kernel_by(text)
    for start in AFTER.values():
        frames = [pixels(kernel, MACHINES["tiles"], start + frame * FRAME)[0] for frame in (1, 2)]
        moved = np.mod(frames[1] - frames[0] + 0.5, 1) - 0.5
        assert np.abs(moved - speeds * FRAME).max() < 1e-4


def test_whole_numbers_stay_whole():
    by = "(2 + floor(me@x * 9))"
    text = f"display((me@frame * floor(me@x * 9)) % 60, me@frame % {by}, hash(me@frame / {by}))"
    kernel, exact = kernel_by(text), kernel_by(text, AS_WRITTEN)
    for frame in (20, 59, 3600, 60 * DAY):
        got, expected = pixels(kernel, MACHINES["tiles"], frame / 60), pixels(exact, MACHINES["vm"], frame / 60)
        assert (got == expected).all(), frame


# --- what it costs ------------------------------------------------------------------------------------------------


def test_whole_factors_cost_nothing():
    for text in ("fract(me@y + me@time * floor(me@x * 4 + me@y))", "sin(me@time * floor(me@x * 4 + me@y) / 10)"):
        plain, reduced = (kernel_by(f"display({text})", passes) for passes in (WITHOUT_PHASES, UP_TO_PHASES))
        assert len(work(reduced, "element")) <= len(work(plain, "element"))


def test_others_cost_some_operations_where_they_vary():
    column = kernel_by("display(fract(me@y + me@time * sin(me@x * 9)))", UP_TO_PHASES)
    assert work(column, "element") == ["ADD", "MOD"]
    text = "display(fract(me@y + me@time * sin(me@x * me@y)))"
    plain, reduced = (kernel_by(text, passes) for passes in (WITHOUT_PHASES, UP_TO_PHASES))
    assert len(work(reduced, "element")) == len(work(plain, "element")) + 10


@pytest.mark.parametrize(
    "factor", ["sin(me@time)", "mouse@x", "min(me@time, 9)", "exp(-me@time)", "(me@time % 100)", "me@beat"]
)
def test_what_has_bounds_is_left_alone(factor):
    text = f"display(sin({factor} * sqrt(me@x * me@y)))"
    assert work(kernel_by(text, UP_TO_PHASES), "element") == work(kernel_by(text, WITHOUT_PHASES), "element")


def test_a_follower_does_not_grow():
    text = "n = prev(n) + (mouse@x - prev(n)) * (me@time - prev(me@time))\ndisplay(sin(n * sqrt(me@x * me@y)))"
    assert work(kernel_by(text, UP_TO_PHASES), "element") == work(kernel_by(text, WITHOUT_PHASES), "element")


def test_what_adds_up_grows():
    for sum_ in ("prev(n) + mouse@x", "if mouse@down then 0 else prev(n) + 1"):
        text = f"n = {sum_}\ndisplay(sin(n * sqrt(me@x * me@y)))"
        assert "floor" in work(kernel_by(text, UP_TO_PHASES), "element")
