"""Random expressions for hypothesis, with everything that the IR has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from tests.support.exprs import Exprs, image_slot, lowered, number_slot
from weft.ir.expr import Lowered
from weft.ops.formula import Term

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
