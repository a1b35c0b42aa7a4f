"""OpenGL: pictures, sounds and numbers on a graphics card, or on a driver that draws with the processor.

`backend` is what the rest of weft sees. It imports the others only when something is to be drawn: `graphics` is the one
module that imports PyOpenGL and holds the contexts, `textures` has what lives in them, `drawing` runs programs over
pictures and points, `compiled` makes subgraphs ready, and `probe` says what devices there are.
"""
