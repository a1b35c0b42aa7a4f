"""Places in shared memory, which are few, for strands that come and go with every save."""

from __future__ import annotations

from collections.abc import Iterable

from weft.errors import error


class Places:
    """So many places, numbered from 0, for what has a name. `words` say to people that there are no more than {}."""

    def __init__(self, count: int, code: str, words: str) -> None:
        self._count = count
        self._code = code
        self._words = words
        self._taken: dict[str, int] = {}
        """Those asked for last at the end."""

    def find(self, name: str) -> int | None:
        """The place of something that has one."""
        return self._taken.get(name)

    def take(self, names: Iterable[str]) -> dict[str, int]:
        """A place for each of these, the same as before for what has one. Where there are no more, it is one that
        nobody has asked for for the longest time. Raises WeftError with the code if they are more than there are."""
        wanted = dict.fromkeys(names)
        if len(wanted) > self._count:
            raise error(self._code, self._words.format(self._count), hint="read one for several")
        others = {name: place for name, place in self._taken.items() if name not in wanted}
        free = sorted(set(range(self._count)) - {*self._taken.values()}, reverse=True)
        places: dict[str, int] = {}
        for name in wanted:
            known = self._taken.get(name)
            if known is not None:
                places[name] = known
            else:
                places[name] = free.pop() if free else others.pop(next(iter(others)))
        self._taken = {**others, **places}
        return places


def places_of_rings(count: int) -> Places:
    """For the strands of sound that others read."""
    return Places(count, "too-many-heard", "pictures and numbers can read no more than {} strands of sound")


def places_of_views(count: int) -> Places:
    """For the strands that sounds see."""
    return Places(count, "too-many-seen", "sounds can read no more than {} strands all over a picture")
