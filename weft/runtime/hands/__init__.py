"""What reaches a patch from outside: mouse and keys, parameters, MIDI, OSC, the time and the tempo.

In come events of devices and messages of other programs. Out go the numbers that a program reads in a tick, and the
messages that a patch sends.

Begin with `weft.runtime.hands.inputs.Inputs`, which has the numbers, and `weft.runtime.hands.clock.Clock`, which has
the time.
"""
