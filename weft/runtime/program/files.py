"""The files of a performance: the state of one at a moment (the bytes of a text, or the stamp of a picture), and the
set list of its patches."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

from weft.disk import NotPlainError, open_plain, why_not_plain
from weft.errors import error
from weft.syntax.scanner import MAX_BYTES, is_patch_name

TEXT_LIMIT = MAX_BYTES
"""The most bytes of a text that are read: no patch is larger."""

TOO_LARGE = f"it is larger than {TEXT_LIMIT // 1_000_000} MB, which no patch is"

Kind: TypeAlias = Literal["text", "media"]


@dataclass(frozen=True, slots=True)
class FileState:
    """The state of a file.

    `data` holds the bytes of a text that could be read. `stamp` is (mtime in ns, size, inode) of a file that exists;
    media are compared by it alone, texts by their bytes. `problem` says in words why nothing can be read, such as
    "there is no such file".
    """

    kind: Kind
    data: bytes | None = None
    stamp: tuple[int, int, int] | None = None
    problem: str | None = None

    def same_contents(self, other: FileState) -> bool:
        """Whether the two states hold the same contents, or the same problem."""
        if self.problem or other.problem:
            return self.problem == other.problem
        return self.stamp == other.stamp if self.kind == "media" else self.data == other.data

    @property
    def hollow(self) -> bool:
        """Whether the file is empty or missing, as it may be for a moment while it is saved."""
        return not self.data if self.kind == "text" else not (self.stamp and self.stamp[1])


def read_text(path: Path) -> FileState:
    """The state of a text with its bytes, of which no more than `TEXT_LIMIT` are read. Never raises `OSError`."""
    return look(path, "text")


def stat_media(path: Path) -> FileState:
    """The state of a media file, without reading any of it. Never raises `OSError`."""
    return look(path, "media")


def look(path: Path, kind: Kind) -> FileState:
    """The state of a file. Never raises `OSError`."""
    try:
        if kind == "media":
            return _judge(os.stat(path), kind)
        with open_plain(path) as file:
            return _read(file)
    except NotPlainError as problem:
        return FileState(kind, problem=problem.strerror)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # the last for a name with a null byte
        return FileState(kind, problem="there is no such file")
    except OSError as problem:
        return FileState(kind, problem=str(problem.strerror).lower())


def _read(file: BinaryIO) -> FileState:
    state = _judge(os.fstat(file.fileno()), "text")
    if state.problem:
        return state
    data = file.read(TEXT_LIMIT + 1)
    if len(data) > TEXT_LIMIT:  # it has grown since
        return FileState("text", stamp=state.stamp, problem=TOO_LARGE)
    return FileState("text", data, state.stamp)


def _judge(found: os.stat_result, kind: Kind) -> FileState:
    stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
    problem = why_not_plain(found.st_mode)
    if problem is None and kind == "text" and found.st_size > TEXT_LIMIT:
        problem = TOO_LARGE
    return FileState(kind, None, stamp, problem)


def claim(path: Path) -> bool:
    """Takes a name by creating an empty file, and returns whether it was free. Raises OSError."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    except FileExistsError:
        return False
    return True


def natural_order(path: Path) -> tuple[tuple[str | int, ...], Path]:
    """A key that sorts paths so that numbers in their names count: 1, 2, 10. Capitals make no difference."""
    # Every second part is a number.
    parts = re.split(r"([0-9]+)", path.stem.casefold())
    return tuple(int(part) if at % 2 else part for at, part in enumerate(parts)), path


class SetList:
    """The patches of a performance, one of which plays. First come those that were named, in this order, then those in
    a folder, by their names in natural order, without hidden files. The folder is read whenever another patch is asked
    for."""

    def __init__(self, patches: Sequence[Path], folder: Path | None = None) -> None:
        """Raises WeftError if there is none."""
        self._patches = list(dict.fromkeys(patches))
        self._folder = folder
        if not self.patches:
            raise error("no-patch", f"there is no patch in {folder}", hint="its files end in .weft")
        self.current = self.patches[0]

    @property
    def patches(self) -> list[Path]:
        """All patches as they are now."""
        found: list[Path] = []
        if self._folder is not None:
            with suppress(OSError):
                found = [path for path in self._folder.iterdir() if is_patch_name(path.name) and path.is_file()]
                found.sort(key=natural_order)
        return list(dict.fromkeys([*self._patches, *found]))

    @property
    def place(self) -> str:
        """The place of the patch that plays, in words: `2 of 3`."""
        patches = self.patches
        return f"{patches.index(self.current) + 1} of {len(patches)}" if self.current in patches else "not in the list"

    def move(self, step: int) -> Path | None:
        """Moves to a later patch, or an earlier one, around the ends; None if there is no other."""
        found = self.neighbour(step)
        self.current = found or self.current
        return found

    def neighbour(self, step: int) -> Path | None:
        """A later patch, or an earlier one, around the ends; None if there is no other. For any thread."""
        patches = self.patches
        if self.current not in patches:
            # It was deleted, so the next one has moved up.
            patches = sorted([*patches, self.current], key=natural_order)
        if len(patches) < 2:
            return None
        return patches[(patches.index(self.current) + step) % len(patches)]

    def load(self, patch: Path) -> Path:
        """Moves to a patch, which is added at the end of the list if it is missing."""
        if patch not in self.patches:
            self._patches.append(patch)
        self.current = patch
        return patch
