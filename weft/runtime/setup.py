"""What the processes of a performance are all told: which file it is, and what runs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weft.backends.registry import load_registry
from weft.backends.select import choose, unavailable
from weft.contexts import ContextTable
from weft.runtime.program import Stage


@dataclass(frozen=True)
class Setup:
    """How the texts of a performance are compiled and run. `asked` is `--backend`, `environment` is `WEFT_BACKEND`;
    `settings` override those of the patch."""

    name: str
    asked: str | None = None
    environment: str | None = None
    settings: Mapping[str, float] = field(default_factory=dict)

    def open(self) -> tuple[ContextTable, Stage]:
        """All contexts, and a stage of its own for the process that calls this. Raises WeftError for a backend that
        cannot be had."""
        registry = load_registry()
        choices = choose(registry, [spec.name for spec in registry.contexts], self.asked, self.environment)
        return registry.contexts, Stage(choices, missing=unavailable(registry))
