"""The sum of all that sounds: the program that plays, and those before it as they fade away."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from weft.backends.base import DeviceLostError, Env, SampleBlock, as_array
from weft.backends.launch import Getter, Picture, Reals, Value
from weft.codegen.kernel import Unit
from weft.contexts import CHANNELS, is_smoothed
from weft.names import StrandRef
from weft.runtime.compiled import CompiledProgram
from weft.runtime.coordinator import ProgramRunner, RunningSubgraph
from weft.runtime.fallback import stand_in
from weft.runtime.program import LoadedProgram, ProgramLoader, hand_over
from weft.runtime.sound.shared import places_of_rings

# What was heard lately: the samples of strands of sound that pictures and numbers read.

# A moment that was rounded down still has its sample.
_SLACK = 1e-3


class Recent:
    """Rings of recent samples, one for each strand. Sample n of the performance stands at n modulo their length.

    `rings` is [strands, samples], single precision, and may be written to by another process; `newest` gives the number
    of the last sample that is complete.
    """

    def __init__(self, rings: npt.NDArray[np.float32], rate: float, newest: Callable[[], int]) -> None:
        self._rings = rings
        self._rate = rate
        self._newest = newest
        self._rows = places_of_rings(len(rings))

    def rows(self, compiled: CompiledProgram) -> dict[str, int]:
        """The rings of all strands of a program's sound that others read; see `Places.take`. Raises WeftError
        (`too-many-heard`)."""
        heard = [str(ref) for unit in compiled.streaming.units for ref in unit.subgraph.exposes]
        known = {strand: self._rows.find(strand) for strand in heard}
        rows = self._rows.take(heard)
        # What another strand has left in there is not heard.
        self._rings[[row for strand, row in rows.items() if row != known[strand]]] = 0
        return rows

    def getter(self, ref: StrandRef) -> Getter:
        """What reads a strand at moments of the performance, in seconds: 0 before its start, and where it is too long
        ago; the newest sample for what is yet to come. A strand that no program has a ring for is 0."""

        def read(seconds: Value) -> Reals:
            row, newest = self._rows.find(str(ref)), self._newest()
            length = self._rings.shape[1]
            # What is no number, or far away, must not overflow.
            with np.errstate(over="ignore"):
                places = np.nan_to_num(np.asarray(seconds) * self._rate + _SLACK, nan=-1.0)
            numbers = np.floor(np.clip(places, -1, max(newest, -1))).astype(np.int64)
            known = (numbers >= 0) & (numbers > newest - length)
            return np.where(known, self._rings[row, numbers % length] if row is not None else 0, np.float32(0))

        return read


def write(ring: npt.NDArray[np.float32], first: int, values: npt.NDArray[np.floating]) -> None:
    """Puts samples from number `first` on into a ring that is longer than they are."""
    start = first % len(ring)
    fits = min(len(values), len(ring) - start)
    ring[start : start + fits] = values[:fits]
    ring[: len(values) - fits] = values[fits:]


# Fading from one program of sound to the next, so that neither a click nor a gap is heard.
#
# Gains follow a quarter of a circle: what leaves by its cosine, what enters by its sine, so that two sounds that have
# nothing to do with each other keep their power together. Sounds that agree would be louder in the middle, up to twice
# the power; how much they do is measured while they fade, and taken back. What leaves is all that was heard as the fade
# began, at the gains of that moment, with those voices in it that are wanted again.

# After so many samples, what was heard of two sounds counts half.
_HALF_LIFE = 2048


@dataclass(frozen=True, slots=True)
class Likeness:
    """How two sounds go together, as far as they have been heard lately: the sums of their squares, and of their
    products."""

    leaving: float = 0.0
    entering: float = 0.0
    common: float = 0.0

    def with_more(self, leaving: Reals, entering: Reals) -> Likeness:
        """What is known after another stretch of both, of one shape."""
        sums = [float(np.sum(a * b)) for a, b in ((leaving, leaving), (entering, entering), (leaving, entering))]
        if not all(map(math.isfinite, sums)):
            return self
        kept = 0.5 ** (leaving.shape[-1] / _HALF_LIFE)
        known = (self.leaving, self.entering, self.common)
        return Likeness(*(kept * before + more for before, more in zip(known, sums, strict=True)))

    def compensation(self, cosine: Reals, sine: Reals) -> Reals:
        """What keeps the power of both together from rising where one has this cosine as its gain, the other this
        sine. Sounds that cancel each other are not made louder: that would be a swell where they stop to do so."""
        apart = self.leaving * np.square(cosine) + self.entering * np.square(sine)
        common = 2 * max(self.common, 0.0) * cosine * sine
        loud = apart > 0
        return np.sqrt(np.divide(apart, apart + common, out=np.ones_like(apart), where=loud))


class VoiceFade:
    """One passage from some voices to others. Voices are told apart by any key; a gain is what a voice is multiplied
    with, 0…1."""

    def __init__(
        self, samples: int, gains: Mapping[Hashable, float], wanted: Iterable[Hashable], ending: Iterable[Hashable] = ()
    ) -> None:
        """A fade of so many samples from voices with these gains, which may be in the midst of another fade, to those
        that are wanted. For those `ending` there is no time: they are gone after one stretch."""
        self._samples = samples
        self._done = 0
        self._wanted = frozenset(wanted)
        self._start = {**dict.fromkeys(self._wanted, 0.0), **gains}
        self._ending = frozenset(ending)
        self._likeness = Likeness()

    @property
    def is_over(self) -> bool:
        return self._done >= self._samples

    @property
    def voices(self) -> frozenset[Hashable]:
        """All voices that can still be heard."""
        return self._wanted if self.is_over else frozenset(self._start)

    def now(self) -> dict[Hashable, float]:
        """The gains at this moment, as the next fade begins with them."""
        if self.is_over:
            return dict.fromkeys(self._wanted, 1.0)
        cosine, sine = _circle(np.array([self._done / self._samples]))
        compensation = self._likeness.compensation(cosine, sine)
        return {v: float((self._gains(v, cosine, sine, compensation) * np.ones(1))[0]) for v in self._start}

    def mix(self, sounds: Mapping[Hashable, Reals], total: Reals) -> None:
        """Adds the next stretch of what the voices sound like, [channels, samples] each, at their gains."""
        samples = total.shape[1]
        still = {voice for voice in sounds if self._stands_still(voice)}
        if len(still) == len(sounds):
            for sound in sounds.values():
                total += sound
        else:
            cosine, sine = _circle(np.minimum((self._done + np.arange(1, samples + 1)) / max(1, self._samples), 1.0))
            compensation = self._heard({v: s for v, s in sounds.items() if v not in still}, cosine, sine)
            for voice, sound in sounds.items():
                total += sound * self._gains(voice, cosine, sine, compensation)
        self._done = min(self._done + samples, self._samples)
        for voice in self._ending & self._start.keys():
            del self._start[voice]

    def _stands_still(self, voice: Hashable) -> bool:
        """Whether a voice plays on at full gain."""
        return voice in self._wanted and (self.is_over or self._start[voice] == 1.0)

    def _gains(self, voice: Hashable, cosine: Reals, sine: Reals, compensation: Reals) -> Reals | float:
        if self._stands_still(voice):
            return 1.0
        # A voice that is on its way out and comes back is part of both: of what was heard, and of what will be.
        gains: Reals = (self._start[voice] * cosine + (sine if voice in self._wanted else 0.0)) * compensation
        return gains * _ending(len(gains)) if voice in self._ending else np.minimum(gains, 1.0)

    def _heard(self, moving: Mapping[Hashable, Reals], cosine: Reals, sine: Reals) -> Reals:
        """Listens to a stretch of the voices that come and go; gives their compensation, led from what was known of
        them before to what is known now, so that it does not jump."""
        shape = next(iter(moving.values())).shape
        leaving, entering = np.zeros(shape), np.zeros(shape)
        for voice, sound in moving.items():
            if voice in self._wanted:
                entering += sound
            start = self._start[voice]
            leaving += sound * (start * _ending(shape[-1]) if voice in self._ending else start)
        before, self._likeness = self._likeness, self._likeness.with_more(leaving, entering)
        now = self._likeness.compensation(cosine, sine)
        if self._done == 0:
            return now
        ramp = np.arange(1, len(now) + 1) / len(now)
        was = before.compensation(cosine, sine)
        led: Reals = was + (now - was) * ramp
        return led


def _ending(samples: int) -> Reals:
    """What takes a voice away within one stretch."""
    return np.linspace(1, 0, samples)


def _circle(share: Reals) -> tuple[Reals, Reals]:
    """Cosine and sine at these shares of a quarter of a circle."""
    angle = share * (math.pi / 2)
    return np.cos(angle), np.sin(angle)


# What comes to sounds from outside, led from one value to the next: a parameter that jumps must not click.

LED = 0.010
"""Seconds from one value to the next, at least."""


@dataclass(slots=True)
class _Ramp:
    """Where one thing is on its way to what it shall be, and how many samples it still takes."""

    now: float
    target: float
    left: int = 0


class ControlSmoother:
    """Leads what others ask for, stretch by stretch: along a straight line, for as long as a block at least. What
    nobody asks for in a stretch begins anew where it is by then."""

    def __init__(self, rate: float, given: Callable[[str], float]) -> None:
        """`given` is asked for each thing by its name."""
        self._shortest = math.ceil(LED * rate)
        self._given = given
        self._ways: dict[str, _Ramp] = {}

    def led(self, names: Iterable[str], samples: int, left: int) -> dict[str, Reals]:
        """The next so many samples of each, with so many `left` of the block."""
        ways = {name: self._turned(name, left) for name in names}
        self._ways = ways
        return {name: _walked(way, samples) for name, way in ways.items()}

    def _turned(self, name: str, left: int) -> _Ramp:
        """The way of one thing, to what it shall be by now."""
        target = float(self._given(name))
        way = self._ways.get(name)
        # To and from what is no number, nothing leads.
        if way is None or not math.isfinite(target - way.now):
            return _Ramp(target, target)
        if way.target != target:
            way.target, way.left = target, max(left, self._shortest)
        return way


def _walked(way: _Ramp, samples: int) -> Reals:
    """The next samples of a way; it has come so much further then."""
    if not way.left:
        return np.full(samples, way.now)
    line: Reals = way.now + (way.target - way.now) * (np.arange(1, samples + 1) / way.left)
    line[way.left - 1 :] = way.target
    way.left = max(0, way.left - samples)
    way.now = float(line[-1])
    return line


# What becomes of a sound whose device fails while it plays: it goes on elsewhere, in the same block.


class Rescue:
    """Runs the subgraphs of sounds, or what has taken their place."""

    def __init__(self) -> None:
        self._in_place: dict[int, tuple[RunningSubgraph, RunningSubgraph]] = {}
        """By the identity of a subgraph that cannot run any more: its part, and the one that runs instead."""

    def values(self, loader: ProgramLoader, loaded: LoadedProgram, part: RunningSubgraph, env: Env) -> Reals:
        """What a subgraph gives in a block, [channels, outputs, samples]. Raises DeviceLostError if its device fails
        and nothing is left that could take its place."""
        _, acting = self._in_place.get(id(part.compiled), (part, part))
        if not loader.assignment.is_lost(acting.backend):
            try:
                return _run(acting, env, loaded.runner)
            except DeviceLostError as failure:
                if not loader.assignment.lose(acting.backend, failure.reason):
                    raise
        # What it has been given meanwhile may be better than what it began with.
        latest = RunningSubgraph(acting.compiled.unit, acting.backend, acting.compiled)
        found = stand_in(loader, latest, loaded.compiled, env, loaded.runner)
        self._in_place[id(part.compiled)] = (part, found)
        return _run(found, env, loaded.runner)

    def acting(self, loaded: LoadedProgram) -> list[RunningSubgraph]:
        """The parts of a program that run for it, with what they remember by now."""
        return [self._in_place.get(id(part.compiled), (part, part))[1] for part in loaded.runner.parts]

    def keep(self, parts: list[RunningSubgraph]) -> None:
        """Forgets what has taken the place of any other parts than these."""
        known = {id(part.compiled) for part in parts}
        self._in_place = {place: pair for place, pair in self._in_place.items() if place in known}


def _run(part: RunningSubgraph, env: Env, runner: ProgramRunner) -> Reals:
    return as_array(part.backend.execute_subgraph(part.compiled, env, runner))


# The sum of all that sounds: the program that plays, and those before it as they fade away. The same code plays live
# and renders to files.

# Programs that can be heard at once. With more saves in the time of one fade, the oldest ends within a block.
_MOST_PROGRAMS = 4

NO_VIEWS: Mapping[str, Picture] = MappingProxyType({})


def channels_of(compiled: CompiledProgram) -> int:
    """How many channels a program has sound for; at least two."""
    labels = (label for unit in compiled.streaming.units for label in unit.kernel.outputs)
    return max(2, *(1 + (_channel(label) or 0) for label in labels), 0)


def _channel(label: str) -> int | None:
    """The only channel that an output goes to; None if it goes to all."""
    place = label.rpartition(".")[2]
    return CHANNELS.index(place) if place in CHANNELS else None


@dataclass
class Levels:
    """What is remarkable about samples, as they are before they are clipped: those from number `first` to the one
    before `end`."""

    first: int
    end: int
    samples: int = 0
    """How many there were, in all channels together."""
    peak: float = 0.0
    too_loud: int = 0
    """How many are beyond −1…1, and the number of the first one in time."""
    first_too_loud: int | None = None
    not_numbers: dict[str, tuple[int, int]] = field(default_factory=dict)
    """For each output that is not a number at some samples: at how many, and the number of the first."""

    def add(self, total: Reals, first: int) -> None:
        """The sum of all that sounds, [channels, samples], from the sample of this number on."""
        skipped = max(0, self.first - first)
        sizes = np.abs(total[:, skipped : max(skipped, self.end - first)])
        self.samples += sizes.size
        self.peak = max(self.peak, float(np.max(sizes, initial=0.0, where=np.isfinite(sizes))))
        loud = sizes > 1.0
        if loud.any():
            self.too_loud += int(loud.sum())
            if self.first_too_loud is None:
                self.first_too_loud = first + skipped + int(loud.any(axis=0).argmax())

    def look_for_nan(self, labels: Sequence[str], values: Reals, first: int) -> None:
        """The outputs of a subgraph, [channels, outputs, samples]."""
        skipped = max(0, self.first - first)
        lost = np.isnan(values[:, :, skipped : max(skipped, self.end - first)]).any(axis=0)
        for label, missing in zip(labels, np.atleast_2d(lost), strict=True):
            if missing.any():
                count, begun = self.not_numbers.get(label, (0, first + skipped + int(missing.argmax())))
                self.not_numbers[label] = (count + int(missing.sum()), begun)


@dataclass(frozen=True)
class ScheduledProgram:
    """A program that was made ready on a stage, to be heard from `at` on (seconds of the performance; None: at once).
    `rows` says which ring each strand goes to that others hear; `pictures` has all that it samples."""

    loaded: LoadedProgram
    loader: ProgramLoader
    fade: float
    at: float | None
    rows: Mapping[str, int]
    pictures: Mapping[str, Picture]


class Mixer:
    """Renders stretches of sound, one after another. `given` is asked for what comes from outside, by its name."""

    def __init__(
        self,
        rate: float,
        channels: int,
        given: Callable[[str], float] = lambda name: 0.0,
        rings: npt.NDArray[np.float32] | None = None,
        clips: bool = True,
    ) -> None:
        """`rings` [strands, samples] take what others hear. Without `clips`, what is too loud, infinite or no number is
        left as it is, and told by `not_numbers`."""
        self._rate = rate
        self._channels = channels
        self._leading = ControlSmoother(rate, given)
        self._rings = rings
        self._clips = clips
        # Another thread puts in, the one that renders takes out.
        self._coming: deque[ScheduledProgram] = deque(maxlen=1)
        self._latest: ScheduledProgram | None = None
        self._next: ScheduledProgram | None = None
        """What enters at its moment."""
        self._programs: list[ScheduledProgram] = []
        """Those that can be heard, the one that plays last."""
        self._fade = VoiceFade(0, {}, ())
        self._rescue = Rescue()
        self.levels: Levels | None = None
        """Watches what is rendered, if it is wanted."""
        self.loops_stopped: set[str] = set()
        """The kernels of which a loop met its limit."""
        self.not_numbers: list[str] = []
        """The outputs that were no number at any sample of the last stretch; looked for only where nothing clips."""

    @property
    def playing(self) -> LoadedProgram | None:
        """The program that plays, or is about to."""
        return self._latest.loaded if self._latest else None

    def prepare(
        self,
        loader: ProgramLoader,
        compiled: CompiledProgram,
        fade: float,
        at: float | None,
        rows: Mapping[str, int],
        views: Mapping[str, Picture] = NO_VIEWS,
    ) -> ScheduledProgram:
        """Loads what the program that plays does not have already. `views` are the pictures of strands that it sees,
        which may change while it plays. May be called while another thread renders. Raises WeftError for what cannot
        be loaded."""
        env = Env(*compiled.size, block=self._first_block(compiled.streaming.units))
        loaded = loader.prepare(compiled.streaming, compiled.size, self.playing, env)
        for heard in self._programs[-1:]:
            # Long delay lines would take longer to copy than a block lasts.
            loader.copy_ahead(loaded, heard.loaded)
        return ScheduledProgram(loaded, loader, fade, at, rows, {**loaded.pictures, **views})

    def _first_block(self, units: Iterable[Unit]) -> SampleBlock:
        """A block without samples, which says what is different in each channel."""
        block = SampleBlock(0, 0, self._rate, self._channels)
        for unit in units:
            if block.differs(unit.kernel):
                own = {label: np.zeros((self._channels, 0)) for label in unit.kernel.outputs if is_smoothed(label)}
                block = replace(block, led={**block.led, **own})
        return block

    def enter(self, entry: ScheduledProgram) -> None:
        """Has a program play, with what the one before it remembers at that moment; it takes the place of one that
        still waits. May be called while another thread renders."""
        self._latest = entry
        self._coming.append(entry)

    def render(self, out: npt.NDArray[np.float32], seconds: float) -> None:
        """Fills `out` [samples, channels] with what is heard from `seconds` of the performance on, −1…1."""
        if self._coming:
            self._next = self._coming.popleft()
        # Sums may be infinite, or too large for single precision.
        with np.errstate(over="ignore", invalid="ignore"):
            self._fill(out, round(seconds * self._rate))

    def _fill(self, out: npt.NDArray[np.float32], first: int) -> None:
        """Fills `out` from a sample of the performance on. The program that waits enters where it is due."""
        entry = self._next
        if entry is None:
            self._stretch(out, first, len(out))
            return
        cut = 0 if entry.at is None else min(max(0, round(entry.at * self._rate) - first), len(out))
        if cut:
            self._stretch(out[:cut], first, len(out))
        if cut < len(out):
            self._next = None
            self._change_to(entry)
            self._stretch(out[cut:], first + cut, len(out) - cut)

    def _change_to(self, entry: ScheduledProgram) -> None:
        if self._programs:
            # That one goes on as well, until it has faded away.
            entering, playing = map(self._rescue.acting, (entry.loaded, self._programs[-1].loaded))
            hand_over(entering, playing, copy=True)
        gains = self._fade.now()
        self._programs.append(entry)
        self._rescue.keep([part for other in self._programs for part in other.loaded.runner.parts])
        stay = {_voice(part) for other in self._programs[-_MOST_PROGRAMS:] for part in other.loaded.runner.parts}
        new = map(_voice, entry.loaded.runner.parts)
        self._fade = VoiceFade(round(entry.fade * self._rate), gains, new, ending=gains.keys() - stay)

    def _stretch(self, out: npt.NDArray[np.float32], first: int, left: int) -> None:
        """A stretch in which no program enters, with so many samples `left` of the block."""
        if self._fade.is_over:
            del self._programs[:-1]
        total = np.zeros((self._channels, len(out)))
        self._fade.mix(self._voices(len(out), first, left), total)
        del self._programs[:-_MOST_PROGRAMS]
        if self.levels is not None:
            self.levels.add(total, first)
        out[:] = (np.clip(total, -1.0, 1.0) if self._clips else total).T

    def _voices(self, samples: int, first: int, left: int) -> dict[Hashable, Reals]:
        """What each subgraph sounds like, [channels, samples]."""
        led = self._lead(samples, left)
        audible = self._fade.voices
        sounds: dict[Hashable, Reals] = {}
        values: dict[Hashable, Reals] = {}
        self.not_numbers.clear()
        for entry in self._programs:
            # What one subgraph gives can be heard by those behind it.
            heard = dict(led)
            env = Env(
                *entry.loaded.size, abstime=first / self._rate, dt=1 / self._rate,
                inputs=entry.loaded.compiled.parameters, pictures=entry.pictures,
                block=SampleBlock(first, samples, self._rate, self._channels, heard),
                loop_stopped=self.loops_stopped.add,
            )  # fmt: skip
            for part in entry.loaded.runner.parts:
                voice = _voice(part)
                if voice not in audible:
                    continue
                if voice not in values:
                    values[voice] = self._rescue.values(entry.loader, entry.loaded, part, env)
                    sounds[voice] = self._sum(part, values[voice], first)
                for number, label in enumerate(part.unit.kernel.outputs):
                    if is_smoothed(label):
                        rows = values[voice][:, number]
                        heard[label] = rows if len(rows) > 1 else rows[0]
                        if self._rings is not None and entry is self._programs[-1] and label in entry.rows:
                            # Who looks at a sound sees its first channel.
                            write(self._rings[entry.rows[label]], first, rows[0])
        return sounds

    def _sum(self, part: RunningSubgraph, values: Reals, first: int) -> Reals:
        """The outputs of a subgraph in the channels that they go to. `values` is [channels, outputs, samples], with one
        channel where all sound the same."""
        total = np.zeros((self._channels, values.shape[2]))
        if self.levels is not None:
            self.levels.look_for_nan(part.unit.kernel.outputs, values, first)
        if self._clips:
            # Before they meet: what is no number must not silence the others.
            values = np.nan_to_num(values, nan=0.0, posinf=1.0, neginf=-1.0)
        else:
            lost = np.flatnonzero(np.isnan(values).all(axis=2).any(axis=0))
            self.not_numbers += [part.unit.kernel.outputs[number] for number in lost]
        for number, label in enumerate(part.unit.kernel.outputs):
            if is_smoothed(label):
                continue
            only = _channel(label)
            if only is None:
                total += values[:, number]
            else:
                total[only % self._channels] += values[min(only, len(values) - 1), number]
        return total

    def _lead(self, samples: int, left: int) -> dict[str, Reals]:
        """What comes from outside."""
        kernels = (part.unit.kernel for entry in self._programs for part in entry.loaded.runner.parts)
        names = {name for kernel in kernels for name, _ in kernel.coords if is_smoothed(name)}
        return self._leading.led(names, samples, left)


def _voice(part: RunningSubgraph) -> Hashable:
    return id(part.compiled)
