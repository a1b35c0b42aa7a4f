"""OpenGL: the only module that imports PyOpenGL, with its settings, and the contexts that weft draws in."""

from __future__ import annotations

import ctypes
import os
import threading
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar, cast

import OpenGL

from weft.backends.gl.abilities import Abilities, abilities_of
from weft.backends.gl.egl import DESKTOP, EMBEDDED, Context, GlApi, GraphicsError
from weft.backends.hardware import is_software
from weft.backends.waits import DeviceWaits, FramesUnderWay
from weft.backends.work_threads import CLOSED, WorkThreads
from weft.codegen import essl
from weft.platform import system

# Without libGL, PyOpenGL raises errors of many kinds.

# Checking for errors after every call makes the driver wait. Calls that can fail are checked explicitly.
OpenGL.ERROR_CHECKING = False
OpenGL.ERROR_LOGGING = False
OpenGL.USE_ACCELERATE = False

T = TypeVar("T")

_CHOICE = "PYOPENGL_PLATFORM"

_IS_WAYLAND = bool(os.environ.get("WAYLAND_DISPLAY")) or os.environ.get("XDG_SESSION_TYPE") == "wayland"

NEEDS_EGL = os.environ[_CHOICE] == "egl" if _CHOICE in os.environ else _IS_WAYLAND and system.finds_egl
"""Whether windows must be opened with EGL."""


# Through EGL, PyOpenGL finds the functions of any context, including GLX; through GLX, only those of GLX. Elsewhere it
# takes a variable of desktops on Linux for a sign of GLX, and such a variable may be set under Wine. It reads its own
# variable when it is imported, and no other library should see that.
_FINDS_BY_EGL = False
if system.finds_egl and _CHOICE not in os.environ:
    with suppress(OSError):
        _FINDS_BY_EGL = bool(ctypes.CDLL("libEGL.so.1"))
_PLATFORM = "egl" if _FINDS_BY_EGL else system.opengl_platform
if _PLATFORM and _CHOICE not in os.environ:
    os.environ[_CHOICE] = _PLATFORM
    try:
        from OpenGL import GL, platform
    finally:
        del os.environ[_CHOICE]
else:
    from OpenGL import GL, platform

# The settings above count when these are imported.
from OpenGL import extensions, images  # noqa: E402
from OpenGL.error import Error as OpenGLError  # noqa: E402
from OpenGL.GL.KHR import parallel_shader_compile as parallel  # noqa: E402

# With each upload and each read, PyOpenGL sets how pixels lie in memory, and expects errors in OpenGL ES, which lacks
# some of these settings. What weft does not set is as at the beginning.
images.setupDefaultTransferMode = images.rankPacking = lambda *_: None


# It takes the version and the extensions of the first context for those of all, and calls a function of OpenGL ES only
# if there is the extension by which the desktop has it. `Abilities` says what a context can do. A function is asked for
# only to know whether a driver links in threads.
extensions.GLQuerier.version = [9, 9]


def _current_of_any() -> Callable[[], int | None]:
    """A function that gives the current context of a thread, whether it is from EGL or GLX."""
    finders = []
    for library, function in (("libEGL.so.1", "eglGetCurrentContext"), ("libGLX.so.0", "glXGetCurrentContext"),
                              ("libGL.so.1", "glXGetCurrentContext")):  # fmt: skip
        with suppress(OSError, AttributeError):
            finder = getattr(ctypes.CDLL(library), function)
            finder.restype = ctypes.c_void_p
            finders.append(finder)
    return lambda: next((context for context in (finder() for finder in finders) if context), None)


if _FINDS_BY_EGL:
    # In a context that it does not recognize, PyOpenGL assumes that there are no extensions.
    platform.PLATFORM.GetCurrentContext = platform.PLATFORM.CurrentContextIsValid = _current_of_any()


def _may_call(extension: str | None) -> bool:
    """Whether the functions of an extension are looked for in the driver. In a context."""
    return extension != "GL_KHR_parallel_shader_compile" or extension in extension_names()


platform.PLATFORM.checkExtension = _may_call


__all__ = ["GL", "NEEDS_EGL", "DriverError", "address_of", "is_embedded", "parallel", "plain"]

DriverError: type[Exception] = OpenGLError
"""The exception of a call if the driver lacks the function."""

def plain(words: Any) -> str:
    """A driver's message as text."""
    return words.decode(errors="replace") if isinstance(words, bytes) else str(words or "")


def address_of(name: str) -> int:
    """The address of a function of the driver, for machine code. In a context. Raises GraphicsError."""
    found = getattr(platform.PLATFORM.GL, name, None) or platform.PLATFORM.getExtensionProcedure(name.encode())
    if not found:
        raise GraphicsError(f"the driver has no {name}")
    return ctypes.cast(found, ctypes.c_void_p).value or 0


# Fences.

# The answer for one that is not passed within the time of a wait.
_NOT_YET = int(GL.GL_TIMEOUT_EXPIRED)


class FenceCalls:
    """The driver's functions for fences, which are numbers here. A frame has four such calls, and PyOpenGL takes some
    microseconds for each."""

    def __init__(self) -> None:
        """In a context. Raises GraphicsError if the driver lacks them."""
        number, place, span = ctypes.c_uint, ctypes.c_void_p, ctypes.c_uint64
        self._make = ctypes.CFUNCTYPE(place, number, number)(address_of("glFenceSync"))
        self._wait = ctypes.CFUNCTYPE(number, place, number, span)(address_of("glClientWaitSync"))
        self.delete: Callable[[int], None] = ctypes.CFUNCTYPE(None, place)(address_of("glDeleteSync"))

    def made(self) -> int:
        """A fence behind all that was asked for in the current context; 0 if the driver makes none."""
        return self._make(int(GL.GL_SYNC_GPU_COMMANDS_COMPLETE), 0) or 0

    def is_passed(self, fence: int) -> bool:
        """Whether all before a fence is done, or has failed, which is noticed elsewhere."""
        answer: int = self._wait(fence, 0, 0)
        return answer != _NOT_YET

    def passes(self, fence: int, most: float) -> bool:
        """The same within some seconds, which are waited for."""
        answer: int = self._wait(fence, int(GL.GL_SYNC_FLUSH_COMMANDS_BIT), int(most * 1e9))
        return answer != _NOT_YET


# The contexts that weft draws in: one for the thread that draws, and others in which programs are made ready.

Kind: TypeAlias = Literal["texture", "buffer", "program", "fence"]

# Seconds to wait for a thread to leave a context.
_LEAVE = 2.0

_LOST = {
    0x8253: "it was reset because of what weft drew",
    0x8254: "it was reset",
    0x8255: "it was reset for an unknown reason",
}
_ERRORS = {
    GL.GL_OUT_OF_MEMORY: "it has no memory left",
    0x0507: "it was reset",  # GL_CONTEXT_LOST
}


@dataclass(frozen=True, slots=True)
class DriverInfo:
    """The information that the driver reports. Memory is in bytes, 0 if unknown."""

    renderer: str
    vendor: str
    version: str
    number: tuple[int, int]
    embedded: bool
    """Whether it is OpenGL ES."""
    side: int
    """The most pixels along a side of a picture."""
    layers: int
    """The most layers of a texture."""
    texels: int
    """The most numbers in a row that shaders index."""
    able: Abilities
    memory_total: int = 0
    memory_free: int = 0

    @property
    def software(self) -> bool:
        return is_software(self.renderer)

    @property
    def api(self) -> GlApi:
        return EMBEDDED if self.embedded else DESKTOP


@dataclass
class ContextState:
    """The objects of a context that are not shared with others."""

    target: Any
    """The framebuffer that programs draw into."""
    attached: int = 0
    """The number of textures that are attached to it."""


class _Entrance:
    """A context for one thread at a time. Entering it again from within does nothing."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.place: ContextState | None = None
        self._lock = threading.RLock()
        self._depth = 0
        self._closed = False

    def __enter__(self) -> ContextState:
        self._lock.acquire()
        try:
            if self._closed:
                raise GraphicsError(CLOSED)
            if not self._depth:
                self.context.enter()
        except BaseException:
            self._lock.release()
            raise
        self._depth += 1
        try:
            if self.place is None:
                GL.glBindVertexArray(GL.glGenVertexArrays(1))  # a core context draws nothing without one
                GL.glDisable(GL.GL_DITHER)
                GL.glPixelStorei(GL.GL_PACK_ALIGNMENT, 1)
                self.place = ContextState(GL.glGenFramebuffers(1))
        except BaseException:
            self.__exit__()
            raise
        return self.place

    def __exit__(self, *_: object) -> None:
        try:
            self._depth -= 1
            if not self._depth:
                try:
                    # The state that other code in the context expects, such as that of a window.
                    GL.glBindFramebuffer(GL.GL_FRAMEBUFFER, 0)
                    GL.glActiveTexture(GL.GL_TEXTURE0)
                finally:
                    self.context.leave()
        finally:
            self._lock.release()

    def close(self) -> None:
        """Lets no thread enter any more. Waits for a while for a thread that is inside."""
        has_left = self._lock.acquire(timeout=_LEAVE)
        self._closed = True
        if has_left:
            self._lock.release()


class _Drawing:
    """See `Graphics.drawing`. A generator would take longer, and a frame has several."""

    __slots__ = ("_graphics", "entrance")

    def __init__(self, graphics: Graphics, entrance: _Entrance) -> None:
        self._graphics = graphics
        self.entrance = entrance

    def __enter__(self) -> ContextState:
        place = self.entrance.__enter__()
        try:
            self._graphics.check_answers()
            self._graphics.entries += 1
            self._graphics.delete()
        except BaseException as reason:
            self.__exit__(type(reason), reason, None)
            raise
        return place

    def __exit__(self, kind: object, reason: BaseException | None, trace: object) -> None:
        try:
            if reason is None:
                self._graphics.check()
            elif isinstance(reason, DriverError):
                raise self._graphics.failure(reason) from reason
        finally:
            self.entrance.__exit__()


class Graphics:
    """Contexts that share programs, textures and buffers, and the abilities of the driver: one for drawing, and others
    in which programs are made ready."""

    def __init__(self, drawing: Context, *preparing: Context) -> None:
        """Without contexts for `preparing`, programs are made ready in the first one that is for drawing. Raises
        GraphicsError."""
        self._hidden = _Entrance(drawing)
        self._drawing = _Drawing(self, self._hidden)
        places = [partial(_Entrance, each) for each in preparing]
        self._preparing = WorkThreads("weft-graphics", places, GraphicsError) if places else None
        self._is_closed = False
        self.waits = DeviceWaits(GraphicsError)
        self.entries = 0
        """How often a context for drawing has been entered."""
        self._last = 0, 0
        """The fence of the last frame, and the entries until then."""
        self._gone: deque[tuple[Kind, Any]] = deque()
        self._own: dict[Callable[[Graphics], object], object] = {}
        with self._hidden:
            self.about = read_about()
        if not self.about.able.draws_floats:
            needed = "pictures of floats are" if self.about.embedded else "3.3 is"
            raise GraphicsError(f"{self.about.renderer} has OpenGL {self.about.version}, and {needed} needed")
        with self._hidden:
            self.fences = FenceCalls()

    def draw_in(self, context: Context) -> None:
        """Draws pictures in this context, a window's, from now on."""
        self._drawing = _Drawing(self, _Entrance(context))

    def drawing(self) -> _Drawing:
        """Enters the context for drawing. Raises GraphicsError for failures inside, at the end too."""
        return self._drawing

    def prepared(self, make: Callable[[ContextState], T]) -> T:
        """Makes something in another context than that for drawing, and waits for it. It is finished then, so that it
        can be drawn with. May be called from any thread, but not by `make`. Raises what `make` raises, and
        GraphicsError."""

        def finished(place: ContextState) -> T:
            try:
                made = make(place)
                self.wait()
                self.check()
            except DriverError as reason:
                raise self.failure(reason) from reason
            return made

        if self._is_closed:
            raise GraphicsError(CLOSED)
        self.check_answers()
        if self._preparing is not None:
            return self._preparing.do(finished)
        with self._hidden as place:
            return finished(place)

    def failure(self, reason: Exception) -> GraphicsError:
        """What an exception of a call becomes."""
        return GraphicsError(f"{self.about.renderer}: {reason}")

    def own(self, make: Callable[[Graphics], T]) -> T:
        """One of weft's own programs, made by this class when it is first asked for. In a context of these."""
        if make not in self._own:
            self._own[make] = make(self)
        return cast(T, self._own[make])

    def check(self) -> None:
        """Raises GraphicsError if a call has failed since the last check."""
        number = GL.glGetError()
        if number == GL.GL_NO_ERROR:
            return
        while GL.glGetError() not in (GL.GL_NO_ERROR, 0x0507):  # a lost context reports that again and again
            pass
        reason = _ERRORS.get(number, f"it answers with the error {number:#x}")
        if self.about.able.tells_losses:
            reason = _LOST.get(GL.glGetGraphicsResetStatus(), reason)
        raise GraphicsError(f"{self.about.renderer}: {reason}")

    def discard(self, kind: Kind, number: Any) -> None:
        """Deletes an object before the next drawing. May be called from any thread, in any state."""
        self._gone.append((kind, number))

    def delete(self) -> None:
        """Deletes what was discarded. In a context of these."""
        while self._gone:
            kind, number = self._gone.popleft()
            match kind:
                case "texture":
                    GL.glDeleteTextures([number])
                case "buffer":
                    GL.glDeleteBuffers(1, [number])
                case "fence":
                    if number == self._last[0]:
                        self._last = 0, 0
                    self.fences.delete(number)
                # llvmpipe crashes in one context if another context deletes a program that both have used.
                case "program" if not self.about.software:
                    GL.glDeleteProgram(number)

    def close(self) -> None:
        """Closes the contexts. Drawing after that raises GraphicsError."""
        self._is_closed = True
        self._drawing.entrance.close()
        if self._preparing is not None:
            self._preparing.close()

    def finish(self) -> None:
        """Waits until all commands have finished."""
        fence, entries = self._last
        # Behind a frame that nothing has followed, there is a fence already; a driver would make another one now. What
        # has passed it has not failed. A driver without a card needs the processor meanwhile.
        if fence and entries == self.entries and not self.about.software:
            with self._hidden:
                self.waits.until(partial(self.fences.is_passed, fence))
                return
        with self.drawing():
            self.wait()

    def fence(self) -> int:
        """A fence behind all that was asked for in the current context of these, for `wait`; 0 if the driver makes
        none."""
        return self.fences.made()

    def wait(self, fence: int = 0) -> None:
        """Waits until all before a fence is done, which is deleted, or without one all that was asked for in the
        current context of these. Raises GraphicsError if the card does not answer. Calls that give what the card has
        drawn wait for it, too, but without an end: this comes before them."""
        fence = fence or self.fence()
        if not fence:
            return
        # A driver that waits itself may sleep, and wake up later than a short frame takes. One without a card needs the
        # processor meanwhile.
        if self.about.software:
            self.waits.within(partial(self.fences.passes, fence))
        elif not self.fences.passes(fence, 0.0):
            self.waits.until(partial(self.fences.is_passed, fence))
        self.fences.delete(fence)

    def check_answers(self) -> None:
        """Raises GraphicsError if the card has not answered, since some calls would wait for it without an end."""
        if self.waits.is_hung:
            raise self.waits.failure()

    def frames(self) -> FramesUnderWay:
        """What keeps the frames of a program that are under way few."""
        return FramesUnderWay(self.waits, self.fences, self._end_frame, partial(self.discard, "fence"))

    def _end_frame(self, fence: int) -> None:
        """All commands for drawing until now are a frame, which has this fence."""
        self._last = fence, self.entries

    def barrier(self) -> None:
        """Keeps later commands from reading before earlier ones have written."""
        with self.drawing():
            if self.about.able.computes:
                GL.glMemoryBarrier(GL.GL_ALL_BARRIER_BITS)


def read_about() -> DriverInfo:
    """The information of the driver of the current context."""
    names = extension_names()
    total, free = _memory(names)
    number, embedded = (_number(GL.GL_MAJOR_VERSION), _number(GL.GL_MINOR_VERSION)), is_embedded()
    able, side = abilities_of(EMBEDDED if embedded else DESKTOP, number, names), _number(GL.GL_MAX_TEXTURE_SIZE)
    return DriverInfo(
        renderer=plain(GL.glGetString(GL.GL_RENDERER)), vendor=plain(GL.glGetString(GL.GL_VENDOR)),
        version=plain(GL.glGetString(GL.GL_VERSION)), number=number, embedded=embedded, side=side,
        layers=_number(GL.GL_MAX_ARRAY_TEXTURE_LAYERS),
        texels=_number(GL.GL_MAX_TEXTURE_BUFFER_SIZE) if able.indexes_buffers else side * essl.ROW,
        able=able, memory_total=total, memory_free=free,
    )  # fmt: skip


def extension_names() -> set[str]:
    """The extensions of the current context."""
    return {plain(GL.glGetStringi(GL.GL_EXTENSIONS, at)) for at in range(_number(GL.GL_NUM_EXTENSIONS))}


def is_embedded() -> bool:
    """Whether the current context is of OpenGL ES."""
    return plain(GL.glGetString(GL.GL_VERSION)).startswith(EMBEDDED.name)


_NVIDIA_TOTAL, _NVIDIA_FREE, _ATI_FREE = 0x9048, 0x9049, 0x87FC


def _memory(extensions: Collection[str]) -> tuple[int, int]:
    """The total and free memory of the device, 0 if the driver does not report it."""
    if "GL_NVX_gpu_memory_info" in extensions:
        return _number(_NVIDIA_TOTAL) * 1024, _number(_NVIDIA_FREE) * 1024
    if "GL_ATI_meminfo" in extensions:
        four = (GL.GLint * 4)()
        GL.glGetIntegerv(_ATI_FREE, four)
        return 0, four[0] * 1024
    return 0, 0


def _number(name: Any) -> int:
    found = (GL.GLint * 4)()
    GL.glGetIntegerv(name, found)
    return int(found[0])
