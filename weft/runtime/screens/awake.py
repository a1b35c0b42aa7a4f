"""Keeps the screen on while a patch plays: no screen saver begins, and no screen is switched off to save power.

Desktops are asked over D-Bus, and macOS by its own program: wakepy knows them. The X server is asked as well, for
sessions without a desktop. All of them end the request with this process, even if it is killed.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

# The most seconds that the end of a performance waits for a desktop that does not answer.
_LEAVE = 1.0


@contextmanager
def kept_awake() -> Iterator[None]:
    """Keeps the screen on within this context, if the system allows it. Never raises."""
    over = threading.Event()
    # Importing and asking take a moment, during which frames are drawn.
    thread = threading.Thread(target=_keep_awake, args=(over,), name="weft-awake", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(_LEAVE)


def _keep_awake(over: threading.Event) -> None:
    with ExitStack() as stack:
        for wish in (_by_x11, _by_desktop):
            # Libraries and desktops fail in many ways, none of which may end a performance.
            with suppress(Exception):
                wish(stack)
        over.wait()


def _by_desktop(stack: ExitStack) -> None:
    from wakepy import keep

    stack.enter_context(keep.presenting(on_fail="pass"))


def _by_x11(stack: ExitStack) -> None:
    if not os.environ.get("DISPLAY"):
        return
    x11, saver = ctypes.CDLL("libX11.so.6"), ctypes.CDLL("libXss.so.1")
    x11.XOpenDisplay.restype = ctypes.c_void_p
    display = ctypes.c_void_p(x11.XOpenDisplay(None))
    if not display:
        return
    # The server ends the request with the connection. Xlib would end the process if the server was gone by then.
    stack.callback(os.close, x11.XConnectionNumber(display))
    event, failure = ctypes.c_int(), ctypes.c_int()
    if saver.XScreenSaverQueryExtension(display, ctypes.byref(event), ctypes.byref(failure)):
        saver.XScreenSaverSuspend(display, True)
        x11.XFlush(display)
