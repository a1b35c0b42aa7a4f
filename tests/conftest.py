"""How hypothesis works here: without time limits, which a loaded machine would break, and in CI with the same examples
every time, so that a run says something about the change and not about the dice."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("weft", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("weft"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "weft")
