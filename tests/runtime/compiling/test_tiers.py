"""Tiers under a running performance: at once, and then better from the background."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from tests.support.performance import Performance
from tests.support.tolerances import LEVELS
from weft.backends.base import Env
from weft.backends.cpu import CpuCode
from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.contexts import ContextTable
from weft.errors import Source
from weft.runtime.compiling.compiler import Compiler, Saved
from weft.runtime.compiling.stages import Request, build
from weft.runtime.program.coordinator import pictures_of
from weft.runtime.program.program import ProgramLoader, Setup

SIZE = "me<width> = 96\nme<height> = 54\n"
WAVES = "me<width> = 96\nme<height> = 54\ndisplay(sin(me@x * {} + me@time), me@y, prev(me@x))\ncompute(me@time)\n"


@pytest.fixture
def patch(tmp_path: Path) -> Path:
    return tmp_path / "patch.weft"


def test_the_better_tier_takes_over_and_an_undo_has_it_at_once(patch: Path) -> None:
    patch.write_text(WAVES.format(3))
    with Performance(patch, "--headless") as performance:
        first = performance.wait_for("tier")
        assert (first["tier"], first["hash"]) == (2, performance.hash)
        assert first["compile_ms"] > 0
        performance.save(SIZE + "display(sin(me@x * me@y + me@time))\n")
        assert performance.wait_for("swap")["tier"] == 1
        assert performance.wait_for("tier", 2)["hash"] == performance.hash
        performance.save(WAVES.format(3))
        undone = performance.wait_for("swap", 2)
        assert (undone["tier"], undone["recompiled"]) == (2, [])


def test_a_number_that_is_tuned_has_the_better_tier_at_once(patch: Path) -> None:
    patch.write_text(WAVES.format(3))
    with Performance(patch, "--headless") as performance:
        performance.wait_for("tier")
        for save, number in enumerate((5, 6, 7.25), 1):
            performance.save(WAVES.format(number))
            tuned = performance.wait_for("swap", save)
            assert (tuned["tier"], tuned["recompiled"]) == (2, ["visual/display"])


def test_a_number_that_is_tuned_without_a_pause_gets_the_better_tier(patch: Path) -> None:
    patch.write_text(SIZE + "display(me@x)\n")
    with Performance(patch, "--headless") as performance:
        performance.wait_for("started")
        for save in range(1, 80):
            performance.save(WAVES.format(3 + save / 100))
            if performance.wait_for("swap", save)["tier"] == 2:
                break
            time.sleep(0.05)
        else:
            pytest.fail("the better tier never came")


def test_only_a_structure_that_has_stayed_is_improved_for_the_next_text(tmp_path: Path) -> None:
    compiler = Compiler.of(Setup(str(tmp_path / "patch.weft"), asked="native"))

    def saved(text: str, moment: float) -> tuple[int | None, bool]:
        """The tier of the picture of a text, and whether better code is wanted for the next."""
        made = compiler.compile(Saved(text.encode(), moment)).compiled
        assert made is not None
        (code,) = (unit.code for unit in made.units if unit.subgraph.context == "visual")
        assert isinstance(code, CpuCode)
        return getattr(code.grid, "tier", None), compiler.is_tuning

    assert saved(WAVES.format(3), 0.0) == (1, False)
    assert saved(WAVES.format(5), 0.4) == (1, False)
    assert saved(WAVES.format(6), 0.6) == (1, True)
    assert saved(WAVES.format(6.5).replace("sin", "cos"), 0.7) == (1, False)
    assert saved(WAVES.format(6), 0.8) == (1, False)
    assert saved(WAVES.format(7), 1.4) == (1, True)
    compiler.improve()
    assert not compiler.is_tuning
    assert saved(WAVES.format(8), 1.5) == (2, False)


def test_a_save_with_a_mistake_takes_no_tier_away(patch: Path) -> None:
    """Also when it comes while the better one is made."""
    heavy = " + ".join(f"fbm(me@x * {n}, me@y, me@time) + voronoi(me@x, me@y * {n})" for n in (2,))
    good = f"me<width> = 96\nme<height> = 54\ndisplay({heavy})\n"
    patch.write_text(good)
    with Performance(patch, "--headless") as performance:
        performance.wait_for("started")
        good_hash = performance.hash
        for number in range(4):
            performance.save(good + "oops(\n" * (number + 1))
            performance.wait_for("error", number + 1)
        assert performance.wait_for("tier")["hash"] == good_hash


def test_what_has_no_better_tier_goes_on_as_it_is(patch: Path) -> None:
    patch.write_text(WAVES.format(3))
    with Performance(patch, "--headless", "--backend", "vector", "--duration", "1.5") as performance:
        assert performance.ended() == 0
        names = [event["event"] for event in performance.events]
    assert "tier" not in names
    assert names[-1] == "stopped"


def test_a_stage_improves_what_runs() -> None:
    loader = ProgramLoader(choose(load_registry(), ["visual", "compute"], "native"))
    made = build(Request(Source("test.weft", WAVES.format(3)), ContextTable()))
    loaded = loader.prepare(loader.translate(made.compiled), made.compiled.size)
    pictures = []
    for tick in range(2):
        result = pictures_of(loaded.runner.run(Env(96, 54, tick, 1.5, 1 / 60))).get("")
        assert result is not None
        pictures.append(result.values.copy())
        assert loaded.tier() == tick + 1
        if tick == 0:
            assert [unit.subgraph.name for unit in loaded.improvable] == ["visual/display"]
            loaded.upgrade(loader.improve(loaded.improvable)[0])
            assert loaded.improvable == ()
    apart = np.abs(pictures[0][:, :, :2].astype(int) - pictures[1][:, :, :2])
    assert apart.max() <= LEVELS
    # The memory of the first tick is still there.
    assert not pictures[0][:, :, 2].any()
    assert pictures[1][:, :, 2].any()
