"""What lowering makes of one subgraph: expressions for its outputs, its exposed strands and its state."""

from __future__ import annotations

from dataclasses import dataclass

from weft.ir.expr import Expr, StrandRef, topological


@dataclass(frozen=True, slots=True)
class StateSlot:
    """Memory that outlives a tick. `key` is `context/instance path/kind/ordinal`; `depth` is how many ticks back it
    can be read, `planes` how many values it keeps for each. An `image` keeps them for every element of a picture,
    any other slot is one number a plane."""

    key: str
    kind: str
    depth: int
    planes: int
    image: bool


@dataclass(frozen=True, slots=True)
class Update:
    """At the end of a tick, `value` becomes plane `plane` of the slot, one tick ago."""

    slot: str
    plane: int
    value: Expr


@dataclass(frozen=True, slots=True)
class Output:
    """One value that leaves the subgraph, by the label of its output statement (`display.r`, `compute.speed`)."""

    label: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Lowered:
    """The IR of one subgraph. `outputs` are evaluated over the whole sweep of the context; `exposed` are strands that
    other subgraphs read at places of their own, and are functions of the coordinates alone, which they read as `coord`;
    `updates` advance `slots`, which are sorted by key; `feeds` are what other contexts give to one that streams: they
    are evaluated there, once a frame, and arrive as coordinates of the names they are labelled with."""

    name: str
    context: str
    outputs: tuple[Output, ...]
    exposed: tuple[tuple[StrandRef, Expr], ...]
    slots: tuple[StateSlot, ...]
    updates: tuple[Update, ...]
    feeds: tuple[Output, ...] = ()

    @property
    def swept(self) -> list[Expr]:
        """What is evaluated at every tick."""
        return [o.value for o in self.outputs] + [u.value for u in self.updates]

    @property
    def roots(self) -> list[Expr]:
        return self.swept + [value for _, value in self.exposed] + [feed.value for feed in self.feeds]

    def nodes(self) -> list[Expr]:
        return topological(self.roots)
