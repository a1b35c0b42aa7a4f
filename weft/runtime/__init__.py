"""From a text to a running program: building, loading, swapping, and everything around a performance.

In come a patch that is saved again and again, hands (mouse, keys, OSC, MIDI, a panel) and the time. Out go a picture
on a screen, a sound, events, and files. `weft render` and `weft eval` run the same programs without any of that.

Begin with `weft.runtime.session.Session`, the loop of a performance. A save goes through `saves`, `compiling`,
`program` and `transition`. What runs is a `weft.runtime.coordinator.ProgramRunner`. Rooms of their own are
`compiling`, `sound` and `screens`, which know nothing of the session.
"""
