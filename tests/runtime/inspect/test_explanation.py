"""Why a pixel or a sample has its value: the values are those of the picture, and the derivatives are those that the
picture shows if a number of the text is changed."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.support.parity.author import program, voice
from weft.contexts import context_table
from weft.errors import Source, WeftError
from weft.runtime.films.offline import initial_inputs
from weft.runtime.hands.clock import Moment
from weft.runtime.inspect.explanation import PlaceAndTime, WhyQuestion, explain
from weft.runtime.inspect.explanation_text import explanation_rows, rows_as_text
from weft.runtime.inspect.strands import read_patch

CONTEXTS = context_table()
SMALL = "me<width> = 64\nme<height> = 36\n"


def explained(text, x=0.3, y=0.4, seconds=0.05, name=None, ticks=None, channel=0.0):
    source = Source("generated.weft", text)
    patch = read_patch(source, CONTEXTS)
    moment = Moment(round(seconds * patch.settings["fps"]), seconds, inputs=initial_inputs(patch))
    return explain(WhyQuestion(source, CONTEXTS, PlaceAndTime(x, y, channel, moment), name, ticks), patch)


def values(found):
    return np.array([found.nodes[at].value for at in found.outputs])


def influence(found, name):
    return next(each for each in found.influences if each.name == name)


def node(found, name):
    return next(each for each in found.nodes if each.name == name and not each.place)


def named(found, at):
    return [found.nodes[each].name for each in found.nodes[at].reads]


def moved(text, span, value):
    """The text with another number at a place."""
    return f"{text[: span.start]}({value!r}){text[span.end :]}"


def differences(text, each, **at):
    """The slope that the outputs show on both sides of a number of the text."""
    distance = 1e-6 * max(1.0, abs(each.value))
    below, here, above = (
        values(explained(moved(text, each.span, each.value + shift), **at)) for shift in (-distance, 0, distance)
    )
    with np.errstate(all="ignore"):
        return (here - below) / distance, (above - here) / distance


def slopes_are_right(text, most=3, **at):
    """Compares the derivatives of the strongest numbers with differences, and says how many could be compared."""
    found, count = explained(text, **at), 0
    numbers = [each for each in found.influences if each.span is not None and each.effect == "slope"]
    for each in numbers[:most]:
        left, right = (np.nan_to_num(side, nan=1e9, posinf=1e9, neginf=-1e9) for side in differences(text, each, **at))
        # A slope that is steeper than digits can show is left out.
        smooth = np.isclose(left, right, rtol=1e-2, atol=1e-3) & (np.abs([left, each.slopes]) < 1e5).all(axis=0)
        got, expected = np.array(each.slopes)[smooth], (left[smooth] + right[smooth]) / 2
        if not each.is_partial:
            np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-3, err_msg=f"{each.span}\n{text}")
            count += int(smooth.any())
    return count


def generated(write, seed, **at):
    """A generated program that can be explained; None if it is refused, or reads files."""
    text = write(seed)
    if "load(" in text:
        return None
    try:
        explained(text, **at)
    except WeftError:
        return None
    return text


def tried(write, seeds, **at):
    texts = [text for seed in seeds if (text := generated(write, seed, **at)) is not None]
    return sum(slopes_are_right(text, **at) for text in texts)


def test_derivatives_of_generated_pictures_are_those_of_differences():
    assert tried(program, range(500, 505)) > 3


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 100, 20))
def test_derivatives_of_many_generated_pictures(first):
    assert tried(program, range(first, first + 20)) > 10


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 20, 5))
def test_derivatives_of_generated_sounds(first):
    assert tried(voice, range(first, first + 5), seconds=0.001) > 2


RING = SMALL + """\
#slider speed<v> = 0, 4, 1 "speed"
spindle ring(r, w) :: v {
  d = hypot(me@x - 0.5, me@y - 0.5)
  out v = smoothstep(w, 0, abs(d - r))
}
glow<v> = ring(0.3, 0.2) ^ 2
trail<v> = max(glow@v * sin(me@time * speed@v), prev(trail@v) * 0.95)
display(trail@v, if me@x < 0.5 then glow@v else 0.7, glow(me@x ~ me@x + 0.1))
"""


def test_the_tree_has_names_and_calls_with_their_values():
    found = explained(RING)
    red = found.outputs[0]
    assert named(found, red) == ["trail"]
    assert node(found, "trail").value == found.nodes[red].value
    glow = node(found, "glow")
    distance = math.hypot(found.place.x - 0.5, found.place.y - 0.5)
    edge = min(max((abs(distance - 0.3) - 0.2) / -0.2, 0), 1)
    assert glow.value == pytest.approx((edge * edge * (3 - 2 * edge)) ** 2)
    assert glow.span.source.position(glow.span.start)[0] == 8
    assert pytest.approx(distance) in [each.value for each in found.nodes if each.name == "d"]
    assert {each.name for each in found.nodes} >= {"ring(…)", "abs(…)", "prev(…)", "speed"}


def test_the_side_that_is_not_taken_is_left_out():
    found = explained(RING)
    choice = node(found, "if")
    assert choice.taken == 0
    assert [found.nodes[at].name for at in choice.reads] == ["glow"]
    other = node(explained(RING, x=0.8), "if")
    assert (other.taken, other.reads, other.value) == (1, (), 0.7)
    assert influence(explained(RING, x=0.8), "0.7").slopes == (0, 1, 0)


def test_what_is_read_elsewhere_says_where():
    found = explained(RING)
    (again,) = (found.nodes[at] for at in found.nodes[found.outputs[2]].reads)
    assert again.name == "glow"
    assert dict(again.place) == {"x": pytest.approx(found.place.x + 0.1)}


def test_a_number_acts_by_a_slope_in_steps_or_not_at_all():
    found = explained(RING)
    assert influence(found, "0.5").effect == "slope"
    assert {each.effect for each in found.influences if each.name == "0.7"} == {"none"}
    assert [each.effect for each in found.influences if each.span and each.span.text == "0.5"].count("step") == 1
    assert influence(found, "speed@v").effect == "slope"
    loop = "spindle many(n) :: v { out v = 0; for i in (1 to n) { v += me@x } }\ndisplay(many(floor(me@y * 9)))"
    assert influence(explained(loop), "9").effect == "step"
    assert influence(explained("display(delay(me@x, 2, 5))"), "5").effect == "decides"


def test_memory_is_computed_from_the_start_and_carries_derivatives():
    text = SMALL + "level<v> = prev(level@v) * 0.5 + 0.25\ndisplay(level@v)"
    found = explained(text, seconds=2 / 60)
    assert (found.ticks, found.ticks_before) == (2, 2)
    assert values(found) == pytest.approx([0.25 * (1 + 0.5 + 0.25)])
    assert influence(found, "0.5").slopes == (pytest.approx(0.25 * (1 + 2 * 0.5)),)
    cut = explained(text, seconds=2 / 60, ticks=1)
    assert values(cut) == pytest.approx([0.25 * 1.5])
    assert "memory begins 1 frame before" in " ".join(cut.notes)


def test_memory_that_is_read_elsewhere_is_told_as_unknown():
    text = SMALL + "flow<v> = prev(flow@v)(me@x ~ me@x + 0.05) * 0.9 + me@y * 0.1\ndisplay(flow@v * 0.5)"
    found = explained(text, seconds=4 / 60)
    assert any("not followed" in note for note in found.notes)
    assert influence(found, "0.05").effect in ("slope", "unknown")
    assert influence(found, "0.5").effect == "slope"
    assert influence(found, "0.1").is_partial or influence(found, "0.1").effect == "unknown"
    y = found.place.y
    assert values(found) == pytest.approx([0.5 * y * (1 - 0.9**5)], abs=1e-5)


@pytest.mark.long
def test_images_that_cannot_be_left_out_are_drawn_first():
    blur = "spindle blur(s) :: v { out v = 0; for i in (0 to 15) { v += s(me@x ~ me@x + i * 0.01) / 16 } }\n"
    images = "a = image(me@x ^ 2)\nb = image(blur(a))\nc = image(blur(b))\nd = image(blur(c))\n"
    text = SMALL + blur + images + "display(blur(d) * 2)"
    found = explained(text)
    mean, variance = 4 * 0.075, 4 * 0.01**2 * (16**2 - 1) / 12
    assert values(found) == pytest.approx([2 * ((found.place.x + mean) ** 2 + variance)], abs=1e-3)
    assert influence(found, "16").effect == "slope"
    assert [each.effect for each in found.influences if each.span and each.span.text == "2"] == ["slope", "unknown"]


def test_a_sample_of_a_sound_from_the_start():
    text = "low<v> = prev(low@v) * 0.9 + sin(phasor(330) * tau) * 0.1\naudio(low@v, low@v * 0.5)\ndisplay(me@x)"
    found = explained(text, seconds=0.01, name="audio")
    assert found.context == "audio"
    assert found.ticks == 480
    expected = 0.0
    for sample in range(481):
        expected = expected * 0.9 + math.sin(math.tau * 330 * sample / 48000) * 0.1
    assert values(found) == pytest.approx([expected, expected / 2])
    assert slopes_are_right(text, seconds=0.002, name="audio") >= 2


def test_a_sound_much_later_is_played_before_it_is_followed():
    text = "audio(phasor(100))"
    found = explained(text, seconds=3.0025, name="audio")
    assert values(found) == pytest.approx([0.25], abs=1e-6)
    assert found.followed < found.ticks == found.ticks_before == 144_120
    assert "followed over the last" in " ".join(found.notes)


def test_what_another_context_computes_is_told():
    text = "beat<v> = phasor(2)\naudio(beat@v)\ndisplay(beat(me@time ~ me@time - me@x * 0.1)@v * 0.5)"
    found = explained(text, seconds=0.2)
    assert any("beat@v is computed elsewhere" in note for note in found.notes)
    assert influence(found, "0.1").effect == "unknown"
    assert influence(found, "0.5").effect == "slope"


def test_a_sound_that_reads_what_a_picture_remembers_is_not_drawn():
    text = "trail<v> = max(prev(trail@v)(me@x ~ me@x + 0.1), me@x)\ndisplay(trail@v)\naudio(trail@v)\n"
    with pytest.raises(WeftError, match="reads what a picture remembers"):
        explained(text, name="audio")


def test_a_camera_is_not_opened():
    assert any("camera(0) is not opened here" in note for note in explained("camera(0)::c<r>\ndisplay(c@r)").notes)


def test_numbers_and_lamps_have_values_too():
    text = "level<v> = prev(level@v) + 0.5\ncompute(level@v, twice: level@v * 2)\n"
    text += "lights(universe: 1, at: 7, lamp: level@v)"
    found = explained(text, seconds=2 / 60, name="compute")
    assert values(found) == pytest.approx([1.5, 3])
    assert "channel" not in rows_as_text(explanation_rows(found)).splitlines()[0]
    assert values(explained(text, name="lights"))[-1] == 2


def test_a_name_chooses_a_statement_or_a_strand():
    text = 'a<v> = me@x\ndisplay(a@v)\ndisplay(a@v * 0.5, to: "wall")\naudio(0.25)\n'
    assert values(explained(text)) == pytest.approx([0.3])
    for name, expected in (("wall", 0.15), ("display:wall", 0.15), ("3", 0.15), ("play", 0.25), ("a@v", 0.3)):
        assert values(explained(text, name=name)) == pytest.approx([expected]), name
    with pytest.raises(WeftError, match='no output statement "hall"'):
        explained(text, name="hall")


def test_for_people_it_fits_a_narrow_terminal():
    for found in (explained(RING), explained(RING, x=0.8, y=0.9, seconds=0.0)):
        text = rows_as_text(explanation_rows(found, 72))
        assert max(map(len, text.splitlines())) <= 72
        assert "glow" in text
    assert "--depth" in rows_as_text(explanation_rows(explained(RING), 72, depth=1))
    assert "as above" in rows_as_text(explanation_rows(explained(RING), 72))


def test_derivatives_by_the_place():
    found = explained(SMALL + "display(me@x * 3 + me@y * me@time)", seconds=0.5)
    assert found.slopes["x"] == (3,)
    assert found.slopes["y"] == (0.5,)
    assert found.slopes["abstime"] == (pytest.approx(found.place.y),)


def test_what_a_stranger_names_cannot_move_the_cursor():
    found = replace(explained("display(me@x)"), sink="\x1b[2J", notes=("\x1b[2J",))
    assert "\x1b" not in rows_as_text(explanation_rows(found))
