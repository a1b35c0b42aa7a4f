"""The live session: one loop that draws, takes in saves, and never stops for either.

The loop runs in the main thread. A program is swapped in between two frames; until then, and whatever is wrong with the
text, the last good one goes on.
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

# What the keys of the tool do, by the names of `weft.keys`.


@dataclass
class Commands:
    """Carries out commands on a performance. `stop` ends it, and is given the reason."""

    clock: Clock
    sound: Sound | None
    reporter: Reporter
    stop: Callable[[str], None]
    toggle_fullscreen: Callable[[], None]
    screenshot: Callable[[], None]

    def run(self, name: str) -> None:
        """Carries out the command of a name."""
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
        self.reporter.mention("paused" if self.clock.paused else "goes on")

    def _restart(self) -> None:
        self.clock.restart()
        if self.sound is not None:
            self.sound.restart()
        self.reporter.mention("the clock starts again")


# The ticks of a performance: each runs the program that plays, wherever its devices let it.


@dataclass
class Ticker:
    """Runs programs tick by tick, with what comes from outside. The sound follows. `recovered` is called with a program
    that goes on elsewhere, since its device failed."""

    loader: ProgramLoader
    clock: Clock
    inputs: Inputs
    sound: Sound | None
    reporter: Reporter
    threads: int
    recovered: Callable[[LoadedProgram], None]

    def __post_init__(self) -> None:
        self.tick = Tick(0, 0.0, 0.0)
        """The tick that was begun last."""
        self._last: dict[str, Values] = {}
        """What each subgraph gave in the tick that was finished last, by its name."""

    def moment(self) -> TrialMoment:
        """Where the performance is. May be called from any thread."""
        tick = self.tick
        return TrialMoment(tick.number, tick.time, tick.dt, dict(self.inputs.snapshot()))

    def env(self, loaded: LoadedProgram) -> Env:
        """What a program runs with in this tick."""
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
        """Begins a tick."""
        self.tick = self.clock.tick()
        return self.env(loaded)

    def run(self, loaded: LoadedProgram, env: Env, done: dict[int, Values]) -> list[TickResult]:
        """Runs a tick. If a device fails, what ran on it goes on elsewhere in the same tick. Raises whatever goes wrong
        with the program."""
        self.repair(loaded)
        while True:
            try:
                results = loaded.runner.run(env, done)
                self._last = {result.subgraph: result.values for result in results}
                if self.sound is not None:
                    given = {**env.inputs, **loaded.runner.feeds(env)}
                    self.sound.follow(self.clock, given, loaded.runner.seen(env))
                return results
            except Exception as failure:
                if not self._recovers(loaded, failure, env, done):
                    raise

    def repair(self, loaded: LoadedProgram) -> None:
        """Has a program that was made ready for a device which is lost by now run elsewhere."""
        if repair(self.loader, loaded, self.env(loaded), {}, self._last):
            self.recovered(loaded)

    def settle(self, moves: Iterable[Migration]) -> None:
        """Has what was bridged go on where it should run, as far as it can by now; else it is made better where it
        is."""
        for move in moves:
            if not settle(self.loader, move):
                self.recovered(move.loaded)

    def lost_in_sight(self, loaded: LoadedProgram, failure: DeviceLostError) -> None:
        """The device failed when its picture was to be shown; the next one is drawn elsewhere. Raises the failure if
        there is no other way."""
        if not self._recovers(loaded, failure, self.env(loaded), {}):
            raise failure

    def _recovers(self, loaded: LoadedProgram, failure: Exception, env: Env, done: dict[int, Values]) -> bool:
        if not recover(self.loader, loaded, failure, env, done, self._last):
            return False
        self.recovered(loaded)
        return True


# While a program is loaded, the drawing thread gets Python's lock back after this long instead of after 5 ms.
_SWITCH_SECONDS = 0.0005
# Sleeping is exact to about a millisecond; the rest of the wait is left to the display.
_SLEEP_SLACK = 0.001
# Keys are heard this often, in seconds, however few frames there are.
_GLANCE = 0.05
# No more than these seconds are made up for by hurrying after a frame that was late.
_MADE_UP = 0.1

LONG = 1.0
"""What is waited for longer than this, in seconds, is mentioned."""

NOTHING_YET = "nothing to show yet: mend the file and save it"


@dataclass(frozen=True)
class Limits:
    """When a session ends by itself: after so many seconds or frames."""

    seconds: float | None = None
    frames: int | None = None


@dataclass
class Session:
    """One performance of one file. `tell` shows diagnostics to people; `say` a line of its own. If it `fits`, a picture
    is made no larger than its screen has room for. Screenshots go to `folder`."""

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
        self._succession = TransitionScheduler(self.programs, self.policy, self.clock, self.sound)
        self._finished = threading.Event()
        # Whoever hears what is told and said may change.
        tell, say = (lambda problems: self.tell(problems)), (lambda line: self.say(line))  # noqa: PLW0108
        self._teller = Reporter(self.events, self.notices, tell, say)
        self._ticker = Ticker(
            self.loader, self.clock, self.inputs, self.sound, self._teller, self.threads, self._recovered
        )
        self._saves = Saves(
            self.path, self.compiler, self.events, lambda: self.programs.running, self._ticker.moment,
            self._finished.set, self.fits,
        )  # fmt: skip
        self._commands = Commands(
            self.clock, self.sound, self._teller, self.stop, self._toggle_fullscreen, self._screenshot
        )
        self._screenshots = Screenshots(self.folder, self.path.stem, self._teller.mention)
        self._picture: Values | None = None
        self._pending: LoadResult | None = None
        """What was swapped in and has not drawn a frame yet."""
        self._improvable: LoadResult | None = None
        """What plays, until it has drawn a frame and can be improved."""
        self._failure: tuple[Diagnostic, ...] = ()
        """What the program that plays failed with last."""
        self._entered: LoadResult | None = None
        """What was swapped in last."""
        self._mentioned: Saved | None = None
        """The text that has been said to take long."""
        self._compute: list[float] = []
        self._compile_ms = 0.0
        self._overlay = Overlay()

    def expect(self, ahead: Child | None = None) -> None:
        """A performance is about to begin: what compiles gets ready meanwhile, and if its file mentions sounds, what
        plays them. For `ahead` see `CompileProcess`."""
        self._saves.expect(ahead)
        words = "|".join(word for spec in self.compiler.contexts if spec.streams for word in spec.statements)
        text = read_text(self.path).data or b""
        if self.sound is not None and re.search(rf"\b({words})\b".encode(), text):
            self.sound.expect()

    def begin(self, room: tuple[int, int] | None = None) -> LoadResult:
        """Has the file compiled as it is now, before anything is shown, for a screen with so much room. What is saved
        meanwhile takes its place. To be interrupted by an exception, such as KeyboardInterrupt."""
        if self.sound is not None:
            self.loader.hears = self.sound.getter
        outcome = self._saves.begin(room)
        while outcome is None:
            self._finished.wait(_GLANCE)
            self._finished.clear()
            self._mention_waiting()
            finished = self._saves.take()
            # What was refused, and has been saved again since, is of no interest any more.
            outcome = next((o for o in reversed(finished) if o.loaded or o.saved is self._saves.last), None)
        if outcome.loaded is not None:
            self.programs.enter(outcome.loaded)
            self._succession.begin(outcome.loaded)
        return outcome

    def close(self) -> None:
        """Ends all that goes on beside the loop. May be called twice."""
        self._saves.close()
        if self.sound is not None:
            self.sound.close()

    def run(self, screen: Screen, first: LoadResult) -> None:
        """The loop, until somebody or a limit ends it. Raises WeftError when the screen is lost."""
        self._screen = screen
        interval = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_SECONDS)
        # All that is there at the start stays: looking through it again and again would make frames late.
        gc.collect()
        gc.freeze()
        try:
            self._enter(first)
            self._loop(screen)
        finally:
            self._hear()
            self.close()
            gc.unfreeze()
            sys.setswitchinterval(interval)
        self.events.emit("stopped", reason=self.stopping or "closed")

    def stop(self, reason: str) -> None:
        """Ends the loop after the frame it is at. May be called from a signal handler."""
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
        """Takes what has been finished: the latest program is swapped in, mistakes are told."""
        self._finished.clear()
        self._mention_waiting()
        outcomes = self._saves.take()
        latest = next((outcome for outcome in reversed(outcomes) if outcome.loaded is not None), None)
        for outcome in outcomes:
            if outcome.loaded is None:
                self._refuse(outcome)
            elif outcome is latest:
                self._offer(outcome)
        due = self._succession.due()
        if due is not None:
            self._refuse(due) if due.loaded is None else self._swap(due, due.loaded)
        for better in self._saves.improvements():
            self._ticker.settle(better.moves)
            if self.sound is not None:
                self.sound.improve(better.codes)
            self.events.emit("tier", hash=better.hash, tier=better.tier, compile_ms=round(better.took, 3))

    def _mention_waiting(self) -> None:
        """Tells what takes long, and what has become of the process that compiles."""
        for line in self._saves.told():
            self._teller.restarted("compile", line)
        saved, words = self._saves.waiting() or (None, "")
        if saved is None or time.monotonic() - saved.moment < LONG:
            return
        if saved is not self._mentioned:
            self._mentioned = saved
            self.say(words)
        # It stays for as long as it is true.
        self.notices.note(words)

    def _offer(self, outcome: LoadResult) -> None:
        try:
            self._succession.offer(outcome)
        except WeftError as failure:
            self._refuse(replace(outcome, loaded=None, diagnostics=failure.diagnostics))

    def _refuse(self, outcome: LoadResult) -> None:
        self._saves.answered(outcome)
        self._report(outcome.saved.hash, outcome.diagnostics)
        self.say("the last good version goes on" if self.programs.running else NOTHING_YET)

    def _report(self, text: str, problems: tuple[Diagnostic, ...]) -> None:
        """Tells what is wrong with the text of a hash."""
        self.notices.set_problems(problems)
        self.tell(list(problems))
        self.events.emit("error", hash=text, **event_fields(problems))

    def _swap(self, outcome: LoadResult, loaded: LoadedProgram) -> None:
        try:
            self._ticker.repair(loaded)
            self._succession.enter(loaded, self._picture)
        except Exception as failure:
            problem = fault("the program could not take over", failure)
            self._refuse(replace(outcome, loaded=None, diagnostics=(problem,)))
            self._succession.sound_anew()
            return
        self._pending = outcome
        if outcome.diagnostics:
            self.tell(list(outcome.diagnostics))
        self._enter(outcome)

    def _enter(self, outcome: LoadResult) -> None:
        """What changes with a new program besides the picture."""
        self._compile_ms = sum(outcome.took)
        self._improvable = self._entered = outcome
        self._failure = ()
        self._teller.begin()
        self.notices.set_problems(outcome.diagnostics)
        self._screen.set_patch_keys(self.patch_keys)
        self._saves.answered(outcome)

    @property
    def patch_keys(self) -> frozenset[str]:
        """The keys that the program reads, and so takes from the tool."""
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
            self._hear()
            self._annotate()
            self._frame(screen)
            self._tell_changes()
            self._after_frame(stats)
            if due:
                deadline = max(deadline + 1 / aimed, time.monotonic() - _MADE_UP)
            due = self._wait(deadline, began)

    def _goes_on(self, began: float) -> bool:
        """Hears the player; False when it is time to end."""
        self._screen.poll()
        if self._screen.should_close:
            self.stop("closed")
        elif self.limits.frames is not None and self.frames >= self.limits.frames:
            self.stop("frames")
        elif self.limits.seconds is not None and time.monotonic() - began >= self.limits.seconds:
            self.stop("duration")
        return self.stopping is None

    def _wait(self, deadline: float, began: float) -> bool:
        """Sleeps until the next frame is due; False if a program is ready earlier, for which a frame more is drawn."""
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
        # A pause stops everything, but what is saved meanwhile is shown.
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
            if self._show(screen, self._succession.seen(main_picture(results), env, done)):
                self._drew()
        except DeviceLostError as failure:
            self._ticker.lost_in_sight(loaded, failure)

    def _recovered(self, loaded: LoadedProgram) -> None:
        """A program goes on elsewhere. What stands in for the time being is made better."""
        self._picture = None
        if self._entered is not None and self._entered.loaded is loaded:
            self._improvable = self._entered

    def _tell_changes(self) -> None:
        """Tells what runs elsewhere from now on, also those who compile for it."""
        changes = self.loader.assignment.changes()
        self._teller.changed(changes)
        if any(change.subgraph is None for change in changes):
            setup = replace(self.compiler.setup, choices=self.loader.assignment.choices)
            self._saves.change(setup)
            if self.sound is not None:
                self.sound.change(setup)

    def _show(self, screen: Screen, shown: TickResult | None) -> bool:
        """Shows the picture of a frame; False if it cannot be shown. Raises WeftError when the screen is lost."""
        if shown is None and (self._picture is None or self.loader.assignment.losses("visual")):
            # Where nothing is left to draw with, the last picture stands.
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
            self._teller.swapped(self._pending, self._pending.loaded, self._succession.waited_ms)
            self._pending = None

    def _fail(self, problems: tuple[Diagnostic, ...], otherwise: str = "it is tried again with every frame") -> None:
        """A program that fails while it runs gives way to the one before. Where there is none, it goes on trying, or
        does `otherwise`, and is told about once."""
        text = self._pending.saved.hash if self._pending else self._saves.last.hash
        went_back = self.programs.withdraw()
        if went_back:
            self._succession.sound_anew()
        self._pending = None
        if went_back or problems != self._failure:
            self._report(text, problems)
            self.say("the version before goes on" if went_back else otherwise)
        self._failure = () if went_back else problems
        # What comes next is presented, also if it is drawn where the last picture was.
        self._picture = None
        self._screen.set_patch_keys(self.patch_keys)
        self._screen.redraw()

    def _after_frame(self, stats: FrameStats) -> None:
        self.frames += 1
        figures = stats.shown(time.monotonic())
        if figures is not None:
            self._teller.frames(figures, self.sound, self._facts())
        if self._compute and (figures is not None or self.frames == 1):
            self.events.emit("compute", values=self._compute)

    def _hear(self) -> None:
        """Tells what happens to the sound."""
        for event in self.sound.events() if self.sound is not None else ():
            if event.kind == "failure":
                self._sound_fails(event)
            elif event.kind == "moved":
                self._sound_moves(event)
            elif event.kind == "loop":
                playing = self.programs.running
                if playing is not None:
                    self._teller.loop_stopped(playing.compiled, event.words)
            else:
                self._teller.heard(event)

    def _sound_moves(self, event: SoundEvent) -> None:
        """What computes sounds has failed. The processor plays on; if a device comes before it, that takes over."""
        self.loader.assignment.lose_named(event.code, event.origin, event.words)
        following = self.loader.assignment.choices.get(event.code)
        if following is not None and not following.is_cpu:
            self._succession.sound_anew()

    def _sound_fails(self, event: SoundEvent) -> None:
        """A program whose sound fails gives way to the one before, as one does whose picture fails."""
        problems = (Diagnostic("error", event.code, event.words),)
        withdrawn = self._succession.withdraw(event.number)
        if withdrawn is not None:
            self._refuse(replace(withdrawn, loaded=None, diagnostics=problems))
        elif self._succession.is_sounding(event.number):
            self._fail(problems, otherwise="the sound before goes on, if there was one")
        else:
            self._report(self._saves.last.hash, problems)

    def _facts(self) -> tuple[str, ...]:
        """What is shown of the program besides the figures of its frames."""
        width, height = self.size
        running, choices = self.programs.running, self.loader.assignment.choices
        contexts = dict.fromkeys(unit.subgraph.context for unit in running.compiled.units) if running else {}
        runs = " · ".join(f"{name} {choices[name].shown}" for name in contexts if name in choices)
        return f"{width}×{height} · compiled in {self._compile_ms:.0f} ms", runs

    def command(self, name: str) -> None:
        """What a key of the tool asks for."""
        self._commands.run(name)

    def _toggle_fullscreen(self) -> None:
        self._screen.toggle_fullscreen()

    def _screenshot(self) -> None:
        if self._picture is None:
            self._teller.mention("no screenshot: there is no picture yet")
        else:
            self._screenshots.take(as_array(self._picture).copy())


def _problems(failure: Exception) -> tuple[Diagnostic, ...]:
    """What to say about a program that failed while it ran."""
    if isinstance(failure, WeftError):
        return failure.diagnostics
    return (fault("the program failed while it ran", failure),)
