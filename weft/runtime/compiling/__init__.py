"""From a saved text to a program that can take over, in another process that never disturbs the performance."""

from typing import Final

SERVER: Final = "weft.runtime.compiling.process:main"
"""The entry point of the compile process. It can be started before anything else is imported."""
