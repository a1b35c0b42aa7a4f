"""Ill-formed programs, each with the whole text of what must be said about it."""

from pathlib import Path

import pytest

from tests.support.programs import expected_errors, rendered
from weft.errors import Report, Source
from weft.syntax.parser import parse

FOLDER = Path(__file__).parent.parent / "programs" / "errors" / "syntax"
PROGRAMS = sorted(FOLDER.glob("*.weft"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_says_exactly_what_is_expected(path: Path) -> None:
    report = Report()
    parse(Source(path.name, path.read_text(encoding="utf-8")), report)
    assert rendered(report) == expected_errors(path)


def test_there_are_programs() -> None:
    assert len(PROGRAMS) >= 45
