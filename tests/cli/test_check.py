"""`weft check`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import wave

import pytest
from PIL import Image

from tests.support.together import all_but
from weft.contexts import ContextTable
from weft.errors import Source
from weft.runtime.inspect.elements import Allowance
from weft.runtime.inspect.forecast import check

_FIELDS = {"severity", "code", "message", "file", "line", "column", "end_line", "end_column", "hint"}

# Modules that a check has no use for, by what would bring them in.
_HEAVY = ("numpy", "PIL", "glfw", "OpenGL", "rich", "watchdog")


def test_a_patch_without_errors(weft):
    done = weft("check", "plain.weft")
    assert done.stdout == ""
    assert done.stderr == "plain.weft: no errors\n"
    assert weft.json("check", "plain.weft") == {"diagnostics": []}


def test_json_has_every_error_with_its_place(weft):
    found = weft.json("check", "broken.weft", code=1)["diagnostics"]
    assert found
    for diagnostic in found:
        assert set(diagnostic) == _FIELDS
    last = next(d for d in found if d["line"] == 2)
    assert last["file"] == "broken.weft"
    assert last["severity"] == "error"
    assert last["column"] >= 1


def test_json_of_a_file_that_is_not_there(weft):
    found = weft.json("check", "nosuch.weft", "plain.weft", "./other.weft", code=3)["diagnostics"]
    assert [(each["code"], each["file"], each["line"]) for each in found] == [
        ("unreadable-file", "nosuch.weft", None), ("unreadable-file", "./other.weft", None),
    ]  # fmt: skip


def test_warnings_alone_are_no_failure(weft):
    weft.file("warned.weft", 'display(sqrt(me@x - 2))\n')
    done = weft("check", "warned.weft")
    assert done.stderr.rstrip().endswith("1 warning")
    assert [d["severity"] for d in weft.json("check", "warned.weft")["diagnostics"]] == ["warning"]


def test_it_imports_no_numpy_and_no_device_library(weft):
    weft.file("told.weft", TOLD_LATER)
    code = (
        "import sys; from weft.cli import main; code = main(['check', 'told.weft']);"
        f"print([m for m in {_HEAVY!r} if m in sys.modules]); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=weft.folder, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n"


def test_several_files_are_checked_at_once(weft):
    done = weft("check", "plain.weft", "broken.weft", "rich.weft", code=1)
    assert "plain.weft: no errors\n" in done.stderr
    assert "rich.weft: no errors\n" in done.stderr
    assert "broken.weft:2:" in done.stderr
    found = weft.json("check", "plain.weft", "broken.weft", code=1)["diagnostics"]
    assert {d["file"] for d in found} == {"broken.weft"}
    weft("check", "plain.weft", "rich.weft")
    weft("check", "plain.weft", "nosuch.weft", code=3)
    weft("check", "nosuch.weft", "broken.weft", code=1)


def test_what_will_not_keep_its_rate_here_is_told(weft):
    (weft.folder / "heavy.weft").write_text(
        "#use std.picture\nme<fps> = 1000\nme<width> = 3840\nme<height> = 2160\n"
        "fog = fbm(me@x * 5, me@y * 5) |> blur(0.03)\ndisplay(fog)\n"
    )
    (found,) = weft.json("check", "heavy.weft")["diagnostics"]
    assert (found["severity"], found["code"], found["line"]) == ("warning", "slow", 5)
    assert "warning: this would draw about" in weft("check", "heavy.weft").stderr


def test_what_is_piped_in_is_checked(weft):
    def check(text, *args):
        return subprocess.run(
            [sys.executable, "-m", "weft", "check", *args],
            cwd=weft.folder, input=text, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    done = check("display(me@x", "-")
    assert done.returncode == 1
    assert done.stderr.startswith("<stdin>:1:13: error: `)` is missing")
    assert check('#include "plain.weft"\n', "-").stderr == "-: no errors\n"
    (found,) = json.loads(check("display(me@x", "-", "plain.weft", "--json").stdout)["diagnostics"]
    assert found["file"] == "<stdin>"
    assert check("display(me@x)", "/dev/stdin").returncode == 0


def test_what_is_known_for_sure_is_mended(weft):
    weft.file("wrong.weft", "// a comment\n\nspot = circle(centre(), 0.3) + sin(time) + nothing\ndisplay(spot.v)\n")
    done = weft("check", "--fix", "wrong.weft", code=1)
    assert (weft.folder / "wrong.weft").read_text() == (
        "// a comment\n#use std.sdf\n#use std.coord\n\nspot = circle(centre(), 0.3) + sin(me@time) + nothing\n"
        "display(spot@v)\n"
    )
    assert "`time` is now `me@time`" in done.stderr
    assert 'there is no strand "nothing"' in done.stderr
    kept = (weft.folder / "wrong.weft").read_bytes()
    weft("check", "--fix", "wrong.weft", code=1)
    assert (weft.folder / "wrong.weft").read_bytes() == kept
    assert "needs the name of one" in weft("check", "--fix", "-", code=2).stderr


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a<t, u> = <0.1, 0.2>\ndisplay(a.t, a.u, Math.PI)\n", "a<t, u> = <0.1, 0.2>\ndisplay(a@t, a@u, pi)\n"),
        ("display(hsv(me@x))\n#use std.noise", "display(hsv(me@x))\n#use std.color\n#use std.noise"),
        ("/*\n#use std.ease\n*/\ndisplay(hsv(me@x))\n", "#use std.color\n/*\n#use std.ease\n*/\ndisplay(hsv(me@x))\n"),
        ("#use std.ease /* a\nb */\ndisplay(hsv(me@x))\n",
         "#use std.ease /* a\nb */\n#use std.color\ndisplay(hsv(me@x))\n"),
    ],
)  # fmt: skip
def test_what_is_mended_means_what_was_meant(weft, before, after):
    path = weft.file("wrong.weft", before)
    path.chmod(0o640)
    weft("check", "--fix", "wrong.weft")
    assert path.read_text() == after
    assert path.stat().st_mode & 0o777 == 0o640


def test_what_is_mended_has_the_line_ends_of_the_file(weft):
    path = weft.folder / "wrong.weft"
    path.write_bytes(b"// a\r\na<t, u> = <0.1, 0.2>\r\ndisplay(hsv(a.t))\r\n")
    weft("check", "--fix", "wrong.weft")
    assert path.read_bytes() == b"// a\r\n#use std.color\r\na<t, u> = <0.1, 0.2>\r\ndisplay(hsv(a@t))\r\n"


def test_no_library_is_added_that_would_change_other_calls(weft):
    text = "box = me@x * me@y\ndisplay(box(0.5, 0.5) + circle(<me@x, me@y>, 0.3))\n"
    path = weft.file("wrong.weft", text)
    assert "write #use std.sdf at the top" in weft("check", "--fix", "wrong.weft", code=1).stderr
    assert path.read_text() == text
    weft.file("wrong.weft", text.replace("box(0.5, 0.5)", "box"))
    weft("check", "--fix", "wrong.weft")


def test_a_pipe_in_the_place_of_a_file_is_an_error_at_once(weft):
    os.mkfifo(weft.folder / "pipe.weft")
    assert "it is not a file with contents" in weft("check", "pipe.weft", code=3).stderr


def _many(kind):
    """A text with 2,000 mistakes of a kind, the names of which are much alike."""
    numbers = range(2000)
    match kind:
        case "strands":
            lines = [f"strand_name_{n}<v> = stand_name_{n}@v" for n in numbers]
        case "one name":
            lines = [f"strand_name_{n}<v> = stand_name@v" for n in numbers]
        case "locals":
            body = [f"  local_name_{n} = locl_name_{n}" for n in numbers]
            lines = ["spindle s(a) :: v {", *body, "  v = 1", "}"]
        case "calls":
            lines = [f"strand_name_{n}<v> = stand_name_{n}(1)" for n in numbers]
        case "behind a broken line":
            lines = ["broken = (1 +", *(f"strand_name_{n}<v> = stand_name_{n}@v" for n in numbers)]
    return "\n".join([*lines, "display(me@x)", ""])


# Where the time grows with the square of the mistakes, each takes longer than `weft` waits.
@pytest.mark.parametrize("kind", all_but(1, ["strands", "one name", "locals", "calls", "behind a broken line"]))
def test_of_thousands_of_mistakes_the_foremost_are_shown_and_all_are_counted(weft, kind):
    weft.file("many.weft", _many(kind))
    done = weft("check", "many.weft", code=1)
    count = int(re.search(r"^(\d+) errors; 50 of them are shown", done.stderr, re.MULTILINE)[1])
    assert count >= 2000
    assert done.stderr.count(": error: ") == 50
    if kind in ("strands", "locals", "calls"):
        assert 'did you mean "' in done.stderr
    if kind == "strands":
        assert len(weft.json("check", "many.weft", code=1)["diagnostics"]) == count


def test_of_thousands_of_broken_lines_it_is_said_that_there_are_more(weft):
    weft.file("many.weft", "a = (1 +\n" * 3000)
    found = weft.json("check", "many.weft", code=1)["diagnostics"]
    assert len(found) == 50
    assert found[-1]["code"] == "too-many-errors"
    weft.file("some.weft", "a = (1 +\n" * 30)
    codes = [d["code"] for d in weft.json("check", "some.weft", code=1)["diagnostics"]]
    assert "too-many-errors" not in codes


@pytest.mark.long
def test_a_performance_tells_of_the_foremost_and_counts_the_others(weft):
    weft.file("many.weft", _many("strands"))
    done = weft("run", "many.weft", "--headless", "--frames", 1, "--events", "-", code=1)
    (error,) = [e for line in done.stdout.splitlines() if (e := json.loads(line))["event"] == "error"]
    assert len(error["diagnostics"]) == 50
    assert error["left_out"] >= 1950
    assert done.stderr.count(": error: ") == 50


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"a{n}<v> = a{(n + 1) % 5000}@v" for n in range(5000)),
        f"a<v> = {'q' * 100_000}@v",
        f"{'q' * 100_000}<v> = {'q' * 100_000}@v",
        f"a<v> = {'sin(' * 20}me@x{')' * 20} + {' + '.join(['me@x'] * 30_000)} + wrong@v",
    ],
    ids=["circle", "name", "circle of one name", "line"],
)
def test_an_error_has_a_length(weft, text):
    weft.file("long.weft", f"{text}\ndisplay(me@x)\n")
    done = weft("check", "long.weft", code=1)
    assert len(done.stderr) < 4000
    assert max(map(len, done.stderr.split("\n"))) < 800
    assert done.stderr.rstrip().endswith("1 error")


LOOP = "spindle long(n) :: v {\n  v = 0\n  for i in (1 to n) { v += i }\n}\n"

# What only shows when a program runs: a loop that is stopped, and a picture of nothing but NaN.
TOLD_LATER = (
    f"me<width> = 32; me<height> = 18\n{LOOP}a<v> = long(me@x * 20000)\nb<v> = long(me@y * 20)\n"
    'display(a@v * 0.001, b@v, sqrt(me@x - 2))\ndisplay(b@v, to: "side")\n'
)


def test_it_tells_what_a_run_would_tell(weft):
    weft.file("told.weft", TOLD_LATER)
    said = [part for part in weft("check", "told.weft").stderr.split("\n\n") if "told.weft:" in part]
    running = weft("run", "told.weft", "--headless", "--frames", "3", "--no-audio").stderr
    assert len(said) == running.count("warning: ") == 2
    assert all(part in running for part in said)
    found = {d["code"]: (d["line"], d["column"]) for d in weft.json("check", "told.weft")["diagnostics"]}
    assert found == {"loop-stopped": (4, 13), "not-a-number": (8, 1)}


@pytest.mark.parametrize("text", ["", "// Nothing yet.\n", "a<v> = me@x\n"])
def test_a_patch_that_shows_and_plays_nothing(weft, text):
    weft.file("empty.weft", text)
    words = "this patch has no output statement, so there is nothing to show or play"
    (found,) = weft.json("check", "empty.weft")["diagnostics"]
    assert (found["severity"], found["message"]) == ("warning", words)
    assert words in weft("run", "empty.weft", "--headless", "--frames", "1", code=1).stderr


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (LOOP, []),
        (f"{LOOP}display(long(4096 * me@x))", []),
        (f"{LOOP}display(long(clamp(me@x * 1e9, 0, 10)))", []),
        (f"{LOOP}display(long(me@x * 4200))", ["loop-stopped"]),
        (f"{LOOP}audio(long(me@x * 42000))", ["loop-stopped"]),
        (f"{LOOP}compute(long(key@a + 1e5 + mouse@x))", ["loop-stopped"]),
        (("spindle nest(n) :: v {\n v = 0\n for i in (1 to n) { for j in (1 to n) { v += 1 } }\n}\n"
         "display(nest(me@x * 200))"), []),
        (("spindle nest(n) :: v {\n v = 0\n for i in (1 to n) { for j in (1 to n) { v += 1 } }\n}\n"
         "display(nest(me@x * 300))"), ["loop-stopped"]),
        ("display(sqrt(me@x - 0.98))", []),
        ("display(sqrt(me@x - 2))", ["not-a-number"]),
        ("a<v> = 0 / prev(a@v)\ndisplay(a@v)", ["not-a-number"]),
        ("n<v> = prev(n@v) + 1\ndisplay(0 / prev(n@v))", []),
        ("a<v> = me@x\ndisplay(a@v(me@x ~ 0 / 0))", ["not-a-number"]),
        ("audio(log(-1 - me@x))", ["not-a-number"]),
        ("audio(sqrt(sin(me@time * 440 * tau)))", []),
        ("compute(0 / 0)", []),
    ],
)  # fmt: skip
def test_what_shows_at_a_few_places_is_told_and_nothing_else(text, codes):
    assert [d.code for d in check(Source("p.weft", f"{text}\n"), ContextTable())] == codes


def test_a_program_that_would_take_long_is_not_looked_at_for_long(monkeypatch):
    allowances = []

    class Noted(Allowance):
        def __init__(self, left):
            super().__init__(left)
            self.spent = 0
            allowances.append((self, left))

        def spend(self, count):
            super().spend(count)
            self.spent += count

    monkeypatch.setattr("weft.runtime.inspect.forecast.Allowance", Noted)
    loops = "for i in (1 to n) { for j in (1 to n) { v += sin(v * i + j) * me@x } }"
    lines = [f"spindle f(n) :: v {{\n  v = 0\n  {loops}\n}}"]
    lines += [f"a{k} = f(200 + mouse@x + {k})" for k in range(40)]
    shown = " + ".join(f"a{k}" for k in range(40))
    assert not check(Source("p.weft", "\n".join([*lines, f"display({shown})\n"])), ContextTable())
    (first, most), *others = allowances
    assert most / 2 < first.spent <= most
    assert first.left < 0, "without a limit, it would have gone on"
    assert sum(other.spent for other, _ in others) < most / 10


def _write_bad(weft, name):
    """Writes a bad input; gives what its error must say."""
    folder = weft.folder
    match name:
        case "binary":
            (folder / "bad.weft").write_bytes(bytes(range(256)) * 100)
            return "it is a binary file, not a text"
        case "latin-1":
            (folder / "bad.weft").write_bytes("// größer\ndisplay(me@x)\n".encode("latin-1"))
            return "it is not a text in UTF-8: save it as UTF-8"
        case "rtf":
            weft.file("bad.weft", "{\\rtf1\\ansi display(me@x)}\n")
            return "it is a text with layout (RTF): save it as plain text"
        case "utf-16":
            (folder / "bad.weft").write_bytes("display(me@x)\n".encode("utf-16"))
            return "it is a text in UTF-16: save it as UTF-8"
        case "zeros":
            (folder / "bad.weft").write_bytes(bytes(1000))
            return "binary"
        case "large":
            (folder / "bad.weft").write_bytes(b"a = 1\n" * 900_000)
            return "larger than 1 MB"
        case "folder":
            (folder / "bad.weft").mkdir()
            return "it is a folder"
        case "nested":
            weft.file("bad.weft", f"a = {'(' * 100_000}1{')' * 100_000}\ndisplay(a)\n")
            return "too-deep"
        case "loop":
            weft.file("bad.weft", "spindle s(n) :: v {\n  v = 0\n  for i in (1 to 1e9) {\n    v += i\n  }\n}\n"
                                  "a<v> = s(2)\ndisplay(a@v)\n")  # fmt: skip
            return "loop-too-long"
        case "width":
            weft.file("bad.weft", "me<width> = 20000\ndisplay(me@x)\n")
            return "setting-out-of-range"
        case "no picture":
            weft.file("bad.weft", 'load("none.png")::i<r, g, b, a>\ndisplay(i@r)\n')
            return "there is no such file"
        case "bad picture":
            (folder / "bad.png").write_bytes(bytes(1000))
            weft.file("bad.weft", 'load("bad.png")::i<r, g, b, a>\ndisplay(i@r)\n')
            return "it is not a picture"
        case "include":
            weft.file("bad.weft", '#include "none.weft"\ndisplay(me@x)\n')
            return "include-unreadable"
        case "cycle":
            weft.file("bad.weft", '#include "other.weft"\ndisplay(me@x)\n')
            weft.file("other.weft", '#include "bad.weft"\n')
            return "include-cycle"
    raise ValueError(name)


@pytest.mark.parametrize(
    ("name", "code"),
    [("binary", 3), ("latin-1", 3), ("rtf", 3), ("utf-16", 3), ("zeros", 3), ("large", 3), ("folder", 3),
     ("nested", 1), ("loop", 1), ("width", 1), ("no picture", 1), ("bad picture", 1), ("include", 1), ("cycle", 1)],
)  # fmt: skip
def test_bad_input_is_one_clear_error(weft, name, code):
    words = _write_bad(weft, name)
    done = weft("check", "bad.weft", code=code)
    assert words in done.stderr
    if code == 3:
        assert done.stderr.count("\n") == 1
    else:
        assert done.stderr.rstrip().endswith("1 error")


def test_files_that_begin_well_and_are_not_whole_are_found(weft):
    """A picture that was cut off, and a sound without samples."""
    Image.effect_noise((64, 64), 90).save(weft.folder / "whole.png")
    (weft.folder / "cut.png").write_bytes((weft.folder / "whole.png").read_bytes()[:1500])
    with wave.open(str(weft.folder / "none.wav"), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(48_000)
    shown = {"cut.png": "::p<r, g, b>\ndisplay(p)\n", "none.wav": "::p<l, r>\nplay(p)\n"}
    for name, words in (("cut.png", "damaged or incomplete"), ("none.wav", "there is no sound in it")):
        (weft.folder / "a.weft").write_text(f'load("{name}"){shown[name]}')
        found = weft("check", "a.weft", code=1)
        assert f'a.weft:1:6: error: "{name}" cannot be read' in found.stderr
        assert words in found.stderr
