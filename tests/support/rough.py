"""Quotients and roots that are as wrong as those of a graphics card, on processors whose own are exact."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from weft.codegen.clike.language import Language
from weft.codegen.clike.prelude import functions_in
from weft.codegen.glsl import Glsl

# Two units in the last place to one side or the other, as a bit of the divisor has it. Quotients by powers of 2 are
# exact on a card, too.
_ROUGH = """\
float rough_ratio(float a, float b) {
    float ratio = a / b;
    uint bits = bits_in(ratio);
    uint size = bits & 0x7fffffffu;
    bool is_kept = size < 0x1000000u || size >= 0x7f000000u || (bits_in(b) & 0x7fffffu) == 0u;
    return is_kept ? ratio : real_in(bits - 2u + ((bits_in(b) >> 1u) & 4u));
}

float rough_root(float x) {
    float root = sqrt(x);
    uint bits = bits_in(root);
    bool is_kept = (bits & 0x7fffffffu) < 0x1000000u || (bits & 0x7fffffffu) >= 0x7f000000u;
    return is_kept ? root : real_in(bits - 2u + ((bits_in(x) >> 10u) & 4u));
}"""

# Of two reals, which have names or are numbers; and of one.
_RATIO, _ROOT = re.compile(r"\b([\w.]+) / ([a-z]\w*)\b"), re.compile(r"\bsqrt\(")


def roughen(language: type[Language], patch: pytest.MonkeyPatch) -> None:
    """Has programs of a language divide and find roots like that, as far as they correct it."""
    kinds = {kind: name for kind, name in (("div", "rough_ratio"), ("sqrt", "rough_root")) if kind in language.exact}
    if issubclass(language, Glsl):
        for forms in ("newer", "fused"):
            known = getattr(language, forms)
            own = {name: text for name, text in known.items() if name in language.prelude}
            patch.setattr(language, forms, {**known, **_roughened(own)})
    patch.setattr(language, "prelude", {**functions_in(_ROUGH), **_roughened(language.prelude)})
    patch.setattr(language, "spellings", {**language.spellings, **kinds})


def _roughened(functions: Mapping[str, str]) -> dict[str, str]:
    return {name: "\n".join(map(_roughened_line, text.split("\n"))) for name, text in functions.items()}


def _roughened_line(line: str) -> str:
    if line.startswith("//") or "uint" in line:
        return line
    return _ROOT.sub("rough_root(", _RATIO.sub(r"rough_ratio(\1, \2)", line))
