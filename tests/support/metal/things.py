"""The objects of Apple's frameworks that weft uses: sizes, errors, memory, textures and descriptors."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class MTLSize(NamedTuple):
    width: int
    height: int
    depth: int


class MTLOrigin(NamedTuple):
    x: int
    y: int
    z: int


class MTLViewport(NamedTuple):
    originX: float  # noqa: N815 - as Apple has it
    originY: float  # noqa: N815
    width: float
    height: float
    znear: float
    zfar: float


class MTLClearColor(NamedTuple):
    red: float
    green: float
    blue: float
    alpha: float


class Pools:
    """`objc.autorelease_pool`: counts how many the thread is in."""

    def __init__(self) -> None:
        self._own = threading.local()

    def __call__(self) -> Pools:
        return self

    def __enter__(self) -> None:
        self._own.depth = getattr(self._own, "depth", 0) + 1

    def __exit__(self, *_: object) -> None:
        self._own.depth -= 1

    def need(self) -> None:
        """Fails for objects that would never be released."""
        assert getattr(self._own, "depth", 0), "objects that are handed out here are never released"


class NSError:
    def __init__(self, words: str) -> None:
        self._words = words

    def localizedDescription(self) -> str:  # noqa: N802
        return self._words


class VarList:
    """What `contents` gives."""

    def __init__(self, data: npt.NDArray[np.uint8]) -> None:
        self._data = data

    def as_buffer(self, size: int) -> memoryview:
        assert 0 < size <= len(self._data)
        return memoryview(self._data)[:size]


class Buffer:
    def __init__(self, size: int) -> None:
        self.data = np.zeros(size, np.uint8)

    def contents(self) -> VarList:
        return VarList(self.data)


class Texture:
    def __init__(self, width: int, height: int) -> None:
        self.pixels = np.full((height, width, 4), 0x2A, np.uint8)
        """[height, width, BGRA]"""


class Settings:
    """A descriptor: a thing with settings of these names, each of which is set by a method."""

    def __init__(self, **defaults: object) -> None:
        self.__dict__.update(defaults)

    def __getattr__(self, name: str) -> Callable[[object], None]:
        found = name.removeprefix("set").removesuffix("_")
        own = found[:1].lower() + found[1:]
        if not (name.startswith("set") and name.endswith("_") and own in self.__dict__):
            raise AttributeError(name)
        return lambda value: self.__dict__.__setitem__(own, value)


class Attachments:
    """The one attachment of a descriptor."""

    def __init__(self, first: Settings) -> None:
        self.first = first

    def objectAtIndexedSubscript_(self, index: int) -> Settings:  # noqa: N802
        assert index == 0
        return self.first


class Alloc:
    """A class whose objects are made by `alloc` and `init`."""

    def __init__(self, make: Callable[[], object]) -> None:
        self.init = make

    def alloc(self) -> Alloc:
        return self
