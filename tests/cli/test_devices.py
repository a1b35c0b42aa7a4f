"""`weft devices`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from tests.support.cards import PACKAGE
from tests.support.forks import ran
from tests.support.gl import graphics
from tests.support.sound import private_sound
from weft.backends.native import llvm

__all__ = ["graphics"]

_DEVICE = {"index", "name", "available", "reason", "remedy", "memory_total", "memory_free", "cores", "simd"}


@pytest.mark.long
def test_every_backend_is_listed(weft):
    text = weft("devices").stdout
    assert "cpu_visual · visual" in text
    assert re.findall(r"^(\w+) · visual · a window can show its pictures without a copy$", text, re.M) == [
        "gl_visual", "gles_visual", "metal_visual", "wgpu_visual"
    ]
    assert "A patch would run on" in text


@pytest.mark.long
def test_for_a_patch_with_its_memory(weft):
    text = weft("devices", "rich.weft").stdout
    assert "rich.weft would run on" in text
    assert "about " in text


def test_devices_as_json(weft):
    found = weft.json("devices", "rich.weft")
    backends = {b["name"]: b for b in found["backends"]}
    assert set(backends["cpu_visual"]["devices"][0]) >= _DEVICE
    choices = {c["context"]: c for c in found["choices"]}
    assert choices["compute"]["executor"] == "native"
    assert choices["visual"]["subgraphs"] == ["visual/display"]
    # The cache of four ticks, in single precision, and the picture itself.
    assert choices["visual"]["memory"] > 16 * 9 * 4 * (4 + 1)
    assert weft.json("devices")["choices"][0]["memory"] is None


@pytest.mark.long
def test_without_the_sound_library_there_is_a_remedy(weft):
    code = (
        "import sys; sys.modules['pyaudio'] = None\n"
        "from weft.cli import main\n"
        "sys.exit(main(['devices']) or main(['devices', '--json']))"
    )  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    text, _, found = done.stdout.partition("\n{")
    assert "Sound\n  not available: pyaudio is not installed" in text
    assert "weft-live[audio]" in text
    sound = json.loads(f"{{{found}")["sound"]
    assert (sound["outputs"], sound["inputs"]) == ([], [])
    assert "weft-live[audio]" in sound["problem"]


@pytest.mark.long
def test_sound_devices(weft, tmp_path):
    with private_sound(tmp_path / "sound") as server:
        silent = weft("devices")
        assert "  no output" in silent.stdout
        assert silent.stderr == ""
        server.start()
        found = weft.json("devices")["sound"]
        text = weft("devices").stdout
    assert found["problem"] is None
    (output,) = found["outputs"]
    assert set(output) == {"index", "name", "channels", "rate", "is_default"}
    assert output["is_default"]
    assert f"  output {output['index']}: {output['name']} · " in text
    assert len(found["inputs"]) == 1


@pytest.mark.long
def test_every_subgraph_has_its_place_and_its_memory(weft):
    size = "me<width> = 40; me<height> = 30\n"
    weft.file("two.weft", f"{size}a = prev(a) + 1\ndisplay(me@x)\ncompute(a)\naudio(sin(me@time))\n")
    found = weft.json("devices", "two.weft")
    placed = {each["subgraph"]: each for choice in found["choices"] for each in choice["placed"]}
    assert {name: each["executor"] for name, each in placed.items()} == dict.fromkeys(placed, "native")
    assert placed["visual/display"]["memory"] == 40 * 30 * 4 * 2
    (here,) = found["memory"]
    assert here["device"] == "this computer"
    assert here["needed"] == sum(each["memory"] for each in placed.values()) < here["free"]
    text = weft("devices", "two.weft").stdout
    assert "Memory on this computer: about 9.6 kB; " in text
    assert "  the picture of visual/display, 40×30: 9.6 kB" in text


@pytest.mark.long
def test_what_draws_until_a_driver_is_ready_is_told(weft, graphics):
    weft.file("p.weft", "me<width> = 40\nme<height> = 30\ndisplay(me@x * me@time)\n")
    found = json.loads(weft("devices", "p.weft", "--json", WEFT_BACKEND="visual=gl").stdout)
    assert [each["until_ready"] for each in found["choices"][0]["placed"]] == ["native"]
    told = "visual/display: gl_visual, and cpu_visual (native) until the driver is ready"
    assert told in weft("devices", "p.weft", WEFT_BACKEND="visual=gl").stdout
    (choice,) = weft.json("devices", "p.weft")["choices"]
    assert [each["until_ready"] for each in choice["placed"]] == [None]


@pytest.mark.long
def test_too_much_memory_is_said_and_refused(weft):
    # Few pixels, remembered often: drawing them takes no time that would be told first on a busy machine.
    size = "me<width> = 512; me<height> = 512\n"
    weft.file("vast.weft", f"{size}cache(a, 102400)::c<v>\na = me@x\ndisplay(c@v(c@k ~ 102399))\n")
    assert "are free, which is too much" in weft("devices", "vast.weft").stdout
    done = weft("run", "vast.weft", "--headless", "--frames", "1", code=3)
    assert "visual/c/cache/0 alone goes back 102399 ticks" in done.stderr


@pytest.fixture
def metal(monkeypatch):
    """A card that is preferred to all else."""
    monkeypatch.setenv("PYTHONPATH", str(PACKAGE))
    monkeypatch.setenv("WEFT_CARD", "metal_visual")


@pytest.mark.long
@pytest.mark.usefixtures("metal")
def test_what_a_card_is_not_worth_is_said_subgraph_by_subgraph(weft):
    text = weft("devices").stdout
    assert "  visual: metal_visual, the fastest here" in text
    assert "  2: a broken card · not available: it smells of smoke · open a window" in text
    tiny = weft("devices", "rich.weft").stdout
    assert "  visual: metal_visual, the fastest here" in tiny
    (line,) = (line for line in tiny.splitlines() if line.startswith("    visual/display: "))
    assert line.startswith("    visual/display: cpu_visual (native), it has nothing to keep a cache in")
    weft.file("large.weft", "me<width> = 640; me<height> = 480\ndisplay(sin(me@x * me@y * 9 + me@time))\n")
    found = weft.json("devices", "large.weft")
    assert [(room["device"], room["free"]) for room in found["memory"]] == [("a card", 8_000_000)]
    weft.file("huge.weft", "me<width> = 1920; me<height> = 1080\ndisplay(prev(me@x) + me@y)\n")
    assert "of memory on a card" in weft("run", "huge.weft", "--headless", "--frames", "1", code=3).stderr


@pytest.mark.usefixtures("metal")
def test_a_device_by_its_number(weft):
    run = ("run", "plain.weft", "--headless", "--frames", "1", "--no-audio", "--backend")
    assert "visual metal_visual:1" in weft(*run, "visual=metal:1").stderr
    assert "there is 0: a card, 1: another card, 2: a broken card" in weft(*run, "metal:3", code=3).stderr
    assert "it smells of smoke (open a window)" in weft(*run, "metal_visual:2", code=3).stderr


def test_the_environment_is_a_chain_with_a_line_for_what_is_passed(tmp_path):
    (tmp_path / "patch.weft").write_text("me<width> = 8; me<height> = 8\ndisplay(me@x)\n")
    environment = {**os.environ, "WEFT_BACKEND": "card_visual:2,vector", "PYTHONPATH": str(PACKAGE)}
    for command in (["run", "patch.weft", "--headless", "--frames", "1"], ["render", "patch.weft", "-o", "a.png"]):
        done = ran(command, tmp_path, environment)
        assert done.returncode == 0, done.stderr
        line = "weft: WEFT_BACKEND: card_visual:2 is not available: it smells of smoke (open a window)"
        assert done.stderr.splitlines().count(line) == 1


@pytest.mark.skipif(llvm.host() is None, reason="there is no machine code here")
def test_a_family_of_processors_that_cannot_be_had_is_said_once(weft):
    here = ", ".join(name for name, isa in llvm.ISAS.items() if llvm.runs_here(isa))
    told = f"weft: WEFT_ISA is avx1024, and this processor runs code for {here}; without machine code, numpy plays"
    for command in (["run", "plain.weft", "--headless", "--frames", "1"], ["render", "plain.weft", "-o", "a.png"]):
        command += ["--size", "32x18"]
        lines = weft(*command, WEFT_ISA="avx1024").stderr.splitlines()
        assert lines.count(f"{told} (vector), which is slower") == 1, lines
        named = weft(*command, "--backend", "vm", WEFT_ISA="avx1024").stderr
        assert "WEFT_ISA" not in named, "who names something else has asked for it"
        assert "WEFT_ISA" not in weft(*command, WEFT_ISA="").stderr


def test_no_sound_has_a_reason(weft, tmp_path):
    with private_sound(tmp_path / "sound"):
        text = weft("devices").stdout
    assert "  no output: no sound server or sound card answers" in text
