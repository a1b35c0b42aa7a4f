"""After every edit, an incremental build is the same as a build from scratch."""

from __future__ import annotations

import gc
import os
import pickle
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.support.edits import place, session, told, unlike
from tests.support.mutations import programs
from tests.support.together import all_but
from weft.contexts import OWN_CONTEXTS, ContextTable
from weft.errors import Diagnostic, Source, WeftError
from weft.media.sampled import header_of
from weft.runtime.compiling.compiler import Compiler, CompileResult, Saved
from weft.runtime.compiling.kept import KeptBuild, UnplacedError
from weft.runtime.compiling.stages import Build, Request, build
from weft.runtime.program.program import Setup

ASKED = int(os.environ.get("WEFT_EDITS", "0"))
"""Tries this many sessions, different from the usual ones."""

PATCHES = programs("patches")


@pytest.fixture(autouse=True)
def _without_garbage() -> Iterator[None]:
    """Builds leave much that refers to itself, and count as old, so Python hardly ever looks for it."""
    yield
    if ASKED:
        gc.collect()


def kept_by(made: Build | WeftError) -> frozenset[str]:
    """The names that mean what they meant in the build before."""
    assert isinstance(made, Build)
    assert made.edit is not None
    return made.edit.kept


def built(path: Path, text: str, kept: KeptBuild) -> Build | WeftError:
    try:
        return build(Request(Source(str(path), text), ContextTable(), probe=header_of), kept=kept)
    except WeftError as failure:
        return failure


def check_session(seed: int, count: int) -> int:
    """Edits a patch, and builds each text both ways. How many builds started from another one."""
    chance, kept, compared = random.Random(seed), KeptBuild(), 0
    path, text = chance.choice(list(PATCHES.items()))
    # Edits are undone, and the result of a text from scratch does not change.
    from_nothing = cache(lambda edit: built(path, edit, KeptBuild()))
    for step, edit in enumerate(session(text, chance, count)):
        alone, again = from_nothing(edit), built(path, edit, kept)
        where = f"seed {seed}, {path.name}, step {step}:\n{edit}"
        if isinstance(again, WeftError):
            assert isinstance(alone, WeftError), f"{again}\n{where}"
            assert list(map(told, again.diagnostics)) == list(map(told, alone.diagnostics)), f"{again}{alone}\n{where}"
            continue
        assert not isinstance(alone, WeftError), f"{alone}\n{where}"
        assert not (words := unlike(alone, again)), f"{words}, {where}"
        compared += step > 0
    return compared


def check_texts(texts: Iterable[str]) -> None:
    """Builds one text after another both ways."""
    known = KeptBuild()
    for text in texts:
        again, alone = (built(Path("a.weft"), text, kept) for kept in (known, KeptBuild()))
        assert isinstance(again, Build), f"{again}:\n{text}"
        assert isinstance(alone, Build), f"{alone}:\n{text}"
        assert not (words := unlike(alone, again)), f"{words}:\n{text}"


def test_edits() -> None:
    """Of patches of some fifty lines, over some sessions: in one that begins badly nothing may be left to compare."""
    assert sum(check_session(seed, 8) for seed in (0, 5, 8)) > 9


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1000 + ASKED) if ASKED else (1, *range(101, 105)))
def test_more_edits(seed: int) -> None:
    check_session(seed, 10)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_a_compiler_tells_the_same(seed: int) -> None:
    """The diagnostics of a text do not depend on the texts before: codes, words and places."""
    chance = random.Random(seed)
    path, text = chance.choice(list(PATCHES.items()))
    text += WARNED * (seed % 2)
    setup = Setup(str(path), "cpu", settings={"width": 64, "height": 36})
    compiler = Compiler.of(setup)
    from_nothing = cache(lambda edit: Compiler.of(setup).compile(Saved(edit.encode(), 0.0)))
    for edit in session(text, chance, 6):
        again = compiler.compile(Saved(edit.encode(), 0.0))
        alone = from_nothing(edit)
        assert repr(again.diagnostics) == repr(alone.diagnostics)
        assert _shown(again) == _shown(alone)
        assert again.files.keys() == alone.files.keys()
        found = [
            [(u.hash, repr(u.loops)) for u in r.compiled.units] if r.compiled else None for r in (again, alone)
        ]
        assert found[0] == found[1]


LINES = {
    "a": ("prev(a) * 0.5 + me@x * 0.25", "sin(me@x * 0.5)", "phasor(0.75)", "prev(b) + 0.25"),
    "b": ("delay(a, 2, 3) + a", "a(me@x ~ me@x * 2) * 0.5", "hold(a, me@time % 1 < 0.5)", "max(prev(b) * 0.9, a)"),
    "c": ("image(b)(me@x ~ me@y)", "b * 0.5", "prev(c) + me@y"),
}
SHOWN = ("display(a)", 'display(b, to: "x")', 'display(c * a, to: "y")', "compute(c(me@x ~ 0.5, me@y ~ 0.5))")


@pytest.mark.long
def test_what_varies_over_the_picture_and_what_pictures_borrow_is_found_anew() -> None:
    chance, kept, borrowing = random.Random(4), KeptBuild(), 0
    contexts = ContextTable([replace(spec, in_one_memory=spec.sweeps_plane) for spec in OWN_CONTEXTS])
    lines = {name: values[0] for name, values in LINES.items()}
    shown = dict.fromkeys(SHOWN)
    for step in range(84):
        if chance.random() < 0.6:
            name = chance.choice(list(LINES))
            lines[name] = chance.choice(LINES[name])
        elif (statement := chance.choice(SHOWN)) not in shown or len(shown) == 1:
            shown[statement] = None
        else:
            del shown[statement]
        text = "\n".join([*(f"{name} = {value}" for name, value in lines.items()), *shown, ""])
        again, alone = (build(Request(Source("p.weft", text), contexts), kept=each) for each in (kept, KeptBuild()))
        assert not (words := unlike(alone, again)), f"{words}, step {step}:\n{text}"
        borrowing += any(unit.borrowed for unit in alone.units)
        if step % 12 == 11:
            kept = KeptBuild()
    assert borrowing > 12


SHAPES = {
    "spindle f": ("(x) :: v { v = x * 2 }", "(x) :: v { v = x * 3 }", "(x) :: v { v = prev(v) * 0.5 + x }",
                  "(x) :: v { v = <x * i for i in (1 to 2)> }", "(x) :: v { v = x + g(x) }", "(x) :: v { v = x + h }"),
    "spindle g": ("(y) :: v { v = y + 1 }", "(y) :: v { v = y + h }",
                  "(y) :: v { v = sum(<y * i for i in (1 to n)>) }"),
    "spindle e": ("(x<p, q>, y = h) :: <p, q> { p = x@p + y\nq = f(y) }",
                  "(x<p, q>, y = 2) :: <p, q> { out = <y, x@q> }"),
    "n = ": ("2", "3", "1 + 2", "if h > 0 then 2 else 3"),
    "h = ": ("0.5", "0.25", "key@space", "me@x"),
    "a = ": ("<me@x * i for i in (1 to n)>", "<me@x, me@y, n>", "f(me@x)", "<h, h * 2>", "prev(b[0]) + h",
             "rms(phasor(110))"),
    "b = ": ("a * 2", "f(a)", "join(a, h)", "<a[0], h>", "sum(a)", "g(h)", "fft(phasor(220 * h), bands: 4)"),
    "c<u, v> = ": ("<me@x, h>", "<a[0], prev(c@u) + 0.1>", "<f(h), g(me@y)>", "<b[0], h>"),
    "unused = ": ("b * 2", "prev(unused) + a[0]", "c@uv", "h", "delay(h, n, 4)"),
    "unread = ": ("unused * 2", "f(h)", "image(c@u)(me@x ~ me@y)", "c@u"),
    "e(<h, n>, f(h))::d": ("<p, q>", "<p>"),
}  # fmt: skip
ASKING = (
    "display(a[0])", 'display(f(c@u), to: "y")', 'display(b[0], to: "x")', "play(c@u)", "compute(sum(b), n)",
    "compute(d@p)", "compute(g(h))", "play(sum(a))", "display(me@x, to: \"z\")",
)


@pytest.mark.parametrize("seed", range(1000, 1000 + ASKED) if ASKED else range(3))
def test_what_stands_for_other_strands_is_found_anew(seed: int) -> None:
    """Numbers that decide how many strands there are, spindles that give several, and strands that nothing uses."""
    chance, kept, compared = random.Random(seed), KeptBuild(), 0
    lines, shown = {name: values[0] for name, values in SHAPES.items()}, dict.fromkeys(ASKING[:5])
    good = lines, shown
    for _ in range(40):
        lines, shown = dict(lines), dict(shown)
        for _ in range(chance.choice((1, 1, 2))):
            kind, name, statement = chance.random(), chance.choice(list(SHAPES)), chance.choice(ASKING)
            if kind < 0.75:
                lines[name] = chance.choice(SHAPES[name])
            elif kind < 0.8:
                lines.pop(chance.choice(("unread = ", "h = ", "spindle f")), None)
            elif kind < 0.9:
                rest = [each for each in shown if each != statement]
                shown = dict.fromkeys(rest if rest and statement in shown else [*rest, statement])
            else:
                lines = dict(chance.sample(list(lines.items()), len(lines)))
        texts = [*(f"{name}{value}" for name, value in lines.items()), *shown, ""]
        text = "// note\n" * chance.randrange(3) + "\n".join(texts)
        again, alone = (built(Path("p.weft"), text, each) for each in (kept, KeptBuild()))
        if isinstance(alone, WeftError):
            assert isinstance(again, WeftError), text
            assert list(map(told, again.diagnostics)) == list(map(told, alone.diagnostics)), f"{again}{alone}\n{text}"
            lines, shown = good if chance.random() < 0.8 else (lines, shown)
            continue
        assert isinstance(again, Build), f"{again}\n{text}"
        assert not (words := unlike(alone, again)), f"{words}:\n{text}"
        good, compared = (lines, shown), compared + 1
    assert compared > 4 or ASKED


LOOP = "(x) :: v {{ v = 0\n for i in (1 to x * 7999) {{ v += {} }} }}"
TOLD = {
    "#use ": ("std.sdf", "std.color", "std.sdf // note"),
    "#slider ": ("far<v> = 0, 1, 0.5", "far<v> = 0, 1, 2", "far<v> = 0, 1, 3 \"far\""),
    "#xy ": ("both<u, v> = 0.5, 0.5", "both<u, v> = 2, -1"),
    "spindle abs": ("(x) :: v { v = max(x, -x) * 1.5 }", "(x) :: v { v = max(x, -x) * 1.25 }", "(x) :: v { v = a }"),
    "spindle circle": ("(p, r) :: v { v = p - r }", "(p, r) :: v { v = p - r * 0.5 }", "(p,  r) :: v {\n v = p - r }"),
    "spindle box": ("(x) :: v { v = x }", "(x) :: v { v = x + 1 }"),
    "spindle f": (*map(LOOP.format, ("sin(i) * 0.5", "sin(i) * 0.25", "sin(i + x)", "prev(i)")),
                  LOOP.format("0.5").replace("for", "v = 2\n for"), "(x) :: v { v = x }"),
    "spindle g": (*map(LOOP.format, ("sin(i) * 0.5", "sin(i) * 0.75", "noise(i, x)")),
                  "(x) :: v { v = 0\n for k in (1 to x * 7999) { v = v + sin(k) * 0.5 }\n v += f(x) }"),
    "spindle h": ("(x, n = 90) :: v { v = 1\n for i in (1 to x * 200) { for k in (i to x * n) { v += i * k * x } } }",
                  "(x) :: v {\n v = g(x) }"),
    "a = ": ("me@x * 0.5", "me@x * 0.25", "abs(me@y - 0.5)", "far * me@x"),
    "b = ": ("f(me@x)", "f(a)", "g(a) + 1", "h(a)", "a"),
    "c = ": ("g(me@x)", "f(a) * 2", "g(a) + f(b)", "f(a) + h(a)", "1 + h(me@time)"),
}  # fmt: skip
TELLING = ("display(a)", "display(b, to: \"x\")", "display(c, to: \"y\")", "compute(b + c)", "play(c * 0.1)",
           "compute(circle(a, 0.5))", "display(b |> turned(0.2), to: \"z\")")  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1000 + ASKED) if ASKED else all_but(2, range(4)))
def test_places_are_those_of_the_text_of_now(seed: int) -> None:
    """Of warnings and long loops, in statements that are kept, move, are tuned, taken back, or in other files."""
    chance, kept = random.Random(seed), KeptBuild()
    lines = {name: values[0] for name, values in TOLD.items()}
    order, shown = [*lines], dict.fromkeys(TELLING[:5])
    good = lines
    texts: list[tuple[str, str]] = []
    warned = looped = compared = 0
    for _ in range(30):
        lines = dict(lines)
        for _ in range(chance.choice((0, 1, 1, 2))):
            kind, name, statement = chance.random(), chance.choice(order), chance.choice(TELLING)
            if kind < 0.7:
                lines[name] = chance.choice(TOLD[name])
            elif kind < 0.8:
                order = chance.sample(order, len(order))
            else:
                rest = [each for each in shown if each != statement]
                shown = dict.fromkeys(rest if statement in shown else [*rest, statement])
        said = [f"{'// é' * chance.randrange(2)}\n{name}{lines[name]}" for name in order]
        cut = chance.choice((0, 0, 3, 6))
        main = "\n".join(["#include \"inc.weft\"" * (cut > 0), "#use std.picture", *said[cut:], *shown, ""])
        texts.append((main, "\n".join(said[:cut])))
        main, included = chance.choice(texts) if chance.random() < 0.15 else texts[-1]
        if chance.random() < 0.1:
            main += "\n#slider wrong<v> = 1, 0, 7\nd = ("  # a mistake, and its correction

        def found(known: KeptBuild, text: str = main, other: str = included) -> Build | WeftError:
            try:
                return build(Request(Source("p.weft", text), ContextTable(), read=lambda _: other), kept=known)
            except WeftError as failure:
                return failure

        alone, again = found(KeptBuild()), found(kept)
        where = f"seed {seed}\n{main}\n--- inc.weft\n{included}"
        if isinstance(alone, WeftError):
            assert isinstance(again, WeftError), where
            assert list(map(told, again.diagnostics)) == list(map(told, alone.diagnostics)), f"{again}{alone}\n{where}"
            lines = good
            continue
        assert isinstance(again, Build), f"{again}\n{where}"
        assert not (words := unlike(alone, again)), f"{words}\n{where}"
        compared, good = compared + 1, lines
        warned += bool(alone.warnings) and bool(kept_by(again))
        looped += any(unit.loops for unit in alone.units) and bool(kept_by(again))
    assert min(warned, looped) > 2, (warned, looped, compared)


def _shown(result: CompileResult) -> dict[str, str]:
    return {label: f"{span} {span.text}" for label, span in result.places.items()}


WARNED = """
spindle abs(x) :: v { v = max(x, -x) }
spindle long(x) :: v { v = 0
  for i in (1 to x * 99999) { v += sin(i * 0.5) } }
#slider far<v> = 0, 1, 2
compute(abs(far - 0.5), long(me@time))
"""


@pytest.mark.parametrize(
    "edit",
    [
        (("// note\n", ""), {"wave", "alone", "low", "high", "mixed", "trail", "abs", "long", "far"}),
        (("// note", "\n\n// é"), {"wave", "alone", "low", "high", "mixed", "trail", "abs", "long", "far"}),
        (("me@y, 9", "me@x, 9"), {"wave", "alone", "low", "abs", "long", "far"}),
        (("i * 0.5", "i * 0.125"), {"wave", "alone", "low", "high", "mixed", "trail", "abs", "long", "far"}),
        (("1, 2", "1, 1000"), {"wave", "alone", "low", "high", "mixed", "trail", "abs", "long", "far"}),
        (("max(x, -x)", "\n\nmax(-x, x)"), {"wave", "alone", "low", "high", "mixed", "trail", "long", "far"}),
    ],
)
def test_a_text_with_warnings_is_built_from_the_last_one(edit: tuple[tuple[str, str], set[str]]) -> None:
    (old, new), names = edit
    compiler, path, known = Compiler.of(Setup("a.weft", "cpu")), Path("a.weft"), KeptBuild()
    first = "// note\n" + TEXT + WARNED
    for text in (first, first.replace(old, new), first):
        made = compiler.compile(Saved(text.encode(), 0.0))
        again, alone = built(path, text, known), built(path, text, KeptBuild())
        assert isinstance(alone, Build)
        assert [d.code for d in made.diagnostics] == ["shadows-builtin", "start-out-of-range"]
        assert list(map(told, made.diagnostics)) == list(map(told, alone.warnings))
        assert made.compiled is not None
        loops = [[place(span) for unit in units for span in unit.loops] for units in (made.compiled.units, alone.units)]
        assert loops[0] == loops[1]
        assert len(loops[0]) == 1
        assert text is first or kept_by(again) == names


def test_equal_loops_have_the_place_that_was_made_first() -> None:
    """Also if the one that comes first was made later, or was in the place of the other one."""
    loop = "spindle {}(x) :: v {{ v = 0\n for i in (1 to x * 99999) {{ v += sin(i) * {} }} }}\n"
    one, other, tuned = loop.format("f", 0.5), loop.format("g", 0.5), loop.format("g", 0.25)
    ends = ["display(f(me@x))", "display(g(me@x))", "display(f(me@x) + g(me@x))", "display(g(me@x) - f(me@x))"]
    check_texts(f"{first}{second}{end}\n" for first, second in ((one, other), (tuned, one), (other, one), (one, tuned))
                for end in (*ends, *ends[::-1]))  # fmt: skip


def test_a_definition_moves_to_another_file() -> None:
    """Another file may not bind more outputs of a name."""
    known, included = KeptBuild(), ["a<u> = me@x\na<v> = me@y\n", "a<u> = me@x\n"]
    for library, rest in zip(included, ("", "a<v> = me@y\n"), strict=True):
        text = f'#include "inc.weft"\n{rest}display(a@u)\n'

        def found(kept: KeptBuild, text: str = text, library: str = library) -> list[str]:
            try:
                build(Request(Source("a.weft", text), ContextTable(), read=lambda _: library), kept=kept)
            except WeftError as failure:
                return [each.code for each in failure.diagnostics]
            return []

        assert found(known) == found(KeptBuild()) == ["bound-in-two-files"] * bool(rest)


TEXT = """
spindle wave(x, n) :: v { v = sin(x * n) }
spindle alone(x) :: v { v = x + 1 }
low = wave(me@x, 3)
high = wave(me@y, 9)
mixed = low * 0.5 + high
trail = prev(trail) * 0.9 + mixed
display(trail)
"""


@pytest.mark.parametrize(
    ("edit", "kept"),
    [
        (("// note\n", ""), {"wave", "alone", "low", "high", "mixed", "trail"}),
        (("x + 1", "x - 1"), {"wave", "low", "high", "mixed", "trail"}),
        (("me@y, 9", "me@x, 9"), {"wave", "alone", "low"}),
        (("sin(x * n)", "cos(x * n)"), {"alone"}),
        (("low * 0.5", "0.5 * low"), {"wave", "alone", "low", "high"}),
        # A number that decides nothing.
        (("display(trail)", "display(trail * 0.5)"), {"wave", "alone", "low", "high", "mixed", "trail"}),
        (("x + 1", "x + 2"), {"wave", "alone", "low", "high", "mixed", "trail"}),
        (("prev(trail) * 0.9", "prev(trail) * 0"), {"wave", "alone", "low", "high", "mixed", "trail"}),
        # The output of a name is no mention of a strand that is called like it.
        (("low = ", "x = me@y\nlow = "), {"wave", "alone", "low", "high", "mixed", "trail"}),
        (("low = ", "me<bpm> = 90\nlow = "), set()),
    ],
)
def test_what_is_built_again(edit: tuple[str, str], kept: set[str]) -> None:
    known = KeptBuild()
    assert isinstance(built(Path("a.weft"), "// note\n" + TEXT, known), Build)
    assert kept_by(built(Path("a.weft"), ("// note\n" + TEXT).replace(*edit), known)) == kept


def test_a_loop_over_a_spindle_that_has_grown() -> None:
    """Whether the steps of a loop are written out depends on the bodies of the spindles that it calls."""
    loop = "for i in (1 to 8) { v += b(x * i) }"
    text = f"spindle b(x) :: v {{ v = x }}\nspindle a(x) :: v {{ v = 0\n{loop} }}\ndisplay(a(me@x))"
    grown = text.replace("v = x }", "\n".join(["v = x", *(f"v = noise(v * {i}, x) + sin(v)" for i in range(40)), "}"]))
    check_texts((text, grown, text))


def test_a_strand_becomes_a_bundle_and_is_read_elsewhere() -> None:
    text = "a = me@x * 2\nb = <a[0], me@y>\nc = b@x(me@x ~ 0.3)\ndisplay(c)\n"
    other = text.replace("me@x * 2", "<me@x, me@y>").replace("0.3", "me@y")
    check_texts((text, other, text))


def test_what_a_spindle_reads_becomes_a_bundle_or_is_gone() -> None:
    """Its calls then give other strands, though neither they nor the spindle have changed."""
    text = "spindle lamp(n) :: v { v = n * level }\nlevel = me@x\na = lamp(2)\ndisplay(a[0])\n"
    check_texts((text, text.replace("= me@x", "= <me@x, me@y>"), text))
    known, gone = KeptBuild(), text.replace("level = me@x\n", "")
    assert isinstance(built(Path("a.weft"), text, known), Build)
    again, alone = (built(Path("a.weft"), gone, kept) for kept in (known, KeptBuild()))
    assert isinstance(again, WeftError)
    assert isinstance(alone, WeftError)
    assert list(map(told, again.diagnostics)) == list(map(told, alone.diagnostics))


NAMES = """
#use std.sdf
spindle own(a, b = speed) :: v { speed = a * 2; v = speed + b + far }
speed = 0.5
far = 0.25
radius = 0.2
seen = own(me@x)
round = circle(<me@x, me@y>, radius)
other = circle(<me@x, me@y>, 0.1)
display(seen + round + other)
"""


@pytest.mark.parametrize(
    ("edit", "built"),
    [
        (("speed = 0.5", "speed = me@x"), {"speed", "own", "seen"}),
        (("far = 0.25", "far = me@x"), {"far", "own", "seen"}),
        (("radius = 0.2", "radius = me@y"), {"radius", "round"}),
        (("0.1)", "me@y)"), {"other"}),
        (("far = 0.25", "far = 0.25\nspindle circle(p<x, y>, r) :: v { v = p@x < r }"), {"circle", "round", "other"}),
    ],
)
def test_which_names_a_spindle_means(edit: tuple[str, str], built: set[str]) -> None:
    """Its own names hide those of the patch, except in the defaults of its parameters; a library sees none of them."""
    known = KeptBuild()
    first = build(Request(Source("a.weft", NAMES), ContextTable()), kept=known)
    again = build(Request(Source("a.weft", NAMES.replace(*edit)), ContextTable()), kept=known)
    names = {*first.patch.instances, *first.patch.spindles}
    assert names - kept_by(again) == built & names


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a = prev(a) * 0.9 + me@y", "a = prev(a) * 0.9 + me@time"),
        ("a = prev(a) + me@y\na = me@x", "a = prev(a) * 0.9 + me@time"),
        ("a<u, v> = <me@x, me@y>", "a = <me@y, me@x>"),
        ("a<u, v> = <me@x, me@y>\na = 2", "a = <me@y, me@x>"),
    ],
)
def test_a_definition_becomes_another_one(one: str, other: str) -> None:
    """Also from a text with a mistake: neither its state nor its names stay."""
    known, path, rest = KeptBuild(), Path("a.weft"), "\nb = a * 2\ndisplay(sum(b))\n"
    for text in (one + rest, other + rest, one + rest, other + rest):
        found = built(path, text, known)
    alone = built(path, text, KeptBuild())
    assert isinstance(found, Build)
    assert isinstance(alone, Build)
    assert unlike(alone, found) == ""


def test_a_pattern_is_written_otherwise() -> None:
    """Its events, voices and words are those of the text of now."""
    texts = ("0 3 7", "c4 ef4 bf3", "{0 3 7}%<2 4>", "0 3|7", "0 3|7 9", "0 3, 7", "t f", "0 .. 7", "0 . 3! 7",
             "x(<3 -5>,8)", "bd [sn|hh]*<2 3>", "bd [sn|hh]*<2 4>", "0 3 7")  # fmt: skip
    check_texts(f'p<value, gate> = pattern("{text}")\ndisplay(p@value, p@gate, 0)\naudio(p@gate)\n' for text in texts)


def test_what_is_read_along_an_axis_is_found_anew() -> None:
    text = (
        "base<v> = me@absframe + me@x\ncache(base, 5)::cach<v>\nother<v> = me@x * {}\ncache(other, 3)::more<v>\n"
        "made<v> = prev(made@v) * 0.5 + {}\nu = made * 2\ndisplay(made)\ncompute({})\n"
    )
    read = ("u", "u(cach@k ~ 2)", "u(more@k ~ 1)", "u(more@k ~ cach@k)(cach@k ~ 2)", "u(me@channel ~ 1)", "u")
    made = ("cach@v", "cach@v * 2", "cach@v + more@v", "cach@v(cach@k ~ 1) + more@v", "me@x", "prev(cach@v)",
            "me@channel + 1")  # fmt: skip
    check_texts(text.format(n, m, r) for n, (m, r) in enumerate((m, r) for m in made for r in read))
    check_texts(text.format(2, m, r) for r in read for m in made)


def test_what_another_language_means_is_told_of_the_text_of_now() -> None:
    before = "#use std.blend\nv<x, y, z> = <0.3, me@x, 1>\nn = <0, -1, 0>\n"
    after = "display(reflect(v, n) + noise(3, 0.1))\n"
    edits = (("", ""), ("0.1)", "0.2)"), ("0.1)", "me@x)"), ("-1", "1"), ("v<x, y, z>", "v<r, g, b>"), ("n =", "\nn ="),
             ("reflect(v, n)", "(v - 2 * dot(n, v) * n)"),
             ("#use", "spindle noise(a, b) :: v { v = a * b }\n#use"))  # fmt: skip
    check_texts((before + after).replace(*edit) for edit in (*edits, *reversed(edits)))


@pytest.mark.parametrize("mistake", ["nine", "9 9"])
def test_a_fix_starts_from_the_last_good_build(mistake: str) -> None:
    """But for what the mistake affected."""
    known, path = KeptBuild(), Path("a.weft")
    built(path, TEXT, known)
    assert isinstance(built(path, TEXT.replace("me@y, 9", f"me@y, {mistake}"), known), WeftError)
    assert kept_by(built(path, TEXT, known)) == {"wave", "alone", "low"}


MISTAKES = """\
#use std.color
spindle f(x, n = 2) :: v {{
  v = x * n{in_spindle}
}}
a = f(me@x, 0.5) * 3
b = f(a) + {in_binding}
c<u, v> = <a, b>
far = hsv(0.2, b)
display(c@u{in_output}, f(b, 0.25), 0)
compute(a * 0.5, me@time)
"""


@pytest.mark.parametrize(
    "mistakes",
    [
        {"in_binding": "nowhere"}, {"in_binding": "2 sin(me@x)"}, {"in_binding": "sin(me@x"}, {"in_binding": "a@w"},
        {"in_binding": "f(1, 2, 3)"}, {"in_binding": "c@w + hsl(1)"}, {"in_spindle": " + y"},
        {"in_spindle": "\n  w = )"}, {"in_spindle": "\n  w = f(1, 2, 3)"}, {"in_output": " + nothing"},
        {"in_output": " + @"}, {"in_output": ", 1, 2"}, {"in_binding": "f(0.5)@w"}, {"in_binding": "1\nb = 2"},
        {"in_binding": "1\n#slider low<v> = 0, 1, 1", "in_output": ")\n#slider low<v> = 0, 2, 1\ndisplay(c@u"},
        {"in_binding": "prev()", "in_output": " * sin()"}, {"in_binding": "<1, 2>", "in_output": " * far"},
        {"in_spindle": "\n}\nspindle g(x) :: v {\n  v = f()"}, {"in_binding": '1\n#include "none"'},
    ],
    ids=lambda mistakes: " ".join(mistakes.values()),
)  # fmt: skip
def test_a_mistake_is_told_from_what_is_kept(mistakes: dict[str, str]) -> None:
    """With its place in the text of now: after lines that have come, or after numbers that were tuned."""

    from_nothing = list[Sequence[Diagnostic]]()

    class Watched(KeptBuild):
        def located(self, found: Sequence[Diagnostic]) -> list[Diagnostic]:
            try:
                return super().located(found)
            except UnplacedError:
                from_nothing.append(found)
                raise

    known, path = Watched(), Path("a.weft")
    good = MISTAKES.format(in_spindle="", in_binding="1", in_output="")
    bad = MISTAKES.format(**{"in_spindle": "", "in_binding": "1", "in_output": "", **mistakes})
    above = "// é\n\nnew = me@y\n"
    tuned = (("0.25", "0.1234567"), ("0.5", "0.7001"), ("n = 2", "n = 2.125"))
    for text in (good, bad, above + bad, above + good, above + bad, bad):
        for edit in (text, *(text.replace(*pair) for pair in tuned)):
            again, alone = built(path, edit, known), built(path, edit, KeptBuild())
            if isinstance(alone, WeftError):
                assert isinstance(again, WeftError)
                assert list(map(told, again.diagnostics)) == list(map(told, alone.diagnostics)), f"{again}{alone}"
            else:
                assert isinstance(again, Build)
                assert unlike(alone, again) == ""
    # A message that may quote a tuned number is for a build from scratch.
    assert all(re.search("[0-9]", f"{found[0].message} {found[0].hint}") for found in from_nothing)


def test_a_pause_is_used_to_begin_from_nothing(tmp_path: Path) -> None:
    """What no text uses any more is dropped, and no save has to wait for that."""
    compiler = Compiler.of(Setup(str(tmp_path / "a.weft"), "cpu"))

    def save(number: int) -> list[str]:
        made = compiler.compile(Saved(TEXT.replace("0.5", f"0.{number}").encode(), 0.0)).compiled
        assert made is not None
        return [unit.hash for unit in made.units]

    def prepares(is_long: bool) -> bool:
        """Whether it begins from scratch in such a pause."""
        kept = compiler._kept
        prepared = compiler.prepare(is_long)
        assert prepared == (compiler._kept is not kept)
        return prepared

    assert not prepares(is_long=True)
    first = save(110)
    assert not prepares(is_long=True)
    for number in range(111, 130):
        assert save(number) != first
    assert not prepares(is_long=False)
    assert prepares(is_long=True)
    assert not prepares(is_long=True)
    kept = compiler._kept
    for number in range(130, 230):
        assert save(number) != first
    assert compiler._kept is kept, "no save has waited"
    assert prepares(is_long=False)
    assert not prepares(is_long=True)
    assert save(110) == first


NUMBERS = {
    "a delay of less than a tick": ("n = {}\na = delay(me@x, n, 9)\ndisplay(a)", (2, 0.5, 3, 2.5, 0)),
    "how much is remembered": ("most = {}\na = delay(me@x, me@y * 9, most)\ndisplay(a)", (4, 9, 9.5, 4)),
    "steps of a loop": (
        "spindle f(n) :: v {{ v = 0\n for i in (1 to n) {{ v += sin(me@x * i) }} }}\nn = {}\ndisplay(f(n))",
        (3, 4, 30, 3),
    ),
    "members": ("n = {}\nb = <sin(me@x * i) for i in (1 to n)>\ndisplay(sum(b))", (2, 3, 2)),
    "a choice": ("n = {}\ndisplay(<me@x, me@y, 0.5>[n])", (0, 1, 2, 7, 0.5)),
    "octaves": ("n = {}\ndisplay(noise(me@x * n, me@y, n))", (2, 3, 0, 1)),
    "what is only multiplied": ("n = {}\ndisplay(me@x * n + n)", (2, 0, -1, 1, -0.0)),
    "a spindle's default": ("spindle f(x, n = {}) :: v {{ v = x * n }}\ndisplay(f(me@x), f(me@y, 2), f(1))", (2, 3, 1)),
    "a bundle": ("c<r, g, b> = <0.5, {0}, {0}>\ndisplay(c * me@x)", (0.25, 0.5, 0)),
    "a place": ("a = sin(me@x * 9)\ndisplay(a(me@x ~ {0}), a(me@x ~ 0.5), a(me@x ~ me@x * {0}))", (0.25, 0.5, 0)),
    "an output statement": ("a = me@x\ndisplay(a * {0}, 0.5, {0})\nplay(sin(a * {0}), {0})", (0.25, 0.5, 0, 1)),
    "of a delay in an output statement": ("n = {0}\ndisplay(delay(me@x, {0} * 2, 9), n, n)", (0.25, 0.5, 2, 0)),
    "of a cut in an output statement": ("a = me@x\ncompute(seq(<a, a * 2, 3>, {0}), a * {0})", (0.25, 1, 2.5, 7)),
    "a condition": ("display(if me@x < {0} then {0} else {0} * me@y)", (0.25, 1, 0)),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_decide_something_and_others(name: str) -> None:
    text, values = NUMBERS[name]
    known = KeptBuild()
    for value in values:
        again, alone = (built(Path("a.weft"), text.format(value), kept) for kept in (known, KeptBuild()))
        assert isinstance(alone, Build) == isinstance(again, Build), f"{value}: {again} {alone}"
        if isinstance(again, Build) and isinstance(alone, Build):
            assert not (words := unlike(alone, again)), f"{words}: {value}"


def test_a_number_of_an_output_statement_is_tuned() -> None:
    """Output statements have no names: one takes the place of another that is not there any more."""
    one, other, third = "compute(a * 0.25)\n", "compute(a * 0.5)\n", "compute(a * 0.75)\n"
    check_texts(f"{top}a = me@time\n{shown}" for top in ("", "// note\n") for shown in (
        one + other, third + other, other + third, third, other, one + other + third, third + one + other,
        f"display(a)\n{one}", f"{third}display(a * 0.5)\n", f"{other}display(a * 0.25)\n{third}", "display(0.5)\n",
        "display(0.25)\n", "compute(0.5, 0.5)\n", "compute(0.5, 0.25)\n",
    ))  # fmt: skip
    known = KeptBuild()
    for number in (0.5, 0.25):
        found = built(Path("a.weft"), f"a = me@x\ndisplay(sin(a) * {number})\n", known)
        assert isinstance(found, Build)
        assert len(known._numbers.values) == (number != 0.5)


@pytest.mark.parametrize(
    "texts",
    [
        # The same number, written again: what it decides now follows from another one.
        [f"n = {n}\n" + "a = delay(me@x, n, 9)\ndisplay(a)" for n in ("2", "1 * 2", "1 * 0.5", "0.5", "3")],
        # Two numbers that are the same at first, in the same place.
        [
            f"a = me@x * 4\ndisplay(delay(me@y, a(me@x ~ {one}), 9), delay(me@y, a(me@x ~ {other}), 9), 0)"
            for one, other in ((0.5, 0.5), (0.5, 0.1), (0.1, 0.1), (0.1, 0.75))
        ],
    ],
)
def test_numbers_are_told_apart_by_their_places(texts: list[str]) -> None:
    check_texts(texts)


def test_a_number_that_decides_something_later() -> None:
    """It has been tuned before, so nothing that is kept knows its value."""
    texts = [f"n = {n}\na = me@x * n\ndisplay({shown})\n" for n, shown in
             ((2, "a"), (3, "a"), (3, "delay(a, n, 9)"), (0.5, "delay(a, n, 9)"), (0.5, "a"), (4, "a"))]
    check_texts(texts)


def test_a_count_becomes_constant_in_the_same_save() -> None:
    """While it is found out what the save affects, a strand is evaluated with a count that still varies."""
    text = "spindle g(y) :: v { v = y + h }\nn = if h > 0 then 2 else 3\nh = key@space\nb = g(h)\ndisplay(b * n)\n"
    other = text.replace("v = y + h", "v = sum(<y * i for i in (1 to n)>)").replace("key@space", "0.5")
    check_texts((text, other, text))


def test_a_build_can_be_handed_to_other_processes() -> None:
    text = "trail<v> = max(me@x, prev(trail@v) * 0.9)\nlevel<v> = integrate(me@time)\ndisplay(trail@v * level@v)\n"
    made = build(Request(Source("a.weft", text), ContextTable()))
    assert pickle.loads(pickle.dumps(made)).units == made.units
