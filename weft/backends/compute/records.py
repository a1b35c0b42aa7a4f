"""A picture by one call: where nothing but numbers and what is remembered goes into a frame, a small function of
machine code computes the numbers, packs them and launches the kernel. Python fills in what has changed."""

from __future__ import annotations

import ctypes
from ctypes import c_double, c_int64, c_uint32
from typing import Any, TypeAlias

from weft.backends.base import Env
from weft.backends.compute.arrays import ComputeMemory
from weft.backends.compute.interface import ComputeDevice, LaunchAddresses, Run
from weft.backends.launch import TIME, Launch
from weft.backends.native.llvm import Address, function_of
from weft.backends.prologue import PrologueBlock, PrologueMachine
from weft.codegen.clike.shader import BufferUse, Shader
from weft.codegen.kernel import Kernel

Inputs: TypeAlias = "tuple[float, ...]"
"""What a frame is computed from: the time, and the uniforms of its kernel."""

# The words of a record, which the function reads, and the last one, which it writes: the error of the driver in the
# lower half, and in the upper one whether a loop of the prologue has reached its limit.
_WORDS = (
    "prologue", "block", "scalars", "words", "reals", "real_places", "wholes", "whole_places", "reciprocals",
    "reciprocal_places", "choose", "choice", "launch", "kernel", "blocks", "threads", "stream", "arguments",
    "width_place", "width", "height_place", "height", "stopped_place", "error",
)  # fmt: skip
_AT = {name: at for at, name in enumerate(_WORDS)}


def _loaded(name: str, kind: str) -> str:
    return f"""\
  %at_{name} = getelementptr i64, ptr %record, i64 {_AT[name]}
  %{name} = load {kind}, ptr %at_{name}
"""


def _loop(name: str, places: str, before: str, after: str, copied: str) -> str:
    """Copies scalars to words: pairs of numbers say from where to where."""
    return f"""\
{name}:
  %{name}_i = phi i64 [0, %{before}], [%{name}_next, %{name}_body]
  %{name}_more = icmp ult i64 %{name}_i, %{name}s
  br i1 %{name}_more, label %{name}_body, label %{after}
{name}_body:
  %{name}_pair = getelementptr i64, ptr %{places}, i64 %{name}_i
  %{name}_to = load i32, ptr %{name}_pair
  %{name}_second = getelementptr i32, ptr %{name}_pair, i64 1
  %{name}_from = load i32, ptr %{name}_second
  %{name}_scalar = getelementptr i64, ptr %scalars, i32 %{name}_from
  %{name}_word = getelementptr i32, ptr %words, i32 %{name}_to
{copied}  %{name}_next = add i64 %{name}_i, 1
  br label %{name}
"""


_REAL = """\
  %given = load double, ptr %real_scalar
  %single = fptrunc double %given to float
  store float %single, ptr %real_word
"""
_RECIPROCAL = """\
  %divisor = load double, ptr %reciprocal_scalar
  %quotient = fdiv double 1.0, %divisor
  %rounded = fptrunc double %quotient to float
  store float %rounded, ptr %reciprocal_word
"""
_WHOLE = """\
  %bits = load i32, ptr %whole_scalar
  store i32 %bits, ptr %whole_word
"""

_POINTERS = ("prologue", "block", "scalars", "words", "real_places", "whole_places", "reciprocal_places", "choose",
             "launch", "kernel", "stream", "arguments", "width_place", "height_place", "stopped_place")  # fmt: skip
_NUMBERS = ("reals", "wholes", "reciprocals", "choice", "width", "height")
_HALVES = ("blocks", "threads")

_TEXT = f"""\
define void @frame_by_record(ptr %record) {{
entry:
{"".join(_loaded(name, "ptr") for name in _POINTERS)}\
{"".join(_loaded(name, "i64") for name in _NUMBERS)}\
{"".join(_loaded(name, "i32") for name in _HALVES)}\
  store i64 %width, ptr %width_place
  store i64 %height, ptr %height_place
  store i64 0, ptr %stopped_place
  call void %prologue(ptr %block)
  br label %real
{_loop("real", "real_places", "entry", "whole", _REAL)}\
{_loop("whole", "whole_places", "real", "reciprocal", _WHOLE)}\
{_loop("reciprocal", "reciprocal_places", "whole", "chosen", _RECIPROCAL)}\
chosen:
  %first = call i32 %choose(i64 %choice)
  %second = call i32 %launch(ptr %kernel, i32 %blocks, i32 1, i32 1, i32 %threads, i32 1, i32 1, i32 0, ptr %stream, \
ptr %arguments, ptr null)
  %is_chosen = icmp eq i32 %first, 0
  %error = select i1 %is_chosen, i32 %second, i32 %first
  %at_error = getelementptr i64, ptr %record, i64 {_AT["error"]}
  %stopped = load i64, ptr %stopped_place
  %upper = shl i64 %stopped, 32
  %lower = zext i32 %error to i64
  %status = or i64 %upper, %lower
  store i64 %status, ptr %at_error
  ret void
}}
"""


def prepared() -> Address | None:
    """The function, which takes the address of a record. LLVM takes some milliseconds for it, once in a process."""
    return function_of(_TEXT, "frame_by_record")


class FrameRecord:
    """The record of the frames of one program, over one shape."""

    def __init__(
        self, shader: Shader, machine: PrologueMachine, shape: tuple[int, int], addresses: LaunchAddresses,
        block: PrologueBlock, names: tuple[str, ...], call: Address,
    ) -> None:  # fmt: skip
        self._addresses = addresses
        self._numbers = (c_double * len(machine.block.numbers)).from_buffer(machine.block.numbers.data)
        self._fillers = machine.fillers
        self._block = block
        self._names = names
        self._call = call
        self._times = [at for at, name in machine.block.coords if name == TIME]
        self._uniforms = [(at, 1 + names.index(name)) for at, name in machine.block.uniforms]
        self._own = [(at, form, 1 + names.index(name)) for at, form, name in block.uniforms]
        at_scalar = {number: at for at, number in machine.reals}
        whole = {number: at // 2 for at, number in machine.wholes}
        reals = _pairs([(to, at_scalar[number]) for to, number in block.locals])
        wholes = _pairs([(to, whole[number]) for to, number in block.whole_locals])
        reciprocals = _pairs([(to, at_scalar[number]) for to, number in block.reciprocals])
        self._record = (c_int64 * len(_WORDS))()
        self._held = reals, wholes, reciprocals, machine
        self._rings = [each.key for each in shader.buffers if each.use == BufferUse.RING]
        self._nothing = Launch(shape, {})
        self._given: Inputs | None = None
        self._has_more = bool(self._uniforms or self._own or self._fillers or block.cells)
        given: dict[str, int] = {
            "prologue": machine.address, "block": machine.block.address, "scalars": machine.scalars.ctypes.data,
            "words": block.words.ctypes.data, "reals": len(block.locals), "real_places": ctypes.addressof(reals),
            "wholes": len(block.whole_locals), "whole_places": ctypes.addressof(wholes),
            "reciprocals": len(block.reciprocals), "reciprocal_places": ctypes.addressof(reciprocals),
            "width": shape[1], "height": shape[0], **machine.extents, **addresses.words,
        }  # fmt: skip
        for name, value in given.items():
            self._record[_AT[name]] = value
        self._address = ctypes.addressof(self._record)

    @classmethod
    def of(
        cls, kernel: Kernel, shader: Shader, machine: PrologueMachine, shape: tuple[int, int], device: ComputeDevice,
        launched: Any,
    ) -> FrameRecord | None:  # fmt: skip
        """The record of a kernel that a device has compiled as `launched`; None if a frame needs anything else but
        numbers, or the device or this machine has no such calls."""
        frame, out, *others = (each.use for each in shader.buffers)
        if (frame, out) != (BufferUse.FRAME, BufferUse.OUT) or any(use != BufferUse.RING for use in others):
            return None
        block = PrologueBlock(shader)
        needs_more = kernel.strands or kernel.pictures or kernel.stages
        if needs_more or not block.is_simple(shape) or any(name != TIME for _, name in machine.block.coords):
            return None
        call = prepared()
        addresses = device.addresses(launched, shape[0] * shape[1], block.words, 1 + len(others))
        if call is None or addresses is None:
            return None
        return cls(shader, machine, shape, addresses, block, kernel.uniforms, call)

    def inputs(self, env: Env) -> Inputs:
        """What a frame is computed from."""
        return (env.abstime, *env.uniforms(self._names)) if self._names else (env.abstime,)

    def forget(self) -> None:
        """Another launch has put its numbers in the place of those of the record."""
        self._given = None

    def _give(self, inputs: Inputs, memory: ComputeMemory) -> None:
        """Fills in what follows from other inputs than the time, if they have changed, and from what is remembered."""
        given = inputs[1:]
        if given != self._given:
            self._given = given
            for at, which in self._uniforms:
                self._numbers[at] = inputs[which]
            for at, form, which in self._own:
                self._block.put(at, form, inputs[which])
        for fill in self._fillers:
            fill(memory, self._nothing)
        wholes = self._block.wholes
        for at, slot, ago in self._block.cells:
            wholes[at] = memory.cell(slot, ago)

    def launch(self, inputs: Inputs, out: Any, memory: ComputeMemory) -> tuple[Run, bool]:
        """Launches a frame: the run, and whether a loop of the prologue reached its limit."""
        numbers = self._numbers
        for at in self._times:
            numbers[at] = inputs[0]
        if self._has_more:
            self._give(inputs, memory)
        buffers = (out, *[memory.buffers[key] for key in self._rings]) if self._rings else (out,)
        self._addresses.begin(buffers)
        self._call(self._address)
        status = self._record[_ERROR]
        return self._addresses.end(status & _LOWER), status > _LOWER


_ERROR = _AT["error"]
_LOWER = 0xFFFF_FFFF


def _pairs(pairs: list[tuple[int, int]]) -> Any:
    """Pairs of numbers, one after the other."""
    flat = [number for pair in pairs for number in pair]
    return (c_uint32 * max(2, len(flat)))(*flat)

