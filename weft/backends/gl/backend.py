"""What the backends that draw with OpenGL have in common. OpenGL itself is imported when something is compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from weft.backends.base import Backend, Capabilities, Compiled, Coordinator, DeviceInfo, DeviceLostError, Env, Values
from weft.backends.gl import probe
from weft.backends.gl.code import problem, translated
from weft.backends.gl.contexts import GraphicsError
from weft.backends.launch import Value
from weft.backends.launching import at_points, nowhere, tick
from weft.backends.memory import StateMemory
from weft.codegen.clike.shader import UnsuitableError
from weft.codegen.unit import Unit
from weft.errors import error
from weft.names import StrandRef

if TYPE_CHECKING:
    from weft.backends.gl.compiled import GlCompiled
    from weft.backends.gl.graphics import Graphics
    from weft.backends.gl.workshop import Workshop

T = TypeVar("T")


class GlBackend(Backend):
    """Draws the subgraphs of a context."""

    requires: ClassVar[tuple[str, ...]] = ("OpenGL",)
    draws: ClassVar[bool] = True
    packed: ClassVar[bool] = False
    """Whether outputs become pixels."""

    def __init__(self, graphics: Graphics | None = None) -> None:
        """Without graphics, those without a window are opened when they are needed."""
        self._graphics = graphics
        self._made: Workshop | None = None

    @classmethod
    def probe(cls) -> list[DeviceInfo]:
        return probe.devices()

    @classmethod
    def may_have_hardware(cls) -> bool:
        return probe.may_have_hardware()

    def capabilities(self) -> Capabilities:
        return Capabilities(handles=True, sources=frozenset({"picture"}))

    def unsuitable(self, unit: Unit) -> str | None:
        return problem(unit, self.packed)

    def translate(self, unit: Unit, tier: int = 1) -> object:
        if tier > 1:
            return None
        try:
            return translated(unit, self.packed)
        except UnsuitableError:
            return None

    def draw_in(self, graphics: Any) -> None:
        self._graphics = graphics
        self._made = None

    def shape(self, env: Env) -> tuple[int, int]:
        """Height and width of the sweep."""
        return 1, 1

    def compile_subgraph(self, unit: Unit, env: Env, coordinator: Coordinator) -> Compiled:
        self.check(unit)
        return self._guarded(lambda: self._workshop().compiled(unit, self.packed, self.shape(env), env.pictures))

    def check(self, unit: Unit) -> None:
        """Raises WeftError for a unit that has to run elsewhere."""
        reason = None if unit.code is not None else self.unsuitable(unit)
        if reason is not None:
            words = f"OpenGL cannot compute {unit.subgraph.name}: {reason}"
            raise error("unsuitable", words, hint="--backend native computes it with the processor")

    def execute_subgraph(self, compiled: Compiled, env: Env, coordinator: Coordinator) -> Values:
        own = _own(compiled)
        launch = tick(own.unit.kernel, env, coordinator, self.shape(env), nowhere(env))
        if own.grid.shader.packed or not own.unit.kernel.outputs:
            shown = self._guarded(lambda: own.picture(launch))
            return shown if shown is not None else np.zeros((0, *launch.shape), np.float32)
        return self._guarded(lambda: own.planes(launch))

    def try_out(self, compiled: Compiled, env: Env, coordinator: Coordinator, raw: bool = False) -> Values:
        if not raw:
            return self.execute_subgraph(compiled, env, coordinator)
        own = _own(compiled)
        launch = tick(own.unit.kernel, env, coordinator, self.shape(env), nowhere(env))
        return self._guarded(lambda: own.planes(launch))

    def get_value_at(
        self, ref: StrandRef, compiled: Compiled, coords: Mapping[str, Value], env: Env, coordinator: Coordinator
    ) -> npt.NDArray[Any]:
        launch, shape = at_points(compiled.unit.points[ref], coords, env, coordinator)
        return self._guarded(lambda: compiled.value_at(ref, launch)).reshape(shape)

    def adopt(self, compiled: Compiled, old: Iterable[Compiled], copy: bool = False) -> list[str]:
        return self._guarded(lambda: super(GlBackend, self).adopt(compiled, old, copy))

    def remembered(self, compiled: Compiled) -> StateMemory:
        return self._guarded(_own(compiled).memory.read)

    def alloc(self, shape: Any, dtype: npt.DTypeLike = np.float32) -> npt.NDArray[Any]:
        return super().alloc(shape, dtype)

    def sync(self, scope: str = "device") -> None:
        self._guarded(self._workshop().graphics.finish)

    def barrier(self) -> None:
        self._guarded(self._workshop().graphics.barrier)

    def _workshop(self) -> Workshop:
        if self._made is None:
            with _importing():
                from weft.backends.gl.graphics import offscreen
                from weft.backends.gl.workshop import Workshop

            self._made = Workshop(self._graphics or offscreen())
        return self._made

    def _guarded(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except GraphicsError as failure:
            raise DeviceLostError(self.context, str(failure)) from failure


@contextmanager
def _importing() -> Iterator[None]:
    """PyOpenGL fails in ways of its own where libraries are missing, each an error of another kind."""
    try:
        yield
    except Exception as failure:
        raise GraphicsError(f"OpenGL is missing on this machine ({failure})") from failure


def _own(compiled: Compiled) -> GlCompiled:
    from weft.backends.gl.compiled import GlCompiled

    if not isinstance(compiled, GlCompiled):
        raise TypeError(f"{compiled.unit.subgraph.name} runs elsewhere")
    return compiled
