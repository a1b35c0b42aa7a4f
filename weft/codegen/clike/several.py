"""Several programs in one text, of which a macro chooses one: the dumps of a patch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from weft.codegen.clike.language import Identifiers, Language, identifier, shared_functions, without_functions
from weft.codegen.clike.shader import Shader

CHOICE = "KERNEL"
"""The macro that chooses a shader of a text that holds several."""


def macro_names(shaders: Iterable[str]) -> Mapping[str, str]:
    """Macros that name the shaders of one text: `visual/display` is `VISUAL_DISPLAY`."""
    names = Identifiers((CHOICE,))
    made = {}
    for shader in shaders:
        name = identifier(shader).upper()
        made[shader] = names.unique(f"{CHOICE}_{name}" if name.startswith("GL_") else name)
    return made


def choice_of(macros: Mapping[str, str], chosen: str) -> list[str]:
    """The lines that define macros, with a comment each, and choose one of them unless another is chosen before."""
    width = max(map(len, macros))
    defined = [f"#define {macro:{width}} {at}  // {about}" for at, (macro, about) in enumerate(macros.items(), 1)]
    return [*defined, f"#ifndef {CHOICE}", f"#define {CHOICE} {chosen}", "#endif"]


def text_of(shaders: Mapping[str, Shader], chosen: str, language: Language) -> str:
    """One text of several shaders in a `language`, by their macros. A compiler compiles the `chosen` one unless another
    is defined. The version is the highest that any of them needs, and shared functions appear once."""
    parts = {macro: without_functions(shader) for macro, shader in shaders.items()}
    lines = [
        max(part[0] for part in parts.values()),
        *language.precisions,
        f"// {len(shaders)} shaders in one text: {CHOICE} says which of them is compiled.",
        *choice_of(
            {name: f"{'compute' if each.computes else 'fragment'} shader" for name, each in shaders.items()}, chosen
        ),
        *shared_functions(language, shaders.values()),
    ]
    for macro, (_, *part) in parts.items():
        own = [line for line in part if line not in language.precisions]
        lines += ["", f"#if {CHOICE} == {macro}", *own, "#endif"]
    return "\n".join(lines) + "\n"
