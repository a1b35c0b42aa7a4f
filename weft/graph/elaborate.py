"""Elaboration: the meaning of every construct of the language, over any domain of values.

Everything is a function of coordinates, so an expression is evaluated *at* coordinates, which are values of the domain
themselves. A remap evaluates what is below it at other coordinates; nothing is rewritten.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Generic, TypeAlias, TypeVar

from weft.errors import Span, WeftError, did_you_mean, error, steps_of
from weft.graph import memory
from weft.graph.budget import Budget
from weft.graph.domain import ALL_FIELDS, BASES, FIELDS, FIXED_FIELDS, Coordinates, Domain, Environment, SlotRequest
from weft.graph.memory import Elaborating, run_loop
from weft.graph.nodes import Broadcast, BundlePart, Expanded, FromCache, FromParameter, FromSource, Patch
from weft.graph.resolve import RESERVED, Resolver, too_many_outputs
from weft.graph.scope import (
    CacheMember, Closure, Fixed, LoopResult, LoopSite, Member, Opaque, PoisonedError, PositionallyRemapped, Remapped,
    Scope, SourceMember, StrandGroup, StrandMember, match_arguments, positional_axes
)
from weft.keys import KEYS, MOUSE
from weft.names import StrandRef
from weft.ops import BINARY, BUILTINS, UNARY
from weft.sources import SOURCES
from weft.syntax.ast import Access, Binary, Bundle, Call, Expression, If, Index, Map, Name, Number, Remap, Text, Unary
from weft.trampoline import Task, run

V = TypeVar("V")

# --- errors: unknown outputs, and remaps of the time ---

# A hint does not list more names than this.
_MOST_LISTED = 24


def check_field(owner: str, node: Access, known: Sequence[str]) -> None:
    """Raises WeftError if `owner` has no output of the name that is accessed."""
    if node.output not in known:
        raise no_output(owner, node, known)


def no_output(owner: str, node: Access, known: Sequence[str]) -> WeftError:
    """The error for an access to an output that does not exist."""
    listed = (*BASES, *FIELDS) if owner == "me" else known
    shown = f"it has {', '.join(listed)}" if len(listed) <= _MOST_LISTED else None
    what = f"there is no {owner}@{node.output}" if owner in RESERVED else f'{owner} has no output "{node.output}"'
    return error("unknown-output", what, node.output_span, did_you_mean(node.output, known) or shown)


def short(ref: StrandRef) -> str:
    """A strand as it is usually written."""
    return str(ref).removesuffix("@val")


def time_map(maps: Sequence[Map]) -> Span | None:
    """The place where a list of maps moves the time; None if it does not."""
    return next((m.target.span.to(m.value.span) for m in maps if _moves_time(m.target)), None)


def _moves_time(target: Access) -> bool:
    field = FIELDS.get(target.output)
    return target.output == "abstime" or (field is not None and field.base == "abstime")


def along_time(axes: Sequence[tuple[str, Expression]]) -> bool:
    """Whether a positional remap moves the time."""
    return any(axis == "time" for axis, _ in axes)


# Errors that a map of the time causes, but that are found in the strands that it reaches.
_ABOUT_MAPS = frozenset({"map-reaches-state", "cannot-read-across"})


def under_map(task: Task[V], moves_time: Span | None) -> Task[V]:
    """The evaluation of what a remap reaches. If that cannot be read at another time, the error is shown at the map,
    because that is what has to be changed."""
    if moves_time is None:
        return task
    return _under_time_map(task, moves_time)


def _under_time_map(task: Task[V], moved_at: Span) -> Task[V]:
    try:
        value: V = yield task
    except WeftError as failure:
        found = failure.diagnostics[0]
        if found.code not in _ABOUT_MAPS or found.related or found.span is None:
            raise
        related = ((found.span, "this is what it reaches"),)
        raise WeftError(replace(found, span=moved_at, related=related)) from None
    return value


# --- indexing: `bundle[i]`, where `i` is a constant or varies ---

# What choosing an element takes of the budget, besides its evaluation.
_STEPS_OF_A_CHOICE = 6


def indexed(e: Elaborating[V], node: Index, scope: Scope, at: Coordinates[V]) -> Task[V]:
    """The element at a constant index, or a choice among all elements."""
    index: V = yield e.value(node.index, scope, at)
    if e.resolver.is_open(node.base, scope):
        return e.domain.unknown()
    group, spreads = e.resolver.index_range(node.base, scope)
    constant = e.domain.constant(index)
    if constant is not None:
        place = _constant_place(node, constant, len(group))
        value: V = yield _element(e, node, group, spreads, place, scope, at)
        return value
    chosen: V = yield _element(e, node, group, spreads, 0, scope, at)
    for place in range(1, len(group)):
        e.budget.spend(_STEPS_OF_A_CHOICE)
        element: V = yield _element(e, node, group, spreads, place, scope, at)
        reached = e.domain.op("ge", index, e.domain.const(float(place)), span=node.span)
        chosen = e.domain.op("select", reached, element, chosen, span=node.span)
    return chosen


def _constant_place(node: Index, index: float, count: int) -> int:
    if math.isnan(index):
        return 0
    if not 0 <= index < count:
        raise error("index-out-of-range", f"there is no [{index:g}] in {count} "
                    f"element{'s' * (count != 1)}", node.index.span, f"0 to {count - 1} exist")  # fmt: skip
    return int(index)


def _element(
    e: Elaborating[V], node: Index, group: StrandGroup, spreads: Sequence[Broadcast] | None, place: int, scope: Scope,
    at: Coordinates[V],
) -> Task[V]:  # fmt: skip
    if spreads is None:
        return e.member(group.members[place], at, node.span)
    # Each place has a state of its own.
    return e.value(node.base, replace(scope, path=f"{scope.path}[{place}]", broadcast=spreads[place]), at)


# --- names and accesses (`name@output`), as values and as the targets of maps ---


def _resolve(e: Elaborating[V], node: Name | Access, scope: Scope, at: Coordinates[V]) -> Member:
    """The strand that a name or an access stands for, at coordinates. Raises WeftError if it stands for nothing, or for
    several strands."""
    if isinstance(node, Access):
        return _accessed(e, node, scope, at)
    found = e.resolver.strand(node, scope)
    match found:
        case float():
            return Fixed(e.domain.const(found, node.span))
        case StrandGroup():
            return e.resolver.pick(found, scope, node.span)
        case _:
            return found


def _accessed(e: Elaborating[V], node: Access, scope: Scope, at: Coordinates[V]) -> Member:
    if isinstance(node.base, Name) and node.base.id not in scope.locals:
        match node.base.id:
            case "me":
                check_field("me", node, ALL_FIELDS)
                return Fixed(e.env.field(node.output, at))
            case "mouse":
                check_field("mouse", node, tuple(MOUSE))
                return Fixed(e.domain.uniform(f"mouse@{node.output}"))
            case "key":
                check_field("key", node, tuple(KEYS))
                return Fixed(e.domain.uniform(f"key@{node.output}"))
    if e.resolver.is_open(node.base, scope):
        return Opaque()
    group = _group(e.resolver, node, scope)
    if node.output in group.axes:
        return Fixed(at.axis(group.axes[node.output]) or e.domain.const(0.0))
    member = group.member(node.output)
    if member is None:
        raise no_output(node.base.span.text, node, tuple(n for n in group.names if n) + tuple(group.axes))
    return member


def _group(resolver: Resolver, node: Access, scope: Scope) -> StrandGroup:
    group = resolver.group(node.base, scope)
    if group is not None and any(group.names):
        return group
    raise error("no-outputs", f'this has no output "{node.output}", it is a single value', node.span,
                "outputs belong to instances and calls: name@output")  # fmt: skip


def map_target(resolver: Resolver, target: Access, scope: Scope) -> tuple[str, str]:
    """The field that a map names, and the base coordinate or axis that it moves."""
    owner = target.base.id if isinstance(target.base, Name) else ""
    if owner == "me":
        check_field("me", target, ALL_FIELDS)
        if target.output in FIXED_FIELDS:
            raise error("not-a-coordinate", f"me@{target.output} is the same everywhere, so it cannot be mapped",
                        target.span, "coordinates are x, y, time and what derives from them")  # fmt: skip
        return target.output, FIELDS[target.output].base if target.output in FIELDS else target.output
    if owner in ("mouse", "key"):
        raise error("not-a-coordinate", f"{owner}@{target.output} is the same everywhere, so it cannot be mapped",
                    target.span, "coordinates are x, y, time and what derives from them")  # fmt: skip
    group = resolver.group(target.base, scope)
    if group is None or target.output not in group.axes:
        raise error("not-a-coordinate", f"{target.span.text} is a strand, not a coordinate", target.span,
                    "a map moves a coordinate: me@x ~ …")  # fmt: skip
    return target.output, group.axes[target.output]


# --- expressions: names, remaps, spreading, calls and instances ---

# How one plane of a slot advances: the slot and the plane, the evaluation of the value that it keeps of a tick, and the
# loops that asked for it.
_Advance: TypeAlias = tuple[SlotRequest, int, Callable[[], Task[V]], tuple[Span, ...]]

# What the evaluation of an expression or a member takes of the budget.
_STEPS = 6

# What a slot takes of the budget, besides the evaluation of what it keeps.
_STEPS_OF_A_SLOT = 30


class Elaborator(Generic[V]):
    """Evaluates the strands of one patch over one domain.

    Along the way it records what each *owner* refers to. An owner is the strand or sink under evaluation. It also
    records how each state slot advances; `finish` evaluates that, with the slot as the owner. A value that is already
    known is not evaluated again, so its references are recorded only for its first owner. `dependencies` therefore
    leads from an owner to its slots, and from a slot to the first owner that asked for it.
    """

    def __init__(self, patch: Patch, domain: Domain[V], env: Environment[V], budget: Budget) -> None:
        self.patch = patch
        self.domain = domain
        self.env = env
        self.budget = budget
        self.resolver = Resolver(patch, budget)
        self.slots: dict[str, SlotRequest] = {}
        self.updates: dict[tuple[str, int], V] = {}
        self.references: dict[object, dict[StrandRef, Span]] = {}
        self.slots_of: dict[object, set[str]] = {}
        self.dependencies: dict[object, set[object]] = {}
        self.sources_of: dict[object, dict[str, Span]] = {}
        self._owners: list[object] = []
        self._open: set[StrandRef] = set()
        self._advances: list[_Advance[V]] = []
        self._pending: list[_Advance[V]] = []
        self._strands: dict[tuple[StrandRef, Coordinates[V]], V] = {}
        self._locals: dict[tuple[Member, Coordinates[V]], V] = {}
        self._loops: dict[tuple[LoopSite, Coordinates[V]], dict[str, V]] = {}
        self._scopes: dict[StrandRef, Scope] = {}
        self._poisoned: set[StrandRef] = set()
        self._places: dict[Hashable, Coordinates[V]] = {env.own.key: env.own}

    # --- entry points ---------------------------------------------------------------------------------------------

    def strand(self, ref: StrandRef, at: Coordinates[V]) -> V:
        """A strand of the patch. Raises WeftError, or PoisonedError if that was raised before."""
        return run(self._strand(ref, at, None))

    def expression(self, value: Expression, scope: Scope, owner: object, at: Coordinates[V]) -> V:
        """An expression that belongs to a sink or another owner that is not an instance."""
        with self._owned(owner), self.budget.within(value.span, "strand"):
            return run(self.value(value, scope, at))

    def evaluate(self, member: Member, owner: object, at: Coordinates[V], span: Span) -> V:
        """The value of a local of a body."""
        with self._owned(owner), self.budget.within(span, "strand"):
            return run(self.member(member, at, span))

    @property
    def has_pending(self) -> bool:
        """Whether there are slots whose advance has not been evaluated yet."""
        return bool(self._pending)

    def finish(self, found: Callable[[str, V], None] | None = None) -> None:
        """Evaluates how the slots advance, at their own coordinates, until no new ones turn up. `found` is called with
        the key of a slot and the value that one of its planes keeps."""
        while self._pending:
            slot, plane, task, loops = self._pending.pop(0)
            before = self.budget.spent
            with self._owned(slot.key), self.budget.within(slot.span, "strand"):
                value = self.updates[slot.key, plane] = run(task())
            self.budget.credit(loops, self.budget.spent - before)
            if found is not None:
                found(slot.key, value)

    def restart(self, last_first: bool = False) -> None:
        """Lets `finish` evaluate all slots again, because the domain knows more than before."""
        self._strands.clear()
        self._locals.clear()
        self._loops.clear()
        self._pending = self._advances[::-1] if last_first else list(self._advances)

    @contextmanager
    def _owned(self, owner: object) -> Iterator[None]:
        depth = len(self._owners)
        self._owners.append(owner)
        try:
            yield
        finally:
            del self._owners[depth:]

    # --- expressions ----------------------------------------------------------------------------------------------

    def value(self, node: Expression, scope: Scope, at: Coordinates[V]) -> Task[V]:
        """The one value of an expression at coordinates."""
        self.budget.spend(_STEPS)
        match node:
            case Binary(symbol, left, right, span):
                return self._operation(BINARY[symbol].name, (left, right), span, scope, at)
            case Name() | Access():
                return self.member(_resolve(self, node, scope, at), at, node.span)
            case Call():
                return self._call(node, scope, at)
            case Number(number, span):
                return _done(self.domain.const(number, span))
            case Unary(symbol, operand, span):
                return self._operation(UNARY[symbol].name, (operand,), span, scope, at)
            case Remap(base, maps, _):
                return self._remap(base, maps, scope, at)
            case If(condition, then, otherwise, span):
                return self._operation("select", (condition, then, otherwise), span, scope, at)
            case Index():
                return indexed(self, node, scope, at)
            case Bundle():
                group = _some(self.resolver.group(node, scope))
                return self.member(self.resolver.pick(group, scope, node.span), at, node.span)
            case Text(_, span):
                raise error("text-as-number", "text cannot be used as a number", span)

    def _operation(
        self, name: str, operands: Sequence[Expression], span: Span, scope: Scope, at: Coordinates[V]
    ) -> Task[V]:
        values: list[V] = []
        for operand in operands:
            known = self._immediate(operand, scope, at)
            values.append((yield self.value(operand, scope, at)) if known is None else known)
        return self.domain.op(name, *values, span=span)

    def _immediate(self, node: Expression, scope: Scope, at: Coordinates[V]) -> V | None:
        """The value of an expression if it is known without evaluation, which saves a round through the trampoline:
        most operands are numbers, coordinates, or strands whose values are known."""
        match node:
            case Name() | Access():
                return self._known(_resolve(self, node, scope, at), at, node.span)
            case Number(number, span):
                return self.domain.const(number, span)
            case _:
                return None

    def _known(self, member: Member, at: Coordinates[V], span: Span | None) -> V | None:
        """The value of a member at coordinates, if it is known without evaluation."""
        match member:
            case StrandMember(ref):
                return self._known_strand(ref, at, span)
            case Fixed(fixed):
                value: V = fixed
                return value
            case Closure() | CacheMember():
                return self._locals.get((member, at))
            case LoopResult(site, name):
                results = self._loops.get((site, at))
                return results[name] if results is not None else None
            case Opaque():
                return self.domain.unknown()
            case SourceMember(call, _, plane):
                return self._source(call, plane, at, None)
            case _:
                return None

    def member(self, member: Member, at: Coordinates[V], span: Span) -> Task[V]:
        """A member of a group, or a local, at coordinates. `span` is the place that reads it."""
        self.budget.spend(_STEPS)
        match member:
            case StrandMember(ref):
                return self._strand(ref, at, span)
            case Closure():
                return self._closure(member, at)
            case Remapped(inner, maps, scope):
                return self._remapped_member(inner, maps, scope, at, span)
            case PositionallyRemapped():
                return self._positionally_remapped_member(member, at, span)
            case LoopResult(site, name):
                return self._loop_result(site, name, at)
            case CacheMember():
                return self._cached(member, at)
            case Fixed(fixed):
                return _done(fixed)
            case Opaque():
                return _done(self.domain.unknown())
            case SourceMember(call, _, plane):
                return _done(self._source(call, plane, at, None))

    def _closure(self, closure: Closure, at: Coordinates[V]) -> Task[V]:
        if (closure, at) not in self._locals:
            value: V = yield self.value(closure.value, closure.scope, at)
            self._locals[closure, at] = value
            if closure.name:
                self.domain.annotate(value, closure.name, local=True)
        return self._locals[closure, at]

    def _cached(self, member: CacheMember, at: Coordinates[V]) -> Task[V]:
        if (member, at) not in self._locals:
            self._locals[member, at] = yield memory.cached(self, member, at)
        return self._locals[member, at]

    def _loop_result(self, site: LoopSite, name: str, at: Coordinates[V]) -> Task[V]:
        if (site, at) not in self._loops:
            self._loops[site, at] = yield run_loop(self, site.loop, site.scope, at)
        return self._loops[site, at][name]

    def _remapped_member(
        self, inner: Member, maps: Sequence[Map], scope: Scope, at: Coordinates[V], span: Span
    ) -> Task[V]:
        moved: Coordinates[V] = yield self.remapped(maps, scope, at)
        value: V = yield under_map(self.member(inner, moved, span), time_map(maps))
        return value

    def _positionally_remapped_member(self, member: PositionallyRemapped, at: Coordinates[V], span: Span) -> Task[V]:
        moved: Coordinates[V] = yield self._moved_along(member.axes, member.scope, at)
        along = member.span if along_time(member.axes) else None
        value: V = yield under_map(self.member(member.inner, moved, span), along)
        return value

    # --- instances ------------------------------------------------------------------------------------------------

    def _known_strand(self, ref: StrandRef, at: Coordinates[V], span: Span | None) -> V | None:
        """The value of a strand, if it was evaluated before. Records the reference. Raises PoisonedError."""
        if self._owners and span is not None:
            self.references.setdefault(self._owners[-1], {}).setdefault(ref, span)
        if ref in self._poisoned:
            raise PoisonedError
        return self._strands.get((ref, at))

    def _strand(self, ref: StrandRef, at: Coordinates[V], span: Span | None) -> Task[V]:
        known = self._known_strand(ref, at, span)
        if known is not None:
            return known
        outputs = self.patch.instances[ref.instance].outputs
        output = outputs[ref.output]
        across = self.domain.external(ref, at, span or output.span)
        if across is None:
            if ref in self._open:
                self._raise_cycle(ref)
            self._owners.append(ref)
            self._open.add(ref)
            try:
                with self.budget.within(output.span, "strand"):
                    across = yield self._defined(ref, at)
            except WeftError:
                self._poisoned.add(ref)
                raise
            finally:
                self._owners.pop()
                self._open.discard(ref)
        self._strands[ref, at] = across
        self.domain.annotate(across, short(ref) if len(outputs) > 1 else ref.instance, local=False)
        return across

    def _raise_cycle(self, ref: StrandRef) -> None:
        path = [o for o in self._owners[self._owners.index(ref) :] if isinstance(o, StrandRef)]
        self._poisoned.update(path)
        steps = [*path, ref]
        first = self.references[path[-1]][ref]
        related = [(self.references[a][b], f"{short(a)} reads {short(b)} here") for a, b in pairwise(steps)]
        raise error(
            "cycle", f"{short(ref)} depends on itself: {steps_of([short(step) for step in steps])}", first,
            "prev(…) reads the value of one tick ago, which makes feedback possible", related[:-1],
        )  # fmt: skip

    def _defined(self, ref: StrandRef, at: Coordinates[V]) -> Task[V]:
        output = self.patch.instances[ref.instance].outputs[ref.output]
        scope = self._scopes.get(ref)
        match output.definition:
            case Expanded(expression, broadcast):
                scope = scope or self._scopes.setdefault(ref, Scope(str(ref), broadcast=broadcast))
                return self.value(expression, scope, at)
            case BundlePart(expression, index, path):
                scope = scope or self._scopes.setdefault(ref, Scope(path))
                group = self.resolver.group(expression, scope)
                width = 1 if group is None else len(group)
                if index >= width:
                    raise too_many_outputs(width, ref.output, output.span)
                if group is None:
                    return self.value(expression, scope, at)
                return self.member(group.members[index], at, expression.span)
            case FromSource(call, _, plane):
                return _done(self._source(call, plane, at, ref.instance))
            case FromCache(call, plane, _):
                scope = scope or self._scopes.setdefault(ref, Scope(ref.instance))
                cached = self.resolver.cache_group(call, scope, ref.instance)
                if plane >= len(cached):
                    raise too_many_outputs(len(cached), ref.output, output.span)
                return self.member(cached.members[plane], at, call.span)
            case FromParameter():
                return _done(self.domain.uniform(str(ref)))

    # --- calls ----------------------------------------------------------------------------------------------------

    def _call(self, node: Call, scope: Scope, at: Coordinates[V]) -> Task[V]:
        match self.resolver.called(node, scope):
            case None:
                return self._positional_remap(node, scope, at)
            case "builtin":
                return self._builtin(node, scope, at)
            case "state":
                return memory.remember(self, node, scope, at)
            case _:
                return self._called(node, scope, at)

    def _called(self, node: Call, scope: Scope, at: Coordinates[V]) -> Task[V]:
        with self.budget.within(node.span, "call"):
            group = _some(self.resolver.group(node, scope))
            value: V = yield self.member(self.resolver.pick(group, scope, node.span), at, node.span)
        return value

    def _builtin(self, node: Call, scope: Scope, at: Coordinates[V]) -> Task[V]:
        spec = BUILTINS[node.name]
        matched = match_arguments(node.name, spec.params, node.args, node.span, spec.variadic)
        values: list[V] = []
        for position, argument in enumerate(matched):
            if argument is None:
                values.append(self.domain.const(spec.params[position].default or 0.0))
            else:
                known = self._immediate(argument, scope, at)
                values.append((yield self.value(argument, scope, at)) if known is None else known)
        return self.domain.op(spec.name, *values, span=node.span)

    def _positional_remap(self, node: Call, scope: Scope, at: Coordinates[V]) -> Task[V]:
        if isinstance(node.callee, Number):
            raise error("missing-operator", "an operator is missing between these two", node.span,
                        f"for a product, write {node.callee.span.text} * …")  # fmt: skip
        group = self.resolver.group(node, scope)
        if group is not None:
            value: V = yield self.member(self.resolver.pick(group, scope, node.span), at, node.span)
            return value
        axes = positional_axes(node, self.resolver.positional(node.callee, scope))
        moved: Coordinates[V] = yield self._moved_along(axes, scope, at)
        value = yield under_map(self.value(node.callee, scope, moved), node.span if along_time(axes) else None)
        return value

    def _source(self, call: Call, plane: int, at: Coordinates[V], owner: str | None) -> V:
        spec = SOURCES[call.name]
        if self._owners:
            self.sources_of.setdefault(self._owners[-1], {}).setdefault(call.name, call.span)
        axis = at.axis(f"{owner}@k") if owner and "k" in spec.axes else None
        return self.domain.source(call, spec, plane, axis, at)

    # --- remaps ---------------------------------------------------------------------------------------------------

    def _remap(self, base: Expression, maps: Sequence[Map], scope: Scope, at: Coordinates[V]) -> Task[V]:
        moved: Coordinates[V] = yield self.remapped(maps, scope, at)
        value: V = yield under_map(self.value(base, scope, moved), time_map(maps))
        return value

    def remapped(self, maps: Sequence[Map], scope: Scope, at: Coordinates[V]) -> Task[Coordinates[V]]:
        """The coordinates inside a remap; all maps read those of the outside."""
        moved: dict[str, V] = {}
        placed: dict[str, Span] = {}
        for item in maps:
            field, name = map_target(self.resolver, item.target, scope)
            if name in placed:
                raise error("double-map", f"two maps move {'me@' if name in BASES else ''}{name}", item.target.span,
                            "combine them into one", [(placed[name], "the other one")])  # fmt: skip
            placed[name] = item.target.span
            value: V = yield self.value(item.value, scope, at)
            moved[name] = FIELDS[field].inverse(self.env, at, value) if field in FIELDS else value
        return self._moved(at, moved)

    def _moved_along(
        self, axes: Sequence[tuple[str, Expression]], scope: Scope, at: Coordinates[V]
    ) -> Task[Coordinates[V]]:
        moved: dict[str, V] = {}
        for axis, expression in axes:
            value: V = yield self.value(expression, scope, at)
            if axis in FIELDS:
                moved[FIELDS[axis].base] = FIELDS[axis].inverse(self.env, at, value)
            else:
                moved[axis] = value
        return self._moved(at, moved)

    def _moved(self, at: Coordinates[V], maps: Mapping[str, V]) -> Coordinates[V]:
        self.budget.spend(_STEPS)
        moved = at.moved(maps)
        return self._places.setdefault(moved.key, moved)

    # --- state ----------------------------------------------------------------------------------------------------

    def remember(self, slot: SlotRequest, updates: Sequence[Callable[[], Task[V]]]) -> None:
        """Asks for memory; `updates` evaluate the value that each plane keeps of a tick, at the slot's own
        coordinates."""
        if self._owners:
            self.slots_of.setdefault(self._owners[-1], set()).add(slot.key)
            self.dependencies.setdefault(self._owners[-1], set()).add(slot.key)
            self.dependencies.setdefault(slot.key, {self._owners[-1]})
        if slot.key not in self.slots:
            self.budget.spend(_STEPS_OF_A_SLOT)
            self.slots[slot.key] = slot
            loops = self.budget.loops
            advances = [(slot, plane, update, loops) for plane, update in enumerate(updates)]
            self._advances += advances
            self._pending += advances


T = TypeVar("T")


def _some(value: T | None) -> T:
    if value is None:
        raise TypeError("resolution and elaboration disagree about a group")
    return value


def _done(value: V) -> Task[V]:
    """A task with nothing left to do."""
    return value
    yield
