"""Recursion without the interpreter's stack: a recursive function written as a generator, run on a list.

Where a function would call itself, it yields the call (`value = yield self.value(node.left)`); `run` keeps the calls
that wait in a list, so that depth costs memory only. Exceptions travel through the waiting calls as they would through
frames.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

# A call that may wait for other calls. What `yield` gives back is the awaited call's result, whose type the type
# checker cannot follow through the list.
Task: TypeAlias = Generator["Task[Any]", Any, T]


def run(task: Task[T]) -> T:
    """The result of a task and of everything it waits for."""
    waiting: list[Task[Any]] = []
    current: Task[Any] = task
    result: Any = None
    failure: BaseException | None = None
    while True:
        try:
            called = current.send(result) if failure is None else current.throw(failure)
        except StopIteration as done:
            result, failure = done.value, None
        except BaseException as raised:
            result, failure = None, raised
        else:
            waiting.append(current)
            current, result, failure = called, None, None
            continue
        if not waiting:
            break
        current = waiting.pop()
    if failure is not None:
        raise failure
    value: T = result
    return value
