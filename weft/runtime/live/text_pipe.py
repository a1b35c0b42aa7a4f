"""Texts that are piped in, one after another, for a performance without a file."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from weft.runtime.program.files import TEXT_LIMIT, FileState
from weft.syntax.includes import PIPED

PIPE_NAME: Final = Path(PIPED)
"""What the patch is called whose texts are piped in."""

NOT_PIPED_YET: Final = "nothing has been piped in yet"
"""The problem of a text that is still to come."""

SEPARATOR: Final = b"---"
"""The line between two texts."""

_PIECE = 1 << 16
# The pieces that wait for their turn. Who writes more has to wait.
_MOST_WAITING = 16
# A text ends when nothing has followed for this many seconds, unless separators say where texts end.
_PAUSE = 0.1
# Seconds between checks while the first text is waited for.
_GLANCE = 0.1


class TextSplitter:
    """Finds the texts in what is piped in. A text ends at a line with `---`. Until the first such line, it also ends at
    a pause after the end of a line: bridges that feed an interpreter write each text at once. Blank texts do not
    count."""

    def __init__(self) -> None:
        self._text = bytearray()
        self._line = bytearray()
        self._has_separators = False

    @property
    def is_waiting(self) -> bool:
        """Whether a pause would end a text."""
        return bool(self._text) and not self._line and not self._has_separators

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The texts that end in a piece."""
        *lines, rest = piece.split(b"\n")
        for part in (*(line + b"\n" for line in lines), rest):
            self._extend(self._line, part)
            if part.endswith(b"\n"):
                yield from self._end_line()

    def pause(self) -> Iterator[bytes]:
        """The text that ends at a pause."""
        if self.is_waiting:
            yield from self._end_text()

    def end(self) -> Iterator[bytes]:
        """The text that the end of the pipe ends."""
        yield from self._end_line()
        yield from self._end_text()

    def _end_line(self) -> Iterator[bytes]:
        line, self._line = self._line, bytearray()
        if line.strip() == SEPARATOR:
            self._has_separators = True
            yield from self._end_text()
        else:
            self._extend(self._text, line)

    def _end_text(self) -> Iterator[bytes]:
        text, self._text = bytes(self._text), bytearray()
        if text.strip():
            yield text

    @staticmethod
    def _extend(kept: bytearray, more: bytes | bytearray) -> None:
        """Keeps no more than shows that a text is too large."""
        kept += more[: max(0, TEXT_LIMIT + 1 - len(kept))]


class TextPipe:
    """Reads texts from a pipe, in threads of its own."""

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._pieces: queue.Queue[bytes] = queue.Queue(_MOST_WAITING)
        self._lock = threading.Lock()
        self._latest: bytes | None = None
        self._take: Callable[[bytes], object] | None = None
        self._has_ended = False
        self._has_begun = False

    def first(self, patience: float | None) -> FileState | None:
        """Begins to read, and waits for the first text, for some seconds, or for as long as it takes. What comes within
        that time counts, and it may be that nothing can come any more. None if nothing has come yet."""
        if not self._has_begun:
            self._has_begun = True
            for work in (self._read, self._split):
                threading.Thread(target=work, name="weft-pipe", daemon=True).start()
        deadline = None if patience is None else time.monotonic() + patience
        while (found := self.state()) is None and (deadline is None or time.monotonic() < deadline):
            time.sleep(_GLANCE / 10)
        return found

    def state(self) -> FileState | None:
        """The latest text; a problem if none has come, and none will. For any thread."""
        with self._lock:
            if self._latest is not None:
                return FileState("text", self._latest)
            return FileState("text", problem="nothing is piped in") if self._has_ended else None

    def follow(self, take: Callable[[bytes], object], known: bytes) -> None:
        """Has each further text taken, by another thread; also one that has come since `known`."""
        with self._lock:
            self._take, missed = take, self._latest
        if missed is not None and missed != known:
            take(missed)

    def _read(self) -> None:
        while True:
            try:
                piece = os.read(self._descriptor, _PIECE)
            except OSError:
                piece = b""
            self._pieces.put(piece)
            if not piece:
                return

    def _split(self) -> None:
        splitter = TextSplitter()
        while not self._has_ended:
            try:
                piece = self._pieces.get(timeout=_PAUSE if splitter.is_waiting else None)
            except queue.Empty:
                self._give(splitter.pause())
                continue
            self._give(splitter.feed(piece) if piece else splitter.end())
            if not piece:
                with self._lock:
                    self._has_ended = True

    def _give(self, texts: Iterator[bytes]) -> None:
        for text in texts:
            with self._lock:
                self._latest, take = text, self._take
            if take is not None:
                take(text)
