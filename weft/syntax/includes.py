"""Reads a patch with everything it includes, as if it were one text."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from types import MappingProxyType
from typing import Final

from weft.errors import CLOSE_NAME, Diagnostic, Report, Source, Span, WeftError, closest, did_you_mean, steps_of
from weft.permissions import DEFAULT_PERMISSIONS, Permissions, Reach, real_path
from weft.syntax.ast import Include, Program, Statement, Use
from weft.syntax.decoder_files import DECODER_ENDING, DecoderFileError, decoder_text
from weft.syntax.parser import OUTPUT_STATEMENTS, parse
from weft.syntax.scanner import ENDING, UnreadableError, is_patch_name, read_stream, read_text

MAX_INCLUDES: Final = 64
"""The deepest nesting of includes."""


@dataclass
class Loaded:
    """A program with everything it includes, and the files it was read from (or looked for), in order."""

    program: Program
    files: tuple[str, ...]


@dataclass
class _Loader:
    report: Report
    statements: Collection[str]
    reach: Reach
    read: Callable[[str], str]
    parse: Callable[[Source, Report, Collection[str]], Program]
    seen: set[str] = field(default_factory=set)
    chain: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def with_included(self, program: Program, identity: str) -> list[Statement]:
        self.seen.add(identity)
        self.chain.append(identity)
        found: list[Statement] = []
        for statement in program.statements:
            match statement:
                case Include(path, path_span, _):
                    found += self._include(path, path_span)
                case Use(library, library_span, _):
                    found += self._use(library, library_span)
                case _:
                    found.append(statement)
        self.chain.pop()
        return found

    def _include(self, path: str, span: Span) -> list[Statement]:
        full = os.path.join(os.path.dirname(span.source.name), path)
        denial = self.reach.denial_of_file(full)
        # The links of what is denied may lead to another machine.
        identity = real_path(full) if denial is None else full
        if identity in self.chain:
            cycle = [*self.chain[self.chain.index(identity) :], identity]
            shown = steps_of([os.path.basename(p) for p in cycle])
            self.report.tell("include-cycle", f"files include each other in a circle: {shown}", span,
                             "what both need goes in a third file")  # fmt: skip
        elif identity in self.seen:
            pass
        elif not full.lower().endswith((ENDING, DECODER_ENDING)):
            # Do not read it: the errors would quote a file that is not a patch.
            hint = f"the name of a file to include ends in {ENDING}, or in {DECODER_ENDING} for a decoder of sounds"
            self.report.tell("include-not-a-patch", f'"{path}" is not a patch', span, hint)
        elif denial is not None:
            self.report.tell("not-allowed", f'"{path}" is not included: {denial.reason}', span, denial.hint)
        elif len(self.chain) > MAX_INCLUDES:
            message = f"files include each other more than {MAX_INCLUDES} deep here"
            self.report.tell("too-deep", message, span, "let one file include all the others")
        else:
            self.files.append(full)
            try:
                program = self.parse(Source(full, self._text_of(full)), self.report, self.statements)
            except DecoderFileError as failure:
                words = f'"{path}" is no decoder of sounds: {failure.reason}'
                self.report.tell("include-unreadable", words, span, failure.hint)
            except UnreadableError as failure:
                hint = "paths are relative to the file that includes"
                self.report.tell("include-unreadable", f'"{path}" cannot be read: {failure}', span, hint)
            else:
                return self.with_included(program, identity)
        return []

    def _text_of(self, path: str) -> str:
        """The text of a file, or of the spindle that a decoder is. Raises UnreadableError and DecoderFileError."""
        text, (name, ending) = self.read(path), os.path.splitext(os.path.basename(path))
        return decoder_text(name, text) if ending.lower() == DECODER_ENDING else text

    def _use(self, library: str, span: Span) -> list[Statement]:
        known = libraries()
        if library not in known:
            hint = did_you_mean(library, known) or (f"libraries: {', '.join(known)}" if known else None)
            self.report.tell("unknown-library", f'there is no library "{library}"', span, hint)
            return []
        identity = f"<{library}>"
        if identity in self.seen:
            return []
        program, diagnostics = _library(identity, known[library], tuple(self.statements))
        self.report.add(diagnostics)
        return self.with_included(program, identity)


# Libraries do not change while weft runs, so each is read and parsed once, and not again at every save.
@lru_cache(maxsize=32)
def _library(name: str, text: str, statements: tuple[str, ...]) -> tuple[Program, tuple[Diagnostic, ...]]:
    """The program of a library, and the errors in it."""
    report = Report()
    return parse(Source(name, text, library=True), report, statements), tuple(report.diagnostics)


@lru_cache(maxsize=1)
def libraries() -> Mapping[str, str]:
    """The texts of the libraries that ship with weft, by the name that `#use` takes."""
    folder = resources.files("weft").joinpath("std")
    if not folder.is_dir():
        return MappingProxyType({})
    files = sorted((f for f in folder.iterdir() if is_patch_name(f.name)), key=lambda f: f.name)
    texts = {f"std.{f.name.removesuffix(ENDING)}": f.read_text(encoding="utf-8") for f in files}
    return MappingProxyType(texts)


@lru_cache(maxsize=1)
def _library_spindles() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for library, text in libraries().items():
        for name in re.findall(r"^spindle ([a-zA-Z]\w*)", text, re.MULTILINE):
            found[name] = (*found.get(name, ()), library)
    return MappingProxyType(found)


def libraries_with(name: str) -> tuple[str, ...]:
    """The libraries that have a spindle of this name for all to call."""
    return _library_spindles().get(name, ())


def spindles_of(library: str) -> tuple[str, ...]:
    """The names of the spindles of a library."""
    return tuple(name for name, having in _library_spindles().items() if library in having)


# Lines that insert something, which block comments may extend; and the comment at the top of a text.
_USE = re.compile(r"^[ \t]*#(?:use|include)\b[^\n]*(?P<end>\n?)", re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)")
_HEAD = re.compile(r"\ufeff?(?:[ \t]*//(?!/).*\n)*")


def place_for_use(source: Source) -> Span:
    """The empty place in a text at which a line with `#use` is best inserted: below other such lines, or above one that
    ends the text; otherwise below the comment at its top."""
    text = _COMMENT.sub(lambda comment: " " * len(comment[0]), source.text)
    if uses := [*_USE.finditer(text)]:
        at = uses[-1].end() if uses[-1]["end"] else uses[-1].start()
    else:
        head = _HEAD.match(source.text)
        at = head.end() if head else 0
    return Span(source, at, at)


def load(
    source: Source, report: Report, statements: Collection[str] = OUTPUT_STATEMENTS,
    read: Callable[[str], str] = read_text,
    parse: Callable[[Source, Report, Collection[str]], Program] = parse, permissions: Permissions = DEFAULT_PERMISSIONS,
) -> Loaded:  # fmt: skip
    """The program of a text and of what it includes, each read by `parse`. Errors go to the report."""
    loader = _Loader(report, statements, permissions.reach(source.name), read, parse, files=[source.name])
    found = loader.with_included(parse(source, report, statements), real_path(source.name))
    return Loaded(Program(tuple(found)), tuple(loader.files))


# How a shell names a stream that is already open: `weft check <(…)`.
PIPED = "<stdin>"
"""The name of what is piped in."""

_STREAM = re.compile(r"/dev/(?:fd/(\d+)|stdin)")


def open_source(path: str) -> Source:
    """The source of a file, or of an open stream. Raises WeftError if it cannot be read."""
    stream = _STREAM.fullmatch(path)
    try:
        return Source(path, read_stream(int(stream[1] or 0)) if stream else read_text(path))
    except UnreadableError as failure:
        words = f"{path} cannot be read: {failure}"
        raise WeftError(Diagnostic.of("unreadable-file", words, hint=meant_by(path))) from failure


def meant_by(path: str) -> str | None:
    """What may have been meant by a path that is no file: a patch next to it with a similar name, or those in it."""
    folder, name = os.path.split(path)
    if os.path.isdir(path):
        return f"its patches are {os.path.join(path, '*' + ENDING)}" if _patches_in(path) else None
    if os.path.lexists(path):
        return None
    if folder and not os.path.isdir(folder):
        return f"there is no folder {folder}"
    stems = [each.removesuffix(ENDING) for each in _patches_in(folder or os.curdir)]
    # Of the name without its ending, which all have.
    close = name if name in stems else closest(os.path.splitext(name)[0], stems)
    return None if close is None else f'{CLOSE_NAME} "{os.path.join(folder, close + ENDING)}"?'


def _patches_in(folder: str) -> list[str]:
    """The names of the patches in a folder; none if it cannot be read."""
    try:
        return sorted(filter(is_patch_name, os.listdir(folder)))
    except OSError:
        return []


def stdin_source() -> Source:
    """The source of a text that is piped in. Raises WeftError if it cannot be read."""
    try:
        return Source(PIPED, read_stream(0))
    except UnreadableError as failure:
        message = f"the standard input cannot be read: {failure}"
        raise WeftError(Diagnostic.of("unreadable-file", message)) from failure
