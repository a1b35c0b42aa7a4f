"""What elaboration computes with. Elaboration gives names, spindles, remaps, loops and state their meaning once; a
domain decides what the values are: what a strand depends on (`weft.graph.shape`), or expressions (`weft.ir.lower`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from weft.errors import Span
from weft.graph.fields import Coordinates
from weft.names import StrandRef
from weft.sources import SourceSpec
from weft.syntax.ast import Call

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class SlotRequest:
    """Memory that a stateful builtin asks for. `depth` is how many ticks back it can be read."""

    key: str
    kind: str
    depth: int
    planes: int
    span: Span


class Loop(Protocol[V]):
    """A loop being built. `index` and `carried` are what its body reads in a step."""

    @property
    def index(self) -> V: ...

    @property
    def carried(self) -> Sequence[V]: ...

    def close(self, nexts: Sequence[V]) -> bool:
        """Takes the values that a step ends with. False: the body has to be evaluated again, with other values."""

    @property
    def results(self) -> Sequence[V]:
        """What the carried values are behind the loop."""


class Domain(Protocol[V]):
    """The operations that elaboration needs. Values are hashable; equal values are interchangeable."""

    def const(self, value: float, span: Span | None = None) -> V: ...

    def op(self, name: str, *args: V, span: Span | None = None) -> V:
        """A row of the table of operators."""

    def uniform(self, name: str) -> V: ...

    def unknown(self) -> V:
        """A value about which nothing is known."""

    def constant(self, value: V) -> float | None:
        """The number that a value is at every coordinate, if it is one."""

    def call(self, value: V, name: str, local: bool) -> None:
        """Notes what the patch calls a value: the name of a strand, or of a `local` of a spindle."""

    def is_unknown(self, value: V) -> bool:
        """Whether a value might be a constant, for all that is known: it came from an argument never given."""

    def loop_level(self, value: V) -> int:
        """The level of the innermost loop whose variables a value mentions, -1 for none."""

    def loop(self, level: int, first: V, last: V, inits: Sequence[V], span: Span) -> Loop[V]: ...

    def state(self, slot: SlotRequest, plane: int, ticks: V, at: Coordinates[V], span: Span) -> V:
        """A plane of a slot as it was `ticks` ago, at a place. `ticks` is a whole number from 1."""

    def source(self, call: Call, spec: SourceSpec, plane: int, axis: V | None, at: Coordinates[V]) -> V:
        """A plane of a source at a place; `axis` is the place along its own axis."""

    def external(self, ref: StrandRef, at: Coordinates[V], span: Span) -> V | None:
        """A strand that is evaluated elsewhere and read across; None where it is evaluated here."""
