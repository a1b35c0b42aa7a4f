"""The names of keys and mouse inputs that a patch writes after `key@` and `mouse@`, those of gamepads, and the keys
that control the tool.

The numbers are GLFW's, which its interface guarantees; no device library is imported here, so that the language knows
the names without one.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

# Keys of letters and digits: their GLFW numbers are the ASCII codes of the upper-case letters and the digits.
_LETTERS_AND_DIGITS = {c: (ord(c.upper()),) for c in string.ascii_lowercase + string.digits}

# A name may belong to several keys: both shift keys are `shift`.
_NAMED = {
    "space": (32,), "enter": (257, 335), "escape": (256,), "tab": (258,), "backspace": (259,), "insert": (260,),
    "delete": (261,), "right": (262,), "left": (263,), "down": (264,), "up": (265,), "pageup": (266,),
    "pagedown": (267,), "home": (268,), "end": (269,), "shift": (340, 344), "control": (341, 345), "alt": (342, 346),
    "apostrophe": (39,), "comma": (44,), "minus": (45,), "period": (46,), "slash": (47,), "semicolon": (59,),
    "equal": (61,), "leftbracket": (91,), "backslash": (92,), "rightbracket": (93,), "grave": (96,),
}  # fmt: skip
_FUNCTION_KEYS = {f"f{n}": (289 + n,) for n in range(1, 13)}

KEYS: Mapping[str, tuple[int, ...]] = MappingProxyType({**_LETTERS_AND_DIGITS, **_NAMED, **_FUNCTION_KEYS})
"""Every key's name, with the GLFW numbers of the keys that have it."""


class InputSpec(NamedTuple):
    """The documentation of an input by hand: one sentence, and an example."""

    doc: str
    example: str


MOUSE: Mapping[str, InputSpec] = MappingProxyType({
    "x": InputSpec("where the mouse is, from left to right, 0…1", "abs(me@x - mouse@x)"),
    "y": InputSpec("where the mouse is, from top to bottom, 0…1", "abs(me@y - mouse@y)"),
    "down": InputSpec("1 while any button is held, else 0", "0.1 + 0.2 * mouse@down"),
    "left": InputSpec("1 while the left button is held, else 0", "if mouse@left then me@x else me@y"),
    "right": InputSpec("1 while the right button is held, else 0", "if mouse@right then me@x else me@y"),
    "wheel": InputSpec("turns of the wheel so far, counted up away from you", "sin(me@x * (10 + mouse@wheel))"),
})
"""The inputs that a patch may write after `mouse@`."""

ANY_KEY = InputSpec("1 while the key is held, else 0", "if key@space then 1 else me@x")
"""The input `key@a`, for any key."""

PAD_AXES = ("lx", "ly", "rx", "ry", "lt", "rt")
"""The sticks and triggers of a gamepad, in GLFW's order."""

PAD_BUTTONS = ("a", "b", "x", "y", "lb", "rb", "back", "start", "guide", "ls", "rs", "up", "right", "down", "left")
"""The buttons of a gamepad, in GLFW's order."""

_NAME_OF_NUMBER = {number: name for name, numbers in KEYS.items() for number in numbers}
_NAME_OF_LABEL = {
    **{c: c for c in _LETTERS_AND_DIGITS},
    **{chr(numbers[0]): name for name, numbers in _NAMED.items() if 32 < numbers[0] < 127},
}

TOOL_KEYS: Mapping[str, str] = MappingProxyType({
    "f": "fullscreen", "space": "pause", "r": "restart", "t": "tap", "s": "screenshot", "c": "record", "e": "errors",
    "h": "figures", "v": "source", "w": "pins", "n": "numbers", "p": "panel", "pagedown": "next", "pageup": "previous",
    "escape": "leave",
})  # fmt: skip
"""The keys that control the tool, each with its command."""

CONTROL_KEYS: Mapping[str, str] = MappingProxyType({"enter": "write"})
"""The keys that control the tool only together with Ctrl, each with its command."""


def key_name(number: int, label: str | None = None) -> str | None:
    """The name of the key with this GLFW number, or None for one without a name.

    `label` is the character that the player's keyboard layout types with it. A known character wins: GLFW numbers a key
    by its place on a US keyboard, but a player looks at what is printed on it.
    """
    name = _NAME_OF_LABEL.get(label.lower()) if label and number < 128 else None
    return name or _NAME_OF_NUMBER.get(number)
