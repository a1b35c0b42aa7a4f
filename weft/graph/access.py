"""What names and accesses (`name@output`) stand for, as values and as the targets of maps."""

from __future__ import annotations

from typing import TypeVar

from weft.errors import error
from weft.graph.evaluation import Evaluation
from weft.graph.fields import ALL_FIELDS, FIELDS, FIXED_FIELDS, Coordinates
from weft.graph.mistakes import check_field, no_output
from weft.graph.resolve import Resolver
from weft.graph.scope import Fixed, Group, Member, Opaque, Scope
from weft.keys import KEYS, MOUSE
from weft.syntax.ast import Access, Name

V = TypeVar("V")


def meant(e: Evaluation[V], node: Name | Access, scope: Scope, at: Coordinates[V]) -> Member:
    """What a name or an access stands for, at coordinates. Raises WeftError if there is no such thing, or several."""
    if isinstance(node, Access):
        return _accessed(e, node, scope, at)
    found = e.resolver.strand(node, scope)
    match found:
        case float():
            return Fixed(e.domain.const(found, node.span))
        case Group():
            return e.resolver.pick(found, scope, node.span)
        case _:
            return found


def _accessed(e: Evaluation[V], node: Access, scope: Scope, at: Coordinates[V]) -> Member:
    if isinstance(node.base, Name) and node.base.id not in scope.locals:
        match node.base.id:
            case "me":
                check_field("me", node, ALL_FIELDS)
                return Fixed(e.env.field(node.output, at))
            case "mouse":
                check_field("mouse", node, tuple(MOUSE))
                return Fixed(e.domain.uniform(f"mouse@{node.output}"))
            case "key":
                check_field("key", node, tuple(KEYS))
                return Fixed(e.domain.uniform(f"key@{node.output}"))
    if e.resolver.is_open(node.base, scope):
        return Opaque()
    group = _group(e.resolver, node, scope)
    if node.output in group.axes:
        return Fixed(at.axis(group.axes[node.output]) or e.domain.const(0.0))
    member = group.member(node.output)
    if member is None:
        raise no_output(node.base.span.text, node, tuple(n for n in group.names if n) + tuple(group.axes))
    return member


def _group(resolver: Resolver, node: Access, scope: Scope) -> Group:
    group = resolver.group(node.base, scope)
    if group is not None and any(group.names):
        return group
    raise error("no-outputs", f'this has no output "{node.output}", it is a single value', node.span,
                "outputs belong to instances and calls: name@output")  # fmt: skip


def map_target(resolver: Resolver, target: Access, scope: Scope) -> tuple[str, str]:
    """The field that a map names, and the base coordinate or axis that it moves."""
    owner = target.base.id if isinstance(target.base, Name) else ""
    if owner == "me":
        check_field("me", target, ALL_FIELDS)
        if target.output in FIXED_FIELDS:
            raise error("not-a-coordinate", f"me@{target.output} is the same everywhere, so it cannot be mapped",
                        target.span, "coordinates are x, y, time and what derives from them")  # fmt: skip
        return target.output, FIELDS[target.output].base if target.output in FIELDS else target.output
    if owner in ("mouse", "key"):
        raise error("not-a-coordinate", f"{owner}@{target.output} is the same everywhere, so it cannot be mapped",
                    target.span, "coordinates are x, y, time and what derives from them")  # fmt: skip
    group = resolver.group(target.base, scope)
    if group is None or target.output not in group.axes:
        raise error("not-a-coordinate", f"{target.span.text} is a strand, not a coordinate", target.span,
                    "a map moves a coordinate: me@x ~ …")  # fmt: skip
    return target.output, group.axes[target.output]
