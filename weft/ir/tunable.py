"""Constants whose values can change, while everything that was made of them stays valid.

A pass must not look at the value of a `Tunable`. It asks a question instead, and the answer is noted: for other values
with the same answers to all questions, the passes would do the same. If a pass computes something from constants, the
formula is noted.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Known: TypeAlias = "float | int | Tunable"
"""The attribute of a constant."""


@dataclass(slots=True, eq=False)
class Tunable:
    """The value of a constant that may be tuned, or that a `formula` computes from `operands`. Two of these are
    different constants even if their values are equal. `current` is for what comes after the passes, and always has the
    value that the constants of kernels have."""

    current: float
    formula: Callable[..., float] | None = None
    operands: tuple[Known, ...] = ()
    depth: int = 0
    """The length of the longest chain of formulas that leads to it."""
    _derived: list[Tunable] = field(default_factory=list)
    """What is computed from it."""
    _answers: dict[tuple[Callable[..., object], tuple[object, ...]], object] = field(default_factory=dict)

    @classmethod
    def computed(cls, formula: Callable[..., float], operands: tuple[Known, ...]) -> Tunable:
        """The result of a formula on constants, at least one of which is tunable."""
        tunables = [each for each in operands if isinstance(each, Tunable)]
        depth = 1 + max(each.depth for each in tunables)
        made = cls(float(formula(*map(current, operands))), formula, operands, depth)
        for each in tunables:
            each._derived.append(made)
        return made

    def __bool__(self) -> bool:
        raise TypeError("what depends on the value of a tunable constant has to be asked")


def current(known: Known) -> float:
    """The value of a constant. Not for passes, since no answer is noted."""
    return known.current if isinstance(known, Tunable) else known


@dataclass(slots=True)
class TunedValues:
    """The values of constants: the `other` ones where given, else the current ones. `read` are those that were looked
    at."""

    other: Mapping[Tunable, float] = field(default_factory=dict)
    read: list[Tunable] = field(default_factory=list)

    def of(self, known: object) -> float:
        if isinstance(known, Tunable):
            self.read.append(known)
            return self.other.get(known, known.current)
        assert isinstance(known, (float, int)), known
        return known


def ask(question: Callable[..., T], *about: object) -> T:
    """The answer to a question, `question(values, *about)`. It is noted for all constants whose values the question
    reads. The answer to the same question about the same things may change only if values change."""
    values = TunedValues()
    answer = question(values, *about)
    for each in values.read:
        each._answers[question, about] = answer
    return answer


def value_of(known: Known) -> float:
    """The value itself. As a question this is the strictest, since every other value changes the answer."""
    return ask(TunedValues.of, known) if isinstance(known, Tunable) else known


def equals(one: Known, other: Known) -> bool:
    """Whether two numbers are equal."""
    if isinstance(one, Tunable) or isinstance(other, Tunable):
        return ask(_equals, one, other)
    return one == other


def _equals(values: TunedValues, one: Known, other: Known) -> bool:
    return values.of(one) == values.of(other)


def retuned(new: Mapping[Tunable, float]) -> Mapping[Tunable, float] | None:
    """The values of all constants that change with some. None if a question would get another answer."""
    values, derived = dict(new), set[Tunable]()
    todo = list(new)
    while todo:
        found = [each for each in todo.pop()._derived if each not in derived]
        derived.update(found)
        todo += found
    for each in sorted(derived, key=lambda each: each.depth):
        assert each.formula is not None
        value = float(each.formula(*map(TunedValues(values).of, each.operands)))
        if bits(value) != bits(each.current):
            values[each] = value
    asked = {question: answer for each in values for question, answer in each._answers.items()}
    for (question, about), answer in asked.items():
        if repr(question(TunedValues(values), *about)) != repr(answer):  # −0 is not 0, and NaN is NaN
            return None
    return values


def tune(values: Mapping[Tunable, float]) -> None:
    """Gives constants other values, for which all answers are the same (`retuned`)."""
    for each, value in values.items():
        each.current = value


def bits(value: float) -> bytes:
    """The bits by which constants are distinguished: 0.0 and -0.0 are equal but not the same, NaN is the same as
    itself."""
    return struct.pack("<d", value)
