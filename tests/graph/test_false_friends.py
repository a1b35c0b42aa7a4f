"""Names that mean something else in another language: a warning says what they do here and what was meant, where the
arguments look as that language would write them, and nowhere else."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from weft.contexts import ContextTable
from weft.errors import Diagnostic, Report, Source
from weft.graph.false_friends import false_friends
from weft.runtime.inspect.forecast import check
from weft.syntax.foreign import FALSE_FRIENDS, MORE, PICTURE_WORDS
from weft.syntax.includes import libraries_with, load

ROOT = Path(__file__).parents[2]

NAMES = """\
s = bars(4)
p<x, y> = <me@x, me@y> * 3
v<x, y, z> = <0.3, me@x, 1>
n = unit(<0, 1, 2>)
g<k> = me@y
"""

# What is typed, the words of the hint, and what that leads to.
WARNED = {
    "GLSL: a vector": ("normalize(v)", "unit(v)", "unit(v)"),
    "GLSL: a vector that is written there": ("normalize(<1, 2, 3>)", "unit(v)", "unit(<1, 2, 3>)"),
    "GLSL: a reflection": ("reflect(v, n)", "v - 2 * dot(n, v) * n", "v - 2 * dot(n, v) * n"),
    "GLSL: a reflection in the plane": ("reflect(<1, me@x>, <0, 1>)", "v - 2 * dot(n, v) * n", "v - 2 * dot(n, v) * n"),
    "GLSL: one that points down": ("reflect(<1, -1, 0>, <0, 1, 0>)", "v - 2 * dot", "v - 2 * dot(n, v) * n"),
    "p5: a sum of vectors": ("add(p, <1, 2>)", "a + b", "p + <1, 2>"),
    "p5: a difference": ("subtract(v, n)", "a - b", "v - n"),
    "Shadertoy: noise": ("noise(p * 4)", "noise(p@x, p@y)", "noise(p@x * 4, p@y * 4)"),
    "Shadertoy: noise of a place that is written there": ("fbm(<me@x, me@y> * 8)", "fbm(p@x, p@y)", "fbm(p@x, p@y)"),
    "Shadertoy: a hash": ("hash(p)", "hash(p@x, p@y)", "hash(p@x, p@y)"),
    "Shadertoy: simplex noise": ("simplex(centre() * 3)", "simplex(p@x, p@y)", "simplex(p@x, p@y)"),
    "Hydra: noise": ("noise(3, 0.1)", "noise(me@x * 3, me@y * 3, me@time * 0.1)",
                     "noise(me@x * 3, me@y * 3, me@time * 0.1)"),
    "Hydra: voronoi": ("voronoi(8, 0.3)", "voronoi(me@x * 3,", "voronoi(me@x * 3, me@y * 3, me@time * 0.1)"),
    "Hydra: rotate": ("rotate(s, 0.3)", "turned(s, 0.3)", "turned(s, 0.3)"),
    "Hydra: a pipe": ("s |> scale(2)", "zoomed(s, 2)", "s |> zoomed(2)"),
    "Hydra: what is changed further": ("translate(s * 0.5 + 0.1, 0.2)", "moved(s, 0.1)", "moved(s * 0.5 + 0.1, 0.2)"),
    "Hydra: large pixels": ("pixelate(bars(4), 0.1)", "pixelated(s, 40)", "pixelated(bars(4), 10)"),
    "Hydra: invert": ("invert(s)", "1 - s", "1 - s"),
    "Hydra: tiles": ("tile(s, 3)", "tiled(s, 3)", "tiled(s, 3)"),
    "Hydra: mirrored tiles": ("mirror_tile(s, 0.2)", "mirrored(s)", "mirrored(s)"),
    "Hydra: a kaleidoscope": ("kaleidoscope(s, 5)", "kaleid(s, 6)", "kaleid(s, 5)"),
    "Hydra: a mirror": ("mirror(s)", "mirrored(s)", "mirrored(s)"),
    "any other word for places": ("swirl(s, 3)", "words of std.picture", "turned(s, 3)"),
    "p5: random": ("random(0, 10)", "random(me@beatphase < 0.5)", "random(me@beatphase < 0.5) * 10"),
    "p5: a colour to fill with": ("fill(255)", "fill(circle())", "fill(circle()) * <1, 0.5, 0>"),
    "p5: a colour of lines": ("stroke(255, 0)", "stroke(circle())", "stroke(circle()) * <1, 0.5, 0>"),
    "Processing: rotate": ("rotate(0.3)", "rotate(angle: 0.3)", "rotate(angle: 0.3)"),
    "Processing: scale": ("scale(-2)", "scale(factor: -2)", "scale(factor: -2)"),
    "Processing: a sphere": ("sphere(50)", "sphere(<x, y, z>, …)", "sphere(<0, 0, 1>, 50)"),
    "a radius alone": ("fill(circle(0.3))", "circle(radius: 0.3)", "fill(circle(radius: 0.3))"),
    "a place that is one number": ("triangle(0.1)", "triangle(<x, y>, …)", "triangle(<0.1, 0>)"),
}  # fmt: skip

# Calls of the same names, as weft means them.
NOT_WARNED = [
    "normalize(me@x, 0.25, 0.75)", "normalize(s, 0.2, 0.8)", "normalize(v, hi: 3)", "reflect(s, bars(7))",
    "reflect(s, 0.3)", "reflect(s * 2, <1, 0.5, 0>)", "add(s, bars(7))", "add(<1, 0.2, 0>, s)",
    "subtract(circle(), box())", "noise(<1, 2, 3> + me@time)", "noise(me@time * 3)", "noise(p@x, p@y)", "hash(3)",
    "noise(me@x * 3, 0.1)", "rotate(p, 0.3)", "rotate(angle: 0.3)", "rotate()", "scale(centre(), 2)", "invert(p)",
    "random(me@beatphase < 0.5)", "random(g, 3)", "fill(circle())", "stroke(circle() - 0.1, 0.02)", "mirror(me@x * 3)",
    "circle(p, 0.3)", "circle(<0.1, 0.2>, 0.3)", "sphere(<0, 0, 0>, 0.5)", "voronoi(v@x * 8, v@y)",
]  # fmt: skip

# Calls with more arguments than there are, and what their hints lead to.
TOO_MANY = {
    "atan(me@y, me@x)": ("atan2(y, x)", "atan2(me@y, me@x)"),
    "saturate(s, 2)": ("saturation(s, 2)", "saturation(s, 2)"),
    "add(s, s, 0.5)": ("a + b * 0.5", "s + s * 0.5"), "round(2.345, 2)": ("x * 100", "round(2.345 * 100) / 100"),
    "log(8, 2)": ("log(x) / log(base)", "log(8) / log(2)"),
    "pixelate(s, 64, 36)": ("pixelated", "pixelated(s, 64, 36)"),
    "fill(255, 0, 0)": ("fill(circle())", "fill(circle()) * <1, 0.5, 0>"),
    "stroke(255, 0, 0, 9)": ("stroke(circle())", "stroke(circle()) * <1, 0.5, 0>"),
    "circle(100, 100, 50)": ("circle(centre()", "circle(centre() - <0.1, 0.2>, 0.3)"),
    "ellipse(5, 5, 2, 3)": ("ellipse(centre()", "ellipse(centre() - <0.1, 0.2>, 0.3, 0.2)"),
    "box(1, 1, 2, 2)": ("box(centre()", "box(centre() - <0.1, 0.2>, 0.3, 0.2)"),
    "triangle(3, 7, 5, 2, 8, 7)": ("triangle(centre()", "triangle(centre(), <-0.3, 0.2>, <0.3, 0.2>, <0, -0.3>)"),
    "arc(5, 5, 8, 8, 0, 3)": ("arc(centre()", "arc(centre() - <0.1, 0.2>, 0.3, pi)"),
}  # fmt: skip


def program(*expressions: str, names: str = NAMES) -> Source:
    """A text that shows the expressions, one a line, with the libraries that it uses."""
    called = re.findall(r"\w+(?=\()", names + " ".join(expressions))
    pragmas = "".join(f"#use {name}\n" for name in sorted({libraries_with(n)[0] for n in called if libraries_with(n)}))
    lines = "".join(f"shown{at} = {expression}\n" for at, expression in enumerate(expressions))
    shown = " + ".join(f"sum(shown{at})" for at in range(len(expressions)))
    return Source("test.weft", f"{pragmas}{names}{lines}display({shown})\n")


@cache
def warned() -> dict[str, list[Diagnostic]]:
    """What is said of each call, all of which are in one text."""
    typed = [text for text, _, _ in WARNED.values()]
    said: dict[str, list[Diagnostic]] = {text: [] for text in typed}
    for found in check(program(*typed), ContextTable()):
        assert found.span is not None
        line = found.span.source.text[: found.span.start].rpartition("\nshown")[2]
        said[typed[int(line.partition(" ")[0])]].append(found)
    return said


@pytest.mark.parametrize(("typed", "hint"), [found[:2] for found in WARNED.values()], ids=WARNED)
def test_a_call_that_means_something_else_elsewhere_is_warned_about(typed: str, hint: str) -> None:
    (found,) = warned()[typed]
    assert (found.severity, found.code) == ("warning", "false-friend")
    assert hint in (found.hint or "")
    assert found.span is not None
    assert found.span.text in typed


@pytest.mark.parametrize(("typed", "hint"), [(typed, hint) for typed, (hint, _) in TOO_MANY.items()])
def test_more_arguments_have_a_hint_of_their_own(typed: str, hint: str) -> None:
    (found,) = check(program(typed), ContextTable())
    assert found.code == "too-many-arguments"
    assert hint in (found.hint or "")


def test_what_hints_lead_to_and_what_is_meant_as_it_is_has_no_warning() -> None:
    meant = [*(found[2] for found in WARNED.values()), *(found[1] for found in TOO_MANY.values())]
    assert [found.render() for found in check(program(*meant, *NOT_WARNED), ContextTable())] == []


def test_every_name_of_the_tables_is_tried() -> None:
    typed = " ".join(text for text, _, _ in WARNED.values())
    assert [name for name in {**FALSE_FRIENDS, **PICTURE_WORDS} if f"{name}(" not in typed] == []
    assert [name for name in MORE if not any(text.startswith(f"{name}(") for text in TOO_MANY)] == []


OWN = """\
spindle normalize(a<x, y, z>) :: <x, y, z> { out = a / length(a) }
"""


@pytest.mark.parametrize(
    ("before", "text", "count"),
    [
        (OWN, "normalize(v)", 0),
        ("noise<k> = me@x\n", "noise(me@x ~ 3)", 0),
        ("spindle f(a<x, y>) :: v { v = noise(a) }\n", "f(p)", 1),
        ("spindle f(a<x, y>) :: v {\n  b = a * 2\n  v = noise(b)[0] + fbm(b)[0] + noise(a@x, b@y)\n}\n", "f(p)", 2),
        ("spindle f(a) :: v { v = noise(a) }\n", "f(p)", 0),
        ("a0 = <me@x, me@y>\n" + "".join(f"a{k + 1} = a{k} + a{k}\n" for k in range(60)), "noise(a60)", 0),
        ("w = prev(w) + <1, 2>\n", "sum(w)", 0),
    ],
)
def test_names_of_the_patch_are_known(before: str, text: str, count: int) -> None:
    found = check(program(text, names=NAMES + before), ContextTable())
    assert [d.code for d in found if d.code != "shadows-builtin"] == ["false-friend"] * count


def test_a_chain_of_calls_may_be_longer_than_calls_may_be_deep() -> None:
    chain = "".join(f"a{at + 1} = noise(a{at} + me@y)\n" for at in range(400))
    found = load(Source("p.weft", f"a0 = me@x\n{chain}display(a400)\n"), Report(), ContextTable().statements)
    assert [*false_friends(found.program)] == []


def shipped() -> list[tuple[str, str]]:
    files = [path for folder in ("patches", "weft", "tests/programs") for path in (ROOT / folder).rglob("*.weft")]
    texts = [(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")) for path in files]
    for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        found = re.findall(r"^```weft\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        texts += [(path.name, text) for text in found]
    return texts


@pytest.mark.long
def test_nothing_that_is_shipped_looks_like_another_language() -> None:
    found = []
    for name, text in shipped():
        program = load(Source(name, text), Report(), ContextTable().statements).program
        found += [each.render() for each in false_friends(program)]
    assert found == []
