"""Text from outside in what weft says: nothing moves a cursor, carets stay in their columns, nothing is too long. And
words that weft's own prose does without."""

from __future__ import annotations

import io
import pickle
import re
import tokenize
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pyte
import pytest
from hypothesis import example, given, strategies as st

import weft
from weft.errors import (
    LONGEST_LINE, LONGEST_MESSAGE, LONGEST_WORD, MOST_SHOWN, Diagnostic, Report, Source, SourceLine, Span, WeftError,
    columns, did_you_mean, event_fields, fitting, foremost, path_of, steps_of, visible
)

EVIL = "\x1b[2J\x9b31m\r\x7f\u202e\u2066\u200b\ufeff\u2028\ud800\0"
LIMIT = LONGEST_MESSAGE + 1


def terminal_lines(text: str) -> list[str]:
    """What a terminal makes of a text."""
    screen = pyte.Screen(200, 12)
    pyte.Stream(screen).feed(text.replace("\n", "\r\n"))
    return list(screen.display)


def problem(text: str, part: str, message: str = "this is wrong") -> Diagnostic:
    start = text.index(part)
    return Diagnostic("error", "code", message, Span(Source("a.weft", text), start, start + len(part)))


def numbered(count: int, severity: str = "error") -> list[Diagnostic]:
    return [Diagnostic(severity, "code", f"number {n}") for n in range(count)]  # type: ignore[arg-type]


# --- what cannot be seen ----------------------------------------------------------------------------------------------


def test_what_cannot_be_seen_is_shown_as_its_escape() -> None:
    assert visible("a b") == "a b"
    assert visible("\x1b[31m\r\x9b\u202e\U000e0001") == "\\x1b[31m\\r\\x9b\\u202e\\U000e0001"


@given(st.text(), st.text(), st.text(min_size=1), st.data())
def test_nothing_in_a_diagnostic_moves_the_cursor(name: str, message: str, text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    span = Span(Source(name, text), start, data.draw(st.integers(start, len(text))))
    found = Diagnostic("error", message, message, span, message, ((span, message),))
    assert all(c.isprintable() or c in "\n\t" for c in found.render())
    assert found.render().count("\n") == 5 + bool(message)


@pytest.mark.parametrize(
    "before",
    ["", "\t\t", "世界 🙂", "e\u0301" * 5, "각", EVIL, "x" * 300, "世" * 99, "\t" + "世\x1b" * 50, "a" * 9 + "世" * 90],
)
@pytest.mark.parametrize("behind", ["", "世" * 100, " x" * 200])
def test_the_carets_stand_under_their_place(before: str, behind: str) -> None:
    found = problem(f"{before}wrong{behind}", "wrong")
    lines = terminal_lines(found.render())
    line, carets = next((a, b) for a, b in pairwise(lines) if "^" in b)
    # The emulator leaves out the right halves of wide characters.
    at = carets.index("^")
    shown = columns(line.rstrip())
    assert "".join(shown[at : at + 5]) == "wrong"
    assert carets.count("^") == 5
    assert len(columns(found.render().split("\n")[1], 8)) <= LONGEST_LINE + len("1 | ") + 3 * 8


@given(st.text(), st.data())
def test_a_line_is_cut_around_its_place(text: str, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(text)))
    last = data.draw(st.integers(first, len(text)))
    width = data.draw(st.integers(4, 40))
    shown, indentation, length = SourceLine(1, text, first, last).excerpt(width)
    assert len(columns(shown)) <= width
    assert length >= 1
    assert len(indentation) + length <= width + 1


# --- lengths ----------------------------------------------------------------------------------------------------------


def test_a_long_name_is_cut_in_the_middle() -> None:
    name = "".join(chr(ord("a") + n % 26) for n in range(5000))
    found = Diagnostic("error", "code", f'there is no strand "{name}"', hint=f"write {name}(…)")
    for text in (found.message, found.hint or ""):
        assert len(text) < LONGEST_WORD + 40
        assert "…" in text
    assert found.message.endswith(f'{name[-10:]}"')


def test_the_path_of_a_file_is_shown_whole_if_it_can_be_read() -> None:
    path = "/".join(["folder"] * 20) + "/a.weft"
    assert path in fitting(f"{path} cannot be read")
    assert len(path_of("x/" * 3000)) < 300


@given(st.text())
@example("0" * 35 + " " + "0" * 11)  # the cut makes one word of two
@example("0" * 200 + "/" + "0" * 200 + " ")  # the cut removes the slash by which a path is known
def test_a_message_that_was_cut_is_not_cut_again(text: str) -> None:
    assert len(fitting(text * 40)) < LIMIT
    assert fitting(fitting(text * 40)) == fitting(text * 40)


def test_a_chain_shows_its_ends_and_how_many_are_left_out() -> None:
    assert steps_of(["a", "b", "a"]) == "a → b → a"
    assert steps_of([f"n{n}" for n in range(5001)]) == "n0 → n1 → n2 → n3 → … 4,994 more … → n4998 → n4999 → n5000"


def test_of_many_places_the_first_are_kept_and_the_others_counted() -> None:
    span = Span(Source("a.weft", "a\n" * 500), 0, 1)
    found = Diagnostic("error", "code", "a circle", span, related=tuple((span, f"step {n}") for n in range(400)))
    assert len(found.related) < 10
    assert f"{400 - len(found.related)} more places" in found.render()


# --- many -------------------------------------------------------------------------------------------------------------


def test_errors_are_shown_before_warnings_and_in_their_order() -> None:
    found = [*numbered(2 * MOST_SHOWN, "warning"), *numbered(3), *numbered(9, "warning")]
    shown, left_out = foremost(found)
    assert len(shown) == MOST_SHOWN
    assert left_out == len(found) - MOST_SHOWN
    assert [d.severity for d in shown[-3:]] == ["error"] * 3
    assert [found.index(d) for d in shown] == sorted(found.index(d) for d in shown)


def test_an_event_says_how_many_it_leaves_out() -> None:
    assert set(event_fields(numbered(MOST_SHOWN))) == {"diagnostics"}
    fields = event_fields(numbered(MOST_SHOWN + 7))
    assert fields["left_out"] == 7
    assert len(fields["diagnostics"]) == MOST_SHOWN  # type: ignore[arg-type]


def test_a_report_takes_nothing_twice() -> None:
    report = Report(numbered(2))
    report.add(numbered(3))
    assert report.diagnostics == numbered(3)


def test_an_exception_keeps_its_diagnostics_on_the_way_to_another_process() -> None:
    failure = pickle.loads(pickle.dumps(WeftError(*numbered(3))))
    assert failure.diagnostics == tuple(numbered(3))
    assert "number 2" in str(failure)
    assert len(str(WeftError(*numbered(5000)))) < 10_000


@pytest.mark.parametrize("unknown", ["strnd_name_1234", "strand_nmae_1234", "srtand_name_1234", "strand_name1234"])
def test_the_nearest_of_many_similar_names_is_suggested(unknown: str) -> None:
    known = [f"strand_name_{n}" for n in range(2000)]
    assert did_you_mean(unknown, known) == 'did you mean "strand_name_1234"?'


# --- the prose of weft itself -----------------------------------------------------------------------------------------

# What was read twice before it was understood: say who or what it is, how many, or "again", "from scratch".
AVOIDED = re.compile(r"\b(anew|somebody|whoever|as far as|so many|from nothing)\b", re.IGNORECASE)


def prose(text: str) -> Iterator[str]:
    """Comments and docstrings of a module."""
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or (
            token.type == tokenize.STRING and before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
        ):
            yield token.string
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            before = token.type


def test_prose_does_without_words_that_are_read_twice() -> None:
    folder = Path(weft.__file__).parent
    found = {
        f"{path.relative_to(folder)}: {match[0]}"
        for path in folder.rglob("*.py")
        for part in prose(path.read_text("utf-8"))
        for match in AVOIDED.finditer(" ".join(part.split()))
    }
    assert found == set()
    assert list(prose('"""A."""\nx = """b"""\n# C.\n')) == ['"""A."""', "# C."]
