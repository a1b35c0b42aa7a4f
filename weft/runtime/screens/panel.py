"""The panel over the picture, with a control for each parameter of the patch: the places of its parts, how they look,
and what mouse and keys change. Nothing is drawn here.

All lengths are cells of a monospaced face, as in a terminal, so that windows and terminals draw one layout. Positions
may have fractions. The panel is a column of bands: a slider, a toggle or a pad takes one, a colour takes four.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from colorsys import hsv_to_rgb, rgb_to_hsv
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

from weft.errors import visible
from weft.runtime.hands.lamp_strips import LampStrip
from weft.runtime.hands.parameters import ParameterBank, ParameterSpec

Part: TypeAlias = Literal[
    "slider", "toggle", "menu", "button", "xy", "color", "hue", "saturation", "brightness", "lamps"
]  # fmt: skip
"""The kind of a band. A band "color" shows a colour; the three bars below it change it. A band "lamps" shows what is
sent to lamps, a colour for each of them."""

Colour: TypeAlias = tuple[float, float, float]
"""Red, green and blue, 0…1."""

_BARS: Final[tuple[Part, ...]] = ("hue", "saturation", "brightness")

# --- the layout ---------------------------------------------------------------------------------------------------

PAD: Final = 1
"""Empty columns at the left and right edge of the panel."""

_LABEL = range(8, 17)
_TRACK = range(8, 25)
_VALUE = 7
_PAD_ROWS = range(3, 8)
_SCROLLED_PAD = 5
_FEWEST_ROWS = 2
# The most strips of lamps, and the rows that are left to parameters.
_MOST_STRIPS, _FOR_PARAMETERS = 4, 4
# The pointer may miss a track by this many columns.
_NEAR = 1.0


@dataclass(frozen=True, slots=True)
class Control:
    """A band of the panel: a parameter, or a bar of a colour. It is `rows` tall."""

    spec: ParameterSpec
    part: Part
    rows: int = 1

    @property
    def key(self) -> tuple[str, Part]:
        """What identifies a control from save to save."""
        return self.spec.name, self.part


@dataclass(frozen=True, slots=True)
class PanelLayout:
    """The places of the controls. From the left: labels, tracks and values, the columns from `label`, `track` and
    `value` on. Below the bands are strips of lamps, a row each, and one row of text."""

    columns: int
    rows: int
    label: int
    track: int
    value: int
    controls: tuple[Control, ...]
    """All of them."""
    first: int
    """The first control that is visible."""
    tops: tuple[int, ...]
    """The upper edges of the controls that are visible, in rows."""
    strips: int = 0
    """The number of strips."""

    @property
    def label_columns(self) -> int:
        return self.track - self.label - _gap(self.columns)

    @property
    def track_columns(self) -> int:
        return self.value - self.track - _gap(self.columns)

    @property
    def strip_tops(self) -> range:
        """The upper edges of the strips, in rows."""
        return range(self.rows - 1 - self.strips, self.rows - 1)

    @property
    def shown(self) -> tuple[Control, ...]:
        """The controls that are visible."""
        return self.controls[self.first : self.first + len(self.tops)]

    @property
    def below(self) -> int:
        """The number of controls that are hidden below."""
        return len(self.controls) - self.first - len(self.tops)

    def covers(self, column: float, row: float) -> bool:
        """Whether a place is on the panel."""
        return 0 <= column < self.columns and 0 <= row < self.rows


def _bar_label(bar: Part) -> str:
    return f"  {bar}"


def _gap(columns: int) -> int:
    """Empty columns between labels, tracks and values."""
    return 2 if columns >= 40 else 1


def controls_of(specs: Sequence[ParameterSpec], pad_rows: int) -> tuple[Control, ...]:
    """The bands for these parameters, in their order."""
    found: list[Control] = []
    for spec in specs:
        found.append(Control(spec, spec.kind, pad_rows if spec.kind == "xy" else 1))
        found += [Control(spec, bar) for bar in _BARS if spec.kind == "color"]
    return tuple(found)


def lay_out_panel(
    specs: Sequence[ParameterSpec], columns: int, rows: int, first: int = 0, lamps: Sequence[LampStrip] = ()
) -> PanelLayout | None:  # fmt: skip
    """The layout in at most this many columns and rows, with the controls from `first` on, or from an earlier one if
    there would be room left. None if there is too little room for any."""
    gap = _gap(columns)
    labels = [spec.label for spec in specs] + [_bar_label(bar) for s in specs if s.kind == "color" for bar in _BARS]
    longest = max(map(len, [*labels, *(strip.label for strip in lamps)]), default=0)
    strips = min(len(lamps), _MOST_STRIPS, max(0, rows - _FOR_PARAMETERS))
    rest = columns - 2 * PAD - 2 * gap - _VALUE
    label = min(max(longest, _LABEL.start), _LABEL[-1], rest - _TRACK.start)
    track = min(rest - label, _TRACK[-1])
    room = rows - 1 - strips
    if label < _LABEL.start or rows < _FEWEST_ROWS:
        return None
    controls = controls_of(specs, _pad_rows(specs, room))
    first = max(0, min(first, len(controls) - 1))
    while first > 0 and sum(each.rows for each in controls[first - 1 :]) <= room:
        first -= 1
    tops, used = list[int](), 0
    for control in controls[first:]:
        if used + control.rows > room:
            break
        tops.append(used)
        used += control.rows
    at = PAD + label + gap
    return PanelLayout(
        2 * PAD + label + track + 2 * gap + _VALUE, used + strips + 1, PAD, at, at + track + gap, controls, first,
        tuple(tops), strips,
    )  # fmt: skip


def _pad_rows(specs: Sequence[ParameterSpec], room: int) -> int:
    """The height of a pad: small enough that all controls fit into the room, if that can be done."""
    pads = sum(spec.kind == "xy" for spec in specs)
    others = len(controls_of(specs, 1)) - pads
    fitting = (room - others) // max(pads, 1)
    return min(fitting if fitting in _PAD_ROWS or fitting > _PAD_ROWS[-1] else _SCROLLED_PAD, _PAD_ROWS[-1], room)


@dataclass(frozen=True, slots=True)
class Hit:
    """The control at a place of the panel. `x` and `y` are the place on the control, 0…1 from end to end of its track,
    or beyond. `is_near` says whether it is on the track or close to it."""

    control: Control
    x: float
    y: float
    is_near: bool


def hit(layout: PanelLayout, column: float, row: float) -> Hit | None:
    """The control at a place; None for a place without one."""
    for control, top in zip(layout.shown, layout.tops, strict=True):
        if layout.covers(column, row) and top <= row < top + control.rows:
            x, y = along(layout, control, top, column, row)
            right = layout.track + layout.track_columns
            return Hit(control, x, y, layout.track - _NEAR <= column < right + _NEAR)
    return None


def along(layout: PanelLayout, control: Control, top: int, column: float, row: float) -> tuple[float, float]:
    """A place in units of a control's track. The ends are the middles of its outer cells, so that a terminal, which
    counts in whole cells, reaches them."""
    x = (column - layout.track - 0.5) / (layout.track_columns - 1)
    y = (row - top - 0.5) / (control.rows - 1) if control.rows > 1 else 0.0
    return x, y


# --- how it looks -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Band:
    """How a control looks now. `at` is the place of its knob, 0…1 on each axis. `colours` are those of a bar, evenly
    spaced from left to right, the only colour of a band "color", or those of lamps, side by side. A band that
    `is_asking` shows what it waits for in place of its value: a number that is typed, or a knob."""

    part: Part
    rows: int
    label: str
    values: tuple[str, ...]
    at: tuple[float, ...] = ()
    colours: tuple[Colour, ...] = ()
    is_chosen: bool = False
    is_asking: bool = False


@dataclass(frozen=True, slots=True)
class PanelView:
    """How the panel looks now: its visible bands, the strips below them, and the row of text below all."""

    layout: PanelLayout
    bands: tuple[Band, ...]
    footer: str
    strips: tuple[Band, ...] = ()

    @property
    def rows(self) -> tuple[tuple[Band, int], ...]:
        """All that is drawn above the text, each with its upper edge."""
        return (*zip(self.bands, self.layout.tops, strict=True), *zip(self.strips, self.layout.strip_tops, strict=True))


def number_text(value: float, low: float, high: float) -> str:
    """A value for people, in steps of at most a thousandth of its range, so that the digits stay in place."""
    span = high - low
    decimals = max(0, min(5, 3 - math.floor(math.log10(span)))) if span > 0 else 3
    text = f"{value:.{decimals}f}"
    if len(text) > _VALUE:
        text = f"{value:.3g}" if len(f"{value:.3g}") <= _VALUE else f"{value:.0e}"
    return text


# Between two of these, a colour of another hue is a linear mixture.
_HUES: Final = tuple(hsv_to_rgb(step / 6, 1, 1) for step in range(7))


def bar_colours(part: Part, hsv: Colour) -> tuple[Colour, ...]:
    """The colours along a bar of the colour with this hue, saturation and brightness."""
    hue, saturation, brightness = hsv
    if part == "hue":
        return _HUES
    if part == "saturation":
        return hsv_to_rgb(hue, 0, brightness), hsv_to_rgb(hue, 1, brightness)
    return (0.0, 0.0, 0.0), hsv_to_rgb(hue, saturation, 1)


# --- what mouse and keys do ---------------------------------------------------------------------------------------

REST: Final = 5.0
"""Seconds without mouse and keys after which the panel hides."""

_LOOK_AT_LAMPS: Final = 1 / 15
"""Seconds between two looks at the lamps."""
_STEP: Final = 1 / 50
"""The share of a range by which an arrow or a notch of the wheel changes a value. With Shift, a tenth of it."""
_FINE: Final = 1 / 10
_DOUBLE: Final = 0.4
"""Seconds between the two presses of a double click."""
_MESSAGE: Final = 4.0
_MOST_TYPED: Final = 16

_ARROWS = {"left": (-1, 0), "right": (1, 0), "up": (0, 1), "down": (0, -1)}
_TYPED = {**{digit: digit for digit in "0123456789"}, "period": ".", "minus": "-", "comma": ","}

_NO_PARAMETERS = "this patch has no parameters"
_FOR_MOUSE = "double click resets · Ctrl+Enter writes"
_FOR_KEYS = "arrows · Shift fine · digits · Del resets"


class KnobLearner(Protocol):
    """Binds parameters to knobs of a device, by the names that kernels read."""

    @property
    def learning(self) -> str | None:
        """The input that the next knob is to move."""

    def learn(self, name: str | None) -> None:
        """Binds an input to the next knob that is turned; None ends the wait for a knob."""

    def forget(self, name: str) -> None:
        """Removes the knob of an input, if it has one."""


@dataclass(slots=True)
class _Drag:
    """A control that the mouse holds: the last place of the mouse, and that of the knob if its track had no ends."""

    control: Control
    top: int
    column: float
    row: float
    at: tuple[float, ...]


class ControlPanel:
    """The panel of a screen: whether it is shown, which control is chosen, and which is dragged or typed. It sets the
    parameters of a bank. All of it is for the main thread; `now` gives seconds.

    Methods that pass on input return whether the panel takes it. Input that it takes must not reach the patch.
    """

    def __init__(
        self, bank: ParameterBank, now: Callable[[], float] = time.monotonic, knobs: KnobLearner | None = None,
        lamps: Callable[[], tuple[LampStrip, ...]] = tuple,
    ) -> None:  # fmt: skip
        self.is_open = False
        self._parameters = self._bank = bank
        self._learner = self._knobs = knobs
        self._now = now
        self._all_lamps = lamps
        self._lamps: tuple[LampStrip, ...] = ()
        self._lamps_until = 0.0
        """When to look at the lamps again."""
        self._active = 0.0
        """When mouse or keys were last used."""
        self._layout: PanelLayout | None = None
        self._scrolled = 0.0
        """The first visible control; touch pads turn by fractions of a notch."""
        self._chosen: tuple[str, Part] | None = None
        self._typed = ""
        self._drag: _Drag | None = None
        self._button: Control | None = None
        """The button that the mouse holds."""
        self._held = set[str]()
        """Buttons that went down on the panel."""
        self._held_outside = set[str]()
        self._last_press: tuple[float, tuple[str, Part] | None] = (-1.0, None)
        self._hsv: dict[str, Colour] = {}
        """Colours as they were set: a grey has no hue, and black has neither hue nor saturation."""
        self._message = ""
        self._message_end = 0.0
        self._version = 0
        self._stamp: tuple[object, ...] = ()
        self._view: PanelView | None = None

    # --- showing --------------------------------------------------------------------------------------------------

    @property
    def is_shown(self) -> bool:
        """Whether it is open, and has been used within the last seconds."""
        return self.is_open and (self._drag is not None or bool(self._typed) or self._now() - self._active < REST)

    def toggle(self) -> None:
        """Shows the parameters if they are not visible, otherwise closes the panel."""
        if self.is_shown and self._bank is self._parameters:
            self.close()
        else:
            self.show(self._parameters)

    def show(self, bank: ParameterBank) -> None:
        """Shows the parameters of another bank, which no knobs follow, or its own."""
        if bank is not self._bank:
            self.close()
            self._bank, self._chosen, self._scrolled = bank, None, 0.0
            self._knobs = self._learner if bank is self._parameters else None
            self._hsv.clear()
        self.is_open = True
        self._wake()

    def shows(self, bank: ParameterBank) -> bool:
        """Whether the parameters of a bank are visible."""
        return self.is_shown and self._bank is bank

    def close(self) -> None:
        """Hides it until the next `toggle`."""
        self.is_open = False
        self._typed, self._drag = "", None
        self._let_go()

    def tell(self, words: str) -> None:
        """Shows a line below the controls for some seconds."""
        self._message, self._message_end = words, self._now() + _MESSAGE
        self._wake()

    def view(self, columns: int, rows: int) -> PanelView | None:
        """How it looks in a screen with this much room; None if it is not visible. The same object as long as nothing
        has changed."""
        if not self.is_shown:
            self._stamp, self._view = (), None
            return None
        if self._message and self._now() >= self._message_end:
            self._message = ""
            self._version += 1
        learning = self._knobs.learning if self._knobs is not None else None
        if self._now() >= self._lamps_until:
            self._lamps, self._lamps_until = self._all_lamps(), self._now() + _LOOK_AT_LAMPS
        stamp = (self._bank.changes, self._version, columns, rows, learning, self._lamps)
        if stamp != self._stamp:
            self._stamp = stamp
            self._layout = lay_out_panel(self._bank.specs, columns, rows, int(self._scrolled), self._lamps)
            self._view = self._looks(self._layout) if self._layout is not None else None
        return self._view

    def _wake(self) -> None:
        self._active = self._now()
        self._version += 1

    def _looks(self, layout: PanelLayout) -> PanelView:
        if int(self._scrolled) != layout.first:
            self._scrolled = layout.first
        strips = tuple(Band("lamps", 1, name, (), (), colours) for name, colours in self._lamps[: layout.strips])
        return PanelView(layout, tuple(map(self._band, layout.shown)), self._footer(layout), strips)

    def _footer(self, layout: PanelLayout) -> str:
        if self._message:
            return self._message
        if not layout.controls:
            return _NO_PARAMETERS
        if layout.first or layout.below:
            hidden = [f"{layout.first} above"] * bool(layout.first) + [f"{layout.below} below"] * bool(layout.below)
            return f"{' · '.join(hidden)} (wheel over the names, Tab)"
        return _FOR_MOUSE if self._chosen is None else _FOR_KEYS

    def _band(self, control: Control) -> Band:
        spec, part = control.spec, control.part
        label = visible(" ".join(spec.label.split()))
        at, colours = self._at(control), tuple[Colour, ...]()
        values: tuple[str, ...]
        if part == "slider":
            values = (number_text(self._bank.value(spec.inputs[0]), spec.low, spec.high),)
        elif part == "toggle":
            values = ("on" if at[0] else "off",)
        elif part == "button":
            values = ("●" if at[0] else "○",)
        elif part == "menu":
            option = spec.options[min(int(self._bank.value(spec.inputs[0])), len(spec.options) - 1)]
            values = (visible(" ".join(option.split()))[:_VALUE],)
        elif part == "xy":
            values = tuple(number_text(each, 0, 1) for each in at)
        elif part == "color":
            colour = self._colour(spec)
            values, colours, at = (hex_colour(colour),), (colour,), ()
        else:
            label = _bar_label(part)
            values = (f"{at[0] * 360:.0f}°" if part == "hue" else f"{at[0] * 100:.0f}%",)
            colours = bar_colours(part, self._hsv_of(spec))
        is_chosen = control.key == self._chosen
        is_learning = self._knobs is not None and part not in _BARS and self._knobs.learning in spec.inputs
        if is_chosen and self._typed:
            values = (f"{self._typed[-_VALUE + 1 :]}▏",)
        elif is_learning:
            values = ("knob …",)
        is_asking = is_learning or (is_chosen and bool(self._typed))
        return Band(part, control.rows, label, values, at, colours, is_chosen, is_asking)

    # --- values ---------------------------------------------------------------------------------------------------

    def _colour(self, spec: ParameterSpec) -> Colour:
        red, green, blue = (self._bank.value(name) for name in spec.inputs)
        return red, green, blue

    def _hsv_of(self, spec: ParameterSpec) -> Colour:
        colour, known = self._colour(spec), self._hsv.get(spec.name)
        if known is not None and all(map(math.isclose, hsv_to_rgb(*known), colour)):
            return known
        return rgb_to_hsv(*colour)

    def _at(self, control: Control) -> tuple[float, ...]:
        """The place of a control's knob, 0…1 on each axis."""
        spec, part = control.spec, control.part
        if part in _BARS:
            return (self._hsv_of(spec)[_BARS.index(part)],)
        span = spec.high - spec.low
        return tuple((self._bank.value(name) - spec.low) / span for name in spec.inputs)

    def _put(self, control: Control, at: Sequence[float]) -> None:
        """Moves a control's knob. A parameter that the program no longer has is left alone."""
        spec, inside = control.spec, [min(max(each, 0.0), 1.0) for each in at]
        values = [spec.low + each * (spec.high - spec.low) for each in inside]
        with suppress(KeyError):
            if control.part in _BARS:
                hsv = list(self._hsv_of(spec))
                hsv[_BARS.index(control.part)] = inside[0]
                self._hsv[spec.name] = (hsv[0], hsv[1], hsv[2])
                values = list(hsv_to_rgb(*hsv))
            for name, value in zip(spec.inputs, values, strict=True):
                self._bank.set(name, value)

    def _move(self, control: Control, x: float, y: float) -> None:
        """Moves a control's knob by a share of its range. `y` is upwards, which on a pad is towards less."""
        if control.part == "toggle":
            self._put(control, (float(x + y > 0),))
        elif control.part == "menu":
            # Small steps of a wheel would add up to nothing.
            step = 0 if abs(x + y) < _STEP / 2 else math.copysign(1, x + y)
            self._put(control, (self._at(control)[0] + step / control.spec.high,))
        elif control.part == "button":
            return
        elif control.part != "color":
            at = self._at(control)
            self._put(control, (at[0] + x, at[1] - y) if control.part == "xy" else (at[0] + x + y,))

    def _reset(self, control: Control) -> None:
        with suppress(KeyError):
            for name in control.spec.inputs:
                self._bank.reset(name)
        self._hsv.pop(control.spec.name, None)

    # --- the mouse ------------------------------------------------------------------------------------------------

    def covers(self, column: float, row: float) -> bool:
        """Whether the mouse at this place belongs to the panel. A button that was pressed outside of the panel keeps
        its effect there."""
        if self._drag is not None or self._held:
            return True
        layout = self._layout
        return self.is_shown and not self._held_outside and layout is not None and layout.covers(column, row)

    def point(self, column: float, row: float, is_fine: bool) -> bool:
        """The mouse has moved."""
        if not self.is_open:
            return False
        self._active = self._now()
        drag = self._drag
        if drag is not None and self._layout is not None:
            was = along(self._layout, drag.control, drag.top, drag.column, drag.row)
            now = along(self._layout, drag.control, drag.top, column, row)
            share = _FINE if is_fine else 1.0
            moved = [(b - a) * share for a, b in zip(was, now, strict=True)]
            drag.at = tuple(at + by for at, by in zip(drag.at, moved, strict=False))
            drag.column, drag.row = column, row
            self._put(drag.control, drag.at)
        return self.covers(column, row)

    def press(self, button: str, column: float, row: float, is_fine: bool) -> bool:
        """A mouse button has gone down. With Shift, `is_fine`, a knob does not jump to the mouse."""
        if not self.covers(column, row):
            self._held_outside.add(button)
            return False
        self._held.add(button)
        self._wake()
        found = hit(self._layout, column, row) if self._layout is not None else None
        if found is None:
            return True
        if button == "left":
            self._press_left(found, column, row, is_fine)
        elif button == "right":
            self._choose(found.control)
            self._learn(found.control.spec, is_fine)
        return True

    def _press_left(self, found: Hit, column: float, row: float, is_fine: bool) -> None:
        control = found.control
        self._choose(control)
        now, (before, same) = self._now(), self._last_press
        if control.part == "button":
            if column >= self._track:
                self._put(control, (1.0,))
                self._button = control
            return
        if same == control.key and now - before < _DOUBLE:
            self._last_press = (-1.0, None)
            self._reset(control)
            return
        self._last_press = (now, control.key)
        if control.part == "toggle" and column >= self._track:
            self._put(control, (1 - self._at(control)[0],))
        elif found.is_near and control.part not in ("toggle", "color"):
            top = self._top(control)
            if not is_fine:
                self._put(control, (found.x, found.y) if control.part == "xy" else (found.x,))
            self._drag = _Drag(control, top, column, row, self._at(control))

    @property
    def _track(self) -> int:
        return self._layout.track if self._layout is not None else 0

    def _top(self, control: Control) -> int:
        layout = self._layout
        return layout.tops[layout.shown.index(control)] if layout is not None and control in layout.shown else 0

    def _learn(self, spec: ParameterSpec, forgets: bool) -> None:
        """Binds the first input of a parameter to the next knob that is turned. If the panel waits for that knob
        already, it waits for the next input, and after the last input for none."""
        knobs, inputs, label = self._knobs, spec.inputs, visible(spec.label)
        if knobs is None:
            self.tell("there are no knobs to learn from")
        elif forgets:
            for name in inputs:
                knobs.forget(name)
            self.tell(f"{label} has no knob")
        else:
            at = inputs.index(knobs.learning) + 1 if knobs.learning in inputs else 0
            is_last = at == len(inputs)
            knobs.learn(None if is_last else inputs[at])
            which = f", {spec.outputs[at]}" if len(inputs) > 1 and not is_last else ""
            self.tell("no knob is awaited" if is_last else f"turn a knob for {label}{which}")

    def release(self, button: str) -> bool:
        """A mouse button has gone up."""
        self._held_outside.discard(button)
        if button not in self._held:
            return False
        self._held.discard(button)
        self._drag = None
        self._let_go()
        self._wake()
        return True

    def _let_go(self) -> None:
        """Releases the button that the mouse holds."""
        if self._button is not None:
            self._put(self._button, (0.0,))
            self._button = None

    def turn(self, across: float, up: float, column: float, row: float, is_fine: bool) -> bool:
        """The wheel has turned, in notches. Over a control it changes its value; over the names it scrolls, if there is
        anything to scroll."""
        if not self.covers(column, row):
            return False
        self._wake()
        layout = self._layout
        if layout is None:
            return True
        found = hit(layout, column, row)
        scrolls = bool(layout.first or layout.below)
        if scrolls and (found is None or column < layout.track - _NEAR):
            self._scrolled = min(max(self._scrolled - up, 0.0), len(layout.controls) - 1.0)
        elif found is not None:
            step = _STEP * (_FINE if is_fine else 1.0)
            self._move(found.control, across * step, up * step)
        return True

    # --- the keyboard ---------------------------------------------------------------------------------------------

    def key(self, name: str, is_fine: bool, patch_keys: frozenset[str]) -> bool:
        """A key was pressed without Ctrl. While the panel rests, it takes none that the patch reads."""
        if not self.is_open:
            return False
        if not self.is_shown and (name not in ("tab", *_ARROWS) or name in patch_keys):
            return False
        control = self._chosen_control()
        taken = self._type(name, control) if self._typed and control is not None else False
        taken = taken or self._press_key(name, is_fine, control)
        if taken:
            self._wake()
        return taken

    def _press_key(self, name: str, is_fine: bool, control: Control | None) -> bool:
        if name == "tab":
            self._choose_next(-1 if is_fine else 1)
        elif name == "escape":
            self.close()
        elif control is None:
            return False
        elif name in _ARROWS:
            x, y = _ARROWS[name]
            step = _STEP * (_FINE if is_fine else 1.0)
            self._move(control, x * step, y * step)
        elif name == "space" and control.part == "toggle":
            self._put(control, (1 - self._at(control)[0],))
        elif name == "space" and control.part == "menu":
            self._put(control, ((round(self._at(control)[0] * control.spec.high) + 1) % len(control.spec.options)
                                / control.spec.high,))  # fmt: skip
        elif name == "space" and control.part == "button":
            self._put(control, (1.0,))  # a frame sees it; nothing reports when the key goes up
            self._put(control, (0.0,))
        elif name in ("delete", "backspace"):
            self._reset(control)
        elif name in _TYPED:
            self._typed = _TYPED[name]
        else:
            return False
        return True

    def _type(self, name: str, control: Control) -> bool:
        """Passes a key to the number that is being typed."""
        if name in _TYPED:
            self._typed = (self._typed + _TYPED[name])[:_MOST_TYPED]
        elif name == "backspace":
            self._typed = self._typed[:-1]
        elif name == "escape":
            self._typed = ""
        elif name in ("enter", "tab"):
            self._enter(control)
            if name == "tab":
                return False
        else:
            return name in _ARROWS
        return True

    def _enter(self, control: Control) -> None:
        """Takes over the typed number. For a pad, it is x, or x and y with a comma between them."""
        typed, self._typed = self._typed, ""
        spec, part = control.spec, control.part
        low, high = (0.0, 360.0) if part == "hue" else (0.0, 100.0) if part in _BARS else (spec.low, spec.high)
        words = typed.split(",") if part == "xy" else [typed]
        try:
            numbers = [float(word) for word in words if word]
        except ValueError:
            numbers = []
        at = list(self._at(control))
        if not 0 < len(numbers) <= len(at):
            self.tell(f"{typed} is not a number" if part != "xy" else f"{typed} is not a place, such as 0.3,0.7")
            return
        for axis, value in enumerate(numbers):
            at[axis] = (value - low) / (high - low)
            if not low <= value <= high:
                self.tell(f"{visible(spec.label)} runs from {low:g} to {high:g}")
        self._put(control, at)

    def _chosen_control(self) -> Control | None:
        controls = self._layout.controls if self._layout is not None else ()
        return next((control for control in controls if control.key == self._chosen), None)

    def _choose(self, control: Control) -> None:
        if control.key != self._chosen:
            self._typed = ""
        self._chosen = control.key

    def _choose_next(self, step: int) -> None:
        """Chooses the next control that keys can change, and after the last one the first, and scrolls to it."""
        layout = self._layout
        stops = [c for c in layout.controls if c.part != "color"] if layout is not None else []
        if layout is None or not stops:
            return
        keys = [each.key for each in stops]
        at = keys.index(self._chosen) + step if self._chosen in keys else (0 if step > 0 else -1)
        self._choose(stops[at % len(stops)])
        index = layout.controls.index(stops[at % len(stops)])
        shown = len(layout.tops)
        if not layout.first <= index < layout.first + shown:
            self._scrolled = index if index < layout.first else max(0, index - shown + 1)


def hex_colour(colour: Sequence[float]) -> str:
    """A colour as a patch writes it: `#rrggbb`."""
    return "#" + "".join(f"{round(min(max(channel, 0.0), 1.0) * 255):02x}" for channel in colour)
