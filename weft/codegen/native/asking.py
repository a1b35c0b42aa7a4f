"""Strands of other subgraphs, which machine code cannot read: where they are read, and whether others can do it for it.

What a column or a row section reads is computed beforehand, the whole section a line at a time, by who runs the kernel.
"""

from __future__ import annotations

from weft.codegen.base import Kernel
from weft.ir.rates import Rate

# What a line can only be computed with where machine code runs.
_BOUND = frozenset({"state", "sample", "picture", "loop"})


def sections_that_read(kernel: Kernel) -> frozenset[Rate]:
    """The sections by column and by row that read strands of other subgraphs."""
    return frozenset(rate for rate, node in kernel.walk() if node.op == "strand" and rate > Rate.FRAME)


def reads_strands(kernel: Kernel) -> bool:
    """Whether others can read for it what it reads."""
    rates = sections_that_read(kernel)
    bound = any(node.op in _BOUND for rate in rates for node in kernel.section(rate).walk())
    return Rate.ELEMENT not in rates and not bound
