"""Values that were set by hand and are not in the text: numbers that another program has turned without a save; a save
replaces them. And how these numbers and the values of parameters are written into the text."""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from weft.codes.rows import InternalError
from weft.contexts import OWN_CONTEXTS
from weft.errors import Report, Source
from weft.runtime.compiling.compiler import Saved
from weft.runtime.compiling.worker import LoadResult
from weft.runtime.hands.clock import Clock
from weft.runtime.hands.parameters import ParameterBank, ParameterSpec
from weft.runtime.live.events import Reporter
from weft.runtime.live.saves import Saves
from weft.runtime.live.start_values import NotWrittenError, rewritten, texts_of
from weft.runtime.live.transition import TransitionPolicy
from weft.runtime.program.files import FileState, read_text
from weft.runtime.screens.panel import ControlPanel
from weft.syntax.layout import arrange
from weft.syntax.number_places import Place, numbers_of
from weft.syntax.scanner import NUMBER, UnreadableError, decode, scan

P = ParamSpec("P")
T = TypeVar("T")

# The number of digits that a number has in the text.
_DIGITS = 7

# The number of characters before a number that identify it.
_BEFORE = 9

# The separators of statements in a text.
_BOUNDS = frozenset(";{}")


class NotTurnedError(InternalError):
    """A number that cannot be turned. The message is the reason."""


def turned_between(text: bytes, other: bytes, also: Collection[Place] = ()) -> dict[Place, float]:
    """The numbers that another text has in place of those of a text, by their places in this one; and those at other
    places of it. Raises NotTurnedError if the texts differ in anything else."""
    then, now = (scan(Source("", _readable(each)), Report()) for each in (text, other))
    if then is None or now is None or then.kinds != now.kinds:
        raise NotTurnedError("the text differs from the one that was played last in more than its numbers")
    found = {}
    for at, kind in enumerate(then.kinds):
        place = then.source.position(then.starts[at])
        if then.text(at) != now.text(at) and kind != NUMBER:
            raise NotTurnedError("the text differs from the one that was played last in more than its numbers")
        if then.text(at) != now.text(at) or (kind == NUMBER and place in also):
            found[place] = float(now.text(at))
    return found


def _readable(text: bytes) -> str:
    """Raises NotTurnedError."""
    try:
        return decode(text)
    except UnreadableError as failure:
        raise NotTurnedError(f"the text cannot be read: {failure}") from None


def last_edited(text: bytes, before: bytes) -> list[Place]:
    """The numbers in the first statement of a text that differs from the text before. If no statement differs, those in
    the first statement that has any."""
    now, then = decode(text), decode(before)
    pairs = enumerate(zip(now, then, strict=False))
    at = next((at for at, (one, other) in pairs if one != other), min(len(now), len(then)))
    source, report = Source("", now), Report()
    scanned = scan(source, report)
    words = {word for spec in OWN_CONTEXTS for word in spec.statements}
    if scanned is None or (tokens := arrange(scanned, words, report)) is None:
        return []
    groups: list[list[Place]] = [[]]
    ends: list[int] = []
    for kind, start, end in zip(tokens.kinds, tokens.starts, tokens.ends, strict=True):
        if kind in _BOUNDS:
            groups.append([])
            ends.append(end)
        elif kind == NUMBER:
            groups[-1].append(source.position(start))
    if now == then:
        return next(filter(None, groups), [])
    return groups[bisect_left(ends, at)]


def _with_numbers(text: bytes, values: Mapping[tuple[int, int], float]) -> bytes:
    """A text with other numbers, by where these begin and end in characters."""
    shown = decode(text)
    for (start, end), value in sorted(values.items(), reverse=True):
        shown = shown[:start] + _shown(value) + shown[end:]
    return shown.encode()


@dataclass(frozen=True)
class GlidingNumbers:
    """Numbers on their way from the values that they had to those of a text that was `saved`, during `seconds` since a
    time of the performance. `ends` has both values of each, by where it begins and ends in characters."""

    saved: Saved
    ends: Mapping[tuple[int, int], tuple[float, float]]
    since: float
    seconds: float

    @classmethod
    def between(cls, before: bytes, saved: Saved, since: float, seconds: float) -> GlidingNumbers | None:
        """From the numbers of a text before; None if the texts differ in anything else, or in nothing."""
        tokens, old = (scan(Source("", decode(text)), Report()) for text in (saved.data, before))
        if tokens is None or old is None or tokens.kinds != old.kinds:
            return None
        ends = {}
        for at, kind in enumerate(tokens.kinds):
            then, now = old.text(at), tokens.text(at)
            if then != now:
                if kind != NUMBER:
                    return None
                ends[tokens.starts[at], tokens.ends[at]] = float(then), float(now)
        return cls(saved, ends, since, seconds) if ends else None

    def at(self, now: float) -> bytes | None:
        """The text with the numbers of a time of the performance; None if they have arrived."""
        part = (now - self.since) / self.seconds
        if not 0 <= part < 1:  # a restart ends it, too
            return None
        return _with_numbers(self.saved.data, {at: old + (new - old) * part for at, (old, new) in self.ends.items()})


@dataclass
class Glide:
    """Lets the numbers of a save glide, if its text says so and it changes nothing else (`#fade 0.5 numbers`). On the
    way they are turned, as by a hand; the saved text itself plays once they have arrived."""

    saves: Saves
    policy: TransitionPolicy
    clock: Clock
    numbers: GlidingNumbers | None = None

    def begins(self, outcome: LoadResult, entered: LoadResult | None) -> bool:
        """Whether the numbers of a text glide before it plays. `entered` is what plays."""
        loaded, saved = outcome.loaded, outcome.saved
        if loaded is None or saved.is_turned:
            return False
        self.numbers = None
        seconds = self.policy.requested_fade(loaded.compiled)
        if saved.has_glided or not loaded.compiled.glides or not seconds or self.clock.paused:
            return False
        if entered is None or entered.saved.name != saved.name or entered.files != outcome.files:
            return False
        self.numbers = GlidingNumbers.between(entered.saved.data, saved, self.clock.now(), seconds)
        return self.numbers is not None

    def text(self) -> bytes | None:
        """The text with the numbers of now; None if none glide. A pause ends a glide."""
        gliding, now = self.numbers, self.clock.now()
        found = None if gliding is None or self.clock.paused else gliding.at(now)
        if found is None:
            self.arrive()
        return found

    def arrive(self) -> bool:
        """Ends the glide: the text that was saved is compiled, and plays. Gives whether there was one."""
        if self.numbers is None:
            return False
        self.saves.arrive(self.numbers.saved)
        self.numbers = None
        return True


def _alone(method: Callable[Concatenate[TurnedNumbers, P], T]) -> Callable[Concatenate[TurnedNumbers, P], T]:
    """A method during which no other thread is in such a one."""
    @wraps(method)
    def alone(numbers: TurnedNumbers, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with numbers._lock:
            return method(numbers, *args, **kwargs)

    return alone


@dataclass
class TurnedNumbers:
    """The numbers that have other values than in the text that was saved. Any thread may turn them."""

    text: bytes = b""
    """The text that the places belong to."""
    sliders: ParameterBank = field(default_factory=ParameterBank)
    """The numbers of the statement that was edited last, if they are offered to be turned by hand."""
    values: dict[Place, float] = field(default_factory=dict)
    _numbers: Mapping[Place, tuple[int, int]] = field(default_factory=dict)
    _accepted: dict[Place, float] = field(default_factory=dict)
    """The values with which a program plays, or has played."""
    _has_changed: bool = False
    _before: bytes = b""
    """The saved text before the last one."""
    _last: bytes = b""
    """The last saved text."""
    _offered: dict[Place, ParameterSpec] = field(default_factory=dict)
    _seen: int = 0
    """The number of changes of the sliders that were taken over."""
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False, compare=False)

    @_alone
    def offer(self, path: str) -> None:
        """Offers the numbers of the statement edited last, in the file at this path. Raises NotTurnedError without
        any."""
        places = last_edited(self._last, self._before)
        if not places:
            raise NotTurnedError("the statement that was edited last has no numbers")
        if self.text != self._last:
            self._begin(self._last)
        self.sliders, self._offered = ParameterBank(), {place: self._slider(place, path) for place in places}
        self.sliders.adopt(list(self._offered.values()))
        for place in places:
            if place in self.values:
                self.sliders.set(_input(place), self.values[place])
        self._seen = self.sliders.changes

    def _slider(self, place: Place, path: str) -> ParameterSpec:
        """A number as a slider, from 0 to twice its value."""
        start, end = self._numbers[place]
        text = decode(self.text)
        value = float(text[start:end])
        low, high = (0.0, 2 * value) if value else (-1.0, 1.0)
        line_start = text.rfind("\n", 0, start) + 1
        label = text[max(line_start, start - _BEFORE) : end].strip()
        return ParameterSpec("slider", _name(place), ("v",), (value,), low, high, label, True, path, place[0])

    def _follow_sliders(self) -> None:
        """Turns the numbers whose sliders have moved."""
        if self.sliders.changes == self._seen:
            return
        self._seen = self.sliders.changes
        for place, spec in self._offered.items():
            value = self.sliders.value(_input(place))
            if value != self.values.get(place, spec.start[0]):
                self.values[place] = value
                self._has_changed = True

    @_alone
    def turn(self, text: bytes, argument: str) -> None:
        """Turns a number of a text: `argument` is its line, its column and its value. Raises NotTurnedError."""
        try:
            line, column, value = map(float, argument.split())
        except ValueError:
            raise NotTurnedError("a number is turned by its line, its column and its value") from None
        self._turn(text, line, column, value)

    @_alone
    def turn_now(self, saves: Saves, saved: Saved, values: Mapping[Place, float]) -> None:
        """Turns numbers of the text that was `saved` last, and has it compiled with them at once. A text that has
        replaced it stays as it is. Raises NotTurnedError."""
        if saves.accepted.data == saved.data:
            for (line, column), value in values.items():
                self._turn(saved.data, line, column, value)
            self.pass_on(saves)

    @_alone
    def pass_on(self, saves: Saves) -> None:
        """Has the text compiled with these numbers, if any was turned since the last time. If the text waits for its
        moment, they follow it. If another text waits, that comes first."""
        if saves.is_playing(self.text) and (text := self.take()) is not None:
            saves.turn(text)

    def _turn(self, text: bytes, line: float, column: float, value: float) -> None:
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
        self.sliders, self._offered, self._seen = ParameterBank(), {}, 0

    @_alone
    def take(self) -> bytes | None:
        """The text with these numbers, if any was turned since the last call."""
        self._follow_sliders()
        if not self._has_changed:
            return None
        self._has_changed = False
        return self.written()

    @_alone
    def written(self) -> bytes:
        """The text with these numbers."""
        return _with_numbers(self.text, {self._numbers[place]: value for place, value in self.values.items()})

    @_alone
    def accept(self) -> None:
        """Notes that a program plays with these numbers."""
        self._accepted = dict(self.values)

    @_alone
    def refuse(self) -> None:
        """Goes back to the numbers with which a program has played."""
        self.values = dict(self._accepted)

    @_alone
    def follow(self, text: bytes) -> None:
        """Notes that a text plays as it was saved. If the text is the same, the numbers are turned again; else they
        have the values of the text."""
        if text != self._last:
            self._before, self._last = self._last or text, text
        if text == self.text and self.values:
            self._has_changed = True
        else:
            self._begin(b"")


def _name(place: Place) -> str:
    return f"{place[0]}:{place[1]}"


def _input(place: Place) -> str:
    """The name of the slider of a number."""
    return f"{_name(place)}@v"


def _shown(value: float) -> str:
    """A number as a performer would write it; in parentheses if it has a sign, which binds less than some operators."""
    text = f"{value:.{_DIGITS}f}".rstrip("0").rstrip(".") if 1e-4 <= abs(value) < 1e7 or value == 0 else repr(value)
    return f"({text})" if text.startswith("-") else text


@dataclass(frozen=True)
class NumbersInHand:
    """The numbers of the statement that was edited last, on the panel."""

    turned: TurnedNumbers
    reporter: Reporter

    def toggle(self, panel: ControlPanel, path: Path) -> None:
        """Shows them, or closes the panel if it shows them."""
        if panel.shows(self.turned.sliders):
            panel.close()
        else:
            self._show(panel, path)

    @contextmanager
    def following(self, panel: ControlPanel, path: Path) -> Iterator[None]:
        """If the numbers of the last text are shown, shows those of another text."""
        before = self.turned.sliders
        were_shown = panel.shows(before)
        yield
        if were_shown and self.turned.sliders is not before:
            self._show(panel, path)

    def _show(self, panel: ControlPanel, path: Path) -> None:
        before = self.turned.sliders
        try:
            self.turned.offer(str(path))
        except NotTurnedError as failure:
            self.reporter.mention(str(failure))
            if panel.shows(before):
                panel.close()
        else:
            panel.show(self.turned.sliders)


@dataclass(frozen=True)
class TextWriter:
    """Writes values that were set into the files of the program that plays. `is_writable` says into which."""

    saves: Saves
    parameters: ParameterBank
    turned: TurnedNumbers
    reporter: Reporter
    is_writable: Callable[[Path], bool]

    def write(self, entered: LoadResult | None) -> LoadResult | None:
        """Writes the values that were set since the last time. Returns the result that plays, with the new texts."""
        if entered is None or entered.loaded is None:
            self.reporter.mention("nothing is written: nothing plays yet")
            return entered
        path = Path(entered.saved.name)
        if not self.is_writable(path):
            self.reporter.mention("nothing is written: this patch comes with weft, or from a pipe; play a copy of it")
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
            raise NotWrittenError(f"nothing is written: {path.name} has changed, or what plays is not saved in it")
        self.saves.rewrite({path: text})
        self.turned.follow(text)
        saved = replace(entered.saved, data=text, turned_from="")
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
