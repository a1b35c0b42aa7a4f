"""Decoders from files: they play what their matrix says, and what is no decoder is told without being quoted."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.forks import ran
from tests.test_permissions import told
from weft.syntax.decoder_files import DecoderFileError, decoder_text

LINE = "#use std.ambisonics\n"


def decoder(matrix: list[list[Any]], **others: Any) -> dict[str, Any]:
    return {"Name": "room", "Decoder": {"Matrix": matrix, "Weights": "none", **others}}


def heard(folder: Path, made: dict[str, Any], direction: str) -> list[float]:
    """What the loudspeakers of a decoder play of a sound that is 1, from a direction."""
    (folder / "room.json").write_text(json.dumps(made))
    count = max(made["Decoder"].get("Routing", range(1, len(made["Decoder"]["Matrix"]) + 1)))
    text = f'{LINE}#include "room.json"\naudio(encode(1, {direction}) |> room())\n'
    (folder / "patch.weft").write_text(text)
    done = ran(["render", "patch.weft", "-o", "out.npy", "--duration", "0.01", "--overwrite"], folder, os.environ)
    assert done.returncode == 0, done.stderr
    found = np.load(folder / "out.npy")
    assert found.shape[1] == count
    return [float(each) for each in found[-1]]


def test_what_loudspeakers_play_is_what_the_matrix_says(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    matrix = rng.uniform(-0.3, 0.3, (5, 9))
    # To the left and up, by the definition of the harmonics.
    x, y, z = 0.0, math.cos(0.5), math.sin(0.5)
    root = math.sqrt(3)
    field = [1, y, z, x, root * x * y, root * y * z, 1.5 * z * z - 0.5, root * x * z, root / 2 * (x * x - y * y)]
    expected = matrix @ field
    assert heard(tmp_path, decoder(matrix.tolist()), "pi / 2, 0.5") == pytest.approx(expected.tolist(), abs=1e-5)
    degrees = np.array([0, 1, 1, 1, 2, 2, 2, 2, 2])
    wide = matrix @ (field * np.sqrt(2 * degrees + 1))
    made = decoder(matrix.tolist(), ExpectedInputNormalization="n3d", Routing=[2, 1, 3, 4, 6])
    assert heard(tmp_path, made, "pi / 2, 0.5") == pytest.approx([wide[1], wide[0], *wide[2:4], 0, wide[4]], abs=1e-5)
    # The weights of max rE in the second order.
    focus = matrix @ (field * np.array([1, 0.774597, 0.4])[degrees])
    made = decoder(matrix.tolist(), Weights="maxrE", WeightsAlreadyApplied=False)
    assert heard(tmp_path, made, "pi / 2, 0.5") == pytest.approx(focus.tolist(), abs=1e-5)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ("{", "it is no JSON"), ("[" * 100_000, "it is no JSON"), ('{"Matrix": [[NaN]]}', "it is no JSON"),
        ("7", "it has no matrix"), ('{"secret": "s3cret"}', "it has no matrix"),
        (decoder([]), "its matrix has 0 rows"), (decoder([[1]] * 65), "its matrix has 65 rows"),
        (decoder([[1, 2, 3]]), "its matrix has 3 columns"), (decoder([[0] * 25]), "its matrix has 25 columns"),
        (decoder([[1], [1, 2, 3, 4]]), "row 2 of its matrix has 4 numbers, and row 1 has 1"),
        (decoder([["s3cret"]]), "row 1 of its matrix has no numbers"), (decoder([[1e300]]), "row 1 of its matrix"),
        (decoder([[True]]), "row 1 of its matrix"), (decoder([[1]], Routing=[0]), "its routing"),
        (decoder([[1], [1]], Routing=[2, 2]), "its routing"), (decoder([[1]], Routing="s3cret"), "its routing"),
        (decoder([[1]], ExpectedInputNormalization="s3cret"), "normalization"),
        (decoder([[1]], Weights="inPhase"), "its weights"),
    ],
)
def test_what_is_no_decoder_is_told(tmp_path: Path, made: Any, words: str) -> None:
    (tmp_path / "room.json").write_text(made if isinstance(made, str) else json.dumps(made))
    (found,) = told(tmp_path / "patch.weft", '#include "room.json"\ndisplay(0)\n')
    assert found.code == "include-unreadable"
    assert words in found.message
    assert "s3cret" not in found.render()


@pytest.mark.parametrize("name", ["my room", "7", "for", ""])
def test_the_name_of_the_file_is_that_of_the_spindle(name: str) -> None:
    with pytest.raises(DecoderFileError, match="its name"):
        decoder_text(name, json.dumps(decoder([[1]])))


def test_a_decoder_outside_of_the_folder_is_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "patches"
    folder.mkdir()
    (tmp_path / "room.json").write_text(json.dumps(decoder([[1]])))
    (found,) = told(folder / "patch.weft", '#include "../room.json"\ndisplay(0)\n')
    assert found.code == "not-allowed"
