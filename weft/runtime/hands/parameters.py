"""Parameters (`#slider #toggle #menu #button #xy #color`) while a patch plays: the values that they have been set to,
and the file next to the patch that keeps them.

The text gives a parameter its range and its start value. A value set by hand is kept over saves by the name of the
parameter, clamped to a new range, and also while a save leaves the parameter out. If a save changes the start value,
the text was edited later, and its value counts.
"""

from __future__ import annotations

import json
import math
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from weft.disk import read_plain, replacing
from weft.names import count_of
from weft.permissions import DEFAULT_PERMISSIONS
from weft.platform import system
from weft.syntax.ast import Parameter, ParameterKind

MOST_BYTES = 1 << 20
"""The largest file of values that is read."""


@dataclass(frozen=True, slots=True)
class ParameterSpec:
    """A parameter of a program: one start value an output, each from `low` to `high`; see `weft.syntax.ast.Parameter`.
    `line` is that of its pragma in the file at `path`, from 1."""

    kind: ParameterKind
    name: str
    outputs: tuple[str, ...]
    start: tuple[float, ...]
    low: float
    high: float
    label: str
    is_raw: bool
    path: str
    line: int
    options: tuple[str, ...] = ()

    @classmethod
    def of(cls, parameter: Parameter) -> ParameterSpec:
        """The parameter of a pragma."""
        outputs = tuple(output.name for output in parameter.outputs)
        span = parameter.span
        return cls(
            parameter.kind, parameter.name.name, outputs, parameter.start, parameter.low, parameter.high,
            parameter.label or parameter.name.name, parameter.is_raw, span.source.name,
            span.source.position(span.start)[0], parameter.options,
        )  # fmt: skip

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names by which kernels read its outputs."""
        return tuple(f"{self.name}@{output}" for output in self.outputs)

    def fitted(self, value: float) -> float:
        """A value in its range; a toggle and a button are 0 or 1, and a menu is a whole number. NaN becomes the lower
        end."""
        inside = self.low if math.isnan(value) else min(max(value, self.low), self.high)
        return float(math.floor(inside + 0.5) if self.kind in ("toggle", "menu", "button") else inside)


@dataclass(frozen=True, slots=True)
class _ManualValue:
    """A value set by hand, and the start value in the text at that time."""

    value: float
    start: float


class ParameterBank:
    """The parameters of the program that plays, and their values. Every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._specs: tuple[ParameterSpec, ...] = ()
        self._by_input: dict[str, tuple[ParameterSpec, float]] = {}
        """The parameter and the start value of each input."""
        self._file = ""
        """The patch that plays."""
        self._kept: dict[str, dict[str, _ManualValue]] = {}
        """The values that were set by hand, by patch and input."""
        self._rewritten = set[str]()
        """Inputs whose start value in the text has changed since the program was compiled."""
        self._values: Mapping[str, float] = {}
        self._pressed: dict[str, float] = {}
        """The buttons that have been pressed, and whether they are down. Neither text nor file has their values."""
        self._presses: Counter[str] = Counter()
        self._tapped: set[str] = set()
        """The buttons that have been pressed since the last frame."""
        self.changes = 0
        """The number of changes so far."""

    @property
    def specs(self) -> tuple[ParameterSpec, ...]:
        """The parameters of the program that plays, in the order of the text."""
        return self._specs

    @property
    def file(self) -> str:
        """The patch that plays."""
        return self._file

    @property
    def values(self) -> Mapping[str, float]:
        """The values that were set by hand, by the names that kernels read. It never changes: a new one replaces it."""
        return self._values

    def frame(self) -> dict[str, float]:
        """The values for the next frame. A button that was pressed since the last call counts as pressed, even if it
        was released. The number of presses is counted."""
        with self._lock:
            found = {**self._values, **dict.fromkeys(self._tapped, 1.0)}
            self._tapped.clear()
            return found | {count_of(name): float(count) for name, count in self._presses.items()}

    def value(self, name: str) -> float:
        """The current value of an input. Raises KeyError for one that the program does not have."""
        with self._lock:
            return self._values.get(name, self._by_input[name][1])

    def given(self, file: str) -> Mapping[str, float]:
        """The values that were set by hand in a patch, by the names that kernels read."""
        with self._lock:
            return {name: setting.value for name, setting in self._kept.get(file, {}).items()}

    def adopt(self, specs: Sequence[ParameterSpec], file: str = "") -> tuple[str, ...]:
        """Takes over the parameters of another program, of the patch `file`, which has values of its own. Returns notes
        on values that its ranges have changed."""
        with self._lock:
            self._file, self._specs = file, tuple(specs)
            self._rewritten.clear()
            starts = {s.name: zip(s.inputs, s.start, strict=True) for s in specs}
            self._by_input = {name: (s, start) for s in specs for name, start in starts[s.name]}
            buttons = {name for spec in specs if spec.kind == "button" for name in spec.inputs}
            self._pressed = {name: value for name, value in self._pressed.items() if name in buttons}
            self._tapped &= buttons
            notes = []
            for name, (spec, start) in self._by_input.items():
                setting = self._set.get(name)
                if setting is None:
                    continue
                if setting.start != start:
                    del self._set[name]
                    continue
                value = spec.fitted(setting.value)
                if value != setting.value:
                    self._set[name] = _ManualValue(value, start)
                    notes.append(f"{name.removesuffix('@v')} was {setting.value:g}, and is {value:g} now: "
                                 f"it runs from {spec.low:g} to {spec.high:g}")  # fmt: skip
            self._changed()
            return tuple(notes)

    def set(self, name: str, value: float) -> float:
        """Sets an input; returns its value, which is in its range. Raises KeyError for one that the program does not
        have."""
        with self._lock:
            spec, start = self._by_input[name]
            if spec.kind == "button":
                return self._press(name, spec.fitted(value))
            setting = _ManualValue(spec.fitted(value), start)
            if self._set.get(name) != setting:
                self._set[name] = setting
                self._changed()
            return setting.value

    def _press(self, name: str, value: float) -> float:
        """Presses or releases a button. A press counts even if the button is down: some sequencers send nothing
        else."""
        if value:
            self._presses[name] += 1
            self._tapped.add(name)
        if self._pressed.get(name, 0.0) != value:
            self._pressed[name] = value
            self._changed()
        return value

    def reset(self, name: str) -> None:
        """Sets an input back to its value in the text. Raises KeyError for one that the program does not have."""
        with self._lock:
            spec, start = self._by_input[name]
            if spec.kind == "button":
                self._press(name, 0.0)
            before = self._set.pop(name, None)
            if name in self._rewritten:  # the program has another start value
                self._set[name] = _ManualValue(start, start)
            if before != self._set.get(name):
                self._changed()

    def rewrite(self, starts: Mapping[str, float]) -> None:
        """Notes that the text has new start values for these inputs, to which they are set. The program is the same."""
        with self._lock:
            for name, start in starts.items():
                if name in self._by_input:
                    self._by_input[name] = (self._by_input[name][0], start)
                    self._set[name] = _ManualValue(start, start)
                    self._rewritten.add(name)
            self._specs = tuple(
                replace(spec, start=tuple(self._by_input[name][1] for name in spec.inputs)) for spec in self._specs
            )
            self._changed()

    def to_json(self, file: str = "") -> dict[str, Any]:
        """The values set by hand in a patch, as its file of values keeps them."""
        with self._lock:
            settings = sorted(self._kept.get(file, {}).items())
            by_hand = ((name, each) for name, each in settings if each.value != each.start)
            return {name: {"value": each.value, "start": each.start} for name, each in by_hand}

    def restore(self, kept: object, file: str = "") -> None:
        """Takes over the result of `to_json`. Raises ValueError for anything else."""
        if not isinstance(kept, dict):
            raise ValueError("there are no values")
        settings = {}
        for name, each in kept.items():
            match each:
                case {"value": int() | float() as value, "start": int() | float() as start} if math.isfinite(value):
                    settings[name] = _ManualValue(float(value), float(start))
                case _:
                    raise ValueError(f'"{name}" has no value')
        with self._lock:
            self._kept[file] = settings
            self._changed()

    @property
    def _set(self) -> dict[str, _ManualValue]:
        return self._kept.setdefault(self._file, {})

    def _changed(self) -> None:
        pressed = {name: value for name, value in self._pressed.items() if name in self._by_input}
        self._values = {name: setting.value for name, setting in self._set.items()} | pressed
        self.changes += 1


class KeptSection(Protocol):
    """A section of the file of values of a patch. `changes` counts all changes so far."""

    @property
    def changes(self) -> int: ...

    def to_json(self, file: str = "") -> dict[str, Any]: ...

    def restore(self, kept: object, file: str = "") -> None:
        """Takes over the result of `to_json`. Raises ValueError for anything else."""


class ValuesFile:
    """The file next to a patch that keeps the values set by hand. It is written under another name and renamed, only
    when something has changed, and in a thread of its own, since a disk may take long."""

    def __init__(self, patch: Path, bank: ParameterBank, **others: KeptSection) -> None:
        """`others` are kept with the parameters, by the names of their sections."""
        self.path = patch.with_name(patch.name + ".values")
        self._patch = str(patch)
        self._sections: dict[str, KeptSection] = {"parameters": bank, **others}
        self._kept = _file_text({"parameters": {}})
        self._seen = self._changes
        self._writer: threading.Thread | None = None
        self._problem: str | None = None
        self._told: str | None = None
        """The problem that was reported last, until the file is written."""

    def read(self) -> str | None:
        """Restores the values. Returns a note about a file that is damaged, which is renamed, or to which a link leads
        from the folder."""
        denial = DEFAULT_PERMISSIONS.reach(self._patch).denial_of_file(str(self.path))
        if denial is not None:
            return f"{self.path.name} is not read: {denial.reason}; the values in the text count"
        try:
            data = read_plain(self.path, MOST_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as failure:
            return f"{self.path.name} cannot be read ({failure.strerror}); the values in the text count"
        try:
            if len(data) > MOST_BYTES:
                raise ValueError("it is too large")
            found = json.loads(data)
            for name, section in self._sections.items():
                section.restore(found["parameters"] if name == "parameters" else found.get(name, {}), self._patch)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            for section in self._sections.values():
                section.restore({}, self._patch)
            aside = self.path.with_name(self.path.name + ".damaged")
            with suppress(OSError):
                system.replace(self.path, aside)
            return f"{self.path.name} is damaged, and is now {aside.name}; the values in the text count"
        self._kept = self._to_text()
        self._seen = self._changes
        return None

    def keep(self) -> str | None:
        """Writes the values in the background if they have changed; returns a note, once, if that has failed."""
        if self._seen != self._changes and (self._writer is None or not self._writer.is_alive()):
            self._writer = threading.Thread(target=self._write, name="weft-values", daemon=True)
            self._writer.start()
        problem, self._problem = self._problem, None
        return problem

    def close(self) -> str | None:
        """Writes the values if they have changed; returns a note if that fails, once. May be called twice."""
        if self._writer is not None:
            self._writer.join()
        self._write()
        problem, self._problem = self._problem, None
        return problem

    def _write(self) -> None:
        changes = self._changes
        if self._seen == changes:
            return
        text = self._to_text()
        if text != self._kept and (failure := self._written(text)) is not None:
            problem = f"{self.path.name} cannot be written ({failure.strerror})"
            if problem != self._told:
                self._problem = self._told = problem
            return  # it is tried again
        self._seen, self._kept, self._told = changes, text, None

    def _written(self, text: str) -> OSError | None:
        """Writes the file. Returns the problem, if there was one."""
        try:
            with replacing(self.path) as aside:
                aside.write_text(text, encoding="utf-8")
        except OSError as failure:
            return failure
        return None

    @property
    def _changes(self) -> int:
        return sum(section.changes for section in self._sections.values())

    def _to_text(self) -> str:
        kept = {name: section.to_json(self._patch) for name, section in self._sections.items()}
        return _file_text({name: values for name, values in kept.items() if values or name == "parameters"})


def _file_text(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """JSON with a line for each value."""
    return "{\n" + ",\n".join(_section_text(name, values) for name, values in sections.items()) + "\n}\n"


def _section_text(name: str, values: Mapping[str, Any]) -> str:
    lines = ",\n".join(f"    {json.dumps(key)}: {json.dumps(value)}" for key, value in values.items())
    return f"  {json.dumps(name)}: {{" + (f"\n{lines}\n  " if lines else "") + "}"
