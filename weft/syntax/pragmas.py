"""Pragmas: lines such as `#slider cutoff<v> = 20, 8000, 440 "cutoff"`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from weft.errors import Report, Span, did_you_mean
from weft.syntax import ast
from weft.syntax.scanner import COMMENT_FORM, NAME, NUMBER, TEXT, Tokens, shorten, text_value
from weft.syntax.statements import has_duplicates

GLIDES = "numbers"
"""The word after `#fade` with which numbers move to the values that a save gives them."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of a pragma line by kind, each in the order of the text. A method that returns None has reported an
    error."""

    span: Span
    names: tuple[ast.Ident, ...]
    numbers: tuple[tuple[float, Span], ...]
    texts: tuple[tuple[str, Span], ...]
    commas: int
    report: Report

    def include(self) -> ast.Pragma | None:
        return ast.Include(*self.texts[0], self.span)

    def use(self) -> ast.Pragma | None:
        library = ".".join(name.name for name in self.names)
        return ast.Use(library, self.names[0].span.to(self.names[-1].span), self.span)

    def slider(self) -> ast.Pragma | None:
        (low, low_span), (high, high_span), _ = self.numbers
        if low >= high:
            message = f"a slider cannot run from {low:g} to {high:g}: the lower end comes first"
            self.report.tell("empty-range", message, low_span.to(high_span))
            return None
        is_raw = len(self.names) == 3
        if is_raw and self.names[2].name != "raw":
            word = self.names[2]
            message = f"{word.name} means nothing here"
            self.report.tell("malformed-pragma", message, word.span, "raw is what may follow")
            return None
        return self._parameter("slider", (self._within(2, low, high),), self.texts, low, high, is_raw)

    def toggle(self) -> ast.Pragma | None:
        start, span = self.numbers[0]
        if start not in (0, 1):
            self.report.tell("bad-toggle", "a toggle starts at 0 or 1", span)
            return None
        return self._parameter("toggle", (start,), self.texts)

    def menu(self) -> ast.Pragma | None:
        start, span = self.numbers[0]
        texts = [text for text, _ in self.texts]
        # The last text is a label if no comma is before it.
        label = self.texts[-1:] if len(texts) > self.commas else ()
        options = tuple(texts[: len(texts) - len(label)])
        if len(options) < 2:
            self.report.tell("bad-menu", "a menu offers two texts or more", self.span, 'such as 0, "sine", "saw"')
            return None
        if start % 1 or not 0 <= start < len(options):
            message = f"this menu starts at one of 0 to {len(options) - 1}: the numbers of its texts"
            self.report.tell("bad-menu", message, span)
            return None
        return self._parameter("menu", (start,), label, 0.0, len(options) - 1.0, True, options)

    def button(self) -> ast.Pragma | None:
        return self._parameter("button", (0.0,), self.texts, is_raw=True)

    def xy(self) -> ast.Pragma | None:
        if has_duplicates(self.names[1:], "output", self.report):
            return None
        return self._parameter("xy", tuple(self._within(axis, 0, 1) for axis in (0, 1)), self.texts)

    def color(self) -> ast.Pragma | None:
        if has_duplicates(self.names[1:], "output", self.report):
            return None
        (colour, span), *label = self.texts
        start = _channels(colour)
        if start is None:
            self.report.tell("bad-colour", "a colour is # and six hexadecimal digits", span, 'such as "#ff8800"')
            return None
        return self._parameter("color", start, label)

    def fade(self) -> ast.Pragma | None:
        seconds, span = self.numbers[0]
        if seconds < 0:
            self.report.tell("bad-fade", "a fade takes 0 seconds (a cut) or more", span)
            return None
        if self.names and self.names[0].name != GLIDES:
            self.report.tell("bad-fade", f"{self.names[0].name} does not fade by itself", self.names[0].span,
                             f"only {GLIDES} do: #fade {seconds:g} {GLIDES}")  # fmt: skip
            return None
        return ast.Fade(seconds, self.span, bool(self.names))

    def quantize(self) -> ast.Pragma | None:
        beats, span = self.numbers[0]
        if beats <= 0:
            self.report.tell("bad-quantize", "the number of beats must be above 0", span)
            return None
        return ast.Quantize(beats, self.span)

    def _parameter(
        self, kind: ast.ParameterKind, start: tuple[float, ...], label: Sequence[tuple[str, Span]],
        low: float = 0.0, high: float = 1.0, is_raw: bool = False, options: tuple[str, ...] = (),
    ) -> ast.Parameter:  # fmt: skip
        name, *outputs = self.names[: len(start) + 1]
        words = label[0][0] if label else None
        starts = self.texts[:1] if kind == "color" else self.numbers[-len(start) :]
        places = tuple(span for _, span in starts)
        return ast.Parameter(kind, name, tuple(outputs), start, words, self.span, low, high, is_raw, places, options)

    def _within(self, index: int, low: float, high: float) -> float:
        """A start value, kept in its range."""
        value, span = self.numbers[index]
        clamped = min(max(value, low), high)
        if clamped != value:
            message = f"{value:g} is outside {low:g} … {high:g}: this starts at {clamped:g}"
            self.report.tell("start-out-of-range", message, span)
        return clamped


def _channels(colour: str) -> tuple[float, ...] | None:
    """Red, green and blue of `#rrggbb` or `#rgb`, 0…1."""
    if not re.fullmatch("#(?:[0-9a-fA-F]{3}){1,2}", colour):
        return None
    width = len(colour) // 3
    return tuple(int((colour[at : at + width] * 2)[:2], 16) / 255 for at in range(1, len(colour), width))


@dataclass(frozen=True, slots=True)
class PragmaSpec:
    """One pragma, with one sentence of documentation and an example."""

    kinds: str
    """The tokens that may follow its name: a pattern of token kinds."""
    shown: str
    doc: str
    example: str
    build: Callable[[_Parts], ast.Pragma | None]


PRAGMAS: Final[Mapping[str, PragmaSpec]] = {
    "include": PragmaSpec(
        "s", '#include "lib.weft"', "reads another file, relative to this one, as if it stood here; once",
        '#include "lib.weft"', _Parts.include),
    "use": PragmaSpec(
        r"n(?:\.n)*", "#use std.noise", "makes the spindles of a library that ships with weft known",
        "#use std.noise", _Parts.use),
    "slider": PragmaSpec(
        "n<n[>g]=-?0,-?0,-?0s?n?", '#slider name<v> = low, high, start "label" raw',
        "a parameter between two numbers, read as name@v or name; sounds take it over at once if it is raw",
        '#slider speed<v> = 0, 2, 0.5 "speed"\ndisplay(fract(me@x + me@time * speed))', _Parts.slider),
    "toggle": PragmaSpec(
        "n<n[>g]=-?0s?", '#toggle name<v> = 0 "label"', "a parameter that is 0 or 1, read as name@v or name",
        '#toggle invert<v> = 0 "invert"\ndisplay(if invert then 1 - me@x else me@x)', _Parts.toggle),
    "menu": PragmaSpec(
        "n<n[>g]=0,s(?:,s)*s?", '#menu name<v> = 0, "one", "two" "label"',
        "a parameter that is one of several: 0 for the first text, 1 for the second, …",
        '#menu wave<v> = 0, "stripes", "rings" "wave"\n'
        "display(<sin(me@x * 40), sin(length(me@x - 0.5, me@y - 0.5) * 40)>[wave])", _Parts.menu),
    "button": PragmaSpec(
        "n<n[>g]s?", '#button name<v> "label"',
        "a parameter that is 1 while it is pressed; name@count is how often it was",
        '#button flash<v> "flash"\nglow<v> = max(flash, prev(glow@v) * 0.95)\ndisplay(max(glow, me@x * 0.5))',
        _Parts.button),
    "xy": PragmaSpec(
        "n<n,n[>g]=-?0,-?0s?", '#xy name<x, y> = 0.5, 0.5 "label"', "two parameters, 0…1: a place in a square",
        '#xy spot<x, y> = 0.5, 0.5 "spot"\ndisplay(distance(me@x, me@y, spot@x, spot@y))', _Parts.xy),
    "color": PragmaSpec(
        "n<n,n,n[>g]=ss?", '#color name<r, g, b> = "#ff8800" "label"', "three parameters, 0…1: a colour",
        '#color tint<r, g, b> = "#ff8800" "tint"\nshown<r, g, b> = tint * me@x\ndisplay(shown)',
        _Parts.color),
    "fade": PragmaSpec(
        "-?0n?", "#fade 0.5 numbers",
        "seconds in which a save fades in, picture and sound together; with `numbers`, one that changes nothing but "
        "numbers moves them to their new values instead",
        "#fade 0.5", _Parts.fade),
    "quantize": PragmaSpec(
        "-?0", "#quantize 1", "a save takes effect on the next multiple of this number of beats",
        "#quantize 4", _Parts.quantize),
}  # fmt: skip
"""The pragmas, by the word after `#`."""


def read_pragma(tokens: Tokens, stop: int, report: Report) -> ast.Pragma | None:
    """The pragma of the tokens up to `stop`; None, with an error reported, if it is not valid."""
    word = tokens.text(0)
    form = PRAGMAS.get(word[1:])
    if form is None:
        hint = did_you_mean(word, [f"#{name}" for name in PRAGMAS])
        hint = hint or "the pragmas are " + " ".join(f"#{name}" for name in PRAGMAS)
        hint = COMMENT_FORM if word == "#" else hint
        report.tell("unknown-pragma", f"there is no pragma {shorten(word)}", tokens.span(0), hint)
        return None
    if not re.fullmatch(form.kinds + ";*p", tokens.kinds[1:stop]):
        place = tokens.span(min(1, stop - 2), stop - 2)
        report.tell("malformed-pragma", f"this is not how {word} is written", place, f"write {form.shown}")
        return None
    names, numbers, texts = [], [], []
    for index in range(stop - 1):
        kind, span = tokens.kinds[index], tokens.span(index)
        if kind == NAME:
            names.append(ast.Ident(span.text, span))
        elif kind == TEXT:
            texts.append((text_value(span.text), span))
        elif kind == NUMBER and tokens.kinds[index - 1] == "-":
            numbers.append((-float(span.text), tokens.span(index - 1, index)))
        elif kind == NUMBER:
            numbers.append((float(span.text), span))
    commas = tokens.kinds[:stop].count(",")
    return form.build(_Parts(tokens.span(0, stop - 2), tuple(names), tuple(numbers), tuple(texts), commas, report))
