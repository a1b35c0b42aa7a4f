"""Name resolution: what every name in a text refers to, which expressions are several strands at once, and a number for
every stateful call. Nothing is evaluated here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import NamedTuple, TypeAlias

from weft.errors import Span, WeftError, did_you_mean, error, steps_of
from weft.graph.budget import Budget
from weft.graph.domain import ALL_FIELDS, BASES, FIELDS, FIXED_FIELDS, Coordinate, Field
from weft.graph.nodes import Broadcast, Patch
from weft.graph.partition import components
from weft.graph.scope import (
    Bindings, CacheMember, Closure, Local, LoopResult, Member, Opaque, Scope, SourceMember, SpindleBody, StrandGroup,
    as_member, bound_planes, instance_group, match_arguments, pick_hint, remapped, source_coordinates, source_shape,
    strands
)
from weft.keys import KEYS, MOUSE
from weft.names import StrandRef
from weft.ops import BUILTINS, CONSTANTS, STATE, Param, ieee
from weft.sources import SOURCES
from weft.syntax.ast import (
    Access, Assignment, Binary, BodyStatement, Bundle, Call, CallBinding, Expression, For, If, Index, Map, Name, Number,
    Remap, SpindleDefinition, Unary, Walkable, children, literal_number, walk
)

# --- facts about the syntax of bodies ---


class Ordinals:
    """Numbers the calls of each callee within each definition, in the order of the text. State is found again after an
    edit by these numbers, so they must not depend on anything outside of the definition."""

    def __init__(self, patch: Patch) -> None:
        self._patch = patch
        self._numbers: dict[Call, int] = {}
        self._facts: dict[tuple[BodyStatement, ...], BodyFacts] = {}
        self._carried: dict[tuple[BodyStatement, ...], list[str]] = {}
        self._numbered: set[SpindleDefinition] = set()
        outputs = (output for instance in patch.instances.values() for output in instance.outputs.values())
        # Several outputs may share one expression.
        for value in dict.fromkeys(output.value for output in outputs):
            if value is not None:
                self._number([value])
        for sink in patch.sinks:
            self._number(a.value for a in sink.statement.args)

    def number(self, spindle: SpindleDefinition) -> None:
        """Numbers the calls in the body of a spindle when it is first entered: a patch enters few of a library's
        spindles."""
        if spindle not in self._numbered:
            self._number(spindle.body)
            self._numbered.add(spindle)

    def _number(self, roots: Iterable[Expression | BodyStatement]) -> None:
        seen: dict[str, int] = {}
        for root in roots:
            for node in walk(root):
                if isinstance(node, Call) and isinstance(node.callee, Name):
                    name = node.callee.id
                    self._numbers[node] = number = seen.get(name, 0)
                    seen[name] = number + 1

    def of(self, call: Call) -> int:
        """The number of calls of the same name before this one in its definition."""
        return self._numbers[call]

    def assigned(self, body: Iterable[BodyStatement], with_groups: bool = True) -> list[str]:
        """Every name that a body assigns, loops included, each once."""
        names: dict[str, None] = {}
        for statement in body:
            match statement:
                case For():
                    names.update(dict.fromkeys(self.assigned(statement.body, with_groups)))
                case CallBinding() | Assignment(value=Bundle()) if not with_groups:
                    pass
                case _:
                    names[statement.name.name] = None
        return list(names)

    def carried(self, body: tuple[BodyStatement, ...]) -> list[str]:
        """The names whose values a loop carries from step to step; bundles and bound calls belong to one step."""
        known = self._carried.get(body)
        return self._carried.setdefault(body, self.assigned(body, with_groups=False)) if known is None else known

    def facts(self, body: tuple[BodyStatement, ...]) -> BodyFacts:
        """What is known of a body and everything that it calls."""
        if body not in self._facts:
            bodies: dict[tuple[BodyStatement, ...], list[tuple[BodyStatement, ...]]] = {}
            waiting = [body]
            while waiting:
                found = waiting.pop()
                if found not in bodies and found not in self._facts:
                    calls = (node for statement in found for node in walk(statement) if isinstance(node, Call))
                    called = (self._spindle(call, found) for call in calls)
                    bodies[found] = list(dict.fromkeys(spindle.body for spindle in called if spindle is not None))
                    waiting += bodies[found]
            # What a body calls comes before it.
            for cycle in components(bodies, bodies):
                for each in (body for body in cycle if body in bodies):
                    self._facts[each] = self._measured(each, len(cycle) > 1 or each in bodies[each])
        return self._facts[body]

    def _spindle(self, call: Call, body: tuple[BodyStatement, ...]) -> SpindleDefinition | None:
        """The spindle that a call in a body reaches, if it is one."""
        spindle = self._patch.spindles.get(call.name)
        # Inside a spindle that has the name of a builtin, that name means the builtin.
        if spindle is not None and spindle.body is body and (call.name in BUILTINS or call.name in STATE):
            return None
        return spindle

    def _measured(self, body: tuple[BodyStatement, ...], is_recursive: bool) -> BodyFacts:
        size, has_state = 0, False
        # Each node with the number of times that it runs.
        waiting: list[tuple[Walkable, int]] = [(statement, 1) for statement in body]
        while waiting:
            node, times = waiting.pop()
            if isinstance(node, For):
                waiting += [(node.first, times), (node.last, times)]
                first, last = literal_number(node.first), literal_number(node.last)
                steps = 1 if first is None or last is None else int(min(ieee.steps(first, last), _HUGE))
                times = min(times * steps, _HUGE)
                size += times * STEP_SIZE
                waiting += [(statement, times) for statement in node.body]
                continue
            waiting += [(child, times) for child in children(node)]
            if isinstance(node, Call) and isinstance(node.callee, Name):
                spindle = self._spindle(node, body)
                row = BUILTINS.get(node.callee.id) if spindle is None else None
                known = self._facts.get(spindle.body) if spindle is not None else None
                has_state = has_state or (spindle is None and node.callee.id in STATE)
                if known is not None:
                    size += times * known.size
                    has_state = has_state or known.has_state
                elif row is not None and row.expand is not None:
                    size += times * row.cost
            if isinstance(node, _OPERATIONS):
                size += times
        return BodyFacts(min(size, _HUGE), has_state, is_recursive)


# A compile needs them once for the graph and once for each subgraph, and several compiles may run at the same time.
_ordinals_of = lru_cache(maxsize=4)(Ordinals)


class BodyFacts(NamedTuple):
    """What is known of a body and everything that it calls, judged by names. `size` is the approximate number of
    operations in one run; a loop is counted with its number of steps if its ends are literals, otherwise once."""

    size: int
    has_state: bool
    is_recursive: bool


STEP_SIZE = 8
"""The operations that a step of a loop takes, besides its statements."""

_HUGE = 10**9
_OPERATIONS = (Binary, Unary, If, Index, Remap, Call, Assignment)


# --- names, groups and bodies ---

RESERVED = {
    "me": "a coordinate is read as me@x",
    "mouse": "the mouse is read as mouse@x",
    "key": "a key is read as key@space",
}

MAX_COPIES = 64

# The comparisons of unknown names with known ones in one patch. They take some 0.1 s.
_MOST_COMPARED = 100_000

# The deepest nesting of spindle calls.
MAX_CALL_DEPTH = 256

# Python calls for each of these levels, if the outputs of a call are bound in the body of the next.
_FRAMES_PER_CALL = 12

# The most expressions that are looked at to classify an argument: it may be made of other arguments, and so on.
_MOST_LOOKED_AT = 32

# Kinds of arguments; neither can occur in a text.
_OPEN, _UNKNOWN = "\0open", "\0unknown"

# What a body and each statement in it take of the budget, besides their evaluation.
_STEPS_OF_A_BODY = 20
_STEPS_OF_A_LOCAL = 6


class Resolver:
    """Names, groups and the bodies of spindle calls of one patch. A body is built once for each call and scope."""

    def __init__(self, patch: Patch, budget: Budget) -> None:
        self.patch = patch
        self._budget = budget
        self.ordinals = _ordinals_of(patch)
        self._bodies: dict[tuple[Call, Scope], Scope] = {}
        self._bundles: dict[tuple[Bundle, Scope], StrandGroup] = {}
        self._open_bodies: dict[Hashable, Scope] = {}
        self._instances: dict[str, StrandGroup] = {}
        self._suggested: dict[tuple[str, SpindleDefinition | None], str | None] = {}
        self._compared = 0

    # --- names ----------------------------------------------------------------------------------------------------

    def strand(self, name: Name, scope: Scope) -> Local | float:
        """The meaning of a name in the place of a strand: a local, an instance's group, or a constant."""
        local = scope.get(name.id)
        if local is not None:
            return local
        if scope.is_assigned_later(name.id):
            hint = "statements run from top to bottom"
            end = None if scope.body is None else scope.body.end
            if end is None or end.get(name.id) is not None:  # not a group in one step of a loop
                hint += f"; prev({name.id}) reads what it was a tick ago"
            raise error("read-before-assignment", f'"{name.id}" is read here before it is assigned', name.span, hint)
        if name.id in self.patch.instances and not _in_library(scope):
            return self.instance(name.id)
        if name.id in CONSTANTS:
            return CONSTANTS[name.id]
        raise self._unknown_strand(name, scope)

    def _unknown_strand(self, name: Name, scope: Scope) -> Exception:
        if name.id in RESERVED:
            return error("incomplete-name", f'"{name.id}" needs a field', name.span, RESERVED[name.id])
        if self.callable_named(name.id, scope):
            return error("call-without-arguments", f'"{name.id}" is a call and needs its arguments', name.span,
                         f"write {name.id}(…)")  # fmt: skip
        known = chain(scope.names(), self.patch.instances, CONSTANTS)
        return error("unknown-strand", f'there is no strand "{name.id}"', name.span, self._near(name.id, known, scope))

    def _check_callee(self, callee: Expression, scope: Scope) -> None:
        """Raises WeftError for a call of an unknown name."""
        if not isinstance(callee, Name) or scope.get(callee.id) is not None or scope.is_assigned_later(callee.id):
            return
        if callee.id in self.patch.instances or callee.id in CONSTANTS:
            return
        if callee.id in RESERVED:
            raise error("incomplete-name", f'"{callee.id}" needs a field', callee.span, RESERVED[callee.id])
        known = chain(self.patch.spindles, BUILTINS, STATE, SOURCES, scope.names(), self.patch.instances)
        raise error("unknown-call", f'there is no spindle or builtin "{callee.id}"', callee.span,
                    self._near(callee.id, known, scope))  # fmt: skip

    def _near(self, name: str, known: Iterable[str], scope: Scope) -> str | None:
        """A hint with the name that was probably meant. Each unknown name is compared once in each spindle, and only
        until the patch has used up its comparisons: of many mistakes, the first get a hint."""
        place = (name, scope.chain[-1] if scope.chain else None)
        if place not in self._suggested and self._compared < _MOST_COMPARED:
            names = list(known)
            self._compared += len(names)
            self._suggested[place] = did_you_mean(name, names)
        return self._suggested.get(place)

    def instance(self, name: str) -> StrandGroup:
        """The group of an instance of the patch."""
        if name not in self._instances:
            self._instances[name] = instance_group(self.patch.instances[name])
        return self._instances[name]

    def callable_named(self, name: str, scope: Scope) -> SpindleDefinition | str | None:
        """What a call of this name reaches: a spindle, or `builtin`, `state`, `source`; None if none of these. Inside a
        spindle that has the name of a builtin, that name means the builtin. So it does everywhere in the library, which
        was written without knowing the patch."""
        spindle = self.patch.spindles.get(name)
        inside = bool(scope.chain) and scope.chain[-1] is spindle
        if spindle is not None and not inside and (spindle.span.source.library or not _in_library(scope)):
            return spindle
        kind = "builtin" if name in BUILTINS else "state" if name in STATE else "source" if name in SOURCES else None
        return kind or spindle

    def called(self, call: Call, scope: Scope) -> SpindleDefinition | str | None:
        """What a call without `~` reaches; None if it is a positional remap of a strand."""
        if not isinstance(call.callee, Name):
            return None
        name = call.callee.id
        is_local = scope.get(name) is not None and not scope.is_assigned_later(name)
        return None if is_local else self.callable_named(name, scope)

    def is_remap(self, call: Call, scope: Scope) -> bool:
        """Whether a call without `~` remaps a strand by position."""
        return self.called(call, scope) is None

    # --- groups ---------------------------------------------------------------------------------------------------

    def group(self, expression: Expression, scope: Scope) -> StrandGroup | None:
        """The strands that an expression stands for, if it can stand for several: a name, a call, a bundle, or a remap
        of these. Raises WeftError for unknown names."""
        wrappers: list[tuple[Remap | Call, Scope]] = []
        group: StrandGroup | None = None
        while group is None:
            self._budget.spend(1)
            match expression:
                case Remap():
                    wrappers.append((expression, scope))
                    expression = expression.base
                case Call() if self.is_remap(expression, scope):
                    self._check_callee(expression.callee, scope)
                    wrappers.append((expression, scope))
                    expression = expression.callee
                case Call():
                    group = self._call_group(expression, scope)
                    break
                case Bundle(items):
                    if (expression, scope) not in self._bundles:
                        members = tuple(Closure(item, scope.broadcast_over(None)) for item in items)
                        self._bundles[expression, scope] = StrandGroup(("",) * len(members), members)
                    group = self._bundles[expression, scope]
                case Name():
                    match self.strand(expression, scope):
                        case Closure() as closure:
                            expression, scope = closure.value, closure.scope
                        case StrandGroup() as group:
                            pass
                        case _:
                            return None
                case _:
                    return None
        for wrapper, written_in in reversed(wrappers):
            group = group and remapped(group, wrapper, written_in)
        return group

    def _call_group(self, call: Call, scope: Scope) -> StrandGroup | None:
        name = call.name
        match self.callable_named(name, scope):
            case SpindleDefinition() as spindle:
                body = self.body(call, spindle, scope)
                names = tuple(o.name for o in spindle.outputs)
                return StrandGroup(names, tuple(as_member(body.get(name)) for name in names))
            case "source":
                outputs, axes = source_shape(call, SOURCES[name])
                owner = f"{scope.path}/{name}#{self.ordinals.of(call)}"
                own = {"k": StrandRef(owner, "k")} if "k" in axes else {}
                sources = tuple(SourceMember(call, output, plane) for plane, output in enumerate(outputs))
                return StrandGroup(outputs, sources, own, source_coordinates(axes, own))
            case "state" if name == "cache":
                raise unnamed_cache(call)
            case _:
                return None

    def spread_shape(self, expression: Expression, scope: Scope) -> StrandGroup | None:
        """The first group of several strands that an expression would be spread over: `img` in `img * 0.5`."""
        waiting: list[tuple[Walkable, Scope]] = [(expression, scope)]
        while waiting:
            self._budget.spend(1)
            node, scope = waiting.pop()
            match node:
                case Unary() | Binary() | If():
                    waiting += [(operand, scope) for operand in reversed(children(node))]
                case Name() | Remap() | Call() | Bundle():
                    group = self.group(node, scope)
                    if group is not None and len(group) > 1:
                        return group
                    if group is None and isinstance(node, Call) and not self.is_remap(node, scope):
                        # The arguments of a builtin are spread.
                        if self.called(node, scope) == "state" and STATE[node.name].breaks_cycle:
                            scope = scope.for_memory()
                        waiting += [(argument.value, scope) for argument in reversed(node.args)]
                case _:
                    pass
        return None

    def pick(self, group: StrandGroup, scope: Scope, span: Span) -> Member:
        """The one strand that a group means in a scalar place: its only one, or the one at the current place of a
        spread."""
        if len(group) == 1:
            return group.members[0]
        broadcast = scope.broadcast
        if broadcast is None or len(broadcast.names) == 1:
            raise error("several-strands", f"this is {strands(group)}, and one is needed here", span,
                        pick_hint(span, group))  # fmt: skip
        if all(name in group.names for name in broadcast.names):
            return group.members[group.names.index(broadcast.names[broadcast.index])]
        if len(group) == len(broadcast.names):
            return group.members[broadcast.index]
        raise error("count-mismatch", f"this is {strands(group)}, and {len(broadcast.names)} are needed here "
                    f"({', '.join(broadcast.names)})", span, "give as many outputs as there are strands, or "
                    + pick_hint(span, group))  # fmt: skip

    def index_range(self, expression: Expression, scope: Scope) -> tuple[StrandGroup, list[Broadcast] | None]:
        """The strands that an index picks from: a group, or the places that an expression can be spread over."""
        group = self.group(expression, scope)
        if group is not None:
            return group, None
        shape = self.spread_shape(expression, scope)
        if shape is None:
            raise error("not-several", "only a bundle, an instance or a call can be indexed", expression.span)
        names = tuple(n or str(i) for i, n in enumerate(shape.names))
        return shape, [Broadcast(names, i) for i in range(len(shape))]

    def positional(self, expression: Expression, scope: Scope) -> tuple[Coordinate, ...]:
        """The coordinates that a positional remap of an expression maps, in order: a source has axes of its own."""
        while isinstance(expression, Remap | Index | Access):
            expression = expression.base
        is_field = isinstance(expression, Name) and expression.id in RESERVED
        group = None if is_field else self.group(expression, scope)
        return ("x", "y", "time") if group is None else group.positional

    def is_open(self, expression: Expression, scope: Scope) -> bool:
        """Whether nothing is known about an expression, not even its number of strands: it is the argument of a spindle
        that is never called, or a remap of it."""
        while True:
            match expression:
                case Remap():
                    expression = expression.base
                case Call() if self.is_remap(expression, scope):
                    expression = expression.callee
                case Name(id=name):
                    local = scope.get(name)
                    if not isinstance(local, Closure):
                        return isinstance(local, Opaque)
                    expression, scope = local.value, local.scope
                case _:
                    return False

    # --- spindles -------------------------------------------------------------------------------------------------

    def body(self, call: Call, spindle: SpindleDefinition, scope: Scope) -> Scope:
        """The scope at the end of a spindle's body, with its outputs among the locals, for one call."""
        key = (call, scope)
        if key in self._bodies:
            return self._bodies[key]
        params = [Param(p.name) for p in spindle.parameters]
        values = match_arguments(spindle.name.name, params, call.args, call.span)
        shared = self._sharing_key(spindle, values, scope)
        body = self._open_bodies.get(shared)
        if body is None:
            closures = [Closure(value, scope) for value in values if value is not None]
            path = f"{scope.path}/{spindle.name.name}#{self.ordinals.of(call)}"
            with self._budget.within(call.span, "call"):
                self._budget.spend(_STEPS_OF_A_BODY)
                body = self.enter(spindle, closures, scope, path, call.span)
            if shared is not None:
                self._open_bodies[shared] = body
        self._bodies[key] = body
        return body

    def _sharing_key(
        self, spindle: SpindleDefinition, values: Iterable[Expression | None], scope: Scope
    ) -> Hashable | None:
        """A key that is equal for calls with unknown arguments that can share one body. Such calls are made when a
        spindle is checked without being called. None for other calls."""
        kinds = tuple(self._kind_of(value, scope) for value in values if value is not None)
        if _OPEN not in kinds and _UNKNOWN not in kinds:
            return None
        if None in kinds or scope.broadcast is not None or self.ordinals.facts(spindle.body).is_recursive:
            return None
        return spindle, kinds, scope.level, scope.varying, scope.copies

    def _kind_of(self, value: Expression, scope: Scope) -> str | None:
        """The kind of an argument: `_OPEN`, `_UNKNOWN` for a number made of open ones, or its text if that means the
        same everywhere; None for anything else, or if it takes too long to find out."""
        if self.is_open(value, scope):
            return _OPEN
        while isinstance(value, Name) and isinstance(local := scope.get(value.id), Closure):
            value, scope = local.value, local.scope
        waiting: list[tuple[Walkable, Scope]] = [(value, scope)]
        is_closed, is_number = True, isinstance(value, _NUMBERS)
        for _ in range(_MOST_LOOKED_AT):
            if not waiting:
                return f"{value.span.text}\0{_in_library(scope)}" if is_closed else None
            self._budget.spend(1)
            node, within = waiting.pop()
            match node:
                case Name(id=name):
                    local = within.get(name)
                    is_closed = is_closed and local is None
                    match local:
                        case Opaque():
                            return _UNKNOWN if is_number else None
                        case Closure():
                            waiting.append((local.value, local.scope))
                        case None:
                            pass
                        case _:
                            return None
                case Call():
                    if self.called(node, within) != "builtin":
                        return None
                    waiting += [(argument.value, within) for argument in node.args]
                case Number() | Access(base=Name(id="me" | "mouse" | "key")):
                    pass
                case Binary(left=left, right=right):
                    waiting += [(left, within), (right, within)]
                case Unary() | If():
                    waiting += [(operand, within) for operand in children(node)]
                case _:
                    return None
        return None

    def enter(
        self, spindle: SpindleDefinition, arguments: Iterable[Local], scope: Scope, path: str, span: Span,
        seen: Callable[[BodyStatement, Scope], None] | None = None,
    ) -> Scope:  # fmt: skip
        """Runs through a spindle's body with the given arguments, without evaluating anything. `seen` is called with
        every statement and the scope after it."""
        if len(scope.chain) >= MAX_CALL_DEPTH:
            raise error("too-deep", f"spindle calls are nested more than {MAX_CALL_DEPTH} deep here", span,
                        "let one spindle call several others instead of each the next")  # fmt: skip
        if spindle in scope.chain:
            names = [s.name.name for s in scope.chain[scope.chain.index(spindle) :]] + [spindle.name.name]
            raise error("recursion", f"a spindle cannot call itself: {steps_of(names)}", span,
                        "use a loop, or prev() for what grows over time")  # fmt: skip
        self.ordinals.number(spindle)
        parameters = {p.name: a for p, a in zip(spindle.parameters, arguments, strict=True)}
        body, chain = SpindleBody(frozenset(self.ordinals.assigned(spindle.body))), (*scope.chain, spindle)
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
        return inner

    def spend_on_binding(self) -> None:
        """Spends the steps of one more local."""
        self._budget.spend(_STEPS_OF_A_LOCAL)

    def _step(self, statement: Assignment | CallBinding | For, scope: Scope) -> Scope:
        """The scope after one statement outside of loops."""
        match statement:
            case Assignment():
                return scope.bind(statement.name.name, Closure(assigned_value(statement), scope, statement.name.name))
            case CallBinding():
                return scope.bind(statement.name.name, self.bound_call(statement, scope))
            case For():
                self._check_groups(statement, scope.names())
                after = scope
                for name in self.ordinals.carried(statement.body):
                    after = after.bind(name, LoopResult(statement, scope, name))
                return after

    def _check_groups(self, loop: For, outside: Iterable[str]) -> None:
        """Raises WeftError for a bundle or bound call in a loop whose name is also used outside of the step."""
        beyond = {*outside, *self.ordinals.carried(loop.body)}
        bound: set[str] = set()
        for statement in loop.body:
            match statement:
                case For():
                    self._check_groups(statement, beyond | bound)
                case Assignment(name=name, op="=", value=Bundle()) | CallBinding(name=name):
                    if name.name in beyond:
                        raise error("group-in-loop", f'"{name.name}" comes from outside of this step, and a loop '
                                    "carries only numbers from step to step", name.span,
                                    "give it a name of its own here")  # fmt: skip
                    bound.add(name.name)
                case _:
                    pass

    def bound_call(self, statement: CallBinding, scope: Scope) -> StrandGroup:
        """The strands that `f(x)::n<a, b>` binds inside a body."""
        names = [o.name for o in statement.outputs]
        if statement.count is not None:
            check_copies(statement, self.patch.spindles)
            copies = tuple(
                Closure(statement.value, replace(scope, path=f"{scope.path}/{statement.name.name}@{n}",
                                                 broadcast=Broadcast(tuple(names), i)))
                for i, n in enumerate(names)
            )  # fmt: skip
            return StrandGroup(tuple(names), copies)
        value = statement.value
        if isinstance(value, Call) and value.name == "cache" and not self.is_remap(value, scope):
            group = self.cache_group(value, scope, f"{scope.path}/{statement.name.name}")
        else:
            width = len(names) if self.is_open(value, scope) else 1
            single = StrandGroup(tuple(names[:width]), (Closure(value, scope),) * width)
            group = self.group(value, scope) or single
        if isinstance(value, Call) and self.called(value, scope) == "source":
            planes = bound_planes(SOURCES[value.name], group.names, statement.outputs)
            group = replace(group, members=tuple(group.members[plane] for plane in planes if plane < len(group)))
        check_bound(statement, len(group))
        return group.take(len(names), names)

    def cache_group(self, call: Call, scope: Scope, owner: str) -> StrandGroup:
        """The outputs of `cache(instance, n)`, whose axis belongs to `owner`."""
        matched = match_arguments("cache", STATE["cache"].params, call.args, call.span)
        instance, _ = (argument for argument in matched if argument is not None)
        shape = self.group(instance, scope) or StrandGroup(("v",), (Closure(instance, scope),))
        axis = StrandRef(owner, "k")
        members = [CacheMember(call, scope, k, len(shape), axis, now) for k, now in enumerate(shape.members)]
        return StrandGroup(shape.names, tuple(members), {"k": axis}, (axis,))


# Expressions that are one number, or are spread over several strands as a whole.
_NUMBERS = (Number, Binary, Unary, If, Access)


def _in_library(scope: Scope) -> bool:
    """Whether an expression is in the body of a spindle that ships with weft."""
    return bool(scope.chain) and scope.chain[-1].span.source.library


def check_bound(statement: CallBinding, available: int) -> None:
    """Raises WeftError if a call binding names more outputs than there are."""
    if len(statement.outputs) > available:
        extra = statement.outputs[available]
        raise too_many_outputs(available, extra.name, extra.span)


def too_many_outputs(available: int, name: str, span: Span) -> WeftError:
    """The error for the first output for which no value is left."""
    many = f"{available} output{'s' * (available != 1)}"
    return error("too-many-outputs", f'this has {many}, so nothing is left for "{name}"', span)


def unnamed_cache(call: Call) -> WeftError:
    """The error for a cache that is not bound."""
    return error("cache-needs-a-name", "a cache has to be bound, so that its axis has a name", call.span,
                 "cache(img, 30)::c<r, g, b>, and c@r(c@k ~ 5) is five ticks ago")  # fmt: skip


def check_copies(statement: CallBinding, spindles: Mapping[str, SpindleDefinition]) -> None:
    """Raises WeftError if a multi-call does not give one strand to each output."""
    count, outputs = statement.count or 0, statement.outputs
    span = statement.count_span or statement.span
    if not 1 <= count <= MAX_COPIES:
        raise error("copies-out-of-range", f"a call can be made 1 to {MAX_COPIES} times", span)
    spindle = spindles.get(statement.value.name) if isinstance(statement.value, Call) else None
    if spindle is not None and len(spindle.outputs) > 1:
        message = f"{spindle.name.name} has {len(spindle.outputs)} outputs, and only a spindle with one can be called "
        raise error("several-strands", message + "several times at once", span, "bind each call on its own")
    if count != len(outputs):
        raise error("count-mismatch", f"{count} call{'s' * (count != 1)} for {len(outputs)} "
                    f"output{'s' * (len(outputs) != 1)}", span, "each call gives one output")  # fmt: skip


def assigned_value(statement: Assignment) -> Expression:
    """The expression of an assignment; `a += e` reads the a from before."""
    if statement.op == "=":
        return statement.value
    before = Name(statement.name.name, statement.name.span)
    return Binary(statement.op[0], before, statement.value, statement.span)


# --- the fields of `me`, `mouse` and `key`, and what a map moves ---

RESERVED_FIELDS: Mapping[str, Sequence[str]] = {"me": ALL_FIELDS, "mouse": tuple(MOUSE), "key": tuple(KEYS)}

# A hint does not list more names than this.
_MOST_LISTED = 24


def no_output(owner: str, node: Access, known: Sequence[str]) -> WeftError:
    """The error for an access to an output that does not exist."""
    listed = (*BASES, *FIELDS) if owner == "me" else known
    shown = f"it has {', '.join(listed)}" if len(listed) <= _MOST_LISTED else None
    what = f"there is no {owner}@{node.output}" if owner in RESERVED else f'{owner} has no output "{node.output}"'
    return error("unknown-output", what, node.output_span, did_you_mean(node.output, known) or shown)


def map_target(resolver: Resolver, target: Access, scope: Scope) -> tuple[Field | None, Coordinate]:
    """The derived field that a map names, if it names one, and the base coordinate or axis that it moves."""
    owner = target.base.id if isinstance(target.base, Name) else ""
    if owner == "me" and target.output not in ALL_FIELDS:
        raise no_output(owner, target, ALL_FIELDS)
    if owner in ("mouse", "key") or (owner == "me" and target.output in FIXED_FIELDS):
        raise error("not-a-coordinate", f"{owner}@{target.output} is the same everywhere, so it cannot be mapped",
                    target.span, "coordinates are x, y, time and what derives from them")  # fmt: skip
    if owner == "me":
        named = FIELDS.get(target.output)
        return named, named.base if named else target.output
    group = resolver.group(target.base, scope)
    if group is None or target.output not in group.axes:
        raise error("not-a-coordinate", f"{target.span.text} is a strand, not a coordinate", target.span,
                    "a map moves a coordinate: me@x ~ …")  # fmt: skip
    return None, group.axes[target.output]


# The derived field that is moved, if it is one; its base coordinate, or the axis; and the expression of the value.
Target: TypeAlias = tuple[Field | None, Coordinate, Expression]


def time_map(maps: Sequence[Map]) -> Span | None:
    """The place where a list of maps moves the time; None if it does not."""
    moved = (m for m in maps if m.target.output == "abstime"
             or (m.target.output in FIELDS and FIELDS[m.target.output].base == "abstime"))  # fmt: skip
    return next((m.target.span.to(m.value.span) for m in moved), None)
