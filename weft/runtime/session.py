"""The live session: one loop that draws, takes over saved versions, and never waits for either.

The loop runs in the main thread. A new program takes over between two frames; until then, and as long as the text has
errors, the last good version goes on.
"""

from __future__ import annotations

import gc
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from weft.backends.base import DeviceLostError, Env, Values, as_array
from weft.child import Child
from weft.errors import Diagnostic, WeftError, event_fields, fault
from weft.runtime.clock import Clock, Tick
from weft.runtime.compiling.compiler import Compiler, Saved, TrialMoment
from weft.runtime.compiling.worker import LoadResult
from weft.runtime.coordinator import TickResult, main_picture
from weft.runtime.events import EventLog, FrameStats, Notices, Reporter, Screenshots
from weft.runtime.fallback import Migration, recover, repair, settle
from weft.runtime.files import read_text
from weft.runtime.inputs import Inputs
from weft.runtime.program import LoadedProgram, ProgramLoader, Programs
from weft.runtime.saves import Saves
from weft.runtime.screens.screen import Overlay, Screen
from weft.runtime.sound.messages import SoundEvent
from weft.runtime.sound.player import Sound
from weft.runtime.transition import TransitionPolicy, TransitionScheduler


@dataclass
class Commands:
    """Executes the commands of the tool's keys (see `weft.keys`) on a performance. `stop` ends it for a reason."""

    clock: Clock
    sound: Sound | None
    reporter: Reporter
    stop: Callable[[str], None]
    toggle_fullscreen: Callable[[], None]
    screenshot: Callable[[], None]

    def run(self, name: str) -> None:
        """Executes the command of this name."""
        match name:
            case "leave":
                self.stop("closed")
            case "pause":
                self._pause()
            case "restart":
                self._restart()
            case "fullscreen":
                self.toggle_fullscreen()
            case "screenshot":
                self.screenshot()
            case "errors":
                self.reporter.notices.toggle_errors()
            case "figures":
                self.reporter.notices.toggle_figures()

    def _pause(self) -> None:
        if self.clock.paused:
            self.clock.resume()
        else:
            self.clock.pause()
        self.reporter.notices.set_paused(self.clock.paused)
        self.reporter.mention("paused" if self.clock.paused else "resumed")

    def _restart(self) -> None:
        self.clock.restart()
        if self.sound is not None:
            self.sound.restart()
        self.reporter.mention("the clock restarts")


@dataclass
class Ticker:
    """Runs programs tick by tick, and hands the sound what it reads. When the device of a program fails, the program
    moves to another one, and `recovered` is called with it."""

    loader: ProgramLoader
    clock: Clock
    inputs: Inputs
    sound: Sound | None
    reporter: Reporter
    threads: int
    recovered: Callable[[LoadedProgram], None]

    def __post_init__(self) -> None:
        self.tick = Tick(0, 0.0, 0.0)
        """The latest tick."""
        self._last: dict[str, Values] = {}
        """The results of the last finished tick, by the names of the subgraphs."""

    def moment(self) -> TrialMoment:
        """The current moment of the performance, for trials. May be called from any thread."""
        tick = self.tick
        return TrialMoment(tick.number, tick.time, tick.dt, dict(self.inputs.snapshot()))

    def env(self, loaded: LoadedProgram) -> Env:
        """The environment of a program in this tick."""
        return Env(
            width=loaded.size[0],
            height=loaded.size[1],
            tick=self.tick.number,
            abstime=self.tick.time,
            dt=self.tick.dt,
            inputs={**self.inputs.frame(), **loaded.compiled.parameters},
            pictures=loaded.pictures,
            threads=self.threads,
            loop_stopped=partial(self.reporter.loop_stopped, loaded.compiled),
            warn=self.reporter.warn,
        )

    def begin(self, loaded: LoadedProgram) -> Env:
        """Begins a tick, and returns its environment."""
        self.tick = self.clock.tick()
        return self.env(loaded)

    def run(self, loaded: LoadedProgram, env: Env, done: dict[int, Values]) -> list[TickResult]:
        """Runs a tick. If a device fails, its subgraphs move to another one in the same tick. Raises any error of the
        program itself."""
        self.repair(loaded)
        while True:
            try:
                results = loaded.runner.run(env, done)
                self._last = {result.subgraph: result.values for result in results}
                if self.sound is not None:
                    given = {**env.inputs, **loaded.runner.feeds(env)}
                    self.sound.follow(self.clock, given, loaded.runner.view_values(env))
                return results
            except Exception as failure:
                if not self._recovers(loaded, failure, env, done):
                    raise

    def repair(self, loaded: LoadedProgram) -> None:
        """Moves a program off devices that were lost after it had been prepared."""
        if repair(self.loader, loaded, self.env(loaded), {}, self._last):
            self.recovered(loaded)

    def settle(self, moves: Iterable[Migration]) -> None:
        """Moves bridged subgraphs to the devices that should run them. Those that cannot move are improved in place."""
        for move in moves:
            if not settle(self.loader, move):
                self.recovered(move.loaded)

    def lost_while_shown(self, loaded: LoadedProgram, failure: DeviceLostError) -> None:
        """Moves a program whose device failed while its picture was shown. Raises the failure if it cannot move."""
        if not self._recovers(loaded, failure, self.env(loaded), {}):
            raise failure

    def _recovers(self, loaded: LoadedProgram, failure: Exception, env: Env, done: dict[int, Values]) -> bool:
        if not recover(self.loader, loaded, failure, env, done, self._last):
            return False
        self.recovered(loaded)
        return True


# While a program is loaded, the drawing thread gets Python's lock back after this long instead of after 5 ms.
_SWITCH_SECONDS = 0.0005
# Sleeping is accurate to about a millisecond; the display waits for the rest.
_SLEEP_SLACK = 0.001
# Keys are polled at this interval, in seconds, however few frames there are.
_GLANCE = 0.05
# The most seconds that are caught up by faster frames after a late one.
_MADE_UP = 0.1

LONG = 1.0
"""Seconds of waiting after which the user is told what is waited for."""

NOTHING_YET = "nothing to show yet: fix the file and save it"


@dataclass(frozen=True)
class Limits:
    """When a session ends by itself: after a number of seconds or frames; None: never."""

    seconds: float | None = None
    frames: int | None = None


@dataclass
class Session:
    """One performance of one file. `tell` shows diagnostics to people, `say` a line. If it `fits`, pictures are made to
    fit the screen. Screenshots go to `folder`."""

    path: Path
    compiler: Compiler
    events: EventLog
    inputs: Inputs
    tell: Callable[[list[Diagnostic]], None]
    say: Callable[[str], None]
    threads: int = 1
    fits: bool = True
    folder: Path = Path()
    limits: Limits = field(default_factory=Limits)
    sound: Sound | None = None
    policy: TransitionPolicy = field(default_factory=TransitionPolicy)
    clock: Clock = field(default_factory=Clock)
    notices: Notices = field(default_factory=Notices)
    frames: int = 0
    stopping: str | None = None

    def __post_init__(self) -> None:
        self.programs = Programs(self.compiler.loader)
        self._transitions = TransitionScheduler(self.programs, self.policy, self.clock, self.sound)
        self._finished = threading.Event()
        # `tell` and `say` may be replaced later.
        tell, say = (lambda problems: self.tell(problems)), (lambda line: self.say(line))  # noqa: PLW0108
        self._reporter = Reporter(self.events, self.notices, tell, say)
        self._ticker = Ticker(
            self.loader, self.clock, self.inputs, self.sound, self._reporter, self.threads, self._recovered
        )
        self._saves = Saves(
            self.path, self.compiler, self.events, lambda: self.programs.running, self._ticker.moment,
            self._finished.set, self.fits,
        )  # fmt: skip
        self._commands = Commands(
            self.clock, self.sound, self._reporter, self.stop, self._toggle_fullscreen, self._screenshot
        )
        self._screenshots = Screenshots(self.folder, self.path.stem, self._reporter.mention)
        self._picture: Values | None = None
        self._pending: LoadResult | None = None
        """The result whose program took over and has not drawn a frame yet."""
        self._improvable: LoadResult | None = None
        """The result whose program plays, until it has drawn a frame and can be improved."""
        self._failure: tuple[Diagnostic, ...] = ()
        """The last failure of the program that plays."""
        self._entered: LoadResult | None = None
        """The result whose program took over last."""
        self._mentioned: Saved | None = None
        """The text that was reported to take long."""
        self._compute: list[float] = []
        self._compile_ms = 0.0
        self._overlay = Overlay()

    def expect(self, ahead: Child | None = None) -> None:
        """Starts the compile process before the performance begins, and the sound process if the file mentions sounds.
        For `ahead` see `CompileProcess`."""
        self._saves.expect(ahead)
        words = "|".join(word for spec in self.compiler.contexts if spec.streams for word in spec.statements)
        text = read_text(self.path).data or b""
        if self.sound is not None and re.search(rf"\b({words})\b".encode(), text):
            self.sound.expect()

    def begin(self, room: tuple[int, int] | None = None) -> LoadResult:
        """Compiles the file as it is now, before anything is shown, for a screen with this much room, and waits for the
        result. A save in the meantime replaces the text. An exception such as KeyboardInterrupt may interrupt it."""
        if self.sound is not None:
            self.loader.stream_getter = self.sound.getter
        outcome = self._saves.begin(room)
        while outcome is None:
            self._finished.wait(_GLANCE)
            self._finished.clear()
            self._mention_waiting()
            finished = self._saves.take()
            # A refused text that was saved again in the meantime does not count.
            outcome = next((o for o in reversed(finished) if o.loaded or o.saved is self._saves.last), None)
        if outcome.loaded is not None:
            self.programs.enter(outcome.loaded)
            self._transitions.begin(outcome.loaded)
        return outcome

    def close(self) -> None:
        """Ends the processes and threads of the session. May be called twice."""
        self._saves.close()
        if self.sound is not None:
            self.sound.close()

    def run(self, screen: Screen, first: LoadResult) -> None:
        """Runs the loop until the user or a limit ends it. Raises WeftError when the screen is lost."""
        self._screen = screen
        interval = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_SECONDS)
        # The objects that exist now stay: collecting them again and again would delay frames.
        gc.collect()
        gc.freeze()
        try:
            self._enter(first)
            self._loop(screen)
        finally:
            self._take_sound_events()
            self.close()
            gc.unfreeze()
            sys.setswitchinterval(interval)
        self.events.emit("stopped", reason=self.stopping or "closed")

    def stop(self, reason: str) -> None:
        """Ends the loop after the current frame. May be called from a signal handler."""
        self.stopping = reason
        self._finished.set()

    @property
    def loader(self) -> ProgramLoader:
        return self.compiler.loader

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the picture."""
        running = self.programs.running
        return running.size if running else (1280, 720)

    @property
    def settings(self) -> Mapping[str, float]:
        running = self.programs.running
        return running.compiled.settings if running else {}

    # --- saves ----------------------------------------------------------------------------------------------------

    def _take_in(self) -> None:
        """Takes finished results: schedules the latest program, and reports errors."""
        self._finished.clear()
        self._mention_waiting()
        outcomes = self._saves.take()
        latest = next((outcome for outcome in reversed(outcomes) if outcome.loaded is not None), None)
        for outcome in outcomes:
            if outcome.loaded is None:
                self._refuse(outcome)
            elif outcome is latest:
                self._offer(outcome)
        due = self._transitions.due()
        if due is not None:
            self._refuse(due) if due.loaded is None else self._swap(due, due.loaded)
        for better in self._saves.improvements():
            self._ticker.settle(better.moves)
            if self.sound is not None:
                self.sound.improve(better.codes)
            self.events.emit("tier", hash=better.hash, tier=better.tier, compile_ms=round(better.took, 3))

    def _mention_waiting(self) -> None:
        """Reports what takes long, and restarts of the compile process."""
        for line in self._saves.restarts():
            self._reporter.restarted("compile", line)
        saved, words = self._saves.waiting() or (None, "")
        if saved is None or time.monotonic() - saved.moment < LONG:
            return
        if saved is not self._mentioned:
            self._mentioned = saved
            self.say(words)
        # The note stays as long as the wait.
        self.notices.note(words)

    def _offer(self, outcome: LoadResult) -> None:
        try:
            self._transitions.offer(outcome)
        except WeftError as failure:
            self._refuse(replace(outcome, loaded=None, diagnostics=failure.diagnostics))

    def _refuse(self, outcome: LoadResult) -> None:
        self._saves.answered(outcome)
        self._report(outcome.saved.hash, outcome.diagnostics)
        self.say("the last good version goes on" if self.programs.running else NOTHING_YET)

    def _report(self, text: str, problems: tuple[Diagnostic, ...]) -> None:
        """Reports the problems of the text with this hash."""
        self.notices.set_problems(problems)
        self.tell(list(problems))
        self.events.emit("error", hash=text, **event_fields(problems))

    def _swap(self, outcome: LoadResult, loaded: LoadedProgram) -> None:
        try:
            self._ticker.repair(loaded)
            self._transitions.enter(loaded, self._picture)
        except Exception as failure:
            problem = fault("the program could not take over", failure)
            self._refuse(replace(outcome, loaded=None, diagnostics=(problem,)))
            self._transitions.restart_sound()
            return
        self._pending = outcome
        if outcome.diagnostics:
            self.tell(list(outcome.diagnostics))
        self._enter(outcome)

    def _enter(self, outcome: LoadResult) -> None:
        """Updates all that depends on the program that plays."""
        self._compile_ms = sum(outcome.took)
        self._improvable = self._entered = outcome
        self._failure = ()
        self._reporter.begin()
        self.notices.set_problems(outcome.diagnostics)
        self._screen.set_patch_keys(self.patch_keys)
        self._saves.answered(outcome)

    @property
    def patch_keys(self) -> frozenset[str]:
        """The keys that the program reads; they control weft only together with Ctrl."""
        running = self.programs.running
        uniforms = running.compiled.uniforms if running else frozenset[str]()
        return frozenset(name.removeprefix("key@") for name in uniforms if name.startswith("key@"))

    # --- frames ---------------------------------------------------------------------------------------------------

    def _loop(self, screen: Screen) -> None:
        began = time.monotonic()
        aimed = self.settings.get("fps", 60)
        stats = FrameStats(aimed)
        deadline, due = began, True
        while self._goes_on(began):
            self._saves.follow(screen.room)
            self._take_in()
            if self.settings.get("fps", 60) != aimed:
                aimed = self.settings.get("fps", 60)
                stats = FrameStats(aimed)
            self._take_sound_events()
            self._annotate()
            self._frame(screen)
            self._report_changes()
            self._after_frame(stats)
            if due:
                deadline = max(deadline + 1 / aimed, time.monotonic() - _MADE_UP)
            due = self._wait(deadline, began)

    def _goes_on(self, began: float) -> bool:
        """Polls the screen; False when it is time to end."""
        self._screen.poll()
        if self._screen.should_close:
            self.stop("closed")
        elif self.limits.frames is not None and self.frames >= self.limits.frames:
            self.stop("frames")
        elif self.limits.seconds is not None and time.monotonic() - began >= self.limits.seconds:
            self.stop("duration")
        return self.stopping is None

    def _wait(self, deadline: float, began: float) -> bool:
        """Sleeps until the next frame is due; False if a program is ready earlier, which gets an extra frame."""
        while (left := deadline - time.monotonic()) > _SLEEP_SLACK:
            if self._finished.wait(min(left, _GLANCE)):
                return False
            if left > _GLANCE and not self._goes_on(began):
                break
        return True

    def _annotate(self) -> None:
        overlay = self.notices.overlay()
        if overlay != self._overlay:
            self._overlay = overlay
            self._screen.annotate(overlay)

    def _frame(self, screen: Screen) -> None:
        loaded = self.programs.running
        # A pause stops everything, but a version that is saved in it is shown.
        stands_still = self.clock.paused and self._pending is None and self._picture is not None
        if loaded is None or stands_still:
            if self.sound is not None:
                self.sound.follow(self.clock, {})
            screen.redraw()
            return
        env = self._ticker.begin(loaded)
        done: dict[int, Values] = {}
        try:
            results = self._ticker.run(loaded, env, done)
        except Exception as failure:
            self._fail(_problems(failure))
            return
        computed = [result.array.reshape(-1) for result in results if result.context == "compute"]
        self._compute = [float(value) for values in computed for value in values]
        try:
            if self._show(screen, self._transitions.visible(main_picture(results), env, done)):
                self._drew()
        except DeviceLostError as failure:
            self._ticker.lost_while_shown(loaded, failure)

    def _recovered(self, loaded: LoadedProgram) -> None:
        """A program has moved to another backend; its new code is to be improved."""
        self._picture = None
        if self._entered is not None and self._entered.loaded is loaded:
            self._improvable = self._entered

    def _report_changes(self) -> None:
        """Reports what runs elsewhere from now on, and tells the compile and sound processes."""
        changes = self.loader.assignment.changes()
        self._reporter.changed(changes)
        if any(change.subgraph is None for change in changes):
            setup = replace(self.compiler.setup, choices=self.loader.assignment.choices)
            self._saves.change(setup)
            if self.sound is not None:
                self.sound.change(setup)

    def _show(self, screen: Screen, shown: TickResult | None) -> bool:
        """Shows the picture of a frame; False if it cannot be shown. Raises WeftError when the screen is lost."""
        if shown is None and (self._picture is None or self.loader.assignment.losses("visual")):
            # If no device is left that draws, the last picture stays.
            screen.redraw()
            return True
        if shown is not None and shown.values is self._picture:
            screen.redraw()
            return True
        black = np.zeros((self.size[1], self.size[0], 4), np.uint8)
        try:
            screen.present(black if shown is None else shown.values)
        except WeftError as failure:
            if failure.diagnostics[0].code != "picture-too-large":
                raise
            self._fail(failure.diagnostics)
            return False
        self._picture = None if shown is None else shown.values
        return True

    def _drew(self) -> None:
        """The program that plays has drawn a frame."""
        self.programs.drew()
        if self._improvable is not None:
            self._saves.improve(self._improvable)
            self._improvable = None
        if self._pending is not None and self._pending.loaded is not None:
            self._reporter.swapped(self._pending, self._pending.loaded, self._transitions.waited_ms)
            self._pending = None

    def _fail(self, problems: tuple[Diagnostic, ...], otherwise: str = "it is tried again with every frame") -> None:
        """Goes back from a program that fails to the previous one. If there is none, the program stays and the failure
        is reported once, with `otherwise` as what happens instead."""
        text = self._pending.saved.hash if self._pending else self._saves.last.hash
        went_back = self.programs.withdraw()
        if went_back:
            self._transitions.restart_sound()
        self._pending = None
        if went_back or problems != self._failure:
            self._report(text, problems)
            self.say("the previous version goes on" if went_back else otherwise)
        self._failure = () if went_back else problems
        # The next picture is presented, even if it is in the same memory as the last one.
        self._picture = None
        self._screen.set_patch_keys(self.patch_keys)
        self._screen.redraw()

    def _after_frame(self, stats: FrameStats) -> None:
        self.frames += 1
        figures = stats.shown(time.monotonic())
        if figures is not None:
            self._reporter.frames(figures, self.sound, self._facts())
        if self._compute and (figures is not None or self.frames == 1):
            self.events.emit("compute", values=self._compute)

    def _take_sound_events(self) -> None:
        """Handles the events of the sound."""
        for event in self.sound.events() if self.sound is not None else ():
            if event.kind == "failure":
                self._sound_failed(event)
            elif event.kind == "moved":
                self._sound_moved(event)
            elif event.kind == "loop":
                playing = self.programs.running
                if playing is not None:
                    self._reporter.loop_stopped(playing.compiled, event.words)
            else:
                self._reporter.heard(event)

    def _sound_moved(self, event: SoundEvent) -> None:
        """The device that computed sounds has failed, and the CPU plays on. If another device is preferred to the CPU,
        that one takes over."""
        self.loader.assignment.lose_named(event.code, event.origin, event.words)
        following = self.loader.assignment.choices.get(event.code)
        if following is not None and not following.is_cpu:
            self._transitions.restart_sound()

    def _sound_failed(self, event: SoundEvent) -> None:
        """Goes back from a program whose sound fails to the previous one, as for one whose picture fails."""
        problems = (Diagnostic("error", event.code, event.words),)
        withdrawn = self._transitions.withdraw(event.number)
        if withdrawn is not None:
            self._refuse(replace(withdrawn, loaded=None, diagnostics=problems))
        elif self._transitions.is_sounding(event.number):
            self._fail(problems, otherwise="the previous sound goes on, if there was one")
        else:
            self._report(self._saves.last.hash, problems)

    def _facts(self) -> tuple[str, ...]:
        """Facts about the program, shown with the figures of its frames."""
        width, height = self.size
        running, choices = self.programs.running, self.loader.assignment.choices
        contexts = dict.fromkeys(unit.subgraph.context for unit in running.compiled.units) if running else {}
        runs = " · ".join(f"{name} {choices[name].shown}" for name in contexts if name in choices)
        return f"{width}×{height} · compiled in {self._compile_ms:.0f} ms", runs

    def command(self, name: str) -> None:
        """Executes the command of a key."""
        self._commands.run(name)

    def _toggle_fullscreen(self) -> None:
        self._screen.toggle_fullscreen()

    def _screenshot(self) -> None:
        if self._picture is None:
            self._reporter.mention("no screenshot: there is no picture yet")
        else:
            self._screenshots.take(as_array(self._picture).copy())


def _problems(failure: Exception) -> tuple[Diagnostic, ...]:
    """The diagnostics about a program that failed while it ran."""
    if isinstance(failure, WeftError):
        return failure.diagnostics
    return (fault("the program failed while it ran", failure),)
