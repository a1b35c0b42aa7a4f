"""Expressions: what the strands of a subgraph compute, before any machine is chosen.

In come a subgraph and what elaboration says of it. Out go interned expressions (`Expr`), in which equal is identical,
after the passes that all machines need: constants are folded, builtins expanded, the time is kept exact, pictures are
filtered.

Begin with `weft.ir.lower.lower`, then `weft.ir.passes.run_passes`. `weft.ir.expr` has the expressions, and
`weft.ir.rates` how often each of them changes.
"""
