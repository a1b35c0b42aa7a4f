"""Calls that mean something else in another language, where the same name does something else.

Such a call compiles, and only its arguments show that something else was meant: `normalize(<1, 2, 3>)` of a vector,
`noise(3, 0.1)` of a scale and a speed. Nothing is elaborated for that. What an expression is, is found from the text
alone: the names of its members, where several are written or bound, and nothing if that is not plain from the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from weft.errors import Diagnostic
from weft.graph.affected import words_of
from weft.ops import BUILTINS, WORDS
from weft.syntax.ast import (
    Access, Assignment, Binary, Binding, Bundle, Call, CallBinding, Expression, For, If, Name, Parameter, Program,
    Remap, SpindleDefinition, Statement, Unary, literal_number, walk, walk_statement
)
from weft.syntax.foreign import FALSE_FRIENDS, PICTURE_WORDS, FalseFriend

Members: TypeAlias = tuple[str, ...]
"""The names of the members of a bundle, empty for a member without one; no members for anything else."""

_ONE: Final[Members] = ()

# The names of members by which a bundle is a place or a direction, or a colour.
_OF_PLACES: Final = {("x", "y"), ("x", "y", "z")}
_OF_COLOURS: Final = {("r", "g", "b"), ("r", "g", "b", "a")}

# The members of a place, if they have no names.
_ACROSS, _DOWN = frozenset({"x", "px", "u"}), frozenset({"y", "py", "v"})

# What is deeper than this is not plain.
_DEEPEST: Final = 100

# Words that keep a direction a direction, or make one.
_OF_DIRECTIONS: Final = frozenset({"unit", "cross"})

# Words for bundles that give as many members as they are given.
_KEPT: Final = _OF_DIRECTIONS | {"reverse"}


def false_friends(program: Program) -> Iterator[Diagnostic]:
    """The warnings about the calls of a patch that look as if another language was meant."""
    names = _Names(program)
    for statement in program.statements:
        if not statement.span.source.library and names.watched & words_of(statement):
            names.enter(statement)
            for node in walk_statement(statement):
                if isinstance(node, Call) and (found := names.warning(node)) is not None:
                    yield found


class _Names:
    """What names mean in a program, and within one statement of it."""

    def __init__(self, program: Program) -> None:
        self._spindles: dict[str, SpindleDefinition] = {}
        self._bound: dict[str, Members | Expression] = {}
        for statement in program.statements:
            match statement:
                case SpindleDefinition(name=name):
                    if name.name not in self._spindles or not statement.span.source.library:
                        self._spindles[name.name] = statement
                case CallBinding(name=name, outputs=outputs) | Parameter(name=name, outputs=outputs):
                    self._bound[name.name] = tuple(output.name for output in outputs)
                case Binding(name=name, outputs=outputs, value=value):
                    self._bound[name.name] = value if outputs is None else tuple(output.name for output in outputs)
        self._placed = {name for name, spindle in self._spindles.items() if _takes_place(spindle)}
        self.watched = FALSE_FRIENDS.keys() | self._placed | PICTURE_WORDS.keys()
        self._locals: Mapping[str, Members | Expression] = {}
        self._found: dict[Expression, Members] = {}
        self._depth = 0
        """How many expressions are being looked at, each for one before it."""

    def enter(self, statement: Statement) -> None:
        """Begins with a statement. If it is a spindle, its own names hide others."""
        self._locals, self._found = {}, {}
        if isinstance(statement, SpindleDefinition):
            inner: dict[str, Members | Expression] = {}
            for node in walk_statement(statement):
                if isinstance(node, Assignment) and node.op == "=":
                    inner.setdefault(node.name.name, node.value)
                elif isinstance(node, CallBinding):
                    inner[node.name.name] = tuple(output.name for output in node.outputs)
                elif isinstance(node, For):
                    inner[node.variable.name] = _ONE
            for each in statement.parameters:
                inner[each.name] = tuple(member.name for member in each.members or ())
            self._locals = inner

    # --- what is warned about -------------------------------------------------------------------------------------

    def warning(self, call: Call) -> Diagnostic | None:
        spindle = self._spindles.get(call.name)
        if call.name in self._locals or call.name in self._bound or (spindle and not spindle.span.source.library):
            return None  # a name of the patch's own
        if spindle is None and call.name not in BUILTINS:
            return None
        args = [argument.value for argument in call.args]
        if len(args) > len(BUILTINS[call.name].params if spindle is None else spindle.parameters):
            return None  # an error is reported
        for friend in FALSE_FRIENDS.get(call.name, ()):
            if (friend.library is None) == (spindle is None) and self._is_meant(friend, args):
                return _warned(call, friend.here, friend.hint)
        return self._misplaced(call, spindle) if call.name in self._placed and spindle is not None else None

    def _is_meant(self, friend: FalseFriend, args: Sequence[Expression]) -> bool:
        """Whether the arguments are what another language would give this name."""
        match friend.given:
            case "alone":
                return len(args) == 1
            case "numbers":
                return bool(args) and all(literal_number(arg) is not None for arg in args)
            case "place":
                return len(args) == 1 and self._is_place(args[0])
            case "directions":
                return any(map(self._is_direction, args))
            case "picture":
                return bool(args) and self.members(args[0]) in _OF_COLOURS

    def _misplaced(self, call: Call, spindle: SpindleDefinition) -> Diagnostic | None:
        """The warning about a number, or a picture, where a library's spindle takes a place."""
        first = call.args[0] if call.args else None
        place = spindle.parameters[0].name
        if first is None or first.label not in (None, place):
            return None
        if self.members(first.value) in _OF_COLOURS:
            word = PICTURE_WORDS.get(call.name)
            hint = f"write {word}" if word else "a picture is changed by a remap, or by the words of std.picture"
            return _warned(call, f"{call.name} changes a place, not a picture", hint)
        if literal_number(first.value) is None or first.label is not None:
            return None
        shown, members = first.value.span.text, ", ".join(member.name for member in spindle.parameters[0].members or ())
        others = [parameter.name for parameter in spindle.parameters[1:] if parameter.members is None]
        may_miss = spindle.parameters[0].default is not None and bool(others)
        hint = f"write {call.name}({others[0]}: {shown})" if may_miss else f"write {call.name}(<{members}>, …)"
        return _warned(call, f"{call.name} takes a place first, and one number is each of its {members}", hint)

    # --- what expressions are -------------------------------------------------------------------------------------

    def _is_place(self, node: Expression) -> bool:
        if self.members(node) in _OF_PLACES:
            return True
        bundle = next((part for part in walk(node) if isinstance(part, Bundle)), None)
        if bundle is None or len(self.members(node)) != len(bundle.items):
            return False
        axes = [{part.output for part in walk(item) if isinstance(part, Access)} for item in bundle.items]
        return bool(axes[0] & _ACROSS and axes[1] & _DOWN) if len(axes) in (2, 3) else False

    def _is_direction(self, node: Expression) -> bool:
        """Whether it has the members of a vector in a plane or in space, and none of a picture."""
        members = self.members(node)
        if members in _OF_PLACES or (len(members) == 2 and not any(members)):
            return True
        if len(members) != 3 or any(members):
            return False
        value = self._bound.get(node.id, node) if isinstance(node, Name) else node
        parts = () if isinstance(value, tuple) else walk(value)
        return any(
            isinstance(part, Unary) or (isinstance(part, Call) and part.name in _OF_DIRECTIONS) for part in parts
        )

    def members(self, node: Expression) -> Members:
        """The members of an expression that its text shows."""
        if node not in self._found:
            if self._depth == _DEEPEST:
                return _ONE
            self._depth += 1
            self._found[node] = _ONE  # for names that lead back to this one
            self._found[node] = self._members(node)
            self._depth -= 1
        return self._found[node]

    def _members(self, node: Expression) -> Members:
        match node:
            case Bundle(items=items):
                each = [self.members(item) or ("",) for item in items]
                return tuple(name for members in each for name in members)
            case Name(id=name):
                known = self._locals.get(name, self._bound.get(name, _ONE))
                members = known if isinstance(known, tuple) else self.members(known)
                return members if len(members) > 1 else _ONE
            case Access(base=base, output=output):
                names = self.members(base)
                return tuple(output) if len(output) > 1 and output not in names and set(output) <= {*names} else _ONE
            case Unary(operand=inner) | Remap(base=inner):
                return self.members(inner)
            case Binary(left=left, right=right) | If(then=left, otherwise=right):
                return self._widest(left, right)
            case Call():
                return self._of_call(node)
        return _ONE

    def _of_call(self, call: Call) -> Members:
        args = [argument.value for argument in call.args]
        spindle = self._spindles.get(call.name)
        if spindle is None:
            goes_by_member = call.name in BUILTINS and call.name not in WORDS
            return self._widest(*args) if goes_by_member or call.name in _KEPT else _ONE
        if len(spindle.outputs) > 1:
            return tuple(output.name for output in spindle.outputs)
        single = [arg for arg, parameter in zip(args, spindle.parameters, strict=False) if parameter.members is None]
        return self._widest(*single)

    def _widest(self, *nodes: Expression) -> Members:
        """The members of the one of several expressions that the others are spread over."""
        return max(map(self.members, nodes), key=lambda names: (len(names), any(names)), default=_ONE)


def _takes_place(spindle: SpindleDefinition) -> bool:
    """Whether a spindle of a library has a place as its first parameter."""
    members = spindle.parameters[0].members if spindle.parameters and spindle.span.source.library else None
    return tuple(member.name for member in members or ()) in _OF_PLACES


def _warned(call: Call, message: str, hint: str) -> Diagnostic:
    return Diagnostic.of("false-friend", message, call.span, hint)
