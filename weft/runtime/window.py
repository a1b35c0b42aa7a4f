"""The window on the screen: shows finished pictures, and gives mouse and keys to the patch and commands to the tool.

This is the one module that imports GLFW. Import it where a window is wanted: where GLFW or OpenGL is missing, the
import itself raises `WeftError` with the code `no-display`. All of it is for the main thread.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from weft.errors import WeftError, error
from weft.keys import TOOL_KEYS, key_name
from weft.runtime.inputs import BUTTONS, Inputs

_HINT = "--headless runs without a window"


def _no_display(message: str) -> WeftError:
    return error("no-display", f"no window can be opened: {message}", hint=_HINT)


try:
    import glfw

    from weft.runtime.painter import NEEDS_EGL, Filter, GraphicsError, Painter, Picture, Rect, letterbox
except Exception as problem:  # without libGL, PyOpenGL fails in ways of its own, each an error of another kind
    raise _no_display(f"OpenGL or GLFW is missing on this machine ({problem})") from problem


@contextmanager
def _hushed() -> Iterator[None]:
    """Keeps away what GLFW, Xlib and Mesa print to stderr by themselves; what failed is told in weft's words."""
    if sys.stderr is not None:
        sys.stderr.flush()
    with ExitStack() as stack:
        try:
            kept = os.dup(2)
            stack.callback(os.close, kept)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            stack.callback(os.close, nowhere)
        except OSError:  # there is no stderr to keep anything away from
            yield
            return
        os.dup2(nowhere, 2)
        stack.callback(os.dup2, kept, 2)
        yield


class Display:
    """GLFW, from its start to its end. All windows that are open at the same time have to share one."""

    def __init__(self) -> None:
        """Raises `WeftError` (`no-display`) where there is no display."""
        self._errors: deque[str] = deque(maxlen=8)
        glfw.set_error_callback(self._on_error)
        glfw.init_hint(glfw.COCOA_CHDIR_RESOURCES, glfw.FALSE)
        with _hushed():
            ready = glfw.init()
        if not ready:
            reason = self._errors[0] if self._errors else "GLFW does not start"
            self.close()
            raise _no_display(f"there is no display ({reason})")

    def take_error(self) -> str | None:
        """What GLFW said last about a call that failed; None if none did since this was asked."""
        last = self._errors[-1] if self._errors else None
        self._errors.clear()
        return last

    def monitors(self) -> list[str]:
        """The monitors' names, in the order of their numbers."""
        return [_text(glfw.get_monitor_name(monitor)) for monitor in glfw.get_monitors()]

    def close(self) -> None:
        """Closes all windows and GLFW itself. May be called twice."""
        glfw.terminate()
        glfw.set_error_callback(None)  # type: ignore[arg-type]  # back to the default; GLFW's stub forgets it

    def _on_error(self, _code: int, words: Any) -> None:
        self._errors.append(_text(words))


def _text(words: bytes | str | None) -> str:
    return words.decode(errors="replace") if isinstance(words, bytes) else words or ""


class Window:
    """A window that shows pictures. What `Space`, `F` and the like ask for is handed to `on_command`."""

    def __init__(
        self,
        title: str,
        width: int,
        height: int,
        *,
        vsync: bool = True,
        fullscreen: bool = False,
        monitor: int | None = None,
        filtering: Filter = "linear",
        inputs: Inputs | None = None,
        on_command: Callable[[str], None] = lambda command: None,
        display: Display | None = None,
    ) -> None:
        """Opens a window for pictures of `width` × `height`, smaller where the screen is. `monitor` counts from 0.

        `filtering` is how pictures are scaled. `on_command` gets the values of `TOOL_KEYS`, from within `poll`.
        Raises `WeftError`: `no-display` where no window can be opened, `no-monitor` for an unknown monitor.
        """
        self.inputs = inputs if inputs is not None else Inputs()
        self._on_command = on_command
        self._commands: list[str] = []
        self._patch_keys: frozenset[str] = frozenset()
        self._vsync = vsync
        self._windowed: tuple[int, int, int, int] | None = None
        self._picture_size = (width, height)
        self._closed = False
        with ExitStack() as stack:
            if display is None:
                display = Display()
                stack.callback(display.close)
            self.display = display
            self._monitor = self._find_monitor(monitor)
            self._handle = self._open(title, width, height)
            stack.callback(glfw.destroy_window, self._handle)
            try:
                self._painter = Painter(filtering)
            except GraphicsError as problem:
                raise _no_display(f"the graphics driver does not draw ({problem})") from problem
            self._listen()
            if fullscreen:
                self.toggle_fullscreen()
            self.redraw()
            self._resources = stack.pop_all()

    def _find_monitor(self, number: int | None) -> Any:
        monitors = glfw.get_monitors()
        if number is None:
            return None
        if 0 <= number < len(monitors):
            return monitors[number]
        known = ", ".join(f"{i} ({name})" for i, name in enumerate(self.display.monitors()))
        raise error("no-monitor", f"there is no monitor {number}", hint=f"there is {known}")

    def _open(self, title: str, width: int, height: int) -> Any:
        """Makes the window and its context, and makes the context the current one."""
        area = _work_area(self._monitor or glfw.get_primary_monitor())
        if area and (width > area.width or height > area.height):
            fitting = letterbox((width, height), (area.width, area.height))
            width, height = fitting.width, fitting.height
        glfw.default_window_hints()
        for hint, value in _WINDOW_HINTS.items():
            glfw.window_hint(hint, value)
        glfw.window_hint_string(glfw.X11_CLASS_NAME, "weft")
        with _hushed():
            handle = glfw.create_window(width, height, title, None, None)
            if not handle:
                reason = self.display.take_error() or "unknown"
                raise _no_display(f"this display does not draw with OpenGL 3.3 ({reason})")
            if self._monitor and area:
                glfw.set_window_pos(
                    handle, area.left + (area.width - width) // 2, area.top + (area.height - height) // 2
                )
            glfw.make_context_current(handle)
            glfw.swap_interval(int(self._vsync))
        return handle

    def _listen(self) -> None:
        glfw.set_key_callback(self._handle, self._on_key)
        glfw.set_mouse_button_callback(self._handle, self._on_button)
        glfw.set_cursor_pos_callback(self._handle, self._on_pointer)
        glfw.set_scroll_callback(self._handle, lambda _, x, y: self.inputs.turn(y))
        # While the window is being resized, macOS does not return from polling; and it wants a picture meanwhile.
        glfw.set_window_refresh_callback(self._handle, lambda _: self.redraw())

    @property
    def frame_size(self) -> tuple[int, int]:
        """Width and height of what can be drawn on, in real pixels; both are 0 while the window is minimised."""
        width, height = glfw.get_framebuffer_size(self._handle)
        return width, height

    @property
    def should_close(self) -> bool:
        """Whether the player has asked for the window to be closed, or it is closed already."""
        return self._closed or bool(glfw.window_should_close(self._handle))

    @property
    def fullscreen(self) -> bool:
        return self._windowed is not None

    def set_title(self, title: str) -> None:
        glfw.set_window_title(self._handle, title)

    def set_patch_keys(self, names: frozenset[str]) -> None:
        """From now on these keys belong to the patch, and steer the tool only together with Ctrl."""
        self._patch_keys = names

    def present(self, picture: Picture) -> None:
        """Shows a picture [height, width, RGBA], row 0 on top; alpha is not shown, as nothing lies behind it.

        With vsync, waits for the screen. Does nothing once the window is closed. Raises `WeftError` for a picture that
        the graphics card cannot hold.
        """
        if self._closed:
            return
        glfw.make_context_current(self._handle)
        self._painter.upload(picture)
        self._picture_size = (picture.shape[1], picture.shape[0])
        self.redraw()

    def redraw(self) -> None:
        """Shows the last picture again; black, if there was none. Does nothing once the window is closed."""
        if self._closed:
            return
        glfw.make_context_current(self._handle)
        self._painter.paint(self.frame_size)
        glfw.swap_buffers(self._handle)

    def read_back(self) -> Picture:
        """What the window shows, [height, width, RGBA] with row 0 on top, the black around the picture included."""
        glfw.make_context_current(self._handle)
        return self._painter.read_back(self.frame_size)

    def poll(self) -> None:
        """Takes in what happened since the last call; then hands out the commands, which may close the window."""
        if self._closed:
            return
        glfw.poll_events()
        # Not from within GLFW's callbacks, in which a window must not be closed.
        commands, self._commands = self._commands, []
        for command in commands:
            self._on_command(command)

    def toggle_fullscreen(self) -> None:
        """Fills the monitor, the one given at the start or else that on which most of the window lies; and back."""
        if self._windowed is not None:
            glfw.set_window_monitor(self._handle, None, *self._windowed, 0)  # type: ignore[arg-type]  # as above
            self._windowed = None
        else:
            monitor = self._monitor or self._monitor_below()
            mode = glfw.get_video_mode(monitor) if monitor else None
            if mode is None:  # the monitor was unplugged
                return
            self._windowed = (*glfw.get_window_pos(self._handle), *glfw.get_window_size(self._handle))
            glfw.set_window_monitor(self._handle, monitor, 0, 0, *mode.size, mode.refresh_rate)
        glfw.make_context_current(self._handle)
        glfw.swap_interval(int(self._vsync))  # some drivers forget it with the change

    def _monitor_below(self) -> Any:
        """The monitor on which most of the window lies; None if there is none."""
        x, y = glfw.get_window_pos(self._handle)
        width, height = glfw.get_window_size(self._handle)

        def shared(monitor: Any) -> int:
            left, top, area_width, area_height = glfw.get_monitor_workarea(monitor)
            across = min(x + width, left + area_width) - max(x, left)
            down = min(y + height, top + area_height) - max(y, top)
            return max(across, 0) * max(down, 0)

        return max(glfw.get_monitors(), key=shared, default=None)

    def close(self) -> None:
        """Closes the window, and GLFW with it if the window has started it. May be called twice."""
        self._closed = True
        self._resources.close()

    def __enter__(self) -> Window:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _on_key(self, _window: Any, number: int, scancode: int, action: int, modifiers: int) -> None:
        if action == glfw.RELEASE:
            self.inputs.key_up(number)
        elif action == glfw.PRESS:
            name = key_name(number, glfw.get_key_name(number, scancode))
            if name is None:
                return
            if name in TOOL_KEYS and (modifiers & glfw.MOD_CONTROL or name not in self._patch_keys):
                self._commands.append(TOOL_KEYS[name])
            else:
                self.inputs.key_down(number, name)

    def _on_button(self, _window: Any, button: int, action: int, _modifiers: int) -> None:
        if button < len(BUTTONS):
            (self.inputs.press if action == glfw.PRESS else self.inputs.release)(BUTTONS[button])

    def _on_pointer(self, _window: Any, x: float, y: float) -> None:
        # The pointer is in the window system's units, of which one may be several pixels of the frame.
        window_width, window_height = glfw.get_window_size(self._handle)
        frame_width, frame_height = self.frame_size
        if not (window_width and window_height and frame_width and frame_height):
            return
        picture = letterbox(self._picture_size, (frame_width, frame_height))
        self.inputs.move(
            (x * frame_width / window_width - picture.left) / picture.width,
            (y * frame_height / window_height - picture.top) / picture.height,
        )


_WINDOW_HINTS = {
    glfw.CONTEXT_VERSION_MAJOR: 3,
    glfw.CONTEXT_VERSION_MINOR: 3,
    glfw.OPENGL_PROFILE: glfw.OPENGL_CORE_PROFILE,
    glfw.OPENGL_FORWARD_COMPAT: glfw.TRUE,
    glfw.CONTEXT_CREATION_API: glfw.EGL_CONTEXT_API if NEEDS_EGL else glfw.NATIVE_CONTEXT_API,
    glfw.ALPHA_BITS: 0,
    glfw.DEPTH_BITS: 0,
    glfw.STENCIL_BITS: 0,
    # A player who goes on typing on one screen must not lose the picture on the other.
    glfw.AUTO_ICONIFY: glfw.FALSE,
}


def _work_area(monitor: Any) -> Rect | None:
    """The part of a monitor that panels leave to windows; None if there is no monitor or it does not say."""
    area = Rect(*glfw.get_monitor_workarea(monitor)) if monitor else None
    return area if area and area.width and area.height else None
