"""Tokens: the text of a patch as a string with one character a token, and where each token stands.

The grammar is written over that string of kinds. White space, comments, keywords and the spelling of numbers are
settled before it is consulted, a position in the string is a token, and one regular expression can take a whole
run of tokens.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from weft.errors import Source, Span
from weft.wording import LONGEST_QUOTE

# The kinds. Punctuation that is not listed stands for itself: ( ) [ ] { } , ; : = < > - @ ~ and the dot.
NAME: Final = "n"
NUMBER: Final = "0"
TEXT: Final = "s"
OPERATOR: Final = "o"  # a binary operator, other than the ones that have further meanings: - < >
GLUED: Final = "g"  # a > directly before a > or =; whether they are one operator, only the grammar can tell
BECOMES: Final = "a"  # += -= *= /=
BINDS: Final = "d"  # ::
PRAGMA: Final = "P"  # # and the word behind it
PRAGMA_END: Final = "p"
BROKEN: Final = "x"  # what no rule takes; it has been reported
END: Final = "Z"

KEYWORDS: Final[Mapping[str, str]] = {
    "spindle": "S", "if": "I", "then": "T", "else": "E", "or": OPERATOR, "and": OPERATOR, "not": "N",
    "for": "F", "in": "i", "to": "t", "out": "O", "let": "L", "me": "M",
}  # fmt: skip

# What an operand can end with. A > may also be an operator; `diagnose` knows which.
OPERAND_ENDS: Final = "n0s)]"


def shorten(text: str) -> str:
    """The text as a message can show it."""
    return text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1] + "…"


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of one text. A statement boundary that the layout shows is a `;` of no width."""

    source: Source
    kinds: str
    starts: Sequence[int]
    ends: Sequence[int]
    fresh: Sequence[bool]
    """Whether a token is the first on its line."""
    partners: Mapping[int, int]
    """The closing bracket of each opening one that has one; angle brackets are not among them."""
    broken: Sequence[int]
    """Tokens that an error was reported for, in order."""
    repairs: Mapping[int, str]
    """What a mistyped operator is read as, by its offset."""
    docs: Mapping[int, str]
    """Doc texts, by the offset of the token below them."""
    depth: int
    """The deepest nesting."""

    def text(self, index: int) -> str:
        start = self.starts[index]
        if start in self.repairs:
            return self.repairs[start]
        return self.source.text[start : self.ends[index]]

    def span(self, first: int, last: int | None = None) -> Span:
        """The span of a token, or of all from `first` to `last`."""
        return Span(self.source, self.starts[first], self.ends[first if last is None else last])

    def after(self, index: int) -> Span:
        """The place directly behind a token, where something is missing."""
        return Span(self.source, self.ends[index], self.ends[index])

    def is_broken(self, first: int, behind: int) -> bool:
        """Whether an error was reported for one of the tokens `first … behind - 1`."""
        found = bisect_left(self.broken, first)
        return found < len(self.broken) and self.broken[found] < behind
