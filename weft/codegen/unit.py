"""One subgraph, compiled: what code generation makes of it as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from weft.codegen.base import Kernel
from weft.codegen.bytecode import compile_feeds, compile_kernel, compile_points
from weft.codegen.serialize import content_hash
from weft.contexts import ContextTable
from weft.graph.nodes import RenderGraph, Subgraph
from weft.graph.patch import Patch
from weft.ir.expr import Pool
from weft.ir.lower import lower
from weft.ir.passes import PassContext, run_passes
from weft.ir.program import Lowered
from weft.names import StrandRef


@dataclass(frozen=True)
class Unit:
    """One subgraph, compiled: the kernel over its context's sweep, and one for each strand that others read. Equal
    hashes mean that nothing has to be built again. `feeds` computes once a frame what a context that streams is given
    by others. `code` is what the backend that will run it has translated beforehand, if anything."""

    subgraph: Subgraph
    kernel: Kernel
    points: Mapping[StrandRef, Kernel]
    hash: str
    feeds: Kernel | None = None
    code: object = None

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """All of them."""
        return (self.kernel, *self.points.values(), *([self.feeds] if self.feeds is not None else ()))

    @property
    def feeding(self) -> Unit | None:
        """What computes the feeds, as a unit for the context that computes numbers."""
        if self.feeds is None:
            return None
        name = f"{self.subgraph.name}: feeds"
        subgraph = replace(
            self.subgraph, name=name, context=self.feeds.context, tied=(), sinks=(), exposes=(), depends_on=()
        )
        return Unit(subgraph, self.feeds, {}, content_hash(self.feeds))


def compile_unit(
    patch: Patch, graph: RenderGraph, subgraph: Subgraph, contexts: ContextTable, optimise: bool = True
) -> tuple[Unit, Lowered]:
    """Compiles one subgraph; gives with it what it was compiled from. Raises WeftError, or Unavailable if a source is
    missing."""
    pool = Pool()
    spec = contexts[subgraph.context]
    lowered = run_passes(lower(patch, graph, subgraph, contexts, pool), PassContext(pool, spec), optimise)
    kernel = compile_kernel(lowered, spec, optimise, pool)
    points = {ref: compile_points(lowered, ref, spec, pool) for ref, _ in lowered.exposed}
    feeds = compile_feeds(lowered, optimise, pool) if lowered.feeds else None
    unit = Unit(subgraph, kernel, points, "", feeds)
    return replace(unit, hash="-".join(map(content_hash, unit.kernels))), lowered
