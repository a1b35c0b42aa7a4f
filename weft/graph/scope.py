"""Where an expression is evaluated: the names it sees, and what these stand for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from weft.errors import Span
from weft.graph.patch import Spread
from weft.names import StrandRef
from weft.syntax.ast import Call, Expression, For, Map, SpindleDefinition


class PoisonedError(Exception):
    """A strand that cannot be evaluated, for a reason that was reported where it lies."""


@dataclass(slots=True, eq=False)
class Body:
    """The body of a spindle, for one call. `end` is the scope behind its last statement, None until that is reached;
    `for_memory` has the scopes made so far that look ahead to it."""

    end: Scope | None = None
    for_memory: dict[Scope, Scope] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """The surroundings of an expression.

    `path` names the place for state: `trail@v`, `scene/blur#0`. `later` holds the names a body assigns further down,
    which are locals only for what is remembered. `level` is that of the innermost loop around it, -1 outside of loops.
    `chain` lists the spindles being called, the innermost last, and `body` belongs to that one. `spread` is the place
    among several that the expression is evaluated for. `copies` is how often the loops around it write it out.
    """

    path: str
    locals: Mapping[str, Local] = field(default_factory=dict)
    later: frozenset[str] = frozenset()
    level: int = -1
    varying: bool = False
    chain: tuple[SpindleDefinition, ...] = ()
    spread: Spread | None = None
    body: Body | None = None
    copies: int = 1

    def bind(self, name: str, value: Local) -> Scope:
        """With one more local, which shadows what had its name before."""
        known, later = {**self.locals, name: value}, self.later - {name}
        return Scope(
            self.path, known, later, self.level, self.varying, self.chain, self.spread, self.body, self.copies
        )

    def spread_over(self, spread: Spread | None) -> Scope:
        if spread == self.spread:
            return self
        return Scope(
            self.path, self.locals, self.later, self.level, self.varying, self.chain, spread, self.body, self.copies
        )

    def for_memory(self) -> Scope:
        """The surroundings of what state takes at the end of a tick: the names that the body assigns further down mean
        what they are at its end. Raises PoisonedError if the body never got there."""
        body = self.body
        if body is None or not self.later:
            return self
        if body.end is None:
            raise PoisonedError
        ahead = {name: body.end.locals[name] for name in self.later & body.end.locals.keys()}
        if ahead.keys() <= self.locals.keys():
            return self
        known = body.for_memory.get(self)
        if known is None:
            known = body.for_memory[self] = replace(self, locals={**ahead, **self.locals})
        return known


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
class LoopSite:
    """A loop with the scope before it; it runs at whatever coordinates it is asked for."""

    loop: For
    scope: Scope


@dataclass(frozen=True, slots=True, eq=False)
class LoopResult:
    """What a loop outside of other loops leaves in one of the names it assigns: a strand again."""

    site: LoopSite
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Opaque:
    """The argument of a spindle that is checked without being called: a strand about which nothing is known."""


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Several strands under one name: an instance, the outputs of a call, a bundle (whose elements have no names).
    `axes` maps each coordinate it brings along to that coordinate's own name (`k` to `c@k`)."""

    names: tuple[str, ...]
    members: tuple[Member, ...]
    axes: Mapping[str, str] = field(default_factory=dict)
    positional: tuple[str, ...] = ("x", "y", "time")
    """The coordinates that a positional remap of it maps, in order."""

    def __len__(self) -> int:
        return len(self.members)

    def member(self, name: str) -> Member | None:
        return self.members[self.names.index(name)] if name in self.names else None

    def take(self, count: int, names: Iterable[str]) -> Group:
        """The first `count` members under other names."""
        return replace(self, names=tuple(names), members=self.members[:count])


Local: TypeAlias = Closure | Fixed | LoopResult | Opaque | Group


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


@dataclass(frozen=True, slots=True, eq=False)
class CacheMember:
    """An output of a cache: plane `plane` of `planes`, remembered for the strand `now`."""

    call: Call
    scope: Scope
    plane: int
    planes: int
    axis: str
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
    axes: tuple[tuple[str, Expression], ...]
    span: Span
    scope: Scope


Member: TypeAlias = (
    StrandMember | SourceMember | CacheMember | Remapped | PositionallyRemapped | Closure | Fixed | LoopResult | Opaque
)
