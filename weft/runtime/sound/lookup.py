"""What sound devices there are, asked by a process of its own: a sound server that has stopped keeps whoever asks it
waiting for good."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import dataclass

from weft import child
from weft.errors import WeftError
from weft.runtime.sound.device import Devices, SoundDevice, problem

# How long a sound server may take to answer, in seconds.
_PATIENCE = 10.0


@dataclass(frozen=True)
class SoundDevices:
    """What can play and what can listen; or nothing, and the problem that keeps sound away."""

    outputs: tuple[SoundDevice, ...] = ()
    inputs: tuple[SoundDevice, ...] = ()
    problem: str | None = None


def look(patience: float = _PATIENCE) -> SoundDevices:
    """The devices that there are now. Takes no longer than `patience`, in seconds."""
    reason = problem()
    if reason is not None:
        return SoundDevices(problem=reason)
    try:
        asked = child.run("weft.runtime.sound.lookup:main", timeout=patience)
        asked.check_returncode()
        found: SoundDevices = pickle.loads(asked.stdout)
    except subprocess.TimeoutExpired:
        return SoundDevices(problem="the sound server does not answer: start it anew")
    except (OSError, subprocess.SubprocessError, EOFError, pickle.UnpicklingError) as failure:
        return SoundDevices(problem=f"devices cannot be looked for: {failure}")
    return found


def main() -> None:
    """Writes what there is to stdout, for `look`."""
    try:
        with Devices() as devices:
            found = SoundDevices(tuple(devices.listed("Output")), tuple(devices.listed("Input")))
    except WeftError as failure:
        found = SoundDevices(problem=failure.diagnostics[0].message)
    sys.stdout.buffer.write(pickle.dumps(found))
