"""Metal: pictures, sound and numbers on the graphics card of a Mac, through Apple's own interface or metalcompute.

The rest of weft uses only `backend`. `libraries` finds out which of the two is installed, and calls it. It imports
metalcompute when something is compiled, as `weft.apple` imports pyobjc. Buffers are in memory shared with the CPU.
"""
