"""Matching the arguments of a call with parameters, for builtins, spindles and sources alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from weft.errors import Span, did_you_mean, error
from weft.syntax.ast import Argument, Expression


class Parameterlike(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def default(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class Required:
    """A parameter without a default, for those who have only names."""

    name: str
    default: float | None = None


def signature(name: str, params: Sequence[Parameterlike], variadic: bool = False) -> str:
    """How a call is typed: `clamp(x, lo: 0, hi: 1)`."""
    shown = [p.name if p.default is None else f"{p.name}: {p.default:g}" for p in params]
    return f"{name}({', '.join(shown + ['…'] * variadic)})"


def match_arguments(
    name: str, params: Sequence[Parameterlike], args: Sequence[Argument], span: Span, variadic: bool = False
) -> list[Expression | None]:
    """The argument of each parameter, in order; None where its default holds. Those of a variadic callable that go
    beyond its parameters follow. Raises WeftError for what does not fit."""
    if len(args) == len(params) and all(arg.label is None for arg in args):
        return [arg.value for arg in args]
    given: dict[str, Argument] = {}
    extra: list[Expression | None] = []
    for position, arg in enumerate(args):
        if arg.label is None and position >= len(params):
            if not variadic:
                many = f"{len(params)} argument{'s' * (len(params) != 1)}" if params else "no arguments"
                raise error("too-many-arguments", f"{name} takes {many}, and this is one more", arg.span,
                            signature(name, params, variadic))  # fmt: skip
            extra.append(arg.value)
            continue
        label = params[position].name if arg.label is None else arg.label
        if not any(p.name == label for p in params):
            hint = did_you_mean(label, [p.name for p in params]) or signature(name, params, variadic)
            raise error("unknown-argument", f'{name} has no argument "{label}"', arg.label_span or arg.span, hint)
        if label in given and arg.label is not None and given[label].label is not None:
            continue  # the parser has said so
        if label in given:
            raise error("duplicate-argument", f'{name} is given "{label}" twice', arg.span,
                        signature(name, params, variadic))  # fmt: skip
        given[label] = arg
    missing = [p.name for p in params if p.default is None and p.name not in given]
    if missing:
        names = " and ".join(f'"{m}"' for m in missing)
        raise error("missing-argument", f"{name} also needs {names}", span, signature(name, params, variadic))
    return [given[p.name].value if p.name in given else None for p in params] + extra
