"""No text makes the parser crash or hang, and what it says can be printed."""

import random
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import Report, Source
from weft.syntax.dump import dump
from weft.syntax.parser import MAX_ERRORS, parse
from weft.syntax.tokens import KEYWORDS

PROGRAMS = Path(__file__).parent.parent / "programs"
TEXTS = [path.read_text(encoding="utf-8") for path in sorted(PROGRAMS.rglob("*.weft"))]

WORDS = [*KEYWORDS, "a", "f", "display"]
SYMBOLS = [*"()[]{}<>,;:=@~.+-*/%^!&|?#\"'\\", "::", "==", "<=", ">=", "<<", ">>", ">>=", "+=", "//", "/*", "*/", "///"]
OTHER = ["1", ".5", "1e3", "2x", '"text"', "#fade", "#slider", "\n", "\n\n", " ", "\r", "\ufeff", "é", "“", "×", "😀"]
PHRASES = ["a<v> = ", "me@x", "me<bpm> = ", "f(x)::", "spindle s(x) :: y {", "for i in (0 to 3) {", "if a then b else "]

token_soup = st.lists(st.sampled_from([*WORDS, *SYMBOLS, *OTHER, *PHRASES]), max_size=60).map(" ".join)
glued_soup = st.lists(st.sampled_from([*SYMBOLS, *OTHER, "a", "1"]), max_size=60).map("".join)


def _check(text: str) -> None:
    report = Report()
    program = parse(Source("patch.weft", text), report)
    assert len(report.diagnostics) <= MAX_ERRORS
    for diagnostic in report:
        assert diagnostic.span is not None
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(text)
        assert diagnostic.render()
        assert diagnostic.message.startswith("U+") or not diagnostic.message[0].isupper()
        assert not diagnostic.message.endswith(".")
    assert dump(program) is not None


@settings(deadline=5000, max_examples=300)
@given(token_soup)
def test_token_soup(text: str) -> None:
    _check(text)


@settings(deadline=5000, max_examples=300)
@given(glued_soup)
def test_glued_soup(text: str) -> None:
    _check(text)


@settings(deadline=5000, max_examples=100)
@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    _check(text)


def _mutated(text: str, chance: random.Random) -> str:
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


@settings(deadline=5000, max_examples=300)
@given(st.sampled_from(TEXTS), st.randoms(use_true_random=False))
def test_mutated_programs(text: str, chance: random.Random) -> None:
    _check(_mutated(text, chance))
