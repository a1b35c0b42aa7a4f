"""Strands of other subgraphs, which machine code cannot read: where they are read, and whether others can do it for it.

What a column or a row section reads is computed beforehand, the whole section a line at a time, by who runs the kernel.
"""

from __future__ import annotations

from weft.codegen.base import Kernel
from weft.ir.rates import Rate

# What a line can only be computed with where machine code runs.
_BOUND = frozenset({"LOAD_STATE", "SAMPLE_STATE", "SAMPLE_PICTURE", "LOOP"})


def asking(kernel: Kernel) -> frozenset[Rate]:
    """The sections by column and by row that read strands of other subgraphs."""
    return frozenset(
        section.rate
        for section, _, instruction in kernel.walk()
        if instruction.op == "LOAD_STRAND" and section.rate > Rate.FRAME
    )


def can_ask(kernel: Kernel) -> bool:
    """Whether others can read for it what it reads."""
    rates = asking(kernel)
    bound = any(section.rate in rates and instruction.op in _BOUND for section, _, instruction in kernel.walk())
    return Rate.ELEMENT not in rates and not bound
