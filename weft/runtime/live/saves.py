"""Saves: the files of a performance are watched, compiled in the background, and handed over when they are ready.

The watcher reports each change of the files' contents once, whole, and soon. Editors save in many ways: they rename a
new file over the old one, write in place, truncate first, or move the old file away and come back. So events only say
*when to look*; only what is found counts:

- `closed` and `moved` mean that a writer has finished: look at once. `modified`, `created` and `deleted` mean that a
  writer is at work, who often writes a deleted file again: look after a quiet time. Every half second, look at
  everything, since network drives send no events and a link high up in a path may change its target.
- A state has to be found twice, with no event in between, before it is believed: the events of a writer that has just
  begun may still be on their way. A file that is missing or empty gets more time to come back.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from watchdog.events import (
    FileClosedEvent, FileCreatedEvent, FileDeletedEvent, FileModifiedEvent, FileMovedEvent, FileSystemEvent,
    FileSystemEventHandler
)
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver, ObservedWatch

from weft.permissions import real_path
from weft.platform import system
from weft.runtime.compiling.compiler import Saved
from weft.runtime.compiling.worker import CompileWorker, LoadResult
from weft.runtime.live.events import EventLog
from weft.runtime.live.start_values import written_aside
from weft.runtime.live.text_pipe import NOT_PIPED_YET, PIPE_NAME, TextPipe
from weft.runtime.program.files import TEXT_LIMIT, TOO_LARGE, FileState, look, read_text
from weft.runtime.program.program import Programs

# Seconds.
_QUIET = 0.03  # after a write that may not be the last
_SETTLE = 0.002  # for events on their way; measured, they take 0.3 ms
_GONE = 0.2  # for a missing or empty file to come back
_POLL = 0.5
_LEAVE = 1.0  # for the end of the system's watches


class _Watched:
    """One watched file. All fields except `path` are guarded by the watcher's lock. A relative path remains valid when
    the current folder is renamed. So it is made absolute only to compare it with the paths of events."""

    def __init__(self, path: Path, known: FileState) -> None:
        self.path = path
        self.reported = known
        self.candidate: FileState | None = None  # found once
        self.due: float | None = None  # when to look; None: at the next poll
        self.settle = _SETTLE  # seconds for which the next candidate has to stay

    def look_at(self, moment: float, settle: float) -> None:
        """Schedules a look after an event or a poll. Earlier looks do not count any more."""
        self.due = moment
        self.settle = settle
        self.candidate = None

    def weigh(self, found: FileState, now: float) -> bool:
        """Whether a found state is a change to report. If it might be, schedules another look."""
        candidate, self.candidate = self.candidate, None
        if found.same_contents(self.reported):
            return False
        if found == candidate:
            self.reported = found
            return True
        self.candidate = found
        self.due = now + (_GONE if found.hollow else self.settle)
        return False

    def names(self) -> set[str]:
        """The absolute paths, free of links in their directories, whose events concern this file."""
        return {os.path.join(real_path(self.path.parent), self.path.name), real_path(self.path)}


class Watcher:
    """Reports changes to a set of files, which may be replaced at any time.

    `on_change` is called with the new state of each changed file, by the path that was given for it. The watcher's own
    thread calls it: it should only pass the change on, and must not raise or call `close`.
    """

    def __init__(self, on_change: Callable[[Mapping[Path, FileState]], None]) -> None:
        self._on_change = on_change
        self._wake = threading.Condition()
        self._files: dict[Path, _Watched] = {}
        self._by_name: dict[str, list[_Watched]] = {}
        self._next_poll = time.monotonic()
        self._closing = False
        self._ended = threading.Event()
        self._folders = _Folders(self._notice)
        self._thread = threading.Thread(target=self._run, name="weft-watcher", daemon=True)
        self._thread.start()

    def watch(self, files: Mapping[Path, FileState]) -> None:
        """Replaces the set of files. Each comes with the state that the caller knows, from `read_text` or `stat_media`:
        changes since then are reported too. A file that is already watched is left alone. May be called from any
        thread, also from `on_change`.
        """
        with self._wake:
            before = self._files
            self._files = {}
            for path, known in files.items():
                kept = before.get(path)
                fits = kept is not None and kept.reported.kind == known.kind
                self._files[path] = kept if kept is not None and fits else _Watched(path, known)
            self._next_poll = time.monotonic()
            self._wake.notify()

    def replace(self, new: Mapping[Path, Path], contents: Mapping[Path, bytes]) -> None:
        """Moves files over others. The `contents` that they then have are not reported. Raises OSError."""
        # Under the lock no look is weighed, so none that came too early or too late reports anything.
        with self._wake:
            for aside, target in new.items():
                system.replace(aside, target)
            for path, data in contents.items():
                if (file := self._files.get(path)) is not None:
                    file.reported, file.candidate = FileState("text", data), None

    def close(self) -> None:
        """Ends the watch. After it returns, `on_change` is not called any more. May be called twice."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._ended.wait()
        # What the system does to end its own watches may take long.
        self._thread.join(_LEAVE)

    def _notice(self, names: set[str], finished: bool) -> None:
        """Something happened to these names. Called by watchdog's thread."""
        moment = time.monotonic() + (0 if finished else _QUIET)
        with self._wake:
            for name in names:
                for file in self._by_name.get(name, ()):
                    file.look_at(moment, _SETTLE)
                    self._wake.notify()

    def _run(self) -> None:
        try:
            while self._wait():
                if time.monotonic() >= self._next_poll:
                    self._poll()
                changed = self._look()
                if changed:
                    self._on_change(changed)
        finally:
            self._ended.set()
            self._folders.close()

    def _wait(self) -> bool:
        """Waits for something to do; False when it is time to end."""
        with self._wake:
            while not self._closing:
                moments = [file.due for file in self._files.values() if file.due is not None]
                left = min([self._next_poll, *moments]) - time.monotonic()
                if left <= 0:
                    return True
                self._wake.wait(left)
            return False

    def _poll(self) -> None:
        """Updates the watched directories, then schedules a look at every file for which none is scheduled."""
        with self._wake:
            files = list(self._files.values())
            self._next_poll = time.monotonic() + _POLL
        names = {file: file.names() for file in files}
        # Not under the lock: watchdog holds a lock of its own here, and also while it delivers an event.
        self._folders.follow({os.path.dirname(name) for group in names.values() for name in group})
        with self._wake:
            self._by_name = {}
            for file, group in names.items():
                for name in group:
                    self._by_name.setdefault(name, []).append(file)
                if file.due is None:
                    # Without an event, a writer may still be at work, so it gets the quiet time.
                    file.look_at(time.monotonic(), _QUIET)

    def _look(self) -> dict[Path, FileState]:
        """Looks at the files that are due; returns the changes to report."""
        with self._wake:
            now = time.monotonic()
            ready = [file for file in self._files.values() if file.due is not None and file.due <= now]
            for file in ready:
                file.due = None
        changed = {}
        for file in ready:
            found = look(file.path, file.reported.kind)
            with self._wake:
                # An event during the look means that the look came too early.
                if file.due is None and self._files.get(file.path) is file and file.weigh(found, time.monotonic()):
                    changed[file.path] = found
                    # The file may be a link that now points into another directory.
                    self._next_poll = now
        return changed


# Events of reading a file are left out; otherwise every look would cause the next.
_EVENTS: list[type[FileSystemEvent]] = [
    FileClosedEvent, FileCreatedEvent, FileDeletedEvent, FileModifiedEvent, FileMovedEvent
]  # fmt: skip


class _Folders(FileSystemEventHandler):
    """The directories whose events watchdog delivers to `notice`. All else is for the watcher's thread only."""

    def __init__(self, notice: Callable[[set[str], bool], None]) -> None:
        self._notice = notice
        # By the directory's path, with its inode: a directory may be replaced by another of the same name.
        self._watches: dict[str, tuple[int, ObservedWatch]] = {}
        self._observer: BaseObserver | None = None
        logging.getLogger("watchdog").setLevel(logging.CRITICAL)  # which fails when a watch ends while it is at work
        try:
            observer = Observer()
            system.prepare_observer(observer)
            observer.start()
            self._observer = observer
        except OSError:  # the system's limit of watches is reached: polls remain
            pass

    def follow(self, folders: set[str]) -> None:
        """Watches those of these directories that exist, and no others."""
        if self._observer is None:
            return
        inodes = {folder: inode for folder in folders if (inode := _inode(folder)) is not None}
        # A new directory may get the inode of the previous one, whose emitter ended with it.
        alive = {emitter.watch for emitter in self._observer.emitters if emitter.is_alive()}
        for folder, (inode, watch) in list(self._watches.items()):
            if inodes.get(folder) != inode or watch not in alive:
                del self._watches[folder]
                self._observer.unschedule(watch)
        for folder in inodes.keys() - self._watches.keys():
            try:
                watch = self._observer.schedule(self, folder, event_filter=_EVENTS)
            except OSError:  # the limit of watches is reached, or it has just been deleted
                continue
            self._watches[folder] = (inodes[folder], watch)

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Called by watchdog's thread."""
        finished = isinstance(event, FileClosedEvent | FileMovedEvent)
        self._notice({os.fsdecode(event.src_path), os.fsdecode(event.dest_path)}, finished)

    def close(self) -> None:
        """Ends the watches and their threads."""
        if self._observer is not None:
            self._observer.stop()
            self._observer.join()


def _inode(folder: str) -> int | None:
    try:
        found = os.stat(folder)
    except OSError:
        return None
    return found.st_ino if stat.S_ISDIR(found.st_mode) else None


# Seconds for which the room for a picture has to stay the same before the program is compiled for it.
_SETTLED = 0.1


def without_overtaken(results: Iterable[LoadResult], accepted: Saved) -> Iterator[LoadResult]:
    """The results, in order, but for texts with other numbers that a save has overtaken. `accepted` is the last text
    that was saved and not refused before them."""
    base = accepted.hash
    for each in results:
        if not each.saved.is_turned:
            base = base if each.loaded is None else each.saved.hash
        elif each.saved.turned_from != base:
            continue
        yield each


class Saves:
    """Hands the saves of the file that plays to a worker, and watches all files that the text names."""

    def __init__(
        self, path: Path, worker: CompileWorker, programs: Programs, events: EventLog, fits: bool,
        pipe: TextPipe | None = None,
    ) -> None:  # fmt: skip
        """With `fits`, pictures are made to fit the room. The texts of the patch `PIPE_NAME` come from a `pipe`."""
        self.last = Saved(b"", 0.0)
        """The last saved text."""
        self._path = path
        self._worker = worker
        self._programs = programs
        self._events = events
        self._fits = fits
        self._pipe = pipe
        self._lock = threading.Lock()
        self._accepted = Saved(b"", 0.0)
        """The last text that was not refused: that of the program that plays, or waits for its moment."""
        self._playing = Saved(b"", 0.0)
        """The text of the program that plays, as it was saved."""
        self._room: tuple[int, int] | None = None
        self._room_since = 0.0
        self._files: Mapping[Path, FileState] = {}
        self._watcher: Watcher | None = None

    def begin(self, room: tuple[int, int] | None) -> Saved:
        """The current state of the file, for a screen with this much room. If it can be read, it is compiled, now and
        after each save."""
        state, name = self._look(self._path), str(self._path)
        room = room if self._fits else None
        saved = Saved(state.data or b"", time.monotonic(), state.problem, room, is_first=True, name=name)
        with self._lock:
            self.last = saved
            if not saved.problem:
                self._worker.submit(saved)
        if not saved.problem:
            self._watch(saved, {})
        if self._pipe is not None:
            self._pipe.follow(self.put, saved.data)
        return saved

    def _look(self, path: Path) -> FileState:
        """The state of a file, or of the pipe."""
        if self._pipe is None or path != PIPE_NAME:
            return read_text(path)
        return self._pipe.state() or FileState("text", problem=NOT_PIPED_YET)

    def open(self, path: Path) -> None:
        """Compiles and watches another file from now on, even if it cannot be read yet."""
        state = self._look(path)
        with self._lock:
            self._path = path
            self._submit(state, time.monotonic(), is_new=False)
        self._files = {}
        self._watch(self.last, {})

    def ahead(self, path: Path) -> Saved | None:
        """The text that would be compiled if another file was opened now; None if it cannot be read. For any thread."""
        state = self._look(path)
        if state.problem is not None:
            return None
        return Saved(state.data or b"", time.monotonic(), None, self.last.room, name=str(path))

    def _submit(self, state: FileState, moment: float, is_new: bool = True) -> None:
        """Queues a state of the file, or another text in its place, which is told if it `is_new`. The lock must be
        held."""
        is_first, name = self._programs.running is None, str(self._path)
        self.last = Saved(state.data or b"", moment, state.problem, self.last.room, is_first, name)
        if is_new:
            # Before anything can come of it, which is told by others.
            self._events.emit("saved", hash=self.last.hash)
        self._worker.submit(self.last)

    @property
    def file(self) -> str:
        """The file that plays, as it was given; the empty name if its texts come from a pipe. For any thread."""
        return "" if self._path == PIPE_NAME else str(self._path)

    def put(self, data: bytes) -> Saved:
        """Compiles a text that is not saved, in place of that of the file, until the file changes. For any thread."""
        problem = TOO_LARGE if len(data) > TEXT_LIMIT else None
        with self._lock:
            self._submit(FileState("text", None if problem else data, problem=problem), time.monotonic())
            return self.last

    @property
    def accepted(self) -> Saved:
        """The last text that was saved and not refused."""
        return self._accepted

    def plays(self, saved: Saved) -> None:
        """Notes that the program of a text plays."""
        if not saved.is_turned:
            self._playing = saved

    def is_playing(self, text: bytes) -> bool:
        """Whether a text plays, and none is about to replace it. For any thread."""
        return text == self._playing.data == self._accepted.data

    def turn(self, text: bytes) -> None:
        """Compiles the last text that was not refused, with other numbers. A save that waits comes first."""
        with self._lock:
            accepted = self._accepted
            if accepted.name:
                now, room, base = time.monotonic(), self.last.room, accepted.hash
                self._worker.submit(
                    replace(accepted, data=text, moment=now, room=room, is_first=False, turned_from=base)
                )

    def arrive(self, saved: Saved) -> None:
        """Compiles a text again whose numbers have glided to their values. A save that waits comes first."""
        with self._lock:
            self._worker.submit(replace(saved, room=self.last.room, has_glided=True))

    def close(self) -> None:
        """Ends the watcher at once. May be called twice."""
        if self._watcher is not None:
            self._watcher.close()

    def _changed(self, changes: Mapping[Path, FileState]) -> None:
        """Compiles the patch again after a change of its files. Called by the watcher's thread."""
        moment = time.monotonic()
        with self._lock:
            # The text that plays may be another than that of the file: one that was sent.
            state = changes.get(self._path) or FileState("text", self.last.data, problem=self.last.problem)
            self._submit(state, moment)

    def follow(self, room: tuple[int, int] | None) -> None:
        """Compiles the patch again when the room for the picture has changed and stays the same for a moment."""
        now = time.monotonic()
        if room != self._room:
            self._room, self._room_since = room, now
        if not self._fits or now - self._room_since < _SETTLED:
            return
        with self._lock:
            if room == self.last.room:
                return
            self.last = replace(self.last, moment=now, room=room)
            # A refused text is compiled again only after the next save.
            if self.last.data == self._accepted.data:
                self._worker.submit(self.last)

    def answered(self, outcome: LoadResult) -> None:
        """Watches all files that a compiled text names; also those of a refused text, which may contain its error."""
        if outcome.saved.name != str(self._path) or outcome.saved.is_turned:
            return  # another patch was asked for, or it is not a text of the file
        if outcome.loaded is not None:
            self._accepted = outcome.saved
        elif outcome.saved is self._accepted:
            # It was refused while it waited for its moment.
            self._accepted = self._playing
        self._files = outcome.files if outcome.loaded is not None else {**self._files, **outcome.files}
        self._watch(outcome.saved, self._files)

    def rewrite(self, texts: Mapping[Path, bytes]) -> None:
        """Writes these texts over files of the program that plays. This does not count as a save. Raises
        NotWrittenError, and OSError if only some are written."""
        assert self._watcher is not None, "a program plays"
        with written_aside(texts) as asides, self._lock:
            self._watcher.replace(asides, texts)
            data = texts.get(self._path)
            if data is not None:
                known = self.last, self._accepted, self._playing
                self.last, self._accepted, self._playing = (replace(each, data=data) for each in known)
            written = {path: FileState("text", data) for path, data in texts.items() if path in self._files}
            self._files = {**self._files, **written}

    def _watch(self, saved: Saved, files: Mapping[Path, FileState]) -> None:
        self._watcher = self._watcher or Watcher(self._changed)
        own = {} if self._path == PIPE_NAME else {self._path: FileState("text", saved.data, problem=saved.problem)}
        self._watcher.watch({**own, **files})
