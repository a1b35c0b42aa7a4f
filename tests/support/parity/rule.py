"""The rule of parity: a machine's pictures are those of the reference, but for what single precision makes of them.

A *value* is an output of one element in one tick as it is, or one of the four bytes of its pixel (of a case that is not
`packed`, bytes are those that its outputs make). It is *near* if it
is within `GENERATED` of the reference, or within a level of 255. (Sounds have no pixels, and are computed in double
precision everywhere: there numbers move by units of that, and near means within `HEARD`.) Every value that is
not near must be *explained*, by the reference itself: `moved.MovedReference` plays the program again, with each number
rounded to single precision and moved by a unit in the last place or not at all, by chance. The reference and these runs
span an interval for each value. A value is explained if it is within that interval, widened on both sides by the
interval's own width and by `GENERATED` or `HEARD`.

- A well-conditioned value moves by some units in the last place, so its interval is hardly wider than the tolerance,
  and nothing but rounding fits into it.
- A value next to a hard edge has some runs on either side of it, and the interval spans both sides. Its neighbours, all
  of whose runs are on one side, have to be near as before.
- A value that depends on digits which single precision does not have (a hash of a day in samples) has runs all over its
  range, so that any value within the range is explained, and no value outside of it.
- Widening by the width itself allows for what chance leaves out: rounding errors that all have one sign, and a
  library's sine, which may be wrong by more than half a unit.
- A remainder that is not less than its period is never explained: the result of `%` is in 0 … b, without b, on every
  machine, whatever digits it lacks.
- The alpha of a pixel that no output gives is opaque, to the bit.
- NaN is explained by a run that is NaN, an infinity by a run that is the same one; a run that is infinite leaves the
  interval open on that side.

There are as many runs as it takes, up to 200. A difference that they do not explain has to be investigated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tests.support.parity.cases import Case
from tests.support.parity.moved import MovedReference
from tests.support.tolerances import LEVELS, Tolerance
from weft.backends.cpu import IN_DOUBLE
from weft.backends.executors import Executable, Executor
from weft.backends.launch import Floats, StateMemory, channels, pack
from weft.codegen.kernel import Kernel
from weft.codegen.open_numbers import without_numbers
from weft.codegen.values import Line, Node, Scalar
from weft.ir.rates import Rate

# The numbers of runs after which to look at what they explain: a few explain nearly all values. The others are tried
# with many runs, beginning with this number of elements: if there is an error, these are enough to show it.
_FEW, _MANY, _ENOUGH = (3, 8, 24), (24, 64, 200), 4

_Numbers: TypeAlias = npt.NDArray[np.intp]


class Difference(NamedTuple):
    """A value that is neither near nor explained. `channel` is that of the pixel, or None for an output as it is; `low`
    and `high` are what the runs of the output span (of a pixel's alpha, if no output gives it, the `output` is -1)."""

    tick: int
    output: int
    row: int
    column: int
    channel: int | None
    reference: float
    candidate: float
    low: float
    high: float

    def __str__(self) -> str:
        what = f"output {self.output}" + ("" if self.channel is None else f", byte {self.channel} of the pixel")
        return (
            f"tick {self.tick}, row {self.row}, column {self.column}, {what}: {self.candidate!r}, not "
            f"{self.reference!r}; moved, the output of the reference is {self.low!r} … {self.high!r}"
        )


@dataclass(frozen=True)
class Outcome:
    """What a comparison found: how many bytes a picture has, how many of them are not near in each tick, how many
    values were explained, and some of those that were not, if there are any."""

    values: int
    off: tuple[int, ...]
    explained: int
    unexplained: tuple[Difference, ...]


def off_share(outcomes: Sequence[Outcome]) -> float:
    """The share of the bytes of pictures that are more than a level off, whether that is explained or not; without the
    program that is off most: one may show digits that single precision does not have."""
    *most, _ = sorted(outcomes, key=lambda each: sum(each.off))
    return sum(sum(each.off) for each in most) / sum(each.values * len(each.off) for each in most)


@dataclass(frozen=True)
class _Suspects:
    """Values that are not near: for each its place, what the candidate has there, and what the reference has. `channel`
    is -1 for outputs as they are."""

    tick: _Numbers
    output: _Numbers
    row: _Numbers
    column: _Numbers
    channel: _Numbers
    candidate: Floats
    reference: Floats

    def only(self, which: npt.NDArray[np.bool_]) -> _Suspects:
        return _Suspects(*(getattr(self, field.name)[which] for field in fields(self)))

    @property
    def elements(self) -> list[tuple[int, int]]:
        """The row and column of each."""
        return list(zip(self.row.tolist(), self.column.tolist(), strict=True))


def compare(case: Case, executor: Executor) -> Outcome:
    """Holds what an executor shows, or plays, against the reference."""
    images = executor.widest if executor.name in IN_DOUBLE else np.float32
    return compare_loaded(case, executor.load(case.kernel), images)


def compare_loaded(case: Case, executable: Executable, images: npt.DTypeLike = np.float32) -> Outcome:
    """`compare`, for the kernel of the case when it has been loaded; `images` is the type of what images remember."""
    if case.is_sound:
        planes = _heard(case, executable)
        off = ~case.tolerance.agreement(planes, case.expected)
        suspects = _suspects_of_planes(case, planes)
    else:
        planes, levels = _played(case, executable, images)
        expected = _levels(case.expected)
        off = np.abs(levels - expected) > LEVELS
        if len(case.kernel.outputs) < 4:
            off[:, 3] = levels[:, 3] != expected[:, 3]
        suspects = _suspects(case, planes, levels, expected, off)
    count = len(suspects.tick)
    unexplained = _beyond_periods(case, planes)
    moved = MovedReference(case.kernel)
    suspects = suspects.only(~_tried(case, moved, suspects, _FEW).explained)
    enough = _ENOUGH
    while len(suspects.tick) and not unexplained:
        elements = suspects.elements
        first = set(sorted(set(elements))[:enough])
        chosen = np.array([element in first for element in elements])
        unexplained = _tried(case, moved, suspects.only(chosen), _MANY).differences
        if not unexplained:
            suspects = suspects.only(~chosen)
        enough *= 8
    return Outcome(off[0].size, tuple(map(int, off.sum(axis=(1, 2, 3)))), count - len(suspects.tick), unexplained)


def _beyond_periods(case: Case, planes: Floats) -> tuple[Difference, ...]:
    """Outputs that are remainders of a constant period, and are not less than that."""
    found, kernel = [], without_numbers(case.kernel)
    for output, shown_node in enumerate(kernel.section(Rate.ELEMENT).outputs):
        node = _remainder(kernel, shown_node)
        if node is None or node.args[1].op != "const":
            continue
        shown = planes[:, output]
        period = shown.dtype.type(node.args[1].attr) if case.is_sound else float(np.float32(node.args[1].attr))
        inside = (shown >= 0) & (shown < period) if period > 0 else (period < shown) & (shown <= 0)
        for tick, row, column in zip(*np.nonzero(~inside & ~np.isnan(shown)), strict=True):
            expected = float(case.expected[tick, output, row, column])
            low, high = sorted((0.0, float(period)))
            value = float(shown[tick, row, column])
            found.append(
                Difference(int(tick), output, int(row), int(column), None, expected, value, low, high)
            )
    return tuple(found)


def _remainder(kernel: Kernel, node: Node) -> Node | None:
    """The remainder that a value is, if it is one; it may be computed in a rarer section, and be kept below its
    period."""
    match node.attr:
        case Scalar("local", int(number)) | Line("local", int(number)):
            node = kernel.section(kernel.locals[number].rate).locals[number]
    if node.op == "select":
        node = node.args[2]
    return node if node.op == "mod" else None


def _played(case: Case, executable: Executable, images: npt.DTypeLike) -> tuple[Floats, Floats]:
    """What a machine shows: outputs [launches, outputs, height, width], and bytes [launches, 4, height, width]."""
    shape = case.launches[0].shape
    memory = StateMemory(case.kernel.slots, shape, images)
    planes = np.stack([np.array(executable.planes(memory, launch), np.float64) for launch in case.launches])
    if not case.packed:
        return planes, _levels(planes)
    memory = StateMemory(case.kernel.slots, shape, images)
    levels = np.zeros((len(case.launches), *shape, 4), np.uint8)
    for launch, pixels in zip(case.launches, levels, strict=True):
        executable.rgba8(memory, launch, pixels)
    return planes, np.moveaxis(levels, -1, 1).astype(np.float64)


def _heard(case: Case, executable: Executable) -> Floats:
    """What a machine plays: outputs [launches, outputs, 1, samples]."""
    memory = StateMemory(case.kernel.slots)
    return np.stack([np.array(executable.planes(memory, launch), np.float64) for launch in case.launches])


def _suspects_of_planes(case: Case, planes: Floats) -> _Suspects:
    at = tick, output, row, column = np.nonzero(~case.tolerance.agreement(planes, case.expected))
    channel = np.full_like(tick, -1)
    return _Suspects(tick, output, row, column, channel, planes[at], case.expected[at])


def _levels(planes: Floats) -> Floats:
    """The bytes of outputs: [launches, 4, height, width]."""
    pixels = np.zeros((len(planes), *planes.shape[2:], 4), np.uint8)
    for launch, picture in zip(planes, pixels, strict=True):
        pack(launch, picture)
    return np.moveaxis(pixels, -1, 1).astype(np.float64)


def _suspects(case: Case, planes: Floats, levels: Floats, expected: Floats, off: npt.NDArray[np.bool_]) -> _Suspects:
    raw = _suspects_of_planes(case, planes)
    packed_tick, channel, packed_row, packed_column = packed_at = np.nonzero(off)
    shown = channels(len(case.kernel.outputs))
    output_of = np.array((*shown, -1)[:4])
    return _Suspects(
        tick=np.concatenate([raw.tick, packed_tick]),
        output=np.concatenate([raw.output, output_of[channel]]),
        row=np.concatenate([raw.row, packed_row]),
        column=np.concatenate([raw.column, packed_column]),
        channel=np.concatenate([raw.channel, channel]),
        candidate=np.concatenate([raw.candidate, levels[packed_at]]),
        reference=np.concatenate([raw.reference, expected[packed_at]]),
    )


@dataclass(frozen=True)
class _Trial:
    """What runs [runs, values] say of values: the first is the reference itself."""

    suspects: _Suspects
    runs: Floats
    explained: npt.NDArray[np.bool_]

    @property
    def differences(self) -> tuple[Difference, ...]:
        """The values that are not explained."""
        s = self.suspects
        low, high = np.fmin.reduce(self.runs), np.fmax.reduce(self.runs)
        return tuple(
            Difference(
                tick=int(s.tick[k]),
                output=int(s.output[k]),
                row=int(s.row[k]),
                column=int(s.column[k]),
                channel=None if s.channel[k] < 0 else int(s.channel[k]),
                reference=float(s.reference[k]),
                candidate=float(s.candidate[k]),
                low=float(low[k]),
                high=float(high[k]),
            )
            for k in np.flatnonzero(~self.explained)
        )


def _tried(case: Case, moved: MovedReference, suspects: _Suspects, looks: tuple[int, ...]) -> _Trial:
    """Makes runs until they explain all values, or there is no further look at them."""
    if not len(suspects.tick):
        return _Trial(suspects, np.empty((1, 0)), np.empty(0, bool))
    elements = sorted(set(suspects.elements))
    number = {element: at for at, element in enumerate(elements)}
    at = (suspects.tick, suspects.output, np.array([number[element] for element in suspects.elements]))
    launches = case.launches[: int(suspects.tick.max()) + 1]

    def values(planes: Floats) -> Floats:
        """Those that are suspect, from outputs [launches, outputs, elements]. After the last output comes the alpha
        that no output gives."""
        opaque = np.ones((len(planes), 1, planes.shape[2]))
        return np.asarray(np.concatenate([planes, opaque], axis=1)[at])

    rows, columns = zip(*elements, strict=True)
    made = [values(case.expected[: len(launches)][:, :, rows, columns])]
    for look in looks:
        while len(made) <= look:
            made.append(values(moved.play(launches, elements, seed=len(made) - 1)))
        runs = np.stack(made)
        explained = _explained(runs, suspects, case.tolerance)
        if explained.all():
            break
    return _Trial(suspects, runs, explained)


def _explained(runs: Floats, suspects: _Suspects, tolerance: Tolerance) -> npt.NDArray[np.bool_]:
    """Whether runs [runs, values], of which the first is the reference itself, explain each value."""
    candidate = suspects.candidate
    with np.errstate(all="ignore"):
        finite = np.where(np.isfinite(runs), runs, np.nan)
        least, greatest = np.fmin.reduce(finite), np.fmax.reduce(finite)
        size = np.fmax(np.abs(least), np.abs(greatest))
        margin = np.nan_to_num(greatest - least + tolerance.relative * size) + tolerance.absolute
        low, high = np.fmin.reduce(runs) - margin, np.fmax.reduce(runs) + margin
        no_number = np.isnan(runs).any(axis=0)
        within = np.isfinite(candidate) & (low <= candidate) & (candidate <= high)
        real = np.where(np.isnan(candidate), no_number, within | (runs == candidate).any(axis=0))
        level = (_level(low) - LEVELS <= candidate) & (candidate <= _level(high) + LEVELS)
        level |= no_number & (candidate <= LEVELS)
        level &= suspects.output >= 0
    return np.asarray(np.where(suspects.channel < 0, real, level))


def _level(values: Floats) -> Floats:
    return np.asarray(np.floor(np.fmin(np.fmax(values, 0.0), 1.0) * 255 + 0.5))
