"""Patches that nobody tuned for, by seed, and edits of any patch. `saves` and `rebuilds` measure these beside the
shipped ones.

    .venv/bin/python -m benchmarks.generated [--seed 1] [--count 22] [--show NAME]

A tool like this looks good on what it was tuned for. So a report takes other seeds than those that were looked at while
working.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple


class GeneratedPatch(NamedTuple):
    style: str
    statements: int
    text: str

    @property
    def name(self) -> str:
        return f"{self.style}-{self.statements}"


SIZES = (25, 50, 100, 200, 400)
"""In statements, a spindle counted as one. All styles are asked for one size after the other, so twenty-two patches
have each style twice."""


def patches(seed: int, many: int) -> list[GeneratedPatch]:
    """So many patches of all styles and sizes."""
    names = list(STYLES)
    return [patch(names[n % len(names)], SIZES[(n + n // len(names)) % len(SIZES)], seed + n) for n in range(many)]


def patch(style: str, size: int, seed: int) -> GeneratedPatch:
    """A patch of about so many statements."""
    author = Author(random.Random(f"{style} {seed}"), size)
    STYLES[style](author)
    text = "\n".join(["me<width> = 640", "me<height> = 360", *author.heads, "", *author.lines, ""])
    return GeneratedPatch(style, author.written + 2, text)


@dataclass
class Author:
    """Writes a patch of some `size` statements, of which so many are `written`. `heads` come before all others."""

    chance: random.Random
    size: int
    lines: list[str] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    written: int = 0

    def number(self, low: float = 0.05, high: float = 0.95) -> str:
        return f"{self.chance.uniform(low, high):.3f}"

    def pick(self, options: Sequence[str]) -> str:
        return self.chance.choice(options)

    def statement(self, line: str) -> None:
        self.lines.append(line)
        self.written += 1

    def bind(self, prefix: str, value: str) -> str:
        """Writes a statement that binds a name. Gives the name."""
        name = f"{prefix}{self.written}"
        self.statement(f"{name} = {value}")
        return name

    def spindle(self, *lines: str) -> None:
        self.lines += [*lines, "}"]
        self.written += 1

    def asks_for(self, made: Sequence[str], wide: int = 8) -> bool:
        """Whether more than what is `made` is left to write, beside its sum."""
        return not made or self.written + len(made) // wide + 3 < self.size

    def wave(self) -> str:
        """A number that varies over the picture."""
        x, y, t = self.number(2, 14), self.number(2, 14), self.number(0.1, 2)
        return self.pick(
            (
                f"sin(me@x * {x} + me@time * {t})",
                f"cos(me@y * {y} - me@time * {t})",
                f"fract(me@x * {x} + me@y * {y})",
                f"sin(length(me@x - {self.number()}, me@y - {self.number()}) * {x} - me@time * {t})",
                f"abs(me@x - me@y * {self.number()})",
            )
        )

    def sums(self, prefix: str, names: Sequence[str], wide: int = 10) -> str:
        """Sums of sums, each of so many, until one is left."""
        while len(names) > 1:
            groups = [names[at : at + wide] for at in range(0, len(names), wide)]
            names = [group[0] if len(group) == 1 else self.bind(prefix, " + ".join(group)) for group in groups]
        return names[0]

    def show(self, value: str) -> None:
        self.statement(f"display({value})")


def _chains(author: Author) -> None:
    """Each statement follows from the one before; each sixth remembers."""
    ends = list[str]()
    while author.asks_for(ends):
        value = author.bind("start", author.wave())
        for _ in range(4):
            step = author.pick(
                ("{0} * {1} + {2}", "abs({0}) - {1}", "sin({0} * {3} + {1})", "mix({0}, {1}, {2})", "max({0}, {1})")
            )
            numbers = author.number(), author.number(), author.number(2, 5)
            value = author.bind("step", step.format(value, *numbers))
        ends.append(author.bind("kept", f"max({value}, prev({value}) * {author.number(0.8, 0.95)})"))
    author.show(f"fract({author.sums('all', ends)})")


def _remaps(author: Author) -> None:
    """Remaps of remaps, three deep, of something that varies."""
    ends = list[str]()
    while author.asks_for(ends):
        value = author.bind("ground", f"{author.wave()} * {author.number()}")
        for _ in range(3):
            x = f"me@x * {author.number(0.8, 1.2)} + {author.wave()} * {author.number(0.01, 0.1)}"
            y = f"me@y + {author.number(0.01, 0.2)}"
            value = author.bind("seen", f"{value}({author.pick((f'me@x ~ {x}', f'me@x ~ {x}, me@y ~ {y}'))})")
        ends.append(author.bind("half", f"{value} * {author.number()} + {author.number(0, 0.2)}"))
    author.show(f"abs({author.sums('all', ends)})")


def _shapes(author: Author) -> None:
    """Many coloured shapes, added up by bundles."""
    colours = list[str]()
    while author.asks_for(colours, 6):
        x, y, radius = author.number(), author.number(), author.number(0.02, 0.2)
        away = author.bind("away", f"length(me@x - {x}, me@y - {y}) - {radius}")
        edge = author.bind("edge", f"smoothstep({author.number(0.01, 0.1)}, 0, {author.pick((away, f'abs({away})'))})")
        colour = f"<{author.number()}, {author.number()}, {author.number()}>"
        light = f"(0.5 + 0.5 * sin(me@time * {author.number(0.2, 3)}))"
        colours.append(author.bind("colour", f"{colour} * {edge} * {light}"))
    author.show(f"saturate({author.sums('layer', colours, 8)})")


def _feedback(author: Author) -> None:
    """Noise in images, and pictures that see themselves of a moment ago elsewhere."""
    ends = list[str]()
    while author.asks_for(ends):
        x, y, t = author.number(2, 9), author.number(2, 9), author.number()
        fine = author.bind("fine", f"noise(me@x * {x}, me@y * {y}, me@time * {t})")
        if author.chance.random() < 0.4:
            kept = author.bind("image", f"image({fine})")
            right, up = (f"{kept}(me@{axis} ~ me@{axis} + {author.number(0.005, 0.03)})" for axis in "xy")
            fine = author.bind("soft", f"({right} + {up} + {kept}) / 3")
        trail, past, before = (f"{name}{author.written}" for name in ("trail", "past", "before"))
        author.statement(f"{trail} = max({fine} * {author.number()}, {past} * {author.number(0.8, 0.97)})")
        author.statement(f"{past} = {before}(me@x ~ 0.5 + (me@x - 0.5) * {author.number(0.95, 1)})")
        author.statement(f"{before} = prev({trail})")
        ends.append(trail)
    author.show(f"saturate({author.sums('all', ends)} / {len(ends)})")


def _pipes(author: Author) -> None:
    """Places and colours as bundles, through pipes of spindles of the library."""
    author.heads += ["#use std.coord", "#use std.sdf", "#use std.color"]
    colours = list[str]()
    while author.asks_for(colours, 6):
        place = author.bind("place", f"(<me@x, me@y> - <{author.number()}, {author.number()}>) * {author.number(1, 3)}")
        for _ in range(author.chance.randrange(1, 3)):
            turn, angle = f"rotate(me@time * {author.number()})", f"twist({author.number(1, 4)})"
            many = f"tile({author.number(0.2, 0.6)})", f"kaleidoscope({author.chance.randrange(3, 9)})"
            place = author.bind("turned", f"({place} |> {author.pick((turn, angle, *many))})@xy")
        round_, star = f"circle({author.number(0.1, 0.4)})", f"star({author.chance.randrange(4, 8)})"
        shape = author.pick((round_, star, f"box({author.number(0.1, 0.4)})"))
        edge = author.bind("shape", f"{place} |> {shape} |> fill({author.number(0.01, 0.1)})")
        colours.append(author.bind("colour", f"rainbow({author.number()} + {edge} * {author.number()}) * {edge}"))
    author.show(author.sums("sum", colours, 8))


def _spindles(author: Author) -> None:
    """Spindles that call spindles, and statements that call these."""
    names = list[str]()
    for n in range(max(4, author.size // 12)):
        known = names[-3:]
        inner = f"{author.pick(known)}(x * {author.number()}, y)" if n % 4 else "x * y"
        author.spindle(
            f"spindle turn{n}(x, y) :: v {{",
            f"  near = sin(x * {author.number(1, 9)} + {author.number()})",
            f"  far = abs(y - {author.number()}) * {author.number()}",
            f"  v = near * {author.number()} + far - {inner}",
        )
        names.append(f"turn{n}")
    ends = list[str]()
    while author.asks_for(ends):
        earlier = f" + {author.pick(ends)} * {author.number()}" if ends and author.chance.random() < 0.5 else ""
        call = f"{author.pick(names)}(me@x * {author.number(1, 4)}, me@y - {author.number()})"
        ends.append(author.bind("called", call + earlier))
    author.show(f"fract({author.sums('all', ends)})")


def _loops(author: Author) -> None:
    """Loops, unrolled and run, in spindles and over bundles."""
    for n, steps in enumerate((5, 24, 40)):
        term = f"sin(x * i * {author.number()} + me@time * speed) / (i + {author.number()})"
        author.spindle(f"spindle waves{n}(x, speed) :: v {{", "  v = 0", f"  for i in (1 to {steps}) {{ v += {term} }}")
    ends = list[str]()
    while author.asks_for(ends):
        place = f"me@{author.pick('xy')} * {author.number(2, 9)}"
        call = f"waves{author.chance.randrange(3)}({place}, {author.number(0.1, 2)}) * {author.number()}"
        term, steps = f"sin(me@x * i * {author.number()}) * {author.number()}", author.chance.randrange(3, 9)
        earlier = f"{author.pick(ends)} * {author.number()}" if ends else author.number()
        value = author.pick((call, f"sum(<{term} for i in (1 to {steps})>)", f"{earlier} + {author.wave()}"))
        ends.append(author.bind("wave", value))
    author.show(f"abs({author.sums('all', ends)}) / {len(ends)}")


def _voices(author: Author) -> None:
    """A sound of ten voices, fewer in a short text, and a picture of levels."""
    author.heads += ["#use std.synth", "#use std.music"]
    voices, lights = list[str](), list[str]()
    while author.asks_for(lights, 4) or len(voices) < 4:
        jump = f"{author.chance.choice((0, 3, 5, 7, 12))} * (me@beats * {author.number()} % 4 < 2)"
        note = author.bind("note", f"{author.chance.randrange(36, 72)} + {jump}")
        level = author.bind("level", f"0.5 + 0.5 * sin(me@abstime * {author.number(0.2, 3)} + {author.number()})")
        if len(voices) < 10:
            word = author.pick(("sine_tone", "saw_tone", "tri_tone", "fm_tone"))
            tone = author.bind("tone", f"{word}(mtof({note}) * {author.number(0.99, 1.01)})")
            if author.chance.random() < 0.3:
                tone = author.bind("dark", f"lowpass({tone}, {author.number(300, 4000)})")
            voices.append(author.bind("voice", f"{tone} * {level} * {author.number(0.02, 0.1)}"))
        beam = f"exp(-{author.number(20, 90)} * abs(me@y - {level}))"
        lights.append(author.bind("light", f"{beam} * (abs(me@x - {author.number()}) < 0.03)"))
    author.statement(f"audio({author.sums('mix', voices)})")
    author.show(author.sums("lit", lights))


def _patterns(author: Author) -> None:
    """Patterns that play tones and move the picture."""
    author.heads += ["#use std.synth", "#use std.music"]
    voices, lights = list[str](), list[str]()
    while author.asks_for(lights, 4):
        words = "0", "3", "7", "12", "~", "[0 5]", "<7 10>", "3*2"
        events = " ".join(author.pick(words) for _ in range(author.chance.randrange(3, 8)))
        tune = f"tune{author.written}"
        author.statement(f'pattern("{events}", per: {author.pick("248")})::{tune}<value, gate, since>')
        decay = author.bind("decay", f"exp(-{author.number(2, 9)} * {tune}@since)")
        if len(voices) < 8:
            tone = f"sine_tone(mtof({author.chance.randrange(40, 64)} + {tune}@value))"
            voices.append(author.bind("voice", f"{tone} * {decay} * {author.number(0.02, 0.1)}"))
        near = f"abs(me@x - {tune}@value / 12 * {author.number()}) - {author.number(0.01, 0.05)}"
        band = author.bind("band", near)
        lights.append(author.bind("light", f"{decay} * smoothstep({author.number(0.01, 0.05)}, 0, {band})"))
    author.statement(f"audio({author.sums('mix', voices)})")
    author.show(author.sums("lit", lights))


def _displays(author: Author) -> None:
    """Four windows that share what they show, and numbers."""
    shared = [author.bind("shared", author.wave()) for _ in range(max(3, author.size // 10))]
    for window in range(4):
        ends = list[str]()
        while len(ends) < (author.size - len(shared)) // 4 - 3:
            value = f"{author.pick(shared)} * {author.number()} + {author.wave()} * {author.number()}"
            if author.chance.random() < 0.2:
                value = f"max({value}, prev({author.pick(shared)}) * {author.number()})"
            ends.append(author.bind("mine", value))
        target = f', to: "w{window}"' if window else ""
        author.statement(f"display(fract({author.sums('all', ends or shared[:2])}){target})")
    author.statement(f"compute(sin(me@time * {author.number()}), level: cos(me@time * {author.number()}))")


def _evening(author: Author) -> None:
    """A part in each of five other styles, in one text and one picture."""
    parts, size = (_shapes, _feedback, _chains, _pipes, _voices), author.size
    pictures = list[str]()
    for n, part in enumerate(parts, 1):
        author.size = size * n // len(parts)
        part(author)
        shown = author.lines.pop().removeprefix("display(").removesuffix(")")
        author.written -= 1
        pictures.append(author.bind("part", shown))
    colours = (f"<{author.number()}, {author.number()}, {author.number()}>" for _ in pictures)
    author.show(" + ".join(f"{each} * {colour}" for each, colour in zip(pictures, colours, strict=True)))


STYLES: dict[str, Callable[[Author], None]] = {
    "chains": _chains, "remaps": _remaps, "shapes": _shapes, "feedback": _feedback, "pipes": _pipes,
    "spindles": _spindles, "loops": _loops, "voices": _voices, "patterns": _patterns, "displays": _displays,
    "evening": _evening,
}  # fmt: skip


class Edit(NamedTuple):
    """A text that a player saves after another one."""

    kind: str
    text: str


_NUMBER = re.compile(r"(?<![\w.#\"])\d+\.\d+(?![\w.])")
_SPINDLE = re.compile(r"^spindle (\w+)\([^\n]*?:: <?(\w+)(?:(?!\bout =).)*?^}", re.MULTILINE | re.DOTALL)
_BINDING = re.compile(r"^\w+ = ([^\n{]+)$(?=\n\w)", re.MULTILINE)
_LIBRARY, _COMMENT, _BROKEN = "#use std.map\n", "// a comment\n", "\nbroken = 2 sin(me@x)\n"


def edits(text: str) -> Iterator[Edit]:
    """Texts that each differ from the one before as a player's do, without an end. What is no number comes and goes.
    No text is there twice, since one that was compiled before comes from a cache."""
    chance = random.Random(len(text))
    most_used = max(_SPINDLE.finditer(text), key=lambda found: text.count(f"{found[1]}("), default=None)
    for turn in count():
        for start, end, kind in ((0, 1 / 3, "number, early"), (2 / 3, 1, "number, late")):
            text = _tuned(text, turn, int(start * len(text)), int(end * len(text)))
            yield Edit(kind, text)
        name = f"added{turn}"
        statement, reading, line = f"{name} = sin(me@time * 3)\n", f" + {name} / 9", ""
        if bindings := list(_BINDING.finditer(text)):
            found = chance.choice(bindings)
            start, (first, last) = found.start(), found.span(1)
            yield Edit("statement added", text[:start] + statement + text[start:])
            text = f"{text[:start]}{statement}{text[start:first]}({found[1]}){reading}{text[last:]}"
            yield Edit("statement changed", text)
        if most_used is not None:
            text = _tuned(text, turn, *_again(most_used, text).span())
            yield Edit("number in a spindle", text)
            found = _again(most_used, text)
            line, end = f"  {found[2]} *= 7 / 8\n", found.end() - 1
            text = text[:end] + ("" if text[end - 1] == "\n" else "\n") + line + text[end:]
            yield Edit("body of a spindle", text)
        for head, kind in ((_LIBRARY, "library"), (_COMMENT, "comment")):
            text = text.replace(head, "") if head in text else head + text
            yield Edit(kind, text)
        yield Edit("mistake", text + _BROKEN)
        text = _tuned(text, turn, 0, len(text))
        yield Edit("correction", text)
        gone = (reading, "statement changed"), (statement, "statement removed"), (line, "body of a spindle")
        for words, kind in gone:
            if words and words in text:
                text = text.replace(words, "")
                yield Edit(kind, text)


def _again(found: re.Match[str], text: str) -> re.Match[str]:
    """The spindle that was found, in another text."""
    return next(each for each in _SPINDLE.finditer(text) if each[1] == found[1])


def _tuned(text: str, turn: int, start: int, end: int) -> str:
    """The text with another number, one of those between two places; the same if there is none."""
    numbers = [found.span() for found in _NUMBER.finditer(text, start, end)]
    if not numbers:
        return text
    first, last = numbers[turn * 7 % len(numbers)]
    return f"{text[:first]}{float(text[first:last]) * 0.999:.5f}{text[last:]}"


def worst(took: Mapping[str, Sequence[float]], what: str) -> str:
    """A line that names the worst of what was measured, by the time within which 95 of 100 were."""
    name = max(took, key=lambda each: percentile(took[each], 0.95))
    return f"the worst {what}: {name}, p50 {percentile(took[name], 0.5):.1f}, p95 {percentile(took[name], 0.95):.1f} ms"


def percentile(took: Sequence[float], share: float) -> float:
    return sorted(took)[min(len(took) - 1, int(len(took) * share))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--show", metavar="NAME", help="write the text of one of them")
    asked = parser.parse_args()
    for each in patches(asked.seed, asked.count):
        if asked.show in (None, each.name):
            print(each.text if asked.show else f"{each.name:14} {len(each.text):6} characters")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that say which patches."""
    parser.add_argument("--seed", type=int, default=1, help="of the generated patches")
    parser.add_argument("--count", type=int, default=2 * len(STYLES), help="of the generated patches")


if __name__ == "__main__":
    main()
