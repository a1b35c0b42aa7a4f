"""The compile worker: a thread that has saved texts compiled and gets them ready to swap in, always the latest one."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from weft.errors import Diagnostic, WeftError, fault
from weft.runtime.compiling.compiler import Made, Saved
from weft.runtime.compiling.process import CompileProcess, CompilerDiedError
from weft.runtime.compiling.trial import Moment
from weft.runtime.fallback import Move, moves
from weft.runtime.files import FileState, look
from weft.runtime.program import Stage, Swap
from weft.runtime.setup import Setup

# A text that takes longer than so many seconds is given up when there is another one. Starting the process anew costs
# about as much.
_PATIENCE = 0.5

# Better code is asked for when no text has come for so many seconds: then nobody has to wait for it.
_SETTLED = 0.25

# Seconds that the thread has to end in.
_LEAVE = 2.0

REMEMBERED = 32
"""How many texts can come back without being compiled again. Their programs take some 100 kB each."""


@dataclass(frozen=True)
class Outcome:
    """What became of a saved text: a program to swap in, or the diagnostics that say why there is none. `files` are
    the files that the text names, as they were when they were read, or looked for in vain; `took` is how many
    milliseconds the text, the graph, and the kernels took, with loading them. A text that came back is `known`: all of
    it was made before."""

    saved: Saved
    swap: Swap | None
    diagnostics: tuple[Diagnostic, ...]
    files: Mapping[Path, FileState] = field(default_factory=dict)
    took: tuple[float, float, float] = (0.0, 0.0, 0.0)
    known: bool = False


@dataclass(frozen=True)
class Improvement:
    """That the program of a text (by its hash) runs at a better tier, and how many milliseconds it took to make.
    `codes` are by the hashes of the units, for those who play some of them elsewhere. `moves` are for the thread that
    draws to carry out."""

    hash: str
    tier: int
    took: float
    codes: Mapping[str, object]
    moves: tuple[Move, ...] = ()


def load(saved: Saved, made: Made, stage: Stage, before: Swap | None, known: bool = False) -> Outcome:
    """Gets ready what was made of a text. `known` says that it was made earlier."""
    if made.playable is None:
        return Outcome(saved, None, made.diagnostics, made.files)
    started = time.perf_counter()
    try:
        swap = stage.prepare(made.playable, made.playable.size, before)
    except WeftError as failure:
        return Outcome(saved, None, failure.diagnostics, made.files)
    loading = (time.perf_counter() - started) * 1e3
    parsing, graph, kernels = (0.0, 0.0, 0.0) if known else made.playable.took
    diagnostics = (*made.diagnostics, *swap.left_out)
    return Outcome(saved, swap, diagnostics, made.files, (parsing, graph, kernels + loading), known)


class Remembered:
    """The programs that were made of earlier texts, so that an undo is immediate."""

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[bytes, object], Made] = OrderedDict()

    def find(self, saved: Saved) -> Made | None:
        """What was made of a text, if all the files that it names are as they were."""
        made = self._made.get((saved.data, saved.room))
        if made is None or saved.problem:
            return None
        if not all(look(path, state.kind).same_contents(state) for path, state in made.files.items()):
            return None
        self._made.move_to_end((saved.data, saved.room))
        return made

    def add(self, saved: Saved, made: Made) -> None:
        """Remembers what has passed its trial."""
        if made.playable is None:
            return
        self._made[saved.data, saved.room] = made
        while len(self._made) > REMEMBERED:
            self._made.popitem(last=False)


class CompileWorker:
    """The thread. Texts that are replaced before their turn are never compiled."""

    def __init__(
        self,
        setup: Setup,
        stage: Stage,
        running: Callable[[], Swap | None],
        moment: Callable[[], Moment],
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """`running` gives the program that runs now, whose kernels can be used again, `moment` where it is; `wake` is
        called when an outcome can be taken. All three are called from the thread."""
        self._stage = stage
        self._running = running
        self._moment = moment
        self._wake = wake
        self._process = CompileProcess(setup)
        self._remembered = Remembered()
        self._condition = threading.Condition()
        self._waiting: Saved | None = None
        self._finished: list[Outcome] = []
        self._improvable: tuple[str, Swap] | None = None
        self._improved: list[Improvement] = []
        self._better_elsewhere: set[str] = set()
        """The hashes of units played elsewhere for which better code has been handed over."""
        self._change: Setup | None = None
        self._outdated: Swap | None = None
        """A program that was translated for backends which are lost."""
        self._ended = False
        self._gave_up = False
        self._thread = threading.Thread(target=self._run, name="weft-compile", daemon=True)
        self._thread.start()

    def remember(self, saved: Saved, made: Made) -> None:
        """Takes in what was compiled elsewhere. Before the first `submit`."""
        self._remembered.add(saved, made)

    def submit(self, saved: Saved) -> None:
        """Has a text compiled, instead of one that still waits."""
        with self._condition:
            self._waiting = saved
            self._condition.notify()

    def improve(self, text: str, swap: Swap) -> None:
        """Has better code made for a program that plays, made of the text of a hash, as soon as there is time for it,
        and takes it into use."""
        with self._condition:
            self._improvable = (text, swap)
            self._condition.notify()

    def change(self, setup: Setup) -> None:
        """What is compiled from now on runs elsewhere."""
        with self._condition:
            self._change = setup

    def take(self) -> list[Outcome]:
        """What has been finished since this was asked last, oldest first."""
        with self._condition:
            finished, self._finished = self._finished, []
            return finished

    def improvements(self) -> list[Improvement]:
        """What has been improved since this was asked last, oldest first."""
        with self._condition:
            improved, self._improved = self._improved, []
            return improved

    def close(self) -> None:
        """Ends the thread and its process, whatever they are at."""
        with self._condition:
            self._ended = True
            self._condition.notify()
        self._process.kill()
        self._thread.join(_LEAVE)

    def _run(self) -> None:
        with suppress(CompilerDiedError):  # tried again with the first text
            self._process.start()
        try:
            while (task := self._next()) is not None:
                self._follow_change()
                if isinstance(task, Saved):
                    outcome = self._attempt(task)
                    if outcome is not None:
                        with self._condition:
                            self._finished.append(outcome)
                        self._wake()
                else:
                    # Whatever goes wrong in there, the program stays as it is.
                    with suppress(Exception):
                        self._better(*task)
        finally:
            self._process.end()

    def _next(self) -> Saved | tuple[str, Swap] | None:
        """Waits for a text, or, when none comes, for a program that can be improved; None at the end."""
        with self._condition:
            while self._waiting is None and not self._ended:
                heard = self._condition.wait(None if self._improvable is None else _SETTLED)
                if not heard and self._improvable is not None:
                    task, self._improvable = self._improvable, None
                    return task
            saved, self._waiting = self._waiting, None
            return None if self._ended else saved

    def _follow_change(self) -> None:
        """Nothing that was translated for backends which are lost is of use any more."""
        with self._condition:
            setup, self._change = self._change, None
        if setup is not None:
            self._process.change(setup)
            self._remembered = Remembered()
            self._outdated = self._running()

    def _better(self, text: str, swap: Swap) -> None:
        """Improves a program, unless a text comes meanwhile. Raises CompilerDiedError."""
        elsewhere = {unit.hash for unit in swap.elsewhere}
        units = tuple(u for u in swap.improvable if u.hash not in elsewhere & self._better_elsewhere)
        bridged = swap.bridged
        if not units and not bridged.units:
            return
        improved = self._process.improve(
            units, swap.stand_ins, bridged, lambda: self._ended or self._waiting is not None
        )
        if improved is None:
            with self._condition:
                # Later, unless something else plays by then.
                self._improvable = self._improvable or (text, swap)
            return
        started = time.perf_counter()
        moved = moves(self._stage, swap, improved.translated)
        if improved.codes or moved:
            swap.exchange(improved.codes)
            took = improved.took + (time.perf_counter() - started) * 1e3
            with self._condition:
                self._better_elsewhere |= elsewhere & set(improved.codes)
                tier = swap.tier_with(improved.codes)
                self._improved.append(Improvement(text, tier, took, improved.codes, moved))
            self._wake()

    def _attempt(self, saved: Saved) -> Outcome | None:
        """What becomes of a text; None if another one came meanwhile that should not wait for it."""
        try:
            known = self._remembered.find(saved)
            if known is not None:
                return load(saved, known, self._stage, self._running(), known=True)
            return self._compile_twice(saved)
        except CompilerDiedError as failure:
            words = f"the process that compiles failed twice: {failure}"
            hint = "is the machine out of memory? else this is a bug in weft"
            return Outcome(saved, None, (Diagnostic("error", "internal", words, None, hint),))
        except Exception as failure:
            # Whatever goes wrong in here, the performance goes on with what it has.
            return Outcome(saved, None, (fault("weft failed on this text", failure),))

    def _compile_twice(self, saved: Saved) -> Outcome | None:
        """A process that was killed by mistake, or by the system, gets a second chance."""
        try:
            return self._compile(saved)
        except CompilerDiedError:
            if self._ended:
                return None
            return self._compile(saved)

    def _compile(self, saved: Saved) -> Outcome | None:
        # Of two texts in a row one is finished, or saves in quick succession would never be seen.
        impatient = not self._gave_up
        self._gave_up = True

        def give_up() -> bool:
            return self._ended or (impatient and self._waiting is not None and self._process.seconds > _PATIENCE)

        running = self._running()
        codes = running.playable.codes if running is not None and running is not self._outdated else {}
        self._process.ask(saved, self._moment(), frozenset(codes))
        made = self._process.made(give_up)
        if made is None:
            return None
        made = made.with_codes(codes)
        outcome = load(saved, made, self._stage, running)
        # Tried out there while it was loaded here.
        mistakes = self._process.verdict(give_up) if made.playable is not None else ()
        if mistakes is None:
            return None
        self._gave_up = False
        if any(mistake.severity == "error" for mistake in mistakes):
            return Outcome(saved, None, mistakes, made.files)
        self._remembered.add(saved, replace(made, diagnostics=(*made.diagnostics, *mistakes)))
        return replace(outcome, diagnostics=(*outcome.diagnostics, *mistakes))
