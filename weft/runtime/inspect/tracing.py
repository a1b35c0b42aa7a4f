"""The evaluation of an output statement as a tree: the names and calls that it reads, each with its expression.

The tree is recorded while the statement is lowered, by the elaborator that gives every construct its meaning. Numbers
of the text stay inputs, by which the reference machine can take derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeAlias

from weft.contexts import ContextTable
from weft.errors import Span
from weft.graph.budget import Budget
from weft.graph.build import sink_parts
from weft.graph.domain import BASES, Coordinates, Environment
from weft.graph.elaborate import Elaborator
from weft.graph.nodes import RenderGraph, Subgraph
from weft.graph.patch import Patch, SinkStatement
from weft.graph.recursion import Eventual, Task
from weft.graph.scope import Closure, Member, Scope
from weft.ir.expr import Expr, Lowered, Output, Pool, StateSlot, Update, topological
from weft.ir.lower import ExprDomain, FilmNames, ReadAcross, env_own
from weft.names import StrandRef
from weft.syntax.ast import Call, Expression, If, Number

Kind: TypeAlias = Literal["output", "strand", "local", "call", "choice"]


@dataclass(eq=False)
class TraceNode:
    """One name or call at some coordinates. `span` is its place in the text, and `reads` are those that it needs, each
    with the place at which it is read. Of a choice, `condition` decides which side is taken: `sides` are the places of
    the two."""

    kind: Kind
    name: str
    span: Span
    value: Expr | None = None
    reads: list[tuple[TraceNode, Span]] = field(default_factory=list)
    condition: Expr | None = None
    sides: tuple[Span, Span] | None = None
    place: tuple[tuple[str, Expr], ...] = ()
    """The coordinates at which a strand is evaluated: those that differ from the output's."""


@dataclass
class TracingDomain(ExprDomain):
    """Expressions in which the numbers of the text are uniforms. `written` has the uniform of each number, and
    `decisive` those whose values have decided what is evaluated."""

    written: dict[str, Number] = field(default_factory=dict)
    decisive: set[str] = field(default_factory=set)
    _names: dict[Number, str] = field(default_factory=dict)

    def number(self, number: Number) -> Expr:
        if number.span.source.library:
            return self.const(number.value, number.span)
        name = self._names.setdefault(number, f"number {len(self._names)}")
        self.written[name] = number
        made = self.pool.make("uniform", (), name, number.span)
        self._constants.known[made] = self._nominal.known[made] = number.value
        return made

    def _written_in(self, value: Expr) -> Iterator[tuple[Expr, Number]]:
        for node in topological([value]):
            if node.op == "uniform" and (number := self.written.get(str(node.attr))) is not None:
                yield node, number

    def _decide(self, value: Expr) -> None:
        self.decisive.update(str(node.attr) for node, _ in self._written_in(value))

    def _closed(self, value: Expr) -> Expr:
        self._decide(value)
        found = {node: self.const(number.value, number.span) for node, number in self._written_in(value)}
        for node in topological([value]):
            if node not in found:
                found[node] = self.pool.with_args(node, tuple([found[arg] for arg in node.args]))
        return found[value]


class TracedElaborator(Elaborator[Expr]):
    """Evaluates a patch as `Elaborator` does. What is evaluated for an output is recorded as a tree, in which what is
    evaluated once and read several times is one node."""

    def __init__(self, patch: Patch, domain: TracingDomain, env: Environment[Expr], budget: Budget) -> None:
        super().__init__(patch, domain, env, budget)
        self.outputs: list[TraceNode] = []
        self._around: list[TraceNode] = []
        self._traced: dict[Hashable, TraceNode] = {}

    def output(self, label: str, node: Expression, scope: Scope, sink: str) -> Expr:
        """A strand that an output statement takes, recorded."""
        made = TraceNode("output", label, node.span)
        self.outputs.append(made)
        with self._within(made):
            value = made.value = self.expression(node, scope, sink, self.env.own)
        return value

    @contextmanager
    def _within(self, node: TraceNode) -> Iterator[None]:
        self._around.append(node)
        try:
            yield
        finally:
            self._around.pop()

    def value(self, node: Expression, scope: Scope, at: Coordinates[Expr]) -> Eventual[Expr]:
        if self._around and isinstance(node, (Call, If)):
            return self._traced_value(node, scope, at)
        return super().value(node, scope, at)

    def _traced_value(self, node: Call | If, scope: Scope, at: Coordinates[Expr]) -> Task[Expr]:
        made = TraceNode("choice", "if", node.span)
        if isinstance(node, Call):
            made = TraceNode("call", f"{node.name}(…)", node.span)
        self._around[-1].reads.append((made, node.span))
        with self._within(made):
            value: Expr = yield super().value(node, scope, at)
        made.value = value
        if value.op == "select" and (sides := _sides(node)) is not None:
            made.condition, made.sides = value.args[0], sides
        return value

    def _strand(self, ref: StrandRef, at: Coordinates[Expr], span: Span | None) -> Eventual[Expr]:
        return self._named((ref, at), partial(self._node_of, ref, at), span, partial(super()._strand, ref, at, span))

    def member(self, member: Member, at: Coordinates[Expr], span: Span) -> Eventual[Expr]:
        evaluate = partial(super().member, member, at, span)
        if not (isinstance(member, Closure) and member.name):
            return evaluate()
        return self._named((member, at), partial(TraceNode, "local", member.name, member.value.span), span, evaluate)

    def _node_of(self, ref: StrandRef, at: Coordinates[Expr]) -> TraceNode:
        own = self.env.own
        moved = [(name, at.base(name)) for name in BASES if at.base(name) is not own.base(name)]
        place = (*moved, *((ref.short, value) for ref, value in at.axes))
        instance = self.patch.instances.get(ref.instance)
        if instance is None:  # what an analysis hears
            return TraceNode("strand", ref.short, self._around[-1].span, place=place)
        name = ref.short if len(instance.outputs) > 1 else ref.instance
        return TraceNode("strand", name, instance.outputs[ref.output].span, place=place)

    def _named(
        self, key: Hashable, make: Callable[[], TraceNode], read: Span | None,
        evaluate: Callable[[], Eventual[Expr]],
    ) -> Eventual[Expr]:  # fmt: skip
        """What is evaluated under a name: recorded the first time, and referred to after that."""
        if not self._around:
            return evaluate()
        known = self._traced.get(key)
        node = known or self._traced.setdefault(key, make())
        reads = self._around[-1].reads
        if all(each is not node for each, _ in reads):
            reads.append((node, read or node.span))
        return evaluate() if known else self._evaluated(node, evaluate)

    def _evaluated(self, node: TraceNode, evaluate: Callable[[], Eventual[Expr]]) -> Task[Expr]:
        with self._within(node):
            value: Expr = yield evaluate()
        node.value = value
        return value


def _sides(node: Call | If) -> tuple[Span, Span] | None:
    """The places of what a choice chooses between."""
    if isinstance(node, If):
        return node.then.span, node.otherwise.span
    if node.name != "select" or len(node.args) != 3 or any(arg.label for arg in node.args):
        return None
    return node.args[1].span, node.args[2].span


@dataclass(frozen=True)
class TracedStatement:
    """An output statement, lowered: the nodes of its outputs, all nodes, and the numbers of the text that it is made
    of, by the names of their uniforms. `lowered` has its outputs and its memory."""

    outputs: tuple[TraceNode, ...]
    nodes: tuple[TraceNode, ...]
    numbers: Mapping[str, Number]
    decisive: frozenset[str]
    lowered: Lowered
    pool: Pool


def trace(
    patch: Patch, graph: RenderGraph, subgraph: Subgraph, sink: SinkStatement, contexts: ContextTable,
    images: frozenset[str],
) -> TracedStatement:  # fmt: skip
    """Lowers an output statement, and records what it reads. `images` are the keys of what is kept as images of the
    tick; what others would keep is evaluated where it is read. Raises WeftError for what cannot be lowered."""
    budget, strands, spec = Budget(), graph.strands(), contexts[subgraph.context]
    pool, films = Pool(budget), FilmNames()
    across = {ref: ReadAcross.of(strands[ref.alone], contexts) for ref in subgraph.reads}
    domain = TracingDomain(pool, spec, across, images if spec.sweeps_plane else frozenset(), points=False, films=films)
    domain.own = env_own(domain, Environment(domain, patch.settings, spec.counters, domain.own), spec)
    env = Environment(domain, patch.settings, spec.counters, domain.own)
    elaborator = TracedElaborator(patch, domain, env, budget)
    elaborator.heard |= graph.heard
    outputs = tuple(
        Output(part.label, elaborator.output(part.label, part.value, part.scope, sink.label))
        for part in sink_parts(sink, elaborator.resolver)
    )
    while elaborator.has_pending:
        elaborator.advance()
    prefix = f"{spec.name}/"
    slots = tuple(
        StateSlot(f"{prefix}{slot.key}", slot.key.kind, slot.depth, slot.planes, image=False, level=slot.level)
        for slot in sorted(elaborator.slots.values(), key=lambda each: str(each.key))
    )
    updates = {(f"{prefix}{key}", plane): value for (key, plane), value in elaborator.updates.items()}
    lowered = Lowered(
        subgraph.name, spec.name, outputs, (), slots,
        tuple(Update(*place, updates[place]) for place in sorted(updates)), films=films.outputs,
    )  # fmt: skip
    return TracedStatement(
        tuple(elaborator.outputs), tuple(_all_nodes(elaborator.outputs)), domain.written, frozenset(domain.decisive),
        lowered, pool,
    )  # fmt: skip


def _all_nodes(outputs: Iterable[TraceNode]) -> Iterator[TraceNode]:
    """The nodes of outputs and all that these read, each once."""
    waiting = list(outputs)[::-1]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        yield node
        for each, _ in reversed(node.reads):
            if each not in seen:
                seen.add(each)
                waiting.append(each)
