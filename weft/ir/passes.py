"""The passes between lowering and code generation, in one list. Each is a pure function from IR to IR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from weft.contexts import ContextSpec
from weft.ir.expr import Expr, ExprBuilder, Lowered, Pool, SlotPlane, in_order
from weft.ir.lower import FeedCollector
from weft.ir.phases import phase_rewriting, wave_rewriting
from weft.ir.rates import Rate, planar_slots, rates
from weft.ops import OPS, formula as f
from weft.ops.formula import Term
from weft.ops.ieee import below_in_single


@dataclass(frozen=True, slots=True)
class PassContext:
    """The surroundings of the IR that a pass may use: the pool of its expressions, and the context in which they
    run."""

    pool: Pool
    spec: ContextSpec


class Pass(NamedTuple):
    """One pass. `always` marks those that the meaning needs; `-O0` leaves out the others, which only add speed."""

    name: str
    apply: Callable[[Lowered, PassContext], Lowered]
    always: bool


def rewrite(lowered: Lowered, pool: Pool, change: Callable[[Expr, tuple[Expr, ...]], Expr]) -> Lowered:
    """The IR with each expression replaced by `change(expression, replacements of its operands)`."""
    new: dict[Expr, Expr] = {}
    for node in lowered.nodes():
        new[node] = change(node, tuple([new[a] for a in node.args]))
    pool.transfer_names(new)
    return replace(
        lowered,
        outputs=tuple(replace(o, value=new[o.value]) for o in lowered.outputs),
        exposed=tuple((ref, new[value]) for ref, value in lowered.exposed),
        updates=tuple(replace(u, value=new[u.value]) for u in lowered.updates),
        feeds=tuple(replace(f, value=new[f.value]) for f in lowered.feeds),
    )


def settle_state(lowered: Lowered, context: PassContext) -> Lowered:
    """Decides which slots are images: those that keep a value that varies over the picture. The others are numbers,
    which cannot be sampled at a place."""
    images = planar_slots(lowered.updates, context.spec) if context.spec.sweeps_plane else set()
    slots = {slot.key: replace(slot, image=slot.key in images) for slot in lowered.slots}
    if all(slot.image for slot in slots.values()):
        return replace(lowered, slots=tuple(slots[s.key] for s in lowered.slots))

    def settle(node: Expr, args: tuple[Expr, ...]) -> Expr:
        if isinstance(node.attr, SlotPlane) and not slots[node.attr.slot].image:
            args = args[:1]
        return context.pool.with_args(node, args)

    return replace(rewrite(lowered, context.pool, settle), slots=tuple(slots[s.key] for s in lowered.slots))


def settle_holds(lowered: Lowered, context: PassContext) -> Lowered:
    """Decides how the triggers of holds are compared: numbers as doubles, images in the single precision in which they
    are kept. A trigger that varies over the picture is compared only at the pixels: anywhere else it would be compared
    with a value interpolated between pixels, and differ. A hold that is read there is one tick old; between ticks it is
    as the last tick left it."""
    if all(node.op != "differs" for node in lowered.nodes()):
        return lowered
    pool, slots = context.pool, {slot.key: slot for slot in lowered.slots}
    rate = rates((u.value for u in lowered.updates), context.spec, slots)
    triggers = [u for u in lowered.updates if slots[u.slot].kind == "hold" and u.plane == _TRIGGER]
    over = {u.slot for u in triggers if slots[u.slot].image and rate[u.value] > Rate.FRAME}
    no = pool.make("const", (), 0.0)

    def is_between(node: Expr) -> bool:
        """Whether it samples, at a place, a hold whose trigger varies."""
        return len(node.args) > 1 and isinstance(node.attr, SlotPlane) and node.attr.slot in over

    def settled(finished: bool) -> Callable[[Expr, tuple[Expr, ...]], Expr]:
        def settle(node: Expr, args: tuple[Expr, ...]) -> Expr:
            if node.op == "differs" and isinstance(before := node.args[1].attr, SlotPlane):
                if is_between(node.args[1]):
                    return no
                if not slots[before.slot].image:
                    return pool.make("ne", args, None, pool.span(node))
            if finished and is_between(node):
                args = (no, *args[1:])
            return pool.with_args(node, args)

        return settle

    exposed = replace(lowered, outputs=(), updates=(), feeds=())
    swept = replace(lowered, exposed=())
    return replace(rewrite(swept, pool, settled(False)), exposed=rewrite(exposed, pool, settled(True)).exposed)


# The plane of a hold that keeps its trigger.
_TRIGGER = 1


def collect_feeds(lowered: Lowered, context: PassContext) -> Lowered:
    """Replaces the inputs of a context that streams by coordinates."""
    if not context.spec.streams:
        return lowered
    slots = {slot.key: slot for slot in lowered.slots}
    collector = FeedCollector(lowered.name, context.pool, rates(lowered.swept, context.spec, slots))
    return replace(rewrite(lowered, context.pool, collector.replaced), feeds=collector.feeds)


def expand(lowered: Lowered, context: PassContext) -> Lowered:
    """Rewrites every builtin that is composed of simpler ones."""
    builder = ExprBuilder(context.pool)

    def expanded(node: Expr, args: tuple[Expr, ...]) -> Expr:
        row = OPS.get(node.op)
        if row is None or (row.expand is None and len(args) == len(row.params)):
            return context.pool.with_args(node, args)
        return builder.at(context.pool.span(node)).op(node.op, *args)

    return rewrite(lowered, context.pool, expanded)


def fold(lowered: Lowered, context: PassContext) -> Lowered:
    """Computes constants, and leaves out operations that change nothing."""
    builder = ExprBuilder(context.pool)

    def folded(node: Expr, args: tuple[Expr, ...]) -> Expr:
        if node.op not in OPS:
            return context.pool.with_args(node, args)
        simpler = builder.at(context.pool.span(node)).simplified(node.op, args)
        return simpler or context.pool.with_args(node, in_order(node.op, args))

    return rewrite(lowered, context.pool, folded)


def reduce_phases(lowered: Lowered, context: PassContext) -> Lowered:
    """Keeps the arguments of periodic operations small: the terms that vary only with the frame are reduced to one
    turn."""
    change = phase_rewriting(lowered, context.pool, context.spec)
    return lowered if change is None else rewrite(lowered, context.pool, change)


def turn_waves(lowered: Lowered, context: PassContext) -> Lowered:
    """Counts the arguments of sines and cosines in half turns, and computes those that differ only by a steady phase
    from one sine and one cosine."""
    nodes = lowered.nodes()
    arguments = {node.args[0] for node in nodes if node.op in ("sin", "cos")}
    if not arguments:
        return lowered
    change = wave_rewriting(nodes, context.pool, rates(arguments, context.spec, {s.key: s for s in lowered.slots}))
    return lowered if change is None else rewrite(lowered, context.pool, change)


def keep_rests(lowered: Lowered, context: PassContext) -> Lowered:
    """Keeps remainders below their period when they pass into a section that runs more often and may have single
    precision: there, a remainder close to the period would be rounded to it."""
    if context.spec.streams and not context.spec.in_blocks:
        return lowered  # double precision throughout
    nodes = lowered.nodes()
    rests = {node for node in nodes if node.op == "mod"}
    if not rests:
        return lowered
    slots = {slot.key: slot for slot in lowered.slots}
    exposed = [value for _, value in lowered.exposed]
    handed: set[Expr] = set()
    for rate, ends in (
        (rates(lowered.swept, context.spec, slots), [o.value for o in lowered.outputs]),
        (rates(exposed, context.spec, slots, points=True), exposed),
    ):
        handed.update(end for end in ends if rate[end] < Rate.ELEMENT)
        for node, own in rate.items():
            if not rests.isdisjoint(node.args):
                handed.update(arg for arg in node.args if not arg.free and (node.free or rate[arg] < own))
    handed &= rests
    builder = ExprBuilder(context.pool)

    def kept(node: Expr, args: tuple[Expr, ...]) -> Expr:
        made = context.pool.with_args(node, args)
        if node not in handed:
            return made
        rest, limit = Term(builder.at(context.pool.span(node)), made), _just_below(builder, args[1])
        known: Expr = f.select(f.lt(f.abs(limit), f.abs(rest)), limit, rest).value
        return known

    return rewrite(lowered, context.pool, kept)


def _just_below(builder: ExprBuilder, period: Expr) -> Term:
    """The number before a period in single precision, or a slightly smaller one."""
    if period.op == "const" and isinstance(period.attr, float):
        return Term(builder, builder.const(below_in_single(period.attr)))
    return Term(builder, period) * (1 - 2.0**-22)


PASSES: Sequence[Pass] = (
    Pass("settle_state", settle_state, always=True),
    Pass("expand", expand, always=True),
    Pass("settle_holds", settle_holds, always=True),
    Pass("collect_feeds", collect_feeds, always=True),
    Pass("fold", fold, always=False),
    Pass("phases", reduce_phases, always=False),
    Pass("waves", turn_waves, always=False),
    Pass("keep_rests", keep_rests, always=True),
)


def run_passes(
    lowered: Lowered,
    context: PassContext,
    optimise: bool = True,
    after: Callable[[str, Lowered], None] | None = None,
    passes: Sequence[Pass] = PASSES,
) -> Lowered:
    """Applies the passes in order; `after` sees the result of each, by name."""
    context.pool.lift_limit()
    for step in passes:
        if step.always or optimise:
            lowered = step.apply(lowered, context)
            if after is not None:
                after(step.name, lowered)
    return lowered
