"""What a patch is written with besides calls and operators: one row for each form, as `weft help` tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class FormSpec:
    """One form. `words` are the keywords and other names under which it is looked up, `shown` is how it is written, and
    the example is an expression, or statements."""

    name: str
    words: tuple[str, ...]
    shown: str
    doc: str
    example: str


_ROWS = (
    FormSpec("=", ("let", "strand", "instance"), "name<a, b> = e",
             "an instance with the outputs a and b, read as name@a and name@b; without <…> it has one, and name is read"
             " as it is; `let` may stand before it",
             "wave<v> = sin(me@x * 20)\nhalf = 0.5\ndisplay(wave@v * half)"),
    FormSpec("@", ("output",), "name@output", "one output of an instance",
             "spot<x, y> = <0.3, 0.6>\ndisplay(distance(me@x, me@y, spot@x, spot@y))"),
    FormSpec("~", ("remap", "map"), "strand(me@x ~ e, me@y ~ e)",
             "the strand with other coordinates put in: all that it is made of is seen there",
             "wave<v> = sin(me@x * 20)\ndisplay(wave@v(me@x ~ me@x + 0.1 * sin(me@y * 9)))"),
    FormSpec("if", ("then", "else"), "if c then a else b",
             "a where c is true (not 0), else b; what the other side computes never leaks",
             "if me@x < 0.5 then me@y else 1 - me@y"),
    FormSpec("<>", ("bundle",), "<e1, e2, …>",
             "a bundle: one value for each output that it is bound to; inside, comparisons are written << and >>",
             "colour<r, g, b> = <me@x, 0.4, me@y> * 0.8\ndisplay(colour)"),
    FormSpec("[]", ("index",), "e[i]", "the i-th value of a bundle or output of an instance, from 0; i may vary",
             "steps<a, b, c> = <0.1, 0.5, 0.9>\ndisplay(steps[me@x * 3])"),
    FormSpec("::", ("bind",), "f(args)::name<a, b>",
             "an instance whose outputs are those of a call or a remap, by position",
             "spindle swap(p, q) :: <a, b> {\n  out a = q\n  out b = p\n}\n"
             "swap(me@x, me@y)::turned<x, y>\ndisplay(turned@x)"),
    FormSpec("<3>", ("multicall",), "f<3>(args)::name<a, b, c>",
             "several calls of a spindle with one output: a bundle gives each its own argument, anything else repeats",
             "spindle wave(speed) :: v {\n  out v = sin(me@x * 20 + me@time * speed)\n}\n"
             "wave<3>(<1, 2, 3>)::c<r, g, b>\ndisplay(c)"),
    FormSpec("spindle", ("out",), "spindle name(p, q) :: <a, b> { … }",
             "a template: called with values for its parameters, it gives its outputs; each must be assigned with out",
             "spindle disc(cx, cy, radius) :: v {\n  d = distance(me@x, me@y, cx, cy)\n"
             "  out v = smoothstep(radius, radius * 0.9, d)\n}\ndisplay(disc(0.5, 0.5, 0.2))"),
    FormSpec("for", ("in", "to"), "for i in (a to b) { … }",
             "in a spindle: does what is inside for i = a, a + 1, … up to b, which is included",
             "spindle waves(x) :: v {\n  v = 0\n  for i in (1 to 4) {\n    v += sin(x * i * 9) / i\n  }\n}\n"
             "display(waves(me@x))"),
    FormSpec("+=", ("-=", "*=", "/="), "name += e",
             "in a spindle: the same as name = name + (e); so do -= *= and /=",
             "spindle waves(x) :: v {\n  v = sin(x * 9)\n  v *= 0.5\n  v += 0.5\n}\ndisplay(waves(me@x))"),
    FormSpec("me", ("coordinates",), "me@field, me<setting> = number",
             "where and when a strand is evaluated; settings are set once, with < and >",
             "me<width> = 640\ndisplay(sin(me@x * 20 + me@time))"),
    FormSpec("//", ("comment", "/*"), "// to the end of the line, /* over several */", "a comment, for people only",
             "display(me@x) // a ramp from left to right"),
    FormSpec("///", ("doc",), "/// text",
             "above a spindle: what it does, with @param name text, @returns text and @example code",
             "/// A soft disc.\n/// @param radius how large it is\n/// @returns 1 inside, 0 outside\n"
             "spindle disc(radius) :: v {\n  out v = hypot(me@x - 0.5, me@y - 0.5) < radius\n}\ndisplay(disc(0.2))"),
)  # fmt: skip

FORMS: Mapping[str, FormSpec] = MappingProxyType({row.name: row for row in _ROWS})
