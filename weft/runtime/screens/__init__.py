"""The screens of a performance: a window, a terminal, or none.

In come a picture and what is written over it, once a frame. Out go keys and the mouse.

Begin with `weft.runtime.screens.screen.Screen`, which all of them are. `window` draws by a `painter`, and `panel` is
what hands move over the picture. `playing_text` is the text that plays, for the audience.
"""
