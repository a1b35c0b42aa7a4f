"""What a player is told while a performance runs: mistakes, what happened just now, and how well it goes."""

from __future__ import annotations

import time
from collections.abc import Callable

from weft.errors import Diagnostic, foremost
from weft.runtime.screens.screen import Overlay

# Seconds for which a note, and warnings about a text that plays all the same, stay on the picture.
_NOTE = 2.0
_WARNINGS = 6.0


class Notices:
    """Decides what is written over the picture at a moment. `now` gives seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._problems: tuple[Diagnostic, ...] = ()
        self._left_out = 0
        self._problems_end = 0.0
        self._note = ""
        self._note_end = 0.0
        self._figures: tuple[str, ...] = ()
        self._paused = False
        self._errors_wanted = True
        self._figures_wanted = False

    def set_problems(self, problems: tuple[Diagnostic, ...]) -> None:
        """Errors are shown until there are others, or none; warnings for some seconds."""
        lasting = any(d.severity == "error" for d in problems)
        self._problems, self._left_out = foremost(problems)
        self._problems_end = float("inf") if lasting else self._now() + _WARNINGS

    def add_warning(self, problem: Diagnostic) -> None:
        """A warning for some seconds, besides those that are shown. As long as there are errors, it is a note."""
        if any(d.severity == "error" for d in self._problems):
            self.note(problem.message)
            return
        shown = self._problems if self._now() < self._problems_end else ()
        self.set_problems((*shown, problem))

    def note(self, words: str) -> None:
        """Something that happened just now."""
        self._note, self._note_end = words, self._now() + _NOTE

    def set_figures(self, lines: tuple[str, ...]) -> None:
        self._figures = lines

    def set_paused(self, paused: bool) -> None:
        """A pause is noted for as long as it lasts."""
        self._paused = paused

    def toggle_errors(self) -> None:
        """Hides what is wrong with the text, or shows it again, warnings that have gone by too."""
        self._errors_wanted = not self.overlay().errors
        if self._errors_wanted:
            self._problems_end = float("inf")
            if not self._problems:
                self.note("no errors")

    def toggle_figures(self) -> None:
        """Shows how well it runs, or hides it."""
        self._figures_wanted = not self._figures_wanted

    def overlay(self) -> Overlay:
        """What is written over the picture now."""
        now = self._now()
        errors = self._problems if self._errors_wanted and now < self._problems_end else ()
        note = self._note if now < self._note_end else "paused" if self._paused else ""
        left_out = self._left_out if errors else 0
        return Overlay(errors, note, self._figures if self._figures_wanted else (), left_out)
