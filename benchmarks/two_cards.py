"""How much faster two cards draw a film than one: python -m benchmarks.two_cards [cuda:0,cuda:1] [--frames 100]

Drawing dominates: each pixel takes hundreds of thousands of sines, and few pixels are written as PNG. The time of half
the film is taken off, and with it the start of the processes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FPS = 30

# A loop may have 65,536 steps in all, so there are several.
LOOPS = 12
PATCH = """\
me<width> = 640
me<height> = 360
spindle swirl(x, y, t) :: v {
  v = x
  for j in (1 to 60) {
    for i in (1 to 1000) {
      v = sin(v * 1.7 + y * 3 + t) + cos(v * y + i * 0.01 + j)
    }
  }
}
"""


def patch() -> str:
    calls = [f"swirl(me@x * {at} / {LOOPS}, me@y, me@time + {at})" for at in range(1, LOOPS + 1)]
    return f"{PATCH}display(fract({' + '.join(calls)}), me@x, me@y)\n"


def seconds(folder: Path, frames: int, devices: str) -> float:
    """What a film takes. Raises CalledProcessError if it fails."""
    options = f"patch.weft -o a-%04d.png --overwrite --fps {FPS} --duration {frames / FPS} --devices {devices}"
    began = time.perf_counter()
    run = [sys.executable, "-m", "weft", "render", *options.split()]
    subprocess.run(run, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("devices", nargs="?", default="cuda:0,cuda:1")
    parser.add_argument("--frames", type=int, default=100)
    options = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "patch.weft").write_text(patch(), encoding="utf-8")
        for devices in (options.devices.partition(",")[0], options.devices):
            half, whole = (seconds(folder, count, devices) for count in (options.frames // 2, options.frames))
            found[devices] = whole - half
            print(f"{devices}: {whole:.1f} s, the second half {whole - half:.1f} s", flush=True)
    one, several = found.values()
    print(f"{one / several:.2f} times as fast")


if __name__ == "__main__":
    main()
