"""Every kernel in Metal passes a compiler that is as strict as Metal's, and a look at what that lets pass; threads
beyond the last element touch nothing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.support.metal.check import check, isolated, lack, parameters
from tests.support.metal.device import THREADGROUP, CpuDevice, built, error, flags, runner, write_library
from tests.support.parity.author import program
from tests.support.shown import built as patch_built
from tests.support.together import all_but
from tests.test_patches import PATCHES, PICTURES_OF
from weft.backends.registry import load_registry
from weft.codegen.clike.buffers import KernelLanguage
from weft.codegen.clike.shader import BufferUse, Shader, UnsuitableError
from weft.codegen.kernel import Kernel
from weft.codegen.msl import Msl
from weft.contexts import ContextTable
from weft.errors import Source, WeftError
from weft.runtime.compiling.stages import Build, Request, build

PROGRAMS, CHUNK = 200, 50

RICH = """\
trail<v> = max(me@x > fract(me@time), prev(trail@v)(me@x ~ me@x * 0.99, me@y ~ me@y * 0.99) * 0.95)
load("grain.png")::img<r, g, b, a>
spindle f(x) :: o { o = 0; for i in (0 to x * 9) { o = o * 0.5 + i } }
heard = phasor(220)
audio(heard)
display(trail@v, sin(img@g * 9) % (me@y + 0.5), f(me@y) / 99 + heard(me@time ~ me@time - me@x * 0.02))
"""


def text_built(text: str) -> Build:
    return build(Request(Source("p.weft", text), load_registry().contexts))


def shaders_of(made: Build, language: type[KernelLanguage] = Msl) -> Iterator[Shader]:
    """All that a text becomes in Metal, or in another such language: kernels over pictures in both forms, and over
    points."""
    for kernel in (kernel for unit in made.units for kernel in unit.kernels):
        for make in _forms(kernel, language):
            try:
                yield make()
            except UnsuitableError:
                continue


def _forms(kernel: Kernel, language: type[KernelLanguage]) -> list[Callable[[], Shader]]:
    if kernel.sweep == "points":
        return [lambda: language.points(kernel)]
    forms = [lambda: language.pixels(kernel, packed=False)]
    return [*forms, lambda: language.pixels(kernel)] if len(kernel.outputs) in (1, 3, 4) else forms


def rich() -> Shader:
    """A kernel with all that kernels have."""
    *_, shader = (s for s in shaders_of(text_built(RICH)) if s.packed)
    assert {buffer.use for buffer in shader.buffers} == set(BufferUse) - {BufferUse.COORDINATE, BufferUse.HISTORY}
    return shader


def assert_clean(shaders: Sequence[Shader]) -> None:
    for shader, problems in zip(shaders, check([s.text for s in shaders]), strict=True):
        assert not problems, "\n".join([*problems, shader.text])


@pytest.mark.parametrize("path", all_but(12, PATCHES), ids=lambda path: path.stem)
def test_a_shipped_patch_is_in_order(path: Path) -> None:
    found = [*shaders_of(patch_built(path))]
    assert found or path not in PICTURES_OF
    assert_clean(found)


@pytest.mark.long
@pytest.mark.parametrize("start", all_but(1, range(0, PROGRAMS, CHUNK)))
def test_kernels_of_generated_programs_are_in_order(start: int) -> None:
    found: list[Shader] = []
    for seed in range(start, start + CHUNK):
        try:
            found += shaders_of(text_built(program(seed, 0)))
        except WeftError:
            continue  # it refers to what is not there
    assert len(found) > CHUNK
    assert_clean(found)


# Changes to a kernel that Metal refuses: what stands there, and what then stands there instead.
PLANTED = {
    "a name that is nowhere": ("uint count = ", "uint count = counted + "),
    "a function of another name": ("between(trail", "betwen(trail"),
    "too few operands": ("number_or(x, 0.0)", "number_or(x)"),
    "too many components": (", 255);", ", 255, 255);"),
    "a vector as a number": ("float trail = ", "float trail = float4(1.0) + "),
    "vectors of different sizes": ("float above = ", "float4 mixed = float4(1.0) + float3(1.0); float above = "),
    "a vector of another kind": ("float above = ", "int4 mixed = int4(1); float4 real = mixed; float above = "),
    "a component that is not there": ("grain_colour.g", "grain_colour.gq"),
    "a constant that changes": ("uint count = ", "frame.columns = 1; uint count = "),
    "memory of no space": ("device uchar4 *pixels", "uchar4 *pixels"),
    "memory of another space": ("between(const device float", "between(const constant float"),
    "a variable outside of functions": ("struct Frame", "float memory = 1.0;\nstruct Frame"),
    "a constant outside of functions without a space": ("struct Frame", "const float memory = 1.0;\nstruct Frame"),
    "double precision": ("uint count = ", "double wide = 1.0; uint count = "),
    "a whole and a real number": ("precise::max(0.0, ", "max(0, "),
    "a function that Metal has as well": ("sin_pi", "sinpi"),
    "a type that Metal has as well": ("to_byte", "level"),
    "the other language's word": ("as_type<uint>(x)", "floatBitsToUint(x)"),
    "another size": ("as_type<uint>(x)", "as_type<uchar>(x)"),
    "a pointer to a function": ("uint count = ", "float (*f)(float) = sin_pi; uint count = "),
    "memory of its own": ("uint count = ", "float *own = new float; uint count = "),
    "an exception": ("float above = ", "throw 1; float above = "),
    "a virtual function": ("struct Frame", "struct Base { virtual float f() { return 1.0; } };\nstruct Frame"),
    "another library": ("precise::sin(", "std::sin("),
    "a kernel that gives something": ("kernel void", "kernel int"),
    "a jump": ("uint count = ", "goto end; end: uint count = "),
    "a function that calls itself": ("return is_number(x) ?", "return number_or(x, other) == x ?"),
    "an attribute that is misspelt": ("[[buffer(1)]]", "[[bufer(1)]]"),
    "a position that is misspelt": ("thread_position_in_grid", "thread_position_in_gird"),
    "a position in two directions": ("uint id [[", "uint2 id [["),
    "no attribute": ("*pixels [[buffer(1)]]", "*pixels"),
    "one buffer twice": ("[[buffer(2)]]", "[[buffer(1)]]"),
    "a buffer beyond the last": ("[[buffer(2)]]", "[[buffer(31)]]"),
    "no kernel": ("kernel void", "void"),
}


def test_planted_mistakes_are_found() -> None:
    text = rich().text
    assert all(old in text for old, _ in PLANTED.values())
    found = check([text, *(text.replace(old, new) for old, new in PLANTED.values())])
    assert found[0] == []
    assert [name for name, problems in zip(PLANTED, found[1:], strict=True) if not problems] == []


def test_the_device_refuses_what_it_cannot_run() -> None:
    with CpuDevice() as device:
        text = rich().text
        with pytest.raises(error, match="Function not found"):
            device.kernel(text).function("another")
        with pytest.raises(error, match="counted"):
            device.kernel(text.replace("uint count = ", "uint count = counted + "))
        with pytest.raises(error, match="buffers are declared"):
            device.kernel(text).function(rich().entry)(1)


def test_a_kernel_that_needs_too_many_buffers_is_refused() -> None:
    lines = [f"t{k} = prev(t{k}) * 0.5 + me@x * {k}" for k in range(Msl.most_buffers)]
    text = "\n".join([*lines, f"display(({' + '.join(f't{k}' for k in range(Msl.most_buffers))}) / 99)\n"])
    (unit,) = build(Request(Source("p.weft", text), ContextTable())).units
    with pytest.raises(UnsuitableError, match="it needs 33 buffers, and 31 is the limit"):
        Msl.pixels(unit.kernel)


# --- threads beyond the last element --------------------------------------------------------------------------------

COLUMNS, ROWS, GRAIN = 5, 7, (3, 2)


def main_of(shader: Shader) -> str:
    """A program that runs a kernel once, with buffers that end with what belongs into them."""
    known = {"columns": COLUMNS, "rows": ROWS, "grain_width": GRAIN[0], "grain_height": GRAIN[1]}
    numbers = np.array([known.get(uniform.name, 0) for uniform in shader.uniforms], np.uint32)
    sizes = {
        BufferUse.OUT: COLUMNS * ROWS * 4, BufferUse.RING: 2 * COLUMNS * ROWS * 4,
        BufferUse.PICTURE: GRAIN[0] * GRAIN[1] * 16,
        BufferUse.EXTERNAL_READ: COLUMNS * 4, BufferUse.LIMIT: 4, BufferUse.FRAME: numbers.nbytes,
    }  # fmt: skip
    taken = ", ".join(f"calloc({sizes[buffer.use]}, 1)" for buffer in shader.buffers)
    return f"""
extern "C" void *calloc(unsigned long, unsigned long);
int main() {{
    uint numbers[] = {{{", ".join(map(str, numbers))}}};
    void *buffers[] = {{{taken}}};
    __builtin_memcpy(buffers[0], numbers, sizeof numbers);
    kernel_0::run_0(buffers, {THREADGROUP});
}}
"""


def watched(text: str, main: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a kernel under the address sanitizer."""
    write_library(folder)
    whole = isolated(text, 0) + runner(text, 0) + main
    try:
        built([*flags(), "-fsanitize=address", "-lm"], whole, folder / "run", folder)
    except error as failure:
        if "asan" in str(failure):
            lack("clang's address sanitizer")
        raise
    given = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    return subprocess.run([folder / "run"], capture_output=True, text=True, env=given, check=False)


def test_threads_beyond_the_last_pixel_touch_nothing(tmp_path: Path) -> None:
    shader = rich()
    assert parameters(shader.text)[0] == shader.entry
    done = watched(shader.text, main_of(shader), tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    if (id >= count) return;\n", ""),
        ("uint right = left + 1 < columns ? left + 1 : left;", "uint right = left + 4;"),
        ("frame.trail_head * count + id", "(frame.trail_head + 2) * count + id"),
    ],
    ids=["no guard", "beyond the edge", "beyond the ring"],
)
def test_the_sanitizer_sees_what_lies_outside(old: str, new: str, tmp_path: Path) -> None:
    shader = rich()
    assert old in shader.text
    assert "AddressSanitizer" in watched(shader.text.replace(old, new), main_of(shader), tmp_path).stderr
