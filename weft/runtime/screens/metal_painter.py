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
from weft.runtime.screens.screen import Label, Painted, Picture, Rect, Shown, painted
from weft.runtime.screens.wall_drawing import WallDrawing, WallParts
from weft.runtime.screens.warp import PLAIN, Warp

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

static float4 sampled(device const uchar4 *picture, constant Placed &placed, float2 place) {
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

fragment float4 shown(
    float4 at [[position]],
    device const uchar4 *picture [[buffer(0)]],
    constant Placed &placed [[buffer(1)]]
) {
    return sampled(picture, placed, (at.xy - placed.corner) / placed.size * float2(placed.pixels));
}

// A picture on a wall.

struct Wall {
    float4 blend;       // left, top, right, bottom
    float4 levels;      // black, from there to white, 1 / gamma, whether there is a mask
};

struct OnWall {
    float4 at [[position]];
    float4 place;       // in the picture as it is seen, and as it is drawn
};

vertex OnWall pinned(uint number [[vertex_id]], device const float4 *corners [[buffer(0)]]) {
    return OnWall { corners[2 * number], corners[2 * number + 1] };
}

fragment float4 on_wall(
    OnWall seen [[stage_in]],
    device const uchar4 *picture [[buffer(0)]],
    constant Placed &placed [[buffer(1)]],
    constant Wall &wall [[buffer(2)]],
    device const uchar *mask [[buffer(3)]]
) {
    float3 found = sampled(picture, placed, seen.place.zw * float2(placed.pixels)).xyz;
    float4 shares = smoothstep(float4(-1e-6f), wall.blend, float4(seen.place.xy, 1.0f - seen.place.xy));
    float light = pow(shares.x * shares.y * shares.z * shares.w, wall.levels.z);
    if (wall.levels.w > 0.0f) {
        light *= float(mask[int(seen.at.y) * int(placed.size.x) + int(seen.at.x)]) / 255.0f;
    }
    return float4((wall.levels.x + wall.levels.y * found) * light, 1.0f);
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
        self._warp, self._wall = PLAIN, WallDrawing()
        self._sent: tuple[WallParts | None, BufferMemory | None, BufferMemory | None] = (None, None, None)
        """The parts of the wall that were sent last, with the memory of the corners and of the mask."""
        self._format = self._metal.MTLPixelFormatBGRA8Unorm
        library = device.library(SHADERS)
        with device.working():
            self._plain = self._pipeline(library, blends=False)
            self._blending = self._pipeline(library, blends=True)
            self._walled = self._pipeline(library, blends=False, corners="pinned", pixels="on_wall")
            self._window = device.own.objc.objc_object(c_void_p=int(glfw.get_cocoa_window(handle) or 0))
            self._layer = device.own.quartz.CAMetalLayer.layer()
            self._layer.setDevice_(device.metal)
            self._layer.setPixelFormat_(self._format)
            self._layer.setFramebufferOnly_(True)
            view = self._window.contentView()
            view.setLayer_(self._layer)
            view.setWantsLayer_(True)

    def _pipeline(self, library: Any, blends: bool, corners: str = "cover", pixels: str = "shown") -> Any:
        made = self._metal.MTLRenderPipelineDescriptor.alloc().init()
        made.setVertexFunction_(library.newFunctionWithName_(corners))
        made.setFragmentFunction_(library.newFunctionWithName_(pixels))
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

    def lie(self, warp: Warp) -> None:
        """See `GlSurface.lie`."""
        self._warp = warp

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
        is_warped = self._shown is not None and not self._warp.is_plain
        if is_warped:
            self._paint_wall(encoder, frame)
        shown = None if is_warped else self._shown
        for each in painted(frame, shown, self._shown_size, self._labels, self._smooth):
            encoder.setRenderPipelineState_(self._blending if each.blends else self._plain)
            self._place(encoder, each)
            encoder.drawPrimitives_vertexStart_vertexCount_(self._metal.MTLPrimitiveTypeTriangle, 0, 3)
        encoder.endEncoding()

    def _place(self, encoder: Any, part: Painted) -> None:
        """Tells shaders where a part of the frame is, and what is there."""
        corner, numbers = part.uniforms()
        placed = corner.tobytes() + numbers.tobytes()
        encoder.setViewport_(self._metal.MTLViewport(*map(float, corner), 0.0, 1.0))
        encoder.setFragmentBuffer_offset_atIndex_(part.pixels.metal, 0, 0)
        encoder.setFragmentBytes_length_atIndex_(placed, len(placed), 1)

    def _paint_wall(self, encoder: Any, frame: tuple[int, int]) -> None:
        """Draws the picture as it lies on the wall."""
        parts = self._wall.parts(self._warp, self._shown_size, frame)
        known, corners, mask = self._sent
        if parts is not known or corners is None or mask is None:
            corners = self._device.buffer(parts.corners)
            mask = self._device.buffer(np.zeros(1, np.uint8) if parts.mask is None else parts.mask)
            self._sent = parts, corners, mask
        encoder.setRenderPipelineState_(self._walled)
        self._place(encoder, Painted(Rect(0, 0, *frame), self._shown, self._shown_size, self._smooth, blends=False))
        numbers = parts.numbers.tobytes()
        encoder.setFragmentBytes_length_atIndex_(numbers, len(numbers), 2)
        encoder.setFragmentBuffer_offset_atIndex_(mask.metal, 0, 3)
        encoder.setVertexBuffer_offset_atIndex_(corners.metal, 0, 0)
        triangle = self._metal.MTLPrimitiveTypeTriangle
        encoder.drawPrimitives_vertexStart_vertexCount_(triangle, 0, len(parts.corners))
