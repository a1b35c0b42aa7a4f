"""Writing films: the codecs that a file may have, and the process that encodes frames while another one draws them.

A film is encoded in segments, each a file of packets that begins with a key frame. At the end they are joined in one
file, together with the sound, and are not encoded again. PyAV is imported in the process that encodes.
"""

from __future__ import annotations

import errno
import hashlib
import importlib.metadata
import importlib.util
import json
import mmap
import os
import shutil
import signal
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from weft.child import BEAT, Child, Pulse
from weft.codes.rows import InternalError
from weft.disk import KeptWriter, is_kept, opened_kept
from weft.errors import installs
from weft.platform import system

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]

# The most frames that wait for the encoder.
_SLOTS = 4
# Encoders divide their work by the number of their threads, and so their result: it must not depend on the machine.
_THREADS = "4"
# The longest segment, in seconds of the film. Each begins with a key frame, to which players can jump.
_SEGMENT_SECONDS = 2

_KEPT = "packets 2"
# The time at which a packet is shown and decoded, its duration, whether it is a key frame, and its bytes.
_PACKET = struct.Struct("<qqq?I")


class EncodingError(InternalError):
    """A film cannot be written as requested; the message is for people."""

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason if hint is None else f"{reason} ({hint})")


# --- what can be written ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FilmCodec:
    """How pictures are encoded. Codecs without qualities are lossless, or as good as they can be."""

    encoder: str
    pixels: str
    """FFmpeg's name of the pixels that the encoder is given."""
    options: Mapping[str, str] = field(default_factory=dict)
    default_quality: int | None = None
    """The constant rate factor: smaller values look better and make larger files."""
    worst_quality: int = 0
    is_even: bool = False
    """Whether width and height must be even."""
    is_exact: bool = True
    """Whether it encodes alike on all processors."""
    tag: str | None = None
    """The name by which players know the codec in mp4 and mov."""
    live: Mapping[str, str] = field(default_factory=dict)
    """Options for frames that are encoded as they are played: fast, at the expense of the size of the file."""


@dataclass(frozen=True)
class FilmFormat:
    """What a file with an ending may hold. `codecs` are those for pictures, the default first, each with the codec of
    its sound; None if the format has no sound."""

    muxer: str
    codecs: Mapping[str, str | None]
    options: Mapping[str, str] = field(default_factory=dict)
    highest_rate: int = 1000


CODECS: Mapping[str, FilmCodec] = {
    # With AVX-512, x264's macroblock tree makes other bytes from time to time.
    "h264": FilmCodec(
        "libx264", "yuv420p", {"preset": "veryfast", "x264-params": "mbtree=0:cpu-independent=1"}, 18, 51, is_even=True,
        live={"preset": "ultrafast"},
    ),
    "h265": FilmCodec(
        "libx265", "yuv420p", {"preset": "medium", "x265-params": f"log-level=none:frame-threads=2:pools={_THREADS}"},
        20, 51, is_even=True, is_exact=False, tag="hvc1",
    ),
    "vp9": FilmCodec(
        "libvpx-vp9", "yuv420p", {"b": "0", "deadline": "good", "cpu-used": "4", "tile-columns": "2"}, 24, 63,
        live={"deadline": "realtime", "cpu-used": "8", "row-mt": "1"},
    ),
    "prores": FilmCodec("prores_ks", "yuva444p10le", {"profile": "4444", "vendor": "apl0"}),
    "ffv1": FilmCodec("ffv1", "bgra", {"level": "3", "slices": "4", "slicecrc": "1"}),
    "png": FilmCodec("png", "rgba"),
    # Both are written from lossless frames after all are there, since a palette is chosen for the whole film.
    "gif": FilmCodec("png", "rgb24", {"compression_level": "1"}),
    "apng": FilmCodec("png", "rgb24", {"compression_level": "1"}),
}  # fmt: skip

_FAST_START = {"movflags": "+faststart"}

FORMATS: Mapping[str, FilmFormat] = {
    ".mp4": FilmFormat("mp4", {"h264": "aac", "h265": "aac"}, _FAST_START),
    ".webm": FilmFormat("webm", {"vp9": "libopus"}),
    ".mov": FilmFormat("mov", {"prores": "pcm_s24le", "png": "pcm_s24le", "h264": "aac", "h265": "aac"}, _FAST_START),
    # Matroska does not say where AAC ends within its last packet; Opus does.
    ".mkv": FilmFormat("matroska", {"h264": "libopus", "h265": "libopus", "vp9": "libopus", "ffv1": "flac"}),
    # Its times are in hundredths of a second, and players slow down a frame that lasts only one of them.
    ".gif": FilmFormat("gif", {"gif": None}, {"loop": "0"}, highest_rate=50),
    ".apng": FilmFormat("apng", {"apng": None}, {"plays": "0"}),
}

MAX_CHANNELS = 2
"""The most channels of the sound of a film."""

# The number of samples that FFmpeg's encoder for AAC puts before the first one.
_AAC_LEAD = 1024

_RATES = {
    "aac": (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 64000, 88200, 96000),
    "libopus": (8000, 12000, 16000, 24000, 48000),
}  # fmt: skip


@dataclass(frozen=True)
class FilmSpec:
    """All that encoding depends on, apart from the frames."""

    ending: str
    codec: str
    quality: int | None
    width: int
    height: int
    numerator: int
    denominator: int
    """Frames a second, as a fraction."""

    @property
    def fps(self) -> Fraction:
        """Frames a second."""
        return Fraction(self.numerator, self.denominator)

    @property
    def segment(self) -> int:
        """The frames of a segment."""
        return max(1, round(self.fps * _SEGMENT_SECONDS))

    @property
    def sound_codec(self) -> str | None:
        """FFmpeg's name of the codec of the sound; None if the file can have none."""
        return FORMATS[self.ending].codecs[self.codec]


def codec_of(ending: str, codec: str | None, quality: int | None) -> str:
    """The codec for pictures. Raises EncodingError for one that the file cannot have, and for a quality that the codec
    does not know."""
    known = FORMATS[ending].codecs
    name = codec if codec is not None else next(iter(known))
    if name not in known:
        others = [each for each, form in FORMATS.items() if name in form.codecs]
        elsewhere = f"; {name} is for {', '.join(others)}" if others else ""
        raise EncodingError(f'{ending} cannot have the codec "{name}"', f"it has {', '.join(known)}{elsewhere}")
    if quality is not None:
        found = CODECS[name]
        if found.default_quality is None:
            raise EncodingError(f"--quality is not for {name}, which keeps all that it can")
        if not 1 <= quality <= found.worst_quality:
            words = f"1 is best, {found.default_quality} the default"
            raise EncodingError(f"the quality of {name} is 1 to {found.worst_quality}, not {quality}", words)
    return name


def film_spec(ending: str, codec: str, quality: int | None, size: tuple[int, int], fps: float) -> FilmSpec:
    """The settings for encoding a film. Raises EncodingError for a size or a rate that the codec or the format cannot
    have."""
    width, height = size
    form, found = FORMATS[ending], CODECS[codec]
    if found.is_even and (width % 2 or height % 2):
        even = f"{width + width % 2}x{height + height % 2}"
        anything = [name for name in form.codecs if not CODECS[name].is_even]
        instead = f"--codec {anything[0]}" if anything else "a .webm or .mov, which takes every size"
        words = f"{codec} needs an even width and height, not {width}x{height}"
        raise EncodingError(words, f"--size {even}, or {instead}")
    if fps > form.highest_rate:
        words = f"--fps {form.highest_rate}, or --fps 25"
        raise EncodingError(f"{ending} has at most {form.highest_rate} frames a second, not {fps:g}", words)
    rate = _fraction(fps)
    quality = found.default_quality if quality is None else quality
    return FilmSpec(ending, codec, quality, width, height, rate.numerator, rate.denominator)


def _fraction(fps: float) -> Fraction:
    """The rate of a patch as a fraction. The rate is a float: 29.97002997 means 30000/1001."""
    return Fraction(fps).limit_denominator(10_000)


def missing_encoder() -> str | None:
    """The reason why films cannot be written here, with a remedy; None if nothing is known to prevent it."""
    if importlib.util.find_spec("av") is None:
        return f"writing films needs PyAV ({installs('media')})"
    return None


# --- frames for other programs ----------------------------------------------------------------------------------------


Y4M_FRAME = b"FRAME\n"
"""The beginning of each frame of a y4m."""


def y4m_header(size: tuple[int, int], fps: float, chroma: str = "444") -> bytes:
    """The header of a y4m, by default of frames as `y4m_frame` makes them."""
    rate = _fraction(fps)
    words = f"W{size[0]} H{size[1]} F{rate.numerator}:{rate.denominator} Ip A1:1 C{chroma} XCOLORRANGE=LIMITED"
    return f"YUV4MPEG2 {words}\n".encode()


def y4m_frame(pixels: Pixels) -> bytes:
    """Pixels [height, width, RGBA] as a frame of a y4m: Y, Cb and Cr in full resolution, BT.709 with limited range."""
    red, green, blue = (pixels[..., channel].astype(np.float32) for channel in range(3))
    # Not as a product of matrices, whose rounding differs from processor to processor.
    planes = (red * r + green * g + blue * b + offset for (r, g, b), offset in zip(_BT709, _OFFSETS, strict=True))
    return Y4M_FRAME + b"".join(np.rint(plane).astype(np.uint8).tobytes() for plane in planes)


# ITU-R BT.709-6, 3.2–3.4: luma from red and blue, and the ranges of 8 bits.
_RED, _BLUE = 0.2126, 0.0722
_LUMA = np.array([_RED, 1 - _RED - _BLUE, _BLUE])
_BT709 = np.array([
    219 * _LUMA,
    224 * (np.array([0, 0, 1]) - _LUMA) / (2 * (1 - _BLUE)),
    224 * (np.array([1, 0, 0]) - _LUMA) / (2 * (1 - _RED)),
], np.float32) / np.float32(255)  # fmt: skip
_OFFSETS = np.array([16, 128, 128], np.float32)


# --- in the process that draws ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SoundTrack:
    """The sound of a film: a file of 32-bit floats, sample by sample, each with all its channels."""

    path: Path
    rate: int
    channels: int


class FilmEncoder:
    """A process that encodes frames. They reach it through shared memory; a few may wait for it there."""

    def __init__(self, spec: FilmSpec) -> None:
        """Raises EncodingError."""
        self.finished = 0
        """The number of complete segments."""
        self._shape = (_SLOTS, spec.height, spec.width, 4)
        size = int(np.prod(self._shape))
        try:
            descriptor = system.shared_file(size)
        except OSError as problem:
            raise EncodingError(f"there is no memory for its frames: {problem.strerror}") from None
        try:
            self._frames = np.frombuffer(mmap.mmap(descriptor, size), np.uint8).reshape(self._shape)
            self._free = list(range(_SLOTS))
            self._child = Child(
                "weft.runtime.films.encoding:main", json.dumps(asdict(spec)), descriptors=[descriptor]
            )  # fmt: skip
        except OSError as problem:
            raise EncodingError(f"the encoder cannot be started: {problem.strerror}") from None
        finally:
            os.close(descriptor)

    def begin(self, path: Path) -> None:
        """Begins a segment, which has the name `path` when it is complete."""
        self._send("begin", str(path))

    def add(self, pixels: Pixels) -> None:
        """Adds a frame [height, width, RGBA]. Waits if the encoder is late. Raises EncodingError."""
        while not self._free or self._child.connection.poll():
            self._receive()
        slot = self._free.pop()
        self._frames[slot] = pixels
        self._send("add", slot)

    def end(self) -> None:
        """Ends a segment. It is complete some time later."""
        self._send("end")

    def join(self, segments: Iterable[Path], sound: SoundTrack | None, out: Path) -> None:
        """Writes the film, of all its segments. Raises EncodingError."""
        track = None if sound is None else (str(sound.path), sound.rate, sound.channels)
        self._send("join", [str(each) for each in segments], track, str(out))
        while self._receive() != "joined":
            pass

    def close(self) -> None:
        """Ends the process, whatever it is doing."""
        self._child.end()

    def _send(self, *message: Any) -> None:
        try:
            self._child.connection.send(message)
        except OSError:
            while True:
                self._receive()  # until it raises the reason why the process has ended

    def _receive(self) -> str:
        """Waits for a message."""
        try:
            kind, value = self._child.connection.recv()
        except (EOFError, OSError):
            raise self._ended() from None
        if kind == "free":
            self._free.append(value)
        elif kind == "finished":
            self.finished += 1
        elif kind == "failed":
            raise EncodingError(value)
        return str(kind)

    def _ended(self) -> EncodingError:
        with suppress(Exception):
            self._child.wait(1)
        return EncodingError(f"the process that encodes it {self._child.ending}")


class FilmParts:
    """The segments of a film, in a hidden folder next to it until all are there."""

    def __init__(self, out: Path, spec: FilmSpec, numbers: range, origin: str) -> None:
        """`numbers` are those of its frames; `origin` is a hash of everything that they depend on."""
        self._folder = out.with_name(f".{out.name}.parts")
        self._numbers = numbers
        self._length = spec.segment
        known = asdict(spec), numbers.start, numbers.stop, origin, importlib.metadata.version("av")
        self._origin = hashlib.sha256(json.dumps(known).encode()).hexdigest()
        self._lock: IO[str] | None = None
        self._is_ours = False
        self.segments = {first: self._folder / f"{first:08d}" for first in numbers[:: self._length]}
        """Where each segment is kept when it is complete, by the number of its first frame."""
        self.sound = self._folder / "sound"

    def open(self, overwrite: bool) -> int:
        """Makes the folder, or finds it. Deletes segments of another origin, or all segments to `overwrite`, and files
        that are not whole segments. Returns the number of segments of another origin. Raises EncodingError, and
        OSError."""
        note = self._folder / "origin"
        is_there = os.path.lexists(self._folder)
        if is_there and not (_is_folder(self._folder) and (note.exists() or not any(self._folder.iterdir()))):
            raise EncodingError(f"{self._folder} is in the way", "parts of the film would be kept there")
        self._folder.mkdir(exist_ok=True)
        # If another user has put a link there, nothing is written to its target.
        self._lock = os.fdopen(os.open(note, system.appending(), 0o666), "a+")
        try:
            system.lock(self._lock)
        except OSError:
            raise EncodingError("another process is writing this film") from None
        self._is_ours = True
        self._lock.seek(0)
        is_same = self._lock.read() == self._origin
        stale = 0
        if overwrite or not is_same:
            old = [path for path in self._folder.iterdir() if path != note]
            for path in old:
                path.unlink()
            stale = 0 if is_same else sum(path.name.isdigit() for path in old)
            self._lock.truncate(0)
            self._lock.write(self._origin)
            self._lock.flush()
        whole = {path for path in self.segments.values() if is_kept(path, _KEPT, is_private=False)}
        for path in self._folder.iterdir():
            if path != note and path not in whole:
                path.unlink()
        return stale

    def frames(self, first: int) -> range:
        """The frames of a segment."""
        return range(first, min(first + self._length, self._numbers.stop))

    @property
    def missing(self) -> list[int]:
        """The frames that are in no complete segment."""
        return [number for first, path in self.segments.items() if not path.exists() for number in self.frames(first)]

    def close(self, keep: bool) -> None:
        """Deletes the folder, unless segments are to be kept and there are some."""
        if self._lock is not None:
            self._lock.close()
        if self._is_ours and not (keep and len(self.missing) < len(self._numbers)):
            shutil.rmtree(self._folder, ignore_errors=True)


def _is_folder(path: Path) -> bool:
    """Whether it is a folder, and no link to one."""
    return path.is_dir() and not path.is_symlink()


# --- in the process that encodes --------------------------------------------------------------------------------------


def main(descriptor: str, lifeline: str, memory: str, spec: str) -> None:
    """Encodes frames from shared memory, as requested, until the other end of the socket is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent, pulse = Connection(int(descriptor)), Pulse(int(lifeline))
    film = FilmSpec(**json.loads(spec))
    shape = (_SLOTS, film.height, film.width, 4)
    frames = np.frombuffer(mmap.mmap(int(memory), int(np.prod(shape))), np.uint8).reshape(shape)
    writer: _SegmentWriter | None = None
    with suppress(EOFError, OSError):
        while True:
            while not parent.poll(BEAT):
                pulse.beat()
            kind, *arguments = parent.recv()
            try:
                if kind == "begin":
                    writer = _SegmentWriter(film, Path(arguments[0]))
                elif kind == "add" and writer is not None:
                    writer.add(frames[arguments[0]])
                    parent.send(("free", arguments[0]))
                elif kind == "end" and writer is not None:
                    writer.end()
                    parent.send(("finished", None))
                elif kind == "join":
                    segments, track, out = arguments
                    sound = None if track is None else SoundTrack(Path(track[0]), *track[1:])
                    join(film, [Path(each) for each in segments], sound, Path(out))
                    parent.send(("joined", None))
            except Exception as failure:  # FFmpeg has many
                parent.send(("failed", reason_of(film, failure)))
                return


def reason_of(spec: FilmSpec, failure: Exception) -> str:
    """The reason why encoding has failed."""
    words = getattr(failure, "strerror", None) or str(failure) or type(failure).__name__
    # The failures of PyAV are OSErrors, too, and have the numbers by which encoders refuse.
    is_of_file = isinstance(failure, OSError) and type(failure).__module__ == OSError.__module__
    of_files = errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO, errno.EROFS
    if is_of_file or getattr(failure, "errno", None) in of_files:
        return str(words)
    if isinstance(failure, ImportError):
        return f"PyAV cannot be loaded here ({words}; {installs('media')} installs it)"
    if type(failure).__name__ == "UnknownCodecError":
        return f"this build of PyAV has no encoder {failure} (pip install --upgrade av, or another --codec)"
    size = f"{spec.width}x{spec.height} at {float(spec.fps):g} frames a second"
    return f"the encoder {CODECS[spec.codec].encoder} refuses {size} ({words}; try another --codec or --size)"


class _SegmentWriter:
    """Encodes the frames of one segment to a file of packets."""

    def __init__(self, spec: FilmSpec, path: Path) -> None:
        import av

        codec = CODECS[spec.codec]
        self._context: Any = av.CodecContext.create(codec.encoder, "w")
        configure(self._context, spec)
        self._pixels = PixelFormat(spec)
        self._count = 0
        self._file = KeptWriter(path, _KEPT)

    def add(self, pixels: Pixels) -> None:
        frame = self._pixels.convert(pixels, self._count)
        self._count += 1
        self._write(self._context.encode(frame))

    def end(self) -> None:
        self._write(self._context.encode(None))
        self._file.keep()

    def _write(self, packets: Iterable[Any]) -> None:
        for packet in packets:
            data = bytes(packet)
            dts = packet.pts if packet.dts is None else packet.dts
            self._file.write(_PACKET.pack(packet.pts, dts, 1, packet.is_keyframe, len(data)))
            self._file.write(data)


def write_segment(spec: FilmSpec, path: Path, frames: Iterable[Pixels]) -> None:
    """Encodes the frames of one segment, each [height, width, RGBA], in this process. It has the name `path` when it is
    complete. Raises EncodingError, and what `frames` raises."""
    with _as_encoding_error(spec):
        writer = _SegmentWriter(spec, path)
    for pixels in frames:
        with _as_encoding_error(spec):
            writer.add(pixels)
    with _as_encoding_error(spec):
        writer.end()


@contextmanager
def _as_encoding_error(spec: FilmSpec) -> Iterator[None]:
    """Turns the exceptions of FFmpeg, of which there are many kinds, into the reason why encoding has failed."""
    try:
        yield
    except Exception as failure:
        raise EncodingError(reason_of(spec, failure)) from failure


def configure(context: Any, spec: FilmSpec, is_live: bool = False) -> None:
    """Prepares the context of an encoder, in the same way for a segment and for the file."""
    from av.codec.context import Flags

    codec = CODECS[spec.codec]
    context.width, context.height = spec.width, spec.height
    context.pix_fmt = codec.pixels
    context.time_base = 1 / spec.fps
    context.framerate = spec.fps
    context.sample_aspect_ratio = Fraction(1)
    context.gop_size = spec.segment
    # Headers are in the container, and the file does not contain the encoder's version.
    context.flags |= Flags.global_header | Flags.bitexact
    is_yuv = codec.pixels.startswith("yuv")
    context.color_primaries, context.color_trc = 1, 1
    context.colorspace, context.color_range = (1, 1) if is_yuv else (0, 2)
    quality = {} if spec.quality is None else {"crf": str(spec.quality)}
    context.options = {"threads": _THREADS, **codec.options, **quality, **(codec.live if is_live else {})}
    if codec.tag is not None and spec.ending in (".mp4", ".mov"):
        context.codec_tag = codec.tag


class PixelFormat:
    """Converts pixels to the format of an encoder: for YUV, BT.709 with limited range."""

    def __init__(self, spec: FilmSpec, is_live: bool = False) -> None:
        """Frames that are encoded as they are played are converted fast, and may be off by a step of 255."""
        import av.filter

        pixels = CODECS[spec.codec].pixels

        self._time_base = 1 / spec.fps
        self._converts = pixels != "rgba"
        graph: Any = av.filter.Graph()
        self._graph = graph
        source = graph.add_buffer(width=spec.width, height=spec.height, format="rgba", time_base=self._time_base)
        exact = "+accurate_rnd+full_chroma_int+full_chroma_inp+bitexact"
        method = "flags=bilinear" + ("" if is_live else exact)
        colours = "out_color_matrix=bt709:out_range=tv:" if pixels.startswith("yuv") else ""
        graph.link_nodes(
            source, graph.add("scale", colours + method), graph.add("format", f"pix_fmts={pixels}"),
            graph.add("buffersink"),
        ).configure()  # fmt: skip

    def convert(self, pixels: Pixels, number: int) -> Any:
        import av

        if self._converts:
            # They are read before this returns, and not later.
            frame = av.VideoFrame.from_numpy_buffer(pixels, "rgba")
        else:
            frame = av.VideoFrame.from_ndarray(pixels, "rgba")
        frame.pts, frame.time_base = number, self._time_base
        self._graph.push(frame)
        converted = self._graph.pull()
        converted.pict_type = 0  # the encoder chooses
        return converted


def packets_of(path: Path) -> Iterator[tuple[int, int, int, bool, bytes]]:
    """The packets of a segment. Raises OSError for a file that is not one, or not a whole one."""
    with opened_kept(path, _KEPT, is_private=False) as file:
        while head := file.read(_PACKET.size):
            pts, dts, duration, is_key, size = _PACKET.unpack(head)
            yield pts, dts, duration, is_key, file.read(size)


def join(spec: FilmSpec, segments: list[Path], sound: SoundTrack | None, out: Path) -> None:
    """Writes the film of all its segments, and its sound."""
    import av

    form = FORMATS[spec.ending]
    options = {"fflags": "+bitexact", **form.options}
    with av.open(f"file:{out}", "w", format=form.muxer, options=options) as container:
        if spec.codec in ("gif", "apng"):
            _join_animation(container, spec, segments)
            return
        stream = container.add_stream(CODECS[spec.codec].encoder, rate=spec.fps)
        configure(stream.codec_context, spec)
        stream.time_base = 1 / spec.fps
        voice = None if sound is None else _SoundWriter(container, spec, sound)
        for first, segment in zip(range(0, len(segments) * spec.segment, spec.segment), segments, strict=True):
            for pts, dts, duration, is_key, data in packets_of(segment):
                packet = av.Packet(data)
                packet.pts, packet.dts, packet.duration = first + pts, first + dts, duration
                packet.time_base, packet.stream, packet.is_keyframe = 1 / spec.fps, stream, is_key
                if voice is not None:
                    voice.write_until((first + dts) / spec.fps)
                container.mux(packet)
        if voice is not None:
            voice.write_until(None)


class SoundEncoder:
    """Encodes sound into the file of a film, as its second stream."""

    def __init__(self, container: Any, spec: FilmSpec, sampled: int, channels: int) -> None:
        """The sound has `sampled` samples a second."""
        import av

        name = spec.sound_codec
        self._layout = "stereo" if channels == MAX_CHANNELS else "mono"
        rates = _RATES.get(str(name), (sampled,))
        # The lowest rate that loses nothing.
        rate = sampled if sampled in rates else next((each for each in rates if each > sampled), rates[-1])
        self._container, self._sampled, self._at = container, sampled, 0
        self.lead = -(-_AAC_LEAD * sampled // rate) if name == "aac" else 0
        """The number of samples that are added at the beginning of the sound."""
        self._stream = container.add_stream(name, rate=rate, layout=self._layout)
        context = self._stream.codec_context
        context.flags |= av.codec.context.Flags.bitexact
        if name in ("aac", "libopus"):
            context.bit_rate = 96_000 * channels
        elif name == "flac":
            context.format = "s32"  # of which it keeps 24 bits
        self._resampler: Any = None

    def begin(self) -> None:
        """Opens the encoder, before anything is written."""
        import av

        context = self._stream.codec_context
        context.open(strict=False)
        self._resampler = av.AudioResampler(
            context.format.name, self._layout, context.rate, frame_size=context.frame_size or None
        )  # fmt: skip

    def skip(self, count: int) -> None:
        """Begins after this many samples."""
        self._at = count

    def write(self, samples: NDArray[np.float32]) -> None:
        """Writes samples [samples, channels]."""
        import av

        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples).reshape(1, -1), "flt", self._layout)
        frame.sample_rate, frame.pts = self._sampled, self._at
        frame.time_base = Fraction(1, self._sampled)
        self._at += len(samples)
        self._encode(self._resampler.resample(frame))

    def end(self) -> None:
        """Writes the samples that the encoder still holds."""
        self._encode([*self._resampler.resample(None), None])

    def _encode(self, frames: Iterable[Any]) -> None:
        for frame in frames:
            for packet in self._stream.encode(frame):
                self._container.mux(packet)


class _SoundWriter:
    """Encodes the sound of a film from its file."""

    def __init__(self, container: Any, spec: FilmSpec, sound: SoundTrack) -> None:
        self._rate, self._at, self._is_open = sound.rate, 0, False
        self._samples = np.memmap(sound.path, "<f4", "r").reshape(-1, sound.channels)
        self._encoder = SoundEncoder(container, spec, sound.rate, sound.channels)

    def write_until(self, seconds: Fraction | None) -> None:
        """Writes the samples before a time; None: all that are left."""
        end = len(self._samples) if seconds is None else min(len(self._samples), int(seconds * self._rate))
        if not self._is_open:
            self._is_open = True
            self._encoder.begin()
        while self._at < end:
            part = self._samples[self._at : min(end, self._at + self._rate)]
            self._encoder.write(part)
            self._at += len(part)
        if seconds is None:
            self._encoder.end()


def _join_animation(container: Any, spec: FilmSpec, segments: list[Path]) -> None:
    """Writes a gif with one palette for the whole film, or an apng."""
    is_gif = spec.codec == "gif"
    pixels = "pal8" if is_gif else "rgb24"
    stream = container.add_stream(spec.codec, rate=spec.fps)
    stream.width, stream.height, stream.pix_fmt = spec.width, spec.height, pixels
    stream.time_base = stream.codec_context.time_base = Fraction(1, 100) if is_gif else 1 / spec.fps
    stream.codec_context.options = {"threads": _THREADS}
    frames = _with_palette(spec, segments) if is_gif else _decoded(spec, segments)
    for number, frame in enumerate(frames):
        frame.pts, frame.time_base = number, 1 / spec.fps
        for packet in stream.encode(frame):
            container.mux(packet)
    for packet in stream.encode(None):
        container.mux(packet)


def _decoded(spec: FilmSpec, segments: list[Path]) -> Iterator[Any]:
    """The frames of lossless segments."""
    import av

    context = av.CodecContext.create("png", "r")
    for segment in segments:
        for *_, data in packets_of(segment):
            packet = av.Packet(data)
            packet.is_keyframe = True  # others would be added to the frame before
            yield from context.decode(packet)


def _with_palette(spec: FilmSpec, segments: list[Path]) -> Iterator[Any]:
    """The frames in the colours of a palette that suits all of them."""
    import av.filter

    base = 1 / spec.fps
    size = {"width": spec.width, "height": spec.height, "time_base": base}

    def numbered(frames: Iterable[Any]) -> Iterator[Any]:
        for number, frame in enumerate(frames):
            frame.pts, frame.time_base = number, base
            yield frame

    finder: Any = av.filter.Graph()
    source = finder.add_buffer(format="rgb24", **size)
    finder.link_nodes(source, finder.add("palettegen", "reserve_transparent=0"), finder.add("buffersink")).configure()
    for frame in numbered(_decoded(spec, segments)):
        finder.push(frame)
    finder.push(None)
    palette = finder.pull()
    palette.pts, palette.time_base = 0, base

    painter: Any = av.filter.Graph()
    pictures = painter.add_buffer(format="rgb24", **size)
    colours = painter.add_buffer(format=palette.format.name, width=palette.width, height=palette.height, time_base=base)
    use, sink = painter.add("paletteuse", "dither=sierra2_4a"), painter.add("buffersink")
    pictures.link_to(use, 0, 0)
    colours.link_to(use, 0, 1)
    use.link_to(sink)
    painter.configure()
    colours.push(palette)
    colours.push(None)
    for frame in numbered(_decoded(spec, segments)):
        pictures.push(frame)
        with _nothing_yet():
            while True:
                yield painter.pull()
    pictures.push(None)
    with _nothing_yet():
        while True:
            yield painter.pull()


@contextmanager
def _nothing_yet() -> Iterator[None]:
    """Ends a block that takes frames out of a filter when there are none."""
    from av.error import BlockingIOError, EOFError

    with suppress(BlockingIOError, EOFError):
        yield
