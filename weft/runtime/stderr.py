"""Silence on stderr while noisy libraries run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from weft.platform import system


@contextmanager
def suppress_stderr() -> Iterator[None]:
    """Discards what GLFW, Xlib, Mesa, ALSA and others print to stderr; weft reports failures in its own words."""
    if not system.prints_in_libraries:
        yield
        return
    if sys.stderr is not None:
        sys.stderr.flush()
    with ExitStack() as stack:
        try:
            kept = os.dup(2)
            stack.callback(os.close, kept)
            null = os.open(os.devnull, os.O_WRONLY)
            stack.callback(os.close, null)
        except OSError:  # there is no stderr
            yield
            return
        os.dup2(null, 2)
        stack.callback(os.dup2, kept, 2)
        yield
