"""Pictures and numbers by OpenGL ES, which small computers have: as those of OpenGL, with less of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.codegen.test_glsl_pictures import MEMORIES, remembering
from tests.support.gl import GlExecutor, Graphics, embedded_graphics
from tests.support.parity.cases import case_of_seed
from tests.support.parity.rule import compare
from tests.support.shown import expected_of
from tests.support.together import all_but
from tests.support.tolerances import OFF_SHARE
from tests.test_patches import PICTURES_OF
from weft.backends.registry import load_registry
from weft.backends.select import choose

__all__ = ["embedded_graphics"]


@pytest.mark.parametrize("path", all_but(2, PICTURES_OF), ids=lambda path: path.stem)
def test_a_shipped_picture_is_the_same(path: Path, embedded_graphics: Graphics) -> None:
    expected = expected_of(path)
    chosen = choose(load_registry(), ["visual"], "gles")["visual"]
    pictures = [unit for unit in expected.made.units if unit.subgraph.context == "visual"]
    assert not any(chosen.backend().unsuitable(unit) for unit in pictures)
    assert max(expected.differing(chosen)) <= OFF_SHARE


@pytest.mark.parametrize("text", all_but(3, MEMORIES.values()), ids=MEMORIES.keys())
def test_memory(text: str, embedded_graphics: Graphics) -> None:
    assert compare(remembering(text), GlExecutor(embedded_graphics)).unexplained == ()


@pytest.mark.parametrize("start", all_but(1, range(0, 60, 6)))
def test_generated_programs_show_what_the_reference_shows(start: int, embedded_graphics: Graphics) -> None:
    for seed in range(start, start + 6):
        assert compare(case_of_seed(seed), GlExecutor(embedded_graphics)).unexplained == (), seed
