"""From a kernel to a program for a graphics card."""

from __future__ import annotations

from weft.codegen.base import Kernel
from weft.codegen.clike.body import ShaderWriter, as_real
from weft.codegen.clike.language import FrameBlock, Language, ProgramParts
from weft.codegen.clike.memory import image_of
from weft.codegen.clike.names import Identifiers
from weft.codegen.clike.plan import plan
from weft.codegen.clike.read import read_program
from weft.codegen.clike.shader import Shader


def emit(kernel: Kernel, language: Language, packed: bool = False) -> Shader:
    """A kernel as a program: with its outputs as reals, or `packed` as the pixels of a picture.

    Raises UnsuitableError, with the reason, if the language has no such program, and ValueError if the outputs are no
    picture.
    """
    if packed and len(kernel.outputs) not in (1, 3, 4):
        raise ValueError(f"a picture has 1, 3 or 4 outputs, not {len(kernel.outputs)}")
    program = read_program(kernel)
    parts = ProgramParts(kernel, packed, FrameBlock(Identifiers(language.taken)), [], [], [], {}, {}, {}, {}, [], set(), stops=False)
    writer = ShaderWriter(language, parts, program, plan(program, language.has_fract))
    writer.write(program.nodes)
    parts.outputs = [as_real(writer.value(node), node) for node in program.outputs]
    for store in program.stores:
        image_of(writer, kernel.slot(store.place.slot))
        parts.stores.append((store.place, as_real(writer.value(store.value), store.value)))
    return language.program(parts)
