"""Bundles cost nothing: a patch that is written with them becomes the kernels of the same patch, written out."""

import pytest

from tests.support.kernels import closed_hashes
from tests.support.programs import rendered
from weft.contexts import ContextTable
from weft.errors import Report, Source
from weft.graph.bindings import collect
from weft.graph.patch import Patch
from weft.names import StrandRef
from weft.syntax.parser import parse

HEADS = """
spindle swap(p) :: <x, y> { out x = p[1]  out y = p[0] }
spindle wave(freq) :: v { v = sin(me@x * freq) }
spindle ring(p<x, y> = <me@x - 0.5, me@y - 0.5>, radius = 0.2) :: v { v = length(p) - radius }
spindle ring2(x, y, radius) :: v { v = length(x, y) - radius }
spindle walk(p) :: v { q = p  for i in (1 to 3) { q = q * 2 + <i, me@x> }  v = q@x - q@y }
spindle walk2(x, y) :: v { a = x  b = y  for i in (1 to 3) { a = a * 2 + i  b = b * 2 + me@x }  v = a - b }
"""

PAIRS = {
    "operators": ("q = <me@x, me@y> * 2 + 1 display(q@x, q@y, q[0])",
                  "display(me@x * 2 + 1, me@y * 2 + 1, me@x * 2 + 1)"),
    "a choice": ("display(if me@x > 0.5 then <me@x, me@y, 1> else 0)",
                 "c = me@x > 0.5 display(if c then me@x else 0, if c then me@y else 0, if c then 1 else 0)"),
    "a remap": ("display(<me@x, me@y, 0>(me@x ~ me@x + <1, 2, 3>))",
                "display(me@x + 1, me@y, 0)"),
    "words": ("p = <me@x, me@y> display(dot(p, <2, 3>), length(p), sum(p * p))",
              "display(me@x * 2 + me@y * 3, length(me@x, me@y), me@x * me@x + me@y * me@y)"),
    "calls for each member": ("display(wave(<3, 4, 5>))", "display(wave(3), wave(4), wave(5))"),
    "a comprehension": ("display(sum(<wave(i) / i for i in (1 to 3)>))",
                        "display(wave(1) / 1 + wave(2) / 2 + wave(3) / 3)"),
    "a pipe": ("display(<me@x, me@y> |> swap() |> length())", "display(length(me@y, me@x))"),
    "defaults": ("display(ring() + ring(<me@x, 0>, radius: 0.4))",
                 "display(ring2(me@x - 0.5, me@y - 0.5, 0.2) + ring2(me@x, 0, 0.4))"),
    "loops": ("display(walk(<me@x, me@y>))", "display(walk2(me@x, me@y))"),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_kernels_are_those_of_the_same_patch_written_out(name: str) -> None:
    with_bundles, written_out = (closed_hashes(HEADS + text) for text in PAIRS[name])
    assert with_bundles == written_out


def collected(text: str) -> tuple[Patch, Report]:
    report, contexts = Report(), ContextTable()
    return collect(parse(Source("test.weft", text), report), contexts, report), report


def outputs(text: str, name: str) -> tuple[str, ...]:
    patch, report = collected(text)
    assert rendered(report.diagnostics) == ""
    return tuple(patch.instances[name].outputs)


def test_an_instance_has_the_outputs_that_its_value_has() -> None:
    assert outputs("a = 1", "a") == ("val",)
    assert outputs("a = <1, 2>", "a") == ("0", "1")
    assert outputs("a<x, y> = <1, 2> b = a * 2", "b") == ("x", "y")
    assert outputs("spindle f(p) :: <u, v> { u = p  v = p } b = f(1)", "b") == ("u", "v")
    assert outputs("o = prev(o) * 0.9 + p p<r, g, b> = <1, 2, 3>", "o") == ("r", "g", "b")
    assert outputs("c = prev(c)", "c") == ("val",)


def test_members_without_names_are_written_by_their_places() -> None:
    assert StrandRef("q", "1").short == "q[1]"
    assert StrandRef("q", "x").short == "q@x"
    assert StrandRef("q", "val").short == "q"


def test_parameters_that_are_taken_apart_take_bundles() -> None:
    patch, _ = collected(
        """
        spindle whole(p) :: v { v = p@x }
        spindle hands_on(p, q) :: v { k = p * 2  v = whole(k) + q }
        spindle by_word(p) :: v { v = length(p) }
        spindle one(p) :: v { v = p * me@x }
        spindle index_only(p) :: v { c = <1, 2>  v = c[p] }
        spindle unread(p) :: v { v = 1 }
        spindle listed(p<v>) :: v { v = p }
        """
    )
    takes = {name: patch.ordinals.takes_bundles(spindle) for name, spindle in patch.spindles.items()}
    assert takes == {
        "whole": (True,), "hands_on": (True, False), "by_word": (True,), "one": (False,), "index_only": (False,),
        "unread": (True,), "listed": (True,),
    }  # fmt: skip
