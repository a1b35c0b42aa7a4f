"""Devices that hang while they draw, or hand over what they have drawn: the program continues without them."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.runtime.program.test_fallback import COUNTING, SIZE, built, running, tick
from tests.support.cards import registry_with
from tests.support.compute import opencl, wgpu
from tests.support.gl import Graphics, graphics
from weft.backends.base import DeviceLostError, Env, as_array
from weft.backends.card import CardBackend
from weft.backends.compute.interface import ComputeError
from weft.backends.gl.egl import Egl
from weft.backends.opencl.backend import ClVisual
from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.backends.waits import DeviceWaits
from weft.errors import Source
from weft.runtime.compiling.stages import Request, build
from weft.runtime.films.offline import Offline
from weft.runtime.program.fallback import recover
from weft.runtime.program.program import ProgramLoader

__all__ = ["graphics", "opencl", "wgpu"]

NAMES = ("opencl", "wgpu", "gl")

SECONDS = 0.05
"""How long a device is waited for here, once it hangs."""

# Work that takes a second or more on a processor, whose drivers end loops after 65,535 steps.
_STEPS = "i < 60000; i++) { sum = sin(sum + {}(i)); }"
LONG_GL = f"""#version 330 core
layout(location = 0) out vec4 pixel;
void main() {{
    float sum = gl_FragCoord.x;
    for (int i = 0; {_STEPS.replace('{}', 'float')}
    pixel = vec4(sum);
}}
"""
LONG_WGSL = f"""@group(0) @binding(0) var<storage, read_write> found: array<f32>;
@compute @workgroup_size(64) fn long(@builtin(global_invocation_id) id: vec3<u32>) {{
    var sum = f32(id.x);
    for (var i = 0u; {_STEPS.replace('{}', 'f32')}
    if (id.x == 0u) {{ found[0] = sum; }}
}}
"""


class Playing:
    """A program that plays on a device, which can be made to hang."""

    def __init__(self, name: str, text: str, request: pytest.FixtureRequest) -> None:
        opened = request.getfixturevalue("graphics" if name == "gl" else name)
        self.name = name
        self.loader = ProgramLoader(choose(load_registry(), ["visual", "compute"], f"visual={name},visual=native"))
        if name == "gl":  # of its own, since it is of no use afterwards
            egl = Egl()
            self.loader.draw_in(type(opened)(egl.context(), egl.context()))
        self.loaded = self.loader.prepare(built(text), SIZE)
        self.ends = ExitStack()

    @property
    def backend(self) -> Any:
        """That of the picture, by now."""
        return next(part.backend for part in self.loaded.runner.parts if part.unit.subgraph.context == "visual")

    def hang(self) -> DeviceWaits:
        """The device does nothing of what it is asked for from now on, or not soon."""
        waits: DeviceWaits = getattr(self, f"_hang_{self.name}")()
        waits.most = SECONDS
        return waits

    def _hang_opencl(self) -> DeviceWaits:
        import pyopencl

        device = self.backend.device()[0]
        event = pyopencl.UserEvent(device._context)
        self.ends.callback(lambda: event.set_status(pyopencl.command_execution_status.COMPLETE))
        pyopencl.enqueue_barrier(device._queue, wait_for=[event])
        return device.waits  # type: ignore[no-any-return]

    def _hang_wgpu(self) -> DeviceWaits:
        device = self.backend.device()[0]
        device.launch(device.compile(LONG_WGSL, "long"), 8_192, [device.allocate(4)])
        return device.waits  # type: ignore[no-any-return]

    def _hang_gl(self) -> DeviceWaits:
        from weft.backends.gl.drawing import draw_triangle
        from weft.backends.gl.graphics import GL
        from weft.backends.gl.programs import OWN_REFUSED, drawing, linked
        from weft.backends.gl.textures import Texture

        found: Graphics = self.backend._factory().graphics
        with found.drawing() as place:
            texture = Texture(found, (64, 64))
            GL.glUseProgram(linked(drawing(LONG_GL), OWN_REFUSED))
            draw_triangle(place, [(texture.number, None)], texture.shape)
            GL.glFlush()
        return found.waits


@pytest.fixture(params=NAMES)
def playing(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Playing]]:
    """Begins to play a text on a device."""
    begun: list[Playing] = []

    def begin(text: str) -> Playing:
        begun.append(Playing(request.param, text, request))
        return begun[-1]

    yield begin
    for each in begun:
        each.ends.close()


def levels(found: Playing, ticks: range) -> dict[int, int]:
    """What the picture shows, tick by tick, but for ticks in which its device is lost while it is read, as those who
    show a picture find out."""
    shown = {}
    for number in ticks:
        results = tick(found.loader, found.loaded, number)
        picture = next(result.values for result in results if result.context == "visual")
        try:
            shown[number] = int(as_array(picture)[0, 0, 0])
        except DeviceLostError as failure:
            recover(found.loader, found.loaded, failure, Env(*SIZE), {})
    return shown


def test_a_program_continues_without_a_device_that_hangs(playing: Callable[[str], Playing]) -> None:
    found = playing(COUNTING)
    assert levels(found, range(3)) == {0: 4, 1: 8, 2: 12}
    before, waits = found.backend, found.hang()
    # What is counted is known to the processor.
    shown = levels(found, range(3, 8))
    assert shown == {number: 4 + 4 * number for number in shown}
    assert len(shown) >= 3
    assert waits.is_hung
    assert running(found.loader, found.loaded) == "native"
    told = [(change.origin, change.target, change.reason) for change in found.loader.assignment.changes()]
    assert told == [(f"{found.name}_visual", "native", "its device has not answered for 0.05 seconds")]
    # Nothing waits for it any more, which would take seconds, or for ever: neither what asks it, nor what forgets it.
    with pytest.raises(DeviceLostError):
        before.sync()
    del before, found
    gc.collect()


@pytest.mark.parametrize("playing", ["opencl"], indirect=True)
def test_numbers_continue_though_images_are_lost(playing: Callable[[str], Playing]) -> None:
    found = playing("n = prev(n) + 1 / 64\nt<v> = prev(t@v) * 0.5 + me@x * 0\ndisplay(max(n, t@v))\n")
    assert levels(found, range(3)) == {0: 4, 1: 8, 2: 12}
    found.hang()
    shown = levels(found, range(3, 8))
    assert shown == {number: 4 + 4 * number for number in shown}
    assert running(found.loader, found.loaded) == "native"


@pytest.mark.parametrize("playing", ["wgpu", "opencl"], indirect=True)
def test_what_was_read_before_is_there_though_the_device_hangs(playing: Callable[[str], Playing]) -> None:
    found = playing(COUNTING)
    device = found.backend.device()[0]
    arrivals = [device.read(device.allocate(4)) for _ in range(3)]
    device.wait()
    found.hang()
    time.sleep(SECONDS)  # a library that waits for it in a thread of its own does so by now
    assert [len(arrival()) for arrival in arrivals] == [4, 4, 4]
    with pytest.raises(ComputeError, match="has not answered"):
        device.wait()


@pytest.mark.usefixtures("opencl")
def test_a_film_waits_for_its_device(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyopencl

    monkeypatch.setattr(CardBackend, "most_seconds", SECONDS)
    made = build(Request(Source("patch.weft", f"me<width> = 8\nme<height> = 4\n{COUNTING}"), registry_with().contexts))
    film = Offline(made, choose(load_registry(), ["visual", "compute"], "visual=opencl,compute=native"))
    drawn = [picture.copy() for _, picture in film.play(range(2))]
    (part,) = [part for part in film._program.runner.parts if part.unit.subgraph.context == "visual"]
    assert isinstance(part.backend, ClVisual)
    device: Any = part.backend.device()[0]
    event = pyopencl.UserEvent(device._context)
    pyopencl.enqueue_barrier(device._queue, wait_for=[event])
    later = threading.Timer(4 * SECONDS, lambda: event.set_status(pyopencl.command_execution_status.COMPLETE))
    later.start()
    drawn += [picture.copy() for _, picture in film.play([2, 3])]
    later.join()
    assert [int(picture[0, 0, 0]) for picture in drawn] == [4, 8, 12, 16]
    assert not film.changes()
