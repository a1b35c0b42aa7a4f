"""Checks of kernels, such as those that another machine sends: the order of their values, types, inputs and stores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from weft.codegen.kernel import Kernel
from weft.codegen.values import IMPLIED, LEAVES, SIGNATURES, Line, LoopBody, Node, Scalar, Section, kind_of
from weft.ir.expr import LoopValue, MalformedError, PicturePlane, SlotPlane, StrandRef
from weft.ir.rates import Rate

VISIBLE: Mapping[Rate, frozenset[Rate]] = {
    rate: frozenset(r for r in Rate if r in (Rate.CONSTANT, Rate.FRAME, rate) and r <= rate) for rate in Rate
} | {Rate.ELEMENT: frozenset(Rate)}
"""The sections whose locals and coordinates a section may read."""

# The number of operands of each structural operation (None: any), and the type of its attribute.
_STRUCTURE: Mapping[str, tuple[int | None, type]] = {
    "state": (1, SlotPlane), "sample": (3, SlotPlane), "picture": (2, PicturePlane), "strand": (None, StrandRef),
    "loop": (None, LoopBody), "loop_out": (1, int),
}  # fmt: skip


def verify(kernel: Kernel) -> None:
    """Raises MalformedError, with the section and the value, if the values of a kernel are malformed."""
    order = [section.rate for section in kernel.sections]
    if order != sorted(set(order)) or Rate.ELEMENT not in order:
        raise MalformedError(f"{kernel.name}: sections {[r.title for r in order]}")
    known: set[int] = set()
    for section in kernel.sections:
        _ValueCheck(kernel, section, known).run()
        known |= section.locals.keys()
    check_updates(kernel, [store.place for section in kernel.sections for store in section.stores])


def check_updates(kernel: Kernel, updated: list[SlotPlane]) -> None:
    slots = kernel.slots if kernel.sweep == "grid" else ()
    wanted = {SlotPlane(slot.key, plane) for slot in slots for plane in range(slot.planes)}
    if len(updated) != len(set(updated)) or set(updated) != wanted:
        raise MalformedError(f"{kernel.name}: updates {sorted(updated)} instead of {sorted(wanted)}")


@dataclass
class _ValueCheck:
    """Checks one section from front to back."""

    kernel: Kernel
    section: Section
    known: set[int]
    """The locals of the sections before."""
    defined: set[Node] = field(default_factory=set)
    """The values that may be used: of the section so far, of loops around this place, and checked leaves."""

    def run(self) -> None:
        section = self.section
        self._check_nodes(section.nodes, level=-1)
        for number, node in section.locals.items():
            self._require(0 <= number < len(self.kernel.locals), node, f"no local {number}")
            local = self.kernel.locals[number]
            self._require(local.rate == section.rate, node, f"local {number} belongs to the {local.rate.title} section")
            self._require(local.type == node.kind, node, f"local {number} is {local.type}")
            self._check_use(node, node)
        for store in section.stores:
            self._check_store(store.place, store.value)
        if section.outputs or section.rate == Rate.ELEMENT:
            at_end = section.rate == Rate.ELEMENT and len(section.outputs) == len(self.kernel.outputs)
            self._require(at_end, "outputs", f"{len(section.outputs)} values as {len(self.kernel.outputs)} outputs")
        for node in section.outputs:
            self._check_use(node, node)
            self._require(node.kind != "u32", node, "bits cannot leave the program")

    def _require(self, condition: bool, what: object, message: str) -> None:
        if not condition:
            raise MalformedError(f"{self.kernel.name}, {self.section.rate.title} section, {what}: {message}")

    def _check_nodes(self, nodes: Iterable[Node], level: int) -> None:
        for node in nodes:
            for arg in node.args:
                self._check_use(node, arg)
            signature = SIGNATURES.get(node.op)
            if signature is not None:
                self._check_kinds(node, [arg.kind for arg in node.args], signature[0])
                self._require(node.attr in (None, IMPLIED), node, "an operation has no attribute")
            else:
                self._check_structural(node, level)
            self._require(node.kind == kind_of(node.op, node.attr), node, "has another type")
            self.defined.add(node)

    def _check_kinds(self, node: Node, given: list[str], wanted: Iterable[str]) -> None:
        self._require(given == list(wanted), node, f"is given {given} as {list(wanted)}")

    def _check_use(self, node: Node, arg: Node) -> None:
        if arg in self.defined:
            return
        self._require(arg.op in LEAVES, node, f"uses {arg} before it is computed")
        self._check_leaf(arg)
        self.defined.add(arg)

    def _check_leaf(self, leaf: Node) -> None:
        visible = VISIBLE[self.section.rate]
        match leaf.op, leaf.attr:
            case ("const", float()) | ("u32", int()):
                return
            case "scalar", Scalar("uniform", name):
                self._require(name in self.kernel.uniforms, leaf, f"{name} is no uniform of the kernel")
            case ("scalar" | "line"), Scalar("coord", name) | Line("coord", name):
                rate = dict(self.kernel.coords).get(str(name))
                self._require(rate in visible, leaf, f"{name} is not there in this section ({rate})")
                self._check_form(leaf, rate)
            case ("scalar" | "line"), Scalar("local", int(number)) | Line("local", int(number)):
                self._require(0 <= number < len(self.kernel.locals), leaf, f"no local {number}")
                local = self.kernel.locals[number]
                self._require(local.rate in visible, leaf, f"local {number} is a {local.rate.title}'s")
                self._require(number in self.known, leaf, f"local {number} is read before it is computed")
                self._require(local.type == leaf.kind, leaf, f"local {number} is {local.type}")
                self._check_form(leaf, local.rate)
            case _:
                self._require(False, leaf, f"cannot be given as {leaf.attr}")

    def _check_form(self, leaf: Node, rate: Rate | None) -> None:
        is_line = rate not in (Rate.CONSTANT, Rate.FRAME)
        self._require((leaf.op == "line") == is_line, leaf, f"a {rate!r} is no {leaf.op}")
        self._require(not is_line or leaf.attr.rate == rate, leaf, f"changes with {rate!r}")

    def _check_structural(self, node: Node, level: int) -> None:
        self._require(node.op in _STRUCTURE, node, "unknown operation")
        count, attribute = _STRUCTURE[node.op]
        self._require(isinstance(node.attr, attribute), node, f"its attribute is no {attribute.__name__}")
        self._require(count is None or len(node.args) == count, node, f"takes {count} operands")
        self._check_kinds(node, [arg.kind for arg in node.args], ["float"] * len(node.args))
        match node.op:
            case "state":
                image = self._check_plane(node, node.attr)
                here = self.section.rate == Rate.ELEMENT and self.kernel.sweep == "grid"
                self._require(not image or here, node, "has no element here to be read at")
            case "sample":
                self._require(self._check_plane(node, node.attr), node, "is no image")
            case "picture":
                path, plane = node.attr
                is_known = path in self.kernel.pictures and 0 <= plane < 4
                self._require(is_known, node, "is no plane of its pictures")
            case "strand":
                self._require(node.attr in self.kernel.strands, node, "is no strand of the kernel")
            case "loop":
                self._check_loop(node, node.attr, level)
            case "loop_out":
                loop: Any = node.args[0]
                inside = loop.op == "loop" and 0 <= node.attr < len(loop.attr.carried)
                self._require(inside, node, "reads what no loop carries")
        for arg in node.args:
            self._require(arg.op != "loop" or node.op == "loop_out", node, "a loop is read by `loop_out` only")

    def _check_loop(self, node: Node, body: LoopBody, level: int) -> None:
        self._require(body.level > level, node, "its level is not the deepest")
        count = len(body.carried)
        self._require(count == len(body.following) == len(node.args) - 2, node, "carries more or fewer values")
        for k, carried in enumerate(body.carried):
            is_own = (carried.op, carried.attr) == ("loop_value", LoopValue(body.level, k))
            self._require(is_own, node, "carries values of another loop")
        outside = set(self.defined)
        self.defined.update(body.carried)
        if body.index is not None:
            self._require((body.index.op, body.index.attr) == ("loop_index", body.level), node, "its index")
            self.defined.add(body.index)
        self._check_nodes(body.nodes, body.level)
        for following in body.following:
            self._check_use(node, following)
            self._check_kinds(node, [following.kind], ["float"])
        # The loop may have had no step, so its values are not defined after it.
        self.defined = outside

    def _check_plane(self, node: Node, place: SlotPlane) -> bool:
        """Whether the slot is an image."""
        slot = next((s for s in self.kernel.slots if s.key == place.slot), None)
        if slot is None or not 0 <= place.plane < slot.planes:
            raise MalformedError(f"{self.kernel.name}, {node}: no such plane of a slot: {place}")
        return slot.image


    def _check_store(self, place: SlotPlane, value: Node) -> None:
        self._check_use(value, value)
        by_element = self._check_plane(value, place) or self.kernel.tick == "element"
        rate = Rate.ELEMENT if by_element else Rate.FRAME
        self._require(self.section.rate == rate, value, "is stored at the wrong rate")
        self._check_kinds(value, [value.kind], ["float"])
