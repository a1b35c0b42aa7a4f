"""Screenshots: pictures beside the patch, written while the next frames are drawn."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from weft.media.pictures import save_picture
from weft.runtime.screens.screen import Picture


class Screenshots:
    """Writes pictures into a folder as NAME-001.png and so on, and never over a file that is there. `mention` is told
    what became of each, from a thread."""

    def __init__(self, folder: Path, name: str, mention: Callable[[str], None]) -> None:
        self._folder = folder
        self._name = name
        self._mention = mention
        self._lock = threading.Lock()

    def take(self, picture: Picture) -> None:
        """Writes a picture, which must not change any more. The process does not end before it is written."""
        threading.Thread(target=self._write, args=(picture,), name="weft-screenshot").start()

    def _write(self, picture: Picture) -> None:
        with self._lock:
            try:
                path = self._free_name()
                save_picture(path, picture)
            except OSError as failure:
                self._mention(f"no screenshot: {self._folder} cannot be written to ({failure.strerror})")
            else:
                height, width = picture.shape[:2]
                self._mention(f"screenshot: {path}, {width}×{height}")

    def _free_name(self) -> Path:
        number = 1
        while (path := self._folder / f"{self._name}-{number:03}.png").exists():
            number += 1
        return path
