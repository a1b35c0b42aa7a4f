"""The fields of `me`: how each derives from the base coordinates, and what a map of it moves."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Generic, NamedTuple, Protocol, TypeVar

from weft.graph.settings import LIVE, SETTINGS

V = TypeVar("V")

BASES = ("x", "y", "abstime", "channel")

# Counters step just behind the moment they count, so that a time that was rounded down still counts as its frame.
_COUNTER_SLACK = 0.001


@dataclass(frozen=True, slots=True, eq=False)
class Coordinates(Generic[V]):
    """Where a strand is evaluated: the base coordinates, and the axes that instances bring along (`c@k`), sorted.

    Elaboration keeps a single object for coordinates of equal values, and compares nothing but identity."""

    x: V
    y: V
    abstime: V
    channel: V
    axes: tuple[tuple[str, V], ...] = ()

    def base(self, name: str) -> V:
        value: V = getattr(self, name)
        return value

    @property
    def key(self) -> Hashable:
        """Equal for coordinates of equal values."""
        return self.x, self.y, self.abstime, self.channel, self.axes

    def values(self) -> tuple[V, ...]:
        """The values of all coordinates and axes."""
        return (self.x, self.y, self.abstime, self.channel, *(value for _, value in self.axes))

    def axis(self, name: str) -> V | None:
        """The value of an axis `instance@axis`, None where it was never mapped."""
        return next((value for axis, value in self.axes if axis == name), None)

    def moved(self, maps: Mapping[str, V]) -> Coordinates[V]:
        """With other values for the bases and axes named."""
        x, y, abstime, channel = (maps.get(name, self.base(name)) for name in BASES)
        axes = dict(self.axes) | {name: value for name, value in maps.items() if name not in BASES}
        return Coordinates(x, y, abstime, channel, tuple(sorted(axes.items(), key=lambda item: item[0])))


class Algebra(Protocol[V]):
    """What deriving a field asks of a domain."""

    def const(self, value: float) -> V: ...
    def op(self, name: str, *args: V) -> V: ...
    def uniform(self, name: str) -> V: ...
    def call(self, value: V, name: str, local: bool) -> None: ...


@dataclass(frozen=True)
class Environment(Generic[V]):
    """What fields are derived with: the algebra, the settings of the patch, the context's own counters, and the
    coordinates of an evaluation that nothing has remapped."""

    algebra: Algebra[V]
    settings: Mapping[str, float]
    counters: tuple[str, ...]
    own: Coordinates[V]

    def setting(self, name: str) -> V:
        return self.algebra.uniform(name) if name in LIVE else self.algebra.const(self.settings[name])

    def field(self, name: str, at: Coordinates[V]) -> V:
        """The value of `me@name` at coordinates. Raises KeyError for an unknown field."""
        if name in BASES:
            return at.base(name)
        if name in SETTINGS:
            return self.setting(name)
        if name == "aspect":
            value = self.ops("div", self.setting("width"), self.setting("height"))
        else:
            value = FIELDS[name].value(self, at)
        self.algebra.call(value, name, local=True)
        return value

    def ops(self, name: str, *args: V | float) -> V:
        algebra = self.algebra
        return algebra.op(name, *(algebra.const(float(a)) if isinstance(a, (int, float)) else a for a in args))

    @property
    def loop_seconds(self) -> float:
        return self.settings["loop"] / self.settings["fps"]

    @property
    def beat_seconds(self) -> float:
        return 60 / self.settings["bpm"]


@dataclass(frozen=True, slots=True)
class Field:
    """A derived field. `inverse` gives the value of `base` at which the field is `target`, as far as it can be chosen:
    fields of the time shift it by the difference."""

    name: str
    base: str
    doc: str
    example: str
    value: Callable[[Environment[V], Coordinates[V]], V]
    inverse: Callable[[Environment[V], Coordinates[V], V], V]


def _pixel(base: str, size: str) -> tuple[Callable[..., object], Callable[..., object]]:
    def value(env: Environment[V], at: Coordinates[V]) -> V:
        return env.ops("floor", env.ops("mul", at.base(base), env.setting(size)))

    def inverse(env: Environment[V], at: Coordinates[V], target: V) -> V:
        return env.ops("div", env.ops("add", target, 0.5), env.setting(size))

    return value, inverse


def _time(env: Environment[V], at: Coordinates[V]) -> V:
    return env.ops("mod", at.abstime, env.loop_seconds) if env.settings["loop"] else at.abstime


def _time_inverse(env: Environment[V], at: Coordinates[V], target: V) -> V:
    if not env.settings["loop"]:
        return target
    return env.ops("add", at.abstime, env.ops("sub", target, _time(env, at)))


def _counter(own: str, speed: str, wraps: bool) -> tuple[Callable[..., object], Callable[..., object]]:
    def value(env: Environment[V], at: Coordinates[V]) -> V:
        if own in env.counters and at.abstime is env.own.abstime:
            count = env.algebra.uniform(own)
            return env.ops("mod", count, env.settings["loop"]) if wraps and env.settings["loop"] else count
        seconds = _time(env, at) if wraps else at.abstime
        return env.ops("floor", env.ops("add", env.ops("mul", seconds, env.settings[speed]), _COUNTER_SLACK))

    def inverse(env: Environment[V], at: Coordinates[V], target: V) -> V:
        seconds = env.ops("div", target, env.settings[speed])
        return _time_inverse(env, at, seconds) if wraps else seconds

    return value, inverse


def _musical(
    of_beats: Callable[[Environment[V], V], V], length: Callable[[Environment[V]], float]
) -> tuple[Callable[..., object], Callable[..., object]]:
    """A field of the beats since the start, and the shift of the time that reaches another value of it; `length` is
    how many seconds a difference of 1 in the field takes."""

    def value(env: Environment[V], at: Coordinates[V]) -> V:
        return of_beats(env, env.ops("div", at.abstime, env.beat_seconds))

    def inverse(env: Environment[V], at: Coordinates[V], target: V) -> V:
        difference = env.ops("sub", target, value(env, at))
        return env.ops("add", at.abstime, env.ops("mul", difference, length(env)))

    return value, inverse


def _measure_seconds(env: Environment[V]) -> float:
    return env.beat_seconds * env.settings["timesig_num"]


def _fields() -> Mapping[str, Field]:
    rows = (
        ("px", "x", "column of the pixel, from 0", "me@px % 2", _pixel("x", "width")),
        ("py", "y", "row of the pixel, from 0 at the top", "me@py % 8 < 4", _pixel("y", "height")),
        ("time", "abstime", "seconds, starting again with the loop", "sin(me@time)", (_time, _time_inverse)),
        ("frame", "abstime", "frames, starting again with the loop", "me@frame % 60 / 60",
         _counter("absframe", "fps", True)),
        ("absframe", "abstime", "frames since the start", "hash(me@px, me@py, me@absframe)",
         _counter("absframe", "fps", False)),
        ("sample", "abstime", "samples, starting again with the loop", "me@sample % 100 / 100",
         _counter("abssample", "rate", True)),
        ("abssample", "abstime", "samples since the start", "hash(me@abssample) - 0.5",
         _counter("abssample", "rate", False)),
        ("beat", "abstime", "beat in the measure, from 0", "me@beat == 0", _musical(
            lambda env, beats: env.ops("mod", env.ops("floor", beats), env.settings["timesig_num"]),
            lambda env: env.beat_seconds)),
        ("measure", "abstime", "measures since the start", "hash(me@measure)", _musical(
            lambda env, beats: env.ops("floor", env.ops("div", beats, env.settings["timesig_num"])),
            _measure_seconds)),
        ("beatphase", "abstime", "place in the beat, 0…1", "exp(-4 * me@beatphase)", _musical(
            lambda env, beats: env.ops("fract", beats), lambda env: env.beat_seconds)),
        ("measurephase", "abstime", "place in the measure, 0…1", "step(me@measurephase, me@x)", _musical(
            lambda env, beats: env.ops("fract", env.ops("div", beats, env.settings["timesig_num"])),
            _measure_seconds)),
    )  # fmt: skip
    return MappingProxyType({name: Field(name, base, doc, example, *pair) for name, base, doc, example, pair in rows})


FIELDS = _fields()
"""The derived coordinates, which may be mapped."""

# Not coordinates: a map of them would mean nothing.
FIXED_FIELDS = frozenset({"aspect", *SETTINGS})

ALL_FIELDS = (*BASES, *FIELDS, *sorted(FIXED_FIELDS))


class About(NamedTuple):
    """What there is to know of a field: one sentence, and an expression that shows it at work."""

    doc: str
    example: str


ABOUT: Mapping[str, About] = MappingProxyType(
    {
        "x": About("place in the picture from left to right, 0…1; in sound it runs 0…1 `pitch` times a second",
                   "sin(me@x * tau)"),
        "y": About("place in the picture from top to bottom, 0…1; in sound it runs 0…1 once in `sweep` seconds",
                   "mix(0.2, 0.8, me@y)"),
        "abstime": About("seconds since the start, which neither a save nor the loop resets", "sin(me@abstime)"),
        "channel": About("channel of the sound: 0 is left, 1 is right; 0 in a picture",
                         "if me@channel == 0 then me@x else me@y"),
        "aspect": About("width of the picture divided by its height",
                        "hypot((me@x - 0.5) * me@aspect, me@y - 0.5) < 0.3"),
        **{name: About(field.doc, field.example) for name, field in FIELDS.items()},
        **{name: About(setting.doc, setting.example) for name, setting in SETTINGS.items()},
    }
)  # fmt: skip
"""Every field, settings included, by the name behind `me@`."""
