"""std.fixtures: the channels of lamps, as their addresses have them, and that they reach `lights` in their order."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.std.values import values
from tests.test_permissions import told
from weft.syntax.includes import libraries

LIBRARY = "std.fixtures"
COLOR = "<1, 0.5, 0.25>"


@pytest.mark.parametrize(
    ("lamp", "levels"),
    [
        (f"par_rgb({COLOR}, 0.5)", [0.5, 0.25, 0.125]),
        ("par_rgb(<2, -1, 1>)", [1, 0, 1]),
        (f"par_rgbw({COLOR}, 0.5)", [0.375, 0.125, 0, 0.125]),
        ("par_rgba(<1, 0.6, 0>)", [0, 0, 0, 1]),
        ("par_rgba(<0.5, 0.6, 0.2>)", [0.2, 0.42, 0.2, 0.3]),
        ("par_rgbwau(<1, 0.8, 0.2>, uv: 0.3)", [0, 0.12, 0, 0.2, 0.8, 0.3]),
        (f"par_drgb({COLOR}, 0.5)", [0.5, 1, 0.5, 0.25]),
        (f"par_drgbs({COLOR}, 0.5, 0.1)", [0.5, 1, 0.5, 0.25, 0.1]),
        (f"par_drgbw({COLOR}, 0.5)", [0.5, 0.75, 0.25, 0, 0.25]),
        ("warm_cold(0.5, 0.25)", [0.125, 0.375]),
        ("pan_tilt(2, 0.3)", [1, 0.3]),
        ("fog_fan(0.2)", [0.2, 0.5]),
    ],
)
def test_a_lamp_gets_its_channels_in_the_order_of_its_manual(lamp: str, levels: list[float]) -> None:
    found = values(LIBRARY, [f"b[{at}]" for at in range(len(levels))], 0.5, before=f"b = {lamp}")
    np.testing.assert_allclose([each[0, 0] for each in found], levels, atol=1e-6)


@pytest.mark.parametrize("level", [0, 0.2, 0.5, 0.999, 1])
def test_sixteen_bits_are_a_coarse_and_a_fine_level(level: float) -> None:
    found = values(LIBRARY, [f"b[{at}]" for at in range(4)], 0.5, before=f"b = pan_tilt16({level}, 1 - {level})")
    (single,) = values(LIBRARY, [f"dimmer16({level})@d"], 0.5)
    assert single[0, 0] == found[0][0, 0]
    coarse, fine, other, other_fine = (round(float(each[0, 0]) * 255) for each in found)
    assert abs(coarse * 256 + fine - level * 65535) <= 0.5
    assert abs(other * 256 + other_fine - (1 - level) * 65535) <= 0.5


def test_a_lamp_that_does_not_exist_is_told_with_the_one_that_was_meant(tmp_path: Path) -> None:
    text = "#use std.fixtures\nlights(at: 1, left: par_rgbw(<1, 0, 0>), right: par_dgrb(<1, 0, 0>))\n"
    patch = tmp_path / "patch.weft"
    (found,) = told(patch, text)
    assert (found.code, found.hint) == ("unknown-call", 'did you mean "par_drgb"?')
    assert told(patch, text.replace("par_dgrb", "par_drgb")) == []


def test_the_lamp_of_the_heading_is_one() -> None:
    (lamp,) = re.findall(r"^//   (spindle spot.*)$", libraries()[LIBRARY], re.MULTILINE)
    found = values(LIBRARY, [f"b[{at}]" for at in range(5)], 0.5, before=f"{lamp}\nb = spot({COLOR}, 0.7)")
    np.testing.assert_allclose([each[0, 0] for each in found], [0.7, 1, 1, 0.5, 0.25])
