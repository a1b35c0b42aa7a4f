"""The notation of patterns: rhythms that are known by name, and texts of any kind."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings, strategies as st

from tests.support.together import examples
from weft.errors import Source, Span, WeftError
from weft.syntax.ast import Text
from weft.syntax.patterns import euclidean, parse_pattern

# The rhythms of Toussaint's table, which begins some of them at another hit.
RHYTHMS = {
    (1, 2): "x.", (1, 3): "x..", (2, 3): "x.x", (1, 4): "x...", (3, 4): "x.xx", (2, 5): "x.x..", (3, 5): "x.x.x",
    (4, 5): "x.xxx", (3, 7): "x.x.x..", (4, 7): "x.x.x.x", (5, 7): "x.xx.xx", (3, 8): "x..x..x.", (5, 8): "x.xx.xx.",
    (7, 8): "x.xxxxxx", (4, 9): "x.x.x.x..", (5, 9): "x.x.x.x.x", (7, 9): "x.xxx.xxx", (4, 11): "x..x..x..x.",
    (5, 11): "x.x.x.x.x..", (5, 12): "x..x.x..x.x.", (7, 12): "x.xx.x.xx.x.", (5, 16): "x..x..x..x..x...",
    (7, 16): "x..x.x.x..x.x.x.", (9, 16): "x.xx.x.x.xx.x.x.", (11, 24): "x..x.x.x.x.x..x.x.x.x.x.",
    (13, 24): "x.xx.x.x.x.x.xx.x.x.x.x.",
}  # fmt: skip


def shown(steps: tuple[bool, ...]) -> str:
    return "".join("x" if step else "." for step in steps)


@pytest.mark.parametrize(("hits", "count"), RHYTHMS)
def test_a_rhythm_is_the_known_one(hits: int, count: int) -> None:
    written = RHYTHMS[hits, count]
    turns = {written[k:] + written[:k] for k in range(count)}
    found = shown(euclidean(hits, count))
    assert found in turns
    assert found[0] == "x"
    if hits < count - 1:
        assert found == written


def test_rhythms_are_as_even_as_can_be() -> None:
    for count, hits in product(range(1, 33), range(33)):
        if hits > count:
            continue
        steps = euclidean(hits, count)
        assert (len(steps), sum(steps)) == (count, hits)
        at = [place for place, step in enumerate(steps) if step]
        # From each hit to those after it, as many steps as a straight line has between whole numbers, or one more.
        for start, ahead in product(range(hits), range(1, hits)):
            distance = (at[(start + ahead) % hits] - at[start]) % count
            assert distance in {ahead * count // hits, -(-ahead * count // hits)}


def test_a_rotation_begins_at_a_later_step() -> None:
    assert shown(euclidean(3, 8, 2)) == ".x..x.x."
    assert shown(euclidean(3, 8, -1)) == ".x..x..x"
    assert euclidean(3, 8, 16) == euclidean(3, 8)


WORDS = ["bd", "c4", "eb3", "3", "0.5", "(3,8)", "*2", "é", "\t", "\\", "x"]
PIECES = st.sampled_from([*"[]<>(),~_*/@!?.:| -#{}", *WORDS])


@settings(max_examples=examples(400), deadline=None)
@given(st.lists(PIECES, max_size=14).map("".join))
def test_any_text_is_parsed_or_refused_at_a_place_in_it(text: str) -> None:
    before = 'a = pattern("'
    source = Source("test.weft", f'{before}{text}")@value\n')
    literal = Span(source, len(before) - 1, len(before) + len(text) + 1)
    try:
        parse_pattern(Text(text, literal))
    except WeftError as refused:
        (diagnostic,) = refused.diagnostics
        assert diagnostic.span is not None
        assert literal.start <= diagnostic.span.start < diagnostic.span.end <= literal.end
