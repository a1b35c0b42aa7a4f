"""Texts are compiled in another process: the player's side of it, and its server.

The process has Python's lock to itself, abandons a text that is no longer needed, and takes nothing with it when it
crashes. It answers every request with the compiled program, and then with the verdict of the trial, so that the program
can be loaded while it is tried out. In a pause, it listens to the sound of the last program that passed, and reports
what it has heard.

A text is abandoned within milliseconds: SIGINT interrupts Python code, and the process checks whether its answer is
still wanted. Machine code and libraries cannot be interrupted. If they run on for twice the time that starting another
process takes, the process is killed.
"""

from __future__ import annotations

import gc
import math
import signal
import subprocess
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from types import FrameType
from typing import Literal, TypeAlias, TypeVar, cast

from weft.backends.hardware import cores, current_core, keep_off, lower_priority, threads_of
from weft.child import BEAT, Child, Pulse
from weft.codegen.kernel import Unit
from weft.codes.rows import InternalError
from weft.errors import Diagnostic, WeftError, fault
from weft.runtime.compiling import SERVER
from weft.runtime.compiling.compiler import Compiler, CompileResult, Listening, Saved, Verdict, passes
from weft.runtime.hands.clock import Moment
from weft.runtime.program.compiled import CompiledProgram
from weft.runtime.program.parcels import Packer, Parcel, Unpacker, pieces_of
from weft.runtime.program.program import Setup

GLANCE = 0.01
"""The interval in seconds at which a wait for an answer checks whether to give up."""

# Seconds that a process may take to end.
_LEAVE = 1.0

# The assumed cost of starting a process, in seconds of the processor, until it is measured, and the most that is
# believed.
_START_COSTS, _MOST_COSTS = 1.0, 3.0

_NO_PROCESS = "ended"


class CompilerDiedError(InternalError):
    """The process ended in the middle of a text, or could not be started. The message is the reason, in words that
    follow "the compile process"."""


@dataclass(frozen=True)
class CompileRequest:
    """A text to compile, and the moment of the performance for its trial. Answers have the `number` of their request.
    `arrived` is the number of the last request whose bridged units are ready on their devices."""

    number: int
    saved: Saved
    moment: Moment
    arrived: int = 0


@dataclass(frozen=True)
class OptimizeRequest:
    """Units that run already, for which there may be better code. For those in `stand_ins`, by hash, another device is
    the stand-in. What is `bridged` is to be translated for the devices that should run it."""

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
class TrialReport:
    """The verdict of a trial: the problems that it found, and whether the sound will be listened to."""

    problems: tuple[Diagnostic, ...]
    is_heard: bool


@dataclass(frozen=True)
class ListeningReport:
    """The warnings about the sound of a program that has passed its trial."""

    problems: tuple[Diagnostic, ...]


T = TypeVar("T")
Message: TypeAlias = Setup | CompileRequest | OptimizeRequest | None
"""None: the answer to the last request is not needed any more, unless it is on its way."""

Content: TypeAlias = Literal["begun", "abandoned"] | CompileResult | OptimizeResult | TrialReport | ListeningReport
"""An answer to a request, sent with the number of that. It says that work has begun or was abandoned, or it is the
compiled program (in a `Parcel`), the verdict of the trial, better code, or what was heard in a pause."""


class CompileProcess:
    """The player's side of the process, which is started when it is needed. `kill`, `keep_off` and `nudge` may be
    called by any thread, all other methods by one thread only."""

    def __init__(self, setup: Setup, ended: Callable[[], None] = lambda: None) -> None:
        """`ended` is called by another thread whenever a process has ended."""
        self.ahead: Child | None = None
        """A process that already runs `SERVER`, to be used instead of starting one."""
        self._setup = setup
        self._ended = ended
        self._process: Child | None = None
        self._unpacker = Unpacker()
        """Reads the programs of this process."""
        self._number = 0
        self.arrived = 0
        """The number of the last request whose bridged units are ready on their devices. For any thread."""
        self._listens_to: int | None = None
        """The number of the last request whose program has passed its trial, until `heard` has returned what was heard
        of it."""
        self._heard: ListeningReport | None = None
        """What was heard of it."""
        self._began: float | None = None
        self._is_new = True
        self._kept_off: tuple[int, int] | None = None
        """The core that a process is kept off, and its number."""
        self._start_costs = _START_COSTS
        self._nudges, self._nudger = Pipe(duplex=False)

    def start(self) -> None:
        """Starts the process, unless it runs, without waiting until it is ready. Raises CompilerDiedError."""
        if self._process is not None and self._process.poll() is None:
            return
        self.end()
        try:
            ahead, self.ahead = self.ahead, None
            self._is_new = True  # before `keep_off` may see the process
            self._process, self._unpacker = ahead or Child(SERVER), Unpacker()
            self._process.ended = self._ended
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

    def ask(self, saved: Saved, moment: Moment) -> int:
        """Sends a text, and returns the number of the request. Earlier requests are not answered any more. Raises
        CompilerDiedError."""
        self._send(CompileRequest(self._next_number(), saved, moment, self.arrived))
        self._interrupt()  # in a pause, it may prepare for later texts, or listen
        return self._number

    def change(self, setup: Setup) -> None:
        """Compiles for another setup from now on. Raises CompilerDiedError."""
        self._setup = setup
        if self._process is not None:
            self._send(setup)

    def improve(
        self, units: tuple[Unit, ...], stand_ins: frozenset[str], bridged: CompiledProgram, give_up: Callable[[], bool]
    ) -> OptimizeResult | None:
        """Better code for some units, and code for what is bridged; None if `give_up` stopped it. Raises
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
        """The processor seconds that it has spent on the text; None before it has begun. Other work does not count."""
        began, process = self._began, self._process
        return None if began is None or process is None else process.spent - began

    @property
    def number(self) -> int:
        """The number of the last request."""
        return self._number

    @property
    def is_starting(self) -> bool:
        """Whether it has not begun any text since it was started. For any thread."""
        return self._is_new

    def answer(self, kind: type[T], give_up: Callable[[], bool]) -> T | None:
        """The next answer of this kind to the last request. A text is answered by its result, and then by the verdict
        of its trial; units by better code. None if `give_up` stopped the wait. Raises CompilerDiedError."""
        abandoned: float | None = None
        with self._receiving():
            while True:
                while not self._has_arrived():
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

    def _has_arrived(self) -> bool:
        """Waits for a message, but not for long, and until `nudge` at most."""
        ready = wait([self._open, self._nudges], GLANCE)
        while self._nudges.poll():
            self._nudges.recv_bytes()
        return self._open in ready

    def nudge(self) -> None:
        """Wakes a wait for an answer, so that it checks at once whether to give up. May be called by any thread."""
        if not self._nudges.poll():  # or it is about to find out
            self._nudger.send_bytes(b"")

    def listens_to(self, number: int) -> bool:
        """Whether it listens to the sound of the program of a request, or will do so in its next pause, or `heard` has
        not yet returned the result."""
        return number == self._listens_to

    def heard(self) -> ListeningReport | None:
        """What was heard of the program that it listens to; None if that is not known yet. It is given once. Does not
        wait. Raises CompilerDiedError."""
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
        if isinstance(content, Parcel):
            # Also if this answer is no longer needed: later ones are sent without what is in it.
            content = self._unpacker.unpack(content)
        if isinstance(content, ListeningReport):
            self._heard = content if self.listens_to(number) else self._heard
            return None
        if isinstance(content, TrialReport) and passes(content.problems):
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
        """Asks the process to abandon the request. If it has not begun yet, it finds this message as soon as it does,
        and leaves what it is doing in a pause."""
        self._open.send(None)
        self._interrupt()

    def _interrupt(self) -> None:
        """Has the process look for messages. Before its first request, the signal would end it, so none is sent."""
        if self._process is not None and not self._is_new:
            self._process.interrupt()

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

    def keep_off(self) -> None:
        """Keeps the process off the core of the calling thread, which draws, if there is another core. If both were on
        one core, the system might let the process run for milliseconds, even while another core is idle."""
        process, core = self._process, current_core()
        # A process that is new has to find out how many cores there are.
        if process is None or core is None or self._is_new or self._kept_off == (core, process.pid):
            return
        self._kept_off = core, process.pid
        keep_off(core, threads_of(process.pid))

    def kill(self) -> None:
        """Ends the process. A wait for its answer then fails. May be called by any thread."""
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
    lower_priority()  # to the picture, which waits for nothing here
    cores()  # are found out before the player keeps this process off one of them
    with suppress(EOFError, OSError), Connection(int(descriptor)) as player:
        _CompileServer(player, Pulse(int(lifeline))).serve()


# Garbage is collected in pauses, or after this many messages without a pause.
_MOST_UNCOLLECTED = 24

# The seconds of two frames.
_FRAMES = 0.035

# After this many seconds without a message, the next one is not likely to come at once.
_LONG_PAUSE = 2.0

# The number of files for which the last build is kept: the file that plays, the next one, and the one before.
_MOST_FILES = 3

# A full garbage collection takes a tenth of a second or more, and a message would have to wait for it. It is done in a
# long pause, or at the beginning of any pause after `_MOST_LEFT` builds from scratch. While texts come at intervals
# below `_HURRY` seconds, the next one would often come during the collection, so it is put off until after
# `_MOST_LEFT_IN_HURRY` builds.
_MOST_LEFT, _MOST_LEFT_IN_HURRY, _HURRY = 2, 8, 0.8


class _CompileServer:
    """Answers one message after another until the player's process is gone."""

    def __init__(self, player: Connection, pulse: Pulse) -> None:
        self._player = player
        self._packer = Packer()
        self._pulse = pulse
        self._may_leave = False
        """Whether the current work may be abandoned."""
        self._uncollected = 0
        """The messages that were answered since garbage was collected."""
        self._compilers: OrderedDict[str, Compiler] = OrderedDict()
        """The compilers of the last files, by name, that of the latest file at the end."""
        self._asked = time.monotonic()
        """When the last message came."""
        self._text_came = -math.inf
        self._interval = math.inf
        """The seconds between the last two texts."""
        self._unheard: tuple[int, Listening] | None = None
        """The number of the last request whose program passed its trial, and how to listen to its sound; None if that
        was done."""
        signal.signal(signal.SIGINT, self._interrupted)
        sys.unraisablehook = self._not_raised

    def serve(self) -> None:
        """Answers messages until the player is gone, which raises EOFError or OSError."""
        compiler: Compiler | CompileResult = CompileResult(None, ())
        is_new = True
        while True:
            # The first frames of a program come before what is done in pauses.
            pause = _FRAMES if isinstance(compiler, Compiler) and compiler.is_tuning else BEAT
            while not self._player.poll(pause):
                self._pulse.beat()
                pause = BEAT
                if isinstance(compiler, Compiler) and compiler.is_tuning:
                    self._improve(compiler)
                elif isinstance(compiler, Compiler) and compiler.left > self._most_left:
                    compiler.left = 0
                    self._collect(everything=True)
                elif self._unheard is not None:
                    self._listen(*self._unheard)
                    pause = 0.0
                elif self._uncollected:
                    self._collect()
                elif isinstance(compiler, Compiler):
                    self._prepare(compiler)
            message: Message = self._player.recv()
            self._asked = time.monotonic()
            if isinstance(message, CompileRequest):
                self._interval, self._text_came = self._asked - self._text_came, self._asked
            if isinstance(message, Setup):
                compiler = _compiler(message)
                if is_new:
                    # Most objects that are made for a text live until it is answered. So there is no garbage to collect
                    # earlier.
                    gc.disable()
                    gc.freeze()
                    is_new = False
                self._compilers.clear()
            elif message is not None:
                chosen = compiler
                if isinstance(message, CompileRequest) and isinstance(compiler, Compiler):
                    chosen = self._compiler_of(message.saved.name, compiler)
                    compiler = compiler if message.saved.is_ahead else chosen
                self._answer(chosen, message)
                del message
                self._uncollected += 1
                if self._uncollected > _MOST_UNCOLLECTED:
                    self._collect()

    def _compiler_of(self, name: str, compiler: Compiler) -> Compiler:
        """The compiler for the texts of a file, which has what the last of them has left. `compiler` is any compiler
        with the same devices."""
        if not self._compilers:
            self._compilers[name] = compiler
        found = self._compilers[name] = self._compilers.get(name) or compiler.fresh()
        self._compilers.move_to_end(name)
        while len(self._compilers) > _MOST_FILES:
            self._compilers.popitem(last=False)
            found.left += 1
        return found

    def _collect(self, everything: bool = False) -> None:
        """Collects the garbage among new objects, or among `everything`, which takes long. Objects that survive move to
        the oldest generation."""
        gc.collect(2 if everything else 1)
        self._uncollected = 0

    def _improve(self, compiler: Compiler) -> None:
        """Makes better code for the texts that tune a number again and again, until one comes."""
        with suppress(_Abandoned):
            self._made(compiler.improve)

    def _prepare(self, compiler: Compiler) -> None:
        """Lets the compiler prepare for later texts, until one comes."""
        with suppress(_Abandoned):
            self._made(lambda: compiler.prepare(self._is_long_pause))

    @property
    def _is_long_pause(self) -> bool:
        return time.monotonic() > self._asked + _LONG_PAUSE

    @property
    def _most_left(self) -> int:
        """How many builds from scratch may leave their garbage for now."""
        if self._is_long_pause:
            return 0
        return _MOST_LEFT if self._interval > _HURRY else _MOST_LEFT_IN_HURRY

    def _listen(self, number: int, listening: Listening) -> None:
        """Reports what is heard of the sound of this request. After an interruption, it begins again in the next
        pause."""
        heard = ListeningReport(())
        try:
            # A sound that fails is reported where it is played.
            with suppress(Exception):
                heard = ListeningReport(self._made(listening))
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
                elif isinstance(content, CompileResult) and content.compiled is not None:
                    pieces = pieces_of(content.compiled.units)
                    self._player.send((message.number, self._packer.pack(content, pieces)))
                else:
                    self._player.send((message.number, content))
        except _Abandoned:
            self._player.send((message.number, "abandoned"))
        except MemoryError as failure:
            if not isinstance(message, CompileRequest):
                raise
            # Everything that took the memory is freed here, so there is enough to report it.
            failure.__traceback__ = None
            gc.collect()
            self._packer = Packer()  # the player may lack what was about to be sent
            self._player.send((message.number, CompileResult(None, (fault("weft failed on this text", failure),))))

    def _made(self, make: Callable[[], T]) -> T:
        """The result of a function. Raises _Abandoned if a message comes first."""
        try:
            self._may_leave = True
            self._interrupted()
            return make()
        finally:
            self._may_leave = False

    def _tell(self, number: int, verdict: Verdict) -> None:
        """Sends the verdict on a program. If the program may play, the sound of the one before is not listened to."""
        if passes(verdict.problems):
            self._unheard = None if verdict.listening is None else (number, verdict.listening)
        self._player.send((number, TrialReport(verdict.problems, verdict.listening is not None)))

    def _interrupted(self, _number: int = 0, _frame: FrameType | None = None) -> None:
        """Raises _Abandoned if a message has arrived. It can only mean that the answer is not needed."""
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
        compiler.arrived(request.arrived)
        made = compiler.compile(request.saved)
        yield made
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
                translated = compiler.translate_bridged(request.bridged, request.number)
            codes, refused = compiler.loader.improve(request.units, request.stand_ins)
    yield OptimizeResult(codes, (time.perf_counter() - started) * 1e3, translated, refused)
