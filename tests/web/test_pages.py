"""`weft.web`: pages play what the reference machine computes, in a real browser (`weft/web/*.js`)."""

import json
import re

import pytest

from weft.cli.arguments import shipped_patches
from weft.web.packed import packed, unpacked

HEAD = "me<width> = 64; me<height> = 36\n"

PATCHES = {
    "a picture": "#slider s<v> = 0, 1, 0.3\ndisplay(me@x * s@v, fract(me@y + me@time), sin(me@frame + me@px * 9))",
    "gray": "display(noise(me@x * 5, me@y * 5, me@time))",
    "alpha": "display(me@x, me@y, 0.5, me@x)",
    "many rests": f"v<v> = {' + '.join(f'floor(me@px) * 2000 % {n}.5' for n in range(1, 25))}\n"
                  "display(fract(v@v / 7), v@v / 300, 0)",
    "memory of pictures": "old<v> = prev(t@v)\nt<v> = old@v(me@x ~ me@x + 0.03) * 0.9 + me@y * 0.1\n"
                          "d<v> = delay(me@x * fract(me@time), 1 + me@y * 2, 3)\ndisplay(t@v, d@v, old@v)",
    "more memory than targets": "".join(f"s{n}<v> = prev(s{n}@v) * 0.5 + me@x * {n}\n" for n in range(6))
                                + f"display({' + '.join(f's{n}@v' for n in range(6))})",
    "memory of numbers": "n<v> = prev(n@v) + 1\ndisplay(fract(n@v / 7), fract(me@frame / 5), me@x)",
    "loops": "spindle f(x) :: c { c = 0; for i in (1 to 9) { c += sin(i * x * 3) / i } }\n"
             "display(f(me@x), f(me@time), 0)",
    "several windows": 'display(me@x)\ndisplay(me@y, 0, 1, to: "side")\n'
                       't<v> = prev(t@v) * 0.9 + me@x * 0.1\ndisplay(t@v, to: "past")\n'
                       'display(t@v, me@y, 0, to: "twice")',
    "memory at one place": "t<v> = prev(t@v) * 0.5 + me@x * fract(me@time * 3)\nm<v> = prev(t@v)(0.3, 0.7)\n"
                           "n<v> = prev(n@v) + m@v\ndisplay(t@v, m@v, fract(n@v + me@x))",
    "memory of another window": "me<fps> = 10\nn<v> = prev(n@v) + 0.1\ndisplay(n@v)\n"
                                'display(delay(n@v, 2, 5), to: "late")',
    "an axis in another window": "b<v> = fract(me@frame / 7) * 0.5 + me@x * 0.3\ncache(b, 5)::c<v>\n"
                                 "n<v> = fract(me@frame / 5)\ncache(n, 4)::d<v>\n"
                                 "display(c@v(c@k ~ me@x * 4), d@v, 0)\ncompute(c@v(c@k ~ 2))\n"
                                 "display(c@v(c@k ~ me@y * 4), d@v(d@k ~ 2), c@v(c@k ~ 3, me@x ~ 0.3), "
                                 'to: "twice")\npast<v> = c@v(c@k ~ 3, me@x ~ 0.5, me@y ~ 0.5)\n'
                                 "audio(sin(phasor(200 + 300 * past@v) * tau) * 0.2)",
    "several places of one strand": "t<v> = max(me@x * fract(me@frame / 5), prev(t@v) * 0.8)\ndisplay(t@v)\n"
                                    "display(t@v(me@x ~ me@y, me@y ~ 0.5), t@v(me@x ~ 1 - me@y, me@y ~ 0.5), "
                                    't@v(me@x ~ me@y * me@y), to: "twice")',
    "a channel in another window": "t<v> = prev(t@v) * 0.5 + me@x * 0.2 + me@channel * 0.1\n"
                                   "display(t@v)\ncompute(t@v(me@channel ~ 2))\n"
                                   "display(t@v(me@channel ~ me@y * 3), t@v(me@channel ~ 1, me@x ~ 0.3), t@v, "
                                   'to: "twice")\npast<v> = t@v(me@channel ~ 1, me@x ~ 0.5, me@y ~ 0.5)\n'
                                   "audio(sin(phasor(200 + 300 * past@v) * tau) * 0.2)",
    "numbers": "n<v> = prev(n@v) + 0.01\ncompute(n@v, me@time)\ndisplay(n@v, me@x, 0)",
    "a sound": "audio(sin(me@time * 440 * tau) * 0.3 + phasor(3) * 0.1)",
    "sides of a sound": "p<v> = phasor(220)\naudio(p@v * 0.5 - 0.2, prev(p@v) * 0.3)",
    "a sound and its picture": "a<v> = sin(phasor(5) * tau) * 0.4\naudio(a@v)\n"
                               "display(a@v + 0.5, a@v(me@time ~ me@time - me@x * 0.1), 0)",
    "a picture and its sound": "t<v> = prev(t@v) * 0.9 + me@x * 0.1\ndisplay(t@v)\n"
                               "audio(sin(phasor(100 + 300 * t@v(me@x ~ 0.7, me@y ~ 0.5)) * tau) * 0.2)",
    "letters": 'text("Weft é 織")::w<d>\ndisplay(smoothstep(0.52, 0.48, w@d))',
    "a pattern": 'pattern("c4 [eb4 g4] ~ <bb4 c5>", per: 1)::p<value, gate, since>\n'
                 "audio(sin(phasor(p@value * 2 + 100) * tau) * p@gate * 0.2)\ndisplay(p@gate, p@since, fract(me@beat))",
}  # fmt: skip


_PROGRAM = re.compile('(id="program">)([^<]*)')


def program_in(page):
    """What a page is told of its program."""
    return json.loads(unpacked(_PROGRAM.search(page)[2]))


@pytest.mark.parametrize("name", PATCHES)
def test_a_page_plays_what_the_reference_machine_computes(checked, name):
    title = checked(HEAD + PATCHES[name])
    assert title.startswith("check ok: ")
    assert int(re.findall(r"\d+", title)[0]) >= 200


@pytest.mark.long
def test_pages_are_small(weft):
    for name, most in (("plasma", 120_000), ("drums", 200_000), ("bloom", 200_000)):
        weft("export", shipped_patches() / f"{name}.weft", "-o", "page.html")
        assert (weft.folder / "page.html").stat().st_size <= most


@pytest.mark.long
def test_a_wrong_value_fails_a_check(weft, browser):
    weft.file("patch.weft", HEAD + PATCHES["gray"])
    weft("export", "patch.weft", "-o", "page.html")
    page = weft.folder / "page.html"
    # Another seed of the noise.
    other = re.sub(r"display\(noise\(me@x \* 5", "display(noise(me@x * 6", PATCHES["gray"])
    weft.file("other.weft", HEAD + other)
    weft("export", "other.weft", "-o", "other.html")
    wrong = program_in(page.read_text()) | {"check": program_in((weft.folder / "other.html").read_text())["check"]}
    page.write_text(_PROGRAM.sub(rf"\g<1>{packed(json.dumps(wrong).encode())}", page.read_text()))
    browser.open(page.as_uri() + "?check")
    assert re.fullmatch(r"check failed: \d+ of \d+: pixel .* instead of .*", browser.title("check "))


FILM = HEAD + 'me<fps> = 10\nload("film.mp4")::f<r, g, b>\ndisplay(f@r, f@g, f@b)'


@pytest.mark.long
def test_a_film_is_compared_frame_by_frame(checked, weft, browser):
    # Each frame is a step brighter or darker, and its colours are far from grey.
    weft.file("made.weft", HEAD + "me<fps> = 10\nl<v> = fract(me@frame * 0.37) * 0.4\n"
              "display(0.3 + l@v * me@x, 0.2 + l@v, 0.8 - l@v)")  # fmt: skip
    weft("render", "made.weft", "-o", "film.mp4", "--duration", "4")
    assert checked(FILM).startswith("check ok: ")
    page = weft.folder / "page.html"
    program = program_in(page.read_text())
    # The same film, as if it were a frame longer: most frames are shown too early.
    program["films"][0]["seconds"] += 1.5 / 10
    page.write_text(_PROGRAM.sub(rf"\g<1>{packed(json.dumps(program).encode())}", page.read_text()))
    browser.open(page.as_uri() + "?check")
    assert browser.title("check ").startswith("check failed: ")


def test_a_camera_is_not_compared_and_the_page_says_so(checked):
    title = checked(HEAD + "camera(0)::c<r>\ndisplay(c@r)")
    assert title == "check failed: camera(0) is never the same twice"
