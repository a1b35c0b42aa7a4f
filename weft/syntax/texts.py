"""The text of a patch, as a file has it, before anybody understands a word of it."""

from __future__ import annotations

import os
import stat
from typing import Final

ENDING: Final = ".weft"
"""What the name of a patch ends in."""

MAX_CHARACTERS: Final = 250_000
# What the longest text takes, if all its characters are as long as UTF-8 has them.
MAX_BYTES: Final = 4 * MAX_CHARACTERS


class UnreadableError(Exception):
    """A file that cannot be read as a patch; the message says why, to be put behind its name."""


def read_text(path: str) -> str:
    """The text of a patch. Raises UnreadableError if the file is missing, too large, no plain file or no text."""
    try:
        # Opening a named pipe would otherwise wait until somebody writes to it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            problem = why_not_plain(os.fstat(descriptor).st_mode)
            if problem is not None:
                raise UnreadableError(problem)
            return decode(file.read(MAX_BYTES + 1))
    except (FileNotFoundError, NotADirectoryError) as failure:
        raise UnreadableError("there is no such file") from failure
    except IsADirectoryError as failure:
        raise UnreadableError(_FOLDER) from failure
    except (OSError, ValueError) as failure:  # ValueError: a name with a null byte
        raise UnreadableError(str(getattr(failure, "strerror", None) or failure).lower()) from failure


def read_stream(descriptor: int) -> str:
    """The text that a program pipes in, up to its end. Raises UnreadableError if it is too large or no text."""
    try:
        with open(descriptor, "rb", closefd=False) as file:
            return decode(file.read(MAX_BYTES + 1))
    except OSError as failure:
        raise UnreadableError(str(failure.strerror).lower()) from failure


_FOLDER: Final = "it is a folder"


def why_not_plain(mode: int) -> str | None:
    """Why nothing can be read from what has this mode; None for a plain file."""
    if stat.S_ISDIR(mode):
        return _FOLDER
    return None if stat.S_ISREG(mode) else "it is not a file with contents"


def decode(data: bytes) -> str:
    """The text that bytes are. Raises UnreadableError if they are too many, or no UTF-8 text."""
    if len(data) > MAX_BYTES:
        raise UnreadableError(f"it is larger than {MAX_BYTES // 1_000_000} MB, which no patch is")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as failure:
        raise UnreadableError("it is not a text in UTF-8") from failure
    if "\0" in text:
        raise UnreadableError("it is a binary file, not a text")
    return text
