"""Control signals: every millisecond once however the frames come, and the ways out of the process. The file that
brings them is named by no other."""

from __future__ import annotations

import errno
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from pythonosc.dispatcher import Dispatcher
from pythonosc.osc_bundle import OscBundle
from pythonosc.osc_server import BlockingOSCUDPServer

import weft
from tests.support.beats import given_beats
from tests.support.forks import ran
from weft.backends.base import Env
from weft.backends.haptic import HAPTIC, RATE, VARIABLE, TickBatch, datagrams, find_outlet, ticks_of_frame
from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.cli import main
from weft.errors import Diagnostic, Source, fitting
from weft.runtime.compiling.stages import Request, build
from weft.runtime.program.compiled import CompiledProgram
from weft.runtime.program.program import LoadedProgram, ProgramLoader

SIZE = (16, 8)

# Frames that come as they like: on a tick, close to one, twice within one, and late. Seconds.
TIMES = (0.0, 1 / 60, 0.033, 0.0330004, 0.0332, 0.05, 0.05, 0.4999999, 0.6, 1.55)


def built(text: str) -> CompiledProgram:
    return build(Request(Source("patch.weft", text), load_registry().contexts)).compiled


@dataclass
class Played:
    """A patch frame by frame, and all that its haptic statements gave, by the name of the subgraph."""

    text: str
    backend: str | None = None
    values: dict[str, list[np.ndarray]] = field(default_factory=dict)
    warnings: list[Diagnostic] = field(default_factory=list)
    number: int = 0
    time: float = 0.0

    def __post_init__(self) -> None:
        registry = load_registry()
        self.loader = ProgramLoader(choose(registry, [spec.name for spec in registry.contexts], self.backend))
        self.loaded: LoadedProgram = self.loader.prepare(built(self.text), SIZE)

    def frames(self, times: Iterable[float], **inputs: float) -> np.ndarray:
        """Advances to these times, and gives all values so far of the only statement, or the first, [ticks, values]."""
        for time in times:
            env = self.env(time, **inputs)
            for result in self.loaded.runner.run(env):
                if result.context == HAPTIC.name:
                    self.values.setdefault(result.subgraph, []).append(result.values)
            self.number, self.time = self.number + 1, time
        return self.all(next(iter(self.values)))

    def env(self, time: float, **inputs: float) -> Env:
        named = given_beats(self.loaded.compiled.settings["bpm"])
        named |= {name.replace("_", "@"): value for name, value in inputs.items()}
        dt = time - self.time if self.number else 0.0
        return Env(*SIZE, tick=self.number, abstime=time, dt=dt, inputs=named, warn=self.warnings.append)

    def all(self, subgraph: str) -> np.ndarray:
        return np.concatenate(self.values[subgraph])

    def edit(self, old: str, new: str) -> None:
        """Saves another text."""
        assert old in self.text
        self.text = self.text.replace(old, new)
        loaded = self.loader.prepare(built(self.text), SIZE, self.loaded)
        self.loader.take_over(loaded, self.loaded)
        self.loaded = loaded


def milliseconds(count: int) -> np.ndarray:
    return np.arange(count) / 1000


# Every tick once.


@given(st.lists(st.one_of(st.just(0.0), st.floats(0, 0.99), st.integers(0, 990).map(lambda n: n / 1000))))
def test_no_tick_is_missing_or_comes_twice(gaps: list[float]) -> None:
    found: list[int] = []
    due, before = None, 0.0
    times = [0.0, *accumulate(gaps)]
    for number, time in enumerate(times):
        ticks = ticks_of_frame(number, time, time - before, due)
        found += ticks
        due, before = ticks.stop, time
    assert found == list(range(len(found)))
    assert len(found) - 1 == pytest.approx(times[-1] * RATE, abs=1)


def test_a_frame_computes_what_has_come_since_the_last_one() -> None:
    assert list(ticks_of_frame(3, 0.05, 0.01, 41)) == list(range(41, 51))
    assert list(ticks_of_frame(3, 0.0502, 0.0001, 51)) == []
    assert list(ticks_of_frame(3, 0.05, 0.01, None)) == list(range(41, 51))  # who joins later, without the time before
    assert list(ticks_of_frame(0, 0.05, 0.0, None)) == list(range(51))  # the start is not there before its first frame
    assert list(ticks_of_frame(0, 0.002, 0.0, 9001)) == [0, 1, 2]  # the clock was started again
    assert list(ticks_of_frame(2, 0.004, 0.002, 9001)) == [3, 4]  # and the frame of that was lost
    late = ticks_of_frame(9, 60.0, 50.0, 10_001)
    assert (late[0], late[-1], len(late)) == (59_001, 60_000, RATE)


@pytest.mark.parametrize("executor", ["native", "vector", "vm"])
@pytest.mark.parametrize("text", ["haptic(me@time)", "haptic(me@time + 0 * prev(1))"])
def test_ticks_are_at_exact_times_over_irregular_frames(executor: str, text: str) -> None:
    found = Played(text, executor).frames(TIMES)
    assert found.tolist() == milliseconds(1551)[:, None].tolist()


def test_hours_later_ticks_are_as_exact() -> None:
    played = Played("haptic(me@abstime, fract(me@abstime * 10))")
    played.number, played.time = 1, 36_000.0
    found = played.frames([36_000.016, 36_000.033])
    assert found[:, 0].tolist() == [n / 1000 for n in range(36_000_001, 36_000_034)]
    assert found[:, 1] == pytest.approx((np.arange(1, 34) % 100) / 100, abs=1e-6)


# Values.

TEXTS = (
    "haptic(sin(me@time * 700), noise(me@time * 30), me@beatphase)",
    "haptic(phasor(90 + 40 * sin(me@time * 9)), mouse@x, me@x + me@y + me@channel)",
    "a = delay(sin(me@time * 50), 40 * me@time, 30)\nhaptic(a, hold(a, me@beat), me@frame, me@sample)",
    "me<loop> = 30\nhaptic(me@time, me@frame, integrate(me@time))",
    "echo = me@beatphase + 0.5 * delay(echo, 7, 9)\nhaptic(echo)\ncompute(me@time)",
)


@pytest.mark.parametrize("text", TEXTS)
def test_values_are_those_of_the_reference_machine(text: str) -> None:
    found, reference = (Played(text, backend).frames(TIMES, mouse_x=0.25) for backend in (None, "vm"))
    assert found == pytest.approx(reference, abs=1e-12)
    assert len({*reference[:, 0]}) > 100


def test_what_remembers_advances_with_every_tick() -> None:
    found = Played("n = prev(n) + 1\nhaptic(n, phasor(100), integrate(1), delay(n, 5, 5))").frames(TIMES)
    ticks = np.arange(len(found))
    assert found[:, 0].tolist() == (ticks + 1).tolist()
    # A phase that comes round is the same on both sides of its seam.
    assert np.exp(2j * np.pi * found[:, 1]) == pytest.approx(np.exp(2j * np.pi * ticks / 10))
    assert found[:, 2] == pytest.approx(milliseconds(len(found)))
    assert found[:, 3].tolist() == np.maximum(ticks - 4, 0).tolist()


def test_what_is_not_finite_is_0_and_the_rest_has_no_limits() -> None:
    found = Played("haptic(0 / 0, 1 / 0, -1 / 0, 1e300, -5)").frames([0.0])
    assert found.tolist() == [[0, 0, 0, 1e300, -5]]


def test_strands_of_other_contexts_are_read_across() -> None:
    played = Played("g<v> = prev(g@v) + me@x\nn = prev(n) + 1\ndisplay(g@v)\ncompute(n)\nhaptic(g@v(me@x ~ 0.25), n)")
    found = played.frames([0.0, 0.002, 0.004])
    assert found.tolist() == pytest.approx(np.array([[0.25, 1], [0.5, 2], [0.5, 2], [0.75, 3], [0.75, 3]]))


def test_two_statements_keep_their_ticks() -> None:
    played = Played("haptic(me@time)\nhaptic(prev(me@time) + 0)")
    played.frames(TIMES)
    first, second = map(played.all, played.values)
    assert first[:-1].tolist() == second[1:].tolist()


# Saves.


def test_state_and_ticks_go_on_over_a_save() -> None:
    played = Played("p = phasor(100)\nn = prev(n) + 1\nhaptic(p, n, me@time)")
    played.frames([0.0, 0.016])
    played.edit("haptic(p, n, me@time)", "haptic(p, n, min(me@time, 9))\nhaptic(me@time + 1)")
    found = played.frames([0.0331, 0.0333, 0.05])
    assert "haptic/haptic" in played.loaded.changed
    assert found[:, 1].tolist() == list(range(1, 52))
    assert found[:, 2].tolist() == milliseconds(51).tolist()
    assert np.exp(2j * np.pi * found[:, 0]) == pytest.approx(np.exp(2j * np.pi * np.arange(51) / 10))
    # What is new begins where the others are.
    assert played.all("haptic/haptic.2")[:, 0].tolist() == (1 + milliseconds(51)[17:]).tolist()


def test_what_does_not_change_is_not_touched() -> None:
    played = Played("n = prev(n) + 1\nhaptic(n)\ndisplay(0)")
    played.frames([0.0, 0.016])
    played.edit("display(0)", "display(1)")
    assert played.loaded.kept == ("haptic/haptic",)
    assert played.frames([0.0331])[:, 0].tolist() == list(range(1, 35))


def test_a_statement_that_comes_back_does_not_make_up_for_the_time_without_it() -> None:
    played = Played("haptic(me@time)\ncompute(1)")
    played.frames([0.0, 0.5])
    played.edit("haptic(me@time)", "")
    played.frames([0.6, 0.7])
    played.edit("compute(1)", "compute(1)\nhaptic(me@time)")
    found = played.frames([0.71])[:, 0]
    assert found[500:].tolist() == [0.5, *(n / 1000 for n in range(701, 711))]


# Ways out.


@pytest.fixture
def way(monkeypatch: pytest.MonkeyPatch):
    return lambda wanted: monkeypatch.setenv(VARIABLE, wanted)


def test_a_file_has_a_line_for_every_tick(way, tmp_path: Path) -> None:
    way(f"file:{tmp_path / 'ticks.txt'}")
    (tmp_path / "ticks.txt").write_text("what was there before")
    Played("pair<x, y> = <0.5, me@time>\nhaptic(1 / 3, left: 0 / 0, arm: pair)").frames([0.0, 0.002])
    rows = [f"0.00{n} 0=0.333333333 left=0 arm@x=0.5 arm@y={n / 1000:g}" for n in range(3)]
    assert (tmp_path / "ticks.txt").read_text().splitlines() == rows


def test_a_trial_sends_nothing(way, tmp_path: Path) -> None:
    way(f"file:{tmp_path / 'ticks.txt'}")
    played = Played("haptic(me@time)")
    (_, values), = played.loaded.runner.try_out(played.env(0.5))  # fmt: skip
    assert values is not None
    assert values.size
    (_, raw), = played.loaded.runner.try_out(played.env(0.5)._replace(tick=7), raw=True)  # fmt: skip
    assert raw is not None
    assert raw.size
    assert not (tmp_path / "ticks.txt").exists()


def test_values_that_are_lost_are_told_once_and_computed_on(way, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    way(f"file:{folder / 'ticks.txt'}")
    played = Played("haptic(me@time)")
    folder.rmdir()
    assert len(played.frames(TIMES)) == 1551
    (warning,) = played.warnings
    assert warning.code == "haptic-lost"
    assert str(folder) in warning.message


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Files that this process writes grow to this many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_nothing_is_written_behind_a_line_that_is_torn(way, tmp_path: Path) -> None:
    way(f"file:{tmp_path / 'ticks.txt'}")
    played = Played("haptic(me@time)")
    with largest_file(200):
        played.frames([0.0, 0.016, 0.033])
    played.frames([0.05])
    (warning,) = played.warnings
    assert os.strerror(errno.EFBIG) in warning.message
    assert (tmp_path / "ticks.txt").stat().st_size == 200


class Receiver:
    """An OSC server at a port of its own."""

    def __init__(self) -> None:
        self.heard: dict[str, list[float]] = {}
        dispatcher = Dispatcher()
        dispatcher.set_default_handler(lambda address, value: self.heard.setdefault(address, []).append(value))
        self.server = BlockingOSCUDPServer(("127.0.0.1", 0), dispatcher)
        # What has been sent is there already.
        self.server.timeout = 0
        self.way = f"osc:127.0.0.1:{self.server.server_address[1]}"

    def listen(self) -> dict[str, list[float]]:
        """All that has come."""
        count = -1
        while count < sum(map(len, self.heard.values())):
            count = sum(map(len, self.heard.values()))
            self.server.handle_request()
        return self.heard


@pytest.fixture
def receiver():
    made = Receiver()
    with made.server:
        yield made


def test_values_arrive_by_osc(way, receiver: Receiver) -> None:
    way(receiver.way)
    played = Played("pair<x, y> = <0.5, 1e300>\nhaptic(left: me@time, arm: pair)\nhaptic(-1)")
    played.frames([0.0, 0.016, 0.016, 0.033])
    heard = receiver.listen()
    assert set(heard) == {"/haptic/left", "/haptic/arm/x", "/haptic/arm/y", "/haptic/2/0"}
    assert heard["/haptic/left"] == pytest.approx(milliseconds(34), abs=1e-8)
    assert {*heard["/haptic/arm/x"]} == {0.5}
    assert {*heard["/haptic/arm/y"]} == {float(np.finfo(np.float32).max)}
    assert heard["/haptic/2/0"] == [-1.0] * 34


def test_a_bundle_tells_when_each_tick_was_due() -> None:
    ticks = range(5, 22)
    values = np.stack([np.arange(len(ticks)), -np.arange(len(ticks))], axis=1).astype(float)
    start = 1_800_000_000.0
    (datagram,) = datagrams(TickBatch(ticks, ("a", "b.0"), values, 0.021), start)
    bundle = OscBundle(datagram)
    assert bundle.timestamp == pytest.approx(start + 0.005, abs=1e-6)
    assert bundle.num_contents == len(ticks)
    for tick, row, inner in zip(ticks, values.tolist(), bundle, strict=True):
        assert inner.timestamp == pytest.approx(start + tick / 1000, abs=1e-6)
        assert [(m.address, m.params) for m in inner] == [("/haptic/a", [row[0]]), ("/haptic/b/0", [row[1]])]


def test_what_is_too_much_for_a_datagram_is_sent_in_several() -> None:
    names = tuple(f"value{n}" for n in range(40))
    values = np.random.default_rng(1).normal(size=(RATE, len(names))).astype(np.float32)
    bundles = [OscBundle(d) for d in datagrams(TickBatch(range(RATE), names, values, 1.0), 0.0)]
    assert max(bundle.size for bundle in bundles) < 9216  # what macOS sends at most
    assert [[m.params[0] for m in tick] for bundle in bundles for tick in bundle] == values.tolist()
    (single,) = datagrams(TickBatch(range(1), names * 10, np.zeros((1, 400)), 0.0), 0.0)
    assert OscBundle(single).num_contents == 1


# As a process.

PATCH = """\
me<width> = 16; me<height> = 9
haptic(time: me@time, wave: phasor(100))
display(me@x)
"""


def run(folder: Path, *arguments: str, python: tuple[str, ...] = (), way: str = ""):
    """Runs a command line of `weft`, or of Python."""
    (folder / "patch.weft").write_text(PATCH)
    if not python:
        return ran(arguments, folder, {**os.environ, VARIABLE: way})
    return subprocess.run(
        [sys.executable, *python, *arguments], cwd=folder, env={**os.environ, VARIABLE: way},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def is_gapless(seconds: list[float]) -> bool:
    return len(seconds) > 1 and all(round(b * 1000) == round(a * 1000) + 1 for a, b in pairwise(seconds))


def test_a_performance_writes_a_file(tmp_path: Path) -> None:
    done = run(tmp_path, "run", "patch.weft", "--headless", "--duration", "1", "--fps", "37", way="file:ticks.txt")
    assert (done.returncode, "warning" in done.stderr) == (0, False), done.stderr
    lines = [line.split() for line in (tmp_path / "ticks.txt").read_text().splitlines()]
    assert is_gapless([float(line[0]) for line in lines])
    assert all(line[1] == f"time={float(line[0]):g}" for line in lines)


@pytest.mark.long
def test_a_performance_sends_by_osc(tmp_path: Path, receiver: Receiver) -> None:
    done = run(tmp_path, "run", "patch.weft", "--headless", "--frames", "20", way=receiver.way)
    assert (done.returncode, "warning" in done.stderr) == (0, False), done.stderr
    heard = receiver.listen()
    assert is_gapless(heard["/haptic/time"])
    assert len(heard["/haptic/wave"]) == len(heard["/haptic/time"])


@pytest.mark.parametrize(
    ("wanted", "reason", "remedy"),
    [
        ("osc:localhost", '"localhost" is not HOST:PORT', "WEFT_HAPTIC=osc:localhost:9000"),
        ("osc:localhost:70000", '"localhost:70000" is not HOST:PORT', "WEFT_HAPTIC=osc:localhost:9000"),
        ("osc:nowhere.invalid:9000", 'the host "nowhere.invalid" is not found', "check the spelling"),
        (f"osc:{'x' * 70}.invalid:9000", 'the host "' + 'x' * 70 + '.invalid" is not found', "check the spelling"),
        ("file:", '"file:" does not say where values go', "WEFT_HAPTIC=osc:HOST:PORT"),
        ("serial:1", '"serial:1" does not say where values go', "WEFT_HAPTIC=file:PATH"),
        ("file:no/such/file", "there is no folder no/such", "create it"),
        ("file:.", ". is not a regular file", "name another one"),
        ("file:/dev/null", "/dev/null is not a regular file", "name another one"),
        (f"file:{'x' * 300}", fitting(f"{'x' * 300} cannot be written"), "name another one"),
        (":", '":" does not say where values go', "WEFT_HAPTIC=osc:HOST:PORT"),
    ],
)
def test_a_way_that_cannot_be_gone_makes_it_unavailable(way, wanted: str, reason: str, remedy: str) -> None:
    way(wanted)
    (device,) = load_registry().backends[HAPTIC.name].probe()
    assert (device.available, device.name) == (False, f"{VARIABLE}={wanted}")
    assert (device.reason or "").startswith(reason)
    assert remedy in (device.remedy or "")


@pytest.mark.long
def test_a_way_that_fails_on_stage_is_told_once_and_the_performance_goes_on(tmp_path: Path) -> None:
    # Sending to all machines at once takes a permission that was not requested.
    done = run(tmp_path, "run", "patch.weft", "--headless", "--frames", "5", way="osc:255.255.255.255:9000")
    assert done.returncode == 0
    words = "warning: values do not reach OSC to 255.255.255.255, port 9000: "
    assert done.stderr.count(words) == done.stderr.count("[haptic-lost]") == 1


@pytest.fixture
def listed(way, capsys: pytest.CaptureFixture[str]):
    """What `weft devices` lists for a way."""

    def devices(wanted: str) -> str:
        way(wanted)
        assert main(["devices"]) == 0
        return capsys.readouterr().out

    return devices


def test_a_way_that_cannot_be_gone_is_a_clear_line(tmp_path: Path, listed) -> None:
    wanted, reason = "file:no/such/file", "there is no folder no/such"
    listed = listed(wanted).splitlines()
    line = listed[listed.index("haptic · haptic") + 1]
    assert line == f"  0: {VARIABLE}={wanted} · not available: {reason} · create it, or name another one"
    assert f"  haptic: nothing; {reason}" in listed
    done = run(tmp_path, "run", "patch.weft", "--headless", "--frames", "1", way=wanted)
    assert done.returncode == 0
    assert f"warning: haptic is left out: {reason} [context-not-available]\n     hint: create it, or" in done.stderr


@pytest.mark.long
def test_without_python_osc_only_osc_is_missing(listed, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "pythonosc"]:
        monkeypatch.setitem(sys.modules, name, None)
    assert "not available: python-osc is not installed · pip install python-osc" in listed("osc:::1:9000")
    assert "0: the file a" in listed("file:a")


def test_devices_say_where_values_go(listed) -> None:
    found = listed("osc:localhost:9000")
    assert "0: OSC to localhost, port 9000" in found
    assert "  haptic: haptic (native), the fastest here" in found


def test_without_a_way_values_are_computed() -> None:
    assert "but not sent; WEFT_HAPTIC=osc:HOST:PORT" in find_outlet("").name


def test_ipv6_has_its_host_in_brackets() -> None:
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    assert find_outlet("osc:[::1]:9000").name == "OSC to ::1, port 9000"


# One file.


def test_no_other_file_names_it() -> None:
    root = Path(weft.__file__).parent
    # What codes mean is written down in one place, also of those that packages use.
    files = [path for path in root.rglob("*") if path.suffix in {".py", ".weft"} and path.parent != root / "codes"]
    assert {path.name for path in files if "haptic" in path.read_text().lower()} == {"haptic.py"}


def test_commands_that_run_nothing_know_it_without_numpy(tmp_path: Path) -> None:
    code = "import sys; from weft.cli import main; code = main(sys.argv[1:])\n"
    code += "print('numpy' in sys.modules); sys.exit(code)"
    for command in (("check", "patch.weft"), ("help", "haptic")):
        done = run(tmp_path, *command, python=("-c", code))
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == "False"
