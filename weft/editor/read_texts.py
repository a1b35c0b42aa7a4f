"""A document as it is read: its tokens, its statements with all that they include, and the names in it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from weft.contexts import ContextTable
from weft.editor.documents import Document, Documents
from weft.editor.occurrences import NamesOfProgram, Occurrence, Surroundings
from weft.editor.positions import TextPositions
from weft.errors import Report, Source
from weft.permissions import Permissions
from weft.recently_used import RecentlyUsed
from weft.syntax.ast import Include, Program, Use
from weft.syntax.includes import load
from weft.syntax.parser import parse
from weft.syntax.scanner import Tokens, scan

# Texts that are included, and are the same as before, are not parsed again.
_MOST_PARSED = 64


@dataclass(frozen=True)
class ReadText:
    """One text of a document. Mistakes are left out: what can be read of it is there."""

    document: Document
    positions: TextPositions
    own: Program
    """Its own statements."""
    names: NamesOfProgram
    """Those of all its statements, with what they include."""
    earlier: Source | None = None
    """The text of which the statements and names are, if they are those of an earlier one."""

    @property
    def source(self) -> Source:
        return self.document.source

    def around(self, offset: int) -> Surroundings:
        """The names that are known at a place, without variables."""
        return self.names.around(self.earlier or self.source, self.earlier_offset(offset))

    def earlier_offset(self, offset: int) -> int:
        """Where a place is in the text of which the statements are. In what was edited since, it is the beginning of
        that."""
        if self.earlier is None:
            return offset
        old, new, same = self.earlier.text, self.source.text, self._same
        if offset <= same:
            return offset
        if old.endswith(new[offset:]):
            return max(same, len(old) - (len(new) - offset))
        return same

    @cached_property
    def _same(self) -> int:
        """The length of the beginning that it has in common with the text of which the statements are."""
        return _in_common(self.source.text, (self.earlier or self.source).text)

    @cached_property
    def tokens(self) -> Tokens | None:
        """None if it is not a text."""
        return scan(self.source, Report())

    def tokens_around(self, offset: int) -> Tokens | None:
        """The tokens from the statement before a place, if that is known, to the end of its line; None if it is not a
        text."""
        if "tokens" in vars(self):
            return self.tokens
        text, before = self.source.text, offset if self.earlier is None else min(offset, self._same)
        starts = [each.span.start for each in self.own.statements if each.span.start <= before]
        end = text.find("\n", offset)
        return scan(self.source, Report(), (max(starts, default=0), len(text) if end < 0 else end))

    @cached_property
    def occurrences(self) -> list[Occurrence]:
        """All names in it."""
        including = [each for each in self.own.statements if isinstance(each, (Include, Use))]
        found = [each for statement in including for each in self.names.in_statement(statement)]
        return sorted([*found, *self.names.occurrences(self.source)], key=lambda each: each.span.start)

    def occurrence(self, offset: int) -> Occurrence | None:
        """The name at a place, or directly before it."""
        found = [each for each in self.occurrences if each.span.start <= offset <= each.span.end]
        return max(found, key=lambda each: (offset < each.span.end, each.span.start), default=None)


def _in_common(one: str, other: str) -> int:
    """The length of the beginning that two texts have in common, by halves: parts are compared all at once."""
    same, most = 0, min(len(one), len(other))
    while same < most:
        middle = (same + most + 1) // 2
        if one[same:middle] == other[same:middle]:
            same = middle
        else:
            most = middle - 1
    return same


class TextReader:
    """Reads documents, each text once."""

    def __init__(self, documents: Documents, contexts: ContextTable, permissions: Permissions) -> None:
        self._documents = documents
        self._contexts = contexts
        self._permissions = permissions
        self._read: dict[str, tuple[object, ReadText]] = {}
        self._parsed: RecentlyUsed[tuple[str, str], tuple[Source, Program]] = RecentlyUsed(_MOST_PARSED)

    def recent(self, uri: str) -> ReadText:
        """A document as it is now; its statements and names may be those of the text before, which saves time while one
        types."""
        document = self._documents.by_uri[uri]
        known = self._read.get(uri)
        if known is None or known[1].document is document:
            return self.reading(uri)
        positions, before = self._documents.positions(document.text), known[1]
        return ReadText(document, positions, before.own, before.names, before.source)

    def prepare(self) -> None:
        """Reads the documents that have changed, for what will be asked about them."""
        for uri, document in self._documents.by_uri.items():
            if uri in self._read and self._read[uri][1].document is not document:
                self.reading(uri)

    def reading(self, uri: str) -> ReadText:
        """A document as it is now, with the texts that it includes as they are now."""
        document = self._documents.by_uri[uri]
        texts = tuple(each.text for each in self._documents.by_uri.values()) if "#include" in document.text else ()
        known = self._read.get(uri)
        # What is on the disk may change at any time, so a text with includes is put together each time.
        if known is not None and known[1].document is document and not texts:
            return known[1]
        own: list[Program] = []

        def parsed(source: Source, _report: Report, statements: Collection[str]) -> Program:
            program = self._program(source, statements, source is document.source)
            own.append(program)
            return program

        loaded = load(
            document.source, Report(), self._contexts.statements, self._documents.read, parsed, self._permissions
        )
        positions = self._documents.positions(document.text)
        found = ReadText(document, positions, own[0], NamesOfProgram(loaded.program))
        self._read[uri] = texts, found
        return found

    def _program(self, source: Source, statements: Collection[str], is_own: bool) -> Program:
        """The statements of a text. Those of an included text are those of an equal one that was parsed before."""
        known = self._parsed.find((source.name, source.text))
        if known is not None and (known[0] is source or not is_own):
            return known[1]
        program = parse(source, Report(), statements)
        self._parsed.keep((source.name, source.text), (source, program))
        return program
