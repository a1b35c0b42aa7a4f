"""The desktop and the windows of other programs as sources: on an X server of the tests alone."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.forks import ran
from tests.support.performance import PATIENCE
from tests.support.windows import private_display
from weft.cameras import Camera, camera_named
from weft.media.capture import DesktopCapture, WindowCapture
from weft.media.screens import NotGrabbedError, grabbing
from weft.media.source import LivePicture, PictureError
from weft.names import LiveName
from weft.web.limits import _stays_black

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs an X server of its own")

BLUE, RED, GREEN = (48, 96, 192), (200, 30, 20), (20, 160, 40)


class Desk:
    """Windows of one colour each, which another program might have opened."""

    def __init__(self) -> None:
        self._x11 = ctypes.CDLL("libX11.so.6")
        self._x11.XOpenDisplay.restype = ctypes.c_void_p
        self._x11.XCreateSimpleWindow.restype = ctypes.c_ulong
        self._x11.XDefaultRootWindow.restype = ctypes.c_ulong
        self._display = ctypes.c_void_p(self._x11.XOpenDisplay(None))
        self._root = ctypes.c_ulong(self._x11.XDefaultRootWindow(self._display))

    def open(self, title: str, x: int, y: int, width: int, height: int, colour: tuple[int, int, int]) -> int:
        pixel = ctypes.c_ulong(colour[0] << 16 | colour[1] << 8 | colour[2])
        place = (ctypes.c_int(x), ctypes.c_int(y), ctypes.c_uint(width), ctypes.c_uint(height))
        number: int = self._x11.XCreateSimpleWindow(self._display, self._root, *place, 0, ctypes.c_ulong(0), pixel)
        self._x11.XStoreName(self._display, ctypes.c_ulong(number), title.encode())
        self._x11.XMapWindow(self._display, ctypes.c_ulong(number))
        self._x11.XSync(self._display, False)
        return number

    def close(self, number: int) -> None:
        self._x11.XDestroyWindow(self._display, ctypes.c_ulong(number))
        self._x11.XSync(self._display, False)


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    with private_display():
        made = Desk()
        made.open("other", 0, 0, 200, 100, GREEN)
        made.open("notes - a set", 100, 50, 300, 200, BLUE)
        yield made


def until(picture: LivePicture, is_so: Callable[[NDArray[np.uint8]], bool]) -> None:
    """Looks at it until it is as it should be."""
    deadline = time.monotonic() + PATIENCE
    while not is_so(np.asarray(picture.at(0.0))):
        picture.problem()
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.long
def test_a_window_is_shown_by_a_part_of_its_title_until_it_closes(desk: Desk) -> None:
    number = desk.open("Letters", 20, 400, 320, 120, RED)
    picture = WindowCapture().open(("letter",), offline=False)
    try:
        until(picture, lambda found: found.shape == (120, 320, 4) and (found[..., :3] == RED).all())
        desk.close(number)
        deadline = time.monotonic() + PATIENCE
        while "letter" not in (words := picture.problem() or "") and "no window" not in words:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        # One that opens later takes its place.
        desk.open("Letters", 20, 400, 160, 80, BLUE)
        until(picture, lambda found: found.shape == (80, 160, 4) and (found[..., :3] == BLUE).all())
    finally:
        picture.close()


def test_a_part_of_the_desktop_is_where_it_should_be(desk: Desk) -> None:
    picture = DesktopCapture().open((90.0, 40.0, 60.0, 30.0), offline=False)
    try:
        # At 100, 50, the window of another colour begins, which is in front.
        is_blue = np.zeros((30, 60), bool)
        is_blue[10:, 10:] = True
        expected = np.where(is_blue[..., np.newaxis], BLUE, GREEN)
        until(picture, lambda found: found.shape == (30, 60, 4) and (found[..., :3] == expected).all())
    finally:
        picture.close()


def test_what_is_not_there_is_told(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PictureError, match="no window has this in its title") as raised:
        WindowCapture().open(("nothing of the kind",), offline=False)
    assert raised.value.hint is not None
    assert "minimized" in raised.value.hint, "what the process that decodes hints at comes through"
    assert "notes" not in raised.value.hint, "titles of other windows are not said"
    with pytest.raises(NotGrabbedError, match="as far as 5000, 0"):
        grabbing(Camera("desktop", "5000 0 0 0"))
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    with pytest.raises(NotGrabbedError, match="Wayland"):
        grabbing(Camera("desktop", "0 0 0 0"))
    monkeypatch.delenv("WAYLAND_DISPLAY")
    monkeypatch.delenv("DISPLAY")
    with pytest.raises(NotGrabbedError, match="no screen"):
        grabbing(Camera("desktop", "0 0 0 0"))


def test_a_title_is_compared_and_nothing_else(desk: Desk) -> None:
    for title in ("notes - a set", "NOTES", "a set"):
        form, place, options = grabbing(Camera("window", title))
        assert (form, place) == ("x11grab", os.environ["DISPLAY"])
        assert options["window_id"].isdecimal()


@pytest.mark.long
def test_a_patch_shows_it_and_a_check_opens_nothing(desk: Desk, tmp_path: Path) -> None:
    patch, out = tmp_path / "patch.weft", tmp_path / "out.png"
    patch.write_text('window("notes")::w<r, g, b>\ndisplay(w)\n')
    done = ran(["render", str(patch), "-o", str(out), "--size", "30x20"], tmp_path, os.environ)
    assert done.returncode == 0, done.stderr
    assert 'watching window("notes")' in done.stderr
    checked = ran(["check", str(patch)], tmp_path, {**os.environ, "DISPLAY": ":4242"})
    assert checked.returncode == 0
    missing = ran(["render", str(patch), "-o", str(out)], tmp_path, {**os.environ, "DISPLAY": ":4242"})
    assert missing.returncode == 3
    assert "the X server :4242 does not answer" in missing.stderr


def test_a_page_says_that_it_stays_black() -> None:
    name = LiveName("window", ("notes",)).name
    camera = camera_named(name)
    assert camera is not None
    assert camera.watches
    assert "a page does not see what a screen shows" in str(_stays_black(name))
