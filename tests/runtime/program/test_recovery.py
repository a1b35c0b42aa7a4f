"""Memory that is not finite: it is told, and begins again with a save that changes it, or with the performance."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.compute import opencl, wgpu  # noqa: F401
from tests.support.gl import embedded_graphics, graphics  # noqa: F401
from tests.support.performance import Performance
from weft.backends.base import Env, as_array
from weft.backends.registry import load_registry
from weft.backends.select import choose, contexts_of
from weft.contexts import context_table
from weft.errors import Source
from weft.runtime.compiling.stages import Request, build
from weft.runtime.inspect.forecast import check
from weft.runtime.program.program import LoadedProgram, ProgramLoader, Programs
from weft.runtime.program.recovery import MemoryChange, MemoryWatch

SIZE = (8, 4)
TEXT = """y = prev(y) * {y} + 1
img = prev(img) * {img} + 1 + me@x
old = delay(img, 3, 3)
compute(y)
display(img, old, 0)
"""
RUNS_AWAY = TEXT.format(y="1e200", img="1e30")


class Stage:
    """Programs on a backend, one after another, with a look at their memory after each frame."""

    def __init__(self, backend: str) -> None:
        registry = load_registry()
        choices = choose(registry, ["visual", "compute"], backend, None)
        self.contexts = contexts_of(registry, choices)
        self.programs = Programs(ProgramLoader(choices))
        self.watch, self.changes, self._tick, self._now = MemoryWatch(), list[MemoryChange](), 0, 0.0

    @property
    def running(self) -> LoadedProgram:
        assert self.programs.running is not None
        return self.programs.running

    def enter(self, text: str) -> None:
        compiled = build(Request(Source("patch.weft", text), self.contexts)).compiled
        self.programs.enter(self.programs.loader.prepare(compiled, SIZE, self.programs.running))

    def frames(self, count: int, apart: float = 1.0) -> None:
        """Draws some frames, this many seconds apart."""
        for _ in range(count):
            runner = self.running.runner
            self.results = runner.run(Env(*SIZE, tick=self._tick, abstime=self._tick / 10))
            self._tick += 1
            self._now += apart
            compiled, parts = self.running.compiled, runner.all_parts
            self.changes += self.watch.follow(compiled.file, compiled.units, parts, self._tick / 10, self._now)
            self.programs.drew()

    def number(self) -> float:
        return float(next(as_array(r.values).item() for r in self.results if r.context == "compute"))

    def picture(self) -> np.ndarray:
        return next(as_array(r.values) for r in self.results if r.context == "visual")


DEVICES = {"gl": "graphics", "gles": "embedded_graphics", "opencl": "opencl", "wgpu": "wgpu"}
"""The backends of devices, and what skips a test where there is none."""


@pytest.fixture(params=["native", "vector", "vm", *DEVICES])
def stage(request: pytest.FixtureRequest) -> Stage:
    if request.param in DEVICES:
        request.getfixturevalue(DEVICES[request.param])
    return Stage(request.param)


def lost(stage: Stage) -> list[str]:
    return sorted({key.split("/")[1] for change in stage.changes if change.lost for key in change.keys})


def recovered(stage: Stage) -> list[str]:
    return sorted({key.split("/")[1] for change in stage.changes if not change.lost for key in change.keys})


def test_what_runs_away_is_told_once_and_begins_again_when_its_formula_changes(stage: Stage) -> None:
    stage.enter(RUNS_AWAY)
    stage.frames(12)
    assert lost(stage) == ["img@val", "old@val", "y@val"]
    assert stage.number() == np.inf
    told = len(stage.changes)
    stage.enter(TEXT.format(y="1e200", img="0.5"))
    stage.frames(12)
    assert recovered(stage) == ["img@val", "old@val"]
    assert stage.number() == np.inf, "nothing has changed of it"
    assert len(stage.changes) == told + 1
    shown = stage.picture()
    stage.enter(TEXT.format(y="0.5", img="0.5"))
    stage.frames(12)
    assert recovered(stage) == ["img@val", "old@val", "y@val"]
    assert stage.number() == pytest.approx(2, rel=1e-3)
    assert np.array_equal(stage.picture(), shown), "what is finite goes on"


def test_a_restart_begins_everything_again_that_is_not_finite(stage: Stage) -> None:
    stage.enter(RUNS_AWAY)
    stage.frames(12)
    assert stage.watch.restart(stage.running.runner.all_parts)
    stage.frames(1)
    assert stage.number() == 1


def test_what_comes_back_by_itself_is_told_once() -> None:
    stage = Stage("native")
    stage.enter("y = prev(if me@frame < 5 then 0 / 0 else me@frame)\ncompute(y)\n")
    stage.frames(20)
    assert [change.lost for change in stage.changes] == [True]
    assert stage.number() == 18


def test_a_save_within_a_moment_of_the_loss_counts() -> None:
    stage = Stage("native")
    stage.enter(RUNS_AWAY)
    stage.frames(12, apart=0.001)
    assert not stage.changes, "it has not looked since the first frame"
    stage.enter(TEXT.format(y="0.5", img="0.5"))
    stage.frames(3)
    assert recovered(stage)
    assert stage.number() < 2


@pytest.fixture
def performance(tmp_path: Path) -> Iterator[Performance]:
    patch = tmp_path / "p.weft"
    patch.write_text("// a comment\ny = prev(y) * 1e30 + 1\ncompute(y)\naudio(s * 0.1)\ns = prev(s) * 2 + 1\n")
    with Performance(patch, "--headless", "--no-midi") as playing:
        yield playing


@pytest.mark.long
def test_a_performance_says_where_memory_was_lost_and_that_it_is_back(performance: Performance) -> None:
    event = performance.wait_for("memory", when=lambda e: e["names"] == ["y"])
    assert (event["state"], event["line"]) == ("lost", 2)
    sound = performance.wait_for("memory", when=lambda e: e["names"] == ["s"])
    assert (sound["state"], sound["line"]) == ("lost", 5)
    performance.wait_for_words("y is not finite since")
    performance.save("// a comment\ny = prev(y) * 0.5 + 1\ncompute(y)\n")
    performance.wait_for("memory", when=lambda e: e["state"] == "recovered")
    performance.wait_for("compute", when=lambda e: isinstance(e["values"][0], float) and e["values"][0] <= 2)


# --- what check knows beforehand -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("y = prev(y) * 1000 + 1\ncompute(y)\n", ["not-finite"]),
        ("s = 0.1 + 1.5 * prev(s)\naudio(s * 0.1)\n", ["not-finite"]),
        ("y = prev(y) * 0.9 + 1\ncompute(y)\n", []),
        ("y = integrate(1e3)\ncompute(y)\n", []),
    ],
)
def test_check_tells_what_grows_without_end(text: str, codes: list[str]) -> None:
    found = check(Source("p.weft", text), context_table())
    assert [problem.code for problem in found] == codes
    assert all(str(problem.span) == "p.weft:1:1" for problem in found)
