"""Sounds block by block: what a device of single precision plays after an hour is in tune."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.gl import GlExecutor, Graphics, graphics
from weft.backends.launch import Floats, Launch, StateMemory, Value
from weft.backends.vm import ReferenceExecutor
from weft.codegen.kernel import Kernel
from weft.contexts import AUDIO, COMPUTE, VISUAL, ContextTable
from weft.errors import Source
from weft.runtime.compiling.stages import Request, build

__all__ = ["graphics"]

RATE, SAMPLES = 48_000, 512
HOUR = 3600 * RATE

WHOLE, BLOCKS = ContextTable(), ContextTable([VISUAL, AUDIO.by_blocks(), COMPUTE])

SOUNDS = {
    "a sine": "audio(sin(me@time * 440 * tau) * 0.5)",
    "a sine bent by another": "audio(sin(me@time * 220 * tau + 3 * sin(me@time * 110 * tau)))",
    "a saw": "audio(2 * (me@time * 220 % 1) - 1)",
    "the raster": "audio(2 * me@x - 1, me@y)",
    "noise": "audio(noise(me@time * 8000, 0.5))",
}


def kernel_of(text: str, contexts: ContextTable) -> Kernel:
    made = build(Request(Source("sound.weft", f"{text}\n"), contexts))
    return made.units[0].kernel


def reference(kernel: Kernel, coords: dict[str, Value]) -> Floats:
    uniforms = dict.fromkeys(kernel.uniforms, 0.0)
    launch = Launch((1, SAMPLES), {"channel": 0.0, **coords}, uniforms)
    return ReferenceExecutor().load(kernel).planes(StateMemory((), launch.shape), launch)[:, 0]


def heard(text: str) -> Floats:
    """An hour after the beginning."""
    return reference(kernel_of(text, WHOLE), {"abstime": (HOUR + np.arange(SAMPLES)) / RATE})


def of_block() -> dict[str, Value]:
    return {"abstime": HOUR / RATE, "since": np.arange(SAMPLES) / RATE}


def decibels(wrong: NDArray[np.floating], right: NDArray[np.floating]) -> float:
    """How loud a difference is, relative to the expected sound."""
    return float(10 * np.log10(np.mean((wrong - right) ** 2) / np.mean(right**2)))


@pytest.mark.parametrize("text", SOUNDS.values(), ids=SOUNDS)
def test_a_sound_is_the_same_by_blocks(text: str) -> None:
    assert decibels(reference(kernel_of(text, BLOCKS), of_block()), heard(text)) < -160


@pytest.mark.parametrize("text", SOUNDS.values(), ids=SOUNDS)
def test_in_single_precision_a_sound_stays_in_tune(graphics: Graphics, text: str) -> None:
    kernel = replace(kernel_of(text, BLOCKS), sweep="points", tick="launch")
    launch = Launch((1, SAMPLES), {"channel": 0.0, **of_block()}, dict.fromkeys(kernel.uniforms, 0.0))
    played = GlExecutor(graphics).load(kernel).planes(StateMemory((), launch.shape), launch)[:, 0]
    assert decibels(played, heard(text)) < -80

