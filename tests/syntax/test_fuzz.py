"""No text makes the parser crash or hang, and what it says can be printed."""

import random

from hypothesis import given, settings, strategies as st

from tests.support.mutations import OTHER, PHRASES, SYMBOLS, WORDS, mutated, programs
from tests.support.together import examples
from weft.errors import Report, Source
from weft.syntax.ast import dump
from weft.syntax.parser import MAX_ERRORS, parse

TEXTS = list(programs("tests/programs").values())

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


@settings(deadline=5000, max_examples=examples(300))
@given(token_soup)
def test_token_soup(text: str) -> None:
    _check(text)


@settings(deadline=5000, max_examples=examples(300))
@given(glued_soup)
def test_glued_soup(text: str) -> None:
    _check(text)


@settings(deadline=5000, max_examples=examples(100))
@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    _check(text)


@settings(deadline=5000, max_examples=examples(300))
@given(st.sampled_from(TEXTS), st.randoms(use_true_random=False))
def test_mutated_programs(text: str, chance: random.Random) -> None:
    _check(mutated(text, chance))
