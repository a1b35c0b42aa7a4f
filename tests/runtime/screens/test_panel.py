"""The panel of parameters without a screen: where its controls are, and what mouse and keys change."""

from __future__ import annotations

from colorsys import hsv_to_rgb
from dataclasses import dataclass, field

import pytest
from hypothesis import given, strategies as st

from tests.support.parameters import bank_of, specs_of
from weft.runtime.hands.parameters import ParameterBank
from weft.runtime.screens.panel import (
    PAD, REST, Control, ControlPanel, KnobLearner, PanelLayout, PanelView, hit, lay_out_panel, number_text
)

TEXT = """\
#slider speed<v> = 0, 2, 0.5 "how fast"
#slider bend<v> = -20, 20, 4
#toggle on<v> = 0
#xy spot<x, y> = 0.25, 0.75 "light"
#color tint<r, g, b> = "#ff8800"
"""
ROOM = 60, 30
NONE = frozenset[str]()


class Hands:
    """A panel with a player before it, and a clock that stands still unless it is moved."""

    def __init__(
        self, text: str = TEXT, room: tuple[int, int] = ROOM, knobs: KnobLearner | None = None
    ) -> None:
        self.bank: ParameterBank = bank_of(text)
        self.seconds = 100.0
        self.room = room
        self.panel = ControlPanel(self.bank, lambda: self.seconds, knobs)
        self.panel.toggle()
        self.look()

    def look(self) -> PanelView:
        view = self.panel.view(*self.room)
        assert view is not None
        return view

    @property
    def layout(self) -> PanelLayout:
        return self.look().layout

    def place(self, name: str, x: float, y: float = 0.0, part: str = "") -> tuple[float, float]:
        """A place on the track of a control, `x` and `y` of the way along it."""
        layout = self.layout
        for control, top in zip(layout.shown, layout.tops, strict=True):
            if control.spec.name == name and control.part == (part or control.spec.kind):
                column = layout.track + 0.5 + x * (layout.track_columns - 1)
                return column, top + 0.5 + y * (control.rows - 1)
        raise AssertionError(f"{name} is not to be seen")

    def click(self, place: tuple[float, float], fine: bool = False) -> None:
        self.seconds += 1
        self.panel.press("left", *place, fine)
        self.panel.release("left")

    def drag(self, start: tuple[float, float], *to: tuple[float, float], fine: bool = False) -> None:
        self.panel.press("left", *start, fine)
        for place in to:
            self.panel.point(*place, fine)
        self.panel.release("left")

    def keys(self, *names: str, fine: bool = False, patch: frozenset[str] = NONE) -> list[bool]:
        taken = []
        for name in names:
            taken.append(self.panel.key(name, fine, patch))
            self.panel.view(*self.room)
        return taken


# --- the layout -----------------------------------------------------------------------------------------------------


@given(st.integers(0, 120), st.integers(0, 60), st.integers(0, 12))
def test_bands_lie_one_below_another_and_fit(columns: int, rows: int, first: int) -> None:
    layout = lay_out_panel(specs_of(TEXT), columns, rows, first)
    if layout is None:
        assert columns < 29 or rows < 2
        return
    assert layout.columns <= columns
    assert layout.rows <= rows
    below = 0
    for control, top in zip(layout.shown, layout.tops, strict=True):
        assert top == below
        below = top + control.rows
    assert layout.rows == below + 1
    assert PAD == layout.label < layout.label + layout.label_columns < layout.track
    assert layout.track + layout.track_columns < layout.value < layout.columns
    assert len(layout.controls) == layout.first + len(layout.tops) + layout.below


def test_all_controls_are_there_in_the_order_of_the_text_if_there_is_room() -> None:
    layout = Hands().layout
    names = [each.spec.name for each in layout.shown]
    assert list(dict.fromkeys(names)) == ["speed", "bend", "on", "spot", "tint"]
    assert [each.part for each in layout.shown[-4:]] == ["color", "hue", "saturation", "brightness"]
    assert layout.first == layout.below == 0


@given(st.floats(-2, 62), st.floats(-2, 32))
def test_what_is_hit_is_what_is_there(column: float, row: float) -> None:
    layout = lay_out_panel(specs_of(TEXT), *ROOM)
    assert layout is not None
    found = hit(layout, column, row)
    is_inside = 0 <= column < layout.columns and 0 <= row < layout.rows - 1
    assert (found is not None) == is_inside
    if found is not None:
        top = layout.tops[layout.shown.index(found.control)]
        assert top <= row < top + found.control.rows


@pytest.mark.parametrize("width", [29, 40, 60])
def test_the_middles_of_the_outer_cells_are_the_ends_of_a_range(width: int) -> None:
    hands = Hands(room=(width, 30))
    layout = hands.layout
    for column, value in ((layout.track, 0), (layout.track + layout.track_columns - 1, 2)):
        hands.click((column + 0.5, 0.5))
        assert hands.bank.value("speed@v") == value


def test_a_value_has_digits_for_a_thousandth_of_its_range() -> None:
    for low, high, value in ((0, 1, 0.1234), (-20, 20, 1.23456), (20, 20000, 440.4), (0, 0.01, 0.00123)):
        assert abs(float(number_text(value, low, high)) - value) <= (high - low) / 1000
        assert len(number_text(value, low, high)) <= 7
    assert len(number_text(-123456789.0, -1e9, 1e9)) <= 7


# --- the mouse ------------------------------------------------------------------------------------------------------


@given(st.floats(0, 1), st.floats(-0.5, 1.5))
def test_a_slider_goes_where_the_mouse_goes(start: float, end: float) -> None:
    hands = Hands()
    hands.drag(hands.place("bend", start), hands.place("bend", end))
    assert hands.bank.value("bend@v") == pytest.approx(-20 + 40 * min(max(end, 0), 1))


def test_shift_moves_a_tenth_as_far_and_jumps_nowhere() -> None:
    hands = Hands()
    hands.drag(hands.place("bend", 0.1), hands.place("bend", 0.6), fine=True)
    assert hands.bank.value("bend@v") == pytest.approx(4 + 40 * 0.5 / 10)


def test_a_drag_beyond_the_end_comes_back_from_there() -> None:
    hands = Hands()
    hands.drag(hands.place("speed", 0.5), hands.place("speed", 1.7), hands.place("speed", 1.2))
    assert hands.bank.value("speed@v") == 2
    hands.drag(hands.place("speed", 0.5), hands.place("speed", 1.7), hands.place("speed", 0.25))
    assert hands.bank.value("speed@v") == pytest.approx(0.5)


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_pad_takes_both_axes(x: float, y: float) -> None:
    hands = Hands()
    hands.drag(hands.place("spot", 0.5, 0.5), hands.place("spot", x, y))
    assert (hands.bank.value("spot@x"), hands.bank.value("spot@y")) == pytest.approx((x, y))


def test_a_toggle_changes_at_each_press() -> None:
    hands = Hands()
    for expected in (1, 0, 1):
        hands.click(hands.place("on", 0.1))
        assert hands.bank.value("on@v") == expected


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_bars_make_a_colour_and_keep_the_hue_of_a_grey(hue: float, saturation: float, brightness: float) -> None:
    hands = Hands()
    for part, at in (("brightness", 0.0), ("saturation", 0.0), ("hue", hue), ("saturation", saturation),
                     ("brightness", brightness)):  # fmt: skip
        hands.click(hands.place("tint", at, part=part))
    colour = tuple(hands.bank.value(f"tint@{channel}") for channel in "rgb")
    assert colour == pytest.approx(hsv_to_rgb(hue, saturation, brightness), abs=1e-6)


def test_a_double_click_resets() -> None:
    hands = Hands()
    place = hands.place("bend", 0.9)
    hands.click(place)
    assert "bend@v" in hands.bank.values
    hands.seconds += 1
    for _ in range(2):
        hands.panel.press("left", *place, False)
        hands.panel.release("left")
        hands.seconds += 0.1
    assert hands.bank.value("bend@v") == 4
    assert not hands.bank.values


def test_the_wheel_steps_what_is_under_the_mouse() -> None:
    hands = Hands()
    hands.panel.turn(0, 3, *hands.place("bend", 0.2), False)
    assert hands.bank.value("bend@v") == pytest.approx(4 + 40 * 3 / 50)
    hands.panel.turn(0, -1, *hands.place("bend", 0.2), True)
    assert hands.bank.value("bend@v") == pytest.approx(4 + 40 * 3 / 50 - 40 / 500)
    hands.panel.turn(0, 1, *hands.place("spot", 0.2, 0.2), False)
    assert hands.bank.value("spot@y") == pytest.approx(0.75 - 1 / 50), "a pad's y is downwards"


def test_what_it_covers_is_its_own_and_the_rest_is_not() -> None:
    hands = Hands()
    inside, outside = hands.place("speed", 0.5), (-1.0, 0.5)
    assert hands.panel.point(*inside, False)
    assert not hands.panel.point(*outside, False)
    assert hands.panel.press("left", *inside, False)
    assert hands.panel.point(*outside, False), "what it holds goes on outside"
    assert hands.panel.release("left")
    assert not hands.panel.press("left", *outside, False)
    assert not hands.panel.point(*inside, False), "what the patch holds goes on over the panel"
    assert not hands.panel.release("left")
    assert not hands.panel.turn(0, 1, *outside, False)
    hands.panel.close()
    assert not hands.panel.point(*inside, False)
    assert not hands.panel.press("left", *inside, False)


def test_it_hides_while_the_mouse_rests_and_then_covers_nothing() -> None:
    hands = Hands()
    inside = hands.place("speed", 0.5)
    hands.seconds += REST - 0.1
    assert hands.panel.view(*ROOM) is not None
    hands.seconds += 0.2
    assert hands.panel.view(*ROOM) is None
    assert not hands.panel.covers(*inside)
    hands.panel.point(-1, 0, False)
    assert hands.panel.view(*ROOM) is not None
    hands.panel.press("left", *inside, False)
    hands.seconds += 10 * REST
    assert hands.panel.view(*ROOM) is not None, "a knob is held"


def test_its_key_shows_it_when_it_is_not_to_be_seen() -> None:
    hands = Hands()
    hands.seconds += 2 * REST
    hands.panel.toggle()
    assert hands.panel.view(*ROOM) is not None
    hands.panel.toggle()
    assert hands.panel.view(*ROOM) is None
    hands.panel.point(3, 3, False)
    assert hands.panel.view(*ROOM) is None


def test_it_looks_new_only_when_something_has_changed() -> None:
    hands = Hands()
    before = hands.look()
    assert hands.look() is before
    hands.bank.set("speed@v", 1.5)
    after = hands.look()
    assert [a == b for a, b in zip(before.bands, after.bands, strict=True)] == [False] + 7 * [True]
    assert after.bands[0].values == (number_text(1.5, 0, 2),)


def test_a_knob_that_is_held_may_leave_the_program() -> None:
    hands = Hands()
    hands.panel.press("left", *hands.place("bend", 0.5), False)
    hands.bank.adopt(specs_of("#slider speed<v> = 0, 2, 0.5"))
    hands.look()
    assert hands.panel.point(5, 5, False)
    assert hands.panel.release("left")
    hands.keys("right", "delete")
    assert not set(hands.bank.values) - {"bend@v"} - {"speed@v"}


# --- the keyboard ---------------------------------------------------------------------------------------------------


def chosen(hands: Hands) -> list[str]:
    return [band.label.strip() for band in hands.look().bands if band.is_chosen]


def test_tab_goes_round_in_both_directions() -> None:
    hands = Hands()
    order = ["how fast", "bend", "on", "light", "hue", "saturation", "brightness"]
    seen = [name for _ in range(8) if hands.keys("tab") for name in chosen(hands)]
    assert seen == [*order, order[0]]
    hands.keys("tab", fine=True)
    assert chosen(hands) == [order[-1]]


def test_arrows_change_what_is_chosen() -> None:
    hands = Hands()
    assert hands.keys("right", "space", "5") == [False, False, False], "nothing is chosen yet"
    hands.keys("tab", "right", "right", "left")
    assert hands.bank.value("speed@v") == pytest.approx(0.5 + 2 / 50)
    hands.keys("right", fine=True)
    assert hands.bank.value("speed@v") == pytest.approx(0.5 + 2 / 50 + 2 / 500)
    hands.keys("tab", "tab", "space")
    assert hands.bank.value("on@v") == 1
    hands.keys("tab", "up", "right")
    assert hands.bank.value("spot@y") == pytest.approx(0.75 - 1 / 50)
    assert hands.bank.value("spot@x") == pytest.approx(0.25 + 1 / 50)
    hands.keys("delete")
    assert (hands.bank.value("spot@x"), hands.bank.value("spot@y")) == (0.25, 0.75)


def test_digits_type_a_value() -> None:
    hands = Hands()
    hands.keys("tab", "tab", "minus", "1", "2", "period", "5")
    assert any("-12.5" in value for value in hands.look().bands[1].values)
    assert hands.bank.value("bend@v") == 4, "not yet"
    hands.keys("enter")
    assert hands.bank.value("bend@v") == -12.5
    hands.keys("9", "9", "backspace", "escape")
    assert hands.bank.value("bend@v") == -12.5
    assert hands.panel.is_open
    hands.keys("9", "9", "enter")
    assert hands.bank.value("bend@v") == 20
    assert "-20 to 20" in hands.look().footer
    hands.keys("1", "minus", "2", "enter")
    assert hands.bank.value("bend@v") == 20
    assert "not a number" in hands.look().footer
    hands.keys("7", "tab")
    assert hands.bank.value("bend@v") == 7
    assert chosen(hands) == ["on"]
    hands.keys("tab", "period", "3", "comma", "period", "6", "enter")
    assert (hands.bank.value("spot@x"), hands.bank.value("spot@y")) == (0.3, 0.6)
    hands.keys("tab", "1", "2", "0", "enter")
    colour = [hands.bank.value(f"tint@{channel}") for channel in "rgb"]
    assert colour == pytest.approx(hsv_to_rgb(120 / 360, 1, 1))


def test_keys_that_it_does_not_need_are_not_taken() -> None:
    hands = Hands()
    hands.keys("tab")
    assert hands.keys("a", "space", "f1", "enter") == [False] * 4
    assert hands.keys("escape") == [True]
    assert hands.keys("tab", "right", "1") == [False] * 3


def test_while_it_rests_it_takes_no_key_of_the_patch() -> None:
    hands = Hands()
    hands.keys("tab")
    hands.seconds += 2 * REST
    assert not hands.panel.key("right", False, frozenset({"right"}))
    assert not hands.panel.key("5", False, NONE)
    assert not hands.panel.key("escape", False, NONE)
    assert hands.panel.key("right", False, NONE)
    assert hands.bank.value("speed@v") == pytest.approx(0.54)
    assert hands.panel.view(*ROOM) is not None


def test_many_controls_scroll_by_wheel_and_by_tab() -> None:
    hands = Hands("\n".join(f"#slider s{n}<v> = 0, 1, 0.5" for n in range(20)), (60, 9))
    assert (hands.layout.first, hands.layout.below) == (0, 12)
    assert "12 below" in hands.look().footer
    hands.panel.turn(0, -1, 2, 2, False)
    hands.panel.turn(0, -1, 2, 2, False)
    assert hands.layout.first == 2
    assert not hands.bank.values
    hands.panel.turn(0, 1, 2, 2, False)
    assert hands.layout.first == 1
    for _ in range(15):
        hands.keys("tab")
    assert chosen(hands) == ["s14"]
    for _ in range(50):
        hands.panel.turn(0, -1, 2, 2, False)
        hands.look()
    assert hands.layout.first == 12


def test_without_parameters_it_says_so() -> None:
    hands = Hands("")
    assert hands.look().footer == "this patch has no parameters"
    assert hands.keys("tab", "right") == [True, False]


@dataclass
class Learner:
    """Takes note of what is to be learned."""

    learning: str | None = None
    forgotten: list[str] = field(default_factory=list)

    def learn(self, name: str | None) -> None:
        self.learning = name

    def forget(self, name: str) -> None:
        self.forgotten.append(name)


def test_right_clicks_ask_for_a_knob_for_one_input_after_another() -> None:
    learner = Learner()
    hands = Hands(knobs=learner)
    seen = []
    for _ in range(4):
        hands.panel.press("right", *hands.place("spot", 0.5, 0.5), False)
        hands.panel.release("right")
        seen.append((learner.learning, "knob …" in hands.look().bands[3].values))
    assert seen == [("spot@x", True), ("spot@y", True), (None, False), ("spot@x", True)]
    assert "light, x" in hands.look().footer
    hands.panel.press("right", *hands.place("bend", 0.5), False)
    assert learner.learning == "bend@v"
    assert not hands.bank.values
    hands.panel.press("right", *hands.place("tint", 0.5), True)
    assert learner.forgotten == ["tint@r", "tint@g", "tint@b"]


def test_without_knobs_a_right_click_says_so() -> None:
    hands = Hands()
    hands.panel.press("right", *hands.place("bend", 0.5), False)
    assert "no knobs" in hands.look().footer


def test_controls_are_known_by_name_and_part() -> None:
    before, after = specs_of(TEXT)[0], specs_of(TEXT.replace("0, 2", "0, 9"))[0]
    assert Control(before, "slider").key == Control(after, "slider").key


MORE = '#menu wave<v> = 0, "sine", "saw", "a long name of a square" "wave"\n#button hit<v> "strike"\n'


def test_a_menu_shows_its_texts_and_goes_from_one_to_the_next() -> None:
    hands = Hands(MORE)

    def shown() -> str:
        return hands.look().bands[0].values[0]

    assert shown() == "sine"
    hands.click(hands.place("wave", 0.55))
    assert (hands.bank.value("wave@v"), shown()) == (1, "saw")
    hands.keys("right")
    assert (hands.bank.value("wave@v"), shown()) == (2, "a long name of a square"[: len(shown())])
    hands.keys("right")
    assert hands.bank.value("wave@v") == 2
    hands.keys("space", "left")
    assert hands.bank.value("wave@v") == 0, "Space goes around, and the arrows stop at the ends"
    hands.panel.turn(0, 1, *hands.place("wave", 0.5), False)
    assert hands.bank.value("wave@v") == 1
    hands.keys("2", "enter")
    assert hands.bank.value("wave@v") == 2


def test_a_button_is_pressed_as_long_as_the_mouse_holds_it() -> None:
    hands = Hands(MORE)
    place = hands.place("hit", 0.0)
    hands.panel.press("left", *place, False)
    assert hands.bank.value("hit@v") == 1
    hands.panel.release("left")
    assert hands.bank.frame() == {"hit@v": 1, "hit@v@count": 1}
    hands.panel.press("left", *place, False)
    hands.panel.release("left")
    assert hands.bank.value("hit@v") == 0, "twice in a moment are two presses"
    hands.keys("space", "up")
    assert hands.bank.frame() == {"hit@v": 1, "hit@v@count": 3}
    hands.panel.press("left", *place, False)
    hands.panel.close()
    assert hands.bank.frame() == {"hit@v": 1, "hit@v@count": 4}
    assert hands.bank.frame() == {"hit@v": 0, "hit@v@count": 4}
