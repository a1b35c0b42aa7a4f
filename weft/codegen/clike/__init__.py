"""From kernels to programs in languages like C: the parts that these share.

`plan` makes one graph of what a kernel computes at every element, and decides which values get a variable. `body`
writes these as statements, in the spelling of a `Language`, which puts the program together. `buffers` is for languages
whose programs get buffers as arguments.
"""
