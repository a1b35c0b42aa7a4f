"""Machine code for every family of processors, read without running it."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from tests.support.exprs import Exprs, image_slot, lowered, number_slot
from tests.support.kernels import compiled
from weft.backends.native import llvm
from weft.codegen.native.dataflow import most_alive, parallelism
from weft.codegen.native.module import emit, registers
from weft.codegen.native.plan import KernelDomain, domain_of
from weft.codegen.native.target import ISAS, SINGLE, TIERS, Isa
from weft.codegen.native.writer import reciprocal
from weft.ir.expr import Lowered
from weft.ir.rates import Rate
from weft.ops import OPS
from weft.ops.formula import Term

ISA = pytest.mark.parametrize("isa", ISAS.values(), ids=list(ISAS))
TIER = pytest.mark.parametrize("tier", TIERS.values(), ids=[f"tier {number}" for number in TIERS])

CALL = re.compile(r"^\s*(?:callq?|blr?|jmp(?=\s+\S*@PLT))\s+([^@\s]+)", re.MULTILINE)
DEFINITION = re.compile(r"^(\w+):", re.MULTILINE)


def operands(e: Exprs, name: str) -> list[Term]:
    """Operands that differ at each element, of the types that a row takes."""
    row, x = OPS[name], e.coord("x") * e.coord("y")
    found = []
    for n in range(len(row.params)):
        kinds = {"float": x * (n + 3.7), "bool": e("lt", x, n + 0.3), "u32": e("bits_of", x * n)}
        found.append(kinds[row.type_of_operand(n)])
    return found


def everything() -> Lowered:
    """A program with every row, loops of both kinds, and all that is read and remembered."""
    e = Exprs()
    x, y = e.coord("x"), e.coord("y")
    values = [e(name, *operands(e, name)) for name, row in OPS.items() if row.expand is None]
    as_reals = [e("bits_top", v) if OPS[v.value.op].gives == "u32" else v for v in values]
    values = [e("select", v, 0.25, 0.75) if OPS[v.value.op].gives == "bool" else v for v in as_reals]
    steps = e.loop(0, (1, x * 5), [0], [e.carried(0) + e("sin", e.index(0) * y)])
    same = e.loop(0, (1, e.uniform("n")), [y], [e.carried(0) * x])
    memory = [e.state("v/i", 1 + 2 * x), e.state("v/i", 1, y, x), e.state("v/n", x * 3), e.state("v/i", 2)]
    pictures = [e.picture("p", x * y, y + x, plane) for plane in range(4)]
    total = sum((v * 0.1 for v in (*values, *steps, *same, *memory, *pictures)), e.number(0))
    slots = [image_slot("v/i", depth=3), number_slot("v/n", depth=4)]
    return lowered(total, x, y, slots=slots, updates={"v/i": total, "v/n": e.uniform("n")})


def assembly(ir: Lowered, isa: Isa, level: int, lanes: int) -> str:
    kernel = compiled(ir)
    assert domain_of(kernel) is KernelDomain.PICTURE
    return llvm.assembly(emit(kernel, True, isa, lanes).text, llvm.plainest(isa), level)


def called(listing: str) -> set[str]:
    """What is called, but for functions of the listing itself."""
    return set(CALL.findall(listing)) - set(DEFINITION.findall(listing))


@ISA
@TIER
def test_nothing_is_called(isa, tier):
    """No vector leaves for a library: not even where a processor lacks an instruction."""
    for lanes in {1, tier.lanes(isa, 1), tier.lanes(isa, 1000)}:
        assert not called(assembly(everything(), isa, tier.level, lanes))


def test_the_first_tier_loads_scattered_numbers_by_one_instruction_where_there_is_one():
    isa, tier = ISAS["avx2"], TIERS[1]
    listing = assembly(everything(), isa, tier.level, tier.lanes(isa, 1000))
    assert "vgatherdps" in listing
    assert "vgatherdps" not in assembly(everything(), ISAS["sse2"], tier.level, tier.lanes(ISAS["sse2"], 1000))


@ISA
def test_a_call_would_be_seen(isa):
    module = emit(compiled(lowered(Exprs().coord("x"))), True, isa, 4)
    text = module.text + """
        declare <4 x float> @llvm.cos.v4f32(<4 x float>)
        define <4 x float> @f(<4 x float> %x) {
          %y = call <4 x float> @llvm.cos.v4f32(<4 x float> %x)
          ret <4 x float> %y
        }
    """
    assert called(llvm.assembly(text, llvm.plainest(isa), 2))


def heavy(e: Exprs, x: Term, seed: float) -> Term:
    for step in range(4):
        x = e("sin", x * (seed + step))
    return x


def test_a_choice_of_the_frame_is_a_branch():
    e = Exprs()
    x, y = e.coord("x"), e.coord("y")
    shared = heavy(e, x * y, 5)
    chosen = e("select", e.uniform("c"), heavy(e, x * y, 1) + shared, heavy(e, x + y, 2) * shared)
    module = emit(compiled(lowered(chosen)), True, ISAS["avx2"], 8)
    body = module.text
    then, otherwise, behind = (body.index(f"\n{label}") for label in ("then", "else", "chosen"))
    sines = [found.start() for found in re.finditer(r"splat \(i32 31\)", body)]
    # Four sines before the branch, for both, and four on each side.
    stretches = ((0, then), (then, otherwise), (otherwise, behind))
    assert [sum(start < at < end for at in sines) for start, end in stretches] == [4, 4, 4]


@pytest.mark.parametrize("condition", ["varying", "cheap"])
def test_other_choices_are_none(condition):
    e = Exprs()
    x, y = e.coord("x"), e.coord("y")
    c = e("lt", x, y) if condition == "varying" else e.uniform("c")
    sides = [heavy(e, x * y, n) for n in (1, 2)] if condition == "varying" else [x * y, x + y]
    text = emit(compiled(lowered(e("select", c, *sides))), True, ISAS["avx2"], 8).text
    assert "then" not in text


def test_rows_and_columns_are_computed_apart():
    e = Exprs()
    x, y = e.coord("x"), e.coord("y")
    text = emit(compiled(lowered(e("sin", x) + e("sin", y), x, y)), True, ISAS["avx2"], 8).text
    elements, columns, rows = (text[text.index(f"@{name}(") :] for name in ("elements", "columns", "rows"))
    # The phase's sign is taken once in each sine.
    assert "splat (i32 31)" not in elements[: -len(columns)]
    assert columns[: -len(rows)].count("splat (i32 31)") == rows.count("splat (i32 31)") == 1


def test_what_other_machines_run():
    e = Exprs()
    assert domain_of(compiled(lowered(e.strand("a@b", e.uniform("u"))))) is KernelDomain.PICTURE
    assert domain_of(compiled(lowered(e.strand("a@b", e.coord("x"))))) is KernelDomain.PICTURE
    assert domain_of(compiled(lowered(e.strand("a@b", e.coord("x") * e.coord("y"))))) is not KernelDomain.PICTURE
    (total,) = e.loop(0, [0, 3], [0], [e.carried(0) + e.strand("a@b", e.coord("x") + e.index(0))])
    assert domain_of(compiled(lowered(total))) is not KernelDomain.PICTURE
    assert domain_of(compiled(lowered(e.coord("abstime"), context="audio"))) is not KernelDomain.PICTURE


@pytest.mark.parametrize("divisor", [3.0, -0.036, 0.7, 7e8, 1 / 3, 6.283185307179586, 2.0**-90 * 1.3])
def test_a_quotient_by_a_constant_is_a_product_in_two_parts(divisor: float) -> None:
    found = reciprocal(divisor, SINGLE)
    assert found is not None
    dividends = (np.arange(0, 1 << 23, 7, dtype=np.uint32) | np.uint32(0x3F80_0000)).view(np.float32)
    value, rest = np.float32(found.value), np.float32(found.rest)
    # In double precision the product is exact, and the sum is rounded once more.
    quotients = (dividends.astype(np.float64) * value + dividends * rest).astype(np.float32)
    wrong = np.abs(quotients.view(np.int32) - (dividends / np.float32(divisor)).view(np.int32))
    assert wrong.max() <= 1
    assert np.count_nonzero(wrong) <= 2
    for edge in map(np.float32, (np.inf, -np.inf, 0.0, -0.0)):
        assert repr(edge * value + edge * rest) == repr(edge / np.float32(divisor))


def test_extreme_divisors_have_no_reciprocal() -> None:
    assert all(reciprocal(divisor, SINGLE) is None for divisor in (0.0, 1e-40, -1e38, math.inf, math.nan))
    assert reciprocal(-4, SINGLE) == (-0.25, 0)


def in_pairs(terms: list[Term]) -> Term:
    """Their sum, in which few additions wait for others."""
    half = len(terms) // 2
    return in_pairs(terms[:half]) + in_pairs(terms[half:]) if half else terms[0]


def test_values_that_wait_for_each_other_or_are_few_at_a_time_get_more_registers() -> None:
    e = Exprs()
    x, y = e.coord("x"), e.coord("y")
    chain = x * y
    for step in range(60):
        chain = e("abs", chain * 1.1 + y) - (x + step)
    many = [e("abs", x * y * step + x) * (y + step) for step in range(120)]
    picture = e.picture("p", x * y + x, y) + chain
    twice = in_pairs(many[:40]) * in_pairs([term * term for term in many[:40]])
    found = [
        [registers(compiled(lowered(root)).section(Rate.ELEMENT), ISAS[isa]) for isa in ("avx512", "avx2")]
        for root in (x * y, chain, in_pairs(many[:40]), picture, twice, in_pairs(many))
    ]
    assert found == [[4, 4], [4, 4], [4, 4], [2, 2], [2, 2], [1, 1]]


def test_the_longest_chain_of_a_loop_counts_for_each_step() -> None:
    e = Exprs()
    x, y = e.coord("x"), e.coord("y")
    (waiting,) = e.loop(0, (1, 50), [x * y], [e.carried(0) * x + y])
    terms = [e("abs", e.index(0) * x + step) for step in range(64)]
    (side,) = e.loop(0, (1, 50), [x * y], [e.carried(0) + sum(terms[1:], terms[0])])
    sections = [compiled(lowered(root)).section(Rate.ELEMENT) for root in (waiting, side)]
    assert [round(parallelism(section.nodes)) for section in sections] == [1, 3]


def test_the_most_values_that_are_alive_at_once() -> None:
    e = Exprs()
    x, y = e.coord("x"), e.coord("y")
    terms = [e("abs", x * y * step) for step in range(1, 9)]
    sections = [compiled(lowered(root)).section(Rate.ELEMENT) for root in (x * y, in_pairs(terms), terms[0] * terms[1])]
    found = list(map(most_alive, sections))
    assert found[0] == 1
    assert found[1] > found[2] > 1
