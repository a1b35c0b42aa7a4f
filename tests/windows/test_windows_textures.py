"""`to: "spout:NAME"` on Windows: what a receiver of Spout gets. Wine cannot share textures between programs, so there a
sender is only found by its name."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tests.support.outlets import Sending
from tests.windows.processes import eventually, on_windows

pytestmark = on_windows


def test_a_receiver_finds_the_picture_by_its_name() -> None:
    spout = pytest.importorskip("SpoutGL")
    picture = np.zeros((36, 64, 4), np.uint8)
    picture[..., 3] = 255
    picture[:18, :, 0] = 200
    sending = Sending("spout:weft test", (64, 36))
    try:
        sending.show(picture)
        assert sending.encoder.failure is None
        if hasattr(ctypes.windll.ntdll, "wine_get_version"):
            return
        receiver = spout.SpoutReceiver()
        assert receiver.createOpenGL()
        receiver.setReceiverName("weft test")
        found = np.zeros((36, 64, 4), np.uint8)

        def has_come() -> bool:
            sending.show(picture)
            receiver.receiveImage(found, spout.enums.GL_RGBA, False, 0)
            receiver.isUpdated()
            return bool(found.any())

        eventually(has_come, "a picture")
        np.testing.assert_array_equal(found, picture)
        receiver.releaseReceiver()
    finally:
        sending.encoder.close()
