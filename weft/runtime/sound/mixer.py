"""The sum of all that sounds: the program that plays, and those before it as they fade away. The same code plays live
and renders to files."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from weft.backends.base import Block, Env
from weft.backends.launch import Picture, Reals
from weft.codegen.unit import Unit
from weft.contexts import CHANNELS, is_led
from weft.runtime.coordinator import Part
from weft.runtime.playable import Playable
from weft.runtime.program import Stage, Swap, hand_over
from weft.runtime.sound.fades import Fade
from weft.runtime.sound.leading import Leading
from weft.runtime.sound.recent import write
from weft.runtime.sound.rescue import Rescue

# Programs that can be heard at once. With more saves in the time of one fade, the oldest ends within a block.
_MOST_PROGRAMS = 4

NO_VIEWS: Mapping[str, Picture] = MappingProxyType({})


def channels_of(playable: Playable) -> int:
    """How many channels a program has sound for; at least two."""
    labels = (label for unit in playable.streaming.units for label in unit.kernel.outputs)
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
class Entry:
    """A program that was made ready on a stage, to be heard from `at` on (seconds of the performance; None: at once).
    `rows` says which ring each strand goes to that others hear; `pictures` has all that it samples."""

    swap: Swap
    stage: Stage
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
        self._leading = Leading(rate, given)
        self._rings = rings
        self._clips = clips
        # Another thread puts in, the one that renders takes out.
        self._coming: deque[Entry] = deque(maxlen=1)
        self._latest: Entry | None = None
        self._next: Entry | None = None
        """What enters at its moment."""
        self._programs: list[Entry] = []
        """Those that can be heard, the one that plays last."""
        self._fade = Fade(0, {}, ())
        self._rescue = Rescue()
        self.levels: Levels | None = None
        """Watches what is rendered, if it is wanted."""
        self.loops_stopped: set[str] = set()
        """The kernels of which a loop met its limit."""
        self.not_numbers: list[str] = []
        """The outputs that were no number at any sample of the last stretch; looked for only where nothing clips."""

    @property
    def playing(self) -> Swap | None:
        """The program that plays, or is about to."""
        return self._latest.swap if self._latest else None

    def prepare(
        self,
        stage: Stage,
        playable: Playable,
        fade: float,
        at: float | None,
        rows: Mapping[str, int],
        views: Mapping[str, Picture] = NO_VIEWS,
    ) -> Entry:
        """Loads what the program that plays does not have already. `views` are the pictures of strands that it sees,
        which may change while it plays. May be called while another thread renders. Raises WeftError for what cannot
        be loaded."""
        env = Env(*playable.size, block=self._first_block(playable.streaming.units))
        swap = stage.prepare(playable.streaming, playable.size, self.playing, env)
        for heard in self._programs[-1:]:
            # Long delay lines would take longer to copy than a block lasts.
            stage.copy_ahead(swap, heard.swap)
        return Entry(swap, stage, fade, at, rows, {**swap.pictures, **views})

    def _first_block(self, units: Iterable[Unit]) -> Block:
        """A block without samples, which says what is different in each channel."""
        block = Block(0, 0, self._rate, self._channels)
        for unit in units:
            if block.differs(unit.kernel):
                own = {label: np.zeros((self._channels, 0)) for label in unit.kernel.outputs if is_led(label)}
                block = replace(block, led={**block.led, **own})
        return block

    def enter(self, entry: Entry) -> None:
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

    def _change_to(self, entry: Entry) -> None:
        if self._programs:
            # That one goes on as well, until it has faded away.
            entering, playing = map(self._rescue.acting, (entry.swap, self._programs[-1].swap))
            hand_over(entering, playing, copy=True)
        gains = self._fade.now()
        self._programs.append(entry)
        self._rescue.keep([part for other in self._programs for part in other.swap.runner.parts])
        stay = {_voice(part) for other in self._programs[-_MOST_PROGRAMS:] for part in other.swap.runner.parts}
        new = map(_voice, entry.swap.runner.parts)
        self._fade = Fade(round(entry.fade * self._rate), gains, new, ending=gains.keys() - stay)

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
                *entry.swap.size, abstime=first / self._rate, dt=1 / self._rate,
                inputs=entry.swap.playable.parameters, pictures=entry.pictures,
                block=Block(first, samples, self._rate, self._channels, heard),
                loop_stopped=self.loops_stopped.add,
            )  # fmt: skip
            for part in entry.swap.runner.parts:
                voice = _voice(part)
                if voice not in audible:
                    continue
                if voice not in values:
                    values[voice] = self._rescue.values(entry.stage, entry.swap, part, env)
                    sounds[voice] = self._sum(part, values[voice], first)
                for number, label in enumerate(part.unit.kernel.outputs):
                    if is_led(label):
                        rows = values[voice][:, number]
                        heard[label] = rows if len(rows) > 1 else rows[0]
                        if self._rings is not None and entry is self._programs[-1] and label in entry.rows:
                            # Who looks at a sound sees its first channel.
                            write(self._rings[entry.rows[label]], first, rows[0])
        return sounds

    def _sum(self, part: Part, values: Reals, first: int) -> Reals:
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
            if is_led(label):
                continue
            only = _channel(label)
            if only is None:
                total += values[:, number]
            else:
                total[only % self._channels] += values[min(only, len(values) - 1), number]
        return total

    def _lead(self, samples: int, left: int) -> dict[str, Reals]:
        """What comes from outside."""
        kernels = (part.unit.kernel for entry in self._programs for part in entry.swap.runner.parts)
        names = {name for kernel in kernels for name, _ in kernel.coords if is_led(name)}
        return self._leading.led(names, samples, left)


def _voice(part: Part) -> Hashable:
    return id(part.compiled)
