"""How the user calls weft, so that what a message tells to type next works as it stands."""

from __future__ import annotations

import os
import shlex
import shutil
import sys


def call(*args: str | os.PathLike[str]) -> str:
    """A command line of weft for the user's shell: `weft run hello.weft`."""
    return " ".join([_program(), *(shlex.quote(str(arg)) for arg in args)])


def _program() -> str:
    typed = sys.argv[0]
    name = os.path.basename(typed)
    if name == "__main__.py":
        python = os.path.basename(sys.executable)
        return f"{python if shutil.which(python) == sys.executable else shlex.quote(sys.executable)} -m weft"
    found = shutil.which(name)
    if found is not None and os.path.realpath(found) == os.path.realpath(typed):
        return name
    return shlex.quote(typed)
