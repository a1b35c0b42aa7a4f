"""Text over the picture, in a real window: it can be read on any picture, points at the right place, and touches
nothing around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

import weft.media
from tests.support.together import all_but
from tests.support.windows import on_x11, resize, screen, set_property
from weft.errors import Diagnostic, Source, Span
from weft.media.lettering import Face
from weft.runtime.screens.overlay import Annotator, face_size
from weft.runtime.screens.screen import Label, Overlay, Picture, Rect

if TYPE_CHECKING:
    from weft.runtime.screens.window import Window

Eventually = Callable[..., None]
Floats = NDArray[np.float64]

pytestmark = pytest.mark.usefixtures("display")

SIZE = (640, 360)
FONT = Path(weft.media.__file__).parent / "fonts" / "DejaVuSansMono.ttf"
LONG = "ring<v> = smoothstep(0.02, 0, abs(hypot(me@x - 0.5, (me@y - 0.5) / me@aspect) - 0.2)) + hash(me@px, me@py)"
SOURCE = Source("rings.weft", f"display(ring@v, 0, Ω)\n{LONG}\n\tgreen = ring@v\nmissing(")


def problem(text: str, severity: str = "error") -> Diagnostic:
    start = SOURCE.text.index(text)
    span = Span(SOURCE, start, start + len(text))
    return Diagnostic("error" if severity == "error" else "warning", "code", "something is wrong", span, "mend it")


def full(width: int, height: int) -> Overlay:
    return Overlay((problem("ring@v"), problem("hypot", "warning")), "swapped in 21 ms", ("60.0 fps", "p95 16.9 ms"))


def places(overlay: Overlay, frame: tuple[int, int] = SIZE, scale: float = 1.0) -> list[Rect]:
    return [label.place for label in Annotator().labels(overlay, frame, scale)]


def part(picture: Picture, place: Rect) -> Picture:
    return picture[place.top : place.top + place.height, place.left : place.left + place.width]


def around(picture: Picture, rects: list[Rect]) -> Picture:
    """The picture with these parts blackened."""
    left = picture.copy()
    for rect in rects:
        part(left, rect)[...] = 0
    return left


BACKGROUNDS = {
    "white": np.full((SIZE[1], SIZE[0], 4), 255, np.uint8),
    "black": np.zeros((SIZE[1], SIZE[0], 4), np.uint8),
    "noise": np.random.default_rng(3).integers(0, 256, (SIZE[1], SIZE[0], 4), np.uint8),
    "stripes": np.repeat(np.tile(np.uint8([[0], [255]]), (SIZE[1] // 2, SIZE[0]))[..., np.newaxis], 4, axis=2),
}


@pytest.fixture
def window() -> Iterator[Window]:
    from weft.runtime.screens.window import Window

    with Window("weft", *SIZE, vsync=False) as window:
        yield window


@on_x11
@pytest.mark.parametrize("background", BACKGROUNDS)
def test_the_screen_shows_panels_over_the_picture_and_nothing_else_changes(
    window: Window, background: str, tmp_path: Path, eventually: Eventually
) -> None:
    picture = BACKGROUNDS[background]
    overlay = full(*SIZE)
    window.annotate(overlay)
    window.present(picture)
    shown = window.read_back()
    eventually(lambda: np.array_equal(screen(tmp_path)[: SIZE[1], : SIZE[0]], shown[..., :3]))
    rects = places(overlay)
    assert len(rects) == 3
    assert np.array_equal(around(shown, rects), around(picture, rects))
    for rect in rects:
        assert not np.array_equal(part(shown, rect), part(picture, rect))
    window.annotate(Overlay())
    window.redraw()
    assert np.array_equal(window.read_back(), picture)
    eventually(lambda: np.array_equal(screen(tmp_path)[: SIZE[1], : SIZE[0]], picture[..., :3]))


def luminance(pixels: Picture) -> Floats:
    """The relative luminance of sRGB colours, as WCAG 2.2 defines it."""
    values = pixels[..., :3] / 255
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    return np.asarray(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("background", BACKGROUNDS)
def test_every_letter_stands_out_against_the_brightest_spot_of_its_panel(window: Window, background: str) -> None:
    window.annotate(full(*SIZE))
    window.present(BACKGROUNDS[background])
    shown = window.read_back()
    window.present(BACKGROUNDS["black"])
    opaque = window.read_back()
    window.present(BACKGROUNDS["white"])
    # Ink is what lets nothing of the picture through.
    ink = (opaque == window.read_back()).all(axis=2)
    for rect in places(full(*SIZE)):
        letters, ground = luminance(part(shown, rect)), luminance(part(shown, rect))
        solid = part(ink, rect)
        # The corners are cut off, and letters are smooth at their edges.
        bare = np.zeros_like(solid)
        bare[:, 8:12] = True
        bare[:8] = bare[-8:] = False
        assert solid.any()
        assert (letters[solid].min() + 0.05) / (ground[bare & ~solid].max() + 0.05) > 4.5


ERROR_INK = (255, 122, 116)


@pytest.mark.parametrize("size", [(320, 180), SIZE, (1280, 720)])
@pytest.mark.parametrize("text", all_but(3, ["ring@v", "Ω", "(", "display", "hypot", "hash(me@px, me@py)", "green"]))
def test_the_line_lies_under_the_place_to_the_pixel(text: str, size: tuple[int, int]) -> None:
    from weft.runtime.screens.window import Window

    if text == "(":
        found = Diagnostic("error", "code", "open", Span(SOURCE, len(SOURCE.text) - 1, len(SOURCE.text)))
    else:
        found = problem(text)
    with Window("weft", *size, vsync=False) as window:
        window.annotate(Overlay((found,)))
        window.redraw()
        shown = window.read_back()
    left, right, top = line_of(shown)
    face = ImageFont.truetype(FONT, face_size(size, 1.0), layout_engine=ImageFont.Layout.BASIC)
    ascent, descent = face.getmetrics()
    assert right - left == round(face.getlength("0")) * len(text)
    drawn = Image.new("L", (right - left, ascent + descent))
    ImageDraw.Draw(drawn).text((0, ascent), text, fill=255, font=face, anchor="ls")
    above = shown[top - ascent - descent : top, left:right, 1] / 255
    # Between the ground's brightness over black and the ink's, in proportion to what the letter covers.
    expected = np.interp(np.asarray(drawn) / 255, (0, np.max(drawn) / 255), (above.min(), above.max()))
    assert above.max() - above.min() > 0.5
    assert np.abs(above - expected).max() < 0.02


def line_of(shown: Picture) -> tuple[int, int, int]:
    """From where to where the line under the place goes, and its upper edge: the longest run in an error's colour."""
    red = (shown[..., :3] == ERROR_INK).all(axis=2)
    best = (0, 0, 0)
    for row, pixels in enumerate(red):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], pixels.astype(np.int8), [0]])))
        for left, right in zip(edges[::2], edges[1::2], strict=True):
            # The bar at the left and the letters of "error" are narrower than a column and half of one.
            if right - left > best[1] - best[0] and row > 0 and right - left >= 6:
                best = (int(left), int(right), row)
    return best


@on_x11
def test_after_another_size_it_is_laid_out_anew(window: Window, eventually: Eventually) -> None:
    overlay = full(*SIZE)
    window.annotate(overlay)
    window.present(BACKGROUNDS["noise"])
    for width, height in ((501, 333), (900, 700), (64, 40), (10, 10), SIZE):
        resize(window, width, height)
        window.redraw()
        written = window.read_back()
        window.annotate(Overlay())
        rects = places(overlay, (width, height))
        assert np.array_equal(around(written, rects), around(window.read_back(), rects))
        window.annotate(overlay)
    window.toggle_fullscreen()
    eventually(lambda: window.frame_size == (1280, 720), meanwhile=window.poll)
    window.present(BACKGROUNDS["white"])
    for rect in places(overlay, (1280, 720)):
        assert part(window.read_back(), rect).min() < 64


@on_x11
def test_on_a_finer_monitor_letters_have_more_pixels() -> None:
    from weft.runtime.screens.window import Window

    overlay = Overlay((), "swapped in 21 ms")
    set_property(None, "RESOURCE_MANAGER", "STRING", b"Xft.dpi:\t192\n")
    try:
        with Window("weft", *SIZE, vsync=False) as window:
            window.annotate(overlay)
            window.present(BACKGROUNDS["white"])
            shown = window.read_back()
    finally:
        set_property(None, "RESOURCE_MANAGER", "STRING", b"")
    (rect,) = places(overlay, scale=2.0)
    (plain,) = places(overlay)
    assert rect.height > 1.5 * plain.height
    rows, columns = np.nonzero((shown[..., :3] != 255).any(axis=2))
    assert (columns.min(), rows.max() + 1) == (rect.left, rect.top + rect.height)


def test_what_has_not_changed_is_not_drawn_again() -> None:
    annotator = Annotator()
    first = annotator.labels(full(*SIZE), SIZE, 1.0)
    assert all(a is b for a, b in zip(annotator.labels(full(*SIZE), SIZE, 1.0), first, strict=True))
    before = {label.place: label for label in first}
    changed = Overlay(full(*SIZE).errors, "swapped in 22 ms", full(*SIZE).figures)
    after = annotator.labels(changed, SIZE, 1.0)
    assert sum(before.get(label.place) is label for label in after) == 2
    assert not annotator.labels(Overlay(), SIZE, 1.0)


def test_labels_are_multiplied_by_their_alpha_and_round() -> None:
    labels: tuple[Label, ...] = Annotator().labels(full(*SIZE), SIZE, 1.0)
    for label in labels:
        assert label.pixels.shape == (label.place.height, label.place.width, 4)
        assert (label.pixels[..., :3] <= label.pixels[..., 3:]).all()
        assert (label.pixels[[0, 0, -1, -1], [0, -1, 0, -1]] == 0).all()
        assert (label.pixels[..., 3] < 255).any()


def test_odd_texts_are_shown_and_not_refused(window: Window) -> None:
    text = "a\tb\x00漢\udc80\U0001f600\r" * 9
    odd = Diagnostic("error", "code", text, Span(Source(text, text), 2, 5), text)
    window.annotate(Overlay((odd,), text, (text,)))
    window.present(BACKGROUNDS["white"])
    assert window.read_back().min() < 64


def test_an_overlay_over_nothing_is_shown_too(window: Window) -> None:
    window.annotate(Overlay((problem("hypot"),)))
    window.redraw()
    assert window.read_back()[..., :3].max() > 200
    assert Face(face_size(SIZE, 1.0)).height < SIZE[1] // 10
