"""What is told of the devices of WebGPU, and where there are none."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.backends.compute.test_backend import built, env_of
from tests.support.compute import wgpu
from weft.backends.base import DeviceLostError
from weft.backends.compute.interface import CompileError, ComputeError
from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.backends.wgpu import adapters
from weft.backends.wgpu.backend import WgpuVisual
from weft.backends.wgpu.webgpu import WgpuDevice
from weft.codegen.wgsl import GROUP, Wgsl
from weft.runtime.program.fallback import recover
from weft.runtime.program.program import ProgramLoader

__all__ = ["wgpu"]

pytestmark = pytest.mark.usefixtures("wgpu")

GIVEN = "@builtin(global_invocation_id) at: vec3u, @builtin(num_workgroups) groups: vec3u"


def test_a_device_on_the_processor_has_the_computers_memory() -> None:
    assert all(found.memory_free > 0 for found in WgpuVisual.probe() if found.software)


def test_a_package_whose_devices_are_others_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """weft stops the thread in which devices of the package are waited for, which is not a part that it promises."""
    (first, *_) = adapters.found()
    other = SimpleNamespace(limits=first.limits, info=first.info, request_device_sync=lambda **_: SimpleNamespace())
    monkeypatch.setattr(adapters, "found", lambda: [other])
    with pytest.raises(ComputeError, match=r"the device 0 cannot be opened \(.*_poller"):
        WgpuDevice(0)


def test_without_wgpu_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wgpu", None)
    (found,) = WgpuVisual.probe()
    assert (found.available, found.reason) == (False, "wgpu is not installed")
    assert "Python 3.11" in (found.remedy or "")
    assert not WgpuVisual.may_have_hardware()
    with pytest.raises(DeviceLostError, match="visual cannot continue: wgpu cannot be imported"):
        WgpuVisual().open()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no variable of the environment hides the drivers")
def test_without_a_driver_it_says_so() -> None:
    hidden = {**os.environ, "VK_DRIVER_FILES": os.devnull, "VK_ICD_FILENAMES": os.devnull}
    command = [sys.executable, "-m", "weft.backends.wgpu.adapters"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=hidden)
    assert done.stdout == '{"reason": "no driver of WebGPU has a device"}\n'


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is no such folder")
def test_nothing_is_printed_where_there_is_no_screen() -> None:
    bare = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
    command = [sys.executable, "-m", "weft.backends.wgpu.adapters"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=bare)
    assert '"devices": [{"index": 0' in done.stdout
    assert done.stderr == ""


def test_a_buffer_that_is_too_large_is_refused_in_words(wgpu: WgpuDevice) -> None:
    with pytest.raises(MemoryError, match="a buffer of 1099511627776 bytes is larger than the"):
        wgpu.allocate(1 << 40)


def test_more_threads_than_a_row_of_groups_has(wgpu: WgpuDevice) -> None:
    head = f"@compute @workgroup_size({GROUP})\nfn count({GIVEN})"
    (start,) = Wgsl().start()
    body = f"{start.text}\nif (id < arrayLength(&values)) {{ values[id] = id; }}"
    text = f"@group(0) @binding(0) var<storage, read_write> values: array<u32>;\n{head} {{\n{body}\n}}\n"
    count = 65_535 * GROUP + 1
    buffer = wgpu.allocate(4 * count)
    wgpu.launch(wgpu.compile(text, "count"), count, [buffer]).wait()
    np.testing.assert_array_equal(wgpu.read(buffer)().view(np.uint32), np.arange(count))


def test_a_copy_may_be_within_a_buffer(wgpu: WgpuDevice) -> None:
    buffer = wgpu.send(np.arange(8, dtype=np.float32))
    wgpu.copy(buffer, 0, buffer, 16, 16)
    np.testing.assert_array_equal(wgpu.read(buffer)().view(np.float32), [0, 1, 2, 3] * 2)


def test_bytes_that_are_no_whole_words_are_sent_and_read(wgpu: WgpuDevice) -> None:
    given = np.arange(23, dtype=np.uint8)
    buffer: Any = wgpu.send(given)
    np.testing.assert_array_equal(wgpu.read(buffer, start=4, size=19)(), given[4:])
    assert wgpu.send(given[::-1], buffer) is buffer


def test_a_lost_device_says_so_whatever_it_is_asked_for() -> None:
    lost = WgpuDevice(0)
    buffer, (start,) = lost.allocate(64), Wgsl().start()
    text = f"@compute @workgroup_size(1)\nfn nothing({GIVEN}) {{ {start.text} }}\n"
    kernel = lost.compile(text, "nothing")
    lost.own.destroy()
    asked: list[Callable[[], Any]] = [
        lost.wait, lambda: lost.allocate(4), lambda: lost.write(buffer, np.ones(4)), lambda: lost.read(buffer),
        lambda: lost.copy(buffer, 0, buffer, 8, 8), lambda: lost.compile(text, "nothing"),
        lambda: lost.launch(kernel, 1, []),
    ]  # fmt: skip
    for call in asked:
        with pytest.raises(RuntimeError, match=r"^Parent device is lost$"):
            call()


def test_the_show_goes_on_when_a_device_is_lost() -> None:
    loader = ProgramLoader(choose(load_registry(), ["visual"], "wgpu"))
    loaded = loader.prepare(built("n<v> = prev(n@v) + me@x / 8\ndisplay(n@v)\n").compiled, (31, 17))
    loaded.runner.run(env_of(0))
    compiled: Any = loaded.runner.parts[0].compiled
    compiled.device.own.destroy()
    words = r"visual cannot continue: a launch fails \(Parent device is lost\)"
    with pytest.raises(DeviceLostError, match=words) as failure:
        loaded.runner.run(env_of(1))
    assert recover(loader, loaded, failure.value, env_of(1), {})
    (shown,) = loaded.runner.run(env_of(1))
    assert shown.array.any()


def test_a_program_that_takes_more_than_the_device_has_is_refused(wgpu: WgpuDevice) -> None:
    most = wgpu.own.limits["max-storage-buffers-per-shader-stage"]
    given = "".join(f"@group(0) @binding({at}) var<storage, read> b{at}: array<f32>;\n" for at in range(most + 1))
    with pytest.raises(CompileError, match=r"(?i)storage"):
        wgpu.compile(f"{given}@compute @workgroup_size(1)\nfn nothing() {{ }}\n", "nothing")
