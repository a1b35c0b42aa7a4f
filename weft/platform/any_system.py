"""What every system has, and what weft goes without unless a system is known to have it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

_KILL = 9
"""SIGKILL, which Windows does not have."""


class AnySystem:
    """What a system need not say itself."""

    name = sys.platform
    """What Python calls the system."""
    has_metal = False
    """Whether there is Metal."""
    finds_egl = False
    """Whether OpenGL may be found through EGL."""
    has_unseen_windows = False
    """Whether OpenGL draws in windows of any thread that are never shown. It does without EGL then."""
    opengl_platform = ""
    """What PyOpenGL calls the way to OpenGL here, where it may take another one for it."""
    opengl_remedy = "install the driver of the graphics card"
    """What brings OpenGL."""
    portaudio_remedy = ""
    """What brings PortAudio, where no package of Python has it inside."""
    prints_in_libraries = True
    """Whether libraries in C print to stderr, which then has to lead elsewhere for a while."""
    shares_descriptors = True
    """Whether the numbers of open files are the same for Python and for libraries in C."""
    has_jit_link = True
    """Whether LLVM's newer linker works here."""
    code_model = "small"
    """How far code may be from its constants, in LLVM's words."""

    # --- files ---

    def prepare_observer(self, observer: Any) -> None:
        """Has an observer of folders, which is watchdog's, not wait for long when it ends."""

    def prepare_streams(self) -> None:
        """Has this process write letters of any language to its standard streams, where it would not by itself."""

    # --- processes ---

    def hand_over(
        self, process: subprocess.Popen[bytes], sockets: Sequence[int], descriptors: Collection[int] = ()
    ) -> None:
        """Gives a child that has just started what it inherits, where it cannot have that from the start. Raises
        OSError."""

    def bind(self, process: subprocess.Popen[bytes]) -> None:
        """Has a child end with this process, where it cannot do so itself."""

    def end_with_parent(self, number: int = _KILL) -> None:
        """Asks the system to send this process a signal when the thread that has started it ends. Does nothing where a
        system cannot, or where `bind` has done it."""

    def end_in_order(self, session: bool = False) -> None:
        """From now on, a signal that asks this process to end leaves it time to do so, also where the system would end
        it at once; with `session`, the end of the user's session does, too. Call it when these signals are handled."""

    def receive(self, at: socket.socket, most: int) -> tuple[bytes, int | None]:
        """The next packet, of at most `most` bytes, and the number of packets that were dropped so far, modulo 2³²;
        None if it is not known. Raises OSError."""
        return at.recv(most), None

    def count_dropped(self, at: socket.socket) -> None:
        """Has `receive` say how many packets were dropped, where a system can. Raises OSError."""

    def processor_time(self, process: int) -> float | None:
        """The seconds of processor time that a process has used; None if the system does not say at once."""
        return None

    # --- priorities and processors ---

    def wait_precisely(self) -> None:
        """Has waits of this process end when they should, from now on, where a system would let them last longer to
        save power."""

    def set_urgency(self, urgency: int) -> None:
        """Gives this thread, and those that it starts, a realtime priority, if that is allowed."""

    def calmly(self, urgency: int, nicer: int) -> AbstractContextManager[None]:
        """In the block, other threads run before this one, which is `nicer` than those of its parent. Then it has the
        `urgency` again that it had. A thread without any stays as it is, since it could not go back."""
        return nullcontext()

    def lower_priority(self, nicer: int) -> None:
        """Lowers the priority of this thread, and of threads that it starts. Does nothing where priorities of threads
        cannot differ."""

    def cores(self) -> int:
        """The number of cores that this process may use."""
        return os.cpu_count() or 1

    def core_finder(self) -> Callable[[], int] | None:
        """A function that gives the number of the core that its thread runs on; None if the system does not say."""
        return None

    def threads_of(self, process: int) -> list[int]:
        """The system's numbers of the threads of a process; none if that is gone, or the system does not say."""
        return []

    def allowed_cores(self) -> set[int]:
        """The numbers of the cores that this thread may use. Call it only where there is a `core_finder`."""
        return set()

    def restrict(self, threads: Iterable[int], cores: Collection[int]) -> None:
        """Restricts threads to some cores. Does nothing if there is no core, or the system refuses."""

    # --- the machine ---

    def free_memory(self) -> int | None:
        """The bytes of memory that are available without swapping; None if the system does not say."""
        return None

    def may_have_card(self) -> bool:
        """Whether there may be a graphics card."""
        return True
