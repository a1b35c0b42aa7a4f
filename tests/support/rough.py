"""Quotients that are as wrong as those of a graphics card, on processors whose own are exact."""

from __future__ import annotations

import re

import pytest

from weft.codegen.clike.language import Language
from weft.codegen.clike.prelude import functions_in

# Two units in the last place to one side or the other, as a bit of the divisor has it. Quotients by powers of 2 are
# exact on a card, too.
_ROUGH = """\
float rough_ratio(float a, float b) {
    float ratio = a / b;
    uint bits = bits_in(ratio);
    uint size = bits & 0x7fffffffu;
    bool is_kept = size < 0x1000000u || size >= 0x7f000000u || (bits_in(b) & 0x7fffffu) == 0u;
    return is_kept ? ratio : real_in(bits - 2u + ((bits_in(b) >> 1u) & 4u));
}"""

# Of two reals, which have names or are numbers.
_RATIO = re.compile(r"\b([\w.]+) / ([a-z]\w*)\b")


def roughen(language: type[Language], patch: pytest.MonkeyPatch) -> None:
    """Has programs of a language divide like that."""
    shared = {
        name: "\n".join(line if line.startswith("//") or "uint" in line else _RATIO.sub(r"rough_ratio(\1, \2)", line)
                        for line in text.split("\n"))
        for name, text in language.prelude.items()
    }  # fmt: skip
    patch.setattr(language, "prelude", {**functions_in(_ROUGH), **shared})
    patch.setattr(language, "spellings", {**language.spellings, "div": "rough_ratio"})
