"""Single strands, evaluated by themselves: at places, over the picture, or as sound, on an executor or a device."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends import hardware
from weft.backends.base import Backend, Compiled, Env, as_array
from weft.backends.executors import Executor
from weft.backends.launch import Getter, Launch, Picture, StateMemory, Value, bytes_needed, picture_coords
from weft.backends.prologue import FilmTimes, nowhere
from weft.codegen.kernel import Kernel, Unit
from weft.codegen.units import compile_unit
from weft.contexts import VISUAL, ContextTable
from weft.errors import Diagnostic, Report, Source, WeftError, did_you_mean, error
from weft.graph.bindings import collect
from weft.graph.patch import Patch
from weft.graph.scope import instance_group
from weft.media.sampled import opener, read
from weft.media.source import LivePicture
from weft.names import StrandRef, heard_of, hop_length, is_view, viewed
from weft.permissions import DEFAULT_PERMISSIONS, Permissions
from weft.runtime.compiling.opened import Probe
from weft.runtime.compiling.stages import Build, Request, build
from weft.runtime.films.offline import initial_inputs
from weft.runtime.hands.clock import Moment
from weft.runtime.program.compiled import CompiledProgram
from weft.runtime.program.coordinator import ProgramRunner
from weft.runtime.program.program import ProgramLoader, reading
from weft.runtime.sound.mixer import Rendering
from weft.syntax.includes import load
from weft.syntax.scanner import read_text

# Sound is computed in blocks, so that any number of samples takes no more memory than its result.
_BLOCK = 8192


# The most names in a list; a longer one would not help.
_MOST_LISTED = 12


def read_patch(
    source: Source, contexts: ContextTable, permissions: Permissions = DEFAULT_PERMISSIONS,
    read: Callable[[str], str] = read_text,
) -> Patch:  # fmt: skip
    """The names of a patch, so that a strand can be looked up; `read` gives the texts of files that are included.
    Raises WeftError for errors that are found by then."""
    report = Report()
    loaded = load(source, report, contexts.statements, read, permissions=permissions)
    patch = collect(loaded.program, contexts, report)
    report.raise_errors()
    return patch


# A member of a bundle without names.
_BY_PLACE = re.compile(r"(\w+)\[(\d+)\]")


def find_strands(patch: Patch, name: str) -> tuple[StrandRef, ...]:
    """The strand that `instance@output` names, or `instance[0]`, or all those of a bare instance; also the size of a
    picture, or the length of a sound. Raises WeftError."""
    by_place = _BY_PLACE.fullmatch(name)
    instance, at, output = by_place.expand(r"\1@\2").partition("@") if by_place else name.partition("@")
    found = patch.instances.get(instance)
    if found is None:
        names = list(patch.instances)
        listed = f"it has {', '.join(names[:_MOST_LISTED])}{', …' * (len(names) > _MOST_LISTED)}" if names else None
        raise error("unknown-strand", f'the patch has no instance "{instance}"',
                    hint=did_you_mean(instance, names) or listed)  # fmt: skip
    outputs = list(found.outputs)
    if not at:
        return tuple(StrandRef(instance, each) for each in outputs)
    group = instance_group(found)
    place = int(output) if by_place else group.place(output)
    if place is not None and place < len(outputs):
        return (StrandRef(instance, outputs[place]),)
    if output not in (found.outputs.keys() | group.sizes.keys()):
        listed = ", ".join(StrandRef(instance, each).short for each in outputs)
        raise error("unknown-strand", f'"{instance}" has no output "{output}"',
                    hint=did_you_mean(output, [*outputs, *group.sizes]) or f"it has {listed}")  # fmt: skip
    return (StrandRef(instance, output),)


# The errors of strands that a picture can read elsewhere only if they are played.
OF_SOUND = frozenset({"map-reaches-state", "cannot-read-across"})


@dataclass(frozen=True)
class Alone:
    """A strand, compiled as the only output of its patch: that of `unit`, which also exposes it. `whole` is the program
    of all that it needs."""

    unit: Unit
    warnings: tuple[Diagnostic, ...]
    whole: CompiledProgram


def compile_alone(
    source: Source, contexts: ContextTable, patch: Patch, strand: StrandRef, axes: Mapping[str, float],
    consumer: str = "display", probe: Probe | None = None, permissions: Permissions = DEFAULT_PERMISSIONS,
) -> Alone:
    """Compiles a strand for the output statement `consumer`, with axes of caches (`h@k`) at the given values."""
    name = "asked"
    while name in patch.instances or name in patch.spindles:
        name += "_"
    maps = ", ".join(f"{axis} ~ {value!r}" for axis, value in axes.items())
    value = f"({strand.short})({maps})" if maps else strand.short
    text = f"{name}<v> = {value}\n{consumer}({name}@v)\n"
    context = contexts.of_statement(consumer)
    assert context is not None

    def built_with(stay: Container[str]) -> Build:
        return build(Request(source, contexts, probe=probe, consume=text, permissions=permissions, stay=stay))

    try:
        built = built_with(frozenset())
    except WeftError as failure:
        if context.streams or not any(each.code in OF_SOUND for each in failure.diagnostics):
            raise
        # Strands that remember belong to the sound only because the sound is played.
        built = built_with({word for spec in contexts if spec.streams for word in spec.statements})
    ref = StrandRef(name, "v")
    (only,) = (unit for unit in built.units if unit.subgraph.sinks and unit.subgraph.context == context.name)
    # Exposed, it can also be read at any point of the finished picture.
    exposed = replace(only.subgraph, exposes=(ref,))
    # What is asked may give inputs any value.
    unbounded = tuple(initial_inputs(built.patch))
    unit, _ = compile_unit(replace(built.patch, unbounded=unbounded), built.graph, exposed, contexts)
    return Alone(unit, built.warnings, built.compiled)


# Seconds of sound before the moment at which an analysis is evaluated: it looks no farther back.
_LISTENED = 8.0


class SoundBefore:
    """The sounds that are read or analysed in a program, played for some seconds up to a moment."""

    def __init__(self, program: CompiledProgram, loader: ProgramLoader) -> None:
        self._program = program
        self._loader = loader
        self._played: tuple[Moment, Rendering] | None = None

    def pictures(self, moment: Moment) -> Mapping[str, Picture]:
        """What analyses hear at a moment, by the names of the pictures of that."""
        if not self._program.heard:
            return {}
        rendering = self._until(moment)
        return {name: rendering.listen(heard_of(name)).at(moment.abstime) for name in self._program.heard}

    def strands(self, kernel: Kernel, moment: Moment) -> Mapping[StrandRef, Getter]:
        """The strands of these sounds that a kernel reads."""
        return {ref: self._until(moment).getter(ref) for ref in kernel.strands}

    def _until(self, moment: Moment) -> Rendering:
        if self._played is None or self._played[0] != moment:
            rate = self._program.settings["rate"]
            first = max(0, round((moment.abstime - _LISTENED) * rate))
            rendering = Rendering(self._loader, self._program, moment.inputs, first)
            deque(rendering.until(round(moment.abstime * rate) + 1 + hop_length(rate)), maxlen=0)
            self._played = moment, rendering
        return self._played[1]


class Evaluation:
    """Evaluates one strand. In every call state starts at zero and first advances by `ticks` ticks, the last of which
    is one tick before the moment of the evaluation."""

    def __init__(
        self, unit: Unit, settings: Mapping[str, float], executor: Executor, last: Executor,
        loop_stopped: Callable[[], None], before: SoundBefore | None = None,
    ) -> None:
        """`unit` exposes the strand, which is its only output; `before` plays what is analysed. `last` executes the
        evaluation itself, `executor` the ticks before. Raises WeftError for a picture that cannot be read."""
        self._unit = unit
        self._settings = settings
        self._executor = executor
        self._last = last
        self._loop_stopped = loop_stopped
        self._before = before
        self._pictures = _pictures_of(unit)
        self._films = _UnitFilms(unit)

    def point(self, x: float, y: float, channel: float, moment: Moment, ticks: int) -> float:
        """The strand at one place of the picture."""
        size = (int(self._settings["height"]), int(self._settings["width"]))
        if needs_picture(self._unit.kernel, ticks):
            return self._point_of_picture(x, y, moment, ticks, size)
        coords: dict[str, Value] = {"x": np.array([x]), "y": np.array([y]), "channel": channel}
        return float(self._swept(coords, (1, 1), moment, ticks)[0, 0])

    def picture(self, shape: tuple[int, int], moment: Moment, ticks: int) -> npt.NDArray[Any]:
        """The strand at the centres of a picture of this shape (height, width)."""
        return self._swept(_pixels(shape), shape, moment, ticks)

    def sound(self, count: int, channel: float, moment: Moment, ticks: int) -> npt.NDArray[Any]:
        """`count` samples of the strand as sound, the first of them at the moment."""
        kernel, rate = self._unit.kernel, self._settings["rate"]
        memory = self._memory(kernel, (1, 1))
        pieces: list[npt.NDArray[Any]] = []
        for executor, first, end in ((self._executor, -ticks, 0), (self._last, 0, count)):
            executable = executor.load(kernel)
            for start in range(first, end, _BLOCK):
                numbers = np.arange(start, min(start + _BLOCK, end))
                coords: dict[str, Value] = {"abstime": moment.abstime + numbers / rate, "channel": channel}
                launch = self.launch(kernel, memory, coords, (1, len(numbers)), moment, 1 / rate)
                pieces.append(executable.planes(memory, launch)[0, 0])
        return np.concatenate(pieces)[ticks:]

    def _swept(
        self, coords: Mapping[str, Value], shape: tuple[int, int], moment: Moment, ticks: int
    ) -> npt.NDArray[Any]:
        memory, kernel = self.advanced(coords, shape, moment, ticks), self._unit.kernel
        launch = self.launch(kernel, memory, coords, shape, moment)
        return np.asarray(self._last.load(kernel).planes(memory, launch)[0])

    def _point_of_picture(self, x: float, y: float, moment: Moment, ticks: int, size: tuple[int, int]) -> float:
        """The value of a strand over remembered pictures at a place, which need not be the centre of a pixel. The tick
        of the evaluation runs for the whole picture, which is then read at the place."""
        coords, kernel = _pixels(size), self._unit.kernel
        memory = self.advanced(coords, size, moment, ticks)
        self._executor.load(kernel).planes(memory, self.launch(kernel, memory, coords, size, moment))
        (kernel,) = self._unit.points.values()
        place: dict[str, Value] = {"x": np.array([x]), "y": np.array([y]), "channel": 0.0}
        launch = self.launch(kernel, memory, place, (1, 1), moment)
        return float(self._last.load(kernel).planes(memory, launch)[0, 0, 0])

    def advanced(
        self, coords: Mapping[str, Value], shape: tuple[int, int], moment: Moment, ticks: int,
        kernel: Kernel | None = None,
    ) -> StateMemory:  # fmt: skip
        """The state after `ticks` ticks that end before the moment, by the unit's kernel or another one with its
        slots."""
        kernel = kernel or self._unit.kernel
        memory = self._memory(kernel, shape)
        if ticks and kernel.remembers:
            executable = self._executor.load(kernel)
            for back in range(ticks, 0, -1):
                abstime = moment.abstime - back / self._settings["fps"]
                then = replace(moment, abstime=abstime, tick=moment.tick - back)
                executable.planes(memory, self.launch(kernel, memory, coords, shape, then))
        return memory

    def _memory(self, kernel: Kernel, shape: tuple[int, int]) -> StateMemory:
        needed, free = bytes_needed(kernel, shape, self._executor.widest), hardware.memory_free()
        if free and needed > free:
            words = f"the strand would remember {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free"
            raise error("not-enough-memory", words, hint="remember fewer ticks; --grid makes pictures smaller")
        return StateMemory(kernel.slots, shape, self._executor.widest)

    def launch(
        self, kernel: Kernel, memory: StateMemory, coords: Mapping[str, Value], shape: tuple[int, int], moment: Moment,
        dt: float | None = None,
    ) -> Launch:
        """The inputs of a kernel of the unit at a moment."""
        width, height = (int(self._settings[name]) for name in ("width", "height"))
        dt = 1 / self._settings["fps"] if dt is None else dt
        env = Env(width, height, moment.tick, moment.abstime, dt, moment.inputs, self._pictures)
        uniforms = {name: env.uniform(name) for name in kernel.uniforms}
        given = {"abstime": moment.abstime, **coords, **env.constant_controls(kernel, shape[1])}
        pictures: Mapping[str, Picture] = self._pictures
        strands: Mapping[StrandRef, Getter] = {}
        if self._before is not None:
            pictures = {**pictures, **self._before.pictures(moment)}
            strands = self._before.strands(kernel, moment)
        if kernel.sweep == "grid":
            heard = self._before.strands(self._unit.films, moment) if self._before and self._unit.films else {}
            films = self._films.pictures(memory, env._replace(pictures=pictures), heard)
            self._pictures |= films
            pictures = {**pictures, **films}
        return Launch(shape, given, uniforms, strands, pictures, loop_stopped=self._loop_stopped)


class _UnitFilms:
    """The films that a unit shows, each at its time before a tick. They are opened when they are first shown."""

    def __init__(self, unit: Unit) -> None:
        self._times = FilmTimes(unit.films) if unit.films is not None else None
        self._open: dict[str, LivePicture] = {}

    def pictures(self, memory: StateMemory, env: Env, strands: Mapping[StrandRef, Getter]) -> dict[str, Picture]:
        """Their pictures, by name; `strands` are those that their times depend on. Raises WeftError if one cannot be
        read."""
        if self._times is None:
            return {}
        kernel = self._times.kernel
        uniforms = {name: env.uniform(name) for name in kernel.uniforms}
        launch = Launch((1, 1), nowhere(env), uniforms, strands, env.pictures)
        return {name: self._film(name, seconds) for name, seconds in self._times.at(memory, launch).items()}

    def _film(self, name: str, seconds: float) -> Picture:
        with reading(name):
            if name not in self._open:
                source, asked = opener(name)
                self._open[name] = source.open(asked.args, offline=True)
            return self._open[name].exactly(seconds)


def needs_picture(kernel: Kernel, ticks: int) -> bool:
    """Whether the value at a place needs the whole picture first, because images of past ticks or of this one are
    read."""
    return any(slot.image and (ticks > 0 or not slot.outlives) for slot in kernel.slots)


def _pixels(shape: tuple[int, int]) -> dict[str, Value]:
    """The coordinates of the pixels of a picture of this shape, without the time."""
    coords = picture_coords(shape[1], shape[0])
    del coords["abstime"]
    return coords


def _pictures_of(unit: Unit) -> dict[str, Picture]:
    """The pictures from files that a unit samples. Raises WeftError for one that cannot be read, and for one of a
    strand, which is not drawn here."""
    for name in filter(is_view, unit.pictures):
        raise error(
            "not-drawn", f"as a sound, this reads the picture {viewed(name).short}, which is not drawn here",
            hint="without --samples it is evaluated as a picture; weft render plays it",
        )  # fmt: skip
    return {path: read_picture(path) for path in unit.pictures}


def read_picture(path: str) -> Picture:
    """A picture that a strand samples. Raises WeftError if it cannot be read."""
    with reading(path):
        return read(path)


class DeviceEvaluation:
    """Evaluates one strand of pictures on a device; see `Evaluation`."""

    def __init__(
        self, unit: Unit, settings: Mapping[str, float], backend: Backend, loop_stopped: Callable[[], None],
        before: SoundBefore | None = None,
    ) -> None:
        """`unit` exposes the strand, which is its only output; `before` plays what is analysed. Raises WeftError for
        a picture that cannot be read."""
        self._unit = unit
        self._size = int(settings["width"]), int(settings["height"])
        self._fps = settings["fps"]
        self._backend = backend
        self._loop_stopped = loop_stopped
        self._before = before
        self._nothing_else = ProgramRunner(ContextTable((VISUAL,)))
        self._pictures = _pictures_of(unit)
        self._films = _UnitFilms(unit)

    def point(self, x: float, y: float, channel: float, moment: Moment, ticks: int) -> float:
        """The strand at one place of the picture."""
        shape = self._size[::-1] if needs_picture(self._unit.kernel, ticks) else (1, 1)
        compiled, env = self._advanced(shape, moment, ticks)
        if self._unit.kernel.slots:
            self._tick(compiled, env)
        (ref,) = self._unit.points
        coords = {"x": x, "y": y, "channel": channel}
        env = self._with_films(compiled, env)
        return float(self._backend.get_value_at(ref, compiled, coords, env, self._nothing_else))

    def picture(self, shape: tuple[int, int], moment: Moment, ticks: int) -> npt.NDArray[Any]:
        """The strand at the centres of a picture of this shape (height, width)."""
        return self._tick(*self._advanced(shape, moment, ticks))

    def sound(self, count: int, channel: float, moment: Moment, ticks: int) -> npt.NDArray[Any]:
        """Raises WeftError: no such device plays sound."""
        raise error("not-for-this-device", f"{self._backend.name} draws pictures, and cannot compute samples",
                    hint="--backend native does")  # fmt: skip

    def _advanced(self, shape: tuple[int, int], moment: Moment, ticks: int) -> tuple[Compiled, Env]:
        """The strand on the device after `ticks` ticks that end before the moment, and its environment then."""
        heard = self._before.pictures(moment) if self._before is not None else {}
        env = Env(
            shape[1], shape[0], moment.tick, moment.abstime, 1 / self._fps, moment.inputs, {**self._pictures, **heard},
            loop_stopped=lambda kernel: self._loop_stopped(), seen=self._size,
        )  # fmt: skip
        compiled = self._backend.compile_subgraph(self._unit, env, self._nothing_else)
        for back in range(ticks if self._unit.kernel.remembers else 0, 0, -1):
            abstime = moment.abstime - back / self._fps
            self._tick(compiled, env._replace(tick=moment.tick - back, abstime=abstime))
        return compiled, env

    def _with_films(self, compiled: Compiled, env: Env) -> Env:
        kernel = self._unit.films
        strands = {ref: self._nothing_else.lookup(ref) for ref in kernel.strands} if kernel is not None else {}
        return env._replace(pictures={**env.pictures, **self._films.pictures(compiled.memory, env, strands)})

    def _tick(self, compiled: Compiled, env: Env) -> npt.NDArray[Any]:
        """One tick of the strand: [height, width]."""
        env = self._with_films(compiled, env)
        planes = self._backend.try_out(compiled, env, self._nothing_else, raw=True)
        if planes is None:
            raise error("not-for-this-device", f"{self._backend.name} cannot compute single strands")
        return np.asarray(as_array(planes)[0])
