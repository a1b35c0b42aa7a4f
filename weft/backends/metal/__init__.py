"""Metal: pictures and numbers on the graphics card of a Mac, through metalcompute.

`backend` is what the rest of weft sees; `library` is the one module that imports metalcompute, when something is to be
compiled. `code` holds what can be made without a device, `program` runs a kernel, `memory` is what a subgraph
remembers, `compiled` a subgraph with its pictures. Buffers lie in memory that the processor shares.
"""
