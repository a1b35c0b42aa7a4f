"""Groups: what an instance, a remap or a call stands for, as the strands that it is."""

from __future__ import annotations

from dataclasses import replace

from weft.errors import Span, error
from weft.graph.patch import FromCache, FromSource, Instance
from weft.graph.scope import Group, Local, Member, PositionallyRemapped, Remapped, Scope, StrandMember
from weft.graph.source_calls import source_shape
from weft.names import StrandRef
from weft.syntax.ast import Call, Expression, Remap


def instance_group(instance: Instance) -> Group:
    """The outputs of an instance, with its own axes."""
    names = tuple(instance.outputs)
    members = tuple(StrandMember(StrandRef(instance.name, name)) for name in names)
    axes = {axis: f"{instance.name}@{axis}" for axis in instance.axes}
    first = next(iter(instance.outputs.values())).definition
    positional: tuple[str, ...] = ("x", "y", "time")
    if isinstance(first, FromSource):
        shape = source_shape(first.call, first.spec)[1]
        positional = tuple(axes.get(a, "time" if a == "abstime" else a) for a in shape)
    elif isinstance(first, FromCache):
        positional = tuple(axes.values())
    return Group(names, members, axes, positional)


def remapped(group: Group, wrapper: Remap | Call, scope: Scope) -> Group:
    """The strands of a group with other coordinates, as a remap or a positional one written in `scope` gives them."""
    match wrapper:
        case Remap(_, maps, _):
            members: tuple[Member, ...] = tuple(Remapped(m, maps, scope) for m in group.members)
        case Call():
            axes = positional_axes(wrapper, group.positional)
            members = tuple(PositionallyRemapped(m, axes, wrapper.span, scope) for m in group.members)
    return replace(group, members=members)


def positional_axes(call: Call, axes: tuple[str, ...]) -> tuple[tuple[str, Expression], ...]:
    """The coordinate that each argument of a positional remap maps. Raises WeftError for too many or labelled ones."""
    for position, arg in enumerate(call.args):
        if arg.label is not None:
            raise error("label-in-remap", "a positional remap takes no labels", arg.label_span or arg.span,
                        f"write me@{arg.label} ~ …" if arg.label in ("x", "y", "time") else None)  # fmt: skip
        if position >= len(axes):
            shown = ", ".join(axes) if axes else "no coordinates"
            raise error("too-many-arguments", f"this can be remapped over {shown}, and this is one more", arg.span,
                        "to call something, check its name; to remap a certain coordinate, write me@x ~ …")  # fmt: skip
    return tuple((axis, arg.value) for axis, arg in zip(axes, call.args, strict=False))


def as_member(local: Local) -> Member:
    """A local that is known to be one strand."""
    if isinstance(local, Group):
        raise TypeError("an output of a spindle is a strand")
    return local


def strands(group: Group) -> str:
    """A group in the words of a message."""
    return f"{len(group)} strands ({', '.join(name or '…' for name in group.names)})"


def pick_hint(span: Span, group: Group) -> str:
    """How to take one strand of the group that stands at a place."""
    name = span.text if span.text.isidentifier() else None
    if name and group.names[0]:
        return f"take one of them: {name}@{group.names[0]}"
    return "take one of them with [0]"
