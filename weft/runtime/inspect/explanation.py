"""Why a pixel or a sample has its value: what it is computed from, with all values, and the numbers of the text that it
depends on most.

The values are those of the reference machine, at one place and one time. What a patch remembers is computed from the
start of the performance, tick by tick, or from as many ticks before as a bound allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np

from weft.backends.cpu import EXECUTORS, executor_problem
from weft.backends.executors import Executor
from weft.backends.launch import Even, Launch, StateMemory, Value, picture_coords
from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.backends.vm import Interpreter
from weft.codegen.compilation import compile_films, compile_kernel
from weft.codegen.kernel import Kernel, Unit
from weft.contexts import VISUAL, ContextSpec, ContextTable
from weft.errors import Source, Span, WeftError, did_you_mean, error
from weft.graph.nodes import Subgraph
from weft.graph.patch import Patch, SinkStatement
from weft.ir.expr import Expr, Lowered, Output, SlotPlane, topological
from weft.ir.passes import PASSES, run_passes
from weft.ir.rates import PassContext, Rate
from weft.media.sampled import header_of
from weft.names import is_live, shown
from weft.permissions import DEFAULT_PERMISSIONS, Permissions
from weft.runtime.compiling.stages import Build, Request, build
from weft.runtime.hands.clock import Moment
from weft.runtime.inspect.dual_numbers import DualMemory, DualReach, DualSteps, reach_of
from weft.runtime.inspect.strands import OF_SOUND, Evaluation, SoundBefore, find_strands, read_patch
from weft.runtime.inspect.tracing import TracedStatement, TraceNode, trace
from weft.runtime.program.program import ProgramLoader
from weft.syntax.scanner import read_text

# The passes without which the value at one place, in double precision, would be another.
_NEEDED = frozenset({"settle_state", "expand", "settle_holds", "fold", "shrink"})

# What memory may take, which is some seconds: the operations of the reference machine at one place, those of them with
# derivatives, and the pixels and samples that other executors compute.
_MOST_STEPS = 4_000_000
_MOST_FOLLOWED = 200_000
_MOST_PIXELS = 200_000_000
_MOST_SAMPLES = 3_000_000

_BLOCK = 8192

# The executors for pictures and sounds that are too large for the reference machine, the best first.
_FAST = ("native", "vector")

# The most nodes of the tree that have values.
_MOST_NODES = 2000

# The coordinates by which derivatives are taken, besides numbers and parameters.
_COORDINATES = ("x", "y", "abstime", "channel")

Effect: TypeAlias = Literal["slope", "step", "unknown", "decides", "none"]
"""How a number of the text acts on a value: by a derivative; in steps; in a way that is not known; by deciding what is
computed; or not at this place."""


@dataclass(frozen=True)
class PlaceAndTime:
    """Where and when something is explained. The coordinates in `given` were asked for."""

    x: float
    y: float
    channel: float
    moment: Moment
    given: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ExplainedNode:
    """A name or a call of the tree, with its value at the place; None if it has none of its own, such as in a loop.
    `reads` are the places of others in the list of nodes."""

    kind: str
    name: str
    span: Span
    value: float | None
    reads: tuple[int, ...]
    taken: int | None = None
    """Of a choice: 0 if the first side is taken, 1 for the second."""
    place: tuple[tuple[str, float], ...] = ()
    """The coordinates at which a strand is read: those that differ from the output's."""


@dataclass(frozen=True)
class Influence:
    """What a number of the text, a parameter or another input does to the outputs. `slopes` are the derivatives, one
    for each output; `change` is what the outputs change by if it grows by a hundredth of itself, or by 0.01 if it is
    0. They are taken to grow in straight lines."""

    name: str
    value: float
    span: Span | None
    effect: Effect
    slopes: tuple[float, ...]
    is_partial: bool = False
    """Whether it acts in another way as well, which is not known."""

    @property
    def change(self) -> tuple[float, ...]:
        step = self.value / 100 if self.value else 0.01
        return tuple(slope * step for slope in self.slopes)

    @property
    def size(self) -> float:
        """The largest change of an output."""
        return max(map(abs, self.change), default=0.0)


@dataclass(frozen=True)
class Explanation:
    """The outputs of a statement at a place, as nodes of a tree, and what acts on them, the strongest first. `notes`
    say what is to be known about the values."""

    sink: str
    context: str
    span: Span
    place: PlaceAndTime
    size: tuple[int, int]
    is_picture: bool
    is_sound: bool
    nodes: tuple[ExplainedNode, ...]
    outputs: tuple[int, ...]
    influences: tuple[Influence, ...]
    slopes: Mapping[str, tuple[float, ...]]
    """The derivatives by the coordinates."""
    ticks: int
    ticks_before: int
    followed: int
    notes: tuple[str, ...] = ()

    @property
    def pixel(self) -> tuple[int, int] | None:
        """The pixel at the place, of a picture."""
        if not self.is_picture:
            return None
        return _pixel(self.place.x, self.size[0]), _pixel(self.place.y, self.size[1])


def _pixel(coordinate: float, count: int) -> int:
    return min(max(math.floor(coordinate * count), 0), count - 1) if math.isfinite(coordinate) else 0


# --- what is asked for ---


def chosen_sink(patch: Patch, name: str | None) -> SinkStatement:
    """The output statement that is meant: by its label, as `weft graph` lists it, by its word, by the name of its
    window, or by its line; without a name, the first picture, or else the first statement. Raises WeftError."""
    sinks = patch.sinks
    if not sinks:
        raise error("no-output", "the patch has no output statement", hint=f"for example {VISUAL.example}")
    if name is None:
        return next((sink for sink in sinks if sink.spec.sweeps_plane), sinks[0])
    for matches in (
        lambda sink: sink.label == name, lambda sink: sink.target == name,
        lambda sink: name in (*sink.spec.statements, sink.spec.name),
        lambda sink: name == str(sink.statement.span.source.position(sink.statement.span.start)[0]),
    ):  # fmt: skip
        if (found := next(filter(matches, sinks), None)) is not None:
            return found
    labels = [sink.label for sink in sinks]
    raise error("no-such-output", f'the patch has no output statement "{name}"',
                hint=did_you_mean(name, labels) or f"it has {', '.join(labels)}")  # fmt: skip


@dataclass(frozen=True)
class WhyQuestion:
    """What is to be explained: the output statement, or the strand, of a `name`, at a place. Memory goes back `ticks`
    ticks, or as many as some seconds suffice for."""

    source: Source
    contexts: ContextTable
    place: PlaceAndTime
    name: str | None = None
    ticks: int | None = None
    permissions: Permissions = DEFAULT_PERMISSIONS
    settings: Mapping[str, float] | None = None
    """Those that are other than the patch says, such as the size of the picture."""
    read: Callable[[str], str] = read_text
    """Gives the texts of files that are included."""


def explain(question: WhyQuestion, patch: Patch | None = None) -> Explanation:
    """Explains the value of an output at a place. Raises WeftError for mistakes in the text, and for a name that it
    does not have."""
    patch = patch or read_patch(question.source, question.contexts, question.permissions, question.read)
    built, sink = _built(question, patch)
    subgraph = _subgraph_of(built, sink)
    notes: list[str] = []
    try:
        traced = trace(built.patch, built.graph, subgraph, sink, question.contexts, frozenset())
        if built.graph.images:
            notes.append("image(…) is evaluated at the place itself, and not between the pixels of its picture")
    except WeftError:
        images = frozenset(image.key for image in built.graph.images)
        if not images:
            raise
        # Without images it is too large, or reads memory in another time.
        traced = trace(built.patch, built.graph, subgraph, sink, question.contexts, images)
    return _Explaining(question, built, sink, traced, notes).explanation()


def _built(question: WhyQuestion, patch: Patch) -> tuple[Build, SinkStatement]:
    """The patch with only the output statement in question, and this statement."""
    only, consume, name, is_stream = None, None, question.name, False
    if name is not None and name.partition("@")[0].partition("[")[0] in patch.instances:
        consume = f"display({find_strands(patch, name)[0].short})\n"
    else:
        chosen = chosen_sink(patch, name)
        span, is_stream = chosen.statement.span, chosen.spec.streams
        only = span.source.name, span.start

    def built_with(stay: frozenset[str]) -> Build:
        return build(Request(
            question.source, question.contexts, question.settings, probe=header_of, consume=consume, only=only,
            stay=stay, permissions=question.permissions, read=question.read,
        ))  # fmt: skip

    try:
        built = built_with(frozenset())
    except WeftError as failure:
        if not any(each.code in OF_SOUND for each in failure.diagnostics):
            raise
        if is_stream:
            raise error("not-drawn", "this sound reads what a picture remembers, which is not drawn here",
                        failure.diagnostics[0].span, "weft render plays it") from failure  # fmt: skip
        # Strands that remember belong to the sound only because the sound is played.
        built = built_with(frozenset(word for spec in question.contexts if spec.streams for word in spec.statements))
    spans = ((sink, sink.statement.span) for sink in built.patch.sinks)
    is_asked = (lambda span: span.source.name == "(asked for)") if only is None else (
        lambda span: (span.source.name, span.start) == only)  # fmt: skip
    return built, next(sink for sink, span in spans if is_asked(span))


def _subgraph_of(built: Build, sink: SinkStatement) -> Subgraph:
    return next(each for each in built.graph.subgraphs if sink.label in each.sinks)


# --- the evaluation ---


@dataclass
class _Explaining:
    question: WhyQuestion
    built: Build
    sink: SinkStatement
    traced: TracedStatement
    notes: list[str] = field(default_factory=list)

    @property
    def _spec(self) -> ContextSpec:
        return self.question.contexts[self.sink.spec.name]

    def explanation(self) -> Explanation:
        traced, settings = self.traced, self.built.patch.settings
        visible = [node for node in traced.nodes if _is_shown(node)][:_MOST_NODES]
        exprs = (
            expr for node in visible for expr in (node.value, node.condition, *(moved for _, moved in node.place))
        )  # fmt: skip
        run = _PlaceRun(self, list(dict.fromkeys(expr for expr in exprs if expr is not None and not expr.free)))
        returned = run.returned()
        count = len(traced.outputs)
        outputs, values = returned[:count], dict(zip(run.asked, map(float, returned[count:]), strict=True))
        nodes = _nodes(traced.outputs, set(visible), values)
        reaches = list(map(reach_of, outputs))
        if self._spec.sweeps_plane and settings["samples"] > 1:
            self.notes.append("a pixel shows the mean of several samples; this is the one in its middle")
        return Explanation(
            self.sink.label, self._spec.name, self.sink.statement.span, run.place, run.size, self._spec.sweeps_plane,
            self._spec.raster, nodes, tuple(range(count)), tuple(self._influences(reaches)),
            {name: tuple(reach.slopes.get(name, 0.0) for reach in reaches) for name in _COORDINATES},
            run.ticks, run.ticks_before, run.followed, tuple(self.notes),
        )  # fmt: skip

    def _influences(self, reaches: Sequence[DualReach]) -> list[Influence]:
        inputs = self.inputs()
        found: list[Influence] = []
        for name, value in inputs.items():
            number = self.traced.numbers.get(name)
            slopes = tuple(reach.slopes.get(name, 0.0) for reach in reaches)
            is_lost = any(name in reach.lost for reach in reaches)
            effect: Effect = "none"
            if any(slopes):
                effect = "slope"
            elif is_lost:
                effect = "unknown"
            elif name in self.traced.decisive:
                effect = "decides"
            elif any(name in reach.steps for reach in reaches):
                effect = "step"
            found.append(Influence(
                number.span.text if number is not None else name, value, number.span if number is not None else None,
                effect, slopes, is_lost and effect == "slope",
            ))  # fmt: skip
        order: Sequence[Effect] = ("slope", "step", "unknown", "decides", "none")
        return sorted(found, key=lambda each: (order.index(each.effect), -each.size))

    def inputs(self) -> dict[str, float]:
        """The numbers of the text, and the parameters and other inputs that the statement reads, with their values."""
        given = self.question.place.moment.inputs
        read = {str(node.attr) for node in self.traced.lowered.nodes if node.op == "uniform" and "@" in str(node.attr)}
        numbers = {name: number.value for name, number in self.traced.numbers.items()}
        return {**numbers, **{name: float(given.get(name, 0.0)) for name in sorted(read)}}


def _is_shown(node: TraceNode) -> bool:
    """Whether a node is of the patch, and not of a library."""
    return not node.span.source.library


def _nodes(
    outputs: Sequence[TraceNode], shown: set[TraceNode], values: Mapping[Expr, float]
) -> tuple[ExplainedNode, ...]:
    """The nodes in the order in which they are met, the outputs first. What a library computes in between is left out,
    and so is the side of a choice that is not taken."""
    order: dict[TraceNode, int] = {node: at for at, node in enumerate(outputs)}
    waiting, reads, taken = list(outputs), dict[TraceNode, list[TraceNode]](), dict[TraceNode, int]()
    while waiting:
        node = waiting.pop(0)
        left_out = None
        if node.condition is not None and node.sides is not None and node.condition in values:
            taken[node] = 0 if values[node.condition] != 0 else 1
            left_out = node.sides[1 - taken[node]]
        reads[node] = [
            each for direct, read in node.reads if left_out is None or not _is_within(read, left_out)
            for each in _visible(direct, node, shown)
        ]  # fmt: skip
        for each in reads[node]:
            if each not in order:
                order[each] = len(order)
                waiting.append(each)
    return tuple(
        ExplainedNode(
            node.kind, node.name, node.span, None if node.value is None else values.get(node.value),
            tuple(dict.fromkeys(order[each] for each in reads[node])), taken.get(node),
            tuple((name, values[moved]) for name, moved in node.place if moved in values),
        )
        for node in order
    )  # fmt: skip


def _is_within(inner: Span, outer: Span) -> bool:
    return inner.source is outer.source and outer.start <= inner.start and inner.end <= outer.end


def _visible(node: TraceNode, above: TraceNode, shown: set[TraceNode]) -> list[TraceNode]:
    """The node itself; or what is read below it, if it is not shown or if it is the whole value of the one above."""
    found: dict[TraceNode, None] = {}
    waiting, seen = [node], {node}
    while waiting:
        each = waiting.pop(0)
        is_whole = each.value is above.value and each.kind in ("call", "local") and each.condition is None
        if each in shown and not is_whole:
            found[each] = None
            continue
        below = [other for other, _ in each.reads if other not in seen]
        seen.update(below)
        waiting = below + waiting
    return list(found)


class _PlaceRun:
    """The ticks that lead to a place and a time, and the evaluation there."""

    def __init__(self, explaining: _Explaining, asked: Sequence[Expr]) -> None:
        self.asked = asked
        self._explaining = explaining
        built, traced, question = explaining.built, explaining.traced, explaining.question
        self._settings = settings = built.patch.settings
        self._spec = question.contexts[explaining.sink.spec.name]
        self.size = int(settings["width"]), int(settings["height"])
        also = tuple(Output(f"node {at}", expr) for at, expr in enumerate(asked))
        context = PassContext(traced.pool, self._spec, built.patch.media)
        passes = [step for step in PASSES if step.name in _NEEDED]
        lowered = replace(traced.lowered, outputs=traced.lowered.outputs + also)
        lowered = run_passes(lowered, context, passes=passes)
        self._kernel = self._compiled(lowered, context)
        # The same without the nodes of the tree, for the ticks before.
        self._plain = self._compiled(replace(lowered, outputs=lowered.outputs[: len(traced.outputs)]), context)
        films = compile_films(lowered, self._spec, pool=traced.pool) if lowered.films else None
        unit = Unit(_subgraph_of(built, explaining.sink), self._kernel, {}, "", films=films)
        for name in sorted(filter(is_live, unit.pictures)):
            self._note(f"{shown(name)} is not opened here: it is as before it begins")
        self._evaluation = Evaluation(
            unit, settings, self._executor(), self._executor(), self._loop_stopped, self._before(unit)
        )
        inputs = explaining.inputs()
        self.place = self._placed(question.place, inputs)
        self._is_whole = any(node.op == "sample" for _, node in self._kernel.walk())
        """Whether whole pictures have to be computed, because memory or images are read at other places."""
        self.ticks_before = self._ticks_before()
        self.ticks = self._ticks()
        self.followed = self._followed()
        """The last ticks, in which memory is followed."""
        names = frozenset((*inputs, *_COORDINATES))
        memory = DualMemory(not self._is_whole, _made_of(lowered, frozenset(inputs)))
        self._duals = DualSteps(self._kernel, names, memory)
        self._interpreter = Interpreter(self._kernel.alone, alter=self._duals.altered)
        self._following = Interpreter(self._plain.alone, alter=DualSteps(self._plain, names, memory).altered)

    def _placed(self, place: PlaceAndTime, inputs: Mapping[str, float]) -> PlaceAndTime:
        """The place with all inputs; where pixels are remembered, it is the centre of one."""
        place = replace(place, moment=replace(place.moment, inputs={**place.moment.inputs, **inputs}))
        if not any(slot.image for slot in self._kernel.slots):
            return place
        x, y = ((_pixel(each, n) + 0.5) / n for each, n in zip((place.x, place.y), self.size, strict=True))
        return replace(place, x=x, y=y)

    def _compiled(self, lowered: Lowered, context: PassContext) -> Kernel:
        return compile_kernel(lowered, self._spec, True, context.pool, context.rates(lowered))

    def _executor(self) -> Executor:
        return EXECUTORS[next(name for name in _FAST if executor_problem(name) is None)]()

    def _before(self, unit: Unit) -> SoundBefore | None:
        whole, contexts = self._explaining.built.compiled, self._explaining.question.contexts
        if not whole.heard and not any(kernel.strands for kernel in unit.kernels):
            return None
        for ref in dict.fromkeys(ref for kernel in unit.kernels for ref in kernel.strands):
            self._note(f"{ref.short} is computed elsewhere: what it is made of is not followed")
        streams = [spec.name for spec in contexts if spec.streams]
        return SoundBefore(whole, ProgramLoader(choose(load_registry(), streams), offline=True))

    def _note(self, words: str) -> None:
        if words not in self._explaining.notes:
            self._explaining.notes.append(words)

    def _loop_stopped(self) -> None:
        self._note("a loop reached its limit of steps")

    # --- ticks ---

    @property
    def _rate(self) -> float:
        return self._settings["rate" if self._spec.raster else "fps"]

    def _ticks_before(self) -> int:
        """The ticks from the start up to the moment, if anything is remembered."""
        return max(0, round(self.place.moment.abstime * self._rate)) if self._kernel.remembers else 0

    def _ticks(self) -> int:
        """The ticks that are computed before the moment."""
        if self._explaining.question.ticks is not None:
            return min(self._explaining.question.ticks, self.ticks_before)
        if self._spec.raster:
            return min(_MOST_SAMPLES, self.ticks_before)
        if self._is_whole:
            return min(max(1, _MOST_PIXELS // (self.size[0] * self.size[1])), self.ticks_before)
        return min(max(1, _MOST_STEPS // self._steps), self.ticks_before)

    @property
    def _steps(self) -> int:
        return max(1, sum(1 for _ in self._plain.walk()))

    def _followed(self) -> int:
        return 0 if self._is_whole else min(self.ticks, max(1, _MOST_FOLLOWED // self._steps))

    def _notes_on_memory(self) -> None:
        unit = "sample" if self._spec.raster else "frame"
        if self.ticks < self.ticks_before:
            before = f"{self.ticks:,} {unit}{'s' * (self.ticks != 1)}"
            self._note(f"memory begins {before} before, not {self.ticks_before:,}: --ticks takes it further back")
        if self._is_whole:
            self._note("pictures are read at other places: what numbers do through these is not followed")
        elif self.followed < self.ticks:
            self._note(f"what numbers do through memory is followed over the last {self.followed:,} {unit}s")

    def returned(self) -> list[float]:
        """The outputs, and what else is asked, with their reach."""
        self._notes_on_memory()
        with np.errstate(all="ignore"):
            if self._spec.raster:
                self._run_sound()
            elif self._is_whole:
                self._run_picture()
            else:
                self._run_pixel()
        return self._duals.returned

    def _moment(self, back: int) -> Moment:
        moment = self.place.moment
        return replace(moment, abstime=moment.abstime - back / self._rate, tick=moment.tick - back)

    def _run_pixel(self) -> None:
        """Computes the same place, tick by tick."""
        memory = StateMemory(self._kernel.slots, (1, 1), np.float64)
        plain = Interpreter(self._plain)
        for back in range(self.ticks, 0, -1):
            self._evaluate(self._following if back <= self.followed else plain, memory, self._moment(back), 0, 0)
            memory.advance()
        self._evaluate(self._interpreter, memory, self.place.moment, 0, 0)

    def _run_picture(self) -> None:
        """Computes whole pictures up to this tick, and then the place in this tick."""
        width, height = self.size
        coords = picture_coords(width, height)
        del coords["abstime"]
        moment = self.place.moment
        memory = self._evaluation.advanced(coords, (height, width), moment, self.ticks, self._plain)
        if any(not slot.outlives for slot in self._plain.slots):
            launch = self._evaluation.launch(self._plain, memory, coords, (height, width), moment)
            self._executor().load(self._plain).planes(memory, launch)
            memory.advance(-1)  # images of this tick are there, and what is remembered is that of the tick before
        x, y = _pixel(self.place.x, width), _pixel(self.place.y, height)
        self._evaluate(self._interpreter, memory, self.place.moment, y, x)

    def _evaluate(
        self, interpreter: Interpreter, memory: StateMemory, moment: Moment, row: int, column: int
    ) -> None:
        kernel = interpreter.kernel
        coords: dict[str, Value] = {
            "x": np.array([self.place.x]), "y": np.array([self.place.y]), "channel": self.place.channel
        }  # fmt: skip
        launch = self._evaluation.launch(kernel, memory, coords, (1, 1), moment)
        machine = interpreter.begin(memory, launch)
        for name, _ in kernel.coords:
            given = launch.coords[name]
            machine.coords[name] = float(given[0] if isinstance(given, np.ndarray) and given.ndim else given)
        machine.row, machine.column = row, column
        for rate in (Rate.COLUMN, Rate.ROW, Rate.ELEMENT):
            interpreter.run(rate, machine)
        machine.stack.clear()
        if machine.loop_stopped:
            self._loop_stopped()

    def _run_sound(self) -> None:
        """Computes one sample after another."""
        memory = StateMemory(self._kernel.slots, (1, 1), np.float64)
        self._play(memory, self.ticks, self.followed)
        self._follow(self._following, memory, self.followed, 0)
        self._follow(self._interpreter, memory, 0, -1)

    def _launch_of_sound(self, kernel: Kernel, memory: StateMemory, back: Sequence[int]) -> Launch:
        moment = self.place.moment
        even = Even(-back[0], self._rate, moment.abstime)
        coords: dict[str, Value] = {"abstime": even.times(len(back)), "channel": self.place.channel}
        launch = self._evaluation.launch(kernel, memory, coords, (1, len(back)), moment, 1 / self._rate)
        return replace(launch, even=even)

    def _play(self, memory: StateMemory, first: int, end: int) -> None:
        """Computes samples as they are played, from `first` samples before the moment to `end` samples before it."""
        executable = self._executor().load(self._plain) if first > end else None
        for start in range(first, end, -_BLOCK):
            launch = self._launch_of_sound(self._plain, memory, range(start, max(end, start - _BLOCK), -1))
            if executable is not None:
                executable.planes(memory, launch)

    def _follow(self, interpreter: Interpreter, memory: StateMemory, first: int, end: int) -> None:
        if first <= end:
            return
        machine = interpreter.begin(memory, self._launch_of_sound(interpreter.kernel, memory, (first,)))
        for back in range(first, end, -1):
            machine.coords["channel"] = self.place.channel
            machine.coords["abstime"] = self.place.moment.abstime - back / self._rate
            interpreter.run(Rate.ELEMENT, machine)
            machine.stack.clear()
            memory.advance()
        if machine.loop_stopped:
            self._loop_stopped()


def _made_of(lowered: Lowered, inputs: frozenset[str]) -> Mapping[str, frozenset[str]]:
    """The inputs that the values in each slot are made of, directly or through other slots."""
    names: dict[str, set[str]] = {}
    others: dict[str, set[str]] = {}
    for update in lowered.updates:
        for node in topological([update.value]):
            if node.op == "uniform" and node.attr in inputs:
                names.setdefault(update.slot, set()).add(str(node.attr))
            elif isinstance(node.attr, SlotPlane):
                others.setdefault(update.slot, set()).add(node.attr.slot)
    changed = True
    while changed:
        changed = False
        for slot, reads in others.items():
            known = names.setdefault(slot, set())
            more = set[str]().union(*(names.get(each, set()) for each in reads)) - known
            known |= more
            changed = changed or bool(more)
    return {slot: frozenset(found) for slot, found in names.items()}
