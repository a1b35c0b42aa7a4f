"""OpenGL and OpenGL ES: pictures, sounds and numbers on a graphics card, or on a driver that draws with the CPU.

The rest of weft uses only `backend`, which imports the others when something is drawn. `graphics` is the only module
that imports PyOpenGL, and manages the contexts. `textures` has textures and buffers, `drawing` runs programs over
pictures and points and makes subgraphs ready to run, and `probe` lists the devices. `abilities` says what a context can
do; beside that, its kind decides only in which language shaders are written.
"""
