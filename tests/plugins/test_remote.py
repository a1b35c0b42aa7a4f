"""A package has pictures computed by a server, over HTTP: real processes on both sides, and what happens without it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image

from tests.support.forks import command_beside
from weft.backends.base import DeviceLostError, Env
from weft.backends.registry import load_registry
from weft.backends.select import Choice, choose
from weft.contexts import VISUAL
from weft.errors import Source, WeftError
from weft.media.pictures import load_picture
from weft.names import StrandRef
from weft.runtime.compiling.stages import Request, build
from weft.runtime.program.program import LoadedProgram, ProgramLoader

PACKAGE = Path(__file__).parent / "remote"
PAGE = Path(__file__).parents[2] / "docs" / "backends.md"
SIZE = (24, 16)

# Memory of each kind, a picture from a file, a number of another context, and a strand that another one reads.
PATCH = """\
me<width> = 24; me<height> = 16
pic<r, g, b> = load("dots.png")
trail<v> = prev(trail@v) * 0.5 + noise(me@x * 4, me@y * 4)
steps<n> = prev(steps@n) + 1
pace<v> = phasor(3)
wide<v> = me@x * me@width + me@height
display(trail@v, fract(pace@v + me@x), pic@g * fract(steps@n / 8))
compute(trail@v)
"""

# A strand of the sound, which is asked for at another time by each column.
ASKING = "heard<v> = prev(heard@v) * 0.5 + me@time\naudio(heard@v)\ndisplay(heard(me@time ~ me@x))\n"


@contextmanager
def server() -> Iterator[str]:
    """A server of its own; gives its address."""
    command = [sys.executable, "-m", "weft_remote.server", "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGTERM)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with server() as found:
        yield found


@pytest.fixture
def lost_address() -> str:
    """Where a server was."""
    with server() as found:
        return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    Image.fromarray(rng.integers(0, 256, (8, 8, 3), np.uint8)).save(tmp_path / "dots.png")
    (tmp_path / "patch.weft").write_text(PATCH)
    return tmp_path


Weft = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def weft() -> Weft:
    """Runs a command line in a folder, with a server at an address."""
    run = command_beside(PACKAGE)

    def weft(folder: Path, address: str | None, *args: str) -> subprocess.CompletedProcess[str]:
        done = run(folder, *args, WEFT_REMOTE=address or "")
        assert "Traceback" not in done.stderr
        return done

    return weft


@pytest.mark.long
def test_devices_name_the_server(weft: Weft, folder: Path, address: str) -> None:
    listed = weft(folder, address, "devices").stdout
    assert "remote · visual" in listed
    assert f"at {address} · weft" in listed


@pytest.mark.long
@pytest.mark.parametrize("wanted", [None, "http://nowhere.invalid:1", "ftp://localhost"])
def test_without_a_server_there_is_a_reason(weft: Weft, folder: Path, wanted: str | None) -> None:
    listed = weft(folder, wanted, "devices").stdout.splitlines()
    (line,) = (line for line in listed if f"0: {wanted or 'no server'} " in line)
    assert "not available: " in line
    assert "WEFT_REMOTE" in line or "weft_remote.server" in line


@pytest.mark.long
def test_a_server_that_is_gone_is_an_error_in_words(weft: Weft, folder: Path, lost_address: str) -> None:
    assert "not available: no server answers" in weft(folder, lost_address, "devices").stdout
    done = weft(folder, lost_address, "render", "patch.weft", "--backend", "visual=remote", "-o", "a.png")
    assert done.returncode == 3
    assert "remote" in done.stderr


def test_a_picture_is_the_same_as_here(weft: Weft, folder: Path, address: str) -> None:
    for name in ("remote", "vector"):
        done = weft(folder, address, "render", "patch.weft", "--backend", f"visual={name}", "--to", "0.1",
                    "-o", f"{name}-%04d.png")  # fmt: skip
        assert done.returncode == 0, done.stderr
    frames = sorted(folder.glob("remote-*.png"))
    assert len(frames) > 1
    for frame in frames:
        here = load_picture(folder / frame.name.replace("remote", "vector"))
        assert np.array_equal(load_picture(frame), here)


@pytest.mark.parametrize(
    "asked",
    [
        ("trail@v", "--at", "x=0.3,y=0.6,frame=7", "--at", "x=0.31,y=0.1", "--ticks", "3"),
        ("trail@v", "--grid", "6x4", "--ticks", "2"),
        ("steps@n", "--at", "x=0.5", "--ticks", "5"),
        ("pic@g", "--grid", "8x8"),
        ("wide@v", "--grid", "3x2"),
    ],
)
def test_strands_are_the_same_as_here(weft: Weft, folder: Path, address: str, asked: tuple[str, ...]) -> None:
    found = {}
    for name in ("remote", "vector"):
        done = weft(folder, address, "eval", "patch.weft", *asked, "--backend", name, "--json")
        assert done.returncode == 0, done.stderr
        found[name] = json.loads(done.stdout)
    assert found["remote"].pop("backend") == "remote"
    assert found["vector"].pop("backend") == "vector"
    assert found["remote"].pop("values") == pytest.approx(found["vector"].pop("values"), abs=1e-6)
    assert found["remote"] == found["vector"]


def test_sound_is_not_for_the_server(weft: Weft, folder: Path, address: str) -> None:
    done = weft(folder, address, "eval", "patch.weft", "steps@n", "--samples", "4", "--backend", "remote")
    assert done.returncode != 0
    assert "remote draws pictures" in done.stderr


def test_a_patch_plays(weft: Weft, folder: Path, address: str) -> None:
    done = weft(folder, address, "run", "patch.weft", "--headless", "--frames", "5", "--backend", "visual=remote")
    assert done.returncode == 0, done.stderr
    assert "visual remote" in done.stderr


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> type:
    """The class of the backend, in this process."""
    monkeypatch.syspath_prepend(PACKAGE)
    from weft_remote.backend import Remote

    return Remote


class Player:
    """A patch, frame by frame, with its pictures on a server."""

    def __init__(self, remote: type, text: str = PATCH) -> None:
        registry = load_registry()
        choices = choose(registry, [spec.name for spec in registry.contexts], "vector")
        (device,) = remote.probe()
        chosen = Choice(context="visual", name="remote", backend=remote, executor="", reason="asked for", device=device)
        self.loader = ProgramLoader({**choices, "visual": chosen}, stream_getter=lambda ref: lambda time: time)
        self._registry = registry
        self.loaded = self.prepare(text)
        self._tick = 0

    def prepare(self, text: str, before: LoadedProgram | None = None) -> LoadedProgram:
        settings = {"width": SIZE[0], "height": SIZE[1]}
        program = build(Request(Source("patch.weft", text), self._registry.contexts, settings))
        return self.loader.prepare(program.compiled, SIZE, before)

    @property
    def env(self) -> Env:
        return Env(*SIZE, tick=self._tick, abstime=self._tick / 60, dt=1 / 60, pictures=self.loaded.pictures)

    def frame(self) -> np.ndarray:
        results = {result.context: result.values for result in self.loaded.runner.run(self.env)}
        self._tick += 1
        return results["visual"]

    def save(self, text: str) -> list[str]:
        loaded = self.prepare(text, self.loaded)
        kept = self.loader.take_over(loaded, self.loaded)
        self.loaded = loaded
        return kept


def counting(step: float) -> str:
    return f"steps<n> = prev(steps@n) + {step}\ndisplay(steps@n / 100)\n"


def test_memory_goes_on_over_a_save(remote: type, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_REMOTE", address)
    player = Player(remote, counting(1))
    for _ in range(10):
        before = player.frame()
    assert player.save(counting(10))
    assert player.frame()[0, 0, 0] - before[0, 0, 0] == round(255 * 0.2) - round(255 * 0.1)


def test_a_strand_is_read_at_many_places(remote: type, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_REMOTE", address)
    player = Player(remote, "ramp<v> = prev(ramp@v) * 0 + me@x\ndisplay(ramp@v)\ncompute(ramp@v)\n")
    player.frame()
    ref = StrandRef("ramp", "v")
    places = (np.arange(SIZE[0]) + 0.5) / SIZE[0]
    values = player.loaded.runner.values({ref: {"x": places, "y": 0.5}}, player.env)[ref]
    assert np.allclose(values, places)
    assert np.shape(player.loaded.runner.values({ref: {"x": 0.5, "y": 0.5}}, player.env)[ref]) == ()


@pytest.mark.long
def test_a_server_that_goes_while_it_plays_is_a_lost_device(remote: type, monkeypatch: pytest.MonkeyPatch) -> None:
    with server() as found:
        monkeypatch.setenv("WEFT_REMOTE", found)
        player = Player(remote, counting(1))
        player.frame()
    with pytest.raises(DeviceLostError) as lost:
        player.frame()
    assert lost.value.context == VISUAL.name
    assert "the server is lost" in lost.value.reason


def test_a_server_that_begins_anew_knows_no_unit(remote: type, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_REMOTE", address)
    player = Player(remote, counting(1))
    (part,) = player.loaded.runner.parts
    part.compiled.number = 1 << 40
    with pytest.raises(DeviceLostError, match="any more"):
        player.frame()


def test_what_asks_back_for_each_pixel_is_refused(
    remote: type, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_REMOTE", address)
    with pytest.raises(WeftError, match="does not ask back for heard@v"):
        Player(remote, ASKING)


@pytest.mark.parametrize("message", [b"", b"[1, 2]\n", b'[{}, [["a", "O", [1]]]]\n', b'[{"kernel": 1}, []]\n'])
def test_the_server_outlives_what_is_no_message(address: str, message: bytes) -> None:
    place = urlsplit(address)
    with closing(HTTPConnection(place.hostname or "", place.port or 0, timeout=10)) as connection:
        connection.request("POST", "/units", message)
        response = connection.getresponse()
        assert response.status in (400, 404, 500)
        response.read()
        connection.request("GET", "/health")
        assert connection.getresponse().status == 200


def test_the_lines_in_the_documentation_are_those_of_the_package() -> None:
    _, _, behind = PAGE.read_text(encoding="utf-8").partition("## A device elsewhere")
    section = behind.partition("\n## ")[0]
    package = "".join(path.read_text(encoding="utf-8") for path in (PACKAGE / "weft_remote").glob("*.py"))
    shown = [block.partition("```")[0] for block in section.split("```python\n")[1:]]
    assert shown
    for block in shown:
        assert block in package
