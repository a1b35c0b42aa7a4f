"""Facts about the syntax of a patch's definitions, which are the same wherever a spindle is called: a number for every
stateful call, how large a body is, what it assigns, and which parameters it takes apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from weft.graph.calls import means_word
from weft.graph.components import components
from weft.names import RESERVED, is_swizzle
from weft.ops import BUILTINS, STATE, WORDS, ieee
from weft.syntax.ast import (
    Access, Argument, Assignment, Binary, BodyStatement, Bundle, Call, CallBinding, Comprehension, Expression, For, If,
    Index, Name, OutAssignment, Remap, SpindleDefinition, Unary, Walkable, children, literal_number, walk
)


class Ordinals:
    """Numbers the calls of each callee within a definition, in the order of the text. After an edit, state is found
    again by these numbers, so they must not depend on anything outside of the definition."""

    def __init__(
        self, definitions: Iterable[Sequence[Expression]], spindles: Mapping[str, SpindleDefinition],
        earlier: Ordinals | None = None,
    ) -> None:  # fmt: skip
        """Each of the `definitions` is given by its expressions. Calls that are in none of them keep their number of an
        `earlier` patch."""
        self._spindles = spindles
        # A call has the same number in every patch, so patches share the table.
        self._numbers: dict[Call, int] = earlier._numbers if earlier else {}
        self._facts: dict[tuple[BodyStatement, ...], BodyFacts] = {}
        self._carried: dict[tuple[BodyStatement, ...], list[str]] = {}
        self._assigned_in: dict[SpindleDefinition, frozenset[str]] = {}
        self._numbered: set[SpindleDefinition] = set()
        self._nodes: dict[SpindleDefinition, list[Walkable]] = {}
        self._taken_by: dict[SpindleDefinition, frozenset[str]] = {}
        self._origins_of: dict[SpindleDefinition, dict[str, frozenset[str]]] = {}
        self._leaves: dict[Expression, tuple[Expression, ...]] = {}
        for expressions in definitions:
            self._number(chain.from_iterable(map(walk, expressions)))

    def adopt(self, earlier: Ordinals) -> None:
        """Takes over the facts about definitions in an earlier patch that depend on no other definition."""
        if self._numbers is not earlier._numbers:
            self._numbers |= earlier._numbers
        if earlier._spindles == self._spindles:  # the size of a body depends on the bodies that it calls
            self._facts = earlier._facts
        self._carried, self._assigned_in = earlier._carried, earlier._assigned_in
        self._nodes, self._leaves = earlier._nodes, earlier._leaves
        self._numbered |= earlier._numbered

    def number(self, spindle: SpindleDefinition) -> None:
        """Numbers the calls in the body of a spindle when it is first entered: a patch enters few of a library's
        spindles."""
        if spindle not in self._numbered:
            self._number(self._nodes_of(spindle))
            for parameter in spindle.parameters:
                if parameter.default is not None:
                    self._number(walk(parameter.default))
            self._numbered.add(spindle)

    def _nodes_of(self, spindle: SpindleDefinition) -> list[Walkable]:
        """Everything in the body of a spindle."""
        if spindle not in self._nodes:
            self._nodes[spindle] = [node for statement in spindle.body for node in walk(statement)]
        return self._nodes[spindle]

    def _number(self, nodes: Iterable[Walkable]) -> None:
        seen: dict[str, int] = {}
        for node in nodes:
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
                case CallBinding() if not with_groups:
                    pass
                case OutAssignment(outputs):
                    names.update(dict.fromkeys(output.name for output in outputs))
                case _:
                    names[statement.name.name] = None
        return list(names)

    def assigned_in(self, spindle: SpindleDefinition) -> frozenset[str]:
        """Every name that the body of a spindle assigns."""
        known = self._assigned_in.get(spindle)
        return self._assigned_in.setdefault(spindle, frozenset(self.assigned(spindle.body))) if known is None else known

    def carried(self, body: tuple[BodyStatement, ...]) -> list[str]:
        """The names whose values a loop carries from step to step; bound calls belong to one step."""
        known = self._carried.get(body)
        return self._carried.setdefault(body, self.assigned(body, with_groups=False)) if known is None else known

    def shape_leaves(self, node: Expression) -> tuple[Expression, ...]:
        """The parts of an operation that may be bundles."""
        if node not in self._leaves:
            found: list[Expression] = []
            waiting: list[Walkable] = [node]
            while waiting:
                match part := waiting.pop():
                    case Unary() | Binary() | If():
                        waiting += reversed(children(part))
                    case Name() | Call() | Remap() | Bundle() | Comprehension() | Index():
                        found.append(part)
                    case Access(output=output) if is_swizzle(output):
                        found.append(part)
            self._leaves[node] = tuple(found)
        return self._leaves[node]

    def takes_bundles(self, spindle: SpindleDefinition) -> tuple[bool, ...]:
        """Whether each parameter of a spindle takes a bundle as a whole. The others take one strand."""
        taken = self._taken(spindle)
        return tuple(parameter.name in taken for parameter in spindle.parameters)

    def _taken(self, spindle: SpindleDefinition) -> frozenset[str]:
        """The parameters that a body uses as whole bundles. Those that it never reads count too."""
        if spindle not in self._taken_by:
            self._taken_by[spindle] = frozenset()  # while it calls itself
            nodes = self._with_defaults(spindle)
            read = {node.id for node in nodes if isinstance(node, Name)}
            taken = {each.name for each in spindle.parameters if each.members is not None or each.name not in read}
            for part in (part for node in nodes if isinstance(node, _TAKING) for part in self._apart(node, spindle)):
                if not (isinstance(part, Name) and part.id in RESERVED):
                    taken |= self._origins(part, self._origins_in(spindle), spindle)
            self._taken_by[spindle] = frozenset(taken)
        return self._taken_by[spindle]

    def _shaping(self, spindle: SpindleDefinition) -> frozenset[str]:
        """The parameters from which the shape of its single output can come."""
        if len(spindle.outputs) > 1:
            return frozenset()
        return self._origins_in(spindle).get(spindle.outputs[0].name, frozenset())

    def _with_defaults(self, spindle: SpindleDefinition) -> list[Walkable]:
        defaults = (parameter.default for parameter in spindle.parameters if parameter.default is not None)
        return [*self._nodes_of(spindle), *chain.from_iterable(map(walk, defaults))]

    def _origins_in(self, spindle: SpindleDefinition) -> Mapping[str, frozenset[str]]:
        """The parameters from which the shape of each name in a body can come."""
        if spindle not in self._origins_of:
            origins = self._origins_of[spindle] = {
                parameter.name: frozenset({parameter.name}) if parameter.members is None else frozenset[str]()
                for parameter in spindle.parameters
            }
            bindings = list(_bindings(self._with_defaults(spindle)))
            is_known = False
            while not is_known:
                is_known = True
                for name, value in bindings:
                    before = origins.get(name, frozenset())
                    origins[name] = before | self._origins(value, origins, spindle)
                    is_known = is_known and origins[name] == before
        return self._origins_of[spindle]

    def _origins(
        self, node: Expression, origins: Mapping[str, frozenset[str]], within: SpindleDefinition
    ) -> frozenset[str]:
        """The parameters from which the shape of an expression can come."""
        found: set[str] = set()
        waiting: list[Walkable] = [node]
        while waiting:
            match part := waiting.pop():
                case Name(id=name):
                    found |= origins.get(name, frozenset())
                case Unary() | Binary() | If():
                    waiting += children(part)
                case Remap(base=base):
                    waiting.append(base)
                case Call(callee=callee, args=args):
                    spindle = self._spindle(part, within.body)
                    if spindle is not None:
                        taken = self._taken(spindle)
                        # A spindle with several outputs is not called for each member.
                        maps = len(spindle.outputs) == 1
                        for label, argument in labelled(spindle, args):
                            if (maps and label not in taken) or label in self._shaping(spindle):
                                waiting.append(argument)
                    elif (word := WORDS.get(part.name)) is not None and word.fits(len(args)):
                        if word.gives == "element":
                            waiting.append(args[-1].value)
                        elif word.gives != "one":
                            waiting += (argument.value for argument in args)
                    elif part.name in BUILTINS or part.name in STATE:
                        waiting += (argument.value for argument in args)
                    else:
                        waiting.append(callee)
        return frozenset(found)

    def _apart(self, node: Walkable, within: SpindleDefinition) -> Iterator[Expression]:
        """The expressions that are read as bundles by a node."""
        match node:
            case Index(base=base) | Access(base=base):
                yield base
            case Remap(maps=maps):
                yield from (each.target.base for each in maps)
            case Assignment(name=name, member=member) if member is not None:
                yield Name(name.name, name.span)
            case OutAssignment(outputs, value) if len(outputs) > 1:
                yield value
            case CallBinding(value=Call(args=args), count=count) if count is not None:
                yield from (argument.value for argument in args)
            case CallBinding(value=value) if not isinstance(value, Call) or self._spindle(value, within.body) is None:
                yield value
            case Call(args=args):
                spindle = self._spindle(node, within.body)
                if spindle is not None:
                    taken = self._taken(spindle)
                    yield from (argument for label, argument in labelled(spindle, args) if label in taken)
                elif node.name == "cache" and args:
                    yield args[0].value
                elif (word := WORDS.get(node.name)) is not None and word.fits(len(args)):
                    yield from (each.value for each in (args[:1] if word.gives == "element" else args))

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
            # Called bodies come before their callers.
            for cycle in components(bodies, bodies):
                for each in (body for body in cycle if body in bodies):
                    self._facts[each] = self._measured(each, len(cycle) > 1 or each in bodies[each])
        return self._facts[body]

    def _spindle(self, call: Call, body: tuple[BodyStatement, ...]) -> SpindleDefinition | None:
        """The spindle that a call in a body reaches, if it is one."""
        spindle = self._spindles.get(call.name)
        # Inside a spindle that has the name of a builtin, that name means the builtin.
        if spindle is not None and spindle.body is body and (call.name in BUILTINS or call.name in STATE):
            return None
        # `body` may be a library's own, where every name means the library's.
        is_of_patch = not body or not body[0].span.source.library
        return None if spindle is not None and is_of_patch and means_word(call, spindle) else spindle

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



class BodyFacts(NamedTuple):
    """What is known of a body and everything that it calls, judged by names. `size` is the approximate number of
    operations in one run; a loop is counted with its number of steps if its ends are literals, otherwise once."""

    size: int
    has_state: bool
    is_recursive: bool


# What may read an expression as a bundle.
_TAKING = (Index, Access, Remap, Assignment, OutAssignment, CallBinding, Call)


def _bindings(nodes: Iterable[Walkable]) -> Iterator[tuple[str, Expression]]:
    """The names to which statements assign a whole value, with the value."""
    for node in nodes:
        match node:
            case Assignment(name, _, value, member=None) | CallBinding(value, name):
                yield name.name, value
            case OutAssignment(outputs, value):
                yield from ((output.name, value) for output in outputs)


def labelled(spindle: SpindleDefinition, args: Sequence[Argument]) -> Iterator[tuple[str, Expression]]:
    """The arguments of a call with the names of their parameters. Surplus arguments are left out."""
    names = [parameter.name for parameter in spindle.parameters]
    for position, argument in enumerate(args):
        if argument.label is not None or position < len(names):
            yield argument.label or names[position], argument.value


STEP_SIZE = 8
"""The operations that a step of a loop takes, besides its statements."""

_HUGE = 10**9
_OPERATIONS = (Binary, Unary, If, Index, Remap, Call, Assignment)
