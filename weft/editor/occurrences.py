"""What each name in a text refers to, and where else that is mentioned.

Nothing is evaluated. Which names are locals, spindles or words of weft is decided by `graph.lookup`, from the names
that a program binds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from weft.errors import Source, Span
from weft.graph.bodies import Ordinals
from weft.graph.lookup import NameLookup
from weft.graph.patch import Instance, Patch
from weft.graph.scope import Bindings, Opaque, Scope
from weft.names import RESERVED
from weft.ops import CONSTANTS
from weft.sources import SOURCES
from weft.syntax.ast import (
    Access, Argument, Assignment, Binding, BodyStatement, Call, CallBinding, Comprehension, Expression, For, Ident,
    Include, Name, OutAssignment, OutputStatement, Parameter, Program, Remap, Setting, SpindleDefinition, Statement,
    Use, Walkable, children
)

SymbolKind: TypeAlias = Literal[
    "strand", "output", "spindle", "local", "parameter", "variable", "builtin", "memory", "word", "source", "constant",
    "coordinate", "setting", "statement", "label", "library", "file",
]

OWN_KINDS = frozenset({"strand", "output", "spindle", "local", "parameter", "variable"})
"""The kinds of what a text itself binds."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """What a name refers to. `owner` is the instance of an output, the spindle of a local or a parameter, `me`, `mouse`
    or `key` of a coordinate, and the statement or source of a label. `place` tells variables apart: the offset of the
    first mention."""

    kind: SymbolKind
    name: str
    owner: str = ""
    place: int = 0


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A mention of a symbol at a place; or its definition."""

    span: Span
    symbol: Symbol
    is_definition: bool = False


@dataclass(frozen=True)
class Surroundings:
    """The names that are known at a place: what the locals of the spindle around it refer to, and its scope."""

    locals: Mapping[str, Symbol]
    scope: Scope
    spindle: SpindleDefinition | None = None

    def also(self, symbol: Symbol) -> Surroundings:
        """With a variable inside."""
        return Surroundings(
            {**self.locals, symbol.name: symbol}, self.scope.inner({symbol.name: Opaque()}), self.spindle
        )


_OUTSIDE = Surroundings({}, Scope(""))


@dataclass
class NamesOfProgram:
    """The names of a program with all that it includes."""

    program: Program
    spindles: dict[str, SpindleDefinition] = field(default_factory=dict)
    instances: dict[str, Statement] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for statement in self.program.statements:
            match statement:
                case SpindleDefinition(name=name):
                    self.spindles.setdefault(name.name, statement)
                case Binding(name=name) | CallBinding(name=name) | Parameter(name=name):
                    self.instances.setdefault(name.name, statement)
        self.ordinals = Ordinals((), self.spindles)
        instances = {name: Instance(name, each.span) for name, each in self.instances.items()}
        self._lookup = NameLookup(Patch(instances, self.spindles, (), {}, (), self.ordinals), lambda *_: None)

    def within(self, spindle: SpindleDefinition) -> Surroundings:
        """The names that are known in the body of a spindle."""
        owner = spindle.name.name
        assigned = [*(output.name for output in spindle.outputs), *self.ordinals.assigned_in(spindle)]
        locals = {name: Symbol("local", name, owner) for name in assigned}
        locals |= {each.name: Symbol("parameter", each.name, owner) for each in spindle.parameters}
        bindings = Bindings(None, dict.fromkeys(locals, Opaque()))
        return Surroundings(locals, Scope(owner, bindings, len(locals), chain=(spindle,)), spindle)

    def around(self, source: Source, offset: int) -> Surroundings:
        """The names that are known at a place, without variables."""
        for spindle in self.spindles.values():
            if spindle.span.source is source and spindle.span.start <= offset <= spindle.span.end:
                return self.within(spindle)
        return _OUTSIDE

    def called(self, call: Call, around: Surroundings) -> SpindleDefinition | str | None:
        """What a call reaches; see `NameLookup.called`."""
        return self._lookup.called(call, around.scope)

    def occurrences(self, source: Source) -> list[Occurrence]:
        """All mentions of names in one of the texts, in its order."""
        found = [
            each for statement in self.program.statements if statement.span.source is source
            for each in self.in_statement(statement)
        ]  # fmt: skip
        return sorted(found, key=lambda each: (each.span.start, each.span.end))

    def definitions(self, symbol: Symbol) -> list[Span]:
        """The places at which a symbol is bound."""
        owner = symbol.owner.partition("/")[0]
        statement: Statement | None = self.spindles.get(owner)
        if symbol.kind == "spindle":
            statement = self.spindles.get(symbol.name)
        elif symbol.kind == "strand" or (symbol.kind == "output" and "/" not in symbol.owner):
            statement = self.instances.get(symbol.name if symbol.kind == "strand" else symbol.owner)
        if symbol.kind == "variable":
            texts = [source for source in self.sources if source.name == symbol.owner]
            among = [each for source in texts for each in self.occurrences(source)]
        else:
            among = [] if statement is None else [*self.in_statement(statement)]
        return [each.span for each in among if each.is_definition and each.symbol == symbol]

    @property
    def sources(self) -> list[Source]:
        """All texts of the program."""
        return list(dict.fromkeys(statement.span.source for statement in self.program.statements))

    # --- statements ---

    def in_statement(self, statement: Statement) -> Iterator[Occurrence]:
        """All mentions of names in one statement."""
        match statement:
            case Setting(field=ident):
                yield Occurrence(ident.span, Symbol("setting", ident.name, "me"), True)
            case Binding(name=name, outputs=outputs, value=value):
                yield from self._instance(name, outputs or ())
                yield from self._in_expression(value, _OUTSIDE)
            case CallBinding(name=name, outputs=outputs, value=value):
                yield from self._in_expression(value, _OUTSIDE)
                yield from self._instance(name, outputs)
            case Parameter(name=name, outputs=outputs):
                yield from self._instance(name, outputs)
            case OutputStatement(name=name, args=args, head=head):
                yield Occurrence(head, Symbol("statement", name))
                yield from self._arguments(args, _OUTSIDE, name)
            case SpindleDefinition():
                yield from self._spindle(statement)
            case Include(path=path, path_span=span):
                yield Occurrence(span, Symbol("file", path))
            case Use(library=library, library_span=span):
                yield Occurrence(span, Symbol("library", library))

    def _instance(self, name: Ident, outputs: Sequence[Ident]) -> Iterator[Occurrence]:
        yield Occurrence(name.span, Symbol("strand", name.name), True)
        for output in outputs:
            yield Occurrence(output.span, Symbol("output", output.name, name.name), True)

    def _spindle(self, spindle: SpindleDefinition) -> Iterator[Occurrence]:
        around = self.within(spindle)
        yield Occurrence(spindle.name.span, Symbol("spindle", spindle.name.name), True)
        for parameter in spindle.parameters:
            yield Occurrence(parameter.ident.span, around.locals[parameter.name], True)
            for member in parameter.members or ():
                yield Occurrence(member.span, _member(around.locals[parameter.name], member.name), True)
            if parameter.default is not None:
                yield from self._in_expression(parameter.default, around)
        for output in spindle.outputs:
            yield Occurrence(output.span, around.locals[output.name], True)
        for statement in spindle.body:
            yield from self._in_body(statement, around)

    def _in_body(self, statement: BodyStatement, around: Surroundings) -> Iterator[Occurrence]:
        match statement:
            case Assignment(name=name, value=value, member=member):
                symbol = around.locals[name.name]
                yield Occurrence(name.span, symbol, member is None)
                if member is not None:
                    yield Occurrence(member.span, _member(symbol, member.name))
                yield from self._in_expression(value, around)
            case OutAssignment(value=value):
                yield from self._in_expression(value, around)
            case CallBinding(name=name, outputs=outputs, value=value):
                yield from self._in_expression(value, around)
                symbol = around.locals[name.name]
                yield Occurrence(name.span, symbol, True)
                for output in outputs:
                    yield Occurrence(output.span, _member(symbol, output.name), True)
            case For(variable=variable, first=first, last=last, body=body):
                yield from self._in_expression(first, around)
                yield from self._in_expression(last, around)
                inside = around.also(_variable(variable))
                yield Occurrence(variable.span, inside.locals[variable.name], True)
                for inner in body:
                    yield from self._in_body(inner, inside)

    # --- expressions ---

    def _in_expression(self, root: Expression, around: Surroundings) -> Iterator[Occurrence]:
        waiting: list[tuple[Walkable, Surroundings]] = [(root, around)]
        while waiting:
            node, around = waiting.pop()
            match node:
                case Name():
                    yield from self._name(node, around)
                    continue
                case Access(base=Name(id=owner), output=output, output_span=span) if _is_field(owner, around):
                    yield Occurrence(span, Symbol("coordinate", output, owner))
                    continue
                case Access(base=base, output=output, output_span=span):
                    symbol = self._output(base, output, around)
                    if symbol is not None:
                        yield Occurrence(span, symbol)
                case Call(args=args):
                    yield from self._call(node, around)
                    waiting += [(argument.value, around) for argument in args]
                    if not isinstance(node.callee, Name):
                        waiting.append((node.callee, around))
                    continue
                case Remap(maps=maps):
                    waiting += [(each.target, around) for each in maps]
                case Comprehension(item=item, variable=variable, first=first, last=last):
                    inside = around.also(_variable(variable))
                    yield Occurrence(variable.span, inside.locals[variable.name], True)
                    waiting += [(item, inside), (first, around), (last, around)]
                    continue
            waiting += [(each, around) for each in children(node)]

    def _name(self, node: Name, around: Surroundings) -> Iterator[Occurrence]:
        if (symbol := self.strand_named(node.id, around)) is not None:
            yield Occurrence(node.span, symbol)

    def strand_named(self, name: str, around: Surroundings) -> Symbol | None:
        """What a name refers to in the place of a strand."""
        if name in around.locals:
            return around.locals[name]
        in_library = around.spindle is not None and around.spindle.span.source.library
        if name in self.instances and not in_library:
            return Symbol("strand", name)
        if name in CONSTANTS:
            return Symbol("constant", name)
        if name in SOURCES and SOURCES[name].is_named:
            return Symbol("source", name)
        return None

    def _call(self, call: Call, around: Surroundings) -> Iterator[Occurrence]:
        if not isinstance(call.callee, Name):
            return
        reached = self.called(call, around)
        if reached is None:
            yield from self._name(call.callee, around)
            return
        symbol = self.callable_named(call.callee.id, reached)
        yield Occurrence(call.callee.span, symbol)
        yield from self._labels(call.args, symbol)

    @staticmethod
    def callable_named(name: str, reached: SpindleDefinition | str) -> Symbol:
        """The symbol of what a call reaches."""
        if isinstance(reached, SpindleDefinition):
            return Symbol("spindle", name)
        return Symbol(_CALLABLES[reached], name)

    def _arguments(self, args: Sequence[Argument], around: Surroundings, owner: str) -> Iterator[Occurrence]:
        yield from self._labels(args, Symbol("statement", owner))
        for argument in args:
            yield from self._in_expression(argument.value, around)

    def _labels(self, args: Sequence[Argument], called: Symbol) -> Iterator[Occurrence]:
        for argument in args:
            if argument.label is not None and argument.label_span is not None:
                kind: SymbolKind = "parameter" if called.kind == "spindle" else "label"
                yield Occurrence(argument.label_span, Symbol(kind, argument.label, called.name))

    def _output(self, base: Expression, output: str, around: Surroundings) -> Symbol | None:
        """What `@output` refers to after an expression."""
        match base:
            case Name(id=name) if (symbol := self.strand_named(name, around)) is not None:
                return _member(symbol, output)
            case Call(callee=Name(id=name)):
                reached = self.called(base, around)
                if isinstance(reached, SpindleDefinition):
                    return Symbol("local", output, name)
                if reached is None and (symbol := self.strand_named(name, around)) is not None:
                    return _member(symbol, output)
            case Remap(base=inner):
                return self._output(inner, output, around)
        return None


_CALLABLES: Mapping[str, SymbolKind] = {
    "builtin": "builtin", "state": "memory", "source": "source", "word": "word",
}  # fmt: skip


def _member(symbol: Symbol, name: str) -> Symbol:
    """An output of an instance, or a member of a local."""
    owner = symbol.name if symbol.kind == "strand" else f"{symbol.owner}/{symbol.name}"
    return Symbol("output", name, owner)


def _variable(ident: Ident) -> Symbol:
    return Symbol("variable", ident.name, ident.span.source.name, ident.span.start)


def _is_field(name: str, around: Surroundings) -> bool:
    return name in RESERVED and name not in around.locals
