"""A real `weft run` in a process of its own, with its events, for tests that save files and press keys."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.forks import Fork, usual_forks
from tests.support.interfaces import check_event
from weft.platform import system

Event = dict[str, Any]

# Long enough for a machine with other work; a test that waits this long has failed. Wine takes seconds for a process.
PATIENCE = 30.0 if sys.platform != "win32" else 90.0


_WEFT = ("-m", "weft")


def _apart(is_apart: bool) -> dict[str, Any]:
    """The arguments of `subprocess.Popen` for a process that gets signals of its own."""
    if sys.platform == "win32":
        # A group of its own does not hear that its console is closed, by Wine.
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP if is_apart else subprocess.CREATE_NO_WINDOW}
    return {"start_new_session": is_apart}


class Performance:
    """Ends with the `with` block, whatever became of it. By a fork, if that is equivalent to a new process."""

    process: subprocess.Popen[bytes] | Fork

    def __init__(
        self, patch: Path, *options: str, python: tuple[str, ...] = _WEFT, stderr: int | None = None,
        start_new_session: bool = False, cwd: Path | None = None,
    ) -> None:  # fmt: skip
        self.patch = patch
        self._events = patch.with_suffix(".events")
        self._errors = patch.with_suffix(".stderr")
        self._events.unlink(missing_ok=True)
        self._checked = 0
        arguments = ["run", str(patch), "--events", str(self._events), *options]
        found = usual_forks() if python == _WEFT and stderr is None else None
        with self._errors.open("wb") as errors, open(os.devnull, "wb") as nothing:
            if found is not None and found.suit(os.environ):
                out = nothing.fileno()
                self.process = found.start(
                    arguments, cwd or Path.cwd(), os.environ, out, errors.fileno(), own_session=start_new_session
                )
                return
            self.process = subprocess.Popen(
                [sys.executable, *python, *arguments], stderr=errors if stderr is None else stderr, stdout=nothing,
                cwd=cwd, **_apart(start_new_session),
            )  # fmt: skip

    def __enter__(self) -> Performance:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def events(self) -> list[Event]:
        """The events so far, none of which has more than docs/interfaces.md lists."""
        if not self._events.exists():
            return []
        lines = self._events.read_text("utf-8").splitlines(keepends=True)
        found = [json.loads(line) for line in lines if line.endswith("\n")]
        for event in found[self._checked :]:
            check_event(event)
        self._checked = len(found)
        return found

    @property
    def stderr(self) -> str:
        return self._errors.read_text("utf-8")

    @property
    def hash(self) -> str:
        """The hash that events give for the patch as it is on disk."""
        return hashlib.sha256(self.patch.read_bytes()).hexdigest()[:16]

    def save(self, text: str | bytes) -> None:
        """Saves the patch the way editors do: another file, renamed."""
        data = text if isinstance(text, bytes) else text.encode()
        partial = self.patch.with_suffix(".saving")
        partial.write_bytes(data)
        system.replace(partial, self.patch)

    def wait_for(self, name: str, count: int = 1, when: Callable[[Event], bool] = lambda event: True) -> Event:
        """The `count`-th event of a name that fulfils a condition."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            found = [e for e in self.events if e["event"] == name and when(e)]
            if len(found) >= count:
                return found[count - 1]
            assert self.process.poll() is None, f"weft ended with {self.process.returncode}:\n{self.stderr}"
            time.sleep(0.005)
        raise AssertionError(f"no event {name!r} in time; events: {self.events}\n{self.stderr}")

    def happens(self, name: str, count: int, seconds: float) -> bool:
        """Whether there is the `count`-th event of a name within some seconds."""
        deadline = time.monotonic() + seconds
        while self.count(name) < count and time.monotonic() < deadline:
            time.sleep(0.005)
        return self.count(name) >= count

    def latest(self, name: str) -> Event:
        """The last event of a name; there has to be one."""
        return next(event for event in reversed(self.events) if event["event"] == name)

    def count(self, name: str) -> int:
        """How many events of a name there were so far."""
        return sum(event["event"] == name for event in self.events)

    def wait_for_words(self, words: str, count: int = 1) -> None:
        """Waits until something is said to the player, for the `count`-th time. Events come by another way, and may be
        earlier."""
        deadline = time.monotonic() + PATIENCE
        while self.stderr.count(words) < count:
            assert time.monotonic() < deadline, f"nobody said {words!r}:\n{self.stderr}"
            time.sleep(0.005)

    def ended(self) -> int:
        """Waits for the end, and gives the exit code."""
        return self.process.wait(PATIENCE)
