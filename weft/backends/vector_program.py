"""What the vector machine makes of a section: a list of calls on registers, and the arrays that stand behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

# What an array holds: the types of values, and places in memory.
Kind: TypeAlias = Literal["real", "truth", "bits", "index"]


class Extent(IntEnum):
    """Over what a value varies within a tile: nothing (an array without axes), its columns ([1, width]), its rows
    ([height, 1]), or both ([height, width])."""

    ONE = 0
    COLUMNS = 1
    ROWS = 2
    ALL = 3

    def shape(self, height: int, width: int) -> tuple[int, ...]:
        """The shape of an array in a tile of this size."""
        if self == Extent.ONE:
            return ()
        return (height if self & Extent.ROWS else 1, width if self & Extent.COLUMNS else 1)


def joined(extents: Iterable[Extent]) -> Extent:
    """Over what something varies that is computed from values of these extents."""
    bits = 0
    for extent in extents:
        bits |= extent
    return _EXTENTS[bits]


_EXTENTS = tuple(Extent)


class Register(NamedTuple):
    """Scratch memory of one kind and extent."""

    kind: Kind
    extent: Extent
    number: int


class Number(NamedTuple):
    """A constant, as an array without axes."""

    value: float
    kind: Kind = "real"


class Filled(NamedTuple):
    """A whole register of one number, which is never written: numpy's minimum and maximum are several times faster
    on it than on the number itself."""

    value: float
    extent: Extent


class Scalar(NamedTuple):
    """A number that is given anew for each launch: a uniform, a coordinate or a local, by its name or number."""

    source: Literal["uniform", "coord", "local", "pixels"]
    key: str | int
    kind: Kind


class Line(NamedTuple):
    """Numbers that are given anew for each launch, one a column or one a row: a coordinate, a local, or packed pixels.
    `extent` is ALL for what changes at every element of a single row."""

    source: Literal["coord", "local", "pixels"]
    key: str | int
    kind: Kind
    extent: Extent


class Kept(NamedTuple):
    """The place where a section leaves a line for the element section."""

    line: Line


class Body(NamedTuple):
    """The steps of a loop's body."""

    steps: tuple[Step, ...]


class _Here:
    """Stands for the `Tile` that the steps run on."""


HERE = _Here()

Operand: TypeAlias = Any
"""What a step is called with: one of the above, which are replaced by what they stand for, or anything else."""


class Step(NamedTuple):
    """One call."""

    function: Callable[..., object]
    operands: tuple[Operand, ...]


Bound: TypeAlias = Sequence[tuple[Callable[..., object], tuple[Any, ...]]]
"""Steps with the arrays that they are called with."""


@dataclass(frozen=True, slots=True)
class Program:
    """The steps of one section, and what they refer to."""

    steps: tuple[Step, ...]
    registers: Mapping[tuple[Kind, Extent], int]
    """How many registers of each sort it takes."""
    scalars: tuple[Scalar, ...]
    lines: tuple[Line, ...]

    def bytes_per_element(self, real: int) -> int:
        """Roughly what its registers take for each element of a tile, with reals of so many bytes."""
        sizes: Mapping[Kind, int] = {"real": real, "truth": 1, "bits": 4, "index": 8}
        return sum(count * sizes[kind] for (kind, extent), count in self.registers.items() if extent == Extent.ALL)


def run(steps: Bound) -> None:
    """Makes all the calls in turn."""
    for function, operands in steps:
        function(*operands)


def dtype_of(kind: Kind, real: np.dtype[Any]) -> np.dtype[Any]:
    """The type of an array's items, where `real` is that of reals."""
    if kind == "real":
        return real
    return np.dtype({"truth": np.bool_, "bits": np.uint32, "index": np.intp}[kind])


class Scalars:
    """The arrays behind scalars, in one type of reals."""

    def __init__(self, scalars: Iterable[Scalar], real: np.dtype[Any]) -> None:
        self.arrays: dict[Scalar, Array] = {}
        self._groups: list[tuple[list[Scalar], Array]] = []
        listed = sorted(set(scalars), key=str)
        for kind in ("real", "truth", "bits"):
            group = [scalar for scalar in listed if scalar.kind == kind]
            values = np.zeros(len(group), dtype_of(kind, real))
            self._groups.append((group, values))
            self.arrays.update((scalar, values[at, ...]) for at, scalar in enumerate(group))

    def fill(self, value_of: Callable[[Scalar], float]) -> None:
        """Takes the values of a launch."""
        for group, values in self._groups:
            if group:
                values[:] = [value_of(scalar) for scalar in group]


class Lines:
    """The arrays behind lines, for a picture or a tile of some size: [1, width] or [height, 1] each."""

    def __init__(self, lines: Iterable[Line], shape: tuple[int, int], real: np.dtype[Any]) -> None:
        self.arrays: dict[Line, Array] = {}
        self._along: dict[bool, list[Array]] = {False: [], True: []}
        """The arrays that hold all lines of one kind side by side: those along rows, those along columns."""
        height, width = shape
        listed = sorted(set(lines), key=str)
        for down in (False, True):
            for kind in ("real", "truth", "bits"):
                group = [line for line in listed if (line.extent == Extent.ROWS) == down and line.kind == kind]
                size = (len(group), height, 1) if down else (len(group), 1, width)
                values = np.zeros(size, dtype_of(kind, real))
                self.arrays.update((line, values[at]) for at, line in enumerate(group))
                self._along[down].append(values)

    def take_columns(self, whole: Lines, columns: slice) -> None:
        """Copies a stretch of the lines along rows; the size is that of this object."""
        for part, values in zip(self._along[False], whole._along[False], strict=True):
            if len(part):
                np.copyto(part, values[:, :, columns])

    def take_rows(self, whole: Lines, rows: slice) -> None:
        """Copies a stretch of the lines along columns."""
        for part, values in zip(self._along[True], whole._along[True], strict=True):
            if len(part):
                np.copyto(part, values[:, rows, :])


class Registers:
    """The memory behind the registers of a program, and their views for tiles of any size up to a capacity."""

    def __init__(self, program: Program, capacity: tuple[int, int], real: np.dtype[Any]) -> None:
        self._capacity = capacity
        self._real = real
        self._memory = {
            Register(kind, extent, number): self._allocate(extent, dtype_of(kind, real))
            for (kind, extent), count in program.registers.items()
            for number in range(count)
        }
        self._filled: dict[Filled, Array] = {}

    def _allocate(self, extent: Extent, dtype: np.dtype[Any]) -> Array:
        return np.empty(int(np.prod(extent.shape(*self._capacity))), dtype)

    def bind(self, steps: Iterable[Step], shape: tuple[int, int], known: Mapping[Any, Any]) -> Bound:
        """The steps for tiles of one size. `known` has what stands behind every other operand that is replaced."""
        return [(step.function, tuple(self._resolve(o, shape, known) for o in step.operands)) for step in steps]

    def _resolve(self, operand: Operand, shape: tuple[int, int], known: Mapping[Any, Any]) -> Any:
        match operand:
            case Register():
                return _view(self._memory[operand], operand.extent, shape)
            case Number(value, kind):
                return np.array(value, dtype_of(kind, self._real))
            case Filled(value, extent):
                if operand not in self._filled:
                    self._filled[operand] = self._allocate(extent, self._real)
                    self._filled[operand].fill(value)
                return _view(self._filled[operand], extent, shape)
            case Body(steps):
                return self.bind(steps, shape, known)
            case Scalar() | Line() | Kept() | _Here():
                return known[operand]
        if type(operand) is tuple:
            return tuple(self._resolve(each, shape, known) for each in operand)
        return operand


def _view(memory: Array, extent: Extent, shape: tuple[int, int]) -> Array:
    wanted = extent.shape(*shape)
    return memory[: int(np.prod(wanted))].reshape(wanted)
