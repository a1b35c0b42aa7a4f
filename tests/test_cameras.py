"""What `camera` may be called with, and what of it reaches FFmpeg."""

from __future__ import annotations

import re

import av
import pytest
from hypothesis import given, strategies as st

from weft.cameras import (
    _USUAL, GENERATORS, SCHEMES, AddressError, Camera, _ColourOption, _NumberOption, _SizeOption, _WordOption,
    camera_of, generated, options_of
)
from weft.media.containers import opened_camera

# All that a picture's description may consist of: a name, options, and values without a meaning for FFmpeg.
PLAIN = re.compile(r"[a-z0-9]+=[a-z0-9_]+=[\w.\-]+(:[a-z0-9_]+=[\w.\-]+)*", re.ASCII)


def some_value(option: object) -> str:
    """A value that an option takes."""
    match option:
        case _NumberOption(least, most, is_whole):
            return f"{round((least + most) / 2)}" if is_whole else f"{max(least, min(most, 0.5)):.9f}"
        case _SizeOption():
            return "64x48"
        case _ColourOption():
            return "#ff8000"
        case _WordOption(among):
            return among[-1]
    raise AssertionError(option)


@pytest.mark.parametrize("name", GENERATORS)
def test_ffmpeg_knows_each_picture_and_each_of_its_options(name: str) -> None:
    options = options_of(name)
    words = " ".join([name, *(f"{label}={some_value(option)}" for label, option in options.items())])
    for each in (f"{name} size=64x48", words):
        with opened_camera(Camera("generated", each)) as container:
            frame = next(container.decode(video=0))
        assert (frame.width, frame.height) == (64, 48)
        assert isinstance(frame, av.VideoFrame)


@pytest.mark.parametrize(
    ("text", "kind"),
    [("0", "device"), ("12", "device"), ("/dev/video2", "device"), ("/dev/v4l/by-id/usb-046d_C920-index0", "device"),
     ("testsrc2", "generated"), ("life size=320x180 seed=4 life_color=#ffffff", "generated"), ("clip.mp4", "file"),
     ("media/a b.mkv", "file"), ("./a:b.mkv", "file"), ("rtsp://camera.local/1", "stream"),
     ("HTTP://host/a", "stream")],
)  # fmt: skip
def test_what_is_a_camera(text: str, kind: str) -> None:
    assert camera_of(text) == (kind, text)


ATTACKS = [
    "lavfi:testsrc2=size=64x48,metadata=mode=print:file=/tmp/x", "lavfi:movie=/etc/passwd", "LAVFI:color", "lavfi:",
    "testsrc2,metadata=mode=print:file=x", "testsrc2 size=64x48:duration=1", "testsrc2 size=64x48,null",
    "testsrc2 size=64x48[a]", "testsrc2 duration=1", "color color=red", "color color=#ff8000:size=1x1",
    "color color=#ff80zz", "life filename=/etc/passwd", "life file=/etc/passwd", "life rule=S23/B3",
    "cellauto f=/etc/passwd", "movie filename=/etc/passwd", "amovie=x", "mandelbrot maxiter=1000000000",
    "testsrc2 size=100000x100000", "testsrc2 size=4096x4096", "testsrc2 rate=nan", "testsrc2 rate=inf",
    "testsrc2 rate=1e3", "testsrc2 rate=1/0", "testsrc2 size=٦٤x48", "testsrc2 rate=٣", "testsrc2\0", "testsrc2 size",
    "testsrc2 =64", "", " ", "\n", "file:/etc/passwd", "file:a.mkv", "subfile,,start,0,end,0,,:/etc/passwd",
    "subfile:a.mkv", "concat:a.mkv|b.mkv", "concatf:a", "data:,x", "data:video/x.mkv", "pipe:0", "pipe:", "fd:",
    "fd:0", "unix:/tmp/s", "async:file:a.mkv", "cache:a.mkv", "crypto:a.mkv", "crypto+file:a.mkv", "md5:a.mkv",
    "tee:a.mkv", "gopher://h/", "ftp://h/a", "sftp://h/a", "smb://h/a", "hls+file:a", "hls+http://h/a",
    "ffrtmphttp://h", "rtmpt:a", "ipfs://a", "rtsp:a", "http:a", "http:/a", "tcp:", "x-y.z:a", "http://a b",
    "http://a\nb", "http://a\0", "http://ä", "/dev/zero", "/dev/video", "/dev/video0/../zero", "/dev/video0\n",
    "/dev/video0\0", "/dev/video٣", "/dev/v4l/by-id/../../zero", "/dev/v4l/by-id/a/b", "/dev/watchdog", "/dev/tty",
    "٣", "-1", "1.5", "0:none", "0:", "desktop", "gdigrab", "dshow:video=x", "video=x", "avfoundation:0",
    "/proc/self/environ", "a.m3u8", "a.sdp", "a.ffconcat", "a.png", "%03d.png", "https:// ",
]  # fmt: skip


@pytest.mark.parametrize("text", ATTACKS)
def test_what_is_none(text: str) -> None:
    with pytest.raises(AddressError):
        camera_of(text)


PARTS = [
    *GENERATORS, *SCHEMES, *_USUAL, "lavfi:", "file:", "=", ":", ",", ";", "[", "]", "'", "\\", "|", "\0", " ", "/",
    "..",
    "size=64x48", "seed=1", "metadata", "mkv", ".mp4", "0", "#ffffff", "c0", "-", "://",
]  # fmt: skip


WORDS = st.lists(st.sampled_from(PARTS))


@given(st.one_of(st.text(), WORDS.map("".join), WORDS.map(" ".join)))
def test_nothing_but_plain_values_reaches_the_language_of_filters(text: str) -> None:
    try:
        camera = camera_of(text)
    except AddressError:
        return
    if camera.kind == "generated":
        assert PLAIN.fullmatch(generated(camera.place))
    elif camera.kind == "stream":
        assert camera.place.partition("://")[0].lower() in SCHEMES
    elif camera.kind == "device":
        assert re.fullmatch(r"\d+|/dev/video\d+|/dev/v4l/by-(id|path)/[^/]+", camera.place)
    else:
        assert not re.match(r"[A-Za-z][A-Za-z0-9+.\-]*:", camera.place)
