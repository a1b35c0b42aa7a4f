"""`weft compile`: a patch at any stage of its compilation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import click

from weft.backends.base import Env
from weft.backends.cpu import executor_problem
from weft.backends.native.executor import Listing, NativeExecutor
from weft.cli.arguments import ALLOW, FILE, compile_file
from weft.cli.console import Missing, make_folder, output, say, show, write_file
from weft.codegen import c_program, essl, glsl
from weft.codegen.bytecode import disassemble
from weft.codegen.clike import several
from weft.codegen.clike.buffers import KernelLanguage
from weft.codegen.clike.language import remark
from weft.codegen.clike.shader import Shader, UnsuitableError, plain
from weft.codegen.cuda import Cuda, Hip
from weft.codegen.kernel import Kernel, Unit
from weft.codegen.msl import Msl
from weft.codegen.native.plan import plan
from weft.codegen.opencl import OpenCl
from weft.codegen.wasm.sweep import WasmKernel, emit
from weft.codegen.wgsl import Wgsl
from weft.contexts import context_table, is_smoothed
from weft.errors import Diagnostic, WeftError, did_you_mean
from weft.graph.draw import to_text as graph_text
from weft.ir.dump import to_text as ir_text
from weft.names import is_microphone, is_sound
from weft.permissions import Permissions
from weft.runtime.compiling.stages import Build
from weft.runtime.films.offline import initial_inputs
from weft.runtime.program.findings import places_of
from weft.syntax.ast import dump


class _CompiledPatch(NamedTuple):
    """A patch, and the subgraphs to show."""

    build: Build
    units: tuple[Unit, ...]


def _ir(compiled: _CompiledPatch) -> str:
    contexts = compiled.build.contexts
    pairs = zip(compiled.build.units, compiled.build.lowered, strict=True)
    shown = [(unit, lowered) for unit, lowered in pairs if unit in compiled.units]
    return "\n".join(ir_text(lowered, contexts[unit.subgraph.context]) for unit, lowered in shown)


def _bytecode(compiled: _CompiledPatch) -> str:
    settings = compiled.build.patch.settings
    shape = (int(settings["height"]), int(settings["width"]))
    return "\n".join(disassemble(kernel, shape) for unit in compiled.units for kernel in unit.kernels)


def _listings(compiled: _CompiledPatch) -> Iterator[Listing]:
    """The machine code of each subgraph's kernel. Raises Missing if this machine cannot make any."""
    problem = executor_problem(NativeExecutor.name)
    if problem is not None:
        raise Missing(f"there is no machine code: {problem}")
    executor = NativeExecutor()
    for unit in compiled.units:
        packed = compiled.build.contexts[unit.subgraph.context].sweeps_plane and bool(unit.subgraph.sinks)
        yield from (executor.listing(stage, False) for stage in unit.kernel.stages)
        yield executor.listing(unit.kernel, packed)
    for refusal in executor.refusals.take():
        say(str(refusal))


class _ShadingLanguage(NamedTuple):
    """Writes the shaders of a kernel over a picture (packed or not) and over points, in a text with these macros.
    `plain` is the language itself."""

    over_picture: Callable[[Kernel, bool, frozenset[str]], Sequence[Shader]]
    over_points: Callable[[Kernel, frozenset[str]], Sequence[Shader]]
    plain: glsl.Glsl

    def shaders(self, compiled: _CompiledPatch, macros: frozenset[str] = frozenset()) -> _Shaders:
        return _shaders(
            compiled,
            lambda kernel, packed: self.over_picture(kernel, packed, macros),
            lambda kernel: self.over_points(kernel, macros),
        )


_GLSL = _ShadingLanguage(
    glsl.passes,
    lambda kernel, macros: [glsl.points(kernel, macros)],
    glsl.Glsl(),
)
_ESSL = _ShadingLanguage(
    essl.passes, lambda kernel, macros: essl.passes(kernel, packed=False, macros=macros), essl.Essl()
)


def _glsl(compiled: _CompiledPatch, language: _ShadingLanguage = _GLSL) -> str:
    """All shaders as one text that compiles unchanged."""
    found = language.shaders(compiled)
    if len(found.shaders) > 1:
        macros = several.macro_names(found.shaders)
        found = language.shaders(compiled, frozenset((several.CHOICE, *macros.values())))
        shaders = {macros[name]: shader for name, shader in found.shaders.items()}
        chosen = next((macro for macro, shader in shaders.items() if shader.packed), next(iter(shaders)))
        return plain("\n".join([several.text_of(shaders, chosen, language.plain), *found.remarks]))
    return plain("\n".join([*(shader.text for shader in found.shaders.values()), *found.remarks]))


def _glsl_files(compiled: _CompiledPatch, language: _ShadingLanguage) -> Mapping[str, str]:
    """Each of several shaders as its own text, in the version that it needs, by its name."""
    found = language.shaders(compiled)
    if len(found.shaders) < 2:
        return {}
    macros = several.macro_names(found.shaders)
    return {macros[name].lower(): plain(shader.text) for name, shader in found.shaders.items()}


def _kernels(compiled: _CompiledPatch, language: type[KernelLanguage]) -> str:
    """All kernels as one file that compiles unchanged."""
    found = _shaders(compiled, lambda kernel, packed: [language.pixels(kernel, packed)],
                     lambda kernel: [language.points(kernel)])  # fmt: skip
    texts = [shader.text for shader in found.shaders.values()]
    if len(texts) > 1:
        names = language.file_names(found.kernels)
        shared = _shaders(
            compiled,
            lambda kernel, packed: [language.pixels(kernel, packed, file=names)],
            lambda kernel: [language.points(kernel, names)],
        )
        texts = [language.file_of([*shared.shaders.values()])]
    return "\n".join([*texts, *found.remarks])


def _c(compiled: _CompiledPatch) -> str:
    """All programs as one text that compiles unchanged. Raises WeftError with the reason if there is none."""
    found = _c_programs(compiled)
    if len(found.texts) > 1:
        macros = several.macro_names(found.texts)
        found = _c_programs(compiled, frozenset((several.CHOICE, *macros.values())))
        lines = [f"// {len(macros)} programs in one text: {several.CHOICE} says which of them is compiled."]
        kinds = {macros[name]: kind for name, kind in found.kinds.items()}
        chosen = next((macro for macro in kinds if kinds[macro] == _PICTURE), next(iter(kinds)))
        lines += several.choice_of(kinds, chosen)
        parts = [f"#if {several.CHOICE} == {macros[name]}\n{text}#endif\n" for name, text in found.texts.items()]
        return plain("\n".join(["\n".join(lines) + "\n", *parts, *found.remarks]))
    return plain("\n".join([*found.texts.values(), *found.remarks]))


def _c_files(compiled: _CompiledPatch) -> Mapping[str, str]:
    """Each of several programs as its own text, by its name."""
    texts = _c_programs(compiled).texts
    macros = several.macro_names(texts) if len(texts) > 1 else {}
    return {macro.lower(): plain(texts[name]) for name, macro in macros.items()}


def _wasm(compiled: _CompiledPatch) -> str:
    """The modules of all kernels, one after another."""
    return plain("\n".join(each.module.text() for each in _wasm_kernels(compiled)))


def _wasm_files(compiled: _CompiledPatch) -> Mapping[str, str | bytes]:
    """The bytes of each module, by its name."""
    kernels = {each.layout.kernel: each for each in _wasm_kernels(compiled)}
    return {macro.lower(): kernels[name].encoded() for name, macro in several.macro_names(kernels).items()}


def _wasm_kernels(compiled: _CompiledPatch) -> list[WasmKernel]:
    return [emit(kernel.alone) for unit in compiled.units for kernel in unit.kernels]


_PICTURE = "a picture"


class _CPrograms(NamedTuple):
    """Programs in C and what they write, by the names of their kernels, and a comment for each other kernel."""

    texts: Mapping[str, str]
    kinds: Mapping[str, str]
    remarks: tuple[str, ...]


def _c_programs(compiled: _CompiledPatch, macros: frozenset[str] = frozenset()) -> _CPrograms:
    """Raises WeftError, at the place of the first output statement, with the reason if there is no program."""
    texts: dict[str, str] = {}
    kinds: dict[str, str] = {}
    refused: dict[str, Diagnostic] = {}
    build, places = compiled.build, places_of(compiled.build.patch)
    for unit in compiled.units:
        spec = build.contexts[unit.subgraph.context]
        kinds[unit.kernel.name] = _PICTURE if spec.sweeps_plane else "a sound"
        try:
            texts[unit.kernel.name] = c_program_of(build, unit, macros)
        except UnsuitableError as reason:
            place = next((places[sink] for sink in unit.subgraph.sinks if sink in places), None)
            words = f"there is no program in C for {unit.kernel.name}: {reason}"
            hint = "weft render writes it as a file" if spec.sweeps_plane or spec.streams else None
            refused[unit.kernel.name] = Diagnostic.of("no-program", words, place, hint)
    if not texts:
        words = "the patch shows and plays nothing that a program could write"
        raise WeftError(*refused.values() or [Diagnostic.of("no-program", words)])
    remarks = tuple(f"// {remark(problem.message, _LONGEST_REASON)}\n" for problem in refused.values())
    return _CPrograms(texts, {name: kinds[name] for name in texts}, remarks)


def c_program_of(build: Build, unit: Unit, macros: frozenset[str] = frozenset()) -> str:
    """The program of a picture or a sound. Raises UnsuitableError with the reason if there is none."""
    kernel, spec, settings = unit.kernel, build.contexts[unit.subgraph.context], build.patch.settings
    if not kernel.outputs or not (spec.sweeps_plane or spec.streams):
        raise UnsuitableError("it is neither a picture nor a sound")
    rate = spec.rate or settings["rate" if spec.streams else "fps"]
    width, height = int(settings["width"]), int(settings["height"])
    env = Env(width, height, dt=1 / rate, inputs=initial_inputs(build.patch))
    names = (*kernel.uniforms, *(name for name, _ in kernel.coords if is_smoothed(name)))
    if any(map(is_microphone, names)):
        raise UnsuitableError("it reads the microphone")
    if unit.borrowed:
        raise UnsuitableError("it reads what another picture remembers")
    start = c_program.Start(width, height, rate, {name: env.uniform(name) for name in names if not is_sound(name)})
    if spec.streams:
        return c_program.sound(kernel, start, macros)
    return c_program.picture(kernel, start, macros)


class _Shaders(NamedTuple):
    """The kernels that have become shaders, the shaders by their names, and a comment for each other kernel. A shader
    is named after its kernel; further ones of the same kernel have a number after the name."""

    kernels: tuple[Kernel, ...]
    shaders: Mapping[str, Shader]
    remarks: tuple[str, ...]


def _shaders(
    compiled: _CompiledPatch, over_pixels: Callable[[Kernel, bool], Sequence[Shader]],
    over_points: Callable[[Kernel], Sequence[Shader]],
) -> _Shaders:  # fmt: skip
    kernels: list[Kernel] = []
    shaders: dict[str, Shader] = {}
    remarks: list[str] = []
    times_of_films = [unit.films for unit in compiled.units]
    for kernel in (kernel for unit in compiled.units for kernel in unit.kernels):
        try:
            if kernel in times_of_films:
                raise UnsuitableError("it says once a frame which pictures of films are read")
            if kernel.sweep == "points":
                made = over_points(kernel)
            else:
                packed = compiled.build.contexts[kernel.context].sweeps_plane and bool(kernel.outputs)
                made = over_pixels(kernel, packed)
            kernels.append(kernel)
            for number, shader in enumerate(made, 1):
                shaders[kernel.name if number == 1 else f"{kernel.name} {number}"] = shader
        except UnsuitableError as reason:
            remarks.append(f"// {kernel.name} runs on the CPU: {remark(str(reason), _LONGEST_REASON)}\n")
    return _Shaders(tuple(kernels), shaders, tuple(remarks))


class _Stage(NamedTuple):
    text: Callable[[_CompiledPatch], str]
    title: str


_STAGES: Mapping[str, _Stage] = MappingProxyType(
    {
        "ast": _Stage(lambda compiled: dump(compiled.build.program), "syntax tree"),
        "graph": _Stage(lambda compiled: graph_text(compiled.build.graph), "render graph"),
        "ir": _Stage(_ir, "intermediate representation"),
        "bytecode": _Stage(_bytecode, "bytecode"),
        "llvm": _Stage(lambda compiled: "\n".join(each.llvm for each in _listings(compiled)), "LLVM code"),
        "asm": _Stage(
            lambda compiled: "\n".join(each.assembly() for each in _listings(compiled)), "assembly of this processor"
        ),
        "msl": _Stage(lambda compiled: _kernels(compiled, Msl), "Metal kernels"),
        "cuda": _Stage(lambda compiled: plain(_kernels(compiled, Cuda)), "CUDA kernels"),
        "hip": _Stage(lambda compiled: plain(_kernels(compiled, Hip)), "HIP kernels"),
        "opencl": _Stage(lambda compiled: plain(_kernels(compiled, OpenCl)), "OpenCL kernels"),
        "wgsl": _Stage(lambda compiled: plain(_kernels(compiled, Wgsl)), "WGSL kernels, for WebGPU"),
        "glsl": _Stage(_glsl, "GLSL shaders"),
        "essl": _Stage(lambda compiled: _glsl(compiled, _ESSL), "GLSL ES shaders, for WebGL 2"),
        "c": _Stage(_c, "programs in C that write a frame or a second"),
        "wasm": _Stage(_wasm, "WebAssembly, as text"),
    }
)

# The endings of files of stages, where these are not the names of the stages.
_ENDINGS: Mapping[str, str] = MappingProxyType({"cuda": "cu", "opencl": "cl", "wasm": "wat"})

# The most characters of a reason: it is a comment on one line.
_LONGEST_REASON = 1000

# The stages whose programs are also written as a file each, by names that come between those of the patch and stage.
_IN_FILES: Mapping[str, Callable[[_CompiledPatch], Mapping[str, str | bytes]]] = MappingProxyType({
    "glsl": lambda compiled: _glsl_files(compiled, _GLSL), "essl": lambda compiled: _glsl_files(compiled, _ESSL),
    "c": _c_files, "wasm": _wasm_files,
})  # fmt: skip

_MACHINE_CODE = ("llvm", "asm")


def _dump_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds `--dump-NAME` for every stage; `dumps` lists those given."""
    for name, stage in reversed([*_STAGES.items()]):
        words = f"Show the {stage.title}."
        command = click.option(f"--dump-{name}", "dumps", flag_value=name, multiple=True, help=words)(command)
    return command


@click.command("compile")
@FILE
@_dump_options
@click.option("--context", metavar="NAME", help="Only the subgraphs of this context.")
@click.option("-O", "level", type=click.Choice(["0", "1"]), default="1", help="0: leave out optimisations.")
@click.option("-o", "folder", type=click.Path(path_type=Path), metavar="DIR",
              help="Write files instead; of all stages, if none is named.")
@ALLOW
def command(
    file: str, dumps: tuple[str, ...], context: str | None, level: str, folder: Path | None, permissions: Permissions
) -> None:
    """Compile FILE, and show any stage of it."""
    known = [spec.name for spec in context_table()]
    if context is not None and context not in known:
        hint = did_you_mean(context, known) or f"there are {', '.join(known)}"
        raise click.UsageError(f'there is no context "{context}" ({hint})')
    build = compile_file(file, optimise=level == "1", permissions=permissions)
    show(build.warnings)
    units = tuple(u for u in build.units if context in (None, u.subgraph.context))
    compiled = _CompiledPatch(build, units)
    wanted = [name for name in _STAGES if name in dumps]
    if folder is not None:
        _write(compiled, wanted, folder, Path(file).stem)
    elif wanted:
        heads = len(wanted) > 1
        output("\n".join(f"// {name}\n" * heads + _STAGES[name].text(compiled) for name in wanted), end="")
    else:
        output("\n".join(_summary(file, compiled)))


def _write(compiled: _CompiledPatch, wanted: list[str], folder: Path, stem: str) -> None:
    """Writes a file for each wanted stage; if none is named, for each that this machine can show."""
    make_folder(folder)
    has_machine_code = executor_problem(NativeExecutor.name) is None
    for name in wanted or [name for name in _STAGES if has_machine_code or name not in _MACHINE_CODE]:
        try:
            texts: dict[str, str | bytes] = {f"{stem}.{_ENDINGS.get(name, name)}": _STAGES[name].text(compiled)}
        except WeftError:
            if wanted:
                raise
            continue  # it does not have this one
        if name in _IN_FILES:
            texts |= {f"{stem}.{each}.{name}": text for each, text in _IN_FILES[name](compiled).items()}
        for file_name, text in texts.items():
            write_file(folder / file_name, text.encode() if isinstance(text, str) else text)
            output(str(folder / file_name))


def _plans(unit: Unit) -> list[str]:
    """How the stages of a unit, and the rest of it, run as native code, each plan once."""
    return list(dict.fromkeys(plan(kernel).text for kernel in (*unit.kernel.stages, unit.kernel)))


def _summary(file: str, compiled: _CompiledPatch) -> list[str]:
    """The result of the compile: the subgraphs, the number of values at each rate, and the time it took."""
    build, count = compiled.build, len(compiled.units)
    lines = [f"{file}: {count} subgraph{'s' * (count != 1)}"]
    for unit in compiled.units:
        sections = ", ".join(f"{s.rate.title} {len(s)}" for s in unit.kernel.sections if s)
        lines.append(f"  {unit.subgraph.name} · {unit.subgraph.context} · values: {sections or 'none'}")
        lines += [f"    native: {text}" for text in _plans(unit)]
        lines.append(f"    hash {unit.hash}")
    lines.append(f"text → tree {build.parse_ms:.1f} ms, → graph {build.graph_ms:.1f} ms, "
                 f"→ kernels {build.compile_ms:.1f} ms")  # fmt: skip
    return lines
