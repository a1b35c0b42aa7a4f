"""From a subgraph to its kernels: lowering, the passes, and the values."""

from __future__ import annotations

from dataclasses import replace

from weft.codegen.base import LOOP_STEPS, NEST_STEPS
from weft.codegen.kernels import compile_feeds, compile_kernel, compile_points
from weft.codegen.serialize import content_hash
from weft.codegen.unit import Unit
from weft.contexts import ContextTable
from weft.graph.budget import Budget
from weft.graph.nodes import Patch, RenderGraph, Subgraph
from weft.ir.expr import Lowered, Pool
from weft.ir.lower import lower
from weft.ir.passes import PassContext, run_passes
from weft.ir.rates import long_loops


def compile_unit(
    patch: Patch,
    graph: RenderGraph,
    subgraph: Subgraph,
    contexts: ContextTable,
    optimise: bool = True,
    budget: Budget | None = None,
) -> tuple[Unit, Lowered]:
    """Compiles one subgraph; gives with it what it was compiled from. Raises WeftError, or Unavailable if a source is
    missing."""
    pool = Pool(budget)
    spec = contexts[subgraph.context]
    written = lower(patch, graph, subgraph, contexts, pool)
    loops = long_loops(written.roots, LOOP_STEPS, NEST_STEPS)
    places = tuple(dict.fromkeys(span for loop in loops if (span := pool.span(loop)) is not None))
    lowered = run_passes(written, PassContext(pool, spec), optimise)
    kernel = compile_kernel(lowered, spec, optimise, pool)
    points = {ref: compile_points(lowered, ref, spec, pool) for ref, _ in lowered.exposed}
    feeds = compile_feeds(lowered, optimise, pool) if lowered.feeds else None
    unit = Unit(subgraph, kernel, points, "", feeds, loops=places)
    return replace(unit, hash="-".join(map(content_hash, unit.kernels))), lowered
