"""Leaves out what nothing uses: above all what loops carry from step to step only because a text names it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from weft.codegen.native.nodes import Body, Node


def without_unused(nodes: Sequence[Node], roots: Iterable[Node], given: Iterable[Node] = ()) -> list[Node]:
    """What the roots need of these nodes, besides what is `given`. Their loops are changed: they keep what is used of
    what they carry."""
    loops = {id(node.attr): node for node in _with_bodies(nodes) if node.op == "loop"}
    used = _used(loops, roots, given)
    numbers = {loop: _numbers(loop, used) for loop in loops.values() if loop in used}
    for node in _with_bodies(nodes):
        if node.op == "result" and node in used:
            node.attr = numbers[node.args[0]].index(node.attr)
    for loop, kept in numbers.items():
        _reduce(loop, kept, used)
    return [node for node in nodes if node in used]


def _with_bodies(nodes: Sequence[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        if node.op == "loop":
            yield from _with_bodies(node.attr.nodes)


def _used(loops: dict[int, Node], roots: Iterable[Node], given: Iterable[Node]) -> set[Node]:
    used = set(given)
    todo = list(roots)
    while todo:
        node = todo.pop()
        if node in used:
            continue
        used.add(node)
        match node.op:
            case "loop":
                todo += node.args[:2]
            case "result":
                loop = node.args[0]
                todo += [loop, loop.args[2 + node.attr], loop.attr.carried[node.attr]]
            case "carried":
                body, k = node.attr
                todo += [loops[id(body)].args[2 + k], body.following[k]]
            case _:
                todo += node.args
    return used


def _numbers(loop: Node, used: set[Node]) -> list[int]:
    """Which of its carried values a loop keeps."""
    return [k for k, carried in enumerate(loop.attr.carried) if carried in used]


def _reduce(loop: Node, kept: Sequence[int], used: set[Node]) -> None:
    body: Body = loop.attr
    loop.args = (*loop.args[:2], *(loop.args[2 + k] for k in kept))
    body.following = tuple([body.following[k] for k in kept])
    body.carried = tuple([body.carried[k] for k in kept])
    for number, carried in enumerate(body.carried):
        carried.attr = (body, number)
    body.nodes = [node for node in body.nodes if node in used]
    if body.index not in used:
        body.index = None
