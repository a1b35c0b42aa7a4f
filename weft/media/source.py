"""Files that cannot be read, and live sources: what a call such as `camera(0)` opens, and how. A row of the table of
sources says what it gives."""

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
    """A file, for reading. Raises PictureError for anything but a plain one: reading a named pipe, for instance, might
    never end."""
    with _as_picture_error():
        return open_plain(path)


def require_file(path: Path) -> os.stat_result:
    """What is known of a file without opening it. Raises PictureError as `open_media` does."""
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
        raise PictureError(f"it cannot be read ({problem.strerror})") from None


class LivePicture(ABC):
    """A picture that changes while programs play. It is open as long as any program that reads it, and goes on over
    saves. Any thread may call it."""

    is_timed = False
    """Whether a patch says at which time it is shown, as it does of a film; if not, it is the time of the tick."""

    @abstractmethod
    def at(self, seconds: float) -> Picture:
        """The picture [height, width, 4] at a time of the performance. It takes no time worth mentioning: what is not
        there yet is the last picture that was. The same array is given as long as the picture is the same. It does not
        change until two others have been given."""

    def exactly(self, seconds: float) -> Picture:
        """The same, but waits for the right picture, for what is computed offline."""
        return self.at(seconds)

    def problem(self) -> str | None:
        """What is wrong with it now, in words for a warning; None if nothing is."""
        return None

    def is_current(self) -> bool:
        """Whether the same would be opened again. If not, it is, for the next program."""
        return True

    @abstractmethod
    def close(self) -> None:
        """Ends what it holds: threads, processes, memory. May be called twice."""


class LiveSource(ABC):
    """What opens the live pictures of one source."""

    @abstractmethod
    def size(self, args: Arguments) -> tuple[int, int] | str:
        """Width and height of the picture, judged by no more than a header; or why it cannot be had. Where they are not
        known before it is open, an estimate for the memory that it takes."""

    def memory(self, args: Arguments) -> int:
        """The bytes that it takes, as far as they are known before it is open."""
        size = self.size(args)
        return 0 if isinstance(size, str) else 16 * size[0] * size[1]

    @abstractmethod
    def still(self, args: Arguments) -> Picture:
        """What stands for the picture in a trial, without opening anything."""

    @abstractmethod
    def open(self, args: Arguments, offline: bool) -> LivePicture:
        """Opens it, off the frame. `offline`: for a render, which is not in a hurry. Raises `PictureError`."""
