"""What an output statement consumes: one strand for each place that its context has."""

from __future__ import annotations

from dataclasses import dataclass

from weft.contexts import ContextSpec
from weft.errors import Span, error
from weft.graph.patch import SinkStatement, Spread
from weft.graph.resolve import Resolver
from weft.graph.scope import Scope
from weft.syntax.ast import Argument, Bundle, Expression, Text


@dataclass(frozen=True, slots=True, eq=False)
class SinkPart:
    """One strand that an output statement consumes. `label` names it among all of them: `display.r`."""

    label: str
    value: Expression
    scope: Scope

    @property
    def span(self) -> Span:
        return self.value.span


def sink_parts(sink: SinkStatement, resolver: Resolver) -> list[SinkPart]:
    """The strands of an output statement, in the order of its context's places. Raises WeftError for what it cannot
    take."""
    args = [a for a in sink.statement.args if not (a.label == "to" and sink.spec.targets)]
    for arg in args:
        if isinstance(arg.value, Text):
            raise error("text-as-number", "text cannot be used as a number", arg.value.span)
    if not args:
        raise error("missing-argument", f"{sink.statement.name} needs at least one strand", sink.statement.span,
                    f"for example {sink.spec.example}")  # fmt: skip
    spec = sink.spec
    places = _free_places(sink, args, resolver) if not spec.layouts else _laid_out(sink, args, resolver)
    return [SinkPart(f"{sink.label}.{name}", value, _scope(sink, name, spread)) for name, value, spread in places]


def _scope(sink: SinkStatement, name: str, spread: Spread | None) -> Scope:
    return Scope(f"{sink.label}@{name}", spread=spread)


_Place = tuple[str, Expression, "Spread | None"]


def _free_places(sink: SinkStatement, args: list[Argument], resolver: Resolver) -> list[_Place]:
    """Any number of strands; a group gives one for each of its members."""
    places: list[_Place] = []
    for arg in args:
        shape = resolver.spread_shape(arg.value, _scope(sink, "", None))
        if shape is None:
            places.append((arg.label or str(len(places)), arg.value, None))
            continue
        names = tuple(n or str(i) for i, n in enumerate(shape.names))
        prefix = f"{arg.label}." if arg.label else ""
        places += [(prefix + name, arg.value, Spread(names, i)) for i, name in enumerate(names)]
    return places


def _laid_out(sink: SinkStatement, args: list[Argument], resolver: Resolver) -> list[_Place]:
    """The places of one of the context's layouts."""
    if len(args) == 1 and args[0].label is None:
        return _single(sink, args[0], resolver)
    filled: dict[str, _Place] = {}
    positional = _layout_of(sink, sum(a.label is None for a in args), args)
    for position, arg in enumerate(args):
        names = (positional[position],) if arg.label is None else _labelled(sink.spec, arg)
        for i, name in enumerate(names):
            if name in filled and [a.label for a in args].count(arg.label) > 1:
                continue  # the parser has said so
            if name in filled:
                raise error("duplicate-argument", f'"{name}" is given twice', arg.span)
            filled[name] = (name, arg.value, Spread(names, i) if len(names) > 1 else None)
    for layout in sink.spec.layouts:
        if set(layout) == set(filled):
            return [filled[name] for name in layout]
    raise error("wrong-arguments", f"{sink.statement.name} takes {_layouts(sink.spec)}", sink.statement.span,
                f"for example {sink.spec.example}")  # fmt: skip


def _single(sink: SinkStatement, arg: Argument, resolver: Resolver) -> list[_Place]:
    """One argument may be several strands: a bundle, an instance, or an expression over one."""
    spec = sink.spec
    shape = resolver.spread_shape(arg.value, _scope(sink, "", None))
    if shape is None:
        name = next((layout[0] for layout in spec.layouts if len(layout) == 1), None)
        if name is None:
            raise error("wrong-arguments", f"{sink.statement.name} takes {_layouts(spec)}", arg.span)
        return [(name, arg.value, None)]
    longest_first = sorted(spec.layouts, key=len, reverse=True)
    named = next((lay for lay in longest_first if len(lay) > 1 and set(lay) <= set(shape.names)
                  and set(lay) <= set(spec.spread)), None)  # fmt: skip
    layout = named or next((lay for lay in spec.layouts if len(lay) == len(shape)), None)
    if layout is None:
        what = "this bundle has" if isinstance(arg.value, Bundle) else "this is"
        raise error("wrong-arguments", f"{what} {len(shape)} strands, and {sink.statement.name} takes {_layouts(spec)}",
                    arg.span)  # fmt: skip
    return [(name, arg.value, Spread(layout, i)) for i, name in enumerate(layout)]


def _layout_of(sink: SinkStatement, count: int, args: list[Argument]) -> tuple[str, ...]:
    """The places that positional arguments fill: those of the layout with as many places as strands are given."""
    labelled = sum(len(_labelled(sink.spec, a)) for a in args if a.label is not None)
    layout = next((lay for lay in sink.spec.layouts if len(lay) == count + labelled), None)
    if layout is None:
        longest = max(len(lay) for lay in sink.spec.layouts)
        span = args[longest].span if len(args) > longest else sink.statement.span
        raise error("wrong-arguments", f"{sink.statement.name} takes {_layouts(sink.spec)}, and this is "
                    f"{count + labelled}", span, f"for example {sink.spec.example}")  # fmt: skip
    return layout


def _labelled(spec: ContextSpec, arg: Argument) -> tuple[str, ...]:
    label = arg.label or ""
    names = (spec.label_groups or {}).get(label) or ((label,) if any(label in lay for lay in spec.layouts) else None)
    if names is None:
        known = [*dict.fromkeys(n for lay in spec.layouts for n in lay), *(spec.label_groups or {})]
        raise error("unknown-argument", f'{spec.statements[0]} has no argument "{label}"', arg.label_span or arg.span,
                    f"it has {', '.join(known)}")  # fmt: skip
    return names


def _layouts(spec: ContextSpec) -> str:
    counts = [str(len(layout)) for layout in spec.layouts]
    return f"{', '.join(counts[:-1])} or {counts[-1]} strands" if len(counts) > 1 else f"{counts[0]} strands"
