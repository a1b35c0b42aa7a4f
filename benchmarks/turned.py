"""A colour that is dragged in an editor: from its request to the frame that shows it, by the events of the performance.

    .venv/bin/python -m benchmarks.turned [--turns 200] [--fps 60]

Each request comes at some moment of a frame. Times are those of the editor, from its request to when it hears that the
picture was shown; and those of the event `swap`, from when the performance has the number, and what it passes through
on the way.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from pathlib import Path

from benchmarks.generated import percentile
from tests.support.links import LinkedEditor, own_runtime_folder
from tests.support.performance import Performance

_TEXT = """\
me<width> = 1280; me<height> = 720; me<fps> = {fps:g}
colour = <0.9, 0.25, 0.25>
display(colour * (0.5 + 0.5 * sin(me@x * 9 + me@time)))
"""
_PLACE = {"line": 2, "column": 11}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--fps", type=float, default=60)
    asked = parser.parse_args()
    chance = random.Random(1)
    print(f"load of the machine before: {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
    with own_runtime_folder(), tempfile.TemporaryDirectory() as folder:
        patch = Path(folder) / "colour.weft"
        patch.write_text(_TEXT.format(fps=asked.fps))
        with Performance(patch, "--headless", "--no-audio") as performance:
            performance.wait_for("started")
            time.sleep(2)  # better code is there
            waited = []
            with LinkedEditor(patch) as editor:
                editor.ask("want", kinds=["events"])
                for _ in range(asked.turns):
                    began = time.perf_counter()
                    editor.ask("turn", numbers=[_PLACE | {"value": round(chance.random(), 3)}])
                    editor.wait_for("swap")
                    waited.append((time.perf_counter() - began) * 1000)
                    time.sleep((3 + chance.random()) / asked.fps)
        events = [json.loads(line) for line in patch.with_suffix(".events").read_text().splitlines()]
    swaps = [each for each in events if each["event"] == "swap"]
    took = [each["latency_ms"] for each in swaps]
    for name, times in (
        ("as the editor sees it", waited),
        ("a colour that is turned", took),
        *((f"  {stage}", [each["stages"].get(stage, 0.0) for each in swaps]) for stage in swaps[-1]["stages"]),
    ):
        shares = ", ".join(f"p{round(share * 100)} {percentile(times, share):.1f}" for share in (0.5, 0.95))
        print(f"{name:24} {shares} ms")
    for name, times in (("as the editor sees it", waited), ("since the performance has the number", took)):
        frames = [each * asked.fps / 1000 for each in times]
        within = sum(each <= 2 for each in frames) / len(frames)
        print(f"{len(frames)} turns, {name}: median {percentile(frames, 0.5):.2f} frames, {within:.0%} within two")
    print(f"load of the machine after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
