"""The places at which shaders of a page read strands of other subgraphs, as kernels that compute numbers.

A shader cannot evaluate another subgraph. The values are found before it is launched, and for that the coordinates of
each read are computed on the CPU, for all pixels at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from weft.codegen.clike.reads import ReadSite, strands_of
from weft.codegen.kernel import Kernel
from weft.codegen.values import Line, Node, Rewriter, Section
from weft.ir.rates import Rate

_ONCE = (Rate.CONSTANT, Rate.FRAME)

# What may change from tick to tick.
_CHANGING = frozenset({"scalar", "strand", "picture", "fetch"})


class ReadPlaces(NamedTuple):
    """A strand of another subgraph that shaders read, by its `key` among their reads. The outputs of the kernel are its
    coordinates, for each element of a list of pixels. `over` are the axes along which these differ, and `constant` says
    that they never change."""

    key: str
    site: ReadSite
    kernel: Kernel
    over: tuple[str, ...]
    constant: bool


def read_places(kernel: Kernel) -> list[ReadPlaces]:
    """The reads of a kernel, in the order of their numbers in its shaders. Raises UnsuitableError if one cannot be
    computed before a launch."""
    return [_places(kernel, site) for site in strands_of(kernel)]


def _places(kernel: Kernel, site: ReadSite) -> ReadPlaces:
    used = (*site.before, *site.coordinates, *(arg for node in site.before for arg in node.args))
    is_constant = kernel.sweep == "grid" and _CHANGING.isdisjoint(node.op for node in used)
    names = {Rate.COLUMN: "x", Rate.ROW: "y", Rate.ELEMENT: "point"}
    over = tuple(name for rate, name in names.items() if rate in site.read.over)
    return ReadPlaces(site.read.key, site, _list_kernel(kernel, site), over, is_constant)


def _list_kernel(kernel: Kernel, site: ReadSite) -> Kernel:
    """The kernel over a list of elements whose outputs are the coordinates of a read. It stores nothing."""
    element = Section(Rate.ELEMENT, site.before, site.coordinates)
    lines = {
        leaf: Node("line", (), leaf.kind, leaf.attr._replace(rate=Rate.ELEMENT))
        for leaf in element.leaves() if leaf.op == "line" and isinstance(leaf.attr, Line)
    }  # fmt: skip
    element = Rewriter(lines).section(element)
    once = [Section(each.rate, each.nodes, (), (), each.locals) for each in kernel.sections if each.rate in _ONCE]
    coords = tuple((name, rate if rate in _ONCE else Rate.ELEMENT) for name, rate in kernel.coords)
    outputs = tuple(f"{site.read.key}, {at}" for at in range(len(site.coordinates)))
    made = replace(
        kernel, name=f"{kernel.name}: {site.read.key}", sweep="grid", tick="never", sections=(*once, element),
        stages=(), level=0, outputs=outputs, coords=coords,
    )  # fmt: skip
    return _narrowed(made, made.sections)


def _narrowed(kernel: Kernel, sections: Sequence[Section]) -> Kernel:
    """A kernel that asks only for what its sections read."""
    leaves = [leaf for section in sections for leaf in section.leaves() if leaf.op in ("scalar", "line")]
    nodes = [node for section in sections for node in section.walk()]
    keys = {(leaf.attr.source, leaf.attr.key) for leaf in leaves}
    slots = {node.attr.slot for node in nodes if node.op in ("state", "sample")}
    strands = {node.attr for node in nodes if node.op == "strand"}
    pictures = {node.attr.picture for node in nodes if node.op in ("picture", "fetch")}
    return replace(
        kernel,
        coords=tuple(each for each in kernel.coords if ("coord", each[0]) in keys),
        uniforms=tuple(each for each in kernel.uniforms if ("uniform", each) in keys),
        slots=tuple(each for each in kernel.slots if each.key in slots),
        strands=tuple(each for each in kernel.strands if each in strands),
        pictures=tuple(each for each in kernel.pictures if each in pictures),
    )  # fmt: skip
