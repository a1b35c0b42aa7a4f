"""A large picture as several programs that run one after another.

A driver takes seconds for a program of thousands of values, and takes them again after any change. So a picture that
remembers many images is cut where it stores them: each program stores some, and those after it read these at their
pixel instead of computing them again. A change reaches few of the programs; a driver has the others already.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from weft.codegen.kernel import Kernel
from weft.codegen.values import Node, Rewriter, Section, Store, operands
from weft.ir.rates import Rate

# A picture that stores more images than this is cut.
_WHOLE = 12

# The images that each program stores.
_STORES = 6


def pieces_of(kernel: Kernel, program: Section, targets: int | None = None) -> list[Section]:
    """The programs of a kernel over a picture, the last of which has the outputs; one if it stores few images, or has
    loops. What an earlier one has stored is read by `written`, whose attribute is the place of the store.

    If a program draws to no more than some `targets` at once, there are as many programs as that takes. Those with
    loops then compute them again, and read nothing that is `written`.
    """
    order = {node: at for at, node in enumerate(program.nodes)}
    images = [store for store in program.stores if kernel.slot(store.place.slot).image]
    loops = any(node.op == "loop" for node in program.nodes)
    is_large = len(images) > _WHOLE and not loops
    room = len(images) if targets is None else max(0, targets - loops - _targets(len(program.outputs)))
    if len(images) <= room and not is_large:
        return [program]
    images.sort(key=lambda store: order.get(store.value, -1))
    written: dict[Node, Node] = {}
    made = []
    most, first = _STORES, images
    if targets is not None and not (is_large and targets >= _STORES):
        most, first = targets - loops, images[: len(images) - room]
    for at in range(0, len(first), most):
        stores = first[at : at + most]
        made.append(_piece(program, (), stores, written))
        for store in () if loops else stores:
            if store.value in order and store.value.kind == "float":
                written.setdefault(store.value, Node("written", (), "float", store.place))
    rest = [store for store in program.stores if store not in first]
    return [*made, _piece(program, program.outputs, rest, written)]


def is_crowded(kernel: Kernel, targets: int) -> bool:
    """Whether a kernel over a picture may be cut only because a program draws to no more than some `targets`."""
    planes = len(kernel.section(Rate.ELEMENT).stores)
    loops = any(node.op == "loop" for _, node in kernel.walk())
    return planes + _targets(len(kernel.outputs)) + loops > targets and (loops or planes <= _WHOLE)


def _targets(outputs: int) -> int:
    """The number of targets for outputs, as one pixel or as floats."""
    return -(-outputs // 4)


def split(kernel: Kernel, packed: bool, targets: int) -> Iterator[Kernel]:
    """A kernel as several, none of which needs more targets than there are: the outputs first, then the new values of
    slots. They run in any order."""
    section = kernel.section(Rate.ELEMENT)
    room = targets - any(node.op == "loop" for _, node in kernel.walk())
    outputs, stores = len(section.outputs), len(section.stores)
    per_target = max(1, outputs) if packed else 4
    parts = [*range(0, outputs, per_target)]
    # Stores for which there is room are drawn together with the last outputs.
    while parts or stores:
        taken, parts = parts[:room], parts[room:]
        first, end = (taken[0], taken[-1] + per_target) if taken else (0, 0)
        count = min(stores, room - len(taken))
        start = len(section.stores) - stores
        stores -= count
        part = Section(
            section.rate, section.nodes, section.outputs[first:end], section.stores[start : start + count],
            section.locals, section.notes,
        )  # fmt: skip
        sections = tuple(part if each is section else each for each in kernel.sections)
        yield replace(kernel, outputs=kernel.outputs[first:end], sections=sections)


def _piece(
    program: Section, outputs: Sequence[Node], stores: Collection[Store], written: dict[Node, Node]
) -> Section:
    """What computes some outputs and stores, with replacements for the values that are `written` already."""
    rewriter = Rewriter(written)
    whole = rewriter.section(Section(program.rate, program.nodes, tuple(outputs), tuple(stores), notes=program.notes))
    used = {*whole.outputs, *(store.value for store in whole.stores)}
    for node in reversed(whole.nodes):
        if node in used:
            used.update(operands(node))
    nodes = tuple(node for node in whole.nodes if node in used)
    notes = {node: note for node, note in whole.notes.items() if node in used and node.op != "written"}
    return Section(program.rate, nodes, whole.outputs, whole.stores, notes=notes)
