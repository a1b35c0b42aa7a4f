"""What the player saves: watched, compiled aside, and handed over when it is ready."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from weft.child import Child
from weft.runtime.compiling.compiler import Compiler, Saved
from weft.runtime.compiling.trial import Moment
from weft.runtime.compiling.worker import CompileWorker, Improvement, Outcome, load
from weft.runtime.events import EventLog
from weft.runtime.files import FileState, read_text
from weft.runtime.program import Swap
from weft.runtime.setup import Setup
from weft.runtime.watcher import Watcher

# Seconds for which the room for a picture has to stay the same before the picture is made anew for it.
_SETTLED = 0.1


class Saves:
    """The file of a performance, from its saves to programs that are ready to play. After `expect`, it has to be
    closed."""

    def __init__(
        self,
        path: Path,
        compiler: Compiler,
        events: EventLog,
        running: Callable[[], Swap | None],
        moment: Callable[[], Moment],
        wake: Callable[[], None],
        fits: bool,
    ) -> None:
        """`running`, `moment` and `wake` are called from another thread; see `CompileWorker`. If it `fits`, a picture
        is made no larger than the room that it has."""
        self._path = path
        self._compiler = compiler
        self._events = events
        self._running = running
        self._moment = moment
        self._wake = wake
        self._fits = fits
        self._lock = threading.Lock()
        self._saved = Saved(b"", 0.0)
        self._playing = b""
        """The text of the program that plays."""
        self._asked: tuple[int, int] | None = None
        self._asked_at = 0.0
        self._worker: CompileWorker | None = None
        self._files: Mapping[Path, FileState] = {}
        self._watcher: Watcher | None = None
        self._resources = ExitStack()

    def expect(self, ahead: Child | None = None) -> CompileWorker:
        """Has those who compile get ready. For `ahead` see `CompileProcess`."""
        if self._worker is None:
            compiler = self._compiler
            self._worker = CompileWorker(
                compiler.setup, compiler.stage, self._running, self._moment, self._wake, ahead
            )  # fmt: skip
            self._resources.callback(self._worker.close)
        return self._worker

    def begin(self, room: tuple[int, int] | None) -> Outcome | None:
        """Has the file compiled as it is now, and with each save from now on, for a screen with so much room; what
        becomes of it is there for `take`. Of a file that cannot be read, it is said at once."""
        state = read_text(self._path)
        saved = Saved(state.data or b"", time.monotonic(), state.problem, room if self._fits else None, is_first=True)
        if saved.problem:
            self._saved = saved
            return load(saved, self._compiler.compile(saved), self._compiler.stage, None)
        worker = self.expect()
        with self._lock:
            self._saved = saved
            worker.submit(saved)
        self._watch(saved, {})
        return None

    def close(self) -> None:
        """Ends all that goes on here, whatever it is at. May be called twice."""
        self._resources.close()

    def _changed(self, changes: Mapping[Path, FileState]) -> None:
        """Called by the watcher's thread. A change of an included file or a picture compiles the patch again."""
        moment = time.monotonic()
        state = changes.get(self._path)
        if state is None:
            state = read_text(self._path)
        with self._lock:
            is_first = self._running() is None
            self._saved = Saved(state.data or b"", moment, state.problem, self._saved.room, is_first)
            self._events.emit("saved", hash=self._saved.hash)
            self.expect().submit(self._saved)

    def follow(self, room: tuple[int, int] | None) -> None:
        """Has the picture made anew when the room for it has become another and stays so."""
        now = time.monotonic()
        if room != self._asked:
            self._asked, self._asked_at = room, now
        if not self._fits or now - self._asked_at < _SETTLED:
            return
        with self._lock:
            if room == self._saved.room:
                return
            self._saved = replace(self._saved, moment=now, room=room)
            # A text that was refused waits for its mending.
            if self._saved.data == self._playing:
                self.expect().submit(self._saved)

    def take(self) -> list[Outcome]:
        """What has been finished since this was asked last, oldest first."""
        return self._worker.take() if self._worker is not None else []

    def improve(self, outcome: Outcome) -> None:
        """Has better code made for a program that plays."""
        if outcome.swap is not None:
            self.expect().improve(outcome.saved.hash, outcome.swap)

    def change(self, setup: Setup) -> None:
        """Has what is compiled from now on run elsewhere."""
        self.expect().change(setup)

    def improvements(self) -> list[Improvement]:
        """What has been improved since this was asked last."""
        return self._worker.improvements() if self._worker is not None else []

    def told(self) -> list[str]:
        """What has become of the process that compiles, since this was asked last."""
        return self._worker.told() if self._worker is not None else []

    def waiting(self) -> tuple[Saved, str] | None:
        """The text that has waited for its program for longest, and what it waits for; None if there is none."""
        worker = self._worker
        saved = worker.waited_for if worker is not None else None
        if worker is None or saved is None:
            return None
        return saved, (
            "the compiler is still starting" if worker.is_starting
            else f"{self._path.name} is still being compiled; another save takes its place"
        )  # fmt: skip

    def answered(self, outcome: Outcome) -> None:
        """Watches all that a text names, as it was compiled; of a refused text too, whose mistake may be in there."""
        if outcome.swap is not None:
            self._playing = outcome.saved.data
        self._files = outcome.files if outcome.swap is not None else {**self._files, **outcome.files}
        self._watch(outcome.saved, self._files)

    def _watch(self, saved: Saved, files: Mapping[Path, FileState]) -> None:
        known = FileState("text", saved.data, problem=saved.problem)
        if self._watcher is None:
            self._watcher = self._resources.enter_context(Watcher(self._changed))
        self._watcher.watch({self._path: known, **files})

    @property
    def last(self) -> Saved:
        """The text as it was saved last."""
        return self._saved
