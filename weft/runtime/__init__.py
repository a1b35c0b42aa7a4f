"""From a text to a running program: building, loading, swapping, and everything around a performance.

In come a patch that is saved again and again, hands (mouse, keys, OSC, MIDI, a panel) and the time. Out go a picture on
a screen, a sound, events, and files. `weft render` and `weft eval` run the same programs without any of that.

Eight rooms, each of which may import those before it: `hands` (input from outside), `program` (what runs, and on which
backends), `screens` and `sound`, `compiling` (from a save to a program), `films` (rendering to files), `inspect`
(evaluating and measuring) and `live` (the performance). Begin with `weft.runtime.live.session.Session`, the loop of a
performance, or with `weft.runtime.program.coordinator.ProgramRunner`, which runs a program.
"""
