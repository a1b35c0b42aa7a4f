"""Pixels of four bytes: on each machine, whatever each channel varies over."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.support.exprs import Exprs, image_slot, lowered
from tests.support.kernels import MACHINES, compiled, launch_of
from weft.backends.launch import StateMemory
from weft.backends.vector.machine import VectorExecutor

ALL = {**MACHINES, "vector, single": VectorExecutor(np.float32)}
MACHINE = pytest.mark.parametrize("machine", ALL)


def pixels(machine, *outputs, shape=(2, 5), **inputs):
    made = compiled(lowered(*outputs))
    out = np.full((*shape, 4), 77, np.uint8)
    ALL[machine].load(made).rgba8(StateMemory(()), launch_of(shape, **inputs), out)
    return out


@MACHINE
@pytest.mark.parametrize("over", ["nothing", "frame", "column", "row", "element"])
@pytest.mark.parametrize(
    ("value", "level"),
    [(0, 0), (1, 255), (-0.1, 0), (1.5, 255), (math.nan, 0), (math.inf, 255), (-math.inf, 0), (0.5, 128),
     (0.3, 77), (0.1, 26), (1.49 / 255, 1), (1.51 / 255, 2), (254.4 / 255, 254)],
)  # fmt: skip
def test_levels(machine, over, value, level):
    e = Exprs()
    x, y = e.coord("x"), e.coord("y")
    zero = {"column": x * 0, "row": y * 0, "element": x * y * 0}.get(over, 0)
    channel = e.number(value) if over == "nothing" else e.uniform("v") + zero
    out = pixels(machine, channel, channel * 1, e.number(1), channel, uniforms={"v": value})
    assert (out == [level, level, 255, level]).all()


@MACHINE
def test_a_gray_is_opaque(machine):
    e = Exprs()
    for gray in (e.coord("x"), e.coord("x") * e.coord("y"), e.number(0.4)):
        out = pixels(machine, gray)
        assert (out[..., 0] == out[..., 1]).all()
        assert (out[..., 0] == out[..., 2]).all()
        assert (out[..., 3] == 255).all()
    assert (out[..., 0] == 102).all()


@MACHINE
def test_channels_of_every_rate_meet(machine):
    e = Exprs()
    x, y, time = e.coord("x"), e.coord("y"), e.uniform("time")
    kinds = {"x": x, "y": y, "xy": x * y, "t": time, "1": e.number(1), "c": e("lt", x, y), "cx": e("lt", x, 0.5)}
    names = list(kinds)
    for at in range(len(names)):
        chosen = [names[(at * 3 + k * (at + 1)) % len(names)] for k in range(4)]
        shape = (3, 4)
        out = pixels(machine, *(kinds[name] for name in chosen), shape=shape, uniforms={"time": 0.6})
        x_at, y_at = np.meshgrid((np.arange(4) + 0.5) / 4, (np.arange(3) + 0.5) / 3)
        values = {"x": x_at, "y": y_at, "xy": x_at * y_at, "t": 0.6, "1": 1, "c": x_at < y_at, "cx": x_at < 0.5}
        for channel, name in enumerate(chosen):
            expected = np.floor(np.broadcast_to(values[name], shape) * 255 + 0.5)
            assert (out[..., channel] == expected).all(), chosen


@MACHINE
def test_one_value_in_several_channels(machine):
    e = Exprs()
    wave = e.coord("x") * e.coord("y")
    out = pixels(machine, wave, wave, wave)
    assert (out[..., 0] == out[..., 2]).all()
    assert out[1, 4, 0] == math.floor(0.9 * 0.75 * 255 + 0.5)


@MACHINE
def test_pixels_advance_state(machine):
    e = Exprs()
    past = e.state("v/i", 1)
    made = compiled(lowered(past, slots=[image_slot("v/i")], updates={"v/i": past + 0.25}))
    memory, executable = StateMemory(made.slots, (2, 2)), ALL[machine].load(made)
    out = np.zeros((2, 2, 4), np.uint8)
    levels = []
    for _ in range(3):
        executable.rgba8(memory, launch_of((2, 2)), out)
        levels.append(int(out[0, 0, 0]))
    assert levels == [0, 64, 128]


@MACHINE
@pytest.mark.parametrize("count", [0, 2, 5])
def test_a_picture_has_certain_channels(machine, count):
    with pytest.raises(ValueError, match=f"not {count}"):
        pixels(machine, *[Exprs().number(1)] * count)


@MACHINE
@pytest.mark.parametrize(
    "out", [np.zeros((2, 5, 3), np.uint8), np.zeros((2, 5, 4)), np.zeros((2, 5, 8), np.uint8)[..., ::2]]
)
def test_a_picture_has_its_shape(machine, out):
    made = compiled(lowered(Exprs().coord("x")))
    with pytest.raises(ValueError, match="four bytes"):
        ALL[machine].load(made).rgba8(StateMemory(()), launch_of((2, 5)), out)
