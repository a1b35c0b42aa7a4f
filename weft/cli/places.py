"""What `--at` says: coordinates, from which the others follow, values from outside, and axes of caches."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import click

from weft.errors import did_you_mean
from weft.graph.fields import BASES, FIELDS, FIXED_FIELDS, Coordinates, Environment
from weft.graph.patch import Patch
from weft.ops import OPS
from weft.runtime.offline import initial_inputs

# Coarse before fine: each shifts the time by the difference, so that a beat is found within the measure given.
_ORDER = ("x", "y", "px", "py", "channel", "abstime", "time", "absframe", "frame", "abssample", "sample",
          "measure", "beat", "measurephase", "beatphase")  # fmt: skip

_TOLERANCE = 1e-6

_Kind: TypeAlias = Literal["coordinate", "axis", "input"]


@dataclass(frozen=True)
class Place:
    """Where a strand is evaluated: the base coordinates, the number of the frame, the axes of caches, and the values
    of mouse, keys and parameters."""

    x: float = 0.5
    y: float = 0.5
    abstime: float = 0.0
    channel: float = 0.0
    frame: int = 0
    axes: Mapping[str, float] = field(default_factory=dict)
    inputs: Mapping[str, float] = field(default_factory=dict)
    given: frozenset[str] = frozenset()
    """The coordinates that were given."""


def read_place(text: str, patch: Patch) -> Place:
    """The place that a text like `x=0.5,time=1,mouse@x=0.3,h@k=2` gives; what it leaves open has its usual value.

    Raises click.UsageError for a name that the patch does not know, and for coordinates that exclude each other.
    """
    kinds = _kinds(patch)
    given: dict[_Kind, dict[str, float]] = {"coordinate": {}, "axis": {}, "input": {}}
    for name, value in _numbers(text).items():
        if name not in kinds:
            raise click.UsageError(_unknown(name, kinds))
        given[kinds[name]][name] = value
    at = _coordinates(given["coordinate"], patch.settings)
    return Place(
        x=at.x,
        y=at.y,
        abstime=at.abstime,
        channel=at.channel,
        frame=int(_environment(patch.settings, at).field("absframe", at)) if math.isfinite(at.abstime) else 0,
        axes=given["axis"],
        inputs=initial_inputs(patch) | given["input"],
        given=frozenset(given["coordinate"]),
    )


def _numbers(text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, equals, number = (part.strip() for part in entry.partition("="))
        try:
            value = float(number)
        except ValueError:
            raise click.UsageError(f'--at takes name=number, not "{entry}"') from None
        name = name.removeprefix("me@")
        if not equals or name in found:
            raise click.UsageError(f'"{name}" is given twice in --at')
        found[name] = value
    return found


def _kinds(patch: Patch) -> dict[str, _Kind]:
    """Every name that may be given, with what it is."""
    axes = [f"{i.name}@{axis}" for i in patch.instances.values() for axis in i.axes]
    return {
        **dict.fromkeys(axes, "axis"),
        **dict.fromkeys(initial_inputs(patch), "input"),
        **dict.fromkeys((*BASES, *FIELDS), "coordinate"),
    }


def _unknown(name: str, known: Mapping[str, object]) -> str:
    if name in FIXED_FIELDS:
        return f'"{name}" is a setting of the patch, which --at cannot change'
    hint = did_you_mean(name, known)
    return f'--at: the patch has no "{name}"' + (f" ({hint})" if hint else "")


class _Floats:
    """Derives fields as numbers."""

    def __init__(self, settings: Mapping[str, float]) -> None:
        self._settings = settings

    def const(self, value: float) -> float:
        return value

    def op(self, name: str, *args: float) -> float:
        return OPS[name].fold(*args)

    def uniform(self, name: str) -> float:
        return self._settings[name]

    def call(self, value: float, name: str, local: bool) -> None:
        """Numbers bear no names."""


def _environment(settings: Mapping[str, float], own: Coordinates[float]) -> Environment[float]:
    return Environment(_Floats(settings), settings, (), own)


def _coordinates(given: Mapping[str, float], settings: Mapping[str, float]) -> Coordinates[float]:
    """The base coordinates at which everything that is given holds."""
    at = Coordinates(0.5, 0.5, 0.0, 0.0)
    for name in sorted(given, key=_ORDER.index):
        env = _environment(settings, at)
        if name in BASES:
            at = at.moved({name: given[name]})
        else:
            row = FIELDS[name]
            at = at.moved({row.base: row.inverse(env, at, given[name])})
    env = _environment(settings, at)
    for name, wanted in given.items():
        if not _agrees(env.field(name, at), wanted):
            others = " and ".join(f"{n}={v:g}" for n, v in given.items())
            raise click.UsageError(f"there is no place with {others}: {name} would be {env.field(name, at):g}")
    return at


def _agrees(found: float, wanted: float) -> bool:
    return found == wanted or not math.isfinite(wanted) or abs(found - wanted) <= _TOLERANCE * max(1.0, abs(wanted))
