"""Texts are compiled in another process: the player's side of it, its server, and the thread that uses it.

The process has Python's lock to itself, abandons a text that is no longer needed, and takes nothing with it when it
crashes. It answers every request with the compiled program, and then with the verdict of the trial, so that the program
can be loaded while it is tried out. In a pause, it listens to the sound of the last program that passed, and says what
it has heard.

A text is abandoned within milliseconds: SIGINT interrupts Python code, and the process checks whether its answer is
still wanted. Only machine code and libraries run until they return. The process is killed for that after it has spent
twice the time that starting another one takes.
"""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Literal, TypeAlias, TypeVar, cast
from weakref import ReferenceType, ref

import numpy as np

from weft.child import BEAT, Child, Pulse
from weft.codegen.kernel import Unit
from weft.errors import Diagnostic, WeftError, fault
from weft.runtime.clock import Clock, Moment
from weft.runtime.compiled import CompiledProgram
from weft.runtime.compiling import SERVER
from weft.runtime.compiling.compiler import Compiler, CompileResult, Listening, Saved, Verdict, passes
from weft.runtime.fallback import Migration, moves
from weft.runtime.files import FileState, look
from weft.runtime.findings import NOT_A_NUMBER
from weft.runtime.inputs import Inputs
from weft.runtime.program import LoadedProgram, ProgramLoader, Programs, Setup

# The interval in seconds at which a wait for an answer checks whether to give up.
_GLANCE = 0.01

# Seconds that a process may take to end.
_LEAVE = 1.0

# The assumed cost of starting a process, in seconds of the processor, until it is measured, and the most that is
# believed.
_START_COSTS, _MOST_COSTS = 1.0, 3.0

_NO_PROCESS = "ended"


class CompilerDiedError(Exception):
    """The process ended in the middle of a text, or could not be started. The message is the reason, in words that
    follow "the compile process"."""


@dataclass(frozen=True)
class CompileRequest:
    """A text to compile, and the moment of the performance for its trial. Code that the player's process already has
    (`known`, by hash) need not be sent. Answers have the `number` of their request."""

    number: int
    saved: Saved
    moment: Moment
    known: frozenset[str] = frozenset()


@dataclass(frozen=True)
class OptimizeRequest:
    """Units that run already, for which there may be better code; for those in `stand_ins`, by hash, something stands
    in. What is `bridged` is to be translated for the devices that should run it."""

    number: int
    units: tuple[Unit, ...]
    stand_ins: frozenset[str] = frozenset()
    bridged: CompiledProgram | None = None


@dataclass(frozen=True)
class OptimizeResult:
    """Better code by the hashes of the units, and the milliseconds that it took; the translated units of what was
    bridged; and the reasons why units could not be improved, by their hashes."""

    codes: Mapping[str, object]
    took: float
    translated: tuple[Unit, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Tried:
    """The verdict of a trial: the problems that it found, and whether the sound will be listened to."""

    problems: tuple[Diagnostic, ...]
    is_heard: bool


@dataclass(frozen=True)
class Heard:
    """What is to be said about the sound of a program that has passed its trial."""

    problems: tuple[Diagnostic, ...]


T = TypeVar("T")
Message: TypeAlias = Setup | CompileRequest | OptimizeRequest | None
"""None: the answer to the last request is not needed any more, unless it is on its way."""

Content: TypeAlias = Literal["begun", "abandoned"] | CompileResult | OptimizeResult | Tried | Heard
"""An answer to a request, which is sent with its number: that it is begun or abandoned, the compiled program, the
verdict of its trial, better code, or what was heard in a pause."""


class CompileProcess:
    """The player's side of the process, which is started when it is needed. All but `kill` is for one thread."""

    def __init__(self, setup: Setup, ended: Callable[[], None] = lambda: None) -> None:
        """`ended` is called by another thread whenever a process has ended."""
        self.ahead: Child | None = None
        """A process that already runs `SERVER`, to be used instead of starting one."""
        self._setup = setup
        self._ended = ended
        self._process: Child | None = None
        self._number = 0
        self._listens_to: int | None = None
        """The number of the last request whose program has passed its trial, until it is given what is heard of it."""
        self._heard: Heard | None = None
        """What was heard of it."""
        self._began: float | None = None
        self._is_new = True
        self._start_costs = _START_COSTS

    def start(self) -> None:
        """Starts the process, unless it runs, without waiting until it is ready. Raises CompilerDiedError."""
        if self._process is not None and self._process.poll() is None:
            return
        self.end()
        try:
            ahead, self.ahead = self.ahead, None
            self._process = ahead or Child(SERVER)
            self._process.ended = self._ended
            self._is_new = True
            self._process.connection.send(self._setup)
        except Exception as failure:
            self.end()
            raise CompilerDiedError(f"cannot be started: {failure}") from failure

    def died(self) -> str | None:
        """Why the process ended, if it did so without a request; reported once."""
        process = self._process
        if process is None or process.poll() is None:
            return None
        self.end()
        return process.ending

    def ask(self, saved: Saved, moment: Moment, known: frozenset[str]) -> int:
        """Sends a text, and returns the number of the request; earlier ones are not answered any more. Raises
        CompilerDiedError."""
        self._send(CompileRequest(self._next_number(), saved, moment, known))
        if self._process is not None and not self._is_new:
            # In a pause, it may be at work for later texts, or listen.
            self._process.send_signal(signal.SIGINT)
        return self._number

    def change(self, setup: Setup) -> None:
        """Compiles for another setup from now on. Raises CompilerDiedError."""
        self._setup = setup
        if self._process is not None:
            self._send(setup)

    def improve(
        self, units: tuple[Unit, ...], stand_ins: frozenset[str], bridged: CompiledProgram, give_up: Callable[[], bool]
    ) -> OptimizeResult | None:
        """Better code for some units, and code for what is bridged; None if `give_up` said so. Raises
        CompilerDiedError."""
        self._send(OptimizeRequest(self._next_number(), units, stand_ins, bridged if bridged.units else None))
        return self.answer(OptimizeResult, give_up)

    def _next_number(self) -> int:
        self._number += 1
        self._began = None
        return self._number

    def _send(self, message: Message) -> None:
        self.start()
        try:
            self._open.send(message)
        except OSError as failure:
            raise CompilerDiedError(self._reason()) from failure

    @property
    def spent(self) -> float | None:
        """The processor seconds that it has spent on the text, which do not depend on other work of the machine; None
        before it has begun."""
        began, process = self._began, self._process
        return None if began is None or process is None else process.spent - began

    @property
    def has_begun(self) -> bool:
        """Whether it works on the text. For any thread."""
        return self._began is not None

    def answer(self, kind: type[T], give_up: Callable[[], bool]) -> T | None:
        """The next answer to the last request, which is of this kind: the result of a text, then the verdict of its
        trial, or better code. None if `give_up` said so before there was one. Raises CompilerDiedError."""
        abandoned: float | None = None
        with self._receiving():
            while True:
                while not self._open.poll(_GLANCE):
                    if abandoned is None and give_up():
                        self._abandon()
                        abandoned = self.spent or 0.0
                    elif abandoned is not None and (self.spent or 0.0) > abandoned + 2 * self._start_costs:
                        self.end()
                        return None
                content = self._received()
                if content is None:
                    continue
                if content != "begun":
                    return content if isinstance(content, kind) else None
                self._note_begin()
                if abandoned is not None:
                    self._abandon()

    def listens_to(self, number: int) -> bool:
        """Whether it listens to the sound of the program of a request, or will in its next pause, or `heard` has not
        been asked for that yet."""
        return number == self._listens_to

    def heard(self) -> Heard | None:
        """What was heard of the program that it listens to, given once; None if that is not known yet. Does not wait.
        Raises CompilerDiedError."""
        with self._receiving():
            while self._heard is None and self._open.poll():
                self._received()
        if self._heard is not None:
            self._listens_to = None
        heard, self._heard = self._heard, None
        return heard

    def _received(self) -> Content | None:
        """The next message, if it is an answer to the last request."""
        number, content = self._open.recv()
        if isinstance(content, Heard):
            self._heard = content if self.listens_to(number) else self._heard
            return None
        if isinstance(content, Tried) and passes(content.problems):
            self._listens_to, self._heard = number if content.is_heard else None, None
        return cast(Content, content) if number == self._number else None

    @contextmanager
    def _receiving(self) -> Iterator[None]:
        """Turns whatever prevents a message from being received into CompilerDiedError."""
        try:
            yield
        except (EOFError, OSError) as failure:
            raise CompilerDiedError(self._reason()) from failure
        except CompilerDiedError:
            raise
        except Exception as failure:  # whatever unpickling raises
            self.end()
            raise CompilerDiedError(f"gave an answer that cannot be read: {failure}") from failure

    def _abandon(self) -> None:
        """Asks the process to abandon the text. If it has not begun yet, it finds the message when it does."""
        self._open.send(None)
        if self._began is not None and self._process is not None:
            self._process.send_signal(signal.SIGINT)

    def _note_begin(self) -> None:
        if self._process is not None:
            self._began = self._process.spent
            if self._is_new:
                self._is_new = False
                self._start_costs = min(self._began, _MOST_COSTS)

    def _reason(self) -> str:
        """Why the process, which has closed its socket, ended."""
        process = self._process
        if process is None:
            return _NO_PROCESS
        with suppress(subprocess.TimeoutExpired):
            process.wait(_LEAVE)
        self.end()
        return process.ending

    @property
    def _open(self) -> Connection:
        if self._process is None:
            raise CompilerDiedError(_NO_PROCESS)
        return self._process.connection

    def kill(self) -> None:
        """Ends the process, from any thread: a wait for its answer then fails."""
        process = self._process
        if process is not None:
            with suppress(OSError):
                process.kill()

    def end(self) -> None:
        """Ends the process at once. May be called twice."""
        self._listens_to = self._heard = None
        process, self._process = self._process, None
        if process is not None:
            process.end()


# --- in the compile process ---------------------------------------------------------------------------------------


class _Abandoned(BaseException):
    """The current answer is not needed any more. Not an `Exception`, which code in the middle of a text may catch."""


def main(descriptor: str, lifeline: str) -> None:
    """Serves the socket with this descriptor. The first message is the `Setup`. For the `lifeline` see `Child`."""
    with suppress(EOFError, OSError), Connection(int(descriptor)) as player:
        _CompileServer(player, Pulse(int(lifeline))).serve()


# Garbage is collected in pauses, or after this many messages without one.
_MOST_UNCOLLECTED = 24

# After so many seconds without a message, another one is not likely to come just now. All garbage is collected then, or
# after more builds from nothing.
_LONG_PAUSE, _MOST_LEFT = 2.0, 2


class _CompileServer:
    """Answers one message after another until the player's process is gone."""

    def __init__(self, player: Connection, pulse: Pulse) -> None:
        self._player = player
        self._pulse = pulse
        self._may_leave = False
        """Whether the current work may be abandoned."""
        self._uncollected = 0
        """The messages that were answered since garbage was collected."""
        self._asked = time.monotonic()
        """When the last message came."""
        self._unheard: tuple[int, Listening] | None = None
        """How to listen to the sound of the last program that passed its trial, if that is still to be done, and the
        number of its request."""
        signal.signal(signal.SIGINT, self._interrupted)
        sys.unraisablehook = self._not_raised

    def serve(self) -> None:
        """Answers messages until the player is gone, which raises EOFError or OSError."""
        compiler: Compiler | CompileResult = CompileResult(None, ())
        is_new = True
        while True:
            # The first frames of a program come before what is done in pauses.
            pause = BEAT
            while not self._player.poll(pause):
                self._pulse.beat()
                pause = BEAT
                if self._unheard is not None:
                    self._listen(*self._unheard)
                    pause = 0.0
                elif self._uncollected:
                    self._collect()
                elif isinstance(compiler, Compiler):
                    self._prepare(compiler)
            message: Message = self._player.recv()
            self._asked = time.monotonic()
            if isinstance(message, Setup):
                compiler = _compiler(message)
                if is_new:
                    # A text makes many objects that live until it is answered: there is no garbage before.
                    gc.disable()
                    gc.freeze()
                    is_new = False
            elif message is not None:
                self._answer(compiler, message)
                del message
                self._uncollected += 1
                if self._uncollected > _MOST_UNCOLLECTED:
                    self._collect()

    def _collect(self, everything: bool = False) -> None:
        """Collects garbage among what was made since the last time, or among `everything`, which takes long."""
        if everything:
            gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._uncollected = 0

    def _prepare(self, compiler: Compiler) -> None:
        """Lets the compiler prepare for later texts, until one comes."""
        is_long = time.monotonic() > self._asked + _LONG_PAUSE
        if is_long:
            try:
                self._made(compiler.prepare)
            except _Abandoned:
                return
        if compiler.left > (0 if is_long else _MOST_LEFT):
            compiler.left = 0
            self._collect(everything=True)

    def _listen(self, number: int, listening: Listening) -> None:
        """Says what is heard of the sound of this request, unless a message comes; then it is for the next pause."""
        heard = Heard(())
        try:
            # A sound that fails says so where it is played.
            with suppress(Exception):
                heard = Heard(self._made(listening))
        except _Abandoned:
            return
        self._unheard = None
        self._player.send((number, heard))

    def _answer(self, compiler: Compiler | CompileResult, message: CompileRequest | OptimizeRequest) -> None:
        contents = _contents(compiler, message) if isinstance(message, CompileRequest) else _better(compiler, message)
        self._player.send((message.number, "begun"))
        try:
            while (content := self._made(lambda: next(contents, None))) is not None:
                if isinstance(content, Verdict):
                    self._tell(message.number, content)
                else:
                    self._player.send((message.number, content))
        except _Abandoned:
            self._player.send((message.number, "abandoned"))
        except MemoryError as failure:
            if not isinstance(message, CompileRequest):
                raise
            # Only here is all that took the memory gone, so that there is enough to say it.
            failure.__traceback__ = None
            gc.collect()
            self._player.send((message.number, CompileResult(None, (fault("weft failed on this text", failure),))))

    def _made(self, make: Callable[[], T]) -> T:
        """What a function makes, unless a message comes. Raises _Abandoned."""
        try:
            self._may_leave = True
            self._interrupted()
            return make()
        finally:
            self._may_leave = False

    def _tell(self, number: int, verdict: Verdict) -> None:
        """Sends the verdict on a program. If that may play, the sound of the one before need not be listened to."""
        if passes(verdict.problems):
            self._unheard = None if verdict.listening is None else (number, verdict.listening)
        self._player.send((number, Tried(verdict.problems, verdict.listening is not None)))

    def _interrupted(self, _number: int = 0, _frame: FrameType | None = None) -> None:
        """Raises _Abandoned if a message has arrived: here, it can only say that."""
        if self._may_leave and self._player.poll():
            self._may_leave = False
            raise _Abandoned

    def _not_raised(self, what: sys.UnraisableHookArgs) -> None:
        """Raises _Abandoned again after a callback or a destructor, in which it cannot be caught."""
        if what.exc_type is _Abandoned:
            self._may_leave = True
            signal.raise_signal(signal.SIGINT)
        else:
            sys.__unraisablehook__(what)


def _compiler(setup: Setup) -> Compiler | CompileResult:
    """The compiler, or the answer to every text if there is none."""
    try:
        return Compiler.of(setup)
    except WeftError as failure:
        return CompileResult(None, failure.diagnostics)
    except Exception as failure:
        return CompileResult(None, (fault("nothing can be compiled", failure),))


def _contents(compiler: Compiler | CompileResult, request: CompileRequest) -> Iterator[CompileResult | Verdict]:
    """The result of a text, and the verdict of the trial if it is a program."""
    if isinstance(compiler, CompileResult):
        yield compiler
        return
    try:
        made = compiler.compile(request.saved)
        yield made.with_codes(dict.fromkeys(request.known))
    except (EOFError, OSError, MemoryError):
        raise
    except Exception as failure:
        yield CompileResult(None, (fault("weft failed on this text", failure),))
        return
    if made.compiled is not None:
        yield compiler.try_out(made, request.moment)


def _better(compiler: Compiler | CompileResult, request: OptimizeRequest) -> Iterator[Content]:
    """Better code for units that run already; none if that fails, since they can run on."""
    codes, refused = dict[str, object](), dict[str, str]()
    translated: tuple[Unit, ...] = ()
    started = time.perf_counter()
    if isinstance(compiler, Compiler):
        with suppress(Exception):
            if request.bridged is not None:
                translated = compiler.loader.translate(request.bridged).units
            codes, refused = compiler.loader.improve(request.units, request.stand_ins)
    yield OptimizeResult(codes, (time.perf_counter() - started) * 1e3, translated, refused)


# --- the thread -----------------------------------------------------------------------------------------------------

# A text that has cost more than this many processor seconds is given up when there is another one. After each that is
# given up, the next may cost four times as much, or saves in quick succession would never be seen.
_PATIENCE = 0.5
_MORE_PATIENCE = 4
# The median cost of the last texts predicts the next. A text that has cost half to twice as much is nearly done.
_LAST = 5
_NEARLY = 2.0

# A process that ends within this many seconds after its start is only started again for the next text.
_YOUNG = 5.0

# Better code is requested when no text has come for this many seconds.
_SETTLED = 0.5

# Seconds in which the thread has to end.
_THREAD_LEAVES = 2.0

REMEMBERED = 32
"""The number of earlier texts that need not be compiled again. Their programs take some 100 kB each."""


@dataclass(frozen=True)
class LoadResult:
    """The result of a saved text: a loaded program, or the diagnostics that say why there is none. `files` are the
    states of the files that the text names, when they were read or found missing; `took` has the milliseconds spent on
    the text, on the graph, and on compiling and loading the kernels. The result of a text that was compiled earlier is
    `from_cache`. For `stages` see `CompileResult`."""

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
class Afterthought:
    """Warnings about a saved text that were found after its program could play."""

    saved: Saved
    warnings: tuple[Diagnostic, ...]


@dataclass(frozen=True)
class Finished:
    """What a worker has finished, oldest first: texts, what was found about them later, improvements, and restarts of
    its process, of which a line says why."""

    results: list[LoadResult] = field(default_factory=list)
    afterthoughts: list[Afterthought] = field(default_factory=list)
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

    def add(self, saved: Saved, made: CompileResult) -> None:
        """Remembers a result that has passed its trial."""
        self._made[_key(saved)] = made
        while len(self._made) > REMEMBERED:
            self._made.popitem(last=False)


def _key(saved: Saved) -> tuple[object, ...]:
    """All that the result of a text depends on, except for other files."""
    return saved.name, saved.data, saved.room


class Patience:
    """How much a text may cost before another one takes its place, in processor seconds, which do not depend on other
    work of the machine."""

    def __init__(self) -> None:
        self._costs: deque[float] = deque(maxlen=_LAST)
        self._given_up = 0

    def runs_out(self, spent: float | None) -> bool:
        """Whether to give up a text that has cost `spent`; None: it has not begun."""
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
    """A text that has passed its trial, the number of its request, and where its result will be `remembered` once its
    sound was listened to."""

    number: int
    saved: Saved
    made: CompileResult
    remembered: Remembered


class CompileWorker:
    """The thread and its compile process. Texts that are replaced before their turn are never compiled."""

    def __init__(self, setup: Setup, programs: Programs, clock: Clock, inputs: Inputs, wake: threading.Event) -> None:
        """The kernels of the program that plays can be used again, and a new one is tried out at the moment of `clock`
        and `inputs`. `wake` is set when something can be taken."""
        self._loader = programs.loader
        self._programs = programs
        self._clock = clock
        self._inputs = inputs
        self._wake = wake
        self._process = CompileProcess(setup, self._look_after_process)
        self._started = 0.0
        self._remembered = Remembered()
        self._unheard: _Unheard | None = None
        """What the process listens to, unless it has been replaced."""
        self._condition = threading.Condition()
        self._waiting: Saved | None = None
        self._at: Saved | None = None
        self._improvable: tuple[str, LoadedProgram] | None = None
        self._finished = Finished()
        self._better_elsewhere: set[str] = set()
        """The hashes of units that are played elsewhere and already have better code."""
        self._change: Setup | None = None
        self._outdated: ReferenceType[LoadedProgram] | None = None
        """A program that was translated for lost backends. What it has open ends with it, so it is not kept."""
        self._ended = False
        self._has_process_ended = False
        self._patience = Patience()
        self._thread = threading.Thread(target=self._run, name="weft-compile", daemon=True)

    def start(self, ahead: Child | None = None) -> None:
        """Starts the thread and the process, unless they run. For `ahead` see `CompileProcess`."""
        if self._thread.ident is None:
            self._process.ahead = ahead
            self._thread.start()

    def submit(self, saved: Saved) -> None:
        """Queues a text, in place of one that still waits."""
        self.start()
        with self._condition:
            self._waiting = saved
            self._condition.notify()

    def improve(self, text: str, loaded: LoadedProgram) -> None:
        """Makes better code for a program that plays, when there is time, and exchanges it. `text` is the hash of its
        text."""
        with self._condition:
            self._improvable = (text, loaded)
            self._condition.notify()

    def change(self, setup: Setup) -> None:
        """Compiles for another setup from now on."""
        with self._condition:
            self._change = setup

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
        """Whether the process has not begun the current text yet."""
        return not self._process.has_begun

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
                else:
                    try:
                        self._better(*task)
                    except CompilerDiedError as failure:
                        self._replace(str(failure))
                    except Exception:
                        # After any failure of that, the program stays as it is.
                        continue
        finally:
            self._process.end()

    def _next(self) -> Saved | str | _Unheard | tuple[str, LoadedProgram] | None:
        """Waits for a text, for the end of the process, which gives its reason, or, when neither comes, for what the
        process may have heard, or for a program that can be improved; None at the end."""
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
                settled = None if self._improvable is None else _SETTLED
                was_notified = self._condition.wait(settled if unheard is None else _GLANCE)
                if not was_notified and unheard is not None:
                    return unheard
                if not was_notified and self._improvable is not None:
                    task, self._improvable = self._improvable, None
                    return task
            self._at, self._waiting = self._waiting, None
            return None if self._ended else self._at

    # --- the process ----------------------------------------------------------------------------------------------

    def _look_after_process(self) -> None:
        """Notes that a process has ended. Called by another thread."""
        with self._condition:
            self._has_process_ended = True
            self._condition.notify()

    def _start(self) -> None:
        self._started = time.monotonic()
        with suppress(CompilerDiedError):  # tried again with the next text
            self._process.start()

    def _replace(self, reason: str) -> None:
        """Replaces a process that ended by itself. The reason is in words that follow its name."""
        if self._ended:
            return
        with self._condition:
            self._finished.restarts.append(f"the compile process {reason} and is started again")
        self._wake.set()
        if time.monotonic() - self._started > _YOUNG:
            self._start()

    # --- texts ----------------------------------------------------------------------------------------------------

    def _follow_change(self) -> None:
        """Applies a change of the setup: what was translated for lost backends is of no use any more."""
        with self._condition:
            setup, self._change = self._change, None
        if setup is not None:
            with suppress(CompilerDiedError):  # the next process begins with it
                self._process.change(setup)
            self._remembered = Remembered()
            self._outdated = None if self._programs.running is None else ref(self._programs.running)

    def _better(self, text: str, loaded: LoadedProgram) -> None:
        """Improves a program, unless a text comes meanwhile. Raises CompilerDiedError."""
        elsewhere = {unit.hash for unit in loaded.elsewhere}
        units = tuple(u for u in loaded.improvable if u.hash not in elsewhere & self._better_elsewhere)
        bridged = loaded.bridged
        if not units and not bridged.units:
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
        moved = moves(self._loader, loaded, improved.translated)
        if improved.codes or moved:
            loaded.upgrade(improved.codes)
            took = improved.took + (time.perf_counter() - started) * 1e3
            with self._condition:
                self._better_elsewhere |= elsewhere & set(improved.codes)
                tier = loaded.tier(improved.codes.keys())
                self._finished.improvements.append(Improvement(text, tier, took, improved.codes, moved))
            self._wake.set()

    def _attempt(self, saved: Saved) -> LoadResult | None:
        """The result of a text; None if it was given up for another one. A process that was killed, perhaps by mistake
        or by the system, gets a second try."""
        try:
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
            return LoadResult(saved, None, (Diagnostic("error", "internal", words, None, hint),))
        except Exception as failure:
            # After any failure, the performance goes on with what it has.
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
                self._finished.afterthoughts.append(Afterthought(unheard.saved, heard.problems))
            self._wake.set()

    def _compile(self, saved: Saved) -> LoadResult | None:
        def give_up() -> bool:
            return self._ended or (self._waiting is not None and self._patience.runs_out(self._process.spent))

        running, tick = self._programs.running, self._clock.latest
        moment = Moment(tick.number, tick.time, tick.dt, dict(self._inputs.snapshot()))
        outdated = None if self._outdated is None else self._outdated()
        codes = running.compiled.codes if running is not None and running is not outdated else {}
        number = self._process.ask(saved, moment, frozenset(codes))
        made = self._process.answer(CompileResult, give_up)
        if made is None:
            return None
        made = replace(made.with_codes(codes), stages={**made.stages, "received": time.monotonic()})
        outcome = load(saved, made, self._loader, running)
        if made.compiled is None:
            return outcome
        # It was tried out there while it was loaded here.
        tried = self._process.answer(Tried, give_up)
        if tried is None:
            return None
        self._patience.finished(self._process.spent)
        mild = mistakes = tried.problems
        if saved.is_first:
            # Nothing else can play, and what is not a number at the first moment may become one.
            mild = tuple(replace(d, severity="warning") if d.code == NOT_A_NUMBER else d for d in mistakes)
        if not passes(mild):
            return LoadResult(saved, None, mistakes, made.files)
        if mild == mistakes:
            passed = replace(made, diagnostics=(*made.diagnostics, *mistakes))
            if self._process.listens_to(number):
                self._unheard = _Unheard(number, saved, passed, self._remembered)
            else:
                self._remembered.add(saved, passed)
        stages = {**outcome.stages, "tried": time.monotonic()}
        return replace(outcome, diagnostics=(*outcome.diagnostics, *mild), stages=stages)
