"""A program that runs: its subgraphs, the backend of each, its memory, and what happens to it when a device fails.

In come a compiled program and, tick by tick, the values from outside. Out go pictures, samples and numbers.

Begin with `weft.runtime.program.coordinator.ProgramRunner`, which runs the subgraphs in order. `program` loads them
and hands memory from one program to the next, `assignment` chooses backends, `compiled` is what arrives.
"""
