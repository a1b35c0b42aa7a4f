"""Names for the values of a program: identifiers made of what the patch calls them, each once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

_LONGEST = 32
# No program of GLSL may define a name that begins like this.
_PRIVATE = "gl_"
_LONGEST_REMARK = 100


def identifier(name: str) -> str:
    """What of a name a language like C takes: `flow@x` is `flow_x`."""
    text = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")[:_LONGEST].strip("_")
    return f"v{text}" if not text or text[0].isdigit() or text.startswith(_PRIVATE) else text


def remark(text: str, longest: int = _LONGEST_REMARK) -> str:
    """What can stand in a comment: one line, which no backslash joins to the next; cut where it is long."""
    line = " ".join(text.split()).replace("\\", "/")
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


class Identifiers:
    """Identifiers that are taken, and new ones."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = set(reserved)

    def take(self, name: str) -> None:
        """Keeps an identifier from being given."""
        self._taken.add(name)

    def new(self, name: str) -> str:
        """An identifier for a name; with a number behind it, if it is taken."""
        return self.unique(identifier(name))

    def unique(self, base: str, others: Callable[[str], Iterable[str]] = lambda name: ()) -> str:
        """An identifier as it is; with a number after it, if it or one of the `others` that go with it is taken."""
        made, count = base, 1
        while not self._taken.isdisjoint((made, *others(made))):
            count += 1
            made = f"{base}_{count}"
        self._taken.add(made)
        return made
