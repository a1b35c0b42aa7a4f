"""Sound on a graphics card, block by block: what the backends of all cards share. Where the inputs of a subgraph stay
constant, the card computes several blocks ahead."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from weft.backends.base import Backend, Capabilities, Compiled, Coordinator, Env, SampleBlock
from weft.backends.card import CardBackend
from weft.backends.cpu import CpuAudio, block_of
from weft.backends.launch import SINCE, TIME, Array, Floats, Launch, Value
from weft.backends.memory import StateMemory
from weft.backends.reads import tick
from weft.backends.shaders import SoundCode, problem_of, sound_translated
from weft.backends.vector.executor import VectorExecutor
from weft.codegen.clike.shader import UnsuitableError
from weft.codegen.kernel import Unit
from weft.contexts import ContextSpec, is_smoothed
from weft.names import StrandRef, is_view

# How many blocks are computed at once, ahead of time, but no more than this many samples unless a block has more: the
# longer a chunk, the less exact is the time within it.
_AHEAD = 4
_MOST_AHEAD = 2048


class SampleChunk(ABC):
    """Samples that the card has computed or will compute: `count` for each channel, from sample `first` on."""

    def __init__(self, first: int, shape: tuple[int, int, int]) -> None:
        """`shape` is [channels, outputs, count]."""
        self.first = first
        self.shape = shape
        self.count = shape[2]
        self.stopped = False
        """Whether a loop reached its limit; known once the samples are."""
        self._samples: Floats | None = None

    @property
    def end(self) -> int:
        return self.first + self.count

    def samples(self) -> Floats:
        """The samples [channels, outputs, count] in double precision; waits for them at the first call. Raises what the
        device raises when it is lost."""
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
        """Starts to compute a chunk, with a launch for each channel; does not wait. Raises what the device raises when
        it is lost."""


@dataclass
class CardSound:
    """A subgraph of sound that is ready to run. It has no state."""

    unit: Unit
    code: SoundCode
    sounding: Sounding
    memory: StateMemory = field(default_factory=lambda: StateMemory(()))
    _known: Hashable = None
    """The inputs that the chunks were computed with."""
    _chunks: tuple[SampleChunk, ...] = ()
    """The chunk that is being played, and the next one, which the card is computing."""

    def play(self, block: SampleBlock, launch: Launch) -> Floats:
        """The samples of a block [channels, outputs, samples], with one channel if all are the same. `launch` has all
        inputs but the coordinates. Raises what the device raises when it is lost."""
        kernel = self.unit.kernel
        channels = block.channels if block.differs(kernel) else 1
        begin = functools.partial(self._begin, block, launch, channels)
        known = self._inputs(block, launch, channels)
        if known is None:
            self._known, self._chunks = None, ()
            return self._samples_of(begin(block.first, block.samples), launch)
        if known != self._known:
            self._known, self._chunks = known, ()
        pieces: list[Floats] = [np.zeros((channels, len(kernel.outputs), 0))]
        at, end = block.first, block.first + block.samples
        while at < end:
            self._reach(at, block.samples, begin)
            chunk = self._chunks[0]
            pieces.append(self._samples_of(chunk, launch)[:, :, at - chunk.first : end - chunk.first])
            at += pieces[-1].shape[2]
        return np.concatenate(pieces, axis=2)

    def _inputs(self, block: SampleBlock, launch: Launch, channels: int) -> Hashable:
        """The inputs of the samples besides their number; None if an input changes from sample to sample, so that
        nothing can be computed ahead."""
        kernel = self.unit.kernel
        smoothed = [(name, block.controls[name]) for name, _ in kernel.coords if is_smoothed(name)]
        are_constant = all(values.size and (values == values.flat[0]).all() for _, values in smoothed)
        if any(map(is_view, kernel.pictures)) or not are_constant:
            return None
        return (
            block.rate, channels, tuple((name, float(values.flat[0])) for name, values in smoothed),
            tuple(launch.uniforms.items()), tuple(map(id, launch.pictures.values())),
        )  # fmt: skip

    def _begin(self, block: SampleBlock, launch: Launch, channels: int, first: int, count: int) -> SampleChunk:
        """Starts a chunk of `count` samples. After the end of the block, its inputs stay as they are."""

        def own(values: Floats, channel: int) -> Value:
            given = values if values.ndim == 1 else values[channel]
            return given if len(given) == count else float(given[0])

        # A view is overwritten in place, so it needs a copy: the card would take it for the picture that it has.
        pictures = {path: np.array(p) if is_view(path) else p for path, p in launch.pictures.items()}
        launches = []
        for channel in range(channels):
            smoothed = {name: own(values, channel) for name, values in block.controls.items()}
            coords = {**middle(first, count, block.rate), "channel": float(channel), **smoothed}
            wanted = replace(launch, shape=(1, count), coords=coords, pictures=pictures)
            launches.append(self.code.named(wanted))
        return self.sounding.begin(first, launches)

    def _reach(self, at: int, samples: int, begin: Callable[[int, int], SampleChunk]) -> None:
        """Makes the chunk with sample `at` the first one, and starts the next one if necessary."""
        self._chunks = tuple(chunk for chunk in self._chunks if chunk.end > at)
        if not self._chunks or self._chunks[0].first > at:
            # The first chunk is short because it is waited for.
            self._chunks = (begin(at, samples),)
        if len(self._chunks) == 1:
            self._chunks += (begin(self._chunks[0].end, max(samples, min(_AHEAD * samples, _MOST_AHEAD))),)

    def _samples_of(self, chunk: SampleChunk, launch: Launch) -> Floats:
        samples = chunk.samples()
        if chunk.stopped:
            chunk.stopped = False
            launch.loop_stopped()
        return samples

    def run(self, memory: StateMemory, launch: Launch, sync: bool = True, out: Array | None = None) -> Array:
        """Samples at the coordinates of the launch: [outputs, 1, samples]."""
        found: Floats = self.sounding.begin(0, [self.code.named(launch)]).samples()[0][:, np.newaxis]
        if out is None:
            return found
        np.copyto(out, found)
        return out

    def value_at(self, ref: StrandRef, launch: Launch) -> Array:
        """Raises KeyError: readers of a sound get the samples that were played."""
        raise KeyError(ref)

    def dump(self) -> str:
        return self.code.shader.text


def middle(first: int, count: int, rate: float) -> dict[str, Value]:
    """The time of `count` samples as a block: relative to the middle one, which halves the largest rounding error."""
    return {TIME: (first + count // 2) / rate, SINCE: _around_middle(count, rate)}


@functools.lru_cache(maxsize=8)
def _around_middle(count: int, rate: float) -> Floats:
    """Read-only, so a card that has uploaded it knows that it stays the same."""
    times: Floats = (np.arange(count) - count // 2) / rate
    times.setflags(write=False)
    return times


class CardAudio(CardBackend):
    """Gives [channels, outputs, samples], computed in single precision, with one channel if all are the same. The CPU
    reduces the time of a block to one period of what depends on it, in double precision; a program computes the
    samples, usually several blocks ahead.

    A subclass lists it before the backend of its library."""

    context = "audio"

    @classmethod
    def spec_of(cls, spec: ContextSpec) -> ContextSpec:
        return spec.by_blocks()

    @abstractmethod
    def sound(self, unit: Unit, code: SoundCode) -> CardSound:
        """A subgraph of sound. Raises WeftError if the driver refuses its program, and what the device raises when it
        is lost."""

    def capabilities(self) -> Capabilities:
        return Capabilities(state=False, feedback=False, sources=frozenset({"picture"}))

    def rehearsing(self) -> Backend:
        return CpuAudio(VectorExecutor.name)

    def unsuitable(self, unit: Unit) -> str | None:
        return problem_of(lambda: sound_translated(unit.kernel, self.dialect))

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
        """Keeps the code for the CPU, which takes over if the card fails."""
        if isinstance(compiled, CardSound):
            compiled.unit = replace(compiled.unit, code=code)

    def execute_subgraph(self, compiled: Compiled, env: Env, coordinator: Coordinator) -> Array:
        if not isinstance(compiled, CardSound):
            raise TypeError(f"{compiled.unit.subgraph.name} runs on another backend")
        block = block_of(env)
        launch = tick(compiled.unit.kernel, env, coordinator, (1, block.samples), {})
        return self.guarded(lambda: compiled.play(block, launch))

    def try_out(self, compiled: Compiled, env: Env, coordinator: Coordinator, raw: bool = False) -> Array:
        return self.execute_subgraph(compiled, env, coordinator)

    def get_handle(self, ref: StrandRef, compiled: Compiled) -> None:
        return None

    def adopt(self, compiled: Compiled, old: Iterable[Compiled], copy: bool = False) -> list[str]:
        return Backend.adopt(self, compiled, old, copy)

    def remembered(self, compiled: Compiled) -> StateMemory:
        return compiled.memory
