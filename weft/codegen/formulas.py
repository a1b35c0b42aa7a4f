"""What the remembered values of a program are computed from. Two programs remember the same where these formulas are
equal, even if they differ elsewhere."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from weft.codegen.kernel import Kernel, Unit
from weft.codegen.values import Line, Node, Scalar
from weft.names import StrandRef

# A slot by its key, a strand, or a value with the unit and the kernel that it belongs to.
_Item: TypeAlias = "str | StrandRef | tuple[Unit, Kernel, Node]"


def formula(units: Iterable[Unit], key: str) -> str:
    """A hash of everything that the next values of a slot are computed from, in any unit of a program: constants, other
    slots and strands included. Equal formulas have equal hashes. "" for a slot that no unit advances."""
    known = tuple(units)
    numbers: dict[object, int] = {}
    order: list[_Item] = []

    def number(item: _Item) -> int:
        # The nodes of a kernel are compared by their identity.
        name = item if isinstance(item, str | StrandRef) else id(item[2])
        if name not in numbers:
            numbers[name] = len(order)
            order.append(item)
        return numbers[name]

    number(key)
    found = hashlib.sha256()
    for item in order:  # which grows meanwhile
        head, parts = _made_of(known, item)
        found.update(repr((head, [number(part) for part in parts])).encode())
    return found.hexdigest()[:16] if len(order) > 1 else ""


def _made_of(units: Sequence[Unit], item: _Item) -> tuple[object, list[_Item]]:
    """An item by itself, and the items that it is computed from."""
    if isinstance(item, StrandRef):
        return "strand", [value for unit in units if item in unit.subgraph.exposes for value in _exposed(unit, item)]
    if isinstance(item, str):
        # Several units may have the slot, but all advance it alike.
        return "slot", next(filter(None, (list(_stores(unit, item)) for unit in units)), [])
    return _value(*item)


def _exposed(unit: Unit, ref: StrandRef) -> Iterator[_Item]:
    """What a unit computes for readers of a strand: a kernel of its own, or one output among others."""
    kernel = unit.points.get(ref, unit.kernel)
    outputs = [node for section in kernel.sections for node in section.outputs]
    labels = kernel.outputs if kernel is unit.kernel else (str(ref),)
    yield from ((unit, kernel, node) for label, node in zip(labels, outputs, strict=True) if label == str(ref))


def _stores(unit: Unit, key: str) -> Iterator[_Item]:
    for kernel in unit.kernels:
        for _, store in kernel.stores():
            if store.place.slot == key:
                yield unit, kernel, store.value


def _value(unit: Unit, kernel: Kernel, node: Node) -> tuple[object, list[_Item]]:
    attr: Any = node.attr
    parts: list[_Item] = [(unit, kernel, arg) for arg in node.args]
    match node.op:
        case "scalar" | "line":
            return _given(unit, kernel, attr)
        case "state" | "sample":
            return (node.op, attr.plane), [*parts, attr.slot]
        case "strand":
            return node.op, [*parts, attr]
        case "loop":
            inside = ((unit, kernel, each) for each in (*attr.carried, *attr.following))
            return (node.op, attr.level), [*parts, *inside]
        case _:
            return (node.op, attr), parts


def _given(unit: Unit, kernel: Kernel, attr: Scalar | Line) -> tuple[object, list[_Item]]:
    if attr.source == "number":
        return ("const", kernel.numbers[int(attr.key)]), []
    if isinstance(attr.key, int):
        return "local", [(unit, kernel, s.locals[attr.key]) for s in kernel.sections if attr.key in s.locals]
    feeds = unit.feeds
    if feeds is not None and attr.key in feeds.outputs:
        outputs = [node for section in feeds.sections for node in section.outputs]
        return "feed", [(unit, feeds, outputs[feeds.outputs.index(attr.key)])]
    return (attr.source, attr.key), []
