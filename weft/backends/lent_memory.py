"""Memory of a device that is lent as an array: it goes back when nobody refers to the array any more."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt


class _Loan:
    """What an array of such memory refers to, as all views of it do."""

    __slots__ = ("__array_interface__", "_give_back")

    def __init__(self, address: int, shape: tuple[int, ...], give_back: Callable[[], None]) -> None:
        self.__array_interface__ = {"shape": shape, "typestr": "|u1", "data": (address, True), "version": 3}
        self._give_back = give_back

    def __del__(self) -> None:
        self._give_back()


def lent(address: int, shape: tuple[int, ...], give_back: Callable[[], None]) -> npt.NDArray[np.uint8]:
    """The bytes from an address on as an array that cannot be written. The memory stays as it is until `give_back` is
    called, by the thread that drops the last reference to the array or to a view of it. It must not wait or raise."""
    return np.asarray(_Loan(address, shape, give_back))
