"""The panel of parameters on real screens: in a window with a real mouse, and in a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.parameters import bank_of
from tests.support.performance import PATIENCE, Performance
from tests.support.pseudo_terminal import Player, noise
from tests.support.windows import on_x11, private_display, screen, xdotool
from weft.keys import CONTROL_KEYS, TOOL_KEYS
from weft.runtime.screens.overlay import GROUND
from weft.runtime.screens.panel import ControlPanel, PanelView, number_text
from weft.runtime.screens.panel_painter import PanelPainter, PanelPlace
from weft.runtime.screens.panel_text import panel_rows
from weft.runtime.screens.screen import Label

PARAMETERS = """\
#slider speed<v> = 0, 2, 0.5 "how fast"
#toggle on<v> = 0
#xy spot<x, y> = 0.25, 0.75
#color tint<r, g, b> = "#ff8800"
"""
FRAME = 640, 360


def panel_of(text: str = PARAMETERS) -> ControlPanel:
    panel = ControlPanel(bank_of(text), lambda: 0.0)
    panel.toggle()
    return panel


def looked(panel: ControlPanel, room: tuple[int, int]) -> PanelView:
    view = panel.view(*room)
    assert view is not None
    return view


# --- pixels ---------------------------------------------------------------------------------------------------------


def drawn(painter: PanelPainter, panel: ControlPanel) -> tuple[PanelView, PanelPlace, tuple[Label, ...]]:
    view = looked(panel, painter.room(FRAME, 1.0, 0))
    place = painter.place(view.layout, FRAME, 0)
    return view, place, painter.labels(view, place)


@pytest.mark.parametrize("frame", [(640, 360), (1920, 1080), (320, 200), (90, 700)])
def test_the_labels_lie_one_below_another_within_the_frame(frame: tuple[int, int]) -> None:
    painter, panel = PanelPainter(), panel_of()
    room = painter.room(frame, 1.0, 30)
    view = panel.view(*room)
    if view is None:
        assert room[0] < 29
        return
    labels = painter.labels(view, painter.place(view.layout, frame, 30))
    bottom = labels[0].place.top
    assert bottom >= 30
    for label in labels:
        assert (label.place.top, label.place.left, label.place.width) == (
            bottom, labels[0].place.left, labels[0].place.width
        )  # fmt: skip
        assert label.pixels.shape == (label.place.height, label.place.width, 4)
        bottom += label.place.height
    assert bottom <= frame[1]
    assert labels[0].place.left + labels[0].place.width <= frame[0]


def test_a_change_draws_its_band_and_no_other() -> None:
    painter, panel = PanelPainter(), panel_of()
    _, _, before = drawn(painter, panel)
    assert drawn(painter, panel)[2] is before
    panel._bank.set("speed@v", 1.5)
    _, _, after = drawn(painter, panel)
    assert [a is b for a, b in zip(before, after, strict=True)] == [n != 1 for n in range(len(before))]


@pytest.mark.parametrize("value", [0.0, 0.7, 2.0])
def test_a_sliders_knob_is_where_a_press_would_put_it(value: float) -> None:
    painter, panel = PanelPainter(), panel_of()
    panel._bank.set("speed@v", value)
    view, place, labels = drawn(painter, panel)
    pixels = labels[1].pixels.astype(int)
    row = pixels[place.row // 2]
    track = slice(view.layout.track * place.column, (view.layout.value - 1) * place.column)
    bright = np.flatnonzero(row[track, :3].min(axis=1) > 225) + track.start
    panel.press("left", (bright.mean() + 0.5) / place.column, 0.5, False)
    assert panel._bank.value("speed@v") == pytest.approx(value, abs=2 * 2 / view.layout.track_columns / place.column)


def test_the_swatch_has_the_colour() -> None:
    painter, panel = PanelPainter(), panel_of()
    view, place, labels = drawn(painter, panel)
    at = next(n for n, band in enumerate(view.bands) if band.part == "color")
    x = (view.layout.track + view.layout.track_columns // 2) * place.column
    assert labels[1 + at].pixels[place.row // 2, x].tolist() == [0xFF, 0x88, 0, 255]
    corner = [round(channel * GROUND[3] / 255) for channel in GROUND[:3]]
    assert labels[1 + at].pixels[1, 1].tolist() == [*corner, GROUND[3]]


# --- text -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [29, 45, 80])
def test_rows_of_text_are_as_wide_as_the_panel(width: int) -> None:
    text = PARAMETERS + '#slider wide<v> = 0, 1, 0 "\u4e16\u754c\u4e16\u754c\u4e16\u754c\u4e16\u754c\u4e16\u754c"\n'
    view = looked(panel_of(text), (width, 30))
    rows = panel_rows(view)
    assert len(rows) == view.layout.rows
    assert {len(row) for row in rows} == {view.layout.columns}
    words = ["".join(cell.text for cell in row) for row in rows]
    assert "how fast" in words[0]
    assert number_text(0.5, 0, 2) in words[0]


def test_a_knob_of_text_is_where_a_press_would_put_it() -> None:
    for value in (0.0, 0.5, 1.25, 2.0):
        panel = panel_of()
        panel._bank.set("speed@v", value)
        view = looked(panel, (60, 30))
        column = next(at for at, cell in enumerate(panel_rows(view)[0]) if cell.text == "●")
        panel.press("left", column + 0.5, 0.5, False)
        assert panel._bank.value("speed@v") == pytest.approx(value, abs=1 / (view.layout.track_columns - 1))


# --- a window -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def window_display() -> Iterator[None]:
    with private_display():
        yield


def values_of(performance: Performance) -> dict[str, float]:
    """What parameters were reported to be set to."""
    found: dict[str, float] = {}
    for event in performance.events:
        if event["event"] == "parameters":
            found |= event["values"]
    return found


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@on_x11
@pytest.mark.usefixtures("window_display")
def test_a_mouse_drags_a_slider_in_a_window_and_its_value_goes_into_the_text(tmp_path: Path) -> None:
    patch = tmp_path / "patch.weft"
    head = f"// hands\r\nme<width> = {FRAME[0]}\r\nme<height> = {FRAME[1]}\r\n"
    rest = "display(tint * on, spot@x, mouse@x)\r\ncompute(mouse@x, mouse@y, mouse@down, speed, key@a@count)\r\n"
    rest = rest.replace("tint * on, spot@x, mouse@x", "tint@r * on, spot@x, mouse@x")
    data = (head + PARAMETERS + rest).encode()
    patch.write_bytes(data)
    painter, panel = PanelPainter(), panel_of()
    view, place, _ = drawn(painter, panel)
    track = view.layout.track + 0.5

    def spot(share: float) -> tuple[int, int]:
        column = track + share * (view.layout.track_columns - 1)
        return round(place.left + column * place.column), place.top + place.row // 2

    with Performance(patch, "--no-audio") as performance:
        performance.wait_for("started")
        until(lambda: screen(tmp_path)[: FRAME[1], : FRAME[0]].max() > 0)
        xdotool("mousemove", 64, 90)
        until(lambda: abs(screen(tmp_path)[200, 320, 2] - 255 * 64 / FRAME[0]) < 1)
        without = screen(tmp_path)
        xdotool("key", "p")
        until(lambda: (screen(tmp_path) != without)[:, place.left :].mean() > 0.05)
        start, end = spot(0.25), spot(0.8)
        xdotool("mousemove", *start, "mousedown", 1, "mousemove", *spot(0.5), "mousemove", *end, "mouseup", 1)
        wanted = 2 * ((end[0] - place.left) / place.column - track) / (view.layout.track_columns - 1)
        until(lambda: values_of(performance).get("speed@v") == pytest.approx(wanted))
        xdotool("key", "Tab", "space")
        until(lambda: values_of(performance).get("on@v") == 1)
        xdotool("key", "a", "a", "a")
        x, y, down, speed, _ = performance.wait_for("compute", when=lambda event: event["values"][4] == 3)["values"]
        assert (x, y, down) == (64 / FRAME[0], 90 / FRAME[1], 0), "the mouse on the panel is not the patch's"
        assert speed == pytest.approx(wanted)
        xdotool("key", "ctrl+Return")
        written = performance.wait_for("written")
        assert abs(written["values"]["speed@v"] - wanted) <= 2 / 1000
        text = patch.read_bytes()
        number = f"{written['values']['speed@v']:g}"
        assert text == data.replace(b"2, 0.5", b"2, " + number.encode()).replace(b"on<v> = 0", b"on<v> = 1")
        xdotool("key", "Escape", "Escape")
        assert performance.ended() == 0
        assert not {"saved", "swap", "error"} & {event["event"] for event in performance.events}


# --- a terminal -----------------------------------------------------------------------------------------------------


def mouse(kind: str, column: int, row: int) -> bytes:
    """The report of a terminal about its mouse, in cells from 0."""
    code = {"press": "0", "release": "0", "drag": "32", "move": "35", "up": "64"}[kind]
    return f"\x1b[<{code};{column + 1};{row + 1}{'m' if kind == 'release' else 'M'}".encode()


def knob(player: Player) -> int:
    return player.lines()[0].index("●")


def test_a_terminal_shows_the_panel_over_the_picture_and_gives_it_the_mouse(start: Callable[..., Player]) -> None:
    player = start(60, 21)
    player.do(
        "from tests.support.parameters import specs_of\n"
        "inputs.parameters.adopt(specs_of(text)); picture = shown; screen.present(picture)",
        text=PARAMETERS, shown=noise(60, 40),
    )  # fmt: skip
    before = player.lines()
    player.type(b"p")
    player.until(lambda: player.state["commands"] == ["panel"])
    player.do("screen.panel.toggle(); screen.present(picture)")
    assert "how fast" in player.lines()[0]
    assert "0.500" in player.lines()[0]
    left = 60 - looked(panel_of(), (60, 20)).layout.columns
    assert player.lines()[0][:left] == before[0][:left] == "▀" * left
    view = looked(panel_of(), (60, 20)).layout
    last = left + view.track + view.track_columns - 1
    player.type(mouse("move", 3, 9))
    player.until(lambda: player.state["x"] == 3.5 / 60)
    middle = left + view.track + 5
    player.type(mouse("move", middle, 0) + mouse("press", middle, 0))
    player.type(mouse("drag", last, 0) + mouse("release", last, 0))
    player.until(lambda: "2.000" in player.lines()[0])
    assert knob(player) == last
    assert (player.state["x"], player.state["buttons"]) == (3.5 / 60, [])
    player.type(b"\x1b[D")
    player.until(lambda: number_text(2 - 2 / 50, 0, 2) in player.lines()[0])
    player.type(b"1.2")
    player.until(lambda: "1.2▏" in player.lines()[0])
    player.type(b"\r")
    player.until(lambda: "1.200" in player.lines()[0])
    assert player.state["keys"] == []
    player.type(b"\n")
    player.until(lambda: player.state["commands"] == ["panel", "write"])
    player.type(b"\x1b")
    player.until(lambda: player.lines()[0] == "▀" * 60)
    player.do("screen.present(picture)")
    assert np.array_equal(player.half_blocks(20), noise(60, 40)[..., :3])
    assert player.state["commands"] == ["panel", "write"]


def test_keys_of_the_tool_have_one_meaning() -> None:
    assert not set(CONTROL_KEYS) & set(TOOL_KEYS)
