"""The notation of patterns: rhythms that are known by name, and texts of any kind."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings, strategies as st

from tests.support.together import examples
from weft.errors import Source, Span, WeftError
from weft.graph.patterns import pattern_of
from weft.syntax.ast import Text
from weft.syntax.notation import _FOREIGN, MAX_DEPTH, euclidean, parse_pattern

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


# What other notations write, a part of the hint about it, and what that leads to.
ELSEWHERE = [
    ("bd:3 sn", "bd1 bd2", "bd3 sn"), ("bd - sn", "written ~", "bd ~ sn"), ("c4 . e4 .", "written ~", "c4 ~ e4 ~"),
    ("bd.sn", "bd sn . hh", "bd . sn"), ("c4+12", "added outside", "c4"), ("bd^3 sn", "bd@3", "bd@3 sn"),
    ("c4'maj", "[c4, e4, g4]", "[c4, e4, g4]"), ("bd & hh", "comma", "bd , hh"), ("bd; hh", "comma", "bd, hh"),
    ("bd$", "letters, digits and _", "bd_"), ("c4 f#", "f#5", "c4 f#5"), ("[bd sn]%4", "{bd sn hh}%4", "{bd sn}%4"),
    ("bd %4", "{bd sn hh}%4", "{bd}%4"), ("x=3", "only values", "3"), ("bd\\ sn", "without escapes", "bd sn"),
    ("e♭4", "eb4", "eb4"), ("f♯4", "f#4", "f#4"), ("c4 ef", "write ef4", "c4 ef4"), ("C4 e4", "write c4", "c4 e4"),
    ("c4 cis4", "write c#4", "c4 c#4"), ("c4 ees4", "write eb4", "c4 eb4"), ("c4 h4", "write b4", "c4 b4"),
    ("c4 en4", "write e4", "c4 e4"), ("c4 eflat4", "write eb4", "c4 eb4"), ("bd*[2 3]", "bd*<2 3>", "bd*<2 3>"),
    ("bd!<2 3> sn", "<[bd!2 sn] [bd!3 sn]>", "<[bd!2 sn] [bd!3 sn]>"), ("0 .. 3*2", "[0 .. 3]*2", "[0 .. 3]*2"),
    ("bd@<2 3> sn", "<[bd@2 sn] [bd@3 sn]>", "<[bd@2 sn] [bd@3 sn]>"), ("bd .. sn", "0 .. 3", "0 .. 3"),
    ("bd | sn, hh", "[bd | sn], hh*4", "[bd | sn], hh"), ("bd *2", "bd*2", "bd*2"), ("bd (3,8)", "bd(3,8)", "bd(3,8)"),
]  # fmt: skip


def text_of(pattern: str) -> Text:
    source = Source("test.weft", f'"{pattern}"')
    return Text(pattern, Span(source, 0, len(pattern) + 2))


@pytest.mark.parametrize(("typed", "hint", "meant"), ELSEWHERE)
def test_a_foreign_spelling_is_refused_with_a_hint_that_leads_to_what_was_meant(
    typed: str, hint: str, meant: str
) -> None:
    with pytest.raises(WeftError) as refused:
        parse_pattern(text_of(typed))
    assert hint in (refused.value.diagnostics[0].hint or "")
    parse_pattern(text_of(meant))


def test_every_foreign_sign_is_tried() -> None:
    assert [sign for sign in _FOREIGN if not any(sign in typed for typed, _, _ in ELSEWHERE)] == []


# What means the same, on the page of those who play it.
SAME = [
    ("c4 ef4 bf3", "60 63 58"), ("ff4 gff4", "64 65"), ("bd sn . hh hh hh", "[bd sn] [hh hh hh]"),
    ("[bd*3 . hh*2] . hh*4 cp", "[[bd*3] [hh*2]] [hh*4 cp]"), ("0 .. 3", "0 1 2 3"), ("3..0 7", "[3 2 1 0] 7"),
    ("c4 .. e4", "60 61 62 63 64"), ("-1 .. 1", "-1 0 1"), ("bd! sn", "bd bd sn"), ("bd ! ! sn", "bd bd bd sn"),
    ("bd!! sn", "bd bd bd sn"), ("bd!2! sn", "bd bd bd sn"), ("bd!2 _", "bd bd@2"), ("bd@2 !", "bd@2 bd@2"),
    ("{bd cp hh}%8", "<bd cp hh>*8"), ("{bd bd bd bd, cp cp hh}", "bd*4, <cp cp hh>*4"), ("{0 1 2}", "0 1 2"),
    ("{0 1@2}%3", "0 1@2"), ("t f t t", "t ~ t t"), ("true false", "true ~"), ("t(-3,8)", "~ t t ~ t t ~ t"),
    ("bd(-3,8,1)", "bd bd ~ bd bd ~ bd ~"), ("bd(<3 5>,8)", "<bd(3,8) bd(5,8)>"), ("bd(3,<8 5>)", "<bd(3,8) bd(3,5)>"),
    ("bd*<2 3>", "<bd*2 bd*3>"), ("bd*<2!2 3>", "<bd*2 bd*2 bd*3>"), ("bd*<2 <3 4>>", "<bd*2 bd*3 bd*2 bd*4>"),
    ("{0 1}%<2 4>", "<[0 1] [0 1 0 1]>"), ("<0 4> .. 5", "<[0 .. 5] [4 .. 5]>"), ("bd?<0.2 0.4>", "<bd?0.2 bd?0.4>"),
    ("<0 1>*<2 3>", "<[0 1] [1 0 1]>"), ("<bd . hh hh>", "<bd [hh hh]>"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SAME)
def test_two_spellings_have_the_same_events(one: str, other: str) -> None:
    assert events_of(one) == events_of(other)


def events_of(text: str) -> dict[int, list[tuple[object, ...]]]:
    """The events of each voice in twelve cycles."""
    tracks = pattern_of(text_of(text), Fraction(4), 0.0).tracks.by_source
    return {
        voice: [
            (hit.begin + by, hit.end + by, hit.value, hit.word, hit.left_out)
            for by in range(0, 12, track.cycles) for hit in track.hits if hit.begin + by < 12
        ]
        for voice, track in tracks.items() if isinstance(voice, int)
    }  # fmt: skip


def test_a_word_that_begins_as_a_foreign_note_is_a_word_where_there_are_no_notes() -> None:
    assert [*parse_pattern(text_of("cis4 h1 fn2 ef")).words] == ["cis4", "h1", "fn2", "ef"]
    with pytest.raises(WeftError, match="without its octave"):
        parse_pattern(text_of("f(3,8)"))


def test_groups_in_groups_take_no_longer_for_each() -> None:
    """A step under a suffix that takes turns is one, however often it is in the tree."""
    text = "x"
    for _ in range(MAX_DEPTH - 1):
        text = f"[{text}*<{' '.join('1' * 60)}>]"
    assert events_of(text)[0] == events_of("x")[0]


WORDS = ["bd", "c4", "eb3", "3", "0.5", "(3,8)", "*2", "é", "\t", "\\", "x", " . ", " .. ", "<2 3>", "}%", "t", "f"]
PIECES = st.sampled_from([*"[]<>(),~_*/@!?.:| -#{}%", *WORDS])


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
