"""The thread that has texts compiled in another process, and loads the programs: always the latest text, unless an
earlier one is nearly done.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from weft.child import Child
from weft.codegen.kernel import Unit
from weft.errors import Diagnostic, WeftError, fault
from weft.runtime.compiling.compiler import SETTLED, CompileResult, Saved, passes
from weft.runtime.compiling.process import GLANCE, CompileProcess, CompilerDiedError, OptimizeResult, TrialReport
from weft.runtime.hands.clock import Clock, Moment
from weft.runtime.hands.inputs import Inputs
from weft.runtime.program.compiled import CompiledProgram
from weft.runtime.program.fallback import Migration, moves
from weft.runtime.program.files import FileState, look
from weft.runtime.program.findings import NOT_A_NUMBER
from weft.runtime.program.program import LoadedProgram, ProgramLoader, Programs, Setup, UnopenedError

# A text that has cost more than this many processor seconds is given up when a newer one waits. After each text that is
# given up, the next may cost four times as much; otherwise saves in quick succession would never be seen.
_PATIENCE = 0.5
_MORE_PATIENCE = 4
# The median cost of the last texts predicts the next. A text that has cost half to twice as much is nearly done.
_LAST = 5
_NEARLY = 2.0

# A process that ends within this many seconds of its start is not restarted before the next text.
_YOUNG = 5.0

# The seconds within which the thread has to end.
_THREAD_LEAVES = 2.0

# Seconds without another task after which it looks whether the next text is still to be compiled.
_IDLE = 1.0

REMEMBERED = 32
"""The number of earlier texts that need not be compiled again. Their programs take some 100 kB each."""


@dataclass(frozen=True)
class LoadResult:
    """The result of a saved text: a loaded program, or the diagnostics that say why there is none.

    `files` are the states of the files that the text names, when they were read or found missing. `took` has the
    milliseconds spent on the text, on the graph, and on compiling and loading the kernels. `from_cache` says that the
    text was compiled earlier. For `stages` see `CompileResult`.
    """

    saved: Saved
    loaded: LoadedProgram | None
    diagnostics: tuple[Diagnostic, ...]
    files: Mapping[Path, FileState] = field(default_factory=dict)
    took: tuple[float, float, float] = (0.0, 0.0, 0.0)
    from_cache: bool = False
    stages: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Improvement:
    """The program of a text (by its hash) runs at a better tier; its code took `took` milliseconds. `codes`, by the
    hashes of the units, are for the processes that play some of them. The thread that draws completes the `moves`."""

    hash: str
    tier: int
    took: float
    codes: Mapping[str, object]
    moves: tuple[Migration, ...] = ()


@dataclass(frozen=True)
class LateWarnings:
    """Warnings about a saved text that were found after its program could play."""

    saved: Saved
    warnings: tuple[Diagnostic, ...]


@dataclass(frozen=True)
class Finished:
    """What a worker has finished, oldest first: texts, later warnings about them, improvements, and restarts of its
    process, each with a line that gives the reason."""

    results: list[LoadResult] = field(default_factory=list)
    afterthoughts: list[LateWarnings] = field(default_factory=list)
    improvements: list[Improvement] = field(default_factory=list)
    restarts: list[str] = field(default_factory=list)


def load(
    saved: Saved, made: CompileResult, loader: ProgramLoader, before: LoadedProgram | None, from_cache: bool = False
) -> LoadResult:
    """Loads a compiled text. `from_cache` says that it was compiled earlier."""
    if made.compiled is None:
        return LoadResult(saved, None, made.diagnostics, made.files)
    if before is not None and before.compiled.file != made.compiled.file:
        before = None
    started = time.perf_counter()
    try:
        loaded = loader.prepare(made.compiled, made.compiled.size, before)
    except UnopenedError as failure:
        return LoadResult(saved, None, failure.placed(made.places).diagnostics, made.files)
    except WeftError as failure:
        return LoadResult(saved, None, failure.diagnostics, made.files)
    loading = (time.perf_counter() - started) * 1e3
    parsing, graph, kernels = (0.0, 0.0, 0.0) if from_cache else made.compiled.took
    diagnostics = (*made.diagnostics, *loaded.left_out)
    stages = {**({} if from_cache else made.stages), "loaded": time.monotonic()}
    return LoadResult(saved, loaded, diagnostics, made.files, (parsing, graph, kernels + loading), from_cache, stages)


class Remembered:
    """The compiled programs of earlier texts, so that an undo is immediate."""

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[object, ...], CompileResult] = OrderedDict()

    def find(self, saved: Saved) -> CompileResult | None:
        """The result of a text, if all files that it names are unchanged."""
        made = self._made.get(_key(saved))
        if made is None or saved.problem:
            return None
        if not all(look(path, state.kind).same_contents(state) for path, state in made.files.items()):
            return None
        self._made.move_to_end(_key(saved))
        return made

    def coded(self, units: Mapping[str, Unit]) -> None:
        """Notes code of units, by their hashes, for the devices that should run them, in place of what bridged."""
        for key, made in self._made.items():
            compiled = made.compiled
            if compiled is not None and any(unit.bridges and unit.hash in units for unit in compiled.units):
                coded = tuple(units.get(unit.hash, unit) if unit.bridges else unit for unit in compiled.units)
                self._made[key] = replace(made, compiled=replace(compiled, units=coded))

    def add(self, saved: Saved, made: CompileResult) -> None:
        """Remembers a result that has passed its trial."""
        self._made[_key(saved)] = made
        while len(self._made) > REMEMBERED:
            self._made.popitem(last=False)


def _key(saved: Saved) -> tuple[object, ...]:
    """All that the result of a text depends on, except for other files."""
    return saved.name, saved.data, saved.room


class PreemptionPolicy:
    """How many processor seconds a text may cost before a newer one takes its place. Other work of the machine does not
    count."""

    def __init__(self) -> None:
        self._costs: deque[float] = deque(maxlen=_LAST)
        self._given_up = 0

    def runs_out(self, spent: float | None) -> bool:
        """Whether to give up a text that has cost `spent`, which is None before work on it has begun."""
        if spent is None:
            return True
        usual = float(np.median(self._costs)) if self._costs else 0.0
        is_nearly_done = usual / _NEARLY <= spent <= usual * _NEARLY
        if is_nearly_done or spent <= _PATIENCE * _MORE_PATIENCE**self._given_up:
            return False
        self._given_up += 1
        return True

    def finished(self, spent: float | None) -> None:
        """Records that a text was compiled and tried out, and what it cost."""
        self._given_up = 0
        if spent is not None:
            self._costs.append(spent)


@dataclass(frozen=True)
class _Unheard:
    """A text that has passed its trial, the number of its request, and where its result will be `remembered` after its
    sound was listened to."""

    number: int
    saved: Saved
    made: CompileResult
    remembered: Remembered


@dataclass(frozen=True)
class _Move:
    """A request to make what a program bridges ready on its devices, with the number of the compile request that was
    answered with its code."""

    text: str
    loaded: LoadedProgram
    improved: OptimizeResult
    number: int


class _Mover:
    """A thread that waits for drivers. It works on the latest task only."""

    def __init__(self, work: Callable[[_Move], None]) -> None:
        self._work = work
        self._condition = threading.Condition()
        self._task: _Move | None = None
        self._thread: threading.Thread | None = None

    def submit(self, task: _Move) -> None:
        """Queues a task, in place of one that still waits."""
        with self._condition:
            self._task = task
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="weft-move", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            with self._condition:
                task, self._task = self._task, None
                if task is None:
                    self._thread = None
                    return
            with suppress(Exception):  # the bridge stays
                self._work(task)


class _LookAhead:
    """The task of compiling the text that is likely to be asked for next."""


class CompileWorker:
    """The thread and its compile process. A text that is replaced before its turn is never compiled. When there is
    nothing else to do, the next text is compiled ahead."""

    def __init__(self, setup: Setup, programs: Programs, clock: Clock, inputs: Inputs, wake: threading.Event) -> None:
        """`clock` and `inputs` give the moment at which a new program is tried out. Kernels of the program that plays
        can be reused. `wake` is set when something can be taken."""
        self._loader = programs.loader
        self._programs = programs
        self._clock = clock
        self._inputs = inputs
        self._wake = wake
        self._process = CompileProcess(setup, self._note_process_end)
        self._started = 0.0
        self._remembered = Remembered()
        self._unheard: _Unheard | None = None
        """What the process listens to, unless a new process has taken its place."""
        self._condition = threading.Condition()
        self._waiting: Saved | None = None
        self._at: Saved | None = None
        self._improvable: tuple[str, LoadedProgram] | None = None
        self._mover = _Mover(self._move)
        self._moved: LoadedProgram | None = None
        """The last program whose bridged parts were handed to the mover."""
        self._coded: dict[str, Unit] = {}
        """The units that the mover has made ready, by their hashes, until they are remembered."""
        self.next_text: Callable[[], Saved | None] = lambda: None
        """Gives the text that is likely to be asked for next. The thread of the worker calls it."""
        self._refused_ahead: tuple[object, ...] = ()
        """The last text that was compiled ahead and refused."""
        self._finished = Finished()
        self._better_elsewhere: set[str] = set()
        """The hashes of units that are played elsewhere and already have better code."""
        self._change: Setup | None = None
        self._ended = False
        self._has_process_ended = False
        self._patience = PreemptionPolicy()
        self._thread = threading.Thread(target=self._run, name="weft-compile", daemon=True)

    def start(self, ahead: Child | None = None) -> None:
        """Starts the thread and the process, unless they run. For `ahead` see `CompileProcess`."""
        if self._thread.ident is None:
            self._process.ahead = ahead
            self._thread.start()

    def submit(self, saved: Saved) -> None:
        """Queues a text, in place of one that still waits. A text with other numbers is left out if a save waits or is
        being compiled."""
        self.start()
        with self._condition:
            if not saved.is_fresh and any(each is not None and each.is_fresh for each in (self._at, self._waiting)):
                return
            self._waiting = saved
            self._condition.notify()
        self._process.nudge()

    def improve(self, text: str, loaded: LoadedProgram) -> None:
        """Makes better code for a program that plays, when there is time, and exchanges it. `text` is the hash of its
        text."""
        with self._condition:
            self._improvable, self._moved = (text, loaded), None  # a device may have failed
            self._condition.notify()

    def change(self, setup: Setup) -> None:
        """Compiles for another setup from now on."""
        with self._condition:
            self._change = setup

    def keep_off(self) -> None:
        """Keeps what compiles off the core of the calling thread, which is about to draw."""
        self._process.keep_off()

    def take(self) -> Finished:
        """What was finished since the last call."""
        with self._condition:
            finished, self._finished = self._finished, Finished()
            return finished

    @property
    def waited_for(self) -> Saved | None:
        """The text that is being compiled, or else the one that waits for its turn."""
        with self._condition:
            return self._at or self._waiting

    @property
    def is_starting(self) -> bool:
        """Whether the process has not begun any text yet."""
        return self._process.is_starting

    def close(self) -> None:
        """Ends the thread and its process at once."""
        with self._condition:
            self._ended = True
            self._condition.notify()
        if self._thread.ident is not None:
            self._process.kill()
            self._thread.join(_THREAD_LEAVES)

    def _run(self) -> None:
        self._start()
        try:
            while (task := self._next()) is not None:
                self._follow_change()
                if isinstance(task, Saved):
                    outcome = self._attempt(task)
                    with self._condition:
                        self._at = None
                        self._finished.results.extend([outcome] if outcome is not None else [])
                    if outcome is not None:
                        self._wake.set()
                elif isinstance(task, str):
                    self._replace(task)
                elif isinstance(task, _Unheard):
                    self._hear(task)
                elif isinstance(task, _LookAhead):
                    self._look_ahead()
                else:
                    try:
                        self._better(*task)
                    except CompilerDiedError as failure:
                        self._replace(str(failure))
                    except Exception:
                        # If that fails in any way, the program stays as it is.
                        continue
        finally:
            self._process.end()

    def _next(self) -> Saved | str | _Unheard | _LookAhead | tuple[str, LoadedProgram] | None:
        """Waits for the next task: a text, or the end of the process, which gives its reason. When neither comes for a
        while, it looks for other work: what the process may have heard, a program that can be improved, or the next
        text to compile ahead. None at the end."""
        with self._condition:
            while self._waiting is None and not self._ended:
                if self._has_process_ended:
                    self._has_process_ended = False
                    reason = self._process.died()
                    if reason is not None:
                        return reason
                unheard = self._unheard
                if unheard is not None and not self._process.listens_to(unheard.number):
                    unheard = self._unheard = None
                settled = _IDLE
                if self._improvable is not None:
                    settled = GLANCE if self._bridged_by(self._improvable[1]).units else SETTLED
                was_notified = self._condition.wait(settled if unheard is None else GLANCE)
                if not was_notified and unheard is not None:
                    return unheard
                if not was_notified and self._improvable is not None:
                    task, self._improvable = self._improvable, None
                    return task
                if not was_notified:
                    return _LookAhead()
            self._at, self._waiting = self._waiting, None
            return None if self._ended else self._at

    # --- the process ----------------------------------------------------------------------------------------------

    def _note_process_end(self) -> None:
        """Notes that a process has ended. Called by another thread."""
        with self._condition:
            self._has_process_ended = True
            self._condition.notify()

    def _start(self) -> None:
        self._started = time.monotonic()
        with suppress(CompilerDiedError):  # tried again with the next text
            self._process.start()

    def _replace(self, reason: str) -> None:
        """Replaces a process that ended by itself. The words of the reason follow the words "the compile process"."""
        if self._ended:
            return
        with self._condition:
            self._finished.restarts.append(f"the compile process {reason} and is started again")
        self._wake.set()
        if time.monotonic() - self._started > _YOUNG:
            self._start()

    # --- texts ----------------------------------------------------------------------------------------------------

    def _follow_change(self) -> None:
        """Applies a change of the setup. Code that was translated for lost backends is dropped."""
        with self._condition:
            setup, self._change = self._change, None
        if setup is not None:
            with suppress(CompilerDiedError):  # the next process begins with it
                self._process.change(setup)
            self._remembered, self._refused_ahead = Remembered(), ()

    def _bridged_by(self, loaded: LoadedProgram) -> CompiledProgram:
        """What a program bridges that has not been made ready on its device."""
        return replace(loaded.compiled, units=()) if loaded is self._moved else loaded.bridged

    def _better(self, text: str, loaded: LoadedProgram) -> None:
        """Makes what a program bridges ready on its device, and then improves it, unless a text comes meanwhile. Raises
        CompilerDiedError."""
        elsewhere = {unit.hash for unit in loaded.elsewhere}
        units = tuple(u for u in loaded.improvable if u.hash not in elsewhere & self._better_elsewhere)
        bridged = self._bridged_by(loaded)
        if bridged.units:
            units = ()  # better code waits for a pause between saves
        elif not units:
            return
        improved = self._process.improve(
            units, loaded.stand_ins, bridged, lambda: self._ended or self._waiting is not None
        )
        if improved is None:
            with self._condition:
                # It is tried again later, unless another program plays by then.
                self._improvable = self._improvable or (text, loaded)
            return
        for unit in units:
            if unit.hash in improved.refused:
                self._loader.assignment.stays(unit, improved.refused[unit.hash])
        started = time.perf_counter()
        if bridged.units:
            self._mover.submit(_Move(text, loaded, improved, self._process.number))
            self._moved = loaded
            with self._condition:
                self._improvable = self._improvable or (text, loaded)
        elif improved.codes:
            loaded.upgrade(improved.codes)
            took = improved.took + (time.perf_counter() - started) * 1e3
            with self._condition:
                self._better_elsewhere |= elsewhere & set(improved.codes)
                tier = loaded.tier(improved.codes.keys())
                self._finished.improvements.append(Improvement(text, tier, took, improved.codes))
            self._wake.set()

    def _move(self, task: _Move) -> None:
        """Makes what a program bridges ready on its devices. Runs in the mover's thread, since a driver may take
        long."""
        started = time.perf_counter()
        moved = moves(self._loader, task.loaded, task.improved.translated)
        self._process.arrived = task.number
        took = task.improved.took + (time.perf_counter() - started) * 1e3
        with self._condition:
            self._coded |= {move.new.unit.hash: move.new.unit for move in moved if move.new is not None}
            tier = task.loaded.tier()
            self._finished.improvements.append(Improvement(task.text, tier, took, {}, moved))
        self._wake.set()

    def _attempt(self, saved: Saved) -> LoadResult | None:
        """The result of a text; None if it was given up for another one. A process that was killed, perhaps by mistake
        or by the system, gets a second try."""
        try:
            with self._condition:
                coded, self._coded = self._coded, {}
            self._remembered.coded(coded)
            known = self._remembered.find(saved)
            if known is not None:
                return load(saved, known, self._loader, self._programs.running, from_cache=True)
            try:
                return self._compile(saved)
            except CompilerDiedError as failure:
                if self._ended:
                    return None
                self._replace(str(failure))
                return self._compile(saved)
        except CompilerDiedError as failure:
            words = f"the compile process failed twice: it {failure}"
            hint = "is the machine out of memory? else this is a bug in weft"
            return LoadResult(saved, None, (Diagnostic.of("internal", words, None, hint),))
        except Exception as failure:
            # If anything fails, the performance continues with what it has.
            return LoadResult(saved, None, (fault("weft failed on this text", failure),))

    def _hear(self, unheard: _Unheard) -> None:
        """Takes what the process has heard of a program, if it is known."""
        try:
            heard = self._process.heard()
        except CompilerDiedError as failure:
            self._replace(str(failure))
            return
        if heard is None:
            return
        self._unheard, made = None, unheard.made
        unheard.remembered.add(unheard.saved, replace(made, diagnostics=(*made.diagnostics, *heard.problems)))
        if heard.problems:
            with self._condition:
                self._finished.afterthoughts.append(LateWarnings(unheard.saved, heard.problems))
            self._wake.set()

    def _look_ahead(self) -> None:
        """Compiles and tries out the next text, unless its result is known already, so that it can play at once when it
        is asked for. Any other text interrupts it."""
        saved = self.next_text() if self._programs.running is not None else None
        if saved is None or _key(saved) == self._refused_ahead or self._remembered.find(saved) is not None:
            return

        def give_up() -> bool:
            waiting = self._waiting
            return self._ended or (waiting is not None and _key(waiting) != _key(saved))

        try:
            number = self._process.ask(replace(saved, is_ahead=True), self._moment)
            made = self._process.answer(CompileResult, give_up)
            tried = None if made is None or made.compiled is None else self._process.answer(TrialReport, give_up)
        except CompilerDiedError as failure:
            self._refused_ahead = _key(saved)
            self._replace(str(failure))
            return
        if made is None or (tried is None and made.compiled is not None):
            return
        self._refused_ahead = _key(saved)
        if tried is not None and passes(tried.problems):
            self._remember(number, saved, replace(made, diagnostics=(*made.diagnostics, *tried.problems)))

    @property
    def _moment(self) -> Moment:
        tick = self._clock.latest
        return Moment(tick.number, tick.time, tick.dt, dict(self._inputs.snapshot()))

    def _remember(self, number: int, saved: Saved, passed: CompileResult) -> None:
        """Remembers a text that has passed its trial, by the number of its request: now, or after its sound was
        listened to."""
        if self._process.listens_to(number):
            self._unheard = _Unheard(number, saved, passed, self._remembered)
        else:
            self._remembered.add(saved, passed)

    def _compile(self, saved: Saved) -> LoadResult | None:
        def give_up() -> bool:
            return self._ended or (self._waiting is not None and self._patience.runs_out(self._process.spent))

        running = self._programs.running
        number = self._process.ask(saved, self._moment)
        made = self._process.answer(CompileResult, give_up)
        if made is None:
            return None
        made = replace(made, stages={**made.stages, "received": time.monotonic()})
        outcome = load(saved, made, self._loader, running)
        if made.compiled is None:
            return outcome
        # It was tried out there while it was loaded here.
        tried = self._process.answer(TrialReport, give_up)
        if tried is None:
            return None
        self._patience.finished(self._process.spent)
        mild = mistakes = tried.problems
        if saved.is_first:
            # Nothing else can play, and what is not a number at the first moment may become one later.
            mild = tuple(replace(d, severity="warning") if d.code == NOT_A_NUMBER else d for d in mistakes)
        if not passes(mild):
            return LoadResult(saved, None, mistakes, made.files)
        if mild == mistakes and not saved.is_turned:
            self._remember(number, saved, replace(made, diagnostics=(*made.diagnostics, *mistakes)))
        stages = {**outcome.stages, "tried": time.monotonic()}
        return replace(outcome, diagnostics=(*outcome.diagnostics, *mild), stages=stages)
