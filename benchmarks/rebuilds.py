"""How long a text takes from nothing, and after an edit of the text before: from text to kernels, in processor time.

    .venv/bin/python -m benchmarks.rebuilds [PATCH …]

Each number of a patch is changed in turn, in an order that is always the same.
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
import time
from pathlib import Path

from weft.contexts import ContextTable
from weft.errors import Source, WeftError
from weft.media.sampled import header_of
from weft.runtime.build import KeptBuild, build

_PATCHES = [f"patches/{name}.weft" for name in ("bench/fifty", "bench/twohundred", "drums", "plasma", "choir")]
_NUMBER = re.compile(r'(?<![\w.#"<])\d+\.\d+')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patches", nargs="*", type=Path, default=list(map(Path, _PATCHES)))
    parser.add_argument("--edits", type=int, default=40)
    asked = parser.parse_args()
    print(f"{'patch':12} {'from nothing':>14} {'after an edit':>14} {'95 of 100':>12}  ms")
    for patch in asked.patches:
        alone, again = measured(patch, asked.edits)
        late = sorted(again)[int(len(again) * 0.95)]
        print(f"{patch.stem:12} {statistics.median(alone):14.1f} {statistics.median(again):14.1f} {late:12.1f}")


def measured(patch: Path, edits: int) -> tuple[list[float], list[float]]:
    """Milliseconds of each edit, from nothing and after the text before. Edits that do not compile are left out."""
    text, chance, kept = patch.read_text(encoding="utf-8"), random.Random(1), KeptBuild()
    took: tuple[list[float], list[float]] = [], []
    places = [match.start() for match in _NUMBER.finditer(text)]
    _build(patch, text, kept)
    for at in chance.choices(places, k=edits):
        edit = f"{text[:at]}{chance.random() + 0.5:.3f}{text[_end(text, at):]}"
        try:
            alone, again = _build(patch, edit, KeptBuild()), _build(patch, edit, kept)
        except WeftError:
            continue
        took[0].append(alone)
        took[1].append(again)
    return took


def _end(text: str, at: int) -> int:
    found = _NUMBER.match(text, at)
    return found.end() if found else at


def _build(patch: Path, text: str, kept: KeptBuild) -> float:
    started = time.process_time()
    build(Source(str(patch), text), ContextTable(), probe=header_of, kept=kept)
    return (time.process_time() - started) * 1e3


if __name__ == "__main__":
    main()
