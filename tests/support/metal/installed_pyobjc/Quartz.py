"""What `import Quartz` finds in a process that has this folder on its path."""

from __future__ import annotations

import sys

from tests.support.metal.apple import process_modules

sys.modules[__name__] = process_modules()["Quartz"]
