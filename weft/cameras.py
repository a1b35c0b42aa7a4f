"""The possible arguments of `camera`: a device, a picture that FFmpeg generates, a film file, or a stream of the
network.

A text of a patch is only compared with what is known here. Nothing of it reaches FFmpeg's language of filters, options
and protocols, except an address with a known scheme, which the performer has to allow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from weft.codes.rows import InternalError
from weft.errors import did_you_mean
from weft.names import is_live, live_of, shown
from weft.sources import FILM, ends_as

CameraKind: TypeAlias = Literal["device", "generated", "file", "stream", "desktop", "window"]

MAX_SIDE, MAX_AREA = 4096, 3840 * 2160
"""The most pixels in a row or column of a generated picture, and in all."""


class AddressError(InternalError):
    """A text names no camera. `hint` says what would name one."""

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


class Camera(NamedTuple):
    """What a call of `camera` opens: the path of a device or a file, the words of a generated picture, or the address
    of a stream. Likewise what `desktop` and `window` show: four whole numbers, or a part of a title."""

    kind: CameraKind
    place: str

    @property
    def watches(self) -> bool:
        """Whether it shows something that happens now, and may be missing."""
        return self.kind in ("device", "stream", "desktop", "window")


# --- pictures that are generated --------------------------------------------------------------------------------------


class _NumberOption(NamedTuple):
    """A number between bounds."""

    least: float
    most: float
    is_whole: bool = False

    def read(self, text: str) -> str | None:
        """The number in FFmpeg's notation; None if the text is not an allowed number."""
        if re.fullmatch(r"-?\d{1,12}(\.\d{1,12})?", text, re.ASCII) is None:
            return None
        number = float(text)
        if not self.least <= number <= self.most or (self.is_whole and number % 1):
            return None
        return f"{number:.0f}" if self.is_whole else f"{number:.12f}".rstrip("0").rstrip(".")

    @property
    def words(self) -> str:
        kind = "a whole number" if self.is_whole else "a number"
        return f"{kind} from {self.least:,.12g} to {self.most:,.12g}"


class _SizeOption(NamedTuple):
    """Width and height in pixels, such as 320x180."""

    def read(self, text: str) -> str | None:
        match = re.fullmatch(r"(\d{1,5})[x×](\d{1,5})", text, re.ASCII)
        if match is None:
            return None
        width, height = int(match[1]), int(match[2])
        is_possible = min(width, height) >= 16 and max(width, height) <= MAX_SIDE and width * height <= MAX_AREA
        return f"{width}x{height}" if is_possible else None

    @property
    def words(self) -> str:
        return f"a size such as 320x180, of 16 to {MAX_SIDE} pixels a side and {MAX_AREA:,} in all"


class _ColourOption(NamedTuple):
    """A colour such as #ff8000."""

    def read(self, text: str) -> str | None:
        return f"0x{text[1:].lower()}" if re.fullmatch(r"#[0-9a-fA-F]{6}", text, re.ASCII) else None

    @property
    def words(self) -> str:
        return "a colour such as #ff8000"


class _WordOption(NamedTuple):
    """One of a few words."""

    among: tuple[str, ...]

    def read(self, text: str) -> str | None:
        return text if text in self.among else None

    @property
    def words(self) -> str:
        return "one of " + ", ".join(self.among)


_Option: TypeAlias = "_NumberOption | _SizeOption | _ColourOption | _WordOption"

_SEED = _NumberOption(0, 2**32 - 1, is_whole=True)
_SHARE = _NumberOption(0, 1)
_YES = _NumberOption(0, 1, is_whole=True)
_PLACE = _NumberOption(-10, 10)
_ALL: Mapping[str, _Option] = {"size": _SizeOption(), "rate": _NumberOption(0.1, 240)}

GENERATORS: Final[Mapping[str, Mapping[str, _Option]]] = MappingProxyType({
    "testsrc2": {"alpha": _NumberOption(0, 255, is_whole=True)},
    "testsrc": {"decimals": _NumberOption(0, 17, is_whole=True)},
    "smptebars": {},
    "smptehdbars": {},
    "pal75bars": {},
    "pal100bars": {},
    "rgbtestsrc": {},
    "yuvtestsrc": {},
    "color": {"color": _ColourOption()},
    "gradients": {
        "type": _WordOption(("linear", "radial", "circular", "spiral")), "speed": _NumberOption(0.00001, 1),
        "seed": _SEED,
        "n": _NumberOption(2, 8, is_whole=True), **{f"c{number}": _ColourOption() for number in range(8)},
    },
    "mandelbrot": {
        "maxiter": _NumberOption(1, 10_000, is_whole=True), "start_x": _PLACE, "start_y": _PLACE,
        "start_scale": _NumberOption(1e-9, 10), "end_scale": _NumberOption(1e-9, 10), "end_pts": _NumberOption(1, 1e6),
    },
    "life": {
        "seed": _SEED, "ratio": _SHARE, "mold": _NumberOption(0, 255, is_whole=True), "stitch": _YES,
        "life_color": _ColourOption(), "death_color": _ColourOption(), "mold_color": _ColourOption(),
    },
    "cellauto": {
        "rule": _NumberOption(0, 255, is_whole=True), "seed": _SEED, "ratio": _SHARE, "scroll": _YES, "stitch": _YES,
        "start_full": _YES,
    },
    "sierpinski": {
        "type": _WordOption(("carpet", "triangle")), "seed": _SEED, "jump": _NumberOption(1, 10_000, is_whole=True),
    },
})  # fmt: skip
"""The pictures that FFmpeg generates, with the options that each has besides `size` and `rate`."""

_USUAL = {"size": "320x240", "rate": "25"}


def options_of(generator: str) -> Mapping[str, _Option]:
    """All options of a picture that is generated."""
    return {**_ALL, **GENERATORS[generator]}


def generated(words: str) -> str:
    """A generated picture in FFmpeg's language, made of values that were read, never of the words themselves. Raises
    AddressError."""
    name, *given = words.split() or [""]
    if name not in GENERATORS:
        hint = did_you_mean(name, GENERATORS) or f"these are known: {', '.join(GENERATORS)}"
        raise AddressError(f"there is no picture called {name}", hint)
    options, values = options_of(name), dict(_USUAL)
    for word in given:
        label, _, text = word.partition("=")
        if label not in options:
            hint = did_you_mean(label, options) or f"it has {', '.join(options)}"
            raise AddressError(f"{name} has no option {label}", f"{hint}; for example {name} size=320x180 rate=30")
        value = options[label].read(text)
        if value is None:
            raise AddressError(f"{label}={text} does not fit", f"{label} is {options[label].words}")
        values[label] = value
    return f"{name}=" + ":".join(f"{label}={value}" for label, value in values.items())


# --- addresses --------------------------------------------------------------------------------------------------------

SCHEMES: Final = ("http", "https", "rtmp", "rtmps", "rtp", "rtsp", "rtsps", "srt", "tcp", "udp")
"""The protocols of streams."""

# The protocols that FFmpeg itself may use for these; files are not among them. Those that do not occur in an address
# carry the others.
STREAM_PROTOCOLS: Final = ",".join((*SCHEMES, "crypto", "httpproxy", "tls"))

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_DEVICE = re.compile(r"/dev/(?:video\d{1,3}|v4l/by-(?:id|path)/[\w.:+\-]+)", re.ASCII)
_NUMBER = re.compile(r"\d{1,3}", re.ASCII)
# Spaces and control characters have no place in an address.
_PRINTABLE = re.compile(r"[!-~]+", re.ASCII)

_KNOWN = 'write a number, "/dev/video0", the name of a film, or a picture such as "testsrc2 size=320x180"'


def camera_named(picture: str) -> Camera | None:
    """The camera that has a name among pictures; None for any other picture."""
    if not is_live(picture):
        return None
    source, args = live_of(picture)
    match source:
        case "camera":
            return camera_at(args)
        case "desktop":
            return desktop_at(args)
        case "window":
            return window_at(args)
    return None


def watching(pictures: Iterable[str]) -> list[str]:
    """The pictures among these that watch, by their names in messages."""
    return [shown(each) for each in pictures if (camera := camera_named(each)) is not None and camera.watches]


def camera_at(args: tuple[str | float, ...]) -> Camera:
    """The camera of a call with these arguments. Raises AddressError."""
    (place,) = args
    return camera_of(place if isinstance(place, str) else f"{place:.0f}")


def desktop_at(args: tuple[str | float, ...]) -> Camera:
    """The part of the desktop in a call of `desktop` with these arguments: x, y, width and height in pixels."""
    return Camera("desktop", " ".join(f"{float(number):.0f}" for number in args))


def window_at(args: tuple[str | float, ...]) -> Camera:
    """The window of a call of `window` with these arguments."""
    return Camera("window", str(args[0]))


def is_device(path: str) -> bool:
    """Whether a path is one at which Linux has cameras."""
    return _DEVICE.fullmatch(path) is not None


def camera_of(text: str) -> Camera:
    """The camera that the text in a call of `camera` names. A path is as it is written. Raises AddressError."""
    if _NUMBER.fullmatch(text) or is_device(text):
        return Camera("device", text)
    if (scheme := _SCHEME.match(text)) is not None:
        return _by_scheme(scheme[1].lower(), text)
    if ends_as(text, FILM):
        return Camera("file", text)
    if text.startswith("/dev/"):
        raise AddressError("this is no camera", "cameras of Linux are /dev/video0 and so on")
    if not text.strip():
        raise AddressError("this names no camera", _KNOWN)
    name = text.split(maxsplit=1)[0]
    if name not in GENERATORS and "=" not in text:
        raise AddressError("this names no camera", did_you_mean(name, GENERATORS) or _KNOWN)
    generated(text)
    return Camera("generated", text)


def _by_scheme(scheme: str, text: str) -> Camera:
    if scheme == "lavfi":
        name, _, rest = text.partition(":")[2].partition("=")
        words = " ".join([name, *rest.split(":")]).strip()
        try:
            generated(words)
        except AddressError:
            hint = 'a picture that is generated is written without it, such as "testsrc2 size=320x180 rate=30"'
        else:
            hint = f'write "{words}"'
        raise AddressError("filters of FFmpeg are not for patches", hint)
    if scheme not in SCHEMES or not text[len(scheme) :].startswith("://"):
        raise AddressError(f"{scheme}: is not a kind of stream", f"these are: {', '.join(SCHEMES)}")
    if _PRINTABLE.fullmatch(text) is None:
        raise AddressError("an address has no spaces, and none but plain characters")
    return Camera("stream", text)
