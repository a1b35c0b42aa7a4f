"""Analyses of sounds in expressions: what they hear, which may have no name in the patch, and how what is heard is read
as a picture."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from weft.errors import Span, error
from weft.graph.domain import Coordinates, Environment
from weft.graph.groups import Resolver, is_field
from weft.graph.nodes import HeardStrand
from weft.graph.scope import OPEN, Closure, Scope, StrandMember, called_analysis
from weft.names import HEARD_ROWS, HeardName, StrandRef, hop_length
from weft.sources import SOURCES
from weft.syntax.ast import Access, Call, Name

V = TypeVar("V")


def analysis_value(
    call: Call, ref: StrandRef, plane: int, axis: V | None, env: Environment[V],
    picture: Callable[[str, int, V, V, Span], V], at: Coordinates[V],
) -> V:  # fmt: skip
    """An output of an analysis of the strand `ref`: a plane of a `picture` with a row for each hop, which is read
    between rows. What runs on is read at a row, and runs on from there."""
    spec = SOURCES[call.name]
    _, args = called_analysis(call, spec)
    name = HeardName(spec.name, args, str(ref)).name
    rate = env.settings["rate"]
    hop = hop_length(rate) / rate
    # Row n is complete, and holds, at the end of hop n.
    place = env.ops("mod", env.ops("sub", env.ops("mul", at.abstime, 1 / hop), 1), HEARD_ROWS)
    is_running = spec.outputs[plane] in spec.running
    row = env.ops("floor", place) if is_running else place
    # A row more at each end repeats that of the other end.
    y = env.ops("mul", env.ops("add", row, 1.5), 1 / (HEARD_ROWS + 2))
    x = env.algebra.const(0.5)
    if args:
        x = env.ops("mul", env.ops("add", 0.0 if axis is None else axis, 0.5), 1 / args[0])
    found = picture(name, plane, x, y, call.span)
    if not is_running:
        return found
    passed = env.ops("mul", env.ops("sub", place, row), hop)
    if "bpm" not in spec.outputs:
        return env.ops("add", found, passed)
    bpm = picture(name, spec.outputs.index("bpm"), x, y, call.span)
    return env.ops("fract", env.ops("add", found, env.ops("mul", env.ops("mul", passed, bpm), 1 / 60)))


def heard_strand(call: Call, scope: Scope, resolver: Resolver) -> tuple[StrandRef, HeardStrand]:
    """What an analysis hears, and its name. Several analyses of a strand of the patch hear the same; anything else is
    heard by one alone."""
    value, _ = called_analysis(call, SOURCES[call.name])
    if scope.level >= 0 or scope.copies > 1 or scope.has_fixed:
        raise error("analysis-in-loop", f"{call.name} cannot stand in a loop", call.span,
                    "analyse the sound before the loop, and use the result in it")  # fmt: skip
    expression, place = value, scope
    while isinstance(expression, Name) and isinstance(found := place.get(expression.id), Closure):
        expression, place = found.value, found.scope
    read = expression.base if isinstance(expression, Access) else expression
    is_known = isinstance(expression, Access) and is_field(expression, place)
    group = None if is_known else resolver.group(read, place)
    if group is not None and group is not OPEN:
        at = group.place(expression.output) if isinstance(expression, Access) else 0 if len(group) == 1 else None
        member = None if at is None else group.members[at]
        if isinstance(member, StrandMember):
            ref = StrandRef(f"({member.ref.instance}.{member.ref.output})", "heard")
            return ref, HeardStrand(expression, place)
    ref = StrandRef(f"{scope.path.replace('@', '.')}/{call.name}#{resolver.ordinals.of(call)}", "heard")
    return ref, HeardStrand(value, scope.for_memory())
