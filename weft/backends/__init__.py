"""Devices: what runs kernels, a folder or a file for each kind.

In come a `Unit`, the values of a tick (`Env`) and what other subgraphs have computed (`Coordinator`). Out go pixels,
samples or numbers. The rest of weft knows the names of a table, and no device.

Begin with `weft.backends.base.Backend`: a backend is a class with its four interfaces, and `weft.backends.cpu` is the
plainest that computes. `weft.backends.registry` lists them, and `weft.backends.select` says which runs what. What runs
on the CPU are executors: `vm` is the reference, `vector` is numpy, `native` is machine code.
"""
