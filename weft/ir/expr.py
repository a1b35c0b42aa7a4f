"""Interned expressions: the one node type of the intermediate representation.

Within one pool, equal structure is the same object, so common subexpressions cost nothing to find and equality is
identity. An expression is an operation of `weft.ops`, or one of the structural operations below.

| op           | args                                | attr             | is                                           |
| ------------ | ----------------------------------- | ---------------- | -------------------------------------------- |
| `const`      |                                     | float            | a number                                     |
| `bits`       |                                     | int              | an unsigned 32-bit number                    |
| `coord`      |                                     | name             | a base coordinate: x y abstime channel since |
|              |                                     |                  | or what is led from value to value: mouse@x  |
| `uniform`    |                                     | name             | a number that is the same in a whole tick    |
| `state`      | (k,) or (k, x, y)                   | (slot, plane)    | a slot k ticks ago (from 1), here or sampled |
| `picture`    | (x, y)                              | (picture, plane) | a picture sampled at a place                 |
| `strand`     | the coordinates it is read at       | StrandRef        | a strand of another subgraph                 |
| `loop`       | (first, last, n inits…, n nexts…)   | (level, n)       | a loop; only `loop_out` may use it           |
| `loop_out`   | (loop,)                             | k                | the k-th carried value behind the loop       |
| `loop_index` |                                     | level            | the variable of the loop around it           |
| `loop_value` |                                     | (level, k)       | the k-th carried value in this step          |

A loop's level is larger than that of every loop whose variables its parts mention, so a body can be read without
knowing where it stands, and two equal loops are one.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from weft.errors import Span
from weft.graph.budget import Budget
from weft.names import StrandRef as StrandRef  # noqa: PLC0414 - the attribute of `strand`, for those who import Expr


class SlotPlane(NamedTuple):
    """One of the values that a state slot keeps."""

    slot: str
    plane: int


class PicturePlane(NamedTuple):
    """One channel of a picture; `picture` is the path it was read from."""

    picture: str
    plane: int


class LoopShape(NamedTuple):
    """The level of a loop and how many values it carries from step to step."""

    level: int
    carried: int


class LoopValue(NamedTuple):
    level: int
    k: int


Attribute: TypeAlias = float | int | str | StrandRef | SlotPlane | PicturePlane | LoopShape | LoopValue | None


@dataclass(frozen=True, slots=True, eq=False)
class Expr:
    """One interned expression. `index` grows in the order of creation, so args always have smaller ones. `free` has
    bit n set if a variable of the loop of level n occurs in it unbound."""

    op: str
    args: tuple[Expr, ...]
    attr: Attribute
    index: int
    free: int

    def __repr__(self) -> str:
        shown = [f"%{a.index}" for a in self.args]
        return f"%{self.index} = {self.op}({', '.join([repr(self.attr)] * (self.attr is not None) + shown)})"


# What an expression costs from lowering to code, in steps of elaboration.
STEPS = 12


class Pool:
    """The interned expressions of one compile."""

    def __init__(self, budget: Budget | None = None) -> None:
        self.budget = budget or Budget()
        self._nodes: dict[tuple[object, ...], Expr] = {}
        self._spans: dict[Expr, Span] = {}
        self._names: dict[Expr, str] = {}
        self._strands: set[Expr] = set()
        self._steps = STEPS

    def __len__(self) -> int:
        return len(self._nodes)

    def make(self, op: str, args: tuple[Expr, ...] = (), attr: Attribute = None, span: Span | None = None) -> Expr:
        """The expression of this structure. The first span it is made with is kept beside it.

        Raises WeftError when the budget is spent.
        """
        key = (op, args, _bits(attr) if op == "const" else attr)
        node = self._nodes.get(key)
        if node is None:
            self.budget.spend(self._steps, span)
            node = Expr(op, args, attr, len(self._nodes), _free(op, args, attr))
            self._nodes[key] = node
            if span is not None:
                self._spans[node] = span
        return node

    def lift_limit(self) -> None:
        """Lets the pool grow at nobody's cost: passes make no more than a few times of what is there, which has been
        paid for."""
        self._steps = 0

    def const(self, value: float, span: Span | None = None) -> Expr:
        return self.make("const", (), float(value), span)

    def span(self, node: Expr) -> Span | None:
        """Where in the text this expression was first asked for."""
        return self._spans.get(node)

    def call(self, node: Expr, name: str, local: bool) -> None:
        """Notes what the patch calls an expression. Of several names the first one of a strand counts, else the last
        one of a `local`, which is the outermost."""
        if node not in self._strands:
            self._names[node] = name
            if not local:
                self._strands.add(node)

    def name(self, node: Expr) -> str | None:
        """What the patch calls an expression, if it does."""
        return self._names.get(node)

    def named(self) -> Iterator[Expr]:
        """Every expression that the patch has a name for."""
        return iter(self._names)

    def hand_on(self, new: Mapping[Expr, Expr]) -> None:
        """Gives the names of expressions to what has replaced them, if that has none of its own."""
        for node, name in list(self._names.items()):
            made = new.get(node, node)
            if made not in self._names:
                self._names[made] = name
                if node in self._strands:
                    self._strands.add(made)


def _bits(value: Attribute) -> bytes:
    """Constants are told apart by their bits: 0.0 and -0.0 are equal but not the same, NaN is the same as itself."""
    if not isinstance(value, float):
        raise TypeError(f"a constant is a float, not {value!r}")
    return struct.pack("<d", value)


# What binds the variables of a loop, or is one.
_LOOPS = ("loop", "loop_index", "loop_value")


def _free(op: str, args: tuple[Expr, ...], attr: Attribute) -> int:
    free = 0
    if op not in _LOOPS:
        for arg in args:
            free |= arg.free
        return free
    match attr:
        case LoopShape(level, carried):
            for arg in args[: 2 + carried]:
                free |= arg.free
            for arg in args[2 + carried :]:
                free |= arg.free & ~(1 << level)
            return free
        case LoopValue(level, _):
            return 1 << level
        case int(level):
            return 1 << level
        case _:
            raise TypeError(f"{op} has no attribute {attr!r}")


def topological(roots: Iterable[Expr], known: Container[Expr] = ()) -> list[Expr]:
    """Every expression that the roots need, each once, operands first; nothing below those that are known."""
    seen: set[Expr] = set()
    new = set(roots)
    while new:
        seen |= new
        new = {arg for node in new for arg in node.args if arg not in known} - seen
    return sorted(seen, key=attrgetter("index"))


def users(nodes: Iterable[Expr]) -> Iterator[tuple[Expr, Expr]]:
    """Every pair of an expression and one that has it as an operand."""
    for node in nodes:
        for arg in node.args:
            yield arg, node
