"""Waves: what is rewritten and what is left alone, and that it means the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.support.kernels import MACHINES, UP_TO_PHASES, kernel_by
from tests.support.together import examples
from tests.support.tolerances import PHASE, Tolerance
from weft.backends.launch import Launch, StateMemory, picture_coords
from weft.codegen.bytecode import assemble
from weft.codegen.kernel import Kernel
from weft.ir.rates import Rate

SHAPE = (4, 7)


def calls(kernel: Kernel, section: str) -> list[str]:
    """The functions and operators of a section that computes something."""
    code = assemble(kernel).code(Rate[section.upper()])
    names = [str(i.operand if i.op == "CALL" else i.op) for i in code]
    return [name for name in names if not name.startswith(("LOAD_", "STORE_", "PUSH", "RETURN"))]


def values(kernel: Kernel, machine: str = "vm", time: float = 0.7) -> np.ndarray:
    inputs = {"width": 7.0, "height": 4.0}
    launch = Launch(SHAPE, picture_coords(7, 4, time), {name: inputs.get(name, 0.3) for name in kernel.uniforms})
    memory = StateMemory(kernel.slots, SHAPE, MACHINES[machine].widest)
    return np.asarray(MACHINES[machine].load(kernel).planes(memory, launch))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("sin(me@x * me@y * 20)", ["MUL", "MUL", "sinpi"]),
        ("cos(me@x * me@y * pi)", ["MUL", "cospi"]),
        ("sin(pi * (me@x + me@y))", ["ADD", "sinpi"]),
        ("sin((me@x * me@y) / 4)", ["MUL", "MUL", "sinpi"]),
        ("sin(-(me@x * me@y))", ["MUL", "MUL", "sinpi"]),
        ("sin(me@x * me@y)", ["MUL", "MUL", "sinpi"]),
    ],
)
def test_the_factor_joins_what_is_there(text, left):
    assert sorted(calls(kernel_by(f"display({text})"), "element")) == sorted(left)


def test_what_is_computed_once_a_frame_stays_as_it_is():
    kernel = kernel_by("display(me@x * sin(me@time * 3))")
    assert "sin" in calls(kernel, "frame")
    assert "sinpi" not in [name for section in kernel.sections for name in calls(kernel, section.rate.title)]


def test_channels_of_a_colour_are_made_of_one_sine_and_one_cosine():
    colours = calls(kernel_by("display(sin(me@x * me@y * 9 + me@time + <0, 2.1, 4.2>))"), "element")
    assert (colours.count("sinpi"), colours.count("cospi")) == (1, 1)
    mixed = calls(kernel_by("d = me@x * me@y\ndisplay(sin(d), cos(d + 1), sin(d - me@time), cos(d))"), "element")
    assert (mixed.count("sinpi"), mixed.count("cospi")) == (1, 1)


@pytest.mark.parametrize(
    "text", ["sin(d), sin(d + 1), 0", "sin(d), sin(d + me@x), sin(d + me@y)", "sin(d), sin(2 * d), sin(3 * d)"]
)
def test_strangers_are_no_family(text):
    found = calls(kernel_by(f"d = me@x * me@y\ndisplay({text})"), "element")
    assert found.count("sinpi") == text.count("sin")
    assert "cospi" not in found


ANGLES = st.recursive(
    st.sampled_from(["me@x", "me@y", "me@time", "0.5", "3", "pi", "(me@x * me@y)", "mouse@x"]),
    lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from("+-*"), inner)
    | st.builds("(-{})".format, inner)
    | st.builds("({} / 2)".format, inner),
    max_leaves=7,
)  # fmt: skip


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(angle=ANGLES, steady=st.lists(ANGLES, min_size=1, max_size=3), wave=st.sampled_from(["sin", "cos"]))
def test_it_means_the_same(angle, steady, wave):
    """Also on machine code, within its precision."""
    shown = ", ".join(f"{wave}({angle} + {moved})" for moved in (*steady, "1", "me@time")[:3])
    text = f"display({shown})"
    plain, turned = kernel_by(text, UP_TO_PHASES), kernel_by(text)
    expected = values(plain)
    assert PHASE.scaled(100).agreement(values(turned), expected).all()
    assert Tolerance(0, 1e-3).agreement(values(turned, "native"), expected).all()


def test_what_is_not_finite_stays_so():
    for text in ("sin(1 / (me@x - me@x) + me@y)", "sin(0 / (me@x - me@x) + me@y)"):
        assert np.isnan(values(kernel_by(f"display({text})"))).all()
