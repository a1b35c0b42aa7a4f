"""Pictures, letters, sounds, films, cameras and MIDI: what comes from files and devices, and films that are written.

In come names and paths of a patch. Out go arrays that kernels sample, live pictures that are asked once a frame, and
what a device sent. It knows nothing of patches and kernels: it may import only modules below all packages, such as
`weft.disk` and `weft.errors`.

Begin with `weft.media.sampled.read`, which opens whatever a call of `load` or `text` names. Pictures that change while
a patch plays come from a `weft.media.source.LiveSource`. `weft.runtime.films.encoding` writes films,
`weft.media.analysis` hears.
"""
