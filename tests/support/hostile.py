"""Patches as an attacker would write them, and the files around them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.support.films import gray_film
from weft.media import lettering

MEDIA = Path(__file__).parents[2] / "patches" / "media"
FONT = Path(lettering.__file__).parent / "fonts" / "DejaVuSansMono.ttf"

# Playlists and scripts that lead to other files, or into the network, under the names of films and sounds.
_PLAYLISTS = {
    "hls": "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{outside}\n#EXT-X-ENDLIST\n",
    "hls_net": "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nhttp://127.0.0.1:{port}/a.ts\n#EXT-X-ENDLIST\n",
    "concat": "ffconcat version 1.0\nfile {outside}\n",
    "concat_net": "ffconcat version 1.0\nfile http://127.0.0.1:{port}/a.ts\n",
    "sdp": "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video {port} RTP/AVP 96\n"
           "a=rtpmap:96 H264/90000\n",
    "dash": '<?xml version="1.0"?><MPD type="static" mediaPresentationDuration="PT1S"><Period><AdaptationSet>'
            '<Representation id="1" mimeType="video/mp4"><BaseURL>{outside}</BaseURL></Representation></AdaptationSet>'
            "</Period></MPD>",
    "svg": '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"><image '
           'xlink:href="{outside}" width="9" height="9"/></svg>',
    "imf": '<?xml version="1.0"?><AssetMap><ChunkList><Chunk><Path>{outside}</Path></Chunk></ChunkList></AssetMap>',
}  # fmt: skip


def world(folder: Path, port: int) -> Path:
    """Makes the folder of the patches, with links that lead out of it, and files outside, below `folder`; the port is
    one of this machine at which nothing should arrive. Returns the folder of the patches."""
    patches, outside = folder / "patches", folder / "outside"
    for each in (patches, outside):
        each.mkdir()
    shutil.copy(MEDIA / "cloth.png", outside / "secret.png")
    shutil.copy(MEDIA / "kick.flac", outside / "secret.flac")
    shutil.copy(FONT, outside / "secret.ttf")
    gray_film(outside / "secret.mp4", 3, 10)
    (outside / "secret.weft").write_text("secret = 0.25\n")
    (outside / "secret.json").write_text('{"Matrix": [[0.25]]}\n')
    os.mkfifo(outside / "fifo")
    for path in outside.iterdir():
        (patches / f"link{path.suffix or '.fifo'}").symlink_to(path)
    (patches / "folder").symlink_to(outside)
    (patches / "zero.png").symlink_to("/dev/zero")
    (patches / "deep").mkdir()
    (patches / "deep" / "outlet.weft").write_text('display(me@x, to: "pipe:../fifo")\n')
    (patches / "deep" / "camera.weft").write_text('camera("../../outside/secret.mp4")::c<r>\ndisplay(c@r)\n')
    os.mkfifo(patches.parent / "fifo")
    os.mkfifo(patches / "fifo")
    os.mkfifo(patches / "waiting.png")
    os.mkfifo(patches / "waiting.weft")
    os.mkfifo(patches / "waiting.json")
    (patches / "no-decoder.json").write_text('{"Matrix": [["0.25"]]}\n')
    for name, text in _PLAYLISTS.items():
        for ending in (".mp4", ".mkv", ".wav", ".mp3"):
            (patches / f"{name}{ending}").write_text(text.format(outside=outside / "secret.mp4", port=port))
    for name in ("svg", "hls"):
        (patches / f"{name}.png").write_text(_PLAYLISTS[name].format(outside=outside / "secret.png", port=port))
    return patches


def hostile(patches: Path, port: int) -> dict[str, str]:
    """The texts of patches, by their names, each of which wants what it must not have."""
    outside = patches.parent / "outside"
    texts = {}

    def camera(name: str, address: str) -> None:
        texts[name] = f'camera("{address}")::c<r, g, b>\ndisplay(c@r, c@g, c@b)\n'

    def load(name: str, path: str, more: str = "") -> None:
        is_sound = path.rpartition(".")[2] in ("wav", "mp3", "flac")
        use = "load({})::s<l, r>\nplay(s@l, s@r)\n" if is_sound else "load({})::c<r, g, b>\ndisplay(c@r, c@g, c@b)\n"
        texts[name] = use.format(f'{more}"{path}"')

    written, net = patches.parent / "written.txt", f"127.0.0.1:{port}"
    camera("filter", f"lavfi:testsrc2=size=64x48,metadata=mode=add:key=k:value=v,metadata=mode=print:file={written}")
    camera("filter-in-options", f"testsrc2 size=64x48,metadata=mode=print:file={written}")
    camera("filter-movie", f"lavfi:movie={outside}/secret.mp4")
    camera("filter-life", f"life filename={outside}/secret.weft")
    for scheme in ("http", "https", "rtsp", "rtmp", "tcp", "udp", "srt", "rtp"):
        camera(f"net-{scheme}", f"{scheme}://{net}/secret")
    for scheme in ("gopher", "ftp", "hls+http", "ffrtmphttp", "mmsh", "icecast"):
        camera(f"unknown-{scheme}", f"{scheme}://{net}/secret")
    camera("listen", f"tcp://{net}?listen=1")
    camera("listen-everywhere", f"http://0.0.0.0:{port}/?listen=1")
    for number, address in enumerate((
        "file:{}", "subfile,,start,0,end,9,,:{}", "concat:{}", "async:file:{}", "cache:{}", "crypto:{}", "{}", "md5:{}",
    )):  # fmt: skip
        camera(f"protocol-{number}", address.format(outside / "secret.mp4"))
    for number, address in enumerate((
        "pipe:0", "fd:0", "data:,x", "unix:/tmp/s", "/dev/zero", "/dev/tty", "/proc/self/environ",
    )):  # fmt: skip
        camera(f"special-{number}", address)
    for ending in ("png", "flac", "mp4"):
        load(f"absolute-{ending}", f"{outside}/secret.{ending}")
        load(f"above-{ending}", f"../outside/secret.{ending}")
        load(f"around-{ending}", f"folder/../../outside/secret.{ending}")
        load(f"link-{ending}", f"link.{ending}")
        load(f"through-link-{ending}", f"folder/secret.{ending}")
    load("labelled", f"{outside}/secret.png", 'loop: "x", path: ')
    load("levels", f"levels:{outside}/secret.png")
    load("live", 'live:[\\"camera\\", \\"lavfi:color\\"].png')
    load("sound", f"sound:48000:{outside}/secret.flac")
    load("letters", f"text:{outside}/secret.png")
    load("null", f"{outside}/secret.png\0.png")
    load("zero", "zero.png")
    load("fifo", "waiting.png")
    load("pattern", "../outside/%03d.png")
    load("environ", "/proc/self/environ.png")
    for name in _PLAYLISTS:
        for ending in ("mp4", "mkv", "wav", "mp3"):
            load(f"{name}-{ending}", f"{name}.{ending}")
        camera(f"{name}-camera", f"{name}.mkv")
    load("svg-png", "svg.png")
    load("hls-png", "hls.png")
    camera("camera-link", "link.mp4")
    fonts = f"{outside}/secret.ttf", "link.ttf", "folder/secret.ttf", "/etc/passwd", "zero.png"
    for number, font in enumerate(fonts):
        texts[f"font-{number}"] = f'text("a", font: "{font}")::t<v>\ndisplay(t@v)\n'
    for number, path in enumerate((
        f"{outside}/secret.weft", "../outside/secret.weft", "link.weft", "folder/secret.weft", "waiting.weft",
        "/etc/passwd", "/dev/zero", "/dev/stdin", "/proc/self/environ",
        f"{outside}/secret.json", "../outside/secret.json", "link.json", "folder/secret.json", "waiting.json",
        "no-decoder.json",
    )):  # fmt: skip
        texts[f"include-{number}"] = f'#include "{path}"\ndisplay(me@x)\n'
    for number, target in enumerate((
        f"pipe:{outside}/fifo", "pipe:link.fifo", "pipe:folder/fifo", "pipe:../outside/fifo", "v4l2:/dev/zero",
        f"v4l2:{outside}/fifo", "v4l2:folder/fifo", f"v4l2:{written}",
        "http:0.0.0.0:8080", "http:[::]:8080", "http:localhost.example.com:8080", "http:8080/../../etc/passwd",
        "http:80", "http:127.1:8080", "http:2130706433:8080", "http://127.0.0.1:8080", "http:user@127.0.0.1:8080",
        "http:-1",
        f"udp://127.0.0.1:{port}", f"rtp://127.0.0.1:{port}", f"rtmp://127.0.0.1:{port}/a/b", f"rtmps://127.0.0.1:{port}/a/b",
        f"srt://127.0.0.1:{port}", f"udp://127.0.0.1:{port}?localport=1", f"rtmp://127.0.0.1:{port}/a/b?listen=1",
        f"udp:file:{outside}/secret.mp4", f"rtmp://x/a|[f=mpegts]file:{outside}/fifo", f"udp://@/{outside}/fifo",
    )):  # fmt: skip
        texts[f"outlet-{number}"] = f'display(me@x, me@y, 0, to: "{target}")\n'
    texts["outlet-of-an-include"] = '#include "deep/outlet.weft"\n'
    texts["camera-of-an-include"] = '#include "deep/camera.weft"\n'
    return texts


HARMLESS = {
    "window": 'display(me@x, me@y, 0, to: "../../outside/window")\n',
    "parameter": '#slider s<v> = 0, 1, 0.5 "../../outside/slider"\ndisplay(s@v)\n',
    "lamps": 'lights(universe: 1, at: 1, me@x)\ndisplay(me@x)\n',
    "sent": 'osc_send("/../../outside", me@x)\ndisplay(me@x)\n',
    "devices": 'm = midi_cc(1, device: "../../outside")\nmic("/dev/zero")::i<l, r>\nplay(i@l, m)\ndisplay(m)\n',
}
"""Patches with words that are not the names of files, and must not become some."""
