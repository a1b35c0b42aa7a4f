"""An expansion, evaluated by the folds of its parts, is the fold of its row."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from tests.ops.operands import NOISES, expansion_tolerance, is_about_bits, tuples_for
from weft.ops import OPS
from weft.ops.formula import expand

EXPANDED = [row for row in OPS.values() if row.expand is not None]


class FoldBuilder:
    """The builder whose values are floats: it applies each row's `fold`, so that an expansion can be compared with the
    meaning of its row. With `reveal`, values count as known constants, which lets expansions take their short cuts."""

    def __init__(self, reveal=True):
        self._reveal = reveal

    def const(self, value):
        return value

    bits = const

    def op(self, name, *args):
        return OPS[name].fold(*args)

    def constant_of(self, value):
        return value if self._reveal else None


@pytest.mark.parametrize("reveal", [True, False], ids=["constants", "variables"])
@pytest.mark.parametrize("row", EXPANDED, ids=lambda row: row.name)
@given(data=st.data())
def test_expansion_is_the_fold(row, reveal, data):
    operands = data.draw(tuples_for(row.name))
    got = expand(row, FoldBuilder(reveal), operands)
    expected = row.fold(*operands)
    assert expansion_tolerance(row).allows(got, expected), (operands, got, expected)


@pytest.mark.parametrize("name", [*NOISES, "hash"])
@given(data=st.data())
def test_shortcut_for_known_whole_coordinates_changes_nothing(name, data):
    row = OPS[name]
    whole = st.integers(-5, 5).map(float)
    operands = [data.draw(whole | st.floats(-100, 100)) for _ in row.params]
    assert expand(row, FoldBuilder(True), operands) == pytest.approx(
        expand(row, FoldBuilder(False), operands), abs=1e-15 if name in ("noise", "fbm") else 0
    )


def test_no_expansion_of_primitives():
    assert not any(is_about_bits(row) and row.expand for row in OPS.values())
    with pytest.raises(ValueError, match="primitive"):
        expand(OPS["add"], FoldBuilder(), (1.0, 2.0))
