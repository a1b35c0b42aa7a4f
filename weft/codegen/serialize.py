"""Kernels as JSON, without loss in both directions, and the hash that says whether two do the same."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Mapping
from typing import Any

from weft.codegen.base import Allocation, Kernel
from weft.codegen.values import Line, Note, Rows, Scalar, Section, numbered, read_rows
from weft.ir.expr import LoopShape, LoopValue, PicturePlane, SlotPlane, StrandRef
from weft.ir.rates import Rate
from weft.ir.serialize import Json, number_from_json, number_to_json, slot_from_json, slot_to_json


def to_json(kernel: Kernel) -> Json:
    """What `from_json` reads."""
    return {
        "name": kernel.name,
        "context": kernel.context,
        "sweep": kernel.sweep,
        "tick": kernel.tick,
        "sections": [_section_to_json(section) for section in kernel.sections],
        "outputs": list(kernel.outputs),
        "coords": [[name, rate.title] for name, rate in kernel.coords],
        "uniforms": list(kernel.uniforms),
        "strands": [list(ref) for ref in kernel.strands],
        "pictures": list(kernel.pictures),
        "slots": [slot_to_json(slot) for slot in kernel.slots],
        "locals": [[a.name, a.rate.title, a.type] for a in kernel.locals],
    }


def from_json(data: Json) -> Kernel:
    """The kernel that `to_json` wrote."""
    return Kernel(
        name=data["name"],
        context=data["context"],
        sweep=data["sweep"],
        tick=data["tick"],
        sections=tuple(_section_from_json(section) for section in data["sections"]),
        outputs=tuple(data["outputs"]),
        coords=tuple((name, _rate(title)) for name, title in data["coords"]),
        uniforms=tuple(data["uniforms"]),
        strands=tuple(StrandRef(*names) for names in data["strands"]),
        pictures=tuple(data["pictures"]),
        slots=tuple(slot_from_json(slot) for slot in data["slots"]),
        locals=tuple(Allocation(name, _rate(title), kind) for name, title, kind in data["locals"]),
    )


def content_hash(kernel: Kernel) -> str:
    """16 hexadecimal digits, equal for kernels that do the same: what people call the kernel and its values does not
    matter."""
    head = (
        kernel.context, kernel.sweep, kernel.tick, kernel.outputs, kernel.uniforms, kernel.strands, kernel.pictures,
        kernel.slots, [(name, int(rate)) for name, rate in kernel.coords],
        [(int(local.rate), local.type) for local in kernel.locals],
    )  # fmt: skip
    digest = hashlib.sha256(repr(head).encode())
    for section in kernel.sections:
        rows, _ = numbered(section)
        # Numbers are told apart by their bits; which of the rows they belong to, the rows themselves say.
        numbers = [attr for attr in rows.attrs if isinstance(attr, float)]
        words = rows._replace(attrs=tuple([None if isinstance(attr, float) else attr for attr in rows.attrs]))
        digest.update(f"\n{int(section.rate)} {tuple(words)!r}".encode())
        digest.update(struct.pack(f"<{len(numbers)}d", *numbers))
    return digest.hexdigest()[:16]


def _rate(title: str) -> Rate:
    return Rate[title.upper()]


_ATTRIBUTES: Mapping[str, Callable[..., Any]] = {
    "scalar": Scalar, "line": lambda source, key, rate, kind: Line(source, key, Rate(rate), kind), "state": SlotPlane,
    "sample": SlotPlane, "picture": PicturePlane, "strand": StrandRef, "loop": LoopShape, "loop_value": LoopValue,
}  # fmt: skip


def _section_to_json(section: Section) -> Json:
    rows, notes = numbered(section)
    return {
        "rate": section.rate.title,
        "values": [
            [op, list(args), *([_attribute_to_json(attr)] if attr is not None else ())]
            for op, args, attr in zip(rows.ops, rows.args, rows.attrs, strict=True)
        ],
        "outputs": list(rows.outputs),
        "stores": [[list(place), number] for place, number in rows.stores],
        "locals": [list(entry) for entry in rows.locals],
        "notes": [[number, *note] for number, note in notes],
    }


def _section_from_json(data: Json) -> Section:
    ops, args, attrs = [], [], []
    for op, operands, *attr in data["values"]:
        ops.append(op)
        args.append(tuple(operands))
        attrs.append(_attribute_from_json(op, *attr) if attr else None)
    rows = Rows(
        tuple(ops), tuple(args), tuple(attrs), tuple(data["outputs"]),
        tuple((SlotPlane(*place), number) for place, number in data["stores"]),
        tuple((local, number) for local, number in data["locals"]),
    )  # fmt: skip
    return read_rows(_rate(data["rate"]), rows, [(number, Note(*note)) for number, *note in data["notes"]])


def _attribute_to_json(attr: Any) -> Json:
    if isinstance(attr, float):
        return number_to_json(attr)
    return [int(part) if isinstance(part, Rate) else part for part in attr] if isinstance(attr, tuple) else attr


def _attribute_from_json(op: str, data: Any) -> Any:
    if op == "const":
        return number_from_json(data)
    return _ATTRIBUTES[op](*data) if op in _ATTRIBUTES else data
