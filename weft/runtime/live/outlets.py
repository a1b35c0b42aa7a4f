"""What other programs get while a performance plays: numbers by a `Sender`, and pictures through named pipes and
loopback cameras, which `display` names by `to: "pipe:…"` and `to: "v4l2:…"`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from weft.backends.base import Values
from weft.names import outlet_of
from weft.runtime.films.encoding import EncodingError, missing_encoder
from weft.runtime.films.recording import LiveEncoder, outlet_spec
from weft.runtime.live.events import Reporter
from weft.runtime.live.record import PictureSender


class Sender(Protocol):
    """Sends the values that the statements of a context compute to other programs."""

    def send(self, values: Mapping[str, float], now: float) -> None:
        """Sends the values of a subgraph in one frame, by their labels, at a moment in seconds. It must not wait."""

    def close(self) -> None:
        """Stops sending. May be called twice."""


@dataclass(frozen=True)
class _OutletKey:
    """What identifies an open outlet: name, whole path, width and height of the picture, and frames a second."""

    target: str
    path: str
    size: tuple[int, int]
    fps: float


@dataclass
class _OpenOutlet:
    """An outlet that is open."""

    encoder: LiveEncoder
    pictures: PictureSender
    count: int = 0


class Outlets:
    """Hands pictures to other programs, each in a process of its own. For the thread that draws, which does not wait
    here: a program that reads too slowly misses pictures."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._open: dict[_OutletKey, _OpenOutlet] = {}
        self._failed: set[_OutletKey] = set()

    def retry(self) -> None:
        """Tries to open outlets that have failed once more, with their next picture."""
        self._failed.clear()

    def follow(self, pictures: Mapping[str, Values], folder: Path, fps: float) -> None:
        """Once a frame: gives the pictures that are shown, by the names of their outlets. Paths are relative to the
        folder of the patch."""
        wanted = {_key(target, picture, folder, fps): picture for target, picture in pictures.items()}
        for key in [key for key in self._open if key not in wanted]:
            self._close(key, "closed")
        for key, picture in wanted.items():
            if key not in self._open and key not in self._failed:
                self._begin(key)
            if key in self._open:
                self._give(key, self._open[key], picture)

    def _begin(self, key: _OutletKey) -> None:
        kind, _ = outlet_of(key.target) or ("", "")
        try:
            if (missing := missing_encoder()) is not None:
                raise EncodingError(missing)
            encoder = LiveEncoder(outlet_spec(f"{kind}:{key.path}", key.size, key.fps))
        except EncodingError as problem:
            self._fail(key, str(problem))
        else:
            self._open[key] = _OpenOutlet(encoder, PictureSender(encoder))
            self._reporter.window(key.target, "opened")

    def _give(self, key: _OutletKey, outlet: _OpenOutlet, picture: Values) -> None:
        encoder = outlet.encoder
        encoder.poll()
        if encoder.is_done:
            self._fail(key, encoder.failure or "it has ended")
        elif encoder.is_ready:
            outlet.pictures.fetch()
            outlet.pictures.send(picture, outlet.count)
            outlet.count += 1

    def _fail(self, key: _OutletKey, reason: str) -> None:
        self._failed.add(key)
        self._close(key, "failed", reason)

    def _close(self, key: _OutletKey, state: str, reason: str = "") -> None:
        if key in self._open:
            self._open.pop(key).encoder.close()
        self._reporter.window(key.target, state, reason)

    def close(self) -> None:
        """Closes all of them. May be called twice."""
        for key in [*self._open]:
            self._close(key, "closed")


def _key(target: str, picture: Values, folder: Path, fps: float) -> _OutletKey:
    _, path = outlet_of(target) or ("", "")
    return _OutletKey(target, str(folder.absolute() / path), (picture.shape[1], picture.shape[0]), fps)
