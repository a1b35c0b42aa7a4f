"""The window as a screen: pictures with an overlay, mouse and keys.

Import it only for a window: if GLFW or OpenGL is missing, the import raises `WeftError` with the code `no-display`.
All of it is for the main thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from weft.apple import AppleDevice, AppleError
from weft.backends.base import DeviceLostError
from weft.backends.compute.interface import ComputeError
from weft.backends.wgpu.webgpu import WgpuDevice
from weft.errors import Diagnostic, WeftError, visible
from weft.keys import key_name
from weft.runtime.hands.inputs import BUTTONS, Inputs
from weft.runtime.screens.display import Display, Gamepads, GraphicsError, glfw, lost, monitor_name, no_display
from weft.runtime.screens.explained_painter import ExplainedPainter
from weft.runtime.screens.metal_painter import MetalSurface
from weft.runtime.screens.overlay import Annotator
from weft.runtime.screens.painter import Filter, GlSurface
from weft.runtime.screens.panel_painter import PanelPainter, PanelPlace
from weft.runtime.screens.playing_text import TextPainter, TextRoom
from weft.runtime.screens.screen import (
    ExplainedPixel, Label, Overlay, Picture, Pointing, Rect, Screen, Shown, WindowOptions, enlarged, fitted, letterbox,
    shared
)
from weft.runtime.screens.text_view import USUAL_STYLE, TextStyle, TextView
from weft.runtime.screens.wall_pins import WallPins, card_of
from weft.runtime.screens.walls import Walls
from weft.runtime.screens.warp import PLAIN, EdgeBlend, Warp
from weft.runtime.screens.wgpu_painter import WgpuSurface
from weft.runtime.stderr import suppress_stderr

LEAST = (480, 270)
"""The least width and height in which errors and the panel can be read."""

# The pointer is hidden after this many seconds without use.
_REST = 2.0


def surface_of(
    display: Display, handle: Any, filtering: Filter, leads: bool = True
) -> GlSurface | MetalSurface | WgpuSurface:
    """The surface of a window of a display; see `GlSurface`. Raises `WeftError` (`no-display`)."""
    if display.device is None:
        return GlSurface(display, handle, filtering, leads=leads)
    try:
        return _surface_on(display.device, handle, filtering)
    except (AppleError, ComputeError) as problem:
        raise no_display(f"{_library(display.device)} does not draw ({problem})") from problem


def _library(device: AppleDevice | WgpuDevice) -> str:
    return device.library if isinstance(device, WgpuDevice) else "Metal"


def _surface_on(device: AppleDevice | WgpuDevice, handle: Any, filtering: Filter) -> MetalSurface | WgpuSurface:
    """A surface that a device draws. Raises AppleError or ComputeError."""
    if isinstance(device, WgpuDevice):
        return WgpuSurface(device, handle, filtering)
    return MetalSurface(device, handle, filtering)


def display_on(device: AppleDevice | WgpuDevice) -> Display:
    """A display whose windows show the pictures of a device without a copy, tested with a hidden window. Raises
    `WeftError` (`no-display`) if there is no display, and GraphicsError if only the device cannot draw in it."""
    display = Display(device)
    try:
        handle = display.create(1, 1, "weft")
        if not handle:
            raise GraphicsError(display.take_error() or "no window can be made")
        surface = _surface_on(device, handle, "linear")
        surface.read_back((1, 1), ())
        surface.close()
        glfw.destroy_window(handle)
    except (AppleError, ComputeError, GraphicsError, WeftError) as problem:
        display.close()
        raise GraphicsError(f"{_library(device)} does not draw there ({problem})") from problem
    return display


class Window(Screen):
    """A window that shows pictures. The commands of `Space`, `F` and the like go to `on_command`.

    It takes the size of its pictures until the user resizes it. From then on, and in full screen, the picture is fitted
    into the window. The pointer is hidden while it rests over the picture.
    """

    def __init__(
        self, title: str, width: int, height: int, *, vsync: bool = True, fullscreen: bool = False,
        monitor: int | None = None, filtering: Filter = "linear", inputs: Inputs | None = None,
        on_command: Callable[[str], None] = lambda command: None, display: Display | None = None, leads: bool = True,
        size: tuple[int, int] | None = None, least: tuple[int, int] = (1, 1),
        warn: Callable[[Diagnostic], None] = lambda problem: None, shows_text: bool = False,
        text_style: TextStyle = USUAL_STYLE, walls: Walls | None = None, name: str = "",
    ) -> None:
        """Opens a window for pictures of `width` × `height`, or smaller to fit the monitor. With a `size`, the window
        has that size instead, and keeps it. Otherwise small pictures are enlarged, so that it has at least the `least`
        size. `monitor` counts from 0. If the monitor is missing, `warn` gets a warning, and the window moves there when
        the monitor is connected.

        With `shows_text`, the text that plays is over the picture, and `text_style` says where and how large.

        `walls` say how its picture lies on the wall, by its `name`.

        `filtering` is how pictures are scaled. Of several windows, gamepads and the backends that draw belong to the
        one that `leads`. Raises `WeftError` (`no-display`) if no window can be opened.
        """
        super().__init__(inputs, on_command)
        self._commands: list[str] = []
        self._vsync = vsync
        self._windowed: tuple[int, int, int, int] | None = None
        self._filled: str | None = None
        """The name of the monitor that it fills, or filled until that was unplugged."""
        self._was_filling = False
        """Whether it filled a monitor when monitors last changed."""
        self._title = title
        self._picture_size = (width, height)
        self._own_size, self._least = size, least
        self._requested_size: tuple[int, int] | None = None
        self._sized_by_user = False
        self._keeps_size = size is not None
        self._minimised = False
        self._pointer_seen = False
        self._pointer_used = time.monotonic()
        self._pointer_hidden = False
        self._annotator = Annotator()
        self._text_is_shown = shows_text
        self._text_style = text_style
        self._text_view = TextView()
        self._text_painter = TextPainter(text_style)
        self._pointing: Pointing | None = None
        self._explained: ExplainedPixel | None = None
        self._explained_painter = ExplainedPainter()
        self._walls, self._name, self._warp = walls or Walls(), name, PLAIN
        self._wall_monitor = ""
        """The name of the monitor on whose wall it lies."""
        self._pins = WallPins(self._lie, self._keep_wall)
        self._latest: Shown | None = None
        """The latest picture, which a test card may hide."""
        self._panel_painter = PanelPainter()
        self._panel_place = PanelPlace(0, 0, 1, 1)
        with ExitStack() as stack:
            if display is None:
                display = Display()
                stack.callback(display.close)
            self.display = display
            self._monitor_number = monitor
            self._awaits = (problem := self._missing_monitor(monitor)) is not None
            """Whether it moves to its monitor as soon as that is connected."""
            self._fills_awaited = fullscreen
            self._warn = warn
            if problem is not None:
                warn(problem)
            self._handle = self._open(title)
            stack.callback(glfw.destroy_window, self._handle)
            self._surface = surface_of(display, self._handle, filtering, leads)
            stack.callback(self._surface.close)
            with suppress_stderr():
                self._surface.keep_pace(vsync)
                glfw.show_window(self._handle)
            glfw.set_key_callback(self._handle, self._on_key)
            glfw.set_mouse_button_callback(self._handle, self._on_button)
            glfw.set_cursor_pos_callback(self._handle, self._on_pointer)
            glfw.set_scroll_callback(self._handle, self._on_scroll)
            glfw.set_window_size_callback(self._handle, self._on_size)
            glfw.set_window_pos_callback(self._handle, lambda *_: self._follow_monitor())
            glfw.set_framebuffer_size_callback(self._handle, lambda *_: self._point())
            glfw.set_window_iconify_callback(self._handle, self._on_minimise)
            # While the window is being resized, macOS does not return from polling, but needs pictures.
            glfw.set_window_refresh_callback(self._handle, lambda _: self.redraw())
            if fullscreen and not self._awaits:
                self.toggle_fullscreen()
            self._follow_wall()
            self.redraw()
            if leads:
                self.inputs.connect(Gamepads())
            self._resources = stack.pop_all()

    def _missing_monitor(self, number: int | None) -> Diagnostic | None:
        """A warning about a monitor that is not there."""
        if number is None or 0 <= number < len(glfw.get_monitors()):
            return None
        known = ", ".join(f"{i} ({name})" for i, name in enumerate(self.display.monitors()))
        words = f"there is no monitor {number}" + f" (there is {known})" * bool(known)
        hint = "its window opens on another one, and goes there as soon as it is connected"
        return Diagnostic.of("no-monitor", words, hint=hint)

    @property
    def _monitor(self) -> Any:
        """The monitor given at the start; None if none was, or if it was unplugged."""
        # It is looked up each time, since GLFW's pointer to an unplugged monitor is invalid.
        number, monitors = self._monitor_number, glfw.get_monitors()
        return monitors[number] if number is not None and number < len(monitors) else None

    def _open(self, title: str) -> Any:
        """Makes the window, still hidden."""
        monitor = self._monitor
        area = _work_area(monitor or glfw.get_primary_monitor())
        width, height = self._requested_size = self._wanted_size(area)
        handle = self.display.create(width, height, title)
        if not handle:
            reason = self.display.take_error() or "unknown"
            raise no_display(f"this display draws neither with OpenGL 3.3 nor with OpenGL ES 3.0 ({reason})")
        if monitor and area:
            with suppress_stderr():
                glfw.set_window_pos(handle, *_centred((width, height), area))
        return handle

    def _wanted_size(self, area: Rect | None) -> tuple[int, int]:
        """Width and height of the window in this part of a monitor, unless the user has resized it."""
        return fitted(self._own_size or enlarged(self._picture_size, self._least), area)

    @property
    def frame_size(self) -> tuple[int, int]:
        """Width and height of the drawable area in real pixels; both are 0 while the window is minimised."""
        width, height = glfw.get_framebuffer_size(self._handle)
        return width, height

    @property
    def should_close(self) -> bool:
        return self._closed or bool(glfw.window_should_close(self._handle))

    @property
    def fullscreen(self) -> bool:
        # Not cached, since GLFW takes a window back from a monitor that is unplugged.
        return bool(glfw.get_window_monitor(self._handle))

    def present(self, picture: Shown) -> None:
        """See `Screen.present`. With vsync, waits for the monitor. A picture that was drawn with the graphics or the
        device of the window's display is not copied. Raises `WeftError`: `picture-too-large` for one that the graphics
        card cannot hold, `display-lost` if nothing can be drawn any more."""
        if self._closed:
            return
        size = (picture.shape[1], picture.shape[0])
        is_new = size != self._picture_size
        if is_new and self._pins.is_open:
            self.toggle_pins()
        if not self._pins.is_open:
            self._surface.show(picture)
        self._latest = picture
        if is_new:
            self._picture_size = size
            self._follow_picture()
            self._point()
        self.redraw()

    def redraw(self) -> None:
        """See `Screen.redraw`. Does nothing while the window is minimised, and after it is closed. Raises `WeftError`
        as `present` does."""
        if self._closed or self._minimised:
            return
        frame = self.frame_size
        if all(frame):
            self._surface.present(frame, self._labels(frame))

    def _labels(self, frame: tuple[int, int]) -> tuple[Label, ...]:
        scale = max(glfw.get_window_content_scale(self._handle))
        notes = self._annotator.labels(self._overlay, frame, scale)
        if self._pins.is_open:
            return (*self._pins.labels(frame, scale), *notes)
        above = self._panel_labels(frame, scale, notes)
        if self._explained is not None:
            place = self._place_around(self._explained.x, self._explained.y, frame)
            above = (*self._explained_painter.labels(self._explained, place, frame, scale), *above)
        return (*self._text_labels(frame, scale, notes), *above) if self._text_is_shown else above

    def _text_labels(self, frame: tuple[int, int], scale: float, notes: Sequence[Label]) -> tuple[Label, ...]:
        """The labels of the text that plays, where notes leave room for it in its corner."""
        is_left = self._text_style.corner.endswith("left")
        above, below = 0, self._text_painter.reserve(frame, scale)
        for place in (note.place for note in notes):
            end = place.top + place.height
            if place.top > frame[1] - end:  # nearer to the lower edge
                below = max(below, frame[1] - place.top)
            elif (place.left < frame[0] // 4) == is_left:
                above = max(above, end)
        room = TextRoom(frame, above, below)
        return self._text_painter.labels(self._text_view, room, scale)

    def _panel_labels(self, frame: tuple[int, int], scale: float, notes: tuple[Label, ...]) -> tuple[Label, ...]:
        """The notes, above the labels of the panel if that is open."""
        if not self.panel.is_open:
            return notes
        # The figures are in the same corner.
        right = [label.place for label in notes if label.place.left > frame[0] // 4 and label.place.top < frame[1] // 4]
        top = max((place.top + place.height for place in right), default=0)
        view = self.panel.view(*self._panel_painter.room(frame, scale, top))
        if view is None:
            return notes
        self._panel_place = self._panel_painter.place(view.layout, frame, top)
        return (*self._panel_painter.labels(view, self._panel_place), *notes)

    def read_back(self) -> Picture:
        """The content of the window, [height, width, RGBA], row 0 on top: the picture, black around it, and the
        overlay."""
        frame = self.frame_size
        return self._surface.read_back(frame, self._labels(frame))

    def poll(self) -> None:
        """See `Screen.poll`. Raises WeftError (`display-lost`) if the window system has closed it."""
        if self._closed:
            return
        glfw.poll_events()
        if self.display.is_gone:
            raise lost("the X server has closed it, as xkill does")
        # After GLFW's callbacks, in which a window must not be closed.
        commands, self._commands = self._commands, []
        for command in commands:
            self._on_command(command)
        self._rest_pointer()

    def _rest_pointer(self) -> None:
        """Hides the pointer when it has not been used for a moment, unless it is over the panel, and shows it again."""
        if self._closed:  # by a command
            return
        rests = time.monotonic() - self._pointer_used >= _REST and not self.panel.covers(*self._pointed_cell())
        if rests != self._pointer_hidden:
            self._pointer_hidden = rests
            glfw.set_input_mode(self._handle, glfw.CURSOR, glfw.CURSOR_HIDDEN if rests else glfw.CURSOR_NORMAL)

    def show_text(self, view: TextView) -> None:
        """See `Screen.show_text`."""
        self._text_view = view

    def set_title(self, title: str) -> None:
        """Gives the window another title."""
        # The display takes a moment to change the title, even to the same one.
        if title != self._title:
            glfw.set_window_title(self._handle, title)
            self._title = title

    def toggle_fullscreen(self) -> None:
        """Fills the monitor given at the start, or else the one under most of the window; or leaves full screen."""
        self._awaits = False
        if self.fullscreen:
            place = self._windowed or (0, 0, *self._wanted_size(_work_area(self._monitor_below())))
            glfw.set_window_monitor(self._handle, None, *place, 0)  # type: ignore[arg-type]  # as above
            self._filled, self._was_filling = None, False
            self._follow_picture()
            self._surface.keep_pace(self._vsync)  # some drivers forget it with the change
            self._follow_wall()
        else:
            self._windowed = (*glfw.get_window_pos(self._handle), *glfw.get_window_size(self._handle))
            self._fill(self._monitor or self._monitor_below())

    # --- the wall ---

    @property
    def _on_monitor(self) -> str:
        """The name of the monitor on which the window is."""
        monitor = glfw.get_window_monitor(self._handle) or self._monitor_below()
        return monitor_name(monitor) if monitor else ""

    def _follow_wall(self) -> None:
        """Has the picture lie as is kept for the monitor."""
        self._wall_monitor = self._on_monitor
        self._lie(self._walls.of(self._on_monitor, self._name))

    def _follow_monitor(self) -> None:
        """The same, if the window has come to another monitor. A picture that is being pinned stays as it is."""
        if not self._pins.is_open and self._on_monitor != self._wall_monitor:
            self._follow_wall()

    def _lie(self, warp: Warp) -> None:
        self._warp = warp
        # While pictures are pinned, all of them is seen, so that their grids can be laid over each other.
        self._surface.lie(replace(warp, blend=EdgeBlend(), mask=(), mask_picture=None) if self._pins.is_open else warp)

    def _keep_wall(self, warp: Warp) -> None:
        self._walls.keep(self._on_monitor, self._name, warp)

    def toggle_pins(self) -> None:
        """Shows a test card whose corners can be dragged, or the picture again."""
        if self._pins.is_open:
            self._pins.close()
            self._lie(self._warp)
            if self._latest is not None:
                self._surface.show(self._latest)
        else:
            width, height = self._picture_size
            self._pins.open(self._warp, self._picture_size)
            self._lie(self._warp)
            self._surface.show(card_of(self._picture_size, f"{visible(self._name) or 'weft'} {width}×{height}"))

    def _in_picture(self, x: float, y: float, frame: tuple[int, int]) -> tuple[float, float]:
        """The place in the picture, 0…1, at a pixel of the frame."""
        if not self._warp.is_plain:
            return self._warp.to_picture(self._picture_size, frame, x, y)
        picture = letterbox(self._picture_size, frame)
        return (x - picture.left) / picture.width, (y - picture.top) / picture.height

    def _place_around(self, x: float, y: float, frame: tuple[int, int]) -> Rect:
        """Where the picture would be without a wall, if this place in it stayed where it is seen."""
        place = letterbox(self._picture_size, frame)
        if self._warp.is_plain:
            return place
        left, top = self._warp.from_picture(self._picture_size, frame, x, y)
        return Rect(round(left - x * place.width), round(top - y * place.height), place.width, place.height)

    def keep_size(self) -> None:
        """See `Screen.keep_size`."""
        self._keeps_size = True

    def _fill(self, monitor: Any) -> None:
        mode = glfw.get_video_mode(monitor) if monitor else None
        if mode is None:  # there is no monitor at this moment
            return
        self._filled, self._was_filling = monitor_name(monitor), True
        glfw.set_window_monitor(self._handle, monitor, 0, 0, *mode.size, mode.refresh_rate)
        self._surface.keep_pace(self._vsync)  # as above
        self._follow_wall()

    def follow_monitors(self) -> None:
        """To be called when monitors were connected or unplugged. A window whose monitor is gone moves to the first
        one. One that filled it does so again as soon as the monitor is back. One whose monitor was missing moves
        there."""
        if self.fullscreen:
            return
        if self._awaits and (monitor := self._monitor) is not None:
            self._awaits = False
            if (area := _work_area(monitor)) is not None:
                glfw.set_window_pos(self._handle, *_centred((self._place.width, self._place.height), area))
            if self._fills_awaited:
                self.toggle_fullscreen()
            return
        again = next((each for each in glfw.get_monitors() if monitor_name(each) == self._filled), None)
        if again is not None:
            self._fill(again)
            return
        area, below = _work_area(glfw.get_primary_monitor()), self._monitor_below()
        is_seen = below and shared(self._place, Rect(*glfw.get_monitor_workarea(below)))
        if area is None or (is_seen and not self._was_filling):
            return
        width, height = self._place.width, self._place.height
        if self._was_filling:  # GLFW leaves it as large as the monitor was
            self._was_filling = False
            width, height = fitted(self._windowed[2:], area) if self._windowed else self._wanted_size(area)
            glfw.set_window_size(self._handle, width, height)
        glfw.set_window_pos(self._handle, *_centred((width, height), area))

    @property
    def _place(self) -> Rect:
        """Its place on the desktop."""
        return Rect(*glfw.get_window_pos(self._handle), *glfw.get_window_size(self._handle))

    def _follow_picture(self) -> None:
        """Gives the window the size for its picture, unless it keeps its own or the user has resized it."""
        if self.fullscreen or self._sized_by_user or self._keeps_size:
            return
        area = _work_area(self._monitor_below())
        width, height = self._wanted_size(area)
        if (width, height) == self._requested_size:
            return
        self._requested_size = (width, height)
        glfw.set_window_size(self._handle, width, height)
        left, top = glfw.get_window_pos(self._handle)
        if area and (left + width > area.left + area.width or top + height > area.top + area.height):
            left = max(area.left, min(left, area.left + area.width - width))
            top = max(area.top, min(top, area.top + area.height - height))
            glfw.set_window_pos(self._handle, left, top)

    def _monitor_below(self) -> Any:
        """The monitor under most of the window; None if there is none."""
        if not self.display.answers():
            return None
        own = self._place

        def covered(monitor: Any) -> int:
            return shared(own, Rect(*glfw.get_monitor_workarea(monitor)))

        return max(glfw.get_monitors(), key=covered, default=None)

    def _on_key(self, _window: Any, number: int, scancode: int, action: int, modifiers: int) -> None:
        if action == glfw.RELEASE:
            self.inputs.key_up(number)
        elif (name := key_name(number, glfw.get_key_name(number, scancode))) is not None:
            control = bool(modifiers & glfw.MOD_CONTROL)
            if not control and self._pins.is_open and self._pins.key(name, bool(modifiers & glfw.MOD_SHIFT)):
                return
            if not control and self.panel.key(name, bool(modifiers & glfw.MOD_SHIFT), self._patch_keys):
                return
            if action == glfw.REPEAT:
                return
            command = self._command_of(name, control)
            if command is not None:
                self._commands.append(command)
            else:
                self.inputs.key_down(number, name)

    def _on_button(self, _window: Any, button: int, action: int, modifiers: int) -> None:
        self._pointer_used = time.monotonic()
        if button >= len(BUTTONS):
            return
        name = BUTTONS[button]
        if self._pins.is_open:
            if action == glfw.PRESS:
                self._pins.press(*self._pointed())
            else:
                self._pins.release()
        elif action == glfw.PRESS:
            if modifiers & glfw.MOD_ALT and not self.panel.covers(*self._pointed_cell()):
                self._ask_why(is_on=name == BUTTONS[0])
            elif not self.panel.press(name, *self._pointed_cell(), bool(modifiers & glfw.MOD_SHIFT)):
                self.inputs.press(name)
        elif not self.panel.release(name):
            self.inputs.release(name)

    def _ask_why(self, is_on: bool) -> None:
        """Notes that a user points at a pixel, or at the black around the picture, which means that nothing is to be
        said."""
        x, y = self._pointed()
        frame = self.frame_size
        if all(frame):
            across, down = self._in_picture(x, y, frame)
            room = self._explained_painter.room(frame, max(glfw.get_window_content_scale(self._handle)))
            self._pointing = Pointing("", across, down, is_on and 0 <= across < 1 and 0 <= down < 1, *room)

    def take_pointing(self) -> Pointing | None:
        """See `Screen.take_pointing`."""
        found, self._pointing = self._pointing, None
        return found

    def explain(self, pixel: ExplainedPixel | None) -> None:
        """See `Screen.explain`."""
        self._explained = pixel

    def _on_scroll(self, _window: Any, x: float, y: float) -> None:
        self._pointer_used = time.monotonic()
        if not self.panel.turn(x, y, *self._pointed_cell(), self._is_shift_down):
            self.inputs.turn(y)

    @property
    def _is_shift_down(self) -> bool:
        keys = glfw.KEY_LEFT_SHIFT, glfw.KEY_RIGHT_SHIFT
        return any(glfw.get_key(self._handle, key) == glfw.PRESS for key in keys)

    def _on_size(self, _window: Any, width: int, height: int) -> None:
        if width and height and not self.fullscreen:
            self._sized_by_user = (width, height) != self._requested_size

    def _on_minimise(self, _window: Any, minimised: int) -> None:
        self._minimised = bool(minimised)
        self.redraw()

    def _on_pointer(self, _window: Any, _x: float, _y: float) -> None:
        self._pointer_seen, self._pointer_used = True, time.monotonic()
        if self._pins.is_open:
            self._pins.move(*self._pointed())
            return
        if not self.panel.point(*self._pointed_cell(), self._is_shift_down):
            self._point()

    def _point(self) -> None:
        """Updates the place of the pointer in the picture, which also changes when the picture moves under it."""
        frame = self.frame_size
        if not self._pointer_seen or not all(frame) or self.panel.covers(*self._pointed_cell()):
            return
        self.inputs.move(*self._in_picture(*self._pointed(), frame))

    def _pointed(self) -> tuple[float, float]:
        """The place of the pointer in the frame."""
        # The pointer is in the window system's units, of which one may be several pixels of the frame.
        x, y = glfw.get_cursor_pos(self._handle)
        width, height = glfw.get_window_size(self._handle)
        frame = self.frame_size
        return x * frame[0] / max(width, 1), y * frame[1] / max(height, 1)

    def _pointed_cell(self) -> tuple[float, float]:
        """The place of the pointer in cells of the panel."""
        return self._panel_place.cell(*self._pointed())


class Windows(Window):
    """The first window of a performance, and one for each further picture, which shows nothing else. Keys and the mouse
    work in all of them. F fills the monitor with the one that has the focus, and V shows the text that plays there.

    A further window opens with its first picture, and closes when its picture is gone. If the player closes a window,
    the others stay, and it stays closed until its picture is gone. When all are closed, the performance ends. Text over
    pictures is in the first window, or in another one if that is closed. Only the first one waits for its monitor:
    otherwise several waits would follow each other in a frame.
    """

    def __init__(
        self, title: str, width: int, height: int, *, further: Mapping[str, WindowOptions] = MappingProxyType({}),
        on_change: Callable[[str, str, str], None] = lambda name, state, reason: None, **options: Any,
    ) -> None:
        """`further` says how windows open, by their names. `on_change` gets a name, `opened`, `closed` or `failed`, and
        in the last case the reason. All other arguments are those of `Window`, and the errors. Warnings may be about a
        further window."""
        self._options = further
        self._on_change = on_change
        self._further: dict[str, Window] = {}
        self._shown_last: dict[str, Shown] = {}
        self._stays_closed: set[str] = set()
        self._is_hidden = False
        self._has_new_monitors = False
        super().__init__(title, width, height, **options)
        for number in {wanted.monitor for wanted in further.values()} - {self._monitor_number}:
            if (problem := self._missing_monitor(number)) is not None:
                self._warn(problem)
        glfw.set_monitor_callback(self._on_monitors)
        self._resources.callback(glfw.set_monitor_callback, None)  # type: ignore[arg-type]  # as above

    @property
    def should_close(self) -> bool:
        return super().should_close or (self._is_hidden and not self._further)

    def show_others(self, pictures: Mapping[str, Shown]) -> None:
        """See `Screen.show_others`. A window that cannot be opened, or drawn into any more, is reported and left out.
        Raises DeviceLostError if the device of a picture fails."""
        self._stays_closed &= pictures.keys()
        for name in [name for name in self._further if name not in pictures]:
            self._close_further(name, "closed")
            if self._is_hidden and not self._further:
                self._is_hidden = False
                glfw.show_window(self._handle)
                self._on_change("", "opened", "")
        for name, picture in pictures.items():
            if name in self._stays_closed or self._shown_last.get(name) is picture:
                continue
            try:
                if name not in self._further:
                    self._open_further(name, picture)
                self._further[name].present(picture)
                self._shown_last[name] = picture
            except DeviceLostError:
                raise
            except WeftError as failure:
                self._stays_closed.add(name)
                self._close_further(name, "failed", failure.diagnostics[0].message)

    def _open_further(self, name: str, picture: Shown) -> None:
        wanted = self._options.get(name, WindowOptions())

        def on_command(command: str) -> None:
            if command in ("fullscreen", "source", "pins"):
                window.toggle(command)
            else:
                self._on_command(command)

        window = Window(
            self._titled(name), picture.shape[1], picture.shape[0], vsync=False, fullscreen=wanted.fullscreen,
            monitor=wanted.monitor, inputs=self.inputs, on_command=on_command, display=self.display, leads=False,
            shows_text=wanted.shows_text, text_style=self._text_style, walls=self._walls, name=name,
        )  # fmt: skip
        window.set_patch_keys(self._patch_keys)
        self._further[name] = window
        self._on_change(name, "opened", "")
        self.annotate(self._overlay)

    def _close_further(self, name: str, state: str, reason: str = "") -> None:
        self._shown_last.pop(name, None)
        if name in self._further:
            self._further.pop(name).close()
        self._on_change(name, state, reason)
        self.annotate(self._overlay)

    @property
    def _leading(self) -> Window | None:
        """The further window over whose picture text is written; None if that is in the first one."""
        return next(iter(self._further.values()), None) if self._is_hidden else None

    def redraw(self) -> None:
        if self._leading is not None:
            self._leading.redraw()
        elif not self._is_hidden:
            super().redraw()

    def annotate(self, overlay: Overlay) -> None:
        super().annotate(overlay)
        for window in self._further.values():
            window.annotate(overlay if window is self._leading else Overlay())

    @property
    def wants_text(self) -> bool:
        return super().wants_text or any(window.wants_text for window in self._further.values())

    def show_text(self, view: TextView) -> None:
        super().show_text(view)
        for window in self._further.values():
            window.show_text(view)

    def take_pointing(self) -> Pointing | None:
        found = super().take_pointing()
        for name, window in self._further.items():
            if (pointing := window.take_pointing()) is not None:
                found = replace(pointing, window=name)
        return found

    def explain(self, pixel: ExplainedPixel | None) -> None:
        super().explain(pixel if pixel is not None and not pixel.window else None)
        for name, window in self._further.items():
            window.explain(pixel if pixel is not None and pixel.window == name else None)

    def set_title(self, title: str) -> None:
        super().set_title(title)
        for name, window in self._further.items():
            window.set_title(self._titled(name))

    def _titled(self, name: str) -> str:
        return f"{visible(name)} · {self._title}"

    def set_patch_keys(self, names: frozenset[str]) -> None:
        super().set_patch_keys(names)
        for window in self._further.values():
            window.set_patch_keys(names)

    def keep_size(self) -> None:
        super().keep_size()
        for window in self._further.values():
            window.keep_size()

    def poll(self) -> None:
        super().poll()
        for name, window in [*self._further.items()]:
            window.poll()
            if window.should_close:
                self._stays_closed.add(name)
                self._close_further(name, "closed")
        if self._further and glfw.window_should_close(self._handle):
            # Not destroyed, as backends draw in its context.
            glfw.set_window_should_close(self._handle, False)
            glfw.hide_window(self._handle)
            self._is_hidden = True
            self._on_change("", "closed", "")
            self.annotate(self._overlay)
        if self._has_new_monitors:
            self._has_new_monitors = False
            for window in (self, *self._further.values()):
                window.follow_monitors()

    def _on_monitors(self, _monitor: Any, _event: int) -> None:
        self._has_new_monitors = True

    def close(self) -> None:
        for window in self._further.values():
            window.close()
        self._further.clear()
        super().close()


def _centred(size: tuple[int, int], area: Rect) -> tuple[int, int]:
    """The place of a window of a size in the middle of an area, including its title."""
    left, top = area.left + (area.width - size[0]) // 2, area.top + (area.height - size[1]) // 2
    return max(left, area.left), max(top, area.top)


def _work_area(monitor: Any) -> Rect | None:
    """The part of a monitor that panels leave to windows; None if there is no monitor, or it is not known."""
    area = Rect(*glfw.get_monitor_workarea(monitor)) if monitor else None
    return area if area and area.width and area.height else None
