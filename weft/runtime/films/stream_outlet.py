"""The outlets `srt`, `rtmp`, `rtmps`, `udp` and `rtp`: pictures in H.264 and sound in AAC, to a server, a mixer or a
player.

A thread connects, encodes and sends; it may stand still for as long as a network does. Meanwhile pictures are dropped.
When a connection ends, another one begins, with a key frame.
"""

from __future__ import annotations

import errno
import os
import socket
import threading
import time
from collections import deque
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.backends.hardware import cores
from weft.media.frames import Pixels
from weft.outlets import OutletError
from weft.runtime.films.encoding import MAX_CHANNELS, FilmSpec, PixelFormat, SoundEncoder, film_spec
from weft.runtime.films.outlet import OutletOpening, PictureOutlet
from weft.runtime.films.srt_sender import SrtSender, srt_library
from weft.streams import MOST_BITRATE, SCHEMES, StreamAddress, stream_address

# Pictures, and seconds of sound, that may wait for a connection.
_WAITING = 8
_HEARD = 4.0
# Seconds between two attempts to connect, the least and the most; and until a connection that does nothing is given up.
_SOON, _LATE = 0.5, 4.0
_STUCK = 8.0
# Seconds that a server has to show its certificate.
_GREETING = 4.0
_NOTHING = "it does not take anything"
# In how many words the system says that nobody receives: one that has ended is missed first, and then refused.
_ABSENT = {_NOTHING, "End of file", *map(os.strerror, (
    errno.ECONNREFUSED, errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE, errno.ETIMEDOUT, errno.EIO,
))}  # fmt: skip
# The most connections that hang in the system and are left to it.
_LEFT = 16
# With this many cores, some are left over beside those that draw, play and encode.
_MANY_CORES: Final = 4
# Bits for each pixel, if an address does not say how many a second.
_BITS: Final = 0.07

Sound: TypeAlias = NDArray[np.float32]


class StreamOutlet(PictureOutlet):
    """Sends a stream, by one connection after another."""

    def __init__(self, opening: OutletOpening) -> None:
        """Raises OutletError."""
        super().__init__(opening)
        self._address = stream_address(opening.word, opening.place)
        if opening.key:
            self._address = self._address.with_key(opening.key)
        size = opening.width, opening.height
        # As H.264 and AAC are in an MP4.
        self._film = film_spec(".mp4", "h264", None, size, float(opening.fps))
        self._pixels = PixelFormat(self._film, is_live=True)
        self._heard = 0
        """The samples of sound so far."""
        self._has_begun = False
        self._left = 0
        """The connections that hang and were left."""
        self._pause = _SOON
        self._again = 0.0
        """When to connect again, and how long to wait after that fails."""
        self._trouble: str | None = None
        self._connection: _Connection | None = None

    def show(self, pixels: Pixels, number: int) -> None:
        connection = self._current()
        if connection is None or not connection.is_open or len(connection.pictures) >= _WAITING:
            # What is shown before the first connection stands is not missed.
            if self._has_begun:
                self.opening.drop(1)
            return
        self._well()
        connection.add(self._pixels.convert(pixels, number), number)

    def hear(self, samples: Sound) -> None:
        first, self._heard = self._heard, self._heard + len(samples)
        if self._connection is not None and self._connection.is_open:
            self._connection.hear(first, samples)

    def _current(self) -> _Connection | None:
        """The connection; None while there is none. Begins one when it is time to. Raises OutletError."""
        connection, now = self._connection, time.monotonic()
        if connection is not None and (connection.has_ended or connection.is_stuck(now)):
            if not connection.has_ended:
                self._left += 1
                if self._left > _LEFT:
                    raise OutletError("its connections hang")
            if connection.is_impossible:
                raise OutletError(*_missing(self._address))
            self._in_trouble(connection.problem or _NOTHING)
            if connection.is_open:
                self._pause = _SOON
            connection.leave()
            self._connection, self._again = None, now + self._pause
            self._pause = min(2 * self._pause, _LATE)
        if self._connection is None and now >= self._again:
            self._connection = _Connection(self._address, self._film, self.opening)
        return self._connection

    def _in_trouble(self, reason: str) -> None:
        """Says what keeps pictures from arriving, when it begins and when it turns out to be something else."""
        before, self._trouble = self._trouble, reason
        if before is None or not (reason == before or {reason, before} <= _ABSENT):
            self.opening.say("trouble", f"no receiver: {reason}; weft tries again")

    def _well(self) -> None:
        if self._trouble is not None or not self._has_begun:
            self.opening.say("well", "there is a receiver" if self._trouble is not None else "")
            self._trouble, self._has_begun = None, True

    def close(self) -> None:
        if self._connection is not None:
            self._connection.finish()


class _Connection:
    """One connection, with its encoders. What it is given is encoded and sent by a thread of its own."""

    def __init__(self, address: StreamAddress, film: FilmSpec, opening: OutletOpening) -> None:
        self.pictures: deque[tuple[Any, int]] = deque()
        """The pictures that wait, each as a frame in YUV with its number."""
        self.is_open = False
        self.has_ended = False
        self.problem: str | None = None
        """Why it has ended."""
        self.is_impossible = False
        """Whether FFmpeg has no such protocol here."""
        self._address, self._film, self._rate = address, film, opening.rate
        self._allow = opening.allow
        self._sound: deque[tuple[int, Sound]] = deque()
        self._changed = threading.Condition()
        self._moved = time.monotonic()
        """When it last got on with something."""
        self._is_left = False
        self._is_finishing = False
        self._first: int | None = None
        """The number of its first picture, from which its times are counted."""
        self._at = 0
        """The next sample of its sound."""
        self._thread = threading.Thread(target=self._run, name="weft-stream", daemon=True)
        self._thread.start()

    # --- for the thread that gives --------------------------------------------------------------------------------

    def add(self, frame: Any, number: int) -> None:
        """Adds a picture."""
        with self._changed:
            self.pictures.append((frame, number))
            self._changed.notify()

    def hear(self, first: int, samples: Sound) -> None:
        """Adds sound, which begins with the sample of this number. What is too old is silent."""
        with self._changed:
            self._sound.append((first, samples.copy()))
            while self._sound[-1][0] - self._sound[0][0] > _HEARD * self._rate:
                self._sound.popleft()
            self._changed.notify()

    def is_stuck(self, now: float) -> bool:
        """Whether it has work, and has done none for long. One that waits for receivers is not."""
        if not self.is_open and self._address.listens:
            return False
        return (not self.is_open or bool(self.pictures)) and now - self._moved > _STUCK

    def leave(self) -> None:
        """Leaves it to itself: its thread ends when the system lets it."""
        with self._changed:
            self._is_left = True
            self._changed.notify()

    def finish(self) -> None:
        """Sends what there is, if that does not take long."""
        with self._changed:
            self._is_finishing = True
            self._changed.notify()
        self._thread.join(1.0)

    # --- its thread -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        import av

        sender: SrtSender | None = None
        try:
            if self._address.scheme == "srt" and (library := srt_library()) is not None:
                sender = SrtSender(library, self._address)
            if self._address.scheme == "rtmps":
                check_certificate(self._address)
            muxer = SCHEMES[self._address.scheme].muxer
            options = {**_MUXING, **(_FLV if muxer == "flv" else {})}
            container = av.open(sender or self._address.url, "w", format=muxer, options=options)
            try:
                self._serve(container)
            finally:
                container.close()
        except Exception as problem:  # FFmpeg has many
            self.is_impossible = type(problem).__name__ == "ProtocolNotFoundError"
            reason = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
            self.problem = (sender and sender.failure) or reason
        if sender is not None:
            sender.close()
        self.has_ended = True

    def _serve(self, container: Any) -> None:
        stream = container.add_stream("libx264", rate=self._film.fps)
        _configure(stream.codec_context, self._film, self._address)
        voice = SoundEncoder(container, self._film, self._rate, MAX_CHANNELS)
        voice.begin()
        # FLV takes nothing that is before the first packet, and AAC's first one is before its first sample.
        self._at = voice.lead
        voice.skip(voice.lead)
        # While it connects, PyAV holds up all threads.
        self._allow(_STUCK)
        container.start_encoding()
        self.is_open = True
        while True:
            with self._changed:
                self._moved = time.monotonic()
                self._changed.wait_for(
                    lambda: self.pictures or (self._sound and self._first is not None) or self._is_left
                    or self._is_finishing
                )  # fmt: skip
                self._moved = time.monotonic()
                if self._is_left or (self._is_finishing and not self.pictures):
                    return
                picture = self.pictures[0] if self.pictures else None
                sound = list(self._sound) if self._first is not None else []
                if sound:
                    self._sound.clear()
            for first, samples in sound:
                self._write_sound(voice, first, samples)
            if picture is not None:
                self._write_picture(container, stream, *picture)
                with self._changed:
                    self.pictures.popleft()

    def _write_picture(self, container: Any, stream: Any, frame: Any, number: int) -> None:
        if self._first is None:
            self._first = number
        frame.pts = number - self._first
        for packet in stream.encode(frame):
            container.mux(packet)

    def _write_sound(self, voice: SoundEncoder, first: int, samples: Sound) -> None:
        """Encodes the samples from the first picture on. Where some are missing, it is silent."""
        begin = int((self._first or 0) * self._rate / self._film.fps)
        at = first - begin
        if at < self._at:
            samples, at = samples[self._at - at :], self._at
        if not len(samples):
            return
        if at > self._at:
            samples, at = np.concatenate([np.zeros((at - self._at, MAX_CHANNELS), np.float32), samples]), self._at
        voice.write(samples)
        self._at = at + len(samples)


def check_certificate(address: StreamAddress) -> None:
    """Looks whether a server has a certificate for its name that this system trusts: FFmpeg does not look, and would
    give a key to anybody. Raises OSError."""
    import ssl  # few performances need it

    host = address.host.strip("[]")
    trusted = ssl.create_default_context()
    with socket.create_connection((host, address.port), timeout=_GREETING) as made:
        try:
            trusted.wrap_socket(made, server_hostname=host).close()
        except ssl.SSLCertVerificationError as problem:
            words = f"the certificate of {host} is not to be trusted ({problem.verify_message}), so nothing is sent"
            raise ConnectionError(words) from None
        except ssl.SSLError as problem:
            raise ConnectionError(f"{host} does not speak TLS ({problem.reason})") from None


# Packets go out as they come; sound that is missing holds up no pictures for longer than this, in microseconds.
_MUXING = {"flush_packets": "1", "max_interleave_delta": "200000"}
_FLV = {"flvflags": "no_duration_filesize"}


def _configure(context: Any, film: FilmSpec, address: StreamAddress) -> None:
    """Prepares the encoder of pictures: at a rate that a network can carry, and with a key frame each second."""
    context.width, context.height, context.pix_fmt = film.width, film.height, "yuv420p"
    context.time_base, context.framerate = 1 / film.fps, film.fps
    context.color_primaries = context.color_trc = context.colorspace = context.color_range = 1
    context.gop_size = max(1, round(film.fps))
    usual = int(_BITS * film.width * film.height * film.fps)
    bits = address.bitrate or min(max(usual, 500_000), MOST_BITRATE * 1000)
    context.bit_rate = bits
    context.options = {
        "preset": preset(cores()), "tune": "zerolatency", "maxrate": str(bits), "bufsize": str(bits), "threads": "0",
    }  # fmt: skip


def preset(cores: int) -> str:
    """How much work the encoder does for each picture, on a machine with this many cores. 1920×1080 at 60 pictures a
    second takes one and a half cores by `superfast`, with the pictures' colours, and one by `ultrafast`, which is
    coarser: better than pictures that are dropped."""
    return "superfast" if cores >= _MANY_CORES else "ultrafast"


def _missing(address: StreamAddress) -> tuple[str, str]:
    others = ", ".join(scheme for scheme in SCHEMES if scheme != address.scheme)
    if address.scheme == "srt":
        words = "it comes with libsrt: apt install libsrt1.5-gnutls, or brew install srt"
        return "the library of SRT is missing", f"{words}; without it there are {others}"
    return f"PyAV has no {address.scheme} here", f"there are {others}"
