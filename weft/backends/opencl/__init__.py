"""OpenCL: pictures, sound and numbers on whatever has a driver for it.

The rest of weft uses only `backend`. `platforms` finds the devices, in a process of its own, and `queue` is one that is
opened; both import pyopencl when they are asked for the first time.
"""
