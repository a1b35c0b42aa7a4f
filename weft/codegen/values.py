"""The values of a kernel. A section is an ordered list of values, which every backend reads as it is.

A value is an operation of `weft.ops` (`weft.ir.expr` lists the structural ones) on other values of its section. Each
operand has the type that the operation takes: the builder inserts conversions between floats and bools. Values refer to
their operands, and are compared by identity. `Rows` hold the same section with numbers as references. This form can be
pickled, hashed, compared and written to JSON.
"""

from __future__ import annotations

import hashlib
import pickle
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from math import copysign
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from weft.ir.expr import LoopShape, LoopValue, SlotPlane
from weft.ir.rates import Rate
from weft.ops import OPS
from weft.ops.spec import ValueType

# The rates of values that are the same in a whole launch.
_UNIFORM = (Rate.CONSTANT, Rate.FRAME)

IMPLIED = "implied"
"""The attribute of a conversion that the text does not contain."""


class Scalar(NamedTuple):
    """A value that is the same in a whole launch: a uniform, a coordinate, a local, or a number of the kernel
    (`Kernel.numbers`), by its place among these."""

    source: Literal["uniform", "coord", "local", "number"]
    key: str | int
    kind: ValueType


class Line(NamedTuple):
    """An array of inputs that change by column, by row or at every element: a coordinate, a local, or parts of pixels.
    In memory they take 4 bytes each. A line is as long as the picture is wide or high, but never shorter than a vector.
    In a series, coordinates are floats, one for each sample, with room for a vector after them; only the times are
    computed."""

    source: Literal["coord", "local", "pixels"]
    key: str | int
    rate: Rate
    kind: ValueType


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """One value. Its fields are final, as those of `Expr` are. `kind` is its type; `attr` depends on the operation."""

    op: Final[str]
    args: Final[tuple[Node, ...]]
    kind: Final[ValueType]
    attr: Final[Any] = None

    def __repr__(self) -> str:
        return f"<{self.op} of {len(self.args)}: {self.kind}>"


@dataclass(frozen=True, slots=True, eq=False)
class LoopBody:
    """The body of a loop: the values of each step, in order, and those that it carries to the next step."""

    level: int
    nested: bool
    """Whether it is part of a nest of several loops."""
    outermost: bool
    nodes: tuple[Node, ...]
    following: tuple[Node, ...]
    carried: tuple[Node, ...]
    index: Node | None
    """The variable of the loop, if anything reads it."""


@dataclass(frozen=True, slots=True)
class Store:
    """A new value of a slot, which it has from the next tick on."""

    place: SlotPlane
    value: Node


class Note(NamedTuple):
    """The name of a value in the patch, the name of the text, and its line that computes the value, from 1; 0 for a
    value that no text computes, like `me@px`."""

    name: str
    source: str
    line: int
    text: str


class Rows(NamedTuple):
    """A section as rows. Each row is a value, and its operands are the numbers of other rows. Leaves come before their
    first user. The attribute of a loop is its level and the number of its carried values. After its row come those of
    the carried values, of its index if that is read, of its body, and `next` with the new carried values."""

    ops: tuple[str, ...]
    args: tuple[tuple[int, ...], ...]
    attrs: tuple[Any, ...]
    outputs: tuple[int, ...]
    stores: tuple[tuple[SlotPlane, int], ...]
    locals: tuple[tuple[int, int], ...]

    def digest(self) -> bytes:
        """A hash of all rows."""
        attrs = [attr for attr in self.attrs if attr is not None and not isinstance(attr, float)]
        found = hashlib.sha256(f"{' '.join(self.ops)} {(attrs, self.outputs, self.stores, self.locals)!r}".encode())
        found.update(array("d", [attr for attr in self.attrs if isinstance(attr, float)]).tobytes())  # by their bits
        found.update(array("q", map(len, self.args)).tobytes())
        found.update(array("q", chain(*self.args)).tobytes())
        return found.digest()

    def with_constants(self, values: Mapping[int, float]) -> Rows:
        """The rows with constants in place of numbers of the kernel, by the places of these."""
        ops, attrs = list(self.ops), list(self.attrs)
        for at, attr in enumerate(self.attrs):
            if isinstance(attr, Scalar) and attr.source == "number" and attr.key in values:
                ops[at], attrs[at] = "const", values[int(attr.key)]
        return self._replace(ops=tuple(ops), attrs=tuple(attrs))


class _SectionValues(NamedTuple):
    nodes: tuple[Node, ...]
    outputs: tuple[Node, ...]
    stores: tuple[Store, ...]
    locals: Mapping[int, Node]
    notes: Mapping[Node, Note]


class Section:
    """The values that are computed at one rate, operands first; the outputs, which only the element section of a kernel
    has; the stores; and the locals that other sections read, by their numbers. `notes` are for people. A section never
    changes.

    A section that another process has sent is made of rows, and its values are made when they are first needed. Until
    then the rows are still pickled, because a process that plays a translated kernel needs few of them.
    """

    __slots__ = ("_digest", "_numbered", "_pickled", "_values", "rate")

    def __init__(
        self, rate: Rate, nodes: tuple[Node, ...] = (), outputs: tuple[Node, ...] = (), stores: tuple[Store, ...] = (),
        locals: Mapping[int, Node] = MappingProxyType({}), notes: Mapping[Node, Note] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        self.rate: Final = rate
        self._values: _SectionValues | None = _SectionValues(nodes, outputs, stores, locals, notes)
        self._numbered: tuple[Rows, tuple[tuple[int, Note], ...]] | None = None
        self._pickled = b""
        """The same, pickled, if the section has been sent."""
        self._digest = b""

    @classmethod
    def of_rows(cls, rate: Rate, rows: Rows, notes: Iterable[tuple[int, Note]] = ()) -> Section:
        """The section with these rows, and notes by their numbers."""
        section = cls(rate)
        section._values, section._numbered = None, (rows, tuple(notes))
        return section

    @classmethod
    def of_pickled(cls, rate: Rate, pickled: bytes, digest: bytes) -> Section:
        """The section that another process has sent."""
        section = cls(rate)
        section._values, section._pickled, section._digest = None, pickled, digest
        return section

    @property
    def _read(self) -> _SectionValues:
        if self._values is None:
            self._values = _read_rows(*self.numbered)
        return self._values

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self._read.nodes

    @property
    def outputs(self) -> tuple[Node, ...]:
        return self._read.outputs

    @property
    def stores(self) -> tuple[Store, ...]:
        return self._read.stores

    @property
    def locals(self) -> Mapping[int, Node]:
        return self._read.locals

    @property
    def notes(self) -> Mapping[Node, Note]:
        return self._read.notes

    @property
    def numbered(self) -> tuple[Rows, tuple[tuple[int, Note], ...]]:
        """The section as rows, and its notes by the numbers of the rows."""
        if self._numbered is None and self._pickled:
            self._numbered = pickle.loads(self._pickled)
        if self._numbered is None:
            self._numbered = _RowWriter().section(self._read)
        return self._numbered

    @property
    def digest(self) -> bytes:
        """A hash of what it computes. Notes do not count."""
        if not self._digest:
            self._digest = self.numbered[0].digest()
        return self._digest

    def with_constants(self, values: Mapping[int, float]) -> Section:
        """The section with constants in place of numbers of the kernel, by the places of these."""
        rows, notes = self.numbered
        return Section.of_rows(self.rate, rows.with_constants(values), notes)

    @property
    def roots(self) -> tuple[Node, ...]:
        """The values that the section has to compute: outputs, stores and locals."""
        return (*self.outputs, *(store.value for store in self.stores), *self.locals.values())

    def walk(self) -> Iterator[Node]:
        """All values, those of bodies included."""
        return with_bodies(self.nodes)

    def ops(self) -> Iterator[str]:
        """The operations of all values, without making those of a section that is made of rows."""
        if self._values is None:
            return (op for op in self.numbered[0].ops if op not in _NOT_COMPUTED)
        return (node.op for node in self.walk())

    def leaves(self) -> dict[Node, None]:
        """The leaves that its values are made of, each once."""
        found = {arg: None for node in self.walk() for arg in operands_within(node) if arg.op in LEAVES}
        return found | {root: None for root in self.roots if root.op in LEAVES}

    def given(self) -> list[Scalar | Line]:
        """Its inputs, each once."""
        return [leaf.attr for leaf in self.leaves() if leaf.op in ("scalar", "line")]

    def __len__(self) -> int:
        """The number of values that it computes."""
        return sum(1 for _ in self.ops())

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        if self._values is None:
            rows, _ = self.numbered
            return bool(rows.ops or rows.outputs or rows.stores or rows.locals)
        return bool(self.nodes or self.outputs or self.stores or self.locals)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Section):
            return NotImplemented
        return (self.rate, self.numbered) == (other.rate, other.numbered)

    def __hash__(self) -> int:
        return hash((self.rate, len(self)))

    def __repr__(self) -> str:
        return f"<{self.rate.title} section of {len(self)}>"

    def __reduce__(self) -> tuple[Callable[..., Section], tuple[Rate, bytes, bytes]]:
        self._pickled = self._pickled or pickle.dumps(self.numbered, pickle.HIGHEST_PROTOCOL)
        return Section.of_pickled, (self.rate, self._pickled, self.digest)


def with_bodies(nodes: Iterable[Node]) -> Iterator[Node]:
    """These values and those of their loops."""
    for node in nodes:
        yield node
        if node.op == "loop":
            yield from with_bodies(node.attr.nodes)


def operands_within(node: Node) -> tuple[Node, ...]:
    """The operands of a value; for a loop, also its new carried values."""
    return (*node.args, *node.attr.following) if node.op == "loop" else node.args


def operands(node: Node) -> Sequence[Node]:
    """The values that a value depends on: its operands, and for a loop also those from outside that its body uses."""
    if node.op != "loop":
        return node.args
    inside = set(with_bodies(node.attr.nodes))
    return [*node.args, *(each for each in _used_by(node.attr) if each not in inside)]


def _used_by(body: LoopBody) -> Iterator[Node]:
    for node in body.nodes:
        yield from node.args
        if node.op == "loop":
            yield from _used_by(node.attr)
    yield from body.following


def needed(roots: Iterable[Node], among: Set[Node] | None = None) -> set[Node]:
    """The roots and all values that they depend on, among some values if these are given."""
    found: set[Node] = set()
    todo = list(roots)
    while todo:
        node = todo.pop()
        if node not in found and (among is None or node in among):
            found.add(node)
            todo += operands(node)
    return found


# Types.

SIGNATURES: Mapping[str, tuple[tuple[ValueType, ...], ValueType]] = {
    row.name: (tuple(row.type_of_operand(at) for at in range(len(row.params))), row.gives)
    for row in OPS.values()
    if row.expand is None
}


def kind_of(op: str, attr: Any) -> ValueType:
    """The type of an operation's result."""
    if op in SIGNATURES:
        return SIGNATURES[op][1]
    if op in ("scalar", "line"):
        return attr.kind  # type: ignore[no-any-return]
    return "u32" if op == "u32" else "float"


# Building.

_KIND = attrgetter("kind")


@dataclass(slots=True)
class _OpenLoop:
    """A loop whose body is being built."""

    level: int
    args: tuple[Node, ...]
    outside: list[Node]
    """The list of values around the loop."""
    carried: tuple[Node, ...]
    index: Node | None = None
    has_inner: bool = False


class SectionBuilder:
    """Appends values to a section, and converts their operands."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._leaves: dict[object, Node] = {}
        self._loops: list[_OpenLoop] = []

    def leaf(self, op: str, attr: Any) -> Node:
        """A leaf; equal ones are the same node."""
        key = (op, *_bits(attr)) if op == "const" else (op, attr)
        found = self._leaves.get(key)
        if found is None:
            found = self._leaves[key] = Node(op, (), kind_of(op, attr), attr)
        return found

    def given(self, source: Literal["coord", "local"], key: str | int, rate: Rate, kind: ValueType = "float") -> Node:
        """A coordinate, or a local of a rarer section."""
        if rate in _UNIFORM:
            return self.leaf("scalar", Scalar(source, key, kind))
        return self.leaf("line", Line(source, key, rate, kind))

    def converted(self, node: Node, kind: ValueType) -> Node:
        """The value, converted to a type."""
        if node.kind == kind:
            return node
        if kind == "float":
            made = Node("to_float", (node,), kind, IMPLIED)
        else:
            made = Node("ne", (node, self.leaf("const", 0.0)), kind, IMPLIED)
        self.nodes.append(made)
        return made

    def floats(self, nodes: Iterable[Node]) -> tuple[Node, ...]:
        return tuple([node if node.kind == "float" else self.converted(node, "float") for node in nodes])

    def add(self, op: str, args: Sequence[Node], attr: Any = None) -> Node:
        """Appends an operation, and the conversions that its operands need."""
        signature = SIGNATURES.get(op)
        if signature is None:
            made = Node(op, self.floats(args), "float", attr)
        else:
            wanted, gives = signature
            if tuple(map(_KIND, args)) != wanted:
                args = [self.converted(node, kind) for node, kind in zip(args, wanted, strict=True)]
            made = Node(op, tuple(args), gives, attr)
        self.nodes.append(made)
        return made

    # Loops.

    def begin_loop(self, level: int, args: Sequence[Node]) -> None:
        """Begins a loop: `args` are its bounds, then its carried values before the first step."""
        operands = self.floats(args)
        for loop in self._loops:
            loop.has_inner = True
        carried = tuple([Node("loop_value", (), "float", LoopValue(level, k)) for k in range(len(operands) - 2)])
        self._loops.append(_OpenLoop(level, operands, self.nodes, carried))
        self.nodes = []

    def index(self, level: int) -> Node:
        """The variable of the loop of this level around this place."""
        loop = self._around(level)
        if loop.index is None:
            loop.index = Node("loop_index", (), "float", level)
        return loop.index

    def carried(self, level: int, k: int) -> Node:
        """A carried value of the loop of this level around this place."""
        return self._around(level).carried[k]

    def end_loop(self, following: Sequence[Node]) -> Node:
        """Ends the innermost loop, with its new carried values."""
        operands = self.floats(following)
        loop = self._loops.pop()
        outermost = not self._loops
        nested = not outermost or loop.has_inner
        body = LoopBody(loop.level, nested, outermost, tuple(self.nodes), operands, loop.carried, loop.index)
        self.nodes = loop.outside
        made = Node("loop", loop.args, "float", body)
        self.nodes.append(made)
        return made

    def result(self, loop: Node, k: int) -> Node:
        made = Node("loop_out", (loop,), "float", k)
        self.nodes.append(made)
        return made

    def _around(self, level: int) -> _OpenLoop:
        return next(loop for loop in reversed(self._loops) if loop.level == level)


# Rows.


class _RowWriter:
    def __init__(self) -> None:
        self.numbers: dict[Node, int] = {}
        self.ops: list[str] = []
        self.args: list[tuple[int, ...]] = []
        self.attrs: list[Any] = []

    def section(self, section: _SectionValues) -> tuple[Rows, tuple[tuple[int, Note], ...]]:
        """The rows of a section, and its notes."""
        self.write(section.nodes)
        outputs = self.numbers_of(section.outputs)
        stores = tuple([(store.place, self.numbers_of((store.value,))[0]) for store in section.stores])
        locals_ = tuple([(local, self.numbers_of((node,))[0]) for local, node in section.locals.items()])
        notes = tuple([(self.numbers[node], note) for node, note in section.notes.items()])
        return Rows(tuple(self.ops), tuple(self.args), tuple(self.attrs), outputs, stores, locals_), notes

    def write(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            args = self.numbers_of(node.args)
            if node.op != "loop":
                self._row(node, args, node.attr)
                continue
            body: LoopBody = node.attr
            self._row(node, args, LoopShape(body.level, len(body.carried)))
            for given in (*body.carried, *([body.index] if body.index is not None else ())):
                self._row(given, (), given.attr)
            self.write(body.nodes)
            following = self.numbers_of(body.following)
            self.ops.append("next")
            self.args.append(following)
            self.attrs.append(None)

    def numbers_of(self, nodes: Iterable[Node]) -> tuple[int, ...]:
        """The numbers of values; new leaves get rows."""
        numbers = self.numbers
        return tuple([numbers[node] if node in numbers else self._row(node, (), node.attr) for node in nodes])

    def _row(self, node: Node, args: tuple[int, ...], attr: Any) -> int:
        number = self.numbers[node] = len(self.ops)
        self.ops.append(node.op)
        self.args.append(args)
        self.attrs.append(attr)
        return number


def _read_rows(rows: Rows, notes: Iterable[tuple[int, Note]]) -> _SectionValues:
    """The values that `_RowWriter` wrote."""
    builder = SectionBuilder()
    made: list[Any] = []
    open_loops: list[int] = []
    for op, args, attr in zip(rows.ops, rows.args, rows.attrs, strict=True):
        if op == "loop":
            builder.begin_loop(attr.level, [made[arg] for arg in args])
            open_loops.append(len(made))
            made.append(None)
        elif op == "next":
            made[open_loops.pop()] = builder.end_loop([made[arg] for arg in args])
            made.append(None)
        elif op == "loop_value":
            made.append(builder.carried(*attr))
        elif op == "loop_index":
            made.append(builder.index(attr))
        elif op in LEAVES:
            made.append(Node(op, (), kind_of(op, attr), attr))
        else:
            node = Node(op, tuple([made[arg] for arg in args]), kind_of(op, attr), attr)
            builder.nodes.append(node)
            made.append(node)
    return _SectionValues(
        tuple(builder.nodes),
        tuple([made[number] for number in rows.outputs]),
        tuple([Store(place, made[number]) for place, number in rows.stores]),
        {local: made[number] for local, number in rows.locals},
        {made[number]: note for number, note in notes},
    )


def _bits(value: float) -> tuple[float, float]:
    """Equal for two constants that are the same. 0 and −0 are not."""
    return value, copysign(1.0, value)


LEAVES = frozenset({"const", "u32", "scalar", "line"})
"""The operations of inputs and constants. They are not listed among the values of a section."""

_NOT_COMPUTED = LEAVES | {"loop_value", "loop_index", "next"}
"""The operations of rows that are no values of a section."""


# Rewriting.


class Rewriter:
    """Copies values, with some of them replaced. Only values that depend on replaced ones are copied. Operands have to
    be passed before their users."""

    def __init__(self, replaced: Mapping[Node, Node] | None = None) -> None:
        self.new: dict[Node, Node] = dict(replaced or {})
        """The replacements and copies, by the values that they replace."""

    def of(self, node: Node) -> Node:
        """The replacement or copy of a value or leaf, or the value itself."""
        return self.new.get(node, node)

    def all_of(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        new = self.new
        if any(map(new.__contains__, nodes)):
            return tuple([new.get(node, node) for node in nodes])
        return nodes

    def copied(self, nodes: Iterable[Node]) -> list[Node]:
        """The values, in the same order."""
        return [self.new[node] if node in self.new else self._copied(node) for node in nodes]

    def _copied(self, node: Node) -> Node:
        attr, args = node.attr, self.all_of(node.args)
        if node.op == "loop":
            attr = self.body(attr)
        if attr is node.attr and args is node.args:
            return node
        made = self.new[node] = Node(node.op, args, node.kind, attr)
        return made

    def body(self, body: LoopBody) -> LoopBody:
        nodes = tuple(self.copied(body.nodes))
        following = self.all_of(body.following)
        if following is body.following and all(new is old for new, old in zip(nodes, body.nodes, strict=True)):
            return body
        return LoopBody(body.level, body.nested, body.outermost, nodes, following, body.carried, body.index)

    def section(self, section: Section) -> Section:
        return Section(
            section.rate,
            tuple(self.copied(section.nodes)),
            self.all_of(section.outputs),
            tuple([Store(store.place, self.of(store.value)) for store in section.stores]),
            {number: self.of(node) for number, node in section.locals.items()},
            {self.of(node): note for node, note in section.notes.items()},
        )


def joined(rate: Rate, sections: Iterable[Section]) -> Section:
    """Several sections as one, operands first: where a later section read a local, it uses the value itself."""
    nodes: list[Node] = []
    outputs: list[Node] = []
    stores: list[Store] = []
    known: dict[int, Node] = {}
    notes: dict[Node, Note] = {}
    for section in sections:
        if known:
            given = [leaf for leaf in section.leaves() if leaf.op in ("scalar", "line") and leaf.attr.source == "local"]
            replaced = {leaf: known[leaf.attr.key] for leaf in given if leaf.attr.key in known}
            section = Rewriter(replaced).section(section) if replaced else section  # noqa: PLW2901 - the same one
        nodes += section.nodes
        outputs += section.outputs
        stores += section.stores
        known.update(section.locals)
        for node, note in section.notes.items():
            notes.setdefault(node, note)
    return Section(rate, tuple(nodes), tuple(outputs), tuple(stores), known, notes)

