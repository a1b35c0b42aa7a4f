"""Cards of NVIDIA by CUDA, and of AMD by ROCm: pictures, sound and numbers, without OpenGL.

In come programs in CUDA C++, which both compile at run time. Out go buffers in the memory of a card, which are read
back when they are asked for.

Begin with `weft.backends.cuda.device.CudaDevice`, which calls a `Driver`: `nvidia` and `rocm` have one each.
"""
