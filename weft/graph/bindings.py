"""From the statements of a program to its names: where each is bound, which are bound twice, and how many strands each
has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from weft.contexts import ContextSpec, ContextTable
from weft.errors import Diagnostic, Report, Span, WeftError, did_you_mean, error
from weft.graph.bodies import Ordinals
from weft.graph.budget import Budget
from weft.graph.calls import bindable, bound_planes, check_address, is_sound_of_film, source_shape, split_size
from weft.graph.components import components
from weft.graph.domain import DEFAULTS, OWN, SETTINGS, Environment, ShapeDomain
from weft.graph.elaborate import Elaborator
from weft.graph.lookup import check_bound, check_copies
from weft.graph.numbers import Numbers
from weft.graph.patch import (
    Broadcast, BundlePart, Definition, Expanded, FromCache, FromParameter, FromSource, Instance, OutputDefinition,
    Patch, SinkStatement, Unshaped
)
from weft.graph.resolve import Resolver
from weft.graph.scope import PoisonedError, Scope, StrandGroup, strands
from weft.names import RESERVED, is_swizzle
from weft.ops import BUILTINS, STATE
from weft.outlets import outlet_of
from weft.sources import SOURCES, MediaHeader, SourceSpec
from weft.syntax.ast import (
    Access, Assignment, Binding, BodyStatement, Bundle, Call, CallBinding, Comprehension, Expression, Fade, For, Ident,
    Name, Number, OutAssignment, OutputStatement, Parameter, Program, Quantize, Setting, SpindleDefinition, Statement,
    Text, Walkable, children, walk
)
from weft.syntax.foreign import hint_for


def collect(
    program: Program, contexts: ContextTable, report: Report, media: Mapping[str, MediaHeader | None] | None = None,
    known: Mapping[str, Instance] = MappingProxyType({}), earlier: Patch | None = None,
    numbers: Numbers | None = None,
) -> Patch:
    """The names of a program, and what they mean. Names that cannot be bound are reported and left out. `media` has the
    headers of its files. `known` instances are those of an `earlier` patch without findings, and are used again.
    `numbers` are the open numbers."""
    names = _NameCollector(contexts, report, media or {}, known, earlier)
    spindles = [each for each in program.statements if isinstance(each, SpindleDefinition)]
    for statement in (*spindles, *(each for each in program.statements if not isinstance(each, SpindleDefinition))):
        try:
            names.bind(statement)
        except WeftError as failure:
            report.add(failure.diagnostics)
    return shaped(names.patch(), report, known, numbers)


class _NameCollector:
    def __init__(
        self, contexts: ContextTable, report: Report, media: Mapping[str, MediaHeader | None],
        known: Mapping[str, Instance], earlier: Patch | None,
    ) -> None:  # fmt: skip
        self._known = known
        self._numbered = earlier.ordinals if earlier else None
        self._checked = frozenset(earlier.spindles.values()) if earlier else frozenset[SpindleDefinition]()
        self.media = media
        self.contexts = contexts
        self.report = report
        self.instances: dict[str, Instance] = {}
        self.spindles: dict[str, SpindleDefinition] = {}
        self.sinks: list[SinkStatement] = []
        self._same_target: dict[tuple[str, str | None], list[SinkStatement]] = {}
        """The output statements of one kind and target."""
        self.settings: dict[str, Setting] = {}
        self.parameters: list[Parameter] = []
        self.fade: Fade | None = None
        self.quantize: Quantize | None = None

    def bind(self, statement: Statement) -> None:
        match statement:
            case SpindleDefinition():
                self._spindle(statement)
            case Binding(name=name) | CallBinding(name=name) if name.name in self._known:
                self.instances.setdefault(name.name, self._known[name.name])
            case Setting():
                self._setting(statement)
            case Binding(name, outputs, value, _, doc):
                if outputs is None and isinstance(value, Call) and (
                    (spec := self._called_source(value)) and (spec.media or "k" in spec.axes)
                ):
                    shape, _ = source_shape(value, spec)
                    self._source(name, tuple(Ident(n, name.span) for n in shape), value, spec, doc)
                elif outputs is not None and isinstance(value, Call) and (
                    (spec := self._called_source(value)) and is_sound_of_film(value, spec, outputs)
                ):
                    self._source(name, outputs, value, spec, doc)
                elif outputs is None:
                    self._bind(name, (Ident("val", name.span),), [Unshaped(value)], doc=doc)
                else:
                    self._bind(name, outputs, _expanded(value, outputs), doc=doc)
            case CallBinding():
                self._call_binding(statement)
            case OutputStatement():
                self._sink(statement)
            case Parameter(name=name, outputs=outputs):
                if name.name in self._known:
                    self.instances.setdefault(name.name, self._known[name.name])
                else:
                    self._bind(name, outputs, [FromParameter() for _ in outputs])
                self.parameters.append(statement)
            case Fade():
                _check_pragma("fade", statement, self.fade)
                self.fade = statement
            case Quantize():
                _check_pragma("quantize", statement, self.quantize)
                self.quantize = statement

    def patch(self) -> Patch:
        return Patch(
            instances=self.instances,
            spindles=self.spindles,
            sinks=tuple(self.sinks),
            settings={**DEFAULTS, **{name: s.value for name, s in self.settings.items()}},
            parameters=tuple(self.parameters),
            ordinals=self._ordinals(),
            fade=self.fade.seconds if self.fade else None,
            glides=self.fade is not None and self.fade.glides,
            quantize=self.quantize.beats if self.quantize else None,
            media=self.media,
        )

    def _ordinals(self) -> Ordinals:
        new = (instance for name, instance in self.instances.items() if name not in self._known)
        values = (output.value for instance in new for output in instance.outputs.values())
        # Several outputs may share one expression.
        shared = {value: (value,) for value in values if value is not None}
        sinks = [[argument.value for argument in sink.statement.args] for sink in self.sinks]
        return Ordinals([*shared.values(), *sinks], self.spindles, self._numbered)

    def _setting(self, statement: Setting) -> None:
        name, span = statement.field.name, statement.field.span
        if name not in SETTINGS:
            raise error("unknown-setting", f'there is no setting "{name}"', span,
                        did_you_mean(name, SETTINGS) or f"settings are {', '.join(SETTINGS)}")  # fmt: skip
        if not SETTINGS[name].accepts(statement.value):
            raise error("setting-out-of-range", f"{name} is {SETTINGS[name].range}", statement.value_span)
        if name in self.settings:
            raise _twice("duplicate-setting", f"me<{name}> is set twice", span, self.settings[name].field.span)
        self.settings[name] = statement

    def _call_binding(self, statement: CallBinding) -> None:
        value, outputs = statement.value, statement.outputs
        called = value.name if isinstance(value, Call) else ""
        if called in self.spindles or called in BUILTINS:
            called = ""
        definitions: Sequence[Definition]
        axes: tuple[str, ...] = ()
        if isinstance(value, Call) and statement.count is None and (spec := self._called_source(value)):
            self._source(statement.name, outputs, value, spec, statement.doc)
            return
        if statement.count is not None:
            check_copies(statement, self.spindles)
            definitions = _expanded(value, outputs)
        elif isinstance(value, Call) and called == "cache":
            axes = ("k",)
            definitions = [FromCache(value, i) for i in range(len(outputs))]
            for output in outputs:
                if output.name == "k":
                    raise error("axis-name", '"k" is the axis of a cache and cannot name an output', output.span)
        else:
            path = f"{statement.name.name}@{outputs[0].name}"
            definitions = [BundlePart(value, i, path) for i in range(len(outputs))]
        self._bind(statement.name, outputs, definitions, axes, statement.doc)

    def _called_source(self, value: Call) -> SourceSpec | None:
        """The source that is called, unless a spindle or builtin has its name."""
        is_hidden = value.name in self.spindles or value.name in BUILTINS
        return None if is_hidden else SOURCES.get(value.name)

    def _source(
        self, name: Ident, outputs: Sequence[Ident], call: Call, spec: SourceSpec, doc: str | None
    ) -> None:
        """Binds the outputs of a source, and perhaps its size."""
        shape, over = source_shape(call, spec)
        outputs, sizes = split_size(spec, outputs)
        can = bindable(call, spec, shape)
        check_bound(outputs, len(can), f"they are {', '.join(can)}")
        planes = bound_planes(call, spec, shape, outputs)
        axes = tuple(a for a in over if a == "k")
        self._bind(name, outputs, [FromSource(call, spec, plane) for plane in planes], axes, doc, sizes)

    def _bind(
        self, name: Ident, outputs: Iterable[Ident], definitions: Iterable[Definition], axes: tuple[str, ...] = (),
        doc: str | None = None, sizes: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        if name.name in RESERVED:
            hint = "settings are set like me<width> = 640" if name.name == "me" else "choose another name"
            raise error("reserved-name", f'"{name.name}" belongs to weft and cannot be bound', name.span, hint)
        instance = self.instances.setdefault(name.name, Instance(name.name, name.span, {}, axes, doc, sizes))
        for other in instance.outputs.values():
            if other.span.source.name != name.span.source.name:
                raise _twice("bound-in-two-files", f'"{name.name}" is bound in two files', name.span, other.span)
        if instance.outputs and (instance.axes or axes):
            raise _twice("duplicate-binding", f'"{name.name}" is a source and takes no further outputs', name.span,
                         instance.span)  # fmt: skip
        for output, definition in zip(outputs, definitions, strict=True):
            earlier = instance.outputs.get(output.name)
            if earlier is not None:
                shown = name.name if output.span == name.span else f"{name.name}@{output.name}"
                hint = "a name has one value: choose another one here"
                twice = _twice("duplicate-binding", f"{shown} is bound twice", output.span, earlier.span, hint)
                self.report.add(twice.diagnostics)
            else:
                instance.outputs[output.name] = OutputDefinition(output.name, definition, output.span)

    # --- spindles -------------------------------------------------------------------------------------------------

    def _spindle(self, statement: SpindleDefinition) -> None:
        name, span = statement.name.name, statement.name.span
        if statement in self._checked and name not in self.spindles and not _is_shadowing(name):
            self.spindles[name] = statement
            return
        if name in self.contexts.statements or name in self.contexts:
            kind = "an output statement" if name in self.contexts.statements else "a context"
            raise error("reserved-name", f'"{name}" is {kind} and cannot name a spindle', span, "choose another name")
        if name in RESERVED:
            raise error("reserved-name", f'"{name}" belongs to weft and cannot be bound', span)
        earlier = self.spindles.get(name)
        if earlier is not None and not self._overrides(statement, earlier):
            raise _twice("duplicate-spindle", f'there are two spindles "{name}"', span, earlier.name.span)
        if _is_shadowing(name):
            self.report.tell("shadows-builtin", f'this spindle takes the place of the builtin "{name}"', span,
                             "inside its own body, the name still means the builtin")  # fmt: skip
        if statement not in self._checked:
            self._check_body(statement)
        if earlier is None or earlier.span.source.library:
            self.spindles[name] = statement

    def _overrides(self, statement: SpindleDefinition, earlier: SpindleDefinition) -> bool:
        """Whether one of the two is from a library: a patch's own spindle replaces a library's."""
        mine, theirs = statement.span.source.library, earlier.span.source.library
        if mine == theirs:
            return False
        own = earlier if mine else statement
        self.report.tell("overrides-library", f'this spindle takes the place of the library\'s "{own.name.name}"',
                         own.name.span)  # fmt: skip
        return True

    def _check_body(self, spindle: SpindleDefinition) -> None:
        outputs = {o.name for o in spindle.outputs}
        assigned: set[str] = set()
        self._check_statements(spindle.body, outputs, assigned, frozenset())
        for output in spindle.outputs:
            if output.name not in assigned:
                self.report.tell("output-not-assigned", f'the output "{output.name}" is never assigned', output.span,
                                  f"add a line {output.name} = …")  # fmt: skip
        self._check_out(spindle, outputs)

    def _check_out(self, spindle: SpindleDefinition, outputs: set[str]) -> None:
        """`out = e` is the only assignment of outputs."""
        whole = next((each for each in spindle.body if isinstance(each, OutAssignment)), None)
        if whole is None:
            return
        for other in (each for statement in spindle.body for each in walk(statement) if each is not whole):
            is_output = isinstance(other, Assignment) and other.name.name in outputs
            if is_output or isinstance(other, OutAssignment):
                self.report.tell("output-assigned-twice", "`out = …` assigns all outputs, so nothing else assigns one",
                                  other.span, None, (whole.span, "all are assigned here"))  # fmt: skip

    def _check_statements(
        self, body: Iterable[BodyStatement], outputs: set[str], assigned: set[str], loop_names: frozenset[str]
    ) -> None:
        for statement in body:
            if isinstance(statement, For):
                inner = loop_names | {statement.variable.name}
                self._check_statements(statement.body, outputs, assigned, inner)
                continue
            if isinstance(statement, OutAssignment):
                assigned |= outputs
                continue
            name = statement.name
            if name.name in RESERVED:
                self.report.tell("reserved-name", f'"{name.name}" belongs to weft and cannot be bound', name.span)
            if name.name in loop_names:
                self.report.tell("loop-variable-assigned", f'"{name.name}" counts the loop and cannot be assigned',
                                  name.span)  # fmt: skip
            if isinstance(statement, Assignment) and statement.is_out and name.name not in outputs:
                hint = did_you_mean(name.name, outputs) or f"it has {', '.join(sorted(outputs))}"
                self.report.tell("unknown-output", f'this spindle has no output "{name.name}"', name.span, hint)
            if isinstance(statement, Assignment):
                assigned.add(name.name)

    # --- output statements ----------------------------------------------------------------------------------------

    def _sink(self, statement: OutputStatement) -> None:
        spec = self.contexts.of_statement(statement.name)
        if spec is None:
            known = self.contexts.statements
            callable_ = statement.name in self.spindles or statement.name in BUILTINS or statement.name in SOURCES
            hint = "give it a name: " + f"{statement.name}(…)::name<out>" if callable_ else None
            message = f'"{statement.name}" is not an output statement; the known ones are {", ".join(known)}'
            hint = did_you_mean(statement.name, known) or hint_for(statement.name) or hint
            raise error("unknown-statement", message, statement.head, hint)
        target = _target(statement, spec) if spec.targets else _address(statement, spec) if spec.addressed else None
        canonical = spec.statements[0]
        label = f"{canonical}:{target}" if target else canonical
        same = self._same_target.setdefault((spec.name, target), [])
        if same and spec.merge == "single":
            where = f' to "{target}"' if target else ""
            hint = "send both in one message, or to another address" if spec.addressed else None
            raise _twice("duplicate-statement", f"there are two {canonical} statements{where}", statement.head,
                         same[0].statement.head, hint or 'for another window, add to: "name"')  # fmt: skip
        if same:
            label += f".{len(same) + 1}"
        same.append(SinkStatement(label, spec, statement, target))
        self.sinks.append(same[-1])


def _is_shadowing(name: str) -> bool:
    """Whether a spindle of this name hides what every patch has by that name."""
    return name in BUILTINS or name in STATE or name in SOURCES


def _target(statement: OutputStatement, spec: ContextSpec) -> str | None:
    for arg in statement.args:
        if arg.label == "to":
            if not isinstance(arg.value, Text) or not arg.value.value:
                raise error("needs-a-string", "a target is a name in quotes", arg.value.span, 'to: "left"')
            outlet = outlet_of(arg.value.value) if spec.sweeps_plane else None
            if outlet is not None and not outlet.text:
                words, example = f"{outlet.spec.name} needs a place that takes the picture", outlet.spec.example
                raise error("needs-a-path", words, arg.value.span, f'for example to: "{example}"')
            return arg.value.value
    return None


def _address(statement: OutputStatement, spec: ContextSpec) -> str:
    """The address that is the first argument. Raises WeftError for anything else, and for labels."""
    first = statement.args[0] if statement.args else None
    example = f"for example {spec.example}"
    if first is None or first.label is not None or not isinstance(first.value, Text):
        span = statement.span if first is None else first.span
        raise error("needs-a-string", f"{statement.name} needs an address first, a text in quotes", span, example)
    check_address(first.value)
    for arg in statement.args[1:]:
        if arg.label is not None:
            raise error("unknown-argument", f'{statement.name} has no argument "{arg.label}"',
                        arg.label_span or arg.span, "the numbers of a message have an order, and no names")  # fmt: skip
    return first.value.value


def _expanded(value: Expression, outputs: Sequence[Ident]) -> list[Expanded]:
    """The definitions of outputs over which a value is spread."""
    names = tuple(o.name for o in outputs)
    return [Expanded(value, Broadcast(names, i)) for i in range(len(names))]


def _check_pragma(name: str, statement: Fade | Quantize, earlier: Fade | Quantize | None) -> None:
    if earlier is not None:
        raise _twice("duplicate-pragma", f"#{name} appears twice", statement.span, earlier.span)


def _twice(code: str, message: str, span: Span, earlier: Span, hint: str | None = None) -> WeftError:
    return WeftError(Diagnostic.of(code, message, span, hint, ((earlier, "it is here already"),)))


# --- shapes of instances: how many strands `name = e` has, and what they are called ---
#
# A bundle makes an instance with an output for each of its members; the outputs of one without names are called 0, 1, …
# and have no names in a text.


def shaped(
    patch: Patch, report: Report, known: Mapping[str, Instance] = MappingProxyType({}), numbers: Numbers | None = None
) -> Patch:
    """A patch whose instances have their outputs. Those that are `known` have them already. Instances whose strands do
    not fit together are reported, and get none. All other mistakes are left to elaboration, which finds them again."""
    return replace(patch, instances=_Shaping(patch, report, known, numbers or Numbers()).instances())


def alike(one: Instance | None, other: Instance | None) -> bool:
    """Whether an expression that reads an instance has the same strands if it reads another instance of the same name
    instead. For sources and caches the answer is no, because that would take a closer look."""
    if one is None or other is None or (tuple(one.outputs), one.axes, one.sizes) != (
        tuple(other.outputs), other.axes, other.sizes
    ):  # fmt: skip
        return one is other
    definitions = (output.definition for each in (one, other) for output in each.outputs.values())
    return not any(isinstance(definition, FromSource | FromCache) for definition in definitions)


class _Shaping:
    def __init__(self, patch: Patch, report: Report, known: Mapping[str, Instance], numbers: Numbers) -> None:
        self._report = report
        self._numbers = numbers
        self._unshaped: dict[str, tuple[Expression, Span]] = {}
        self._given = patch.instances
        self._instances = dict(patch.instances)
        for name, instance in patch.instances.items():
            for output in instance.outputs.values() if name not in known else ():
                if isinstance(output.definition, Unshaped):
                    self._unshaped[name] = output.definition.value, output.span
                    self._instances[name] = _with_outputs(instance, None)
        self._patch = replace(patch, instances=self._instances)
        self._spindles: dict[SpindleDefinition, frozenset[str]] = {}
        self._edges: dict[str, list[str]] = {}
        self._resolver = self._new_resolver()
        self._has_bundles: set[str] = {name for name, i in self._instances.items() if len(i.outputs) > 1}

    def instances(self) -> Mapping[str, Instance]:
        """All instances of the patch, with their outputs."""
        reads = {name: self._names_in(value) for name, (value, _) in self._unshaped.items()}
        self._edges = {name: [other for other in found if other in self._unshaped] for name, found in reads.items()}
        for cycle in components(self._edges, self._edges):
            if any(_BUNDLE in reads[name] or not self._has_bundles.isdisjoint(reads[name]) for name in cycle):
                self._shape(cycle)
        return self._instances

    def _shape(self, cycle: list[str]) -> None:
        """Shapes instances that depend on each other. Each starts as one strand, and the widest shape found holds."""
        is_circular = len(cycle) > 1 or cycle[0] in self._edges[cycle[0]]
        is_known = False
        while not is_known:
            is_known = True
            if is_circular:  # the results of the last round are no longer valid
                self._resolver = self._new_resolver()
            for name in cycle:
                instance, (value, span) = self._instances[name], self._unshaped[name]
                if instance is self._given[name]:
                    continue
                try:
                    group = self._resolver.several(value, Scope(f"{name}@val"))
                    if group is not None and len(self._given[name].outputs) > 1:
                        raise _takes_no_more(name, self._given[name])
                    if group is None or len(group) == len(instance.outputs):
                        continue
                    if len(instance.outputs) > 1:
                        raise _grows(name, span, len(instance.outputs), group)
                except WeftError as failure:
                    found = [d for d in failure.diagnostics if d.code in _ABOUT_SHAPES]
                    self._report.add(found)
                    if found:
                        self._instances[name] = self._given[name]
                    continue
                except PoisonedError:
                    continue
                self._instances[name] = _with_outputs(self._given[name], group)
                self._has_bundles.add(name)
                is_known = not is_circular

    def _new_resolver(self) -> Resolver:
        domain = ShapeDomain(numbers=self._numbers)
        return Elaborator(self._patch, domain, Environment(domain, self._patch.settings, (), OWN), Budget()).resolver

    def _names_in(self, node: Walkable) -> frozenset[str]:
        """The names from which a bundle may come, also through spindles. `_BUNDLE` is among them if the expression
        contains a bundle itself."""
        found: set[str] = set()
        waiting = [node]
        while waiting:
            match part := waiting.pop():
                case Name(id=name):
                    found.add(name)
                case Bundle() | Comprehension():
                    found.add(_BUNDLE)
                case Access(output=output) if is_swizzle(output):
                    found.add(_BUNDLE)
                    waiting += children(part)
                case Number() | Access():
                    pass
                case Call(name=name):
                    spindle = self._patch.spindles.get(name)
                    if spindle is not None:
                        found |= self._names_in_body(spindle)
                    elif name in SOURCES or name == "join":
                        found.add(_BUNDLE)
                    waiting += children(part)
                case _:
                    waiting += children(part)
        return frozenset(found)

    def _names_in_body(self, spindle: SpindleDefinition) -> frozenset[str]:
        if spindle not in self._spindles:
            self._spindles[spindle] = frozenset()  # while it calls itself
            names: set[str] = {_BUNDLE} if len(spindle.outputs) > 1 else set()
            names.update(*(self._names_in(statement) for statement in spindle.body))
            self._spindles[spindle] = frozenset(names)
        return self._spindles[spindle]


_ABOUT_SHAPES = frozenset(
    {"copies-out-of-range", "count-mismatch", "duplicate-binding", "nested-bundle", "several-strands"}
)

# Marks a bundle among names. No text can contain this word.
_BUNDLE = "<>"


def _with_outputs(instance: Instance, group: StrandGroup | None) -> Instance:
    """An instance whose value has no list of names: it gets the strands of the group, or one strand."""
    outputs: dict[str, OutputDefinition] = {}
    for output in instance.outputs.values():
        if not isinstance(definition := output.definition, Unshaped):
            outputs[output.name] = output
            continue
        names = (output.name,) if group is None else tuple(n or str(i) for i, n in enumerate(group.names))
        for index, name in enumerate(names):
            part: Definition = BundlePart(definition.value, index, f"{instance.name}@{output.name}")
            if len(names) == 1:
                part = Expanded(definition.value, Broadcast(names, index))
            outputs[name] = OutputDefinition(name, part, output.span)
    return replace(instance, outputs=outputs)


def _takes_no_more(name: str, instance: Instance) -> WeftError:
    other = next(o for o in instance.outputs.values() if not isinstance(o.definition, Unshaped))
    return error("duplicate-binding", f'"{name}" is a bundle and takes no further outputs', other.span,
                 related=[(instance.span, "the bundle is here")])  # fmt: skip


def _grows(name: str, span: Span, count: int, group: StrandGroup) -> WeftError:
    return error("count-mismatch", f'"{name}" has {count} strands, and {len(group)} come round to it: '
                 f"{strands(group)}", span, f"name its outputs: {name}<a, b> = …")  # fmt: skip
