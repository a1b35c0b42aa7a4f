"""The player's side of the sound process, which is started again when it dies. The performance never waits for it."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection, wait

from weft.child import Child
from weft.errors import Diagnostic, fault
from weft.runtime.sound.messages import Kind, SoundEvent, SoundOptions
from weft.runtime.sound.shared import Controls, ControlsWriter, Figures, FiguresMemory, Rings, SharedMemory, SoundState

# Seconds between two starts, for which figures stay valid, and in which the process has to end.
_AGAIN = 1.0
_STALE = 1.0
_LEAVE = 1.0


class SoundProcess:
    """The process and the memory shared with it. For the thread that draws, unless a method says otherwise; only
    `close` is slow."""

    def __init__(self, options: SoundOptions) -> None:
        self.options = options
        """They may change until the first message is sent."""
        self.is_used = False
        """Whether a message was sent."""
        self.is_ready = False
        """Whether a process has handled its first messages, and has tried to open a device."""
        self._memories = [SharedMemory(size) for size in (Controls.SIZE, FiguresMemory.SIZE, Rings.SIZE)]
        controls, figures, rings = self._memories
        self.controls = ControlsWriter(controls)
        """The time and the inputs, once a frame. Nothing sounds before the first."""
        self.rings = Rings(rings.bytes)
        self._figures = FiguresMemory(figures.bytes)
        self._lock = threading.Lock()
        self._outgoing: deque[tuple[str | None, object]] = deque()
        self._kept: dict[str, object] = {}
        self._events: deque[SoundEvent] = deque()
        self._ending = threading.Event()
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        self._thread = threading.Thread(target=self._run, name="weft-sound", daemon=True)
        self._process: Child | None = None
        self._started = 0.0
        self._has_died = self._is_lost = False
        self._failure: Diagnostic | None = None

    # --- for the thread that draws --------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the process, unless it runs, and again whenever it dies. Until the first message it only prepares
        itself."""
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

    def rename(self, key: str, new: str) -> None:
        """Moves the message that is kept for a key to another key, where it replaces any other."""
        with self._lock:
            if key in self._kept:
                self._kept = {new if k == key else k: message for k, message in self._kept.items() if k != new}

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
    def pid(self) -> int | None:
        """The id of the process; None while there is none."""
        process = self._process
        return process.pid if process is not None else None

    @property
    def figures(self) -> Figures:
        """Figures about the latest block."""
        return self._figures.read()

    def seconds(self) -> float | None:
        """The performance time that is audible now; None while no stream runs, or while it does not know of the last
        restart. Right after a restart it is below 0, until the first sample arrives at the loudspeaker.
        """
        figures, now = self.figures, time.monotonic()
        if figures.moment < max(self._started, now - _STALE) or figures.restarts != self.controls.restarts:
            return None
        if figures.state is SoundState.PAUSED:
            return figures.seconds - figures.latency
        return figures.seconds + (now - figures.heard) if figures.state is SoundState.PLAYING else None

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
        os.close(self._wake)
        os.close(self._woken)

    def _wake_thread(self) -> None:
        with suppress(BlockingIOError):  # the pipe is full, which wakes it as well
            os.write(self._wake, b".")

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
            "weft.runtime.sound.server:main", self.options.renderer, *map(str, descriptors), descriptors=descriptors,
            environment={**os.environ, "JACK_NO_START_SERVER": "1"}, main_thread_works=True,
        )  # fmt: skip
        return self._process.connection

    def _serve(self, connection: Connection) -> None:
        """Passes messages in both directions. Returns at the end of the performance; raises EOFError or OSError when
        the process has died."""
        is_set_up = False
        while not self._ending.is_set():
            if self.is_used and not is_set_up:
                connection.send(self.options)
                is_set_up = True
            self._send_waiting(connection)
            ready = wait([connection, self._woken])
            if self._woken in ready:
                os.read(self._woken, 4096)
            if connection in ready:
                self._receive(connection.recv())

    def _send_waiting(self, connection: Connection) -> None:
        while True:
            with self._lock:
                if not self._outgoing:
                    return
                _, message = self._outgoing.popleft()
            try:
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
            is_stuck = process.returncode == -signal.SIGALRM
            reason = "ended (its device does not answer)" if is_stuck else process.ending
            words = f"the sound process {reason} and is started again"
            self._events.append(SoundEvent("died", "sound-died", words))
        self._has_died = True

    def _kill(self) -> None:
        process = self._process
        if process is not None:
            with suppress(OSError):
                process.kill()
