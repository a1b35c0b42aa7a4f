"""Pictures are those of the reference where quotients and roots are a few units of the last digit off, as graphics
cards have them: those from which something may jump are corrected, and those that only colour pixels are not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pytest

from tests.codegen.clike.test_numbers import unit_of
from tests.support.devices import COMPUTE, cuda, device, embedded_graphics, executor_on, graphics, opencl, wgpu
from tests.support.parity.cases import Case, case_of, case_of_seed
from tests.support.parity.rule import compare
from tests.support.rough import roughen
from tests.support.together import all_but
from weft.backends.executors import Executor
from weft.backends.launch import StateMemory
from weft.backends.vm import ReferenceExecutor
from weft.codegen.clike.exactness import exact_values
from weft.codegen.clike.fields import NumberedKernel
from weft.codegen.clike.language import Language
from weft.codegen.clike.reads import read_program
from weft.codegen.clike.shader import OneOver, one_over
from weft.codegen.cuda import Cuda
from weft.codegen.essl import DriverEssl
from weft.codegen.glsl import Glsl, fragment
from weft.codegen.msl import Msl
from weft.codegen.native.dataflow import interval
from weft.codegen.values import Node
from weft.contexts import ContextTable
from weft.errors import Source
from weft.ops.intervals import Interval
from weft.runtime.compiling.stages import Request, build

__all__ = ["cuda", "device", "embedded_graphics", "graphics", "opencl", "wgpu"]

LANGUAGES: Mapping[str, type[Language]] = {"glsl": Glsl, "essl": DriverEssl, "msl": Msl, **COMPUTE}

# Two values that are the same, though a compiler cannot know that; and one that is twice as large.
SAME = "a = me@x * 0.7 + me@y * 0.09 + 0.1\nb = if me@px < 1000 then a else me@y\nc = a * 2\n"

JUMPS: Mapping[str, str] = {
    "a fraction": "display(fract(a / b), fract(c / b), fract(-a / b))",
    "a floor": "display(floor(a / b) / 4, floor(c / b) / 4, floor(-a / b))",
    "a comparison": "display(a / b >= 1, c / b <= 2, a / b == 1)",
    "after a sum": "display(fract(a / b + 0.5 - me@px % 2 / 2), floor(c / b * 3) / 9, 0)",
    "a root": "display(sqrt(a / b - 1), sqrt((1 - a / b) * (1 + a / b)), acos(a / b))",
    "a divisor": "display(me@x / (a / b - 1))",
    "a remainder": "display((c / b) % 2, 0.5 % (a / b - 0.5), 0)",
    "a chance": "display(hash(c / b), noise(c / b), 0)",
    "what is remembered": "s = prev(s) + a / b\ndisplay(fract(s), s, 0)",
    "a step of a loop": "spindle f(x, y) :: v { v = 0\nfor i in (1 to 3) { v = v + x / y } }\ndisplay(fract(f(a, b)))",
    "a loop": "spindle f(x) :: v { v = 0\nfor i in (1 to x) { v = v + i } }\ndisplay(f(c / b))",
}

ROOTS: Mapping[str, str] = {
    "a floor": "display(floor(sqrt(n * n)) / 40, floor(-sqrt(n * n)) / 40, floor(sqrt(n * n) / 3) / 13)",
    "a fraction": "display(fract(sqrt(n * n)), fract(sqrt(n * n / 16) * 4), 0)",
    "a comparison": "display(sqrt(n * n) >= n, sqrt(n * n) <= n, sqrt(n * n) == n)",
    "a remainder": "display((sqrt(n * n) % 3) / 3, 0, 0)",
    "a divisor": "display(me@x / (sqrt(n * n) - n))",
    "a root of a root": "display(fract(sqrt(sqrt(n * n * n * n))), 0, 0)",
    "what is remembered": "s = prev(s) + sqrt(n * n)\ndisplay(fract(s), s / 99, 0)",
    "a length": "display(floor(sqrt((3 * n) ^ 2 + (4 * n) ^ 2)) / 200, 0, 0)",
}

# A whole number, which a compiler cannot know.
WHOLE = "n = floor(me@px) + 1 + floor(me@y / 9)\n"

BY_INPUTS: Mapping[str, str] = {
    "by a number": "k = me@px * 3\ndisplay(floor(k / 3) / 40, fract(k / 3), floor(me@px / 0.1))",
    "by a slider": "#slider by<v> = 1, 99, 41\nk = me@px * 41\ndisplay(floor(k / by) / 40, fract(k / by), 0)",
    "by a value of a launch": "n = 7 + me@absframe\nk = me@px * n\ndisplay(floor(k / n) / 40, fract(k / n), 0)",
}

# What may be divided by what: none of these is changed by a correction, whatever it is. Beyond 2¹²⁶ the quotients of
# some cards are 0.
SPECIAL = """\
n = floor(me@x * 8)
k = if n < 1 then 0 else if n < 2 then -1 / key@a else if n < 3 then 1 / key@a else if n < 4 then key@a / key@a
    else if n < 5 then 3.1e38 else if n < 6 then -1.7 else if n < 7 then 7 else 1e-30
m = floor(me@y * 8)
by = if m < 1 then 0 else if m < 2 then -1 / key@a else if m < 3 then 1 / key@a else if m < 4 then key@a / key@a
    else if m < 5 then 8e37 else if m < 6 then -1.7 else if m < 7 then 7 else 1e-30
"""


def has_no_correction(language: type[Language], patch: pytest.MonkeyPatch) -> None:
    patch.setattr(language, "exact", MappingProxyType({}))


@pytest.fixture(params=LANGUAGES)
def executor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Executor:
    roughen(LANGUAGES[request.param], monkeypatch)
    return executor_on(request.param, request)


def jumping(text: str) -> Case:
    return case_of(f"{SAME}{text}\n", packed=False)


@pytest.mark.parametrize("text", all_but(3, JUMPS.values()), ids=JUMPS.keys())
def test_what_may_jump_has_exact_quotients(text: str, executor: Executor) -> None:
    assert compare(jumping(text), executor).unexplained == ()


@pytest.mark.parametrize("text", JUMPS.values(), ids=JUMPS.keys())
def test_it_would_jump_without(text: str, cuda: object, request: pytest.FixtureRequest, monkeypatch) -> None:
    roughen(Cuda, monkeypatch)
    has_no_correction(Cuda, monkeypatch)
    assert compare(jumping(text), executor_on("cuda", request)).unexplained


def test_centres_of_pixels_are_where_they_are(executor: Executor) -> None:
    wide, high = 41, 8  # 1/41 as a single, times 41, is less than 1
    case = case_of("display(me@x, me@y, 0)\n", shape=(high, wide), packed=False, moments=(0.5,))
    found = executor.load(case.kernel).planes(StateMemory((), (high, wide)), case.launches[0])
    x, y = (((np.arange(count) + 0.5) / count).astype(np.float32) for count in (wide, high))
    np.testing.assert_array_equal(found[1], np.broadcast_to(y[:, None], (high, wide)))
    np.testing.assert_array_almost_equal_nulp(found[0].astype(np.float32), np.broadcast_to(x, (high, wide)), 1)
    assert (found[0][:, wide // 2] == 0.5).all()


@pytest.mark.parametrize("text", all_but(2, ROOTS.values()), ids=ROOTS.keys())
def test_what_may_jump_has_exact_roots(text: str, executor: Executor) -> None:
    assert compare(case_of(f"{WHOLE}{text}\n", packed=False), executor).unexplained == ()


@pytest.mark.parametrize("text", ROOTS.values(), ids=ROOTS.keys())
def test_roots_would_jump_without(text: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    roughen(Cuda, monkeypatch)
    has_no_correction(Cuda, monkeypatch)
    assert compare(case_of(f"{WHOLE}{text}\n", packed=False), executor_on("cuda", request)).unexplained


@pytest.mark.parametrize("text", BY_INPUTS.values(), ids=BY_INPUTS.keys())
def test_quotients_by_what_is_an_input_are_exact(text: str, executor: Executor) -> None:
    assert compare(case_of(f"{text}\n", packed=False), executor).unexplained == ()


def test_products_by_reciprocals_would_not_be(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    has_no_correction(Cuda, monkeypatch)
    case = case_of(f"{BY_INPUTS['by a slider']}\n", packed=False)
    assert compare(case, executor_on("cuda", request)).unexplained


@pytest.mark.parametrize("divisor", ["by", "7", "-0.3", "slide"])
def test_what_has_no_quotient_has_none(divisor: str, executor: Executor) -> None:
    text = f"#slider slide<v> = 1, 9, 7\n{SPECIAL}q = k / {divisor}\ndisplay(q, if q > 1 then 1 else q, 0)\n"
    assert compare(case_of(text, shape=(8, 8), packed=False), executor).unexplained == ()


# Roots of anything, from the smallest number of all to the largest, to the last bit of a single.
ROOTS_OF_ANYTHING = """\
n = floor(me@x * 16)
x = if n < 1 then 0 else if n < 2 then 1 / key@a else if n < 3 then key@a / key@a else if n < 4 then -1.5
    else if n < 5 then -1 / key@a else if n < 6 then 2 ^ -148 else if n < 7 then 2 ^ -126 * (1 + me@y)
    else if n < 8 then 2 ^ -127 * (1 + me@y) else if n < 9 then 2 ^ -61 * (1 + me@y)
    else if n < 10 then 2 ^ -60 * (1 + me@y) else if n < 11 then 2 ^ 127 * (1 + me@y)
    else if n < 12 then me@y else if n < 13 then 1 + me@y else if n < 14 then 1e7 + me@py * 77 else me@py ^ 2
r = sqrt(x)
display(r, if r == r and r >= 0 then 1 else floor(r), 1 / sqrt(-key@a))
"""


def test_roots_of_anything_are_rounded_to_nearest(executor: Executor) -> None:
    case = case_of(ROOTS_OF_ANYTHING, shape=(64, 16), packed=False, moments=(0.5,))
    found = executor.load(case.kernel).planes(StateMemory((), (64, 16)), case.launches[0])
    x = case_of(ROOTS_OF_ANYTHING.replace("display(r", "display(x"), shape=(64, 16), packed=False, moments=(0.5,))
    given = ReferenceExecutor().load(x.kernel).planes(StateMemory((), (64, 16)), x.launches[0])[0]
    with np.errstate(all="ignore"):
        expected = np.sqrt(given.astype(np.float32))
    is_flushed = (found[0] == 0) & (np.abs(given) < 2.0**-126)  # processors may have no smaller numbers
    np.testing.assert_array_equal(found[0].astype(np.float32), np.where(is_flushed, 0, expected))
    assert (found[2] == -np.inf).all()


# Generated programs that cards showed otherwise: one divides a value by itself, and one takes the remainder of a day
# by a wave.
@pytest.mark.parametrize("seed", [1001765, 1000956])
def test_generated_programs_show_what_the_reference_shows(seed: int, executor: Executor) -> None:
    assert compare(case_of_seed(seed), executor).unexplained == ()


@pytest.mark.parametrize("seed", [1001765, 1000956])
def test_they_would_not(seed: int, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    roughen(Cuda, monkeypatch)
    has_no_correction(Cuda, monkeypatch)
    assert compare(case_of_seed(seed), executor_on("cuda", request)).unexplained


# Texts, and how many of their quotients and roots are exact.
COUNTS: Mapping[str, tuple[str, int]] = {
    "a colour": ("display(a / me@y, a / 3 + c / me@x, sin(a / me@y))", 0),
    "a clamp": ("display(clamp(a / me@y, lo: 0.2, hi: 0.7))", 0),
    "a choice": ("display(if me@x > 0.5 then a / me@y else c / me@x)", 0),
    "a length": ("display(sqrt((a / me@y) ^ 2 + (c / me@x) ^ 2))", 0),
    "a root of no less than 0": ("display(sqrt(max(0, 1 - a / me@y)))", 0),
    "an edge": ("display(if a / me@y > 0.5 then c / me@x else 0, 0, 0)", 1),
    "a quotient of a quotient": ("display(floor(a / me@y / me@x), 0, 0)", 2),
    "a colour of a root": ("display(sqrt(a), sin(sqrt(c)), sqrt(a) * sqrt(c))", 0),
    "an edge of a root": ("display(sqrt(a) > sqrt(c), 0, sqrt(me@y))", 2),
    "a loop of colours": (
        "spindle f(x, y) :: v { v = 0\nfor i in (1 to 40) { v = v / 2 + x / y } }\ndisplay(f(a, me@y))", 0,
    ),
}


@pytest.mark.parametrize(("text", "count"), COUNTS.values(), ids=COUNTS.keys())
def test_no_others_take_longer(text: str, count: int) -> None:
    shader = Cuda.pixels(unit_of(f"{SAME}{text}\n").kernel)
    main = re.sub(r" float me_[xy] = .*", "", shader.text.partition("__global__")[2])
    assert main.count("exact_ratio") + main.count("exact_root") == count


def test_an_exact_quotient_is_given_what_it_uses() -> None:
    text = "#slider by<v> = 1, 99, 41\ndisplay(floor(me@px / by))\n"
    given = [each.source for each in Cuda.pixels(unit_of(text).kernel).uniforms]
    parts = [source.part for source in given if isinstance(source, OneOver) and source.of.key == "by@v"]
    assert sorted(parts) == ["lower", "rest"]


def test_what_other_subgraphs_read_is_exact() -> None:
    text = "g<v> = me@x / (prev(g@v) + 3)\ndisplay(g@v)\ncompute(floor(g@v(me@x ~ 0.3)))\n"
    (unit,) = (each for each in build(Request(Source("p.weft", text), ContextTable())).units if each.points)
    (points,) = unit.points.values()
    assert "exact_ratio(" in Cuda.over_points(points, NumberedKernel.of(points)).text.partition("__global__")[2]


@pytest.mark.parametrize("packed", [True, False])
def test_above_the_corner_of_a_cell_there_is_no_minus_0(packed: bool, cuda: object, request) -> None:
    text = "v = (me@px + 1) * -key@a\nc = floor(v)\ndisplay(hash(c), 0.1 / (v - c), atan2(v - c, -1))\n"
    assert compare(case_of(text, packed=packed), executor_on("cuda", request)).unexplained == ()


def test_a_sum_that_doubles_many_times_is_looked_at_once() -> None:
    text = "".join(f"s{at + 1} = s{at} + s{at}\n" for at in range(60))
    shader = Cuda.pixels(unit_of(f"s0 = (me@x / (me@y + 2)) ^ 2\n{text}display(sqrt(s60))\n").kernel)
    assert "sqrtf" in shader.text


# What is made of the value before it, more often than calls may be deep.
LONG = {
    "a product that is a divisor": ("sin(me@x)", "s{before} * sin(me@x * {at})", "me@y / s{last}"),
    "a sum of which a minimum is taken": (
        "clamp(key@a * me@x, 0, 1)", "abs(s{before}) + clamp(me@x * key@b * {at}, 0, {at})", "max(s{last}, me@y)",
    ),
}


@pytest.mark.parametrize(("first", "following", "shown"), LONG.values(), ids=LONG.keys())
def test_a_long_chain_of_values_has_a_program(first: str, following: str, shown: str) -> None:
    last = 1100
    chain = "".join(f"s{at} = {following.format(before=at - 1, at=at)}\n" for at in range(1, last + 1))
    kernel = unit_of(f"s0 = {first}\n{chain}display({shown.format(last=last)})\n").kernel
    assert len(fragment(kernel).text) > 40 * last


def test_each_quotient_of_quotients_is_looked_at_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    count, looked = 100, list[Node]()

    def interval_of(node: Node) -> Interval:
        looked.append(node)
        return interval(node)

    monkeypatch.setattr("weft.codegen.clike.exactness.interval", interval_of)
    chain = "".join(f"s{at} = me@y / (s{at - 1} * sin(me@x * {at}))\n" for at in range(1, count + 1))
    program, _ = read_program(unit_of(f"s0 = sin(me@x)\n{chain}display(s{count})\n").kernel)
    exact_values(program)
    assert count < len(looked) < 10 * count


@pytest.mark.parametrize("divisor", [3.0, 0.1, -7.3, 1e30, 1e-30, 8.0])
def test_parts_of_a_reciprocal_give_the_quotient(divisor: float) -> None:
    by = np.float32(divisor)
    lower, rest = (np.float32(one_over(divisor, part)) for part in ("lower", "rest"))
    assert abs(float(lower)) <= abs(1 / float(by))
    assert np.signbit(rest) == np.signbit(lower)
    dividends = np.arange(1, 5000, dtype=np.float32) * by
    found = np.float32(dividends.astype(np.float64) * float(lower) + np.float64(dividends * rest))
    np.testing.assert_array_equal(found, dividends / by)


def test_parts_of_no_reciprocal() -> None:
    parts = [[one_over(divisor, part) for part in ("nearest", "lower", "rest")] for divisor in (0.0, -0.0, np.inf)]
    assert parts == [[np.inf] * 3, [-np.inf] * 3, [0.0] * 3]
    assert all(np.isnan(one_over(np.nan, part)) for part in ("nearest", "lower", "rest"))
