"""Recursion without the interpreter's stack: a recursive function written as a generator, run on a list.

Instead of calling itself, a function yields the call (`value = yield self.value(node.left)`); `run` keeps the waiting
calls in a list, so that depth costs only memory. Exceptions travel through the waiting calls as through frames.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

# A call that may wait for other calls. `yield` returns the result of the awaited call, whose type the type checker
# cannot follow through the list.
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
