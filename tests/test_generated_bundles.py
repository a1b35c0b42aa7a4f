"""Generated programs with bundles are what the same programs are without: each member is written out there as a strand
of its own.

`WEFT_PARITY=20000` tries this many programs, different from the usual ones.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.support.kernels import closed_hashes
from tests.support.parity.bundles import PICTURES, BundleAuthor, bundled, bundled_sound
from tests.support.parity.cases import REFUSED, SHORT_MOMENTS, Case, case_of, sound_case_of
from tests.support.together import all_but, examples
from tests.support.tolerances import EXACT
from weft.errors import WeftError
from weft.ops import WORDS

ASKED = int(os.environ.get("WEFT_PARITY", "0"))
FIRST, COUNT, CHUNK = (1_000_000, ASKED, 20) if ASKED else (0, 80, 20)


# Spindles are also checked for arguments about which nothing is known, not even names that come from them.
NAMES_UNKNOWN = frozenset({"unknown-output"})


def picture(text: str) -> Case:
    return case_of(text, shape=(2, 5))


def sound(text: str) -> Case:
    return sound_case_of(text, SHORT_MOMENTS)


WRITERS: dict[str, tuple[Callable[[int], tuple[str, str]], Callable[[str], Case]]] = {
    "pictures": (bundled, picture), "sounds": (bundled_sound, sound),
}  # fmt: skip


class Drawn:
    """Chance by hypothesis, which makes a failing program small."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self._draw = draw

    def pick(self, choices: Sequence[Any]) -> Any:
        return choices[self._draw(st.integers(0, len(choices) - 1))]


@st.composite
def bundled_texts(draw: Any) -> tuple[str, str]:
    """A picture with bundles, and the same written out."""
    return BundleAuthor(Drawn(draw)).program(PICTURES)


@pytest.mark.parametrize(
    ("kind", "start"),
    [*all_but(1, (("pictures", start) for start in range(FIRST, FIRST + COUNT, CHUNK))),
     *all_but(0, (("sounds", start) for start in range(FIRST, FIRST + COUNT, CHUNK)))],
)  # fmt: skip
def test_members_are_what_they_are_written_out(kind: str, start: int) -> None:
    write, case = WRITERS[kind]
    told = Counter(compared(*write(seed), case) for seed in range(start, start + CHUNK))
    assert told["refused"] <= CHUNK // 5
    assert told["same code"] > 2 * told["other code"]


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(texts=bundled_texts())
def test_small_programs(texts: tuple[str, str]) -> None:
    compared(*texts, picture)


def compared(text: str, written_out: str, case: Callable[[str], Case]) -> str:
    """What the comparison of two texts says. Fails if they do not give the same, and if only the first is refused."""
    both = f"{text}\n{written_out}"
    try:
        made = case(text)
    except WeftError as failure:
        if {diagnostic.code for diagnostic in failure.diagnostics} <= {*REFUSED, *NAMES_UNKNOWN}:
            return "refused"
        raise AssertionError(f"{failure}\n{both}") from failure
    try:
        expected = case(written_out)
    except WeftError as failure:
        raise AssertionError(f"{failure}\n{both}") from failure
    assert EXACT.agreement(made.expected, expected.expected).all(), both
    if made.kernel.slots:
        return "remembers"
    return "same code" if closed_hashes(text) == closed_hashes(written_out) else "other code"


def test_programs_have_everything() -> None:
    text = "\n".join(bundled(seed)[0] for seed in range(150))
    assert all(f"{word}(" in text for word in WORDS)
    for form in (
        r"^q\d = ", r"^q\d<r, g, b> = ", r"::q\d<\w", r"<2>\(", r"@(yx|xy|bgr|xx)\b", r"\[\(fract", r" \|> f0\(",
        r"<.* for i\d+ in \(-1 to 1\)>", r"p\d<x, y>", r"p\d = ", r"p\d@x [+*-]?=", r"\(me@x ~ <",
        r"prev\(q\d@", r", f\dp\d: ",
    ):  # fmt: skip
        assert re.search(form, text, re.MULTILINE), form


def test_programs_are_the_same_every_time() -> None:
    assert [bundled(seed) for seed in range(8)] == [bundled(seed) for seed in range(8)]
