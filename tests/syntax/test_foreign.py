"""What people write who come from other tools leads to a text that weft accepts, by the hints alone."""

from __future__ import annotations

import pytest

from weft.contexts import ContextTable
from weft.errors import Source
from weft.ops import BUILTINS, STATE, WORDS
from weft.runtime.inspect.forecast import check
from weft.syntax.foreign import CALLS, FORMS, METHODS, STRANDS
from weft.syntax.includes import libraries_with

# For each kind of text: what is typed, and the changes that its hints ask for, each with the words of the hint.
TEXTS = {
    "GLSL: coordinates": (
        "a = sin(x * 10 + iTime)\ndisplay(a)\n",
        [("(x", "(me@x", "write me@x"), ("iTime", "me@time", "write me@time")],
    ),
    "GLSL: types": (
        "float x = 3.0;\ndisplay(x * me@x);\n",
        [("float x", "x", "without such a word: write x = …")],
    ),
    "GLSL: vectors": (
        "c = vec3(1, 0.5, me@x)\ndisplay(c)\n",
        [("vec3(1, 0.5, me@x)", "<1, 0.5, me@x>", "write <a, b, c>")],
    ),
    "GLSL: components": ("c = <me@x, 1, 0>\ndisplay(c.rgb * 0.5)\n", [("c.rgb", "c@rgb", "write c@rgb")]),
    "GLSL: components elsewhere": (
        "c<r, g> = <me@x, 1>\ndisplay(c.r(me@x ~ 1 - me@x), hsv(0, 1, 1).r, 0)\n#use std.color\n",
        [("c.r", "c@r", "write c@r"), (").r", ")@r", "write …@r")],
    ),
    "GLSL: the place in pixels": (
        "a = gl_FragCoord@x / width\ndisplay(a)\n",
        [("gl_FragCoord", "(me@px, me@py)", "write (me@px, me@py)"), ("width", "me@width", "write me@width")],
    ),
    "GLSL: main": (
        "void main() {\n}\ndisplay(me@x)\n",
        [("void main() {\n}\n", "", "no main function")],
    ),
    "GLSL: textures": (
        "c<v> = me@x\ndisplay(texture2D(c, uv))\n",
        [("texture2D(c, uv)", "c(me@y, me@x)", "a picture is a strand: write img(u, v)")],
    ),
    "GLSL: a choice": (
        "a = me@x > 0.5 ? 1 : 0\ndisplay(a)\n",
        [("me@x > 0.5 ? 1 : 0", "if me@x > 0.5 then 1 else 0", "if condition then a else b")],
    ),
    "GLSL: conditions": (
        "a = me@x > 0.5 && !(me@y < 0.2)\ndisplay(a)\n",
        [("&&", "and", "`&&` is written `and`"), ("!", "not ", "`!` is written `not`")],
    ),
    "GLSL: steps": (
        "spindle f(a) :: v {\n  v = a\n  v++\n}\ndisplay(f(me@x))\n",
        [("v++", "v += 1", "write v += 1")],
    ),
    "Processing: the mouse": (
        "display(mouse.x, mouseY, 0)\n",
        [("mouse.x", "mouse@x", "write mouse@x"), ("mouseY", "mouse@y", "write mouse@y")],
    ),
    "Processing: draw": (
        "void draw() {\n  background(0);\n}\ndisplay(me@x)\n",
        [("void draw() {\n  background(0);\n}\n", "", "and display(…)")],
    ),
    "Processing: constants": ("display(sin(TWO_PI * me@x))\n", [("TWO_PI", "tau", "write tau")]),
    "Python: comments": ("# red\ndisplay(me@x)  # a ramp\n", [
        ("# red", "// red", "a comment is written: // …"), ("# a", "// a", "a comment is written: // …"),
    ]),
    "Python: functions": (
        "f(x) = x * 2\ndisplay(f(me@x))\n",
        [("f(x) = x * 2", "spindle f(x) :: v { v = x * 2 }", "write spindle f(x) :: v { v = … }")],
    ),
    "Python: results": (
        "spindle f(a) :: v {\n  return a * 2\n}\ndisplay(f(me@x))\n",
        [("return a", "out = a", "outputs are assigned: out = …")],
    ),
    "Python: powers": ("display(me@x ** 2)\n", [("**", "^", "`**` is written `^`")]),
    "Hydra: methods": (
        "a = bars()\ndisplay(a.kaleid(5).rotate(0.3))\n",
        [("a.kaleid(5)", "a |> kaleid(5)", "write … |> kaleid(…)"),
         (".rotate(0.3)", " |> turned(0.3)", "write … |> turned(…)"),
         ("a =", "#use std.picture\na =", "write #use std.picture at the top")],
    ),
    "Hydra: what it draws to": ("a = me@x\nout.r = a\ndisplay(a)\n", [("out.r = a\n", "", "an output is assigned")]),
    "Hydra: a wave": (
        "audio(osc(440))\n",
        [("osc(440)", "sine_tone(440)", "a tone is sine_tone(440)"),
         ("audio", "#use std.synth\naudio", "write #use std.synth at the top")],
    ),
    "a library's word": (
        "display(contour(circle(centre(), 0.3), 0.1, 0.01))\n",
        [("display", "#use std.sdf\n#use std.coord\ndisplay", "write #use std.sdf at the top"),
         ("display", "display", "write #use std.coord at the top")],
    ),
    "Tidal: a pattern": (
        'd1(sound("bd*2 sn"))\ndisplay(me@x)\n',
        [('d1(sound("bd*2 sn"))', 'pattern("bd*2 sn")::p<bd, sn>', 'write pattern("bd sn")::p<bd, sn>')],
    ),
    "SuperCollider: a tone": (
        "#use std.synth\naudio(SinOsc.ar(440) * 0.2)\n",
        [("SinOsc.ar(440)", "sine_tone(440)", "write sine_tone(…)")],
    ),
    "an output before a remap": (
        "a<v> = me@x\ndisplay(a.v(x ~ me@y))\n",
        [("a.v", "a@v", "write a@v")],
    ),
}  # fmt: skip


# Calls of functions that are not here, a part of their hints, and what these lead to.
CALLED = {
    "inversesqrt(4)": ("1 / sqrt(a)", "1 / sqrt(4)"), "sq(4)": ("a ^ 2", "4 ^ 2"),
    "millis()": ("* 1000", "me@time * 1000"),
    "refract(v, n, 0.3)": ("unit(v - n * 0.3)", "unit(v - n * 0.3)"),
    "norm(me@x, 0, 3)": ("normalize", "normalize(me@x, 0, 3)"),
    "faceforward(n, v, n)": ("n * -sign(dot(n, v))", "n * -sign(dot(n, v))"),
    "solid(1, 0, 0)": ("<1, 0, 0.5>", "<1, 0, 0>"),
    "gradient(1)": ("<me@x, me@y, 0.5>", "<me@x, me@y, 0.5>"), "mask(v, n)": ("luminance(b)", "v * luminance(n)"),
    "lessThan(v, n)": ("a < b", "v < n"), "mat2(1, 0, 0, 1)": ("rotate(p, angle)", "rotate(centre(), 0.3)"),
    "fwidth(me@x)": ("a(me@x ~ me@x - 1 / me@width)", "v - v(me@x ~ me@x - 1 / me@width)"),
    "mag(v)": ("length", "length(v)"),
    "texelFetch(v, 1, 2)": ("img(u, v)", "v(me@x, me@y)"), "IMG_NORM_PIXEL(v, n)": ("img(u, v)", "v(me@x, me@y)"),
    "snoise(me@x)": ("simplex", "simplex(me@x)"), "any(v)": ("max", "max(v)"), "fmod(3, 2)": ("mod", "mod(3, 2)"),
    "v.normalize()": ("unit", "v |> unit()"), "osc(20, 0.1)": ("bars(20)", "bars(20)"),
}  # fmt: skip


@pytest.mark.parametrize("typed", CALLED)
def test_a_call_of_another_tool_has_a_hint_that_leads_to_one_of_weft(typed: str) -> None:
    hint, meant = CALLED[typed]
    before = "#use std.color\n#use std.coord\n#use std.picture\nv<x, y, z> = <0.3, me@x, 1>\nn = unit(<0, 1, 2>)\n"
    assert hint in hints(f"{before}a = {typed}\ndisplay(sum(a))\n")
    assert check(Source("test.weft", f"{before}a = {meant}\ndisplay(sum(a))\n"), ContextTable()) == ()


def hints(text: str) -> str:
    found = check(Source("test.weft", text), ContextTable())
    return "\n".join(f"{diagnostic.message}\n{diagnostic.hint}" for diagnostic in found)


@pytest.mark.parametrize("name", TEXTS)
def test_hints_lead_to_a_right_text(name: str) -> None:
    text, changes = TEXTS[name]
    said = ""
    for old, new, hint in changes:
        if hint not in said:  # a mistake may hide others
            said += hints(text)
        assert hint in said
        text = text.replace(old, new, 1)
    assert [d for d in check(Source("test.weft", text), ContextTable()) if d.severity == "error"] == []


def test_what_hints_name_exists() -> None:
    assert [n for n in METHODS.values() if not (n in BUILTINS or n in WORDS or libraries_with(n))] == []
    assert not any(name in BUILTINS or name in STATE for name in CALLS)
    strands = "\n".join(f"a{n}<v> = count({value})" for n, value in enumerate(STRANDS.values()))
    assert check(Source("test.weft", f"{strands}\ndisplay(a0)\n"), ContextTable()) == ()
    assert not STRANDS.keys() & FORMS.keys()
