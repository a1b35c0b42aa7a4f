"""Doc comments, taken apart."""

from __future__ import annotations

from weft.editor.topics import spindle_docs
from weft.errors import Source
from weft.syntax.docs import first_sentence, opening_line

TEXT = """\
// A library of two. It is short.

/// Turns a place into distance and angle. The middle
/// is at (0, 0).
/// @param x from left to right
/// @param y from top to bottom,
///   as everywhere
/// @returns radius: the distance
/// @returns and angle, in radians
/// @example polar(me@x, me@y)::p<r, a>
/// display(p)
/// @example display(polar(me@x, me@y)@radius)
spindle polar(x, y) :: <radius, angle> {
  out radius = hypot(x, y)
  out angle = atan2(y, x)
}

spindle half(x) :: v { out v = x / 2 }
spindle broken(x :: v { out v = x }
"""


def test_a_doc_comment_has_parts():
    polar, half = spindle_docs(Source("t", TEXT))
    assert polar.name == "polar"
    assert polar.signature == "polar(x, y) :: <radius, angle>"
    assert polar.summary == "Turns a place into distance and angle. The middle is at (0, 0)."
    assert polar.headline == "Turns a place into distance and angle"
    assert dict(polar.parameter_texts) == {"x": "from left to right", "y": "from top to bottom, as everywhere"}
    assert polar.returns == "radius: the distance and angle, in radians"
    assert polar.examples == ("polar(me@x, me@y)::p<r, a>\ndisplay(p)", "display(polar(me@x, me@y)@radius)")
    assert half.signature == "half(x) :: v"
    assert (half.summary, half.returns, half.examples, dict(half.parameter_texts)) == ("", "", (), {})


def test_a_signature_shows_which_parameters_take_bundles_and_what_may_be_left_out():
    """`p` is taken apart in its body, and `q` by a spindle that takes its own parameter apart; `r` is one strand."""
    text = """
        spindle tilt(p, q, r, a<x, y> = r * 2) :: v { v = p[1] + far(q - a) + r }
        spindle far(p) :: v { v = length(p) }
    """
    tilt, far = spindle_docs(Source("t", text))
    assert tilt.signature == "tilt(p<…>, q<…>, r, a<x, y> = r * 2) :: v"
    assert far.signature == "far(p<…>) :: v"


def test_the_opening_line_of_a_text():
    assert opening_line(TEXT) == "A library of two. It is short."
    assert opening_line("\ufeff\n/// Doc\n") == "Doc"
    assert opening_line("display(1) // no") == ""
    assert opening_line("") == ""


def test_the_first_sentence():
    assert first_sentence("One. Two.") == "One"
    assert first_sentence("From 0.5 on") == "From 0.5 on"
    assert first_sentence("One.") == "One"
