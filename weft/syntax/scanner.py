"""The scanner: reads the text of a patch, cuts it into tokens, and reports characters and words that are not part of
the language.

The tokens of a text are one string of kinds, one character a token. The grammar is written over that string: white
space, comments, keywords and the spelling of numbers are settled before it is consulted, and one regular expression
can take a whole run of tokens.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_left
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from weft.codes.rows import InternalError
from weft.disk import read_plain
from weft.errors import LONGEST_QUOTE, Report, Source, Span
from weft.ops import BINARY

# Hints that several messages share: how constructs are written.
BUNDLE_FORM: Final = "several values go in a bundle: <a, b>"
COMMENT_FORM: Final = "a comment is written: // …"
CHOICE_FORM: Final = "a choice is written: if condition then a else b"
LOOP_FORM: Final = "a loop is written: for i in (0 to 7) { … }"
REMAP_FORM: Final = "img@r(me@x ~ me@x + 0.1)"
SETTING_FORM: Final = "a setting is written: me<bpm> = 120"
SPINDLE_FORM: Final = "a spindle is written: spindle name(a, b) :: <out> { … }"
STATEMENT_FORM: Final = "a statement starts with a name, as in a = … or display(…)"
USE_FORM: Final = "give it a name (a = …) or output it (display(…))"

LONGEST_HINT: Final = 60
"""The most characters of a text that a hint repeats."""

# --- reading files ---

ENDING: Final = ".weft"
"""The ending of the name of a patch."""

MAX_CHARACTERS: Final = 250_000
# A character takes at most four bytes in UTF-8.
MAX_BYTES: Final = 4 * MAX_CHARACTERS


class UnreadableError(InternalError):
    """A file that cannot be read as a patch. The message is the reason, to be shown after its name."""


def read_text(path: str) -> str:
    """The text of a patch. Raises UnreadableError if the file is missing, too large, not a plain file or not text."""
    try:
        return decode(read_plain(path, MAX_BYTES + 1))
    except (FileNotFoundError, NotADirectoryError) as failure:
        raise UnreadableError("there is no such file") from failure
    except OSError as failure:
        raise UnreadableError(str(failure.strerror).lower()) from failure


def read_stream(descriptor: int) -> str:
    """The text that a program pipes in, up to its end. Raises UnreadableError if it is too large or not text."""
    try:
        with open(descriptor, "rb", closefd=False) as file:
            return decode(file.read(MAX_BYTES + 1))
    except OSError as failure:
        raise UnreadableError(str(failure.strerror).lower()) from failure


def is_patch_name(name: str) -> bool:
    """Whether a file in a folder is a patch or a library, by its name. Hidden files are not. Among them are those
    (`._a.weft`) in which a Mac keeps data for which other file systems have no room."""
    return name.endswith(ENDING) and not name.startswith(".")


def decode(data: bytes) -> str:
    """The text in `data`. Raises UnreadableError if it is too long, or not UTF-8 text."""
    if len(data) > MAX_BYTES:
        raise UnreadableError(f"it is larger than {MAX_BYTES // 1_000_000} MB, which no patch is")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as failure:
        raise UnreadableError(_why_not_utf_8(data)) from failure
    if "\0" in text:
        raise UnreadableError(_BINARY)
    if text.startswith("{\\rtf"):
        raise UnreadableError("it is a text with layout (RTF): save it as plain text")
    return text


_BINARY = "it is a binary file, not a text"


def _why_not_utf_8(data: bytes) -> str:
    # As PowerShell writes it with >, and as editors do that call it Unicode.
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return "it is a text in UTF-16: save it as UTF-8"
    return _BINARY if b"\0" in data else "it is not a text in UTF-8: save it as UTF-8"


# --- lookalikes: the characters that a chat or a word processor makes of those on a keyboard ---

# The characters that people mistake for the straight double quote.
QUOTES: Final = "'`´“”„‟«»‘’‚‛"

_MEANT: Final[Mapping[str, str]] = {
    **dict.fromkeys("−–—‐‑", "-"),
    **dict.fromkeys("×⋅·∙•∗✕", "*"),
    **dict.fromkeys("÷∕⁄", "/"),
    **dict.fromkeys("⟨‹〈", "<"),
    **dict.fromkeys("⟩›〉", ">"),
    "≤": "<=", "≥": ">=", "≠": "!=", "∧": "and", "∨": "or", "¬": "not", "ˆ": "^", "∼": "~", "˜": "~",
    "π": "pi", "τ": "tau", "²": "^2", "³": "^3",
}  # fmt: skip


def lookalike_of(text: str) -> str | None:
    """The text to type instead, in ASCII; None if that is not clear."""
    letters = [c if c.isascii() else _MEANT.get(c) or _plain(c) for c in text]
    return "".join(letters) if all(letters) else None


def _plain(character: str) -> str:
    """The character without accents, width and style, if that is ASCII."""
    decomposed = unicodedata.normalize("NFKD", character)
    letters = "".join(c for c in decomposed if not unicodedata.combining(c))
    return letters if len(letters) == 1 and letters.isascii() and letters.isprintable() else ""


def describe_character(character: str) -> str:
    """The character itself if it can be seen, and its number."""
    number = f"U+{ord(character):04X}"
    is_visible = character.isprintable() and not character.isspace()
    if not is_visible:
        return number
    return f"`{character}`" if character.isascii() else f"`{character}` ({number})"


# --- operators; their precedence and grouping are in the table of `weft.ops` ---

# Three levels have rules of their own: `if` and `|>` are not in the table of operators, and comparisons do not chain.
IF_LEVEL = 0
PIPE_LEVEL = 1
COMPARISON_LEVEL = 5

# --- tokens ---

# The kinds. Punctuation that is not listed represents itself: ( ) [ ] { } , ; : = < > - @ ~ and the dot.
NAME: Final = "n"
NUMBER: Final = "0"
TEXT: Final = "s"
OPERATOR: Final = "o"  # a binary operator, except those that have further meanings: - < >
GLUED: Final = "g"  # a > directly before a > or =; only the grammar can tell whether they are one operator
BECOMES: Final = "a"  # += -= *= /=
BINDS: Final = "d"  # ::
PIPE: Final = "|"  # |>
PRAGMA: Final = "P"  # # and the word after it
PRAGMA_END: Final = "p"
BROKEN: Final = "x"  # matches no rule; it has been reported
END: Final = "Z"

KEYWORDS: Final[Mapping[str, str]] = {
    "spindle": "S", "if": "I", "then": "T", "else": "E", "or": OPERATOR, "and": OPERATOR, "not": "N",
    "for": "F", "in": "i", "to": "t", "out": "O", "let": "L", "me": "M",
}  # fmt: skip

OPENING: Final[Mapping[str, str]] = {")": "(", "]": "[", "}": "{"}
CALL: Final = re.compile(r"n(?:@n)?\(")

# The last tokens of operands. A > may also be an operator; `diagnose` knows which.
OPERAND_ENDS: Final = "n0s)]"


def shorten(text: str) -> str:
    """The text, short enough for a message."""
    return text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1] + "…"


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of one text, the last of which is `END`. A statement boundary that follows from the layout is a `;` of
    no width."""

    source: Source
    kinds: str
    starts: Sequence[int]
    ends: Sequence[int]
    fresh: Sequence[bool]
    """Whether a token is the first on its line."""
    broken: Sequence[int]
    """The tokens for which an error was reported, in order."""
    repairs: Mapping[int, str]
    """The operator that a mistyped one is read as, by its offset."""
    docs: Mapping[int, str]
    """Doc texts, by the offset of the token below them."""
    partners: Mapping[int, int] = field(default_factory=dict)
    """The closing bracket of each opening one that has one; angle brackets are left out."""
    depth: int = 0
    """The deepest nesting."""

    def text(self, index: int) -> str:
        start = self.starts[index]
        if start in self.repairs:
            return self.repairs[start]
        return self.source.text[start : self.ends[index]]

    def span(self, first: int, last: int | None = None) -> Span:
        """The span of a token, or of all from `first` to `last`."""
        return Span(self.source, self.starts[first], self.ends[first if last is None else last])

    def part(self, first: int, stop: int) -> Tokens:
        """The tokens `first … stop - 1`, numbered from 0, without what is known about brackets and errors."""
        kinds, starts, ends, fresh = self.kinds, self.starts, self.ends, self.fresh
        return Tokens(
            self.source, kinds[first:stop], starts[first:stop], ends[first:stop], fresh[first:stop], (), self.repairs,
            self.docs
        )

    def after(self, index: int) -> Span:
        """The place directly after a token, where something is missing."""
        return Span(self.source, self.ends[index], self.ends[index])

    def is_broken(self, first: int, stop: int) -> bool:
        """Whether an error was reported for one of the tokens `first … stop - 1`."""
        found = bisect_left(self.broken, first)
        return found < len(self.broken) and self.broken[found] < stop


# --- the scanner: one pass over the text ---

# Operators of other languages, and how they are written here.
FOREIGN: Final[Mapping[str, str]] = {
    "&&": "and", "||": "or", "&": "and", "|": "or", "!": "not", "**": "^", "!==": "!=", "=>": ">="
}  # fmt: skip

# `-` and `<` are also a sign and a bracket, so they represent themselves. Operators that begin with `>` are cut into
# single characters, because a > that closes a list or a bundle is a token of its own, whatever follows it.
_SYMBOLS: Final[Mapping[str, str]] = {
    **{symbol: OPERATOR for symbol in BINARY if not symbol[0].isalpha() and symbol[0] != ">"},
    **{symbol: symbol for symbol in "-<()[]{},;:=@~."},
    **dict.fromkeys(("+=", "-=", "*=", "/="), BECOMES),
    "::": BINDS,
    "|>": PIPE,
}
# A : also makes a name of the keyword before it.
_PLAIN: Final = {symbol: kind for symbol, kind in _SYMBOLS.items() if symbol != ":"}
_COMMENT_END: Final = "*/"


def _any_of(*symbols: str) -> str:
    """A pattern for any of the symbols, the longest first."""
    return "|".join(re.escape(s) for s in sorted(symbols, key=len, reverse=True))


_BLANK = " \\t\\r\\f\\v\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_DIGITS = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
# Each named group is a method of `_Scanner`.
_TOKEN = re.compile(
    rf"""[{_BLANK}]*(?:
    (?P<word>[^\W\d]\w*)
    |(?P<newline>\n)
    |(?P<digit_key>(?<=\bkey@)[0-9](?![\w.]))
    |(?P<number>{_DIGITS})(?!\w)
    |(?P<glued_number>{_DIGITS}\w+)
    |(?P<doc_comment>///(?!/)[^\n]*)
    |(?P<comment>//[^\n]*|/\*[\s\S]*?(?:\*/|\Z))
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<open_string>"[^\n]*)
    |(?P<symbol>{_any_of(*_SYMBOLS, *FOREIGN, _COMMENT_END)})
    |(?P<greater>>)
    |(?P<pragma>\#\w*)
    |(?P<misquoted>[{QUOTES}][^\n"{QUOTES}]*["{QUOTES}])
    |(?P<other>\S)
    |(?P<end>\Z)
    )""",
    re.VERBOSE,
)
_NUMBER = re.compile(_DIGITS)
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES: Final = {'"': '"', "\\": "\\", "n": "\n", "t": "\t"}
_COLOUR = re.compile(r"#(?:[0-9a-fA-F]{3}){1,2}")
_UNKNOWN: Final[Mapping[str, tuple[str, str]]] = {
    "?": ("there is no `?` in weft", CHOICE_FORM),
    "$": ("`$` means nothing here", 'a call takes parentheses, and a pattern is pattern("bd sn")::p<bd, sn>'),
    "\\": ("a backslash is used only in strings", "statements continue on the next line by themselves"),
    "'": ("this quote is not closed", 'a string is written in straight double quotes: "hello"'),
}
_NOT_TEXT = re.compile("[\0-\x08\x0e-\x1f\x7f\ufffd\ud800-\udfff]")


def text_value(literal: str) -> str:
    """The characters that a string literal represents."""
    return _ESCAPE.sub(lambda m: _ESCAPES.get(m[1], m[0]), literal[1:-1])


def scan(source: Source, report: Report, part: tuple[int, int] | None = None) -> Tokens | None:
    """The tokens of a text, or of a part of it; None, with an error reported, if it is not text or too long."""
    length = len(source.text)
    if length > MAX_CHARACTERS:
        message = f"this file has {length:,} characters; weft reads at most {MAX_CHARACTERS:,}"
        hint = "move parts of it into files of their own and #include them"
        report.tell("too-long", message, Span(source, 0, 0), hint)
        return None
    first, last = part or (0, length)
    if found := _NOT_TEXT.search(source.text, first, last):
        place = Span(source, found.start(), found.end())
        if place.text == "\ufffd":
            report.tell("not-text", "this file is not UTF-8 text", place, "save it as UTF-8")
        else:
            character = describe_character(place.text)
            report.tell("not-text", f"this is not a text file: it holds the character {character}", place)
        return None
    return _Scanner(source, report).run(first, last)


class _Scanner:
    """One run over one text, with a method for each group of the pattern."""

    def __init__(self, source: Source, report: Report) -> None:
        self._source = source
        self._text = source.text
        self._report = report
        self._kinds: list[str] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._fresh: list[bool] = []
        self._broken: list[int] = []
        self._repairs: dict[int, str] = {}
        self._docs: dict[int, str] = {}
        self._is_fresh = True
        self._in_pragma = False
        self._doc: list[str] = []
        self._lines_since_doc = 0
        self._open_string_end = len(source.text)

    def run(self, first: int, last: int) -> Tokens:
        actions = {group: getattr(self, f"_{group}") for group in _TOKEN.groupindex}
        for match in _TOKEN.finditer(self._text, first, last):
            group = match.lastgroup or ""
            start, end = match.span(group)
            if kind := _PLAIN.get(self._text[start:end]):
                self._add(kind, start, end)
            else:
                actions[group](start, end)
        place = self._ends[-1] if self._ends else 0
        self._is_fresh = False
        self._add(END, place, place)
        return Tokens(
            self._source, "".join(self._kinds), self._starts, self._ends, self._fresh, self._broken, self._repairs,
            self._docs
        )

    def _add(self, kind: str, start: int, end: int) -> None:
        if self._doc:
            self._docs[start] = "\n".join(self._doc)
            self._doc.clear()
        self._kinds.append(kind)
        self._starts.append(start)
        self._ends.append(end)
        self._fresh.append(self._is_fresh)
        self._is_fresh = False

    def _add_broken(self, kind: str, start: int, end: int) -> None:
        """A token for which an error was reported."""
        self._broken.append(len(self._kinds))
        self._add(kind, start, end)

    def _error(self, code: str, message: str, start: int, end: int, hint: str | None = None) -> None:
        self._report.tell(code, message, Span(self._source, start, end), hint)

    # --- lines and comments ---

    def _newline(self, start: int, end: int) -> None:
        self._end(start, end)
        self._is_fresh = True
        self._lines_since_doc += 1
        if self._lines_since_doc > 1:
            self._doc.clear()

    def _end(self, start: int, end: int) -> None:
        if self._in_pragma:
            self._add(PRAGMA_END, self._ends[-1], self._ends[-1])
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
            place = start + next(i for i, c in enumerate(word) if not c.isascii())
            message = f"`{self._text[place]}` cannot be part of a name; names take a to z, A to Z, 0 to 9 and _"
            instead = lookalike_of(word)
            self._error("unknown-letter", message, place, place + 1, f"write {instead}" if instead else None)
            self._add_broken(NAME, start, end)
        else:
            is_output = self._kinds[-1:] == ["@"]
            self._add(NAME if is_output else KEYWORDS.get(word, NAME), start, end)

    def _digit_key(self, start: int, end: int) -> None:
        self._add(NAME, start, end)

    def _number(self, start: int, end: int) -> None:
        if math.isinf(float(self._text[start:end])):
            self._error("number-overflow", "this number is too large; the largest is 1.79e308", start, end)
            self._add_broken(NUMBER, start, end)
        else:
            self._add(NUMBER, start, end)

    def _glued_number(self, start: int, end: int) -> None:
        whole = self._text[start:end]
        match = _NUMBER.match(whole)
        number = match[0] if match else whole
        rest = whole[len(number) :]
        hint = None
        if rest.replace("_", "").isdecimal():
            hint = f"write {number}{rest.replace('_', '')}"
        elif not number.startswith("0"):
            hint = f"a product is written {number} * {lookalike_of(rest) or rest}"
        message = f"the number {shorten(number)} runs into `{shorten(rest)}`"
        self._error("glued-number", message, start, end, hint if end - start < LONGEST_HINT else None)
        self._repairs[start] = number
        self._add_broken(NUMBER, start, end)

    def _string(self, start: int, end: int) -> None:
        unknown = [e for e in _ESCAPE.finditer(self._text, start, end) if e[1] not in _ESCAPES]
        for escape in unknown:
            hint = r"a backslash itself is written \\ (in paths, / works everywhere)"
            self._error("bad-escape", f"`{escape[0]}` means nothing in a string", *escape.span(), hint)
        (self._add_broken if unknown else self._add)(TEXT, start, end)

    def _open_string(self, start: int, end: int) -> None:
        is_rest = self._text.count("\n", self._open_string_end, start) == 1
        self._open_string_end = end
        self._add_broken(TEXT, start, end)
        if is_rest:
            return  # the end of a string over two lines: the first line has the error
        text = self._text[start:end].rstrip()
        curly = next((c for c in text[1:] if c in QUOTES and not c.isascii()), None)
        hint = f'{curly} does not close a string: type a straight "' if curly else 'close it with " on the same line'
        self._error("unclosed-string", "this string never ends", start, start + len(text), hint)

    def _misquoted(self, start: int, end: int) -> None:
        hint = f'write "{self._text[start + 1 : end - 1]}"' if end - start < LONGEST_HINT else None
        self._error("wrong-quotes", "a string is written in straight double quotes", start, end, hint)
        self._add_broken(TEXT, start, end)

    # --- symbols ---

    def _symbol(self, start: int, end: int) -> None:
        symbol = self._text[start:end]
        if symbol == ":":
            if self._kinds and self._text[self._starts[-1] : self._ends[-1]] in KEYWORDS:
                self._kinds[-1] = NAME  # a label
            self._add(symbol, start, end)
        elif symbol == _COMMENT_END:
            self._error("stray-comment-end", "no comment is open here", start, end, "comments do not nest")
            self._add_broken(BROKEN, start, end)
        else:
            meant = FOREIGN[symbol]
            hint = f"a function is a spindle: {SPINDLE_FORM.partition(': ')[2]}" if symbol == "=>" else None
            self._error("foreign-operator", f"`{symbol}` is written `{meant}` in weft", start, end, hint)
            self._repair(meant, start, end)

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
            self._error("bare-colour", "a colour is written in double quotes", start, end, hint)
        else:
            hint = COMMENT_FORM if word == "#" else f"put {shorten(word)} on a line of its own"
            self._error("misplaced-pragma", "a `#` is allowed only at the start of a line", start, end, hint)
        self._add_broken(BROKEN, start, end)

    def _other(self, start: int, end: int) -> None:
        character = self._text[start:end]
        meant = None if character.isascii() else lookalike_of(character)
        if meant:
            message = f"{describe_character(character)} is not in weft's alphabet"
            self._error("typographic-character", message, start, end, f"type {meant}")
            self._repair(meant, start, end)
            return
        if not (self._kinds[-1:] == [BROKEN] and self._ends[-1] == start):
            message, hint = _UNKNOWN.get(character, (f"{describe_character(character)} means nothing here", None))
            self._error("unknown-character", message, start, end, hint)
        self._add_broken(BROKEN, start, end)

    def _repair(self, meant: str, start: int, end: int) -> None:
        """Continues as if `meant` had been written here, so that this place has one error only."""
        kind = _SYMBOLS.get(meant) or KEYWORDS.get(meant)
        if kind is None:
            kind = ">" if meant == ">" else OPERATOR if meant in BINARY else BROKEN
        self._repairs[start] = meant
        self._add_broken(kind, start, end)
