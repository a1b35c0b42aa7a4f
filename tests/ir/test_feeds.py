"""What a stream is given from outside: what is led to it, what others evaluate for it, and what cannot be had."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.exprs import Exprs, lowered
from tests.support.verify_ir import verify
from weft.codegen.kernel import Unit
from weft.contexts import AUDIO, COMPUTE, VISUAL, ContextTable
from weft.errors import Source, WeftError
from weft.ir import passes
from weft.ir.dump import to_text
from weft.ir.expr import Lowered, MalformedError, Output
from weft.names import StrandRef, is_view, view_of, viewed
from weft.runtime.compiling.stages import Build, Request, build

TRAIL = "trail<v> = prev(trail@v) * 0.9 + me@x\ndisplay(trail@v)\n"
THERE_AND_BACK = """\
a<v> = prev(a@v) * 0.9 + me@time
b<v> = prev(b@v) + a@v + me@x
c<v> = prev(c@v) + b@v(me@x ~ 0.5, me@y ~ 0.5) + {}
audio(c@v)
display(b@v)
"""


BLOCKS = ContextTable([VISUAL, AUDIO.by_blocks(), COMPUTE])


def built(text: str, contexts: ContextTable | None = None) -> Build:
    return build(Request(Source("test.weft", text), contexts or ContextTable()))


def sound(text: str, contexts: ContextTable | None = None) -> tuple[Unit, Lowered]:
    """The subgraph that is played last."""
    made = built(text, contexts)
    return [(u, ir) for u, ir in zip(made.units, made.lowered, strict=True) if u.subgraph.context == "audio"][-1]


def led(unit: Unit) -> list[str]:
    return [name for name, _ in unit.kernel.coords if "@" in name]


def refused(text: str) -> list[tuple[str, str]]:
    with pytest.raises(WeftError) as caught:
        built(text)
    return [(d.code, d.span.text if d.span else "") for d in caught.value.diagnostics]


# --- what is led ------------------------------------------------------------------------------------------------------


def test_mouse_keys_and_parameters_are_led_from_sample_to_sample() -> None:
    unit, ir = sound('#slider level<v> = 0, 1, 0.25\naudio(mouse@x * key@a + level@v + me@bpm)\n')
    assert led(unit) == ["key@a", "level@v", "mouse@x"]
    assert unit.kernel.uniforms == ("bpm",), "the tempo changes at the beginning of a block"
    assert (unit.feeds, ir.feeds) == (None, ())


def test_a_picture_has_them_once_a_frame() -> None:
    made = built("display(mouse@x)\ncompute(key@a)\n")
    assert [unit.kernel.uniforms for unit in made.units] == [("mouse@x",), ("key@a",)]
    assert [unit.feeds for unit in made.units] == [None, None]


# --- what is fed ------------------------------------------------------------------------------------------------------


def test_a_picture_is_read_at_places_that_the_frame_knows() -> None:
    unit, ir = sound(TRAIL + "audio(trail@v(me@x ~ mouse@x, me@y ~ 0.5) * mouse@y, trail@v(me@x ~ 0.25, me@y ~ 0.5))\n")
    labels = [feed.label for feed in ir.feeds]
    assert len(set(labels)) == 2, "each place is a number of its own"
    assert led(unit) == sorted([*labels, "mouse@y"])
    assert unit.feeds is not None
    assert list(unit.feeds.outputs) == labels
    assert unit.feeds.strands == (StrandRef("trail", "v"),)
    assert unit.feeds.uniforms == ("mouse@x",), "it is known as it is where the feeds are computed"
    assert (unit.kernel.strands, unit.kernel.uniforms) == ((), ())


def test_one_place_is_read_once() -> None:
    here = "trail@v(me@x ~ mouse@x, me@y ~ 0.5)"
    unit, ir = sound(TRAIL + f"audio(sin(me@time * {here}) * {here})\n")
    assert len(ir.feeds) == 1
    assert led(unit) == [ir.feeds[0].label]


def test_a_number_of_compute_is_fed() -> None:
    # As if sound did not take all numbers that are remembered.
    contexts = ContextTable([VISUAL, AUDIO, replace(COMPUTE, state_rank=-1)])
    text = "n<v> = prev(n@v) + 1\ncompute(n@v)\naudio(sin(me@time * n@v))\n"
    made = build(Request(Source("test.weft", text), contexts))
    (unit,) = (unit for unit in made.units if unit.feeds is not None)
    assert unit.subgraph.context == "audio"
    assert unit.feeds is not None
    assert (unit.feeds.strands, list(unit.feeds.outputs)) == ((StrandRef("n", "v"),), led(unit))


def test_the_feeds_are_a_unit_of_numbers() -> None:
    unit, _ = sound(TRAIL + "audio(trail@v(me@x ~ mouse@x, me@y ~ 0.5))\n")
    feeding = unit.feeding
    assert feeding is not None
    assert (feeding.subgraph.context, feeding.kernel) == ("compute", unit.feeds)
    assert (feeding.subgraph.sinks, feeding.subgraph.exposes, feeding.kernel.slots) == ((), (), ())
    other, _ = sound(TRAIL + "audio(trail@v(me@x ~ mouse@y, me@y ~ 0.5))\n")
    assert other.hash != unit.hash, "where it is read is compiled too"


# --- strands of the same stream ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["", "(me@x ~ phasor(3), me@y ~ 0.5)", "(me@x ~ me@channel, me@y ~ 0.5)"])
def test_a_picture_that_is_read_all_over_is_seen(place: str) -> None:
    unit, ir = sound(TRAIL + f"audio(trail@v{place})\n")
    view = view_of(StrandRef("trail", "v"))
    assert (unit.kernel.pictures, unit.feeds, ir.feeds) == ((view,), None, ())
    assert is_view(view)
    assert viewed(view) == ("trail", "v")


@pytest.mark.parametrize("contexts", [ContextTable(), BLOCKS], ids=["samples", "blocks"])
def test_strands_of_the_same_stream_are_read_sample_by_sample(contexts: ContextTable) -> None:
    unit, ir = sound(THERE_AND_BACK.format("a@v"), contexts)
    assert [unit.subgraph.name, led(unit)] == ["audio/audio", ["a@v", ir.feeds[0].label]]
    assert unit.feeds is not None
    assert unit.feeds.strands == (StrandRef("b", "v"),), "the picture is fed"


def test_what_is_heard_elsewhere_leaves_with_the_outputs() -> None:
    unit, ir = sound("p<v> = phasor(440)\naudio(p@v)\ndisplay(p@v(me@time ~ me@time - me@x * 0.02))\n")
    assert unit.kernel.outputs == ("audio.mono", "p@v")
    assert (unit.points, ir.exposed) == ({}, ()), "nobody reads a stream at points of its own"


# --- what cannot be had -----------------------------------------------------------------------------------------------


def test_the_time_of_a_strand_of_the_same_stream_is_not_mapped() -> None:
    assert refused(THERE_AND_BACK.format("a@v(me@time ~ me@time - 0.1)"))[0][0] == "map-reaches-state"


# --- the form ---------------------------------------------------------------------------------------------------------


def test_feeds_show_in_the_text() -> None:
    _, ir = sound(TRAIL + "audio(trail@v(me@x ~ mouse@x, me@y ~ 0.5))\n")
    verify(ir)
    text = to_text(ir, AUDIO)
    assert "given by others, once a frame:" in text
    assert f"  {ir.feeds[0].label} = %" in text


def test_only_what_comes_from_outside_is_a_coordinate_beside_the_base_ones() -> None:
    e = Exprs()
    verify(lowered(e.coord("mouse@x") + 1, context="audio"))
    with pytest.raises(MalformedError, match="not a base coordinate"):
        verify(lowered(e.coord("mouse"), context="audio"))


def test_the_passes_behind_it_change_the_feeds_too() -> None:
    e = Exprs()
    place = e.uniform("mouse@x") * (e.number(2) * 0.25)
    given = lowered(e.strand("trail@v", place, 0.5) * e.uniform("mouse@y"), context="audio")
    after = passes.run_passes(given, passes.PassContext(e.pool, AUDIO))
    verify(after)
    (feed,) = after.feeds
    assert isinstance(feed, Output)
    half = e.expr(e.uniform("mouse@x") * 0.5)
    assert feed.value.args[0] is half, "what is constant in it is folded"
    assert not [node for node in after.swept if node.op in {"strand", "uniform"}]
