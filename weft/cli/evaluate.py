"""`weft eval`: the values of a strand, and the places that `--at` gives."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import click

from weft.backends.cpu import EXECUTORS, executor_problem
from weft.backends.executors import Executor
from weft.backends.registry import load_registry
from weft.backends.select import Choice, choose
from weft.backends.vm import ReferenceExecutor, TraceEvent
from weft.beats import INPUTS, Beats
from weft.cli.arguments import ALLOW, FILE, SIZE, WholeRange
from weft.cli.console import Missing, output, say, show
from weft.codegen.bytecode import instruction_text
from weft.codegen.kernel import Unit
from weft.contexts import VISUAL, ContextTable, context_table
from weft.errors import Source, did_you_mean
from weft.graph.domain import BASES, FIELDS, FIXED_FIELDS, Coordinates, Environment
from weft.graph.patch import Patch
from weft.media.sampled import header_of
from weft.names import StrandRef
from weft.ops import OPS
from weft.permissions import Permissions
from weft.runtime.films.offline import initial_inputs
from weft.runtime.hands.clock import Moment
from weft.runtime.inspect.strands import (
    Alone, DeviceEvaluation, Evaluation, SoundBefore, compile_alone, find_strands, needs_picture, read_patch
)
from weft.runtime.program.findings import loop_stopped
from weft.runtime.program.program import ProgramLoader
from weft.syntax.ast import number_text
from weft.syntax.includes import open_source

# The order in which `--at` applies coordinates, coarse before fine: each shifts the time by the difference, so that a
# beat is found within the given measure.
_ORDER = ("x", "y", "px", "py", "channel", "abstime", "time", "absframe", "frame", "abssample", "sample",
          "beats", "measure", "beat", "measurephase", "beatphase")  # fmt: skip

_TOLERANCE = 1e-6

_Kind: TypeAlias = Literal["coordinate", "axis", "input"]


@dataclass(frozen=True)
class QueryPlace:
    """Where a strand is evaluated: the coordinates, the moment, and the axes of caches. The coordinates in `given` were
    typed, and the others have their usual values."""

    x: float
    y: float
    channel: float
    moment: Moment
    axes: Mapping[str, float]
    given: frozenset[str]


def read_place(text: str, patch: Patch) -> QueryPlace:
    """The place that a text like `x=0.5,time=1,mouse@x=0.3,h@k=2` gives; the rest has its usual value.

    Raises click.UsageError for a name that the patch does not know, and for coordinates that exclude each other.
    """
    kinds: dict[str, _Kind] = {
        **{f"{instance.name}@{axis}": "axis" for instance in patch.instances.values() for axis in instance.axes},
        **{name: "input" for name in initial_inputs(patch) if name not in INPUTS},
        **dict.fromkeys((*BASES, *FIELDS), "coordinate"),
    }
    given: dict[_Kind, dict[str, float]] = {"coordinate": {}, "axis": {}, "input": {}}
    for asked, value in _numbers(text).items():
        parameter = patch.instances.get(asked)
        only = f"{asked}@{next(iter(parameter.outputs))}" if parameter and len(parameter.outputs) == 1 else asked
        name = only if kinds.get(only) == "input" else asked
        if name in FIXED_FIELDS:
            raise click.UsageError(f'"{name}" is a setting of the patch, which --at cannot change')
        if name not in kinds:
            hint = did_you_mean(name, kinds)
            raise click.UsageError(f'--at: the patch has no "{name}"' + (f" ({hint})" if hint else ""))
        if kinds[name] == "axis" and not math.isfinite(value):
            raise click.UsageError(f"--at: {name} counts ticks, and {value:g} is no number of them")
        given[kinds[name]][name] = value
    at = _coordinates(given["coordinate"], patch.settings)
    frame = int(_environment(patch.settings, at).field("absframe", at)) if math.isfinite(at.abstime) else 0
    moment = Moment(frame, at.abstime, inputs=initial_inputs(patch) | given["input"])
    return QueryPlace(at.x, at.y, at.channel, moment, given["axis"], frozenset(given["coordinate"]))


def _numbers(text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, equals, number = (part.strip() for part in entry.partition("="))
        try:
            value = float(number)
        except ValueError:
            raise click.UsageError(f'--at takes name=number, not "{entry}"') from None
        name = name.removeprefix("me@")
        if not equals or name in found:
            raise click.UsageError(f'"{name}" is given twice in --at')
        found[name] = value
    return found


class _Floats:
    """Derives fields as numbers."""

    def __init__(self, settings: Mapping[str, float]) -> None:
        self._given = {**settings, **Beats.steady(settings["bpm"]).inputs}

    def const(self, value: float) -> float:
        return value

    def op(self, name: str, *args: float) -> float:
        return OPS[name].fold(*args)

    def uniform(self, name: str, nominal: float | None = None) -> float:
        return self._given[name]

    def annotate(self, value: float, name: str, local: bool) -> None:
        """Does nothing: numbers have no names."""


def _environment(settings: Mapping[str, float], own: Coordinates[float]) -> Environment[float]:
    return Environment(_Floats(settings), settings, (), own)


def _coordinates(given: Mapping[str, float], settings: Mapping[str, float]) -> Coordinates[float]:
    """The base coordinates at which all given coordinates hold. Raises UsageError if there are none."""
    at = Coordinates(0.5, 0.5, 0.0, 0.0)
    for name in sorted(given, key=_ORDER.index):
        env = _environment(settings, at)
        if name in BASES:
            at = at.moved({name: given[name]})
        else:
            row = FIELDS[name]
            at = at.moved({row.base: row.inverse(env, at, given[name])})
    env = _environment(settings, at)
    for name, wanted in given.items():
        found = env.field(name, at)
        if math.isfinite(wanted) and not math.isclose(found, wanted, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
            others = " and ".join(f"{n}={v:g}" for n, v in given.items())
            raise click.UsageError(f"there is no place with {others}: {name} would be {found:g}")
    return at


# The elements that the reference machine evaluates in about a second.
_PATIENCE = 50_000
_MOST = 1 << 26


@dataclass(frozen=True)
class _Query:
    """The values to compute: at places, over a grid (width, height), or as samples."""

    strand: str
    places: Sequence[str]
    grid: tuple[int, int] | None
    samples: int | None
    ticks: int
    backend: str | None
    trace: bool
    quiet: bool
    permissions: Permissions


@dataclass(frozen=True)
class _QueryResult:
    strand: StrandRef
    backend: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    values: list[float]


@click.command("eval")
@FILE
@click.argument("strand")
@click.option("--at", "places", multiple=True, metavar="NAME=V,…",
              help="Coordinates, parameters, mouse@…, key@… and cache axes; repeat it for more places.")
@click.option("--grid", type=SIZE, metavar="WxH", help="Over a picture of this size.")
@click.option("--samples", type=WholeRange(1, _MOST), help="Samples of sound, from the time of --at.")
@click.option("--ticks", type=WholeRange(0), default=0, help="Advance state by this many ticks first.")
@click.option("--backend", metavar="NAME", help="vm, vector, native, wasm, or any that draws, such as gl; "
              "default: vm, or vector where vm would be slow.")
@click.option("--trace", is_flag=True, help="Every instruction and the stack after it (vm only).")
@click.option("--json", "as_json", is_flag=True, help="The values as JSON on stdout.")
@ALLOW
def command(
    file: str, strand: str, places: Sequence[str], grid: tuple[int, int] | None, samples: int | None, ticks: int,
    backend: str | None, trace: bool, as_json: bool, permissions: Permissions,
) -> None:
    """Show the values of STRAND of FILE: `instance@output`, or an instance, with all its outputs."""
    query = _Query(strand, places or ("",), grid, samples, ticks, backend, trace, as_json, permissions)
    _check(query)
    source, contexts = open_source(file), context_table()
    patch = read_patch(source, contexts, permissions)
    runners = [_QueryRunner(source, contexts, patch, each, query) for each in find_strands(patch, strand)]
    answers = [runner.answer() for runner in runners]
    executors = (executor for runner in runners for executor in runner.executors)
    for line in dict.fromkeys(str(refusal) for executor in executors for refusal in executor.refusals.take()):
        say(line)
    if as_json:
        members = [_fields(answer) for answer in answers]
        output(json.dumps(members[0] if len(members) == 1 else {"strand": strand, "members": members}))
    elif len(answers) == 1:
        output("\n".join(_lines(answers[0])))
    else:
        output("\n".join(_line_of_member(answer) for answer in answers))


def _fields(answer: _QueryResult) -> dict[str, object]:
    """The fields of a strand in JSON."""
    values = [v if math.isfinite(v) else str(v) for v in answer.values]
    fields = {"strand": str(answer.strand), "backend": answer.backend, "axes": answer.axes}
    return {**fields, "shape": answer.shape, "values": values}


def _lines(answer: _QueryResult) -> list[str]:
    """One value a line; for a grid, one row a line."""
    width = answer.shape[-1] if len(answer.shape) > 1 else 1
    texts = [f"{value:.9g}" for value in answer.values]
    return [" ".join(texts[at : at + width]) for at in range(0, len(texts), width)]


def _line_of_member(answer: _QueryResult) -> str:
    """The name of a member and its values in one line; a grid follows its name, and has its lines."""
    name, lines = answer.strand.short, _lines(answer)
    return "\n".join([f"{name}:", *lines]) if len(answer.shape) > 1 else f"{name}: {' '.join(lines)}"


def _check(query: _Query) -> None:
    """Raises UsageError for options that exclude each other, and Missing for a backend that is not available."""
    if query.backend is not None and query.backend in EXECUTORS:
        problem = executor_problem(query.backend)
        if problem is not None:
            raise Missing(f"{query.backend} is not available: {problem}")
    if query.grid and query.samples:
        raise click.UsageError("--grid and --samples exclude each other")
    if (query.grid or query.samples) and len(query.places) > 1:
        raise click.UsageError("--grid and --samples take a single --at")
    if query.trace and query.backend not in (None, "vm"):
        raise click.UsageError(f"--trace needs --backend vm: {query.backend} has no single steps")
    if query.grid and math.prod(query.grid) > _MOST:
        raise click.UsageError(f"--grid has more than {_MOST:,} elements")


class _QueryRunner:
    """Computes what a query asks of one strand. `executors` are those that it has used."""

    def __init__(
        self, source: Source, contexts: ContextTable, patch: Patch, strand: StrandRef, query: _Query
    ) -> None:  # fmt: skip
        self._source = source
        self._query = query
        self._contexts = contexts
        self._patch = patch
        self._strand = strand
        self._backend = query.backend or "vm"
        self._device = _device(query.backend)
        self.executors: list[Executor] = []
        self._reported_loops = False
        self._evaluations: dict[tuple[tuple[str, float], ...], Evaluation | DeviceEvaluation] = {}

    def answer(self) -> _QueryResult:
        query = self._query
        places = [read_place(text, self._patch) for text in query.places]
        first = places[0]
        taken = {"x", "y", "px", "py"} & first.given
        if taken and (query.grid or query.samples):
            how = "--grid sweeps x and y itself" if query.grid else "in sound, x and y follow from the time"
            raise click.UsageError(f"{how}: --at cannot give {', '.join(sorted(taken))}")
        if query.samples:
            sound = self._evaluation(first).sound(query.samples, first.channel, first.moment, query.ticks).reshape(-1)
            return _QueryResult(self._strand, self._backend, ("sample",), sound.shape[:1], sound.tolist())
        if query.grid:
            width, height = query.grid
            picture = self._evaluation(first).picture((height, width), first.moment, query.ticks)
            values = picture.reshape(-1).tolist()
            return _QueryResult(self._strand, self._backend, ("y", "x"), (height, width), values)
        values = [self._evaluation(p).point(p.x, p.y, p.channel, p.moment, query.ticks) for p in places]
        return _QueryResult(self._strand, self._backend, ("at",), (len(values),), values)

    def _evaluation(self, place: QueryPlace) -> Evaluation | DeviceEvaluation:
        """The strand, compiled for the axes of a place."""
        axes = tuple(place.axes.items())
        if axes not in self._evaluations:
            alone = self._compiled(place)
            unit, before = alone.unit, self._before(alone)
            if self._query.backend is None and not self._query.trace:
                self._backend = "vector" if self._work(unit) > _PATIENCE else "vm"
            settings = self._patch.settings
            if self._device is not None:
                found: Evaluation | DeviceEvaluation = DeviceEvaluation(
                    unit, settings, self._device.make(), self._loop_stopped(unit), before
                )
            else:
                last, others = self._executor(self._query.trace), self._executor()
                found = Evaluation(unit, settings, others, last, self._loop_stopped(unit), before)
            self._evaluations[axes] = found
        return self._evaluations[axes]

    def _before(self, alone: Alone) -> SoundBefore | None:
        """Plays the sounds that the strand reads or analyses."""
        if not alone.whole.heard and not any(kernel.strands for kernel in alone.unit.kernels):
            return None
        streams = [spec.name for spec in self._contexts if spec.streams]
        return SoundBefore(alone.whole, ProgramLoader(choose(load_registry(), streams), offline=True))

    def _compiled(self, place: QueryPlace) -> Alone:
        consumer = "audio" if self._query.samples else "display"
        return compile_alone(
            self._source, self._contexts, self._patch, self._strand, place.axes, consumer, header_of,
            self._query.permissions,
        )  # fmt: skip

    def _work(self, unit: Unit) -> int:
        """The number of elements to evaluate in all ticks. A strand that remembers pictures evaluates whole ones."""
        query = self._query
        elements = query.samples or math.prod(query.grid or (1,))
        if not (query.grid or query.samples) and needs_picture(unit.kernel, query.ticks):
            elements = int(self._patch.settings["width"] * self._patch.settings["height"])
        return elements * (1 + query.ticks)

    def _loop_stopped(self, unit: Unit) -> Callable[[], None]:
        """Reports that a loop of the strand reached its limit, once for a query."""

        def report() -> None:
            if not self._reported_loops:
                self._reported_loops = True
                show([loop_stopped(self._query.strand, unit.loops)])

        return report

    def _executor(self, trace: bool = False) -> Executor:
        made: Executor = ReferenceExecutor(self._print_step) if trace else EXECUTORS[self._backend]()
        self.executors.append(made)
        return made

    def _print_step(self, event: TraceEvent) -> None:
        row, column = event.element
        place = f"{event.rate.title:<8} {f'{column},{row}':<8} {event.at:>4}"
        stack = " ".join(number_text(value) for value in event.stack)
        click.echo(f"{place}  {instruction_text(event.instruction):<32} [{stack}]", err=self._query.quiet)


def _device(name: str | None) -> Choice | None:
    """The device of a backend that is not an executor of the CPU. Raises WeftError if it is not available or does not
    draw."""
    if name is None or name in EXECUTORS:
        return None
    return choose(load_registry(), [VISUAL.name], f"{VISUAL.name}={name}")[VISUAL.name]
