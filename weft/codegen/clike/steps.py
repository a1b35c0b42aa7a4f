"""Writes loops. One that might go on for too long is stopped, and `stopped` is set."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from weft.codegen.base import LOOP_STEPS, NEST_STEPS
from weft.codegen.clike.expressions import assignment
from weft.codegen.clike.plan import LEAVES
from weft.codegen.values import LoopBody, Node

if TYPE_CHECKING:
    from weft.codegen.clike.body import ShaderWriter

_INDICES = "ijklmn"

# Up to here a variable of a loop with whole ends is counted up exactly.
_MOST_EXACT = 2**20


class Steps:
    """Writes the loops of one program."""

    def __init__(self, writer: ShaderWriter) -> None:
        self._w = writer
        self._budget: str | None = None
        """The variable that counts the steps of the nest that is being written."""

    def write_loop(self, loop: Node) -> None:
        """Writes a loop, with what it carries declared before it."""
        w, body = self._w, loop.attr
        w.tell(loop)
        self._declare_carried(loop)
        count = _steps(loop)
        limited = not _is_bounded(loop) if body.outermost else self._budget is not None
        if body.outermost and body.nested and limited:
            self._budget = w.names.new("steps")
            w.line(f"int {self._budget} = 0;", loop)
        index = w.names.new(_INDICES[min(body.level, len(_INDICES) - 1)])
        if body.index is not None:
            w.keep(body.index, index)
        if count is not None and not limited and _counts_exactly(loop):
            first, last = (w.language.real(arg.attr) for arg in loop.args[:2])
            one = w.language.real(1.0)
            w.line(f"for (float {index} = {first}; {index} <= {last}; {index} += {one}) {{", loop)
            with w.block():
                self._body(loop)
        else:
            self._begin_open(loop, index, limited)
        w.line("}", loop)
        if body.outermost:
            self._budget = None

    def _begin_open(self, loop: Node, index: str, limited: bool) -> None:
        """A loop whose ends are known only when it begins."""
        w = self._w
        first, last = self._end(loop.args[0], "first", inf), self._end(loop.args[1], "last", -inf)
        step = w.names.new("n")
        from_zero = loop.args[0].op == "const" and loop.args[0].attr == 0
        at = f"float({step})" if from_zero else f"{first} + float({step})"
        w.line(f"for (int {step} = 0; {at} <= {last}; {step}++) {{", loop)
        if limited:
            w.parts.stops = True
        with w.block():
            if limited:
                over = f" || {self._budget} == {NEST_STEPS}" if self._budget is not None else ""
                w.line(f"if ({step} == {LOOP_STEPS}{over}) {{", loop)
                with w.block():
                    w.line("stopped = true;", loop)
                    w.line("break;", loop)
                w.line("}", loop)
                if self._budget is not None:
                    w.line(f"{self._budget}++;", loop)
            if loop.attr.index is not None:
                w.line(f"float {index} = {at};", loop)
            self._body(loop)

    def _end(self, node: Node, name: str, instead: float) -> str:
        """An end of a loop, computed before it. One that is NaN becomes one with which there is no step: drivers differ
        in how they compare with NaN."""
        w = self._w
        if node.op == "const":
            return w.real(node)
        made = w.names.new(name)
        w.call("number_or")
        w.line(f"float {made} = number_or({w.real(node)}, {w.language.real(instead)});", node)
        return made

    def _declare_carried(self, loop: Node) -> None:
        w, body = self._w, loop.attr
        for k, (carried, start) in enumerate(zip(body.carried, loop.args[2:], strict=True)):
            lender = w.plan.lent.get((loop, k))
            if lender is not None:
                w.keep(carried, w.value(lender).text)
                continue
            note = w.owner(carried)
            name = w.names.new(note.name if note is not None else "carried")
            w.line(f"float {name} = {w.real(start)};", loop)
            w.keep(carried, name)

    def _body(self, loop: Node) -> None:
        """What a step computes, and what follows the carried values."""
        w, body = self._w, loop.attr
        w.write(body.nodes)
        following = [
            (carried, node)
            for carried, node in zip(body.carried, body.following, strict=True)
            if w.plan.in_place.get(node) is not carried and not self._is_lent(carried, node) and node is not carried
        ]
        moved = self._set_aside(body, following)
        for carried, node in following:
            name = w.value(carried).text
            w.tell(node)
            w.line(f"{moved.get(carried) or assignment(name, w.value(node))};", node)

    def _is_lent(self, carried: Node, node: Node) -> bool:
        """Whether a loop within this one has left what follows in the variable already."""
        return node.op == "loop_out" and self._w.plan.lent.get((node.args[0], node.attr)) is carried

    def _set_aside(self, body: LoopBody, following: list[tuple[Node, Node]]) -> dict[Node, str]:
        """The assignments of what has to be computed before others are assigned: it is made of what they change."""
        w = self._w
        moved: dict[Node, str] = {}
        changed: set[Node] = set()
        for carried, node in following:
            if changed & set(_read(w, node)):
                name = w.names.new(f"next_{w.value(carried).text}")
                w.line(f"float {name} = {w.real(node)};", node)
                moved[carried] = f"{w.value(carried).text} = {name}"
            changed.add(carried)
        return moved


def _read(w: ShaderWriter, node: Node) -> list[Node]:
    """The carried values whose variables the text of a value names."""
    if node.op == "loop_value":
        return [node]
    if node.op == "loop_out":
        return [node.args[0].attr.carried[node.attr]]
    if node.op in LEAVES or node in w.plan.kept:
        return []
    return [found for arg in node.args for found in _read(w, arg)]


def _steps(loop: Node) -> int | None:
    """How many steps a loop makes, if that is known."""
    first, last = loop.args[:2]
    if first.op != "const" or last.op != "const":
        return None
    length = last.attr - first.attr
    return max(0, int(length) + 1 if length >= 0 else 0) if abs(length) < LOOP_STEPS else None


def _is_bounded(loop: Node) -> bool:
    """Whether a nest of loops surely stays within its limits."""
    most = _most_steps(loop)
    return most is not None and most <= NEST_STEPS


def _most_steps(loop: Node) -> int | None:
    """How many steps a loop makes together with those within it, if that is known."""
    count = _steps(loop)
    inner = [_most_steps(node) for node in loop.attr.nodes if node.op == "loop"]
    if count is None or any(most is None for most in inner):
        return None
    return count * (1 + sum(most for most in inner if most is not None))


def _counts_exactly(loop: Node) -> bool:
    first, last = loop.args[:2]
    return bool(first.attr.is_integer()) and max(abs(first.attr), abs(last.attr)) < _MOST_EXACT
