"""From a saved text to a program that can be played, and the trial that it has to pass before it may.

All of it works alike in the process that plays and in the one that compiles for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from weft.contexts import ContextTable
from weft.errors import Diagnostic, Source, Span, WeftError
from weft.media.pictures import picture_problem
from weft.runtime.build import build
from weft.runtime.files import FileState, read_text, stat_media
from weft.runtime.findings import nothing_to_show, other_windows, places_of
from weft.runtime.playable import Playable
from weft.runtime.program import Stage
from weft.runtime.setup import Setup
from weft.syntax.texts import UnreadableError, decode


@dataclass(frozen=True)
class Saved:
    """A text to be compiled, found at a moment of time.monotonic; `problem` says why there is none. The picture is
    made smaller to fit into `room`, if there is one. When the first one is compiled, nothing plays yet."""

    data: bytes
    moment: float
    problem: str | None = None
    room: tuple[int, int] | None = None
    is_first: bool = False

    @property
    def hash(self) -> str:
        return hashlib.sha256(self.data).hexdigest()[:16]


@dataclass(frozen=True)
class Made:
    """What became of a saved text: a program to play, or the diagnostics that say why there is none. `files` are the
    files that the text names, as they were when they were read, or looked for in vain; `places` says where the output
    statements stand."""

    playable: Playable | None
    diagnostics: tuple[Diagnostic, ...]
    files: Mapping[Path, FileState] = field(default_factory=dict)
    places: Mapping[str, Span] = field(default_factory=dict)

    def with_codes(self, codes: Mapping[str, object]) -> Made:
        """The same with other code for some units, by their hashes: None for what somebody has already, and what he
        has in the place of it."""
        if self.playable is None:
            return self
        units = tuple(replace(u, code=codes.get(u.hash, u.code)) for u in self.playable.units)
        return replace(self, playable=replace(self.playable, units=units))


@dataclass
class _Reader:
    """Reads what a text names, and keeps note of it."""

    files: dict[Path, FileState] = field(default_factory=dict)

    def read(self, path: str) -> str:
        """An included text. Raises UnreadableError."""
        state = self.files[Path(path)] = read_text(Path(path))
        if state.problem:
            raise UnreadableError(state.problem)
        return decode(state.data or b"")

    def probe(self, path: str) -> str | None:
        """What is wrong with a picture."""
        self.files[Path(path)] = stat_media(Path(path))
        return picture_problem(path)


@dataclass(frozen=True)
class Compiler:
    """Compiles the texts of a performance for the backends of its stage."""

    setup: Setup
    contexts: ContextTable
    stage: Stage

    @classmethod
    def of(cls, setup: Setup) -> Compiler:
        """The compiler of this process. Raises WeftError for a backend that cannot be had."""
        setup = setup.decided()
        return cls(setup, *setup.open())

    def compile(self, saved: Saved) -> Made:
        """Never raises for anything that a patch can contain."""
        reader = _Reader()
        try:
            made = self._made(saved, reader)
        except UnreadableError as failure:
            words = f"{self.setup.name} cannot be read: {failure}"
            return Made(None, (Diagnostic("error", "unreadable-file", words),))
        except WeftError as failure:
            return Made(None, failure.diagnostics, reader.files)
        return replace(made, files=reader.files)

    def _made(self, saved: Saved, reader: _Reader) -> Made:
        if saved.problem:
            raise UnreadableError(saved.problem)
        source = Source(self.setup.name, decode(saved.data))
        made = build(
            source, self.contexts, self.setup.settings, probe=reader.probe, read=reader.read, room=saved.room
        )  # fmt: skip
        if not made.patch.sinks:
            return Made(None, (*made.warnings, nothing_to_show(self.contexts)))
        playable = self.stage.translate(made.playable)
        return Made(playable, (*made.warnings, *other_windows(made.patch)), places=places_of(made.patch))
