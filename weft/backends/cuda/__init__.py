"""Cards of NVIDIA by CUDA, and of AMD by HIP: pictures, sound and numbers, without OpenGL.

In come programs in CUDA C++. Out go buffers in the memory of a card, which are read back when they are asked for.

Begin with `weft.backends.cuda.cards.CardDevice`, which calls a `Driver`: that is what both makers have in common.
`nvidia` and `amd` say how their libraries are found and what differs; `backend` and `hip` register the backends.
"""
