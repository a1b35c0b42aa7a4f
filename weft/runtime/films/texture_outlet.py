"""The outlets `spout` (Windows) and `syphon` (macOS): pictures as textures, which other programs of the machine open by
a name. Packages of the extra `textures` share them; each is asked for only on its own system."""

from __future__ import annotations

import importlib
import itertools
from typing import Any, Final

import numpy as np

from weft.errors import installs
from weft.media.frames import Pixels
from weft.outlets import OutletError
from weft.platform import system
from weft.runtime.films.outlet import OutletOpening, PictureOutlet

# A texture is filled again only after this many pictures, as the card may still copy the one before.
_TEXTURES: Final = 3


_PACKAGES: Final = {"SpoutGL": "SpoutGL", "syphon": "syphon-python"}
_SYSTEMS: Final = {"win32": "Windows", "darwin": "macOS"}


def sharing(name: str, what: str, wanted: str) -> Any:
    """A module that shares textures on one system, a key of `_SYSTEMS`. Raises OutletError on others, and where the
    module is missing."""
    if system.name != wanted:
        words = f"{what} is for {_SYSTEMS[wanted]} alone"
        raise OutletError(words, "http:8080 gives pictures to programs on every system")
    try:
        return importlib.import_module(name)
    except ImportError:
        raise OutletError(f"{what} needs {_PACKAGES[name]}", installs("textures")) from None


class SpoutOutlet(PictureOutlet):
    """Gives pictures as a sender of Spout. It has a hidden window with a context of OpenGL."""

    def __init__(self, opening: OutletOpening) -> None:
        """Raises OutletError if nothing can be shared here."""
        super().__init__(opening)
        spout = sharing("SpoutGL", "Spout", "win32")
        self._format = spout.enums.GL_RGBA
        self._sender = spout.SpoutSender()
        if not self._sender.createOpenGL():
            raise OutletError("Spout gets no context of OpenGL here")
        self._sender.setSenderName(opening.place)

    def show(self, pixels: Pixels, number: int) -> None:
        size = self.opening.width, self.opening.height
        if not self._sender.sendImage(np.ascontiguousarray(pixels), *size, self._format, False, 0):
            raise OutletError(f"Spout takes no picture of {size[0]}×{size[1]}")

    def close(self) -> None:
        self._sender.releaseSender()


class SyphonOutlet(PictureOutlet):
    """Gives pictures as a server of Syphon, by Metal."""

    def __init__(self, opening: OutletOpening) -> None:
        """Raises OutletError if nothing can be shared here."""
        super().__init__(opening)
        syphon = sharing("syphon", "Syphon", "darwin")
        self._pool = importlib.import_module("objc").autorelease_pool
        self._copy = importlib.import_module("syphon.utils.raw").copy_bytes_to_mtl_texture
        make = importlib.import_module("syphon.utils.raw").create_mtl_texture
        try:
            with self._pool():
                self._server = syphon.SyphonMetalServer(opening.place)
                # Other programs find a server only while it looks at what they ask.
                self._directory = syphon.SyphonServerDirectory()
                self._directory.run_loop_interval = 0.0
                made = [make(self._server.device, opening.width, opening.height) for _ in range(_TEXTURES)]
        except RuntimeError as problem:
            raise OutletError(f"Syphon shares nothing here: {problem}") from None
        self._textures = itertools.cycle(made)

    def show(self, pixels: Pixels, number: int) -> None:
        with self._pool():
            texture = next(self._textures)
            self._copy(pixels.tobytes(), texture)
            # The first row of a texture of Metal is the upper one, and that of Syphon the lower one.
            self._server.publish_frame_texture(texture, is_flipped=True)
            self._directory.update_run_loop()

    def close(self) -> None:
        with self._pool():
            self._server.stop()
            self._directory.close()
