"""The live session: one loop that draws, takes in saves, and never stops for either.

The loop runs in the main thread. A program is swapped in between two frames; until then, and whatever is wrong with the
text, the last good one goes on.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from weft.backends.base import Env
from weft.errors import Diagnostic, WeftError
from weft.media.pictures import save_picture
from weft.runtime.clock import Clock, Tick
from weft.runtime.compiler import Compiler, Saved
from weft.runtime.coordinator import Result, main_picture
from weft.runtime.events import EventLog, FrameFigures, FrameStats
from weft.runtime.inputs import Inputs
from weft.runtime.notices import Notices
from weft.runtime.program import Stage, Swap
from weft.runtime.screen import Overlay, Picture, Screen
from weft.runtime.trial import Moment
from weft.runtime.watcher import FileState, Watcher, read_text
from weft.runtime.worker import CompileWorker, Outcome, load

# While a program is loaded, the drawing thread gets Python's lock back after this long instead of after 5 ms.
_SWITCH_SECONDS = 0.0005
# Sleeping is exact to about a millisecond; the rest of the wait is left to the display.
_SLEEP_SLACK = 0.001
# No more than these seconds are made up for by hurrying after a frame that was late.
_MADE_UP = 0.1

_NOTHING_YET = "nothing to show yet: mend the file and save it"


@dataclass(frozen=True)
class Limits:
    """When a session ends by itself: after so many seconds or frames."""

    seconds: float | None = None
    frames: int | None = None


@dataclass
class Session:
    """One performance of one file. `tell` shows diagnostics to people; `say` a line of its own. If it `fits`, a picture
    is made no larger than its screen has room for."""

    path: Path
    compiler: Compiler
    events: EventLog
    inputs: Inputs
    tell: Callable[[list[Diagnostic]], None]
    say: Callable[[str], None]
    threads: int = 1
    fits: bool = True
    limits: Limits = field(default_factory=Limits)
    clock: Clock = field(default_factory=Clock)
    notices: Notices = field(default_factory=Notices)
    frames: int = 0
    stopping: str | None = None
    picture: Picture | None = None
    _tick: Tick = field(default_factory=lambda: Tick(0, 0.0, 0.0))
    _running: Swap | None = None
    _previous: Swap | None = None
    _pending: Outcome | None = None
    _files: Mapping[Path, FileState] = field(default_factory=dict)
    _loops_reported: set[str] = field(default_factory=set)
    _compute: list[float] = field(default_factory=list)
    _compile_ms: float = 0.0
    _overlay: Overlay = field(default_factory=Overlay)
    _finished: threading.Event = field(default_factory=threading.Event)

    def begin(self, room: tuple[int, int] | None = None) -> Outcome:
        """Compiles the file as it is now, before anything is shown, for a screen with so much room."""
        state = read_text(self.path)
        self._saved = Saved(state.data or b"", time.monotonic(), state.problem, room if self.fits else None)
        self._made = self.compiler.compile(self._saved)
        outcome = load(self._saved, self._made, self.stage, None)
        if outcome.swap is not None:
            self._running = outcome.swap
        return outcome

    def run(self, screen: Screen, first: Outcome) -> None:
        """The loop, until somebody or a limit ends it."""
        self._screen = screen
        interval = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_SECONDS)
        # All that is there at the start stays: looking through it again and again would make frames late.
        gc.collect()
        gc.freeze()
        worker = CompileWorker(
            self.compiler.setup, self.stage, lambda: self._running, self._moment, self._finished.set
        )  # fmt: skip
        if first.swap is not None:
            worker.remember(first.saved, self._made)
        self._worker = worker
        try:
            with Watcher(self._changed) as watcher:
                self._watcher = watcher
                self._enter(first)
                self._loop(screen)
        finally:
            worker.close()
            gc.unfreeze()
            sys.setswitchinterval(interval)
        self.events.emit("stopped", reason=self.stopping or "closed")

    def stop(self, reason: str) -> None:
        """Ends the loop after the frame it is at. May be called from a signal handler."""
        self.stopping = reason

    @property
    def stage(self) -> Stage:
        return self.compiler.stage

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the picture."""
        return self._running.size if self._running else (1280, 720)

    @property
    def settings(self) -> Mapping[str, float]:
        return self._running.playable.settings if self._running else {}

    # --- saves ----------------------------------------------------------------------------------------------------

    def _changed(self, changes: Mapping[Path, FileState]) -> None:
        """Called by the watcher's thread. A change of an included file or a picture compiles the patch again."""
        moment = time.monotonic()
        state = changes.get(self.path)
        if state is None:
            state = read_text(self.path)
        self._saved = Saved(state.data or b"", moment, state.problem, self._saved.room)
        self.events.emit("saved", hash=self._saved.hash)
        self._worker.submit(self._saved)

    def _follow_room(self) -> None:
        """A terminal that changes its size gets a picture that fits."""
        if self.fits and self._screen.room != self._saved.room:
            saved = self._saved
            self._saved = Saved(saved.data, time.monotonic(), saved.problem, self._screen.room)
            self._worker.submit(self._saved)

    def _moment(self) -> Moment:
        """Called by the worker's thread."""
        tick = self._tick
        return Moment(tick.number, tick.time, tick.dt, dict(self.inputs.snapshot()))

    def _watch(self, outcome: Outcome) -> None:
        """Watches all that a text names, as it was compiled; of a refused text too, whose mistake may be in there."""
        self._files = outcome.files if outcome.swap is not None else {**self._files, **outcome.files}
        known = FileState("text", outcome.saved.data, problem=outcome.saved.problem)
        self._watcher.watch({self.path: known, **self._files})

    def _take_in(self) -> None:
        """Takes what the worker has finished: a program is swapped in, a mistake is told."""
        self._finished.clear()
        for outcome in self._worker.take():
            if outcome.swap is None:
                self._refuse(outcome)
            else:
                self._swap(outcome, outcome.swap)

    def _refuse(self, outcome: Outcome) -> None:
        self._watch(outcome)
        self.notices.set_problems(outcome.diagnostics)
        self.tell(list(outcome.diagnostics))
        self.say("the last good version goes on" if self._running else _NOTHING_YET)
        self.events.emit("error", hash=outcome.saved.hash, diagnostics=[d.to_json() for d in outcome.diagnostics])

    def _swap(self, outcome: Outcome, swap: Swap) -> None:
        try:
            self.stage.take_over(swap, self._running)
        except Exception as failure:
            self._refuse(replace(outcome, swap=None, diagnostics=_bug("the program could not take over", failure)))
            return
        self._loops_reported.clear()
        self._previous, self._running = self._running, swap
        self._pending = outcome
        self._enter(outcome)

    def _enter(self, outcome: Outcome) -> None:
        """What changes with a new program besides the picture."""
        self._compile_ms = sum(outcome.took)
        self.notices.set_problems(outcome.diagnostics)
        if outcome.diagnostics and outcome is self._pending:
            self.tell(list(outcome.diagnostics))
        self._set_patch_keys()
        self._watch(outcome)

    def _set_patch_keys(self) -> None:
        uniforms = self._running.playable.uniforms if self._running else frozenset[str]()
        keys = (name.removeprefix("key@") for name in uniforms if name.startswith("key@"))
        self._screen.set_patch_keys(frozenset(keys))

    # --- frames ---------------------------------------------------------------------------------------------------

    def _loop(self, screen: Screen) -> None:
        aimed = self.settings.get("fps", 60)
        stats = FrameStats(aimed)
        deadline, due = time.monotonic(), True
        while self.stopping is None:
            screen.poll()
            if screen.should_close:
                self.stop("closed")
                break
            self._follow_room()
            self._take_in()
            if self.settings.get("fps", 60) != aimed:
                aimed = self.settings.get("fps", 60)
                stats = FrameStats(aimed)
            self._annotate()
            self._frame(screen)
            self._after_frame(stats)
            if due:
                deadline = max(deadline + 1 / aimed, time.monotonic() - _MADE_UP)
            due = self._wait(deadline)

    def _wait(self, deadline: float) -> bool:
        """Sleeps until the next frame is due; False if a program is ready earlier, for which a frame more is drawn."""
        left = deadline - time.monotonic()
        return left <= _SLEEP_SLACK or not self._finished.wait(left)

    def _annotate(self) -> None:
        overlay = self.notices.overlay()
        if overlay != self._overlay:
            self._overlay = overlay
            self._screen.annotate(overlay)

    def _frame(self, screen: Screen) -> None:
        swap = self._running
        if swap is None:
            screen.redraw()
            return
        self._tick = self.clock.tick()
        try:
            self._show(screen, swap.runner.run(self._env(swap, self._tick)))
        except WeftError as failure:
            self._withdraw(failure.diagnostics)
        except Exception as failure:
            self._withdraw(_bug("the program failed while it ran", failure))

    def _show(self, screen: Screen, results: list[Result]) -> None:
        """Raises WeftError for a picture that the screen cannot show."""
        computed = [result.values.reshape(-1) for result in results if result.context == "compute"]
        self._compute = [float(value) for values in computed for value in values]
        shown = main_picture(results)
        if shown is not None:
            self.picture = shown.values
            screen.present(shown.values)
        elif self.picture is not None:
            self.picture = None
            screen.present(np.zeros((self.size[1], self.size[0], 4), np.uint8))
        else:
            screen.redraw()

    def _withdraw(self, reasons: tuple[Diagnostic, ...]) -> None:
        """A program that fails while it runs makes room for the one before: whatever the reason, the show goes on."""
        saved = self._pending.saved if self._pending else self._saved
        self._running, self._previous, self._pending = self._previous, None, None
        self._set_patch_keys()
        self._refuse(Outcome(saved, None, reasons))
        self._screen.redraw()

    def _env(self, swap: Swap, tick: Tick) -> Env:
        return Env(
            width=swap.size[0],
            height=swap.size[1],
            tick=tick.number,
            abstime=tick.time,
            dt=tick.dt,
            inputs={**self.inputs.frame(), **swap.playable.parameters},
            pictures=swap.pictures,
            threads=self.threads,
            loop_stopped=self._loop_stopped,
        )

    def _loop_stopped(self, kernel: str) -> None:
        if kernel not in self._loops_reported:
            self._loops_reported.add(kernel)
            words = f"a loop in {kernel} stops at its limit of steps"
            self.tell([Diagnostic("warning", "loop-stopped", words, None, "the rest of its steps is left out")])
            self.notices.note(words)

    def _after_frame(self, stats: FrameStats) -> None:
        now = time.monotonic()
        self.frames += 1
        if self._pending is not None and self._pending.swap is not None:
            self._report_swap(self._pending, self._pending.swap, now)
            # It has drawn a frame, so nothing of the program before is needed any more.
            self._pending = self._previous = None
        figures = stats.shown(now)
        if figures is not None:
            self.events.emit("frames", **figures.fields())
            self.notices.set_figures(self._figures(figures))
        if self._compute and (figures is not None or self.frames == 1):
            self.events.emit("compute", values=self._compute)
        if self.limits.frames is not None and self.frames >= self.limits.frames:
            self.stop("frames")
        if self.limits.seconds is not None and self.clock.now() >= self.limits.seconds:
            self.stop("duration")

    def _figures(self, figures: FrameFigures) -> tuple[str, ...]:
        width, height = self.size
        units = self._running.playable.units if self._running else ()
        contexts = dict.fromkeys(unit.subgraph.context for unit in units)
        return (
            f"{figures.fps:.0f} fps · p95 {figures.p95_ms:.1f} ms · {figures.dropped} dropped",
            f"{width}×{height} · compiled in {self._compile_ms:.0f} ms",
            " · ".join(f"{c} {self.stage.choices[c].shown}" for c in contexts if c in self.stage.choices),
        )

    def _report_swap(self, outcome: Outcome, swap: Swap, presented: float) -> None:
        parsing, graph, kernels = outcome.took
        latency = (presented - outcome.saved.moment) * 1e3
        self.events.emit(
            "swap",
            hash=outcome.saved.hash,
            parse_ms=round(parsing, 3),
            graph_ms=round(graph, 3),
            compile_ms=round(kernels, 3),
            latency_ms=round(latency, 3),
            waited_ms=0.0,
            recompiled=[] if outcome.known else list(swap.changed),
            kept=list(swap.kept),
            cached=list(swap.changed) if outcome.known else [],
            tier=1,
        )
        words = f"swapped in {latency:.0f} ms"
        self.notices.note(words)
        self.say(f"{words} · {len(swap.changed)} of {len(swap.changed) + len(swap.kept)} subgraphs new")

    # --- commands -------------------------------------------------------------------------------------------------

    def command(self, name: str) -> None:
        """What a key of the tool asks for."""
        match name:
            case "leave":
                self.stop("closed")
            case "pause":
                self.clock.resume() if self.clock.paused else self.clock.pause()
                self.notices.set_paused(self.clock.paused)
                self._mention("paused" if self.clock.paused else "goes on")
            case "restart":
                self.clock.restart()
                self._mention("the clock starts again")
            case "fullscreen":
                self._screen.toggle_fullscreen()
            case "screenshot":
                self._screenshot()
            case "errors":
                self.notices.toggle_errors()
            case "figures":
                self.notices.toggle_figures()

    def _mention(self, words: str) -> None:
        self.say(words)
        self.notices.note(words)

    def _screenshot(self) -> None:
        if self.picture is None:
            return
        path = _free_name(self.path)
        try:
            save_picture(path, self.picture)
        except OSError as failure:
            self._mention(f"no screenshot: {path} cannot be written ({failure.strerror})")
        else:
            self._mention(f"screenshot: {path}")


def _bug(what: str, failure: Exception) -> tuple[Diagnostic, ...]:
    words = f"{what} ({type(failure).__name__}: {failure})"
    return (Diagnostic("error", "internal", words, None, "this is a bug in weft: the text before it goes on"),)


def _free_name(patch: Path) -> Path:
    """A name beside the patch that is not taken yet."""
    number = 1
    while (path := patch.with_name(f"{patch.stem}-{number:03}.png")).exists():
        number += 1
    return path
