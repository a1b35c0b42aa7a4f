"""What kernels sample, by its name among pictures: files, and letters. Pillow is imported when something is opened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from weft.names import is_letters, letters_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def read(name: str) -> NDArray[np.float32]:
    """The picture, [height, width, 4]. Raises `PictureError`. Any thread may call it."""
    from weft.media import letters, pictures

    return letters.distances(letters_of(name)) if is_letters(name) else pictures.load_picture(Path(name))


def size_of(name: str) -> tuple[int, int] | str:
    """Width and height of the picture in pixels, or why it cannot be read, judged by no more than the header of its
    file."""
    from weft.media import letters, pictures

    try:
        if is_letters(name):
            return letters.size_of(letters_of(name))
        found = pictures.probe_picture(Path(name))
    except pictures.PictureError as problem:
        return f"{problem.reason} ({problem.hint})" if problem.hint else problem.reason
    return found.width, found.height
