"""IR made by hand, from formulas, and random IR for hypothesis, with everything that there is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

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

    def fetch(self, sound: str, number: Any, channel: int = 0) -> Term:
        return self.node("fetch", (number,), PicturePlane(sound, channel))

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


# Operations with one right answer: expressions of them are equal to the bit in every order of evaluation.
EXACT_OPS = ("add", "sub", "mul", "div", "neg", "abs", "floor", "sqrt", "min", "max", "lt", "le", "eq", "and", "or",
             "not", "select", "mod", "fract", "sign", "round", "clamp", "hash")  # fmt: skip

# Operations of libraries, and similar ones; all continuous, so that differences stay small.
SMOOTH_OPS = ("sin", "cos", "add", "sub", "mul", "tanh", "atan2", "mix", "min", "max", "abs")

CONSTANTS = (0.0, -0.0, 0.25, 0.5, 1.0, 2.0, -1.5, 3.0, 10.0)


@dataclass
class Garden:
    """Grows random terms, each from earlier ones."""

    draw: Callable[[Any], Any]
    ops: Sequence[str]
    builder: Exprs = field(default_factory=Exprs)
    levels: int = 0

    def program(self) -> Lowered:
        """Some outputs and state, with everything that they share."""
        e = self.builder
        leaves = [e.coord(name) for name in ("x", "y", "abstime")] + [e.uniform("u"), e.uniform("v")]
        leaves += [e.state("v/n", 1), e.state("v/i", self.draw(st.sampled_from([1, 2])))]
        grown = self.grow(leaves, self.draw(st.integers(3, 14)))
        outputs = [self.draw(st.sampled_from(grown)) for _ in range(self.draw(st.integers(1, 4)))]
        return lowered(
            *outputs,
            slots=[number_slot("v/n"), image_slot("v/i", depth=2)],
            updates={"v/n": e.uniform("u") * 0.5, "v/i": grown[-1]},
        )

    def grow(self, terms: list[Term], steps: int) -> list[Term]:
        terms = list(terms)
        for _ in range(steps):
            terms.append(self.one(terms))
        return terms

    def one(self, terms: list[Term]) -> Term:
        e = self.builder
        kind = self.draw(st.sampled_from(["op"] * 8 + ["constant", "loop", "strand", "picture", "sample"]))
        pick = st.sampled_from(terms[-8:] + terms[:5])
        if kind == "constant":
            return e.number(self.draw(st.sampled_from(CONSTANTS)))
        if kind == "loop" and self.levels < 2:
            return self.loop(terms)
        if kind == "strand":
            return e.strand("a@b", self.draw(pick), self.draw(pick))
        if kind == "picture":
            return e.picture("p", self.draw(pick), self.draw(pick), self.draw(st.integers(0, 3)))
        if kind == "sample":
            return e.state("v/i", 1, self.draw(pick), self.draw(pick))
        name = self.draw(st.sampled_from(self.ops))
        count = {"hash": 3, "mix": 3, "select": 3, "clamp": 3}.get(name) or arity(name)
        return e(name, *(self.draw(pick) for _ in range(count)))

    def loop(self, terms: list[Term]) -> Term:
        """A loop of a few steps over a body of its own, with bounds that may be anything of a few steps."""
        e, level = self.builder, self.levels
        self.levels += 1
        last = e("min", self.draw(st.sampled_from(terms)), 4)
        first = self.draw(st.sampled_from([e.number(1), e("max", self.draw(st.sampled_from(terms)), -2)]))
        count = self.draw(st.integers(1, 2))
        starts = [self.draw(st.sampled_from(terms)) for _ in range(count)]
        inside = [*terms[-4:], e.index(level), *(e.carried(level, k) for k in range(count))]
        grown = self.grow(inside, self.draw(st.integers(1, 4)))
        following = [self.draw(st.sampled_from(grown[-4:])) for _ in range(count)]
        self.levels -= 1
        return self.draw(st.sampled_from(e.loop(level, (first, last), starts, following)))


def arity(name: str) -> int:
    from weft.ops import OPS

    return len(OPS[name].params)


@st.composite
def programs(draw: Callable[[Any], Any], ops: Sequence[str]) -> Lowered:
    """IR for the visual context that reads the uniforms u and v, the strand a@b(x, y) and the picture p."""
    return Garden(draw, ops).program()
