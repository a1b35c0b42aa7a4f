"""GLFW, and the graphics that windows and backends share.

This is the only module that imports GLFW. Import it only for a window: if GLFW or OpenGL is missing, the import raises
`WeftError` with the code `no-display`.
"""

from __future__ import annotations

import ctypes
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from weft.errors import WeftError, error
from weft.keys import PAD_AXES, PAD_BUTTONS
from weft.names import SentName
from weft.runtime.stderr import suppress_stderr

if TYPE_CHECKING:
    from weft.apple import AppleDevice
    from weft.backends.wgpu.webgpu import WgpuDevice

HINT = "--terminal shows the picture in the terminal, --headless runs without one"


def no_display(message: str) -> WeftError:
    """The error if no window can be opened."""
    return error("no-display", f"no window can be opened: {message}", hint=HINT)


def lost(reason: str) -> WeftError:
    """The error if nothing can be drawn any more."""
    return error("display-lost", f"the window cannot be drawn into any more: {reason}", hint=HINT)


try:
    from weft.backends.gl.egl import DESKTOP, EMBEDDED, Context, GlApi, GraphicsError
    from weft.backends.gl.glfw_contexts import glfw, hints_of, window_context
    from weft.backends.gl.graphics import NEEDS_EGL, DriverError, Graphics
    from weft.backends.gl.textures import GlPicture
except Exception as problem:  # without libGL, PyOpenGL raises errors of many kinds
    raise no_display(f"OpenGL or GLFW is missing on this machine ({problem})") from problem

__all__ = ["HINT", "Display", "DriverError", "GlPicture", "Graphics", "GraphicsError", "glfw", "lost", "no_display"]

# Typing on one monitor must not hide the picture on the other.
_HINTS = {glfw.AUTO_ICONIFY: glfw.FALSE, glfw.VISIBLE: glfw.FALSE}
_GL_HINTS = {glfw.CONTEXT_CREATION_API: glfw.EGL_CONTEXT_API if NEEDS_EGL else glfw.NATIVE_CONTEXT_API}
_NO_GL_HINTS = {glfw.CLIENT_API: glfw.NO_API}

# The number of threads that make programs ready while the window draws: one may wait for the driver.
_PREPARING = 2


_Closed = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_Exit = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_Refused = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class _Connections:
    """Notes what an X server refuses, and the end of a connection to it. `xkill`, for example, ends that of all windows
    of a process. Xlib would end the process in both cases."""

    def __init__(self) -> None:
        self.ended: set[int] = set()
        """The addresses of those that have ended."""
        self.refused: deque[str] = deque(maxlen=8)
        """What the servers said of the requests that they refused last."""
        # Xlib keeps the functions.
        self._on_end = _Closed(self._note_end)
        self._on_refusal = _Refused(self._note_refusal)
        self._stay = _Exit(lambda display, data: None)

    def _note_end(self, display: int | None) -> int:
        self.ended.add(display or 0)
        return 0

    def _note_refusal(self, display: int | None, event: int | None) -> int:
        refusal = _XErrorEvent.from_address(event or 0)
        words = ctypes.create_string_buffer(128)
        _xlib().XGetErrorText(ctypes.c_void_p(display), refusal.error_code, words, len(words))
        self.refused.append(f"the X server refused request {refusal.request}.{refusal.minor}: {_text(words.value)}")
        return 0

    def follow(self, address: int) -> None:
        """Notes what becomes of this connection. Does not note its end if Xlib cannot continue after that (before
        1.7)."""
        self.ended.discard(address)
        display = ctypes.c_void_p(address)
        with suppress(OSError, AttributeError):
            _xlib().XSetErrorHandler(self._on_refusal)
            _xlib().XSetIOErrorExitHandler(display, self._stay, None)
            _xlib().XSetIOErrorHandler(self._on_end)
        # A server refuses requests of this extension until it has been asked for its version. Vulkan by Mesa asks only
        # once for each address of a connection, and a later one may have the address of one that was closed.
        with suppress(OSError, AttributeError):
            version = ctypes.c_int(), ctypes.c_int()
            ctypes.CDLL("libXfixes.so.3").XFixesQueryVersion(display, *map(ctypes.byref, version))


class _XErrorEvent(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int), ("display", ctypes.c_void_p), ("resource", ctypes.c_ulong), ("serial", ctypes.c_ulong),
        ("error_code", ctypes.c_ubyte), ("request", ctypes.c_ubyte), ("minor", ctypes.c_ubyte),
    )  # fmt: skip


def _xlib() -> Any:
    return ctypes.CDLL("libX11.so.6")


_connections = _Connections()


class Display:
    """GLFW, from its start to its end. All windows that are open at the same time share one."""

    def __init__(self, device: AppleDevice | WgpuDevice | None = None, apis: Sequence[GlApi] = ()) -> None:
        """With a `device` of Metal or WebGPU, windows are drawn by that device, without OpenGL. Otherwise the first of
        the `apis` that the display has draws them, and by default OpenGL rather than OpenGL ES. Raises `WeftError`
        (`no-display`) if there is no display."""
        self.device = device
        self._apis = dict.fromkeys((*apis, DESKTOP, EMBEDDED))
        """Only one is left once there is a window."""
        self._errors: deque[str] = deque(maxlen=8)
        self._drawer: tuple[Any, Graphics] | None = None
        glfw.set_error_callback(self._on_error)
        glfw.init_hint(glfw.COCOA_CHDIR_RESOURCES, glfw.FALSE)
        with suppress_stderr():
            ready = glfw.init()
        if not ready:
            reason = self._errors[0] if self._errors else "GLFW does not start"
            self.close()
            raise no_display(f"there is no display ({reason})")
        self._connection = _x11_connection()
        if self._connection:
            _connections.follow(self._connection)
        self.take_error()

    @property
    def is_gone(self) -> bool:
        """Whether the X server has ended the connection, and so closed all windows."""
        return self._connection in _connections.ended

    def answers(self) -> bool:
        """Whether the X server answers. GLFW crashes if it is asked where monitors are just after the server has ended
        the connection, and the end is noticed only when the server is asked something."""
        if self._connection and not self.is_gone:
            with suppress(OSError, AttributeError):
                _xlib().XSync(ctypes.c_void_p(self._connection), 0)
        return not self.is_gone

    def take_error(self) -> str | None:
        """GLFW's last message about a failed call since this was last called, or else an X server's; None if there is
        none."""
        last = next((said[-1] for said in (self._errors, _connections.refused) if said), None)
        self._errors.clear()
        _connections.refused.clear()
        return last

    def monitors(self) -> list[str]:
        """The names of the monitors, in the order of their numbers."""
        return list(map(monitor_name, glfw.get_monitors()))

    def close(self) -> None:
        """Closes all windows and GLFW itself. May be called twice."""
        if self._drawer is not None:
            self._drawer[1].close()
        glfw.terminate()
        glfw.set_error_callback(None)  # type: ignore[arg-type]  # back to the default; GLFW's stub forgets it

    def graphics(self) -> Graphics:
        """The graphics of backends whose pictures a window shows: at first in a hidden context, and in that of the
        window once it is open. Raises GraphicsError."""
        if self._drawer is None:
            handle = self.create(1, 1, "weft")
            if not handle:
                raise GraphicsError(self.take_error() or "the display makes no context")
            others = [self.create(1, 1, "weft", handle) for _ in range(_PREPARING)]
            self._drawer = handle, Graphics(self.context(handle), *(self.context(each) for each in others if each))
        return self._drawer[1]

    def lend(self, window: Any) -> Graphics | None:
        """Lets backends draw in the context of this window; None: in the hidden context again. Returns their graphics,
        if they have any."""
        if self._drawer is None:
            return None
        hidden, graphics = self._drawer
        graphics.draw_in(self.context(window or hidden))
        return graphics

    @property
    def shared(self) -> Graphics | None:
        """The graphics of backends, if they have any. Their pictures can be shown in every window."""
        return self._drawer[1] if self._drawer is not None else None

    def create(self, width: int, height: int, title: str, shared: Any = None) -> Any:
        """A hidden window, which shares its objects with another window, or else with the graphics of this display;
        None if GLFW makes none."""
        shared = shared or (self._drawer[0] if self._drawer else None)
        for api in list(self._apis):
            glfw.default_window_hints()
            hints = _NO_GL_HINTS if self.device else {**_GL_HINTS, **hints_of(api)}
            for hint, value in {**_HINTS, **hints}.items():
                glfw.window_hint(hint, value)
            glfw.window_hint_string(glfw.X11_CLASS_NAME, "weft")
            with suppress_stderr():
                made = glfw.create_window(width, height, title, None, shared)
            if made:
                self._apis = {api: None}
                return made
        return None

    def context(self, handle: Any) -> Context:
        """The graphics context of a window."""
        return window_context(handle)

    def _on_error(self, _code: int, words: Any) -> None:
        self._errors.append(_text(words))


def _x11_connection() -> int:
    """The address of GLFW's connection to an X server; 0 if it has none."""
    found: Any = getattr(glfw, "get_x11_display", lambda: None)
    return found() or 0


def refresh_rate(number: int) -> float | None:
    """The pictures a second, as a whole number, that a monitor shows; None if it does not say. Raises WeftError
    (`no-display`)."""
    display = Display()
    try:
        monitors = glfw.get_monitors()
        mode = glfw.get_video_mode(monitors[number]) if number < len(monitors) else None
        return float(mode.refresh_rate) if mode is not None and mode.refresh_rate > 0 else None
    finally:
        display.close()


def monitor_name(monitor: Any) -> str:
    """What the system calls a monitor."""
    return _text(glfw.get_monitor_name(monitor))


def _text(words: bytes | str | None) -> str:
    return words.decode(errors="replace") if isinstance(words, bytes) else words or ""


# --- gamepads; all of it is for the main thread ---

# A released stick does not return exactly to the middle.
_REST = 0.08


def pad_values(axes: Sequence[float], buttons: Sequence[int]) -> dict[str, float]:
    """The outputs of `pad`, from the axes (−1…1) and buttons of a gamepad in GLFW's order. Sticks are 0 near the middle
    and grow from there without a step; triggers are 0 when they are released."""
    sticks = {name: _off_rest(value) for name, value in zip(PAD_AXES[:4], axes[:4], strict=True)}
    triggers = {name: (value + 1) / 2 for name, value in zip(PAD_AXES[4:], axes[4:], strict=True)}
    held = {name: float(bool(value)) for name, value in zip(PAD_BUTTONS, buttons, strict=True)}
    return {**sticks, **triggers, **held}


def _off_rest(value: float) -> float:
    size = max(0.0, min(abs(value), 1.0) - _REST) / (1 - _REST)
    return size if value > 0 else -size if size else 0.0


class Gamepads:
    """The gamepads that are connected at the moment, read once a frame; see `weft.runtime.hands.inputs.Controller`."""

    sources = frozenset({"pad"})

    def __init__(self) -> None:
        self._held: list[frozenset[str]] = []
        """The buttons that were held in the last frame, of each gamepad."""
        self._presses: Counter[tuple[int, str]] = Counter()
        """The number of presses of each button, by the number of its gamepad."""

    def values(self, wanted: Iterable[SentName]) -> Mapping[SentName, float]:
        """See `Controller.values`. Outputs of a gamepad that is not connected are left out."""
        names = list(wanted)
        # GLFW looks for devices when it is first asked, which takes a moment.
        numbers = range(glfw.JOYSTICK_LAST + 1) if names else ()
        pads = [_state(number) for number in numbers if glfw.joystick_is_gamepad(number)]
        self.note(pads)
        found: dict[SentName, float] = {}
        for name in names:
            index, (output, at, _) = int(name.args[0]), name.output.partition("@")
            if at:
                found[name] = float(self._presses[index, output])
            elif index < len(pads):
                found[name] = pads[index].get(output, 0.0)
        return found

    def note(self, pads: Sequence[Mapping[str, float]]) -> None:
        """Counts the buttons that have gone down since the last frame, of the outputs of each gamepad."""
        before = self._held
        self._held = [frozenset(button for button in PAD_BUTTONS if pad.get(button)) for pad in pads]
        for index, held in enumerate(self._held):
            pressed = held - before[index] if index < len(before) else held
            self._presses.update((index, button) for button in pressed)

    def close(self) -> None:
        """Does nothing: GLFW keeps the devices."""


def _state(number: int) -> dict[str, float]:
    """The outputs of one gamepad; none if it is being unplugged."""
    state = glfw.get_gamepad_state(number)
    return pad_values(list(state.axes), list(state.buttons)) if state else {}
