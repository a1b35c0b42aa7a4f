"""Directed graphs: what depends on itself, in which order the rest can be done, and what can be reached."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

N = TypeVar("N", bound=Hashable)


def components(nodes: Iterable[N], edges: Mapping[N, Iterable[N]]) -> list[list[N]]:
    """The strongly connected components, each after those that it has edges to (Tarjan 1972, without recursion)."""
    index: dict[N, int] = {}
    low: dict[N, int] = {}
    open_nodes: dict[N, None] = {}
    found: list[list[N]] = []
    for root in nodes:
        if root in index:
            continue
        index[root] = low[root] = len(index)
        open_nodes[root] = None
        work = [(root, iter(edges.get(root, ())))]
        while work:
            node, successors = work[-1]
            for successor in successors:
                if successor not in index:
                    index[successor] = low[successor] = len(index)
                    open_nodes[successor] = None
                    work.append((successor, iter(edges.get(successor, ()))))
                    break
                if successor in open_nodes and index[successor] < low[node]:
                    low[node] = index[successor]
            else:
                work.pop()
                if work and low[node] < low[work[-1][0]]:
                    low[work[-1][0]] = low[node]
                if low[node] == index[node]:
                    component: list[N] = []
                    while not component or component[-1] != node:
                        component.append(open_nodes.popitem()[0])
                    found.append(component[::-1])
    return found


def reachable(starts: Iterable[N], edges: Mapping[N, Iterable[N]]) -> set[N]:
    """Everything that can be reached from the starts, and the starts."""
    seen: set[N] = set()
    stack = list(starts)
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack.extend(edges.get(node, ()))
    return seen
