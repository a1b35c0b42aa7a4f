"""Evaluation, as loops, state and sampling see it; and what the evaluation of one owner refers to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, TypeVar

from weft.errors import Span
from weft.graph.budget import Budget
from weft.graph.domain import Coordinates, Domain, Environment, SlotKey, SlotRequest
from weft.graph.recursion import Eventual
from weft.graph.resolve import Resolver
from weft.graph.scope import Member, Scope
from weft.names import StrandRef
from weft.syntax.ast import Expression, For

V = TypeVar("V")


class Evaluator(Protocol[V]):
    """The evaluation of a patch over one domain, as the constructs of the language use it to evaluate their parts."""

    domain: Domain[V]
    env: Environment[V]
    budget: Budget
    resolver: Resolver

    def value(self, node: Expression, scope: Scope, at: Coordinates[V]) -> Eventual[V]:
        """The one value of an expression at coordinates."""

    def member(self, member: Member, at: Coordinates[V], span: Span) -> Eventual[V]:
        """A member of a group, or a local, at coordinates. `span` is the place that reads it."""

    def placed(self, at: Coordinates[V]) -> Coordinates[V]:
        """The one object for coordinates of equal values."""

    def axis(self, ref: StrandRef, at: Coordinates[V]) -> V | None:
        """The value of an axis of an instance at coordinates; None if no map gives it one."""

    def remember(self, slot: SlotRequest, updates: Sequence[Callable[[], Eventual[V]]]) -> None:
        """Asks for memory; `updates` evaluate the value that each plane keeps of a tick, at the slot's own
        coordinates."""

    def keep_image(self, image: SlotRequest, update: Callable[[], Eventual[V]]) -> None:
        """Asks for an image of this tick. Unlike memory, it does not tie a strand to a context."""

    def has_image(self, key: SlotKey) -> bool:
        """Whether the owner for which something is being evaluated has asked for an image."""

    def note_loop(self, results: Sequence[V], loop: For) -> None:
        """Notes a loop that is not written out."""


Owner: TypeAlias = "StrandRef | SlotKey | str"
"""For what something is evaluated: a strand, a slot, or a sink by its label."""


@dataclass(slots=True, eq=False)
class References:
    """What the evaluation of one owner refers to: strands and sources, each with the place of the first reference; what
    its analyses hear; and the slots and images that it asks for. For a slot, `asked_by` are the owners that asked for
    it. `maps_time` says whether it reads anything at another time. `axes` are those of caches and the like that it
    reads, `maps` those that it maps, base coordinates included."""

    strands: dict[StrandRef, Span] = field(default_factory=dict)
    sources: dict[str, Span] = field(default_factory=dict)
    heard: dict[StrandRef, None] = field(default_factory=dict)
    slots: dict[SlotKey, None] = field(default_factory=dict)
    images: dict[SlotKey, None] = field(default_factory=dict)
    asked_by: dict[Owner, None] = field(default_factory=dict)
    maps_time: bool = False
    axes: dict[StrandRef, None] = field(default_factory=dict)
    maps: dict[StrandRef, None] = field(default_factory=dict)

    @property
    def needs(self) -> tuple[Owner, ...]:
        """The owners on which the values of this one may depend."""
        return (*self.strands, *self.slots, *self.images, *self.asked_by)

    @property
    def all(self) -> tuple[object, ...]:
        """All references, without places. Their order is that of evaluation, so they are in sets."""
        found = (
            self.strands, self.sources, self.heard, self.slots, self.images, self.asked_by, self.axes, self.maps,
        )
        return (*[frozenset[object](each) for each in found], self.maps_time)
