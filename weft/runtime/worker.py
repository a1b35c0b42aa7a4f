"""The compile worker: a thread that turns saved texts into programs ready to swap in, always the latest one."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from weft.contexts import ContextTable
from weft.errors import Diagnostic, Source, WeftError
from weft.media.pictures import picture_problem
from weft.runtime.build import Build, build
from weft.runtime.program import Stage, Swap
from weft.runtime.watcher import FileState, read_text, stat_media
from weft.syntax.includes import UnreadableError, decode

# Parsing on Python 3.10 takes C stack for every level of nesting.
_STACK_BYTES = 64 << 20


@dataclass(frozen=True)
class Saved:
    """A text to be compiled, found at a moment of time.monotonic; `problem` says why there is none."""

    data: bytes
    moment: float
    problem: str | None = None

    @property
    def hash(self) -> str:
        return hashlib.sha256(self.data).hexdigest()[:16]


@dataclass(frozen=True)
class Outcome:
    """What became of a saved text: a program to swap in, or the diagnostics that say why there is none. `files` are
    the files that the text names, as they were when they were read, or looked for in vain."""

    saved: Saved
    swap: Swap | None
    diagnostics: tuple[Diagnostic, ...]
    files: Mapping[Path, FileState] = field(default_factory=dict)


@dataclass(frozen=True)
class Options:
    """How texts are compiled: settings that override the patch's."""

    contexts: ContextTable
    settings: Mapping[str, float]


@dataclass
class _Reader:
    """Reads what a text names, and keeps note of it."""

    files: dict[Path, FileState] = field(default_factory=dict)

    def read(self, path: str) -> str:
        """An included text. Raises UnreadableError."""
        state = self.files[Path(path)] = read_text(Path(path))
        if state.problem:
            raise UnreadableError(state.problem)
        return decode(state.data or b"")

    def probe(self, path: str) -> str | None:
        """What is wrong with a picture."""
        self.files[Path(path)] = stat_media(Path(path))
        return picture_problem(path)


class Compiler:
    """Compiles one text after another, each with what is left of the one before."""

    def __init__(self, name: str, options: Options, stage: Stage) -> None:
        self._name = name
        self._options = options
        self._stage = stage

    def compile(self, saved: Saved, before: Swap | None) -> Outcome:
        """Never raises for anything that a patch can contain."""
        reader = _Reader()
        try:
            swap, diagnostics = self._made(saved, before, reader)
        except UnreadableError as failure:
            words = f"{self._name} cannot be read: {failure}"
            return Outcome(saved, None, (Diagnostic("error", "unreadable-file", words),))
        except WeftError as failure:
            return Outcome(saved, None, failure.diagnostics, reader.files)
        return Outcome(saved, swap, diagnostics, reader.files)

    def _made(self, saved: Saved, before: Swap | None, reader: _Reader) -> tuple[Swap | None, tuple[Diagnostic, ...]]:
        if saved.problem:
            raise UnreadableError(saved.problem)
        source = Source(self._name, decode(saved.data))
        made = build(source, self._options.contexts, self._options.settings, probe=reader.probe, read=reader.read)
        if not made.patch.sinks:
            return None, (*made.warnings, _nothing_to_show(self._options.contexts))
        started = time.perf_counter()
        swap = self._stage.prepare(made, picture_size(made), before)
        swap = replace(swap, hash=saved.hash, load_ms=(time.perf_counter() - started) * 1e3)
        return swap, (*made.warnings, *swap.left_out)


def _nothing_to_show(contexts: ContextTable) -> Diagnostic:
    words = "this patch has no output statement, so there is nothing to show or play"
    return Diagnostic("error", "no-output", words, None, f"for example {next(iter(contexts)).example}")


def picture_size(made: Build) -> tuple[int, int]:
    """Width and height of the picture that a program draws."""
    return int(made.patch.settings["width"]), int(made.patch.settings["height"])


class CompileWorker:
    """The thread. Texts that are replaced before their turn are never compiled."""

    def __init__(self, compiler: Compiler, running: Callable[[], Swap | None]) -> None:
        """`running` gives the program that runs now, whose kernels can be used again."""
        self._compiler = compiler
        self._running = running
        self._condition = threading.Condition()
        self._waiting: Saved | None = None
        self._finished: list[Outcome] = []
        self._ended = False
        before = threading.stack_size(_STACK_BYTES)
        try:
            self._thread = threading.Thread(target=self._run, name="weft-compile", daemon=True)
            self._thread.start()
        finally:
            threading.stack_size(before)

    def submit(self, saved: Saved) -> None:
        """Has a text compiled, instead of one that still waits."""
        with self._condition:
            self._waiting = saved
            self._condition.notify()

    def take(self) -> list[Outcome]:
        """What has been finished since this was asked last, oldest first."""
        with self._condition:
            finished, self._finished = self._finished, []
            return finished

    def close(self) -> None:
        """Ends the thread once it has finished what it is at."""
        with self._condition:
            self._ended = True
            self._condition.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._condition:
                while self._waiting is None and not self._ended:
                    self._condition.wait()
                if self._ended or self._waiting is None:
                    return
                saved, self._waiting = self._waiting, None
            outcome = self._attempt(saved)
            with self._condition:
                self._finished.append(outcome)

    def _attempt(self, saved: Saved) -> Outcome:
        try:
            return self._compiler.compile(saved, self._running())
        except Exception as failure:
            # Whatever goes wrong in here, the performance goes on with what it has.
            words = f"weft itself failed on this text ({type(failure).__name__}: {failure})"
            hint = "this is a bug in weft: WEFT_DEBUG=1 weft check shows where"
            return Outcome(saved, None, (Diagnostic("error", "internal", words, None, hint),))
