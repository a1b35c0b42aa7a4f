"""The mixer: sums the sound of the program that plays and of previous ones that fade out.

Its parts are also here: rings of recent samples, cross-fades, the smoothing of controls, and fallbacks for devices that
fail. The same code plays live and renders to files.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weft.backends.base import DeviceLostError, Env, SampleBlock, as_array
from weft.backends.launch import Floats, Getter, Picture, Value, blank_view
from weft.beats import INPUTS, reads_beats
from weft.contexts import channel_of, is_smoothed
from weft.media.hearing import HeardMemory, HeardPicture, Listener
from weft.media.source import LivePicture
from weft.names import HeardName, StrandRef, heard_of, is_microphone
from weft.runtime.program.compiled import CompiledProgram
from weft.runtime.program.coordinator import ProgramRunner, RunningSubgraph
from weft.runtime.program.fallback import stand_in
from weft.runtime.program.program import LoadedProgram, ProgramLoader, SuspendedState, hand_over
from weft.runtime.program.recovery import begin_again, begin_changed_again, lost_slots
from weft.runtime.sound.shared import MOST_RINGS, RING, SlotAllocator, places_of_heard, places_of_views

# --- recent samples, which pictures and numbers read --------------------------------------------------------------

# The share of a sample by which a time may have been rounded down.
_SLACK = 1e-3


class Recent:
    """Rings of recent samples, one for each strand. Sample n of the performance is at n modulo their length.

    `rings` is [strands, samples], single precision, and may be written by another process; `newest` gives the number
    of the last complete sample.
    """

    def __init__(self, rings: npt.NDArray[np.float32], rate: float, newest: Callable[[], int]) -> None:
        self._rings = rings
        self._rate = rate
        self._newest = newest
        words = "pictures and numbers can read no more than {} strands of sound"
        self._rows = SlotAllocator(len(rings), "too-many-heard", words)

    def rows(self, compiled: CompiledProgram) -> dict[str, int]:
        """The rings of all strands of a program's sound that others read; see `SlotAllocator.take`. Raises WeftError
        (`too-many-heard`)."""
        exposed = [str(ref) for unit in compiled.streaming.units for ref in unit.subgraph.exposes]
        known = {strand: self._rows.find(strand) for strand in exposed}
        rows = self._rows.take(exposed)
        # Clears the samples of other strands.
        self._rings[[row for strand, row in rows.items() if row != known[strand]]] = 0
        return rows

    def getter(self, ref: StrandRef) -> Getter:
        """A function that reads a strand at times of the performance, in seconds: 0 before its start and for times too
        long ago, the newest sample for times in the future. A strand without a ring is 0."""

        def read(seconds: Value) -> Floats:
            row, newest = self._rows.find(str(ref)), self._newest()
            length = self._rings.shape[1]
            # NaN and times far away must not overflow.
            with np.errstate(over="ignore"):
                places = np.nan_to_num(np.asarray(seconds) * self._rate + _SLACK, nan=-1.0)
            numbers = np.floor(np.clip(places, -1, max(newest, -1))).astype(np.int64)
            known = (numbers >= 0) & (numbers > newest - length)
            return np.where(known, self._rings[row, numbers % length] if row is not None else 0, np.float32(0))

        return read


def write(ring: npt.NDArray[np.float32], first: int, values: npt.NDArray[np.floating]) -> None:
    """Writes samples, the first of which has the number `first`, into a ring that is longer than they are."""
    start = first % len(ring)
    fits = min(len(values), len(ring) - start)
    ring[start : start + fits] = values[:fits]
    ring[: len(values) - fits] = values[fits:]


# --- cross-fades --------------------------------------------------------------------------------------------------
#
# Gains follow a quarter of a circle: the cosine for what leaves and the sine for what enters, so that two unrelated
# sounds keep their total power. Similar sounds would be louder in the middle, up to twice the power; their similarity
# is measured during the fade and compensated. What leaves is everything that was audible when the fade began, at the
# gains of that moment, including voices that are wanted again.

# The samples after which an earlier measurement of two sounds has half of its weight.
_HALF_LIFE = 2048


class Correlation(NamedTuple):
    """The recent similarity of two sounds: the sums of their squares, and of their products."""

    leaving: float = 0.0
    entering: float = 0.0
    common: float = 0.0

    def with_more(self, leaving: Floats, entering: Floats) -> Correlation:
        """The correlation after another section of both, which have one shape."""
        sums = [float(np.sum(a * b)) for a, b in ((leaving, leaving), (entering, entering), (leaving, entering))]
        if not all(map(math.isfinite, sums)):
            return self
        kept = 0.5 ** (leaving.shape[-1] / _HALF_LIFE)
        return Correlation(*(kept * before + more for before, more in zip(self, sums, strict=True)))

    def compensation(self, cosine: Floats, sine: Floats) -> Floats:
        """The factor that keeps the total power from rising if one sound has this cosine as its gain and the other this
        sine. Sounds that cancel each other are not made louder, since they would swell when they stop doing so."""
        apart = self.leaving * np.square(cosine) + self.entering * np.square(sine)
        common = 2 * max(self.common, 0.0) * cosine * sine
        return np.sqrt(np.divide(apart, apart + common, out=np.ones_like(apart), where=apart > 0))


class VoiceFade:
    """A cross-fade from some voices to others. A voice is identified by any key, and multiplied by a gain of 0…1."""

    def __init__(
        self, samples: int, gains: Mapping[Hashable, float], wanted: Iterable[Hashable], ending: Iterable[Hashable] = ()
    ) -> None:
        """A fade of `samples` samples from voices with these gains, which may be those of an unfinished fade, to the
        `wanted` ones. The `ending` voices have no time for that: they end after one section."""
        self._samples = samples
        self._done = 0
        self._wanted = frozenset(wanted)
        self._start = {**dict.fromkeys(self._wanted, 0.0), **gains}
        self._ending = frozenset(ending)
        self._correlation = Correlation()

    @property
    def is_over(self) -> bool:
        return self._done >= self._samples

    @property
    def voices(self) -> frozenset[Hashable]:
        """All voices that are still audible."""
        return self._wanted if self.is_over else frozenset(self._start)

    def now(self) -> dict[Hashable, float]:
        """The gains at this moment, from which another fade may begin."""
        if self.is_over:
            return dict.fromkeys(self._wanted, 1.0)
        cosine, sine = _circle(np.array([self._done / self._samples]))
        compensation = self._correlation.compensation(cosine, sine)
        return {v: float((self._gains(v, cosine, sine, compensation) * np.ones(1))[0]) for v in self._start}

    def mix(self, sounds: Mapping[Hashable, Floats], total: Floats) -> None:
        """Adds the next section of the voices, [channels, samples] each, at their gains."""
        samples = total.shape[1]
        still = {voice for voice in sounds if self._stands_still(voice)}
        if len(still) == len(sounds):
            for sound in sounds.values():
                total += sound
        else:
            cosine, sine = _circle(np.minimum((self._done + np.arange(1, samples + 1)) / max(1, self._samples), 1.0))
            compensation = self._compensation({v: s for v, s in sounds.items() if v not in still}, cosine, sine)
            for voice, sound in sounds.items():
                total += sound * self._gains(voice, cosine, sine, compensation)
        self._done = min(self._done + samples, self._samples)
        for voice in self._ending & self._start.keys():
            del self._start[voice]

    def _stands_still(self, voice: Hashable) -> bool:
        """Whether a voice stays at full gain."""
        return voice in self._wanted and (self.is_over or self._start[voice] == 1.0)

    def _gains(self, voice: Hashable, cosine: Floats, sine: Floats, compensation: Floats) -> Floats | float:
        if self._stands_still(voice):
            return 1.0
        # A voice that was fading out and returns is part of both sides.
        gains: Floats = (self._start[voice] * cosine + (sine if voice in self._wanted else 0.0)) * compensation
        return gains * _ending(len(gains)) if voice in self._ending else np.minimum(gains, 1.0)

    def _compensation(self, moving: Mapping[Hashable, Floats], cosine: Floats, sine: Floats) -> Floats:
        """Measures a section of the voices that enter and leave. Returns their compensation, which moves from the value
        for the previous correlation to that for the new one, so that it does not jump."""
        shape = next(iter(moving.values())).shape
        leaving, entering = np.zeros(shape), np.zeros(shape)
        for voice, sound in moving.items():
            if voice in self._wanted:
                entering += sound
            start = self._start[voice]
            leaving += sound * (start * _ending(shape[-1]) if voice in self._ending else start)
        before, self._correlation = self._correlation, self._correlation.with_more(leaving, entering)
        now = self._correlation.compensation(cosine, sine)
        if self._done == 0:
            return now
        previous = before.compensation(cosine, sine)
        smoothed: Floats = previous + (now - previous) * (np.arange(1, len(now) + 1) / len(now))
        return smoothed


def _ending(samples: int) -> Floats:
    """The gains that end a voice within one section."""
    return np.linspace(1, 0, samples)


def _circle(share: Floats) -> tuple[Floats, Floats]:
    """Cosine and sine at these shares of a quarter of a circle."""
    angle = share * (math.pi / 2)
    return np.cos(angle), np.sin(angle)


# --- smoothing of controls: a parameter that jumps must not click -------------------------------------------------

LED = 0.010
"""The shortest time from one value to the next, in seconds."""


@dataclass(slots=True)
class _Ramp:
    """The current value of a control, its target, and the samples left until then."""

    now: float
    target: float
    left: int = 0

    def advance(self, samples: int) -> Floats:
        """The next samples."""
        if not self.left:
            return np.full(samples, self.now)
        line: Floats = self.now + (self.target - self.now) * (np.arange(1, samples + 1) / self.left)
        line[self.left - 1 :] = self.target
        self.left = max(0, self.left - samples)
        self.now = float(line[-1])
        return line


class ControlSmoother:
    """Moves controls to their targets along straight lines that last at least a block. A control that is not read in a
    section starts again at its value when it is read next."""

    def __init__(self, rate: float, given: Callable[[str], float]) -> None:
        """`given` has the target of each control by its name."""
        self._shortest = math.ceil(LED * rate)
        self._given = given
        self._ramps: dict[str, _Ramp] = {}

    def smoothed(
        self, names: Iterable[str], samples: int, left: int, raw: Container[str] = frozenset()
    ) -> dict[str, Floats]:
        """The next samples of each control; `left` samples remain of the block. Those that are `raw` jump."""
        self._ramps = {name: self._ramp(name, left, name in raw) for name in names}
        return {name: ramp.advance(samples) for name, ramp in self._ramps.items()}

    def now(self, name: str) -> float | None:
        """The current value of a control; None if it is not read."""
        return self._ramps[name].now if name in self._ramps else None

    def forget(self, names: Iterable[str]) -> None:
        """Begins these controls again, at their next values."""
        for name in names:
            self._ramps.pop(name, None)

    def _ramp(self, name: str, left: int, is_raw: bool) -> _Ramp:
        """The ramp of one control to its current target."""
        target = float(self._given(name))
        ramp = self._ramps.get(name)
        # Values jump to and from NaN and infinity.
        if ramp is None or is_raw or not math.isfinite(target - ramp.now):
            return _Ramp(target, target)
        if ramp.target != target:
            ramp.target, ramp.left = target, max(left, self._shortest)
        return ramp


# --- fallbacks for sounds whose device fails ----------------------------------------------------------------------


class SoundFallback:
    """Runs the subgraphs of sounds, or their stand-ins on other devices, which take over within the same block."""

    def __init__(self) -> None:
        self._in_place: dict[int, tuple[RunningSubgraph, RunningSubgraph]] = {}
        """By the identity of a subgraph that cannot run any more: its part, and its stand-in."""

    def values(self, loader: ProgramLoader, loaded: LoadedProgram, part: RunningSubgraph, env: Env) -> Floats:
        """The outputs of a subgraph in a block, [channels, outputs, samples]. Raises DeviceLostError if its device
        fails and nothing is left that could replace it."""
        _, acting = self._in_place.get(id(part.compiled), (part, part))
        if not loader.assignment.is_lost(acting.backend):
            try:
                return _run(acting, env, loaded.runner)
            except DeviceLostError as failure:
                if not loader.assignment.lose(acting.backend, failure.reason):
                    raise
        # Its unit may have got better code since it was loaded.
        latest = RunningSubgraph(acting.compiled.unit, acting.backend, acting.compiled)
        found = stand_in(loader, latest, loaded.compiled, env, loaded.runner)
        self._in_place[id(part.compiled)] = (part, found)
        return _run(found, env, loaded.runner)

    def acting(self, loaded: LoadedProgram) -> list[RunningSubgraph]:
        """The parts that currently run for a program, with their state."""
        return [self._in_place.get(id(part.compiled), (part, part))[1] for part in loaded.runner.parts]

    def keep(self, parts: list[RunningSubgraph]) -> None:
        """Drops the stand-ins of all other parts."""
        known = {id(part.compiled) for part in parts}
        self._in_place = {place: pair for place, pair in self._in_place.items() if place in known}


def _run(part: RunningSubgraph, env: Env, runner: ProgramRunner) -> Floats:
    return as_array(part.backend.execute_subgraph(part.compiled, env, runner))


# --- the mixer ----------------------------------------------------------------------------------------------------

# The most programs that are audible at once. With more saves during one fade, the oldest ends within a block.
_MOST_PROGRAMS = 4


def channels_of(compiled: CompiledProgram) -> int:
    """The number of channels of a program's sound, at least two."""
    labels = (label for unit in compiled.streaming.units for label in unit.kernel.outputs)
    return max(2, *(1 + (channel_of(label) or 0) for label in labels), 0)


@dataclass
class Levels:
    """Statistics of the samples from number `first` to before `end`, before they are clipped."""

    first: int
    end: int
    samples: int = 0
    """Their number, in all channels together."""
    peak: float = 0.0
    too_loud: int = 0
    """The number of samples outside −1…1; `first_too_loud` is the number of the first one in time."""
    first_too_loud: int | None = None
    not_numbers: dict[str, tuple[int, int]] = field(default_factory=dict)
    """For each output that is not a number at some samples: the number of these samples, and the number of the
    first."""
    infinite: dict[str, int] = field(default_factory=dict)
    """For each output that is infinite at some samples: the number of the first."""

    def add(self, total: Floats, first: int) -> None:
        """Adds the mix, [channels, samples], whose first sample has the number `first`."""
        skipped = max(0, self.first - first)
        sizes = np.abs(total[:, skipped : max(skipped, self.end - first)])
        self.samples += sizes.size
        self.peak = max(self.peak, float(np.max(sizes, initial=0.0, where=np.isfinite(sizes))))
        loud = (sizes > 1.0) & np.isfinite(sizes)
        if loud.any():
            self.too_loud += int(loud.sum())
            if self.first_too_loud is None:
                self.first_too_loud = first + skipped + int(loud.any(axis=0).argmax())

    def look_for_lost(self, labels: Sequence[str], values: Floats, first: int) -> None:
        """Adds the outputs of a subgraph, [channels, outputs, samples], from number `first`."""
        skipped = max(0, self.first - first)
        wanted = values[:, :, skipped : max(skipped, self.end - first)]
        if math.isfinite(wanted.sum()):
            return
        for label, infinite in zip(labels, np.atleast_2d(np.isinf(wanted).any(axis=0)), strict=True):
            if infinite.any():
                self.infinite.setdefault(label, first + skipped + int(infinite.argmax()))
        lost = np.isnan(wanted).any(axis=0)
        for label, missing in zip(labels, np.atleast_2d(lost), strict=True):
            if missing.any():
                count, begun = self.not_numbers.get(label, (0, first + skipped + int(missing.argmax())))
                self.not_numbers[label] = (count + int(missing.sum()), begun)


@dataclass(frozen=True, kw_only=True)
class Timed:
    """Something that begins at a moment of the performance, or at once."""

    at: float | None = None
    """The time at which it begins, in seconds of the performance."""
    every: float | None = None
    """It begins on the next multiple of this number of beats. The `Player` finds out `at` what time that is."""

    @property
    def waits(self) -> bool:
        """Whether it begins at a moment of its own, and not at once."""
        return self.at is not None or self.every is not None


@dataclass(frozen=True)
class ScheduledProgram(Timed):
    """A program that a loader has prepared. `rows` are the rings of the strands that others read; `pictures` are all
    pictures that it samples."""

    loaded: LoadedProgram
    loader: ProgramLoader
    fade: float
    rows: Mapping[str, int]
    pictures: Mapping[str, Picture]
    number: int = 0
    """The number of the program, as the player counts them."""
    listeners: Mapping[str, Listener] = field(default_factory=dict)
    """What its analyses hear, by the names of the pictures of that."""
    held: Mapping[str, float] = field(default_factory=dict)
    """The values that its parameters keep, if another patch plays and this one fades out."""


class Mixer:
    """Renders sections of sound, one after another. `given` has the values of controls by name."""

    def __init__(
        self, rate: float, channels: int, given: Callable[[str], float], rings: npt.NDArray[np.float32],
        clips: bool = True, microphone: Callable[[str, int, int], Floats] | None = None, longest: int = 512,
    ) -> None:
        """`rings` [strands, samples] take the strands that others read. `microphone` gives a number of samples that an
        input of this name hears, from a sample on; without one they are silent. `longest` is the most samples that are
        rendered together. Without `clips`, samples that are too loud, infinite or NaN are not changed, and
        `not_numbers` is updated."""
        self._rate = rate
        self._channels = channels
        self._given = given
        self._smoother = ControlSmoother(rate, given)
        self._rings = rings
        self._clips = clips
        self.limit = 1.0
        """The loudest sample, if it clips."""
        self._microphone = microphone
        self._longest = longest
        # Another thread appends, the one that renders pops.
        self._coming: deque[ScheduledProgram] = deque(maxlen=1)
        self.latest: ScheduledProgram | None = None
        """The program that plays, or is about to."""
        self._next: ScheduledProgram | None = None
        """The program that waits for its moment."""
        self._programs: list[ScheduledProgram] = []
        """The audible programs, of which the last one plays."""
        self._fade = VoiceFade(0, {}, ())
        self._fallback = SoundFallback()
        self._suspended = SuspendedState()
        self.levels: Levels | None = None
        """Statistics that are collected, if any."""
        self.loops_stopped: set[str] = set()
        """The kernels with a loop that reached its limit."""
        # The thread that renders appends, another one pops.
        self._lost: deque[tuple[str, float]] = deque(maxlen=_MOST_PROGRAMS)
        """Slots that are not finite, as a line of their keys, and the time since when, until that is taken."""
        self._reported: set[str] = set()
        """The slots of the program that plays which were found."""
        self.not_numbers: list[str] = []
        """The outputs that were not a number at any sample of the last section; only determined without `clips`."""

    def prepare(
        self, loader: ProgramLoader, compiled: CompiledProgram, fade: float, at: float | None,
        rows: Mapping[str, int], views: Mapping[str, Picture], number: int = 0,
        heard: Mapping[str, HeardMemory] = MappingProxyType({}),
    ) -> ScheduledProgram:
        """Loads everything that the program that plays does not already have. `views` are the pictures of strands that
        it samples, which may change while it plays; `heard` is the memory of its analyses. May be called while another
        thread renders. Raises WeftError for what cannot be loaded."""
        # A block without samples, which shows which inputs differ by channel.
        block = SampleBlock(0, 0, self._rate, self._channels)
        for unit in compiled.streaming.units:
            if block.differs(unit.kernel):
                own = {label: np.zeros((self._channels, 0)) for label in unit.kernel.outputs if is_smoothed(label)}
                block = replace(block, controls={**block.controls, **own})
        env = Env(*compiled.size, block=block)
        latest = self.latest.loaded if self.latest else None
        goes_on = latest is not None and latest.compiled.file == compiled.file
        loaded = loader.prepare(compiled.streaming, compiled.size, latest if goes_on else None, env)
        playing = self._audible(compiled.file)
        if playing is not None:
            # Copying long delay lines would take longer than a block.
            loader.copy_ahead(loaded, playing.loaded)
        known = self.latest.listeners if self.latest else {}
        listeners = {
            name: known[name] if name in known and known[name].memory is memory
            else Listener(heard_of(name), self._rate, memory, self._longest)
            for name, memory in heard.items()
        }  # fmt: skip
        pictures: dict[str, Picture] = {**loaded.pictures, **views}
        for name in pictures.keys() & listeners.keys():
            listeners[name].is_read = True
            pictures[name] = listeners[name].picture
        return ScheduledProgram(loaded, loader, fade, rows, pictures, number, listeners, at=at)

    def enter(self, entry: ScheduledProgram) -> None:
        """Schedules a program, which will continue the state of the previous one; it replaces one that still waits. May
        be called while another thread renders."""
        self.latest = entry
        self._coming.append(entry)

    def withdraw(self) -> None:
        """Forgets a program that waits. Called between two blocks."""
        self._coming.clear()
        self._next = None

    def begin_again(self) -> None:
        """Begins memory of the audible programs again that is not finite. Called between two blocks."""
        for entry in self._programs:
            begin_again(self._fallback.acting(entry.loaded))
        self._reported.clear()

    def take_lost(self) -> Iterator[tuple[str, float]]:
        """The keys of slots that are not finite, in lines, with the time since when; each once until it begins again.
        May be called while another thread renders."""
        while self._lost:
            yield self._lost.popleft()

    def render(self, out: npt.NDArray[np.float32], seconds: float) -> None:
        """Fills `out` [samples, channels] with the sound from `seconds` of the performance, −1…1. Raises what the
        program raises that plays at its end; one that leaves by then, or fades out, is gone if it fails."""
        if self._coming:
            self._next = self._coming.popleft()
        first, entry, cut = round(seconds * self._rate), self._next, len(out)
        if entry is not None:
            # It enters where it is due.
            cut = 0 if entry.at is None else min(max(0, round(entry.at * self._rate) - first), len(out))
        # Sums may be infinite, or too large for single precision.
        with np.errstate(over="ignore", invalid="ignore"):
            if cut:
                try:
                    self._render_section(out[:cut], first, len(out))
                except Exception:
                    if cut == len(out):
                        raise
                    # What fails when another program is about to take over has no time to be heard again.
                    out[:cut] = 0
            if entry is not None and cut < len(out):
                self._next = None
                self._change_to(entry)
                self._render_section(out[cut:], first + cut, len(out) - cut)
        for playing in self._programs[-1:]:
            for listener in playing.listeners.values():
                row = playing.rows.get(listener.heard.strand)
                if row is not None:
                    listener.hear(self._rings[row], first, first + len(out))

    def _change_to(self, entry: ScheduledProgram) -> None:
        entering, file = self._fallback.acting(entry.loaded), entry.loaded.compiled.file
        before = self._audible(file)
        for leaving in self._programs[-1:]:
            if leaving is not before:
                self._leave(leaving, entry)
        if before is not None:
            # The previous program continues too, until it has faded out.
            leaving_parts = self._fallback.acting(before.loaded)
            hand_over(entering, leaving_parts, copy=True)
            begin_changed_again(entering, leaving_parts)
            self._suspended.forget(file)
        else:
            self._suspended.resume(file, entering)
        gains = self._fade.now()
        self._reported.clear()
        self._programs.append(entry)
        self._fallback.keep([part for other in self._programs for part in other.loaded.runner.parts])
        stay = {_voice(part) for other in self._programs[-_MOST_PROGRAMS:] for part in other.loaded.runner.parts}
        new = map(_voice, entry.loaded.runner.parts)
        self._fade = VoiceFade(round(entry.fade * self._rate), gains, new, ending=gains.keys() - stay)

    def _audible(self, file: str) -> ScheduledProgram | None:
        """The latest program of a file that is audible."""
        same = (entry for entry in reversed(self._programs) if entry.loaded.compiled.file == file)
        return next(same, None)

    def _leave(self, leaving: ScheduledProgram, entry: ScheduledProgram) -> None:
        """Keeps the state of a patch from which another one takes over. Its parameters' names now belong to the
        other."""
        self._suspended.suspend(leaving.loaded.compiled.file, self._fallback.acting(leaving.loaded))
        held = {name: self._smoother.now(name) for name in leaving.loaded.compiled.starts}
        self._programs[-1] = replace(leaving, held={name: now for name, now in held.items() if now is not None})
        self._smoother.forget(entry.loaded.compiled.starts)

    def _render_section(self, out: npt.NDArray[np.float32], first: int, left: int) -> None:
        """Renders a section in which no program enters, where `left` samples remain of the block."""
        if self._fade.is_over:
            del self._programs[:-1]
        total = np.zeros((self._channels, len(out)))
        self._fade.mix(self._voices(len(out), first, left), total)
        del self._programs[:-_MOST_PROGRAMS]
        if self.levels is not None:
            self.levels.add(total, first)
        out[:] = (np.clip(total, -self.limit, self.limit) if self._clips else total).T

    def _voices(self, samples: int, first: int, left: int) -> dict[Hashable, Floats]:
        """The sound of each subgraph, [channels, samples]."""
        kernels = [part.unit.kernel for entry in self._programs for part in entry.loaded.runner.parts]
        read = {name for kernel in kernels for name, _ in kernel.coords if is_smoothed(name)}
        heard = set(filter(is_microphone, read))
        raw = self._programs[-1].loaded.compiled.raw if self._programs else frozenset[str]()
        controls = self._smoother.smoothed(read - heard, samples, left, raw)
        for name in heard:
            controls[name] = (
                np.zeros(samples) if self._microphone is None else self._microphone(name, first, samples)
            )
        reads = any(reads_beats(kernel.uniforms) for kernel in kernels)
        beats = {name: self._given(name) for name in INPUTS} if reads else {}
        audible = self._fade.voices
        sounds: dict[Hashable, Floats] = {}
        values: dict[Hashable, Floats] = {}
        failed: list[ScheduledProgram] = []
        self.not_numbers.clear()
        for entry in self._programs:
            # Later subgraphs may read the outputs of earlier ones.
            inputs = {**controls, **{name: np.full(samples, value) for name, value in entry.held.items()}}
            env = Env(
                *entry.loaded.size, abstime=first / self._rate, dt=1 / self._rate,
                inputs={**entry.loaded.compiled.starts, **beats}, pictures=entry.pictures,
                block=SampleBlock(first, samples, self._rate, self._channels, inputs),
                loop_stopped=self.loops_stopped.add,
            )  # fmt: skip
            for part in entry.loaded.runner.parts:
                voice = _voice(part)
                if voice not in audible:
                    continue
                if voice not in values:
                    try:
                        values[voice] = self._fallback.values(entry.loader, entry.loaded, part, env)
                    except Exception:
                        if entry is self._programs[-1]:
                            raise
                        failed.append(entry)
                        break
                    sounds[voice] = self._sum(part, values[voice], first)
                    if entry is self._programs[-1] and not math.isfinite(values[voice].sum()):
                        self._look_for_lost(part, first)
                for number, label in enumerate(part.unit.kernel.outputs):
                    if is_smoothed(label):
                        rows = values[voice][:, number]
                        inputs[label] = rows if len(rows) > 1 else rows[0]
                        if entry is self._programs[-1] and label in entry.rows:
                            # Pictures and numbers read the first channel of a sound.
                            write(self._rings[entry.rows[label]], first, rows[0])
        self._programs = [entry for entry in self._programs if not any(entry is other for other in failed)]
        return sounds

    def _look_for_lost(self, part: RunningSubgraph, first: int) -> None:
        """Notes which slots of a sound are not finite in a section from sample `first` on."""
        lost = [key for key in lost_slots([part]) if key not in self._reported]
        if lost:
            self._reported.update(lost)
            self._lost.append((" ".join(lost), first / self._rate))

    def _sum(self, part: RunningSubgraph, values: Floats, first: int) -> Floats:
        """The outputs of a subgraph, in the channels to which they go. `values` is [channels, outputs, samples], with
        one channel if all are equal."""
        total = np.zeros((self._channels, values.shape[2]))
        if self.levels is not None:
            self.levels.look_for_lost(part.unit.kernel.outputs, values, first)
        if self._clips:
            # This comes before the sum: NaN in one output must not silence the others, and infinity would hold a
            # loudspeaker out.
            values = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
        else:
            lost = np.flatnonzero(np.isnan(values).all(axis=2).any(axis=0))
            self.not_numbers += [part.unit.kernel.outputs[number] for number in lost]
        for number, label in enumerate(part.unit.kernel.outputs):
            if is_smoothed(label):
                continue
            only = channel_of(label)
            if only is None:
                total += values[:, number]
            else:
                total[only % self._channels] += values[min(only, len(values) - 1), number]
        return total


def _voice(part: RunningSubgraph) -> Hashable:
    return id(part.compiled)


# --- offline: as fast as possible, in step with the frames that read it, and the same every time ------------------

BLOCK = 512
"""Samples in a block, as in a performance by default."""


@dataclass(slots=True)
class _SampleCounter:
    """The number of the next sample."""

    next: int


class Rendering:
    """The sound of a program from one sample on. The parameters stay at their initial values; other inputs are 0 until
    they are fed."""

    def __init__(
        self, loader: ProgramLoader, compiled: CompiledProgram, inputs: Mapping[str, float], first: int = 0,
        clips: bool = True, longest: int = BLOCK, reach: int = RING,
    ) -> None:
        """`first` is the number of the first sample; blocks have `longest` samples at most; pictures and numbers read
        the last `reach` samples. Raises WeftError for what the `loader` cannot load."""
        self.rate = compiled.settings["rate"]
        # Functions that are given to others refer to these, and not to this object. It would refer to itself otherwise,
        # and keep its memory until Python collects garbage.
        self._inputs = values = dict(inputs)
        self._place = place = _SampleCounter(first)
        # Memory that is never written takes no space.
        rings = np.zeros((MOST_RINGS, reach), np.float32)
        recent = Recent(rings, self.rate, lambda: place.next - 1)
        self.getter = recent.getter
        """The getters of the strands of the sound."""
        self._channels = channels_of(compiled)
        self.mixer = Mixer(
            self.rate, self._channels, lambda name: values.get(name, 0.0), rings, clips, longest=longest
        )  # fmt: skip
        self._views = {name: blank_view() for name in places_of_views().take(compiled.views)}
        self._heard = {name: HeardMemory.new(heard_of(name)) for name in places_of_heard().take(compiled.heard)}
        rows = recent.rows(compiled)
        self.mixer.enter(self.mixer.prepare(loader, compiled, 0.0, None, rows, self._views, heard=self._heard))

    @property
    def parts(self) -> tuple[RunningSubgraph, ...]:
        """The parts of the program that plays."""
        return self.mixer.latest.loaded.runner.parts if self.mixer.latest is not None else ()

    def skip_to(self, first: int) -> None:
        """Skips to a later sample, if no sample depends on those before it."""
        self._place.next = first

    def listen(self, heard: HeardName) -> LivePicture:
        """The picture of what an analysis hears."""
        known = self._heard
        return HeardPicture(heard, lambda heard: known.get(heard.name))

    def feed(self, values: Mapping[str, float]) -> None:
        """Sets inputs from the next block on; see `ControlSmoother`."""
        self._inputs.update(values)

    def show(self, views: Mapping[str, Floats]) -> None:
        """Sets the strands that it samples, from the next block on; see `ProgramRunner.view_values`."""
        for name, values in views.items():
            self._views[name][:, :, 0] = values

    def until(self, stop: int, length: int = BLOCK) -> Iterator[npt.NDArray[np.float32]]:
        """Computes the samples before number `stop`: [samples, channels], in blocks of this length."""
        place = self._place
        while place.next < stop:
            end = min(stop, place.next + length)
            block = np.zeros((end - place.next, self._channels), np.float32)
            self.mixer.render(block, place.next / self.rate)
            place.next = end
            yield block
