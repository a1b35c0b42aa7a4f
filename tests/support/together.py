"""Which tests one worker of pytest-xdist runs, one after another, when several share them (`--dist loadgroup`).

They are recognised by their names: with pytest 9.2, pytest-xdist 3.8 loses the groups that marks give.
"""

from __future__ import annotations

import re

from xdist.scheduler import LoadScopeScheduling

# Sound processes ask for priority over all others, and two at once would compete as they never do on a stage. Keys go
# to the window on top. The executors of a chunk share its programs, which a process makes only once.
_GROUPS = re.compile(
    r"tests/(?P<loudspeaker>sound)/"
    r"|tests/(?P<display>live/test_window\.py|cli/test_examples\.py::test_a_name_is_played)"
    r"|tests/test_generated_parity\.py::(?P<chunk>\w+\[)[^\d]*(?P<start>\d+)\]"
)


def group_of(name: str) -> str:
    """The group of a test by its whole name (`tests/…::test_…[…]`): that name itself where it stands alone."""
    found = _GROUPS.match(name)
    if found is None:
        return name
    return f"{found['chunk']}{found['start']}" if found["chunk"] else str(found.lastgroup)


class Together(LoadScopeScheduling):
    """Hands out groups, the largest first."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
