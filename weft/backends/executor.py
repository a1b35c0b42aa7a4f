"""What the machines that execute bytecode on the CPU have in common."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from weft.backends.launch import Launch, Reals
from weft.backends.memory import StateMemory
from weft.backends.pixels import channels, check_picture, pack
from weft.codegen.base import Kernel
from weft.ir.expr import StateSlot
from weft.ir.rates import Rate


class Executable(Protocol):
    """A kernel that is ready to run. Its launches share scratch memory, so they are made one after another: a thread
    that asks for one meanwhile waits."""

    kernel: Kernel

    @property
    def tier(self) -> int | None:
        """How much was done for the speed of its pictures, from 1; None where there is only one way."""
        ...

    def planes(self, memory: StateMemory, launch: Launch) -> Reals:
        """The outputs as an array [outputs, height, width], as they are: neither clamped nor freed of NaN. Then
        advances the state of a grid kernel. Raises ValueError if the launch does not fit the kernel."""
        ...

    def rgba8(self, memory: StateMemory, launch: Launch, out: npt.NDArray[np.uint8]) -> None:
        """Writes the outputs as a picture into `out` [height, width, 4], without gaps; then advances the state.

        One output is a gray, three are red, green and blue, a fourth is alpha, which else is opaque. NaN is 0, the
        rest is clamped to 0…1; a half rounds up. Raises ValueError if the launch or `out` does not fit the kernel.
        """
        ...


def pack_planes(executable: Executable, memory: StateMemory, launch: Launch, out: npt.NDArray[np.uint8]) -> None:
    """`Executable.rgba8` for those that compute planes first."""
    channels(len(executable.kernel.outputs))
    check_picture(out, launch.shape)
    pack(executable.planes(memory, launch), out)


NOTHING: Mapping[bool, object] = MappingProxyType({})
"""No translations."""


class RefusedError(Exception):
    """An executor cannot make code of a kernel. Says why."""


# A longer reason is cut.
_LONGEST_REASON = 200


@contextmanager
def making(what: str) -> Iterator[None]:
    """Turns whatever a code generator raises into a RefusedError: another executor can run the kernel. A caller checks
    first what it would be to blame for itself."""
    try:
        yield
    except (RefusedError, MemoryError):
        raise
    except Exception as failure:
        words = " ".join(f"{type(failure).__name__}: {failure}".split())[:_LONGEST_REASON]
        raise RefusedError(f"no {what} could be made of it ({words}), which is a bug in weft") from failure


@dataclass(frozen=True, slots=True)
class Refused:
    """What `translate` gives for a kernel that no code could be made of: why, and what the next executor made of it.
    It can be pickled."""

    reason: str
    instead: object = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A kernel runs on the executor `target`, since `origin` could make no code of it."""

    kernel: str
    origin: str
    target: str
    reason: str

    def __str__(self) -> str:
        return f"{self.kernel} runs on {self.target}, not {self.origin}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Refusals:
    """What was refused, until somebody asks. May be used from any thread; where nobody asks, only the last are kept."""

    _waiting: deque[Refusal] = field(default_factory=lambda: deque(maxlen=32))

    def add(self, refusal: Refusal) -> None:
        if refusal not in self._waiting:
            self._waiting.append(refusal)

    def take(self) -> list[Refusal]:
        """What was refused since this was asked last, oldest first."""
        found: list[Refusal] = []
        while self._waiting:
            found.append(self._waiting.popleft())
        return found


class Executor(Protocol):
    """Makes kernels ready to run."""

    name: str
    refusals: Refusals

    @property
    def widest(self) -> type[np.floating[Any]]:
        """The widest reals that images of state may have."""
        ...

    def translate(self, kernel: Kernel, packed: bool, tier: int = 1) -> object | None:
        """The part of loading that needs neither device nor memory, for outputs as planes or `packed` as pixels; None
        where there is nothing to prepare, or no such tier; `Refused` where it fails, which `load` takes as well. It can
        be pickled, and means the same in another process. Raises ValueError if the outputs cannot be packed."""
        ...

    def load(self, kernel: Kernel, codes: Mapping[bool, object] = NOTHING) -> Executable:
        """`codes` holds what `translate` gave for the kernel, by `packed`. What is missing is made when it is first
        needed. Where that fails, the kernel runs on the next executor, which is noted in `refusals`."""
        ...


def check(kernel: Kernel, memory: StateMemory, launch: Launch) -> None:
    """Raises ValueError if the launch lacks something that the kernel reads, or a shape does not fit."""
    missing = [name for name, _ in kernel.coords if name not in launch.coords]
    missing += [name for name in kernel.uniforms if name not in launch.uniforms]
    missing += [str(ref) for ref in kernel.strands if ref not in launch.strands]
    missing += [path for path in kernel.pictures if path not in launch.pictures]
    missing += [slot.key for slot in kernel.slots if not _remembers(memory, slot)]
    missing += [path for path in kernel.pictures if path in launch.pictures and not launch.pictures[path].size]
    if missing:
        raise ValueError(f"{kernel.name}: the launch lacks {', '.join(missing)}")
    _check_shape(kernel, memory, launch)
    for name, rate in kernel.coords:
        _check_coordinate(kernel, launch, name, rate)


def _remembers(memory: StateMemory, slot: StateSlot) -> bool:
    """Whether memory has room for all that a slot keeps."""
    found = memory.slots.get(slot.key)
    return found is not None and (found.depth, found.planes, found.image) == (slot.depth, slot.planes, slot.image)


def _check_shape(kernel: Kernel, memory: StateMemory, launch: Launch) -> None:
    height, width = launch.shape
    if height < 1 or width < 1:
        raise ValueError(f"{kernel.name}: a launch of {width}×{height} elements")
    images = any(slot.image for slot in kernel.slots)
    if images and kernel.sweep == "grid" and memory.shape != launch.shape:
        raise ValueError(f"{kernel.name}: a launch of {launch.shape} elements on state of {memory.shape}")


def _check_coordinate(kernel: Kernel, launch: Launch, name: str, rate: Rate) -> None:
    height, width = launch.shape
    wanted = {Rate.COLUMN: (width,), Rate.ROW: (height,), Rate.ELEMENT: (width,)}.get(rate, ())
    given = np.shape(launch.coords[name])
    if given not in (wanted, ()):
        raise ValueError(f"{kernel.name}: the coordinate {name} has the shape {given}, not {wanted}")
    if rate == Rate.ELEMENT and height != 1:
        raise ValueError(f"{kernel.name}: {name} changes at every element of more than one row")
