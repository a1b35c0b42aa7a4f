"""A window without OpenGL: a Metal layer, which shows pictures in the memory where the same device computed them.

Pictures are drawn into the layer by the queue that computes them. So nothing waits for them, and no pixel passes
through the processor.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.apple import AppleDevice, AppleError, BufferMemory, DeviceWork, without_error
from weft.backends.base import as_array
from weft.backends.metal.compiled import MetalPicture
from weft.errors import error
from weft.runtime.screens.display import lost
from weft.runtime.screens.painter import Filter
from weft.runtime.screens.screen import Label, Picture, Rect, Shown, letterbox

# The most frames under way. Uploaded pictures take turns in one more buffer than that, so that none is written to while
# it is read.
_UNDER_WAY = 2

SHADERS = """\
#include <metal_stdlib>
using namespace metal;

struct Placed {
    float2 corner;
    float2 size;
    uint2 pixels;
    uint smooth;
};

vertex float4 cover(uint number [[vertex_id]]) {
    // One triangle that covers the viewport.
    float2 corner = float2(float(number & 1), float(number >> 1)) * 4.0f - 1.0f;
    return float4(corner, 0.0f, 1.0f);
}

static float4 texel(device const uchar4 *picture, uint2 pixels, int x, int y) {
    int column = clamp(x, 0, int(pixels.x) - 1);
    int row = clamp(y, 0, int(pixels.y) - 1);
    return float4(picture[row * int(pixels.x) + column]) / 255.0f;
}

fragment float4 shown(
    float4 at [[position]],
    device const uchar4 *picture [[buffer(0)]],
    constant Placed &placed [[buffer(1)]]
) {
    float2 place = (at.xy - placed.corner) / placed.size * float2(placed.pixels);
    if (placed.smooth == 0) {
        return texel(picture, placed.pixels, int(place.x), int(place.y));
    }
    float left = floor(place.x - 0.5f);
    float top = floor(place.y - 0.5f);
    float across = place.x - 0.5f - left;
    float down = place.y - 0.5f - top;
    int x = int(left);
    int y = int(top);
    float4 upper = mix(
        texel(picture, placed.pixels, x, y), texel(picture, placed.pixels, x + 1, y), float4(across));
    float4 lower = mix(
        texel(picture, placed.pixels, x, y + 1), texel(picture, placed.pixels, x + 1, y + 1), float4(across));
    return mix(upper, lower, float4(down));
}
"""
"""The picture is read from the buffer in which it was computed, so it need not be copied to a texture."""


class MetalPainter:
    """Draws one picture and labels over it, as `Painter` does with OpenGL. Called within `AppleDevice.working`."""

    def __init__(self, device: AppleDevice, smooth: bool) -> None:
        """`smooth` scales pictures with a linear filter. Raises AppleError."""
        self._device = device
        self._metal = device.own.metal
        self._smooth = smooth
        self._shown: BufferMemory | None = None
        self._shown_size = (0, 0)
        self._uploaded: deque[BufferMemory] = deque(maxlen=_UNDER_WAY + 1)
        self._labels: list[tuple[Label, BufferMemory]] = []
        self._under_way: deque[DeviceWork] = deque()
        library = device.library(SHADERS)
        with device.working():
            self.format = self._metal.MTLPixelFormatBGRA8Unorm
            """The pixel format of all targets."""
            self._plain = self._pipeline(library, blends=False)
            self._blending = self._pipeline(library, blends=True)

    def _pipeline(self, library: Any, blends: bool) -> Any:
        made = self._metal.MTLRenderPipelineDescriptor.alloc().init()
        made.setVertexFunction_(library.newFunctionWithName_("cover"))
        made.setFragmentFunction_(library.newFunctionWithName_("shown"))
        target = made.colorAttachments().objectAtIndexedSubscript_(0)
        target.setPixelFormat_(self.format)
        if blends:  # the colours are already multiplied by their alpha
            target.setBlendingEnabled_(True)
            target.setSourceRGBBlendFactor_(self._metal.MTLBlendFactorOne)
            target.setSourceAlphaBlendFactor_(self._metal.MTLBlendFactorOne)
            target.setDestinationRGBBlendFactor_(self._metal.MTLBlendFactorOneMinusSourceAlpha)
            target.setDestinationAlphaBlendFactor_(self._metal.MTLBlendFactorOneMinusSourceAlpha)
        return without_error(self._device.metal.newRenderPipelineStateWithDescriptor_error_(made, None))

    def upload(self, picture: Picture) -> None:
        """Takes over a picture [height, width, RGBA], row 0 on top; the array may change afterwards.

        Raises `WeftError` (`picture-too-large`) for one that the graphics card cannot hold.
        """
        if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 4 or not picture.size:
            raise AppleError(f"not a picture of RGBA bytes: {picture.dtype} {picture.shape}")
        full = len(self._uploaded) == _UNDER_WAY + 1
        memory = self._uploaded.popleft() if full else None
        if memory is None or memory.nbytes != picture.nbytes:
            memory = self._room_for(picture)
        memory[:] = np.ascontiguousarray(picture).reshape(-1)
        self._uploaded.append(memory)
        self.show(memory, (picture.shape[1], picture.shape[0]))

    def _room_for(self, picture: Picture) -> BufferMemory:
        try:
            return self._device.buffer(picture.nbytes)
        except AppleError as problem:
            height, width, _ = picture.shape
            message = f"the graphics card cannot show a picture of {width}×{height}"
            hint = "it has no memory left for it; try a smaller --size"
            raise error("picture-too-large", message, hint=hint) from problem

    def show(self, memory: BufferMemory, size: tuple[int, int]) -> None:
        """Shows the picture in a buffer, of this width and height, from now on. It is not copied."""
        self._shown, self._shown_size = memory, size

    def annotate(self, labels: Sequence[Label]) -> None:
        """Draws these labels over the picture from now on, at their own places in the frame."""
        known = {id(label): (label, memory) for label, memory in self._labels}
        self._labels = [known.get(id(label)) or (label, self._device.buffer(label.pixels)) for label in labels]

    def present(self, drawable: Any, frame: tuple[int, int]) -> None:
        """Draws a frame of this width and height into a drawable of the layer, and presents it as soon as it is drawn.
        Waits if two frames are under way. Raises AppleError, also if one of these has failed."""
        while len(self._under_way) >= _UNDER_WAY:
            self._under_way.popleft().wait()
        self._device.check()
        commands = self._device.queue.commandBuffer()
        self._paint(commands, drawable.texture(), frame)
        commands.presentDrawable_(drawable)
        commands.commit()
        self._under_way.append(DeviceWork(self._device, commands))

    def finish(self) -> None:
        """Waits for all frames."""
        self._under_way.clear()

    def read_back(self, frame: tuple[int, int]) -> Picture:
        """Draws the same to memory and returns it."""
        width, height = frame
        pixels = self._device.buffer(4 * width * height)
        commands = self._device.queue.commandBuffer()
        texture = self._texture(frame)
        self._paint(commands, texture, frame)
        copying = commands.blitCommandEncoder()
        origin, size = self._metal.MTLOrigin(0, 0, 0), self._metal.MTLSize(width, height, 1)
        copy = "copyFromTexture_sourceSlice_sourceLevel_sourceOrigin_sourceSize_"
        copy += "toBuffer_destinationOffset_destinationBytesPerRow_destinationBytesPerImage_"
        getattr(copying, copy)(texture, 0, 0, origin, size, pixels.metal, 0, 4 * width, pixels.nbytes)
        copying.endEncoding()
        commands.commit()
        DeviceWork(self._device, commands).wait()
        self._device.check()
        blue_first: npt.NDArray[np.uint8] = np.asarray(pixels).reshape(height, width, 4)
        return blue_first[:, :, [2, 1, 0, 3]]

    def _texture(self, frame: tuple[int, int]) -> Any:
        kind = self._metal.MTLTextureDescriptor
        made = kind.texture2DDescriptorWithPixelFormat_width_height_mipmapped_(self.format, *frame, False)
        made.setUsage_(self._metal.MTLTextureUsageRenderTarget)
        made.setStorageMode_(self._metal.MTLStorageModePrivate)
        return self._device.metal.newTextureWithDescriptor_(made)

    def _paint(self, commands: Any, texture: Any, frame: tuple[int, int]) -> None:
        """Fills a texture with the picture, black around it, and the labels over both."""
        drawing = self._metal.MTLRenderPassDescriptor.renderPassDescriptor()
        target = drawing.colorAttachments().objectAtIndexedSubscript_(0)
        target.setTexture_(texture)
        target.setLoadAction_(self._metal.MTLLoadActionClear)
        target.setClearColor_(self._metal.MTLClearColor(0.0, 0.0, 0.0, 1.0))
        target.setStoreAction_(self._metal.MTLStoreActionStore)
        encoder = commands.renderCommandEncoderWithDescriptor_(drawing)
        if self._shown is not None:
            place = letterbox(self._shown_size, frame)
            smooth = self._smooth and (place.width, place.height) != self._shown_size
            encoder.setRenderPipelineState_(self._plain)
            self._fill(encoder, place, self._shown, self._shown_size, smooth)
        for label, memory in self._labels:
            encoder.setRenderPipelineState_(self._blending)
            self._fill(encoder, label.place, memory, (label.place.width, label.place.height), False)
        encoder.endEncoding()

    def _fill(self, encoder: Any, place: Rect, memory: BufferMemory, size: tuple[int, int], smooth: bool) -> None:
        """Draws the pixels in a buffer, of this width and height, over a part of the frame."""
        corner = np.array([place.left, place.top, place.width, place.height], np.float32)
        placed = corner.tobytes() + np.array([*size, smooth, 0], np.uint32).tobytes()
        encoder.setViewport_(self._metal.MTLViewport(*map(float, corner), 0.0, 1.0))
        encoder.setFragmentBuffer_offset_atIndex_(memory.metal, 0, 0)
        encoder.setFragmentBytes_length_atIndex_(placed, len(placed), 1)
        encoder.drawPrimitives_vertexStart_vertexCount_(self._metal.MTLPrimitiveTypeTriangle, 0, 3)


class MetalSurface:
    """The inside of a window of macOS; see `Surface`."""

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
            # The layer of a covered window gives no drawable, or only after a second.
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
        """Turns errors of Metal into `WeftError`."""
        try:
            with self._device.working():
                yield
        except AppleError as problem:
            raise lost(str(problem)) from problem


def _is_of(device: AppleDevice, buffer: object) -> bool:
    return isinstance(buffer, BufferMemory) and buffer.owner is device
