"""What a program over tiles, which are squares of pixels, computes once for each column and each row of a tile.

A thread for each column, and one for each row, compute these values before all others; the pixels read them from the
memory that the threads of a tile share. The others wait meanwhile, so a program does this only where it saves more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from weft.codegen.clike.reads import most_steps, steps_of
from weft.codegen.kernel import NEST_STEPS
from weft.codegen.values import Node, Section, operands, with_bodies
from weft.ir.rates import Rate
from weft.ops import OPS

Axis: TypeAlias = Literal["x", "y"]

AXES: tuple[Axis, ...] = ("x", "y")

# In additions: what costs less than this, pixels compute again, and what it costs them to read a value.
_WORTH_READING = 2
_READING = 1

# What samples of pictures and sounds, the results of loops, and values of other subgraphs cost to read.
_READS: Mapping[str, float] = MappingProxyType({"picture": 8, "fetch": 8, "loop_out": 0, "external_read": 4})

_BY_RATE: Mapping[Rate, Axis] = MappingProxyType({Rate.COLUMN: "x", Rate.ROW: "y"})

# The most values that are shared: of tiles that need more than some kilobytes, a card computes fewer at once.
_MOST = 128

# A name, but not that of a field.
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")


class LineValue(NamedTuple):
    """A variable that changes along one axis: its axis and its type, and the name of the statements that compute it,
    which is its own or that of a loop. If it is not `shared`, the pixels that need it compute it again."""

    axis: Axis
    kind: str
    shared: bool
    statements: str


@dataclass(frozen=True)
class LinePlan:
    """The values of a program that change along one axis, and those of them that pixels read."""

    axes: Mapping[Node, Axis] = field(default_factory=dict)
    shared: frozenset[Node] = frozenset()

    @classmethod
    def of(cls, program: Section, least: float) -> LinePlan:
        """The plan of a program over a picture; empty where it saves each pixel less than this, in additions."""
        axes = _axes(program.nodes)
        crossing = {node for node in _crossing(program, axes) if node.kind != "bool"}
        worth = _WORTH_READING
        while len(shared := _shared(axes, crossing, worth)) > _MOST:
            worth *= 2
        saved = sum(map(_cost, _below(shared)))
        return cls(axes, shared) if shared and saved - _READING * len(shared) >= least else cls()


NO_LINES = LinePlan()
"""The plan of a program that shares nothing."""


def _shared(axes: Iterable[Node], crossing: Set[Node], worth: float) -> frozenset[Node]:
    """Those of the values that pixels need which take at least this many additions from others that are shared."""
    again: dict[Node, float] = {}
    shared = set()
    for node in axes:
        again[node] = _cost(node) + sum(again.get(arg, 0) for arg in operands(node))
        if node in crossing and again[node] >= worth:
            shared.add(node)
            again[node] = 0
    return frozenset(shared)


def _axes(nodes: Iterable[Node]) -> dict[Node, Axis]:
    """Those of some nodes, operands first, that are computed from the coordinate of one axis alone."""
    found: dict[Node, Axis] = {}

    def along(node: Node) -> set[str]:
        """The axes along which an operand changes."""
        if node in found:
            return {found[node]}
        match node.op:
            case "const" | "u32" | "scalar" | "loop_value" | "loop_index":
                return set()
            case "line" if node.attr.key in AXES:
                return {node.attr.key}
        return set(AXES)

    for node in nodes:
        if node.op == "external_read":
            axes = {_BY_RATE.get(rate, "") for rate in node.attr.over}
        elif node.op in OPS or node.op in _READS or (node.op == "loop" and _is_pure(node)):
            axes = set[str]().union(*map(along, operands(node)))
        else:
            continue
        match [*axes]:
            case ["x" | "y" as axis]:
                found[node] = axis
    return found


def _is_pure(loop: Node) -> bool:
    """Whether a loop ends by itself, and neither depends on the place of a pixel nor on what is remembered, but by its
    operands."""
    steps = (node.op in OPS or node.op in _READS or node.op == "loop" for node in with_bodies(loop.attr.nodes))
    return most_steps(loop) <= NEST_STEPS and all(steps)


def _crossing(program: Section, axes: Mapping[Node, Axis]) -> set[Node]:
    """Those of these values that others need, or that a truth is made of which others need: truths are not shared."""
    found = {*program.outputs, *(store.value for store in program.stores)} & axes.keys()
    for node in with_bodies(program.nodes):
        if node not in axes:
            found.update(arg for arg in (*node.args, *_carried(node)) if arg in axes)
    for node in reversed([*axes]):
        if node in found and node.kind == "bool":
            found.update(arg for arg in node.args if arg in axes)
    return found


def _carried(node: Node) -> Sequence[Node]:
    return node.attr.following if node.op == "loop" else ()


def _cost(node: Node) -> float:
    if node.op == "loop":
        return steps_of(node) * sum(map(_cost, node.attr.nodes))
    return OPS[node.op].cost if node.op in OPS else _READS.get(node.op, 0)


def _below(nodes: Iterable[Node]) -> set[Node]:
    """Some values, and all that they are computed from."""
    found: set[Node] = set()
    todo = list(nodes)
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo += operands(node)
    return found


class BodyLine(Protocol):
    """A line of a program, and if it is one of the statements that compute what changes along one axis, their name."""

    @property
    def text(self) -> str: ...

    @property
    def part(self) -> str: ...


LineT = TypeVar("LineT", bound=BodyLine)


@dataclass(frozen=True)
class SplitBody(Generic[LineT]):
    """The lines of a program: those that come before all others, for each axis, and those of the pixels; and for each
    axis, the variables that these read from the former."""

    before: Mapping[Axis, Sequence[LineT]]
    pixels: Sequence[LineT]
    shared: Mapping[Axis, Sequence[str]]


def split(body: Sequence[LineT], values: Mapping[str, LineValue], ends: Iterable[str]) -> SplitBody[LineT]:
    """Splits the lines of a program, whose variables along an axis are these, and whose last lines are `ends`."""
    parts: dict[str, list[str]] = {}
    for each in body:
        parts.setdefault(each.part, []).append(each.text)

    def read_by(texts: Iterable[str], also_for_shared: bool) -> set[str]:
        """The variables along an axis that some texts read, and those that these are computed from."""
        found: set[str] = set()
        todo = list(texts)
        while todo:
            for name in _words(todo.pop()) - found:
                if name in values:
                    found.add(name)
                    todo += parts[values[name].statements] if also_for_shared or not values[name].shared else ()
        return found

    at_pixels = read_by([*parts.get("", ()), *ends], also_for_shared=False)
    own = {"", *(values[name].statements for name in at_pixels if not values[name].shared)}
    before, shared = dict[Axis, list[LineT]](), dict[Axis, list[str]]()
    for axis in AXES:
        shared[axis] = [
            name for name, value in values.items() if value.shared and value.axis == axis and name in at_pixels
        ]
        texts = (text for name in shared[axis] for text in parts[values[name].statements])
        first = {values[name].statements for name in {*shared[axis], *read_by(texts, also_for_shared=True)}}
        before[axis] = [each for each in body if each.part in first]
    return SplitBody(before, [each for each in body if each.part in own], shared)


def _words(text: str) -> set[str]:
    """The names in a line that is no comment."""
    return set() if text.startswith("//") else {*_WORD.findall(text)}
