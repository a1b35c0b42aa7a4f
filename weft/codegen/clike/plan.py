"""Decides which values of a program get a name, and which stand where they are used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from weft.codegen.clike.read import ElementProgram
from weft.codegen.values import LoopBody, Node, Note, with_bodies

# An expression with more operands than this is hard to read: parts of it get a name.
_LARGEST = 10

# What the patch has a name for gets it in the program as well, if it is an expression with so many operands.
_WORTH_A_NAME = 3

# What is read as easily as a name.
LEAVES = frozenset({"const", "bits", "scalar", "line", "loop_index", "loop_value", "loop_out"})


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
