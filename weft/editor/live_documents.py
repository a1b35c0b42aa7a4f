"""What an editor shows and does while a performance plays its texts: values beside the lines, texts without saving, and
numbers that are turned."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lsprotocol import types

from weft.contexts import OWN_CONTEXTS
from weft.editor.documents import Document
from weft.editor.performing import LinkedPerformance, Performances
from weft.editor.positions import TextPositions
from weft.syntax.number_places import NumberedLines, lines_in_both, numbers_in, numbers_to_turn

# Seconds between two looks whether what is beside the lines has changed.
_STEP = 0.25
# Seconds of a performance after which curves are found again.
_CURVES = 0.5

_WORD = re.compile(r"\w+")

_BARS = "▁▂▃▄▅▆▇█"

# Smaller shares of the costs are not shown.
_LEAST_SHARE = 0.01

# Statements that play a sound.
_SOUNDS = tuple(word for spec in OWN_CONTEXTS if spec.streams for word in spec.statements)


@dataclass(frozen=True)
class ValueHint:
    """What is shown in a line, from 0, after a column; None is its end."""

    line: int
    text: str
    about: str
    column: int | None = None


@dataclass(frozen=True)
class LineCosts:
    """The shares that statements have of the work of a frame, by their lines from 0, in the text with this hash."""

    hash: str = ""
    shares: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class LineCurves:
    """What strands have been lately, by their lines from 0, in the text with this hash, up to a time of the
    performance."""

    hash: str = ""
    time: float = -1.0
    curves: Mapping[int, Sequence[float]] = field(default_factory=dict)


def values_beside(
    text: str, linked: LinkedPerformance, costs: LineCosts, curves: LineCurves | None = None
) -> list[ValueHint]:
    """What is to be shown in a text that a performance plays, or an earlier state of which it plays."""
    now, playing = NumberedLines(text), NumberedLines(linked.text)
    lines = lines_in_both(playing, now)
    found = [*_parameters(linked, lines), *_turned(linked, now, playing, lines), *_level(linked, now)]
    if costs.hash == linked.hash:
        found += _costs(linked, costs, lines)
    if curves is not None and curves.hash == linked.hash:
        found += [
            ValueHint(lines[line], sparkline(values), "this strand during the last two seconds, and its value now")
            for line, values in curves.curves.items() if line in lines
        ]  # fmt: skip
    return sorted(found, key=lambda each: (each.line, each.column is None))


def _parameters(linked: LinkedPerformance, lines: Mapping[int, int]) -> Iterator[ValueHint]:
    values: dict[int, list[str]] = {}
    for each in linked.values.get("parameters", ()):
        match each:
            case {"value": int() | float() as value, "line": int() as line, "file": str() as file}:
                if file == linked.values_file and line - 1 in lines:
                    values.setdefault(lines[line - 1], []).append(f"{value:.3g}")
    for line, shown in values.items():
        yield ValueHint(line, f"= {' '.join(shown)}", "the value of this parameter in the performance")


def _turned(
    linked: LinkedPerformance, now: NumberedLines, playing: NumberedLines, lines: Mapping[int, int]
) -> Iterator[ValueHint]:
    spans = numbers_in(now.text)
    for each in linked.values.get("numbers", ()):
        match each:
            case {"line": int() as line, "column": int() as column, "value": int() | float() as value}:
                there = lines.get(line - 1)
                places = [place for place, _ in playing.numbers.get(line - 1, ())]
                if there is None or (line, column) not in places:
                    continue
                place, shown = now.numbers[there][places.index((line, column))]
                if shown != value:
                    start, end = spans[place]
                    column_after = place[1] - 1 + end - start
                    yield ValueHint(there, f"→ {value:.4g}", "this number was turned", column_after)


def _level(linked: LinkedPerformance, now: NumberedLines) -> Iterator[ValueHint]:
    level = linked.values.get("level")
    if not isinstance(level, int | float):
        return
    for line, text in enumerate(now.lines):
        if text.lstrip().startswith(_SOUNDS):
            words = text.lstrip()
            word = next(each for each in _SOUNDS if words.startswith(each))
            if words[len(word) :].lstrip().startswith("("):
                yield ValueHint(line, _level_shown(level), "the level of the sound, in dB of full scale")


def sparkline(values: Sequence[float]) -> str:
    """Some values as a row of bars from the least to the largest one, and the last value."""
    finite = [value for value in values if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    span = (high - low) or 1.0
    most = len(_BARS) - 1
    bars = "".join(_BARS[round(most * (value - low) / span)] if math.isfinite(value) else " " for value in values)
    return f"{bars} {values[-1]:.3g}"


def _level_shown(level: float) -> str:
    """A level with a bar of eight steps, from -48 dB to 0."""
    filled = min(8, max(0, math.ceil((level + 48) / 6)))
    return f"{'▮' * filled}{'▯' * (8 - filled)} {level:.0f} dB"


def _costs(linked: LinkedPerformance, costs: LineCosts, lines: Mapping[int, int]) -> Iterator[ValueHint]:
    draw = linked.costs.get("draw_ms")
    for line, share in costs.shares.items():
        if share >= _LEAST_SHARE and line in lines:
            shown = f"{100 * share:.0f} %"
            if isinstance(draw, int | float) and draw > 0:
                shown = f"{_duration(draw * share)} · {shown}"
            yield ValueHint(lines[line], shown, "about what this statement takes of a frame, by its operations")


def _duration(milliseconds: float) -> str:
    return f"{milliseconds:.1f} ms" if milliseconds >= 1 else f"{1000 * milliseconds:.0f} µs"


def _plays(document: Document, linked: LinkedPerformance) -> bool:
    """Whether a document plays as it is in the editor, which may end lines otherwise than the file."""
    here, there = document.text, linked.text
    return here == there or here.replace("\r\n", "\n") == there.replace("\r\n", "\n")


class LiveDocuments:
    """The open documents that performances play."""

    def __init__(
        self, documents: Mapping[str, Document], ask_costs: Callable[[str], Awaitable[Mapping[int, float]]],
        ask_curves: Callable[[str, float, Mapping[str, float]], Awaitable[Mapping[int, Sequence[float]]]],
        refresh: Callable[[], Awaitable[None]],
    ) -> None:  # fmt: skip
        """`ask_costs` gives what statements cost, by their lines, and `ask_curves` what strands have been up to a time
        with these parameters; `refresh` has the editor ask for hints again."""
        self._documents = documents
        self._ask_costs, self._ask_curves, self._refresh = ask_costs, ask_curves, refresh
        self._has_news = asyncio.Event()
        self._performances = Performances(self._has_news.set)
        self._costs: dict[str, LineCosts] = {}
        self._curves: dict[str, LineCurves] = {}
        self._shown: dict[str, Sequence[ValueHint]] = {}
        """What the editor may show, by document."""
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self) -> None:
        """Begins to look for performances."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._performances.look()), loop.create_task(self._follow())]

    def linked(self, uri: str) -> tuple[Document, LinkedPerformance] | None:
        """An open document and the performance that plays it; None if there is none."""
        document = self._documents.get(uri)
        found = None if document is None else self._performances.of(document.identity)
        return None if document is None or found is None else (document, found)

    # --- values beside the lines ---

    def hints(self, uri: str, encoding: str) -> list[types.InlayHint]:
        """What is shown in a document."""
        self._shown[uri] = found = self._beside(uri)
        document = self._documents.get(uri)
        if document is None or not found:
            return []
        lines = document.text.split("\n")
        positions, starts = TextPositions(document.text, encoding), [0]
        for line in lines:
            starts.append(starts[-1] + len(line) + 1)
        shown = []
        for each in found:
            line = lines[each.line].rstrip("\r")
            at = positions.position(starts[each.line] + (len(line) if each.column is None else each.column))
            shown.append(types.InlayHint(at, each.text, tooltip=each.about, padding_left=True))
        return shown

    def _beside(self, uri: str) -> Sequence[ValueHint]:
        found = self.linked(uri)
        if found is None:
            return ()
        return values_beside(found[0].text, found[1], self._costs.get(uri, LineCosts()), self._curves.get(uri))

    async def _follow(self) -> None:
        """Has the editor ask again when there is something else to show."""
        while True:
            await self._has_news.wait()
            self._has_news.clear()
            await self._find_costs()
            self._shown = {uri: shown for uri, shown in self._shown.items() if uri in self._documents}
            if any(list(self._beside(uri)) != list(shown) for uri, shown in self._shown.items()):
                await self._refresh()
            await asyncio.sleep(_STEP)

    async def _find_costs(self) -> None:
        """Finds what the statements cost of texts that play as they are in the editor."""
        for uri in tuple(self._documents):
            found = self.linked(uri)
            if found is None or uri not in self._shown:
                continue
            document, linked = found
            if not _plays(document, linked):
                continue
            if linked.hash != self._costs.get(uri, LineCosts()).hash:
                self._costs[uri] = LineCosts(linked.hash, await self._ask_costs(uri))
            time = linked.values.get("time")
            if not isinstance(time, int | float):
                continue
            known = self._curves.get(uri, LineCurves())
            if known.hash != linked.hash or abs(time - known.time) >= _CURVES:
                given = {each["name"]: each["value"] for each in linked.values["parameters"]}
                self._curves[uri] = LineCurves(linked.hash, time, await self._ask_curves(uri, time, given))

    def value_at(self, uri: str, position: types.Position, encoding: str) -> str | None:
        """The value that a parameter has now, whose name is at a place of a document."""
        found = self.linked(uri)
        if found is None:
            return None
        offset = TextPositions(found[0].text, encoding).offset(position)
        name = next((each[0] for each in _WORD.finditer(found[0].text) if each.start() <= offset <= each.end()), None)
        shown = []
        for each in found[1].values.get("parameters", ()):
            match each:
                case {"name": str() as known, "value": int() | float() as value} if known.partition("@")[0] == name:
                    shown.append(f"{value:.4g}")
        return " ".join(shown) or None

    # --- what the performer does ---

    def point(self, uri: str, line: int, is_edit: bool = False) -> None:
        """Tells the performance at which line, from 0, the editor is, or was edited."""
        found = self.linked(uri)
        if found is not None:
            found[1].say("cursor", **{"edited" if is_edit else "line": line + 1})

    async def evaluate(self, uri: str) -> Mapping[str, Any]:
        """Plays a document as it is in the editor. Gives the answer of the performance, or a `problem`."""
        found = self.linked(uri)
        if found is None:
            return {"ok": False, "problem": "no performance plays this file"}
        return await found[1].ask("text", text=found[0].text)

    async def turn(
        self, uri: str, new: str, lines: Sequence[int], exactly: float | None = None
    ) -> Mapping[str, Any]:
        """Turns the numbers in some lines, from 0, to what they are in a new text of a document. If it is one number,
        its value may be said `exactly`, since a text has no number below 0."""
        found = self.linked(uri)
        if found is None:
            return {"ok": False, "problem": "no performance plays this file"}
        linked = found[1]
        turned = {(each["line"], each["column"]) for each in linked.values.get("numbers", ())}
        values = numbers_to_turn(NumberedLines(linked.text), NumberedLines(new), lines, turned)
        if not values:
            return {"ok": False, "problem": "what plays has no such number in this line"}
        if exactly is not None and len(values) == 1:
            values = dict.fromkeys(values, exactly)
        numbers = [{"line": line, "column": column, "value": value} for (line, column), value in values.items()]
        return await linked.ask("turn", numbers=numbers)

    async def turn_number(self, uri: str, position: types.Position, value: float, encoding: str) -> Mapping[str, Any]:
        """Turns the number at a place of a document."""
        document = self._documents.get(uri)
        if document is None:
            return {"ok": False, "problem": "this document is not open"}
        offset = TextPositions(document.text, encoding).offset(position)
        spans = numbers_in(document.text).values()
        span = next(((start, end) for start, end in spans if start <= offset <= end), None)
        if span is None or not math.isfinite(value):
            return {"ok": False, "problem": "there is no number here, or none to be turned to"}
        new = f"{document.text[: span[0]]}{abs(value)!r}{document.text[span[1] :]}"
        return await self.turn(uri, new, [position.line], value)
