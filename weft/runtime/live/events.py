"""What a performance reports: events for other programs, lines and notes for people, and screenshots."""

from __future__ import annotations

import json
import math
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import count, pairwise
from numbers import Integral, Real
from pathlib import Path
from typing import Final, TypeAlias

from weft.backends.base import DeviceLostError, Values, as_array
from weft.backends.select import Choice
from weft.backends.waits import MOST_SECONDS
from weft.errors import Diagnostic, Source, error, event_fields, foremost, visible
from weft.media.pictures import save_picture
from weft.media.sampled import header_of
from weft.runtime.compiling.compiler import Saved
from weft.runtime.compiling.stages import Request, build
from weft.runtime.compiling.worker import LoadResult
from weft.runtime.program.assignment import Change
from weft.runtime.program.compiled import CompiledProgram
from weft.runtime.program.files import claim
from weft.runtime.program.findings import costliest, late, listed, loop_of, memory_lost, names_of, place_named, place_of
from weft.runtime.program.program import LoadedProgram
from weft.runtime.program.recovery import MemoryWatch
from weft.runtime.screens.playing_text import TextOverPictures
from weft.runtime.screens.screen import Overlay, Picture
from weft.runtime.screens.text_view import TextStyle, TextView
from weft.runtime.sound.renderer import SoundEvent
from weft.runtime.sound.shared import Figures
from weft.syntax.scanner import decode

Plain: TypeAlias = bool | int | float | str | list["Plain"] | dict[str, "Plain"] | None

# The most events that wait to be written.
_MOST_WAITING = 10_000

# The seconds that writing the last events may take at the end.
_LEAVE = 1.0


class EventLog:
    """Writes events, one JSON object a line, to a file, to stdout (`-`), or nowhere (None). `emit` may be called from
    any thread and never waits: a separate thread writes, since the reader of stdout may stop reading."""

    def __init__(
        self, target: str | os.PathLike[str] | None, warn: Callable[[str], None] = lambda message: None
    ) -> None:
        """A file that exists is replaced. `warn` is called once when events are lost, by another thread. Raises
        `WeftError` (`events-file`) if the file cannot be made."""
        self._start = time.monotonic()
        self._warn = warn
        self._lock = threading.Lock()
        self._target = target
        self._descriptor = self._open(target)
        self._lines: queue.Queue[bytes | None] = queue.Queue(_MOST_WAITING)
        self._has_warned = False
        self.listener: Callable[[bytes], None] | None = None
        """Is given each event, too, as a line. It must return at once."""
        self._closed = self._descriptor is None
        self._thread: threading.Thread | None = None
        if self._descriptor is not None:
            self._thread = threading.Thread(
                target=self._write_lines, args=(self._descriptor,), name="weft-events", daemon=True
            )
            self._thread.start()

    @staticmethod
    def _open(target: str | os.PathLike[str] | None) -> int | None:
        if target is None:
            return None
        try:
            # Without Python's stdout, a line is written at once, and no buffer is left that could fail at exit.
            if target == "-":
                return os.dup(1)
            return os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        except (OSError, ValueError) as problem:
            words = problem.strerror if isinstance(problem, OSError) else str(problem)
            raise error("events-file", f'cannot write events to "{os.fspath(target)}": {words}') from problem

    def emit(self, event: str, **fields: object) -> None:
        """Writes one event with its time and fields. Numbers that JSON lacks become "nan", "inf" or "-inf"."""
        listener = self.listener
        with self._lock:
            if self._closed and listener is None:
                return
            # The time is read under the lock, so that times in the file never go back.
            seconds = round(time.monotonic() - self._start, 4)
            line = json.dumps({"t": seconds, "event": event, **plain(fields)}).encode() + b"\n"
            if listener is not None:
                listener(line)
            if self._closed:
                return
            try:
                self._lines.put_nowait(line)
                return
            except queue.Full:
                pass
        self._lose("nothing reads them")

    def _write_lines(self, descriptor: int) -> None:
        try:
            while (line := self._lines.get()) is not None:
                while line:
                    line = line[os.write(descriptor, line) :]
        except OSError as problem:
            self._lose(str(problem.strerror))
        with suppress(OSError):  # a full network drive may report it only here
            os.close(descriptor)

    def _lose(self, reason: str) -> None:
        with self._lock:
            self._closed = True
        if not self._has_warned:
            self._has_warned = True
            self._warn(f"no more events are written to {self._target}: {reason}")

    def close(self) -> None:
        """Ends the log after its events have been written, or after a second if nothing reads them. Later events are
        ignored. May be called twice."""
        with self._lock:
            self._closed = True
        if self._thread is not None:
            with suppress(queue.Full):
                self._lines.put(None, timeout=_LEAVE)
            self._thread.join(_LEAVE)


def plain(value: Mapping[str, object]) -> dict[str, Plain]:
    """A mapping for JSON: numbers of every kind as JSON's own, values of unknown types as text."""
    return {str(key): _plain(item) for key, item in value.items()}


def _plain(value: object) -> Plain:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        return number if math.isfinite(number) else str(number)
    if isinstance(value, Mapping):
        return plain(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return [_plain(item) for item in sorted(value, key=str)]
    return str(value)


@dataclass(frozen=True, slots=True)
class FrameFigures:
    """Figures about a second of frames. The percentiles are of the times between shown frames; `dropped` counts the
    frames that were due at the intended rate and did not appear.
    """

    fps: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    dropped: int


class FrameStats:
    """Collects the moments at which frames were shown, and computes figures once a second."""

    def __init__(self, fps: float) -> None:
        """`fps` is the intended rate, above 0."""
        self._fps = fps
        self._last: float | None = None
        self._times: list[float] = []

    def shown(self, moment: float) -> FrameFigures | None:
        """A frame was shown at this moment, in seconds. Returns the figures after a second."""
        if self._last is not None:
            self._times.append(moment - self._last)
        self._last = moment
        total = math.fsum(self._times)
        # With a little tolerance, since otherwise a rounding error could make a second one frame longer.
        if not self._times or total < 1 - 1e-6:
            return None
        ordered, self._times = sorted(self._times), []
        count = len(ordered)
        late = sum(max(0, round(seconds * self._fps) - 1) for seconds in ordered)
        # A percentile is the smallest time that at least this share of the times do not exceed.
        at = (max(0, math.ceil(share * count) - 1) for share in (0.5, 0.95, 0.99))
        p50, p95, p99 = (round(ordered[index] * 1000, 3) for index in at)
        return FrameFigures(round(count / total, 2), p50, p95, p99, late)


# Seconds for which a note, and warnings about a text that plays, stay on the picture.
_NOTE = 2.0
_WARNINGS = 6.0


class Notices:
    """Decides what is written over the picture at each moment: errors, a note, and figures. `now` gives seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.figures: tuple[str, ...] = ()
        self.paused = False
        """Whether to show that the clock stands still."""
        self.recording = ""
        """The words to show about the film that is being recorded."""
        self._now = now
        self._problems: tuple[Diagnostic, ...] = ()
        self._left_out = 0
        self._problems_end = 0.0
        self._note = ""
        self._note_end = 0.0
        self._errors_wanted = True
        self.figures_wanted = False
        """Whether the figures are shown."""

    def set_problems(self, problems: tuple[Diagnostic, ...]) -> None:
        """Shows errors until the next call, and warnings for some seconds."""
        lasting = any(d.severity == "error" for d in problems)
        self._problems, self._left_out = foremost(problems)
        self._problems_end = float("inf") if lasting else self._now() + _WARNINGS

    @property
    def problems(self) -> tuple[Diagnostic, ...]:
        """The errors and warnings of the text, until the time of the warnings is over, whether they are shown or
        not."""
        return self._problems if self._now() < self._problems_end else ()

    def add_warning(self, problem: Diagnostic) -> None:
        """Adds a warning for some seconds. While there are errors, it is only a note."""
        if any(d.severity == "error" for d in self._problems):
            self.note(problem.message)
            return
        shown = self._problems if self._now() < self._problems_end else ()
        self.set_problems((*shown, problem))

    def note(self, words: str) -> None:
        """Shows a note about something that has just happened, for some seconds."""
        self._note, self._note_end = words, self._now() + _NOTE

    def toggle_errors(self) -> None:
        """Hides errors and warnings, or shows them again, including warnings whose time is over."""
        self._errors_wanted = not self.overlay().errors
        if self._errors_wanted:
            self._problems_end = float("inf")
            if not self._problems:
                self.note("no errors")

    def toggle_figures(self) -> None:
        """Shows or hides the figures."""
        self.figures_wanted = not self.figures_wanted

    def overlay(self) -> Overlay:
        """The overlay at this moment."""
        now = self._now()
        errors = self._problems if self._errors_wanted and now < self._problems_end else ()
        note = self._note if now < self._note_end else "paused" if self.paused else ""
        left_out = self._left_out if errors else 0
        return Overlay(errors, note, self.figures if self.figures_wanted else (), left_out, self.recording)


class Screenshots:
    """Writes pictures in the background, never over an existing file. They are named NAME-001.png and so on, where
    `base` is NAME in its folder."""

    def __init__(self, base: Path, reporter: Reporter, text: TextStyle | None = None) -> None:
        """With a style, the text that plays is over the picture."""
        self.base = base
        self._reporter = reporter
        self._text_style = text
        self._text = TextView()

    @property
    def wants_text(self) -> bool:
        """Whether the text that plays is over the picture."""
        return self._text_style is not None

    def show_text(self, view: TextView) -> None:
        """Shows this over the pictures that follow."""
        self._text = view

    def take(self, picture: Values | None) -> None:
        """Writes a copy of the picture, if there is one. The process does not end until it is written."""
        if picture is None:
            self._reporter.mention("no screenshot: there is no picture yet")
        else:
            pixels = as_array(picture).copy()
            threading.Thread(target=self._write, args=(pixels, self._text), name="weft-screenshot").start()

    def _write(self, pixels: Picture, text: TextView) -> None:
        base = self.base
        if self._text_style is not None:
            over = TextOverPictures((pixels.shape[1], pixels.shape[0]))
            over.show(text, self._text_style)
            over.draw(pixels)
        paths = (base.with_name(f"{base.name}-{number:03}.png") for number in count(1))
        try:
            path = next(path for path in paths if _is_free(path))
            try:
                save_picture(path, pixels)
            finally:
                _reservation(path).unlink(missing_ok=True)
        except OSError as failure:
            self._reporter.mention(f"no screenshot: {base.parent} cannot be written to ({failure.strerror})")
        else:
            height, width = pixels.shape[:2]
            self._reporter.mention(f"screenshot: {path}, {width}×{height}")


def _is_free(path: Path) -> bool:
    """Whether a picture can have a name. If so, no other program can take the name until the picture is complete.
    Raises OSError."""
    if path.exists() or not claim(_reservation(path)):
        return False
    if path.exists():  # meanwhile
        _reservation(path).unlink(missing_ok=True)
        return False
    return True


def _reservation(path: Path) -> Path:
    """An empty file that reserves the name of a picture until the picture is complete."""
    return path.with_name(f".{path.name}.part")


LONG: Final = 1.0
"""After this many seconds of waiting, the user learns what is being waited for."""

# Frames are late below this share of the intended rate. That is reported once, after this many seconds.
_ON_TIME, _LATE_FOR, _NEVER = 0.75, 2, 1 << 60

# The words before the name of a device.
_SOUNDS = {"playing": "sound on", "back": "sound again on", "restarted": "sound again on"}


@dataclass
class Reporter:
    """Reports by events, lines for people, and notes over the picture. `show` prints diagnostics, `echo` a line."""

    events: EventLog
    show: Callable[[Sequence[Diagnostic]], None] = lambda problems: None
    echo: Callable[[str], None] = lambda line: None
    notices: Notices = field(default_factory=Notices)
    _reported_loops: set[str] = field(default_factory=set)
    _stages: tuple[str, ...] = ()
    """The stages of the last save, in words."""
    _mentioned: set[str] = field(default_factory=set)
    _ailing: dict[str, str | None] = field(default_factory=dict)
    _watching: frozenset[str] = frozenset()
    _bpm: float = 0.0
    _late: int = 0
    """The seconds for which frames have been late; below 0 after that was reported."""
    _found_late: tuple[Mapping[str, object], Diagnostic] | None = None
    """The warning about late frames, until it is reported."""
    _parameters: Mapping[str, float] = field(default_factory=dict)
    """The values of parameters that were reported."""
    _file: str = ""
    """The file of the program that was swapped in last."""
    _waited_for: Saved | None = None
    """The last text that was reported to take long."""
    _waiting_words: str = ""
    """What was said about it."""

    def begin(self) -> None:
        """Notes that a new program begins to play."""
        self._reported_loops.clear()
        self._late, self._found_late = 0, None

    def mention(self, words: str) -> None:
        """Prints a line and shows it over the picture."""
        self.echo(words)
        self.notices.note(words)

    def _mention_once(self, words: str) -> None:
        """Prints a line and shows it over the picture, once: several processes may report the same."""
        if words not in self._mentioned:
            self._mentioned.add(words)
            self.mention(words)

    def waiting(self, saved: Saved | None, is_starting: bool) -> None:
        """Reports a text that takes long to compile; None if none is waited for."""
        if saved is None or time.monotonic() - saved.moment < LONG:
            return
        words = f"{Path(saved.name).name} is still being compiled; another save takes its place"
        words = "the compiler is still starting" if is_starting else words
        if saved is not self._waited_for or words != self._waiting_words:
            self._waited_for, self._waiting_words = saved, words
            self.echo(words)
        # The note stays as long as the wait.
        self.notices.note(words)

    def problems(self, text: str, problems: Sequence[Diagnostic], saved: float | None = None) -> None:
        """Reports the problems of the text with this hash. They were found because it was `saved` at that moment of
        time.monotonic."""
        self.notices.set_problems(tuple(problems))
        self.show(problems)
        latency = {} if saved is None else {"latency_ms": round((time.monotonic() - saved) * 1e3, 3)}
        self.events.emit("error", hash=text, **latency, **event_fields(problems))

    def paused(self, paused: bool) -> None:
        """Reports that the clock stands still, or runs again."""
        self.notices.paused = paused
        self.mention("paused" if paused else "resumed")

    def parameters(self, values: Mapping[str, float]) -> None:
        """Reports the parameters that were set since the last frame; `values` is another object if any was."""
        if values is not self._parameters:
            changed = {name: value for name, value in values.items() if self._parameters.get(name) != value}
            self._parameters = values
            if changed:
                self.events.emit("parameters", values=changed)

    def tempo(self, bpm: float, source: str) -> None:
        """Reports the tempo, if it has changed. The first tempo is not reported."""
        if round(bpm, 1) != self._bpm:
            if self._bpm:
                self.events.emit("tempo", bpm=round(bpm, 3), source=source)
                if source != "text":
                    self.notices.note(f"{bpm:.1f} bpm")
            self._bpm = round(bpm, 1)

    def tapped(self, bpm: float | None) -> None:
        """Reports a tap, after which the tempo is this one; None if it takes more taps."""
        self.notices.note("tap on" if bpm is None else f"{bpm:.1f} bpm")

    def warn(self, problem: Diagnostic) -> None:
        """Warns that a device cannot do something any more."""
        self.show([problem])
        self.notices.note(problem.message)

    def loop_stopped(self, compiled: CompiledProgram, kernel: str) -> None:
        """Warns that a loop of a program reached its limit, once for each kernel."""
        if kernel not in self._reported_loops:
            self._reported_loops.add(kernel)
            self.remark(loop_of(compiled.units, kernel))

    def memory(self, keys: Sequence[str], lost: bool, since: float, source: Source | None) -> None:
        """Reports that slots, by their keys, are not finite since a time of the performance, or begin again. `source`
        is the text of the program."""
        names, place = names_of(keys), None if source is None else place_of(source, keys[0])
        line = {} if source is None or place is None else {"line": source.position(place.start)[0]}
        self.events.emit("memory", state="lost" if lost else "recovered", names=names, since=round(since, 3), **line)
        if lost:
            self.remark(memory_lost(keys, since, place, "it begins again when you save a change of it, or press R"))
        else:
            self.mention(f"{listed(names)} begin{'s' * (len(names) == 1)} again: what it remembered was not finite")

    def remark(self, problem: Diagnostic) -> None:
        """Warns about something in the program that plays."""
        self.show([problem])
        self.notices.add_warning(problem)

    def changed(self, changes: Iterable[Change]) -> None:
        """Reports what runs on another device than intended. The failure of a device is an event too."""
        for change in changes:
            self._mention_once(str(change))
            if change.subgraph is None:
                moved = {"context": change.context, "from": change.origin, "to": change.target}
                self.events.emit("backend", **moved, reason=change.reason)

    def stands_still(self, seconds: float, device: str) -> None:
        """Reports that a frame has taken long by now, on a device if one is waited for. May be called from any
        thread."""
        words = f"the picture has stood still for {seconds:.0f} seconds"
        if device:
            words += f": it waits for {device}. If it can be left, another device draws after {MOST_SECONDS:g} seconds"
        self.events.emit("stall", state="still", seconds=round(seconds, 3), **({"device": device} if device else {}))
        self.mention(words)

    def moves_again(self, seconds: float) -> None:
        """Reports that a frame is done after all, after these seconds."""
        self.events.emit("stall", state="over", seconds=round(seconds, 3))
        self.mention(f"the picture moves again after {seconds:.0f} seconds")

    def sources(self, problems: Mapping[str, str | None]) -> None:
        """Reports what is wrong with live sources now, by what they are called, once until it changes."""
        for name, problem in problems.items():
            if problem != self._ailing.get(name):
                self._ailing[name] = problem
                self.events.emit("source", source=name, problem=problem)
                self.mention(f"{name}: {problem or 'it is back'}")

    def watching(self, cameras: Sequence[str]) -> None:
        """Reports the cameras that are open now, each after it was opened."""
        for name in cameras:
            if name not in self._watching:
                self.mention(f"watching {name}")
        self._watching = frozenset(cameras)

    def heard(self, event: SoundEvent) -> None:
        """Reports a change in how the sound is played."""
        if event.kind == "placed":
            self._mention_once(event.words)
        elif event.kind == "died":
            self.restarted("sound", event.words)
        else:
            self.mention(f"{_SOUNDS.get(event.kind, '')} {event.words}".lstrip())

    def window(self, name: str, state: str, reason: str = "") -> None:
        """Reports that a window or an outlet was opened or closed, or failed for a reason. The first window has no
        name."""
        self.events.emit("window", name=name, state=state, **({"reason": reason} if reason else {}))
        if reason:
            self.mention(f"{visible(name)} is not shown: {reason}")

    def outlet(self, name: str, state: str, words: str = "", **figures: int) -> None:
        """Reports that an outlet waits for its receiver, has it again, or is behind."""
        self.events.emit("window", name=name, state=state, **({"reason": words} if words else {}), **figures)
        if words:
            self.mention(f"{visible(name)}: {words}")

    def restarted(self, process: str, words: str) -> None:
        """Reports that a process ended by itself and was started again."""
        self.events.emit("restart", process=process, reason=words)
        self.mention(words)

    def frames(self, figures: FrameFigures, heard: Figures | None, facts: Iterable[str]) -> None:
        """Reports figures about the last second of frames, and about the latest block of sound if there was one.
        `facts` about the program are shown over the picture."""
        self.events.emit("frames", **asdict(figures))
        frames = f"{figures.fps:.0f} fps · p95 {figures.p95_ms:.1f} ms · {figures.dropped} dropped"
        self.notices.figures = (frames, *self._stages, *facts)
        if heard is not None:
            load = round(heard.load, 4)
            self.events.emit(
                "audio", blocks=heard.blocks, load=load, underruns=heard.underruns, late=heard.late
            )  # fmt: skip

    def pace(self, figures: FrameFigures, aimed: float, loaded: LoadedProgram, entered: LoadResult | None) -> None:
        """Reports frames that stay late for two seconds, by the figures of each: once for each program."""
        self._late = self._late + 1 if figures.fps < _ON_TIME * aimed else min(self._late, 0)
        if self._late == _LATE_FOR and entered is not None:
            self._late = -_NEVER
            text = Source(entered.saved.name, decode(entered.saved.data))
            # The names of values are not kept while a patch plays, so the text is built again, which may take some
            # seconds.
            looking = partial(self._look_for_costs, text, loaded, figures.fps, aimed)
            threading.Thread(target=looking, name="weft-costs", daemon=True).start()
        if self._found_late is not None:
            event, problem = self._found_late
            self._found_late = None
            self.events.emit("late", **event)
            self.remark(problem)

    def _look_for_costs(self, text: Source, loaded: LoadedProgram, fps: float, aimed: float) -> None:
        """Finds what to report about frames that are late, for the next second."""
        costs = None
        with suppress(Exception):  # then the statement is not named
            costs = costliest(build(Request(text, loaded.compiled.contexts, probe=header_of)).units, text.name)
        place = None if costs is None else place_named(text, costs[0])
        line = {} if place is None else {"line": text.position(place.start)[0]}
        most = {} if costs is None else {"name": costs[0], "share": round(costs[1], 3)}
        if self._late < 0:  # it still plays
            event: dict[str, object] = {"fps": fps, "intended": aimed, **most, **line}
            self._found_late = event, late(fps, aimed, costs, loaded.size, place)

    def swapped(self, outcome: LoadResult, loaded: LoadedProgram, waited_ms: float) -> None:
        """Reports the first visible frame of a new program."""
        parsing, graph, kernels = outcome.took
        shown = time.monotonic()
        latency = (shown - outcome.saved.moment) * 1e3
        ends = [outcome.saved.moment, *outcome.stages.values(), shown]
        took = [(end - start) * 1e3 for start, end in pairwise(ends)]
        stages = {name: round(each, 3) for name, each in zip((*outcome.stages, "shown"), took, strict=True)}
        recompiled, cached = ((), loaded.changed) if outcome.from_cache else (loaded.changed, ())
        self.events.emit(
            "swap", hash=outcome.saved.hash, parse_ms=round(parsing, 3), graph_ms=round(graph, 3),
            compile_ms=round(kernels, 3), latency_ms=round(latency, 3), waited_ms=round(waited_ms, 3), stages=stages,
            recompiled=recompiled, kept=loaded.kept, cached=cached, tier=loaded.tier(), bridged=loaded.bridging,
            reduced=loaded.reduced,
        )  # fmt: skip
        # What took no time leaves room for the rest.
        self._stages = (" · ".join(f"{name} {each:.0f}" for name, each in stages.items() if each >= 1) + " ms",)
        words = f"updated in {latency:.0f} ms"
        new, total = len(loaded.changed), len(loaded.changed) + len(loaded.kept)
        known = "back to an earlier version" if loaded.compiled.file == self._file else "compiled before"
        self._file = loaded.compiled.file
        changed = known if outcome.from_cache else f"{new} of {total} subgraphs new"
        changed = "its numbers have glided" if outcome.saved.has_glided else changed
        if not outcome.saved.is_turned:
            self.notices.note(words)
            self.echo(f"{words} · {changed}")


def facts_of(
    size: tuple[int, int], running: LoadedProgram | None, choices: Mapping[str, Choice], entered: LoadResult | None
) -> tuple[str, ...]:
    """Facts about the program that plays, shown with the figures of its frames."""
    width, height = size
    contexts = dict.fromkeys(unit.subgraph.context for unit in running.compiled.units) if running else {}
    runs = " · ".join(f"{name} {choices[name].shown}" for name in contexts if name in choices)
    took = sum(entered.took) if entered is not None else 0.0
    bridging = ", ".join(running.bridging) if running else ""
    bridged = f"the processor draws {bridging} until the card is ready" if bridging else ""
    few = "a quarter of the pixels for a moment" if running and running.reduced else ""
    return f"{width}×{height} · compiled in {took:.0f} ms", runs, bridged, few


@dataclass
class MemoryReports:
    """Watches the memory of what plays, and reports what is found."""

    reporter: Reporter
    _watch: MemoryWatch = field(default_factory=MemoryWatch)

    def follow(self, loaded: LoadedProgram, seconds: float, entered: LoadResult | None) -> None:
        """Called after a frame at this time of the performance; see `MemoryWatch.follow`. `entered` has the text."""
        compiled, parts = loaded.compiled, loaded.runner.all_parts
        with suppress(DeviceLostError):  # the next tick finds it, too
            for change in self._watch.follow(compiled.file, compiled.units, parts, seconds, time.monotonic()):
                self._report(change.keys, change.lost, change.since, entered)

    def restart(self, loaded: LoadedProgram | None, entered: LoadResult | None) -> None:
        """Begins memory that is not finite again, when the performance is restarted."""
        with suppress(DeviceLostError):  # the next tick finds it, too
            if loaded is not None and (begun := self._watch.restart(loaded.runner.all_parts)):
                self._report(begun, False, 0.0, entered)

    def heard(self, keys: Sequence[str], seconds: float, entered: LoadResult | None) -> None:
        """Reports slots of a sound that are not finite since a time of the performance."""
        self._report(keys, True, seconds, entered)

    def _report(self, keys: Sequence[str], lost: bool, since: float, entered: LoadResult | None) -> None:
        text = None if entered is None else Source(entered.saved.name, decode(entered.saved.data))
        self.reporter.memory(keys, lost, since, text)
