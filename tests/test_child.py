"""Children: they end with their parent, and are missed when they stand still, but not when they work."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support import children
from weft import child
from weft.child import Child
from weft.platform.posix import Posix

# Long enough for a machine with other work; a test that waits this long has failed.
PATIENCE = 30.0
ROOT = Path(__file__).parents[1]
LINUX = sys.platform == "linux"


@pytest.fixture
def start() -> Iterator[Callable[..., Child]]:
    """Starts what a child does, and waits until it does it."""
    with ExitStack() as stack:

        def start(does: Callable[..., None], main_thread_works: bool = False) -> Child:
            started = Child(f"{children.__name__}:{does.__name__}", main_thread_works=main_thread_works)
            stack.callback(started.end)
            assert started.connection.poll(PATIENCE)
            assert started.connection.recv() == started.pid
            return started

        yield start


def eventually(happens: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happens():
        assert time.monotonic() < deadline, f"{what} does not happen"
        time.sleep(0.01)


def is_gone(pid: int) -> bool:
    """Whether no process of this number runs any more. A process whose end was not collected does not run."""
    told = subprocess.run(["ps", "-o", "state=", "-p", str(pid)], stdout=subprocess.PIPE, check=False).stdout
    return told.strip()[:1] in {b"", b"Z"}


@pytest.mark.long
def test_what_stands_still_is_killed_and_what_works_is_not(start: Callable[..., Child]) -> None:
    # Those that continue are watched for longer than those that do not.
    going = [start(does) for does in (children.idle, children.busy, children.allowed)]
    going += [start(children.idle, main_thread_works=True), start(children.locked_but_for_a_thread)]
    stopped, allowed = start(children.idle), start(children.allowed)
    standing = [start(children.locked), start(children.locked_for_all), stopped]
    if LINUX:
        standing += [start(children.locked_but_for_a_thread, main_thread_works=True), allowed]
    for each in (stopped, allowed):
        each.send_signal(signal.SIGSTOP)
    eventually(lambda: all(each.poll() is not None for each in standing), "the end of those that stand still")
    assert all(each.stood_still for each in standing)
    assert [each.poll() for each in going] == [None] * len(going)
    going[0].connection.send("there")
    assert going[0].connection.recv() == "there"


def test_whoever_starts_a_child_learns_of_its_end(start: Callable[..., Child]) -> None:
    told: list[int] = []
    idle = start(children.idle)
    idle.ended = lambda: told.append(idle.pid)
    idle.kill()
    eventually(lambda: told == [idle.pid], "word of the end")
    assert not idle.stood_still


@pytest.mark.long
def test_a_machine_that_was_suspended_misses_nobody() -> None:
    with _parent("idle", "idle") as (parent, pids):
        for pid in (parent.pid, *pids):
            os.kill(pid, signal.SIGSTOP)
        # Longer than it takes until one that stands still is killed.
        time.sleep(child._STILL + child._GLANCE)
        for pid in (parent.pid, *pids):
            os.kill(pid, signal.SIGCONT)
        time.sleep(child._GLANCE)
        assert _all_there(parent)
        assert not any(is_gone(pid) for pid in pids)


@pytest.mark.skipif(not LINUX, reason="elsewhere, what is stopped or holds Python's lock ends when it goes on")
def test_none_outlives_its_parent() -> None:
    with _parent("idle", "busy", "locked_for_all", "allowed") as (parent, pids):
        os.kill(pids[0], signal.SIGSTOP)
        parent.kill()
        eventually(lambda: all(is_gone(pid) for pid in pids), "the end of its children")


def test_what_is_asked_does_not_outlive_who_asks(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    code = "from tests.support.children import asking; asking()"
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "TOLD": str(told)}) as parent:
        eventually(told.exists, "the start of its child")
        parent.kill()
    eventually(lambda: is_gone(int(told.read_text())), "the end of its child")


def test_an_answer_does_not_wait_for_what_a_child_has_started() -> None:
    answered = child.run(f"{children.__name__}:{children.leaving.__name__}", timeout=PATIENCE)
    os.kill(int(answered.stdout), signal.SIGKILL)
    assert answered.returncode == 0


def test_an_answer_is_waited_for_without_looking_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    sleeps: list[float] = []
    monkeypatch.setattr(subprocess, "time", SimpleNamespace(sleep=sleeps.append))
    answered = child.run(f"{children.__name__}:{children.leaving.__name__}", timeout=PATIENCE)
    os.kill(int(answered.stdout), signal.SIGKILL)
    assert not sleeps


def test_one_that_takes_longer_than_it_may_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "pid"
    monkeypatch.setenv("TOLD", str(told))
    timeout = 0.5
    while not told.exists():  # it was killed before it began
        timeout *= 2
        with pytest.raises(subprocess.TimeoutExpired):
            child.run(f"{children.__name__}:{children.never.__name__}", timeout=timeout)
    assert is_gone(int(told.read_text()))


# Makes a terminal its own, which stops what writes to it in the background, and says how its child fares after Ctrl-C.
_AT_A_TERMINAL = """\
import os, sys, termios, time
from weft.child import Child
terminal = os.open(sys.argv[1], os.O_RDWR)
attributes = termios.tcgetattr(terminal)
attributes[3] |= termios.TOSTOP
termios.tcsetattr(terminal, termios.TCSANOW, attributes)
os.dup2(terminal, 2)
child = Child("tests.support.children:complaining")
try:
    assert child.connection.poll(30), "stopped"
    child.connection.recv()
    print("ready", flush=True)
    time.sleep(30)
except KeyboardInterrupt:
    child.connection.send("still here")
    print(child.connection.poll(30) and child.connection.recv(), flush=True)
"""


def test_one_writes_to_the_terminal_of_its_parent_and_survives_ctrl_c() -> None:
    keyboard, terminal = os.openpty()
    command = [sys.executable, "-c", _AT_A_TERMINAL, os.ttyname(terminal)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        os.write(keyboard, b"\x03")
        assert parent.stdout.readline() == b"still here\n"
    assert b"a complaint" in os.read(keyboard, 1000)
    os.close(keyboard)
    os.close(terminal)


@pytest.mark.skipif(not LINUX or sys.version_info < (3, 11), reason="only Linux shares processors among sessions")
def test_one_competes_with_its_parent_by_priority(start: Callable[..., Child]) -> None:
    """In a session of its own it would do so as an equal."""
    started = start(children.idle)
    assert os.getsid(started.pid) == os.getsid(0)
    assert os.getpgid(started.pid) == started.pid


def test_one_whose_parent_was_gone_before_ends_at_once() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = child._command(f"{children.__name__}:idle", [theirs.fileno()], ("0", "0"))
        command[command.index(str(os.getpid()))] = "1"
        ended = subprocess.run(command, pass_fds=[theirs.fileno()], timeout=PATIENCE, check=False)
    assert ended.returncode == 1


def test_one_whose_lifeline_is_cut_ends() -> None:
    ours, theirs = socket.socketpair()
    told, tell = socket.socketpair()
    with told, tell, theirs:
        command = child._command(f"{children.__name__}:allowed", [tell.fileno(), theirs.fileno()], ())
        with subprocess.Popen(command, pass_fds=[tell.fileno(), theirs.fileno()]) as lost:
            assert told.recv(1)
            ours.close()
            assert lost.wait(PATIENCE) == -signal.SIGKILL


class _parent:  # noqa: N801 -- used like a function
    """A parent of children that do something, in a process of its own, and their numbers."""

    def __init__(self, *does: str) -> None:
        code = f"from tests.support.children import parent; parent(*{does})"
        self._count = len(does)
        self._process = subprocess.Popen(
            [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> tuple[subprocess.Popen[str], list[int]]:
        assert self._process.stdout is not None
        return self._process, [int(self._process.stdout.readline()) for _ in range(self._count)]

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def _all_there(parent: subprocess.Popen[str]) -> bool:
    assert parent.stdin is not None
    assert parent.stdout is not None
    parent.stdin.write("\n")
    parent.stdin.flush()
    return parent.stdout.readline() == "True\n"


@pytest.mark.skipif(not LINUX, reason="what Linux shows otherwise is shown by ps alone")
@pytest.mark.parametrize("does", ["while True: pass", "import time; time.sleep(1000)"])
def test_ps_tells_the_same(does: str) -> None:
    # No child of ours: ps takes a while on a busy machine, and one that stands still would be killed meanwhile.
    with subprocess.Popen([sys.executable, "-c", does]) as started:
        try:
            eventually(lambda: Posix().process_state(started.pid).is_busy == ("while" in does), "that")
            assert not Posix().process_state(started.pid).is_stopped
            started.send_signal(signal.SIGSTOP)
            eventually(lambda: Posix().process_state(started.pid).is_stopped, "the stop")
        finally:
            started.kill()
