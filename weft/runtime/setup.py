"""What the processes of a performance are all told: which file it is, and what runs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from weft.backends.registry import load_registry
from weft.backends.select import Choice, choose, contexts_of, unavailable
from weft.contexts import ContextTable
from weft.runtime.program import Stage


@dataclass(frozen=True)
class Setup:
    """How the texts of a performance are compiled and run. `asked` is `--backend`, `environment` is `WEFT_BACKEND`;
    `settings` override those of the patch. `choices` are what was made of that, once for all processes."""

    name: str
    asked: str | None = None
    environment: str | None = None
    settings: Mapping[str, float] = field(default_factory=dict)
    choices: Mapping[str, Choice] | None = None

    def decided(self) -> Setup:
        """The same with its choices made, so that no other process looks for devices, or decides otherwise. Raises
        WeftError for a backend that cannot be had."""
        if self.choices is not None:
            return self
        registry = load_registry()
        contexts = [spec.name for spec in registry.contexts]
        return replace(self, choices=choose(registry, contexts, self.asked, self.environment))

    def open(self) -> tuple[ContextTable, Stage]:
        """All contexts, as their backends take them, and a stage of its own for the process that calls this. Raises
        WeftError for a backend that cannot be had."""
        choices = self.decided().choices or {}
        registry = load_registry()
        return contexts_of(registry, choices), Stage(choices, missing=unavailable(registry, choices))
