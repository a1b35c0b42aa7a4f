"""Pictures that were computed by Metal or WebGPU in a window that is drawn by the same: shown in the memory where they
are, and looking as they do by OpenGL. Without a Mac, a stand-in for pyobjc draws into a layer of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.compute import wgpu
from tests.support.loaded import drawn, expected, loader_of, prepared
from tests.support.metal.apple import CommandBuffer, cocoa_window
from tests.support.metal.device import CpuDevice
from tests.support.metal.executor import device
from tests.support.metal.layer import VISIBLE, CAMetalLayer, NSWindow
from tests.support.metal.library import apple_in_place
from tests.support.together import all_but
from tests.support.windows import inside_of, on_x11, screen
from weft.apple import AppleDevice, AppleError
from weft.backends.base import Env
from weft.backends.compute.subgraph import ComputePicture
from weft.backends.gl.egl import GraphicsError
from weft.errors import WeftError
from weft.runtime.program.coordinator import pictures_of
from weft.runtime.program.program import ProgramLoader
from weft.runtime.screens.screen import Label, Overlay, Rect
from weft.runtime.screens.wall_pins import card_of
from weft.runtime.screens.walls import Walls
from weft.runtime.screens.warp import EdgeBlend, Warp

if TYPE_CHECKING:
    from weft.runtime.screens.window import Window

__all__ = ["device", "wgpu"]
pytestmark = pytest.mark.usefixtures("display")

SIZE = (96, 54)
FEEDBACK = "t<v> = mix(hash(me@px, me@py, me@absframe), prev(t@v), 0.75)\ndisplay(t@v, me@x, me@y)\n"
OVERLAY = Overlay(note="what happened", figures=("59.9 fps",))


METAL = pytest.mark.parametrize("backend", ["metal"], indirect=True)


@pytest.fixture(params=["metal", "wgpu"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def layer(backend: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> CAMetalLayer | None:
    """The library of a backend, be it the real one. Gives the layer of Apple's frameworks that are not."""
    import glfw

    if backend == "wgpu":
        request.getfixturevalue("wgpu")
        return None
    device = request.getfixturevalue("device")
    if not isinstance(device, CpuDevice):
        if not isinstance(device, AppleDevice):
            pytest.skip("this device is of the other library")
        return None
    made = apple_in_place(device, monkeypatch)
    monkeypatch.setattr(glfw, "get_cocoa_window", cocoa_window, raising=False)
    return made["Quartz"].CAMetalLayer


@pytest.fixture
def loader(backend: str, layer: object) -> ProgramLoader:
    return loader_of(backend)


@pytest.fixture
def opened(loader: ProgramLoader) -> Iterator[Callable[..., Window]]:
    """Opens windows that the device draws."""
    from weft.runtime.screens.window import Window, display_on

    shared = display_on(loader.window_device())
    windows: list[Window] = []

    def open_window(*size: int, **options: Any) -> Window:
        windows.append(Window("weft", *size, vsync=False, display=shared, **options))
        return windows[-1]

    yield open_window
    for window in windows:
        window.close()
    shared.close()


def noise(width: int, height: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 4), np.uint8)


def test_a_picture_is_shown_where_it_was_computed(
    loader: ProgramLoader, layer: CAMetalLayer | None, opened: Callable[..., Window]
) -> None:
    window, loaded = opened(*SIZE), prepared(loader, FEEDBACK, SIZE)
    for number in range(4):
        shown = drawn(loaded, number)
        assert isinstance(shown, ComputePicture)
        window.present(shown)
        window.redraw()
        assert shown._pixels is None, "nobody has read it"
    wanted = expected(FEEDBACK, 4, SIZE)
    assert (np.abs(window.read_back().astype(int) - wanted) > 1)[..., :3].mean() < 0.001
    if layer is not None:
        assert layer.count == 9
        np.testing.assert_array_equal(layer.presented, window.read_back())


@pytest.mark.long
def test_a_picture_that_follows_at_once_does_not_reach_the_one_that_is_shown(
    loader: ProgramLoader, layer: CAMetalLayer | None, opened: Callable[..., Window]
) -> None:
    window, loaded = opened(*SIZE), prepared(loader, FEEDBACK, SIZE)
    for number in range(12):
        window.present(drawn(loaded, number))
        found = window.read_back()
        assert (np.abs(found.astype(int) - expected(FEEDBACK, number + 1, SIZE)) > 1)[..., :3].mean() < 0.001
        if layer is not None:
            np.testing.assert_array_equal(layer.presented, found)


@pytest.mark.long
def test_several_windows_show_pictures_where_they_were_computed(
    loader: ProgramLoader, opened: Callable[..., Window]
) -> None:
    from weft.runtime.screens.window import Windows

    text = FEEDBACK + 'display(1 - t@v, t@v(me@x ~ 1 - me@x), me@y, to: "side")\n'
    shown = []
    for loads in (loader, loader_of("vector")):
        loaded = prepared(loads, text, SIZE)
        with Windows("weft", *SIZE, vsync=False, display=opened(*SIZE).display) as windows:
            for number in range(4):
                env = Env(*SIZE, tick=number, abstime=number / 60, dt=1 / 60)
                pictures = {name: each.values for name, each in pictures_of(loaded.runner.run(env)).items()}
                first = pictures.pop("")
                windows.show_others(pictures)
                windows.present(first)
            side = windows._further["side"]
            shown.append([window.read_back()[..., :3].astype(int) for window in (windows, side)])
    for found, wanted in zip(*shown, strict=True):
        assert (np.abs(found - wanted) > 1).mean() < 0.001


@pytest.mark.long
@pytest.mark.parametrize("filtering", ["nearest", "linear"])
@pytest.mark.parametrize("size", all_but(1, [((200, 100),), ((96, 54),), ((96, 96),), ((40, 90),)]))
def test_it_looks_as_it_does_by_opengl(opened: Callable[..., Window], filtering: str, size: tuple[int, int]) -> None:
    from weft.runtime.screens.window import Window

    found = []
    for window in (opened(*size, filtering=filtering), Window("weft", *size, vsync=False, filtering=filtering)):
        with window:
            window.annotate(OVERLAY)
            window._follow_picture = lambda: None  # type: ignore[method-assign]  # it keeps its size
            window.present(noise(*SIZE))
            found.append(window.read_back().astype(int))
    by_device, by_opengl = found
    assert by_device.shape == (size[1], size[0], 4)
    # Where the nearest is not clear, each may take another one.
    assert (np.abs(by_device - by_opengl) > 2).mean() < (0.05 if filtering == "nearest" else 1e-6)


PINS = ((0.08, 0.11), (0.93, 0.03), (0.88, 0.97), (0.02, 0.9))
WALLS = {
    "corners": Warp(PINS), "turned": Warp(turn=90, flip_x=True),
    "levels": Warp(PINS, brightness=0.8, black=0.1, blend=EdgeBlend(0.3, 0.1, 0.2, 0.0, 1.8)),
    "grid": Warp(PINS, 180).with_grid(3).with_point(1, 1, 0.6, 0.42),
    "mask": Warp(mask=(((0.0, 0.0), (0.9, 0.1), (0.5, 1.0)),)),
}  # fmt: skip


@pytest.mark.parametrize("wall", WALLS)
def test_pictures_lie_on_walls_as_they_do_by_opengl(opened: Callable[..., Window], wall: str) -> None:
    from weft.runtime.screens.window import Window

    found, size = [], (160, 90)
    for window in (opened(*size), Window("weft", *size, vsync=False)):
        with window:
            window.annotate(OVERLAY)
            window.present(card_of(size, "weft"))
            straight = window.read_back()
            window._lie(WALLS[wall])
            found.append(window.read_back().astype(int))
            assert (found[-1] != straight).mean() > 0.2
    by_device, by_opengl = found
    # A filter of OpenGL in software has steps of 1/256, and an edge may go by the middle of a pixel.
    assert (np.abs(by_device - by_opengl) > 6).mean() < 0.002


@pytest.mark.parametrize("backend", ["wgpu"], indirect=True)
def test_a_pinned_card_ends_within_half_a_pixel_of_its_corners(opened: Callable[..., Window]) -> None:
    window = opened(160, 90)
    window._lie(Warp(PINS))
    inside = inside_of(Warp(PINS).quad((160, 90), (160, 90)), (160, 90))
    window.present(card_of((160, 90), "weft"))
    card = window.read_back()[..., 0]
    assert (card[inside < -0.5] == 0).all()
    assert (card[(inside > 0.1) & (inside < 0.4)] > 100).mean() > 0.9
    window.present(np.full((90, 160, 4), 255, np.uint8))
    assert (window.read_back()[inside > 0.5] == 255).all()


@on_x11
@pytest.mark.parametrize("backend", ["wgpu"], indirect=True)
@pytest.mark.parametrize("level", [255, 128, 40])
def test_two_blended_windows_are_flat_on_the_screen(
    opened: Callable[..., Window], tmp_path: Path, eventually: Callable[..., None], level: int
) -> None:
    from weft.runtime.screens.display import glfw

    width, height = size = 160, 90
    picture = np.full((height, width, 4), level, np.uint8)
    walls = Walls(given={"": Warp(blend=EdgeBlend(right=0.25)), "side": Warp(blend=EdgeBlend(left=0.25))})
    first, side = opened(*size, walls=walls), opened(*size, walls=walls, name="side")
    places = (0, 0), (400, 200)
    for window, place in zip((first, side), places, strict=True):
        glfw.set_window_pos(window._handle, *place)

    def seen() -> list[NDArray[np.float64]]:
        for window in (first, side):
            window.poll()
            window.present(picture)
        shot = screen(tmp_path).astype(float)
        return [shot[top : top + height, left : left + width, 0] for left, top in places]

    eventually(lambda: all(each.max() == level for each in seen()))
    left, right = seen()
    overlap = width // 4
    both = ((left[:, -overlap:] / 255) ** 2.2 + (right[:, :overlap] / 255) ** 2.2) ** (1 / 2.2) * 255
    assert np.abs(both - level).max() <= 2
    assert (left[:, :-overlap] == level).all()
    assert left[0, -1] < 0.2 * level


def test_a_test_card_is_pinned_in_the_window_of_a_device(opened: Callable[..., Window]) -> None:
    window = opened(160, 90)
    window.present(np.full((90, 160, 4), 255, np.uint8))
    window.toggle_pins()
    window._pins.labels((160, 90), 1.0)
    window._pins.press(2, 2)
    window._pins.move(42, 32)
    window._pins.release()
    window.toggle_pins()
    seen = window.read_back()
    assert (seen[4, 4, :3] == 0).all()
    assert (seen[80, 150, :3] == 255).all()


def test_pictures_from_elsewhere_are_uploaded(layer: CAMetalLayer | None, opened: Callable[..., Window]) -> None:
    window = opened(64, 64)
    assert (window.read_back() == (0, 0, 0, 255)).all()
    for seed in range(6):
        window.present(noise(64, 64, seed))
        np.testing.assert_array_equal(window.read_back(), noise(64, 64, seed))
    window.present(noise(80, 40))
    np.testing.assert_array_equal(window.read_back()[..., :3].shape, (window.frame_size[1], window.frame_size[0], 3))


def test_a_label_of_few_pixels_fills_its_place(opened: Callable[..., Window]) -> None:
    window, pixels = opened(64, 64), noise(4, 2)
    pixels[..., 3] = 255
    found = window._surface.read_back((64, 64), [Label(Rect(10, 8, 40, 20), pixels)])
    np.testing.assert_array_equal(found[8:28, 10:50], pixels.repeat(10, 0).repeat(10, 1))
    found[8:28, 10:50] = 0, 0, 0, 255
    assert (found == (0, 0, 0, 255)).all()


def test_a_picture_of_another_device_is_read(
    backend: str, loader: ProgramLoader, opened: Callable[..., Window]
) -> None:
    window = opened(*SIZE)
    other = loader_of(backend)
    shown = drawn(prepared(other, "display(me@x, me@y, 0.5)\n", SIZE), 0)
    assert other.window_device() is not loader.window_device()
    window.present(shown)
    np.testing.assert_array_equal(window.read_back(), shown.read())


@METAL
def test_a_window_that_is_covered_is_not_drawn(layer: CAMetalLayer | None, opened: Callable[..., Window]) -> None:
    if layer is None:
        pytest.skip("nobody covers a real window")
    window = opened(*SIZE)
    below: NSWindow = layer.window
    window.read_back()  # what was begun before is done then
    before, below.occlusion = layer.count, 0
    window.present(noise(*SIZE))
    window.read_back()
    assert layer.count == before
    below.occlusion = VISIBLE
    window.redraw()
    window.read_back()
    np.testing.assert_array_equal(layer.presented, noise(*SIZE))


@METAL
def test_the_pace_is_that_of_the_screen_if_it_is_asked_for(
    loader: ProgramLoader, layer: CAMetalLayer | None, opened: Callable[..., Window]
) -> None:
    if layer is None:
        pytest.skip("a real layer may be asked, but a window that waits for the screen is slow")
    opened(*SIZE)
    assert not layer.synced


# --- failures -----------------------------------------------------------------------------------------------------


def test_where_the_device_cannot_draw_pictures_are_uploaded(
    backend: str, loader: ProgramLoader, monkeypatch: pytest.MonkeyPatch
) -> None:
    from weft.runtime.screens import metal_painter, wgpu_painter
    from weft.runtime.screens.window import display_on

    painter = metal_painter if backend == "metal" else wgpu_painter
    monkeypatch.setattr(painter, "SHADERS", painter.SHADERS.replace("mix(", "nowhere(", 1))
    with pytest.raises(GraphicsError, match="nowhere"):
        display_on(loader.window_device())


@METAL
def test_what_pyobjc_does_not_know_is_a_reason(
    loader: ProgramLoader, layer: CAMetalLayer | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from weft.runtime.screens.window import display_on

    if layer is None:
        pytest.skip("the real one knows all of it")
    monkeypatch.delattr(CAMetalLayer, "setFramebufferOnly_")
    with pytest.raises(GraphicsError, match="setFramebufferOnly_"):
        display_on(loader.window_device())


@METAL
def test_a_launch_that_failed_is_told_by_the_next(
    loader: ProgramLoader, layer: CAMetalLayer | None, opened: Callable[..., Window], monkeypatch: pytest.MonkeyPatch
) -> None:
    if layer is None:
        pytest.skip("a real device does not fail when it is asked to")
    window, loaded = opened(*SIZE), prepared(loader, FEEDBACK, SIZE)

    def fail(commands: CommandBuffer) -> None:
        raise RuntimeError("the device hangs")

    for encoder in ("computeCommandEncoder", "renderCommandEncoderWithDescriptor_"):
        with monkeypatch.context() as broken:
            inner = getattr(CommandBuffer, encoder)

            def begun(self: CommandBuffer, *given: Any, inner: Any = inner) -> Any:
                self.work.append(lambda: fail(self))
                return inner(self, *given)

            broken.setattr(CommandBuffer, encoder, begun)
            if encoder == "computeCommandEncoder":
                drawn(loaded, 0)
                with pytest.raises(WeftError, match=r"visual cannot continue: a launch fails \(the device hangs"):
                    drawn(loaded, 1)
            else:
                with pytest.raises(WeftError, match="cannot be drawn into any more: the device hangs"):
                    window.read_back()
    np.testing.assert_array_equal(window.read_back()[0, 0], (0, 0, 0, 255))  # what failed is told once


@METAL
def test_memory_that_is_lacking_is_told_in_words(loader: ProgramLoader) -> None:
    with pytest.raises(AppleError, match="Metal cannot provide memory for 1099511627776 bytes"):
        loader.window_device().buffer(1 << 40)


@pytest.mark.parametrize("backend", ["wgpu"], indirect=True)
def test_a_device_that_is_lost_is_told_in_words(loader: ProgramLoader, opened: Callable[..., Window]) -> None:
    window = opened(*SIZE)
    loader.window_device().own.destroy()
    with pytest.raises(WeftError, match=r"the window cannot be drawn into any more: .*(lost|destroyed)") as failure:
        window.present(noise(*SIZE))
    assert failure.value.diagnostics[0].code == "display-lost"


@pytest.mark.parametrize("backend", ["wgpu"], indirect=True)
def test_windows_that_open_again_show_pictures_where_they_were_computed(loader: ProgramLoader) -> None:
    """Their connections to the X server tend to have one address in memory, which a driver takes for one connection."""
    from weft.runtime.screens.window import Window, display_on

    loaded = prepared(loader, FEEDBACK, SIZE)
    for number in range(8):
        shared = display_on(loader.window_device())
        with Window("weft", *SIZE, vsync=False, display=shared) as window:
            window.present(drawn(loaded, number))
            window.redraw()
            window.read_back()
            assert shared.take_error() is None
        shared.close()
