"""A patch: its instances, spindles, settings and output statements, as syntax. Nothing is evaluated yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import TypeAlias

from weft.contexts import ContextSpec
from weft.errors import Span
from weft.graph.bodies import Ordinals
from weft.sources import MediaHeader, SourceSpec
from weft.syntax.ast import Call, Expression, OutputStatement, Parameter, SpindleDefinition


@dataclass(frozen=True, slots=True)
class Broadcast:
    """One place of several that an expression is evaluated for: in `out<r, g> = img * 0.5`, a bare `img` means its
    output named `names[index]`, or the one at that position."""

    names: tuple[str, ...]
    index: int


@dataclass(frozen=True, slots=True, eq=False)
class Expanded:
    """`name<a, b> = value`, and each copy of a multi-call: the value, spread over the outputs."""

    value: Expression
    broadcast: Broadcast


@dataclass(frozen=True, slots=True, eq=False)
class Unshaped:
    """`name = value`, until it is known how many strands the value has."""

    value: Expression


@dataclass(frozen=True, slots=True, eq=False)
class BundlePart:
    """`value::name<a, b>`: one position of the value. `path` names the place of its state, which all outputs that are
    bound together share."""

    value: Expression
    index: int
    path: str


@dataclass(frozen=True, slots=True, eq=False)
class FromSource:
    """An output of `load`, `camera`, …; `plane` is its position among the source's outputs."""

    call: Call
    spec: SourceSpec
    plane: int


@dataclass(frozen=True, slots=True, eq=False)
class FromCache:
    """An output of `cache(instance, n)`: its position among the instance's outputs."""

    call: Call
    plane: int


@dataclass(frozen=True, slots=True, eq=False)
class FromParameter:
    """An output of `#slider`, `#toggle`, `#menu`, `#button`, `#xy` or `#color`."""


Definition: TypeAlias = Expanded | Unshaped | BundlePart | FromSource | FromCache | FromParameter


@dataclass(frozen=True, slots=True, eq=False)
class OutputDefinition:
    """One output of an instance; `span` is where its name is bound."""

    name: str
    definition: Definition
    span: Span

    @property
    def value(self) -> Expression | None:
        """The expression that it is defined by; None for a parameter."""
        match self.definition:
            case Expanded(value=value) | Unshaped(value=value) | BundlePart(value=value):
                return value
            case FromSource(call=value) | FromCache(call=value):
                return value
        return None


@dataclass(slots=True, eq=False)
class Instance:
    """A named group of strands. `axes` are its own coordinates (`k` of a cache), and `sizes` the names to which the
    width and height of a picture are bound."""

    name: str
    span: Span
    outputs: dict[str, OutputDefinition] = field(default_factory=dict)
    axes: tuple[str, ...] = ()
    doc: str | None = None
    sizes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class SinkStatement:
    """An output statement with its context; `label` is unique (`display`, `display:left`, `compute`, `compute.2`)."""

    label: str
    spec: ContextSpec
    statement: OutputStatement
    target: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Patch:
    """The names of a program. `settings` holds every setting, defaults included. `fade` is in seconds and `quantize` in
    beats; they are None if the patch does not set them. `glides` says whether numbers move to the values that a save
    gives them. `ordinals` has what is known of the definitions as syntax, and `media` what the headers of files say, by
    their paths, None for one that cannot be read."""

    instances: Mapping[str, Instance]
    spindles: Mapping[str, SpindleDefinition]
    sinks: tuple[SinkStatement, ...]
    settings: Mapping[str, float]
    parameters: tuple[Parameter, ...]
    ordinals: Ordinals
    fade: float | None = None
    quantize: float | None = None
    media: Mapping[str, MediaHeader | None] = field(default_factory=dict)
    glides: bool = False
    unbounded: tuple[str, ...] = ()
    """The inputs that may be any number, by the names that kernels use."""

    @property
    def reaches(self) -> tuple[tuple[str, float], ...]:
        """How large the outputs of parameters may be, by the names that kernels use, but for those that may be any
        number; and infinity for each input that is `unbounded`."""
        of_parameters = {
            f"{each.name.name}@{output.name}": each.reach
            for each in self.parameters if isfinite(each.reach)
            for output in each.outputs
        }
        return tuple((of_parameters | dict.fromkeys(self.unbounded, inf)).items())

    def parameter_values(self) -> dict[str, float]:
        """The start value of every output of a parameter, by the name that kernels use: `name@output`."""
        return {
            f"{parameter.name.name}@{output.name}": value
            for parameter in self.parameters
            for output, value in zip(parameter.outputs, parameter.start, strict=True)
        }
