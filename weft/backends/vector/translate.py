"""Translates the sections of a kernel to programs of the vector machine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from weft.backends.vector.steps import (
    HERE, NUMPY, ArrayValue, ConstantArray, Extent, Kept, Kind, LineArray, LoopSteps, Nest, Operand, OperandGroup,
    Register, ScalarArray, Step, VectorProgram, copy_narrowed, copy_where, fetch_samples, joined, load_state,
    load_strand, run_loop, run_masked_loop, sample_picture, sample_state, store_state
)
from weft.codegen.kernel import Kernel
from weft.codegen.values import LEAVES as GIVEN, LoopBody, Node, Section, operands
from weft.ir.expr import SlotPlane
from weft.ir.rates import Rate
from weft.ops import OPS
from weft.ops.spec import OpSpec, ValueType

_ZERO = ConstantArray(0.0)


class Emitter:
    """Writes a program and allocates its registers, which are reference-counted: a register is free again when all its
    references have been released."""

    def __init__(self) -> None:
        self.blocks: list[list[Step]] = [[]]
        """The steps of the program, and of the loops that have begun."""
        self._table: list[Operand] = []
        self._noted: list[Operand] = []
        """The objects in `_places`, kept alive so that their ids stay unique."""
        self._places: dict[int, int] = {}
        """The index of each object in the table, by its id: different entries may be equal, such as 0 and -0, or the
        planes of a slot and of a picture."""
        self._holders: dict[Register, int] = {}
        self._free: defaultdict[tuple[Kind, Extent], list[Register]] = defaultdict(list)
        self._allocated: dict[tuple[Kind, Extent], int] = {}

    def program(self) -> VectorProgram:
        """The program emitted so far."""
        return VectorProgram(tuple(self.blocks[0]), tuple(self._table), self._allocated)

    def emit(self, *call: Operand) -> None:
        """Appends a call: a function and its operands."""
        self.blocks[-1].append(self._step(call))

    def _step(self, entries: tuple[Operand, ...]) -> Step:
        """The indices of entries in the table; adds missing ones."""
        places = self._places
        return tuple([places[id(entry)] if id(entry) in places else self._add(entry) for entry in entries])

    def _add(self, entry: Operand) -> int:
        self._noted.append(entry)
        self._table.append(OperandGroup(self._step(entry)) if type(entry) is tuple else entry)
        place = self._places[id(entry)] = len(self._table) - 1
        return place

    def allocate(self, kind: Kind, extent: Extent) -> Register:
        """A register without references."""
        free = self._free[kind, extent]
        if free:
            return free.pop()
        number = self._allocated.get((kind, extent), 0)
        self._allocated[kind, extent] = number + 1
        return Register(kind, extent, number)

    def free(self, *registers: Register) -> None:
        """Frees registers without references."""
        for register in registers:
            self._free[register.kind, register.extent].append(register)

    def release(self, *values: ArrayValue) -> None:
        """Releases references to values, and frees registers without further ones."""
        for value in values:
            if type(value) is Register:
                left = self._holders.pop(value) - 1
                if left:
                    self._holders[value] = left
                else:
                    self._free[value.kind, value.extent].append(value)

    def as_type(self, value: ArrayValue, wanted: ValueType) -> ArrayValue:
        """The value as another type; releases the given one."""
        if value.kind == wanted:
            return value
        self.release(value)
        out = self.allocate(wanted, value.extent)
        if wanted == "float":
            self.emit(np.copyto, out, value)
        else:
            self.emit(np.not_equal, value, _ZERO, out)
        return self.held(out)

    def held(self, register: Register) -> Register:
        """The register, with a reference added."""
        self._holders[register] = self._holders.get(register, 0) + 1
        return register

    def hold(self, value: ArrayValue) -> None:
        """Adds a reference to a value."""
        if type(value) is Register:
            self._holders[value] += 1


# Translating the values of a section.

# The extent of the values of a section; those of rarer sections are narrower.
EXTENTS: Mapping[Rate, Extent] = {
    Rate.CONSTANT: Extent.ONE, Rate.FRAME: Extent.ONE,
    Rate.COLUMN: Extent.COLUMNS, Rate.ROW: Extent.ROWS, Rate.ELEMENT: Extent.ALL,
}  # fmt: skip


_ROWS: Mapping[str, OpSpec] = {row.name: row for row in OPS.values() if row.expand is None}


@dataclass(slots=True)
class LoopPlan:
    """What must be known about a loop before its body is translated: the extent of the bounds of its nest (if they
    vary, elements stop at different steps), and the extents of its carried values."""

    bounds: Extent
    carried: list[Extent]


class _Starts(NamedTuple):
    """The point where the initial values of a loop's carried values have been copied."""

    loop: Node


class _LastUses:
    """The lifetimes of a section's values. `last` has the values whose last use is a given value, body, or `_Starts` of
    a loop; `used` are all values with a later use, and `results` are the results of loops, by their numbers."""

    def __init__(self, section: Section) -> None:
        self.last: dict[object, list[Node]] = {}
        self.used: set[Node] = set(section.outputs)
        self._returned = frozenset(section.outputs)
        self.results: dict[Node, dict[int, Node]] = {}
        self._walk(section.nodes, None)

    def _walk(self, nodes: Sequence[Node], body: LoopBody | None) -> None:
        own = set(nodes)
        last: dict[Node, object] = {}
        for node in nodes:
            if node.op == "loop_out":
                self.results.setdefault(node.args[0], {})[node.attr] = node
            elif node.op == "loop":
                self._walk(node.attr.nodes, node.attr)
                kept = {*node.args[:2], *list(operands(node))[len(node.args) :]}
                last.update((start, _Starts(node)) for start in node.args[2:] if start in own)
                last.update((arg, node) for arg in kept if arg in own)
            else:
                for arg in node.args:
                    if arg in own:
                        last[arg] = node
        if body is not None:
            last.update((node, body) for node in body.following if node in own)
        self.used.update(last)
        for node, user in last.items():
            if node not in self._returned:
                self.last.setdefault(user, []).append(node)


@dataclass(slots=True)
class _LoopRegisters:
    plan: LoopPlan
    carried: list[Register]
    masks: tuple[Register, Register] | None
    """The mask of the elements that take part in a step, and a scratch register like it."""
    spent: Register | None


class Translator(Emitter):
    """Translates one section.

    `plans` has what earlier passes found out about its loops. This pass updates it; `stable` is False if the pass
    relied on a plan that turned out to be wrong.
    """

    def __init__(self, kernel: Kernel, rate: Rate, kept: frozenset[int], plans: dict[LoopBody, LoopPlan]) -> None:
        super().__init__()
        self.kernel = kernel
        self.stable = True
        self._section = kernel.section(rate)
        self._plans = plans
        self._uses = _LastUses(self._section)
        self._kept: dict[Node, list[LineArray]] = {}
        """The lines in which values are left for the element section."""
        for number, node in self._section.locals.items():
            if number in kept:
                self._kept.setdefault(node, []).append(LineArray("local", number, node.kind, EXTENTS[rate]))
        self._stores: dict[Node, list[SlotPlane]] = {}
        for store in self._section.stores:
            self._stores.setdefault(store.value, []).append(store.place)
        self._loops: list[_LoopRegisters] = []
        self._values: dict[Node, ArrayValue] = {}

    def read(self) -> list[ArrayValue]:
        """Translates the whole section; gives the values that it returns."""
        for node in (*self._kept, *self._stores):
            if node.op in GIVEN:
                self._put_away(node)
        self._read(self._section.nodes)
        returned: list[ArrayValue] = []
        for node in self._section.outputs:
            value = self._value(node)
            if value in returned:
                self.hold(value)
            returned.append(value)
        return returned

    def _read(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            if node.op == "loop":
                self._loop(node)
            elif node.op != "loop_out":  # the end of the loop has computed that
                self._values[node] = self._computed(node)
            self._put_away(node)
            if node.op != "loop" and node not in self._uses.used:
                self.release(self._values[node])

    def _computed(self, node: Node) -> Register:
        match node.op:
            case "state":
                out = self._load_state(node)
            case "sample":
                k, x, y = node.args
                source = self.kernel.slot(node.attr.slot), node.attr.plane, self._value(k)
                out = self._sample(sample_state, source, [x, y, k])
            case "picture":
                out = self._sample(sample_picture, node.attr, node.args)
            case "fetch":
                number = self._value(node.args[0])
                out = self.allocate("float", number.extent)
                self.emit(fetch_samples, HERE, node.attr, number, out)
            case "strand":
                args = [self._value(arg) for arg in node.args]
                out = self.allocate("float", _extent_of(args))
                self.emit(load_strand, HERE, node.attr, out, *args)
            case op if op in _ROWS:
                return self.held(self._row(node, _ROWS[op]))
            case _:
                raise TypeError(f"nothing computes {node.op}")
        self._forget(node)
        return self.held(out)

    # Values.

    def _value(self, node: Node) -> ArrayValue:
        """Where a value is stored. It is an input, or has been translated already."""
        found = self._values.get(node)
        if found is None:
            found = self._values[node] = self._given(node)
        return found

    def _given(self, node: Node) -> ArrayValue:
        if node.op in ("const", "u32"):
            return ConstantArray(node.attr, "u32" if node.op == "u32" else "float")
        source, key, *_ = node.attr
        extent = EXTENTS[node.attr.rate] if node.op == "line" else Extent.ONE
        if extent == Extent.ONE:
            return ScalarArray(source, key, node.kind)
        return LineArray(source, key, node.kind, extent)

    def _forget(self, user: object) -> None:
        """Releases the values whose last use is `user`."""
        self.release(*[self._values[node] for node in self._uses.last.get(user, ())])

    def _put_away(self, node: Node) -> None:
        for line in self._kept.get(node, ()):
            self.emit(copy_narrowed, Kept(line), self._value(node))
        for place in self._stores.get(node, ()):
            self.emit(store_state, HERE, place, self._value(node))

    # Computation.

    def _row(self, node: Node, row: OpSpec) -> Register:
        args = [self._value(arg) for arg in node.args]
        extents = [arg.extent for arg in args]
        extent = Extent.ALL if Extent.ALL in extents else joined(extents)
        if isinstance(row.vector, str):
            # A ufunc may overwrite its operands: fewer registers, which stay in the cache.
            self._forget(node)
            out = self.allocate(row.gives, extent)
            if extent not in extents and row.type_of_operand(0) == row.gives:
                # Columns combined with rows: broadcasting the columns first is faster than numpy's broadcasting of
                # both.
                columns = extents.index(Extent.COLUMNS)
                self.emit(np.copyto, out, args[columns])
                args[columns] = out
            self.emit(getattr(np, row.vector), *args, out)
        else:
            out = self.allocate(row.gives, extent)
            temps = [self.allocate("float", extent) for _ in range(row.temps)]
            self.emit(row.vector, NUMPY, out, *args, *temps)
            self.free(*temps)
            self._forget(node)
        return out

    def _load_state(self, node: Node) -> Register:
        k = self._value(node.args[0])
        slot = self.kernel.slot(node.attr.slot)
        out = self.allocate("float", Extent.ALL if slot.image else k.extent)
        self.emit(load_state, HERE, slot, node.attr.plane, k, out)
        return out

    def _sample(self, function: Callable[..., None], source: Operand, args: Sequence[Node]) -> Register:
        """Samples at x and y, and possibly a number of ticks ago."""

        def scratch_of(*kinds: Kind, extent: Extent) -> tuple[Register, ...]:
            return tuple(self.allocate(kind, extent) for kind in kinds)

        places = [self._value(arg) for arg in args]
        x, y, *_ = places
        out = self.allocate("float", _extent_of(places))
        scratch = (
            scratch_of("index", "index", "float", "float", extent=x.extent),
            scratch_of("index", "index", "float", "float", extent=_extent_of(places[1:])),
            scratch_of("index", "float", "float", extent=out.extent),
        )
        self.emit(function, HERE, source, (x, y), out, scratch)
        for registers in scratch:
            self.free(*registers)
        return out

    # Loops.

    def _loop(self, node: Node) -> None:
        body: LoopBody = node.attr
        first, last, *starts = (self._value(arg) for arg in node.args)
        plan = self._plans.setdefault(body, LoopPlan(Extent.ONE, [Extent.ONE] * len(starts)))
        nest = self._loops[0].plan if self._loops else plan
        nest.bounds = self._widened(nest.bounds, first.extent, last.extent)
        plan.bounds = nest.bounds
        carried = []
        for k, start in enumerate(starts):
            plan.carried[k] = self._widened(plan.carried[k], plan.bounds, start.extent)
            register = self.allocate("float", plan.carried[k])
            self.emit(np.copyto, register, start)
            carried.append(self.held(register))
        self._forget(_Starts(node))
        masks = spent = None
        if plan.bounds:
            masks = (self.allocate("bool", plan.bounds), self.allocate("bool", plan.bounds))
            if body.nested:
                spent = self._loops[0].spent if self._loops else self.allocate("float", plan.bounds)
        index = self.held(self.allocate("float", first.extent))
        self._values.update(zip(body.carried, carried, strict=True))
        if body.index is not None:
            self._values[body.index] = index
        loop = _LoopRegisters(plan, carried, masks, spent)
        self._loops.append(loop)
        self.blocks.append([])
        self._read(body.nodes)
        following = [self._value(each) for each in body.following]
        for value in following:
            self.hold(value)
        self._forget(body)
        self._loops.pop()
        for k, value in enumerate(following):
            plan.carried[k] = self._widened(plan.carried[k], plan.bounds, value.extent)
        self._carry(loop, following)
        steps_of_body = LoopSteps(tuple(self.blocks.pop()))
        bounds = (first, last, index)
        if masks is None:
            self.emit(run_loop, HERE, Nest(body.nested, not self._loops), bounds, steps_of_body)
        else:
            outer = self._loops[-1].masks if self._loops else None
            all_masks = (*masks, outer and outer[0])
            self.emit(run_masked_loop, HERE, bounds, all_masks, spent, steps_of_body)
            self.free(*masks)
            if spent is not None and not self._loops:
                self.free(spent)
        self.release(index)
        self._forget(node)
        results = self._uses.results.get(node, {})
        for k, register in enumerate(carried):
            if k in results:
                self._values[results[k]] = register
            else:
                self.release(register)

    def _widened(self, known: Extent, *found: Extent) -> Extent:
        """A known extent, joined with those just found. If it grows, values before this point relied on a wrong one."""
        wider = joined((known, *found))
        self.stable &= wider == known
        return wider

    def _carry(self, loop: _LoopRegisters, following: Sequence[ArrayValue]) -> None:
        """Ends a body: copies the values for the next step to where the body reads them. A value that is the old value
        of another is saved first."""
        moves: list[tuple[Register, ArrayValue]] = []
        for register, value in zip(loop.carried, following, strict=True):
            if value == register:
                self.release(value)
            elif value in loop.carried:
                aside = self.held(self.allocate("float", value.extent))
                self.emit(np.copyto, aside, value)
                self.release(value)
                moves.append((register, aside))
            else:
                moves.append((register, value))
        for register, value in moves:
            if loop.masks is None:
                self.emit(np.copyto, register, value)
            else:
                self.emit(copy_where, register, value, loop.masks[0])
            self.release(value)


def translate(
    kernel: Kernel, rate: Rate, kept: frozenset[int] = frozenset(),
    finish: Callable[[Emitter, list[ArrayValue]], None] = lambda program, values: None,
) -> VectorProgram:
    """The program of a section. It leaves the locals in `kept` for the element section; `finish` ends it with the
    values that it returns. Translation is repeated until the plans of its loops are stable."""
    plans: dict[LoopBody, LoopPlan] = {}
    while True:
        translator = Translator(kernel, rate, kept, plans)
        values = translator.read()
        if translator.stable:
            finish(translator, values)
            return translator.program()


def _extent_of(values: Sequence[ArrayValue]) -> Extent:
    return joined(value.extent for value in values)
