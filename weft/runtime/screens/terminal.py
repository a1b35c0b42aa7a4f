"""The terminal as a screen: the picture in half blocks, errors below it, and keys and mouse.

All of it is for the main thread.
"""

from __future__ import annotations

import atexit
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby
from types import FrameType
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.backends.base import as_array
from weft.codes.rows import Severity
from weft.errors import Diagnostic, Role, blank_halves, columns
from weft.platform.own_terminal import Terminal as SystemTerminal
from weft.runtime.hands.inputs import Inputs
from weft.runtime.screens.panel_text import PanelCell, painted_panel, panel_rows
from weft.runtime.screens.playing_text import TextInTerminal
from weft.runtime.screens.screen import Overlay, Picture, Rect, Screen, Shown, letterbox
from weft.runtime.screens.terminal_device import SYNCHRONIZED, Decoder, Device, HeldKeys, Key, Mouse
from weft.runtime.screens.text_view import TextView

# --- the picture --------------------------------------------------------------------------------------------------

Cells: TypeAlias = NDArray[np.uint8]
"""[rows, columns, 6]: each cell shows two pixels, one above the other, as a half block in two colours. Its bytes are
the red, green and blue of the upper pixel, and then of the lower one."""

Colours: TypeAlias = Literal["true", "256"]
"""The colours of a terminal: all, or those of xterm's table."""


def cells_of(picture: Picture | None, place: Rect, rows: int, columns: int) -> Cells:
    """The picture, scaled to `place`, with black around it. `place` counts in pixels, of which a cell has two."""
    pixels = np.zeros((2 * rows, columns, 3), np.uint8)
    if picture is not None:
        inside = slice(place.top, place.top + place.height), slice(place.left, place.left + place.width)
        pixels[inside] = scaled(picture, place.width, place.height)
    return pixels.reshape(rows, 2, columns, 3).transpose(0, 2, 1, 3).reshape(rows, columns, 6)


def scaled(picture: Picture, width: int, height: int) -> Picture:
    """The red, green and blue of a picture in another size [height, width, 3].

    Along an axis that shrinks, a new pixel is the mean over the area that it covers. Along one that grows, it is the
    pixel under its centre. Alpha is left out, since nothing is under the picture.
    """
    resized: NDArray[Any] = picture
    for axis, size in enumerate((height, width)):
        if size < picture.shape[axis]:
            resized = _means(resized, size, axis)
        elif size > picture.shape[axis]:
            middles = (2 * np.arange(size) + 1) * picture.shape[axis] // (2 * size)
            resized = resized.take(middles, axis)
    if resized.dtype == np.uint8:
        return resized[..., :3]
    # Rounding may make a mean slightly too large or too small.
    nearest: Picture = np.clip(np.rint(resized[..., :3]), 0, 255).astype(np.uint8)
    return nearest


def _means(values: NDArray[Any], size: int, axis: int) -> NDArray[np.float64]:
    """Means over `size` equal sections of an axis, fewer than it has values. A value may be part of two sections."""
    edges = np.arange(size + 1) * values.shape[axis]
    whole = edges // size
    share = (edges % size / size).reshape(-1, *[1] * (values.ndim - axis - 1))
    sums = np.add.reduceat(values, whole[:-1], axis, np.float64 if values.dtype.kind == "f" else np.uint32)
    # The sums contain the whole value at the start of each section; its first part belongs to the section before.
    borrowed = values.take(np.minimum(whole, values.shape[axis] - 1), axis) * share
    first, after = (borrowed.take(np.arange(size) + step, axis) for step in (0, 1))
    means: NDArray[np.float64] = (sums - first + after) * (size / values.shape[axis])
    return means


def draw(cells: Cells, before: Cells | None, colours: Colours) -> bytes:
    """The bytes that make a terminal which shows `before` in its upper left corner show `cells`.

    Unchanged cells need none. No Python code runs for a single cell: all get text of the same length, padded with NUL,
    and all NULs are removed at the end.
    """
    rows, columns = cells.shape[:2]
    if before is None or before.shape != cells.shape:
        changed = np.ones((rows, columns), bool)
    else:
        changed = (cells != before).any(axis=2)
    row, column = np.nonzero(changed)
    if not len(row):
        return b""
    # Neighbours in a row need only one position.
    apart = np.ones(len(row), bool)
    apart[1:] = (row[1:] != row[:-1]) | (column[1:] != column[:-1] + 1)
    drawn = cells[row, column]
    code = _true_colour if colours == "true" else _table_colour
    # Codes that a cell does not need are left out: a text times False is NUL.
    position = apart[:, np.newaxis] * _joined(b"\x1b[", _number(row + 1, 4), b";", _number(column + 1, 4), b"H")
    upper = _differs(drawn[:, :3]) * code(b"\x1b[38;", drawn[:, :3])
    lower = _differs(drawn[:, 3:]) * code(b"\x1b[48;", drawn[:, 3:])
    return _joined(position, upper, lower, "▀".encode()).tobytes().translate(None, b"\0")


_Texts: TypeAlias = NDArray[np.uint8]
"""[cells, characters]: ASCII of one length for every drawn cell, with NUL for what is left out."""


def _joined(*parts: bytes | _Texts) -> _Texts:
    """Parts of the texts one after another; a part in bytes is the same in all."""
    count = max(len(part) for part in parts if not isinstance(part, bytes))
    texts = [
        np.broadcast_to(np.frombuffer(part, np.uint8), (count, len(part))) if isinstance(part, bytes) else part
        for part in parts
    ]
    return np.concatenate(texts, axis=1)


def _number(values: NDArray[np.intp], digits: int) -> _Texts:
    """Decimal numbers without leading zeros."""
    powers = 10 ** np.arange(digits - 1, -1, -1)
    spelled = values[:, np.newaxis] // powers % 10 + ord("0")
    spelled[values[:, np.newaxis] < powers] = 0
    spelled[values == 0, -1] = ord("0")
    return spelled.astype(np.uint8)


def _differs(colour: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Where a colour differs from that of the cell drawn before, so that it has to be sent; [cells, 1]."""
    differs = np.ones((len(colour), 1), bool)
    differs[1:] = (colour[1:] != colour[:-1]).any(axis=1, keepdims=True)
    return differs


_BYTES = _number(np.arange(256), 3)


def _true_colour(start: bytes, colour: NDArray[np.uint8]) -> _Texts:
    red, green, blue = (_BYTES[colour[:, channel]] for channel in range(3))
    return _joined(start + b"2;", red, b";", green, b";", blue, b"m")


def _table_colour(start: bytes, colour: NDArray[np.uint8]) -> _Texts:
    return _joined(start + b"5;", _BYTES[nearest_in_table(colour)], b"m")


# xterm's table from 16 on: a cube of six steps in each of red, green and blue, then 24 greys.
_STEPS = np.array([0, 95, 135, 175, 215, 255])
_STEP_OF = np.abs(np.arange(256)[:, np.newaxis] - _STEPS).argmin(axis=1)
_GREYS = 8 + 10 * np.arange(24)
# By the sum of red, green and blue.
_GREY_OF = np.abs(np.arange(3 * 255 + 1)[:, np.newaxis] - 3 * _GREYS).argmin(axis=1)


def nearest_in_table(colour: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """For each colour [n, 3], the number of the nearest one in xterm's table of 256 colours."""
    wide = colour.astype(np.int64)
    steps = _STEP_OF[colour]
    grey = _GREY_OF[wide.sum(axis=1)]
    off_cube = ((_STEPS[steps] - wide) ** 2).sum(axis=1)
    off_grey = ((_GREYS[grey][:, np.newaxis] - wide) ** 2).sum(axis=1)
    in_cube = 16 + steps @ np.array([36, 6, 1])
    nearest: NDArray[np.uint8] = np.where(off_grey < off_cube, 232 + grey, in_cube).astype(np.uint8)
    return nearest


# --- the text below the picture -----------------------------------------------------------------------------------

# Errors, and a line with the note and the figures. Text is laid out in the columns of the terminal, where a character
# may take two columns or none. No text can act as a command on the terminal.

Ink = Literal["text", "dim", "error", "warning", "error mark", "warning mark"]

_STYLES: dict[Ink, bytes] = {
    "text": b"", "dim": b"2", "error": b"1;31", "warning": b"1;33", "error mark": b"31", "warning mark": b"33"
}  # fmt: skip
_MARKS: dict[Severity, Ink] = {"error": "error mark", "warning": "warning mark"}
_TAB = 4
_SEPARATOR = " · "


@dataclass(frozen=True, slots=True)
class Column:
    """One column: a character with its combining marks, or nothing for the right half of a wide character."""

    text: str
    ink: Ink = "text"


Row = list[Column]


def rows_of(overlay: Overlay, width: int, most: int) -> list[Row]:
    """The rows for a terminal of this width, at most `most` of them: the errors, then the note with the figures."""
    below = _status(overlay, width)
    if overlay.errors:
        below = below[: max(1, most // 3)]
    errors = [row for diagnostic in overlay.errors for row in _block(diagnostic, width)]
    room = most - len(below)
    if len(errors) > room or (overlay.left_out and errors):
        kept = min(max(room - 1, 0), len(errors))
        hidden = [f"{len(errors) - kept} more lines"] if kept < len(errors) else []
        hidden += [f"{overlay.left_out} more errors and warnings"] if overlay.left_out else []
        more = columns_of(f"… {' and '.join(hidden)}", "dim")
        errors = [*errors[:kept], _shortened(more, width)][: max(room, 0)]
    return [*errors, *below][:most]


def painted(row: Row, colourful: bool) -> bytes:
    """The bytes of a row for a terminal, in UTF-8; without colours if it is not `colourful`."""
    parts = []
    for ink, same in groupby(row, key=lambda column: column.ink):
        text = "".join(column.text for column in same).encode(errors="replace")
        style = _STYLES[ink] if colourful else b""
        parts.append(b"\x1b[%bm%b\x1b[0m" % (style, text) if style else text)
    return b"".join(parts)


def columns_of(text: str, ink: Ink = "text") -> Row:
    """The columns of a text, from the left edge on. Invisible characters are shown as escapes."""
    return [Column(shown, ink) for shown in columns(text, _TAB)]


def _shortened(row: Row, width: int) -> Row:
    """The columns that fit; an end where something is missing shows …"""
    if len(row) > width:
        row = [*row[: width - 1], Column("…", row[-1].ink)]
    return _blank_halves(row)


def _blank_halves(row: Row) -> Row:
    """The row with a space for each half of a wide character that was cut."""
    whole = blank_halves([column.text for column in row])
    return [Column(text, column.ink) for column, text in zip(row, whole, strict=True)]


def _status(overlay: Overlay, width: int) -> list[Row]:
    """The note and the figures in as many rows as they need; rows break only between figures."""
    pieces = [[*columns_of("● ", "error"), *columns_of(overlay.recording)]] if overlay.recording else []
    pieces += [columns_of(overlay.note)] if overlay.note else []
    pieces += [columns_of(part, "dim") for figure in overlay.figures if figure for part in figure.split(_SEPARATOR)]
    rows: list[Row] = []
    for piece in pieces:
        separator = columns_of(_SEPARATOR, "dim")
        if rows and len(rows[-1]) + len(separator) + len(piece) <= width:
            rows[-1] += separator + piece
        else:
            rows.append(_shortened(piece, width))
    return rows


def _block(diagnostic: Diagnostic, width: int) -> Iterator[Row]:
    """One diagnostic as text: words are wrapped, lines of the patch are cut."""
    inks: dict[Role, Ink] = {"severity": diagnostic.severity, "mark": _MARKS[diagnostic.severity]}
    for line in diagnostic.text_lines(width, _TAB):
        row = [column for role, text in line for column in columns_of(text, inks.get(role, "text"))]
        yield from _wrapped(row, width)


def _wrapped(row: Row, width: int) -> Iterator[Row]:
    """Words in as many rows as they need; a word is broken only if it would leave half of a row empty."""
    leading = next((at for at, column in enumerate(row) if column.text != " "), 0)
    indent = [Column(" ")] * min(leading + 2, width // 3)
    while len(row) > width:
        cut = next((at for at in range(width, width // 2, -1) if row[at].text == " "), width)
        if row[cut].text == "" and cut > 1:
            cut -= 1
        yield _blank_halves(row[:cut])
        rest = next((at for at in range(cut, len(row)) if row[at].text != " "), None)
        if rest is None:
            return
        row = indent + row[rest:]
    yield _blank_halves(row)


# --- the screen ---------------------------------------------------------------------------------------------------

# In seconds: keyboards repeat a held key faster than this, and people press keys more slowly.
_REPETITION = 0.1


def colours_of(environment: Mapping[str, str]) -> Colours:
    """True colour, except for the few terminals that are known to misread its codes."""
    if environment.get("COLORTERM") in ("truecolor", "24bit"):
        return "true"
    few = environment.get("TERM_PROGRAM") == "Apple_Terminal"
    # tmux has this name too, but understands true colour.
    few |= environment.get("TERM", "").startswith("screen") and "TMUX" not in environment
    return "256" if few else "true"


def room_of(size: tuple[int, int]) -> tuple[int, int]:
    """Width and height in half blocks for a picture in a terminal of `size`, in columns and rows."""
    columns, rows = size
    return columns, 2 * (rows - _reserved(rows))


class Terminal(Screen):
    """A screen in the terminal of stdout. The commands of `Space`, `S` and the like go to `on_command`.

    Until it is closed, other output to the terminal is held back. Whichever way the process ends, the terminal gets its
    previous state back.
    """

    def __init__(
        self, inputs: Inputs | None = None, on_command: Callable[[str], None] = lambda command: None,
        shows_text: bool = False,
    ) -> None:
        """Takes over the terminal. With `shows_text`, the text that plays is over the picture. Raises
        `WeftError` (`no-terminal`) if there is none that shows pictures."""
        super().__init__(inputs, on_command)
        self._command_times: dict[str, float] = {}
        self._picture: Picture | None = None
        self._place = Rect(0, 0, 1, 1)
        self._cells: Cells | None = None
        self._lines: dict[tuple[int, int], bytes] = {}
        """The text that it shows, by row and column of its beginning."""
        self._panel_place = Rect(0, 0, 0, 0)
        """The columns and rows of the panel."""
        self._text_is_shown = shows_text
        self._text_view = TextView()
        self._text = TextInTerminal()
        self._text_widths: list[int] = []
        """The columns that its lines take, from the top."""
        self._due = True
        self._signals = set[int | None]()
        """The events that are not handled yet."""
        self._colours = colours_of(os.environ)
        self._colourful = not os.environ.get("NO_COLOR")
        with ExitStack() as stack:
            # Handles signals that would end or stop the process without restoring the terminal, unless they are handled
            # already.
            for number in SystemTerminal.signals():
                if signal.getsignal(number) is signal.SIG_DFL:
                    stack.callback(signal.signal, number, signal.signal(number, self._on_signal))
            self._device = Device()
            atexit.register(self.close)
            stack.callback(atexit.unregister, self.close)
            stack.callback(self._device.close)
            self._device.enter()
            self._decoder = Decoder(self._device.backspace)
            self._held = HeldKeys(self.inputs)
            self._size = self._device.size
            self._resources = stack.pop_all()
        self.redraw()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGTERM:
            raise SystemExit(128 + number)
        self._signals.add(number)

    @property
    def should_close(self) -> bool:
        return self._closed or SystemTerminal.hangup in self._signals or self._device.gone

    @property
    def room(self) -> tuple[int, int]:
        """Width and height in half blocks, without the last line, which is for the note and the figures. Errors do not
        change it: the picture is shown smaller while they need more lines.
        """
        return room_of(self._size)

    def present(self, picture: Shown) -> None:
        """See `Screen.present`. While the terminal has not accepted the last picture completely, this one is only kept.
        It is sent if it is still the latest when the terminal is ready."""
        self._picture = as_array(picture).copy()
        self.redraw()

    def redraw(self) -> None:
        if self._closed:
            return
        self._due = self._device.busy
        if not self._due:
            self._draw()

    def show_text(self, view: TextView) -> None:
        """See `Screen.show_text`."""
        self._text_view = view

    def _draw(self) -> None:
        """Sends the differences from what the terminal shows."""
        columns, rows = self._size
        text = rows_of(self._overlay, columns, max(rows // 2, _reserved(rows)) if rows > 1 else 0)
        area = columns, 2 * (rows - max(len(text), _reserved(rows)))
        if self._picture is not None:
            self._place = letterbox((self._picture.shape[1], self._picture.shape[0]), area)
        cells = cells_of(self._picture, self._place, area[1] // 2, columns)
        source = self._text_lines(*cells.shape[:2])
        panel = self._panel_lines(*cells.shape[:2])
        place = self._panel_place
        # The picture does not draw where the text and the panel are.
        for row, text_width in enumerate(self._text_widths):
            cells[row, :text_width] = 0
        cells[place.top : place.top + place.height, place.left : place.left + place.width] = 0
        if self._cells is None or self._cells.shape != cells.shape:
            self._lines = {}  # what is drawn over all cells is drawn again
        lines = [painted(row, self._colourful) for row in text] or [b""] * _reserved(rows)
        parts = [draw(cells, self._cells, self._colours), b"\x1b[0m"]
        # A line is erased before it is written: afterwards, erasing at the last column would remove the last character.
        shown = {(row, 1): b"\x1b[K" + line for row, line in enumerate(lines, len(cells) + 1)}
        shown |= {(row, 1): line for row, line in enumerate(source, 1)}
        shown |= {(row + 1, place.left + 1): line for row, line in enumerate(panel)}
        for (row, column), line in shown.items():
            if self._lines.get((row, column)) != line:
                parts.append(b"\x1b[%d;%dH%b" % (row, column, line))
        self._cells = cells
        self._lines = shown
        if parts[0] or parts[2:]:
            self._device.send(SYNCHRONIZED[0] + b"".join(parts) + SYNCHRONIZED[1])

    def _text_lines(self, rows: int, columns: int) -> list[bytes]:
        """The lines of the text that plays, from the upper left corner on. If one of them becomes narrower, everything
        is drawn again."""
        found: list[list[PanelCell]] = []
        if self._text_is_shown:
            room = columns - (self._panel_place.width if self.panel.is_open else 0)
            self._text.update(self._text_view, room, rows, time.monotonic())
            found = self._text.rows
        widths = [len(row) for row in found]
        if widths != self._text_widths:
            self._text_widths = widths
            self._cells, self._lines = None, {}
        return [painted_panel(row, self._colour_code) for row in found]

    def _panel_lines(self, rows: int, columns: int) -> list[bytes]:
        """The lines of the panel, at the right edge of a picture with this many cells. If its place changes, everything
        is drawn again."""
        view = self.panel.view(columns, rows)
        lines = panel_rows(view) if view is not None else []
        width = view.layout.columns if view is not None else 0
        place = Rect(columns - width, 0, width, len(lines))
        if place != self._panel_place:
            self._panel_place = place
            self._cells, self._lines = None, {}
        return [painted_panel(row, self._colour_code) for row in lines]

    def _colour_code(self, colour: tuple[int, int, int], is_ground: bool) -> bytes:
        if not self._colourful:
            return b""
        wanted = np.array([colour], np.uint8)
        code = _true_colour if self._colours == "true" else _table_colour
        return code(b"\x1b[48;" if is_ground else b"\x1b[38;", wanted).tobytes().translate(None, b"\0")

    def _forget(self) -> None:
        """Forgets what the terminal shows, so that everything is drawn again."""
        self._cells, self._lines, self._due = None, {}, True

    # --- input ----------------------------------------------------------------------------------------------------

    def poll(self) -> None:
        if self._closed:
            return
        if SystemTerminal.stop in self._signals:
            self._stop()
        if SystemTerminal.proceed in self._signals:
            self._signals.remove(SystemTerminal.proceed)
            self._device.enter_again()
            self._forget()
        now = time.monotonic()
        events = self._decoder.feed(self._device.read(), now)
        commands = [command for event in events for command in self._take(event, now)]
        self._held.pass_time(now)
        if self._device.size != self._size:
            self._size = self._device.size
            self._forget()
        self._device.flush(0, 0)
        if self._due:
            self.redraw()
        for command in commands:
            self._on_command(command)

    def _take(self, event: Key | Mouse, now: float) -> list[str]:
        """Passes an event on to the patch, or returns its command."""
        if isinstance(event, Mouse):
            self._take_mouse(event)
            return []
        control = "control" in event.modifiers
        if not control and self.panel.key(event.name, "shift" in event.modifiers, self._patch_keys):
            return []
        command = self._command_of(event.name, control)
        if command is not None:
            before = self._command_times.get(command, -1.0)
            self._command_times[command] = now
            return [command] if now - before >= _REPETITION else []
        for name in (event.name, *event.modifiers):
            self._held.heard(name, now)
        return []

    def _take_mouse(self, event: Mouse) -> None:
        """Passes the mouse on to the panel, or else to the patch."""
        place, panel, inputs = self._place, self.panel, self.inputs
        # The middle of the cell, which is two pixels tall.
        x, y = event.column + 0.5, 2 * event.row + 1
        cell = x - self._panel_place.left, event.row + 0.5
        match event.action:
            case "move":
                if not panel.point(*cell, event.is_shifted):
                    inputs.move((x - place.left) / place.width, (y - place.top) / place.height)
            case "press":
                if not panel.press(event.button, *cell, event.is_shifted):
                    inputs.press(event.button)
            case "release":
                if not panel.release(event.button):
                    inputs.release(event.button)
            case "turn":
                if not panel.turn(0, event.notches, *cell, event.is_shifted):
                    inputs.turn(event.notches)

    def _stop(self) -> None:
        """Gives the terminal back until the process is continued."""
        self._signals -= {SystemTerminal.stop}
        self._device.leave()
        SystemTerminal.stop_now()
        self._signals -= {SystemTerminal.proceed}
        self._device.enter()
        self._forget()


def _reserved(rows: int) -> int:
    """The number of rows that are never used by the picture."""
    return 1 if rows > 1 else 0
