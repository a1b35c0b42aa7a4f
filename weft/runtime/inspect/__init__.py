"""Looking into a program without a performance: values of single strands, costs, and what would be reported.

In comes a text. Out go the values of a strand at places, measured times, and the diagnostics of `weft check`.

Begin with `weft.runtime.inspect.strands.Evaluation`. `measure` is what `weft bench` shows, `forecast` finds the
diagnostics, by `elements` and `precision`.
"""
