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
    """A code, and what it tells somebody who performs: `meaning` says why it is said, and what to do. `wrong` is a text
    about which it is said, `right` the same without the mistake; where a short text alone cannot bring it about,
    `arises` says what does. A command that ends with errors of this code has its `exit_code`; a warning changes none.
    `mild` says when an error is only a warning, if it may be one."""

    code: str
    meaning: str
    wrong: str = ""
    right: str = ""
    arises: str = ""
    severity: Severity = "error"
    exit_code: int = ERRORS
    mild: str = ""

    @property
    def consequence(self) -> str:
        """The severity, and the exit code of a command that ends with it."""
        return "warning" if self.severity == "warning" else f"error, exit code {self.exit_code}"

    @property
    def explanation(self) -> str:
        """Why it is said, and what to do."""
        return f"{self.meaning} It is only a warning {self.mild}." if self.mild else self.meaning


class InternalError(Exception):
    """A failure that one part of weft reports to another. It has no code: whoever catches it knows what it means for
    the user, and says that."""
