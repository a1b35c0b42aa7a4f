"""Groups: which strands an expression has, in every scope. Nothing is evaluated here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from types import GeneratorType
from typing import Any

from weft.errors import Span, error
from weft.graph.budget import Budget
from weft.graph.calls import match_arguments, sizes_of, source_shape
from weft.graph.domain import Coordinate
from weft.graph.lookup import MAX_COPIES, NameLookup, is_field, unnamed_cache
from weft.graph.patch import Broadcast, Patch
from weft.graph.recursion import Eventual, Task, run
from weft.graph.scope import (
    OPEN, CacheMember, Closure, Local, Member, Opaque, PoisonedError, Scope, SourceMember, StrandGroup, WordMember,
    count_hint, different_counts, pick_hint, remapped, several_calls, source_coordinates, strands
)
from weft.names import RESERVED, StrandRef, is_swizzle
from weft.ops import STATE, WORDS, ieee
from weft.sources import SOURCES
from weft.syntax.ast import (
    Access, Binary, Bundle, Call, Comprehension, Expression, Ident, If, Index, Name, Number, Remap, SpindleDefinition,
    Unary
)

# The most members of a comprehension.
_MOST_MEMBERS = 64

# What has the strands of its operands.
_OPERATIONS = (Unary, Binary, If)

# Marks a group that has not been looked for yet.
_UNSEEN = StrandGroup(("",), ())


class GroupLookup(NameLookup, ABC):
    """Finds the strands that expressions of one patch have."""

    def __init__(
        self, patch: Patch, budget: Budget, constant: Callable[[Expression, Scope], float | None]
    ) -> None:
        super().__init__(patch, constant)
        self._budget = budget
        self.ordinals = patch.ordinals
        self._indexed: dict[tuple[Call, int], Expression] = {}
        self._groups: dict[tuple[Expression, Scope], StrandGroup | None] = {}
        self._grouping: set[tuple[Expression, Scope]] = set()
        """The expressions whose strands are being looked for."""
        self._assumed: set[Hashable] = set()
        """The assumptions of the current search: expressions that add no strands to themselves, and bodies that have
        not been read to their end."""
        self._tentative: dict[tuple[Expression, Scope], tuple[StrandGroup | None, frozenset[Hashable]]] = {}
        """What was found on assumptions, with these."""
        self._outside: dict[Scope, Scope] = {}

    def retain(self, patch: Patch, budget: Budget) -> None:
        """Continues with another patch. Results are kept by expression and scope, so those of definitions that differ
        are simply never asked for again."""
        patch.ordinals.adopt(self.ordinals)
        self.patch, self.ordinals, self._budget, self._compared = patch, patch.ordinals, budget, 0
        self._instances, self._suggested, self._grouping, self._assumed = {}, {}, set(), set()
        self._tentative.clear()

    @abstractmethod
    def body(
        self, call: Call, spindle: SpindleDefinition, values: Sequence[Expression | None], scope: Scope
    ) -> Scope:
        """The scope at the end of a spindle's body, with its outputs among the locals, for one call with these
        arguments."""

    def group(self, expression: Expression, scope: Scope) -> StrandGroup | None:
        """The strands of an expression that has several, or whose only one has a name; None for any other, and `OPEN`
        if nothing is known about its strands. Raises WeftError for unknown names, and for counts that differ."""
        found: Any = self._grouped(expression, scope)
        if type(found) is GeneratorType:
            found = run(found)
        group: StrandGroup | None = found
        return group

    def is_known(self, expression: Expression, scope: Scope) -> bool:
        """Whether the strands of an expression are final. Otherwise they depend on others that are being looked for."""
        return (expression, scope) in self._groups

    def several(self, expression: Expression, scope: Scope) -> StrandGroup | None:
        """The strands of a bundle: of an expression that has more than one."""
        group = self.group(expression, scope)
        return None if group is None or len(group) < 2 else group

    def is_open(self, expression: Expression, scope: Scope) -> bool:
        """Whether nothing is known about an expression, not even its number of strands. This is so for the arguments of
        a spindle that is never called, and for what is made of them."""
        return self.group(expression, scope) is OPEN

    def _grouped(self, node: Expression, scope: Scope) -> Eventual[StrandGroup | None]:
        """The result of `group`, or a task for it if it takes more than a look at what is known."""
        key = node, scope
        group = self._groups.get(key, _UNSEEN)
        if group is _UNSEEN:
            group = self._at_once(node, scope)
            if group is _UNSEEN:
                return self._found_group(node, scope)
            self._groups[key] = group
        return group

    def _at_once(self, node: Expression, scope: Scope) -> StrandGroup | None:
        """The result of `group` for two frequent cases that need no task: a name for an expression whose strands are
        known, and an operation whose operands are known to be one strand each. `_UNSEEN` for all others."""
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
        """The result of `group`. An expression that is reached again while its own strands are being looked for is
        assumed to add none. The groups that depend on this assumption are tentative until it is settled."""
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
                self.settle(key, group is None or len(group) == 1)
            found, self._assumed = self._assumed, outer | self._assumed
        if found:
            self._tentative[key] = group, frozenset(found)
        else:
            self._groups[key] = group
        return group

    def settle(self, key: Hashable, adds_nothing: bool) -> None:
        """Decides what was found on the assumption that an expression adds nothing to itself: keeps it if that
        `adds_nothing`, and drops it otherwise."""
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
        """The strands of the expression of which an access reads a member."""
        if scope.broadcast is None or isinstance(node.base, Name):
            return self.group(node.base, scope)
        task: Eventual[StrandGroup | None] = self._base_group(node.base, node.output, scope)
        return run(task)

    def _base_group(self, base: Expression, output: str, scope: Scope) -> Task[StrandGroup | None]:
        """The result of `base_group`. A member is read of the whole bundle, not of the member at the place of the
        broadcast. The exception is a call in a statement with several names on the left that has an output of this
        name: there is one call for each name."""
        broadcast = scope.broadcast
        group: StrandGroup | None = None
        if broadcast is None or isinstance(base, Name):
            group = yield self._grouped(base, scope)
            return group
        if len(broadcast.names) > 1:
            group = yield self._grouped(base, scope)
            if group is not None and (group is OPEN or output in group.names or output in group.axes):
                return group
        # Always the same scope object, since calls are found by their scopes.
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
                    # An expression over bundles makes a call once, for all members.
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
            body = self.body(call, spindle, values, scope)
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
        """The strands of each operand of a word; a single strand counts as a bundle of one. If the word takes its
        operands in pairs, their members are in the same order. None if nothing is known of an operand."""
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
        """The bundle that determines the shape of an expression with these parts: the first one that has names, or else
        the first one. None if all parts are one strand, `OPEN` if nothing is known. Raises WeftError if their counts
        differ."""
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
        """The same as `_joined`, for what memory keeps. While the body has not been read to its end, names that it
        assigns further down add no strands."""
        try:
            return (yield from self._joined(parts, scope.for_memory()))
        except PoisonedError:
            self._assumed.add(scope.body)
        assigned = scope.body.assigned if scope.body is not None else frozenset[str]()
        later = scope.inner({name: Opaque() for name in assigned if scope.is_assigned_later(name)})
        return (yield from self._joined(parts, later))

    def _spread(self, node: Expression, shape: StrandGroup | None, scope: Scope) -> StrandGroup | None:
        """The members of an expression over bundles of a `shape`: the expression once for each member, with a state of
        its own. None for an expression without a shape."""
        if shape is None or shape is OPEN:
            return shape
        names = tuple(n or str(i) for i, n in enumerate(shape.names))
        scopes = (
            replace(scope, path=f"{scope.path}[{i}]", broadcast=Broadcast(names, i), whole=scope)
            for i in range(len(names))
        )  # fmt: skip
        return StrandGroup(shape.names, tuple(Closure(node, each) for each in scopes))

    def pick(self, group: StrandGroup, scope: Scope, span: Span) -> Member:
        """The strand that a group means where one strand is needed: its only one, or the one of the broadcast."""
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
                    f"({', '.join(broadcast.names)})", span, count_hint(group, broadcast.names, span))  # fmt: skip

    def positional(self, expression: Expression, scope: Scope) -> tuple[Coordinate, ...]:
        """The coordinates that a positional remap of an expression maps, in order: a source has axes of its own."""
        while isinstance(expression, Remap | Index | Access):
            expression = expression.base
        is_field = isinstance(expression, Name) and expression.id in RESERVED
        group = None if is_field else self.group(expression, scope)
        return ("x", "y", "time") if group is None else group.positional

    def cache_group(self, call: Call, scope: Scope, owner: str) -> StrandGroup:
        """The outputs of `cache(instance, n)`, whose axis belongs to `owner`."""
        matched = match_arguments("cache", STATE["cache"].params, call.args, call.span)
        instance, _ = (argument for argument in matched if argument is not None)
        shape = self.group(instance, scope) or StrandGroup(("v",), (Closure(instance, scope),))
        axis = StrandRef(owner, "k")
        members = [CacheMember(call, scope, k, len(shape), axis, now) for k, now in enumerate(shape.members)]
        return StrandGroup(shape.names, tuple(members), {"k": axis}, (axis,))


def _is_plain(node: Expression) -> bool:
    """Whether an expression is one strand by its form alone."""
    return isinstance(node, Number) or (isinstance(node, Access) and not is_swizzle(node.output))
