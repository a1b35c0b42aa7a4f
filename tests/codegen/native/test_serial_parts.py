"""What of a sound is computed sample by sample, for each machine."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.support.series import PROGRAMS, kernel_of
from weft.codegen.native.dataflow import Graph
from weft.codegen.native.serial_parts import SerialParts, SerialReads, stateful
from weft.codegen.values import operands
from weft.ir.rates import Rate

# From the finest division to the coarsest.
DIVISIONS = (
    (SerialReads.OF_VALUES, 512), (SerialReads.OF_VALUES, 256), (SerialReads.OF_SLOTS, 256), (SerialReads.OF_ALL, 256),
)  # fmt: skip


def divided(text, recurrence, block):
    made = kernel_of(text)
    return SerialParts(made, Graph(made, made.section(Rate.ELEMENT)), recurrence, block)


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize(("recurrence", "block"), DIVISIONS)
def test_each_value_is_in_one_part_after_those_that_it_needs(text, recurrence, block):
    found = divided(text, recurrence, block)
    home = {node: at for at, part in enumerate(found.parts) for node in part.nodes}
    assert sorted(map(id, home)) == sorted(map(id, found.changing))
    assert sum(len(part.nodes) for part in found.parts) == len(found.changing)
    assert all(home[need] <= at for node, at in home.items() for need in operands(node) if need in home)
    keys = [key for part in found.parts for key in part.slots]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_only_what_depends_on_state_is_serial_and_coarser_divisions_have_more_of_it(text):
    made = kernel_of(text)
    graph = Graph(made, made.section(Rate.ELEMENT))
    serial = []
    for recurrence, block in (DIVISIONS[1], *DIVISIONS[2:]):
        found = SerialParts(made, graph, recurrence, block)
        serial.append({node for part in found.parts if part.serial for node in part.nodes})
        assert serial[-1] <= stateful(found.changing)
    assert all(finer <= coarser for finer, coarser in pairwise(serial))
