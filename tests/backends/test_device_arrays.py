"""Memory of devices: arrays that go there and come back as they are, and pools of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.support.compute import nvidia, opencl, wgpu
from tests.support.gl import Graphics, embedded_graphics, graphics
from tests.support.metal.executor import device
from tests.support.metal.library import in_place
from weft.backends.base import Backend
from weft.backends.cpu import CpuVisual
from weft.backends.cuda.backend import CudaVisual
from weft.backends.gl.backend import EmbeddedGlVisual, GlVisual
from weft.backends.metal.backend import MetalVisual
from weft.backends.opencl.backend import ClVisual
from weft.backends.wgpu.backend import WgpuVisual

__all__ = ["device", "embedded_graphics", "graphics", "nvidia", "opencl", "wgpu"]


def what_goes_there_comes_back(backend: Backend, dtype: type[np.generic] = np.float32) -> None:
    given = np.arange(5 * 7 * 4).reshape(5, 7, 4).astype(dtype)
    held = backend.alloc(given.shape, dtype)
    assert not backend.download(held).any()
    backend.upload(given, held)
    found = backend.download(held)
    np.testing.assert_array_equal(found, given)
    assert found.dtype == dtype
    # It is a copy.
    backend.upload(given * 2, held)
    np.testing.assert_array_equal(found, given)
    backend.free(held)


def a_pool_hands_out_its_block_piece_by_piece(backend: Backend) -> None:
    ring = np.arange(3 * 4 * 6, dtype=np.float32).reshape(3, 4, 6)
    pool = backend.pool(3 * 320)
    whole, second, third = (pool.take(ring.shape, np.float32) for _ in range(3))
    backend.upload(ring, whole)
    pool.copy(whole, third)
    for held, expected in ((whole, ring), (second, np.zeros_like(ring)), (third, ring)):
        np.testing.assert_array_equal(backend.download(held), expected)
    backend.upload(ring * 2, second)
    np.testing.assert_array_equal(backend.download(whole), ring)
    np.testing.assert_array_equal(backend.download(third), ring)


def a_pool_copies_arrays_of_other_pools(backend: Backend) -> None:
    given = np.arange(64, dtype=np.float32)
    pool, other = backend.pool(1024), backend.pool(1024)
    here, nothing, there = pool.take((64,), np.float32), pool.take((64,), np.float32), other.take((64,), np.float32)
    backend.upload(given, there)
    pool.copy(there, nothing)
    np.testing.assert_array_equal(backend.download(nothing), given)
    pool.copy(here, there)
    assert not backend.download(there).any()


def a_pool_that_is_full_says_so(backend: Backend) -> None:
    pool = backend.pool(100)
    pool.take((16,), np.float32)
    with pytest.raises(MemoryError, match="a pool of 100 bytes is full"):
        pool.take((10,), np.float32)
    pool.take((9,), np.float32)


def arrays_that_nobody_knows_any_more_are_given_back(backend: Backend) -> None:
    for _ in range(64):
        held = backend.alloc((1024, 1024), np.float32)
        backend.upload(np.ones((1024, 1024), np.float32), held)
    assert backend.download(held).all()


def each_type_comes_back(backend: Backend) -> None:
    for dtype in (np.uint8, np.int32, np.float64):
        what_goes_there_comes_back(backend, dtype)


CHECKS = [
    what_goes_there_comes_back, each_type_comes_back, a_pool_hands_out_its_block_piece_by_piece,
    a_pool_copies_arrays_of_other_pools, a_pool_that_is_full_says_so, arrays_that_nobody_knows_any_more_are_given_back,
]  # fmt: skip

each = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)


@each
def test_on_the_cpu(check: Callable[[Backend], None]) -> None:
    check(CpuVisual("vector"))


@each
def test_with_opengl(check: Callable[[Backend], None], graphics: Graphics) -> None:
    check(GlVisual(graphics))


@each
def test_with_opengl_es(check: Callable[[Backend], None], embedded_graphics: Graphics) -> None:
    check(EmbeddedGlVisual(embedded_graphics))


@each
def test_with_metal(check: Callable[[Backend], None], device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    in_place(device, monkeypatch)
    check(MetalVisual())


@each
@pytest.mark.usefixtures("opencl")
def test_with_opencl(check: Callable[[Backend], None]) -> None:
    check(ClVisual())


@each
@pytest.mark.usefixtures("wgpu")
def test_with_webgpu(check: Callable[[Backend], None]) -> None:
    check(WgpuVisual())


@each
@pytest.mark.usefixtures("nvidia")
def test_with_cuda(check: Callable[[Backend], None]) -> None:
    check(CudaVisual())
