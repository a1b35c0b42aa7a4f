"""From subgraphs to units: lowering, the passes, and all kernels. If an edit has changed only constants, units and
kernels of the text before are used again.

Most saves on stage tune a number. If the passes would do the same for the new values, they do not run: the IR stays,
and its constants get these values, in the kernels as well (`KeptUnit.tuned`). Otherwise the passes run. If the new IR
differs from the one before in constants only, so do the kernels, and they are not built again (`tuning`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from weft.codegen.compilation import KernelBuilder, compile_feeds, compile_films, compile_kernel, compile_points
from weft.codegen.kernel import LOOP_STEPS, NEST_STEPS, Kernel, Unit, content_hash
from weft.contexts import ContextSpec, ContextTable
from weft.graph.budget import Budget
from weft.graph.nodes import RenderGraph, Subgraph
from weft.graph.numbers import Numbers
from weft.graph.patch import Patch
from weft.ir.census import Census, Changes
from weft.ir.expr import Expr, LoopShape, Lowered, MalformedError, Pool, known_of
from weft.ir.lower import KeptLowering, lower
from weft.ir.passes import run_passes
from weft.ir.rates import PassContext, long_loops
from weft.ir.tunable import current

# An IR with other constants.

ConstantUse: TypeAlias = "tuple[Expr, int]"
"""A constant as an operand: the expression that uses it, and the place of the operand."""


@dataclass(frozen=True, eq=False)
class Tuning:
    """How one IR can be made of another with other values of constants. `constants` has the new value for each use, by
    the users in the first IR. `replaced` has, for expressions of the first IR, those of the second that take their
    places."""

    constants: Mapping[ConstantUse, float]
    replaced: Mapping[Expr, Expr]


def tuning(before: Lowered, after: Lowered, gone: Container[Expr], came: Container[Expr]) -> Tuning | None:
    """The tuning from one IR to another; None if they differ in more than constants as operands of operations.
    Expressions in `gone` are in the first IR only, those that `came` in the second only.

    Apart from constants, expressions have to correspond one to one. An expression that is in both must correspond to
    itself, and two must not become one, or one become two.
    """
    if _without_expressions(before) != _without_expressions(after):
        return None
    constants: dict[ConstantUse, float] = {}
    replaced: dict[Expr, Expr] = {}
    made = set[Expr]()
    todo = list(zip(before.roots, after.roots, strict=True))
    while todo:
        node, other = todo.pop()
        if node is other or replaced.get(node) is other:
            continue
        is_clear = node in gone and other in came and node not in replaced and other not in made
        is_alike = node.op == other.op and node.attr == other.attr and len(node.args) == len(other.args)
        if not (is_clear and is_alike) or node.op == "const":
            return None
        replaced[node] = other
        made.add(other)
        for place, (arg, given) in enumerate(zip(node.args, other.args, strict=True)):
            if arg.op != "const" or given.op != "const":
                todo.append((arg, given))
            elif arg is not given:
                if isinstance(node.attr, LoopShape):
                    return None  # values of kernels have other operands than loops of the IR
                constants[node, place] = current(known_of(given))
    return Tuning(constants, replaced)


def _without_expressions(lowered: Lowered) -> tuple[object, ...]:
    """All parts of an IR except its expressions."""
    ends = [[output.label for output in ends] for ends in (lowered.outputs, lowered.feeds, lowered.films)]
    exposed = [strand for strand, _ in lowered.exposed]
    updates = [(update.slot, update.plane) for update in lowered.updates]
    return lowered.name, lowered.context, ends, exposed, lowered.slots, updates, lowered.borrowed


# Units.


@dataclass(frozen=True, eq=False)
class _Made:
    """A unit, with the IR that it was lowered to, the IR after the passes, and the builders of its kernels. If
    constants were replaced since the kernels were built, the builders know other expressions than the IR: these are its
    `origins`."""

    written: Lowered
    unit: Unit
    lowered: Lowered
    builders: tuple[KernelBuilder, ...]
    origins: Mapping[Expr, Expr] = field(default_factory=dict)

    def with_values(self, new: Mapping[Expr, float], users: Mapping[Expr, Iterable[Expr]]) -> _Made | None:
        """The unit with new values of constants. `users` gives the expressions that use them. None if a use is not an
        operand in the kernels."""
        if not new.keys().isdisjoint(self.lowered.roots):
            return None
        uses: dict[ConstantUse, float] = {}
        for constant, value in new.items():
            for user in users.get(constant, ()):
                if isinstance(user.attr, LoopShape):
                    return None
                uses |= {(user, place): value for place, arg in enumerate(user.args) if arg is constant}
        return self._with_constants(uses)

    def tuned(self, written: Lowered, lowered: Lowered, changes: Changes) -> _Made | None:
        """The unit of an IR with other constants; None if it differs in more, or if a constant is not an operand in the
        kernels."""
        gone, came = set(changes.gone), set(changes.came)
        # In a stage, two different expressions of the IR may have become one, for instance two plain constants.
        found = None if self.unit.kernel.stages else tuning(self.lowered, lowered, gone, came)
        if found is None:
            return None
        made = self._with_constants(found.constants)
        if made is None:
            return None
        replaced = found.replaced
        origins = {node: origin for node, origin in self.origins.items() if node not in replaced}
        origins |= {new: self.origins.get(node, node) for node, new in replaced.items()}
        return replace(made, written=written, lowered=lowered, origins=origins)

    def _with_constants(self, constants: Mapping[ConstantUse, float]) -> _Made | None:
        """The unit with other constants as operands of expressions; None if one is not an operand in the kernels."""
        uses = {(self.origins.get(user, user), place): value for (user, place), value in constants.items()}
        try:
            kernels = _with_constants(self.unit.kernels, self.builders, uses)
        except MalformedError:
            return None
        return replace(self, unit=_with_kernels(self.unit, kernels))


def _with_constants(
    kernels: Iterable[Kernel], builders: Iterable[KernelBuilder], uses: Mapping[ConstantUse, float]
) -> list[Kernel]:
    """The kernels with other constants, by the expressions from which they were built. Raises MalformedError if one is
    not an operand anywhere."""
    made, missing = [], set(uses)
    for kernel, builder in zip(kernels, builders, strict=True):
        sections = []
        for section, writer in zip(kernel.sections, builder.writers, strict=True):
            new = dict[int, float]()
            for (user, place), value in uses.items():
                node = builder.made_of.get(user, user)
                # Where an image is read, its value is not made of constants.
                is_made = node.op == user.op and node.attr == user.attr and node.args[place] is user.args[place]
                if is_made and (operands := [first + place for first in writer.first_operands(node)]):
                    new |= dict.fromkeys(operands, value)
                    missing.discard((user, place))
            sections.append(section.with_constants(new) if new else section)
        made.append(replace(kernel, sections=tuple(sections)))
    if missing:
        raise MalformedError(f"constants of {len(missing)} expressions are no operands")
    return made


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
    """What compiling a subgraph leaves for the next patch. It keeps no names, which only listings show; kernels are the
    same without them."""

    lowering: KeptLowering
    context: PassContext
    made: _Made | None = None
    census: Census = field(default_factory=Census)
    """The expressions of its IR after the passes."""

    @classmethod
    def of(cls, spec: ContextSpec, patch: Patch, numbers: Numbers) -> KeptUnit:
        """Knows nothing yet. All patches that use it have the same settings and files, and these open numbers."""
        pool = Pool(names=False)
        return cls(KeptLowering(pool, numbers), replace(_pass_context(pool, spec, patch), _rewritten={}))

    def tuned(self) -> _Made | None:
        """The unit with the new values of constants, if nothing else has changed. None if the passes would do something
        else for these values, or if a constant is not an operand of the kernels. The last IR becomes that of the unit:
        from here on, its constants have the new values."""
        lowered, literals = self.lowering.current, self.lowering.literals
        if self.made is None or lowered is None:
            return None
        values = literals.retuned(lowered)
        if not values:
            return None if values is None else self.made
        new = {self.context.pool.make("const", (), each): value for each, value in values.items()}
        made = self.made.with_values(new, self.census.users)
        if made is not None:
            literals.tune(values)
        return made


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
    if known:
        known.made = None  # if the rest fails, the census belongs to another IR
    lowered = run_passes(written, context, optimise)
    changes = known.census.follow(lowered.roots) if known else None
    made = before.tuned(written, lowered, changes) if before and changes else None
    made = made or _built(subgraph, written, lowered, context, optimise)
    made = _with_loops(replace(made, unit=replace(made.unit, subgraph=subgraph)), context.pool)
    if known:
        known.made = made
    return made.unit, made.lowered


def _with_loops(made: _Made, pool: Pool) -> _Made:
    """The unit, with the places of its long loops in the text."""
    loops = long_loops(made.written.nodes, LOOP_STEPS, NEST_STEPS) if "loop" in pool.ops else ()
    places = tuple(dict.fromkeys(span for loop in loops if (span := loop.span) is not None))
    return replace(made, unit=replace(made.unit, loops=places))


def _built(subgraph: Subgraph, written: Lowered, lowered: Lowered, context: PassContext, optimise: bool) -> _Made:
    """The unit of an IR, with new kernels."""
    spec, pool, builders = context.spec, context.pool, list[KernelBuilder]()
    rates = context.rates(lowered)
    kernel = compile_kernel(lowered, spec, optimise, pool, rates, builders)
    points = {
        ref: compile_points(lowered, ref, spec, pool, context.rates(lowered, points=True), builders)
        for ref, _ in lowered.exposed
    }
    feeds = compile_feeds(lowered, optimise, pool, builders) if lowered.feeds else None
    unit = Unit(subgraph, kernel, points, "", feeds, borrowed=lowered.borrowed)
    if lowered.films:
        shown = replace(lowered, films=tuple(film for film in lowered.films if film.label in unit.pictures))
        unit = replace(unit, films=compile_films(shown, spec, optimise, pool, rates, builders))
    return _Made(written, replace(unit, hash=_hash(unit)), lowered, tuple(builders))
