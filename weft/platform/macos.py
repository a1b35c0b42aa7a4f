"""macOS: as `posix`, with folders of its own. A child notices by its lifeline that its parent has ended."""

from __future__ import annotations

from pathlib import Path

from weft.platform.posix import Posix


class MacOs(Posix):
    has_metal = True
    camera_format = "avfoundation"
    grabber = "avfoundation"
    portaudio_remedy = "brew install portaudio"

    def cache_home(self) -> Path:
        return Path.home() / "Library" / "Caches"
