"""Passes that start from what they kept of other IR have the same results as passes that start from scratch."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import permutations

import pytest

from tests.support.exprs import Exprs, image_slot, lowered, number_slot
from weft.contexts import AUDIO, COMPUTE, VISUAL, ContextSpec
from weft.ir.expr import Expr, Lowered, Output, Pool, Update, depth_first, digest
from weft.ir.passes import run_passes
from weft.ir.rates import PassContext
from weft.ops.formula import Term

OPS = ("add", "add", "sub", "mul", "div", "neg", "sin", "sin", "cos", "floor", "mod", "fract", "max", "select", "hash")
NUMBERS = (0.5, 1.0, 2.0, 3.0, 0.1, 12.0)


def terms(chance: random.Random, e: Exprs, count: int) -> list[Term]:
    """Random terms of one another, with many waves, remainders and hashes, and constants that differ little."""
    x, y, t = (e.coord(name) for name in ("x", "y", "abstime"))
    whole = e("floor", x * 4 + t)
    bits = [e("bits_of", whole), e("bits_mul", e("bits_of", whole), e.node("u32", (), 3))]
    bits.append(e("bits_add", bits[1], e.node("u32", (), 5)))
    found = [x, y, t, x * 3 + t, x * y, e.uniform("u"), e.uniform("mouse@x"), e.state("n", 1), e.state("i", 1)]
    family = [x * y * 3 + e.uniform(name) * k for name in "uv" for k in (1, 2)] + [x * y * 3 - t]
    found += [e(name, argument) for name in ("sin", "cos") for argument in family]
    found += [e("bits_top", each) for each in bits] + [e.picture("a.png", x * t, y), e.state("i", 1, x * 2, y)]
    for _ in range(count):
        name = chance.choice(OPS)
        arity = {"hash": 3, "select": 3}.get(name) or (1 if name in {"neg", "sin", "cos", "floor", "fract"} else 2)
        args = [chance.choice(found[-12:] + found[:20]) for _ in range(arity)]
        if arity == 2 and chance.random() < 0.5:
            args[1] = e.number(chance.choice(NUMBERS))
        if name == "mod" and chance.random() < 0.5:
            found.append(e("floor", args[0] / args[1]))
        found.append(e(name, *args))
    return found


def some_ir(chance: random.Random, found: list[Term], spec: ContextSpec) -> Lowered:
    """IR of a few of some terms."""
    shown = chance.choices(found, k=chance.randint(1, 6))
    points = {"p@q": chance.choice(found)} if chance.random() < 0.2 else None
    kept = {"n": chance.choice(found[:5]), "i": chance.choice(found)}
    return lowered(
        *shown, context=spec.name, slots=[number_slot("n"), image_slot("i")], updates=kept, exposed=points
    )


def copied(ir: Lowered, pool: Pool) -> Lowered:
    """The same IR in another pool, made in another order."""
    new: dict[Expr, Expr] = {}
    for node in depth_first(ir.roots[::-1]):
        new[node] = pool.make(node.op, tuple(new[arg] for arg in node.args), node.attr)
    return replace(
        ir,
        outputs=tuple(Output(o.label, new[o.value]) for o in ir.outputs),
        exposed=tuple((ref, new[value]) for ref, value in ir.exposed),
        updates=tuple(Update(u.slot, u.plane, new[u.value]) for u in ir.updates),
    )


def shown(ir: Lowered) -> tuple[object, ...]:
    """All that there is to know of an IR."""
    parts = [(o.label, digest(o.value)) for o in (*ir.outputs, *ir.feeds)]
    updates = [(u.slot, u.plane, digest(u.value)) for u in ir.updates]
    return parts, updates, ir.slots, [(ref, digest(value)) for ref, value in ir.exposed]


@pytest.mark.parametrize("spec", [VISUAL, COMPUTE, AUDIO], ids=lambda spec: str(spec.name))
@pytest.mark.parametrize("seed", range(6))
def test_passes_go_on_from_one_ir_to_the_next(seed: int, spec: ContextSpec) -> None:
    chance, e = random.Random(seed), Exprs()
    found = terms(chance, e, 60)
    kept = PassContext(e.pool, spec, _rewritten={})
    for _ in range(12):
        ir, pool = some_ir(chance, found, spec), Pool()
        alone = run_passes(copied(ir, pool), PassContext(pool, spec))
        assert shown(run_passes(ir, kept)) == shown(alone)


def test_bits_are_taken_apart_if_a_part_was_known_before() -> None:
    e = Exprs()
    kept = PassContext(e.pool, VISUAL, _rewritten={})
    first = e("bits_of", e("floor", e.coord("x") * 8 + e.coord("abstime")))
    for term in (first, e("bits_mul", first, e.node("u32", (), 7))):
        ir, pool = lowered(e("bits_top", term)), Pool()
        alone = run_passes(copied(ir, pool), PassContext(pool, VISUAL))
        assert shown(run_passes(ir, kept)) == shown(alone)


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_waves_of_a_family_do_not_depend_on_which_is_made_first(order: tuple[int, ...]) -> None:
    """Even if one has a sum that something else uses too."""
    e = Exprs()
    x, y = e.coord("x"), e.coord("y")

    def made(k: int) -> Term:
        wave = e("sin", x * y)
        match k:
            case 0:
                return e("max", wave + 0.3, x)
            case 1:
                return e("sin", x * y * 3 + (wave + 0.3))
            case _:
                return e("sin", x * y * 3 + wave + k)

    parts = {k: made(k) for k in order}
    ir, pool = lowered(*(parts[k] for k in range(4))), Pool()
    alone = run_passes(copied(ir, pool), PassContext(pool, VISUAL))
    assert shown(run_passes(ir, PassContext(e.pool, VISUAL))) == shown(alone)


@pytest.mark.parametrize("seed", range(4))
def test_feeds_are_numbered_as_they_are_found(seed: int) -> None:
    chance, e = random.Random(seed), Exprs()
    reads = [e.strand("a@b", e.uniform("u") * k, e.number(0.5)) for k in range(6)]
    reads += [e.strand("c@d", reads[0], e.uniform("v")), e.strand("c@d", reads[3] * 2, e.uniform("v"))]
    kept = PassContext(e.pool, AUDIO, _rewritten={})
    for _ in range(8):
        picked = chance.sample(reads, 3)
        ir, pool = lowered(picked[0] + picked[1] * e.coord("abstime"), picked[2], context="audio"), Pool()
        alone = copied(ir, pool)
        again, alone = run_passes(ir, kept), run_passes(alone, PassContext(pool, AUDIO))
        assert shown(again) == shown(alone)
        assert [feed.label.rpartition("/")[2] for feed in again.feeds] == [str(k) for k in range(len(again.feeds))]
