"""Programs of several contexts, written at random and run from end to end as `weft render` runs them: pictures, sound
and numbers, which read each other, on the reference against another machine.

What differs has to be explained as in `rule`: by the reference with its numbers moving, all contexts at once. A picture
is compared as planes, a sound as samples, both as they are given out.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.support.choices import on_processor
from tests.support.parity.author import Author
from tests.support.parity.cases import REFUSED, grain, picture
from tests.support.parity.moved import MOVING, DoubleMovement, Movement, MovingSteps
from tests.support.parity.pieces import PICTURE, SOUND, Piece, Surroundings
from tests.support.parity.recipes import UNIT, Interval
from tests.support.sounds import write_wav
from tests.support.tolerances import GENERATED
from weft.backends.cpu import CpuBackend
from weft.backends.executors import NOTHING, Executor
from weft.backends.launch import Floats
from weft.backends.registry import load_registry
from weft.backends.select import Choice
from weft.backends.vm import ReferenceExecutable, ReferenceExecutor
from weft.codegen.kernel import Kernel
from weft.errors import Source, WeftError
from weft.runtime.compiling.stages import Build, Request, build
from weft.runtime.films.offline import Offline, raw

RATE, FPS = 2000, 50
SIZE = (7, 2)
_HEAD = f"me<width> = {SIZE[0]}\nme<height> = {SIZE[1]}\nme<fps> = {FPS}\nme<rate> = {RATE}\n"

FRAMES, SECONDS = 3, 0.033
"""How much is played: frames, and sound to just after the last of them."""

# What a program of several contexts may be refused for besides.
_REFUSED = REFUSED | {"cannot-read-across", "cycle", "lost-coordinate", "several-contexts"}
_ATTEMPTS = 8

_RUNS = (4, 24)


@dataclass
class Ensemble(Author):
    """Writes programs of several contexts. Each reads what those before it remember."""

    voices: list[Piece] = field(default_factory=list)
    """The strands that remember."""
    axes: list[str] = field(default_factory=list)
    """The axes of caches."""

    def program(self, statements: Sequence[str], counts: Sequence[int]) -> str:
        around = self.given()
        if self.chance(0.5):
            around = replace(around, spindles=(self.spindle("f0", ()),))
        for k in range(self.pick((1, 2, 3))):
            around = self.statement(k, around)
        contexts = self.pick((("display", "audio"), ("display", "compute"), ("display", "audio", "compute"),
                              ("audio", "compute", "display"), ("display", "play"), ("compute", "audio")))  # fmt: skip
        for at, context in enumerate(contexts):
            around = self.voice(f"s{at}", context, around)
        return "\n".join(self.lines) + "\n"

    def voice(self, name: str, context: str, around: Surroundings) -> Surroundings:
        """A strand of a context, which remembers more often than not and so is tied to it, and what is given out."""
        self.left = max(self.left, 15)
        everywhere = around
        if context in ("audio", "play") and not self.chance(0.03):
            around = self.at_a_place(around)
        if self.chance(0.6):
            piece = self.fitted(self.expression(around, 2), UNIT)
            turn = self.pick((
                f"mix({piece.text}, prev({name}@v), 0.5)", f"hold({piece.text}, {self.trigger(piece)})",
                f"mix(prev({name}@v), {piece.text}, (me@channel + 1) / 3)",
                f"phasor({piece.text} * 3)", f"fract(prev({name}@v) + {piece.text} * 0.3)",
                f"delay({piece.text}, 2, 3)", f"({piece.text} * 1000003) % 7 / 7",
            ))  # fmt: skip
            self.lines.append(f"{name}<v> = {turn}")
            self.voices.append(Piece(f"{name}@v", UNIT, piece.cost + 10, True))
        if self.chance(0.5):
            piece = self.fitted(self.expression(around, 2), UNIT)
            self.lines += [f"o{name}<v> = {piece.text}", f"cache(o{name}, 4)::p{name}<v>"]
            past = [f"p{name}@v", f"(p{name}@v + {self.pick(self.voices).text})"] if self.voices else [f"p{name}@v"]
            self.voices += [Piece(each, UNIT, piece.cost + 6, True) for each in past]
            self.axes.append(f"p{name}@k")
        shown = [self.fitted(self.shown(around, [self.heard(around, around is everywhere)]), UNIT)]
        if context == "display" and self.chance(0.3):
            shown += [self.fitted(self.expression(around, 2), UNIT) for _ in range(2)]
        if context == "compute":
            self.lines.append(f"c{name}<v> = {shown[0].text}")
            shown = [Piece(f"c{name}@v")]
            self.voices.append(Piece(f"c{name}@v", UNIT, 5, True))
        self.lines.append(f"{context}({', '.join(piece.text for piece in shown)})")
        return everywhere

    def heard(self, around: Surroundings, anywhere: bool) -> Piece:
        """What one of the voices says, here or at another place; of another context, if there is one."""
        if not self.voices:
            return self.leaf(around)
        voice = self.pick(self.voices[:-1] or self.voices)
        if self.axes and self.chance(0.6):
            voice = self.earlier(voice, around, anywhere)
        if self.chance(0.2):
            voice = replace(voice, text=f"{voice.text}(me@channel ~ {self.pick(('1', 'mouse@x * 3'))})")
        if not anywhere:
            return self.placed(voice)
        if self.chance(0.5):
            return voice
        to = [self.fitted(self.expression(around, 1), UNIT) for _ in range(2)]
        return replace(voice, text=f"{voice.text}(me@x ~ {to[0].text}, me@y ~ {to[1].text})")

    def earlier(self, voice: Piece, around: Surroundings, anywhere: bool) -> Piece:
        """A voice along axes of caches, to which it may be related or not. A sound reads it once a frame."""
        axes = self.rng.sample(self.axes, min(len(self.axes), self.pick((1, 1, 2))))
        steady = (Piece("2"), Piece("1.5"), Piece("mouse@x * 3"))
        back = [self.pick(steady) for _ in axes]
        if anywhere:
            back = [self.fitted(self.expression(around, 1), Interval(0, 3)) for _ in axes]
        maps = ", ".join(f"{axis} ~ {piece.text}" for axis, piece in zip(axes, back, strict=True))
        return replace(voice, text=f"{voice.text}({maps})", cost=voice.cost + sum(piece.cost for piece in back))

    def at_a_place(self, around: Surroundings) -> Surroundings:
        """The same, with all that may be a picture at a place that stays: a sound that reads a picture wherever it is
        itself is sent all of it with each frame, which takes the reference a second."""
        strands = tuple(self.placed(each) if each.remembers else each for each in around.strands)
        return replace(around, strands=strands, groups=tuple(g for g in around.groups if not g[1].remembers))

    def placed(self, piece: Piece) -> Piece:
        x, y = (self.pick(("0.3", "mouse@x", "0.8")) for _ in "xy")
        return replace(piece, text=f"({piece.text})(me@x ~ {x}, me@y ~ {y})")


def program(seed: int, attempt: int = 0) -> str:
    """Program number `seed` of several contexts."""
    return Ensemble(random.Random(f"contexts {seed}.{attempt}"), left=30).program((), ())


@dataclass(frozen=True)
class Played:
    """What a program gives out: pictures [frames, outputs, height, width] and samples [samples, channels], as far as it
    has such."""

    pictures: Floats | None
    samples: Floats | None

    def parts(self) -> Iterator[tuple[str, Floats]]:
        for name, values in (("pictures", self.pictures), ("samples", self.samples)):
            if values is not None:
                yield name, values


def made(seed: int, folder: Path) -> tuple[str, Build]:
    """The text of program number `seed`, and what it is built to. `folder` is where its pictures are."""
    for attempt in range(_ATTEMPTS):
        text = program(seed, attempt)
        try:
            return text, built(text, folder)
        except WeftError as failure:
            if not {each.code for each in failure.diagnostics if each.severity == "error"} <= _REFUSED:
                raise
    raise ValueError(f"program {seed} is refused {_ATTEMPTS} times")


def built(text: str, folder: Path) -> Build:
    return build(Request(Source(str(folder / "patch.weft"), _HEAD + text), load_registry().contexts))


def write_pictures(folder: Path) -> None:
    """Puts what programs load where they look for it."""
    Image.fromarray((picture() * 255 + 0.5).astype(np.uint8), "RGBA").save(folder / PICTURE)
    write_wav(folder / SOUND, grain()[0] * (2**15 / 32767))


def played(made: Build, executor: str, seed: int | None = None) -> Played:
    """A program, played by an executor; with a `seed`, by the reference with its numbers moving."""
    choices = dict(on_processor("vm" if seed is not None else executor))
    planes = raw(choices["visual"])
    assert planes is not None
    choices["visual"] = planes
    if seed is not None:
        choices = {name: _moving(choice, seed) for name, choice in choices.items()}
    with np.errstate(all="ignore"):
        offline = Offline(made, choices, clips=False)
        pictures = samples = None
        if offline.shows:
            frames = [np.array(np.moveaxis(shown, -1, 0), np.float64) for _, shown in offline.play(range(FRAMES))]
            pictures = np.stack(frames)
        if offline.sounds:
            # Sound begins at the start of its own program.
            offline = Offline(made, choices, clips=False) if offline.shows else offline
            samples = np.concatenate([*offline.samples(0, SECONDS)]).astype(np.float64)
    return Played(pictures, samples)


def differences(made: Build, found: Played, expected: Played) -> list[str]:
    """The differences between a program and the reference that no movement explains, in words."""
    runs = [expected]
    texts: list[str] = []
    for look in (0, *_RUNS):
        runs += [played(made, "vm", seed) for seed in range(len(runs) - 1, look)]
        texts = [
            words
            for (name, values), *others in zip(found.parts(), *(run.parts() for run in runs), strict=True)
            for words in _unexplained(name, values, np.stack([each for _, each in others]))
        ]
        if not texts:
            break
    return texts


def _unexplained(name: str, values: Floats, runs: Floats) -> list[str]:
    """The values that lie outside of what runs [runs, …] span, widened by as much again."""
    with np.errstate(all="ignore"):
        finite = np.where(np.isfinite(runs), runs, np.nan)
        low, high = np.fmin.reduce(finite), np.fmax.reduce(finite)
        size = np.fmax(np.abs(low), np.abs(high))
        margin = np.nan_to_num(high - low + GENERATED.relative * size) + GENERATED.absolute
        low, high = np.fmin.reduce(runs) - margin, np.fmax.reduce(runs) + margin
        fine = np.where(np.isnan(values), np.isnan(runs).any(axis=0), (low <= values) & (values <= high))
        fine |= (runs == values).any(axis=0)
    return [
        f"{name}{list(at)}: {values[at]!r}, not {runs[(0, *at)]!r} ({low[at]!r} … {high[at]!r})"
        for at in map(tuple, np.argwhere(~fine).tolist())
    ]


class _MovingExecutor(ReferenceExecutor):
    """The reference machine, with its numbers moving in all that it runs."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._seed = seed

    def load(self, kernel: Kernel, codes: Any = NOTHING) -> ReferenceExecutable:
        return _MovingExecutable(kernel, self._seed)


class _MovingExecutable(ReferenceExecutable):
    def __init__(self, kernel: Kernel, seed: int) -> None:
        super().__init__(kernel)
        movement = DoubleMovement() if kernel.tick == "element" else Movement()
        movement.begin(seed)
        self._interpreter = MovingSteps(kernel, movement).interpreter(MOVING[seed % 2])


def _moving(choice: Choice, seed: int) -> Choice:
    """The choice, with the reference moving."""

    def begin(self: CpuBackend, executor: str = "vm") -> None:
        choice.backend.__init__(self, executor)
        moving: Executor = _MovingExecutor(seed)
        self._executor = moving

    return replace(choice, backend=type(f"{choice.backend.__name__}Moving", (choice.backend,), {"__init__": begin}))
