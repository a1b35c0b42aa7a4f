"""The vector machine: kernels as calls of numpy."""
