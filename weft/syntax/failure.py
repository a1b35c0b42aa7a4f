"""A place where the grammar matched no further, and what can be seen from there."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

from weft.errors import Diagnostic, Span
from weft.syntax.tokens import (
    BINDS, END, GLUED, KEYWORDS, NAME, NUMBER, OPERAND_ENDS, OPERATOR, PRAGMA, TEXT, Tokens, shorten
)

# What a value must follow. A > may also close a bundle; there, `Failure.expected` decides.
_BEFORE_OPERAND: Final = "-<NITE([,=a~:t" + OPERATOR
# What a value can start with; so can - and <, but behind a value these are operators.
_STARTS_OPERAND: Final = NAME + NUMBER + TEXT + "MIN(["
_OPENING: Final = {")": "(", "]": "[", "}": "{"}


@dataclass(frozen=True, slots=True)
class Frame:
    """Something open: a bracket, `<` of a bundle, `list` of names, `if` that waits for `then`, `then` for `else`."""

    kind: str
    index: int


@dataclass(frozen=True)
class Failure:
    """Where the grammar gave up: `at` is the first token that does not fit into the statement from `start` on, and
    `expected` the last rule that was tried there."""

    tokens: Tokens
    start: int
    at: int
    expected: str
    statements: Collection[str]
    """The names of the output statements."""

    @property
    def found(self) -> str:
        """The kind of the token that does not fit."""
        return self.tokens.kinds[self.at]

    @property
    def text(self) -> str:
        return shorten(self.tokens.text(self.at))

    @property
    def place(self) -> Span:
        return self.tokens.span(self.at)

    @property
    def before(self) -> str:
        """The kind of the last token that fits; empty at the start of the statement."""
        return self.tokens.kinds[self.at - 1] if self.at > self.start else ""

    @property
    def text_before(self) -> str:
        return shorten(self.tokens.text(self.at - 1))

    @property
    def is_at_end(self) -> bool:
        """Whether the statement ends here."""
        return self.found in (";", "}", END, PRAGMA)

    @property
    def is_cut_off(self) -> bool:
        """Whether the statement ends here, or at least its line."""
        return self.is_at_end or self.tokens.fresh[self.at]

    @property
    def is_word(self) -> bool:
        """Whether a keyword was found."""
        return self.text in KEYWORDS and self.found != NAME

    @property
    def needs_operand(self) -> bool:
        """Whether a value must stand here."""
        if self.inside == "list" or self.tokens.kinds[self.start] == "S":
            return False
        if self.before in (">", GLUED):
            return self.expected.startswith("piece")
        return self.before != "" and self.before in _BEFORE_OPERAND

    @property
    def starts_operand(self) -> bool:
        """Whether a value was found where none fits."""
        return self.found in _STARTS_OPERAND

    @cached_property
    def frames(self) -> list[Frame]:
        """What is open at this place, the innermost last."""
        return _open_frames(self.tokens.kinds, self.start, self.at)

    @property
    def inside(self) -> str:
        """The kind of the innermost thing that is open."""
        return self.frames[-1].kind if self.frames else ""

    @property
    def is_in_bundle(self) -> bool:
        """Whether the innermost bracket is that of a bundle."""
        brackets = [frame.kind for frame in self.frames if frame.kind not in ("if", "then")]
        return brackets[-1:] == ["<"]

    def error(
        self, code: str, message: str, place: Span, hint: str | None = None, *related: tuple[Span, str]
    ) -> Diagnostic:
        return Diagnostic("error", code, message, place, hint, related)

    def missing(self, what: str, code: str, hint: str | None = None) -> Diagnostic:
        """Something that has to stand directly behind the last token that fits, or between it and the next."""
        kinds, first, last = self.tokens.kinds, self.at - 1, self.at
        if kinds[first - 1] == "@" and first - 2 >= self.start:
            first -= 2
        if self.is_cut_off:
            message = f"{what} is missing after {self._quoted(first, self.at)}"
            return self.error(code, message, self.tokens.after(self.at - 1), hint)
        if kinds[last + 1] == "@" and kinds[last + 2] == NAME:
            last += 2
        message = f"{what} is missing between {self._quoted(first, self.at)} and {self._quoted(self.at, last + 1)}"
        return self.error(code, message, self.tokens.span(first, last), hint)

    def reserved_word(self) -> Diagnostic:
        """A keyword where a name has to stand."""
        message = f"`{self.text}` is a word of the language and cannot be a name"
        return self.error("keyword-as-name", message, self.place, f"choose another name, such as {self.text}_")

    def _quoted(self, first: int, behind: int) -> str:
        """A few tokens as a message shows them."""
        text = "".join(self.tokens.text(index) for index in range(first, behind))
        return f"`{shorten(text)}`"


# Says what is wrong if it recognises the mistake.
Explanation: TypeAlias = Callable[[Failure], Diagnostic | None]


def _open_frames(kinds: str, start: int, behind: int) -> list[Frame]:
    frames: list[Frame] = []
    for index in range(start, behind):
        kind = kinds[index]
        if kind in "([{":
            frames.append(Frame(kind, index))
        elif kind in _OPENING:
            _close(frames, _OPENING[kind])
        elif kind == "<":
            _open_angle(frames, kinds, start, index)
        elif kind in (">", GLUED):
            _close_angle(frames, kind)
        elif kind == "I":
            frames.append(Frame("if", index))
        elif kind == "T" and frames and frames[-1].kind == "if":
            frames[-1] = Frame("then", frames[-1].index)
        elif kind == "E" and frames and frames[-1].kind == "then":
            frames.pop()
    return frames


def _close(frames: list[Frame], opening: str) -> None:
    while frames and frames.pop().kind != opening:
        pass


def _open_angle(frames: list[Frame], kinds: str, start: int, index: int) -> None:
    """A < is an operator behind a value, opens a list behind a name that is bound, and else a bundle."""
    is_first_name = index == start + 1 or (index == start + 2 and kinds[start] in "LO")
    if is_first_name or kinds[index - 1] == BINDS or kinds[index - 2] == BINDS:
        frames.append(Frame("list", index))
    elif kinds[index - 1] not in OPERAND_ENDS:
        frames.append(Frame("<", index))


def _close_angle(frames: list[Frame], kind: str) -> None:
    """A > closes a list or bundle; directly before another > or = it is more likely an operator in a bundle."""
    if frames and (frames[-1].kind == "list" or (frames[-1].kind == "<" and kind == ">")):
        frames.pop()
