"""Apple's frameworks as pyobjc gives them, on the processor: only the parts that weft uses. What is called otherwise
than Apple's own would have it, or in another order, fails.

The work of each queue is done by a thread, in order. When it is done is known only after waiting for it.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from tests.support.metal.device import CpuDevice, error
from tests.support.metal.layer import CAMetalLayer, NSWindow
from tests.support.metal.shading import Shading, covered
from tests.support.metal.things import (
    Alloc, Attachments, Buffer, MTLClearColor, MTLOrigin, MTLSize, MTLViewport, NSError, Pools, Settings, Texture
)

NAME, WORKING_SET = "a processor", 2**30

CONSTANTS = {
    "MTLBlendFactorOne": 1, "MTLBlendFactorOneMinusSourceAlpha": 5, "MTLCommandBufferStatusCompleted": 4,
    "MTLCommandBufferStatusError": 5,
    "MTLLanguageVersion2_3": 131075, "MTLLoadActionClear": 2, "MTLPixelFormatBGRA8Unorm": 80,
    "MTLPrimitiveTypeTriangle": 3, "MTLResourceStorageModeShared": 0, "MTLStorageModePrivate": 2,
    "MTLStoreActionStore": 1, "MTLTextureUsageRenderTarget": 4,
}  # fmt: skip
NOT_APPLES = frozenset({"present", "target"})
"""What the classes here have for their own purposes."""

_BGRA, _COMMITTED, _COMPLETED, _FAILED = 80, 2, 4, 5
_GROUP = 64


class MTLRenderPipelineDescriptor(Settings):
    def __init__(self) -> None:
        super().__init__(vertexFunction=None, fragmentFunction=None)
        self.target = Settings(
            pixelFormat=0, blendingEnabled=False, sourceRGBBlendFactor=1, sourceAlphaBlendFactor=1,
            destinationRGBBlendFactor=0, destinationAlphaBlendFactor=0,
        )  # fmt: skip

    def colorAttachments(self) -> Attachments:  # noqa: N802
        return Attachments(self.target)


class MTLRenderPassDescriptor(Settings):
    def __init__(self) -> None:
        super().__init__()
        self.target = Settings(texture=None, loadAction=0, storeAction=0, clearColor=MTLClearColor(0, 0, 0, 1))

    @classmethod
    def renderPassDescriptor(cls) -> MTLRenderPassDescriptor:  # noqa: N802
        return cls()

    def colorAttachments(self) -> Attachments:  # noqa: N802
        return Attachments(self.target)


class MTLTextureDescriptor(Settings):
    @classmethod
    def texture2DDescriptorWithPixelFormat_width_height_mipmapped_(  # noqa: N802
        cls, kind: int, width: int, height: int, mipmapped: bool
    ) -> MTLTextureDescriptor:
        assert (kind, mipmapped) == (_BGRA, False)
        assert 0 < width <= 16384
        assert 0 < height <= 16384
        made = cls(usage=1, storageMode=0)
        made.size = width, height
        return made


class Function(NamedTuple):
    library: Library
    name: str


class Library:
    """The kernel of a text, or its functions that shade."""

    def __init__(self, made: Any, names: frozenset[str]) -> None:
        self.made = made
        self._names = names

    def newFunctionWithName_(self, name: str) -> Function | None:  # noqa: N802
        return Function(self, name) if name in self._names else None


class ComputePipeline:
    def __init__(self, function: Function) -> None:
        self.launch = function.library.made.function(function.name)

    def maxTotalThreadsPerThreadgroup(self) -> int:  # noqa: N802
        return _GROUP


class RenderPipeline:
    def __init__(self, descriptor: MTLRenderPipelineDescriptor) -> None:
        shading: Shading = descriptor.vertexFunction.library.made
        vertex, self.fragment = descriptor.vertexFunction.name, descriptor.fragmentFunction.name
        assert (shading.kinds[vertex], shading.kinds[self.fragment]) == ("vertex", "fragment")
        assert descriptor.target.pixelFormat == _BGRA
        self.vertex, self.shading, self.target = vertex, shading, descriptor.target


class Device:
    """A device, which is the processor."""

    def __init__(self, cpu: CpuDevice, pools: Pools) -> None:
        self._cpu = cpu
        self._pools = pools
        self._buffers: weakref.WeakSet[Buffer] = weakref.WeakSet()

    def name(self) -> str:
        return NAME

    def recommendedMaxWorkingSetSize(self) -> int:  # noqa: N802
        return WORKING_SET

    def currentAllocatedSize(self) -> int:  # noqa: N802
        return sum(buffer.data.nbytes for buffer in self._buffers)

    def hasUnifiedMemory(self) -> bool:  # noqa: N802
        return True

    def newCommandQueue(self) -> Queue:  # noqa: N802
        return Queue(self._pools)

    def newBufferWithLength_options_(self, size: int, options: int) -> Buffer | None:  # noqa: N802
        assert options == CONSTANTS["MTLResourceStorageModeShared"]
        assert size > 0
        if size > WORKING_SET:
            return None
        made = Buffer(size)
        self._buffers.add(made)
        return made

    def newTextureWithDescriptor_(self, descriptor: MTLTextureDescriptor) -> Texture:  # noqa: N802
        assert (descriptor.usage, descriptor.storageMode) == (4, 2)
        return Texture(*descriptor.size)

    def newLibraryWithSource_options_error_(  # noqa: N802
        self, text: str, options: Settings, out: None
    ) -> tuple[Library | None, NSError | None]:
        self._pools.need()
        assert (options.languageVersion, options.fastMathEnabled) == (131075, False)
        try:
            if "kernel void" in text:
                made = self._cpu.kernel(text)
                return Library(made, frozenset({made.name})), None
            shading = Shading(text, self._cpu.folder)
            return Library(shading, frozenset(shading.kinds)), None
        except error as failure:
            return None, NSError(str(failure))

    def newComputePipelineStateWithFunction_error_(  # noqa: N802
        self, function: Function, out: None
    ) -> tuple[ComputePipeline, None]:
        return ComputePipeline(function), None

    def newRenderPipelineStateWithDescriptor_error_(  # noqa: N802
        self, descriptor: MTLRenderPipelineDescriptor, out: None
    ) -> tuple[RenderPipeline, None]:
        return RenderPipeline(descriptor), None


class Queue:
    def __init__(self, pools: Pools) -> None:
        self._pools = pools
        self.worker = ThreadPoolExecutor(1)

    def commandBuffer(self) -> CommandBuffer:  # noqa: N802
        self._pools.need()
        return CommandBuffer(self)


class CommandBuffer:
    """Work that is noted down, and then done."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self.work: list[Callable[[], object]] = []
        self._encoder: Encoder | None = None
        self._done: Future[None] | None = None
        self._failure: Exception | None = None

    def computeCommandEncoder(self) -> ComputeEncoder:  # noqa: N802
        return self._encoding(ComputeEncoder(self))

    def blitCommandEncoder(self) -> BlitEncoder:  # noqa: N802
        return self._encoding(BlitEncoder(self))

    def renderCommandEncoderWithDescriptor_(self, descriptor: MTLRenderPassDescriptor) -> RenderEncoder:  # noqa: N802
        return self._encoding(RenderEncoder(self, descriptor.target))

    def _encoding(self, encoder: Any) -> Any:
        assert self._done is None
        assert self._encoder is None or self._encoder.ended, "one at a time"
        self._encoder = encoder
        return encoder

    def presentDrawable_(self, drawable: Any) -> None:  # noqa: N802
        assert self._done is None
        self.work.append(drawable.present)

    def commit(self) -> None:
        assert self._done is None, "once"
        assert self._encoder is None or self._encoder.ended
        self._done = self._queue.worker.submit(self._run)

    def _run(self) -> None:
        try:
            for each in self.work:
                each()
        except Exception as failure:
            self._failure = failure

    def waitUntilCompleted(self) -> None:  # noqa: N802
        assert self._done is not None, "nothing was begun"
        self._done.result()

    def status(self) -> int:
        if self._done is None or not self._done.done():
            return _COMMITTED
        return _COMPLETED if self._failure is None else _FAILED

    def error(self) -> NSError | None:
        return None if self._failure is None else NSError(str(self._failure))


class Encoder:
    def __init__(self, commands: CommandBuffer) -> None:
        self.work = commands.work
        self.ended = False

    def endEncoding(self) -> None:  # noqa: N802
        assert not self.ended
        self.ended = True


class ComputeEncoder(Encoder):
    _pipeline: ComputePipeline | None = None

    def setComputePipelineState_(self, pipeline: ComputePipeline) -> None:  # noqa: N802
        self._pipeline = pipeline
        self._buffers: dict[int, Buffer] = {}

    def setBuffer_offset_atIndex_(self, buffer: Buffer, offset: int, index: int) -> None:  # noqa: N802
        assert isinstance(buffer, Buffer)
        assert offset == 0
        self._buffers[index] = buffer

    def dispatchThreadgroups_threadsPerThreadgroup_(self, groups: MTLSize, threads: MTLSize) -> None:  # noqa: N802
        assert self._pipeline is not None
        assert (threads[1:], groups[1:]) == ((1, 1), (1, 1))
        assert threads.width <= _GROUP
        assert sorted(self._buffers) == list(range(len(self._buffers)))
        launch, count = self._pipeline.launch, groups.width * threads.width
        given = [self._buffers[index].data for index in sorted(self._buffers)]
        self.work.append(lambda: launch.run(count, [data.ctypes.data for data in given]))


class BlitEncoder(Encoder):
    def copyFromTexture_sourceSlice_sourceLevel_sourceOrigin_sourceSize_toBuffer_destinationOffset_destinationBytesPerRow_destinationBytesPerImage_(  # noqa: N802, E501
        self, texture: Texture, piece: int, level: int, origin: MTLOrigin, size: MTLSize, buffer: Buffer, offset: int,
        row: int, image: int,
    ) -> None:  # fmt: skip
        height, width, _ = texture.pixels.shape
        assert (piece, level, offset) == (0, 0, 0)
        assert (origin, size) == (MTLOrigin(0, 0, 0), MTLSize(width, height, 1))
        assert (row, image, len(buffer.data)) == (4 * width, 4 * width * height, 4 * width * height)
        self.work.append(lambda: np.copyto(buffer.data, texture.pixels.reshape(-1)))


class RenderEncoder(Encoder):
    """Fills viewports."""

    def __init__(self, commands: CommandBuffer, target: Settings) -> None:
        super().__init__(commands)
        assert (target.loadAction, target.storeAction) == (2, 1)
        assert isinstance(target.clearColor, MTLClearColor)
        self._texture: Texture = target.texture
        red, green, blue, alpha = target.clearColor
        clear = np.array([blue, green, red, alpha]) * 255
        self.work.append(lambda: self._texture.pixels.__setitem__(..., clear))
        height, width, _ = self._texture.pixels.shape
        self._viewport = MTLViewport(0.0, 0.0, float(width), float(height), 0.0, 1.0)
        self._corners: list[Any] = []
        self._given: dict[int, Any] = {}

    def setRenderPipelineState_(self, pipeline: RenderPipeline) -> None:  # noqa: N802
        self._pipeline = pipeline

    def setViewport_(self, viewport: MTLViewport) -> None:  # noqa: N802
        assert isinstance(viewport, MTLViewport)
        assert viewport[4:] == (0.0, 1.0)
        self._viewport = viewport

    def setVertexBuffer_offset_atIndex_(self, buffer: Buffer, offset: int, index: int) -> None:  # noqa: N802
        assert (offset, index) == (0, 0)
        self._corners = [buffer.data]

    def setFragmentBuffer_offset_atIndex_(self, buffer: Buffer, offset: int, index: int) -> None:  # noqa: N802
        assert offset == 0
        self._given[index] = buffer.data

    def setFragmentBytes_length_atIndex_(self, data: bytes, size: int, index: int) -> None:  # noqa: N802
        assert len(data) == size
        assert size <= 4096
        self._given[index] = np.frombuffer(data, np.uint8).copy()

    def drawPrimitives_vertexStart_vertexCount_(self, kind: int, start: int, count: int) -> None:  # noqa: N802
        assert (kind, start) == (CONSTANTS["MTLPrimitiveTypeTriangle"], 0)
        given = [self._given[index] for index in range(len(self._given))]
        pipeline, viewport, corners = self._pipeline, self._viewport, [*self._corners]
        self.work.append(lambda: self._drawn(pipeline, viewport, corners, count, given))

    def _drawn(
        self, pipeline: RenderPipeline, viewport: MTLViewport, corners: list[Any], count: int, given: list[Any]
    ) -> None:
        made = pipeline.shading.corners(pipeline.vertex, count, corners)
        height, width, _ = self._texture.pixels.shape
        pixels = covered(made, viewport[:4], (width, height))
        colours = pipeline.shading.colours(pipeline.fragment, pixels, given)
        x, y = pixels[:, 0].astype(int), pixels[:, 1].astype(int)
        drawn = np.clip(colours, 0, 1)[:, [2, 1, 0, 3]]
        if pipeline.target.blendingEnabled:
            assert (pipeline.target.sourceRGBBlendFactor, pipeline.target.sourceAlphaBlendFactor) == (1, 1)
            assert (pipeline.target.destinationRGBBlendFactor, pipeline.target.destinationAlphaBlendFactor) == (5, 5)
            drawn = drawn + self._texture.pixels[y, x] / 255 * (1 - drawn[:, 3:])
        self._texture.pixels[y, x] = np.rint(np.clip(drawn, 0, 1) * 255)


def modules(cpu: CpuDevice) -> dict[str, ModuleType]:
    """What can be imported, with one device and one window."""
    pools = Pools()
    device = Device(cpu, pools)
    window = NSWindow(pools.need)
    own: dict[str, dict[str, Any]] = {
        "Metal": {
            **CONSTANTS,
            "MTLCopyAllDevices": lambda: [device],
            "MTLCompileOptions": Alloc(lambda: Settings(languageVersion=0, fastMathEnabled=True)),
            "MTLRenderPipelineDescriptor": Alloc(MTLRenderPipelineDescriptor),
            "MTLRenderPassDescriptor": MTLRenderPassDescriptor,
            "MTLTextureDescriptor": MTLTextureDescriptor,
            "MTLSize": MTLSize, "MTLOrigin": MTLOrigin, "MTLViewport": MTLViewport, "MTLClearColor": MTLClearColor,
        },
        "Quartz": {"CAMetalLayer": CAMetalLayer(window, device, Texture)},
        "AppKit": {"NSWindowOcclusionStateVisible": 2},
        "objc": {
            "error": type("error", (Exception,), {}), "autorelease_pool": pools,
            "objc_object": lambda *, c_void_p: window.at(c_void_p),
        },
    }  # fmt: skip
    made = {name: ModuleType(name) for name in own}
    for name, values in own.items():
        made[name].__dict__.update(values)
    return made


@cache
def process_modules() -> dict[str, ModuleType]:
    """The same for as long as the process lives."""
    return modules(CpuDevice())


def cocoa_window(handle: Any) -> int:
    """`glfw.get_cocoa_window`, which there is on macOS alone."""
    return ctypes.cast(handle, ctypes.c_void_p).value or 0
