"""What `check` says about pictures that move in jerks after a long time."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.ir.test_products import AFTER, DAY, FRAME, LOOP, SHAPES, pixels, program
from tests.support.kernels import AS_WRITTEN, MACHINES, kernel_by
from weft.contexts import ContextTable
from weft.errors import Diagnostic, Source
from weft.runtime.inspect.forecast import check

COARSE = {
    "sin(abs(me@x - me@time))": "a week",
    "fract(max(me@x, me@time))": "a day",
    "sin((me@x + me@time) * (me@y - me@time))": "an hour",
    "sin(if me@x < 0.5 then me@time else -me@time)": "a week",
    "fract(length(me@x, me@time * 3))": "a day",
    "(abs(me@x - me@time) * 9) % 3": "a day",
    "noise(me@x * 4, abs(me@y - me@time))": "a day",
    "hash(floor(abs(me@x - me@time) * 40))": "a week",
}

WITHOUT_END = [
    "a = prev(a) + (0.2 + me@x) / 60\ndisplay(fract(a))",
    "a = integrate(0.2 + me@x)\ndisplay(sin(a * 6))",
    "n = prev(n) + 1\ndisplay(sin(abs(n * 0.1 - me@x)))",
]

# These stay exact, have bounds, or are as coarse at the start.
OTHERS = [
    "sin(abs(me@x - me@time % 600))",
    "fract(phasor(0.2 + me@x) + me@y)",
    "sin(abs(me@x - sin(me@time)) * 9)",
    "sin(max(me@x * 9, me@time - hold(me@time, mouse@down)))",
    "fract(sin(me@x * 12.9898 + me@y * 78.233 + me@time) * 43758.5453)",
    "sin(sqrt(me@x + me@time))",
    "abs(me@x - me@time) < 3",
    "sin(me@x * 1000000 + me@time)",
    "sin(me@time * me@time + me@x)",
]


ROOT = Path(__file__).parents[3]
DOCUMENTED = (ROOT / "docs/language.md").read_text(encoding="utf-8").partition("### A picture after a long time")[2]
ROWS = [
    line.split("|")[1:3] for line in DOCUMENTED.partition("### Settings")[0].splitlines() if line.startswith("| ")
][2:]


def warnings(text: str) -> list[Diagnostic]:
    return list(check(Source("p.weft", f"{text}\n"), ContextTable()))


def told(text: str) -> list[Diagnostic]:
    """The warnings about a program, or an expression that is shown."""
    return warnings(program(text))


@pytest.mark.parametrize(("text", "after"), COARSE.items())
def test_what_moves_in_jerks_is_told_with_its_place_and_a_way_around(text, after):
    (found,) = told(text)
    assert (found.severity, found.code) == ("warning", "long-time")
    assert found.message.startswith(f"after {after} this moves in jerks")
    assert found.span.source.text[found.span.start : found.span.end] in text
    assert not told(text.replace("me@time", "(me@time % 600)")), found.hint


@pytest.mark.parametrize("text", WITHOUT_END)
def test_so_is_what_adds_up_without_end(text):
    assert [each.code for each in told(text)] == ["long-time"]


@pytest.mark.parametrize("text", [*OTHERS, *SHAPES, LOOP])
def test_what_stays_exact_or_has_bounds_is_not_told(text):
    assert told(text) == []


@pytest.mark.parametrize("text", ["sin(abs(me@x - me@time))", "fract(length(me@x, me@time * 3))"])
def test_it_is_so(text):
    def worst(text: str, start: float) -> float:
        """The most that a pixel differs in some frames."""
        kernel, exact = kernel_by(program(text)), kernel_by(program(text), AS_WRITTEN)
        times = [start + frame * FRAME for frame in (1, 2, 5)]
        off = [pixels(kernel, MACHINES["tiles"], time) - pixels(exact, MACHINES["vm"], time) for time in times]
        return float(np.abs(off).max())

    assert worst(text, AFTER[COARSE[text]]) > 1 / 256 > 0.001 > worst(text, 60)
    assert worst(text.replace("me@time", "(me@time % 600)"), 30 * DAY) < 0.001


def test_what_a_library_makes_of_it_is_told_where_it_is_called():
    (found,) = told("#use std.map\na = abs(me@x - me@time)\ndisplay(tri(a * 2))")
    assert found.span.source.name == "p.weft"
    assert found.span.source.text[found.span.start : found.span.end] == "a * 2"


def test_a_phase_in_a_loop_is_told_once():
    loop = "spindle f(n) :: o { o = 0; for i in (1 to n) { o += sin(abs(me@x * i - me@time * i)) / n } }"
    (found,) = told(f"{loop}\ndisplay(f(3))")
    assert found.span.source.text[found.span.start : found.span.end] == "sin(abs(me@x * i - me@time * i))"


@pytest.mark.parametrize("context", ["audio", "compute"])
def test_sounds_and_numbers_have_digits_enough(context):
    assert warnings(f"{context}(sin(abs(me@time - 3)))") == []


@pytest.mark.parametrize(("written", "lasts"), ROWS)
def test_what_is_documented_is_so(written, lasts):
    examples = [each for each in re.findall(r"`([^`]+)`", written) if re.search(r"[(%=]", each)]
    assert examples
    for example in examples:
        shown = f"{example}\ndisplay(fract(a))" if example.startswith("a =") else f"display(fract({example}))"
        codes = [each.code for each in warnings(f"speed = hash(floor(me@x * 9))\n{shown}")]
        assert codes == (["long-time"] if "hours or days" in lasts else []), example


@pytest.mark.long
@pytest.mark.parametrize("path", sorted(ROOT.glob("patches/**/*.weft")), ids=lambda path: path.stem)
def test_no_shipped_patch_moves_in_jerks(path):
    found = check(Source(str(path), path.read_text(encoding="utf-8")), ContextTable())
    assert "long-time" not in [each.code for each in found]
