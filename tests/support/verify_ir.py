"""Checks the invariants of lowered IR, so that a mistake is found where it was made and not as a wrong picture."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from weft.contexts import is_smoothed
from weft.ir.expr import (
    Expr, LoopShape, LoopValue, Lowered, MalformedError, PicturePlane, SlotPlane, StateSlot, StrandRef, known_of
)
from weft.ir.tunable import Tunable, current
from weft.ops import OPS
from weft.ops.spec import ValueType

COORDINATES = ("x", "y", "abstime", "channel", "since")

# The attribute of each structural operation, and the numbers of operands that it may have (None: any).
_STRUCTURE: Mapping[str, tuple[type | tuple[type, ...], tuple[int, ...] | None]] = {
    "const": ((float, Tunable), (0,)),
    "u32": (int, (0,)),
    "coord": (str, (0,)),
    "uniform": (str, (0,)),
    "state": (SlotPlane, (1, 3)),
    "picture": (PicturePlane, (2,)),
    "fetch": (PicturePlane, (1,)),
    "strand": (StrandRef, None),
    "loop": (LoopShape, None),
    "loop_out": (int, (1,)),
    "loop_index": (int, (0,)),
    "loop_value": (LoopValue, (0,)),
}

# For each level of a loop, one more than the largest index with which its carried values are mentioned.
_Mentions: TypeAlias = Mapping[int, int]
_NO_MENTIONS: _Mentions = {}


def verify(lowered: Lowered) -> None:
    """Raises MalformedError, with the offending expression, if a rule of the IR is broken: operands before their
    users, equal structure is one object, the operators' arities and types, loops and their variables, state slots."""
    slots = _slots_by_key(lowered.slots)
    nodes = lowered.nodes
    _check_interning(nodes)
    for node in nodes:
        _check_operation(node, slots)
    _check_carried_values(nodes)
    _check_roots(lowered)
    _check_updates(lowered, slots)


def type_of(node: Expr) -> ValueType:
    """The type of an expression's value."""
    if node.op == "u32":
        return "u32"
    return "float" if node.op in _STRUCTURE else OPS[node.op].gives


def converts(given: ValueType, wanted: ValueType) -> bool:
    """Whether a value may be used where another type is wanted: reals and truths are interchangeable, bits are not."""
    return (given == "u32") == (wanted == "u32")


def _require(condition: bool, where: object, message: str) -> None:
    if not condition:
        raise MalformedError(f"{where}: {message}")


def _slots_by_key(slots: Iterable[StateSlot]) -> dict[str, StateSlot]:
    listed = list(slots)
    keys = [slot.key for slot in listed]
    _require(keys == sorted(set(keys)), "slots", f"keys are not unique and sorted: {keys}")
    for slot in listed:
        _require(slot.depth >= 1 - slot.image and slot.planes >= 1, slot.key, "depth and planes must be at least 1")
    return {slot.key: slot for slot in listed}


def _check_interning(nodes: Iterable[Expr]) -> None:
    seen: dict[tuple[object, ...], Expr] = {}
    for node in nodes:
        _require(all(arg.index < node.index for arg in node.args), node, "an operand was made after its user")
        # Numbers are distinguished by their bits, as in the pool.
        attr = struct.pack("<d", node.attr) if isinstance(node.attr, float) else node.attr
        key = (node.op, attr, *(arg.index for arg in node.args))
        other = seen.setdefault(key, node)
        _require(other is node, node, f"equal to %{other.index}, but not the same object")


def _check_operation(node: Expr, slots: Mapping[str, StateSlot]) -> None:
    if node.op in _STRUCTURE:
        _check_structural(node, slots)
        return
    row = OPS.get(node.op)
    if row is None:
        raise MalformedError(f"{node}: unknown operation")
    _require(row.expand is None, node, "should have been expanded into other operations")
    _require(len(node.args) == len(row.params), node, f"takes {len(row.params)} operands")
    _require(node.attr is None, node, "an operation has no attribute")
    for at, arg in enumerate(node.args):
        _check_operand(node, arg, row.type_of_operand(at))


def _check_operand(node: Expr, arg: Expr, wanted: ValueType) -> None:
    _require(arg.op != "loop" or node.op == "loop_out", node, "a loop is read by `loop_out` only")
    _require(arg.op == "loop" or converts(type_of(arg), wanted), node, f"%{arg.index} is {type_of(arg)}, not {wanted}")


def _check_structural(node: Expr, slots: Mapping[str, StateSlot]) -> None:
    attribute, counts = _STRUCTURE[node.op]
    names = " or a ".join(each.__name__ for each in (attribute if isinstance(attribute, tuple) else (attribute,)))
    _require(isinstance(node.attr, attribute), node, f"its attribute is not a {names}")
    _require(counts is None or len(node.args) in counts, node, f"takes {counts} operands")
    for arg in node.args:
        _check_operand(node, arg, "float")
    match node.op, node.attr:
        case "coord", str(name):
            _require(name in COORDINATES or is_smoothed(name), node, f"{name!r} is not a base coordinate")
        case "u32", int(value):
            _require(0 <= value < 1 << 32, node, "does not fit into 32 bits")
        case "picture", PicturePlane(_, plane):
            _require(0 <= plane < 4, node, "a picture has the planes 0…3")
        case "fetch", PicturePlane(_, channel):
            _require(0 <= channel < 2, node, "a sound has the channels 0 and 1")
        case "state", SlotPlane(slot, plane):
            _check_state(node, slots.get(slot), plane)
        case "loop", LoopShape(level, carried):
            _check_loop(node, level, carried)
        case "loop_out", int(index):
            loop = node.args[0]
            _require(loop.op == "loop", node, "reads something that is not a loop")
            carried = loop.attr.carried if isinstance(loop.attr, LoopShape) else 0
            _require(0 <= index < carried, node, "the loop carries fewer values")


def _check_state(node: Expr, slot: StateSlot | None, plane: int) -> None:
    if slot is None:
        raise MalformedError(f"{node}: no such state slot")
    _require(0 <= plane < slot.planes, node, f"the slot has {slot.planes} planes")
    _require(slot.image or len(node.args) == 1, node, "only an image is sampled at a place")
    ticks, least = current(known_of(node.args[0])) if node.args[0].op == "const" else 1.0, min(1, slot.depth)
    known = isinstance(ticks, float) and least <= ticks <= slot.depth
    _require(known, node, f"the slot remembers {least}…{slot.depth} ticks")


def _check_loop(node: Expr, level: int, carried: int) -> None:
    _require(len(node.args) == 2 + 2 * carried, node, "needs two bounds, and a start and a next value for each carried")
    for arg in node.args[: 2 + carried]:
        _require(arg.free >> level == 0, node, f"%{arg.index} mentions a variable of its own level or a deeper one")
    for arg in node.args[2 + carried :]:
        _require(arg.free >> level + 1 == 0, node, f"%{arg.index} mentions a variable of a deeper loop")


def _check_carried_values(nodes: Iterable[Expr]) -> None:
    """Every `loop_value` must exist in each loop that it is a part of."""
    mentions: dict[Expr, _Mentions] = {}
    for node in nodes:
        found = _mentioned(node, mentions)
        if isinstance(node.attr, LoopShape):
            level, carried = node.attr
            _require(found.get(level, 0) <= carried, node, "its body mentions a value that it does not carry")
            found = {other: count for other, count in found.items() if other != level}
        mentions[node] = found


def _mentioned(node: Expr, mentions: Mapping[Expr, _Mentions]) -> _Mentions:
    if isinstance(node.attr, LoopValue):
        return {node.attr.level: node.attr.k + 1}
    parts = [mentions[arg] for arg in node.args if mentions[arg]]
    if len(parts) <= 1:
        return parts[0] if parts else _NO_MENTIONS
    merged: dict[int, int] = {}
    for part in parts:
        for level, count in part.items():
            merged[level] = max(count, merged.get(level, 0))
    return merged


def _check_roots(lowered: Lowered) -> None:
    for root in lowered.roots:
        _require(root.free == 0, root, "a loop's variable outside its loop")
        _require(root.op != "loop", root, "a loop is read by `loop_out` only")
        _require(type_of(root) != "u32", root, "bits cannot leave the program")
    names = [ref for ref, _ in lowered.exposed]
    _require(len(names) == len(set(names)), "exposed", "a strand is exposed twice")


def _check_updates(lowered: Lowered, slots: Mapping[str, StateSlot]) -> None:
    missing = {(slot.key, plane) for slot in lowered.slots for plane in range(slot.planes)}
    for update in lowered.updates:
        place = (update.slot, update.plane)
        _require(update.slot in slots, place, "no such state slot")
        _require(place in missing, place, "updated twice, or no such plane")
        missing.remove(place)
    _require(not missing, "updates", f"never updated: {sorted(missing)}")
