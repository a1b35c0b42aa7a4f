"""Sound devices through PortAudio: a list of them, and streams that play."""

from __future__ import annotations

import importlib.util
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft import child
from weft.errors import WeftError, error, installs
from weft.platform import system
from weft.runtime.stderr import suppress_stderr

_UNDERFLOW = 4
_CONTINUE = 0

# PortAudio's numbers of errors for which there is a remedy.
_BUSY = -9985
_NO_DEVICE = -9996
NO_DEVICE = "no sound server or sound card answers"
"""The usual reason for having no device."""

_REMEDIES = {
    _BUSY: "another program uses it exclusively",
    _NO_DEVICE: NO_DEVICE,
    -9997: "it cannot play at this rate: set another me<rate>",
    -9998: "it has fewer channels",
}


@dataclass(frozen=True, slots=True)
class SoundDevice:
    """A device for one direction: its current number in PortAudio, its channels in that direction, and the rate that it
    prefers."""

    index: int
    name: str
    channels: int
    rate: float
    is_default: bool


def problem() -> str | None:
    """The reason why this machine cannot have sound, with a remedy; None if nothing is known to prevent it."""
    if importlib.util.find_spec("pyaudio") is None:
        return f"pyaudio is not installed: {_remedy()}"
    try:
        import pyaudio  # noqa: F401
    except ImportError as failure:
        return f"pyaudio cannot be loaded ({failure}): {_remedy()}"
    return None


def _remedy() -> str:
    install = installs("audio")
    return f"{system.portaudio_remedy}, then {install}" if system.portaudio_remedy else install


class Devices:
    """PortAudio from now until `close`, with the current devices. To find new devices, another object has to be made
    while none is open in this process. Raises WeftError (`no-sound-device`)."""

    def __init__(self) -> None:
        reason = problem()
        if reason is not None:
            raise error("no-sound-device", f"there is no sound: {reason}")
        import pyaudio

        with suppress_stderr(), _translating_errors("PortAudio does not start"):
            self._audio: Any = pyaudio.PyAudio()

    def close(self) -> None:
        """Ends PortAudio. May be called twice."""
        if self._audio is not None:
            with suppress_stderr():
                self._audio.terminate()
            self._audio = None

    def listed(self, direction: str) -> list[SoundDevice]:
        """Devices for `Output` or `Input`, in PortAudio's order."""
        try:
            default = int(getattr(self._audio, f"get_default_{direction.lower()}_device_info")()["index"])
        except OSError:  # there is none
            default = None
        found = []
        for index in range(self._audio.get_device_count()):
            facts: Mapping[str, Any] = self._audio.get_device_info_by_index(index)
            channels = int(facts[f"max{direction}Channels"])
            if channels > 0:
                rate = float(facts["defaultSampleRate"])
                found.append(SoundDevice(index, str(facts["name"]), channels, rate, index == default))
        return found

    def open_output(self, device: SoundDevice, rate: int, channels: int, frames: int, fill: Fill) -> OutputStream:
        """A stream, not started yet. Raises WeftError (`sound-device-failed`, `sound-device-busy`)."""
        with suppress_stderr(), _translating_errors(f'"{device.name}" cannot be opened'):
            return OutputStream(self._audio, device, rate, channels, frames, fill)


    def open_input(self, device: SoundDevice, rate: int, channels: int, frames: int, heard: Heard) -> InputStream:
        """A stream from a device, not started yet. Raises WeftError (`sound-device-failed`, `sound-device-busy`)."""
        with suppress_stderr(), _translating_errors(f'"{device.name}" cannot be opened'):
            return InputStream(self._audio, device, rate, channels, frames, heard)


def chosen(found: Sequence[SoundDevice], wanted: str | int | None) -> SoundDevice:
    """The device with a number, or the first with these words in its name; None: the choice of the system.

    Raises WeftError (`no-sound-device`) with a list of the devices.
    """
    fitting = next((device for device in found if _fits(device, wanted)), None)
    if fitting is not None:
        return fitting
    there = ", ".join(f'{device.index} "{device.name}"' for device in found)
    if not there:
        raise error("no-sound-device", "there is no sound device", hint=_REMEDIES[_NO_DEVICE])
    if wanted is None:
        raise error("no-sound-device", "the system has chosen no sound device", hint=f"there is {there}")
    raise error("no-sound-device", f'there is no sound device "{wanted}"', hint=f"there is {there}")


def _fits(device: SoundDevice, wanted: str | int | None) -> bool:
    if wanted is None:
        return device.is_default
    words = str(wanted).strip()
    return device.index == int(words) if words.isdecimal() else words.casefold() in device.name.casefold()


@contextmanager
def _translating_errors(what: str) -> Iterator[None]:
    """Turns errors of PortAudio into WeftError."""
    try:
        yield
    except (OSError, ValueError) as failure:
        number = getattr(failure, "errno", None)
        words = getattr(failure, "strerror", None) or str(failure)
        code = "sound-device-busy" if number == _BUSY else "sound-device-failed"
        raise error(code, f"{what}: {words}", hint=_REMEDIES.get(number or 0)) from failure


Fill: TypeAlias = Callable[[NDArray[np.float32], float, bool, float], None]
"""Fills a block [frames, channels] that is heard after a number of seconds. True means that samples were missing before
it. The last number is the number of seconds since the device asked for it: the thread may have waited for Python's
lock."""


def folded(fill: Fill, channels: int, fewer: int) -> Fill:
    """A function that fills blocks of fewer channels than `fill`: channel n is the mean of channels n, n + fewer, …"""
    if fewer == channels:
        return fill
    whole = np.zeros((0, channels), np.float32)

    def filled(block: NDArray[np.float32], latency: float, underflow: bool, waited: float) -> None:
        nonlocal whole
        if len(whole) != len(block):
            whole = np.zeros((len(block), channels), np.float32)
        fill(whole, latency, underflow, waited)
        for channel in range(fewer):
            block[:, channel] = whole[:, channel::fewer].mean(axis=1)

    return filled


def routed(fill: Fill, channels: int, places: Sequence[int], width: int) -> Fill:
    """A function that fills blocks of `width` channels: channel n of `fill` is at the n-th of the places, which count
    from 1. More channels than places share them, places beyond the width are left out, and all others are silent."""
    inner = folded(fill, channels, min(channels, len(places)))
    there = [(number, place - 1) for number, place in enumerate(places[:channels]) if place <= width]
    whole = np.zeros((0, min(channels, len(places))), np.float32)

    def filled(block: NDArray[np.float32], latency: float, underflow: bool, waited: float) -> None:
        nonlocal whole
        if len(whole) != len(block):
            whole = np.zeros((len(block), whole.shape[1]), np.float32)
        inner(whole, latency, underflow, waited)
        block[:] = 0
        for number, place in there:
            block[:, place] = whole[:, number]

    return filled


Heard: TypeAlias = Callable[[NDArray[np.float32]], None]
"""Takes a block [frames, channels] that a device has heard, which is only valid during the call."""


class SoundStream:
    """A stream of PortAudio, which calls back by a thread of its own."""

    def __init__(self, device: SoundDevice) -> None:
        self.device = device
        self._stream: Any = None

    def start(self) -> None:
        """Starts the stream. Raises WeftError (`sound-device-failed`)."""
        with suppress_stderr(), _translating_errors(f'"{self.device.name}" cannot be started'):
            self._stream.start_stream()

    @property
    def is_active(self) -> bool:
        """False when the device has ended it."""
        try:
            return bool(self._stream.is_active())
        except OSError:
            return False

    def close(self) -> None:
        """Ends the stream at once. May be called twice."""
        with suppress_stderr(), suppress(OSError):
            self._stream.close()


class InputStream(SoundStream):
    """A stream from a device: PortAudio's thread calls `heard` for each block. `heard` must not raise."""

    def __init__(self, audio: Any, device: SoundDevice, rate: int, channels: int, frames: int, heard: Heard) -> None:
        import pyaudio

        super().__init__(device)
        self._heard = heard
        self._channels = channels
        self._stream = audio.open(
            rate=rate, channels=channels, format=pyaudio.paFloat32, input=True, input_device_index=device.index,
            frames_per_buffer=frames, stream_callback=self._called, start=False,
        )  # fmt: skip

    def _called(self, samples: bytes, frames: int, times: Mapping[str, float], status: int) -> tuple[None, int]:
        self._heard(np.frombuffer(samples, np.float32).reshape(-1, self._channels))
        return None, _CONTINUE


class OutputStream(SoundStream):
    """A stream to a device: PortAudio's thread calls `fill` for each block. `fill` must not raise."""

    def __init__(self, audio: Any, device: SoundDevice, rate: int, channels: int, frames: int, fill: Fill) -> None:
        import pyaudio

        super().__init__(device)
        self._fill = fill
        self._block = np.zeros((frames, channels), np.float32)
        self._clock: Callable[[], float] | None = None
        self._stream = audio.open(
            rate=rate, channels=channels, format=pyaudio.paFloat32, output=True, output_device_index=device.index,
            frames_per_buffer=frames, stream_callback=self._called, start=False,
        )  # fmt: skip
        self.latency = float(self._stream.get_output_latency())
        """Seconds from `fill` until a block is heard, as the device estimates them."""

    def _called(
        self, _input: bytes | None, frames: int, times: Mapping[str, float], status: int
    ) -> tuple[NDArray[np.float32], int]:
        block = self._block
        if len(block) != frames:
            self._block = block = np.zeros((frames, block.shape[1]), np.float32)
        asked = times["current_time"]
        # PortAudio's clock is one of these two, depending on its version.
        self._clock = self._clock or min((time.monotonic, time.time), key=lambda clock: abs(clock() - asked))
        waited, ahead = self._clock() - asked, times["output_buffer_dac_time"] - asked
        # A device that has no samples yet, or has run out of them, plays the next ones at once.
        latency = ahead if 0 <= ahead < 1 else self.latency
        self._fill(block, latency, bool(status & _UNDERFLOW), waited if 0 < waited < 1 else 0.0)
        return block, _CONTINUE


# --- listing devices in another process, since a stopped sound server never answers ------------------------------

# Seconds that a sound server may take to answer.
_PATIENCE = 10.0


@dataclass(frozen=True)
class SoundDevices:
    """The output and input devices; or none, and the problem that prevents sound."""

    outputs: tuple[SoundDevice, ...] = ()
    inputs: tuple[SoundDevice, ...] = ()
    problem: str | None = None


def look(patience: float = _PATIENCE) -> SoundDevices:
    """The current devices. Takes at most `patience` seconds."""
    reason = problem()
    if reason is not None:
        return SoundDevices(problem=reason)
    try:
        process = child.run("weft.runtime.sound.device:main", timeout=patience)
        process.check_returncode()
        found: SoundDevices = pickle.loads(process.stdout)
    except subprocess.TimeoutExpired:
        return SoundDevices(problem="the sound server does not answer: start it again")
    except (OSError, subprocess.SubprocessError, EOFError, pickle.UnpicklingError) as failure:
        return SoundDevices(problem=f"devices cannot be listed: {failure}")
    return found


def main() -> None:
    """Writes the devices to stdout, for `look`."""
    try:
        with closing(Devices()) as devices:
            found = SoundDevices(tuple(devices.listed("Output")), tuple(devices.listed("Input")))
    except WeftError as failure:
        found = SoundDevices(problem=failure.diagnostics[0].message)
    sys.stdout.buffer.write(pickle.dumps(found))
