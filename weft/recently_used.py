"""A store of the last few values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")


class RecentlyUsed(Generic[K, T]):
    """The values of the last few keys that were used."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: dict[K, T] = {}

    def get_or_make(self, key: K, make: Callable[[], T]) -> T:
        """The value of a key. Making a missing one drops that of the least recently used key."""
        found = self._values.pop(key, None)
        value = self._values[key] = make() if found is None else found
        if len(self._values) > self._most:
            del self._values[next(iter(self._values))]
        return value

    def find(self, key: K) -> T | None:
        """The value of a key, if it has one."""
        if key in self._values:
            self.keep(key, self._values[key])
        return self._values.get(key)

    def peek(self, key: K) -> T | None:
        """The same, which does not count as a use."""
        return self._values.get(key)

    def forget(self, key: K) -> T | None:
        """Drops the value of a key, and returns it."""
        return self._values.pop(key, None)

    def keep(self, key: K, value: T) -> None:
        """Gives a key a value."""
        self._values.pop(key, None)
        self.get_or_make(key, lambda: value)

    def __len__(self) -> int:
        return len(self._values)
