"""The shaders of a subgraph: the texts that the backends of graphics cards compile, and why a subgraph has none. They
are generated without a card."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from weft.backends.launch import TIME, Launch, Value
from weft.backends.memory import StateMemory
from weft.backends.prologue import LaunchPrologue
from weft.codegen.clike.language import Identifiers
from weft.codegen.clike.shader import Shader, UnsuitableError
from weft.codegen.kernel import Kernel, Unit
from weft.codegen.values import Line, Node, Rewriter, Scalar
from weft.errors import WeftError, error
from weft.ir.rates import Rate
from weft.names import StrandRef


class Dialect(NamedTuple):
    """The generators of programs in one language, for kernels over a picture (`packed` as pixels, or not) and over
    points. Both raise UnsuitableError."""

    over_picture: Callable[[Kernel, bool], Shader]
    over_points: Callable[[Kernel], Shader]


@dataclass(frozen=True, slots=True)
class ShaderCode:
    """The programs of a unit: over its sweep, and over points for those exposed strands that can have one."""

    grid: Shader
    points: Mapping[StrandRef, Shader] = field(default_factory=dict)


def translated(unit: Unit, packed: bool, dialect: Dialect) -> ShaderCode:
    """The code of a unit. Raises UnsuitableError with the reason if it has none."""
    packs = packed and bool(unit.kernel.outputs)
    points = {}
    for ref, kernel in unit.points.items():
        with suppress(UnsuitableError):  # the CPU computes it
            points[ref] = dialect.over_points(kernel)
    return ShaderCode(dialect.over_picture(unit.kernel, packs), points)


def refused(shader: Shader, library: str, words: str, line: int, dump: str) -> WeftError:
    """The error for a text that a compiler refuses: its words, and the line (from 1; 0 if unknown) that they are about.
    `dump` is the option that shows the text."""
    place = shader.places[line - 1] if 0 < line <= len(shader.places) else ""
    where = f" for {place}" if place else ""
    first = next((text.strip() for text in words.splitlines() if text.strip()), "it does not say why")
    hint = f"weft compile {dump} shows the program; --backend native draws it on the CPU"
    return error("driver-refused", f"{library} refuses the program{where}: {first}", hint=hint)


def problem_of(translate: Callable[[], object]) -> str | None:
    """Why there is no program; None if there is one."""
    try:
        translate()
    except UnsuitableError as failure:
        return str(failure)
    return None


# The programs of sounds. A sound has one if single precision keeps it in tune.

_DAY = 86_400.0

# Moments of a day at which numbers are tested: they do not coincide with any period that a patch could have.
_MOMENTS = tuple(_DAY * (0.618033988749895 * number % 1) for number in range(1, 33))

# Below this, single precision resolves a millionth.
_FINE = 8.0


@dataclass(frozen=True, slots=True)
class SoundCode:
    """The program of a sound: a compute shader over the samples of a chunk. `coords` are the coordinates in its
    buffers, in their order, by the kernel's names."""

    shader: Shader
    coords: tuple[str, ...]

    def named(self, launch: Launch) -> Launch:
        """A launch with its coordinates under the names that the program uses, too."""
        names = zip(self.shader.coords, self.coords, strict=True)
        return replace(launch, coords={**launch.coords, **{made: launch.coords[name] for made, name in names}})


def sound_translated(kernel: Kernel, dialect: Dialect) -> SoundCode:
    """The code of a sound whose time is given by blocks (`ContextSpec.by_blocks`). Raises UnsuitableError with the
    reason if it has none."""
    if kernel.slots:
        raise UnsuitableError("each of its samples needs the one before")
    if any((given.source, given.key) == ("coord", TIME) for given in _given(kernel)):
        raise UnsuitableError("it uses the time itself at every sample, which single precision puts out of tune")
    if _has_coarse_numbers(kernel):
        raise UnsuitableError("it uses a number that grows with the time, which single precision puts out of tune")
    identifiers = Identifiers()
    # In a program, `mouse@x` is `mouse_x`.
    names = {name: identifiers.new(name) for name, _ in kernel.coords}
    shader = dialect.over_points(replace(_renamed(kernel, names), sweep="points", tick="launch"))
    known = {made: name for name, made in names.items()}
    return SoundCode(shader, tuple(known[made] for made in shader.coords))


def _given(kernel: Kernel) -> Iterator[Scalar | Line]:
    for section in kernel.sections:
        if section.rate > Rate.FRAME:
            yield from section.given()


def _has_coarse_numbers(kernel: Kernel) -> bool:
    """Whether samples depend on a number that is the same for a block, and at some time of a day is too large for
    single precision."""
    used = {int(given.key) for given in _given(kernel) if given.source == "local"}
    tested = [at for at in used if kernel.locals[at].rate == Rate.FRAME and kernel.locals[at].type == "float"]
    if not tested:
        return False
    prologue = LaunchPrologue(kernel)
    machines = [prologue.begin(StateMemory(()), one_sample(kernel, moment)) for moment in _MOMENTS]
    numbers = np.array([machine.locals for machine in machines])[:, tested]
    with np.errstate(all="ignore"):
        changes = (numbers != numbers[0]).any(axis=0)
        return bool((np.abs(numbers) > _FINE)[:, changes].any())


def one_sample(kernel: Kernel, moment: float) -> Launch:
    """A launch of one sample at a moment, with placeholders for all inputs."""
    coords: dict[str, Value] = {name: 0.0 for name, _ in kernel.coords}
    return Launch(
        shape=(1, 1),
        coords={**coords, TIME: moment},
        uniforms=dict.fromkeys(kernel.uniforms, 1.0),
        strands=dict.fromkeys(kernel.strands, lambda *at: 0.0),
        pictures={path: np.zeros((1, 1, 4), np.float32) for path in kernel.pictures},
    )


def _renamed(kernel: Kernel, names: Mapping[str, str]) -> Kernel:
    def renamed(leaf: Node) -> Node:
        match leaf.attr:
            case Scalar("coord", str(name)) | Line("coord", str(name)):
                return Node(leaf.op, (), leaf.kind, leaf.attr._replace(key=names[name]))
        return leaf

    rewriters = [(section, Rewriter({leaf: renamed(leaf) for leaf in section.leaves()})) for section in kernel.sections]
    sections = tuple(rewriter.section(section) for section, rewriter in rewriters)
    return replace(kernel, sections=sections, coords=tuple((names[name], rate) for name, rate in kernel.coords))
