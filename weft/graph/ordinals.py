"""Facts about the syntax of bodies that elaboration asks for again and again."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from weft.graph.order import components
from weft.graph.patch import Expanded, FromCache, FromSource, Part, Patch
from weft.ops import BUILTINS, ieee
from weft.ops.state import STATE
from weft.syntax.ast import (
    Assignment, Binary, BodyStatement, Bundle, Call, CallBinding, Expression, For, If, Index, Name, Number, Remap,
    SpindleDefinition, Unary
)
from weft.syntax.walk import Walkable, children, walk


# A compile asks for those of its patch once for the graph and once for each subgraph; several may run side by side.
@lru_cache(maxsize=4)
def ordinals_of(patch: Patch) -> Ordinals:
    """The ordinals of a patch."""
    return Ordinals(patch)


class Ordinals:
    """Numbers the calls of each callee within each definition, in the order of the text: state is found again after
    an edit by these numbers, so they must not depend on anything outside of the definition."""

    def __init__(self, patch: Patch) -> None:
        self._patch = patch
        self._numbers: dict[Call, int] = {}
        self._facts: dict[tuple[BodyStatement, ...], _Facts] = {}
        self._carried: dict[tuple[BodyStatement, ...], list[str]] = {}
        self._numbered: set[SpindleDefinition] = set()
        for value in _defining(patch):
            self._number([value])
        for sink in patch.sinks:
            self._number(a.value for a in sink.statement.args)

    def number(self, spindle: SpindleDefinition) -> None:
        """Numbers the calls in the body of a spindle, before any of them is asked for. A patch enters few of the
        spindles that libraries have."""
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
        """How many calls of the same name stand before this one in its definition."""
        return self._numbers[call]

    def assigned(self, body: Iterable[BodyStatement]) -> list[str]:
        """Every name that a body assigns, loops included, each once."""
        names: dict[str, None] = {}
        for statement in body:
            match statement:
                case For():
                    names.update(dict.fromkeys(self.assigned(statement.body)))
                case Assignment() | CallBinding():
                    names[statement.name.name] = None
        return list(names)

    def carried(self, body: tuple[BodyStatement, ...]) -> list[str]:
        """The names whose numbers a loop carries from step to step; bundles and bound calls belong to one step."""
        known = self._carried.get(body)
        if known is not None:
            return known
        names: dict[str, None] = {}
        for statement in body:
            match statement:
                case For():
                    names.update(dict.fromkeys(self.carried(statement.body)))
                case Assignment() if not isinstance(statement.value, Bundle):
                    names[statement.name.name] = None
                case _:
                    pass
        self._carried[body] = list(names)
        return self._carried[body]

    def has_state(self, body: tuple[BodyStatement, ...]) -> bool:
        """Whether a body calls something that remembers, itself or through spindles."""
        return self._facts_of(body).has_state

    def size(self, body: tuple[BodyStatement, ...]) -> int:
        """About how many operations one run through a body takes, with the spindles that it calls and the steps of the
        loops in it, as far as these have numbers for ends."""
        return self._facts_of(body).size

    def is_recursive(self, spindle: SpindleDefinition) -> bool:
        """Whether a spindle calls itself, through others or not, as far as names tell."""
        return self._facts_of(spindle.body).is_recursive

    def _facts_of(self, body: tuple[BodyStatement, ...]) -> _Facts:
        if body not in self._facts:
            bodies: dict[tuple[BodyStatement, ...], list[tuple[BodyStatement, ...]]] = {}
            waiting = [body]
            while waiting:
                found = waiting.pop()
                if found not in bodies and found not in self._facts:
                    bodies[found] = self._called(found)
                    waiting += bodies[found]
            # What a body calls comes before it.
            for circle in components(bodies, bodies):
                for each in (body for body in circle if body in bodies):
                    self._facts[each] = self._measured(each, len(circle) > 1 or each in bodies[each])
        return self._facts[body]

    def _called(self, body: tuple[BodyStatement, ...]) -> list[tuple[BodyStatement, ...]]:
        """The bodies of the spindles that a body calls."""
        calls = (node for statement in body for node in walk(statement) if isinstance(node, Call))
        found = (self._spindle(call, body) for call in calls)
        return list(dict.fromkeys(spindle.body for spindle in found if spindle is not None))

    def _spindle(self, call: Call, body: tuple[BodyStatement, ...]) -> SpindleDefinition | None:
        """The spindle that a call in a body reaches, if it is one."""
        name = call.callee.id if isinstance(call.callee, Name) else ""
        spindle = self._patch.spindles.get(name)
        # Inside a spindle that carries a builtin's name, that name means the builtin.
        if spindle is not None and spindle.body is body and (name in BUILTINS or name in STATE):
            return None
        return spindle

    def _measured(self, body: tuple[BodyStatement, ...], is_recursive: bool) -> _Facts:
        size, has_state = 0, False
        # Each with the number of times that it is run through.
        waiting: list[tuple[Walkable, int]] = [(statement, 1) for statement in body]
        while waiting:
            node, times = waiting.pop()
            if isinstance(node, For):
                waiting += [(node.first, times), (node.last, times)]
                times = min(times * _literal_steps(node), _HUGE)
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
        return _Facts(min(size, _HUGE), has_state, is_recursive)


class _Facts(NamedTuple):
    """What is known of a body, with all that it calls."""

    size: int
    has_state: bool
    is_recursive: bool


STEP_SIZE = 8
"""What a step of a loop comes to besides its statements, in operations."""

_HUGE = 10**9
_OPERATIONS = (Binary, Unary, If, Index, Remap, Call, Assignment)


def _literal_steps(loop: For) -> int:
    """How many steps a loop has, if its ends are numbers as they stand there; else 1."""
    first, last = _literal(loop.first), _literal(loop.last)
    return 1 if first is None or last is None else int(min(ieee.steps(first, last), _HUGE))


def _literal(node: Expression) -> float | None:
    match node:
        case Number(value=value):
            return value
        case Unary(op="-", operand=Number(value=value)):
            return -value
    return None


def _defining(patch: Patch) -> Iterable[Expression]:
    """The expressions that define the instances of a patch, each once: several outputs may share one."""
    found: dict[Expression, None] = {}
    for instance in patch.instances.values():
        for output in instance.outputs.values():
            match output.definition:
                case Expanded(value=value) | Part(value=value) | FromSource(call=value) | FromCache(call=value):
                    found[value] = None
                case _:
                    pass
    return found
