"""The sound process: it owns the stream to the device, and plays until the player's process is gone."""

from __future__ import annotations

import gc
import importlib
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection

import numpy as np
from numpy.typing import NDArray

from weft.backends.hardware import NICER
from weft.child import BEAT, Pulse
from weft.errors import Diagnostic, WeftError, fault
from weft.platform import system
from weft.runtime.program.parcels import Parcel, Unpacker
from weft.runtime.sound.device import Devices, Fill, OutputStream, SoundDevice, chosen, folded, routed
from weft.runtime.sound.microphone import Microphones
from weft.runtime.sound.renderer import (
    PIECES_KNOWN, BeatFigures, Kind, ProgramFailure, Renderer, RendererFactory, SoundEvent, SoundOptions
)
from weft.runtime.sound.shared import Controls, Figures, FiguresMemory, Rings, SoundState, SoundTape, inherited
from weft.runtime.stderr import suppress_stderr

# --- sound without a device, for pictures and numbers that read it ------------------------------------------------

# A thread that was delayed for more seconds than this does not catch up.
_LONGEST_STALL = 0.5


class NullAudioDevice:
    """A thread that takes blocks at the pace of a device."""

    def __init__(self, rate: int, channels: int, frames: int, fill: Fill, restart: Callable[[], None]) -> None:
        """That thread calls `restart` before a block that does not directly follow the previous one in time."""
        self._block = np.zeros((frames, channels), np.float32)
        self._seconds = frames / rate
        self._fill = fill
        self._restart = restart
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="weft-unheard", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread after the current block."""
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._ending.wait(max(0.0, due - time.monotonic())):
            if time.monotonic() - due > _LONGEST_STALL:
                self._restart()
                due = time.monotonic()
            self._fill(self._block, 0.0, False, 0.0)
            due += self._seconds


# --- blocks of sound ----------------------------------------------------------------------------------------------

# Seconds in which sound fades at a pause, so that it does not click.
_RAMP = 0.005
# The weight of a new block's moment: blocks begin in bursts, but are heard evenly.
_NEW = 0.02
# A moment that is off by more seconds than this indicates a gap, and is believed at once.
_GAP = 0.1
# A block that comes later than the one before lasts, by this many seconds, follows an interruption of the sound.
# Devices that take several blocks at a time are never that late.
_INTERRUPTED = 0.3


class Blocks:
    """Fills blocks, and places them in the performance with its pauses and restarts. Made, begun and ended by the main
    thread; `fill` is for the thread of the sound device.

    The first sample of a stream is at the time that the player's clock will show when it is heard, so that a stream may
    start in the middle of a performance; so is the first one after an interruption. From then on samples are counted:
    sample n of the performance is at n / rate seconds.
    """

    def __init__(
        self, options: SoundOptions, controls: Controls, memory: FiguresMemory, tape: SoundTape, renderer: Renderer
    ) -> None:
        """The counts in the `memory` are continued, and so is the tape."""
        self._rate = options.rate
        self._controls = controls
        self._renderer = renderer
        self._memory = memory
        before = memory.read()
        self.count, self._underruns, self._late = before.blocks, before.underruns, before.late
        self._load = _Load()
        # A fade is not longer than a block, which would cut it off with a click.
        steps = min(round(_RAMP * options.rate), options.frames)
        self._ramp = np.linspace(0, 1, steps, endpoint=False, dtype=np.float32)[:, np.newaxis]
        self._beats = BeatFigures()
        self._has_failed = False
        self.failure: Exception | None = None
        """The failure of the renderer, for `what_failed`, until it is reported."""
        self._figures = before
        self._tape = tape
        self._taped = before.taped + options.frames * bool(before.blocks)
        """The number of the next sample on the tape."""
        self._due = before.heard + options.frames / options.rate if before.blocks else None
        """The time at which that sample is heard if nothing interrupts the sound."""
        self.begin()
        memory.write(before._replace(state=SoundState.STARTING))

    def begin(self, is_heard: bool = True) -> None:
        """Prepares for a stream that is about to start and has no place yet, or for blocks that are not heard."""
        self._is_heard = is_heard
        self.sample: int | None = None
        """The number of the next sample, once the stream has its place in the performance: from its first block on."""
        self._restarts = 0
        self._sounds = False
        self.is_leaving = False
        """Whether the sound fades out, until `begin`."""
        self._heard = _SmoothedClock()

    def lose(self) -> None:
        """Records that there is no stream any more."""
        self._memory.write(self._figures._replace(state=SoundState.LOST, load=0.0))

    def reset_failure(self) -> None:
        """Lets the renderer fail again, because it has another program to play."""
        self._has_failed = False

    def fill(self, block: NDArray[np.float32], latency: float, underflow: bool, waited: float) -> None:
        """Fills a block, [frames, channels]. The device asked for it `waited` seconds ago, to be heard `latency`
        seconds later. Never raises."""
        began = time.monotonic()
        heard = began - waited + latency
        self.count += 1
        # Samples that are missing in silence do not count.
        self._underruns += underflow and self._sounds
        self._controls.refresh()
        if not self._controls.known:
            block[:] = 0
            return
        sample = self._place(heard)
        state = self._play(block, sample)
        if state is SoundState.PLAYING:
            heard = self._heard.at(sample / self._rate, heard)
        if not self._is_heard:
            state = SoundState.LOST
        taped = self._record(block, began - waited + latency)
        took, lasts = time.monotonic() - began, len(block) / self._rate
        self._load.add(took, lasts)
        # The device still has at least one more block.
        self._late += waited + took > lasts
        self._figures = Figures(
            sample, sample / self._rate, began, latency, heard, self.count, self._underruns, self._load.share, state,
            self._restarts, self._late, taped, math.sqrt(max(0.0, float(np.vdot(block, block))) / block.size),
            *self._beats,
        )  # fmt: skip
        self._memory.write(self._figures)

    def _record(self, block: NDArray[np.float32], heard: float) -> int:
        """Writes a block that is heard at that moment to the tape, after the silence since the block before. Returns
        the number of its first sample there."""
        late = 0.0 if self._due is None else heard - self._due
        if self._due is None or abs(late) > _INTERRUPTED:
            missing = max(0, round(late * self._rate))
            self._tape.silence(self._taped, missing)
            self._taped, self._due, late = self._taped + missing, heard, 0.0
        first = self._taped
        self._tape.write(first, block)
        self._taped += len(block)
        self._due += late * _NEW + len(block) / self._rate
        return first

    def _place(self, heard: float) -> int:
        """The number of the block's first sample, which is heard at that moment."""
        controls = self._controls
        if self._was_interrupted(heard) and self.sample is not None:
            # It would be late until the player's clock has waited for it, up to a minute.
            self._sounds = False
            self._heard = _SmoothedClock()
            if controls.restarts == self._restarts:
                self.sample = max(self.sample, round(controls.now(heard) * self._rate))
        if self.sample is None:
            self._restarts = controls.restarts
            self.sample = max(0, round(controls.now(heard) * self._rate))
        elif controls.restarts != self._restarts and not self._sounds:
            # The sound before has faded out. The performance starts again with its first sample.
            self._restarts = controls.restarts
            self.sample = 0
        return self.sample

    def _was_interrupted(self, heard: float) -> bool:
        """Whether a block that is heard at that moment comes much later than the end of the one before. What is not
        heard catches up by itself."""
        return self._is_heard and self._due is not None and heard - self._due > _INTERRUPTED

    def _play(self, block: NDArray[np.float32], sample: int) -> SoundState:
        controls = self._controls
        ends = controls.paused or self.is_leaving or controls.restarts != self._restarts
        if ends and not self._sounds:
            block[:] = 0
            self._heard = _SmoothedClock()
            return SoundState.PAUSED
        try:
            self._beats = self._renderer.render(block, sample / self._rate) or self._beats
        except Exception as failure:
            block[:] = 0
            if not self._has_failed:
                self._has_failed = True
                self.failure = failure
        # A performance begins without a fade, which would soften a drum on the first beat.
        if not self._sounds and sample > 0:
            self._fade(block)
        if ends:
            self._fade(block[::-1])
        self._sounds = not ends
        self.sample = sample + len(block)
        return SoundState.PLAYING

    def _fade(self, block: NDArray[np.float32]) -> None:
        """Fades the beginning of a block in."""
        ramp = self._ramp[: len(block)]
        block[: len(ramp)] *= ramp


def what_failed(failure: BaseException) -> Diagnostic:
    """The diagnostic for a renderer that fails, or cannot be made."""
    if isinstance(failure, ProgramFailure) and failure.__cause__ is not None:
        return what_failed(failure.__cause__)
    return failure.diagnostics[0] if isinstance(failure, WeftError) else fault("the sound fails", failure)


class _SmoothedClock:
    """The moments at which blocks are heard, smoothed."""

    def __init__(self) -> None:
        self._count = 0
        self._offset = 0.0

    def at(self, seconds: float, moment: float) -> float:
        """When the block at `seconds` of the performance is heard; `moment` is an inexact estimate."""
        error = moment - seconds - self._offset
        self._count = 1 if abs(error) > _GAP else self._count + 1
        self._offset += error * max(1 / self._count, _NEW)
        return seconds + self._offset


class _Load:
    """The share of the time that rendering takes, over a second."""

    def __init__(self) -> None:
        self.share = 0.0
        self._busy = self._passed = 0.0

    def add(self, busy: float, passed: float) -> None:
        self._busy += busy
        self._passed += passed
        if self._passed >= 1:
            self.share = self._busy / self._passed
            self._busy = self._passed = 0.0


# --- the main thread ----------------------------------------------------------------------------------------------

# The longest wait of the sound device's thread for Python's lock, in seconds. While a program is loaded, it waits a
# dozen times in each block.
_SWITCH_SECONDS = 0.00005
# Seconds between checks of the stream, without a block before it counts as lost, and between tries to open one.
_GLANCE = 0.05
_STALLED = 1.0
_AGAIN = 1.0
# The seconds from a message until garbage is collected among new objects, and the number of times after which it is
# collected among all. A full collection takes milliseconds, for which blocks wait, since backends keep what they have
# loaded lately.
_UNTIL_COLLECTED = 1.0
_TIMES_UNTIL_ALL = 16
# Whole seconds that a device may take to open and to close.
_TO_OPEN = 10
_TO_CLOSE = 2
# Seconds that a program may take to load.
_TO_TAKE = 10.0
# Seconds of waiting for the first block of a stream, and between checks for it.
_TO_PLACE, _STEP = 0.3, 0.002
# At the end: the blocks in which sound fades out, and the most seconds for that.
_LAST_BLOCKS = 2
_LEAVE = 0.3
# Priorities just above ordinary work.
_NICER = -10
_URGENCY, _URGENCY_OF_OTHERS = 5, 2


def main(descriptor: str, lifeline: str, *arguments: str) -> None:
    """Serves the socket with this descriptor. The first message is the `SoundOptions`, which may come late; meanwhile
    the renderer is imported, which is the last of the `arguments`. The others are the descriptors of the controls, the
    figures, the rings and the tape. For the `lifeline` see `Child`."""
    *memories, renderer = arguments
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    player, pulse = Connection(int(descriptor)), Pulse(int(lifeline))
    # PortAudio and ALSA print to stderr at any time.
    with suppress_stderr(), suppress(EOFError, OSError):
        try:
            with suppress(Exception):  # the server reports it
                _factory(renderer)
            while not player.poll(BEAT):
                pulse.beat()
            SoundServer(player, pulse, player.recv(), memories).serve()
        except (EOFError, OSError):
            raise
        except Exception as failure:
            player.send(_event("failure", fault("the sound process fails", failure)))
    # At once: an ordinary exit could wait for PortAudio's thread.
    os._exit(0)


def _factory(renderer: str) -> RendererFactory:
    module, _, name = renderer.partition(":")
    found: RendererFactory = getattr(importlib.import_module(module), name)
    return found


class SoundServer:
    """The main thread of the sound process."""

    def __init__(self, player: Connection, pulse: Pulse, options: SoundOptions, memories: Sequence[str]) -> None:
        self._player = player
        self._unpacker = Unpacker(PIECES_KNOWN)
        self._pulse = pulse
        self._options = options
        sizes = Controls.SIZE, FiguresMemory.SIZE, Rings.SIZE, SoundTape.SIZE
        controls, figures, rings, tape = (
            inherited(int(memory), size) for memory, size in zip(memories, sizes, strict=True)
        )
        given = Controls(controls)
        self._microphones = Microphones(options.rate, options.frames, options.is_deaf)
        try:
            self._renderer = _factory(options.renderer)(options, given, Rings(rings), self._microphones)
        except Exception as failure:
            self._send_failure(failure)
            self._renderer = _Silence()
        self._blocks = Blocks(options, given, FiguresMemory(figures), SoundTape(tape), self._renderer)
        self._devices: Devices | None = None
        self._stream: OutputStream | None = None
        self._null_device: NullAudioDevice | None = None
        self._tried = -_AGAIN
        self._is_lost = False
        self._progress = (0, 0.0)
        self._updated = 0.0

    def serve(self) -> None:
        """Plays until the socket is closed, which raises EOFError or OSError."""
        _prefer_this_process()
        try:
            # The first program may take a while to load: it is loaded before the device needs blocks.
            while self._player.poll():
                self._take(self._player.recv())
            # The current objects will stay. Garbage collection delays blocks, and the first frames after a message.
            gc.freeze()
            gc.disable()
            self._update()
            self._player.send(SoundEvent("ready", "", ""))
            taken: float | None = None
            times = 0
            while True:
                self._pulse.beat()
                self._update()
                if self._player.poll(_GLANCE):
                    self._take(self._player.recv())
                    taken = taken or time.monotonic()
                elif taken is not None and time.monotonic() > taken + _UNTIL_COLLECTED:
                    times += 1
                    gc.collect(1 if times % _TIMES_UNTIL_ALL else 2)
                    taken = None
        finally:
            if self._stream is not None:
                self._blocks.is_leaving = True
                blocks = _LAST_BLOCKS * self._options.frames / self._options.rate
                time.sleep(min(self._stream.latency + blocks, _LEAVE))

    def _take(self, message: object) -> None:
        # Loading may wait, for example for a driver. The sound continues meanwhile.
        self._pulse.allow(_TO_TAKE)
        if isinstance(message, Parcel):
            message = self._unpacker.unpack(message)
        try:
            self._renderer.take(message)
        except Exception as failure:
            self._send_failure(failure)
        self._pulse.beat()
        self._blocks.reset_failure()

    def _send_failure(self, failure: Exception) -> None:
        number = failure.number if isinstance(failure, ProgramFailure) else 0
        self._player.send(_event("failure", what_failed(failure), number))

    # --- the stream -----------------------------------------------------------------------------------------------

    def _update(self) -> None:
        failure, self._blocks.failure = self._blocks.failure, None
        if failure is not None:
            self._send_failure(failure)
        for event in self._renderer.news():
            self._player.send(event)
        for words in self._microphones.update(self._opened_devices):
            self._player.send(SoundEvent("microphone", "", words))
        now = time.monotonic()
        if self._options.is_silent:
            self._open_null_device()
        elif self._stream is None:
            if now - self._tried >= _AGAIN:
                self._open()
                self._tried = time.monotonic()
        else:
            # Where this thread has not run, that of the device may not have run either.
            stood_still = now - self._updated > _STALLED / 2
            if self._blocks.count != self._progress[0] or stood_still:
                self._progress = (self._blocks.count, now)
            if not self._stream.is_active or now - self._progress[1] >= _STALLED:
                words = f'the sound device "{self._stream.device.name}" does not answer any more'
                self._lose(Diagnostic.of("sound-device-lost", words))
        self._updated = now

    def _opened_devices(self) -> Devices:
        """The devices, for another stream. Raises WeftError."""
        with self._patience(_TO_OPEN), _urgently():
            self._devices = self._devices or Devices()
        return self._devices

    def _open(self) -> None:
        options = self._options
        try:
            with self._patience(_TO_OPEN):
                self._microphones.close()
                if self._devices is not None:
                    self._devices.close()
                if self._is_lost:
                    _look_for(options.device)
            with self._patience(_TO_OPEN), _urgently():
                self._devices = Devices()
                device = chosen(self._devices.listed("Output"), options.device)
                channels, fill = self._outputs(device)
                self._stream = self._devices.open_output(device, options.rate, channels, options.frames, fill)
                if self._null_device is not None:
                    self._null_device.close()
                    self._null_device = None
                self._blocks.begin()
                self._stream.start()
                # The clock of the performance can run as soon as the player knows that there is sound.
                until = time.monotonic() + _TO_PLACE
                while self._blocks.sample is None and time.monotonic() < until:
                    time.sleep(_STEP)
        except WeftError as failure:
            self._lose(failure.diagnostics[0])
            return
        self._progress = (self._blocks.count, time.monotonic())
        self._is_lost = False
        self._player.send(SoundEvent("playing", "", device.name))

    def _outputs(self, device: SoundDevice) -> tuple[int, Fill]:
        """The number of outputs of a device that are opened, and what fills them."""
        options = self._options
        places = options.places[: options.channels]
        if not places:
            channels = min(options.channels, device.channels)
            return channels, folded(self._blocks.fill, options.channels, channels)
        if missing := [place for place in places if place > device.channels]:
            listed = ", ".join(map(str, missing))
            words = f'"{device.name}" has {device.channels} outputs, so what goes to {listed} is not heard'
            self._player.send(SoundEvent("placed", "", words))
        width = min(max(places), device.channels)
        return width, routed(self._blocks.fill, options.channels, options.places, width)

    @contextmanager
    def _patience(self, seconds: int) -> Iterator[None]:
        """Ends this process, which is then started again, if the block takes longer: a dead sound server may never
        answer its clients. The system's alarm does not depend on Python's lock."""
        self._pulse.allow(seconds + 1.0)
        system.set_alarm(seconds)
        try:
            yield
        finally:
            system.set_alarm(0)
            self._pulse.beat()

    def _lose(self, reason: Diagnostic) -> None:
        """Gives up the device. The reason is reported once, even if opening it fails again and again."""
        if not self._is_lost:
            self._is_lost = True
            self._player.send(_event("lost", reason))
        with self._patience(_TO_CLOSE):
            self._microphones.close()
            if self._stream is not None:
                self._stream.close()
            if self._devices is not None:
                self._devices.close()
        self._stream = self._devices = None
        self._open_null_device()

    def _open_null_device(self) -> None:
        """Continues without a device."""
        if self._null_device is None:
            # From now on, only that thread writes figures.
            self._blocks.lose()
            begin = partial(self._blocks.begin, is_heard=False)
            begin()
            options = self._options
            self._null_device = NullAudioDevice(
                options.rate, options.channels, options.frames, self._blocks.fill, begin
            )  # fmt: skip


class _Silence:
    """The renderer if no other can be made."""

    def render(self, out: NDArray[np.float32], seconds: float) -> None:
        out[:] = 0

    def take(self, message: object) -> None:
        pass

    def news(self) -> list[SoundEvent]:
        return []


def _event(kind: Kind, diagnostic: Diagnostic, number: int = 0) -> SoundEvent:
    hint = f" ({diagnostic.hint})" if diagnostic.hint else ""
    return SoundEvent(kind, diagnostic.code, diagnostic.message + hint, number)


def _prefer_this_process() -> None:
    """Raises the priority of this process, if that is allowed. The thread of the sound device may wait for any thread
    that has Python's lock, so none of them should be delayed."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    system.wait_precisely()
    system.prefer_process(_NICER)
    system.set_urgency(_URGENCY_OF_OTHERS)


def _look_for(device: str | int | None) -> None:
    """Raises WeftError if there is no such device. While there is none, nothing is heard, and looking for one takes
    tens of milliseconds, so the picture comes first."""
    with _calmly():
        devices = Devices()
        try:
            chosen(devices.listed("Output"), device)
        finally:
            devices.close()


def _calmly() -> AbstractContextManager[None]:
    """In the block, other threads run before this one, which has what `_prefer_this_process` gives."""
    return system.calmly(_URGENCY_OF_OTHERS, NICER)


@contextmanager
def _urgently() -> Iterator[None]:
    """Gives threads that are started in the block a higher priority than all others of this process: the thread of the
    sound device, and those of sound servers' clients, must not wait while a program is loaded."""
    system.set_urgency(_URGENCY)
    try:
        yield
    finally:
        system.set_urgency(_URGENCY_OF_OTHERS)
