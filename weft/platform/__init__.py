"""What differs between systems: a module for each, with the same functions.

In come plain values, such as paths, files, sockets and the numbers of processes. Out goes what this system makes of
them.

Begin with `weft.platform.posix.reading`, the first of the functions; `posix` says what each does. `linux` and `macos`
replace some of them, and `windows` all. `system` is the module of this one; a system that is not known is taken for a
Linux without `/proc`.
"""

import sys

if sys.platform == "win32":
    from weft.platform import windows as system
elif sys.platform == "darwin":
    from weft.platform import macos as system
else:
    from weft.platform import linux as system

__all__ = ["system"]
