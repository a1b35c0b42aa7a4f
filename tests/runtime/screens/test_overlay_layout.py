"""What is written over the picture and where, for frames of every size and texts of every kind."""

from __future__ import annotations

import re
from itertools import combinations

import pytest
from hypothesis import example, given, strategies as st

from weft.errors import Diagnostic, Source, Span, cut_out
from weft.media.lettering import Face
from weft.runtime.screens.overlay import Grid, Panel, TextLine, face_size, grid_of, lay_out
from weft.runtime.screens.screen import Overlay, Rect, shared

GRID = grid_of(Face(15))
HD = (1280, 720)
SOURCE = Source("patches/rings.weft", "me<width> = 1280\n\tglow<r> = blur(ring@v, radius: 3)\ndisplay(glow@r, 0, 0\n")


def text_of(line: TextLine) -> str:
    return "".join(run.text for run in line.runs)


def said(panel: Panel) -> str:
    return "\n".join(map(text_of, panel.lines))


def span_of(text: str, source: Source = SOURCE) -> Span:
    start = source.text.index(text)
    return Span(source, start, start + len(text))


def problem(number: int, message: str = "nothing has this name", hint: str | None = "ask") -> Diagnostic:
    return Diagnostic("error", f"code-{number}", f"{message} {number}", span_of("ring@v"), hint)


def inside(rect: Rect, frame: tuple[int, int]) -> bool:
    return (
        rect.left >= 0 and rect.top >= 0 and rect.left + rect.width <= frame[0] and rect.top + rect.height <= frame[1]
    )


@st.composite
def diagnostics(draw: st.DrawFn) -> Diagnostic:
    text = draw(st.text(max_size=300))
    start = draw(st.integers(0, len(text)))
    span = Span(Source(draw(st.text(max_size=90)), text), start, draw(st.integers(start, len(text))))
    return Diagnostic(
        draw(st.sampled_from(["error", "warning"])),
        "code",
        draw(st.text(max_size=300)),
        draw(st.sampled_from([span, None])),
        draw(st.none() | st.text(max_size=200)),
        draw(st.sampled_from([(), ((span, "it was here before"),)])),
    )


overlays = st.builds(
    Overlay,
    st.lists(diagnostics(), max_size=5).map(tuple),
    st.text(max_size=120),
    st.lists(st.text(max_size=120), max_size=6).map(tuple),
    st.just(0),
    st.text(max_size=40),
)
sizes = st.tuples(st.integers(1, 2000), st.integers(1, 1300))


@pytest.mark.long
@given(overlays, sizes, st.sampled_from([GRID, grid_of(Face(9)), Grid(30, 60)]))
@example(Overlay(tuple(problem(n) for n in range(9)), "swapped", ("60 fps", "p95 17 ms")), (320, 180), GRID)
def test_panels_stay_in_the_frame_and_apart_whatever_is_said(
    overlay: Overlay, frame: tuple[int, int], grid: Grid
) -> None:
    panels = lay_out(overlay, frame, grid)
    assert all(inside(panel.place, frame) for panel in panels)
    assert not any(shared(a.place, b.place) for a, b in combinations(panels, 2))
    for panel in panels:
        room = (panel.place.width - 2 * grid.pad_x) // grid.column
        assert all(line.columns <= room for line in panel.lines)
        assert grid.tops(panel.lines)[-1] + grid.pad_y <= panel.place.height
        for line in panel.lines:
            if line.mark:
                assert line.mark.start >= 0
                assert line.mark.length >= 1
                assert line.mark.start + line.mark.length <= line.columns


def test_an_error_tells_what_is_wrong_where_the_line_and_the_hint() -> None:
    (panel,) = lay_out(Overlay((problem(1),)), HD, GRID)
    assert said(panel).splitlines() == [
        "error nothing has this name 1 patches/rings.weft:2:17",
        "2 │     glow<r> = blur(ring@v, radius: 3)",
        "  hint: ask",
    ]
    (marked,) = [line for line in panel.lines if line.mark]
    assert marked.mark
    assert text_of(marked)[marked.mark.start :][: marked.mark.length] == "ring@v"
    assert {line.edge for line in panel.lines} == {"error"}


def test_an_empty_place_at_the_end_of_a_line_is_marked_behind_it() -> None:
    end = SOURCE.text.rindex("\n")
    missing = Diagnostic("error", "syntax", 'a ")" is missing', Span(SOURCE, end, end))
    (panel,) = lay_out(Overlay((missing,)), HD, GRID)
    (marked,) = [line for line in panel.lines if line.mark]
    assert marked.mark
    assert text_of(marked)[: marked.mark.start].endswith("display(glow@r, 0, 0")
    assert marked.mark.length == 1


def test_related_places_are_told() -> None:
    first = Diagnostic(
        "error", "twice", "glow is bound twice", span_of("glow@r"), None, ((span_of("glow<r>"), "first"),)
    )
    (panel,) = lay_out(Overlay((first,)), HD, GRID)
    assert "  first patches/rings.weft:2:2" in said(panel).splitlines()


@pytest.mark.parametrize("frame", [(320, 180), (640, 360), HD, (1080, 1920), (300, 2000), (4000, 200)])
@pytest.mark.parametrize("number", [1, 2, 5, 40])
def test_what_has_no_room_is_counted(frame: tuple[int, int], number: int) -> None:
    overlay = Overlay(tuple(problem(n) for n in range(number)), "swapped in 21 ms", ("60 fps", "p95 16.9 ms"))
    panels = lay_out(overlay, frame, grid_of(Face(face_size(frame, 1.0))))
    text = "\n".join(map(said, panels))
    shown = len(re.findall(r"^error nothing", text, re.MULTILINE))
    more = re.search(r"and (\d+) more", text)
    assert shown >= 1
    assert shown + (int(more[1]) if more else 0) == number


@pytest.mark.parametrize("frame", [(320, 180), HD])
def test_what_was_left_out_before_is_counted_too(frame: tuple[int, int]) -> None:
    overlay = Overlay(tuple(problem(n) for n in range(3)), left_out=1950)
    text = "\n".join(map(said, lay_out(overlay, frame, grid_of(Face(face_size(frame, 1.0))))))
    shown = len(re.findall(r"^error nothing", text, re.MULTILINE))
    assert f"and {3 - shown + 1950} more" in text


def test_figures_and_note_make_room_for_the_first_error() -> None:
    overlay = Overlay((problem(1),), "swapped in 21 ms", tuple(f"figure {n}" for n in range(30)))
    panels = lay_out(overlay, HD, GRID)
    assert [said(panel).split()[0] for panel in panels] == ["swapped", "error"]
    (only,) = lay_out(overlay, (1280, 90), GRID)
    assert said(only).startswith("error nothing has this name 1")


def test_a_long_message_goes_on_in_further_lines_and_loses_nothing() -> None:
    words = " ".join(f"word{n}" for n in range(45)) + " /" + "x" * 230
    (panel,) = lay_out(Overlay((Diagnostic("warning", "code", words),)), (640, 720), GRID)
    assert "".join(said(panel).split()) == "warning" + "".join(words.split())


def test_a_recording_has_a_red_dot_in_a_corner_of_its_own() -> None:
    overlay = Overlay((problem(1),), "swapped in 21 ms", ("60 fps",), recording="1:02")
    (recording,) = [panel for panel in lay_out(overlay, HD, GRID) if said(panel) == "● 1:02"]
    assert (recording.place.left, recording.place.top) == (GRID.margin, GRID.margin)
    assert recording.lines[0].runs[0].ink == "error"


def test_empty_lines_are_not_shown() -> None:
    assert lay_out(Overlay(), HD, GRID) == ()
    assert lay_out(Overlay((), "", ("", "")), HD, GRID) == ()


@given(st.text("abcdefghij", max_size=200), st.data())
def test_the_place_stays_in_sight_when_a_long_line_is_cut(text: str, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(text)))
    last = data.draw(st.integers(first, len(text)))
    columns = data.draw(st.integers(3, 120))
    row, start, length = cut_out(text, first, max(1, last - first), columns)
    shown = "".join(row)
    assert len(shown) <= columns
    assert 1 <= length <= max(1, last - first)
    assert shown[start : start + length].strip() == text[first : max(last, first + 1)][:length]
    if last - first <= columns - 2:
        assert length == max(1, last - first)
    assert shown.replace("…", "").strip() in text


@given(sizes, st.sampled_from([1.0, 1.5, 2.0, 3.0]))
def test_letters_can_be_read_and_a_few_lines_fit(frame: tuple[int, int], scale: float) -> None:
    size = face_size(frame, scale)
    assert size >= 9
    if frame[0] >= 320 and frame[1] >= 180:
        grid = grid_of(Face(size))
        assert frame[0] // grid.column >= 36
        assert frame[1] // grid.row >= 9


def test_letters_grow_with_the_frame_and_with_the_monitors_scale() -> None:
    assert face_size((3840, 2160), 1.0) > face_size((1920, 1080), 1.0) > face_size(HD, 1.0)
    assert face_size(HD, 2.0) > face_size(HD, 1.0)
