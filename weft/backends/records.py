"""A picture by one call: where nothing but numbers and what is remembered goes into a frame, a small function of
machine code computes the numbers, packs them and makes the calls of the driver that draw. Python fills in what has
changed."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from ctypes import c_double, c_int64
from typing import Any, Final, TypeAlias

from weft.backends.base import Env, PictureHandle, UniformReader
from weft.backends.executors import Stillness
from weft.backends.launch import TIME, Launch, StateMemory
from weft.backends.native.llvm import Address, function_of
from weft.backends.prologue import LaunchPrologue, PrologueBlock, PrologueMachine
from weft.codegen.clike.shader import Shader
from weft.codegen.kernel import Kernel, Unit

# The most that a call is given. More than a function takes does no harm, by the conventions of all systems.
_MOST = 11

# The words of a call: the function, what it is given, and what it returns.
_CALL = 1 + _MOST + 1

VARIES: Final = object()
"""Something that a call is given, and that is not the same in each frame."""

Call: TypeAlias = "Sequence[Any]"
"""The address of a function, and up to 11 whole numbers and addresses that it is given, or `VARIES`."""


class CallList:
    """Calls of a driver, which machine code makes one after another."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self.count = len(calls)
        self.words = (c_int64 * (_CALL * max(1, len(calls))))()
        given = {_CALL * at + word: value for at, call in enumerate(calls) for word, value in enumerate(call)}
        self._varying = [place for place, value in given.items() if value is VARIES]
        for place, value in given.items():
            self.words[place] = 0 if value is VARIES else int(value)

    def give(self, values: Iterable[int]) -> None:
        """Fills in what varies, in its order."""
        words = self.words
        for place, value in zip(self._varying, values, strict=True):
            words[place] = value

    def results(self) -> list[int]:
        """What the calls have returned. Only the lower half of it counts if that is an int."""
        found: list[int] = self.words[_CALL - 1 :: _CALL]
        return found


# The words of a record, which the function reads, and the last one, which it writes: whether a loop of the prologue has
# reached its limit.
_WORDS = (
    "prologue", "block", "numbers", "number_places", "reals", "real_places", "wholes", "whole_places", "nearests",
    "nearest_places", "lowers", "lower_places", "rests", "rest_places",
    "width_place", "width", "height_place", "height", "stopped_place", "calls", "calls_count",
    "stopped",
)  # fmt: skip
_AT = {name: at for at, name in enumerate(_WORDS)}


def _loaded(name: str, kind: str) -> str:
    return f"""\
  %at_{name} = getelementptr i64, ptr %record, i64 {_AT[name]}
  %{name} = load {kind}, ptr %at_{name}
"""


def _loop(name: str, count: str, before: str, after: str, body: str) -> str:
    """Runs a body `count` times; `%name_i` says how often it has been run."""
    return f"""\
{name}:
  %{name}_i = phi i64 [0, %{before}], [%{name}_next, %{name}_body]
  %{name}_more = icmp ult i64 %{name}_i, %{count}
  br i1 %{name}_more, label %{name}_body, label %{after}
{name}_body:
{body}  %{name}_next = add i64 %{name}_i, 1
  br label %{name}
"""


def _copies(name: str, before: str, after: str, copied: str) -> str:
    """Copies numbers of 64 bits to words, by pairs of addresses: from where, and to where."""
    body = f"""\
  %{name}_pair = getelementptr [2 x ptr], ptr %{name}_places, i64 %{name}_i
  %{name}_from = load ptr, ptr %{name}_pair
  %{name}_second = getelementptr ptr, ptr %{name}_pair, i64 1
  %{name}_to = load ptr, ptr %{name}_second
{copied}"""
    return _loop(name, f"{name}s", before, after, body)


_NUMBER = """\
  %exact = load double, ptr %number_from
  store double %exact, ptr %number_to
"""
_REAL = """\
  %given = load double, ptr %real_from
  %single = fptrunc double %given to float
  store float %single, ptr %real_to
"""
_NEAREST = """\
  %divisor = load double, ptr %nearest_from
  %quotient = fdiv double 1.0, %divisor
  %rounded = fptrunc double %quotient to float
  store float %rounded, ptr %nearest_to
"""
_WHOLE = """\
  %bits = load i32, ptr %whole_from
  store i32 %bits, ptr %whole_to
"""


def _part(name: str, made: str) -> str:
    """A part of 1 over a single, as `one_over` computes it: the lower one has 29 digits fewer than a double."""
    return f"""\
  %{name}_given = load double, ptr %{name}_from
  %{name}_single = fptrunc double %{name}_given to float
  %{name}_divisor = fpext float %{name}_single to double
  %{name}_share = fdiv double 1.0, %{name}_divisor
  %{name}_bits = bitcast double %{name}_share to i64
  %{name}_upper = and i64 %{name}_bits, -536870912
  %{name}_below = bitcast i64 %{name}_upper to double
{made}  store float %{name}_rounded, ptr %{name}_to
"""


_LOWER = _part("lower", "  %lower_rounded = fptrunc double %lower_below to float\n")
_REST = _part("rest", """\
  %left = fsub double %rest_share, %rest_below
  %is_left = fcmp one double %left, 0.0
  %little = fmul double %rest_share, 0x3C30000000000000
  %left_or_little = select i1 %is_left, double %left, double %little
  %rest_rounded = fptrunc double %left_or_little to float
""")


def _given(at: int) -> str:
    return f"""\
  %at_{at} = getelementptr i64, ptr %call_row, i64 {1 + at}
  %given_{at} = load i64, ptr %at_{at}
"""


_CALLED = f"""\
  %call_row = getelementptr [{_CALL} x i64], ptr %calls, i64 %call_i
  %call_function = load ptr, ptr %call_row
{"".join(map(_given, range(_MOST)))}\
  %call_result = call i64 %call_function({", ".join(f"i64 %given_{at}" for at in range(_MOST))})
  %at_result = getelementptr i64, ptr %call_row, i64 {_CALL - 1}
  store i64 %call_result, ptr %at_result
"""

_POINTERS = ("prologue", "block", "number_places", "real_places", "whole_places", "nearest_places", "lower_places",
             "rest_places", "width_place", "height_place", "stopped_place", "calls")  # fmt: skip
_NUMBERS = ("numbers", "reals", "wholes", "nearests", "lowers", "rests", "width", "height", "calls_count")

_TEXT = f"""\
define void @frame_by_record(ptr %record) {{
entry:
{"".join(_loaded(name, "ptr") for name in _POINTERS)}\
{"".join(_loaded(name, "i64") for name in _NUMBERS)}\
  store i64 %width, ptr %width_place
  store i64 %height, ptr %height_place
  store i64 0, ptr %stopped_place
  br label %number
{_copies("number", "entry", "compute", _NUMBER)}\
compute:
  call void %prologue(ptr %block)
  br label %real
{_copies("real", "compute", "whole", _REAL)}\
{_copies("whole", "real", "nearest", _WHOLE)}\
{_copies("nearest", "whole", "lower", _NEAREST)}\
{_copies("lower", "nearest", "rest", _LOWER)}\
{_copies("rest", "lower", "call", _REST)}\
{_loop("call", "calls_count", "rest", "done", _CALLED)}\
done:
  %at_stopped = getelementptr i64, ptr %record, i64 {_AT["stopped"]}
  %stopped = load i64, ptr %stopped_place
  store i64 %stopped, ptr %at_stopped
  ret void
}}
"""


def prepared() -> Address | None:
    """The function, which takes the address of a record. LLVM takes some milliseconds for it, once in a process."""
    return function_of(_TEXT, "frame_by_record")


class FrameRecord:
    """The record of the frames of one program, over one shape."""

    def __init__(
        self, uniforms: UniformReader, machine: PrologueMachine, block: PrologueBlock, shape: tuple[int, int],
        call: Address,
    ) -> None:  # fmt: skip
        self.shape = shape
        self.words = block.words
        """The numbers of a frame, where the calls find them."""
        self.calls: Any = None
        """The calls that it makes."""
        self._fillers = machine.fillers
        self._block = block
        self.inputs = uniforms.packed
        """Gives what a frame is computed from, by its bits: its uniforms, and the time if anything depends on it."""
        self._call = call
        given = (c_double * max(1, len(uniforms.names)))()
        self._given = memoryview(given).cast("B")[: 8 * len(uniforms.names)]
        """What a frame is computed from, for machine code."""
        copies = _copied(machine, block, uniforms.names, ctypes.addressof(given))
        places = {form: _pairs(pairs) for form, pairs in copies.items()}
        self._record = (c_int64 * len(_WORDS))()
        self._held = places, machine
        self._nothing = Launch(shape, {})
        self._ready: tuple[int, int] | None = None
        """The moment of the memory for which a frame is ready."""
        record: dict[str, int] = {
            "prologue": machine.address, "block": machine.block.address, "width": shape[1], "height": shape[0],
            **machine.extents, **{f"{form}s": len(pairs) for form, pairs in copies.items()},
            **{f"{form}_places": ctypes.addressof(pairs) for form, pairs in places.items()},
        }  # fmt: skip
        for name, value in record.items():
            self._record[_AT[name]] = value
        self._address = ctypes.addressof(self._record)

    @classmethod
    def of(
        cls, kernel: Kernel, shader: Shader, machine: PrologueMachine, shape: tuple[int, int]
    ) -> FrameRecord | None:
        """The record of a program of a kernel; None if a frame needs anything else but numbers and what is remembered,
        or this machine has no machine code. It has to be told what it `makes`."""
        block = PrologueBlock(shader)
        needs_more = bool(kernel.strands or kernel.pictures or kernel.stages)
        # Of whole numbers, the bits are copied; inputs are in double precision.
        needs_more |= any(form == "whole" for _, form, _ in block.uniforms)
        if needs_more or not block.is_simple(shape) or any(name != TIME for _, name in machine.block.coords):
            return None
        call = prepared()
        names = (TIME, *kernel.uniforms) if machine.block.coords else kernel.uniforms
        return None if call is None else cls(UniformReader(names), machine, block, shape, call)

    def makes(self, calls: CallList) -> None:
        """Makes these calls from now on."""
        self.calls = calls
        self._record[_AT["calls"]], self._record[_AT["calls_count"]] = ctypes.addressof(calls.words), calls.count

    def is_ready(self, memory: StateMemory) -> bool:
        """Whether it has been made ready for the next frame of a memory."""
        return self._ready == memory.moment

    def make_ready(self, memory: StateMemory) -> None:
        """Fills in where images are remembered in the next frame. The places that its calls draw to are filled in
        with this, as soon as the frame before is on its way: the card is at work then, and need not wait for it."""
        wholes = self._block.wholes
        if self._block.cells:
            memory.write_cells(self._block.cells, wholes)
        for at, slot in self._block.layers:
            wholes[at] = memory.first_layer(slot)
        self._ready = memory.moment

    def draw(self, inputs: bytes, memory: StateMemory) -> bool:
        """Makes the calls of a frame that is ready. Returns whether a loop of the prologue reached its limit."""
        self._given[:] = inputs
        for fill in self._fillers:
            fill(memory, self._nothing)
        self._call(self._address)
        return self._record[_STOPPED] != 0


_STOPPED = _AT["stopped"]


def _copied(
    machine: PrologueMachine, block: PrologueBlock, names: Sequence[str], given: int
) -> dict[str, list[tuple[int, int]]]:
    """Addresses from where to where numbers are copied, by the forms that they get: of uniforms, and the time, with
    these names, which lie from an address on, to the prologue, as numbers in double precision; and of these and of what
    the prologue computes to the block of a program."""
    scalars, words, numbers = (array.ctypes.data for array in (machine.scalars, block.words, machine.block.numbers))
    at_input = {name: given + 8 * at for at, name in enumerate(names)}
    at_scalar = {number: scalars + 8 * at for at, number in machine.reals}
    # These are counted in halves of a scalar.
    at_scalar |= {number: scalars + 4 * at for at, number in machine.wholes}
    copies: dict[str, list[tuple[int, int]]] = {
        "number": [
            (at_input[name], numbers + 8 * at) for at, name in (*machine.block.coords, *machine.block.uniforms)
        ],
        **{form: [(at_scalar[number], words + 4 * at) for at, number in found] for form, found in block.locals.items()},
    }
    for at, form, name in block.uniforms:
        copies[form].append((at_input[name], words + 4 * at))
    return copies


def _pairs(pairs: Sequence[tuple[int, int]]) -> Any:
    """Pairs of addresses, one after the other."""
    flat = [address for pair in pairs for address in pair]
    return (c_int64 * max(2, len(flat)))(*flat)


class RecordedSubgraph(ABC):
    """A subgraph whose ticks may have a record."""

    unit: Unit
    stillness: Stillness
    drawn: PictureHandle | None
    """The picture of the last tick."""
    may_record = False
    """Whether its ticks may have a record."""
    _record: FrameRecord | None = None
    _recorded = b""
    """What the record has drawn last from, by its bits, unless another launch has drawn since."""

    @property
    @abstractmethod
    def prologue(self) -> LaunchPrologue:
        """The prologue of its ticks."""

    def by_record(self, env: Env, shape: tuple[int, int]) -> PictureHandle | None:
        """One tick, if a record of its launches can draw it: its picture, which is the last one if nothing in it
        changes. Else None, and nothing has been done."""
        record = self._record or self._first_record()
        if record is None or shape != record.shape:
            return None
        inputs = record.inputs(env)
        if self.drawn is not None and self._recorded == inputs and not self.unit.kernel.remembers:
            return self.drawn
        self.drawn = self.draw_by(record, inputs, env)
        self.stillness.forget()
        self._recorded = inputs
        return self.drawn

    def _first_record(self) -> FrameRecord | None:
        """The record, once the prologue is machine code."""
        machine = self.prologue.machine
        if machine is not None and self.may_record:
            self._record = self.new_record(machine)
            self.may_record = self._record is not None
        return self._record

    @abstractmethod
    def new_record(self, machine: PrologueMachine) -> FrameRecord | None:
        """The record of its ticks; None if they cannot have one."""

    @abstractmethod
    def draw_by(self, record: FrameRecord, inputs: bytes, env: Env) -> PictureHandle:
        """One tick by its record: draws a picture and advances the state."""

    def forget_record(self) -> None:
        """Another launch draws."""
        self._recorded = b""
