"""Everything that kernels sample, by its name among pictures: files, sounds, letters, and live pictures. Pillow, PyAV
and the modules of live sources are imported when something is opened."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.media.source import LiveSource, PictureError
from weft.names import (
    HEARD_ROWS, LiveName, columns, heard_of, is_heard, is_letters, is_levels, is_live, is_sound, letters_of, levelled,
    live_of, sound_of
)
from weft.packages import class_of
from weft.sources import FILM, OPENERS, SOUND, MediaHeader, PictureLevels, ends_as, is_sequence, load_sources

if TYPE_CHECKING:
    from numpy.typing import NDArray


# The classes that open the live pictures of weft's own sources. They are imported when they are needed.
_OWN = {
    "camera": ("weft.media.capture", "Capture"),
    "desktop": ("weft.media.capture", "DesktopCapture"),
    "window": ("weft.media.capture", "WindowCapture"),
    "film": ("weft.media.films", "Films"),
}


def opener(picture: str) -> tuple[LiveSource, LiveName]:
    """The source that opens a live picture, and the parts of its name."""
    name = live_of(picture)
    if name.source not in _OWN:
        load_sources()
    return class_of(name.source, _OWN, OPENERS)(), name


def read(name: str) -> NDArray[Any]:
    """The picture, [height, width, 4], for a live one a placeholder; or the sound, [1, samples, 2]. Raises
    `PictureError`. Any thread may call it."""
    from weft.media import letters, pictures, sounds

    if is_sound(name):
        path, rate = sound_of(name)
        return sounds.load_sound(Path(path), rate)
    if is_heard(name):
        from weft.media.hearing import silence

        return silence(heard_of(name))
    if is_live(name):
        source, live = opener(name)
        return source.still(live.args)
    if is_levels(name):
        return pictures.load_levels(Path(levelled(name)))
    return letters.drawn(letters_of(name)) if is_letters(name) else pictures.load_picture(Path(name))


def decoded_files(names: Iterable[str]) -> dict[str, str]:
    """The decoded files of the sounds among these that this process has read, by their names."""
    from weft.media.sounds import decoded_file

    found = {name: decoded_file(Path(sound_of(name).path), sound_of(name).rate) for name in names if is_sound(name)}
    return {name: str(path) for name, path in found.items() if path is not None}


def read_decoded(file: str) -> NDArray[Any]:
    """The sound in a decoded file. Raises `PictureError`."""
    from weft.media import sounds

    try:
        return sounds.map_sound(Path(file))
    except OSError as problem:
        raise PictureError(f"its samples are gone ({problem.strerror})", "save the patch again") from problem


def header_if_whole(name: str) -> MediaHeader | str:
    """The same as `header_of`, but a picture is decoded as well, which alone shows whether it is whole."""
    return header_of(name, decodes=True)


def header_of(name: str, decodes: bool = False) -> MediaHeader | str:
    """The header of a picture, film or sound, by its name or the path of its file; or the reason why it cannot be read.
    With `decodes`, pictures are decoded."""
    from weft.media import letters, pictures, sounds

    if is_heard(name):
        return MediaHeader(columns(heard_of(name)), HEARD_ROWS + 2)
    if is_live(name):
        source, live = opener(name)
        size = source.size(live.args)
        return size if isinstance(size, str) else MediaHeader(*size)
    try:
        if is_letters(name):
            return letters.header_of(letters_of(name))
        path = sound_of(name).path if is_sound(name) else name
        if ends_as(path, FILM):
            from weft.media import films

            film = films.header(Path(path))
            return MediaHeader(film.width, film.height, film.seconds, film.channels, has_alpha=film.has_alpha)
        if ends_as(path, SOUND):
            sound = sounds.probe_sound(Path(path))
            return MediaHeader(seconds=sound.seconds, channels=sound.channels)
        found = None if is_sequence(path) else pictures.probe_picture(Path(levelled(path)))
        if found is None or found.frames > 1:
            from weft.media import films

            film = films.header(Path(levelled(path)))
            return MediaHeader(film.width, film.height, film.seconds, has_alpha=film.has_alpha, moves=True)
        if decodes:
            pictures.load_picture(Path(levelled(path)))
        if is_levels(path):
            return MediaHeader(*PictureLevels(found.width, found.height).together)
    except PictureError as problem:
        return f"{problem.reason} ({problem.hint})" if problem.hint else problem.reason
    return MediaHeader(found.width, found.height, has_alpha=found.has_alpha)


def memory_of(name: str) -> int:
    """The bytes that a picture takes, if they are known before it is opened."""
    if is_live(name):
        source, live = opener(name)
        return source.memory(live.args)
    found = header_of(name)
    return 0 if isinstance(found, str) else _SAMPLED * found.width * found.height


# Bytes for each pixel of a picture.
_SAMPLED = 4 * 4
