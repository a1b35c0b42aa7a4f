"""The vector machine: kernels as calls of numpy, for machines without LLVM and for what does not suit machine code.

Begin with `weft.backends.vector.machine.VectorExecutor`. `translate` makes the calls, `feedback` what is computed
sample by sample.
"""
