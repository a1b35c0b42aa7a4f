"""The messages of weft: a row for each code of an error or warning, with its severity, the exit code of a command that
ends with it, why it is reported and what to do, and a wrong and a right text.

Code that raises an error names its code; `weft.errors`, `weft help`, the exit codes and docs/errors.md take the rest
from here. To add a message, add a row to the file of its kind, and run `scripts/errors.py`; tests/test_codes.py tries
its texts. Begin with `rows.py: CodeSpec` and `table.py: CODES`. Nothing here imports anything else of weft.
"""
