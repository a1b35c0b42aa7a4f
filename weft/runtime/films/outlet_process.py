"""The process of an outlet: it gets pictures and sound as that of a recording does, and hands them to the outlet's
class."""

from __future__ import annotations

import json
import signal
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from weft.backends.hardware import NICER
from weft.child import BEAT, Pulse
from weft.outlets import OutletError, OutletSpec
from weft.platform import system
from weft.runtime.films.encoding import EncodingError, FilmSpec, film_spec, reason_of
from weft.runtime.films.outlet import OutletOpening, PictureOutlet, opened
from weft.runtime.films.recording import LIVE_CODECS, LiveEncoder, RecordingMemory, RecordingSpec, SoundReader


def start_outlet(
    spec: OutletSpec, place: str, size: tuple[int, int], fps: float, rate: int, secret: str, key: str = ""
) -> LiveEncoder:  # fmt: skip
    """Starts the process of an outlet, for pictures of this size; `rate` is that of the sound. Receivers have to know
    the `secret`; the place has to be told the `key`. What it tells are `address`, `note`, `trouble` and `well` with
    words, and `dropped` with a number. Raises EncodingError."""
    even = size[0] + size[0] % 2, size[1] + size[1] % 2
    film = film_spec(".mkv", LIVE_CODECS[".mkv"], None, even, fps)
    if not spec.is_even:
        film = film_spec(".mov", "png", None, size, fps)
    encoder = LiveEncoder(RecordingSpec(film, rate, spec.name), "weft.runtime.films.outlet_process:main")
    # Not among the arguments of the process, which all users of the machine may read.
    encoder.ask("place", place, secret, key)
    return encoder


def main(descriptor: str, lifeline: str, memory: str, spec: str) -> None:
    """Hands frames and sound to an outlet as they come, until the other end of the socket is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What it encodes is dropped if it comes too late; a thread that draws would be seen to wait for a core.
    system.prefer_process(NICER)
    process = _OutletProcess(Connection(int(descriptor)), Pulse(int(lifeline)), json.loads(spec))
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        process.send("end", process.run(int(memory)))
        # The other end reads this before it learns that the process has ended.
        process.parent.poll(None)


class _OutletProcess:
    """The work of the process."""

    def __init__(self, parent: Connection, pulse: Pulse, said: dict[str, Any]) -> None:
        self.parent, self._pulse = parent, pulse
        self._spec = RecordingSpec(FilmSpec(**said.pop("film")), **said)
        self._sending = threading.Lock()

    def send(self, kind: str, value: Any) -> None:
        """Sends a message. Any thread may call it."""
        with self._sending:
            self.parent.send((kind, value))

    def run(self, memory: int) -> str | None:
        """Serves the outlet until it fails, and returns why."""
        try:
            shared = RecordingMemory(memory, self._spec.film)
            outlet = self._opened()
            self.send("ready", None)
            self._serve(outlet, shared)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise
        except (EncodingError, OutletError) as problem:
            return str(problem)
        except Exception as problem:  # FFmpeg has many
            return reason_of(self._spec.film, problem)
        return None

    def _opened(self) -> PictureOutlet:
        film = self._spec.film
        _, place, secret, key = self.parent.recv()
        word = self._spec.path
        opening = OutletOpening(
            word, place, film.width, film.height, film.fps, self._spec.rate, secret, self._tell, self._drop,
            self._pulse.beat, self._pulse.allow, key=key,
        )  # fmt: skip
        return opened(f"{word}:{place}", opening)

    def _serve(self, outlet: PictureOutlet, shared: RecordingMemory) -> None:
        film, rate = self._spec.film, self._spec.rate
        sound = SoundReader(shared, rate)
        while True:
            while not self.parent.poll(BEAT):
                self._pulse.beat()
            kind, *arguments = self.parent.recv()
            if kind == "frame":
                slot, number = arguments
                outlet.show(shared.frames[slot], number)
                self.send("free", slot)
                if rate:
                    for samples in sound.until(int((number + 1) * rate / film.fps)):
                        outlet.hear(samples)
            elif kind == "end":
                outlet.close()
                return

    def _tell(self, kind: str, words: str) -> None:
        with suppress(OSError):
            self.send(kind, words)

    def _drop(self, count: int) -> None:
        with suppress(OSError):
            self.send("dropped", count)
