"""What is worth the way to a graphics card."""

from __future__ import annotations

from dataclasses import replace

import pytest

from weft.backends.placement import COSTS, operations, stays_on_cpu
from weft.backends.registry import load_registry
from weft.codegen.unit import Unit
from weft.errors import Source
from weft.ir.rates import Rate
from weft.runtime.build import build

HD = (720, 1280)
READ = "{}@v(me@x ~ 0.5)"


def drawn(text: str) -> Unit:
    """The unit of the picture."""
    units = build(Source("patch.weft", text), load_registry().contexts).playable.units
    return next(unit for unit in units if unit.subgraph.context == "visual")


def test_operations_are_counted_where_they_are_done() -> None:
    kernel = drawn("display(sin(me@x * me@y), cos(me@x * 3), me@time)").kernel
    lengths = {section.rate: len(section.code) for section in kernel.sections}
    once = sum(lengths.get(rate, 0) for rate in (Rate.CONSTANT, Rate.FRAME))
    element, column, row = (lengths.get(rate, 0) for rate in (Rate.ELEMENT, Rate.COLUMN, Rate.ROW))
    assert column
    assert operations(kernel, (5, 7)) == 35 * element + 7 * column + 5 * row + once


def test_a_large_picture_is_for_a_card_and_a_tiny_one_is_not() -> None:
    unit = drawn("display(sin(me@x * 10 * me@y + me@time))")
    assert stays_on_cpu(unit, HD, cores=2) is None
    assert "before it has answered" in (stays_on_cpu(unit, (8, 8), cores=2) or "")


def test_more_cores_do_more() -> None:
    unit = drawn("display(sin(me@x * 10 * me@y + me@time))")
    side = next(side for side in range(8, 2000) if stays_on_cpu(unit, (side, side), cores=1) is None)
    assert stays_on_cpu(unit, (side, side), cores=64) is not None


def test_what_is_read_back_strand_by_strand_stays_with_who_reads_it() -> None:
    names = [f"s{n}" for n in range(12)]
    strands = "".join(f"{name}<v> = prev({name}@v) * 0.5 + me@x\n" for name in names)
    shown, read = (joint.join(form.format(name) for name in names) for joint, form in (("+", "{}@v"), (",", READ)))
    unit = drawn(f"{strands}display({shown})\ncompute({read})")
    shape = (90, 160)
    assert len(unit.points) == len(names)
    assert stays_on_cpu(replace(unit, points={}), shape, cores=1) is None
    assert f"reading {len(names)} strands back" in (stays_on_cpu(unit, shape, cores=1) or "")


@pytest.mark.parametrize("cost", ["launch", "wait", "gpu_operation"])
def test_a_card_that_costs_nothing_is_always_worth_it(cost: str) -> None:
    unit = drawn(f"n<v> = prev(n@v) + me@x\ndisplay(n@v)\ncompute({READ.format('n')})")
    free = replace(COSTS, launch=0.0, wait=0.0, gpu_operation=0.0)
    assert stays_on_cpu(unit, (4, 4), 1, free) is None
    assert stays_on_cpu(unit, (4, 4), 1, replace(free, **{cost: 1.0})) is not None
