"""The entry point of `weft` and `python -m weft`. It imports very little, so that Ctrl-C works from the start."""

from __future__ import annotations

# `signal` imports far more than is needed here.
import _signal  # type: ignore[import-not-found]
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType


def main() -> int:
    """Runs the command line of this process, and returns its exit code. SIGINT ends it from the first moment to the
    last, even if the parent process ignored it, as a shell does for jobs in the background."""
    _signal.signal(_signal.SIGINT, interrupted)
    import gc

    # Imports make many objects that live to the end, so there is no garbage to look for.
    gc.disable()
    from weft.cli import main as run

    code = run()
    # The rest of the process may take a moment, and does not handle an interruption either.
    _signal.signal(_signal.SIGINT, interrupted)
    # The remaining objects end with the process. Python would look through all of them several times.
    gc.freeze()
    return code


def interrupted(_number: int, _frame: FrameType | None) -> None:
    """Ends this process while exceptions cannot be caught: during imports they may be raised, or lost, anywhere."""
    os.write(2, b"weft: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    # Import the module by its own name, as all others do.
    from weft.__main__ import main as begin

    sys.exit(begin())
