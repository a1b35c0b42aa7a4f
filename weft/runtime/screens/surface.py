"""What a window draws with: OpenGL, or Metal where the pictures are computed by it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from weft.apple import AppleDevice, AppleError
from weft.backends.base import as_array
from weft.errors import WeftError
from weft.runtime.screens.display import Display, DriverError, GlPicture, GraphicsError, glfw, lost, no_display
from weft.runtime.screens.frame import Label
from weft.runtime.screens.layer import MetalSurface
from weft.runtime.screens.painter import Filter, Painter
from weft.runtime.screens.screen import Picture, Shown


class Surface(Protocol):
    """The inside of a window. All of it raises `WeftError` (`display-lost`) where nothing can be drawn any more."""

    def keep_pace(self, vsync: bool) -> None:
        """With vsync, presenting waits for the screen."""
        ...

    def show(self, picture: Shown) -> None:
        """From now on shows a picture. One that was drawn by what the window draws with is not copied. Raises
        `WeftError` (`picture-too-large`) for one that the graphics card cannot hold."""
        ...

    def present(self, frame: tuple[int, int], labels: Sequence[Label]) -> None:
        """Fills a window of this width and height with the picture, and labels over it."""
        ...

    def read_back(self, frame: tuple[int, int], labels: Sequence[Label]) -> Picture:
        """The same as pixels, drawn aside."""
        ...

    def close(self) -> None: ...


def surface_of(display: Display, handle: Any, filtering: Filter) -> Surface:
    """What a window of a display draws with. Raises `WeftError` (`no-display`)."""
    if display.device is None:
        return GlSurface(display, handle, filtering)
    try:
        return MetalSurface(display.device, display.cocoa_window(handle), filtering)
    except AppleError as problem:
        raise no_display(f"Metal does not draw ({problem})") from problem


def display_on(device: AppleDevice) -> Display:
    """A display whose windows show the pictures of a device without a copy; something is drawn already, aside. Raises
    `WeftError` (`no-display`) where there is none, and GraphicsError where only the device cannot draw in it."""
    display = Display(device)
    try:
        handle = display.create(1, 1, "weft")
        if not handle:
            raise GraphicsError(display.take_error() or "no window can be had")
        surface = MetalSurface(device, display.cocoa_window(handle), "linear")
        surface.read_back((1, 1), ())
        surface.close()
        glfw.destroy_window(handle)
    except (AppleError, GraphicsError, WeftError) as problem:
        display.close()
        raise GraphicsError(str(problem)) from problem
    return display


class GlSurface:
    """A window's context of OpenGL, which is the current one of its thread from the beginning."""

    def __init__(self, display: Display, handle: Any, filtering: Filter) -> None:
        self._display = display
        self._handle = handle
        glfw.make_context_current(handle)
        self._graphics = display.lend(handle)
        try:
            self._painter = Painter(filtering)
        except GraphicsError as problem:
            display.lend(None)
            raise no_display(f"the graphics driver does not draw ({problem})") from problem

    def keep_pace(self, vsync: bool) -> None:
        # Not on Wayland: there nothing tears without it either, and as long as the window is hidden, it waits forever.
        glfw.make_context_current(self._handle)
        glfw.swap_interval(int(vsync and glfw.get_platform() != glfw.PLATFORM_WAYLAND))

    def show(self, picture: Shown) -> None:
        own = isinstance(picture, GlPicture) and picture.texture.graphics is self._graphics
        with self._drawing():
            if isinstance(picture, GlPicture) and own:
                self._painter.show(picture.texture, (picture.shape[1], picture.shape[0]))
            else:
                self._painter.upload(as_array(picture))

    def present(self, frame: tuple[int, int], labels: Sequence[Label]) -> None:
        with self._drawing():
            self._painter.annotate(labels)
            self._painter.paint(frame)
            glfw.swap_buffers(self._handle)

    def read_back(self, frame: tuple[int, int], labels: Sequence[Label]) -> Picture:
        with self._drawing():
            self._painter.annotate(labels)
            return self._painter.read_back(frame)

    def close(self) -> None:
        self._display.lend(None)

    @contextmanager
    def _drawing(self) -> Iterator[None]:
        """With the window's context as the current one. What graphics or window system refuse becomes a `WeftError`."""
        self._display.take_error()
        glfw.make_context_current(self._handle)
        reason = self._display.take_error()
        try:
            if reason is None:
                yield
                reason = self._display.take_error()
        except DriverError as problem:
            reason = str(problem)
        if reason is not None:
            raise lost(reason)
