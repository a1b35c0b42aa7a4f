"""Contexts of OpenGL. A thread enters a context to draw, and only one thread at a time is in it.

Without a window, contexts come from EGL, which needs no display. A window brings its own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from weft.codes.rows import InternalError

_PLATFORM_SURFACELESS = 0x31DD
_PLATFORM_DEVICE = 0x313F
_NONE = 0x3038
_MAJOR, _MINOR, _PROFILE, _CORE = 0x3098, 0x30FB, 0x30FD, 1
_RESET_NOTICE, _LOSE_CONTEXT = 0x31BD, 0x31BF


class GlApi(NamedTuple):
    """One of the two kinds of OpenGL: its name, its number in EGL, the versions that are tried, the best first, and
    further attributes of its contexts."""

    name: str
    number: int
    versions: tuple[tuple[int, int], ...]
    profile: tuple[int, ...] = ()


DESKTOP = GlApi("OpenGL", 0x30A2, ((4, 5), (4, 3), (4, 1), (3, 3)), (_PROFILE, _CORE))
EMBEDDED = GlApi("OpenGL ES", 0x30A0, ((3, 2), (3, 1), (3, 0)))
"""For phones and small computers, whose cards may have no other."""

# A library may list several devices, also some that make no contexts.
_MOST_DEVICES = 16


class GraphicsError(InternalError):
    """Graphics are not available, or were lost. Carries the reason, in plain words."""


@dataclass(frozen=True)
class Context:
    """One context. `enter` makes it current in the calling thread, `leave` undoes that if necessary; both raise
    GraphicsError."""

    enter: Callable[[], None]
    leave: Callable[[], None]
    close: Callable[[], None] = lambda: None


class Egl:
    """EGL without a display. Its contexts share programs and textures with one another."""

    def __init__(self, number: int = 0, api: GlApi = DESKTOP) -> None:
        """Opens the device of this number among those that make contexts. Raises GraphicsError."""
        self._api = api
        try:
            self._egl = ctypes.CDLL("libEGL.so.1")
        except OSError as failure:
            raise GraphicsError(f"there is no EGL ({failure})") from failure
        self._declare()
        self._first: int | None = None
        self._display = self._opened(number)

    def _declare(self) -> None:
        egl, pointer = self._egl, ctypes.c_void_p
        forms: dict[str, tuple[Any, list[Any]]] = {
            "eglGetProcAddress": (pointer, [ctypes.c_char_p]),
            "eglGetDisplay": (pointer, [pointer]),
            "eglInitialize": (ctypes.c_uint, [pointer, pointer, pointer]),
            "eglBindAPI": (ctypes.c_uint, [ctypes.c_uint]),
            "eglCreateContext": (pointer, [pointer, pointer, pointer, pointer]),
            "eglMakeCurrent": (ctypes.c_uint, [pointer, pointer, pointer, pointer]),
            "eglDestroyContext": (ctypes.c_uint, [pointer, pointer]),
            "eglGetError": (ctypes.c_int, []),
        }
        for name, (gives, takes) in forms.items():
            function = getattr(egl, name)
            function.restype, function.argtypes = gives, takes

    def _opened(self, number: int) -> int:
        """The display of a device; of the first one, if EGL lists no devices, that which draws without a card, or the
        default one."""
        devices, others = self._displays()
        usable = 0
        for display in devices:
            self._first = self._begun(display)
            if self._first is not None and usable == number:
                return display
            if self._first is not None:
                usable += 1
                self._egl.eglDestroyContext(display, self._first)
                self._first = None
        for display in others if usable == number == 0 else ():
            self._first = self._begun(display)
            if self._first is not None:
                return display
        if number:
            raise GraphicsError(f"EGL has no device {number}")
        least = ".".join(map(str, self._api.versions[-1]))
        raise GraphicsError(f"EGL makes no context of {self._api.name} {least} or later without a display")

    def _begun(self, display: int) -> int | None:
        """The first context of a display, if it makes one."""
        if not self._egl.eglInitialize(display, None, None):
            return None
        return self._created(display)

    def _displays(self) -> tuple[list[int], list[int]]:
        """The displays of devices that are cards or represent one, and those of others."""
        pointer = ctypes.c_void_p
        get = self._extension("eglGetPlatformDisplayEXT", pointer, ctypes.c_uint, pointer, pointer)
        query = self._extension("eglQueryDevicesEXT", ctypes.c_uint, ctypes.c_int, pointer, pointer)
        found: list[int | None] = []
        if get is not None and query is not None:
            devices, count = (pointer * _MOST_DEVICES)(), ctypes.c_int()
            if query(_MOST_DEVICES, devices, ctypes.byref(count)):
                found += [get(_PLATFORM_DEVICE, device, None) for device in devices[: count.value]]
        others = [get(_PLATFORM_SURFACELESS, None, None)] if get is not None else []
        others.append(self._egl.eglGetDisplay(None))
        return [each for each in found if each], [each for each in others if each]

    def _extension(self, name: str, gives: Any, *takes: Any) -> Callable[..., Any] | None:
        address = self._egl.eglGetProcAddress(name.encode())
        return ctypes.CFUNCTYPE(gives, *takes)(address) if address else None

    def _created(self, display: int) -> int | None:
        self._egl.eglBindAPI(self._api.number)
        for major, minor in self._api.versions:
            for reset in ((_RESET_NOTICE, _LOSE_CONTEXT), ()):
                wanted = (_MAJOR, major, _MINOR, minor, *self._api.profile, *reset, _NONE)
                made = self._egl.eglCreateContext(display, None, self._first, (ctypes.c_int * len(wanted))(*wanted))
                if made:
                    return int(made)
        return None

    def context(self) -> Context:
        """A new context. Raises GraphicsError."""
        made = self._created(self._display)
        if made is None:
            raise GraphicsError(f"EGL makes no further context ({self._egl.eglGetError():#x})")
        return Context(
            enter=lambda: self._make_current(made),
            leave=lambda: self._make_current(None),
            close=lambda: self._egl.eglDestroyContext(self._display, made),
        )

    def _make_current(self, context: int | None) -> None:
        self._egl.eglBindAPI(self._api.number)  # each thread has its own, and leaves the context of this one
        if not self._egl.eglMakeCurrent(self._display, None, None, context):
            raise GraphicsError(f"the context cannot be used ({self._egl.eglGetError():#x})")
