"""What the programs with bundles say of their strands holds on every machine. All strands of a program are one picture
there: one kernel, and one shader. Sounds are compared where `test_programs` does that."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.devices import COMPUTE, cuda, device, embedded_graphics, executor_on, graphics, opencl, wgpu
from tests.support.gl import GlExecutor, Graphics
from tests.support.kernels import MACHINES
from tests.support.metal.executor import MetalExecutor
from tests.support.programs import Expectation, built_together, expectations, values_together
from tests.support.together import all_but
from tests.support.tolerances import SINGLE, WRITTEN
from weft.backends.executors import Executor
from weft.runtime.compiling.stages import Build

__all__ = ["cuda", "device", "embedded_graphics", "graphics", "opencl", "wgpu"]

FOLDER = Path(__file__).parent / "programs" / "bundles"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.weft"))


@cache
def together(name: str, optimise: bool = False) -> tuple[Build, list[Expectation]]:
    """A program with all its strands as one picture."""
    text = (FOLDER / f"{name}.weft").read_text(encoding="utf-8")
    shown = [expected for expected in expectations(text) if expected.is_plain]
    return built_together(text, shown, optimise), shown


def wrong(name: str, executor: Executor, optimise: bool = False) -> list[str]:
    """The strands that are not what the program says."""
    made, expected = together(name, optimise)
    found = values_together(made, expected, executor)
    tolerance = WRITTEN if executor.widest == np.float64 else SINGLE.scaled(10)
    return [
        f"{each} is {value}, not {each.value}"
        for value, each in zip(found, expected, strict=True)
        if not tolerance.allows(value, each.value)
    ]


@pytest.mark.parametrize("optimise", [True, False], ids=["optimised", "as written"])
@pytest.mark.parametrize("machine", ["vm", "vector", "native", "wasm"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_on_the_processor(name: str, machine: str, optimise: bool) -> None:
    assert wrong(name, MACHINES[machine], optimise) == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_shaders(name: str, graphics: Graphics) -> None:
    assert wrong(name, GlExecutor(graphics)) == []


@pytest.fixture(scope="module")
def prepared(device: Any) -> MetalExecutor:
    """An executor that has compiled the kernels of all programs."""
    executor = MetalExecutor(device)
    kernels = [unit.kernel for name in PROGRAMS for unit in together(name)[0].units]
    executor.prepare(kernels)
    return executor


@pytest.mark.parametrize("name", PROGRAMS)
def test_in_metal(name: str, prepared: MetalExecutor) -> None:
    assert wrong(name, prepared) == []


@pytest.mark.parametrize("language", [*COMPUTE, "essl"])
@pytest.mark.parametrize("name", all_but(2, PROGRAMS))
def test_on_another_device(name: str, language: str, request: pytest.FixtureRequest) -> None:
    assert wrong(name, executor_on(language, request)) == []
