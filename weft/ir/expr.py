"""Interned expressions: the node type of the intermediate representation, and the IR of a subgraph made of them.

Within one pool, equal structure is the same object, so common subexpressions cost nothing to find and equality is
identity. An expression is an operation of `weft.ops`, or one of the structural operations below.

| op           | args                                | attr             | is                                           |
| ------------ | ----------------------------------- | ---------------- | -------------------------------------------- |
| `const`      |                                     | float or Tunable | a number                                     |
| `u32`        |                                     | int              | an unsigned 32-bit number                    |
| `number`     |                                     | Number           | while lowering: an open number of the text   |
| `coord`      |                                     | name             | a base coordinate: x y abstime channel since |
|              |                                     |                  | or a smoothed control: mouse@x               |
| `uniform`    |                                     | name             | a number that is the same in a whole tick    |
| `state`      | (k,) or (k, x, y)                   | (slot, plane)    | a slot k ticks ago (from 1), here or sampled |
| `picture`    | (x, y)                              | (picture, plane) | a picture sampled at a place                 |
| `fetch`      | (number,)                           | (sound, channel) | a sample of a sound by its number, rounded   |
|              |                                     |                  | down; 0 where there is none, and for NaN     |
| `strand`     | the coordinates it is read at       | StrandRef        | a strand of another subgraph                 |
| `loop`       | (first, last, n inits…, n nexts…)   | (level, n)       | a loop; only `loop_out` may use it           |
| `loop_out`   | (loop,)                             | k                | the k-th carried value after the loop        |
| `loop_index` |                                     | level            | the variable of the loop around it           |
| `loop_value` |                                     | (level, k)       | the k-th carried value in this step          |

The values of a kernel (`weft.codegen.values`) are the same operations, except for what is settled by then:

| op              | args                    | attr          | is                                                  |
| --------------- | ----------------------- | ------------- | --------------------------------------------------- |
| `scalar`        |                         | Scalar        | a uniform, a coordinate, a local or a number        |
| `line`          |                         | Line          | one that changes by column, row or element          |
| `state`         | (k,)                    | (slot, plane) | a slot k ticks ago, here                            |
| `sample`        | (k, x, y)               | (slot, plane) | an image slot k ticks ago, sampled                  |
| `loop`          | (first, last, n inits…) | LoopBody      | a loop, with its steps in the body                  |
| `wave`          | (slope, offset)         | row's name    | in machine code: the row of `slope · time + offset` |
| `external_read` |                         | ExternalRead  | in shaders: a strand that was prefetched            |

A loop's level is larger than that of every loop whose variables its parts mention. A body therefore means the same
wherever it stands, and two equal loops are one.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias, TypeVar

from weft.codes.rows import InternalError
from weft.errors import Span
from weft.graph.budget import Budget
from weft.ir.tunable import Known, Tunable, TunedValues, ask, bits, equals, value_of
from weft.names import StrandRef as StrandRef  # noqa: PLC0414 - the attribute of `strand`, for those who import Expr
from weft.ops import OPS, formula
from weft.syntax.ast import Number

V = TypeVar("V")


class SlotPlane(NamedTuple):
    """One of the values that a state slot keeps."""

    slot: str
    plane: int


class PicturePlane(NamedTuple):
    """One channel of a picture, or of a sound; `picture` is the name it is read by."""

    picture: str
    plane: int


class LoopShape(NamedTuple):
    """The level of a loop and the number of values that it carries from step to step."""

    level: int
    carried: int


class LoopValue(NamedTuple):
    level: int
    k: int


Attribute: TypeAlias = (
    float | int | str | Number | Tunable | StrandRef | SlotPlane | PicturePlane | LoopShape | LoopValue | None
)


@dataclass(slots=True, eq=False)
class Expr:
    """One interned expression.

    Its fields are final, which the type checker enforces: a frozen class takes four times as long to construct, and a
    compile constructs thousands. `index` grows in the order of creation, so args always have smaller ones. `key` is a
    hash of the structure, the same in every pool and process. It does not depend on the values of constants, so the
    order of operands stays the same while a number is tuned. `free` has bit n set if a variable of the loop of level n
    occurs in it unbound. `span` is the place in the text for which the expression was first made.
    """

    op: Final[str]
    args: Final[tuple[Expr, ...]]
    attr: Final[Attribute]
    index: Final[int]
    key: Final[int]
    free: Final[int]
    span: Final[Span | None] = None

    def __repr__(self) -> str:
        shown = [f"%{a.index}" for a in self.args]
        return f"%{self.index} = {self.op}({', '.join([repr(self.attr)] * (self.attr is not None) + shown)})"


class MalformedError(InternalError):
    """A structure breaks its own rules. This is a mistake in weft, not in the patch."""


# The steps of the budget for an expression, from lowering to code.
STEPS = 12


class Pool:
    """The interned expressions of one compile, or of several. Without `names`, the names of the patch are not noted."""

    def __init__(self, budget: Budget | None = None, names: bool = True) -> None:
        self.budget = budget or Budget()
        self.has_names = names
        self.ops: set[str] = set()
        """The operations of all its expressions."""
        self._nodes: dict[tuple[object, ...], Expr] = {}
        self._names: dict[Expr, str] = {}
        self._strands: set[Expr] = set()
        self._computed: dict[tuple[str, tuple[Expr, ...]], Expr] = {}
        self._steps = STEPS

    def __len__(self) -> int:
        return len(self._nodes)

    def make(self, op: str, args: tuple[Expr, ...] = (), attr: Attribute = None, span: Span | None = None) -> Expr:
        """The expression of this structure. If it is new, it gets this span. Raises WeftError when the budget is
        spent."""
        structure = (op, args, _bits(attr) if op == "const" else attr)
        node = self._nodes.get(structure)
        if node is None:
            if self._steps:
                self.budget.spend(self._steps, span)
            self.ops.add(op)
            free = 0
            for arg in args:
                free |= arg.free
            if attr is None:
                own = hash((_KEY_OF_OP[op], *[arg.key for arg in args])) & _KEY
            elif op in ("const", "number"):
                own = _KEY_OF_CONSTANTS
            else:
                if op in _BINDING:
                    free = _free_of_loop(args, attr)
                own = hash((_KEY_OF_OP[op], _key_of(attr), *[arg.key for arg in args])) & _KEY
                own |= (_KEY + 1) * (op in _NUMBERS)
            node = self._nodes[structure] = Expr(op, args, attr, len(self._nodes), own, free, span)
        return node

    def with_args(self, node: Expr, args: tuple[Expr, ...]) -> Expr:
        """The same operation on other operands."""
        return node if args == node.args else self.make(node.op, args, node.attr, node.span)

    def rebuilt(self, node: Expr, args: tuple[Expr, ...]) -> Expr:
        """The same row on other operands, which are put in their canonical order."""
        return node if args == node.args else self.with_args(node, in_order(node.op, args))

    def reopen(self, budget: Budget) -> None:
        """Begins the next compile."""
        self.budget, self._steps = budget, STEPS

    def lift_limit(self) -> None:
        """Lets the pool grow without using the budget. Passes multiply the number of expressions by a small factor
        only, and the expressions that they start from have used the budget."""
        self._steps = 0

    def const(self, value: float, span: Span | None = None) -> Expr:
        return self.make("const", (), float(value), span)

    def tunable(self, value: float, span: Span | None = None) -> Expr:
        """A new constant that is equal to no other one, and whose value may change."""
        return self.make("const", (), Tunable(value), span)

    def computed(self, name: str, args: tuple[Expr, ...], span: Span | None = None) -> Expr:
        """The result of a row of floats on constants. It is tunable if one of them is."""
        known = tuple([known_of(arg) for arg in args])
        if not any(isinstance(each, Tunable) for each in known):
            return self.const(OPS[name].fold(*known), span)
        if (name, args) not in self._computed:
            self._computed[name, args] = self.make("const", (), Tunable.computed(OPS[name].fold, known), span)
        return self._computed[name, args]

    def annotate(self, node: Expr, name: str, local: bool) -> None:
        """Notes the name of an expression in the patch. An expression with several names has the first name of a
        strand, or else the last name of a `local`, which is the outermost."""
        if self.has_names and node not in self._strands:
            self._names[node] = name
            if not local:
                self._strands.add(node)

    def named(self) -> Iterable[tuple[Expr, str]]:
        """Every expression that has a name in the patch, with its name."""
        return self._names.items()

    def transfer_names(self, new: Mapping[Expr, Expr]) -> None:
        """Gives the names of expressions to their replacements, unless these already have names."""
        for node, name in list(self._names.items()):
            made = new.get(node, node)
            if made not in self._names:
                self._names[made] = name
                if node in self._strands:
                    self._strands.add(made)


def _bits(value: Attribute) -> bytes | Tunable:
    """What distinguishes constants from each other."""
    if isinstance(value, Tunable):
        return value
    if not isinstance(value, float):
        raise TypeError(f"a constant is a float, not {value!r}")
    return bits(value)


def known_of(constant: Expr) -> Known:
    """What is known of a constant."""
    assert isinstance(constant.attr, (float, int, Tunable)), constant
    return constant.attr


# The bits of keys. Those of numbers are larger than all others, so that numbers are the last operands.
_KEY = (1 << 62) - 1
_KEY_OF_CONSTANTS = _KEY + 1


class _Keys(dict[str, int]):
    """Hashes of operations, each made once."""

    def __missing__(self, op: str) -> int:
        return self.setdefault(op, zlib.crc32(op.encode()))


_KEY_OF_OP = _Keys()


@lru_cache(maxsize=4096, typed=True)
def _key_of(word: Attribute | bytes) -> int:
    """A hash of an attribute. Python's own hash of a text differs from process to process."""
    return zlib.crc32(repr(word).encode())


def digest(value: Expr) -> int:
    """A hash of an expression and its constants, none of which is tunable. It is the same in every pool and process,
    and has 62 bits."""
    found: dict[Expr, int] = {}
    for node in topological([value]):
        if isinstance(node.attr, Tunable):
            raise TypeError("a tunable constant has no hash of its value")
        word = _bits(node.attr) if node.op == "const" else node.attr
        found[node] = hash((node.key, _key_of(word), *[found[arg] for arg in node.args])) & _KEY
    return found[value]


# Loops, whose operations bind variables, and these variables.
_BINDING = frozenset({"loop", "loop_index", "loop_value"})


def _free_of_loop(args: tuple[Expr, ...], attr: Attribute) -> int:
    """The unbound variables in a loop, or in a variable of one."""
    match attr:
        case LoopShape(level, carried):
            free = 0
            for arg in args[: 2 + carried]:
                free |= arg.free
            for arg in args[2 + carried :]:
                free |= arg.free & ~(1 << level)
            return free
        case LoopValue(level, _) | int(level):
            return 1 << level
    raise TypeError(f"{attr!r} belongs to no loop")


def topological(roots: Iterable[Expr], known: Container[Expr] = ()) -> list[Expr]:
    """Every expression that the roots need, each once, operands first. What is known is left out, with its operands."""
    seen = set(roots)
    todo = list(seen)
    while todo:
        for arg in todo.pop().args:
            if arg not in seen and arg not in known:
                seen.add(arg)
                todo.append(arg)
    return sorted(seen, key=attrgetter("index"))


def depth_first(roots: Iterable[Expr]) -> list[Expr]:
    """Every expression that the roots need, each once, operands first. Unlike with `topological`, the order depends on
    the structure alone."""
    found: list[Expr] = []
    seen: set[Expr] = set()
    todo: list[Expr | None] = [*list(roots)[::-1]]
    while todo:
        node = todo.pop()
        if node is None:
            ready = todo.pop()
            assert ready is not None
            found.append(ready)
        elif node not in seen:
            seen.add(node)
            if node.args:
                todo += (node, None, *node.args[::-1])
            else:
                found.append(node)
    return found


def depending_on_loop(level: int, roots: Iterable[Expr]) -> list[Expr]:
    """The expressions that `roots` need and that mention variables of the loop of a level, operands first."""
    found: set[Expr] = set()
    todo = list(roots)
    while todo:
        node = todo.pop()
        if node.free >> level & 1 and node not in found:
            found.add(node)
            todo += node.args
    return sorted(found, key=attrgetter("index"))


def found_below(value: Expr, known: dict[Expr, V], find: Callable[[Expr], V]) -> V:
    """The result of `find` for an expression, which needs the results for its operands. Each is found once."""
    if value not in known:
        for node in topological([value], known):
            known[node] = find(node)
    return known[value]


# --- the IR of a subgraph: expressions for its outputs, its exposed strands and its state ---


@dataclass(frozen=True, slots=True)
class StateSlot:
    """Memory that outlives a tick. `key` is `context/instance path/kind/ordinal`; it can be read up to `depth` ticks
    back, and keeps `planes` values for each. An `image` keeps them for every element of a picture; any other slot is
    one number a plane. An image of depth 0 is read in the tick that computes it; its width and height are those of the
    picture, halved as often as `level` says."""

    key: str
    kind: str
    depth: int
    planes: int
    image: bool
    level: int = 0

    @property
    def outlives(self) -> bool:
        """Whether a later tick can read it."""
        return self.depth > 0


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


@dataclass(frozen=True)
class Lowered:
    """The IR of one subgraph.

    `outputs` are evaluated over the whole sweep of the context. `exposed` are strands that other subgraphs read at
    places of their own; they are functions of the coordinates only, which they read as `coord`. `updates` advance
    `slots`, which are sorted by key. `feeds` are the inputs of a context that streams: other contexts evaluate them
    once a frame, and they arrive as coordinates with the names of their labels.
    """

    name: str
    context: str
    outputs: tuple[Output, ...]
    exposed: tuple[tuple[StrandRef, Expr], ...]
    slots: tuple[StateSlot, ...]
    updates: tuple[Update, ...]
    feeds: tuple[Output, ...] = ()
    films: tuple[Output, ...] = ()
    """The times of the films that it shows, by the names of their pictures; evaluated before each tick."""
    borrowed: frozenset[str] = frozenset()
    """The slots that another subgraph advances, as it had them before its last tick."""
    reaches: tuple[tuple[str, float], ...] = ()
    """How large some inputs may be (`Patch.reaches`)."""

    @property
    def swept(self) -> list[Expr]:
        """The expressions that are evaluated at every tick."""
        return [o.value for o in self.outputs] + [u.value for u in self.updates]

    @property
    def roots(self) -> list[Expr]:
        return self.swept + [value for _, value in self.exposed] + [o.value for o in (*self.feeds, *self.films)]

    @property
    def is_all_swept(self) -> bool:
        """Whether all its expressions are evaluated at every tick."""
        return not (self.exposed or self.feeds or self.films)

    @cached_property
    def nodes(self) -> list[Expr]:
        """All its expressions, operands first."""
        return topological(self.roots)

    @property
    def swept_nodes(self) -> list[Expr]:
        """The expressions that are needed at every tick, operands first."""
        return self.nodes if self.is_all_swept else topological(self.swept)

    @cached_property
    def ordered(self) -> list[Expr]:
        """All its expressions, operands first, in an order that follows from their structure."""
        return depth_first(self.roots)


Change: TypeAlias = "Callable[[Expr, tuple[Expr, ...]], Expr]"
"""Gives the replacement of an expression from those of its operands."""


class Replacements(dict[Expr, Expr]):
    """The replacements of expressions; those that have none stay as they are."""

    def __missing__(self, node: Expr) -> Expr:
        return node


@dataclass(eq=False)
class KnownRewrites:
    """The results of one rewriting, for the next one of the same kind. The result depends on the expression alone."""

    results: Replacements = field(default_factory=Replacements)
    _found: set[Expr] = field(default_factory=set)

    def missing(self, lowered: Lowered) -> Iterator[Expr]:
        """The expressions of the IR that have no result yet, operands first. The caller adds each result before it asks
        for the next expression."""
        found = self._found
        nodes = topological([root for root in lowered.roots if root not in found], found)
        yield from nodes
        found.update(nodes)

    def forget(self, nodes: Iterable[Expr]) -> None:
        """Forgets the results of expressions, and of everything that is made of them."""
        for node in nodes:
            self._found.discard(node)
            self.results.pop(node, None)


def rewrite(
    lowered: Lowered, pool: Pool, ops: Container[str], change: Change, ordered: bool = False,
    known: KnownRewrites | None = None,
) -> Lowered:  # fmt: skip
    """The IR with each expression of an operation among `ops` replaced by `change(expression, replacements of its
    operands)`. The others get the replacements of their operands, those of a commutative operation in order if they are
    `ordered`. Results that are `known` are not found again, and others are added to them."""
    new = Replacements() if known is None else known.results
    replaced = new.keys()
    for node in lowered.nodes if known is None else known.missing(lowered):
        op, args = node.op, node.args
        if not replaced.isdisjoint(args):
            args = tuple([new[arg] for arg in args])
        elif op not in ops:
            continue
        if op in ops:
            made = change(node, args)
        else:
            made = pool.make(op, in_order(op, args) if ordered else args, node.attr, node.span)
        if made is not node:
            new[node] = made
    if all(new[root] is root for root in lowered.roots):
        return lowered
    pool.transfer_names(new)
    return replace(
        lowered,
        outputs=tuple([Output(o.label, new[o.value]) for o in lowered.outputs]),
        exposed=tuple([(ref, new[value]) for ref, value in lowered.exposed]),
        updates=tuple([Update(u.slot, u.plane, new[u.value]) for u in lowered.updates]),
        feeds=tuple([Output(f.label, new[f.value]) for f in lowered.feeds]),
        films=tuple([Output(f.label, new[f.value]) for f in lowered.films]),
    )


# --- making expressions from the table of operators: expansion and constant folding ---

# Their operands are ordered, so that a · b and b · a are one expression. The order depends on the structure of the
# operands alone, so a kernel does not depend on what else is in its pool.
COMMUTATIVE = frozenset({"add", "mul", "eq", "ne", "and", "or"})

_NUMBERS = ("const", "u32")


@dataclass(slots=True)
class Constants:
    """The values of constant expressions, each computed once, for some values of constants. `known` may hold some
    already."""

    known: dict[Expr, float | None] = field(default_factory=dict)
    values: TunedValues = field(default_factory=TunedValues)

    def of(self, value: Expr) -> float | None:
        """The value of an expression that is the same at every coordinate, None if it varies. Bits are whole
        numbers."""
        if value.op in _NUMBERS:
            return self._fold(value)
        return found_below(value, self.known, self._fold)

    def _fold(self, node: Expr) -> float | None:
        if node.op in _NUMBERS:
            return self.values.of(node.attr)
        if not node.args or node.op not in OPS:
            return None
        numbers = [self.known[a] for a in node.args]
        known = [n for n in numbers if n is not None]
        return OPS[node.op].fold(*known) if len(known) == len(numbers) else None


@dataclass(slots=True)
class ExprBuilder:
    """Makes expressions in a pool, for the text at `span`."""

    pool: Pool
    span: Span | None = None
    _constant: dict[Expr, bool] = field(default_factory=dict)
    """Whether expressions are the same at every coordinate."""

    def at(self, span: Span | None) -> ExprBuilder:
        """The same builder, for another place in the text."""
        self.span = span
        return self

    def const(self, value: float, /) -> Expr:
        return self.pool.const(value, self.span)

    def bits(self, value: int, /) -> Expr:
        return self.pool.make("u32", (), value, self.span)

    def op(self, name: str, /, *args: Expr) -> Expr:
        """A row applied to operands; a row that expands is rewritten into primitives."""
        row = OPS[name]
        if row.expand is not None:
            return formula.expand(row, self, args)
        count = len(row.params)
        if len(args) == count:
            return self.pool.make(name, args, None, self.span)
        made = self.pool.make(name, args[:count], None, self.span)
        for arg in args[count:]:
            made = self.pool.make(name, (made, arg), None, self.span)
        return made

    def folded(self, name: str, /, *args: Expr) -> Expr:
        """A primitive row applied to operands, folded as the pass `fold` would do it."""
        return self.simplified(name, args) or self.pool.make(name, in_order(name, args), None, self.span)

    def constant_of(self, value: Expr, /) -> float | None:
        return ask(_constant_of, value) if found_below(value, self._constant, self._is_constant) else None

    def _is_constant(self, node: Expr) -> bool:
        return node.op in _NUMBERS or bool(node.args and node.op in OPS and all(self._constant[a] for a in node.args))

    def simplified(self, name: str, args: tuple[Expr, ...]) -> Expr | None:
        """A simpler expression with the same value as a primitive row applied to operands; None if there is none."""
        for arg in args:
            if arg.op not in _NUMBERS:
                return _unchanged(name, args)
        row = OPS[name]
        if row.gives != "u32":
            return self.pool.computed(name, args, self.span)
        return self.bits(int(row.fold(*[value_of(known_of(arg)) for arg in args])))


def _constant_of(values: TunedValues, value: Expr) -> float | None:
    return Constants(values=values).of(value)


def expanded_size(name: str, operands: Sequence[float | None]) -> int:
    """The approximate number of expressions that a row expands to. `operands` are the known numbers among its
    operands."""
    row = OPS[name]
    if row.expand is None:
        return max(1, len(operands) - len(row.params) + 1)
    # Expansions are shorter for some values of operands with defaults, such as small counts.
    counts = (
        n if n in _SMALL_COUNTS and k < len(row.params) and row.params[k].default is not None else None
        for k, n in enumerate(operands)
    )
    return _expanded_size(name, tuple(counts))


_SMALL_COUNTS = range(17)

# The rows that expand, or are grouped into binary ones.
EXPANDING = frozenset(name for name, row in OPS.items() if row.expand is not None or row.variadic)


@lru_cache(maxsize=256)
def _expanded_size(name: str, operands: tuple[float | None, ...]) -> int:
    builder = ExprBuilder(Pool())
    pool = builder.pool
    args = [pool.make("coord", (), str(k)) if n is None else builder.const(n) for k, n in enumerate(operands)]
    builder.op(name, *args)
    return max(1, len(pool) - len(operands))


def in_order(name: str, args: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The operands of a row, in their canonical order if the row is commutative."""
    return args[::-1] if name in COMMUTATIVE and args[0].key > args[1].key else args


# For each operation that is NaN if one of its operands is: the first and the second operand that change nothing.
_NEUTRAL: Mapping[str, tuple[float | None, float | None]] = {
    "add": (0.0, 0.0), "sub": (None, 0.0), "mul": (1.0, 1.0), "div": (None, 1.0), "mod": (None, None)
}  # fmt: skip


def _unchanged(name: str, args: tuple[Expr, ...]) -> Expr | None:
    """The operand that an operation returns unchanged for every value, infinities and NaN included. Only the sign of a
    zero may differ, which the language does not promise. At least one operand is not constant."""
    if name in _NEUTRAL:
        first, second = args
        number, other, neutral = (first, second, 0) if first.op == "const" else (second, first, 1)
        if number.op != "const":
            return None
        known, unchanged = known_of(number), _NEUTRAL[name][neutral]
        if not equals(known, known):
            return number  # NaN; shader compilers may drop an operation on it
        return other if unchanged is not None and equals(known, unchanged) else None
    match name:
        case "select":
            condition, then, otherwise = args
            if condition.op == "const":
                return otherwise if equals(known_of(condition), 0.0) else then
            return then if then is otherwise else None
        case "neg" if args[0].op == "neg":
            return args[0].args[0]
        case "floor" if args[0].op == "floor":
            return args[0]
        case _:
            return None
