"""How often each expression changes, and so how often it has to be computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum, IntFlag

from weft.contexts import ContextSpec
from weft.graph.order import reachable
from weft.ir.expr import Expr, SlotPlane, topological, users
from weft.ir.program import StateSlot, Update

COORDINATES = ("x", "y", "abstime", "channel", "since")


class Rate(IntEnum):
    """The sections of a kernel, from the rarest to the most frequent. `column` is once a column of the picture (it
    varies with x), `row` once a row."""

    CONSTANT = 0
    FRAME = 1
    COLUMN = 2
    ROW = 3
    ELEMENT = 4

    @property
    def title(self) -> str:
        return self.name.lower()


class Varies(IntFlag):
    """What a value varies over; what varies over a column and a row varies over every element."""

    NOTHING = 0
    FRAME = 1
    COLUMN = 2
    ROW = 4
    ELEMENT = 8


_SWEEPS = {
    "once": Varies.NOTHING,
    "frame": Varies.FRAME,
    "column": Varies.COLUMN,
    "row": Varies.ROW,
    "element": Varies.ELEMENT,
}
_PLANE = Varies.COLUMN | Varies.ROW
_OF_PLANE = _PLANE | Varies.ELEMENT


def rate_of(varies: Varies) -> Rate:
    """The rate at which something that varies over `varies` has to be computed."""
    if varies & Varies.ELEMENT or varies & _PLANE == _PLANE:
        return Rate.ELEMENT
    if varies & Varies.ROW:
        return Rate.ROW
    if varies & Varies.COLUMN:
        return Rate.COLUMN
    return Rate.FRAME if varies else Rate.CONSTANT


_ALL = tuple(Varies(number) for number in range(16))
_RATES = tuple(rate_of(varies) for varies in _ALL)
_OVER_PLANE, _OVER_FRAME = int(_PLANE), int(Varies.FRAME)

# What comes anew with each frame, whatever it is made of.
_FRAME_OPS = frozenset({"uniform", "picture", "strand"})


def planar_slots(updates: Iterable[Update], spec: ContextSpec) -> set[str]:
    """The slots that keep something that varies over the picture, also by way of one another."""
    listed = list(updates)
    swept = {
        node
        for node in topological(update.value for update in listed)
        if node.op == "coord" and isinstance(node.attr, str) and _SWEEPS[spec.sweep_of(node.attr)] & _OF_PLANE
    }
    # A read at another place varies with that place, whatever the slot keeps.
    return slots_over(swept, listed, lambda read: len(read.args) == 1)


def slots_over(
    sources: Iterable[Expr], updates: Iterable[Update], through: Callable[[Expr], bool] = lambda _: True
) -> set[str]:
    """The slots that keep something made of `sources`, also by way of other slots, as far as they are read by
    expressions that let it `through`."""
    listed = list(updates)
    nodes = topological(update.value for update in listed)
    leads_to: dict[Expr | str, list[Expr | str]] = {}
    for arg, node in users(nodes):
        leads_to.setdefault(arg, []).append(node)
    for node in nodes:
        if isinstance(node.attr, SlotPlane) and through(node):
            leads_to.setdefault(node.attr.slot, []).append(node)
    for update in listed:
        leads_to.setdefault(update.value, []).append(update.slot)
    return {found for found in reachable(sources, leads_to) if isinstance(found, str)}


def rates(
    roots: Iterable[Expr], spec: ContextSpec, slots: Mapping[str, StateSlot], points: bool = False
) -> dict[Expr, Rate]:
    """The rate of each expression below the roots, operands first."""
    return {node: _RATES[own] for node, own in _variation(roots, spec, slots, points).items()}


def _variation(
    roots: Iterable[Expr], spec: ContextSpec, slots: Mapping[str, StateSlot], points: bool
) -> dict[Expr, int]:
    """What each expression below the roots varies over in a context, or over a list of `points`, each with coordinates
    of its own. Variables of loops do not count: a body is computed where its loop is. They are plain numbers, since
    flags take five times as long, and this is done for every expression."""
    number_state = int(Varies.FRAME if points else _SWEEPS[spec.ticks])
    varies: dict[Expr, int] = {}
    for node in topological(roots):
        own = 0
        for arg in node.args:
            own |= varies[arg]
        match node.attr:
            case str(name) if node.op == "coord":
                own = int(Varies.ELEMENT if points else _SWEEPS[spec.sweep_of(name)])
            case SlotPlane(slot, _):
                own |= number_state
                if slots[slot].image and len(node.args) == 1:
                    own |= _OVER_PLANE
            case _ if node.op in _FRAME_OPS:
                own |= _OVER_FRAME
        varies[node] = own
    return varies
