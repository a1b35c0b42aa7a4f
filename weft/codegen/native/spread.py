"""Writes a loop whose steps run over a whole chunk of samples, one step after another."""

from __future__ import annotations

from collections.abc import Mapping

from weft.codegen.base import LOOP_STEPS, Kernel
from weft.codegen.native.graph import Graph
from weft.codegen.native.section import write_nodes
from weft.codegen.native.stretch_writer import ChunkWriter
from weft.codegen.native.stretches import LoopPartition
from weft.codegen.native.tables import tables
from weft.codegen.native.types import LlvmValue
from weft.codegen.values import LoopBody, Node, operands


def write_interchanged(w: ChunkWriter, kernel: Kernel, graph: Graph, part: LoopPartition) -> None:
    """A stretch that is one loop. What it carries from step to step has a row of its own, unless it is the same at all
    samples."""
    (loop,) = part.nodes
    body: LoopBody = loop.attr
    write_nodes(w, kernel, part.once, part.once)
    starts = loop.args[2:]
    _write_starts(w, part, loop)
    first, last = (w.first(w.value(bound)) for bound in loop.args[:2])
    steady = [k for k, carried in enumerate(body.carried) if carried not in graph.varying]
    names = {k: LlvmValue(w.name("carried"), "real") for k in steady}
    before, phis = w.block, len(w.text) + 2
    w.jump("head")
    w.label("head")
    with w.scope():
        index = _write_step_or_end(w, first, last)
        for k, name in names.items():
            w.keep(body.carried[k], name)
        if body.index is not None:
            w.keep(body.index, w.splat(index, "real"))
        _write_body(w, kernel, part, loop)
        counted = w.put("add i32 %steps, 1")
        following = {k: w.value(body.following[k]) for k in steady}
    latch = w.block
    w.jump("head")
    of = w.type("real")
    w.text[phis:phis] = [
        f"  %steps = phi i32 [ 0, %{before} ], [ {counted}, %{latch} ]",
        *(
            f"  {name.text} = phi {of} [ {w.value(starts[k]).text}, %{before} ], [ {following[k].text}, %{latch} ]"
            for k, name in names.items()
        ),
    ]
    w.label("over")
    _write_results(w, loop, {node.attr: names[node.attr] for node in part.leaves if node.attr in names})


def _write_results(w: ChunkWriter, loop: Node, values: Mapping[int, LlvmValue]) -> None:
    """Fills the rows of what the loop carried that is the same at all samples."""

    def write() -> None:
        for k, value in values.items():
            w.store(value, w.row_carried(loop, k), w.row)

    if values:
        w.over_vectors((), write)


def _write_starts(w: ChunkWriter, part: LoopPartition, loop: Node) -> None:
    """Fills the rows of what the loop carries."""
    body, starts = loop.attr, loop.args[2:]

    def write() -> None:
        w.read_rows([node for node in part.reads if node in starts])
        values = [(k, w.value(start)) for k, start in enumerate(starts) if body.carried[k] in w.graph.varying]
        for k, value in values:
            w.store(value, w.row_carried(loop, k), w.row)

    w.over_vectors((), write)


def _write_step_or_end(w: ChunkWriter, first: str, last: str) -> str:
    """Goes on with the step that has an index, unless the loop is over; gives the index."""
    index = w.put(f"fadd double {first}, {w.put('sitofp i32 %steps to double')}")
    goes_on = w.put(f"fcmp ole double {index}, {last}")
    allowed = w.put(f"icmp ult i32 %steps, {LOOP_STEPS}")
    w.branch(w.put(f"and i1 {goes_on}, {allowed}"), "onwards", "end")
    w.label("end")
    w.branch(goes_on, "stop", "over")
    w.label("stop")
    w.do(f"store i64 1, ptr {w.stopped()}, align 8")
    w.jump("over")
    w.label("onwards")
    return index


def _write_body(w: ChunkWriter, kernel: Kernel, part: LoopPartition, loop: Node) -> None:
    """One step: what is the same at all samples first, then the samples."""
    body: LoopBody = loop.attr
    _write_steady(w, kernel, loop)
    waves = [node for node in body.nodes if node.op == "wave"]
    others = [node for node in body.nodes if w.graph.changes(node) and node.op != "wave"]
    varying = [k for k, carried in enumerate(body.carried) if carried in w.graph.varying]

    def write() -> None:
        w.read_rows(part.reads)
        for k in varying:
            w.keep(body.carried[k], w.load(w.row_carried(loop, k), w.row, "real"))
        write_nodes(w, kernel, others, [body.following[k] for k in varying])
        for k, value in [(k, w.value(body.following[k])) for k in varying]:
            w.store(value, w.row_carried(loop, k), w.row)

    w.over_vectors(waves, write)


def _write_steady(w: ChunkWriter, kernel: Kernel, loop: Node) -> None:
    """What is the same at all samples of a step, as far as the others need it."""
    body: LoopBody = loop.attr
    steady = {node: None for node in body.nodes if not w.graph.changes(node)}
    found = tables(loop, list(steady))
    for node, values in found.items():
        name = f"@{w.function}.table{len(w.helpers)}"
        numbers = ", ".join(f"double {w.reals.text(value)}" for value in values)
        w.helpers[name] = [f"{name} = private constant [{len(values)} x double] [{numbers}]"]
        w.keep(node, w.load_splat(name, w.put("zext i32 %steps to i64"), "real"))
    varying = [arg for node in body.nodes if w.graph.changes(node) for arg in operands(node)]
    roots = [node for node in (*varying, *body.following) if node in steady and node not in found]
    write_nodes(w, kernel, [node for node in steady if node not in found], roots)
