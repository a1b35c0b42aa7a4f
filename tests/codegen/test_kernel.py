"""Kernels survive JSON, and hash by what they do."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from tests.support.exprs import Exprs, image_slot, lowered, number_slot
from tests.support.kernels import compiled
from tests.support.verify_bytecode import verify
from weft.codegen.compilation import compile_kernel, compile_points
from weft.codegen.kernel import content_hash, from_json, number_from_json, number_to_json, to_json
from weft.codegen.values import Note, Section
from weft.contexts import VISUAL
from weft.ir.expr import StrandRef


def through_text(data):
    return json.loads(json.dumps(data, allow_nan=False))


@given(st.integers(0, 2**64 - 1))
def test_every_double_survives(bits):
    (value,) = struct.unpack("<d", struct.pack("<Q", bits))
    again = number_from_json(through_text(number_to_json(value)))
    assert struct.pack("<d", again) == struct.pack("<d", value)


def everything():
    e = Exprs()
    x, y, time = e.coord("x"), e.coord("y"), e.uniform("time")
    (inner,) = e.loop(1, (1, e.index(0)), [0], [e.carried(1) + e.index(1) * x])
    a, b = e.loop(0, (1, x * 4), [0, -0.0], [e.carried(0) + inner, e.carried(0, 1) + 1])
    special = [e.number(n) for n in (math.nan, -math.inf, -0.0, 0.1, 5e-324)]
    past = e.state("v/p", 2, 1 - x, y)
    return lowered(
        a + b, e("hash", x * 8, 0, 0), e("select", e("lt", x, y), special[0], special[1]), *special[2:],
        e.picture("a.png", x, y, 3), e.strand("osc@v", time - x * 0.02), past, e.strand("slow@v"),
        slots=[image_slot("v/p", 2), number_slot("v/q", planes=2)],
        updates={"v/p": past * 0.5, "v/q[0]": time, "v/q[1]": e.state("v/q", 1, plane=1) + 1},
        exposed={"a@b": past + 1},
    )  # fmt: skip


def kernels():
    ir = everything()
    return [compile_kernel(ir, VISUAL), compile_kernel(ir, VISUAL, optimise=False),
            compile_points(ir, StrandRef("a", "b"), VISUAL)]  # fmt: skip


@pytest.mark.parametrize("at", range(3))
def test_the_round_trip_changes_nothing(at):
    kernel = kernels()[at]
    data = to_json(kernel)
    again = from_json(through_text(data))
    verify(again)
    assert to_json(again) == data
    assert content_hash(again) == content_hash(kernel)
    if not any(isinstance(n.attr, float) and math.isnan(n.attr) for s in kernel.sections for n in s.leaves()):
        assert again == kernel


def noted(kernel):
    """The kernel with a note on the last value of each section."""
    note = Note("wave@v", "p.weft", 3, "wave<v> = …")
    sections = tuple(
        Section(each.rate, each.nodes, each.outputs, each.stores, each.locals, {each.nodes[-1]: note})
        for each in kernel.sections
    )
    return replace(kernel, sections=sections)


def test_notes_survive():
    kernel = noted(kernels()[1])
    again = from_json(through_text(to_json(kernel)))
    notes = [section.numbered[1] for section in kernel.sections]
    assert [section.numbered[1] for section in again.sections] == notes
    assert all(notes)


def test_names_do_not_matter():
    kernel = kernels()[0]
    renamed = replace(kernel, name="other", locals=tuple(replace(a, name=f"{a.name}'") for a in kernel.locals))
    assert content_hash(renamed) == content_hash(kernel) == content_hash(noted(kernel))
    assert len(content_hash(kernel)) == 16


def test_everything_else_does():
    kernel = kernels()[0]
    others = [
        replace(kernel, outputs=kernel.outputs[::-1]),
        replace(kernel, slots=tuple(replace(slot, depth=slot.depth + 1) for slot in kernel.slots)),
        replace(kernel, locals=tuple(replace(local, type="bool") for local in kernel.locals)),
        replace(kernel, sections=kernel.sections[1:]),
        replace(kernel, tick="element"),
    ]
    assert len({content_hash(other) for other in [kernel, *others]}) == 6


def test_constants_are_told_apart_by_their_bits():
    hashes = {content_hash(compiled(lowered(Exprs().number(n)))) for n in (0.0, -0.0, math.nan, -math.nan, 1.0)}
    assert len(hashes) == 5
