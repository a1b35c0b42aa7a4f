"""The name of a strand, as a patch writes it, and the names of what kernels sample: the picture of a strand that
another context computes, sounds, letters, live pictures, the smaller levels of pictures, and what is heard in a sound.
All other such names are paths of files. Inputs have names as well: a microphone, and the numbers that others send."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

_AXIS = "axis"


def is_axis(coordinate: str) -> bool:
    """Whether a coordinate of a kernel is that of an axis; see `StrandRef.coordinates`."""
    return coordinate.startswith(_AXIS)


class StrandRef(NamedTuple):
    """A strand by the names the patch gives it.

    Subgraphs may also read one of another `along` axes of caches and the like: `c@v(c@k)` is the strand c@v as a
    function of c@k, which is 0 for c@v itself. It is a strand of its own, whose output is called `v(c@k)`. A base
    coordinate may be such an axis, too: `t@v(me@channel)`."""

    instance: str
    output: str

    def __str__(self) -> str:
        return f"{self.instance}@{self.output}"

    @property
    def short(self) -> str:
        """The strand as it is usually written, without axes."""
        output = self.alone.output
        if output.isdigit():  # a bundle without names
            return f"{self.instance}[{output}]"
        return f"{self.instance}@{output}".removesuffix("@val")

    def along(self, axes: Iterable[StrandRef]) -> StrandRef:
        """The strand along some axes."""
        return StrandRef(self.instance, f"{self.output}({', '.join(map(str, axes))})")

    @property
    def alone(self) -> StrandRef:
        """The strand without axes, as a patch names it."""
        return StrandRef(self.instance, self.output.partition("(")[0])

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes along which it is read, by their names (`c@k`)."""
        listed = self.output.partition("(")[2].removesuffix(")")
        return tuple(listed.split(", ")) if listed else ()

    @property
    def coordinates(self) -> tuple[str, ...]:
        """The names of the coordinates for its axes, in a kernel that computes it at points."""
        return tuple([f"{_AXIS}{number}" for number in range(len(self.axes))])


def base_axis(coordinate: str) -> StrandRef:
    """A base coordinate as an axis."""
    return StrandRef("me", coordinate)


RESERVED: Mapping[str, str] = MappingProxyType(
    {
        "me": "a coordinate is read as me@x",
        "mouse": "the mouse is read as mouse@x",
        "key": "a key is read as key@space",
    }
)
"""The names that belong to weft, each with how a field of it is read."""

POSITIONS = ("xyzw", "rgba", "lr")
"""The letters that name the members of a bundle without names, by position."""


def is_swizzle(output: str) -> bool:
    """Whether `@output` may name several members of a bundle: `@rgb`, `@xxy`."""
    return 2 <= len(output) <= 4 and any(set(output) <= set(letters) for letters in POSITIONS)


def view_of(strand: StrandRef) -> str:
    """The name of the picture of a strand, among pictures from files."""
    return f"<{strand}>"


def is_view(picture: str) -> bool:
    """Whether a picture is the view of a strand."""
    return picture.startswith("<") and picture.endswith(">")


def viewed(picture: str) -> StrandRef:
    """The strand of a view."""
    instance, _, output = picture[1:-1].partition("@")
    return StrandRef(instance, output)


LETTERS_EM = 96
"""The em of letters, in pixels of their picture of distances."""
LETTERS_REACH = 48
"""How far the distances reach on both sides of the outlines, in pixels; also the margin around the letters."""

# What comes between the scheme and the host of an address.
_LOGIN = re.compile(r"(?<=://)[^/?#]*@")

_LETTERS = "text:"
_LEVELS = "levels:"
_LIVE = "live:"
_SOUND = "sound:"
_FILM = "film"


def levels_of(path: str) -> str:
    """The name of the smaller levels of a picture from a file, as one picture."""
    return _LEVELS + path


def is_levels(picture: str) -> bool:
    """Whether a picture holds the smaller levels of another one."""
    return picture.startswith(_LEVELS)


def levelled(picture: str) -> str:
    """The path of the picture whose smaller levels these are."""
    return picture.removeprefix(_LEVELS)


def is_file(picture: str) -> bool:
    """Whether a picture is the one in a file itself."""
    return not (
        is_view(picture) or is_live(picture) or is_heard(picture) or is_sound(picture) or is_letters(picture)
        or is_levels(picture)
    )  # fmt: skip


class Letters(NamedTuple):
    """A text as a picture: its font by the path of a file, and how its lines are aligned. It is a picture of distances,
    or of colours."""

    text: str
    font: str | None
    align: str
    in_colour: bool = False

    @property
    def name(self) -> str:
        """Its name among pictures."""
        return _LETTERS + json.dumps(self)


def is_letters(picture: str) -> bool:
    """Whether a picture is that of letters."""
    return picture.startswith(_LETTERS)


def letters_of(picture: str) -> Letters:
    """The letters of their name."""
    return Letters(*json.loads(picture.removeprefix(_LETTERS)))


class LiveName(NamedTuple):
    """A picture that changes while a program plays: its source, and the arguments of the call, which are constant."""

    source: str
    args: tuple[str | float, ...]

    @property
    def name(self) -> str:
        """Its name among pictures."""
        return _LIVE + json.dumps([self.source, *self.args])


class FilmFile(NamedTuple):
    """A film by the path of its file, and whether it begins again after its end."""

    path: str
    loops: bool

    def at(self, key: str) -> str:
        """Its name among pictures, where it is read at a time with this key."""
        return LiveName(_FILM, (self.path, float(self.loops), key)).name


def is_live(picture: str) -> bool:
    """Whether a picture changes while a program plays."""
    return picture.startswith(_LIVE)


def live_of(picture: str) -> LiveName:
    """The source and the arguments of a live picture."""
    source, *args = json.loads(picture.removeprefix(_LIVE))
    return LiveName(source, tuple(args))


_MICROPHONE = "mic:"


class MicrophoneName(NamedTuple):
    """A channel of a microphone: its device, empty for the system's choice, and the number of the channel from 0."""

    device: str
    channel: int

    @property
    def name(self) -> str:
        """Its name among the inputs of a sound."""
        return f"{_MICROPHONE}{self.device}@{self.channel}"


def is_microphone(name: str) -> bool:
    """Whether an input of a sound is heard by a microphone."""
    return name.startswith(_MICROPHONE)


def microphone_of(name: str) -> MicrophoneName:
    """The device and the channel of a microphone's name."""
    device, _, channel = name.removeprefix(_MICROPHONE).rpartition("@")
    return MicrophoneName(device, int(channel))


class SoundFile(NamedTuple):
    """A sound by the path of its file, in samples at a rate."""

    path: str
    rate: int

    @property
    def name(self) -> str:
        """Its name among pictures, and that of the uniform that is the number of its samples. Unlike the names of
        inputs, it contains no `@`."""
        return f"{_SOUND}{self.rate}:{self.path.replace('%', '%25').replace('@', '%40')}"


def is_sound(picture: str) -> bool:
    """Whether what a kernel samples is a sound: [1, samples, 2], left and right."""
    return picture.startswith(_SOUND)


def sound_of(picture: str) -> SoundFile:
    """The file and the rate of a sound."""
    rate, _, path = picture.removeprefix(_SOUND).partition(":")
    return SoundFile(path.replace("%40", "@").replace("%25", "%"), int(rate))


HEARD_ROWS = 512
"""The rows of the picture of what is heard in a sound, one for each hop: row n is at n modulo that."""
HEARD_AHEAD = 128
"""The number of rows after the newest, which repeat it. The others reach into the past."""
_HOP_SECONDS = 512 / 48000
_HEARD = "heard:"


def hop_length(rate: float) -> int:
    """The samples of a hop, for which an analysis gives a row: 512 at 48 kHz, at other rates those of the same time."""
    return max(1, round(rate * _HOP_SECONDS))


class HeardName(NamedTuple):
    """What an analysis hears in a strand, as a picture: its rows are hops of time, and its planes outputs. `args` are
    the arguments besides the strand, which is written as it is called."""

    analysis: str
    args: tuple[float, ...]
    strand: str

    @property
    def name(self) -> str:
        """Its name among pictures."""
        return _HEARD + json.dumps(self)


def is_heard(picture: str) -> bool:
    """Whether a picture is what an analysis hears."""
    return picture.startswith(_HEARD)


def heard_of(picture: str) -> HeardName:
    """The analysis of the picture of what it hears."""
    analysis, args, strand = json.loads(picture.removeprefix(_HEARD))
    return HeardName(analysis, tuple(args), strand)


def columns(heard: HeardName) -> int:
    """The width of the picture of what an analysis hears: the bands of a spectrum."""
    return int(heard.args[0]) if heard.args else 1


_SENT = "sent:"


class SentName(NamedTuple):
    """A number that others send, message by message (MIDI, OSC): its source, the arguments of the call, which are
    constant, and the output."""

    source: str
    args: tuple[str | float, ...]
    output: str

    @property
    def name(self) -> str:
        """Its name among the inputs of kernels."""
        return f"{_SENT}{json.dumps([self.source, *self.args])}@{self.output}"


COUNT = "count"
"""The output that counts how often something has happened so far: `osc("/kick")@count`, `key@a@count`."""


def count_of(event: str) -> str:
    """The name of the input that counts an event, by that of the event: a key, or an output that others send."""
    return f"{event}@{COUNT}"


def is_count(name: str) -> bool:
    """Whether an input of a kernel counts events."""
    return name.endswith(f"@{COUNT}") and (is_sent(name) or name.count("@") > 1)


def is_sent(name: str) -> bool:
    """Whether an input of a kernel is sent by others."""
    return name.startswith(_SENT)


@cache
def sent_of(name: str) -> SentName:
    """The source, the arguments and the output of a number that is sent."""
    call, _, output = name.removeprefix(_SENT).rpartition("]@")
    source, *args = json.loads(f"{call}]")
    return SentName(source, tuple(args), output)


CLOCK = "clock"
CLOCK_START = SentName(CLOCK, (), "start").name
CLOCK_DAY = SentName(CLOCK, (), "day").name
"""The time of day: the local seconds at time 0 since the midnight before the performance, and the day of that midnight,
as days since 1 January 2000."""


def shown(picture: str) -> str:
    """The name of a picture or a sound in messages, without a name and password that its address may have."""
    if is_sound(picture):
        return sound_of(picture).path
    if is_heard(picture):
        return f"{heard_of(picture).analysis}(…)"
    if is_levels(picture):
        return f"the smaller levels of {levelled(picture)}"
    if is_letters(picture):
        letters = letters_of(picture)
        words = f"text({json.dumps(letters.text, ensure_ascii=False)})"
        return f"the colours of {words}" if letters.in_colour else words
    if not is_live(picture):
        return picture
    source, args = live_of(picture)
    if source == _FILM:
        return str(args[0])
    return f"{source}({', '.join(map(_shown_argument, args))})"


def _shown_argument(arg: str | float) -> str:
    return json.dumps(_LOGIN.sub("…@", arg), ensure_ascii=False) if isinstance(arg, str) else f"{arg:g}"


def file_of(picture: str) -> str | None:
    """The path of the file that a picture, a sound or letters are read from. None if they need none, and for live
    pictures, which watch their files themselves."""
    if is_live(picture) or is_heard(picture):
        return None
    if is_sound(picture):
        return sound_of(picture).path
    if is_levels(picture):
        return levelled(picture)
    return letters_of(picture).font if is_letters(picture) else picture


def origin_of(picture: str) -> str | None:
    """The path of the file that a picture, a film, a sound or letters are read from; None if there is none."""
    if is_live(picture) and live_of(picture).source == _FILM:
        return str(live_of(picture).args[0])
    return file_of(picture)
