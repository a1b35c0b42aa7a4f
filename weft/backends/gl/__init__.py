"""OpenGL: pictures, sounds and numbers on a graphics card, or on a driver that draws with the processor.

`backend` is what the rest of weft sees, and imports the others only when something is to be drawn: `opengl` is the one
module that imports PyOpenGL. `graphics` holds the contexts, `programs` and `textures` what lives in them, `memory` what
a subgraph remembers, `drawing` and `points` run a program, `probe` says what there is. `stretches` computes pieces
of sounds, and `sounds` does so ahead of time.
"""
