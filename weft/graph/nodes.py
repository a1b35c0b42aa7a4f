"""The render graph and the patch that it is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from weft.contexts import ContextSpec
from weft.errors import Span
from weft.names import StrandRef
from weft.sources import MediaHeader, SourceSpec
from weft.syntax.ast import Call, Expression, OutputStatement, Parameter, SpindleDefinition

if TYPE_CHECKING:
    from weft.graph.bodies import Ordinals
    from weft.graph.scope import Scope

# --- the graph: strands with the contexts that evaluate them, and the subgraphs they are cut into ---


@dataclass(frozen=True, slots=True)
class Edge:
    """A strand or sink reads `source`. A `weak` edge passes through state: what is read now decides the next tick."""

    source: StrandRef
    weak: bool = False


@dataclass(frozen=True, slots=True)
class Strand:
    """One output of an instance. `contexts` are those that evaluate it. A strand that is `tied` to one context, for the
    `reason` given, is evaluated only there, and others read it across. `place` is `file:line:column`."""

    ref: StrandRef
    place: str
    reads: tuple[Edge, ...] = ()
    contexts: tuple[str, ...] = ()
    tied: str | None = None
    reason: str | None = None
    sources: tuple[str, ...] = ()
    slots: frozenset[object] = field(default=frozenset(), repr=False, compare=False)
    """The keys of the state that it needs."""


@dataclass(frozen=True, slots=True)
class GraphNode:
    """An instance of the patch. `kind` says what it comes from: strands, source, cache or parameter."""

    name: str
    kind: str
    strands: tuple[Strand, ...]


@dataclass(frozen=True, slots=True)
class Sink:
    """An output statement; `parts` are the places of its context that it fills (`display.r`)."""

    label: str
    context: str
    place: str
    parts: tuple[str, ...]
    reads: tuple[Edge, ...] = ()
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Subgraph:
    """What one kernel evaluates: connected strands and sinks of one context. `strands` lists all strands that it
    evaluates, `tied` those of them that are tied to it, `exposes` those that other subgraphs read, `reads` the strands
    of others that it reads across, `depends_on` the subgraphs that run before it, and `images` the keys of those
    that it draws before its picture. `borrows` are strands tied to other subgraphs of its context that it evaluates as
    well, from the memory of those."""

    name: str
    context: str
    strands: tuple[StrandRef, ...]
    tied: tuple[StrandRef, ...]
    sinks: tuple[str, ...]
    exposes: tuple[StrandRef, ...] = ()
    reads: tuple[StrandRef, ...] = ()
    depends_on: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    borrows: tuple[StrandRef, ...] = ()

    @property
    def target(self) -> str:
        """The `to:` of its picture; empty if there is none."""
        return self.sinks[0].partition(":")[2] if self.sinks else ""


@dataclass(frozen=True, slots=True)
class Image:
    """What `image(…)` keeps of one tick, if that varies over a picture: the key of its slot, its place in the text, and
    the strand or sink that asks for it first."""

    key: str
    place: str
    of: StrandRef | str


@dataclass(frozen=True, slots=True, eq=False)
class HeardStrand:
    """A strand without a name that an analysis hears: an expression, and the scope in which it is written."""

    value: Expression
    scope: Scope


@dataclass(frozen=True, slots=True)
class RenderGraph:
    """The whole graph. `subgraphs` stand in an order in which they can run."""

    nodes: tuple[GraphNode, ...]
    sinks: tuple[Sink, ...]
    subgraphs: tuple[Subgraph, ...]
    images: tuple[Image, ...] = ()
    heard: Mapping[StrandRef, HeardStrand] = field(default_factory=dict, repr=False, compare=False)
    """What analyses hear, which has no name in the patch."""

    def strands(self) -> dict[StrandRef, Strand]:
        return {s.ref: s for node in self.nodes for s in node.strands}


# --- the patch: its instances, spindles, settings and output statements, as syntax; nothing is evaluated yet ---


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
    beats; they are None if the patch does not set them. `ordinals` has what is known of the definitions as syntax, and
    `media` what the headers of files say, by their paths, None for one that cannot be read."""

    instances: Mapping[str, Instance]
    spindles: Mapping[str, SpindleDefinition]
    sinks: tuple[SinkStatement, ...]
    settings: Mapping[str, float]
    parameters: tuple[Parameter, ...]
    ordinals: Ordinals
    fade: float | None = None
    quantize: float | None = None
    media: Mapping[str, MediaHeader | None] = field(default_factory=dict)

    def parameter_values(self) -> dict[str, float]:
        """The start value of every output of a parameter, by the name that kernels use: `name@output`."""
        return {
            f"{parameter.name.name}@{output.name}": value
            for parameter in self.parameters
            for output, value in zip(parameter.outputs, parameter.start, strict=True)
        }
