"""Shaders show what the machines show: the pictures of generated programs, of memory that is kept from tick to tick,
and of loops."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.support.gl import GlExecutor, Graphics, embedded_graphics, graphics, that_computes
from tests.support.parity.cases import Case, case_of, case_of_seed
from tests.support.parity.rule import Outcome, compare, off_share
from tests.support.parity.shrink import report
from tests.support.together import all_but
from tests.support.tolerances import OFF_SHARE
from weft.backends.launch import Launch, StateMemory
from weft.backends.vm import ReferenceExecutor
from weft.codegen import glsl
from weft.codegen.clike.emission import emit
from weft.codegen.clike.shader import UnsuitableError
from weft.codegen.glsl import fragment, over_picture, points
from weft.codegen.kernel import LOOP_STEPS, NEST_STEPS
from weft.contexts import ContextTable
from weft.errors import Source
from weft.names import StrandRef
from weft.runtime.compiling.stages import Request, build

__all__ = ["embedded_graphics", "graphics", "that_computes"]

# Each takes a fifth of a second: two shaders, which the driver compiles again. `WEFT_PARITY=20000` tries this many
# others.
ASKED = int(os.environ.get("WEFT_PARITY", "0"))
FIRST, COUNT, CHUNK = (1_000_000, ASKED, 20) if ASKED else (0, 180, 20)


# --- generated programs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", all_but(1, range(FIRST, FIRST + COUNT, CHUNK)))
def test_generated_programs_show_what_the_reference_shows(start: int, graphics: Graphics) -> None:
    failures: list[tuple[int, Case, Outcome]] = []
    outcomes: list[Outcome] = []
    for seed in range(start, start + CHUNK):
        case = case_of_seed(seed)
        outcome = compare(case, GlExecutor(graphics))
        outcomes.append(outcome)
        if outcome.unexplained:
            failures.append((seed, case, outcome))
    if failures:
        seed, case, outcome = failures[0]
        seeds = [seed for seed, _, _ in failures]
        executor = GlExecutor(graphics)
        pytest.fail(f"programs {seeds}\n" + report(case, executor, outcome, f"program {seed} on glsl"), pytrace=False)
    assert off_share(outcomes) <= OFF_SHARE


class Sharing(glsl.Glsl):
    """Shares all that can be shared, whether it saves anything or not."""

    @property
    def worth_sharing(self) -> float:
        return -math.inf


@pytest.mark.parametrize("start", all_but(1, range(FIRST, FIRST + COUNT, CHUNK)))
@pytest.mark.usefixtures("that_computes")
def test_what_columns_and_rows_of_tiles_share_shows_the_same(start: int, graphics: Graphics) -> None:
    failures, shared = [], 0
    for seed in range(start, start + CHUNK):
        case = replace(case_of_seed(seed), packed=True)
        program = emit(case.kernel, Sharing(tile=glsl.TILE), packed=True)
        if "barrier();" in program.text:
            shared += 1
            outcome = compare(case, GlExecutor(graphics, Sharing(tile=glsl.TILE)))
            if outcome.unexplained:
                failures.append(report(case, GlExecutor(graphics), outcome, f"program {seed} in tiles"))
    assert failures == []
    assert shared > CHUNK / 4


@pytest.mark.parametrize(
    "text",
    [
        "me@x % (me@y * 0)", "(me@x * 0) % key@a", "0 * me@x / (key@a * me@y)", "me@x * 0", "0 / min(0, me@x)",
        "0 / (me@x * key@a)",
    ],
)  # fmt: skip
def test_what_is_divided_by_nothing_has_no_value(text: str, graphics: Graphics) -> None:
    """Compilers of shaders take it that x * 0 is 0, and whatever is divided by it or into it goes with it."""
    case = case_of(f"display({text})\n")
    assert np.isnan(case.expected).all() == ("%" in text or "/" in text)
    assert compare(case, GlExecutor(graphics)).unexplained == ()


# --- memory -------------------------------------------------------------------------------------------------------

MEMORIES = {
    "the last tick": "t<v> = mix(me@x, prev(t@v), 0.75)\ndisplay(t@v)",
    "another place": (
        "t<v> = max(hash(me@px, me@py, me@absframe), prev(t@v)(me@x ~ me@x * 0.9 + 0.05) * 0.9)\ndisplay(t@v)"
    ),
    "several planes": "h = hold(me@x * fract(me@time * 7), floor(me@absframe / 2))\ndisplay(h)",
    "a trigger that varies over the picture": "h = hold(me@time, me@x * 0.3 + me@y * 0.7)\ndisplay(h)",
    "a trigger that varies, and changes": "h = hold(me@absframe, floor(me@time * 30 + me@x * 3))\ndisplay(h / 9)",
    "a constant trigger": "h = hold(me@time * me@x, 0.1)\ndisplay(h)",
    "a hold at another place": "h = hold(me@time + me@x, me@y * 0.3)\ndisplay(h(me@x ~ 1 - me@x, me@y ~ me@y * 0.9))",
    "so many ticks": "display(delay(hash(me@px, me@absframe), 2, 3))",
    "a varying number of ticks": "display(delay(hash(me@px, me@absframe), me@y * 3, 3))",
    "numbers, a varying number of ticks ago": (
        "w<v> = hash(me@absframe)\ncache(w, 4)::past<v>\ndisplay(past@v(past@k ~ me@x * 3))"
    ),
    "two of them": (
        "w<v> = hash(me@absframe)\ncache(w, 4)::past<v>\nu<v> = hash(me@absframe, 1)\ncache(u, 4)::other<v>\n"
        "display(past@v(past@k ~ me@x * 3) - other@v(other@k ~ me@y * 3))"
    ),
    "an image of this tick": (
        "i<v> = image(hash(me@px, me@py, me@absframe))\ndisplay(i@v(me@x ~ me@x * 0.7 + 0.1, me@y ~ 1 - me@y) * i@v)"
    ),
    "one place of an image of this tick": (
        "i<v> = image(me@x + me@absframe / 20)\nj<v> = image(i@v(me@x ~ 0.3, me@y ~ 0.5) * me@y)\n"
        "display(i@v(me@x ~ 0.6, me@y ~ 0.2), j@v(me@x ~ 0.5, me@y ~ sin(me@time)), me@x)"
    ),
    "one place of a smaller image": "display(image(me@x * me@time, 1)(me@x ~ 0.3, me@y ~ 0.5))",
    "images of images and of memory": (
        "i<v> = image(image(prev(t@v))(me@x ~ 1 - me@x) * 0.5 + me@y)\nt<v> = mix(me@x, i@v(me@y ~ me@x), 0.5)\n"
        "display(t@v, i@v(me@x ~ me@x + 0.1), me@absframe / 9)"
    ),
    "an image that is read in a loop": (
        "spindle f(s) :: v { i = image(s); for k in (0 to me@px) { v += i(me@x ~ me@x - k / 9) } }\n"
        "display(f(me@x * me@y + me@time))"
    ),
    "a number": "display(phasor(3) * me@x)",
    "a sum": "display(fract(integrate(me@x * 9 + me@y)))",
}


@cache
def remembering(text: str) -> Case:
    """A program that remembers, over several ticks in a row."""
    return case_of(text + "\n", moments=tuple(tick / 60 for tick in range(7)), shape=(5, 7))


@pytest.mark.parametrize("text", all_but(8, MEMORIES.values()), ids=MEMORIES.keys())
def test_memory(text: str, graphics: Graphics) -> None:
    assert compare(remembering(text), GlExecutor(graphics)).unexplained == ()


QUOTIENTS = "display(floor(me@px * 3 / 3) / 9, fract(me@px * key@a / key@a), floor(me@x * 2))"


@pytest.mark.parametrize("text", [MEMORIES["another place"], QUOTIENTS], ids=["images", "quotients"])
def test_drivers_of_version_3_30_show_the_same(
    text: str, graphics: Graphics, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if text == QUOTIENTS and not graphics.about.software:
        pytest.skip("its compiler may reorder sums, and cannot be told not to in this version")
    newer, older = glsl.as_newer, list[bytes]()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(glsl, "as_newer", lambda shader: older.append(shader) or shader)
    assert compare(remembering(text), GlExecutor(graphics)).unexplained == ()
    assert any(newer(shader).startswith(b"#version 400") for shader in older if b"__VERSION__" in shader)


def remembering_many(count: int, loop: str = "") -> Case:
    lines = [f"spindle f(x) :: n {{ n = x {loop} }}"]
    lines += [f"t{k} = prev(t{k}) * 0.5 + f(me@x * {k})" for k in range(count)]
    return case_of("\n".join([*lines, f"display(({' + '.join(f't{k}' for k in range(count))}) / 99)\n"]))


@pytest.mark.parametrize("loop", ["", "for i in (0 to me@x * 3) { n = n * 0.5 + i }"], ids=["", "with a loop"])
def test_what_is_too_much_for_targets_is_drawn_by_several_programs(loop: str, graphics: Graphics) -> None:
    case = remembering_many(10, loop)
    with pytest.raises(UnsuitableError, match=r"1[12] targets.*10 of them are for what it remembers"):
        fragment(case.kernel)
    shaders = over_picture(case.kernel, packed=True).shaders
    assert [len(shader.stores) for shader in shaders] == ([4, 6] if loop else [3, 7])
    assert [len(shader.outputs) for shader in shaders] == [0, 1]
    assert all("#version 330 core" in shader.text for shader in shaders)
    assert compare(case, GlExecutor(graphics)).unexplained == ()


def test_more_is_remembered_than_a_program_can_write_textures(graphics: Graphics) -> None:
    assert compare(remembering_many(40), GlExecutor(graphics)).unexplained == ()


# --- loops --------------------------------------------------------------------------------------------------------

LOOPS = {
    "constant ends": "for i in (1 to 20) { o += sin(i * x) / i }",
    "a varying end": "for i in (0 to x * 9) { o = o * 0.5 + i }",
    "fractional ends": "for i in (0.5 to x * 9) { o = o * 0.5 + i }",
    "an end below the start": "for i in (3 to x) { o += 1 }",
    "an end that is no number": "for i in (0 to log(x - 2)) { o += 1 }",
    "no number at one end and infinity at the other": (
        "for i in (log(x - 2) to exp(x + 1e4)) { o += 1 }\n for i in (-exp(x + 1e4) to log(x - 2)) { o += 1 }"
    ),
    "two that change places": "p = 1\n for i in (0 to x * 9) { q = o; o = p; p = q + x }",
    "a loop within a loop": "for i in (0 to x * 4) { for j in (i to 4) { o += hash(i, j) } }",
    "a value that both loops change": (
        "for i in (0 to x * 4) { o *= 0.5; for j in (0 to 17) { o += x / (i + 1) }; o -= x }"
    ),
    "what the loop reads at another place": "for i in (0 to 20) { o += y(me@x ~ me@x + i / 37) }",
}  # fmt: skip


def looping(body: str) -> str:
    """A program with a loop in it."""
    return f"spindle f(x, y) :: o {{\n o = 0\n {body}\n}}\ndisplay(f(me@x, hash(me@px, me@py)) * 0.1)\n"


looping_case = cache(case_of)


@pytest.mark.parametrize("body", LOOPS.values(), ids=LOOPS.keys())
def test_loops(body: str, graphics: Graphics) -> None:
    assert compare(looping_case(looping(body)), GlExecutor(graphics)).unexplained == ()


@pytest.mark.parametrize(
    ("body", "steps"),
    [
        ("for i in (0 to 9e9 * x) { o += 1 }", LOOP_STEPS),
        ("for i in (0 to 9e9 * x) { for j in (0 to 9e9 * x) { o += 1 } }", NEST_STEPS),
    ],
    ids=["a loop", "a nest"],
)
def test_a_loop_that_is_stopped_says_so(body: str, steps: int, graphics: Graphics) -> None:
    case = case_of(looping(body), shape=(1, 2), moments=(0.0,))
    (launch,) = case.launches
    stopped: list[None] = []
    executable = GlExecutor(graphics).load(case.kernel)
    told = replace(launch, loop_stopped=lambda: stopped.append(None))
    found = executable.planes(StateMemory((), launch.shape), told)
    assert len(stopped) == 1
    # Drivers that draw with the processor stop at a limit of their own, of about as many steps as a nest may make.
    np.testing.assert_allclose(found, case.expected[0], rtol=1e-3)
    assert found.max() * 10 <= steps


# --- points -------------------------------------------------------------------------------------------------------

POINTS = {
    "an image": "t<v> = mix(hash(me@px, me@py), prev(t@v), 0.5)\na = prev(t@v) + me@y\n",
    "a picture": 'load("grain.png")::img<r, g, b, a>\nt = prev(img@g)\na = t + me@x\n',
    "a hold": "a = hold(hash(me@px, me@py, me@absframe), floor(me@absframe / 2 + me@x))\n",
    "no coordinate": "a = prev(me@time) * 0.5 + prev(1)\n",
}


@pytest.mark.parametrize("text", POINTS.values(), ids=POINTS.keys())
@pytest.mark.parametrize(("on", "count"), [("graphics", 100), ("embedded_graphics", 5000)], ids=["computed", "drawn"])
def test_points(text: str, on: str, count: int, request: pytest.FixtureRequest) -> None:
    text = f"{text}display(a)\ncompute(a(me@x ~ 0.25, me@y ~ 0.75))\n"
    made = build(Request(Source("test.weft", text), ContextTable()))
    (unit,) = (unit for unit in made.units if unit.subgraph.context == "visual")
    kernel = unit.points.get(StrandRef("a", "val"))
    if kernel is None:
        (kernel,) = unit.points.values()
    memory = StateMemory(unit.kernel.slots, (5, 7))
    rng = np.random.default_rng(1)
    for slot in unit.kernel.slots:
        memory.ring(slot.key)[...] = rng.random(memory.ring(slot.key).shape)
    coords = {name: rng.uniform(-0.2, 1.2, count) for name in ("x", "y")} | {"abstime": 0.3, "channel": 0.0}
    launch = Launch((1, count), coords, dict.fromkeys(kernel.uniforms, 0.5))
    expected = ReferenceExecutor().load(kernel).planes(memory, launch)
    assert points(kernel).workgroup
    executor = GlExecutor(request.getfixturevalue(on))
    np.testing.assert_allclose(executor.load(kernel).planes(memory, launch), expected, atol=1e-5)
