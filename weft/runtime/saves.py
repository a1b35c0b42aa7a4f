"""What the player saves: watched, compiled aside, and handed over when it is ready."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from weft.runtime.compiling.compiler import Compiler, Made, Saved
from weft.runtime.compiling.trial import NOT_A_NUMBER, Moment, mistakes
from weft.runtime.compiling.worker import CompileWorker, Improvement, Outcome, load
from weft.runtime.events import EventLog
from weft.runtime.files import FileState, read_text
from weft.runtime.program import Swap
from weft.runtime.setup import Setup
from weft.runtime.watcher import Watcher

# Seconds for which the room for a picture has to stay the same before the picture is made anew for it.
_SETTLED = 0.1


class Saves:
    """The file of a performance, from its saves to programs that are ready to play. All but `begin` is for the time
    between `__enter__` and `__exit__`."""

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
        self._first: tuple[Saved, Made] | None = None
        self._files: Mapping[Path, FileState] = {}
        self._resources = ExitStack()

    def begin(self, room: tuple[int, int] | None) -> Outcome:
        """Compiles and tries out the file as it is now, in this thread, for a screen with so much room."""
        state = read_text(self._path)
        self._saved = Saved(state.data or b"", time.monotonic(), state.problem, room if self._fits else None)
        made = self._compiler.compile(self._saved)
        outcome = load(self._saved, made, self._compiler.stage, None)
        if made.playable is None or outcome.swap is None:
            return outcome
        found = mistakes(made.playable, self._compiler.stage, Moment(), made.places)
        # There is nothing else to play, and what is no number at the first moment may become one.
        mild = (d for d in found if d.code == NOT_A_NUMBER or d.severity == "warning")
        warnings = tuple(replace(d, severity="warning") for d in mild)
        if len(warnings) < len(found):
            return replace(outcome, swap=None, diagnostics=found)
        if not found:
            self._first = self._saved, made
        return replace(outcome, diagnostics=(*outcome.diagnostics, *warnings))

    def __enter__(self) -> Saves:
        compiler = self._compiler
        self._worker = CompileWorker(compiler.setup, compiler.stage, self._running, self._moment, self._wake)
        self._resources.callback(self._worker.close)
        if self._first is not None:
            self._worker.remember(*self._first)
            self._first = None
        self._watcher = self._resources.enter_context(Watcher(self._changed))
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def _changed(self, changes: Mapping[Path, FileState]) -> None:
        """Called by the watcher's thread. A change of an included file or a picture compiles the patch again."""
        moment = time.monotonic()
        state = changes.get(self._path)
        if state is None:
            state = read_text(self._path)
        with self._lock:
            self._saved = Saved(state.data or b"", moment, state.problem, self._saved.room)
            self._events.emit("saved", hash=self._saved.hash)
            self._worker.submit(self._saved)

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
                self._worker.submit(self._saved)

    def take(self) -> list[Outcome]:
        """What has been finished since this was asked last, oldest first."""
        return self._worker.take()

    def improve(self, outcome: Outcome) -> None:
        """Has better code made for a program that plays."""
        if outcome.swap is not None:
            self._worker.improve(outcome.saved.hash, outcome.swap)

    def change(self, setup: Setup) -> None:
        """Has what is compiled from now on run elsewhere."""
        self._worker.change(setup)

    def improvements(self) -> list[Improvement]:
        """What has been improved since this was asked last."""
        return self._worker.improvements()

    def answered(self, outcome: Outcome) -> None:
        """Watches all that a text names, as it was compiled; of a refused text too, whose mistake may be in there."""
        if outcome.swap is not None:
            self._playing = outcome.saved.data
        self._files = outcome.files if outcome.swap is not None else {**self._files, **outcome.files}
        known = FileState("text", outcome.saved.data, problem=outcome.saved.problem)
        self._watcher.watch({self._path: known, **self._files})

    @property
    def last(self) -> Saved:
        """The text as it was saved last."""
        return self._saved
