"""Control signals for motors, valves and the like: a thousand values a second, sent by OSC or written to a file.

This module has the context, its backend, and the outlets for its values. It is registered like a plugin: only the
metadata of the package names it. The environment variable WEFT_HAPTIC says where values go: `osc:HOST:PORT` or
`file:PATH`; without it they are computed but not sent.

Commands that run nothing need only the context, without numpy, so modules that need numpy are imported late.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import socket
import time
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from weft.contexts import ContextSpec
from weft.errors import Diagnostic, WeftError, error

if TYPE_CHECKING:
    from weft.backends.base import Backend, Compiled, Coordinator, DeviceInfo, Env
    from weft.backends.launch import Array, Launch, StateMemory

RATE = 1000
"""Ticks a second: tick n is n / RATE seconds after the start of the performance."""

HAPTIC = ContextSpec(
    name="haptic",
    statements=("haptic",),
    doc="gives a stream of numbers to motors and the like, a thousand times a second",
    example="haptic(me@beatphase, buzz: 0.2 * sin(me@time * 80 * tau))",
    sweeps={"abstime": "element"},
    rate=RATE,
)

VARIABLE = "WEFT_HAPTIC"
_FORMS = f"{VARIABLE}=osc:HOST:PORT sends them by OSC, {VARIABLE}=file:PATH writes them to a file"

# The most ticks that are made up for after a performance was held up.
_MOST_TICKS = RATE

# Ticks. Seconds are rounded, so a tick that is missed by no more than this counts as reached.
_SLACK = 1e-6

# Bytes of ticks in one datagram, unless a single tick has more: every system sends this much by default.
_DATAGRAM = 8192

# Bytes of a time tag, which ends the head of a bundle.
_TAG = 8

# Seconds. Time tags are evenly spaced although frames are not, until the performance is off from the time of day by
# this much, as it is after a pause.
_ASTRAY = 0.1


def ticks_of_frame(number: int, abstime: float, dt: float, due: int | None) -> range:
    """The ticks that a frame computes: from `due`, the first that has not been computed, up to `abstime`. If `due` is
    None or the time went back: those since the previous frame, or at frame 0 those since the start."""
    end = floor(abstime * RATE + _SLACK) + 1
    first = due
    if number == 0:
        first = 0
    elif first is None or first > end:
        first = max(0, floor((abstime - dt) * RATE + _SLACK) + 1)
    return range(max(first, end - _MOST_TICKS), end)


@dataclass(frozen=True, slots=True)
class TickBatch:
    """The ticks of a frame: the `values` [ticks, names], all finite, of consecutive ticks; `abstime` is the frame's."""

    ticks: range
    names: tuple[str, ...]
    values: Array
    abstime: float


class Outlet:
    """Where values go. This outlet sends nothing. An outlet opens its file or socket when it sends the first values."""

    name = f"values are computed, but not sent; {_FORMS}"
    """Its name in messages."""

    def send(self, batch: TickBatch) -> None:
        """Sends the ticks of a frame. Raises OSError."""


class LineFile(Outlet):
    """A file with a line for each tick: its time in seconds, and `name=value` for each of its values."""

    def __init__(self, path: Path) -> None:
        self.name = f"the file {path}"
        self._path = path
        self._descriptor: int | None = None
        self._is_torn = False

    def send(self, batch: TickBatch) -> None:
        if self._is_torn:
            return
        lines = [
            f"{tick / RATE:.3f} " + " ".join(f"{n}={v:.9g}" for n, v in zip(batch.names, values, strict=True)) + "\n"
            for tick, values in zip(batch.ticks, batch.values.tolist(), strict=True)
        ]
        data = "".join(lines).encode()
        try:
            if self._descriptor is None:
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
                weakref.finalize(self, os.close, self._descriptor)
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError:
            # The file may end with half a line, and anything written after that would be misread.
            self._is_torn = True
            raise


class Osc(Outlet):
    """OSC over UDP: for each frame a bundle, which contains a bundle for each tick. Its time tag says when the tick was
    due. Values go to `/haptic/NAME` in single precision. Ticks that do not fit into a datagram are sent in several."""

    def __init__(self, host: str, port: int) -> None:
        """Looks up the host, which may take a while. Raises OSError if there is none."""
        self.name = f"OSC to {host}, port {port}"
        found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        self._family, self._address = found[0], found[4]
        self._socket: socket.socket | None = None
        self._start = 0.0
        """The time of day at which the performance began, had it never paused."""

    def send(self, batch: TickBatch) -> None:
        if self._socket is None:
            self._socket = socket.socket(self._family, socket.SOCK_DGRAM)
            self._socket.setblocking(False)
            weakref.finalize(self, self._socket.close)
        start = time.time() - batch.abstime
        if abs(start - self._start) > _ASTRAY:
            self._start = start
        for datagram in datagrams(batch, self._start):
            self._socket.sendto(datagram, self._address)


class _Pattern(NamedTuple):
    """The beginning of a bundle, up to its time tag; the bytes of a tick in a bundle; and the places in these bytes of
    the tick's time tag and values."""

    intro: bytes
    data: bytes
    tag: slice
    values: tuple[slice, ...]


@functools.lru_cache(maxsize=16)
def _pattern(names: tuple[str, ...]) -> _Pattern:
    from pythonosc.osc_bundle_builder import OscBundleBuilder
    from pythonosc.osc_message_builder import OscMessageBuilder

    whole, tick = OscBundleBuilder(0), OscBundleBuilder(0)
    head = whole.build().dgram
    values = []
    # The length of each element of a bundle precedes it, in 4 bytes. A message ends with its value, in 4 bytes too.
    end = 4 + len(head)
    for name in names:
        message = OscMessageBuilder("/haptic/" + name.replace(".", "/").replace("@", "/"))
        message.add_arg(0.0)
        built = message.build()
        tick.add_content(built)
        end += 4 + built.size
        values.append(slice(end - 4, end))
    whole.add_content(tick.build())
    tag = slice(4 + len(head) - _TAG, 4 + len(head))
    return _Pattern(head[:-_TAG], whole.build().dgram[len(head) :], tag, tuple(values))


def datagrams(batch: TickBatch, start: float) -> Iterator[bytes]:
    """The bundles of a frame of a performance that began at `start`, a time of day. python-osc would need milliseconds
    for each bundle, so it builds one tick as a pattern, into which tags and values are filled."""
    import numpy as np
    from pythonosc.parsing.osc_types import write_date

    pattern = _pattern(batch.names)
    largest = np.finfo(np.float32).max
    singles = np.clip(batch.values, -largest, largest).astype(">f4", order="C")
    words = singles.view(np.uint8).reshape(*singles.shape, 4)
    rows = np.tile(np.frombuffer(pattern.data, np.uint8), (len(batch.ticks), 1))
    for column, place in enumerate(pattern.values):
        rows[:, place] = words[:, column]
    tags = [write_date(start + tick / RATE) for tick in batch.ticks]
    rows[:, pattern.tag] = np.frombuffer(b"".join(tags), np.uint8).reshape(len(tags), -1)
    at_once = max(1, _DATAGRAM // len(pattern.data))
    for first in range(0, len(rows), at_once):
        yield pattern.intro + tags[first] + rows[first : first + at_once].tobytes()


def find_outlet(wanted: str) -> Outlet:
    """The outlet that a text such as `osc:HOST:PORT` names. Raises WeftError if it is not available."""
    kind, _, where = wanted.partition(":")
    match kind:
        case "" if not wanted:
            return Outlet()
        case "osc":
            return _find_osc(where)
        case "file" if where:
            return _find_file(Path(where))
    raise _unusable(f'"{wanted}" does not say where values go', _FORMS)


def _find_osc(where: str) -> Osc:
    host, _, port = where.rpartition(":")
    if not (host and port.isascii() and port.isdigit() and len(port) < 6 and 0 < int(port) < 1 << 16):
        raise _unusable(f'"{where}" is not HOST:PORT', f"for example {VARIABLE}=osc:localhost:9000")
    if importlib.util.find_spec("pythonosc") is None:
        raise _unusable("python-osc is not installed", "pip install python-osc")
    try:
        return Osc(host.removeprefix("[").removesuffix("]"), int(port))
    except (OSError, UnicodeError) as failure:
        raise _unusable(f'the host "{host}" is not found: {_reason(failure)}', "check the spelling") from failure


def _find_file(path: Path) -> LineFile:
    folder, other = path.parent, "name another one"
    try:
        if not folder.is_dir():
            raise _unusable(f"there is no folder {folder}", f"create it, or {other}")
        if path.exists() and not path.is_file():
            raise _unusable(f"{path} is not a regular file", other)
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise _unusable(f"{path} is not writable", other)
    except OSError as failure:
        raise _unusable(f"{path} cannot be written: {_reason(failure)}", other) from failure
    return LineFile(path)


def _unusable(reason: str, remedy: str) -> WeftError:
    return error("haptic-outlet", reason, hint=remedy)


def _reason(failure: Exception) -> str:
    return (failure.strerror if isinstance(failure, OSError) else None) or str(failure)


def backend() -> type[Backend]:
    """The backend's class. It is made in a function because its modules need numpy."""
    import numpy as np

    from weft.backends.base import DeviceInfo
    from weft.backends.cpu import CpuBackend
    from weft.backends.vector.machine import VectorExecutor

    class Haptic(CpuBackend):
        """Gives [ticks, values] in double precision: the ticks between two frames. Infinities and NaN become 0."""

        name = HAPTIC.name
        context = HAPTIC.name
        spec = HAPTIC

        def __init__(self, executor: str = "vector") -> None:
            """Raises WeftError if the outlet is not available."""
            super().__init__(executor)
            if executor != "vm":
                # After some hours, single precision could no longer distinguish ticks.
                self._executor = VectorExecutor(np.float64)
            self._outlet = find_outlet(os.environ.get(VARIABLE, ""))
            self._is_cut_off = False
            # The next tick to compute, by the memory of the subgraph.
            self._due: weakref.WeakKeyDictionary[StateMemory, int] = weakref.WeakKeyDictionary()

        @classmethod
        def probe(cls) -> list[DeviceInfo]:
            wanted = os.environ.get(VARIABLE, "")
            try:
                outlet = find_outlet(wanted)
            except WeftError as failure:
                (problem,) = failure.diagnostics
                return [DeviceInfo(0, f"{VARIABLE}={wanted}", False, problem.message, problem.hint)]
            return [replace(info, name=outlet.name) for info in super().probe()]

        def launch(self, compiled: Compiled, env: Env, coordinator: Coordinator) -> Launch:
            # A trial has to compute something.
            ticks = self._ticks(compiled, env) or range(floor(env.abstime * RATE), floor(env.abstime * RATE) + 1)
            launch = super().launch(compiled, env._replace(dt=1 / RATE), coordinator)
            return replace(launch, shape=(1, len(ticks)), coords={**launch.coords, "abstime": np.array(ticks) / RATE})

        def execute_subgraph(self, compiled: Compiled, env: Env, coordinator: Coordinator) -> Array:
            ticks, outputs = self._ticks(compiled, env), compiled.unit.kernel.outputs
            if not ticks:
                return np.zeros((0, len(outputs)))
            values = super().execute_subgraph(compiled, env, coordinator)[:, 0].T
            self._due[compiled.memory] = ticks.stop
            values = np.where(np.isfinite(values), values, 0.0)
            if outputs:
                names = tuple(label.partition(".")[2] for label in outputs)
                self._send(TickBatch(ticks, names, values, env.abstime), env)
            return values

        def adopt(self, compiled: Compiled, old: Iterable[Compiled], copy: bool = False) -> list[str]:
            before = list(old)
            dues = [self._due[other.memory] for other in before if other.memory in self._due]
            # A subgraph that continues no other starts with nothing due, even if it has run before.
            self._due.pop(compiled.memory, None)
            if dues:
                self._due[compiled.memory] = max(dues)
            return super().adopt(compiled, before, copy)

        def _ticks(self, compiled: Compiled, env: Env) -> range:
            return ticks_of_frame(env.tick, env.abstime, env.dt, self._due.get(compiled.memory))

        def _send(self, batch: TickBatch, env: Env) -> None:
            """Sends values. A failure gives one warning, and does not stop the performance."""
            try:
                self._outlet.send(batch)
                self._is_cut_off = False
            except OSError as failure:
                if not self._is_cut_off:
                    words = f"values do not reach {self._outlet.name}: {_reason(failure)}"
                    env.warn(Diagnostic.of("haptic-lost", words))
                self._is_cut_off = True

    return Haptic
