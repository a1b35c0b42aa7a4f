"""The programs of the tests on Windows: machine code computes what they say. The other machines are tried by
`tests/test_programs.py`, which runs there as well."""

from __future__ import annotations

import pytest

from tests.support.programs import built, value_of
from tests.support.tolerances import SINGLE
from tests.test_programs import CASES
from tests.windows.processes import on_windows

pytestmark = on_windows


@pytest.mark.parametrize(("path", "expected"), CASES)
def test_machine_code_computes_what_a_program_says(path, expected) -> None:
    made = built(path, expected)
    assert SINGLE.scaled(10).allows(value_of(made, expected, "native"), value_of(made, expected, "vm"))
