"""The shape of a row in the tables of codes, exit codes, and the base of exceptions that have no code."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

# Exit codes, on which scripts rely. A failure of weft itself has one of its own.
DONE: Final = 0
ERRORS: Final = 1
USAGE: Final = 2
"""A word of the command line is wrong."""
MISSING: Final = 3
"""FILE itself, a device or a package is missing, or cannot be used."""
INTERNAL: Final = 70
INTERRUPTED: Final = 130

Severity = Literal["error", "warning"]


class CodeSpec(NamedTuple):
    """A code, and its explanation for a performer: `meaning` says why it is reported, and what to do. `wrong` is a text
    about which it is reported, `right` the same without the mistake. If a short text alone cannot cause it, `arises`
    says what does. A command that ends with errors of this code has its `exit_code`; a warning changes none. If it may
    be a warning, `mild` says when. `gone_since` is the version that reports it no more: its row stays, because scripts
    and saved messages may name it."""

    code: str
    meaning: str
    wrong: str = ""
    right: str = ""
    arises: str = ""
    severity: Severity = "error"
    exit_code: int = ERRORS
    mild: str = ""
    gone_since: str = ""

    @property
    def consequence(self) -> str:
        """The severity, and the exit code of a command that ends with it."""
        if self.gone_since:
            return f"no longer given since weft {self.gone_since}"
        return "warning" if self.severity == "warning" else f"error, exit code {self.exit_code}"

    @property
    def explanation(self) -> str:
        """Why it is reported, and what to do."""
        return f"{self.meaning} It is only a warning {self.mild}." if self.mild else self.meaning


class InternalError(Exception):
    """A failure that one part of weft reports to another. It has no code: the part that catches it knows what it means
    for the user, and reports that."""
