"""Kernels as lists of calls of ready functions (`handlers`), which need no compiler.

The element section and each section of lines become a program. Operations that often follow one another are one call.
A value has a slot from its call to the last call that uses it; what does not change within a row has a slot of its own.
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from itertools import chain
from math import inf
from typing import TypeAlias

from weft.codegen.kernel import NEST_STEPS, Kernel
from weft.codegen.native.dataflow import Graph, costs
from weft.codegen.native.fusions import FUSIONS, Pattern
from weft.codegen.native.handlers import BODY, RECORD, TILE, UNIFORM, handler_names
from weft.codegen.native.module import Channels, Level, plan_channels, sections_that_read
from weft.codegen.native.target import (
    SINGLE, Field, Head, History, ImageCell, Layout, PictureWord, Precision, Ring, Word, extents_of
)
from weft.codegen.native.writer import COLUMNS, ELEMENTS, ROWS, ArgumentTable
from weft.codegen.open_numbers import NumberUse, OpenKernels
from weft.codegen.values import SIGNATURES, Line, LoopBody, Node, needed, operands
from weft.ir.rates import Rate
from weft.ir.tunable import bits
from weft.ops import OPS
from weft.ops.single import LARGEST_PERIOD, LEAST_PERIOD
from weft.recently_used import RecentlyUsed

_MOST_ROOM = 512 * TILE * 4
"""Machine code with slots that take more would need too much of a thread's stack: glibc grants 2 MiB at least, and
Python asks for as much or more elsewhere."""

PROGRAMS = {ELEMENTS: Rate.ELEMENT, COLUMNS: Rate.COLUMN, ROWS: Rate.ROW}
"""The programs of a picture, and the sections that they compute."""

_READS = frozenset({"state", "sample", "picture", "fetch"})

# The operands that a record has room for, besides its function and its result.
_OPERANDS = RECORD - 2

_LOOPS = frozenset({"loop", "loop_out"})


def has_handler(node: Node) -> bool:
    """Whether there is a function for an operation."""
    row = OPS.get(node.op)
    return node.op in _READS or node.op in _LOOPS if row is None else node.op in SIGNATURES and row.native is not None


@dataclass(frozen=True, slots=True)
class Callees:
    """The functions that the records of a program call, by their names, and the precision of its constants."""

    names: tuple[str, ...]
    floats: Precision
    fuses: bool
    """Whether some of them do several operations at once (`FUSIONS`), or take the remainder by a constant."""
    most_room: float = inf
    """How much memory the slots of a program may take."""


HANDLERS = Callees(handler_names(SINGLE), SINGLE, fuses=True, most_room=_MOST_ROOM)
"""Those of machine code for pictures."""


@dataclass(frozen=True, slots=True)
class TileProgram:
    """A kernel as records, by the function that they stand for. Its first words are a header; then the first word of
    each record is the place of its function among the names of `Callees`."""

    layout: Layout
    programs: tuple[tuple[str, bytes], ...]
    floats: Precision = SINGLE
    tier: int = 1


# What an operation needs to be of a pattern: the operations of its operands, each also with those of its own operands,
# and how many operands are operations.
_Need: TypeAlias = "str | tuple[str, str] | int"


def _mentions_of(pattern: Pattern) -> Mapping[int, int]:
    """How often each part of a pattern is an operand in it, by the identity of the part."""
    found = Counter[int]()
    todo = [pattern]
    while todo:
        parts = [each for each in todo.pop()[1:] if isinstance(each, tuple)]
        todo += [each for each in {id(each): each for each in parts}.values() if id(each) not in found]
        found.update(map(id, parts))
    return found


_MENTIONS = tuple(map(_mentions_of, FUSIONS))


def _needs_of(pattern: Pattern, mentions: Mapping[int, int]) -> frozenset[_Need]:
    parts = [each for each in pattern[1:] if isinstance(each, tuple) and mentions[id(each)] == 1]
    inner = ((str(part[0]), str(each[0])) for part in parts for each in part[1:] if isinstance(each, tuple))
    return frozenset((*(str(part[0]) for part in parts), *inner, *range(2, len(parts) + 1)))


_FUSIONS_OF: dict[str, list[tuple[int, frozenset[_Need]]]] = {}
"""The patterns of an operation, those of most operations first: the number of each, and what it needs."""
for _at, _pattern in sorted(enumerate(FUSIONS), key=lambda each: -len(_MENTIONS[each[0]])):
    _FUSIONS_OF.setdefault(str(_pattern[0]), []).append((_at, _needs_of(_pattern, _MENTIONS[_at])))

_NEEDING_NOTHING = frozenset(op for op, found in _FUSIONS_OF.items() if any(not needs for _, needs in found))

_PARTS = frozenset(need for found in _FUSIONS_OF.values() for _, needs in found for need in needs)
"""The operations that are operands of others in patterns."""

def _literals_of(pattern: Pattern) -> Iterator[bytes]:
    for each in pattern[1:]:
        if isinstance(each, float):
            yield bits(each)
        elif isinstance(each, tuple):
            yield from _literals_of(each)


LITERALS = frozenset(chain.from_iterable(map(_literals_of, FUSIONS)))
"""The bits of the constants in patterns: a list of calls depends on which constants have these values."""

_COMMUTING = frozenset({"add", "mul", "bits_add", "bits_mul", "bits_xor", "bits_or", "bits_and"})

# The operations whose operands decide how they are computed.
DECIDING = frozenset({"mod", "state", "sample", "loop", "next"})


def decides_list(use: NumberUse, value: float) -> bool:
    """Whether a list of calls depends on the value of a number, apart from the word that holds it."""
    return use.op in DECIDING or use.in_level or bits(value) in LITERALS


_TILE_WORD = 1 << 32
"""What the word of a slot lacks if the slot is a tile."""


def _bits(value: float, floats: Precision) -> int:
    """A number as a word."""
    form, of = ("<I", "<f") if floats == SINGLE else ("<q", "<d")
    return int(struct.unpack(form, struct.pack(of, floats.rounded(value)))[0])


def period_of(node: Node) -> float | None:
    """The divisor of a remainder by a constant, for which machine code has a function of its own; else None."""
    _, divisor = node.args
    return divisor.attr if divisor.op == "const" and LEAST_PERIOD <= divisor.attr <= LARGEST_PERIOD else None


def uses_of(nodes: Sequence[Node], roots: Iterable[Node]) -> dict[Node, int]:
    """How often each of these values is used among them, and as a root."""
    uses = dict.fromkeys(nodes, 0)
    for used in chain(chain.from_iterable(map(operands, nodes)), roots):
        if used in uses:
            uses[used] += 1
    return uses


class Fusing:
    """Finds operations of a list that are one call together. `uses` are the uses of each value of the list. Values that
    are `apart` are not put together with others."""

    def __init__(self, nodes: Sequence[Node], uses: dict[Node, int], apart: Set[Node] = frozenset()) -> None:
        self._uses, self._apart = uses, apart
        self.inside: set[Node] = set()
        """What is computed within another value."""
        self.found: dict[Node, tuple[str, tuple[Node, ...]]] = {}
        """The handler of a value, and its operands."""
        for node in reversed(nodes):
            if node.op in _FUSIONS_OF and node not in self.inside:
                self._fuse(node)

    def _fuse(self, node: Node) -> None:
        parts_of = [arg for arg in node.args if arg.op in _PARTS and self._uses.get(arg) == 1]
        if not parts_of and node.op not in _NEEDING_NOTHING:
            return
        given: set[_Need] = set()
        for count, arg in enumerate(parts_of, 1):
            given.add(arg.op)
            given.add(count)
            for inner in arg.args:
                given.add((arg.op, inner.op))
        for at, needs in _FUSIONS_OF[node.op]:
            if not needs <= given:
                continue
            bound: dict[int, Node] = {}
            parts: dict[Node, Pattern] = {}
            if self._matches(FUSIONS[at], node, bound, parts, _MENTIONS[at]):
                args = tuple([bound[each] for each in range(len(bound))])
                for each in (*parts, node):
                    self._count(each.args, -1)
                self._count(args, 1)
                self.found[node] = f"_fused{at}", args
                self.inside.update(parts)
                return

    def _count(self, args: Iterable[Node], by: int) -> None:
        for arg in args:
            if arg in self._uses:
                self._uses[arg] += by

    def _matches(
        self, pattern: Pattern, node: Node, bound: dict[int, Node], parts: dict[Node, Pattern],
        mentions: Mapping[int, int],
    ) -> bool:  # fmt: skip
        """Whether a value, which is of the operation of a pattern, is of the pattern. Adds the operands of the pattern,
        and the values that nothing else uses, each with its part of the pattern."""
        operands = pattern[1:]
        is_apart = node in self._apart
        for args in (node.args, node.args[::-1]) if node.op in _COMMUTING else (node.args,):
            tried, inner = dict(bound), dict(parts)
            for operand, arg in zip(operands, args, strict=True):
                if isinstance(operand, tuple) and arg.op != "u32" and (arg in self._apart) != is_apart:
                    break
                if not self._fits(operand, arg, tried, inner, mentions):
                    break
            else:
                bound.update(tried)
                parts.update(inner)
                return True
        return False

    def _fits(
        self, operand: str | float | Pattern, arg: Node, bound: dict[int, Node], parts: dict[Node, Pattern],
        mentions: Mapping[int, int],
    ) -> bool:  # fmt: skip
        if isinstance(operand, int):
            return bound.setdefault(operand, arg) is arg
        if isinstance(operand, float):
            return arg.op == "const" and bits(arg.attr) == bits(operand)
        if isinstance(operand, str) or arg.op != operand[0]:
            return False
        if arg.op == "u32":
            return bool(arg.attr == operand[1])
        if arg in parts:
            return parts[arg] is operand
        if self._uses.get(arg) != mentions[id(operand)] or not self._matches(operand, arg, bound, parts, mentions):
            return False
        parts[arg] = operand
        return True


@cache
def _places_of(names: tuple[str, ...]) -> Mapping[str, int]:
    return {name: at for at, name in enumerate(names)}


class Records:
    """Lists of records, and the memory of their slots."""

    def __init__(self, floats: Precision, names: tuple[str, ...]) -> None:
        self.room = 0
        self._floats, self._places = floats, _places_of(names)
        self._bodies: list[tuple[list[int], int, list[int]]] = []
        """Each body: the list with its record, where in that the record begins, and the body."""

    def bits(self, value: float) -> int:
        """A number as a word."""
        return _bits(value, self._floats)

    def record(self, to: list[int], name: str, *words: int) -> None:
        to += (self._places[name], *words, *(0,) * (RECORD - 1 - len(words)))

    def record_with(self, body: list[int], to: list[int], name: str, *words: int) -> None:
        """A record with a body, whose word is among its words."""
        self._bodies.append((to, len(to), body))
        self.record(to, name, *words)

    def room_for(self, lanes: int) -> int:
        """The word of a new slot. One of fewer lanes than a tile has one number."""
        at = self.room
        self.room += lanes * self._floats.bytes
        return at - _TILE_WORD if lanes == TILE else at

    def packed(self, header: Sequence[int], lists: Sequence[list[int]]) -> bytes:
        """The words of a program: its header, these lists, and the bodies in them."""
        every = [*lists, *(body for _, _, body in self._bodies)]
        starts, end = {}, 0
        for each in every:
            self.record(each, "_end")
            starts[id(each)] = end
            end += len(each)
        for around, at, body in self._bodies:
            around[at + BODY] = (starts[id(body)] - starts[id(around)] - at) * 8
        words = [*header, *(0,) * (RECORD - len(header))]
        for each in every:
            words += each
        return struct.pack(f"<{len(words)}q", *words)


class _SectionRecords(Records):
    """The records of one section, and the slots of its values. What is `stored`, by the words of the block that say
    where, is so as soon as it is computed."""

    def __init__(
        self, kernel: Kernel, callees: Callees, table: ArgumentTable, rate: Rate, roots: Iterable[Node],
        stored: Iterable[tuple[Node, int]],
    ) -> None:  # fmt: skip
        super().__init__(callees.floats, callees.names)
        section = kernel.section(rate)
        self._kernel, self._table, self._fuses = kernel, table, callees.fuses
        self._along = Rate.COLUMN if rate == Rate.ELEMENT else rate
        self.numbers: list[tuple[int, int]] = []
        """The places of numbers among the words of the program, and among those of the kernel."""
        self.once: list[int] = []
        self.by_row: list[int] = []
        self.by_tile: list[int] = []
        self._slots: dict[Node, int] = {}
        self._free: list[int] = []
        self._passing: set[Node] = set()
        """The values whose slots are free for others after their last use."""
        self._carried: dict[Node, list[int]] = {}
        self._graph = Graph(kernel, section) if any(node.op == "loop" for node in section.nodes) else None
        self._loop_slots: list[tuple[int, int | None]] = []
        """The budget and the lanes of the loops around this place."""
        self._stored = defaultdict[Node, list[int]](list)
        """The words of what is not stored yet."""
        for node, word in stored:
            self._stored[node].append(word)
        roots = [*roots, *(node for node, words in self._stored.items() for _ in words)]
        wanted = needed(roots)
        leaves = [node for node in wanted if self._changes(node)]
        self._compute([node for node in section.nodes if node in wanted], roots, self.by_tile, leaves)
        for node in list(self._stored):
            self._store_now(node)

    # Slots and records.

    def tile(self) -> int:
        """A slot that changes from tile to tile."""
        return self._free.pop() if self._free else self.room_for(TILE)

    def uniform(self, to: list[int], name: str, *words: int) -> int:
        """The slot of a number that is the same in all lanes, written once or `by_row`."""
        at = self.room_for(UNIFORM[self._floats])
        self.record(to, name, at, *words)
        return at

    def slot(self, node: Node) -> int:
        found = self._slots.get(node)
        if found is None:
            found = self._slots[node] = self._leaf(node)
        return found

    def _leaf(self, node: Node) -> int:
        fields = self._table.fields
        match node.op:
            case "const":
                return self.uniform(self.once, "_const", self.bits(node.attr))
            case "u32":
                return self.uniform(self.once, "_bits", node.attr & 0xFFFF_FFFF)
            case "scalar" if node.attr.source == "number":
                self.numbers.append((RECORD + len(self.once) + 2, node.attr.key))
                return self.uniform(self.once, "_const", 0)
            case "scalar":
                return self.uniform(self.once, "_scalar", self._table.scalars[node.attr])
            case "line" if self._changes(node):
                # Each step of a loop reads what was written before it: such a slot has not been another value's.
                at = self.room_for(TILE) if self._loop_slots else self.tile()
                self.record(self.by_tile, "_column", at, fields[node.attr])
                self._passing.add(node)
                return at
            case "line":
                return self.uniform(self.by_row, "_row", fields[node.attr])
        raise LookupError(f"{node.op} is used before it is computed")

    def _changes(self, leaf: Node) -> bool:
        """Whether a value is a line of which each tile has another part."""
        return leaf.op == "line" and leaf.attr.rate in (self._along, Rate.ELEMENT)

    # Values.

    def _compute(
        self, nodes: Sequence[Node], roots: Iterable[Node], to: list[int], leaves: Sequence[Node] = ()
    ) -> None:
        """Appends the records of a section, or of the body of a loop. Values from outside keep their slots, but for
        these `leaves`."""
        uses = uses_of((*leaves, *nodes), roots)
        fusing = Fusing(nodes if self._fuses else (), uses)
        for node in nodes:
            if node in fusing.inside:
                continue
            if node.op == "loop_out":
                self._slots[node] = self._carried[node.args[0]][node.attr]
                continue
            if node.op == "loop":
                self._loop(node, to)
                self._release(operands(node), uses)
                continue
            name, args = fusing.found.get(node) or (node.op, node.args)
            more: list[int] = []
            if self._fuses and name == "mod" and (period := period_of(node)) is not None:
                name, args, more = "_modulo", args[:1], [self.bits(period), self.bits(1 / period)]
            words = [*(self.slot(arg) for arg in args), *more]
            if node.op in _READS:
                name, words = self._read(node, words, to)
            elif node.op == "strand":
                words = [self._kernel.strands.index(node.attr), len(words), *words]
            self._release(args, uses)
            at = self._slots[node] = self.tile()
            self._passing.add(node)
            self.record(to, name, at, *words[:_OPERANDS])
            for start in range(_OPERANDS, len(words), RECORD - 1):
                self.record(to, "_more", *words[start : start + RECORD - 1])
            self._release([node] * self._store_now(node), uses)

    def _store_now(self, node: Node) -> int:
        """Stores a value wherever it is wanted. Gives the number of places."""
        words = self._stored.pop(node, ())
        for word in words:
            self.store(self.slot(node), word)
        return len(words)

    def _release(self, args: Iterable[Node], uses: dict[Node, int]) -> None:
        """Counts down the uses of values, and frees the slots of those that have none left."""
        for arg in args:
            if arg in uses:
                uses[arg] -= 1
                if not uses[arg] and arg in self._passing:
                    self._free.append(self._slots[arg])

    def _read(self, node: Node, words: list[int], to: list[int]) -> tuple[str, list[int]]:
        """The handler of a read, and its operands after its result."""
        fields = self._table.fields
        if node.op in ("picture", "fetch"):
            path, channel = node.attr
            places = [fields[PictureWord(path, "pixels")], fields[PictureWord(path, "width")]]
            if node.op == "picture":
                places.append(fields[PictureWord(path, "height")])
            return f"_{node.op}", [*places, channel, *words]
        slot, plane, (k, *where) = self._kernel.slot(node.attr.slot), node.attr.plane, words
        ticks, name = node.args[0], "_sample" if where else "_past"
        sides = [fields[side] for side in extents_of(slot, self._kernel.level)] if where else []
        own_column, own_row = self._kernel.unmoved(node) if where else (False, False)
        # In the list of rows, each lane is another one.
        across = "_across" if self._along == Rate.COLUMN else "_by_row"
        own = across if own_row else "_down" * own_column
        if slot.image and ticks.op == "const":
            name += own + "_row" * (bool(where) and not own_row and where[1] >= 0)
            cell = ImageCell.back(slot, plane, ticks.attr, int(self._kernel.sweep == "grid"))
            return name, [fields[cell], *sides, *where]
        cells = self.tile()
        self._free.append(cells)
        self.record(to, "_cells", cells, k, fields[Head(slot.key)], slot.depth, slot.planes, plane)
        ring: Field = Ring(slot.key) if slot.image else History(slot.key)
        return f"{name}_at{own}" if slot.image else "_history", [fields[ring], cells, *sides, *where]

    # Loops.

    def _loop(self, node: Node, to: list[int]) -> None:
        body: LoopBody = node.attr
        assert self._graph is not None
        masked = body in self._graph.masked
        first, last, *starts = map(self.slot, node.args)
        carried = self._carried[node] = [self.room_for(TILE) for _ in starts]
        for at, start in zip(carried, starts, strict=True):
            self.record(to, "_copy", at, start)
        around = self._loop_slots[-1] if self._loop_slots else None
        budget = around[0] if around else self.room_for(TILE)
        if around is None:
            self.record(to, "_bits", budget, NEST_STEPS)
        active = self.room_for(TILE) if masked else None
        if active is not None:
            outside = around[1] if around else None
            self.record(to, *(("_inside", active) if outside is None else ("_copy", active, outside)))
        index = self.room_for(TILE if masked else UNIFORM[self._floats])
        if body.index is not None:
            self._slots[body.index] = index
        self._slots.update(zip(body.carried, carried, strict=True))
        steps: list[int] = []
        self._loop_slots.append((budget, active))
        self._compute(body.nodes, body.following, steps)
        self._loop_slots.pop()
        moves = self._carry(body, carried, active, steps)
        name = "_loop" if active is None else "_masked"
        self.record_with(steps, to, name, index, first, last, 0, budget, active or 0, moves)

    def _carry(self, body: LoopBody, carried: Sequence[int], active: int | None, to: list[int]) -> int:
        """Appends the end of a step: the carried values become those that follow, in the lanes that are `active`.
        Gives the number of these records."""
        following = list(map(self.slot, body.following))
        local = self._passing.intersection(body.nodes)
        done = {at for node, at in zip(body.following, following, strict=True) if node in local}
        for k, at in enumerate(following):
            # A carried value that becomes another one must be read before it is written.
            if at in carried and at != carried[k]:
                following[k] = self.tile()
                done.add(following[k])
                self.record(to, "_copy", following[k], at)
        moves = [(at, new) for at, new in zip(carried, following, strict=True) if at != new]
        for at, new in moves:
            self.record(to, *(("_copy", at, new) if active is None else ("select", at, active, new, at)))
        self._free += done
        return len(moves)

    # Results.

    def store(self, slot: int, field: int, plane: int = 0) -> None:
        if slot >= 0:
            uniform, slot = slot, self.room_for(TILE)
            self.record(self.by_tile, "_copy", slot, uniform)
        self.record(self.by_tile, "_store", 0, slot, field, plane)

    def real(self, node: Node) -> int:
        """The slot of a value as a float."""
        return self.slot(node) if node.kind != "bool" else self.kept("to_float", self.slot(node))

    def kept(self, name: str, *words: int) -> int:
        """The slot of a result, for good."""
        at = self.room_for(TILE)
        self.record(self.by_tile, name, at, *words)
        return at

    def pack(self, parts: int, level: Level) -> int:
        scale, offset = self.bits(level.scale), self.bits(level.offset)
        return self.kept("_pack", parts, self.real(level.base), scale, offset, level.factor, int(level.clamped))

    def finished(self, extent: Word, is_line: bool) -> bytes:
        """The words of the program."""
        once, by_row = (len(each) // RECORD + 1 for each in (self.once, self.by_row))
        header = self.room, once, by_row, self._table.fields[extent], int(is_line)
        return self.packed(header, [self.once, self.by_row, self.by_tile])


@dataclass(frozen=True, slots=True, eq=False)
class SectionTiles:
    """The records of a section: the words of its program, if it computes anything, and the places of numbers among
    them, with those among the numbers of the kernel."""

    name: str
    words: bytes
    numbers: tuple[tuple[int, int], ...]
    room: int
    table: ArgumentTable
    """The numbers of what this section and those before it use."""
    channels: Channels | None
    work: int

    def with_numbers(self, numbers: Sequence[float], floats: Precision) -> bytes:
        """The words, with the numbers of a kernel."""
        if not self.numbers:
            return self.words
        words = bytearray(self.words)
        for at, place in self.numbers:
            struct.pack_into("<q", words, at * 8, _bits(numbers[place], floats))
        return bytes(words)


# How many sections are kept: those of some windows with images, before and after an edit. If one too few were kept,
# none would serve, since each save uses all of them in turn.
_MOST_SECTIONS = 96


class TileEmitter:
    """Emits the programs of pictures, one after another. A section that has been in an earlier picture, but for its
    numbers, is not emitted again."""

    def __init__(self, callees: Callees = HANDLERS) -> None:
        self._callees = callees
        self._opened = OpenKernels(decides_list)
        self._kept: RecentlyUsed[tuple[object, ...], SectionTiles] = RecentlyUsed(_MOST_SECTIONS)
        """The sections that were used last, by what else they depend on and by their hashes."""

    def emit(self, kernel: Kernel, packed: bool) -> TileProgram | None:
        """The program of the kernel of a picture that can be a list of calls, with outputs as planes or `packed` as
        pixels; None if it needs too many slots. Raises ValueError if the outputs cannot be packed."""
        return self._program(kernel, packed, is_known=False)

    def emit_again(self, kernel: Kernel, packed: bool) -> TileProgram | None:
        """The same if all sections are known. The values of the kernel, which may not have been made yet, are not
        looked at."""
        return self._program(kernel, packed, is_known=True) if self._opened.known(kernel) is not None else None

    def _program(self, kernel: Kernel, packed: bool, is_known: bool) -> TileProgram | None:
        reading = sections_that_read(kernel) if "strand" not in self._callees.names else frozenset[Rate]()
        context: object = (packed, kernel.tick, kernel.slots, reading)
        opened = self._opened.of(kernel).kernel
        made: list[SectionTiles] = []
        for name, rate in PROGRAMS.items():
            key = (context, opened.section(rate).digest)
            tiles = self._kept.peek(key)
            if tiles is None and is_known:
                return None
            made.append(tiles or _emitted(name, opened, self._callees, packed, reading, made[-1] if made else None))
            self._kept.keep(key, made[-1])
            # What the next section uses has its numbers after what this one uses.
            context = made[-1]
        if any(tiles.room > self._callees.most_room for tiles in made):
            return None
        elements, last = made[0], made[-1]
        floats = self._callees.floats
        words = tuple((tiles.name, tiles.with_numbers(kernel.numbers, floats)) for tiles in made if tiles.words)
        base, levels = (last.channels.base, tuple(last.channels.levels)) if last.channels else (0, ())
        names = tuple(name for name, _ in words)
        layout = last.table.layout(
            names, work=elements.work, base=base, levels=levels, sections_that_read=reading
        )  # fmt: skip
        return TileProgram(layout, words, floats)


def emit_tiles(kernel: Kernel, packed: bool, callees: Callees = HANDLERS) -> TileProgram | None:
    """The program of one kernel; see `TileEmitter.emit`."""
    return TileEmitter(callees).emit(kernel, packed)


def _emitted(
    name: str, kernel: Kernel, callees: Callees, packed: bool, reading: Set[Rate], before: SectionTiles | None
) -> SectionTiles:  # fmt: skip
    """The records of a section, after those `before`."""
    section, table = kernel.section(PROGRAMS[name]), ArgumentTable()
    if before is None:
        channels = plan_channels(section.outputs) if packed else None
        program: _SectionRecords | None = _element_program(kernel, callees, table, channels)
        work = costs(section.nodes)
    else:
        table, channels, work = before.table.copied(), before.channels, 0
        program = _line_program(kernel, callees, table, channels, section.rate, section.rate in reading)
    if program is None:
        return SectionTiles(name, b"", (), 0, table, channels, work)
    words = program.finished(_EXTENTS[name], is_line=before is not None)
    return SectionTiles(name, words, tuple(program.numbers), program.room, table, channels, work)


_EXTENTS = {ELEMENTS: Word.WIDTH, COLUMNS: Word.WIDTH, ROWS: Word.HEIGHT}


def _element_program(
    kernel: Kernel, callees: Callees, table: ArgumentTable, channels: Channels | None
) -> _SectionRecords:  # fmt: skip
    """Computes the elements of a row: what is stored, and the outputs as planes, or as pixels by their `channels`."""
    section = kernel.section(Rate.ELEMENT)
    bases = [level.base for level in channels.elements] if channels else section.outputs
    stored = [(store.value, table.fields[ImageCell(*store.place, 0)]) for store in section.stores]
    program = _SectionRecords(kernel, callees, table, Rate.ELEMENT, bases, stored)
    if channels is None:
        for plane, node in enumerate(section.outputs):
            program.store(program.real(node), table.fields[Word.OUT], plane)
        return program
    pixel = program.uniform(program.once, "_base")
    for line in filter(None, map(channels.line, channels.lines)):
        pixel = program.kept("_or", pixel, program.slot(Node("line", (), "u32", line)))
    for level in channels.elements:
        pixel = program.pack(pixel, level)
    program.store(pixel, table.fields[Word.OUT])
    return program


def _line_program(
    kernel: Kernel, callees: Callees, table: ArgumentTable, channels: Channels | None, rate: Rate, is_given: bool
) -> _SectionRecords | None:
    """Computes what the elements need of each column or row, and the parts of pixels that change no more often; None if
    there is nothing to compute. If the section `is_given`, the caller computes what the elements need."""
    section = kernel.section(rate)
    wanted = [f for f in table.fields if isinstance(f, Line) and f.rate == rate and f.source == "local"]
    packing = channels.line(rate) if channels else None
    if is_given:
        wanted.clear()
    if not wanted and packing is None:
        return None

    def source(line: Line) -> Node:
        """The value of a line."""
        if line.source == "local" and not is_given:
            return section.locals[int(line.key)]
        return Node("line", (), line.kind, line)

    packed = channels.lines[rate] if channels and packing else []
    levels = [Level.of(factor, source(line), bool(channels and channels.opaque)) for factor, line in packed]
    stored = [(source(line), table.fields[line]) for line in wanted]
    program = _SectionRecords(kernel, callees, table, rate, [level.base for level in levels], stored)
    if packing is not None:
        pixel = program.uniform(program.once, "_bits", 0)
        for level in levels:
            pixel = program.pack(pixel, level)
        program.store(pixel, table.fields[packing])
    return program
