"""Metal: pictures, sound and numbers on the graphics card of a Mac, through Apple's own interface or metalcompute.

`backend` is what the rest of weft sees. `library` says which of both is there; it imports metalcompute when something
is compiled, as `weft.apple` imports pyobjc. `program` runs a kernel and keeps what it remembers, `compiled` is a
subgraph with its pictures and samples. Buffers are in memory that the processor shares.
"""
