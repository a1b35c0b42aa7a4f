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

# The type of a function that often knows its result at once: it returns that, or a task for it.
Eventual: TypeAlias = V | Task[V]


def run(task: Eventual[V]) -> V:
    """The result of a task and of everything it waits for. Exceptions travel through the waiting calls as through
    frames."""
    current: Any = task
    result: Any = None
    if type(current) is not GeneratorType:
        known: V = current
        return known
    waiting: list[Task[Any]] = []
    failure: BaseException | None = None
    while True:
        try:
            result = current.send(result) if failure is None else current.throw(failure)
            failure = None
        except StopIteration as done:
            result, failure = done.value, None
        except BaseException as raised:
            result, failure = None, raised
        else:
            if type(result) is GeneratorType:
                waiting.append(current)
                current, result = result, None
            continue
        if not waiting:
            break
        current = waiting.pop()
    if failure is not None:
        raise failure
    found: V = result
    return found
