"""How hypothesis works here: without time limits, which a loaded machine would break, and in CI with the same examples
every time, so that a run says something about the change and not about the dice. Signals as tests expect them; SIGTERM
ends tests as Ctrl-C does. What a driver without a card does. How often Python looks for garbage. And what one worker
imports first, and runs, one after another."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import warnings
from collections.abc import Collection, Generator
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.ends import terminate_in_order
from tests.support.together import LISTENING, group_of, place_of, some_of, turn
from weft.platform import system

settings.register_profile("weft", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("weft"), derandomize=True, max_examples=50)
_TESTS = Path(__file__).parent
_PROFILE = "ci" if os.environ.get("CI") else "weft"
settings.load_profile(_PROFILE)

# Tests draw small pictures by many shaders. Where the processor draws, the driver is to compile them soon, not well.
# What they show is the same; processes that tests start inherit it.
os.environ.setdefault("GALLIVM_PERF", "nopt")

# A compile makes many objects that live until it ends, and tests compile all the time: as often as Python looks for
# garbage by itself, a fourth of the time would go into that.
gc.set_threshold(50_000, 10, 10)

# Signals may arrive ignored: in a job that a shell runs in the background, under nohup, in some CI. What tests start
# would inherit that, but not a handler.
if sys.platform != "win32" and threading.current_thread() is threading.main_thread():
    for _number, _handler in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGQUIT, lambda *_: None),
        (signal.SIGHUP, lambda *_: None),
    ):
        if signal.getsignal(_number) is signal.SIG_IGN:
            signal.signal(_number, _handler)
    terminate_in_order()


def _is_short(config: pytest.Config) -> bool:
    """Whether the tests are those of `make test`."""
    return bool(config.getoption("markexpr") == "not long")


def pytest_configure(config: pytest.Config) -> None:
    """`make test` tries fewer examples than `make test-all`. When the process that leads is killed, its workers end."""
    if _is_short(config):
        settings.register_profile("short", settings.get_profile(_PROFILE), max_examples=10)
        settings.load_profile("short")
    if hasattr(config, "workerinput"):
        system.end_with_parent(signal.SIGTERM)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Where all tests are to be collected, each worker first imports its share of them: what pytest makes of a file is
    kept, so that the others need not make it again, which takes longer than all else in a new checkout."""
    own = getattr(session.config, "workerinput", None)
    if own is None or session.config.args != ["tests"]:
        return
    number, count = int(own["workerid"].removeprefix("gw")), own["workercount"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # as when they are collected, which tells of all that is suppressed here
        for path in sorted(_TESTS.rglob("test_*.py"))[number::count]:
            with suppress(Exception, pytest.skip.Exception):
                import_module(".".join(path.relative_to(_TESTS.parent).with_suffix("").parts))


@cache
def _give_way(group: str) -> None:
    """Yields to the worker that listens to sounds, which are heard in real time; called with a worker's first group."""
    if group != LISTENING and hasattr(os, "nice"):
        os.nice(5)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Where there are several workers, only one listens. What tests before have left, such as programs that others
    compare with, is not searched for garbage whenever this one collects, as a performance does when it begins."""
    gc.freeze()
    if hasattr(item.config, "workerinput") and not _give_way.cache_info().currsize:
        _give_way(group_of(item.nodeid))


def _take(config: pytest.Config, items: list[pytest.Item], names: Collection[str]) -> None:
    """Leaves the tests with these whole names."""
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in names])
    items[:] = [item for item in items if item.nodeid in names]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    names = [item.nodeid for item in items]
    short = some_of([item.nodeid for item in items if item.get_closest_marker("long") is None])
    if _is_short(config):
        _take(config, items, short)
    elif os.environ.get("CI"):
        _take(config, items, short | turn(names))
    items.sort(key=lambda item: place_of(item.nodeid))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """The tests themselves stay until the end, and are never garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Groups as `tests.support.together` has them."""
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling  # not wherever pytest is

    config.option.loadscopereorder = False

    class Together(LoadScopeScheduling):
        """Hands out groups, in the order of their first tests."""

        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

        def _reschedule(self, node: Any) -> None:
            """A worker runs a test once it knows the next one, or that there is none. The worker that takes the place
            of one that crashed is given a single group, and would wait for ever (pytest-xdist 3.8)."""
            super()._reschedule(node)
            if not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
                super()._reschedule(node)

    return Together(config, log)
