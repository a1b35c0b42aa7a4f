"""Random programs compile or say what is wrong, and mean the same on every machine."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings

from tests.support.beats import given_beats
from tests.support.kernels import AS_WRITTEN, DOUBLE_MACHINES, WITHOUT_PHASES, kernel_by
from tests.support.program_texts import feedback_texts, program_texts
from tests.support.together import examples
from tests.support.tolerances import EXACT
from weft.backends.launch import Launch, StateMemory, picture_coords
from weft.codegen.kernel import Kernel
from weft.errors import WeftError
from weft.ir.passes import PASSES, Pass

SHAPE = (2, 3)
TICKS = 3
COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck)}


def kernel_of(text: str, passes: Sequence[Pass] = PASSES) -> Kernel | None:
    """The kernel of a program; None if there is an error in it."""
    note(text)
    try:
        return kernel_by(text, passes)
    except WeftError as failure:
        note(str(failure))
        return None


def played(kernel: Kernel, machine: str) -> np.ndarray:
    """What some ticks in a row display."""
    executable, memory = DOUBLE_MACHINES[machine].load(kernel), StateMemory(kernel.slots, SHAPE, np.float64)
    height, width = SHAPE
    planes = []
    for tick in range(TICKS):
        uniforms = {"width": width, "height": height, "dt": 1 / 60, "absframe": tick, "mouse@x": 0.25,
                    **given_beats()}  # fmt: skip
        launch = Launch(SHAPE, picture_coords(width, height, tick / 60), uniforms)
        planes.append(executable.planes(memory, launch))
    return np.stack(planes)


@settings(max_examples=examples(100), **COMMON)
@given(text=program_texts())
def test_machines_agree(text):
    kernel = kernel_of(text)
    if kernel is not None:
        expected = played(kernel, "vm")
        for machine in DOUBLE_MACHINES:
            assert EXACT.agreement(played(kernel, machine), expected).all(), machine


@settings(max_examples=examples(60), **COMMON)
@given(texts=feedback_texts())
def test_feedback_within_a_spindle_is_feedback_round_it(texts):
    within, around = map(kernel_of, texts)
    assert (within is None) == (around is None)
    if within is not None and around is not None:
        assert EXACT.agreement(played(within, "vm"), played(around, "vm")).all()


@pytest.mark.long
@settings(max_examples=examples(60), **COMMON)
@given(text=program_texts())
def test_optimising_changes_nothing(text):
    """But for phases, which may round a sum in another way; tests/ir/test_phases.py has what holds for these."""
    plain, optimised = kernel_of(text, AS_WRITTEN), kernel_of(text, WITHOUT_PHASES)
    assert (plain is None) == (optimised is None)
    if plain is not None and optimised is not None:
        assert EXACT.agreement(played(optimised, "vm"), played(plain, "vm")).all()
