"""From kernels to programs for graphics cards, in languages like C: the parts that GLSL and MSL share.

`plan` makes one graph of what a kernel computes at every element, and decides which values get a variable. `body`
writes these as statements, and a `Language` puts the program together.
"""
