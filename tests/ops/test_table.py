"""The table is complete, says what LANGUAGE.md says, and costs little to import."""

from __future__ import annotations

import math
import re
import subprocess
import sys

import pytest

from weft.ops import BINARY, BUILTINS, CONSTANTS, OPS, UNARY, index_rows
from weft.ops.lanes import Lanes
from weft.ops.spec import OpSpec, params

SIGNATURES = """
    sin(x) cos(x) tan(x) asin(x) acos(x) atan(x) atan2(y, x) sinh(x) cosh(x) tanh(x) exp(x) exp2(x) log(x) log2(x)
    log10(x) sqrt(x) cbrt(x) abs(x) sign(x) floor(x) ceil(x) round(x) trunc(x) fract(x) min(a, b, …) max(a, b, …)
    held(trigger)
    clamp(x, lo: 0, hi: 1) saturate(x) mix(a, b, t) step(edge, x) smoothstep(a, b, x) hypot(x, y) length(x, …)
    distance(x1, y1, x2, y2) normalize(x, lo: 0, hi: 1) deg(x) rad(x) select(c, a, b) hash(x, y: 0, z: 0)
    noise(x, y: 0, z: 0) simplex(x, y: 0, z: 0) fbm(x, y: 0, z: 0, octaves: 5) voronoi(x, y: 0, z: 0)
"""

LEVELS = {
    2: {"or"}, 3: {"and"}, 5: {"==", "===", "!=", "<", ">", "<=", ">=", "<<", ">>", "<<=", ">>="},
    6: {"+", "-"}, 7: {"*", "/", "%"}, 9: {"^"},
}  # fmt: skip


@pytest.mark.parametrize("row", OPS.values(), ids=lambda row: row.name)
def test_row_is_complete(row):
    assert (row.vector is None) != (row.expand is None)
    assert (row.native is None) == (row.vector is None)
    assert not isinstance(row.native, str) or hasattr(Lanes, row.native)
    assert row.doc
    assert not row.doc.endswith(".")
    assert row.cost >= 1
    assert row.temps == 0 or callable(row.vector)
    if not isinstance(row.takes, str):
        assert len(row.takes) == len(row.params)
    if row.kind == "operator":
        assert row.symbols
        assert any(symbol in row.example for symbol in row.symbols)
    else:
        assert f"{row.name}(" in row.example


@pytest.mark.parametrize("row", OPS.values(), ids=lambda row: row.name)
def test_required_parameters_come_first(row):
    defaults = [param.default is not None for param in row.params]
    assert defaults == sorted(defaults)


def test_builtins_are_those_of_the_language():
    listed = re.findall(r"\w+\([^)]*\)", SIGNATURES)
    assert sorted(listed) == sorted(row.signature for row in OPS.values() if row.kind == "builtin")


def test_aliases():
    assert BUILTINS["lerp"] is OPS["mix"]
    assert BUILTINS["mod"] is BINARY["%"]
    assert BUILTINS["pow"] is BINARY["^"]
    assert "add" not in BUILTINS
    assert "power" not in BUILTINS
    assert set(BUILTINS) - {"lerp", "mod", "pow"} == {row.name for row in OPS.values() if row.kind == "builtin"}


def test_operators_are_those_of_the_language():
    assert {symbol: row.level for symbol, row in BINARY.items()} == {s: n for n, ss in LEVELS.items() for s in ss}
    assert {symbol: (row.name, row.level) for symbol, row in UNARY.items()} == {"-": ("neg", 8), "not": ("not", 4)}
    assert [symbol for symbol, row in BINARY.items() if row.right] == ["^"]
    for doubled in ("<<", ">>", "<<=", ">>="):
        assert BINARY[doubled] is BINARY[doubled.replace("<<", "<").replace(">>", ">")]
    assert BINARY["==="] is BINARY["=="]


def test_signatures_of_operators():
    assert BINARY["+"].signature == "a + b"
    assert BINARY["or"].signature == "a or b"
    assert UNARY["-"].signature == "-a"
    assert UNARY["not"].signature == "not a"


def test_constants():
    assert dict(CONSTANTS) == {"pi": math.pi, "tau": 2 * math.pi, "e": math.e}


@pytest.mark.parametrize("table", [OPS, BINARY, UNARY, BUILTINS, CONSTANTS])
def test_tables_are_frozen(table):
    with pytest.raises(TypeError):
        table["new"] = None


def test_no_two_rows_of_one_name():
    row = OpSpec("twice", "internal", params("a"), "a", fold=lambda a: a, vector="positive")
    with pytest.raises(ValueError, match="twice"):
        index_rows([(row.name, row), (row.name, row)])


def test_import_brings_no_array_or_device_library():
    heavy = ["numpy", "llvmlite", "OpenGL", "glfw", "click", "parsimonious", "PIL", "rich"]
    code = f"import sys, weft.ops; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
