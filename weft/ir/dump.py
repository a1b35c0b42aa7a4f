"""Lowered IR as readable text, for `--dump-ir`."""

from __future__ import annotations

from weft.contexts import ContextSpec
from weft.ir.expr import (
    Expr, LoopShape, LoopValue, Lowered, PicturePlane, SlotPlane, StateSlot, StrandRef, Update, known_of, topological
)
from weft.ir.rates import rates
from weft.ir.tunable import current
from weft.syntax.ast import number_text


def to_text(lowered: Lowered, spec: ContextSpec) -> str:
    """The IR as `--dump-ir` prints it: each expression where it is first used, with its rate."""
    slots = {slot.key: slot for slot in lowered.slots}
    rate = rates(lowered.roots, spec, slots)
    groups = {
        "outputs": [(o.label, o.value) for o in lowered.outputs],
        "state": [(_update_text(u, slots[u.slot]), u.value) for u in lowered.updates],
        "exposed": [(str(ref), value) for ref, value in lowered.exposed],
        "given by others, once a frame": [(f.label, f.value) for f in lowered.feeds],
        "times of films": [(f.label, f.value) for f in lowered.films],
    }
    lines = [f"subgraph {lowered.name} · {lowered.context}"]
    listed: set[Expr] = set()
    for title, entries in groups.items():
        if entries:
            new = [n for n in topological(value for _, value in entries) if n not in listed and n.args]
            listed.update(new)
            lines.append(f"{title}:")
            lines += [f"  %{n.index} = {_operation_text(n)}  · {rate[n].title}" for n in new]
            lines += [f"  {name} = {operand_text(value)}" for name, value in entries]
    return "\n".join(lines) + "\n"


def operand_text(node: Expr) -> str:
    """An operand: by its number if it has operands itself, otherwise in full."""
    match node.op, node.attr:
        case "const", _:
            return number_text(current(known_of(node)))
        case "u32", int(value):
            return f"0x{value:08x}"
        case (("coord" | "uniform"), str(name)):
            return name
        case "loop_index", int(level):
            return f"loop{level}.index"
        case "loop_value", LoopValue(level, index):
            return f"loop{level}.{index}"
        case "strand", StrandRef() if not node.args:
            return str(node.attr)
    return f"%{node.index}"


def _operation_text(node: Expr) -> str:
    args = [operand_text(arg) for arg in node.args]
    match node.attr:
        case LoopShape(level, carried):
            steps = [f"{a} → {b}" for a, b in zip(args[2 : 2 + carried], args[2 + carried :], strict=True)]
            return f"loop{level} from {args[0]} to {args[1]} carrying {', '.join(steps)}"
        case SlotPlane(slot, plane) | PicturePlane(slot, plane):
            return " ".join([node.op, f"{slot}[{plane}]", *args])
        case StrandRef():
            return " ".join([node.op, str(node.attr), *args])
        case int(index):
            return " ".join([node.op, *args, str(index)])
    return " ".join([node.op, *args])


def _update_text(update: Update, slot: StateSlot) -> str:
    kind = "image" if slot.image else "number"
    at_level = f", level {slot.level}" if slot.level else ""
    return f"{update.slot}[{update.plane}] ({slot.kind}, {kind}, {slot.depth} back{at_level})"
