"""Characters that look like something on a keyboard but are not: what a chat or a text processor makes of code."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# Everything that people mistake for the straight double quote.
QUOTES: Final = "'`´“”„‟«»‘’‚‛"

_MEANT: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys("−–—‐‑", "-"),
        **dict.fromkeys("×⋅·∙•∗✕", "*"),
        **dict.fromkeys("÷∕⁄", "/"),
        **dict.fromkeys("⟨‹〈", "<"),
        **dict.fromkeys("⟩›〉", ">"),
        "≤": "<=", "≥": ">=", "≠": "!=", "∧": "and", "∨": "or", "¬": "not", "ˆ": "^", "∼": "~", "˜": "~",
        "π": "pi", "τ": "tau", "²": "^2", "³": "^3",
    }
)  # fmt: skip


def meant(text: str) -> str | None:
    """What to type instead, in ASCII; None if that is not clear."""
    letters = [c if c.isascii() else _MEANT.get(c) or _plain(c) for c in text]
    return "".join(letters) if all(letters) else None


def _plain(character: str) -> str:
    """The character without accents, width and style, if ASCII is left then."""
    decomposed = unicodedata.normalize("NFKD", character)
    letters = "".join(c for c in decomposed if not unicodedata.combining(c))
    return letters if len(letters) == 1 and letters.isascii() and letters.isprintable() else ""


def describe(character: str) -> str:
    """The character itself if it can be seen, and its number."""
    number = f"U+{ord(character):04X}"
    is_visible = character.isprintable() and not character.isspace()
    if not is_visible:
        return number
    return f"`{character}`" if character.isascii() else f"`{character}` ({number})"
