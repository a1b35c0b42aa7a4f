"""A window without OpenGL: a surface of WebGPU, which shows pictures in the memory where the same device computed them.

Pictures are drawn into the surface by the queue that computes them. So nothing waits for them, and no pixel passes
through the processor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from weft.backends.compute.interface import ComputeError, failing
from weft.backends.compute.subgraph import ComputePicture
from weft.backends.wgpu.webgpu import WgpuDevice
from weft.errors import error
from weft.platform import system
from weft.runtime.screens.display import glfw, lost
from weft.runtime.screens.painter import NO_MEMORY, Filter, pixels_of
from weft.runtime.screens.screen import Label, Painted, Picture, Rect, Shown, painted
from weft.runtime.screens.wall_drawing import WallDrawing, WallParts
from weft.runtime.screens.warp import PLAIN, Warp

SHADERS = """\
struct Placed {
    corner: vec2f,
    size: vec2f,
    pixels: vec2u,
    smooth_edges: u32,
}

@group(0) @binding(0) var<uniform> placed: Placed;
@group(0) @binding(1) var<storage, read> picture: array<u32>;

@vertex
fn cover(@builtin(vertex_index) number: u32) -> @builtin(position) vec4f {
    // One triangle that covers the viewport.
    return vec4f(vec2f(f32(number & 1u), f32(number >> 1u)) * 4.0 - 1.0, 0.0, 1.0);
}

fn texel(x: i32, y: i32) -> vec4f {
    let column = clamp(x, 0, i32(placed.pixels.x) - 1);
    let row = clamp(y, 0, i32(placed.pixels.y) - 1);
    return unpack4x8unorm(picture[u32(row) * placed.pixels.x + u32(column)]);
}

fn sampled(place: vec2f) -> vec4f {
    if (placed.smooth_edges == 0u) {
        return texel(i32(place.x), i32(place.y));
    }
    let first = floor(place - 0.5);
    let part = place - 0.5 - first;
    let x = i32(first.x);
    let y = i32(first.y);
    let upper = mix(texel(x, y), texel(x + 1, y), part.x);
    let lower = mix(texel(x, y + 1), texel(x + 1, y + 1), part.x);
    return mix(upper, lower, part.y);
}

@fragment
fn shown(@builtin(position) at: vec4f) -> @location(0) vec4f {
    return sampled((at.xy - placed.corner) / placed.size * vec2f(placed.pixels));
}

// A picture on a wall.

struct Wall {
    blend: vec4f,       // left, top, right, bottom
    levels: vec4f,      // black, from there to white, 1 / gamma, whether there is a mask
}

struct OnWall {
    @builtin(position) at: vec4f,
    @location(0) place: vec4f,      // in the picture as it is seen, and as it is drawn
}

@group(0) @binding(2) var<uniform> wall: Wall;
@group(0) @binding(3) var<storage, read> corners: array<vec4f>;
@group(0) @binding(4) var<storage, read> mask: array<u32>;

@vertex
fn pinned(@builtin(vertex_index) number: u32) -> OnWall {
    return OnWall(corners[2u * number], corners[2u * number + 1u]);
}

@fragment
fn on_wall(seen: OnWall) -> @location(0) vec4f {
    let level = wall.levels.x + wall.levels.y * sampled(seen.place.zw * vec2f(placed.pixels)).rgb;
    let shares = smoothstep(vec4f(-1e-6), wall.blend, vec4f(seen.place.xy, 1.0 - seen.place.xy));
    var light = pow(shares.x * shares.y * shares.z * shares.w, wall.levels.z);
    if (wall.levels.w > 0.0) {
        let index = u32(seen.at.y) * u32(placed.size.x) + u32(seen.at.x);
        light *= unpack4x8unorm(mask[index >> 2u])[index & 3u];
    }
    return vec4f(level * light, 1.0);
}
"""
"""The picture is read from the buffer in which it was computed, so it need not be copied to a texture."""

# Colours as they are in pictures, without another curve of brightness.
_LINEAR = "-srgb"
_READ_BACK = "rgba8unorm"

# The rows of a texture are copied to places that are a multiple of this many bytes apart.
_ROW = 256


class WgpuSurface:
    """The inside of a window, as `GlSurface` is with OpenGL. It belongs to the thread of its window."""

    def __init__(self, device: WgpuDevice, handle: Any, filtering: Filter) -> None:
        """`handle` is the window, as for `GlSurface`. Raises ComputeError."""
        self._device = device
        self._smooth = filtering == "linear"
        self._shown: Any = None
        self._shown_size = (0, 0)
        self._uploaded: Any = None
        self._labels: list[tuple[Label, Any]] = []
        self._warp, self._wall = PLAIN, WallDrawing()
        self._sent: tuple[WallParts | None, tuple[Any, ...]] = (None, ())
        """The parts of the wall that were sent last, and their buffers."""
        with failing("the window has no surface"), device.told():
            self._place = _place_of(handle)
            self._context = device.gpu.gpu.get_canvas_context(self._place)
            own = device.own
            self._format = self._context.get_preferred_format(own.adapter).removesuffix(_LINEAR)
            self._configure()
            self._module = own.create_shader_module(code=SHADERS)
            uniform, storage = {"type": "uniform"}, {"type": "read-only-storage"}
            corners, pixels = device.gpu.ShaderStage.VERTEX, device.gpu.ShaderStage.FRAGMENT
            bound = ((uniform, pixels), (storage, pixels), (uniform, pixels), (storage, corners), (storage, pixels))
            entries = [{"binding": at, "visibility": by, "buffer": kind} for at, (kind, by) in enumerate(bound)]
            self._layout, self._wall_layout = (
                own.create_bind_group_layout(entries=each) for each in (entries[:2], entries)
            )
            self._pipelines = {
                (form, blends): self._pipeline(form, blends)
                for form in {self._format, _READ_BACK}
                for blends in (False, True)
            }
            self._wall_pipelines: dict[str, Any] = {}

    def _configure(self) -> None:
        self._context.configure(device=self._device.own, format=self._format)

    def _pipeline(self, form: str, blends: bool) -> Any:
        part = {"src_factor": "one", "dst_factor": "one-minus-src-alpha", "operation": "add"}
        # The colours are already multiplied by their alpha.
        target = {"format": form, **({"blend": {"color": part, "alpha": part}} if blends else {})}
        return self._rendering(self._layout, "cover", "shown", target)

    def _rendering(self, layout: Any, corners: str, pixels: str, target: dict[str, Any]) -> Any:
        """A pipeline of two functions of the shaders."""
        own = self._device.own
        return own.create_render_pipeline(
            layout=own.create_pipeline_layout(bind_group_layouts=[layout]),
            vertex={"module": self._module, "entry_point": corners},
            primitive={"topology": "triangle-list"},
            fragment={"module": self._module, "entry_point": pixels, "targets": [target]},
        )

    def keep_pace(self, vsync: bool) -> None:
        """See `GlSurface.keep_pace`."""
        # Not on Wayland, as there. The surface reads this when it is configured.
        paced = vsync and self._place["platform"] != "wayland"
        if self._place.get("vsync") != paced:
            self._place["vsync"] = paced
            with self._drawing():
                self._configure()

    def show(self, picture: Shown) -> None:
        """See `GlSurface.show`."""
        with self._drawing():
            if isinstance(picture, ComputePicture) and picture.device is self._device:
                self._shown = picture.buffer
            else:
                self._shown = self._upload(pixels_of(picture))
            self._shown_size = (picture.shape[1], picture.shape[0])

    def _upload(self, pixels: Picture) -> Any:
        try:
            self._uploaded = self._device.send(pixels, self._uploaded)
        except MemoryError as problem:
            height, width, _ = pixels.shape
            message = f"the graphics card cannot show a picture of {width}×{height}"
            raise error("picture-too-large", message, hint=NO_MEMORY) from problem
        return self._uploaded

    def lie(self, warp: Warp) -> None:
        """See `GlSurface.lie`."""
        self._warp = warp

    def present(self, frame: tuple[int, int], labels: Sequence[Label]) -> None:
        """See `GlSurface.present`. Does nothing where the window system has no room for a frame, as of a window that is
        covered."""
        if not all(frame):
            return
        with self._drawing():
            self._context.set_physical_size(*frame)
            try:
                texture = self._context.get_current_texture()
            except self._device.gpu.classes.DrawCancelled:
                return
            self._paint(texture, self._format, frame, labels)
            self._context.present()

    def read_back(self, frame: tuple[int, int], labels: Sequence[Label]) -> Picture:
        """Draws the same to memory and returns it."""
        width, height = frame
        if not all(frame):
            return np.zeros((height, width, 4), np.uint8)
        gpu, own = self._device.gpu, self._device.own
        with self._drawing():
            usage = gpu.TextureUsage.RENDER_ATTACHMENT | gpu.TextureUsage.COPY_SRC
            texture = own.create_texture(size=(width, height, 1), format=_READ_BACK, usage=usage)
            self._paint(texture, _READ_BACK, frame, labels)
            stride = -(-4 * width // _ROW) * _ROW
            pixels, encoder = self._device.allocate(stride * height), own.create_command_encoder()
            rows = {"buffer": pixels, "bytes_per_row": stride, "rows_per_image": height}
            encoder.copy_texture_to_buffer({"texture": texture}, rows, (width, height, 1))
            found = self._device.read(pixels, encoder=encoder)()
        return found.reshape(height, stride)[:, : 4 * width].reshape(height, width, 4)

    def close(self) -> None:
        """Gives the surface back, which has to be done before the window is gone."""
        self._context.unconfigure()
        del self._context

    @contextmanager
    def _drawing(self) -> Iterator[None]:
        """Turns errors of WebGPU into `WeftError`."""
        try:
            with failing("WebGPU does not draw"), self._device.told():
                yield
        except ComputeError as problem:
            raise lost(str(problem)) from problem

    def _annotate(self, labels: Sequence[Label]) -> None:
        known = {id(label): (label, buffer) for label, buffer in self._labels}
        self._labels = [known.get(id(label)) or (label, self._device.send(label.pixels)) for label in labels]

    def _paint(self, texture: Any, form: str, frame: tuple[int, int], labels: Sequence[Label]) -> None:
        """Fills a texture with the picture, black around it, and the labels over both."""
        self._annotate(labels)
        encoder = self._device.own.create_command_encoder()
        target = {
            "view": texture.create_view(), "load_op": "clear", "store_op": "store", "clear_value": (0, 0, 0, 1),
        }  # fmt: skip
        drawing = encoder.begin_render_pass(color_attachments=[target])
        is_warped = self._shown is not None and not self._warp.is_plain
        if is_warped:
            self._paint_wall(drawing, form, frame)
        shown = None if is_warped else self._shown
        for each in painted(frame, shown, self._shown_size, self._labels, self._smooth):
            drawing.set_pipeline(self._pipelines[form, each.blends])
            self._bind(drawing, self._layout, (self._placed(each), each.pixels))
            drawing.set_viewport(*map(float, each.uniforms()[0]), 0.0, 1.0)
            drawing.draw(3)
        drawing.end()
        self._device.own.queue.submit([encoder.finish()])

    def _paint_wall(self, drawing: Any, form: str, frame: tuple[int, int]) -> None:
        """Draws the picture as it lies on the wall."""
        if form not in self._wall_pipelines:
            self._wall_pipelines[form] = self._rendering(self._wall_layout, "pinned", "on_wall", {"format": form})
        parts = self._wall.parts(self._warp, self._shown_size, frame)
        if self._sent[0] is not parts:
            mask = np.zeros(1, np.uint8) if parts.mask is None else parts.mask.reshape(-1)
            self._sent = parts, tuple(self._device.send(each) for each in (parts.numbers, parts.corners, mask))
        whole = Painted(Rect(0, 0, *frame), self._shown, self._shown_size, self._smooth, blends=False)
        drawing.set_pipeline(self._wall_pipelines[form])
        self._bind(drawing, self._wall_layout, (self._placed(whole), whole.pixels, *self._sent[1]))
        drawing.draw(len(parts.corners))

    def _placed(self, part: Painted) -> Any:
        """A buffer with what shaders are told of a part of the frame."""
        corner, numbers = part.uniforms()
        return self._device.send(np.concatenate([corner.view(np.uint32), numbers]))

    def _bind(self, drawing: Any, layout: Any, buffers: Sequence[Any]) -> None:
        entries = [{"binding": at, "resource": {"buffer": buffer}} for at, buffer in enumerate(buffers)]
        drawing.set_bind_group(0, self._device.own.create_bind_group(layout=layout, entries=entries))


def _place_of(handle: Any) -> dict[str, Any]:
    """What WebGPU has to know of a window. Raises ComputeError where the window system has no surfaces."""
    own: Any = glfw  # some of its functions exist on one system only
    match glfw.get_platform():
        case glfw.PLATFORM_X11:
            return {"platform": "x11", "window": own.get_x11_window(handle), "display": int(own.get_x11_display())}
        case glfw.PLATFORM_WAYLAND:
            display, window = own.get_wayland_display(), own.get_wayland_window(handle)
            return {"platform": "wayland", "window": int(window), "display": int(display)}
        case glfw.PLATFORM_WIN32:
            return {"platform": "windows", "window": int(own.get_win32_window(handle))}
        case glfw.PLATFORM_COCOA:
            return {"platform": "cocoa", "window": int(own.get_cocoa_window(handle))}
    raise ComputeError(f"no surface is known for the window system of {system.name}")
