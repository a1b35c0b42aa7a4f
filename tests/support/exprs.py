"""IR made by hand, from formulas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.ir.expr import (
    Expr, ExprBuilder, LoopShape, LoopValue, Lowered, Output, PicturePlane, Pool, SlotPlane, StateSlot, StrandRef,
    Update
)
from weft.ops.formula import Term


class Exprs:
    """The expressions of one pool. Methods take expressions, terms or numbers, and give terms, which have Python's
    operators; nothing is simplified."""

    def __init__(self) -> None:
        self.pool = Pool()
        self._builder = ExprBuilder(self.pool)

    def __call__(self, name: str, *operands: Any) -> Term:
        """A row, applied."""
        return self._term(self._builder.op(name, *(self.expr(operand) for operand in operands)))

    def number(self, value: float) -> Term:
        return self._term(self.pool.const(value))

    def coord(self, name: str) -> Term:
        return self._term(self.pool.make("coord", (), name))

    def uniform(self, name: str) -> Term:
        return self._term(self.pool.make("uniform", (), name))

    def state(self, slot: str, *places: Any, plane: int = 0) -> Term:
        return self.node("state", places, SlotPlane(slot, plane))

    def picture(self, path: str, x: Any, y: Any, plane: int = 0) -> Term:
        return self.node("picture", (x, y), PicturePlane(path, plane))

    def strand(self, name: str, *places: Any) -> Term:
        return self.node("strand", places, StrandRef(*name.split("@")))

    def index(self, level: int) -> Term:
        return self.node("loop_index", (), level)

    def carried(self, level: int, k: int = 0) -> Term:
        return self.node("loop_value", (), LoopValue(level, k))

    def loop(self, level: int, bounds: Sequence[Any], starts: Sequence[Any], following: Sequence[Any]) -> list[Term]:
        """The results of a loop."""
        made = self.node("loop", (*bounds, *starts, *following), LoopShape(level, len(starts)))
        return [self.node("loop_out", (made,), k) for k in range(len(starts))]

    def node(self, op: str, args: Sequence[Any], attr: Any) -> Term:
        return self._term(self.pool.make(op, tuple(self.expr(arg) for arg in args), attr))

    def expr(self, value: Any) -> Expr:
        if isinstance(value, Term):
            value = value.value
        return value if isinstance(value, Expr) else self.pool.const(float(value))

    def _term(self, value: Expr) -> Term:
        return Term(self._builder, value)


def number_slot(key: str, depth: int = 1, planes: int = 1) -> StateSlot:
    return StateSlot(key, "prev", depth, planes, image=False)


def image_slot(key: str, depth: int = 1, planes: int = 1) -> StateSlot:
    return StateSlot(key, "prev", depth, planes, image=True)


def lowered(
    *outputs: Any,
    context: str = "visual",
    slots: Sequence[StateSlot] = (),
    updates: Mapping[str, Any] | None = None,
    exposed: Mapping[str, Any] | None = None,
) -> Lowered:
    """IR with outputs `0`, `1`, …; `updates` maps a slot of one plane, or `slot[plane]`, to a term; `exposed` maps
    `instance@output` to one."""
    return Lowered(
        "test",
        context,
        tuple(Output(str(at), _expr(term)) for at, term in enumerate(outputs)),
        tuple((StrandRef(*name.split("@")), _expr(term)) for name, term in (exposed or {}).items()),
        tuple(sorted(slots, key=lambda slot: slot.key)),
        tuple(_update(place, _expr(term)) for place, term in (updates or {}).items()),
    )


def _expr(term: Any) -> Expr:
    value = term.value if isinstance(term, Term) else term
    assert isinstance(value, Expr)
    return value


def _update(place: str, value: Expr) -> Update:
    slot, _, plane = place.partition("[")
    return Update(slot, int(plane.rstrip("]") or 0), value)
