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
from weft.backends.compute.subgraph import ComputePicture
from weft.errors import error
from weft.runtime.screens.display import glfw, lost
from weft.runtime.screens.painter import NO_MEMORY, Filter, pixels_of
from weft.runtime.screens.screen import Label, Picture, Shown, painted

# The most frames in progress. Uploaded pictures use one more buffer than that in turn, so that none is written to while
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


class MetalSurface:
    """The inside of a window of macOS, as `GlSurface` is with OpenGL."""

    def __init__(self, device: AppleDevice, handle: Any, filtering: Filter) -> None:
        """`handle` is the window, as for `GlSurface`. Raises AppleError."""
        self._device = device
        self._metal = device.own.metal
        self._smooth = filtering == "linear"
        self._size = (0, 0)
        self._shown: BufferMemory | None = None
        self._shown_size = (0, 0)
        self._uploaded: deque[BufferMemory] = deque(maxlen=_UNDER_WAY + 1)
        self._labels: list[tuple[Label, BufferMemory]] = []
        self._under_way: deque[DeviceWork] = deque()
        self._format = self._metal.MTLPixelFormatBGRA8Unorm
        library = device.library(SHADERS)
        with device.working():
            self._plain = self._pipeline(library, blends=False)
            self._blending = self._pipeline(library, blends=True)
            self._window = device.own.objc.objc_object(c_void_p=int(glfw.get_cocoa_window(handle) or 0))
            self._layer = device.own.quartz.CAMetalLayer.layer()
            self._layer.setDevice_(device.metal)
            self._layer.setPixelFormat_(self._format)
            self._layer.setFramebufferOnly_(True)
            view = self._window.contentView()
            view.setLayer_(self._layer)
            view.setWantsLayer_(True)

    def _pipeline(self, library: Any, blends: bool) -> Any:
        made = self._metal.MTLRenderPipelineDescriptor.alloc().init()
        made.setVertexFunction_(library.newFunctionWithName_("cover"))
        made.setFragmentFunction_(library.newFunctionWithName_("shown"))
        target = made.colorAttachments().objectAtIndexedSubscript_(0)
        target.setPixelFormat_(self._format)
        if blends:  # the colours are already multiplied by their alpha
            target.setBlendingEnabled_(True)
            target.setSourceRGBBlendFactor_(self._metal.MTLBlendFactorOne)
            target.setSourceAlphaBlendFactor_(self._metal.MTLBlendFactorOne)
            target.setDestinationRGBBlendFactor_(self._metal.MTLBlendFactorOneMinusSourceAlpha)
            target.setDestinationAlphaBlendFactor_(self._metal.MTLBlendFactorOneMinusSourceAlpha)
        return without_error(self._device.metal.newRenderPipelineStateWithDescriptor_error_(made, None))

    def keep_pace(self, vsync: bool) -> None:
        """See `GlSurface.keep_pace`."""
        with self._drawing():
            self._layer.setDisplaySyncEnabled_(vsync)

    def show(self, picture: Shown) -> None:
        """See `GlSurface.show`."""
        with self._drawing():
            if isinstance(picture, ComputePicture) and getattr(picture.buffer, "owner", None) is self._device:
                self._shown = picture.buffer
            else:
                self._shown = self._upload(pixels_of(picture))
            self._shown_size = (picture.shape[1], picture.shape[0])

    def _upload(self, pixels: Picture) -> BufferMemory:
        full = len(self._uploaded) == _UNDER_WAY + 1
        memory = self._uploaded.popleft() if full else None
        if memory is None or memory.nbytes != pixels.nbytes:
            try:
                memory = self._device.buffer(pixels.nbytes)
            except AppleError as problem:
                height, width, _ = pixels.shape
                message = f"the graphics card cannot show a picture of {width}×{height}"
                raise error("picture-too-large", message, hint=NO_MEMORY) from problem
        memory[:] = np.ascontiguousarray(pixels).reshape(-1)
        self._uploaded.append(memory)
        return memory

    def present(self, frame: tuple[int, int], labels: Sequence[Label]) -> None:
        """See `GlSurface.present`. Waits if two frames are in progress, of which one may have failed."""
        with self._drawing():
            # The layer of a covered window gives no drawable, or only after a second.
            if not self._window.occlusionState() & self._device.own.appkit.NSWindowOcclusionStateVisible:
                return
            if frame != self._size:
                self._size = frame
                self._layer.setContentsScale_(self._window.backingScaleFactor())
                self._layer.setDrawableSize_((float(frame[0]), float(frame[1])))
            drawable = self._layer.nextDrawable()
            if drawable is None:
                return
            self._annotate(labels)
            while len(self._under_way) >= _UNDER_WAY:
                self._under_way.popleft().wait()
            self._device.check()
            commands = self._device.queue.commandBuffer()
            self._paint(commands, drawable.texture(), frame)
            commands.presentDrawable_(drawable)
            commands.commit()
            self._under_way.append(DeviceWork(self._device, commands))

    def read_back(self, frame: tuple[int, int], labels: Sequence[Label]) -> Picture:
        """Draws the same to memory and returns it."""
        width, height = frame
        with self._drawing():
            self._annotate(labels)
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

    def close(self) -> None:
        """Waits for all frames."""
        with self._drawing():
            self._under_way.clear()

    @contextmanager
    def _drawing(self) -> Iterator[None]:
        """Turns errors of Metal into `WeftError`."""
        try:
            with self._device.working():
                yield
        except AppleError as problem:
            raise lost(str(problem)) from problem

    def _annotate(self, labels: Sequence[Label]) -> None:
        known = {id(label): (label, memory) for label, memory in self._labels}
        self._labels = [known.get(id(label)) or (label, self._device.buffer(label.pixels)) for label in labels]

    def _texture(self, frame: tuple[int, int]) -> Any:
        kind = self._metal.MTLTextureDescriptor
        made = kind.texture2DDescriptorWithPixelFormat_width_height_mipmapped_(self._format, *frame, False)
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
        for each in painted(frame, self._shown, self._shown_size, self._labels, self._smooth):
            corner, numbers = each.uniforms()
            placed = corner.tobytes() + numbers.tobytes()
            encoder.setRenderPipelineState_(self._blending if each.blends else self._plain)
            encoder.setViewport_(self._metal.MTLViewport(*map(float, corner), 0.0, 1.0))
            encoder.setFragmentBuffer_offset_atIndex_(each.pixels.metal, 0, 0)
            encoder.setFragmentBytes_length_atIndex_(placed, len(placed), 1)
            encoder.drawPrimitives_vertexStart_vertexCount_(self._metal.MTLPrimitiveTypeTriangle, 0, 3)
        encoder.endEncoding()
