"""Files: reading files from anyone, replacing a file as a whole, and keeping files that can be made again.

A kept file contains what it is, its version, its length, the time at which it was completed and its digest, and only
this user could have written it. If any of this is wrong, the file counts as missing, and is made again.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import secrets
import stat
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from weft.codes.rows import InternalError
from weft.platform import system

# --- what anybody may have put there ---


class NotPlainError(InternalError, OSError):
    """Something that is not a plain file; `strerror` says what it is."""


def why_not_plain(mode: int) -> str | None:
    """The reason why a file with this mode cannot be read; None for a plain file."""
    if stat.S_ISDIR(mode):
        return "it is a folder"
    return None if stat.S_ISREG(mode) else "it is not a file with contents"


def open_plain(path: str | Path) -> BinaryIO:
    """A plain file, for reading. Raises OSError, and NotPlainError for anything else: reading a named pipe, for
    instance, might never end. No file has a name with a null byte."""
    try:
        # Opening a named pipe would otherwise wait for a writer.
        descriptor = system.open_reading(path)
    except ValueError:
        raise FileNotFoundError(2, os.strerror(2), str(path)) from None
    try:
        problem = why_not_plain(os.fstat(descriptor).st_mode)
        if problem is not None:
            raise NotPlainError(0, problem)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_plain(path: str | Path, most: int = sys.maxsize) -> bytes:
    """The contents of a plain file, of which no more than `most` bytes are read. Raises OSError."""
    with open_plain(path) as file:
        return file.read(min(most, os.fstat(file.fileno()).st_size + 1) if most == sys.maxsize else most)


# --- replacing a file ---


def new_token() -> str:
    """A part of a name that nobody can predict."""
    return secrets.token_hex(16)


def aside_of(path: Path, token: str) -> Path:
    """The name of a file until it replaces `path`. It has the same ending, by which a writer chooses the format."""
    return path.parent / f".{path.stem[:40]}-{token}{path.suffix}"


@contextmanager
def replacing(path: Path, token: str = "") -> Iterator[Path]:
    """A new file in the folder of `path`, under an unpredictable name, which `aside_of` gives for a `token` of the
    caller. It has the permissions of `path`, or those of a new file. It replaces `path` when the block ends, and is
    deleted if the block fails. Raises OSError."""
    # Its name is known before it is there, so that an interrupt at any moment leaves nothing.
    temporary = aside_of(path, token or new_token())
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield temporary
        os.chmod(temporary, _mode_of(path))  # a temporary file is closed to others
        system.replace(temporary, path)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def _mode_of(path: Path) -> int:
    """The permissions of a file, or those that a new one would have."""
    with suppress(OSError):
        return os.stat(path).st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def new_file(path: Path) -> BinaryIO:
    """A new file for writing, in place of anything that has this name. The target of a link stays. Raises OSError."""
    path.unlink(missing_ok=True)
    return open(path, "xb")


# --- what is kept ---


def cache_folder() -> Path:
    """The folder for files that can be made again. It need not exist. One that is relative does not count, as it would
    be another one in each folder."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (given if given.is_absolute() else system.cache_home()) / "weft"


def make_private(folder: Path) -> None:
    """Makes a folder in which only this user can write, or makes an existing one so. Raises OSError, also if the folder
    belongs to another user, as it may in a shared folder of temporary files."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or not system.is_own(found):
        raise PermissionError(1, "the folder belongs to another user", str(folder))
    if not system.is_closed(found):
        folder.chmod(0o700)


# Before the contents: a sign, what it is, a digest of its name (under another name it is another file), its length, the
# time of completion in ns and the digest of the contents.
_HEAD = struct.Struct("<8s32s16sQQ32s")
_SIGN = b"weftkept"
HEAD_BYTES = 128
"""The start of the contents of a kept file, at which numbers are aligned."""
_PIECE = 1 << 22


def _head_of(path: Path, what: str, length: int, completed: int, digest: bytes) -> bytes:
    name = hashlib.sha256(os.fsencode(path.name)).digest()[:16]
    return _HEAD.pack(_SIGN, what.encode(), name, length, completed, digest).ljust(HEAD_BYTES, b"\0")


class KeptWriter:
    """Writes a file that is to be kept, piece by piece, under an unpredictable name until it is complete. `what` is the
    kind of the file with its version, in at most 32 letters. In a `with` block, the file is kept when the block ends,
    and deleted if the block fails."""

    def __init__(self, path: Path, what: str) -> None:
        """The folder has to exist. Raises OSError."""
        self._path = path
        self._what = what
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", suffix=ASIDE, dir=path.parent)
        self._aside = Path(name)
        self._file = os.fdopen(descriptor, "wb")
        self._file.write(bytes(HEAD_BYTES))
        self._length = 0
        self._digest = hashlib.sha256()

    def write(self, data: bytes | memoryview) -> None:
        self._file.write(data)
        self._digest.update(data)
        self._length += len(data) if isinstance(data, bytes) else data.nbytes

    def keep(self) -> None:
        """Completes the file, which gets its name. Raises OSError."""
        now = time.time_ns()
        self._file.seek(0)
        self._file.write(_head_of(self._path, self._what, self._length, now, self._digest.digest()))
        self._file.close()
        os.utime(self._aside, ns=(now, now))
        system.replace(self._aside, self._path)

    def leave(self) -> None:
        """Deletes a file that is not kept. May be called twice."""
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._aside.unlink()

    def __enter__(self) -> KeptWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.keep()
        finally:
            self.leave()


ASIDE = ".part"
"""The ending of a file that is still being written."""


def keep(path: Path, what: str, data: bytes) -> None:
    """Keeps some bytes, in a folder that `make_private` prepares. Raises OSError."""
    make_private(path.parent)
    with KeptWriter(path, what) as file:
        file.write(data)


@contextmanager
def opened_kept(path: Path, what: str, is_private: bool = True) -> Iterator[BinaryIO]:
    """A kept file, at the beginning of its contents. A file that is not `is_private` may be in a folder of other users,
    such as that of a film. Raises OSError if it is missing or anything is wrong with it."""
    with _opened(path, is_private) as file:
        _, digest = _read_head(file, path, what)
        found = hashlib.sha256()
        while piece := file.read(_PIECE):
            found.update(piece)
        if found.digest() != digest:
            raise OSError(0, _DAMAGED)
        file.seek(HEAD_BYTES)
        yield file


def read_kept(path: Path, what: str) -> bytes:
    """The contents of a kept file. Raises OSError if it is missing or anything is wrong with it."""
    with opened_kept(path, what) as file:
        return file.read()


def is_kept(path: Path, what: str, is_private: bool = True) -> bool:
    """Whether a kept file exists, with nothing wrong."""
    with suppress(OSError), opened_kept(path, what, is_private):
        return True
    return False


def map_kept(path: Path, what: str) -> mmap.mmap:
    """A kept file, in memory that all processes share; its contents begin at `HEAD_BYTES`. It counts as used now. The
    digest is computed only if the file was written to after it was completed: that of an hour of sound takes a second.
    Raises OSError if it is missing or anything is wrong with it."""
    with _opened(path) as file:
        completed, digest = _read_head(file, path, what)
        found = os.fstat(file.fileno())
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if found.st_mtime_ns != completed:
        now = hashlib.sha256()
        with memoryview(memory) as view:
            for start in range(HEAD_BYTES, len(memory), _PIECE):
                now.update(view[start : start + _PIECE])
        if now.digest() != digest:
            raise OSError(0, _DAMAGED)
    with suppress(OSError):
        os.utime(path, ns=(time.time_ns(), found.st_mtime_ns))
    return memory


@contextmanager
def _opened(path: Path, is_private: bool = True) -> Iterator[BinaryIO]:
    """A file that only this user can write, in a folder that only this user can write. Raises OSError."""
    if is_private and not _is_closed(path.parent.lstat(), stat.S_IFDIR):
        raise PermissionError(1, "others can write in its folder")
    descriptor = system.open_reading(path, follow=False)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or (is_private and not _is_closed(found, stat.S_IFREG)):
            raise PermissionError(1, "others can write it")
        yield file


def _is_closed(found: os.stat_result, kind: int) -> bool:
    return stat.S_IFMT(found.st_mode) == kind and system.is_own(found) and system.is_closed(found)


def _read_head(file: BinaryIO, path: Path, what: str) -> tuple[int, bytes]:
    """When a kept file was completed, in ns, and its digest; it is read up to its contents. Raises OSError."""
    head = file.read(HEAD_BYTES)
    if len(head) == HEAD_BYTES:
        *_, completed, digest = _HEAD.unpack_from(head)
        length = os.fstat(file.fileno()).st_size - HEAD_BYTES
        if head == _head_of(path, what, length, completed, digest):
            return completed, digest
    raise OSError(0, _DAMAGED)


_DAMAGED = "it is damaged, or of another version"
