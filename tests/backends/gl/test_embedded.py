"""Pictures and numbers by OpenGL ES, which small computers have: as those of OpenGL, with less of it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.backends.gl import test_backend as desktop
from tests.codegen.test_glsl_pictures import MEMORIES, remembering
from tests.support.gl import GlExecutor, Graphics, embedded_graphics
from tests.support.parity.cases import case_of_seed
from tests.support.parity.rule import compare
from tests.support.shown import expected_of
from tests.support.together import all_but
from tests.support.tolerances import OFF_SHARE
from tests.test_patches import PICTURES_OF
from weft.backends.gl.abilities import abilities_of
from weft.backends.gl.egl import DESKTOP, EMBEDDED, GlApi
from weft.backends.registry import load_registry
from weft.backends.select import choose

__all__ = ["embedded_graphics"]

AFTER_ES = {
    "computes", "copies_layers", "indexes_buffers", "keeps_programs", "orders_drawing", "reads_layers",
    "reads_textures", "tells_losses",
}
"""What OpenGL ES 3.0 has not, or weft does without there."""


@pytest.fixture(scope="module")
def graphics(embedded_graphics: Graphics) -> Graphics:
    return embedded_graphics


# What is said there of the memory of a card is true here.
test_what_the_card_remembers_can_be_read = desktop.test_what_the_card_remembers_can_be_read
test_images_are_resampled_as_the_processor_does_it = desktop.test_images_are_resampled_as_the_processor_does_it
test_state_goes_to_a_card_and_back = desktop.test_state_goes_to_a_card_and_back_by_what_was_allocated
test_what_is_remembered_stays_where_it_is = desktop.test_what_is_remembered_stays_where_it_is_while_there_is_room
test_a_card_finds_what_is_not_finite = desktop.test_a_card_finds_what_is_not_finite_in_what_it_remembers
test_errors_of_the_driver_are_told = desktop.test_errors_of_the_driver_are_told


@pytest.mark.parametrize(
    ("api", "version", "extensions", "lacks"),
    [
        (DESKTOP, (4, 5), (), set()),
        (DESKTOP, (4, 1), (), {"computes", "copies_layers", "reads_layers", "orders_drawing", "tells_losses"}),
        (DESKTOP, (3, 1), (), {"draws_floats", *AFTER_ES} - {"indexes_buffers"}),
        (EMBEDDED, (3, 2), (), AFTER_ES - {"tells_losses"}),
        (EMBEDDED, (3, 0), ("GL_EXT_color_buffer_float",), AFTER_ES),
        (EMBEDDED, (3, 1), ("GL_EXT_color_buffer_half_float",), {"draws_floats", *AFTER_ES}),
    ],
)
def test_abilities(api: GlApi, version: tuple[int, int], extensions: tuple[str, ...], lacks: set[str]) -> None:
    found = asdict(abilities_of(api, version, extensions))
    assert {name for name, there in found.items() if not there} == lacks


@pytest.mark.parametrize("path", all_but(2, PICTURES_OF), ids=lambda path: path.stem)
def test_a_shipped_picture_is_the_same(path: Path, embedded_graphics: Graphics) -> None:
    expected = expected_of(path)
    chosen = choose(load_registry(), ["visual"], "gles")["visual"]
    pictures = [unit for unit in expected.made.units if unit.subgraph.context == "visual"]
    assert not any(chosen.backend().unsuitable(unit) for unit in pictures)
    assert max(expected.differing(chosen)) <= OFF_SHARE


@pytest.mark.parametrize("kept", [0, 3])
def test_pictures_are_lent_while_the_next_ones_are_drawn(kept: int, embedded_graphics: Graphics) -> None:
    desktop.lends("gles", kept)


@pytest.mark.parametrize("text", all_but(3, MEMORIES.values()), ids=MEMORIES.keys())
def test_memory(text: str, embedded_graphics: Graphics) -> None:
    assert compare(remembering(text), GlExecutor(embedded_graphics)).unexplained == ()


@pytest.mark.parametrize("start", all_but(1, range(0, 60, 6)))
def test_generated_programs_show_what_the_reference_shows(start: int, embedded_graphics: Graphics) -> None:
    for seed in range(start, start + 6):
        assert compare(case_of_seed(seed), GlExecutor(embedded_graphics)).unexplained == (), seed


# Computes in each context, of which the process has had none before.
COMPUTING = """
import sys
from weft.backends.gl.frame_calls import in_tiles, make
from weft.backends.gl.egl import DESKTOP, EMBEDDED
from weft.backends.gl.graphics import GL
from weft.backends.gl.offscreen import offscreen
from weft.backends.gl.programs import OWN_REFUSED, linked

for name in sys.argv[1:]:
    api, head = {"es": (EMBEDDED, "#version 310 es"), "desktop": (DESKTOP, "#version 430")}[name]
    with offscreen(0, api).drawing():
        text = head + "\\nlayout(local_size_x = 1, local_size_y = 1) in;\\nvoid main() {}\\n"
        GL.glUseProgram(linked([(GL.GL_COMPUTE_SHADER, text)], OWN_REFUSED))
        make(in_tiles([], [], (1, 1), 1))
"""


@pytest.mark.parametrize("order", ["es", "es desktop", "desktop es"])
@pytest.mark.usefixtures("embedded_graphics")
def test_a_context_computes_whichever_came_before(order: str) -> None:
    subprocess.run([sys.executable, "-c", COMPUTING, *order.split()], check=True)
