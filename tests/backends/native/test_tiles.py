"""Pictures as lists of calls: the same values as the reference machine, and a cache that takes only its own files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.kernels import kernel_by, launch_of
from weft.backends.launch import StateMemory
from weft.backends.native.executor import NativeExecutor
from weft.backends.native.llvm import NativeCode, handlers_object, host
from weft.backends.vm import ReferenceExecutable
from weft.codegen.native.tiles import TILE, TileProgram

BENCH = Path(__file__).parents[3] / "patches" / "bench"

TEXTS = {
    **{name: (BENCH / f"{name}.weft").read_text() for name in ("v1", "v2", "v3")},
    "lines": "display(<me@x, me@y, 0.5>)",
    "bools": "display(<(me@x > 0.5 and me@y < 0.3), select((me@x > me@y), me@x, 1 - me@y), (me@x > 0.2)>)",
    "functions": "display(<exp(me@x) / 3, log(1 + me@x * me@y), fract(me@x * 9) ^ 2.2>)",
}


def drawn(executable, kernel, shape):
    found = np.zeros((*shape, 4), np.uint8)
    executable.rgba8(StateMemory(kernel.slots, shape), launch_of(shape, 1.5), found)
    return found.astype(int)


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("shape", [(3, 1), (2, TILE + 17)], ids=str)
def test_a_list_of_calls_draws_what_the_reference_machine_draws(name, shape):
    kernel, executor = kernel_by(TEXTS[name]), NativeExecutor()
    code = executor.translate(kernel, True)
    assert isinstance(code, TileProgram)
    found = drawn(executor.load(kernel, {True: code}), kernel, shape)
    assert np.abs(found - drawn(ReferenceExecutable(kernel), kernel, shape)).max() <= 1


def test_the_second_tier_takes_over():
    kernel, executor = kernel_by(TEXTS["v2"]), NativeExecutor()
    executable = executor.load(kernel, {True: executor.translate(kernel, True)})
    assert executable.tier == 1
    better = executor.translate(kernel, True, 2)
    assert isinstance(better, NativeCode)
    executable.upgrade(better)
    assert executable.tier == 2


def test_the_cache_takes_only_whole_files_of_this_user(tmp_path):
    processor, folder = host(), tmp_path / "code"
    code = handlers_object(processor, folder)
    (kept,) = folder.iterdir()
    whole = kept.read_bytes()
    for damage in (whole[:-1], b"", whole[:-1] + bytes([whole[-1] ^ 1])):
        kept.write_bytes(damage)
        assert handlers_object(processor, folder) == code
        assert kept.read_bytes() == whole
    kept.write_bytes(whole)
    before = kept.stat().st_ino
    assert handlers_object(processor, folder) == code
    assert kept.stat().st_ino == before
    for place, mode in ((kept, 0o666), (folder, 0o777)):
        place.chmod(mode)
        assert handlers_object(processor, folder) == code
        assert kept.stat().st_ino != before
        before = kept.stat().st_ino
    folder.chmod(0o700)
