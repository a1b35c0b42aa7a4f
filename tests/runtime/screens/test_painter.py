"""The ways by which a picture gets to the graphics card: each brings the same bits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest

from tests.support.windows import Picture

if TYPE_CHECKING:
    from weft.runtime.screens.window import Window

pytestmark = pytest.mark.usefixtures("display")

# One after the other, so that sizes grow, shrink, and come again; odd ones among them.
SIZES = [(320, 180), (1, 1), (37, 5), (5, 37), (321, 181), (320, 180), (7, 1), (640, 360), (640, 360), (641, 3)]


@pytest.fixture
def window() -> Iterator[Window]:
    from weft.runtime.screens.window import Window

    with Window("weft", 320, 180, vsync=False) as window:
        yield window


def noise(seed: int, width: int, height: int) -> Picture:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 4), np.uint8)


@pytest.mark.parametrize("way", ["direct", "buffers"])
def test_every_picture_arrives_to_the_bit(window: Window, way: Literal["direct", "buffers"]) -> None:
    from weft.runtime.screens.painter import GlSurface

    surface = GlSurface(window.display, window._handle, "linear", way)
    assert surface.uploading == way
    for seed, size in enumerate(SIZES):
        picture = noise(seed, *size)
        for form in (
            picture,
            picture[::-1, ::-1],
            np.asfortranarray(picture),
            noise(seed, size[0] * 2, size[1])[:, ::2],
        ):
            surface.show(form)
            assert np.array_equal(surface.read_back(size, ()), form)


@pytest.mark.parametrize("way", ["direct", "buffers"])
def test_the_array_may_change_as_soon_as_it_is_handed_over(window: Window, way: Literal["direct", "buffers"]) -> None:
    from weft.runtime.screens.painter import GlSurface

    surface = GlSurface(window.display, window._handle, "linear", way)
    for seed in range(8):
        picture = noise(seed, 320, 180)
        kept = picture.copy()
        surface.show(picture)
        picture[...] = 0
        assert np.array_equal(surface.read_back((320, 180), ()), kept)


@pytest.mark.parametrize("way", ["direct", "buffers"])
def test_labels_lie_over_the_picture_whichever_way_it_came(window: Window, way: Literal["direct", "buffers"]) -> None:
    from weft.runtime.screens.painter import GlSurface
    from weft.runtime.screens.screen import Label, Rect

    surface = GlSurface(window.display, window._handle, "linear", way)
    picture = noise(1, 320, 180)
    label = Label(Rect(13, 7, 31, 11), np.full((11, 31, 4), 255, np.uint8))
    glass = Label(Rect(300, 170, 20, 10), np.zeros((10, 20, 4), np.uint8))
    for labels in ([label], [glass, label], [label, glass], [], [glass]):
        surface.show(picture)
        expected = picture.copy()
        if label in labels:
            expected[7:18, 13:44] = 255
        assert np.array_equal(surface.read_back((320, 180), labels), expected)


@pytest.mark.parametrize(
    ("renderer", "way"),
    [
        ("llvmpipe (LLVM 15.0.6, 256 bits)", "direct"),
        ("softpipe", "direct"),
        ("Google SwiftShader", "direct"),
        ("Apple Software Renderer", "direct"),
        ("NVIDIA GeForce RTX 4070/PCIe/SSE2", "buffers"),
        ("Mesa Intel(R) UHD Graphics 620 (KBL GT2)", "buffers"),
        ("AMD Radeon Graphics (radeonsi, renoir, LLVM 15.0.6, DRM 3.49)", "buffers"),
        ("Apple M2", "buffers"),
    ],
)
def test_a_graphics_card_gets_buffers_and_a_processor_does_not(renderer: str, way: str) -> None:
    from weft.runtime.screens.painter import upload_for

    assert upload_for(renderer) == way
