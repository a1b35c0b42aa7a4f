"""Memory that two processes see."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from weft.errors import WeftError
from weft.runtime.sound.shared import (
    MOST_CONTROLS, MOST_RINGS, RING, Controls, ControlsWriter, Figures, FiguresMemory, Rings, SharedMemory, SoundState
)


@pytest.fixture
def memory() -> SharedMemory:
    memory = SharedMemory(Controls.SIZE)
    memory.close()
    return memory


def test_controls_cross_over_by_name(memory: SharedMemory) -> None:
    writer, controls = ControlsWriter(memory), Controls(memory.bytes)
    controls.refresh()
    assert not controls.known
    writer.write(1.5, {"s@v": 0.25, "mouse@x": 0.5}, paused=True, restarts=3, moment=7.0)
    assert controls.find("s@v") is None
    controls.refresh()
    assert controls.known
    assert (controls.find("s@v"), controls.find("mouse@x"), controls.find("nosuch@v")) == (0.25, 0.5, None)
    assert (controls.seconds, controls.moment, controls.paused, controls.restarts) == (1.5, 7.0, True, 3)
    assert controls.now(8.0) == 1.5
    writer.write(1.6, {"größe@v": 2.0, "s@v": 0.75}, moment=7.5)
    controls.refresh()
    assert (controls.find("s@v"), controls.find("mouse@x"), controls.find("größe@v")) == (0.75, 0.5, 2)
    assert controls.now(8.0) == 1.6 + 0.5


def test_who_comes_late_sees_all_that_is_there(memory: SharedMemory) -> None:
    ControlsWriter(memory).write(2.0, {"a@v": 1.0})
    late = Controls(memory.bytes)
    late.refresh()
    assert (late.seconds, late.find("a@v")) == (2, 1)


def test_too_many_controls_are_refused_and_the_others_go_on(memory: SharedMemory) -> None:
    writer, controls = ControlsWriter(memory), Controls(memory.bytes)
    many = {f"s{number}@v": float(number) for number in range(MOST_CONTROLS)}
    writer.write(1.0, many)
    with pytest.raises(WeftError) as refused:
        writer.write(2.0, {**many, "another@v": 1.0})
    assert refused.value.diagnostics[0].code == "too-many-controls"
    writer.write(3.0, {"s5@v": -5.0})
    controls.refresh()
    assert controls.find("s5@v") == -5
    assert controls.find(f"s{MOST_CONTROLS - 1}@v") == MOST_CONTROLS - 1


def test_controls_that_are_not_written_any_more_give_their_place_back(memory: SharedMemory) -> None:
    writer, controls = ControlsWriter(memory), Controls(memory.bytes)
    for save in range(3 * MOST_CONTROLS // 100):
        names = [f"save{save}@v{number}" for number in range(100)]
        writer.write(1.0, {name: save + number / 100 for number, name in enumerate(names)})
        controls.refresh()
        assert [controls.find(name) for name in names] == [save + number / 100 for number in range(100)]
    assert controls.find("save0@v0") is None


# Writes sets of equal numbers as fast as it can.
_HAMMER = """\
import sys
import numpy as np
from weft.runtime.sound.shared import Controls, ControlsWriter, inherited
class Seen:
    bytes = inherited(int(sys.argv[1]), Controls.SIZE)
writer = ControlsWriter(Seen)
names = [f"s{n}@v" for n in range(200)]
number = 0
while True:
    number += 1
    writer.write(float(number), dict.fromkeys(names, float(number)), restarts=number)
    if number == 1:
        print("begun", flush=True)
"""


def test_what_another_process_writes_is_read_as_a_whole() -> None:
    memory = SharedMemory(Controls.SIZE)
    controls = Controls(memory.bytes)
    with subprocess.Popen(
        [sys.executable, "-c", _HAMMER, str(memory.descriptor)], pass_fds=[memory.descriptor],
        cwd=Path(__file__).parents[3], stdout=subprocess.PIPE,
    ) as writing:  # fmt: skip
        try:
            assert writing.stdout is not None
            writing.stdout.readline()
            sets, count = set(), 0
            # On a busy machine, it may be a while until the writer continues.
            while count < 20_000 or (len(sets) < 2 and writing.poll() is None):
                count += 1
                controls.refresh()
                sets.add(controls.seconds)
                assert {controls.find("s0@v"), controls.find("s199@v"), float(controls.restarts)} == {
                    controls.seconds
                }
        finally:
            writing.kill()
    memory.close()
    assert len(sets) > 1


def test_a_set_that_is_only_half_written_is_not_taken(memory: SharedMemory) -> None:
    writer = ControlsWriter(memory)
    for seconds in (1.0, 2.0):
        writer.write(seconds, {"a@v": seconds})
    before = memory.bytes.copy()
    writer.write(3.0, {"a@v": 3.0})
    after = memory.bytes.copy()
    # As another processor may see it: the counter has turned, and some other byte has not come yet.
    for late in np.flatnonzero(before != after):
        memory.bytes[:] = before
        controls = Controls(memory.bytes)
        controls.refresh()
        memory.bytes[:] = after
        memory.bytes[late] = before[late]
        controls.refresh()
        assert (controls.seconds, controls.find("a@v")) == (2, 2)
        memory.bytes[:] = after
        controls.refresh()
        assert (controls.seconds, controls.find("a@v")) == (3, 3)


def test_figures_cross_over() -> None:
    memory = SharedMemory(FiguresMemory.SIZE)
    reader = FiguresMemory(memory.bytes)
    assert reader.read() == Figures()
    figures = Figures(48000, 1.0, 5.5, 0.02, 5.52, 94, 2, 0.25, SoundState.PLAYING, 1)
    FiguresMemory(memory.bytes).write(figures)
    memory.close()
    assert reader.read() == figures
    assert reader.read() == figures


def test_rings_take_no_room_until_they_are_used() -> None:
    memory = SharedMemory(Rings.SIZE)
    rings = Rings(memory.bytes)
    assert rings.samples.shape == (MOST_RINGS, RING)
    used = [os.stat(memory.descriptor).st_blocks]
    rings.samples[3] = 1
    used.append(os.stat(memory.descriptor).st_blocks)
    memory.close()
    assert Rings(memory.bytes).samples[3].all()
    assert not Rings(memory.bytes).samples[[2, 4]].any()
    if sys.platform == "linux":
        assert used[0] == 0
        assert used[1] * 512 == rings.samples[3].nbytes


def test_memory_has_no_name_and_its_file_is_given_back() -> None:
    memory = SharedMemory(4096)
    assert os.fstat(memory.descriptor).st_nlink == 0
    descriptor = memory.descriptor
    memory.close()
    memory.close()
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(descriptor)
    memory.bytes[0] = 1
