"""From subgraphs to units: lowering, the passes, and all kernels.

Most saves on stage tune a number. If the passes would do the same for the new value, nothing runs: the IR stays, its
constants get their new values, and these are the new numbers of the kernels (`KeptUnit.tuned`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from weft.codegen.compilation import BuiltKernels, compile_feeds, compile_films, compile_kernel, compile_points
from weft.codegen.kernel import LOOP_STEPS, NEST_STEPS, Kernel, Unit, content_hash
from weft.contexts import ContextSpec, ContextTable
from weft.graph.budget import Budget
from weft.graph.nodes import RenderGraph, Subgraph
from weft.graph.numbers import Numbers
from weft.graph.patch import Patch
from weft.ir.expr import Lowered, Pool
from weft.ir.lower import KeptLowering, lower
from weft.ir.passes import run_passes
from weft.ir.rates import PassContext, long_loops


@dataclass(frozen=True, eq=False)
class _Made:
    """A unit, with the IR that it was lowered to, the IR after the passes, and its kernels with the constants that are
    their numbers."""

    written: Lowered
    unit: Unit
    lowered: Lowered
    built: BuiltKernels

    def with_current_numbers(self) -> _Made:
        """The unit with the values that its constants have now."""
        kernels = [
            replace(kernel, numbers=tuple([each.current for each in numbers]))
            for kernel, numbers in zip(self.unit.kernels, self.built.numbers, strict=True)
        ]
        return replace(self, unit=_with_kernels(self.unit, kernels))


def _with_kernels(unit: Unit, kernels: Iterable[Kernel]) -> Unit:
    """The unit with other kernels in place of its own, in the same order."""
    given = iter(kernels)
    stages = tuple(next(given) for _ in unit.kernel.stages)
    made = replace(
        unit,
        kernel=replace(next(given), stages=stages),
        points={strand: next(given) for strand in unit.points},
        feeds=next(given) if unit.feeds else None,
        films=next(given) if unit.films else None,
    )
    return replace(made, hash=_hash(made))


def _hash(unit: Unit) -> str:
    return "-".join(map(content_hash, unit.kernels))


@dataclass
class KeptUnit:
    """What compiling a subgraph leaves for the next patch. Only listings show names; kernels are the same without."""

    lowering: KeptLowering
    context: PassContext
    made: _Made | None = None

    @classmethod
    def of(cls, spec: ContextSpec, patch: Patch, numbers: Numbers, has_names: bool) -> KeptUnit:
        """Knows nothing yet. All patches that use it have the same settings and files, and these open numbers."""
        pool = Pool(names=has_names)
        return cls(KeptLowering(pool, numbers), replace(_pass_context(pool, spec, patch), _rewritten={}))

    def tuned(self) -> _Made | None:
        """The unit with the new values of constants, if nothing else has changed. None if the passes would do something
        else for these values."""
        lowered, literals = self.lowering.current, self.lowering.literals
        if self.made is None or lowered is None:
            return None
        values = literals.retuned(lowered)
        if not values:
            return None if values is None else self.made
        literals.tune(values)
        return self.made.with_current_numbers()


def _pass_context(pool: Pool, spec: ContextSpec, patch: Patch) -> PassContext:
    return PassContext(pool, spec, patch.media, int(patch.settings["samples"]))


def compile_unit(
    patch: Patch, graph: RenderGraph, subgraph: Subgraph, contexts: ContextTable, optimise: bool = True,
    budget: Budget | None = None, known: KeptUnit | None = None,
) -> tuple[Unit, Lowered]:  # fmt: skip
    """Compiles one subgraph. Returns the unit, and the lowered IR that it was compiled from. What is `known` is used
    again. Raises WeftError, or Unavailable if a source is missing."""
    spec = contexts[subgraph.context]
    context = known.context if known else _pass_context(Pool(budget), spec, patch)
    before = known.made if known else None
    if known and (tuned := known.tuned()):
        known.made = tuned if tuned is before else _with_loops(tuned, context.pool)
        return replace(known.made.unit, subgraph=subgraph), tuned.lowered
    written = lower(patch, graph, subgraph, contexts, known.lowering if known else context.pool)
    if before and before.written == written:
        return replace(before.unit, subgraph=subgraph), before.lowered
    made = _built(subgraph, written, context, optimise, BuiltKernels(before.built if before else None))
    made = _with_loops(made, context.pool)
    if known:
        known.made = made
    return made.unit, made.lowered


def _with_loops(made: _Made, pool: Pool) -> _Made:
    """The unit, with the places of its long loops in the text."""
    loops = long_loops(made.written.nodes, LOOP_STEPS, NEST_STEPS) if "loop" in pool.ops else ()
    places = tuple(dict.fromkeys(span for loop in loops if (span := loop.span) is not None))
    return replace(made, unit=replace(made.unit, loops=places))


def _built(
    subgraph: Subgraph, written: Lowered, context: PassContext, optimise: bool, built: BuiltKernels
) -> _Made:  # fmt: skip
    """The unit of an IR, whose kernels are added to those that are `built`."""
    lowered = run_passes(written, context, optimise)
    spec, pool = context.spec, context.pool
    rates = context.rates(lowered)
    kernel = compile_kernel(lowered, spec, optimise, pool, rates, built)
    points = {
        ref: compile_points(lowered, ref, spec, pool, context.rates(lowered, points=True), built)
        for ref, _ in lowered.exposed
    }
    feeds = compile_feeds(lowered, optimise, pool, built) if lowered.feeds else None
    unit = Unit(subgraph, kernel, points, "", feeds, borrowed=lowered.borrowed)
    if lowered.films:
        shown = replace(lowered, films=tuple(film for film in lowered.films if film.label in unit.pictures))
        unit = replace(unit, films=compile_films(shown, spec, optimise, pool, rates, built))
    return _Made(written, replace(unit, hash=_hash(unit)), lowered, built)
