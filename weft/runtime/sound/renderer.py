"""The messages between the player's process and the sound process, and the renderer that plays programs there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.beats import INPUTS, Beats
from weft.codes.rows import InternalError
from weft.media.hearing import HeardMemory
from weft.names import heard_of
from weft.runtime.program.compiled import CompiledProgram
from weft.runtime.program.program import ProgramLoader, Setup
from weft.runtime.sound.microphone import Microphones
from weft.runtime.sound.mixer import Mixer, ScheduledProgram, Timed
from weft.runtime.sound.shared import Controls, Rings

RENDERER = "weft.runtime.sound.renderer:Player"


@dataclass(frozen=True)
class SoundOptions:
    """Options of the sound, which are the first message to the sound process."""

    device: str | None = None
    """A device's number or a part of its name; None is the system's choice."""
    rate: int = 48000
    channels: int = 2
    frames: int = 512
    """The length of a block."""
    places: tuple[int, ...] = ()
    """The output of the device, from 1, to which each channel goes; empty: in their order."""
    renderer: str = RENDERER
    """`module:name` of a `RendererFactory`."""
    is_silent: bool = False
    """Whether no device is opened."""
    is_deaf: bool = False
    """Whether no microphone is opened."""


Kind: TypeAlias = Literal[
    "playing", "lost", "failure", "back", "died", "restarted", "ready", "moved", "placed", "loop", "lost-memory",
    "microphone",
]


@dataclass(frozen=True)
class SoundEvent:
    """An event of the sound process for the player: one line of `words`.

    `playing`: sound begins on the device with that name. `lost`: there is no device, or not any more; opening one is
    tried again. `back`: there is one again. `failure`: a program cannot be played; the previous one, if there is one,
    continues. `died`: the process has ended. `restarted`: it plays again. `ready`: the first messages are handled, and
    opening a device was tried; it is not reported to people. `moved`: the backend `origin` that computed sounds has
    failed, for the reason in `words`, and its fallback continues; `code` is the context. `placed`: a subgraph runs on
    another device than intended. `loop`: a loop of the kernel that `words` names reached its limit of steps.
    `lost-memory`: the slots whose keys are in `words` are not finite since `seconds` of the performance. `microphone`:
    a message about one.
    """

    kind: Kind
    code: str
    words: str
    number: int = 0
    """The number of the program that it is about, as the player counts them; 0: none."""
    origin: str = ""
    """The name of a backend, as in `--backend`."""
    seconds: float = 0.0


class ProgramFailure(InternalError):  # noqa: N818 -- named like the event that reports it
    """The failure of one program. Its cause is the reason."""

    def __init__(self, number: int) -> None:
        """`number` is that of the program, as the player counts them."""
        super().__init__(number)
        self.number = number


class Entry(NamedTuple):
    """The beat on which the program with this number enters."""

    number: int
    beat: float


class BeatFigures(NamedTuple):
    """The entry of the last program that waits for a beat, or has waited for one, and the last change of the tempo: the
    beats until then, and its time."""

    number: int = 0
    beat: float = 0.0
    beats_then: float = 0.0
    beats_start: float = 0.0


class Renderer(Protocol):
    """Fills blocks of sound, one after another, with the latest program that it was given."""

    def render(self, out: NDArray[np.float32], seconds: float) -> BeatFigures | None:
        """Fills a block, [frames, channels], whose first sample is at `seconds` of the performance. Returns what is
        known of its beats, if there are any.

        The thread of the sound device calls it: it allocates little, takes no lock and writes no file. The controls
        have been refreshed before. If it raises, the block is silent.
        """
        ...

    def take(self, message: object) -> None:
        """Handles a message of the player, such as a program. Another thread than that of `render` calls it, at any
        time."""
        ...

    def news(self) -> list[SoundEvent]:
        """The events since the last call. Called by the thread that calls `take`."""
        ...


RendererFactory: TypeAlias = Callable[[SoundOptions, Controls, Rings, Microphones], Renderer]
"""Makes the renderer, in the sound process."""


# --- programs as messages, and what plays them ------------------------------------------------------------------------

# Seconds in which the previous program fades in again when one fails.
_BACK = 0.005


@dataclass(frozen=True)
class Play(Timed):
    """The streaming part of a program to play. `setup` says how it is run; `rows` are the rings of its strands, `views`
    the places of the pictures that it samples, `heard` those of its analyses; `given` are the current inputs, `decoded`
    the files of its sounds. If it is `held`, it is only prepared: another `Play` with its number starts it."""

    number: int
    setup: Setup
    compiled: CompiledProgram
    fade: float
    rows: Mapping[str, int]
    views: Mapping[str, int]
    given: Mapping[str, float]
    held: bool = False
    decoded: Mapping[str, str] = field(default_factory=dict)
    heard: Mapping[str, int] = field(default_factory=dict)


PIECES_KNOWN = 24
"""The number of pieces of programs that both processes know: those of the latest sounds. Garbage collection looks at
all of them, and no block may wait for that."""


@dataclass(frozen=True)
class Better:
    """Better code for units that play, by their hashes."""

    codes: Mapping[str, object]


class Player:
    """The `Renderer` of the sound process. It goes back from a program that fails to the previous one."""

    def __init__(self, options: SoundOptions, controls: Controls, rings: Rings, microphones: Microphones) -> None:
        self._options = options
        self._microphones = microphones
        self._loader: ProgramLoader | None = None
        self._rings = rings
        self._controls = controls
        self._first: Mapping[str, float] = {}
        """The values of names that the controls do not have yet."""
        self._heard: dict[str, tuple[int, HeardMemory]] = {}
        """The places of analyses, and the memory there."""
        self._mixer = self._empty()
        self._held: ScheduledProgram | None = None
        # The thread that takes messages appends; the one that renders pops, one in each block.
        self._coming: deque[ScheduledProgram] = deque()
        self._next: ScheduledProgram | None = None
        """The program that waits in the mixer for its moment."""
        self._newest = 0
        """The number of the last program that was sent to play, which may still be loaded."""
        self._entry: Entry | None = None
        """That of the last program that waits for a beat, or has waited for one since a restart."""
        self._said = Entry(0, 0.0)
        """The last of them all."""
        self._playing: ScheduledProgram | None = None
        self._before: ScheduledProgram | None = None
        self._is_failing = False
        """Whether the one that plays has failed in the last block, and there is none to go back to."""
        self._reported_loops: set[str] = set()
        self._seconds = 0.0
        """The time at which the last block began."""
        self._end = 0.0
        """The time at which it ended."""
        self._restarts: int | None = None
        """The number of restarts of the performance up to then."""
        self._told: Beats | None = None
        """The beats of the player at that time."""
        self._beats: Beats | None = None
        """Those that are heard. They are others if the player told its own too late."""
        self._went_back = False
        """Whether the mixer is about to take a program that begins again, so that the next one waits for a block."""

    def render(self, out: NDArray[np.float32], seconds: float) -> BeatFigures:
        """See `Renderer.render`. Raises ProgramFailure."""
        self._follow_beats(seconds)
        self._end = seconds + len(out) / self._options.rate
        self._take_turns(seconds, len(out))
        try:
            self._mixer.render(out, seconds)
        except Exception as failure:
            failed = self._playing
            self._go_back()
            raise ProgramFailure(failed.number if failed is not None else 0) from failure
        self._is_failing = False
        self._said = self._entry or self._said
        return BeatFigures(*self._said, *(self._beats or ())[:2])

    def take(self, message: object) -> None:
        """See `Renderer.take`. Raises ProgramFailure for a program that cannot be loaded."""
        match message:
            case Play():
                try:
                    self._play(message)
                except Exception as failure:
                    raise ProgramFailure(message.number) from failure
            case Better(codes):
                for entry in (self._held, *self._coming, self._mixer.latest):
                    if entry is not None:
                        entry.loaded.upgrade(codes)

    def news(self) -> list[SoundEvent]:
        """See `Renderer.news`."""
        changes = self._loader.assignment.changes() if self._loader is not None else []
        stopped = [kernel for kernel in tuple(self._mixer.loops_stopped) if kernel not in self._reported_loops]
        self._reported_loops.update(stopped)
        playing = self._playing.number if self._playing is not None else 0
        lost = [SoundEvent("lost-memory", "", keys, playing, "", at) for keys, at in self._mixer.take_lost()]
        return [*lost, *(SoundEvent("loop", "", kernel, playing) for kernel in stopped)] + [
            SoundEvent("moved", change.context, change.reason, origin=change.origin) if change.subgraph is None
            else SoundEvent("placed", "", str(change))
            for change in changes
        ]  # fmt: skip

    def _play(self, play: Play) -> None:
        self._first = {**self._first, **play.given}
        if not play.held:
            self._newest = play.number
        entry = self._held
        if entry is not None and entry.number == play.number:
            entry = replace(entry, fade=play.fade, at=play.at, every=play.every)
        else:
            entry = replace(self._prepared(play), every=play.every)
            self._reported_loops.clear()
            self._mixer.loops_stopped.clear()
        self._held = entry if play.held else None
        if not play.held:
            self._coming.append(entry)

    def _prepared(self, play: Play) -> ScheduledProgram:
        if self._loader is None:
            contexts, self._loader = play.setup.open()
            self._loader.open_devices(spec.name for spec in contexts if spec.streams)
        self._loader.decoded = play.decoded
        views = {name: self._rings.views[row] for name, row in play.views.items()}
        for name, place in play.heard.items():
            if name not in self._heard or self._heard[name][0] != place:
                self._heard[name] = place, self._rings.heard(place, heard_of(name))
        heard = {name: self._heard[name][1] for name in play.heard}
        return self._mixer.prepare(
            self._loader, play.compiled, play.fade, play.at, play.rows, views, play.number, heard
        )  # fmt: skip

    def _follow_beats(self, seconds: float) -> None:
        """Takes over the beats, before a block at `seconds`. After a restart they count from its beginning. The restart
        is not in this block if the block still fades out the sound before it. A change of the tempo that the player
        told too late takes place now, so that the beat does not jump."""
        restarts = self._controls.restarts
        if self._restarts is None or seconds < self._seconds:
            self._restarts, self._entry, self._told, self._beats = restarts, None, None, None
            self._mixer.begin_again()
        self._seconds = seconds
        if restarts == self._restarts:
            found = {name: self._controls.find(name) for name in INPUTS}
            told = {name: number for name, number in found.items() if number is not None}
            if told and (beats := Beats.of(told)) not in (self._told, self._beats):
                self._beats = beats if self._beats is None else self._beats.followed_by(beats, self._end)
                self._told = beats

    def _take_turns(self, start: float, samples: int) -> None:
        """Hands the next program to the mixer, and updates which one plays at the end of a block from `start` on."""
        before = self._next
        if self._coming and not self._went_back:
            self._next = self._coming.popleft()
        self._went_back = False
        if self._next is not None and self._next.number != self._newest and self._next.waits:
            # Another program is about to take its place.
            self._mixer.withdraw()
            self._next = None
        if self._next is not None and self._next.every is not None:
            # Nothing before this block can change any more, and the tempo may change until the beat is there.
            beats = self._beats or Beats.of(self._first)
            if self._next is not before or self._entry is None:
                self._entry = Entry(self._next.number, beats.next(self._next.every, start))
            at = beats.time_of(self._entry.beat)
            if at != self._next.at:
                self._next = replace(self._next, at=at)
        if self._next is not None and self._next is not before:
            if self._is_failing:
                # The mixer would still run the one that fails, until the next one has faded in.
                self._mixer, self._playing, self._is_failing = self._empty(), None, False
            self._mixer.enter(self._next)
        rate = self._options.rate
        # The mixer counts in whole samples, too.
        if self._next is not None and (
            self._next.at is None or round(self._next.at * rate) < round(start * rate) + samples
        ):
            self._before, self._playing, self._next = self._playing, self._next, None

    def _go_back(self) -> None:
        """Plays the previous program again. If there is none, the failed one is tried again in every block, until
        another one comes."""
        if self._next is not None:
            self._coming.appendleft(self._next)
            self._next = None
        if self._before is None:
            self._is_failing = True
            return
        # The old mixer would still run the failed program while it fades out.
        self._mixer = self._empty()
        self._mixer.enter(replace(self._before, fade=_BACK, at=None))
        self._playing, self._before = self._before, None
        self._went_back = True

    def _empty(self) -> Mixer:
        options = self._options
        return Mixer(
            options.rate, options.channels, self._given, self._rings.samples, microphone=self._microphones.sample,
            longest=options.frames,
        )  # fmt: skip

    def _given(self, name: str) -> float:
        if self._beats is not None and name in INPUTS:
            return self._beats[INPUTS.index(name)]
        found = self._controls.find(name)
        return self._first.get(name, 0.0) if found is None else found
