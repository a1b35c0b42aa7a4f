"""A virtual loudspeaker, recordings of it, and measurements of these.

A *step* is a sample at which a sound jumps, which is heard as a click. It bends the sound twice, one way and back at
the next sample, by more than the sound bends around it. A sound that begins or ends at 0, like the attack of a drum,
has a corner there: it bends once, which is not a step.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from tests.support.ends import tied
from weft.runtime.sound import device
from weft.runtime.sound.microphone import Microphones
from weft.runtime.sound.renderer import SoundEvent, SoundOptions
from weft.runtime.sound.shared import Controls, Rings

RATE = 48000
SINK = "weft_out"
VOICE = "weft_in"
Samples = NDArray[np.float64]

# The bytes of a sample in a recording, of both channels.
_LENGTH = 8

_TOOLS = ("pulseaudio", "pactl", "parec")
# Long enough for a machine with other work; a test that waits this long has failed.
_PATIENCE = 30.0
# A priority above that of the sound process, whose blocks it waits for.
_URGENCY = 6

# Without `norewinds` every stream stalls for more than a second at its start.
_SERVER = """\
load-module module-native-protocol-unix socket={folder}/socket auth-anonymous=1
load-module module-null-sink sink_name={sink} rate={rate} channels=2 format=float32le norewinds=1
set-default-sink {sink}
load-module module-null-sink sink_name={voice} rate={rate} channels=2 format=float32le norewinds=1
set-default-source {voice}.monitor
"""

# PortAudio is to see this one device.
_ALSA = """\
pcm.!default { type pulse hint { show on description "a loudspeaker that is none" } }
ctl.!default { type pulse }
"""


def eventually(happens: Callable[[], object], what: str = "it") -> None:
    """Waits until something happens."""
    deadline = time.monotonic() + _PATIENCE
    while not happens():
        assert time.monotonic() < deadline, f"{what} does not happen"
        time.sleep(0.01)


class SoundServer:
    """A PulseAudio of the tests' own, to which the environment of this process leads. It does not run yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(mode=0o700)
        (folder / "default.pa").write_text(_SERVER.format(folder=folder, sink=SINK, voice=VOICE, rate=RATE))
        (folder / "asound.conf").write_text(_ALSA)
        self.environment = {
            "PULSE_SERVER": f"unix:{folder}/socket",
            "PULSE_COOKIE": str(folder / "cookie"),
            "PULSE_STATE_PATH": str(folder),
            "PULSE_RUNTIME_PATH": str(folder),
            "ALSA_CONFIG_PATH": str(folder / "asound.conf"),
        }

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        # Without shared memory: PulseAudio aborts at times when a client that used it dies (its issue 824).
        command = [
            "pulseaudio", "-n", "-F", str(self._folder / "default.pa"), "--daemonize=no", "--use-pid-file=no",
            "--disable-shm=yes", "--exit-idle-time=-1", "--disallow-exit=yes", f"--log-target=file:{self._folder}/log",
        ]  # fmt: skip
        environment = {**os.environ, **self.environment, "XDG_RUNTIME_DIR": str(self._folder)}
        # In a session of its own, since Ctrl-C is for the tests.
        self._process = subprocess.Popen(
            tied(command), env=environment, stderr=subprocess.DEVNULL, start_new_session=True
        )
        eventually(self._answers, "an answer of PulseAudio")
        # It has chosen its own priority by now.
        _serve_first(self._process)

    def _answers(self) -> bool:
        environment = {**os.environ, **self.environment}
        return subprocess.run(["pactl", "info"], env=environment, capture_output=True, check=False).returncode == 0

    def stop(self) -> None:
        """Ends it at once. May be called twice."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @contextmanager
    def held_up(self) -> Iterator[None]:
        """Within this context, the server is stopped."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    @contextmanager
    def recorded(self, file: Path) -> Iterator[Path]:
        """Records what is heard within this context, for `read`."""
        command = ["parec", "-d", f"{SINK}.monitor", "--latency-msec=20", "--format=float32le", f"--rate={RATE}"]
        environment = {**os.environ, **self.environment}
        with file.open("wb") as out, subprocess.Popen(
            tied([*command, "--channels=2"]), stdout=out, env=environment, start_new_session=True
        ) as recorder:  # fmt: skip
            _serve_first(recorder)
            try:
                eventually(lambda: file.stat().st_size > 0, "a recording")
                yield file
            finally:
                recorder.terminate()


    @contextmanager
    def spoken(self, sound: Samples) -> Iterator[None]:
        """Within this context, the microphone hears a sound, [samples, channels]."""
        command = ["pacat", "-d", VOICE, "--format=float32le", f"--rate={RATE}", f"--channels={sound.shape[1]}"]
        environment = {**os.environ, **self.environment}
        with tempfile.NamedTemporaryFile() as file:
            sound.astype(np.float32).tofile(file)
            file.flush()
            with subprocess.Popen(
                tied([*command, file.name]), env=environment, start_new_session=True
            ) as speaker:
                _serve_first(speaker)
                try:
                    yield
                finally:
                    speaker.terminate()


def _serve_first(process: subprocess.Popen[bytes]) -> None:
    """Gives a process priority over all ordinary work, if that is allowed. Sound servers on a stage have it; without
    it, a busy machine would disturb the recording, whatever the player does."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.sched_setscheduler(process.pid, os.SCHED_FIFO, os.sched_param(_URGENCY))


@contextmanager
def private_sound(folder: Path) -> Iterator[SoundServer]:
    """A virtual loudspeaker for the tests alone, to which the environment leads; not started yet. Where there cannot be
    one, the test is skipped, but in CI it fails."""
    reason = _why_not()
    if reason is not None:
        (pytest.fail if os.environ.get("CI") and sys.platform == "linux" else pytest.skip)(reason)
    server = SoundServer(folder)
    with pytest.MonkeyPatch.context() as patch:
        for variable, value in server.environment.items():
            patch.setenv(variable, value)
        try:
            yield server
        finally:
            server.stop()


def _why_not() -> str | None:
    if sys.platform != "linux":
        return "a loudspeaker that is none is known for Linux alone"
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} not installed: scripts/setup system test"
    return device.problem()


# --- measuring --------------------------------------------------------------------------------------------------------


def read(file: Path) -> Samples:
    """A recording so far, [samples, 2]."""
    data = file.read_bytes()
    return np.frombuffer(data[: len(data) // _LENGTH * _LENGTH], np.float32).reshape(-1, 2).astype(np.float64)


def last(file: Path) -> float:
    """The last sample of a recording so far, of its first channel."""
    with file.open("rb") as recording:
        recording.seek(file.stat().st_size // _LENGTH * _LENGTH - _LENGTH)
        return float(np.frombuffer(recording.read(_LENGTH), np.float32)[0])


def hearing(file: Path, anew: bool = False) -> Callable[[], int]:
    """What counts the samples of a recording that are not silent, of all so far or of those from now on. It reads each
    only once."""
    place = _LENGTH * (file.stat().st_size // _LENGTH) if anew else 0
    heard = 0

    def count() -> int:
        nonlocal place, heard
        with file.open("rb") as recording:
            recording.seek(place)
            data = recording.read()
        data = data[: len(data) // _LENGTH * _LENGTH]
        place += len(data)
        heard += np.count_nonzero(np.frombuffer(data, np.float32)[::2])
        return heard

    return count


def until_heard(file: Path, samples: int = 1, anew: bool = False) -> None:
    """Waits until this many samples of a recording are not silent: of all, or of those from now on."""
    heard = hearing(file, anew)
    eventually(lambda: heard() >= samples, "the sound")


def stretches(samples: Samples, apart: int = RATE // 200) -> list[slice]:
    """Where one channel sounds: more than `apart` samples of silence divide, 5 ms if nothing is said."""
    loud = np.flatnonzero(samples)
    parts = np.split(loud, np.flatnonzero(np.diff(loud) > apart) + 1)
    return [slice(int(part[0]), int(part[-1]) + 1) for part in parts if len(part)]


def sounding(samples: Samples, apart: int = RATE // 200) -> list[Samples]:
    """The parts of one channel that sound, without the silence between them, as by `stretches`."""
    return [samples[part] for part in stretches(samples, apart)]


def frequency(samples: Samples) -> float:
    """The strongest frequency of one channel, in Hz: the top of a parabola through the logarithms of the spectrum."""
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    top = int(np.argmax(spectrum[1:-1])) + 1
    below, here, above = np.log(spectrum[top - 1 : top + 2] + 1e-30)
    return float((top + (below - above) / 2 / (below - 2 * here + above)) * RATE / len(samples))


def breaks(samples: Samples, hertz: float, tolerance: float = 1e-4) -> NDArray[np.intp]:
    """Where one channel does not continue a sine of this frequency from the two samples before."""
    missed = samples[2:] - 2 * np.cos(2 * np.pi * hertz / RATE) * samples[1:-1] + samples[:-2]
    return np.flatnonzero(np.abs(missed) > tolerance) + 2


COUNTING = "audio(fract(me@beats / 64) / 2 + 0.25, me@abstime / 64)"
"""On its left, each sample says on which beat it is, and on its right, when it belongs into the performance."""


def counted(recording: Samples) -> tuple[Samples, Samples]:
    """The beats of the samples of a recording of `COUNTING`, and their seconds. Without silence, which there is where
    the machine stands still, and what is near it, since sound fades in after an interruption."""
    edge = RATE // 20
    left, right = np.concatenate([recording[part][edge:-edge] for part in stretches(recording[:, 0], apart=1)]).T
    return (left - 0.25) * 128, right * 64


def tempos(beats: Samples, seconds: Samples) -> Samples:
    """The tempo from each sample to the next, in beats a minute, to a dozen or so, as samples are not finer. Time may
    have been left out between two samples, but none is repeated."""
    steps = np.rint(np.diff(seconds) * RATE)
    assert steps.min() > 0
    return np.diff(beats) * 60 * RATE / steps


# --- what plays -------------------------------------------------------------------------------------------------------


class Tone:
    """A sine at half of full volume, at the frequency of the last message."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._frequency = 0.0

    def render(self, out: NDArray[np.float32], seconds: float) -> None:
        if self._frequency < 0:
            raise ArithmeticError("there is no such tone")
        times = seconds + np.arange(len(out)) / self._rate
        out[:] = (0.5 * np.sin(2 * np.pi * self._frequency * times))[:, np.newaxis]

    def take(self, message: object) -> None:
        if not isinstance(message, float):
            raise TypeError("that is no frequency")
        self._frequency = message

    def news(self) -> list[SoundEvent]:
        return []


def tone(options: SoundOptions, controls: Controls, rings: Rings, microphones: Microphones) -> Tone:
    return Tone(options.rate)


TONE = "tests.support.sound:tone"


STANDS_OUT = 4.0
"""The least ratio of a step to the bends around it."""

QUIETEST = 0.003
"""The size below which a step is inaudible."""

_AROUND = 0.01
_NEAR = 2


@dataclass(frozen=True)
class Step:
    """A jump: its time, in seconds, and its height."""

    time: float
    height: float


def steps(samples: npt.NDArray[np.floating], rate: float) -> list[Step]:
    """The steps of a sound, [samples] or [samples, channels], without its first and last hundredth of a second."""
    channels = np.asarray(samples, float).reshape(len(samples), -1).T
    return sorted((step for channel in channels for step in _steps(channel, rate)), key=lambda step: step.time)


def _steps(samples: npt.NDArray[np.float64], rate: float) -> list[Step]:
    bends = np.diff(samples, 2)
    sizes = np.abs(bends)
    jumps = np.where(bends[:-1] * bends[1:] < 0, np.minimum(sizes[:-1], sizes[1:]), 0)
    around = round(_AROUND * rate)
    starts = np.arange(around, len(jumps) - 2 * around + 1, around)
    if not len(starts):
        return []
    # The largest jump of each hundredth of a second, and the bends on both sides of it.
    at = starts + jumps[around : starts[-1] + around].reshape(-1, around).argmax(axis=1)
    at = at[jumps[at] >= QUIETEST]
    for first, stop in ((-around, -_NEAR), (1 + _NEAR, around)):
        side = sliding_window_view(sizes, stop - first)[at + first]
        at = at[jumps[at] > STANDS_OUT * np.quantile(side, 0.99, axis=1)]
    return [Step((place + 2) / rate, float(jumps[place])) for place in at.tolist()]
