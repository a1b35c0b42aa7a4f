"""WebGPU: pictures, sound and numbers on whatever has a driver of Vulkan, Metal or Direct3D 12.

The rest of weft uses only `backend`. `adapters` finds the devices, in a process of its own, and `webgpu` is one that is
opened; both import the package wgpu when they are asked for the first time.
"""
