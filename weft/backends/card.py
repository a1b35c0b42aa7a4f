"""What the backends that compute on a graphics card have in common. The device is opened when something is compiled."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from weft.backends.base import Backend, Compiled, Coordinator, DeviceLostError, Env, Handle, NoHandle, Reading, Values
from weft.backends.card_compiled import CardCompiled
from weft.backends.launch import Launch, Value
from weft.backends.launching import at_points, nowhere, tick
from weft.backends.prologue_code import PrologueCode, prologue_code
from weft.backends.shader_code import Dialect, ShaderCode, problem, translated
from weft.codegen.clike.shader import UnsuitableError
from weft.codegen.unit import Unit
from weft.errors import error
from weft.names import StrandRef

T = TypeVar("T")


class CardBackend(Backend):
    """Computes the subgraphs of a context, each by one program over all its elements."""

    packed: ClassVar[bool] = False
    """Whether outputs become pixels."""
    library: ClassVar[str]
    """By what it computes, for people."""
    dialect: ClassVar[Dialect]
    failure: ClassVar[type[Exception]]
    """What its device raises when it is lost."""

    def shape(self, env: Env) -> tuple[int, int]:
        """Height and width of the sweep."""
        return 1, 1

    def unsuitable(self, unit: Unit) -> str | None:
        return problem(unit, self.packed, self.dialect)

    def translate(self, unit: Unit, tier: int = 1) -> object:
        if tier > 1:
            return prologue_code(unit.kernel)
        try:
            return self.code(unit)
        except UnsuitableError:
            return None

    def tier(self, compiled: Compiled) -> int | None:
        return self.own(compiled).once.tier

    def exchange(self, compiled: Compiled, code: object) -> None:
        if isinstance(code, PrologueCode):
            self.own(compiled).once.exchange(code)

    def code(self, unit: Unit) -> ShaderCode:
        """The programs of a unit. Raises UnsuitableError."""
        return unit.code if isinstance(unit.code, ShaderCode) else translated(unit, self.packed, self.dialect)

    def check(self, unit: Unit) -> None:
        """Raises WeftError for a unit that has to run elsewhere."""
        reason = None if isinstance(unit.code, ShaderCode) else self.unsuitable(unit)
        if reason is not None:
            words = f"{self.library} cannot compute {unit.subgraph.name}: {reason}"
            raise error("unsuitable", words, hint="--backend native computes it with the processor")

    def execute_subgraph(self, compiled: Compiled, env: Env, coordinator: Coordinator) -> Values:
        own, launch = self._tick(compiled, env, coordinator)
        if not (self.packed or not own.unit.kernel.outputs):
            return self.guarded(lambda: own.planes(launch))
        shown = self.guarded(lambda: own.picture(launch))
        return shown if shown is not None else np.zeros((0, *launch.shape), np.float32)

    def try_out(self, compiled: Compiled, env: Env, coordinator: Coordinator, raw: bool = False) -> Values:
        if not raw:
            return self.execute_subgraph(compiled, env, coordinator)
        own, launch = self._tick(compiled, env, coordinator)
        return self.guarded(lambda: own.planes(launch))

    def get_value_at(
        self, ref: StrandRef, compiled: Compiled, coords: Mapping[str, Value], env: Env, coordinator: Coordinator
    ) -> npt.NDArray[Any]:
        (values,) = self.get_values_at([Reading(ref, compiled, coords)], env, coordinator)
        return values

    def get_values_at(
        self, reads: Sequence[Reading], env: Env, coordinator: Coordinator
    ) -> list[npt.NDArray[Any]]:
        fetches = []
        for ref, compiled, coords in reads:
            launch, shape = at_points(compiled.unit.points[ref], coords, env, coordinator)
            fetches.append((self.guarded(partial(self.own(compiled).ask, ref, launch)), shape))
        # The last one is waited for; the others are there by then.
        return [self.guarded(fetch).reshape(shape) for fetch, shape in fetches[::-1]][::-1]

    def get_handle(self, ref: StrandRef, compiled: Compiled) -> Handle:
        own = self.own(compiled)
        return CardHandle(self, ref, own) if own.can_bind(ref) else NoHandle()

    @abstractmethod
    def own(self, compiled: Compiled) -> CardCompiled:
        """A subgraph that it has compiled. Raises TypeError for one that runs elsewhere."""

    def guarded(self, work: Callable[[], T]) -> T:
        """Does something with the device. Raises DeviceLostError if that is lost."""
        try:
            return work()
        except self.failure as failure:
            raise DeviceLostError(self.context, str(failure)) from failure

    def _tick(self, compiled: Compiled, env: Env, coordinator: Coordinator) -> tuple[CardCompiled, Launch]:
        own = self.own(compiled)
        return own, tick(own.unit.kernel, env, coordinator, self.shape(env), nowhere(env))


class CardHandle(Handle):
    """A strand of a subgraph on a card, whose values stay there."""

    def __init__(self, backend: CardBackend, ref: StrandRef, compiled: CardCompiled) -> None:
        self.device = compiled.device
        self._backend = backend
        self._ref = ref
        self._compiled = compiled

    def values_at(self, coords: Mapping[str, Value], env: Env, coordinator: Coordinator) -> Any:
        launch, _ = at_points(self._compiled.unit.points[self._ref], coords, env, coordinator)
        return self._backend.guarded(lambda: self._compiled.bound_at(self._ref, launch))
