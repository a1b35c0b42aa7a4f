"""Modules of WebAssembly: the bytes and the text are the same module, which a machine of another author takes."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import wasmtime
from hypothesis import given, strategies as st

from tests.support.parity.cases import case_of_seed, sound_case_of_seed
from weft.codegen.kernel import Kernel
from weft.codegen.wasm.abi import MEMORY, BlockLayout
from weft.codegen.wasm.assembler import WasmFunction, WasmInstruction, WasmModule
from weft.codegen.wasm.sweep import LAYOUT, emit


def sections(module: bytes) -> Iterator[tuple[int, bytes]]:
    """The sections of a module, by their numbers."""
    at = 8
    while at < len(module):
        number, size, shift = module[at], 0, 0
        at += 1
        while True:
            size |= (module[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if module[at - 1] < 0x80:
                break
        yield number, module[at : at + size]
        at += size


def without_names(module: bytes) -> list[tuple[int, bytes]]:
    return [section for section in sections(module) if section[0]]


def check_both(module: WasmModule) -> None:
    made = module.encoded()
    wasmtime.Module.validate(wasmtime.Engine(), made)
    assert without_names(bytes(wasmtime.wat2wasm(module.text()))) == without_names(made)


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("make", [case_of_seed, sound_case_of_seed], ids=["pictures", "sounds"])
def test_text_and_bytes_of_generated_programs_are_the_same_module(make, seed: int) -> None:
    case = make(seed)
    for kernel in (*case.kernel.stages, case.kernel.alone):
        check_both(emit(kernel).module)
        check_both(emit(kernel, is_whole=False).module)


def constant(op: str, value: float) -> WasmModule:
    body = WasmInstruction(op, (), value)
    kind = op.partition(".")[0]
    return WasmModule(MEMORY, (WasmFunction("f", (), (kind,), (), (body,), exported=True),))  # type: ignore[arg-type]


@given(st.integers(-(2**31), 2**32 - 1))
def test_whole_numbers_of_32_bits(value: int) -> None:
    check_both(constant("i32.const", value))


@given(st.integers(-(2**63), 2**63 - 1))
def test_whole_numbers_of_64_bits(value: int) -> None:
    check_both(constant("i64.const", value))


@given(st.floats(width=64))
def test_doubles_to_the_bit(value: float) -> None:
    check_both(constant("f64.const", value))


def kernels() -> Iterator[Kernel]:
    for seed in range(12):
        yield case_of_seed(seed).kernel.alone
        yield sound_case_of_seed(seed).kernel


def test_layouts_come_back_from_json() -> None:
    for kernel in kernels():
        made = emit(kernel)
        ((_, content),) = [each for each in sections(made.encoded()) if not each[0]]
        name, text = content[1 : 1 + len(LAYOUT)].decode(), content[1 + len(LAYOUT) :]
        assert name == LAYOUT
        assert BlockLayout.from_json(json.loads(text)) == made.layout


def test_nothing_in_a_block_overlaps() -> None:
    for kernel in kernels():
        layout = emit(kernel).layout
        doubles = ("first", "rate", "origin")
        places = [(offset, 8 if name in doubles else 4) for name, offset in layout.to_json()["fixed"].items()]
        places += [(each.offset, 8) for each in layout.numbers]
        places += [(each.offset, 4) for each in layout.lines]
        for local in layout.locals:
            places.append((local.offset, 8 if local.type == "float" and local.rate in ("constant", "frame") else 4))
        for ring in layout.rings:
            places += [(ring.offset, 4), (ring.head, 4), *([(ring.size, 8)] if ring.image else [])]
        places += [(each.offset, 12) for each in layout.sampled]
        ends = [0]
        for start, size in sorted(places):
            assert start >= ends[-1]
            assert start % 4 == 0
            ends.append(start + size)
        assert ends[-1] <= layout.size
