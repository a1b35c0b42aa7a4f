"""What a value costs on its way between two devices, as programs pay for it: through backend and coordinator."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from types import MappingProxyType

import numpy as np

from weft.backends.base import Backend, Env
from weft.backends.launch import Picture, Value
from weft.backends.registry import load_registry
from weft.backends.select import Choice, choose
from weft.contexts import COMPUTE, VISUAL, ContextTable
from weft.errors import Source
from weft.names import StrandRef
from weft.runtime.build import build
from weft.runtime.coordinator import Part, ProgramRunner
from weft.runtime.measure import constant, timed

# A picture so small that what is drawn takes no time beside what is sent.
_SIZE = (64, 36)

# The side of a picture that is sent to a card.
_LARGE = 512

# How many numbers a program is given, at how many places it reads a strand, and how many values are asked for at once.
_NUMBERS, _BOUND, _BATCH = 26, 8, 4096

_FAR = StrandRef("far", "v")
_FAR_TEXT = "far<v> = prev(far@v) * 0.5 + me@x\ndisplay(far@v)\ncompute(far@v)\n"


@dataclass(frozen=True, slots=True)
class Transfer:
    """The way of so many bytes from one device to another. `claimed_us` is what machines whose processor and card share
    one memory are said to take, where anything is said."""

    source: str
    target: str
    mechanism: str
    bytes: int
    p50_us: float
    claimed_us: float | None = None


def transfers(seconds: float, cards: Sequence[Choice]) -> list[Transfer]:
    """The ways between the CPU and itself, and between it and each card that draws pictures; about so many seconds for
    each. Raises WeftError if a card does not do what it should."""
    found = list(_within_cpu(seconds))
    for card in cards:
        if card.context == VISUAL.name:
            backend = card.make()
            for measured in (_on_card, _to_card, _from_card, _as_they_are):
                found += measured(card.shown, backend, seconds)
    return found


def _within_cpu(seconds: float) -> Iterator[Transfer]:
    backend = choose(load_registry(), [VISUAL.name], "cpu")[VISUAL.name].make()
    for count, took in _asked(backend, seconds):
        yield Transfer("cpu", "cpu", "call", count * np.dtype(np.float64).itemsize, took, 0.005 * count)


def _from_card(name: str, backend: Backend, seconds: float) -> Iterator[Transfer]:
    for count, took in _asked(backend, seconds):
        claimed = 50 + (0.002 * count if count > 1 else 0)
        yield Transfer(name, "cpu", "read", count * np.dtype(np.float64).itemsize, took, claimed)


def _asked(backend: Backend, seconds: float) -> Iterator[tuple[int, float]]:
    """How long it takes, in µs, to ask a picture's backend for one value, and for a batch of them."""
    rig = _Rig(backend, _FAR_TEXT)
    rig.tick()
    for count in (1, _BATCH):
        coords: Mapping[str, Value] = {"x": np.linspace(0, 1, count), "y": np.full(count, 0.5)}
        yield count, timed(partial(rig.ask, _FAR, coords), seconds).p50 * 1e3


def _on_card(name: str, backend: Backend, seconds: float) -> Iterator[Transfer]:
    """A strand that one subgraph computes on the card, at every pixel of the picture of another one: read at one more
    place, and bound there. Nothing is copied."""
    if backend.capabilities().handles:
        several, single = (_Rig(backend, _chain_text(count)) for count in (_BOUND, 1))
        took = _difference_us(several.tick, single.tick, seconds) / (_BOUND - 1)
        yield Transfer(name, name, "bind", math.prod(_SIZE) * np.dtype(np.float32).itemsize, took, 0.01)


def _to_card(name: str, backend: Backend, seconds: float) -> Iterator[Transfer]:
    """One more number that changes in every frame, and a picture that does."""
    given, plain = (_Rig(backend, _numbers_text(keys)) for keys in (True, False))
    took = _difference_us(given.tick, plain.tick, seconds) / _NUMBERS
    yield Transfer("cpu", name, "uniform", np.dtype(np.float32).itemsize, took, 0.1)
    changing, steady = (_Rig(backend, *_sampling(film, 1, _LARGE)) for film in ("c", "d"))
    frames = cycle([_sampling("c", 1, _LARGE)[1] for _ in range(2)])
    took = _difference_us(lambda: changing.tick(next(frames)), steady.tick, seconds)
    yield Transfer("cpu", name, "buffer", _picture(_LARGE).nbytes, took, 0.1)


def _as_they_are(name: str, backend: Backend, seconds: float) -> Iterator[Transfer]:
    """The bytes of a picture on their way to the memory of a device and back, and from place to place in it, without
    any program."""
    given = _picture(_LARGE)
    pool = backend.pool(3 * given.nbytes)
    one, other = (pool.take(given.shape, given.dtype) for _ in range(2))
    backend.upload(given, one)
    ways: Mapping[tuple[str, str, str], Callable[[], object]] = {
        ("cpu", name, "upload"): partial(backend.upload, given, one),
        (name, "cpu", "download"): partial(backend.download, one),
        (name, name, "copy"): partial(pool.copy, one, other),
    }
    for (source, target, mechanism), work in ways.items():

        def finished(work: Callable[[], object] = work) -> None:
            work()
            backend.sync("device")

        yield Transfer(source, target, mechanism, given.nbytes, timed(finished, seconds).p50 * 1e3)


def _picture(side: int) -> Picture:
    return np.full((side, side, 4), 0.5, np.float32)


def _sampling(film: str, count: int, side: int) -> tuple[str, dict[str, Picture]]:
    """A picture that samples so many others at always as many places, and these by their paths. A backend may keep a
    picture by its path, so each `film` has paths of its own."""
    paths = [f"{film}-{at}.png" for at in range(count)]
    loads = "".join(f'p{at}<r, g, b> = load("{path}")\n' for at, path in enumerate(paths))
    terms = (f"p{at % count}@r(me@x ~ me@x + {at / _BOUND})" for at in range(_BOUND))
    return f"{loads}display(fract(me@time) + {' + '.join(terms)})\n", {path: _picture(side) for path in paths}


def _chain_text(places: int) -> str:
    """A picture that reads a strand of a picture at so many places. A number that is made of the one and shown by the
    other is between them, so that they are two subgraphs."""
    terms = (f"far@v(me@x ~ me@x + {at / places})" for at in range(places))
    between = "between = integrate(far@v(me@x ~ 0.5, me@y ~ 0.5))\ncompute(between)\n"
    return f"far<v> = prev(far@v) * 0.5 + me@x\n{between}display(between + {' + '.join(terms)})\n"


def _numbers_text(keys: bool) -> str:
    """A picture that is given as many numbers as there are letters, from outside or as constants."""
    letters = [chr(ord("a") + at) for at in range(_NUMBERS)]
    factors = [f"key@{letter}" if keys else f"{at / _NUMBERS}" for at, letter in enumerate(letters)]
    terms = " + ".join(f"{factor} * sin(me@x * {at + 1})" for at, factor in enumerate(factors))
    return f"display(fract(me@time) * ({terms}))\n"


def _difference_us(more: Callable[[], object], less: Callable[[], object], seconds: float) -> float:
    """By how much the one takes longer than the other, in µs; they take turns. What is less than can be told is 0."""
    differences: list[float] = []

    def pair() -> None:
        started = time.perf_counter()
        more()
        between = time.perf_counter()
        less()
        differences.append((between - started) - (time.perf_counter() - between))

    timed(pair, seconds)
    return max(0.0, float(np.median(differences[1:])) * 1e6)


class _Rig:
    """One program, of which pictures are drawn by a backend, tick by tick. Nothing else of it is computed: what they
    read of it is a constant."""

    def __init__(self, backend: Backend, text: str, pictures: Mapping[str, Picture] = MappingProxyType({})) -> None:
        """`pictures` are what it samples, by their paths. Raises WeftError for what the backend cannot take."""
        # Numbers that are remembered belong to compute here, as those of a patch with sound belong to audio.
        contexts = ContextTable((VISUAL, replace(COMPUTE, state_rank=-1)))
        settings = {"width": float(_SIZE[0]), "height": float(_SIZE[1])}
        program = build(Source("(measured)", text), contexts, settings)
        self._backend = backend
        self._runner = ProgramRunner(contexts)
        self._env = Env(*_SIZE, dt=1 / 60, pictures=pictures)
        parts = []
        for unit in program.units:
            if unit.subgraph.context == VISUAL.name:
                compiled = backend.compile_subgraph(unit, self._env, self._runner)
                parts.append(Part(unit, backend, compiled))
                for ref in unit.subgraph.exposes:
                    self._runner.expose(ref, backend, compiled)
            else:
                for ref in unit.subgraph.exposes:
                    self._runner.hear(ref, constant)
        self._runner.parts = tuple(parts)

    def tick(self, pictures: Mapping[str, Picture] | None = None) -> None:
        """Draws the next picture, from other `pictures` if they are given, and waits for it."""
        env = self._env
        shown = env.pictures if pictures is None else pictures
        self._env = replace(env, tick=env.tick + 1, abstime=env.abstime + env.dt, pictures=shown)
        self._runner.run(self._env)
        self._backend.sync("device")

    def ask(self, ref: StrandRef, coords: Mapping[str, Value]) -> None:
        """Asks for a strand at coordinates."""
        self._runner.values({ref: coords}, self._env)
