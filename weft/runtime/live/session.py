"""The live session: one loop that draws, takes over saved versions, and never waits for either.

The loop runs in the main thread. A new program takes over between two frames; until then, and as long as the text has
errors, the last good version continues.
"""

from __future__ import annotations

import gc
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from weft.backends.base import DeviceLostError, Values
from weft.cameras import watching
from weft.child import Child
from weft.errors import Diagnostic, WeftError, fault, visible
from weft.names import shown
from weft.outlets import outlet_of
from weft.runtime.compiling.compiler import Compiler, Saved
from weft.runtime.compiling.worker import CompileWorker, Finished, LateWarnings, LoadResult
from weft.runtime.films.stream_keys import StreamKeys
from weft.runtime.hands.clock import Clock
from weft.runtime.hands.inputs import Inputs
from weft.runtime.hands.link import LinkPeer
from weft.runtime.hands.parameters import ValuesFile
from weft.runtime.hands.tempo import TextTempo
from weft.runtime.inspect.cost_process import CostQuestion
from weft.runtime.live.costly_statements import CostlyStatements
from weft.runtime.live.events import FrameStats, MemoryReports, Reporter, Screenshots, facts_of
from weft.runtime.live.frame_watch import FrameWatch
from weft.runtime.live.outlet_pictures import Outlets, Sender
from weft.runtime.live.pixel_questions import PixelQuestions
from weft.runtime.live.record import Recorder
from weft.runtime.live.remote import RemoteControl
from weft.runtime.live.saves import Saves, without_overtaken
from weft.runtime.live.text_follower import TextFollower
from weft.runtime.live.text_pipe import NOT_PIPED_YET, TextPipe
from weft.runtime.live.ticker import Ticker
from weft.runtime.live.transition import TransitionPolicy, TransitionScheduler
from weft.runtime.live.turned import Glide, NotTurnedError, NumbersInHand, TextWriter, TurnedNumbers
from weft.runtime.program.coordinator import pictures_of
from weft.runtime.program.fallback import settle
from weft.runtime.program.files import SetList, read_text
from weft.runtime.program.program import LoadedProgram, ProgramLoader, Programs
from weft.runtime.screens.screen import Overlay, Screen
from weft.runtime.screens.text_view import TextStyle
from weft.runtime.sound.player import Sound
from weft.runtime.sound.renderer import SoundEvent

# While a program is loaded, the drawing thread gets Python's lock back after this long instead of after 5 ms.
_SWITCH_SECONDS = 0.0005
# Sleeping is accurate to about a millisecond. The display waits for the rest of the time.
_SLEEP_SLACK = 0.001
# Keys are polled at least at this interval, in seconds, even if there are fewer frames.
_GLANCE = 0.05
# After a late frame, faster frames make up for at most this many seconds.
_MADE_UP = 0.1

# The most commands of other programs that wait for the next frame.
_MOST_REQUESTS = 64


@dataclass(frozen=True)
class Limits:
    """When a session ends by itself: after a number of seconds or frames; None: never."""

    seconds: float | None = None
    frames: int | None = None


@dataclass
class Session:
    """One performance of the patches of a set list.

    With `fits`, pictures are made to fit the screen. Screenshots and recordings of a patch go to its `folder`, and the
    first recording to `record`, if that is given; with `text_over`, the text that plays is over both. `keeper` gives
    the file that keeps the values of the parameters of a patch, if there is one. The text of a patch is changed only if
    it `is_writable`. `senders` send the values of contexts, by their names.
    """

    patches: SetList
    compiler: Compiler
    reporter: Reporter
    inputs: Inputs
    sound: Sound
    threads: int = 1
    fits: bool = True
    folder: Callable[[Path], Path] = lambda patch: patch.parent
    record: Path | None = None
    text_over: TextStyle | None = None
    keeper: Callable[[Path], ValuesFile | None] = lambda path: None
    is_writable: Callable[[Path], bool] = lambda path: True
    senders: Mapping[str, Sender] = field(default_factory=dict)
    stream_keys: StreamKeys = field(default_factory=StreamKeys)
    limits: Limits = field(default_factory=Limits)
    policy: TransitionPolicy = field(default_factory=TransitionPolicy)
    bpm: float | None = None
    """The tempo at the beginning, if it is not that of the text."""
    link: LinkPeer | None = None
    pipe: TextPipe | None = None
    """Gives the texts, if there is no file."""
    nothing_yet: str = "nothing to show yet: fix the file and save it"
    clock: Clock = field(default_factory=Clock)
    frames: int = 0
    stopping: str | None = None

    def __post_init__(self) -> None:
        self.programs = Programs(self.compiler.loader)
        self._finished = threading.Event()
        """Set when the loop should look for a result, or end."""
        self._worker = CompileWorker(self.compiler.setup, self.programs, self.clock, self.inputs, self._finished)
        self._saves = Saves(self.path, self._worker, self.programs, self.reporter.events, self.fits, self.pipe)
        self._worker.next_text = self._next_text
        self._transitions = TransitionScheduler(self.programs, self.policy, self.clock, self.inputs, self.sound)
        self._ticker = Ticker(self.loader, self.clock, self.inputs, self.sound, self.reporter, self.threads)
        self._frame_watch = FrameWatch(self.reporter, self.programs)
        self._screenshots = Screenshots(self._base, self.reporter, self.text_over)
        self._outlets = Outlets(self.reporter, self.sound, self.stream_keys)
        self._recorder = Recorder(self.reporter, self.sound, self._base, self.record, self.text_over)
        self._text = TextFollower(self.inputs.parameters)
        self._memory = MemoryReports(self.reporter)
        self._pointed = PixelQuestions(self.compiler.setup.permissions)
        self._costly = CostlyStatements()
        self._screen = Screen()
        self._picture: Values | None = None
        """The picture of the first window."""
        self._shown: Mapping[str, Values] = {}
        """The pictures that are shown, by their targets; that of the first window has none."""
        self._given: Mapping[str, Values] = {}
        """The pictures for other programs, by the names of their outlets."""
        self._entered: LoadResult | None = None
        """The result of the program that plays."""
        self._refused: LoadResult | None = None
        """The last result of a text that was refused."""
        self._previous: LoadResult | None = None
        """The result of the program to go back to."""
        self._late_warnings: LateWarnings | None = None
        """The warnings about a program that were found after its trial, until it plays and they are reported."""
        self._is_new = False
        """Whether that program has not drawn a frame yet."""
        self._is_improvable = False
        """Whether that program can be improved once it has drawn a frame."""
        self._failure: tuple[Diagnostic, ...] = ()
        """The last failure of the program that plays."""
        self._compute: list[float] = []
        self._values: dict[Path, ValuesFile] = {}
        """The files of values of the patches that have played."""
        self._text_tempo = TextTempo(self.clock.tempo)
        self._requests: deque[tuple[str, str, float]] = deque(maxlen=_MOST_REQUESTS)
        self._overlay = Overlay()
        self._turned = TurnedNumbers()
        self._glide = Glide(self._saves, self.policy, self.clock)
        self._in_hand = NumbersInHand(self._turned, self.reporter)
        self._writer = TextWriter(self._saves, self.inputs.parameters, self._turned, self.reporter, self.is_writable)
        self.remote = RemoteControl(
            self._saves, self._turned, self.inputs.parameters, self.clock, self.sound,
            self._ticker.drawn, self.reporter.events, self.reporter.mention,
        )  # fmt: skip

    def expect(self, ahead: Child | None = None) -> None:
        """Starts the compile process before the performance begins, and the sound process if the file mentions sounds.
        For `ahead` see `CompileProcess`."""
        self._worker.start(ahead)
        words = "|".join(word for spec in self.compiler.contexts if spec.streams for word in spec.statements)
        texts = (read_text(path).data or b"" for path in self.patches.patches)
        if any(re.search(rf"\b({words})\b".encode(), text) for text in texts):
            self.sound.expect()

    def begin(self, room: tuple[int, int] | None = None) -> LoadResult:
        """Compiles the current state of the file, before anything is shown, for a screen with this much room, and waits
        for the result. The result is returned without its program, because a caller who kept that would keep everything
        open that it has opened. A save in the meantime replaces the text. An exception such as KeyboardInterrupt may
        interrupt it."""
        self.loader.stream_getter = self.sound.getter
        self.loader.listener = self.sound.listen
        self._read_values()
        outcome = None
        saved = self._saves.begin(room)
        if saved.problem:
            known = () if saved.problem == NOT_PIPED_YET else self.compiler.compile(saved).diagnostics
            outcome = LoadResult(saved, None, known)
        while outcome is None:
            self._finished.wait(_GLANCE)
            self._finished.clear()
            self.reporter.waiting(self._worker.waited_for, self._worker.is_starting)
            # A refused text that was saved again in the meantime does not count.
            finished = reversed(self._take_finished().results)
            outcome = next((each for each in finished if each.loaded or each.saved is self._saves.last), None)
        if outcome.loaded is not None:
            self._begin_tempo(outcome.loaded)
            self.programs.enter(outcome.loaded)
            self._transitions.begin(outcome.loaded)
        self._entered = outcome
        return replace(outcome, loaded=None)

    def close(self) -> None:
        """Ends the processes and threads of the session. May be called twice."""
        self._frame_watch.close()
        for part in (self.remote, self._pointed, self._costly, self._saves, self._worker, self.sound, self.inputs):
            part.close()
        if self.link is not None:
            self.link.close()
        for sender in self.senders.values():
            sender.close()
        for values in self._values.values():
            if (note := values.close()) is not None:
                self.reporter.echo(note)

    def run(self, screen: Screen, again: Callable[[WeftError], Screen] | None = None) -> None:
        """Runs the loop, after `begin`, until the user or a limit ends it. When the screen is lost, `again` opens
        another one, or raises the error that it is given. Raises WeftError if there is none."""
        self._screen = screen
        interval = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_SECONDS)
        # The objects that exist now will stay. Checking them in every garbage collection would delay frames.
        gc.collect()
        gc.freeze()
        try:
            assert self._entered is not None, "it has begun"
            self._saves.answered(self._entered)
            self._enter(self._entered)
            if self.record is not None:
                self._recorder.start(*self._recorded)
                self._recorder.begin()
            began = time.monotonic()
            while (failure := self._loop(began)) is not None:
                if again is None:
                    raise failure
                self._screen = again(failure)
                # Everything that the last screen showed is to be shown again.
                self._picture, self._overlay = None, Overlay()
                self._follow_program()
        finally:
            self._take_sound_events()
            self._recorder.close()
            self._outlets.close()
            self.close()
            gc.unfreeze()
            sys.setswitchinterval(interval)
        self.reporter.events.emit("stopped", reason=self.stopping or "closed")

    def stop(self, reason: str) -> None:
        """Ends the loop after the current frame. May be called from a signal handler, which must not wait for a lock,
        since it may have interrupted the holder of that lock. So nothing is woken; the loop checks for this often
        enough."""
        self.stopping = reason

    @property
    def path(self) -> Path:
        """The patch that plays, or is about to."""
        return self.patches.current

    @property
    def _base(self) -> Path:
        """The beginning of the names of screenshots and recordings."""
        return self.folder(self.path) / self.path.stem.strip("<>")

    @property
    def loader(self) -> ProgramLoader:
        return self.compiler.loader

    @property
    def title(self) -> str:
        """The title of a window: the patch that plays."""
        running = self.programs.running
        name = self.path.name if running is None else Path(running.compiled.file).name
        return f"{visible(name)} · weft"

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the picture."""
        running = self.programs.running
        return running.size if running else (1280, 720)

    @property
    def targets(self) -> list[str]:
        """The targets of the pictures of the program that plays, that of the first window first."""
        running = self.programs.running
        return [picture.target for picture in running.compiled.pictures] if running else []

    @property
    def recorded(self) -> list[str]:
        """A line for each film that was recorded."""
        return self._recorder.written

    @property
    def _recorded(self) -> tuple[tuple[int, int], float, int]:
        """Size, frames a second and samples a second of a recording."""
        settings, picture = self.settings, self._picture
        size = self.size if picture is None else (picture.shape[1], picture.shape[0])
        return size, settings.get("fps", 60), round(settings.get("rate", 48000))

    @property
    def settings(self) -> Mapping[str, float]:
        running = self.programs.running
        return running.compiled.settings if running else {}

    @property
    def patch_keys(self) -> frozenset[str]:
        """The keys that the program reads; they control weft only together with Ctrl."""
        running = self.programs.running
        uniforms = running.compiled.uniforms if running else frozenset[str]()
        return frozenset(name.split("@")[1] for name in uniforms if name.startswith("key@"))

    # --- patches --------------------------------------------------------------------------------------------------

    def load(self, path: Path) -> None:
        """Plays another patch as soon as it is compiled, with its own state and parameters."""
        self._open(self.patches.load(path))

    def _load(self, name: str) -> None:
        """Plays the patch with this name: one of the set list, or a file in the folder of the one that plays."""
        listed = next((path for path in self.patches.patches if name in (path.name, path.stem)), None)
        path = listed or self.path.parent / (name if name.endswith(".weft") else f"{name}.weft")
        # The sender of a name may be on another machine.
        is_beside = listed is not None or Path(name).name == name
        problem = read_text(path).problem if is_beside else "it is not in the folder of the patch that plays"
        if problem is None:
            self.load(path)
        else:
            self.reporter.mention(f"{path} cannot be played: {problem}")

    def _go(self, step: int) -> None:
        """Plays a later patch of the set list, or an earlier one."""
        path = self.patches.move(step)
        if path is None:
            self.reporter.mention("there is no other patch: weft run a.weft b.weft plays several")
        else:
            self._open(path)

    def _next_text(self) -> Saved | None:
        """The text of the next patch of the set list as it is now, if there is one. For any thread."""
        path = self.patches.neighbour(1)
        return None if path is None else self._saves.ahead(path)

    def _open(self, path: Path) -> None:
        self._read_values()
        self._saves.open(path)
        self._screen.keep_size()
        self._screenshots.base = self._recorder.base = self._base
        self.reporter.events.emit("patch", file=str(path))
        self.reporter.mention(f"{path.name} · {self.patches.place}")

    def _read_values(self) -> None:
        """Restores the values of the parameters of a patch, when it plays for the first time."""
        path = self.path
        values = None if path in self._values else self.keeper(path)
        if values is not None:
            self._values[path] = values
            if (note := values.read()) is not None:
                self.reporter.mention(note)

    # --- saves ----------------------------------------------------------------------------------------------------

    def _take_in(self) -> None:
        """Takes finished results: schedules the latest program, and reports errors."""
        self._finished.clear()
        self.reporter.waiting(self._worker.waited_for, self._worker.is_starting)
        finished = self._take_finished()
        results = list(without_overtaken(finished.results, self._saves.accepted))
        latest = next((outcome for outcome in reversed(results) if outcome.loaded is not None), None)
        for outcome in results:
            if outcome.loaded is None:
                self._refuse(outcome, outcome.diagnostics)
            elif outcome is latest:
                if self.programs.running is None:
                    self._begin_tempo(outcome.loaded)
                try:
                    if not self._glide.begins(outcome, self._entered):
                        self._transitions.offer(outcome)
                except WeftError as failure:
                    self._refuse(outcome, failure.diagnostics)
                else:
                    self._saves.answered(outcome)
                    self.remote.answered(outcome.saved, outcome.diagnostics, True)
        due = self._transitions.due()
        if due is not None:
            self._refuse(due, due.diagnostics) if due.loaded is None else self._swap(due, due.loaded)
        for better in finished.improvements:
            for move in better.moves:
                if not settle(self.loader, move):
                    # It cannot move, and is improved in place.
                    self._note_move(move.loaded)
            self.sound.improve(better.codes)
            running = self.programs.running
            bridged, reduced = (running.bridging, running.reduced) if running is not None else ((), ())
            self.reporter.events.emit(
                "tier", hash=better.hash, tier=better.tier, compile_ms=round(better.took, 3), bridged=bridged,
                reduced=reduced,
            )
        self._report_late_warnings()

    def _report_late_warnings(self) -> None:
        """Reports warnings about the program that plays which were found after its trial. If the program waits for its
        beat, they are reported when it plays."""
        found, entered = self._late_warnings, self._entered
        if found is not None and entered is not None and entered.saved is found.saved:
            self._late_warnings = None
            for warning in found.warnings:
                self.reporter.remark(warning)

    def _take_finished(self) -> Finished:
        """Takes what the worker has finished, and reports restarts of its process."""
        finished = self._worker.take()
        for found in finished.afterthoughts:
            self._late_warnings = found
        for line in finished.restarts:
            self.reporter.restarted("compile", line)
        return finished

    def _refuse(self, outcome: LoadResult, problems: tuple[Diagnostic, ...]) -> None:
        if outcome.saved.is_turned:
            # Not every number has a meaning on its way, such as which text of a menu is chosen.
            if not self._glide.arrive():
                self._turned.refuse()
                self.reporter.mention(f"the number stays as it is: {problems[0].message}")
            return
        outcome = replace(outcome, loaded=None)
        self._refused = replace(outcome, diagnostics=problems)
        self._saves.answered(outcome)
        self.remote.answered(outcome.saved, problems, False)
        self.reporter.problems(outcome.saved.hash, problems, outcome.saved.moment)
        self.reporter.echo("the last good version keeps playing" if self.programs.running else self.nothing_yet)

    def _swap(self, outcome: LoadResult, loaded: LoadedProgram) -> None:
        try:
            if self.loader.assignment.has_lost:
                self._ticker.repair(loaded, self._ticker.env(loaded))
                self._note_moves()
            self._transitions.enter(loaded, {} if self._picture is None else self._shown, outcome.saved.is_turned)
        except Exception as failure:
            self._refuse(outcome, (fault("the program could not take over", failure),))
            self._transitions.restart_sound()
            return
        self._is_new = True
        if outcome.diagnostics and not outcome.saved.is_turned:
            self.reporter.show(outcome.diagnostics)
        self._enter(outcome)

    def _enter(self, outcome: LoadResult) -> None:
        """Updates all that depends on the program that plays."""
        if self._entered is not None and self._entered.loaded is self.programs.before:
            self._previous = self._entered
        self._entered, self._is_improvable = outcome, True
        self._saves.plays(outcome.saved)
        if outcome.saved.is_turned:
            self._turned.accept()
        else:
            with self._in_hand.following(self._screen.panel, self.path):
                self._turned.follow(outcome.saved.data)
        self._failure = ()
        self._pointed.forget(self._screen)
        self._outlets.retry()
        self.reporter.begin()
        # A program that has waited for its moment does not hide the errors of a later save.
        latest = max(outcome, self._refused or outcome, key=lambda each: each.saved.moment)
        self.reporter.notices.set_problems(latest.diagnostics)
        self._follow_program()
        if (running := self.programs.running) is not None:
            self._text_tempo.follow(running.compiled.file, running.compiled.settings["bpm"])

    def _follow_program(self) -> None:
        """Takes over the text, the keys, the name and the parameters of the program that plays."""
        self._text.follow(self._entered, self.clock.tempo.bpm)
        if self._entered is not None:
            self.remote.follow(self._entered.saved)
        self._screen.set_patch_keys(self.patch_keys)
        running = self.programs.running
        if running is not None:
            self._screen.set_title(self.title)
            self.reporter.watching(watching(running.live))
            for note in self.inputs.parameters.adopt(running.compiled.parameters, running.compiled.file):
                self.reporter.mention(note)

    # --- the tempo ------------------------------------------------------------------------------------------------

    def _begin_tempo(self, loaded: LoadedProgram) -> None:
        """Begins to count beats in the tempo of the first program, if no other one was asked for."""
        self._text_tempo.begin(loaded.compiled.file, loaded.compiled.settings["bpm"])
        if self.bpm is not None:
            self.clock.tempo.begin(self.bpm, "option")

    def _follow_tempo(self) -> None:
        """Lets the tempo change, before a frame. The sound follows."""
        tempo, now = self.clock.tempo, self.clock.now()
        if self.link is not None and not self.clock.paused and self.link.follow(now):
            count = self.link.peers
            self.reporter.mention(f"Link: {count or 'no'} other program{'s' * (count != 1)}")
        if tempo.advance(now, self.sound.ahead(now), self.sound.changed):
            self.sound.inform(self.clock, tempo.beats.inputs)
        self.reporter.tempo(tempo.bpm, tempo.source)

    # --- frames ---------------------------------------------------------------------------------------------------

    def _loop(self, began: float) -> WeftError | None:
        """Runs frame after frame until the end. Returns the error of a screen that is lost."""
        try:
            self._frames(began)
        except WeftError as failure:
            if failure.diagnostics[0].code != "display-lost":
                raise
            return failure
        return None

    def _frames(self, began: float) -> None:
        aimed, stats = 0.0, FrameStats(60)
        deadline, due = began, True
        while self._goes_on(began):
            self._saves.follow(self._screen.room)
            self._take_in()
            while self._requests:
                self.command(*self._requests.popleft())
            if text := self._glide.text():
                self._saves.turn(text)
            else:
                self._turned.pass_on(self._saves)
            if self.settings.get("fps", 60) != aimed:
                aimed = self.remote.fps = self.settings.get("fps", 60)
                stats = FrameStats(aimed)
            self._take_sound_events()
            overlay = self.reporter.notices.overlay()
            if overlay != self._overlay:
                self._overlay = overlay
                self._screen.annotate(overlay)
            self._text.cursor = self.remote.cursor
            self._text.show(self.reporter.notices.problems, self._screen, self._recorder, self._screenshots)
            self._pointed.follow(self._screen, self._entered, self._ticker.env)
            self._worker.keep_off()
            with self._frame_watch:
                self._frame()
            self._recorder.follow(self._picture, self.clock, *self._recorded)
            if (running := self.programs.running) is not None:
                folder = Path(running.compiled.file).parent
                self._outlets.follow(self._given, folder, *self._recorded[1:], self.clock)
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

    def _frame(self) -> None:
        loaded = self.programs.running
        # A pause stops everything, but a version that is saved during it is shown.
        stands_still = self.clock.paused and not self._is_new and self._picture is not None
        if loaded is None or stands_still:
            self.sound.follow(self.clock, {}, {})
            self._screen.redraw()
            return
        self._follow_tempo()
        self.clock.tick()
        env = self._ticker.env(loaded)
        done: dict[int, Values] = {}
        try:
            results = self._ticker.run(loaded, env, done)
        except WeftError as failure:
            self._fail(failure.diagnostics)
            return
        except Exception as failure:
            self._fail((fault("the program failed while it ran", failure),))
            return
        finally:
            self._note_moves()
        self._memory.follow(loaded, env.abstime, self._entered)
        computed = [result.array.reshape(-1) for result in results if result.context == "compute"]
        self._compute = [float(value) for values in computed for value in values]
        for result in results if self.senders else ():
            if (sender := self.senders.get(result.context)) is not None:
                sender.send(result.numbers, time.monotonic())
        try:
            pictures = pictures_of(results)
            if self._show(self._transitions.visible(pictures, env, done)):
                self._drew()
            self._given = {
                pictures[target].target: values for target, values in self._shown.items()
                if outlet_of(pictures[target].target)
            }  # fmt: skip
        except DeviceLostError as failure:
            self._ticker.recover(loaded, failure, env, {})
            self._note_moves()

    def _note_moves(self) -> None:
        """Notes which programs have moved to another device."""
        while self._ticker.moved:
            self._note_move(self._ticker.moved.pop())

    def _note_move(self, loaded: LoadedProgram) -> None:
        """Notes that a program has moved to another device, where its code is to be improved."""
        self._picture = None
        if self._entered is not None and self._entered.loaded is loaded:
            self._is_improvable = True

    def _report_changes(self) -> None:
        """Reports what runs on another device from now on, to the user and to the compile and sound processes."""
        changes = self.loader.assignment.changes()
        self.reporter.changed(changes)
        if any(change.subgraph is None for change in changes):
            setup = replace(self.compiler.setup, choices=self.loader.assignment.choices)
            self._worker.change(setup)
            self.sound.change(setup)

    def _show(self, shown: Mapping[str, Values]) -> bool:
        """Shows the pictures of a frame, by their targets; False if the first one cannot be shown. Raises WeftError
        when the screen is lost."""
        values, self._shown = shown.get(""), shown
        # The other pictures come first, since the first window waits for its monitor.
        self._screen.show_others({name: each for name, each in shown.items() if name and not outlet_of(name)})
        # If no device is left that can draw, the last picture stays.
        stays = values is None and (self._picture is None or self.loader.assignment.losses("visual"))
        if stays or (values is not None and values is self._picture):
            self._screen.redraw()
            return True
        try:
            self._screen.present(np.zeros((self.size[1], self.size[0], 4), np.uint8) if values is None else values)
        except WeftError as failure:
            if failure.diagnostics[0].code != "picture-too-large":
                raise
            self._fail(failure.diagnostics)
            return False
        self._picture = values
        return True

    def _drew(self) -> None:
        """Notes that the program that plays has drawn a frame."""
        self.programs.drew()
        if self.programs.before is None:
            # Everything that it has opened, such as films, ends with it.
            self._previous = None
        entered, loaded = self._entered, self._entered.loaded if self._entered is not None else None
        if entered is None or loaded is None:
            return
        if self._is_improvable:
            self._worker.improve(entered.saved.hash, loaded)
        if self._is_new:
            self.reporter.swapped(entered, loaded, self._transitions.waited_ms)
        self._is_new = self._is_improvable = False

    def _fail(self, problems: tuple[Diagnostic, ...], otherwise: str = "it is tried again with every frame") -> None:
        """Goes back from a program that fails to the previous one. If there is none, the program stays and the failure
        is reported once. `otherwise` says in words what happens then."""
        # What plays may be older than the last save, which was refused, or waits.
        failed = self._saves.last if self._entered is None else self._entered.saved
        went_back = self.programs.withdraw()
        if went_back:
            self._entered, self._is_improvable = self._previous, True
            self._transitions.restart_sound()
        self._is_new = False
        if went_back or problems != self._failure:
            self.reporter.problems(failed.hash, problems)
            self.reporter.echo("the previous version keeps playing" if went_back else otherwise)
        self._failure = () if went_back else problems
        # The next picture is presented, even if it is in the same memory as the last one.
        self._picture = None
        self._follow_program()
        self._screen.redraw()

    def _after_frame(self, stats: FrameStats) -> None:
        self.frames += 1
        figures = stats.shown(time.monotonic())
        if figures is not None:
            choices = self.loader.assignment.choices
            facts = facts_of(self.size, self.programs.running, choices, self._entered)
            self.reporter.frames(figures, self.sound.figures, (*facts, *self._expensive()))
            if (running := self.programs.running) is not None:
                self.reporter.pace(figures, self.settings.get("fps", 60), running, self._entered)
                self.reporter.sources({shown(name): live.problem() for name, live in running.live.items()})
            for values in self._values.values():
                if (note := values.keep()) is not None:
                    self.reporter.mention(note)
        if self._compute and (figures is not None or self.frames == 1):
            self.reporter.events.emit("compute", values=self._compute)
        self.reporter.parameters(self.inputs.parameters.values)

    def _expensive(self) -> tuple[str, ...]:
        """Lines about the most expensive statements of what plays, while figures are shown."""
        entered, loaded = self._entered, self.programs.running
        if entered is None or loaded is None or not self.reporter.notices.figures_wanted:
            return ()
        name = entered.saved.name or loaded.compiled.file
        return self._costly.of(CostQuestion(name, entered.saved.data, self.compiler.setup.permissions))

    # --- sound ----------------------------------------------------------------------------------------------------

    def _take_sound_events(self) -> None:
        """Handles the events of the sound."""
        for event in self.sound.events():
            if event.kind == "failure":
                self._sound_failed(event)
            elif event.kind == "moved":
                self._sound_moved(event)
            elif event.kind == "loop":
                playing = self.programs.running
                if playing is not None:
                    self.reporter.loop_stopped(playing.compiled, event.words)
            elif event.kind == "lost-memory":
                self._memory.heard(event.words.split(), event.seconds, self._entered)
            else:
                self.reporter.heard(event)

    def _sound_moved(self, event: SoundEvent) -> None:
        """The device that computed sounds has failed, and the CPU continues. If another device is preferred to the CPU,
        that one takes over."""
        self.loader.assignment.lose_named(event.code, event.origin, event.words)
        following = self.loader.assignment.choices.get(event.code)
        if following is not None and not following.is_cpu:
            self._transitions.restart_sound()

    def _sound_failed(self, event: SoundEvent) -> None:
        """Goes back from a program whose sound fails to the previous one, as with a program whose picture fails."""
        problems = (Diagnostic.of(event.code, event.words),)
        withdrawn = self._transitions.withdraw(event.number)
        if withdrawn is not None:
            self._refuse(withdrawn, problems)
        elif self._transitions.is_sounding(event.number):
            self._fail(problems, otherwise="the previous sound keeps playing, if there was one")
        elif self._entered is not None:
            self.reporter.problems(self._entered.saved.hash, problems)

    # --- commands -------------------------------------------------------------------------------------------------

    def request(self, name: str, argument: str = "") -> None:
        """Executes a command between two frames. May be called from any thread."""
        self._requests.append((name, argument, self.clock.now()))

    def command(self, name: str, argument: str = "", moment: float | None = None) -> None:
        """Executes a command: that of one of the tool's keys (see `weft.keys`), or of another program, perhaps with an
        argument. It was given at a moment of the clock, by default now."""
        match name:
            case "leave":
                self.stop("closed")
            case "pause":
                self.reporter.paused(self._transitions.toggle_pause())
            case "restart":
                self.clock.restart()
                self.sound.restart()
                self._memory.restart(self.programs.running, self._entered)
                self.reporter.mention("the clock restarts")
            case "next":
                self._go(1)
            case "previous":
                self._go(-1)
            case "tap":
                self.reporter.tapped(self.clock.tempo.tap(self.clock.now() if moment is None else moment))
            case "fullscreen" | "source" | "pins":
                self._screen.toggle(name)
            case "screenshot":
                self._screenshots.take(self._picture)
            case "record":
                self._recorder.toggle(*self._recorded)
            case "errors":
                self.reporter.notices.toggle_errors()
            case "figures":
                self.reporter.notices.toggle_figures()
            case "panel":
                self._screen.panel.toggle()
            case "write":
                with self._in_hand.following(self._screen.panel, self.path):
                    self._entered = self._writer.write(self._entered)
                    self._text.follow(self._entered, self.clock.tempo.bpm)
            case "load":
                self._load(argument)
            case "numbers":
                self._in_hand.toggle(self._screen.panel, self.path)
            case "number":
                try:
                    self._turned.turn(self._saves.accepted.data, argument)
                except NotTurnedError as failure:
                    self.reporter.mention(str(failure))
            case _:
                self.reporter.mention(f"there is no command {name} in this version")
