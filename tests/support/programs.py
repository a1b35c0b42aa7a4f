"""Programs whose comments say what they are.

Ill-formed programs carry, in the comments they start with, the whole text of the errors they must cause:

    //! expect-error
    //! <file>:6:5: error: an expression is missing after `+` [missing-expression]
    //!  6 | a = b +
    //!    |        ^

Several diagnostics follow one another with an empty `//!` line between them. `<file>` means the file's name, so that
the header does not change with the place of the tests.

The others state the values of their strands:

    a = me@x * 2
    //= a at x=0.25 is 0.5
    //= prev(a) ticks 3 on 4x2 at px=1 is 0.75
    //= tone@v in audio at time=0.5, mouse@x=1 is sin(1)

The strand before the keywords is consumed by an output statement, `display` unless another is named. It is evaluated on
one element at the given coordinates, or with `on` on a grid at the given pixel. Successive ticks are a frame apart,
from `time` on; the value is that of the last one. Everything else before `is` sets uniforms.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.beats import given_beats
from tests.support.choices import ANYWHERE
from tests.support.kernels import DOUBLE_MACHINES, MACHINES
from tests.support.verify_bytecode import verify as verify_kernel
from tests.support.verify_ir import verify as verify_ir
from weft.backends.executors import Executor
from weft.backends.launch import Launch, StateMemory, picture_coords
from weft.codegen.kernel import Kernel
from weft.contexts import ContextTable
from weft.errors import Diagnostic, Source
from weft.graph.patch import Patch
from weft.runtime.compiling.stages import Build, Request, build

_MARK = "//!"
_FIRST_LINE = "//! expect-error"


def expected_errors(path: Path) -> str:
    """The text that a program's header promises."""
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    assert first == _FIRST_LINE, f"{path} does not start with {_FIRST_LINE!r}"
    header = takewhile(lambda line: line.startswith(_MARK), rest)
    lines = (line.removeprefix(_MARK).removeprefix(" ").rstrip() for line in header)
    return "\n".join(lines).replace("<file>", path.name)


def rendered(diagnostics: Iterable[Diagnostic]) -> str:
    """Diagnostics in the form of a header."""
    text = "\n\n".join(diagnostic.render() for diagnostic in diagnostics)
    return "\n".join(line.rstrip() for line in text.split("\n"))


_LINE = re.compile(
    r"//= (?P<strand>.+?)(?: in (?P<statement>\w+))?(?: ticks (?P<ticks>\d+))?(?: on (?P<width>\d+)x(?P<height>\d+))?"
    r"(?: at (?P<at>.+?))? is (?P<value>.+)"
)

# The picture that test programs load: red grows to the right, green grows downwards, blue is even, alpha is opaque.
PICTURE = np.zeros((2, 4, 4), np.float32)
PICTURE[..., 0] = [0, 0.25, 0.5, 0.75]
PICTURE[..., 1] = [[0], [1]]
PICTURE[..., 2:] = [0.5, 1]


@dataclass(frozen=True, slots=True)
class Expectation:
    """One `//=` line."""

    strand: str
    statement: str
    ticks: int
    size: tuple[int, int] | None
    at: Mapping[str, float]
    value: float

    @property
    def is_plain(self) -> bool:
        """Whether it is of a picture, on one element, with nothing else given than its place."""
        return self.statement == "display" and self.size is None and self.at.keys() <= _ONE_ELEMENT.keys()

    def __str__(self) -> str:
        where = ", ".join(f"{name}={value:g}" for name, value in self.at.items())
        return f"{self.strand} {self.statement} {self.ticks} {where}".replace("/", "÷")


def expectations(text: str) -> list[Expectation]:
    """The expectations of a program."""
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith("//=")]
    assert lines, "a program without expectations"
    return [_expectation(line) for line in lines]


def _expectation(line: str) -> Expectation:
    match = _LINE.fullmatch(line)
    assert match, f"not an expectation: {line}"
    at = dict(part.split("=") for part in re.split(r",\s*", match["at"] or "") if part)
    size = (int(match["width"]), int(match["height"])) if match["width"] else None
    return Expectation(
        match["strand"],
        match["statement"] or "display",
        int(match["ticks"] or 1),
        size,
        {name: _number(value) for name, value in at.items()},
        _number(match["value"]),
    )


def _number(text: str) -> float:
    return float(eval(text, {"__builtins__": {}, "min": min, "max": max}, vars(math)))


def built(path: Path, expected: Expectation, optimise: bool = True) -> Build:
    """A program of the tests, with the expected strand as its only output."""
    source = Source(str(path), path.read_text(encoding="utf-8"))
    shown = f"{expected.statement}({expected.strand})"
    return _verified(build(Request(source, ContextTable(), consume=shown, permissions=ANYWHERE), optimise=optimise))


def _verified(made: Build) -> Build:
    for unit, lowered in zip(made.units, made.lowered, strict=True):
        verify_ir(lowered)
        verify_kernel(unit.kernel)
    return made


def built_together(text: str, expected: Sequence[Expectation], optimise: bool) -> Build:
    """A program with all these plain strands of it as one picture: a row of pixels, a strand for each. Left as it is
    written, machines compute what the compiler would compute beforehand."""
    assert all(each.is_plain for each in expected)
    strands = (f"({each.strand})({_moved(each)})" for each in expected)
    shown = f"display(<{', '.join(strands)}>[me@x * {len(expected)}])"
    source = Source("together.weft", text)
    return _verified(build(Request(source, ContextTable(), consume=shown, permissions=ANYWHERE), optimise=optimise))


def _moved(expected: Expectation) -> str:
    at = _ONE_ELEMENT | expected.at
    # No key is down. So it is not constant.
    return f"me@x ~ {at['x']!r} + key@a, me@y ~ {at['y']!r} + key@a"


def values_together(made: Build, expected: Sequence[Expectation], executor: Executor) -> list[float]:
    """The values of all strands of such a picture, each at its tick, as a machine computes them."""
    (kernel,) = (unit.kernel for unit in made.units)
    shape = 1, len(expected)
    memory, executable = StateMemory(kernel.slots, shape, executor.widest), executor.load(kernel)
    one = replace(expected[0], size=(len(expected), 1), at={})
    size = {name: made.patch.settings[name] for name in ("width", "height")}
    values = [0.0] * len(expected)
    for tick in range(max(each.ticks for each in expected)):
        launch = _launch(made.patch, kernel, one, tick)
        planes = executable.planes(memory, replace(launch, uniforms={**launch.uniforms, **size}))
        for place, each in enumerate(expected):
            if each.ticks == tick + 1:
                values[place] = float(planes[0, 0, place])
    return values


def value_of(made: Build, expected: Expectation, machine: str) -> float:
    """The value that a machine computes."""
    (kernel,) = (unit.kernel for unit in made.units)
    width, height = expected.size or (1, 1)
    executor = MACHINES[machine]
    widest = np.float64 if machine in DOUBLE_MACHINES else executor.widest
    memory, executable = StateMemory(kernel.slots, (height, width), widest), executor.load(kernel)
    for tick in range(expected.ticks):
        planes = executable.planes(memory, _launch(made.patch, kernel, expected, tick))
    row, column = int(expected.at.get("py", 0)), int(expected.at.get("px", 0))
    return float(planes[0, row, column])


def _launch(patch: Patch, kernel: Kernel, expected: Expectation, tick: int) -> Launch:
    width, height = expected.size or (1, 1)
    seconds = 1 / patch.settings["fps"]
    coords: dict[str, Any] = dict(picture_coords(width, height, expected.at.get("time", 0.0) + tick * seconds))
    if expected.size is None:
        coords |= {name: expected.at.get(name, default) for name, default in _ONE_ELEMENT.items()}
    coords["channel"] = expected.at.get("channel", 0.0)
    uniforms = dict.fromkeys(kernel.uniforms, 0.0) | start_values(patch)
    uniforms |= {"width": patch.settings["width"], "height": patch.settings["height"], "dt": seconds}
    if expected.size is not None:
        uniforms |= {"width": float(width), "height": float(height)}
    uniforms["absframe"] = float(round(coords["abstime"] / seconds))
    uniforms |= {name: value for name, value in expected.at.items() if "@" in name}
    pictures = dict.fromkeys(kernel.pictures, PICTURE)
    arrays = {name: np.full(1, value) if np.ndim(value) == 0 and name in _swept(kernel) else value
              for name, value in coords.items()}  # fmt: skip
    return Launch((height, width), arrays, uniforms, pictures=pictures)


_ONE_ELEMENT = {"x": 0.5, "y": 0.5}


def _swept(kernel: Kernel) -> set[str]:
    return {name for name, rate in kernel.coords if rate.title in ("column", "row", "element")}


def start_values(patch: Patch) -> dict[str, float]:
    """The initial uniforms of a patch's parameters and beats."""
    return given_beats(patch.settings["bpm"]) | {
        f"{parameter.name.name}@{output.name}": value
        for parameter in patch.parameters
        for output, value in zip(parameter.outputs, parameter.start, strict=True)
    }
