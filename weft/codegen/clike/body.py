"""Writes the values of a kernel as the statements of a shader."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from math import copysign, frexp, inf, isfinite, nan, pi
from types import MappingProxyType

from weft.codegen.clike.coarse_waves import coarse_waves
from weft.codegen.clike.exactness import exact_values, signed_zeros
from weft.codegen.clike.expressions import ExpressionText, applied, assignment, literal
from weft.codegen.clike.fields import FEW
from weft.codegen.clike.language import CodeLine, Identifiers, Language, ProgramParts, Type, identifier, remark
from weft.codegen.clike.lines import NO_LINES, Axis, LinePlan, LineValue
from weft.codegen.clike.prelude import NEAR
from weft.codegen.clike.reads import LEAVES, ExternalRead, VariablePlan, most_steps, steps_of
from weft.codegen.clike.shader import (  # fmt: skip
    Bound, FirstLayer, OneOver, Part, PastCell, PastValue, image_to_write, one_over
)
from weft.codegen.clike.value_ranges import ValueRanges, is_number_input
from weft.codegen.kernel import LOOP_STEPS, NEST_STEPS, Kernel
from weft.codegen.native.target import Head
from weft.codegen.values import LoopBody, Node, Scalar, Section
from weft.ir.expr import SlotPlane, StateSlot
from weft.names import shown
from weft.ops import OPS

# Reads of state, of pictures, and of strands of other subgraphs.


def write_state(w: ShaderWriter, node: Node) -> ExpressionText:
    """The value of a slot k ticks ago: of an image at this element, or a number."""
    slot = w.parts.kernel.slot(node.attr.slot)
    if slot.image:
        return ExpressionText(w.language.own(w.parts, image_of(w, slot), slot, _index(w, slot, node)))
    (k,) = node.args
    if k.op == "const":
        past = PastValue(slot.key, node.attr.plane, _ticks(k.attr, slot))
        return ExpressionText(w.parts.frame.read(past, f"{slot_name(slot.key)}_past", "float", slot.key))
    bound = _bound(w, w.parts.histories, slot.key, f"{slot_name(slot.key)}_{w.language.ring}")
    return ExpressionText(w.language.remembered(w.parts, bound, _index(w, slot, node)))


def write_sample(w: ShaderWriter, node: Node) -> ExpressionText:
    """An image slot k ticks ago, sampled."""
    slot = w.parts.kernel.slot(node.attr.slot)
    x, y = (
        None if is_own else w.real(coordinate)
        for coordinate, is_own in zip(node.args[1:], w.parts.kernel.unmoved(node), strict=True)
    )
    return ExpressionText(w.language.sampled(w.parts, image_of(w, slot), slot, _index(w, slot, node), x, y))


def write_written(w: ShaderWriter, node: Node) -> ExpressionText:
    """The value at this element that an earlier program of this tick has stored."""
    slot = w.parts.kernel.slot(node.attr.slot)
    return ExpressionText(w.language.own(w.parts, image_of(w, slot), slot, layer_to_write(w.parts, node.attr)))


def write_picture(w: ShaderWriter, node: Node) -> ExpressionText:
    """A channel of a picture, sampled. The channels at one place share one sample."""
    path, channel = node.attr
    bound = _picture(w, path)
    text = w.language.picture(w.parts, bound, *map(w.real, node.args))
    name = w.shared((path, *node.args), "four", f"{bound.name}_colour", text, node)
    return ExpressionText(f"{name}.{w.language.channels[channel]}")


def write_fetch(w: ShaderWriter, node: Node) -> ExpressionText:
    """A sample of a sound. Its channels share one read."""
    sound, channel = node.attr
    bound = _picture(w, sound)
    text = w.language.fetched(w.parts, bound, w.real(node.args[0]))
    name = w.shared((sound, *node.args), "two", f"{bound.name}_sample", text, node)
    return ExpressionText(f"{name}.{'xy'[channel]}")


def _picture(w: ShaderWriter, path: str) -> Bound:
    """A picture or a sound, with a name like that of its file."""
    file_name = shown(path).replace("\\", "/").rpartition("/")[2].rpartition(".")[0]
    return _bound(w, w.parts.pictures, path, identifier(file_name or path))


def write_external_read(w: ShaderWriter, node: Node) -> ExpressionText:
    """The value of another subgraph's strand at this element."""
    read: ExternalRead = node.attr
    bound = _bound(w, w.parts.external_reads, read.key, f"{read.strand.short}_there")
    return ExpressionText(w.language.external_read(w.parts, bound, read.over))


_READS: Mapping[str, Callable[[ShaderWriter, Node], ExpressionText]] = MappingProxyType({
    "state": write_state, "sample": write_sample, "picture": write_picture, "fetch": write_fetch,
    "external_read": write_external_read, "written": write_written,
})  # fmt: skip


def image_of(w: ShaderWriter, slot: StateSlot) -> Bound:
    """The images of a slot."""
    return w.parts.images.setdefault(slot.key, Bound(w.rings[slot.key], slot.key))


def name_rings(names: Identifiers, kernel: Kernel, language: Language, parts: ProgramParts) -> dict[str, str]:
    """Names for the images of slots, by their keys. The targets that write to them get names made of these, so these
    names are taken before any other. What slots share has one name."""
    images = [slot for slot in kernel.slots if slot.image]
    parts.shared = frozenset(slot.key for slot in images if language.array(slot) != slot.key)
    targets: dict[str, list[str]] = {}
    made: dict[str, str] = {}
    arrays: dict[str, str] = {}
    for slot in images:
        name = names.unique(f"{slot_name(slot.key)}_{language.ring}", partial(_written_names, planes=slot.planes))
        targets[slot.key] = _written_names(name, slot.planes)
        for written in targets[slot.key]:
            names.take(written)
        made[slot.key] = name
    parts.targets = targets
    for slot in images:
        if slot.key in parts.shared:
            key = language.array(slot)
            if key not in arrays:
                arrays[key] = names.unique(language.ring, lambda name: [image_to_write(name)])
                names.take(image_to_write(arrays[key]))
            made[slot.key] = arrays[key]
    return made


def _written_names(ring: str, planes: int) -> list[str]:
    """The names that writing to the images of this name may take: of a target for each plane, or of the images."""
    target = re.sub(r"_past((?:_\d+)?)$", r"_next\1", ring)
    if target == ring:
        return []
    targets = [target] if planes == 1 else [f"{target}_plane_{plane}" for plane in range(planes)]
    return [*targets, image_to_write(ring)]


def _bound(w: ShaderWriter, known: dict[str, Bound], key: str, name: str) -> Bound:
    if key not in known:
        known[key] = Bound(w.names.new(name), key)
    return known[key]


def slot_name(key: str) -> str:
    """The short name of a slot: `visual/trail@r/prev/0` is `trail_r`."""
    parts = key.split("/")
    return identifier(parts[1].removesuffix("@val").removesuffix("@v") if len(parts) > 1 else key)


def _ticks(k: float, slot: StateSlot, least: int = 1) -> int:
    """The whole ticks that a read goes back."""
    return int(min(k, slot.depth)) if k >= least else 1


def _head(parts: ProgramParts, slot: StateSlot) -> str:
    return parts.frame.read(Head(slot.key), f"{slot_name(slot.key)}_head", "int")


def layer_to_write(parts: ProgramParts, place: SlotPlane) -> str:
    """The number of the layer of images that the new value of a slot goes to, as text."""
    slot = parts.kernel.slot(place.slot)
    if not slot.outlives:
        return _from_first(parts, slot, str(place.plane))
    head = _head(parts, slot)
    return _from_first(parts, slot, head if slot.planes == 1 else f"{head} * {slot.planes} + {place.plane}")


def _from_first(parts: ProgramParts, slot: StateSlot, layer: str) -> str:
    """A layer of a slot as one of the texture that it is in."""
    if slot.key not in parts.shared:
        return layer
    first = parts.frame.read(FirstLayer(slot.key), f"{slot_name(slot.key)}_first", "int", slot.key)
    return first if layer == "0" else f"{first} + {layer}"


def _index(w: ShaderWriter, slot: StateSlot, node: Node) -> str:
    """The number of the plane of a ring that is read, as text."""
    if not slot.outlives:
        return _from_first(w.parts, slot, str(node.attr.plane))
    return _from_first(w.parts, slot, _plane_of_ring(w, slot, node))


def _plane_of_ring(w: ShaderWriter, slot: StateSlot, node: Node) -> str:
    k, plane = node.args[0], node.attr.plane
    if k.op == "const":
        between_ticks = w.parts.kernel.sweep == "points"
        past = PastCell(slot.key, _ticks(k.attr, slot, 1 - between_ticks))
        cell = w.parts.frame.read(past, f"{slot_name(slot.key)}_past_cell", "int", slot.key)
    else:
        w.call("cell")
        cell = f"cell({_head(w.parts, slot)}, {w.real(k)}, {slot.depth})"
    if slot.planes == 1:
        return cell
    return f"{cell} * {slot.planes}" + (f" + {plane}" if plane else "")


# Loops. One that might exceed its limit of steps is stopped there, and sets `stopped`.

_INDICES = "ijklmn"

# Up to this size, the variable of a loop with whole bounds is counted exactly.
_MOST_EXACT = 2**20


def _read(w: ShaderWriter, node: Node) -> list[Node]:
    """The carried values whose variables the text of a value names."""
    if node.op == "loop_value":
        return [node]
    if node.op == "loop_out":
        return [node.args[0].attr.carried[node.attr]]
    if node.op in LEAVES or node in w.plan.kept:
        return []
    return [found for arg in node.args for found in _read(w, arg)]


def _counts_exactly(loop: Node) -> bool:
    """Whether a variable counts the steps of a loop exactly."""
    first, last = (arg.attr for arg in loop.args[:2])
    return steps_of(loop) < inf and bool(first.is_integer()) and max(abs(first), abs(last)) < _MOST_EXACT


# Statements.

# The functions for waves of few turns.
_FEW_WAVES: Mapping[str, str] = MappingProxyType({"sinpi": "sin", "cospi": "cos"})

# What is true of numbers where an order is not.
_OPPOSITES: Mapping[str, str] = MappingProxyType({"lt": ">=", "le": ">", "gt": "<=", "ge": "<"})

# The reciprocals of larger divisors, and of those below 1 over it, may be 0 or infinite.
_MOST_DIVISOR = 2.0**120

# The name of a value without one, by its operation.
_HINTS: Mapping[str, str] = MappingProxyType({
    "sinpi": "sine", "cospi": "cosine", "sin": "sine", "cos": "cosine", "sqrt": "root", "mul": "product",
    "div": "ratio", "add": "sum", "sub": "difference", "select": "choice", "min": "least", "max": "most",
    "bits_of": "whole", "bits_xor": "mixed", "bits_mul": "mixed", "bits_add": "mixed", "bits_top": "hash",
    "picture": "colour", "fetch": "sample", "state": "past", "sample": "past", "written": "now",
})  # fmt: skip


class ShaderWriter:
    """Writes the statements of one program. `parts` collects what they refer to."""

    def __init__(
        self, language: Language, parts: ProgramParts, program: Section, prologue: Section, numbers: Sequence[float],
        lines: LinePlan = NO_LINES,
    ) -> None:  # fmt: skip
        """`numbers` are the values of those inputs, by their places."""
        self.language = language
        self.parts = parts
        self.program = program
        self.prologue = prologue
        self.numbers = numbers
        self.lines = lines
        self.plan = VariablePlan(program, language.has_fract, lines.shared)
        given = (text for name, _ in parts.kernel.coords for text in (f"me_{name}", f"all_{name}"))
        targets = (f"values_{at}" for at in range(1, len(parts.kernel.outputs)))
        own = ("frame", "main", "stopped", "met_limit", *given, *targets)
        self.names = Identifiers({*language.taken, *language.function_names, *own})
        self.rings = name_rings(self.names, parts.kernel, language, parts)
        self._coarse: frozenset[Node] = frozenset()
        """The sines that need not be right to their last digits."""
        is_read = parts.kernel.sweep == "points"
        self._exact = exact_values(program, is_read) if language.exact else frozenset()
        self._signed = signed_zeros(program, not parts.packed)
        self.ranges = ValueRanges(parts.kernel, program, prologue, numbers)
        if parts.packed and language.coarse_sines is not None:
            self._coarse, parts.limits = coarse_waves(program, numbers)
        self.depth = 0
        self._part: tuple[Axis, str] | None = None
        """The axis and the name of the statements that are being written, if they change along one axis."""
        self._budget: str | None = None
        """The variable that counts the steps of the nest that is being written."""
        self._variables: dict[Node, str] = {}
        self._places: dict[Node, ExpressionText] = {}
        """The places above corners of cells."""
        self._shared: dict[object, str] = {}
        self._cited: set[tuple[str, int]] = set()

    # Statements.

    def write(self, nodes: Iterable[Node]) -> None:
        """Writes those of these nodes that get a variable, and their loops."""
        for node in nodes:
            if node.op == "loop":
                with self._along(node, f"loop {len(self.parts.body)}"):
                    self._write_loop(node)
            elif node in self.plan.in_place:
                # The new value of a carried value goes to the same variable.
                name = self._variables[self.plan.in_place[node]]
                self.cite(node)
                self.line(f"{assignment(name, self.made(node))};", node)
                self._variables[node] = name
            elif node in self.plan.cells and self.language.cells is not None:
                self._write_cell(node, *self.language.cells)
            elif node in self.plan.kept:
                name, text = self.name_of(node), self.made(node).text
                with self._along(node, name):
                    self._changes_along(name, node.kind, node in self.lines.shared)
                    self.cite(node)
                    self.line(self.language.declared(node.kind, name, text), node)
                self._variables[node] = name

    def _write_cell(self, node: Node, folded: str, below: str) -> None:
        """Writes the corner of a cell as a whole number, after a place in as many bits."""
        self.cite(node)
        name, place = self.name_of(node), self.value(node.args[0])
        if not (self.ranges.is_near(node) and node.args[0] in self._variables):
            text = place.text if self.ranges.is_near(node) else self._called(folded, [place]).text
            place = ExpressionText(self.names.new(f"{name}_place"))
            self.line(self.language.declared("float", place.text, text), node)
        self._places[node] = place
        text = self._called(below, [place]).text
        self.line(self.language.declared("int", name, text), node)
        self._variables[node] = name

    def cite(self, node: Node) -> None:
        """Writes the line of the patch that a value comes from as a comment, unless it has been cited already."""
        note = self.plan.owners.get(node)
        if note is None or not note.line or (note.source, note.line) in self._cited:
            return
        self._cited.add((note.source, note.line))
        self.line(f"// {note.line}: {remark(note.text)}", node)

    def line(self, text: str, node: Node | None = None) -> None:
        note = self.plan.owners.get(node) if node is not None else None
        place = f"{note.source}:{note.line}" if note is not None and note.line else ""
        self.parts.body.append(CodeLine(text, self.depth, place, self._part[1] if self._part else ""))

    # Loops.

    def _write_loop(self, loop: Node) -> None:
        """Writes a loop, after the declarations of its carried values."""
        body = loop.attr
        self.cite(loop)
        self._declare_carried(loop)
        # A nest may have to be stopped unless its steps are known.
        limited = not most_steps(loop) <= NEST_STEPS if body.outermost else self._budget is not None
        if body.outermost and body.nested and limited:
            self._budget = self.names.new("steps")
            self.line(self.language.declared("int", self._budget, "0", varies=True), loop)
        index = self.names.new(_INDICES[min(body.level, len(_INDICES) - 1)])
        if body.index is not None:
            self._variables[body.index] = index
        if not limited and _counts_exactly(loop):
            first, last = (self.language.real(arg.attr) for arg in loop.args[:2])
            one = self.language.real(1.0)
            head = self.language.loop_head("float", index, first, f"{index} <= {last}", f"{index} += {one}")
            self.line(f"{head} {{", loop)
            with self.block():
                self._write_step(loop)
        else:
            self._begin_open(loop, index, limited)
        self.line("}", loop)
        if body.outermost:
            self._budget = None

    def _begin_open(self, loop: Node, index: str, limited: bool) -> None:
        """Writes a loop whose bounds are known only when it begins."""
        first, last = self._bound(loop, 0, "first", inf), self._bound(loop, 1, "last", -inf)
        step = self.names.new("n")
        from_zero = loop.args[0].op == "const" and loop.args[0].attr == 0
        counted = self.language.converted("float", ExpressionText(step)).text
        at = counted if from_zero else f"{first} + {counted}"
        self.line(f"{self.language.loop_head('int', step, '0', f'{at} <= {last}', f'{step}++')} {{", loop)
        if limited:
            self.parts.stops = True
        with self.block():
            if limited:
                over = f" || {self._budget} == {NEST_STEPS}" if self._budget is not None else ""
                self.line(f"if ({step} == {LOOP_STEPS}{over}) {{", loop)
                with self.block():
                    self.line("stopped = true;", loop)
                    self.line("break;", loop)
                self.line("}", loop)
                if self._budget is not None:
                    self.line(f"{self._budget}++;", loop)
            if loop.attr.index is not None:
                self.line(self.language.declared("float", index, at), loop)
            self._write_step(loop)

    def _bound(self, loop: Node, at: int, name: str, instead: float) -> str:
        """A bound of a loop, computed before it. If it or the other bound is NaN, it is replaced by one (`instead`)
        with which there is no step, since drivers differ in comparisons with NaN."""
        node, other = loop.args[at], loop.args[1 - at]
        if node.op == "const" and isfinite(node.attr):
            return self.real(node)
        made, none = self.names.new(name), self.language.real(instead)
        if other.op == "const" and isfinite(other.attr):
            self.call("number_or")
            guarded = f"number_or({self.real(node)}, {none})"
        else:
            # Without a look at the other one, an infinite bound would make steps.
            self.call("bound")
            guarded = f"bound({self.real(node)}, {self.real(other)}, {none})"
        self.line(self.language.declared("float", made, guarded), node)
        return made

    def _declare_carried(self, loop: Node) -> None:
        body = loop.attr
        for k, (carried, start) in enumerate(zip(body.carried, loop.args[2:], strict=True)):
            lender = self.plan.lent.get((loop, k))
            if lender is not None:
                self._variables[carried] = self.value(lender).text
                continue
            note = self.plan.owners.get(carried)
            name = self.names.new(note.name if note is not None else "carried")
            self._changes_along(name, "float")
            self.line(self.language.declared("float", name, self.real(start), varies=True), loop)
            self._variables[carried] = name

    def _write_step(self, loop: Node) -> None:
        """Writes a step: its values, and the new carried values."""
        body = loop.attr
        self.write(body.nodes)
        following = [
            (carried, node)
            for carried, node in zip(body.carried, body.following, strict=True)
            if node is not carried and carried not in (self.plan.in_place.get(node), self._lender(node))
        ]
        moved = self._set_aside(body, following)
        for carried, node in following:
            name = self.value(carried).text
            self.cite(node)
            self.line(f"{moved.get(carried) or assignment(name, self.value(node))};", node)

    def _lender(self, node: Node) -> Node | None:
        """The carried value whose variable a loop within this one has already given its new value."""
        return self.plan.lent.get((node.args[0], node.attr)) if node.op == "loop_out" else None

    def _set_aside(self, body: LoopBody, following: list[tuple[Node, Node]]) -> dict[Node, str]:
        """Computes new values that use variables assigned before them into temporaries. Returns their assignments."""
        moved: dict[Node, str] = {}
        changed: set[Node] = set()
        for carried, node in following:
            if changed & set(_read(self, node)):
                name = self.names.new(f"next_{self.value(carried).text}")
                self.line(self.language.declared("float", name, self.real(node)), node)
                moved[carried] = f"{self.value(carried).text} = {name}"
            changed.add(carried)
        return moved

    # Names.

    def name_of(self, node: Node) -> str:
        """A new name for a value."""
        note = self.program.notes.get(node)
        if note is not None:
            return self.names.new(note.name)
        owner, hint = self.plan.owners.get(node), _HINTS.get(node.op, node.op)
        if node.op == "min" and any(arg.op == "max" for arg in node.args):
            hint = "clamped"
        return self.names.new(f"{owner.name}_{hint}" if owner is not None else hint)

    # Expressions.

    def value(self, node: Node) -> ExpressionText:
        """A value where it is used: its name, or its expression."""
        if node in self._variables:
            return ExpressionText(self._variables[node])
        return self.made(node)

    def real(self, node: Node) -> str:
        return self.value(node).text

    def as_real(self, node: Node) -> str:
        """A value as a float: a bool as 1 or 0."""
        value = self.value(node)
        return self.language.converted("float", value).text if node.kind == "bool" else value.text

    def made(self, node: Node) -> ExpressionText:
        """The expression that computes a value."""
        if node.op in OPS:
            return self._row(node)
        match node.op:
            case "const":
                return literal(self.language.real(node.attr))
            case "u32":
                return ExpressionText(self.language.bits(node.attr))
            case "scalar":
                return self._scalar(node)
            case "line":
                if node.attr.key not in self.parts.coords:
                    self.parts.coords.append(node.attr.key)
                return ExpressionText(f"me_{node.attr.key}")
            case "loop_out":
                return self.value(node.args[0].attr.carried[node.attr])
        return _READS[node.op](self, node)

    def _row(self, node: Node) -> ExpressionText:
        if node.op == "div" and not _is_zero(node.args[0]) and (multiplied := self._multiplied(node)) is not None:
            return multiplied
        args = [self.value(arg) for arg in node.args]
        found = self._pattern(node, args)
        if found is not None:
            return found
        spelling = self.language.spelling(OPS[node.op])
        if node.op == "div" and node.args[1].op == "const" and node.args[1].attr == 0:
            # Some drivers draw nothing at all if a program has a division by 0.
            spelling, args = "*", [args[0], literal(self.language.infinite(node.args[1].attr))]
        return self._called(spelling, args)

    def _pattern(self, node: Node, args: list[ExpressionText]) -> ExpressionText | None:
        """The expression of a value that is not written operation by operation; None for most values."""
        if node.op in ("bits_of", "sub") and self.language.cells is not None and node.args[-1].op == "floor":
            if node.args[-1] in self._places:
                return self._in_cell(node)
            if node.op == "bits_of" and node.args[0] not in self._variables:
                place = [self.value(node.args[0].args[0])]
                if not self.ranges.is_near(node.args[0]):
                    return self._called("bits_of", place)
                return self.language.converted("u32", self._called(self.language.cells[1], place))
        if node.op == "bits_of" and self.ranges.is_near(node.args[0]):
            return self.language.converted("u32", self.language.converted("int", args[0]))
        if node.op in ("min", "max") and self.language.skips_nan and self._is_unsigned(node):
            return self._called(node.op, args)
        if node.op in ("min", "max"):
            known = [is_number_input(arg) or (arg.op == "const" and arg.attr == arg.attr) for arg in node.args]
            zero_before = known[0] and not known[1] and _is_zero(node.args[0])
            if any(known) and not zero_before:
                number = node.args[0 if known[0] else 1]
                function = self.language.bound(node.op, number.attr if number.op == "const" else None)
                return self._called(function, args if known[0] else args[::-1])
            for arg, other in ((0, 1), (1, 0)) if self._is_unsigned(node) else ():
                if self.ranges.are_numbers([node.args[arg]]):
                    return self._called(node.op, [args[arg], args[other]])
        if node.op == "not" and self.language.negates_orders and node.args[0].op in _OPPOSITES:
            compared = node.args[0].args
            if not self.ranges.are_numbers(compared):
                values = [self.value(arg) for arg in compared]
                unordered = applied("!", [self._called("are_numbers", values)])
                return applied("||", [applied(_OPPOSITES[node.args[0].op], values), unordered])
        is_itself = node.op in ("eq", "ne") and node.args[0] is node.args[1] and node.args[0].kind == "float"
        if is_itself and "is_number" in self.language.function_names:
            # A compiler may think that there is no NaN.
            truth = self._called("is_number", args[:1])
            return truth if node.op == "eq" else applied("!", [truth])
        if node.op == "mod" and node.args[1].op == "const":
            if node.args[1].attr == 1:
                return self._called(self._shorter("fraction", node.args[:1]), args[:1])
            if node.args[1].attr == 0:
                return literal(self.language.real(nan))  # drivers may evaluate the division by 0 all the same
        if node.op == "div" and _is_zero(node.args[0]) and copysign(1, node.args[0].attr) > 0:
            return self._called("none_of", args[1:])
        if self._is_inexact(node):
            return self._called(self.language.exact[node.op], args)
        if node.op == "mod" and node.attr == FEW:
            one_by = self._reciprocal(node) or applied("/", [literal(self.language.real(1.0)), args[1]])
            return self._called(self._shorter("modulo_of_few", node.args), [*args, one_by])
        takes_turns = node.op == "mod" and "modulo_by" in self.language.function_names
        if takes_turns and is_number_input(node.args[1]) and (per := self._reciprocal(node)) is not None:
            return self._called("modulo_by", [*args, per])
        if node.op == "atan2" and self.language.spelling(OPS["atan2"]) in NEAR:
            return self._called(self._shorter("angle", node.args), args)
        if node.op in _FEW_WAVES:
            return self._wave(node, args)
        if node.op == "sub" and node.args[1].op == "floor" and node.args[1].args[0] is node.args[0]:
            whole = node.args[1]
            if self.language.has_fract and whole not in self._variables:
                return applied("fract", args[:1])
        if node.op == "mul" and any(_is_zero(arg) for arg in node.args):
            # Compilers assume that this is 0, and simplify what uses it.
            factor = args[1] if _is_zero(node.args[0]) else args[0]
            return applied("*", [self._called("nothing_of", [factor]), factor])
        if node.op in ("sub", "div") and node.args[0] is node.args[1]:
            return self._called("nothing_of" if node.op == "sub" else "one_of", args[:1])
        return None

    def _shorter(self, function: str, args: Sequence[Node]) -> str:
        """The form of a function for operands that are neither NaN nor large, if that is known of these."""
        near = NEAR.get(function)
        is_there = near in self.language.function_names
        return near if near is not None and is_there and all(map(self.ranges.is_near, args)) else function

    def _multiplied(self, node: Node) -> ExpressionText | None:
        """A quotient as a product with 1 over the divisor, which need not be an input then; to the last digit it is the
        sum of two. None if it is divided."""
        is_inexact = self._is_inexact(node)
        parts: tuple[Part, ...] = ("lower", "rest") if is_inexact else ("nearest",)
        known = [per for part in parts if (per := self._reciprocal(node, part)) is not None]
        if not known:
            return None
        if not is_inexact:
            return applied("*", [self.value(node.args[0]), *known])
        args = [*map(self.value, node.args if self.language.keeps_divisor else node.args[:1])]
        return self._called(f"{self.language.exact['div']}_by", [*args, *known])

    def _is_inexact(self, node: Node) -> bool:
        """Whether a value has to be right to the last digit, but the operation of the language may not give that."""
        if node not in self._exact or node.op not in self.language.exact:
            return False
        return node.op != "div" or _is_inexact_ratio(*node.args)

    def _in_cell(self, node: Node) -> ExpressionText:
        """The bits of the corner of a cell, or what lies above it."""
        corner = self.value(node.args[-1])
        if node.op == "bits_of":
            return self.language.converted("u32", corner)
        above = applied("-", [self._places[node.args[1]], self.language.converted("float", corner)])
        # Of -0, which has no corner of its own sign, it would be -0.
        return applied("+", [above, literal(self.language.real(0.0))]) if node in self._signed else above

    def _is_unsigned(self, node: Node) -> bool:
        """Whether it does not show if a value is 0 or -0."""
        return self.parts.packed and node not in self._signed

    def _wave(self, node: Node, args: list[ExpressionText]) -> ExpressionText | None:
        """A sine or a cosine of half turns that may be inexact, if it is not the function for any of them."""
        turned = [applied("*", [literal(self.language.real(pi)), *args])]
        is_few = node.attr == FEW and self.language.exact_waves
        if node.op == "sinpi" and node in self._coarse and self.language.coarse_sines is not None:
            of_few, of_any = self.language.coarse_sines
            return self._called(of_few, turned) if is_few else self._called(of_any, args)
        return self._called(_FEW_WAVES[node.op], turned) if is_few else None

    def _called(self, function: str, args: list[ExpressionText]) -> ExpressionText:
        self.call(function)
        match function, args:
            case "?:", [condition, then, otherwise]:
                return self.language.choice(condition, then, otherwise)
            case "float", [truth]:
                return self.language.converted("float", truth)
        return self.language.applied(self.language.word(function), args)

    def call(self, function: str) -> None:
        """Notes that a function is called."""
        if function in self.language.function_names:
            self.parts.helpers.add(function)

    def _reciprocal(self, node: Node, part: Part = "nearest") -> ExpressionText | None:
        """1 over the second operand of a value, or a part of it, computed before the launch; None if that varies over
        the picture, or the language divides."""
        divisor = node.args[1]
        if not self.language.by_reciprocal:
            return None
        if divisor.op == "const":
            usual = 1 / _MOST_DIVISOR <= abs(divisor.attr) <= _MOST_DIVISOR
            return literal(self.language.real(one_over(divisor.attr, part))) if usual else None
        if divisor.op != "scalar" or divisor.attr.source not in ("number", "local", "uniform"):
            return None
        owner = self.plan.owners.get(node)
        name = f"{owner.name}_share" if owner is not None else "share"
        origin = ""
        if self.program.notes:
            is_number = divisor.attr.source == "number"
            below = f"{self.numbers[int(divisor.attr.key)]:.9g}" if is_number else self._origin(divisor.attr)
            origin = f"1 / {below}"
        return ExpressionText(self.parts.frame.read(OneOver(divisor.attr, part), name, "float", origin))

    def _origin(self, scalar: Scalar) -> str:
        """The part of the patch that a number of the launch comes from."""
        return self.parts.kernel.locals[int(scalar.key)].name if scalar.source == "local" else str(scalar.key)

    def _scalar(self, node: Node) -> ExpressionText:
        scalar: Scalar = node.attr
        origin = ""
        match scalar:
            case Scalar("local", int(number)):
                note = self.prologue.notes.get(self.prologue.locals[number])
                name = origin = self._origin(scalar)
                if note is not None:
                    name = note.name
                elif name.endswith("…") or len(name) < 2:
                    owner = self.plan.owners.get(node)
                    name = owner.name if owner is not None else "given"
            case Scalar("number", int(place)):
                owner = self.plan.owners.get(node)
                name = f"{owner.name}_number" if owner is not None else "number"
                origin = f"{self.numbers[place]:.9g}" if self.program.notes else ""  # in a listing, for people
            case _:
                name = origin = self._origin(scalar)
        text = self.parts.frame.read(scalar, name, scalar.kind, origin)
        return self.language.truth(text) if scalar.kind == "bool" else ExpressionText(text)


    def shared(self, key: object, kind: Type, name: str, text: str, node: Node) -> str:
        """The name of something that several values like a node share; declared when it is first used."""
        if key not in self._shared:
            made = self.names.new(name)
            with self._along(node, made):
                self._changes_along(made, kind)
                self.line(self.language.declared(kind, made, text))
            self._shared[key] = made
        return self._shared[key]

    @contextmanager
    def _along(self, node: Node, name: str) -> Iterator[None]:
        """The lines that are written within this context have this name as a part of the program if they change along
        one axis, as the node does then."""
        before, axis = self._part, self.lines.axes.get(node)
        self._part = (axis, name) if axis is not None else before
        yield
        self._part = before

    def _changes_along(self, name: str, kind: Type, shared: bool = False) -> None:
        """Notes a variable of the part that is being written, if it is one."""
        if self._part is not None:
            axis, statements = self._part
            self.parts.lines[name] = LineValue(axis, kind, shared, statements)

    @contextmanager
    def block(self) -> Iterator[None]:
        """Indents what is written within this context, and hides its shared names afterwards."""
        outside, self._shared = self._shared, dict(self._shared)
        self.depth += 1
        yield
        self.depth -= 1
        self._shared = outside


def _is_inexact_ratio(dividend: Node, divisor: Node) -> bool:
    """Whether a quotient may be off. By a power of 2, by 0, or by itself it is right."""
    return dividend is not divisor and (divisor.op != "const" or abs(frexp(divisor.attr)[0]) not in (0, 0.5))


def _is_zero(node: Node) -> bool:
    return node.op == "const" and node.attr == 0
