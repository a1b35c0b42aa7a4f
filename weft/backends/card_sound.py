"""Sound on a graphics card, block by block: what its backends have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from weft.backends.base import Backend, Capabilities, Compiled, Coordinator, Env, Handle, NoHandle, SampleBlock
from weft.backends.card import CardBackend
from weft.backends.cpu import CpuAudio, block_of
from weft.backends.launch import SINCE, TIME, Floats, Launch, Value
from weft.backends.memory import StateMemory
from weft.backends.reads import tick
from weft.backends.shaders import SoundCode, sound_problem, sound_translated
from weft.backends.vector.executor import VectorExecutor
from weft.codegen.clike.shader import UnsuitableError
from weft.codegen.kernel import Unit
from weft.contexts import ContextSpec, is_smoothed
from weft.names import StrandRef, is_view

# A subgraph of sound on a graphics card, which computes several blocks ahead where it knows what they are.

# So many blocks are computed at once, ahead of time; but no more samples than that, unless a block has more: the longer
# a stretch, the less exact is the time within it.
_AHEAD = 4
_MOST_AHEAD = 2048


class SampleChunk(ABC):
    """Samples that the card computes, or has computed: `count` of them for each channel, from sample `first` on."""

    def __init__(self, first: int, shape: tuple[int, int, int]) -> None:
        """`shape` is [channels, outputs, count]."""
        self.first = first
        self.shape = shape
        self.count = shape[2]
        self.stopped = False
        """Whether a loop met its limit; known as soon as the samples are."""
        self._samples: Floats | None = None

    @property
    def end(self) -> int:
        return self.first + self.count

    def samples(self) -> Floats:
        """The samples [channels, outputs, count], in double precision; waits for them when they are asked for first.
        Raises what the device raises when it is lost."""
        if self._samples is None:
            found = [values.reshape(self.shape[1:]) for values in self.fetched()]
            self._samples = np.stack(found).astype(np.float64)
        return self._samples

    @abstractmethod
    def fetched(self) -> Sequence[npt.NDArray[np.float32]]:
        """The samples of each channel [outputs · count]; waits for them. Notes whether a loop was `stopped`."""


class Sounding(Protocol):
    """The program of a sound, with its buffers."""

    def begin(self, first: int, launches: Sequence[Launch]) -> SampleChunk:
        """Asks for the samples of a stretch, of which there is a launch for each channel; waits for nothing. Raises
        what the device raises when it is lost."""
        ...


@dataclass
class CardSound:
    """A subgraph that is ready to run. It remembers nothing."""

    unit: Unit
    code: SoundCode
    sounding: Sounding
    memory: StateMemory = field(default_factory=lambda: StateMemory(()))
    _known: Hashable = None
    """What the stretches were computed with."""
    _stretches: tuple[SampleChunk, ...] = ()
    """The one that is being played, and the one behind it, for which the card has been asked."""

    def play(self, block: SampleBlock, launch: Launch) -> Floats:
        """The samples of a block [channels, outputs, samples], with one channel where all sound the same. `launch` has
        all but the coordinates. Raises what the device raises when it is lost."""
        kernel = self.unit.kernel
        channels = block.channels if block.differs(kernel) else 1
        ask = _ChunkPrefetch(self, block, launch, channels)
        known = ask.known()
        if known is None:
            self._known, self._stretches = None, ()
            return self._heard(ask.stretch(block.first, block.samples), launch)
        if known != self._known:
            self._known, self._stretches = known, ()
        pieces = list(self._pieces(block, launch, ask.stretch))
        return np.concatenate([np.zeros((channels, len(kernel.outputs), 0)), *pieces], axis=2)

    def _pieces(self, block: SampleBlock, launch: Launch, ask: Callable[[int, int], SampleChunk]) -> Iterator[Floats]:
        at, end = block.first, block.first + block.samples
        while at < end:
            self._reach(at, block.samples, ask)
            stretch = self._stretches[0]
            piece = self._heard(stretch, launch)[:, :, at - stretch.first : end - stretch.first]
            yield piece
            at += piece.shape[2]

    def _reach(self, at: int, samples: int, ask: Callable[[int, int], SampleChunk]) -> None:
        """Has the stretch with sample `at` come first, and the card at work on the one behind it."""
        self._stretches = tuple(s for s in self._stretches if s.end > at)
        if not self._stretches or self._stretches[0].first > at:
            # The first one is waited for, so it is short.
            self._stretches = (ask(at, samples),)
        if len(self._stretches) == 1:
            self._stretches += (ask(self._stretches[0].end, max(samples, min(_AHEAD * samples, _MOST_AHEAD))),)

    def _heard(self, stretch: SampleChunk, launch: Launch) -> Floats:
        samples = stretch.samples()
        if stretch.stopped:
            stretch.stopped = False
            launch.loop_stopped()
        return samples

    def run(
        self, memory: StateMemory, launch: Launch, sync: bool = True, out: npt.NDArray[Any] | None = None
    ) -> npt.NDArray[Any]:
        """Samples at coordinates that are given one by one: [outputs, 1, samples]."""
        found: Floats = self.sounding.begin(0, [launch]).samples()[0][:, np.newaxis]
        if out is None:
            return found
        np.copyto(out, found)
        return out

    def value_at(self, ref: StrandRef, launch: Launch) -> npt.NDArray[Any]:
        """Raises KeyError: who reads a sound reads what has been played."""
        raise KeyError(ref)

    def dump(self) -> str:
        return self.code.shader.text


@dataclass(frozen=True)
class _ChunkPrefetch:
    """Asks for stretches as a block is computed."""

    sound: CardSound
    block: SampleBlock
    launch: Launch
    channels: int

    def known(self) -> Hashable:
        """All that samples depend on but their number; None if that changes from sample to sample, so that nothing can
        be computed ahead."""
        kernel = self.sound.unit.kernel
        if any(is_view(path) for path in kernel.pictures):
            return None
        led = [(name, self.block.led[name]) for name, _ in kernel.coords if is_smoothed(name)]
        if not all(_is_steady(values) for _, values in led):
            return None
        return (
            self.block.rate, self.channels, tuple((name, float(values.flat[0])) for name, values in led),
            tuple(self.launch.uniforms.items()), tuple(map(id, self.launch.pictures.values())),
        )  # fmt: skip

    def stretch(self, first: int, count: int) -> SampleChunk:
        """So many samples, from this one on. Beyond the block, all that comes from outside stays as it is in it."""
        # A view is written anew where it lies, so what is on the card is not it.
        pictures = {path: np.array(p) if is_view(path) else p for path, p in self.launch.pictures.items()}
        launches = [
            replace(self.launch, shape=(1, count), coords=self._coords(first, count, channel), pictures=pictures)
            for channel in range(self.channels)
        ]
        return self.sound.sounding.begin(first, launches)

    def _coords(self, first: int, count: int, channel: int) -> dict[str, Value]:
        def own(values: Floats) -> Value:
            given = values if values.ndim == 1 else values[channel]
            return given if len(given) == count else float(given[0])

        led = {name: own(values) for name, values in self.block.led.items()}
        return {**middle(first, count, self.block.rate), "channel": float(channel), **led}


def middle(first: int, count: int, rate: float) -> dict[str, Value]:
    """The time of so many samples by blocks, from the middle on: what is half as far away is twice as exact."""
    at = count // 2
    return {TIME: (first + at) / rate, SINCE: (np.arange(count) - at) / rate}


def _is_steady(values: Floats) -> bool:
    return bool(values.size) and bool((values == values.flat[0]).all())


# Sound on a graphics card, block by block: what its backends have in common.


class CardAudio(CardBackend):
    """Gives [channels, outputs, samples], computed in single precision, with one channel where all sound the same. The
    time of a block is brought down to one turn of whatever moves with it, in double precision; a program computes the
    samples, as a rule several blocks ahead.

    It goes before the backend of a library among the bases."""

    context = "audio"

    @classmethod
    def spec_of(cls, spec: ContextSpec) -> ContextSpec:
        return spec.by_blocks()

    @abstractmethod
    def sound(self, unit: Unit, code: SoundCode) -> CardSound:
        """A subgraph of sound. Raises WeftError if its program is refused, and what the device raises when it is
        lost."""

    def capabilities(self) -> Capabilities:
        return Capabilities(state=False, feedback=False, sources=frozenset({"picture"}))

    def rehearsing(self) -> Backend:
        return CpuAudio(VectorExecutor.name)

    def unsuitable(self, unit: Unit) -> str | None:
        return sound_problem(unit.kernel, self.dialect)

    def translate(self, unit: Unit, tier: int = 1) -> SoundCode | None:
        if tier > 1:
            return None
        try:
            return sound_translated(unit.kernel, self.dialect)
        except UnsuitableError:
            return None

    def compile_subgraph(self, unit: Unit, env: Env, coordinator: Coordinator) -> Compiled:
        code = unit.code
        if not isinstance(code, SoundCode):
            self.check(replace(unit, code=None))
            code = sound_translated(unit.kernel, self.dialect)
        return self.guarded(lambda: self.sound(unit, code))

    def tier(self, compiled: Compiled) -> int | None:
        return None

    def upgrade(self, compiled: Compiled, code: object) -> None:
        """Keeps what was made for the processor, which goes on if the card fails."""
        if isinstance(compiled, CardSound):
            compiled.unit = replace(compiled.unit, code=code)

    def execute_subgraph(self, compiled: Compiled, env: Env, coordinator: Coordinator) -> npt.NDArray[Any]:
        if not isinstance(compiled, CardSound):
            raise TypeError(f"{compiled.unit.subgraph.name} runs elsewhere")
        block = block_of(env)
        launch = tick(compiled.unit.kernel, env, coordinator, (1, block.samples), {})
        return self.guarded(lambda: compiled.play(block, launch))

    def try_out(
        self, compiled: Compiled, env: Env, coordinator: Coordinator, raw: bool = False
    ) -> npt.NDArray[Any]:
        return self.execute_subgraph(compiled, env, coordinator)

    def get_handle(self, ref: StrandRef, compiled: Compiled) -> Handle:
        return NoHandle()

    def adopt(self, compiled: Compiled, old: Iterable[Compiled], copy: bool = False) -> list[str]:
        return Backend.adopt(self, compiled, old, copy)

    def remembered(self, compiled: Compiled) -> StateMemory:
        return compiled.memory
