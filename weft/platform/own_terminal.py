"""`Terminal`: the terminal of stdout on this machine, for the few who need one."""

import sys

if sys.platform == "win32":
    from weft.platform.windows_terminal import WindowsTerminal as Terminal
else:
    from weft.platform.posix_terminal import PosixTerminal as Terminal

__all__ = ["Terminal"]
