"""The knobs of MIDI devices that move parameters. A parameter learns its knob from the next one that is turned, and the
knob is kept with the values of the patch.

A knob shows one position while the mouse, a file or another program may set its parameter to another. A parameter never
jumps to a knob that is turned: the knob takes hold of it when it passes its value, and keeps hold until something else
sets it. (This is the pickup, or soft takeover, of control surfaces.) A toggle follows its knob at once.
"""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass
from typing import Any

from weft.runtime.hands.midi_messages import Moved
from weft.runtime.hands.parameters import ParameterBank, ParameterSpec

# A step of a knob with 7 bits. A value at most this far away counts as met.
_STEP = 1 / 127


@dataclass(frozen=True, slots=True)
class Knob:
    """A controller: `cc` is its number."""

    device: str
    channel: int
    cc: int

    @classmethod
    def of(cls, moved: Moved) -> Knob:
        return cls(moved.device, moved.channel, moved.number)

    @property
    def shown(self) -> str:
        return f"controller {self.cc} of {self.device}, channel {self.channel}"


class KnobBindings:
    """The knobs of the parameters of the patch that plays, by the names that kernels read (`speed@v`). Every method may
    be called from any thread."""

    def __init__(self, bank: ParameterBank) -> None:
        self._bank = bank
        self._lock = threading.Lock()
        self._kept: dict[str, dict[str, Knob]] = {}
        """The knobs by patch and parameter."""
        self._held: dict[tuple[str, str], float] = {}
        """The values that knobs have set, by patch and parameter."""
        self._positions: dict[Knob, float] = {}
        self._learning: str | None = None
        self.changes = 0
        """The number of times that a binding was made or forgotten."""

    @property
    def learning(self) -> str | None:
        """The parameter that the next knob is to move."""
        return self._learning

    @property
    def is_used(self) -> bool:
        """Whether any knob matters."""
        return self._learning is not None or bool(self._knobs)

    def learn(self, name: str | None) -> None:
        """Binds a parameter to the next knob that is turned; None ends the wait for a knob."""
        with self._lock:
            self._learning = name

    def forget(self, name: str) -> None:
        """Removes the knob of a parameter, if it has one."""
        with self._lock:
            self._learning = None if self._learning == name else self._learning
            if self._knobs.pop(name, None) is not None:
                self.changes += 1

    def of(self, name: str) -> Knob | None:
        """The knob of a parameter."""
        return self._knobs.get(name)

    def move(self, moved: Moved) -> str | None:
        """Moves the parameters of a turned knob. Returns the name of the parameter that has just been bound to it."""
        knob, learnt, bank = Knob.of(moved), None, self._bank
        with self._lock:
            if self._learning is not None:
                learnt, self._learning = self._learning, None
                self._knobs[learnt] = knob
                self.changes += 1
            before = self._positions.get(knob)
            self._positions[knob] = moved.value
            for name in [name for name, its in self._knobs.items() if its == knob]:
                spec = next((spec for spec in bank.specs if name in spec.inputs), None)
                if spec is None:
                    continue
                if spec.kind == "button" and before is not None and (before >= 0.5) == (moved.value >= 0.5):
                    continue  # it counts as pressed once, even if a pad trembles
                if name == learnt or self._takes_hold(name, spec, before, moved.value):
                    value = bank.set(name, spec.low + moved.value * (spec.high - spec.low))
                    self._held[bank.file, name] = value
        return learnt

    @property
    def _knobs(self) -> dict[str, Knob]:
        return self._kept.setdefault(self._bank.file, {})

    def _takes_hold(self, name: str, spec: ParameterSpec, before: float | None, position: float) -> bool:
        current, held = self._bank.value(name), self._held.get((self._bank.file, name))
        if spec.kind in ("toggle", "menu", "button") or held == current or spec.high == spec.low:
            return True
        there = (current - spec.low) / (spec.high - spec.low)
        way = (position, position if before is None else before)
        return min(way) - _STEP <= there <= max(way) + _STEP

    def to_json(self, file: str = "") -> dict[str, Any]:
        """The bindings of a patch, as its file of values keeps them."""
        with self._lock:
            return {name: asdict(knob) for name, knob in sorted(self._kept.get(file, {}).items())}

    def restore(self, kept: object, file: str = "") -> None:
        """Takes over the result of `to_json`. Raises ValueError for anything else."""
        if not isinstance(kept, dict):
            raise ValueError("there are no knobs")
        knobs = {}
        for name, each in kept.items():
            match each:
                case {"device": str() as device, "channel": int() as channel, "cc": int() as cc}:
                    knobs[name] = Knob(device, channel, cc)
                case _:
                    raise ValueError(f'"{name}" has no knob')
        with self._lock:
            self._kept[file] = knobs
            self.changes += 1
