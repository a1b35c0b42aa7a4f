"""Contexts: the consumers of strands, with the coordinates that they sweep and the arguments of their output
statements.

Packages add backends by the entry point `weft.backends`, and contexts with them. A backend imports numpy, and perhaps a
device's library. Commands that run nothing need not import them if the package names its context separately, by an
entry point `weft.contexts` of the same name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from weft.names import is_axis
from weft.packages import backend_points, load_backend, points

# How often a coordinate changes within a context: `once` (a number), `frame` (once a frame, block or tick), `column`
# (along a row: it varies with x), `row` (it varies with y), `element` (at every element).
Sweep: TypeAlias = Literal["once", "frame", "column", "row", "element"]


def is_smoothed(coordinate: str) -> bool:
    """Whether a coordinate is an input that is smoothed from value to value, and not a place or time."""
    return "@" in coordinate


@dataclass(frozen=True, slots=True)
class ContextSpec:
    """One context. Backends refer to it by `name`; a backend may add its own."""

    name: str
    statements: tuple[str, ...]
    """The output statements that consume strands in this context: the usual name first, then aliases."""
    doc: str
    example: str
    layouts: tuple[tuple[str, ...], ...] = ()
    """The numbers and names of the strands that an output statement takes, e.g. `(("gray",), ("r", "g", "b"))`; empty:
    any number, each with an optional label."""
    spread: tuple[str, ...] = ()
    """The output names by which a bare instance is taken apart (`display(inst)`); otherwise by position."""
    labelled: bool = False
    """Whether every argument needs its label, because the layouts mean different things."""
    optional: tuple[str, ...] = ()
    """Further places that each layout may have, by their labels."""
    label_groups: Mapping[str, tuple[str, ...]] | None = None
    """Labels for several places at once: `rgb:` fills r, g and b."""
    sweeps: Mapping[str, Sweep] | None = None
    """How the base coordinates x, y, abstime and channel change; by default the time changes once a tick and the others
    never."""
    counters: tuple[str, ...] = ()
    """The counters that this context owns and reads as uniforms (`absframe`). Others are derived from the time."""
    read_over: tuple[str, ...] = ()
    """The base coordinates at which other contexts may read a strand that is tied to this one."""
    keeps: int = 0
    """How many of its ticks are kept, so that other contexts can read its strands at earlier times."""
    merge: Literal["sum", "single", "concat"] = "concat"
    """How several output statements to one target combine: `sum` adds them, `single` makes a second one an error,
    `concat` lists their values one after another."""
    targets: bool = False
    """Whether `to: "name"` may choose among several targets."""
    rate: float | None = None
    """Ticks a second, if the context has its own rate; None: the frame rate or sample rate of the patch."""
    state_rank: int | None = None
    """Of several contexts that consume a strand with state, the one with the smallest rank evaluates it. State over x
    or y prefers a context that sweeps these."""
    raster: bool = False
    """Whether x and y are derived from the time (the audio raster) instead of being swept."""
    streams: bool = False
    """Whether it is played block by block, by a device at its own pace. Inputs (mouse, keys, parameters, strands of
    other contexts) are then smoothed from each value to the next, and swept by element."""

    addressed: bool = False
    """Whether the first argument is a text: the address to which the values are sent. Two statements cannot have the
    same one."""

    in_one_memory: bool = False
    """Whether all its subgraphs run on one device, where one can read the memory of another. Then each picture that
    needs state evaluates it, and one of them advances it."""

    in_blocks: bool = False
    """Whether the time is the sum of that of the first sample of a block and the seconds `since` then."""

    ranges: Mapping[str, tuple[int, int]] | None = None
    """The least and the most that arguments of these labels may be, after rounding. Constants beyond are warned of."""
    first: str | None = None
    """The label of the argument that says where the other values begin. They fill places one by one, up to the most
    that it may be."""

    def sweep_of(self, coordinate: str) -> Sweep:
        swept = (self.sweeps or {}).get(coordinate)
        if swept is not None:
            return swept
        if is_smoothed(coordinate) or is_axis(coordinate):
            return "element"
        return "frame" if coordinate == "abstime" else "once"

    @property
    def ticks(self) -> Sweep:
        """How often the state of this context advances."""
        return self.sweep_of("since" if self.in_blocks else "abstime")

    @property
    def sweeps_plane(self) -> bool:
        """Whether x and y are swept independently, so that a strand over them is a picture."""
        return self.sweep_of("x") == "column" and self.sweep_of("y") == "row"

    def by_blocks(self) -> ContextSpec:
        """This context for devices that have only single precision. Expressions of the time of a block are computed
        beforehand, in double precision, and the time within a block is a small number."""
        return replace(self, in_blocks=True, sweeps={**(self.sweeps or {}), "abstime": "frame", "since": "element"})


VISUAL = ContextSpec(
    name="visual",
    statements=("display", "render"),
    doc="shows a picture: every pixel of every frame",
    example="display(me@x, me@y, 0.5)",
    layouts=(("gray",), ("r", "g", "b"), ("r", "g", "b", "a")),
    spread=("r", "g", "b", "a"),
    label_groups={"rgb": ("r", "g", "b")},
    sweeps={"x": "column", "y": "row"},
    counters=("absframe",),
    read_over=("x", "y"),
    merge="single",
    targets=True,
    state_rank=1,
)

CHANNELS = (
    "left", "right", "third", "fourth", "fifth", "sixth", "seventh", "eighth", *(f"channel{n}" for n in range(9, 65))
)  # fmt: skip
"""The places of an `audio` statement with one channel each, in the order of the device's channels."""


def channel_of(label: str) -> int | None:
    """The only channel to which an output of this label goes; None: all."""
    place = label.rpartition(".")[2]
    return CHANNELS.index(place) if place in CHANNELS else None


AUDIO = ContextSpec(
    name="audio",
    statements=("audio", "play"),
    doc="plays a sound: every sample of it",
    example="audio(sin(me@time * 440 * tau) * 0.2)",
    layouts=(("mono",), *(CHANNELS[:count] for count in range(2, len(CHANNELS) + 1))),
    sweeps={"x": "element", "y": "element", "abstime": "element", "channel": "frame"},
    read_over=("abstime",),
    keeps=131_072,
    merge="sum",
    state_rank=0,
    raster=True,
    streams=True,
)

COMPUTE = ContextSpec(
    name="compute",
    statements=("compute",),
    doc="computes numbers, once a tick (the frame rate), on the CPU",
    example="compute(mouse@x, speed: phasor(0.5))",
    counters=("absframe",),
    state_rank=2,
)

OSC_SEND = ContextSpec(
    name="osc_send",
    statements=("osc_send",),
    doc="sends a message by OSC when one of its numbers changes, at most 60 a second",
    example='osc_send("/light/1", me@beatphase, mouse@x)',
    counters=("absframe",),
    merge="single",
    addressed=True,
)

MIDI = ContextSpec(
    name="midi",
    statements=("midi",),
    doc="sends MIDI when its numbers change: a note, a controller 0…1, a bend -1…1, pressure 0…1 or a program 0…127",
    example='midi(note: 60, velocity: 0.8, gate: me@beatphase < 0.5, to: "synth")',
    layouts=(("note", "gate"), ("note", "velocity", "gate"), ("cc", "value"), ("bend",), ("pressure",), ("program",)),
    labelled=True,
    optional=("channel",),
    counters=("absframe",),
    targets=True,
)

LIGHTS = ContextSpec(
    name="lights",
    statements=("lights",),
    doc="sends levels to lamps, 0…1, one for each channel of a universe of DMX from `at` on, 44 times a second",
    example="lights(universe: 1, at: 17, lamp: <1, 0.5, 0.2> * me@beatphase)",
    counters=("absframe",),
    ranges={"universe": (0, 63_999), "at": (1, 512)},
    first="at",
)

OWN_CONTEXTS = (VISUAL, AUDIO, COMPUTE, OSC_SEND, MIDI, LIGHTS)
"""The contexts of weft itself."""


class ContextTable:
    """The contexts of one compile, in the order in which they were given."""

    def __init__(self, specs: Iterable[ContextSpec] = OWN_CONTEXTS) -> None:
        self._by_name = {spec.name: spec for spec in specs}
        self._by_statement = {s: spec for spec in self._by_name.values() for s in spec.statements}

    def __getitem__(self, name: str) -> ContextSpec:
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[ContextSpec]:
        return iter(self._by_name.values())

    def of_statement(self, statement: str) -> ContextSpec | None:
        """The context that an output statement of this name belongs to."""
        return self._by_statement.get(statement)

    @property
    def statements(self) -> list[str]:
        """Every output statement's name, aliases included."""
        return list(self._by_statement)


# --- the contexts of packages ---


def context_table() -> ContextTable:
    """All contexts, for commands that run nothing. Packages that cannot be loaded are left out; commands that run
    something report why."""
    specs: dict[str, ContextSpec] = {spec.name: spec for spec in OWN_CONTEXTS}
    alone = {point.name: point for point in points("weft.contexts")}
    for point in backend_points():
        try:
            spec: ContextSpec | None = alone[point.name].load() if point.name in alone else load_backend(point).spec
        except Exception:
            continue
        if spec is not None:
            specs.setdefault(spec.name, spec)
    return ContextTable(specs.values())
