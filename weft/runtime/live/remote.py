"""The link to editors: other programs of the same user send texts without saving them, turn numbers, and are told what
plays. docs/interfaces.md says what both sides say.

A thread of its own reads and writes. The loop that draws hands over references, and never waits: what an editor does
not read is replaced by what is newer, and an editor that reads nothing, or sends what is no request, is let go.
"""

from __future__ import annotations

import json
import math
import os
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hmac import compare_digest
from statistics import median
from typing import Any, Final, Protocol

from weft import __version__
from weft.codes.rows import InternalError
from weft.errors import Diagnostic, Span, did_you_mean, foremost
from weft.performances import LONGEST, PROTOCOL, REQUESTS, WANTED, ListeningSocket, line_of, remove_left_over
from weft.runtime.compiling.compiler import Saved
from weft.runtime.hands.clock import Clock
from weft.runtime.hands.parameters import ParameterBank
from weft.runtime.hands.thread_pace import ThreadPace
from weft.runtime.live.events import EventLog, plain
from weft.runtime.live.saves import Saves
from weft.runtime.live.turned import NotTurnedError, TurnedNumbers, turned_between
from weft.runtime.sound.shared import Figures
from weft.syntax.number_places import Place, numbers_of

# Seconds between two notices with values, and between two with costs. Values that stay the same are said as rarely.
_VALUES, _COSTS = 0.1, 1.0
# Seconds for which an editor may read nothing while something waits for it.
_STALLED = 5.0
# The most editors, and the most lines that wait for one of them.
_MOST_CLIENTS, _MOST_WAITING = 32, 256
# Seconds after which a stranger has to be known, and the most strangers.
_STRANGER, _MOST_STRANGERS = 1.0, 8
# The largest share of a processor that the thread uses, and the bytes that it reads at once.
_SHARE, _PIECE = 0.25, 1 << 16
# The most seconds that the thread waits before it checks whether it should end.
_GLANCE = 0.5
# The most numbers that are turned at once.
_MOST_NUMBERS = 64
# The most lines for people about editors that are let go.
_MOST_LINES = 8
# The least level that is told, in dB.
_QUIETEST = -120.0

# Of these, the newest alone waits for an editor.
_NEWEST: Final = frozenset({"playing", "values", "costs"})


class SoundFigures(Protocol):
    """What is played as sound."""

    @property
    def figures(self) -> Figures | None:
        """Figures about the latest block; None if nothing was played."""


class RefusedWishError(InternalError):
    """A request that is refused. The message is the reason, for people."""


class DroppedEditorError(InternalError):
    """An editor that is let go. The message is the reason, for people."""


@dataclass
class _Client:
    """An editor."""

    socket: socket.socket
    stranger_since: float | None = None
    """Since when it is waited for what only those say who may connect; None when it is known."""
    received: bytearray = field(default_factory=bytearray)
    waiting: deque[tuple[str, bytes]] = field(default_factory=deque)
    """Lines that were not sent, by their kinds."""
    sending: bytes = b""
    """The rest of a line that was sent in part."""
    stalled: float | None = None
    """Since when it reads nothing that waits for it."""
    wants: frozenset[str] = frozenset()
    cursor: int | None = None
    told: dict[str, object] = field(default_factory=dict)
    """What it was told last, by its kind."""

    def put(self, kind: str, line: bytes) -> None:
        """Queues a line. Raises DroppedEditorError if too many wait."""
        if kind in _NEWEST:
            for at, (other, _) in enumerate(self.waiting):
                if other == kind:
                    self.waiting[at] = kind, line
                    return
        elif len(self.waiting) >= _MOST_WAITING:
            oldest = next((at for at, (other, _) in enumerate(self.waiting) if other != "answer"), None)
            if oldest is None:
                raise DroppedEditorError("it asks, and reads no answer")
            del self.waiting[oldest]
        self.waiting.append((kind, line))

    def send(self, now: float) -> bool:
        """Sends as much of what waits as the editor reads; whether something is left. Raises OSError, and
        DroppedEditorError if it has read nothing for long."""
        while self.sending or self.waiting:
            self.sending = self.sending or self.waiting.popleft()[1]
            try:
                sent = self.socket.send(self.sending)
            except BlockingIOError:
                self.stalled = self.stalled or now
                if now - self.stalled > _STALLED:
                    raise DroppedEditorError("it reads nothing of what it is told") from None
                return True
            self.sending, self.stalled = self.sending[sent:], None
        self.stalled = None
        return False


@dataclass(frozen=True)
class _PendingText:
    """A text that was handed over and is to be answered."""

    client: _Client
    number: object
    saved: Saved


@dataclass(frozen=True)
class _TextOutcome:
    """What became of a text."""

    saved: Saved
    diagnostics: tuple[Diagnostic, ...]
    is_accepted: bool


class RemoteControl:
    """Listens for editors. Its methods but those marked otherwise are for the thread that draws, and return at once."""

    def __init__(
        self, saves: Saves, turned: TurnedNumbers, parameters: ParameterBank, clock: Clock, sound: SoundFigures,
        drawn: deque[float], events: EventLog, mention: Callable[[str], None],
    ) -> None:  # fmt: skip
        """Nobody is listened to before `open`. `mention` tells the performer, and is called by another thread. `drawn`
        has the seconds that the last frames took."""
        self._saves, self._turned, self._parameters = saves, turned, parameters
        self._clock, self._sound, self._events = clock, sound, events
        self._drawn, self._mention = drawn, mention
        self.fps = 0.0
        """The frames a second that are aimed at."""
        self.cursor: int | None = None
        """The line of the text that plays at which an editor's cursor is, from 0."""
        self._playing: Saved | None = None
        self._outcomes: deque[_TextOutcome] = deque(maxlen=_MOST_WAITING)
        self._lines: deque[bytes] = deque(maxlen=_MOST_WAITING)
        """Events that are to be told."""
        self._listening: ListeningSocket | None = None
        self._thread: threading.Thread | None = None
        self._is_closing = False
        self._is_woken = False
        self._waker, self._woken = socket.socketpair()
        self._waker.setblocking(False)
        self._woken.setblocking(False)
        # All else is for the thread.
        self._clients: list[_Client] = []
        self._pending: list[_PendingText] = []
        self._numbers: tuple[bytes, Mapping[Place, tuple[int, int]]] = b"", {}
        self._next = {"values": 0.0, "costs": 0.0}
        """When these are due."""
        self._told = 0

    def open(self) -> None:
        """Begins to listen. Raises UnreachableError."""
        self._listening = ListeningSocket.open()
        self._listening.socket.setblocking(False)
        self._thread = threading.Thread(target=self._run, name="weft-remote", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends it. May be called twice."""
        self._is_closing = True
        self._events.listener = None
        if self._listening is not None:
            self._wake()
            if self._thread is not None:
                self._thread.join(_GLANCE)
            self._listening.close()
        for end in (self._waker, self._woken):
            end.close()

    # --- for the thread that draws ---

    def answered(self, saved: Saved, diagnostics: tuple[Diagnostic, ...], is_accepted: bool) -> None:
        """Notes what became of a text."""
        if self._thread is not None and not saved.is_turned:
            self._outcomes.append(_TextOutcome(saved, diagnostics, is_accepted))
            self._wake()

    def follow(self, saved: Saved) -> None:
        """Notes that a text plays from now on."""
        if not saved.is_turned:
            self._playing = saved
            self._wake()

    def _note(self, line: bytes) -> None:
        """Notes an event. Called by any thread."""
        self._lines.append(line)
        self._wake()

    def _wake(self) -> None:
        """Has the thread look at what was noted. For any thread."""
        if self._thread is not None and not self._is_woken:
            self._is_woken = True
            with suppress(OSError):
                self._waker.send(b"w")

    # --- the thread ---

    def _run(self) -> None:
        assert self._listening is not None, "it is open"
        remove_left_over()
        pace = ThreadPace(_SHARE, 1)
        with selectors.DefaultSelector() as selector:
            selector.register(self._woken, selectors.EVENT_READ)
            selector.register(self._listening.socket, selectors.EVENT_READ)
            while not self._is_closing:
                for key, _ in selector.select(self._until_due()):
                    if isinstance(key.data, _Client):
                        self._attend(key.data, selector, pace)
                    elif key.fileobj is self._woken:
                        with suppress(OSError):
                            self._woken.recv(_PIECE)
                        self._is_woken = False
                    else:
                        self._accept(selector)
                self._make_room(selector)
                self._tell(selector)
            for client in self._clients:
                client.socket.close()

    def _until_due(self) -> float:
        wanted = {kind for client in self._clients for kind in client.wants}
        now = time.monotonic()
        return max(0.0, min([_GLANCE, *(due - now for kind, due in self._next.items() if kind in wanted)]))

    def _accept(self, selector: selectors.BaseSelector) -> None:
        assert self._listening is not None, "it is open"
        with suppress(OSError):
            made, _ = self._listening.socket.accept()
            if len(self._clients) >= _MOST_CLIENTS:
                made.close()
                return
            made.setblocking(False)
            client = _Client(made, time.monotonic())
            self._clients.append(client)
            selector.register(made, selectors.EVENT_READ, client)
            if not self._listening.secret.knock:
                self._greet(client)

    def _greet(self, client: _Client) -> None:
        """Begins to speak with an editor."""
        client.stranger_since = None
        file = _absolute(self._saves.file) or None
        hello = {"protocol": PROTOCOL, "weft": __version__, "process": os.getpid(), "file": file}
        client.put("hello", line_of({"event": "hello", **hello}))

    def _let_in(self, client: _Client) -> None:
        """Greets a stranger that has said what it has to. Raises DroppedEditorError, without words, if it has said
        something else."""
        assert self._listening is not None, "it is open"
        secret = self._listening.secret
        line, end, rest = client.received.partition(b"\n")
        if len(line) > len(secret.knock) or (end and not compare_digest(line, secret.knock)):
            raise DroppedEditorError
        if end:
            client.received = rest
            client.put("answer", secret.answer + b"\n")
            self._greet(client)

    def _make_room(self, selector: selectors.BaseSelector) -> None:
        """Lets strangers go that have not said who they are for long, and the oldest if there are many."""
        strangers = [each for each in self._clients if each.stranger_since is not None]
        late = time.monotonic() - _STRANGER
        for at, client in enumerate(strangers):
            if at + _MOST_STRANGERS < len(strangers) or (client.stranger_since or 0.0) < late:
                self._drop(client, selector, "")

    def _attend(self, client: _Client, selector: selectors.BaseSelector, pace: ThreadPace) -> None:
        """Reads what an editor sends, and does it."""
        try:
            piece = client.socket.recv(_PIECE)
            if not piece:
                self._drop(client, selector, "")
                return
            client.received += piece
            if client.stranger_since is not None:
                self._let_in(client)
            if client.stranger_since is None and b"\n" in client.received:
                *lines, rest = client.received.split(b"\n")
                client.received = rest
                for line in filter(None, map(bytes.strip, map(bytes, lines))):
                    self._take(client, line)
            if len(client.received) > LONGEST:
                raise DroppedEditorError(f"it sends more than {LONGEST // 1_000_000} MB without the end of a line")
        except BlockingIOError:
            pass
        except DroppedEditorError as failure:
            self._drop(client, selector, str(failure))
        except OSError:
            self._drop(client, selector, "")
        pace.keep()

    def _drop(self, client: _Client, selector: selectors.BaseSelector, reason: str) -> None:
        """Lets an editor go; with a `reason`, the performer is told."""
        if client not in self._clients:
            return
        with suppress(KeyError, ValueError):
            selector.unregister(client.socket)
        client.socket.close()
        self._clients.remove(client)
        self._pending = [each for each in self._pending if each.client is not client]
        self._follow_wishes()
        if reason and self._told < _MOST_LINES:
            self._told += 1
            self._mention(f"an editor is let go: {reason}")

    def _follow_wishes(self) -> None:
        """Takes over what the editors want, and where their cursors are."""
        wants_events = any("events" in client.wants for client in self._clients)
        self._events.listener = self._note if wants_events and not self._is_closing else None
        self.cursor = next((each.cursor for each in reversed(self._clients) if each.cursor is not None), None)

    # --- requests ---

    def _take(self, client: _Client, line: bytes) -> None:
        """Does what a line asks for. Raises DroppedEditorError if it is no request."""
        try:
            asked = json.loads(line, parse_constant=_refused)
        except (ValueError, RecursionError):
            asked = None
        if not isinstance(asked, dict):
            raise DroppedEditorError("it sends what is no request")
        number = asked.get("id")
        number = number if isinstance(number, str | int) else None
        try:
            if self._do(client, number, asked):
                self._answer(client, number, ok=True)
        except (RefusedWishError, NotTurnedError) as refusal:
            self._answer(client, number, ok=False, problem=str(refusal))

    def _do(self, client: _Client, number: object, asked: Mapping[str, Any]) -> bool:
        """Does what is asked for; False if the answer follows. Raises RefusedWishError and NotTurnedError."""
        match asked:
            case {"do": "text", "text": str() as text}:
                self._pending.append(_PendingText(client, number, self._saves.put(_bytes_of(text))))
                return False
            case {"do": "turn"}:
                self._turn(asked)
            case {"do": "set", "name": str() as name, "value": int() | float() as value} if math.isfinite(value):
                self._set(name, float(value))
            case {"do": "want", "kinds": list() as kinds}:
                if not all(kind in WANTED for kind in kinds):
                    raise RefusedWishError(f"what can be wanted is {', '.join(WANTED)}")
                client.wants, client.told = frozenset(kinds), {}
                self._follow_wishes()
            case {"do": "cursor"}:
                client.cursor = self._line(asked)
                self._follow_wishes()
            case {"do": str() as what} if what in REQUESTS:
                raise RefusedWishError(f"{what} takes {', '.join(REQUESTS[what])}, as docs/interfaces.md says")
            case _:
                raise RefusedWishError(f"there is no such request; there are {', '.join(REQUESTS)}")
        return True

    def _turn(self, asked: Mapping[str, Any]) -> None:
        accepted = self._saves.accepted
        match asked:
            case {"text": str() as text}:
                values = turned_between(accepted.data, _bytes_of(text), self._turned.values.copy())
            case {"numbers": list() as numbers}:
                values = _values_of(numbers)
            case _:
                words = "turn takes numbers, each with line, column and value, or a text with other numbers"
                raise RefusedWishError(words)
        if accepted.data != self._numbers[0]:
            self._numbers = accepted.data, numbers_of(accepted.data)
        for line, column in values:
            if (line, column) not in self._numbers[1]:
                place = f"line {line}, column {column}"
                raise RefusedWishError(f"no number begins in {place} of the text that was played last")
        if len(values) > _MOST_NUMBERS:
            raise RefusedWishError(f"more than {_MOST_NUMBERS} numbers are not turned at once; send a text")
        # At once: the frame that is drawn now would be waited for, and then the next one.
        self._turned.turn_now(self._saves, accepted, values)

    def _set(self, name: str, value: float) -> None:
        name = name if "@" in name else f"{name}@v"
        try:
            self._parameters.set(name, value)
        except KeyError:
            known = [each for spec in self._parameters.specs for each in spec.inputs]
            hint = did_you_mean(name, known)
            raise RefusedWishError(f"there is no parameter {name}{f' ({hint})' if hint else ''}") from None

    def _line(self, asked: Mapping[str, Any]) -> int | None:
        """The line that an editor looks at, from 0; None if it looks at another file."""
        match asked:
            case {"file": str() as file} if _absolute(file) != _absolute(self._saves.file or ""):
                return None
            case {"edited": int() as line} if line > 0:
                return line - 1
            case {"line": int() as line} if line > 0:
                return line - 1
            case {"line": None}:
                return None
        raise RefusedWishError("cursor takes the number of a line, from 1")

    # --- notices ---

    def _answer(self, client: _Client, number: object, **fields: object) -> None:
        client.put("answer", line_of({"event": "answer", "id": number, **fields}))

    def _tell(self, selector: selectors.BaseSelector) -> None:
        """Tells the editors what they want to know."""
        while self._outcomes:
            self._tell_outcome(self._outcomes.popleft(), selector)
        now = time.monotonic()
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        notices = dict(self._notices(now))
        for client in tuple(self._clients):
            try:
                for line in lines if "events" in client.wants else ():
                    client.put("event", line)
                for kind in client.wants & notices.keys():
                    if client.told.get(kind) != notices[kind]:
                        client.told[kind] = notices[kind]
                        client.put(kind, line_of({"event": kind, **plain(notices[kind])}))
                is_left = client.send(now)
                events = selectors.EVENT_READ | (selectors.EVENT_WRITE if is_left else 0)
                if selector.get_key(client.socket).events != events:
                    selector.modify(client.socket, events, client)
            except DroppedEditorError as failure:
                self._drop(client, selector, str(failure))
            except (OSError, KeyError):
                self._drop(client, selector, "")

    def _notices(self, now: float) -> Iterator[tuple[str, Mapping[str, object]]]:
        """What is to be told now, by its kind."""
        wanted = {kind for client in self._clients for kind in client.wants}
        playing = self._playing
        if "playing" in wanted and playing is not None:
            text = playing.data.decode("utf-8", "replace")
            yield "playing", {"file": _absolute(playing.name), "hash": playing.hash, "text": text}
        for kind, seconds, found in (("values", _VALUES, self._values), ("costs", _COSTS, self._costs)):
            if kind in wanted and now >= self._next[kind]:
                self._next[kind] = now + seconds
                yield kind, found()

    def _values(self) -> Mapping[str, object]:
        bank, figures = self._parameters, self._sound.figures
        parameters = []
        for spec in bank.specs:
            for name in spec.inputs:
                with suppress(KeyError):  # another program plays by now
                    place = {"file": _absolute(spec.path), "line": spec.line}
                    parameters.append({"name": name, "value": bank.value(name), **place})
        values = sorted(self._turned.values.copy().items())
        numbers = [{"line": line, "column": column, "value": value} for (line, column), value in values]
        level = None
        if figures is not None:
            level = round(max(_QUIETEST, 20 * math.log10(figures.level)), 1) if figures.level > 1e-6 else _QUIETEST
        time_now = round(self._clock.latest.time, 3)
        return {
            "time": time_now, "paused": self._clock.paused, "parameters": parameters, "numbers": numbers, "level": level
        }

    def _costs(self) -> Mapping[str, object]:
        drawn, figures = self._drawn.copy(), self._sound.figures
        draw = round(median(drawn) * 1e3, 3) if drawn else None
        budget = round(1e3 / self.fps, 3) if self.fps else None
        load = None if figures is None else round(figures.load, 4)
        return {"draw_ms": draw, "budget_ms": budget, "fps": self.fps, "load": load}

    def _tell_outcome(self, outcome: _TextOutcome, selector: selectors.BaseSelector) -> None:
        """Answers the texts that were handed over before this one, and this one."""
        done = [each for each in self._pending if each.saved.moment <= outcome.saved.moment]
        self._pending = [each for each in self._pending if each.saved.moment > outcome.saved.moment]
        for each in done:
            fields: dict[str, object] = {"ok": False, "problem": "another text has come before it was compiled"}
            if each.saved.data == outcome.saved.data:
                shown, left_out = foremost(outcome.diagnostics)
                fields = {"ok": outcome.is_accepted, "diagnostics": [_described(d) for d in shown]}
                fields |= {"left_out": left_out} if left_out else {}
            try:
                self._answer(each.client, each.number, hash=each.saved.hash, **fields)
            except DroppedEditorError as failure:
                self._drop(each.client, selector, str(failure))


def _refused(constant: str) -> float:
    """JSON has neither nan nor inf."""
    raise ValueError(constant)


def _bytes_of(text: str) -> bytes:
    """Raises RefusedWishError."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise RefusedWishError("the text is not one in UTF-8") from None


def _values_of(numbers: Sequence[object]) -> dict[Place, float]:
    """Raises RefusedWishError."""
    found = {}
    for each in numbers:
        match each:
            case {"line": int() as line, "column": int() as column, "value": int() | float() as value} if math.isfinite(
                value
            ):
                found[line, column] = float(value)
            case _:
                raise RefusedWishError("each number has a line, a column and a finite value")
    return found


def _absolute(name: str) -> str:
    """The absolute path of a file; what is no file stays as it is."""
    try:
        return name if not name or name.startswith("<") else os.path.abspath(name)
    except OSError:  # the current folder is gone
        return name


def _described(found: Diagnostic) -> dict[str, object]:
    """A diagnostic as `weft check --json` has it, with absolute paths, and with its further places."""
    related = [{"message": words, **_placed(span)} for span, words in found.related]
    return {**found.to_json(), **(_placed(found.span) if found.span else {}), "related": related}


def _placed(span: Span) -> dict[str, object]:
    source = span.source
    line, column = source.position(span.start)
    end_line, end_column = source.position(span.end)
    file = source.name if source.library else _absolute(source.name)
    return {"file": file, "line": line, "column": column, "end_line": end_line, "end_column": end_column}
