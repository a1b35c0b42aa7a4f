"""The picture in a terminal: half blocks in true colour, errors below them, keys and mouse to patch and tool.

All of it is for the main thread.
"""

from __future__ import annotations

import atexit
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import FrameType

from weft.backends.base import as_array
from weft.keys import TOOL_KEYS
from weft.runtime.inputs import Inputs
from weft.runtime.screens.frame import Rect, letterbox
from weft.runtime.screens.screen import Overlay, Picture, Shown
from weft.runtime.screens.terminal_cells import Cells, Colours, cells_of, draw
from weft.runtime.screens.terminal_device import SYNCHRONIZED, Device
from weft.runtime.screens.terminal_keys import Decoder, HeldKeys, Key, Mouse
from weft.runtime.screens.terminal_text import painted, rows_of

# Keyboards repeat a key that is held faster than this, and nobody presses one so fast.
_REPETITION = 0.1


def colours_of(environment: Mapping[str, str]) -> Colours:
    """True colour, except for the few terminals that are known to take its codes for something else."""
    if environment.get("COLORTERM") in ("truecolor", "24bit"):
        return "true"
    few = environment.get("TERM_PROGRAM") == "Apple_Terminal"
    # tmux bears this name too, but understands true colour.
    few |= environment.get("TERM", "").startswith("screen") and "TMUX" not in environment
    return "256" if few else "true"


def room_of(size: tuple[int, int]) -> tuple[int, int]:
    """Width and height in half blocks that a picture has in a terminal of so many columns and rows."""
    columns, rows = size
    return columns, 2 * (rows - _reserved(rows))


class Terminal:
    """A `Screen` in the terminal behind stdout. What `Space`, `S` and the like ask for is handed to `on_command`.

    Until it is closed, whatever else is printed to the terminal is kept back. A process that ends in any way at all
    leaves the terminal as it was.
    """

    def __init__(self, inputs: Inputs | None = None, on_command: Callable[[str], None] = lambda command: None) -> None:
        """Takes over the terminal. Raises `WeftError` (`no-terminal`) where there is none that shows pictures."""
        self.inputs = inputs if inputs is not None else Inputs()
        self._on_command = on_command
        self._patch_keys: frozenset[str] = frozenset()
        self._heard_commands: dict[str, float] = {}
        self._overlay = Overlay()
        self._picture: Picture | None = None
        self._place = Rect(0, 0, 1, 1)
        self._cells: Cells | None = None
        self._lines: dict[int, bytes] = {}
        self._due = True
        self._closed = self._hung_up = self._stopping = self._continued = False
        self._colours = colours_of(os.environ)
        self._colourful = not os.environ.get("NO_COLOR")
        with ExitStack() as stack:
            self._handlers(stack)
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

    def _handlers(self, stack: ExitStack) -> None:
        """Takes signals that would end or stop the process with the terminal as it is; not from those who want them."""
        for number, handler in (
            (signal.SIGHUP, self._on_hang_up),
            (signal.SIGTERM, _on_terminate),
            (signal.SIGTSTP, self._on_stop),
            (signal.SIGCONT, self._on_continue),
        ):
            if signal.getsignal(number) is signal.SIG_DFL:
                stack.callback(signal.signal, number, signal.signal(number, handler))

    def _on_hang_up(self, _number: int, _frame: FrameType | None) -> None:
        self._hung_up = True

    def _on_stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stopping = True

    def _on_continue(self, _number: int, _frame: FrameType | None) -> None:
        self._continued = True

    @property
    def should_close(self) -> bool:
        """Whether the terminal was closed, or this was."""
        return self._closed or self._hung_up or self._device.gone

    @property
    def room(self) -> tuple[int, int]:
        """Width and height in half blocks, without the last line, which is for the note and the figures.

        Errors do not change it: while they take more lines, the same picture is shown smaller.
        """
        return room_of(self._size)

    def set_patch_keys(self, names: frozenset[str]) -> None:
        """From now on these keys belong to the patch, and steer the tool only together with Ctrl."""
        self._patch_keys = names

    def annotate(self, overlay: Overlay) -> None:
        """From the next picture on, this is written below it."""
        self._overlay = overlay

    def toggle_fullscreen(self) -> None:
        """Does nothing: a terminal's window is not ours."""

    def present(self, picture: Shown) -> None:
        """Shows a picture [height, width, RGBA], row 0 on top; alpha is not shown.

        A terminal that has not yet taken the last one in does not get this one, unless it is still the latest when
        the terminal is ready. Does nothing once this is closed.
        """
        self._picture = as_array(picture).copy()
        self.redraw()

    def redraw(self) -> None:
        """Shows the last picture again, with the overlay as it is."""
        if self._closed:
            return
        self._due = self._device.busy
        if not self._due:
            self._draw()

    def _draw(self) -> None:
        """Sends what differs from what the terminal shows."""
        columns, rows = self._size
        text = rows_of(self._overlay, columns, max(rows // 2, _reserved(rows)) if rows > 1 else 0)
        area = columns, 2 * (rows - max(len(text), _reserved(rows)))
        if self._picture is not None:
            self._place = letterbox((self._picture.shape[1], self._picture.shape[0]), area)
        cells = cells_of(self._picture, self._place, area[1] // 2, columns)
        lines = [painted(row, self._colourful) for row in text] or [b""] * _reserved(rows)
        parts = [draw(cells, self._cells, self._colours), b"\x1b[0m"]
        first = len(cells) + 1
        for row, line in enumerate(lines, first):
            if self._lines.get(row) != line:
                # Erased before it is written: at the last column, erasing would take the last character.
                parts.append(b"\x1b[%dH\x1b[K%b" % (row, line))
        self._cells = cells
        self._lines = dict(enumerate(lines, first))
        if parts[0] or parts[2:]:
            self._device.send(SYNCHRONIZED[0] + b"".join(parts) + SYNCHRONIZED[1])

    def _forget(self) -> None:
        """What the terminal shows is no longer known."""
        self._cells = None
        self._lines = {}
        self._due = True

    # --- what comes in --------------------------------------------------------------------------------------------

    def poll(self) -> None:
        """Takes in what happened since the last call; then hands out the commands, which may close this."""
        if self._closed:
            return
        if self._stopping:
            self._stop()
        if self._continued:
            self._continued = False
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
        """Passes an event on to the patch, or returns the command that it gives."""
        if isinstance(event, Mouse):
            self._take_mouse(event)
            return []
        if event.name in TOOL_KEYS and ("control" in event.modifiers or event.name not in self._patch_keys):
            before = self._heard_commands.get(event.name, -1.0)
            self._heard_commands[event.name] = now
            return [TOOL_KEYS[event.name]] if now - before >= _REPETITION else []
        for name in (event.name, *event.modifiers):
            self._held.heard(name, now)
        return []

    def _take_mouse(self, event: Mouse) -> None:
        place = self._place
        # The middle of the cell, which is two pixels tall.
        self.inputs.move(
            (event.column + 0.5 - place.left) / place.width, (2 * event.row + 1 - place.top) / place.height
        )
        match event.action:
            case "press":
                self.inputs.press(event.button)
            case "release":
                self.inputs.release(event.button)
            case "turn":
                self.inputs.turn(event.notches)

    def _stop(self) -> None:
        """Gives the terminal back until somebody wants to go on."""
        self._stopping = False
        self._device.leave()
        handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, handler)
        self._continued = False
        self._device.enter()
        self._forget()

    def close(self) -> None:
        """Gives the terminal back, and prints what was kept back meanwhile. May be called twice."""
        self._closed = True
        self._resources.close()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _reserved(rows: int) -> int:
    """How many of so many rows are never the picture's."""
    return 1 if rows > 1 else 0


def _on_terminate(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
