"""Parameters for tests, as a text has them."""

from __future__ import annotations

from weft.errors import Report, Source
from weft.runtime.hands.parameters import ParameterBank, ParameterSpec
from weft.syntax.ast import Parameter
from weft.syntax.parser import parse


def specs_of(text: str, path: str = "patch.weft") -> list[ParameterSpec]:
    """The parameters of a text."""
    report = Report()
    statements = parse(Source(path, text), report).statements
    assert not report.diagnostics
    return [ParameterSpec.of(each) for each in statements if isinstance(each, Parameter)]


def bank_of(text: str) -> ParameterBank:
    """A bank with the parameters of a text."""
    bank = ParameterBank()
    bank.adopt(specs_of(text))
    return bank
