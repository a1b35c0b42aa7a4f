"""Kernels of sounds as lists of calls of ready functions (`handlers`), which need no compiler.

The first list runs once a launch. By functions for one lane, it computes what is the same at every sample; then it runs
a second list for each chunk. That computes each value over the whole chunk at once; only what feedback needs is a list
that runs for each sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from math import copysign
from typing import TypeAlias

from weft.codegen.kernel import NEST_STEPS, Kernel
from weft.codegen.native.handlers import ONE, TILE, UNIFORM, handler_names
from weft.codegen.native.loop_parts import TIME, with_waves
from weft.codegen.native.serial_parts import SerialPart, SerialParts, SerialReads, ticks_of
from weft.codegen.native.series import SERIES
from weft.codegen.native.target import DOUBLE, Head, History, PictureWord
from weft.codegen.native.tiles import DECIDING, Fusing, Records, TileProgram, period_of, uses_of
from weft.codegen.native.writer import ArgumentTable
from weft.codegen.open_numbers import NumberUse
from weft.codegen.values import LoopBody, Node, Scalar, joined, needed, operands
from weft.ir.expr import StateSlot
from weft.ir.rates import Rate

# The lanes of a slot that functions for one lane alone use.
_NARROW = 1

_WIDE = UNIFORM[DOUBLE]

# The slots begin at a multiple of 64 bytes.
_MARGIN = 64

# The operations whose functions have operands that are no values.
_CALLS = frozenset({"mod", "wave", "picture", "fetch", "state"})


def decides_chunks(use: NumberUse, value: float) -> bool:
    """Whether the list of calls of a sound depends on the value of a number."""
    return use.op in DECIDING


def emit_chunks(kernel: Kernel) -> TileProgram:
    """The program of the kernel of a sound that can be a list of calls."""
    table = ArgumentTable()
    program = _SoundProgram(kernel, table)
    words = program.packed((), [program.launch])
    scratch = program.room + _MARGIN
    return TileProgram(table.layout((SERIES,), scratch=scratch), ((SERIES, words),), DOUBLE)


# The parts of a chunk. A slot that is in no serial part takes over the new values of a chunk at once, after all reads:
# what was before the chunk is in its ring, and the rest in a tile.

Key: TypeAlias = "Node | tuple[Node, int]"
"""A value, or a result of a loop by its number."""

class _SoundProgram(Records):
    """The records of a sound, and the slots of its values. A value that is the same at every sample has a slot of one
    number, and so has a value that only a serial recurrence uses."""

    def __init__(self, kernel: Kernel, table: ArgumentTable) -> None:
        super().__init__(DOUBLE, handler_names(DOUBLE))
        self.launch: list[int] = []
        self._chunk: list[int] = []
        self._kernel, self._table = kernel, table
        self._frame = joined(Rate.FRAME, map(kernel.section, (Rate.CONSTANT, Rate.FRAME)))
        self._graph = with_waves(kernel)
        self._section = self._graph.section
        self._slots: dict[Key, int] = {}
        self._leaves: dict[object, int] = {}
        self._free: dict[int, list[int]] = {TILE: [], _WIDE: [], _NARROW: []}
        self._passing: dict[Node, int] = {}
        """The values whose slots are free for others after their last use, and the lanes of these."""
        self._loop_slots: list[tuple[int, int | None]] = []
        """The budget and the lanes of the loops around this place."""
        found = SerialParts(kernel, self._graph, SerialReads.OF_SLOTS, TILE)
        self._stored, parts = found.stored, found.parts
        self._spread: set[Key] = set()
        """The values of one number that functions for tiles read."""
        self._crossing: set[Key] = set()
        """The values of serial recurrences that other parts read, and that are outputs."""
        self._look_at(parts)
        roots = self._look_across(parts)
        self._write_launch(found)
        for part in parts:
            (self._write_samples if part.serial else self._write_chunk)(part, roots)
        self._store_outputs()
        self.record_with(self._chunk, self.launch, "_chunks")

    # What values are read by.

    def _look_across(self, parts: Sequence[SerialPart]) -> list[Node]:
        """The values that are read by other parts than their own, and those that are stored."""
        home = {node: part for part in parts for node in part.nodes}
        # Results of a loop are where it runs.
        home |= {node: home[node.args[0]] for node in home if node.op == "loop_out"}
        homes = {key: part for part in parts for key in part.slots}
        read = [*self._section.outputs]
        for part in parts:
            read += [each for node in part.nodes for each in operands(node) if home.get(each) is not part]
        for node in home:
            if node.op == "state" and ticks_of(node, self._kernel) is not None and not homes[node.attr.slot].serial:
                read.append(self._stored[node.attr])
        read += [value for place, value in self._stored.items() if not homes[place.slot].serial]
        self._crossing.update(self._key(node) for node in read if node in home and home[node].serial)
        return [*read, *self._stored.values()]

    def _look_at(self, parts: Sequence[SerialPart]) -> None:
        """Finds what functions for tiles read."""
        at_once = [part for part in parts if not part.serial]
        slots = {key for part in at_once for key in part.slots}
        stored = (value for place, value in self._stored.items() if place.slot in slots)
        self._spread.update(map(self._key, (*self._section.outputs, *stored)))
        for part in at_once:
            self._look_at_nodes(part.nodes)

    def _look_at_nodes(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            if node.op == "loop":
                body: LoopBody = node.attr
                self._spread.update(map(self._key, node.args[:2] if body in self._graph.masked else ()))
                for carried, start, following in zip(body.carried, node.args[2:], body.following, strict=True):
                    if carried in self._graph.varying:
                        self._spread |= {self._key(start), self._key(following)}
                self._look_at_nodes(body.nodes)
            elif node in self._graph.varying and node.op != "loop_out":
                self._spread.update(map(self._key, node.args))

    def _key(self, node: Node) -> Key:
        """What has the slot of a value: a scalar has that of the value that it stands for, and a result of a loop that
        of the carried value."""
        if node.op == "scalar" and node.attr.source == "local":
            return self._key(self._frame.locals[int(node.attr.key)])
        return (node.args[0], node.attr) if node.op == "loop_out" else node

    # Slots.

    def _new_slot(self, lanes: int) -> int:
        free = self._free[lanes]
        if free:
            return free.pop()
        if lanes != _NARROW:
            return self.room_for(lanes)
        first = self._new_slot(_WIDE)
        free += (first + at * DOUBLE.bytes for at in reversed(range(1, _WIDE)))
        return first

    def slot(self, node: Node) -> int:
        found = self._slots.get(node)
        if found is None:
            key = self._key(node)
            found = self._slots[node] = self._leaf(node) if key is node else self._slot_of(key)
        return found

    def _slot_of(self, key: Key) -> int:
        return self.slot(key) if isinstance(key, Node) else self._slots[key]

    def _leaf(self, node: Node) -> int:
        match node.op:
            case "const":
                key = ("const", node.attr, copysign(1.0, node.attr))
                return self._once(key, "_const", self.bits(node.attr))
            case "u32":
                return self._once(("u32", node.attr), "_bits", node.attr & 0xFFFF_FFFF)
            case "scalar":
                scalar: Scalar = node.attr
                return self._once(scalar, "_number", self._table.numbers[scalar])
            case "line" if node.attr == TIME:
                return self._by_chunk("_times")
            case "line":
                return self._by_chunk("_column", self._table.fields[node.attr])
        raise LookupError(f"{node.op} is used before it is computed")

    def _once(self, key: object, name: str, *words: int) -> int:
        """The slot of a number that is written once a launch."""
        if key not in self._leaves:
            at = self._leaves[key] = self.room_for(_WIDE)
            self.record(self.launch, name, at, *words)
        return self._leaves[key]

    def _by_chunk(self, name: str, *words: int) -> int:
        at = self.room_for(TILE)
        self.record(self._chunk, name, at, *words)
        return at

    # Lists.

    def _write_launch(self, found: SerialParts) -> None:
        """What is the same at every sample."""
        frame, section = self._frame, self._section
        read = [leaf.attr for leaf in section.leaves() if leaf.op == "scalar" and leaf.attr.source == "local"]
        roots = [frame.locals[int(scalar.key)] for scalar in read]
        wanted = needed(roots)
        self._compute([node for node in frame.nodes if node in wanted], roots, self.launch, alone=True)
        steady, used = set(found.steady), [*section.outputs, *self._stored.values()]
        used += [each for node in found.changing for each in operands(node)]
        self._compute(found.steady, {node for node in used if node in steady}, self.launch, alone=True)

    def _write_chunk(self, part: SerialPart, roots: Sequence[Node]) -> None:
        """A part over the whole chunk at once."""
        self._compute(part.nodes, roots, self._chunk, alone=False)
        for key in part.slots:
            slot = self._kernel.slot(key)
            for place, value in self._stored.items():
                if place.slot == key:
                    words = self._tile_of(value), *self._ring(key), slot.planes, place.plane, slot.depth + 1
                    self.record(self._chunk, "_keep", 0, *words)
            self.record(self._chunk, "_advance", 0, self._ring(key)[1], slot.depth + 1)

    def _write_samples(self, part: SerialPart, roots: Sequence[Node]) -> None:
        """A part, sample by sample: its values, their stores, and the end of the tick."""
        sample: list[int] = []
        self._compute(part.nodes, roots, sample, alone=True)
        for key in part.slots:
            self._end_tick(self._kernel.slot(key), sample)
        self.record_with(sample, self._chunk, "_samples")

    def _end_tick(self, slot: StateSlot, to: list[int]) -> None:
        """Appends the end of the tick of a slot: its new values, and that it continues in its ring."""
        ring, cells = self._ring(slot.key), slot.depth + 1
        values = {place.plane: self.slot(value) for place, value in self._stored.items() if place.slot == slot.key}
        if slot.planes == 1 == len(values):
            self.record(to, f"{ONE}_push", 0, values[0], *ring, cells)
            return
        for plane, value in values.items():
            self.record(to, f"{ONE}_keep", 0, value, *ring, slot.planes, plane)
        self.record(to, f"{ONE}_advance", 0, ring[1], cells)

    def _ring(self, key: str) -> tuple[int, int]:
        """The words of the ring of a slot."""
        return self._table.fields[History(key)], self._table.fields[Head(key)]

    def _tile_of(self, node: Node) -> int:
        """The slot of a value as a tile of floats."""
        at = self.slot(node)
        if at >= 0 or node.kind == "bool":
            from_at, at = at, self.room_for(TILE)
            self.record(self._chunk, "_copy" if node.kind == "float" else "to_float", at, from_at)
        return at

    def _store_outputs(self) -> None:
        for number, node in enumerate(self._section.outputs):
            self.record(self._chunk, "_store", 0, self._tile_of(node), number)

    # Values.

    def _compute(self, nodes: Sequence[Node], roots: Iterable[Node], to: list[int], alone: bool) -> None:
        """Appends the records of values that are computed for one lane (`alone`), or of those of a chunk or of the body
        of a loop. Values from outside keep their slots."""
        uses = uses_of(nodes, roots)
        varying: Set[Node] = frozenset() if alone else self._graph.varying
        fusing = Fusing(nodes, uses, varying)
        for node in nodes:
            if node in fusing.inside or node.op == "loop_out":
                continue
            if node.op == "loop":
                self._loop(node, to, alone)
                self._release(operands(node), uses)
                continue
            name, args = fusing.found.get(node) or (node.op, node.args)
            words = list(map(self.slot, args))
            if name in _CALLS:
                name, args, words = self._call(node, words)
            is_one = node not in varying
            lanes = self._lanes_of(node) if is_one else TILE
            if node.kind == "float" and any(arg.kind != "float" for arg in args):
                # The floats would overwrite what has not been read of an operand of 4 bytes in the same slot.
                at = self._slots[node] = self._new_slot(lanes)
                self._release(args, uses)
            else:
                self._release(args, uses)
                at = self._slots[node] = self._new_slot(lanes)
            self._passing[node] = lanes
            self.record(to, ONE + name if is_one else name, at, *words)
            if lanes == _WIDE:
                self.record(to, "_spread" if node.kind == "float" else "_spread_bits", at)
            if name == "_before" and not alone:
                self._add_shift(node, at)

    def _add_shift(self, node: Node, at: int) -> None:
        """Appends what a read of the past takes from the chunk itself."""
        ticks = ticks_of(node, self._kernel)
        if ticks is not None and ticks < TILE:
            self.record(self._chunk, "_shift", at, self._tile_of(self._stored[node.attr]), ticks)

    def _lanes_of(self, key: Key) -> int:
        """The lanes of the slot of a value that is computed for one lane."""
        if key in self._crossing:
            return TILE
        return _WIDE if key in self._spread else _NARROW

    def _release(self, args: Iterable[Node], uses: dict[Node, int]) -> None:
        """Counts down the uses of values, and frees the slots of those that have none left."""
        for arg in args:
            if arg in uses:
                uses[arg] -= 1
                if not uses[arg] and arg in self._passing:
                    self._free[self._passing[arg]].append(self._slots[arg])

    def _call(self, node: Node, slots: list[int]) -> tuple[str, tuple[Node, ...], list[int]]:
        """How a value is computed whose operands have these slots: the function, without what says that it is for one
        lane, the operands that it takes, and its words."""
        fields, args = self._table.fields, node.args
        match node.op:
            case "mod" if (period := period_of(node)) is not None:
                return "_modulo", args[:1], [slots[0], self.bits(period), self.bits(1 / period)]
            case "wave":
                return f"_wave_{node.attr}", args, slots
            case "picture" | "fetch":
                path, channel = node.attr
                places = [fields[PictureWord(path, "pixels")], fields[PictureWord(path, "width")]]
                if node.op == "picture":
                    places.append(fields[PictureWord(path, "height")])
                return f"_{node.op}", args, [*places, channel, *slots]
            case "state":
                (key, plane), ticks = node.attr, ticks_of(node, self._kernel)
                slot, ring = self._kernel.slot(key), self._ring(key)
                if ticks is None:
                    return "_before_by", args, [*ring, slot.depth, slot.planes, plane, *slots]
                return "_before", (), [*ring, ticks, slot.depth + 1, slot.planes, plane]
        return node.op, args, slots

    # Loops.

    def _loop(self, node: Node, to: list[int], alone: bool) -> None:
        body: LoopBody = node.attr
        masked = not alone and body in self._graph.masked
        first, last, *starts = map(self.slot, node.args)
        carried = [self._carried_slot(node, k, alone) for k in range(len(starts))]
        by_tile = [not alone and each in self._graph.varying for each in body.carried]
        for at, start, whole in zip(carried, starts, by_tile, strict=True):
            self.record(to, "_copy" if whole else f"{ONE}_copy", at, start)
        around = self._loop_slots[-1] if self._loop_slots else None
        budget = around[0] if around else self._budget(masked, to)
        active = self.room_for(TILE) if masked else None
        if active is not None:
            outside = around[1] if around else None
            self.record(to, *(("_inside", active) if outside is None else ("_copy", active, outside)))
        index = self.room_for(TILE if masked else _WIDE)
        if body.index is not None:
            self._slots[body.index] = index
        self._slots.update(zip(body.carried, carried, strict=True))
        self._slots.update(((node, k), at) for k, at in enumerate(carried))
        steps: list[int] = []
        for value, at in zip(body.carried, carried, strict=True):
            if value in self._spread and at >= 0:
                self.record(steps, "_spread", at)
        self._loop_slots.append((budget, active))
        self._compute(body.nodes, body.following, steps, alone)
        self._loop_slots.pop()
        self._carry(body, carried, by_tile, active, steps)
        name = "_loop" if active is None else "_masked"
        self.record_with(steps, to, name, index, first, last, 0, budget, active or 0)
        for k, at in enumerate(carried):
            if (node, k) in self._spread and at >= 0:
                self.record(to, "_spread", at)

    def _carried_slot(self, loop: Node, k: int, alone: bool) -> int:
        carried = loop.attr.carried[k]
        if (not alone and carried in self._graph.varying) or (loop, k) in self._crossing:
            return self.room_for(TILE)
        return self.room_for(_WIDE)

    def _budget(self, masked: bool, to: list[int]) -> int:
        """The slot of the steps that a nest may make: for each lane if these may leave at different steps."""
        if masked:
            at = self.room_for(TILE)
            self.record(to, "_bits", at, NEST_STEPS)
        else:
            at = self.room_for(_WIDE)
            self.record(to, f"{ONE}_copy", at, self._once(("u32", NEST_STEPS), "_bits", NEST_STEPS))
        return at

    def _carry(
        self, body: LoopBody, carried: Sequence[int], by_tile: Sequence[bool], active: int | None, to: list[int]
    ) -> None:
        """Appends the end of a step: the carried values become those that follow, in the lanes that are `active`."""
        following = list(map(self.slot, body.following))
        names = ["_copy" if whole else f"{ONE}_copy" for whole in by_tile]
        own = [node for node in dict.fromkeys(body.following) if node in self._passing and node in set(body.nodes)]
        copies: list[tuple[int, int]] = []
        for k, at in enumerate(following):
            # A carried value that becomes another one must be read before it is written.
            if at in carried and at != carried[k]:
                lanes = TILE if by_tile[k] else _NARROW
                following[k] = self._new_slot(lanes)
                copies.append((lanes, following[k]))
                self.record(to, names[k], following[k], at)
        for at, new, name in zip(carried, following, names, strict=True):
            if at != new:
                self.record(to, *((name, at, new) if active is None else ("select", at, active, new, at)))
        for lanes, at in (*((self._passing[node], self._slots[node]) for node in own), *copies):
            self._free[lanes].append(at)
