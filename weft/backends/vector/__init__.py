"""The vector machine: kernels as calls of numpy, for machines without LLVM and for what does not suit machine code.

Begin with `weft.backends.vector.machine.VectorExecutor`. `lists` turns the lists of calls of pictures into calls of
numpy, `registers` finds room for their values, and `feedback` computes sounds.
"""
