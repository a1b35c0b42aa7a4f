"""Writes the values of a section as code, for one element: leaves, operations, reads and loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from weft.codegen.kernel import LOOP_STEPS, NEST_STEPS, Kernel
from weft.codegen.values import Line, Node, Scalar, Section, Store
from weft.codegen.wasm.abi import (
    FIRST, NUMBER, ORIGIN, RATE, STOPPED, WORD, BlockLayout, LocalPlace, RingPlace, SampledPlace
)
from weft.codegen.wasm.builder import FunctionBuilder, Variable, WasmValue
from weft.codegen.wasm.lane_code import SingleLane, WasmLanes
from weft.codegen.wasm.reading import FETCH, PIXEL, PLANE
from weft.ir.expr import SlotPlane
from weft.ir.rates import Rate
from weft.ops import OPS, ieee

BLOCK = "block"
"""The parameter of each function: the address of the block."""


class WasmWriter:
    """Writes values of one section. `at` says which row and column the element has."""

    def __init__(self, b: FunctionBuilder, kernel: Kernel, layout: BlockLayout, section: Section) -> None:
        self.b = b
        self.lanes: WasmLanes = SingleLane(b)
        self.kernel = kernel
        self.layout = layout
        self.section = section
        self.at: dict[Rate, WasmValue] = {}
        self.heads: dict[str, Variable] = {}
        """The cell that a sample writes, for slots that advance with each."""
        self._values: dict[Node, WasmValue] = {}
        self._carried: dict[Node, Variable] = {}
        self._results: dict[Node, Sequence[Variable]] = {}
        self._given: dict[object, WasmValue] = {}
        self._lines: dict[Line, WasmValue] = {}
        self._locals: Mapping[int, LocalPlace] = {each.number: each for each in layout.locals}
        self._rings: Mapping[str, RingPlace] = {each.key: each for each in layout.rings}
        self._sampled: Mapping[str, SampledPlace] = {each.name: each for each in layout.sampled}
        self._places = {each.name: each.offset for each in layout.lines}
        self._budget: Variable | None = None

    # The block.

    def given(self, key: object, compute: Callable[[], WasmValue]) -> WasmValue:
        """A value that is the same in the whole function, computed at its beginning."""
        if key not in self._given:
            with self.b.at_entry():
                self._given[key] = compute()
        return self._given[key]

    def word(self, offset: int) -> WasmValue:
        """A whole number of the block."""
        return self.given(("word", offset), lambda: self.b.load("i32", self.b.param(BLOCK), offset))

    def number(self, offset: int) -> WasmValue:
        """A number of the block."""
        return self.given(("number", offset), lambda: self.b.load("f64", self.b.param(BLOCK), offset))

    # Places.

    def moved_to(self, rate: Rate, write: Callable[[], None]) -> Callable[[WasmValue], None]:
        """What writes at each column or row. The lines that change there are read first."""

        def write_at(at: WasmValue) -> None:
            self.at[rate] = at
            for leaf in self.section.leaves():
                if leaf.op == "line" and (leaf.attr.rate == Rate.ROW) == (rate == Rate.ROW):
                    self._lines[leaf.attr] = self._loaded(leaf.attr)
            write()

        return write_at

    def address(self, base: WasmValue, at: WasmValue, size: int) -> WasmValue:
        """The address of an item of an array."""
        shift = self.b.i32(size.bit_length() - 1)
        return self.b.put("i32.add", base, self.b.put("i32.shl", at, shift))

    def store_number(self, value: WasmValue, base: WasmValue, at: WasmValue) -> None:
        self.b.store(value, self.address(base, at, NUMBER))

    # Values.

    def value(self, node: Node) -> WasmValue:
        """The value of a node. Raises LookupError if it has not been computed."""
        match node.op, node.attr:
            case "const", float(number):
                return self.lanes.real(number)
            case "u32", int(bits):
                return self.lanes.bits(bits)
            case "scalar", Scalar() as scalar:
                return self.scalar(scalar)
            case "line", Line() as line:
                return self.line(line)
            case ("loop_value" | "loop_index"), _ if node in self._carried:
                return self.b.get(self._carried[node])
        if node not in self._values:
            raise LookupError(f"{node.op} is used before it is computed")
        return self._values[node]

    def keep(self, node: Node, value: WasmValue) -> None:
        """Notes the value of a node."""
        note = self.section.notes.get(node)
        if note is not None and not value.name:
            value.name = note.name
        self._values[node] = value

    def as_real(self, node: Node) -> WasmValue:
        """The value as a float."""
        value = self.value(node)
        return self.lanes.computed(OPS["to_float"], [value]) if node.kind == "bool" else value

    def scalar(self, scalar: Scalar) -> WasmValue:
        if isinstance(scalar.key, int):
            place = self._locals[scalar.key]
            return self.number(place.offset) if place.type == "float" else self.word(place.offset)
        return self.number(self.layout.number(scalar.source, scalar.key).offset)

    def line(self, line: Line) -> WasmValue:
        """A coordinate or a local that changes by column, row or element."""
        return self._lines[line]

    def _loaded(self, line: Line) -> WasmValue:
        at = self.at[Rate.ROW if line.rate == Rate.ROW else Rate.COLUMN]
        if not isinstance(line.key, int):
            offset = self._places.get(line.key)
            return self.time(at) if offset is None else self.b.load("f64", self.address(self.word(offset), at, NUMBER))
        local = self._locals[line.key]
        is_real = local.type == "float"
        place = self.address(self.word(local.offset), at, NUMBER if is_real else WORD)
        return self.b.load("f64" if is_real else "i32", place)

    def time(self, at: WasmValue) -> WasmValue:
        """The time of a sample of a sound, from its number in the launch."""
        first, rate, origin = (self.number(offset) for offset in (FIRST, RATE, ORIGIN))
        number = self.b.put("f64.add", first, self.b.put("f64.convert_i32_s", at))
        return self.b.put("f64.add", origin, self.b.put("f64.div", number, rate))

    def keep_locals(self, locals_: Mapping[int, Node]) -> None:
        """Stores what others read of this section."""
        for number, node in locals_.items():
            place, value = self._locals[number], self.value(node)
            if place.rate in ("constant", "frame"):
                self.b.store(value, self.b.param(BLOCK), place.offset)
            else:
                at = self.at[Rate.ROW if place.rate == "row" else Rate.COLUMN]
                self.b.store(value, self.address(self.word(place.offset), at, NUMBER if value.type == "f64" else WORD))

    # Operations.

    def write(self, nodes: Iterable[Node]) -> None:
        """Computes values, in their order."""
        for node in nodes:
            if node.op == "loop":
                self._loop(node)
            else:
                self.keep(node, self.computed(node))

    def computed(self, node: Node) -> WasmValue:
        """The value of an operation other than a loop."""
        if node.op in OPS:
            return self.lanes.computed(OPS[node.op], [self.value(arg) for arg in node.args])
        match node.op:
            case "loop_out":
                return self.b.get(self._results[node.args[0]][node.attr])
            case "state":
                return self._state(node)
            case "sample":
                return self._sample(node)
            case "picture":
                place = self._sampled[node.attr.picture]
                address, columns, rows = (self.word(place.offset + WORD * at) for at in range(3))
                first = self.b.put("i32.add", address, self.b.i32(4 * node.attr.plane))
                places = map(self._position, node.args, (columns, rows))
                return self.b.call(PIXEL, "f64", first, columns, rows, *places)
            case "fetch":
                place = self._sampled[node.attr.picture]
                address, samples = (self.word(place.offset + WORD * at) for at in range(2))
                first = self.b.put("i32.add", address, self.b.i32(4 * node.attr.plane))
                return self.b.call(FETCH, "f64", first, samples, self.value(node.args[0]))
            case "strand":
                number = self.kernel.strands.index(node.attr)
                return self.b.call(f"strand.{number}", "f64", *map(self.value, node.args))
        raise LookupError(f"nothing computes {node.op}")

    # State.

    def ring(self, place: SlotPlane) -> RingPlace:
        """The ring of a slot."""
        return self._rings[place.slot]

    def begin_heads(self, rings: Iterable[RingPlace]) -> None:
        """Takes the cells of slots that advance with each sample into variables."""
        for ring in rings:
            self.heads[ring.key] = self.b.variable("i32", self.word(ring.head), "head")

    def advance_heads(self) -> None:
        """Ends a sample."""
        for key, head in self.heads.items():
            following = self.b.put("i32.add", self.b.get(head), self.b.i32(1))
            is_over = self.b.put("i32.gt_s", following, self.b.i32(self._rings[key].depth))
            self.b.set((head,), (self.b.put("select", self.b.i32(0), following, is_over, kind="i32"),))

    def keep_heads(self) -> None:
        for key, head in self.heads.items():
            self.b.store(self.b.get(head), self.b.param(BLOCK), self._rings[key].head)

    def store_far(self, place: SlotPlane, value: WasmValue) -> None:
        """Stores a new value of a slot."""
        ring = self._rings[place.slot]
        self.b.store(value, self._here(ring, self.plane(ring, self._head(ring), place.plane)))

    def _head(self, ring: RingPlace) -> WasmValue:
        return self.b.get(self.heads[ring.key]) if ring.key in self.heads else self.word(ring.head)

    def cell(self, ring: RingPlace, ticks: Node) -> WasmValue:
        """The cell of a ring that was written this many ticks ago, rounded down and clamped; 1 for NaN."""
        if ticks.op == "const" and ring.key not in self.heads:
            key = ("cell", ring.key, repr(ticks.attr))
            return self.given(key, lambda: self._cell_of(ring, self._ticks_back(ring, ticks)))
        return self._cell_of(ring, self._ticks_back(ring, ticks))

    def _ticks_back(self, ring: RingPlace, ticks: Node) -> WasmValue:
        least = 0 if self.kernel.sweep == "points" else 1
        if ticks.op == "const":
            known = float(ticks.attr)
            return self.b.i32(int(min(known, ring.depth)) if known >= least else 1)
        b = self.b
        k, depth = self.as_real(ticks), b.f64(float(ring.depth))
        most = b.put("select", k, depth, b.put("f64.lt", k, depth), kind="f64")
        whole = b.put("i32.trunc_sat_f64_s", most)
        is_usual = b.put("f64.ge", k, b.f64(float(least)))
        return b.put("select", whole, b.i32(1), is_usual, kind="i32")

    def _cell_of(self, ring: RingPlace, back: WasmValue) -> WasmValue:
        b = self.b
        found = b.put("i32.sub", self._head(ring), back)
        around = b.put("i32.add", found, b.i32(ring.depth + 1))
        return b.put("select", around, found, b.put("i32.lt_s", found, b.i32(0)), kind="i32")

    def plane(self, ring: RingPlace, cell: WasmValue, plane: int) -> WasmValue:
        """The address of a plane of a cell."""
        b = self.b
        number = b.put("i32.add", b.put("i32.mul", cell, b.i32(ring.planes)), b.i32(plane))
        if ring.image:
            columns, rows = self.word(ring.size), self.word(ring.size + WORD)
            extent = self.given(("extent", ring.key), lambda: b.put("i32.mul", columns, rows))
            number = b.put("i32.mul", number, extent)
        return self.address(self.word(ring.offset), number, NUMBER)

    def _here(self, ring: RingPlace, plane: WasmValue) -> WasmValue:
        """The address of this element of an image, or of a number."""
        if not ring.image:
            return plane
        b = self.b
        row = b.put("i32.mul", self.at[Rate.ROW], self.word(ring.size))
        return self.address(plane, b.put("i32.add", row, self.at[Rate.COLUMN]), NUMBER)

    def _state(self, node: Node) -> WasmValue:
        ring = self._rings[node.attr.slot]
        return self.b.load("f64", self._here(ring, self._plane_of(ring, node.args[0], node.attr.plane)))

    def _plane_of(self, ring: RingPlace, ticks: Node, plane: int) -> WasmValue:
        cell = self.cell(ring, ticks)
        if ticks.op == "const" and ring.key not in self.heads:
            return self.given(("plane", ring.key, repr(ticks.attr), plane), lambda: self.plane(ring, cell, plane))
        return self.plane(ring, cell, plane)

    def _sample(self, node: Node) -> WasmValue:
        ring, (ticks, *place) = self._rings[node.attr.slot], node.args
        sizes = self.word(ring.size), self.word(ring.size + WORD)
        # Along an axis that no remap moves, it is the pixel itself, since coordinates are rounded.
        x, y = (
            self.b.put("f64.convert_i32_s", self.at[axis]) if is_own else self._position(coordinate, size)
            for axis, is_own, coordinate, size in zip(
                (Rate.COLUMN, Rate.ROW), self.kernel.unmoved(node), place, sizes, strict=True
            )
        )
        return self.b.call(PLANE, "f64", self._plane_of(ring, ticks, node.attr.plane), *sizes, x, y)

    def _position(self, coordinate: Node, size: WasmValue) -> WasmValue:
        """Where a coordinate is along an axis of this many pixels, from the centre of the first one."""
        extent = self.given(("extent", size), lambda: self.b.put("f64.convert_i32_s", size))
        return self.lanes.sub(self.lanes.mul(self.value(coordinate), extent), self.lanes.real(0.5))

    def store_state(self, stores: Sequence[Store]) -> None:
        """Stores new values of slots. They are all computed before the first of them is stored."""
        for place, value in [(store.place, self.as_real(store.value)) for store in stores]:
            self.store_far(place, value)

    # Loops.

    def _loop(self, node: Node) -> None:
        """Runs the steps of a loop, within its limits."""
        b, body = self.b, node.attr
        first, last = (self.value(arg) for arg in node.args[:2])
        carried = self.carry(body.carried, node.args[2:])
        outer = self._budget
        if body.outermost:
            self._budget = b.variable("i32", b.i32(NEST_STEPS), "steps_left") if body.nested else None
        steps = b.variable("i32", b.i32(0), "steps")
        with b.within("block", "end") as end, b.within("loop", "step") as step:
            index = self.step_index(first, last, steps, end)
            self._check_limits(node, steps, end)
            if body.index is not None:
                self._values[body.index] = index
            self.write(body.nodes)
            b.set(carried, [self.value(each) for each in body.following])
            b.set((steps,), (b.put("i32.add", b.get(steps), b.i32(1)),))
            b.do("br", immediate=step)
        self._results[node] = carried
        self._budget = outer

    def carry(self, carried: Sequence[Node], starts: Sequence[Node]) -> list[Variable]:
        """Variables for what a loop carries, with what it carries before the first step."""
        made = [self.b.variable("f64", None, "carried") for _ in carried]
        self.b.set(made, [self.value(start) for start in starts])
        self._carried.update(zip(carried, made, strict=True))
        return made

    def step_index(self, first: WasmValue, last: WasmValue, steps: Variable, end: str) -> WasmValue:
        """The variable of a loop in this step. Leaves the loop if there is no such step."""
        b = self.b
        index = b.put("f64.add", first, b.put("f64.convert_i32_s", b.get(steps)))
        b.do("br_if", b.put("i32.eqz", b.put("f64.le", index, last)), immediate=end)
        return index

    def stop_if(self, stops: WasmValue, end: str) -> None:
        """Leaves a loop that has met its limit."""
        b = self.b
        with b.within("if", "", stops):
            b.store(b.i32(1), b.param(BLOCK), STOPPED)
            b.do("br", immediate=end)

    def _check_limits(self, node: Node, steps: Variable, end: str) -> None:
        b, body = self.b, node.attr
        if not body.nested and is_short(node):
            return
        stops = b.put("i32.eq", b.get(steps), b.i32(LOOP_STEPS))
        if self._budget is not None:
            stops = b.put("i32.or", stops, b.put("i32.eqz", b.get(self._budget)))
        self.stop_if(stops, end)
        if self._budget is not None:
            b.set((self._budget,), (b.put("i32.sub", b.get(self._budget), b.i32(1)),))


def is_short(loop: Node) -> bool:
    """Whether a loop is known to end before its limit."""
    first, last = loop.args[:2]
    return first.op == last.op == "const" and ieee.steps(first.attr, last.attr) <= LOOP_STEPS
