"""Files that cannot be read, and live sources: what a call such as `camera(0)` opens, and how. The table of sources has
a row for the outputs of each."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from weft.codes.rows import InternalError
from weft.disk import NotPlainError, open_plain, why_not_plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

Picture: TypeAlias = "NDArray[Any]"
"""[height, width, 4], 0…1 in single precision, or bytes in a `weft.media.frames.Frame`."""

Arguments: TypeAlias = tuple[str | float, ...]


class PictureError(InternalError):
    """A picture cannot be read. `reason` follows its name in messages ("there is no such file"); `hint` is optional."""

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


def open_media(path: Path) -> BinaryIO:
    """A file, for reading. Raises PictureError for anything except a plain file: reading a named pipe, for instance,
    might never end."""
    with _as_picture_error():
        return open_plain(path)


def require_file(path: Path) -> os.stat_result:
    """The state of a file, without opening it. Raises PictureError as `open_media` does."""
    with _as_picture_error():
        found = os.stat(path)
        problem = why_not_plain(found.st_mode)
        if problem is not None:
            raise NotPlainError(0, problem)
        return found


@contextmanager
def _as_picture_error() -> Iterator[None]:
    try:
        yield
    except NotPlainError as problem:
        raise PictureError(str(problem.strerror)) from None
    except (FileNotFoundError, NotADirectoryError, ValueError):  # the last for a name with a null byte
        raise PictureError("there is no such file", "paths are relative to the patch's file") from None
    except OSError as problem:
        raise PictureError(str(problem.strerror).lower()) from None


class LivePicture(ABC):
    """A picture that changes while programs play. It is open as long as a program reads it, and continues over saves.
    Any thread may call it."""

    is_timed = False
    """Whether a patch determines the time at which it is shown, as for a film. Otherwise it is the time of the tick."""

    @abstractmethod
    def at(self, seconds: float) -> Picture:
        """The picture [height, width, 4] at a time of the performance. It returns at once: if the picture is not there
        yet, it is the last one that was. The same array is returned as long as the picture is the same. It does not
        change until two others have been returned."""

    def exactly(self, seconds: float) -> Picture:
        """The picture at this very time, for which it may wait; for what is computed offline."""
        return self.at(seconds)

    def problem(self) -> str | None:
        """Its current problem, in words for a warning; None if there is none."""
        return None

    def is_current(self) -> bool:
        """Whether opening it again would give the same. If not, it is opened again for the next program."""
        return True

    @abstractmethod
    def close(self) -> None:
        """Ends everything that it holds: threads, processes, memory. May be called twice."""


class LiveSource(ABC):
    """Opens the live pictures of one source."""

    @abstractmethod
    def size(self, args: Arguments) -> tuple[int, int] | str:
        """Width and height of the picture, from no more than a header; or the reason why it is not available. If they
        are not known before it is open, an estimate for the memory that it takes."""

    def memory(self, args: Arguments) -> int:
        """The bytes that it takes, if they are known before it is open."""
        size = self.size(args)
        return 0 if isinstance(size, str) else 16 * size[0] * size[1]

    @abstractmethod
    def still(self, args: Arguments) -> Picture:
        """A placeholder for the picture in a trial. Nothing is opened."""

    @abstractmethod
    def open(self, args: Arguments, offline: bool) -> LivePicture:
        """Opens it, outside of frames. `offline` is for a render, where there is no hurry. Raises `PictureError`."""
