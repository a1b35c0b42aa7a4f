"""Texts in the middle of typing: programs after slips of the hand."""

from __future__ import annotations

import random
import re
from pathlib import Path

from weft.syntax.scanner import KEYWORDS

_ROOT = Path(__file__).parents[2]

WORDS = [*KEYWORDS, "a", "f", "display"]
SYMBOLS = [*"()[]{}<>,;:=@~.+-*/%^!&|?#\"'\\", "::", "==", "<=", ">=", "<<", ">>", ">>=", "+=", "//", "/*", "*/", "///"]
OTHER = ["1", ".5", "1e3", "2x", '"text"', "#fade", "#slider", "\n", "\n\n", " ", "\r", "\ufeff", "é", "“", "×", "😀"]
PHRASES = ["a<v> = ", "me@x", "me<bpm> = ", "f(x)::", "spindle s(x) :: y {", "for i in (0 to 3) {", "if a then b else "]

# What is written after a value, where a bundle may be taken apart or passed on.
_BEHIND = ["@x", "@yx", "@rgb", "@l", "[0]", "[2]", "[me@x * 3]", "[<0, 1>]", " |> sum()", " |> length()", " |> f(1)",
           "(me@x ~ <0, 1>)", "(0.5)", "::b<x, y>"]  # fmt: skip

# What a value becomes, such as a bundle or what is made of one.
_AROUND = ["<{}, 1>", "({}, 1, me@y)", "<{} for i in (1 to 2)>", "prev({})", "delay({}, <1, 2>, 3)", "join({}, 1)",
           "unit({})", "reverse({})", "seq({}, 1.5)", "seq(<1, 2>, {})", "cross({}, <1, 2, 3>)", "dot({}, <1, 2>)",
           "max({})", "count({})", "(if {} then <1, 2> else 0)", "integrate({})", "-{}"]  # fmt: skip

NUMBERS = ["0", "-1", "1e9", "1e300", "1e-30", "16", "17", "4096", "5000", "0.5", "60000000"]

# Values, which may take each other's places: strands and numbers.
_VALUES = re.compile(r"[A-Za-z_]\w*@\w+|(?<![\w.])\d+(?:\.\d+)?\b")

# These, and bare names.
_NAMED = re.compile(r"[A-Za-z_]\w*(?:@\w+)?(?![\w<(])|(?<![\w.])\d+(?:\.\d+)?\b")


def programs(*folders: str) -> dict[Path, str]:
    """The texts of all programs in some folders of the project, by their paths."""
    return {
        path: path.read_text(encoding="utf-8")
        for folder in folders
        for path in sorted((_ROOT / folder).rglob("*.weft"))
    }


def mutated(text: str, chance: random.Random) -> str:
    """A program after a slip of the hand: something cut out, doubled, moved or put in."""
    for _ in range(chance.randint(1, 4)):
        start = chance.randrange(len(text) + 1)
        end = min(len(text), start + chance.randint(0, 12))
        part = text[start:end]
        match chance.randrange(4):
            case 0:
                text = text[:start] + text[end:]
            case 1:
                text = text[:start] + part + text[start:]
            case 2:
                text = text[:start] + chance.choice([*WORDS, *SYMBOLS, *OTHER, *PHRASES]) + text[start:]
            case _:
                place = chance.randrange(len(text) + 1)
                text = text[:place] + part + text[place:]
    return text


def exchanged(text: str, chance: random.Random) -> str:
    """A program in which strands and numbers have taken the places of others. Most of these compile, or nearly."""
    for _ in range(chance.randint(1, 3)):
        values = list(_VALUES.finditer(text))
        if not values:
            return text
        value, other = chance.choice(values), chance.choice(values)[0]
        new = chance.choice([other, other, f"({other} * {value[0]})", chance.choice(NUMBERS)])
        text = text[: value.start()] + new + text[value.end() :]
    return text


def rebundled(text: str, chance: random.Random) -> str:
    """A program in which values have become bundles, or are read as bundles."""
    for _ in range(chance.randint(1, 3)):
        values = list(_NAMED.finditer(text))
        if not values:
            return text
        value = chance.choice(values)
        new = value[0] + chance.choice(_BEHIND) if chance.random() < 0.5 else chance.choice(_AROUND).format(value[0])
        text = text[: value.start()] + new + text[value.end() :]
    return text
