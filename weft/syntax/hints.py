"""How things are written: the hints that several explanations give."""

from __future__ import annotations

from typing import Final

BUNDLE: Final = "several values stand in a bundle: <a, b>"
CHOICE: Final = "a choice is written: if condition then a else b"
LOOP: Final = "a loop is written: for i in (0 to 7) { … }"
REMAP: Final = "img@r(me@x ~ me@x + 0.1)"
SETTING: Final = "a setting is written: me<bpm> = 120"
SPINDLE: Final = "a spindle is written: spindle name(a, b) :: <out> { … }"
STATEMENT: Final = "a statement starts with a name, as in a = … or display(…)"
USE: Final = "give it a name (a = …) or put it out (display(…))"
