"""The sound of a performance, computed in a separate process, which nothing in the player's process can delay.

In come programs, as messages, and the clock and inputs, through shared memory. Out go blocks of samples to a device,
rings that pictures read, and a tape that is recorded.

Begin with `weft.runtime.sound.player.Sound`, the player's side; `server` is the process, `mixer` sums what it plays,
`device` has the stream.
"""
