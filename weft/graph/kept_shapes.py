"""What the graph of a text leaves for the next: the shapes of its strands, and its subgraphs.

Most edits change no shape. So in the domain of shapes, the effect of an edit stops at a name whose strands have the
shapes that they had.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from weft.errors import Diagnostic, WeftError
from weft.graph.affected import Edit
from weft.graph.budget import Budget
from weft.graph.components import reachable
from weft.graph.domain import CHANNEL, OWN, TIME, UNIFORM, Coordinates, Environment, Shape, ShapeDomain, SlotKey, X, Y
from weft.graph.elaborate import Elaborator
from weft.graph.evaluation import Owner
from weft.graph.nodes import RenderGraph
from weft.graph.numbers import Numbers
from weft.graph.patch import Patch
from weft.graph.scope import PoisonedError
from weft.names import StrandRef
from weft.syntax.ast import SpindleDefinition

_NAMES_OF_BITS = {"x": X, "y": Y, "abstime": TIME, "channel": CHANNEL, "tick": UNIFORM}


@dataclass(frozen=True)
class GraphBasis:
    """Everything that determines a graph, except places in the text: the outputs of instances, with their kinds; output
    statements; what strands, slots and output statements refer to; the base coordinates over which strands vary; and
    the slots that vary over the picture."""

    outputs: Sequence[tuple[str, str, Sequence[str]]]
    sinks: object
    references: Mapping[Owner, object]
    over: Mapping[StrandRef, tuple[str, ...]]
    planar: Collection[SlotKey]
    heard: object
    images: object

    def of(self, used: Container[Owner]) -> GraphBasis:
        """The part that concerns what is used."""
        outputs = [
            (instance, kind, own) for instance, kind, names in self.outputs
            if (own := [name for name in names if StrandRef(instance, name) in used])
        ]  # fmt: skip
        references = {owner: each for owner, each in self.references.items() if owner in used}
        over = {ref: each for ref, each in self.over.items() if ref in used}
        return replace(self, outputs=outputs, references=references, over=over)


@dataclass(frozen=True)
class GraphCut:
    """A graph with what determines it: all of that, and the part that concerns what is used."""

    basis: GraphBasis
    used: GraphBasis
    graph: RenderGraph


Shapes = Mapping[tuple[StrandRef, Coordinates[Shape]], Shape]
"""The shapes of strands, at all coordinates that were asked for."""


@dataclass
class KeptShapes:
    """What the graph of a patch was built from, kept for the next patch. `checked` are the spindles without errors,
    whether or not they are called. `labels` are those of the parts of each output statement, and `warnings` what was
    said of them. `cut` is the last graph that was made, with what determines it; it is that of the patch if it
    `is_cut`."""

    elaborator: Elaborator[Shape]
    domain: ShapeDomain
    checked: set[SpindleDefinition]
    labels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    warnings: list[Diagnostic] = field(default_factory=list)
    cut: GraphCut | None = None
    is_cut: bool = False
    is_whole: bool = False
    """Whether the last patch had no errors."""
    is_same: bool = False
    """Whether the patch is the last one, apart from places in the text."""

    @classmethod
    def of(cls, patch: Patch, budget: Budget, numbers: Numbers | None = None) -> KeptShapes:
        """What is known at the first patch, which is nothing. `numbers` are the open numbers of all patches."""
        domain = ShapeDomain(numbers=numbers or Numbers())
        env = Environment(domain, patch.settings, ("absframe",), OWN)
        return cls(Elaborator(patch, domain, env, budget), domain, set())

    def over(self) -> dict[StrandRef, frozenset[str]]:
        """What the strands depend on: base coordinates, and `tick` for what changes from tick to tick."""
        return {
            ref: frozenset(name for name, bit in _NAMES_OF_BITS.items() if shape.over & bit)
            for ref, shape in self.elaborator.at_own().items()
        }

    def retain(self, patch: Patch, budget: Budget, edit: Edit) -> None:
        """Continues with another patch; see `Elaborator.retain`. The effect of the edit spreads from a name to those
        that mention it, but stops at a name whose strands have the same shapes as before at all coordinates that were
        asked for."""
        self.is_same = self.is_whole and not edit.changed and _is_same(self.elaborator.patch, patch)
        if self.is_same:
            return
        self.is_whole = self.is_cut = False
        self.labels.clear()
        self.warnings.clear()
        try:
            affected = self._affected(patch, budget, edit)
        except WeftError:
            affected = None  # perhaps a strand was evaluated before another one was found to be affected
        if affected is None:
            affected = set(reachable(edit.changed, edit.mentioned_by))
            self._go_on(patch, budget, edit, affected)
        unaffected = edit.unchanged - affected
        self.checked = {spindle for spindle in self.checked if spindle.name.name in unaffected}

    def _affected(self, patch: Patch, budget: Budget, edit: Edit) -> set[str] | None:
        """Continues with another patch, and returns the names of which nothing was kept; None if finding them takes too
        many rounds. Raises WeftError for mistakes, and also for some that are none: a strand may be evaluated before it
        is known to be affected."""
        elaborator = self.elaborator
        outputs = {name: tuple(instance.outputs) for name, instance in elaborator.patch.instances.items()}
        before: dict[str, Shapes] = {}

        def differing(affected: Set[str], new: Set[str]) -> list[str]:
            before.update({name: elaborator.known(name) for name in new})
            self._go_on(patch, budget, edit, affected)
            return [
                name for name in affected
                if name not in patch.instances or outputs.get(name) != tuple(patch.instances[name].outputs)
                or not self._has(before[name])
            ]  # fmt: skip

        return edit.spread(edit.stale, differing)

    def _go_on(self, patch: Patch, budget: Budget, edit: Edit, affected: Set[str]) -> None:
        """Continues with another patch. A dropped slot is no longer known to be planar: it may not be any more."""
        self.elaborator.retain(patch, budget, edit.unchanged - affected, edit.resolved)
        self.domain.planar &= self.elaborator.slots.keys()

    def _has(self, shapes: Shapes) -> bool:
        """Whether strands still have these shapes. The answer is no for strands that remember something, since their
        shapes are final only when all state is known. It is also no for strands that read themselves through memory, if
        some memory varies over the picture: they may have their shapes only from that memory."""
        elaborator, references = self.elaborator, self.elaborator.references
        for (ref, at), shape in shapes.items():
            if ref.output not in elaborator.patch.instances[ref.instance].outputs:
                return False
            try:
                if elaborator.strand(ref, at) != shape:
                    return False
            except PoisonedError:
                return False
            found = references.get(ref)
            if found is not None and (found.slots or found.images or found.heard):
                return False
        if self.domain.planar:
            needs = {owner: each.needs for owner, each in references.items()}
            if any(ref in reachable(needs.get(ref, ()), needs) for ref, _ in shapes):
                return False
        return bool(shapes)


def _is_same(one: Patch, other: Patch) -> bool:
    """Whether two patches whose names mean the same are the same."""
    sinks = [[(sink.label, sink.target, sink.statement.args) for sink in patch.sinks] for patch in (one, other)]
    return list(one.instances) == list(other.instances) and sinks[0] == sinks[1]
