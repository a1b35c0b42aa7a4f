"""Writes loops. A loop with the same bounds in all lanes is one of single numbers; in any other, each lane leaves at a
step of its own, and the loop ends when all have left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weft.codegen.base import LOOP_STEPS, NEST_STEPS
from weft.codegen.native.types import LlvmValue
from weft.codegen.native.writer import FunctionWriter
from weft.codegen.values import LoopBody, Node


@dataclass(frozen=True, slots=True)
class _LoopNames:
    """The labels of a loop, and the names of what its steps hand on."""

    head: str
    step: str
    behind: str
    count: str
    active: str
    carried: tuple[str, ...]


def write_loop(w: FunctionWriter, node: Node, write_body: Callable[[LoopBody], None]) -> None:
    """Writes a loop; `write_body` writes what its body computes. What it carries is kept for `result`."""
    body: LoopBody = node.attr
    first, last, *starts = (w.value(arg) for arg in node.args)
    names = _names(w, len(starts))
    if body.outermost and body.nested:
        _allow_steps(w, body)
    outer_mask = w.find("mask") if body in w.graph.masked else None
    before = w.block
    w.jump(names.head)
    w.label(names.head)
    phis = len(w.text)
    carried = [LlvmValue(name, "real") for name in names.carried]
    with w.scope():
        count = w.put(f"sitofp i32 {names.count} to {w.scalar('real')}")
        step = _masked_step if body in w.graph.masked else _step
        go = step(w, body, names, first, last, count)
        for place, value in zip(body.carried, carried, strict=True):
            w.keep(place, value)
        write_body(body)
        following = [w.value(value) for value in body.following]
        if body in w.graph.masked:
            following = [w.select(go, new, old) for new, old in zip(following, carried, strict=True)]
            active = w.put(f"sext {w.type('truth')} {go.text} to {w.type('bits')}")
        counted = w.put(f"add i32 {names.count}, 1")
    latch = w.block
    w.jump(names.head)
    entering = [f"  {names.count} = phi i32 [ 0, %{before} ], [ {counted}, %{latch} ]"]
    if body in w.graph.masked:
        start = outer_mask.text if outer_mask is not None else "splat (i32 -1)"
        entering.append(f"  {names.active} = phi {w.type('bits')} [ {start}, %{before} ], [ {active}, %{latch} ]")
    entering += [
        f"  {value.text} = phi {w.type('real')} [ {start.text}, %{before} ], [ {new.text}, %{latch} ]"
        for value, start, new in zip(carried, starts, following, strict=True)
    ]
    w.text[phis:phis] = entering
    w.label(names.behind)
    for k, value in enumerate(carried):
        w.keep((node, k), value)


def _names(w: FunctionWriter, carried: int) -> _LoopNames:
    number = w.name("").lstrip("%")
    return _LoopNames(
        f"head{number}", f"step{number}", f"behind{number}",
        w.name("count"), w.name("active"), tuple(w.name("carried") for _ in range(carried)),
    )  # fmt: skip


def _allow_steps(w: FunctionWriter, body: LoopBody) -> None:
    """Gives a nest of loops its steps: for each lane, if they may leave at different ones."""
    of = w.type("bits") if body in w.graph.masked else "i32"
    with w.writing(w.entry):
        w.budget = w.put(f"alloca {of}")
    w.do(f"store {of} {w.bits(NEST_STEPS).text if body in w.graph.masked else NEST_STEPS}, ptr {w.budget}")


def _step(w: FunctionWriter, body: LoopBody, names: _LoopNames, first: LlvmValue, last: LlvmValue, count: str) -> LlvmValue:
    """Goes on with the body, unless the loop is over for all lanes together."""
    index = w.put(f"fadd {w.scalar('real')} {w.first(first)}, {count}")
    goes_on = w.put(f"fcmp ole {w.scalar('real')} {index}, {w.first(last)}")
    allowed = w.put(f"icmp ult i32 {names.count}, {LOOP_STEPS}")
    if body.nested:
        left = w.put(f"load i32, ptr {w.budget}")
        allowed = w.put(f"and i1 {allowed}, {w.put(f'icmp sgt i32 {left}, 0')}")
    go = w.put(f"and i1 {goes_on}, {allowed}")
    end = f"{names.behind}.end"
    w.branch(go, names.step, end)
    _stop(w, end, goes_on, names.behind)
    w.label(names.step)
    if body.nested:
        w.do(f"store i32 {w.put(f'sub i32 {left}, 1')}, ptr {w.budget}")
    if body.index is not None:
        w.keep(body.index, w.splat(index, "real"))
    return LlvmValue(go, "truth")


def _masked_step(w: FunctionWriter, body: LoopBody, names: _LoopNames, first: LlvmValue, last: LlvmValue, count: str) -> LlvmValue:
    """Goes on with the body, unless all lanes have left the loop. Gives the lanes that take part."""
    index = w.add(first, w.splat(count, "real"))
    active = LlvmValue(w.put(f"icmp ne {w.type('bits')} {names.active}, zeroinitializer"), "truth")
    wanting = w.both(w.le(index, last), active)
    below_limit = w.put(f"icmp ult i32 {names.count}, {LOOP_STEPS}")
    go = w.both(wanting, w.splat(below_limit, "truth"))
    if body.nested:
        of = w.type("bits")
        left = LlvmValue(w.put(f"load {of}, ptr {w.budget}"), "bits")
        go = w.both(go, LlvmValue(w.put(f"icmp sgt {of} {left.text}, zeroinitializer"), "truth"))
    checked, end = f"{names.step}.checked", f"{names.behind}.end"
    _stop_if_any(w, w.both(wanting, w.negation(go)), checked)
    w.branch(w.any(go), names.step, end)
    w.label(end)
    w.jump(names.behind)
    w.label(names.step)
    if body.nested:
        taken = LlvmValue(w.put(f"zext {w.type('truth')} {go.text} to {of}"), "bits")
        w.do(f"store {of} {w.bits_sub(left, taken).text}, ptr {w.budget}")
    if body.index is not None:
        w.keep(body.index, index)
    mask = w.put(f"sext {w.type('truth')} {go.text} to {w.type('bits')}")
    w.keep("mask", LlvmValue(mask, "bits"))
    return go


def _stop_if_any(w: FunctionWriter, blocked: LlvmValue, checked: str) -> None:
    """Notes that a loop met its limit, if that was so in any lane."""
    stop = f"{checked}.stop"
    w.branch(w.any(blocked), stop, checked)
    _note_stop(w, stop, checked)
    w.label(checked)


def _stop(w: FunctionWriter, end: str, goes_on: str, behind: str) -> None:
    """The end of a loop, which would have gone on if it had not met its limit."""
    stop = f"{end}.stop"
    w.label(end)
    w.branch(goes_on, stop, behind)
    _note_stop(w, stop, behind)


def _note_stop(w: FunctionWriter, stop: str, behind: str) -> None:
    w.label(stop)
    w.do(f"store i64 1, ptr {w.stopped()}, align 8")
    w.jump(behind)
