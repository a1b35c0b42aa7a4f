"""A program whose numbers are inputs is the program of every kernel that differs in these numbers only."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.mutations import programs
from weft.backends.card import ProgramWriter
from weft.backends.gl.backend import GlVisual
from weft.backends.metal.backend import MetalVisual
from weft.codegen.clike.fields import NumberedKernel
from weft.codegen.clike.shader import Forms
from weft.codegen.kernel import Kernel, Unit
from weft.codegen.values import Scalar
from weft.contexts import OWN_CONTEXTS, ContextTable
from weft.errors import Source
from weft.media.sampled import header_of
from weft.runtime.compiling.kept import KeptBuild
from weft.runtime.compiling.stages import Request, build

PATCHES = programs("patches")


def unit_of(text: str) -> Unit:
    made = build(Request(Source("p.weft", text), ContextTable(OWN_CONTEXTS), probe=header_of), kept=KeptBuild())
    (unit,) = made.units
    return unit


def without_remarks(forms: Forms) -> tuple[str, ...]:
    return tuple(re.sub(r" *//.*", "", shader.text) for shader in (*forms.shaders, *forms.tiles))


def tuned(kernel: Kernel, chance: random.Random) -> Kernel:
    """The kernel with some of its numbers turned."""
    numbers = [value * chance.uniform(0.9, 1.1) if chance.random() < 0.3 else value for value in kernel.numbers]
    return replace(kernel, numbers=tuple(numbers))


@pytest.fixture(params=[GlVisual, MetalVisual], ids=["glsl", "msl"])
def backend(request: pytest.FixtureRequest) -> GlVisual | MetalVisual:
    made: GlVisual | MetalVisual = request.param()
    return made


@pytest.mark.parametrize("path", PATCHES, ids=lambda path: path.stem)
def test_a_known_program_with_other_numbers_is_what_would_be_written(path: Path) -> None:
    chance, write = random.Random(path.stem), GlVisual.dialect.over_picture
    made = build(Request(Source(str(path), PATCHES[path]), ContextTable(), probe=header_of), kept=KeptBuild())
    for kernel in (unit.kernel for unit in made.units if unit.subgraph.context == "visual"):
        numbered = NumberedKernel.of(kernel)
        known = write(kernel, False, numbered)
        for _ in range(2):
            other = tuned(kernel, chance)
            if numbered.serves(other):
                written = write(other, False, NumberedKernel.of(other))
                assert written.drawn.numbers == other.numbers
                assert without_remarks(written) == without_remarks(known)


# Texts, and one of their numbers as another one: with the same program, or not.
TURNED: Mapping[str, tuple[str, str, bool]] = {
    "a factor": ("display(me@x * 0.3)", "display(me@x * 0.4)", True),
    "a summand": ("display(me@x + 0.3)", "display(me@x + 0.4)", True),
    "a divisor": ("display(me@x / 3)", "display(me@x / 5.5)", True),
    "a bound of a choice": ("display(me@x > 0.3)", "display(me@x > 0.4)", True),
    "the steepness of an edge": ("display(smoothstep(0.2, 0.3, me@x))", "display(smoothstep(0.2, 0.7, me@x))", True),
    "two equal numbers": ("display(me@x * 0.3 + me@y * 0.3)", "display(me@x * 0.3 + me@y * 0.4)", True),
    "a number that becomes equal": ("display(me@x * 0.3 + me@y * 0.4)", "display(me@x * 0.3 + me@y * 0.3)", True),
    "one of two equal numbers in expressions that differ": (
        "a = 0.5 + 0.5 * sin(me@x * me@y * 3)\nb = 0.5 + 0.5 * sin(me@x * me@y * 4)\ndisplay(a * b)",
        "a = 0.6 + 0.5 * sin(me@x * me@y * 3)\nb = 0.5 + 0.5 * sin(me@x * me@y * 4)\ndisplay(a * b)", True,
    ),
    "one of two equal numbers in equal expressions": (
        "a = me@x * me@y * 3\nb = abs(me@x * me@y * 3 - 0.5)\ndisplay(a * b)",
        "a = me@x * me@y * 4\nb = abs(me@x * me@y * 3 - 0.5)\ndisplay(a * b)", False,
    ),
    "a factor in an angle": ("display(sin(me@x * 9))", "display(sin(me@x * 11))", True),
    "an angle that becomes large": ("display(sin(me@x * 9))", "display(sin(me@x * 900))", False),
    "a period of few turns": (
        "display(abs(me@x - me@y) % 0.7 * 0.5, 0, 0)", "display(abs(me@x - me@y) % 0.8 * 0.5, 0, 0)", True,
    ),
    "a period of many turns": (
        "display(abs(me@x - me@y) % 0.7 * 0.5, 0, 0)", "display(abs(me@x - me@y) % 0.0001 * 0.5, 0, 0)", False,
    ),
    "an exponent": ("display(me@x ^ 2.3)", "display(me@x ^ 2.4)", False),
    "a bound of a loop": (
        "spindle f(x) :: v { v = x\nfor i in (1 to 3) { v = v * x + i } }\ndisplay(f(me@x))",
        "spindle f(x) :: v { v = x\nfor i in (1 to 5) { v = v * x + i } }\ndisplay(f(me@x))", False,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "other", "has_same"), TURNED.values(), ids=TURNED.keys())
def test_what_needs_another_program(
    text: str, other: str, has_same: bool, backend: GlVisual | MetalVisual
) -> None:
    writer = ProgramWriter(backend.dialect)
    one, two = (writer.code(unit_of(each), packed=True).grid.drawn for each in (text, other))
    assert (two.text == one.text) == has_same
    assert two.numbers == ProgramWriter(backend.dialect).code(unit_of(other), packed=True).grid.drawn.numbers


def test_a_program_is_written_once_for_all_values(backend: GlVisual | MetalVisual) -> None:
    written: list[Kernel] = []

    def counted(write: Callable[[Kernel, bool, NumberedKernel], Forms]) -> Callable[..., Forms]:
        def over_picture(kernel: Kernel, packed: bool, numbered: NumberedKernel) -> Forms:
            written.append(kernel)
            return write(kernel, packed, numbered)

        return over_picture

    writer = ProgramWriter(backend.dialect._replace(over_picture=counted(backend.dialect.over_picture)))
    codes = [writer.code(unit_of(f"display(sin(me@x * {n} + me@time) * 0.{n})"), True) for n in range(2, 10)]
    assert len(written) == 1
    assert len({code.grid.drawn.text for code in codes}) == 1
    assert len({code.grid.drawn.numbers for code in codes}) == len(codes)


def test_many_numbers_stay_in_the_text() -> None:
    sums = " + ".join(f"me@x * 0.{n:05}" for n in range(1, 3200))
    unit = unit_of(f"display({sums})")
    assert len(unit.kernel.numbers) > 3072
    program = ProgramWriter(GlVisual.dialect).code(unit, True).grid.drawn
    assert not any(isinstance(each.source, Scalar) and each.source.source == "number" for each in program.uniforms)
    assert len(program.uniforms) in range(3073)
