"""Sounds, films and devices as PyAV opens them: the one place that calls FFmpeg's readers, and knows their options."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from weft.media.source import PictureError, open_media

if TYPE_CHECKING:
    from av.container import InputContainer


class MediaWords(NamedTuple):
    """How messages call a kind of file: `what` it is not, and what is `readable`, as a hint."""

    what: str
    readable: str


A_SOUND = MediaWords("a sound", "weft reads wav, flac, ogg, mp3 and others that PyAV decodes")
A_FILM = MediaWords("a film", "weft reads what FFmpeg reads")

# The only thing that may be opened is what is open already: no playlist leads to other files, or into the net.
_PROTOCOL = "fd"
# Titles are not shown, and those of old files are in any encoding.
_METADATA_ERRORS = "ignore"


@contextmanager
def opened_file(path: Path, words: MediaWords) -> Iterator[InputContainer]:
    """A file of sounds or pictures, opened by PyAV. Any failure in the block becomes a `PictureError`, whatever the
    library raises for damage."""
    try:
        import av
    except ImportError:
        reason = "sounds and films are read by PyAV, which is not installed"
        raise PictureError(reason, "pip install 'weft[media]'") from None
    with open_media(path) as file:
        try:
            if not os.fstat(file.fileno()).st_size:
                raise PictureError("it is empty")
            options = {_PROTOCOL: str(file.fileno()), "protocol_whitelist": _PROTOCOL}
            with av.open(f"{_PROTOCOL}:", options=options, metadata_errors=_METADATA_ERRORS) as container:
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
def opened_address(place: str, form: str | None) -> Iterator[InputContainer]:
    """A device or a stream, by its address and, if that is known, its format. Raises what PyAV raises: OSError,
    ValueError or `av.error.FFmpegError`."""
    import av

    with av.open(place, format=form, metadata_errors=_METADATA_ERRORS) as container:
        yield container


def reason_of(failure: Exception) -> str:
    """Why PyAV has failed."""
    return getattr(failure, "reason", None) or getattr(failure, "strerror", None) or str(failure)


def _is_begun(file: BinaryIO) -> bool:
    """Whether a file begins as films in mp4, mov and mkv do."""
    head = os.pread(file.fileno(), 8, 0)
    return head[4:8] == b"ftyp" or head[:4] == b"\x1aE\xdf\xa3"
