"""Groups: which strands an expression stands for, in every scope; and the bodies of spindle calls, which bind them.
Nothing is evaluated here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import GeneratorType
from typing import Any, NamedTuple

from weft.errors import Span, error, steps_of
from weft.graph.budget import Budget
from weft.graph.calls import bound_planes, is_heard, match_arguments, sizes_of, source_shape, without_size
from weft.graph.domain import Coordinate
from weft.graph.loops import check_bound_calls
from weft.graph.nodes import Broadcast, Patch
from weft.graph.recursion import Eventual, Task, run
from weft.graph.resolve import (
    MAX_COPIES, RESERVED, NameLookup, assigned_value, check_bound, check_copies, in_library, is_field, no_member,
    unnamed_cache
)
from weft.graph.scope import (
    OPEN, Bindings, CacheMember, Closure, Local, LoopResult, Member, Opaque, PoisonedError, Scope, SourceMember,
    SpindleBody, StrandGroup, WordMember, as_local, as_member, different_counts, is_swizzle, pick_hint, remapped,
    several_calls, source_coordinates, strands
)
from weft.names import StrandRef
from weft.ops import STATE, WORDS, ieee
from weft.sources import SOURCES, SourceSpec
from weft.syntax.ast import (
    Access, Assignment, Binary, BodyStatement, Bundle, Call, CallBinding, Comprehension, Expression, For, Ident, If,
    Index, Name, Number, OutAssignment, Remap, SpindleDefinition, SpindleParameter, Unary, Walkable, children
)

# The most members of a comprehension.
_MOST_MEMBERS = 64

# The deepest nesting of spindle calls.
MAX_CALL_DEPTH = 256

# Python calls for each of these levels, if the outputs of a call are bound in the body of the next.
_FRAMES_PER_CALL = 12

# The most expressions that are looked at to classify an argument: it may be made of other arguments, and so on.
_MOST_LOOKED_AT = 32

# Kinds of arguments; neither can occur in a text.
_OPEN, _UNKNOWN, _DEFAULT = "\0open", "\0unknown", "\0default"

# What a body and each statement in it take of the budget, besides their evaluation.
_STEPS_OF_A_BODY = 20
_STEPS_OF_A_LOCAL = 6


def _count_hint(group: StrandGroup, names: Sequence[str], span: Span) -> str:
    """How a group gets as many strands as there are names for it."""
    lacking = len(names) - len(group)
    if lacking > 0:
        more = "one more member" if lacking == 1 else f"{lacking} more members"
        return f"give it {more}, or leave out {', '.join(names[len(group):])}"
    return f"give as many outputs as there are strands, or {pick_hint(span, group)}"


# What has the strands of its operands.
_OPERATIONS = (Unary, Binary, If)

# Stands for a group that was not looked for yet.
_UNSEEN = StrandGroup(("",), ())


class _Inspection(NamedTuple):
    """What is found by looking at an argument and at all that it is made of: how many expressions were `looked_at`;
    whether that ended at a strand about which nothing is known, or was whole; and whether it means the same everywhere.
    """

    looked_at: int
    is_open: bool = False
    is_whole: bool = False
    is_closed: bool = False


class Resolver(NameLookup):
    """Names, groups and the bodies of spindle calls of one patch. A body is built once for each call and scope."""

    def __init__(
        self, patch: Patch, budget: Budget, constant: Callable[[Expression, Scope], float | None]
    ) -> None:
        super().__init__(patch, constant)
        self._budget = budget
        self._indexed: dict[tuple[Call, int], Expression] = {}
        self.ordinals = patch.ordinals
        self._bodies: dict[tuple[Call, Scope], Scope] = {}
        self._groups: dict[tuple[Expression, Scope], StrandGroup | None] = {}
        self._grouping: set[tuple[Expression, Scope]] = set()
        """The expressions whose strands are being found. Below, those of them that were assumed to add nothing, and
        bodies that were not known to their end."""
        self._assumed: set[Hashable] = set()
        self._tentative: dict[tuple[Expression, Scope], tuple[StrandGroup | None, frozenset[Hashable]]] = {}
        self._open_bodies: dict[Hashable, Scope] = {}
        self._outside: dict[Scope, Scope] = {}
        self._loop_shapes: dict[tuple[For, Scope], dict[str, StrandGroup | None]] = {}
        self._named: dict[tuple[Expression, Scope], tuple[Expression, Scope]] = {}
        self._looks: dict[tuple[Expression, Scope], _Inspection] = {}

    def retain(self, patch: Patch, budget: Budget) -> None:
        """Goes on with another patch. What was found is kept by expressions and scopes: those of definitions that
        differ are never asked for again."""
        patch.ordinals.adopt(self.ordinals)
        self.patch, self.ordinals, self._budget, self._compared = patch, patch.ordinals, budget, 0
        self._instances, self._suggested, self._grouping, self._assumed = {}, {}, set(), set()
        self._tentative.clear()
        self._open_bodies.clear()
        self._looks.clear()
        self._named.clear()

    # --- groups ---------------------------------------------------------------------------------------------------

    def group(self, expression: Expression, scope: Scope) -> StrandGroup | None:
        """The strands of an expression that has several, or whose only one has a name; None for any other, and `OPEN`
        if nothing is known about its strands. Raises WeftError for unknown names, and for counts that differ."""
        found: Any = self._grouped(expression, scope)
        if type(found) is GeneratorType:
            found = run(found)
        group: StrandGroup | None = found
        return group

    def is_known(self, expression: Expression, scope: Scope) -> bool:
        """Whether the strands of an expression are known for good, and not only as far as others are."""
        return (expression, scope) in self._groups

    def several(self, expression: Expression, scope: Scope) -> StrandGroup | None:
        """The strands of a bundle: of an expression that has more than one."""
        group = self.group(expression, scope)
        return None if group is None or len(group) < 2 else group

    def is_open(self, expression: Expression, scope: Scope) -> bool:
        """Whether nothing is known about an expression, not even its number of strands: it is the argument of a spindle
        that is never called, or made of such arguments."""
        return self.group(expression, scope) is OPEN

    def _grouped(self, node: Expression, scope: Scope) -> Eventual[StrandGroup | None]:
        """What `group` gives, if that is known or follows at once."""
        key = node, scope
        group = self._groups.get(key, _UNSEEN)
        if group is _UNSEEN:
            group = self._at_once(node, scope)
            if group is _UNSEEN:
                return self._found_group(node, scope)
            self._groups[key] = group
        return group

    def _at_once(self, node: Expression, scope: Scope) -> StrandGroup | None:
        """The strands of a name of an expression whose strands are known, or of an operation on what is known to be one
        strand each; `_UNSEEN` for all else. Most expressions are such, and need no task."""
        groups = self._groups
        if isinstance(node, Name):
            local = scope.get(node.id)
            if isinstance(local, Closure) and local.scope.broadcast is None:
                return groups.get((local.value, local.scope), _UNSEEN)
        elif isinstance(node, _OPERATIONS):
            for leaf in self.ordinals.shape_leaves(node):
                group = groups.get((leaf, scope), _UNSEEN)
                if group is _UNSEEN and isinstance(leaf, Name):
                    group = self._at_once(leaf, scope)
                if group is not None and len(group) != 1:
                    return _UNSEEN
            return None
        return _UNSEEN

    def _found_group(self, node: Expression, scope: Scope) -> Task[StrandGroup | None]:
        """What `group` gives. An expression in a cycle adds nothing to itself, so a group that depends on one whose
        strands are still being found is tentative."""
        key = node, scope
        if key in self._groups:
            return self._groups[key]
        if key in self._tentative:
            known, assumed = self._tentative[key]
            self._assumed |= assumed
            return known
        if key in self._grouping:
            self._assumed.add(key)
            return None
        self._grouping.add(key)
        outer, self._assumed = self._assumed, set()
        group: StrandGroup | None = OPEN
        try:
            group = yield from self._made_group(node, scope)
        finally:
            self._grouping.discard(key)
            if key in self._assumed:
                self._assumed.discard(key)
                self._settle(key, group is None or len(group) == 1)
            found, self._assumed = self._assumed, outer | self._assumed
        if found:
            self._tentative[key] = group, frozenset(found)
        else:
            self._groups[key] = group
        return group

    def _settle(self, key: Hashable, adds_nothing: bool) -> None:
        """Keeps what was found on the assumption that an expression adds nothing, if that is so, and drops it if
        not."""
        for other, (group, assumed) in list(self._tentative.items()):
            if key in assumed:
                del self._tentative[other]
                if adds_nothing and len(assumed) > 1:
                    self._tentative[other] = group, assumed - {key}
                elif adds_nothing:
                    self._groups[other] = group

    def _made_group(self, node: Expression, scope: Scope) -> Task[StrandGroup | None]:
        group: StrandGroup | None = None
        match node:
            case Name():
                match self.strand(node, scope):
                    case StrandGroup() as found:
                        group = found
                    case Closure() as closure if closure.scope.broadcast is None:
                        group = yield self._grouped(closure.value, closure.scope)
                    case Opaque(takes_bundle=True):
                        group = OPEN
            case Bundle(items):
                for item in items:
                    nested: StrandGroup | None = yield self._grouped(item, scope.broadcast_over(None))
                    if nested is not None and len(nested) > 1:
                        raise error("nested-bundle", f"a bundle cannot contain a bundle: this is {strands(nested)}",
                                    item.span, "join(a, b) makes one bundle of several")  # fmt: skip
                members = tuple(Closure(item, scope.broadcast_over(None)) for item in items)
                group = StrandGroup(("",) * len(members), members)
            case Comprehension():
                group = self._comprehension(node, scope)
            case Call():
                group = yield from self._call_group(node, scope)
            case Remap(base, maps):
                group = yield from self._remap_group(node, base, [item.value for item in maps], scope)
            case Access(base, output) if is_swizzle(output) and not is_field(node, scope):
                group = yield from self._base_group(base, output, scope)
                group = group and group.swizzle(output)
            case Index(_, index):
                group = self._spread(node, (yield from self._joined([index], scope)), scope)
            case Unary() | Binary() | If():
                group = self._spread(node, (yield from self._joined(self.ordinals.shape_leaves(node), scope)), scope)
        return group

    def base_group(self, node: Access, scope: Scope) -> StrandGroup | None:
        """The strands of what an access reads a member of."""
        if scope.broadcast is None or isinstance(node.base, Name):
            return self.group(node.base, scope)
        task: Eventual[StrandGroup | None] = self._base_group(node.base, node.output, scope)
        return run(task)

    def _base_group(self, base: Expression, output: str, scope: Scope) -> Task[StrandGroup | None]:
        """What `base_group` gives. A member is read of the whole. Where names stand on the left, a call whose output
        has this very name is one for each of them."""
        broadcast = scope.broadcast
        group: StrandGroup | None = None
        if broadcast is None or isinstance(base, Name):
            group = yield self._grouped(base, scope)
            return group
        if len(broadcast.names) > 1:
            group = yield self._grouped(base, scope)
            if group is not None and (group is OPEN or output in group.names or output in group.axes):
                return group
        # The same scope each time, since calls are found again by their scopes.
        outside = self._outside.get(scope) or self._outside.setdefault(scope, scope.broadcast_over(None))
        whole: StrandGroup | None = yield self._grouped(base, outside)
        return whole if whole is not None else group

    def _remap_group(
        self, node: Remap | Call, base: Expression, moved: Sequence[Expression], scope: Scope
    ) -> Task[StrandGroup | None]:
        group: StrandGroup | None = yield self._grouped(base, scope)
        maps = yield from self._joined(moved, scope)
        if maps is None or group is OPEN:
            return group and remapped(group, node, scope)
        return self._spread(node, (yield from self._joined([base, *moved], scope)), scope)

    def _call_group(self, call: Call, scope: Scope) -> Task[StrandGroup | None]:
        arguments = [argument.value for argument in call.args]
        match self.called(call, scope):
            case None:
                self.check_callee(call, scope)
                return (yield from self._remap_group(call, call.callee, arguments, scope))
            case SpindleDefinition() as spindle:
                if scope.whole is not None:
                    # A call in an expression over bundles is made once, and serves all members.
                    once: StrandGroup | None = yield self._grouped(call, scope.whole)
                    if not (once and isinstance(once.members[0], Closure) and once.members[0].value is call):
                        return once if once is not None else StrandGroup(("",), (Closure(call, scope.whole),))
                return (yield from self._spindle_group(call, spindle, scope))
            case "word":
                return (yield from self._word_group(call, scope))
            case "source":
                outputs, axes = source_shape(call, SOURCES[call.name])
                owner = f"{scope.path}/{call.name}#{self.ordinals.of(call)}"
                own = {"k": StrandRef(owner, "k")} if "k" in axes else {}
                sources = tuple(
                    SourceMember(call, output, plane, scope, own.get("k")) for plane, output in enumerate(outputs)
                )
                coordinates = source_coordinates(axes, own)
                return StrandGroup(outputs, sources, own, coordinates, sizes_of(call, SOURCES[call.name], ()))
            case "state" if call.name == "cache":
                raise unnamed_cache(call)
            case "state" if STATE[call.name].breaks_cycle:
                shape = yield from self._joined_in_memory(arguments, scope)
            case _:
                shape = yield from self._joined(arguments, scope)
        return self._spread(call, shape, scope)

    def _spindle_group(self, call: Call, spindle: SpindleDefinition, scope: Scope) -> Task[StrandGroup | None]:
        """The outputs of a call. A bundle for a parameter that takes one strand makes a call for each member."""
        values = match_arguments(spindle.name.name, spindle.parameters, call.args, call.span)
        group: StrandGroup | None = None
        if scope.broadcast is None:
            several: list[Expression] = []
            for value in values:
                if value is not None and not _is_plain(value):
                    found: Any = self._grouped(value, scope)
                    group = (yield found) if type(found) is GeneratorType else found
                    if group is not None and len(group) != 1:
                        several.append(value)
            if several:
                takes = self.ordinals.takes_bundles(spindle)
                several = [v for v, whole in zip(values, takes, strict=True) if v in several and not whole]
            shape = (yield from self._joined(several, scope)) if several else None
            if shape is not None and shape is not OPEN and len(spindle.outputs) > 1:
                raise several_calls(spindle, call.span)
            if shape is not None and len(shape) > MAX_COPIES:
                raise error("copies-out-of-range", f"this is {strands(shape)}, and a call can be made for "
                            f"{MAX_COPIES} members at most", call.span)  # fmt: skip
            if shape is not None:
                return self._spread(call, shape, scope)
        with self._budget.within(call.span, "call"):
            body = self._body(call, spindle, values, scope)
            if len(spindle.outputs) == 1:
                output = body.get(spindle.outputs[0].name)
                group = output if isinstance(output, StrandGroup) else None
                if isinstance(output, Closure):
                    group = yield self._grouped(output.value, output.scope)
                if group is not None and (len(group) > 1 or group is OPEN):
                    return group
        names = tuple([output.name for output in spindle.outputs])
        return StrandGroup(names, tuple([self._output_of(body.get(each.name), each) for each in spindle.outputs]))

    def _output_of(self, local: Local | None, output: Ident) -> Member:
        """An output of a call. Raises PoisonedError if it was never assigned."""
        if local is None:
            raise PoisonedError
        if not isinstance(local, StrandGroup):
            return local
        if len(local) == 1:
            return local.members[0]
        raise error("several-strands", f'"{output.name}" is {strands(local)}, and one of several outputs is one strand',
                    output.span, f"write :: {output.name}, or an output for each member")  # fmt: skip

    # --- words for bundles ---

    def _word_group(self, call: Call, scope: Scope) -> Task[StrandGroup | None]:
        spec = WORDS[call.name]
        match_arguments(spec.name, spec.params, call.args, call.span, spec.variadic)
        whole = scope.broadcast_over(None)
        for argument in call.args:
            yield self._grouped(argument.value, whole)
        if spec.gives == "element":
            element: StrandGroup | None = yield self._grouped(self.indexed(call, scope), scope)
            return element
        operands = self.operands(call, scope)
        if spec.gives == "one" or operands is None:
            return OPEN if operands is None and spec.gives != "one" else None
        if spec.gives == "regrouped":
            members = tuple(spec.value(*(operand.members for operand in operands)))
            return StrandGroup(("",) * len(members), members)
        if spec.name == "cross" and len(operands[0]) != 3:
            raise error("count-mismatch", f"cross needs three strands, and this is {strands(operands[0])}",
                        call.args[0].span, "a cross product is one of vectors in space")  # fmt: skip
        places = range(len(operands[0]))
        return StrandGroup(operands[0].names, tuple(WordMember(call, scope, place) for place in places))

    def operands(self, call: Call, scope: Scope) -> list[StrandGroup] | None:
        """The strands of each operand of a word, one strand as a bundle of one. Those of a word that goes through them
        in pairs are in the same order. None if nothing is known of one of them."""
        whole = scope.broadcast_over(None)
        found: list[StrandGroup] = []
        for argument in call.args:
            group = self.group(argument.value, whole)
            if group is OPEN:
                return None
            found.append(group or StrandGroup(("",), (Closure(argument.value, whole),)))
        if not WORDS[call.name].is_paired:
            return found
        shape = max(found, key=len)
        for argument, group in zip(call.args, found, strict=True):
            if len(group) not in (1, len(shape)):
                first = call.args[found.index(shape)].value
                raise different_counts(first, shape, argument.value, group)
        names = tuple(n or str(i) for i, n in enumerate((found[0] if len(found[0]) > 1 else shape).names))
        places = [replace(whole, broadcast=Broadcast(names, i)) for i in range(len(names))]
        return [
            StrandGroup(shape.names, tuple(self.pick(group, place, call.span) for place in places)) for group in found
        ]

    def indexed(self, call: Call, scope: Scope) -> Expression:
        """`seq(b, i)` as the element `b[i % n]`, and `smooth_seq(b, i)` as a mix of two elements."""
        bundle, index = (argument.value for argument in call.args)
        group = self.group(bundle, scope.broadcast_over(None))
        count = 1 if group is None or group is OPEN else len(group)
        if (call, count) not in self._indexed:
            # Operators only: a spindle of the patch may have the name of any builtin.
            span, one = call.span, Number(1.0, call.span)
            part = Binary("%", index, one, span)
            whole = Binary("-", index, part, span)

            def element(at: Expression) -> Expression:
                return Index(bundle, Binary("%", at, Number(float(count), span), span), span)

            made = element(whole)
            if call.name == "smooth_seq":
                step = Binary("-", element(Binary("+", whole, one, span)), made, span)
                made = Binary("+", made, Binary("*", part, step, span), span)
            self._indexed[call, count] = made
        return self._indexed[call, count]

    def _comprehension(self, node: Comprehension, scope: Scope) -> StrandGroup:
        """The bundle that `<item for variable in (first to last)>` gives: a member for each step."""
        first, last = (self._constant(end, scope.broadcast_over(None)) for end in (node.first, node.last))
        if first is None or last is None:
            return OPEN
        steps = int(min(ieee.steps(first, last), _MOST_MEMBERS + 1))
        if not 1 <= steps <= _MOST_MEMBERS:
            message = "this has no steps" if steps < 1 else f"this has more than {_MOST_MEMBERS} steps"
            raise error("comprehension-steps", f"{message}, and a bundle has 1 to {_MOST_MEMBERS}",
                        node.first.span.to(node.last.span), "both ends are included: (1 to 8)")  # fmt: skip
        outer, name = scope.broadcast_over(None), node.variable
        scopes = (
            replace(outer, path=f"{scope.path}[{k}]").inner(
                {name.name: Closure(Number(first + k, name.span), outer)}
            )
            for k in range(steps)
        )  # fmt: skip
        return StrandGroup(("",) * steps, tuple(Closure(node.item, each) for each in scopes))

    def _joined(self, parts: Iterable[Expression], scope: Scope) -> Task[StrandGroup | None]:
        """The bundle that gives an expression of these parts its shape: the first one that has names, or the first one.
        None if all are one strand, `OPEN` if nothing is known. Raises WeftError if their counts differ."""
        found: StrandGroup | None = None
        first: Expression | None = None
        for part in parts:
            if _is_plain(part):
                continue
            eventual: Any = self._grouped(part, scope)
            group = (yield eventual) if type(eventual) is GeneratorType else eventual
            if group is None or len(group) == 1:
                continue
            if found is None or found is OPEN:
                found, first = group, part
            elif group is not OPEN and first is not None:
                if len(group) != len(found):
                    raise different_counts(first, found, part, group)
                if not any(found.names):
                    found = group
        return found

    def _joined_in_memory(self, parts: Sequence[Expression], scope: Scope) -> Task[StrandGroup | None]:
        """As `_joined`, for what memory keeps. While a body has not been read to its end, names that it assigns further
        down add nothing."""
        try:
            return (yield from self._joined(parts, scope.for_memory()))
        except PoisonedError:
            self._assumed.add(scope.body)
        assigned = scope.body.assigned if scope.body is not None else frozenset[str]()
        later = scope.inner({name: Opaque() for name in assigned if scope.is_assigned_later(name)})
        return (yield from self._joined(parts, later))

    def _spread(self, node: Expression, shape: StrandGroup | None, scope: Scope) -> StrandGroup | None:
        """An expression over bundles, member by member, if it has a shape. Each member has a state of its own."""
        if shape is None or shape is OPEN:
            return shape
        names = tuple(n or str(i) for i, n in enumerate(shape.names))
        scopes = (
            replace(scope, path=f"{scope.path}[{i}]", broadcast=Broadcast(names, i), whole=scope)
            for i in range(len(names))
        )  # fmt: skip
        return StrandGroup(shape.names, tuple(Closure(node, each) for each in scopes))

    def pick(self, group: StrandGroup, scope: Scope, span: Span) -> Member:
        """The one strand that a group means in a scalar place: its only one, or the one at the current place of a
        spread."""
        if group is OPEN:
            return Opaque()
        if len(group) == 1:
            return group.members[0]
        broadcast = scope.broadcast
        if broadcast is not None and all(name in group.names for name in broadcast.names):
            return group.members[group.names.index(broadcast.names[broadcast.index])]
        if broadcast is None or len(broadcast.names) == 1:
            raise error("several-strands", f"this is {strands(group)}, and one is needed here", span,
                        pick_hint(span, group))  # fmt: skip
        if len(group) == len(broadcast.names):
            return group.members[broadcast.index]
        raise error("count-mismatch", f"this is {strands(group)}, and {len(broadcast.names)} are needed here "
                    f"({', '.join(broadcast.names)})", span, _count_hint(group, broadcast.names, span))  # fmt: skip

    def positional(self, expression: Expression, scope: Scope) -> tuple[Coordinate, ...]:
        """The coordinates that a positional remap of an expression maps, in order: a source has axes of its own."""
        while isinstance(expression, Remap | Index | Access):
            expression = expression.base
        is_field = isinstance(expression, Name) and expression.id in RESERVED
        group = None if is_field else self.group(expression, scope)
        return ("x", "y", "time") if group is None else group.positional

    # --- spindles -------------------------------------------------------------------------------------------------

    def _body(
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
        """Where an argument is evaluated, in a call for one of several names or members. What is the same for all calls
        for the members of a bundle is evaluated once."""
        if takes_bundle:
            return scope.whole or scope.broadcast_over(None)
        is_same = scope.whole is not None and value is not None and self.several(value, scope.whole) is None
        return scope.whole if is_same and scope.whole else scope

    def _sharing_key(
        self, spindle: SpindleDefinition, values: Iterable[Expression | None], scope: Scope
    ) -> Hashable | None:
        """A key that is equal for calls with unknown arguments that can share one body. Such calls are made when a
        spindle is checked without being called. None for other calls."""
        kinds = tuple(_DEFAULT if value is None else self._kind_of(value, scope) for value in values)
        if _OPEN not in kinds and _UNKNOWN not in kinds:
            return None
        if None in kinds or scope.broadcast is not None or self.ordinals.facts(spindle.body).is_recursive:
            return None
        return spindle, kinds, scope.level, scope.varying, scope.copies

    def _kind_of(self, value: Expression, scope: Scope) -> str | None:
        """The kind of an argument: `_OPEN`, `_UNKNOWN` for a number made of open ones, or its text if that means the
        same everywhere; None for anything else, or if it takes too long to find out."""
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
        """The expression that a name stands for, if that is an argument or a local. The argument of a call may be that
        of the call around it, and so on; each is followed once."""
        asked = value, scope
        while isinstance(value, Name) and isinstance(local := scope.get(value.id), Closure):
            value, scope = self._named.get((local.value, local.scope), (local.value, local.scope))
        if isinstance(asked[0], Name):
            self._named[asked] = value, scope
        return value, scope

    def _look(self, value: Expression, scope: Scope) -> _Inspection:
        """What an expression is made of. What is known of those behind its names is not looked at again: arguments are
        made of the arguments of the calls around them."""
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
        """Runs through a spindle's body with the given arguments, None where a default holds, without evaluating
        anything. `seen` is called with every statement and the scope after it."""
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
        self._settle(body, False)
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
        """What a parameter stands for in a call with this argument."""
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
                check_bound_calls(statement, scope.names(), self.ordinals)
                after = scope
                for name, shape in self.loop_shapes(statement, scope).items():
                    results = [LoopResult(statement, scope, name, i) for i in range(len(shape or "1"))]
                    after = after.bind(name, as_local(results, shape))
                return after

    def _all_outputs(self, outputs: Sequence[Ident], value: Expression, scope: Scope) -> Sequence[Local]:
        """What `out = value` gives each output: the member of its name if there is one for all, else the one at its
        place; one strand serves all."""
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
                        f"({', '.join(names)})", value.span, _count_hint(group, names, value.span))  # fmt: skip
        return [StrandGroup(("",), (member,)) for member in members]

    def loop_shapes(self, loop: For, scope: Scope) -> dict[str, StrandGroup | None]:
        """The shape of each name that a loop carries; None for one strand. A bundle has as many members in all steps,
        so the widest shape that a step gives holds from the first one on."""
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
            outputs, sizes = without_size(source, outputs)
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

    def cache_group(self, call: Call, scope: Scope, owner: str) -> StrandGroup:
        """The outputs of `cache(instance, n)`, whose axis belongs to `owner`."""
        matched = match_arguments("cache", STATE["cache"].params, call.args, call.span)
        instance, _ = (argument for argument in matched if argument is not None)
        shape = self.group(instance, scope) or StrandGroup(("v",), (Closure(instance, scope),))
        axis = StrandRef(owner, "k")
        members = [CacheMember(call, scope, k, len(shape), axis, now) for k, now in enumerate(shape.members)]
        return StrandGroup(shape.names, tuple(members), {"k": axis}, (axis,))


def _output(group: StrandGroup, plane: int) -> Member:
    """An output of a source. The sound of a film is no member of its bundle."""
    if plane < len(group):
        return group.members[plane]
    first = group.members[0]
    assert isinstance(first, SourceMember)
    return replace(first, plane=plane)


def _is_plain(node: Expression) -> bool:
    """Whether an expression is one strand by its form alone."""
    return isinstance(node, Number) or (isinstance(node, Access) and not is_swizzle(node.output))
