"""A program off stage: its frames and its sound, as fast as it goes, and the same every time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from math import floor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import weft
from weft.backends.base import Env
from weft.backends.select import Choice
from weft.contexts import AUDIO
from weft.errors import Diagnostic, Span, WeftError, error
from weft.graph.nodes import Patch
from weft.runtime.assignment import Change
from weft.runtime.build import Build
from weft.runtime.compiled import CompiledProgram
from weft.runtime.compiling.compiler import TrialMoment, dark_outputs
from weft.runtime.coordinator import TickResult, main_picture
from weft.runtime.findings import (
    IN_PICTURE, IN_SOUND, as_warnings, clipped, loop_of, not_numbers, not_numbers_for_a_while, other_windows, places_of,
    silent
)
from weft.runtime.inputs import InputState
from weft.runtime.program import LoadedProgram, ProgramLoader
from weft.runtime.sound.mixer import Levels
from weft.runtime.sound.offline import Rendering

Pixels = npt.NDArray[Any]
Samples = npt.NDArray[np.float32]

# Frames begin just before the moment they count from, so that a time that was rounded down still has its frame.
_SLACK = 1e-6

# So do samples.
_SAMPLE_SLACK = 1e-3

# How many dark frames are looked at more closely.
_MOST_LOOKS = 3

# What is never louder than this, -80 dB, is not heard.
_SILENT = 1e-4

# Two days of frames at 60 a second: a later one would be waited for in vain.
_REACH = 10_000_000


def raw(choice: Choice) -> Choice | None:
    """The choice, giving values as they are, [outputs, height, width], before they become pixels; None if its backend
    only gives pixels."""
    if not getattr(choice.backend, "packed", False):
        return None
    unpacked = type(f"{choice.backend.__name__}Planes", (choice.backend,), {"packed": False})
    return replace(choice, backend=unpacked, rest=tuple(each for each in map(raw, choice.rest) if each is not None))


def initial_inputs(patch: Patch) -> dict[str, float]:
    """Mouse, keys and parameters as they are when nothing has happened."""
    return {**InputState(), **patch.parameter_values()}


def frame_numbers(start: float, end: float, fps: float) -> range:
    """The frames that begin in `start … end` seconds, without one that begins at the end."""
    first, behind = (-floor(-seconds * fps + _SLACK) for seconds in (start, end))
    return range(first, behind)


def _check_reach(number: int) -> None:
    if number > _REACH:
        words = "a patch that remembers plays all frames before the one that is wanted"
        raise error("too-far", f"{words}, and {_REACH:,} is the most")


class Offline:
    """Computes the frames and the sound of a program. Mouse, keys and parameters stay as they are at the start."""

    def __init__(
        self,
        build: Build,
        choices: Mapping[str, Choice],
        threads: int = 1,
        clips: bool = True,
    ) -> None:
        """Without `clips`, samples are given as they are. Raises WeftError for what a device cannot take, and a
        picture that cannot be read."""
        settings = build.patch.settings
        size = (int(settings["width"]), int(settings["height"]))
        self._fps = settings["fps"]
        self._clips = clips
        self._has_shown = False
        self._loader = loader = ProgramLoader(choices)
        # The best tier from the first frame on, whichever are wanted: tiers may differ in how they round numbers.
        codes = loader.improve(build.units)
        units = tuple(replace(unit, code=codes.get(unit.hash)) for unit in build.units)
        compiled = replace(build.compiled, units=units)
        inputs = initial_inputs(build.patch)
        self._sound = _rendering(loader, compiled, inputs, clips)
        here = replace(loader, hears=self._sound.getter) if self._sound else loader
        self._swap: LoadedProgram = here.prepare(compiled, size)
        self._warnings = build.warnings
        self._patch = build.patch
        self._media = build.media
        self._here = here
        self._loops: dict[str, None] = {}
        """The kernels of which a loop met its limit."""
        self._dark: dict[str, float] = {}
        """The outputs of pictures that are not a number anywhere, and since when."""
        self._planes: dict[str, _Planes] = {}
        """What is known of the outputs of pictures that are given as values."""
        self._looks = _MOST_LOOKS
        self._levels: Levels | None = None
        self._env = Env(
            width=size[0],
            height=size[1],
            dt=1 / self._fps,
            inputs=inputs,
            pictures=self._swap.pictures,
            threads=threads,
            loop_stopped=self._stop_loop,
        )

    def _stop_loop(self, kernel: str) -> None:
        self._loops[kernel] = None

    def findings(self) -> list[Diagnostic]:
        """What is remarkable about all that has been given so far."""
        places = places_of(self._patch)
        found = [*self._swap.left_out]
        if self._has_shown:
            found += other_windows(self._patch)
        units = self._swap.compiled.units
        loops = [*self._loops, *sorted(self._sound.loops_stopped if self._sound is not None else ())]
        found += [loop_of(units, kernel) for kernel in loops]
        found += as_warnings(not_numbers(self._dark, places, IN_PICTURE))
        for label, planes in self._planes.items():
            if planes.missing:
                share = planes.missing / planes.count
                found.append(not_numbers_for_a_while(label, share, planes.first, "pixels", places))
        return [*found, *self._of_sound(places)]

    def _of_sound(self, places: Mapping[str, Span]) -> Iterator[Diagnostic]:
        levels = self._levels
        if levels is None or self._sound is None or not levels.samples:
            return
        place = next((span for label, span in places.items() if label.partition(".")[0] == AUDIO.name), None)
        count, rate = levels.end - levels.first, self._sound.rate
        lost = {label for label, (missing, _) in levels.not_numbers.items() if missing == count}
        yield from as_warnings(not_numbers(lost, places, IN_SOUND))
        for label, (missing, first) in levels.not_numbers.items():
            if label not in lost:
                yield not_numbers_for_a_while(label, missing / count, first / rate, "samples", places)
        if levels.peak < _SILENT and not lost:
            yield silent(place)
        if self._clips and levels.first_too_loud is not None:
            share = levels.too_loud / levels.samples
            yield clipped(share, levels.peak, levels.first_too_loud / rate, place)

    def changes(self) -> list[Change]:
        """What runs elsewhere than it was meant to, as far as this has not been asked before."""
        return self._loader.assignment.changes()

    @property
    def fingerprint(self) -> str:
        """A hash of all that its frames depend on: kernels, settings, parameters, the pictures that are read, and what
        computes each subgraph. Equal ones give the same frames."""
        compiled = self._swap.compiled
        parts = (*self._swap.runner.parts, *self._swap.runner.feeding)
        names = {context: choice.name for context, choice in self._loader.assignment.choices.items()}
        subgraphs = ((part.unit.subgraph, part.backend.name) for part in parts)
        backends = {(sub.name, names.get(sub.context, ""), device) for sub, device in subgraphs}
        known = {
            "weft": weft.__version__,
            "kernels": sorted(unit.hash for unit in compiled.units),
            "settings": sorted(compiled.settings.items()),
            "parameters": sorted(compiled.parameters.items()),
            "media": [hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in self._media],
            "backends": sorted(backends),
        }
        return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:32]

    @property
    def shows(self) -> bool:
        """Whether there is a picture."""
        return self._gives("visual")

    @property
    def sounds(self) -> bool:
        """Whether there is a sound."""
        return self._gives(AUDIO.name)

    def _gives(self, context: str) -> bool:
        running = {*self._swap.changed, *self._swap.kept}
        subgraphs = (unit.subgraph for unit in self._swap.compiled.units)
        return any(sub.context == context and sub.sinks and sub.name in running for sub in subgraphs)

    def nothing(self, code: str, words: str, example: str) -> WeftError:
        """What to raise where something is asked for that the program does not give."""
        reasons = "; ".join(d.message for d in (*self._warnings, *self._swap.left_out))
        return error(code, words, hint=reasons or example)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the picture."""
        return self._swap.size

    @property
    def remembers(self) -> bool:
        """Whether a frame depends on those before it."""
        units = self._swap.compiled.units if self._reads_sound else [part.unit for part in self._swap.runner.parts]
        return any(unit.kernel.slots for unit in units)

    @property
    def _reads_sound(self) -> bool:
        """Whether anything else depends on the sound."""
        return any(unit.subgraph.exposes for unit in self._swap.compiled.streaming.units)

    def steps(self, wanted: Iterable[int]) -> range | list[int]:
        """The frames that have to be computed for those that are wanted: all before them, if the patch remembers, so
        that a frame is the same picture whichever others are wanted."""
        numbers = sorted(wanted)
        if not (numbers and self.remembers):
            return numbers
        _check_reach(numbers[-1])
        return range(numbers[-1] + 1)

    def play(self, steps: Iterable[int]) -> Iterator[tuple[int, Pixels]]:
        """Computes frames in order, each with its number. A picture is only good until the next."""
        for number in steps:
            yield number, self._tick(number, number / self._fps)

    def at(self, time: float) -> Pixels:
        """The picture at a time, which may lie within a frame."""
        number = floor(time * self._fps + _SLACK)
        if self.remembers:
            _check_reach(number)
            for _ in self.play(range(number)):
                pass
        return self._tick(number, time)

    def samples(self, start: float, end: float) -> Iterator[Samples]:
        """The sound from `start` to `end` seconds, block by block: [samples, channels], single precision. Raises
        WeftError if there is none."""
        if self._sound is None or not self.sounds:
            raise self.nothing("nothing-to-hear", "the patch has nothing to play", "audio(…) plays strands")
        first, behind = (round(seconds * self._sound.rate) for seconds in (start, end))
        self._levels = self._sound.watch(first, behind)
        at = 0
        for block in self._all_samples(behind):
            wanted = block[max(0, first - at) : behind - at]
            at += len(block)
            if len(wanted):
                yield wanted

    def _all_samples(self, behind: int) -> Iterator[Samples]:
        """From the first sample on, at least up to, and without, the one of this number: what sounds may depend on all
        that has sounded. Where it is given something by pictures, it is cut into blocks by their frames, wherever it
        ends. The first frame comes before the first sample."""
        assert self._sound is not None
        if not self._swap.runner.gives:
            yield from self._sound.until(behind)
            return
        self._run(0, 0.0)
        for number in count(1):
            end = self._sample_behind(number / self._fps)
            yield from self._sound.until(end)
            if end >= behind:
                return
            self._run(number, number / self._fps)

    def _sample_behind(self, time: float) -> int:
        """The number of the first sample that a frame at this time does not read."""
        assert self._sound is not None
        return floor(time * self._sound.rate + _SAMPLE_SLACK) + 1

    def _run(self, number: int, time: float) -> list[TickResult]:
        """One frame of all but the sound, which is given what it reads from there."""
        env = replace(self._env, tick=number, abstime=time)
        results = self._swap.runner.run(env)
        if self._sound is not None and self._swap.runner.gives:
            self._sound.feed(self._swap.runner.feeds(env))
            self._sound.show(self._swap.runner.seen(env))
        return results

    def _tick(self, number: int, time: float) -> Pixels:
        is_first = number == 0 and self._swap.runner.gives
        if self._sound is not None and self._reads_sound and not is_first:
            for _ in self._sound.until(self._sample_behind(time)):
                pass
        shown = main_picture(self._run(number, time)) if self.shows else None
        if shown is None:
            raise self.nothing("nothing-to-show", "the patch has nothing to show", "display(…) shows strands")
        self._has_shown = True
        self._look(shown, number, time)
        picture = shown.array
        return picture if picture.dtype == np.uint8 else np.moveaxis(picture, 0, -1)

    def _look(self, shown: TickResult, number: int, time: float) -> None:
        """Notes which outputs of a picture are not numbers."""
        picture = shown.array
        if picture.dtype != np.uint8:
            for label, plane in zip(shown.labels, picture, strict=False):
                missing = int(np.isnan(plane).sum())
                self._planes[label] = self._planes.get(label, _Planes()).after(plane.size, missing, time)
        elif self._looks and not self._dark and not picture.any(axis=(0, 1)).all():
            # NaN is shown as 0: only the numbers themselves tell it from what is dark on purpose.
            self._looks -= 1
            moment = TrialMoment(number, time, 1 / self._fps, self._env.inputs)
            with suppress(WeftError):
                self._dark = dict.fromkeys(dark_outputs(self._swap.compiled, self._here, moment), time)


@dataclass(frozen=True)
class _Planes:
    """How many values an output had, how many of them were not numbers, and the time of the first of these."""

    count: int = 0
    missing: int = 0
    first: float = 0.0

    def after(self, count: int, missing: int, time: float) -> _Planes:
        return _Planes(self.count + count, self.missing + missing, self.first if self.missing else time)


def _rendering(
    loader: ProgramLoader, compiled: CompiledProgram, inputs: Mapping[str, float], clips: bool
) -> Rendering | None:
    """The sound of a program, if it has any that can be computed."""
    streams = {unit.subgraph.context for unit in compiled.streaming.units}
    if not streams or any(loader.backend(context) is None for context in streams):
        return None
    return Rendering(loader, compiled, inputs, clips=clips)
