"""The symbols of all texts that an editor works with: those that are open, and the patches in its folders."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from lsprotocol import types

from weft.contexts import ContextTable
from weft.editor.documents import Documents, uri_of_path
from weft.editor.outlines import headline
from weft.editor.positions import TextPositions
from weft.errors import Report, Source
from weft.permissions import real_path
from weft.recently_used import RecentlyUsed
from weft.syntax.ast import Binding, CallBinding, Parameter, Program, SpindleDefinition
from weft.syntax.parser import parse
from weft.syntax.scanner import ENDING, UnreadableError, read_text

# The most files that are read, the largest one in bytes, and the most symbols of an answer.
_MOST_FILES, _LARGEST, _MOST = 500, 1 << 18, 256

_Symbols = tuple[types.WorkspaceSymbol, ...]


class WorkspaceSymbols:
    """Finds symbols by a part of their names. A text that is the same as before is not read again."""

    def __init__(self, documents: Documents, contexts: ContextTable) -> None:
        self._documents = documents
        self._contexts = contexts
        self._known: RecentlyUsed[tuple[str, object], _Symbols] = RecentlyUsed(_MOST_FILES)

    def found(self, query: str, folders: Sequence[str]) -> list[types.WorkspaceSymbol]:
        """The symbols whose names have all letters of a query, in their order; names that begin with it come first."""
        wanted = query.casefold()
        every = [each for symbols in self._all(folders) for each in symbols if _has(each.name.casefold(), wanted)]
        every.sort(key=lambda each: (not each.name.casefold().startswith(wanted), len(each.name)))
        return every[:_MOST]

    def _all(self, folders: Sequence[str]) -> Iterator[_Symbols]:
        open_files = set()
        for uri, document in self._documents.by_uri.items():
            open_files.add(document.identity)
            yield self._of(uri, document.source, hash(document.text))
        for path in _patches_in(folders):
            if real_path(path) not in open_files:
                yield from self._in_file(path)

    def _in_file(self, path: str) -> Iterator[_Symbols]:
        try:
            found = os.stat(path)
            stamp = found.st_mtime_ns, found.st_size
            if (known := self._known.find((path, stamp))) is not None:
                yield known
            elif found.st_size <= _LARGEST:
                yield self._of(uri_of_path(path), Source(path, read_text(path)), stamp, path)
        except (OSError, UnreadableError):
            return

    def _of(self, uri: str, source: Source, stamp: object, path: str = "") -> _Symbols:
        def made() -> _Symbols:
            program = parse(source, Report(), self._contexts.statements)
            return tuple(_symbols(uri, source, program, self._documents.encoding))

        return self._known.get_or_make((path or uri, stamp), made)


def _symbols(uri: str, source: Source, program: Program, encoding: str) -> Iterator[types.WorkspaceSymbol]:
    """What a text defines."""
    positions = TextPositions(source.text, encoding)
    for statement in program.statements:
        if isinstance(statement, (Binding, CallBinding, Parameter, SpindleDefinition)):
            name, kind, place, _ = headline(statement)
            location, file = types.Location(uri, positions.of(place)), Path(source.name).name
            yield types.WorkspaceSymbol(location, name, kind, container_name=file)


def _has(name: str, wanted: str) -> bool:
    letters = iter(name)
    return all(letter in letters for letter in wanted)


def _patches_in(folders: Sequence[str]) -> Iterator[str]:
    """The patches in folders and those below, without what is hidden."""
    left = _MOST_FILES
    for folder in folders:
        for here, below, names in os.walk(folder):
            below[:] = sorted(name for name in below if not name.startswith(".") and name != "node_modules")
            for name in sorted(names):
                if name.endswith(ENDING):
                    yield os.path.join(here, name)
                    left -= 1
                    if not left:
                        return
