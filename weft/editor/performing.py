"""The performances that play what an editor holds open: found while they run, followed, and spoken to.

Nothing waits for them but who asks. One that hangs, or says what cannot be read, is left alone.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from weft.performances import (
    LONGEST, PROTOCOL, FoundPerformance, UnreachableError, connection, hello_of, line_of, sockets
)
from weft.permissions import real_path

# Seconds between two looks for performances, and until one that did not answer is tried again.
_LOOK, _AGAIN = 1.0, 10.0
# Seconds in which a performance says hello, and in which it answers.
_HELLO, _PATIENCE = 1.0, 30.0
# The bytes that a performance may leave unread.
_MOST_UNREAD = 8_000_000

# Numbers are floats in a performance.
_LARGEST = 1e300

_WANTS = ["playing", "values", "costs"]


def _is_finite(value: object) -> bool:
    """Whether it is a number that can be computed with."""
    return isinstance(value, int | float) and abs(value) < _LARGEST


def _is_said(said: object, **fields: type) -> bool:
    """Whether a performance says a value of something with these fields."""
    return isinstance(said, dict) and _is_finite(said.get("value")) and all(
        isinstance(said.get(name), kind) for name, kind in fields.items()
    )


class LinkedPerformance:
    """A performance that is followed."""

    def __init__(
        self, found: FoundPerformance, reader: asyncio.StreamReader, writer: asyncio.StreamWriter,
        on_change: Callable[[], None],
    ) -> None:  # fmt: skip
        self.found = found
        self.file = found.file and real_path(found.file)
        """The file that plays, without links; None if its texts come from a pipe."""
        self.values_file = found.file
        """The same, as values name it."""
        self.text, self.hash = "", ""
        """What plays, as it was saved or sent."""
        self.values: Mapping[str, Any] = {}
        self.costs: Mapping[str, Any] = {}
        self._reader, self._writer = reader, writer
        self._on_change = on_change
        self._numbers = count()
        self._asked: dict[int, asyncio.Future[Mapping[str, Any]]] = {}
        self.is_over = False

    async def follow(self) -> None:
        """Takes in what the performance says, until it ends."""
        try:
            self.say("want", kinds=_WANTS)
            while line := await self._reader.readline():
                said = json.loads(line)
                if isinstance(said, dict):
                    self._take(said)
        except (OSError, ValueError, RecursionError):
            pass  # it is gone, or no performance
        finally:
            self.close()

    def _take(self, said: Mapping[str, Any]) -> None:
        match said:
            case {"event": "answer", "id": int() as number}:
                future = self._asked.pop(number, None)
                if future is not None and not future.done():
                    future.set_result(said)
                return
            case {"event": "playing", "file": str() as file, "hash": str() as known, "text": str() as text}:
                self.file, self.values_file, self.hash, self.text = real_path(file), file, known, text
            case {"event": "values", "parameters": list() as parameters, "numbers": list() as numbers}:
                told = {
                    "parameters": [each for each in parameters if _is_said(each, name=str)],
                    "numbers": [each for each in numbers if _is_said(each, line=int, column=int)],
                }  # fmt: skip
                self.values = told | {name: said[name] for name in ("time", "level") if _is_finite(said.get(name))}
            case {"event": "costs"}:
                self.costs = {name: value for name, value in said.items() if _is_finite(value)}
        self._on_change()

    def say(self, do: str, **fields: object) -> None:
        """Sends a request, whose answer does not matter."""
        if self.is_over:
            return
        self._writer.write(line_of({"do": do, **fields}))
        if self._writer.transport.get_write_buffer_size() > _MOST_UNREAD:
            self.close()

    async def ask(self, do: str, **fields: object) -> Mapping[str, Any]:
        """The answer to a request, or what takes its place if there is none."""
        number = next(self._numbers)
        future = asyncio.get_running_loop().create_future()
        self._asked[number] = future
        self.say(do, id=number, **fields)
        try:
            return await asyncio.wait_for(future, _PATIENCE)
        except (asyncio.TimeoutError, asyncio.CancelledError):
            return {"ok": False, "problem": f"{self.found.shown} does not answer"}
        finally:
            self._asked.pop(number, None)

    def close(self) -> None:
        """Ends the connection. May be called twice."""
        self.is_over = True
        with suppress(OSError, RuntimeError):
            self._writer.close()
        for future in self._asked.values():
            future.cancel()
        self._on_change()


class Performances:
    """All that play now: what an editor needs of them."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        """`on_change` is called when something is known that was not."""
        self._on_change = on_change
        self._linked: dict[Path, LinkedPerformance] = {}
        self._left_alone: dict[Path, float] = {}
        """Sockets that are not tried before a moment of time.monotonic."""
        self._tasks: set[asyncio.Task[None]] = set()

    def of(self, identity: str) -> LinkedPerformance | None:
        """The performance that plays a file, given without links; of several, the one that was found last."""
        playing = [each for each in self._linked.values() if each.file == identity and not each.is_over]
        return playing[-1] if playing else None

    async def look(self) -> None:
        """Looks for performances, for as long as the server runs."""
        with suppress(UnreachableError):  # the folder is not to be trusted
            while True:
                await self._look()
                await asyncio.sleep(_LOOK)

    async def _look(self) -> None:
        now = time.monotonic()
        found = await asyncio.to_thread(sockets)
        self._linked = {path: each for path, each in self._linked.items() if not each.is_over}
        self._left_alone = {path: until for path, until in self._left_alone.items() if path in found and until > now}
        for path in found:
            if path not in self._linked and path not in self._left_alone:
                self._left_alone[path] = now + _AGAIN
                self._begin(self._link(path))

    async def _link(self, path: Path) -> None:
        """Follows a performance until it ends, if it can be spoken to."""
        writer = None
        try:
            made = await asyncio.to_thread(connection, path)
            reader, writer = await asyncio.open_connection(sock=made, limit=2 * LONGEST)
            found = hello_of(await asyncio.wait_for(reader.readline(), _HELLO), path)
        except ConnectionRefusedError:
            with suppress(OSError):
                path.unlink()  # its process has died
            return
        except (OSError, ValueError, asyncio.TimeoutError):
            if writer is not None:
                writer.close()
            return
        if found.protocol != PROTOCOL:
            self._left_alone[path] = float("inf")
            writer.close()
            return
        linked = LinkedPerformance(found, reader, writer, self._on_change)
        self._linked[path] = linked
        self._left_alone.pop(path, None)
        await linked.follow()

    def _begin(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
