"""Makes a failing program small: statements are left out, and expressions give way to their parts, for as long as the
program still fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import pairwise

from tests.support.parity.cases import Case, case_of, sound_case_of
from tests.support.parity.rule import Outcome, compare
from weft.backends.executors import Executor
from weft.errors import WeftError

# A failing test has to end before it is stopped.
_SECONDS = 40.0


def shrunk(text: str, fails: Callable[[str], bool], seconds: float = _SECONDS) -> str:
    """A smaller text that still fails, found greedily in about `seconds`. `fails` is asked about texts of any
    kind, ill-formed ones included."""
    end = time.monotonic() + seconds
    improved = True
    while improved:
        improved = False
        for smaller in _smaller(text):
            if time.monotonic() > end:
                return text
            if fails(smaller):
                text, improved = smaller, True
                break
    return text


def _smaller(text: str) -> Iterator[str]:
    """Smaller texts, those that leave out most first."""
    lines = text.splitlines()
    starts = [at for at, line in enumerate(lines) if line.startswith("spindle")]
    for start in starts:
        yield _joined(lines[:start] + lines[lines.index("}", start) + 1 :])
    for at in range(len(lines)):
        yield _joined(lines[:at] + lines[at + 1 :])
    groups = sorted(_groups(text), key=lambda group: group[0] - group[1])
    for start, end in groups:
        for plain in ("0.5", "me@x"):
            if end - start > len(plain) + 2:
                yield f"{text[:start]}({plain}){text[end:]}"
        for inner_start, inner_end in groups:
            if start < inner_start and inner_end < end:
                yield text[:start] + text[inner_start:inner_end] + text[end:]
    for start, end in _arguments(text):
        for plain in ("0", "me@x"):
            if text[start:end].strip() not in ("0", "me@x"):
                yield f"{text[:start]} {plain}{text[end:]}"


def _joined(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


def _groups(text: str) -> Iterator[tuple[int, int]]:
    """Where expressions in parentheses stand, with the name of the function in front, if there is one."""
    opened: list[int] = []
    for at, character in enumerate(text):
        if character == "(":
            start = at
            while start and (text[start - 1].isalnum() or text[start - 1] == "_"):
                start -= 1
            opened.append(start)
        elif character == ")" and opened:
            yield opened.pop(), at + 1


def _arguments(text: str) -> Iterator[tuple[int, int]]:
    """Where arguments stand: what commas, parentheses and brackets enclose."""
    marks = [at for at, character in enumerate(text) if character in ",()<>[]\n"]
    for start, end in pairwise(marks):
        if text[start] in ",(" and text[end] in ",)" and end > start + 1:
            yield start + 1, end


def report(case: Case, executor: Executor, outcome: Outcome, heading: str) -> str:
    """What there is to know about a failure: the program, where it differs, and the same of a program made smaller."""

    def outcome_of(text: str) -> Outcome | None:
        try:
            return compare(sound_case_of(text) if case.is_sound else case_of(text), executor)
        except (WeftError, ValueError):
            return None

    def fails(text: str) -> bool:
        found = outcome_of(text)
        return found is not None and bool(found.unexplained)

    small = shrunk(case.text, fails)
    found = outcome_of(small)
    parts = [f"{heading}: {len(outcome.unexplained)} values are not explained", case.text, _listed(outcome)]
    if found is not None and small != case.text:
        parts += ["A smaller program that does the same:", small, _listed(found)]
    return "\n".join(parts)


def _listed(outcome: Outcome) -> str:
    return "\n".join(f"  {difference}" for difference in outcome.unexplained[:3]) + "\n"
