"""Metal: pictures, sound and numbers on the graphics card of a Mac, through Apple's own interface or metalcompute.

`backend` is what the rest of weft sees; `library` says which of both is there, and is the one module that imports
metalcompute, when something is to be compiled, as `weft.apple` is for pyobjc. `program` runs a kernel, `memory` is what
a subgraph remembers, `compiled` a subgraph with its pictures. Buffers lie in memory that the processor shares.
"""
