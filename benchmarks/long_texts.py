"""How long it takes until all is told of the longest texts: python -m benchmarks.long_texts [PART …]

Each text repeats one part, right or wrong, up to nearly the most characters that a text may have, and is checked as by
`weft check`. The seconds are those of the processor, of the better one of two runs; and how many times as long as a
quarter of the text takes.
"""

from __future__ import annotations

import sys
import time

from tests.test_long_texts import PARTS, checked, text_of
from weft.syntax.scanner import MAX_CHARACTERS

# The last part may go beyond its length.
WHOLE = MAX_CHARACTERS - 1000


def seconds(text: str) -> float:
    """The processor seconds until the diagnostics of a text are ready to be shown."""
    took = []
    for _ in range(2):
        started = time.process_time()
        _ = [each.to_json() for each in checked(text)]
        took.append(time.process_time() - started)
    return min(took)


def main() -> None:
    chosen = sys.argv[1:] or list(PARTS)
    if unknown := [name for name in chosen if name not in PARTS]:
        sys.exit(f"there is no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    found = []
    for name in chosen:
        whole = seconds(text_of(PARTS[name], WHOLE))
        found.append((whole, whole / max(1e-3, seconds(text_of(PARTS[name], WHOLE // 4))), name))
    for whole, ratio, name in sorted(found, reverse=True):
        print(f"{whole:6.2f} s  {ratio:5.1f} times a quarter  {name}")


if __name__ == "__main__":
    main()
