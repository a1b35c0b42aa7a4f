"""Says what is wrong at the place where the grammar gave up, in a live coder's words."""

from __future__ import annotations

from typing import Final

from weft.errors import Diagnostic
from weft.syntax import diagnose_expressions, diagnose_heads
from weft.syntax.failure import Failure

# The first that recognises the mistake explains it.
_EXPLANATIONS: Final = (*diagnose_heads.EXPLANATIONS, *diagnose_expressions.EXPLANATIONS)


def diagnose(failure: Failure) -> Diagnostic:
    """The error for a place where the grammar gave up."""
    for explain in _EXPLANATIONS:
        if found := explain(failure):
            return found
    if failure.is_at_end:
        message = f"this statement breaks off after `{failure.text_before}`"
        return failure.error("incomplete-statement", message, failure.tokens.span(failure.at - 1))
    return failure.error("misplaced-token", f"`{failure.text}` cannot follow `{failure.text_before}`", failure.place)
