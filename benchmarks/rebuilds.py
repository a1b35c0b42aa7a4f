"""How long a text takes from nothing, and after an edit of the text before: from text to kernels, in processor time.

    .venv/bin/python -m benchmarks.rebuilds [PATCH …]
    .venv/bin/python -m benchmarks.rebuilds --generated [--seed 1] [--count 22]

Each number of a patch is changed in turn, in an order that is always the same. In generated patches, edits of all kinds
follow each other.
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
import time
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from itertools import islice
from pathlib import Path

from benchmarks import generated
from benchmarks.generated import GeneratedPatch, percentile
from weft.contexts import ContextTable
from weft.errors import Source, WeftError
from weft.media.sampled import header_of
from weft.runtime.compiling.kept import KeptBuild
from weft.runtime.compiling.stages import Request, build

_PATCHES = [f"patches/{name}.weft" for name in ("bench/fifty", "bench/twohundred", "drums", "plasma", "choir")]
_NUMBER = re.compile(r'(?<![\w.#"<])\d+\.\d+')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patches", nargs="*", type=Path, default=list(map(Path, _PATCHES)))
    parser.add_argument("--edits", type=int, default=40)
    parser.add_argument("--generated", action="store_true", help="other patches, and edits of all kinds")
    generated.add_options(parser)
    asked = parser.parse_args()
    print(f"{'patch':14} {'from nothing':>14} {'after an edit':>14} {'95 of 100':>12}  ms")
    if asked.generated:
        report_generated(generated.patches(asked.seed, asked.count), asked.edits)
        return
    for patch in asked.patches:
        _print(patch.stem, *measured(patch, asked.edits))


def _print(name: str, alone: Sequence[float], again: Sequence[float]) -> None:
    late = percentile(again, 0.95)
    print(f"{name:14} {statistics.median(alone):14.1f} {statistics.median(again):14.1f} {late:12.1f}", flush=True)


def report_generated(patches: Sequence[GeneratedPatch], count: int) -> None:
    """So many edits of each patch, by patch and by kind, and the worst of both."""
    by_patch, by_kind = dict[str, list[float]](), dict[str, list[float]]()
    for patch in patches:
        path, kept = Path(patch.name), KeptBuild()
        alone = _build(path, patch.text, kept)
        for edit in islice(generated.edits(patch.text), count):
            took = _build(path, edit.text, kept, edit.kind == "mistake")
            by_patch.setdefault(patch.name, []).append(took)
            by_kind.setdefault(edit.kind, []).append(took)
        _print(patch.name, [alone], by_patch[patch.name])
    print()
    for kind, times in by_kind.items():
        print(f"{kind:20} p50, p95 {percentile(times, 0.5):7.1f} {percentile(times, 0.95):7.1f}   {len(times)} times")
    print(generated.worst(by_patch, "patch"), generated.worst(by_kind, "kind of edit"), sep="\n")


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


def _build(patch: Path, text: str, kept: KeptBuild, has_mistake: bool = False) -> float:
    """Raises WeftError if the text has a mistake, unless it is known to have one."""
    started = time.process_time()
    with suppress(WeftError) if has_mistake else nullcontext():
        build(Request(Source(str(patch), text), ContextTable(), probe=header_of), kept=kept)
    return (time.process_time() - started) * 1e3


if __name__ == "__main__":
    main()
