"""Sound devices: choosing one, and streams."""

from __future__ import annotations

import ctypes
import threading
from contextlib import closing

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.sound import SoundServer, eventually
from weft.errors import WeftError
from weft.runtime.sound.device import Devices, SoundDevice, SoundDevices, chosen, folded, look, routed


def find_output(wanted: str | int | None) -> SoundDevice:
    with closing(Devices()) as devices:
        return chosen(devices.listed("Output"), wanted)


def test_a_device_is_chosen_by_number_or_name(loudspeaker: SoundServer) -> None:
    (there,) = look().outputs
    assert there.channels > 0
    assert there.rate > 0
    for wanted in (None, there.index, str(there.index), there.name, there.name[1:-1].upper(), f" {there.name} "):
        assert find_output(wanted) == there
    assert [device.name for device in look().inputs] == [there.name]


@pytest.mark.parametrize("wanted", ["nosuch", "97", 97])
def test_a_device_that_is_not_there(loudspeaker: SoundServer, wanted: str | int) -> None:
    with pytest.raises(WeftError) as refused:
        find_output(wanted)
    (problem,) = refused.value.diagnostics
    assert problem.code == "no-sound-device"
    assert str(wanted) in problem.message
    (there,) = look().outputs
    assert problem.hint is not None
    assert there.name in problem.hint


def test_no_device_at_all(silent_loudspeaker: SoundServer, capfd: pytest.CaptureFixture[str]) -> None:
    assert look() == SoundDevices()
    for wanted in (None, "anything"):
        with pytest.raises(WeftError) as refused:
            find_output(wanted)
        assert refused.value.diagnostics[0].code == "no-sound-device"
    assert capfd.readouterr().err == ""


def test_a_device_that_comes_is_seen_by_who_looks_anew(silent_loudspeaker: SoundServer) -> None:
    assert look().outputs == ()
    silent_loudspeaker.start()
    assert len(look().outputs) == 1


def test_a_sound_server_that_does_not_answer_is_told(silent_loudspeaker: SoundServer) -> None:
    silent_loudspeaker.start()
    with silent_loudspeaker.held_up():
        found = look(patience=3)
    assert found.outputs == ()
    assert "does not answer" in (found.problem or "")


def test_a_stream_asks_for_blocks(loudspeaker: SoundServer) -> None:
    blocks: list[tuple[tuple[int, ...], float, str]] = []

    def fill(block: NDArray[np.float32], latency: float, underflow: bool, waited: float) -> None:
        block[:] = 0
        blocks.append((block.shape, latency, threading.current_thread().name))

    with closing(Devices()) as devices:
        stream = devices.open_output(chosen(devices.listed("Output"), None), 48000, 2, 256, fill)
        assert not blocks
        stream.start()
        eventually(lambda: len(blocks) > 10)
        assert stream.is_active
        stream.close()
        assert not stream.is_active
        stream.close()
    assert {shape for shape, _, _ in blocks} == {(256, 2)}
    # The first block is heard at once.
    assert all(0 <= latency < 1 for _, latency, _ in blocks)
    assert threading.current_thread().name not in {name for _, _, name in blocks}


def test_a_stream_tells_how_long_it_waited_for_python(loudspeaker: SoundServer) -> None:
    waits: list[float] = []
    with closing(Devices()) as devices:
        there = chosen(devices.listed("Output"), None)
        stream = devices.open_output(there, 48000, 2, 256, lambda block, latency, underflow, wait: waits.append(wait))
        stream.start()
        eventually(lambda: len(waits) > 10)
        # Unlike CDLL, this keeps Python's lock while it sleeps.
        ctypes.PyDLL(None).usleep(200_000)
        eventually(lambda: max(waits) > 0.1)
        stream.close()
    assert 0 <= min(waits) < 0.1


def test_a_stream_that_the_device_refuses(loudspeaker: SoundServer) -> None:
    with closing(Devices()) as devices:
        there = chosen(devices.listed("Output"), None)
        with pytest.raises(WeftError) as refused:
            devices.open_output(there, 48000, there.channels + 1, 256, lambda block, latency, underflow, waited: None)
    (problem,) = refused.value.diagnostics
    assert problem.code == "sound-device-failed"
    assert there.name in problem.message
    assert problem.hint is not None


def test_channels_without_a_loudspeaker_of_their_own_share_one() -> None:
    def fill(block: NDArray[np.float32], latency: float, underflow: bool, waited: float) -> None:
        block[:] = np.arange(block.shape[1])

    block = np.zeros((4, 2), np.float32)
    folded(fill, 5, 2)(block, 0.0, False, 0.0)
    assert np.unique(block, axis=0).tolist() == [[(0 + 2 + 4) / 3, (1 + 3) / 2]]
    assert folded(fill, 2, 2) is fill


def test_channels_go_to_the_outputs_that_are_named() -> None:
    def fill(block: NDArray[np.float32], latency: float, underflow: bool, waited: float) -> None:
        block[:] = 1 + np.arange(block.shape[1])

    def played(channels: int, places: tuple[int, ...], width: int) -> list[float]:
        block = np.full((4, width), 9, np.float32)
        routed(fill, channels, places, width)(block, 0.0, False, 0.0)
        (found,) = np.unique(block, axis=0)
        return [float(each) for each in found]

    assert played(4, (3, 4, 1, 2), 4) == [3, 4, 1, 2]
    assert played(2, (3, 4, 1, 2), 4) == [0, 0, 1, 2]
    assert played(2, (6, 1), 6) == [2, 0, 0, 0, 0, 1]
    # A device that has fewer outputs leaves one out, and fewer places than channels are shared.
    assert played(2, (6, 1), 4) == [2, 0, 0, 0]
    assert played(4, (2, 1), 2) == [3, 2]
    assert played(1, (2,), 2) == [0, 1]
