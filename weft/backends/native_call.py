"""The boundary to machine code: the one place where addresses of arrays are handed to it.

Machine code checks nothing. So whatever an address is taken of is checked here, once for each array: its type, that it
has no gaps, its alignment, and that it is as long as the code will believe.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.bands import BandPool
from weft.backends.llvm import Functions
from weft.codegen.native.layout import Field, Word


class ArgumentBlock:
    """The words that the functions of a kernel are given, and the arrays that these point to."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._words = np.zeros(len(fields), np.int64)
        self._reals = self._words.view(np.float64)
        self._places = {field: at for at, field in enumerate(fields)}
        self._held: dict[Field, npt.NDArray[Any]] = {}
        self.address = self._words.ctypes.data

    def set_number(self, field: Field, number: int) -> None:
        self._words[self._places[field]] = number

    def set_real(self, field: Field, number: float) -> None:
        self._reals[self._places[field]] = number

    def number(self, field: Field) -> int:
        return int(self._words[self._places[field]])

    def set_array(
        self, field: Field, array: npt.NDArray[Any], dtype: type[np.generic], length: int, writes: bool = False
    ) -> None:
        """Points a word to an array of `length` elements, which is kept until another one takes its place. Raises
        ValueError if it is anything else, or cannot be written to where the code `writes`."""
        if self._held.get(field) is array:
            return
        flags = array.flags
        fits = array.dtype == dtype and array.size == length and flags.c_contiguous and flags.aligned
        if not fits or (writes and not flags.writeable):
            raise ValueError(f"{field}: machine code cannot be given {_problems(array, dtype, length, writes)}")
        self._held[field] = array
        self._words[self._places[field]] = array.ctypes.data

    def release(self, *fields: Field) -> None:
        """Lets go of arrays that belong to somebody else."""
        for field in fields:
            self._held.pop(field, None)


def _problems(array: npt.NDArray[Any], dtype: type[np.generic], length: int, writes: bool) -> str:
    """What is wrong with an array."""
    flags = array.flags
    found = [
        words
        for holds, words in (
            (array.dtype != dtype or array.size != length, f"{length} × {np.dtype(dtype)} are needed"),
            (not flags.c_contiguous, "it has gaps"),
            (not flags.aligned, "it is not aligned"),
            (writes and not flags.writeable, "it is read-only"),
        )
        if holds
    ]
    return f"{array.size} × {array.dtype}: {', '.join(found)}"


def call(functions: Functions, name: str, block: ArgumentBlock) -> None:
    """Runs one function in this thread."""
    functions[name](block.address)


def call_at_once(functions: Functions, name: str, block: ArgumentBlock, threads: int, pool: BandPool) -> None:
    """Runs one function in several threads at once, which share its work; comes back when all are done."""
    block.set_number(Word.NEXT, 0)
    if threads == 1:
        functions[name](block.address)
    else:
        pool.run(lambda number: functions[name](block.address), threads)
