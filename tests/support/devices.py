"""Kernels on each device that tests know, by the name of its language. The fixtures open the devices: a module that
uses them imports them from here."""

from __future__ import annotations

import pytest

from tests.support.compute import ComputeExecutor, nvidia, opencl, wgpu
from tests.support.cuda import cuda
from tests.support.gl import GlExecutor, embedded_graphics, graphics
from tests.support.metal.executor import MetalExecutor, device
from weft.backends.executors import Executor
from weft.codegen.cuda import Cuda
from weft.codegen.opencl import OpenCl
from weft.codegen.wgsl import Wgsl

__all__ = [
    "COMPUTE", "DEVICES", "DRAWING", "cuda", "device", "embedded_graphics", "executor_on", "graphics", "nvidia",
    "opencl", "wgpu",
]

COMPUTE = {"cuda": Cuda, "opencl": OpenCl, "wgsl": Wgsl}
"""The languages of devices that compute into buffers."""

DEVICES = ("glsl", "msl", *COMPUTE)

DRAWING = (*DEVICES, "essl")
"""With the one that computes no strands at points."""

_FIXTURES = {"glsl": "graphics", "essl": "embedded_graphics", "msl": "device", "wgsl": "wgpu"}


def executor_on(language: str, request: pytest.FixtureRequest) -> Executor:
    """An executor on the device of a language."""
    opened = request.getfixturevalue(_FIXTURES.get(language, language))
    if language in ("glsl", "essl"):
        return GlExecutor(opened)
    return MetalExecutor(opened) if language == "msl" else ComputeExecutor(opened, COMPUTE[language])
