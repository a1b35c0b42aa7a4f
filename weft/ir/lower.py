"""Lowering: from a subgraph of strands to expressions over the coordinates of its context."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain

from weft.contexts import ContextSpec, ContextTable, is_smoothed
from weft.errors import Span, WeftError, error
from weft.graph.affected import Edit, words_of
from weft.graph.budget import Budget
from weft.graph.build import sink_parts
from weft.graph.calls import constant_arguments, media_path, source_text
from weft.graph.domain import BASES, Coordinate, Coordinates, Environment, SlotRequest
from weft.graph.elaborate import Elaborator
from weft.graph.evaluation import Owner
from weft.graph.nodes import RenderGraph, Strand, Subgraph
from weft.graph.numbers import Numbers
from weft.graph.patch import Patch
from weft.ir.expr import (
    EXPANDING, STEPS, Constants, Expr, LoopShape, LoopValue, Lowered, Output, PicturePlane, Pool, SlotPlane, StateSlot,
    StrandRef, Update, digest, expanded_size, found_below, topological
)
from weft.ir.literals import LiteralAssignment
from weft.ir.rates import Rate, slots_over
from weft.names import FilmFile, MicrophoneName, base_axis, is_count, view_of
from weft.ops import OPS
from weft.sources import FILM, SourceSpec
from weft.syntax.ast import Call, Number

# The values of coordinates that a context does not sweep: the centre of a one-pixel picture, the left channel.
_STANDSTILL = {"x": 0.5, "y": 0.5, "channel": 0.0}

# The steps of the budget for a subgraph in addition to its expressions: for kernels and their machine code.
_STEPS_OF_A_SUBGRAPH = 2000


# The most times at which one film is read.
_MOST_TIMES = 16


class FilmNames:
    """Names the pictures of films: one for each time at which a film is read. The name contains a hash of the
    expression of that time, so equal times share a picture, in all subgraphs and from save to save."""

    def __init__(self) -> None:
        self._names: dict[tuple[FilmFile, Expr], str] = {}

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The time of each picture."""
        return tuple(Output(name, time) for (_, time), name in sorted(self._names.items(), key=lambda item: item[1]))

    def picture(self, film: FilmFile, time: Expr, span: Span) -> str:
        """The picture of a film at a time. Raises WeftError if the time is not one number a frame."""
        if time.free:
            words = "the time of a film is one number a frame, and this one differs from step to step of a loop"
            raise error("film-time-varies", words, span, "a loop over up to 16 constant steps may read several times")
        if (film, time) not in self._names:
            if sum(other.path == film.path for other, _ in self._names) == _MOST_TIMES:
                raise error("too-many-times", f"a film can be read at {_MOST_TIMES} times at once at most", span,
                            "cache(f, 60)::c<r, g, b> remembers its last pictures")  # fmt: skip
            self._names[film, time] = film.at(f"{digest(time):016x}")
        return self._names[film, time]


@dataclass(frozen=True)
class _Last:
    """The IR of a subgraph, and what it was lowered from."""

    patch: Patch
    subgraph: Subgraph
    lowered: Lowered

    def holds(self, patch: Patch, subgraph: Subgraph, kept: Container[str]) -> bool:
        """Whether the IR would be the same for another patch, in which the names in `kept` mean the same."""
        if subgraph != self.subgraph:
            return False
        evaluated = (*subgraph.strands, *subgraph.tied, *subgraph.exposes, *subgraph.borrows)
        if not all(ref.instance in kept for ref in evaluated):
            return False
        before = {sink.label: sink.statement.args for sink in self.patch.sinks}
        sinks = [sink.statement for sink in patch.sinks if sink.label in subgraph.sinks]
        names = (patch.instances, patch.spindles, self.patch.instances, self.patch.spindles)
        return all(before[label] is sink.args for label, sink in zip(subgraph.sinks, sinks, strict=True)) and all(
            word in kept for sink in sinks for word in words_of(sink) if any(word in known for known in names)
        )


@dataclass
class KeptLowering:
    """What one subgraph was lowered with, kept for the next patch: a pool, and the elaborators of its strands, one for
    each way of evaluating them (at points, or not). `made_for` is what they depend on, besides definitions."""

    pool: Pool
    numbers: Numbers = field(default_factory=Numbers)
    made_for: object = None
    elaborators: dict[bool, Elaborator[Expr]] = field(default_factory=dict)
    own_place: set[Expr] = field(default_factory=set)
    """The expressions that contain no read of state at another place."""
    current: Lowered | None = None
    """The IR with open numbers, if everything that it was lowered from is the same."""
    films: FilmNames = field(default_factory=FilmNames)
    """The films that the elaborators have read."""
    literals: LiteralAssignment = field(init=False)
    _last: _Last | None = None
    _kept: Set[str] | None = None
    _resolved: Set[str] = frozenset()
    """The names that were kept, and those that were resolved, in every patch since the elaborators were last
    continued."""

    def __post_init__(self) -> None:
        self.literals = LiteralAssignment(self.pool, self.numbers)

    def retain(self, patch: Patch, graph: RenderGraph, subgraph: Subgraph, budget: Budget, edit: Edit) -> None:
        """Continues with another patch; see `Elaborator.retain`."""
        self._resolved = edit.resolved if self._kept is None else self._resolved & edit.resolved
        self._kept = edit.kept if self._kept is None else self._kept & edit.kept
        self.pool.reopen(budget)
        strands = graph.strands() if subgraph.reads else {}
        read = {ref: strands[ref.alone] for ref in subgraph.reads}
        across = {ref: (strand.tied, strand.reason, strand.over, strand.axes) for ref, strand in read.items()}
        made_for = subgraph.context, across, frozenset(image.key for image in graph.images)
        self.current = None
        if made_for != self.made_for:
            self._forget()
        elif self._last is not None and self._last.holds(patch, subgraph, self._kept):
            self.current = self._last.lowered
            return
        self.made_for = made_for
        for elaborator in self.elaborators.values():
            elaborator.retain(patch, budget, self._kept, self._resolved)
        self._kept = None

    def keep(self, patch: Patch, subgraph: Subgraph, lowered: Lowered | None) -> None:
        """Notes the IR of a subgraph; None if lowering failed."""
        self._last = None if lowered is None else _Last(patch, subgraph, lowered)
        if lowered is None:
            self._forget()  # they were interrupted
        elif lowered.films:
            self._forget()  # they name the films of this patch

    def _forget(self) -> None:
        self.elaborators.clear()
        self.films = FilmNames()


def lower(
    patch: Patch, graph: RenderGraph, subgraph: Subgraph, contexts: ContextTable, known: Pool | KeptLowering
) -> Lowered:
    """The expressions of one subgraph, in a pool. What is `known` of an earlier patch is not evaluated again.

    Raises WeftError for errors that depend on the coordinates of a context (a remap of the time that reaches state, a
    program too large).
    """
    kept = KeptLowering(known) if isinstance(known, Pool) else known
    if kept.current is not None:
        return kept.literals.assigned(kept.current, contexts[subgraph.context])
    lowered = None
    try:
        lowered = _Lowering(patch, graph, subgraph, contexts, kept).lowered()
    finally:
        kept.keep(patch, subgraph, lowered)
    return kept.literals.assigned(lowered, contexts[subgraph.context])


@dataclass
class _Lowering:
    patch: Patch
    graph: RenderGraph
    subgraph: Subgraph
    contexts: ContextTable
    kept: KeptLowering

    def lowered(self) -> Lowered:
        spec = self.contexts[self.subgraph.context]
        first = next((s.statement.span for s in self.patch.sinks if s.label in self.subgraph.sinks), None)
        self.kept.pool.budget.spend(_STEPS_OF_A_SUBGRAPH, first)
        swept = self._known_elaborator(spec, points=False)
        outputs = self._outputs(swept)
        for ref in self.subgraph.tied:
            swept.strand(ref, swept.env.own)
        if spec.streams:
            # Readers of a stream read what has been played, so these strands have to be kept.
            outputs += tuple(Output(str(ref), swept.strand(ref, swept.env.own)) for ref in self.subgraph.exposes)
        while swept.has_pending:
            swept.advance()
        exposed: tuple[tuple[StrandRef, Expr], ...] = ()
        if self.subgraph.exposes and not spec.streams:
            points = self._known_elaborator(spec, points=True)
            points.slots = swept.slots
            exposed = tuple(
                (ref, points.strand(ref.alone, _along(ref, points, self.kept.pool))) for ref in self.subgraph.exposes
            )
        prefix = f"{spec.name}/"
        needed = self._slots_needed()
        slots = tuple(
            StateSlot(f"{prefix}{s.key}", s.key.kind, s.depth, s.planes, image=False, level=s.level)
            for s in sorted((s for s in swept.slots.values() if s.key in needed), key=lambda s: str(s.key))
        )
        values = {(f"{prefix}{key}", plane): value for (key, plane), value in swept.updates.items() if key in needed}
        updates = tuple(Update(key, plane, values[key, plane]) for key, plane in sorted(values))
        if spec.raster:
            self._check_raster_state(swept, updates, outputs)
        strands = self.graph.strands() if self.subgraph.borrows else {}
        own = frozenset[object]().union(*(strands[ref].slots for ref in self.subgraph.tied if ref in strands))
        others = frozenset[object]().union(*(strands[ref].slots for ref in self.subgraph.borrows))
        borrowed = frozenset(f"{prefix}{key}" for key in others - own)
        return Lowered(
            self.subgraph.name, spec.name, outputs, exposed, slots, updates, films=self.kept.films.outputs,
            borrowed=borrowed, reaches=self.patch.reaches,
        )

    def _slots_needed(self) -> set[object]:
        """The slots that the subgraph needs: those that its strands and sinks ask for, and those that these slots ask
        for. An elaborator that is kept from an earlier patch may know further slots."""
        needed: set[object] = set()
        if not any(elaborator.slots for elaborator in self.kept.elaborators.values()):
            return needed
        exposed = [ref.alone for ref in self.subgraph.exposes]
        waiting: list[Owner] = [*self.subgraph.sinks, *self.subgraph.tied, *exposed]
        while waiting:
            owner = waiting.pop()
            if owner in needed:
                continue
            needed.add(owner)
            for elaborator in self.kept.elaborators.values():
                if (found := elaborator.references.get(owner)) is not None:
                    waiting += (*found.strands, *found.slots, *found.images)
        return needed

    def _known_elaborator(self, spec: ContextSpec, points: bool) -> Elaborator[Expr]:
        elaborator = self.kept.elaborators.get(points)
        if elaborator is None:
            elaborator = self.kept.elaborators[points] = self._elaborator(spec, points)
        elaborator.heard |= self.graph.heard
        return elaborator

    def _elaborator(self, spec: ContextSpec, points: bool) -> Elaborator[Expr]:
        strands = self.graph.strands()
        across = {ref: ReadAcross.of(strands[ref.alone], self.contexts) for ref in self.subgraph.reads}
        images = frozenset(image.key for image in self.graph.images) if spec.sweeps_plane else frozenset[str]()
        domain = ExprDomain(self.kept.pool, spec, across, images, points, self.kept.films, self.kept.numbers)
        env = Environment(domain, self.patch.settings, spec.counters, domain.own)
        domain.own = env_own(domain, env, spec)
        env = Environment(domain, self.patch.settings, () if points else spec.counters, domain.own)
        return Elaborator(self.patch, domain, env, self.kept.pool.budget)

    def _outputs(self, elaborator: Elaborator[Expr]) -> tuple[Output, ...]:
        """The strands that the sinks consume, by their labels."""
        outputs: dict[str, Expr] = {}
        for sink in self.patch.sinks:
            if sink.label not in self.subgraph.sinks:
                continue
            for part in sink_parts(sink, elaborator.resolver):
                value = elaborator.expression(part.value, part.scope, sink.label, elaborator.env.own)
                outputs[part.label] = value
        return tuple(Output(label, value) for label, value in outputs.items())

    def _check_raster_state(
        self, elaborator: Elaborator[Expr], updates: Sequence[Update], outputs: Sequence[Output]
    ) -> None:
        """In audio, x and y depend on the time, so state that varies over them cannot be read at another x or y."""
        own_place = self.kept.own_place
        nodes = topological([*(u.value for u in updates), *(o.value for o in outputs)], own_place)
        elsewhere = [node for node in nodes if len(node.args) == 3 and isinstance(node.attr, SlotPlane)]
        over_plane = slots_over((elaborator.env.own.x, elaborator.env.own.y), updates) if elsewhere else set()
        for node in elsewhere:
            if isinstance(node.attr, SlotPlane) and node.attr.slot in over_plane:
                raise error("map-reaches-state", "in audio, state over x or y cannot be read at another place",
                            node.span, "delay(…) reads another time instead")  # fmt: skip
        if not elsewhere:
            own_place.update(nodes)


def env_own(domain: ExprDomain, env: Environment[Expr], spec: ContextSpec) -> Coordinates[Expr]:
    """The coordinates of a context without remaps."""

    def base(name: str) -> Expr:
        if spec.sweep_of(name) == "once":
            return domain.const(_STANDSTILL[name])
        return domain.pool.make("coord", (), name)

    if not spec.raster:
        return Coordinates(base("x"), base("y"), base("abstime"), base("channel"))
    time = domain.op("add", base("abstime"), base("since")) if spec.in_blocks else base("abstime")
    x = domain.op("fract", domain.op("mul", time, env.setting("pitch")))
    y = domain.op("fract", domain.op("div", time, env.setting("sweep")))
    return Coordinates(x, y, time, base("channel"))


def _counts(value: Expr) -> bool:
    """Whether an expression is an input that counts events, or a sum of such."""
    if value.op == "add":
        return all(map(_counts, value.args))
    return value.op == "uniform" and is_count(str(value.attr))


def _along(ref: StrandRef, elaborator: Elaborator[Expr], pool: Pool) -> Coordinates[Expr]:
    """Where a strand that others read along axes is evaluated: each axis has a coordinate of its own."""
    own = elaborator.env.own
    if not ref.axes:
        return own
    named = dict(zip(ref.axes, ref.coordinates, strict=True))
    axes: list[tuple[Coordinate, StrandRef]] = [(base, base_axis(base)) for base in BASES]
    for instance in elaborator.patch.instances.values():
        axes += [(axis, axis) for axis in (StrandRef(instance.name, name) for name in instance.axes)]
    there = {moves: pool.make("coord", (), named[str(axis)]) for moves, axis in axes if str(axis) in named}
    return elaborator.placed(own.moved(there))


@dataclass
class ExprLoop:
    """A loop in the making: its body is evaluated once, over variables."""

    pool: Pool
    shape: LoopShape
    head: tuple[Expr, ...]
    span: Span
    results: list[Expr] = field(default_factory=list)

    @property
    def index(self) -> Expr:
        return self.pool.make("loop_index", (), self.shape.level, self.span)

    @property
    def carried(self) -> list[Expr]:
        level, count = self.shape
        return [self.pool.make("loop_value", (), LoopValue(level, k), self.span) for k in range(count)]

    def close(self, nexts: Sequence[Expr]) -> bool:
        loop = self.pool.make("loop", (*self.head, *nexts), self.shape, self.span)
        self.results = [self.pool.make("loop_out", (loop,), k, self.span) for k in range(self.shape.carried)]
        return True


@dataclass(frozen=True, slots=True)
class ReadAcross:
    """A strand that another context computes: the context, why it is that, and the base coordinates on which the strand
    depends and at which others cannot read it as they can at those of `ContextSpec.read_over`; and its further axes."""

    owner: ContextSpec
    reason: str
    remembers: bool
    over: tuple[str, ...]
    axes: frozenset[str]

    @classmethod
    def of(cls, strand: Strand, contexts: ContextTable) -> ReadAcross:
        owner = contexts[strand.tied or ""]
        over = tuple([name for name in strand.over if name not in owner.read_over])
        remembers = bool(strand.slots)
        is_number = remembers and not owner.sweeps_plane
        return cls(owner, "it remembers" if is_number else strand.reason or "", remembers, over,
                   frozenset(map(str, strand.axes)))  # fmt: skip


@dataclass
class ExprDomain:
    """The domain of interned expressions. `across` has the strands that are read across, `images` the keys of what is
    kept as images in this context. With `points`, state is sampled at the coordinates; otherwise it is read at the
    element that is being computed if possible."""

    pool: Pool
    spec: ContextSpec
    across: Mapping[StrandRef, ReadAcross]
    images: frozenset[str]
    points: bool
    films: FilmNames
    numbers: Numbers = field(default_factory=Numbers)
    own: Coordinates[Expr] = field(init=False)
    _along: Mapping[StrandRef, StrandRef] = field(init=False)
    """What is read across along axes, by the strands themselves."""
    _written: dict[float, Expr] = field(default_factory=dict)
    _constants: Constants = field(default_factory=Constants)
    _nominal: Constants = field(default_factory=Constants)

    def __post_init__(self) -> None:
        nowhere = self.const(0.0)
        self.own = Coordinates(nowhere, nowhere, nowhere, nowhere)
        self._along = {ref.alone: ref for ref in self.across if ref.axes}

    def const(self, value: float, span: Span | None = None) -> Expr:
        known = self._written.get(value)
        if known is None:
            known = self.pool.const(value, span)
            if value:  # 0.0 and -0.0 are equal
                self._written[value] = known
        return known

    def number(self, number: Number) -> Expr:
        if number not in self.numbers.open:
            return self.const(number.value, number.span)
        made = self.pool.make("number", (), number, number.span)
        self._constants.known[made] = self._nominal.known[made] = number.value
        return made

    def _decide(self, value: Expr) -> None:
        """Notes that the value of an expression decides something, and so do the open numbers in it."""
        self.numbers.decide([node.attr for node in topological([value]) if isinstance(node.attr, Number)])

    def _closed(self, value: Expr) -> Expr:
        """An expression with the values of its open numbers, which decide something by this."""
        self._decide(value)
        found: dict[Expr, Expr] = {}
        for node in topological([value]):
            if isinstance(node.attr, Number):
                found[node] = self.const(node.attr.value, node.span)
            else:
                found[node] = self.pool.with_args(node, tuple([found[arg] for arg in node.args]))
        return found[value]

    def op(self, name: str, *args: Expr, span: Span | None = None) -> Expr:
        if name == "held" and self.is_count(args[0], span):
            return self.const(0.0)
        if name not in EXPANDING:
            return self.pool.make(name, args, None, span)
        known = len(self.pool)
        made = self.pool.make(name, args, None, span)
        if len(self.pool) > known:
            # The count need not be exact, so numbers stay open.
            size = expanded_size(name, [self._constants.of(arg) for arg in args])
            self.pool.budget.spend(STEPS * (size - 1), span)
        return made

    def uniform(self, name: str, nominal: float | None = None) -> Expr:
        made = self.pool.make("uniform", (), name)
        if nominal is not None:
            self._nominal.known[made] = nominal
        return made

    def is_count(self, value: Expr, span: Span | None) -> bool:
        if _counts(value):
            return True
        waiting = [value]
        while waiting:
            node = waiting.pop()
            if node.op == "uniform" and is_count(str(node.attr)):
                raise error("count-as-level", "this is computed of a count, and is above 0 from the first event on",
                            value.span or span, "rise, tally and the like take a count as it is, or a sum of counts: "
                            'rise(osc("/kick")@count) * level')  # fmt: skip
            if node.op in OPS and OPS[node.op].gives != "bool":
                waiting += node.args
        return False

    def unknown(self) -> Expr:
        raise TypeError("an argument that was never given reached lowering")

    def annotate(self, value: Expr, name: str, local: bool) -> None:
        self.pool.annotate(value, name, local)

    def is_unknown(self, value: Expr) -> bool:
        return False

    def constant(self, value: Expr) -> float | None:
        found = self._constants.of(value)
        if found is not None:
            self._decide(value)
        return found

    def nominal(self, value: Expr) -> float | None:
        found = self._nominal.of(value)
        if found is not None:
            self._decide(value)
        return found

    def loop_level(self, value: Expr) -> int:
        return value.free.bit_length() - 1

    def loop(self, level: int, first: Expr, last: Expr, inits: Sequence[Expr], span: Span) -> ExprLoop:
        return ExprLoop(self.pool, LoopShape(level, len(inits)), (first, last, *inits), span)

    def state(self, slot: SlotRequest, plane: int, ticks: Expr, at: Coordinates[Expr], span: Span) -> Expr:
        if at.abstime is not self.own.abstime:
            message = f"a map of the time cannot reach into {slot.key.kind}, which knows only its own time"
            hint = "delay(…) and cache(…) read earlier ticks" if slot.depth else "map the time inside of image(…)"
            raise error("map-reaches-state", message, span, hint)
        attr = SlotPlane(f"{self.spec.name}/{slot.key}", plane)
        here = at.x is self.own.x and at.y is self.own.y and not self.points and not slot.level
        args = (ticks,) if here else (ticks, at.x, at.y)
        return self.pool.make("state", args, attr, span)

    def may_keep(self, image: SlotRequest) -> bool:
        return str(image.key) in self.images

    def image(self, image: SlotRequest, at: Coordinates[Expr]) -> Expr | None:
        return self.state(image, 0, self.const(0.0), at, image.span) if self.may_keep(image) else None

    def source(self, call: Call, spec: SourceSpec, plane: int, axis: Expr | None, at: Coordinates[Expr]) -> Expr:
        if spec.is_heard:
            return self._heard(call, spec, plane, at)
        return self.picture(media_path(source_text(call, spec)), plane, at.x, at.y, call.span)

    def _heard(self, call: Call, spec: SourceSpec, plane: int, at: Coordinates[Expr]) -> Expr:
        if at.abstime is not self.own.abstime:
            message = f"a map of the time cannot reach into {spec.name}, which is heard now"
            raise error("map-reaches-state", message, call.span, "delay(…) reads what was heard earlier")
        (device,) = constant_arguments(call, spec)
        words = device if isinstance(device, str) else f"{device:g}"
        return self.pool.make("uniform", (), MicrophoneName(words, plane).name, call.span)

    def picture(self, name: str, plane: int, x: Expr, y: Expr, span: Span) -> Expr:
        return self.pool.make("picture", (x, y), PicturePlane(name, plane), span)

    def fetch(self, name: str, channel: int, number: Expr, span: Span) -> Expr:
        return self.pool.make("fetch", (number,), PicturePlane(name, channel), span)

    def film(self, film: FilmFile, plane: int, at: Coordinates[Expr], span: Span) -> Expr:
        if self.spec.name != FILM.owner:
            raise error("film-elsewhere", f"a film is a picture, and cannot be read in {self.spec.name} itself", span,
                        "bind it with ::f<r, g, b>, and f@r is read from the picture")  # fmt: skip
        return self.picture(self.films.picture(film, self._closed(at.abstime), span), plane, at.x, at.y, span)

    def ticks_played(self, ref: StrandRef) -> int:
        owner = self.across[ref].owner if ref in self.across else None
        return 0 if owner is None or self.spec.streams or owner.rate is not None else owner.keeps

    def external(self, ref: StrandRef, at: Coordinates[Expr], span: Span) -> Expr | None:
        across = self.across.get(ref)
        if across is None:
            return None
        owner = across.owner
        mapped = {str(axis): value for axis, value in at.axes if str(axis) in across.axes}
        moved = [*mapped, *(str(base_axis(name)) for name in across.over if self._is_moved(name, at, owner))]
        if moved:
            along = self._along.get(ref)
            ways = () if along is None else along.axes
            for axis in moved:
                name = axis.removeprefix(str(base_axis("")))
                is_own = name != axis and at.base(name) is self.own.base(name)
                if axis not in ways or (self.spec.streams and is_own):
                    raise _lost_coordinate(ref, axis, across, is_own, span)
            ref = along or ref
            mapped |= {str(base_axis(name)): at.base(name) for name in across.over}
        if "abstime" not in owner.read_over and at.abstime is not self.own.abstime:
            raise error(
                "cannot-read-across",
                f"{ref.short} is computed in {owner.name}, and what it was earlier is not kept", span,
                f"delay({ref.short}, ticks, max) remembers it",
            )  # fmt: skip
        place = (at.base(name) for name in owner.read_over)
        axes = (mapped.get(axis) or self.const(0.0) for axis in ref.axes)
        return self.pool.make("strand", (*place, *axes), ref, span)

    def _is_moved(self, name: str, at: Coordinates[Expr], owner: ContextSpec) -> bool:
        """Whether a base coordinate has another value where a strand is read than where its owner computes it."""
        here = at.base(name)
        if not owner.streams:
            return owner.sweep_of(name) != "once" or self.constant(here) != _STANDSTILL[name]
        # What was played has coordinates of its own, and so has each number that is read of it. A picture is a
        # function of its place, unless it shows what was played by the time.
        return here is not self.own.base(name) or (
            self.spec.sweep_of(name) in ("column", "row") and at.abstime is self.own.abstime
        )


def _lost_coordinate(ref: StrandRef, axis: str, across: ReadAcross, is_own: bool, span: Span) -> WeftError:
    """The error for a strand that depends on a coordinate or an axis which does not reach its owner."""
    owner = across.owner
    name = axis.removeprefix(str(base_axis("")))
    if name == axis:
        words = f"{ref.short} is computed in {owner.name}, where a map of {axis} does not reach it"
        return error("lost-coordinate", words, span, f"map {axis} where {ref.short} is made")
    because = f"{ref.short} is computed in {owner.name}, because {across.reason}"
    if not owner.streams:
        hint = f"{ref.short}({axis} ~ {_STANDSTILL[name]:g}) is read where {axis} has this value"
        return error("lost-coordinate", f"{because}, and {axis} is the same there", span, hint)
    what = f"it has a {axis} of its own" if is_own else f"a map of {axis} does not reach it"
    example = "p = phasor(1), p" if across.remembers else "mic()::m<l>, m@l"
    part = "remembers" if across.remembers else "is heard"
    hint = f"give what {part} a name of its own: after {example} * {axis} is computed here"
    return error("lost-coordinate", f"{because}, where {what}", span, hint)


# --- the inputs of a context that streams ---
#
# It runs apart from all others, at its own pace, and cannot wait for them: mouse, keys, parameters and strands are sent
# to it once a frame, and smoothed from value to value. A strand that it reads all over a picture is sent as a picture.


@dataclass(eq=False)
class StrandsBelow:
    """Finds the strands that an expression needs, once for each expression."""

    _known: dict[Expr, tuple[Expr, ...]] = field(default_factory=dict)

    def all(self, roots: Iterable[Expr]) -> tuple[Expr, ...]:
        """Those that some expressions need, in the order of `depth_first`."""
        return _joined([found_below(root, self._known, self._found) for root in roots])

    def _found(self, node: Expr) -> tuple[Expr, ...]:
        below = _joined([self._known[arg] for arg in node.args])
        return (*below, node) if node.op == "strand" else below


def _joined(lists: Iterable[tuple[Expr, ...]]) -> tuple[Expr, ...]:
    """The members of several lists, each once."""
    several = [each for each in dict.fromkeys(lists) if each]
    if len(several) < 2:
        return several[0] if several else ()
    return tuple(dict.fromkeys(chain.from_iterable(several)))


class FeedCollector:
    """Replaces inputs by coordinates, and collects the expressions that other contexts have to evaluate for them. They
    are numbered in the order of the `strands`."""

    def __init__(self, name: str, pool: Pool, strands: Iterable[Expr], rate: Mapping[Expr, Rate]) -> None:
        self._pool = pool
        fed = (strand for strand in strands if not _in_stream(strand, rate))
        self._labels = {strand: f"{name}:{strand.attr}/{k}" for k, strand in enumerate(fed)}

    @property
    def feeds(self) -> tuple[Output, ...]:
        """The expressions that other contexts evaluate once a frame."""
        return tuple(Output(label, node) for node, label in self._labels.items())

    def replaced(self, node: Expr, args: tuple[Expr, ...]) -> Expr:
        """An expression as the stream computes it; `args` are the replacements of its operands."""
        match node.op, node.attr:
            case "uniform", str(name) if is_smoothed(name):
                return self._coordinate(name, node)
            case "strand", StrandRef() as ref if _is_of_sample(node):
                return self._coordinate(str(ref), node)
            case "strand", StrandRef() as ref:
                return self._fed(node, args, ref)
        return self._pool.with_args(node, args)

    def _fed(self, node: Expr, args: tuple[Expr, ...], ref: StrandRef) -> Expr:
        if node in self._labels:
            # The place where it is read does not depend on the stream, so the operands can stay as they were.
            return self._coordinate(self._labels[node], node)
        # Every sample, or every channel, reads it at another place.
        if ref.axes:
            along = f"along {', '.join(ref.axes)} one is read a frame"
            words = f"each sample reads {ref.short} at another place, and {along}"
            raise error("cannot-read-across", words, node.span, "such as (me@x ~ 0.5, me@y ~ 0.5), and a value that "
                        "does not depend on the time")  # fmt: skip
        if len(args) == 1:
            words = f"a map of the time cannot reach into {ref}, which knows only its own time"
            raise error("map-reaches-state", words, node.span, "delay(…) and cache(…) read earlier ticks")
        return self._pool.make("picture", args, PicturePlane(view_of(ref), 0), node.span)

    def _coordinate(self, name: str, node: Expr) -> Expr:
        return self._pool.make("coord", (), name, node.span)


def _in_stream(strand: Expr, rate: Mapping[Expr, Rate]) -> bool:
    """Whether the place where a strand is read depends on the stream: on the sample that is being computed, or on the
    channel."""
    if _is_of_sample(strand) or any(rate[arg] > Rate.FRAME for arg in strand.args):
        return True
    return any((part.op, part.attr) == ("coord", "channel") for part in topological(strand.args))


def _is_of_sample(strand: Expr) -> bool:
    """Whether it is a strand of the same stream, read at the sample that is being computed."""
    along = isinstance(strand.attr, StrandRef) and strand.attr.axes
    return len(strand.args) == 1 and not along and _own_time(strand.args[0])


def _own_time(node: Expr) -> bool:
    """Whether an expression is the time of the sample that is being computed."""
    if node.op == "add":
        return {(arg.op, arg.attr) for arg in node.args} == {("coord", "abstime"), ("coord", "since")}
    return (node.op, node.attr) == ("coord", "abstime")
