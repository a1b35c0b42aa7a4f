"""Random programs compile or say what is wrong, and mean the same on every machine."""

import numpy as np
from hypothesis import HealthCheck, given, note, settings

from tests.support.kernels import MACHINES
from tests.support.program_texts import program_texts
from tests.support.tolerances import EXACT
from weft.backends.launch import Launch, picture_coords
from weft.backends.memory import StateMemory
from weft.codegen.base import Kernel
from weft.codegen.verify import verify as verify_kernel
from weft.contexts import ContextTable
from weft.errors import Source, WeftError
from weft.ir.verify import verify as verify_ir
from weft.runtime.build import build

SHAPE = (2, 3)
TICKS = 3
COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck)}


def kernel_of(text: str, optimise: bool) -> Kernel | None:
    """The kernel of a program; None if there is an error in it."""
    note(text)
    try:
        made = build(Source("test.weft", text), ContextTable(), optimise=optimise)
    except WeftError as failure:
        note(str(failure))
        return None
    (unit,), (lowered,) = made.units, made.lowered
    verify_ir(lowered)
    verify_kernel(unit.kernel)
    return unit.kernel


def played(kernel: Kernel, machine: str) -> np.ndarray:
    """What some ticks in a row display."""
    executable, memory = MACHINES[machine].load(kernel), StateMemory(kernel.slots, SHAPE, np.float64)
    height, width = SHAPE
    planes = []
    for tick in range(TICKS):
        uniforms = {"width": width, "height": height, "dt": 1 / 60, "absframe": tick, "mouse@x": 0.25}
        launch = Launch(SHAPE, picture_coords(width, height, tick / 60), uniforms)
        planes.append(executable.planes(memory, launch))
    return np.stack(planes)


@settings(max_examples=100, **COMMON)
@given(text=program_texts())
def test_machines_agree(text):
    kernel = kernel_of(text, optimise=True)
    if kernel is not None:
        expected = played(kernel, "vm")
        for machine in MACHINES:
            assert EXACT.agreement(played(kernel, machine), expected).all(), machine


@settings(max_examples=60, **COMMON)
@given(text=program_texts())
def test_optimising_changes_nothing(text):
    plain, optimised = kernel_of(text, optimise=False), kernel_of(text, optimise=True)
    assert (plain is None) == (optimised is None)
    if plain is not None and optimised is not None:
        assert EXACT.agreement(played(optimised, "vm"), played(plain, "vm")).all()
