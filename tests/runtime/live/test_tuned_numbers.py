"""Numbers are tuned one after another: each build is the same as one from scratch, whatever was asked about them."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Iterator

import pytest

from tests.support.edits import unlike
from weft.codegen.values import Rows
from weft.contexts import ContextTable
from weft.errors import Source, WeftError
from weft.runtime.compiling.kept import KeptBuild
from weft.runtime.compiling.stages import Build, Request, build

ASKED = int(os.environ.get("WEFT_EDITS", "0"))
"""Tries this many patches, different from the usual ones."""

HEAD = "#slider amount<v> = 0, 1, 0.5\nspindle turned(x, by = {0}) :: v {{ v = sin(x * {1} + by) * {2} }}\n"
# What passes ask about constants: whether they are neutral, how large they are, which periods they are, and others.
VALUES = (
    "sin(me@x * {0} + me@time * {1} + {2})",
    "<sin(me@x * {0}), sin(me@x * {0} + {1}), sin(me@x * {0} + {2})>",
    "(me@x * {0} + me@time) % {1} + (me@x * {0} + me@time) / {1}",
    "fract(me@time * {0} + me@x * {1}) + floor((me@time * {0} + me@x * {1}) / {2})",
    "me@x - floor(me@x / {0}) * {1} + floor(me@x * {2})",
    "noise(me@x * {0} + me@time * {1}, {2})",
    "noise(me@x * {0}, me@y * {0}, {1})",
    "smoothstep({0}, {1}, me@x) + step({2}, me@y)",
    "(me@x + 1) ^ {0} + {1} ^ me@x",
    "if {0} > {1} then me@x * {2} else me@y",
    "if me@x < {0} then {1} else {2}",
    "mix(me@x, me@y * {0}, {1}) + {2}",
    "me@x / ({0} - {1}) + {2}",
    "cos({0} / {1} * me@x + me@time)",
    "(0 - {0}) * me@x + exp({1} * 800) * me@y",
    "prev(c0) * {0} + me@x * {1}",
    "image(c0 * {0} + me@x)(me@x ~ me@x + {1}) + c0 * {2}",
    "image(sin(me@x * {0}) * {1} + me@y) + image(e: me@x * {0}) + delay(me@x * {1} + me@y, 1, {2} * 0 + 3)",
    "image(me@x * me@y * {0}) * {1} + me@x * me@y * {0} * {1}",
    "max(prev(c1) * {0}, turned(me@x))",
    "turned(me@y, {0}) + turned(me@x * {1}, {2})",
    "sum(<me@x * {0} + i * {1} for i in (1 to 3)>)",
    "delay(me@x * {0}, 3, 2) * {1}",
    "hold(me@x * {0}, me@time % {1} < {2})",
    "floor(me@time * {0}) * {1} + mod(me@time, {2})",
    "amount * {0} + {1}",
    "{0}",
)  # fmt: skip
HEARD = (
    "sin(me@abstime * {0}) * {1} + phasor({2})",
    "fract(me@abstime * {0} + {1}) % {2}",
    "noise(me@abstime * {0}) * {1} + amount * {2}",
)
RESTS = ("", "// a note\n", "#use std.map\n", "c0 = me@x * 3\n", "compute(c1)\n", 'display(c0 * 0.5, to: "other")\n')
NUMBERS = ("0", "1", "0.5", "0.5", "0.25", "2", "9", "8.5", "3", "0.1", "0.0", "100000000", "0.0000001", "4")


def number(chance: random.Random) -> str:
    """One that may be a special one, or equal to another one."""
    return chance.choice(NUMBERS) if chance.random() < 0.4 else f"{chance.random() * 9:.3f}"


class Patch:
    """A patch with places for numbers."""

    def __init__(self, chance: random.Random) -> None:
        chosen = [chance.choice(VALUES) for _ in range(chance.randint(2, 6))]
        lines = [HEAD, *(f"c{at} = {value}\n" for at, value in enumerate(chosen))]
        shown = [f"c{at}{'[0]' if value.startswith('<') else ''}" for at, value in enumerate(chosen)]
        lines.append(f"display(<{shown[0]}, {shown[1]}, {shown[-1]}>)\n")
        lines.append(f"compute({shown[-1]}(me@x ~ {{0}}, me@y ~ {{1}}))\nplay({chance.choice(HEARD)})\n")
        self._lines = lines
        self.numbers = [[number(chance) for _ in range(3)] for _ in lines]
        self.rest = ""

    @property
    def text(self) -> str:
        lines = (line.format(*numbers) for line, numbers in zip(self._lines, self.numbers, strict=True))
        return "".join((*lines, self.rest))


def edits(chance: random.Random, count: int) -> Iterator[str]:
    patch = Patch(chance)
    before: list[tuple[int, int, str]] = []
    yield patch.text
    for _ in range(count):
        if chance.random() < 0.2:
            patch.rest = chance.choice(RESTS)
        for _ in range(chance.choice([0, 1, 1, 1, 2])):
            if before and chance.random() < 0.3:
                at, place, new = before.pop()
            else:
                at, place, new = chance.randrange(len(patch.numbers)), chance.randrange(3), number(chance)
                before.append((at, place, patch.numbers[at][place]))
            patch.numbers[at][place] = new
        yield patch.text


def rows(made: Build) -> list[Rows]:
    return [section.numbered[0] for unit in made.units for kernel in unit.kernels for section in kernel.sections]


def built(text: str, kept: KeptBuild) -> Build | WeftError:
    try:
        return build(Request(Source("p.weft", text), ContextTable()), kept=kept)
    except WeftError as failure:
        return failure


def check(texts: Iterable[str], where: str = "") -> None:
    """Builds one text after another both ways."""
    kept = KeptBuild()
    for step, text in enumerate(texts):
        again, alone = built(text, kept), built(text, KeptBuild())
        if isinstance(alone, WeftError) or isinstance(again, WeftError):
            assert type(again) is type(alone), f"{where}, step {step}:\n{text}"
            continue
        assert not (words := unlike(alone, again)), f"{words}, {where}, step {step}:\n{text}"
        assert repr(rows(alone)) == repr(rows(again)), f"{where}, step {step}:\n{text}"


@pytest.mark.parametrize("seed", range(2000, 2000 + ASKED) if ASKED else range(6))
def test_numbers_of_a_patch(seed: int) -> None:
    check(edits(random.Random(seed), 12), f"seed {seed}")


def structures(made: Build) -> list[bytes]:
    return [section.digest for unit in made.units for kernel in unit.kernels for section in kernel.sections]


REST = "a = me@x\nb = me@y\ny = me@x * 7.5 + me@time\ndisplay(shown + a * b)\n"

QUESTIONS = {
    "a factor that is 1": ("me@x * {}", "3.25", "1"),
    "a term that is 0": ("me@x + {}", "3.25", "0"),
    "a difference from 0": ("me@x - {}", "3.25", "0.0"),
    "a divisor that is 1": ("sqrt(me@x / {})", "3.25", "1"),
    "a condition that is 0": ("if {} then me@x else me@y", "3.25", "0"),
    "a condition that becomes 0": ("if {} < 4.5 then me@x else me@y", "3.25", "4.75"),
    "a small whole exponent": ("(me@x + 1.25) ^ {}", "2.75", "3"),
    "a noise without a third coordinate": ("noise(me@x * 2.25, me@y, {})", "3.25", "0"),
    "a term of a sine that is small": ("sin(me@x * 9.25 + sin(me@time) * {})", "3.25", "30.5"),
    "a period": ("(me@x * 2.25 + me@time) % {}", "3.25", "100000000"),
    "a remainder, by a quotient": ("y - floor(y / 3.25) * {}", "4.75", "3.25"),
    "a remainder, by a product": ("y - floor(y * 0.25) * {}", "4.75", "4"),
    "a remainder no more": ("y - floor(y * 0.25) * {}", "4", "0"),
    "a factor that is infinite": ("noise(me@x * exp({}) + me@time * 4.75)", "1.25", "1000.5"),
    "a factor that is pi": ("sin(me@x * {})", "3.25", "3.141592653589793"),
    "a product that is there already": ("sin((me@x + me@y) * 4.75) + cos((me@x + me@y) * {})", "3.25", "4.75"),
    "a product that is there twice": ("sin((me@x + me@y) * 4.75) + cos((me@x + me@y) * {})", "4.75", "3.25"),
    "an expression of a library": ("fract(a * b * 2.25) + floor(a * b * 2.25) + (a * b * {} - 1)", "3.25", "2.25"),
    "a constant that is computed": ("me@x * ({} - 2.25)", "4.75", "3.25"),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_has_another_answer(question: str) -> None:
    """There and back; the kernels have another form meanwhile."""
    value, before, after = QUESTIONS[question]
    text = f"shown = {value}\n{REST}"
    texts = [text.format(number) for number in (before, after, before, after)]
    assert structures(build(Request(Source("p.weft", texts[0]), ContextTable()), kept=KeptBuild())) != structures(
        build(Request(Source("p.weft", texts[1]), ContextTable()), kept=KeptBuild())
    )
    check(texts)


@pytest.mark.parametrize("question", QUESTIONS)
def test_all_questions_have_the_same_answers(question: str) -> None:
    """Nothing but the constants of kernels is made, for one value after another."""
    value, before, _ = QUESTIONS[question]
    text, kept = f"shown = {value}\n{REST}", KeptBuild()
    numbers = [f"{float(before) + change}" for change in (0.0625, 0.03125, 0.0078125)]
    made = [build(Request(Source("p.weft", text.format(number)), ContextTable()), kept=kept) for number in numbers]
    asked_again = question in ("a small whole exponent", "a noise without a third coordinate", "a period")
    assert asked_again or all(lowered is made[0].lowered[0] for each in made for lowered in each.lowered)
    check(text.format(number) for number in numbers)


def test_numbers_of_equal_columns_are_tuned_alone() -> None:
    """What is computed once a column may be computed twice, so nothing but constants changes when a product becomes
    another one, or is no longer another one."""
    texts = [f"shown = sin(me@x * 4.75) + cos(me@x * {number})\n{REST}" for number in (3.25, 4.75, 5.25, 4.75)]
    kept = KeptBuild()
    made = [build(Request(Source("p.weft", text), ContextTable()), kept=kept) for text in texts]
    assert all(lowered is made[0].lowered[0] for each in made for lowered in each.lowered)
    check(texts)


def test_numbers_are_taken_back_with_a_statement() -> None:
    """After tuning, the numbers of before come with other places of what is the same."""
    text = "#use std.map\nshown = me@x * 3.25\na = me@y\nb = 1\nc = 2\ndisplay(shown + a)\n"
    moved = text.replace("display(shown + a)", "display(shown + a) // again\nd = 4")
    tuned = text.replace("3.25", "3.5")
    check([text, tuned, moved, tuned, text, moved.replace("3.25", "3.5"), moved, text])


def test_unusual_values() -> None:
    """Zeros with signs, infinities and NaN, that are computed from numbers."""
    value = "me@x * ((0 - {0}) * {1}) + exp({2} * 900) * me@y + (exp({2} * 900) - exp({3} * 900)) * me@x"
    text = f"shown = {value}\n{REST}"
    numbers = [(1.25, 2.25, 0.25, 0.125), (1.25, 0, 0.25, 0.125), (1.25, 0, 1.5, 0.125), (1.25, 0, 1.5, 1.75),
               (1.25, 3.25, 1.5, 1.75), (0, 3.25, 1.5, 0.125), (1.5, 3.25, 0.25, 0.125)]  # fmt: skip
    check(text.format(*each) for each in numbers)
