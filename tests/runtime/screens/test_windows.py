"""Several windows in one session: each shows a picture of its own, and one closes while the others stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.support.windows import Picture, on_x11, screen, xdotool
from weft.backends.base import Env, PictureHandle
from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.contexts import ContextTable
from weft.errors import Diagnostic, Source
from weft.runtime.compiling.stages import Request, build
from weft.runtime.program.coordinator import pictures_of
from weft.runtime.program.program import ProgramLoader
from weft.runtime.screens.screen import Overlay, WindowOptions

if TYPE_CHECKING:
    from weft.runtime.screens.window import Window, Windows

pytestmark = pytest.mark.usefixtures("display")

Changes = list[tuple[str, str, str]]
SIZE = (160, 90)


def noise(seed: int, width: int = SIZE[0], height: int = SIZE[1]) -> Picture:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 4), np.uint8)


@pytest.fixture
def commands() -> list[str]:
    return []


@pytest.fixture
def changes() -> Changes:
    return []


def opened(changes: Changes, commands: list[str], **options: Any) -> Windows:
    from weft.runtime.screens.window import Windows

    return Windows(
        "patch", *SIZE, vsync=False, on_change=lambda *change: changes.append(change), on_command=commands.append,
        **options,
    )  # fmt: skip


@pytest.fixture
def windows(changes: Changes, commands: list[str]) -> Iterator[Windows]:
    with opened(changes, commands) as windows:
        yield windows


def window_of(windows: Windows, name: str) -> Window:
    return windows._further[name]


def close(window: Window) -> None:
    """As the button of a window does."""
    from weft.runtime.screens.display import glfw

    glfw.set_window_should_close(window._handle, True)


def place(window: Window, left: int, top: int, eventually: Callable[..., None]) -> None:
    from weft.runtime.screens.display import glfw

    glfw.set_window_pos(window._handle, left, top)

    def is_there() -> bool:
        window.poll()
        return glfw.get_window_pos(window._handle) == (left, top)

    eventually(is_there)


@on_x11
def test_each_window_shows_its_own_picture_on_one_screen(
    windows: Windows, changes: Changes, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    first, left, right = noise(1), noise(2, 200, 50), noise(3)
    windows.show_others({"left": left, "right": right})
    windows.present(first)
    assert changes == [("left", "opened", ""), ("right", "opened", "")]
    place(window_of(windows, "left"), 300, 0, eventually)
    place(window_of(windows, "right"), 600, 200, eventually)
    for later in range(2):
        pictures = {"left": np.roll(left, later, 1), "right": np.roll(right, later, 0)}
        windows.show_others(pictures)
        windows.present(first)

        def is_shown(pictures: dict[str, Picture] = pictures) -> bool:
            windows.poll()
            shown = screen(tmp_path)
            return (
                np.array_equal(shown[:90, :160], first[..., :3])
                and np.array_equal(shown[:50, 300:500], pictures["left"][..., :3])
                and np.array_equal(shown[200:290, 600:760], pictures["right"][..., :3])
            )

        eventually(is_shown)


def test_a_window_closes_with_its_picture(windows: Windows, changes: Changes) -> None:
    windows.show_others({"a": noise(1), "b": noise(2)})
    windows.show_others({"b": noise(2)})
    assert changes[2:] == [("a", "closed", "")]
    windows.show_others({"a": noise(1), "b": noise(2)})
    assert changes[3:] == [("a", "opened", "")]


def test_one_closes_and_the_others_go_on(windows: Windows, changes: Changes) -> None:
    pictures = {"a": noise(1), "b": noise(2)}
    windows.show_others(pictures)
    close(window_of(windows, "a"))
    windows.poll()
    windows.show_others(pictures)
    assert changes[2:] == [("a", "closed", "")], "it stays closed"
    assert not windows.should_close
    assert np.array_equal(window_of(windows, "b").read_back(), pictures["b"])
    # Until its picture was gone.
    windows.show_others({"b": pictures["b"]})
    windows.show_others(pictures)
    assert changes[3:] == [("a", "opened", "")]
    for name in ("b", "a"):
        assert not windows.should_close
        close(window_of(windows, name))
        windows.poll()
    close(windows)
    windows.poll()
    assert windows.should_close


def test_without_the_first_window_the_next_one_tells(windows: Windows, changes: Changes) -> None:
    pictures = {"a": noise(1), "b": noise(2)}
    overlay = Overlay(note="this is written over the picture")
    windows.annotate(overlay)
    windows.show_others(pictures)
    windows.present(noise(0))
    assert not np.array_equal(windows.read_back(), noise(0))
    assert np.array_equal(window_of(windows, "a").read_back(), pictures["a"])
    close(windows)
    windows.poll()
    assert not windows.should_close
    assert changes[2:] == [("", "closed", "")]
    assert not np.array_equal(window_of(windows, "a").read_back(), pictures["a"])
    assert np.array_equal(window_of(windows, "b").read_back(), pictures["b"])
    windows.annotate(Overlay())
    windows.present(noise(3))
    assert np.array_equal(window_of(windows, "a").read_back(), pictures["a"])
    windows.show_others({})
    assert not windows.should_close, "it is there again when there is no other"
    assert changes[3:] == [("a", "closed", ""), ("b", "closed", ""), ("", "opened", "")]
    for name in ("c", ""):
        windows.show_others({"c": noise(4)})
        close(windows if name == "" else window_of(windows, "c"))
        windows.poll()
    assert windows.should_close


@on_x11
def test_full_screen_is_for_the_window_with_the_focus(
    windows: Windows, commands: list[str], eventually: Callable[..., None]
) -> None:
    windows.show_others({"a": noise(1)})

    def polled(condition: Callable[[], bool]) -> None:
        eventually(lambda: (windows.poll(), condition())[1])

    xdotool("search", "--name", "^a · patch$", "windowfocus", "--sync")
    xdotool("key", "f", "space")
    polled(lambda: window_of(windows, "a").fullscreen and commands == ["pause"])
    assert not windows.fullscreen
    assert window_of(windows, "a").frame_size == (1280, 720)
    xdotool("key", "f")
    polled(lambda: not window_of(windows, "a").fullscreen)
    xdotool("search", "--name", "^patch$", "windowfocus", "--sync")
    xdotool("key", "f")
    polled(lambda: commands == ["pause", "fullscreen"])


@on_x11
def test_windows_open_as_they_are_asked_for(changes: Changes, commands: list[str]) -> None:
    asked = {"full": WindowOptions(fullscreen=True, monitor=0), "other": WindowOptions()}
    with opened(changes, commands, further=asked) as windows:
        windows.show_others({"full": noise(1), "other": noise(2)})
        assert window_of(windows, "full").fullscreen
        assert not window_of(windows, "other").fullscreen
        assert not windows.fullscreen
        assert window_of(windows, "other").frame_size == SIZE


def test_monitors_that_are_not_there_do_not_stop_the_show(changes: Changes, commands: list[str]) -> None:
    told: list[Diagnostic] = []
    asked = {name: WindowOptions(monitor=number, fullscreen=True) for name, number in (("a", 7), ("b", 7), ("c", 8))}
    with opened(changes, commands, further=asked, monitor=8, warn=told.append) as windows:
        assert sorted(each.message.split()[4] for each in told) == ["7", "8"]
        windows.show_others({"a": noise(1), "b": noise(2)})
        assert changes == [("a", "opened", ""), ("b", "opened", "")]
        assert not window_of(windows, "a").fullscreen
        assert len(told) == 2


def test_all_windows_keep_their_sizes(windows: Windows) -> None:
    windows.show_others({"a": noise(1)})
    windows.keep_size()
    windows.show_others({"a": noise(1, 300, 200), "b": noise(2)})
    windows.present(noise(3, 300, 200))
    windows.poll()
    assert [each.frame_size for each in (windows, window_of(windows, "a"))] == [SIZE, SIZE]


def test_a_picture_that_is_too_large_costs_its_window_alone(windows: Windows, changes: Changes) -> None:
    pictures = {"huge": np.zeros((1, 1 << 20, 4), np.uint8), "b": noise(2)}
    windows.show_others(pictures)
    windows.show_others(pictures)
    windows.poll()
    name, state, reason = next(change for change in changes if change[1] == "failed")
    assert (name, state, len(changes)) == ("huge", "failed", 3)
    assert "cannot show a picture of" in reason
    assert np.array_equal(window_of(windows, "b").read_back(), pictures["b"])


@on_x11
def test_a_window_on_no_monitor_comes_back(windows: Windows, eventually: Callable[..., None]) -> None:
    from weft.runtime.screens.display import glfw

    windows.show_others({"a": noise(1), "b": noise(2)})
    place(window_of(windows, "a"), 3000, 2000, eventually)
    place(window_of(windows, "b"), 700, 300, eventually)
    windows._on_monitors(None, glfw.DISCONNECTED)

    def is_back() -> bool:
        windows.poll()
        return glfw.get_window_pos(window_of(windows, "a")._handle) == ((1280 - 160) // 2, (720 - 90) // 2)

    eventually(is_back)
    assert glfw.get_window_pos(window_of(windows, "b")._handle) == (700, 300)


@on_x11
def test_a_window_that_filled_a_monitor_fills_it_again_when_it_is_back(
    changes: Changes, commands: list[str], eventually: Callable[..., None]
) -> None:
    from weft.runtime.screens.display import glfw

    def becomes(place: tuple[int, int, int, int]) -> None:
        def is_there() -> bool:
            windows.poll()
            return (*glfw.get_window_pos(handle), *glfw.get_window_size(handle)) == place

        eventually(is_there)

    with opened(changes, commands, further={"a": WindowOptions(fullscreen=True)}) as windows:
        windows.show_others({"a": noise(1)})
        window = window_of(windows, "a")
        handle, name = window._handle, window._filled
        becomes((0, 0, 1280, 720))
        # What GLFW does when the monitor is unplugged.
        glfw.set_window_monitor(handle, None, 0, 0, 1280, 720, 0)
        window._filled = "one that is gone"
        windows._on_monitors(None, glfw.DISCONNECTED)
        becomes(((1280 - 160) // 2, (720 - 90) // 2, *SIZE))
        place(window, 700, 300, eventually)
        windows._on_monitors(None, glfw.DISCONNECTED)
        windows.poll()
        assert glfw.get_window_pos(handle) == (700, 300)
        window._filled = name
        windows._on_monitors(None, glfw.CONNECTED)
        becomes((0, 0, 1280, 720))
        window.toggle_fullscreen()
        windows._on_monitors(None, glfw.CONNECTED)
        windows.poll()
        assert not window.fullscreen


FEEDBACK = """
me<width> = 160; me<height> = 90
t<r, g> = prev(t) * 0.5 + <me@x, me@y> * 0.5
display(t@r, t@g, 0)
display(1 - t@r, t@g(me@x ~ 1 - me@x), me@aspect / 4, to: "side")
"""


def test_what_a_card_has_drawn_is_shown_in_all_windows(changes: Changes, commands: list[str]) -> None:
    from weft.runtime.screens.display import Display
    from weft.runtime.screens.window import Windows

    made = build(Request(Source("test.weft", FEEDBACK), ContextTable())).compiled
    shown: dict[str, dict[str, Picture]] = {}
    for backend in ("vector", "gl"):
        shared = Display()
        loader = ProgramLoader(choose(load_registry(), ["visual"], backend))
        if backend == "gl":
            loader.draw_in(shared.graphics())
        loaded = loader.prepare(made, made.size)
        with Windows("patch", *SIZE, vsync=False, display=shared) as windows:
            for number in range(4):
                env = Env(*made.size, tick=number, abstime=number / 60, dt=1 / 60)
                pictures = {name: each.values for name, each in pictures_of(loaded.runner.run(env)).items()}
                assert all(isinstance(each, PictureHandle) == (backend == "gl") for each in pictures.values())
                first = pictures.pop("")
                windows.show_others(pictures)
                windows.present(first)
            shown[backend] = {"": windows.read_back(), "side": window_of(windows, "side").read_back()}
        shared.close()
    for name, expected in shown["vector"].items():
        assert np.abs(shown["gl"][name].astype(int) - expected).max() <= 1
    assert np.abs(shown["vector"][""].astype(int) - shown["vector"]["side"]).max() > 100


def test_the_rate_of_a_monitor_is_what_it_says(display):
    """Some virtual screens do not say any."""
    from weft.runtime.screens.display import Display, glfw, refresh_rate

    shared = Display()
    said = glfw.get_video_mode(glfw.get_primary_monitor()).refresh_rate
    shared.close()
    assert refresh_rate(0) == (said or None)
    assert refresh_rate(99) is None
