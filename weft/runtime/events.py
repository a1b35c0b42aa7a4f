"""The events of a performance for other programs, one JSON object a line, and the figures about its frames."""

from __future__ import annotations

import json
import math
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import TypeAlias

from weft.errors import error

Plain: TypeAlias = bool | int | float | str | list["Plain"] | dict[str, "Plain"] | None


# How many events may wait for somebody to read them.
_MOST_WAITING = 10_000

# Seconds for what still waits at the end.
_LEAVE = 1.0


class EventLog:
    """Writes events to a file, to stdout (`-`), or nowhere (None). `emit` may be called from any thread, and never
    waits: a thread of its own writes, since whoever reads stdout may stop reading."""

    def __init__(
        self,
        target: str | os.PathLike[str] | None,
        warn: Callable[[str], None] = lambda message: None,
        start: float | None = None,
    ) -> None:
        """A file that exists is replaced. `start` is the moment on `time.monotonic` from which `t` counts, now if
        not given. `warn` is told once when events are lost, from a thread. Raises `WeftError` (`events-file`) if the
        file cannot be made.
        """
        self._start = time.monotonic() if start is None else start
        self._warn = warn
        self._lock = threading.Lock()
        self._target = target
        self._descriptor = self._open(target)
        self._lines: queue.Queue[bytes | None] = queue.Queue(_MOST_WAITING)
        self._has_warned = False
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
            # Written to directly, a line leaves at once, and Python's own stdout has nothing left to fail on.
            if target == "-":
                return os.dup(1)
            return os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        except (OSError, ValueError) as problem:
            words = problem.strerror if isinstance(problem, OSError) else str(problem)
            raise error("events-file", f'cannot write events to "{os.fspath(target)}": {words}') from problem

    def emit(self, event: str, **fields: object) -> None:
        """Writes one event with its time and fields. A number that JSON lacks becomes "nan", "inf" or "-inf"."""
        with self._lock:
            if self._closed:
                return
            # Taken under the lock, so that times in the file never go back.
            seconds = round(time.monotonic() - self._start, 4)
            line = json.dumps({"t": seconds, "event": event, **plain(fields)})
            try:
                self._lines.put_nowait(line.encode() + b"\n")
                return
            except queue.Full:
                pass
        self._lose("nobody reads them")

    def _write_lines(self, descriptor: int) -> None:
        try:
            while (line := self._lines.get()) is not None:
                _write(descriptor, line)
        except OSError as problem:
            self._lose(str(problem.strerror))
        with suppress(OSError):  # a full network drive may say so only here
            os.close(descriptor)

    def _lose(self, reason: str) -> None:
        with self._lock:
            self._closed = True
        if not self._has_warned:
            self._has_warned = True
            self._warn(f"no more events are written to {self._target}: {reason}")

    def close(self) -> None:
        """Ends the log, once what was emitted has been written, or nobody takes it; what is emitted later is ignored.
        May be called twice."""
        with self._lock:
            self._closed = True
        if self._thread is not None:
            with suppress(queue.Full):
                self._lines.put(None, timeout=_LEAVE)
            self._thread.join(_LEAVE)

    def __enter__(self) -> EventLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def plain(value: Mapping[str, object]) -> dict[str, Plain]:
    """A mapping as JSON takes it: numbers of every kind as its own, what it does not know as text."""
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
    """About a second of frames. The percentiles are of the times from one frame shown to the next; `dropped` counts
    the turns in which, at the rate aimed at, a new frame was due and none came.
    """

    fps: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    dropped: int

    def fields(self) -> dict[str, float | int]:
        """The fields of the event `frames`."""
        return asdict(self)


class FrameStats:
    """Gathers the moments at which frames were shown, and gives figures once a second."""

    def __init__(self, fps: float, period: float = 1.0) -> None:
        """`fps` is the rate aimed at, above 0; `period` the seconds between figures."""
        self._fps = fps
        self._period = period
        self._last: float | None = None
        self._times: list[float] = []

    def shown(self, moment: float) -> FrameFigures | None:
        """A frame was shown at this moment, in seconds. Returns the figures when a period is full."""
        if self._last is not None:
            self._times.append(moment - self._last)
        self._last = moment
        total = math.fsum(self._times)
        # A little tolerance, or a rounding error would leave a period a frame longer.
        if not self._times or total < self._period - 1e-6:
            return None
        figures = self._figures(total)
        self._times.clear()
        return figures

    def _figures(self, total: float) -> FrameFigures:
        ordered = sorted(self._times)
        late = sum(max(0, round(seconds * self._fps) - 1) for seconds in ordered)
        p50, p95, p99 = (round(_percentile(ordered, share) * 1000, 3) for share in (0.5, 0.95, 0.99))
        return FrameFigures(round(len(ordered) / total, 2), p50, p95, p99, late)


def _percentile(ordered: list[float], share: float) -> float:
    """The smallest of the values that at least this share of them do not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
