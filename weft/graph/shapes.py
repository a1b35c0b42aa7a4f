"""Shapes of instances: how many strands `name = e` has, and what they are called. A bundle makes an instance with an
output for each of its members; the outputs of one without names are called 0, 1, … and have no names in a text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from weft.errors import Report, Span, WeftError, error
from weft.graph.budget import Budget
from weft.graph.domain import OWN, Environment, ShapeDomain
from weft.graph.elaborate import Elaborator
from weft.graph.groups import Resolver
from weft.graph.nodes import Broadcast, BundlePart, Definition, Expanded, Instance, OutputDefinition, Patch, Unshaped
from weft.graph.partition import components
from weft.graph.scope import PoisonedError, Scope, StrandGroup, is_swizzle, strands
from weft.sources import SOURCES
from weft.syntax.ast import (
    Access, Bundle, Call, Comprehension, Expression, Name, Number, SpindleDefinition, Walkable, children
)


def shaped(patch: Patch, report: Report) -> Patch:
    """A patch whose instances have their outputs. Those whose strands do not fit together are reported, and stay
    without; other mistakes are left to elaboration, which finds them again."""
    return replace(patch, instances=_Shaping(patch, report).instances())


class _Shaping:
    def __init__(self, patch: Patch, report: Report) -> None:
        self._report = report
        self._unshaped: dict[str, tuple[Expression, Span]] = {}
        self._given = patch.instances
        self._instances = dict(patch.instances)
        for name, instance in patch.instances.items():
            for output in instance.outputs.values():
                if isinstance(output.definition, Unshaped):
                    self._unshaped[name] = output.definition.value, output.span
                    self._instances[name] = _with_outputs(instance, None)
        self._patch = replace(patch, instances=self._instances)
        self._spindles: dict[SpindleDefinition, frozenset[str]] = {}
        self._edges: dict[str, list[str]] = {}
        self._resolver = self._new_resolver()
        self._has_bundles: set[str] = {name for name, i in self._instances.items() if len(i.outputs) > 1}

    def instances(self) -> Mapping[str, Instance]:
        """All instances of the patch, with their outputs."""
        reads = {name: self._names_in(value) for name, (value, _) in self._unshaped.items()}
        self._edges = {name: [other for other in found if other in self._unshaped] for name, found in reads.items()}
        for cycle in components(self._edges, self._edges):
            if any(_BUNDLE in reads[name] or not self._has_bundles.isdisjoint(reads[name]) for name in cycle):
                self._shape(cycle)
        return self._instances

    def _shape(self, cycle: list[str]) -> None:
        """Shapes instances that depend on each other. Each starts as one strand, and the widest shape found holds."""
        is_circular = len(cycle) > 1 or cycle[0] in self._edges[cycle[0]]
        is_known = False
        while not is_known:
            is_known = True
            if is_circular:  # what was found in the last round does not hold any more
                self._resolver = self._new_resolver()
            for name in cycle:
                instance, (value, span) = self._instances[name], self._unshaped[name]
                if instance is self._given[name]:
                    continue
                try:
                    group = self._resolver.several(value, Scope(f"{name}@val"))
                    if group is not None and len(self._given[name].outputs) > 1:
                        raise _takes_no_more(name, self._given[name])
                    if group is None or len(group) == len(instance.outputs):
                        continue
                    if len(instance.outputs) > 1:
                        raise _grows(name, span, len(instance.outputs), group)
                except WeftError as failure:
                    found = [d for d in failure.diagnostics if d.code in _ABOUT_SHAPES]
                    self._report.add(found)
                    if found:
                        self._instances[name] = self._given[name]
                    continue
                except PoisonedError:
                    continue
                self._instances[name] = _with_outputs(self._given[name], group)
                self._has_bundles.add(name)
                is_known = not is_circular

    def _new_resolver(self) -> Resolver:
        domain = ShapeDomain()
        return Elaborator(self._patch, domain, Environment(domain, self._patch.settings, (), OWN), Budget()).resolver

    def _names_in(self, node: Walkable) -> frozenset[str]:
        """The names from which a bundle may come, also through spindles; with `_BUNDLE` if one stands in the text."""
        found: set[str] = set()
        waiting = [node]
        while waiting:
            match part := waiting.pop():
                case Name(id=name):
                    found.add(name)
                case Bundle() | Comprehension():
                    found.add(_BUNDLE)
                case Access(output=output) if is_swizzle(output):
                    found.add(_BUNDLE)
                    waiting += children(part)
                case Number() | Access():
                    pass
                case Call(name=name):
                    spindle = self._patch.spindles.get(name)
                    if spindle is not None:
                        found |= self._names_in_body(spindle)
                    elif name in SOURCES or name == "join":
                        found.add(_BUNDLE)
                    waiting += children(part)
                case _:
                    waiting += children(part)
        return frozenset(found)

    def _names_in_body(self, spindle: SpindleDefinition) -> frozenset[str]:
        if spindle not in self._spindles:
            self._spindles[spindle] = frozenset()  # while it calls itself
            names: set[str] = {_BUNDLE} if len(spindle.outputs) > 1 else set()
            names.update(*(self._names_in(statement) for statement in spindle.body))
            self._spindles[spindle] = frozenset(names)
        return self._spindles[spindle]


_ABOUT_SHAPES = frozenset(
    {"copies-out-of-range", "count-mismatch", "duplicate-binding", "nested-bundle", "several-strands"}
)

# Stands for a bundle among names; it cannot occur in a text.
_BUNDLE = "<>"


def _with_outputs(instance: Instance, group: StrandGroup | None) -> Instance:
    """An instance whose value without a list of names has the strands of a group, or is one strand."""
    outputs: dict[str, OutputDefinition] = {}
    for output in instance.outputs.values():
        if not isinstance(definition := output.definition, Unshaped):
            outputs[output.name] = output
            continue
        names = (output.name,) if group is None else tuple(n or str(i) for i, n in enumerate(group.names))
        for index, name in enumerate(names):
            part: Definition = BundlePart(definition.value, index, f"{instance.name}@{output.name}")
            if len(names) == 1:
                part = Expanded(definition.value, Broadcast(names, index))
            outputs[name] = OutputDefinition(name, part, output.span)
    return replace(instance, outputs=outputs)


def _takes_no_more(name: str, instance: Instance) -> WeftError:
    other = next(o for o in instance.outputs.values() if not isinstance(o.definition, Unshaped))
    return error("duplicate-binding", f'"{name}" is a bundle and takes no further outputs', other.span,
                 related=[(instance.span, "the bundle is here")])  # fmt: skip


def _grows(name: str, span: Span, count: int, group: StrandGroup) -> WeftError:
    return error("count-mismatch", f'"{name}" has {count} strands, and {len(group)} come round to it: '
                 f"{strands(group)}", span, f"name its outputs: {name}<a, b> = …")  # fmt: skip
