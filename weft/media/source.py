"""Live sources: what a call such as `camera(0)` opens, and how. A row of the table of sources says what it gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Picture: TypeAlias = NDArray[np.float32]

Arguments: TypeAlias = tuple[str | float, ...]


class LivePicture(ABC):
    """A picture that changes while programs play. It is open as long as any program that reads it, and goes on over
    saves. Any thread may call it."""

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

    @abstractmethod
    def close(self) -> None:
        """Ends what it holds: threads, processes, memory. May be called twice."""


class LiveSource(ABC):
    """What opens the live pictures of one source."""

    @abstractmethod
    def size(self, args: Arguments) -> tuple[int, int] | str:
        """Width and height of the picture, judged by no more than a header; or why it cannot be had. Where they are not
        known before it is open, an estimate for the memory that it takes."""

    @abstractmethod
    def still(self, args: Arguments) -> Picture:
        """What stands for the picture in a trial, without opening anything."""

    @abstractmethod
    def open(self, args: Arguments, offline: bool) -> LivePicture:
        """Opens it, off the frame. `offline`: for a render, which is not in a hurry. Raises `PictureError`."""
