"""Lights by a dongle at a serial port, in the protocol of the ENTTEC DMX USB Pro, which many others speak as well.

"DMX USB Pro Widget API Specification 1.44" by ENTTEC: a message is a start, a label, the length of its data in two
bytes, the data, and an end. Label 6 sends the start code of DMX, 0, and its levels.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import Any

from weft.runtime.hands.light_packets import CHANNELS

_BEGIN, _SEND_DMX, _END = 0x7E, 6, 0xE7

# A dongle at a USB port ignores the rate; one behind a real serial port has this.
_BAUD = 57600
# The seconds that a message may take, those between two attempts to open a port, and those that the end may take.
_SLOW, _PAUSE, _LEAVE = 1.0, 1.0, 0.5


def dmx_message(levels: bytes) -> bytes:
    """The message with the 512 levels of the only universe."""
    data = bytes(1) + levels
    return bytes((_BEGIN, _SEND_DMX, len(data) & 255, len(data) >> 8)) + data + bytes((_END,))


class SerialLights:
    """A dongle. What is sent is written by a thread of its own, the newest levels alone: a port may stand still, and a
    dongle be pulled out and plugged in again."""

    def __init__(self, port: str) -> None:
        """Begins to open the port."""
        self._port = port
        self._levels: bytes | None = None
        self._is_over = False
        self._changed = threading.Condition()
        self.failure: str | None = None
        """Why nothing reaches the dongle now."""
        self._thread = threading.Thread(target=self._run, name="weft-dongle", daemon=True)
        self._thread.start()

    def send(self, levels: bytes) -> None:
        """Has 512 levels sent, as soon as those before are. Raises OSError while nothing reaches the dongle."""
        assert len(levels) == CHANNELS
        with self._changed:
            self._levels = levels
            self._changed.notify()
        if self.failure is not None:
            raise OSError(0, self.failure)

    def close(self) -> None:
        """Sends what was given last, and ends."""
        with self._changed:
            self._is_over = True
            self._changed.notify()
        self._thread.join(_LEAVE)

    # --- its thread ---

    def _run(self) -> None:
        while not self._is_over:
            try:
                self._serve()
            except Exception as problem:  # pyserial has its own, and those of several systems
                self.failure = _reason(problem)
            with self._changed:
                self._changed.wait_for(lambda: self._is_over, _PAUSE)

    def _serve(self) -> None:
        """Opens the port, and sends until that fails. Raises what pyserial does."""
        import serial

        with serial.Serial(self._port, _BAUD, write_timeout=_SLOW, exclusive=None) as port:
            self.failure = None
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._levels is not None or self._is_over)
                    levels, self._levels = self._levels, None
                if levels is None:
                    return
                self._write(port, dmx_message(levels))

    def _write(self, port: Any, message: bytes) -> None:
        port.write(message)
        began = time.monotonic()
        # Messages do not pile up in the system, where they would be late.
        with suppress(AttributeError, OSError):
            while port.out_waiting and time.monotonic() - began < _SLOW:
                time.sleep(0.001)


def _reason(problem: Exception) -> str:
    """Why a port fails, in the words of the system where it has some."""
    number = getattr(problem, "errno", None)
    return os.strerror(number) if number else str(problem) or type(problem).__name__
