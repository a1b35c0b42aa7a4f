"""The meaning of expressions, over any domain of values: names, remaps, spreading, calls and instances.

Everything is a function of coordinates, so an expression is evaluated *at* coordinates, which are values of the
domain themselves. A remap evaluates what is below it at other coordinates; nothing is rewritten.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Generic, TypeVar

from weft.errors import Span, WeftError, error
from weft.graph import memory
from weft.graph.arguments import match_arguments
from weft.graph.domain import Domain, SlotRequest
from weft.graph.fields import ALL_FIELDS, BASES, FIELDS, FIXED_FIELDS, Coordinates, Environment
from weft.graph.loops import run_loop
from weft.graph.mistakes import along_time, check_field, no_output, short, time_map, under_map
from weft.graph.patch import Expanded, FromCache, FromParameter, FromSource, Part, Patch, Spread
from weft.graph.resolve import Resolver, positional_axes, too_many_outputs
from weft.graph.scope import (
    CacheMember,
    Closure,
    Fixed,
    Group,
    Local,
    LoopResult,
    LoopSite,
    Member,
    Opaque,
    PoisonedError,
    PositionallyRemapped,
    Remapped,
    Scope,
    SourceMember,
    StrandMember,
)
from weft.keys import KEYS
from weft.names import StrandRef
from weft.ops import BINARY, BUILTINS, UNARY
from weft.sources import SOURCES
from weft.syntax.ast import (
    Access,
    Binary,
    Bundle,
    Call,
    Expression,
    If,
    Index,
    Map,
    Name,
    Number,
    Remap,
    SpindleDefinition,
    Text,
    Unary,
)
from weft.trampoline import Task, run

V = TypeVar("V")

MOUSE = ("x", "y", "down", "left", "right", "wheel")


class Elaborator(Generic[V]):
    """Evaluates the strands of one patch over one domain.

    Along the way it keeps, for each strand or sink under evaluation (its *owner*), what that refers to, and for each
    state slot how it advances. `finish` evaluates the latter.
    """

    def __init__(self, patch: Patch, domain: Domain[V], env: Environment[V]) -> None:
        self.patch = patch
        self.domain = domain
        self.env = env
        self.resolver = Resolver(patch)
        self.slots: dict[str, SlotRequest] = {}
        self.updates: dict[tuple[str, int], V] = {}
        self.references: dict[object, dict[StrandRef, Span]] = {}
        self.slots_of: dict[object, set[str]] = {}
        self.sources_of: dict[object, dict[str, Span]] = {}
        self._owners: list[object] = []
        self._open: set[StrandRef] = set()
        self._pending: list[tuple[SlotRequest, int, Callable[[], Task[V]]]] = []
        self._strands: dict[tuple[StrandRef, Coordinates[V]], V] = {}
        self._locals: dict[tuple[Member, Coordinates[V]], V] = {}
        self._loops: dict[tuple[LoopSite, Coordinates[V]], dict[str, V]] = {}
        self._scopes: dict[StrandRef, Scope] = {}
        self._poisoned: set[StrandRef] = set()

    # --- entry points ---------------------------------------------------------------------------------------------

    def strand(self, ref: StrandRef, at: Coordinates[V]) -> V:
        """A strand of the patch. Raises WeftError, or PoisonedError if that was raised before."""
        return run(self._strand(ref, at, None))

    def expression(self, value: Expression, scope: Scope, owner: object, at: Coordinates[V]) -> V:
        """An expression that belongs to a sink or another owner outside of the instances."""
        with self._owned(owner):
            return run(self.value(value, scope, at))

    def evaluate(self, member: Member, owner: object, at: Coordinates[V], span: Span) -> V:
        """What a body left in one of its names."""
        with self._owned(owner):
            return run(self.member(member, at, span))

    @property
    def has_pending(self) -> bool:
        """Whether there are slots of which it is not known yet how they advance."""
        return bool(self._pending)

    def finish(self) -> None:
        """Evaluates how the slots advance, at their own coordinates, until no new ones turn up."""
        while self._pending:
            slot, plane, task = self._pending.pop(0)
            with self._owned(slot.key):
                self.updates[slot.key, plane] = run(task())

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
        match node:
            case Number(number, span):
                return self.domain.const(number, span)
            case Name():
                value: V = yield self._name(node, scope, at)
                return value
            case Binary(symbol, left, right, span):
                a: V = yield self.value(left, scope, at)
                b: V = yield self.value(right, scope, at)
                return self.domain.op(BINARY[symbol].name, a, b, span=span)
            case Access():
                value = yield self._access(node, scope, at)
                return value
            case Call():
                value = yield self._call(node, scope, at)
                return value
            case Unary(symbol, operand, span):
                a = yield self.value(operand, scope, at)
                return self.domain.op(UNARY[symbol].name, a, span=span)
            case Remap(base, maps, _):
                moved: Coordinates[V] = yield self.remapped(maps, scope, at)
                value = yield under_map(self.value(base, scope, moved), time_map(maps))
                return value
            case If(condition, then, otherwise, span):
                c: V = yield self.value(condition, scope, at)
                a = yield self.value(then, scope, at)
                b = yield self.value(otherwise, scope, at)
                return self.domain.op("select", c, a, b, span=span)
            case Index():
                value = yield self._index(node, scope, at)
                return value
            case Bundle():
                group = self.resolver.group(node, scope)
                value = yield self.member(self.resolver.pick(_some(group), scope, node.span), at, node.span)
                return value
            case Text(_, span):
                raise error("text-as-number", "text cannot be used as a number", span)

    def _name(self, node: Name, scope: Scope, at: Coordinates[V]) -> Task[V]:
        found = self.resolver.strand(node, scope)
        if isinstance(found, float):
            return self.domain.const(found, node.span)
        value: V = yield self._local(found, scope, at, node.span)
        return value

    def _local(self, found: Local, scope: Scope, at: Coordinates[V], span: Span) -> Task[V]:
        member = self.resolver.pick(found, scope, span) if isinstance(found, Group) else found
        value: V = yield self.member(member, at, span)
        return value

    def member(self, member: Member, at: Coordinates[V], span: Span) -> Task[V]:
        """A member of a group, or a local, at coordinates. `span` is where it is asked for."""
        match member:
            case StrandMember(ref):
                value: V = yield self._strand(ref, at, span)
                return value
            case Fixed(fixed):
                fixed_value: V = fixed
                return fixed_value
            case Opaque():
                return self.domain.unknown()
            case SourceMember(call, name, plane):
                return self._source(call, plane, at, None)
            case Remapped(inner, maps, scope):
                moved: Coordinates[V] = yield self.remapped(maps, scope, at)
                value = yield under_map(self.member(inner, moved, span), time_map(maps))
                return value
            case PositionallyRemapped(inner, axes, place, scope):
                moved = yield self._moved_along(axes, scope, at)
                value = yield under_map(self.member(inner, moved, span), place if along_time(axes) else None)
                return value
            case LoopResult(site, name):
                if (site, at) not in self._loops:
                    self._loops[site, at] = yield run_loop(self, site.loop, site.scope, at)
                return self._loops[site, at][name]
            case Closure(expression, scope):
                if (member, at) not in self._locals:
                    self._locals[member, at] = yield self.value(expression, scope, at)
                return self._locals[member, at]
            case CacheMember():
                if (member, at) not in self._locals:
                    self._locals[member, at] = yield memory.cached(self, member, at)
                return self._locals[member, at]

    # --- instances ------------------------------------------------------------------------------------------------

    def _strand(self, ref: StrandRef, at: Coordinates[V], span: Span | None) -> Task[V]:
        if self._owners and span is not None:
            self.references.setdefault(self._owners[-1], {}).setdefault(ref, span)
        if ref in self._poisoned:
            raise PoisonedError
        key = (ref, at)
        if key in self._strands:
            return self._strands[key]
        output = self.patch.instances[ref.instance].outputs[ref.output]
        across = self.domain.external(ref, at, span or output.span)
        if across is None:
            if ref in self._open:
                self._raise_cycle(ref)
            self._owners.append(ref)
            self._open.add(ref)
            try:
                across = yield self._defined(ref, at)
            except WeftError:
                self._poisoned.add(ref)
                raise
            finally:
                self._owners.pop()
                self._open.discard(ref)
        self._strands[key] = across
        return across

    def _raise_cycle(self, ref: StrandRef) -> None:
        path = [o for o in self._owners[self._owners.index(ref) :] if isinstance(o, StrandRef)]
        self._poisoned.update(path)
        steps = [*path, ref]
        first = self.references[path[-1]][ref]
        related = [(self.references[a][b], f"{short(a)} reads {short(b)} here") for a, b in pairwise(steps)]
        raise error(
            "cycle", f"{short(ref)} depends on itself: {' → '.join(map(short, steps))}", first,
            "prev(…) reads the value of one tick ago, and makes feedback of it", related[:-1],
        )  # fmt: skip

    def _defined(self, ref: StrandRef, at: Coordinates[V]) -> Task[V]:
        output = self.patch.instances[ref.instance].outputs[ref.output]
        scope = self._scopes.get(ref)
        match output.definition:
            case Expanded(expression, spread):
                scope = scope or self._scopes.setdefault(ref, Scope(str(ref), spread=spread))
                value: V = yield self.value(expression, scope, at)
            case Part(expression, index, path):
                scope = scope or self._scopes.setdefault(ref, Scope(path))
                group = self.resolver.group(expression, scope)
                width = 1 if group is None else len(group)
                if index >= width:
                    raise too_many_outputs(width, ref.output, output.span)
                if group is None:
                    value = yield self.value(expression, scope, at)
                else:
                    value = yield self.member(group.members[index], at, expression.span)
            case FromSource(call, _, plane):
                return self._source(call, plane, at, ref.instance)
            case FromCache(call, plane, _):
                scope = scope or self._scopes.setdefault(ref, Scope(ref.instance))
                cached = self.resolver.cache_group(call, scope, ref.instance)
                if plane >= len(cached):
                    raise too_many_outputs(len(cached), ref.output, output.span)
                value = yield self.member(cached.members[plane], at, call.span)
            case FromParameter():
                return self.domain.uniform(str(ref))
        return value

    # --- access ---------------------------------------------------------------------------------------------------

    def _access(self, node: Access, scope: Scope, at: Coordinates[V]) -> Task[V]:
        if isinstance(node.base, Name) and node.base.id not in scope.locals:
            match node.base.id:
                case "me":
                    return self._field(node, at)
                case "mouse":
                    check_field("mouse", node, MOUSE)
                    return self.domain.uniform(f"mouse@{node.output}")
                case "key":
                    check_field("key", node, tuple(KEYS))
                    return self.domain.uniform(f"key@{node.output}")
        if self.resolver.is_open(node.base, scope):
            return self.domain.unknown()
        group = self._group_of_access(node, scope)
        if node.output in group.axes:
            return at.axis(group.axes[node.output]) or self.domain.const(0.0)
        member = group.member(node.output)
        if member is None:
            raise no_output(node.base.span.text, node, tuple(n for n in group.names if n) + tuple(group.axes))
        value: V = yield self.member(member, at, node.span)
        return value

    def _group_of_access(self, node: Access, scope: Scope) -> Group:
        group = self.resolver.group(node.base, scope)
        if group is not None and any(group.names):
            return group
        raise error("no-outputs", f'this has no output "{node.output}", it is a single value', node.span,
                    "outputs belong to instances and calls: name@output")  # fmt: skip

    def _field(self, node: Access, at: Coordinates[V]) -> V:
        check_field("me", node, ALL_FIELDS)
        return self.env.field(node.output, at)

    # --- calls ----------------------------------------------------------------------------------------------------

    def _call(self, node: Call, scope: Scope, at: Coordinates[V]) -> Task[V]:
        if self.resolver.is_remap(node, scope):
            value: V = yield self._positional_remap(node, scope, at)
            return value
        name = node.callee.id if isinstance(node.callee, Name) else ""
        match self.resolver.callable_named(name, scope):
            case SpindleDefinition() | "source":
                group = _some(self.resolver.group(node, scope))
                value = yield self.member(self.resolver.pick(group, scope, node.span), at, node.span)
            case "state":
                value = yield memory.remember(self, name, node, scope, at)
            case _:
                value = yield self._builtin(node, name, scope, at)
        return value

    def _builtin(self, node: Call, name: str, scope: Scope, at: Coordinates[V]) -> Task[V]:
        spec = BUILTINS[name]
        matched = match_arguments(name, spec.params, node.args, node.span, spec.variadic)
        values: list[V] = []
        for position, argument in enumerate(matched):
            if argument is None:
                values.append(self.domain.const(spec.params[position].default or 0.0))
            else:
                values.append((yield self.value(argument, scope, at)))
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
        name = call.callee.id if isinstance(call.callee, Name) else ""
        spec = SOURCES[name]
        if self._owners:
            self.sources_of.setdefault(self._owners[-1], {}).setdefault(name, call.span)
        axis = at.axis(f"{owner}@k") if owner and "k" in spec.axes else None
        return self.domain.source(call, spec, plane, axis, at)

    def _index(self, node: Index, scope: Scope, at: Coordinates[V]) -> Task[V]:
        index: V = yield self.value(node.index, scope, at)
        if self.resolver.is_open(node.base, scope):
            return self.domain.unknown()
        group, spreads = self.resolver.index_range(node.base, scope)
        constant = self.domain.constant(index)
        if constant is not None:
            place = self._constant_place(node, constant, len(group))
            value: V = yield self._element(node, group, spreads, place, scope, at)
            return value
        chosen: V = yield self._element(node, group, spreads, 0, scope, at)
        for place in range(1, len(group)):
            element: V = yield self._element(node, group, spreads, place, scope, at)
            reached = self.domain.op("ge", index, self.domain.const(float(place)), span=node.span)
            chosen = self.domain.op("select", reached, element, chosen, span=node.span)
        return chosen

    def _constant_place(self, node: Index, index: float, count: int) -> int:
        if math.isnan(index):
            return 0
        if not 0 <= index < count:
            raise error("index-out-of-range", f"there is no [{index:g}] in {count} "
                        f"element{'s' * (count != 1)}", node.index.span, f"0 to {count - 1} exist")  # fmt: skip
        return int(index)

    def _element(
        self, node: Index, group: Group, spreads: Sequence[Spread] | None, place: int, scope: Scope, at: Coordinates[V]
    ) -> Task[V]:
        if spreads is None:
            value: V = yield self.member(group.members[place], at, node.span)
        else:
            # What remembers does so for each place on its own.
            placed = replace(scope, path=f"{scope.path}[{place}]", spread=spreads[place])
            value = yield self.value(node.base, placed, at)
        return value

    # --- remaps ---------------------------------------------------------------------------------------------------

    def remapped(self, maps: Sequence[Map], scope: Scope, at: Coordinates[V]) -> Task[Coordinates[V]]:
        """The coordinates inside a remap; all maps read those of the outside."""
        moved: dict[str, V] = {}
        placed: dict[str, Span] = {}
        for item in maps:
            field, name = self._target(item.target, scope)
            if name in placed:
                raise error("double-map", f"two maps move {'me@' if name in BASES else ''}{name}", item.target.span,
                            "combine them into one", [(placed[name], "the other one")])  # fmt: skip
            placed[name] = item.target.span
            value: V = yield self.value(item.value, scope, at)
            moved[name] = FIELDS[field].inverse(self.env, at, value) if field in FIELDS else value
        return at.moved(moved)

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
        return at.moved(moved)

    def _target(self, target: Access, scope: Scope) -> tuple[str, str]:
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
        group = self.resolver.group(target.base, scope)
        if group is None or target.output not in group.axes:
            raise error("not-a-coordinate", f"{target.span.text} is a strand, not a coordinate", target.span,
                        "a map moves a coordinate: me@x ~ …")  # fmt: skip
        return target.output, group.axes[target.output]

    # --- state ----------------------------------------------------------------------------------------------------

    def remember(self, slot: SlotRequest, updates: Sequence[Callable[[], Task[V]]]) -> None:
        """Asks for memory; `updates` evaluate what each plane keeps of a tick, at the slot's own coordinates."""
        if self._owners:
            self.slots_of.setdefault(self._owners[-1], set()).add(slot.key)
        if slot.key not in self.slots:
            self.slots[slot.key] = slot
            self._pending += [(slot, plane, update) for plane, update in enumerate(updates)]


T = TypeVar("T")


def _some(value: T | None) -> T:
    if value is None:
        raise TypeError("resolution and elaboration disagree about a group")
    return value
