"""From a saved text to a program that may be swapped in, beside the performance and without disturbing it."""

from typing import Final

SERVER: Final = "weft.runtime.compiling.process:main"
"""What runs in the process that compiles. Whoever will need one may start it before importing anything else."""
