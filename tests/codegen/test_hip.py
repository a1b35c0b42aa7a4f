"""Kernels for cards of AMD: clang, from which hipRTC is made, compiles them for one, without the headers of ROCm."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from tests.support.parity.cases import case_of_seed
from weft.codegen.cuda import Hip

# What hipRTC has of itself, as its headers declare it.
_BEFORE = """\
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __noinline__ __attribute__((noinline))
struct Place { unsigned x, y, z; };
extern const __device__ Place blockIdx, blockDim, threadIdx;
__device__ unsigned __float_as_uint(float), __umulhi(unsigned, unsigned);
__device__ float __uint_as_float(unsigned);
__device__ float rintf(float), fmaf(float, float, float), __sinf(float), __cosf(float), sqrtf(float), floorf(float);
__device__ float rsqrtf(float);
__device__ float fabsf(float), fminf(float, float), fmaxf(float, float);
__device__ float floor(float), min(float, float), max(float, float), __fdividef(float, float);
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems' clang may know no cards of AMD")
def test_clang_compiles_generated_programs_for_a_card() -> None:
    if shutil.which("clang++") is None:
        fail_or_skip = pytest.fail if os.environ.get("CI") else pytest.skip
        fail_or_skip("clang++ is not installed")
    for seed in range(4):
        text = Hip.pixels(case_of_seed(seed).kernel, False).text
        command = ["clang++", "-x", "hip", "--cuda-device-only", "--offload-arch=gfx1030", "-nogpuinc", "-nogpulib",
                   "-std=c++17", "-O1", "-S", "-emit-llvm", "-o", "-", "-"]  # fmt: skip
        done = subprocess.run(command, input=_BEFORE + text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "amdgpu_kernel" in done.stdout
