"""The inside of a window without OpenGL: a layer of Metal, which shows what the same device has computed where it lies.

Pictures are drawn into the layer by the queue that computes them. So nobody waits for one, and no pixel passes through
the processor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from weft.apple import AppleDevice, AppleError, Memory
from weft.backends.base import as_array
from weft.backends.metal.compiled import MetalPicture
from weft.runtime.screens.display import lost
from weft.runtime.screens.frame import Label
from weft.runtime.screens.metal_painter import MetalPainter
from weft.runtime.screens.painter import Filter
from weft.runtime.screens.screen import Picture, Shown


class MetalSurface:
    """Draws into a window of macOS; see `Surface`."""

    def __init__(self, device: AppleDevice, window: int, filtering: Filter) -> None:
        """`window` is the address of the NSWindow. Raises AppleError."""
        self._device = device
        self._size = (0, 0)
        self._painter = MetalPainter(device, smooth=filtering == "linear")
        with device.working():
            self._window = device.own.objc.objc_object(c_void_p=window)
            self._layer = device.own.quartz.CAMetalLayer.layer()
            self._layer.setDevice_(device.metal)
            self._layer.setPixelFormat_(self._painter.format)
            self._layer.setFramebufferOnly_(True)
            view = self._window.contentView()
            view.setLayer_(self._layer)
            view.setWantsLayer_(True)

    def keep_pace(self, vsync: bool) -> None:
        with self._drawing():
            self._layer.setDisplaySyncEnabled_(vsync)

    def show(self, picture: Shown) -> None:
        with self._drawing():
            if isinstance(picture, MetalPicture) and _is_of(self._device, picture.buffer):
                self._painter.show(picture.buffer, (picture.shape[1], picture.shape[0]))
            else:
                self._painter.upload(as_array(picture))

    def present(self, frame: tuple[int, int], labels: Sequence[Label]) -> None:
        with self._drawing():
            # The layer of a window that is covered gives nothing to draw into, or only after a second.
            if not self._window.occlusionState() & self._device.own.appkit.NSWindowOcclusionStateVisible:
                return
            if frame != self._size:
                self._size = frame
                self._layer.setContentsScale_(self._window.backingScaleFactor())
                self._layer.setDrawableSize_((float(frame[0]), float(frame[1])))
            drawable = self._layer.nextDrawable()
            if drawable is not None:
                self._painter.annotate(labels)
                self._painter.present(drawable, frame)

    def read_back(self, frame: tuple[int, int], labels: Sequence[Label]) -> Picture:
        with self._drawing():
            self._painter.annotate(labels)
            return self._painter.read_back(frame)

    def close(self) -> None:
        with self._drawing():
            self._painter.finish()

    @contextmanager
    def _drawing(self) -> Iterator[None]:
        """What Metal refuses becomes a `WeftError`."""
        try:
            with self._device.working():
                yield
        except AppleError as problem:
            raise lost(str(problem)) from problem


def _is_of(device: AppleDevice, buffer: object) -> bool:
    return isinstance(buffer, Memory) and buffer.owner is device
