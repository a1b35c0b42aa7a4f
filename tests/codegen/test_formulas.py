"""What a slot is made of: which edits change that."""

from __future__ import annotations

import pytest

from weft.codegen.formulas import formula
from weft.contexts import context_table
from weft.errors import Source
from weft.runtime.compiling.stages import Request, build

TEXT = """#slider level<v> = 0, 1, 0.5
spindle lag(x) :: v { v = prev(v) * 0.5 + x }
speed = 2
count = prev(count) + speed
lagged = lag(count)
summed = lag((for i in (1 to 4) { s = 0; s += count * i } then s))
trail = max(prev(trail) * 0.9, me@x * count)
tone = sin(tau * phasor(220)) + prev(tone) * 0.5 * level + 0 * lagged
compute(lagged, count)
display(trail)
audio(tone)
"""
TEXT = TEXT.replace("summed = lag((for i in (1 to 4) { s = 0; s += count * i } then s))\n", "")
SLOTS = ("count", "lagged", "trail", "tone")


def formulas(text: str) -> dict[str, set[str]]:
    """The formulas of the slots of each statement."""
    units = build(Request(Source("p.weft", text), context_table())).units
    found: dict[str, set[str]] = {name: set() for name in SLOTS}
    for unit in units:
        for slot in unit.kernel.slots:
            found[slot.key.split("/")[1].partition("@")[0]].add(formula(units, slot.key))
    return found


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("speed = 2", "// here\nspeed = 2", []),
        ("speed = 2", "speed = 3", ["count", "lagged", "trail", "tone"]),
        ("* 0.9", "* 0.8", ["trail"]),
        ("prev(v) * 0.5", "prev(v) * 0.25", ["lagged", "tone"]),
        ("phasor(220)", "phasor(221)", ["tone"]),
        ("display(trail)", "display(1 - trail)", []),
        ("compute(lagged, count)", "compute(lagged + 1)", []),
    ],
)
def test_a_formula_is_all_that_a_slot_is_made_of(old: str, new: str, changed: list[str]) -> None:
    assert old in TEXT
    before, after = formulas(TEXT), formulas(TEXT.replace(old, new))
    assert [name for name in SLOTS if before[name] != after[name]] == changed


def test_a_slot_that_is_not_there_has_no_formula() -> None:
    assert formula(build(Request(Source("p.weft", TEXT), context_table())).units, "visual/other@val/prev/0") == ""
