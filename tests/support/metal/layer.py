"""A layer of Metal in a window of macOS: the parts that weft uses."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

VISIBLE = 2
_BGRA = 80
_DRAWABLES = 3


class NSView:
    def __init__(self) -> None:
        self.layer: Any = None
        self.layered = False

    def setLayer_(self, layer: object) -> None:  # noqa: N802
        self.layer = layer

    def setWantsLayer_(self, wants: bool) -> None:  # noqa: N802
        self.layered = wants


class NSWindow:
    """The one window, and what it shows."""

    def __init__(self, need_pool: Callable[[], None]) -> None:
        self.need_pool = need_pool
        self.view = NSView()
        self.occlusion = VISIBLE
        self.address: int | None = None

    def at(self, address: int) -> NSWindow:
        assert address, "no window is there"
        self.address = address
        return self

    def contentView(self) -> NSView:  # noqa: N802
        return self.view

    def occlusionState(self) -> int:  # noqa: N802
        return self.occlusion

    def backingScaleFactor(self) -> float:  # noqa: N802
        return 2.0


class CAMetalLayer:
    """Both the class and its one object."""

    def __init__(self, window: NSWindow, device: object, texture: Callable[[int, int], Any]) -> None:
        self.window = window
        self._own_device = device
        self._texture = texture
        self._free = threading.Semaphore(_DRAWABLES)
        self._size: tuple[float, float] = (0.0, 0.0)
        self._device: object = None
        self._format = 0
        self.scale = 1.0
        self.synced = True
        self.presented: npt.NDArray[np.uint8] | None = None
        """What is seen: [height, width, RGBA]."""
        self.count = 0

    def layer(self) -> CAMetalLayer:
        return self

    def setDevice_(self, device: object) -> None:  # noqa: N802
        assert device is self._own_device
        self._device = device

    def setPixelFormat_(self, kind: int) -> None:  # noqa: N802
        assert kind == _BGRA
        self._format = kind

    def setFramebufferOnly_(self, only: bool) -> None:  # noqa: N802
        assert only

    def setDisplaySyncEnabled_(self, synced: bool) -> None:  # noqa: N802
        self.synced = synced

    def setDrawableSize_(self, size: tuple[float, float]) -> None:  # noqa: N802
        assert all(isinstance(side, float) and side > 0 for side in size)
        self._size = size

    def setContentsScale_(self, scale: float) -> None:  # noqa: N802
        self.scale = scale

    def nextDrawable(self) -> Drawable | None:  # noqa: N802
        self.window.need_pool()
        assert self.window.view.layered
        assert self.window.view.layer is self
        assert self._device is not None
        assert self._format == _BGRA
        if not self._free.acquire(timeout=1):
            return None
        return Drawable(self, self._texture(round(self._size[0]), round(self._size[1])))

    def present(self, pixels: npt.NDArray[np.uint8]) -> None:
        self.presented = pixels[:, :, [2, 1, 0, 3]]
        self.count += 1
        self._free.release()


class Drawable:
    """What is drawn into to be seen."""

    def __init__(self, layer: CAMetalLayer, texture: Any) -> None:
        self._layer = layer
        self._texture = texture

    def texture(self) -> Any:
        return self._texture

    def present(self) -> None:
        self._layer.present(self._texture.pixels)
