"""The other end of the link to a performance: what an editor does there."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.support.interfaces import check_event, spelled, table
from tests.support.performance import PATIENCE
from weft.performances import PerformanceLink, running

_SHORT = None if sys.platform == "win32" else "/tmp"
NOTICES = {spelled(kind)[0]: frozenset(spelled(fields)) for kind, _, fields in table("Notices")}


@contextmanager
def own_runtime_folder() -> Iterator[Path]:
    """A folder for sockets, which no other test has. Its path is short, as that of a socket has to be."""
    variable = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_RUNTIME_DIR"
    before, folder = os.environ.get(variable), tempfile.mkdtemp(prefix="wl-", dir=_SHORT)
    os.environ[variable] = folder
    try:
        yield Path(folder)
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before
        # Windows keeps the files of a process a moment longer than the process.
        shutil.rmtree(folder, ignore_errors=sys.platform == "win32")


def _only_link(file: Path | None) -> PerformanceLink:
    """A link to the only performance that is found, or to that of a file."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = [each for each in running() if file is None or each.file == str(file)]
        # On a busy machine it may say hello later than it is listened to.
        with suppress(TimeoutError):
            if len(found) == 1:
                return PerformanceLink.open(found[0].path)
        assert time.monotonic() < deadline, found
        time.sleep(0.02)


class LinkedEditor:
    """Speaks to the only performance that is found, or to that of a file."""

    def __init__(self, file: Path | None = None) -> None:
        self.link = _only_link(file)
        self.heard: list[dict[str, Any]] = []
        """What was said besides answers."""

    def __enter__(self) -> LinkedEditor:
        return self

    def __exit__(self, *_: object) -> None:
        self.link.__exit__()

    def ask(self, do: str, **fields: object) -> dict[str, Any]:
        """The answer to a request."""
        self.link.say(do, id=do, **fields)
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """The next answer."""
        while (heard := self._hear())["event"] != "answer":
            self.heard.append(heard)
        return heard

    def wait_for(self, event: str, **fields: object) -> dict[str, Any]:
        """The first notice of a kind that has these fields, and was not waited for before."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for heard in self.heard:
                if heard["event"] == event and all(heard[name] == value for name, value in fields.items()):
                    self.heard.remove(heard)
                    return heard
            self.heard.append(self._hear())
        raise AssertionError(f"no {event} with {fields}")

    def _hear(self) -> dict[str, Any]:
        heard = self.link.hear(PATIENCE)
        assert heard is not None, "nothing is said"
        if "t" in heard:
            check_event(heard)
        else:
            assert heard.keys() - {"event"} <= NOTICES[heard["event"]], heard
        return heard
