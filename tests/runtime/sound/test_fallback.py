"""A sound whose device fails while it plays continues on another one, without a gap."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.runtime.sound.hall import BLOCK, RATE, moments
from tests.support.performance import Performance
from tests.support.sound import SoundServer, eventually, frequency, read
from weft.backends.base import Compiled, Coordinator, DeviceLostError, Env
from weft.backends.cpu import CpuAudio
from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.contexts import ContextTable
from weft.errors import Source
from weft.runtime.compiling.stages import Request, build
from weft.runtime.program.program import ProgramLoader
from weft.runtime.sound.mixer import Mixer

CONTEXTS = ContextTable()
SINGLE = 2e-7


class Frail(CpuAudio):
    """A device that lasts for some blocks."""

    name = "frail_audio"
    lasts: ClassVar[int] = 0

    def execute_subgraph(self, compiled: Compiled, env: Env, coordinator: Coordinator) -> NDArray[Any]:
        if type(self).lasts <= 0:
            raise DeviceLostError(self.context, "it smells of smoke")
        type(self).lasts -= 1
        return super().execute_subgraph(compiled, env, coordinator)


def frail(lasts: int, *behind: str) -> ProgramLoader:
    """A stage whose sounds are played by a device that lasts for this many blocks, and then by its fallbacks."""

    class Device(Frail):
        pass

    Device.lasts = lasts
    registry = load_registry()
    rest = [choose(registry, ["audio"], f"audio={name}")["audio"] for name in behind]
    native = choose(registry, ["audio"], "audio=vector")["audio"]
    first = replace(native, name="frail", backend=Device, requested=True, fallbacks=tuple(rest))
    return ProgramLoader({"audio": first})


class Stall:
    """Plays programs on a stage."""

    def __init__(self, loader: ProgramLoader) -> None:
        self.loader = loader
        self.mixer = Mixer(RATE, 2, lambda name: 0.0, np.zeros((0, 1), np.float32))
        self.played = 0

    def enter(self, text: str, fade: float = 0.0) -> None:
        made = build(Request(Source("sound.weft", f"{text}\n"), CONTEXTS)).compiled
        self.mixer.enter(self.mixer.prepare(self.loader, made, fade, None, {}, {}))

    def play(self, blocks: int) -> NDArray[np.float32]:
        out = np.zeros((blocks * BLOCK, 2), np.float32)
        for start in range(0, len(out), BLOCK):
            self.mixer.render(out[start : start + BLOCK], self.played / RATE)
            self.played += BLOCK
        return out


def tone(hertz: float) -> str:
    return f"audio(sin(me@time * {hertz} * tau) * 0.25)"


def sine(hertz: float, count: int) -> NDArray[np.float64]:
    return np.sin(2 * np.pi * hertz * moments(0, count)) * 0.25


@pytest.mark.parametrize("behind", ["native", "vector"])
def test_it_goes_on_in_the_same_block(behind: str) -> None:
    stall = Stall(frail(3, behind))
    stall.enter(tone(440))
    np.testing.assert_allclose(stall.play(8)[:, 0], sine(440, 8 * BLOCK), atol=SINGLE)
    (change,) = stall.loader.assignment.changes()
    assert str(change) == f"audio continues with {behind}: it smells of smoke"


def test_what_it_remembers_goes_on() -> None:
    stall = Stall(frail(3, "vector"))
    stall.enter("n<v> = prev(n@v) + 1 / 16384\naudio(n@v)")
    np.testing.assert_allclose(stall.play(8)[:, 0], np.arange(1, 8 * BLOCK + 1) / 16384, atol=SINGLE)


def test_all_its_subgraphs_move_and_a_fade_goes_on() -> None:
    # The second program is in the midst of its fade when the device fails.
    stall, calm = Stall(frail(5, "vector")), Stall(frail(100, "vector"))
    for each in (stall, calm):
        each.enter(f"{tone(440)}\na<v> = phasor(3)\naudio(a@v / 8)")
    heard, wanted = stall.play(2), calm.play(2)
    for each in (stall, calm):
        each.enter(tone(550), fade=0.1)
    np.testing.assert_allclose(np.concatenate([heard, stall.play(20)]), np.concatenate([wanted, calm.play(20)]),
                               atol=SINGLE)  # fmt: skip
    assert len(stall.loader.assignment.changes()) == 1


def test_a_program_that_comes_later_runs_where_the_sound_is_by_then() -> None:
    stall = Stall(frail(2, "vector"))
    stall.enter(tone(440))
    stall.play(4)
    stall.enter(tone(550))
    np.testing.assert_allclose(stall.play(1)[:, 0], sine(550, 5 * BLOCK)[-BLOCK:], atol=SINGLE)


def test_what_it_remembers_goes_on_over_saves_that_come_later() -> None:
    stall, calm = Stall(frail(3, "vector")), Stall(frail(100, "vector"))
    counting = "n<v> = prev(n@v) + 1 / 16384\naudio(n@v * {})"
    heard = []
    for each in (stall, calm):
        each.enter(counting.format(1))
        blocks = [each.play(5)]
        for factor in (0.5, 0.25):
            each.enter(counting.format(factor))
            blocks.append(each.play(2))
        heard.append(np.concatenate(blocks))
    np.testing.assert_allclose(heard[0], heard[1], atol=SINGLE)


def test_where_nothing_is_left_the_failure_is_told() -> None:
    stall = Stall(frail(2))
    stall.enter(tone(440))
    stall.play(2)
    with pytest.raises(DeviceLostError, match="it smells of smoke"):
        stall.play(1)


FRAIL = '''\
"""A package that brings a device for sound which lasts for a moment, and another one like it."""

from weft.backends.base import DeviceInfo, DeviceLostError
from weft.backends.cpu import CpuAudio
from weft.backends.null import Null

LASTS = 8  # blocks


class Frail(Null):
    name = "frail_audio"
    context = "audio"

    def __init__(self):
        self._cpu = CpuAudio("vector")
        self._blocks = 0

    @classmethod
    def probe(cls):
        return [DeviceInfo(0, "a frail device"), DeviceInfo(1, "another frail device")]

    def rehearsing(self):
        return self._cpu

    def compile_subgraph(self, unit, env, coordinator):
        return self._cpu.compile_subgraph(unit, env, coordinator)

    def execute_subgraph(self, compiled, env, coordinator):
        self._blocks += 1
        if self._blocks > LASTS:
            raise DeviceLostError("audio", "it smells of smoke")
        return self._cpu.execute_subgraph(compiled, env, coordinator)
'''


@pytest.fixture
def patch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A patch with a tone, and that package."""
    package = tmp_path / "package"
    about = package / "weft_frail-0.1.dist-info"
    about.mkdir(parents=True)
    (package / "weft_frail.py").write_text(FRAIL)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: weft-frail\n")
    (about / "entry_points.txt").write_text("[weft.backends]\nfrail = weft_frail:Frail\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(package), *filter(None, [os.environ.get("PYTHONPATH")])]))
    path = tmp_path / "patch.weft"
    path.write_text(f"me<width> = 16\nme<height> = 9\ndisplay(me@x)\n{tone(440)}\n")
    return path


# With long blocks, a machine that stands still for a moment is not heard.
LONG = ("--buffer", "2048")


def test_a_performance_goes_on_elsewhere_and_says_so(loudspeaker: SoundServer, patch: Path) -> None:
    options = "--headless", "--backend", "audio=frail_audio:0", *LONG
    with loudspeaker.recorded(patch.with_name("heard")) as file, Performance(patch, *options) as performance:
        assert performance.wait_for("started")["backends"]["audio"] == "frail_audio"
        moved = performance.wait_for("backend")
        fields = {"context": "audio", "from": "frail_audio", "to": "native", "reason": "it smells of smoke"}
        assert {name: moved[name] for name in fields} == fields
        performance.wait_for_words("weft: audio continues with native: it smells of smoke")
        performance.save(patch.read_text().replace("440", "550"))
        performance.wait_for("swap")
        eventually(lambda: is_tone(file, 550), "the sound of the save")
        assert {"error", "stopped"}.isdisjoint(event["event"] for event in performance.events)


def is_tone(file: Path, hertz: float) -> bool:
    """Whether a recording has ended with this tone for a while."""
    last = read(file)[-RATE:, 0]
    return bool(np.count_nonzero(last) == RATE and frequency(last) == pytest.approx(hertz, abs=1))


def test_the_next_device_takes_over_and_a_lost_one_is_not_asked_again(loudspeaker: SoundServer, patch: Path) -> None:
    options = "--headless", "--backend", "audio=frail_audio", *LONG
    with loudspeaker.recorded(patch.with_name("heard")) as file, Performance(patch, *options) as performance:
        performance.wait_for("backend", 2)
        # Another rate needs another process, which knows nothing of the first.
        performance.save(f"me<rate> = 44100\n{patch.read_text()}".replace("440", "550"))
        performance.wait_for("swap")
        eventually(lambda: is_tone(file, 550), "the sound at another rate")
        assert {"error", "stopped"}.isdisjoint(event["event"] for event in performance.events)
        told = [(event["from"], event["to"]) for event in performance.events if event["event"] == "backend"]
    assert told == [("frail_audio", "frail_audio:1"), ("frail_audio:1", "native")]
