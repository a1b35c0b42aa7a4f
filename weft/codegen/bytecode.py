"""Compiles lowered IR to the bytecode of the stack machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias, TypedDict

from weft.codegen.base import Allocation, Instruction, Kernel, Note, Section, StrandCall
from weft.codegen.names import Namer
from weft.codegen.opcodes import opcode_of
from weft.codegen.placement import LEAVES, Placement, Region, Root, Value
from weft.contexts import COMPUTE, ContextSpec
from weft.ir.expr import Expr, LoopShape, Lowered, PicturePlane, Pool, SlotPlane, StateSlot, StrandRef
from weft.ir.rates import Rate, rates
from weft.ir.verify import MalformedError, type_of
from weft.ops import OPS


def compile_kernel(lowered: Lowered, spec: ContextSpec, optimise: bool = True, pool: Pool | None = None) -> Kernel:
    """The kernel that computes the outputs over the sweep of a context and advances the state.

    Without `optimise`, everything is computed at every element (state that is one number: once a tick), where the
    text has it. The `pool` of its expressions knows what the text calls them.

    Raises MalformedError if state that is one number would have to change within a tick.
    """
    ticks_by_element = spec.ticks == "element"
    slots = {slot.key: slot for slot in lowered.slots}
    rate = rates(lowered.swept, spec, slots)
    program = _Program(slots, points=False, namer=Namer(pool))
    updates: list[tuple[Rate, SlotPlane, Expr]] = []
    for update in lowered.updates:
        by_element = ticks_by_element or slots[update.slot].image
        section = Rate.ELEMENT if by_element else Rate.FRAME
        if rate[update.value] > section:
            raise MalformedError(f"{update.slot} is one number, but its value is a {rate[update.value].title}'s")
        updates.append((section, SlotPlane(update.slot, update.plane), update.value))
    outputs = [output.value for output in lowered.outputs]
    return Kernel(
        name=lowered.name,
        context=lowered.context,
        sweep="grid",
        tick="element" if ticks_by_element else "launch",
        sections=program.sections(outputs, updates, rate, optimise),
        outputs=tuple(output.label for output in lowered.outputs),
        coords=tuple((name, _coordinate_rate(spec, name)) for name in sorted(program.coords)),
        slots=lowered.slots,
        **program.inputs(),
    )


def compile_points(lowered: Lowered, strand: StrandRef, spec: ContextSpec, pool: Pool | None = None) -> Kernel:
    """The kernel that computes one exposed strand at any list of points, each with all coordinates of its own.

    Raises KeyError if the strand is not exposed.
    """
    value = dict(lowered.exposed)[strand]
    slots = {slot.key: slot for slot in lowered.slots}
    program = _Program(slots, points=True, namer=Namer(pool))
    sections = program.sections([value], [], rates([value], spec, slots, points=True), optimise=True)
    return Kernel(
        name=f"{lowered.name}: {strand}",
        context=lowered.context,
        sweep="points",
        tick="launch",
        sections=sections,
        outputs=(str(strand),),
        coords=tuple((name, Rate.ELEMENT) for name in sorted(program.coords)),
        slots=tuple(slot for slot in lowered.slots if slot.key in program.used_slots),
        **program.inputs(),
    )


def compile_feeds(lowered: Lowered, optimise: bool = True, pool: Pool | None = None) -> Kernel:
    """The kernel that computes, once a frame, what a context that streams is given by others; its outputs bear the
    names of the coordinates that these become."""
    alone = Lowered(f"{lowered.name}: feeds", COMPUTE.name, lowered.feeds, (), (), ())
    return compile_kernel(alone, COMPUTE, optimise, pool)


def _coordinate_rate(spec: ContextSpec, name: str) -> Rate:
    sweep = spec.sweep_of(name)
    return Rate.CONSTANT if sweep == "once" else Rate[sweep.upper()]


class _Inputs(TypedDict):
    uniforms: tuple[str, ...]
    strands: tuple[StrandRef, ...]
    pictures: tuple[str, ...]
    locals: tuple[Allocation, ...]


@dataclass
class _Program:
    """Writes the sections of one kernel, and collects what they refer to."""

    slots: Mapping[str, StateSlot]
    points: bool
    namer: Namer
    locals: list[Allocation] = field(default_factory=list)
    coords: set[str] = field(default_factory=set)
    uniforms: set[str] = field(default_factory=set)
    strands: set[StrandRef] = field(default_factory=set)
    pictures: set[str] = field(default_factory=set)
    used_slots: set[str] = field(default_factory=set)

    def sections(
        self,
        outputs: list[Expr],
        updates: Iterable[tuple[Rate, SlotPlane, Expr]],
        rate: dict[Expr, Rate],
        optimise: bool,
    ) -> tuple[Section, ...]:
        """The code of every section that has something to do."""
        listed = list(updates)
        roots = [Root(value, section) for section, _, value in listed]
        roots += [Root(value, Rate.ELEMENT) for value in outputs]
        placement = Placement(roots, rate, hoist=optimise)
        writer = _Writer(self, placement)
        written = []
        for section, region in placement.sections.items():
            tasks: list[_Task] = [_Ready(value) for value in placement.crossing(section)]
            for _, slot, value in (entry for entry in listed if entry[0] == section):
                tasks += [writer.pushing(value, region), Instruction("STORE_STATE", slot)]
            if section == Rate.ELEMENT:
                tasks += [writer.pushing(value, region) for value in outputs]
                tasks.append(Instruction("RETURN"))
            if tasks:
                made = writer.write(section, tasks)
                self._note(made.code)
                written.append(made)
        return tuple(written)

    def inputs(self) -> _Inputs:
        """The fields of a kernel that say what its code refers to."""
        return {
            "uniforms": tuple(sorted(self.uniforms)),
            "strands": tuple(sorted(self.strands)),
            "pictures": tuple(sorted(self.pictures)),
            "locals": tuple(self.locals),
        }

    def _note(self, code: Iterable[Instruction]) -> None:
        """Remembers what code refers to."""
        for op, operand in code:
            if op == "LOAD_COORD" and isinstance(operand, str):
                self.coords.add(operand)
            elif op == "LOAD_UNIFORM" and isinstance(operand, str):
                self.uniforms.add(operand)
            elif isinstance(operand, StrandCall):
                self.strands.add(operand.ref)
            elif isinstance(operand, PicturePlane):
                self.pictures.add(operand.picture)
            elif isinstance(operand, SlotPlane):
                self.used_slots.add(operand.slot)

    def allocate(self, value: Value, out: int) -> int:
        """A new local for a value, or for one of the values of a loop."""
        name = self.namer.title(value.node, out, len(value.outs) > 1)
        self.locals.append(Allocation(name, value.region.rate, type_of(value.node)))
        value.locals[out] = len(self.locals) - 1
        return value.locals[out]

    def operation(self, node: Expr) -> list[Instruction]:
        """What computes an expression from its operands, which are on the stack."""
        instruction = _OPERATIONS.get(node.op)
        if instruction is not None:
            return [instruction]
        match node.op, node.attr:
            case "state", SlotPlane(slot, _) as plane:
                if len(node.args) == 3:
                    return [Instruction("SAMPLE_STATE", plane)]
                if self.points and self.slots[slot].image:
                    place = [Instruction("LOAD_COORD", axis) for axis in ("x", "y")]
                    return [*place, Instruction("SAMPLE_STATE", plane)]
                return [Instruction("LOAD_STATE", plane)]
            case "picture", PicturePlane() as plane:
                return [Instruction("SAMPLE_PICTURE", plane)]
            case "strand", StrandRef(instance, output):
                return [Instruction("LOAD_STRAND", StrandCall(instance, output, len(node.args)))]
        raise MalformedError(f"{node}: no instruction computes this")


# The instruction of each row that is an operation of its own.
_OPERATIONS: Mapping[str, Instruction] = {row.name: opcode_of(row) for row in OPS.values() if row.expand is None}


class _Result(NamedTuple):
    """To do: the code that leaves one of a loop's values on the stack."""

    value: Value
    out: int


class _Ready(NamedTuple):
    """To do: the code that leaves a value in its locals, if it is not there yet."""

    value: Value


class _Noted(NamedTuple):
    """To do: a note that the last instruction has left, or stored, one of the values of this."""

    value: Value
    out: int


# A value stands for the code that leaves it on the stack.
_Task: TypeAlias = Instruction | Value | _Result | _Ready | _Noted


class _Writer:
    """Writes the code of one section. What is to do is kept in a list, not on Python's stack: expressions are deep. It
    is done from the end of the list."""

    def __init__(self, program: _Program, placement: Placement) -> None:
        self._program = program
        self._placement = placement

    def write(self, rate: Rate, tasks: list[_Task]) -> Section:
        """The section with the code that does all the tasks in turn."""
        code: list[Instruction] = []
        notes: list[Note] = []
        todo = tasks[::-1]
        while todo:
            task = todo.pop()
            if isinstance(task, Instruction):
                code.append(task)
            elif isinstance(task, Value):
                self._push(task, 0, todo)
            elif isinstance(task, _Result):
                self._push(task.value, task.out, todo)
            elif isinstance(task, _Noted):
                notes += self._program.namer.notes(len(code) - 1, task.value.node, task.out)
            elif not task.value.locals:
                todo += self._store(task.value)[::-1]
                self._compute(task.value, todo)
        return Section(rate, tuple(code), tuple(notes))

    def pushing(self, node: Expr, region: Region) -> _Task:
        """What leaves an expression on the stack where `region` uses it."""
        attr = node.attr
        if node.op in LEAVES and not isinstance(attr, StrandRef):
            return Instruction(LEAVES[node.op], attr)
        if node.op == "loop_out" and isinstance(attr, int):
            return _Result(self._placement.value(node.args[0], region), attr)
        return self._placement.value(node, region)

    def _push(self, value: Value, out: int, todo: list[_Task]) -> None:
        if value.locals:
            todo.append(Instruction("LOAD_LOCAL", value.locals[out]))
            return
        if value.shared or _results(value) > 1:
            stores = self._store(value)
            todo.append(Instruction("LOAD_LOCAL", value.locals[out]))
            todo += stores[::-1]
        self._compute(value, todo)

    def _store(self, value: Value) -> list[_Task]:
        """Moves what was just computed from the stack into locals."""
        tasks: list[_Task] = []
        for out in reversed(range(_results(value))):
            if out in value.outs:
                tasks += [Instruction("STORE_LOCAL", self._program.allocate(value, out)), _Noted(value, out)]
            else:
                tasks.append(Instruction("DROP"))
        return tasks

    def _compute(self, value: Value, todo: list[_Task]) -> None:
        node, region = value.node, value.region
        if value.body is None or not isinstance(node.attr, LoopShape):
            if not value.shared:
                todo.append(_Noted(value, 0))
            todo += self._program.operation(node)[::-1]
            todo += [self.pushing(arg, region) for arg in reversed(node.args)]
            return
        before, body = 2 + node.attr.carried, value.body
        tasks: list[_Task] = [
            *(_Ready(needed) for needed in sorted(body.needs, key=lambda v: v.node.index)),
            *(self.pushing(arg, region) for arg in node.args[:before]),
            Instruction("LOOP", node.attr),
            *(self.pushing(arg, body) for arg in node.args[before:]),
            Instruction("NEXT", node.attr),
            *([_Noted(value, 0)] if _results(value) == 1 and not value.shared else ()),
        ]
        todo += tasks[::-1]


def _results(value: Value) -> int:
    """How many values it leaves on the stack."""
    return value.node.attr.carried if isinstance(value.node.attr, LoopShape) else 1
