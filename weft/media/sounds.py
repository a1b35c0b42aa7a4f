"""Sounds from files: wav, flac, ogg, mp3 and whatever else PyAV decodes, in samples at the rate of a performance.

A file is decoded once, to a file of floats in the user's cache folder, which every process maps. So an hour of sound
takes no memory of its own, and a process that only plays never decodes. PyAV is imported when a file is opened.
"""

from __future__ import annotations

import atexit
import hashlib
import math
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.disk import ASIDE, HEAD_BYTES, KeptWriter, cache_folder, make_private, map_kept
from weft.media.containers import A_SOUND, opened_file
from weft.media.source import PictureError, require_file
from weft.sources import FILM, ends_as

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_SAMPLES = 2**29
"""The most samples of a sound: 3.1 hours at 48 kHz. Machine code counts its floats, two a sample, in 32 bits."""

KEPT_BYTES = 4_000_000_000
"""The size of the cache folder. The sounds that were not used for longest are deleted first."""

SIDES = 2
SAMPLE_BYTES = 4 * SIDES

# The resampler of libswresample: a windowed sinc of 256 taps in 2¹⁰ phases, or as many as a ratio of whole numbers has.
# benchmarks/sounds.py measures its passband and its stopband.
_TAPS = 256
_RESAMPLER = f"filter_size={_TAPS}:phase_shift=10:cutoff=0.985:filter_type=kaiser:kaiser_beta=12"

# The version of decoded files, to be increased when the same file would be decoded to other samples.
_KEPT = "sound 5"

# A sound may be shorter than its header says by this many seconds, or by this share: some headers only estimate.
_SHORTER, _SHORTER_SHARE = 0.5, 0.02

# Formats without a header that says how long they are.
_ESTIMATED = frozenset({"mp3", "aac"})

# In the sound of a film, time stamps that are off by fewer seconds than this mean no gap.
_UNEVEN = 0.02
# The samples of silence that are made at a time.
_PIECE = 1 << 16

# The end of a decoded file: the number of samples after which the sound ends.
_LENGTH = "<f8"
_LENGTH_BYTES = 8

AHEAD = 64_000_000
"""The bytes of a sound that are fetched from the disk when it is opened."""

# After this many seconds without a write, no process decodes to a file any more.
_ABANDONED = 600

_SECONDS_UNIT = 1_000_000  # of the duration of a container


@dataclass(frozen=True, slots=True)
class SoundInfo:
    """The header of a sound: its channels, its seconds, which may be estimated (0: unknown), and its format."""

    channels: int
    seconds: float
    format: str


def probe_sound(path: Path) -> SoundInfo:
    """Reads the header of a sound, and its first samples, which alone show whether there are any. Raises
    `PictureError`. Any thread may call it."""
    with _opened(path) as (container, stream):
        seconds = _seconds(container, stream)
        first = next(_frames(container, stream), None)
        if first is None:
            raise PictureError(_SILENT)
        return SoundInfo(first.layout.nb_channels, seconds, container.format.name)


def load_sound(path: Path, rate: int) -> NDArray[np.float32]:
    """The sound at a rate, [1, samples, 2], read-only. More than two channels are mixed as their layout says; one
    channel is both. That of a film begins and ends with its pictures. Raises `PictureError`. Any thread may call
    it."""
    name = _key(path, rate)
    for folder in _folders():
        with suppress(OSError):
            return _known(path, rate, folder / name)
    problem: OSError | None = None
    for place in (*_folders(), None):
        try:
            folder = place or _last_folder()  # which is made only if it has to be
            make_private(folder)
            _decode(folder / name, path, rate)
            return _known(path, rate, folder / name)
        except OSError as failure:
            problem = failure
    why = problem.strerror if problem else "there is no folder"
    raise PictureError(f"it cannot be decoded to a file ({why})", f"free some space in {_folders()[0]}")


# The decoded file of each sound that this process has loaded, by path and rate.
_decoded_files: dict[tuple[Path, int], Path] = {}


def _known(path: Path, rate: int, kept: Path) -> NDArray[np.float32]:
    found = map_sound(kept)
    _decoded_files[path, rate] = kept
    return found


def decoded_file(path: Path, rate: int) -> Path | None:
    """The decoded file of a sound that this process has loaded, as it was then."""
    return _decoded_files.get((path, rate))


def _folders() -> tuple[Path, ...]:
    """Where decoded sounds are, in order of preference."""
    shared = Path(tempfile.gettempdir()) / f"weft-sounds-{os.environ.get('USER', 'user')}"
    return cache_folder() / "sounds", shared


@cache
def _last_folder() -> Path:
    """The folder of decoded sounds if there is no other place for them. It exists until the end of this process."""
    folder = tempfile.mkdtemp(prefix="weft-sounds-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _key(path: Path, rate: int) -> str:
    """The name of a decoded sound. It changes with the file. Raises PictureError."""
    found = require_file(path)
    what = (str(path.resolve()), found.st_mtime_ns, found.st_size, found.st_ino, rate)
    return f"{hashlib.sha256(repr(what).encode()).hexdigest()[:32]}.f32"


def map_sound(kept: Path) -> NDArray[np.float32]:
    """A decoded file, [1, samples, 2], in memory that all processes share. Raises OSError."""
    import mmap

    import numpy as np

    from weft.media.frames import StoredSound

    memory = map_kept(kept, _KEPT)
    if hasattr(memory, "madvise"):
        memory.madvise(mmap.MADV_WILLNEED, 0, min(len(memory), AHEAD))
    end = len(memory) - _LENGTH_BYTES
    count = (end - HEAD_BYTES) // SAMPLE_BYTES
    samples = np.frombuffer(memory, np.float32, count * SIDES, HEAD_BYTES).reshape(1, -1, SIDES).view(StoredSound)
    samples.length = float(np.frombuffer(memory, _LENGTH, 1, end)[0])
    return samples


def _decode(kept: Path, path: Path, rate: int) -> None:
    """Decodes a sound to a file, whole or not at all, and makes room for it among the others."""
    import numpy as np

    with KeptWriter(kept, _KEPT) as file:
        count, length = 0, None
        if ends_as(str(path), FILM):
            origin, seconds = _times_of_film(path)
            length = seconds * rate
            pieces = _fitted(_decoded(path, rate, origin), math.ceil(length))
        else:
            pieces = _decoded(path, rate)
        for samples in pieces:
            count += len(samples)
            if count > MAX_SAMPLES:
                hours = MAX_SAMPLES / rate / 3600
                raise PictureError(f"it is longer than {hours:.1f} hours", "cut it into parts")
            file.write(samples.data)
        file.write(np.array([count if length is None else length], _LENGTH).data)
        if not count:
            raise PictureError(_SILENT)
    _make_room(kept)


def _make_room(newest: Path) -> None:
    """Deletes the sounds that were not used for longest until the folder keeps no more than it should, and the remains
    of processes that were killed. Processes that map a deleted file can still read it."""
    with suppress(OSError):
        for partial in newest.parent.glob(f"*{ASIDE}"):
            if time.time() - partial.stat().st_mtime > _ABANDONED:
                partial.unlink(missing_ok=True)
        others = [(p.stat().st_atime, p.stat().st_size, p) for p in newest.parent.glob("*.f32") if p != newest]
        room = KEPT_BYTES - newest.stat().st_size
        for _, size, path in sorted(others, reverse=True):
            room -= size
            if room < 0:
                path.unlink(missing_ok=True)


# Decoding.


def _times_of_film(path: Path) -> tuple[float, float]:
    """The start of a film, on the clock of its file, and its seconds."""
    from weft.media.decoding import times_of  # only films need it

    return times_of(path)


def _fitted(pieces: Iterable[NDArray[np.float32]], count: int) -> Iterator[NDArray[np.float32]]:
    """This many samples of a sound. A shorter sound is followed by silence."""
    for piece in pieces:
        yield piece[:count]
        count -= len(piece[:count])
        if not count:
            return
    yield from _silence(count)


def _silence(count: int) -> Iterator[NDArray[np.float32]]:
    import numpy as np

    while count > 0:
        yield np.zeros((min(count, _PIECE), SIDES), np.float32)
        count -= _PIECE


def _decoded(path: Path, rate: int, origin: float | None = None) -> Iterator[NDArray[np.float32]]:
    """The samples [samples, 2] of a sound at a rate, piece by piece. NaN becomes 0. If it has an `origin`, a time on
    the clock of its file, it begins there, and each sample is at its time in the file."""
    import numpy as np

    with _opened(path) as (container, stream):
        resampler: _Resampler | None = None
        heard = 0.0
        for frame in _frames(container, stream):
            sides, late = np.nan_to_num(_sides(frame), posinf=0.0, neginf=0.0), 0
            if origin is not None and frame.pts is not None:
                late = round((float(frame.pts * stream.time_base) - origin - heard) * frame.sample_rate)
                if heard and abs(late) < _UNEVEN * frame.sample_rate:
                    late = 0
            sides = sides[max(-late, 0) :]
            heard += (max(late, 0) + len(sides)) / frame.sample_rate
            if resampler is None or resampler.given != frame.sample_rate:
                if resampler is not None:
                    yield from resampler.rest()
                resampler = _Resampler(frame.sample_rate, rate)
            for piece in (*_silence(late), sides):
                yield from resampler.take(piece)
        if resampler is not None:
            yield from resampler.rest()
        expected = _seconds(container, stream) if origin is None else 0.0
        if container.format.name not in _ESTIMATED and heard < expected * (1 - _SHORTER_SHARE) - _SHORTER:
            words = f"it breaks off after {heard:.1f} of {expected:.1f} seconds"
            raise PictureError(f"it is damaged or incomplete: {words}")


def _frames(container: Any, stream: Any) -> Iterator[Any]:
    """The decoded frames of a sound, without damaged ones."""
    from av.error import InvalidDataError

    for packet in container.demux(stream):
        try:
            frames = packet.decode()
        except InvalidDataError:
            continue  # the length shows how much was lost
        yield from frames


_SILENT = "there is no sound in it"


def _sides(frame: Any) -> NDArray[np.float32]:
    """The left and right samples of a decoded frame, full scale being 1."""
    import numpy as np

    given = frame.to_ndarray()
    names = tuple(channel.name for channel in frame.layout.channels)
    channels = given.T if frame.format.is_planar else given.reshape(-1, frame.layout.nb_channels)
    shares = np.array(_shares(names)) if len(names) > SIDES else None
    if shares is None:
        channels = channels[:, :SIDES]
    if given.dtype == np.uint8:
        scaled = (channels.astype(np.float32) - 128) / 128
    elif np.issubdtype(given.dtype, np.integer):
        full = -float(np.iinfo(given.dtype).min)
        scaled = (channels / full).astype(np.float32)
    else:
        scaled = channels.astype(np.float32)
    if shares is not None:
        scaled = (scaled @ shares).astype(np.float32)
    return np.ascontiguousarray(np.broadcast_to(scaled, (len(scaled), SIDES)))


_HALF = math.sqrt(0.5)
# The gain of a channel on the left and on the right, by ITU-R BS.775-3, annex 4, table 2. Loudspeakers at the sides,
# behind or above the listener have the gain of the centre, and one behind in the middle half of it. The channel of the
# lowest tones is left out, since they are in the others, too.
_SHARES = {
    "FL": (1.0, 0.0), "FR": (0.0, 1.0), "FC": (_HALF, _HALF), "LFE": (0.0, 0.0), "LFE2": (0.0, 0.0),
    "BC": (0.5, 0.5), "TC": (0.5, 0.5), "TFC": (0.5, 0.5), "TBC": (0.5, 0.5), "DL": (1.0, 0.0), "DR": (0.0, 1.0),
    **dict.fromkeys(("BL", "SL", "FLC", "WL", "SDL", "TFL", "TBL", "TSL", "BFL", "SSL", "TTL"), (_HALF, 0.0)),
    **dict.fromkeys(("BR", "SR", "FRC", "WR", "SDR", "TFR", "TBR", "TSR", "BFR", "SSR", "TTR"), (0.0, _HALF)),
}  # fmt: skip


@cache
def _shares(names: tuple[str, ...]) -> tuple[tuple[float, float], ...]:
    """The gains of the channels of a layout on each side. If it does not say what they are, the first two count."""
    if all(name in _SHARES for name in names):
        return tuple(_SHARES[name] for name in names)
    return ((1.0, 0.0), (0.0, 1.0), *[(0.0, 0.0)] * (len(names) - SIDES))


class _Resampler:
    """Resamples pieces of a sound from one rate to another, by libswresample."""

    def __init__(self, given: int, wanted: int) -> None:
        import av

        self.given = given
        self._wanted = wanted
        self._graph = None
        if given == wanted:
            return
        graph = self._graph = av.filter.Graph()
        what = f"sample_rate={given}:sample_fmt=flt:channel_layout=stereo:time_base=1/{given}"
        self._source = graph.add("abuffer", what)
        resampler = graph.add("aresample", f"{wanted}:{_RESAMPLER}")
        self._sink = graph.add("abuffersink")
        self._source.link_to(resampler)
        resampler.link_to(self._sink)
        graph.configure()
        self._count = self._made = 0

    def take(self, samples: NDArray[np.float32]) -> Iterator[NDArray[np.float32]]:
        """The samples that can be computed with the next ones, [samples, 2]."""
        if self._graph is None:
            yield samples
            return
        self._push(samples)
        for made in self._ready():
            self._made += len(made)
            yield made

    def _push(self, samples: NDArray[np.float32]) -> None:
        import av

        frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), format="flt", layout="stereo")
        frame.sample_rate, frame.pts, frame.time_base = self.given, self._count, Fraction(1, self.given)
        self._count += len(samples)
        self._source.push(frame)

    def rest(self) -> Iterator[NDArray[np.float32]]:
        """The last samples."""
        if self._graph is None:
            return
        import numpy as np

        # The library holds back the samples that its filter needs, so it gets silence after the end. A sound has at
        # least one sample.
        left = max(1, round(self._count * self._wanted / self.given)) - self._made
        self._push(np.zeros((2 * _TAPS * max(1, -(-self.given // self._wanted)), SIDES), np.float32))
        self._source.push(None)
        for made in self._ready():
            yield made[:left]
            left -= min(left, len(made))

    def _ready(self) -> Iterator[NDArray[np.float32]]:
        import av
        import numpy as np

        while True:
            try:
                frame = self._sink.pull()
            except (av.error.BlockingIOError, av.error.EOFError):
                return
            assert isinstance(frame, av.AudioFrame)
            yield np.asarray(frame.to_ndarray(), np.float32).reshape(-1, SIDES)


# Opening.


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, Any]]:
    """A container and its first stream of sound. Any failure in the block becomes a `PictureError`."""
    with opened_file(path, A_SOUND) as container:
        if not container.streams.audio:
            beside = ", only pictures" if container.streams.video else ""
            raise PictureError(f"there is no sound in it{beside}", A_SOUND.readable)
        yield container, container.streams.audio[0]


def _seconds(container: Any, stream: Any) -> float:
    """The length of a sound, by its header; 0 if that is unknown."""
    if stream.duration is not None:
        return float(stream.duration * stream.time_base)
    return float(container.duration or 0) / _SECONDS_UNIT
