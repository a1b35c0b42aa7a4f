"""Silence on stderr while libraries start that talk there by themselves."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def suppress_stderr() -> Iterator[None]:
    """Keeps away what GLFW, Xlib, Mesa, ALSA and others print to stderr by themselves; what failed is told in weft's
    words."""
    if sys.stderr is not None:
        sys.stderr.flush()
    with ExitStack() as stack:
        try:
            kept = os.dup(2)
            stack.callback(os.close, kept)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            stack.callback(os.close, nowhere)
        except OSError:  # there is no stderr to keep anything away from
            yield
            return
        os.dup2(nowhere, 2)
        stack.callback(os.dup2, kept, 2)
        yield
