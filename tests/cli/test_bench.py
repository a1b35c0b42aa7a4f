"""`weft bench`."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import weft_in
from tests.support.interfaces import check_json
from weft.backends.metal.backend import MetalVisual

_RESULT = {"patch", "context", "backend", "compile_ms", "threads", "tier", "estimated", "first_ms", "p50_ms", "p95_ms",
           "budget_share", "isa"}  # fmt: skip

# Numbers that a picture is given, so that there is something to do in both contexts.
BOTH = "pace<v> = phasor(2)\ndisplay(fract(me@x + pace@v))\ncompute(pace@v)\n"

# A strand of the sound, at times that a picture remembers.
ASKING = (
    "heard<v> = prev(heard@v) * 0.5 + me@time\naudio(heard@v)\nlate<v> = prev(late@v) + me@x\n"
    "display(heard(me@time ~ late@v))\n"
)


@pytest.fixture(scope="module")
def on_everything(tmp_path_factory):
    """A bench of a patch on every backend."""
    weft = weft_in(tmp_path_factory.mktemp("everything"))
    return weft("bench", "rich.weft", "--seconds", "0.01", "--threads", "2", "--size", "32x16", "--json")


@pytest.mark.long
def test_bench_as_json(on_everything):
    found = json.loads(on_everything.stdout)
    check_json("bench", found)
    assert set(found) == {"machine", "results", "transfers", "costs"}
    for row in found["results"]:
        expected = {"block", "realtime_factor"} if row["context"] == "audio" else {"size", "mpix_per_s"}
        assert set(row) == _RESULT | expected
        assert 0 < row["p50_ms"] <= row["p95_ms"]
    on_cpu = [r for r in found["results"] if r["tier"] != "shader"]
    visual = [(r["backend"], r["threads"]) for r in on_cpu if r["context"] == "visual"]
    assert visual == [("vm", 1), ("vector", 1), ("vector", 2), *[("native", 1), ("native", 2)] * 2]
    sound = [(r["backend"], r["threads"], r["tier"]) for r in on_cpu if r["context"] == "audio"]
    assert sound == [("vm", 1, "bytecode"), ("vector", 1, "bytecode"), ("native", 1, 1), ("native", 1, 2)]
    for way in found["transfers"]:
        assert set(way) == {"from", "to", "mechanism", "bytes", "p50_us"}
    assert [way["bytes"] for way in found["transfers"] if way["mechanism"] == "call"] == [8, 8 * 4096]


@pytest.mark.long
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
    backends = ("--backends", "vm,vector,native")
    rows = weft.json("bench", "sounds.weft", "--seconds", "0.01", "--threads", "2", *backends)["results"]
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
    for words in ("p95", "visual", "× real time", "text → kernels", "call", "as claimed"):
        assert words in text


def test_the_help_says_what_each_column_is(weft):
    """The tables say it too, above them."""
    measured = weft("bench", "plain.weft", "--seconds", "0", "--backends", "vector", "--size", "32x18")
    shown, said = (" ".join(done.stdout.split()) for done in (measured, weft("bench", "--help")))
    for words in ("A tick is", "compile ms:", "first ms:", "p50 ms, p95 ms:", "of the budget:", "As claimed:"):
        assert words in shown
        assert words in said
    for words in ("tier 1", "tier 2", "reference machine", "(bind)", "(uniform)", "(buffer)", "(read)", "call"):
        assert words in said


@pytest.mark.long
def test_without_a_file_the_shipped_patches_are_measured(weft):
    found = weft.json("bench", "--seconds", "0", "--backends", "vector", "--size", "32x18", "--threads", "1")
    assert {"v1", "v2", "v3", "a1", "a2", "a3"} <= {row["patch"] for row in found["results"]}


@pytest.fixture(scope="module")
def on_a_card(opengl, tmp_path_factory):
    """`weft` where it has measured a card and the processor, the results, and the file that keeps them."""
    weft = weft_in(tmp_path_factory.mktemp("card"))
    weft.file("both.weft", BOTH)
    memory = {"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("memory"))}
    given = ("both.weft", "--seconds", "0.2", "--backends", "gl,vector", "--size", "32x16", "--json")
    return weft, json.loads(weft("bench", *given, **memory).stdout), memory


@pytest.mark.long
def test_a_graphics_card_beside_the_processor(on_a_card):
    _, found, _ = on_a_card
    rows = {(row["backend"], row["context"]): row for row in found["results"]}
    assert {("gl_visual", "visual"), ("gl_compute", "compute"), ("vector", "visual")} <= set(rows)
    drawn = rows["gl_visual", "visual"]
    assert (drawn["tier"], drawn["threads"], drawn["estimated"], drawn["size"]) == ("shader", 1, False, "32x16")
    assert 0 < drawn["p50_ms"] <= drawn["p95_ms"]
    assert {device["backend"] for device in found["machine"]["devices"]} >= {"gl_visual", "gl_compute"}
    ways = [(way["from"], way["to"], way["mechanism"]) for way in found["transfers"]]
    assert ways == [
        *[("cpu", "cpu", "call")] * 2, ("gl_visual", "gl_visual", "bind"), ("cpu", "gl_visual", "uniform"),
        ("cpu", "gl_visual", "buffer"), *[("gl_visual", "cpu", "read")] * 2, ("cpu", "gl_visual", "upload"),
        ("gl_visual", "cpu", "download"), ("gl_visual", "gl_visual", "copy"),
    ]  # fmt: skip


@pytest.mark.long
def test_what_is_measured_of_a_card_stands_beside_what_is_believed_and_takes_its_place(on_a_card):
    weft, found, memory = on_a_card
    measured = {each["cost"]: each["measured_s"] for each in found["costs"]}
    assert set(measured) == {"cpu_operation", "gpu_operation", "launch", "wait", "upload"}
    assert all(seconds > 0 for seconds in measured.values())
    again = ("bench", "plain.weft", "--seconds", "0", "--backends", "gl", "--size", "8x8")
    for _ in range(2):  # what is measured in no time counts for nothing
        costs = json.loads(weft(*again, "--json", **memory).stdout)["costs"]
        believed = {each["cost"]: each["believed_s"] for each in costs}
        assert believed == pytest.approx(measured, rel=1e-3)
    lines = weft(*again, **memory).stdout.splitlines()
    (at,) = (number for number, line in enumerate(lines) if "ns, as assumed" in line)
    shown = {line.split()[0]: float(line.split()[-1]) for line in (each.partition(" ")[2] for each in lines[at + 1 :])}
    assert shown == pytest.approx({name.split("_")[0]: 1e9 * s for name, s in measured.items()}, rel=1e-2)


@pytest.mark.long
@pytest.mark.usefixtures("opengl")
def test_what_a_graphics_card_does_not_take_is_said(weft):
    weft.file("asking.weft", ASKING)
    done = weft("bench", "asking.weft", "--seconds", "0", "--backends", "gl", "--size", "8x8")
    assert "asking is not measured on gl_audio: " in done.stderr


@pytest.mark.long
def test_metal_is_measured_where_it_is_and_elsewhere_a_line_says_why_not(weft, on_everything):
    (found, *_) = MetalVisual.probe()
    measured = {row["backend"] for row in json.loads(on_everything.stdout)["results"]}
    assert ("metal_visual" in measured) is found.available
    assert on_everything.stderr.count("weft: metal is left out: ") == (not found.available)
    if not found.available:
        assert found.reason in on_everything.stderr
        alone = weft("bench", "plain.weft", "--backends", "metal", code=3)
        assert alone.stderr.startswith(f"weft: metal is not available: {found.reason}")


def test_a_backend_that_is_not_there(weft):
    assert "nosuch" in weft("bench", "plain.weft", "--backends", "nosuch", code=2).stderr


def test_what_is_measured_on_another_machine_is_told(weft):
    weft.file("one.weft", "display(me@x)\n")
    given = ("bench", "one.weft", "--seconds", "0.01", "--size", "8x4", "--backends", "native", "--threads", "1")
    done = weft.broken("native", *given)
    assert "one: visual/display runs on vector, not native: " in done.stderr


def test_costs_of_statements_need_no_card(weft):
    weft.file("flat.weft", "display(0.5)\n")
    said = weft("bench", "flat.weft", "--by-statement", "--seconds", "0").stderr
    assert said == "weft: flat.weft: nothing is computed at each pixel\n"


@pytest.mark.long  # tests/runtime/inspect/test_statement_costs.py has quicker ones
def test_the_most_expensive_statements_are_named(weft):
    weft.file("clouds.weft", "clouds<v> = fbm(me@x * 4, me@y * 4, me@time)\nb = me@x * me@y\ndisplay(clouds@v, b, 0)\n")
    options = "--by-statement", "--backends", "vector", "--seconds", "0", "--size", "64x36"
    said = weft("bench", "clouds.weft", *options).stdout.splitlines()
    assert said[0].startswith("clouds.weft: a frame takes ")
    assert said[1].split()[0] == "clouds"
    assert "clouds.weft:1  fewer octaves" in said[1]
    (first, *_) = weft.json("bench", "clouds.weft", *options)["statements"]
    assert (first["name"], first["line"]) == ("clouds", 1)
    weft.file("flat.weft", "display(0.5)\n")
    assert "nothing is computed at each pixel" in weft("bench", "flat.weft", *options).stderr
