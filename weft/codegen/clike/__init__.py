"""From kernels to programs for graphics cards, in languages like C: what GLSL and its relatives have in common.

`read` makes one graph of what a kernel computes at every element, `plan` says which of its values get a name, `body`
writes them as statements, and a `Language` puts the program together.
"""
