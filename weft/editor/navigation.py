"""Where a name is bound, where it is mentioned, and its renaming, of which equal kernels are the proof."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from lsprotocol import types

from weft.codegen.bytecode import disassemble
from weft.codegen.kernel import content_hash
from weft.contexts import ContextTable
from weft.editor.documents import Documents
from weft.editor.occurrences import OWN_KINDS, Occurrence, Symbol
from weft.editor.outlines import link_of
from weft.editor.questions import RefusedRequestError
from weft.editor.read_texts import ReadText, TextReader
from weft.errors import Source, Span, WeftError
from weft.media.sampled import header_if_whole
from weft.names import RESERVED
from weft.ops import BUILTINS, CONSTANTS, STATE, WORDS
from weft.permissions import Permissions, real_path
from weft.runtime.compiling.stages import Request, build
from weft.sources import SOURCES
from weft.syntax.scanner import KEYWORDS

_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_TAKEN = frozenset({*BUILTINS, *STATE, *WORDS, *CONSTANTS})


_Meaning: TypeAlias = tuple[bool, Sequence[str], Sequence[str]]
"""Whether a text is a program; its kernels, or else its mistakes; and listings of the kernels."""


class Navigator:
    """Finds names in all open documents."""

    def __init__(
        self, documents: Documents, reader: TextReader, contexts: ContextTable, permissions: Permissions
    ) -> None:
        self._documents = documents
        self._reader = reader
        self._contexts = contexts
        self._permissions = permissions
        self._before: tuple[ReadText, _Meaning] | None = None
        """What the text that was last to be changed computes as it is."""

    def definition(self, uri: str, offset: int) -> list[types.Location]:
        """Where the name at a place is bound."""
        reading = self._reader.reading(uri)
        found = reading.occurrence(offset)
        if found is None:
            return []
        if found.symbol.kind in ("file", "library"):
            link = link_of(found.symbol, reading, self._documents)
            return [link] if link else []
        places = reading.names.definitions(found.symbol)
        if not places and found.symbol.kind == "output":
            # The outputs of `q = f()` are those of the spindle.
            places = reading.names.definitions(Symbol("strand", found.symbol.owner))
        return [self._documents.location(place) for place in places]

    def references(self, uri: str, offset: int, with_definition: bool) -> list[types.Location]:
        """Where the symbol at a place is mentioned, in the document, in what it includes, and in other open documents
        that have the same symbol."""
        reading = self._reader.reading(uri)
        found = reading.occurrence(offset)
        if found is None:
            return []
        places = self._mentions(reading, found.symbol)
        return [self._documents.location(each.span) for each in places if with_definition or not each.is_definition]

    def highlights(self, uri: str, offset: int) -> list[types.DocumentHighlight]:
        """The mentions in the document itself."""
        reading = self._reader.reading(uri)
        found = reading.occurrence(offset)
        return [
            types.DocumentHighlight(
                reading.positions.of(each.span),
                types.DocumentHighlightKind.Write if each.is_definition else types.DocumentHighlightKind.Read,
            )
            for each in reading.occurrences
            if found is not None and each.symbol == found.symbol
        ]

    def _mentions(self, reading: ReadText, symbol: Symbol) -> list[Occurrence]:
        found: dict[tuple[str, int], Occurrence] = {}
        for other in self._sharing(reading, symbol):
            for source in other.names.sources:
                for each in other.names.occurrences(source) if not source.library else ():
                    if each.symbol == symbol:
                        found[real_path(source.name), each.span.start] = each
        return list(found.values())

    def _sharing(self, reading: ReadText, symbol: Symbol) -> list[ReadText]:
        """The readings of documents in which a symbol is the same: those that bind it in the same text."""
        bound = {real_path(span.source.name) for span in reading.names.definitions(symbol)}
        others = [self._reader.reading(uri) for uri in self._documents.by_uri if uri != reading.document.uri]
        return [reading, *(
            each for each in others
            if bound & {real_path(span.source.name) for span in each.names.definitions(symbol)}
        )]  # fmt: skip

    # --- renaming ---

    def may_rename(self, uri: str, offset: int) -> types.Range:
        """The place of the name that would be renamed. Raises RefusedRequestError."""
        reading = self._reader.reading(uri)
        return reading.positions.of(self._renamed(reading, offset).span)

    def rename(self, uri: str, offset: int, name: str) -> types.WorkspaceEdit:
        """The edits that rename what is at a place. Raises RefusedRequestError, also if a patch would compute something
        else."""
        reading = self._reader.reading(uri)
        found = self._renamed(reading, offset)
        if not _NAME.fullmatch(name):
            raise RefusedRequestError("a name is an ASCII letter or _, and then letters, digits and _")
        if name in KEYWORDS or name in RESERVED:
            raise RefusedRequestError(f"{name} is a word of the language")
        places: dict[Source, list[Span]] = {}
        for each in self._mentions(reading, found.symbol):
            places.setdefault(each.span.source, []).append(each.span)

        def texts(name: str) -> Mapping[str, str]:
            return {real_path(source.name): _replaced(source, spans, name) for source, spans in places.items()}

        for other in self._sharing(reading, found.symbol):
            self._prove(other, texts, found.symbol.name, name)
        return types.WorkspaceEdit(changes={
            self._documents.uri_of(source): [types.TextEdit(self._documents.range(span), name) for span in spans]
            for source, spans in places.items()
        })  # fmt: skip

    def _renamed(self, reading: ReadText, offset: int) -> Occurrence:
        found = reading.occurrence(offset)
        if found is None or found.symbol.kind not in OWN_KINDS:
            raise RefusedRequestError("this is no name of the patch")
        bound = reading.names.definitions(found.symbol)
        if not bound:
            raise RefusedRequestError(f"{found.symbol.name} has no place at which it is bound")
        if any(place.source.library for place in bound):
            raise RefusedRequestError(f"{found.symbol.name} belongs to a library that comes with weft")
        return found

    def _prove(
        self, reading: ReadText, texts: Callable[[str], Mapping[str, str]], earlier: str, name: str
    ) -> None:
        """Raises RefusedRequestError if a patch would compute something else. The kernels of a patch with mistakes are
        not known, so its names may only become such that are nowhere yet. `texts` are those with another name."""
        source, refusal = reading.source, f"{earlier} cannot be called {name}"
        if self._before is None or self._before[0] is not reading:
            self._before = reading, self._meaning(source, {})
        is_program, before, shown = self._before[1]
        is_new = self._is_new(name, reading)
        if not is_program and not is_new:
            raise RefusedRequestError(f"{refusal}: that is a name already, and the patch has mistakes")
        is_still, now, listings = self._meaning(source, texts(name))
        is_same = is_still == is_program and now == before
        if is_still and is_program and not is_same and is_new:
            # Kernels name parameters, what they remember and what they read of each other, and their order depends on
            # names. A new word can take no other's place, so it is enough that all instructions are there.
            is_same = _instructions(listings, name, earlier) == _instructions(shown, name, earlier)
        if not is_same:
            raise RefusedRequestError(f"{refusal}: the patch would not be the same")

    @staticmethod
    def _is_new(name: str, reading: ReadText) -> bool:
        """Whether a word is nowhere in a patch, and means nothing in the language."""
        return name not in _TAKEN and name not in SOURCES and not any(
            re.search(rf"\b{name}\b", source.text) for source in reading.names.sources
        )

    def _meaning(self, source: Source, texts: Mapping[str, str]) -> _Meaning:
        """Whether a text is a program; its kernels, or else its mistakes; and listings of the kernels. Some `texts`, by
        the real paths of their files, stand for those that are there. Nothing is optimised: the order of what is added
        up, and so how it is rounded, would depend on names."""
        def read(path: str) -> str:
            known = texts.get(real_path(path))
            return self._documents.read(path) if known is None else known

        here = Source(source.name, texts.get(real_path(source.name), source.text))
        request = Request(
            here, self._contexts, probe=header_if_whole, permissions=self._permissions, read=read
        )
        try:
            made = build(request, optimise=False)
        except WeftError as failure:
            return False, [each.code for each in failure.diagnostics], []
        kernels = [kernel for unit in made.units for kernel in unit.kernels]
        return True, sorted(map(content_hash, kernels)), sorted(map(disassemble, kernels))


# What depends on the order of a kernel: the numbers of its lines and of its locals, and remarks. What depends on names:
# the hash of what leads a film, and those of locals, which are parts of the text.
_ORDER = re.compile(r"^\s*\d+\s+|(?<=_LOCAL)\s+\d+|\s*;.*|· stack \d+|(?<=\")[0-9a-f]{16}(?=\")")
_LOCAL = re.compile(r"^(\s*\d+\s+\w+\s+(?:float|bool|u32)\s+[\d,]+)\s.*")


def _instructions(listings: Iterable[str], name: str, earlier: str) -> Sequence[str]:
    """The lines of some kernels in the order of their words, with an earlier name in the place of one."""
    word = re.compile(rf"\b{name}\b")
    plain = (_LOCAL.sub(r"\1", line) for each in listings for line in each.splitlines())
    lines = (_ORDER.sub("", word.sub(earlier, line)) for line in plain)
    return sorted(" ".join(sorted(re.split(r"[\s,]+", line))) for line in lines)


def _replaced(source: Source, spans: Iterable[Span], name: str) -> str:
    """A text with another name at some places."""
    return "".join(_pieces(source.text, sorted(spans, key=lambda each: each.start), name))


def _pieces(text: str, spans: Sequence[Span], name: str) -> Iterator[str]:
    end = 0
    for span in spans:
        yield text[end : span.start]
        yield name
        end = span.end
    yield text[end:]
