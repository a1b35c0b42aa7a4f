"""Translates the code of a section to calls on registers, by running the stack on names of values instead of values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.backends import vector_steps as steps
from weft.backends.vector_emit import Emitter, Value
from weft.backends.vector_program import (
    HERE,
    Extent,
    Kept,
    Kind,
    Line,
    Number,
    Operand,
    Program,
    Register,
    Scalar,
    joined,
)
from weft.codegen.base import Kernel, StrandCall
from weft.codegen.liveness import expiring_locals, loop_spans
from weft.codegen.opcodes import reals, row_of
from weft.ir.expr import LoopShape, LoopValue, PicturePlane, SlotPlane
from weft.ir.rates import Rate
from weft.ops.spec import OpSpec, ValueType

# The extent of what a section computes for each column, row or element: values of rarer sections are narrower.
EXTENTS: Mapping[Rate, Extent] = {
    Rate.CONSTANT: Extent.ONE,
    Rate.FRAME: Extent.ONE,
    Rate.COLUMN: Extent.COLUMNS,
    Rate.ROW: Extent.ROWS,
    Rate.ELEMENT: Extent.ALL,
}


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
    index: Value
    carried: list[Value]
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
        self._at = 0

    def read(self) -> list[Value]:
        """Reads the whole code; gives what it returns."""
        for at, instruction in enumerate(self._code):
            self._at = at
            row = row_of(*instruction)
            if row is not None:
                self._row(row)
            elif instruction.op != "RETURN":
                _READERS[instruction.op](self, instruction.operand)
            for number in self._expiring.get(at, ()):
                self.release(self._locals.pop(number))
        return self._stack

    # The stack.

    def _push(self, operand: Operand, kind: ValueType = "real", extent: Extent = Extent.ONE) -> None:
        self._stack.append(self.held(operand, kind, extent))

    def _push_result(self, register: Register, kind: ValueType = "real") -> None:
        self._push(register, kind, register.extent)

    def _pop(self, *types: ValueType) -> list[Value]:
        start = len(self._stack) - len(types)
        values = self._stack[start:]
        del self._stack[start:]
        return [self.as_type(value, kind) for value, kind in zip(values, types, strict=True)]

    # Instructions.

    def _row(self, row: OpSpec) -> None:
        args = self._pop(*(row.type_of_operand(at) for at in range(len(row.params))))
        operands = [arg.operand for arg in args]
        extent = _extent_of(args)
        if isinstance(row.vector, str):
            # A ufunc may write over its operands: the registers stay few, and in the cache.
            self.release(*args)
            out = self.allocate(row.gives, extent)
            extents = [arg.extent for arg in args]
            if sorted(extents) == [Extent.COLUMNS, Extent.ROWS] and args[0].type == row.gives:
                # Spreading out the columns first takes less time than numpy loses when it combines the two.
                columns = extents.index(Extent.COLUMNS)
                self.emit(np.copyto, out, operands[columns])
                operands[columns] = out
            self.emit(getattr(np, row.vector), *operands, out)
        elif row.vector is not None:
            out = self.allocate(row.gives, extent)
            temps = [self.allocate("real", extent) for _ in range(row.temps)]
            self.emit(row.vector, np, out, *operands, *temps)
            self.free(*temps)
            self.release(*args)
        else:
            raise TypeError(f"{row.name} has no vector form")
        self._push_result(out, row.gives)

    def _number(self, value: float) -> None:
        self._push(Number(value))

    def _bits(self, value: int) -> None:
        self._push(Number(value, "bits"), "bits")

    def _load_uniform(self, name: str) -> None:
        self._push(Scalar("uniform", name, "real"))

    def _load_coord(self, name: str) -> None:
        extent = EXTENTS[dict(self.kernel.coords)[name]]
        one = extent == Extent.ONE
        self._push(Scalar("coord", name, "real") if one else Line("coord", name, "real", extent), "real", extent)

    def _load_local(self, number: int) -> None:
        value = self._locals.get(number)
        if value is None:
            local = self.kernel.locals[number]
            extent = EXTENTS[local.rate]
            one = extent == Extent.ONE
            kind = local.type
            value = Value(Scalar("local", number, kind) if one else Line("local", number, kind, extent), kind, extent)
        self._load(value)

    def _load(self, value: Value) -> None:
        """Pushes a value that somebody else holds too."""
        self._push(value.operand, value.type, value.extent)

    def _store_local(self, number: int) -> None:
        (value,) = self._pop(self.kernel.locals[number].type)
        if number in self._kept:
            self.emit(steps.copy_narrowed, Kept(Line("local", number, value.type, EXTENTS[self._rate])), value.operand)
        self._locals[number] = value

    def _drop(self, operand: None) -> None:
        self.release(self._stack.pop())

    def _load_state(self, place: SlotPlane) -> None:
        (k,) = self._pop("real")
        slot = self.kernel.slot(place.slot)
        out = self.allocate("real", Extent.ALL if slot.image else k.extent)
        self.emit(steps.load_state, HERE, slot, place.plane, k.operand, out)
        self.release(k)
        self._push_result(out)

    def _store_state(self, place: SlotPlane) -> None:
        (value,) = self._pop("real")
        self.emit(steps.store_state, HERE, place, value.operand)
        self.release(value)

    def _sample_state(self, place: SlotPlane) -> None:
        k, x, y = self._pop("real", "real", "real")
        slot = self.kernel.slot(place.slot)
        self._sample(steps.sample_state, (slot, place.plane, k.operand), [x, y, k])

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
        self.emit(function, HERE, source, (x.operand, y.operand), out, scratch)
        for registers in scratch:
            self.free(*registers)
        self.release(*places)
        self._push_result(out)

    def _allocate_all(self, *kinds: Kind, extent: Extent) -> tuple[Register, ...]:
        return tuple(self.allocate(kind, extent) for kind in kinds)

    def _load_strand(self, strand: StrandCall) -> None:
        args = self._pop(*reals(strand.coordinates))
        out = self.allocate("real", _extent_of(args))
        self.emit(steps.load_strand, HERE, strand.ref, out, *(arg.operand for arg in args))
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
            self.emit(np.copyto, register, start.operand)
            carried.append(self.held(register, "real", register.extent))
        self.release(*starts)
        masks = spent = None
        if plan.bounds:
            masks = (self.allocate("truth", plan.bounds), self.allocate("truth", plan.bounds))
            if span.nested:
                spent = self._loops[0].spent if self._loops else self.allocate("real", plan.bounds)
        index = self.held(self.allocate("real", first.extent), "real", first.extent)
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
        bounds = (loop.first.operand, loop.last.operand, loop.index.operand)
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
        old = [value.operand for value in loop.carried]
        moves: list[tuple[Register, Value]] = []
        for register, value in zip(old, following, strict=True):
            if value.operand == register:
                self.release(value)
            elif value.operand in old:
                aside = self.held(self.allocate("real", value.extent), "real", value.extent)
                self.emit(np.copyto, aside.operand, value.operand)
                self.release(value)
                moves.append((register, aside))
            else:
                moves.append((register, value))
        for register, value in moves:
            if loop.masks is None:
                self.emit(np.copyto, register, value.operand)
            else:
                self.emit(steps.copy_where, register, value.operand, loop.masks[0])
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
