"""From kernels to modules of WebAssembly: a function for each section, over the elements of a launch.

The element section of a sound continues in `weft.codegen.wasm.stream`, in chunks of samples.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from weft.codegen.kernel import Kernel
from weft.codegen.native.serial_parts import is_series
from weft.codegen.open_numbers import without_numbers
from weft.codegen.wasm.abi import (
    ADVANCE, COLUMNS, CONSTANTS, ELEMENTS, FRAME, HEIGHT, MEMORY, OUT, ROWS, STRANDS, STRIDE, WIDTH, BlockLayout,
    Export, StrandImport, layout_of, series_time
)
from weft.codegen.wasm.assembler import ImportedFunction, WasmFunction, WasmModule, WasmType, custom_section
from weft.codegen.wasm.builder import FunctionBuilder, WasmValue
from weft.codegen.wasm.mathematics import function_names, mathematical
from weft.codegen.wasm.reading import READERS, reader
from weft.codegen.wasm.stream import ScratchRows, stream_functions
from weft.codegen.wasm.writing import BLOCK, WasmWriter
from weft.ir.rates import Rate

LAYOUT = "weft.layout"
"""The custom section with the layout of the block."""


@dataclass(frozen=True)
class WasmKernel:
    """A kernel as a module, and what its host has to know."""

    layout: BlockLayout
    module: WasmModule

    def encoded(self) -> bytes:
        """The bytes of the module, with the layout as JSON in a custom section (`LAYOUT`)."""
        return self.module.encoded() + custom_section(LAYOUT, json.dumps(self.layout.to_json()).encode())


def emit(kernel: Kernel, is_whole: bool = True) -> WasmKernel:
    """The module of a kernel without its stages. If it is not `is_whole`, it computes only what is the same in a whole
    launch: what a shader cannot compute itself."""
    kernel = without_numbers(kernel)
    layout = layout_of(kernel, is_whole)
    scratch = ScratchRows(layout.size)
    functions = [_section_function(kernel, layout, rate) for rate in (Rate.CONSTANT, Rate.FRAME)]
    if is_whole:
        functions += [_section_function(kernel, layout, rate) for rate in (Rate.COLUMN, Rate.ROW)]
        is_stream = is_series(kernel)
        functions += stream_functions(kernel, layout, scratch) if is_stream else [_elements_function(kernel, layout)]
    if scratch.tables:
        functions[0] = _with_tables(functions[0] or _exported(CONSTANTS), scratch)
    written = [each.function(doc=_DOCS.get(each.name, "")) for each in functions if each is not None]
    if kernel.slots and kernel.sweep == "grid" and kernel.tick == "launch":
        written.append(_advance_function(layout))
    called = {name for each in functions if each is not None for name in each.called}
    strands = tuple(StrandImport(str(ref), _coordinates(kernel, ref)) for ref in kernel.strands)
    exports: list[Export] = [each.name for each in written if each.exported]  # type: ignore[misc]
    imports = [
        ImportedFunction(STRANDS, str(number), f"strand.{number}", (_REAL,) * strand.coordinates, (_REAL,))
        for number, strand in enumerate(strands)
    ]
    module = WasmModule(
        MEMORY, (*_library(called), *written), tuple(imports), tuple(data for _, data in scratch.tables),
        f"{kernel.name}: {', '.join(kernel.outputs)}",
    )  # fmt: skip
    return WasmKernel(replace(layout, size=scratch.end, exports=tuple(exports), strands=strands), module)


_REAL: WasmType = "f64"

_DOCS: Mapping[str, str] = {
    CONSTANTS: "What never changes.", FRAME: "What is the same in a whole launch.", COLUMNS: "What changes by column.",
    ROWS: "What changes by row.", ELEMENTS: "What changes at every element.",
}  # fmt: skip


def _coordinates(kernel: Kernel, ref: object) -> int:
    """How many coordinates a strand is read at."""
    return next((len(node.args) for _, node in kernel.walk() if node.op == "strand" and node.attr == ref), 0)


def _library(called: Iterable[str]) -> list[WasmFunction]:
    """The functions that others call, each once."""
    made: list[WasmFunction] = []
    for name in sorted(called):
        if name in function_names():
            made.append(mathematical(name))
        elif name in READERS:
            made.append(reader(name))
    return made


def _exported(name: str) -> FunctionBuilder:
    return FunctionBuilder(name, [(BLOCK, "i32")], exported=True)


def _with_tables(b: FunctionBuilder, scratch: ScratchRows) -> FunctionBuilder:
    """The function, which also copies tables to the block."""
    for number, (offset, data) in enumerate(scratch.tables):
        place = b.put("i32.add", b.param(BLOCK), b.i32(offset))
        b.do("memory.init", place, b.i32(0), b.i32(len(data)), immediate=number)
    return b


def _section_function(kernel: Kernel, layout: BlockLayout, rate: Rate) -> FunctionBuilder | None:
    """The function of a section other than that of elements; None if the kernel has none."""
    section = kernel.section(rate)
    name = {Rate.CONSTANT: CONSTANTS, Rate.FRAME: FRAME, Rate.COLUMN: COLUMNS, Rate.ROW: ROWS}[rate]
    if not section:
        return None
    b = _exported(name)
    w = WasmWriter(b, kernel, layout, section)

    def write() -> None:
        w.write(section.nodes)
        w.keep_locals(section.locals)
        w.store_state(section.stores)

    if rate <= Rate.FRAME:
        write()
    else:
        over(b, w.word(WIDTH if rate == Rate.COLUMN else HEIGHT), w.moved_to(rate, write))
    return b


def over(b: FunctionBuilder, count: WasmValue, write: Callable[[WasmValue], None], step: int = 1) -> None:
    """A loop over whole numbers from 0 up to a count, which is at least 1."""
    at = b.variable("i32", b.i32(0), "at")
    with b.within("loop", "next") as label:
        write(b.get(at))
        following = b.put("i32.add", b.get(at), b.i32(step))
        b.set((at,), (following,))
        b.do("br_if", b.put("i32.lt_s", b.get(at), count), immediate=label)


def _elements_function(kernel: Kernel, layout: BlockLayout) -> FunctionBuilder:
    b = _exported(ELEMENTS)
    section = kernel.section(Rate.ELEMENT)
    w = WasmWriter(b, kernel, layout, section)
    width, height, out, stride = map(w.word, (WIDTH, HEIGHT, OUT, STRIDE))

    def element() -> None:
        w.write(section.nodes)
        at = b.put("i32.add", b.put("i32.mul", w.at[Rate.ROW], width), w.at[Rate.COLUMN])
        for number, node in enumerate(section.outputs):
            first = b.put("i32.mul", stride, b.i32(number))
            w.store_number(w.as_real(node), out, b.put("i32.add", first, at))
        w.store_state(section.stores)
        w.advance_heads()

    if series_time(kernel):
        w.begin_heads(layout.rings)
    over(b, height, w.moved_to(Rate.ROW, lambda: over(b, width, w.moved_to(Rate.COLUMN, element))))
    w.keep_heads()
    return b


def _advance_function(layout: BlockLayout) -> WasmFunction:
    b = _exported(ADVANCE)
    block = b.param(BLOCK)
    for ring in layout.rings:
        following = b.put("i32.add", b.load("i32", block, ring.head), b.i32(1))
        is_over = b.put("i32.gt_s", following, b.i32(ring.depth))
        b.store(b.put("select", b.i32(0), following, is_over, kind="i32"), block, ring.head)
    return b.function(doc="Ends a tick.")
