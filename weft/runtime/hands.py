"""What hands have set, beside the text: numbers of it that another program has turned without a save, over which a save
wins; and how they and the values of parameters are written into the text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from weft.errors import Report, Source
from weft.runtime.compiling.compiler import Saved
from weft.runtime.compiling.worker import LoadResult
from weft.runtime.events import Reporter
from weft.runtime.files import FileState, read_text
from weft.runtime.parameters import ParameterBank
from weft.runtime.saves import Saves
from weft.runtime.start_values import NotWrittenError, rewritten, texts_of
from weft.syntax.scanner import NUMBER, UnreadableError, decode, scan

Place = tuple[int, int]
"""Line and column of a number in the text of a file, both from 1."""

# How many digits a number has in the text.
_DIGITS = 7


class NotTurnedError(Exception):
    """A number that cannot be turned. The message is the reason."""


def numbers_of(text: bytes) -> dict[Place, tuple[int, int]]:
    """The numbers of a text: where each begins and ends, in characters."""
    try:
        source = Source("", decode(text))
    except UnreadableError:
        return {}
    tokens = scan(source, Report())
    if tokens is None:
        return {}
    spans = zip(tokens.kinds, tokens.starts, tokens.ends, strict=True)
    return {source.position(start): (start, end) for kind, start, end in spans if kind == NUMBER}


@dataclass
class TurnedNumbers:
    """The numbers that have other values than in the text that was saved."""

    text: bytes = b""
    """The text that the places belong to."""
    values: dict[Place, float] = field(default_factory=dict)
    _numbers: Mapping[Place, tuple[int, int]] = field(default_factory=dict)
    _accepted: dict[Place, float] = field(default_factory=dict)
    """The values with which a program plays or has played."""
    _has_changed: bool = False

    def turn(self, text: bytes, argument: str) -> None:
        """Turns a number of a text: `argument` is its line, its column and its value. Raises NotTurnedError."""
        try:
            line, column, value = map(float, argument.split())
        except ValueError:
            raise NotTurnedError("a number is turned by its line, its column and its value") from None
        if not math.isfinite(value):
            raise NotTurnedError(f"a number cannot be {value}")
        if text != self.text:
            self._begin(text)
        if (line, column) not in self._numbers:
            raise NotTurnedError(f"no number begins in line {line:g}, column {column:g}")
        place = int(line), int(column)
        if self.values.get(place) != value:
            self.values[place] = value
            self._has_changed = True

    def _begin(self, text: bytes) -> None:
        self.text, self._numbers = text, numbers_of(text)
        self.values, self._accepted, self._has_changed = {}, {}, False

    def take(self) -> bytes | None:
        """The text with these numbers, if any was turned since the last call."""
        if not self._has_changed:
            return None
        self._has_changed = False
        return self.written()

    def written(self) -> bytes:
        """The text with these numbers."""
        text = decode(self.text)
        for place, value in sorted(self.values.items(), reverse=True):
            start, end = self._numbers[place]
            text = text[:start] + _shown(value) + text[end:]
        return text.encode()

    def accept(self) -> None:
        """Notes that a program plays with these numbers."""
        self._accepted = dict(self.values)

    def refuse(self) -> None:
        """Goes back to the numbers with which a program has played."""
        self.values = dict(self._accepted)

    def follow(self, text: bytes) -> None:
        """Notes that a text plays as it was saved. If it is the same, the numbers are turned again; else they are
        those of the text."""
        if text == self.text and self.values:
            self._has_changed = True
        else:
            self._begin(b"")


def _shown(value: float) -> str:
    """A number as a performer would write it; in parentheses if it has a sign, which binds less than some operators."""
    text = f"{value:.{_DIGITS}f}".rstrip("0").rstrip(".") if 1e-4 <= abs(value) < 1e7 or value == 0 else repr(value)
    return f"({text})" if text.startswith("-") else text


@dataclass(frozen=True)
class TextWriter:
    """Writes what was set into the files of the program that plays. `is_writable` says into which."""

    saves: Saves
    parameters: ParameterBank
    turned: TurnedNumbers
    reporter: Reporter
    is_writable: Callable[[Path], bool]

    def write(self, entered: LoadResult | None) -> LoadResult | None:
        """Writes what was set since the last time; gives what plays, with the texts that its files have now."""
        if entered is None or entered.loaded is None:
            self.reporter.mention("nothing is written: nothing plays yet")
            return entered
        path = Path(entered.saved.name)
        if not self.is_writable(path):
            self.reporter.mention("nothing is written: this patch comes with weft; play a copy of it")
            return entered
        try:
            if self.turned.values:
                entered = self._write_numbers(entered, path)
                if not self._is_set:
                    return entered
            return self._write_values(entered, path)
        except NotWrittenError as failure:
            self.reporter.mention(str(failure))
        except OSError as failure:
            self.reporter.mention(f"not everything is written: {failure.strerror}")
        return entered

    @property
    def _is_set(self) -> bool:
        """Whether a parameter has another value than in the text."""
        specs, values = self.parameters.specs, self.parameters.values
        starts = ((name, start) for spec in specs for name, start in zip(spec.inputs, spec.start, strict=True))
        return any(values.get(name, start) != start for name, start in starts)

    def _write_numbers(self, entered: LoadResult, path: Path) -> LoadResult:
        text, values = self.turned.written(), dict(self.turned.values)
        if read_text(path).data != self.turned.text:
            raise NotWrittenError(f"nothing is written: {path.name} has changed, and that version does not play yet")
        self.saves.rewrite({path: text})
        self.turned.follow(text)
        saved = replace(entered.saved, data=text, is_turned=False)
        numbers = [{"line": line, "column": column, "value": value} for (line, column), value in values.items()]
        self._tell(saved, {path: text}, {}, numbers=numbers)
        return replace(entered, saved=saved)

    def _write_values(self, entered: LoadResult, path: Path) -> LoadResult:
        bank = self.parameters
        texts, starts = rewritten(texts_of(path, entered.saved.data, entered.files), bank.specs, bank.values)
        self.saves.rewrite(texts)
        saved = replace(entered.saved, data=texts.get(path, entered.saved.data))
        states = {each: FileState("text", data) for each, data in texts.items() if each != path}
        bank.rewrite(starts)
        self._tell(saved, texts, starts)
        return replace(entered, saved=saved, files={**entered.files, **states})

    def _tell(self, saved: Saved, texts: Mapping[Path, bytes], starts: Mapping[str, float], **more: object) -> None:
        files = [str(each) for each in texts]
        self.reporter.events.emit("written", hash=saved.hash, files=files, values=starts, **more)
        self.reporter.mention(f"written into {' and '.join(each.name for each in texts) or Path(saved.name).name}")
