"""Rendering to files: frames and sound as fast as possible, the same every time, by one process or by many.

In comes a program, and a range of frames. Out go films, pictures and sounds as files; films of a performance are
encoded here too.

Begin with `weft.runtime.films.offline.Offline`. `workers` and `cluster` divide the frames, `checkpoints` finds what a
program remembers before a frame, `encoding` and `recording` write films.
"""
