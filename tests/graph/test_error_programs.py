"""Programs that mean nothing, each with the whole text of what must be said about it, warnings included."""

from pathlib import Path

import pytest

from tests.support.programs import expected_errors, rendered
from weft.contexts import ContextTable
from weft.errors import Diagnostic, Source, WeftError
from weft.runtime.compiling.stages import Request, build

FOLDER = Path(__file__).parent.parent / "programs" / "errors" / "semantic"
PROGRAMS = sorted(FOLDER.glob("*.weft"))


def diagnostics(source: Source) -> tuple[Diagnostic, ...]:
    try:
        return build(Request(source, ContextTable())).warnings
    except WeftError as failure:
        return failure.diagnostics


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_says_exactly_what_is_expected(path: Path) -> None:
    found = diagnostics(Source(path.name, path.read_text(encoding="utf-8")))
    assert rendered(found) == expected_errors(path)


def test_there_are_programs() -> None:
    assert len(PROGRAMS) >= 35
    codes = {line.rpartition("[")[2] for path in PROGRAMS for line in expected_errors(path).splitlines() if "[" in line}
    assert len(codes) >= 35
