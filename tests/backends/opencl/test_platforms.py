"""What is told of the devices of OpenCL where there are none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.compute import opencl
from weft.backends.base import DeviceLostError
from weft.backends.opencl.backend import ClVisual
from weft.backends.opencl.queue import ClDevice

__all__ = ["opencl"]

pytestmark = pytest.mark.usefixtures("opencl")


def test_its_memory_is_known() -> None:
    assert all(found.memory_free > 0 for found in ClVisual.probe())


def test_without_pyopencl_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    (found,) = ClVisual.probe()
    assert (found.available, found.reason) == (False, "pyopencl is not installed")
    assert not ClVisual.may_have_hardware()
    with pytest.raises(DeviceLostError, match="visual cannot continue: pyopencl cannot be imported"):
        ClVisual().open()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no variable of the environment hides the drivers")
def test_without_a_driver_it_says_so(tmp_path: Path) -> None:
    hidden = {**os.environ, "OCL_ICD_VENDORS": str(tmp_path)}
    command = [sys.executable, "-m", "weft.backends.opencl.platforms"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=hidden)
    assert done.stdout == '{"reason": "no driver of OpenCL has a device"}\n'


def test_what_a_compiler_remarks_is_no_failure(opencl: ClDevice) -> None:
    text = "#warning this compiler has something to say\nkernel void ends(global float *out) { out[0] = 1.0f; }\n"
    assert opencl.compile(text, "ends") is not None
