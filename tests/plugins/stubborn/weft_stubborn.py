"""A package whose compiler never ends with some programs, which say by a key how; nor does its driver, where the
environment says so."""

import os
import threading
import time

from weft.backends.cpu import CpuVisual


class Stubborn(CpuVisual):
    """Draws as weft does."""

    name = "stubborn"
    context = "visual"

    @classmethod
    def probe(cls):
        if "WEFT_STUBBORN_DRIVER" in os.environ:
            time.sleep(1000)
        return super().probe()

    def translate(self, unit, tier=1):
        if "key@z" in unit.kernel.uniforms:
            # Within one call of a library, which does not release Python's lock.
            sum(range(10**12))
        if "key@l" in unit.kernel.uniforms:
            lock = threading.Lock()
            lock.acquire()
            lock.acquire()
        return super().translate(unit, tier)
