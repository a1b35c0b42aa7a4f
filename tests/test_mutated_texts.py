"""Whatever a slip of the hand makes of a program, weft compiles it and tries it out, or says what is wrong and where.

`WEFT_MUTATIONS=20000` tries this many texts, different from the usual ones, and prints the ones that took longest.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from functools import lru_cache
from pathlib import Path

import pytest

from tests.support.mutations import exchanged, mutated, programs, rebundled
from tests.support.parity.bundles import bundled
from tests.support.programs import expectations
from tests.support.together import all_but
from weft.errors import Diagnostic
from weft.runtime.compiling.compiler import Compiler, Saved, mistakes
from weft.runtime.hands.clock import Moment
from weft.runtime.program.program import Setup

ASKED = int(os.environ.get("WEFT_MUTATIONS", "0"))
FIRST, COUNT = (1_000_000, ASKED) if ASKED else (0, 100)
CHUNK = 50

# The programs that are generated.
_GENERATED = 30

# Errors that are about a text as a whole.
_WITHOUT_PLACE = {"text-too-large", "unreadable-file"}


@lru_cache(1)
def _texts() -> list[tuple[Path, str]]:
    texts = programs("tests/programs", "patches", "weft/std")
    generated = [(Path(f"bundles-{seed}.weft"), bundled(seed)[0]) for seed in range(_GENERATED)]
    return [(path, text) for path, text in texts.items() if "errors" not in path.parts] + generated


def _slip(seed: int) -> tuple[Path, str]:
    """A text for each seed, and the file that it was. A program of the tests shows one of its strands."""
    chance = random.Random(seed)
    path, text = chance.choice(_texts())
    if "//=" in text:
        shown = chance.choice(expectations(text))
        text = f"{text}\n{shown.statement}({shown.strand})\n"
    return path, chance.choice((mutated, exchanged, exchanged, rebundled))(text, chance)


def _outcome(path: Path, text: str) -> tuple[Diagnostic, ...]:
    """The diagnostics of a text that is saved during a performance at which the processor draws."""
    compiler = Compiler.of(Setup(str(path), "cpu", settings={"width": 64, "height": 36}))
    made = compiler.compile(Saved(text.encode(), 0.0))
    if made.compiled is None:
        return made.diagnostics
    return (*made.diagnostics, *mistakes(made.compiled, compiler.loader, Moment(), made.places))


@pytest.mark.long
@pytest.mark.parametrize("start", all_but(1, range(FIRST, FIRST + COUNT, CHUNK)))
def test_a_slip_of_the_hand_is_compiled_or_told(start: int) -> None:
    told: Counter[str] = Counter()
    slowest: list[tuple[float, int]] = []
    for seed in range(start, min(start + CHUNK, FIRST + COUNT)):
        path, text = _slip(seed)
        started = time.process_time()
        try:
            diagnostics = _outcome(path, text)
        except Exception as failure:
            raise AssertionError(f"slip {seed} of {path.name}:\n{text}") from failure
        slowest.append((time.process_time() - started, seed))
        told.update({diagnostic.code for diagnostic in diagnostics} or {"nothing"})
        for diagnostic in diagnostics:
            assert diagnostic.code != "internal", f"slip {seed} of {path.name}: {diagnostic.message}\n{text}"
            placed = diagnostic.span is not None or diagnostic.severity == "warning"
            assert placed or diagnostic.code in _WITHOUT_PLACE, f"slip {seed} of {path.name}: {diagnostic}\n{text}"
    assert told["nothing"] >= CHUNK // 10, told
    assert len(told) > 3, told
    if ASKED:
        longest = ", ".join(f"{seconds:.2f} s: slip {seed}" for seconds, seed in sorted(slowest)[:-4:-1])
        print(f"\n{dict(told.most_common(12))}\n{longest}")
