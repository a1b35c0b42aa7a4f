"""Rendering by several processes: the frames are divided into tasks, and each process draws those of its tasks.

Tasks are independent of each other, and the output of a task does not depend on which process does it, or when. If a
process ends in the middle of its task, only this task is lost, and another process does it again.
"""

from __future__ import annotations

import signal
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.child import BEAT, Child, Pulse
from weft.codes.rows import InternalError
from weft.disk import aside_of, new_file, new_token
from weft.errors import Diagnostic, WeftError, is_out_of_memory, out_of_memory
from weft.media.pictures import save_picture
from weft.runtime.compiling.stages import Build
from weft.runtime.films.encoding import EncodingError, FilmParts, FilmSpec, SoundTrack, write_segment
from weft.runtime.films.offline import Offline, Pixels

# A task that has ended this many processes would probably end the next one as well.
_MOST_ATTEMPTS = 3
# A process that dies loses a task. With this many tasks for each process, that is a small part of the work.
_TASKS_EACH = 4
# The answer of a process of a cluster, which holds all pictures of a task, should stay small.
_MOST_FRAMES = 32
# The most seconds that a frame may wait for a device without using the processor.
_PATIENCE = 60.0


class WorkerError(InternalError):
    """Frames cannot be written; the message is for people."""


class UnwrittenError(WorkerError):
    """The file of a frame of a sequence cannot be written; `number` is that of the frame."""

    def __init__(self, reason: str, number: int) -> None:
        super().__init__(reason)
        self.number = number


def save_frame(paths: Mapping[int, Path], number: int, picture: Pixels, origin: str, token: str = "") -> None:
    """Writes a frame of a sequence to its file, as `save_picture` does. Raises UnwrittenError."""
    try:
        save_picture(paths[number], picture, origin, token)
    except OSError as problem:
        raise UnwrittenError(problem.strerror or str(problem), number) from problem


@dataclass(frozen=True)
class RenderJob:
    """What all processes have to know: the program, `--backend` and the variable WEFT_BACKEND, the number of threads of
    each, `window` and `oversample` as for `Offline`, and the fingerprint that they must agree on."""

    build: Build
    backend: str | None
    environment: str | None
    threads: int
    window: str
    oversample: int
    fingerprint: str

    def prepare(self) -> Offline:
        """The program, ready to draw here. Raises WorkerError if it would draw something else here, and WeftError."""
        registry = load_registry()
        contexts = [spec.name for spec in registry.contexts]
        choices = choose(registry, contexts, self.backend, self.environment, in_files=True)
        offline = Offline(self.build, choices, self.threads, window=self.window, oversample=self.oversample)
        if offline.fingerprint != self.fingerprint:
            raise WorkerError("its media or devices have changed since it began (the same command starts again)")
        return offline


@dataclass(frozen=True)
class PictureTask:
    """Frames to draw, each to a file of its own. The checkpoint belongs to the first one, if they need one. By the
    token, files that are not complete are found when a process has ended."""

    paths: Mapping[int, Path]
    checkpoint: bytes | None = None
    token: str = field(default_factory=new_token)

    @property
    def frames(self) -> range | list[int]:
        """Their numbers, in order."""
        return sorted(self.paths)

    def write(self, offline: Offline, origin: str, drawn: Callable[[int], None]) -> None:
        """Draws them. `drawn` is called after each. Raises UnwrittenError, and WeftError."""
        frames = self.frames
        # Memory also advances through the frames that are there already.
        steps = frames if self.checkpoint is None else range(frames[0], frames[-1] + 1)
        for number, picture in offline.play(steps, self.checkpoint):
            if number in self.paths:
                save_frame(self.paths, number, picture, origin, self.token)
                drawn(number)

    def clean(self, folder: Path) -> None:
        """Deletes what a process has left that was ended meanwhile. Names of files are relative to a folder."""
        for path in self.paths.values():
            with suppress(OSError):
                (folder / aside_of(path, self.token)).unlink()


@dataclass(frozen=True)
class SegmentTask:
    """Frames to draw and to encode, as one segment of a film. The checkpoint belongs to the first one, if they need
    one."""

    spec: FilmSpec
    frames: range
    path: Path
    checkpoint: bytes | None = None

    def write(self, offline: Offline, origin: str, drawn: Callable[[int], None]) -> None:
        """Draws and encodes them. `drawn` is called after each. Raises EncodingError, and WeftError."""

        def pictures() -> Iterator[Pixels]:
            for number, picture in offline.play(self.frames, self.checkpoint):
                yield picture
                drawn(number)

        write_segment(self.spec, self.path, pictures())


@dataclass(frozen=True)
class SoundTask:
    """The sound of a film of the frames `numbers`."""

    numbers: range
    path: Path
    frames: range = range(0)

    def write(self, offline: Offline, origin: str, drawn: Callable[[int], None]) -> None:
        """Computes it. Raises OSError, and WeftError."""
        with new_file(self.path) as file:
            frames = offline.film((), self.numbers, lambda block: file.write(block.astype("<f4").tobytes())).frames
            deque(frames, maxlen=0)


RenderTask = PictureTask | SegmentTask | SoundTask


def picture_tasks(missing: Mapping[int, Path], workers: int) -> list[RenderTask]:
    """The frames of a sequence, by their numbers, as tasks for this many processes."""
    numbers = sorted(missing)
    count = min(len(numbers), max(workers * _TASKS_EACH, -(-len(numbers) // _MOST_FRAMES)))
    parts = np.array_split(np.array(numbers), count) if numbers else []
    return [PictureTask({int(number): missing[int(number)] for number in part}) for part in parts]


def film_tasks(spec: FilmSpec, parts: FilmParts, numbers: range, track: SoundTrack | None) -> list[RenderTask]:
    """The segments of a film that are missing. Its sound comes first, since it cannot be divided."""
    missing = set(parts.missing)
    segments = [
        SegmentTask(spec, parts.frames(first), path) for first, path in parts.segments.items() if first in missing
    ]
    return [*([] if track is None else [SoundTask(numbers, track.path)]), *segments]


def with_checkpoints(tasks: Iterable[RenderTask], offline: Offline) -> list[RenderTask]:
    """The same tasks, each with the state of the program before its first frame, if it remembers. Raises WeftError."""
    if not offline.remembers:
        return list(tasks)
    known = dict(offline.checkpoints(task.frames[0] for task in tasks if task.frames))
    return [task if isinstance(task, SoundTask) else replace(task, checkpoint=known[task.frames[0]]) for task in tasks]


class RenderPool(Protocol):
    """Draws frames in other processes."""

    count: int
    """The number of frames that are drawn at the same time."""
    findings: dict[Diagnostic, None]
    """Warnings about the frames."""
    changes: dict[str, None]
    """What ran on another device than intended."""

    def run(self, tasks: Iterable[RenderTask]) -> Iterator[int]:
        """Does all tasks, and yields the number of each frame once it is drawn, in any order. Raises WorkerError, and
        WeftError."""

    def close(self) -> None:
        """Ends everything that it has started; it draws nothing after that. May be called twice."""


class WorkerPool(RenderPool):
    """Processes of this machine. They are started when there is something to draw, and stay until the pool is closed,
    or something fails."""

    def __init__(
        self, job: RenderJob, count: int, folder: Path | None = None, backends: Sequence[str] = ()
    ) -> None:
        """The names of media are relative to a folder, by default to the current one. The processes share the
        `backends`, each a value of `--backend`; by default, all have that of the job."""
        self.count = count
        self.findings = {}
        self.changes = {}
        self._job = job
        self._folder = folder
        self._tasks: dict[Child, RenderTask | None] = {}
        """All processes, each with what it is doing."""
        self._backends: list[str | None] = [*backends] or [job.backend]
        self._backend_of: dict[Child, str | None] = {}
        self._is_closed = False

    def run(self, tasks: Iterable[RenderTask]) -> Iterator[int]:
        waiting = deque(tasks)
        attempts = Counter[int]()
        drawn = set[int]()
        is_complete = False
        try:
            self._start(min(self.count, len(waiting)) - len(self._tasks))
            while waiting or any(self._tasks.values()):
                self._hand_out(waiting)
                for child in self._ready():
                    try:
                        message = child.connection.recv()
                    except (EOFError, OSError):
                        lost = self._lost(child, attempts)
                        if lost is not None:
                            waiting.appendleft(lost)
                        continue
                    number = self._take(child, message)
                    if number is not None and number not in drawn:
                        drawn.add(number)
                        yield number
            is_complete = True
        finally:
            if not is_complete:
                self.close()

    def close(self) -> None:
        self._is_closed = True
        for child, task in self._tasks.items():
            self._end(child, task)
        self._tasks.clear()

    def _end(self, child: Child, task: RenderTask | None) -> None:
        """Ends a process, and deletes what it has not completed. Parts of a film are in a folder of their own."""
        child.end()
        if isinstance(task, PictureTask):
            task.clean(self._folder or Path())

    def _start(self, count: int) -> None:
        """Starts processes."""
        if self._is_closed:
            raise WorkerError("it was ended")
        try:
            started = [Child("weft.runtime.films.workers:main", folder=self._folder) for _ in range(count)]
        except OSError as problem:
            raise WorkerError(f"a process that draws cannot be started: {problem.strerror}") from problem
        self._tasks |= dict.fromkeys(started)
        for child in started:
            used = Counter(self._backend_of.values())
            self._backend_of[child] = least = min(self._backends, key=used.__getitem__)
            with suppress(OSError):  # its end is noticed when messages are read
                child.connection.send(replace(self._job, backend=least))

    def _hand_out(self, waiting: deque[RenderTask]) -> None:
        """Gives tasks to the processes that have none."""
        for child, task in self._tasks.items():
            if task is None and waiting:
                self._tasks[child] = waiting.popleft()
                with suppress(OSError):
                    child.connection.send(self._tasks[child])

    def _ready(self) -> list[Child]:
        """Waits until processes have sent something, or have ended."""
        by_connection = {child.connection: child for child in self._tasks}
        return [by_connection[found] for found in wait(list(by_connection)) if isinstance(found, Connection)]

    def _lost(self, child: Child, attempts: Counter[int]) -> RenderTask | None:
        """Starts another process in place of one that has ended. Returns the task that this one was doing."""
        task = self._tasks.pop(child)
        del self._backend_of[child]
        self._end(child, task)
        key = -1 if task is None or not task.frames else task.frames[0]
        attempts[key] += 1
        if attempts[key] >= _MOST_ATTEMPTS:
            what = "the sound" if key == -1 else f"the frames from {key} on"
            raise WorkerError(f"{_MOST_ATTEMPTS} processes that computed {what} {child.ending}")
        self._start(1)
        return task

    def _take(self, child: Child, message: tuple[str, Any]) -> int | None:
        """Takes a message of a process. Returns the number of the frame that it has drawn, if that is the message."""
        match message:
            case "drawn", int(number):
                return number
            case "done", (findings, changes):
                self.findings |= dict.fromkeys(findings)
                self.changes |= dict.fromkeys(changes)
                self._tasks[child] = None
            case "refused", diagnostics:
                raise WeftError(*diagnostics)
            case "unwritten", (str(reason), int(number)):
                raise UnwrittenError(reason, number)
            case "failed", reason:
                raise WorkerError(reason)
        return None


# --- in a process that draws ------------------------------------------------------------------------------------------


def main(descriptor: str, lifeline: str) -> None:
    """Does the tasks that arrive, until the other end of the socket is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent, pulse = Connection(int(descriptor)), Pulse(int(lifeline))
    with suppress(EOFError, OSError):
        parent.send(_work(parent, pulse))


def _work(parent: Connection, pulse: Pulse) -> tuple[str, object]:
    """Does tasks until one fails, and sends the reason."""
    try:
        # Opening a device may wait for a driver, or for a process that tries one.
        pulse.allow(_PATIENCE)
        job: RenderJob = parent.recv()
        offline = job.prepare()
        while True:
            while not parent.poll(BEAT):
                pulse.beat()
            task: RenderTask = parent.recv()

            def drawn(number: int) -> None:
                parent.send(("drawn", number))
                pulse.allow(_PATIENCE)

            pulse.allow(_PATIENCE)
            task.write(offline, job.fingerprint, drawn)
            parent.send(("done", (offline.findings(), [str(change) for change in offline.changes()])))
    except WeftError as failure:
        return "refused", failure.diagnostics
    except UnwrittenError as failure:
        return "unwritten", (str(failure), failure.number)
    except (EncodingError, WorkerError) as failure:
        return "failed", str(failure)
    except EOFError:
        raise
    except OSError as failure:
        return "failed", failure.strerror or str(failure)
    except Exception as failure:  # of drivers and libraries
        if is_out_of_memory(failure):
            return "refused", (out_of_memory("this could not be drawn", failure),)
        return "failed", f"{type(failure).__name__}: {failure}"
