"""Kernels of programs after a choice of the compiler's passes."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.kernels import compiled
from weft.codegen.kernel import Kernel
from weft.contexts import ContextTable
from weft.errors import Report, Source
from weft.graph.build import build_graph
from weft.graph.names import collect
from weft.ir.expr import Lowered, Pool
from weft.ir.lower import lower
from weft.ir.passes import PASSES, Pass, PassContext, run_passes
from weft.syntax.parser import parse

UP_TO_PHASES = [step for step in PASSES if step.name != "waves"]
WITHOUT_PHASES = [step for step in UP_TO_PHASES if step.name != "phases"]
AS_WRITTEN = [step for step in PASSES if step.always]


def lowered_by(text: str, passes: Sequence[Pass] = PASSES) -> Lowered:
    """The IR of a program of one subgraph. Raises WeftError if there is an error in it."""
    contexts, report = ContextTable(), Report()
    patch = collect(parse(Source("test.weft", text), report), contexts, report)
    graph = build_graph(patch, contexts, report)
    report.raise_errors()
    (subgraph,) = graph.subgraphs
    pool = Pool()
    context = PassContext(pool, contexts[subgraph.context])
    return run_passes(lower(patch, graph, subgraph, contexts, pool), context, passes=passes)


def kernel_by(text: str, passes: Sequence[Pass] = PASSES) -> Kernel:
    """The kernel of a program of one subgraph. It computes everything as rarely as possible, unless the `passes` are
    those that leave the program as it is written."""
    return compiled(lowered_by(text, passes), optimise=list(passes) != AS_WRITTEN)
