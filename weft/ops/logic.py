"""Rows for comparisons, for truths, and for choosing between two values."""

from __future__ import annotations

from typing import Any

from weft.ops import formula as f, ieee, intervals, single
from weft.ops.spec import OpSpec, params


def _vector_select(np: Any, out: Any, c: Any, a: Any, b: Any) -> None:
    # On the bits, b ^ ((a ^ b) · c) with c of 1 or 0: no branches, no scratch memory, and NaN passes unchanged.
    integer = np.int32 if out.itemsize == 4 else np.int64
    a, b = (np.asarray(x, out.dtype).view(integer) for x in (a, b))
    chosen = out.view(integer)
    np.bitwise_xor(a, b, out=chosen)
    np.multiply(chosen, c, out=chosen)
    np.bitwise_xor(chosen, b, out=chosen)


def _vector_differs(np: Any, out: Any, a: Any, b: Any) -> None:
    np.not_equal(np.asarray(a).astype(np.float32), np.asarray(b).astype(np.float32), out=out)


def _vector_to_float(np: Any, out: Any, c: Any) -> None:
    np.copyto(out, c)


LOGIC = (
    OpSpec(
        "or", "operator", params("a", "b"), "1 if a or b is true, else 0",
        fold=lambda a, b: float(a != 0 or b != 0), vector="logical_or", native="either", clike="||",
        takes="bool", gives="bool", symbols=("or",), level=2, example="key@a or mouse@down",
    ),
    OpSpec(
        "and", "operator", params("a", "b"), "1 if a and b are true, else 0",
        fold=lambda a, b: float(a != 0 and b != 0), vector="logical_and", native="both", clike="&&",
        takes="bool", gives="bool", symbols=("and",), level=3, example="me@x > 0.2 and me@x < 0.8",
    ),
    OpSpec(
        "not", "operator", params("a"), "1 if a is 0, else 0",
        fold=lambda a: float(a == 0), vector="logical_not", native="negation", clike="!",
        takes="bool", gives="bool", symbols=("not",), level=4, example="not key@space",
    ),
    OpSpec(
        "eq", "operator", params("a", "b"), "1 if a equals b, else 0",
        fold=lambda a, b: float(a == b), vector="equal", native="eq", clike="==",
        gives="bool", symbols=("==", "==="), level=5, example="me@beat == 0",
    ),
    OpSpec(
        "ne", "operator", params("a", "b"), "1 if a differs from b, else 0; NaN differs from everything",
        fold=lambda a, b: float(a != b), vector="not_equal", native="ne", clike="!=",
        gives="bool", symbols=("!=",), level=5, example="me@beat != 0",
    ),
    OpSpec(
        "differs", "internal", params("a", "b"), "1 if a differs from b in single precision, that of images",
        fold=lambda a, b: float(ieee.single(a) != ieee.single(b)), vector=_vector_differs, native=single.differs,
        clike="!=", gives="bool", example="differs(a, b)",
    ),
    OpSpec(
        "lt", "operator", params("a", "b"), "1 if a is less than b, else 0",
        fold=lambda a, b: float(a < b), vector="less", native="lt", clike="<",
        gives="bool", symbols=("<", "<<"), level=5, example="me@x < 0.5",
    ),
    OpSpec(
        "gt", "operator", params("a", "b"), "1 if a is greater than b, else 0",
        fold=lambda a, b: float(a > b), expand=f.gt,
        gives="bool", symbols=(">", ">>"), level=5, example="me@x > 0.5",
    ),
    OpSpec(
        "le", "operator", params("a", "b"), "1 if a is at most b, else 0",
        fold=lambda a, b: float(a <= b), vector="less_equal", native="le", clike="<=",
        gives="bool", symbols=("<=", "<<="), level=5, example="me@x <= 0.5",
    ),
    OpSpec(
        "ge", "operator", params("a", "b"), "1 if a is at least b, else 0",
        fold=lambda a, b: float(a >= b), expand=f.ge,
        gives="bool", symbols=(">=", ">>="), level=5, example="me@x >= 0.5",
    ),
    OpSpec(
        "select", "builtin", params("c", "a", "b"), "a if c is true, else b; what the other side computes never leaks",
        fold=lambda c, a, b: a if c != 0 else b, vector=_vector_select, native="select", clike="?:",
        takes=("bool", "float", "float"), interval=intervals.choice, keeps_finite=True,
        example="select(me@x < 0.5, 0.2, 0.8)",
    ),
    OpSpec(
        "to_float", "internal", params("c"), "a truth as the real 1 or 0",
        fold=lambda c: float(c != 0), vector=_vector_to_float, native=single.bool_as_float, clike="float",
        takes="bool", interval=intervals.truth, example="to_float(a < b)",
    ),
)  # fmt: skip
