"""The pictures of patches/bench in other tools, measured beside weft in one run: `python -m benchmarks.peers`."""
