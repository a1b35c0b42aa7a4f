"""Machine code: compiles what `weft.codegen.native` writes, by LLVM or as lists of calls, and runs it.

Begin with `weft.backends.native.executor.NativeExecutor` for pictures, `series` for sounds. `llvm` alone imports
llvmlite.
"""
