"""The strips of lamps in the panel: what they show, where, and in both kinds of screens."""

from __future__ import annotations

import pytest

from tests.support.parameters import bank_of
from weft.runtime.hands.lamp_strips import LampStrip, strip_of
from weft.runtime.hands.light_sender import LightSender
from weft.runtime.screens.panel import ControlPanel, PanelView
from weft.runtime.screens.panel_painter import PanelPainter
from weft.runtime.screens.panel_text import panel_rows

ROOM = 60, 20
RED, WHITE, BLACK = (1.0, 0.0, 0.0), (1.0, 1.0, 1.0), (0.0, 0.0, 0.0)
STRIPS = tuple(LampStrip(f"lights {number}/1", (RED, BLACK, WHITE)) for number in range(1, 7))


def shown(strips: tuple[LampStrip, ...], rows: int = ROOM[1], text: str = "#slider a<v> = 0, 1, 0.5") -> PanelView:
    panel = ControlPanel(bank_of(text), lamps=lambda: strips)
    panel.toggle()
    view = panel.view(ROOM[0], rows)
    assert view is not None
    return view


@pytest.mark.parametrize(
    ("values", "strip"),
    [
        ({"0": 1.0, "1": 0.0}, ("lights 1/1", (WHITE, BLACK))),
        ({"universe": 2.0, "at": 16.7, "lamp@r": 1.0, "lamp@g": 0.0, "lamp@b": 0.0}, ("lights 2/17", (RED,))),
        ({"a@d": 0.5, "a@r": 1.0, "a@g": 1.0, "a@b": 0.0, "b@w": 1.0}, ("lights 1/1", ((0.5, 0.5, 0.0), WHITE))),
        ({"aim@pan": 1.0, "aim@tilt": 0.0}, ("lights 1/1", (WHITE, BLACK))),
        ({"r": 1.0, "at": float("nan"), "0": float("nan"), "1": 7.0}, ("lights 1/?", (WHITE, BLACK, WHITE))),
    ],
)
def test_a_strip_has_a_colour_for_each_lamp(values: dict[str, float], strip: tuple[str, object]) -> None:
    assert strip_of(values) == strip


def test_strips_are_below_the_parameters_and_leave_them_room() -> None:
    view = shown(STRIPS[:2])
    assert [band.label for band in view.strips] == ["lights 1/1", "lights 2/1"]
    assert [top for _, top in view.rows] == [0, 1, 2]
    assert view.layout.rows == 4
    assert len(shown(STRIPS).strips) == 4
    assert len(shown(STRIPS, rows=5).strips) == 1
    assert shown(STRIPS, rows=3).strips == ()
    assert len(shown(STRIPS[:2], text="").strips) == 2


def test_both_kinds_of_screens_show_their_colours() -> None:
    view = shown(STRIPS[:1])
    row = panel_rows(view)[1]
    assert [cell.ink for cell in row if cell.text == "▇"] == [(255, 0, 0)] * 2 + [(0, 0, 0)] * 2 + [(255, 255, 255)] * 2
    painter = PanelPainter()
    painter.room((800, 600), 1, 0)
    _, _, strip, *_ = painter.labels(view, painter.place(view.layout, (800, 600), 0))
    middle = strip.pixels[strip.pixels.shape[0] // 2]
    assert (middle == (255, 0, 0, 255)).all(-1).sum() >= 4
    assert (middle == (255, 255, 255, 255)).all(-1).sum() >= 4


def test_lamps_are_shown_without_a_place_where_they_go_and_leave_with_their_statement() -> None:
    sender = LightSender(())
    sender.send({"lights.0": 1.0, "lights.2.at": 5.0, "lights.2.0": 0.0}, 0.0)
    sender.values(())
    assert sender.strips() == (LampStrip("lights 1/1", (WHITE,)), LampStrip("lights 1/5", (BLACK,)))
    sender.send({"lights.0": 1.0}, 0.0)
    sender.values(())
    assert sender.strips() == (LampStrip("lights 1/1", (WHITE,)),)


def test_the_same_lamps_are_the_same_view() -> None:
    strips, seconds = STRIPS[:1], 100.0
    panel = ControlPanel(bank_of("#slider a<v> = 0, 1, 0.5"), lambda: seconds, lamps=lambda: strips)
    panel.toggle()
    before = panel.view(*ROOM)
    seconds += 1
    assert panel.view(*ROOM) is before
    strips = STRIPS[1:2]
    assert panel.view(*ROOM) is before  # they are not looked at so soon
    seconds += 1
    view = panel.view(*ROOM)
    assert view is not None
    assert view.strips[0].label == "lights 2/1"
