"""What programs are made of: pieces with what is known about them, names that can stand anywhere, maps, parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.support.parity.recipes import UNIT, Interval


@dataclass(frozen=True, slots=True)
class Piece:
    """An expression that can stand anywhere: a name, a number, a call, or something in parentheses; about where its
    values lie, what it costs in additions, and whether it remembers."""

    text: str
    interval: Interval = UNIT
    cost: float = 1
    remembers: bool = False


def _fields(**ends: tuple[float, float]) -> tuple[Piece, ...]:
    return tuple(Piece(f"me@{name}", Interval(*interval)) for name, interval in ends.items())


# Coordinates of an element. The time and all counters grow without end: they are used raw, or in a bounded form.
PLACES = (
    *_fields(x=(0, 1), y=(0, 1)), Piece("(me@x - me@y)", Interval(-1, 1), 2), Piece("(me@x * me@y)", UNIT, 2),
    Piece("(me@y + me@x * 3)", Interval(0, 4), 3),
)  # fmt: skip
FIELDS = (
    *_fields(px=(0, 36), py=(0, 1), time=(0, 4), abstime=(0, 4), beat=(0, 3), measure=(0, 3), beatphase=(0, 1),
             measurephase=(0, 1), aspect=(18, 19), channel=(0, 1), width=(30, 40), height=(1, 3), bpm=(60, 140)),
    Piece("(me@time % 4)", Interval(0, 4)), Piece("fract(me@time * 0.3)"), Piece("sin(me@time)", Interval(-1, 1)),
    Piece("(me@frame % 7)", Interval(0, 6)), Piece("hash(me@absframe)"), Piece("(me@sample % 1000)", Interval(0, 999)),
    Piece("(me@abssample * 1e-6)", Interval(0, 4)),
)  # fmt: skip
INPUTS = (
    *(Piece(f"mouse@{name}") for name in ("x", "y", "down", "left", "right")), Piece("mouse@wheel", Interval(0, 3)),
    Piece("key@space"), Piece("key@a"),
)  # fmt: skip
CONSTANTS = (Piece("pi", Interval(3.1, 3.2)), Piece("tau", Interval(6.2, 6.3)), Piece("e", Interval(2.7, 2.8)))

# What a map may put in for each coordinate; maps of the time stay away from memory.
MAPS_OF_PLACES = (("me@x",), ("me@y",), ("me@x", "me@y"), ("me@px",), ("me@py",), ("me@px", "me@y"))
MAPS_OF_TIME = (("me@time",), ("me@x", "me@time"), ("me@frame",), ("me@beat",), ("me@beatphase",), ("me@channel",))
MAPPED = {"me@px": Interval(0, 36), "me@py": UNIT, "me@time": Interval(0, 4), "me@frame": Interval(0, 200),
          "me@beat": Interval(0, 4)}  # fmt: skip

PARAMETERS = (
    ('#slider {0}<v> = 0, 1, 0.3 "{0}"', ("v",)), ("#slider {0}<v> = -1, 2, 1.7", ("v",)),
    ("#toggle {0}<v> = 1", ("v",)), ("#xy {0}<x, y> = 0.25, 0.7", ("x", "y")),
    ('#color {0}<r, g, b> = "#ff8840"', ("r", "g", "b")),
)  # fmt: skip
SETTINGS = ("me<loop> = 90", "me<bpm> = 93", "me<timesig_num> = 3", "me<fps> = 30", "me<pitch> = 110")

# The picture and the sound that programs load; the tests that run them provide them.
PICTURE = "grain.png"
SOUND = "grain.wav"


@dataclass(frozen=True, slots=True)
class Spindle:
    """A template. Its parameters take any piece."""

    name: str
    params: int
    outputs: tuple[str, ...]
    interval: Interval
    cost: float
    remembers: bool


@dataclass(frozen=True)
class Surroundings:
    """What an expression may mention."""

    strands: tuple[Piece, ...] = ()
    groups: tuple[tuple[str, Piece], ...] = ()
    """Names of two values each."""
    spindles: tuple[Spindle, ...] = ()
    template: bool = False
    """Within a spindle, whose parameters may be values with memory."""
    bare: bool = False
    """Within a loop whose steps are not written out: nothing but names, numbers and operations."""

    def also(self, *strands: Piece) -> Surroundings:
        return replace(self, strands=(*self.strands, *strands))
