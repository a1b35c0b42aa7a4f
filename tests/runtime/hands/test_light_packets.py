"""Packets of light networks, byte by byte against the tables of the standards, which are typed here again."""

from __future__ import annotations

import struct

import pytest

from weft.runtime.hands.light_packets import artnet, sacn, sacn_discovery, sacn_group

CID = bytes(range(16))
LEVELS = bytes(number % 256 for number in range(512))

# ANSI E1.31-2018, table 4-1 (E1.31 data packet) and tables 6-2 to 7-6: octet, size, value.
DATA_PACKET = [
    (0, 2, 0x0010), (2, 2, 0x0000), (4, 12, b"\x41\x53\x43\x2d\x45\x31\x2e\x31\x37\x00\x00\x00"), (16, 2, 0x726E),
    (18, 4, 0x00000004), (22, 16, CID), (38, 2, 0x7258), (40, 4, 0x00000002), (44, 64, b"weft" + bytes(60)),
    (108, 1, 100), (109, 2, 0), (111, 1, 7), (112, 1, 0), (113, 2, 0x0102), (115, 2, 0x720B), (117, 1, 0x02),
    (118, 1, 0xA1), (119, 2, 0x0000), (121, 2, 0x0001), (123, 2, 0x0201), (125, 1, 0x00), (126, 512, LEVELS),
]  # fmt: skip

# The same document, table 4-3 (universe discovery packet) and tables 8-8 to 8-10, for three universes.
DISCOVERY_PACKET = [
    (0, 2, 0x0010), (2, 2, 0x0000), (4, 12, b"ASC-E1.17\0\0\0"), (16, 2, 0x7000 | (126 - 16)), (18, 4, 0x00000008),
    (22, 16, CID), (38, 2, 0x7000 | (126 - 38)), (40, 4, 0x00000002), (44, 64, b"weft" + bytes(60)), (108, 4, 0),
    (112, 2, 0x7000 | (126 - 112)), (114, 4, 0x00000001), (118, 1, 0), (119, 1, 0), (120, 2, 1), (122, 2, 2),
    (124, 2, 63999),
]  # fmt: skip

# Art-Net 4 Protocol Release, ArtDmx: the fields in their order.
ART_DMX = [
    (0, 8, b"Art-Net\0"), (8, 2, b"\x00\x50"), (10, 1, 0), (11, 1, 14), (12, 1, 8), (13, 1, 0), (14, 1, 0x34),
    (15, 1, 0x12), (16, 2, 512), (18, 512, LEVELS),
]  # fmt: skip


def by_table(table: list[tuple[int, int, int | bytes]]) -> bytes:
    packet = bytearray()
    for octet, size, value in table:
        assert octet == len(packet), "the table has no gaps"
        packet += value if isinstance(value, bytes) else value.to_bytes(size, "big")
        assert len(packet) == octet + size
    return bytes(packet)


def test_a_universe_by_sacn() -> None:
    packet = sacn(0x0102, LEVELS, 7, CID, "weft")
    assert len(packet) == 638
    assert packet == by_table(DATA_PACKET)


def test_the_end_of_a_stream_differs_in_one_bit() -> None:
    packet, last = sacn(1, LEVELS, 0, CID, "weft"), sacn(1, LEVELS, 0, CID, "weft", is_last=True)
    assert [(at, one ^ other) for at, (one, other) in enumerate(zip(packet, last, strict=True)) if one != other] == [
        (112, 0x40)
    ]


def test_packets_are_counted_in_a_byte() -> None:
    assert [sacn(1, LEVELS, number, CID, "weft")[111] for number in (0, 255, 256, 1000)] == [0, 255, 0, 232]
    # In Art-Net, 0 means that packets are not counted.
    assert [artnet(1, LEVELS, number)[12] for number in (0, 254, 255, 256)] == [1, 255, 1, 2]


@pytest.mark.parametrize(("name", "kept"), [("ä" * 40, "ä" * 31), ("x" * 70, "x" * 63), ("", "")])
def test_a_name_ends_with_a_zero_and_is_no_half_letter(name: str, kept: str) -> None:
    field = sacn(1, LEVELS, 0, CID, name)[44:108]
    assert field.rstrip(b"\0").decode() == kept
    assert field.endswith(b"\0")


def test_the_discovery_of_universes() -> None:
    assert sacn_discovery([63999, 2, 1], CID, "weft") == [by_table(DISCOVERY_PACKET)]
    pages = sacn_discovery(range(1, 514), CID, "weft")
    assert [(page[118], page[119], len(page)) for page in pages] == [(0, 1, 120 + 1024), (1, 1, 122)]
    assert struct.unpack(">H", pages[1][120:]) == (513,)


def test_the_group_of_a_universe() -> None:
    assert [sacn_group(universe) for universe in (1, 256, 63999)] == ["239.255.0.1", "239.255.1.0", "239.255.249.255"]


def test_a_port_address_by_artnet() -> None:
    packet = artnet(0x1234, LEVELS, 7)
    assert len(packet) == 530
    assert packet == by_table(ART_DMX)
