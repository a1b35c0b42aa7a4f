"""The keys of streams: what a file of them may say, where they go, and that nothing else shows them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.runtime.films.test_stream_outlet import receiving, result
from tests.support.performance import Performance
from tests.support.ports import free_port
from weft.outlets import OUTLETS
from weft.runtime.films.stream_keys import StreamKeys, StreamKeysError
from weft.streams import StreamError, stream_address

KEY = "live_12-ab?bw=1&x=2"


def written(folder: Path, text: str) -> Path:
    path = folder / "keys"
    path.write_text(text)
    path.chmod(0o600)
    return path


def test_a_key_is_for_one_address(tmp_path: Path) -> None:
    text = f"# servers\n\nrtmp://LIVE.example.com/app   {KEY}\nsrt://192.168.0.5:9000 passphrase=a-long-password\n"
    keys = StreamKeys.read(written(tmp_path, text))
    assert keys.key(OUTLETS["rtmp"], "//live.example.com:1935/app?bitrate=6000") == KEY
    assert keys.key(OUTLETS["srt"], "//192.168.0.5:9000?latency=60") == "passphrase=a-long-password"
    for spec, place in (
        ("rtmps", "//live.example.com/app"), ("rtmp", "//live.example.com/other"), ("rtmp", "//evil.example.com/app"),
        ("rtmp", "//live.example.com:1936/app"), ("srt", "//192.168.0.6:9000"), ("http", "127.0.0.1:8080"),
    ):  # fmt: skip
        assert keys.key(OUTLETS[spec], place) == ""
    assert "12-ab" not in repr(keys)


def test_a_key_is_part_of_the_address_for_ffmpeg_alone() -> None:
    address = stream_address("rtmp", "//live.example.com/app?bitrate=6000").with_key(KEY)
    assert address.url == f"rtmp://live.example.com:1935/app/{KEY}"
    assert address.shown == "rtmp://live.example.com:1935"
    address = stream_address("srt", "//host:9000?latency=60").with_key("passphrase=0123456789&streamid=a")
    assert dict(address.said) == {"latency": "60", "passphrase": "0123456789", "streamid": "a"}
    with pytest.raises(StreamError):
        stream_address("udp", "//host:9000").with_key("ttl=3")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("rtmp://host/app", "line 2: this is no address with a key"),
        ("rtmp://host/app s3cret and more", "line 2: this is no address with a key"),
        ("s3cret", "line 2: this is no address with a key"),
        ("http://host/app s3cret", "line 2: this is no address with a key"),
        ("rtmp://host s3cret", "line 2: a path"),
        ("rtmp://host/app s3crét", "line 2: this is no key"),
        ("srt://host:9000 s3cret", "line 2: this is no key"),
        ("srt://host:9000?passphrase=s3cret1234 passphrase=s3cret1234", "line 2: the address has parameters"),
        ("udp://host:9000 s3cret", "line 2: udp has no keys"),
        ("rtmp://a/b s3cret", "line 2: this address has a key already"),
    ],
)
def test_a_line_that_is_no_key_is_told_without_it(tmp_path: Path, line: str, words: str) -> None:
    path = written(tmp_path, f"rtmp://a/b c\n{line}\n")
    with pytest.raises(StreamKeysError) as caught:
        StreamKeys.read(path)
    assert words in str(caught.value)
    assert "s3cr" not in str(caught.value)


def test_a_server_gets_the_key_and_nobody_else_sees_it(tmp_path: Path) -> None:
    port = free_port()
    keys = written(tmp_path, f"rtmp://127.0.0.1:{port}/app hidden-word\n")
    keys.chmod(0o644)
    patch = tmp_path / "patch.weft"
    patch.write_text(f'me<width> = 64; me<height> = 36\ndisplay(me@x, to: "rtmp://127.0.0.1:{port}/app")\n')
    # FFmpeg listens to one path alone, and refuses others.
    program = receiving(f"rtmp://127.0.0.1:{port}/app/hidden-word", 1)
    options = ("--headless", "--no-audio", "--allow", "net", "--stream-keys", str(keys))
    with Performance(patch, *options) as performance:
        performance.wait_for("window", when=lambda event: event["state"] == "connected")
        arguments = b"".join(_arguments(int(each)) for each in os.listdir("/proc") if each.isdigit())
        assert b"outlet_process" in arguments
        ours = [each for each in arguments.split(b"\n") if b"weft" in each and b"stream_receiver" not in each]
        assert not [each for each in ours if b"hidden-word" in each]
        with program:
            assert len(result(program)["pictures"]) > 10
        assert "other users can read the keys" in performance.stderr
        assert "hidden-word" not in performance.stderr + repr(performance.events)


def _arguments(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ") + b"\n"
    except OSError:
        return b""
