"""Where a performance is seen: what a window, a terminal and no screen at all have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from weft.backends.base import PictureHandle
from weft.errors import Diagnostic

Picture = npt.NDArray[np.uint8]
"""[height, width, RGBA], row 0 on top."""

Shown: TypeAlias = "Picture | PictureHandle"
"""The same, or one that lies on a device."""


@dataclass(frozen=True)
class Overlay:
    """What is written over the picture, or below it where that reads better.

    `errors` are shown until the text is mended, `note` is one line about what happened just now, `figures` are short
    lines about how well it runs. What is empty is not shown. `left_out` counts further errors and warnings.
    """

    errors: tuple[Diagnostic, ...] = ()
    note: str = ""
    figures: tuple[str, ...] = ()
    left_out: int = 0


class Screen(Protocol):
    """Where pictures go. All of it is for the main thread."""

    @property
    def should_close(self) -> bool:
        """Whether the player has asked for an end."""
        ...

    @property
    def room(self) -> tuple[int, int] | None:
        """Width and height in pixels into which a picture should be made to fit; None if any size will do."""
        ...

    def present(self, picture: Shown) -> None:
        """Shows a picture. An array may change afterwards; a handle stays as it is until the next but one."""
        ...

    def redraw(self) -> None:
        """Shows the last picture again, with the overlay as it is now."""
        ...

    def annotate(self, overlay: Overlay) -> None:
        """From the next picture on, this is written over it."""
        ...

    def poll(self) -> None:
        """Takes in what the player did since the last call, and hands out commands."""
        ...

    def set_patch_keys(self, names: frozenset[str]) -> None:
        """From now on these keys belong to the patch, and steer the tool only together with Ctrl."""
        ...

    def toggle_fullscreen(self) -> None: ...


class NoScreen:
    """No screen: everything else runs."""

    should_close = False
    room = None

    def present(self, picture: Shown) -> None:
        pass

    def redraw(self) -> None:
        pass

    def annotate(self, overlay: Overlay) -> None:
        pass

    def poll(self) -> None:
        pass

    def set_patch_keys(self, names: frozenset[str]) -> None:
        pass

    def toggle_fullscreen(self) -> None:
        pass
