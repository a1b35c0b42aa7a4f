"""Facts about the syntax of bodies that elaboration asks for again and again."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from weft.graph.patch import Expanded, FromCache, FromSource, Part, Patch
from weft.ops.state import STATE
from weft.syntax.ast import (
    Assignment,
    BodyStatement,
    Bundle,
    Call,
    CallBinding,
    Expression,
    For,
    Name,
    SpindleDefinition,
)
from weft.syntax.walk import walk


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
        self._stateful: dict[tuple[BodyStatement, ...], bool] = {}
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

    def carried(self, body: Iterable[BodyStatement]) -> list[str]:
        """The names whose numbers a loop carries from step to step; bundles and bound calls belong to one step."""
        names: dict[str, None] = {}
        for statement in body:
            match statement:
                case For():
                    names.update(dict.fromkeys(self.carried(statement.body)))
                case Assignment() if not isinstance(statement.value, Bundle):
                    names[statement.name.name] = None
                case _:
                    pass
        return list(names)

    def has_state(self, body: tuple[BodyStatement, ...]) -> bool:
        """Whether a body calls something that remembers, itself or through spindles."""
        known = self._stateful.get(body)
        if known is None:
            self._stateful[body] = False
            known = self._stateful[body] = any(self._calls_state(node, body) for s in body for node in walk(s))
        return known

    def _calls_state(self, node: object, body: tuple[BodyStatement, ...]) -> bool:
        if not (isinstance(node, Call) and isinstance(node.callee, Name)):
            return False
        spindle = self._patch.spindles.get(node.callee.id)
        # Inside a spindle that carries a builtin's name, that name means the builtin.
        if spindle is None or spindle.body is body:
            return node.callee.id in STATE
        return self.has_state(spindle.body)


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
