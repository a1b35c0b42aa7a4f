"""Lowered IR as readable text, for `--dump-ir`."""

from __future__ import annotations

from collections.abc import Mapping

from weft.contexts import ContextSpec
from weft.ir.expr import (
    Expr, LoopShape, LoopValue, Lowered, PicturePlane, SlotPlane, StateSlot, StrandRef, Update, topological
)
from weft.ir.rates import Rate, rates


def to_text(lowered: Lowered, spec: ContextSpec) -> str:
    """The IR as `--dump-ir` prints it: each expression where it is first used, with its rate."""
    slots = {slot.key: slot for slot in lowered.slots}
    dump = _Dump(rates(lowered.roots, spec, slots))
    dump.lines.append(f"subgraph {lowered.name} · {lowered.context}")
    dump.group("outputs", [(o.label, o.value) for o in lowered.outputs])
    dump.group("state", [(_update_text(u, slots[u.slot]), u.value) for u in lowered.updates])
    dump.group("exposed", [(str(ref), value) for ref, value in lowered.exposed])
    dump.group("given by others, once a frame", [(f.label, f.value) for f in lowered.feeds])
    return "\n".join(dump.lines) + "\n"


class _Dump:
    """Collects the lines of a text dump, and remembers which expressions it has listed."""

    def __init__(self, rate: Mapping[Expr, Rate]) -> None:
        self.lines: list[str] = []
        self._rate = rate
        self._listed: set[Expr] = set()

    def group(self, title: str, entries: list[tuple[str, Expr]]) -> None:
        """Lists entries (a name and its value) after the expressions that are new in them."""
        if not entries:
            return
        self.lines.append(f"{title}:")
        new = [n for n in topological(value for _, value in entries) if n not in self._listed and n.args]
        self._listed.update(new)
        self.lines += [f"  %{n.index} = {_operation_text(n)}  · {self._rate[n].title}" for n in new]
        self.lines += [f"  {name} = {operand_text(value)}" for name, value in entries]


def number_text(value: float) -> str:
    """A number as people write it: 5, not 5.0; otherwise with all significant digits."""
    return repr(value).removesuffix(".0")


def operand_text(node: Expr) -> str:
    """An operand: by its number if it has operands itself, otherwise in full."""
    match node.op, node.attr:
        case "const", float(value):
            return number_text(value)
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
    return f"{update.slot}[{update.plane}] ({slot.kind}, {kind}, {slot.depth} back)"
