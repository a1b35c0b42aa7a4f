"""Translates the code of a section to calls on registers, by running the stack on names of values instead of values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import copysign
from typing import Any, Literal, NamedTuple

import numpy as np

from weft.backends import vector_steps as steps
from weft.backends.vector_emit import Emitter
from weft.backends.vector_program import (
    HERE, NUMPY, Extent, Kept, Kind, Line, Number, Operand, Program, Register, Scalar, Value, joined
)
from weft.codegen.base import Instruction, Kernel, StrandCall
from weft.codegen.liveness import expiring_locals, loop_spans
from weft.codegen.opcodes import opcode_of, reals
from weft.ir.expr import LoopShape, LoopValue, PicturePlane, SlotPlane
from weft.ir.rates import Rate
from weft.ops import OPS
from weft.ops.spec import OpSpec, ValueType

# The extent of what a section computes for each column, row or element: values of rarer sections are narrower.
EXTENTS: Mapping[Rate, Extent] = {
    Rate.CONSTANT: Extent.ONE,
    Rate.FRAME: Extent.ONE,
    Rate.COLUMN: Extent.COLUMNS,
    Rate.ROW: Extent.ROWS,
    Rate.ELEMENT: Extent.ALL,
}


class _Form(NamedTuple):
    """The vector form of a row of the table of operators and builtins."""

    takes: tuple[ValueType, ...]
    gives: ValueType
    function: Callable[..., object]
    ufunc: bool
    temps: int


def _form(row: OpSpec) -> _Form:
    takes = tuple(row.type_of_operand(at) for at in range(len(row.params)))
    if isinstance(row.vector, str):
        return _Form(takes, row.gives, getattr(np, row.vector), True, 0)
    if row.vector is None:
        raise TypeError(f"{row.name} has no vector form")
    return _Form(takes, row.gives, row.vector, False, row.temps)


_FORMS: Mapping[Instruction, _Form] = {opcode_of(row): _form(row) for row in OPS.values() if row.expand is None}


@dataclass(slots=True)
class LoopPlan:
    """What has to be known of a loop before its body is read: over what the bounds of its nest vary (each element then
    stops at a step of its own), and over what its carried values do."""

    bounds: Extent
    carried: list[Extent]


@dataclass(slots=True)
class _Loop:
    """A loop whose body is being read."""

    plan: LoopPlan
    shape: LoopShape
    nested: bool
    """Whether it is part of a nest of several loops."""
    first: Value
    last: Value
    index: Register
    carried: list[Register]
    masks: tuple[Register, Register] | None
    """Which elements take part in a step, and a scratch register like it."""
    spent: Register | None


class Translator(Emitter):
    """Reads the code of one section.

    `plans` has what earlier readings found out about its loops, by where they begin; it is amended, and `stable` says
    whether this reading relied on anything that turned out to be wrong.
    """

    def __init__(self, kernel: Kernel, rate: Rate, kept: frozenset[int], plans: dict[int, LoopPlan]) -> None:
        super().__init__()
        self.kernel = kernel
        self.stable = True
        self._rate = rate
        self._kept = kept
        self._plans = plans
        self._code = kernel.section(rate).code
        self._spans = loop_spans(self._code)
        self._expiring = expiring_locals(self._code, self._spans)
        self._stack: list[Value] = []
        self._loops: list[_Loop] = []
        self._locals: dict[Any, Value] = {}
        self._numbers: dict[tuple[float, float], Number] = {}
        self._coords = {name: _given("coord", name, "real", rate) for name, rate in kernel.coords}
        self._outer: dict[int, Value] = {}
        """The locals that rarer sections have stored, where they are read."""
        self._at = 0

    def read(self) -> list[Value]:
        """Reads the whole code; gives what it returns."""
        for at, instruction in enumerate(self._code):
            self._at = at
            op, operand = instruction
            reader = _READERS.get(op)
            if reader is not None:
                reader(self, operand)
            elif op != "RETURN":
                self._row(_FORMS[instruction])
            if at in self._expiring:
                self.release(*map(self._locals.pop, self._expiring[at]))
        return self._stack

    # The stack.

    def _push_result(self, register: Register) -> None:
        self._stack.append(self.held(register))

    def _pop(self, *types: ValueType) -> list[Value]:
        start = len(self._stack) - len(types)
        values = self._stack[start:]
        del self._stack[start:]
        if [value.kind for value in values] == [*types]:
            return values
        return [self.as_type(value, kind) for value, kind in zip(values, types, strict=True)]

    # Instructions.

    def _row(self, form: _Form) -> None:
        args = self._pop(*form.takes)
        extents = [arg.extent for arg in args]
        extent = Extent.ALL if Extent.ALL in extents else joined(extents)
        if form.ufunc:
            # A ufunc may write over its operands: the registers stay few, and in the cache.
            self.release(*args)
            out = self.allocate(form.gives, extent)
            if extent not in extents and form.takes[0] == form.gives:
                # Of columns and rows: spreading out the columns first takes less time than numpy loses when it
                # combines the two.
                columns = extents.index(Extent.COLUMNS)
                self.emit(np.copyto, out, args[columns])
                args[columns] = out
            self.emit(form.function, *args, out)
        else:
            out = self.allocate(form.gives, extent)
            temps = [self.allocate("real", extent) for _ in range(form.temps)]
            self.emit(form.function, NUMPY, out, *args, *temps)
            self.free(*temps)
            self.release(*args)
        self._push_result(out)

    def _number(self, value: float) -> None:
        key = value, copysign(1.0, value)  # 0 is not -0
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = Number(value)
        self._stack.append(found)

    def _bits(self, value: int) -> None:
        self._stack.append(Number(value, "bits"))

    def _load_uniform(self, name: str) -> None:
        self._stack.append(Scalar("uniform", name, "real"))

    def _load_coord(self, name: str) -> None:
        self._stack.append(self._coords[name])

    def _load_local(self, number: int) -> None:
        value = self._locals.get(number) or self._outer.get(number)
        if value is None:
            local = self.kernel.locals[number]
            value = self._outer[number] = _given("local", number, local.type, local.rate)
        self._load(value)

    def _load(self, value: Value) -> None:
        """Pushes a value that somebody else holds too."""
        self.hold(value)
        self._stack.append(value)

    def _store_local(self, number: int) -> None:
        (value,) = self._pop(self.kernel.locals[number].type)
        if number in self._kept:
            self.emit(steps.copy_narrowed, Kept(Line("local", number, value.kind, EXTENTS[self._rate])), value)
        self._locals[number] = value

    def _drop(self, operand: None) -> None:
        self.release(self._stack.pop())

    def _load_state(self, place: SlotPlane) -> None:
        (k,) = self._pop("real")
        slot = self.kernel.slot(place.slot)
        out = self.allocate("real", Extent.ALL if slot.image else k.extent)
        self.emit(steps.load_state, HERE, slot, place.plane, k, out)
        self.release(k)
        self._push_result(out)

    def _store_state(self, place: SlotPlane) -> None:
        (value,) = self._pop("real")
        self.emit(steps.store_state, HERE, place, value)
        self.release(value)

    def _sample_state(self, place: SlotPlane) -> None:
        k, x, y = self._pop("real", "real", "real")
        slot = self.kernel.slot(place.slot)
        self._sample(steps.sample_state, (slot, place.plane, k), [x, y, k])

    def _sample_picture(self, place: PicturePlane) -> None:
        x, y = self._pop("real", "real")
        self._sample(steps.sample_picture, place, [x, y])

    def _sample(self, function: Callable[..., None], source: Operand, places: list[Value]) -> None:
        """Samples at places: x, y, and possibly how many ticks ago."""
        x, y, *_ = places
        out = self.allocate("real", _extent_of(places))
        scratch = (
            self._allocate_all("index", "index", "real", "real", extent=x.extent),
            self._allocate_all("index", "index", "real", "real", extent=_extent_of(places[1:])),
            self._allocate_all("index", "real", "real", extent=out.extent),
        )
        self.emit(function, HERE, source, (x, y), out, scratch)
        for registers in scratch:
            self.free(*registers)
        self.release(*places)
        self._push_result(out)

    def _allocate_all(self, *kinds: Kind, extent: Extent) -> tuple[Register, ...]:
        return tuple(self.allocate(kind, extent) for kind in kinds)

    def _load_strand(self, strand: StrandCall) -> None:
        args = self._pop(*reals(strand.coordinates))
        out = self.allocate("real", _extent_of(args))
        self.emit(steps.load_strand, HERE, strand.ref, out, *args)
        self.release(*args)
        self._push_result(out)

    # Loops.

    def _begin_loop(self, shape: LoopShape) -> None:
        first, last, *starts = self._pop(*reals(2 + shape.carried))
        span = self._spans[self._at]
        plan = self._plans.setdefault(self._at, LoopPlan(Extent.ONE, [Extent.ONE] * shape.carried))
        nest = self._plans[span.nest]
        nest.bounds = self._widened(nest.bounds, first.extent, last.extent)
        plan.bounds = nest.bounds
        carried = []
        for k, start in enumerate(starts):
            plan.carried[k] = self._widened(plan.carried[k], plan.bounds, start.extent)
            register = self.allocate("real", plan.carried[k])
            self.emit(np.copyto, register, start)
            carried.append(self.held(register))
        self.release(*starts)
        masks = spent = None
        if plan.bounds:
            masks = (self.allocate("truth", plan.bounds), self.allocate("truth", plan.bounds))
            if span.nested:
                spent = self._loops[0].spent if self._loops else self.allocate("real", plan.bounds)
        index = self.held(self.allocate("real", first.extent))
        self._loops.append(_Loop(plan, shape, span.nested, first, last, index, carried, masks, spent))
        self.open_block()

    def _widened(self, known: Extent, *found: Extent) -> Extent:
        """What is known of a loop, with what was found out now: code before this place may have relied on less."""
        wider = joined((known, *found))
        self.stable &= wider == known
        return wider

    def _end_step(self, shape: LoopShape) -> None:
        following = self._pop(*reals(shape.carried))
        loop = self._loops.pop()
        for k, value in enumerate(following):
            loop.plan.carried[k] = self._widened(loop.plan.carried[k], loop.plan.bounds, value.extent)
        self._carry(loop, following)
        body = self.close_block()
        bounds = (loop.first, loop.last, loop.index)
        if loop.masks is None:
            self.emit(steps.run_loop, HERE, steps.Nest(loop.nested, not self._loops), bounds, body)
        else:
            outer = self._loops[-1].masks if self._loops else None
            masks = (*loop.masks, outer and outer[0])
            self.emit(steps.run_masked_loop, HERE, bounds, masks, loop.spent, body)
            self.free(*loop.masks)
            if loop.spent is not None and not self._loops:
                self.free(loop.spent)
        self.release(loop.first, loop.last, loop.index)
        self._stack.extend(loop.carried)

    def _carry(self, loop: _Loop, following: Sequence[Value]) -> None:
        """Ends a body: moves the values for the next step to where the body reads them. They are moved all at once: one
        that is another's old value is set aside first."""
        moves: list[tuple[Register, Value]] = []
        for register, value in zip(loop.carried, following, strict=True):
            if value == register:
                self.release(value)
            elif value in loop.carried:
                aside = self.held(self.allocate("real", value.extent))
                self.emit(np.copyto, aside, value)
                self.release(value)
                moves.append((register, aside))
            else:
                moves.append((register, value))
        for register, value in moves:
            if loop.masks is None:
                self.emit(np.copyto, register, value)
            else:
                self.emit(steps.copy_where, register, value, loop.masks[0])
            self.release(value)

    def _load_index(self, level: int) -> None:
        self._load(next(loop.index for loop in self._loops if loop.shape.level == level))

    def _load_carried(self, value: LoopValue) -> None:
        self._load(next(loop.carried[value.k] for loop in self._loops if loop.shape.level == value.level))


_READERS: Mapping[str, Callable[[Translator, Any], None]] = {
    "PUSH": Translator._number,
    "PUSH_BITS": Translator._bits,
    "LOAD_COORD": Translator._load_coord,
    "LOAD_UNIFORM": Translator._load_uniform,
    "LOAD_LOCAL": Translator._load_local,
    "STORE_LOCAL": Translator._store_local,
    "DROP": Translator._drop,
    "LOAD_STATE": Translator._load_state,
    "SAMPLE_STATE": Translator._sample_state,
    "STORE_STATE": Translator._store_state,
    "SAMPLE_PICTURE": Translator._sample_picture,
    "LOAD_STRAND": Translator._load_strand,
    "LOOP": Translator._begin_loop,
    "NEXT": Translator._end_step,
    "LOAD_INDEX": Translator._load_index,
    "LOAD_CARRIED": Translator._load_carried,
}


def _leave(program: Emitter, values: list[Value]) -> None:
    pass


def translate(
    kernel: Kernel,
    rate: Rate,
    kept: frozenset[int] = frozenset(),
    finish: Callable[[Emitter, list[Value]], None] = _leave,
) -> Program:
    """The program of a section. It leaves the locals in `kept` for the element section; `finish` ends it with what the
    code returns. Loops are read again until nothing new is found out about them."""
    plans: dict[int, LoopPlan] = {}
    while True:
        translator = Translator(kernel, rate, kept, plans)
        values = translator.read()
        if translator.stable:
            finish(translator, values)
            return translator.program()


def _extent_of(values: Sequence[Value]) -> Extent:
    return joined(value.extent for value in values)


def _given(source: Literal["coord", "local"], key: str | int, kind: ValueType, rate: Rate) -> Value:
    """What a section reads that is computed at some rate before it."""
    extent = EXTENTS[rate]
    return Scalar(source, key, kind) if extent == Extent.ONE else Line(source, key, kind, extent)
