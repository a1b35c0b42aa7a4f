"""Programs that are kept, so that a driver need not make them again: the last ones as they are, and more of them on
disk in the form that a driver has made of them."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

from weft.disk import cache_folder, keep, read_kept
from weft.recently_used import RecentlyUsed

K = TypeVar("K", bound=Hashable)
P = TypeVar("P")

# The programs of this many recent texts stay loaded. A text with other numbers has the same one, and so has an undo.
_RECENT = 64


class RecentPrograms(Generic[K, P]):
    """The programs of recent texts, by what they are made of."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: RecentlyUsed[K, Future[P]] = RecentlyUsed(_RECENT)

    def get_or_make(self, key: K, make: Callable[[], P]) -> P:
        """The program of a key, made if it is new. Waits if another thread makes it. Raises what `make` raises."""
        with self._lock:
            known = self._made.find(key)
            made = known or Future[P]()
            self._made.keep(key, made)
        if known is None:
            try:
                made.set_result(make())
            except BaseException as failure:
                made.set_exception(failure)
                with self._lock:
                    self._made.forget(key)
        return made.result()


_KEPT = "program 2"

# The number of programs that are kept on disk. With more, the oldest half is removed.
_MOST_KEPT = 512

# Values in comments are for people.
_REMARK = re.compile(r"[ \t]*//[^\n]*")


class KeptProgram:
    """The place of a program on disk."""

    def __init__(self, driver: object, texts: Iterable[tuple[object, str]]) -> None:
        """`driver` says by its `repr` which driver and which device can take the program; the texts have a kind each.
        Comments in them do not count."""
        key = hashlib.sha256(repr(driver).encode())
        for kind, text in texts:
            key.update(repr((kind, _REMARK.sub("", text))).encode())
        self._path = cache_folder() / "programs" / key.hexdigest()[:32]

    def read(self) -> bytes | None:
        """The program; None if it is missing, damaged, or was written by others."""
        with suppress(OSError):
            return read_kept(self._path, _KEPT)
        return None

    def write(self, program: bytes) -> None:
        """Keeps a program, if the disk can be written to."""
        with suppress(OSError):
            keep(self._path, _KEPT, program)
            _remove_old(self._path.parent)


def _remove_old(folder: Path) -> None:
    """Removes the programs that were kept first if there are too many. Raises OSError."""
    files = list(folder.iterdir())
    if len(files) > _MOST_KEPT:
        for file in sorted(files, key=lambda each: each.stat().st_mtime)[: len(files) // 2]:
            file.unlink(missing_ok=True)
