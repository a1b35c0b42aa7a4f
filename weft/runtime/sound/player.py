"""The player's side of the sound: its process, streams of sound, and the change from one stream to another."""

from __future__ import annotations

import math
import os
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait

from weft.backends.launch import Floats, Getter, Value
from weft.beats import INPUTS, Beats
from weft.child import Child
from weft.contexts import is_smoothed
from weft.errors import Diagnostic, WeftError, error, fault
from weft.media.hearing import HeardMemory, HeardPicture
from weft.media.sampled import decoded_files
from weft.media.source import LivePicture
from weft.names import HeardName, StrandRef, heard_of
from weft.platform import system
from weft.runtime.hands.clock import Clock
from weft.runtime.program.compiled import CompiledProgram
from weft.runtime.program.parcels import Packer, pieces_of
from weft.runtime.program.program import Setup
from weft.runtime.sound.mixer import Recent, channels_of
from weft.runtime.sound.renderer import PIECES_KNOWN, Better, Kind, Play, SoundEvent, SoundOptions
from weft.runtime.sound.shared import (
    Controls, ControlsWriter, Figures, FiguresMemory, Rings, SharedMemory, SoundState, SoundTape, places_of_heard,
    places_of_views
)

# --- the process ------------------------------------------------------------------------------------------------------

# The seconds between two starts; those for which figures stay valid; and those in which the process has to end.
_AGAIN = 1.0
_STALE = 1.0
_LEAVE = 1.0


class SoundProcess:
    """The process and the memory shared with it. The process is started again when it dies, and the performance never
    waits for it. For the thread that draws, unless a method says otherwise; only
    `close` is slow."""

    def __init__(self, options: SoundOptions) -> None:
        self.options = options
        """They may change until the first message is sent."""
        self.is_used = False
        """Whether a message was sent."""
        self.is_ready = False
        """Whether a process has handled its first messages, and has tried to open a device."""
        sizes = Controls.SIZE, FiguresMemory.SIZE, Rings.SIZE, SoundTape.SIZE
        self._memories = [SharedMemory(size) for size in sizes]
        controls, figures, rings, tape = self._memories
        self.controls = ControlsWriter(controls)
        """The time and the inputs, once a frame. There is no sound before the first."""
        self.rings = Rings(rings.bytes)
        self.tape = SoundTape(tape.bytes)
        """The samples that the device was given lately, up to the one that `figures` counts."""
        self._figures = FiguresMemory(figures.bytes)
        self._lock = threading.Lock()
        self._outgoing: deque[tuple[str | None, object]] = deque()
        self._kept: dict[str, object] = {}
        self._events: deque[SoundEvent] = deque()
        self._ending = threading.Event()
        self._woken, self._wake = socket.socketpair()
        self._wake.setblocking(False)
        self._thread = threading.Thread(target=self._run, name="weft-sound", daemon=True)
        self._process: Child | None = None
        self._started = 0.0
        self._has_died = self._is_lost = False
        self._failure: Diagnostic | None = None

    # --- for the thread that draws --------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the process, unless it runs, and again whenever it dies. Until the first message it only prepares."""
        if self._thread.ident is None:
            self._thread.start()

    def send(self, message: object, keep: str | None = None) -> None:
        """Sends a message to the renderer. With a key to `keep`, the last message for that key is sent again to a
        process that replaces a dead one."""
        if self._ending.is_set():
            return
        with self._lock:
            if keep is not None:
                # Kept messages are sent again in the order in which they were sent last.
                self._kept.pop(keep, None)
                self._kept[keep] = message
            self._outgoing.append((keep, message))
            self.is_used = True
        self._wake_thread()

    def keep(self, message: object, key: str, instead_of: str) -> None:
        """Keeps a message for a key without sending it, instead of that which is kept for another key. A process that
        is about to be started gets it."""
        with self._lock:
            if instead_of in self._kept:
                others = {k: kept for k, kept in self._kept.items() if k not in {key, instead_of}}
                self._kept = {**others, key: message}
                self._outgoing = deque((k, message if k == instead_of else other) for k, other in self._outgoing)

    def forget(self, key: str) -> None:
        """Drops the message that is kept for a key."""
        with self._lock:
            self._kept.pop(key, None)

    def revise(self, change: Callable[[object], object]) -> None:
        """Changes the kept messages."""
        with self._lock:
            self._kept = {key: change(message) for key, message in self._kept.items()}

    def events(self) -> list[SoundEvent]:
        """The events since the last call."""
        return [self._events.popleft() for _ in range(len(self._events))]

    @property
    def is_starting(self) -> bool:
        """Whether the first process has not played a block yet; False if it has died."""
        return not (self._has_died or self.figures.blocks)

    @property
    def pid(self) -> int | None:
        """The id of the process; None while there is none."""
        process = self._process
        return process.pid if process is not None else None

    @property
    def figures(self) -> Figures:
        """Figures about the latest block."""
        return self._figures.read()

    @property
    def latest(self) -> Figures | None:
        """Figures about the latest block; None while no stream runs, or while it does not know of the last restart."""
        figures = self.figures
        is_old = figures.moment < max(self._started, time.monotonic() - _STALE)
        return None if is_old or figures.restarts != self.controls.restarts else figures

    def seconds(self) -> float | None:
        """The performance time that is audible now; None while no stream runs, or while it does not know of the last
        restart. Right after a restart it is below 0, until the first sample arrives at the loudspeaker.
        """
        figures = self.latest
        if figures is None:
            return None
        if figures.state is SoundState.PAUSED:
            return figures.seconds - figures.latency
        return figures.seconds + (time.monotonic() - figures.heard) if figures.state is SoundState.PLAYING else None

    def close(self) -> None:
        """Fades the sound out and ends the process. May be called twice."""
        if self._ending.is_set():
            return
        self._ending.set()
        if self._thread.ident is not None:
            if not self.is_used:  # there is nothing to fade out
                self._kill()
            self._wake_thread()
            self._thread.join(2 * _LEAVE)
            # The thread may be sending to a process that does not receive.
            self._kill()
            self._thread.join()
        for memory in self._memories:
            memory.close()
        self._wake.close()
        self._woken.close()

    def _wake_thread(self) -> None:
        with suppress(BlockingIOError):  # it is full, which wakes it as well
            self._wake.send(b".")

    # --- the thread that serves the process -----------------------------------------------------------------------

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                connection = self._begin()
                with suppress(EOFError, OSError):
                    self._serve(connection)
            except Exception as failure:
                self._fail(fault("the sound process cannot be started", failure))
            self._end()
            self._ending.wait(max(0.0, self._started + _AGAIN - time.monotonic()))

    def _begin(self) -> Connection:
        self._started = time.monotonic()
        descriptors = [memory.descriptor for memory in self._memories]
        # It must not start a sound server. Its main thread may stall while blocks are filled.
        self._process = Child(
            "weft.runtime.sound.server:main", self.options.renderer, descriptors=descriptors,
            environment={**os.environ, "JACK_NO_START_SERVER": "1"}, main_thread_works=True,
        )  # fmt: skip
        return self._process.connection

    def _serve(self, connection: Connection) -> None:
        """Passes messages in both directions. Returns at the end of the performance; raises EOFError or OSError when
        the process has died."""
        is_set_up, packer = False, Packer(PIECES_KNOWN)
        while not self._ending.is_set():
            if self.is_used and not is_set_up:
                connection.send(self.options)
                is_set_up = True
            self._send_waiting(connection, packer)
            ready = wait([connection, self._woken])
            if self._woken in ready:
                self._woken.recv(4096)
            if connection in ready:
                self._receive(connection.recv())

    def _send_waiting(self, connection: Connection, packer: Packer) -> None:
        while True:
            with self._lock:
                if not self._outgoing:
                    return
                _, message = self._outgoing.popleft()
            try:
                if isinstance(message, Play):
                    message = packer.pack(message, pieces_of(message.compiled.units))
                connection.send(message)
            except OSError:
                raise
            except Exception as failure:
                self._fail(fault("a message to the sound process cannot be sent", failure))

    def _receive(self, event: SoundEvent) -> None:
        match event.kind:
            case "playing":
                kind: Kind = "back" if self._is_lost else "restarted" if self._has_died else "playing"
                self._events.append(replace(event, kind=kind))
                self._is_lost = self._has_died = False
            case "lost":
                # A process that replaces another finds what the other has already reported.
                if not self._is_lost:
                    self._events.append(event)
                self._is_lost = True
            case "ready":
                self.is_ready = True
            case _:
                self._events.append(event)

    def _fail(self, failure: Diagnostic) -> None:
        """Reports a failure, once for repeated failures with one reason."""
        if failure != self._failure:
            self._failure = failure
            self._events.append(SoundEvent("failure", failure.code, failure.message))

    def _end(self) -> None:
        """Waits for the end of the process. If it ended by itself, reports that and queues the kept messages again."""
        process = self._process
        if process is not None:
            process.connection.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_LEAVE)
            process.end()
        if process is None or self._ending.is_set():
            return
        self._process = None
        with self._lock:
            waiting = [(key, message) for key, message in self._outgoing if key is None]
            self._outgoing = deque([*self._kept.items(), *waiting])
        # If there was no sound before, nothing has changed.
        if not (self._has_died or self._is_lost):
            is_stuck = system.is_alarm(process.returncode)
            reason = "ended (its device does not answer)" if is_stuck else process.ending
            words = f"the sound process {reason} and is started again"
            self._events.append(SoundEvent("died", "sound-died", words))
        self._has_died = True

    def _kill(self) -> None:
        process = self._process
        if process is not None:
            with suppress(OSError):
                process.kill()


# --- streams ----------------------------------------------------------------------------------------------------------

# The most blocks that a stream usually has computed ahead, and the seconds until the sound process knows of another
# tempo.
_IN_HAND, _ON_THE_WAY = 4, 0.02

# The keys of messages that are kept for a process that replaces a dead one: what plays, and what waits for its moment.
_PLAYING, _WAITING = "playing", "waiting"


class Stream(SoundProcess):
    """A sound process that plays programs, with one rate and a number of channels. For the thread that draws, except
    `getter`."""

    def __init__(self, setup: Setup, options: SoundOptions) -> None:
        """`setup` says how programs are run."""
        super().__init__(options)
        self._setup = setup
        self._recent = self._recent_samples()
        self._views = places_of_views()
        self._heard_places = places_of_heard()
        self._heard: dict[str, tuple[int, HeardMemory]] = {}
        """The places of the analyses of the latest program, and the memory there."""
        self._reads: tuple[frozenset[str], ...] = (frozenset(),)
        """The inputs that the audible programs read, the latest program last."""
        self._latest: Play | None = None
        self._has_failed = False
        """Whether it is uncertain that the latest program plays."""
        self._waits = False
        """Whether the latest program waits for its moment."""
        self._sent = 0.0
        """When it was sent, on `time.monotonic`."""
        self._was_starting = 0.0
        """When the first process was seen last that had not played a block yet."""

    def adapt_to(self, rate: int, channels: int) -> None:
        """Changes the rate and the number of channels, before any program was sent."""
        self.options = replace(self.options, rate=rate, channels=channels)
        self._recent = self._recent_samples()

    def _recent_samples(self) -> Recent:
        # The latest block may not be complete.
        return Recent(self.rings.samples, self.options.rate, lambda: self.figures.sample - 1)

    def getter(self, ref: StrandRef) -> Getter:
        """The getter of a strand that was played; see `Recent.getter`."""
        return self._recent.getter(ref)

    def heard(self, heard: HeardName) -> HeardMemory | None:
        """What an analysis of the latest program hears."""
        found = self._heard.get(heard.name)
        return None if found is None else found[1]

    def play(
        self, number: int, sounding: CompiledProgram, fade: float, given: Mapping[str, float], every: float | None,
        held: bool, again: bool = False,
    ) -> int:
        """Plays the streaming part of a program; see `Play`. If all of it plays already, it continues, unless it is to
        begin `again`. Returns the number of what plays then. Raises WeftError for a program that reads more than there
        is room for."""
        rows, views = self._recent.rows(sounding), self._views.take(sounding.views)
        heard = self._heard_places.take(sounding.heard)
        self._heard = {
            name: self._heard[name] if name in self._heard and self._heard[name][0] == place
            else (place, self.rings.heard(place, heard_of(name)))
            for name, place in heard.items()
        }  # fmt: skip
        names = {name for unit in sounding.units for name, _ in unit.kernel.coords if is_smoothed(name)}
        # Every program may wait for a beat.
        names.update(INPUTS)
        # The previous program continues for a while: not that which waits, whose place is taken.
        self._reads = (self._reads[0 if self._waits else -1], frozenset(names))
        first = {name: value for name, value in given.items() if name in names}
        sampled = (name for unit in sounding.units for name in unit.kernel.pictures)
        decoded = decoded_files(sampled)
        play = Play(number, self._setup, sounding, fade, rows, views, first, held, decoded, heard, every=every)
        latest = self._latest
        if latest is not None and not again and self._goes_on(latest, play):
            return latest.number
        self._send(play)
        self.start()
        return number

    def _goes_on(self, latest: Play, play: Play) -> bool:
        """Whether the latest program plays, and sounds the same as this one."""
        if self._has_failed or self._waits or latest.held or play.held:
            return False
        # Files may have changed.
        return not play.decoded and _sounding_key(play) == _sounding_key(latest)

    def release(self, fade: float, every: float | None) -> None:
        """Plays the held program on the next multiple of `every` beats; None: at once."""
        if self._latest is not None:
            self._send(replace(self._latest, fade=fade, every=every, held=False))

    def fall_silent(self, fade: float, at: float) -> None:
        """Fades out the sound, from `at` on."""
        if self._latest is not None:
            nothing = replace(self._latest.compiled, units=())
            self._send(Play(0, self._setup, nothing, fade, {}, {}, {}, at=at))

    def events(self) -> list[SoundEvent]:
        found = super().events()
        if any(event.kind in ("failure", "moved", "placed") for event in found):
            self._has_failed = True
        return found

    def _send(self, play: Play) -> None:
        self._latest, self._has_failed = play, False
        self._waits, self._sent = play.waits, time.monotonic()
        if not self._waits:
            self.forget(_WAITING)
        self.send(play, keep=_WAITING if self._waits else _PLAYING)

    def beat(self, number: int) -> float | None:
        """The beat on which the program with this number enters, if it waits for one, and if the process has said which
        one."""
        figures = self.latest
        return figures.beat if figures is not None and figures.program == number else None

    def ahead(self, now: float) -> float:
        """See `Sound.ahead`."""
        if not self.is_used:
            return 0.0
        block, figures = self.options.frames / self.options.rate, self.latest
        # A device that is far away, such as a wireless one, has been given more. The next block may have begun.
        begun = 0.0 if figures is None else figures.seconds + 2 * block - now
        return max(_IN_HAND * block, begun) + _ON_THE_WAY

    def is_waiting(self, number: int) -> bool:
        """Whether the program with this number waits for its moment."""
        return self._waits and self._latest is not None and self._latest.number == number

    def is_deciding(self, number: int) -> bool:
        """Whether the process is about to say on which beat the program with this number enters."""
        if not self.is_waiting(number) or self.beat(number) is not None:
            return False
        now, figures = time.monotonic(), self.latest
        if self.is_starting:
            self._was_starting = now
        if self.is_starting or (figures is not None and figures.state is not SoundState.LOST):
            return now < self._sent + _TO_LOAD
        # Its first block may come before it has all that was sent to it.
        return now < max(self._sent, self._was_starting) + _STALE

    def entry(self, beats: Beats) -> float | None:
        """The time of the performance from which the latest program plays; None if that is not known yet."""
        latest = self._latest
        if latest is not None and latest.every is not None:
            beat = self.beat(latest.number)
            return None if beat is None else beats.time_of(beat)
        return 0.0 if latest is None or latest.at is None else latest.at

    def change(self, setup: Setup) -> None:
        """Uses another setup for processes that are started from now on."""
        self._setup = setup
        self.revise(lambda message: replace(message, setup=setup) if isinstance(message, Play) else message)

    def improve(self, codes: Mapping[str, object]) -> None:
        """Uses better code for the sound that plays, by the hashes of the units. Code of pictures is left out."""
        played = () if self._latest is None else self._latest.compiled.units
        own = {unit.hash: codes[unit.hash] for unit in played if unit.hash in codes}
        if own:
            self.send(Better(own), keep="better")

    def follow(self, clock: Clock, restarts: int, values: Mapping[str, float], views: Mapping[str, Floats]) -> None:
        """Sends the process the time and the inputs."""
        for name, view in views.items():
            place = self._views.find(name)
            if place is not None:
                self.rings.views[place, :, :, 0] = view
        now = clock.now()
        if self._waits and self._latest is not None:
            entry = self.entry(clock.tempo.beats)
            if entry is not None and now >= entry:
                self._waits = False
                # A process that replaces this one plays it at once.
                self.keep(replace(self._latest, at=None, every=None), _PLAYING, instead_of=_WAITING)
        read = {name: value for name, value in values.items() if any(name in names for names in self._reads)}
        self.controls.write(now, read, clock.paused, restarts)

    def close_aside(self) -> None:
        """Ends the process in the background, which takes a while."""
        threading.Thread(target=self.close, name="weft-sound-close", daemon=True).start()


def _sounding_key(play: Play) -> tuple[object, ...]:
    """Everything that determines how a program sounds, except the values of its inputs."""
    compiled = play.compiled
    units = [(unit.hash, unit.subgraph) for unit in compiled.units]
    own = compiled.file, dict(compiled.settings), compiled.starts, compiled.raw, compiled.heard, units
    return play.setup, dict(play.rows), dict(play.views), dict(play.heard), *own


# The seconds that a picture waits for its sound to be loaded, if that is heard, or is about to be.
_TO_LOAD = 10.0
# The seconds that opening another stream may take.
_TO_OPEN = 15.0
# Seconds after the end of a fade in which computed samples are still heard.
_HEARD = 0.5

# The code of an event: the device cannot be opened while the current stream plays, which then ends first.
_BUSY = "sound-device-busy"


@dataclass
class _HeldStream:
    """A new stream, which holds a program until it is ready. It has time for that `until` a moment of
    `time.monotonic`."""

    stream: Stream
    number: int
    compiled: CompiledProgram
    until: float
    entry: tuple[float, float | None] | None = None
    """The fade with which it enters as soon as it is ready, and on which multiple of beats; None until `Sound.enter` is
    called."""


@dataclass(frozen=True)
class _Leaving:
    """A stream that fades out when the next one enters: from one moment of the performance, as soon as that is known,
    and is silent at another."""

    stream: Stream
    next: Stream
    fade: float
    at: float = math.inf
    silent: float = math.inf

    def timed(self, now: float, beats: Beats) -> _Leaving:
        """The same, with its moments if the next stream has said when it enters. They follow the tempo."""
        entry = self.next.entry(beats) if now < self.at else None
        if entry is None or entry == self.at:
            return self
        self.stream.fall_silent(self.fade, entry)
        return replace(self, at=entry, silent=max(now, entry) + self.fade + _HEARD)


class Sound:
    """Plays the streaming parts of a session's programs in a separate process, which is started with the first program
    that needs it. Another rate, or more channels, need another stream, which is opened while the current one continues.
    For the thread that draws, except `getter`, which any thread may call."""

    def __init__(self, setup: Setup, options: SoundOptions) -> None:
        """`setup` says how programs are run."""
        self._setup = setup
        self._stream = Stream(setup, options)
        self._heard = self._stream
        """The stream that is audible, which is the previous one until the latest takes over."""
        self._opening: _HeldStream | None = None
        self._leaving: list[_Leaving] = []
        self._pending: list[SoundEvent] = []
        self._last: Mapping[str, float] = {}
        self._now = 0.0
        self._restarts = 0
        self._count = 0

    @property
    def options(self) -> SoundOptions:
        return self._heard.options

    def getter(self, ref: StrandRef) -> Getter:
        """The getter of a strand that was played; see `Recent.getter`."""

        def read(seconds: Value) -> Value:
            # It is looked up each time, since another stream has other rings.
            return self._heard.getter(ref)(seconds)

        return read

    def listen(self, heard: HeardName) -> LivePicture:
        """The picture of what an analysis hears."""

        def find(heard: HeardName) -> HeardMemory | None:
            # It is looked up each time, as for `getter`.
            return self._heard.heard(heard)

        return HeardPicture(heard, find)

    # --- programs -------------------------------------------------------------------------------------------------

    def expect(self) -> None:
        """Starts the process, because a program with sound is about to come."""
        if not self._stream.options.is_silent:
            self._stream.start()

    def prepare(self, compiled: CompiledProgram, given: Mapping[str, float]) -> bool:
        """Opens another stream if a program needs one, and returns whether it does. Then the program has to wait until
        `is_ready`. Raises WeftError for a program that reads more than there is room for."""
        self._give_up_opening()
        if not self._stream.is_used or self._fits(compiled):
            return False
        self._open(compiled, given)
        return True

    def is_ready(self) -> bool:
        """Whether the program that was prepared last can enter. Raises WeftError if its stream cannot be opened."""
        opening = self._opening
        if opening is None:
            return True
        # If the current stream has no device either, there is nothing to lose.
        has_device = self._stream.figures.state in {SoundState.PLAYING, SoundState.PAUSED}
        for event in opening.stream.events():
            is_final = event.kind == "failure" or (has_device and event.code != _BUSY)
            if event.kind in {"failure", "lost", "died"} and is_final:
                self._give_up_opening()
                raise error(event.code, f"the sound cannot be played: {event.words}")
        if time.monotonic() > opening.until:
            self._give_up_opening()
            raise error("sound-device-failed", "the sound cannot be played: its device does not answer")
        return opening.stream.is_ready

    def enter(
        self, compiled: CompiledProgram, fade: float, given: Mapping[str, float], every: float | None = None,
        again: bool = False,
    ) -> int:
        """Plays a program on the next multiple of `every` beats (None: at once), with a cross-fade of `fade` seconds.
        Its inputs are as `given` at first. A sound that plays already continues, unless it is to begin `again`. Returns
        the number by which events refer to it. Raises WeftError for a program that reads more than there is room
        for."""
        if self._opening is not None and self._opening.compiled is compiled:
            self._opening.entry = (fade, every)
            number = self._opening.number
            self._let_in()
            return number
        sounding = compiled.streaming.units
        if self._stream.options.is_silent:
            # Only pictures and numbers read sounds.
            sounding = tuple(unit for unit in sounding if unit.subgraph.exposes)
        if not (self._stream.is_used or sounding):
            return 0
        if self._fits(compiled):
            self._count += 1
            first = self._first(compiled, given)
            return self._stream.play(self._count, compiled.streaming, fade, first, every, held=False, again=again)
        if self._stream.is_used:
            self._give_up_opening()
            self._open(compiled, given).entry = (fade, every)
        else:
            self._stream.adapt_to(*self._needs(compiled))
            return self.enter(compiled, fade, given, every, again)
        return self._count

    def beat(self, number: int) -> float | None:
        """The beat on which the sound with this number enters, once that is known. The sound process chooses it when it
        has loaded the program, since it alone knows which beats are still to be computed."""
        return self._stream.beat(number)

    def is_waiting(self, number: int) -> bool:
        """Whether the sound with this number waits for a beat."""
        return self._stream.is_waiting(number)

    def is_deciding(self, number: int) -> bool:
        """Whether the sound with this number waits for a beat, and the sound process is about to say for which. A
        process that has gone, or hangs, is not waited for."""
        return self._stream.is_deciding(number)

    def change(self, setup: Setup) -> None:
        """Uses another setup for processes that are started from now on. A running process notices it, and reports
        it."""
        self._setup = setup
        for stream in self._streams():
            stream.change(setup)

    def improve(self, codes: Mapping[str, object]) -> None:
        """Uses better code for the sound that plays, by the hashes of the units."""
        for stream in self._streams():
            stream.improve(codes)

    def _needs(self, compiled: CompiledProgram) -> tuple[int, int]:
        """The rate and the channels of a stream for a program, with at least as many channels as now."""
        return round(compiled.settings["rate"]), max(channels_of(compiled), self._stream.options.channels)

    def _fits(self, compiled: CompiledProgram) -> bool:
        """Whether the current stream can play a program."""
        return self._needs(compiled) == (self._stream.options.rate, self._stream.options.channels)

    def _open(self, compiled: CompiledProgram, given: Mapping[str, float]) -> _HeldStream:
        rate, channels = self._needs(compiled)
        stream = Stream(self._setup, replace(self._stream.options, rate=rate, channels=channels))
        self._count += 1
        try:
            stream.play(self._count, compiled.streaming, 0.0, self._first(compiled, given), None, held=True)
        except WeftError:
            stream.close()
            raise
        self._opening = _HeldStream(stream, self._count, compiled, time.monotonic() + _TO_OPEN)
        return self._opening

    def _give_up_opening(self) -> None:
        if self._opening is not None:
            self._opening.stream.close_aside()
            self._opening = None

    def _let_in(self) -> None:
        """Lets the new stream take over, if it is ready and its program has entered."""
        opening = self._opening
        if opening is None or opening.entry is None:
            return
        try:
            if not self.is_ready():
                return
        except WeftError as failure:
            reason = failure.diagnostics[0]
            self._pending.append(SoundEvent("failure", reason.code, reason.message))
            return
        fade, every = opening.entry
        opening.stream.release(fade, every)
        self._leaving.append(_Leaving(self._stream, opening.stream, fade))
        self._stream, self._opening = opening.stream, None

    def _first(self, compiled: CompiledProgram, given: Mapping[str, float]) -> dict[str, float]:
        """The first inputs of a program: those of the last frame, without inputs that are its own."""
        own = {name: given[name] for name in compiled.starts if name in given}
        return {**given, **self._last, **own}

    # --- frames ---------------------------------------------------------------------------------------------------

    def restart(self) -> None:
        """Restarts the performance at 0."""
        self._restarts += 1

    def follow(self, clock: Clock, values: Mapping[str, float], views: Mapping[str, Floats]) -> None:
        """Once a frame: sends the process the time and the inputs, and lets the clock follow the audible sound. `views`
        are those of `ProgramRunner.view_values`."""
        if not self._stream.is_used:
            return
        now = clock.now()
        if now < self._now:
            # After a restart, streams that were going to leave later leave now.
            self._leaving = [replace(leaving, at=now, silent=now) for leaving in self._leaving]
        self._now, self._last = now, values
        self._let_in()
        for stream in (self._stream, *(leaving.stream for leaving in self._leaving)):
            stream.follow(clock, self._restarts, values, views)
        self._leaving = [leaving.timed(now, clock.tempo.beats) for leaving in self._leaving]
        if all(now >= leaving.at for leaving in self._leaving):
            self._heard = self._stream
        for leaving in self._leaving:
            if now >= leaving.silent:
                leaving.stream.close_aside()
        self._leaving = [leaving for leaving in self._leaving if now < leaving.silent]
        heard = self._heard.seconds()
        if heard is not None:
            clock.follow(heard)

    def inform(self, clock: Clock, values: Mapping[str, float]) -> None:
        """Sends some inputs before the others of the next frame."""
        if not self._stream.is_used:
            return
        self._last = {**self._last, **values}
        for stream in (self._stream, *(leaving.stream for leaving in self._leaving)):
            stream.follow(clock, self._restarts, values, {})

    def events(self) -> list[SoundEvent]:
        """The events since the last call."""
        pending, self._pending = self._pending, []
        return [*pending, *self._stream.events()]

    @property
    def audible(self) -> Stream | None:
        """The stream that is audible; None if nothing was played, or if nothing is to be played."""
        return self._heard if self._heard.is_used and not self._heard.options.is_silent else None

    @property
    def is_starting(self) -> bool:
        """Whether the first program is not audible yet; False as soon as it is known that there is no device."""
        return self._stream.is_used and not self._stream.is_ready

    def ahead(self, now: float) -> float:
        """The number of seconds from `now` on that cannot be changed any more, because they are computed, or will be
        before the sound process learns of another tempo."""
        return max(self._stream.ahead(now), self._heard.ahead(now))

    @property
    def changed(self) -> tuple[float, float] | None:
        """The beats until the last change of the tempo, and its time, as it is heard; None if that is not known."""
        figures = self._heard.latest if self._heard.is_used else None
        if figures is None or figures.restarts != self._restarts:
            return None
        return figures.beats_then, figures.beats_start

    @property
    def figures(self) -> Figures | None:
        """Figures about the latest block; None if nothing was played."""
        figures = self._heard.figures if self._heard.is_used else None
        return figures if figures is not None and figures.blocks else None

    def _streams(self) -> list[Stream]:
        """The streams that play or are about to."""
        opening = [self._opening.stream] if self._opening is not None else []
        return [self._stream, *opening] if self._stream.is_used else []

    def close(self) -> None:
        """Ends all processes. May be called twice."""
        self._give_up_opening()
        for leaving in self._leaving:
            leaving.stream.close()
        self._stream.close()
