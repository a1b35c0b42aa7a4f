"""Puts the pieces of a program together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.codegen.clike.language import CodeLine, Language, ProgramParts
from weft.codegen.clike.names import remark
from weft.codegen.clike.shader import BufferSpec, Kind, Shader

_INDENT = "    "
_TYPES: dict[Kind, str] = {"real": "float", "truth": "uint", "bits": "uint", "int": "int"}


def block(head: str, lines: Iterable[CodeLine]) -> list[CodeLine]:
    """Lines in braces behind a head."""
    return [CodeLine(f"{head} {{"), *(CodeLine(line.text, line.depth + 1, line.place) for line in lines), CodeLine("}")]


def structure(language: Language, parts: ProgramParts, head: str, end: str) -> list[str]:
    """The declaration of the frame's block; nothing if it is empty. To be asked for when all is read."""
    fields = parts.frame.uniforms.values()
    if not fields:
        return []
    made = [f"{head} {{"]
    for field in fields:
        remark = parts.frame.remarks.get(field.name)
        made.append(f"{_INDENT}{_TYPES[field.kind]} {field.name};" + (f"  // {remark}" if remark else ""))
    return [*made, end]


def document(
    language: Language,
    parts: ProgramParts,
    top: Sequence[str],
    given: Sequence[Sequence[str]],
    main: Sequence[CodeLine],
    images: bool = False,
    workgroup: int | None = None,
    entry: str = "main",
    buffers: Sequence[BufferSpec] = (),
) -> Shader:
    """The program: its first lines, what it is given (in groups), functions, and the entry. With `images`, slots are
    written as images instead of targets."""
    kernel = parts.kernel
    shown = ", ".join(kernel.outputs) or "state alone"
    title = f"// {remark(f'{kernel.name} → {shown}')}"
    calls = sorted(parts.helpers)
    functions = [text.split("\n") for text in language.functions(calls)]
    lines = [*map(CodeLine, top)]
    # Nothing may stand before a version.
    lines.insert(int(top[0].startswith("#version")), CodeLine(title))
    for group in filter(None, given):
        lines += [CodeLine(""), *map(CodeLine, group)]
    first_function = len(lines)
    for group in functions:
        lines += [CodeLine(""), *map(CodeLine, group)]
    after_functions = len(lines)
    lines += [CodeLine(""), *main]
    return Shader(
        language=language.name,
        text="".join(f"{_INDENT * line.depth}{line.text}".rstrip() + "\n" for line in lines),
        places=tuple(line.place for line in lines),
        uniforms=tuple(parts.frame.uniforms.values()),
        images=tuple(parts.images.values()),
        histories=tuple(parts.histories.values()),
        pictures=tuple(parts.pictures.values()),
        asked=tuple(parts.asked.values()),
        coords=tuple(parts.coords),
        outputs=kernel.outputs,
        packed=parts.packed,
        stores=tuple(place for place, _ in parts.stores),
        to_images=images,
        stops=parts.stops,
        workgroup=workgroup,
        entry=entry,
        buffers=tuple(buffers),
        calls=tuple(calls),
        functions=(first_function, after_functions),
    )


def shared_functions(language: Language, shaders: Iterable[Shader]) -> list[str]:
    """The functions that any of these programs calls, each once, with an empty line before each."""
    calls = sorted({name for shader in shaders for name in shader.calls})
    return [line for text in language.functions(calls) for line in ("", *text.split("\n"))]


def without_functions(shader: Shader) -> list[str]:
    """The lines of a program but for the functions."""
    lines = shader.text.splitlines()
    first, after = shader.functions
    return lines[:first] + lines[after:]
