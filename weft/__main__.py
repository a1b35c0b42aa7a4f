"""What `weft` and `python -m weft` begin with. It imports next to nothing, so that Ctrl-C is heard before all else."""

from __future__ import annotations

# `signal` imports far more than is needed of it.
import _signal  # type: ignore[import-not-found]
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType


def main() -> int:
    """Runs the command line of this process, and gives its exit code. SIGINT ends it from the first moment to the last,
    also where it was ignored by whoever started it, as a shell does with jobs in the background."""
    _signal.signal(_signal.SIGINT, interrupted)
    from weft.cli import main as run

    code = run()
    # What is left may take a moment, and has no words for an interruption either.
    _signal.signal(_signal.SIGINT, interrupted)
    return code


def interrupted(_number: int, _frame: FrameType | None) -> None:
    """Ends this process where nobody can catch an exception: while modules are imported, it may be raised, or lost,
    anywhere."""
    os.write(2, b"weft: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    # The module by its own name, as all others know it.
    from weft.__main__ import main as begin

    sys.exit(begin())
