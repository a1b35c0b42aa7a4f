"""What is worth the way to a graphics card."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.cards import HARDWARE, card, registry_with
from weft.backends.base import Backend
from weft.backends.registry import load_registry
from weft.backends.select import COSTS, choose, costs_file, operations, stays_on_cpu, warnings_of, write_costs
from weft.codegen.kernel import Unit
from weft.disk import keep
from weft.errors import Source
from weft.ir.rates import Rate
from weft.runtime.compiling.stages import Request, build
from weft.runtime.program.assignment import BackendAssignment

HD = (720, 1280)
READ = "{}@v(me@x ~ 0.5)"


def drawn(text: str) -> Unit:
    """The unit of the picture."""
    units = build(Request(Source("patch.weft", text), load_registry().contexts)).compiled.units
    return next(unit for unit in units if unit.subgraph.context == "visual")


def test_operations_are_counted_where_they_are_done() -> None:
    kernel = drawn("display(sin(me@x * me@y), cos(me@x * 3), me@time)").kernel
    lengths = {section.rate: len(section) for section in kernel.sections}
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


# What was measured here.


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file of what was measured, which is not there yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return costs_file()


def runs(backend: type[Backend], unit: Unit) -> str:
    """What a subgraph of HD is given to."""
    assignment = BackendAssignment(choose(registry_with(backend), ["visual"]))
    placed = assignment.placed(unit, HD)
    assert placed is not None
    return placed[0].shown


def test_what_was_measured_is_what_a_choice_goes_by(figures: Path) -> None:
    device = replace(HARDWARE, driver="1.0")
    backend, unit = card("metal_visual", [device]), drawn("display(sin(me@x * 10 * me@y + me@time))")
    assert runs(backend, unit) == "metal_visual"
    assert write_costs("metal_visual", device, replace(COSTS, launch=1.0)) == figures
    assert runs(backend, unit) == "native"
    # Another driver, another device and another backend are another thing.
    assert runs(card("metal_visual", [replace(device, driver="1.1")]), unit) == "metal_visual"
    assert runs(card("metal_visual", [replace(device, name="b")]), unit) == "metal_visual"
    assert runs(card("gl_visual", [device]), unit) == "gl_visual"
    write_costs("gl_visual", device, replace(COSTS, launch=2.0))
    write_costs("metal_visual", device, COSTS)
    assert (runs(backend, unit), runs(card("gl_visual", [device]), unit)) == ("metal_visual", "native")
    assert [path.name for path in figures.parent.iterdir()] == [figures.name]


def test_all_processes_go_by_the_same_figures(figures: Path) -> None:
    write_costs("metal_visual", HARDWARE, replace(COSTS, wait=0.5))
    choice = choose(registry_with(card("metal_visual", [HARDWARE])), ["visual"])["visual"]
    figures.unlink()
    assert choice.costs.wait == 0.5
    assert choice.__reduce__()[1][0]["costs"] == choice.costs


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": 1}', '{"a": {}}', "\xff", json.dumps({"a": {
    "cpu_operation": 1, "gpu_operation": -1, "launch": 1, "wait": 1, "upload": 1,
}})])  # fmt: skip
def test_a_broken_file_is_ignored_with_one_line(figures: Path, text: str) -> None:
    keep(figures, "costs 1", text.encode("latin-1"))
    registry = registry_with(card("metal_visual", [HARDWARE]))
    choices = choose(registry, ["visual", "compute"])
    assert choices["visual"].costs == COSTS
    (line,) = warnings_of(choices)
    assert line.startswith(f"{figures} is ignored because it cannot be read (")
    # Where there is no card, none is looked for.
    assert warnings_of(choose(registry_with(), ["visual"])) == []
    write_costs("metal_visual", HARDWARE, replace(COSTS, launch=1.0))
    assert choose(registry, ["visual"])["visual"].costs.launch == 1.0
    figures.write_bytes(text.encode("latin-1"))
    (line,) = warnings_of(choose(registry, ["visual"]))
    assert line.startswith(f"{figures} is ignored because it cannot be read (it is damaged")
