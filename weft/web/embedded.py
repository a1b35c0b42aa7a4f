"""The media of a program as they travel inside a page: pictures, letters and sounds, as data."""

from __future__ import annotations

import base64
import mimetypes
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.cameras import camera_named
from weft.errors import Diagnostic
from weft.media import films
from weft.media.frames import length_of
from weft.media.pictures import probe_picture
from weft.media.sampled import read
from weft.names import is_file, is_heard, is_letters, is_levels, is_live, is_sound, is_view, levelled, live_of, shown
from weft.sources import FILM, HIDDEN, PictureLevels, is_sequence
from weft.web.packed import packed, packed_rows

Json: TypeAlias = Any

LIMIT = 16_000_000
"""The most bytes of media that a page holds, unless another limit is asked for."""

# Distances and colours of letters as whole numbers of 16 bits, and the one that is written as 0.
_SHADES = 65535.0
_MIDDLE = 32768


class EmbeddedMedia(NamedTuple):
    """The media by their names among pictures, the cameras that the browser opens, and what is left out."""

    records: dict[str, Json]
    cameras: list[Json]
    films: list[Json]
    left_out: list[Diagnostic]


def embedded(names: Iterable[str], limit: int = LIMIT) -> EmbeddedMedia:
    """The media of these names, as long as they are no more than `limit` bytes together. Raises PictureError for a file
    that cannot be read."""
    found = EmbeddedMedia({}, [], [], [])
    room = limit
    for name in names:
        if is_view(name) or is_heard(name):
            continue
        if is_live(name):
            room -= _add_live(name, found, room)
            continue
        record = _record(name)
        size = len(record["data"])
        if size > room:
            found.left_out.append(_too_much(name))
            continue
        room -= size
        found.records[name] = {**record, "title": Path(shown(name)).name}
    return found


def _add_live(name: str, found: EmbeddedMedia, room: int) -> int:
    """Adds a film, or a camera of the browser; gives how many bytes it takes. `weft.web.limits` tells of all others."""
    source, args = live_of(name)
    if source == FILM.name:
        if not is_page_film(str(args[0])):
            return 0
        return _add_film(name, str(args[0]), bool(args[1]), found, room)
    camera = camera_named(name)
    if camera is not None and camera.kind == "device":
        digits = re.findall(r"\d+", camera.place)
        found.cameras.append({"name": name, "number": int(digits[-1]) if digits else 0})
    return 0


def is_page_film(path: str) -> bool:
    """Whether a browser may play a film, by its path."""
    return not is_sequence(path) and not path.lower().endswith(".webp")


def _add_film(name: str, path: str, loops: bool, found: EmbeddedMedia, room: int) -> int:
    """A film is in a page once, however often it is read."""
    known = next((film for film in found.films if film["path"] == path), None)
    if known is not None:
        known["names"].append({"name": name, "loops": loops})
        return 0
    about = films.header(Path(path))
    record: dict[str, Any] = {
        "path": path, "title": Path(path).name, "type": mimetypes.guess_type(path)[0] or "video/mp4",
        "width": about.width, "height": about.height, "seconds": about.seconds, "frames": max(1, about.frames),
        "names": [{"name": name, "loops": loops}], "data": base64.b64encode(Path(path).read_bytes()).decode(),
    }  # fmt: skip
    if len(record["data"]) > room:
        found.left_out.append(_too_much(name))
        return 0
    found.films.append(record)
    return len(record["data"])


def _too_much(name: str) -> Diagnostic:
    words = f"{shown(name)} is left out: the media of the page would be larger than they may be"
    return Diagnostic.of("not-in-a-page", words, None, "weft export --media BYTES allows more")


def _record(name: str) -> Json:
    if is_sound(name):
        return _sound(read(name))
    if is_letters(name):
        return _floats(read(name))
    if is_levels(name):
        path = Path(levelled(name))
        info = probe_picture(path)
        levels = PictureLevels(info.width, info.height)
        tops = [levels.top(number) for number in range(1, levels.count + 1)]
        return {**_picture(path), "levels": {"whole": levels.whole, "together": levels.together, "tops": tops}}
    assert is_file(name)
    return _picture(Path(name))


def _picture(path: Path) -> Json:
    """The file itself: a browser decodes it."""
    info = probe_picture(path)
    kind = "jpeg" if info.format == "jpeg" else info.format
    return {
        "kind": "picture", "type": f"image/{kind}", "weighted": info.has_alpha, "hidden": HIDDEN,
        "data": base64.b64encode(path.read_bytes()).decode(),
    }  # fmt: skip


def _sound(samples: NDArray[np.float32]) -> Json:
    """Whole numbers of 16 bits if these say all, else of 24, which no ear can tell from more; floats if it is too loud
    for them. Two sides that are equal are one."""
    played = samples[0][:, :1] if np.array_equal(samples[0][:, 0], samples[0][:, 1]) else samples[0]
    about = {"kind": "sound", "length": length_of(samples), "sides": played.shape[1]}
    for width in (2, 3):
        steps = float(1 << (8 * width - 1))
        whole = np.round(played * steps)
        fits = bool(np.all(np.abs(whole) < steps))
        if fits and (width == 3 or np.all(whole / steps == played)):
            return {**about, "width": width, "data": packed_rows(whole.astype(np.int64), width)}
    return {**about, "width": 4, "data": packed(np.ascontiguousarray(played, np.float32).tobytes())}


def _floats(picture: NDArray[np.float32]) -> Json:
    height, width = picture.shape[:2]
    channels = [channel for channel in range(4) if picture[..., channel].any()] or [0]
    levels = np.round(np.clip(picture[..., channels], 0.0, 1.0) * _SHADES).astype(np.int64)
    data = packed_rows(levels.reshape(height * width, len(channels)) - _MIDDLE, 2)
    return {
        "kind": "floats", "width": width, "height": height, "channels": channels, "scale": 1 / _SHADES,
        "middle": _MIDDLE, "data": data,
    }  # fmt: skip
