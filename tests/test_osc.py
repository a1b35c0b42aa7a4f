"""Messages and bundles of OSC, compared with those of python-osc, and bytes that are neither."""

import math
import struct

import pytest
from hypothesis import given, strategies as st
from pythonosc.osc_bundle import OscBundle
from pythonosc.osc_bundle_builder import OscBundleBuilder
from pythonosc.osc_message import OscMessage
from pythonosc.osc_message_builder import OscMessageBuilder

from weft.osc_packets import (
    LONGEST_ADDRESS, MOST_ARGUMENTS, MalformedPacketError, ReceivedMessage, elements, is_address, message, read_message,
    time_of
)

SINGLES = st.floats(width=32, allow_nan=False, allow_infinity=False)
ADDRESSES = st.lists(st.text("abcxyz019._-@", min_size=1, max_size=9), min_size=1, max_size=4).map(
    lambda parts: "".join(f"/{part}" for part in parts)
)


def built(address: str, *arguments: object) -> bytes:
    """The message that python-osc makes; arguments are values, or pairs of a value and its type."""
    builder = OscMessageBuilder(address)
    for each in arguments:
        value, kind = each if isinstance(each, tuple) else (each, None)
        builder.add_arg(value, kind)
    return bytes(builder.build().dgram)


def bundled(*parts: bytes, tag: bytes = bytes(7) + b"\1") -> bytes:
    return b"#bundle\0" + tag + b"".join(struct.pack(">i", len(part)) + part for part in parts)


def all_messages(packet: bytes) -> list[ReceivedMessage]:
    return [read_message(packet, each.start, each.end) for each in elements(packet)]


@given(ADDRESSES, st.lists(SINGLES, max_size=20))
def test_what_is_written_is_what_python_osc_writes_and_reads(address: str, numbers: list[float]) -> None:
    data = message(address, numbers)
    assert data == built(address, *((number, "f") for number in numbers))
    parsed = OscMessage(data)
    assert (parsed.address, parsed.params) == (address, numbers)
    assert read_message(data) == ReceivedMessage(address, tuple(numbers))


ARGUMENTS = st.one_of(
    SINGLES.map(lambda x: (x, "f")), st.integers(-(2**31), 2**31 - 1).map(lambda n: (n, "i")),
    st.floats(allow_nan=False).map(lambda x: (x, "d")), st.integers(-(2**63), 2**63 - 1).map(lambda n: (n, "h")),
    st.booleans().map(lambda b: (b, "T" if b else "F")), st.text("aé \x7f", max_size=9).map(lambda t: (t, "s")),
)  # fmt: skip


@given(ADDRESSES, st.lists(ARGUMENTS, max_size=12))
def test_numbers_truths_and_texts_are_read(address: str, arguments: list[tuple[object, str]]) -> None:
    expected = tuple(value if isinstance(value, str) else float(value) for value, _ in arguments)  # type: ignore[arg-type]
    assert read_message(built(address, *arguments)) == ReceivedMessage(address, expected)


def test_what_has_no_number_keeps_its_place() -> None:
    data = built("/a", (b"123", "b"), (0.5, "f"), (None, "N"), ((1, 2, 3, 4), "m"), (0xFF00FF, "r"), [1, [2.0]], 7)
    assert read_message(data).arguments == (None, 0.5, None, None, None, 1.0, 2.0, 7.0)
    head = b"/a\0\0"
    assert read_message(head + b",ItcS\0\0\0" + bytes(8) + b"\0\0\0x" + b"yz\0\0").arguments == (None, None, "yz")
    assert read_message(head) == read_message(head + b",\0\0\0") == ReceivedMessage("/a", ())


def test_of_many_arguments_the_first_are_read() -> None:
    numbers = [float(n) for n in range(3 * MOST_ARGUMENTS)]
    assert read_message(message("/a", numbers)).arguments == tuple(numbers[:MOST_ARGUMENTS])


@pytest.mark.parametrize("due", [1.5e9, 2_085_978_495.5, 2_085_978_500.25, 4e9])
def test_bundles_say_when_they_are_due(due: float) -> None:
    # From 1900 to 1970 there are 70 years with 17 leap days; tags begin again after 2^32 seconds.
    since_1900 = due + (70 * 365 + 17) * 86_400
    seconds, fraction = int(since_1900) % 2**32, int(since_1900 % 1 * 2**32)
    assert time_of(seconds, fraction) == pytest.approx(due, abs=1e-6)
    packet = bundled(message("/a", [1]), tag=struct.pack(">II", seconds, fraction))
    (element,) = elements(packet)
    assert element.due == pytest.approx(due, abs=1e-6)
    if due < 2_085_978_496:
        assert OscBundle(packet).timestamp == pytest.approx(due, abs=1e-6)


def test_bundles_in_bundles_keep_their_times() -> None:
    inner, outer = OscBundleBuilder(2e9), OscBundleBuilder(1.9e9)
    inner.add_content(OscMessageBuilder("/inner").build())
    outer.add_content(OscMessageBuilder("/first").build())
    outer.add_content(inner.build())
    outer.add_content(OscMessageBuilder("/last").build())
    packet = outer.build().dgram
    assert [each.address for each in all_messages(packet)] == ["/first", "/inner", "/last"]
    assert [each.due for each in elements(packet)] == pytest.approx([1.9e9, 2e9, 1.9e9])
    assert list(elements(bundled())) == []
    assert [e.due for e in elements(bundled(message("/now", [])))] == [0]


def test_depth_and_length_are_no_matter() -> None:
    deep = message("/a", [0.5])
    while len(deep) < 60_000:
        deep = bundled(deep)
    assert all_messages(deep) == [ReceivedMessage("/a", (0.5,))]
    wide = bundled(*(message(f"/{n}", [n]) for n in range(3000)))
    assert all_messages(wide) == [ReceivedMessage(f"/{n}", (n,)) for n in range(3000)]


@pytest.mark.parametrize(
    "packet",
    [
        b"", b"/", b"/abc", b"abc\0,f\0\0" + bytes(4), b"/a\0\0,f\0\0", b"/a\0\0,i\0\0\1\2", b"/a\0\0,f",
        b"/a\0\0f\0\0\0",
        b"/a\0\0,s\0\0abcd", b"/a\0\0,b\0\0\0\0\0\x09", b"/a\0\0,b\0\0\xff\xff\xff\xf0", b"/a\0\0,q\0\0", b"/\xff\0\0",
        b"/a\0\0,s\0\0\xff\0\0\0", b"#bundle\0", b"#bundle\0" + bytes(8) + b"\0\0", bundled(b""),
        b"#bundle\0" + bytes(8) + b"\0\0\0\x08/a\0\0", b"#bundle\0" + bytes(8) + b"\xff\xff\xff\xff/a\0\0",
        message("/" + "a" * LONGEST_ADDRESS, [1]),
    ],
)  # fmt: skip
def test_what_is_no_packet_is_told(packet: bytes) -> None:
    with pytest.raises(MalformedPacketError, match=r"^an? "):
        all_messages(packet)


BUNDLES = st.recursive(
    st.builds(built, ADDRESSES), lambda inner: st.lists(inner, max_size=4).map(lambda parts: bundled(*parts)),
    max_leaves=6,
)  # fmt: skip


@given(st.one_of(st.binary(max_size=80), BUNDLES), st.data())
def test_any_bytes_are_read_or_refused(packet: bytes, data: st.DataObject) -> None:
    changed = bytearray(packet)
    for _ in range(data.draw(st.integers(0, 4))):
        if changed:
            changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(changed[: data.draw(st.integers(0, len(changed)))])
    try:
        found = all_messages(cut)
    except MalformedPacketError:
        return
    for each in found:
        assert each.address.startswith("/")
        assert all(isinstance(argument, float | str | None) for argument in each.arguments)


def test_infinities_are_numbers_of_a_message() -> None:
    found = read_message(built("/a", (math.inf, "f"), (math.nan, "d"))).arguments
    assert found[0] == math.inf
    assert math.isnan(found[1])  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["/a", "/fader/1", "/grösse", "/a.b@c-d"])
def test_addresses(text: str) -> None:
    assert is_address(text)


@pytest.mark.parametrize("text", ["", "/", "a", "/a/", "//a", "/a b", "/a*", "/a?", "/[a]", "/{a}", "/a,b", "/\x7f"])
def test_what_is_no_address(text: str) -> None:
    assert not is_address(text)
