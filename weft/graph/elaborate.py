"""Elaboration: the meaning of every construct of the language, over any domain of values.

Everything is a function of coordinates, so an expression is evaluated *at* coordinates, which are values of the domain
themselves. A remap evaluates its base at other coordinates; nothing is rewritten.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from types import GeneratorType
from typing import Any, Final, Generic, TypeVar

from weft.errors import Span, WeftError, error, steps_of
from weft.graph.budget import Budget, Within
from weft.graph.calls import (
    PictureSize, called_film, called_letters, called_pattern, called_sound, constant_arguments, match_arguments,
    media_path, sound_of_film, source_text, speed_of, text_as_number
)
from weft.graph.components import reachable
from weft.graph.domain import BASES, FIELDS, Coordinate, Coordinates, Domain, Environment, SlotKey, SlotRequest
from weft.graph.evaluation import Evaluator, Owner, References
from weft.graph.lookup import (
    RESERVED_FIELDS, Target, counted, map_target, no_member, no_output, time_map, too_many_outputs
)
from weft.graph.loops import run_loop
from weft.graph.patch import BundlePart, Expanded, FromCache, FromParameter, FromSource, Patch, Unshaped
from weft.graph.patterns import PatternCall, pattern_value, spend_on_tracks
from weft.graph.recursion import Eventual, Task, run
from weft.graph.resolve import Resolver
from weft.graph.sampling import analysis_value, heard_strand, letters_value, sound_value
from weft.graph.scope import (
    OPEN, CacheMember, Closure, Fixed, HeardStrand, LoopResult, Member, Opaque, PoisonedError, PositionallyRemapped,
    Remapped, Scope, SourceMember, StrandGroup, StrandMember, WordMember, in_scope, positional_axes
)
from weft.graph.state import cached_value, played_cache, stateful_value
from weft.names import COUNT, LiveName, SentName, SoundFile, StrandRef, base_axis
from weft.ops import BINARY, BUILTINS, UNARY, WORDS
from weft.sources import FILM, HIDDEN, NEVER, PICTURE, SOURCES, UNSEEN, MediaHeader
from weft.syntax.ast import Access, Binary, Call, Expression, For, If, Index, Map, Name, Number, Remap, Text, Unary

V = TypeVar("V")

# --- expressions: names, remaps, spreading, calls and instances ---

CYCLE: Final = "cycle"
"""The code of the diagnostic about strands that read one another in a circle."""

# Errors that a map of the time causes, but that are found in the strands that it reaches.
_ABOUT_MAPS = frozenset({"map-reaches-state", "cannot-read-across", "film-time-varies"})

# The plane of pictures and films that is their alpha.
_ALPHA = PICTURE.outputs.index("a")

@dataclass(frozen=True, slots=True)
class _Advance(Generic[V]):
    """How one plane of a slot advances: `update` evaluates the value that it keeps of a tick. `loops` are those in
    which it was asked for."""

    slot: SlotRequest
    plane: int
    update: Callable[[], Eventual[V]]
    loops: tuple[Span, ...]


# The steps of the budget for evaluating an expression or a member.
_STEPS = 6

# The steps for each element that a varying index may choose, in addition to its evaluation.
_STEPS_OF_A_SLOT = 30
_STEPS_OF_A_CHOICE = 6

# Down to this depth, operations are evaluated on Python's stack, which is faster than a task for each.
_DEEPEST = 24


class Elaborator(Evaluator[V]):
    """Evaluates the strands of one patch over one domain.

    Along the way it records what each *owner* refers to. An owner is the strand or sink under evaluation. It also
    records how each state slot advances; `advance` evaluates that, with the slot as the owner. A value that is already
    known is not evaluated again, so its references are recorded only for its first owner. To find all references of an
    owner, follow it to its slots, and each slot to the owners that asked for it.
    """

    def __init__(self, patch: Patch, domain: Domain[V], env: Environment[V], budget: Budget) -> None:
        self.patch = patch
        self.domain = domain
        self.env = env
        self.budget = budget
        self.resolver = Resolver(patch, budget, self._constant)
        self.loops: dict[tuple[V, Span], None] = {}
        """The loops that are not unrolled: the first result of each, with the places in the text for which it was made,
        in this patch or an earlier one. Equal loops have the same result."""
        self.heard: dict[StrandRef, HeardStrand] = {}
        """What analyses hear. It is evaluated separately, so that a sound may depend on what is heard in it."""
        self.slots: dict[SlotKey, SlotRequest] = {}
        self.updates: dict[tuple[SlotKey, int], V] = {}
        self.references: dict[Owner, References] = {}
        self._owners: list[Owner] = []
        self._open: set[StrandRef] = set()
        self._depth = 0
        self._advances: list[_Advance[V]] = []
        self._pending: deque[_Advance[V]] = deque()
        self._strands: dict[tuple[StrandRef, Coordinates[V]], V] = {}
        self._locals: dict[tuple[Member, Coordinates[V]], V] = {}
        self._loops: dict[tuple[For, Scope, Coordinates[V]], dict[str, list[V]]] = {}
        self._scopes: dict[StrandRef, Scope] = {}
        self._firsts: dict[tuple[str, Expression, str], Scope] = {}
        """For each expression over bundles whose members are outputs, the scope of the first output."""
        self._parts: dict[StrandRef, Member] = {}
        self._poisoned: set[StrandRef] = set()
        self._patterns: dict[Call, PatternCall] = {}
        self._retained_slots: Container[SlotKey] = ()
        self._places: dict[Hashable, Coordinates[V]] = {env.own.key: env.own}

    # --- entry points ---------------------------------------------------------------------------------------------

    def strand(self, ref: StrandRef, at: Coordinates[V]) -> V:
        """A strand of the patch. Raises WeftError the first time that it fails, and PoisonedError after that."""
        self._depth = 0
        return run(self._strand(ref, at, None))

    def expression(self, value: Expression, scope: Scope, owner: Owner, at: Coordinates[V]) -> V:
        """An expression that belongs to a sink or another owner that is not an instance."""
        return self.evaluate(partial(self.value, value, scope, at), owner, value.span)

    def evaluate(self, evaluation: Callable[[], Eventual[V]], owner: Owner, span: Span) -> V:
        """The result of an evaluation for an owner. `span` is its place in the text."""
        self._depth, depth = 0, len(self._owners)
        self._owners.append(owner)
        try:
            with self.budget.within(span, "strand"):
                return run(evaluation())
        finally:
            del self._owners[depth:]

    @property
    def has_pending(self) -> bool:
        """Whether there are slots whose advance has not been evaluated yet."""
        return bool(self._pending)

    def advance(self) -> tuple[SlotKey, V]:
        """Evaluates what a plane of the next pending slot keeps, at the slot's own coordinates. Returns the key of the
        slot and the value."""
        pending = self._pending.popleft()
        before = self.budget.spent
        key, span = pending.slot.key, pending.slot.span
        value = self.updates[key, pending.plane] = self.evaluate(pending.update, key, span)
        self.budget.credit(pending.loops, self.budget.spent - before)
        return key, value

    def restart(self, last_first: bool = False) -> None:
        """Makes slots pending again, because the domain now knows more planar slots. These are the slots that are new
        in this patch, and the kept ones that depend on them."""
        users: dict[Owner, list[Owner]] = {}
        for owner, found in self.references.items():
            needed: list[Owner] = [*found.strands, *found.slots, *found.images]
            for each in needed:
                users.setdefault(each, []).append(owner)
            users.setdefault(owner, []).extend((*found.slots, *found.images))  # they share its locals
        changing = reachable([key for key in self.slots if key not in self._retained_slots], users)
        self._strands = {key: value for key, value in self._strands.items() if key[0] not in changing}
        self._locals.clear()
        self._loops.clear()
        again = [advance for advance in self._advances if advance.slot.key in changing]
        self._pending = deque(reversed(again) if last_first else again)

    def known(self, instance: str) -> dict[tuple[StrandRef, Coordinates[V]], V]:
        """The values of the strands of an instance, wherever they have been evaluated."""
        return {key: value for key, value in self._strands.items() if key[0].instance == instance}

    def at_own(self) -> dict[StrandRef, V]:
        """The values of the strands that have been evaluated at their own coordinates."""
        return {ref: value for (ref, at), value in self._strands.items() if at == self.env.own}

    def is_poisoned(self, ref: StrandRef) -> bool:
        """Whether a strand could not be evaluated."""
        return ref in self._poisoned

    def knows(self, ref: StrandRef) -> bool:
        """Whether a strand has been evaluated at its own coordinates."""
        return (ref, self.env.own) in self._strands

    def retain(self, patch: Patch, budget: Budget, kept: Set[str], resolved: Container[str]) -> None:
        """Continues with another patch, which has the same settings. Everything known of the instances in `kept` stays:
        their definitions and all that these mention are the same. The definitions of `resolved` instances are the same
        too, and mention names that refer to the same strands, whose values may differ. Everything else is forgotten."""
        lost = {name for name in self.patch.instances if name not in kept}
        self.patch, self.budget = patch, budget
        self.resolver.retain(patch, budget)
        heard, gone = self._kept_and_gone(kept)
        lost |= {ref.instance for ref in self.heard if ref not in heard}
        self.heard = heard
        for owner in gone:
            self.references.pop(owner, None)
        for found in self.references.values():
            if not gone.isdisjoint(found.asked_by):
                found.asked_by = {owner: None for owner in found.asked_by if owner not in gone}
        if not gone.isdisjoint(self.slots):
            self.slots = {key: slot for key, slot in self.slots.items() if key not in gone}
            self.updates = {key: value for key, value in self.updates.items() if key[0] not in gone}
            self._advances = [advance for advance in self._advances if advance.slot.key not in gone]
        if lost:
            self._strands = {key: value for key, value in self._strands.items() if key[0].instance not in lost}
            forgotten = {name for name in lost if name not in resolved}
            self._scopes = {ref: scope for ref, scope in self._scopes.items() if ref.instance not in forgotten}
            self._firsts = {key: scope for key, scope in self._firsts.items() if key[0] not in forgotten}
            self._parts = {ref: member for ref, member in self._parts.items() if ref.instance not in forgotten}
        self._retained_slots = frozenset(self.slots)
        self._owners, self._open, self._poisoned = [], set(), set()
        self._pending.clear()
        self._locals.clear()
        self._loops.clear()

    def _kept_and_gone(self, kept: Container[str]) -> tuple[dict[StrandRef, HeardStrand], set[Owner]]:
        """What analyses hear, if it needs only instances in `kept`; and the owners that are dropped, with the state
        that no other owner asked for."""
        heard: dict[StrandRef, HeardStrand] = {}
        asked: dict[Owner, Sequence[Owner]] = {
            owner: (*found.slots, *found.images) for owner, found in self.references.items()
        }
        while True:
            staying: list[Owner] = [
                owner for owner in asked
                if isinstance(owner, StrandRef) and (owner.instance in kept or owner in heard)
            ]  # fmt: skip
            alive = reachable(staying, asked)
            gone = {owner for owner in (*asked, *self.slots) if owner not in alive}
            found = {ref for owner, found in self.references.items() if owner not in gone for ref in found.heard}
            if found <= heard.keys():
                return heard, gone
            heard |= {ref: self.heard[ref] for ref in found}

    def note_loop(self, results: Sequence[V], loop: For) -> None:
        if results:
            self.loops[results[0], loop.ends] = None

    def _constant(self, node: Expression, scope: Scope) -> float | None:
        """The number of a constant; None if nothing is known about it. Raises WeftError if it varies."""
        task: Eventual[V] = self._value_later(node, scope, self.env.own)
        value = run(task)
        number = self.domain.nominal(value)
        if number is None and not self.domain.is_unknown(value):
            raise error("not-constant", "this must be a constant: it decides how many there are", node.span)
        return number

    # --- expressions ----------------------------------------------------------------------------------------------

    def value(self, node: Expression, scope: Scope, at: Coordinates[V]) -> Eventual[V]:
        # The most frequent kinds come first. There are no patterns, since these read more of a node than is needed.
        if isinstance(node, Name):
            return self._name(node, scope, at)
        if isinstance(node, Binary):
            return self._operation(BINARY[node.op].name, (node.left, node.right), node.span, scope, at)
        if isinstance(node, Number):
            return self.domain.number(node)
        if isinstance(node, Call):
            return self._call(node, scope, at)
        if isinstance(node, Access):
            return self._access(node, scope, at)
        if isinstance(node, Unary):
            return self._operation(UNARY[node.op].name, (node.operand,), node.span, scope, at)
        if isinstance(node, Remap):
            there = self._coordinates(self._targets(node.maps, scope), scope, at)
            return self._elsewhere(there, partial(self.value, node.base, scope), time_map(node.maps))
        if isinstance(node, If):
            return self._operation("select", (node.condition, node.then, node.otherwise), node.span, scope, at)
        if isinstance(node, Index):
            return self._indexed(node, scope, at)
        if isinstance(node, Text):
            raise text_as_number(node)
        return self._pick(self.resolver.group(node, scope), node, scope, at)

    def _value_later(self, node: Expression, scope: Scope, at: Coordinates[V]) -> Task[V]:
        value: V = yield self.value(node, scope, at)
        return value

    def _operation(
        self, name: str, operands: Sequence[Expression | float], span: Span, scope: Scope, at: Coordinates[V]
    ) -> Eventual[V]:
        """An operation. Its operands are expressions, or numbers for the defaults of parameters. Returns its value if
        all operands are known without a task, else a task."""
        self.budget.spend(_STEPS)
        values: list[Any] = []
        evaluate = self.value if self._depth < _DEEPEST else self._value_later
        self._depth += 1
        for place, operand in enumerate(operands, 1):
            value = self.domain.const(operand) if isinstance(operand, float) else evaluate(operand, scope, at)
            values.append(value)
            if type(value) is GeneratorType:
                self._depth -= 1
                return self._awaited_operation(name, values, operands[place:], span, scope, at)
        self._depth -= 1
        return self.domain.op(name, *values, span=span)

    def _awaited_operation(
        self, name: str, values: list[Any], rest: Sequence[Expression | float], span: Span, scope: Scope,
        at: Coordinates[V],
    ) -> Task[V]:  # fmt: skip
        """The rest of an operation, from the first operand that is a task."""
        values[-1] = yield values[-1]
        for operand in rest:
            if isinstance(operand, float):
                values.append(self.domain.const(operand))
            else:
                values.append((yield self.value(operand, scope, at)))
        return self.domain.op(name, *values, span=span)

    def _name(self, node: Name, scope: Scope, at: Coordinates[V]) -> Eventual[V]:
        found = self.resolver.strand(node, scope)
        if isinstance(found, float):
            return self.domain.const(found, node.span)
        if isinstance(found, Closure) and scope.broadcast is not None and found.scope.broadcast is None:
            if self.resolver.is_open(node, scope):
                return self.domain.unknown()
            found = self.resolver.several(node, scope) or found
        member = self.resolver.pick(found, scope, node.span) if isinstance(found, StrandGroup) else found
        return self.member(member, at, node.span)

    def _access(self, node: Access, scope: Scope, at: Coordinates[V]) -> Eventual[V]:
        base, output = node.base, node.output
        if isinstance(base, Name) and base.id in RESERVED_FIELDS and scope.get(base.id) is None:
            if output not in RESERVED_FIELDS[base.id]:
                raise no_output(base.id, node, RESERVED_FIELDS[base.id])
            return self.env.field(output, at) if base.id == "me" else self.domain.uniform(f"{base.id}@{output}")
        group = self.resolver.base_group(node, scope)
        if group is OPEN:
            return self.domain.unknown()
        if group is not None and output in group.axes:
            return self.axis(group.axes[output], at) or self.domain.const(0.0)
        place = None if group is None else group.place(output)
        if group is not None and place is not None:
            return self.member(group.members[place], at, node.span)
        if group is not None and output in group.sizes:
            return self._size(group.sizes[output], node, at)
        if group is not None and (swizzled := self.resolver.group(node, scope)) is not None:
            return self._pick(swizzled, node, scope, at)
        if output == COUNT and (count := counted(base, scope, self.resolver, self.resolver.group)) is not None:
            return self.domain.uniform(count)
        raise no_member(group, node)

    def _size(self, size: PictureSize, node: Access, at: Coordinates[V]) -> V:
        """The width or height of a picture, which is known from the header of its file; or the seconds of a sound."""
        spec, rate = SOURCES[size.call.name], self.patch.settings["rate"]
        if (called := called_sound(size.call, spec, rate)) is not None:
            return self.domain.op("div", self.domain.uniform(called[0].name), self.domain.const(rate))
        known = self._known(media_path(source_text(size.call, spec)))
        return self.domain.const(float((known.width, known.height, known.seconds)[size.place]), node.span)

    def _pick(self, group: StrandGroup | None, node: Expression, scope: Scope, at: Coordinates[V]) -> Eventual[V]:
        """The one strand of a group that is meant where a number is needed."""
        if group is None:
            raise TypeError("resolution and elaboration disagree about a group")
        return self.member(self.resolver.pick(group, scope, node.span), at, node.span)

    def _indexed(self, node: Index, scope: Scope, at: Coordinates[V]) -> Task[V]:
        """The element at a constant index, or a choice among all elements."""
        domain = self.domain
        index: V = yield self.value(node.index, scope, at)
        group = self.resolver.group(node.base, scope.broadcast_over(None))
        if group is OPEN:
            return domain.unknown()
        members = (Closure(node.base, scope.broadcast_over(None)),) if group is None else group.members

        def element(place: int) -> Eventual[V]:
            return self.member(members[place], at, node.span)

        constant, count = domain.constant(index), len(members)
        if constant is not None and not math.isnan(constant) and not 0 <= constant < count:
            raise error("index-out-of-range", f"there is no [{constant:g}] in {count} element{'s' * (count != 1)}",
                        node.index.span, f"0 to {count - 1} exist" if count > 1 else "one strand is [0]")  # fmt: skip
        chosen: V = yield element(0 if constant is None or math.isnan(constant) else int(constant))
        for place in range(1, count if constant is None else 1):
            self.budget.spend(_STEPS_OF_A_CHOICE)
            other: V = yield element(place)
            reached = domain.op("ge", index, domain.const(float(place)), span=node.span)
            chosen = domain.op("select", reached, other, chosen, span=node.span)
        return chosen

    # --- members of groups, and locals ----------------------------------------------------------------------------

    def member(self, member: Member, at: Coordinates[V], span: Span) -> Eventual[V]:
        match member:
            case StrandMember(ref):
                return self._strand(ref, at, span)
            case Closure():
                known = self._locals.get((member, at))
                return self._local(member, at) if known is None else known
            case CacheMember():
                known = self._locals.get((member, at))
                return self._kept(member, cached_value(self, member, at), at) if known is None else known
            case Fixed(fixed):
                value: V = fixed
                return value
            case LoopResult(loop, scope, name, index):
                results = self._loops.get((loop, scope, at))
                return self._after_loop(member, at) if results is None else results[name][index]
            case Opaque():
                return self.domain.unknown()
            case WordMember(call, scope, index):
                return self._word_value(call, scope, at, index)
            case SourceMember(call, _, plane, scope, axis):
                return self._source(call, plane, at, axis, scope)
            case Remapped(inner, maps, scope):
                there = self._coordinates(self._targets(maps, scope), scope, at)
                return self._elsewhere(there, partial(self.member, inner, span=span), time_map(maps))
            case PositionallyRemapped(inner, axes, called_at, scope):
                return self._positionally(axes, scope, at, partial(self.member, inner, span=span), called_at)

    def _local(self, closure: Closure, at: Coordinates[V]) -> Eventual[V]:
        self.budget.spend(_STEPS)
        evaluate = self.value if self._depth < _DEEPEST else self._value_later
        self._depth += 1
        found: Any = evaluate(closure.value, closure.scope, at)
        self._depth -= 1
        if type(found) is GeneratorType:
            return self._kept(closure, found, at)
        value: V = found
        self._locals[closure, at] = value
        if closure.name:
            self.domain.annotate(value, closure.name, local=True)
        return value

    def _kept(self, member: Closure | CacheMember, task: Task[V], at: Coordinates[V]) -> Task[V]:
        value: V = yield task
        self._locals[member, at] = value
        if isinstance(member, Closure) and member.name:
            self.domain.annotate(value, member.name, local=True)
        return value

    def _after_loop(self, result: LoopResult, at: Coordinates[V]) -> Task[V]:
        self.budget.spend(_STEPS)
        values = yield run_loop(self, result.loop, result.scope, at)
        self._loops[result.loop, result.scope, at] = values
        value: V = values[result.name][result.index]
        return value

    # --- instances ------------------------------------------------------------------------------------------------

    def _references(self) -> References | None:
        """The references of the current owner."""
        if not self._owners:
            return None
        return self.references.get(self._owners[-1]) or self.references.setdefault(self._owners[-1], References())

    def _strand(self, ref: StrandRef, at: Coordinates[V], span: Span | None) -> Eventual[V]:
        """A strand of the patch. `span` is the place in the text that reads it; None if nothing reads it."""
        if span is not None and (references := self._references()) is not None:
            references.strands.setdefault(ref, span)
        if ref in self._poisoned:
            raise PoisonedError
        known = self._strands.get((ref, at))
        return self._evaluated_strand(ref, at, span) if known is None else known

    def _evaluated_strand(self, ref: StrandRef, at: Coordinates[V], span: Span | None) -> Task[V]:
        self.budget.spend(_STEPS)
        value: V | None
        if (heard := self.heard.get(ref)) is not None:
            self._owners.append(ref)
            try:
                value = yield self.value(heard.value, heard.scope, at)
            except WeftError:
                self._poisoned.add(ref)
                raise
            finally:
                self._owners.pop()
            self._strands[ref, at] = value
            return value
        outputs = self.patch.instances[ref.instance].outputs
        output = outputs[ref.output]
        if isinstance(output.definition, FromCache) and (kept := self.domain.ticks_played(ref)):
            scope = self._scopes.setdefault(ref, Scope(ref.instance))
            value = yield played_cache(self, ref, output.definition.call, scope, at, kept, span or output.span)
        else:
            value = self.domain.external(ref, at, span or output.span)
        if value is None:
            if ref in self._open:
                self._raise_cycle(ref)
            self._owners.append(ref)
            self._open.add(ref)
            try:
                with self.budget.within(output.span, "strand"):
                    value = yield self._defined(ref, at)
            except WeftError:
                self._poisoned.add(ref)
                raise
            finally:
                self._owners.pop()
                self._open.discard(ref)
        self._strands[ref, at] = value
        self.domain.annotate(value, ref.short if len(outputs) > 1 else ref.instance, local=False)
        return value

    def _raise_cycle(self, ref: StrandRef) -> None:
        path = [o for o in self._owners[self._owners.index(ref) :] if isinstance(o, StrandRef)]
        self._poisoned.update(path)
        raise self.cycle([*path, ref])

    def cycle(self, steps: Sequence[StrandRef]) -> WeftError:
        """The error for a circle of strands: each reads the next one, and the last is the first."""
        reads = [(self.references[a].strands[b], f"{a.short} reads {b.short} here") for a, b in pairwise(steps)]
        hint = "prev(…) reads the value of one tick ago, which makes feedback possible"
        if len(steps) == 2:
            hint = f"prev({steps[0].short}) is its value of one tick ago; only in a spindle a name gets a new value"
        return error(
            CYCLE, f"{steps[0].short} depends on itself: {steps_of([step.short for step in steps])}", reads[-1][0],
            hint, reads[:-1],
        )  # fmt: skip

    def _defined(self, ref: StrandRef, at: Coordinates[V]) -> Eventual[V]:
        """A strand by its definition."""
        output = self.patch.instances[ref.instance].outputs[ref.output]
        scope = self._scopes.get(ref)
        match output.definition:
            case Expanded(expression, broadcast):
                scope = scope or self._scopes.setdefault(ref, Scope(str(ref), broadcast=broadcast))
                return self.value(expression, scope, at)
            case BundlePart(expression, index, path):
                # One for each output, since references are not recorded for a second owner of a known value.
                scope = scope or self._scopes.setdefault(ref, Scope(path))
                first = self._firsts.setdefault((ref.instance, expression, path), scope)
                group = self.resolver.group(expression, first)
                if index >= (1 if group is None else len(group)):
                    raise too_many_outputs(1 if group is None else len(group), ref.output, output.span)
                if group is None:
                    return self.value(expression, scope, at)
                member = self._parts.get(ref) or in_scope(group.members[index], first, scope)
                if member is None:
                    group = self.resolver.group(expression, scope)
                    assert group is not None
                    member = group.members[index]
                elif self.resolver.is_known(expression, first):
                    self._parts[ref] = member
                return self.member(member, at, expression.span)
            case FromSource(call, _, plane):
                scope = scope or self._scopes.setdefault(ref, Scope(ref.instance))
                return self._source(call, plane, at, StrandRef(ref.instance, "k"), scope)
            case FromCache(call, plane):
                scope = scope or self._scopes.setdefault(ref, Scope(ref.instance))
                cached = self.resolver.cache_group(call, scope, ref.instance)
                if plane >= len(cached):
                    raise too_many_outputs(len(cached), ref.output, output.span)
                return self.member(cached.members[plane], at, call.span)
            case FromParameter():
                return self.domain.uniform(str(ref))
            case Unshaped():
                raise PoisonedError

    # --- calls ----------------------------------------------------------------------------------------------------

    def _call(self, node: Call, scope: Scope, at: Coordinates[V]) -> Eventual[V]:
        match self.resolver.called(node, scope):
            case None:
                return self._positional_remap(node, scope, at)
            case "builtin":
                spec = BUILTINS[node.name]
                matched = match_arguments(node.name, spec.params, node.args, node.span, spec.variadic)
                operands = [float(spec.params[k].default or 0) if a is None else a for k, a in enumerate(matched)]
                return self._operation(spec.name, operands, node.span, scope, at)
            case "state":
                self.budget.spend(_STEPS)
                return stateful_value(self, node, scope, at)
            case "word":
                return self._word(node, scope, at)
        within = self.budget.within(node.span, "call")
        with within:
            value = self._pick(self.resolver.group(node, scope), node, scope, at)
        return _continued(within, value) if type(value) is GeneratorType else value

    def _word(self, node: Call, scope: Scope, at: Coordinates[V]) -> Eventual[V]:
        spec = WORDS[node.name]
        group = self.resolver.group(node, scope)
        if spec.gives == "element":
            return self.value(self.resolver.indexed(node, scope), scope, at)
        if group is not None:
            return self._pick(group, node, scope, at)
        return self._word_value(node, scope, at, None)

    def _word_value(self, node: Call, scope: Scope, at: Coordinates[V], index: int | None) -> Task[V]:
        """What a word gives, or the member of it at `index`."""
        operands = self.resolver.operands(node, scope)
        if operands is None:
            return self.domain.unknown()
        values: list[list[V]] = []
        for operand in operands:
            values.append([])
            for member in operand.members:
                self.budget.spend(_STEPS_OF_A_CHOICE)
                values[-1].append((yield self.member(member, at, node.span)))
        made: Any = WORDS[node.name].value(self.domain, *values)
        value: V = made if index is None else made[index]
        return value

    def _positional_remap(self, node: Call, scope: Scope, at: Coordinates[V]) -> Eventual[V]:
        if isinstance(node.callee, Number):
            raise error("missing-operator", "an operator is missing between these two", node.span,
                        f"for a product, write {node.callee.span.text} * …")  # fmt: skip
        self.resolver.check_callee(node, scope)
        axes = positional_axes(node, self.resolver.positional(node.callee, scope))
        return self._positionally(axes, scope, at, partial(self.value, node.callee, scope), node.span)

    def _source(
        self, call: Call, plane: int, at: Coordinates[V], own_axis: StrandRef | None, scope: Scope
    ) -> V:
        spec = SOURCES[call.name]
        if spec.is_computed:
            if call not in self._patterns:
                self._patterns[call] = called_pattern(call, spec)
                spend_on_tracks(self._patterns[call], self.budget)
            return pattern_value(self._patterns[call], plane, self.env, at, self.budget)
        if (references := self._references()) is not None:
            references.sources.setdefault(call.name, call.span)
        if spec.is_sent:
            output = (*spec.outputs, *spec.further)[plane]
            return self._sent(self.resolver.sent(call, spec, output, scope), at)
        if spec.is_drawn:
            letters, size = called_letters(call, spec)
            return letters_value(
                letters, size, self._known(letters.name), plane, self.env, self.domain, at, call.span
            )
        if spec.is_live:
            name = LiveName(spec.name, constant_arguments(call, spec)).name
            self._known(name)
            return self.domain.picture(name, plane, at.x, at.y, call.span)
        if spec.media and (called := called_sound(call, spec, self.patch.settings["rate"])) is not None:
            speed_of(call, spec)
            sound, repeats = called
            return self._sound(sound, repeats, plane, at, call.span)
        if spec.media and (film := called_film(call, spec, lambda path: self._known(path).moves)) is not None:
            if (channel := plane - len(FILM.outputs)) >= 0:
                sound = sound_of_film(film, self.patch.settings["rate"])
                return self._sound(sound, film.loops, channel, at, call.span)
            if references is not None:
                references.sources.setdefault(FILM.name, call.span)
            then = at
            if (speed := speed_of(call, spec)) != 1:
                domain = self.domain
                then = at.moved({"abstime": domain.op("mul", at.abstime, domain.const(speed))})
            return self._colour(film.path, plane, lambda each: self.domain.film(film, each, then, call.span))
        axis = self.axis(own_axis, at) if own_axis and "k" in spec.axes else None
        if spec.is_analysis:
            ref, heard = heard_strand(call, scope, self.resolver)
            self.heard.setdefault(ref, heard)
            if references is not None:
                references.heard[ref] = None
            return analysis_value(call, ref, plane, axis, self.env, self.domain.picture, at)
        if spec.media:
            speed_of(call, spec)
            path = media_path(source_text(call, spec))
            return self._colour(path, plane, lambda each: self.domain.source(call, spec, each, axis, at))
        return self.domain.source(call, spec, plane, axis, at)

    def _colour(self, path: str, plane: int, read: Callable[[int], V]) -> V:
        """A plane of a picture or film. If it has an alpha, its colours are stored multiplied by it."""
        if plane == _ALPHA or not self._known(path).has_alpha:
            return read(plane)
        op, const = self.domain.op, self.domain.const
        return op("div", read(plane), op("max", read(_ALPHA), const(HIDDEN)))

    def _sent(self, sent: SentName, at: Coordinates[V]) -> V:
        """A number that others send. A number that runs is sent as the moment since which it runs, counted from a time
        long ago, so that 0 means never."""
        value = self.domain.uniform(sent.name)
        if sent.output not in SOURCES[sent.source].running:
            return value
        ops = self.env.ops
        return ops("max", ops("sub", ops("add", at.abstime, NEVER), value), 0.0)

    def _sound(self, sound: SoundFile, repeats: bool, channel: int, at: Coordinates[V], span: Span) -> V:
        """A channel of a sound, or of that of a film."""
        known = self._known(sound.path).channels
        if not known:
            raise error("no-sound", "this film has no sound", span, 'bind its picture alone: load("…")::f<r, g, b>')
        return sound_value(sound, repeats, 0 if known == 1 else channel, self.domain, at, span)

    def _known(self, name: str) -> MediaHeader:
        """The header of a picture or sound by its name."""
        known = self.patch.media.get(name, UNSEEN)
        if known is None:  # it cannot be read, which is reported
            raise PoisonedError
        return known

    # --- remaps ---------------------------------------------------------------------------------------------------

    def _elsewhere(
        self, there: Task[Coordinates[V]], evaluate: Callable[[Coordinates[V]], Eventual[V]], time_moved: Span | None
    ) -> Task[V]:
        """The result of `evaluate` at other coordinates. If something cannot be read at another time, the error is
        moved to the map that moves the time, because that has to be changed."""
        if time_moved is not None and (references := self._references()) is not None:
            references.maps_time = True
        moved: Coordinates[V] = yield there
        try:
            value: V = yield evaluate(moved)
        except WeftError as failure:
            found = failure.diagnostics[0]
            if time_moved is None or found.code not in _ABOUT_MAPS or found.related or found.span is None:
                raise
            related = ((found.span, "this is what it reaches"),)
            raise WeftError(replace(found, span=time_moved, related=related)) from None
        return value

    def _positionally(
        self, axes: Sequence[tuple[Coordinate, Expression]], scope: Scope, at: Coordinates[V],
        evaluate: Callable[[Coordinates[V]], Eventual[V]], span: Span,
    ) -> Task[V]:  # fmt: skip
        named = [FIELDS.get(axis) if isinstance(axis, str) else None for axis, _ in axes]
        targets = [(f, f.base if f else axis, value) for f, (axis, value) in zip(named, axes, strict=True)]
        time_moved = span if any(axis == "time" for axis, _ in axes) else None
        return self._elsewhere(self._coordinates(targets, scope, at), evaluate, time_moved)

    def _targets(self, maps: Sequence[Map], scope: Scope) -> Iterator[Target]:
        """What each map moves, and to where."""
        placed: dict[Coordinate, Span] = {}
        for item in maps:
            named, moves = map_target(item.target, lambda base: self.resolver.group(base, scope))
            if moves in placed:
                raise error("double-map", f"two maps move {'me@' if moves in BASES else ''}{moves}", item.target.span,
                            "combine them into one", [(placed[moves], "the other one")])  # fmt: skip
            placed[moves] = item.target.span
            yield named, moves, item.value

    def _coordinates(self, targets: Iterable[Target], scope: Scope, at: Coordinates[V]) -> Task[Coordinates[V]]:
        """The coordinates inside a remap. All maps are evaluated at the coordinates outside of it."""
        moved: dict[Coordinate, V] = {}
        for named, moves, expression in targets:
            value: V = yield self.value(expression, scope, at)
            moved[moves] = named.inverse(self.env, at, value) if named else value
            if moves != "abstime" and (references := self._references()) is not None:
                references.maps[moves if isinstance(moves, StrandRef) else base_axis(moves)] = None
        self.budget.spend(_STEPS)
        return self.placed(at.moved(moved))

    def placed(self, at: Coordinates[V]) -> Coordinates[V]:
        return self._places.setdefault(at.key, at)

    # --- state ----------------------------------------------------------------------------------------------------

    def axis(self, ref: StrandRef, at: Coordinates[V]) -> V | None:
        if (references := self._references()) is not None:
            references.axes[ref] = None
        return at.axis(ref)

    def keep_image(self, image: SlotRequest, update: Callable[[], Eventual[V]]) -> None:
        if (references := self._references()) is not None:
            references.images[image.key] = None
        self._keep(image, [update])

    def has_image(self, key: SlotKey) -> bool:
        references = self._references()
        return key in (self.slots if references is None else references.images)

    def remember(self, slot: SlotRequest, updates: Sequence[Callable[[], Eventual[V]]]) -> None:
        if (references := self._references()) is not None:
            references.slots[slot.key] = None
            self.references.setdefault(slot.key, References()).asked_by[self._owners[-1]] = None
        self._keep(slot, updates)

    def _keep(self, slot: SlotRequest, updates: Sequence[Callable[[], Eventual[V]]]) -> None:
        if slot.key not in self.slots:
            self.budget.spend(_STEPS_OF_A_SLOT)
            self.slots[slot.key] = slot
            loops = self.budget.loops
            advances = [_Advance(slot, plane, update, loops) for plane, update in enumerate(updates)]
            self._advances += advances
            self._pending += advances


def _continued(within: Within, task: Task[V]) -> Task[V]:
    """The rest of a task, for a part of the text whose evaluation has begun."""
    with within:
        value: V = yield task
    return value
