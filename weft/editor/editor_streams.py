"""stdin and stdout of the language server. Its end does not wait for an editor that says nothing and does not leave."""

from __future__ import annotations

import io
import os
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO

_PIECE = 1 << 16


class EditorStreams:
    """What the editor writes, for a reader that can be told that there is no more, and what it reads. In a `with`
    block."""

    def __init__(self) -> None:
        # What anything else prints must not come between the messages.
        self.stdout: BinaryIO = _Messages(os.dup(sys.stdout.fileno()), self.leave)
        taken, self._fed = socket.socketpair()
        with taken:
            self.stdin: BinaryIO = taken.makefile("rb")
        # No thread can be woken that waits for stdin, but this one need not end before the process does.
        threading.Thread(target=self._feed, args=(sys.stdin.fileno(),), name="weft-stdin", daemon=True).start()

    def _feed(self, descriptor: int) -> None:
        with suppress(OSError):  # nobody reads any more
            while data := os.read(descriptor, _PIECE):
                self._fed.sendall(data)
        self.leave()

    def leave(self) -> None:
        """Ends `stdin`, as if the editor had. Any thread may call it, and more than once."""
        with suppress(OSError):
            self._fed.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> EditorStreams:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()
        self.stdout.close()


class _Messages(io.FileIO):
    """What the editor reads. If it does not read any more, it has left."""

    def __init__(self, descriptor: int, leave: Callable[[], None]) -> None:
        super().__init__(descriptor, "wb")
        self._leave = leave

    def write(self, data: Any) -> int:
        """Writes all of it."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[super().write(rest) or 0 :]
        except OSError:
            self._leave()
        return len(data)
