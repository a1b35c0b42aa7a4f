"""The texts that an editor holds open. What reads a file gets the text in the editor, saved or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path

from lsprotocol import types
from pygls.uris import from_fs_path, to_fs_path

from weft.editor.positions import TextPositions
from weft.errors import Source, Span
from weft.permissions import real_path
from weft.syntax.includes import libraries
from weft.syntax.scanner import ENDING, read_text


def path_of_uri(uri: str) -> str:
    """The path of a file, or the address itself if it is no file's."""
    path: str | None = to_fs_path(uri) if uri.startswith("file:") else None
    return path or uri


def uri_of_path(path: str) -> str:
    """The address of a file; a path that is an address already stays as it is."""
    # One letter before the colon is a drive of Windows.
    is_address = len(path.partition("/")[0].rpartition(":")[0]) > 1
    found: str | None = None if is_address else from_fs_path(str(Path(path).absolute()))
    return found or path


@dataclass(frozen=True)
class Document:
    """A text that is open in the editor; `uri` is what the editor calls it."""

    uri: str
    text: str
    version: int | None = None

    @cached_property
    def path(self) -> str:
        return path_of_uri(self.uri)

    @cached_property
    def identity(self) -> str:
        """Equal for two names of one file."""
        return real_path(self.path)

    @cached_property
    def source(self) -> Source:
        return Source(self.path, self.text)


@dataclass
class Documents:
    """All open documents, by what the editor calls them, and places in texts as the editor counts them."""

    encoding: str = types.PositionEncodingKind.Utf16
    by_uri: dict[str, Document] = field(default_factory=dict)
    _positions: dict[int, tuple[str, TextPositions]] = field(default_factory=dict)

    def update(self, changed: Mapping[str, Document | None]) -> None:
        """Takes over documents that were opened or changed, and drops those that are None."""
        for uri, document in changed.items():
            if document is None:
                self.by_uri.pop(uri, None)
            else:
                self.by_uri[uri] = document
        self._positions.clear()

    def read(self, path: str) -> str:
        """The text of a file. Raises UnreadableError."""
        identity = real_path(path)
        for document in self.by_uri.values():
            if document.identity == identity:
                return document.text
        return read_text(path)

    def uri_of(self, source: Source) -> str:
        """What the editor calls the file of a text. That of a library is where it is installed."""
        if source.library and (uri := self.library_uri(source.name.strip("<>"))) is not None:
            return uri
        identity = real_path(source.name)
        known = (uri for uri, each in self.by_uri.items() if each.path == source.name or each.identity == identity)
        return next(known, None) or uri_of_path(source.name)

    @staticmethod
    def library_uri(library: str) -> str | None:
        """The address of the file of a library that ships with weft; None if there is none of this name."""
        if library not in libraries():
            return None
        return uri_of_path(str(resources.files("weft").joinpath("std", library.removeprefix("std.") + ENDING)))

    def positions(self, text: str) -> TextPositions:
        """The places of a text."""
        known = self._positions.get(id(text))
        if known is None or known[0] is not text:
            known = self._positions[id(text)] = text, TextPositions(text, self.encoding)
        return known[1]

    def range(self, span: Span) -> types.Range:
        """The range of a place in its text."""
        return self.positions(span.source.text).of(span)

    def location(self, span: Span) -> types.Location:
        """A place, with its file."""
        return types.Location(self.uri_of(span.source), self.range(span))
