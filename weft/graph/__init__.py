"""What a patch means: its names, the meaning of every construct, and the cut into subgraphs by context.

In come the statements of a text. Out go a `Patch`, which has the names, and a `RenderGraph` of strands, of who reads
whom, and of the subgraphs that one context computes as a whole. No expression of a kernel is made here, but
`weft.ir.lower` asks the same code for its meaning.

Begin with `weft.graph.build.build_graph`, then read `weft.graph.elaborate.Elaborator`: it says once, over any domain
of values, what spindles, loops, remaps and memory are. `weft.graph.bindings` collects names, and
`weft.graph.partition` cuts.
"""
