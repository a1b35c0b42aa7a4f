"""What is said of the outlets that a text names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_permissions import told
from weft.contexts import context_table
from weft.errors import Source
from weft.media.sampled import header_of
from weft.permissions import Permissions
from weft.runtime.inspect.forecast import check


@pytest.mark.parametrize(
    ("target", "code", "words"),
    [
        ("http:80", "outlet-address", "80 is no port for this"),
        ("http://127.0.0.1:8080", "outlet-address", "this is no port"),
        ("http:0.0.0.0:8080", "not-allowed", '"http:0.0.0.0:8080" is not written to: it would connect to the network'),
        ("srt://host", "outlet-address", "a port is missing"),
        ("udp://1.2.3.4:99", "not-allowed", '"udp://1.2.3.4:99" is not written to'),
        ("rtmp://host/app/key", "not-allowed", '"rtmp://host:1935" is not written to: it would connect to the network'),
        ("srtt://host:9000", "outlet-address", "srtt: is no kind of outlet"),
        ("v4l2:/dev/zero", "unknown-camera", "is no camera"),
        ("spout:größe", "outlet-address", "this is no name for other programs"),
        ("syphon:../stage", "outlet-address", "this is no name for other programs"),
    ],
)
def test_an_outlet_that_cannot_be_is_told_at_its_place(tmp_path: Path, target: str, code: str, words: str) -> None:
    patch = tmp_path / "patch.weft"
    (found,) = told(patch, f'display(me@x, to: "{target}")\n')
    assert (found.code, str(found.span)) == (code, f"{patch}:1:19")
    assert words in found.message


@pytest.mark.parametrize(
    "target", ["http:8080", "http:[::1]:8080", "spout:Stage 1", "syphon:weft", "a window", "http", "8080"]
)
def test_what_needs_no_leave_is_quiet(tmp_path: Path, target: str) -> None:
    assert told(tmp_path / "patch.weft", f'display(me@x, to: "{target}")\n') == []


@pytest.mark.parametrize(
    ("target", "is_warned"), [("HTTP:8080", True), ("sprout:weft", True), ("left:2", False), ("http", False)]
)
def test_a_window_that_was_hardly_meant_is_warned_of(target: str, is_warned: bool) -> None:
    found = check(Source("patch.weft", f'display(me@x, to: "{target}")\n'), context_table(), header_of)
    assert [(each.code, each.severity, str(each.span)) for each in found] == (
        [("outlet-or-window", "warning", "patch.weft:1:19")] if is_warned else []
    )


@pytest.mark.parametrize("target", ["http:0.0.0.0:8080", "rtmp://host/app/key", "srt://host:9000?mode=listener"])
def test_the_network_is_for_who_allows_it(tmp_path: Path, target: str) -> None:
    patch = tmp_path / "patch.weft"
    assert told(patch, f'display(me@x, to: "{target}")\n', Permissions.of(["net"])) == []
