"""Pictures that were drawn by OpenGL, or OpenGL ES, in a window: shown without a copy, made ready in parallel with the
thread that draws."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.support.loaded import drawn, expected, loader_of, prepared
from weft.backends.base import PictureHandle
from weft.backends.gl.egl import GraphicsError
from weft.runtime.program.program import LoadedProgram

if TYPE_CHECKING:
    from weft.runtime.screens.display import Display

pytestmark = pytest.mark.usefixtures("display")

SIZE = (320, 180)
FEEDBACK = "t<v> = mix(hash(me@px, me@py, me@absframe), prev(t@v), 0.75)\ndisplay(t@v, me@x, me@y)\n"
OTHER = "display(me@y, fract(me@time * 3), me@x)\n"


@pytest.fixture(params=["gl", "gles"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shared(backend: str) -> Iterator[Display]:
    from weft.runtime.screens.display import Display

    found = Display(apis=loader_of(backend).drawing_apis)
    yield found
    found.close()


def test_a_picture_is_shown_as_the_card_has_drawn_it(shared: Display, backend: str) -> None:
    from weft.runtime.screens.window import Window

    loader = loader_of(backend)
    loader.draw_in(shared.graphics())
    loaded = prepared(loader, FEEDBACK, SIZE)
    with Window("weft", *SIZE, vsync=False, display=shared) as window:
        for number in range(4):
            shown = drawn(loaded, number)
            assert isinstance(shown, PictureHandle)
            window.present(shown)
            window.redraw()
        found = window.read_back()
        np.testing.assert_array_equal(found[..., :3], shown.read()[..., :3])
        assert (np.abs(found.astype(int) - expected(FEEDBACK, 4, SIZE)) > 1)[..., :3].mean() < 0.001


def test_programs_are_made_ready_beside_the_one_that_plays(shared: Display, backend: str) -> None:
    from weft.runtime.screens.window import Window

    loader = loader_of(backend)
    loader.draw_in(shared.graphics())
    playing = prepared(loader, FEEDBACK, SIZE)
    ready: list[LoadedProgram] = []
    with Window("weft", *SIZE, vsync=False, display=shared) as window:
        others = [f"{OTHER}// {k}\n" for k in range(5)]
        maker = threading.Thread(target=lambda: ready.extend(prepared(loader, text, SIZE) for text in others))
        maker.start()
        number = 0
        while maker.is_alive() or number < 3:
            window.present(drawn(playing, number))
            number += 1
        maker.join()
        assert (np.abs(window.read_back().astype(int) - expected(FEEDBACK, number, SIZE)) > 1)[..., :3].mean() < 0.001
        assert len(ready) == 5
        for loaded in ready:
            window.present(drawn(loaded, 0))
        assert (np.abs(window.read_back().astype(int) - expected(OTHER, 1, SIZE)) > 1)[..., :3].mean() < 0.001


def test_pictures_of_all_kinds_follow_one_another(shared: Display, backend: str) -> None:
    from weft.runtime.screens.window import Window

    loader = loader_of(backend)
    loader.draw_in(shared.graphics())
    array = np.random.default_rng(1).integers(0, 256, (SIZE[1], SIZE[0], 4), np.uint8)
    own = prepared(loader, OTHER, SIZE)
    with Window("weft", *SIZE, vsync=False, display=shared) as window:
        for picture in (array, drawn(own, 0), array, drawn(own, 7), drawn(own, 9), array):
            window.present(picture)
            wanted = picture if isinstance(picture, np.ndarray) else picture.read()
            np.testing.assert_array_equal(window.read_back()[..., :3], wanted[..., :3])


def test_a_window_that_is_closed_leaves_the_programs_alone(shared: Display, backend: str) -> None:
    from weft.runtime.screens.window import Window

    loader = loader_of(backend)
    graphics = shared.graphics()
    loader.draw_in(graphics)
    loaded = prepared(loader, FEEDBACK, SIZE)
    with Window("weft", *SIZE, vsync=False, display=shared) as window:
        window.present(drawn(loaded, 0))
    drawn(loaded, 1)
    last = drawn(loaded, 2).read()
    assert (np.abs(last.astype(int) - expected(FEEDBACK, 3, SIZE)) > 1).mean() < 0.001
    shared.close()
    with pytest.raises(GraphicsError, match="closed"), graphics.drawing():
        pass
