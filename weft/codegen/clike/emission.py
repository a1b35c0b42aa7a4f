"""Kernels as programs of a language: the statements are written once, and each form of the language puts its own text
around them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf

from weft.codegen.clike.body import ShaderWriter, image_of
from weft.codegen.clike.fields import NumberedKernel
from weft.codegen.clike.language import CodeLine, FrameBlock, Identifiers, Language, ProgramParts
from weft.codegen.clike.lines import NO_LINES, LinePlan
from weft.codegen.clike.pieces import pieces_of
from weft.codegen.clike.reads import read_program
from weft.codegen.clike.shader import Shader
from weft.codegen.kernel import Kernel
from weft.codegen.values import Section


def write_program(writer: ShaderWriter) -> None:
    """Writes the statements of a program, its outputs and what it stores into its parts."""
    program, parts = writer.program, writer.parts
    writer.write(program.nodes)
    parts.outputs = [writer.as_real(node) for node in program.outputs]
    parts.sure_outputs = [writer.ranges.are_numbers([node]) for node in program.outputs]
    parts.limits = (*parts.limits, *writer.ranges.limits)
    for store in program.stores:
        slot = parts.kernel.slot(store.place.slot)
        if slot.image:
            image_of(writer, slot)
        parts.stores.append((store.place, writer.as_real(store.value)))
    if parts.stops:
        declared = writer.language.declared("bool", "stopped", "false", varies=True)
        parts.body.insert(0, CodeLine(f"{declared}  // a loop met its limit"))


def emit(
    kernel: Kernel, language: Language, packed: bool = False, numbered: NumberedKernel | None = None
) -> Shader:
    """A kernel as a program: with its outputs as floats, or `packed` as the pixels of a picture. `numbered` is the
    kernel with its numbers as inputs, if it is known.

    Raises UnsuitableError, with the reason, if the language has no such program, and ValueError if the outputs do not
    make a picture.
    """
    (program,) = emit_forms(kernel, (language,), packed, numbered)
    return program()


def emit_forms(
    kernel: Kernel, languages: Sequence[Language], packed: bool, numbered: NumberedKernel | None = None
) -> list[Callable[[], Shader]]:
    """A kernel in several forms of one language, which differ only around the statements: these are written once.
    Raises UnsuitableError if there is none in any form; each form raises it for itself."""
    (forms,) = emit_pieces(kernel, languages, packed, numbered, lambda _, program: [program])
    return forms


def emit_pieces(
    kernel: Kernel, languages: Sequence[Language], packed: bool, numbered: NumberedKernel | None = None,
    cut: Callable[[Kernel, Section], list[Section]] = pieces_of,
) -> list[list[Callable[[], Shader]]]:  # fmt: skip
    """The same for the programs that a kernel is `cut` into, which run one after another. The last has the outputs."""
    if packed and len(kernel.outputs) not in (1, 3, 4):
        raise ValueError(f"a picture has 1, 3 or 4 outputs, not {len(kernel.outputs)}")
    numbered = numbered or NumberedKernel.of(kernel)
    numbers = kernel.numbers
    program, prologue = read_program(numbered.kernel)
    *before, last = cut(kernel, program)

    def forms(kernel: Kernel, packed: bool, program: Section) -> list[Callable[[], Shader]]:
        return _forms(languages, ProgramParts(kernel, packed, _frame(languages)), program, prologue, numbers)

    silent = replace(kernel, outputs=())
    return [*(forms(silent, False, each) for each in before), forms(kernel, packed, last)]


def _frame(languages: Sequence[Language]) -> FrameBlock:
    return FrameBlock(Identifiers(languages[0].taken), languages[0].frame_access)


def _forms(
    languages: Sequence[Language], parts: ProgramParts, program: Section, prologue: Section, numbers: Sequence[float]
) -> list[Callable[[], Shader]]:
    least = min(each.worth_sharing for each in languages)
    lines = LinePlan.of(program, least) if least < inf else NO_LINES
    write_program(ShaderWriter(languages[0], parts, program, prologue, numbers, lines))
    forms = [(language, parts.frame.copy(), set(parts.helpers)) for language in languages]

    def form(language: Language, frame: FrameBlock, helpers: set[str]) -> Shader:
        return replace(language.program(replace(parts, frame=frame, helpers=helpers)), numbers=tuple(numbers))

    return [functools.partial(form, *each) for each in forms]
