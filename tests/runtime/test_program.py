"""What a performance can go back to when a program fails, and that nothing is copied on the way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from weft.backends.base import Env, as_array
from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.errors import Source
from weft.runtime.build import build
from weft.runtime.clock import Moment
from weft.runtime.compiling.compiler import mistakes
from weft.runtime.coordinator import pictures_of
from weft.runtime.program import LoadedProgram, ProgramLoader, Programs

SIZE = (8, 4)
COUNTING = "n = prev(n) + {step}\ndisplay(me@x)\ncompute(n)\n"


class Player:
    """Programs with a clock that is set by hand."""

    def __init__(self) -> None:
        registry = load_registry()
        self.loader = ProgramLoader(choose(registry, [spec.name for spec in registry.contexts]))
        self.time = 0.0
        self.programs = Programs(self.loader, lambda: self.time)
        self._ticks = 0

    def enter(self, step: int) -> LoadedProgram:
        made = build(Source("patch.weft", COUNTING.format(step=step)), load_registry().contexts)
        loaded = self.loader.prepare(made.compiled, SIZE, self.programs.running)
        self.programs.enter(loaded)
        return loaded

    def frame(self) -> float:
        """Draws a frame; gives what is counted."""
        assert self.programs.running is not None
        results = self.programs.running.runner.run(Env(*SIZE, tick=self._ticks))
        self._ticks += 1
        self.programs.drew()
        return float(next(r for r in results if r.context == "compute").values.item())


@pytest.fixture
def player() -> Player:
    return Player()


def test_a_failure_goes_back_to_the_program_before_with_what_is_remembered_since(player: Player) -> None:
    first = player.enter(1)
    assert [player.frame() for _ in range(3)] == [1, 2, 3]
    player.enter(10)
    assert [player.frame() for _ in range(2)] == [13, 23]
    assert player.programs.withdraw()
    assert player.programs.running is first
    assert player.frame() == 24
    assert not player.programs.withdraw(), "there is nothing before it any more"
    assert player.programs.running is first


def test_what_has_not_drawn_a_frame_is_nothing_to_go_back_to(player: Player) -> None:
    first = player.enter(1)
    player.frame()
    player.enter(10)
    player.enter(100)
    assert player.programs.withdraw()
    assert player.programs.running is first


def test_a_program_that_has_played_for_long_is_not_withdrawn(player: Player) -> None:
    player.enter(1)
    player.frame()
    second = player.enter(10)
    player.frame()
    player.time += 60
    player.frame()
    assert not player.programs.withdraw()
    assert player.programs.running is second


def test_what_is_remembered_changes_hands_without_a_copy(player: Player) -> None:
    def ring(loaded: LoadedProgram) -> object:
        memory = next(p.compiled.memory for p in loaded.runner.parts if p.unit.subgraph.context == "compute")
        return memory.ring("compute/n@val/prev/0")

    first = player.enter(1)
    player.frame()
    assert ring(player.enter(10)) is ring(first)


# --- several pictures -------------------------------------------------------------------------------------------------

SIZED = """
me<width> = 24; me<height> = 12
t = prev(t) * 0.5 + me@x * 0.5
display(t, me@width / 255, me@aspect / 4)
display(t(me@x ~ 1 - me@x), me@width / 255, me@aspect / 4, to: "beamer")
display(prev(t), me@px / 255, me@height / 255, to: "side")
"""
SIZES = {"beamer": (40, 10), "side": (9, 27)}


@pytest.mark.parametrize("backend", ["vm", "vector", "native", "gl"])
def test_a_picture_may_have_a_size_of_its_own(backend: str) -> None:
    loader = ProgramLoader(choose(load_registry(), ["visual"], backend))
    made = build(Source("patch.weft", SIZED), load_registry().contexts).compiled
    loaded = loader.prepare(replace(made, sizes=SIZES), made.size)
    for tick in range(5):
        results = loaded.runner.run(Env(*made.size, tick=tick))
    shown = {name: as_array(each.values).astype(float) for name, each in pictures_of(results).items()}
    for name, (width, height) in {"": made.size, **SIZES}.items():
        assert shown[name].shape == (height, width, 4)
        x = (np.arange(width) + 0.5) / width
        wanted = {"": x * (1 - 0.5**5), "beamer": (1 - x) * (1 - 0.5**5), "side": x * (1 - 0.5**4)}[name]
        green, blue = (np.arange(width), height) if name == "side" else (width, width / height * 255 / 4)
        for plane, value in enumerate((wanted * 255, green, blue)):
            # What remembers has the size of the first picture, and is read between its pixels.
            assert np.abs(shown[name][..., plane] - value).max() <= (12 if plane == 0 else 1)


def test_pictures_of_their_own_size_are_tried_out_as_small_as_others() -> None:
    loader = ProgramLoader(choose(load_registry(), ["visual"], "vector"))
    made = build(Source("patch.weft", SIZED), load_registry().contexts).compiled
    made = replace(made, sizes={"beamer": (4000, 1000)})
    assert not mistakes(made, loader, Moment(0, 0.0, 1 / 60, {}), {})
    small = loader.prepare(made, (6, 3))
    shapes = {name: as_array(each.values).shape[:2] for name, each in pictures_of(small.runner.run(Env(6, 3))).items()}
    assert shapes == {"": (3, 6), "beamer": (250, 1000), "side": (3, 6)}
