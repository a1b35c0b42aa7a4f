"""What the parts of elaboration that have files of their own need of the elaborator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from weft.errors import Span
from weft.graph.budget import Budget
from weft.graph.domain import Domain, SlotRequest
from weft.graph.fields import Coordinates, Environment
from weft.graph.resolve import Resolver
from weft.graph.scope import Member, Scope
from weft.syntax.ast import Expression
from weft.trampoline import Task

V = TypeVar("V")


class Evaluation(Protocol[V]):
    """The elaborator, as what is written beside it sees it."""

    @property
    def domain(self) -> Domain[V]: ...

    @property
    def env(self) -> Environment[V]: ...

    @property
    def budget(self) -> Budget: ...

    @property
    def resolver(self) -> Resolver: ...

    def value(self, node: Expression, scope: Scope, at: Coordinates[V]) -> Task[V]: ...

    def member(self, member: Member, at: Coordinates[V], span: Span) -> Task[V]: ...

    def remember(self, slot: SlotRequest, updates: Sequence[Callable[[], Task[V]]]) -> None: ...
