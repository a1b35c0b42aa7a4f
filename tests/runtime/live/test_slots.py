"""The memory of a program continues over edits that leave its place alone: other expressions, another order, other
names elsewhere, another size."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from weft.backends.base import Env
from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.errors import Source
from weft.runtime.compiling.stages import Request, build
from weft.runtime.program.program import LoadedProgram, ProgramLoader

TICKS = 3

COUNTER = "spindle counter(step) :: v { v = integrate(step * 60) }\n"
STATEMENTS = (
    "n = prev(n) + 1",
    "m = counter(10)",
    "trail<v> = prev(trail@v) + 1 + 0 * me@x",
    "other = sin(me@x * 3)",
    "display(trail@v, other, 0)",
    "compute(n, m, integrate(1))",
)
TEXT = COUNTER + "\n".join(STATEMENTS)


class Edited:
    """A text that has run for some ticks, then was edited."""

    def __init__(self, before: str, after: str, sizes: tuple[tuple[int, int], tuple[int, int]]) -> None:
        registry = load_registry()
        self.loader = ProgramLoader(choose(registry, [spec.name for spec in registry.contexts]))
        first = self._prepared(before, sizes[0], None)
        for number in range(TICKS):
            first.runner.run(self._env(first, number))
        self.loaded = self._prepared(after, sizes[1], first)
        self.loader.take_over(self.loaded, first)
        results = self.loaded.runner.run(self._env(self.loaded, TICKS))
        self.values = [float(v) for r in results if r.context == "compute" for v in r.values.reshape(-1)]

    def _prepared(self, text: str, size: tuple[int, int], before: LoadedProgram | None) -> LoadedProgram:
        made = build(Request(Source("patch.weft", text), load_registry().contexts))
        return self.loader.prepare(made.compiled, size, before)

    def _env(self, loaded: LoadedProgram, number: int) -> Env:
        return Env(*loaded.size, tick=number, abstime=number / 60, dt=1 / 60)

    def image(self, key: str) -> np.ndarray:
        """What a slot remembers of the tick that was finished last."""
        memory = next(p.compiled.memory for p in self.loaded.runner.parts if key in p.compiled.memory.slots)
        return memory.ring(key)[memory.cell(key, 1)][0]


def edited(before: str, after: str, sizes: tuple[tuple[int, int], tuple[int, int]] = ((8, 4), (8, 4))) -> Edited:
    return Edited(before, after, sizes)


@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_the_order_of_statements_does_not_matter(order: tuple[int, ...]) -> None:
    moved = [STATEMENTS[index] for index in order]
    found = edited(TEXT, "\n".join([*STATEMENTS[3:], *moved]) + "\n" + COUNTER)
    assert found.values == pytest.approx([TICKS + 1, 10 * TICKS, TICKS / 60])
    assert found.image("visual/trail@v/prev/0") == pytest.approx(TICKS + 1)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("other", "renamed", [TICKS + 1, 10 * TICKS]),  # another strand's name
        ("prev(n) + 1", "5 * prev(n) + 7", [5 * TICKS + 7, 10 * TICKS]),  # the expression around it
        ("counter(10)", "counter(20) * 2", [TICKS + 1, 2 * (10 * TICKS)]),  # around, and in, a call
        ("n = prev(n)", "z = prev(z) + 1\nn = z * 0 + prev(n)", [TICKS + 1, 10 * TICKS]),  # more state elsewhere
        ("n = prev(n) + 1", "n = prev(n) + 1 + 0 * prev(4)", [TICKS + 1, 10 * TICKS]),  # more behind it
        ("m = counter(10)", "m<val> = counter(10)", [TICKS + 1, 10 * TICKS]),  # written otherwise
    ],
)
def test_an_edit_beside_it_leaves_it_alone(old: str, new: str, expected: list[float]) -> None:
    after = TEXT.replace(old, new)
    assert after != TEXT
    assert edited(TEXT, after).values[:2] == pytest.approx(expected)


def test_another_name_or_kind_is_another_memory() -> None:
    renamed = TEXT.replace("n = prev(n)", "k = prev(k)").replace("compute(n", "compute(k")
    assert edited(TEXT, renamed).values[:2] == pytest.approx([1, 10 * TICKS])
    other_kind = TEXT.replace("n = prev(n) + 1", "n = hold(me@absframe, 0)")
    assert edited(TEXT, other_kind).values[:2] == pytest.approx([TICKS, 10 * TICKS])


FEEDBACK = """
spindle total(step) :: <v, w> { v = prev(w) + step; w = v * 1 }
spindle stage(step) :: v { v = total(step)@w }
total(1)::n<v, w>
compute(n@w, stage(10))
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("w = v * 1", "w = v * 2", [2 * (TICKS + 1), 2 * (10 * TICKS + 10)]),  # what it becomes
        ("+ step", "+ step * 3", [TICKS + 3, 10 * TICKS + 30]),  # around it
        ("v = prev(w) + step; w = v * 1", "w = prev(v); v = w + step", [TICKS, 10 * TICKS]),  # the name that it reads
        ("total(1)::n<v, w>", "total(5)::n<v, w>", [TICKS + 5, 10 * TICKS + 10]),  # in a call
    ],
)
def test_feedback_within_a_spindle_goes_on(old: str, new: str, expected: list[float]) -> None:
    after = FEEDBACK.replace(old, new)
    assert after != FEEDBACK
    assert edited(FEEDBACK, after).values == pytest.approx(expected)


def test_what_was_one_number_goes_on_at_every_pixel() -> None:
    number = "n<v> = prev(n@v) + 1\ndisplay(n@v * me@x)\n"
    found = edited(number, number.replace("+ 1", "+ me@x")).image("visual/n@v/prev/0")
    np.testing.assert_allclose(found, np.broadcast_to(TICKS + (np.arange(8) + 0.5) / 8, (4, 8)), rtol=1e-6)


def test_a_resize_resamples_what_is_remembered_of_a_picture() -> None:
    ramp = "ramp<v> = if me@absframe < 1 then me@x + 2 * me@y else prev(ramp@v)\ndisplay(ramp@v)\n"
    found = edited(ramp, ramp, ((40, 20), (20, 10))).image("visual/ramp@v/prev/0")
    x, y = (np.arange(20) + 0.5) / 20, (np.arange(10) + 0.5) / 10
    assert found.shape == (10, 20)
    assert found == pytest.approx(x[None, :] + 2 * y[:, None], abs=1e-5)
