"""Sounds, films and devices as PyAV opens them: the one place that calls FFmpeg's readers, and knows their options.

Files come from strangers. Some refer to other files, to the network, or to filters, and FFmpeg would follow. So it may
use no protocol except the one that is meant, and no format that refers to anything.
"""

from __future__ import annotations

import errno
import glob
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple
from urllib.parse import urlsplit

from weft.cameras import STREAM_PROTOCOLS, Camera, generated
from weft.errors import installs
from weft.media.screens import NotGrabbedError, grabbing
from weft.media.source import PictureError, open_media
from weft.platform import system

if TYPE_CHECKING:
    from av.container import InputContainer


class MediaWords(NamedTuple):
    """The words of messages about a kind of file: `what` it is not, and what is `readable`, as a hint."""

    what: str
    readable: str


A_SOUND = MediaWords("a sound", "weft reads wav, flac, ogg, mp3 and others that PyAV decodes")
A_FILM = MediaWords("a film", "weft reads what FFmpeg reads")

# Only what is open already may be read, so no playlist leads to other files or into the network.
_PROTOCOL = "fd"
# The formats of films and sounds whose files contain all that is shown. No playlist, session, script or numbered
# sequence is among them.
_FORMATS = (
    "aac", "ac3", "aiff", "amr", "ape", "apng", "asf", "au", "avi", "caf", "dv", "eac3", "flac", "flv", "gif", "h264",
    "hevc", "ivf", "m4v", "matroska", "mov", "mp3", "mpeg", "mpegts", "mpegvideo", "nut", "obu", "ogg", "tta", "w64",
    "wav", "webm", "wv", "yuv4mpegpipe",
    # Single pictures, which are not films.
    "bmp_pipe", "jpeg_pipe", "png_pipe", "tiff_pipe", "webp_pipe",
)  # fmt: skip
_FILE_OPTIONS = {"protocol_whitelist": _PROTOCOL, "format_whitelist": ",".join(_FORMATS)}
_STREAM_OPTIONS = {"protocol_whitelist": STREAM_PROTOCOLS}
# The number that Linux gives to all devices for video.
_VIDEO_DEVICES = 81


@contextmanager
def opened_file(path: Path, words: MediaWords) -> Iterator[InputContainer]:
    """A file of sounds or pictures, opened by PyAV. Any failure in the block becomes a `PictureError`, whatever the
    library raises about damage."""
    try:
        import av
    except ImportError:
        reason = "sounds and films are read by PyAV, which is not installed"
        raise PictureError(reason, installs("media")) from None
    with open_media(path) as file:
        try:
            if not os.fstat(file.fileno()).st_size:
                raise PictureError("it is empty")
            place: Any = file
            options = _FILE_OPTIONS
            if system.shares_descriptors:
                # Through a file of Python, each read would take Python's lock.
                place, options = f"{_PROTOCOL}:", {_PROTOCOL: str(file.fileno()), **_FILE_OPTIONS}
            with av.open(place, options=options, **_metadata_options()) as container:
                yield container
        except PictureError:
            raise
        except MemoryError:
            raise PictureError("there is not enough memory for it") from None
        except Exception as failure:  # demuxers and decoders raise all kinds of errors for damage
            if _is_begun(file):
                hint = "is it still being written? else copy it again"
                raise PictureError("it is incomplete or damaged", hint) from None
            reason = f"it is not {words.what}, or a damaged one ({reason_of(failure)})"
            raise PictureError(reason, words.readable) from None


@contextmanager
def opened_camera(camera: Camera) -> Iterator[InputContainer]:
    """The device that `camera` names. Raises PictureError, and what PyAV raises: OSError, ValueError or
    `av.error.FFmpegError`."""
    import av

    if camera.kind == "file":
        with opened_file(Path(camera.place), A_FILM) as container:
            yield container
        return
    options: dict[str, str] | None = None
    form, place = None, camera.place
    if camera.kind == "stream":
        options = _STREAM_OPTIONS
    elif camera.kind in ("desktop", "window"):
        try:
            form, place, options = grabbing(camera)
        except NotGrabbedError as problem:
            raise PictureError(problem.reason, problem.hint) from None
    elif camera.kind == "generated":
        form, place = "lavfi", generated(place)
    else:
        form = system.camera_format
        place = _device(place) if form == "v4l2" else place
    try:
        with av.open(place, format=form, options=options, **_metadata_options()) as container:
            yield container
    except (OSError, ValueError, av.error.FFmpegError) as failure:
        if camera.kind != "stream":
            raise
        raise _stream_failure(place, failure) from failure


def _metadata_options() -> dict[str, Any]:
    """Has titles read whatever their encoding is. They are not shown, and those of old files are in any. From version
    19 on, PyAV reads titles only when they are asked for."""
    import av

    return {"metadata_errors": "ignore"} if int(av.__version__.partition(".")[0]) < 19 else {}


def _device(place: str) -> str:
    """The path of a camera of Linux, by its path or its number. Raises OSError, and PictureError for anything else."""
    path = f"/dev/video{int(place)}" if place.isdecimal() else place
    try:
        found = os.stat(path)
    except FileNotFoundError:
        there = ", ".join(sorted(glob.glob("/dev/video*"))) or "no camera"
        raise PictureError(f"it is not there (this machine has {there})") from None
    if not stat.S_ISCHR(found.st_mode) or os.major(found.st_rdev) != _VIDEO_DEVICES:
        raise PictureError("it is not a camera")
    return path


# The numbers of errors with which a network says that nobody is there.
_NOBODY = (
    errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN, errno.ETIMEDOUT
)  # fmt: skip
# The protocols whose address is one of this machine, at which it waits for what others send.
_RECEIVING = ("rtp", "udp")


def waiting_hint(camera: Camera) -> str | None:
    """What to look at if no picture comes from a camera that was opened."""
    if camera.kind != "stream":
        return None
    if _scheme_of(camera.place) in _RECEIVING:
        return "weft waits at this port of this machine: does anything send to it?"
    return "is what sends it switched on, and does the address lead to it?"


def _stream_failure(address: str, failure: Exception) -> PictureError:
    """Why a stream cannot be received, in plain words: those of FFmpeg are an error number's."""
    import av

    scheme = _scheme_of(address)
    if isinstance(failure, (av.error.HTTPUnauthorizedError, av.error.HTTPForbiddenError)):
        hint = f"the address may have them: {scheme}://NAME:PASSWORD@… (messages leave them out)"
        return PictureError("a name and a password are wanted there, or others", hint)
    if isinstance(failure, av.error.HTTPNotFoundError):
        return PictureError("what answers there has no such stream", "look at the end of the address, after the host")
    if isinstance(failure, av.error.ProtocolNotFoundError):
        return PictureError(f"PyAV cannot receive {scheme} here", "have it sent by rtsp, http or udp")
    number = getattr(failure, "errno", None)
    if number == errno.EADDRINUSE:
        return PictureError("another program receives at this port", "end that, or take another port")
    if number == errno.EADDRNOTAVAIL:
        return PictureError("this machine does not have this address", f"{scheme}://0.0.0.0:PORT is any that it has")
    # FFmpeg has one number for a name that is not known and for what it cannot read.
    if number == errno.EIO and not _is_known(address):
        return PictureError("no machine of this name is known here", "is it spelt right? is this machine online?")
    if number in _NOBODY:
        return PictureError("nothing answers there", "is what sends it switched on, and are host and port right?")
    if number == errno.EIO or isinstance(failure, (av.error.InvalidDataError, av.error.EOFError)):
        return PictureError("what answers there sends no pictures", "is it the address of a stream, not of a page?")
    return PictureError(reason_of(failure))


def _scheme_of(address: str) -> str:
    return address.partition("://")[0].lower()


def _is_known(address: str) -> bool:
    """Whether the host of an address can be found."""
    try:
        return bool(socket.getaddrinfo(urlsplit(address).hostname, None))
    except (OSError, ValueError):  # the latter for what is no address
        return False


def reason_of(failure: Exception) -> str:
    """The reason why PyAV has failed."""
    return getattr(failure, "reason", None) or getattr(failure, "strerror", None) or str(failure)


def _is_begun(file: BinaryIO) -> bool:
    """Whether a file begins like a film in mp4, mov or mkv."""
    file.seek(0)
    head = file.read(8)
    return head[4:8] == b"ftyp" or head[:4] == b"\x1aE\xdf\xa3"
