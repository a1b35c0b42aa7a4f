"""What kernels sample, by its name among pictures: files, sounds, letters, and live pictures. Pillow, PyAV and the
modules of live sources are imported when something is opened."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from weft.media.source import LiveSource
from weft.names import LiveName, is_letters, is_live, is_sound, letters_of, live_of, sound_of
from weft.sources import OPENERS, SOUND, load_packages

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# What opens the live pictures of weft's own sources. Imported when it is needed.
_OWN = {"camera": ("weft.media.capture", "Capture")}


def opener(picture: str) -> tuple[LiveSource, LiveName]:
    """What opens a live picture, and its name taken apart."""
    name = live_of(picture)
    if name.source not in _OWN:
        load_packages()
        return OPENERS[name.source](), name
    module, kind = _OWN[name.source]
    found: LiveSource = getattr(importlib.import_module(module), kind)()
    return found, name


def read(name: str, decodes: bool = True) -> NDArray[np.float32]:
    """The picture, [height, width, 4], for a live one what stands for it; or the sound, [1, samples, 2]. A process that
    never `decodes` takes sounds that another one has decoded. Raises `PictureError`. Any thread may call it."""
    from weft.media import letters, pictures, sounds

    if is_sound(name):
        path, rate = sound_of(name)
        return sounds.load_sound(Path(path), rate, decodes)
    if is_live(name):
        source, live = opener(name)
        return source.still(live.args)
    return letters.distances(letters_of(name)) if is_letters(name) else pictures.load_picture(Path(name))


def size_of(name: str) -> tuple[int, int] | str:
    """Width and height of the picture in pixels, or why it cannot be read, judged by no more than the header of its
    file. Of a sound they are its length in milliseconds, perhaps estimated, and its channels; the path of its file
    names it as well."""
    from weft.media import letters, pictures, sounds

    if is_live(name):
        source, live = opener(name)
        return source.size(live.args)
    try:
        path = sound_of(name).path if is_sound(name) else name
        if path.lower().endswith(tuple(f".{ending}" for ending in SOUND.endings)):
            sound = sounds.probe_sound(Path(path))
            return round(sound.seconds * 1000), sound.channels
        if is_letters(name):
            return letters.size_of(letters_of(name))
        found = pictures.probe_picture(Path(name))
    except pictures.PictureError as problem:
        return f"{problem.reason} ({problem.hint})" if problem.hint else problem.reason
    return found.width, found.height
