"""Machine code: what runs what `weft.codegen.native` writes, through LLVM."""
