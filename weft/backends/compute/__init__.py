"""Devices that compute into buffers: what they do for weft, and everything that weft does with them in the same way.

`interface` is what a device is, `arrays` its state and other arrays, `subgraph` what runs on it, and `backend` the
base of its backends. What is left to a device's own folder: how it is found and opened, and the calls of its library.
"""
