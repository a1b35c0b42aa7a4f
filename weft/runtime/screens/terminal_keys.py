"""What a terminal sends when keys are pressed and the mouse moves, and what it does not send: that a key goes up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from weft.keys import KEYS, key_name
from weft.runtime.inputs import BUTTONS, Inputs


@dataclass(frozen=True, slots=True)
class Key:
    """A key was pressed, or repeats itself. `modifiers` are names of keys that were held with it."""

    name: str
    modifiers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Mouse:
    """The mouse moved, a button went down or up, or the wheel turned by `notches`, positive away from the player.

    `column` and `row` are cells of the terminal from 0; `button` is one of `BUTTONS`.
    """

    action: Literal["move", "press", "release", "turn"]
    column: int
    row: int
    button: str = ""
    notches: float = 0.0


Event = Key | Mouse

# Escape, the key, sends what the sequences of all special keys begin with. So long it is waited for the rest.
_ALONE = 0.1
# A sequence may also be split on its way through a slow network; what is still not whole after so long is dropped.
_BROKEN_OFF = 1.0

_SEQUENCE = re.compile(rb"\x1b\[([<-?]?)([0-9;:]*)[ -/]*([@-~])")
_UNFINISHED = re.compile(rb"\x1b(\[([<-?]?[0-9;:]*[ -/]*|\[)|O[0-9;]*)?")
# The Linux console's own way to send F1 to F5.
_CONSOLE = re.compile(rb"\x1b\[\[([A-E])")
_SHORT = re.compile(rb"\x1bO([0-9;]*)([@-~])")

_BY_LETTER = {
    "A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end", "M": "enter",
    "P": "f1", "Q": "f2", "R": "f3", "S": "f4", "Z": "tab",
}  # fmt: skip
_BY_NUMBER = {
    1: "home", 2: "insert", 3: "delete", 4: "end", 5: "pageup", 6: "pagedown", 7: "home", 8: "end",
    **dict(zip((11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 23, 24), (f"f{n}" for n in range(1, 13)), strict=True)),
}  # fmt: skip
_PLAIN = {b"\t": "tab", b"\n": "enter", b"\r": "enter", b"\x7f": "backspace"}
_MODIFIERS = ("shift", "alt", "control")
# Terminals count buttons from the left one on.
_BUTTONS = (BUTTONS[0], BUTTONS[2], BUTTONS[1])
_CONTROL = frozenset({"control"})


class Decoder:
    """Turns the bytes from a terminal into events, however they are cut into pieces."""

    def __init__(self, backspace: bytes = b"\x7f") -> None:
        """`backspace` is what the key sends in this terminal. Where it is not Ctrl+H, Ctrl+H is a key of its own."""
        self._backspace = backspace
        self._waiting = b""
        self._since = 0.0

    def feed(self, data: bytes, now: float) -> list[Event]:
        """The events of these bytes. To be called without any, too, as time tells what Escape was meant to be."""
        if data:
            self._waiting += data
            self._since = now
        events: list[Event] = []
        while self._waiting:
            length, found = self._next(now - self._since)
            if not length:
                break
            self._waiting = self._waiting[length:]
            events += found
        return events

    def _next(self, silence: float) -> tuple[int, list[Event]]:
        """How many bytes make up what comes next, and what it is; 0 if that is not known yet."""
        waiting = self._waiting
        if waiting[0] != 0x1B:
            return 1, self._plain(waiting[:1])
        if _UNFINISHED.fullmatch(waiting):
            if waiting == b"\x1b":
                return (1, [Key("escape")]) if silence >= _ALONE else (0, [])
            return (len(waiting), []) if silence >= _BROKEN_OFF else (0, [])
        if match := _CONSOLE.match(waiting):
            return match.end(), [Key(f"f{match[1][0] - ord('A') + 1}")]
        if match := _SEQUENCE.match(waiting):
            return match.end(), list(_sequence(match[1], match[2], match[3].decode()))
        if match := _SHORT.match(waiting):
            return match.end(), list(_sequence(b"", match[1], match[2].decode()))
        if waiting[1:2] == b"\x1b":
            return 1, [Key("escape")]
        if waiting[1:2] in (b"[", b"O"):  # a sequence in which something else came
            return 2, []
        return 2, [Key(k.name, k.modifiers | {"alt"}) for k in self._plain(waiting[1:2]) if isinstance(k, Key)]

    def _plain(self, byte: bytes) -> list[Event]:
        """A byte that stands for itself. Letters with accents and the like bear no name, and are left out."""
        code = byte[0]
        if code == 0:
            return [Key("space", _CONTROL)]
        if byte == self._backspace:
            return [Key("backspace")]
        if name := _PLAIN.get(byte):
            return [Key(name)]
        if code <= 26:
            return [Key(chr(code + 96), _CONTROL)]
        letter = chr(code)
        found = key_name(code, letter) if 32 <= code < 127 else None
        return [Key(found, frozenset({"shift"} if letter.isupper() else ()))] if found else []


def _sequence(private: bytes, parameters: bytes, final: str) -> Iterator[Event]:
    numbers = [int(text) if text.isdigit() else 1 for text in re.split(rb"[;:]", parameters[:64])]
    if private == b"<" and final in "Mm" and len(numbers) == 3:
        yield from _mouse(numbers[0], numbers[1] - 1, numbers[2] - 1, final == "M")
    elif not private:
        name = _BY_NUMBER.get(numbers[0]) if final == "~" else _BY_LETTER.get(final)
        if name:
            held = numbers[1] - 1 if len(numbers) > 1 else 0
            modifiers = {modifier for bit, modifier in enumerate(_MODIFIERS) if held >> bit & 1}
            yield Key(name, frozenset(modifiers | ({"shift"} if final == "Z" else set())))


def _mouse(code: int, column: int, row: int, down: bool) -> Iterator[Mouse]:
    """What a report in xterm's SGR form says: bits 0 and 1 are the button, 32 is a movement, 64 the wheel."""
    yield Mouse("move", column, row)
    which = code & 3
    if code & 64:
        if which < 2 and code < 128:
            yield Mouse("turn", column, row, notches=1.0 - 2 * which)
    elif not code & 32 and which < 3 and code < 128:
        yield Mouse("press" if down else "release", column, row, _BUTTONS[which])


# How long a key counts as held: after it was pressed, until keyboards begin to repeat it; after each repetition, a few
# of which may get lost.
_BEFORE_REPEAT = 0.5
_BETWEEN_REPEATS = 0.15


class HeldKeys:
    """Says of keys when they go up, from when they were last heard of."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self._until: dict[str, float] = {}

    def heard(self, name: str, now: float) -> None:
        """A key was pressed, or repeats itself."""
        repeats = name in self._until
        self._until[name] = now + (_BETWEEN_REPEATS if repeats else _BEFORE_REPEAT)
        if not repeats:
            self._inputs.key_down(KEYS[name][0], name)

    def pass_time(self, now: float) -> None:
        """Lets go of the keys that have been silent for too long."""
        for name in [name for name, until in self._until.items() if until <= now]:
            del self._until[name]
            self._inputs.key_up(KEYS[name][0])
