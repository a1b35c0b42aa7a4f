"""Pictures and numbers by OpenGL ES, which small computers have: as those of OpenGL, with less of it."""

from __future__ import annotations

import pytest

from tests.codegen.test_glsl_pictures import MEMORIES, remembering
from tests.support.gl import GlExecutor, Graphics, embedded_graphics
from tests.support.parity.cases import case_of_seed
from tests.support.parity.rule import compare
from tests.support.together import all_but

__all__ = ["embedded_graphics"]


@pytest.mark.parametrize("text", all_but(3, MEMORIES.values()), ids=MEMORIES.keys())
def test_memory(text: str, embedded_graphics: Graphics) -> None:
    assert compare(remembering(text), GlExecutor(embedded_graphics)).unexplained == ()


@pytest.mark.parametrize("start", all_but(1, range(0, 60, 6)))
def test_generated_programs_show_what_the_reference_shows(start: int, embedded_graphics: Graphics) -> None:
    for seed in range(start, start + 6):
        assert compare(case_of_seed(seed), GlExecutor(embedded_graphics)).unexplained == (), seed
