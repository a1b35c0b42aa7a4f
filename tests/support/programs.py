"""Ill-formed programs: each carries, in the comments it starts with, the whole text of the errors it must cause.

    //! expect-error
    //! <file>:6:5: error: an expression is missing after `+` [missing-expression]
    //!  6 | a = b +
    //!    |        ^

Several diagnostics follow one another with an empty `//!` line between them. `<file>` stands for the file's name, so
that the header does not change with the place of the tests.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path

from weft.errors import Diagnostic

_MARK = "//!"
_FIRST_LINE = "//! expect-error"


def expected_errors(path: Path) -> str:
    """The text that a program's header promises."""
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    assert first == _FIRST_LINE, f"{path} does not start with {_FIRST_LINE!r}"
    header = takewhile(lambda line: line.startswith(_MARK), rest)
    lines = (line.removeprefix(_MARK).removeprefix(" ").rstrip() for line in header)
    return "\n".join(lines).replace("<file>", path.name)


def rendered(diagnostics: Iterable[Diagnostic]) -> str:
    """Diagnostics in the form of a header."""
    text = "\n\n".join(diagnostic.render() for diagnostic in diagnostics)
    return "\n".join(line.rstrip() for line in text.split("\n"))
