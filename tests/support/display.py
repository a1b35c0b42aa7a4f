"""A display of the tests' own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def private_display() -> Iterator[None]:
    """A display for the tests alone: they read its screen, move its pointer and press its keys.

    On Linux it is an X server of this process alone, whatever `DISPLAY` says, and the environment leads to it; on
    macOS there is only the real one. A machine without Xvfb fails the test rather than skipping it.
    """
    if sys.platform != "linux":
        yield
        return
    program = shutil.which("Xvfb")
    if program is None:
        pytest.fail("these tests need Xvfb: apt install xvfb xdotool imagemagick")
    reading, writing = os.pipe()
    command = [program, "-displayfd", str(writing), "-screen", "0", "1280x720x24", "-nolisten", "tcp", "-noreset"]
    # In a session of its own, since Ctrl-C is for the tests: a window that loses its server ends the process.
    with subprocess.Popen(command, pass_fds=[writing], stderr=subprocess.DEVNULL, start_new_session=True) as server:
        try:
            os.close(writing)
            with open(reading) as announced:
                number = announced.readline().strip()
            assert number, "Xvfb does not start"
            with pytest.MonkeyPatch.context() as patch:
                for variable in ("WAYLAND_DISPLAY", "XAUTHORITY", "PYOPENGL_PLATFORM"):
                    patch.delenv(variable, raising=False)
                patch.setenv("DISPLAY", f":{number}")
                patch.setenv("XDG_SESSION_TYPE", "x11")
                patch.setenv("LIBGL_ALWAYS_SOFTWARE", "1")
                yield
        finally:
            server.terminate()
