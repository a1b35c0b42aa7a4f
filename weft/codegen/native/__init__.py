"""Kernels as LLVM's language, and as lists of calls: for any processor that LLVM knows, without LLVM itself.

In comes a kernel, with the processor that it is for (`weft.codegen.native.target`). Out goes a text with explicit
vectors, or a list of calls of ready functions. `weft.backends.native` compiles and runs them.

Begin with `weft.codegen.native.module.module_of`; `section` writes the values of a section as text; `tiles` and
`chunks` make lists, of pictures and of sounds.
"""
