"""What differs between systems: a class for each, with the same methods.

In come plain values, such as paths, files, sockets and the numbers of processes. Out goes what this system makes of
them.

Begin with `weft.platform.any_system.AnySystem`, which says what a method does where no system need do anything, and
`weft.platform.posix.Posix`, which says it of the others. `linux` and `macos` replace some of them, and `windows` all of
those in `posix`. `system` is the one of this machine; one that is not known is taken for a Linux without `/proc`.
`own_terminal` has what differs between terminals, in the same way.
"""

import sys

if sys.platform == "win32":
    from weft.platform.windows import Win32 as System
elif sys.platform == "darwin":
    from weft.platform.macos import MacOs as System
else:
    from weft.platform.linux import Linux as System

system = System()
