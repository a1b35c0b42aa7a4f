"""Machine code: compiles what `weft.codegen.native` writes with LLVM, and runs it."""
