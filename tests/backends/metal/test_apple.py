"""Metal by Apple's own interface: what is given to a device, and what it answers. Without a Mac, a stand-in for pyobjc
does it; on a Mac that is held against Apple's frameworks itself."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

import numpy as np
import pytest

from tests.support.metal import apple as stand_in
from tests.support.metal.check import check_shading
from tests.support.metal.device import CpuDevice
from tests.support.metal.executor import device
from tests.support.metal.layer import CAMetalLayer, NSView
from tests.support.metal.library import apple_in_place
from weft.apple import AppleDevice, AppleError
from weft.backends.compute.interface import ComputeError
from weft.backends.metal import libraries as library
from weft.runtime.screens.metal_painter import SHADERS

__all__ = ["device"]

DOUBLE = """\
#include <metal_stdlib>
using namespace metal;

kernel void twice(device float *values [[buffer(0)]], constant uint &count [[buffer(1)]],
                  uint id [[thread_position_in_grid]]) {
    if (id >= count) return;
    values[id] = values[id] * 2.0f;
}
"""


@pytest.fixture
def own(device: Any, monkeypatch: pytest.MonkeyPatch) -> AppleDevice:
    """A device by pyobjc, be it the real one."""
    if isinstance(device, CpuDevice):
        apple_in_place(device, monkeypatch)
    elif not isinstance(device, AppleDevice):
        pytest.skip("this device is of the other library")
    return AppleDevice()


def test_device_and_processor_share_a_buffer(own: AppleDevice) -> None:
    values = own.buffer(np.arange(1000, dtype=np.float32))
    twice = own.kernel(DOUBLE).function("twice")
    for _ in range(3):  # in order, and none before the one before is done
        run = twice(1000, values, own.buffer(np.array([1000], np.uint32)))
    run.wait()
    np.testing.assert_array_equal(np.frombuffer(values, np.float32), np.arange(1000, dtype=np.float32) * 8)
    np.frombuffer(values, np.float32)[:] = 1
    del run
    assert float(np.frombuffer(values, np.float32)[-1]) == 1


def test_a_launch_is_over_when_it_is_forgotten(own: AppleDevice) -> None:
    values = own.buffer(np.ones(1 << 16, np.float32))
    run = own.kernel(DOUBLE).function("twice")(1 << 16, values, own.buffer(np.array([1 << 16], np.uint32)))
    del run
    assert (np.frombuffer(values, np.float32) == 2).all()


def test_a_device_that_hangs_is_lost_and_nothing_waits_for_it_again(own: AppleDevice) -> None:
    if not isinstance(own.queue, stand_in.Queue):
        pytest.skip("a real device does not hang when it is told to")
    found, goes_on = library.MetalDevice(0), Event()
    found.waits.most = 0.01
    found.own.queue.worker.submit(goes_on.wait)
    run = found.launch(found.compile(DOUBLE, "twice"), 1, [found.allocate(4), found.send(np.ones(1, np.uint32))])
    try:
        for _ in range(2):
            with pytest.raises(ComputeError, match=r"its device has not answered for 0\.01 seconds"):
                run.wait()
        del run
        gc.collect()
    finally:
        goes_on.set()


def test_a_buffer_lives_as_long_as_somebody_looks_at_it(own: AppleDevice) -> None:
    buffer = own.buffer(np.full(100, 7, np.uint8))
    owner: Any = buffer
    while isinstance(owner, np.ndarray):
        owner = owner.base
    assert owner.metal is buffer.metal
    alive = weakref.ref(owner)
    values = np.frombuffer(buffer, np.uint8)[10:].reshape(9, 10)
    del buffer, owner
    gc.collect()
    assert alive() is not None
    assert (values == 7).all()
    del values
    gc.collect()
    assert alive() is None


def test_what_is_in_a_new_buffer(own: AppleDevice) -> None:
    assert own.buffer(5).tolist() == [0] * 5
    assert own.buffer(np.arange(3, dtype=np.uint16)).tobytes() == b"\0\0\1\0\2\0"
    assert own.buffer(b"").nbytes == 1, "Metal has no empty buffers"


def test_the_memory_of_a_device_is_what_it_may_work_with(own: AppleDevice) -> None:
    (before, *_) = library.devices()
    kept = own.buffer(1 << 24)
    (found, *_) = library.devices()
    assert found.driver == "pyobjc"
    assert found.memory_total == int(own.metal.recommendedMaxWorkingSetSize())
    assert before.memory_free - found.memory_free >= kept.nbytes


def test_what_cannot_be_had_is_told_in_words(own: AppleDevice) -> None:
    with pytest.raises(AppleError, match="cannot provide a function thrice"):
        own.kernel(DOUBLE).function("thrice")
    with pytest.raises(AppleError, match=r":7:\d+: error: .*nowhere"):
        own.kernel(DOUBLE.replace("values[id] =", "nowhere ="))
    with pytest.raises(AppleError, match="and none with the number 99"):
        AppleDevice(99)


def test_shaders_are_in_order() -> None:
    assert check_shading(SHADERS) == []
    assert check_shading(SHADERS.replace("device const uchar4 *picture, uint2", "constant uchar4 *picture, uint2"))
    assert check_shading(SHADERS.replace("*picture, uint2", "*picture, int2"))


# --- on a Mac -----------------------------------------------------------------------------------------------------


@contextmanager
def _encoding(encoder: Any) -> Iterator[Any]:
    yield encoder
    encoder.endEncoding()


def test_what_stands_for_apples_interface_has_nothing_of_its_own(own: AppleDevice) -> None:
    if isinstance(own.metal, stand_in.Device):
        pytest.skip("here it would be held against itself")
    metal = own.own.metal
    for name, value in stand_in.CONSTANTS.items():
        assert getattr(metal, name) == value, name
    assert own.own.appkit.NSWindowOcclusionStateVisible == 2
    with own.working():
        commands = own.queue.commandBuffer()
        layer = own.own.quartz.CAMetalLayer.layer()
        layer.setDevice_(own.metal)
        layer.setDrawableSize_((4.0, 4.0))
        drawing = metal.MTLRenderPassDescriptor.renderPassDescriptor()
        target = drawing.colorAttachments().objectAtIndexedSubscript_(0)
        target.setTexture_(layer.nextDrawable().texture())
        found: dict[Any, Any] = {
            stand_in.Device: own.metal,
            stand_in.Queue: own.queue,
            stand_in.Buffer: own.buffer(4).metal,
            stand_in.Library: own.library(DOUBLE),
            stand_in.CommandBuffer: commands,
            CAMetalLayer: layer,
            NSView: own.own.appkit.NSView.alloc().init(),
        }
        for kind, there in found.items():
            _assert_has(kind, there)
        with _encoding(commands.computeCommandEncoder()) as encoder:
            _assert_has(stand_in.ComputeEncoder, encoder)
        with _encoding(commands.blitCommandEncoder()) as encoder:
            _assert_has(stand_in.BlitEncoder, encoder)
        with _encoding(commands.renderCommandEncoderWithDescriptor_(drawing)) as encoder:
            _assert_has(stand_in.RenderEncoder, encoder)
        _assert_takes(stand_in.MTLRenderPassDescriptor().target, target)
        pipeline = metal.MTLRenderPipelineDescriptor.alloc().init()
        _assert_takes(stand_in.MTLRenderPipelineDescriptor(), pipeline)
        attachment = pipeline.colorAttachments().objectAtIndexedSubscript_(0)
        _assert_takes(stand_in.MTLRenderPipelineDescriptor().target, attachment)


def _assert_has(kind: type, there: Any) -> None:
    """An object of Apple's has all methods of the class that replaces it."""
    own = {name: value for base in kind.__mro__[:-1] for name, value in vars(base).items()}
    methods = {name for name, value in own.items() if name[0] != "_" and callable(value)}
    missing = sorted(name for name in methods - stand_in.NOT_APPLES if not hasattr(there, name))
    assert not missing, f"{kind.__name__} has {missing}"


def _assert_takes(settings: stand_in.Settings, there: Any) -> None:
    """A descriptor of Apple's has all settings of the one that replaces it."""
    names = [f"set{name[0].upper()}{name[1:]}_" for name in vars(settings) if name not in stand_in.NOT_APPLES]
    assert not [name for name in names if not hasattr(there, name)]
