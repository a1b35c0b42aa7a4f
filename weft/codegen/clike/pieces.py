"""A large picture as several programs that run one after another.

A driver takes seconds for a program of thousands of values, and takes them again after any change. So a picture that
remembers many images is cut where it stores them: each program stores some, and those after it read these at their
pixel instead of computing them again. A change reaches few of the programs; a driver has the others already.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from weft.codegen.kernel import Kernel
from weft.codegen.values import Node, Rewriter, Section, Store

# A picture that stores more images than this is cut.
_WHOLE = 12

# The images that each program stores.
_STORES = 6


def pieces_of(kernel: Kernel, program: Section) -> list[Section]:
    """The programs of a kernel over a picture, the last of which has the outputs; one if it stores few images, or has
    loops. What an earlier one has stored is read by `written`, whose attribute is the place of the store."""
    order = {node: at for at, node in enumerate(program.nodes)}
    images = [store for store in program.stores if kernel.slot(store.place.slot).image]
    if len(images) <= _WHOLE or any(node.op == "loop" for node in program.nodes):
        return [program]
    images.sort(key=lambda store: order.get(store.value, -1))
    written: dict[Node, Node] = {}
    made = []
    for at in range(0, len(images), _STORES):
        stores = images[at : at + _STORES]
        made.append(_piece(program, (), stores, written))
        for store in stores:
            if store.value in order and store.value.kind == "float":
                written.setdefault(store.value, Node("written", (), "float", store.place))
    rest = [store for store in program.stores if store not in images]
    return [*made, _piece(program, program.outputs, rest, written)]


def _piece(
    program: Section, outputs: Sequence[Node], stores: Collection[Store], written: dict[Node, Node]
) -> Section:
    """What computes some outputs and stores, with replacements for the values that are `written` already."""
    rewriter = Rewriter(written)
    whole = rewriter.section(Section(program.rate, program.nodes, tuple(outputs), tuple(stores), notes=program.notes))
    used = {*whole.outputs, *(store.value for store in whole.stores)}
    for node in reversed(whole.nodes):
        if node in used:
            used.update(node.args)
    nodes = tuple(node for node in whole.nodes if node in used)
    notes = {node: note for node, note in whole.notes.items() if node in used and node.op != "written"}
    return Section(program.rate, nodes, whole.outputs, whole.stores, notes=notes)
