"""Programs as messages: what arrives is what was sent, and pieces that are known are not sent again."""

from __future__ import annotations

import pickle
import random
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.edits import place, session
from tests.support.together import all_but
from weft.runtime.compiling.compiler import Compiler, Saved
from weft.runtime.program.parcels import MOST_KNOWN, Packer, Parcel, Unpacker, pieces_of
from weft.runtime.program.program import Setup

PATCHES = Path(__file__).parents[3] / "patches"


def sent(parcel: Parcel) -> int:
    """How many pieces a parcel has, as it arrives through a pipe."""
    return sum(data is not None for data in parcel.pieces.values())


def through_a_pipe(parcel: Parcel) -> Parcel:
    arrived = pickle.loads(pickle.dumps(parcel))
    assert isinstance(arrived, Parcel)
    return arrived


def test_a_piece_is_sent_once_and_arrives_as_one_object() -> None:
    packer, unpacker = Packer(), Unpacker()
    long, other = ("long", 1.0), ("other", 2.0)
    first, again = packer.pack([long, "x"], [long]), packer.pack({"y": (long, long, other)}, [long, other])
    assert (sent(first), sent(again)) == (1, 1)
    (one, _), found = unpacker.unpack(through_a_pipe(first)), unpacker.unpack(through_a_pipe(again))
    assert found == {"y": (long, long, other)}
    assert one is found["y"][0] is found["y"][1]


def test_what_is_made_again_is_not_sent_again() -> None:
    packer, unpacker = Packer(), Unpacker()
    for made in ([str(number) for number in range(99)] for _ in range(2)):
        parcel = packer.pack({"of": made}, [made])
        assert unpacker.unpack(through_a_pipe(parcel)) == {"of": made}
    assert sent(parcel) == 0


def test_long_parts_are_not_sent_again_with_what_has_changed_around_them() -> None:
    """As in code with other constants."""
    packer, unpacker = Packer(), Unpacker()
    code, fields = random.Random(0).randbytes(100_000), tuple(f"field {number}" for number in range(1000))
    arrived = []
    for constant in (1.0, 2.0, 3.0):
        piece = {"grid": (fields, code, constant)}
        parcel = packer.pack(["program", piece], [piece])
        arrived.append(unpacker.unpack(through_a_pipe(parcel)))
        assert arrived[-1] == ["program", piece]
        assert (len(pickle.dumps(parcel)) > 100_000) == (constant == 1.0)
    assert len(pickle.dumps(parcel)) < 1000
    assert all(each[1]["grid"][part] is arrived[0][1]["grid"][part] for each in arrived for part in (0, 1))


@pytest.mark.parametrize("has_parts", [False, True])
@pytest.mark.parametrize("most", [1, 24, MOST_KNOWN])
def test_both_sides_forget_the_same_pieces(most: int, has_parts: bool) -> None:
    packer, unpacker, chance = Packer(most), Unpacker(most), random.Random(1)
    parts: list[object] = [None]
    if has_parts:
        parts = [*(bytes(5000 + number) for number in range(7)), *(tuple(range(99 + number)) for number in range(6))]
        parts += [(*range(99), each, parts[7]) for each in parts[:5]]
    pieces = [(number, str(number), parts[number % len(parts)]) for number in range(3 * MOST_KNOWN)]
    before: list[int] = []
    for step in range(500):
        # Sometimes more at once than are known for long.
        count = 2 * MOST_KNOWN if step % 100 == 50 else chance.randrange(9)
        message = [pieces[number] for number in (*chance.sample(range(len(pieces)), count), *before[:2])]
        before = [number for number, *_ in message]
        assert unpacker.unpack(through_a_pipe(packer.pack(message, message))) == message


def test_a_new_packer_may_follow_another() -> None:
    unpacker, pieces = Unpacker(), [(number, str(number)) for number in range(2 * MOST_KNOWN)]
    for seed in range(5):
        packer, chance = Packer(), random.Random(seed)
        for _ in range(60):
            message = chance.sample(pieces, 9)
            assert unpacker.unpack(through_a_pipe(packer.pack(message, message))) == message


def test_what_cannot_be_packed_changes_nothing() -> None:
    packer, unpacker, piece = Packer(), Unpacker(), ("a", "piece")
    with pytest.raises((pickle.PicklingError, AttributeError)):
        packer.pack([piece, lambda: None], [piece])
    assert unpacker.unpack(packer.pack([piece], [piece])) == [piece]


@pytest.mark.parametrize(
    ("name", "edits"), all_but(1, [("drums.weft", 16), ("echoes.weft", 40), ("bench/fifty.weft", 40)])
)
def test_programs_arrive_as_they_were_made(name: str, edits: int) -> None:
    """After edits of all kinds, of which some change names and places only."""
    path, packer, unpacker, compared = PATCHES / name, Packer(), Unpacker(), 0
    compiler = Compiler.of(Setup(str(path), "cpu"))
    for text in session(path.read_text(), random.Random(name), edits):
        made = compiler.compile(Saved(text.encode(), 0.0))
        if made.compiled is not None:
            pieces = pieces_of(made.compiled.units)
            arrived = unpacker.unpack(through_a_pipe(packer.pack(made, pieces)))
            for mine, theirs in zip(arrived.compiled.units, made.compiled.units, strict=True):
                assert replace(mine, loops=()) == replace(theirs, loops=())
                assert list(map(place, mine.loops)) == list(map(place, theirs.loops))
            assert arrived.compiled.parameters == made.compiled.parameters
            assert {at: str(place) for at, place in arrived.places.items()} == {
                at: str(place) for at, place in made.places.items()
            }
            assert sent(packer.pack(made, pieces)) == 0
            compared += 1
    assert compared > edits / 2
