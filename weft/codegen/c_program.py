"""Whole programs in C: one frame of a picture, or the first second of a sound, as a file.

The numbers that are the same in a whole picture are computed once a frame, by the statements of the launch prologue.
All values of a sound are computed for each sample. Memory begins at zero, and inputs from outside keep the values that
they have at the start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from weft.codegen.c99 import C
from weft.codegen.clike.body import ShaderWriter, layer_to_write
from weft.codegen.clike.emission import write_program
from weft.codegen.clike.language import CodeLine, FrameBlock, Identifiers, ProgramParts, identifier, remark
from weft.codegen.clike.reads import read_program
from weft.codegen.clike.shader import (
    BufferUse, LaunchExtent, LevelExtent, PastCell, PastValue, Source, UnsuitableError, plain
)
from weft.codegen.kernel import Kernel
from weft.codegen.native.target import Head
from weft.codegen.open_numbers import without_numbers
from weft.codegen.values import Node, Rewriter, Scalar, Section, joined, operands
from weft.contexts import channel_of, is_smoothed
from weft.ir.expr import StateSlot
from weft.ir.rates import Rate
from weft.names import shown

_TOP = """\
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__)
// Conditions have the parentheses that they need, and no others.
#pragma GCC diagnostic ignored "-Wparentheses"
#endif"""

_REPORT = '    if (met_limit) fprintf(stderr, "a loop was stopped: it had too many steps\\n");\n'

_MEMORY = """\
// What is remembered: cell after cell, and plane after plane.
static double *memory[{count}];

static bool make_memory(void) {{
    static const size_t sizes[{count}] = {{{sizes}}};
    for (int at = 0; at < {count}; at++) {{
        free(memory[at]);
        memory[at] = calloc(sizes[at], sizeof(double));
        if (memory[at] == NULL) {{
            fputs("there is not enough memory\\n", stderr);
            return false;
        }}
    }}
    return true;
}}"""

_PICTURE = """\
int main(int argc, char **argv) {{
    static double values[{numbers}];
    char *end = NULL;
    long last = argc > 2 ? strtol(argv[2], &end, 10) : 0;
    if (argc < 2 || argc > 3 || last < 0 || (end != NULL && (*end != 0 || end == argv[2]))) {{
        fprintf(stderr, "usage: %s FILE [FRAME]: writes a picture, {form}; the first frame is 0\\n", argv[0]);
        return 2;
    }}
{prepare}    for (long tick = {first}; tick <= last; tick++) {{
        double now = (double)tick / {rate};
{calls}    }}
    FILE *file = fopen(argv[1], "wb");
    if (file == NULL) {{
        perror(argv[1]);
        return 1;
    }}
    fprintf(file, "{head}");
    for (size_t pixel = 0; pixel < {pixels}; pixel++) {{
        for (size_t channel = 0; channel < {channels}; channel++) {{
            double level = values[(channel < {outputs} ? channel : 0) * {pixels} + pixel];
            level = level > 0.0 ? level < 1.0 ? level : 1.0 : 0.0;
            fputc((int)floor(level * 255.0 + 0.5), file);
        }}
    }}
{report}    return ferror(file) | fclose(file) ? 1 : 0;
}}"""

_SOUND = """\
// A number of so many bytes, the lowest first.
static void put(FILE *file, uint32_t number, int bytes) {{
    for (int at = 0; at < bytes; at++) fputc((int)(number >> 8 * at & 255u), file);
}}

int main(int argc, char **argv) {{
    static float samples[{samples}][{channels}];
    if (argc != 2) {{
        fprintf(stderr, "usage: %s FILE: writes the first second, a WAV file of floats\\n", argv[0]);
        return 2;
    }}
    for (int channel = 0; channel < {channels}; channel++) {{
{prepare}        for (unsigned long tick = 0; tick < {samples}; tick++) {{
            double out[{outputs}];
            {name}_tick((double)tick / {rate}, tick, channel, out);
            double sum = 0.0;
            for (int at = 0; at < {outputs}; at++) {{
                // The channel of each output; -1 is all of them.
                static const int places[{outputs}] = {{{places}}};
                if (isfinite(out[at]) && (places[at] == -1 || places[at] == channel)) sum += out[at];
            }}
            samples[tick][channel] = (float)(sum > -1.0 ? sum < 1.0 ? sum : 1.0 : -1.0);
        }}
    }}
    FILE *file = fopen(argv[1], "wb");
    if (file == NULL) {{
        perror(argv[1]);
        return 1;
    }}
    fputs("RIFF", file);
    put(file, 36 + (uint32_t)sizeof samples, 4);
    fputs("WAVEfmt ", file);
    put(file, 16, 4);
    put(file, 3, 2);
    put(file, {channels}, 2);
    put(file, {whole_rate}, 4);
    put(file, {whole_rate} * 4 * {channels}, 4);
    put(file, 4 * {channels}, 2);
    put(file, 32, 2);
    fputs("data", file);
    put(file, (uint32_t)sizeof samples, 4);
    for (size_t tick = 0; tick < {samples}; tick++) {{
        for (size_t channel = 0; channel < {channels}; channel++) {{
            uint32_t bits = 0;
            memcpy(&bits, &samples[tick][channel], 4);
            put(file, bits, 4);
        }}
    }}
{report}    return ferror(file) | fclose(file) ? 1 : 0;
}}"""


class Start(NamedTuple):
    """The values with which a program begins: the size of the picture, the frames or samples a second, and the values
    of uniforms and of coordinates that are inputs, by their names."""

    width: int
    height: int
    rate: float
    values: Mapping[str, float]


def picture(kernel: Kernel, start: Start, macros: frozenset[str] = frozenset()) -> str:
    """The program of a picture; `macros` are those of the text that it is part of. Raises UnsuitableError with the
    reason if there is none."""
    kernel = without_numbers(kernel)
    program = _CFile.of(kernel, start, macros)
    for each in (*kernel.stages, kernel.alone):
        program.add_picture(each)
    outputs, pixels = len(kernel.outputs), start.width * start.height
    channels = max(3, outputs)
    form = "PAM" if channels == 4 else "PPM"
    head = f"P6\n{start.width} {start.height}\n255\n"
    if channels == 4:
        size = f"WIDTH {start.width}\nHEIGHT {start.height}"
        head = f"P7\n{size}\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n"
    calls = "".join(f"        {name}_tick(now, (unsigned long)tick, values);\n" for name in program.names.values())
    return program.text(_PICTURE.format(
        outputs=outputs, pixels=pixels, numbers=outputs * pixels,
        form=form, head=head.replace("\n", "\\n"), channels=channels, calls=calls,
        rate=program.language.real(start.rate), first="0" if kernel.remembers else "last",
        prepare=program.prepare(4), report=program.report,
    ))  # fmt: skip


def sound(kernel: Kernel, start: Start, macros: frozenset[str] = frozenset()) -> str:
    """The program of a sound; `macros` are those of the text that it is part of. Raises UnsuitableError with the reason
    if there is none."""
    kernel = without_numbers(kernel)
    program = _CFile.of(kernel, start, macros)
    if any(slot.image for slot in kernel.slots) or kernel.stages:
        raise UnsuitableError("it remembers pictures")
    program.add_sound(kernel)
    whole_rate = round(start.rate)
    places = [*map(_place, kernel.outputs)]
    return program.text(_SOUND.format(
        samples=whole_rate, channels=max(2, 1 + max(places)), outputs=len(places), places=", ".join(map(str, places)),
        name=program.names[kernel.name], rate=program.language.real(start.rate), whole_rate=whole_rate,
        prepare=program.prepare(8), report=program.report,
    ))  # fmt: skip


# Instead of a channel: all of them, and none, for what is no sound.
_ALL, _NONE = -1, -2


def _place(label: str) -> int:
    """The channel to which an output of this label goes."""
    place = channel_of(label)
    return _NONE if is_smoothed(label) else _ALL if place is None else place


@dataclass
class _CFile:
    """The parts of a program: its structs and functions, in their order."""

    kernel: Kernel
    start: Start
    slots: Mapping[str, tuple[int, StateSlot]]
    """Each slot, with its number in the memory, by its key."""
    names: Mapping[str, str]
    """The names of functions, by the names of kernels, in the order in which these run."""
    language: C
    texts: list[str] = field(default_factory=list)
    stops: bool = False

    @classmethod
    def of(cls, kernel: Kernel, start: Start, macros: frozenset[str]) -> _CFile:
        if kernel.strands:
            raise UnsuitableError(f"it reads {kernel.strands[0].short} of another subgraph")
        if kernel.pictures:
            raise UnsuitableError(f"it reads {shown(kernel.pictures[0])}")
        unused = Identifiers({*C.reserved, *C().function_names, *macros})
        names = {each.name: unused.unique(identifier(each.name)) for each in (*kernel.stages, kernel)}
        taken = frozenset(f"{name}{end}" for name in names.values() for end in ("", "_frame", "_tick"))
        slots = {slot.key: (at, slot) for at, slot in enumerate(kernel.slots)}
        return cls(kernel, start, slots, names, C(taken | macros))

    def text(self, main: str) -> str:
        """The whole program, with this end, in ASCII."""
        outputs = ", ".join(self.kernel.outputs)
        sizes = ", ".join(map(str, self._sizes))
        memory = [_MEMORY.format(count=len(self.slots), sizes=sizes)] if self.slots else []
        limit = ["static int met_limit;  // whether a loop met its limit"] if self.stops else []
        functions = self.language.functions_of(self.texts)
        title = f"// {remark(f'{self.kernel.name} → {outputs}')}"
        return plain("\n\n".join([f"{title}\n{_TOP}", *memory, *limit, *functions, *self.texts, main]) + "\n")

    @property
    def _sizes(self) -> list[int]:
        slots = [slot for _, slot in self.slots.values()]
        return [(slot.depth + 1) * slot.planes * (self._pixels(slot.level) if slot.image else 1) for slot in slots]

    def prepare(self, depth: int) -> str:
        """The statements of the main function before its loop, indented."""
        return f"{' ' * depth}if (!make_memory()) return 1;\n" if self.slots else ""

    @property
    def report(self) -> str:
        return _REPORT if self.stops else ""

    def _side(self, level: int, axis: int) -> int:
        """The width (0) or height (1) of a level of the picture."""
        return -(-(self.start.width, self.start.height)[axis] >> level)

    def _pixels(self, level: int) -> int:
        return self._side(level, 0) * self._side(level, 1)

    # Pictures.

    def add_picture(self, kernel: Kernel) -> None:
        """Adds the function that computes a pixel, and the one that computes a frame."""
        language, name = self.language, self.names[kernel.name]
        program, prologue = read_program(kernel)
        parts = self._parts(kernel, language.frame_access)
        write_program(ShaderWriter(language, parts, program, prologue, ()))
        body = language.element(parts)
        given = language.given(parts, f"{name}_frame")
        uniforms = parts.frame.uniforms.values()
        fields = [f"    {language.field(entry)};" for entry in uniforms]
        self.texts.append("\n".join([f"struct {name}_frame {{", *fields, "};"]))
        parameters = ", ".join([*(each.text for each in given), "uint32_t id"])
        self._add_function(f"{name}({parameters})", body)

        of_locals = {entry.source: prologue.locals[int(entry.source.key)] for entry in uniforms
                     if isinstance(entry.source, Scalar) and entry.source.source == "local"}  # fmt: skip
        once, values = self._once(kernel, prologue, of_locals.values())
        once.append(CodeLine(f"struct {name}_frame frame;"))
        known = dict(zip(of_locals, values, strict=True))
        for entry in uniforms:
            text = known[entry.source] if entry.source in known else self._given(entry.source, kernel.level)
            once.append(CodeLine(f"frame.{entry.name} = {text};"))
        arguments = [self._argument(each.buffer.use, each.buffer.key) for each in given]
        call = f"{name}({', '.join([*arguments, 'id'])});"
        once.append(CodeLine(f"for (uint32_t id = 0; id < {self._pixels(kernel.level)}; id++) {call}"))
        self._add_function(f"{name}_tick(double now, unsigned long tick, double *values)", once)
        self.stops |= parts.stops

    def _argument(self, use: BufferUse, key: str) -> str:
        match use:
            case BufferUse.FRAME:
                return "&frame"
            case BufferUse.OUT:
                return "values"
            case BufferUse.LIMIT:
                return "&met_limit"
        return f"memory[{self.slots[key][0]}]"

    # Sounds.

    def add_sound(self, kernel: Kernel) -> None:
        """Adds the function that computes a sample."""
        whole = joined(Rate.ELEMENT, kernel.sections)
        lines = {leaf: Node("scalar", (), leaf.kind, Scalar("coord", leaf.attr.key, leaf.kind))
                 for leaf in whole.leaves() if leaf.op == "line"}  # fmt: skip
        whole = Rewriter(lines).section(whole)
        once, values = self._once(kernel, whole, whole.outputs)
        once += [CodeLine(f"out[{at}] = {value};") for at, value in enumerate(values)]
        head = f"{self.names[kernel.name]}_tick(double now, unsigned long tick, int channel, double *out)"
        self._add_function(head, once)

    # Values that are computed once, for a frame or a sample.

    def _once(
        self, kernel: Kernel, section: Section, wanted: Iterable[Node]
    ) -> tuple[list[CodeLine], list[str]]:
        """The statements that compute the `wanted` values of a section, and store what it stores; and the texts of
        these values after them."""
        outputs = tuple(wanted)
        used = {*outputs, *(store.value for store in section.stores)}
        for node in reversed(section.nodes):
            if node in used:
                used.update(operands(node))
        nodes = tuple(node for node in section.nodes if node in used)
        parts = self._parts(kernel, "")
        needed = Section(section.rate, nodes, outputs, section.stores, notes=section.notes)
        writer = ShaderWriter(self.language, parts, needed, Section(Rate.FRAME), ())
        parts.frame.names = writer.names  # all of them are variables of one function
        write_program(writer)
        stores = []
        for place, value in parts.stores:
            at, slot = self.slots[place.slot]
            if slot.image:
                raise UnsuitableError("it remembers a picture")
            layer = layer_to_write(parts, place)
            stores.append(CodeLine(f"memory[{at}][{layer}] = {value};"))
        if parts.stops:
            self.stops = True
            stores.append(CodeLine("if (stopped) met_limit = 1;"))
        given = [
            CodeLine(self.language.declared("u32" if entry.kind == "bool" else entry.kind, entry.name, text))
            for entry in parts.frame.uniforms.values() for text in [self._given(entry.source, kernel.level)]
        ]  # fmt: skip
        given += [CodeLine(f"const double *{each.name} = memory[{self.slots[each.key][0]}];")
                  for each in (*parts.histories.values(), *parts.images.values())]  # fmt: skip
        if any(re.search(r"\bcount\b", line.text) for line in parts.body if not line.text.startswith("//")):
            given.append(CodeLine(f"uint32_t count = {self._pixels(kernel.level)}u;"))
        return [*given, *parts.body, *stores], parts.outputs

    def _parts(self, kernel: Kernel, access: str) -> ProgramParts:
        return ProgramParts(kernel, False, FrameBlock(Identifiers(self.language.taken), access))

    def _given(self, source: Source, level: int) -> str:
        """The text of a number that is the same for a whole frame or sample."""
        match source:
            case Scalar("coord", "abstime"):
                return "now"
            case Scalar("coord", "channel"):
                return "(double)channel" if self.kernel.tick == "element" else "0.0"
            case Scalar("uniform", "absframe"):
                return "(double)tick"
            case Scalar(_, str(name)) if name in self.start.values:
                return self.language.real(self.start.values[name])
            case LaunchExtent.COLUMNS | LaunchExtent.ROWS:
                return f"{self._side(level, source == LaunchExtent.ROWS)}u"
            case LevelExtent(other, side):
                return f"{self._side(other, side == LaunchExtent.ROWS)}u"
            case Head(key):
                return f"(int)(tick % {self.slots[key][1].depth + 1})"
            case PastCell(key, k):
                cells = self.slots[key][1].depth + 1
                return f"(int)((tick + {cells - k}) % {cells})"
            case PastValue(key, plane, k):
                at, slot = self.slots[key]
                cell = f"(tick + {slot.depth + 1 - k}) % {slot.depth + 1}"
                return f"memory[{at}][{cell} * {slot.planes} + {plane}]" if slot.planes > 1 else f"memory[{at}][{cell}]"
            case Scalar(_, str(name)):
                raise UnsuitableError(f"it reads {shown(name)}")
        raise LookupError(source)

    def _add_function(self, head: str, body: Iterable[CodeLine]) -> None:
        lines = [f"static void {head} {{", *(f"{'    ' * (line.depth + 1)}{line.text}" for line in body), "}"]
        self.texts.append("\n".join(lines))
