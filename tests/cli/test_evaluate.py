"""`weft eval`."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.support.films import sounding_film
from tests.support.sounds import write_wav
from weft.sources import NEVER


def values(weft, *args):
    return weft.json("eval", "rich.weft", *args)["values"]


def test_json_has_the_promised_shape(weft):
    found = weft.json("eval", "plain.weft", "a@v", "--at", "x=0.5,time=1")
    assert list(found) == ["strand", "backend", "axes", "shape", "values"]
    assert found["strand"] == "a@v"
    assert found["backend"] == "vm"
    assert found["axes"] == ["at"]
    assert found["shape"] == [1]
    assert found["values"] == pytest.approx([math.sin(1.5) + 1])


def test_for_people_a_value_a_line(weft):
    assert weft("eval", "plain.weft", "b@r").stdout == "0.5\n"
    assert weft("eval", "plain.weft", "b@r", "--at", "x=0.25", "--at", "x=1").stdout == "0.25\n1\n"
    assert weft("eval", "plain.weft", "b@g", "--grid", "2x2").stdout == "0.25 0.25\n0.75 0.75\n"


def test_of_a_bundle_all_members_are_told(weft):
    assert weft("eval", "plain.weft", "b", "--at", "y=0.25", "--at", "x=1").stdout == "b@r: 0.5 1\nb@g: 0.25 0.5\n"
    assert weft("eval", "plain.weft", "b", "--grid", "2x1").stdout == "b@r:\n0.25 0.75\nb@g:\n0.5 0.5\n"
    found = weft.json("eval", "plain.weft", "b", "--at", "y=0.25")
    assert list(found) == ["strand", "members"]
    assert found["strand"] == "b"
    assert found["members"] == [weft.json("eval", "plain.weft", name, "--at", "y=0.25") for name in ("b@r", "b@g")]


def test_a_picture_that_reads_a_sound_elsewhere_in_time(weft):
    weft.file(
        "scope.weft",
        "tone = sin(tau * phasor(110)) * 0.5\nosc<l, r> = <tone, -tone>\naudio(osc)\n"
        "trace = osc(me@time ~ me@time - (1 - me@x) * 0.02)\ndisplay(trace@l, trace@r, 0)\n",
    )
    moment = 1 + 1 / 440
    for back in (0, 0.005):
        place = f"x={1 - back / 0.02},time={moment}"
        found = [each["values"][0] for each in weft.json("eval", "scope.weft", "trace", "--at", place)["members"]]
        expected = 0.5 * math.sin(math.tau * 110 * (moment - back))
        assert found == pytest.approx([expected, -expected], abs=0.01)


def test_a_bare_instance_with_one_output(weft):
    assert weft.json("eval", "plain.weft", "a")["strand"] == "a@v"


@pytest.mark.parametrize(
    ("strand", "words"),
    [("aa@v", 'did you mean "a"?'), ("nope", "it has a, b"), ("a@w", "it has a@v"),
     ("b@rr", 'did you mean "r"?')],
)  # fmt: skip
def test_a_strand_that_is_not_there(weft, strand, words):
    done = weft("eval", "plain.weft", strand, code=1)
    assert words in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("backend", ["vm", "vector", "native", "wasm"])
def test_an_analysis_hears_what_came_before(weft, backend):
    weft.file("heard.weft", "s = sin(phasor(440) * tau) * 0.5\nlevel = rms(s)\nm = mic()@l + 0.25\n")
    found = weft.json("eval", "heard.weft", "level", "--at", "time=1", "--backend", backend)["values"]
    assert found == pytest.approx([0.5 / math.sqrt(2)], rel=0.01)
    assert weft.json("eval", "heard.weft", "m", "--backend", backend)["values"] == [0.25]


def test_the_patch_needs_no_output_statement(weft):
    weft.file("bare.weft", "a<v> = me@x + me@y\n")
    assert weft.json("eval", "bare.weft", "a", "--at", "x=1,y=2")["values"] == [3]


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("time=0.5", 30 + 1 * 100 + 8000),
        ("frame=30", 30 + 1 * 100 + 8000),
        ("abstime=0.5,px=3", 30 + 1 * 100 + 3000),
        ("beat=2", 60 + 2 * 100 + 8000),
        ("measure=1,beat=3,x=0", 210 + 3 * 100),
        ("sample=24000", 30 + 100 + 8000),
        ("me@time=0.5,me@x=0", 30 + 100),
    ],
)
def test_coordinates_determine_each_other(weft, at, expected):
    assert values(weft, "clock", "--at", at) == [expected]


def test_time_wraps_in_a_loop(weft):
    weft.file("loop.weft", "me<loop> = 60\nt<v> = me@time\nn<v> = me@abstime\nf<v> = me@absframe\n")
    assert weft.json("eval", "loop.weft", "t", "--at", "abstime=2.25")["values"] == [0.25]
    assert weft.json("eval", "loop.weft", "n", "--at", "time=0.25")["values"] == [0.25]
    assert weft.json("eval", "loop.weft", "f", "--at", "abstime=2.25")["values"] == [135]


@pytest.mark.parametrize(
    "asked",
    [
        ("a@v", "--at", "x=0.5,time=1", "--at", "x=0.25"),
        ("trail", "--grid", "4x3", "--ticks", "3"),
        ("trail", "--at", "x=0.3", "--ticks", "3"),
        ("count", "--ticks", "4"),
        ("h", "--at", "x=0.5,h@k=2,time=1", "--ticks", "5"),
        ("clock", "--at", "frame=30"),
    ],
)
@pytest.mark.usefixtures("opengl")
def test_a_graphics_card_gives_the_same(weft, asked):
    found = [weft.json("eval", "rich.weft", *asked, "--backend", name) for name in ("gl", "vm")]
    assert [each.pop("backend") for each in found] == ["gl", "vm"]
    drawn, exact = (each.pop("values") for each in found)
    assert drawn == pytest.approx(exact, rel=1e-5, abs=1e-5)
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["q", "mouse@x", "key@a"])
@pytest.mark.parametrize("value", [2.0**33, math.nan])
@pytest.mark.usefixtures("opengl")
def test_a_graphics_card_takes_inputs_beyond_their_range(weft, name, value):
    """In a performance, none is there, and programs are made for that."""
    weft.file("slid.weft", f"#slider q<v> = 0, 1, 0.5\na = noise({name} * floor(me@x * 4), me@x) + min({name}, me@x)\n")
    asked = ("eval", "slid.weft", "a", "--grid", "4x1", "--at", f"{name}={value}")
    drawn, exact = (weft.json(*asked, "--backend", backend)["values"] for backend in ("gl", "vm"))
    assert [*map(float, drawn)] == pytest.approx([*map(float, exact)], rel=1e-5, abs=1e-5, nan_ok=True)


def test_values_from_outside(weft):
    assert values(weft, "from_outside") == [0.25 * 100 + 5]
    assert values(weft, "from_outside", "--at", "s@v=0.5,mouse@x=0.3,key@a=1") == pytest.approx([54])


def test_the_axis_of_a_cache(weft):
    x = 0.5 / 16
    at = ("--at", f"h@k=0,time=2,x={x}", "--at", f"h@k=2,time=2,x={x}")
    assert values(weft, "h@v", *at, "--ticks", "5") == pytest.approx([x + 2, x + 2 - 2 / 60])
    assert values(weft, "h@v", *at, "--ticks", "1") == pytest.approx([x + 2, 0])


@pytest.mark.parametrize("ticks", [0, 1, 7])
def test_the_evaluation_is_the_tick_behind_those_that_ran(weft, ticks):
    assert values(weft, "count", "--ticks", ticks) == [ticks + 1]
    assert values(weft, "trail", "--ticks", ticks, "--at", "x=0.40625") == pytest.approx([(ticks + 1) * 0.40625])


def test_between_pixels_what_is_remembered_is_sampled(weft):
    # Trails are remembered at the centres of 16 pixels; the newest addition is exact.
    assert values(weft, "trail", "--ticks", "1", "--at", "x=0.0", "--backend", "vm") == pytest.approx([1 / 32])


def test_a_grid_evaluates_at_the_centres_of_its_pixels(weft):
    found = weft.json("eval", "rich.weft", "trail", "--grid", "4x2", "--ticks", "2")
    assert found["axes"] == ["y", "x"]
    assert found["shape"] == [2, 4]
    assert found["values"] == pytest.approx([3 * (i + 0.5) / 4 for i in range(4)] * 2)
    weft.file("width.weft", "w<v> = me@width\n")
    assert weft.json("eval", "width.weft", "w", "--grid", "2x1")["values"] == [1280, 1280]


def test_samples_are_taken_as_sound(weft):
    found = weft.json("eval", "rich.weft", "tone", "--samples", "5")
    assert found["axes"] == ["sample"]
    assert found["shape"] == [5]
    assert found["values"] == pytest.approx([0, 0.25, 0.5, 0.75, 0])
    assert values(weft, "tone", "--samples", "1", "--ticks", "3") == pytest.approx([0.75])
    weft.file("time.weft", "t<v> = me@abstime * me@rate\n")
    assert weft.json("eval", "time.weft", "t", "--samples", "3", "--at", "time=1")["values"] == pytest.approx(
        [48000, 48001, 48002]
    )


def test_more_samples_than_a_block_are_one_sound(weft):
    found = values(weft, "count", "--samples", "20000", "--backend", "vector")
    assert found == list(range(1, 20001))


def test_both_machines_agree(weft):
    exact = values(weft, "trail", "--grid", "8x8", "--ticks", "3", "--backend", "vm")
    fast = weft.json("eval", "rich.weft", "trail", "--grid", "8x8", "--ticks", "3", "--backend", "vector")
    assert fast["backend"] == "vector"
    assert fast["values"] == pytest.approx(exact, rel=1e-6)


def test_much_work_goes_to_the_fast_machine(weft):
    assert weft.json("eval", "plain.weft", "a", "--grid", "400x300")["backend"] == "vector"


def test_what_is_not_finite_is_text(weft):
    weft.file("odd.weft", "a<p, q, r> = <1 / 0, -1 / 0, 0 / 0>\n")
    assert [weft.json("eval", "odd.weft", f"a@{o}")["values"] for o in "pqr"] == [["inf"], ["-inf"], ["nan"]]


def test_pictures_are_read(weft):
    from PIL import Image

    Image.new("RGB", (2, 2), (255, 0, 51)).save(weft.folder / "two.png")
    weft.file("picture.weft", 'load("two.png")::i<r, g, b, a>\n')
    assert weft.json("eval", "picture.weft", "i@b")["values"] == pytest.approx([0.2])


def test_what_nobody_sends_is_0(weft):
    weft.file("knob.weft", "midi_cc(1)::o<v>\nmidi_note()::n<note, velocity, gate, age>\n")
    assert weft.json("eval", "knob.weft", "o@v")["values"] == [0]
    assert weft.json("eval", "knob.weft", "n@age", "--at", "time=3")["values"] == [NEVER + 3]


def test_trace_shows_every_instruction_with_the_stack(weft):
    weft.file("sum.weft", "s<v> = me@x + me@time\n")
    done = weft("eval", "sum.weft", "s", "--at", "time=2", "--trace")
    assert "LOAD_COORD abstime" in done.stdout
    assert "[0.5 2]" in done.stdout or "[2 0.5]" in done.stdout
    assert done.stdout.splitlines()[-1] == "2.5"
    traced = weft("eval", "sum.weft", "s", "--trace", "--json")
    assert traced.stdout.startswith("{")
    assert "RETURN" in traced.stderr


def test_a_loop_that_is_stopped_is_told(weft):
    weft.file("long.weft", "spindle s(n) :: v {\n  v = 0\n  for i in (1 to n * 1e9) {\n    v += 1\n  }\n}\n"
                           "a<v> = s(me@x)\n")  # fmt: skip
    done = weft("eval", "long.weft", "a")
    assert done.stdout == "4096\n"
    assert "long.weft:3:13: warning: this loop stops at its limit of steps [loop-stopped]\n" in done.stderr
    assert " 3 |   for i in (1 to n * 1e9) {\n   |             ^^^^^^^^^^^^\n" in done.stderr
    assert weft("eval", "long.weft", "a", "--at", "x=0.1", "--at", "x=0.2").stderr == done.stderr


def test_a_device_that_is_not_there(weft):
    done = weft("eval", "plain.weft", "a", "--backend", "metal:99", code=3)
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "args",
    [
        ["--at", "nosuch=1"], ["--at", "x"], ["--at", "x=one"], ["--at", "x=1,x=2"], ["--at", "width=5"],
        ["--at", "x=0.2,px=9"], ["--at", "frame=1.5"], ["--backend", "nosuch"], ["--grid", "4"], ["--grid", "0x4"],
        ["--grid", "4x4", "--samples", "3"], ["--grid", "4x4", "--at", "x=0", "--at", "x=1"],
        ["--grid", "4x4", "--at", "x=1"], ["--samples", "4", "--at", "y=1"], ["--samples", "0"], ["--ticks", "-1"],
        ["--trace", "--backend", "vector"], ["--grid", "16384x16384"],
    ],
)  # fmt: skip
def test_wrong_usage(weft, args):
    weft("eval", "plain.weft", "a", *args, code=2)


@pytest.mark.long
@pytest.mark.parametrize(
    ("broken", "options", "told"),
    [
        ("native,tiles", ("--backend", "native"), "visual/display runs on vector, not native: "),
        ("numpy", ("--backend", "vector"), "visual/display runs on vm, not vector: "),
    ],
)
def test_what_one_machine_cannot_compile_is_evaluated_by_the_next(weft, broken, options, told):
    weft.file("two.weft", "v = me@x * 3 + prev(me@x) * 0 - me@y\n")
    done = weft.broken(broken, "eval", "two.weft", "v", "--grid", "2x2", *options)
    assert done.stdout == "0.5 2\n0 1.5\n"
    assert told in done.stderr


@pytest.mark.parametrize("executor", ["vm", "vector", "native", "wasm"])
def test_a_held_value_stays_at_any_place(weft, executor):
    """Also between the pixels, where the trigger of the tick before lies between those of several pixels."""
    weft.file("held.weft", "me<width> = 7; me<height> = 3; me<fps> = 10\n"
                           "h = hold(me@time, me@x * 0.3)\n"
                           "k = hold(me@time, floor(me@time / 0.35 + me@x * 0.1))\n"
                           "m = h(me@x ~ 0.9 - me@x)\n")  # fmt: skip

    def values(strand, *args):
        return weft.json("eval", "held.weft", strand, "--backend", executor, *args)["values"]

    places = ("--at", "x=0.3,time=0.9", "--at", "x=0.77,y=0.1,time=0.9", "--ticks", "9")
    for strand in ("h", "m"):
        assert values(strand, *places) == [0, 0]
        assert values(strand, "--grid", "3x1", "--at", "time=0.9", "--ticks", "9") == [0, 0, 0]
    # What the last tick took is there at once.
    for time, held in ((0.6, 0.4), (0.7, 0.7), (0.8, 0.7)):
        assert values("k", "--at", f"x=0.3,time={time}", "--ticks", f"{time * 10:.0f}") == pytest.approx([held])


_SIZES = ("sizes@a", "sizes@b", "sizes@c", "sizes@d", "sizes@e", "counts@a", "counts@b")


def test_the_size_of_a_picture(weft):
    from PIL import Image

    Image.new("RGB", (5, 3)).save(weft.folder / "small.png")
    weft.file(
        "sized.weft",
        'load("small.png")::i<r, g, b, w, h>\n'
        'j = load("small.png")\n'
        "spindle ratio(x) :: v {\n"
        '  load("small.png")::k<r, g, b, a, w, h>\n'
        "  v = k@w / k@height * x\n"
        "}\n"
        'sizes<a, b, c, d, e> = <i@w, i@height, j@width, ratio(me@x), load("small.png")@height>\n'
        "counts<a, b> = <count(i), count(j)>\n",
    )
    found = {s: weft.json("eval", "sized.weft", s, "--at", "x=6")["values"][0] for s in _SIZES}
    assert found == dict(zip(_SIZES, (5, 3, 5, 5 / 3 * 6, 3, 3, 4), strict=True))


def test_a_member_of_a_bundle_as_a_patch_writes_it(weft):
    weft.file("bundle.weft", "b = <1, 2, me@x>\nq<u, v> = <3, 4>\n")
    found = [weft.json("eval", "bundle.weft", s, "--at", "x=5")["values"][0] for s in ("b[1]", "b@b", "q@v", "q[1]")]
    assert found == [2, 5, 4, 4]
    assert weft("eval", "bundle.weft", "b", "--at", "x=5").stdout == "b[0]: 1\nb[1]: 2\nb[2]: 5\n"
    assert "it has b[0]" in weft("eval", "bundle.weft", "b[3]", code=1).stderr


def test_a_picture_is_no_sound_by_itself(weft):
    sounding_film(weft.folder / "shown.mkv", 6)
    weft.file("shown.weft", 'load("shown.mkv")::f<r, g, b>\n')
    done = weft("eval", "shown.weft", "f@r", "--samples", "3", code=1)
    assert "as a sound, this reads the picture f@r, which is not drawn here (without --samples" in done.stderr


def test_the_length_of_a_sound_and_of_a_film(weft, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    sounding_film(weft.folder / "film.mkv", 6)
    write_wav(weft.folder / "a.wav", np.zeros(4800))
    weft.file("long.weft", 'load("film.mkv")::f<r, g, b>\nload("film.mkv")::s<l, r>\nload("a.wav")::k<l, r>\n')
    found = {s: weft.json("eval", "long.weft", s)["values"][0] for s in ("f@seconds", "s@seconds", "k@seconds")}
    assert found == pytest.approx({"f@seconds": 0.2, "s@seconds": 0.2, "k@seconds": 0.1})
    assert weft.json("eval", "long.weft", "f@width")["values"] == [32]
    assert 'did you mean "seconds"?' in weft("eval", "long.weft", "k@second", code=1).stderr


def test_a_parameter_of_one_output_needs_no_output(weft):
    weft.file("slid.weft", "#slider q<v> = 0, 1, 0.5\na = q * 2\n")
    assert weft.json("eval", "slid.weft", "a", "--at", "q=3")["values"] == [6]
    assert weft.json("eval", "slid.weft", "a", "--at", "q@v=3")["values"] == [6]


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_an_axis_is_a_number_of_ticks(weft, value):
    weft.file("kept.weft", "a<v> = me@time\ncache(a, 4)::c<v>\n")
    done = weft("eval", "kept.weft", "c", "--at", f"c@k={value}", code=2)
    assert f"c@k counts ticks, and {value} is no number" in done.stderr
