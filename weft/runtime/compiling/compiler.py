"""From a saved text to a program, and the trial that it has to pass before it may play.

In the trial, the program draws a small frame and plays a block of sound, or some more, without effect outside. It must
not fail, and must be fast enough. What is only worth a warning is found out once it plays. All of this works the same
in the process that plays and in the one that compiles.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from weft.backends.base import Env, as_array
from weft.backends.launch import Floats, Getter, slot_bytes
from weft.codegen.kernel import Unit, structure_hash
from weft.contexts import ContextTable
from weft.errors import Diagnostic, Source, Span, WeftError, fault
from weft.media.sampled import header_of
from weft.names import StrandRef, file_of
from weft.runtime.compiling.kept import KeptBuild
from weft.runtime.compiling.stages import Build, Request, build
from weft.runtime.hands.clock import Moment
from weft.runtime.program.compiled import CompiledProgram
from weft.runtime.program.files import FileState, read_text, stat_media
from weft.runtime.program.findings import IN_PICTURE, IN_SOUND, infinite, not_numbers, nothing_to_show, places_of
from weft.runtime.program.program import ProgramLoader, Setup, UnopenedError
from weft.runtime.sound.mixer import BLOCK, Rendering
from weft.sources import MediaHeader
from weft.syntax.scanner import UnreadableError, decode

# --- the trial ----------------------------------------------------------------------------------------------------

# The longer sides of the frames, in pixels. The first frame shows more of a picture than its middle, and is as wide as
# a vector of most machine code. The second separates the cost of a pixel from that of a frame.
_SIDE = 64
_LARGER_SIDE = 128

# State is 0 at first, so 0/0 in the first tick alone is not an error. Nor is a sound in which only the first samples
# are not numbers.
_TICKS = 3
_SAMPLES = 64

# Other work may delay a block; the best of several shows what it costs.
_BLOCKS = 5

# What is louder grows without end, and may be no number in the next block.
_LOUDEST = 1e3

# How far the mean of a second of sound may be from zero, and the seconds that measuring it may take. A save in the
# meantime waits for one section of it.
_STEADY = 0.5
_MOST_LISTENING = 0.2
_SECTION = 0.005

# Samples. What is quick to compute is measured in sections of up to this length.
_LONG = 32 * BLOCK

# The most seconds for one frame on one core, or for some blocks of sound. Slower frames would look like a still
# picture, and keys would seem to be ignored.
_SLOWEST = 2.0

# Bytes of images that a frame reads and writes. With fewer, the small frames of a trial show enough. They do not show
# that larger frames exceed the caches, and that memory is slow when it is first used.
_MUCH = 256_000_000

# A patch whose frames take longer than this may play, with a warning that it is slow. In seconds.
_SLOW = 0.1

# Bytes that a frame of their trial reads and writes: more than caches hold. And the number of these frames.
_SOME, _FRAMES = 96_000_000, 4

# The most frames of each size that show whether a frame would take too long.
_MOST_FRAMES = 8

# How many times faster, at least, a graphics card is than the core that tries programs out in its place.
_CARD = 30


# Blocks of sound are so short that other work on the processor would outweigh their own cost, so what counts is the
# time of the thread. Several threads draw a picture that is not small.
_frame_clock, _block_clock, _own_clock = time.perf_counter, time.thread_time, time.process_time


Listening: TypeAlias = Callable[[], tuple[Diagnostic, ...]]
"""Finds out what is to be said about the sound of a program that plays. It raises what the sound raises, and may be
called again if it was interrupted."""


@dataclass(frozen=True)
class Verdict:
    """The problems that a trial has found; see `passes`. `listening` finds out what need not be known before the
    program plays."""

    problems: tuple[Diagnostic, ...]
    listening: Listening | None = None


def passes(problems: Iterable[Diagnostic]) -> bool:
    """Whether a program with these problems may play."""
    return all(problem.severity != "error" for problem in problems)


def mistakes(
    compiled: CompiledProgram, loader: ProgramLoader, moment: Moment, places: Mapping[str, Span]
) -> tuple[Diagnostic, ...]:
    """All problems of a program, for those who can wait until it has been listened to. See `try_out`. Never raises."""
    verdict = try_out(compiled, loader, moment, places)
    try:
        return verdict.problems if verdict.listening is None else (*verdict.problems, *verdict.listening())
    except Exception as failure:
        return (fault("the sound failed when it was listened to", failure),)


def try_out(
    compiled: CompiledProgram, loader: ProgramLoader, moment: Moment, places: Mapping[str, Span], silently: bool = False
) -> Verdict:
    """The verdict on a program as it would run at this moment. For `places` see `CompileResult`. With `silently`, its
    sound is not tried out but only listened to. Never raises."""
    try:
        return _tried(compiled, replace(loader, rehearses=True), moment, places, silently)
    except UnopenedError as failure:
        return Verdict(failure.placed(places).diagnostics)
    except WeftError as failure:
        return Verdict(failure.diagnostics)
    except Exception as failure:
        return Verdict((fault("the program failed when it was tried out", failure),))


def _tried(
    compiled: CompiledProgram, loader: ProgramLoader, moment: Moment, places: Mapping[str, Span], silently: bool
) -> Verdict:
    streams = bool(compiled.streaming.units)
    play = partial(_SoundTrial, compiled, loader, moment)
    sound = play() if streams and not silently else None
    getter = _no_getter if sound is None else sound.rendering.getter
    here = replace(loader, stream_getter=getter) if streams else loader
    trial = _Trial(compiled, here, moment, _SIDE)
    shown = _place(compiled.units, places)
    told = _too_much(compiled, here, moment, shown)
    wrong = () if passes(told) else told
    wrong = wrong or not_numbers(trial.not_numbers(), places, IN_PICTURE) or _too_slow(
        compiled, here, moment, trial, shown
    )  # fmt: skip
    if sound is not None and not wrong:
        if sound.not_numbers and trial.runner.feeds_streams:
            # The sound may depend on pictures: it is tried again with their values.
            play = partial(play, *trial.given())
            sound = play()
        wrong = not_numbers(sound.not_numbers, places, IN_SOUND)
        wrong = wrong or sound.too_slow(_place(compiled.streaming.units, places))
    return Verdict(wrong or told, _listening(play, compiled, places) if streams and not wrong else None)


def _place(units: Iterable[Unit], places: Mapping[str, Span]) -> Span | None:
    """The place in the text of the first output statement of these units."""
    return next((places[label] for unit in units for label in unit.subgraph.sinks if label in places), None)


def _listening(play: Callable[[], _SoundTrial], compiled: CompiledProgram, places: Mapping[str, Span]) -> Listening:
    """How to listen to a sound. It is played again: that costs less than keeping what the trial heard of it."""
    return lambda: play().steady(_place(compiled.streaming.units, places))


def _no_getter(ref: StrandRef) -> Getter:
    """Serves a sound of which no picture reads anything."""
    raise KeyError(ref)


def dark_outputs(compiled: CompiledProgram, loader: ProgramLoader, moment: Moment) -> list[str]:
    """The labels of the outputs of pictures that are not a number anywhere at a moment."""
    return _Trial(compiled, replace(loader, rehearses=True), moment, _SIDE).not_numbers()


class _Trial:
    """Runs a program with a small picture, tick by tick."""

    def __init__(self, compiled: CompiledProgram, loader: ProgramLoader, moment: Moment, side: int) -> None:
        """The longer side of the picture is `side` at most, with about the same aspect."""
        scale = min(1.0, side / max(compiled.size))
        width, height = (max(1, round(length * scale)) for length in compiled.size)
        self.pixels = width * height
        self.seconds = 0.0
        """The duration of the last frame."""
        program = loader.prepare(compiled, (width, height))
        self.runner = program.runner
        inputs = {**compiled.inputs, **moment.inputs, **compiled.fitted(moment.inputs)}
        # Time advances from tick to tick, even while the performance is paused.
        dt = moment.dt or 1 / compiled.settings["fps"]
        self._env = Env(width, height, moment.tick, moment.abstime, dt, inputs, program.pictures)

    def frame(self, raw: bool = False) -> dict[str, npt.NDArray[Any]]:
        """The results of the next tick by the names of the subgraphs."""
        started = _frame_clock()
        found = {part.unit.subgraph.name: values for part, values in self.runner.try_out(self._env, raw)}
        self.seconds = _frame_clock() - started
        env = self._env
        self._env = env._replace(tick=env.tick + 1, abstime=env.abstime + env.dt)
        return {name: as_array(values) for name, values in found.items() if values is not None}

    def own_seconds(self) -> float:
        """The processor seconds that the next tick takes. Other work of the computer does not count."""
        started = _own_clock()
        self.frame()
        return _own_clock() - started

    def given(self) -> tuple[Mapping[str, float], Mapping[str, Floats]]:
        """What sounds read from the last frame: numbers, and strands that they sample."""
        return self.runner.feeds(self._env), self.runner.view_values(self._env)

    def not_numbers(self) -> list[str]:
        """The labels of the outputs that are not a number anywhere in the last of some frames."""
        dark = set[str]()
        for _ in range(_TICKS):
            # Pixels with a channel that is 0 everywhere.
            pixels = {name: values for name, values in self.frame().items() if values.dtype == np.uint8}
            dark = {name for name, values in pixels.items() if not values.any(axis=(0, 1)).all()}
            if not dark:
                return []
        # NaN is shown as 0. Only raw values, which take longer, distinguish it from a picture that is meant to be dark.
        planes = self.frame(raw=True)
        kernels = {part.unit.subgraph.name: part.unit.kernel for part in self.runner.parts}
        return [
            label
            for name in sorted(dark)
            for label, plane in zip(kernels[name].outputs, planes[name], strict=True)
            if np.isnan(plane).all()
        ]


def core_seconds(compiled: CompiledProgram, loader: ProgramLoader, side: int, elsewhere: Getter) -> float:
    """The processor seconds that a pixel of each picture takes in the best code; other work of the computer does not
    count. It is measured with pictures whose longer side is `side` at most. `elsewhere` gives the strands of sounds.
    Raises WeftError for what cannot be loaded."""
    here = replace(loader, rehearses=True, stream_getter=lambda ref: elsewhere)
    trial = _Trial(here.translate_best(compiled), here, Moment(0, 0.0, 0.0, {}), side)
    took = [trial.own_seconds()]  # also sets up what the others use
    while len(took) <= _FRAMES and sum(took) < _SLOWEST:
        took.append(trial.own_seconds())
    return min(took) / trial.pixels


class _SoundTrial:
    """Plays the sound of a program, block by block, until it is known to be fast enough and a number. It reads mouse,
    keys and parameters, and from pictures the numbers `fed` and the strands `seen`."""

    def __init__(
        self, compiled: CompiledProgram, loader: ProgramLoader, moment: Moment,
        fed: Mapping[str, float] = MappingProxyType({}), seen: Mapping[str, Floats] = MappingProxyType({}),
    ) -> None:
        self._rate = compiled.settings["rate"]
        self._slower = _CARD if loader.rehearsed(compiled.streaming) else 1
        self._end = round(moment.abstime * self._rate)
        inputs = {**compiled.inputs, **moment.inputs, **compiled.fitted(moment.inputs), **fed}
        here = replace(loader, stream_getter=None, listener=None)
        self.rendering = Rendering(here, compiled, inputs, self._end, clips=False, longest=_LONG)
        self.rendering.show(seen)
        self._spent = 0.0
        self._share = math.inf
        """The seconds that the fastest section took for a second of sound."""
        self._blocks: list[npt.NDArray[np.float32]] = []
        self._play(_SAMPLES)
        for _ in range(_BLOCKS):
            self._play()
            grows = bool((np.abs(self._blocks[-1]) > _LOUDEST).any())
            if self._spent > _SLOWEST or not (self._is_slow or self.not_numbers or grows):
                break

    def _play(self, length: int = BLOCK) -> None:
        started = _block_clock()
        self._end += length
        self._blocks += list(self.rendering.until(self._end, length))
        seconds = _block_clock() - started
        self._spent += seconds
        self._share = min(self._share, seconds * self._rate / length)

    @property
    def not_numbers(self) -> list[str]:
        """The outputs that were not a number at any sample of the last block."""
        return self.rendering.mixer.not_numbers

    @property
    def _is_slow(self) -> bool:
        """Whether every block so far has taken longer to compute than it lasts."""
        return self._share >= self._slower

    def too_slow(self, place: Span | None) -> tuple[Diagnostic, ...]:
        """An error at this place if even the fastest block takes longer to compute than it lasts."""
        if not self._is_slow:
            return ()
        words = f"this sound takes {self._share:.1f} times as long to compute as it lasts, so it would stutter"
        return (Diagnostic.of("too-slow", words, place, "fewer voices, or shorter loops"),)

    def steady(self, place: Span | None) -> tuple[Diagnostic, ...]:
        """A warning at this place if the sound stays on one side of zero for a second: that holds a loudspeaker out,
        which is not heard and may damage it. It is given only if that can be found out in time. An infinite sound gets
        another warning, unless its memory is infinite: that is reported while it plays."""
        while sum(map(len, self._blocks)) < self._rate:
            if self._spent > _MOST_LISTENING:
                return ()
            blocks = int(_SECTION * self._rate / BLOCK / max(1e-6, self._share))
            self._play(max(BLOCK, min(_LONG, blocks * BLOCK)))
        played = np.concatenate(self._blocks)
        lost = np.flatnonzero(np.isinf(played).any(axis=1))
        if len(lost) > _SAMPLES and not any(self.rendering.mixer.take_lost()):
            return (replace(infinite("", float(lost[0]) / self._rate, False, {}), span=place),)
        heard = np.nan_to_num(played, posinf=0.0, neginf=0.0)
        means = np.abs(np.clip(heard, -1, 1).mean(axis=0))
        if means.max() <= _STEADY:
            return ()
        words = f"this sound stays off zero: by {means.max():.2g} on average, in its first second"
        return (Diagnostic.of("steady-sound", words, place, "subtract its constant part"),)


def _verdict_key(compiled: CompiledProgram) -> object:
    """Everything that the verdict on a program depends on, except the moment of the trial."""
    return tuple(unit.hash for unit in compiled.units), compiled.settings, compiled.inputs, compiled.sizes


def _sound_of(compiled: CompiledProgram) -> object:
    """Everything that the sound of a program depends on; None if the pictures read it, or it reads them."""
    units = compiled.streaming.units
    if compiled.heard or compiled.views or any(u.subgraph.exposes or u.feeds or u.kernel.strands for u in units):
        return None
    return tuple(unit.hash for unit in units), compiled.settings, compiled.inputs


def _too_much(
    compiled: CompiledProgram, loader: ProgramLoader, moment: Moment, place: Span | None
) -> tuple[Diagnostic, ...]:
    """An error if a frame would take too long because of the images that it remembers, a warning if it would be slow.
    Only for what is drawn by the CPU: a card has memory of its own."""
    images, traffic, remembered = _images(compiled)
    if traffic < _MUCH or loader.rehearsed(compiled):
        return ()
    trial = _Trial(compiled, loader, moment, math.ceil(max(compiled.size) * math.sqrt(_SOME / traffic)))
    scale = compiled.size[0] * compiled.size[1] / trial.pixels
    # Both cells of most rings are new at first; of the later frames, the fastest counts.
    took = [scale * trial.own_seconds() for _ in range(_FRAMES)]
    first, later = sum(took[:2]), min(took[2:])
    what = f"it remembers {images} images of {compiled.size[0]}×{compiled.size[1]}, {remembered / 1e9:.1f} GB"
    smaller = f"me<width> = {compiled.size[0] // 2} and me<height> = {compiled.size[1] // 2} make it four times faster"
    hint = f"{smaller}; or remember fewer images"
    if first > _SLOWEST:
        words = f"its first frames would take about {first:.0f} seconds, and each later one {later:.1f}: {what}"
        return (Diagnostic.of("too-slow", words, place, hint),)
    if later > _SLOW:
        words = f"a core draws about {1 / later:.1f} frames a second of this: {what}"
        return (Diagnostic.of("slow", words, place, hint),)
    return ()


def _images(compiled: CompiledProgram) -> tuple[int, int, int]:
    """The number of images that a program keeps, the bytes that a frame reads and writes, and those of all."""
    images, traffic, remembered = 0, 0, 0
    for unit in compiled.units:
        width, height = compiled.size_of(unit, compiled.size)
        for slot in unit.kernel.slots:
            if slot.image and slot.key not in unit.borrowed:
                images += slot.planes
                traffic += 2 * slot_bytes(replace(slot, depth=0), (height, width))
                remembered += slot_bytes(slot, (height, width))
    return images, traffic, remembered


def _too_slow(
    compiled: CompiledProgram, loader: ProgramLoader, moment: Moment, first: _Trial, place: Span | None
) -> tuple[Diagnostic, ...]:
    """An error if a frame would take too long. It is measured with a larger picture if there is any doubt."""
    pixels = compiled.size[0] * compiled.size[1]
    slowest = _SLOWEST * (_CARD if loader.rehearsed(compiled) else 1)
    for _ in range(2):  # the first frame of a trial also sets up what the others use
        if first.seconds * pixels / first.pixels < slowest:
            return ()
        first.frame()
    larger = _Trial(compiled, loader, moment, _LARGER_SIDE)
    larger.frame()
    # Other work of the computer can only make a frame slower. If it slowed down the small frames, they would seem to
    # cost as much as large ones, and pixels nothing: then more of them are drawn.
    small = large = expected = math.inf
    for turn in range(_MOST_FRAMES):
        first.frame()
        larger.frame()
        small, large = min(small, first.seconds), min(large, larger.seconds)
        a_pixel = max(0.0, large - small) / max(1, larger.pixels - first.pixels)
        expected = small + a_pixel * max(0, pixels - first.pixels)
        if turn and (expected >= slowest or small < large / 2):
            break
    if expected < slowest:
        return ()
    words = f"a frame would take about {expected:.0f} seconds, so it could not be played"
    return (Diagnostic.of("too-slow", words, place, "make the picture smaller, or loops shorter"),)


# --- the compiler -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Saved:
    """A text to be compiled, found at a `moment` of time.monotonic. If there is none, `problem` says why. The picture
    is made smaller to fit into `room`, if that is given. `is_first` means that nothing plays yet. `name` is the file of
    the text; if it is empty, that of the setup."""

    data: bytes
    moment: float
    problem: str | None = None
    room: tuple[int, int] | None = None
    is_first: bool = False
    name: str = ""
    is_ahead: bool = False
    """Whether it is compiled ahead, before it is asked for."""
    turned_from: str = ""
    """The hash of the saved text of which this is one with other numbers, if it was not saved itself."""
    has_glided: bool = False
    """Whether its numbers have glided to their values since it was saved."""

    @property
    def is_turned(self) -> bool:
        """Whether it was not saved itself."""
        return bool(self.turned_from)

    @property
    def is_fresh(self) -> bool:
        """Whether it is a save of the performer's, just made."""
        return not (self.is_turned or self.has_glided)

    @property
    def hash(self) -> str:
        return hashlib.sha256(self.data).hexdigest()[:16]


@dataclass(frozen=True)
class CompileResult:
    """The result of compiling a saved text: a program, or the diagnostics that say why there is none.

    `files` are the states of the files that the text names, when they were read or found missing. `places` are the
    places of the output statements, by their labels, and of pictures and sounds, by name or path. `stages` are the ends
    of the stages in seconds of the monotonic clock of the system, in order.
    """

    compiled: CompiledProgram | None
    diagnostics: tuple[Diagnostic, ...]
    files: Mapping[Path, FileState] = field(default_factory=dict)
    places: Mapping[str, Span] = field(default_factory=dict)
    stages: Mapping[str, float] = field(default_factory=dict)


@dataclass
class _FileReader:
    """Reads the files that a text names, and records their states."""

    files: dict[Path, FileState] = field(default_factory=dict)

    def read(self, path: str) -> str:
        """An included text. Raises UnreadableError."""
        state = self.files[Path(path)] = read_text(Path(path))
        if state.problem:
            raise UnreadableError(state.problem)
        return decode(state.data or b"")

    def probe(self, path: str) -> MediaHeader | str:
        """The header of a picture or sound, or why it cannot be read."""
        if (file := file_of(path)) is not None:
            self.files[Path(file)] = stat_media(Path(file))
        return header_of(path)


# The most builds that follow each other incrementally. The next one starts from scratch, which drops what no text uses
# any more. After fewer builds, this happens in a pause, so that no save has to wait for it: first in a long pause only,
# later in any.
_MOST_KEPT, _KEPT_IN_LONG_PAUSE, _KEPT_IN_PAUSE = 240, 12, 96


SETTLED = 0.5
"""The seconds after which better code is made for what plays then."""


@dataclass
class Compiler:
    """Compiles the texts of a performance for the backends of a loader. Most builds start from what the one before has
    left."""

    setup: Setup
    contexts: ContextTable
    loader: ProgramLoader
    _kept: KeptBuild | None = None
    _builds: int = 0
    """How many builds have used what is kept, since the last one from scratch."""
    left: int = 0
    """How often objects were dropped that only a full garbage collection can free."""
    _last: tuple[Source, tuple[int, int] | None] | None = None
    """The last text that was built, and the room of its picture."""
    _translated: Mapping[str, Unit] = field(default_factory=dict)
    """The units of the last program, by their hashes."""
    is_tuning: bool = False
    """Whether pictures of the last text differ only in constants from pictures of some time ago, and have no better
    code yet. If that code is made now, the next text can use it too, even if saves keep coming."""
    _tuned: Mapping[str, tuple[Unit, float]] = field(default_factory=dict)
    """Such pictures, and the moments of the first texts that had them (see `ProgramLoader.tuned`)."""
    _passed: object = None
    """What the last program consists of, if it has passed its trial."""
    _tried: object = None
    """What the last sound depends on that has passed its trial."""
    _awaited: dict[str, int] = field(default_factory=dict)
    """The structures of kernels whose programs a driver is making, with the numbers of the requests for them."""
    _heard: object = None
    """What the last sound depends on that was listened to and needed no warning."""

    def fresh(self) -> Compiler:
        """A compiler with the same devices that has compiled nothing yet."""
        return Compiler(self.setup, self.contexts, self.loader)

    @classmethod
    def of(cls, setup: Setup) -> Compiler:
        """The compiler of this process. Raises WeftError for a backend that is not available."""
        setup = setup.decided()
        return cls(setup, *setup.open())

    def compile(self, saved: Saved) -> CompileResult:
        """Compiles a text. Never raises for anything that a patch can contain."""
        reader, name = _FileReader(), saved.name or self.setup.name
        asked = time.monotonic()
        try:
            if saved.problem:
                raise UnreadableError(saved.problem)
            source = Source(name, decode(saved.data))
            made = self._built(source, saved.room, reader)
            if not made.patch.sinks:
                return CompileResult(None, (*made.warnings, nothing_to_show(self.contexts, source)), reader.files)
            built = time.monotonic()
            untranslated = replace(made.compiled, file=name, sizes=self.setup.sizes)
            compiled = self.loader.translate(untranslated, self._translated, self._awaited)
            self._translated = {unit.hash: unit for unit in compiled.units}
            self._look_for_tuning(compiled, saved.moment)
            places = {**made.opened, **places_of(made.patch)}
            stages = {"asked": asked, "built": built, "translated": time.monotonic()}
            return CompileResult(compiled, made.warnings, reader.files, places, stages)
        except UnreadableError as failure:
            words = f"{name} cannot be read: {failure}"
            return CompileResult(None, (Diagnostic.of("unreadable-file", words),))
        except WeftError as failure:
            return CompileResult(None, failure.diagnostics, reader.files)

    def translate_bridged(self, compiled: CompiledProgram, number: int) -> tuple[Unit, ...]:
        """The units of what is bridged, for the devices that should run them. They are also bridged in the texts that
        follow, until the request of this number has `arrived`."""
        units = replace(self.loader, bridges=False).translate(compiled).units
        self._awaited |= {structure_hash(unit.kernel): number for unit in units}
        return units

    def arrived(self, number: int) -> None:
        """Notes that devices have the programs of all requests up to this number."""
        self._awaited = {key: each for key, each in self._awaited.items() if each > number}

    def _look_for_tuning(self, compiled: CompiledProgram, moment: float) -> None:
        def first(structure: str) -> float:
            return self._tuned[structure][1] if structure in self._tuned else moment

        self._tuned = {key: (unit, first(key)) for key, unit in self.loader.tuned(compiled).items()}
        self.is_tuning = any(moment - since > SETTLED for _, since in self._tuned.values())

    def improve(self) -> None:
        """Makes the better code that `is_tuning` is about, for the next texts."""
        with suppress(Exception):
            self.loader.improve(unit for unit, _ in self._tuned.values())
        self.is_tuning = False

    def try_out(self, made: CompileResult, moment: Moment) -> Verdict:
        """The verdict on a program; see `try_out`. A program or a sound that is the same as the last one that passed is
        not tried out again. A sound is not listened to again if nothing was found then."""
        if (compiled := made.compiled) is None:
            return Verdict(())
        program, sound, streams = _verdict_key(compiled), _sound_of(compiled), bool(compiled.streaming.units)
        is_tried = sound is not None and sound == self._tried
        if program == self._passed and (is_tried or not streams):
            play = partial(_SoundTrial, compiled, replace(self.loader, rehearses=True), moment)
            verdict = Verdict((), _listening(play, compiled, made.places) if streams else None)
        else:
            verdict = try_out(compiled, self.loader, moment, made.places, silently=is_tried)
            self._passed = None if verdict.problems else program
            self._tried = self._tried if verdict.problems else sound
        if verdict.listening is None or (sound is not None and sound == self._heard):
            return replace(verdict, listening=None)
        return replace(verdict, listening=partial(self._listen, sound, verdict.listening))

    def _listen(self, sound: object, listening: Listening) -> tuple[Diagnostic, ...]:
        """The warnings about a sound. `sound` is what it depends on, None if that is not known."""
        found = listening()
        if not found and sound is not None:
            self._heard = sound
        return found

    def prepare(self, is_long: bool) -> bool:
        """To be called in a pause between two texts. Builds the last text from scratch if the next texts would
        otherwise have to wait for that. Returns whether it did."""
        many = _KEPT_IN_LONG_PAUSE if is_long else _KEPT_IN_PAUSE
        if self._kept is None or self._last is None or self._builds < many:
            return False
        with suppress(WeftError):
            self._built_alone(*self._last, _FileReader())
        return True

    def _built(self, source: Source, room: tuple[int, int] | None, reader: _FileReader) -> Build:
        """The build of a text. Raises WeftError."""
        kept, self._kept = self._kept, None  # stays None if the build is interrupted
        if kept is not None and self._builds < _MOST_KEPT:
            self._builds += 1
            try:
                made = self._build(source, room, reader, kept)
            except WeftError:
                self._kept = kept
                raise
            except MemoryError:
                raise
            except Exception:
                pass  # builds from scratch instead
            else:
                self._kept, self._last = kept, (source, room)
                return made
        return self._built_alone(source, room, reader)

    def _built_alone(self, source: Source, room: tuple[int, int] | None, reader: _FileReader) -> Build:
        """The build of a text from scratch, from which the next one may start. Raises WeftError."""
        kept = KeptBuild()
        made = self._build(source, room, reader, kept)
        self.left += 1
        self._kept, self._builds, self._last = kept, 0, (source, room)
        return made

    def _build(self, source: Source, room: tuple[int, int] | None, reader: _FileReader, kept: KeptBuild) -> Build:
        setup = self.setup
        request = Request(source, self.contexts, setup.settings, reader.probe, setup.permissions, reader.read, room)
        return build(request, kept=kept)
