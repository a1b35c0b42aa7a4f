"""The domains that elaboration computes over.

Elaboration gives names, spindles, remaps, loops and state their meaning once; a domain decides what the values are:
shapes, which say what a value depends on (`ShapeDomain`, for the render graph), or expressions (`weft.ir.lower`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from weft.beats import BPM, INPUTS, USUAL
from weft.errors import Span, error
from weft.graph.numbers import Numbers
from weft.names import CLOCK_DAY, CLOCK_START, FilmFile, StrandRef
from weft.ops import OPS
from weft.sources import SourceSpec
from weft.syntax.ast import Call, Number

# --- settings: what `me<field> = number` may set ---


@dataclass(frozen=True, slots=True)
class SettingSpec:
    """One setting: `low … high` is the range it is accepted in, `whole` asks for a whole number."""

    name: str
    default: float
    low: float
    high: float
    doc: str
    example: str
    whole: bool = False

    def accepts(self, value: float) -> bool:
        return self.low <= value <= self.high and (not self.whole or value == int(value))

    @property
    def range(self) -> str:
        """The range in words, for messages."""
        kind = "a whole number" if self.whole else "a number"
        return f"{kind} from {self.low:g} to {self.high:g}"


_ROWS = (
    SettingSpec("width", 1280, 1, 16384, "width of the picture in pixels", "me<width> = 640", whole=True),
    SettingSpec("height", 720, 1, 16384, "height of the picture in pixels", "me<height> = 360", whole=True),
    SettingSpec("samples", 1, 1, 8, "samples of a pixel in each direction: 2 and 4 smooth its edges",
                "me<samples> = 2", whole=True),
    SettingSpec("fps", 60, 0.1, 1000, "frames a second", "me<fps> = 30"),
    SettingSpec("rate", 48000, 1000, 768000, "samples a second", "me<rate> = 44100", whole=True),
    SettingSpec("loop", 0, 0, 1e9, "frames after which the time starts again; 0: never", "me<loop> = 600"),
    SettingSpec("bpm", USUAL, 0.1, 10000, "beats a minute", "me<bpm> = 90"),
    SettingSpec("timesig_num", 4, 1, 64, "beats in a measure", "me<timesig_num> = 3", whole=True),
    SettingSpec("timesig_denom", 4, 1, 64, "which note is a beat; it changes no time", "me<timesig_denom> = 8",
                whole=True),
    SettingSpec("pitch", 220, 1e-6, 1e6, "cycles of x a second in audio", "me<pitch> = 110"),
    SettingSpec("sweep", 10, 1e-6, 1e6, "seconds of a cycle of y in audio", "me<sweep> = 4"),
)  # fmt: skip

SETTINGS: Mapping[str, SettingSpec] = MappingProxyType({row.name: row for row in _ROWS})

DEFAULTS: Mapping[str, float] = MappingProxyType({row.name: row.default for row in _ROWS})

# These change while a program runs (a window is resized, a picture is evaluated at another size, someone taps), so
# kernels read them as uniforms. The others are constants of a compile.
LIVE = ("width", "height", BPM)


def fitted(settings: Mapping[str, float], room: tuple[int, int]) -> dict[str, float]:
    """The settings with a picture that fits into `room` (width, height) and keeps its aspect. It is never enlarged."""
    width, height = settings["width"], settings["height"]
    scale = min(1.0, room[0] / width, room[1] / height)
    return {**settings, "width": max(1, round(width * scale)), "height": max(1, round(height * scale))}


# --- the fields of `me`: how each derives from the base coordinates, and what a map of it moves ---

V = TypeVar("V")

BASES = ("x", "y", "abstime", "channel")

Coordinate: TypeAlias = str | StrandRef
"""A coordinate by the name after `me@`, or an axis of an instance (`c@k`)."""

# Seconds.
DAY = 86_400

# Counters step slightly early, so that a time that was rounded down still belongs to its frame.
_COUNTER_SLACK = 0.001


@dataclass(frozen=True, slots=True, eq=False)
class Coordinates(Generic[V]):
    """Where a strand is evaluated: the base coordinates, and the mapped axes of instances, sorted.

    Elaboration keeps a single object for coordinates of equal values, and compares only identity.
    """

    x: V
    y: V
    abstime: V
    channel: V
    axes: tuple[tuple[StrandRef, V], ...] = ()

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

    def axis(self, ref: StrandRef) -> V | None:
        """The value of an axis of an instance; None if it was never mapped."""
        return next((value for axis, value in self.axes if axis == ref), None)

    def moved(self, maps: Mapping[Coordinate, V]) -> Coordinates[V]:
        """The coordinates with other values for the bases and axes named."""
        x, y, abstime, channel = (maps.get(name, self.base(name)) for name in BASES)
        axes = dict(self.axes) | {axis: value for axis, value in maps.items() if isinstance(axis, StrandRef)}
        return Coordinates(x, y, abstime, channel, tuple(sorted(axes.items(), key=lambda item: item[0])))


class Algebra(Protocol[V]):
    """The operations of a domain that deriving a field needs."""

    def const(self, value: float) -> V: ...
    def op(self, name: str, *args: V) -> V: ...
    def uniform(self, name: str, nominal: float | None = None) -> V: ...
    def annotate(self, value: V, name: str, local: bool) -> None: ...


@dataclass(frozen=True)
class Environment(Generic[V]):
    """What fields are derived with: the algebra, the settings of the patch, the context's own counters, and the
    coordinates of an evaluation that nothing has remapped."""

    algebra: Algebra[V]
    settings: Mapping[str, float]
    counters: tuple[str, ...]
    own: Coordinates[V]

    def setting(self, name: str) -> V:
        if name == BPM:
            return self.algebra.uniform(BPM, self.settings[BPM])
        return self.algebra.uniform(name) if name in LIVE else self.algebra.const(self.settings[name])

    def field(self, name: str, at: Coordinates[V]) -> V:
        """The value of `me@name` at coordinates. Raises KeyError for an unknown field."""
        if name in BASES:
            return at.base(name)
        if name in SETTINGS:
            return self.setting(name)
        if name == "aspect":
            value = self.ops("div", self.setting("width"), self.setting("height"))
        elif name in DATE_FIELDS:
            value = _date(self, self.local_day(at))[name]
        else:
            value = FIELDS[name].value(self, at)
        self.algebra.annotate(value, name, local=True)
        return value

    def ops(self, name: str, *args: V | float) -> V:
        algebra = self.algebra
        return algebra.op(name, *(algebra.const(float(a)) if isinstance(a, (int, float)) else a for a in args))

    @property
    def loop_seconds(self) -> float:
        return self.settings["loop"] / self.settings["fps"]

    # The beats are two straight lines (`weft.beats`). They are written as a sum: the later line, and the difference of
    # the earlier one from it. A sum can be split into terms, so the beats stay exact after a long time
    # (`weft.ir.phases`).

    def beats(self, at: Coordinates[V]) -> V:
        """The beats since the start, at coordinates."""
        then, start, before, bpm = map(self.algebra.uniform, INPUTS)
        passed = self.ops("sub", at.abstime, start)
        later = self.ops("add", self.ops("div", passed, self.ops("div", 60, bpm)), then)
        slower = self.ops("div", self.ops("sub", before, bpm), 60)
        return self.ops("add", later, self.ops("mul", self.ops("min", passed, 0.0), slower))

    def seconds(self, at: Coordinates[V], beats: V) -> V:
        """The seconds from these coordinates until this many more beats have passed."""
        then, _, before, bpm = map(self.algebra.uniform, INPUTS)
        lasts, lasted = (self.ops("div", 60, tempo) for tempo in (bpm, before))
        now = self.ops("sub", self.beats(at), then)
        earlier = self.ops("sub", self.ops("min", self.ops("add", now, beats), 0.0), self.ops("min", now, 0.0))
        return self.ops("add", self.ops("mul", beats, lasts),
                        self.ops("mul", earlier, self.ops("sub", lasted, lasts)))  # fmt: skip


    # The time of day is the time of the performance plus a difference that changes only when clocks are set. So it is a
    # function of the time like any other, and a render is the same everywhere.

    def local_seconds(self, at: Coordinates[V]) -> V:
        """The seconds since the midnight before the performance began, in local time."""
        return self.ops("add", at.abstime, self.algebra.uniform(CLOCK_START))

    def local_day(self, at: Coordinates[V]) -> V:
        """The local day, as days since 1 January 2000."""
        passed = self.ops("floor", self.ops("div", self.local_seconds(at), DAY))
        return self.ops("add", passed, self.algebra.uniform(CLOCK_DAY))


@dataclass(frozen=True, slots=True)
class Field:
    """A derived field. `inverse` is the value of `base` at which the field is `target`. Fields of the time shift the
    time by the difference."""

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
    of_beats: Callable[[Environment[V], V], V], in_measures: bool = False
) -> tuple[Callable[..., object], Callable[..., object]]:
    """The value and the inverse of a field that derives from the beats since the start. It grows by 1 in each beat, or
    in each measure."""

    def value(env: Environment[V], at: Coordinates[V]) -> V:
        return of_beats(env, env.beats(at))

    def inverse(env: Environment[V], at: Coordinates[V], target: V) -> V:
        difference = env.ops("sub", target, value(env, at))
        if in_measures:
            difference = env.ops("mul", difference, env.settings["timesig_num"])
        return env.ops("add", at.abstime, env.seconds(at, difference))

    return value, inverse


def _daytime(env: Environment[V], at: Coordinates[V]) -> V:
    return env.ops("mod", env.local_seconds(at), DAY)


def _daytime_inverse(env: Environment[V], at: Coordinates[V], target: V) -> V:
    return env.ops("add", at.abstime, env.ops("sub", target, _daytime(env, at)))


DATE_FIELDS = ("year", "month", "day", "weekday")


def _date(env: Environment[V], days: V) -> dict[str, V]:
    """The date of a day since 1 January 2000. Years begin with March here, so that the leap day is the last one; 400 of
    them have 146,097 days (H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", 2013)."""

    def whole(value: V | float, by: float) -> V:
        return env.ops("floor", env.ops("div", value, by))

    def plus(*terms: tuple[float, V | float]) -> V:
        total = env.ops("mul", terms[0][1], terms[0][0])
        for factor, term in terms[1:]:
            total = env.ops("add", total, env.ops("mul", term, factor))
        return total

    since = env.ops("add", days, 730_425)  # since 1 March of the year 0
    era = whole(since, 146_097)
    of_era = plus((1, since), (-146_097, era))
    leaps = plus((1, of_era), (-1, whole(of_era, 1460)), (1, whole(of_era, 36_524)), (-1, whole(of_era, 146_096)))
    year = whole(leaps, 365)
    of_year = plus((1, of_era), (-365, year), (-1, whole(year, 4)), (1, whole(year, 100)))
    month = whole(plus((5, of_year), (2, 1.0)), 153)  # 0 is March
    is_next = env.ops("ge", month, 10)
    return {
        "year": plus((1, year), (400, era), (1, is_next)),
        "month": plus((1, month), (3, 1.0), (-12, is_next)),
        "day": plus((1, of_year), (-1, whole(plus((153, month), (2, 1.0)), 5)), (1, 1.0)),
        "weekday": env.ops("mod", env.ops("add", days, 5), 7),
    }


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
        ("daytime", "abstime", "time of day: seconds since midnight, in local time; in a render the time",
         "floor(me@daytime / 60) % 60 / 60", (_daytime, _daytime_inverse)),
        ("beats", "abstime", "beats since the start, with fractions", "fract(me@beats / 8)", _musical(
            lambda env, beats: beats)),
        ("beat", "abstime", "beat in the measure, from 0", "me@beat == 0", _musical(
            lambda env, beats: env.ops("mod", env.ops("floor", beats), env.settings["timesig_num"]))),
        ("measure", "abstime", "measures since the start", "hash(me@measure)", _musical(
            lambda env, beats: env.ops("floor", env.ops("div", beats, env.settings["timesig_num"])), True)),
        ("beatphase", "abstime", "place in the beat, 0…1", "exp(-4 * me@beatphase)", _musical(
            lambda env, beats: env.ops("fract", beats))),
        ("measurephase", "abstime", "place in the measure, 0…1", "step(me@measurephase, me@x)", _musical(
            lambda env, beats: env.ops("fract", env.ops("div", beats, env.settings["timesig_num"])), True)),
    )  # fmt: skip
    return MappingProxyType({name: Field(name, base, doc, example, *pair) for name, base, doc, example, pair in rows})


FIELDS = _fields()
"""The derived coordinates, which may be mapped."""

# Not coordinates: they cannot be mapped.
FIXED_FIELDS = frozenset({"aspect", *DATE_FIELDS, *SETTINGS})

ALL_FIELDS = (*BASES, *FIELDS, *sorted(FIXED_FIELDS))


class FieldDoc(NamedTuple):
    """The documentation of a base coordinate, or of the aspect: one sentence and an example."""

    doc: str
    example: str


ABOUT: Mapping[str, FieldDoc | Field | SettingSpec] = MappingProxyType(
    {
        "x": FieldDoc("place in the picture from left to right, 0…1; in sound it runs 0…1 `pitch` times a second",
                   "sin(me@x * tau)"),
        "y": FieldDoc("place in the picture from top to bottom, 0…1; in sound it runs 0…1 once in `sweep` seconds",
                   "mix(0.2, 0.8, me@y)"),
        "abstime": FieldDoc("seconds since the start, which neither a save nor the loop resets", "sin(me@abstime)"),
        "channel": FieldDoc("channel of the sound: 0 is left, 1 is right; 0 in a picture",
                         "if me@channel == 0 then me@x else me@y"),
        "aspect": FieldDoc("width of the picture divided by its height",
                        "hypot((me@x - 0.5) * me@aspect, me@y - 0.5) < 0.3"),
        "year": FieldDoc("the year of the local date; a render begins with 1 January 2000", "me@year % 100 / 100"),
        "month": FieldDoc("the month of the local date, 1…12", "me@month / 12"),
        "day": FieldDoc("the day of the month of the local date, 1…31", "me@day / 31"),
        "weekday": FieldDoc("the day of the week of the local date: 0 is Monday, 6 is Sunday", "me@weekday / 6"),
        **FIELDS,
        **SETTINGS,
    }
)  # fmt: skip
"""Every field, settings included, by the name after `me@`."""


# --- domains ---


class SlotKey(NamedTuple):
    """The name of a slot, which stays the same while the text around it changes: the path of its scope, the builtin,
    and the number of such calls before it in the definition."""

    path: str
    kind: str
    number: int

    def __str__(self) -> str:
        return f"{self.path}/{self.kind}/{self.number}"


@dataclass(frozen=True, slots=True)
class SlotRequest:
    """Memory that a builtin asks for. `depth` is how many ticks back it can be read; an image is read in the tick that
    computes it, so its depth is 0. Its width and height are those of the picture, halved as often as `level` says."""

    key: SlotKey
    depth: int
    planes: int
    span: Span
    level: int = 0


class LoopDraft(Protocol[V]):
    """A loop being built. `index` and `carried` are what its body reads in a step."""

    @property
    def index(self) -> V: ...

    @property
    def carried(self) -> Sequence[V]: ...

    def close(self, nexts: Sequence[V]) -> bool:
        """Takes the values at the end of a step. Returns False if the body has to be evaluated again."""

    @property
    def results(self) -> Sequence[V]:
        """The carried values after the loop."""


class Domain(Protocol[V]):
    """The operations that elaboration needs. Values are hashable; equal values are interchangeable."""

    def const(self, value: float, span: Span | None = None) -> V: ...

    def number(self, number: Number) -> V:
        """A number of the text, which may be open."""

    def op(self, name: str, *args: V, span: Span | None = None) -> V:
        """A row of the table of operators."""

    def uniform(self, name: str, nominal: float | None = None) -> V:
        """A number that is the same in a whole tick. `nominal` is its value unless someone changes it."""

    def unknown(self) -> V:
        """A value about which nothing is known."""

    def constant(self, value: V) -> float | None:
        """The number of a value that is the same at every coordinate; None for other values."""

    def nominal(self, value: V) -> float | None:
        """The number of a value that is the same at every coordinate unless someone changes the tempo; None for other
        values."""

    def is_count(self, value: V, span: Span) -> bool:
        """Whether a value counts events: an input that does, or a sum of such inputs. Raises WeftError for any other
        value computed from a count, except a comparison."""

    def annotate(self, value: V, name: str, local: bool) -> None:
        """Notes the name of a value in the patch: that of a strand, or of a `local` of a spindle."""

    def is_unknown(self, value: V) -> bool:
        """Whether a value might be a constant, because it depends on an argument that was never given."""

    def loop_level(self, value: V) -> int:
        """The level of the innermost loop whose variables a value mentions, -1 for none."""

    def loop(self, level: int, first: V, last: V, inits: Sequence[V], span: Span) -> LoopDraft[V]: ...

    def state(self, slot: SlotRequest, plane: int, ticks: V, at: Coordinates[V], span: Span) -> V:
        """A plane of a slot as it was `ticks` ago, at a place. `ticks` is a whole number from 1, or 0 for an image."""

    def may_keep(self, image: SlotRequest) -> bool:
        """Whether this may be an image: an expression that varies over the picture, where there is one."""

    def image(self, image: SlotRequest, at: Coordinates[V]) -> V | None:
        """What an image keeps at a place, in this tick; None if the expression itself is to be evaluated there."""

    def source(self, call: Call, spec: SourceSpec, plane: int, axis: V | None, at: Coordinates[V]) -> V:
        """A plane of a source at a place; `axis` is the place along its own axis."""

    def picture(self, name: str, plane: int, x: V, y: V, span: Span) -> V:
        """A plane of a picture at a place."""

    def fetch(self, name: str, channel: int, number: V, span: Span) -> V:
        """A sample of a sound by its number, rounded down; 0 where the sound has none."""

    def film(self, film: FilmFile, plane: int, at: Coordinates[V], span: Span) -> V:
        """A plane of a film at a place and a time. Raises WeftError if the time is not the same in a whole picture."""

    def ticks_played(self, ref: StrandRef) -> int:
        """How many earlier ticks of a strand can be read because another context keeps what it has played; 0 for other
        strands."""

    def external(self, ref: StrandRef, at: Coordinates[V], span: Span) -> V | None:
        """A strand that is evaluated elsewhere and read across; None if it is evaluated here."""


# --- the domain of shapes ---

# What a value depends on, one bit each. `UNKNOWN` marks an argument that was never given. They are plain numbers,
# because every expression combines them, and that takes many times as long with flags.
NOTHING = 0
X = 1
Y = 2
TIME = 4
CHANNEL = 8
UNIFORM = 16
UNKNOWN = 32

PLANE = X | Y

PLACES: Mapping[str, int] = MappingProxyType({"x": X, "y": Y, "channel": CHANNEL})
"""The base coordinates other than the time, with their bits."""


class Shape(NamedTuple):
    """What is known of a value: what it depends on, in bits, and its number if it is the same everywhere. A value that
    depends on uniforms has its nominal number. `open` are the open numbers of the text that decide this."""

    over: int
    number: float | None = None
    open: frozenset[Number] = frozenset()


OWN: Coordinates[Shape] = Coordinates(Shape(X), Shape(Y), Shape(TIME), Shape(CHANNEL))


@dataclass(slots=True)
class ShapeLoop:
    """Starts from what the carried values depend on before the loop. Ends when a step adds nothing."""

    index: Shape
    carried: list[Shape]

    def close(self, nexts: Sequence[Shape]) -> bool:
        joined = [Shape(a.over | b.over) for a, b in zip(self.carried, nexts, strict=True)]
        done = joined == self.carried
        self.carried = joined
        return done

    @property
    def results(self) -> Sequence[Shape]:
        return self.carried


@dataclass(slots=True)
class ShapeDomain:
    """`planar` holds the state slots that earlier rounds have found to keep values over x or y."""

    planar: set[SlotKey] = field(default_factory=set)
    numbers: Numbers = field(default_factory=Numbers)

    def const(self, value: float, span: Span | None = None) -> Shape:
        return Shape(NOTHING, float(value))

    def number(self, number: Number) -> Shape:
        return Shape(NOTHING, number.value, frozenset((number,)) if number in self.numbers.open else frozenset())

    def op(self, name: str, *args: Shape, span: Span | None = None) -> Shape:
        over = NOTHING
        numbers: list[float] = []
        opened: frozenset[Number] = frozenset()
        for arg_over, number, arg_open in args:
            over |= arg_over
            if number is not None:
                numbers.append(number)
                opened |= arg_open
        return Shape(over, OPS[name].fold(*numbers), opened) if len(numbers) == len(args) else Shape(over)

    def uniform(self, name: str, nominal: float | None = None) -> Shape:
        return Shape(UNIFORM, nominal)

    def unknown(self) -> Shape:
        return Shape(UNKNOWN)

    def constant(self, value: Shape) -> float | None:
        return self.nominal(value) if value.over == NOTHING else None

    def nominal(self, value: Shape) -> float | None:
        if value.open:
            self.numbers.decide(value.open)
        return value.number

    def is_count(self, value: Shape, span: Span) -> bool:
        return False

    def annotate(self, value: Shape, name: str, local: bool) -> None:
        """Shapes have no use for names."""

    def is_unknown(self, value: Shape) -> bool:
        return bool(value.over & UNKNOWN)

    def loop_level(self, value: Shape) -> int:
        return -1

    def loop(self, level: int, first: Shape, last: Shape, inits: Sequence[Shape], span: Span) -> ShapeLoop:
        ends = first.over | last.over
        return ShapeLoop(Shape(ends | UNIFORM), [Shape(i.over | ends) for i in inits])

    def state(self, slot: SlotRequest, plane: int, ticks: Shape, at: Coordinates[Shape], span: Span) -> Shape:
        sampled = at.x.over | at.y.over if slot.key in self.planar else NOTHING
        return Shape(UNIFORM | ticks.over | sampled)

    def may_keep(self, image: SlotRequest) -> bool:
        return True  # `planar` will show it

    def image(self, image: SlotRequest, at: Coordinates[Shape]) -> None:
        """Contexts without a picture evaluate the expression itself, so what that depends on has to be known."""

    def source(self, call: Call, spec: SourceSpec, plane: int, axis: Shape | None, at: Coordinates[Shape]) -> Shape:
        over = UNIFORM if axis is None else axis.over | UNIFORM
        for name in BASES:
            if name in spec.axes:
                over |= at.base(name).over
        return Shape(over)

    def picture(self, name: str, plane: int, x: Shape, y: Shape, span: Span) -> Shape:
        return Shape(UNIFORM | x.over | y.over)

    def fetch(self, name: str, channel: int, number: Shape, span: Span) -> Shape:
        return Shape(UNIFORM | number.over)

    def film(self, film: FilmFile, plane: int, at: Coordinates[Shape], span: Span) -> Shape:
        if at.abstime.over & (X | Y):
            axis = "x" if at.abstime.over & X else "y"
            raise error(
                "film-time-varies", f"the time of a film is one number a frame, and this one varies over {axis}", span,
                f"for a slit scan, remember the film: cache(f, 60)::c<r>, then c@r(c@k ~ me@{axis} * 59)",
            )  # fmt: skip
        return Shape(UNIFORM | at.x.over | at.y.over)

    def ticks_played(self, ref: StrandRef) -> int:
        return 0

    def external(self, ref: StrandRef, at: Coordinates[Shape], span: Span) -> Shape | None:
        return None
