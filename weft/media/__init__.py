"""Pictures, letters, sounds, films, cameras and MIDI: what comes from files and devices, and films that are written.

In come names and paths of a patch. Out go arrays that kernels sample, live pictures that are asked once a frame, and
what a device sent. It knows nothing of patches and kernels: only what is on the ground, such as `weft.disk` and
`weft.errors`, may be imported.

Begin with `weft.media.sampled.read`, which opens whatever a call of `load` or `text` names. What changes while it
plays is a `weft.media.source.LiveSource`. `weft.runtime.films.encoding` writes films, `weft.media.analysis` hears.
"""
