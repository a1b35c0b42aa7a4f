"""Who works is told from who stands still by what Windows says of its threads."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.support import children
from tests.windows.processes import PATIENCE, end, eventually, on_windows, suspend
from weft import child
from weft.child import Child
from weft.platform import system

pytestmark = on_windows


@pytest.fixture
def start() -> Iterator[Callable[..., Child]]:
    with ExitStack() as started:

        def one(does: Callable[..., None], main_thread_works: bool = False) -> Child:
            begun = Child(f"{children.__name__}:{does.__name__}", main_thread_works=main_thread_works)
            started.callback(begun.end)
            assert begun.connection.recv() == begun.pid
            return begun

        yield one


def test_what_works_is_left_alone_and_what_stands_still_is_ended(start: Callable[..., Child]) -> None:
    going = [start(children.busy), start(children.idle), start(children.locked_but_for_a_thread)]
    suspended = start(children.idle)
    standing = [start(children.locked), start(children.locked_but_for_a_thread, True), suspended]
    suspend(suspended)
    eventually(lambda: all(each.poll() is not None for each in standing), "the end of those that stand still")
    assert all(each.stood_still for each in standing)
    assert [each.poll() for each in going] == [None] * len(going)


def test_an_answer_does_not_wait_for_what_a_child_has_started() -> None:
    """As Wine's driver of windows starts a desktop."""
    answered = child.run(f"{children.__name__}:{children.leaving.__name__}", timeout=PATIENCE)
    end(int(answered.stdout))
    assert answered.returncode == 0


def test_the_processor_time_of_a_process_is_its_own() -> None:
    def used(process: subprocess.Popen[bytes]) -> float:
        return system.processor_time(process.pid) or 0.0

    codes = "sum(range(10**12))", "input()"
    busy, idle = (subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) for code in codes)
    with busy, idle:
        eventually(lambda: used(busy) > 2.0, "two seconds of its work")
        assert used(idle) < 1.5
        busy.kill()
        idle.kill()
    assert system.processor_time(0xFFFFFFF0) is None
