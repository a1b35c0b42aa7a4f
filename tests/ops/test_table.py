"""The table is complete, and costs little to import. tests/test_language.py compares it with the reference."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest

from weft.ops import BINARY, BUILTINS, CONSTANTS, OPS, UNARY, index_rows
from weft.ops.lanes import Lanes
from weft.ops.spec import OpSpec, params


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


def test_aliases():
    assert BUILTINS["lerp"] is OPS["mix"]
    assert BUILTINS["mod"] is BINARY["%"]
    assert BUILTINS["pow"] is BINARY["^"]
    assert "add" not in BUILTINS
    assert "power" not in BUILTINS
    assert {row.name for row in OPS.values() if row.kind == "builtin"} <= BUILTINS.keys()


def test_operators():
    assert {symbol: row.name for symbol, row in UNARY.items()} == {"-": "neg", "not": "not"}
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
