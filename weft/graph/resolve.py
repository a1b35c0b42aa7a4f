"""Resolution: what names mean in the body of a spindle call. The call binds its locals, outputs and groups. Nothing is
evaluated here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from weft.errors import Span, error, steps_of
from weft.graph.bodies import Ordinals
from weft.graph.budget import Budget
from weft.graph.calls import bound_planes, is_heard, sizes_of, source_shape, split_size
from weft.graph.groups import GroupLookup
from weft.graph.lookup import assigned_value, check_bound, check_copies, in_library, no_member
from weft.graph.patch import Broadcast, Patch
from weft.graph.scope import (
    OPEN, Bindings, Closure, Local, LoopResult, Member, Opaque, Scope, SourceMember, SpindleBody, StrandGroup, as_local,
    as_member, count_hint, strands
)
from weft.sources import SOURCES, SourceSpec
from weft.syntax.ast import (
    Access, Assignment, Binary, BodyStatement, Call, CallBinding, Expression, For, Ident, If, Name, Number,
    OutAssignment, SpindleDefinition, SpindleParameter, Unary, Walkable, children
)

# The deepest nesting of spindle calls.
MAX_CALL_DEPTH = 256

# The Python calls for each of these levels, if the body of each spindle binds the outputs of a call to the next.
_FRAMES_PER_CALL = 12

# The most expressions that are looked at to classify an argument, which may be made of other arguments, and so on.
_MOST_LOOKED_AT = 32

# Kinds of arguments. No text can contain these words.
_OPEN, _UNKNOWN, _DEFAULT = "\0open", "\0unknown", "\0default"

# The steps of the budget for a body and for each statement in it, in addition to their evaluation.
_STEPS_OF_A_BODY = 20
_STEPS_OF_A_LOCAL = 6


class _Inspection(NamedTuple):
    """What is found by looking at an argument and at everything that it is made of: how many expressions were
    `looked_at`; whether it contains a strand about which nothing is known; whether all of it was looked at; and whether
    it means the same everywhere."""

    looked_at: int
    is_open: bool = False
    is_whole: bool = False
    is_closed: bool = False


class Resolver(GroupLookup):
    """Names, groups and the bodies of spindle calls of one patch. A body is built once for each call and scope."""

    def __init__(
        self, patch: Patch, budget: Budget, constant: Callable[[Expression, Scope], float | None]
    ) -> None:
        super().__init__(patch, budget, constant)
        self._bodies: dict[tuple[Call, Scope], Scope] = {}
        self._open_bodies: dict[Hashable, Scope] = {}
        self._loop_shapes: dict[tuple[For, Scope], dict[str, StrandGroup | None]] = {}
        self._named: dict[tuple[Expression, Scope], tuple[Expression, Scope]] = {}
        self._looks: dict[tuple[Expression, Scope], _Inspection] = {}

    def retain(self, patch: Patch, budget: Budget) -> None:
        super().retain(patch, budget)
        self._open_bodies.clear()
        self._looks.clear()
        self._named.clear()

    def body(
        self, call: Call, spindle: SpindleDefinition, values: Sequence[Expression | None], scope: Scope
    ) -> Scope:
        """The scope at the end of a spindle's body, with its outputs among the locals, for one call with these
        arguments."""
        key = (call, scope)
        if key in self._bodies:
            return self._bodies[key]
        shared = self._sharing_key(spindle, values, scope)
        body = self._open_bodies.get(shared)
        if body is None:
            scopes = [scope] * len(values)
            if scope.broadcast is not None:
                takes = self.ordinals.takes_bundles(spindle)
                scopes = [
                    self._scope_of_argument(value, scope, whole) for value, whole in zip(values, takes, strict=True)
                ]
            closures = [
                None if value is None else Closure(value, place) for value, place in zip(values, scopes, strict=True)
            ]
            path = f"{scope.path}/{spindle.name.name}#{self.ordinals.of(call)}"
            self._budget.spend(_STEPS_OF_A_BODY)
            body = self.enter(spindle, closures, scope, path, call.span)
            if shared is not None:
                self._open_bodies[shared] = body
        self._bodies[key] = body
        return body

    def _scope_of_argument(self, value: Expression | None, scope: Scope, takes_bundle: bool) -> Scope:
        """The scope of an argument, in a call for one of several names or members. A part that is the same for all
        members of a bundle is evaluated once."""
        if takes_bundle:
            return scope.whole or scope.broadcast_over(None)
        is_same = scope.whole is not None and value is not None and self.several(value, scope.whole) is None
        return scope.whole if is_same and scope.whole else scope

    def _sharing_key(
        self, spindle: SpindleDefinition, values: Iterable[Expression | None], scope: Scope
    ) -> Hashable | None:
        """A key that is equal for calls that can share one body. There are such calls only when a spindle is checked
        without being called, so that its arguments are unknown. None for all other calls."""
        kinds = tuple(_DEFAULT if value is None else self._kind_of(value, scope) for value in values)
        if _OPEN not in kinds and _UNKNOWN not in kinds:
            return None
        if None in kinds or scope.broadcast is not None or self.ordinals.facts(spindle.body).is_recursive:
            return None
        return spindle, kinds, scope.level, scope.varying, scope.copies

    def _kind_of(self, value: Expression, scope: Scope) -> str | None:
        """The kind of an argument: `_OPEN`; `_UNKNOWN` for a number made of open ones; its text if that means the same
        everywhere; None for anything else, or if finding out takes too long."""
        group = self.group(value, scope)
        if group is OPEN:
            return _OPEN
        value, scope = self._behind_names(value, scope)
        look = self._looks.get((value, scope)) or self._looks.setdefault((value, scope), self._look(value, scope))
        self._budget.spend_singly(min(look.looked_at, _MOST_LOOKED_AT))
        if look.is_open:
            return _UNKNOWN if group is None else None
        return f"{value.span.text}\0{in_library(scope)}" if look.is_closed else None

    def _behind_names(self, value: Expression, scope: Scope) -> tuple[Expression, Scope]:
        """The expression that a name refers to, through arguments and locals. The argument of a call may be that of the
        call around it, and so on; each is followed once."""
        asked = value, scope
        while isinstance(value, Name) and isinstance(local := scope.get(value.id), Closure):
            value, scope = self._named.get((local.value, local.scope), (local.value, local.scope))
        if isinstance(asked[0], Name):
            self._named[asked] = value, scope
        return value, scope

    def _look(self, value: Expression, scope: Scope) -> _Inspection:
        """What an expression is made of. Results for the expressions that its names refer to are used again, because
        arguments are made of the arguments of the calls around them."""
        waiting: list[tuple[Walkable, Scope]] = [(value, scope)]
        is_closed, count = True, 0
        while waiting and count < _MOST_LOOKED_AT:
            node, within = waiting.pop()
            count += 1
            match node:
                case Name(id=name):
                    local = within.get(name)
                    if local is None:
                        continue
                    is_closed = False
                    if isinstance(local, Opaque):
                        return _Inspection(count, is_open=True)
                    if not isinstance(local, Closure):
                        return _Inspection(count)
                    known = self._looks.get((local.value, local.scope))
                    if known is None:
                        waiting.append((local.value, local.scope))
                        continue
                    count += known.looked_at
                    if known.is_open and count <= _MOST_LOOKED_AT:
                        return _Inspection(count, is_open=True)
                    if not known.is_whole:
                        return _Inspection(count)
                case Binary(left=left, right=right):
                    waiting += [(left, within), (right, within)]
                case Number() | Access(base=Name(id="me" | "mouse" | "key")):
                    pass
                case Call():
                    if self.called(node, within) != "builtin":
                        return _Inspection(count)
                    waiting += [(argument.value, within) for argument in node.args]
                case Unary() | If():
                    waiting += [(operand, within) for operand in children(node)]
                case _:
                    return _Inspection(count)
        is_whole = not waiting and count < _MOST_LOOKED_AT
        return _Inspection(count, is_whole=is_whole, is_closed=is_whole and is_closed)

    def enter(
        self, spindle: SpindleDefinition, arguments: Iterable[Local | None], scope: Scope, path: str, span: Span,
        seen: Callable[[BodyStatement, Scope], None] | None = None,
    ) -> Scope:  # fmt: skip
        """Goes through a spindle's body with the given arguments, None for those that have their default. Nothing is
        evaluated. `seen` is called with each statement and the scope after it."""
        if len(scope.chain) >= MAX_CALL_DEPTH:
            raise error("too-deep", f"spindle calls are nested more than {MAX_CALL_DEPTH} deep here", span,
                        "let one spindle call several others instead of each the next")  # fmt: skip
        if spindle in scope.chain:
            names = [s.name.name for s in scope.chain[scope.chain.index(spindle) :]] + [spindle.name.name]
            raise error("recursion", f"a spindle cannot call itself: {steps_of(names)}", span,
                        "use a loop, or prev() for what grows over time")  # fmt: skip
        self.ordinals.number(spindle)
        chain = (*scope.chain, spindle)
        parameters: dict[str, Local] = {}
        for parameter, given in zip(spindle.parameters, arguments, strict=True):
            argument = given
            if argument is None:
                head = Scope(path, level=scope.level, varying=scope.varying, chain=chain, copies=scope.copies)
                argument = self._default(parameter, head, parameters)
            parameters[parameter.name] = self._parameter(parameter, argument)
        body = SpindleBody(self.ordinals.assigned_in(spindle))
        inner = Scope(
            path, Bindings(None, parameters), len(parameters), scope.level, scope.varying, chain, body=body,
            copies=scope.copies,
        )  # fmt: skip
        limit = sys.getrecursionlimit()
        if len(chain) > 1:
            sys.setrecursionlimit(limit + _FRAMES_PER_CALL)
        try:
            for statement in spindle.body:
                self.spend_on_binding()
                inner = self._step(statement, inner)
                if seen is not None:
                    seen(statement, inner)
        finally:
            sys.setrecursionlimit(limit)
        body.end = inner
        self.settle(body, False)
        return inner

    def _default(self, parameter: SpindleParameter, head: Scope, earlier: Mapping[str, Local]) -> Closure:
        """The default of a parameter. It sees the names of the spindle's `head`."""
        if parameter.default is None:
            raise TypeError(f"{parameter.name} has no value")
        place = replace(head, path=f"{head.path}/{parameter.name}").inner(earlier)
        spindle = head.chain[-1]
        takes = self.ordinals.takes_bundles(spindle)[spindle.parameters.index(parameter)]
        if not takes and (bundle := self.several(parameter.default, place)) is not None:
            raise error("several-strands", f'this is {strands(bundle)}, and "{parameter.name}" takes one',
                        parameter.default.span, f"write {parameter.name}<a, b> = … to take a bundle")  # fmt: skip
        return Closure(parameter.default, place)

    def _parameter(self, parameter: SpindleParameter, argument: Local) -> Local:
        """What a parameter means in a call with this argument."""
        if parameter.members is None:
            return argument
        names = tuple(member.name for member in parameter.members)
        group = self.group(argument.value, argument.scope) if isinstance(argument, Closure) else None
        if group is OPEN or isinstance(argument, Opaque):
            return StrandGroup(names, (Opaque(),) * len(names))
        if group is None or len(group) == 1:
            only: Member = as_member(argument) if group is None else group.members[0]
            return StrandGroup(names, (only,) * len(names))
        if all(name in group.names for name in names):
            return replace(group, names=names, members=tuple(group.members[group.names.index(n)] for n in names))
        if len(group) < len(names):
            span = argument.value.span if isinstance(argument, Closure) else parameter.ident.span
            raise error("count-mismatch", f'this is {strands(group)}, and "{parameter.name}" takes {len(names)} '
                        f"({', '.join(names)})", span)  # fmt: skip
        return group.take(len(names), names)

    def spend_on_binding(self) -> None:
        """Spends the steps of one more local."""
        self._budget.spend(_STEPS_OF_A_LOCAL)

    def _step(self, statement: BodyStatement, scope: Scope) -> Scope:
        """The scope after one statement outside of loops."""
        match statement:
            case OutAssignment((output,), value):
                return scope.bind(output.name, Closure(value, scope, output.name))
            case OutAssignment(outputs, value):
                after = scope
                for output, local in zip(outputs, self._all_outputs(outputs, value, scope), strict=True):
                    after = after.bind(output.name, local)
                return after
            case Assignment(target, member=member) if member is not None:
                return scope.bind(target.name, self.with_member(statement, member, scope))
            case Assignment(Ident(name)):
                starts_at_0 = statement.op != "=" and scope.get(name) is None and any(
                    output.name == name for output in scope.chain[-1].outputs
                )  # fmt: skip
                return scope.bind(name, Closure(assigned_value(statement, starts_at_0), scope, name))
            case CallBinding():
                return scope.bind(statement.name.name, self.bound_call(statement, scope))
            case For():
                _check_bound_calls(statement, scope.names(), self.ordinals)
                after = scope
                for name, shape in self.loop_shapes(statement, scope).items():
                    results = [LoopResult(statement, scope, name, i) for i in range(len(shape or "1"))]
                    after = after.bind(name, as_local(results, shape))
                return after

    def _all_outputs(self, outputs: Sequence[Ident], value: Expression, scope: Scope) -> Sequence[Local]:
        """What `out = value` assigns to each output. Members are assigned by name if all outputs have a member of their
        name, otherwise by place. One strand is assigned to all."""
        names = [output.name for output in outputs]
        group = self.group(value, scope)
        if group is OPEN:
            return [Opaque()] * len(names)
        if group is None or len(group) == 1:
            return [Closure(value, scope)] * len(names)
        members = group.members
        if all(name in group.names for name in names):
            members = tuple(members[group.names.index(name)] for name in names)
        elif len(members) != len(names):
            raise error("count-mismatch", f"this is {strands(group)}, and {len(names)} are needed here "
                        f"({', '.join(names)})", value.span, count_hint(group, names, value.span))  # fmt: skip
        return [StrandGroup(("",), (member,)) for member in members]

    def loop_shapes(self, loop: For, scope: Scope) -> dict[str, StrandGroup | None]:
        """The shape of each name that a loop carries; None for one strand. A bundle has the same number of members in
        all steps, so the widest shape that any step gives is also that of the first one."""
        key = loop, scope
        if key not in self._loop_shapes:
            shapes: dict[str, StrandGroup | None] = {}
            for name in self.ordinals.carried(loop.body):
                known = scope.get(name) is not None
                shapes[name] = self._carried_shape(Name(name, loop.variable.span), scope) if known else None
            is_known = False
            while not is_known:
                is_known = True
                for name, (found, span) in self._step_shapes(loop, scope, shapes).items():
                    before = shapes[name]
                    if found is None or before is found or (before and len(before) == len(found)):
                        continue
                    if before and not found:
                        continue
                    if before:
                        raise error("count-mismatch", f'"{name}" has {len(before)} strands, and this step gives it '
                                    f"{len(found)}", span, "a loop carries as many in every step")  # fmt: skip
                    shapes[name], is_known = found, False
            self._loop_shapes[key] = shapes
        return self._loop_shapes[key]

    def with_member(self, statement: Assignment, member: Ident, scope: Scope) -> Local:
        """A local bundle after the assignment of one member."""
        name = Name(statement.name.name, statement.name.span)
        group = self.group(name, scope)
        if group is OPEN:
            return Opaque(takes_bundle=True)
        place = None if group is None else group.place(member.name)
        if group is None or place is None:
            raise no_member(group, Access(name, member.name, member.span, name.span.to(member.span)))
        members = list(group.members)
        members[place] = Closure(assigned_value(statement), scope, f"{name.id}_{member.name}")
        return replace(group, members=tuple(members))

    def _carried_shape(self, value: Expression, scope: Scope) -> StrandGroup | None:
        return self.several(value, scope) or self.open_shape(value, scope)

    def open_shape(self, value: Expression, scope: Scope) -> StrandGroup | None:
        """`OPEN` for an expression about which nothing is known, else None."""
        return OPEN if self.is_open(value, scope) else None

    def _step_shapes(
        self, loop: For, outside: Scope, shapes: Mapping[str, StrandGroup | None]
    ) -> dict[str, tuple[StrandGroup | None, Span]]:
        """The shape of each carried name after a step, and where it was assigned."""
        unknown = {name: as_local([Opaque()] * len(shape or "1"), shape) for name, shape in shapes.items()}
        scope = outside.inner({**unknown, loop.variable.name: Opaque()})
        found: dict[str, tuple[StrandGroup | None, Span]] = {}
        for statement in loop.body:
            match statement:
                case Assignment(name, member=member) if member is not None:
                    found[name.name] = self._carried_shape(Name(name.name, name.span), scope), name.span
                    scope = scope.bind(name.name, self.with_member(statement, member, scope))
                case Assignment(name):
                    value = assigned_value(statement)
                    found[name.name] = self._carried_shape(value, scope), value.span
                    scope = scope.bind(name.name, Closure(value, scope))
                case CallBinding(name=name):
                    scope = scope.bind(name.name, self.bound_call(statement, scope))
                case For():
                    for inner, shape in self.loop_shapes(statement, scope).items():
                        found[inner] = shape, statement.span
                        scope = scope.bind(inner, as_local([Opaque()] * len(shape or "1"), shape))
        return {name: each for name, each in found.items() if name in shapes}

    def bound_call(self, statement: CallBinding, scope: Scope) -> StrandGroup:
        """The strands that `f(x)::n<a, b>` binds inside a body."""
        value = statement.value
        outputs: Sequence[Ident] = statement.outputs
        if (source := self._source_called(value, scope)) is not None:
            outputs, sizes = split_size(source, outputs)
        names = [o.name for o in outputs]
        if statement.count is not None:
            check_copies(statement, self.patch.spindles)
            copies = tuple(
                Closure(statement.value, replace(scope, path=f"{scope.path}/{statement.name.name}@{n}",
                                                 broadcast=Broadcast(tuple(names), i)))
                for i, n in enumerate(names)
            )  # fmt: skip
            return StrandGroup(tuple(names), copies)
        if isinstance(value, Call) and value.name == "cache" and not self.is_remap(value, scope):
            group = self.cache_group(value, scope, f"{scope.path}/{statement.name.name}")
        else:
            width = len(names) if self.is_open(value, scope) else 1
            single = StrandGroup(tuple(names[:width]), (Closure(value, scope),) * width)
            group = self.group(value, scope) or single
        if source is not None and isinstance(value, Call):
            planes = bound_planes(value, source, group.names, outputs)
            shape = source_shape(value, source)[0]
            members = tuple(_output(group, plane) for plane in planes)
            positional = ("time",) if is_heard(planes, shape) else group.positional
            group = replace(
                group, members=members, positional=positional, sizes=sizes_of(value, source, sizes)
            )
        check_bound(outputs, len(group))
        return group.take(len(names), names)

    def _source_called(self, value: Expression, scope: Scope) -> SourceSpec | None:
        is_source = isinstance(value, Call) and self.called(value, scope) == "source"
        return SOURCES[value.name] if is_source and isinstance(value, Call) else None


def _check_bound_calls(loop: For, outside: Iterable[str], ordinals: Ordinals) -> None:
    """Raises WeftError for a bound call in a loop whose name is also used outside of the step. `outside` are the names
    that are known before it."""
    beyond = {*outside, *ordinals.carried(loop.body)}
    bound: set[str] = set()
    for statement in loop.body:
        match statement:
            case For():
                _check_bound_calls(statement, beyond | bound, ordinals)
            case CallBinding(name=name):
                if name.name in beyond:
                    raise error("group-in-loop", f'"{name.name}" comes from outside of this step, and what a call '
                                "is bound to belongs to one step", name.span,
                                "give it a name of its own here, or write name = …")  # fmt: skip
                bound.add(name.name)
            case _:
                pass


def _output(group: StrandGroup, plane: int) -> Member:
    """An output of a source. The sound of a film is no member of its bundle."""
    if plane < len(group):
        return group.members[plane]
    first = group.members[0]
    assert isinstance(first, SourceMember)
    return replace(first, plane=plane)
