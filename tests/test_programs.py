"""Every construct of the language has programs under `tests/programs`, which say what their strands are. Plain strands
of those with bundles are in `test_bundle_programs`."""

from pathlib import Path

import pytest

from tests.support.programs import Expectation, built, expectations, value_of
from tests.support.tolerances import DOUBLE, WRITTEN

FOLDER = Path(__file__).parent / "programs"
PROGRAMS = sorted(p for p in FOLDER.glob("*/*.weft") if p.parent.name not in ("errors", "library"))
CASES = [
    pytest.param(path, expected, id=f"{path.parent.name}/{path.stem}: {expected}")
    for path in PROGRAMS
    for expected in expectations(path.read_text(encoding="utf-8"))
    if not (path.parent.name == "bundles" and expected.is_plain)
]


@pytest.mark.parametrize(("path", "expected"), CASES)
def test_is_what_it_says(path: Path, expected: Expectation) -> None:
    made = built(path, expected)
    got = value_of(made, expected, "vm")
    assert WRITTEN.allows(got, expected.value), got
    assert DOUBLE.scaled(1e3).allows(value_of(made, expected, "vector"), got)
    assert DOUBLE.scaled(1e3).allows(value_of(built(path, expected, optimise=False), expected, "vm"), got)


def test_there_are_programs() -> None:
    assert len(PROGRAMS) >= 23
