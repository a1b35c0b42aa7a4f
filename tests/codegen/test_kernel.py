"""Kernels survive JSON, and hash by what they do."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from tests.ir.test_serialize import everything
from tests.support.exprs import Exprs, lowered
from tests.support.kernels import compiled
from weft.codegen.compilation import compile_kernel, compile_points
from weft.codegen.kernel import content_hash, from_json, to_json
from weft.codegen.values import Note, numbered
from weft.codegen.verify import verify
from weft.contexts import VISUAL
from weft.ir.expr import StrandRef


def kernels():
    ir = everything()
    return [compile_kernel(ir, VISUAL), compile_kernel(ir, VISUAL, optimise=False),
            compile_points(ir, StrandRef("a", "b"), VISUAL)]  # fmt: skip


@pytest.mark.parametrize("at", range(3))
def test_the_round_trip_changes_nothing(at):
    kernel = kernels()[at]
    data = to_json(kernel)
    again = from_json(json.loads(json.dumps(data, allow_nan=False)))
    verify(again)
    assert to_json(again) == data
    assert content_hash(again) == content_hash(kernel)
    if not any(isinstance(n.attr, float) and math.isnan(n.attr) for s in kernel.sections for n in s.leaves()):
        assert again == kernel


def noted(kernel):
    """The kernel with a note on the last value of each section."""
    note = Note("wave@v", "p.weft", 3, "wave<v> = …")
    sections = tuple(replace(section, notes={section.nodes[-1]: note}) for section in kernel.sections)
    return replace(kernel, sections=sections)


def test_notes_survive():
    kernel = noted(kernels()[1])
    again = from_json(json.loads(json.dumps(to_json(kernel))))
    notes = [numbered(section)[1] for section in kernel.sections]
    assert [numbered(section)[1] for section in again.sections] == notes
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
