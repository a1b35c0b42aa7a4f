"""Reads of state, of pictures, and of strands that were asked for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from weft.codegen.base import Kernel
from weft.codegen.clike.asking import ExternalRead
from weft.codegen.clike.expressions import ExpressionText
from weft.codegen.clike.names import Identifiers, identifier
from weft.codegen.clike.shader import Bound, Past, image_to_write
from weft.codegen.native.layout import Head
from weft.codegen.values import Node
from weft.graph.elaborate import short
from weft.ir.expr import StateSlot

if TYPE_CHECKING:
    from weft.codegen.clike.body import ShaderWriter


def write_state(w: ShaderWriter, node: Node) -> ExpressionText:
    """A slot k ticks ago: an image at this element, or a number."""
    slot = w.parts.kernel.slot(node.attr.slot)
    if slot.image:
        return ExpressionText(w.language.own(w.parts, image_of(w, slot), slot, _index(w, slot, node)))
    (k,) = node.args
    if k.op == "const":
        past = Past(slot.key, node.attr.plane, _ticks(k.attr, slot))
        return ExpressionText(w.parts.frame.read(past, f"{slot_name(slot.key)}_past", "real", slot.key))
    bound = _bound(w, w.parts.histories, slot.key, f"{slot_name(slot.key)}_{w.language.ring}")
    return ExpressionText(w.language.remembered(w.parts, bound, _index(w, slot, node)))


def write_sample(w: ShaderWriter, node: Node) -> ExpressionText:
    """An image slot k ticks ago, sampled."""
    slot = w.parts.kernel.slot(node.attr.slot)
    x, y = (w.real(arg) for arg in node.args[1:])
    return ExpressionText(w.language.sampled(w.parts, image_of(w, slot), slot, _index(w, slot, node), x, y))


def write_picture(w: ShaderWriter, node: Node) -> ExpressionText:
    """A channel of a picture, sampled. Channels at one place are taken from one colour."""
    path, channel = node.attr
    bound = _bound(w, w.parts.pictures, path, _file_name(path))
    key = (path, *node.args)
    text = w.language.picture(w.parts, bound, *(w.real(arg) for arg in node.args))
    name = w.shared(key, w.language.four, f"{bound.name}_colour", text)
    return ExpressionText(f"{name}.{'rgba'[channel]}")


def write_asked(w: ShaderWriter, node: Node) -> ExpressionText:
    """The value of another subgraph's strand at this element."""
    asked: ExternalRead = node.attr
    bound = _bound(w, w.parts.asked, asked.key, f"{short(asked.strand)}_there")
    return ExpressionText(w.language.asked(w.parts, bound, asked.over))


def image_of(w: ShaderWriter, slot: StateSlot) -> Bound:
    """The images of a slot."""
    return w.parts.images.setdefault(slot.key, Bound(w.rings[slot.key], slot.key))


def name_rings(names: Identifiers, kernel: Kernel, ring: str) -> dict[str, str]:
    """Names for the images of slots, by their keys. What writes to them has names that are made of these, so these are
    given before any other. `ring` is what they end in."""
    return {slot.key: _ring_name(names, slot, ring) for slot in kernel.slots if slot.image}


def _ring_name(names: Identifiers, slot: StateSlot, ring: str) -> str:
    name = names.unique(f"{slot_name(slot.key)}_{ring}", lambda name: written_names(name, slot.planes))
    for written in written_names(name, slot.planes):
        names.take(written)
    return name


def written_names(ring: str, planes: int) -> list[str]:
    """What a program may call that which it writes to the images of this name: a target a plane, or the images."""
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
    """What a slot is called: `visual/trail@r/prev/0` is `trail_r`."""
    parts = key.split("/")
    return identifier(parts[1].removesuffix("@val").removesuffix("@v") if len(parts) > 1 else key)


def _file_name(path: str) -> str:
    return identifier(path.replace("\\", "/").rpartition("/")[2].rpartition(".")[0] or path)


def _ticks(k: float, slot: StateSlot, least: int = 1) -> int:
    """How many whole ticks a read goes back."""
    return int(min(k, slot.depth)) if k >= least else 1


def _index(w: ShaderWriter, slot: StateSlot, node: Node) -> str:
    """Which plane of a ring is read."""
    k, plane = node.args[0], node.attr.plane
    head = w.parts.frame.read(Head(slot.key), f"{slot_name(slot.key)}_head", "int")
    if k.op == "const":
        cells = slot.depth + 1
        between_ticks = w.parts.kernel.sweep == "points"
        cell = f"({head} + {cells - _ticks(k.attr, slot, 1 - between_ticks)}) % {cells}"
    else:
        w.call("cell")
        cell = f"cell({head}, {w.real(k)}, {slot.depth})"
    if slot.planes == 1:
        return cell
    return f"{cell} * {slot.planes}" + (f" + {plane}" if plane else "")
