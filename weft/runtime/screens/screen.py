"""The common parts of a window, a terminal and no screen: commands, overlays, and places."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from weft.backends.base import PictureHandle
from weft.errors import Diagnostic
from weft.keys import CONTROL_KEYS, TOOL_KEYS
from weft.runtime.hands.inputs import Inputs
from weft.runtime.screens.panel import ControlPanel
from weft.runtime.screens.text_view import TextView

if TYPE_CHECKING:
    from typing_extensions import Self

Picture = npt.NDArray[np.uint8]
"""[height, width, RGBA], row 0 on top."""

Shown: TypeAlias = "Picture | PictureHandle"
"""The same, or a picture in the memory of a device."""


@dataclass(frozen=True)
class Overlay:
    """Text over the picture, or below it in a terminal.

    `errors` are the errors and warnings of the text, `note` is one line about something that has just happened,
    `figures` are short lines about how well it runs. `left_out` counts further errors and warnings. `recording` is
    shown with a red dot during a recording.
    """

    errors: tuple[Diagnostic, ...] = ()
    note: str = ""
    figures: tuple[str, ...] = ()
    left_out: int = 0
    recording: str = ""


@dataclass(frozen=True, slots=True)
class Pointing:
    """A user points at a pixel of the picture in a window, 0…1, and asks why it is as it is; or, if not `is_on`, does
    not want to see that any more. `columns` and `rows` are the room for an answer."""

    window: str
    x: float
    y: float
    is_on: bool = True
    columns: int = 72
    rows: int = 40


@dataclass(frozen=True, slots=True)
class ExplainedPixel:
    """What is said about a pixel of the picture in a window, in lines of words, each with how it is shown."""

    window: str
    x: float
    y: float
    rows: tuple[tuple[tuple[str, str], ...], ...]


class Screen:
    """Shows pictures, and passes on keys and the mouse: a window or a terminal. This class shows nothing. All of it is
    for the main thread."""

    _closed = False

    def __init__(self, inputs: Inputs | None = None, on_command: Callable[[str], None] = lambda command: None) -> None:
        """`on_command` gets the values of `TOOL_KEYS` and `CONTROL_KEYS`, from within `poll`."""
        self.inputs = inputs if inputs is not None else Inputs()
        self.panel = ControlPanel(self.inputs.parameters, knobs=self.inputs.knobs, lamps=self.inputs.lamps)
        self._on_command = on_command
        self._patch_keys: frozenset[str] = frozenset()
        self._overlay = Overlay()
        self._text_is_shown = False
        self._resources = ExitStack()

    @property
    def should_close(self) -> bool:
        """Whether the user has asked to end, or it is closed already."""
        return self._closed

    @property
    def room(self) -> tuple[int, int] | None:
        """Width and height in pixels into which a picture should fit; None: any size."""
        return None

    def present(self, picture: Shown) -> None:
        """Shows a picture [height, width, RGBA], row 0 on top. Alpha is not shown, since nothing is under the picture.
        An array may change afterwards; a handle must stay valid until the second picture after it. Does nothing after
        `close`."""

    def show_others(self, pictures: Mapping[str, Shown]) -> None:
        """Shows the pictures of further windows, by their names, if it has windows; otherwise they are not shown. The
        same holds for them as in `present`."""

    def redraw(self) -> None:
        """Shows the last picture again, or black if there was none, with the current overlay."""

    def annotate(self, overlay: Overlay) -> None:
        """Shows this overlay from the next picture on."""
        self._overlay = overlay

    @property
    def wants_text(self) -> bool:
        """Whether the text that plays is to be shown."""
        return self._text_is_shown

    def show_text(self, view: TextView) -> None:
        """Shows this of the text that plays from the next picture on, where it is wanted."""

    def toggle_pins(self) -> None:
        """Shows a test card whose corners can be pinned to a wall, or the picture again, if it can."""

    def toggle_text(self) -> None:
        """Shows the text that plays over the picture, or hides it."""
        self._text_is_shown = not self._text_is_shown

    def take_pointing(self) -> Pointing | None:
        """The pixel at which a user has pointed since the last call."""
        return None

    def explain(self, pixel: ExplainedPixel | None) -> None:
        """Shows this about a pixel from the next picture on; None: nothing."""

    def set_title(self, title: str) -> None:
        """Shows a title, if there is a place for it."""

    def poll(self) -> None:
        """Processes the input since the last call, then executes commands, which may close this screen."""

    def set_patch_keys(self, names: frozenset[str]) -> None:
        """Gives these keys to the patch from now on, so that they control weft only together with Ctrl."""
        self._patch_keys = names

    def _command_of(self, key: str, control: bool) -> str | None:
        if control and key in CONTROL_KEYS:
            return CONTROL_KEYS[key]
        return TOOL_KEYS.get(key) if control or key not in self._patch_keys else None

    def toggle_fullscreen(self) -> None:
        """Fills the monitor, or leaves full screen, if it can."""

    def toggle(self, what: str) -> None:
        """One of the commands `fullscreen`, `source` and `pins`."""
        {"fullscreen": self.toggle_fullscreen, "source": self.toggle_text, "pins": self.toggle_pins}[what]()

    def keep_size(self) -> None:
        """Keeps its size from now on, even if the size of its pictures changes."""

    def close(self) -> None:
        """Releases everything. May be called twice."""
        self._closed = True
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class WindowOptions:
    """How a window opens: the size (width, height) in which its picture is computed, if it is not that of the program;
    the number of its monitor, from 0; whether it fills that; and whether the text that plays is over its picture. For
    the first window without a name, the size is that of the window itself."""

    size: tuple[int, int] | None = None
    monitor: int | None = None
    fullscreen: bool = False
    shows_text: bool = False


@dataclass(frozen=True, slots=True)
class Rect:
    """A part of a frame or of the desktop, in its pixels; `top` counts from its upper edge."""

    left: int
    top: int
    width: int
    height: int


@dataclass(frozen=True, slots=True, eq=False)
class Label:
    """A part of the overlay: `pixels` fill the rectangle, their colours multiplied by their alpha. If they are fewer
    than those of the rectangle, each fills a part of it. Without alpha, colours are added to the picture."""

    place: Rect
    pixels: Picture


def letterbox(picture: tuple[int, int], frame: tuple[int, int]) -> Rect:
    """The place of a picture in a frame (each width, height): as large as possible, centred, with its own aspect."""
    scale = min(frame[0] / picture[0], frame[1] / picture[1])
    width = max(1, round(picture[0] * scale))
    height = max(1, round(picture[1] * scale))
    return Rect((frame[0] - width) // 2, (frame[1] - height) // 2, width, height)


class Painted(NamedTuple):
    """A part of a frame: its place, what has its pixels on a device, and their width and height. The colours of one
    that `blends` are multiplied by their alpha."""

    place: Rect
    pixels: Any
    size: tuple[int, int]
    smooth: bool
    blends: bool

    def uniforms(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.uint32]]:
        """What shaders are told of it: the corner and the size of its place; its own size, whether it is smooth, and a
        number without a meaning."""
        corner = np.array([self.place.left, self.place.top, self.place.width, self.place.height], np.float32)
        return corner, np.array([*self.size, self.smooth, 0], np.uint32)


def painted(
    frame: tuple[int, int], picture: Any, size: tuple[int, int], labels: Iterable[tuple[Label, Any]], smooth: bool
) -> Iterator[Painted]:
    """What is in a frame, in order: a picture of a size on a device, if there is one, and labels with their pixels
    there. At its own size a picture is shown exactly, even if it is to be `smooth`."""
    if picture is not None:
        place = letterbox(size, frame)
        yield Painted(place, picture, size, smooth and (place.width, place.height) != size, blends=False)
    for label, pixels in labels:
        yield Painted(label.place, pixels, (label.pixels.shape[1], label.pixels.shape[0]), smooth=False, blends=True)


def fitted(picture: tuple[int, int], area: Rect | None) -> tuple[int, int]:
    """Width and height of a window for a picture: those of the picture, or less if the area is known and smaller."""
    if area is None or (picture[0] <= area.width and picture[1] <= area.height):
        return picture
    fitting = letterbox(picture, (area.width, area.height))
    return fitting.width, fitting.height


def enlarged(picture: tuple[int, int], least: tuple[int, int]) -> tuple[int, int]:
    """Width and height of a window for a picture: at least these. Small pictures grow by a whole factor."""
    factor = max(1, math.ceil(min(least[0] / picture[0], least[1] / picture[1])))
    return max(picture[0] * factor, least[0]), max(picture[1] * factor, least[1])


def shared(one: Rect, other: Rect) -> int:
    """The number of pixels that two rectangles have in common."""
    across = min(one.left + one.width, other.left + other.width) - max(one.left, other.left)
    down = min(one.top + one.height, other.top + other.height) - max(one.top, other.top)
    return max(across, 0) * max(down, 0)
