"""Bytecode to LLVM IR: a text with explicit vectors, for any processor that LLVM knows. No LLVM is needed for it."""
