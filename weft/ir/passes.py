"""The passes between lowering and code generation, in one list. Each is a pure function from IR to IR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from weft.contexts import ContextSpec
from weft.ir import feeds, phases, waves
from weft.ir.builder import Builder, in_order
from weft.ir.expr import Expr, Pool, SlotPlane
from weft.ir.program import Lowered, StateSlot
from weft.ir.rates import Varies, rates, variation
from weft.ops import OPS


@dataclass(frozen=True, slots=True)
class PassContext:
    """What a pass may know besides the IR: the pool its expressions live in, and the context they run in."""

    pool: Pool
    spec: ContextSpec


class Pass(NamedTuple):
    """`always` passes are needed for meaning, the others only for speed: `-O0` leaves these out."""

    name: str
    apply: Callable[[Lowered, PassContext], Lowered]
    always: bool


def rewrite(lowered: Lowered, pool: Pool, change: Callable[[Expr, tuple[Expr, ...]], Expr]) -> Lowered:
    """The IR with each expression replaced by what `change` makes of it and of its operands' replacements."""
    new: dict[Expr, Expr] = {}
    for node in lowered.nodes():
        new[node] = change(node, tuple([new[a] for a in node.args]))
    pool.hand_on(new)
    return replace(
        lowered,
        outputs=tuple(replace(o, value=new[o.value]) for o in lowered.outputs),
        exposed=tuple((ref, new[value]) for ref, value in lowered.exposed),
        updates=tuple(replace(u, value=new[u.value]) for u in lowered.updates),
        feeds=tuple(replace(f, value=new[f.value]) for f in lowered.feeds),
    )


def settle_state(lowered: Lowered, context: PassContext) -> Lowered:
    """Decides which slots are images: those that keep something that varies over the picture. The others are numbers,
    and have no place that they could be sampled at."""
    slots = {slot.key: slot for slot in lowered.slots}
    changed = context.spec.sweeps_plane
    while changed:
        images = _image_slots(lowered, context.spec, slots)
        changed = any(not slots[key].image for key in images)
        slots |= {key: replace(slots[key], image=True) for key in images}
    if all(slot.image for slot in slots.values()):
        return replace(lowered, slots=tuple(slots[s.key] for s in lowered.slots))

    def settle(node: Expr, args: tuple[Expr, ...]) -> Expr:
        if isinstance(node.attr, SlotPlane) and not slots[node.attr.slot].image:
            args = args[:1]
        return _remade(node, args, context.pool)

    return replace(rewrite(lowered, context.pool, settle), slots=tuple(slots[s.key] for s in lowered.slots))


def _image_slots(lowered: Lowered, spec: ContextSpec, slots: dict[str, StateSlot]) -> set[str]:
    # A sampled read of a slot that is no image (yet) does not vary with the place it is sampled at.
    varies = variation((u.value for u in lowered.updates), spec, slots)
    return {u.slot for u in lowered.updates if varies[u.value] & (Varies.COLUMN | Varies.ROW | Varies.ELEMENT)}


def lead(lowered: Lowered, context: PassContext) -> Lowered:
    """In a context that streams, has what comes from outside arrive as coordinates."""
    if not context.spec.streams:
        return lowered
    slots = {slot.key: slot for slot in lowered.slots}
    leading = feeds.Leading(lowered.name, context.pool, rates(lowered.swept, context.spec, slots))
    return replace(rewrite(lowered, context.pool, leading.led), feeds=leading.feeds)


def expand(lowered: Lowered, context: PassContext) -> Lowered:
    """Rewrites every builtin that is made of simpler ones."""
    builder = Builder(context.pool)

    def expanded(node: Expr, args: tuple[Expr, ...]) -> Expr:
        row = OPS.get(node.op)
        if row is None or (row.expand is None and len(args) == len(row.params)):
            return _remade(node, args, context.pool)
        return builder.at(context.pool.span(node)).op(node.op, *args)

    return rewrite(lowered, context.pool, expanded)


def fold(lowered: Lowered, context: PassContext) -> Lowered:
    """Computes what is constant, and leaves out operations that change nothing."""
    builder = Builder(context.pool)

    def folded(node: Expr, args: tuple[Expr, ...]) -> Expr:
        if node.op not in OPS:
            return _remade(node, args, context.pool)
        simpler = builder.at(context.pool.span(node)).simplified(node.op, args)
        return simpler or _remade(node, in_order(node.op, args), context.pool)

    return rewrite(lowered, context.pool, folded)


def reduce_phases(lowered: Lowered, context: PassContext) -> Lowered:
    """Keeps the arguments of periodic operations small: what they have from the frame alone is reduced to one turn."""
    change = phases.rewriting(lowered, context.pool, context.spec)
    return lowered if change is None else rewrite(lowered, context.pool, change)


def turn_waves(lowered: Lowered, context: PassContext) -> Lowered:
    """Counts the arguments of sines and cosines in half turns, and makes kindred ones of one sine and one cosine."""
    nodes = lowered.nodes()
    arguments = {node.args[0] for node in nodes if node.op in ("sin", "cos")}
    if not arguments:
        return lowered
    change = waves.rewriting(nodes, context.pool, rates(arguments, context.spec, {s.key: s for s in lowered.slots}))
    return lowered if change is None else rewrite(lowered, context.pool, change)


def _remade(node: Expr, args: tuple[Expr, ...], pool: Pool) -> Expr:
    return node if args == node.args else pool.make(node.op, args, node.attr, pool.span(node))


PASSES: Sequence[Pass] = (
    Pass("settle_state", settle_state, always=True),
    Pass("expand", expand, always=True),
    Pass("lead", lead, always=True),
    Pass("fold", fold, always=False),
    Pass("phases", reduce_phases, always=False),
    Pass("waves", turn_waves, always=False),
)


def run_passes(
    lowered: Lowered,
    context: PassContext,
    optimise: bool = True,
    after: Callable[[str, Lowered], None] | None = None,
    passes: Sequence[Pass] = PASSES,
) -> Lowered:
    """Applies the passes in order; `after` sees the result of each, by name."""
    for step in passes:
        if step.always or optimise:
            if not step.always:
                context.pool.lift_limit()
            lowered = step.apply(lowered, context)
            if after is not None:
                after(step.name, lowered)
    return lowered
