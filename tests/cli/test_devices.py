"""`weft devices` and `weft bench`."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.support.sound import private_sound

_DEVICE = {"index", "name", "available", "reason", "remedy", "memory_total", "memory_free", "cores", "simd"}
_RESULT = {"patch", "context", "backend", "compile_ms", "threads", "tier", "estimated", "first_ms", "p50_ms", "p95_ms",
           "budget_share", "isa"}  # fmt: skip


def test_every_backend_is_listed(weft):
    text = weft("devices").stdout
    assert "cpu_visual · visual" in text
    assert "A patch would run on" in text


def test_for_a_patch_with_its_memory(weft):
    text = weft("devices", "rich.weft").stdout
    assert "rich.weft would run on" in text
    assert "about " in text


def test_devices_as_json(weft):
    found = weft.json("devices", "rich.weft")
    backends = {b["name"]: b for b in found["backends"]}
    assert set(backends["cpu_visual"]["devices"][0]) >= _DEVICE
    choices = {c["context"]: c for c in found["choices"]}
    assert choices["visual"]["executor"] == "native"
    assert choices["visual"]["subgraphs"] == ["visual/display"]
    # The cache of four ticks, in single precision, and the picture itself.
    assert choices["visual"]["memory"] > 16 * 9 * 4 * (4 + 1)
    assert weft.json("devices")["choices"][0]["memory"] is None


def test_without_the_sound_library_there_is_a_remedy(weft):
    code = (
        "import sys; sys.modules['pyaudio'] = None\n"
        "from weft.cli import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )  # fmt: skip
    command = [sys.executable, "-c", code, "devices"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "Sound\n  not available: pyaudio is not installed" in text
    assert "weft[audio]" in text
    found = json.loads(subprocess.run([*command, "--json"], capture_output=True, check=True).stdout)["sound"]
    assert (found["outputs"], found["inputs"]) == ([], [])
    assert "weft[audio]" in found["problem"]


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


def test_bench_as_json(weft):
    found = weft.json("bench", "rich.weft", "--seconds", "0.01", "--threads", "2", "--size", "32x16")
    assert set(found) == {"machine", "results", "transfers"}
    for row in found["results"]:
        expected = {"block", "realtime_factor"} if row["context"] == "audio" else {"size", "mpix_per_s"}
        assert set(row) == _RESULT | expected
        assert 0 < row["p50_ms"] <= row["p95_ms"]
    visual = [(r["backend"], r["threads"]) for r in found["results"] if r["context"] == "visual"]
    assert visual == [("vm", 1), ("vector", 1), ("vector", 2), *[("native", 1), ("native", 2)] * 2]
    sound = [(r["backend"], r["threads"], r["tier"]) for r in found["results"] if r["context"] == "audio"]
    assert sound == [("vm", 1, "bytecode"), ("vector", 1, "bytecode"), ("native", 1, 1), ("native", 1, 2)]
    assert found["transfers"]
    for way in found["transfers"]:
        assert set(way) == {"from", "to", "mechanism", "bytes", "p50_us"}


def test_the_reference_machine_is_estimated_for_large_pictures(weft):
    (row,) = weft.json("bench", "plain.weft", "--seconds", "0", "--backends", "vm")["results"]
    assert row["estimated"] is True
    assert row["size"] == "1280x720"


# Sounds that are led by the mouse and a key, that differ by the channel, and that read a picture.
SOUNDS = """\
me<width> = 16; me<height> = 9
trail<v> = 0.9 * prev(trail@v) + 0.1 * me@x
display(trail@v)
audio(sin(me@time * (220 + mouse@x * 100) * tau + me@channel) * (1 - key@a))
audio(sin(me@x * tau) * trail@v(me@x ~ mouse@x, me@y ~ 0.5), phasor(2))
"""


def test_bench_of_sounds(weft):
    weft.file("sounds.weft", SOUNDS)
    rows = weft.json("bench", "sounds.weft", "--seconds", "0.01", "--threads", "2")["results"]
    sound = [row for row in rows if row["context"] == "audio"]
    assert [(row["backend"], row["tier"]) for row in sound] == [
        ("vm", "bytecode"), ("vector", "bytecode"), ("native", 1), ("native", 2),
    ]  # fmt: skip
    for row in sound:
        assert (row["block"], row["threads"]) == (512, 1)
        assert row["estimated"] is (row["backend"] == "vm")
        assert row["budget_share"] == pytest.approx(row["p50_ms"] / (512 / 48), rel=1e-3)
        assert row["realtime_factor"] == pytest.approx(1 / row["budget_share"], rel=1e-3)
    # What the sound is given by the picture is computed once a frame.
    given = [row for row in rows if row["context"] == "compute"]
    assert [row["size"] for row in given] == ["1x1"] * 3


def test_bench_for_people(weft):
    text = weft("bench", "rich.weft", "--seconds", "0", "--backends", "vector").stdout
    for words in ("p95", "visual", "× real time", "text → bytecode", "by call"):
        assert words in text


def test_without_a_file_the_shipped_patches_are_measured(weft):
    found = weft.json("bench", "--seconds", "0", "--backends", "vector", "--size", "32x18", "--threads", "1")
    assert {"v1", "v2", "v3", "a1", "a2", "a3"} <= {row["patch"] for row in found["results"]}


@pytest.mark.parametrize(("name", "code"), [("gl", 3), ("nosuch", 2)])
def test_a_backend_that_is_not_there(weft, name, code):
    assert name in weft("bench", "plain.weft", "--backends", name, code=code).stderr
