"""How the pictures of a performance lie on the walls of a venue, kept in a file beside the patch: for each monitor by
its name, and for each window on it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from weft.disk import read_plain, replacing
from weft.media.pictures import load_bytes, probe_picture
from weft.media.source import PictureError
from weft.permissions import DEFAULT_PERMISSIONS
from weft.platform import system
from weft.runtime.screens.warp import PLAIN, PictureMask, Warp, WarpError, warp_from_json, warp_to_json

# A larger file is not read.
_MOST_BYTES = 1 << 20

# A larger picture of a mask is made smaller, in pixels of its longer side.
_LARGEST_MASK = 2048


def read_mask(name: str, path: Path | None = None) -> PictureMask:
    """The mask in a picture, which is called `name`: bright parts are shown, dark and transparent ones are not. Raises
    WarpError."""
    path = path or Path(name)
    try:
        found = probe_picture(path)
        scale = min(1.0, _LARGEST_MASK / max(found.width, found.height))
        pixels = load_bytes(path, (max(1, round(found.width * scale)), max(1, round(found.height * scale))))
    except PictureError as problem:
        raise WarpError(f"the mask {name} cannot be read: {problem.reason}") from None
    except OSError as problem:
        raise WarpError(f"the mask {name} cannot be read: {problem.strerror}") from None
    light = pixels[..., :3] @ np.array((0.2126, 0.7152, 0.0722)) * pixels[..., 3] / 255
    return PictureMask(name, np.rint(light).astype(np.uint8))


class Walls:
    """The warps of windows. Those `given` for windows at the start come before those of the file. Without a `patch`,
    nothing is read or kept. `tell` gets a line about what is wrong with the file; the show goes on."""

    def __init__(
        self, patch: Path | None = None, given: Mapping[str, Warp] | None = None,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.path = None if patch is None else patch.with_name(patch.name + ".walls")
        self._given = dict(given or {})
        self._tell = tell
        self._is_damaged = False
        self._file: dict[str, dict[str, Any]] = {}
        """What the file says, by the names of monitors and windows."""
        self._writer: threading.Thread | None = None
        self._read(patch)

    def of(self, monitor: str, window: str) -> Warp:
        """The warp of a window (the first has an empty name) on a monitor."""
        if window in self._given:
            return self._given[window]
        found = self._file.get(monitor, {}).get(window)
        if found is None:
            return PLAIN
        try:
            return warp_from_json(found, self._mask)
        except WarpError as problem:
            name = f' "{window}"' if window else ""
            self._complain(f"the window{name} on {monitor} is shown as it is: {problem}")
            return PLAIN

    def keep(self, monitor: str, window: str, warp: Warp) -> None:
        """Keeps the warp of a window on a monitor from now on. The file is written by another thread."""
        self._given.pop(window, None)
        self._file.setdefault(monitor, {})[window] = warp_to_json(warp)
        if self.path is not None:
            self.close()
            self._writer = threading.Thread(target=self._write, args=(_text_of(self._file),), name="weft-walls")
            self._writer.start()

    def close(self) -> None:
        """Waits until what was kept is written."""
        if self._writer is not None:
            self._writer.join()

    def _mask(self, name: str) -> PictureMask:
        """The picture of a mask, beside the patch or below its folder: anybody may have written the file."""
        assert self.path is not None
        path = self.path.parent / name
        if (denial := DEFAULT_PERMISSIONS.reach(str(self.path)).denial_of_file(str(path))) is not None:
            raise WarpError(f"the mask {name} is not read: {denial.reason}")
        return read_mask(name, path)

    def _complain(self, words: str) -> None:
        assert self.path is not None
        self._tell(f"{self.path.name}: {words}")

    def _read(self, patch: Path | None) -> None:
        if self.path is None:
            return
        if (denial := DEFAULT_PERMISSIONS.reach(str(patch)).denial_of_file(str(self.path))) is not None:
            self._complain(f"it is not read: {denial.reason}")
            return
        try:
            data = read_plain(self.path, _MOST_BYTES + 1)
        except FileNotFoundError:
            return
        except OSError as failure:
            self._complain(f"it cannot be read ({failure.strerror}); windows are shown as they are")
            return
        try:
            found = json.loads(data)
            if len(data) > _MOST_BYTES or not isinstance(found, dict):
                raise ValueError
            self._file = {str(name): dict(windows) for name, windows in found.items()}
        except (ValueError, TypeError, RecursionError):
            self._is_damaged = True
            self._complain("it is damaged; windows are shown as they are")

    def _write(self, text: str) -> None:
        assert self.path is not None
        try:
            if self._is_damaged:
                system.replace(self.path, self.path.with_name(self.path.name + ".damaged"))
                self._is_damaged = False
            with replacing(self.path) as temporary:
                temporary.write_text(text, encoding="utf-8")
        except OSError as failure:
            self._complain(f"it cannot be written ({failure.strerror})")


def _text_of(file: Mapping[str, Mapping[str, Any]]) -> str:
    return json.dumps(file, indent=1, ensure_ascii=False) + "\n"
