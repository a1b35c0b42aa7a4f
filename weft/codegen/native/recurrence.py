"""Waves in vectors: each follows from the two before it, since `s(n + L) = 2 cos(L δ) · s(n) − s(n − L)` for a sine of
an angle that grows by δ from sample to sample."""

from __future__ import annotations

from dataclasses import dataclass

from weft.codegen.native.lanes import LlvmLanes
from weft.codegen.native.types import LlvmValue
from weft.codegen.native.writer import FunctionWriter
from weft.codegen.values import Node
from weft.ops import double


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A wave within a loop over vectors: `now` and `before` are its last two vectors there, which `first` and `second`
    are at the beginning; `factor` is 2 cos(L δ)."""

    now: LlvmValue
    before: LlvmValue
    first: LlvmValue
    second: LlvmValue
    factor: LlvmValue

    def following(self, w: FunctionWriter) -> LlvmValue:
        """The next vector."""
        return w.fma(self.factor, self.now, w.neg(self.before))

    def phis(self, w: FunctionWriter, entering: str, following: LlvmValue, latch: str) -> list[str]:
        of = w.type("real")
        return [
            f"  {self.now.text} = phi {of} [ {self.second.text}, %{entering} ], [ {following.text}, %{latch} ]",
            f"  {self.before.text} = phi {of} [ {self.first.text}, %{entering} ], [ {self.now.text}, %{latch} ]",
        ]


def recurrence(w: FunctionWriter, node: Node) -> Recurrence:
    """Begins a wave anew, with the angle that it has at the first sample of a chunk (`%time`), and with what that grows
    by (`%step` is how far apart two samples are). Both lose their whole turns first, so that the angles of the samples
    are rounded far less than their times are: what lies between two of them counts many times over in what follows.

    Only two registers are computed as sines: those behind them, up to two vectors, follow as all others do.
    """
    width, count = min(w.isa.doubles, w.lanes), 2 * max(1, w.lanes // w.isa.doubles)
    angle, growth = _angle(w, node)
    # As many as a register has lanes: then one function serves all.
    by_register, by_vector, *_ = _factors(w, growth, *((width, w.lanes) * width)[: max(2, width)])
    first = -w.lanes
    with w.narrow(width):
        registers = [_wave(w, node.attr, angle, growth, start) for start in (first, first + width)]
        factor = w.splat(by_register, "real")
        while len(registers) < count:
            registers.append(w.fma(factor, registers[-1], w.neg(registers[-2])))
    before, now = (_joined(w, part, width) for part in (registers[: count // 2], registers[count // 2 :]))
    name, behind = (LlvmValue(w.name(what), "real") for what in ("now", "before"))
    return Recurrence(name, behind, before, now, w.splat(by_vector, "real"))


def _angle(w: FunctionWriter, node: Node) -> tuple[str, str]:
    """The angle at the first sample, and what it grows by, in half turns from −1 to 1."""
    slope, offset = (w.first(w.value(arg)) for arg in node.args)
    with w.narrow(1):
        each = w.splat(slope, "real")
        angle = w.fma(each, w.splat("%time", "real"), w.splat(offset, "real"))
        growth = w.mul(each, w.splat("%step", "real"))
        return w.first(double.within_turn(w, angle)), w.first(double.within_turn(w, growth))


def _wave(w: FunctionWriter, row: str, angle: str, growth: str, first: int) -> LlvmValue:
    """A wave at the samples from number `first` of the chunk on."""
    numbers = w.each([w.reals.text(float(first + lane)) for lane in range(w.lanes)], "real")
    angles = w.fma(numbers, w.splat(growth, "real"), w.splat(angle, "real"))
    return _called(w, row, angles)


def _factors(w: FunctionWriter, growth: str, *distances: int) -> tuple[str, ...]:
    """2 cos of what the angle grows by over so many samples, for each of some distances."""
    with w.narrow(len(distances)):
        numbers = w.each([w.reals.text(float(distance)) for distance in distances], "real")
        doubled = w.mul(_called(w, "cospi", w.mul(w.splat(growth, "real"), numbers)), w.real(2))
        return tuple(
            w.put(f"extractelement {w.type('real')} {doubled.text}, i64 {lane}") for lane in range(len(distances))
        )


def _called(w: FunctionWriter, row: str, x: LlvmValue) -> LlvmValue:
    """A row as a call: what runs once a chunk is worth less time to the processor than it takes LLVM."""
    of, name = w.type("real"), f"@{row}.{w.lanes}"
    if name not in w.helpers:
        inner = LlvmLanes(w.isa, w.lanes, w.reals)
        given = LlvmValue("%x", "real")
        found = (double.sine_of_half_turns if row == "sinpi" else double.cosine_of_half_turns)(inner, given)
        w.declared |= inner.declared
        w.helpers[name] = [
            f"define internal {of} {name}({of} %x) #0 {{", "entry:", *inner.text, f"  ret {of} {found.text}", "}",
        ]  # fmt: skip
    return LlvmValue(w.put(f"call {of} {name}({of} {x.text})"), "real")


def _joined(w: FunctionWriter, registers: list[LlvmValue], width: int) -> LlvmValue:
    """Registers, each of so many lanes, as one vector."""
    while len(registers) > 1:
        of = w.reals.vector(width, "real")
        order = ", ".join(f"i32 {lane}" for lane in range(2 * width))
        registers = [
            LlvmValue(w.put(f"shufflevector {of} {a.text}, {of} {b.text}, <{2 * width} x i32> <{order}>"), "real")
            for a, b in zip(registers[::2], registers[1::2], strict=True)
        ]
        width *= 2
    return registers[0]
