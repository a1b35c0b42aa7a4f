"""Kernels as modules of WebAssembly, for browsers and for other hosts.

Begin with `weft.codegen.wasm.sweep.emit`, which makes the module of a kernel. Its functions take a block of arguments
in linear memory, which `weft.codegen.wasm.abi.BlockLayout` describes, for hosts in any language (docs/wasm.md).
"""
