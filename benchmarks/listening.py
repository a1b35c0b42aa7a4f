"""A performance with a save every second, while others want Python's lock, and what is heard of it: gaps, clicks, and
how busy the sound was. Nobody needs to listen: it plays to a loudspeaker that is none, which is recorded.

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
    print(f"{evening.swaps} saves were swapped in; {evening.seconds:.1f} s were heard, with {evening.gaps} gaps")
    print(f"{evening.breaks} times it did not go on from what was before; {evening.hertz:.3f} Hz")
    print(f"the machine itself stood still {evening.stalls} times")
    print(f"underruns {evening.audio['underruns']}, load of the last second {evening.audio['load']:.1%}")
    return 1 if evening.gaps + evening.breaks > evening.stalls else 0


if __name__ == "__main__":
    sys.exit(main())
