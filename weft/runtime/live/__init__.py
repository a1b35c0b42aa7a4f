"""A performance: a loop that draws, takes over saved texts, and never waits for either.

In come saves, set lists and the hands of the performer. Out go frames, sound, events, recordings and pictures for
other programs, and numbers that are written into the text.

Begin with `weft.runtime.live.session.Session`. `saves` watches the files, `transition` says when and how a new program
enters, `events` reports what happens, and `remote` speaks with editors.
"""
