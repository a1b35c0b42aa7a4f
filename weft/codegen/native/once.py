"""From a kernel to a module that computes what comes once in a launch and nothing else: for devices that compute the
rest by themselves, and are given numbers in double precision."""

from __future__ import annotations

from dataclasses import dataclass

from weft.codegen.base import Kernel
from weft.codegen.native.frame import frame_function, suits_frame
from weft.codegen.native.layout import Field, Head, History, PictureWord, Word
from weft.codegen.native.target import Isa
from weft.codegen.native.types import DOUBLE
from weft.codegen.native.writer import ArgumentTable
from weft.codegen.values import Scalar
from weft.ir.rates import Rate


@dataclass(frozen=True, slots=True)
class PrologueLayout:
    """What the function is given: the words of its block of arguments, and the `numbers` of the launch. It leaves the
    `scalars`, locals that others read, 8 bytes each: reals, or whole numbers in the first 4."""

    fields: tuple[Field, ...]
    numbers: tuple[Scalar, ...]
    scalars: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class PrologueModule:
    """The text of a module, and the interface of its function, `frame.FRAME`."""

    text: str
    layout: PrologueLayout


def prologue_length(kernel: Kernel) -> int:
    """How many values come once in a launch."""
    return sum(len(section) for section in kernel.sections if section.rate <= Rate.FRAME)


def emit_prologue(kernel: Kernel, isa: Isa) -> PrologueModule | None:
    """The module of a kernel; None where there is nothing to compute, or what is there asks other subgraphs, or reads
    images that a device remembers."""
    if not suits_frame(kernel):
        return None
    places = ArgumentTable()
    for number in _read_later(kernel):
        places.scalar(Scalar("local", number, kernel.locals[number].type))
    text, declared = frame_function(kernel, isa, places, DOUBLE)
    if not text or not all(isinstance(field, (Word, Head, History, PictureWord)) for field in places.fields):
        return None
    attributes = f'attributes #0 = {{ nounwind "prefer-vector-width"="{isa.bits}" }}'
    layout = PrologueLayout(places.fields, places.numbers, places.scalars)
    return PrologueModule("\n".join([*sorted(declared), *text, attributes, ""]), layout)


def _read_later(kernel: Kernel) -> list[int]:
    """The locals that are computed once in a launch, and read by what is computed more often."""
    later = [given for section in kernel.sections if section.rate > Rate.FRAME for given in section.given()]
    return sorted({int(each.key) for each in later if isinstance(each, Scalar) and each.source == "local"})
