"""The passes between lowering and code generation, in one list. Each is a pure function from IR to IR."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from weft.ir.census import Census, TrackedRewrites
from weft.ir.expr import (
    EXPANDING, Change, Expr, ExprBuilder, KnownRewrites, Lowered, SlotPlane, in_order, known_of, rewrite, topological
)
from weft.ir.lower import FeedCollector, StrandsBelow
from weft.ir.phases import reduce_phases
from weft.ir.pixels import filter_shrunk, take_samples
from weft.ir.rates import PassContext, PlanarSlots, Rate
from weft.ir.tunable import value_of
from weft.ir.waves import turn_waves
from weft.ops import OPS, formula as f
from weft.ops.formula import Term
from weft.ops.ieee import below_in_single, single


class Pass(NamedTuple):
    """One pass. `always` marks those that the meaning needs; `-O0` leaves out the others, which only add speed."""

    name: str
    apply: Callable[[Lowered, PassContext], Lowered]
    always: bool


def settle_state(lowered: Lowered, context: PassContext) -> Lowered:
    """Decides which slots are images: those that keep a value that varies over the picture. The others are numbers,
    which cannot be sampled at a place."""
    if not lowered.slots:
        return lowered
    images = {slot.key for slot in lowered.slots if not slot.outlives}
    if context.spec.sweeps_plane:
        images |= context.known(lambda: PlanarSlots(context.spec), "planar").among(lowered.updates)
    lowered = replace(lowered, slots=tuple(replace(slot, image=slot.key in images) for slot in lowered.slots))
    if all(slot.image for slot in lowered.slots):
        return lowered

    def settle(node: Expr, args: tuple[Expr, ...]) -> Expr:
        is_number = isinstance(node.attr, SlotPlane) and node.attr.slot not in images
        return context.pool.with_args(node, args[:1] if is_number else args)

    known = context.known(KnownRewrites, "settle_state", frozenset(images))
    return rewrite(lowered, context.pool, ("state",), settle, known=known)


def settle_levels(lowered: Lowered, context: PassContext) -> Lowered:
    """If an image of a level samples memory, it does so at its own pixels. Their centres are between the picture's."""
    levels = {slot.key for slot in lowered.slots if slot.level}
    if not levels:
        return lowered
    pool, images = context.pool, {slot.key for slot in lowered.slots if slot.image}
    place = tuple(pool.make("coord", (), axis) for axis in "xy")

    def sampled(node: Expr, args: tuple[Expr, ...]) -> Expr:
        is_own = isinstance(node.attr, SlotPlane) and node.attr.slot in images and len(args) == 1
        return context.pool.with_args(node, (*args, *place) if is_own else args)

    own = tuple(update for update in lowered.updates if update.slot in levels)
    part = rewrite(replace(lowered, outputs=(), exposed=(), updates=own, feeds=(), films=()), pool, ("state",), sampled)
    changed = {(update.slot, update.plane): update for update in part.updates}
    return replace(lowered, updates=tuple(changed.get((u.slot, u.plane), u) for u in lowered.updates))


def settle_holds(lowered: Lowered, context: PassContext) -> Lowered:
    """Decides how the triggers of holds are compared: numbers as doubles, images in the single precision in which they
    are kept. A trigger that varies over the picture is compared only at the pixels. At any other place it would be
    compared with a value interpolated between pixels, which differs. A hold that is read there is one tick old; between
    ticks, it has the value of the last tick."""
    if all(slot.kind != "hold" for slot in lowered.slots):
        return lowered
    pool, slots = context.pool, {slot.key: slot for slot in lowered.slots}
    rate = context.rates(lowered)
    triggers = [u for u in lowered.updates if slots[u.slot].kind == "hold" and u.plane == _TRIGGER]
    over = {u.slot for u in triggers if slots[u.slot].image and rate[u.value] > Rate.FRAME}
    no, ops = pool.const(0.0), ("differs", "state")

    def is_between(node: Expr) -> bool:
        """Whether this samples, at another place, a hold whose trigger varies."""
        return len(node.args) > 1 and isinstance(node.attr, SlotPlane) and node.attr.slot in over

    def settled(finished: bool) -> Change:
        def settle(node: Expr, args: tuple[Expr, ...]) -> Expr:
            if node.op == "differs" and isinstance(before := node.args[1].attr, SlotPlane):
                if is_between(node.args[1]):
                    return no
                if not slots[before.slot].image:
                    return pool.make("ne", args, None, node.span)
            if finished and is_between(node):
                args = (no, *args[1:])
            return pool.with_args(node, args)

        return settle

    exposed = replace(lowered, outputs=(), updates=(), feeds=(), films=())
    swept = replace(lowered, exposed=())
    finished = rewrite(exposed, pool, ops, settled(True)).exposed
    return replace(rewrite(swept, pool, ops, settled(False)), exposed=finished)


def drop_borrowed(lowered: Lowered, context: PassContext) -> Lowered:
    """Removes the slots that another subgraph advances. They were needed until now, since the values that slots keep
    decide what kind of slots they are."""
    if not lowered.borrowed:
        return lowered
    lowered = replace(lowered, updates=tuple(each for each in lowered.updates if each.slot not in lowered.borrowed))
    needed = {update.slot for update in lowered.updates}
    needed |= {node.attr.slot for node in lowered.nodes if isinstance(node.attr, SlotPlane)}
    slots = tuple(slot for slot in lowered.slots if slot.key in needed)
    return replace(lowered, slots=slots, borrowed=lowered.borrowed & needed)


# The plane of a hold that keeps its trigger.
_TRIGGER = 1


def collect_feeds(lowered: Lowered, context: PassContext) -> Lowered:
    """Replaces the inputs of a context that streams by coordinates."""
    if not context.spec.streams:
        return lowered
    strands = context.known(StrandsBelow, "strands").all(lowered.roots) if "strand" in context.pool.ops else ()
    collector = FeedCollector(lowered.name, context.pool, strands, context.rates(lowered))
    known = context.known(KnownRewrites, "collect_feeds", collector.feeds)
    changed = rewrite(lowered, context.pool, ("uniform", "strand"), collector.replaced, known=known)
    return replace(changed, feeds=collector.feeds)


def expand(lowered: Lowered, context: PassContext) -> Lowered:
    """Rewrites every builtin that is composed of simpler ones."""
    builder = ExprBuilder(context.pool)

    def expanded(node: Expr, args: tuple[Expr, ...]) -> Expr:
        return builder.at(node.span).op(node.op, *args)

    return rewrite(lowered, context.pool, EXPANDING, expanded, known=context.known(KnownRewrites, "expand"))


def fold(lowered: Lowered, context: PassContext) -> Lowered:
    """Computes constants, and leaves out operations that change nothing."""
    builder = ExprBuilder(context.pool)

    def folded(node: Expr, args: tuple[Expr, ...]) -> Expr:
        simpler = builder.at(node.span).simplified(node.op, args)
        return simpler or context.pool.with_args(node, in_order(node.op, args))

    return rewrite(lowered, context.pool, OPS, folded, known=context.known(KnownRewrites, "fold"))


def keep_rests(lowered: Lowered, context: PassContext) -> Lowered:
    """Keeps a remainder below its period when it passes into a section that runs more often. That section may have
    single precision, in which a remainder close to the period would be rounded up to it."""
    if context.spec.streams and not context.spec.in_blocks:
        return lowered  # double precision throughout
    known = context.known(_KnownRests, "keep_rests", lowered.slots)
    rate = context.rates_with(known.follow(lowered).came, lowered)
    if not known.census.found:
        return lowered
    outputs, exposed = [o.value for o in lowered.outputs], [value for _, value in lowered.exposed]
    swept = known.census
    if not lowered.is_all_swept:
        swept = known.swept
        swept.follow(lowered.swept)
    handed = _handed(swept, outputs, rate)
    if exposed:
        known.exposed.follow(exposed)
        handed |= _handed(known.exposed, exposed, context.rates(lowered, points=True))
    if not handed:
        return lowered
    builder = ExprBuilder(context.pool)

    def kept(node: Expr, args: tuple[Expr, ...]) -> Expr:
        made = context.pool.with_args(node, args)
        if node not in handed:
            return made
        rest, period = Term(builder.at(node.span), made), args[1]
        # The number before the period in single precision, or a slightly smaller one.
        if period.op == "const":
            if math.isinf(single(value_of(known_of(period)))):
                return made  # which may be infinite
            limit = rest.const(below_in_single(value_of(known_of(period))))
        else:
            limit = Term(builder, period) * (1 - 2.0**-22)
        held: Expr = f.select(f.lt(f.abs(limit), f.abs(rest)), limit, rest).value
        return held

    known.compare(dict.fromkeys(handed, True))
    return rewrite(lowered, context.pool, ("mod",), kept, known=known)


def _rests() -> Census:
    """Finds the remainders that belong to no loop."""
    return Census({"mod"}, lambda node: not node.free)


@dataclass(eq=False)
class _KnownRests(TrackedRewrites):
    """What is known of remainders: in all expressions, in those that are needed at every tick if that is not all of
    them, and in those that are read at points."""

    census: Census = field(default_factory=_rests)
    swept: Census = field(default_factory=_rests)
    exposed: Census = field(default_factory=_rests)


def _handed(rests: Census, ends: Iterable[Expr], rate: Mapping[Expr, Rate]) -> set[Expr]:
    """Those of some values that belong to no loop and pass into a section that runs more often, or into a loop. The
    `ends` are computed at every element."""
    handed = {end for end in ends if end in rests.found and rate[end] < Rate.ELEMENT}
    for rest in rests.found:
        if any(user.free or rate[rest] < rate[user] for user in rests.users[rest]):
            handed.add(rest)
    return handed


def share_images(lowered: Lowered, context: PassContext) -> Lowered:
    """Joins the images of this tick that keep equal values at one level, and drops those that nothing reads."""
    levels = {slot.key: slot.level for slot in lowered.slots if not slot.outlives}
    images = set(levels)
    while images:
        values: dict[tuple[Expr, int], str] = {}
        owns = {
            u.slot: values.setdefault((u.value, levels[u.slot]), u.slot) for u in lowered.updates if u.slot in images
        }
        if all(slot == own for slot, own in owns.items()):
            break

        def shared(node: Expr, args: tuple[Expr, ...], owns: Mapping[str, str] = owns) -> Expr:
            place = node.attr
            if isinstance(place, SlotPlane) and place.slot in owns:
                return context.pool.make(node.op, args, place._replace(slot=owns[place.slot]), node.span)
            return context.pool.with_args(node, args)

        images &= set(owns.values())
        lowered = rewrite(_without_images(lowered, images), context.pool, ("state",), shared)
    return _without_images(lowered, _images_read(lowered, images)) if images else lowered


def _without_images(lowered: Lowered, keep: Collection[str]) -> Lowered:
    """The IR with only some of its images of this tick."""
    slots = tuple(slot for slot in lowered.slots if slot.outlives or slot.key in keep)
    keys = {slot.key for slot in slots}
    return replace(lowered, slots=slots, updates=tuple(u for u in lowered.updates if u.slot in keys))


def _images_read(lowered: Lowered, images: Collection[str]) -> set[str]:
    """The images that are read, directly or for one another."""
    values = {update.slot: update.value for update in lowered.updates if update.slot in images}
    found: set[str] = set()
    others = tuple(update for update in lowered.updates if update.slot not in images)
    todo = replace(lowered, updates=others).roots
    while todo:
        new = {node.attr.slot for node in topological(todo) if isinstance(node.attr, SlotPlane)} & values.keys() - found
        found |= new
        todo = [values[slot] for slot in sorted(new)]
    return found


PASSES: Sequence[Pass] = (
    Pass("settle_state", settle_state, always=True),
    Pass("settle_levels", settle_levels, always=True),
    Pass("samples", take_samples, always=True),
    Pass("expand", expand, always=True),
    Pass("settle_holds", settle_holds, always=True),
    Pass("drop_borrowed", drop_borrowed, always=True),
    Pass("collect_feeds", collect_feeds, always=True),
    Pass("fold", fold, always=False),
    Pass("shrink", filter_shrunk, always=True),
    Pass("phases", reduce_phases, always=False),
    Pass("waves", turn_waves, always=False),
    Pass("keep_rests", keep_rests, always=True),
    Pass("share_images", share_images, always=True),
)


def run_passes(
    lowered: Lowered, context: PassContext, optimise: bool = True, after: Callable[[str, Lowered], None] | None = None,
    passes: Sequence[Pass] = PASSES,
) -> Lowered:  # fmt: skip
    """Applies the passes in order; `after` sees the result of each, by name."""
    context.pool.lift_limit()
    for step in passes:
        if step.always or optimise:
            lowered = step.apply(lowered, context)
            if after is not None:
                after(step.name, lowered)
    return lowered
