"""What a performance can go back to when a program fails, and that nothing is copied on the way."""

from __future__ import annotations

import pytest

from weft.backends.base import Env
from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.errors import Source
from weft.runtime.build import build
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
