"""The live session: one loop that draws, takes in saves, and never stops for either.

The loop runs in the main thread. A program is swapped in between two frames; until then, and whatever is wrong with the
text, the last good one goes on.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from weft.backends.base import Env
from weft.errors import Diagnostic
from weft.media.pictures import save_picture
from weft.runtime.clock import Clock, Tick
from weft.runtime.coordinator import main_picture
from weft.runtime.events import EventLog, FrameStats
from weft.runtime.inputs import Inputs
from weft.runtime.program import Stage, Swap
from weft.runtime.watcher import FileState, Watcher, read_text
from weft.runtime.worker import Compiler, CompileWorker, Outcome, Saved

# While a save is compiled, the drawing thread gets Python's lock back after this long instead of after 5 ms.
_SWITCH_SECONDS = 0.0005
# Sleeping is exact to about a millisecond; the rest of the wait is left to the display.
_SLEEP_SLACK = 0.001
# No more than these seconds are made up for by hurrying after a frame that was late.
_MADE_UP = 0.1

_Pixels = npt.NDArray[np.uint8]


class Screen(Protocol):
    """Where pictures go: a window, or nothing."""

    @property
    def should_close(self) -> bool: ...

    def present(self, picture: _Pixels) -> None: ...

    def redraw(self) -> None: ...

    def poll(self) -> None: ...

    def set_patch_keys(self, names: frozenset[str]) -> None: ...

    def toggle_fullscreen(self) -> None: ...


class NoScreen:
    """No window: everything else runs."""

    should_close = False

    def present(self, picture: _Pixels) -> None:
        pass

    def redraw(self) -> None:
        pass

    def poll(self) -> None:
        pass

    def set_patch_keys(self, names: frozenset[str]) -> None:
        pass

    def toggle_fullscreen(self) -> None:
        pass


@dataclass(frozen=True)
class Limits:
    """When a session ends by itself: after so many seconds or frames."""

    seconds: float | None = None
    frames: int | None = None


@dataclass
class Session:
    """One performance of one file. `tell` shows diagnostics to people; `say` a line of its own."""

    path: Path
    compiler: Compiler
    stage: Stage
    events: EventLog
    inputs: Inputs
    tell: Callable[[list[Diagnostic]], None]
    say: Callable[[str], None]
    threads: int = 1
    limits: Limits = field(default_factory=Limits)
    clock: Clock = field(default_factory=Clock)
    frames: int = 0
    stopping: str | None = None
    problems: list[Diagnostic] = field(default_factory=list)
    picture: _Pixels | None = None
    _running: Swap | None = None
    _previous: Swap | None = None
    _pending: Outcome | None = None
    _files: Mapping[Path, FileState] = field(default_factory=dict)
    _loops_reported: set[str] = field(default_factory=set)
    _compute: list[float] = field(default_factory=list)

    def begin(self) -> Outcome:
        """Compiles the file as it is now, before anything is shown."""
        state = read_text(self.path)
        self._state = state
        outcome = self.compiler.compile(Saved(state.data or b"", time.monotonic(), state.problem), None)
        if outcome.swap is not None:
            self._running = outcome.swap
        return outcome

    def run(self, screen: Screen, first: Outcome) -> None:
        """The loop, until somebody or a limit ends it."""
        self._screen = screen
        interval = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_SECONDS)
        worker = CompileWorker(self.compiler, lambda: self._running)
        self._worker = worker
        try:
            with Watcher(self._changed) as watcher:
                self._watcher = watcher
                self._enter(first)
                self._loop(screen)
        finally:
            worker.close()
            sys.setswitchinterval(interval)
        self.events.emit("stopped", reason=self.stopping or "closed")

    def stop(self, reason: str) -> None:
        """Ends the loop after the frame it is at. May be called from a signal handler."""
        self.stopping = reason

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the picture."""
        return self._running.size if self._running else (1280, 720)

    @property
    def settings(self) -> Mapping[str, float]:
        return self._running.build.patch.settings if self._running else {}

    # --- saves ----------------------------------------------------------------------------------------------------

    def _changed(self, changes: Mapping[Path, FileState]) -> None:
        """Called by the watcher's thread. A change of an included file or a picture compiles the patch again."""
        moment = time.monotonic()
        state = changes.get(self.path)
        if state is None:
            state = read_text(self.path)
        saved = Saved(state.data or b"", moment, state.problem)
        self.events.emit("saved", hash=saved.hash)
        self._worker.submit(saved)

    def _watch(self, outcome: Outcome) -> None:
        """Watches all that a text names, as it was compiled; of a refused text too, whose mistake may be in there."""
        self._files = outcome.files if outcome.swap is not None else {**self._files, **outcome.files}
        self._watcher.watch({self.path: self._state, **self._files})

    def _take_in(self) -> None:
        """Takes what the worker has finished: a program is swapped in, a mistake is told."""
        for outcome in self._worker.take():
            if outcome.swap is None:
                self._refuse(outcome)
            else:
                self._swap(outcome)

    def _refuse(self, outcome: Outcome) -> None:
        self._watch(outcome)
        self.problems = list(outcome.diagnostics)
        self.tell(self.problems)
        self.say("the last good version goes on" if self._running else "nothing to show yet: mend the file and save it")
        self.events.emit("error", hash=outcome.saved.hash, diagnostics=[d.to_json() for d in outcome.diagnostics])

    def _swap(self, outcome: Outcome) -> None:
        swap = outcome.swap
        if swap is None:
            return
        try:
            self.stage.take_over(swap, self._running)
        except Exception as failure:
            self._refuse(_broken(outcome.saved, "the program could not take over", failure))
            return
        self._loops_reported.clear()
        self._previous, self._running = self._running, swap
        self._pending = outcome
        self._enter(outcome)

    def _enter(self, outcome: Outcome) -> None:
        """What changes with a new program besides the picture."""
        self.problems = list(outcome.diagnostics)
        if outcome.diagnostics and outcome is self._pending:
            self.tell(self.problems)
        if outcome.swap is not None:
            self._state = FileState("text", outcome.saved.data)
        self._set_patch_keys()
        self._watch(outcome)

    def _set_patch_keys(self) -> None:
        uniforms = self._running.build.uniforms if self._running else frozenset[str]()
        keys = (name.removeprefix("key@") for name in uniforms if name.startswith("key@"))
        self._screen.set_patch_keys(frozenset(keys))

    # --- frames ---------------------------------------------------------------------------------------------------

    def _loop(self, screen: Screen) -> None:
        aimed = self.settings.get("fps", 60)
        stats = FrameStats(aimed)
        deadline = time.monotonic()
        while self.stopping is None:
            screen.poll()
            if screen.should_close:
                self.stop("closed")
                break
            self._take_in()
            if self.settings.get("fps", 60) != aimed:
                aimed = self.settings.get("fps", 60)
                stats = FrameStats(aimed)
            self._frame(screen)
            self._after_frame(stats)
            deadline = self._wait(max(deadline + 1 / aimed, time.monotonic() - _MADE_UP))

    def _wait(self, deadline: float) -> float:
        """Sleeps until the next frame is due."""
        left = deadline - time.monotonic()
        if left > _SLEEP_SLACK:
            time.sleep(left)
        return deadline

    def _frame(self, screen: Screen) -> None:
        swap = self._running
        if swap is None:
            screen.redraw()
            return
        try:
            results = swap.runner.run(self._env(swap, self.clock.tick()))
        except Exception as failure:
            self._withdraw(failure)
            screen.redraw()
            return
        computed = [result.values.reshape(-1) for result in results if result.context == "compute"]
        self._compute = [float(value) for values in computed for value in values]
        shown = main_picture(results)
        if shown is not None:
            self.picture = shown.values
            screen.present(shown.values)
        elif self.picture is not None:
            self.picture = None
            screen.present(np.zeros((swap.size[1], swap.size[0], 4), np.uint8))

    def _withdraw(self, failure: Exception) -> None:
        """A program that fails while it runs makes room for the one before: whatever the reason, the show goes on."""
        saved = self._pending.saved if self._pending else Saved(self._state.data or b"", time.monotonic())
        self._running, self._previous, self._pending = self._previous, None, None
        self._set_patch_keys()
        self._refuse(_broken(saved, "the program failed while it ran", failure))

    def _env(self, swap: Swap, tick: Tick) -> Env:
        return Env(
            width=swap.size[0],
            height=swap.size[1],
            tick=tick.number,
            abstime=tick.time,
            dt=tick.dt,
            inputs={**self.inputs.frame(), **swap.build.patch.parameter_values()},
            pictures=swap.pictures,
            threads=self.threads,
            loop_stopped=self._loop_stopped,
        )

    def _loop_stopped(self, kernel: str) -> None:
        if kernel not in self._loops_reported:
            self._loops_reported.add(kernel)
            words = f"a loop in {kernel} stops at its limit of steps"
            self.tell([Diagnostic("warning", "loop-stopped", words, None, "the rest of its steps is left out")])

    def _after_frame(self, stats: FrameStats) -> None:
        now = time.monotonic()
        self.frames += 1
        if self._pending is not None:
            self._report_swap(self._pending, now)
            # It has drawn a frame, so nothing of the program before is needed any more.
            self._pending = self._previous = None
        figures = stats.shown(now)
        if figures is not None:
            self.events.emit("frames", **figures.fields())
        if self._compute and (figures is not None or self.frames == 1):
            self.events.emit("compute", values=self._compute)
        if self.limits.frames is not None and self.frames >= self.limits.frames:
            self.stop("frames")
        if self.limits.seconds is not None and self.clock.now() >= self.limits.seconds:
            self.stop("duration")

    def _report_swap(self, outcome: Outcome, presented: float) -> None:
        swap = outcome.swap
        if swap is None:
            return
        made = swap.build
        latency = (presented - outcome.saved.moment) * 1e3
        self.events.emit(
            "swap",
            hash=swap.hash,
            parse_ms=round(made.parse_ms, 3),
            graph_ms=round(made.graph_ms, 3),
            compile_ms=round(made.compile_ms + swap.load_ms, 3),
            latency_ms=round(latency, 3),
            waited_ms=0.0,
            recompiled=list(swap.recompiled),
            kept=list(swap.kept),
            tier=1,
        )
        changed = f"{len(swap.recompiled)} of {len(swap.recompiled) + len(swap.kept)} subgraphs new"
        self.say(f"swapped in {latency:.0f} ms · {changed}")

    # --- commands -------------------------------------------------------------------------------------------------

    def command(self, name: str) -> None:
        """What a key of the tool asks for."""
        match name:
            case "leave":
                self.stop("closed")
            case "pause":
                self.clock.resume() if self.clock.paused else self.clock.pause()
                self.say("paused" if self.clock.paused else "goes on")
            case "restart":
                self.clock.restart()
                self.say("the clock starts again")
            case "fullscreen":
                self._screen.toggle_fullscreen()
            case "screenshot":
                self._screenshot()
            case "errors":
                self.tell(self.problems)
            case "figures":
                width, height = self.size
                self.say(f"{width}×{height} · frame {self.frames} · {self.clock.now():.1f} s")

    def _screenshot(self) -> None:
        if self.picture is None:
            return
        path = _free_name(self.path)
        try:
            save_picture(path, self.picture)
        except OSError as failure:
            self.say(f"no screenshot: {path} cannot be written ({failure.strerror})")
        else:
            self.say(f"screenshot: {path}")


def _broken(saved: Saved, what: str, failure: Exception) -> Outcome:
    words = f"{what} ({type(failure).__name__}: {failure})"
    hint = "this is a bug in weft: the text before it goes on"
    return Outcome(saved, None, (Diagnostic("error", "internal", words, None, hint),))


def _free_name(patch: Path) -> Path:
    """A name beside the patch that is not taken yet."""
    number = 1
    while (path := patch.with_name(f"{patch.stem}-{number:03}.png")).exists():
        number += 1
    return path
