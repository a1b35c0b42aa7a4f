"""Cards of NVIDIA by CUDA: pictures, sound and numbers, without OpenGL.

In come programs in CUDA C++. Out go buffers in the memory of a card, which are read back when they are asked for.

Begin with `weft.backends.cuda.cards.CudaDevice`, which calls a `Driver`; `nvidia` has that of NVIDIA.
"""
