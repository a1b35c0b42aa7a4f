"""Kernels in WebGPU's language are what its grammar and its numbers allow."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.codegen.test_msl_checks import shaders_of
from tests.support.compute import ComputeExecutor, wgpu
from tests.support.parity.cases import case_of
from tests.support.parity.rule import compare
from tests.support.shown import built
from tests.support.together import all_but
from tests.test_patches import PATCHES
from weft.backends.wgpu.webgpu import WgpuDevice
from weft.codegen.wgsl import Wgsl

__all__ = ["wgpu"]

# What the grammar of the language lets stand beside what, without parentheses; naga lets more pass.
BITS, COMPARISONS, JOINS = {"&", "|", "^", "<<", ">>"}, {"<", "<=", ">", ">=", "==", "!="}, {"&&", "||"}
SIGNS = re.compile(r"&&|\|\||<<|>>|[<>=!]=|[-+*/%&|^<>]|[(),;=\[\]{}]")


def mixed(text: str) -> list[str]:
    """The lines in which operators that have no order stand beside each other."""
    found = []
    for line in text.split("\n"):
        code = re.sub(r"//.*|@.*|->|&met_limit|bitcast<.*?>|^(?:fn|var<).*", "", line)
        levels: list[list[str]] = [[]]
        for sign in SIGNS.findall(code):
            if sign in "([{":
                levels.append([])
            elif sign in ",;=" or sign in ")]}":
                found += [line] * (not in_order(levels.pop()))
                levels += [[]] * (sign in ",;=" or not levels)
            else:
                levels[-1].append(sign)
        found += [line] * (not all(map(in_order, levels)))
    return found


def in_order(signs: list[str]) -> bool:
    """Whether these operators may stand in one expression in this order."""
    joins = JOINS & {*signs}
    parts = re.split(r" (?:&&|\|\|) ", " ".join(signs)) if joins else [" ".join(signs)]
    compared = [sum(sign in COMPARISONS for sign in part.split()) for part in parts]
    alone = not BITS & {*signs} or len({*signs}) == 1
    return len(joins) < 2 and max(compared) < 2 and alone


def test_the_look_at_operators_sees_what_is_mixed() -> None:
    wrong = ["a = b * c | d;", "x(a && b || c)", "let d = a < b == c;", "y[a << 3u + b]", "a & b == c"]
    right = ["a = (b * c) | d;", "x(a && b, c || d)", "a < b && c > d", "y[(a << 3u) + b]", "for (i = a; i < b; i++)"]
    assert mixed("\n".join([*wrong, *right])) == wrong


@pytest.mark.parametrize("path", all_but(12, PATCHES), ids=lambda path: path.stem)
def test_a_shipped_patch_is_accepted(path: Path, wgpu: WgpuDevice) -> None:
    for shader in shaders_of(built(path), Wgsl):
        wgpu.compile(shader.text, shader.entry)
        assert mixed(shader.text) == []


def test_truths_that_the_language_does_not_order_are_in_parentheses() -> None:
    text = "a = (me@x > 0.2 and me@y < 0.3) or me@x == me@y\nb = if me@x < 0.5 then me@y > 0.2 else me@x > 0.7\n"
    shown = Wgsl.pixels(case_of(f"{text}display(a + b)\n").kernel).text
    assert "= me_y == me_x || (frame.a_number < me_x && me_y < frame.a_number_2);" in shown


def test_no_number_is_written_that_the_language_refuses() -> None:
    kernel = case_of("display(me@x / 0, 1e300 * me@y, me@x % 0)\n").kernel
    text = Wgsl.pixels(kernel).text
    assert "bitcast<f32>(infinity_bits)" in text
    assert "bitcast<f32>(nan_bits)" in text
    assert not re.search(r"bitcast<f32>\(0x|\binf\b|\bnan\b", text)


def test_the_shared_functions_have_nothing_of_c_left() -> None:
    language = Wgsl()
    text = "\n".join(language.functions(language.function_names))
    assert mixed(text) == []
    code = re.sub(r"//.*", "", text)
    assert not re.search(r"\?|\b(?:float|uint|int|uchar|pair)\b|if .*[^{};]$", code, re.MULTILINE)


def test_a_number_differs_from_what_is_none(wgpu: WgpuDevice) -> None:
    shown = case_of("none = sqrt(me@x - 0.5)\ndisplay(none != none, none != 1, 1 - (none == none))\n")
    assert compare(shown, ComputeExecutor(wgpu, Wgsl)).unexplained == ()
