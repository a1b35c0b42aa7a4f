"""The functions of WebAssembly that the machine itself does not have: those of C's library, within a few digits."""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import wasmtime

from weft.codegen.wasm.abi import MEMORY
from weft.codegen.wasm.assembler import WasmFunction, WasmModule
from weft.codegen.wasm.builder import FunctionBuilder
from weft.codegen.wasm.lane_code import PairLanes, of_pairs
from weft.codegen.wasm.mathematics import function_names, mathematical
from weft.ops import ieee

MEANINGS: dict[str, Callable[..., float]] = {
    "sin": ieee.sin, "cos": ieee.cos, "exp": ieee.exp, "exp2": ieee.exp2, "log": ieee.log, "log2": ieee.log2,
    "pow": ieee.power, "atan2": math.atan2, "modulo": ieee.remainder, "sinpi": ieee.sinpi, "cospi": ieee.cospi,
}  # fmt: skip

SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, math.inf, -math.inf, math.nan, 5e-324, -5e-324,
           2.0**-1022, 1.7976931348623157e308, -1.7976931348623157e308, 1024.0, -1080.0, 709.5, -745.0, 1e5,
           2.0**53]  # fmt: skip


def pair_caller(name: str, count: int) -> WasmFunction:
    """A function of numbers that calls the function of pairs, and gives the upper lane: in the lower one is a 3."""
    b = FunctionBuilder("pair", [(param, "f64") for param in "xy"[:count]])
    lanes = PairLanes(b)
    pairs = [lanes.joined(b.f64(3.0), b.param(param)) for param in "xy"[:count]]
    return b.function((b.put("f64x2.extract_lane", b.call(name, "v128", *pairs), immediate=1),))


@functools.cache
def function(name: str) -> Callable[..., float]:
    """A function, which checks that the one of pairs gives the same."""
    one, two = mathematical(name), mathematical(of_pairs(name))
    functions = one, two, pair_caller(two.name, len(one.params))
    module = WasmModule(MEMORY, tuple(replace(each, exported=each.name in (name, "pair")) for each in functions))
    engine = wasmtime.Engine()
    store = wasmtime.Store(engine)
    memory = wasmtime.Memory(store, wasmtime.MemoryType(wasmtime.Limits(1, None)))
    exports = wasmtime.Instance(store, wasmtime.Module(engine, module.encoded()), [memory]).exports(store)

    def call(*args: float) -> float:
        found = exports[name](store, *args)
        assert struct.pack("d", found) == struct.pack("d", exports["pair"](store, *args)) or math.isnan(found), args
        return float(found)

    return call


def is_close(found: float, wanted: float, relative: float, absolute: float) -> bool:
    if math.isnan(wanted) or math.isinf(wanted) or math.isnan(found):
        return found == wanted or (math.isnan(found) and math.isnan(wanted))
    return abs(found - wanted) <= absolute + relative * abs(wanted)


def test_each_function_has_its_meaning() -> None:
    assert set(function_names()) == {*MEANINGS, *map(of_pairs, MEANINGS)}


@pytest.mark.parametrize("name", ["exp", "exp2", "log", "log2"])
def test_at_special_places(name: str) -> None:
    for x in SPECIAL:
        found, wanted = function(name)(x), MEANINGS[name](x)
        assert is_close(found, wanted, 2e-15, 5e-324), (x, found, wanted)


@pytest.mark.parametrize("name", ["pow", "atan2"])
def test_pairs_of_special_places(name: str) -> None:
    for x in SPECIAL:
        for y in SPECIAL:
            found, wanted = function(name)(x, y), MEANINGS[name](x, y)
            assert is_close(found, wanted, 1e-12, 5e-324), (x, y, found, wanted)
            assert math.isnan(wanted) or math.copysign(1, found) == math.copysign(1, wanted), (x, y, found, wanted)


def test_remainders_are_exact() -> None:
    numbers = np.random.default_rng(4)
    pairs = [(x, y) for x in SPECIAL for y in SPECIAL]
    pairs += [(float(a), float(b)) for a, b in numbers.normal(size=(2000, 2)) * [1e3, 3]]
    pairs += [(float(a), float(b)) for a, b in numbers.normal(size=(200, 2)) * [1e200, 1e-3]]
    for x, y in pairs:
        if 2.0**990 < abs(x) < math.inf:
            continue  # its parts may leave the range
        found, wanted = function("modulo")(x, y), ieee.remainder(x, y)
        assert found == wanted or (math.isnan(found) and math.isnan(wanted)), (x, y, found, wanted)


RANGES = {
    "sin": (-1e4, 1e4, 0.0, 4e-15), "cos": (-1e4, 1e4, 0.0, 4e-15), "sinpi": (-1e6, 1e6, 0.0, 2e-15),
    "cospi": (-1e6, 1e6, 0.0, 2e-15), "exp": (-745, 709, 2e-15, 5e-324),
    "exp2": (-1070, 1023, 2e-15, 5e-324), "log": (1e-3, 1e3, 4e-16, 0.0), "log2": (1e-3, 1e3, 1e-15, 1e-16),
}  # fmt: skip


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_waves_of_huge_angles_have_no_digits_but_stay_waves(name: str) -> None:
    numbers = np.random.default_rng(2).uniform(1, 10, 300) * 10.0 ** np.arange(8, 308)
    for x in (*SPECIAL, *map(float, numbers)):
        found = function(name)(x)
        assert abs(found) <= 1 + 1e-15 if math.isfinite(x) else math.isnan(found), (x, found)


@pytest.mark.parametrize("name", RANGES)
def test_within_a_range(name: str) -> None:
    low, high, relative, absolute = RANGES[name]
    for x in map(float, np.random.default_rng(1).uniform(low, high, 3000)):
        found, wanted = function(name)(x), MEANINGS[name](x)
        assert is_close(found, wanted, relative, absolute), (x, found, wanted)


def test_angles_of_directions() -> None:
    numbers = np.random.default_rng(2)
    for y, x in numbers.normal(size=(3000, 2)) * 10.0 ** numbers.integers(-9, 9, (3000, 1)):
        assert is_close(function("atan2")(y, x), math.atan2(y, x), 4e-16, 0.0), (y, x)


def test_powers() -> None:
    numbers = np.random.default_rng(5)
    for a, b in zip(np.exp(numbers.uniform(-3, 3, 3000)), numbers.uniform(-20, 20, 3000), strict=True):
        octaves = abs(b * math.log2(a))
        assert is_close(function("pow")(a, b), a**b, (octaves + 1) * 2.0**-51, 0.0), (a, b)
    for exponent in range(23):
        assert function("pow")(10.0, float(exponent)) == 10.0**exponent
    for exponent in range(-40, 41):
        assert is_close(function("pow")(-1.37, float(exponent)), (-1.37) ** exponent, 1e-14, 0.0)
    for exponent in range(-60, 60):
        assert function("pow")(2.0, float(exponent)) == 2.0**exponent
        assert function("exp2")(float(exponent)) == 2.0**exponent
        assert function("log2")(2.0**exponent) == exponent
