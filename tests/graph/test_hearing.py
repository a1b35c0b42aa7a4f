"""Analyses in the language: what ties to the sound, and the messages about what cannot be analysed."""

from __future__ import annotations

import pytest

from weft.contexts import ContextTable
from weft.errors import Source, WeftError
from weft.runtime.compiling.stages import Build, Request, build


def built(text: str) -> Build:
    return build(Request(Source("patch.weft", text), ContextTable()))


def refused(text: str) -> tuple[str, str]:
    """The code of the first error, and the text that it underlines."""
    with pytest.raises(WeftError) as failure:
        built(text)
    found = failure.value.diagnostics[0]
    assert found.span is not None
    return found.code, found.span.text


def contexts_of(text: str, strand: str) -> tuple[str, ...]:
    strands = {str(ref): found for ref, found in built(text).graph.strands().items()}
    return strands[strand].contexts


def test_what_is_analysed_is_a_sound_and_what_reads_it_is_not() -> None:
    text = "s = sin(me@time * 99)\nf = fft(s)\ndisplay(s, f@low, f@band(me@x * 31))\n"
    assert contexts_of(text, "s@val") == ("audio", "visual")
    assert contexts_of(text, "f@low") == ("visual",)
    assert contexts_of(text, "(s.val)@heard") == ("audio",)


def test_a_memory_that_is_analysed_belongs_to_the_sound() -> None:
    assert contexts_of("s = phasor(220)\ndisplay(s, rms(s), 0)\n", "s@val") == ("audio",)


def test_a_coordinate_can_be_analysed() -> None:
    assert len(built("display(rms(me@x), rms(mouse@x), 0)\n").compiled.heard) == 2


def test_analyses_that_nothing_reads_are_not_computed() -> None:
    assert built("s = phasor(220)\nl = rms(s)\ndisplay(me@x)\n").compiled.heard == ()


@pytest.mark.parametrize(("call", "code", "text"), [
    ("fft(s, bands: 1)", "argument-out-of-range", "1"),
    ("fft(s, bands: 65)", "argument-out-of-range", "65"),
    ("fft(s, bands: 8.5)", "argument-out-of-range", "8.5"),
    ("fft(s, bands: me@time)", "needs-a-constant", "me@time"),
    ("fft()", "missing-argument", "fft()"),
    ('rms("kick.wav")', "needs-a-strand", '"kick.wav"'),
    ("rms(s, 3)", "too-many-arguments", "3"),
    ("rms(<s, s>)", "several-strands", "<s, s>"),
    ("rms(nothing)", "unknown-strand", "nothing"),
])
def test_what_does_not_fit_is_told_at_its_place(call: str, code: str, text: str) -> None:
    assert refused(f"s = phasor(220)\na = {call}\ndisplay(me@x)\n") == (code, text)


@pytest.mark.parametrize("ends", ["(1 to 3)", "(1 to 3 + mouse@x)"])
def test_an_analysis_in_a_loop_is_refused(ends: str) -> None:
    body = f"v = 0\nfor i in {ends} {{ v += rms(s * i) }}"
    text = f"spindle f(s) :: v {{ {body} }}\ndisplay(f(phasor(220)))\n"
    assert refused(text) == ("analysis-in-loop", "rms(s * i)")


def test_each_step_of_a_comprehension_hears_its_own() -> None:
    made = built("b = <rms(phasor(110 * i)) for i in (1 to 3)>\ndisplay(b)\n")
    assert len(made.compiled.heard) == 3


def test_members_of_a_bundle_are_heard_apart() -> None:
    made = built("tones<l, r> = <phasor(220), phasor(330)>\ndisplay(rms(tones@l), rms(tones@r), 0)\n")
    assert len(made.compiled.heard) == 2
