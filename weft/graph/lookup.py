"""Name resolution: what every name in a text refers to, and the errors about names. Nothing is evaluated here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

from weft.errors import Diagnostic, Source, Span, WeftError, did_you_mean, error
from weft.graph.calls import constant_arguments, means_word
from weft.graph.domain import ALL_FIELDS, BASES, FIELDS, FIXED_FIELDS, Coordinate, Field
from weft.graph.patch import BundlePart, Expanded, FromParameter, FromSource, Patch
from weft.graph.scope import (
    Closure, Local, Member, Scope, SourceMember, StrandGroup, StrandMember, instance_group, strands
)
from weft.keys import KEYS, MOUSE
from weft.names import COUNT, POSITIONS, RESERVED, SentName, count_of
from weft.ops import BUILTINS, CONSTANTS, STATE, WORDS
from weft.sources import SOURCES, SourceParam, SourceSpec
from weft.syntax.ast import (
    Access, Assignment, Binary, Call, CallBinding, Comprehension, Expression, For, Ident, Map, Name, Number,
    SpindleDefinition, Text, Walkable, children, literal_number
)
from weft.syntax.foreign import CALLS, FORMS, STRANDS, hint_for
from weft.syntax.includes import libraries_with, place_for_use, spindles_of

MAX_COPIES = 64

# The most comparisons of unknown names with known ones in one patch. They take some 0.1 s.
_MOST_COMPARED = 100_000


class NameLookup:
    """What the names of one patch refer to."""

    def __init__(self, patch: Patch, constant: Callable[[Expression, Scope], float | None]) -> None:
        """`constant` gives the number of an expression that has to be a constant; None if nothing is known about it."""
        self.patch = patch
        self._constant = constant
        self._instances: dict[str, StrandGroup] = {}
        self._suggested: dict[tuple[str, SpindleDefinition | None], str | None] = {}
        self._compared = 0

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
        if name.id in self.patch.instances and not in_library(scope):
            return self.instance(name.id)
        if name.id in CONSTANTS:
            return CONSTANTS[name.id]
        source = SOURCES.get(name.id)
        if source is not None and source.is_named and name.id not in self.patch.spindles:
            return self._named_source(source, name)
        raise self._unknown_strand(name, scope)

    def _named_source(self, source: SourceSpec, name: Name) -> StrandGroup:
        """The outputs of a source that is read by its name alone."""
        if name.id not in self._instances:
            call, scope, outputs = Call(name, (), name.span), Scope(name.id), source.outputs
            members = tuple(SourceMember(call, output, plane, scope) for plane, output in enumerate(outputs))
            self._instances[name.id] = StrandGroup(outputs, members)
        return self._instances[name.id]

    def _unknown_strand(self, name: Name, scope: Scope) -> Exception:
        if name.id in RESERVED:
            return error("incomplete-name", f'"{name.id}" needs a field', name.span, RESERVED[name.id])
        if self.callable_named(name.id, scope):
            return error("call-without-arguments", f'"{name.id}" is a call and needs its arguments', name.span,
                         f"write {name.id}(…)")  # fmt: skip
        field = f"me@{name.id}" if name.id in ALL_FIELDS else STRANDS.get(name.id)
        if field is not None:
            return error("unknown-strand", f'there is no strand "{name.id}"', name.span, f"write {field}",
                         fix=(name.span, field))  # fmt: skip
        known = chain(scope.names(), self.patch.instances, CONSTANTS)
        hint = self._near(name.id, known, scope) or hint_for(name.id)
        return error("unknown-strand", f'there is no strand "{name.id}"', name.span, hint)

    def check_callee(self, call: Call, scope: Scope) -> None:
        """Raises WeftError for a remap by position of an unknown name, and for what `|>` cannot call."""
        callee = call.callee
        self._check_known(callee, scope)
        if call.is_piped:
            what = f'"{callee.span.text}" is a strand, and `|>` hands its left side to a call'
            raise error("pipe-needs-a-call", what, callee.span, "to remap the left side: |> (me@x ~ …)")

    def _check_known(self, callee: Expression, scope: Scope) -> None:
        if not isinstance(callee, Name) or scope.get(callee.id) is not None or scope.is_assigned_later(callee.id):
            return
        if callee.id in self.patch.instances or callee.id in CONSTANTS:
            return
        if callee.id in RESERVED:
            raise error("incomplete-name", f'"{callee.id}" needs a field', callee.span, RESERVED[callee.id])
        fix: tuple[Span, str] | None = None
        if libraries := libraries_with(callee.id):
            line = f"#use {libraries[0]}"
            others = [*libraries[1:], *([FORMS[callee.id]] if callee.id in FORMS else [])]
            hint: str | None = "; or ".join([f"write {line} at the top", *others])
            if not others and not self._means_more_with(libraries[0], callee.span.source):
                fix = place_for_use(callee.span.source), f"{line}\n"
        elif hint := hint_for(callee.id):
            meant = CALLS.get(callee.id, "")
            if (found := libraries_with(meant)) and meant not in self.patch.spindles:
                hint += f", with #use {found[0]} at the top"
        else:
            known = chain(self.patch.spindles, BUILTINS, STATE, SOURCES, scope.names(), self.patch.instances)
            hint = self._near(callee.id, known, scope)
        raise error("unknown-call", f'there is no spindle or builtin "{callee.id}"', callee.span, hint, fix=fix)

    def _means_more_with(self, library: str, source: Source) -> bool:
        """Whether calls in a text that have a meaning would have another one with a library."""
        known = {*self.patch.instances, *BUILTINS, *STATE, *SOURCES, *WORDS}.intersection(spindles_of(library))
        return any(re.search(rf"\b{name}\s*\(", source.text) for name in known)

    def unknown_names(self, node: Walkable, scope: Scope) -> Iterator[Diagnostic]:
        """The errors about unknown names in an expression or statement, even if it cannot be evaluated. Names in loops
        and comprehensions are left out, since variables hide others there."""
        waiting = [node]
        while waiting:
            node = waiting.pop()
            waiting += reversed(self._read_by_itself(node, scope))
            try:
                if isinstance(node, Name):
                    self.strand(node, scope)
                elif isinstance(node, Call) and self.is_remap(node, scope):
                    self._check_known(node.callee, scope)
            except WeftError as failure:
                yield from (found for found in failure.diagnostics if found.code != "read-before-assignment")

    def _read_by_itself(self, node: Walkable, scope: Scope) -> Sequence[Walkable]:
        """The parts of a node whose names are strands, wherever the node is."""
        match node:
            case Comprehension() | For():
                return ()
            case Access(base=Name(id=name)) if name in RESERVED and scope.get(name) is None:
                return ()
            case Call(callee=Name(), args=args):
                return [argument.value for argument in args]
        return children(node)

    def _near(self, name: str, known: Iterable[str], scope: Scope) -> str | None:
        """A hint with the name that was probably meant. Each unknown name is compared once in each spindle, until the
        patch has used up its comparisons: of many mistakes, only the first get a hint."""
        place = (name, scope.chain[-1] if scope.chain else None)
        if place not in self._suggested and self._compared < _MOST_COMPARED:
            names = [each for each in known if not each.startswith("_")]
            self._compared += len(names)
            self._suggested[place] = did_you_mean(name, names)
        return self._suggested.get(place)

    def sent(self, call: Call, spec: SourceSpec, output: str, scope: Scope) -> SentName:
        """An output of a source that others send. Its arguments are constants, such as the index of a comprehension. In
        a spindle that is never called they are unknown, and count as the usual ones."""

        def number(node: Expression, param: SourceParam) -> float | None:
            known = literal_number(node)
            if known is not None or isinstance(node, Text):
                return known
            try:
                found = self._constant(node, scope.broadcast_over(None))
            except WeftError as failure:
                if failure.diagnostics[0].code != "not-constant":
                    raise
                return None
            return float(param.default or 0) if found is None else found

        return SentName(spec.name, constant_arguments(call, spec, number), output)

    def instance(self, name: str) -> StrandGroup:
        """The group of an instance of the patch."""
        if name not in self._instances:
            self._instances[name] = instance_group(self.patch.instances[name])
        return self._instances[name]

    def callable_named(self, name: str, scope: Scope) -> SpindleDefinition | str | None:
        """What a call of this name reaches: a spindle, or `builtin`, `state`, `source`; None if none of these. Inside a
        spindle that has the name of a builtin, that name means the builtin. So it does everywhere in the library, which
        does not know the patch."""
        spindle = self.patch.spindles.get(name)
        inside = bool(scope.chain) and scope.chain[-1] is spindle
        if spindle is not None and not inside and (spindle.span.source.library or not in_library(scope)):
            return spindle
        return _kind_of(name) or spindle

    def called(self, call: Call, scope: Scope) -> SpindleDefinition | str | None:
        """What a call without `~` reaches; None if it is a positional remap of a strand."""
        if not isinstance(call.callee, Name):
            return None
        name = call.callee.id
        if scope.get(name) is not None and not scope.is_assigned_later(name):
            return None
        word = WORDS.get(name)
        if word is None:
            return self.callable_named(name, scope)
        if name in self.patch.instances and not in_library(scope):
            return None
        found = self.callable_named(name, scope)
        if isinstance(found, SpindleDefinition):
            return found if in_library(scope) or not means_word(call, found) else "word"
        return "word" if word.fits(len(call.args)) or found is None else found

    def is_remap(self, call: Call, scope: Scope) -> bool:
        """Whether a call without `~` remaps a strand by position."""
        return self.called(call, scope) is None


def _kind_of(name: str) -> str | None:
    """What a call of a name reaches, apart from spindles. Packages may have added sources since this was imported."""
    kinds = {"builtin": BUILTINS, "state": STATE, "source": SOURCES, "word": WORDS}
    return next((kind for kind, names in kinds.items() if name in names), None)


def in_library(scope: Scope) -> bool:
    """Whether an expression is in the body of a spindle that ships with weft."""
    return bool(scope.chain) and scope.chain[-1].span.source.library


def check_bound(outputs: Sequence[Ident], available: int, hint: str | None = None) -> None:
    """Raises WeftError if a call binding names more outputs than there are."""
    if len(outputs) > available:
        extra = outputs[available]
        raise too_many_outputs(available, extra.name, extra.span, hint)


def too_many_outputs(available: int, name: str, span: Span, hint: str | None = None) -> WeftError:
    """The error for the first output that gets no value."""
    many = f"{available} output{'s' * (available != 1)}"
    return error("too-many-outputs", f'this has {many}, so nothing is left for "{name}"', span, hint)


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


def assigned_value(statement: Assignment, starts_at_0: bool = False) -> Expression:
    """The expression of an assignment; `a += e` reads the a from before, or 0 if that `starts_at_0`."""
    if statement.op == "=":
        return statement.value
    before: Expression = Name(statement.name.name, statement.name.span)
    if starts_at_0:
        before = Number(0.0, statement.name.span)
    elif (member := statement.member) is not None:
        before = Access(before, member.name, member.span, before.span.to(member.span))
    return Binary(statement.op[0], before, statement.value, statement.span)


# --- the fields of `me`, `mouse` and `key`, and what a map moves ---

RESERVED_FIELDS: Mapping[str, Sequence[str]] = {"me": ALL_FIELDS, "mouse": tuple(MOUSE), "key": tuple(KEYS)}

# What else may be written after `me@` for the time of day.
CLOCKS: Mapping[str, str] = {
    "date": "me@year, me@month, me@day and me@weekday are the date",
    "hour": "floor(me@daytime / 3600) is the hour", "hours": "floor(me@daytime / 3600) is the hour",
    "minute": "floor(me@daytime / 60) % 60 is the minute", "minutes": "floor(me@daytime / 60) % 60 is the minute",
    "second": "floor(me@daytime) % 60 is the second", "clock": "me@daytime is the time of day, in seconds",
    "now": "me@daytime is the time of day, in seconds", "timeofday": "me@daytime is the time of day, in seconds",
}  # fmt: skip

# The most names that a hint lists.
_MOST_LISTED = 24


def no_output(owner: str, node: Access, known: Sequence[str]) -> WeftError:
    """The error for an access to an output that does not exist."""
    listed = (*BASES, *FIELDS) if owner == "me" else known
    shown = f"it has {', '.join(listed)}" if len(listed) <= _MOST_LISTED else None
    if tuple(listed) == ("val",):  # a name that the text does not contain
        shown = f"it is one strand: leave `@{node.output}` out"
    what = f"there is no {owner}@{node.output}" if owner in RESERVED else f'{owner} has no output "{node.output}"'
    hint = CLOCKS.get(node.output) if owner == "me" else None
    return error("unknown-output", what, node.output_span, hint or did_you_mean(node.output, known) or shown)


# Names by which the sound of a film may be meant.
_SOUNDS = ("l", "left", "right")


def no_member(group: StrandGroup | None, node: Access) -> WeftError:
    """The error for an access to a member that a bundle, or a single strand, does not have."""
    if node.output == COUNT:
        return error("no-count", "this is nothing that is counted", node.span,
                     "osc(…), midi_…(…), key@a, mouse@left, pad@a and a #button are; count(b) counts strands")
    if group is not None and node.output in _SOUNDS and {"width", "seconds"} <= group.sizes.keys():
        words = f'{node.base.span.text} has no output "{node.output}", it is the picture of a film'
        return error("unknown-output", words, node.output_span, 'its sound is load("…")::s<l, r>')
    if group is not None and any(group.names):
        return no_output(node.base.span.text, node, tuple(n for n in group.names if n) + tuple(group.axes))
    if group is None or len(group) == 1:
        return error("no-outputs", f'this has no output "{node.output}", it is a single value', node.span,
                     did_you_mean(node.output, [COUNT]) or f"leave `@{node.output}` out")
    letters = ", ".join(f"@{letter}" for letter in POSITIONS[0][: len(group)])
    return error("unknown-output", f'this is {strands(group)} without names, and has no "{node.output}"',
                 node.output_span, f"they are [0] to [{len(group) - 1}], or {letters}")  # fmt: skip


# --- counts of events ---

# The buttons of the mouse, which are pressed; its other fields are places.
_PRESSED = ("down", "left", "right")


GroupOf: TypeAlias = Callable[[Expression, Scope], StrandGroup | None]
"""What gives the strands of an expression."""


def counted(node: Expression, scope: Scope, lookup: NameLookup, group_of: GroupOf) -> str | None:
    """The name of the input that counts the events of an expression: messages of a source, presses of a key, or of a
    button of the mouse or a gamepad. None if it has none."""
    if isinstance(node, Access) and is_field(node, scope):
        owner = node.base.id if isinstance(node.base, Name) else ""
        known: Sequence[str] = {"key": tuple(KEYS), "mouse": _PRESSED}.get(owner, ())
        if owner == "key" and node.output not in known:
            raise no_output(owner, node, known)
        return count_of(f"{owner}@{node.output}") if node.output in known else None
    found: Local | Member | float | None
    if isinstance(node, Access):
        group = group_of(node.base, scope)
        place = None if group is None else group.place(node.output)
        found = None if group is None or place is None else group.members[place]
    else:
        found = lookup.strand(node, scope) if isinstance(node, Name) else group_of(node, scope)
    if not isinstance(found, StrandGroup):
        return None if found is None else _counted_member(found, lookup, group_of)
    # Of several strands, those of one source are counted together.
    names = {_counted_member(member, lookup, group_of) for member in found.members}
    return names.pop() if len(names) == 1 else None


def _counted_member(member: Local | Member | float, lookup: NameLookup, group_of: GroupOf) -> str | None:
    match member:
        case Closure(value, inside):
            return counted(value, inside, lookup, group_of)
        case SourceMember(call, output, _, inside):
            return _counted_source(call, output, inside, lookup)
        case StrandMember(ref):
            match lookup.patch.instances[ref.instance].outputs[ref.output].definition:
                case FromSource(call, spec, plane):
                    return _counted_source(call, (*spec.outputs, *spec.further)[plane], Scope(ref.instance), lookup)
                case FromParameter():
                    kinds = {each.name.name: each.kind for each in lookup.patch.parameters}
                    return count_of(str(ref)) if kinds.get(ref.instance) == "button" else None
                case Expanded(value):
                    return counted(value, Scope(str(ref)), lookup, group_of)
                case BundlePart(value, index, path):
                    group = group_of(value, Scope(path))
                    if group is None:
                        return counted(value, Scope(path), lookup, group_of)
                    return _counted_member(group.members[index], lookup, group_of) if index < len(group) else None
    return None


def _counted_source(call: Call, output: str, scope: Scope, lookup: NameLookup) -> str | None:
    spec = SOURCES[call.name]
    if COUNT in spec.further:
        return lookup.sent(call, spec, COUNT, scope).name
    return lookup.sent(call, spec, count_of(output), scope).name if output in spec.events else None


# The derived field that is moved, if it is one; its base coordinate, or the axis; and the expression of the value.
Target: TypeAlias = tuple[Field | None, Coordinate, Expression]


def is_field(node: Access, scope: Scope) -> bool:
    """Whether an access reads a field of `me`, `mouse` or `key`."""
    return isinstance(node.base, Name) and node.base.id in RESERVED and scope.get(node.base.id) is None


def map_target(target: Access, group_of: Callable[[Expression], StrandGroup | None]) -> tuple[Field | None, Coordinate]:
    """The derived field that a map names, if it names one, and the base coordinate or axis that it moves. `group_of`
    gives the strands of an expression."""
    owner = target.base.id if isinstance(target.base, Name) else ""
    if owner == "me" and target.output not in ALL_FIELDS and target.base.span == target.output_span:
        raise error("bad-map-target", "the left side of `~` is a coordinate, such as me@x", target.span,
                    did_you_mean(target.output, ALL_FIELDS))  # fmt: skip
    if owner == "me" and target.output not in ALL_FIELDS:
        raise no_output(owner, target, ALL_FIELDS)
    if owner in ("mouse", "key") or (owner == "me" and target.output in FIXED_FIELDS):
        raise error("not-a-coordinate", f"{owner}@{target.output} is the same everywhere, so it cannot be mapped",
                    target.span, "coordinates are x, y, time and what derives from them")  # fmt: skip
    if owner == "me":
        named = FIELDS.get(target.output)
        return named, named.base if named else target.output
    group = group_of(target.base)
    if group is None or target.output not in group.axes:
        raise error("not-a-coordinate", f"{target.span.text} is a strand, not a coordinate", target.span,
                    "a map moves a coordinate: me@x ~ …")  # fmt: skip
    return None, group.axes[target.output]


def time_map(maps: Sequence[Map]) -> Span | None:
    """The place where a list of maps moves the time; None if it does not."""
    moved = (m for m in maps if m.target.output == "abstime"
             or (m.target.output in FIELDS and FIELDS[m.target.output].base == "abstime"))  # fmt: skip
    return next((m.target.span.to(m.value.span) for m in moved), None)
