"""A real window on a display of its own: what it shows to the bit, and what mouse and keyboard do in it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.support.parameters import specs_of
from tests.support.windows import Picture, geometry, on_x11, pointer_is_seen, resize, screen, set_property, xdotool
from weft.errors import Diagnostic, WeftError
from weft.runtime.hands.inputs import Inputs
from weft.runtime.screens.screen import Overlay

if TYPE_CHECKING:
    from weft.runtime.screens.window import Window

Eventually = Callable[..., None]

pytestmark = pytest.mark.usefixtures("display")


def noise(width: int, height: int) -> Picture:
    return np.random.default_rng(1).integers(0, 256, (height, width, 4), np.uint8)


@pytest.fixture
def commands() -> list[str]:
    return []


@pytest.fixture
def window(commands: list[str]) -> Iterator[Window]:
    from weft.runtime.screens.window import Window

    with Window("weft", 320, 180, vsync=False, on_command=commands.append) as window:
        yield window


def test_a_picture_of_the_same_size_is_shown_to_the_bit(window: Window) -> None:
    for picture in (noise(320, 180), noise(320, 180)[::-1, ::-1], np.zeros((180, 320, 4), np.uint8)):
        window.present(picture)
        assert np.array_equal(window.read_back(), picture)


@on_x11
def test_the_screen_shows_what_is_read_back(window: Window, tmp_path: Path, eventually: Eventually) -> None:
    resize(window, 320, 179)
    window.present(noise(64, 64))
    expected = window.read_back()[..., :3]

    def is_shown() -> bool:
        shown = screen(tmp_path)
        return np.array_equal(shown[:179, :320], expected) and not shown[179:].any() and not shown[:, 320:].any()

    eventually(is_shown)


@on_x11
def test_another_aspect_lies_between_black_bars(window: Window) -> None:
    resize(window, 340, 180)
    window.present(np.full((90, 90, 4), 255, np.uint8))
    shown = window.read_back()
    assert (shown[:, 80:260] == 255).all()
    assert (shown[:, :80] == (0, 0, 0, 255)).all()
    assert (shown[:, 260:] == (0, 0, 0, 255)).all()
    window.present(np.full((10, 170, 4), 255, np.uint8))
    shown = window.read_back()
    assert (shown[80:100] == 255).all()
    assert (shown[:80] == (0, 0, 0, 255)).all()
    assert (shown[100:] == (0, 0, 0, 255)).all()


@on_x11
def test_scaling_is_smooth_or_sharp(window: Window) -> None:
    from weft.runtime.screens.window import Window

    picture = noise(32, 18)
    with Window("sharp", 32, 18, vsync=False, filtering="nearest", display=window.display) as sharp:
        resize(sharp, 320, 180, "sharp")
        sharp.present(picture)
        assert np.array_equal(sharp.read_back(), picture.repeat(10, 0).repeat(10, 1))
    ramp = np.zeros((18, 32, 4), np.uint8)
    ramp[...] = 8 * np.arange(32)[:, np.newaxis]
    with Window("smooth", 32, 18, vsync=False, display=window.display) as smooth:
        resize(smooth, 320, 180, "smooth")
        smooth.present(ramp)
        steps = np.diff(smooth.read_back()[90, 5:315].astype(int), axis=0)
    assert ((steps == 0) | (steps == 1)).all()


def test_several_windows_show_each_its_own(window: Window) -> None:
    from weft.runtime.screens.window import Window

    first, second = noise(320, 180), noise(100, 50)
    with Window("other", 100, 50, vsync=False, display=window.display) as other:
        window.present(first)
        other.present(second)
        assert np.array_equal(window.read_back(), first)
        assert np.array_equal(other.read_back(), second)
    window.present(first)
    assert np.array_equal(window.read_back(), first)


def test_before_the_first_picture_all_is_black(window: Window) -> None:
    assert (window.read_back() == (0, 0, 0, 255)).all()


@pytest.mark.parametrize(
    "picture", [np.zeros((4, 4, 3), np.uint8), np.zeros((4, 4, 4), np.float32), np.zeros((0, 4, 4), np.uint8)]
)
def test_what_is_no_picture_is_refused(window: Window, picture: Picture) -> None:
    with pytest.raises(ValueError, match="not a picture"):
        window.present(picture)


def test_a_picture_beyond_the_graphics_card_is_an_error_and_the_last_one_stays(window: Window) -> None:
    last = noise(320, 180)
    window.present(last)
    with pytest.raises(WeftError) as caught:
        window.present(np.zeros((1, 1 << 20, 4), np.uint8))
    assert caught.value.diagnostics[0].code == "picture-too-large"
    window.present(last)
    assert np.array_equal(window.read_back(), last)


@on_x11
def test_full_screen_and_back(window: Window, eventually: Eventually) -> None:
    picture = noise(320, 180)
    window.present(picture)
    window.toggle_fullscreen()
    assert window.fullscreen
    eventually(lambda: window.frame_size == (1280, 720), meanwhile=window.poll)
    window.present(picture)
    assert np.array_equal(window.read_back().shape, (720, 1280, 4))
    window.toggle_fullscreen()
    eventually(lambda: window.frame_size == (320, 180), meanwhile=window.poll)
    window.present(picture)
    assert np.array_equal(window.read_back(), picture)


@on_x11
def test_back_from_full_screen_it_stands_where_it_stood(window: Window, eventually: Eventually) -> None:
    xdotool("search", "--name", "^weft$", "windowmove", 200, 100)
    resize(window, 400, 300)
    before = geometry("weft")
    assert (before["X"], before["Y"]) == ("200", "100")
    for _ in range(2):
        window.toggle_fullscreen()
        eventually(lambda: window.frame_size == (1280, 720), meanwhile=window.poll)
        window.toggle_fullscreen()
        eventually(lambda: geometry("weft") == before, meanwhile=window.poll)


@on_x11
def test_the_window_takes_its_pictures_size_until_the_player_gives_it_another(
    window: Window, eventually: Eventually
) -> None:
    for width, height in ((200, 100), (333, 77), (320, 180)):
        picture = noise(width, height)
        window.present(picture)
        eventually(lambda picture=picture: np.array_equal(window.read_back(), picture), meanwhile=window.poll)
    resize(window, 300, 300)
    window.present(noise(200, 100))
    for _ in range(20):
        window.poll()
    assert window.frame_size == (300, 300)
    assert np.array_equal(window.read_back()[:75], np.full((75, 300, 4), (0, 0, 0, 255), np.uint8))


@on_x11
def test_a_picture_that_grows_beyond_the_screen_does_not_take_its_window_there(
    window: Window, eventually: Eventually
) -> None:
    xdotool("search", "--name", "^weft$", "windowmove", 700, 500)
    eventually(lambda: geometry("weft")["X"] == "700", meanwhile=window.poll)
    window.present(noise(3840, 1080))
    eventually(lambda: window.frame_size == (1280, 360), meanwhile=window.poll)
    eventually(lambda: (geometry("weft")["X"], geometry("weft")["Y"]) == ("0", "360"), meanwhile=window.poll)


@on_x11
def test_a_picture_whose_size_changes_in_full_screen_changes_the_window_on_the_way_back(
    window: Window, eventually: Eventually
) -> None:
    window.toggle_fullscreen()
    eventually(lambda: window.frame_size == (1280, 720), meanwhile=window.poll)
    picture = noise(200, 100)
    window.present(picture)
    assert window.frame_size == (1280, 720)
    window.toggle_fullscreen()
    eventually(lambda: window.frame_size == (200, 100), meanwhile=window.poll)
    window.present(picture)
    assert np.array_equal(window.read_back(), picture)


@on_x11
def test_it_may_start_in_full_screen_on_a_given_monitor(eventually: Eventually) -> None:
    from weft.runtime.screens.window import Window

    with Window("weft", 320, 180, vsync=False, fullscreen=True, monitor=0) as window:
        eventually(lambda: window.frame_size == (1280, 720), meanwhile=window.poll)


@on_x11
def test_a_picture_larger_than_the_screen_gets_a_window_that_fits() -> None:
    from weft.runtime.screens.window import Window

    with Window("weft", 3840, 1080, vsync=False) as window:
        assert window.frame_size == (1280, 360)


@on_x11
@pytest.mark.parametrize(
    ("picture", "window"),
    [((160, 90), (480, 270)), ((100, 50), (500, 270)), ((32, 32), (480, 288)), ((1000, 20), (1000, 270)),
     ((640, 360), (640, 360))],
)  # fmt: skip
def test_a_small_picture_gets_a_window_in_which_text_can_be_read(
    picture: tuple[int, int], window: tuple[int, int], eventually: Eventually
) -> None:
    from weft.runtime.screens.window import LEAST, Window

    with Window("weft", *picture, vsync=False, least=LEAST) as opened:
        assert opened.frame_size == window
        opened.present(noise(700, 400))
        eventually(lambda: opened.frame_size == (700, 400), meanwhile=opened.poll)
        opened.present(noise(*picture))
        eventually(lambda: opened.frame_size == window, meanwhile=opened.poll)


@on_x11
def test_a_window_with_a_size_of_its_own_keeps_it(eventually: Eventually) -> None:
    from weft.runtime.screens.window import Window

    with Window("weft", 320, 180, vsync=False, size=(400, 300)) as window:
        assert window.frame_size == (400, 300)
        window.present(noise(640, 360))
        window.toggle_fullscreen()
        eventually(lambda: window.frame_size == (1280, 720), meanwhile=window.poll)
        window.present(noise(200, 100))
        window.toggle_fullscreen()
        eventually(lambda: window.frame_size == (400, 300), meanwhile=window.poll)


@on_x11
def test_a_window_that_keeps_its_size_does_not_follow_its_pictures(window: Window, eventually: Eventually) -> None:
    window.present(noise(200, 100))
    eventually(lambda: window.frame_size == (200, 100), meanwhile=window.poll)
    window.keep_size()
    window.present(noise(400, 300))
    window.toggle_fullscreen()
    eventually(lambda: window.frame_size == (1280, 720), meanwhile=window.poll)
    window.present(noise(320, 180))
    window.toggle_fullscreen()
    eventually(lambda: window.frame_size == (200, 100), meanwhile=window.poll)
    assert np.array_equal(window.read_back().shape, (100, 200, 4))


@on_x11
@pytest.mark.parametrize("fullscreen", [True, False])
def test_a_window_whose_monitor_is_not_there_goes_there_when_it_is(fullscreen: bool, eventually: Eventually) -> None:
    from weft.runtime.screens.window import Window

    told: list[Diagnostic] = []
    with Window("weft", 320, 180, vsync=False, monitor=7, fullscreen=fullscreen, warn=told.append) as window:
        (problem,) = told
        assert (problem.severity, problem.code) == ("warning", "no-monitor")
        assert problem.message == "there is no monitor 7 (there is 0 (screen))"
        assert not window.fullscreen
        assert window.frame_size == (320, 180)
        window.follow_monitors()
        assert geometry("weft")["X"] == "0"
        # The one that is there takes its number.
        window._monitor_number = 0
        window.follow_monitors()
        size = (1280, 720) if fullscreen else (320, 180)
        eventually(lambda: window.frame_size == size and window.fullscreen == fullscreen, meanwhile=window.poll)
        if not fullscreen:
            eventually(lambda: (geometry("weft")["X"], geometry("weft")["Y"]) == ("480", "270"), meanwhile=window.poll)


@on_x11
def test_a_pointer_that_rests_is_hidden_until_it_is_used(
    window: Window, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.runtime.screens.window._REST", 0.3)

    def becomes(seen: bool) -> None:
        eventually(lambda: pointer_is_seen() == seen, meanwhile=window.poll)

    window.present(noise(320, 180))
    window.inputs.parameters.adopt(specs_of("#slider level<v> = 0, 1, 0.5"))
    for x in (101, 102):
        xdotool("mousemove", 10, 10, "mousemove", x, 90)
        becomes(True)
        becomes(False)
        window.toggle_fullscreen()
    xdotool("click", 4)
    becomes(True)
    becomes(False)
    xdotool("mousemove", 600, 400)  # beside the window
    becomes(True)
    xdotool("mousemove", 100, 90)
    becomes(False)
    # Over the panel it stays.
    window.panel.toggle()
    window.redraw()
    place = next(label.place for label in window._labels(window.frame_size))
    xdotool("mousemove", place.left + place.width // 2, place.top + 20)
    becomes(True)
    monkeypatch.setattr("weft.runtime.screens.window._REST", 0.0)
    window.poll()
    assert pointer_is_seen()
    window.panel.toggle()
    becomes(False)


@on_x11
def test_keys_of_the_tool_are_commands(window: Window, commands: list[str], eventually: Eventually) -> None:
    xdotool("key", "f", "space", "r", "s", "c", "e", "h", "p", "Escape")
    expected = ["fullscreen", "pause", "restart", "screenshot", "record", "errors", "figures", "panel", "leave"]
    eventually(lambda: commands == expected, meanwhile=window.poll)
    assert not window.inputs.frame().held_keys


@on_x11
def test_a_key_that_the_patch_reads_is_the_patchs_but_for_ctrl(
    window: Window, commands: list[str], eventually: Eventually
) -> None:
    window.set_patch_keys(frozenset({"f", "space", "up", "control"}))
    xdotool("keydown", "f", "keydown", "space", "keydown", "Up")
    held = {"f", "space", "up"}
    eventually(lambda: window.inputs.snapshot().held_keys == held, meanwhile=window.poll)
    xdotool("keyup", "f", "keyup", "space", "keyup", "Up")
    eventually(lambda: not window.inputs.snapshot().held_keys, meanwhile=window.poll)
    assert not commands
    window.inputs.frame()
    xdotool("key", "ctrl+f", "key", "s")
    eventually(lambda: commands == ["fullscreen", "screenshot"], meanwhile=window.poll)
    assert window.inputs.frame().held_keys == {"control"}


@on_x11
def test_a_held_key_gives_one_command(window: Window, commands: list[str], eventually: Eventually) -> None:
    # The server repeats a key after 660 ms, every 40 ms.
    xdotool("keydown", "f", "sleep", "0.9", "keyup", "f", "key", "s")
    eventually(lambda: "screenshot" in commands, meanwhile=window.poll)
    assert commands == ["fullscreen", "screenshot"]


@on_x11
def test_a_command_may_close_the_window(eventually: Eventually) -> None:
    from weft.runtime.screens.window import Window

    left: list[str] = []

    def leave(command: str) -> None:
        window.close()
        left.append(command)

    window = Window("weft", 320, 180, vsync=False, on_command=leave)
    xdotool("key", "Escape")
    eventually(lambda: window.should_close, meanwhile=window.poll)
    window.present(noise(320, 180))
    assert left == ["leave"]


@on_x11
def test_the_pointer_is_measured_in_the_picture(window: Window, eventually: Eventually) -> None:
    resize(window, 340, 180)
    window.present(noise(90, 90))  # from 80 to 260 across the window
    for at, expected in (
        ((80, 0), (0, 0)),
        ((170, 45), (0.5, 0.25)),
        ((215, 135), (0.75, 0.75)),
        ((20, 90), (0, 0.5)),
        ((339, 179), (1, 179 / 180)),
    ):
        xdotool("mousemove", *at)
        eventually(lambda expected=expected: pointer(window) == pytest.approx(expected), meanwhile=window.poll)


@on_x11
def test_the_pointer_follows_when_the_picture_moves_under_it(window: Window, eventually: Eventually) -> None:
    window.present(noise(320, 180))
    xdotool("mousemove", 80, 45)
    eventually(lambda: pointer(window) == (0.25, 0.25), meanwhile=window.poll)
    resize(window, 160, 90)
    assert pointer(window) == (0.5, 0.5)
    window.present(noise(80, 90))  # from 40 to 120 across the window
    assert pointer(window) == (0.5, 0.5)
    xdotool("mousemove", 100, 45)
    eventually(lambda: pointer(window) == (0.75, 0.5), meanwhile=window.poll)
    window.present(noise(160, 90))
    assert pointer(window) == (0.625, 0.5)


def pointer(window: Window) -> tuple[float, float]:
    state = window.inputs.snapshot()
    return state.x, state.y


@on_x11
def test_dragged_out_of_the_picture_the_pointer_stays_at_its_edge(window: Window, eventually: Eventually) -> None:
    window.present(noise(320, 180))
    xdotool("mousemove", 100, 90, "mousedown", 1, "mousemove", 900, 90)
    eventually(lambda: pointer(window) == (1, 0.5), meanwhile=window.poll)
    xdotool("mousemove", 160, 700)
    eventually(lambda: pointer(window) == (0.5, 1), meanwhile=window.poll)
    xdotool("mouseup", 1)


@on_x11
def test_what_is_held_is_let_go_when_another_window_gets_the_keyboard(window: Window, eventually: Eventually) -> None:
    from weft.runtime.screens.window import Window

    inputs = window.inputs
    window.set_patch_keys(frozenset({"f", "up"}))
    xdotool("mousemove", 100, 100, "keydown", "f", "keydown", "Up", "mousedown", 1)
    held = {"f", "up"}, {"left"}
    eventually(lambda: (inputs.snapshot().held_keys, inputs.snapshot().held_buttons) == held, meanwhile=window.poll)
    with Window("other", 100, 50, vsync=False, display=window.display):
        xdotool("search", "--name", "^other$", "windowfocus")
        eventually(
            lambda: not inputs.snapshot().held_keys and not inputs.snapshot().held_buttons, meanwhile=window.poll
        )
    xdotool("keyup", "f", "keyup", "Up", "mouseup", 1)


@on_x11
def test_buttons_and_wheel_arrive(window: Window, eventually: Eventually) -> None:
    inputs = window.inputs
    xdotool("mousemove", 100, 100, "mousedown", 1, "mousedown", 3)
    eventually(lambda: inputs.snapshot().held_buttons == {"left", "right"}, meanwhile=window.poll)
    xdotool("mouseup", 1, "click", 4, "click", 4, "click", 4, "click", 5)
    eventually(lambda: inputs.snapshot().wheel == 2, meanwhile=window.poll)
    assert inputs.snapshot().held_buttons == {"right"}
    xdotool("mouseup", 3)
    eventually(lambda: not inputs.snapshot().held_buttons, meanwhile=window.poll)


@on_x11
def test_minimised_it_draws_nothing_and_afterwards_shows_the_last_picture(
    window: Window, tmp_path: Path, eventually: Eventually
) -> None:
    shown, hidden = noise(320, 180), noise(320, 180)[::-1].copy()

    def on_screen(picture: Picture) -> bool:
        return np.array_equal(screen(tmp_path)[:180, :320], picture[..., :3])

    window.present(shown)
    eventually(lambda: on_screen(shown))
    number = int(geometry("weft")["WINDOW"])
    minimised, normal = 3, 1
    set_property(number, "WM_STATE", "WM_STATE", [minimised, 0])
    window.poll()
    window.present(hidden)
    assert on_screen(shown)
    assert np.array_equal(window.read_back(), hidden)
    set_property(number, "WM_STATE", "WM_STATE", [normal, 0])
    eventually(lambda: on_screen(hidden), meanwhile=window.poll)


def test_windows_may_be_opened_again_and_again() -> None:
    from weft.runtime.screens.window import Window

    inputs = Inputs()
    for _ in range(3):
        with Window("weft", 64, 64, vsync=False, inputs=inputs) as window:
            picture = noise(64, 64)
            window.present(picture)
            assert np.array_equal(window.read_back(), picture)
        window.close()


_OPEN = """
from weft.errors import WeftError
try:
    from weft.runtime.screens.window import Window
    Window("weft", 320, 180)
except WeftError as problem:
    print(problem)
"""


@on_x11
@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"DISPLAY": ":9999"},
        {"XDG_SESSION_TYPE": "wayland", "WAYLAND_DISPLAY": "nowhere"},
    ],
)
def test_without_a_display_there_is_an_error_in_plain_words(environment: dict[str, str]) -> None:
    graphical = ("DISPLAY", "WAYLAND_DISPLAY", "XDG_SESSION_TYPE", "XDG_RUNTIME_DIR")
    bare = {name: value for name, value in os.environ.items() if name not in graphical}
    opening_fails(bare | environment)


@on_x11
def test_a_driver_that_is_too_old_is_an_error_in_plain_words() -> None:
    opening_fails({**os.environ, "MESA_GL_VERSION_OVERRIDE": "2.1", "MESA_GLES_VERSION_OVERRIDE": "2.0"})


@pytest.mark.parametrize("library", ["glfw", "OpenGL"])
def test_without_the_libraries_the_import_is_an_error_in_plain_words(library: str) -> None:
    opening_fails({**os.environ}, f"import sys; sys.modules['{library}'] = None")


def opening_fails(environment: dict[str, str], before: str = "") -> None:
    command = [sys.executable, "-c", before + _OPEN]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=True)
    assert ended.stderr == ""
    first, hint = ended.stdout.splitlines()
    assert first.startswith("error: no window can be opened: ")
    assert first.endswith("[no-display]")
    assert "--headless" in hint


_STOLEN = """
import threading
import glfw
import numpy as np
from weft.errors import WeftError
from weft.runtime.screens.window import Window
window = Window("weft", 320, 180)
glfw.make_context_current(None)
taken, over = threading.Event(), threading.Event()
def take():
    glfw.make_context_current(window._handle)
    taken.set()
    over.wait()
    glfw.make_context_current(None)
thief = threading.Thread(target=take)
thief.start()
taken.wait()
for show in (window.redraw, lambda: window.present(np.zeros((180, 320, 4), np.uint8)), window.read_back):
    try:
        show()
    except WeftError as problem:
        print(problem.diagnostics[0].code)
over.set()
thief.join()
window.redraw()
window.close()
"""


@on_x11
def test_a_context_that_cannot_be_had_is_an_error_in_plain_words() -> None:
    # GLX would end the process here; EGL answers.
    environment = {**os.environ, "PYOPENGL_PLATFORM": "egl"}
    command = [sys.executable, "-c", _STOLEN]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=True)
    assert ended.stderr == ""
    assert ended.stdout.split() == ["display-lost"] * 3


@on_x11
def test_on_a_monitor_of_small_pixels_letters_are_larger(commands: list[str]) -> None:
    from weft.runtime.screens.window import Window

    heights = []
    try:
        for resources in (b"", b"Xft.dpi:\t192\n"):
            set_property(None, "RESOURCE_MANAGER", "STRING", resources)
            with Window("weft", 800, 480, vsync=False) as window:
                window.annotate(Overlay(note="what happened"))
                heights.append(window._labels(window.frame_size)[0].place.height)
    finally:
        set_property(None, "RESOURCE_MANAGER", "STRING", b"")
    assert heights[1] > 1.7 * heights[0]


def test_where_a_unit_of_the_desktop_is_several_pixels_all_of_it_is_in_pixels(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a Mac and by Wayland."""
    from weft.runtime.screens.window import glfw

    window.present(noise(320, 180))
    monkeypatch.setattr(glfw, "get_framebuffer_size", lambda handle: (640, 360))
    monkeypatch.setattr(glfw, "get_window_content_scale", lambda handle: (2.0, 2.0))
    monkeypatch.setattr(glfw, "get_cursor_pos", lambda handle: (80.0, 45.0))
    window._on_pointer(window._handle, 80.0, 45.0)
    snapshot = window.inputs.snapshot()
    assert (snapshot["mouse@x"], snapshot["mouse@y"]) == (0.25, 0.25)
    assert window.read_back().shape == (360, 640, 4)
    window.toggle_pins()
    window.redraw()
    window._pins.press(*(2 * each for each in (318, 178)))
    monkeypatch.setattr(glfw, "get_cursor_pos", lambda handle: (298.0, 168.0))
    window._on_pointer(window._handle, 298.0, 168.0)
    assert window._warp.corners is not None
    assert window._warp.corners[2] == pytest.approx((300 / 320, 170 / 180))


# Xlib ends a process of which a request is refused, hence one of its own. No window has the number 1.
_REFUSED = """\
import ctypes
import glfw
from weft.runtime.screens.window import Window

with Window("weft", 64, 36, vsync=False) as window:
    x11 = ctypes.CDLL("libX11.so.6")
    opened = ctypes.c_void_p(glfw.get_x11_display())
    assert window.display.take_error() is None
    x11.XMapWindow(opened, ctypes.c_ulong(1))
    x11.XSync(opened, 0)
    print(window.display.take_error(), window.display.take_error())
"""


@on_x11
def test_a_request_that_the_server_refuses_does_not_end_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", _REFUSED], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "the X server refused request 8.0: BadWindow (invalid Window parameter) None\n", done.stderr
