"""The sounds of patches/bench in other tools, measured beside weft in one run: `python -m benchmarks.sound_peers`."""
