"""What a patch may open: files below its folder, and further ones that the performer has allowed.

A patch may come from anyone. A link counts as its target, since an archive or a repository can contain links.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from weft.platform import system

NETWORK: Final = "net"
"""The word by which streams of the network are allowed; all others are folders."""


class Denial(NamedTuple):
    """The reason why something may not be opened, and what the performer can type."""

    reason: str
    hint: str


def real_path(path: str | os.PathLike[str]) -> str:
    """The absolute path without links. If a link changes while it is resolved, the plain absolute path; if the current
    folder has been deleted, the path itself."""
    for absolute in (os.path.realpath, os.path.abspath):
        try:
            return absolute(path)
        except OSError:
            pass
    return os.path.normpath(path)


@dataclass(frozen=True, slots=True)
class Permissions:
    """What the performer allows to all patches in addition to the files below their folders: further folders, by their
    absolute paths without links, and streams of the network."""

    folders: tuple[str, ...] = ()
    network: bool = False

    @classmethod
    def of(cls, words: Iterable[str]) -> Permissions:
        """The permissions in these words: `net`, and the paths of folders."""
        given = tuple(dict.fromkeys(words))
        return cls(tuple(real_path(word) for word in given if word != NETWORK), NETWORK in given)

    def reach(self, patch: str) -> Reach:
        """What the patch in a file of this name may open."""
        return Reach((real_path(os.path.dirname(patch) or os.curdir), *self.folders), self.network)


DEFAULT_PERMISSIONS: Final = Permissions()
"""The permissions if the performer has allowed nothing."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What one patch may open: everything below some folders, the first of which is its own, and perhaps streams."""

    folders: tuple[str, ...]
    network: bool

    @property
    def own(self) -> str:
        """The folder of the patch."""
        return self.folders[0]

    def denial_of_file(self, path: str) -> Denial | None:
        """The reason why a file may not be opened; None if it may. Whether it exists does not matter."""
        plain = os.path.normpath(path)
        if _is_elsewhere(plain, self.folders):
            return Denial("it is on another machine", _allowing(os.path.dirname(plain)))
        try:
            real = real_path(path)
        except ValueError:  # a null byte
            return None  # there is no such file
        if any(_is_below(real, folder) for folder in self.folders):
            return None
        words = "it is outside the folder of the patch, or a link leads there"
        return Denial(words, _allowing(os.path.dirname(real)))

    def denial_of_stream(self) -> Denial | None:
        """The reason why a stream of the network may not be opened; None if it may."""
        return None if self.network else Denial("it would connect to the network", _allowing(NETWORK))


def _is_elsewhere(path: str, folders: Iterable[str]) -> bool:
    r"""Whether a path of Windows leads to another machine or a device (`\\machine\share`), but no folder does.
    Resolving its links would already connect to that machine, and say to it who the player is."""
    drive = os.path.splitdrive(path)[0].lower()
    return drive.startswith("\\\\") and all(os.path.splitdrive(folder)[0].lower() != drive for folder in folders)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder if folder.endswith(os.sep) else folder + os.sep)


def _allowing(what: str) -> str:
    return f"if you trust this patch, add --allow {system.quoted(what)} to the command"
