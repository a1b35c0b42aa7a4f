"""From a saved text to a program that can be played, and the trial that it has to pass first."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.base import Env, as_array
from weft.backends.launch import Getter, Reals
from weft.contexts import ContextTable
from weft.errors import Diagnostic, Source, Span, WeftError, fault
from weft.media.pictures import picture_problem
from weft.names import StrandRef
from weft.runtime.build import build
from weft.runtime.compiled import CompiledProgram
from weft.runtime.files import FileState, read_text, stat_media
from weft.runtime.findings import IN_PICTURE, IN_SOUND, not_numbers, nothing_to_show, other_windows, places_of
from weft.runtime.program import LoadedProgram, ProgramLoader, Setup
from weft.runtime.sound.offline import BLOCK, Rendering
from weft.syntax.scanner import UnreadableError, decode

# The trial before a swap: a new program draws a few small frames and plays a few blocks of sound aside, and must
# neither fail nor take for ever.

# The longer sides of the frames, in pixels. The first is large enough that a picture is not judged by its middle alone;
# the second is for telling what each pixel costs from what a frame costs.
_SIDE = 32
_LARGER_SIDE = 128

# What remembers is 0 at first, and 0/0 at the first tick alone is no mistake.
_TICKS = 3

# A block may be held up by others; of several, the best shows what it takes.
_BLOCKS = 5

# How far a second of sound may be off zero on average, and the seconds that it may take to find out.
_STEADY = 0.5
_MOST_LISTENING = 0.05

# Seconds for one frame on one core, or for some blocks of sound, above which nobody waits to see whether the next takes
# less. With so few frames, a picture would seem to stand still, and keys not to be heard.
_SLOWEST = 2.0

# A graphics card takes so many times less at least than the core that tries programs out in its place.
_CARD = 30


_NOT_FED: Mapping[str, float] = MappingProxyType({})
_NOT_SEEN: Mapping[str, Reals] = MappingProxyType({})


@dataclass(frozen=True)
class TrialMoment:
    """Where a performance is: the frame's number, seconds since the start and since the frame before, and what mouse
    and keys are at."""

    tick: int = 0
    abstime: float = 0.0
    dt: float = 0.0
    inputs: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class TrialClocks:
    """The clocks, in seconds, by which a trial judges how long something takes. Blocks of sound are so short that what
    others make of the processor meanwhile would count more than what they take."""

    frames: Callable[[], float] = time.perf_counter
    blocks: Callable[[], float] = time.thread_time


def mistakes(
    compiled: CompiledProgram, loader: ProgramLoader, moment: TrialMoment, places: Mapping[str, Span],
    timing: TrialClocks | None = None,
) -> tuple[Diagnostic, ...]:
    """What is wrong with a program as it would run at this moment; it may, if there are but warnings. `places` says
    where the output statements stand. Never raises."""
    timing = timing or TrialClocks()
    try:
        loader = replace(loader, rehearses=True)
        sound = _SoundTrial(compiled, loader, moment, timing) if compiled.streaming.units else None
        here = loader if sound is None else replace(loader, hears=sound.getter)
        trial = _Trial(compiled, here, moment, timing, _SIDE)
        wrong = not_numbers(trial.not_numbers(), places, IN_PICTURE) or _too_slow(compiled, here, moment, timing, trial)
        if sound is None or wrong:
            return wrong
        if sound.not_numbers() and trial.gives:
            # It may only be so without what pictures give to it.
            sound = _SoundTrial(compiled, loader, moment, timing, trial.feeds(), trial.seen())
        silent = not_numbers(sound.not_numbers(), places, IN_SOUND)
        return silent or sound.too_slow() or sound.steady()
    except WeftError as failure:
        return failure.diagnostics
    except Exception as failure:
        return (fault("the program failed when it was tried out", failure),)


def dark_outputs(compiled: CompiledProgram, loader: ProgramLoader, moment: TrialMoment) -> list[str]:
    """The outputs of pictures that are not a number anywhere at a moment, by their labels."""
    return _Trial(compiled, replace(loader, rehearses=True), moment, TrialClocks(), _SIDE).not_numbers()


class _Trial:
    """A program with a small picture, tick by tick."""

    def __init__(
        self, compiled: CompiledProgram, loader: ProgramLoader, moment: TrialMoment, timing: TrialClocks, side: int
    ) -> None:
        self._now = timing.frames
        width, height = small(compiled.size, side)
        self.pixels = width * height
        self.seconds = 0.0
        """What the last frame took."""
        self._swap: LoadedProgram = loader.prepare(compiled, (width, height))
        inputs = {**moment.inputs, **compiled.parameters}
        # Time goes on from tick to tick, also while the performance is paused.
        dt = moment.dt or 1 / compiled.settings["fps"]
        self._env = Env(width, height, moment.tick, moment.abstime, dt, inputs, self._swap.pictures)

    def frame(self, raw: bool = False) -> dict[str, npt.NDArray[Any]]:
        """What each subgraph gives in the next tick, by its name."""
        started = self._now()
        found = {part.unit.subgraph.name: values for part, values in self._swap.runner.try_out(self._env, raw)}
        self.seconds = self._now() - started
        env = self._env
        self._env = replace(env, tick=env.tick + 1, abstime=env.abstime + env.dt)
        return {name: as_array(values) for name, values in found.items() if values is not None}

    @property
    def gives(self) -> bool:
        """Whether sounds are given anything."""
        return self._swap.runner.gives

    def feeds(self) -> Mapping[str, float]:
        """What sounds are given by the last frame."""
        return self._swap.runner.feeds(self._env)

    def seen(self) -> Mapping[str, Reals]:
        """What sounds see of the last frame."""
        return self._swap.runner.seen(self._env)

    def not_numbers(self) -> list[str]:
        """The outputs that are not a number anywhere in the last of some frames, by their labels."""
        dark = set[str]()
        for _ in range(_TICKS):
            dark = {name for name, values in self.frame().items() if _has_dark_channel(values)}
            if not dark:
                return []
        # NaN is shown as 0. Only the numbers themselves tell it from what is dark on purpose, and they take longer.
        planes = self.frame(raw=True)
        kernels = {part.unit.subgraph.name: part.unit.kernel for part in self._swap.runner.parts}
        return [
            label
            for name in sorted(dark)
            for label, plane in zip(kernels[name].outputs, planes[name], strict=True)
            if np.isnan(plane).all()
        ]


class _SoundTrial:
    """The sound of a program, block by block. It is given mouse, keys and parameters, and of pictures what it is `fed`
    and has `seen`."""

    def __init__(
        self,
        compiled: CompiledProgram,
        loader: ProgramLoader,
        moment: TrialMoment,
        timing: TrialClocks,
        fed: Mapping[str, float] = _NOT_FED,
        seen: Mapping[str, Reals] = _NOT_SEEN,
    ) -> None:
        self._now = timing.blocks
        self._rate = compiled.settings["rate"]
        self._slower = _CARD if loader.rehearsed(compiled.streaming) else 1
        first = round(moment.abstime * self._rate)
        inputs = {**moment.inputs, **compiled.parameters, **fed}
        self._rendering = Rendering(replace(loader, hears=None), compiled, inputs, first, clips=False)
        self._rendering.show(seen)
        self._seconds: list[float] = []
        self._blocks: list[npt.NDArray[np.float32]] = []
        self._behind = first
        while len(self._seconds) < _BLOCKS and not (len(self._seconds) > 1 and sum(self._seconds) > _SLOWEST):
            self._play()

    def _play(self) -> None:
        started = self._now()
        self._behind += BLOCK
        self._blocks += list(self._rendering.until(self._behind))
        self._seconds.append(self._now() - started)

    def getter(self, ref: StrandRef) -> Getter:
        return self._rendering.getter(ref)

    def not_numbers(self) -> list[str]:
        """The outputs that are no number at any sample of the last block, by their labels."""
        return list(self._rendering.not_numbers)

    def too_slow(self) -> tuple[Diagnostic, ...]:
        """Whether even the best of the blocks takes longer than it lasts."""
        share = min(self._seconds) * self._rate / BLOCK
        if share < self._slower:
            return ()
        words = f"this sound takes {share:.1f} times as long to compute as it lasts, so it would stutter"
        return (Diagnostic("error", "too-slow", words, None, "fewer voices, or shorter loops"),)

    def steady(self) -> tuple[Diagnostic, ...]:
        """Whether the sound stays on one side of zero for a second, as far as that is quickly known: a loudspeaker
        that is held out is not heard, and may be harmed."""
        while len(self._blocks) * BLOCK < self._rate:
            if sum(self._seconds) > _MOST_LISTENING:
                return ()
            self._play()
        means = np.abs(np.clip(np.nan_to_num(np.concatenate(self._blocks)), -1, 1).mean(axis=0))
        if means.max() <= _STEADY:
            return ()
        words = f"this sound stays off zero: by {means.max():.2g} on average, in its first second"
        return (Diagnostic("warning", "steady-sound", words, None, "subtract what is constant in it"),)


def small(size: tuple[int, int], side: int) -> tuple[int, int]:
    """The width and height of a picture of about the same aspect, none longer than `side`."""
    scale = min(1.0, side / max(size))
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def _too_slow(
    compiled: CompiledProgram, loader: ProgramLoader, moment: TrialMoment, timing: TrialClocks, first: _Trial
) -> tuple[Diagnostic, ...]:
    """Whether a frame would take so long that nothing else could be done; measured, as far as there is any doubt."""
    pixels = compiled.size[0] * compiled.size[1]
    slowest = _SLOWEST * (_CARD if loader.rehearsed(compiled) else 1)
    for _ in range(2):  # the first frame of a trial also sets up what the others use
        if first.seconds * pixels / first.pixels < slowest:
            return ()
        first.frame()
    larger = _Trial(compiled, loader, moment, timing, _LARGER_SIDE)
    for _ in range(2):
        larger.frame()
    a_pixel = max(0.0, larger.seconds - first.seconds) / max(1, larger.pixels - first.pixels)
    expected = first.seconds + a_pixel * max(0, pixels - first.pixels)
    if expected < slowest:
        return ()
    words = f"a frame would take about {expected:.0f} seconds, and nothing could be done meanwhile"
    return (Diagnostic("error", "too-slow", words, None, "make the picture smaller, or loops shorter"),)


def _has_dark_channel(values: npt.NDArray[Any]) -> bool:
    """Whether these are pixels of which a channel is 0 everywhere."""
    return values.dtype == np.uint8 and not values.any(axis=(0, 1)).all()


# From a saved text to a program that can be played, and the trial that it has to pass before it may.
#
# All of it works alike in the process that plays and in the one that compiles for it.


@dataclass(frozen=True)
class Saved:
    """A text to be compiled, found at a moment of time.monotonic; `problem` says why there is none. The picture is
    made smaller to fit into `room`, if there is one. When the first one is compiled, nothing plays yet."""

    data: bytes
    moment: float
    problem: str | None = None
    room: tuple[int, int] | None = None
    is_first: bool = False

    @property
    def hash(self) -> str:
        return hashlib.sha256(self.data).hexdigest()[:16]


@dataclass(frozen=True)
class CompileResult:
    """What became of a saved text: a program to play, or the diagnostics that say why there is none. `files` are the
    files that the text names, as they were when they were read, or looked for in vain; `places` says where the output
    statements stand."""

    compiled: CompiledProgram | None
    diagnostics: tuple[Diagnostic, ...]
    files: Mapping[Path, FileState] = field(default_factory=dict)
    places: Mapping[str, Span] = field(default_factory=dict)

    def with_codes(self, codes: Mapping[str, object]) -> CompileResult:
        """The same with other code for some units, by their hashes: None for what somebody has already, and what he
        has in the place of it."""
        if self.compiled is None:
            return self
        units = tuple(replace(u, code=codes.get(u.hash, u.code)) for u in self.compiled.units)
        return replace(self, compiled=replace(self.compiled, units=units))


@dataclass
class _FileReader:
    """Reads what a text names, and keeps note of it."""

    files: dict[Path, FileState] = field(default_factory=dict)

    def read(self, path: str) -> str:
        """An included text. Raises UnreadableError."""
        state = self.files[Path(path)] = read_text(Path(path))
        if state.problem:
            raise UnreadableError(state.problem)
        return decode(state.data or b"")

    def probe(self, path: str) -> str | None:
        """What is wrong with a picture."""
        self.files[Path(path)] = stat_media(Path(path))
        return picture_problem(path)


@dataclass(frozen=True)
class Compiler:
    """Compiles the texts of a performance for the backends of its stage."""

    setup: Setup
    contexts: ContextTable
    loader: ProgramLoader

    @classmethod
    def of(cls, setup: Setup) -> Compiler:
        """The compiler of this process. Raises WeftError for a backend that cannot be had."""
        setup = setup.decided()
        return cls(setup, *setup.open())

    def compile(self, saved: Saved) -> CompileResult:
        """Never raises for anything that a patch can contain."""
        reader = _FileReader()
        try:
            made = self._made(saved, reader)
        except UnreadableError as failure:
            words = f"{self.setup.name} cannot be read: {failure}"
            return CompileResult(None, (Diagnostic("error", "unreadable-file", words),))
        except WeftError as failure:
            return CompileResult(None, failure.diagnostics, reader.files)
        return replace(made, files=reader.files)

    def _made(self, saved: Saved, reader: _FileReader) -> CompileResult:
        if saved.problem:
            raise UnreadableError(saved.problem)
        source = Source(self.setup.name, decode(saved.data))
        made = build(
            source, self.contexts, self.setup.settings, probe=reader.probe, read=reader.read, room=saved.room
        )  # fmt: skip
        if not made.patch.sinks:
            return CompileResult(None, (*made.warnings, nothing_to_show(self.contexts)))
        compiled = self.loader.translate(made.compiled)
        return CompileResult(compiled, (*made.warnings, *other_windows(made.patch)), places=places_of(made.patch))
