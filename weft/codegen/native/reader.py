"""Reads the code of a section into a graph, by running the stack on nodes instead of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import copysign
from types import MappingProxyType
from typing import Any

from weft.codegen.base import Kernel, StrandCall
from weft.codegen.liveness import LoopSpan, loop_spans
from weft.codegen.native.layout import Line, Scalar
from weft.codegen.native.nodes import Body, Graph, Node, Store, mark_varying
from weft.codegen.native.unused import without_unused
from weft.codegen.opcodes import row_of
from weft.ir.expr import LoopShape, LoopValue, PicturePlane, SlotPlane
from weft.ir.rates import Rate
from weft.ops.spec import ValueType

# What is given once for a launch.
_ONCE = (Rate.CONSTANT, Rate.FRAME)

NOTHING: Mapping[int, Node] = MappingProxyType({})
"""No locals."""


def read(kernel: Kernel, rate: Rate, known: Mapping[int, Node] = NOTHING) -> Graph:
    """The section of a rate as a graph. `known` are locals of rarer sections that are computed beside it."""
    reader = _Reader(kernel, rate)
    reader.stored.update(known)
    reader.run()
    roots = [*reader.stack, *(store.value for store in reader.stores)]
    if rate != Rate.ELEMENT:
        roots += reader.stored.values()
    nodes = without_unused(reader.nodes, roots, known.values())
    graph = Graph(nodes, tuple(reader.stack), reader.stored, tuple(reader.stores))
    mark_varying(graph.nodes)
    return graph


@dataclass(slots=True)
class _Open:
    """A loop whose body is being read."""

    node: Node
    body: Body
    outside: list[Node]
    """The list of nodes to go on with behind the loop."""


class _Reader:
    def __init__(self, kernel: Kernel, rate: Rate) -> None:
        self.nodes: list[Node] = []
        self.stack: list[Node] = []
        self.stored: dict[int, Node] = {}
        self.stores: list[Store] = []
        self._kernel = kernel
        self._rate = rate
        self._code = kernel.section(rate).code
        self._spans: Mapping[int, LoopSpan] = loop_spans(self._code)
        self._coords = dict(kernel.coords)
        self._leaves: dict[object, Node] = {}
        self._loops: list[_Open] = []
        self._at = 0

    def run(self) -> None:
        for at, (op, operand) in enumerate(self._code):
            self._at = at
            reader = _READERS.get(op)
            if reader is not None:
                reader(self, operand)
            elif op != "RETURN":
                self._row(op, operand)

    def _row(self, op: str, operand: Any) -> None:
        row = row_of(op, operand)
        if row is None:
            raise TypeError(f"no reader for {op}")
        kinds = [row.type_of_operand(at) for at in range(len(row.params))]
        args = self._pop(*kinds)
        self._push(Node(row.name, args, row.gives))

    # The stack.

    def _push(self, node: Node) -> None:
        self.nodes.append(node)
        self.stack.append(node)

    def _pop(self, *kinds: ValueType) -> tuple[Node, ...]:
        start = len(self.stack) - len(kinds)
        values = self.stack[start:]
        del self.stack[start:]
        return tuple(self._as(value, kind) for value, kind in zip(values, kinds, strict=True))

    def _as(self, value: Node, kind: ValueType) -> Node:
        """The value as another type."""
        if value.kind == kind:
            return value
        args = (value,) if kind == "real" else (value, self._leaf("const", (0.0, 1.0), "real", 0.0))
        made = Node("to_real" if kind == "real" else "ne", args, kind)
        self.nodes.append(made)
        return made

    def _leaf(self, op: str, key: object, kind: ValueType, attr: Any, varies: bool = False) -> Node:
        """Something that is given; each is there once."""
        found = self._leaves.get((op, key))
        if found is None:
            found = self._leaves[op, key] = Node(op, (), kind, attr, varies)
        return found

    # Instructions.

    def _number(self, value: float) -> None:
        # 0 is not −0
        self.stack.append(self._leaf("const", (value, copysign(1.0, value)), "real", value))

    def _bits(self, value: int) -> None:
        self.stack.append(self._leaf("bits", value, "bits", value))

    def _load_uniform(self, name: str) -> None:
        self._given(Scalar("uniform", name, "real"))

    def _load_coord(self, name: str) -> None:
        rate = self._coords[name]
        self._given(Scalar("coord", name, "real") if rate in _ONCE else Line("coord", name, rate, "real"))

    def _load_local(self, number: int) -> None:
        if number in self.stored:
            self.stack.append(self.stored[number])
            return
        local = self._kernel.locals[number]
        if local.rate in _ONCE:
            self._given(Scalar("local", number, local.type))
        else:
            self._given(Line("local", number, local.rate, local.type))

    def _given(self, source: Scalar | Line) -> None:
        # Neighbours in a vector are neighbours in the section's own direction: in a picture, along the row.
        along = self._rate if self._rate != Rate.ELEMENT else Rate.COLUMN
        varies = isinstance(source, Line) and source.rate in (along, Rate.ELEMENT)
        op = "line" if isinstance(source, Line) else "scalar"
        self.stack.append(self._leaf(op, source, source.kind, source, varies))

    def _store_local(self, number: int) -> None:
        (self.stored[number],) = self._pop(self._kernel.locals[number].type)

    def _drop(self, operand: None) -> None:
        self.stack.pop()

    def _load_state(self, place: SlotPlane) -> None:
        # From sample to sample, numbers change as well.
        varies = self._kernel.slot(place.slot).image or self._kernel.tick == "element"
        self._push(Node("state", self._pop("real"), "real", place, varies=varies))

    def _sample_state(self, place: SlotPlane) -> None:
        self._push(Node("sample", self._pop("real", "real", "real"), "real", place))

    def _sample_picture(self, place: PicturePlane) -> None:
        self._push(Node("picture", self._pop("real", "real"), "real", place))

    def _load_strand(self, call: StrandCall) -> None:
        self._push(Node("strand", self._pop(*_reals(call.coordinates)), "real", call.ref))

    def _store_state(self, place: SlotPlane) -> None:
        (value,) = self._pop("real")
        self.stores.append(Store(place, value))

    # Loops.

    def _begin_loop(self, shape: LoopShape) -> None:
        args = self._pop("real", "real", *_reals(shape.carried))
        body = Body(shape, self._spans[self._at].nested, outermost=not self._loops)
        node = Node("loop", args, "real", body)
        self.nodes.append(node)
        self._loops.append(_Open(node, body, self.nodes))
        body.carried = tuple(Node("carried", (), "real", (body, k)) for k in range(shape.carried))
        self.nodes = body.nodes

    def _end_step(self, shape: LoopShape) -> None:
        following = self._pop(*_reals(shape.carried))
        loop = self._loops.pop()
        loop.body.following = following
        self.nodes = loop.outside
        for k in range(shape.carried):
            self._push(Node("result", (loop.node,), "real", k))

    def _body(self, level: int) -> Body:
        return next(loop.body for loop in self._loops if loop.body.shape.level == level)

    def _load_index(self, level: int) -> None:
        body = self._body(level)
        if body.index is None:
            body.index = Node("index", (), "real", body)
        self.stack.append(body.index)

    def _load_carried(self, value: LoopValue) -> None:
        self.stack.append(self._body(value.level).carried[value.k])


def _reals(count: int) -> tuple[ValueType, ...]:
    real: ValueType = "real"
    return (real,) * count


_READERS: Mapping[str, Callable[[_Reader, Any], None]] = {
    "PUSH": _Reader._number,
    "PUSH_BITS": _Reader._bits,
    "LOAD_COORD": _Reader._load_coord,
    "LOAD_UNIFORM": _Reader._load_uniform,
    "LOAD_LOCAL": _Reader._load_local,
    "STORE_LOCAL": _Reader._store_local,
    "DROP": _Reader._drop,
    "LOAD_STATE": _Reader._load_state,
    "SAMPLE_STATE": _Reader._sample_state,
    "STORE_STATE": _Reader._store_state,
    "SAMPLE_PICTURE": _Reader._sample_picture,
    "LOAD_STRAND": _Reader._load_strand,
    "LOOP": _Reader._begin_loop,
    "NEXT": _Reader._end_step,
    "LOAD_INDEX": _Reader._load_index,
    "LOAD_CARRIED": _Reader._load_carried,
}
