"""`weft check`."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
    (found,) = weft.json("check", "nosuch.weft", code=3)["diagnostics"]
    assert found["code"] == "unreadable-file"


def test_warnings_alone_are_no_failure(weft):
    weft.file("warned.weft", "camera()::cam<r, g, b>\ndisplay(cam)\n")
    done = weft("check", "warned.weft")
    assert done.stderr.rstrip().endswith("1 warning")
    assert [d["severity"] for d in weft.json("check", "warned.weft")["diagnostics"]] == ["warning"]


def test_it_imports_no_numpy_and_no_device_library(weft):
    code = (
        "import sys; from weft.cli import main; code = main(['check', 'rich.weft']);"
        f"print([m for m in {_HEAVY!r} if m in sys.modules]); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=weft.folder, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n"


def _write_bad(weft, name):
    """Writes a bad input; gives what its error must say."""
    folder = weft.folder
    match name:
        case "binary":
            (folder / "bad.weft").write_bytes(bytes(range(256)) * 100)
            return "it is not a text"
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
    [("binary", 3), ("zeros", 3), ("large", 3), ("folder", 3), ("nested", 1), ("loop", 1), ("width", 1),
     ("no picture", 1), ("bad picture", 1), ("include", 1), ("cycle", 1)],
)  # fmt: skip
def test_bad_input_is_one_clear_error(weft, name, code):
    words = _write_bad(weft, name)
    done = weft("check", "bad.weft", code=code)
    assert words in done.stderr
    if code == 3:
        assert done.stderr.count("\n") == 1
    else:
        assert done.stderr.rstrip().endswith("1 error")
