"""Reads of state, of pictures, and of strands that were asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.codegen.clike.asking import Asked
from weft.codegen.clike.expressions import Text
from weft.codegen.clike.names import identifier
from weft.codegen.clike.shader import Bound, Past
from weft.codegen.native.layout import Head
from weft.codegen.native.nodes import Node
from weft.graph.mistakes import short
from weft.ir.program import StateSlot

if TYPE_CHECKING:
    from weft.codegen.clike.body import Writer


def write_state(w: Writer, node: Node) -> Text:
    """A slot k ticks ago: an image at this element, or a number."""
    slot = w.parts.kernel.slot(node.attr.slot)
    if slot.image:
        return Text(w.language.own(w.parts, image_of(w, slot), slot, _index(w, slot, node)))
    (k,) = node.args
    if k.op == "const":
        past = Past(slot.key, node.attr.plane, _ticks(k.attr, slot))
        return Text(w.parts.frame.read(past, f"{slot_name(slot.key)}_past", "real", slot.key))
    bound = _bound(w, w.parts.histories, slot.key, f"{slot_name(slot.key)}_{w.language.ring}")
    return Text(w.language.remembered(w.parts, bound, _index(w, slot, node)))


def write_sample(w: Writer, node: Node) -> Text:
    """An image slot k ticks ago, sampled."""
    slot = w.parts.kernel.slot(node.attr.slot)
    x, y = (w.real(arg) for arg in node.args[1:])
    return Text(w.language.sampled(w.parts, image_of(w, slot), slot, _index(w, slot, node), x, y))


def write_picture(w: Writer, node: Node) -> Text:
    """A channel of a picture, sampled. Channels at one place are taken from one colour."""
    path, channel = node.attr
    bound = _bound(w, w.parts.pictures, path, _file_name(path))
    key = (path, *node.args)
    text = w.language.picture(w.parts, bound, *(w.real(arg) for arg in node.args))
    name = w.shared(key, w.language.four, f"{bound.name}_colour", text)
    return Text(f"{name}.{'rgba'[channel]}")


def write_asked(w: Writer, node: Node) -> Text:
    """The value of another subgraph's strand at this element."""
    asked: Asked = node.attr
    bound = _bound(w, w.parts.asked, asked.key, f"{short(asked.strand)}_there")
    return Text(w.language.asked(w.parts, bound, asked.over))


def image_of(w: Writer, slot: StateSlot) -> Bound:
    """The images of a slot."""
    return _bound(w, w.parts.images, slot.key, f"{slot_name(slot.key)}_{w.language.ring}")


def _bound(w: Writer, known: dict[str, Bound], key: str, name: str) -> Bound:
    if key not in known:
        known[key] = Bound(w.names.new(name), key)
        w.names.take(known[key].name.replace("_past", "_next", 1))
    return known[key]


def slot_name(key: str) -> str:
    """What a slot is called: `visual/trail@r/prev/0` is `trail_r`."""
    parts = key.split("/")
    return identifier(parts[1].removesuffix("@val").removesuffix("@v") if len(parts) > 1 else key)


def _file_name(path: str) -> str:
    return identifier(path.replace("\\", "/").rpartition("/")[2].rpartition(".")[0] or path)


def _ticks(k: float, slot: StateSlot) -> int:
    """How many whole ticks a read goes back."""
    return int(min(k, slot.depth)) if k >= 1 else 1


def _index(w: Writer, slot: StateSlot, node: Node) -> str:
    """Which plane of a ring is read."""
    k, plane = node.args[0], node.attr.plane
    head = w.parts.frame.read(Head(slot.key), f"{slot_name(slot.key)}_head", "int")
    if k.op == "const":
        cells = slot.depth + 1
        cell = f"({head} + {cells - _ticks(k.attr, slot)}) % {cells}"
    else:
        w.call("cell")
        cell = f"cell({head}, {w.real(k)}, {slot.depth})"
    if slot.planes == 1:
        return cell
    return f"{cell} * {slot.planes}" + (f" + {plane}" if plane else "")
