"""The table of sources (`load`, `camera`, `mic`, `fft`, …): their parameters, outputs and axes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

from weft.keys import PAD_AXES, PAD_BUTTONS
from weft.names import COUNT
from weft.packages import add_rows

# The kind of an argument: a constant string, a constant number, one of both, or a strand that is analysed.
ArgumentKind: TypeAlias = Literal["text", "number", "text or number", "strand"]


@dataclass(frozen=True, slots=True)
class SourceParam:
    """A parameter of a source; one without a default must be given."""

    name: str
    kind: ArgumentKind
    default: float | str | None = None
    whole: tuple[int, int] | None = None
    """The least and the greatest value, of a whole number."""
    is_address: bool = False
    """Whether it is an address of OSC."""
    is_camera: bool = False
    """Whether a text is what `weft.cameras` knows."""
    among: tuple[str, ...] = ()
    """All values, of a text that is one of a few words."""


@dataclass(frozen=True, slots=True)
class MediaKind:
    """One kind of file that `load` reads: by ending, with its outputs and axes. `owner` is the only context that can
    read it. `sound` are further outputs that it can be bound to, over the time."""

    name: str
    endings: tuple[str, ...]
    outputs: tuple[str, ...]
    axes: tuple[str, ...]
    owner: str | None = None
    sound: tuple[str, ...] = ()


def ends_as(path: str, kind: MediaKind) -> bool:
    """Whether a path ends like a file of a kind."""
    return path.rpartition(".")[2].lower() in kind.endings


SEQUENCE_RATE = 25
"""Pictures of a sequence in a second, if the text does not say how many."""


def is_sequence(path: str) -> bool:
    """Whether a path names pictures by their numbers, such as `shots/%04d.png`."""
    return re.search(r"%0?\d?d[^/\\]*$", path, re.ASCII) is not None


class Remark(NamedTuple):
    """A warning about a file that can be read."""

    code: str
    message: str
    hint: str


class MediaHeader(NamedTuple):
    """The header of a file: the size of its pictures in pixels; its length in seconds, which may be estimated; the
    channels of its sound; for a font, whether it has colours; whether its pixels have an alpha; whether it is a picture
    of several frames, and so a film; and remarks about it. Values that it does not have are 0."""

    width: int = 0
    height: int = 0
    seconds: float = 0.0
    channels: int = 0
    has_colours: bool = False
    has_alpha: bool = False
    moves: bool = False
    remarks: tuple[Remark, ...] = ()


HIDDEN = 2.0**-24
"""The weight of a colour where the alpha is 0. A picture with alpha is stored as its colours times their weights, which
are the alpha elsewhere, so that colours are interpolated and shrunk by how much there is of them; what is read is
divided by the weight there. That changes nothing where the alpha is 1, and the colours under an alpha of 0 can still be
read."""

UNSEEN = MediaHeader(1, 1, 1.0, channels=2)
"""The header of a file whose header has not been read."""


@dataclass(frozen=True, slots=True)
class PictureLevels:
    """The smaller levels of a picture of `width` × `height` pixels, as one picture. A pixel of level k, from 1 to
    `count`, is the mean of 2ᵏ × 2ᵏ pixels; the picture is continued by its edge for that. The levels are below one
    another, each with a border of one pixel that repeats its edge."""

    width: int
    height: int

    @property
    def count(self) -> int:
        """The number of levels: the last one is at least four pixels wide and high."""
        return max(0, (min(self.width, self.height) // 4).bit_length() - 1)

    @property
    def whole(self) -> tuple[int, int]:
        """Width and height of level 0, continued so that all levels are whole fractions."""
        unit = 1 << self.count
        return -(-self.width // unit) * unit, -(-self.height // unit) * unit

    def size(self, level: int) -> tuple[int, int]:
        """Width and height of a level without its border."""
        width, height = self.whole
        return width >> level, height >> level

    def top(self, level: int) -> int:
        """The first row of a level, below the border above it."""
        height = self.whole[1]
        return height - (height >> (level - 1)) + 2 * level - 1

    @property
    def together(self) -> tuple[int, int]:
        """Width and height of the picture that holds all of them."""
        return self.size(1)[0] + 2, self.top(self.count + 1) - 1


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """One source. `axes` are the coordinates over which it is sampled, in the order of a positional remap: base
    coordinates, or its own (`band`'s `k`). `owner` is the only context that can read it; None: every context can.
    `media` lists the kinds of file that it reads; they then determine outputs and axes."""

    name: str
    params: tuple[SourceParam, ...]
    outputs: tuple[str, ...]
    axes: tuple[str, ...]
    doc: str
    example: str
    owner: str | None = None
    media: tuple[MediaKind, ...] = ()
    is_computed: bool = False
    """Whether it reads nothing from outside: the text that it is called with determines its outputs."""
    is_drawn: bool = False
    """Whether weft draws a picture for it, of the text that it is called with."""
    is_live: bool = False
    """Whether it is a picture that changes while a program plays; its outputs are red, green, blue and alpha."""
    is_heard: bool = False
    """Whether it is a sound input, with an output for each channel."""
    is_sent: bool = False
    """Whether others send its outputs, message by message; each is the last number that came, 0 before the first."""
    is_named: bool = False
    """Whether its name alone, without a call, reads it, if nothing else has that name."""
    is_analysis: bool = False
    """Whether it analyses a sound: its first argument is a strand, which audio evaluates for it."""
    is_mixed: bool = False
    """Whether its outputs are of different kinds, such as a pitch and a time, so that they are no channels."""
    hops: int = 0
    """The hops of sound that a row of an analysis covers."""
    running: tuple[str, ...] = ()
    """The outputs of an analysis that run on between two of its rows: a time in seconds, or the phase of `bpm`. For a
    source that others send, these are the seconds since a moment that is sent."""
    further: tuple[str, ...] = ()
    """Outputs that it can be bound to after the others. They are not members of its bundle."""
    events: tuple[str, ...] = ()
    """The outputs that are counted, each by itself, as in `pad@a@count`."""
    facts: tuple[tuple[str, str], ...] = ()
    """Further facts about it, each with a heading."""


PICTURE = MediaKind("picture", ("png", "jpg", "jpeg", "gif", "webp", "bmp"), ("r", "g", "b", "a"), ("x", "y"))
FILM = MediaKind(
    "film", ("mp4", "webm", "mov", "mkv", "avi", "m4v", "mpg", "mpeg", "ts", "ogv"), ("r", "g", "b", "a"),
    ("x", "y", "abstime"), owner="visual", sound=("left", "right"),
)
SOUND = MediaKind(
    "sound", ("wav", "flac", "ogg", "mp3", "opus", "m4a", "aac", "aif", "aiff", "wv"), ("l", "r"), ("abstime",),
)  # fmt: skip

_ANALYSED = SourceParam("strand", "strand")

_MIDI = (SourceParam("channel", "number", 0, whole=(0, 16)), SourceParam("device", "text", ""))
_MIDI_FACTS = (("count", "midi_cc(7)@count: how many messages came that are not 0; of notes and programs all"),
               ("channel", "1…16; 0: all of them"), ("device", "a part of its name in weft devices; else all of them"))

ORDERS = ("newest", "oldest", "lowest", "highest", "steady")
"""How held notes are given to voices: in an order, or (`steady`) so that a note stays where it is."""

NEVER = 100.0
"""The age, at the beginning of the performance, of an event that has never come."""

_ROWS = (
    SourceSpec("load",
               (SourceParam("path", "text"), SourceParam("loop", "number", 0),
                SourceParam("fps", "number", SEQUENCE_RATE)),
               (), (),
               "a picture, film or sound file, relative to the patch", 'load("picture.png")::img<r, g, b>',
               media=(PICTURE, FILM, SOUND),
               facts=(("of pictures", "img@width and img@height: their size in pixels"),
                      ("that move", "a gif, png or webp of several frames is a film, by its own times"),
                      ("in a row", 'load("shots/%04d.png", fps: 24) is a film of 24 pictures a second'),
                      ("of films", "f@r(me@time ~ me@time * 0.5) at half speed; they repeat unless loop: 0"),
                      ("their sound", 'load("film.mp4")::s<l, r>; both: load("film.mp4")::f<r, g, b, a, left, right>'),
                      ("of sounds", "loop: 1 repeats them; k@l(me@time ~ since(hit)) plays them"),
                      ("length", "k@seconds, of sounds and films"))),
    SourceSpec("pattern",
               (SourceParam("text", "text"), SourceParam("per", "number", 4), SourceParam("seed", "number", 0)),
               ("value", "gate", "since", "index", "step"), ("abstime",),
               "events in the notation of live coding, whose cycle takes `per` beats; words of its own are outputs too",
               'pattern("c4 [eb4 g4] ~ <bb4 c5>")::p<value, gate, since>', is_computed=True, is_mixed=True,
               facts=(
                   ("of words", "for each word in it, such as bd: bd, its gate, and bd_since"),
                   ("of voices", "value2, gate2, … for what is after the first comma, and so on"),
                   ("steps", "0.5 number, c4 eb3 f#5 note, bd word, ~ rest, 0 .. 3 run"),
                   ("groups", "[0 7] in one step, <0 7> one a cycle, [0|7] one by chance, {0 3 7}%4 four a cycle"),
                   ("suffixes", "0*2 faster, 0/2 slower, 0@3 longer, 0!2 twice, 0(3,8) Euclidean, 0?0.3 left out"),
                   ("by cycle", "a number of a suffix may take turns: 0*<2 3>, 0(<3 5>,8)"),
               )),
    SourceSpec("camera", (SourceParam("index", "text or number", 0, whole=(0, 999), is_camera=True),),
               ("r", "g", "b"), ("x", "y"),
               "the picture of a camera, by its number or its path, of a generated picture, or of a stream",
               "camera(index: 0)::cam<r, g, b>", owner="visual", is_live=True,
               facts=(("others", '"/dev/video2", "film.mp4" as it runs, "testsrc2 size=320x180 rate=30"'),
                      ("streams", '"rtsp://…" and others need weft run --allow net'))),
    SourceSpec("desktop",
               (SourceParam("x", "number", 0, whole=(0, 32767)), SourceParam("y", "number", 0, whole=(0, 32767)),
                SourceParam("width", "number", 0, whole=(0, 8192)),
                SourceParam("height", "number", 0, whole=(0, 8192))),
               ("r", "g", "b"), ("x", "y"), "what the screens show now, or a part of it",
               "desktop(x: 0, y: 0, width: 640, height: 360)::d<r, g, b>", owner="visual", is_live=True,
               facts=(("width, height", "0: as far as it goes"), ("systems", "X11, macOS and Windows; not Wayland"))),
    SourceSpec("window", (SourceParam("title", "text"),), ("r", "g", "b"), ("x", "y"),
               "what the window of another program shows now, by a part of its title", 'window("notes")::w<r, g, b>',
               owner="visual", is_live=True,
               facts=(("of several", "the one in front; one with this very title comes first"),
                      ("systems", "X11 and Windows"))),
    SourceSpec("mic", (SourceParam("device", "text or number", ""),),
               ("l", "r", "c3", "c4", "c5", "c6", "c7", "c8"), ("abstime",),
               "what a microphone hears now, or any other sound input", "mic()::m<l, r>", owner="audio", is_heard=True,
               facts=(("device", "its number in weft devices, or a part of its name; else the system's choice"),
                      ("earlier", "delay(m@l, 4800, 4800) in sounds; m@l(me@time ~ me@time - 0.1) in pictures"))),
    SourceSpec("text",
               (SourceParam("text", "text"), SourceParam("size", "number", 0.1), SourceParam("font", "text", ""),
                SourceParam("align", "text", "center")),
               ("v", "distance"), ("x", "y"),
               "letters in the middle of the picture: 1 inside them and 0 outside, and the distance to their outlines",
               'text("hello", size: 0.2)::t<v, distance>', is_drawn=True, further=("r", "g", "b", "a"),
               facts=(("size", "the em, in heights of the picture"),
                      ("font", "a ttf or otf file, relative to the patch"),
                      ("align", '"left", "center" or "right", of several lines'),
                      ("colours", "t<v, distance, r, g, b, a>: those of emoji, in a font that has them"))),
    SourceSpec("fft", (_ANALYSED, SourceParam("bands", "number", 32, whole=(2, 64))),
               ("band", "low", "mid", "high"), ("k",), "the spectrum of a sound",
               "fft(phasor(220), bands: 32)::spectrum<band, low>", is_analysis=True, hops=4,
               facts=(("band", "level of band k: spectrum@band(k); from 40 Hz at k = 0 to 16 kHz, at equal ratios"),
                      ("low mid high", "levels below 250 Hz, from 250 Hz to 4 kHz, and above"),
                      ("levels", "0 at -60 dB or less, 1 for a sine of full scale; they fall from 1 to 0 in 0.5 s"))),
    SourceSpec("rms", (_ANALYSED,), ("v",), (), "the loudness of a sound: the root of the mean square",
               "rms(phasor(220))", is_analysis=True, hops=4),
    SourceSpec("peak", (_ANALYSED,), ("v",), (), "the peak of a sound; it falls to 37 % in 0.1 s", "peak(phasor(220))",
               is_analysis=True, hops=1),
    SourceSpec("onset", (_ANALYSED,), ("value", "age"), (), "hits in a sound: where something begins",
               "onset(phasor(220))::o<value, age>", is_analysis=True, is_mixed=True, hops=2, running=("age",),
               facts=(("value", "the strength of a hit, 0…1; it falls to 0 within 50 ms"),
                      ("age", "seconds since the last hit, 100 before the first"))),
    SourceSpec("pitch", (_ANALYSED,), ("frequency", "confidence"), (), "the pitch of a tone, from 50 Hz to 2 kHz",
               "pitch(phasor(220))::p<frequency, confidence>", is_analysis=True, is_mixed=True, hops=4,
               facts=(("frequency", "in Hz; stays what it was where there is no tone"),
                      ("confidence", "1 for a tone, about 0 for noise, 0 for silence"))),
    SourceSpec("tempo", (_ANALYSED,), ("bpm", "phase", "confidence"), (), "the beats in a sound, 60 to 180 a minute",
               "tempo(phasor(220))::t<bpm, phase, confidence>", is_analysis=True, is_mixed=True, hops=2,
               running=("phase",),
               facts=(("bpm", "of the last 6 seconds; 0 before the first beats"),
                      ("phase", "place in the beat, 0…1; 0 on the beat"),
                      ("confidence", "1 for even beats, about 0 without"))),
    SourceSpec("osc",
               (SourceParam("address", "text", is_address=True), SourceParam("index", "number", 0, whole=(0, 63))),
               ("v",), (), "the last number that was received by OSC at an address", 'osc("/fader/1")', is_sent=True,
               further=(COUNT,),
               facts=(("count", 'osc("/kick")@count: how many came that are not 0, each of which rise and tally hear'),
                      ("index", "which argument of the messages, from 0; texts count, but have no number"),
                      ("on stage", "weft run --osc 9000 listens at port 9000; before the first message it is 0"),
                      ("a button", "1 in one frame at least; a message without arguments is 1 in one frame"))),
    SourceSpec("midi_cc", (SourceParam("number", "number", whole=(0, 127)), *_MIDI), ("v",), (),
               "a MIDI controller, 0…1", "midi_cc(1)", is_sent=True, further=(COUNT,), facts=_MIDI_FACTS),
    SourceSpec("midi_note",
               (SourceParam("voice", "number", 0, whole=(0, 15)), *_MIDI,
                SourceParam("order", "text", "newest", among=ORDERS)),
               ("note", "velocity", "gate", "age"), (), "a MIDI note that is held",
               "midi_note()::n<note, velocity, gate, age>", is_sent=True, is_mixed=True, running=("age",),
               further=(COUNT,),
               facts=(("outputs", "note 0…127 for mtof, velocity 0…1, gate 1 while it is held, age in seconds"),
                      ("voice", "which of the held notes, from 0: the newest, unless `order` says otherwise"),
                      ("order", " ".join(f'"{order}"' for order in ORDERS)),
                      ("steady", "a note stays in its voice, and a voice in its note after the end: for chords"),
                      *_MIDI_FACTS)),
    SourceSpec("midi_bend", _MIDI, ("v",), (), "the pitch bend wheel of MIDI, -1…1", "midi_bend()", is_sent=True,
               further=(COUNT,), facts=_MIDI_FACTS),
    SourceSpec("midi_pressure", _MIDI, ("v",), (), "how hard keys are pressed (the aftertouch of MIDI), 0…1",
               "midi_pressure()", is_sent=True, further=(COUNT,), facts=_MIDI_FACTS),
    SourceSpec("midi_program", _MIDI, ("v",), (), "the number of the MIDI program that was chosen, 0…127",
               "midi_program()", is_sent=True, further=(COUNT,), facts=_MIDI_FACTS),
    SourceSpec("pad", (SourceParam("index", "number", 0, whole=(0, 15)),), (*PAD_AXES, *PAD_BUTTONS), (),
               "a gamepad; pad@lx is that of the first one", "mix(0.2, 0.8, pad@rt)", is_sent=True, is_named=True,
               events=PAD_BUTTONS,
               facts=(("lx ly rx ry", "the sticks, -1…1; ly and ry are 1 at the bottom"),
                      ("lt rt", "the triggers, 0…1"),
                      ("buttons", "1 while held: a b x y lb rb back start guide, ls rs the sticks, up right down left"),
                      ("count", "pad@a@count: how often a button was pressed"),
                      ("index", "which gamepad, from 0: pad(1)@a, or pad(1)::second<lx, a>"),
                      ("without one", "0, as in a terminal and in a render"))),
)  # fmt: skip

_MEDIA = (PICTURE, FILM, SOUND)

_TABLE = {row.name: row for row in _ROWS}

def owner_of(source: str) -> str | None:
    """The only context that can read a source, or a kind of file, by its name; None: every context can."""
    return SOURCES[source].owner if source in SOURCES else next(m.owner for m in _MEDIA if m.name == source)


SOURCES: Mapping[str, SourceSpec] = MappingProxyType(_TABLE)
"""All sources by name: those of weft, and those of packages once `load_sources` has found them."""

_OPENERS: dict[str, Any] = {}

OPENERS: Mapping[str, Any] = MappingProxyType(_OPENERS)
"""The classes that open the sources of packages, by their names: they are like those of `weft.media.source`, with a
`spec`."""


@cache
def load_sources() -> tuple[str, ...]:
    """Adds the sources of packages to the table. Returns the problems of those that cannot be loaded."""
    return add_rows("source", _TABLE, _OPENERS, lambda name, found: replace(found.spec, name=name, is_live=True))
