"""Recursion that does not use the interpreter's stack. Instead of calling itself, a function yields the call (`value =
yield self.value(node.left)`); `run` keeps the waiting calls in a list, so that depth costs only memory."""

from __future__ import annotations

from collections.abc import Generator
from types import GeneratorType
from typing import Any, TypeAlias, TypeVar

V = TypeVar("V")

# A call that may wait for other calls. `yield` returns the result of the awaited call, whose type the type checker
# cannot follow through the list.
Task: TypeAlias = Generator[Any, Any, V]

# What a function returns that often knows its result without waiting: the result, or a task for it.
Eventual: TypeAlias = V | Task[V]


def run(task: Eventual[V]) -> V:
    """The result of a task and of everything it waits for. Exceptions travel through the waiting calls as through
    frames."""
    waiting: list[Task[Any]] = []
    result: Any = task
    failure: BaseException | None = None
    while True:
        if type(result) is GeneratorType:
            waiting.append(result)
            result = None
        elif not waiting:
            break
        try:
            result = waiting[-1].send(result) if failure is None else waiting[-1].throw(failure)
            failure = None
        except StopIteration as done:
            waiting.pop()
            result, failure = done.value, None
        except BaseException as raised:
            waiting.pop()
            result, failure = None, raised
    if failure is not None:
        raise failure
    found: V = result
    return found
