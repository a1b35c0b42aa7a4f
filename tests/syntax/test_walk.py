"""Walking over trees and writing them down."""

from pathlib import Path

from tests.syntax.trees import program, statement
from weft.errors import Report, Source
from weft.syntax.ast import Binding, Call, Name, Program, SpindleDefinition, children, dump, walk
from weft.syntax.parser import parse

FIFTY = Path(__file__).parent / "fifty.weft"


def test_walk_goes_from_the_outside_in_and_from_left_to_right() -> None:
    binding = statement("a = f(b + c, <d, e[i]>)(me@x ~ g) * if h then -j else k@l")
    assert isinstance(binding, Binding)
    names = [node.id for node in walk(binding.value) if isinstance(node, Name)]
    assert names == ["f", "b", "c", "d", "e", "i", "g", "h", "j", "k"]
    assert next(walk(binding.value)) is binding.value


def test_walk_goes_through_bodies() -> None:
    spindle = statement("spindle s() :: a { x = f(1) g(2)::b<v> for i in (h(3) to j(4)) { k = l(5) } a = m(6) }")
    assert isinstance(spindle, SpindleDefinition)
    calls = [node.span.text for body in spindle.body for node in walk(body) if isinstance(node, Call)]
    assert calls == ["f(1)", "g(2)", "h(3)", "j(4)", "l(5)", "m(6)"]


def test_leaves_have_no_children() -> None:
    binding = statement("a = 1")
    assert isinstance(binding, Binding)
    assert children(binding.value) == ()


def test_walk_does_not_recurse() -> None:
    binding = statement("a = " + "-" * 20_000 + "x")
    assert isinstance(binding, Binding)
    assert sum(1 for _ in walk(binding.value)) == 20_001


def test_dump_tells_places_and_files() -> None:
    text = "me<bpm> = 120\n\n  a<v> = sin(me@x)\nspindle f(x) :: y {\n  out y = x\n}\n#use std.noise"
    assert dump(program(text)) == (
        "// patch.weft\n"
        "1:1     (setting bpm 120)\n"
        "3:3     (binding a<v> (call sin me@x))\n"
        "4:1     (spindle f<y> x)\n"
        "5:3       (out = y x)\n"
        "7:1     (use std.noise)\n"
    )
    included = parse(Source("lib.weft", "b = 1"), Report())
    both = Program((*included.statements, *program("a = 2").statements))
    assert dump(both) == "// lib.weft\n1:1     (binding b 1)\n// patch.weft\n1:1     (binding a 2)\n"


def test_an_ordinary_patch_of_fifty_statements() -> None:
    parsed = program(FIFTY.read_text(encoding="utf-8"))
    assert len(parsed.statements) == 50
    assert dump(parsed) == dump(program(FIFTY.read_text(encoding="utf-8")))
