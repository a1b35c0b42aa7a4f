"""Axes of caches and analyses, and base coordinates, in strands that are read across subgraphs: what is read there is
what it would be without another subgraph, on every machine, or it is an error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.backends.test_reads import SIZE, card, device, embedded_graphics, graphics, nvidia, opencl, shown_by, wgpu
from tests.support.choices import on_processor
from tests.support.together import all_but
from tests.support.tolerances import OFF_SHARE
from weft.backends.base import Env
from weft.backends.card import CardBackend
from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.errors import Diagnostic, Source, WeftError
from weft.names import StrandRef
from weft.runtime.compiling.kept import KeptBuild
from weft.runtime.compiling.stages import Build, Request, build
from weft.runtime.films.offline import Offline
from weft.runtime.program.coordinator import TickResult
from weft.runtime.program.program import ProgramLoader

__all__ = ["card", "device", "embedded_graphics", "graphics", "nvidia", "opencl", "wgpu"]

PROCESSORS = ("vm", "vector", "native")

NUMBER = "base<v> = me@absframe\ncache(base, 5)::cach<v>\n"
PLACE = "base<v> = me@absframe + me@x * 3\ncache(base, 5)::cach<v>\n"
PAIR = "base<a, b> = <me@absframe, me@absframe * 2 + me@y>\ncache(base, 5)::cach<a, b>\n"
TWO = f"{PLACE}other<v> = me@absframe * me@absframe + me@x\ncache(other, 4)::more<v>\n"
MADE = f"{TWO}both<v> = prev(cach@v) * 0.5 + cach@v * 100 + more@v\n"
CHANNEL = f"{PLACE}w<v> = prev(w@v) * 0.5 + cach@v * (1 + me@channel) + me@y\n"
OF_A_CACHE = f"{PLACE}cache(cach, 3)::again<v>\n"

# What a picture shows, so that it keeps what it caches; and what is read of that elsewhere.
READ = {
    "a number": (NUMBER, "cach@v", "cach@v(cach@k ~ 3)(me@x ~ 0.5, me@y ~ 0.5)"),
    "between ticks": (NUMBER, "cach@v", "cach@v(cach@k ~ 2.25)"),
    "a varying axis": (NUMBER, "cach@v", "cach@v(cach@k ~ me@absframe % 3)"),
    "an image": (PLACE, "cach@v", "cach@v(cach@k ~ 3)"),
    "a bundle": (PAIR, "sum(cach)", "sum(cach(cach@k ~ 2))"),
    "a member": (PAIR, "cach@b", "cach@b(cach@k ~ 2) + cach@a(cach@k ~ 1)"),
    "two caches": (TWO, "cach@v + more@v", "(cach@v * 100 + more@v)(cach@k ~ 3, more@k ~ 1)"),
    "one of two": (MADE, "both@v", "both@v(more@k ~ 2) + both@v(cach@k ~ 1) * 1000 + both@v"),
    "one after the other": (MADE, "both@v", "both@v(more@k ~ cach@k + 1)(cach@k ~ 2)"),
    "made of two": (MADE, "both@v", "both@v(cach@k ~ 3, more@k ~ 2.5)"),
    "a cache of a cache": (OF_A_CACHE, "again@v", "again@v(again@k ~ 1, cach@k ~ 2) + again@v(cach@k ~ 3) * 100"),
    "in a loop": (
        f"{PLACE}spindle sum(n) :: o {{ o = 0; for i in (1 to n) {{ o += cach@v(cach@k ~ i) }} }}\n",
        "cach@v", "sum(mouse@x)",
    ),
    "through a strand": (f"{NUMBER}u = cach@v * 2\n", "u", "u(cach@k ~ 1)"),
    "an axis of none": (f"{PLACE}t<v> = prev(t@v) * 0.5 + me@x\n", "t@v + cach@v", "t@v(cach@k ~ 3)"),
    "by its position": (PLACE, "cach@v", "cach@v(2)"),
    "a channel": (CHANNEL, "w@v", "w@v(me@channel ~ 1)"),
    "a varying channel": (CHANNEL, "w@v", "w@v(me@channel ~ me@absframe % 3) + w@v * 1000"),
    "a channel and an axis": (CHANNEL, "w@v", "w@v(me@channel ~ 2, cach@k ~ 1) + w@v(cach@k ~ 2) * 1000"),
    "a channel through a strand": (f"{CHANNEL}u = w@v * 2\n", "u", "u(me@channel ~ 1)"),
}  # fmt: skip

WINDOWS = {
    "by column": (TWO, "cach@v(cach@k ~ me@x * 4) / 30"),
    "at every pixel": (TWO, "cach@v(cach@k ~ me@x * me@y * 4) / 30"),
    "two axes": (TWO, "(cach@v + more@v)(cach@k ~ me@x * 4, more@k ~ me@y * 3) / 90"),
    "at another place": (PLACE, "cach@v(cach@k ~ me@y * 4, me@x ~ 1 - me@x) / 30"),
    "the same everywhere": (PLACE, "cach@v(cach@k ~ 3) / 30"),
    "a number": (NUMBER, "cach@v(cach@k ~ me@x * 4) / 30"),
    "a bundle": (PAIR, "(cach@a * me@x + cach@b)(cach@k ~ me@x * 4) / 60"),
    "another channel": (CHANNEL, "w@v(me@channel ~ 2) / 90"),
    "channels by column": (CHANNEL, "w@v(me@channel ~ me@x * 3, cach@k ~ me@y * 2) / 90"),
    "and here": (TWO, "(cach@v - cach@v(cach@k ~ me@x * 4)) / 9"),
}

TICKS = 8


def built(text: str) -> Build:
    return build(Request(Source("p.weft", text), load_registry().contexts, SIZE))


def ran(made: Build, visual: str, compute: str = "vector") -> Iterator[list[TickResult]]:
    """The results of some ticks."""
    choices = choose(load_registry(), ["visual", "compute"], f"visual={visual},compute={compute}")
    runner = ProgramLoader(choices).prepare(made.compiled, (31, 17)).runner
    for number in range(TICKS):
        yield runner.run(Env(31, 17, number, number / 60, 1 / 60, {"mouse@x": float(number % 4)}))


def numbers_of(text: str, visual: str, compute: str = "vector") -> list[float]:
    """What `compute` gives, tick by tick."""
    found = ran(built(text), visual, compute)
    return [float(each.array.reshape(-1)[0]) for tick in found for each in tick if each.context == "compute"]


def picture_of(text: str, visual: str, target: str) -> NDArray[Any]:
    """The last picture of a window."""
    last = [*ran(built(text), visual)][-1]
    (found,) = (each.array for each in last if each.target == target)
    return found[..., :3].astype(int)


def test_the_frame_three_ticks_ago() -> None:
    text = f"{NUMBER}display(cach@v / 100)\ncompute(cach@v(cach@k ~ 3)(me@x ~ 0.5, me@y ~ 0.5))\n"
    assert numbers_of(text, "vm", "vm") == [0, 0, 0, 0, 1, 2, 3, 4]


@pytest.mark.parametrize("processor", PROCESSORS)
def test_a_place_and_an_axis_at_once(processor: str) -> None:
    text = f"{PLACE}display(cach@v / 100)\ncompute(cach@v(cach@k ~ 3, me@x ~ 0.25))\n"
    assert numbers_of(text, processor, processor) == [0, 0, 0, 0.75, 1.75, 2.75, 3.75, 4.75]


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize(("head", "shown", "read"), all_but(4, READ.values()), ids=READ)
def test_a_number_is_what_it_is_without_a_picture(head: str, shown: str, read: str, processor: str) -> None:
    expected = numbers_of(f"{head}compute({read})\n", "vm", "vm")
    assert len(set(expected)) > (2 if "t@v" not in read else 0)
    found = numbers_of(f"{head}display({shown} / 100)\ncompute({read})\n", processor, processor)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize(("head", "shown", "read"), all_but(4, READ.values()), ids=READ)
def test_a_number_of_a_card_is_as_well(head: str, shown: str, read: str, card: type[CardBackend]) -> None:
    expected = numbers_of(f"{head}compute({read})\n", "vm", "vm")
    made = f"{head}display({shown} / 100)\ncompute({read})\n"
    np.testing.assert_allclose(numbers_of(made, card.name), expected, rtol=1e-5)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize(("head", "shown"), all_but(2, WINDOWS.values()), ids=WINDOWS)
def test_a_second_window_shows_what_it_would_alone(head: str, shown: str, processor: str) -> None:
    expected = picture_of(f"{head}display({shown})\n", "vm", "")
    assert expected.std() > 1
    found = picture_of(f'{head}display({shown})\ndisplay({shown}, to: "b")\n', processor, "b")
    assert np.abs(found - expected).max() <= 1


@pytest.mark.parametrize(("head", "shown"), all_but(2, WINDOWS.values()), ids=WINDOWS)
def test_a_second_window_of_a_card_does_as_well(head: str, shown: str, card: type[CardBackend]) -> None:
    expected = picture_of(f"{head}display({shown})\n", "vm", "")
    made = built(f'{head}display(cach@{"a" if head is PAIR else "v"} / 90)\ndisplay({shown}, to: "b")\n')
    assert all(card().unsuitable(unit) is None for unit in made.units if unit.subgraph.context == "visual")
    text = f'{head}display({shown})\ndisplay({shown}, to: "b")\n'
    found = picture_of(text, card.name, "b")
    assert (np.abs(found - expected) > 1).mean() <= OFF_SHARE


# --- sounds, and what cannot be read ---------------------------------------------------------------------------------


def heard(text: str) -> list[float]:
    """The samples with which frames begin, on the reference."""
    made = built(f"me<rate> = 2000\nme<fps> = 50\n{text}")
    return [float(each) for each in np.concatenate([*Offline(made, on_processor("vm")).samples(0, 0.19)])[::40, 0]]


def test_a_sound_hears_the_frame_three_ticks_ago() -> None:
    place = "me@x ~ 0.5, me@y ~ 0.5"
    head = f"{PLACE}display(cach@v / 100)\naudio"
    now, before = (heard(f"{head}(cach@v(cach@k ~ {k}, {place}) / 100)\n") for k in (0, 3))
    assert before[1:] == pytest.approx([0, 0, 0, *now[1:-3]])
    # What leads it may decide which frame.
    assert heard(f"{head}(cach@v(cach@k ~ mouse@down + 3, {place}) / 100)\n") == pytest.approx(before)


def test_numbers_read_what_numbers_keep() -> None:
    made = built(f"{NUMBER}compute(cach@v)\nlights(cach@v(cach@k ~ 2), cach@v(cach@k ~ me@time * 60))\n")
    runner = ProgramLoader(on_processor("vm")).prepare(made.compiled, (31, 17)).runner
    ticks = [runner.run(Env(31, 17, number, number / 60, 1 / 60)) for number in range(TICKS)]
    found = np.array([each.array.reshape(-1) for tick in ticks for each in tick if each.context == "lights"])
    np.testing.assert_allclose(found[:, 0], [0, 0, 0, 1, 2, 3, 4, 5])
    np.testing.assert_allclose(found[:, 1], [0, 0, 0, 0, 0, 1, 2, 3], atol=1e-6)


def test_a_sound_hears_a_channel_of_a_picture() -> None:
    head = f"{CHANNEL}display(w@v / 100)\naudio"
    first, second, moved = (
        heard(f"{head}(w@v(me@channel ~ {channel}, me@x ~ 0.5, me@y ~ 0.5) / 100)\n")
        for channel in (0, 1, "mouse@down + 1")
    )
    assert second == pytest.approx([each + (number + 0.5) / 100 for number, each in enumerate(first)], abs=0.02)
    assert second[2] > first[2] + 0.01
    assert moved == pytest.approx(second)


BASES = "t<v> = prev(t@v) * 0.5 + me@x + me@channel * 10 + me@y * 100\n"
PLACES = {
    "here": "t@v",
    "at x": "t@v(me@x ~ 0.25)",
    "at a channel": "t@v(me@channel ~ 1)",
    "at three": "t@v(me@x ~ me@absframe / 10, me@channel ~ 1, me@y ~ 0)",
    "at a pixel": "t@v(me@px ~ 3)",
    "through a strand": "u(me@x ~ 0.25)",
}


@pytest.mark.parametrize("processor", PROCESSORS)
def test_lamps_read_numbers_at_other_places(processor: str) -> None:
    head, values = f"{BASES}u = t@v * 2\n", ", ".join(PLACES.values())
    runner = ProgramLoader(on_processor(processor)).prepare(
        built(f"{head}compute({values})\nlights({values})\n").compiled, (31, 17)
    ).runner  # fmt: skip
    for number in range(TICKS):
        found = {each.context: each.array for each in runner.run(Env(31, 17, number, number / 60, 1 / 60))}
        assert len(set(found["compute"].reshape(-1).tolist())) == len(PLACES)
        np.testing.assert_allclose(found["lights"].reshape(-1), found["compute"].reshape(-1), rtol=1e-6)


SOUND_OF = "base<v> = me@abssample\ncache(base, 9)::cach<v>\naudio(cach@v * 0)\n"
PLAYED = {
    "ticks ago": ("cach@v - cach@v(cach@k ~ 4)", 0.5),
    "between ticks": ("cach@v - cach@v(cach@k ~ 2.5)", 2.5 / 8),
    "more than there are": ("cach@v - cach@v(cach@k ~ 99)", 1),
    "fewer than none": ("cach@v - cach@v(cach@k ~ -3) + 4", 0.5),
    "by column": ("cach@v - cach@v(cach@k ~ me@px * 8 / 31)", np.arange(31) / 31),
    "by its position": ("cach@v - cach@v(me@px * 8 / 31)", np.arange(31) / 31),
    "earlier": ("cach@v - cach@v(cach@k ~ 2, me@time ~ me@time - 2 / me@rate)", 0.5),
    "through a strand": ("u - u(cach@k ~ 4)", 0.5),
}


@pytest.mark.parametrize(("shown", "gray"), PLAYED.values(), ids=PLAYED)
def test_a_picture_reads_what_a_sound_caches(shown: str, gray: Any) -> None:
    made = built(f"{SOUND_OF}u<v> = cach@v + 1\ndisplay(({shown}) / 8)\n")
    for processor in PROCESSORS:
        found = Offline(made, on_processor(processor)).at(0.1)[..., 0] / 255
        np.testing.assert_allclose(found, np.broadcast_to(gray, found.shape), atol=0.003)


def test_a_picture_of_a_card_does_as_well(card: type[CardBackend]) -> None:
    for shown, gray in PLAYED.values():
        made = built(f"{SOUND_OF}u<v> = cach@v + 1\ndisplay(({shown}) / 8)\n")
        found = shown_by(made, card.name).at(0.1)[..., 0] / 255
        np.testing.assert_allclose(found, np.broadcast_to(gray, found.shape), atol=0.003)


PICTURE_OF = f"{PLACE}display(cach@v / 100)\n"
REFUSED = {
    "more than is kept of a sound": (
        f"{SOUND_OF.replace('9', '100000')}display(cach@v(cach@k ~ 2))", "cach@v", "cache(…, 65536)"
    ),
    "another frame for each sample": (
        f"{PICTURE_OF}audio(cach@v(cach@k ~ me@time % 3, me@x ~ 0.5, me@y ~ 0.5))", "cach@v", "(me@x ~ 0.5",
    ),
    "another place for each sample": (f"{PICTURE_OF}audio(cach@v(cach@k ~ 2))", "cach@v", "(me@x ~ 0.5"),
}  # fmt: skip


def refused_at(text: str, place: str) -> Diagnostic:
    """The error of a text, which is at this place of it."""
    with pytest.raises(WeftError) as refused:
        built(text)
    (found,) = refused.value.diagnostics
    assert found.span is not None
    assert found.span.text == place
    return found


@pytest.mark.parametrize(("text", "place", "hint"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_read_is_an_error(text: str, place: str, hint: str) -> None:
    found = refused_at(text, place)
    assert found.code == "cannot-read-across"
    assert "cach@k" in found.message
    assert hint in (found.hint or "")


TURN = "s<v> = phasor(2) * (me@x + me@channel)\naudio(s@v)\n"
HEARD = "h<v> = mic()@l * me@y\naudio(h@v)\n"
PLAYED_SUM = f"{SOUND_OF}s<v> = prev(s@v) + cach@v\naudio(s@v)\nt<v> = prev(t@v) + me@x + s@v\n"
CHANNELS = f"{CHANNEL}display(w@v / 100)\n"
LOST = {
    "the place of a picture": (f"{TURN}display(s@v)", "s@v", "me@x", "p = phasor(1)"),
    "a place": (f"{TURN}display(s@v(me@x ~ 0.25))", "s@v", "me@x", "p = phasor(1)"),
    "a place in a number": (f"{TURN}compute(s@v, s@v(me@x ~ 0.25))", "s@v", "me@x", "p = phasor(1)"),
    "a place, earlier": (f"{TURN}compute(s@v(me@x ~ 0.25, me@time ~ me@time - 1))", "s@v", "me@x", "p = phasor(1)"),
    "a pixel": (f"{TURN}display(s@v(me@px ~ 3, me@time ~ me@time - me@x))", "s@v", "me@x", "p = phasor(1)"),
    "a channel of a sound": (f"{TURN}compute(s@v(me@channel ~ 1))", "s@v", "me@channel", "p = phasor(1)"),
    "through a strand": (f"{TURN}u = s@v * 2\ndisplay(u)", "s@v", "me@x", "p = phasor(1)"),
    "of what is heard": (f"{HEARD}display(h@v)", "h@v", "me@y", "mic()::m<l>"),
    "of a picture of that": (
        f"{TURN}t<v> = prev(t@v) * 0.5 + me@x + s@v(me@x ~ 0.1)\ndisplay(t@v)", "s@v", "me@x", "p = phasor(1)",
    ),
    "the channel of each sound": (
        f"{CHANNELS}audio(w@v(me@x ~ 0.5, me@y ~ 0.5))", "w@v", "me@channel", "(me@channel ~ 0)",
    ),
    "what a sound caches of a cache": (
        f"{SOUND_OF}cache(cach, 9)::again<v>\naudio(again@v * 0)\ndisplay(again@v(again@k ~ 2, cach@k ~ 1))", "again@v",
        "cach@k", "map cach@k where again@v",
    ),
    "what a sound makes of that": (
        f"{NUMBER}t<v> = prev(t@v) * 0.5 + cach@v\naudio(t@v)\ndisplay(t@v(cach@k ~ 2))", "t@v",
        "cach@k", "map cach@k where t@v",
    ),
    "what is computed along an axis": (
        f"{PLAYED_SUM}display(t@v + t@v(cach@k ~ 3))",
        "s@v", "cach@k", "map cach@k where s@v",
    ),
    "what is computed along an axis elsewhere": (
        f"{PLAYED_SUM}display(t@v)\ncompute(t@v(cach@k ~ 3))",
        "t@v", "cach@k", "map cach@k where t@v",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "place", "coordinate", "hint"), LOST.values(), ids=LOST)
def test_a_coordinate_that_is_lost_is_an_error(text: str, place: str, coordinate: str, hint: str) -> None:
    found = refused_at(text, place)
    assert found.code == "lost-coordinate"
    assert coordinate in found.message
    assert hint in (found.hint or "")


FOUND = {
    "a microphone": "h<v> = mic()@l * 2\naudio(h@v)\ndisplay(h@v)\ncompute(h@v(me@x ~ 0.2))",
    "a name of its own": "p = phasor(2)\ns = p * (me@x + me@channel)\naudio(s)\ndisplay(s)\ncompute(s(me@x ~ 0.25))",
    "what was played, by the time": f"{TURN}display(s@v(me@time ~ me@time - me@x * 0.02))",
    "a number": f"{TURN}compute(s@v)",
    "another coordinate": "s<v> = phasor(2) * me@x\naudio(s@v)\ncompute(s@v(me@y ~ 0.2, me@channel ~ 1))",
    "a place that is mapped": "s<v> = phasor(2) * (me@x + me@y)(me@x ~ 0.5, me@y ~ me@time)\naudio(s@v)\ndisplay(s@v)",
    "the past of something else": f"{PLAYED_SUM}display(t@v)\ncompute(t@v + cach@v(cach@k ~ 3))",
    "what a picture makes of a sound": (
        f"{TURN}t<v> = prev(t@v) * 0.5 + me@x + s@v(me@time ~ me@time - 1)\ndisplay(t@v)\n"
        "compute(t@v(me@x ~ 0.2), s@v(me@time ~ me@time - me@x, me@channel ~ me@channel))\n"
        "audio(t@v(me@x ~ 0.5, me@y ~ 0.5, me@channel ~ 0))"
    ),
    "the channel that a sound maps": f"{CHANNELS}audio(w@v(me@x ~ 0.5, me@y ~ 0.5, me@channel ~ 0))",
}


@pytest.mark.parametrize("text", FOUND.values(), ids=FOUND)
def test_what_depends_on_no_lost_coordinate_is_read(text: str) -> None:
    assert built(text).units


def test_what_a_strand_depends_on_may_change_with_the_next_text() -> None:
    kept, contexts = KeptBuild(), load_registry().contexts
    before = f"{TURN.replace('me@channel', '2')}display(s@v)\n"
    for coordinate in ("1", "me@x", "me@abstime", "me@y"):
        request = Request(Source("p.weft", before.replace("me@x", coordinate)), contexts, SIZE)
        if coordinate in ("1", "me@abstime"):
            assert build(request, kept=kept).units
        else:
            with pytest.raises(WeftError) as refused:
                build(request, kept=kept)
            assert [each.code for each in refused.value.diagnostics] == ["lost-coordinate"]


def test_memory_of_a_cache_is_read_wherever_the_cache_is() -> None:
    """An axis has no effect on what memory keeps."""
    text = f"{PLACE}t<v> = integrate(cach@v(me@x ~ 0.5, me@y ~ 0.5))\naudio(t@v * 0.001)\n"
    picture = "display((cach@v + t@v)(cach@k ~ me@x * 4) / 90)\n"
    (unit,) = (each for each in built(text + picture).units if each.subgraph.context == "audio")
    assert unit.subgraph.exposes == (StrandRef("t", "v"),)


# --- what is exposed --------------------------------------------------------------------------------------------------


def exposed(text: str) -> list[StrandRef]:
    return [ref for unit in built(text).units for ref in unit.points]


def test_only_what_is_read_along_an_axis_is_computed_along_it() -> None:
    here = f"{TWO}display(cach@v(cach@k ~ 3) + more@v)\n"
    assert exposed(here) == []
    assert exposed(f"{here}compute(cach@v)\n") == [StrandRef("cach", "v")]
    both = [StrandRef("cach", "v"), StrandRef("cach", "v").along([StrandRef("cach", "k")])]
    assert exposed(f"{here}compute(cach@v(cach@k ~ 3))\n") == both
    assert exposed(f"{here}compute(cach@v(more@k ~ 3))\n") == both[:1]


def test_an_analysis_has_an_axis_as_well() -> None:
    text = (
        "fft(sin(me@time * 4000), bands: 8)::f<band>\nw<v> = prev(w@v) * 0.5 + f@band + me@x\ndisplay(w@v)\n"
        "compute(w@v(f@k ~ 3))\n"
    )
    assert exposed(text) == [StrandRef("w", "v"), StrandRef("w", "v").along([StrandRef("f", "k")])]
    (kernel,) = (unit.kernel for unit in built(text).units if unit.subgraph.context == "compute")
    assert kernel.strands == (StrandRef("w", "v").along([StrandRef("f", "k")]),)
