"""The text that plays, over the picture: read on any picture, where it was edited, and drawn once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.windows import on_x11, screen
from weft.errors import Diagnostic, Source, Span
from weft.runtime.screens.playing_text import TextOverPictures, TextPainter, TextRoom, blend, text_cells
from weft.runtime.screens.screen import Label, Overlay, Picture, Rect, WindowOptions
from weft.runtime.screens.text_view import (
    CORNERS, USUAL_STYLE, Corner, Glow, TextStyle, TextView, comment_start, first_line
)

if TYPE_CHECKING:
    from weft.runtime.screens.window import Window

pytestmark = pytest.mark.usefixtures("display")

SIZE = (640, 360)
LINES = (
    "// Waves. Change first: the 9.", "#slider speed<v> = 0, 2, 0.3", "", "wave = sin(me@x * 9 + me@time * speed@v)",
    "display(wave, 0,", "  wave * 0.5)",
)  # fmt: skip
VIEW = TextView(LINES, 3, ((4, "error"),), Glow((3,), 0.0, 1.0), ((1, "0.3"),))
BACKGROUNDS = {
    "white": np.full((SIZE[1], SIZE[0], 4), 255, np.uint8),
    "black": np.zeros((SIZE[1], SIZE[0], 4), np.uint8),
    "noise": np.random.default_rng(3).integers(0, 256, (SIZE[1], SIZE[0], 4), np.uint8),
    "stripes": np.repeat(np.tile(np.uint8([[0], [255]]), (SIZE[1] // 2, SIZE[0]))[..., np.newaxis], 4, axis=2),
}


@pytest.fixture
def window() -> Iterator[Window]:
    from weft.runtime.screens.window import Window

    with Window("weft", *SIZE, vsync=False, shows_text=True) as window:
        yield window


def luminance(pixels: Picture) -> NDArray[np.float64]:
    """The relative luminance of sRGB colours, as WCAG 2.2 defines it."""
    values = pixels[..., :3] / 255
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    return np.asarray(linear @ [0.2126, 0.7152, 0.0722])


def labels(
    view: TextView, frame: tuple[int, int] = SIZE, style: TextStyle = USUAL_STYLE, now: float = 0.0
) -> list[Label]:
    return [*TextPainter(style).labels(view, TextRoom(frame), 1.0, now)]


def rows(label: Label, count: int) -> list[Rect]:
    height = label.place.height // count
    return [Rect(label.place.left, label.place.top + at * height, label.place.width, height) for at in range(count)]


def part(picture: Picture, place: Rect) -> Picture:
    return picture[place.top : place.top + place.height, place.left : place.left + place.width]


@pytest.mark.parametrize("glows", [False, True], ids=["still", "glowing"])
@pytest.mark.parametrize("background", BACKGROUNDS)
def test_every_letter_stands_out_by_4_5_to_1_on_the_screen(
    window: Window, background: str, glows: bool
) -> None:
    """As WCAG 2.2 counts: whole ink against the brightest spot of the plate around it, line by line."""
    glow = Glow(tuple(range(len(LINES))), time.monotonic(), 1e6) if glows else Glow()
    view = TextView(LINES, 3, values=((1, "0.3"),), glow=glow)
    window.show_text(view)

    def shown(name: str) -> Picture:
        window.present(BACKGROUNDS[name])
        return window.read_back()

    picture, on_black, on_white = shown(background), shown("black"), shown("white")
    ink = (on_black == on_white).all(axis=2)  # what lets nothing of the picture through
    letters, *_ = labels(view)
    plates = luminance(picture)
    for line, row in zip(LINES, rows(letters, len(LINES)), strict=True):
        if not line:
            continue
        solid, light = part(ink, row), part(plates, row)
        # The plate is as bright as where it has no letter at all: at its left end, and above them.
        ground = light[:, 2 : row.height // 3]
        assert solid.any()
        assert (light[solid].min() + 0.05) / (ground.max() + 0.05) >= 4.5


@on_x11
def test_the_screen_has_it_and_nothing_around_it_changes(window: Window, tmp_path: Path, eventually) -> None:
    picture = BACKGROUNDS["noise"]
    window.show_text(TextView(LINES))
    window.present(picture)
    shown = window.read_back()
    eventually(lambda: np.array_equal(screen(tmp_path)[: SIZE[1], : SIZE[0]], shown[..., :3]))
    (letters,) = labels(TextView(LINES))
    outside = np.ones((SIZE[1], SIZE[0]), bool)
    part(outside, letters.place)[letters.pixels[..., 3] > 0] = False
    assert np.array_equal(shown[outside], picture[outside])
    assert not np.array_equal(part(shown, letters.place), part(picture, letters.place))
    window.toggle_text()
    window.redraw()
    assert np.array_equal(window.read_back(), picture)


def test_a_frame_in_which_nothing_changes_draws_nothing_again() -> None:
    painter, room = TextPainter(), TextRoom(SIZE)
    first = painter.labels(VIEW, room, 1.0, now=5.0)
    assert len(first) == 2
    assert all(one is other for one, other in zip(first, painter.labels(VIEW, room, 1.0, now=6.0), strict=True))
    # A value that is turned leaves the letters, which are the most of it.
    turned = TextView(LINES, 3, VIEW.marks, VIEW.glow, ((1, "0.4"),))
    letters, values = painter.labels(turned, room, 1.0, now=6.0)
    assert letters is first[0]
    assert values is not first[1]


def test_the_glow_fades_within_its_seconds_and_then_costs_nothing() -> None:
    painter, room = TextPainter(), TextRoom(SIZE)
    strengths = []
    for now in (0.0, 0.5, 0.9, 1.0, 2.0):
        glows = [label for label in painter.labels(VIEW, room, 1.0, now) if not label.pixels[..., 3].any()]
        strengths.append(int(glows[0].pixels.max()) if glows else 0)
    assert strengths[0] > strengths[1] > strengths[2] > 0
    assert strengths[3:] == [0, 0]


def test_it_glows_on_the_plates_of_its_lines() -> None:
    letters, _, glow = labels(VIEW, now=0.0)
    assert glow.place.height == rows(letters, len(LINES))[3].height
    assert glow.place.top == rows(letters, len(LINES))[3].top
    plate = letters.pixels[3 * glow.place.height, :, 3] > 0
    assert np.array_equal(glow.pixels[0].any(axis=1), plate)


def test_the_line_of_a_mistake_is_marked_at_its_left_and_under_its_text() -> None:
    error = np.array([255, 122, 116, 255])
    letters, *_ = labels(VIEW)
    marked = (letters.pixels == error).all(axis=2)
    height = letters.place.height // len(LINES)
    assert marked[4 * height : 5 * height, : height // 2].any(axis=1).all()
    under = marked[4 * height : 5 * height, height:]
    assert under.any(axis=1).any()
    assert not marked[: 4 * height].any()
    assert not marked[5 * height :].any()


@pytest.mark.parametrize("corner", CORNERS)
@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_it_is_in_its_corner_and_as_large_as_it_is_set(corner: Corner, scale: float) -> None:
    frame = (1920, 1080)
    place = labels(TextView(LINES), frame, TextStyle(corner, scale))[0].place
    usual = labels(TextView(LINES), frame)[0].place
    assert place.height == pytest.approx(usual.height * scale, rel=0.15)
    to_left, to_right = place.left, frame[0] - place.left - place.width
    to_top, to_bottom = place.top, frame[1] - place.top - place.height
    assert (to_left < to_right) == corner.endswith("left")
    assert (to_top < to_bottom) == corner.startswith("top")
    assert min(to_left, to_right) >= 0
    assert min(to_top, to_bottom) >= 0


@pytest.mark.parametrize("frame", [(1, 1), (20, 20), (90, 60), (160, 90), (3840, 20), (20, 2160)])
def test_a_small_frame_has_what_fits_or_nothing(frame: tuple[int, int]) -> None:
    for label in labels(VIEW, frame):
        assert label.place.left >= 0
        assert label.place.top >= 0
        assert label.place.left + label.place.width <= frame[0]
        assert label.place.top + label.place.height <= frame[1]


def test_odd_texts_are_drawn() -> None:
    odd = ("\t\ttabs", "x" * 5000, "\x1b[31m \u202e reversed", "漢字 = 1 // 漢", "𝄞", '"// no comment" // one')
    letters, *_ = labels(TextView(odd, 0, ((40, "error"),), Glow((0, 99)), ((0, "1"), (77, "2"))))
    assert letters.place.width <= SIZE[0]
    assert labels(TextView()) == []
    assert labels(TextView(("",))) != []


def test_the_comment_of_a_line() -> None:
    found = {line: line[comment_start(line) :] for line in ("a = 1", "// all", 'load("a//b") // c', "a = 2 /* d */")}
    assert [*found.values()] == ["", "// all", "// c", "/* d */"]


def test_a_long_text_scrolls_to_the_last_edit_and_stays_where_it_is_seen() -> None:
    long = tuple(f"a{number} = {number}" for number in range(100))
    first = 0
    for edited, wanted in ((2, 0), (50, 40), (54, 40), (44, 40), (41, 31), (99, 80), (0, 0)):
        first = first_line(TextView(long, edited), 20, first)
        assert first == wanted
        assert first <= edited < first + 20
    # A mistake is seen before the last edit.
    assert first_line(TextView(long, 2, ((70, "error"), (90, "warning"))), 20, 0) == 60
    # A text that has become short begins at its beginning.
    assert first_line(TextView(long[:5], 4), 20, 80) == 0


def test_messages_and_text_are_beside_each_other(window: Window) -> None:
    source = Source("a.weft", "\n".join(LINES))
    problem = Diagnostic("error", "code", "something is wrong", Span(source, 70, 74), "mend it")
    window.show_text(TextView(tuple(f"line {number}" for number in range(60))))
    for overlay in (Overlay((problem,), "a note", ("60 fps",), 0, "0:03"), Overlay(note="a note"), Overlay()):
        window.annotate(overlay)
        text, *notes = window._labels(SIZE)
        for note in notes:
            apart = text.place.top >= note.place.top + note.place.height
            apart |= text.place.top + text.place.height <= note.place.top
            apart |= text.place.left + text.place.width <= note.place.left
            assert apart


def test_each_window_shows_it_or_not() -> None:
    from weft.runtime.screens.window import Windows

    commands: list[str] = []
    options = {"wall": WindowOptions(shows_text=True)}
    with Windows("weft", *SIZE, vsync=False, further=options, on_command=commands.append) as windows:
        assert not windows.wants_text
        windows.present(BACKGROUNDS["black"])
        windows.show_others({"wall": BACKGROUNDS["black"], "side": BACKGROUNDS["black"]})
        assert windows.wants_text
        windows.show_text(VIEW)
        wall, side = windows._further["wall"], windows._further["side"]

        def written() -> list[bool]:
            return [bool(each.read_back()[..., :3].any()) for each in (windows, wall, side)]

        assert written() == [False, True, False]
        # V, in a window of its own each time.
        for each in (windows, wall, side):
            each._on_command("source")
        assert commands == ["source"]
        assert written() == [False, False, True]


def test_a_film_has_the_pixels_of_a_window(window: Window) -> None:
    view = TextView(LINES, 3, ((4, "error"),), Glow((3,), time.monotonic(), 1e6), ((1, "0.3"),))
    window.show_text(view)
    window.present(BACKGROUNDS["noise"])
    picture = BACKGROUNDS["noise"].copy()
    # A window keeps its lowest lines for notes, which the text here does not reach.
    over = TextOverPictures(SIZE)
    over.show(view, TextStyle())
    over.draw(picture)
    assert np.abs(picture[..., :3].astype(int) - window.read_back()[..., :3]).max() <= 1


def test_labels_at_the_edge_of_a_picture() -> None:
    picture = np.full((4, 4, 4), 100, np.uint8)
    blend(picture, [Label(Rect(2, 2, 4, 4), np.full((2, 4, 4), 200, np.uint8))])
    assert picture[1, 1, 0] == 100
    assert picture[3, 3, 0] == min(255, 200 + round(100 * 55 / 255))


def test_a_terminal_has_its_lines() -> None:
    first, cells = text_cells(VIEW, 60, 10, 0, 2)
    words = ["".join(cell.text for cell in row).strip(" ▎") for row in cells]
    assert first == 0
    assert words == [LINES[0], LINES[1] + "  0.3", "", LINES[3], LINES[4], LINES[5].strip()]
    assert cells[4][0].text == "▎"
    assert cells[3][0].ground != cells[4][0].ground
    assert all(len(row) <= 20 for row in text_cells(VIEW, 20, 3, 0, 0)[1])
    wide, *_ = text_cells(TextView(("漢字 = 1",)), 20, 3, 0, 0)[1]
    assert [cell.text for cell in wide[:5]] == [" ", "漢", "", "字", ""]
