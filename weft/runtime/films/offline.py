"""Offline rendering: the frames and the sound of a program, as fast as possible, and the same every time."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import floor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import weft
from weft.backends.base import Env
from weft.backends.cpu import CpuBackend
from weft.backends.select import Choice
from weft.beats import Beats
from weft.cameras import watching
from weft.contexts import AUDIO, VISUAL
from weft.disk import open_plain
from weft.errors import Diagnostic, Span, WeftError, error
from weft.graph.patch import Patch
from weft.media.animations import files_at
from weft.names import hop_length, is_microphone
from weft.runtime.compiling.compiler import dark_outputs
from weft.runtime.compiling.stages import Build
from weft.runtime.films.checkpoints import ONE_PIXEL, checkpoints, has_checkpoints, restore
from weft.runtime.hands.clock import Moment
from weft.runtime.hands.inputs import InputState
from weft.runtime.program.assignment import Change
from weft.runtime.program.coordinator import TickResult, pictures_of
from weft.runtime.program.findings import (
    IN_PICTURE, IN_SOUND, as_warnings, clipped, infinite, loop_of, memory_lost, not_numbers, not_numbers_for_a_while,
    place_in, places_of, silent
)
from weft.runtime.program.program import LoadedProgram, ProgramLoader, UnopenedError
from weft.runtime.program.recovery import MemoryChange, MemoryWatch
from weft.runtime.sound.mixer import BLOCK, Levels, Rendering, channels_of
from weft.runtime.sound.shared import RING

Pixels = npt.NDArray[Any]
Samples = npt.NDArray[np.float32]

# The share of a frame, and of a sample, by which it begins early, so that a time that was rounded down still counts.
_SLACK = 1e-6
_SAMPLE_SLACK = 1e-3

# The number of dark frames that are examined more closely.
_MOST_LOOKS = 3

# A sound that is louder than this before it is infinite has grown.
_GROWN = 1e6

# A sound that is never louder than this, -80 dB, is not heard.
_SILENT = 1e-4

REACH = 10_000_000
"""Two days of frames at 60 a second: later ones would take too long."""


def raw(choice: Choice) -> Choice | None:
    """The choice with raw values, [outputs, height, width], instead of pixels; None if its backend only gives
    pixels."""
    if not getattr(choice.backend, "packed", False):
        return None
    unpacked = type(f"{choice.backend.__name__}Planes", (choice.backend,), {"packed": False})
    fallbacks = tuple(each for each in map(raw, choice.fallbacks) if each is not None)
    return replace(choice, backend=unpacked, fallbacks=fallbacks)


def initial_inputs(patch: Patch) -> dict[str, float]:
    """The initial values of mouse, keys, parameters and tempo."""
    return {**InputState(), **patch.parameter_values(), **Beats.steady(patch.settings["bpm"]).inputs}


def frame_numbers(start: float, end: float, fps: float) -> range:
    """The frames that begin in `start … end` seconds, without one that begins at the end."""
    return range(*(-floor(-seconds * fps + _SLACK) for seconds in (start, end)))


def _check_reach(number: int) -> None:
    if number > REACH:
        words = "a patch with state plays all frames before the requested one"
        raise error("too-far", f"{words}, and {REACH:,} is the most")


def hash_of(path: Path) -> str:
    """The hash of a file, which may be larger than memory."""
    found = hashlib.sha256()
    with open_plain(path) as file:
        while part := file.read(1 << 20):
            found.update(part)
    return found.hexdigest()


def _has_dark_channel(pixels: Pixels) -> bool:
    """Whether a channel of these pixels, [height, width, 4], is 0 everywhere. This reads them as whole words, since
    numpy is 200 times slower to look at each channel."""
    bits = np.bitwise_or.reduce(np.ascontiguousarray(pixels).view(np.uint32), axis=None)
    return 0 in int(bits).to_bytes(4, "little")


class FilmFrames(NamedTuple):
    """Frames that are computed when they are asked for, each with its number, and the number of all. A picture is only
    valid until the next."""

    total: int
    frames: Iterator[tuple[int, Pixels]]


class Decimator:
    """Keeps one of `factor` samples, after a low-pass filter has removed the frequencies that would be heard as other
    tones.

    The filter is a sinc in a Kaiser window (J. F. Kaiser and R. W. Schafer, 1980) and symmetric: sample n of the result
    is at the moment of sample n · factor. Tones up to 0.47 of the new rate keep their level within 0.0001 dB; tones
    above half of it fall by more than 110 dB. With a factor of 1, samples stay the same.
    """

    # In samples of the result: how far the filter reaches before and after each one, and how many are computed
    # together. The latter does not depend on the blocks that come, so neither does the result.
    _REACH, _PIECE = 128, 1024
    # The share of the new band at which the level is halved. At the end of the band, the filter has fallen completely.
    _CUTOFF = 0.97
    _BETA = 12.0

    def __init__(self, factor: int, channels: int) -> None:
        self._factor = factor
        self._reach = self._REACH * factor
        self._step = self._PIECE * factor
        self._length = self._step + 2 * self._reach
        # It is silent before the beginning.
        self._waiting = np.zeros((self._reach, channels), np.float32)
        shape = np.sinc(np.arange(-self._reach, self._reach + 1) * (self._CUTOFF / factor))
        taps = shape * np.kaiser(len(shape), self._BETA)
        self._response = np.fft.rfft(taps / taps.sum(), self._length)[:, np.newaxis]

    def needed(self, stop: int) -> int:
        """The number of samples that have to come for those before number `stop` of the result."""
        return stop if self._factor == 1 else -(-stop // self._PIECE) * self._step + self._reach

    def take(self, block: Samples) -> Iterator[Samples]:
        """The result that can be computed with the next samples, [samples, channels]."""
        if self._factor == 1:
            yield block
            return
        self._waiting = np.concatenate([self._waiting, block])
        while len(self._waiting) >= self._length:
            yield self._piece(self._waiting[: self._length])
            self._waiting = self._waiting[self._step :]

    def _piece(self, samples: Samples) -> Samples:
        """A piece of the result. A sample that is not finite counts as 0 for its neighbours, and is NaN itself."""
        lost = ~np.isfinite(samples)
        spectrum = np.fft.rfft(np.where(lost, 0.0, samples), axis=0) * self._response
        # The first samples are those around the end of the circle.
        kept = np.fft.irfft(spectrum, self._length, axis=0)[2 * self._reach :: self._factor]
        of_each = lost[self._reach : self._reach + self._step].reshape(self._PIECE, self._factor, -1)
        return np.where(of_each.any(axis=1), np.nan, kept).astype(np.float32)


class _WantedSamples:
    """The samples from `first` to before `stop` of a decimator, selected from all that are computed."""

    def __init__(
        self, decimator: Decimator, first: int, stop: int, levels: Levels | None, clips: bool, at: int
    ) -> None:
        """Adds the wanted samples to `levels`, and then clips them. The first sample that comes has the number `at`."""
        self._decimator = decimator
        self._first, self._stop = first, stop
        self._levels = levels
        self._clips = clips
        self._at = at

    def take(self, block: Samples) -> Iterator[Samples]:
        """The wanted samples among the next ones, [samples, channels]."""
        for piece in self._decimator.take(block):
            wanted = piece[max(0, self._first - self._at) : max(0, self._stop - self._at)]
            if self._levels is not None:
                self._levels.add(piece.T, self._at)
            self._at += len(piece)
            if len(wanted):
                yield np.clip(wanted, -1.0, 1.0) if self._clips else wanted


class Offline:
    """Computes the frames and the sound of a program. Mouse, keys and parameters stay as they are at the start."""

    def __init__(
        self, build: Build, choices: Mapping[str, Choice], threads: int = 1, clips: bool = True, window: str = "",
        oversample: int = 1,
    ) -> None:
        """Without `clips`, samples are not clipped. The picture is that of a `window`, by default the first one. One of
        `oversample` samples is kept. Raises WeftError for a program that a device cannot run, and for a picture that
        cannot be read."""
        settings = build.patch.settings
        size = (int(settings["width"]), int(settings["height"]))
        self._fps = settings["fps"]
        self._clips = clips
        self.window = window
        self._loader = loader = ProgramLoader(choices, offline=True)
        # The best tier for every frame: tiers may differ in how they round numbers.
        compiled = loader.translate_best(build.compiled.showing(window))
        inputs = initial_inputs(build.patch)
        streams = {unit.subgraph.context for unit in compiled.streaming.units}
        can_sound = bool(streams) and all(loader.backend(context) is not None for context in streams)
        reach = RING * oversample
        self._sound = Rendering(loader, compiled, inputs, clips=clips, reach=reach) if can_sound else None
        self.oversample = oversample
        if self._sound is not None and oversample > 1:
            self._sound.mixer.limit = math.inf  # clipped after the filter, which may make it louder
        here = replace(loader, stream_getter=self._sound.getter, listener=self._sound.listen) if self._sound else loader
        try:
            self._program: LoadedProgram = here.prepare(compiled, size)
        except UnopenedError as failure:
            raise failure.placed(build.opened) from failure
        self._build = build
        self._here = here
        self._loops = loops = dict[str, None]()
        """The kernels with a loop that reached its limit."""
        self._memory, self._lost = MemoryWatch(), list[MemoryChange]()
        """Memory that was found not to be finite."""
        self._dark: dict[str, float] = {}
        """The outputs of pictures that are not a number anywhere, with the time since when."""
        self._planes: dict[str, tuple[int, int, float]] = {}
        """For outputs of raw pictures: the number of values, the number of those that were not numbers, and the time of
        the first of these."""
        self._looks = _MOST_LOOKS
        self._levels: Levels | None = None
        """The levels of the samples that are kept."""
        self.ahead: Callable[[str, float], object] = lambda what, share: None
        """Called repeatedly while it computes the part before the wanted time, with words for that part and the share
        that is done."""
        self._recorder: Callable[[Samples], object] = lambda block: None
        """Called with each block of the sound that is computed for the frames."""
        self._env = Env(
            *size, dt=1 / self._fps, inputs=inputs, pictures=self._program.pictures, threads=threads,
            loop_stopped=lambda kernel: loops.update({kernel: None}),
        )  # fmt: skip

    @property
    def cameras(self) -> list[str]:
        """The cameras that it watches, by their names in messages."""
        return watching(self._program.live)

    def findings(self) -> list[Diagnostic]:
        """Warnings about all frames and samples so far."""
        places = places_of(self._build.patch)
        found = [*self._program.left_out]
        loops = [*self._loops, *sorted(self._sound.mixer.loops_stopped if self._sound is not None else ())]
        if any(is_microphone(name) for unit in self._program.elsewhere for name, _ in unit.kernel.coords):
            words = "the microphone is silent here: it is heard in a performance only"
            found.append(Diagnostic.of("microphone-silent", words))
        found += [loop_of(self._program.compiled.units, kernel) for kernel in loops]
        found += as_warnings(not_numbers(self._dark, places, IN_PICTURE))
        for label, (count, missing, first) in self._planes.items():
            if missing:
                found.append(not_numbers_for_a_while(label, missing / count, first, "pixels", places))
        patch = self._build.patch
        found += [memory_lost(each.keys, each.since, place_in(patch, each.keys[0])) for each in self._lost]
        return [*found, *self._of_sound(places)]

    def _of_sound(self, places: Mapping[str, Span]) -> Iterator[Diagnostic]:
        levels = self._levels
        computed = None if self._sound is None else self._sound.mixer.levels
        if levels is None or computed is None or not levels.samples:
            return
        place = next((span for label, span in places.items() if label.partition(".")[0] == AUDIO.name), None)
        count = computed.end - computed.first
        lost = {label for label, (missing, _) in computed.not_numbers.items() if missing == count}
        yield from as_warnings(not_numbers(lost, places, IN_SOUND))
        for label, first in computed.infinite.items():
            missing, begun = computed.not_numbers.get(label, (0, first))
            seconds = min(first, begun) / self.oversample / self.rate
            yield infinite(label, seconds, computed.peak > _GROWN, places)
        for label, (missing, first) in computed.not_numbers.items():
            if label not in lost and label not in computed.infinite:
                seconds = first / self.oversample / self.rate
                yield not_numbers_for_a_while(label, missing / count, seconds, "samples", places)
        if levels.peak < _SILENT and not lost:
            yield silent(place)
        if self._clips and levels.first_too_loud is not None and not computed.infinite:
            share = levels.too_loud / levels.samples
            yield clipped(share, levels.peak, levels.first_too_loud / self.rate, place)

    def changes(self) -> list[Change]:
        """What runs on another device than intended, since the last call."""
        return self._loader.assignment.changes()

    @property
    def fingerprint(self) -> str:
        """A hash of everything that the frames depend on: kernels, settings, parameters, the pictures that are read,
        and the backend of each subgraph. Equal fingerprints mean equal frames."""
        compiled = self._program.compiled
        parts = (*self._program.runner.parts, *self._program.runner.feeding)
        names = {context: choice.name for context, choice in self._loader.assignment.choices.items()}
        subgraphs = ((part.unit.subgraph, part.backend.name) for part in parts)
        backends = {(sub.name, names.get(sub.context, ""), device) for sub, device in subgraphs}
        known = {
            "weft": weft.__version__,
            "kernels": sorted(unit.hash for unit in compiled.units),
            "settings": sorted(compiled.settings.items()),
            "parameters": sorted(compiled.starts.items()),
            "media": [hash_of(file) for path in self._build.media for file in files_at(Path(path))],
            "backends": sorted(backends),
            **({"window": self.window} if self.window else {}),
        }
        return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:32]

    @property
    def shows(self) -> bool:
        """Whether there is a picture."""
        return VISUAL.name in self._outputs

    @property
    def sounds(self) -> bool:
        """Whether there is a sound."""
        return AUDIO.name in self._outputs

    @property
    def _outputs(self) -> set[str]:
        """The contexts of the subgraphs with sinks that run."""
        running = {*self._program.changed, *self._program.kept}
        subgraphs = (unit.subgraph for unit in self._program.compiled.units)
        return {sub.context for sub in subgraphs if sub.sinks and sub.name in running}

    def nothing(self, code: str, words: str, example: str) -> WeftError:
        """The error for a picture or a sound that the program does not have."""
        reasons = "; ".join(d.message for d in (*self._build.warnings, *self._program.left_out))
        return error(code, words, hint=reasons or example)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the picture."""
        return self._program.size

    @property
    def fps(self) -> float:
        """Frames a second."""
        return self._fps

    @property
    def rate(self) -> float:
        """Samples a second, of those that are kept."""
        return self._build.patch.settings["rate"] / self.oversample

    @property
    def channels(self) -> int:
        """The channels of the sound."""
        return channels_of(self._program.compiled)

    @property
    def remembers(self) -> bool:
        """Whether a frame depends on those before it."""
        program = self._program
        units = [part.unit for part in program.runner.parts]
        if self._reads_sound and program.runner.feeds_streams:
            # Analyses and memory of the sound depend on earlier frames.
            units = list(program.compiled.units)
            if program.compiled.heard:
                return True
        return any(unit.kernel.remembers for unit in units)

    @property
    def undivided(self) -> str | None:
        """The reason why one process has to draw all frames, in words that follow "frames"; None if several can share
        them."""
        if self._reads_sound or self._program.runner.feeds_streams:
            return "depend on the sound, or it on them"
        if self.remembers and not self._has_checkpoints:
            return "depend on the pictures before them"
        return None

    @property
    def _has_checkpoints(self) -> bool:
        """Whether frames before the first wanted one need not be drawn, although the program remembers."""
        return not (self._reads_sound or self._program.runner.feeds_streams) and has_checkpoints(self._program)

    def checkpoints(self, numbers: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        """The state before each of these frames, for `play`. Raises WeftError."""
        advancing = self._here.prepare(self._program.compiled, ONE_PIXEL)
        passed = partial(self.ahead, "what it remembers")
        return checkpoints(advancing, self._env, self._fps, numbers, passed)

    @property
    def _reads_sound(self) -> bool:
        """Whether pictures or numbers depend on the sound."""
        return any(unit.subgraph.exposes for unit in self._program.compiled.streaming.units)

    def steps(self, wanted: Iterable[int]) -> range | list[int]:
        """The frames that have to be drawn for the wanted ones. If the patch has state, these are all frames before
        them, or at least those from the first wanted one on, so that a frame does not depend on which others are
        wanted."""
        numbers = wanted if isinstance(wanted, range) else sorted(wanted)
        if not (numbers and self.remembers):
            return numbers
        _check_reach(numbers[-1])
        return range(numbers[0] if self._has_checkpoints else 0, numbers[-1] + 1)

    def play(self, steps: range | list[int], checkpoint: bytes | None = None) -> Iterator[tuple[int, Pixels]]:
        """Draws frames in order, each with its number. A picture is only valid until the next. If the `checkpoint` of
        the first one is known, it begins with that."""
        if checkpoint is None:
            self._begin(steps)
        else:
            restore(self._program, checkpoint)
        for number in steps:
            yield number, self._tick(number, number / self._fps)

    def _begin(self, steps: range | list[int]) -> None:
        """Brings the program to the state that it has before the first of these frames."""
        if steps and steps[0] > 0 and self.remembers:
            ((_, found),) = self.checkpoints(steps[:1])
            restore(self._program, found)

    def at(self, time: float) -> Pixels:
        """The picture at a time, which may be within a frame."""
        number = floor(time * self._fps + _SLACK)
        before = self.steps([number])[:-1]
        deque(self.play(before), maxlen=0)
        if not before:
            self._begin([number])
        return self._tick(number, time)

    def samples(self, start: float, end: float) -> Iterator[Samples]:
        """The sound from `start` to `end` seconds, block by block: [samples, channels], single precision. Raises
        WeftError if there is none."""
        if self._sound is None or not self.sounds:
            raise self.nothing("nothing-to-hear", "the patch has nothing to play", "audio(…) plays strands")
        # Blocks are cut where they would be cut if the sound began at 0.
        begin = round(start * self.rate) // BLOCK * BLOCK if self._begins_anywhere else 0
        wanted, end_of_all = self._wanted(start, end, begin)
        first = round(start * self._sound.rate)
        for done, block in zip(itertools.count(begin, BLOCK), self._all_samples(end_of_all), strict=False):
            if done < first:
                self.ahead("the sound", done / first)
            yield from wanted.take(block)

    @property
    def _begins_anywhere(self) -> bool:
        """Whether no sample depends on those before it, so that these need not be computed."""
        compiled = self._program.compiled
        if self._sound is None or self._reads_sound or self._program.runner.feeds_streams or compiled.heard:
            return False
        on_cpu = all(isinstance(part.backend, CpuBackend) for part in self._sound.parts)  # cards cut blocks differently
        remembers = any(unit.kernel.remembers for unit in compiled.streaming.units)
        return self.oversample == 1 and on_cpu and not remembers

    def _wanted(self, start: float, end: float, begin: int) -> tuple[_WantedSamples, int]:
        """The selection of the samples from `start` to `end` seconds out of those from number `begin` on, and the
        number at which these may end. Their levels are collected."""
        assert self._sound is not None
        first, stop = (round(seconds * self.rate) for seconds in (start, end))
        self._sound.skip_to(begin)
        levels = self._sound.mixer.levels = Levels(first * self.oversample, stop * self.oversample)
        decimator, is_filtered = Decimator(self.oversample, self.channels), self.oversample > 1
        self._levels = Levels(first, stop) if is_filtered else levels
        kept = self._levels if is_filtered else None
        return _WantedSamples(decimator, first, stop, kept, self._clips and is_filtered, begin), decimator.needed(stop)

    def film(self, wanted: Iterable[int], numbers: range, record: Callable[[Samples], object]) -> FilmFrames:
        """The wanted frames of a film of the frames `numbers`, as for `play`. Meanwhile, `record` gets the sound of the
        whole film, [samples, channels], block by block. The sound does not depend on which frames are wanted."""
        steps = self.steps(wanted)
        if self._sound is None or not self.sounds:
            return FilmFrames(len(steps), self.play(steps))
        if self._program.runner.feeds_streams:
            # The sound depends on the frames.
            _check_reach(numbers.stop)
            steps = range(numbers.stop)
        return FilmFrames(len(steps), self._play_with_sound(steps, numbers, record))

    def _play_with_sound(
        self, steps: range | list[int], numbers: range, record: Callable[[Samples], object]
    ) -> Iterator[tuple[int, Pixels]]:
        assert self._sound is not None
        # The blocks of the sound do not depend on which frames are wanted.
        heard = numbers.start if self._begins_anywhere else 0
        begin = self._sample_after((heard - 1) / self._fps) if heard else 0
        wanted, end_of_all = self._wanted(numbers.start / self._fps, numbers.stop / self._fps, begin)

        def take(block: Samples) -> None:
            for piece in wanted.take(block):
                record(piece)

        self._recorder = take
        self._begin(steps)
        for number in steps:
            while heard <= number:
                if heard < numbers.start:
                    self.ahead("the sound", heard / numbers.start)
                self._hear_until(heard)
                heard += 1
            yield number, self._tick(number, number / self._fps)
        while heard <= numbers.stop:
            self._hear_until(heard)
            heard += 1
        for block in self._sound.until(end_of_all):
            take(block)
        self._recorder = lambda block: None

    def _hear_until(self, number: int) -> None:
        """Computes the sound before a frame."""
        assert self._sound is not None
        if number == 0 and self._program.runner.feeds_streams:
            return  # the first frame comes before the first sample
        for block in self._sound.until(self._sample_after(number / self._fps) + self._ahead):
            self._recorder(block)

    def _all_samples(self, stop: int) -> Iterator[Samples]:
        """The samples from the first one up to at least number `stop`, exclusive: a sound may depend on all samples
        before. If it reads from pictures, blocks end at their frames, even beyond `stop`. The first frame comes before
        the first sample."""
        assert self._sound is not None
        if not self._program.runner.feeds_streams:
            yield from self._sound.until(stop)
            return
        self._run(0, 0.0)
        for number in itertools.count(1):
            end = self._sample_after(number / self._fps)
            yield from self._sound.until(end)
            if end >= stop:
                return
            self._run(number, number / self._fps)

    def _sample_after(self, time: float) -> int:
        """The number of the first sample that comes after all those that a frame at this time reads."""
        assert self._sound is not None
        return floor(time * self._sound.rate + _SAMPLE_SLACK) + 1

    @property
    def _ahead(self) -> int:
        """The number of further samples that complete the next row of all analyses. A frame reads between that row and
        the last one. A sound that reads the frame cannot be ahead of it."""
        compiled = self._program.compiled
        return hop_length(compiled.settings["rate"]) if compiled.heard and not self._program.runner.feeds_streams else 0

    def _run(self, number: int, time: float) -> list[TickResult]:
        """Runs one frame of everything except the sound, and hands the values to the sound that it reads."""
        pictures = self._program.pictures_at(time, exactly=True)
        env = self._env._replace(tick=number, abstime=time, pictures=pictures)
        runner, compiled = self._program.runner, self._program.compiled
        results = runner.run(env)
        self._lost += self._memory.follow(compiled.file, compiled.units, runner.all_parts, time, time)
        if self._sound is not None and self._program.runner.feeds_streams:
            self._sound.feed(self._program.runner.feeds(env))
            self._sound.show(self._program.runner.view_values(env))
        return results

    def _tick(self, number: int, time: float) -> Pixels:
        is_first = number == 0 and self._program.runner.feeds_streams
        if self._sound is not None and self._reads_sound and not is_first:
            for block in self._sound.until(self._sample_after(time) + self._ahead):
                self._recorder(block)
        pictures = pictures_of(self._run(number, time)) if self.shows else {}
        shown = next((each for each in pictures.values() if each.target == self.window), pictures.get(""))
        if shown is None:
            raise self.nothing("nothing-to-show", "the patch has nothing to show", "display(…) shows strands")
        self._look(shown, number, time)
        picture = shown.array
        return picture if picture.dtype == np.uint8 else np.moveaxis(picture, 0, -1)

    def _look(self, shown: TickResult, number: int, time: float) -> None:
        """Notes which outputs of a picture are not numbers."""
        picture = shown.array
        if picture.dtype != np.uint8:
            for label, plane in zip(shown.labels, picture, strict=False):
                count, missing, first = self._planes.get(label, (0, 0, 0.0))
                more = int(np.isnan(plane).sum())
                self._planes[label] = count + plane.size, missing + more, first if missing else time
        elif self._looks and not self._dark and _has_dark_channel(picture):
            # NaN is shown as 0. Only raw values distinguish it from a picture that is meant to be dark.
            self._looks -= 1
            moment = Moment(number, time, 1 / self._fps, self._env.inputs)
            with suppress(WeftError):
                self._dark = dict.fromkeys(dark_outputs(self._program.compiled, self._here, moment), time)
