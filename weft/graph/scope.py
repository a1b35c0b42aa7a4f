"""Scopes: what names mean at a place, and how arguments meet parameters."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from weft.codes.rows import InternalError
from weft.errors import Span, WeftError, error
from weft.graph.calls import PictureSize, is_heard, sizes_of, source_shape
from weft.graph.domain import Coordinate
from weft.graph.patch import Broadcast, FromCache, FromSource, Instance
from weft.names import POSITIONS, StrandRef, is_swizzle
from weft.syntax.ast import Call, Expression, For, Map, Remap, SpindleDefinition

# --- scopes ---


class PoisonedError(InternalError):
    """A strand cannot be evaluated, for a reason that has been reported elsewhere."""


class Bindings:
    """The locals of a body, or of one step of a loop inside the scope `outer`, in the order in which statements bind
    them. A scope sees only the first of them, so no statement has to copy them."""

    __slots__ = ("_places", "_values", "outer")

    def __init__(self, outer: Scope | None = None, first: Mapping[str, Local] | None = None) -> None:
        self.outer = outer
        self._values: list[Local] = list((first or {}).values())
        self._places: dict[str, list[int]] = {name: [place] for place, name in enumerate(first or ())}
        """For each name the places of its values, in ascending order."""

    def add(self, name: str, value: Local) -> None:
        self._places.setdefault(name, []).append(len(self._values))
        self._values.append(value)

    def get(self, name: str, seen: int, ahead: bool) -> Local | None:
        """The latest of the first `seen` locals of a name, or else that of the outer scope. With `ahead`, a name that
        the body assigns only later has its value at the end of the body."""
        places = self._places.get(name)
        if places is not None:
            if places[0] < seen:
                last = places[-1] if places[-1] < seen else places[bisect_left(places, seen) - 1]
                return self._values[last]
            if ahead and self.outer is None:
                return self._values[places[-1]]
        outer = self.outer
        return None if outer is None else outer.bindings.get(name, outer.seen, ahead)

    @property
    def has_fixed(self) -> bool:
        """Whether any of them is `Fixed`, a number of one step of a loop."""
        return any(isinstance(value, Fixed) for value in self._values)

    def names(self, seen: int) -> Iterator[str]:
        """The names of the locals of the outer scope, then those of the first `seen` locals."""
        if self.outer is not None:
            yield from self.outer.names()
        yield from (name for name, places in self._places.items() if places[0] < seen)


_NO_BINDINGS = Bindings()


@dataclass(slots=True, eq=False)
class SpindleBody:
    """The body of a spindle, for one call. `assigned` holds all names that it assigns; `end` is the scope after its
    last statement, None until that is reached; `for_memory` caches the scopes that look ahead to it."""

    assigned: frozenset[str]
    end: Scope | None = None
    for_memory: dict[Scope, Scope] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """The surroundings of an expression.

    `path` names the place for state: `trail@v`, `scene/blur#0`. The locals are the first `seen` of `bindings`. If it
    looks `ahead`, which only state may do, those that the body binds further down are locals too. `level` is that of
    the innermost loop around it, -1 outside of loops. `chain` lists the spindles being called, the innermost last, and
    `body` belongs to that one. `broadcast` is the member, of several, for which the expression is evaluated. `copies`
    is the number of times that unrolled loops repeat it.
    """

    path: str
    bindings: Bindings = _NO_BINDINGS
    seen: int = 0
    level: int = -1
    varying: bool = False
    chain: tuple[SpindleDefinition, ...] = ()
    broadcast: Broadcast | None = None
    body: SpindleBody | None = None
    copies: int = 1
    ahead: bool = False
    whole: Scope | None = None
    """If this is the scope of one member of an expression over bundles, the scope of the whole expression."""

    def get(self, name: str) -> Local | None:
        """The local of a name."""
        return self.bindings.get(name, self.seen, self.ahead)

    @property
    def has_fixed(self) -> bool:
        """Whether a local is a number of a step of a loop."""
        bindings: Bindings | None = self.bindings
        while bindings is not None:
            if bindings.has_fixed:
                return True
            bindings = bindings.outer.bindings if bindings.outer is not None else None
        return False

    def names(self) -> Iterator[str]:
        """The names of the locals. A name that a step of a loop binds again is there twice."""
        return self.bindings.names(self.seen)

    def is_assigned_later(self, name: str) -> bool:
        """Whether the body assigns a name, but only further down."""
        is_assigned = self.body is not None and name in self.body.assigned
        return is_assigned and self.bindings.get(name, self.seen, False) is None

    def bind(self, name: str, value: Local) -> Scope:
        """The scope after a statement, with one more local, which shadows an earlier one of that name. `bind` is called
        at most once on a scope."""
        self.bindings.add(name, value)
        return Scope(
            self.path, self.bindings, self.seen + 1, self.level, self.varying, self.chain, self.broadcast, self.body,
            self.copies, self.ahead, self.whole,
        )  # fmt: skip

    def inner(self, locals: Mapping[str, Local]) -> Scope:
        """A scope inside this one, with these locals. It ends before this one continues."""
        return replace(self, bindings=Bindings(self, locals), seen=len(locals), whole=None)

    def broadcast_over(self, broadcast: Broadcast | None) -> Scope:
        if broadcast is self.broadcast or broadcast == self.broadcast:
            return self
        return Scope(
            self.path, self.bindings, self.seen, self.level, self.varying, self.chain, broadcast, self.body,
            self.copies, self.ahead, self.whole,
        )  # fmt: skip

    def for_memory(self) -> Scope:
        """The scope of an expression that state evaluates at the end of a tick. Names that the body assigns further
        down have their values at its end. Raises PoisonedError if the body was not read to its end."""
        body = self.body
        if body is None:
            return self
        if body.end is None:
            if any(self.is_assigned_later(name) for name in body.assigned):
                raise PoisonedError
            return self
        whole = None if self.whole is None else self.whole.for_memory()
        ahead = replace(self, ahead=True, whole=whole)
        return body.for_memory.get(self) or body.for_memory.setdefault(self, ahead)


# --- what a local can be ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """A strand: an expression with the scope it was written in, and the name of the local that it was assigned to."""

    value: Expression
    scope: Scope
    name: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Fixed:
    """A number of one step of a loop: no remap moves it. `value` is a value of the domain."""

    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class LoopResult:
    """The strand that a name refers to after an outermost loop that assigns it. `scope` is the one before the loop,
    which can run at any coordinates."""

    loop: For
    scope: Scope
    name: str
    index: int = 0
    """The member, if the name refers to a bundle."""


@dataclass(frozen=True, slots=True, eq=False)
class Opaque:
    """The argument of a spindle that is checked without being called: a strand about which nothing is known, or any
    number of them."""

    takes_bundle: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class StrandGroup:
    """Several strands under one name: an instance, the outputs of a call, a bundle (whose elements have no names).
    `axes` has the coordinates of its own, by the names after `@`: `c@k` by `k`."""

    names: tuple[str, ...]
    members: tuple[Member, ...]
    axes: Mapping[str, StrandRef] = field(default_factory=dict)
    positional: tuple[Coordinate, ...] = ("x", "y", "time")
    """The coordinates that a positional remap of it maps, in order."""
    sizes: Mapping[str, PictureSize] = field(default_factory=dict)
    """The width and height of a picture, by the names after `@`."""

    def __len__(self) -> int:
        return len(self.members)

    def place(self, name: str) -> int | None:
        """The place of the member with a name. Members without names have the letters of `POSITIONS`."""
        if any(self.names):
            return self.names.index(name) if name in self.names else None
        places = (letters.index(name) for letters in POSITIONS if len(name) == 1 and name in letters)
        return next((place for place in places if place < len(self)), None)

    def swizzle(self, letters: str) -> StrandGroup | None:
        """The members that `@rgb` names; None if they do not all exist, or if an output has this very name."""
        places = [self.place(letter) for letter in letters]
        if letters in self.names or None in places:
            return None
        members = tuple(self.members[place] for place in places if place is not None)
        return replace(self, names=("",) * len(members), members=members)

    def take(self, count: int, names: Iterable[str]) -> StrandGroup:
        """The first `count` members under other names."""
        return replace(self, names=tuple(names), members=self.members[:count])


OPEN = StrandGroup((), ())
"""The strands of something about which nothing is known."""

Local: TypeAlias = Closure | Fixed | LoopResult | Opaque | StrandGroup


# --- what a member of a group can be ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class StrandMember:
    """An output of an instance of the patch."""

    ref: StrandRef


@dataclass(frozen=True, slots=True, eq=False)
class SourceMember:
    """An output of a source; `axis` is the name of the axis it brings along, if it has one."""

    call: Call
    name: str
    plane: int
    scope: Scope
    axis: StrandRef | None = None


@dataclass(frozen=True, slots=True, eq=False)
class CacheMember:
    """An output of a cache: plane `plane` of `planes`, remembered for the strand `now`."""

    call: Call
    scope: Scope
    plane: int
    planes: int
    axis: StrandRef
    now: Member


@dataclass(frozen=True, slots=True, eq=False)
class Remapped:
    """A member of a remapped group."""

    inner: Member
    maps: tuple[Map, ...]
    scope: Scope


@dataclass(frozen=True, slots=True, eq=False)
class PositionallyRemapped:
    """A member of a group remapped without `~`: the values of the coordinates `axes`, in order."""

    inner: Member
    axes: tuple[tuple[Coordinate, Expression], ...]
    span: Span
    scope: Scope


@dataclass(frozen=True, slots=True, eq=False)
class WordMember:
    """A member of what a word for bundles gives."""

    call: Call
    scope: Scope
    index: int


Member: TypeAlias = (
    StrandMember | SourceMember | CacheMember | WordMember | Remapped | PositionallyRemapped | Closure | Fixed
    | LoopResult | Opaque
)


@dataclass(frozen=True, slots=True, eq=False)
class HeardStrand:
    """A strand without a name that an analysis hears: an expression, and the scope in which it is written."""

    value: Expression
    scope: Scope


# --- groups: the strands of an instance, a remap or a call ---


def instance_group(instance: Instance) -> StrandGroup:
    """The outputs of an instance, with its own axes."""
    members = tuple(StrandMember(StrandRef(instance.name, name)) for name in instance.outputs)
    names = tuple("" if name.isdigit() else name for name in instance.outputs)
    axes = {axis: StrandRef(instance.name, axis) for axis in instance.axes}
    first = next(iter(instance.outputs.values())).definition
    if isinstance(first, FromSource):
        shape, over = source_shape(first.call, first.spec)
        planes = [o.definition.plane for o in instance.outputs.values() if isinstance(o.definition, FromSource)]
        coordinates = ("time",) if is_heard(planes, shape) else source_coordinates(over, axes)
        return StrandGroup(names, members, axes, coordinates, sizes_of(first.call, first.spec, instance.sizes))
    if isinstance(first, FromCache):
        return StrandGroup(names, members, axes, tuple(axes.values()))
    return StrandGroup(names, members, axes)


def source_coordinates(axes: Iterable[str], own: Mapping[str, StrandRef]) -> tuple[Coordinate, ...]:
    """The coordinates that a positional remap of a source maps, of which some are its own."""
    return tuple(own.get(a, "time" if a == "abstime" else a) for a in axes)


def in_scope(member: Member, before: Scope, after: Scope) -> Member | None:
    """A member of an expression's strands in one scope, moved to another scope that is alike. None if it cannot be
    moved, and has to be found there."""
    match member:
        case StrandMember():
            return member
        case Closure(value, scope, name) if scope is before:
            return Closure(value, after, name)
        case Closure(value, scope, name) if scope.whole is before and scope.bindings is before.bindings:
            return Closure(value, replace(scope, whole=after), name)
    return None


def remapped(group: StrandGroup, wrapper: Remap | Call, scope: Scope) -> StrandGroup:
    """The strands of a group at other coordinates: those of a remap or positional remap written in `scope`."""
    if isinstance(wrapper, Remap):
        return replace(group, members=tuple(Remapped(m, wrapper.maps, scope) for m in group.members))
    axes = positional_axes(wrapper, group.positional)
    return replace(group, members=tuple(PositionallyRemapped(m, axes, wrapper.span, scope) for m in group.members))


def positional_axes(call: Call, axes: tuple[Coordinate, ...]) -> tuple[tuple[Coordinate, Expression], ...]:
    """The coordinate that each argument of a positional remap maps. Raises WeftError for too many or labelled ones."""
    for position, arg in enumerate(call.args):
        if arg.label is not None:
            raise error("label-in-remap", "a positional remap takes no labels", arg.label_span or arg.span,
                        f"write me@{arg.label} ~ …" if arg.label in ("x", "y", "time") else None)  # fmt: skip
        if position >= len(axes):
            shown = ", ".join(map(str, axes)) if axes else "no coordinates"
            raise error("too-many-arguments", f"this can be remapped over {shown}, and this is one more", arg.span,
                        "to call something, check its name; to remap a certain coordinate, write me@x ~ …")  # fmt: skip
    return tuple((axis, arg.value) for axis, arg in zip(axes, call.args, strict=False))


def as_member(local: Local | None) -> Member:
    """An output of a spindle. Raises PoisonedError if it was never assigned."""
    if local is None:
        raise PoisonedError
    if isinstance(local, StrandGroup):
        raise TypeError("an output of a spindle is a strand")
    return local


def as_local(members: Sequence[Member], shape: StrandGroup | None) -> Local:
    """A local with these members: a bundle, or the only member."""
    if shape is OPEN:
        return Opaque(takes_bundle=True)
    if shape is not None:
        return StrandGroup(shape.names, tuple(members))
    only = members[0]
    if not isinstance(only, Closure | Fixed | LoopResult | Opaque):
        raise TypeError("not a local")
    return only


def strands(group: StrandGroup) -> str:
    """A group as a message describes it."""
    if not any(group.names):
        return f"{len(group)} strands"
    return f"{len(group)} strands ({', '.join(name or '…' for name in group.names)})"


def pick_hint(span: Span, group: StrandGroup) -> str:
    """A hint about taking one strand of the group at a place."""
    name = span.text if span.text.isidentifier() else None
    if name and group.names[0]:
        return f"take one of them: {name}@{group.names[0]}"
    return "take one of them with [0], or combine them with sum(…) or length(…)"


def count_hint(group: StrandGroup, names: Sequence[str], span: Span) -> str:
    """How a group gets as many strands as there are names for it."""
    lacking = len(names) - len(group)
    if lacking > 0:
        more = "one more member" if lacking == 1 else f"{lacking} more members"
        return f"give it {more}, or leave out {', '.join(names[len(group):])}"
    return f"give as many outputs as there are strands, or {pick_hint(span, group)}"


def different_counts(first: Expression, one: StrandGroup, second: Expression, other: StrandGroup) -> WeftError:
    """The error for an expression over bundles whose numbers of members differ."""
    return error("count-mismatch", f"this is {strands(other)}, and the other bundle here is {strands(one)}",
                 second.span, f"bundles in one expression need as many members; {_evened(one, other)}",
                 [(first.span, f"{len(one)} here")])  # fmt: skip


def _evened(one: StrandGroup, other: StrandGroup) -> str:
    """How two groups can be given the same number of members."""
    shorter, longer = sorted((one, other), key=len)
    first = longer.names[: len(shorter)] if any(longer.names) else tuple(POSITIONS[0])[: len(shorter)]
    if is_swizzle("".join(first)) and all(len(name) == 1 for name in first) and len(first) == len(shorter):
        return f"of the {len(longer)}, take {len(shorter)} with @{''.join(first)}"
    return "take one with [0], or use sum(…)"


def several_calls(spindle: SpindleDefinition, span: Span) -> WeftError:
    """The error for a call for each member of a bundle, of a spindle that has several outputs."""
    return error("several-strands", f"{spindle.name.name} has {len(spindle.outputs)} outputs, and only a spindle with "
                 "one can be called for each member of a bundle", span,
                 "name the outputs on the left, or take one member with [0]")  # fmt: skip
