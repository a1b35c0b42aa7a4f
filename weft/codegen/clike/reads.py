"""The plan of a shader: the values that it computes, its external reads, and which values get variables."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType

from weft.codegen.clike.shader import UnsuitableError
from weft.codegen.kernel import LOOP_STEPS, Kernel
from weft.codegen.values import LoopBody, Node, Note, Rewriter, Section, joined, operands, with_bodies
from weft.ir.rates import Rate
from weft.names import StrandRef

# External reads: strands of other subgraphs, read at places that a kernel computes. A program cannot evaluate them.
# They are prefetched for all places before the launch, and the program reads the value for its element from a buffer.

# Operations that only a running program can compute, and the reason why a strand cannot be read at such a place.
_BOUND: Mapping[str, str] = MappingProxyType({
    "state": "depends on what it remembers", "sample": "depends on what it remembers", "loop": "is found by a loop",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class ExternalRead:
    """A strand as an input of a program: its number among the inputs of this kind, and the directions in which its
    values change (`Rate.COLUMN`, `Rate.ROW`; `Rate.ELEMENT` for points). There is one value for each place along these
    directions, row after row."""

    number: int
    strand: StrandRef
    over: frozenset[Rate]

    @property
    def key(self) -> str:
        """The key that it is bound by; also shown to people."""
        return f"{self.number}: {self.strand.short}"


@dataclass(frozen=True, slots=True)
class ReadSite:
    """An external read, and the coordinates at which the strand is read. `before` are the nodes that compute these,
    operands first; they may include other external reads."""

    read: ExternalRead
    coordinates: tuple[Node, ...]
    before: tuple[Node, ...]


def _read_sites(nodes: Sequence[Node], used: Set[Node]) -> dict[Node, ReadSite]:
    """The external reads of a program of these nodes, of which it computes those `used`. Raises UnsuitableError if a
    read cannot be prefetched."""
    outside = set(nodes)
    for node in with_bodies(nodes):
        if node.op == "strand" and node not in outside:
            raise UnsuitableError(f"it reads {node.attr.short} in the steps of a loop")
    made: dict[Node, ReadSite] = {}
    for node in nodes:
        if node.op == "strand" and node in used:
            parts = _parts(node)
            over = frozenset(part.attr.rate for part in parts if part.op == "line")
            before = tuple(part for part in nodes if part in parts)
            made[node] = ReadSite(ExternalRead(len(made), node.attr, over), node.args, before)
    return made


def _parts(strand: Node) -> set[Node]:
    """The nodes that compute the coordinates of a strand. Raises UnsuitableError if only a program can compute them."""
    found: set[Node] = set()
    todo = list(strand.args)
    while todo:
        part = todo.pop()
        if part in found:
            continue
        if part.op in _BOUND:
            raise UnsuitableError(f"the place at which it reads {strand.attr.short} {_BOUND[part.op]}")
        found.add(part)
        todo += part.args
    return found


# The values of a kernel as one graph, with their names in the patch.
#
# Values that change by column or by row are computed at every element, unless a program over tiles of pixels shares
# them (see `LinePlan`). The launch prologue computes the constant and the frame section, in double precision.

# The sections that become one, operands first.
_MERGED = (Rate.COLUMN, Rate.ROW, Rate.ELEMENT)
_PROLOGUE = (Rate.CONSTANT, Rate.FRAME)


def read_program(kernel: Kernel) -> tuple[Section, Section]:
    """The values that are computed at every element, and those that are computed once a launch. Raises UnsuitableError
    if no program can compute a kernel."""
    if kernel.tick == "element" and kernel.sweep == "grid":
        raise UnsuitableError("each of its values needs the one before")
    merged, used = _merged(kernel)
    sites = _read_sites(merged.nodes, used)
    rewriter = Rewriter({strand: Node("external_read", (), "float", site.read) for strand, site in sites.items()})
    merged = rewriter.section(merged) if sites else merged
    used = {rewriter.of(node) for node in used}
    nodes = tuple(node for node in merged.nodes if node in used)
    program = Section(merged.rate, nodes, merged.outputs, merged.stores, notes=merged.notes)
    return program, joined(Rate.FRAME, map(kernel.section, _PROLOGUE))


def strands_of(kernel: Kernel) -> list[ReadSite]:
    """The external reads of a kernel, in the order of their numbers in its program. Raises UnsuitableError if a read
    cannot be prefetched."""
    if not kernel.strands:
        return []
    merged, used = _merged(kernel)
    return list(_read_sites(merged.nodes, used).values())


def _merged(kernel: Kernel) -> tuple[Section, set[Node]]:
    """The sections joined to one, and those of its values that the program needs. These do not include coordinates of
    external reads, which are computed before the launch."""
    merged = joined(Rate.ELEMENT, map(kernel.section, _MERGED))
    used = {*merged.outputs, *(store.value for store in merged.stores)}
    for node in reversed(merged.nodes):
        if node in used and node.op != "strand":
            used.update(operands(node))
    return merged, used


# Variables: which values of a program get one, and which are written where they are used.

# An expression with more operands than this is hard to read, so parts of it get a variable.
_LARGEST = 10

# A value with a name in the patch gets a variable of that name if its expression has at least this many operands.
_WORTH_A_NAME = 3

# Operations whose text is as easy to read as a name.
LEAVES = frozenset({"const", "u32", "scalar", "line", "loop_index", "loop_value", "loop_out"})


class _End:
    """The user of a value that is needed at the end of a step of a loop, or of the program."""


def _owners(program: Section) -> dict[Node, Note]:
    """The note on each value, or on its first user."""
    owners = dict(program.notes)
    for node in [*with_bodies(program.nodes)][::-1]:
        note = owners.get(node)
        if note is not None:
            for arg in node.args:
                if arg not in program.notes:
                    owners[arg] = note  # the first user comes last, and wins
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


class VariablePlan:
    """How the nodes of a program are written, in a language that may have a function for x − floor(x). The plan depends
    on the place of each node and its users. The `shared` ones get a variable in any case."""

    def __init__(self, program: Section, has_fract: bool, shared: Set[Node] = frozenset()) -> None:
        self.kept: set[Node] = {*shared}
        """The nodes that get a variable of their own."""
        self.in_place: dict[Node, Node] = {}
        """Those of them that are the new value of a carried value take the variable of that value, which is not read
        after them."""
        self.lent: dict[tuple[Node, int], Node] = {}
        """Carried values of an inner loop, by the loop and their number, that take the variable of this value of the
        outer loop."""
        self.owners = _owners(program)
        """The note on each value, or on the value that it is part of."""
        self._notes = program.notes
        self._sizes: dict[Node, int] = {}
        self._users: defaultdict[Node, list[Node | _End]] = defaultdict(list)
        self._home: dict[Node | _End, Node | None] = {}
        """The loop that a user is part of."""
        self._number: dict[Node, int] = {}
        self._walk(program.nodes, program.roots, None)
        if has_fract:
            self._join_fractions()
        for node in with_bodies(program.nodes):
            self._decide(node)
        for node in with_bodies(program.nodes):
            if node.op == "loop":
                self._reuse(node)
        self.cells = {node for node in self.kept if node.op == "floor" and self._is_cell(node)}
        """Those that are the corner of a cell: of a floor, nothing but the bits and what lies above it is used."""

    def _is_cell(self, whole: Node) -> bool:
        users = self._users[whole]
        above = [user for user in users if isinstance(user, Node) and user.op == "sub" and user.args[1] is whole]
        bits = [user for user in users if isinstance(user, Node) and user.op == "bits_of"]
        return bool(bits) and len(bits) + len(above) == len(users) and all(
            user.args[0] is whole.args[0] for user in above
        )

    def _walk(self, nodes: Iterable[Node], roots: Iterable[Node], loop: Node | None) -> None:
        for node in nodes:
            self._home[node] = loop
            self._number[node] = len(self._number)
            for arg in node.args:
                self._users[arg].append(node)
            if node.op == "loop":
                self._walk(node.attr.nodes, node.attr.following, node)
        for root in roots:
            end = _End()
            self._home[end] = loop
            self._users[root].append(end)

    def _join_fractions(self) -> None:
        """Lets x − floor(x) count as one use of x."""
        for node in self._number:
            whole = node.args[1] if node.op == "sub" else node
            if whole.op == "floor" and self._users[whole] == [node] and whole.args[0] is node.args[0]:
                self._users[node.args[0]].remove(whole)

    def _decide(self, node: Node) -> None:
        """Decides whether a node is kept, after its operands."""
        if node.op in LEAVES or node.op == "loop":
            return
        kept, sizes = self.kept, self._sizes

        def size_of(arg: Node) -> int:
            return 1 if arg in kept else sizes.get(arg, 1)

        size = max(1, sum(map(size_of, node.args)))
        while size > _LARGEST and size_of(largest := max(node.args, key=size_of)) > 2:
            kept.add(largest)
            size = sum(map(size_of, node.args))
        sizes[node] = size
        if node.op == "neg" and node.args[0].op in LEAVES:
            return
        users = self._users[node]
        enters_loop = any(self._home[user] is not self._home[node] for user in users)
        named = node in self._notes and size >= _WORTH_A_NAME
        if len(users) > 1 or enters_loop or named:
            kept.add(node)

    def _reuse(self, loop: Node) -> None:
        """Finds the values that can take the variables of a loop's carried values."""
        body: LoopBody = loop.attr
        for carried, following in zip(body.carried, body.following, strict=True):
            if body.following.count(following) > 1 or self._home.get(following) is not loop:
                continue
            if following.op == "loop_out":
                inner, number = following.args[0], following.attr
                if self._is_lent(carried, inner, number) and self._last_read(carried, loop) <= self._number[inner]:
                    self.lent[inner, number] = carried
            elif following in self.kept and self._last_read(carried, loop) <= self._number[following]:
                self.in_place[following] = carried

    def _is_lent(self, carried: Node, inner: Node, number: int) -> bool:
        """Whether an inner loop starts from a carried value of the loop around it, and reads it nowhere else."""
        if inner.args[2:][number] is not carried or inner.args.count(carried) > 1:
            return False
        loop = self._home[inner]
        return not any(user is not inner and self._lifted(user, loop) is inner for user in self._users[carried])

    def _lifted(self, user: Node | _End, loop: Node | None) -> Node | _End:
        """The statement of a loop that a user is part of."""
        while (around := self._home[user]) is not loop:
            assert around is not None
            user = around
        return user

    def _last_read(self, carried: Node, loop: Node) -> float:
        """The number of the last statement of a loop that reads a carried value."""
        last = -1.0
        todo = list(self._users[carried])
        while todo:
            user = todo.pop()
            if isinstance(user, Node) and user not in self.kept and user.op != "loop":
                todo += self._users[user]  # it is written where it is used
                continue
            user = self._lifted(user, loop)
            last = max(last, self._number[user] if isinstance(user, Node) else math.inf)
        return last


# Loops.


def steps_of(loop: Node) -> float:
    """The number of steps of a loop; infinite if it is not known."""
    first, last = loop.args[:2]
    length = last.attr - first.attr if first.op == last.op == "const" else math.inf
    return max(0, int(length) + 1 if length >= 0 else 0) if abs(length) < LOOP_STEPS else math.inf


def most_steps(loop: Node) -> float:
    """The most steps of a loop together with the loops within it; infinite, or NaN, if that is not known."""
    return steps_of(loop) * (1 + sum(most_steps(node) for node in loop.attr.nodes if node.op == "loop"))
