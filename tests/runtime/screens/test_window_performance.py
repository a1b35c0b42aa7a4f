"""The window on a real screen: the picture on it is that of the reference machine, and keys reach tool and patch."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support.compute import wgpu
from tests.support.performance import Performance
from tests.support.together import all_but
from tests.support.windows import on_x11, private_display, screen, xdotool
from weft.backends.launch import Launch, StateMemory, picture_coords
from weft.backends.vm import ReferenceExecutor
from weft.backends.wgpu.webgpu import WgpuDevice
from weft.contexts import ContextTable
from weft.errors import Source
from weft.runtime.compiling.stages import Request, build

__all__ = ["wgpu"]

WIDTH, HEIGHT = 160, 90
AS_SMALL = ("--window", f"{WIDTH}x{HEIGHT}")
SIZE = f"me<width> = {WIDTH}\nme<height> = {HEIGHT}\n"
STILL = SIZE + """\
cell<v> = hash(me@px, me@py)
ring<v> = smoothstep(0.02, 0, abs(hypot(me@x - 0.5, (me@y - 0.5) / me@aspect) - 0.2))
display(ring@v, cell@v(me@x ~ me@x * 0.5) * 0.5, me@y)
"""


@pytest.fixture(scope="module", autouse=True)
def display() -> Iterator[None]:
    with private_display():
        yield


def corner(tmp_path: Path) -> np.ndarray:
    """The upper left corner of the screen, where a window stands when nothing manages windows."""
    return screen(tmp_path)[:HEIGHT, :WIDTH].astype(int)


@cache
def reference(text: str) -> np.ndarray:
    made = build(Request(Source("patch.weft", text), ContextTable()))
    kernel = made.units[0].kernel
    out = np.empty((HEIGHT, WIDTH, 4), np.uint8)
    uniforms = {"width": WIDTH, "height": HEIGHT, "absframe": 0, "dt": 0, "key@a": 0.0}
    launch = Launch((HEIGHT, WIDTH), picture_coords(WIDTH, HEIGHT), uniforms)
    ReferenceExecutor().load(kernel).rgba8(StateMemory(kernel.slots, (HEIGHT, WIDTH)), launch, out)
    return out[..., :3].astype(int)


def wait_for_picture(tmp_path: Path, wanted: np.ndarray) -> None:
    deadline = time.monotonic() + 20
    while (off := np.abs(corner(tmp_path) - wanted).max()) > 1:
        assert time.monotonic() < deadline, f"the screen differs by up to {off} of 255"
        time.sleep(0.05)


def wait_for_text(tmp_path: Path, picture: np.ndarray) -> None:
    """Waits until the picture is there, with something written over a good part of it."""
    deadline = time.monotonic() + 20
    while not 0.05 < (np.abs(corner(tmp_path) - picture).max(axis=2) > 1).mean() < 0.95:
        assert time.monotonic() < deadline, "nothing is written over the picture"
        time.sleep(0.05)


@pytest.mark.parametrize("backend", all_but(1, ["native", "gl", "wgpu"]))
def test_save_by_save_the_screen_shows_what_the_reference_machine_computes(
    tmp_path: Path, backend: str, request: pytest.FixtureRequest
) -> None:
    if backend == "wgpu":
        request.getfixturevalue("wgpu")
    patch = tmp_path / "patch.weft"
    patch.write_text(STILL)
    with Performance(patch, *AS_SMALL, "--backend", f"visual={backend}") as performance:
        performance.wait_for("started")
        wait_for_picture(tmp_path, reference(STILL))
        edited = STILL.replace("0.2)", "0.35)").replace("me@y)", "1 - me@x)")
        assert not np.array_equal(reference(edited), reference(STILL))
        performance.save(edited)
        performance.wait_for("swap")
        wait_for_picture(tmp_path, reference(edited))
        performance.save(edited + "oops = (1 +")
        performance.wait_for("error")
        wait_for_text(tmp_path, reference(edited))
        subprocess.run(["xdotool", "key", "e"], check=True, timeout=30)
        wait_for_picture(tmp_path, reference(edited))
        subprocess.run(["xdotool", "key", "e", "h"], check=True, timeout=30)
        wait_for_text(tmp_path, reference(edited))
        subprocess.run(["xdotool", "key", "Escape"], check=True, timeout=30)
        assert performance.ended() == 0
        assert performance.events[-1]["reason"] == "closed"


@pytest.mark.long
def test_two_windows_of_one_program_are_seen_side_by_side(tmp_path: Path) -> None:
    patch = tmp_path / "patch.weft"
    side = SIZE + "display(me@y, hash(me@py, me@px), 0)\n"

    def together(text: str, other: str) -> str:
        return text + other.removeprefix(SIZE).replace("0)\n", '0, to: "side")\n')

    def is_seen(left: int, top: int, wanted: np.ndarray) -> bool:
        seen = screen(tmp_path)[top : top + HEIGHT, left : left + WIDTH].astype(int)
        return int(np.abs(seen - wanted).max()) <= 1

    patch.write_text(together(STILL, side))
    with Performance(patch, *AS_SMALL) as performance:
        assert performance.wait_for("window")["name"] == "side"
        move = ["xdotool", "search", "--name", "^side", "windowmove", "--sync", "400", "300"]
        subprocess.run(move, check=True, timeout=30)
        for text, other in ((STILL, side), (STILL.replace("0.2)", "0.35)"), side.replace("me@y,", "1 - me@y,"))):
            performance.save(together(text, other))
            deadline = time.monotonic() + 20
            while not (is_seen(0, 0, reference(text)) and is_seen(400, 300, reference(other))):
                assert time.monotonic() < deadline, "the two pictures are not on the screen"
                time.sleep(0.05)
        performance.save(STILL)
        performance.wait_for("window", when=lambda event: event["state"] == "closed")
        wait_for_picture(tmp_path, reference(STILL))


@on_x11
def test_windows_that_are_killed_open_again_and_the_performance_goes_on(tmp_path: Path) -> None:
    """The server ends the connection of a program, which all of its windows have in common."""
    patch = tmp_path / "patch.weft"
    patch.write_text(STILL + 'display(me@x, to: "side")\n')
    with Performance(patch, *AS_SMALL) as performance:
        performance.wait_for("window", when=lambda event: event["state"] == "opened")
        xdotool("search", "--name", "^side", "windowmove", "--sync", 400, 300)
        wait_for_picture(tmp_path, reference(STILL))
        xdotool("search", "--name", "^side", "windowkill")
        assert performance.wait_for("restart")["process"] == "windows"
        performance.wait_for("window", count=2, when=lambda event: event["state"] == "opened")
        xdotool("search", "--name", "^side", "windowmove", "--sync", 400, 300)
        wait_for_picture(tmp_path, reference(STILL))


KILLED = """
import subprocess
from weft.runtime.screens.window import Window

window = Window("killed", 320, 180)
assert window._monitor_below() is not None
subprocess.run(["xdotool", "search", "--name", "^killed", "windowkill"], check=True, timeout=30)
assert window._monitor_below() is None
assert window.display.is_gone
print("went on")
"""


@on_x11
def test_a_window_that_has_just_been_killed_is_on_no_monitor() -> None:
    """GLFW crashes if it asks the server where monitors are when that has ended the connection."""
    done = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, timeout=60, check=False)
    assert "went on" in done.stdout, f"{done.returncode}: {done.stderr}"


@on_x11
@pytest.mark.long
def test_windows_that_webgpu_drew_are_drawn_by_opengl_when_they_open_again(
    tmp_path: Path, wgpu: WgpuDevice
) -> None:
    patch = tmp_path / "patch.weft"
    patch.write_text(STILL)
    with Performance(patch, *AS_SMALL, "--backend", "visual=wgpu") as performance:
        performance.wait_for("frames")
        wait_for_picture(tmp_path, reference(STILL))
        xdotool("search", "--name", "^patch.weft", "windowkill")
        assert performance.wait_for("restart")["process"] == "windows"
        wait_for_picture(tmp_path, reference(STILL))
        edited = STILL.replace("0.2)", "0.35)")
        performance.save(edited)
        wait_for_picture(tmp_path, reference(edited))


@on_x11
def test_where_a_card_draws_in_them_the_performance_ends_in_order(tmp_path: Path) -> None:
    patch = tmp_path / "patch.weft"
    patch.write_text(STILL)
    with Performance(patch, *AS_SMALL, "--backend", "visual=gl") as performance:
        performance.wait_for("frames")
        xdotool("search", "--name", "^patch.weft", "windowkill")
        performance.wait_for_words("the X server has closed it")
        assert performance.ended() == 3


def test_what_others_read_of_a_picture_is_computed_in_the_window_as_well(tmp_path: Path) -> None:
    patch = tmp_path / "patch.weft"
    kept = SIZE + "kept<v> = prev(kept@v) * 0 + hash(me@px, me@py)\ndisplay(kept@v, me@x, me@y)\n"
    patch.write_text(kept + "compute(kept@v, kept@v(me@x ~ mouse@x))\n")
    with Performance(patch, *AS_SMALL, "--backend", "visual=gl") as performance:
        performance.wait_for("started")
        wait_for_picture(tmp_path, reference(kept))
        performance.wait_for("frames")
        assert not [event for event in performance.events if event["event"] == "backend"], performance.stderr


@pytest.mark.long
def test_from_patch_to_patch_the_window_stays_and_a_missing_monitor_does_not_stop_it(tmp_path: Path) -> None:
    patches = [tmp_path / f"{name}.weft" for name in ("first", "second")]
    patches[0].write_text("me<width> = 500; me<height> = 300\ndisplay(1, 0, 0)\n")
    patches[1].write_text("me<width> = 320; me<height> = 240\ndisplay(0, 1, 0)\n")

    def is_seen(height: int, width: int, *colour: int) -> None:
        deadline = time.monotonic() + 20
        wanted = np.zeros((400, 600, 3), np.uint8)
        wanted[:height, 250 - width // 2 : 250 + width // 2] = colour
        while not np.array_equal(screen(tmp_path)[:400, :600], wanted):
            assert time.monotonic() < deadline, "the window has another size"
            time.sleep(0.05)

    with Performance(patches[0], str(patches[1]), "--monitor", "1", "--fullscreen") as performance:
        performance.wait_for("started")
        performance.wait_for_words("warning: there is no monitor 1 (there is 0 (screen))")
        is_seen(300, 500, 255, 0, 0)
        subprocess.run(["xdotool", "key", "Next"], check=True, timeout=30)
        is_seen(300, 400, 0, 255, 0)
        patches[1].write_text("me<width> = 400; me<height> = 400\ndisplay(0, 0, 1)\n")
        is_seen(300, 300, 0, 0, 255)


def test_a_key_that_the_patch_reads_belongs_to_the_patch(tmp_path: Path) -> None:
    patch = tmp_path / "patch.weft"
    text = SIZE + "display(key@space, key@1, 0)\n"
    patch.write_text(text)
    dark, lit, other = (reference(SIZE + f"display({red}, {green}, 0)\n") for red, green in ((0, 0), (1, 0), (0, 1)))
    with Performance(patch, *AS_SMALL) as performance:
        performance.wait_for("started")
        wait_for_picture(tmp_path, dark)
        subprocess.run(["xdotool", "keydown", "space"], check=True, timeout=30)
        wait_for_picture(tmp_path, lit)
        subprocess.run(["xdotool", "keyup", "space"], check=True, timeout=30)
        wait_for_picture(tmp_path, dark)
        subprocess.run(["xdotool", "keydown", "1"], check=True, timeout=30)
        wait_for_picture(tmp_path, other)
        subprocess.run(["xdotool", "keyup", "1"], check=True, timeout=30)
        wait_for_picture(tmp_path, dark)
        assert "paused" not in performance.stderr
        subprocess.run(["xdotool", "key", "ctrl+space"], check=True, timeout=30)
        performance.wait_for("frames")
        deadline = time.monotonic() + 20
        while "paused" not in performance.stderr:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_a_screenshot_is_the_picture(tmp_path: Path) -> None:
    patch = tmp_path / "patch.weft"
    patch.write_text(STILL)
    shot = tmp_path / "patch-001.png"
    with Performance(patch, *AS_SMALL) as performance:
        performance.wait_for("started")
        wait_for_picture(tmp_path, reference(STILL))
        subprocess.run(["xdotool", "key", "s"], check=True, timeout=30)
        deadline = time.monotonic() + 20
        while not shot.exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
    assert np.abs(np.asarray(Image.open(shot).convert("RGB")).astype(int) - reference(STILL)).max() <= 1


def test_without_a_display_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY")
    patch = tmp_path / "patch.weft"
    patch.write_text(STILL)
    with Performance(patch) as performance:
        assert performance.ended() == 3
        assert "--headless" in performance.stderr
        assert "Traceback" not in performance.stderr


@on_x11
def test_the_text_that_plays_is_over_the_picture_and_v_hides_it(tmp_path: Path) -> None:
    patch = tmp_path / "patch.weft"
    text = "me<width> = 640\nme<height> = 360\nme<bpm> = 2\ndisplay(1, 1, 1)\n"
    patch.write_text(text)

    def seen() -> np.ndarray:
        return screen(tmp_path)[:360, :640].astype(int)

    def until(condition: Callable[[np.ndarray], object], what: str) -> None:
        deadline = time.monotonic() + 20
        while not condition(seen()):
            assert time.monotonic() < deadline, what
            time.sleep(0.05)

    def plates(picture: np.ndarray) -> np.ndarray:
        """The rows in which there is a plate at the left edge of the text."""
        return (picture[:, 10:14].max(axis=(1, 2)) < 128).nonzero()[0]

    def blue(picture: np.ndarray) -> np.ndarray:
        """The rows that glow."""
        left = picture[:, 10:14].min(axis=1)
        return ((left[:, 2] - left[:, 0] > 40) & (left[:, 0] < 128)).nonzero()[0]

    with Performance(patch, "--show-source", "--no-audio") as performance:
        until(lambda picture: 0 < len(plates(picture)) < 180, "there is no text over a white picture")
        lines = len(plates(seen()))
        assert not len(blue(seen()))
        performance.save(text.replace("display(1, 1, 1)", "display(1, 1,\n  0.9)"))
        # At two beats a minute, two beats are enough time to look.
        until(lambda picture: len(blue(picture)) > 0.3 * lines, "the statement does not glow")
        assert 0.3 * lines < len(blue(seen())) < 0.6 * lines  # both of its lines, of five
        xdotool("search", "--name", "^patch.weft", "key", "v")
        until(lambda picture: not len(plates(picture[: lines // 2])), "the text stays")
        performance.save(text.replace("1, 1, 1", "1, 1, nothing"))
        performance.wait_for("error")
        xdotool("search", "--name", "^patch.weft", "key", "v")

        def red(picture: np.ndarray) -> np.ndarray:
            """Where there is a bar, which glows as well."""
            return (picture[: 2 * lines, :20, 0] == 255) & (picture[: 2 * lines, :20, 1] < 190)

        until(lambda picture: red(picture).any(), "the mistake is not marked")
