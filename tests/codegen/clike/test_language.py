"""What a language may spell in its own way: all that the statements of a program are made of."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

import pytest

from tests.support.devices import COMPUTE
from weft.codegen.clike.emission import emit
from weft.codegen.clike.expressions import ExpressionText
from weft.codegen.clike.language import Language, ProgramParts, Type
from weft.codegen.clike.prelude import ANGLES, BITS, FUSED, NUMBERS, PLACES, PRELUDE, called_in
from weft.codegen.clike.shader import Shader
from weft.codegen.cuda import Hip
from weft.codegen.essl import DriverEssl
from weft.codegen.glsl import Glsl
from weft.codegen.msl import Msl
from weft.contexts import ContextTable
from weft.errors import Source
from weft.runtime.compiling.stages import Request, build

TEXT = """\
trail<v> = max(me@x > fract(me@time), prev(trail@v)(me@x ~ me@x * 0.99) * 0.95)
spindle f(x, n) :: v {
  v = x
  for i in (1 to n) {
    v = if v > 2 then v - i else v * 1.1 + (v > x)
    for j in (1 to 2) { v = v + hash(j, v, me@x) }
  }
}
display(f(me@x, me@time), f(me@y, 3), 1 - (me@time > 3 and me@x > 0.5), trail@v)
"""


@dataclass(frozen=True)
class Spelled(Glsl):
    """A language that has nothing of C but its operators, and shows the statements that it is given."""

    seen: list[ProgramParts] = field(default_factory=list, compare=False)

    def bits(self, value: int) -> str:
        return f"b{value}"

    def declared(self, kind: Type, name: str, value: str, varies: bool = False) -> str:
        return f"{'var' if varies else 'let'} {name}: {kind} = {value}"

    def choice(self, condition: ExpressionText, then: ExpressionText, otherwise: ExpressionText) -> ExpressionText:
        return ExpressionText(f"select({otherwise.text}, {then.text}, {condition.text})")

    def converted(self, kind: Type, value: ExpressionText) -> ExpressionText:
        return ExpressionText(f"to_{kind}({value.text})")

    def truth(self, field: str) -> ExpressionText:
        return ExpressionText(f"is_set({field})")

    def loop_head(self, kind: Type, name: str, start: str, condition: str, following: str) -> str:
        return f"repeat {name}: {kind} = {start} while {condition} then {following}"

    def program(self, parts: ProgramParts) -> Shader:
        self.seen.append(parts)
        return super().program(parts)


C = re.compile(r"\b(?:float|int|uint|bool|vec[24])\b[ (]\w|[?]|\bfor\b|\b\d+u\b")


def test_statements_have_nothing_of_c_unless_the_language_says_so() -> None:
    made = build(Request(Source("p.weft", TEXT), ContextTable()))
    language = Spelled()
    emit(made.units[0].kernel, language)
    (parts,) = language.seen
    code = "\n".join([*(line.text for line in parts.body), *parts.outputs, *(value for _, value in parts.stores)])
    code = re.sub(r" *//.*", "", code)
    assert C.findall(re.sub(r": \w+", "", code)) == []
    wanted = ("let ", "var ", ": float", ": u32", ": int", ": bool", "select(", "to_float(", "is_set(", "repeat ", "b1")
    assert [spelling for spelling in wanted if spelling not in code] == []


def test_the_parts_of_the_prelude_are_all_of_it_and_callees_come_first() -> None:
    for whole in (PRELUDE, FUSED):
        assert {**NUMBERS, **ANGLES, **BITS, **PLACES}.items() <= whole.items()
        known: set[str] = set()
        for name, text in whole.items():
            assert called_in(text) & whole.keys() <= known | {name}
            known.add(name)


@pytest.mark.parametrize("language", [Glsl, DriverEssl, Msl, Hip, *COMPUTE.values()], ids=lambda each: each.name)
def test_no_two_functions_have_one_name(language: type[Language]) -> None:
    made = language()
    texts = "\n".join(made.functions(made.function_names))
    names = Counter(re.findall(r"^(?!//)(?:\w+ )*(\w+)\(", texts, re.MULTILINE))
    assert names
    assert [name for name, count in names.items() if count > 1] == []
