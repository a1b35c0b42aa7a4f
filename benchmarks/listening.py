"""A performance with a save every second, while others want Python's lock, and what is heard of it: gaps, clicks, and
how busy the sound was. Nobody needs to listen: it plays to a loudspeaker that is none, which is recorded. What is wrong
when the machine itself stood still, as one does that is shared with others, is counted apart.

    .venv/bin/python -m benchmarks.listening [--seconds 600] [--every 1]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.support.evening import spend
from tests.support.sound import private_sound


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--every", type=float, default=1.0, help="seconds between saves")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, private_sound(Path(name) / "server") as loudspeaker:
        loudspeaker.start()
        evening = spend(Path(name), loudspeaker, asked.seconds, asked.every)
    gaps, breaks = evening.count("gap"), evening.count("break")
    print(f"{evening.swaps} saves were swapped in; {evening.seconds:.1f} s were heard, at {evening.hertz:.3f} Hz")
    print(f"{gaps} gaps, and {breaks} times it did not go on from what was before")
    print(f"the machine itself stood still {evening.stalls} times", end=": ")
    print(f"by mere coincidence, that would explain {evening.chance:.1%} of all moments")
    print(f"{len(evening.unexplained)} flaws are not explained by that", *evening.unexplained, sep="\n")
    print(f"underruns {evening.audio['underruns']}, load of the last second {evening.audio['load']:.1%}")
    return 1 if evening.unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
