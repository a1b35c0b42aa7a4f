"""The scanner: cuts a text into tokens in one pass and reports what is wrong with single characters and words."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from weft.errors import Report, Source, Span
from weft.syntax import hints, lookalikes
from weft.syntax.operators import BINARY
from weft.syntax.texts import MAX_CHARACTERS
from weft.syntax.tokens import (
    BECOMES, BINDS, BROKEN, GLUED, KEYWORDS, NAME, NUMBER, OPERATOR, PRAGMA, PRAGMA_END, TEXT, shorten
)

# Operators of other languages, and how they are written here.
FOREIGN: Final[Mapping[str, str]] = MappingProxyType(
    {"&&": "and", "||": "or", "&": "and", "|": "or", "!": "not", "**": "^", "!==": "!=", "=>": ">="}
)

# `-` and `<` are also a sign and a bracket, so they stand for themselves; what begins with `>` is cut into single
# characters, because the one that closes a list or a bundle is a token of its own whatever follows.
_SYMBOLS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{symbol: OPERATOR for symbol in BINARY if not symbol[0].isalpha() and symbol[0] != ">"},
        **{symbol: symbol for symbol in "-<()[]{},;:=@~."},
        **dict.fromkeys(("+=", "-=", "*=", "/="), BECOMES),
        "::": BINDS,
    }
)
_COMMENT_END: Final = "*/"


def _any_of(*symbols: str) -> str:
    """A pattern for any of the symbols, the longest first."""
    return "|".join(re.escape(s) for s in sorted(symbols, key=len, reverse=True))


_BLANK = " \\t\\r\\f\\v\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_DIGITS = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_QUOTES = lookalikes.QUOTES
# Each named group is a method of `_Scanner`.
_TOKEN = re.compile(
    rf"""[{_BLANK}]*(?:
    (?P<word>[^\W\d]\w*)
    |(?P<newline>\n)
    |(?P<number>{_DIGITS})(?!\w)
    |(?P<glued_number>{_DIGITS}\w+)
    |(?P<doc_comment>///(?!/)[^\n]*)
    |(?P<comment>//[^\n]*|/\*[\s\S]*?(?:\*/|\Z))
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<open_string>"[^\n]*)
    |(?P<symbol>{_any_of(*_SYMBOLS, *FOREIGN, _COMMENT_END)})
    |(?P<greater>>)
    |(?P<pragma>\#\w*)
    |(?P<misquoted>[{_QUOTES}][^\n"{_QUOTES}]*["{_QUOTES}])
    |(?P<other>\S)
    |(?P<end>\Z)
    )""",
    re.VERBOSE,
)
_NUMBER = re.compile(_DIGITS)
# A hint does not repeat more text than this.
_LONGEST_HINT: Final = 60
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES: Final = {'"': '"', "\\": "\\", "n": "\n", "t": "\t"}
_COLOUR = re.compile(r"#(?:[0-9a-fA-F]{3}){1,2}")
_UNKNOWN: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "?": ("there is no `?` in weft", hints.CHOICE),
        "\\": ("a backslash stands only in strings", "statements go on over the line end by themselves"),
        "'": ("this quote is not closed", 'a string stands in straight double quotes: "hello"'),
    }
)
_NOT_TEXT = re.compile("[\0-\x08\x0e-\x1f\x7f\ufffd\ud800-\udfff]")


def text_value(literal: str) -> str:
    """The characters that a string literal stands for."""
    return _ESCAPE.sub(lambda m: _ESCAPES.get(m[1], m[0]), literal[1:-1])


@dataclass
class Scan:
    """What the scanner found. The lists run in parallel, one entry a token, the rest is keyed by offset; `Tokens`
    says what each holds."""

    source: Source
    kinds: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    fresh: list[bool] = field(default_factory=list)
    broken: set[int] = field(default_factory=set)
    repairs: dict[int, str] = field(default_factory=dict)
    docs: dict[int, str] = field(default_factory=dict)

    def text(self, index: int) -> str:
        return self.source.text[self.starts[index] : self.ends[index]]


def scan(source: Source, report: Report) -> Scan | None:
    """The tokens of a text; None, with an error reported, if it is no text or too long."""
    length = len(source.text)
    if length > MAX_CHARACTERS:
        message = f"this file has {length:,} characters; weft reads at most {MAX_CHARACTERS:,}"
        hint = "move parts of it into files of their own and #include them"
        report.error("too-long", message, Span(source, 0, 0), hint)
        return None
    if found := _NOT_TEXT.search(source.text):
        _report_not_text(Span(source, found.start(), found.end()), report)
        return None
    return _Scanner(source, report).run()


def _report_not_text(place: Span, report: Report) -> None:
    if place.text == "\ufffd":
        report.error("not-text", "this file is not UTF-8 text", place, "save it as UTF-8")
    else:
        character = lookalikes.describe(place.text)
        report.error("not-text", f"this is not a text file: it holds the character {character}", place)


class _Scanner:
    """One run over one text, with a method for each group of the pattern."""

    def __init__(self, source: Source, report: Report) -> None:
        self._found = Scan(source)
        self._text = source.text
        self._report = report
        self._is_fresh = True
        self._in_pragma = False
        self._doc: list[str] = []
        self._lines_since_doc = 0
        self._open_string_end = len(source.text)

    def run(self) -> Scan:
        actions = {group: getattr(self, f"_{group}") for group in _TOKEN.groupindex}
        for match in _TOKEN.finditer(self._text):
            group = str(match.lastgroup)
            actions[group](*match.span(group))
        return self._found

    def _add(self, kind: str, start: int, end: int, is_broken: bool = False) -> None:
        found = self._found
        if self._doc:
            found.docs[start] = "\n".join(self._doc)
            self._doc.clear()
        if is_broken:
            found.broken.add(start)
        found.kinds.append(kind)
        found.starts.append(start)
        found.ends.append(end)
        found.fresh.append(self._is_fresh)
        self._is_fresh = False

    def _error(self, code: str, message: str, start: int, end: int, hint: str | None = None) -> None:
        self._report.error(code, message, Span(self._found.source, start, end), hint)

    # --- lines and comments ---

    def _newline(self, start: int, end: int) -> None:
        self._end(start, end)
        self._is_fresh = True
        self._lines_since_doc += 1
        if self._lines_since_doc > 1:
            self._doc.clear()

    def _end(self, start: int, end: int) -> None:
        if self._in_pragma:
            self._add(PRAGMA_END, self._found.ends[-1], self._found.ends[-1])
            self._in_pragma = False

    def _doc_comment(self, start: int, end: int) -> None:
        if self._is_fresh:
            self._doc.append(self._text[start + 3 : end].strip())
            self._lines_since_doc = 0

    def _comment(self, start: int, end: int) -> None:
        comment = self._text[start:end]
        if comment.startswith("/*") and (len(comment) < 4 or not comment.endswith(_COMMENT_END)):
            self._error("unclosed-comment", "this comment never ends", start, start + 2, "end it with */")
        if "\n" in comment:
            self._newline(start, end)

    # --- words and literals ---

    def _word(self, start: int, end: int) -> None:
        word = self._text[start:end]
        if not word.isascii():
            self._report_letter(word, start)
            self._add(NAME, start, end, is_broken=True)
        elif word in KEYWORDS and self._found.kinds[-1:] != ["@"]:
            self._add(KEYWORDS[word], start, end)
        else:
            self._add(NAME, start, end)

    def _report_letter(self, word: str, start: int) -> None:
        place = start + next(i for i, c in enumerate(word) if not c.isascii())
        message = f"`{self._text[place]}` cannot stand in a name; names take a to z, A to Z, 0 to 9 and _"
        instead = lookalikes.meant(word)
        self._error("unknown-letter", message, place, place + 1, f"write {instead}" if instead else None)

    def _number(self, start: int, end: int) -> None:
        is_too_large = math.isinf(float(self._text[start:end]))
        if is_too_large:
            self._error("number-overflow", "this number is too large; the largest is 1.79e308", start, end)
        self._add(NUMBER, start, end, is_too_large)

    def _glued_number(self, start: int, end: int) -> None:
        whole = self._text[start:end]
        match = _NUMBER.match(whole)
        number = match[0] if match else whole
        rest = whole[len(number) :]
        hint = None
        if rest.replace("_", "").isdecimal():
            hint = f"write {number}{rest.replace('_', '')}"
        elif not number.startswith("0"):
            hint = f"a product is written {number} * {lookalikes.meant(rest) or rest}"
        message = f"the number {shorten(number)} runs into `{shorten(rest)}`"
        self._error("glued-number", message, start, end, hint if end - start < _LONGEST_HINT else None)
        self._found.repairs[start] = number
        self._add(NUMBER, start, end, is_broken=True)

    def _string(self, start: int, end: int) -> None:
        is_broken = False
        for escape in _ESCAPE.finditer(self._text, start, end):
            if escape[1] not in _ESCAPES:
                is_broken = True
                hint = r"a backslash itself is written \\ (in paths, / works everywhere)"
                self._error("bad-escape", f"`{escape[0]}` means nothing in a string", *escape.span(), hint)
        self._add(TEXT, start, end, is_broken)

    def _open_string(self, start: int, end: int) -> None:
        is_rest = self._text.count("\n", self._open_string_end, start) == 1
        self._open_string_end = end
        self._add(TEXT, start, end, is_broken=True)
        if is_rest:
            return  # of a string that goes over two lines: the first line has the error
        text = self._text[start:end].rstrip()
        curly = next((c for c in text[1:] if c in _QUOTES and not c.isascii()), None)
        hint = f'{curly} does not close a string: type a straight "' if curly else 'close it with " on the same line'
        self._error("unclosed-string", "this string never ends", start, start + len(text), hint)

    def _misquoted(self, start: int, end: int) -> None:
        hint = f'write "{self._text[start + 1 : end - 1]}"' if end - start < _LONGEST_HINT else None
        self._error("wrong-quotes", "a string stands in straight double quotes", start, end, hint)
        self._add(TEXT, start, end, is_broken=True)

    # --- symbols ---

    def _symbol(self, start: int, end: int) -> None:
        symbol = self._text[start:end]
        if symbol == ":":
            self._turn_label_into_name()
        if kind := _SYMBOLS.get(symbol):
            self._add(kind, start, end)
        elif symbol == _COMMENT_END:
            self._error("stray-comment-end", "no comment is open here", start, end, "comments do not nest")
            self._add(BROKEN, start, end, is_broken=True)
        else:
            meant = FOREIGN[symbol]
            self._error("foreign-operator", f"`{symbol}` is written `{meant}` in weft", start, end)
            self._repair(meant, start, end)

    def _turn_label_into_name(self) -> None:
        found = self._found
        if found.kinds and self._text[found.starts[-1] : found.ends[-1]] in KEYWORDS:
            found.kinds[-1] = NAME

    def _greater(self, start: int, end: int) -> None:
        self._add(GLUED if self._text.startswith((">", "="), end) else ">", start, end)

    def _pragma(self, start: int, end: int) -> None:
        if self._is_fresh:
            self._add(PRAGMA, start, end)
            self._in_pragma = True
            return
        word = self._text[start:end]
        if _COLOUR.fullmatch(word):
            hint = f'write "{word}"' if self._in_pragma else f'a colour is a parameter: #color c<r, g, b> = "{word}"'
            self._error("bare-colour", "a colour stands in double quotes", start, end, hint)
        else:
            hint = f"put {shorten(word)} on a line of its own"
            self._error("misplaced-pragma", "a `#` stands only at the start of a line", start, end, hint)
        self._add(BROKEN, start, end, is_broken=True)

    def _other(self, start: int, end: int) -> None:
        found = self._found
        character = self._text[start:end]
        meant = None if character.isascii() else lookalikes.meant(character)
        if meant:
            message = f"{lookalikes.describe(character)} is not in weft's alphabet"
            self._error("typographic-character", message, start, end, f"type {meant}")
            self._repair(meant, start, end)
            return
        if not (found.kinds[-1:] == [BROKEN] and found.ends[-1] == start):
            message, hint = _UNKNOWN.get(character, (f"{lookalikes.describe(character)} means nothing here", None))
            self._error("unknown-character", message, start, end, hint)
        self._add(BROKEN, start, end, is_broken=True)

    def _repair(self, meant: str, start: int, end: int) -> None:
        """Goes on as if `meant` stood here, so that nothing else is said about this place."""
        kind = _SYMBOLS.get(meant) or KEYWORDS.get(meant)
        if kind is None:
            kind = ">" if meant == ">" else OPERATOR if meant in BINARY else BROKEN
        self._found.repairs[start] = meant
        self._add(kind, start, end, is_broken=True)
