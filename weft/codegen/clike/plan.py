"""Which values of a kernel a shader computes, what it reads from outside, and which of them get a variable."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from weft.codegen.clike.shader import UnsuitableError
from weft.codegen.kernel import Kernel
from weft.codegen.values import LoopBody, Node, Note, Rewriter, Section, Store, joined, with_bodies
from weft.graph.elaborate import short
from weft.ir.rates import Rate
from weft.names import StrandRef

# Strands of other subgraphs that a kernel reads at places of its own. A program cannot ask for them: whoever launches
# it asks for all places at once, and the program finds the value of its element among the answers.

# What can only be computed where programs run, and what the places are then at which a strand is read.
_BOUND: Mapping[str, str] = MappingProxyType({
    "state": "depends on what it remembers", "sample": "depends on what it remembers", "loop": "is found by a loop",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class ExternalRead:
    """A strand as a program is given it: the how manieth, and in which directions its values change (`Rate.COLUMN`,
    `Rate.ROW`; `Rate.ELEMENT` for points). There is a value for each place along these, row after row."""

    number: int
    strand: StrandRef
    over: frozenset[Rate]

    @property
    def key(self) -> str:
        """What it is bound by, for people as well."""
        return f"{self.number}: {short(self.strand)}"


@dataclass(frozen=True, slots=True)
class ReadSite:
    """A strand, and the coordinates it is read at, which `before` computes, operands first. Other strands may be read
    for that."""

    asked: ExternalRead
    coordinates: tuple[Node, ...]
    before: tuple[Node, ...]


def read_sites(nodes: Sequence[Node], used: Iterable[Node]) -> list[ReadSite]:
    """What is asked for before a program runs that is made of these nodes, and that uses these of them itself. Raises
    UnsuitableError for what can only be asked for while it runs."""
    wanted = set(used)
    for node in _in_loops(nodes):
        if node.op == "strand":
            raise UnsuitableError(f"it reads {short(node.attr)} in the steps of a loop")
    made: list[ReadSite] = []
    for node in nodes:
        if node.op == "strand" and node in wanted:
            parts = _parts(node)
            over = frozenset(part.attr.rate for part in parts if part.op == "line")
            before = tuple(part for part in nodes if part in parts)
            made.append(ReadSite(ExternalRead(len(made), node.attr, over), node.args, before))
    return made


def _parts(strand: Node) -> set[Node]:
    """All that the coordinates of a strand are made of. Raises UnsuitableError for what only a program computes."""
    found: set[Node] = set()
    todo = list(strand.args)
    while todo:
        part = todo.pop()
        if part in found:
            continue
        if part.op in _BOUND:
            raise UnsuitableError(f"the place at which it reads {short(strand.attr)} {_BOUND[part.op]}")
        found.add(part)
        todo += part.args
    return found


def _in_loops(nodes: Iterable[Node]) -> Iterator[Node]:
    """What the steps of loops compute."""
    for node in nodes:
        if node.op == "loop":
            yield from node.attr.nodes
            yield from _in_loops(node.attr.nodes)


# Reads what a kernel computes at every element into one graph, with what the patch calls its values.
#
# What changes by column or by row is computed at every element here: a graphics card would gain nothing by tables of
# it. The constant and the frame section are computed by whoever launches, in double precision.

# The sections that become one, operands first.
_MERGED = (Rate.COLUMN, Rate.ROW, Rate.ELEMENT)
_ONCE = (Rate.CONSTANT, Rate.FRAME)


@dataclass(frozen=True, slots=True)
class ElementProgram:
    """What is computed at every element: the nodes in order, and what the patch calls them (`notes`). `once` has what
    the locals are that are computed once a launch, by their numbers, and `given` their names."""

    nodes: tuple[Node, ...]
    outputs: tuple[Node, ...]
    stores: tuple[Store, ...]
    notes: dict[Node, Note] = field(default_factory=dict)
    given: dict[int, Note] = field(default_factory=dict)
    once: dict[int, Node] = field(default_factory=dict)

    @property
    def roots(self) -> tuple[Node, ...]:
        return (*self.outputs, *(store.value for store in self.stores))


def read_program(kernel: Kernel) -> ElementProgram:
    """The program of a kernel. Raises UnsuitableError if it needs what no such program has."""
    if kernel.tick == "element" and kernel.sweep == "grid":
        raise UnsuitableError("each of its values needs the one before")
    once = joined(Rate.FRAME, map(kernel.section, _ONCE))
    merged, used = _merged(kernel)
    strands = [node for node in merged.nodes if node.op == "strand" and node in used]
    asked = {
        strand: Node("asked", (), "float", asking.asked)
        for strand, asking in zip(strands, read_sites(merged.nodes, used), strict=True)
    }
    rewriter = Rewriter(asked)
    merged = rewriter.section(merged) if asked else merged
    used = {rewriter.of(node) for node in used}
    given = {number: once.notes[node] for number, node in once.locals.items() if node in once.notes}
    nodes = tuple(node for node in merged.nodes if node in used)
    return ElementProgram(nodes, merged.outputs, merged.stores, dict(merged.notes), given, dict(once.locals))


def strands_of(kernel: Kernel) -> list[ReadSite]:
    """What has to be asked for before the program of a kernel runs, by the numbers that the program has for it. Raises
    UnsuitableError for what can only be asked for while it runs."""
    if not kernel.strands:
        return []
    merged, used = _merged(kernel)
    return read_sites(merged.nodes, used)


def _merged(kernel: Kernel) -> tuple[Section, set[Node]]:
    """The sections that become one, and those of its values that the program needs."""
    merged = joined(Rate.ELEMENT, map(kernel.section, _MERGED))
    return merged, _needed((*merged.outputs, *(store.value for store in merged.stores)))


def _needed(roots: Iterable[Node]) -> set[Node]:
    """All nodes that these are made of, those of loops included; but of strands of other subgraphs nothing more: who
    asks for them computes where."""
    found: set[Node] = set()
    todo = list(roots)
    while todo:
        node = todo.pop()
        if node in found:
            continue
        found.add(node)
        if node.op != "strand":
            todo += node.args
        if node.op == "loop":
            todo += node.attr.following
    return found


# Decides which values of a program get a name, and which stand where they are used.

# An expression with more operands than this is hard to read: parts of it get a name.
_LARGEST = 10

# What the patch has a name for gets it in the program as well, if it is an expression with so many operands.
_WORTH_A_NAME = 3

# What is read as easily as a name.
LEAVES = frozenset({"const", "u32", "scalar", "line", "loop_index", "loop_value", "loop_out"})


@dataclass(frozen=True, eq=False, slots=True)
class _End:
    """Where a value is used at the end of a body, or of the program."""

    body: LoopBody | None


_User: TypeAlias = Node | _End


@dataclass
class VariablePlan:
    """What becomes of the nodes of a program.

    `kept` are those that get a variable of their own. `in_place` are those of them that follow a carried value, and
    take its variable: nobody reads the old value behind them. `lent` are carried values of a loop within a loop that
    take the variable of the one around, by the loop and their number. `owners` says what a value without a name is part
    of.
    """

    kept: set[Node] = field(default_factory=set)
    in_place: dict[Node, Node] = field(default_factory=dict)
    lent: dict[tuple[Node, int], Node] = field(default_factory=dict)
    owners: dict[Node, Note] = field(default_factory=dict)


def plan(program: ElementProgram, has_fract: bool) -> VariablePlan:
    """How to write a program, in a language that may have a function for x − floor(x)."""
    made = VariablePlan(owners=_owners(program))
    places = _UseTable(program)
    if has_fract:
        places.join_fractions()
    sizes: dict[Node, int] = {}
    for node in with_bodies(program.nodes):
        _decide(node, program, places, made, sizes)
    for node in with_bodies(program.nodes):
        if node.op == "loop":
            _reuse(node, places, made)
    return made


def _owners(program: ElementProgram) -> dict[Node, Note]:
    """The note on each value, or on the first that uses it."""
    owners = dict(program.notes)
    for node in [*with_bodies(program.nodes)][::-1]:
        note = owners.get(node)
        if note is not None:
            for arg in node.args:
                if arg not in program.notes:
                    owners[arg] = note  # that of the first user: these come last
        if node.op == "loop":
            for carried, following in zip(node.attr.carried, node.attr.following, strict=True):
                known = owners.get(carried) or owners.get(following) or note
                if known is not None:
                    owners.setdefault(carried, known)
                    owners.setdefault(following, known)
    for node in program.nodes:
        if node.op == "loop_out" and node in owners:
            owners[node.args[0].attr.carried[node.attr]] = owners[node]
    return owners


class _UseTable:
    """Where each node stands, and who uses it."""

    def __init__(self, program: ElementProgram) -> None:
        self.users: defaultdict[Node, list[_User]] = defaultdict(list)
        self.home: dict[Node, LoopBody | None] = {}
        self.number: dict[Node, int] = {}
        self.loop_of: dict[int, Node] = {}
        """The loop that a body belongs to, by the body's identity."""
        self._walk(program.nodes, None)
        for root in program.roots:
            self.users[root].append(_End(None))

    def _walk(self, nodes: Sequence[Node], body: LoopBody | None) -> None:
        for node in nodes:
            self.home[node] = body
            self.number[node] = len(self.number)
            for arg in node.args:
                self.users[arg].append(node)
            if node.op == "loop":
                self.loop_of[id(node.attr)] = node
                self._walk(node.attr.nodes, node.attr)
                for following in node.attr.following:
                    self.users[following].append(_End(node.attr))

    def join_fractions(self) -> None:
        """Lets x − floor(x) count as one use of x."""
        for node in list(self.home):
            whole = node.args[1] if node.op == "sub" else node
            if whole.op == "floor" and self.users[whole] == [node] and whole.args[0] is node.args[0]:
                self.users[node.args[0]].remove(whole)

    def body_of(self, user: _User) -> LoopBody | None:
        return user.body if isinstance(user, _End) else self.home[user]

    def lifted(self, user: _User, body: LoopBody) -> _User:
        """The statement of a body that a user is part of."""
        while self.body_of(user) is not body:
            around = self.body_of(user)
            assert around is not None
            user = self.loop_of[id(around)]
        return user


def _decide(node: Node, program: ElementProgram, places: _UseTable, made: VariablePlan, sizes: dict[Node, int]) -> None:
    """Whether a node is kept; its operands have been decided on."""
    if node.op in LEAVES or node.op == "loop":
        return

    def size_of(arg: Node) -> int:
        return 1 if arg in made.kept else sizes.get(arg, 1)

    size = max(1, sum(map(size_of, node.args)))
    while size > _LARGEST and size_of(largest := max(node.args, key=size_of)) > 2:
        made.kept.add(largest)
        size = sum(map(size_of, node.args))
    sizes[node] = size
    users = places.users[node]
    if node.op == "neg" and node.args[0].op in LEAVES:
        return
    enters_loop = any(places.body_of(user) is not places.home[node] for user in users)
    named = node in program.notes and size >= _WORTH_A_NAME
    if len(users) > 1 or enters_loop or named:
        made.kept.add(node)


def _reuse(loop: Node, places: _UseTable, made: VariablePlan) -> None:
    """Finds what can take the variables that a loop carries."""
    body: LoopBody = loop.attr
    for carried, following in zip(body.carried, body.following, strict=True):
        if body.following.count(following) > 1 or places.home.get(following) is not body:
            continue
        if following.op == "loop_out":
            inner, number = following.args[0], following.attr
            if _is_lent(carried, inner, number, places) and _last_read(carried, body, places, made) <= (
                places.number[inner]
            ):
                made.lent[inner, number] = carried
        elif following in made.kept and _last_read(carried, body, places, made) <= places.number[following]:
            made.in_place[following] = carried


def _is_lent(carried: Node, inner: Node, number: int, places: _UseTable) -> bool:
    """Whether a loop within the body that has a carried value starts from it, and reads it nowhere else."""
    starts = inner.args[2:]
    alone = starts[number] is carried and inner.args.count(carried) == 1
    body = places.home[inner]
    assert body is not None
    return alone and not any(
        user is not inner and places.lifted(user, body) is inner for user in places.users[carried]
    )


def _last_read(carried: Node, body: LoopBody, places: _UseTable, made: VariablePlan) -> float:
    """The number of the last statement of a body that reads a carried value."""
    last = -1.0
    todo = list(places.users[carried])
    while todo:
        user = todo.pop()
        if isinstance(user, Node) and user not in made.kept and user.op != "loop":
            todo += places.users[user]  # it stands where it is used
            continue
        user = places.lifted(user, body)
        last = max(last, float("inf") if isinstance(user, _End) else places.number[user])
    return last
