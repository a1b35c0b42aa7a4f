"""From a saved text to a program that can take over, in another process that never disturbs the performance.

In comes the text of a save. Out goes a compiled program that has passed its trial, or the diagnostics; better machine
code follows in a pause.

Begin with `weft.runtime.compiling.worker.CompileWorker`, the thread that asks; `process` is the process that answers,
and `compiler` what it does.
"""

from typing import Final

SERVER: Final = "weft.runtime.compiling.process:main"
"""The entry point of the compile process. It can be started before anything else is imported."""
