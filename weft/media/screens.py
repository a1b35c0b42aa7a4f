"""What FFmpeg needs to show the desktop, or the window of another program: a device for each kind of system. Nothing of
a patch reaches it but four whole numbers; the title of a window is only compared with those that there are."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

from weft.cameras import Camera
from weft.codes.rows import InternalError
from weft.platform import system

Grabbing: TypeAlias = tuple[str, str, dict[str, str]]
"""The format, the place and the options for FFmpeg."""

# Pictures a second.
_RATE = "60"


class NotGrabbedError(InternalError):
    """Neither the desktop nor the window can be shown."""

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


class _OpenWindow(NamedTuple):
    """A window of another program: its number, its title, and the width and height of its inside."""

    number: int
    title: str
    width: int
    height: int


def grabbing(camera: Camera) -> Grabbing:
    """What shows a desktop or a window. Raises NotGrabbedError."""
    form = system.grabber
    if camera.kind == "window":
        return _by_window(form, camera.place)
    x, y, width, height = map(int, camera.place.split())
    match form:
        case "x11grab":
            return form, _display(), _part_of_x11(x, y, width, height)
        case "gdigrab":
            size = {"video_size": f"{width}x{height}"} if width and height else {}
            return form, "desktop", {"framerate": _RATE, "offset_x": str(x), "offset_y": str(y), **size}
    if x or y or width or height:
        raise NotGrabbedError("on this system, the screen is shown as a whole", "desktop(), and a remap of its x and y")
    return form, "Capture screen 0:none", {"framerate": _RATE, "capture_cursor": "1"}


def _display() -> str:
    if os.environ.get("WAYLAND_DISPLAY"):
        words = "Wayland does not let programs see the screen in this way"
        raise NotGrabbedError(words, "a session of X11 does; or OBS with its virtual camera, and camera(0)")
    return _x_display()


def _x_display() -> str:
    found = os.environ.get("DISPLAY")
    if not found:
        raise NotGrabbedError("there is no screen here", "DISPLAY names that of X11")
    return found


def _part_of_x11(x: int, y: int, width: int, height: int) -> dict[str, str]:
    with _opened_x11() as x11:
        screen = x11.XDefaultScreen(x11.opened)
        all_of_it = x11.XDisplayWidth(x11.opened, screen), x11.XDisplayHeight(x11.opened, screen)
    most = all_of_it[0] - x, all_of_it[1] - y
    if most[0] < 1 or most[1] < 1:
        hint = f"x and y are pixels from the left and the top, of {all_of_it[0]} × {all_of_it[1]}"
        raise NotGrabbedError(f"the screen does not reach as far as {x}, {y}", hint)
    size = min(width or most[0], most[0]), min(height or most[1], most[1])
    return {
        "framerate": _RATE, "draw_mouse": "1", "grab_x": str(x), "grab_y": str(y), "video_size": f"{size[0]}x{size[1]}"
    }  # fmt: skip


def _by_window(form: str, title: str) -> Grabbing:
    if form not in _WINDOWS:
        raise NotGrabbedError("on this system, single windows cannot be shown", "desktop() shows all of them")
    found = _named(list(_WINDOWS[form]()), title)
    if form == "gdigrab":
        return form, f"hwnd={found.number}", {"framerate": _RATE, "draw_mouse": "0"}
    return form, _x_display(), {"framerate": _RATE, "draw_mouse": "0", "window_id": str(found.number)}


def _named(windows: list[_OpenWindow], title: str) -> _OpenWindow:
    """The window with this title, or the first one with a title that has it as a part. Raises NotGrabbedError."""
    wanted = title.casefold()
    exact = [each for each in windows if each.title == title]
    found = exact or [each for each in windows if wanted in each.title.casefold()]
    if not found:
        # Other titles are not said: messages may be seen by an audience.
        if not windows:
            raise NotGrabbedError("no window with a title is open here", "one that is minimized does not count")
        hint = "is it open, and not minimized? A part of the title will do, in capitals or not"
        raise NotGrabbedError("no window has this in its title", hint)
    return found[0]


# --- windows of X11 ---------------------------------------------------------------------------------------------------


class _XAttributes(ctypes.Structure):
    """The beginning of XWindowAttributes, and room for the rest."""

    _fields_ = (
        ("x", ctypes.c_int), ("y", ctypes.c_int), ("width", ctypes.c_int), ("height", ctypes.c_int),
        ("border", ctypes.c_int), ("depth", ctypes.c_int), ("visual", ctypes.c_void_p), ("root", ctypes.c_ulong),
        ("kind", ctypes.c_int), ("bit_gravity", ctypes.c_int), ("win_gravity", ctypes.c_int),
        ("backing", ctypes.c_int), ("planes", ctypes.c_ulong), ("pixel", ctypes.c_ulong), ("under", ctypes.c_int),
        ("colours", ctypes.c_ulong), ("installed", ctypes.c_int), ("map_state", ctypes.c_int),
        ("rest", ctypes.c_char * 128),
    )  # fmt: skip


_VIEWABLE = 2
_HANDLER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
# A window may be gone by the time it is asked. Xlib would end the process.
_IGNORED = _HANDLER(lambda display, event: 0)


@contextmanager
def _opened_x11() -> Iterator[Any]:
    """Xlib, with the connection to the server as `opened`. Raises NotGrabbedError."""
    try:
        x11: Any = ctypes.CDLL("libX11.so.6")
    except OSError:
        raise NotGrabbedError("the library of X11 is missing", "apt install libx11-6") from None
    x11.XOpenDisplay.restype = ctypes.c_void_p
    x11.XDefaultRootWindow.restype = ctypes.c_ulong
    x11.XInternAtom.restype = ctypes.c_ulong
    opened = x11.XOpenDisplay(_x_display().encode())
    if not opened:
        raise NotGrabbedError(f"the X server {_x_display()} does not answer")
    x11.opened = ctypes.c_void_p(opened)
    x11.XSetErrorHandler(_IGNORED)
    try:
        yield x11
    finally:
        x11.XCloseDisplay(x11.opened)


def _windows_of_x11() -> Iterator[_OpenWindow]:
    """The windows that can be seen, those in front first."""
    with _opened_x11() as x11:
        waiting = [int(x11.XDefaultRootWindow(x11.opened))]
        while waiting:
            number = waiting.pop(0)
            attributes = _XAttributes()
            known = x11.XGetWindowAttributes(x11.opened, ctypes.c_ulong(number), ctypes.byref(attributes))
            if not known or attributes.map_state != _VIEWABLE:
                continue
            if title := _title(x11, number):
                yield _OpenWindow(number, title, attributes.width, attributes.height)
            waiting += _children(x11, number)


def _children(x11: Any, number: int) -> list[int]:
    """The windows in a window, those in front first."""
    root, parent = ctypes.c_ulong(), ctypes.c_ulong()
    found, count = ctypes.POINTER(ctypes.c_ulong)(), ctypes.c_uint()
    if not x11.XQueryTree(
        x11.opened, ctypes.c_ulong(number), ctypes.byref(root), ctypes.byref(parent), ctypes.byref(found),
        ctypes.byref(count),
    ):  # fmt: skip
        return []
    numbers = [int(found[at]) for at in range(count.value)]
    if count.value:
        x11.XFree(found)
    return numbers[::-1]


def _title(x11: Any, number: int) -> str:
    """The title of a window; empty if it has none."""
    for name, encoding in ((b"_NET_WM_NAME", "utf-8"), (b"WM_NAME", "latin-1")):
        atom = ctypes.c_ulong(x11.XInternAtom(x11.opened, name, False))
        kind, form, count, left = ctypes.c_ulong(), ctypes.c_int(), ctypes.c_ulong(), ctypes.c_ulong()
        data = ctypes.POINTER(ctypes.c_char)()
        failed = x11.XGetWindowProperty(
            x11.opened, ctypes.c_ulong(number), atom, ctypes.c_long(0), ctypes.c_long(256), False, ctypes.c_ulong(0),
            ctypes.byref(kind), ctypes.byref(form), ctypes.byref(count), ctypes.byref(left), ctypes.byref(data),
        )  # fmt: skip
        if not failed and data:
            title = ctypes.string_at(data, count.value).decode(encoding, "replace") if form.value == 8 else ""
            x11.XFree(data)
            if title:
                return title
    return ""


# --- windows of Windows -----------------------------------------------------------------------------------------------


def _windows_of_windows() -> Iterator[_OpenWindow]:
    """The windows that can be seen, those in front first."""
    user: Any = ctypes.WinDLL("user32")  # type: ignore[attr-defined,unused-ignore]
    found: list[_OpenWindow] = []

    def note(handle: int, _: int) -> bool:
        if user.IsWindowVisible(ctypes.c_void_p(handle)):
            title = ctypes.create_unicode_buffer(512)
            user.GetWindowTextW(ctypes.c_void_p(handle), title, 512)
            if title.value:
                found.append(_OpenWindow(handle, title.value, 0, 0))
        return True

    kind: Any = ctypes.WINFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_ssize_t)  # type: ignore[attr-defined,unused-ignore]
    user.EnumWindows(kind(note), 0)
    yield from found


_WINDOWS = {"x11grab": _windows_of_x11, "gdigrab": _windows_of_windows}
