"""Kernels: expressions put into the order in which a machine computes them, and their forms as text for machines.

In come the expressions of a subgraph. Out goes a `Unit` with its kernels: a section of values for each rate. From
these are made bytecode, LLVM's language (`weft.codegen.native`) and shaders (`weft.codegen.clike`, `glsl`, `msl`).
Nothing here imports numpy or the library of a device; what runs the texts is in `weft.backends`.

Begin with `weft.codegen.units.compile_unit`, then `weft.codegen.values.Section`.
"""
