"""What the backends of all graphics cards share: the pictures that programs sample, subgraphs on a card, and the
backends for pictures and numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from weft.backends.base import (
    Backend, Compiled, Coordinator, DeviceLostError, Env, Handle, PictureHandle, Reading, Values
)
from weft.backends.cpu import CpuCompute, CpuVisual
from weft.backends.executor import Stillness
from weft.backends.launch import Array, Floats, Launch, Picture, Value
from weft.backends.memory import StateMemory
from weft.backends.native.llvm import NativeCode
from weft.backends.prologue import LaunchPrologue, prologue_code
from weft.backends.reads import Fetch, at_points, nowhere, tick
from weft.backends.shaders import Dialect, ShaderCode, problem_of, translated
from weft.backends.vector.executor import VectorExecutor
from weft.codegen.clike.shader import UnsuitableError
from weft.codegen.kernel import Unit
from weft.errors import error
from weft.names import StrandRef

# The pictures that programs sample.

T = TypeVar("T")


class CardPictures(Generic[T]):
    """Pictures that are uploaded when a program first needs them, and again when their file has changed."""

    def __init__(self, send: Callable[[Picture], T]) -> None:
        """`send` uploads a picture [height, width, 4]."""
        self._send = send
        self._known: dict[str, tuple[Picture, T]] = {}

    def on_card(self, path: str, picture: Picture) -> T:
        """A picture on the card; uploads it only if it has changed."""
        known = self._known.get(path)
        if known is None or known[0] is not picture:
            known = self._known[path] = picture, self._send(picture)
        return known[1]


# Subgraphs that draw or compute numbers.


class CardPicture(PictureHandle):
    """A picture on a card. Its buffer is reused in the tick after the next."""

    def __init__(self, shape: tuple[int, int]) -> None:
        """`shape` is height and width."""
        self._shape = shape
        self._pixels: npt.NDArray[np.uint8] | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        return (*self._shape, 4)

    def read(self) -> npt.NDArray[np.uint8]:
        if self._pixels is None:
            self._pixels = self.fetched()
        return self._pixels

    @abstractmethod
    def fetched(self) -> npt.NDArray[np.uint8]:
        """A copy of the pixels; waits until they have been drawn."""


class CardCompiled(ABC):
    """A subgraph that is ready to run. Its memory is for one size of picture."""

    unit: Unit
    code: ShaderCode
    memory: StateMemory
    stillness: Stillness
    drawn: PictureHandle | None
    """The picture of the last tick."""

    @property
    @abstractmethod
    def prologue(self) -> LaunchPrologue:
        """The prologue of its ticks."""

    @property
    @abstractmethod
    def device(self) -> object:
        """Identifies the device: programs on an equal device can bind values of this one."""

    @abstractmethod
    def can_bind(self, ref: StrandRef) -> bool:
        """Whether the values of an exposed strand can be left on the card."""

    @abstractmethod
    def ask(self, ref: StrandRef, launch: Launch) -> Fetch:
        """Requests a strand at the points of a launch, as it was in the last finished tick, and gives what fetches the
        values. Does not wait if the card computes them."""

    def value_at(self, ref: StrandRef, launch: Launch) -> Array:
        """The values of a strand at the points of a launch, as it was in the last finished tick."""
        return self.ask(ref, launch)()

    @abstractmethod
    def bound_at(self, ref: StrandRef, launch: Launch) -> Any:
        """A value for each point of a launch, left on the card in the form that programs bind. Does not wait."""

    @abstractmethod
    def draw(self, launch: Launch) -> PictureHandle | None:
        """One tick: draws a picture and advances the state. None if it has state but no outputs."""

    @abstractmethod
    def planes(self, launch: Launch) -> Floats:
        """One tick: gives the plain outputs [outputs, height, width], and advances the state."""

    def picture(self, launch: Launch) -> PictureHandle | None:
        """One tick, like `draw`; but gives the last picture if nothing in it changes."""
        if self.drawn is not None and self.stillness.lasts(launch):
            return self.drawn
        self.drawn = self.draw(launch)
        self.stillness.drew(launch)
        return self.drawn

    def run(self, memory: StateMemory, launch: Launch, sync: bool = True, out: Array | None = None) -> Array:
        if memory is not self.memory:
            raise ValueError("a subgraph on the graphics card runs on its own memory")
        shown = self.picture(launch) if self.code.grid.packed else None
        found: Array = self.planes(launch) if shown is None else shown.read()
        if out is None:
            return found
        np.copyto(out, found)
        return out

    def dump(self) -> str:
        return self.code.grid.text


# Backends. They open their device when something is compiled.


class CardBackend(Backend):
    """Computes the subgraphs of a context, each by one program over all its elements."""

    packed: ClassVar[bool] = False
    """Whether outputs become pixels."""
    library: ClassVar[str]
    """The name of the library that it uses, for messages."""
    dialect: ClassVar[Dialect]
    failure: ClassVar[type[Exception]]
    """The exception that its device raises when it is lost."""

    def shape(self, env: Env) -> tuple[int, int]:
        """Height and width of the sweep."""
        return 1, 1

    def unsuitable(self, unit: Unit) -> str | None:
        return problem_of(lambda: translated(unit, self.packed, self.dialect))

    def translate(self, unit: Unit, tier: int = 1) -> object:
        if tier > 1:
            return prologue_code(unit.kernel)
        try:
            return self.code(unit)
        except UnsuitableError:
            return None

    def tier(self, compiled: Compiled) -> int | None:
        return self.own(compiled).prologue.tier

    def upgrade(self, compiled: Compiled, code: object) -> None:
        if isinstance(code, NativeCode):
            self.own(compiled).prologue.upgrade(code)

    def code(self, unit: Unit) -> ShaderCode:
        """The programs of a unit. Raises UnsuitableError."""
        return unit.code if isinstance(unit.code, ShaderCode) else translated(unit, self.packed, self.dialect)

    def check(self, unit: Unit) -> None:
        """Raises WeftError for a unit that has to run on another backend."""
        reason = None if isinstance(unit.code, ShaderCode) else self.unsuitable(unit)
        if reason is not None:
            words = f"{self.library} cannot compute {unit.subgraph.name}: {reason}"
            raise error("unsuitable", words, hint="--backend native computes it on the CPU")

    def execute_subgraph(self, compiled: Compiled, env: Env, coordinator: Coordinator) -> Values:
        return self._run(self.own(compiled), env, coordinator, self.packed or not compiled.unit.kernel.outputs)

    def try_out(self, compiled: Compiled, env: Env, coordinator: Coordinator, raw: bool = False) -> Values:
        if raw:
            return self._run(self.own(compiled), env, coordinator, draws=False)
        return self.execute_subgraph(compiled, env, coordinator)

    def get_value_at(
        self, ref: StrandRef, compiled: Compiled, coords: Mapping[str, Value], env: Env, coordinator: Coordinator
    ) -> Array:
        (values,) = self.get_values_at([Reading(ref, compiled, coords)], env, coordinator)
        return values

    def get_values_at(self, reads: Sequence[Reading], env: Env, coordinator: Coordinator) -> list[Array]:
        fetches = []
        for ref, compiled, coords in reads:
            launch, shape = at_points(compiled.unit.points[ref], coords, env, coordinator)
            fetches.append((self.guarded(partial(self.own(compiled).ask, ref, launch)), shape))
        # Waiting for the last request first: the others are finished by then.
        return [self.guarded(fetch).reshape(shape) for fetch, shape in fetches[::-1]][::-1]

    def get_handle(self, ref: StrandRef, compiled: Compiled) -> Handle | None:
        own = self.own(compiled)
        return CardHandle(self, ref, own) if own.can_bind(ref) else None

    @abstractmethod
    def own(self, compiled: Compiled) -> CardCompiled:
        """A subgraph of this backend. Raises TypeError for one that runs on another."""

    def guarded(self, work: Callable[[], T]) -> T:
        """Calls `work`, which uses the device. Raises DeviceLostError if that is lost."""
        try:
            return work()
        except self.failure as failure:
            raise DeviceLostError(self.context, str(failure)) from failure

    def _run(self, own: CardCompiled, env: Env, coordinator: Coordinator, draws: bool) -> Values:
        launch = tick(own.unit.kernel, env, coordinator, self.shape(env), nowhere(env))
        if not draws:
            return self.guarded(lambda: own.planes(launch))
        shown = self.guarded(lambda: own.picture(launch))
        return shown if shown is not None else np.zeros((0, *launch.shape), np.float32)


class CardHandle(Handle):
    """A strand of a subgraph on a card, with its values left there."""

    def __init__(self, backend: CardBackend, ref: StrandRef, compiled: CardCompiled) -> None:
        self.device = compiled.device
        self._backend = backend
        self._ref = ref
        self._compiled = compiled

    def values_at(self, coords: Mapping[str, Value], env: Env, coordinator: Coordinator) -> Any:
        launch, _ = at_points(self._compiled.unit.points[self._ref], coords, env, coordinator)
        return self._backend.guarded(lambda: self._compiled.bound_at(self._ref, launch))


# A backend lists one of these classes before that of its library.


class CardVisual(CardBackend):
    """Gives a picture on the card."""

    context = "visual"
    packed = True

    def shape(self, env: Env) -> tuple[int, int]:
        return env.height, env.width

    def rehearsing(self) -> Backend:
        return CpuVisual(VectorExecutor.name)


class CardCompute(CardBackend):
    """Gives one number for each value of the `compute` statements, as [values, 1, 1]: a picture of one pixel. Waits for
    it. The CPU computes the rarer sections in double precision."""

    context = "compute"

    def rehearsing(self) -> Backend:
        return CpuCompute(VectorExecutor.name)
